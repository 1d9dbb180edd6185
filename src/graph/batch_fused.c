/* Batching of the fused ops. Those with leading axes of their own take the batch as one more; the
 * others fold it into the first one. What is shared by contract (norm parameters, rope frequencies)
 * and batched all the same takes the op apart. */
#include "base/error.h"
#include "graph/batch_rule.h"

static bool any_batched_from(const tk_batch *batch, uint32_t first) {
    for (uint32_t i = first; i < batch->node->n_inputs; i++)
        if (batch->batched[i]) return true;
    return false;
}

void tk_batch_norm(tk_batch *batch) {
    if (any_batched_from(batch, 1))
        tk_batch_decompose(batch);
    else
        tk_batch_apply(batch, batch->node->n_inputs, batch->inputs, batch->node->attrs);
}

void tk_batch_cross_entropy(tk_batch *batch) {
    tk_batch_apply(batch, 2, tk_batch_operands(batch), NULL);
}

/* [B, N, ...] as [B * N, ...]. */
static tk_node *fold(tk_batch *batch, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    tk_shape shape = {.count = a->rank - 1};
    for (int i = 1; i < a->rank; i++) shape.items[i - 1] = a->shape[i];
    if (tk_mul_overflow_i64(a->shape[0], a->shape[1], &shape.items[0])) {
        tk_status status = tk_fail(TK_OVERFLOW, "%lld times %lld batch entries do not fit 63 bits",
                                   (long long)a->shape[0], (long long)a->shape[1]);
        return tkb_fail(batch->b, status);
    }
    return tkb_reshape(batch->b, a, shape);
}

static void unfold_outputs(tk_batch *batch, tk_node *folded) {
    const tk_node *node = batch->node;
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        tk_type type = node->outputs ? node->outputs[i] : tk_node_type(node);
        tk_node *output = tk_node_is_error(folded) ? folded : tkb_output(batch->b, folded, (int)i);
        tk_shape shape = tk_batch_shape(batch, type.rank, type.shape);
        batch->outputs[i] = tkb_reshape(batch->b, output, shape);
    }
}

/* Sinks, one a head for all of the batch, stay as they are. */
void tk_batch_attention(tk_batch *batch) {
    const tk_attrs_attention *attrs = tk_node_attrs(batch->node);
    uint32_t folded = batch->node->n_inputs - (attrs->has_sinks != 0);
    tk_node *inputs[5];
    if (any_batched_from(batch, folded)) {
        tk_batch_decompose(batch);
        return;
    }
    for (uint32_t i = 0; i < batch->node->n_inputs; i++)
        inputs[i] = i < folded ? fold(batch, tk_batch_operand(batch, i)) : batch->inputs[i];
    unfold_outputs(batch, tkb_node(batch->b, TK_OP_attention, batch->node->n_inputs, inputs,
                                   batch->node->attrs));
}

/* An offset an entry of x's first axis needs that axis: the batch folds into it. A scalar offset,
 * or one an element of the batch, leaves x's axes alone. */
void tk_batch_rope(tk_batch *batch) {
    const tk_node *node = batch->node;
    if (node->n_inputs > 2 && batch->batched[2]) {
        tk_batch_decompose(batch);
        return;
    }
    tk_node *inputs[3] = {tk_batch_operand(batch, 0), batch->inputs[1]};
    if (node->n_inputs > 2) inputs[2] = batch->inputs[2];
    if (node->inputs[1]->rank == 0) {
        tk_batch_apply(batch, node->n_inputs, inputs, node->attrs);
        return;
    }
    inputs[0] = fold(batch, inputs[0]);
    inputs[1] = fold(batch, tk_batch_operand(batch, 1));
    unfold_outputs(batch,
                   tkb_node(batch->b, TK_OP_rope_fused, node->n_inputs, inputs, node->attrs));
}
