/* Inference of indexing ops and of the fused ops, whose operands have different dtypes. */
#include <string.h>

#include "base/error.h"
#include "graph/build.h"
#include "graph/launch.h"
#include "graph/text.h"

tk_status tk_infer_mode(const tk_infer *infer, int64_t mode) {
    if (mode >= 0 && mode < TK_MODE_COUNT) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: mode %lld is none of set, add, max, min, prod",
                   tk_op_title(infer->op), (long long)mode);
}

static tk_status need_index(const tk_infer *infer, size_t operand) {
    const tk_node *index = infer->inputs[operand];
    if (tk_dtype_is_integer((tk_dtype)index->dtype)) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR, "%s: indices are %s, expected an integer dtype",
                   tk_op_title(infer->op), tk_text_node(index));
}

/* Operands first .. first+count-1 are integer arrays of one shape. */
static tk_status need_indices(const tk_infer *infer, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        TK_TRY(need_index(infer, i));
        if (!tk_shape_equal(infer->inputs[first], infer->inputs[i]))
            return tk_fail(TK_SHAPE_ERROR, "%s: indices are %s and %s, expected one shape",
                           tk_op_title(infer->op), tk_text_node(infer->inputs[first]),
                           tk_text_node(infer->inputs[i]));
    }
    return TK_OK;
}

static tk_status need_distinct_axes(const tk_infer *infer, tk_list axes, int rank) {
    unsigned seen = 0;
    for (int64_t i = 0; i < axes.count; i++) {
        TK_TRY(tk_infer_axis(infer, axes.items[i], rank));
        if (seen >> axes.items[i] & 1)
            return tk_fail(TK_AXIS_ERROR, "%s: axis %lld is given twice", tk_op_title(infer->op),
                           (long long)axes.items[i]);
        seen |= 1u << axes.items[i];
    }
    return TK_OK;
}

/* Inputs: a, then one index array an axis. */
tk_status tk_shape_gather(tk_infer *infer) {
    const tk_attrs_gather *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 2, SIZE_MAX));
    const tk_node *a = infer->inputs[0], *index = infer->inputs[1];
    if (attrs->axes.count != (int64_t)infer->n_inputs - 1 || attrs->slice_sizes.count != a->rank)
        return tk_fail(TK_SHAPE_ERROR,
                       "take/gather: %zu index arrays, %lld axes and %lld slice sizes for %s, "
                       "expected an axis an "
                       "index array and a size an axis",
                       infer->n_inputs - 1, (long long)attrs->axes.count,
                       (long long)attrs->slice_sizes.count, tk_text_node(a));
    TK_TRY(need_indices(infer, 1, infer->n_inputs - 1));
    TK_TRY(need_distinct_axes(infer, attrs->axes, a->rank));
    if (index->rank + a->rank > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "take/gather: indices %s into %s give more than %d axes",
                       tk_text_node(index), tk_text_node(a), TK_MAX_RANK);
    tk_infer_like(infer, index);
    for (int i = 0; i < a->rank; i++) {
        int64_t size = attrs->slice_sizes.items[i];
        if (size < 0 || size > a->shape[i])
            return tk_fail(TK_SHAPE_ERROR, "take/gather: slice size %lld on axis %d of %s",
                           (long long)size, i, tk_text_node(a));
        infer->shape[infer->rank++] = size;
    }
    return TK_OK;
}

/* Inputs: a, updates of shape indices.shape + slice shape, then one index array an axis. */
tk_status tk_shape_scatter(tk_infer *infer) {
    const tk_attrs_scatter *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 3, SIZE_MAX));
    const tk_node *a = infer->inputs[0], *updates = infer->inputs[1], *index = infer->inputs[2];
    TK_TRY(need_indices(infer, 2, infer->n_inputs - 2));
    TK_TRY(need_distinct_axes(infer, attrs->axes, a->rank));
    bool fits = attrs->axes.count == (int64_t)infer->n_inputs - 2 && updates->dtype == a->dtype &&
                updates->rank == index->rank + a->rank;
    for (int i = 0; fits && i < index->rank; i++) fits = updates->shape[i] == index->shape[i];
    for (int i = 0; fits && i < a->rank; i++) fits = updates->shape[index->rank + i] <= a->shape[i];
    if (!fits)
        return tk_fail(
            TK_SHAPE_ERROR,
            "scatter: updates %s into %s at indices %s: expected the shape of the indices, then a "
            "slice of the array",
            tk_text_node(updates), tk_text_node(a), tk_text_node(index));
    tk_infer_like(infer, a);
    return tk_infer_mode(infer, attrs->mode);
}

