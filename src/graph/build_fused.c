/* Builders of the fused layers: dtypes and shapes are brought into the form that the fused
 * primitives take; their maths is in their bodies, and in their decompositions for transforms
 * without a rule. */
#include "graph/build_pieces.h"

/* The common dtype of x and the parameters that are there; integers give float32. */
static tk_status common_float(tk_builder *b, const char *what, size_t count, tk_node **nodes) {
    tkb_promote(b, count, nodes);
    for (size_t i = 0; i < count; i++) {
        if (tk_dtype_is_complex((tk_dtype)nodes[i]->dtype))
            return tk_fail(TK_DTYPE_ERROR,
                           "%s: operand is %s, expected a dtype that is not complex", what,
                           tk_text_node(nodes[i]));
        nodes[i] = tkb_inexact(b, nodes[i]);
    }
    return TK_OK;
}

/* A bias without a weight takes the dtype of x, as in MLX; otherwise all promote. */
static tk_node *norm(tk_builder *b, const char *what, tk_op op, tk_node *x, tk_node *weight,
                     tk_node *bias, double eps) {
    tk_node *inputs[3] = {x};
    size_t count = 1;
    if (weight) inputs[count++] = weight;
    if (bias) inputs[count++] = bias;
    for (size_t i = 0; i < count; i++)
        if (tk_node_is_error(inputs[i])) return inputs[i];
    if (x->rank < 1)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "%s: x is %s, expected one axis or more", what,
                                   tk_text_node(x)));
    for (size_t i = 1; i < count; i++)
        if (inputs[i]->rank != 1 || inputs[i]->shape[0] != x->shape[x->rank - 1])
            return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                       "%s: %s is %s for x %s, expected one element a column", what,
                                       weight && i == 1 ? "weight" : "bias",
                                       tk_text_node(inputs[i]), tk_text_node(x)));
    TKB_TRY(b, common_float(b, what, weight ? count : 1, inputs));
    if (bias && !weight) inputs[1] = tkb_astype(b, bias, (tk_dtype)inputs[0]->dtype);
    tk_attrs_norm attrs = {.eps = eps, .has_weight = weight != NULL, .has_bias = bias != NULL};
    return tkb_node(b, op, count, inputs, &attrs);
}

tk_node *tkb_rms_norm(tk_builder *b, tk_node *x, tk_node *weight, double eps) {
    return norm(b, "rms_norm", TK_OP_rms_norm_fused, x, weight, NULL, eps);
}

tk_node *tkb_layer_norm(tk_builder *b, tk_node *x, tk_node *weight, tk_node *bias, double eps) {
    return norm(b, "layer_norm", TK_OP_layer_norm_fused, x, weight, bias, eps);
}

static tk_status check_integers(const char *what, const char *role, const tk_node *a) {
    if (tk_dtype_is_integer((tk_dtype)a->dtype)) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR, "%s: %s is %s, expected an integer dtype", what, role,
                   tk_text_node(a));
}

tk_node *tkb_rope(tk_builder *b, tk_node *x, int64_t dims, bool traditional, double base,
                  double scale, tk_node *offset, tk_node *freqs) {
    if (tk_node_is_error(x)) return x;
    if (tk_node_is_error(offset)) return offset;
    TKB_TRY(b, common_float(b, "rope", 1, &x));
    TKB_TRY(b, check_integers("rope", "offset", offset));
    offset = tkb_strong(b, offset);
    if (offset->size == 1) offset = tkb_reshape(b, offset, TK_SCALAR);
    tk_node *inputs[] = {x, offset, freqs ? tkb_astype(b, freqs, TK_FLOAT32) : NULL};
    tk_attrs_rope attrs = {.dims = dims,
                           .traditional = traditional,
                           .base = freqs ? 0 : base,
                           .scale = scale,
                           .has_freqs = freqs != NULL};
    return tkb_node(b, TK_OP_rope_fused, freqs ? 3 : 2, inputs, &attrs);
}

/* The mask for every head and query, without copying. */
static tk_node *whole_mask(tk_builder *b, tk_node *mask, const tk_node *q, const tk_node *k) {
    if (tk_node_is_error(mask)) return mask;
    tk_shape shape = TK_SHAPE(q->shape[0], q->shape[1], q->shape[2], k->shape[2]);
    mask = mask->dtype == TK_BOOL ? tkb_strong(b, mask) : tkb_astype(b, mask, (tk_dtype)q->dtype);
    return tkb_fit(b, "scaled_dot_product_attention", "mask", mask, shape);
}

static tk_node *attention(tk_builder *b, tk_node *q, tk_node *k, tk_node *v, double scale,
                          tk_node *mask, bool causal, tk_node *sinks) {
    tk_node *inputs[5] = {q, k, v};
    size_t count = 3;
    for (int i = 0; i < 3; i++) {
        if (tk_node_is_error(inputs[i])) return inputs[i];
        if (inputs[i]->rank != 4)
            return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                       "scaled_dot_product_attention: %c is %s, expected four axes",
                                       "qkv"[i], tk_text_node(inputs[i])));
    }
    TKB_TRY(b, common_float(b, "scaled_dot_product_attention", 3, inputs));
    if (mask) inputs[count++] = whole_mask(b, mask, inputs[0], inputs[1]);
    if (sinks) inputs[count++] = tkb_astype(b, sinks, (tk_dtype)inputs[0]->dtype);
    tk_attrs_attention attrs = {
        .scale = scale, .causal = causal, .has_mask = mask != NULL, .has_sinks = sinks != NULL};
    return tkb_output(b, tkb_node(b, TK_OP_attention, count, inputs, &attrs), 0);
}

tk_node *tkb_scaled_dot_product_attention(tk_builder *b, tk_node *q, tk_node *k, tk_node *v,
                                          double scale, tk_node *mask, bool causal) {
    return attention(b, q, k, v, scale, mask, causal, NULL);
}

tk_node *tkb_attention_with_sinks(tk_builder *b, tk_node *q, tk_node *k, tk_node *v, tk_node *sinks,
                                  double scale, tk_node *mask, bool causal) {
    if (tk_node_is_error(sinks)) return sinks;
    if (tk_dtype_is_complex((tk_dtype)sinks->dtype))
        return tkb_fail(b, tk_fail(TK_DTYPE_ERROR,
                                   "attention_with_sinks: sinks are %s, expected a dtype that is "
                                   "not complex",
                                   tk_text_node(sinks)));
    return attention(b, q, k, v, scale, mask, causal, sinks);
}

tk_node *tkb_cross_entropy(tk_builder *b, tk_node *logits, tk_node *targets) {
    if (tk_node_is_error(logits)) return logits;
    if (tk_node_is_error(targets)) return targets;
    TKB_TRY(b, common_float(b, "cross_entropy", 1, &logits));
    TKB_TRY(b, check_integers("cross_entropy", "targets", targets));
    tk_node *pair[] = {logits, tkb_strong(b, targets)};
    return tkb_output(b, tkb_node(b, TK_OP_cross_entropy_fused, 2, pair, NULL), 0);
}
