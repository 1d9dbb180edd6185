/* Batching of elementwise ops, reductions, scans, products and shape ops. The batch is axis 0, so
 * axes move up by one and lists get an entry in front. */
#include "graph/batch_rule.h"

void tk_batch_ewise(tk_batch *batch) {
    tk_batch_apply(batch, batch->node->n_inputs, tk_batch_operands(batch), batch->node->attrs);
}

void tk_batch_reduce(tk_batch *batch) {
    const tk_attrs_reduce *from = tk_node_attrs(batch->node);
    int64_t axes[TK_MAX_RANK + 1];
    tk_list list = tk_batch_list(0, from->axes, 1, axes);
    tk_attrs_reduce attrs = {.axes = {list.items + 1, list.count - 1}};
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}

void tk_batch_axis(tk_batch *batch) {
    tk_attrs_axis attrs = *(const tk_attrs_axis *)tk_node_attrs(batch->node);
    attrs.axis++;
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}

void tk_batch_scan(tk_batch *batch) {
    tk_attrs_scan attrs = *(const tk_attrs_scan *)tk_node_attrs(batch->node);
    attrs.axis++;
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}

void tk_batch_partition(tk_batch *batch) {
    tk_attrs_partition attrs = *(const tk_attrs_partition *)tk_node_attrs(batch->node);
    attrs.axis++;
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}

/* [B, M, K] and one [K, N]: the batch joins M, one product instead of B of them. */
static bool joins_rows(const tk_batch *batch, int64_t *out_rows) {
    const tk_node *a = batch->inputs[0];
    return batch->batched[0] && !batch->batched[1] && a->rank == 3 &&
           !tk_mul_overflow_i64(a->shape[0], a->shape[1], out_rows);
}

static void product_of_joined_rows(tk_batch *batch, int64_t rows) {
    const tk_node *node = batch->node;
    tk_shape flat_shape = TK_SHAPE(rows, batch->inputs[0]->shape[2]);
    tk_node *flat = tkb_reshape(batch->b, batch->inputs[0], flat_shape);
    tk_node *product = tkb_node2(batch->b, TK_OP_product, flat, batch->inputs[1], NULL);
    batch->outputs[0] =
        tkb_reshape(batch->b, product, tk_batch_shape(batch, node->rank, node->shape));
}

/* One [M, K] and a batch of columns [B, K, 1]: the columns are the rows of a matrix. */
static bool joins_columns(const tk_batch *batch) {
    const tk_node *b = batch->inputs[1];
    return !batch->batched[0] && batch->batched[1] && b->rank == 3 && b->shape[2] == 1;
}

static void product_of_joined_columns(tk_batch *batch) {
    const tk_node *node = batch->node, *columns = batch->inputs[1];
    tk_shape flat_shape = TK_SHAPE(batch->size, columns->shape[1]);
    tk_node *flat = tkb_reshape(batch->b, batch->inputs[1], flat_shape);
    tk_node *transposed = tkb_swapaxes(batch->b, batch->inputs[0], 0, 1);
    tk_node *product = tkb_node2(batch->b, TK_OP_product, flat, transposed, NULL);
    batch->outputs[0] =
        tkb_reshape(batch->b, product, tk_batch_shape(batch, node->rank, node->shape));
}

void tk_batch_product(tk_batch *batch) {
    int64_t rows;
    if (joins_rows(batch, &rows))
        product_of_joined_rows(batch, rows);
    else if (joins_columns(batch))
        product_of_joined_columns(batch);
    else
        tk_batch_apply(batch, 2, tk_batch_operands(batch), NULL);
}

void tk_batch_reshape(tk_batch *batch) {
    const tk_node *node = batch->node;
    tk_shape shape = tk_batch_shape(batch, node->rank, node->shape);
    tk_attrs_shape attrs = {.shape = tk_axes_list(&shape)};
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}

