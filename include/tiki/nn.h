/* Layers, losses and initial values as functions of arrays: no objects, parameters are arguments.
 *
 * Everything is lazy and differentiable. Results belong to the innermost scope (array.h). Names and
 * formulas are those of MLX's nn package. */
#ifndef TIKI_NN_H
#define TIKI_NN_H

#include "tiki/array.h"

TK_BEGIN_DECLS

/* ---- layers ---- */

/* x weight' + bias: x [..., in], weight [out, in], bias [out] or TK_NO_ARRAY. */
TK_API tk_array tk_nn_linear(tk_array x, tk_array weight, tk_array bias);

/* Rows of weight [n, dim] at integer tokens [...]: [..., dim]. */
TK_API tk_array tk_nn_embedding(tk_array weight, tk_array tokens);

/* x with each element zeroed with probability p and the rest scaled by 1 / (1 - p). p is in [0, 1);
 * 0 is x itself. `key` may be TK_NO_ARRAY: the thread's implicit key. */
TK_API tk_array tk_nn_dropout(tk_array x, double p, tk_array key);

/* silu(gate) * up: the middle of a SwiGLU block. */
TK_API tk_array tk_nn_swiglu(tk_array gate, tk_array up);

/* ---- activations beside the ops relu, sigmoid, silu, gelu, gelu_approx, softplus, tanh, softmax
 * and log_softmax ---- */

/* max(x, 0) squared; x cut to [0, 6]; max(slope x, x); max(0, x) + slope min(0, x) for a slope that
 * broadcasts with x. */
TK_API tk_array tk_nn_relu2(tk_array x);
TK_API tk_array tk_nn_relu6(tk_array x);
TK_API tk_array tk_nn_leaky_relu(tk_array x, double slope);
TK_API tk_array tk_nn_prelu(tk_array x, tk_array slope);

/* x above 0; below, elu: alpha (e^x - 1), celu: alpha (e^(x / alpha) - 1), and selu: elu with the
 * constants of Klambauer 2017. */
TK_API tk_array tk_nn_elu(tk_array x, double alpha);
TK_API tk_array tk_nn_celu(tk_array x, double alpha);
TK_API tk_array tk_nn_selu(tk_array x);

/* x / (1 + |x|); 0 where |x| is at most lambda, otherwise x moved towards 0 by lambda (softshrink)
 * or x itself (hard_shrink); x cut to [low, high]. */
TK_API tk_array tk_nn_softsign(tk_array x);
TK_API tk_array tk_nn_softshrink(tk_array x, double lambda);
TK_API tk_array tk_nn_hard_shrink(tk_array x, double lambda);
TK_API tk_array tk_nn_hard_tanh(tk_array x, double low, double high);

/* x min(max(x + 3, 0), 6) / 6; log(sigmoid(x)); x sigmoid(1.702 x); x tanh(softplus(x)). */
TK_API tk_array tk_nn_hardswish(tk_array x);
TK_API tk_array tk_nn_log_sigmoid(tk_array x);
TK_API tk_array tk_nn_gelu_fast_approx(tk_array x);
TK_API tk_array tk_nn_mish(tk_array x);

/* int32: 1 where x is at least the threshold, otherwise 0. */
TK_API tk_array tk_nn_step(tk_array x, double threshold);

/* The first half of an axis times the sigmoid of its second half. */
TK_API tk_array tk_nn_glu(tk_array x, int64_t axis);

/* softmax(-x) along an axis. */
TK_API tk_array tk_nn_softmin(tk_array x, int64_t axis);

/* ---- keys and values of earlier positions ---- */

/* One pair of arrays [batch, heads, capacity, dim] a layer, written in place as decoding goes on. A
 * cache belongs to one thread at a time. */
typedef struct tk_kv_cache tk_kv_cache;

/* Room for `capacity` positions in `layers` layers. Freed with tk_kv_cache_free, which takes NULL.
 */
TK_API tk_status tk_kv_cache_create(tk_context *context, int64_t layers, int64_t capacity,
                                    tk_kv_cache **out_cache);
TK_API void tk_kv_cache_free(tk_kv_cache *cache);

/* Positions stored so far, the same for every layer between forward passes. */
TK_API int64_t tk_kv_cache_length(const tk_kv_cache *cache);

/* Forgets positions from `length` on. TK_INVALID_ARGUMENT when there are fewer. */
TK_API tk_status tk_kv_cache_trim(tk_kv_cache *cache, int64_t length);

