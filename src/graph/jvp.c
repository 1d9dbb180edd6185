/* Forward mode: tangents go from placeholders to outputs, operands before users.
 *
 * There is no second table of rules. By op:
 *   - ops linear in all operands (fact LIN): the op on the tangents, zeros for those that are
 * missing;
 *   - ops linear in each (BILIN): a sum over the operands of the op with that one replaced;
 *   - real elementwise ops and real softmax: their Jacobian is symmetric, so the reverse rule given
 * a tangent of the operand as cotangent is the tangent of the result;
 *   - fused ops: forward mode through their decomposition;
 *   - custom functions: their own callback, or else the tangents of the results;
 *   - everything else, complex numbers included: the reverse rule is linear in its cotangent, so
 * its transpose is forward mode. The rule is built on a placeholder u in place of the cotangent,
 * and reverse mode of that with respect to u, with the operand's tangent as cotangent, gives the
 * tangent; u itself drops out. Gathers come out as gathers, sorts as gathers by the order. Only
 * nodes that an output needs are looked at, and not the inside of a custom function with a rule. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "graph/custom.h"
#include "graph/flow.h"
#include "graph/place.h"
#include "graph/vjp_rules.h"

typedef struct jvp {
    tk_builder *b;
    tk_flow flow;
    bool *wanted;       /* by position */
    tk_node **tangents; /* of the operands of the node at hand */
    tk_node **grads;
    bool *needed;
    uint32_t trace;
} jvp;

/* ---- by op ---- */

static tk_node *plus(tk_builder *b, tk_node *sum, tk_node *term) {
    if (!sum || !term) return sum ? sum : term;
    return tkb_add(b, sum, term);
}

static tk_node *linear(jvp *j, tk_node *node) {
    tk_node **operands = j->grads;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        operands[i] = j->tangents[i] ? j->tangents[i] : tkb_zeros_of(j->b, node->inputs[i]);
    return tkb_node(j->b, (tk_op)node->op, node->n_inputs, operands, tk_node_attrs(node));
}

static tk_node *bilinear(jvp *j, tk_node *node) {
    tk_node *sum = NULL;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!j->tangents[i]) continue;
        memcpy(j->grads, node->inputs, node->n_inputs * sizeof(tk_node *));
        j->grads[i] = j->tangents[i];
        sum = plus(j->b, sum,
                   tkb_node(j->b, (tk_op)node->op, node->n_inputs, j->grads, tk_node_attrs(node)));
    }
    return sum;
}

/* The reverse rule for operand `i` alone, with a cotangent an output; the result is in j->grads[i].
 */
static tk_status reverse_rule(jvp *j, tk_node *node, uint32_t i, tk_node *const *cotangents) {
    memset(j->needed, 0, node->n_inputs * sizeof *j->needed);
    j->needed[i] = true;
    tk_vjp_rule v = {.b = j->b,
                     .node = node,
                     .inputs = node->inputs,
                     .ct = cotangents[0],
                     .cotangents = cotangents,
                     .needed = j->needed,
                     .grads = j->grads};
    return tk_vjp_apply(&v, &j->flow);
}

static tk_status symmetric(jvp *j, tk_node *node, tk_node **out_tangent) {
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!j->tangents[i]) continue;
        TK_TRY(reverse_rule(j, node, i, &j->tangents[i]));
        *out_tangent = plus(j->b, *out_tangent, j->grads[i]);
    }
    return TK_OK;
}

static tk_status make_cotangent(jvp *j, tk_type type, tk_node **out_u) {
    if (!j->trace) TK_TRY(tk_trace_open(j->b->graph, &j->trace));
    tk_attrs_placeholder attrs = {.dtype = type.dtype,
                                  .shape = {type.shape, type.rank},
                                  .serial = (int64_t)tk_graph_serial(j->b->graph)};
    tk_node *u = tkb_node(j->b, TK_OP_placeholder, 0, NULL, &attrs);
    if (tk_node_is_error(u)) return tk_flow_error(u);
    u->trace = j->trace;
    *out_u = u;
    return TK_OK;
}

/* Outputs that are no real or complex numbers have no tangent. `output[k]` is that of us[k]. */
static tk_status make_cotangents(jvp *j, tk_node *node, tk_node **by_output, tk_node **us,
                                 uint32_t *output, size_t *out_count) {
    *out_count = 0;
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        tk_type type = node->outputs ? node->outputs[i] : tk_node_type(node);
        by_output[i] = NULL;
        if (!tk_dtype_is_inexact(type.dtype)) continue;
        TK_TRY(make_cotangent(j, type, &by_output[i]));
        us[*out_count] = by_output[i];
        output[(*out_count)++] = i;
    }
    return TK_OK;
}

