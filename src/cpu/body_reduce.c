/* Reductions over any axes by the vector kernels.
 *
 * Axes are flipped to positive strides, ordered by stride and merged, which makes transposed and
 * reversed arrays dense again. Then one reduced axis after the other goes, the innermost first, by
 * one of two kernels: along rows when it is innermost, else down columns. What is left after each
 * step is dense and in the accumulator's type, so every sum is rounded to the result's type once.
 *
 * Where the innermost axis is not dense (every second element, a broadcast one that is reduced) and
 * for complex products and extremes the portable reduction takes over.
 *
 * Rejected: copying such arrays to make them dense (a broadcast view may be far larger than
 * memory). */
#include "cpu/body_reduce.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_ewise.h"
#include "cpu/body_loop.h"
#include "cpu/body_rows.h"
#include "cpu/vec_reduce.h"

#define CALL_GRAIN 65536

typedef struct axis {
    int64_t length, stride;
    bool reduced;
    int original;
} axis;

/* A reduction under way: `axes` outermost first over `data`. */
typedef struct stage {
    tk_vec_reduce_op op;
    tk_dtype dtype;
    const char *data;
    void *owned; /* the memory of `data` from the second step on */
    int rank;
    axis axes[TK_AXES_MAX];
} stage;

/* Element strides and the place of the first element. */
typedef struct placement {
    int64_t offset;
    int64_t strides[TK_AXES_MAX];
} placement;

static tk_dtype accumulator_of(tk_dtype dtype) {
    if (tk_dtype_is_float(dtype)) return dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    return tk_dtype_kind(dtype) == TK_KIND_SIGNED ? TK_INT64 : TK_UINT64;
}

/* ---- setting up ---- */

static bool is_listed(tk_axes axes, int axis) {
    for (int64_t i = 0; i < axes.count; i++)
        if (axes.items[i] == axis) return true;
    return false;
}

/* Axes of `in` that have more than one element of their own, by descending stride. `result`
 * says where the dense result will have the elements of the operand's axes. */
static void order_axes(stage *s, const tk_strided *in, tk_axes reduced, placement *result) {
    int64_t flipped = 0;
    for (int i = 0; i < in->rank; i++) {
        axis a = {in->shape[i], in->strides[i], is_listed(reduced, i), i};
        if (a.length == 1 || (!a.reduced && a.stride == 0)) continue;
        if (a.stride < 0) {
            flipped += (a.length - 1) * a.stride;
            a.stride = -a.stride;
        }
        int at = s->rank++;
        for (; at > 0 && s->axes[at - 1].stride < a.stride; at--) s->axes[at] = s->axes[at - 1];
        s->axes[at] = a;
    }
    s->data = (const char *)in->data + flipped * (int64_t)tk_dtype_size(in->dtype);
    int64_t stride = 1;
    *result = (placement){.offset = 0};
    for (int k = s->rank - 1; k >= 0; k--) {
        const axis *a = &s->axes[k];
        if (a->reduced) continue;
        bool flip = in->strides[a->original] < 0;
        result->strides[a->original] = flip ? -stride : stride;
        if (flip) result->offset += (a->length - 1) * stride;
        stride *= a->length;
    }
}

static void merge(stage *s) {
    int kept = 0;
    for (int i = 1; i < s->rank; i++) {
        axis *outer = &s->axes[kept], *inner = &s->axes[i];
        if (outer->reduced == inner->reduced && outer->stride == inner->stride * inner->length) {
            outer->length *= inner->length;
            outer->stride = inner->stride;
        } else {
            s->axes[++kept] = *inner;
        }
    }
    if (s->rank) s->rank = kept + 1;
}

static int innermost_reduced(const stage *s) {
    for (int i = s->rank - 1; i >= 0; i--)
        if (s->axes[i].reduced) return i;
    return -1;
}

/* ---- one step ---- */

/* The calls of one step: a kernel on each position of `others`. */
typedef struct step {
    const stage *stage;
    bool along_rows;
    int64_t rows, columns, row_stride;
    tk_loop others; /* operand 0: result, operand 1: data */
    atomic_int status;
} step;

