/* The NaN trap: a pass over every float result, to name the op that made the first NaN. */
#include "array/plan.h"
#include "base/error.h"
#include "base/half.h"

static bool element_is_nan(tk_dtype dtype, const char *at) {
    switch (dtype) {
    case TK_FLOAT16:
        return (*(const uint16_t *)(const void *)at & 0x7fffu) > 0x7c00u;
    case TK_BFLOAT16:
        return (*(const uint16_t *)(const void *)at & 0x7fffu) > 0x7f80u;
    case TK_FLOAT32:
        return *(const float *)(const void *)at != *(const float *)(const void *)at;
    case TK_FLOAT64:
        return *(const double *)(const void *)at != *(const double *)(const void *)at;
    case TK_COMPLEX64: {
        const float *pair = (const float *)(const void *)at;
        return pair[0] != pair[0] || pair[1] != pair[1];
    }
    default:
        return false;
    }
}

static bool has_nan(const tk_strided *view) {
    if (!tk_dtype_is_inexact(view->dtype)) return false;
    int64_t index[TK_AXES_MAX] = {0}, size = (int64_t)tk_dtype_size(view->dtype);
    const char *at = view->data;
    for (int64_t i = 0; i < view->size; i++) {
        if (element_is_nan(view->dtype, at)) return true;
        for (int axis = view->rank - 1; axis >= 0; axis--) {
            at += view->strides[axis] * size;
            if (++index[axis] < view->shape[axis]) break;
            at -= view->strides[axis] * size * view->shape[axis];
            index[axis] = 0;
        }
    }
    return false;
}

tk_status tk_nan_check(const char *op, int n_inputs, const tk_strided *inputs, int n_outputs,
                       const tk_strided *outputs) {
    bool made = false;
    for (int i = 0; i < n_outputs; i++) made |= has_nan(&outputs[i]);
    for (int i = 0; made && i < n_inputs; i++)
        if (inputs[i].data != outputs[0].data && has_nan(&inputs[i])) made = false;
    return made ? tk_fail(TK_NAN_TRAPPED, "%s made a NaN from operands without one", op) : TK_OK;
}
