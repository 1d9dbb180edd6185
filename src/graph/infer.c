/* The driver of inference, and the rules of leaves, elementwise ops, reductions, products and shape
 * ops. Builders normalise arguments (negative axes, broadcasting, promotion) before; rules accept
 * only the normal form, so that the verifier and the text parser share them. */
#include "graph/infer.h"

#include <string.h>

#include "base/error.h"
#include "graph/text.h"

static bool accepts(tk_accept accept, tk_dtype dtype) {
    switch (accept) {
    case TK_ACCEPT_ANY:
        return true;
    case TK_ACCEPT_NUM:
        return dtype != TK_BOOL;
    case TK_ACCEPT_REAL:
        return !tk_dtype_is_complex(dtype);
    case TK_ACCEPT_INEXACT:
        return tk_dtype_is_inexact(dtype);
    case TK_ACCEPT_FLOAT:
        return tk_dtype_is_float(dtype);
    case TK_ACCEPT_INT:
        return tk_dtype_is_integer(dtype);
    case TK_ACCEPT_BITS:
        return dtype == TK_BOOL || tk_dtype_is_integer(dtype);
    case TK_ACCEPT_BOOL:
        return dtype == TK_BOOL;
    }
    return false;
}

static const char *accept_text(tk_accept accept) {
    static const char *const texts[] = {"any dtype",
                                        "a number, not bool",
                                        "a dtype that is not complex",
                                        "a float or complex dtype",
                                        "a float dtype",
                                        "an integer dtype",
                                        "an integer dtype or bool",
                                        "bool"};
    return texts[accept];
}

static tk_status check_dtypes(const tk_infer *infer) {
    const tk_op_info *op = tk_op_of(infer->op);
    if (infer->n_inputs == 0) return TK_OK;
    tk_dtype first = (tk_dtype)infer->inputs[0]->dtype;
    if (!accepts(op->accept, first))
        return tk_fail(TK_DTYPE_ERROR, "%s: operand is %s, expected %s", tk_op_title(infer->op),
                       tk_text_node(infer->inputs[0]), accept_text(op->accept));
    for (size_t i = 1; op->result != TK_RESULT_RULE && i < infer->n_inputs; i++) {
        if (infer->inputs[i]->dtype != infer->inputs[0]->dtype)
            return tk_fail(
                TK_DTYPE_ERROR, "%s: operand 0 is %s and operand %zu is %s, expected one dtype",
                op->name, tk_text_node(infer->inputs[0]), i, tk_text_node(infer->inputs[i]));
    }
    return TK_OK;
}

static tk_dtype component_of(tk_dtype dtype) { return dtype == TK_COMPLEX64 ? TK_FLOAT32 : dtype; }

tk_status tk_infer_run(tk_infer *infer, tk_op op, size_t n_inputs, tk_node *const *inputs,
                       const void *attrs) {
    const tk_op_info *info = tk_op_of(op);
    infer->op = op;
    infer->n_inputs = n_inputs;
    infer->inputs = inputs;
    infer->attrs = attrs;
    infer->n_outputs = 1;
    infer->outputs = infer->several;
    infer->rank = 0;
    TK_TRY(check_dtypes(infer));
    switch (info->result) {
    case TK_RESULT_SAME:
    case TK_RESULT_RULE:
        infer->dtype = n_inputs ? (tk_dtype)inputs[0]->dtype : TK_FLOAT32;
        break;
    case TK_RESULT_BOOL:
        infer->dtype = TK_BOOL;
        break;
    case TK_RESULT_UINT32:
        infer->dtype = TK_UINT32;
        break;
    case TK_RESULT_REAL:
        infer->dtype = component_of((tk_dtype)inputs[0]->dtype);
        break;
    case TK_RESULT_ATTR:
        infer->dtype = (tk_dtype) * (const int64_t *)attrs;
        break;
    }
    if ((unsigned)infer->dtype >= TK_DTYPE_COUNT)
        return tk_fail(TK_DTYPE_ERROR, "%s: %d is no dtype", info->name, (int)infer->dtype);
    return info->shape(infer);
}

/* ---- shared pieces ---- */

tk_status tk_infer_need(const tk_infer *infer, size_t low, size_t high) {
    if (infer->n_inputs >= low && infer->n_inputs <= high) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: %zu operands given, expected %zu%s",
                   tk_op_title(infer->op), infer->n_inputs, low, low == high ? "" : " or more");
}

