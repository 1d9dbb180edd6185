/* npy: the magic, a version, the length of a header, the header (a Python dict as text), the data.
 *
 * The header is read by a small parser of just this dict: three known keys, strings, True and
 * False, a tuple of integers. Rejected: skipping to the keys by searching, which a hostile or odd
 * header misleads.
 *
 * Format: numpy.lib.format, versions 1.0 to 3.0. */
#include "io/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* ---- the text of the header ---- */

typedef struct text {
    const char *what; /* file, for messages */
    const char *begin, *at, *end;
} text;

typedef struct header {
    char descr[16];
    bool fortran;
    tk_shape shape;
    unsigned seen; /* one bit a key */
} header;

enum { SEEN_DESCR = 1, SEEN_FORTRAN = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

static tk_status unexpected(const text *t, const char *expected) {
    size_t left = (size_t)(t->end - t->at);
    return tk_fail(TK_FORMAT_ERROR, "%.400s: npy header, byte %zu: %s is expected, found \"%.*s\"",
                   t->what, (size_t)(t->at - t->begin), expected, (int)(left < 20 ? left : 20),
                   t->at);
}

static void skip_space(text *t) {
    while (t->at < t->end && strchr(" \t\r\n", *t->at) && *t->at) t->at++;
}

static bool take(text *t, char c) {
    skip_space(t);
    if (t->at == t->end || *t->at != c) return false;
    t->at++;
    return true;
}

static bool take_word(text *t, const char *word) {
    size_t length = strlen(word);
    skip_space(t);
    if ((size_t)(t->end - t->at) < length || memcmp(t->at, word, length) != 0) return false;
    t->at += length;
    return true;
}

/* A string without escapes that fits `room`. */
static tk_status read_string(text *t, const char *expected, char *out, size_t room) {
    skip_space(t);
    char quote = t->at < t->end ? *t->at : 0;
    if (quote != '\'' && quote != '"') return unexpected(t, expected);
    const char *begin = t->at + 1, *end = begin;
    while (end < t->end && *end != quote) {
        if (*end == '\\' || (unsigned char)*end < ' ') return unexpected(t, expected);
        end++;
    }
    if (end == t->end || (size_t)(end - begin) >= room) return unexpected(t, expected);
    memcpy(out, begin, (size_t)(end - begin));
    out[end - begin] = 0;
    t->at = end + 1;
    return TK_OK;
}

/* A length; old Python 2 writers put an L behind. */
static tk_status read_length(text *t, int64_t *out_length) {
    int64_t length = 0;
    skip_space(t);
    if (t->at == t->end || *t->at < '0' || *t->at > '9') return unexpected(t, "a length");
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (tk_mul_overflow_i64(length, 10, &length) ||
            tk_add_overflow_i64(length, *t->at - '0', &length))
            return unexpected(t, "a length below 2^63");
    if (t->at < t->end && *t->at == 'L') t->at++;
    *out_length = length;
    return TK_OK;
}

static tk_status read_shape(text *t, tk_shape *shape) {
    shape->count = 0;
    if (!take(t, '(')) return unexpected(t, "'(' of the shape");
    bool comma = true;
    while (!take(t, ')')) {
        int64_t length = 0;
        if (!comma) return unexpected(t, "',' or ')' in the shape");
        TK_TRY(read_length(t, &length));
        if (shape->count == TK_AXES_MAX)
            return tk_fail(TK_SHAPE_ERROR, "%.400s has more than %d axes", t->what, TK_AXES_MAX);
        shape->items[shape->count++] = length;
        comma = take(t, ',');
    }
    if (shape->count == 1 && !comma) return unexpected(t, "',' in a shape of one axis");
    return TK_OK;
}

static tk_status read_descr(text *t, header *h) {
    skip_space(t);
    if (t->at < t->end && *t->at == '[')
        return tk_fail(TK_DTYPE_ERROR, "%.400s holds records (a structured dtype), not numbers",
                       t->what);
    return read_string(t, "a short string, the dtype", h->descr, sizeof h->descr);
}

static tk_status read_fortran(text *t, header *h) {
    h->fortran = take_word(t, "True");
    return h->fortran || take_word(t, "False") ? TK_OK : unexpected(t, "True or False");
}

static tk_status read_item(text *t, header *h) {
    char key[16];
    const char *expected = "'descr', 'fortran_order' or 'shape'";
    TK_TRY(read_string(t, expected, key, sizeof key));
    unsigned bit = !strcmp(key, "descr")           ? SEEN_DESCR
                   : !strcmp(key, "fortran_order") ? SEEN_FORTRAN
                   : !strcmp(key, "shape")         ? SEEN_SHAPE
                                                   : 0;
    if (!bit || h->seen & bit)
        return tk_fail(TK_FORMAT_ERROR, "%.400s: npy header: key '%s' is %s, %s are expected once",
                       t->what, key, bit ? "there twice" : "unknown", expected);
    h->seen |= bit;
    if (!take(t, ':')) return unexpected(t, "':'");
    if (bit == SEEN_DESCR) return read_descr(t, h);
    return bit == SEEN_SHAPE ? read_shape(t, &h->shape) : read_fortran(t, h);
}

static tk_status read_dict(text *t, header *h) {
    if (!take(t, '{')) return unexpected(t, "'{'");
    bool comma = true;
    while (!take(t, '}')) {
        if (!comma) return unexpected(t, "',' or '}'");
        TK_TRY(read_item(t, h));
        comma = take(t, ',');
    }
    skip_space(t);
    if (t->at != t->end) return unexpected(t, "the end of the header");
    if (h->seen == SEEN_ALL) return TK_OK;
    return tk_fail(TK_FORMAT_ERROR, "%.400s: npy header: '%s' is missing", t->what,
                   !(h->seen & SEEN_DESCR)     ? "descr"
                   : !(h->seen & SEEN_FORTRAN) ? "fortran_order"
                                               : "shape");
}

/* ---- the frame ---- */

/* The header's text; what follows it is the data. */
static tk_status find_text(const char *what, const tk_mapping *mapping, text *out_text) {
    const unsigned char *bytes = mapping->data;
    if (mapping->bytes < 10 || memcmp(bytes, magic, sizeof magic) != 0)
        return tk_fail(TK_FORMAT_ERROR, "%.400s: an npy file begins with \"\\x93NUMPY\"%s", what,
                       mapping->bytes < 10 ? " and has 10 bytes at least" : "");
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return tk_fail(TK_FORMAT_ERROR, "%.400s: npy version %d.%d, 1.0 to 3.0 are expected", what,
                       bytes[6], bytes[7]);
    size_t begin = bytes[6] == 1 ? 10 : 12;
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1 && mapping->bytes >= 12)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (mapping->bytes < begin || length > mapping->bytes - begin)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.400s: an npy header of %zu bytes is announced, the file has %zu in all",
                       what, length, mapping->bytes);
    const char *start = (const char *)bytes + begin;
    *out_text = (text){what, start, start, start + length};
    return TK_OK;
}

