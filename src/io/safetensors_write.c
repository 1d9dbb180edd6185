/* Writing safetensors, whole or in shards.
 *
 * The format wants the data without gaps, so padding cannot align it. Data in order of falling
 * element size is aligned by itself; the header is free to keep the tree's order. */
#define _POSIX_C_SOURCE 200809L /* lstat */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "io/load.h"
#include "io/safetensors.h"

/* A run of a tree's arrays that go into one file. */
typedef struct part {
    const tk_tree *tree;
    size_t begin, end; /* positions in the tree */
} part;

static size_t array_bytes(tk_array array) {
    return (size_t)tk_array_size(array) * tk_dtype_size(tk_array_dtype(array));
}

/* ---- the header ---- */

static int put_text(const char *text, size_t length, void *buffer) {
    tk_strbuf_put(buffer, text, length);
    return ((tk_strbuf *)buffer)->failed ? -1 : 0;
}

/* A JSON string. */
static tk_status put_string(tk_strbuf *out, const char *text) {
    json_t *string = json_string(text);
    if (!string) {
        json_t *probe = json_string("");
        json_decref(probe);
        return probe ? tk_fail(TK_INVALID_ARGUMENT, "\"%.200s\" is not UTF-8", text)
                     : tk_fail(TK_OUT_OF_MEMORY, "no memory for the name \"%.200s\"", text);
    }
    json_dump_callback(string, put_text, out, JSON_ENCODE_ANY);
    json_decref(string);
    return TK_OK;
}

static const char *dtype_name(tk_dtype dtype) {
    switch (dtype) {
#define DTYPE_NAME(id, name, text, size, kind, safetensors, npy)                                   \
    case id:                                                                                       \
        return safetensors;
        TK_DTYPES(DTYPE_NAME)
#undef DTYPE_NAME
    default:
        return "?";
    }
}

static tk_status put_tensor(tk_strbuf *out, const char *name, tk_array array, size_t begin) {
    tk_shape shape = tk_array_shape(array);
    TK_TRY(put_string(out, name));
    tk_strbuf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(tk_array_dtype(array)));
    for (int64_t i = 0; i < shape.count; i++)
        tk_strbuf_printf(out, i ? ",%" PRId64 : "%" PRId64, shape.items[i]);
    tk_strbuf_printf(out, "],\"data_offsets\":[%zu,%zu]}", begin, begin + array_bytes(array));
    return TK_OK;
}

static tk_status put_metadata(tk_strbuf *out, const tk_metadata *metadata) {
    tk_strbuf_puts(out, "\"__metadata__\":{");
    for (size_t i = 0; i < tk_metadata_count(metadata); i++) {
        if (i) tk_strbuf_putc(out, ',');
        TK_TRY(put_string(out, tk_metadata_key(metadata, i)));
        tk_strbuf_putc(out, ':');
        TK_TRY(put_string(out, tk_metadata_value(metadata, i)));
    }
    tk_strbuf_putc(out, '}');
    return TK_OK;
}

/* Where the data of each element size begins: 8 first, 1 last. Index: log2 of the size. */
static void region_begins(const part *p, size_t begins[4]) {
    size_t totals[4] = {0};
    for (size_t i = p->begin; i < p->end; i++) {
        tk_array array = tk_tree_at(p->tree, i);
        totals[__builtin_ctzl(tk_dtype_size(tk_array_dtype(array)))] += array_bytes(array);
    }
    begins[3] = 0;
    for (int power = 2; power >= 0; power--) begins[power] = begins[power + 1] + totals[power + 1];
}

