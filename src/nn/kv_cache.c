/* Keys and values of earlier positions; see tiki/nn.h. A layer's arrays have the full capacity from
 * the beginning, so that appending is a slice update, which the evaluator does in place once the
 * old handle is gone. */
#include <stdlib.h>

#include "nn/need.h"
#include "tiki/nn.h"

typedef struct pair {
    tk_array keys, values;
} pair;

struct tk_kv_cache {
    tk_context *context;
    int64_t layers, capacity, length;
    pair pairs[];
};

tk_status tk_kv_cache_create(tk_context *context, int64_t layers, int64_t capacity,
                             tk_kv_cache **out_cache) {
    NN_NEED(context);
    NN_NEED(out_cache);
    if (layers < 1 || layers > 1 << 20 || capacity < 1)
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "a cache of %lld layers and %lld positions, expected 1 or more",
                            (long long)layers, (long long)capacity);
    tk_kv_cache *cache = calloc(1, sizeof *cache + (size_t)layers * sizeof(pair));
    if (!cache)
        return tk_error_set(TK_OUT_OF_MEMORY, "no memory for a cache of %lld layers",
                            (long long)layers);
    cache->context = context;
    cache->layers = layers;
    cache->capacity = capacity;
    *out_cache = cache;
    return TK_OK;
}

void tk_kv_cache_free(tk_kv_cache *cache) {
    if (!cache) return;
    for (int64_t i = 0; i < cache->layers; i++) {
        tk_release(cache->pairs[i].keys);
        tk_release(cache->pairs[i].values);
    }
    free(cache);
}

int64_t tk_kv_cache_length(const tk_kv_cache *cache) { return cache ? cache->length : 0; }

tk_status tk_kv_cache_trim(tk_kv_cache *cache, int64_t length) {
    NN_NEED(cache);
    if (length < 0 || length > cache->length)
        return tk_error_set(TK_INVALID_ARGUMENT, "a cache of %lld positions cannot be cut to %lld",
                            (long long)cache->length, (long long)length);
    cache->length = length;
    return TK_OK;
}

/* Writes `fresh` behind the stored positions of *slot and gives the part that is filled. */
static tk_array append(const tk_kv_cache *cache, tk_array *slot, tk_array fresh) {
    tk_shape shape = tk_array_shape(fresh);
    int64_t length = cache->length, end = length + shape.items[2];
    tk_array old = *slot;
    if (!old.node) {
        tk_shape full = TK_SHAPE(shape.items[0], shape.items[1], cache->capacity, shape.items[3]);
        old = tk_keep(tk_zeros(cache->context, full, tk_array_dtype(fresh)));
    }
    tk_shape start = TK_AXES(0, 0, length, 0),
             stop = TK_AXES(shape.items[0], shape.items[1], end, shape.items[3]);
    *slot = tk_keep(tk_slice_update(old, fresh, start, stop, TK_ALL_AXES, TK_SET));
    tk_release(old);
    return tk_slice(*slot, TK_AXES(0, 0, 0, 0), stop, TK_ALL_AXES);
}

tk_status tk_kv_cache_append(tk_kv_cache *cache, int64_t layer, tk_array keys, tk_array values,
                             tk_array *out_keys, tk_array *out_values) {
    NN_NEED(cache);
    NN_NEED(out_keys);
    NN_NEED(out_values);
    if (layer < 0 || layer >= cache->layers)
        return tk_error_set(TK_INVALID_ARGUMENT, "layer %lld of a cache of %lld layers",
                            (long long)layer, (long long)cache->layers);
    if (tk_array_rank(keys) != 4 || tk_array_rank(values) != 4)
        return tk_error_set(TK_SHAPE_ERROR,
                            "keys have %d axes and values %d, expected [batch, heads, n, dim]",
                            tk_array_rank(keys), tk_array_rank(values));
    if (cache->length + tk_array_dim(keys, 2) > cache->capacity)
        return tk_error_set(TK_INVALID_ARGUMENT, "%lld positions after %lld exceed a cache of %lld",
                            (long long)tk_array_dim(keys, 2), (long long)cache->length,
                            (long long)cache->capacity);
    *out_keys = append(cache, &cache->pairs[layer].keys, keys);
    *out_values = append(cache, &cache->pairs[layer].values, values);
    tk_status status = tk_array_status(*out_keys);
    return status == TK_OK ? tk_array_status(*out_values) : status;
}

tk_status tk_kv_cache_advance(tk_kv_cache *cache, int64_t n) {
    NN_NEED(cache);
    if (n < 0 || cache->length + n > cache->capacity)
        return tk_error_set(TK_INVALID_ARGUMENT, "%lld positions after %lld exceed a cache of %lld",
                            (long long)n, (long long)cache->length, (long long)cache->capacity);
    cache->length += n;
    tk_status status = TK_OK;
    for (int64_t i = 0; status == TK_OK && i < cache->layers; i++) {
        tk_array both[] = {cache->pairs[i].keys, cache->pairs[i].values};
        if (both[0].node) status = tk_eval_all(both, 2);
    }
    return status;
}
