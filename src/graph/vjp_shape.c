/* Gradient rules of shape ops: each is linear, so its rule is the transposed op. */
#include "graph/vjp_rules.h"

tk_node *tkb_positions(tk_builder *b, tk_shape shape, int axis) {
    tk_dtype dtype = shape.items[axis] > INT32_MAX ? TK_INT64 : TK_INT32;
    return tkb_iota_int(b, dtype, shape, axis, 0, 1);
}

static tk_axes filled(int64_t count, int64_t value) {
    tk_axes list = {.count = count};
    for (int64_t i = 0; i < count; i++) list.items[i] = value;
    return list;
}

static tk_node *take_box(tk_builder *b, tk_node *a, tk_list start, tk_list step, tk_list shape) {
    tk_attrs_slice attrs = {.start = start, .step = step, .shape = shape};
    return tkb_node1(b, TK_OP_slice_by, a, &attrs);
}

tk_node *tkb_join2(tk_builder *b, tk_node *a, tk_node *c, int axis) {
    tk_attrs_axis attrs = {.axis = axis};
    return tkb_node2(b, TK_OP_join, a, c, &attrs);
}

void tk_vjp_reshape(tk_vjp_rule *v) {
    v->grads[0] = tkb_reshape(v->b, v->ct, tk_node_shape(v->inputs[0]));
}

void tk_vjp_permute(tk_vjp_rule *v) {
    const tk_attrs_axes *attrs = tk_node_attrs(v->node);
    tk_axes inverse = {.count = attrs->axes.count};
    for (int64_t i = 0; i < inverse.count; i++) inverse.items[attrs->axes.items[i]] = i;
    v->grads[0] = tkb_transpose(v->b, v->ct, inverse);
}

void tk_vjp_expand(tk_vjp_rule *v) {
    v->grads[0] = tkb_sum_to_shape(v->b, v->ct, tk_node_shape(v->inputs[0]));
}

/* ---- slices ---- */

/* Sums what a step of 0 has repeated. */
static tk_node *sum_repeats(tk_builder *b, tk_node *ct, tk_list step) {
    tk_axes axes = {.count = 0};
    for (int64_t i = 0; i < step.count; i++)
        if (step.items[i] == 0 && ct->shape[i] > 1) axes.items[axes.count++] = i;
    return axes.count ? tkb_sum(b, ct, axes, true) : ct;
}

static bool all_ones(const tk_axes *list) {
    for (int64_t i = 0; i < list->count; i++)
        if (list->items[i] != 1) return false;
    return true;
}

/* Zeros of the shape of `like` with a box of values. A pad where the box has no gaps: it fuses. */
static tk_node *put_box(tk_builder *b, const tk_node *like, tk_node *values, tk_list start,
                        tk_axes step) {
    if (tk_node_is_error(values)) return values;
    tk_attrs_slice_set attrs = {.start = start, .step = tk_axes_list(&step), .mode = TK_SET};
    if (!all_ones(&step) || values->size == 0)
        return tkb_node2(b, TK_OP_slice_set, tkb_zeros_of(b, like), values, &attrs);
    tk_axes high = {.count = like->rank};
    for (int i = 0; i < like->rank; i++)
        high.items[i] = like->shape[i] - start.items[i] - values->shape[i];
    tk_attrs_pad pad = {.low = start, .high = tk_axes_list(&high)};
    return tkb_node2(b, TK_OP_pad_with, values, tkb_scalar_like(b, values, 0), &pad);
}

void tk_vjp_slice(tk_vjp_rule *v) {
    const tk_attrs_slice *attrs = tk_node_attrs(v->node);
    tk_axes step = tk_axes_from(attrs->step.count, attrs->step.items);
    for (int64_t i = 0; i < step.count; i++)
        if (step.items[i] == 0 || attrs->shape.items[i] == 1) step.items[i] = 1;
    tk_node *ct = sum_repeats(v->b, v->ct, attrs->step);
    v->grads[0] = put_box(v->b, v->inputs[0], ct, attrs->start, step);
}