static bool along_fits(const tk_node *a, const tk_node *index, int64_t axis) {
    bool fits = a->rank == index->rank;
    for (int i = 0; fits && i < a->rank; i++) fits = i == axis || a->shape[i] == index->shape[i];
    return fits;
}

tk_status tk_shape_gather_along(tk_infer *infer) {
    const tk_attrs_axis *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 2, 2));
    TK_TRY(need_index(infer, 1));
    TK_TRY(tk_infer_axis(infer, attrs->axis, infer->inputs[0]->rank));
    if (!along_fits(infer->inputs[0], infer->inputs[1], attrs->axis))
        return tk_fail(
            TK_SHAPE_ERROR, "take_along_axis: indices %s into %s differ beside axis %lld",
            tk_text_node(infer->inputs[1]), tk_text_node(infer->inputs[0]), (long long)attrs->axis);
    tk_infer_like(infer, infer->inputs[1]);
    return TK_OK;
}

/* Inputs: a, indices, updates. */
tk_status tk_shape_scatter_along(tk_infer *infer) {
    const tk_attrs_scatter_axis *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 3, 3));
    TK_TRY(need_index(infer, 1));
    const tk_node *a = infer->inputs[0], *index = infer->inputs[1], *updates = infer->inputs[2];
    TK_TRY(tk_infer_axis(infer, attrs->axis, a->rank));
    if (!along_fits(a, index, attrs->axis) || !tk_shape_equal(index, updates) ||
        a->dtype != updates->dtype)
        return tk_fail(
            TK_SHAPE_ERROR, "put_along_axis: indices %s and values %s do not fit %s on axis %lld",
            tk_text_node(index), tk_text_node(updates), tk_text_node(a), (long long)attrs->axis);
    tk_infer_like(infer, a);
    return tk_infer_mode(infer, attrs->mode);
}

/* ---- fused ---- */

static void output_like(tk_infer *infer, int index, const tk_node *node) {
    tk_infer_output(infer, index, (tk_dtype)node->dtype, node->rank, node->shape);
}

static tk_status check_norm(const tk_infer *infer, const tk_attrs_norm *attrs, size_t extra) {
    size_t params = (size_t)(attrs->has_weight + attrs->has_bias);
    TK_TRY(tk_infer_need(infer, 1 + params + extra, 1 + params + extra));
    const tk_node *x = infer->inputs[0];
    if (x->rank < 1) return tk_fail(TK_SHAPE_ERROR, "%s: x is a scalar", tk_op_title(infer->op));
    for (size_t i = 1; i <= params; i++) {
        const tk_node *param = infer->inputs[i];
        if (param->rank != 1 || param->shape[0] != x->shape[x->rank - 1])
            return tk_fail(TK_SHAPE_ERROR,
                           "%s: x is %s and a parameter %s, expected the length of the last axis",
                           tk_op_title(infer->op), tk_text_node(x), tk_text_node(param));
    }
    return TK_OK;
}

tk_status tk_shape_norm(tk_infer *infer) {
    TK_TRY(check_norm(infer, infer->attrs, 0));
    tk_infer_like(infer, infer->inputs[0]);
    return TK_OK;
}

/* Inputs: x, parameters, dy. Outputs: dx, then one a parameter. */
static tk_status shape_norm_vjp(tk_infer *infer) {
    const tk_attrs_norm *attrs = infer->attrs;
    TK_TRY(check_norm(infer, attrs, 1));
    int n_outputs = (int)(1 + attrs->has_weight + attrs->has_bias);
    const tk_node *dy = infer->inputs[infer->n_inputs - 1];
    for (int i = 0; i < n_outputs; i++) {
        if (infer->inputs[i]->dtype != infer->inputs[0]->dtype ||
            dy->dtype != infer->inputs[0]->dtype)
            return tk_fail(TK_DTYPE_ERROR, "%s: expected one dtype", tk_op_title(infer->op));
        output_like(infer, i, infer->inputs[i]);
    }
    if (!tk_shape_equal(dy, infer->inputs[0]))
        return tk_fail(TK_SHAPE_ERROR, "%s: x is %s and dy is %s", tk_op_title(infer->op),
                       tk_text_node(infer->inputs[0]), tk_text_node(dy));
    return tk_infer_outputs(infer, n_outputs);
}

