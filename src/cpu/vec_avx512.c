/* The AVX-512 (F, BW, DQ, VL) variant of the vector kernels; the source is in vec_body*.inc.
 * Compiled with flags for these; called only where vec.c found them. */
#define TK_SIMD 2
#define TK_VEC_TABLE tk_vec_table_avx512
#define TK_VEC_TABLE_NAME "avx512"
#include "cpu/vec_body.inc"
#include "cpu/vec_body_convert.inc"
#include "cpu/vec_body_quant.inc"
#include "cpu/vec_body_reduce.inc"
#include "cpu/vec_body_table.inc"
