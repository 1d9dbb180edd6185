/* The reverse walk, and the rules that are about the walk itself.
 *
 * Cotangents gather in one slot an output of a node; users come before operands, so a slot is
 * complete when its node is reached. Sums are built in the order of the walk, which depends only on
 * the graph: the same program gives the same graph and the same bits. A balanced tree of sums would
 * round less but would hold all terms until the end.
 *
 * An `output` node adds to the slot of its tuple, so the rule of an op with several outputs runs
 * once. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "graph/custom.h"
#include "graph/flow.h"
#include "graph/launch.h"
#include "graph/place.h"
#include "graph/vjp_rules.h"

typedef struct tk_vjp_walk tk_vjp_walk;

struct tk_vjp_walk {
    tk_builder *b;
    tk_flow flow;
    bool *needed;
    tk_node **grads;
    tk_status status;
};

void tk_vjp_fail(tk_vjp_rule *v, tk_status code) {
    if (v->walk->status == TK_OK) v->walk->status = code;
}

static void add_cotangent(tk_vjp_walk *walk, const tk_node *node, int64_t output,
                          tk_node *cotangent) {
    tk_node **slot = tk_flow_value(&walk->flow, node, output);
    if (!slot || !cotangent) return;
    if (tk_node_is_error(cotangent)) {
        if (walk->status == TK_OK) walk->status = tk_flow_error(cotangent);
        return;
    }
    assert(node->n_outputs > 1 ||
           (cotangent->dtype == node->dtype && tk_shape_equal(cotangent, node)));
    *slot = *slot ? tkb_add(walk->b, *slot, cotangent) : cotangent;
}

static bool any_cotangent(tk_node *const *cotangents, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (cotangents[i]) return true;
    return false;
}

static void apply_rule(tk_vjp_walk *walk, uint32_t at) {
    tk_flow *flow = &walk->flow;
    tk_node *node = flow->order.items[at];
    tk_node *const *cotangents = flow->values + flow->first[at];
    if (!any_cotangent(cotangents, node->n_outputs)) return;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        uint32_t input = tk_node_map_get(&flow->map, node->inputs[i]);
        walk->needed[i] = input != TK_NODE_ABSENT && flow->active[input];
        walk->grads[i] = NULL;
    }
    tk_vjp_rule v = {.b = walk->b,
                     .node = node,
                     .inputs = node->inputs,
                     .ct = cotangents[0],
                     .cotangents = cotangents,
                     .needed = walk->needed,
                     .grads = walk->grads,
                     .walk = walk};
    uint32_t stream = tk_place_enter(walk->b, node);
    tk_node_op(node)->vjp(&v);
    walk->b->stream = stream;
    for (uint32_t i = 0; i < node->n_inputs && walk->status == TK_OK; i++)
        if (walk->needed[i]) add_cotangent(walk, node->inputs[i], 0, walk->grads[i]);
}

static tk_status walk_back(tk_vjp_walk *walk, size_t n_outputs, tk_node *const *outputs,
                           tk_node *const *cotangents) {
    tk_flow *flow = &walk->flow;
    walk->needed = tk_calloc(flow->n_inputs + 1, sizeof *walk->needed);
    walk->grads = tk_calloc(flow->n_inputs + 1, sizeof(tk_node *));
    if (!walk->needed || !walk->grads)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to differentiate");
    for (size_t i = 0; i < n_outputs; i++) add_cotangent(walk, outputs[i], 0, cotangents[i]);
    for (size_t at = flow->order.count; at-- > flow->n_wrt && walk->status == TK_OK;)
        if (flow->active[at]) apply_rule(walk, (uint32_t)at);
    return walk->status;
}

static void take_grads(tk_vjp_walk *walk, size_t n_wrt, tk_node *const *wrt, tk_node **grads) {
    for (size_t i = 0; i < n_wrt; i++) {
        tk_node **slot = tk_flow_value(&walk->flow, wrt[i], 0);
        grads[i] = slot ? *slot : NULL;
    }
}

tk_status tk_vjp_inside(tk_builder *b, const tk_flow *outer, size_t n_outputs,
                        tk_node *const *outputs, tk_node *const *cotangents, size_t n_wrt,
                        tk_node *const *wrt, tk_node **grads) {
    tk_vjp_walk walk = {.b = b};
    TK_TRY(tk_flow_init(&walk.flow, outer, n_outputs, outputs, n_wrt, wrt));
    tk_status status = walk_back(&walk, n_outputs, outputs, cotangents);
    take_grads(&walk, n_wrt, wrt, grads);
    if (status == TK_OK) status = tk_flow_check(n_wrt, grads);
    tk_free(walk.needed);
    tk_free(walk.grads);
    tk_flow_deinit(&walk.flow);
    return status;
}

tk_status tk_vjp_run(tk_builder *b, size_t n_outputs, tk_node *const *outputs,
                     tk_node *const *cotangents, size_t n_wrt, tk_node *const *wrt,
                     tk_node **grads) {
    return tk_vjp_inside(b, NULL, n_outputs, outputs, cotangents, n_wrt, wrt, grads);
}

tk_status tk_vjp_apply(tk_vjp_rule *v, const tk_flow *outer) {
    tk_vjp_walk walk = {.b = v->b, .flow = {.outer = outer}};
    v->walk = &walk;
    for (uint32_t i = 0; i < v->node->n_inputs; i++) v->grads[i] = NULL;
    uint32_t stream = tk_place_enter(v->b, v->node);
    tk_node_op(v->node)->vjp(v);
    v->b->stream = stream;
    TK_TRY(walk.status);
    return tk_flow_check(v->node->n_inputs, v->grads);
}

/* ---- rules about the walk ---- */

