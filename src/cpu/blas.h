/* OpenBLAS, loaded when a product first needs it. */
#ifndef CPU_BLAS_H
#define CPU_BLAS_H

#include <cblas.h>

/* The functions that Tiki calls, with the types of cblas.h. */
typedef struct tk_blas {
    void (*sgemm)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a,
                  enum CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k, float alpha,
                  const float *a, blasint lda, const float *b, blasint ldb, float beta, float *c,
                  blasint ldc);
    void (*dgemm)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a,
                  enum CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k, double alpha,
                  const double *a, blasint lda, const double *b, blasint ldb, double beta,
                  double *c, blasint ldc);
    void (*cgemm)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a,
                  enum CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k, const void *alpha,
                  const void *a, blasint lda, const void *b, blasint ldb, const void *beta, void *c,
                  blasint ldc);
    void (*sgemv)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, blasint m, blasint n,
                  float alpha, const float *a, blasint lda, const float *x, blasint step_x,
                  float beta, float *y, blasint step_y);
    void (*dgemv)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, blasint m, blasint n,
                  double alpha, const double *a, blasint lda, const double *x, blasint step_x,
                  double beta, double *y, blasint step_y);
    char *(*config)(void);
    void (*threads)(int count);
} tk_blas;

/* NULL when the library is not installed: Tiki's own products then do all the work. Keeps BLAS to
 * the calling thread. Any thread. */
const tk_blas *tk_blas_get(void);

/* A function of the library by its symbol, LAPACK's too; NULL when there is none. Any thread. */
void *tk_blas_symbol(const char *name);

/* The library's own words about its version and kernels; NULL when it is not installed. Static. */
const char *tk_blas_name(void);

#endif
