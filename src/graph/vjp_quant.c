/* Gradient rules of quantisation and of products of picked pairs and of segments.
 *
 * Codes are integers: they have no cotangent, and what is left is linear in scales and biases. The
 * derivative by x of a product with codes is a product with the same codes the other way round, so
 * training through a quantised layer never makes its matrix. */
#include "graph/build_pairs.h"
#include "graph/build_quant.h"
#include "graph/vjp_rules.h"

static tk_node *adjoint(tk_builder *b, tk_node *a) { return tkb_swapaxes(b, a, -1, -2); }

void tk_vjp_straight_through(tk_vjp_rule *v) { v->grads[1] = v->ct; }

/* ---- scales and biases ---- */

/* The codes as values: with scales of 1 and biases of 0. */
static tk_node *codes_of(tk_builder *b, tk_quant quant, tk_node *w, tk_node *scales) {
    tk_node *inputs[] = {w, tkb_ones_like(b, scales), tkb_zeros_of(b, scales)};
    tk_attrs_dequantize attrs = {.dtype = scales->dtype,
                                 .mode = quant.mode,
                                 .group_size = quant.group_size,
                                 .bits = quant.bits};
    return tkb_node(b, TK_OP_dequantize_groups, 3, inputs, &attrs);
}

/* [..., G * size] summed over groups: [..., G] in the dtype of `scales`. */
static tk_node *group_sums(tk_builder *b, tk_node *a, const tk_node *scales, int64_t group_size) {
    tk_shape shape = tk_node_shape(scales);
    if (shape.count == TK_MAX_RANK)
        return tkb_fail(
            b, tk_fail(TK_SHAPE_ERROR, "dequantize: no derivative for %d axes", TK_MAX_RANK));
    shape.items[shape.count++] = group_size;
    tk_node *sums = tkb_sum(b, tkb_reshape(b, a, shape), TK_AXES(-1), false);
    return tkb_astype(b, sums, (tk_dtype)scales->dtype);
}

/* From the cotangent of the values: grads[0] of scales, grads[1] of biases. */
static void scale_grads(tk_vjp_rule *v, tk_quant quant, uint32_t first, tk_node *dense) {
    tk_builder *b = v->b;
    tk_node *w = v->inputs[first - 1], *scales = v->inputs[first];
    dense = tkb_astype(b, dense, (tk_dtype)scales->dtype);
    if (v->needed[first]) {
        tk_node *product = tkb_multiply(b, dense, codes_of(b, quant, w, scales));
        v->grads[first] = group_sums(b, product, scales, quant.group_size);
    }
    if (v->needed[first + 1]) v->grads[first + 1] = group_sums(b, dense, scales, quant.group_size);
}

/* The values are linear in the global scale too. */
static void global_grad(tk_vjp_rule *v, uint32_t at) {
    tk_builder *b = v->b;
    tk_node *unit[3];
    for (uint32_t i = 0; i < at; i++) unit[i] = v->inputs[i];
    unit[at] = tkb_const(b, TK_FLOAT32, 1);
    tk_node *values = tkb_node(b, TK_OP_dequantize_groups, at + 1, unit, tk_node_attrs(v->node));
    tk_node *product = tkb_multiply(b, v->ct, values);
    v->grads[at] = tkb_sum(b, tkb_astype(b, product, TK_FLOAT32), TK_ALL_AXES, false);
}

void tk_vjp_dequantize_groups(tk_vjp_rule *v) {
    const tk_attrs_dequantize *attrs = tk_node_attrs(v->node);
    tk_quant quant = TK_QUANT_OF(attrs);
    if (tk_quant_is_affine(quant) && (v->needed[1] || v->needed[2]))
        scale_grads(v, quant, 1, v->ct);
    if (attrs->has_global && v->needed[v->node->n_inputs - 1])
        global_grad(v, v->node->n_inputs - 1);
}

/* ---- pairs ---- */

/* [S..., M, N] as [P, M, N]. */
static tk_node *flat_pairs(tk_builder *b, tk_node *a, int64_t pairs) {
    return tkb_reshape(b, a, TK_SHAPE(pairs, a->shape[a->rank - 2], a->shape[a->rank - 1]));
}

static tk_node *flat_index(tk_builder *b, tk_node *index) {
    return tkb_reshape(b, index, TK_SHAPE(index->size));
}

static tk_node *count_up(tk_builder *b, int64_t count) {
    return tkb_iota_int(b, count > INT32_MAX ? TK_INT64 : TK_INT32, TK_SHAPE(count), 0, 0, 1);
}

/* Zeros like `matrices` with each of [P, R, C] added at its index. */
static tk_node *add_at(tk_builder *b, const tk_node *matrices, tk_node *parts, tk_node *index) {
    if (tk_node_is_error(parts)) return parts;
    tk_node *updates = tkb_expand_dims(b, parts, TK_AXES(1));
    return tkb_scatter_nd(b, tkb_zeros_of(b, matrices), updates, &index, 1, TK_AXES(0), TK_ADD);
}

