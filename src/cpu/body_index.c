/* Index arrays; see body_index.h. */
#include "cpu/body_index.h"

#include <assert.h>

#define INTEGERS(X)                                                                                \
    X(TK_UINT8, uint8_t)                                                                           \
    X(TK_UINT16, uint16_t)                                                                         \
    X(TK_UINT32, uint32_t)                                                                         \
    X(TK_UINT64, uint64_t)                                                                         \
    X(TK_INT8, int8_t)                                                                             \
    X(TK_INT16, int16_t)                                                                           \
    X(TK_INT32, int32_t)                                                                           \
    X(TK_INT64, int64_t)

void tk_index_run(tk_dtype dtype, const char *data, int64_t stride, int64_t count, int64_t *out) {
    switch (dtype) {
#define READ(dtype, type)                                                                          \
    case dtype:                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = (int64_t) * (const type *)(data + i * stride);                                \
        break;
        INTEGERS(READ)
    default:
        assert(false);
    }
}

tk_indices tk_indices_of(const tk_strided *a, const tk_strided *arrays, tk_list axes,
                         const int64_t *slice_sizes) {
    tk_indices indices = {.count = (int)axes.count, .positions = axes.count ? arrays[0].size : 1};
    for (int k = 0; k < indices.count; k++) {
        int64_t axis = axes.items[k];
        tk_loop loop = tk_loop_over(arrays[k].rank, arrays[k].shape);
        tk_loop_add(&loop, &arrays[k]);
        tk_loop_merge(&loop);
        indices.arrays[k].loop = loop;
        indices.arrays[k].dtype = arrays[k].dtype;
        indices.arrays[k].length = a->shape[axis];
        indices.arrays[k].most = a->shape[axis] - slice_sizes[axis];
        indices.arrays[k].stride = a->strides[axis] * (int64_t)tk_dtype_size(a->dtype);
    }
    return indices;
}

typedef struct reader {
    tk_dtype dtype;
    int64_t *out;
} reader;

static void read_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    reader *r = arg;
    tk_index_run(r->dtype, data[0], strides[0], count, r->out);
    r->out += count;
}

void tk_indices_read(const tk_indices *indices, int64_t begin, int64_t count, tk_fault *fault,
                     int64_t *offsets, bool *valid) {
    int64_t block[TK_INDEX_BLOCK];
    for (int64_t i = 0; i < count; i++) {
        offsets[i] = 0;
        valid[i] = true;
    }
    for (int k = 0; k < indices->count; k++) {
        reader r = {indices->arrays[k].dtype, block};
        tk_loop_range(&indices->arrays[k].loop, begin, begin + count, read_run, &r);
        for (int64_t i = 0; i < count; i++) {
            if (block[i] < 0 || block[i] > indices->arrays[k].most) {
                if (valid[i]) tk_fault_note(fault, begin + i, block[i], indices->arrays[k].length);
                valid[i] = false;
            } else {
                offsets[i] += block[i] * indices->arrays[k].stride;
            }
        }
    }
}
