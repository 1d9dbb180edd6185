/* Reading GGUF: magic, version, counts; the metadata; what the tensors are; their data, aligned.
 *
 * Everything is checked against the bytes that are left before memory is taken for it, so a header
 * cannot make the reader allocate more than a small multiple of the file. All tensors are checked
 * before the first array is made. Integers are little-endian, as the machine's.
 *
 * Format: github.com/ggml-org/ggml, docs/gguf.md. Stricter than the text in that names and keys are
 * given once and tensors do not overlap. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/gguf.h"

typedef struct tensor {
    char *name;
    uint32_t type;
    tk_shape shape;
    uint64_t offset; /* in the data */
    size_t bytes;
} tensor;

typedef struct reader {
    tk_context *context;
    const char *file;
    const unsigned char *bytes;
    size_t n_bytes, at;
    uint64_t alignment;
    TK_VEC(tensor) tensors;
    TK_VEC(char *) keys;
    tk_gguf_values *values;
} reader;

/* ---- pieces ---- */

static size_t left(const reader *r) { return r->n_bytes - r->at; }

static tk_status cut_off(const reader *r, const char *what, uint64_t expected) {
    return tk_fail(TK_FORMAT_ERROR, "%.300s: %s needs %llu bytes at byte %zu, %zu follow", r->file,
                   what, (unsigned long long)expected, r->at, left(r));
}

static tk_status take(reader *r, const char *what, void *out, size_t bytes) {
    if (bytes > left(r)) return cut_off(r, what, bytes);
    memcpy(out, r->bytes + r->at, bytes);
    r->at += bytes;
    return TK_OK;
}

/* A string in place: length, then bytes. */
static tk_status take_string(reader *r, const char *what, const char **out, size_t *out_bytes) {
    uint64_t length = 0;
    TK_TRY(take(r, what, &length, sizeof length));
    if (length > left(r)) return cut_off(r, what, length);
    *out = (const char *)r->bytes + r->at;
    *out_bytes = (size_t)length;
    r->at += (size_t)length;
    return TK_OK;
}

/* A name on the heap: neither empty nor with zeros in it. */
static tk_status take_name(reader *r, const char *what, char **out) {
    const char *bytes;
    size_t count;
    TK_TRY(take_string(r, what, &bytes, &count));
    if (count == 0 || memchr(bytes, 0, count))
        return tk_fail(TK_FORMAT_ERROR, "%.300s: %s at byte %zu is %s", r->file, what,
                       r->at - count, count ? "a text with a zero in it" : "empty");
    *out = tk_malloc(count + 1);
    if (!*out) return tk_io_no_memory(r->file);
    memcpy(*out, bytes, count);
    (*out)[count] = 0;
    return TK_OK;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts a list of names; none may be there twice. */
static tk_status check_distinct(const reader *r, const char *what, char **names, size_t count) {
    if (count) qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(names[i - 1], names[i]))
            return tk_fail(TK_FORMAT_ERROR, "%.300s: %s \"%.160s\" is given twice", r->file, what,
                           names[i]);
    return TK_OK;
}

/* ---- metadata ---- */

static tk_status wrong_value(const reader *r, const char *key, const char *expected,
                             uint32_t found) {
    return tk_fail(TK_FORMAT_ERROR, "%.300s: metadata \"%.160s\": %s is expected, found type %u",
                   r->file, key, expected, found);
}

static tk_status set_numbers(reader *r, const char *key, tk_dtype dtype, tk_shape shape,
                             size_t bytes) {
    const unsigned char *data = r->bytes + r->at;
    for (size_t i = 0; dtype == TK_BOOL && i < bytes; i++)
        if (data[i] > 1)
            return tk_fail(TK_FORMAT_ERROR,
                           "%.300s: metadata \"%.160s\": a truth value is %u, expected 0 or 1",
                           r->file, key, data[i]);
    r->at += bytes;
    tk_scope scope = tk_scope_open(r->context);
    tk_status status =
        tk_gguf_set_array(r->values, key, tk_from_data(r->context, data, shape, dtype));
    tk_scope_close(scope);
    return status;
}

static tk_status read_texts(reader *r, const char *key, uint64_t count) {
    TK_TRY(tk_gguf_set_texts(r->values, key));
    for (uint64_t i = 0; i < count; i++) {
        const char *bytes;
        size_t n_bytes;
        TK_TRY(take_string(r, "a text of the metadata", &bytes, &n_bytes));
        TK_TRY(tk_gguf_add_text(r->values, key, bytes, n_bytes));
    }
    return TK_OK;
}

