/* See bodies.h. Moves are copies of the library's; elementwise ops are generated kernels.
 *
 * A scalar constant is written by the host: its bits are in the graph. Whole arrays of one value
 * are an `expand` of it, which a copy writes out when somebody needs it in memory. */
#include "compile/bodies.h"

#include <string.h>

#include "array/storage.h"
#include "base/error.h"
#include "compile/elementwise.h"
#include "compile/index.h"
#include "compile/launch.h"
#include "compile/plans.h"
#include "compile/reduce.h"
#include "runtime/device.h"

/* ---- copies ---- */

static tk_status copy_view(const tk_body_call *call, const tk_strided *from, const tk_strided *to) {
    tk_strided tensors[] = {*from, *to};
    tk_library_run run = {.id = TK_LIBRARY_COPY, .n_tensors = 2, .tensors = tensors};
    return to->size ? tk_run_library(call, &run) : TK_OK;
}

/* `from` with the axes that `to` has: they may differ by a reshape. */
static tk_status copy_reshaped(const tk_body_call *call) {
    const tk_strided *from = &call->inputs[0];
    tk_strided to = call->outputs[0];
    if (to.rank == from->rank && !memcmp(to.shape, from->shape, (size_t)to.rank * sizeof *to.shape))
        return copy_view(call, from, &to);
    to.rank = from->rank;
    memcpy(to.shape, from->shape, (size_t)to.rank * sizeof *to.shape);
    tk_strides_set_row_major(to.rank, to.shape, to.strides);
    return copy_view(call, from, &to);
}

tk_status tk_body_copy_on_device(const tk_body_call *call) { return copy_reshaped(call); }

tk_status tk_copy_on_device(const tk_body_call *call, const tk_strided *from,
                            const tk_strided *to) {
    return copy_view(call, from, to);
}

/* Scalars only. */
tk_status tk_body_fill_on_device(const tk_body_call *call) {
    char bytes[16];
    tk_strided host = call->outputs[0];
    host.data = bytes;
    tk_body_call on_host = *call;
    on_host.outputs = &host;
    TK_TRY(tk_cpu_executor.bodies[TK_OP_const](&on_host));
    const tk_driver *driver = call->device->driver;
    size_t size = tk_dtype_size(host.dtype);
    if (call->queue && driver->queue_upload)
        return driver->queue_upload(call->queue, call->outputs[0].data, bytes, size);
    return tk_device_copy(call->device, call->outputs[0].data, bytes, size, TK_COPY_TO_DEVICE);
}

tk_status tk_body_elementwise_on_device(const tk_body_call *call) {
    return tk_elementwise_run(call, call->op, call->n_inputs, call->inputs, call->outputs);
}

/* ---- boxes ---- */

/* The part of `view` that begins at `start` and has the lengths of `shape`, by `step` along each
 * axis (NULL: 1). */
static tk_strided box_of(const tk_strided *view, const int64_t *start, const int64_t *step,
                         const int64_t *shape) {
    tk_strided box = *view;
    int64_t offset = 0;
    box.size = 1;
    for (int i = 0; i < view->rank; i++) {
        offset += start[i] * view->strides[i];
        box.shape[i] = shape[i];
        box.size *= shape[i];
        if (step) box.strides[i] *= step[i];
    }
    if (box.size) box.data = (char *)view->data + offset * (int64_t)tk_dtype_size(view->dtype);
    return box;
}

tk_status tk_body_join_on_device(const tk_body_call *call) {
    const tk_attrs_axis *attrs = call->attrs;
    int64_t start[TK_AXES_MAX] = {0};
    for (int i = 0; i < call->n_inputs; i++) {
        const tk_strided *in = &call->inputs[i];
        tk_strided box = box_of(&call->outputs[0], start, NULL, in->shape);
        TK_TRY(copy_view(call, in, &box));
        start[attrs->axis] += in->shape[attrs->axis];
    }
    return TK_OK;
}

/* A scalar seen as an array. */
static tk_strided repeated(const tk_strided *scalar, const tk_strided *like) {
    tk_strided view = *like;
    view.data = scalar->data;
    memset(view.strides, 0, sizeof view.strides);
    return view;
}

tk_status tk_body_pad_on_device(const tk_body_call *call) {
    const tk_attrs_pad *attrs = call->attrs;
    const tk_strided *in = &call->inputs[0], *out = &call->outputs[0];
    tk_strided value = repeated(&call->inputs[1], out);
    TK_TRY(copy_view(call, &value, out));
    tk_strided box = box_of(out, attrs->low.items, NULL, in->shape);
    return copy_view(call, in, &box);
}

static const tk_op mode_ops[TK_MODE_COUNT] = {[TK_ADD] = TK_OP_add,
                                              [TK_MAX] = TK_OP_maximum,
                                              [TK_MIN] = TK_OP_minimum,
                                              [TK_PROD] = TK_OP_multiply};

tk_status tk_body_set_on_device(const tk_body_call *call) {
    const tk_attrs_slice_set *attrs = call->attrs;
    const tk_strided *a = &call->inputs[0], *update = &call->inputs[1], *out = &call->outputs[0];
    if (out->data != a->data) TK_TRY(copy_view(call, a, out));
    tk_strided box = box_of(out, attrs->start.items, attrs->step.items, update->shape);
    if (attrs->mode == TK_SET) return copy_view(call, update, &box);
    tk_strided operands[] = {box, *update};
    return tk_elementwise_run(call, mode_ops[attrs->mode], 2, operands, &box);
}

