/* Builder of the gated delta rule: a linear attention whose state forgets and corrects itself.
 *
 *     S' = gamma S,   S = S' + beta (v - S' k) k',   y = S q
 *
 * for each of T steps, with a state S [Dv, Dk] a head. The steps follow each other, so the graph
 * has a few nodes a step; derivatives and batches come from them. Compute is float32 (float64 for
 * float64), as the state's errors add up. Rejected for now: the form by chunks, which solves a
 * triangular system for each and pays only on matrix units. */
#include "graph/build_pieces.h"

typedef struct delta {
    int64_t batch, steps, heads, key_heads, key_dim, value_dim;
    tk_dtype dtype; /* of the computation */
    tk_node *q, *k, *v, *gamma, *beta;
    tk_node *mask; /* NULL: all steps count */
} delta;

static bool is_like(const tk_node *a, int rank, int64_t batch, int64_t steps) {
    return a->rank == rank && a->shape[0] == batch && a->shape[1] == steps;
}

static tk_status check(tk_node *const *in, const tk_node *state, const tk_node *mask) {
    const tk_node *q = in[0], *k = in[1], *v = in[2];
    bool fits = q->rank == 4;
    int64_t batch = fits ? q->shape[0] : 0, steps = fits ? q->shape[1] : 0;
    fits = fits && is_like(k, 4, batch, steps) && is_like(v, 4, batch, steps) &&
           k->shape[2] == q->shape[2] && k->shape[3] == q->shape[3] && q->shape[2] > 0 &&
           v->shape[2] % q->shape[2] == 0;
    for (int i = 3; fits && i < 5; i++)
        fits = is_like(in[i], 3, batch, steps) && in[i]->shape[2] == v->shape[2];
    if (!fits)
        return tk_fail(TK_SHAPE_ERROR,
                       "gated_delta_update: q, k, v, gamma, beta are %s, %s, %s, %s, %s, expected "
                       "[B, T, Hk, Dk] twice, [B, T, Hv, Dv] with Hv a multiple of Hk, [B, T, Hv] "
                       "twice",
                       tk_text_node(q), tk_text_node(k), tk_text_node(v), tk_text_node(in[3]),
                       tk_text_node(in[4]));
    if (state && (state->rank != 4 || state->shape[0] != batch || state->shape[1] != v->shape[2] ||
                  state->shape[2] != v->shape[3] || state->shape[3] != k->shape[3]))
        return tk_fail(TK_SHAPE_ERROR,
                       "gated_delta_update: initial_state is %s for v %s and k %s, expected [B, "
                       "Hv, Dv, Dk]",
                       tk_text_node(state), tk_text_node(v), tk_text_node(k));
    if (mask && !is_like(mask, 2, batch, steps))
        return tk_fail(TK_SHAPE_ERROR, "gated_delta_update: mask is %s for q %s, expected [B, T]",
                       tk_text_node(mask), tk_text_node(q));
    return TK_OK;
}

/* [B, T, Hk, Dk] with each head repeated for the heads of v that share it. */
static tk_node *repeated(tk_builder *b, const delta *d, tk_node *a) {
    return d->heads == d->key_heads ? a : tkb_repeat(b, a, d->heads / d->key_heads, 2);
}

/* One step of an operand as [B, Hv, ...], a vector as a column. */
static tk_node *at_step(tk_builder *b, tk_node *a, int64_t step, tk_shape shape) {
    return tkb_reshape(b, tkb_range(b, a, 1, step, step + 1), shape);
}

