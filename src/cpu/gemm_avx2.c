/* The f32 tile kernels for AVX2 and FMA; the source is in gemm_body.inc. */
#define TK_SIMD 1
#define TK_GEMM_KERNELS tk_gemm_kernels_avx2
#include "cpu/gemm_body.inc"
