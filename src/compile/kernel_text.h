/* What the generators of kernel text share: types as kernels write them, a thread for each of n
 * elements, coordinates. */
#ifndef COMPILE_KERNEL_TEXT_H
#define COMPILE_KERNEL_TEXT_H

#include <stdio.h>

#include "base/strbuf.h"
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

/* The grid and the beginning of a body, behind the preconditions: %i, i64, is the thread's number
 * below %n. Open: the body, and `if %inside`. */
static inline void tk_text_put_elements(int threads, tk_strbuf *out) {
    tk_strbuf_printf(out,
                     "grid (ceildiv(%%n, %d), 1, 1)\nblock (%d, 1, 1)\n{\n"
                     "  %%thread = thread_index.x : i32\n  %%block = block_index.x : i32\n"
                     "  %%tw = extend_signed %%thread : i64\n  %%bw = extend_signed %%block : i64\n"
                     "  %%first = mul %%bw, i64(%d) : i64\n  %%i = add %%first, %%tw : i64\n"
                     "  %%inside = icmp.slt %%i, %%n : i1\n  if %%inside {\n",
                     threads, threads, threads);
}

/* Coordinates %LETTERc0, ... of %FROM with lengths %LETTERlength. */
static inline void tk_text_put_coordinates(char letter, const char *from, int rank,
                                           tk_strbuf *out) {
    char at[24];
    snprintf(at, sizeof at, "%s", from);
    for (int i = rank - 1; i > 0; i--) {
        tk_strbuf_printf(out,
                         "    %%%cq%d = udiv %%%s, %%%clength%d : i64\n"
                         "    %%%cm%d = mul %%%cq%d, %%%clength%d : i64\n"
                         "    %%%cc%d = sub %%%s, %%%cm%d : i64\n",
                         letter, i, at, letter, i, letter, i, letter, i, letter, i, letter, i, at,
                         letter, i);
        snprintf(at, sizeof at, "%cq%d", letter, i);
    }
    tk_strbuf_printf(out, "    %%%cc0 = or %%%s, i64(0) : i64\n", letter, at);
}

#endif
