/* Gradient rules of gather, scatter and sorting.
 *
 * Writes at equal indices are legal, and each mode has one meaning for them here: add sums; set
 * keeps the last update in row-major order of the indices, which alone gets the cotangent; max and
 * min share it equally among all that are equal to the result, the old value included; prod gives
 * each update the product of all others, found by sorting updates by destination and multiplying
 * inside runs of equal ones, so that zeros are right without a division. scatter and scatter_along
 * differ only in how they are addressed. */
#include "graph/vjp_rules.h"

/* ---- addressing ---- */

static bool is_along(const tk_vjp_rule *v) { return v->node->op == TK_OP_scatter_along; }

static uint32_t update_operand(const tk_vjp_rule *v) { return is_along(v) ? 2 : 1; }

static tk_node *updates_of(const tk_vjp_rule *v) { return v->inputs[update_operand(v)]; }

static tk_mode mode_of(const tk_vjp_rule *v) {
    if (is_along(v)) return (tk_mode)((const tk_attrs_scatter_axis *)tk_node_attrs(v->node))->mode;
    return (tk_mode)((const tk_attrs_scatter *)tk_node_attrs(v->node))->mode;
}

/* The elements of `from`, an array like operand 0, that the op writes, in the shape of the updates.
 */
static tk_node *read_at(tk_vjp_rule *v, tk_node *from) {
    if (is_along(v)) {
        tk_attrs_axis along = {.axis =
                                   ((const tk_attrs_scatter_axis *)tk_node_attrs(v->node))->axis};
        return tkb_node2(v->b, TK_OP_gather_along, from, v->inputs[1], &along);
    }
    const tk_attrs_scatter *attrs = tk_node_attrs(v->node);
    int index_rank = v->inputs[2]->rank, rank = v->inputs[0]->rank;
    tk_list sizes = {rank ? v->inputs[1]->shape + index_rank : NULL, rank};
    tk_attrs_gather gather = {.axes = attrs->axes, .slice_sizes = sizes};
    tk_node *inputs[TK_MAX_RANK + 1] = {from};
    for (uint32_t i = 2; i < v->node->n_inputs; i++) inputs[i - 1] = v->inputs[i];
    return tkb_node(v->b, TK_OP_gather, v->node->n_inputs - 1, inputs, &gather);
}

/* The op on another array and other updates, in another mode. */
static tk_node *write_at(tk_vjp_rule *v, tk_node *base, tk_node *updates, tk_mode mode) {
    tk_node *inputs[TK_MAX_RANK + 2];
    for (uint32_t i = 0; i < v->node->n_inputs; i++) inputs[i] = v->inputs[i];
    inputs[0] = base;
    inputs[update_operand(v)] = updates;
    if (is_along(v)) {
        tk_attrs_scatter_axis along = *(const tk_attrs_scatter_axis *)tk_node_attrs(v->node);
        along.mode = mode;
        return tkb_node(v->b, TK_OP_scatter_along, v->node->n_inputs, inputs, &along);
    }
    tk_attrs_scatter scatter = *(const tk_attrs_scatter *)tk_node_attrs(v->node);
    scatter.mode = mode;
    return tkb_node(v->b, TK_OP_scatter, v->node->n_inputs, inputs, &scatter);
}

/* Index tuples that may meet in one destination. */
static int64_t writers(const tk_vjp_rule *v) {
    if (!is_along(v)) return v->inputs[2]->size;
    return v->inputs[1]->shape[((const tk_attrs_scatter_axis *)tk_node_attrs(v->node))->axis];
}

/* The number of the writing index tuple, in the shape of the updates. */
static tk_node *writer_numbers(tk_vjp_rule *v) {
    tk_shape shape = tk_node_shape(updates_of(v));
    if (is_along(v))
        return tkb_positions(v->b, shape,
                             (int)((const tk_attrs_scatter_axis *)tk_node_attrs(v->node))->axis);
    tk_node *numbers = tkb_positions(v->b, TK_SHAPE(v->inputs[2]->size), 0);
    tk_shape column = shape;
    for (int64_t i = v->inputs[2]->rank; i < column.count; i++) column.items[i] = 1;
    return tkb_broadcast_to(v->b, tkb_reshape(v->b, numbers, column), shape);
}

