/* Linear algebra on stacks of matrices: what the bodies of body_linalg.c share.
 *
 * A matrix is loaded into scratch by columns, as LAPACK wants it, worked on there, and stored. The
 * pool takes matrices of a stack; each thread has scratch of its own. */
#ifndef CPU_LINALG_H
#define CPU_LINALG_H

#include <stdatomic.h>

#include "array/executor.h"
#include "cpu/lapack.h"

/* Lengths of the parts of a thread's scratch: elements of the operand's dtype, of its real part's,
 * and integers. */
typedef struct tk_linalg_sizes {
    int64_t a, b, c, work, reals, more_reals, integers;
} tk_linalg_sizes;

typedef struct tk_linalg_memory {
    void *a, *b, *c, *work, *reals, *more_reals;
    int *integers;
} tk_linalg_memory;

typedef struct tk_linalg {
    const tk_body_call *call;
    const tk_lapack *lapack;
    tk_dtype dtype; /* of operand 0 */
    size_t bytes, real_bytes;
    int m, n, least; /* rows and columns of operand 0, and the lesser */
    int columns;     /* of operand 1, where there is one */
    int lwork;
    tk_linalg_sizes sizes;

    /* Works on matrix `index` of the stack; gives LAPACK's info: 0, or what went wrong. */
    int (*one)(const struct tk_linalg *l, int64_t index, const tk_linalg_memory *memory);
    const char *failure; /* in words, for a positive info */

    char *scratch;
    int64_t scratch_bytes;
    _Atomic int64_t failed; /* the first matrix that did; INT64_MAX: none */
} tk_linalg;

/* Matrix `index` of an operand by columns into `to`. */
void tk_linalg_load(const tk_strided *view, int64_t index, void *to);

/* The other way into an output; `lead` is the distance of columns in `from`. */
void tk_linalg_store(const tk_strided *view, int64_t index, const void *from, int64_t lead);

/* Where matrix or vector `index` of a dense output begins, whose last `axes` axes it is. */
void *tk_linalg_place(const tk_strided *view, int axes, int64_t index);

/* Whether all numbers of a dense run are finite. */
bool tk_linalg_is_finite(tk_dtype dtype, const void *data, int64_t count);

/* NaN throughout. */
void tk_linalg_fill_nan(tk_dtype dtype, void *data, int64_t count);

/* The largest optimal size that a routine gave in work[0]. */
int tk_linalg_wanted(tk_dtype dtype, const void *work);

#endif