/* Of `matrices` [A, R, C], those at indices: [P, R, C]. */
static tk_node *pick(tk_builder *b, tk_node *matrices, tk_node *index) {
    return tkb_take(b, matrices, index, 0);
}

void tk_vjp_gather_product(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *left = v->inputs[0], *right = v->inputs[1];
    tk_node *lhs = flat_index(b, v->inputs[2]), *rhs = flat_index(b, v->inputs[3]);
    tk_node *ct = flat_pairs(b, v->ct, lhs->size), *each = count_up(b, lhs->size);
    if (v->needed[0]) {
        tk_node *inputs[] = {ct, tkb_conj(b, adjoint(b, right)), each, rhs};
        v->grads[0] = add_at(b, left, tkb_node(b, TK_OP_gather_product, 4, inputs, NULL), lhs);
    }
    if (v->needed[1]) {
        tk_node *inputs[] = {tkb_conj(b, adjoint(b, left)), ct, lhs, each};
        v->grads[1] = add_at(b, right, tkb_node(b, TK_OP_gather_product, 4, inputs, NULL), rhs);
    }
}

/* ---- products with codes ---- */

/* x, w, scales and biases, perhaps indices, with other x and indices, the other way round. */
static tk_node *turned(tk_vjp_rule *v, tk_node *x, tk_node *lhs, tk_node *rhs) {
    tk_attrs_quant_product attrs = *(const tk_attrs_quant_product *)tk_node_attrs(v->node);
    uint32_t count = v->node->n_inputs;
    tk_node *inputs[6];
    for (uint32_t i = 0; i < count; i++) inputs[i] = v->inputs[i];
    inputs[0] = x;
    if (attrs.gathered) {
        inputs[count - 2] = lhs;
        inputs[count - 1] = rhs;
    }
    attrs.transpose = !attrs.transpose;
    return tkb_node(v->b, TK_OP_quantized_product, count, inputs, &attrs);
}

/* The cotangent of the values of w for x and ct, matrix by matrix. */
static tk_node *dense_cotangent(tk_builder *b, bool transpose, tk_node *x, tk_node *ct) {
    return transpose ? tkb_matmul(b, adjoint(b, ct), x) : tkb_matmul(b, adjoint(b, x), ct);
}

static void gathered_grads(tk_vjp_rule *v, const tk_attrs_quant_product *attrs) {
    tk_builder *b = v->b;
    tk_quant quant = TK_QUANT_OF(attrs);
    uint32_t count = v->node->n_inputs;
    tk_node *x = v->inputs[0];
    tk_node *lhs = flat_index(b, v->inputs[count - 2]), *rhs = flat_index(b, v->inputs[count - 1]);
    tk_node *ct = flat_pairs(b, v->ct, lhs->size);
    if (v->needed[0]) v->grads[0] = add_at(b, x, turned(v, ct, count_up(b, lhs->size), rhs), lhs);
    if (!tk_quant_is_affine(quant) || !(v->needed[2] || v->needed[3])) return;
    tk_node *parts = dense_cotangent(b, attrs->transpose, pick(b, x, lhs), ct);
    if (tk_node_is_error(parts)) return;
    tk_node *whole = tkb_zeros(
        b, TK_SHAPE(v->inputs[1]->shape[0], parts->shape[1], parts->shape[2]), (tk_dtype)x->dtype);
    scale_grads(v, quant, 2, add_at(b, whole, parts, rhs));
}

void tk_vjp_quantized_product(tk_vjp_rule *v) {
    const tk_attrs_quant_product *attrs = tk_node_attrs(v->node);
    tk_quant quant = TK_QUANT_OF(attrs);
    if (attrs->gathered) {
        gathered_grads(v, attrs);
        return;
    }
    if (v->needed[0]) v->grads[0] = turned(v, v->ct, NULL, NULL);
    if (tk_quant_is_affine(quant) && (v->needed[2] || v->needed[3]))
        scale_grads(v, quant, 2, dense_cotangent(v->b, attrs->transpose, v->inputs[0], v->ct));
}

/* ---- segments ---- */

void tk_vjp_segment_product(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *a = v->inputs[0], *other = v->inputs[1], *bounds = v->inputs[2];
    tk_node *in = tkb_segment_mask(b, bounds, a->shape[1]);
    tk_shape flat = TK_SHAPE(bounds->size / 2, a->shape[0], other->shape[1]);
    tk_node *ct = tkb_reshape(b, v->ct, flat);
    in = tkb_reshape(b, in, TK_SHAPE(bounds->size / 2, 1, a->shape[1]));
    if (v->needed[0]) {
        tk_node *parts = tkb_matmul(b, ct, tkb_conj(b, adjoint(b, other)));
        v->grads[0] = tkb_sum(b, tkb_where_or_zero(b, in, parts), TK_AXES(0), false);
    }
    if (v->needed[1]) {
        tk_node *parts = tkb_matmul(b, tkb_conj(b, adjoint(b, a)), ct);
        v->grads[1] = tkb_sum(b, tkb_where_or_zero(b, adjoint(b, in), parts), TK_AXES(0), false);
    }
}
