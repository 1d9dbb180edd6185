/* Gradient rules of reductions, scans and the matrix product.
 *
 * Products never divide by an operand, so zeros are right to every order: the gradient of a product
 * is the product of all before an element times that of all after it. Maximum and minimum share the
 * cotangent equally among ties, as in MLX; a NaN result belongs to the NaNs. Rows of logsumexp that
 * are all -inf get gradient 0.
 *
 * The gradients of cumulative product and logsumexp are recurrences s[i] = c[i] + a[i] s[i+1],
 * solved by doubling: log2(n) steps over the whole axis, without quotients that overflow. Rejected:
 * the n by n matrix of partial products (memory), and logarithms of the cotangent (not linear in
 * it). */
#include <math.h>

#include "graph/vjp_rules.h"

static tk_node *apply_scan(tk_builder *b, tk_op op, tk_node *a, int64_t axis, bool reverse,
                           bool inclusive) {
    tk_attrs_scan attrs = {.axis = axis, .reverse = reverse, .inclusive = inclusive};
    return tkb_node1(b, op, a, &attrs);
}

static tk_node *reduce_like(tk_builder *b, tk_op op, tk_node *a, tk_list axes) {
    tk_attrs_reduce attrs = {.axes = axes};
    return tkb_node1(b, op, a, &attrs);
}

/* The reduced value repeated over the operand's shape. */
static tk_node *spread(tk_vjp_rule *v, tk_node *reduced) {
    return tkb_broadcast_to(v->b, reduced, tk_node_shape(v->inputs[0]));
}

/* ---- reductions ---- */

void tk_vjp_reduce_sum(tk_vjp_rule *v) { v->grads[0] = spread(v, v->ct); }

/* The reduced axes last, in their order, after the kept ones. */
static tk_axes reduced_last(const tk_node *a, tk_list axes) {
    tk_axes order = {.count = 0};
    unsigned reduced = 0;
    for (int64_t i = 0; i < axes.count; i++) reduced |= 1u << axes.items[i];
    for (int i = 0; i < a->rank; i++)
        if (!(reduced >> i & 1)) order.items[order.count++] = i;
    for (int64_t i = 0; i < axes.count; i++) order.items[order.count++] = axes.items[i];
    return order;
}

/* For each element the product of the others along an axis. */
static tk_node *product_of_others(tk_builder *b, tk_node *a, int64_t axis) {
    tk_node *before = apply_scan(b, TK_OP_scan_prod, a, axis, false, false);
    return tkb_multiply(b, before, apply_scan(b, TK_OP_scan_prod, a, axis, true, false));
}

static tk_node *product_of_others_over(tk_builder *b, tk_node *a, tk_list axes) {
    tk_axes order = reduced_last(a, axes), inverse = {.count = order.count};
    for (int64_t i = 0; i < order.count; i++) inverse.items[order.items[i]] = i;
    tk_node *moved = tkb_transpose(b, a, order);
    if (tk_node_is_error(moved)) return moved;
    tk_shape shape = tk_node_shape(moved), flat = {.count = a->rank - axes.count + 1};
    for (int64_t i = 0; i < flat.count - 1; i++) flat.items[i] = shape.items[i];
    flat.items[flat.count - 1] = 1;
    for (int64_t i = 0; i < axes.count; i++) flat.items[flat.count - 1] *= a->shape[axes.items[i]];
    tk_node *others = product_of_others(b, tkb_reshape(b, moved, flat), flat.count - 1);
    return tkb_transpose(b, tkb_reshape(b, others, shape), inverse);
}

void tk_vjp_reduce_prod(tk_vjp_rule *v) {
    const tk_attrs_reduce *attrs = tk_node_attrs(v->node);
    tk_node *a = v->inputs[0], *ct = spread(v, v->ct);
    if (attrs->axes.count == 0) {
        v->grads[0] = ct;
        return;
    }
    tk_node *others = attrs->axes.count == 1 ? product_of_others(v->b, a, attrs->axes.items[0])
                                             : product_of_others_over(v->b, a, attrs->axes);
    v->grads[0] = tkb_multiply(v->b, ct, tkb_conj(v->b, others));
}

