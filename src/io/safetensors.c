/* Reading safetensors: 8 bytes of length, a JSON header, the data.
 *
 * The header is checked as a whole before any array is made: every tensor's bytes must be what its
 * dtype and shape need, and the tensors, by offset, must cover the data without gap or overlap.
 *
 * Format: github.com/huggingface/safetensors, "Format". Stricter than its library in two points: a
 * name given twice is refused, where the library keeps the last, and so is an empty name. */
#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "io/load.h"
#include "io/metadata.h"

typedef struct entry {
    const char *name; /* of the JSON */
    tk_placement placement;
    size_t begin, end; /* in the data */
} entry;

typedef struct reader {
    const char *file;
    const unsigned char *bytes;
    size_t n_bytes;
    size_t data_offset;
    json_t *header;
    TK_VEC(entry) entries; /* in the order of the header */
} reader;

/* ---- the header's text ---- */

static uint64_t read_length(const unsigned char *bytes) {
    uint64_t length;
    memcpy(&length, bytes, sizeof length);
    return length;
}

static tk_status parse_header(reader *r) {
    if (r->n_bytes < 8)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.400s: a safetensors file begins with 8 bytes of length, the file has %zu",
                       r->file, r->n_bytes);
    uint64_t length = read_length(r->bytes);
    if (length > TK_SAFETENSORS_HEADER_MAX)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.400s: a header of %llu bytes is announced, at most %d are allowed",
                       r->file, (unsigned long long)length, TK_SAFETENSORS_HEADER_MAX);
    if (length > r->n_bytes - 8)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.400s: a header of %llu bytes is announced, %zu bytes follow", r->file,
                       (unsigned long long)length, r->n_bytes - 8);
    r->data_offset = 8 + (size_t)length;
    const char *text = (const char *)r->bytes + 8;
    if (length == 0 || text[0] != '{')
        return tk_fail(TK_FORMAT_ERROR, "%.400s: the header must begin with '{', it %s", r->file,
                       length ? "does not" : "is empty");
    return tk_json_parse(r->file, text, (size_t)length, &r->header);
}

/* ---- one tensor ---- */

static tk_status wrong_field(const reader *r, const char *name, const char *field,
                             const char *expected, const json_t *found) {
    return tk_fail(TK_FORMAT_ERROR, "%.300s: tensor \"%.160s\": %s must be %s, found %s", r->file,
                   name, field, expected, tk_json_kind(found));
}

static bool find_dtype(const char *text, tk_dtype *out_dtype) {
    static const char *const names[TK_DTYPE_COUNT] = {
#define DTYPE_NAME(id, name, text, size, kind, safetensors, npy) [id] = safetensors,
        TK_DTYPES(DTYPE_NAME)
#undef DTYPE_NAME
    };
    for (int i = 0; i < TK_DTYPE_COUNT; i++)
        if (!strcmp(names[i], text)) {
            *out_dtype = (tk_dtype)i;
            return true;
        }
    return false;
}

static tk_status read_dtype(const reader *r, const json_t *tensor, entry *e) {
    const json_t *dtype = json_object_get(tensor, "dtype");
    if (!json_is_string(dtype)) return wrong_field(r, e->name, "dtype", "a string", dtype);
    if (find_dtype(json_string_value(dtype), &e->placement.dtype)) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR,
                   "%.300s: tensor \"%.160s\" has dtype \"%.40s\", which Tiki does not have",
                   r->file, e->name, json_string_value(dtype));
}

static tk_status read_shape(const reader *r, const json_t *tensor, entry *e) {
    const json_t *shape = json_object_get(tensor, "shape");
    if (!json_is_array(shape))
        return wrong_field(r, e->name, "shape", "an array of integers", shape);
    size_t rank = json_array_size(shape);
    if (rank > TK_AXES_MAX)
        return tk_fail(TK_SHAPE_ERROR,
                       "%.300s: tensor \"%.160s\" has %zu axes, at most %d are supported", r->file,
                       e->name, rank, TK_AXES_MAX);
    e->placement.shape.count = (int64_t)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *length = json_array_get(shape, i);
        if (!json_is_integer(length))
            return wrong_field(r, e->name, "shape", "an array of integers", length);
        e->placement.shape.items[i] = json_integer_value(length);
    }
    return TK_OK;
}

