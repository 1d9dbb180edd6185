/* Leaves (const, iota) and the ops that only move or convert elements. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_loop.h"

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

tk_status tk_body_const(const tk_body_call *call) {
    const tk_attrs_constant *attrs = call->attrs;
    const tk_strided *out = &call->outputs[0];
    if (out->dtype == TK_COMPLEX64) {
        float parts[2] = {(float)double_of(attrs->real), (float)double_of(attrs->imag)};
        memcpy(out->data, parts, sizeof parts);
    } else if (tk_dtype_is_inexact(out->dtype)) {
        double value = double_of(attrs->real);
        tk_convert_run(TK_FLOAT64, out->dtype, &value, out->data, 1);
    } else {
        tk_convert_run(TK_UINT64, out->dtype, &attrs->real, out->data, 1);
    }
    return TK_OK;
}

/* Element i of the range, before it is converted: a uint64_t for integers, a double for others. */
typedef union range_element {
    uint64_t whole;
    double real;
} range_element;

#define RANGE_BLOCK 512

static void fill_range(const tk_attrs_iota *attrs, tk_dtype dtype, int64_t count, char *out) {
    range_element block[RANGE_BLOCK];
    bool whole = tk_dtype_is_integer(dtype);
    int64_t bytes = (int64_t)tk_dtype_size(dtype);
    double start = double_of(attrs->start), step = double_of(attrs->step);
    for (int64_t i = 0; i < count; i += RANGE_BLOCK) {
        int64_t part = count - i < RANGE_BLOCK ? count - i : RANGE_BLOCK;
        for (int64_t j = 0; j < part; j++) {
            if (whole)
                block[j].whole = attrs->start + attrs->step * (uint64_t)(i + j);
            else
                block[j].real = start + step * (double)(i + j);
        }
        tk_convert_run(whole ? TK_UINT64 : TK_FLOAT64, dtype, block, out + i * bytes, part);
    }
}

tk_status tk_body_iota(const tk_body_call *call) {
    const tk_attrs_iota *attrs = call->attrs;
    const tk_strided *out = &call->outputs[0];
    if (out->size == 0) return TK_OK;
    int64_t count = out->rank ? out->shape[attrs->axis] : 1;
    if (out->size == count) {
        fill_range(attrs, out->dtype, count, out->data);
        return TK_OK;
    }
    tk_strided line = *out;
    TK_TRY(tk_scratch_new(count, tk_dtype_size(out->dtype), &line.data));
    fill_range(attrs, out->dtype, count, line.data);
    memset(line.strides, 0, sizeof line.strides);
    line.strides[attrs->axis] = 1;
    tk_copy_view(&line, out);
    tk_free(line.data);
    return TK_OK;
}

/* ---- copies ---- */

tk_status tk_body_astype(const tk_body_call *call) {
    tk_convert_view(&call->inputs[0], &call->outputs[0]);
    return TK_OK;
}

/* The same elements in row-major order: the output seen under the operand's shape. */
tk_status tk_body_reshape(const tk_body_call *call) {
    const tk_strided *in = &call->inputs[0];
    tk_strided out = tk_view_dense(in->dtype, in->rank, in->shape, call->outputs[0].data);
    tk_copy_view(in, &out);
    return TK_OK;
}

/* Row-major bytes stay the same under the new dtype. */
tk_status tk_body_bitcast(const tk_body_call *call) { return tk_body_reshape(call); }
