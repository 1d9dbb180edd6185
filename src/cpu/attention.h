/* Scaled dot product attention by tiles with online softmax, forward and backward.
 *
 *     S = scale * Q K^T + mask,   P = softmax(S),   O = P V,   lse = log(sum(exp(S)))
 *
 * The score matrix is never whole in memory: a tile of query rows meets one tile of keys after the
 * other. Query heads are grouped: head h of q uses head h / (q_heads / kv_heads) of k and v. Causal
 * masks align the last query with the last key (query i sees key j when j <= i + k_length -
 * q_length). A row without any key allowed gives output 0, lse -inf, gradient 0. A sink is one more
 * score of each row of a head: it takes weight, has no value, and counts in lse.
 *
 * Compute is f32 for f16, bf16 and f32, f64 for f64. Work is split over (batch, head, query tile);
 * sums never depend on the split, so results are the same bits for any thread count. */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "tiki/dtype.h"
#include "tiki/status.h"

typedef enum tk_attention_mask { TK_MASK_NONE, TK_MASK_BOOL, TK_MASK_ADD } tk_attention_mask;

/* Element strides of a [batch, head, row] x [feature] tensor; features are contiguous. */
typedef struct tk_attention_strides {
    int64_t batch, head, row;
} tk_attention_strides;

typedef struct tk_attention_args {
    tk_dtype dtype; /* f16, bf16, f32, f64: of q, k, v, out and an additive mask */
    int64_t batch, q_heads, kv_heads;
    int64_t q_length, k_length;
    int64_t head_dim, value_dim;
    double scale;
    bool causal;
    tk_attention_mask mask_kind;
    const void *mask;        /* bool bytes (1 = may look) or `dtype` values added to the scores */
    int64_t mask_strides[4]; /* batch, q head, query row, key column; 0 broadcasts */
    const void *q, *k, *v;
    tk_attention_strides q_strides, k_strides, v_strides;
    const void *sinks; /* [q_heads], float (double for f64), or NULL; not read by the backward */
} tk_attention_args;

/* out [batch, q_heads, q_length, value_dim] by its strides; lse dense [batch, q_heads, q_length]
 * (float, double for f64) or NULL. TK_OUT_OF_MEMORY is the only failure. */
tk_status tk_attention(const tk_attention_args *args, void *out, tk_attention_strides out_strides,
                       void *lse);

/* Gradients from dout. `out` and `lse` are the forward results; all of out, dout, dq, dk, dv are
 * dense [batch, heads, rows, features] in `dtype`. Gradients of the mask are not computed. Any of
 * dq, dk, dv may be NULL. */
tk_status tk_attention_backward(const tk_attention_args *args, const void *out, const void *lse,
                                const void *dout, void *dq, void *dk, void *dv);

#endif
