/* Matrix products: C = alpha * A * B + beta * C over a batch, by strides.
 *
 * Three ways to compute, chosen by size: OpenBLAS (f32, f64, complex64 where big), called with one
 * thread on slices of M or N from the process pool; Tiki's packed micro-kernels (small and batched
 * f32, every f16 and bf16 product, and strides that BLAS cannot take); a matrix-vector path where M
 * or N is 1. Half inputs are converted to f32 while they are packed, accumulate in f32 and are
 * rounded once at the end.
 *
 * IEEE rules: every product is formed (0 * inf is NaN, zeros are not skipped); beta == 0 overwrites
 * C without reading it; alpha == 0 is not special; K == 0 gives beta * C. For a fixed shape, layout
 * and machine the result does not depend on the thread count for Tiki's own kernels; for OpenBLAS
 * slices it is the same for a fixed thread count. */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "tiki/dtype.h"
#include "tiki/status.h"

#define TK_GEMM_BATCH_RANK 6

/* Which way a product goes; TK_GEMM_AUTO in every use but tests and benches. */
typedef enum tk_gemm_way {
    TK_GEMM_AUTO,
    TK_GEMM_BLAS,
    TK_GEMM_PACKED,
    TK_GEMM_PORTABLE
} tk_gemm_way;

/* Strides are in elements and may be zero or negative for A and B. C needs row or column stride 1
 * and must not overlap itself, A or B. All three have `dtype`: f16, bf16, f32, f64, complex64, or
 * an integer type (products and sums modulo 2^n; bool is not allowed).
 *
 * Batch dimensions are outermost first; a stride of 0 broadcasts that operand. batch_rank 0 is one
 * product. Integers round alpha and beta to the nearest integer; complex64 uses them as real. */
typedef struct tk_gemm_args {
    tk_dtype dtype;
    tk_gemm_way way;
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_column;
    const void *b;
    int64_t b_row, b_column;
    void *c;
    int64_t c_row, c_column;
    double alpha, beta;
    int batch_rank;
    int64_t batch_shape[TK_GEMM_BATCH_RANK];
    int64_t a_batch[TK_GEMM_BATCH_RANK];
    int64_t b_batch[TK_GEMM_BATCH_RANK];
    int64_t c_batch[TK_GEMM_BATCH_RANK];
} tk_gemm_args;

/* TK_OUT_OF_MEMORY when there is no room for packing buffers; C is then unspecified. Work is split
 * on the process pool (base/pool.h); inside a loop body it stays on the calling thread. Sizes may
 * be 0. Arguments are asserted. */
tk_status tk_gemm(const tk_gemm_args *args);

/* Row-major shorthand without batch: C[m,n] = A[m,k] * B[k,n], all dense. */
tk_status tk_gemm_dense(tk_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a,
                        const void *b, void *c);

#endif