static tk_status transposed(jvp *j, tk_node *node, tk_node **out_tangents) {
    tk_node *by_output[TK_MAX_OUTPUTS], *us[TK_MAX_OUTPUTS], *parts[TK_MAX_OUTPUTS];
    uint32_t output[TK_MAX_OUTPUTS];
    size_t count;
    assert(node->n_outputs <= TK_MAX_OUTPUTS);
    TK_TRY(make_cotangents(j, node, by_output, us, output, &count));
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!j->tangents[i]) continue;
        TK_TRY(reverse_rule(j, node, i, by_output));
        if (!j->grads[i]) continue;
        TK_TRY(tk_vjp_inside(j->b, &j->flow, 1, &j->grads[i], &j->tangents[i], count, us, parts));
        for (size_t k = 0; k < count; k++)
            out_tangents[output[k]] = plus(j->b, out_tangents[output[k]], parts[k]);
    }
    return TK_OK;
}

/* Stand-ins for the operands that have a tangent: see flow.h. */
static tk_status through_parts(jvp *j, tk_node *node, tk_node **out_tangents) {
    tk_node *parts[TK_MAX_OUTPUTS], *inputs[TK_MAX_OPERANDS];
    tk_node *wrt[TK_MAX_OPERANDS], *tangents[TK_MAX_OPERANDS];
    size_t n_wrt = 0;
    assert(node->n_inputs <= TK_MAX_OPERANDS && node->n_outputs <= TK_MAX_OUTPUTS);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        inputs[i] = j->tangents[i] ? tkb_stand_in(j->b, node->inputs[i]) : node->inputs[i];
        if (!j->tangents[i]) continue;
        tangents[n_wrt] = j->tangents[i];
        wrt[n_wrt++] = inputs[i];
    }
    TK_TRY(tk_flow_check(n_wrt, wrt));
    TK_TRY(tkb_decompose(j->b, node, inputs, parts));
    return tk_jvp_inside(j->b, &j->flow, n_wrt, wrt, tangents, node->n_outputs, parts,
                         out_tangents);
}

static tk_custom_rules *call_of(const tk_node *node) {
    const tk_attrs_custom *attrs = tk_node_attrs(node);
    return (tk_custom_rules *)(void *)attrs->call;
}

static bool has_jvp_callback(const tk_node *node) {
    return node->op == TK_OP_custom && call_of(node)->jvp != NULL;
}

static tk_status through_custom(jvp *j, tk_node *node, tk_node **out_tangents) {
    const tk_attrs_custom *attrs = tk_node_attrs(node);
    tk_custom_rules *call = call_of(node);
    if (call->jvp) return call->jvp(call, j->b, node, j->tangents, out_tangents);
    memcpy(out_tangents, j->tangents + attrs->n_args, node->n_outputs * sizeof *out_tangents);
    return TK_OK;
}

static bool is_all_real(const tk_node *node) {
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (tk_is_complex(node->inputs[i])) return false;
    return !tk_is_complex(node);
}

static bool keeps_dtype(const jvp *j, const tk_node *node) {
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (j->tangents[i] && node->inputs[i]->dtype != node->dtype) return false;
    return true;
}

static tk_status tangent_by_op(jvp *j, tk_node *node, tk_node **out_tangents) {
    const tk_op_info *op = tk_node_op(node);
    bool is_symmetric = op->lower == TK_LOWER_EWISE || node->op == TK_OP_softmax_axes;
    if (node->op == TK_OP_custom) return through_custom(j, node, out_tangents);
    if (node->op == TK_OP_barrier || node->op == TK_OP_placeholder) {
        out_tangents[0] = j->tangents[0];
        return TK_OK;
    }
    if (op->facts & TK_FACT_LIN) {
        out_tangents[0] = linear(j, node);
        return TK_OK;
    }
    if (op->facts & TK_FACT_BILIN) {
        out_tangents[0] = bilinear(j, node);
        return TK_OK;
    }
    if (is_symmetric && is_all_real(node) && keeps_dtype(j, node))
        return symmetric(j, node, out_tangents);
    if (op->lower == TK_LOWER_FUSED) return through_parts(j, node, out_tangents);
    return transposed(j, node, out_tangents);
}

/* ---- the walk ---- */

