/* Reverse mode: one rule an op, and the walk that applies them.
 *
 * A rule is given an application of its op and the cotangents of the outputs, and builds the
 * cotangents of the operands: for y = f(x), grads = J' ct with the real inner product, so for a
 * holomorphic f on complex numbers ct * conj(f'(x)), as PyTorch has it. Rules are linear in the
 * cotangents and made of ops that have rules, which gives second derivatives, and forward mode for
 * ops that have nothing better (jvp.c). The record of a rule's call is tk_vjp_rule, since tk_vjp is
 * the public function. */
#ifndef GRAPH_VJP_H
#define GRAPH_VJP_H

#include "graph/build.h"

typedef struct tk_vjp_rule {
    tk_builder *b;
    tk_node *node;          /* the application */
    tk_node *const *inputs; /* its operands */
    tk_node *ct;            /* cotangent of the first output; NULL only when there are several */
    tk_node *const *cotangents; /* of all outputs; NULL is zero */
    const bool *needed;         /* by operand: whether its cotangent will be used */
    tk_node **grads;            /* by operand, to fill, of the operand's type; NULL is zero */
    struct tk_vjp_walk *walk;
} tk_vjp_rule;

/* Computes the cotangents of `wrt` (placeholders) for outputs with given cotangents, which have the
 * outputs' types; NULL is zero. grads[i] is NULL when no output depends on wrt[i]. Nodes belong to
 * the builder. The status is the first refusal or error of a rule. Integer and bool operands have
 * no cotangent. */
tk_status tk_vjp_run(tk_builder *b, size_t n_outputs, tk_node *const *outputs,
                     tk_node *const *cotangents, size_t n_wrt, tk_node *const *wrt,
                     tk_node **grads);

/* Forward mode: the tangents of outputs for tangents of placeholders (types equal; NULL is zero).
 * out_tangents[i] is NULL when zero. */
tk_status tk_jvp_run(tk_builder *b, size_t n_wrt, tk_node *const *wrt, tk_node *const *tangents,
                     size_t n_outputs, tk_node *const *outputs, tk_node **out_tangents);

/* Makes the walk end with an error; the message is this thread's. For rules that refuse. */
void tk_vjp_fail(tk_vjp_rule *v, tk_status code);

/* The op of v->node as the composition of simpler primitives that it stands for, on other operands:
 * one node an output. For fused ops: second derivatives and batching go through it. */
tk_status tkb_decompose(tk_builder *b, const tk_node *node, tk_node *const *inputs,
                        tk_node **out_outputs);

#define TK_OP(name, params, attrs, accept, dtype, shape, vjp, ...)                                 \
    void tk_vjp_##vjp(tk_vjp_rule *v);
#include "tiki/ops.def"
#undef TK_OP

#endif
