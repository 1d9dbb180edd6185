/* Inside of the matrix product: the f32 tile kernels of each variant, and the ways a product can
 * go. Callers other than gemm*.c and attention*.c use gemm.h. */
#ifndef CPU_GEMM_KERNEL_H
#define CPU_GEMM_KERNEL_H

#include "cpu/gemm.h"

#define TK_GEMM_MAX_ROWS 14
#define TK_GEMM_MAX_COLUMNS 32

/* c[rows, columns] = alpha * (a[rows, k] b[k, columns]) + beta * c, for a fixed count of rows (the
 * place in the table) and columns. a by two strides; rows of b and c are contiguous. beta 0 does
 * not read c. Each element sums over k in order, so its value does not depend on the tile it falls
 * in. */
typedef void tk_gemm_tile_fn(int64_t k, const float *a, int64_t a_row, int64_t a_column,
                             const float *b, int64_t b_row, float *c, int64_t c_row, float alpha,
                             float beta);

typedef struct tk_gemm_kernels {
    int rows, columns;                           /* the largest tile */
    tk_gemm_tile_fn *tile[TK_GEMM_MAX_ROWS + 1]; /* by number of rows; [0] is NULL */
} tk_gemm_kernels;

extern const tk_gemm_kernels tk_gemm_kernels_base;
extern const tk_gemm_kernels tk_gemm_kernels_avx2;
extern const tk_gemm_kernels tk_gemm_kernels_avx512;

const tk_gemm_kernels *tk_gemm_kernels_get(void);

/* One product without a batch: the fields of tk_gemm_args that remain, c_column == 1. */
typedef struct tk_gemm_one {
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_column;
    const void *b;
    int64_t b_row, b_column;
    void *c;
    int64_t c_row;
    double alpha, beta;
} tk_gemm_one;

/* The parts of a product that a task computes: rows [m_begin, m_end) and columns [n_begin, n_end).
 */
tk_gemm_one tk_gemm_part(const tk_gemm_one *whole, tk_dtype dtype, int64_t m_begin, int64_t m_end,
                         int64_t n_begin, int64_t n_end);

/* f32 by the tile kernels, on the calling thread. */
tk_status tk_gemm_packed(const tk_gemm_one *product);
/* f16 and bf16: tiles converted to f32, on the calling thread. */
tk_status tk_gemm_half(tk_dtype dtype, const tk_gemm_one *product);
/* Whether OpenBLAS can take the operands as they lie: f32, f64, complex64, one stride 1. */
bool tk_gemm_blas_can(tk_dtype dtype, const tk_gemm_one *product);
/* OpenBLAS on the calling thread. */
void tk_gemm_blas(tk_dtype dtype, const tk_gemm_one *product);
/* Any dtype but the halves and bool, any strides, on the calling thread. */
void tk_gemm_portable(tk_dtype dtype, const tk_gemm_one *product);
/* f32 on the calling thread by whichever of the first three suits the size. */
tk_status tk_gemm_f32(const tk_gemm_one *product);

#endif