void tk_infer_like(tk_infer *infer, const tk_node *node) {
    infer->rank = node->rank;
    if (node->rank) memcpy(infer->shape, node->shape, node->rank * sizeof *infer->shape);
}

tk_status tk_infer_list(tk_infer *infer, tk_list list) {
    if (list.count > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "%s: %lld axes given, at most %d are supported",
                       tk_op_title(infer->op), (long long)list.count, TK_MAX_RANK);
    infer->rank = (int)list.count;
    if (list.count) memcpy(infer->shape, list.items, (size_t)list.count * sizeof *infer->shape);
    return TK_OK;
}

tk_status tk_infer_axis(const tk_infer *infer, int64_t axis, int rank) {
    if (axis >= 0 && axis < rank) return TK_OK;
    return tk_fail(TK_AXIS_ERROR, "%s: axis %lld of an array of rank %d", tk_op_title(infer->op),
                   (long long)axis, rank);
}

static tk_status need_count(const tk_infer *infer, const char *what, int64_t given,
                            int64_t expected) {
    if (given == expected) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "%s: %s has %lld entries, expected %lld", tk_op_title(infer->op),
                   what, (long long)given, (long long)expected);
}

void tk_infer_output(tk_infer *infer, int index, tk_dtype dtype, int rank, const int64_t *shape) {
    if (rank) memcpy(infer->several_shapes[index], shape, (size_t)rank * sizeof *shape);
    infer->several[index] = (tk_type){dtype, rank, infer->several_shapes[index]};
}

tk_status tk_infer_outputs(tk_infer *infer, int n_outputs) {
    infer->n_outputs = n_outputs;
    infer->dtype = infer->several[0].dtype;
    return tk_infer_list(infer, (tk_list){infer->several[0].shape, infer->several[0].rank});
}

/* ---- leaves ---- */

tk_status tk_shape_scalar(tk_infer *infer) { return tk_infer_need(infer, 0, 0); }

tk_status tk_shape_attr(tk_infer *infer) {
    const tk_attrs_typed *attrs =
        infer->attrs; /* dtype and shape come first in all of these records */
    if (infer->op == TK_OP_iota) {
        const tk_attrs_iota *iota = infer->attrs;
        if (iota->dtype == TK_BOOL)
            return tk_fail(TK_DTYPE_ERROR, "iota: bool has no range, expected a number dtype");
        if (iota->shape.count) TK_TRY(tk_infer_axis(infer, iota->axis, (int)iota->shape.count));
    }
    TK_TRY(tk_infer_need(infer, 0, infer->op == TK_OP_placeholder ? 1 : 0));
    return tk_infer_list(infer, attrs->shape);
}

tk_status tk_shape_output(tk_infer *infer) {
    const tk_attrs_output *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, 1));
    const tk_node *tuple = infer->inputs[0];
    if (attrs->index < 0 || attrs->index >= tuple->n_outputs || !tuple->outputs)
        return tk_fail(TK_INVALID_ARGUMENT, "output: index %lld of an op with %u outputs",
                       (long long)attrs->index, tuple->n_outputs);
    const tk_type *type = &tuple->outputs[attrs->index];
    infer->dtype = type->dtype;
    return tk_infer_list(infer, (tk_list){type->shape, type->rank});
}

tk_status tk_shape_random_bits(tk_infer *infer) {
    const tk_attrs_bits *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, 1));
    const tk_node *key = infer->inputs[0];
    if (key->dtype != TK_UINT32 || key->rank < 1 || key->shape[key->rank - 1] != 2)
        return tk_fail(TK_SHAPE_ERROR, "random_bits: key is %s, expected u32 with a last axis of 2",
                       tk_text_node(key));
    if (attrs->width != 1 && attrs->width != 2 && attrs->width != 4)
        return tk_fail(TK_INVALID_ARGUMENT, "random_bits: width %lld, expected 1, 2 or 4",
                       (long long)attrs->width);
    infer->dtype = attrs->width == 1 ? TK_UINT8 : attrs->width == 2 ? TK_UINT16 : TK_UINT32;
    if (key->rank - 1 + attrs->shape.count > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "random_bits: more than %d axes", TK_MAX_RANK);
    tk_infer_like(infer, key);
    infer->rank--;
    for (int64_t i = 0; i < attrs->shape.count; i++)
        infer->shape[infer->rank++] = attrs->shape.items[i];
    return TK_OK;
}

