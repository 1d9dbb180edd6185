/* What the gradient rules share. A rule gives an operand its cotangent only where `needed` says so.
 */
#ifndef GRAPH_VJP_RULES_H
#define GRAPH_VJP_RULES_H

#include "graph/build_pieces.h"
#include "graph/vjp.h"

static inline bool tk_is_complex(const tk_node *node) {
    return tk_dtype_is_complex((tk_dtype)node->dtype);
}

/* conj(a); a itself where it is real. */
static inline tk_node *tkb_conj(tk_builder *b, tk_node *a) {
    return tk_is_complex(a) ? tkb_conjugate(b, a) : a;
}

/* A scalar constant of the dtype of `like`; elementwise builders broadcast it. */
static inline tk_node *tkb_scalar_like(tk_builder *b, const tk_node *like, double value) {
    return tkb_const(b, (tk_dtype)like->dtype, value);
}

static inline tk_node *tkb_scale(tk_builder *b, tk_node *a, double factor) {
    return tkb_multiply(b, a, tkb_scalar_like(b, a, factor));
}

static inline tk_node *tkb_zeros_of(tk_builder *b, const tk_node *like) {
    return tkb_zeros(b, tk_node_shape(like), (tk_dtype)like->dtype);
}

/* `a` where the condition holds, else 0. Not a product: 0 times infinity is no zero. */
static inline tk_node *tkb_where_or_zero(tk_builder *b, tk_node *condition, tk_node *a) {
    return tkb_where(b, condition, a, tkb_scalar_like(b, a, 0));
}

static inline tk_node *tkb_is_nan(tk_builder *b, tk_node *a) { return tkb_not_equal(b, a, a); }

/* True where `a` is the extreme value `extreme`; a NaN is the extreme of everything. */
static inline tk_node *tkb_wins(tk_builder *b, tk_node *a, tk_node *extreme) {
    return tkb_logical_or(b, tkb_equal(b, a, extreme), tkb_is_nan(b, a));
}

/* For rows without a derivative: a typed error that names the op. */
void tk_vjp_refuse(tk_vjp_rule *v);

/* Positions 0, 1, ... along an axis, as an integer array of a shape. */
tk_node *tkb_positions(tk_builder *b, tk_shape shape, int axis);

/* Two arrays one after the other along an axis. */
tk_node *tkb_join2(tk_builder *b, tk_node *a, tk_node *c, int axis);

#endif