static void call_kernel(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    step *t = arg;
    char *out = data[0];
    const char *in = data[1];
    for (int64_t i = 0; i < count; i++, out += strides[0], in += strides[1]) {
        tk_status status = (t->along_rows ? tk_reduce_rows : tk_reduce_outer)(
            t->stage->op, t->stage->dtype, in, t->rows, t->columns, t->row_stride, out);
        if (status != TK_OK) atomic_store(&t->status, (int)status);
    }
}

/* Axes without `gone`, dense. */
static void shrink(const stage *s, int gone, stage *next) {
    *next = *s;
    next->rank = 0;
    for (int i = 0; i < s->rank; i++)
        if (i != gone) next->axes[next->rank++] = s->axes[i];
    int64_t stride = 1;
    for (int i = next->rank - 1; i >= 0; i--) {
        next->axes[i].stride = stride;
        stride *= next->axes[i].length;
    }
    next->dtype = accumulator_of(s->dtype);
}

static int64_t result_size(const stage *next) {
    return next->rank ? next->axes[0].stride * next->axes[0].length : 1;
}

/* The axes that the kernel itself walks: `gone`, and the row axis or the columns. */
static int second_axis(const stage *s, int gone) {
    int inner = s->rank - 1;
    return gone == inner ? inner - 1 : inner;
}

static void plan_others(step *t, const stage *next, int gone, void *out) {
    const stage *s = t->stage;
    int64_t shape[TK_AXES_MAX], from[TK_AXES_MAX], to[TK_AXES_MAX];
    int count = 0, second = second_axis(s, gone);
    for (int i = 0; i < s->rank; i++) {
        if (i == gone || i == second) continue;
        shape[count] = s->axes[i].length;
        from[count] = s->axes[i].stride;
        to[count++] = next->axes[i - (i > gone)].stride;
    }
    t->others = tk_loop_over(count, shape);
    tk_loop_add_raw(&t->others, out, to, tk_dtype_size(next->dtype));
    tk_loop_add_raw(&t->others, (void *)(uintptr_t)s->data, from, tk_dtype_size(s->dtype));
    tk_loop_collapse(&t->others);
}

static tk_status run_step(stage *s, int gone) {
    stage next;
    shrink(s, gone, &next);
    void *out;
    TK_TRY(tk_scratch_new(result_size(&next), tk_dtype_size(next.dtype), &out));
    step t = {.stage = s, .along_rows = gone == s->rank - 1};
    int second = second_axis(s, gone);
    const axis *line = &s->axes[gone], *other = second >= 0 ? &s->axes[second] : NULL;
    t.rows = t.along_rows ? (other ? other->length : 1) : line->length;
    t.columns = t.along_rows ? line->length : other->length;
    t.row_stride = t.along_rows ? (other ? other->stride : line->length) : line->stride;
    plan_others(&t, &next, gone, out);
    int64_t call_size = t.rows * t.columns;
    if (call_size >= 16 * CALL_GRAIN || t.others.size == 1)
        tk_loop_range(&t.others, 0, t.others.size, call_kernel, &t);
    else
        tk_loop_each(&t.others, 1 + CALL_GRAIN / call_size, call_kernel, &t);
    tk_free(s->owned);
    next.data = next.owned = out;
    merge(&next);
    *s = next;
    return (tk_status)atomic_load(&t.status);
}

/* ---- the whole ---- */

static bool is_dense_inside(const stage *s) {
    return s->rank == 0 || s->axes[s->rank - 1].stride == 1;
}

static tk_status finish(const stage *s, const placement *result, const tk_strided *out) {
    tk_strided from = *out;
    from.dtype = s->dtype;
    memcpy(from.strides, result->strides, sizeof from.strides);
    from.data = (void *)((uintptr_t)s->data + (size_t)result->offset * tk_dtype_size(s->dtype));
    tk_convert_view(&from, out);
    return TK_OK;
}