/* ---- elementwise ---- */

static int arity_of(tk_op op) {
    const char *params = tk_op_of(op)->params;
    int arity = 0;
    for (const char *at = params; *at; at++) {
        const char *end = strchr(at, ',');
        const char *colon = strchr(at, ':');
        arity += !(colon && (!end || colon < end));
        if (!end) break;
        at = end;
    }
    return arity;
}

tk_status tk_shape_same(tk_infer *infer) {
    int arity = tk_op_of(infer->op)->params[0] == '-' ? 1 : arity_of(infer->op);
    TK_TRY(tk_infer_need(infer, (size_t)arity, (size_t)arity));
    for (size_t i = 1; i < infer->n_inputs; i++)
        if (!tk_shape_equal(infer->inputs[0], infer->inputs[i]))
            return tk_fail(TK_SHAPE_ERROR, "%s: operands are %s and %s, expected one shape",
                           tk_op_title(infer->op), tk_text_node(infer->inputs[0]),
                           tk_text_node(infer->inputs[i]));
    const tk_record record = tk_op_of(infer->op)->record;
    if (record == TK_RECORD_reduce) {
        tk_infer_like(infer, infer->inputs[0]);
        return tk_infer_axes(infer, ((const tk_attrs_reduce *)infer->attrs)->axes);
    }
    if (record == TK_RECORD_axis || record == TK_RECORD_scan || record == TK_RECORD_partition)
        TK_TRY(tk_infer_axis(infer, *(const int64_t *)infer->attrs, infer->inputs[0]->rank));
    if (record == TK_RECORD_partition) {
        const tk_attrs_partition *at = infer->attrs;
        if (at->kth < 0 || at->kth >= infer->inputs[0]->shape[at->axis])
            return tk_fail(TK_INVALID_ARGUMENT, "%s: kth %lld of an axis of length %lld",
                           tk_op_title(infer->op), (long long)at->kth,
                           (long long)infer->inputs[0]->shape[at->axis]);
    }
    tk_infer_like(infer, infer->inputs[0]);
    return TK_OK;
}

tk_status tk_shape_first(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 1, SIZE_MAX));
    tk_infer_like(infer, infer->inputs[0]);
    return TK_OK;
}

tk_status tk_shape_where(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 3, 3));
    tk_node *const *in = infer->inputs;
    if (in[0]->dtype != TK_BOOL || in[1]->dtype != in[2]->dtype || !tk_shape_equal(in[0], in[1]) ||
        !tk_shape_equal(in[1], in[2]))
        return tk_fail(TK_SHAPE_ERROR,
                       "where: operands are %s, %s and %s, expected bool and two of one type",
                       tk_text_node(in[0]), tk_text_node(in[1]), tk_text_node(in[2]));
    infer->dtype = (tk_dtype)in[1]->dtype;
    tk_infer_like(infer, in[1]);
    return TK_OK;
}

/* ---- reductions ---- */

/* Axes must be ascending, distinct and in range. */
tk_status tk_infer_axes(const tk_infer *infer, tk_list axes) {
    for (int64_t i = 0; i < axes.count; i++) {
        TK_TRY(tk_infer_axis(infer, axes.items[i], infer->rank));
        if (i && axes.items[i] <= axes.items[i - 1])
            return tk_fail(TK_AXIS_ERROR, "%s: axis %lld is given twice or out of order",
                           tk_op_title(infer->op), (long long)axes.items[i]);
    }
    return TK_OK;
}

static tk_status reduce_one(tk_infer *infer, int64_t axis, bool needs_elements) {
    if (needs_elements && infer->shape[axis] == 0)
        return tk_fail(TK_SHAPE_ERROR,
                       "%s: axis %lld of %s is empty and the reduction has no identity",
                       tk_op_title(infer->op), (long long)axis, tk_text_node(infer->inputs[0]));
    infer->shape[axis] = 1;
    return TK_OK;
}

tk_status tk_shape_reduce(tk_infer *infer) {
    const tk_attrs_reduce *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, 1));
    tk_infer_like(infer, infer->inputs[0]);
    TK_TRY(tk_infer_axes(infer, attrs->axes));
    bool needs_elements = infer->op == TK_OP_reduce_max || infer->op == TK_OP_reduce_min;
    for (int64_t i = 0; i < attrs->axes.count; i++)
        TK_TRY(reduce_one(infer, attrs->axes.items[i], needs_elements));
    return TK_OK;
}

