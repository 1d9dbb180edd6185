/* Writing GGUF, version 3: the header in memory, then the arrays one by one, each padded to the
 * alignment. Quantised arrays are found by their names and shapes and written as blocks, so that a
 * file that was read can be written again. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "io/gguf.h"

typedef struct item {
    const char *name;
    tk_array array;
    bool is_part; /* scales or biases that go into a block */
    uint32_t type;
    tk_shape shape;
    tk_array scales, biases; /* of blocks */
    uint64_t offset;
    size_t bytes;
} item;

typedef struct output {
    const tk_tree *tree;
    uint64_t alignment;
    item *items; /* one an array of the tree */
    size_t count;
    tk_strbuf head;
} output;

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory for a GGUF file"); }

/* ---- quantised arrays ---- */

/* "x.weight" and ".scales" -> position of "x.scales"; the count where there is none. */
static size_t find_beside(const tk_tree *tree, const char *name, const char *suffix) {
    static const char weight[] = ".weight";
    size_t length = strlen(name), end = sizeof weight - 1, found = tk_tree_count(tree);
    if (length > end && !strcmp(name + length - end, weight)) length -= end;
    size_t bytes = length + strlen(suffix) + 1;
    char *other = tk_malloc(bytes);
    if (!other) return found;
    snprintf(other, bytes, "%.*s%s", (int)length, name, suffix);
    found = tk_tree_find(tree, other);
    tk_free(other);
    return found;
}

/* Whether scales or biases belong to codes in groups of 32: float16, one a group. */
static bool fits(tk_array codes, tk_array part, int *out_bits) {
    int rank = tk_array_rank(codes);
    if (rank == 0 || tk_array_rank(part) != rank || tk_array_dtype(part) != TK_FLOAT16)
        return false;
    for (int i = 0; i + 1 < rank; i++)
        if (tk_array_dim(codes, i) != tk_array_dim(part, i)) return false;
    int64_t words = tk_array_dim(codes, rank - 1), groups = tk_array_dim(part, rank - 1);
    *out_bits = groups && words % groups == 0 ? (int)(words / groups) : 0;
    return *out_bits == 4 || *out_bits == 8;
}

static tk_status find_blocks(output *o, item *it) {
    size_t count = tk_tree_count(o->tree);
    size_t scales = find_beside(o->tree, it->name, ".scales");
    size_t biases = find_beside(o->tree, it->name, ".biases");
    int bits = 0, same = 0;
    bool ok = scales < count && biases < count &&
              fits(it->array, tk_tree_at(o->tree, scales), &bits) &&
              fits(it->array, tk_tree_at(o->tree, biases), &same) && bits == same;
    if (!ok)
        return tk_fail(TK_DTYPE_ERROR,
                       "array \"%.200s\" is uint32, which GGUF has only with float16 scales and "
                       "biases of groups of 32 elements of 4 or 8 bits",
                       it->name);
    it->scales = tk_tree_at(o->tree, scales);
    it->biases = tk_tree_at(o->tree, biases);
    o->items[scales].is_part = o->items[biases].is_part = true;
    it->type = bits == 8 ? TK_GGUF_TENSOR_Q8_0 : TK_GGUF_TENSOR_Q4_0; /* or q4_1: see pack */
    it->shape = tk_array_shape(it->array);
    it->shape.items[it->shape.count - 1] *= 32 / bits;
    return TK_OK;
}

typedef struct row_major {
    const void *data;
    size_t bytes;
    void *copy;
} row_major;

static tk_status bytes_of(tk_array array, row_major *out) {
    return tk_array_bytes(array, &out->data, &out->bytes, &out->copy);
}

