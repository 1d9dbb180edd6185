/* Gradient rules of the fused ops: one fused op for the first derivative. What the fused gradient
 * does not cover (the mask of attention, cotangents of its log-sum-exp, frequencies of rope) goes
 * through the decomposition, and so do derivatives of the gradient ops. */
#include <math.h>
#include <string.h>

#include "graph/flow.h"
#include "graph/vjp_rules.h"

/* The gradient op on the operands of the forward op and then `extra`; output i belongs to operand
 * i. */
static void fused(tk_vjp_rule *v, tk_op op, const void *attrs, size_t n_extra,
                  tk_node *const *extra, uint32_t n_outputs) {
    tk_node *inputs[TK_MAX_OPERANDS];
    size_t count = v->node->n_inputs;
    memcpy(inputs, v->inputs, count * sizeof *inputs);
    memcpy(inputs + count, extra, n_extra * sizeof *extra);
    tk_node *grads = tkb_node(v->b, op, count + n_extra, inputs, attrs);
    for (uint32_t i = 0; i < n_outputs; i++)
        if (v->needed[i]) v->grads[i] = tkb_output(v->b, grads, (int)i);
}

void tk_vjp_rms_norm(tk_vjp_rule *v) {
    fused(v, TK_OP_rms_norm_vjp, tk_node_attrs(v->node), 1, &v->ct, v->node->n_inputs);
}

void tk_vjp_layer_norm(tk_vjp_rule *v) {
    fused(v, TK_OP_layer_norm_vjp, tk_node_attrs(v->node), 1, &v->ct, v->node->n_inputs);
}

/* A rotation: its transpose is the inverse. */
void tk_vjp_rope(tk_vjp_rule *v) {
    tk_attrs_rope attrs = *(const tk_attrs_rope *)tk_node_attrs(v->node);
    if (attrs.has_freqs && v->needed[2]) {
        tk_vjp_decompose(v);
        return;
    }
    attrs.inverse = !attrs.inverse;
    tk_node *inputs[TK_MAX_OPERANDS];
    memcpy(inputs, v->inputs, v->node->n_inputs * sizeof *inputs);
    inputs[0] = v->ct;
    v->grads[0] = tkb_node(v->b, TK_OP_rope_fused, v->node->n_inputs, inputs, &attrs);
}

/* Of a head's sink: less the weight that it takes from each query, times what that costs. */
static tk_node *sinks_gradient(tk_vjp_rule *v, tk_node *sinks, tk_node *out, tk_node *lse) {
    tk_dtype wide = (tk_dtype)lse->dtype;
    tk_node *column = tkb_expand_dims(v->b, tkb_astype(v->b, sinks, wide), TK_AXES(-1));
    tk_node *dead = tkb_equal(v->b, lse, tkb_scalar_like(v->b, lse, -INFINITY));
    tk_node *weight = tkb_exp(v->b, tkb_subtract(v->b, column, lse));
    weight = tkb_where_or_zero(v->b, tkb_logical_not(v->b, dead), weight);
    tk_node *both = tkb_multiply(v->b, tkb_astype(v->b, out, wide), tkb_astype(v->b, v->ct, wide));
    tk_node *cost = tkb_multiply(v->b, weight, tkb_sum(v->b, both, TK_AXES(-1), false));
    tk_node *sum = tkb_negative(v->b, tkb_sum(v->b, cost, TK_AXES(0, 2), false));
    return tkb_astype(v->b, sum, (tk_dtype)sinks->dtype);
}

/* Weights come from scores and the log-sum-exp, which counts the sinks: the fused gradient of q, k,
 * v needs no more of them. */
void tk_vjp_attention(tk_vjp_rule *v) {
    tk_attrs_attention attrs = *(const tk_attrs_attention *)tk_node_attrs(v->node);
    if (v->cotangents[1] || (attrs.has_mask && v->needed[3])) {
        tk_vjp_decompose(v);
        return;
    }
    size_t sinks = 3 + (attrs.has_mask != 0), n_given = sinks;
    tk_node *inputs[TK_MAX_OPERANDS];
    tk_node *out = tkb_output(v->b, v->node, 0), *lse = tkb_output(v->b, v->node, 1);
    if (attrs.has_sinks && v->needed[sinks])
        v->grads[sinks] = sinks_gradient(v, v->inputs[sinks], out, lse);
    attrs.has_sinks = 0;
    memcpy(inputs, v->inputs, n_given * sizeof *inputs);
    inputs[n_given] = out;
    inputs[n_given + 1] = lse;
    inputs[n_given + 2] = v->ct;
    tk_node *grads = tkb_node(v->b, TK_OP_attention_vjp, n_given + 3, inputs, &attrs);
    for (int i = 0; i < 3; i++)
        if (v->needed[i]) v->grads[i] = tkb_output(v->b, grads, i);
}

void tk_vjp_cross_entropy(tk_vjp_rule *v) {
    if (v->cotangents[1]) {
        tk_vjp_decompose(v);
        return;
    }
    tk_node *extra[] = {tkb_output(v->b, v->node, 1), v->ct};
    fused(v, TK_OP_cross_entropy_vjp, NULL, 2, extra, 1);
}
