/* The op `iota` on devices: start + step * coordinate along one axis, in f64 or i64 and then
 * rounded or cut to the dtype, as the processor's body does. A thread writes one element. */
#include "base/error.h"
#include "compile/bodies.h"
#include "compile/kernel_text.h"
#include "compile/kernels_made.h"
#include "compile/run.h"

static void put_value(tk_dtype dtype, tk_strbuf *out) {
    const char *memory = tk_text_memory(dtype);
    if (tk_dtype_is_float(dtype)) {
        tk_strbuf_printf(out,
                         "    %%f = float_from_signed %%c : f64\n    %%g = mul %%f, %%step : f64\n"
                         "    %%v = add %%start, %%g : f64\n");
        if (dtype != TK_FLOAT64) tk_strbuf_printf(out, "    %%w = convert %%v : %s\n", memory);
        return;
    }
    tk_strbuf_printf(out, "    %%g = mul %%c, %%step : i64\n    %%v = add %%start, %%g : i64\n");
    if (tk_dtype_size(dtype) < 8) tk_strbuf_printf(out, "    %%w = truncate %%v : %s\n", memory);
}

static void put_kernel(const void *key, tk_strbuf *out) {
    tk_dtype dtype = *(const tk_dtype *)key;
    const char *memory = tk_text_memory(dtype), *number = tk_dtype_is_float(dtype) ? "f64" : "i64";
    tk_strbuf_printf(
        out,
        "tiki kernel 1\n\nkernel iota_%s(\n  %%y: ptr<%s, global> write align %zu,\n"
        "  %%n: i64,\n  %%inner: i64,\n  %%length: i64,\n  %%start: %s,\n  %%step: %s)\n"
        "form thread\nrequire %%n >= 0\nrequire %%inner >= 1\nrequire %%length >= 1\n",
        tk_dtype_name(dtype), memory, tk_dtype_size(dtype), number, number);
    tk_text_put_elements(256, out);
    tk_strbuf_printf(out,
                     "    %%q = udiv %%i, %%inner : i64\n    %%c = urem %%q, %%length : i64\n");
    put_value(dtype, out);
    tk_strbuf_printf(out,
                     "    %%p = offset %%y, %%i : ptr<%s, global>\n    store %%p, %%%s\n  }\n}\n",
                     memory, tk_dtype_size(dtype) < 8 ? "w" : "v");
}

static tk_kernels_made kernels = {
    PTHREAD_MUTEX_INITIALIZER, "iota", sizeof(tk_dtype), put_kernel, {0}};

tk_status tk_iota_check(tk_dtype dtype) {
    if (dtype != TK_BOOL && !tk_dtype_is_complex(dtype)) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "iota of %s has no kernel on devices: move it from the cpu",
                   tk_dtype_name(dtype));
}

tk_status tk_body_iota_on_device(const tk_body_call *call) {
    const tk_attrs_iota *attrs = call->attrs;
    const tk_strided *out = &call->outputs[0];
    int64_t inner = 1;
    if (out->size == 0) return TK_OK;
    for (int i = out->rank - 1; i > (int)attrs->axis; i--) inner *= out->shape[i];
    tk_kernel *kernel;
    TK_TRY(tk_kernels_find(&kernels, &out->dtype, &kernel));
    tk_run_argument arguments[] = {
        {.data = out->data},       {.bits = (uint64_t)out->size},
        {.bits = (uint64_t)inner}, {.bits = (uint64_t)out->shape[attrs->axis]},
        {.bits = attrs->start},    {.bits = attrs->step}};
    arguments[0].bytes = (size_t)out->size * tk_dtype_size(out->dtype);
    tk_run run = {kernel, NULL, 6, arguments, TK_TARGET_PTX, NULL};
    return tk_run_kernel(call->device, call->queue, &run);
}
