/* Batching of indexing ops and random bits.
 *
 * gather and scatter address slices by index tuples. Where the array and the indices are both
 * batched, the element's number becomes one more index, along the array's batch axis; where only
 * one of them is, that axis is part of every slice, or one more axis of the indices, and no index
 * is needed. */
#include "graph/batch_rule.h"

static bool any_index_batched(const tk_batch *batch, size_t first) {
    for (uint32_t i = (uint32_t)first; i < batch->node->n_inputs; i++)
        if (batch->batched[i]) return true;
    return false;
}

/* 0 ... size-1 along axis 0 of an array like `index`. */
static tk_node *batch_index(tk_batch *batch, const tk_node *index) {
    tk_shape shape = tk_node_shape(index);
    tk_attrs_iota attrs = {.dtype = batch->size > INT32_MAX ? TK_INT64 : TK_INT32,
                           .shape = tk_axes_list(&shape),
                           .axis = 0,
                           .start = 0,
                           .step = 1};
    return tkb_node(batch->b, TK_OP_iota, 0, NULL, &attrs);
}

/* Axis `from` at position `to`, the others in their order. */
static tk_node *move_axis(tk_batch *batch, tk_node *a, int from, int to) {
    int64_t axes[TK_MAX_RANK];
    int next = 0;
    for (int i = 0; i < a->rank; i++) {
        if (i == to) {
            axes[i] = from;
            continue;
        }
        if (next == from) next++;
        axes[i] = next++;
    }
    tk_attrs_axes attrs = {.axes = {axes, a->rank}};
    return tkb_node1(batch->b, TK_OP_permute, a, &attrs);
}

/* One array, a batch of indices: more indices. */
static void gather_many(tk_batch *batch) {
    tk_node *inputs[TK_MAX_RANK + 1] = {batch->inputs[0]};
    for (uint32_t i = 1; i < batch->node->n_inputs; i++) inputs[i] = tk_batch_operand(batch, i);
    tk_batch_apply(batch, batch->node->n_inputs, inputs, batch->node->attrs);
}

/* A batch of arrays, the same indices: slices that have the batch axis whole. */
static void gather_wide(tk_batch *batch) {
    const tk_attrs_gather *from = tk_node_attrs(batch->node);
    int64_t axes[TK_MAX_RANK + 1], sizes[TK_MAX_RANK + 1];
    tk_list moved = tk_batch_list(0, from->axes, 1, axes);
    tk_attrs_gather attrs = {.axes = {moved.items + 1, moved.count - 1},
                             .slice_sizes =
                                 tk_batch_list(batch->size, from->slice_sizes, 0, sizes)};
    tk_node *slices =
        tkb_node(batch->b, TK_OP_gather, batch->node->n_inputs, batch->inputs, &attrs);
    if (!tk_node_is_error(slices)) slices = move_axis(batch, slices, batch->inputs[1]->rank, 0);
    batch->outputs[0] = slices;
}

static void gather_each(tk_batch *batch) {
    const tk_attrs_gather *from = tk_node_attrs(batch->node);
    int64_t axes[TK_MAX_RANK + 1], sizes[TK_MAX_RANK + 1];
    tk_attrs_gather attrs = {.axes = tk_batch_list(0, from->axes, 1, axes),
                             .slice_sizes = tk_batch_list(1, from->slice_sizes, 0, sizes)};
    tk_node *inputs[TK_MAX_RANK + 2];
    uint32_t count = batch->node->n_inputs;
    inputs[0] = batch->inputs[0];
    for (uint32_t i = 1; i < count; i++) inputs[i + 1] = tk_batch_operand(batch, i);
    inputs[1] = batch_index(batch, inputs[2]);
    tk_node *slices = tkb_node(batch->b, TK_OP_gather, count + 1, inputs, &attrs);
    tk_shape shape = tk_batch_shape(batch, batch->node->rank, batch->node->shape);
    batch->outputs[0] = tkb_reshape(batch->b, slices, shape);
}

void tk_batch_gather(tk_batch *batch) {
    bool index_batched = any_index_batched(batch, 1);
    if (!batch->batched[0])
        gather_many(batch);
    else if (!index_batched)
        gather_wide(batch);
    else
        gather_each(batch);
}

/* The same indices for every element: each update has the batch axis whole. */
static void scatter_wide(tk_batch *batch) {
    const tk_attrs_scatter *from = tk_node_attrs(batch->node);
    int64_t axes[TK_MAX_RANK + 1];
    tk_list moved = tk_batch_list(0, from->axes, 1, axes);
    tk_attrs_scatter attrs = {.axes = {moved.items + 1, moved.count - 1}, .mode = from->mode};
    tk_node *inputs[TK_MAX_RANK + 2];
    for (uint32_t i = 2; i < batch->node->n_inputs; i++) inputs[i] = batch->inputs[i];
    inputs[0] = tk_batch_operand(batch, 0);
    inputs[1] = tk_batch_operand(batch, 1);
    if (!tk_node_is_error(inputs[1])) inputs[1] = move_axis(batch, inputs[1], 0, inputs[2]->rank);
    tk_batch_apply(batch, batch->node->n_inputs, inputs, &attrs);
}

/* Updates are [indices..., slice...]; the slice gets an axis of length 1 for the batch. */
static tk_node *with_unit_axis(tk_batch *batch, tk_node *updates, int n_index_axes) {
    if (tk_node_is_error(updates)) return updates;
    if (updates->rank >= TK_MAX_RANK) return tk_batch_fail_rank(batch, updates->rank + 1);
    tk_shape shape = {.count = updates->rank + 1};
    for (int i = 0; i < shape.count; i++)
        shape.items[i] = i < n_index_axes    ? updates->shape[i]
                         : i == n_index_axes ? 1
                                             : updates->shape[i - 1];
    return tkb_reshape(batch->b, updates, shape);
}

static void scatter_each(tk_batch *batch) {
    const tk_attrs_scatter *from = tk_node_attrs(batch->node);
    int64_t axes[TK_MAX_RANK + 1];
    tk_attrs_scatter attrs = {.axes = tk_batch_list(0, from->axes, 1, axes), .mode = from->mode};
    tk_node *inputs[TK_MAX_RANK + 3];
    uint32_t count = batch->node->n_inputs;
    for (uint32_t i = 2; i < count; i++) inputs[i + 1] = tk_batch_operand(batch, i);
    inputs[0] = tk_batch_operand(batch, 0);
    inputs[1] = with_unit_axis(batch, tk_batch_operand(batch, 1), inputs[3]->rank);
    inputs[2] = batch_index(batch, inputs[3]);
    tk_batch_apply(batch, count + 1, inputs, &attrs);
}

void tk_batch_scatter(tk_batch *batch) {
    if (any_index_batched(batch, 2))
        scatter_each(batch);
    else
        scatter_wide(batch);
}

void tk_batch_gather_along(tk_batch *batch) {
    tk_attrs_axis attrs = *(const tk_attrs_axis *)tk_node_attrs(batch->node);
    attrs.axis++;
    tk_batch_apply(batch, 2, tk_batch_operands(batch), &attrs);
}

void tk_batch_scatter_along(tk_batch *batch) {
    tk_attrs_scatter_axis attrs = *(const tk_attrs_scatter_axis *)tk_node_attrs(batch->node);
    attrs.axis++;
    tk_batch_apply(batch, 3, tk_batch_operands(batch), &attrs);
}

/* Keys have leading axes already, and bits depend on their own key only. */
void tk_batch_random_bits(tk_batch *batch) {
    tk_batch_apply(batch, 1, batch->inputs, batch->node->attrs);
}