tk_status tk_shape_rms_norm_vjp(tk_infer *infer) { return shape_norm_vjp(infer); }
tk_status tk_shape_layer_norm_vjp(tk_infer *infer) { return shape_norm_vjp(infer); }

/* Inputs: x [B, ..., L, D], offset (integer, scalar or [B]), perhaps freqs [dims / 2] as f32. */
tk_status tk_shape_rope(tk_infer *infer) {
    const tk_attrs_rope *attrs = infer->attrs;
    size_t expected = 2 + (attrs->has_freqs != 0);
    TK_TRY(tk_infer_need(infer, expected, expected));
    TK_TRY(need_index(infer, 1));
    const tk_node *x = infer->inputs[0], *offset = infer->inputs[1];
    if (x->rank < 2 || attrs->dims < 2 || attrs->dims % 2 || attrs->dims > x->shape[x->rank - 1])
        return tk_fail(
            TK_SHAPE_ERROR,
            "rope: x is %s and dims is %lld, expected two axes or more and an even number of dims "
            "within the last",
            tk_text_node(x), (long long)attrs->dims);
    if (offset->rank > 1 || (offset->rank == 1 && (x->rank < 3 || offset->shape[0] != x->shape[0])))
        return tk_fail(TK_SHAPE_ERROR,
                       "rope: offset is %s for x %s, expected a scalar or one a batch entry",
                       tk_text_node(offset), tk_text_node(x));
    if (attrs->has_freqs) {
        const tk_node *freqs = infer->inputs[2];
        if (freqs->dtype != TK_FLOAT32 || freqs->rank != 1 || freqs->shape[0] != attrs->dims / 2)
            return tk_fail(TK_SHAPE_ERROR, "rope: freqs is %s, expected f32(%lld,)",
                           tk_text_node(freqs), (long long)attrs->dims / 2);
    }
    tk_infer_like(infer, x);
    return TK_OK;
}

static tk_dtype wide_of(const tk_node *q) {
    return q->dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
}

static tk_status check_sinks(const tk_node *q, const tk_node *sinks) {
    if (sinks->rank == 1 && sinks->shape[0] == q->shape[1] && sinks->dtype == q->dtype)
        return TK_OK;
    return tk_fail(TK_SHAPE_ERROR,
                   "scaled_dot_product_attention: sinks are %s for q %s, expected one a head",
                   tk_text_node(sinks), tk_text_node(q));
}

/* q [B, H, L, D], k [B, Hk, S, D], v [B, Hk, S, Dv], perhaps a mask of shape [B, H, L, S], perhaps
 * sinks [H]. */
static tk_status check_attention(const tk_infer *infer, const tk_attrs_attention *attrs,
                                 size_t extra) {
    size_t expected = 3 + (attrs->has_mask != 0) + (attrs->has_sinks != 0) + extra;
    TK_TRY(tk_infer_need(infer, expected, expected));
    const tk_node *q = infer->inputs[0], *k = infer->inputs[1], *v = infer->inputs[2];
    bool fits = q->rank == 4 && k->rank == 4 && v->rank == 4 && q->dtype == k->dtype &&
                q->dtype == v->dtype && q->shape[0] == k->shape[0] && q->shape[0] == v->shape[0] &&
                k->shape[1] == v->shape[1] && k->shape[2] == v->shape[2] &&
                q->shape[3] == k->shape[3];
    fits = fits && (k->shape[1] == 0 ? q->shape[1] == 0 : q->shape[1] % k->shape[1] == 0);
    if (!fits)
        return tk_fail(TK_SHAPE_ERROR,
                       "scaled_dot_product_attention: q, k, v are %s, %s, %s, expected [B, H, L, "
                       "D], [B, Hk, S, "
                       "D], [B, Hk, S, Dv] with H a multiple of Hk",
                       tk_text_node(q), tk_text_node(k), tk_text_node(v));
    if (attrs->has_sinks) TK_TRY(check_sinks(q, infer->inputs[3 + (attrs->has_mask != 0)]));
    if (!attrs->has_mask) return TK_OK;
    const tk_node *mask = infer->inputs[3];
    int64_t scores[4] = {q->shape[0], q->shape[1], q->shape[2], k->shape[2]};
    if (mask->rank != 4 || memcmp(mask->shape, scores, sizeof scores) ||
        (mask->dtype != TK_BOOL && mask->dtype != q->dtype))
        return tk_fail(TK_SHAPE_ERROR,
                       "scaled_dot_product_attention: mask is %s for q %s and k %s, expected bool "
                       "or q's dtype "
                       "of shape [B, H, L, S]",
                       tk_text_node(mask), tk_text_node(q), tk_text_node(k));
    return TK_OK;
}

