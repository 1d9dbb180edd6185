/* Batching of quantisation and of products of picked pairs and segments.
 *
 * All but the last axes of quantised arrays are free, so the batch is one more. Picked matrices lie
 * along one axis: the batch folds into it, and the indices move along. */
#include "base/error.h"
#include "graph/batch_rule.h"
#include "graph/build_quant.h"
#include "graph/vjp_rules.h"

static bool any_batched(const tk_batch *batch, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++)
        if (batch->batched[i]) return true;
    return false;
}

/* ---- codes ---- */

/* A batch of global scales for an array with `rank` axes beside the batch. */
static tk_node *global_column(tk_batch *batch, uint32_t at, int rank, tk_dtype dtype) {
    tk_shape column = {.count = rank + 1};
    for (int i = 0; i <= rank; i++) column.items[i] = i ? 1 : batch->size;
    return tkb_astype(batch->b, tkb_reshape(batch->b, batch->inputs[at], column), dtype);
}

static tk_node *unit_global(tk_batch *batch) { return tkb_const(batch->b, TK_FLOAT32, 1); }

void tk_batch_quantize_groups(tk_batch *batch) {
    const tk_node *node = batch->node;
    tk_node *inputs[2] = {tk_batch_operand(batch, 0), node->n_inputs > 1 ? batch->inputs[1] : NULL};
    if (node->n_inputs > 1 && batch->batched[1]) {
        const tk_node *w = node->inputs[0];
        tk_node *unit = global_column(batch, 1, w->rank, (tk_dtype)w->dtype);
        inputs[0] = tkb_divide(batch->b, inputs[0], unit);
        inputs[1] = unit_global(batch);
    }
    tk_batch_apply(batch, node->n_inputs, inputs, node->attrs);
}

void tk_batch_dequantize_groups(tk_batch *batch) {
    const tk_node *node = batch->node;
    const tk_attrs_dequantize *attrs = tk_node_attrs(node);
    uint32_t last = node->n_inputs - 1;
    tk_node *inputs[4];
    for (uint32_t i = 0; i <= last; i++)
        inputs[i] = attrs->has_global && i == last ? batch->inputs[i] : tk_batch_operand(batch, i);
    bool apart = attrs->has_global && batch->batched[last];
    if (apart) inputs[last] = unit_global(batch);
    tk_batch_apply(batch, node->n_inputs, inputs, attrs);
    if (apart)
        batch->outputs[0] =
            tkb_multiply(batch->b, batch->outputs[0],
                         global_column(batch, last, node->rank, (tk_dtype)node->dtype));
}

/* ---- pairs ---- */

/* [B, A, R, C] as [B * A, R, C]. */
static tk_node *fold(tk_batch *batch, tk_node *a) {
    int64_t count;
    if (tk_node_is_error(a)) return a;
    if (tk_mul_overflow_i64(a->shape[0], a->shape[1], &count))
        return tkb_fail(batch->b,
                        tk_fail(TK_OVERFLOW, "%lld times %lld matrices do not fit 63 bits",
                                (long long)a->shape[0], (long long)a->shape[1]));
    return tkb_reshape(batch->b, a, TK_SHAPE(count, a->shape[2], a->shape[3]));
}

/* The indices of every element of the batch, into matrices that were folded or not. */
static tk_node *folded_index(tk_batch *batch, uint32_t at, bool folded, int64_t count) {
    tk_node *index = tk_batch_operand(batch, at);
    if (!folded || tk_node_is_error(index)) return index;
    tk_builder *b = batch->b;
    tk_node *base = tkb_positions(b, tk_node_shape(index), 0);
    tk_node *offset =
        tkb_multiply(b, tkb_astype(b, base, TK_INT64), tkb_const_int(b, TK_INT64, count));
    return tkb_add(b, tkb_astype(b, index, TK_INT64), offset);
}

/* Operand 0, operands 1 .. n_right, then an index array for each of the two. */
static void batch_pairs(tk_batch *batch, uint32_t n_right) {
    const tk_node *node = batch->node;
    tk_node *inputs[6];
    bool left = batch->batched[0], right = any_batched(batch, 1, n_right);
    inputs[0] = left ? fold(batch, batch->inputs[0]) : batch->inputs[0];
    for (uint32_t i = 1; i <= n_right; i++)
        inputs[i] = right ? fold(batch, tk_batch_operand(batch, i)) : batch->inputs[i];
    inputs[n_right + 1] = folded_index(batch, n_right + 1, left, node->inputs[0]->shape[0]);
    inputs[n_right + 2] = folded_index(batch, n_right + 2, right, node->inputs[1]->shape[0]);
    tk_batch_apply(batch, n_right + 3, inputs, node->attrs);
}

void tk_batch_gather_product(tk_batch *batch) { batch_pairs(batch, 1); }

/* A batch of x alone, and one matrix: more rows. */
static void batch_rows(tk_batch *batch) {
    const tk_node *node = batch->node, *x = node->inputs[0];
    int64_t rows;
    tk_node *inputs[4] = {NULL};
    if (tk_mul_overflow_i64(batch->size, x->shape[0], &rows)) {
        batch->status = tk_fail(TK_OVERFLOW, "vmap: the rows of all elements do not fit 63 bits");
        return;
    }
    inputs[0] = tkb_reshape(batch->b, batch->inputs[0], TK_SHAPE(rows, x->shape[1]));
    for (uint32_t i = 1; i < node->n_inputs; i++) inputs[i] = batch->inputs[i];
    tk_node *product =
        tkb_node(batch->b, TK_OP_quantized_product, node->n_inputs, inputs, node->attrs);
    tk_shape shape = tk_batch_shape(batch, node->rank, node->shape);
    batch->outputs[0] = tkb_reshape(batch->b, product, shape);
}

void tk_batch_quantized_product(tk_batch *batch) {
    const tk_node *node = batch->node;
    const tk_attrs_quant_product *attrs = tk_node_attrs(node);
    if (attrs->gathered)
        batch_pairs(batch, node->n_inputs - 3);
    else if (node->inputs[0]->rank == 2 && !any_batched(batch, 1, node->n_inputs - 1))
        batch_rows(batch);
    else
        tk_batch_apply(batch, node->n_inputs, tk_batch_operands(batch), attrs);
}

void tk_batch_segment_product(tk_batch *batch) {
    tk_node *inputs[] = {batch->inputs[0], batch->inputs[1], batch->inputs[2]};
    if (any_batched(batch, 0, 2))
        tk_batch_decompose(batch);
    else
        tk_batch_apply(batch, 3, inputs, NULL);
}