static tk_status read_offsets(const reader *r, const json_t *tensor, entry *e) {
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return wrong_field(r, e->name, "data_offsets", "two integers", offsets);
    json_int_t from = json_integer_value(begin), to = json_integer_value(end);
    size_t data_bytes = r->n_bytes - r->data_offset;
    if (from < 0 || to < from || (uint64_t)to > data_bytes)
        return tk_fail(TK_FORMAT_ERROR,
                       "%.300s: tensor \"%.160s\" has data_offsets [%lld, %lld], the file has %zu "
                       "bytes of data",
                       r->file, e->name, (long long)from, (long long)to, data_bytes);
    e->begin = (size_t)from;
    e->end = (size_t)to;
    e->placement.offset = r->data_offset + e->begin;
    return TK_OK;
}

static tk_status check_size(const reader *r, const entry *e) {
    char what[512];
    size_t bytes;
    snprintf(what, sizeof what, "%.300s: tensor \"%.160s\"", r->file, e->name);
    TK_TRY(tk_placement_bytes(what, &e->placement, &bytes));
    if (bytes == e->end - e->begin) return TK_OK;
    return tk_fail(TK_FORMAT_ERROR, "%s: dtype and shape need %zu bytes, data_offsets give %zu",
                   what, bytes, e->end - e->begin);
}

static tk_status read_tensor(reader *r, const char *name, const json_t *tensor) {
    entry e = {.name = name};
    if (!name[0]) return tk_fail(TK_FORMAT_ERROR, "%.400s: a tensor has an empty name", r->file);
    if (!json_is_object(tensor))
        return tk_fail(TK_FORMAT_ERROR, "%.300s: tensor \"%.160s\" must be an object, found %s",
                       r->file, name, tk_json_kind(tensor));
    TK_TRY(read_dtype(r, tensor, &e));
    TK_TRY(read_shape(r, tensor, &e));
    TK_TRY(read_offsets(r, tensor, &e));
    TK_TRY(check_size(r, &e));
    return tk_vec_push(&r->entries, e) ? TK_OK : tk_io_no_memory(r->file);
}

/* ---- all tensors ---- */

static tk_status read_tensors(reader *r) {
    const char *name;
    json_t *value;
    json_object_foreach(r->header, name, value) {
        if (strcmp(name, "__metadata__") != 0) TK_TRY(read_tensor(r, name, value));
    }
    return TK_OK;
}

static int compare_offsets(const void *left, const void *right) {
    const entry *a = *(const entry *const *)left, *b = *(const entry *const *)right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static tk_status check_cover(const reader *r, const entry *const *sorted) {
    size_t at = 0;
    for (size_t i = 0; i < r->entries.count; i++) {
        if (sorted[i]->begin != at)
            return tk_fail(TK_FORMAT_ERROR,
                           "%.300s: tensor \"%.160s\" begins at byte %zu of the data, %zu is "
                           "expected: %s",
                           r->file, sorted[i]->name, sorted[i]->begin, at,
                           sorted[i]->begin > at ? "a gap" : "an overlap");
        at = sorted[i]->end;
    }
    size_t data_bytes = r->n_bytes - r->data_offset;
    if (at == data_bytes) return TK_OK;
    return tk_fail(TK_FORMAT_ERROR, "%.400s: the tensors need %zu bytes of data, the file has %zu",
                   r->file, at, data_bytes);
}

static tk_status check_layout(const reader *r) {
    size_t count = r->entries.count;
    const entry **sorted = tk_calloc(count, sizeof *sorted);
    if (!sorted) return tk_io_no_memory(r->file);
    for (size_t i = 0; i < count; i++) sorted[i] = &r->entries.items[i];
    qsort(sorted, count, sizeof *sorted, compare_offsets);
    tk_status status = check_cover(r, sorted);
    tk_free(sorted);
    return status;
}

/* ---- metadata ---- */

static tk_status check_metadata(const reader *r) {
    const json_t *metadata = json_object_get(r->header, "__metadata__");
    const char *key;
    json_t *value;
    if (!metadata || json_is_null(metadata)) return TK_OK;
    if (!json_is_object(metadata))
        return tk_fail(TK_FORMAT_ERROR, "%.400s: __metadata__ must be an object, found %s", r->file,
                       tk_json_kind(metadata));
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) {
        if (!json_is_string(value))
            return tk_fail(TK_FORMAT_ERROR,
                           "%.300s: __metadata__ \"%.160s\" must be a string, found %s", r->file,
                           key, tk_json_kind(value));
    }
    return TK_OK;
}

