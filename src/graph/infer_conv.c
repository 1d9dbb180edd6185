/* Shape inference of convolutions. Negative padding crops, and a kernel longer than the padded
 * input gives no element: gradients of convolutions are convolutions that may need either. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "graph/conv.h"
#include "graph/infer.h"
#include "graph/text.h"

static tk_status check_list(const char *what, const char *name, tk_list list, int axes,
                            int64_t least) {
    if (list.count != axes)
        return tk_fail(TK_SHAPE_ERROR, "%s: %s has %lld entries for %d spatial axes", what, name,
                       (long long)list.count, axes);
    for (int i = 0; i < axes; i++)
        if (list.items[i] < least || list.items[i] > TK_CONV_LIMIT)
            return tk_fail(TK_INVALID_ARGUMENT, "%s: %s is %lld, expected %lld to %lld", what, name,
                           (long long)list.items[i], (long long)least, (long long)TK_CONV_LIMIT);
    return TK_OK;
}

static tk_status check_lists(const char *what, const tk_attrs_conv *attrs, int axes) {
    TK_TRY(check_list(what, "stride", attrs->stride, axes, 1));
    TK_TRY(check_list(what, "kernel_dilation", attrs->kernel_dilation, axes, 1));
    TK_TRY(check_list(what, "input_dilation", attrs->input_dilation, axes, 1));
    TK_TRY(check_list(what, "padding low", attrs->low, axes, -(int64_t)TK_CONV_LIMIT));
    return check_list(what, "padding high", attrs->high, axes, -(int64_t)TK_CONV_LIMIT);
}

static tk_status check_operands(const char *what, const tk_node *input, const tk_node *weight,
                                int64_t groups) {
    if (input->rank < 3 || input->rank > 2 + TK_CONV_AXES || weight->rank != input->rank)
        return tk_fail(TK_SHAPE_ERROR,
                       "%s: input is %s and weight %s, expected [N, ..., C] and [O, ..., C / "
                       "groups] with one to three axes between",
                       what, tk_text_node(input), tk_text_node(weight));
    int64_t channels = input->shape[input->rank - 1], each = weight->shape[weight->rank - 1];
    if (groups < 1 || weight->shape[0] % groups || channels % groups || channels / groups != each)
        return tk_fail(TK_SHAPE_ERROR,
                       "%s: input is %s and weight %s for %lld groups, expected input channels "
                       "that are groups times the weight's, and outputs that groups divide",
                       what, tk_text_node(input), tk_text_node(weight), (long long)groups);
    return TK_OK;
}

static tk_status span_of(const char *what, int64_t length, int64_t dilation, int64_t *out_span) {
    if (length == 0) {
        *out_span = 0;
        return TK_OK;
    }
    if (tk_mul_overflow_i64(length - 1, dilation, out_span) || *out_span > INT64_MAX / 4)
        return tk_fail(TK_OVERFLOW, "%s: %lld elements %lld apart do not fit 63 bits", what,
                       (long long)length, (long long)dilation);
    ++*out_span;
    return TK_OK;
}

static tk_status output_length(const tk_infer *infer, int axis, int64_t *out_length) {
    const tk_attrs_conv *attrs = infer->attrs;
    const char *what = tk_op_title(infer->op);
    int64_t input, kernel;
    TK_TRY(span_of(what, infer->inputs[0]->shape[1 + axis], attrs->input_dilation.items[axis],
                   &input));
    TK_TRY(span_of(what, infer->inputs[1]->shape[1 + axis], attrs->kernel_dilation.items[axis],
                   &kernel));
    int64_t room = input + attrs->low.items[axis] + attrs->high.items[axis] - kernel;
    *out_length = room < 0 ? 0 : room / attrs->stride.items[axis] + 1;
    return TK_OK;
}

tk_status tk_shape_conv(tk_infer *infer) {
    const tk_attrs_conv *attrs = infer->attrs;
    const char *what = tk_op_title(infer->op);
    TK_TRY(tk_infer_need(infer, 2, 2));
    const tk_node *input = infer->inputs[0], *weight = infer->inputs[1];
    TK_TRY(check_operands(what, input, weight, attrs->groups));
    TK_TRY(check_lists(what, attrs, input->rank - 2));
    infer->rank = input->rank;
    infer->shape[0] = input->shape[0];
    infer->shape[infer->rank - 1] = weight->shape[0];
    for (int i = 0; i < infer->rank - 2; i++) TK_TRY(output_length(infer, i, &infer->shape[1 + i]));
    return TK_OK;
}