void tk_vjp_reduce_extreme(tk_vjp_rule *v) {
    const tk_attrs_reduce *attrs = tk_node_attrs(v->node);
    tk_builder *b = v->b;
    tk_dtype dtype = (tk_dtype)v->ct->dtype, wide = dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    tk_node *wins = tkb_wins(b, v->inputs[0], spread(v, v->node));
    tk_node *count = reduce_like(b, TK_OP_reduce_sum, tkb_astype(b, wins, wide), attrs->axes);
    tk_node *part = tkb_astype(b, tkb_divide(b, v->ct, count), dtype);
    v->grads[0] = tkb_where_or_zero(b, wins, spread(v, part));
}

/* ct * conj(softmax(a)). A dead row, all -inf, is set to 0 before the softmax and masked after it.
 */
void tk_vjp_logsumexp(tk_vjp_rule *v) {
    const tk_attrs_reduce *attrs = tk_node_attrs(v->node);
    tk_builder *b = v->b;
    tk_node *a = v->inputs[0], *sum = tkb_output(b, v->node, 0);
    tk_node *dead = tkb_equal(b, sum, tkb_scalar_like(b, sum, -INFINITY));
    tk_node *alive = spread(v, tkb_logical_not(b, dead));
    tk_node *soft = reduce_like(b, TK_OP_softmax_axes, tkb_where_or_zero(b, alive, a), attrs->axes);
    v->grads[0] = tkb_where_or_zero(b, alive, tkb_multiply(b, v->ct, tkb_conj(b, soft)));
}

void tk_vjp_softmax(tk_vjp_rule *v) {
    const tk_attrs_reduce *attrs = tk_node_attrs(v->node);
    tk_builder *b = v->b;
    tk_node *soft = tkb_conj(b, tkb_output(b, v->node, 0));
    tk_node *mean = reduce_like(b, TK_OP_reduce_sum, tkb_multiply(b, v->ct, soft), attrs->axes);
    v->grads[0] = tkb_multiply(b, soft, tkb_subtract(b, v->ct, mean));
}

/* ---- scans ---- */

void tk_vjp_scan_sum(tk_vjp_rule *v) {
    const tk_attrs_scan *attrs = tk_node_attrs(v->node);
    v->grads[0] =
        apply_scan(v->b, TK_OP_scan_sum, v->ct, attrs->axis, !attrs->reverse, attrs->inclusive);
}

/* A scan seen as one that runs forward and includes its own element. */
typedef struct forward_scan {
    tk_node *a, *ct;
    int axis;
    int64_t length;
    bool flipped;
} forward_scan;

static tk_node *flip_if(tk_builder *b, bool flipped, tk_node *a, int axis) {
    return flipped ? tkb_flip(b, a, TK_AXES(axis)) : a;
}

/* Result i of an exclusive scan is result i - 1 of the inclusive one. */
static forward_scan make_forward(tk_vjp_rule *v) {
    const tk_attrs_scan *attrs = tk_node_attrs(v->node);
    tk_builder *b = v->b;
    forward_scan scan = {.axis = (int)attrs->axis, .flipped = attrs->reverse != 0};
    scan.length = v->node->shape[scan.axis];
    scan.a = flip_if(b, scan.flipped, v->inputs[0], scan.axis);
    scan.ct = flip_if(b, scan.flipped, v->ct, scan.axis);
    if (attrs->inclusive || scan.length == 0) return scan;
    tk_node *first = tkb_range(b, scan.ct, scan.axis, 0, 1);
    tk_node *rest = tkb_range(b, scan.ct, scan.axis, 1, scan.length);
    if (!tk_node_is_error(first)) scan.ct = tkb_join2(b, rest, tkb_zeros_of(b, first), scan.axis);
    return scan;
}

static void give_scan(tk_vjp_rule *v, const forward_scan *scan, tk_node *grad) {
    v->grads[0] = flip_if(v->b, scan->flipped, grad, scan->axis);
}

/* s[i] = c[i] + a[i] s[i+1]; `a` is one shorter than `c`. */
static tk_node *recurrence(tk_builder *b, tk_node *a, tk_node *c, int axis, int64_t length) {
    for (int64_t reach = 1; reach < length; reach *= 2) {
        int64_t near = length - reach;
        tk_node *far = tkb_multiply(b, a, tkb_range(b, c, axis, reach, length));
        tk_node *head = tkb_add(b, tkb_range(b, c, axis, 0, near), far);
        c = tkb_join2(b, head, tkb_range(b, c, axis, near, length), axis);
        if (reach < near)
            a = tkb_multiply(b, tkb_range(b, a, axis, 0, near - reach),
                             tkb_range(b, a, axis, reach, near));
    }
    return c;
}