static tk_status copy_metadata(const reader *r, tk_metadata *metadata) {
    bool fresh = tk_metadata_count(metadata) == 0;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(r->header, "__metadata__"), key, value) {
        const char *text = json_string_value(value);
        TK_TRY(fresh ? tk_metadata_append(metadata, key, text)
                     : tk_metadata_set(metadata, key, text));
    }
    return TK_OK;
}

/* ---- whole files ---- */

static tk_status read_header(reader *r, const char *name, const tk_mapping *mapping) {
    *r = (reader){.file = name, .bytes = mapping->data, .n_bytes = mapping->bytes};
    TK_TRY(parse_header(r));
    TK_TRY(check_metadata(r));
    TK_TRY(read_tensors(r));
    return check_layout(r);
}

static void reader_deinit(reader *r) {
    json_decref(r->header);
    tk_vec_deinit(&r->entries);
}

static tk_status place_all(tk_context *context, const reader *r, tk_mapping *mapping,
                           tk_tree *tree) {
    for (size_t i = 0; i < r->entries.count; i++) {
        const entry *e = &r->entries.items[i];
        TK_TRY(tk_place_in_tree(context, r->file, e->name, mapping, &e->placement, tree));
    }
    return TK_OK;
}

/* Through a tree of its own, so that a failure leaves the caller's as it was. */
static tk_status add_arrays(tk_context *context, const reader *r, tk_mapping *mapping,
                            tk_tree *tree, tk_metadata *metadata) {
    tk_tree *loaded = tk_tree_new();
    if (!loaded) return tk_io_no_memory(r->file);
    tk_status status = place_all(context, r, mapping, loaded);
    if (status == TK_OK && metadata) status = copy_metadata(r, metadata);
    if (status == TK_OK) status = tk_tree_merge(tree, loaded);
    tk_tree_free(loaded);
    return status;
}

tk_status tk_safetensors_read(tk_context *context, const char *name, tk_mapping *mapping,
                              tk_tree *tree, tk_metadata *metadata) {
    reader r;
    tk_status status = read_header(&r, name, mapping);
    if (status == TK_OK) status = add_arrays(context, &r, mapping, tree, metadata);
    reader_deinit(&r);
    return status;
}

tk_status tk_safetensors_check(const char *path) {
    reader r;
    tk_mapping *mapping;
    TK_TRY(tk_mapping_open(path, &mapping));
    tk_status status = read_header(&r, path, mapping);
    reader_deinit(&r);
    tk_mapping_release(mapping);
    return status;
}

tk_status tk_safetensors_parse(tk_context *context, const char *name, const void *data,
                               size_t bytes, tk_tree *tree, tk_metadata *metadata) {
    TK_NEED(context, tree);
    if (bytes) TK_NEED(data);
    tk_mapping *mapping;
    if (!name) name = "memory";
    TK_TRY(tk_mapping_copy(name, data, bytes, &mapping));
    tk_status status = tk_safetensors_read(context, name, mapping, tree, metadata);
    tk_mapping_release(mapping);
    return status;
}