static tk_status put_header(tk_strbuf *out, const part *p, const tk_metadata *metadata) {
    size_t begins[4];
    region_begins(p, begins);
    tk_strbuf_put(out, "\0\0\0\0\0\0\0\0{", 9);
    if (metadata && tk_metadata_count(metadata)) {
        TK_TRY(put_metadata(out, metadata));
        if (p->end > p->begin) tk_strbuf_putc(out, ',');
    }
    for (size_t i = p->begin; i < p->end; i++) {
        tk_array array = tk_tree_at(p->tree, i);
        size_t *begin = &begins[__builtin_ctzl(tk_dtype_size(tk_array_dtype(array)))];
        if (i > p->begin) tk_strbuf_putc(out, ',');
        TK_TRY(put_tensor(out, tk_tree_name(p->tree, i), array, *begin));
        *begin += array_bytes(array);
    }
    tk_strbuf_putc(out, '}');
    while (out->length % 8 && !out->failed) tk_strbuf_putc(out, ' ');
    return out->failed ? tk_fail(TK_OUT_OF_MEMORY, "no memory for the header") : TK_OK;
}

static tk_status write_header(tk_writer *writer, const part *p, const tk_metadata *metadata) {
    tk_strbuf header = {0};
    tk_status status = put_header(&header, p, metadata);
    uint64_t length = header.length - 8;
    if (status == TK_OK && length > TK_SAFETENSORS_HEADER_MAX)
        status = tk_fail(TK_OVERFLOW,
                         "%zu arrays need a header of %" PRIu64 " bytes, at most %d are allowed",
                         p->end - p->begin, length, TK_SAFETENSORS_HEADER_MAX);
    if (status == TK_OK) {
        memcpy(header.text, &length, sizeof length);
        status = tk_writer_put(writer, header.text, header.length);
    }
    tk_strbuf_deinit(&header);
    return status;
}

/* ---- the data ---- */

static tk_status write_array(tk_writer *writer, tk_array array) {
    const void *data;
    void *copy;
    size_t bytes;
    TK_TRY(tk_array_bytes(array, &data, &bytes, &copy));
    tk_status status = bytes ? tk_writer_put(writer, data, bytes) : TK_OK;
    tk_free(copy);
    return status;
}

static tk_status write_data(tk_writer *writer, const part *p) {
    for (size_t size = 8; size; size /= 2)
        for (size_t i = p->begin; i < p->end; i++) {
            tk_array array = tk_tree_at(p->tree, i);
            if (tk_dtype_size(tk_array_dtype(array)) != size) continue;
            TK_TRY(write_array(writer, array));
        }
    return TK_OK;
}

static tk_status write_part(const char *path, const part *p, const tk_metadata *metadata) {
    tk_writer writer;
    TK_TRY(tk_writer_open(&writer, path));
    tk_status status = write_header(&writer, p, metadata);
    if (status == TK_OK) status = write_data(&writer, p);
    if (status != TK_OK && status != TK_IO_ERROR) tk_fail_within(status, "%.300s", path);
    return tk_writer_close(&writer, status);
}

static tk_status check_tree(const char *function, const tk_tree *tree) {
    if (tk_tree_find(tree, "__metadata__") < tk_tree_count(tree))
        return tk_fail(TK_INVALID_ARGUMENT,
                       "%s: an array is named \"__metadata__\", which the format keeps for itself",
                       function);
    return tk_tree_eval(tree);
}

tk_status tk_safetensors_save(const char *path, const tk_tree *tree, const tk_metadata *metadata) {
    TK_NEED(path, tree);
    TK_TRY(check_tree("tk_safetensors_save", tree));
    part all = {tree, 0, tk_tree_count(tree)};
    return write_part(path, &all, metadata);
}

/* ---- shards ---- */

typedef struct shards {
    const char *folder;
    const tk_tree *tree;
    const tk_metadata *metadata;
    TK_VEC(size_t) ends; /* position after the last array of each */
} shards;

static tk_status plan_shards(shards *s, size_t shard_bytes) {
    size_t bytes = 0, count = tk_tree_count(s->tree);
    for (size_t i = 0; i < count; i++) {
        size_t more = array_bytes(tk_tree_at(s->tree, i));
        if (bytes && more > shard_bytes - (bytes < shard_bytes ? bytes : shard_bytes)) {
            if (!tk_vec_push(&s->ends, i)) return tk_io_no_memory(s->folder);
            bytes = 0;
        }
        bytes += more;
    }
    return tk_vec_push(&s->ends, count) ? TK_OK : tk_io_no_memory(s->folder);
}

