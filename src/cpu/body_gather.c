/* gather and gather_along: reads at indices. An index out of range is noted and reads as 0. */
#include <string.h>

#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_index.h"

#define GRAIN 16384

typedef struct gather {
    const tk_strided *a;
    tk_indices indices;
    tk_loop slice; /* operand 0: a slice of the output, operand 1: of a */
    int64_t slice_bytes;
    size_t element_bytes;
    bool dense; /* slices are dense in a */
    char *out;
    tk_fault *fault;
} gather;

static void copy_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    tk_copy_run(*(const size_t *)arg, data[0], strides[0], data[1], strides[1], count);
}

static void gather_slice(const gather *g, tk_loop *slice, char *out, char *from) {
    if (g->dense && g->slice_bytes == 4) {
        memcpy(out, from, 4);
    } else if (g->dense) {
        memcpy(out, from, (size_t)g->slice_bytes);
    } else {
        size_t bytes = g->element_bytes;
        slice->data[0] = out;
        slice->data[1] = from;
        tk_loop_range(slice, 0, slice->size, copy_run, &bytes);
    }
}

static void gather_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const gather *g = arg;
    tk_loop slice = g->slice;
    int64_t offsets[TK_INDEX_BLOCK];
    bool valid[TK_INDEX_BLOCK];
    for (int64_t at = begin; at < end; at += TK_INDEX_BLOCK) {
        int64_t count = end - at < TK_INDEX_BLOCK ? end - at : TK_INDEX_BLOCK;
        tk_indices_read(&g->indices, at, count, g->fault, offsets, valid);
        for (int64_t i = 0; i < count; i++) {
            char *out = g->out + (at + i) * g->slice_bytes;
            if (valid[i])
                gather_slice(g, &slice, out, (char *)g->a->data + offsets[i]);
            else
                memset(out, 0, (size_t)g->slice_bytes);
        }
    }
}

tk_status tk_body_gather(const tk_body_call *call) {
    const tk_attrs_gather *attrs = call->attrs;
    const tk_strided *a = &call->inputs[0], *out = &call->outputs[0];
    if (out->size == 0) return TK_OK;
    gather g = {.a = a,
                .indices =
                    tk_indices_of(a, call->inputs + 1, attrs->axes, attrs->slice_sizes.items),
                .slice = tk_loop_over(a->rank, attrs->slice_sizes.items),
                .element_bytes = tk_dtype_size(a->dtype),
                .out = out->data,
                .fault = call->fault};
    int64_t n_lead = out->rank - a->rank;
    tk_loop_add_raw(&g.slice, out->data, out->strides + n_lead, g.element_bytes);
    tk_loop_add(&g.slice, a);
    tk_loop_collapse(&g.slice);
    g.slice_bytes = g.slice.size * (int64_t)g.element_bytes;
    g.dense = g.slice.size == 1 ||
              (g.slice.rank == 1 && g.slice.strides[1][0] == (int64_t)g.element_bytes);
    tk_parallel_for(g.indices.positions, 1 + GRAIN / g.slice.size, gather_part, &g);
    return TK_OK;
}

/* ---- along an axis ---- */

typedef struct along {
    size_t element_bytes;
    tk_dtype index_dtype;
    int64_t length, stride; /* of a's axis; the stride in bytes */
    const char *out;
    tk_fault *fault;
} along;

static void along_block(const along *g, char *out, int64_t out_step, const int64_t *indices,
                        const char *a, int64_t a_step, int64_t count) {
    static const char zero[8] = {0};
    size_t bytes = g->element_bytes;
    for (int64_t i = 0; i < count; i++, out += out_step, a += a_step) {
        int64_t index = indices[i];
        bool valid = index >= 0 && index < g->length;
        if (!valid) tk_fault_note(g->fault, (out - g->out) / (int64_t)bytes, index, g->length);
        const char *from = valid ? a + index * g->stride : zero;
        if (bytes == 4)
            memcpy(out, from, 4);
        else
            memcpy(out, from, bytes);
    }
}

static void along_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    const along *g = arg;
    int64_t indices[TK_INDEX_BLOCK];
    for (int64_t at = 0; at < count; at += TK_INDEX_BLOCK) {
        int64_t part = count - at < TK_INDEX_BLOCK ? count - at : TK_INDEX_BLOCK;
        tk_index_run(g->index_dtype, data[1] + at * strides[1], strides[1], part, indices);
        along_block(g, data[0] + at * strides[0], strides[0], indices, data[2] + at * strides[2],
                    strides[2], part);
    }
}

tk_status tk_body_gather_along(const tk_body_call *call) {
    const tk_attrs_axis *attrs = call->attrs;
    const tk_strided *a = &call->inputs[0], *index = &call->inputs[1], *out = &call->outputs[0];
    along g = {.element_bytes = tk_dtype_size(a->dtype),
               .index_dtype = index->dtype,
               .length = a->shape[attrs->axis],
               .stride = a->strides[attrs->axis] * (int64_t)tk_dtype_size(a->dtype),
               .out = out->data,
               .fault = call->fault};
    tk_strided still = *a;
    still.strides[attrs->axis] = 0;
    tk_loop loop = tk_loop_over(out->rank, out->shape);
    tk_loop_add(&loop, out);
    tk_loop_add(&loop, index);
    tk_loop_add(&loop, &still);
    tk_loop_collapse(&loop);
    tk_loop_each(&loop, GRAIN, along_run, &g);
    return TK_OK;
}