tk_status tk_shape_reduce_axis(tk_infer *infer) {
    const tk_attrs_axis *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, 1));
    tk_infer_like(infer, infer->inputs[0]);
    TK_TRY(tk_infer_axis(infer, attrs->axis, infer->rank));
    return reduce_one(infer, attrs->axis, true);
}

/* ---- products ---- */

tk_status tk_shape_product(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 2, 2));
    const tk_node *a = infer->inputs[0], *b = infer->inputs[1];
    bool fits =
        a->rank >= 2 && a->rank == b->rank && a->shape[a->rank - 1] == b->shape[b->rank - 2];
    for (int i = 0; fits && i < a->rank - 2; i++) fits = a->shape[i] == b->shape[i];
    if (!fits)
        return tk_fail(TK_SHAPE_ERROR,
                       "matmul: operands are %s and %s, expected [..., M, K] and [..., K, N]",
                       tk_text_node(a), tk_text_node(b));
    tk_infer_like(infer, a);
    infer->shape[a->rank - 1] = b->shape[b->rank - 1];
    return TK_OK;
}

/* ---- shape ---- */

tk_status tk_shape_reshape(tk_infer *infer) {
    const tk_attrs_shape *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, 1));
    TK_TRY(tk_infer_list(infer, attrs->shape));
    int64_t size;
    TK_TRY(tk_shape_size(infer->dtype, infer->rank, infer->shape, &size));
    if (size == infer->inputs[0]->size) return TK_OK;
    char text[160];
    return tk_fail(TK_SHAPE_ERROR, "reshape: %s has %lld elements, shape %s has %lld",
                   tk_text_node(infer->inputs[0]), (long long)infer->inputs[0]->size,
                   tk_text_shape(text, sizeof text, infer->rank, infer->shape), (long long)size);
}

tk_status tk_shape_permute(tk_infer *infer) {
    const tk_attrs_axes *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, 1));
    const tk_node *in = infer->inputs[0];
    TK_TRY(need_count(infer, "axes", attrs->axes.count, in->rank));
    unsigned seen = 0;
    for (int i = 0; i < in->rank; i++) {
        int64_t axis = attrs->axes.items[i];
        TK_TRY(tk_infer_axis(infer, axis, in->rank));
        if (seen >> axis & 1)
            return tk_fail(TK_AXIS_ERROR, "transpose: axis %lld is given twice", (long long)axis);
        seen |= 1u << axis;
        infer->shape[i] = in->shape[axis];
    }
    infer->rank = in->rank;
    return TK_OK;
}

tk_status tk_shape_expand(tk_infer *infer) {
    const tk_attrs_shape *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, 1));
    TK_TRY(tk_infer_list(infer, attrs->shape));
    const tk_node *in = infer->inputs[0];
    int lead = infer->rank - in->rank;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < in->rank; i++)
        fits = in->shape[i] == 1 || in->shape[i] == infer->shape[lead + i];
    if (fits) return TK_OK;
    char text[160];
    return tk_fail(TK_SHAPE_ERROR, "broadcast: %s does not broadcast to shape %s", tk_text_node(in),
                   tk_text_shape(text, sizeof text, infer->rank, infer->shape));
}

/* The box start, start + step, ... of `count` elements lies inside 0..length-1. */
static bool box_fits(int64_t start, int64_t step, int64_t count, int64_t length) {
    if (count < 0) return false;
    if (count == 0) return true;
    int64_t span, last;
    if (start < 0 || start >= length) return false;
    if (count == 1) return true;
    if (tk_mul_overflow_i64(step, count - 1, &span) || tk_add_overflow_i64(start, span, &last))
        return false;
    return last >= 0 && last < length;
}

static tk_status check_box(const tk_infer *infer, tk_list start, tk_list step,
                           const int64_t *counts) {
    const tk_node *in = infer->inputs[0];
    TK_TRY(need_count(infer, "start", start.count, in->rank));
    TK_TRY(need_count(infer, "step", step.count, in->rank));
    for (int i = 0; i < in->rank; i++)
        if (!box_fits(start.items[i], step.items[i], counts[i], in->shape[i]))
            return tk_fail(
                TK_SHAPE_ERROR,
                "%s: axis %d: %lld elements from %lld by %lld leave an axis of length %lld",
                tk_op_title(infer->op), i, (long long)counts[i], (long long)start.items[i],
                (long long)step.items[i], (long long)in->shape[i]);
    return TK_OK;
}

