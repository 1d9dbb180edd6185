/* The part of a graph through which derivatives flow: what reverse mode (vjp.c) and forward mode
 * (jvp.c) share.
 *
 * Given outputs and the nodes to differentiate by (`wrt`), it holds in order, operands first, every
 * node that can depend on a placeholder, and says of each whether it is active: a real or complex
 * function of a wrt node. The walk ends at wrt nodes and at `stops`, which are constants for it.
 * Cost is linear in the nodes between. */
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
    uint32_t *first;  /* by position: the first of its outputs among all values */
    bool *active;     /* by position */
    tk_node **values; /* cotangents or tangents, one an output of a node; NULL is zero */
    size_t n_inputs;  /* most operands of a node in it */
    size_t n_ends;    /* wrt nodes and stops: the first positions */
} tk_flow;

/* `stops` may repeat each other and wrt nodes; wrt wins. On failure there is nothing to deinit. */
tk_status tk_flow_init(tk_flow *flow, size_t n_outputs, tk_node *const *outputs, size_t n_wrt,
                       tk_node *const *wrt, size_t n_stops, tk_node *const *stops);
void tk_flow_deinit(tk_flow *flow);

/* Where the value of a node's output is kept; NULL for a node that is not active. */
tk_node **tk_flow_value(tk_flow *flow, const tk_node *node, int64_t output);

/* The status that an error node carries, with its message as this thread's. */
tk_status tk_flow_error(const tk_node *error);

/* What tk_vjp_run and tk_jvp_run do, for wrt nodes of any op, which need not be distinct (the first
 * of equal ones gets all), and with stops. */
tk_status tk_vjp_between(tk_builder *b, size_t n_outputs, tk_node *const *outputs,
                         tk_node *const *cotangents, size_t n_wrt, tk_node *const *wrt,
                         size_t n_stops, tk_node *const *stops, tk_node **grads);
tk_status tk_jvp_between(tk_builder *b, size_t n_wrt, tk_node *const *wrt, tk_node *const *tangents,
                         size_t n_outputs, tk_node *const *outputs, tk_node **out_tangents);

/* Runs the rule of v->node outside of a walk; all of `v` but `walk` is set. Not for `output`. */
tk_status tk_vjp_apply(tk_vjp_rule *v);

#endif
