/* Row-wise fused operations: normalisation, rotary positions, cross entropy, forward and backward.
 *
 * Rows are contiguous and dense ([rows, columns], row stride = columns). `dtype` is f16, bf16, f32
 * or f64 and is the type of every void pointer; f16 and bf16 compute in f32, f64 in f64. Statistics
 * are float for f16, bf16, f32 and double for f64 ("stat"). Means and variances take two passes
 * over the row, so a row of mean 1e4 and deviation 1e-2 comes out right.
 *
 * Weight gradients are summed over fixed groups of rows and combined in order: the same bits for
 * any thread count. Functions that return a status need
 * scratch memory and fail only with TK_OUT_OF_MEMORY. In-place (out == x, dx == dy) is allowed. The
 * public functions have the plain names, so these begin with tk_cpu_. */
#ifndef CPU_NORM_H
#define CPU_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "tiki/dtype.h"
#include "tiki/status.h"

/* out = x / sqrt(mean(x^2) + eps) * weight. `weight` [columns] or NULL for 1. */
tk_status tk_cpu_rms_norm(tk_dtype dtype, const void *x, const void *weight, double eps, void *out,
                          int64_t rows, int64_t columns);

/* dx [rows, columns] and dweight [columns] (NULL when not wanted, each) from dy. */
tk_status tk_cpu_rms_norm_backward(tk_dtype dtype, const void *x, const void *weight, double eps,
                                   const void *dy, void *dx, void *dweight, int64_t rows,
                                   int64_t columns);

/* out = (x - mean) / sqrt(var + eps) * weight + bias, var with divisor `columns`. `weight` and
 * `bias` [columns] or NULL. */
tk_status tk_cpu_layer_norm(tk_dtype dtype, const void *x, const void *weight, const void *bias,
                            double eps, void *out, int64_t rows, int64_t columns);

tk_status tk_cpu_layer_norm_backward(tk_dtype dtype, const void *x, const void *weight, double eps,
                                     const void *dy, void *dx, void *dweight, void *dbias,
                                     int64_t rows, int64_t columns);

/* Rotary position embedding as MLX's fast.rope. x is [batch, heads, length, head_dim], dense, `out`
 * alike. The first `dims` (even, <= head_dim) features are rotated, the rest copied. Pairs are
 * (2i, 2i+1) if `traditional`, else (i, i + dims/2). Angle of pair i at row t:
 * (t + offset[b]) * scale * base^(-2i/dims), or (t + offset[b]) * scale / frequencies[i] where
 * `frequencies` (float [dims/2]) is not NULL. `offsets` has one entry if `offset_count` is 1, or
 * one for each batch entry. `inverse` rotates the other way: the backward pass on dy. */
typedef struct tk_rope_args {
    tk_dtype dtype;
    int64_t batch, heads, length, head_dim;
    int64_t dims;
    bool traditional;
    bool inverse;
    double base;
    double scale;
    const float *frequencies;
    const int64_t *offsets;
    int64_t offset_count;
} tk_rope_args;

tk_status tk_cpu_rope(const tk_rope_args *args, const void *x, void *out);

/* loss[r] = lse(x[r]) - x[r, target[r]], lse[r] its log-sum-exp (both stat type; lse may be NULL).
 * A target outside [0, columns) is never dereferenced: its loss counts a logit of 0, and the return
 * value is the first such row, else -1. */
int64_t tk_cpu_cross_entropy(tk_dtype dtype, const void *x, const int64_t *targets, void *loss,
                             void *lse, int64_t rows, int64_t columns);

/* dx[r, c] = (exp(x[r, c] - lse[r]) - (c == target[r])) * dloss[r]; dloss and lse in the stat type.
 */
void tk_cpu_cross_entropy_backward(tk_dtype dtype, const void *x, const int64_t *targets,
                                   const void *lse, const void *dloss, void *dx, int64_t rows,
                                   int64_t columns);

#endif