/* Appends keys and values [batch, heads, n, dim] of a layer after the first `length` positions and
 * gives all of them, [batch, heads, length + n, dim]. TK_INVALID_ARGUMENT when the capacity is
 * exceeded. */
TK_API tk_status tk_kv_cache_append(tk_kv_cache *cache, int64_t layer, tk_array keys,
                                    tk_array values, tk_array *out_keys, tk_array *out_values);

/* Counts n positions as stored, after every layer has appended them; evaluates what was written. */
TK_API tk_status tk_kv_cache_advance(tk_kv_cache *cache, int64_t n);

/* ---- losses ---- */

typedef enum tk_reduction { TK_REDUCE_NONE, TK_REDUCE_MEAN, TK_REDUCE_SUM } tk_reduction;

/* Class targets (integer, shape of logits without `axis`) or probabilities (shape of logits).
 * `weights` of the loss's shape scale each loss and may be TK_NO_ARRAY; label_smoothing is in [0,
 * 1). */
TK_API tk_array tk_loss_cross_entropy(tk_array logits, tk_array targets, tk_array weights,
                                      int64_t axis, double label_smoothing, tk_reduction reduction);
/* Targets in [0, 1]; inputs are logits, or probabilities (their logs are clipped at -100). */
TK_API tk_array tk_loss_binary_cross_entropy(tk_array inputs, tk_array targets, tk_array weights,
                                             bool with_logits, tk_reduction reduction);
TK_API tk_array tk_loss_l1(tk_array predictions, tk_array targets, tk_reduction reduction);
TK_API tk_array tk_loss_mse(tk_array predictions, tk_array targets, tk_reduction reduction);
TK_API tk_array tk_loss_smooth_l1(tk_array predictions, tk_array targets, double beta,
                                  tk_reduction reduction);
TK_API tk_array tk_loss_huber(tk_array inputs, tk_array targets, double delta,
                              tk_reduction reduction);
TK_API tk_array tk_loss_log_cosh(tk_array inputs, tk_array targets, tk_reduction reduction);
/* inputs are log probabilities. */
TK_API tk_array tk_loss_nll(tk_array inputs, tk_array targets, int64_t axis,
                            tk_reduction reduction);
TK_API tk_array tk_loss_kl_div(tk_array inputs, tk_array targets, int64_t axis,
                               tk_reduction reduction);
TK_API tk_array tk_loss_gaussian_nll(tk_array inputs, tk_array targets, tk_array vars, bool full,
                                     double eps, tk_reduction reduction);
TK_API tk_array tk_loss_hinge(tk_array inputs, tk_array targets, tk_reduction reduction);
TK_API tk_array tk_loss_cosine_similarity(tk_array x1, tk_array x2, int64_t axis, double eps,
                                          tk_reduction reduction);
TK_API tk_array tk_loss_margin_ranking(tk_array inputs1, tk_array inputs2, tk_array targets,
                                       double margin, tk_reduction reduction);
TK_API tk_array tk_loss_triplet(tk_array anchors, tk_array positives, tk_array negatives,
                                int64_t axis, int p, double margin, double eps,
                                tk_reduction reduction);

/* ---- initial values: an array of `shape` and `dtype`; `key` may be TK_NO_ARRAY (the implicit key)
 * ---- */

TK_API tk_array tk_init_normal(tk_context *context, tk_shape shape, tk_dtype dtype, double mean,
                               double std, tk_array key);
TK_API tk_array tk_init_uniform(tk_context *context, tk_shape shape, tk_dtype dtype, double low,
                                double high, tk_array key);
/* fan_in: last axis, fan_out: first axis, both times the axes between; two axes or more. */
TK_API tk_array tk_init_glorot_normal(tk_context *context, tk_shape shape, tk_dtype dtype,
                                      double gain, tk_array key);
TK_API tk_array tk_init_glorot_uniform(tk_context *context, tk_shape shape, tk_dtype dtype,
                                       double gain, tk_array key);
/* fan_out false: by fan_in. */
TK_API tk_array tk_init_he_normal(tk_context *context, tk_shape shape, tk_dtype dtype, bool fan_out,
                                  double gain, tk_array key);
TK_API tk_array tk_init_he_uniform(tk_context *context, tk_shape shape, tk_dtype dtype,
                                   bool fan_out, double gain, tk_array key);

TK_END_DECLS

#endif