/* The common cases, a dense array reduced along its last or first axes: one call, without scratch.
 */
static bool reduce_directly(tk_vec_reduce_op op, const tk_strided *in, const tk_strided *out,
                            tk_axes axes, tk_status *status) {
    bool last = tk_axes_are_last(axes, in->rank);
    if (in->dtype != TK_FLOAT32 && in->dtype != TK_FLOAT64) return false;
    if ((!last && !tk_axes_are_first(axes)) || !tk_view_is_dense(in)) return false;
    int64_t length = in->size / out->size;
    *status =
        last ? tk_reduce_rows(op, in->dtype, in->data, out->size, length, length, out->data)
             : tk_reduce_outer(op, in->dtype, in->data, length, out->size, out->size, out->data);
    return true;
}

/* False when the layout is not one for the kernels; nothing has happened then. */
static bool reduce_fast(tk_vec_reduce_op op, const tk_strided *in, const tk_strided *out,
                        tk_axes axes, tk_status *status) {
    if (reduce_directly(op, in, out, axes, status)) return true;
    stage s = {.op = op, .dtype = in->dtype};
    placement result;
    order_axes(&s, in, axes, &result);
    if (!is_dense_inside(&s) || innermost_reduced(&s) < 0) return false;
    merge(&s);
    *status = TK_OK;
    for (int gone; *status == TK_OK && (gone = innermost_reduced(&s)) >= 0;)
        *status = run_step(&s, gone);
    if (*status == TK_OK) *status = finish(&s, &result, out);
    tk_free(s.owned);
    return true;
}

/* A complex array as floats with one more axis, of real and imaginary part. */
static tk_strided as_pairs(const tk_strided *view) {
    tk_strided pairs = *view;
    pairs.dtype = TK_FLOAT32;
    pairs.size *= 2;
    for (int i = 0; i < view->rank; i++) pairs.strides[i] *= 2;
    pairs.shape[pairs.rank] = 2;
    pairs.strides[pairs.rank++] = 1;
    return pairs;
}

static tk_vec_reduce_op kernel_of(tk_op op, tk_dtype dtype) {
    bool truth = dtype == TK_BOOL;
    switch (op) {
    case TK_OP_reduce_sum:
        return truth ? TK_VEC_RMAX : TK_VEC_SUM;
    case TK_OP_reduce_prod:
        return truth ? TK_VEC_RMIN : TK_VEC_PROD;
    case TK_OP_reduce_max:
    case TK_OP_reduce_any:
        return TK_VEC_RMAX;
    default:
        return TK_VEC_RMIN;
    }
}

static void fill_identity(tk_op op, const tk_strided *out) {
    double value = op == TK_OP_reduce_prod || op == TK_OP_reduce_all ? 1 : 0;
    uint64_t element = 0;
    tk_convert_run(TK_FLOAT64, out->dtype, &value, &element, 1);
    tk_fill_view(&element, out);
}

tk_status tk_body_reduce(const tk_body_call *call) {
    const tk_attrs_reduce *attrs = call->attrs;
    const tk_strided *in = &call->inputs[0], *out = &call->outputs[0];
    tk_axes axes = tk_rows_axes(attrs->axes.count, attrs->axes.items);
    if (out->size == 0) return TK_OK;
    if (in->size == 0) {
        fill_identity(call->op, out);
        return TK_OK;
    }
    tk_status status;
    if (tk_cpu_reference()) return tk_reduce_portable(call->op, in, out, axes);
    if (in->dtype != TK_COMPLEX64) {
        if (reduce_fast(kernel_of(call->op, in->dtype), in, out, axes, &status)) return status;
    } else if (call->op == TK_OP_reduce_sum && in->rank < TK_AXES_MAX) {
        tk_strided in_pairs = as_pairs(in), out_pairs = as_pairs(out);
        if (reduce_fast(TK_VEC_SUM, &in_pairs, &out_pairs, axes, &status)) return status;
    }
    return tk_reduce_portable(call->op, in, out, axes);
}
