/* argmax and argmin on devices: a thread goes along the axis of one result and keeps the first of
 * the best; a NaN is better than any number. */
#include "array/storage.h"
#include "base/error.h"
#include "compile/index.h"
#include "compile/kernel_text.h"
#include "compile/kernels_made.h"
#include "compile/launch.h"
#include "compile/run.h"

typedef struct signature {
    int least; /* argmin */
    tk_dtype dtype;
} signature;

/* %v of the value's type from the element %l. */
static void put_value(const signature *s, tk_strbuf *out) {
    const char *type = s->dtype == TK_BOOL ? "i32" : tk_text_value(s->dtype);
    if (s->dtype == TK_BOOL || tk_text_is_small(s->dtype))
        tk_strbuf_printf(out, "    %%v = extend_%s %%l : i32\n",
                         tk_dtype_kind(s->dtype) == TK_KIND_SIGNED ? "signed" : "unsigned");
    else if (tk_text_is_half(s->dtype))
        tk_strbuf_printf(out, "    %%v = convert %%l : f32\n");
    else if (tk_dtype_is_float(s->dtype))
        tk_strbuf_printf(out, "    %%v = copysign %%l, %%l : %s\n", type);
    else
        tk_strbuf_printf(out, "    %%v = or %%l, %s(0) : %s\n", type, type);
}

/* %better: whether %v is to replace %best. */
static void put_choice(const signature *s, tk_strbuf *out) {
    if (!tk_dtype_is_float(s->dtype)) {
        bool is_signed = tk_dtype_kind(s->dtype) == TK_KIND_SIGNED;
        tk_strbuf_printf(out, "    %%ahead = icmp.%c%s %%v, %%best : i1\n", is_signed ? 's' : 'u',
                         s->least ? "lt" : "gt");
    } else {
        tk_strbuf_printf(out,
                         "    %%more = fcmp.%s %%v, %%best : i1\n"
                         "    %%odd = fcmp.neu %%v, %%v : i1\n"
                         "    %%known = fcmp.eq %%best, %%best : i1\n"
                         "    %%new = and %%odd, %%known : i1\n"
                         "    %%ahead = or %%more, %%new : i1\n",
                         s->least ? "lt" : "gt");
    }
    tk_strbuf_printf(out, "    %%start = icmp.eq %%j, i64(0) : i1\n"
                          "    %%better = or %%ahead, %%start : i1\n");
}

static void put_kernel(const void *key, tk_strbuf *out) {
    const signature *s = key;
    const char *memory = tk_text_memory(s->dtype),
               *type = s->dtype == TK_BOOL ? "i32" : tk_text_value(s->dtype),
               *zero = tk_dtype_is_float(s->dtype) ? "0.0" : "0";
    tk_strbuf_printf(out,
                     "tiki kernel 1\n\nkernel arg%s_%s(\n"
                     "  %%x: ptr<%s, global> read align %zu,\n"
                     "  %%y: ptr<i32, global> write align 4,\n"
                     "  %%n: i64,\n  %%inner: i64,\n  %%length: i64)\nform thread\n"
                     "require %%n >= 0\nrequire %%inner >= 1\n",
                     s->least ? "min" : "max", tk_dtype_name(s->dtype), memory,
                     tk_dtype_size(s->dtype));
    tk_text_put_elements(128, out);
    tk_strbuf_printf(out,
                     "    %%outer = udiv %%i, %%inner : i64\n    %%at = urem %%i, %%inner : i64\n"
                     "    %%span = mul %%length, %%inner : i64\n"
                     "    %%line = mul %%outer, %%span : i64\n    %%from = add %%line, %%at : i64\n"
                     "    %%px = offset %%x, %%from : ptr<%s, global>\n"
                     "    %%end, %%index = for %%j = i64(0) to %%length step i64(1) carry "
                     "(%%best = %s(%s), %%where = i64(0)) {\n"
                     "    %%o = mul %%j, %%inner : i64\n"
                     "    %%pj = offset %%px, %%o : ptr<%s, global>\n    %%l = load %%pj : %s\n",
                     memory, type, zero, memory, memory);
    put_value(s, out);
    put_choice(s, out);
    tk_strbuf_printf(out,
                     "    %%b = select %%better, %%v, %%best : %s\n"
                     "    %%w = select %%better, %%j, %%where : i64\n    yield %%b, %%w\n    }\n"
                     "    %%r = truncate %%index : i32\n"
                     "    %%py = offset %%y, %%i : ptr<i32, global>\n    store %%py, %%r\n  }\n}\n",
                     type);
}

static tk_kernels_made kernels = {
    PTHREAD_MUTEX_INITIALIZER, "arg", sizeof(signature), put_kernel, {0}};

static tk_status run(const tk_body_call *call, const tk_strided *x, int axis) {
    const tk_strided *out = &call->outputs[0];
    signature key = {call->op == TK_OP_reduce_argmin, x->dtype};
    int64_t inner = 1;
    tk_kernel *kernel;
    for (int i = x->rank - 1; i > axis; i--) inner *= x->shape[i];
    TK_TRY(tk_kernels_find(&kernels, &key, &kernel));
    tk_run_argument arguments[] = {{.data = x->data},
                                   {.data = out->data},
                                   {.bits = (uint64_t)out->size},
                                   {.bits = (uint64_t)inner},
                                   {.bits = (uint64_t)x->shape[axis]}};
    tk_extent_of(x, &arguments[0].before, &arguments[0].bytes);
    tk_extent_of(out, &arguments[1].before, &arguments[1].bytes);
    tk_run launch = {kernel, NULL, 5, arguments, TK_TARGET_PTX, NULL};
    return tk_run_kernel(call->device, call->queue, &launch);
}

tk_status tk_body_arg_on_device(const tk_body_call *call) {
    const tk_attrs_axis *attrs = call->attrs;
    tk_operand_copies copies = {.call = call};
    const tk_strided *x = &call->inputs[0];
    tk_strided copied;
    tk_status status = TK_OK;
    if (call->outputs[0].size == 0) return TK_OK;
    if (!tk_strides_row_major(x->rank, x->shape, x->strides)) {
        status = tk_copy_operand(&copies, x, &copied);
        x = &copied;
    }
    if (status == TK_OK) status = run(call, x, (int)attrs->axis);
    tk_release_copies(&copies);
    return status;
}