/* ---- dtypes ---- */

typedef struct npy_dtype {
    const char *descr;
    tk_dtype dtype;
} npy_dtype;

/* *out_swap: the bytes of each element (or of each half of a complex one) are reversed. */
static tk_status find_dtype(const char *what, const char *descr, tk_dtype *out_dtype,
                            bool *out_swap) {
    static const npy_dtype table[] = {
#define NPY_DTYPE(id, name, text, size, kind, safetensors, npy) {npy, id},
        TK_DTYPES(NPY_DTYPE)
#undef NPY_DTYPE
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (!descr[0] || strcmp(table[i].descr + 1, descr + 1) != 0) continue;
        bool one_byte = tk_dtype_size(table[i].dtype) == 1;
        const char *orders = one_byte ? "<>|=" : table[i].dtype == TK_BFLOAT16 ? "<|" : "<>=";
        if (!strchr(orders, descr[0])) break;
        *out_dtype = table[i].dtype;
        *out_swap = descr[0] == '>' && !one_byte;
        return TK_OK;
    }
    return tk_fail(TK_DTYPE_ERROR, "%.400s has dtype '%s', which Tiki does not have", what, descr);
}

static void swap_units(unsigned char *data, size_t bytes, size_t unit) {
    for (unsigned char *at = data; at < data + bytes; at += unit)
        for (size_t low = 0, high = unit - 1; low < high; low++, high--) {
            unsigned char kept = at[low];
            at[low] = at[high];
            at[high] = kept;
        }
}

/* Replaces the mapping by its values in this machine's byte order. */
static tk_status convert(const char *what, tk_mapping **mapping, tk_placement *placement,
                         size_t bytes) {
    unsigned char *copy = tk_malloc(bytes);
    if (!copy) return tk_io_no_memory(what);
    size_t unit = tk_dtype_size(placement->dtype);
    if (bytes) memcpy(copy, (*mapping)->data + placement->offset, bytes);
    swap_units(copy, bytes, placement->dtype == TK_COMPLEX64 ? 4 : unit);
    tk_mapping *converted;
    TK_TRY(tk_mapping_adopt(what, copy, bytes, &converted));
    tk_mapping_release(*mapping);
    *mapping = converted;
    placement->offset = 0;
    return TK_OK;
}

/* ---- reading ---- */