static tk_status read_array(reader *r, const char *key) {
    uint32_t type;
    uint64_t count;
    tk_dtype dtype;
    TK_TRY(take(r, "an array of the metadata", &type, sizeof type));
    TK_TRY(take(r, "an array of the metadata", &count, sizeof count));
    if (type == TK_GGUF_TYPE_ARRAY)
        return tk_fail(TK_UNSUPPORTED, "%.300s: metadata \"%.160s\" is an array of arrays", r->file,
                       key);
    if (type == TK_GGUF_TYPE_STRING && count <= left(r) / sizeof(uint64_t))
        return read_texts(r, key, count);
    if (type == TK_GGUF_TYPE_STRING) return cut_off(r, "a list of texts", count);
    if (!tk_gguf_value_dtype(type, &dtype)) return wrong_value(r, key, "an array's type", type);
    if (count > left(r) / tk_dtype_size(dtype)) return cut_off(r, "an array of numbers", count);
    return set_numbers(r, key, dtype, TK_SHAPE((int64_t)count),
                       (size_t)count * tk_dtype_size(dtype));
}

static tk_status read_value(reader *r, const char *key) {
    uint32_t type;
    tk_dtype dtype;
    TK_TRY(take(r, "a value's type", &type, sizeof type));
    if (type == TK_GGUF_TYPE_ARRAY) return read_array(r, key);
    if (type == TK_GGUF_TYPE_STRING) {
        const char *bytes;
        size_t n_bytes;
        TK_TRY(take_string(r, "a text of the metadata", &bytes, &n_bytes));
        return tk_gguf_set_text(r->values, key, bytes, n_bytes);
    }
    if (!tk_gguf_value_dtype(type, &dtype)) return wrong_value(r, key, "a value's type", type);
    if (tk_dtype_size(dtype) > left(r)) return cut_off(r, "a number", tk_dtype_size(dtype));
    return set_numbers(r, key, dtype, TK_SCALAR, tk_dtype_size(dtype));
}

/* The smallest value with its key: a length, a character, a type, a byte. */
#define LEAST_VALUE 14

static tk_status read_values(reader *r, uint64_t count) {
    if (count > left(r) / LEAST_VALUE) return cut_off(r, "the metadata", count);
    for (uint64_t i = 0; i < count; i++) {
        char *key;
        TK_TRY(take_name(r, "a key", &key));
        if (!tk_vec_push(&r->keys, key)) {
            tk_free(key);
            return tk_io_no_memory(r->file);
        }
        TK_TRY(read_value(r, key));
    }
    return check_distinct(r, "key", r->keys.items, r->keys.count);
}

static tk_status read_alignment(reader *r) {
    size_t at = tk_gguf_find(r->values, TK_GGUF_ALIGNMENT_KEY);
    int64_t alignment = TK_GGUF_ALIGNMENT;
    if (at < tk_gguf_count(r->values)) {
        tk_array array = tk_gguf_array(r->values, at);
        if (!array.node || tk_array_rank(array) || tk_array_dtype(array) != TK_UINT32)
            return tk_fail(TK_FORMAT_ERROR, "%.300s: " TK_GGUF_ALIGNMENT_KEY " must be a uint32",
                           r->file);
        TK_TRY(tk_item_int(array, &alignment));
    }
    if (alignment == 0 || (alignment & (alignment - 1)))
        return tk_fail(TK_FORMAT_ERROR,
                       "%.300s: " TK_GGUF_ALIGNMENT_KEY " is %lld, expected a power of two",
                       r->file, (long long)alignment);
    r->alignment = (uint64_t)alignment;
    return TK_OK;
}

/* ---- what the tensors are ---- */