void tk_vjp_scan_prod(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    forward_scan scan = make_forward(v);
    tk_node *factors = tkb_conj(b, scan.a), *sum = scan.ct;
    if (scan.length > 1)
        sum = recurrence(b, tkb_range(b, factors, scan.axis, 1, scan.length), sum, scan.axis,
                         scan.length);
    tk_node *before = apply_scan(b, TK_OP_scan_prod, factors, scan.axis, false, false);
    give_scan(v, &scan, tkb_multiply(b, before, sum));
}

/* The position of the extreme so far, the first of equal ones: where the running extreme changes.
 */
static tk_node *leader(tk_builder *b, tk_op op, const forward_scan *scan) {
    tk_node *running = apply_scan(b, op, scan->a, scan->axis, false, true);
    tk_node *now = tkb_range(b, running, scan->axis, 1, scan->length);
    tk_node *before = tkb_range(b, running, scan->axis, 0, scan->length - 1);
    tk_node *changes =
        tkb_logical_and(b, tkb_not_equal(b, now, before), tkb_equal(b, before, before));
    tk_node *positions = tkb_positions(b, tk_node_shape(scan->a), scan->axis);
    tk_node *later = tkb_range(b, positions, scan->axis, 1, scan->length);
    tk_node *found = tkb_join2(b, tkb_range(b, positions, scan->axis, 0, 1),
                               tkb_where_or_zero(b, changes, later), scan->axis);
    return apply_scan(b, TK_OP_scan_max, found, scan->axis, false, true);
}

void tk_vjp_scan_extreme(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    forward_scan scan = make_forward(v);
    if (scan.length < 2 || tk_node_is_error(scan.a)) {
        give_scan(v, &scan, scan.ct);
        return;
    }
    tk_node *inputs[] = {tkb_zeros_of(b, scan.a), leader(b, (tk_op)v->node->op, &scan), scan.ct};
    tk_attrs_scatter_axis attrs = {.axis = scan.axis, .mode = TK_ADD};
    give_scan(v, &scan, tkb_node(b, TK_OP_scatter_along, 3, inputs, &attrs));
}

/* exp(a - b), 0 where a is -inf. */
static tk_node *exp_of_gap(tk_builder *b, tk_node *a, tk_node *c) {
    tk_node *low = tkb_scalar_like(b, a, -INFINITY);
    tk_node *dead = tkb_equal(b, a, low);
    tk_node *gap = tkb_subtract(b, tkb_where_or_zero(b, tkb_logical_not(b, dead), a),
                                tkb_where_or_zero(b, tkb_not_equal(b, c, low), c));
    return tkb_where_or_zero(b, tkb_logical_not(b, dead), tkb_exp(b, gap));
}

/* With y the running logsumexp: grad[i] = exp(a[i] - y[i]) s[i], s[i] = ct[i] + exp(y[i] - y[i+1])
 * s[i+1]. No exponent is positive. */
void tk_vjp_scan_logsumexp(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    forward_scan scan = make_forward(v);
    tk_dtype dtype = (tk_dtype)v->ct->dtype;
    tk_dtype wide = dtype == TK_FLOAT64 || dtype == TK_COMPLEX64 ? dtype : TK_FLOAT32;
    tk_node *a = tkb_astype(b, scan.a, wide), *sum = tkb_astype(b, scan.ct, wide);
    tk_node *y = apply_scan(b, TK_OP_scan_logsumexp, a, scan.axis, false, true);
    if (scan.length > 1) {
        tk_node *decay = exp_of_gap(b, tkb_range(b, y, scan.axis, 0, scan.length - 1),
                                    tkb_range(b, y, scan.axis, 1, scan.length));
        sum = recurrence(b, tkb_conj(b, decay), sum, scan.axis, scan.length);
    }
    tk_node *grad = tkb_multiply(b, tkb_conj(b, exp_of_gap(b, a, y)), sum);
    give_scan(v, &scan, tkb_astype(b, grad, dtype));
}

/* ---- products ---- */

/* Conjugate transpose of the last two axes. */
static tk_node *adjoint(tk_builder *b, tk_node *a) {
    return tkb_conj(b, tkb_swapaxes(b, a, -1, -2));
}

void tk_vjp_product(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    if (v->needed[0])
        v->grads[0] = tkb_node2(b, TK_OP_product, v->ct, adjoint(b, v->inputs[1]), NULL);
    if (v->needed[1])
        v->grads[1] = tkb_node2(b, TK_OP_product, adjoint(b, v->inputs[0]), v->ct, NULL);
}
