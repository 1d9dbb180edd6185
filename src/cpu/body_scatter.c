/* scatter and scatter_along: writes at indices, in place on a copy of the operand.
 *
 * Updates that hit one element are applied in row-major order of the indices, so the last one wins
 * under `set` and sums are the same on every run. Threads therefore never share an element: scatter
 * is split over the elements of a slice, scatter_along over the lines beside the axis. Half types
 * accumulate `add` and `prod` in an f32 copy. Indices out of range are noted, their updates
 * dropped.
 *
 * Rejected: atomic additions (their order, and so the sum, changes from run to run). */
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_ewise.h"
#include "cpu/body_index.h"

#define GRAIN 16384

/* How an update meets what is there. */
typedef struct combiner {
    bool set;
    size_t bytes;
    tk_ewise ewise;
} combiner;

static combiner combiner_of(tk_mode mode, tk_dtype dtype) {
    static const tk_op ops[TK_MODE_COUNT] = {[TK_SET] = TK_OP_add,
                                             [TK_ADD] = TK_OP_add,
                                             [TK_MAX] = TK_OP_maximum,
                                             [TK_MIN] = TK_OP_minimum,
                                             [TK_PROD] = TK_OP_multiply};
    return (combiner){mode == TK_SET, tk_dtype_size(dtype), tk_ewise_prepare(ops[mode], dtype)};
}

/* data[0]: the array, data[1]: the update. */
static void combine_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    combiner *c = arg;
    if (c->set) {
        tk_copy_run(c->bytes, data[0], strides[0], data[1], strides[1], count);
        return;
    }
    char *sides[3] = {data[0], data[0], data[1]};
    int64_t steps[3] = {strides[0], strides[0], strides[1]};
    tk_ewise_run(&c->ewise, sides, steps, count);
}

/* ---- the f32 copy of half types ---- */

typedef tk_status scatter_fn(const tk_body_call *call, const tk_strided *updates,
                             const tk_strided *out);

static bool needs_wide(tk_mode mode, tk_dtype dtype) {
    bool half = dtype == TK_FLOAT16 || dtype == TK_BFLOAT16;
    return half && (mode == TK_ADD || mode == TK_PROD);
}

static tk_status widen(const tk_strided *view, tk_strided *out_wide) {
    void *memory;
    TK_TRY(tk_scratch_new(view->size, sizeof(float), &memory));
    *out_wide = tk_view_dense(TK_FLOAT32, view->rank, view->shape, memory);
    tk_convert_view(view, out_wide);
    return TK_OK;
}

static tk_status scatter_wide(const tk_body_call *call, const tk_strided *updates,
                              scatter_fn *scatter) {
    tk_strided wide = {.data = NULL}, wide_updates = {.data = NULL};
    tk_status status = widen(&call->inputs[0], &wide);
    if (status == TK_OK) status = widen(updates, &wide_updates);
    if (status == TK_OK) status = scatter(call, &wide_updates, &wide);
    if (status == TK_OK) tk_convert_view(&wide, &call->outputs[0]);
    tk_free(wide.data);
    tk_free(wide_updates.data);
    return status;
}

static tk_status run(const tk_body_call *call, tk_mode mode, const tk_strided *updates,
                     scatter_fn *scatter) {
    const tk_strided *a = &call->inputs[0], *out = &call->outputs[0];
    if (needs_wide(mode, a->dtype)) return scatter_wide(call, updates, scatter);
    if (out->data != a->data) tk_copy_view(a, out);
    return scatter(call, updates, out);
}

/* ---- scatter ---- */

typedef struct slices {
    const tk_strided *out;
    tk_indices indices;
    tk_loop lead;  /* the updates' index axes; operand 0: updates */
    tk_loop slice; /* operand 0: out, operand 1: updates */
    combiner combine;
    tk_fault *fault;
} slices;

static void pointer_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    char ***at = arg;
    for (int64_t i = 0; i < count; i++) *(*at)++ = data[0] + i * strides[0];
}

/* Elements [begin, end) of every slice. */
static void slices_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const slices *s = arg;
    tk_loop slice = s->slice;
    combiner combine = s->combine;
    int64_t offsets[TK_INDEX_BLOCK];
    bool valid[TK_INDEX_BLOCK];
    char *updates[TK_INDEX_BLOCK];
    for (int64_t at = 0; at < s->indices.positions; at += TK_INDEX_BLOCK) {
        int64_t left = s->indices.positions - at,
                count = left < TK_INDEX_BLOCK ? left : TK_INDEX_BLOCK;
        tk_indices_read(&s->indices, at, count, s->fault, offsets, valid);
        char **next = updates;
        tk_loop_range(&s->lead, at, at + count, pointer_run, &next);
        for (int64_t i = 0; i < count; i++) {
            if (!valid[i]) continue;
            slice.data[0] = (char *)s->out->data + offsets[i];
            slice.data[1] = updates[i];
            tk_loop_range(&slice, begin, end, combine_run, &combine);
        }
    }
}

static tk_status scatter_slices(const tk_body_call *call, const tk_strided *updates,
                                const tk_strided *out) {
    const tk_attrs_scatter *attrs = call->attrs;
    int n_lead = updates->rank - out->rank;
    size_t bytes = tk_dtype_size(out->dtype);
    const int64_t *slice_shape = updates->shape + n_lead;
    if (updates->size == 0) return TK_OK;
    slices s = {.out = out,
                .indices = tk_indices_of(out, call->inputs + 2, attrs->axes, slice_shape),
                .lead = tk_loop_over(n_lead, updates->shape),
                .slice = tk_loop_over(out->rank, slice_shape),
                .combine = combiner_of((tk_mode)attrs->mode, out->dtype),
                .fault = call->fault};
    tk_loop_add_raw(&s.lead, updates->data, updates->strides, bytes);
    tk_loop_merge(&s.lead);
    tk_loop_add(&s.slice, out);
    tk_loop_add_raw(&s.slice, updates->data, updates->strides + n_lead, bytes);
    tk_loop_collapse(&s.slice);
    int64_t grain = 64 + GRAIN / s.indices.positions;
    tk_parallel_for(s.slice.size, grain, slices_part, &s);
    return TK_OK;
}

