/* The AVX2, FMA and F16C variant of the vector kernels; the source is in vec_body*.inc. Compiled
 * with flags for these; called only where vec.c found them. */
#define TK_SIMD 1
#define TK_VEC_TABLE tk_vec_table_avx2
#define TK_VEC_TABLE_NAME "avx2"
#include "cpu/vec_body.inc"
#include "cpu/vec_body_convert.inc"
#include "cpu/vec_body_quant.inc"
#include "cpu/vec_body_reduce.inc"
#include "cpu/vec_body_table.inc"
