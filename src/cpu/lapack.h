/* LAPACK's routines for f32, f64 and complex64, from the library that blas.h loads.
 *
 * Matrices are by columns. Types are LAPACK's with void in place of the element type; `one` is the
 * hidden length of a character argument, which Fortran expects after the others. A table holds what
 * differs between element types: complex routines with a real work array have slots of their own.
 */
#ifndef CPU_LAPACK_H
#define CPU_LAPACK_H

#include <stddef.h>

#include "tiki/dtype.h"
#include "tiki/status.h"

typedef struct tk_lapack {
    void (*getrf)(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
    void (*getri)(const int *n, void *a, const int *lda, const int *pivots, void *work,
                  const int *lwork, int *info);
    void (*getrs)(const char *trans, const int *n, const int *nrhs, const void *a, const int *lda,
                  const int *pivots, void *b, const int *ldb, int *info, size_t one);
    void (*trtrs)(const char *uplo, const char *trans, const char *diag, const int *n,
                  const int *nrhs, const void *a, const int *lda, void *b, const int *ldb,
                  int *info, size_t one_uplo, size_t one_trans, size_t one_diag);
    void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t one);
    void (*geqrf)(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                  const int *lwork, int *info);
    void (*orgqr)(const int *m, const int *n, const int *k, void *a, const int *lda,
                  const void *tau, void *work, const int *lwork, int *info);
    void (*gesdd)(const char *job, const int *m, const int *n, void *a, const int *lda, void *s,
                  void *u, const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork,
                  int *integers, int *info, size_t one);
    void (*gesdd_complex)(const char *job, const int *m, const int *n, void *a, const int *lda,
                          void *s, void *u, const int *ldu, void *vt, const int *ldvt, void *work,
                          const int *lwork, void *reals, int *integers, int *info, size_t one);
    void (*syevd)(const char *job, const char *uplo, const int *n, void *a, const int *lda, void *w,
                  void *work, const int *lwork, int *integers, const int *lintegers, int *info,
                  size_t one_job, size_t one_uplo);
    void (*heevd)(const char *job, const char *uplo, const int *n, void *a, const int *lda, void *w,
                  void *work, const int *lwork, void *reals, const int *lreals, int *integers,
                  const int *lintegers, int *info, size_t one_job, size_t one_uplo);
    void (*geev)(const char *left, const char *right, const int *n, void *a, const int *lda,
                 void *real, void *imag, void *vl, const int *ldvl, void *vr, const int *ldvr,
                 void *work, const int *lwork, int *info, size_t one_left, size_t one_right);
    void (*geev_complex)(const char *left, const char *right, const int *n, void *a, const int *lda,
                         void *w, void *vl, const int *ldvl, void *vr, const int *ldvr, void *work,
                         const int *lwork, void *reals, int *info, size_t one_left,
                         size_t one_right);
} tk_lapack;

/* The table of f32, f64 or complex64. TK_UNSUPPORTED names `what` when the library, or a routine,
 * is missing. Any thread. */
tk_status tk_lapack_get(const char *what, tk_dtype dtype, const tk_lapack **out_lapack);

#endif
