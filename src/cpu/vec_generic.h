/* The portable parts behind vec.h: f64 through libm, integers, conversions. Same contracts. */
#ifndef CPU_VEC_GENERIC_H
#define CPU_VEC_GENERIC_H

#include "cpu/vec_table.h"

/* The f64 function that applies `op` through libm; never NULL. */
tk_vec_unary_fn *tk_vec_unary_f64_libm(tk_vec_unary_op op);
void tk_vec_pow_f64(tk_vec_mode mode, const double *a, const double *b, double *out, int64_t count);

/* NULL where vec.h does not define the op for integers. */
tk_vec_unary_fn *tk_vec_unary_integer(tk_vec_unary_op op, tk_dtype dtype);
typedef void tk_vec_binary_moded(tk_vec_mode mode, const void *a, const void *b, void *out,
                                 int64_t count);
tk_vec_binary_moded *tk_vec_binary_integer(tk_vec_binary_op op, tk_dtype dtype);

/* Any dtype but f16, bf16, f32 (the caller converts or has a faster one) and complex64. */
void tk_vec_compare_generic(tk_vec_compare_op op, tk_dtype dtype, tk_vec_mode mode, const void *a,
                            const void *b, uint8_t *out, int64_t count);

#endif