static tk_status size_of(const reader *r, tensor *t) {
    char what[512];
    snprintf(what, sizeof what, "%.300s: tensor \"%.160s\"", r->file, t->name);
    size_t block = tk_gguf_block_bytes(t->type);
    tk_placement placement = {.dtype = TK_UINT8, .shape = t->shape};
    if (block == 0) {
        if (!tk_gguf_tensor_dtype(t->type, &placement.dtype))
            return tk_fail(TK_UNSUPPORTED,
                           "%s has type %u (%s), expected f32, f16, bf16, f64, i8 to i64, q4_0, "
                           "q4_1 or q8_0",
                           what, t->type, tk_gguf_tensor_name(t->type));
        return tk_placement_bytes(what, &placement, &t->bytes);
    }
    int64_t rank = t->shape.count, *last = &placement.shape.items[rank ? rank - 1 : 0];
    if (rank == 0 || *last % TK_GGUF_BLOCK)
        return tk_fail(TK_FORMAT_ERROR, "%s has rows of %lld elements, expected blocks of %d", what,
                       rank ? (long long)*last : 1, TK_GGUF_BLOCK);
    *last = *last / TK_GGUF_BLOCK * (int64_t)block;
    return tk_placement_bytes(what, &placement, &t->bytes);
}

static tk_status read_shape(reader *r, tensor *t) {
    uint32_t rank;
    TK_TRY(take(r, "a number of axes", &rank, sizeof rank));
    if (rank > TK_AXES_MAX)
        return tk_fail(TK_SHAPE_ERROR,
                       "%.300s: tensor \"%.160s\" has %u axes, at most %d are supported", r->file,
                       t->name, rank, TK_AXES_MAX);
    t->shape.count = (int64_t)rank;
    for (uint32_t i = 0; i < rank; i++) { /* the last axis comes first */
        uint64_t length;
        TK_TRY(take(r, "a length", &length, sizeof length));
        if (length > INT64_MAX)
            return tk_fail(TK_FORMAT_ERROR, "%.300s: tensor \"%.160s\" has an axis of length %llu",
                           r->file, t->name, (unsigned long long)length);
        t->shape.items[rank - 1 - i] = (int64_t)length;
    }
    return TK_OK;
}

static tk_status read_tensor(reader *r, tensor *t) {
    TK_TRY(take_name(r, "a tensor's name", &t->name));
    TK_TRY(read_shape(r, t));
    TK_TRY(take(r, "a tensor's type", &t->type, sizeof t->type));
    TK_TRY(take(r, "a tensor's offset", &t->offset, sizeof t->offset));
    return size_of(r, t);
}

/* The smallest tensor: a length, a character, number of axes, type, offset. */
#define LEAST_TENSOR 25

static tk_status read_tensors(reader *r, uint64_t count) {
    if (count > left(r) / LEAST_TENSOR) return cut_off(r, "the tensors' description", count);
    for (uint64_t i = 0; i < count; i++) {
        tensor t = {0};
        tk_status status = read_tensor(r, &t);
        if (status == TK_OK && !tk_vec_push(&r->tensors, t)) status = tk_io_no_memory(r->file);
        if (status == TK_OK) continue;
        tk_free(t.name);
        return status;
    }
    return TK_OK;
}

static int compare_offsets(const void *a, const void *b) {
    const tensor *one = *(const tensor *const *)a, *other = *(const tensor *const *)b;
    if (one->offset != other->offset) return one->offset < other->offset ? -1 : 1;
    return one->bytes < other->bytes ? -1 : one->bytes > other->bytes;
}

static tk_status check_place(const reader *r, const tensor *t, uint64_t free_from, size_t data) {
    if (t->offset % r->alignment)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.300s: tensor \"%.160s\" begins at byte %llu of the data, a multiple of "
                       "%llu is expected",
                       r->file, t->name, (unsigned long long)t->offset,
                       (unsigned long long)r->alignment);
    if (t->offset > data || t->bytes > data - t->offset)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.300s: tensor \"%.160s\" needs %zu bytes at byte %llu of the data, the "
                       "file has %zu",
                       r->file, t->name, t->bytes, (unsigned long long)t->offset, data);
    if (t->bytes && t->offset < free_from)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.300s: tensor \"%.160s\" begins at byte %llu of the data, where another "
                       "ends at %llu",
                       r->file, t->name, (unsigned long long)t->offset,
                       (unsigned long long)free_from);
    return TK_OK;
}

static tk_status check_places(const reader *r, size_t data) {
    size_t count = r->tensors.count;
    const tensor **sorted = tk_calloc(count + 1, sizeof *sorted);
    char **names = tk_calloc(count + 1, sizeof *names);
    tk_status status = sorted && names ? TK_OK : tk_io_no_memory(r->file);
    uint64_t free_from = 0;
    for (size_t i = 0; status == TK_OK && i < count; i++) {
        sorted[i] = &r->tensors.items[i];
        names[i] = sorted[i]->name;
    }
    if (status == TK_OK) status = check_distinct(r, "tensor", names, count);
    if (status == TK_OK && count) qsort(sorted, count, sizeof *sorted, compare_offsets);
    for (size_t i = 0; status == TK_OK && i < count; i++) {
        status = check_place(r, sorted[i], free_from, data);
        if (sorted[i]->bytes) free_from = sorted[i]->offset + sorted[i]->bytes;
    }
    tk_free(sorted);
    tk_free(names);
    return status;
}