tk_status tk_shape_slice(tk_infer *infer) {
    const tk_attrs_slice *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, 1));
    TK_TRY(need_count(infer, "shape", attrs->shape.count, infer->inputs[0]->rank));
    TK_TRY(tk_infer_list(infer, attrs->shape));
    return check_box(infer, attrs->start, attrs->step, infer->shape);
}

tk_status tk_shape_slice_set(tk_infer *infer) {
    const tk_attrs_slice_set *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 2, 2));
    const tk_node *update = infer->inputs[1];
    TK_TRY(need_count(infer, "the update's shape", update->rank, infer->inputs[0]->rank));
    TK_TRY(check_box(infer, attrs->start, attrs->step, update->shape));
    for (int64_t i = 0; i < attrs->step.count; i++)
        if (attrs->step.items[i] == 0)
            return tk_fail(TK_INVALID_ARGUMENT, "slice_update: axis %lld: the step is 0",
                           (long long)i);
    tk_infer_like(infer, infer->inputs[0]);
    return tk_infer_mode(infer, attrs->mode);
}

tk_status tk_shape_pad(tk_infer *infer) {
    const tk_attrs_pad *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 2, 2));
    const tk_node *in = infer->inputs[0];
    TK_TRY(need_count(infer, "low", attrs->low.count, in->rank));
    TK_TRY(need_count(infer, "high", attrs->high.count, in->rank));
    if (infer->inputs[1]->rank != 0)
        return tk_fail(TK_SHAPE_ERROR, "pad: the value is %s, expected a scalar",
                       tk_text_node(infer->inputs[1]));
    infer->rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        int64_t low = attrs->low.items[i], high = attrs->high.items[i];
        if (low < 0 || high < 0)
            return tk_fail(TK_INVALID_ARGUMENT,
                           "pad: axis %d: widths %lld and %lld, expected none below 0", i,
                           (long long)low, (long long)high);
        if (tk_add_overflow_i64(in->shape[i], low, &infer->shape[i]) ||
            tk_add_overflow_i64(infer->shape[i], high, &infer->shape[i]))
            return tk_fail(TK_OVERFLOW, "pad: axis %d: its padded length does not fit 63 bits", i);
    }
    return TK_OK;
}

tk_status tk_shape_join(tk_infer *infer) {
    const tk_attrs_axis *attrs = infer->attrs;
    TK_TRY(tk_infer_need(infer, 1, SIZE_MAX));
    tk_infer_like(infer, infer->inputs[0]);
    TK_TRY(tk_infer_axis(infer, attrs->axis, infer->rank));
    for (size_t i = 1; i < infer->n_inputs; i++) {
        const tk_node *in = infer->inputs[i];
        bool fits = in->rank == infer->rank;
        for (int axis = 0; fits && axis < in->rank; axis++)
            fits = axis == attrs->axis || in->shape[axis] == infer->shape[axis];
        if (!fits)
            return tk_fail(
                TK_SHAPE_ERROR, "concatenate: operand 0 is %s and operand %zu is %s on axis %lld",
                tk_text_node(infer->inputs[0]), i, tk_text_node(in), (long long)attrs->axis);
        if (tk_add_overflow_i64(infer->shape[attrs->axis], in->shape[attrs->axis],
                                &infer->shape[attrs->axis]))
            return tk_fail(TK_OVERFLOW, "concatenate: the joined axis does not fit 63 bits");
    }
    return TK_OK;
}

tk_status tk_shape_bitcast(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 1, 1));
    const tk_node *in = infer->inputs[0];
    int64_t from = (int64_t)tk_dtype_size((tk_dtype)in->dtype),
            to = (int64_t)tk_dtype_size(infer->dtype);
    tk_infer_like(infer, in);
    if (from == to) return TK_OK;
    int64_t last = in->rank ? in->shape[in->rank - 1] : 0;
    if (in->rank == 0 || last * from % to != 0)
        return tk_fail(TK_SHAPE_ERROR, "view: the last axis of %s does not divide into %s",
                       tk_text_node(in), tk_dtype_name(infer->dtype));
    infer->shape[in->rank - 1] = from > to ? last * (from / to) : last / (to / from);
    return TK_OK;
}
