/* Finds the active part of a graph. Nodes without a trace cannot depend on a placeholder and are
 * left out with all below them, so that the cost of a derivative does not depend on how its
 * constants were made. */
#include "graph/flow.h"

#include "base/error.h"

static bool may_depend(const tk_node *node, void *arg) {
    const tk_flow *flow = arg;
    if (node->trace == 0) return false;
    for (const tk_flow *outer = flow->outer; outer; outer = outer->outer)
        if (tk_node_map_get(&outer->map, node) != TK_NODE_ABSENT) return false;
    return true;
}

static bool add_wrt(tk_flow *flow, tk_node *node) {
    if (tk_node_map_get(&flow->map, node) != TK_NODE_ABSENT) return true;
    return tk_node_map_put(&flow->map, node, (uint32_t)flow->order.count) &&
           tk_vec_push(&flow->order, node);
}

static bool is_inexact(const tk_node *node, uint32_t output) {
    return tk_dtype_is_inexact(node->outputs ? node->outputs[output].dtype : (tk_dtype)node->dtype);
}

static bool has_inexact_output(const tk_node *node) {
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (is_inexact(node, i)) return true;
    return false;
}

static bool is_active(const tk_flow *flow, const tk_node *node) {
    if (tk_node_op(node)->vjp == tk_vjp_zero || !has_inexact_output(node)) return false;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        uint32_t at = tk_node_map_get(&flow->map, node->inputs[i]);
        if (at != TK_NODE_ABSENT && flow->active[at]) return true;
    }
    return false;
}

static bool flow_fill(tk_flow *flow, size_t n_wrt, tk_node *const *wrt) {
    size_t count = flow->order.count;
    flow->first = tk_calloc(count + 1, sizeof *flow->first);
    flow->active = tk_calloc(count + 1, sizeof *flow->active);
    if (!flow->first || !flow->active) return false;
    for (size_t i = 0; i < n_wrt; i++)
        flow->active[tk_node_map_get(&flow->map, wrt[i])] = has_inexact_output(wrt[i]);
    uint32_t n_values = 0;
    for (size_t i = 0; i < count; i++) {
        const tk_node *node = flow->order.items[i];
        flow->first[i] = n_values;
        n_values += node->n_outputs;
        if (i < flow->n_wrt) continue;
        flow->active[i] = is_active(flow, node);
        if (flow->n_inputs < node->n_inputs) flow->n_inputs = node->n_inputs;
    }
    flow->values = tk_calloc((size_t)n_values + 1, sizeof(tk_node *));
    return flow->values != NULL;
}

tk_status tk_flow_init(tk_flow *flow, const tk_flow *outer, size_t n_outputs,
                       tk_node *const *outputs, size_t n_wrt, tk_node *const *wrt) {
    *flow = (tk_flow){.outer = outer};
    TK_TRY(tk_flow_check(n_outputs, outputs));
    bool ok = true;
    for (size_t i = 0; ok && i < n_wrt; i++) ok = add_wrt(flow, wrt[i]);
    flow->n_wrt = flow->order.count;
    tk_status status = TK_OUT_OF_MEMORY;
    if (ok) status = tk_walk_order(n_outputs, outputs, may_depend, flow, &flow->order, &flow->map);
    if (status == TK_OK && flow_fill(flow, n_wrt, wrt)) return TK_OK;
    tk_flow_deinit(flow);
    return tk_fail(TK_OUT_OF_MEMORY, "no memory to differentiate");
}

void tk_flow_deinit(tk_flow *flow) {
    tk_vec_deinit(&flow->order);
    tk_node_map_deinit(&flow->map);
    tk_free(flow->first);
    tk_free(flow->active);
    tk_free(flow->values);
}

tk_node **tk_flow_value(tk_flow *flow, const tk_node *node, int64_t output) {
    uint32_t at = tk_node_map_get(&flow->map, node);
    if (at == TK_NODE_ABSENT || !flow->active[at] || !is_inexact(node, (uint32_t)output))
        return NULL;
    return &flow->values[flow->first[at] + (uint32_t)output];
}

tk_status tk_flow_error(const tk_node *error) {
    const tk_attrs_error *attrs = tk_node_attrs(error);
    return tk_fail_again((tk_status)attrs->code, attrs->message);
}

tk_status tk_flow_check(size_t count, tk_node *const *nodes) {
    for (size_t i = 0; i < count; i++)
        if (nodes[i] && tk_node_is_error(nodes[i])) return tk_flow_error(nodes[i]);
    return TK_OK;
}

tk_node *tkb_stand_in(tk_builder *b, tk_node *node) {
    tk_attrs_placeholder attrs = {.dtype = node->dtype,
                                  .shape = {node->shape, node->rank},
                                  .serial = (int64_t)tk_graph_serial(b->graph)};
    return tkb_node1(b, TK_OP_placeholder, node, &attrs);
}
