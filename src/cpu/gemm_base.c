/* The f32 tile kernels for baseline x86-64 (SSE2); the source is in gemm_body.inc. */
#define TK_SIMD 0
#define TK_GEMM_KERNELS tk_gemm_kernels_base
#include "cpu/gemm_body.inc"