/* The blocks on the heap. q4_0 where the biases are its own, else q4_1. */
static tk_status pack(item *it, unsigned char **out) {
    row_major codes = {0}, scales = {0}, biases = {0};
    *out = NULL;
    tk_status status = bytes_of(it->array, &codes);
    if (status == TK_OK) status = bytes_of(it->scales, &scales);
    if (status == TK_OK) status = bytes_of(it->biases, &biases);
    size_t n_blocks = scales.bytes / 2;
    if (status == TK_OK && !(*out = tk_malloc(n_blocks * 36 + 1))) status = no_memory();
    if (status == TK_OK &&
        !tk_gguf_pack(it->type, codes.data, scales.data, biases.data, n_blocks, *out)) {
        if (it->type == TK_GGUF_TENSOR_Q8_0)
            status = tk_fail(TK_UNSUPPORTED,
                             "array \"%.200s\" has 8 bits and biases that are not -128 times the "
                             "scales, as q8_0 needs",
                             it->name);
        it->type = TK_GGUF_TENSOR_Q4_1;
        if (status == TK_OK)
            tk_gguf_pack(it->type, codes.data, scales.data, biases.data, n_blocks, *out);
    }
    it->bytes = n_blocks * tk_gguf_block_bytes(it->type);
    tk_free(codes.copy);
    tk_free(scales.copy);
    tk_free(biases.copy);
    if (status == TK_OK) return TK_OK;
    tk_free(*out);
    *out = NULL;
    return status;
}

/* ---- layout ---- */

static tk_status describe(output *o, item *it) {
    tk_dtype dtype = tk_array_dtype(it->array);
    TK_TRY(tk_array_status(it->array));
    if (dtype == TK_UINT32) {
        unsigned char *blocks;
        TK_TRY(find_blocks(o, it));
        TK_TRY(pack(it, &blocks)); /* for the type; packed again when it is written */
        tk_free(blocks);
        return TK_OK;
    }
    if (!tk_gguf_tensor_type(dtype, &it->type))
        return tk_fail(TK_DTYPE_ERROR, "array \"%.200s\" is %s, which GGUF does not have", it->name,
                       tk_dtype_name(dtype));
    it->shape = tk_array_shape(it->array);
    it->bytes = (size_t)tk_array_size(it->array) * tk_dtype_size(dtype);
    return TK_OK;
}

/* Blocks first, since they take up scales and biases. */
static tk_status lay_out(output *o) {
    uint64_t at = 0;
    for (int blocks = 1; blocks >= 0; blocks--)
        for (size_t i = 0; i < o->count; i++) {
            item *it = &o->items[i];
            if (!it->is_part && (tk_array_dtype(it->array) == TK_UINT32) == (blocks == 1))
                TK_TRY(describe(o, it));
        }
    for (size_t i = 0; i < o->count; i++) {
        if (o->items[i].is_part) continue;
        o->items[i].offset = at;
        at += o->items[i].bytes;
        at = (at + o->alignment - 1) / o->alignment * o->alignment;
    }
    return TK_OK;
}

static tk_status find_alignment(output *o, const tk_gguf_values *values) {
    size_t at = tk_gguf_find(values, TK_GGUF_ALIGNMENT_KEY);
    int64_t alignment = TK_GGUF_ALIGNMENT;
    if (at < tk_gguf_count(values)) {
        tk_array array = tk_gguf_array(values, at);
        alignment = 0;
        if (array.node && tk_array_rank(array) == 0 && tk_array_dtype(array) == TK_UINT32)
            TK_TRY(tk_item_int(array, &alignment));
    }
    if (alignment <= 0 || (alignment & (alignment - 1)))
        return tk_fail(TK_INVALID_ARGUMENT,
                       TK_GGUF_ALIGNMENT_KEY " must be a uint32 that is a power of two");
    o->alignment = (uint64_t)alignment;
    return TK_OK;
}

/* ---- the header ---- */

static void put(output *o, const void *data, size_t bytes) {
    if (bytes) tk_strbuf_put(&o->head, data, bytes);
}
static void put_u32(output *o, uint32_t value) { put(o, &value, sizeof value); }
static void put_u64(output *o, uint64_t value) { put(o, &value, sizeof value); }
static void put_string(output *o, const char *text, size_t bytes) {
    put_u64(o, bytes);
    put(o, text, bytes);
}

static tk_status put_numbers(output *o, tk_array array) {
    row_major values = {0};
    uint32_t type = 0;
    tk_gguf_value_type(tk_array_dtype(array), &type);
    if (tk_array_rank(array)) put_u32(o, TK_GGUF_TYPE_ARRAY);
    put_u32(o, type);
    if (tk_array_rank(array)) put_u64(o, (uint64_t)tk_array_size(array));
    TK_TRY(bytes_of(array, &values));
    put(o, values.data, values.bytes);
    tk_free(values.copy);
    return TK_OK;
}

