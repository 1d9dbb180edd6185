/* Batching of convolutions: a batch of inputs is a longer batch, a batch of kernels is more outputs
 * of each group, a batch of both is more groups. */
#include "graph/batch_rule.h"
#include "graph/build_pieces.h"
#include "graph/conv.h"

static tk_node *moved(tk_batch *batch, tk_node *a, int from, int to) {
    return tkb_moveaxis(batch->b, a, from, to);
}

/* Axes `axis` and the one behind it as one. */
static tk_node *merged(tk_batch *batch, tk_node *a, int axis) {
    if (tk_node_is_error(a)) return a;
    tk_shape shape = {.count = a->rank - 1};
    for (int i = 0; i < a->rank - 1; i++) shape.items[i] = a->shape[i < axis ? i : i + 1];
    TKB_TRY(batch->b, tk_length_product("vmap", 2, a->shape + axis, &shape.items[axis]));
    return tkb_reshape(batch->b, a, shape);
}

/* Axis `axis` of length first * n as two. */
static tk_node *parted(tk_batch *batch, tk_node *a, int axis, int64_t first, int64_t second) {
    if (tk_node_is_error(a)) return a;
    tk_shape shape = {.count = a->rank + 1};
    for (int i = 0; i < a->rank; i++) shape.items[i <= axis ? i : i + 1] = a->shape[i];
    shape.items[axis] = first;
    shape.items[axis + 1] = second;
    return tkb_reshape(batch->b, a, shape);
}

static tk_node *apply(tk_batch *batch, tk_node *input, tk_node *weight, int64_t groups) {
    tk_attrs_conv attrs = *(const tk_attrs_conv *)tk_node_attrs(batch->node);
    attrs.groups = groups;
    return tkb_node2(batch->b, TK_OP_conv_general, input, weight, &attrs);
}

static void many_inputs(tk_batch *batch, int64_t groups) {
    tk_node *result = apply(batch, merged(batch, batch->inputs[0], 0), batch->inputs[1], groups);
    batch->outputs[0] = parted(batch, result, 0, batch->size, batch->node->shape[0]);
}

/* Within a group the batch comes before the outputs. */
static void many_kernels(tk_batch *batch, int64_t groups) {
    int last = batch->node->rank - 1;
    int64_t outputs = batch->node->shape[last] / groups;
    tk_node *weight = moved(batch, parted(batch, batch->inputs[1], 1, groups, outputs), 0, 1);
    weight = merged(batch, merged(batch, weight, 0), 0);
    tk_node *result = apply(batch, batch->inputs[0], weight, groups);
    result = parted(batch, result, last, groups, batch->size * outputs);
    result = parted(batch, result, last + 1, batch->size, outputs);
    batch->outputs[0] = merged(batch, moved(batch, result, last + 1, 0), last + 1);
}

static void many_of_both(tk_batch *batch, int64_t groups) {
    int last = batch->node->rank - 1;
    tk_node *input = merged(batch, moved(batch, batch->inputs[0], 0, last), last);
    tk_node *weight = merged(batch, batch->inputs[1], 0);
    tk_node *result = apply(batch, input, weight, batch->size * groups);
    result = parted(batch, result, last, batch->size, batch->node->shape[last]);
    batch->outputs[0] = moved(batch, result, last, 0);
}

void tk_batch_conv(tk_batch *batch) {
    int64_t groups = ((const tk_attrs_conv *)tk_node_attrs(batch->node))->groups;
    if (batch->size == 0)
        batch->outputs[0] =
            tkb_zeros(batch->b, tk_batch_shape(batch, batch->node->rank, batch->node->shape),
                      (tk_dtype)batch->node->dtype);
    else if (!batch->batched[1])
        many_inputs(batch, groups);
    else if (!batch->batched[0])
        many_kernels(batch, groups);
    else
        many_of_both(batch, groups);
}