void tk_vjp_zero(tk_vjp_rule *v) { (void)v; }

void tk_vjp_refuse(tk_vjp_rule *v) {
    tk_vjp_fail(v,
                tk_fail(TK_UNSUPPORTED,
                        "%s has no derivative: it is not a smooth function of its operand, or Tiki "
                        "has no rule for it; use stop_gradient around it",
                        tk_op_name((tk_op)v->node->op)));
}

void tk_vjp_identity(tk_vjp_rule *v) { v->grads[0] = v->ct; }

void tk_vjp_identity_first(tk_vjp_rule *v) { v->grads[0] = v->ct; }

/* The argument of a transform that has been closed: its value. */
void tk_vjp_placeholder(tk_vjp_rule *v) {
    if (v->node->n_inputs) v->grads[0] = v->ct;
}

void tk_vjp_output(tk_vjp_rule *v) {
    const tk_attrs_output *attrs = tk_node_attrs(v->node);
    add_cotangent(v->walk, v->inputs[0], attrs->index, v->ct);
}

void tk_vjp_custom(tk_vjp_rule *v) {
    const tk_attrs_custom *attrs = tk_node_attrs(v->node);
    tk_custom_rules *call = (tk_custom_rules *)(void *)attrs->call;
    if (call->vjp) {
        tk_status status = call->vjp(call, v);
        if (status != TK_OK) tk_vjp_fail(v, status);
        return;
    }
    for (uint32_t i = 0; i < v->node->n_outputs; i++)
        v->grads[attrs->n_args + i] = v->cotangents[i];
}

/* Back to where the operand is. */
void tk_vjp_transfer(tk_vjp_rule *v) {
    v->b->stream = v->inputs[0]->stream;
    v->grads[0] = tkb_node1(v->b, TK_OP_transfer, v->ct, NULL);
}

void tk_vjp_launch(tk_vjp_rule *v) {
    const tk_attrs_launch *attrs = tk_node_attrs(v->node);
    tk_vjp_fail(v, tk_fail(TK_UNSUPPORTED,
                           "kernel %s has no derivative: call it through a function with a vjp or "
                           "jvp of its own",
                           tk_launch_record_of(attrs)->name));
}

/* Stand-ins for the operands that need a gradient: see flow.h. */
static tk_status grads_of_parts(tk_vjp_rule *v) {
    tk_node *parts[TK_MAX_OUTPUTS], *inputs[TK_MAX_OPERANDS];
    tk_node *wrt[TK_MAX_OPERANDS], *grads[TK_MAX_OPERANDS];
    uint32_t n_wrt = 0, operand[TK_MAX_OPERANDS];
    assert(v->node->n_inputs <= TK_MAX_OPERANDS && v->node->n_outputs <= TK_MAX_OUTPUTS);
    for (uint32_t i = 0; i < v->node->n_inputs; i++) {
        inputs[i] = v->needed[i] ? tkb_stand_in(v->b, v->inputs[i]) : v->inputs[i];
        if (!v->needed[i]) continue;
        operand[n_wrt] = i;
        wrt[n_wrt++] = inputs[i];
    }
    TK_TRY(tk_flow_check(n_wrt, wrt));
    TK_TRY(tkb_decompose(v->b, v->node, inputs, parts));
    TK_TRY(tk_vjp_inside(v->b, &v->walk->flow, v->node->n_outputs, parts, v->cotangents, n_wrt, wrt,
                         grads));
    for (uint32_t i = 0; i < n_wrt; i++) v->grads[operand[i]] = grads[i];
    return TK_OK;
}

void tk_vjp_decompose(tk_vjp_rule *v) {
    tk_status status = grads_of_parts(v);
    if (status != TK_OK) tk_vjp_fail(v, status);
}