static tk_status put_value(output *o, const tk_gguf_values *values, size_t i) {
    const char *key = tk_gguf_key(values, i);
    size_t bytes, count = tk_gguf_n_texts(values, i);
    put_string(o, key, strlen(key));
    if (tk_gguf_kind_of(values, i) == TK_GGUF_ARRAY)
        return put_numbers(o, tk_gguf_array(values, i));
    if (tk_gguf_kind_of(values, i) == TK_GGUF_TEXTS) {
        put_u32(o, TK_GGUF_TYPE_ARRAY);
        put_u32(o, TK_GGUF_TYPE_STRING);
        put_u64(o, count);
    } else {
        put_u32(o, TK_GGUF_TYPE_STRING);
    }
    for (size_t k = 0; k < count; k++) {
        const char *text = tk_gguf_text(values, i, k, &bytes);
        put_string(o, text, bytes);
    }
    return TK_OK;
}

static void put_tensor(output *o, const item *it) {
    put_string(o, it->name, strlen(it->name));
    put_u32(o, (uint32_t)it->shape.count);
    for (int64_t i = it->shape.count; i-- > 0;) put_u64(o, (uint64_t)it->shape.items[i]);
    put_u32(o, it->type);
    put_u64(o, it->offset);
}

static tk_status put_head(output *o, const tk_gguf_values *values) {
    uint64_t n_tensors = 0;
    for (size_t i = 0; i < o->count; i++) n_tensors += !o->items[i].is_part;
    put(o, "GGUF\3\0\0\0", 8);
    put_u64(o, n_tensors);
    put_u64(o, tk_gguf_count(values));
    for (size_t i = 0; i < tk_gguf_count(values); i++) TK_TRY(put_value(o, values, i));
    for (size_t i = 0; i < o->count; i++)
        if (!o->items[i].is_part) put_tensor(o, &o->items[i]);
    while (o->head.length % o->alignment && !o->head.failed) tk_strbuf_putc(&o->head, 0);
    return o->head.failed ? no_memory() : TK_OK;
}

/* ---- the file ---- */

static tk_status write_zeros(tk_writer *writer, uint64_t count) {
    static const char zeros[512];
    for (; count > sizeof zeros; count -= sizeof zeros)
        TK_TRY(tk_writer_put(writer, zeros, sizeof zeros));
    return count ? tk_writer_put(writer, zeros, (size_t)count) : TK_OK;
}

static tk_status write_item(const output *o, tk_writer *writer, item *it) {
    row_major values = {0};
    unsigned char *blocks = NULL;
    tk_status status = it->scales.node ? pack(it, &blocks) : bytes_of(it->array, &values);
    const void *data = blocks ? blocks : values.data;
    if (status == TK_OK && it->bytes) status = tk_writer_put(writer, data, it->bytes);
    tk_free(blocks);
    tk_free(values.copy);
    if (status != TK_OK) return status;
    return write_zeros(writer, (o->alignment - it->bytes % o->alignment) % o->alignment);
}

static tk_status write_file(const output *o, const char *path) {
    tk_writer writer;
    TK_TRY(tk_writer_open(&writer, path));
    tk_status status = tk_writer_put(&writer, o->head.text, o->head.length);
    for (size_t i = 0; status == TK_OK && i < o->count; i++)
        if (!o->items[i].is_part) status = write_item(o, &writer, &o->items[i]);
    return tk_writer_close(&writer, status);
}

tk_status tk_gguf_save(const char *path, const tk_tree *tree, const tk_gguf_values *values) {
    TK_NEED(path, tree);
    output o = {.tree = tree, .count = tk_tree_count(tree)};
    o.items = tk_calloc(o.count + 1, sizeof *o.items);
    tk_status status = o.items ? tk_tree_eval(tree) : no_memory();
    for (size_t i = 0; status == TK_OK && i < o.count; i++) {
        o.items[i].name = tk_tree_name(tree, i);
        o.items[i].array = tk_tree_at(tree, i);
    }
    if (status == TK_OK) status = find_alignment(&o, values);
    if (status == TK_OK) status = lay_out(&o);
    if (status == TK_OK) status = put_head(&o, values);
    if (status == TK_OK) status = write_file(&o, path);
    tk_strbuf_deinit(&o.head);
    tk_free(o.items);
    return status;
}