/* y [B, 1, Hv, Dv] of one step; *state becomes the next. */
static tk_node *advance(tk_builder *b, const delta *d, int64_t step, tk_node **state) {
    tk_shape column = TK_SHAPE(d->batch, d->heads, d->key_dim, 1);
    tk_shape value = TK_SHAPE(d->batch, d->heads, d->value_dim, 1);
    tk_shape one = TK_SHAPE(d->batch, d->heads, 1, 1);
    tk_node *k = at_step(b, d->k, step, column), *q = at_step(b, d->q, step, column);
    tk_node *faded = tkb_multiply(b, *state, at_step(b, d->gamma, step, one));
    tk_node *error = tkb_subtract(b, at_step(b, d->v, step, value), tkb_matmul(b, faded, k));
    error = tkb_multiply(b, error, at_step(b, d->beta, step, one));
    tk_node *next = tkb_add(b, faded, tkb_multiply(b, error, tkb_swapaxes(b, k, -1, -2)));
    tk_node *y = tkb_matmul(b, next, q);
    if (d->mask) {
        tk_node *counts = at_step(b, d->mask, step, TK_SHAPE(d->batch, 1, 1, 1));
        next = tkb_where(b, counts, next, *state);
        y = tkb_where(b, counts, y, tkb_zero(b, d->dtype));
    }
    *state = next;
    return tkb_reshape(b, y, TK_SHAPE(d->batch, 1, d->heads, d->value_dim));
}

static tk_node *all_steps(tk_builder *b, const delta *d, tk_node **state) {
    if (d->steps == 0) return tkb_zeros(b, TK_SHAPE(d->batch, 0, d->heads, d->value_dim), d->dtype);
    tk_node_vec steps = {0};
    bool ok = true;
    for (int64_t i = 0; ok && i < d->steps; i++) ok = tk_vec_push(&steps, advance(b, d, i, state));
    tk_node *y =
        ok ? tkb_concatenate(b, steps.items, steps.count, 1)
           : tkb_fail(b, tk_fail(TK_OUT_OF_MEMORY, "no memory for the steps of a delta rule"));
    tk_vec_deinit(&steps);
    return y;
}

bool tkb_gated_delta_update(tk_builder *b, tk_node *q, tk_node *k, tk_node *v, tk_node *gamma,
                            tk_node *beta, tk_node *state, tk_node *mask, tk_node_vec *out) {
    tk_node *in[] = {q, k, v, gamma, beta, state, mask};
    for (int i = 0; i < 7; i++)
        if (in[i] && tk_node_is_error(in[i])) return tk_vec_push(out, in[i]);
    tk_status status = check(in, state, mask);
    if (status != TK_OK) return tk_vec_push(out, tkb_fail(b, status));
    tk_node *typed[] = {q, k, v};
    tkb_promote(b, 3, typed);
    tk_node *result = tkb_inexact(b, typed[0]);
    tk_dtype wide = result->dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    if (tk_dtype_is_complex((tk_dtype)result->dtype))
        return tk_vec_push(out, tkb_fail(b, tk_fail(TK_DTYPE_ERROR,
                                                    "gated_delta_update: operand is %s, expected "
                                                    "a dtype that is not complex",
                                                    tk_text_node(result))));
    delta d = {.batch = q->shape[0],
               .steps = q->shape[1],
               .heads = v->shape[2],
               .key_heads = q->shape[2],
               .key_dim = q->shape[3],
               .value_dim = v->shape[3],
               .dtype = wide};
    d.q = repeated(b, &d, tkb_astype(b, q, wide));
    d.k = repeated(b, &d, tkb_astype(b, k, wide));
    d.v = tkb_astype(b, v, wide);
    d.gamma = tkb_astype(b, gamma, wide);
    d.beta = tkb_astype(b, beta, wide);
    d.mask = mask ? tkb_astype(b, mask, TK_BOOL) : NULL;
    tk_node *last = state ? tkb_astype(b, state, wide)
                          : tkb_zeros(b, TK_SHAPE(d.batch, d.heads, d.value_dim, d.key_dim), wide);
    tk_node *y = all_steps(b, &d, &last);
    return tk_vec_push(out, tkb_astype(b, y, (tk_dtype)result->dtype)) && tk_vec_push(out, last);
}
