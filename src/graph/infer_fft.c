/* Shape inference of Fourier transforms. */
#include "base/error.h"
#include "graph/infer.h"
#include "graph/text.h"

/* Transforms are planned with lengths of an int. */
#define LONGEST INT32_MAX

static tk_status check_operand(tk_infer *infer, tk_dtype dtype, int64_t axis) {
    TK_TRY(tk_infer_need(infer, 1, 1));
    const tk_node *in = infer->inputs[0];
    if (in->dtype != dtype)
        return tk_fail(TK_DTYPE_ERROR, "%s: operand is %s, expected %s", tk_op_title(infer->op),
                       tk_text_node(in), tk_dtype_name(dtype));
    tk_infer_like(infer, in);
    return tk_infer_axis(infer, axis, in->rank);
}

static tk_status check_length(const tk_infer *infer, int64_t length) {
    if (length > 0 && length <= LONGEST) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "%s: a transform of length %lld, expected 1 to %d",
                   tk_op_title(infer->op), (long long)length, LONGEST);
}

tk_status tk_shape_fft(tk_infer *infer) {
    const tk_attrs_fft *attrs = infer->attrs;
    TK_TRY(check_operand(infer, TK_COMPLEX64, attrs->axis));
    return check_length(infer, infer->shape[attrs->axis]);
}

tk_status tk_shape_rfft(tk_infer *infer) {
    const tk_attrs_fft *attrs = infer->attrs;
    TK_TRY(check_operand(infer, TK_FLOAT32, attrs->axis));
    TK_TRY(check_length(infer, infer->shape[attrs->axis]));
    infer->dtype = TK_COMPLEX64;
    infer->shape[attrs->axis] = infer->shape[attrs->axis] / 2 + 1;
    return TK_OK;
}

tk_status tk_shape_irfft(tk_infer *infer) {
    const tk_attrs_irfft *attrs = infer->attrs;
    TK_TRY(check_operand(infer, TK_COMPLEX64, attrs->axis));
    TK_TRY(check_length(infer, attrs->length));
    if (infer->shape[attrs->axis] != attrs->length / 2 + 1)
        return tk_fail(TK_SHAPE_ERROR,
                       "irfft: %s on axis %lld for length %lld, expected %lld frequencies",
                       tk_text_node(infer->inputs[0]), (long long)attrs->axis,
                       (long long)attrs->length, (long long)attrs->length / 2 + 1);
    infer->dtype = TK_FLOAT32;
    infer->shape[attrs->axis] = attrs->length;
    return TK_OK;
}