/* ---- what is refused ---- */

tk_status tk_check_on_device(tk_op op, size_t n_inputs, tk_node *const *inputs, const void *attrs) {
    tk_lower lower = tk_op_of(op)->lower;
    if (lower == TK_LOWER_REDUCE || lower == TK_LOWER_MATMUL)
        return tk_reduce_check(op, (tk_dtype)inputs[0]->dtype);
    if (lower == TK_LOWER_INDEX && tk_index_is(op)) return tk_index_check(op, inputs, attrs);
    if (op == TK_OP_slice_set) {
        const tk_attrs_slice_set *set = attrs;
        tk_dtype dtype = (tk_dtype)inputs[0]->dtype;
        return set->mode == TK_SET ? TK_OK
                                   : tk_elementwise_check(mode_ops[set->mode], dtype, dtype);
    }
    if (op == TK_OP_iota) return tk_iota_check((tk_dtype)((const tk_attrs_iota *)attrs)->dtype);
    if (lower != TK_LOWER_EWISE) return TK_OK;
    tk_dtype in = (tk_dtype)inputs[n_inputs - 1]->dtype, out = in;
    if (op == TK_OP_astype) out = (tk_dtype)((const tk_attrs_dtype *)attrs)->dtype;
    return tk_elementwise_check(op, in, out);
}

/* ---- the tables ---- */

static bool in_place(tk_op op, int index) {
    if (op == TK_OP_slice_set) return index == 0;
    return tk_op_of(op)->lower == TK_LOWER_EWISE && op != TK_OP_astype && op != TK_OP_where;
}

static const char *emulator_variant(void) { return "kernels, executed and judged"; }
static const char *cuda_variant(void) { return "kernels, assembled"; }

#define EWISE(op) [TK_OP_##op] = tk_body_elementwise_on_device

#define BODIES                                                                                     \
    {                                                                                              \
        [TK_OP_const] = tk_body_fill_on_device, [TK_OP_contiguous] = tk_body_copy_on_device,       \
        [TK_OP_reshape_to] = tk_body_copy_on_device, [TK_OP_join] = tk_body_join_on_device,        \
        [TK_OP_pad_with] = tk_body_pad_on_device, [TK_OP_slice_set] = tk_body_set_on_device,       \
        [TK_OP_launch] = tk_body_launch, EWISE(astype), EWISE(add), EWISE(subtract),               \
        EWISE(multiply), EWISE(divide), EWISE(negative), EWISE(abs), EWISE(sqrt), EWISE(rsqrt),    \
        EWISE(ceil), EWISE(floor), EWISE(trunc), EWISE(rint), EWISE(maximum), EWISE(minimum),      \
        EWISE(equal), EWISE(not_equal), EWISE(less), EWISE(less_equal), EWISE(greater),            \
        EWISE(greater_equal), EWISE(logical_not), EWISE(logical_and), EWISE(logical_or),           \
        EWISE(bitwise_and), EWISE(bitwise_or), EWISE(bitwise_xor), EWISE(where), EWISE(exp),       \
        EWISE(log), EWISE(log2), EWISE(sin), EWISE(cos), EWISE(tanh), EWISE(erf), EWISE(expm1),    \
        EWISE(log1p), EWISE(log10), EWISE(tan), EWISE(sinh), EWISE(cosh), EWISE(arcsin),           \
        EWISE(arccos), EWISE(arctan), EWISE(arcsinh), EWISE(arccosh), EWISE(arctanh),              \
        EWISE(erfinv), EWISE(sign), EWISE(bitwise_invert), EWISE(floor_divide), EWISE(remainder),  \
        EWISE(power), EWISE(arctan2), EWISE(logaddexp),                                            \
                                                                                                   \
        EWISE(sigmoid), [TK_OP_reduce_sum] = tk_body_reduce_on_device,                             \
        [TK_OP_reduce_max] = tk_body_reduce_on_device,                                             \
        [TK_OP_reduce_min] = tk_body_reduce_on_device,                                             \
        [TK_OP_reduce_prod] = tk_body_reduce_on_device,                                            \
        [TK_OP_reduce_any] = tk_body_reduce_on_device,                                             \
        [TK_OP_reduce_all] = tk_body_reduce_on_device,                                             \
        [TK_OP_reduce_argmax] = tk_body_arg_on_device,                                             \
        [TK_OP_reduce_argmin] = tk_body_arg_on_device, [TK_OP_gather] = tk_body_gather_on_device,  \
        [TK_OP_gather_along] = tk_body_gather_along_on_device,                                     \
        [TK_OP_scatter] = tk_body_scatter_on_device,                                               \
        [TK_OP_scatter_along] = tk_body_scatter_along_on_device,                                   \
        [TK_OP_random_bits] = tk_body_random_on_device,                                            \
        [TK_OP_product] = tk_body_product_on_device, [TK_OP_iota] = tk_body_iota_on_device,        \
    }

const tk_executor tk_emulator_executor = {.name = "emulator",
                                          .variant = emulator_variant,
                                          .in_place = in_place,
                                          .check = tk_check_on_device,
                                          .bodies = BODIES};

const tk_executor tk_cuda_executor = {.name = "cuda",
                                      .variant = cuda_variant,
                                      .in_place = in_place,
                                      .check = tk_check_on_device,
                                      .bodies = BODIES};
