/* Ops on strided boxes of the output: join, pad, slice_set. Each is a copy, or an elementwise op,
 * on a view of the output. */
#include <string.h>

#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_ewise.h"
#include "cpu/body_loop.h"

/* The part of `view` that begins at `start` and has the lengths of `shape`, by `step` along each
 * axis (NULL: 1). */
static tk_strided box_of(const tk_strided *view, const int64_t *start, const int64_t *step,
                         const int64_t *shape) {
    tk_strided box = *view;
    char *data = view->data;
    box.size = 1;
    for (int i = 0; i < view->rank; i++) {
        box.shape[i] = shape[i];
        box.size *= shape[i];
        if (step) box.strides[i] *= step[i];
        if (shape[i]) data += start[i] * view->strides[i] * (int64_t)tk_dtype_size(view->dtype);
    }
    if (box.size) box.data = data;
    return box;
}

tk_status tk_body_join(const tk_body_call *call) {
    const tk_attrs_axis *attrs = call->attrs;
    int64_t start[TK_AXES_MAX] = {0};
    for (int i = 0; i < call->n_inputs; i++) {
        const tk_strided *in = &call->inputs[i];
        tk_strided box = box_of(&call->outputs[0], start, NULL, in->shape);
        tk_copy_view(in, &box);
        start[attrs->axis] += in->shape[attrs->axis];
    }
    return TK_OK;
}

/* The margins of one axis after the other: of the axes before it only the inside is left to fill.
 */
static void fill_margins(const tk_strided *out, const tk_attrs_pad *attrs, const int64_t *inside,
                         const void *value) {
    int64_t start[TK_AXES_MAX] = {0}, shape[TK_AXES_MAX];
    memcpy(shape, out->shape, sizeof shape);
    for (int i = 0; i < out->rank; i++) {
        int64_t low = attrs->low.items[i], high = attrs->high.items[i];
        shape[i] = low;
        tk_strided box = box_of(out, start, NULL, shape);
        tk_fill_view(value, &box);
        start[i] = low + inside[i];
        shape[i] = high;
        box = box_of(out, start, NULL, shape);
        tk_fill_view(value, &box);
        start[i] = low;
        shape[i] = inside[i];
    }
}

tk_status tk_body_pad(const tk_body_call *call) {
    const tk_attrs_pad *attrs = call->attrs;
    const tk_strided *in = &call->inputs[0], *out = &call->outputs[0];
    fill_margins(out, attrs, in->shape, call->inputs[1].data);
    tk_strided box = box_of(out, attrs->low.items, NULL, in->shape);
    tk_copy_view(in, &box);
    return TK_OK;
}

/* box = box op update, element by element. */
static void combine_view(tk_mode mode, const tk_strided *box, const tk_strided *update) {
    static const tk_op ops[TK_MODE_COUNT] = {[TK_ADD] = TK_OP_add,
                                             [TK_MAX] = TK_OP_maximum,
                                             [TK_MIN] = TK_OP_minimum,
                                             [TK_PROD] = TK_OP_multiply};
    tk_ewise e = tk_ewise_prepare(ops[mode], box->dtype);
    tk_loop loop = tk_loop_over(box->rank, box->shape);
    tk_loop_add(&loop, box);
    tk_loop_add(&loop, box);
    tk_loop_add(&loop, update);
    tk_loop_collapse(&loop);
    tk_loop_lengthen(&loop);
    tk_loop_each(&loop, 16384, tk_ewise_run, &e);
}

tk_status tk_body_slice_set(const tk_body_call *call) {
    const tk_attrs_slice_set *attrs = call->attrs;
    const tk_strided *a = &call->inputs[0], *update = &call->inputs[1], *out = &call->outputs[0];
    if (out->data != a->data) tk_copy_view(a, out);
    tk_strided box = box_of(out, attrs->start.items, attrs->step.items, update->shape);
    if (attrs->mode == TK_SET)
        tk_copy_view(update, &box);
    else
        combine_view((tk_mode)attrs->mode, &box, update);
    return TK_OK;
}