/* ---- modes ---- */

static void scatter_set(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    if (v->needed[0]) v->grads[0] = write_at(v, v->ct, tkb_zeros_of(b, updates_of(v)), TK_SET);
    if (!v->needed[update_operand(v)]) return;
    tk_node *ct = read_at(v, v->ct);
    if (writers(v) > 1) {
        tk_node *numbers = writer_numbers(v);
        tk_node *none = tkb_zeros(b, tk_node_shape(v->inputs[0]), (tk_dtype)numbers->dtype);
        tk_node *last = read_at(v, write_at(v, none, numbers, TK_MAX));
        ct = tkb_where_or_zero(b, tkb_equal(b, last, numbers), ct);
    }
    v->grads[update_operand(v)] = ct;
}

static void scatter_add(tk_vjp_rule *v) {
    v->grads[0] = v->ct;
    if (v->needed[update_operand(v)]) v->grads[update_operand(v)] = read_at(v, v->ct);
}

static void scatter_extreme(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_dtype dtype = (tk_dtype)v->ct->dtype, wide = dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    tk_node *old_wins = tkb_wins(b, v->inputs[0], v->node);
    tk_node *new_wins = tkb_wins(b, updates_of(v), read_at(v, v->node));
    tk_node *count =
        write_at(v, tkb_astype(b, old_wins, wide), tkb_astype(b, new_wins, wide), TK_ADD);
    tk_node *part = tkb_astype(b, tkb_divide(b, v->ct, count), dtype);
    if (v->needed[0]) v->grads[0] = tkb_where_or_zero(b, old_wins, part);
    if (v->needed[update_operand(v)])
        v->grads[update_operand(v)] = tkb_where_or_zero(b, new_wins, read_at(v, part));
}

/* Inside each run of equal keys, the product of the values before each one; 1 for the first. */
static tk_node *product_before(tk_builder *b, tk_node *values, tk_node *keys, int64_t length) {
    tk_node *one = tkb_ones(b, TK_SHAPE(1), (tk_dtype)values->dtype), *total = values;
    for (int64_t reach = 1; reach < length; reach *= 2) {
        tk_node *here = tkb_range(b, total, 0, reach, length);
        tk_node *there = tkb_range(b, total, 0, 0, length - reach);
        tk_node *same = tkb_equal(b, tkb_range(b, keys, 0, reach, length),
                                  tkb_range(b, keys, 0, 0, length - reach));
        tk_node *more = tkb_where(b, same, tkb_multiply(b, here, there), here);
        total = tkb_join2(b, tkb_range(b, total, 0, 0, reach), more, 0);
    }
    tk_node *same =
        tkb_equal(b, tkb_range(b, keys, 0, 1, length), tkb_range(b, keys, 0, 0, length - 1));
    tk_node *before = tkb_where(b, same, tkb_range(b, total, 0, 0, length - 1), one);
    return tkb_join2(b, one, before, 0);
}

/* For each update the product of the others with its destination. */
static tk_node *other_updates(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *updates = updates_of(v);
    tk_shape flat = TK_SHAPE(updates->size);
    tk_attrs_axis first = {.axis = 0};
    tk_node *places = tkb_reshape(b, tkb_positions(b, TK_SHAPE(v->inputs[0]->size), 0),
                                  tk_node_shape(v->inputs[0]));
    tk_node *keys = tkb_reshape(b, read_at(v, places), flat);
    tk_node *order = tkb_node1(b, TK_OP_argsort_axis, keys, &first);
    tk_node *back = tkb_node1(b, TK_OP_argsort_axis, order, &first);
    keys = tkb_node2(b, TK_OP_gather_along, keys, order, &first);
    tk_node *sorted =
        tkb_node2(b, TK_OP_gather_along, tkb_reshape(b, updates, flat), order, &first);
    tk_node *before = product_before(b, sorted, keys, updates->size);
    tk_node *after = product_before(b, tkb_flip(b, sorted, TK_AXES(0)),
                                    tkb_flip(b, keys, TK_AXES(0)), updates->size);
    tk_node *others = tkb_multiply(b, before, tkb_flip(b, after, TK_AXES(0)));
    tk_node *unsorted = tkb_node2(b, TK_OP_gather_along, others, back, &first);
    return tkb_reshape(b, unsorted, tk_node_shape(updates));
}

