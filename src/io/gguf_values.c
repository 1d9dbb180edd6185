/* Typed metadata of GGUF files; see tiki/gguf.h. A list that is searched from the front: files have
 * some dozen keys, one of which may hold many texts. The reader checks its keys by itself. */
#include <string.h>

#include "base/error.h"
#include "io/gguf.h"

typedef struct text {
    char *bytes;
    size_t count;
} text;

typedef struct value {
    char *key;
    tk_gguf_kind kind;
    tk_array array;
    TK_VEC(text) texts;
} value;

struct tk_gguf_values {
    TK_VEC(value) items;
};

tk_gguf_values *tk_gguf_values_new(void) { return tk_calloc(1, sizeof(tk_gguf_values)); }

static void clear_value(value *v) {
    if (v->array.node) tk_release(v->array);
    for (size_t i = 0; i < v->texts.count; i++) tk_free(v->texts.items[i].bytes);
    tk_vec_deinit(&v->texts);
    *v = (value){.key = v->key};
}

void tk_gguf_values_free(tk_gguf_values *values) {
    if (!values) return;
    for (size_t i = 0; i < values->items.count; i++) {
        clear_value(&values->items.items[i]);
        tk_free(values->items.items[i].key);
    }
    tk_vec_deinit(&values->items);
    tk_free(values);
}

static tk_status no_memory(const char *key) {
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for the value of \"%.200s\"", key);
}

/* The value of a key, empty, added where it is missing. */
static tk_status fresh(tk_gguf_values *values, const char *key, value **out) {
    size_t at = tk_gguf_find(values, key);
    if (!*key) return tk_fail(TK_INVALID_ARGUMENT, "a key of metadata is empty");
    if (at < values->items.count) {
        clear_value(&values->items.items[at]);
    } else {
        value added = {.key = tk_strdup(key)};
        if (!added.key || !tk_vec_push(&values->items, added)) {
            tk_free(added.key);
            return no_memory(key);
        }
    }
    *out = &values->items.items[at];
    return TK_OK;
}

tk_status tk_gguf_set_array(tk_gguf_values *values, const char *key, tk_array array) {
    uint32_t type;
    value *v;
    TK_NEED(values, key);
    TK_TRY(tk_array_status(array));
    if (tk_array_rank(array) > 1)
        return tk_fail(TK_SHAPE_ERROR,
                       "metadata \"%.200s\" has %d axes, expected a scalar or vector", key,
                       tk_array_rank(array));
    if (!tk_gguf_value_type(tk_array_dtype(array), &type))
        return tk_fail(TK_DTYPE_ERROR, "metadata \"%.200s\" is %s, which GGUF does not have", key,
                       tk_dtype_name(tk_array_dtype(array)));
    TK_TRY(fresh(values, key, &v));
    v->kind = TK_GGUF_ARRAY;
    v->array = tk_keep(array);
    return TK_OK;
}

static tk_status add(value *v, const char *bytes, size_t count) {
    text added = {tk_malloc(count + 1), count};
    if (!added.bytes || !tk_vec_push(&v->texts, added)) {
        tk_free(added.bytes);
        return no_memory(v->key);
    }
    if (count) memcpy(added.bytes, bytes, count);
    added.bytes[count] = 0;
    return TK_OK;
}

tk_status tk_gguf_set_text(tk_gguf_values *values, const char *key, const char *bytes,
                           size_t count) {
    value *v;
    TK_NEED(values, key);
    if (count) TK_NEED(bytes);
    TK_TRY(fresh(values, key, &v));
    v->kind = TK_GGUF_TEXT;
    return add(v, bytes, count);
}

tk_status tk_gguf_set_texts(tk_gguf_values *values, const char *key) {
    value *v;
    TK_NEED(values, key);
    TK_TRY(fresh(values, key, &v));
    v->kind = TK_GGUF_TEXTS;
    return TK_OK;
}

tk_status tk_gguf_add_text(tk_gguf_values *values, const char *key, const char *bytes,
                           size_t count) {
    TK_NEED(values, key);
    if (count) TK_NEED(bytes);
    size_t at = tk_gguf_find(values, key);
    if (at == values->items.count || values->items.items[at].kind != TK_GGUF_TEXTS)
        return tk_fail(TK_NOT_FOUND, "metadata \"%.200s\" is no list of texts", key);
    return add(&values->items.items[at], bytes, count);
}

/* ---- reading ---- */

size_t tk_gguf_count(const tk_gguf_values *values) { return values ? values->items.count : 0; }

static const value *at(const tk_gguf_values *values, size_t index) {
    return index < tk_gguf_count(values) ? &values->items.items[index] : NULL;
}

const char *tk_gguf_key(const tk_gguf_values *values, size_t index) {
    const value *v = at(values, index);
    return v ? v->key : NULL;
}

tk_gguf_kind tk_gguf_kind_of(const tk_gguf_values *values, size_t index) {
    const value *v = at(values, index);
    return v ? v->kind : TK_GGUF_ARRAY;
}

tk_array tk_gguf_array(const tk_gguf_values *values, size_t index) {
    const value *v = at(values, index);
    return v ? v->array : TK_NO_ARRAY;
}

size_t tk_gguf_n_texts(const tk_gguf_values *values, size_t index) {
    const value *v = at(values, index);
    return v ? v->texts.count : 0;
}

const char *tk_gguf_text(const tk_gguf_values *values, size_t index, size_t which,
                         size_t *out_bytes) {
    const value *v = at(values, index);
    bool there = v && which < v->texts.count;
    if (out_bytes) *out_bytes = there ? v->texts.items[which].count : 0;
    return there ? v->texts.items[which].bytes : NULL;
}

size_t tk_gguf_find(const tk_gguf_values *values, const char *key) {
    size_t count = tk_gguf_count(values), i = 0;
    while (key && i < count && strcmp(values->items.items[i].key, key) != 0) i++;
    return key ? i : count;
}
