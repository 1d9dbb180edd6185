/* What the generators of kernel text share: types as kernels write them. */
#ifndef COMPILE_KERNEL_TEXT_H
#define COMPILE_KERNEL_TEXT_H

#include "compile/plans.h"

/* Elements in memory: truth values are bytes. */
static inline const char *tk_text_memory(tk_dtype dtype) {
    return tk_kscalar_text(tk_kernel_scalar_of(dtype));
}

static inline bool tk_text_is_half(tk_dtype dtype) {
    return dtype == TK_FLOAT16 || dtype == TK_BFLOAT16;
}

static inline bool tk_text_is_small(tk_dtype dtype) {
    return tk_dtype_is_integer(dtype) && tk_dtype_size(dtype) < 4;
}

/* What is computed with: halves are f32, small integers i32. */
static inline const char *tk_text_value(tk_dtype dtype) {
    if (dtype == TK_BOOL) return "i1";
    if (tk_dtype_is_integer(dtype)) return tk_dtype_size(dtype) == 8 ? "i64" : "i32";
    return dtype == TK_FLOAT64 ? "f64" : "f32";
}

#endif