static tk_node *read_box(tk_vjp_rule *v, tk_node *a) {
    const tk_attrs_slice_set *attrs = tk_node_attrs(v->node);
    tk_shape shape = tk_node_shape(v->inputs[1]);
    return take_box(v->b, a, attrs->start, attrs->step, tk_axes_list(&shape));
}

/* ct with `values` in the box. */
static tk_node *write_box(tk_vjp_rule *v, tk_node *values) {
    const tk_attrs_slice_set *attrs = tk_node_attrs(v->node);
    tk_attrs_slice_set set = {.start = attrs->start, .step = attrs->step, .mode = TK_SET};
    return tkb_node2(v->b, TK_OP_slice_set, v->ct, values, &set);
}

/* max and min: the larger of old and new gets the cotangent, halves where they are equal. */
static void slice_extreme(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *result = read_box(v, v->node), *ct = read_box(v, v->ct);
    tk_node *old_wins = tkb_wins(b, read_box(v, v->inputs[0]), result);
    tk_node *new_wins = tkb_wins(b, v->inputs[1], result);
    tk_node *both = tkb_logical_and(b, old_wins, new_wins);
    tk_node *part = tkb_where(b, both, tkb_scale(b, ct, 0.5), ct);
    if (v->needed[0]) v->grads[0] = write_box(v, tkb_where_or_zero(b, old_wins, part));
    if (v->needed[1]) v->grads[1] = tkb_where_or_zero(b, new_wins, part);
}

static void slice_prod(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *ct = read_box(v, v->ct);
    if (v->needed[0]) v->grads[0] = write_box(v, tkb_multiply(b, ct, tkb_conj(b, v->inputs[1])));
    if (v->needed[1]) v->grads[1] = tkb_multiply(b, ct, tkb_conj(b, read_box(v, v->inputs[0])));
}

void tk_vjp_slice_set(tk_vjp_rule *v) {
    const tk_attrs_slice_set *attrs = tk_node_attrs(v->node);
    if (attrs->mode == TK_MAX || attrs->mode == TK_MIN) {
        slice_extreme(v);
        return;
    }
    if (attrs->mode == TK_PROD) {
        slice_prod(v);
        return;
    }
    bool keeps = attrs->mode == TK_ADD;
    if (v->needed[0]) v->grads[0] = keeps ? v->ct : write_box(v, tkb_zeros_of(v->b, v->inputs[1]));
    if (v->needed[1]) v->grads[1] = read_box(v, v->ct);
}

/* ---- pad and join ---- */

void tk_vjp_pad(tk_vjp_rule *v) {
    const tk_attrs_pad *attrs = tk_node_attrs(v->node);
    tk_node *a = v->inputs[0];
    tk_axes ones = filled(a->rank, 1);
    tk_shape shape = tk_node_shape(a);
    tk_list step = tk_axes_list(&ones);
    if (v->needed[0]) v->grads[0] = take_box(v->b, v->ct, attrs->low, step, tk_axes_list(&shape));
    if (!v->needed[1]) return;
    tk_attrs_slice_set set = {.start = attrs->low, .step = step, .mode = TK_SET};
    tk_node *margin = tkb_node2(v->b, TK_OP_slice_set, v->ct, tkb_zeros_of(v->b, a), &set);
    v->grads[1] = tkb_sum(v->b, margin, TK_ALL_AXES, false);
}

void tk_vjp_join(tk_vjp_rule *v) {
    const tk_attrs_axis *attrs = tk_node_attrs(v->node);
    int64_t at = 0;
    for (uint32_t i = 0; i < v->node->n_inputs; i++) {
        int64_t length = v->inputs[i]->shape[attrs->axis];
        if (v->needed[i]) v->grads[i] = tkb_range(v->b, v->ct, (int)attrs->axis, at, at + length);
        at += length;
    }
}