/* Marks what the outputs need. */
static void mark_wanted(jvp *j, size_t n_outputs, tk_node *const *outputs) {
    tk_flow *flow = &j->flow;
    for (size_t i = 0; i < n_outputs; i++) {
        uint32_t at = tk_node_map_get(&flow->map, outputs[i]);
        if (at != TK_NODE_ABSENT) j->wanted[at] = flow->active[at];
    }
    for (size_t at = flow->order.count; at-- > flow->n_wrt;) {
        const tk_node *node = flow->order.items[at];
        if (!j->wanted[at]) continue;
        uint32_t count = node->n_inputs;
        if (has_jvp_callback(node))
            count = (uint32_t)((const tk_attrs_custom *)tk_node_attrs(node))->n_args;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t input = tk_node_map_get(&flow->map, node->inputs[i]);
            if (input != TK_NODE_ABSENT && flow->active[input]) j->wanted[input] = true;
        }
    }
}

static tk_node *tangent_of(jvp *j, const tk_node *node, int64_t output) {
    tk_node **slot = tk_flow_value(&j->flow, node, output);
    return slot ? *slot : NULL;
}

static tk_status step(jvp *j, uint32_t at) {
    tk_node *node = j->flow.order.items[at];
    tk_node **out_tangents = j->flow.values + j->flow.first[at];
    if (node->op == TK_OP_output) {
        const tk_attrs_output *attrs = tk_node_attrs(node);
        out_tangents[0] = tangent_of(j, node->inputs[0], attrs->index);
        return TK_OK;
    }
    bool any = false;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        j->tangents[i] = tangent_of(j, node->inputs[i], 0);
        any |= j->tangents[i] != NULL;
    }
    uint32_t stream = tk_place_enter(j->b, node);
    tk_status status = any ? tangent_by_op(j, node, out_tangents) : TK_OK;
    j->b->stream = stream;
    TK_TRY(status);
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (out_tangents[i] && tk_node_is_error(out_tangents[i]))
            return tk_flow_error(out_tangents[i]);
    return TK_OK;
}

static tk_status prepare(jvp *j) {
    size_t count = j->flow.n_inputs + 1;
    j->wanted = tk_calloc(j->flow.order.count + 1, sizeof *j->wanted);
    j->tangents = tk_calloc(count, sizeof(tk_node *));
    j->grads = tk_calloc(count, sizeof(tk_node *));
    j->needed = tk_calloc(count, sizeof *j->needed);
    if (j->wanted && j->tangents && j->grads && j->needed) return TK_OK;
    return tk_fail(TK_OUT_OF_MEMORY, "no memory to differentiate");
}

static tk_status walk_forward(jvp *j, size_t n_wrt, tk_node *const *wrt, tk_node *const *tangents,
                              size_t n_outputs, tk_node *const *outputs, tk_node **out_tangents) {
    TK_TRY(prepare(j));
    for (size_t i = 0; i < n_wrt; i++) {
        tk_node **slot = tk_flow_value(&j->flow, wrt[i], 0);
        if (slot && tangents[i]) *slot = tangents[i];
    }
    mark_wanted(j, n_outputs, outputs);
    for (size_t at = j->flow.n_wrt; at < j->flow.order.count; at++)
        if (j->wanted[at]) TK_TRY(step(j, (uint32_t)at));
    for (size_t i = 0; i < n_outputs; i++) out_tangents[i] = tangent_of(j, outputs[i], 0);
    return TK_OK;
}

tk_status tk_jvp_inside(tk_builder *b, const tk_flow *outer, size_t n_wrt, tk_node *const *wrt,
                        tk_node *const *tangents, size_t n_outputs, tk_node *const *outputs,
                        tk_node **out_tangents) {
    TK_TRY(tk_flow_check(n_wrt, tangents));
    jvp j = {.b = b};
    TK_TRY(tk_flow_init(&j.flow, outer, n_outputs, outputs, n_wrt, wrt));
    tk_status status = walk_forward(&j, n_wrt, wrt, tangents, n_outputs, outputs, out_tangents);
    if (j.trace) tk_trace_close(b->graph, j.trace);
    tk_free(j.wanted);
    tk_free(j.tangents);
    tk_free(j.grads);
    tk_free(j.needed);
    tk_flow_deinit(&j.flow);
    return status;
}

tk_status tk_jvp_run(tk_builder *b, size_t n_wrt, tk_node *const *wrt, tk_node *const *tangents,
                     size_t n_outputs, tk_node *const *outputs, tk_node **out_tangents) {
    return tk_jvp_inside(b, NULL, n_wrt, wrt, tangents, n_outputs, outputs, out_tangents);
}