/* ---- arrays ---- */

static tk_status place_part(const reader *r, const char *name, void *data, tk_dtype dtype,
                            tk_shape shape, size_t bytes, tk_tree *tree) {
    tk_mapping *mapping;
    TK_TRY(tk_mapping_adopt(r->file, data, bytes, &mapping));
    tk_placement placement = {.dtype = dtype, .shape = shape};
    tk_status status = tk_place_in_tree(r->context, r->file, name, mapping, &placement, tree);
    tk_mapping_release(mapping);
    return status;
}

/* "x.weight" -> "x.scales" */
static tk_status place_beside(const reader *r, const tensor *t, const char *suffix, void *data,
                              size_t n_blocks, tk_tree *tree) {
    static const char weight[] = ".weight";
    tk_shape shape = t->shape;
    size_t length = strlen(t->name), end = sizeof weight - 1;
    if (length > end && !strcmp(t->name + length - end, weight)) length -= end;
    char *name = tk_malloc(length + strlen(suffix) + 1);
    if (!name) {
        tk_free(data);
        return tk_io_no_memory(r->file);
    }
    memcpy(name, t->name, length);
    memcpy(name + length, suffix, strlen(suffix) + 1);
    shape.items[shape.count - 1] /= TK_GGUF_BLOCK;
    tk_status status = place_part(r, name, data, TK_FLOAT16, shape, n_blocks * 2, tree);
    tk_free(name);
    return status;
}

static tk_status place_blocks(const reader *r, const tensor *t, const unsigned char *blocks,
                              tk_tree *tree) {
    size_t n_blocks = t->bytes / tk_gguf_block_bytes(t->type);
    size_t code_bytes = n_blocks * (size_t)(TK_GGUF_BLOCK * tk_gguf_block_bits(t->type) / 8);
    unsigned char *codes = tk_malloc(code_bytes + 1);
    uint16_t *scales = tk_malloc(n_blocks * 2 + 1), *biases = tk_malloc(n_blocks * 2 + 1);
    if (!codes || !scales || !biases) {
        tk_free(codes);
        tk_free(scales);
        tk_free(biases);
        return tk_io_no_memory(r->file);
    }
    tk_gguf_unpack(t->type, blocks, n_blocks, codes, scales, biases);
    tk_shape shape = t->shape;
    shape.items[shape.count - 1] =
        shape.items[shape.count - 1] / TK_GGUF_BLOCK * tk_gguf_block_bits(t->type);
    tk_status status = place_part(r, t->name, codes, TK_UINT32, shape, code_bytes, tree);
    if (status == TK_OK)
        status = place_beside(r, t, ".scales", scales, n_blocks, tree);
    else
        tk_free(scales);
    if (status == TK_OK) return place_beside(r, t, ".biases", biases, n_blocks, tree);
    tk_free(biases);
    return status;
}

static tk_status place_all(const reader *r, tk_mapping *mapping, size_t data_at, tk_tree *tree) {
    size_t expected = 0;
    for (size_t i = 0; i < r->tensors.count; i++) {
        const tensor *t = &r->tensors.items[i];
        tk_placement placement = {.shape = t->shape, .offset = data_at + (size_t)t->offset};
        bool whole = tk_gguf_tensor_dtype(t->type, &placement.dtype);
        TK_TRY(whole ? tk_place_in_tree(r->context, r->file, t->name, mapping, &placement, tree)
                     : place_blocks(r, t, r->bytes + placement.offset, tree));
        expected += whole ? 1 : 3;
        if (tk_tree_count(tree) != expected)
            return tk_fail(TK_FORMAT_ERROR,
                           "%.300s: tensor \"%.160s\", or its scales or biases, have the name of "
                           "another array",
                           r->file, t->name);
    }
    return TK_OK;
}

/* ---- whole files ---- */

