/* Gradient rules of the fused ops: one fused op for the first derivative. What the fused gradient
 * does not cover (the mask of attention, cotangents of its log-sum-exp, frequencies of rope) goes
 * through the decomposition, and so do derivatives of the gradient ops. */
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

void tk_vjp_attention(tk_vjp_rule *v) {
    const tk_attrs_attention *attrs = tk_node_attrs(v->node);
    if (v->cotangents[1] || (attrs->has_mask && v->needed[3])) {
        tk_vjp_decompose(v);
        return;
    }
    tk_node *extra[] = {tkb_output(v->b, v->node, 0), tkb_output(v->b, v->node, 1), v->ct};
    fused(v, TK_OP_attention_vjp, attrs, 3, extra, 3);
}

void tk_vjp_cross_entropy(tk_vjp_rule *v) {
    if (v->cotangents[1]) {
        tk_vjp_decompose(v);
        return;
    }
    tk_node *extra[] = {tkb_output(v->b, v->node, 1), v->ct};
    fused(v, TK_OP_cross_entropy_vjp, NULL, 2, extra, 1);
}
