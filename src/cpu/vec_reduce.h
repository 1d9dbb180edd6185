/* Reductions, scans and softmax over rows or over the outer axis of a two-dimensional view.
 *
 * A sum is split the same way whatever the thread count: blocks of TK_REDUCE_BLOCK elements (or
 * TK_REDUCE_ROWS rows), each over 32 fixed lanes, and block results combined in pairs. So results
 * are the same bits for any thread count and any variant, and the error of a float sum grows with
 * the logarithm of its length. f16 and bf16 are converted block by block in the first-level cache
 * and accumulate in f32.
 *
 * Work is split on the process pool (base/pool.h); inside a loop body it stays on the calling
 * thread. Functions that need scratch memory return TK_OUT_OF_MEMORY if there is none; arguments
 * are asserted, not checked. Outputs must not overlap inputs except where said. */
#ifndef CPU_VEC_REDUCE_H
#define CPU_VEC_REDUCE_H

#include "cpu/vec.h"
#include "tiki/status.h"

#define TK_REDUCE_ROWS 64

/* True for f16, bf16, f32, f64 and every op; all integers: every op. */
bool tk_vec_reduce_has(tk_vec_reduce_op op, tk_dtype dtype);

/* out[r] = op over x[r * row_stride + 0 .. columns). Elements of `dtype`; out as f32 for f16, bf16
 * and f32, f64 for f64, int64_t or uint64_t (modulo 2^64) for integers and bool. An empty row gives
 * 0 for SUM and SUMSQ, 1 for PROD, -inf or +inf (floats), or the type's least or greatest value
 * (integers) for RMAX and RMIN. */
tk_status tk_reduce_rows(tk_vec_reduce_op op, tk_dtype dtype, const void *x, int64_t rows,
                         int64_t columns, int64_t row_stride, void *out);

/* out[c] = op over r of x[r * row_stride + c]: the outer axis. Same types as tk_reduce_rows. */
tk_status tk_reduce_outer(tk_vec_reduce_op op, tk_dtype dtype, const void *x, int64_t rows,
                          int64_t columns, int64_t row_stride, void *out);

/* Index of the greatest (least) element of each row, the first if there are several; the first NaN
 * if there is one. columns >= 1. Any dtype but complex64. */
void tk_argmax_rows(tk_dtype dtype, const void *x, int64_t rows, int64_t columns,
                    int64_t row_stride, int64_t *out);
void tk_argmin_rows(tk_dtype dtype, const void *x, int64_t rows, int64_t columns,
                    int64_t row_stride, int64_t *out);

/* The rest take f16, bf16, f32 or f64, rows contiguous with element strides between rows.
 *
 * out[r] = log(sum exp(x[r])): -inf for a row of -inf or an empty row, +inf if any is +inf and none
 * is NaN. out in the dtype of x. */
void tk_logsumexp_rows(tk_dtype dtype, const void *x, int64_t rows, int64_t columns,
                       int64_t row_stride, void *out);

/* out row = exp(x - max) / sum; f32 and halves take exp below e^-87 as 0. A row of -inf, or one
 * with +inf or NaN, gives NaN. In place allowed. */
void tk_softmax_rows(tk_dtype dtype, const void *x, int64_t x_stride, void *out, int64_t out_stride,
                     int64_t rows, int64_t columns);

/* dx = y * (dy - sum(y * dy)): the gradient of softmax from its result y. In place on dy allowed.
 */
void tk_softmax_backward_rows(tk_dtype dtype, const void *y, const void *dy, void *dx, int64_t rows,
                              int64_t columns);

/* out[r, j] = sum of x[r, 0..j]; also for integers, modulo 2^n. Floats accumulate in f64, which
 * keeps long sums exact to the last bit or two. In place allowed. */
void tk_cumsum_rows(tk_dtype dtype, const void *x, int64_t x_stride, void *out, int64_t out_stride,
                    int64_t rows, int64_t columns);

#endif