tk_status tk_body_scatter(const tk_body_call *call) {
    const tk_attrs_scatter *attrs = call->attrs;
    return run(call, (tk_mode)attrs->mode, &call->inputs[1], scatter_slices);
}

/* ---- along an axis ---- */

typedef struct lines {
    combiner combine;
    tk_dtype index_dtype;
    int64_t count;                                   /* updates along the axis */
    int64_t length;                                  /* of the array's axis */
    int64_t out_stride, index_stride, update_stride; /* bytes along the axis */
    atomic_bool faulty;
} lines;

/* `count` updates; update i goes to out + i * out_step + its index * out_stride. */
typedef struct line {
    char *out;
    const char *index;
    char *update;
    int64_t out_step, index_step, update_step, count;
} line;

static void line_run(lines *s, const line *at) {
    static const int64_t still[2] = {0, 0};
    combiner combine = s->combine;
    int64_t indices[TK_INDEX_BLOCK];
    for (int64_t i = 0; i < at->count; i++) {
        if (i % TK_INDEX_BLOCK == 0) {
            int64_t left = at->count - i;
            tk_index_run(s->index_dtype, at->index + i * at->index_step, at->index_step,
                         left < TK_INDEX_BLOCK ? left : TK_INDEX_BLOCK, indices);
        }
        int64_t index = indices[i % TK_INDEX_BLOCK];
        if (index < 0 || index >= s->length) {
            atomic_store(&s->faulty, true);
            continue;
        }
        char *sides[2] = {at->out + i * at->out_step + index * s->out_stride,
                          at->update + i * at->update_step};
        combine_run(&combine, sides, still, 1);
    }
}

/* A run of neighbours beside the axis: the longer of the two directions is the inner loop. Along
 * the axis the order is kept either way. */
static void lines_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    lines *s = arg;
    bool across = count > s->count;
    int64_t outer = across ? s->count : count;
    for (int64_t i = 0; i < outer; i++) {
        line along = {data[0] + i * strides[0],
                      data[1] + i * strides[1],
                      data[2] + i * strides[2],
                      0,
                      s->index_stride,
                      s->update_stride,
                      s->count};
        line beside = {data[0],
                       data[1] + i * s->index_stride,
                       data[2] + i * s->update_stride,
                       strides[0],
                       strides[1],
                       strides[2],
                       count};
        line_run(s, across ? &beside : &along);
    }
}

typedef struct fault_search {
    tk_dtype dtype;
    int64_t length, position;
    tk_fault *fault;
} fault_search;

static void search_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    fault_search *f = arg;
    for (int64_t i = 0; i < count; i++) {
        int64_t index;
        tk_index_run(f->dtype, data[0] + i * strides[0], 0, 1, &index);
        if (index < 0 || index >= f->length) tk_fault_note(f->fault, f->position, index, f->length);
        f->position++;
    }
}

/* Notes the indices that are out of range, with their row-major positions. */
static void search_faults(const tk_strided *index, int64_t length, tk_fault *fault) {
    fault_search f = {index->dtype, length, 0, fault};
    tk_loop loop = tk_loop_over(index->rank, index->shape);
    tk_loop_add(&loop, index);
    tk_loop_merge(&loop);
    tk_loop_range(&loop, 0, loop.size, search_run, &f);
}

static void add_beside(tk_loop *loop, const tk_strided *view, int axis) {
    tk_strided moved = *view;
    tk_view_axes_last(&moved, (tk_axes){1, {axis}});
    tk_loop_add_raw(loop, moved.data, moved.strides, tk_dtype_size(view->dtype));
}

static tk_status scatter_lines(const tk_body_call *call, const tk_strided *updates,
                               const tk_strided *out) {
    const tk_attrs_scatter_axis *attrs = call->attrs;
    const tk_strided *index = &call->inputs[1];
    int axis = (int)attrs->axis;
    if (index->size == 0) return TK_OK;
    lines s = {.combine = combiner_of((tk_mode)attrs->mode, out->dtype),
               .index_dtype = index->dtype,
               .count = index->shape[axis],
               .length = out->shape[axis]};
    s.out_stride = out->strides[axis] * (int64_t)tk_dtype_size(out->dtype);
    s.index_stride = index->strides[axis] * (int64_t)tk_dtype_size(index->dtype);
    s.update_stride = updates->strides[axis] * (int64_t)tk_dtype_size(out->dtype);
    tk_strided beside = *index;
    int n_beside = tk_view_axes_last(&beside, (tk_axes){1, {axis}});
    tk_loop loop = tk_loop_over(n_beside, beside.shape);
    add_beside(&loop, out, axis);
    add_beside(&loop, index, axis);
    add_beside(&loop, updates, axis);
    tk_loop_collapse(&loop);
    tk_loop_each(&loop, 1 + GRAIN / s.count, lines_run, &s);
    if (atomic_load(&s.faulty)) search_faults(index, s.length, call->fault);
    return TK_OK;
}

tk_status tk_body_scatter_along(const tk_body_call *call) {
    const tk_attrs_scatter_axis *attrs = call->attrs;
    return run(call, (tk_mode)attrs->mode, &call->inputs[2], scatter_lines);
}
