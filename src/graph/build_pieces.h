/* Small pieces that the builders of compositions share. Private to build_*.c.
 *
 * A builder that takes lists checks their length first (tk_shape_check): interning reads a list
 * before the op's shape rule has seen it. A weak scalar becomes strong (tkb_strong) wherever an op
 * does more than combine it with others, so that only elementwise builders meet weak nodes. */
#ifndef GRAPH_BUILD_PIECES_H
#define GRAPH_BUILD_PIECES_H

#include "base/error.h"
#include "graph/build.h"
#include "graph/text.h"

#define TKB_TRY(b, expression)                                                                     \
    do {                                                                                           \
        tk_status tkb_try_status = (expression);                                                   \
        if (tkb_try_status != TK_OK) return tkb_fail((b), tkb_try_status);                         \
    } while (0)

/* The same value, no longer weakly typed. */
static inline tk_node *tkb_strong(tk_builder *b, tk_node *a) {
    return tkb_astype(b, a, (tk_dtype)a->dtype);
}

/* Integers and bool as float32. */
static inline tk_node *tkb_inexact(tk_builder *b, tk_node *a) {
    if (tk_dtype_is_inexact((tk_dtype)a->dtype)) return tkb_strong(b, a);
    return tkb_astype(b, a, TK_FLOAT32);
}

/* float16 and bfloat16: types whose sums and products need a wider one. */
static inline bool tk_dtype_is_half(tk_dtype dtype) {
    return dtype == TK_FLOAT16 || dtype == TK_BFLOAT16;
}

static inline tk_dtype tk_dtype_wide(tk_dtype dtype) {
    return tk_dtype_is_half(dtype) ? TK_FLOAT32 : dtype;
}

/* A weakly typed real. */
static inline tk_node *tkb_number(tk_builder *b, double value) {
    return tkb_weak(b, TK_KIND_FLOAT, value, 0, 0);
}

static inline tk_node *tkb_zero(tk_builder *b, tk_dtype dtype) {
    return tkb_const_int(b, dtype, 0);
}

/* start + step * index along an axis, in an integer dtype. */
tk_node *tkb_iota_int(tk_builder *b, tk_dtype dtype, tk_shape shape, int axis, int64_t start,
                      int64_t step);

/* The axes in another order, which is a permutation; nothing where it is the identity. */
tk_node *tkb_permute(tk_builder *b, tk_node *a, const tk_axes *order);

/* A strided box in normal form: starts inside, counts that fit. */
tk_node *tkb_box(tk_builder *b, tk_node *a, const tk_axes *start, const tk_axes *step,
                 const tk_shape *counts);

/* Elements first .. last-1 of one axis. */
tk_node *tkb_range(tk_builder *b, tk_node *a, int axis, int64_t first, int64_t last);

/* Python's slice of each axis as a box. */
tk_status tk_slice_normalize(const char *what, const tk_node *a, tk_axes start, tk_axes stop,
                             tk_axes step, tk_axes *out_start, tk_axes *out_step,
                             tk_shape *out_counts);

/* Integer indices into an axis of `length`, negative ones counted from the end. */
tk_node *tkb_wrap_index(tk_builder *b, const char *what, tk_node *index, int64_t length);

/* `a`, the argument `role` of the op `what`, broadcast to a shape. */
tk_node *tkb_fit(tk_builder *b, const char *what, const char *role, tk_node *a, tk_shape shape);

/* A product of lengths; TK_OVERFLOW names `what`. */
tk_status tk_length_product(const char *what, int64_t count, const int64_t *lengths,
                            int64_t *out_product);

#endif
