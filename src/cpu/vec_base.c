/* The baseline x86-64 (SSE2) variant of the vector kernels; the source is in vec_body*.inc. Every
 * x86-64 runs it. */
#define TK_SIMD 0
#define TK_VEC_TABLE tk_vec_table_base
#define TK_VEC_TABLE_NAME "sse2"
#include "cpu/vec_body.inc"
#include "cpu/vec_body_convert.inc"
#include "cpu/vec_body_quant.inc"
#include "cpu/vec_body_reduce.inc"
#include "cpu/vec_body_table.inc"