void tk_batch_permute(tk_batch *batch) {
    const tk_attrs_axes *from = tk_node_attrs(batch->node);
    int64_t axes[TK_MAX_RANK + 1];
    tk_attrs_axes attrs = {.axes = tk_batch_list(0, from->axes, 1, axes)};
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}

/* The axes that the op adds in front come between the batch and the operand's own. */
void tk_batch_expand(tk_batch *batch) {
    const tk_node *node = batch->node, *in = batch->inputs[0];
    tk_shape aligned = tk_batch_shape(batch, node->rank, node->shape);
    int added = node->rank - (in->rank - 1);
    for (int i = 0; i < node->rank; i++)
        aligned.items[i + 1] = i < added ? 1 : in->shape[i - added + 1];
    tk_node *reshaped = tkb_reshape(batch->b, batch->inputs[0], aligned);
    tk_shape shape = tk_batch_shape(batch, node->rank, node->shape);
    batch->outputs[0] = tkb_broadcast_to(batch->b, reshaped, shape);
}

void tk_batch_slice(tk_batch *batch) {
    const tk_attrs_slice *from = tk_node_attrs(batch->node);
    int64_t start[TK_MAX_RANK + 1], step[TK_MAX_RANK + 1], shape[TK_MAX_RANK + 1];
    tk_attrs_slice attrs = {.start = tk_batch_list(0, from->start, 0, start),
                            .step = tk_batch_list(1, from->step, 0, step),
                            .shape = tk_batch_list(batch->size, from->shape, 0, shape)};
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}

void tk_batch_slice_set(tk_batch *batch) {
    const tk_attrs_slice_set *from = tk_node_attrs(batch->node);
    int64_t start[TK_MAX_RANK + 1], step[TK_MAX_RANK + 1];
    tk_attrs_slice_set attrs = {.start = tk_batch_list(0, from->start, 0, start),
                                .step = tk_batch_list(1, from->step, 0, step),
                                .mode = from->mode};
    tk_batch_apply(batch, 2, tk_batch_operands(batch), &attrs);
}

static tk_node *pad_node(tk_batch *batch, tk_node *a, tk_node *value, tk_list low, tk_list high) {
    tk_attrs_pad attrs = {.low = low, .high = high};
    return tkb_node2(batch->b, TK_OP_pad_with, a, value, &attrs);
}

/* The op takes one value; with one an element, a mask says where the padding is. */
void tk_batch_pad(tk_batch *batch) {
    const tk_attrs_pad *from = tk_node_attrs(batch->node);
    tk_builder *b = batch->b;
    int64_t low[TK_MAX_RANK + 1], high[TK_MAX_RANK + 1];
    tk_list lows = tk_batch_list(0, from->low, 0, low),
            highs = tk_batch_list(0, from->high, 0, high);
    tk_node *a = tk_batch_operand(batch, 0), *value = batch->inputs[1];
    if (!batch->batched[1]) {
        batch->outputs[0] = pad_node(batch, a, value, lows, highs);
        return;
    }
    tk_node *inside = tkb_ones(b, tk_node_shape(batch->node->inputs[0]), TK_BOOL);
    tk_node *mask = pad_node(batch, inside, tkb_const(b, TK_BOOL, 0), from->low, from->high);
    tk_node *padded =
        pad_node(batch, a, tkb_const(b, (tk_dtype)batch->node->dtype, 0), lows, highs);
    tk_shape scalars = tk_batch_shape(batch, batch->node->rank, batch->node->shape);
    for (int64_t i = 1; i < scalars.count; i++) scalars.items[i] = 1;
    batch->outputs[0] = tkb_where(b, mask, padded, tkb_reshape(b, value, scalars));
}

void tk_batch_join(tk_batch *batch) {
    tk_attrs_axis attrs = *(const tk_attrs_axis *)tk_node_attrs(batch->node);
    attrs.axis++;
    tk_batch_apply(batch, batch->node->n_inputs, tk_batch_operands(batch), &attrs);
}