static tk_status read_head(reader *r, uint64_t *out_tensors, uint64_t *out_values) {
    char magic[4];
    uint32_t version;
    TK_TRY(take(r, "the magic number", magic, sizeof magic));
    if (memcmp(magic, "GGUF", 4) != 0)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.300s: a GGUF file begins with \"GGUF\", this with bytes %02x %02x %02x "
                       "%02x",
                       r->file, (unsigned char)magic[0], (unsigned char)magic[1],
                       (unsigned char)magic[2], (unsigned char)magic[3]);
    TK_TRY(take(r, "the version", &version, sizeof version));
    if (version != 2 && version != 3)
        return tk_fail(TK_FORMAT_ERROR, "%.300s: version %u, expected 2 or 3%s", r->file, version,
                       version & 0xffffu ? "" : ": the file is big-endian");
    TK_TRY(take(r, "the number of tensors", out_tensors, sizeof *out_tensors));
    return take(r, "the number of values", out_values, sizeof *out_values);
}

static tk_status read_all(reader *r, tk_mapping *mapping, tk_tree *tree) {
    uint64_t n_tensors, n_values;
    TK_TRY(read_head(r, &n_tensors, &n_values));
    TK_TRY(read_values(r, n_values));
    TK_TRY(read_alignment(r));
    TK_TRY(read_tensors(r, n_tensors));
    size_t gap = (size_t)((r->alignment - r->at % r->alignment) % r->alignment);
    size_t data_at = gap > left(r) ? r->n_bytes : r->at + gap;
    TK_TRY(check_places(r, r->n_bytes - data_at));
    return place_all(r, mapping, data_at, tree);
}

static tk_status copy_value(tk_gguf_values *to, const tk_gguf_values *from, size_t i) {
    const char *key = tk_gguf_key(from, i);
    size_t bytes;
    if (tk_gguf_kind_of(from, i) == TK_GGUF_ARRAY)
        return tk_gguf_set_array(to, key, tk_gguf_array(from, i));
    const char *text = tk_gguf_text(from, i, 0, &bytes);
    if (tk_gguf_kind_of(from, i) == TK_GGUF_TEXT) return tk_gguf_set_text(to, key, text, bytes);
    TK_TRY(tk_gguf_set_texts(to, key));
    for (size_t k = 0; k < tk_gguf_n_texts(from, i); k++) {
        text = tk_gguf_text(from, i, k, &bytes);
        TK_TRY(tk_gguf_add_text(to, key, text, bytes));
    }
    return TK_OK;
}

static void reader_deinit(reader *r) {
    for (size_t i = 0; i < r->tensors.count; i++) tk_free(r->tensors.items[i].name);
    for (size_t i = 0; i < r->keys.count; i++) tk_free(r->keys.items[i]);
    tk_vec_deinit(&r->tensors);
    tk_vec_deinit(&r->keys);
    tk_gguf_values_free(r->values);
}

static tk_status read_mapping(tk_context *context, const char *name, tk_mapping *mapping,
                              tk_tree *tree, tk_gguf_values *values) {
    reader r = {.context = context,
                .file = name,
                .bytes = mapping->data,
                .n_bytes = mapping->bytes,
                .values = tk_gguf_values_new()};
    tk_tree *loaded = tk_tree_new();
    tk_status status = r.values && loaded ? TK_OK : tk_io_no_memory(name);
    if (status == TK_OK) status = read_all(&r, mapping, loaded);
    if (status == TK_OK) status = tk_tree_merge(tree, loaded);
    for (size_t i = 0; values && status == TK_OK && i < tk_gguf_count(r.values); i++)
        status = copy_value(values, r.values, i);
    tk_tree_free(loaded);
    reader_deinit(&r);
    return status;
}

tk_status tk_gguf_load(tk_context *context, const char *path, tk_tree *tree,
                       tk_gguf_values *values) {
    TK_NEED(context, path, tree);
    tk_mapping *mapping;
    TK_TRY(tk_mapping_open(path, &mapping));
    tk_status status = read_mapping(context, path, mapping, tree, values);
    tk_mapping_release(mapping);
    return status;
}

tk_status tk_gguf_parse(tk_context *context, const char *name, const void *data, size_t bytes,
                        tk_tree *tree, tk_gguf_values *values) {
    TK_NEED(context, tree);
    if (bytes) TK_NEED(data);
    tk_mapping *mapping;
    if (!name) name = "memory";
    TK_TRY(tk_mapping_copy(name, data, bytes, &mapping));
    tk_status status = read_mapping(context, name, mapping, tree, values);
    tk_mapping_release(mapping);
    return status;
}
