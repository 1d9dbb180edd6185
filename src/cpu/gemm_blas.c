/* Products by OpenBLAS, kept to one thread of its own: Tiki's pool gives it slices.
 *
 * BLAS knows two layouts an operand, row or column contiguous, with a leading dimension at least as
 * long as a line; other strides are not for it. beta == 0 is passed as such for matrices (OpenBLAS
 * then does not read C) and by clearing the vector in the matrix-vector path, where it would scale.
 */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "cpu/blas.h"
#include "cpu/gemm_kernel.h"

/* How BLAS sees a rows x columns operand: `transposed` if columns are contiguous. */
static bool blas_layout(int64_t rows, int64_t columns, int64_t row, int64_t column,
                        CBLAS_TRANSPOSE *transposed, int *leading) {
    if (rows > INT_MAX || columns > INT_MAX) return false;
    bool by_rows = (column == 1 || columns == 1) && (row >= columns || rows == 1);
    bool by_columns = (row == 1 || rows == 1) && (column >= rows || columns == 1);
    int64_t lead = by_rows ? (rows == 1 ? columns : row) : (columns == 1 ? rows : column);
    if ((!by_rows && !by_columns) || lead > INT_MAX) return false;
    *transposed = by_rows ? CblasNoTrans : CblasTrans;
    *leading = lead > 0 ? (int)lead : 1;
    return true;
}

static bool layouts(const tk_gemm_one *product, CBLAS_TRANSPOSE *trans_a, int *lda,
                    CBLAS_TRANSPOSE *trans_b, int *ldb) {
    return blas_layout(product->m, product->k, product->a_row, product->a_column, trans_a, lda) &&
           blas_layout(product->k, product->n, product->b_row, product->b_column, trans_b, ldb) &&
           product->c_row <= INT_MAX;
}

bool tk_gemm_blas_can(tk_dtype dtype, const tk_gemm_one *product) {
    CBLAS_TRANSPOSE trans_a, trans_b;
    int lda, ldb;
    bool type = dtype == TK_FLOAT32 || dtype == TK_FLOAT64 || dtype == TK_COMPLEX64;
    return type && product->m > 0 && product->n > 0 && product->k > 0 && product->alpha != 0 &&
           layouts(product, &trans_a, &lda, &trans_b, &ldb) && tk_blas_get();
}

/* c (one row) = alpha * a b + beta * c: b transposed times a vector. */
static void row_times_matrix(tk_dtype dtype, const tk_gemm_one *product, CBLAS_TRANSPOSE trans_b,
                             int ldb) {
    size_t bytes = tk_dtype_size(dtype);
    bool by_rows = trans_b == CblasNoTrans;
    int n = (int)product->n, k = (int)product->k, step = (int)product->a_column;
    CBLAS_TRANSPOSE trans = by_rows ? CblasTrans : CblasNoTrans;
    int rows = by_rows ? k : n, columns = by_rows ? n : k;
    double beta = product->beta;
    if (beta == 0) {
        memset(product->c, 0, (size_t)n * bytes);
        beta = 1;
    }
    if (dtype == TK_FLOAT32)
        tk_blas_get()->sgemv(CblasRowMajor, trans, rows, columns, (float)product->alpha, product->b,
                             ldb, product->a, step, (float)beta, product->c, 1);
    else
        tk_blas_get()->dgemv(CblasRowMajor, trans, rows, columns, product->alpha, product->b, ldb,
                             product->a, step, beta, product->c, 1);
}

void tk_gemm_blas(tk_dtype dtype, const tk_gemm_one *product) {
    CBLAS_TRANSPOSE trans_a = CblasNoTrans, trans_b = CblasNoTrans;
    int lda = 1, ldb = 1;
    bool can = layouts(product, &trans_a, &lda, &trans_b, &ldb);
    assert(can);
    (void)can;
    int m = (int)product->m, n = (int)product->n, k = (int)product->k;
    int ldc = product->m == 1 ? n : (int)product->c_row;
    float alpha[2] = {(float)product->alpha, 0}, beta[2] = {(float)product->beta, 0};
    if (m == 1 && dtype != TK_COMPLEX64 && product->a_column > 0 && product->a_column <= INT_MAX)
        row_times_matrix(dtype, product, trans_b, ldb);
    else if (dtype == TK_FLOAT32)
        tk_blas_get()->sgemm(CblasRowMajor, trans_a, trans_b, m, n, k, alpha[0], product->a, lda,
                             product->b, ldb, beta[0], product->c, ldc);
    else if (dtype == TK_FLOAT64)
        tk_blas_get()->dgemm(CblasRowMajor, trans_a, trans_b, m, n, k, product->alpha, product->a,
                             lda, product->b, ldb, product->beta, product->c, ldc);
    else
        tk_blas_get()->cgemm(CblasRowMajor, trans_a, trans_b, m, n, k, alpha, product->a, lda,
                             product->b, ldb, beta, product->c, ldc);
}