tk_status tk_shape_attention(tk_infer *infer) {
    TK_TRY(check_attention(infer, infer->attrs, 0));
    const tk_node *q = infer->inputs[0], *v = infer->inputs[2];
    output_like(infer, 0, q);
    infer->several_shapes[0][3] = v->shape[3];
    tk_infer_output(infer, 1, wide_of(q), 3, q->shape);
    return tk_infer_outputs(infer, 2);
}

/* Inputs: q, k, v, perhaps mask, then out, lse, dout. Outputs: dq, dk, dv. */
tk_status tk_shape_attention_vjp(tk_infer *infer) {
    const tk_attrs_attention *attrs = infer->attrs;
    if (attrs->has_sinks)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "attention_vjp: has_sinks is true, expected false: they are in the lse");
    TK_TRY(check_attention(infer, infer->attrs, 3));
    for (int i = 0; i < 3; i++) output_like(infer, i, infer->inputs[i]);
    return tk_infer_outputs(infer, 3);
}

/* logits [..., C] (float), targets [...] (integer). */
static tk_status check_cross_entropy(const tk_infer *infer) {
    const tk_node *logits = infer->inputs[0], *targets = infer->inputs[1];
    TK_TRY(need_index(infer, 1));
    bool fits = logits->rank == targets->rank + 1 && tk_dtype_is_float((tk_dtype)logits->dtype);
    for (int i = 0; fits && i < targets->rank; i++) fits = logits->shape[i] == targets->shape[i];
    if (fits) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR,
                   "cross_entropy: logits are %s and targets %s, expected [..., C] and [...]",
                   tk_text_node(logits), tk_text_node(targets));
}

/* Outputs: loss in the dtype of the logits, lse in f32 (f64 for f64). */
tk_status tk_shape_cross_entropy(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 2, 2));
    TK_TRY(check_cross_entropy(infer));
    const tk_node *logits = infer->inputs[0], *targets = infer->inputs[1];
    tk_dtype wide = logits->dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    tk_infer_output(infer, 0, (tk_dtype)logits->dtype, targets->rank, targets->shape);
    tk_infer_output(infer, 1, wide, targets->rank, targets->shape);
    return tk_infer_outputs(infer, 2);
}

/* Inputs: logits, targets, lse, dloss. */
tk_status tk_shape_cross_entropy_vjp(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 4, 4));
    TK_TRY(check_cross_entropy(infer));
    tk_infer_like(infer, infer->inputs[0]);
    return TK_OK;
}

/* Inputs: the arguments, then the results, which are its outputs. */
tk_status tk_shape_custom(tk_infer *infer) {
    const tk_attrs_custom *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, (size_t)attrs->n_args + 1, SIZE_MAX));
    size_t n_outputs = infer->n_inputs - (size_t)attrs->n_args;
    const tk_node *first = infer->inputs[attrs->n_args];
    infer->dtype = (tk_dtype)first->dtype;
    tk_infer_like(infer, first);
    infer->n_outputs = (int)n_outputs;
    infer->outputs = NULL;
    return TK_OK;
}

/* The record says what a launch writes. */
tk_status tk_shape_launch(tk_infer *infer) {
    const tk_launch_record *record = tk_launch_record_of(infer->attrs);
    TK_TRY(tk_infer_need(infer, record->n_inputs, record->n_inputs));
    for (int i = 0; i < record->n_outputs; i++)
        tk_infer_output(infer, i, record->outputs[i].dtype, record->outputs[i].rank,
                        record->outputs[i].shape);
    return tk_infer_outputs(infer, record->n_outputs);
}