static tk_status read_placement(const char *what, const tk_mapping *mapping,
                                tk_placement *placement, bool *out_swap) {
    text t = {.at = NULL};
    header h = {.seen = 0};
    TK_TRY(find_text(what, mapping, &t));
    TK_TRY(read_dict(&t, &h));
    *placement = (tk_placement){.shape = h.shape, .fortran = h.fortran};
    placement->offset = (size_t)((const unsigned char *)t.end - mapping->data);
    return find_dtype(what, h.descr, &placement->dtype, out_swap);
}

tk_status tk_npy_read(tk_context *context, const char *what, tk_mapping **mapping,
                      tk_array *out_array) {
    tk_placement placement;
    bool swap = false;
    size_t bytes;
    *out_array = TK_NO_ARRAY;
    TK_TRY(read_placement(what, *mapping, &placement, &swap));
    TK_TRY(tk_placement_bytes(what, &placement, &bytes));
    size_t found = (*mapping)->bytes - placement.offset;
    if (bytes != found)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.400s: dtype and shape need %zu bytes of data, the file has %zu", what,
                       bytes, found);
    if (swap) TK_TRY(convert(what, mapping, &placement, bytes));
    return tk_place_array(context, what, *mapping, &placement, out_array);
}

static tk_status read_and_release(tk_context *context, const char *what, tk_mapping *mapping,
                                  tk_array *out_array) {
    tk_status status = tk_npy_read(context, what, &mapping, out_array);
    tk_mapping_release(mapping);
    return status;
}

tk_status tk_npy_load(tk_context *context, const char *path, tk_array *out_array) {
    TK_NEED(context, path, out_array);
    tk_mapping *mapping;
    *out_array = TK_NO_ARRAY;
    TK_TRY(tk_mapping_open(path, &mapping));
    return read_and_release(context, path, mapping, out_array);
}

tk_status tk_npy_parse(tk_context *context, const char *name, const void *data, size_t bytes,
                       tk_array *out_array) {
    TK_NEED(context, out_array);
    if (bytes) TK_NEED(data);
    tk_mapping *mapping;
    if (!name) name = "memory";
    *out_array = TK_NO_ARRAY;
    TK_TRY(tk_mapping_copy(name, data, bytes, &mapping));
    return read_and_release(context, name, mapping, out_array);
}

/* ---- writing ---- */

static const char *descr_of(tk_dtype dtype) {
    switch (dtype) {
#define NPY_DESCR(id, name, text, size, kind, safetensors, npy)                                    \
    case id:                                                                                       \
        return npy;
        TK_DTYPES(NPY_DESCR)
#undef NPY_DESCR
    default:
        return "?";
    }
}

/* NumPy leaves room for the first length to grow to 21 digits, then pads so that the data begins at
 * a multiple of 64. */
static void pad_header(tk_strbuf *out, tk_shape shape) {
    char digits[32];
    int length = 21;
    if (shape.count > 0) length = snprintf(digits, sizeof digits, "%" PRId64, shape.items[0]);
    for (int i = length; i < 21; i++) tk_strbuf_putc(out, ' ');
    while ((out->length + 1) % 64 && !out->failed) tk_strbuf_putc(out, ' ');
    tk_strbuf_putc(out, '\n');
}

tk_status tk_npy_put_header(tk_strbuf *out, tk_array array) {
    tk_shape shape = tk_array_shape(array);
    tk_strbuf_put(out, (const char *)magic, sizeof magic);
    tk_strbuf_put(out, "\1\0\0\0", 4);
    tk_strbuf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     descr_of(tk_array_dtype(array)));
    for (int64_t i = 0; i < shape.count; i++)
        tk_strbuf_printf(out, i ? ", %" PRId64 : "%" PRId64, shape.items[i]);
    tk_strbuf_puts(out, shape.count == 1 ? ",), }" : "), }");
    pad_header(out, shape);
    if (out->failed) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an npy header");
    out->text[8] = (char)((out->length - 10) & 0xff);
    out->text[9] = (char)((out->length - 10) >> 8);
    return TK_OK;
}

static tk_status write_array(tk_writer *writer, tk_array array) {
    tk_strbuf header = {0};
    const void *data;
    void *copy = NULL;
    size_t bytes;
    tk_status status = tk_array_bytes(array, &data, &bytes, &copy);
    if (status == TK_OK) status = tk_npy_put_header(&header, array);
    if (status == TK_OK) status = tk_writer_put(writer, header.text, header.length);
    if (status == TK_OK && bytes) status = tk_writer_put(writer, data, bytes);
    tk_strbuf_deinit(&header);
    tk_free(copy);
    return status;
}

tk_status tk_npy_save(const char *path, tk_array array) {
    TK_NEED(path);
    TK_TRY(tk_eval(array));
    tk_writer writer;
    TK_TRY(tk_writer_open(&writer, path));
    return tk_writer_close(&writer, write_array(&writer, array));
}
