/* The f32 tile kernels for AVX-512; the source is in gemm_body.inc. */
#define TK_SIMD 2
#define TK_GEMM_KERNELS tk_gemm_kernels_avx512
#include "cpu/gemm_body.inc"