static void shard_name(const shards *s, size_t index, char name[64]) {
    snprintf(name, 64, "model-%05zu-of-%05zu.safetensors", index + 1, s->ends.count);
}

static tk_status write_shards(const shards *s) {
    part p = {s->tree, 0, 0};
    for (size_t i = 0; i < s->ends.count; i++, p.begin = p.end) {
        char name[64];
        p.end = s->ends.items[i];
        shard_name(s, i, name);
        char *path = tk_io_join(s->folder, name);
        tk_status status = path ? write_part(path, &p, s->metadata) : tk_io_no_memory(s->folder);
        tk_free(path);
        TK_TRY(status);
    }
    return TK_OK;
}

static tk_status put_index(tk_strbuf *out, const shards *s) {
    tk_strbuf_printf(out, "{\n  \"metadata\": {\n    \"total_size\": %" PRId64 "\n  },\n",
                     tk_tree_bytes(s->tree));
    tk_strbuf_puts(out, "  \"weight_map\": {");
    for (size_t i = 0, shard = 0; i < tk_tree_count(s->tree); i++) {
        char name[64];
        while (i >= s->ends.items[shard]) shard++;
        shard_name(s, shard, name);
        tk_strbuf_puts(out, i ? ",\n    " : "\n    ");
        TK_TRY(put_string(out, tk_tree_name(s->tree, i)));
        tk_strbuf_printf(out, ": \"%s\"", name);
    }
    tk_strbuf_puts(out, "\n  }\n}\n");
    return out->failed ? tk_io_no_memory(s->folder) : TK_OK;
}

/* Removes the file of the other form, so that a reader does not find two models. */
static tk_status remove_other(const char *folder, const char *name) {
    struct stat info;
    char *path = tk_io_join(folder, name);
    if (!path) return tk_io_no_memory(folder);
    tk_status status = lstat(path, &info) == 0 ? tk_io_remove(path) : TK_OK;
    tk_free(path);
    return status;
}

static tk_status save_one(const shards *s) {
    char *path = tk_io_join(s->folder, TK_SAFETENSORS_MODEL);
    part all = {s->tree, 0, tk_tree_count(s->tree)};
    tk_status status = path ? write_part(path, &all, s->metadata) : tk_io_no_memory(s->folder);
    tk_free(path);
    return status == TK_OK ? remove_other(s->folder, TK_SAFETENSORS_INDEX) : status;
}

static tk_status save_many(const shards *s) {
    TK_TRY(write_shards(s));
    tk_strbuf index = {0};
    char *path = tk_io_join(s->folder, TK_SAFETENSORS_INDEX);
    tk_status status = path ? put_index(&index, s) : tk_io_no_memory(s->folder);
    if (status == TK_OK) status = tk_file_write(path, index.text, index.length);
    tk_strbuf_deinit(&index);
    tk_free(path);
    return status == TK_OK ? remove_other(s->folder, TK_SAFETENSORS_MODEL) : status;
}

tk_status tk_safetensors_save_sharded(const char *folder, const tk_tree *tree,
                                      const tk_metadata *metadata, int64_t shard_bytes) {
    TK_NEED(folder, tree);
    if (shard_bytes < 1)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tk_safetensors_save_sharded: shard_bytes is %" PRId64
                       ", 1 or more expected",
                       shard_bytes);
    TK_TRY(check_tree("tk_safetensors_save_sharded", tree));
    shards s = {.folder = folder, .tree = tree, .metadata = metadata};
    tk_status status = plan_shards(&s, (size_t)shard_bytes);
    if (status == TK_OK) status = s.ends.count == 1 ? save_one(&s) : save_many(&s);
    tk_vec_deinit(&s.ends);
    return status;
}