static void scatter_prod(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    if (v->needed[0]) {
        tk_node *ones = tkb_ones(b, tk_node_shape(v->node), (tk_dtype)v->node->dtype);
        tk_node *factors = write_at(v, ones, updates_of(v), TK_PROD);
        v->grads[0] = tkb_multiply(b, v->ct, tkb_conj(b, factors));
    }
    if (!v->needed[update_operand(v)]) return;
    tk_node *others = read_at(v, v->inputs[0]);
    if (writers(v) > 1 && updates_of(v)->size > 1)
        others = tkb_multiply(b, others, other_updates(v));
    v->grads[update_operand(v)] = tkb_multiply(b, read_at(v, v->ct), tkb_conj(b, others));
}

void tk_vjp_scatter(tk_vjp_rule *v) {
    switch (mode_of(v)) {
    case TK_ADD:
        scatter_add(v);
        return;
    case TK_MAX:
    case TK_MIN:
        scatter_extreme(v);
        return;
    case TK_PROD:
        scatter_prod(v);
        return;
    case TK_SET:
    case TK_MODE_COUNT:
        break;
    }
    scatter_set(v);
}

void tk_vjp_scatter_along(tk_vjp_rule *v) { tk_vjp_scatter(v); }

/* ---- gather ---- */

void tk_vjp_gather(tk_vjp_rule *v) {
    const tk_attrs_gather *attrs = tk_node_attrs(v->node);
    tk_node *inputs[TK_MAX_RANK + 2] = {tkb_zeros_of(v->b, v->inputs[0]), v->ct};
    for (uint32_t i = 1; i < v->node->n_inputs; i++) inputs[i + 1] = v->inputs[i];
    tk_attrs_scatter scatter = {.axes = attrs->axes, .mode = TK_ADD};
    v->grads[0] = tkb_node(v->b, TK_OP_scatter, v->node->n_inputs + 1, inputs, &scatter);
}

/* Zeros like operand 0 with the cotangent added at positions along an axis. */
static tk_node *spread_along(tk_vjp_rule *v, tk_node *indices, int64_t axis) {
    tk_node *inputs[] = {tkb_zeros_of(v->b, v->inputs[0]), indices, v->ct};
    tk_attrs_scatter_axis attrs = {.axis = axis, .mode = TK_ADD};
    return tkb_node(v->b, TK_OP_scatter_along, 3, inputs, &attrs);
}

void tk_vjp_gather_along(tk_vjp_rule *v) {
    const tk_attrs_axis *attrs = tk_node_attrs(v->node);
    v->grads[0] = spread_along(v, v->inputs[1], attrs->axis);
}

/* ---- sorting: element i of the result came from position order[i] ---- */

void tk_vjp_sort(tk_vjp_rule *v) {
    const tk_attrs_axis *attrs = tk_node_attrs(v->node);
    tk_node *order = tkb_node1(v->b, TK_OP_argsort_axis, v->inputs[0], attrs);
    v->grads[0] = spread_along(v, order, attrs->axis);
}

void tk_vjp_partition(tk_vjp_rule *v) {
    const tk_attrs_partition *attrs = tk_node_attrs(v->node);
    tk_node *order = tkb_node1(v->b, TK_OP_argpartition_axis, v->inputs[0], attrs);
    v->grads[0] = spread_along(v, order, attrs->axis);
}
