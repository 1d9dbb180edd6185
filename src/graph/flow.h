/* The part of a graph through which derivatives flow: what reverse mode (vjp.c) and forward mode
 * (jvp.c) share.
 *
 * Given outputs and the placeholders to differentiate by (`wrt`), it holds in order, operands
 * first, every node that can depend on a placeholder, and says of each whether it is active: a real
 * or complex function of a wrt node. Cost is linear in the nodes between outputs and wrt.
 *
 * Rules may need a derivative of their own (of a decomposition, of another rule). They take it by
 * fresh placeholders that stand for their operands, never by the operands themselves: builders
 * simplify, so a transpose of an operand may be a node beside it. What the outer flow holds is
 * constant for the inner one and is left out of it, else a walk a node would make all quadratic. */
#ifndef GRAPH_FLOW_H
#define GRAPH_FLOW_H

#include "graph/infer.h"
#include "graph/vjp.h"
#include "graph/walk.h"

/* Most operands of an op that has a decomposition. */
#define TK_MAX_OPERANDS 8

typedef struct tk_flow {
    tk_node_vec order;
    tk_node_map map;
    const struct tk_flow *outer; /* what is constant; NULL: nothing */
    uint32_t *first;             /* by position: the first of its outputs among all values */
    bool *active;                /* by position */
    tk_node **values;            /* cotangents or tangents, one an output of a node; NULL is zero */
    size_t n_inputs;             /* most operands of a node in it */
    size_t n_wrt;                /* wrt nodes: the first positions */
} tk_flow;

/* The first error among outputs, or out of memory; there is nothing to deinit then. */
tk_status tk_flow_init(tk_flow *flow, const tk_flow *outer, size_t n_outputs,
                       tk_node *const *outputs, size_t n_wrt, tk_node *const *wrt);
void tk_flow_deinit(tk_flow *flow);

/* Where the value of a node's output is kept; NULL for a node that is not active. */
tk_node **tk_flow_value(tk_flow *flow, const tk_node *node, int64_t output);

/* The status that an error node carries, with its message as this thread's. */
tk_status tk_flow_error(const tk_node *error);

/* The first error among nodes, which may be NULL. */
tk_status tk_flow_check(size_t count, tk_node *const *nodes);

/* tk_vjp_run and tk_jvp_run inside of another flow. */
tk_status tk_vjp_inside(tk_builder *b, const tk_flow *outer, size_t n_outputs,
                        tk_node *const *outputs, tk_node *const *cotangents, size_t n_wrt,
                        tk_node *const *wrt, tk_node **grads);
tk_status tk_jvp_inside(tk_builder *b, const tk_flow *outer, size_t n_wrt, tk_node *const *wrt,
                        tk_node *const *tangents, size_t n_outputs, tk_node *const *outputs,
                        tk_node **out_tangents);

/* A fresh placeholder with the value of a node that is active. */
tk_node *tkb_stand_in(tk_builder *b, tk_node *node);

/* Runs the rule of v->node alone; all of `v` but `walk` is set. Not for `output`. */
tk_status tk_vjp_apply(tk_vjp_rule *v, const tk_flow *outer);

#endif
