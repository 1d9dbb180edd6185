/* Builders of reductions and scans. Primitives keep reduced axes with length 1; what the caller
 * does not want to keep goes by a reshape, so that rules and kernels know one form only.
 *
 * Sums, products and means of narrow types are taken in a wider one: integers below 32 bits in 32
 * bits as MLX does, halves in float32 where a second operation follows the sum (mean, var,
 * log_softmax). The variance takes two passes: mean(x^2) - mean(x)^2 cancels. */
#include "graph/build_pieces.h"

/* ---- the general reduction ---- */

static tk_status check_identity(const tk_node *a, tk_op op, const char *what, const tk_axes *axes) {
    if (op != TK_OP_reduce_max && op != TK_OP_reduce_min) return TK_OK;
    for (int64_t i = 0; i < axes->count; i++)
        if (a->shape[axes->items[i]] == 0)
            return tk_fail(TK_SHAPE_ERROR, "%s: axis %lld of %s is empty, and nothing has no %s",
                           what, (long long)axes->items[i], tk_text_node(a), what);
    return TK_OK;
}

tk_node *tkb_reduce(tk_builder *b, tk_op op, tk_node *a, const char *what, tk_axes axes,
                    bool keepdims) {
    if (tk_node_is_error(a)) return a;
    tk_axes normal;
    TKB_TRY(b, tk_axes_normalize(what, axes, a->rank, &normal));
    TKB_TRY(b, check_identity(a, op, what, &normal));
    a = tkb_strong(b, a);
    if (normal.count == 0) return a;
    tk_attrs_reduce attrs = {.axes = tk_axes_list(&normal)};
    tk_node *reduced = tkb_node1(b, op, a, &attrs);
    return keepdims ? reduced : tkb_drop_axes(b, reduced, &normal);
}

tk_node *tkb_sum_to_shape(tk_builder *b, tk_node *a, tk_shape shape) {
    if (tk_node_is_error(a)) return a;
    tk_axes axes = {.count = 0};
    int64_t lead = a->rank - shape.count;
    for (int i = 0; i < a->rank; i++)
        if (i < lead || (shape.items[i - lead] == 1 && a->shape[i] != 1))
            axes.items[axes.count++] = i;
    return tkb_reshape(b, tkb_reduce(b, TK_OP_reduce_sum, a, "sum", axes, true), shape);
}

/* ---- sums, products, extremes, truth ---- */

static tk_node *promote_narrow(tk_builder *b, tk_node *a) {
    switch ((tk_dtype)a->dtype) {
    case TK_BOOL:
    case TK_INT8:
    case TK_INT16:
        return tkb_astype(b, a, TK_INT32);
    case TK_UINT8:
    case TK_UINT16:
        return tkb_astype(b, a, TK_UINT32);
    default:
        return a;
    }
}

tk_node *tkb_sum(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return tkb_reduce(b, TK_OP_reduce_sum, promote_narrow(b, a), "sum", axes, keepdims);
}

tk_node *tkb_prod(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return tkb_reduce(b, TK_OP_reduce_prod, promote_narrow(b, a), "prod", axes, keepdims);
}

tk_node *tkb_max(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return tkb_reduce(b, TK_OP_reduce_max, a, "max", axes, keepdims);
}

tk_node *tkb_min(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return tkb_reduce(b, TK_OP_reduce_min, a, "min", axes, keepdims);
}

tk_node *tkb_any(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return tkb_reduce(b, TK_OP_reduce_any, tkb_astype(b, a, TK_BOOL), "any", axes, keepdims);
}

tk_node *tkb_all(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return tkb_reduce(b, TK_OP_reduce_all, tkb_astype(b, a, TK_BOOL), "all", axes, keepdims);
}

/* ---- moments ---- */

/* Elements along the axes. Their product is at most the array's size, so it fits. */
static int64_t count_along(const tk_node *a, const tk_axes *axes) {
    int64_t count = 1;
    for (int64_t i = 0; i < axes->count; i++) count *= a->shape[axes->items[i]];
    return count;
}

static tk_node *over(tk_builder *b, tk_node *sum, int64_t count) {
    return tkb_divide(b, sum, tkb_number(b, (double)count));
}

tk_node *tkb_mean(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    if (tk_node_is_error(a)) return a;
    tk_axes normal;
    TKB_TRY(b, tk_axes_normalize("mean", axes, a->rank, &normal));
    a = tkb_inexact(b, a);
    tk_dtype dtype = (tk_dtype)a->dtype;
    tk_node *wide = tkb_astype(b, a, tk_dtype_wide(dtype));
    tk_node *sum = tkb_reduce(b, TK_OP_reduce_sum, wide, "mean", normal, keepdims);
    return tkb_astype(b, over(b, sum, count_along(a, &normal)), dtype);
}

/* |a|^2, real. */
static tk_node *square_of_modulus(tk_builder *b, tk_node *a) {
    if (!tk_dtype_is_complex((tk_dtype)a->dtype)) return tkb_square(b, a);
    return tkb_add(b, tkb_square(b, tkb_real(b, a)), tkb_square(b, tkb_imag(b, a)));
}

/* The variance in a type that is wide enough; `what` is var or std. */
static tk_node *wide_variance(tk_builder *b, tk_node *a, const char *what, tk_axes axes,
                              bool keepdims, int64_t ddof) {
    if (tk_node_is_error(a)) return a;
    tk_axes normal;
    TKB_TRY(b, tk_axes_normalize(what, axes, a->rank, &normal));
    a = tkb_inexact(b, a);
    a = tkb_astype(b, a, tk_dtype_wide((tk_dtype)a->dtype));
    tk_node *apart = tkb_subtract(b, a, tkb_mean(b, a, normal, true));
    if (tk_node_is_error(apart)) return apart;
    tk_node *sum =
        tkb_reduce(b, TK_OP_reduce_sum, square_of_modulus(b, apart), what, normal, keepdims);
    int64_t count = count_along(a, &normal), left;
    if (__builtin_sub_overflow(count, ddof, &left)) left = ddof < 0 ? INT64_MAX : 0;
    return over(b, sum, left > 0 ? left : 0);
}

static tk_dtype real_inexact(tk_dtype dtype) {
    if (tk_dtype_is_complex(dtype) || !tk_dtype_is_inexact(dtype)) return TK_FLOAT32;
    return dtype;
}

tk_node *tkb_var(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims, int64_t ddof) {
    tk_node *variance = wide_variance(b, a, "var", axes, keepdims, ddof);
    return tkb_astype(b, variance, real_inexact((tk_dtype)a->dtype));
}

tk_node *tkb_std(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims, int64_t ddof) {
    tk_node *variance = wide_variance(b, a, "std", axes, keepdims, ddof);
    return tkb_astype(b, tkb_sqrt(b, variance), real_inexact((tk_dtype)a->dtype));
}

/* ---- positions of extremes ---- */

static tk_node *position_along(tk_builder *b, tk_op op, tk_node *a, const char *what, int axis) {
    if (a->shape[axis] == 0)
        return tkb_fail(
            b, tk_fail(TK_SHAPE_ERROR, "%s: axis %d of %s is empty", what, axis, tk_text_node(a)));
    tk_attrs_axis attrs = {.axis = axis};
    return tkb_node1(b, op, tkb_strong(b, a), &attrs);
}

static tk_node *position(tk_builder *b, tk_op op, tk_node *a, const char *what, tk_axes axes,
                         bool keepdims) {
    if (tk_node_is_error(a)) return a;
    if (axes.count < 0) {
        tk_shape kept = {.count = keepdims ? a->rank : 0};
        for (int64_t i = 0; i < kept.count; i++) kept.items[i] = 1;
        tk_node *flat = tkb_reshape(b, a, TK_SHAPE(-1));
        return tk_node_is_error(flat) ? flat
                                      : tkb_reshape(b, position_along(b, op, flat, what, 0), kept);
    }
    if (axes.count != 1)
        return tkb_fail(b, tk_fail(TK_AXIS_ERROR, "%s: %lld axes given, expected one or all", what,
                                   (long long)axes.count));
    tk_axes normal;
    TKB_TRY(b, tk_axes_normalize(what, axes, a->rank, &normal));
    tk_node *reduced = position_along(b, op, a, what, (int)normal.items[0]);
    return keepdims ? reduced : tkb_drop_axes(b, reduced, &normal);
}

tk_node *tkb_argmax(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return position(b, TK_OP_reduce_argmax, a, "argmax", axes, keepdims);
}

tk_node *tkb_argmin(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return position(b, TK_OP_reduce_argmin, a, "argmin", axes, keepdims);
}

/* ---- exponentials ---- */

tk_node *tkb_logsumexp(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    return tkb_reduce(b, TK_OP_reduce_logsumexp, tkb_inexact(b, a), "logsumexp", axes, keepdims);
}

tk_node *tkb_softmax(tk_builder *b, tk_node *a, tk_axes axes) {
    if (tk_node_is_error(a)) return a;
    tk_axes normal;
    TKB_TRY(b, tk_axes_normalize("softmax", axes, a->rank, &normal));
    tk_attrs_reduce attrs = {.axes = tk_axes_list(&normal)};
    return tkb_node1(b, TK_OP_softmax_axes, tkb_inexact(b, a), &attrs);
}

tk_node *tkb_log_softmax(tk_builder *b, tk_node *a, tk_axes axes) {
    if (tk_node_is_error(a)) return a;
    tk_node *same = tkb_inexact(b, a);
    tk_node *wide = tkb_astype(b, same, tk_dtype_wide((tk_dtype)same->dtype));
    tk_node *total = tkb_reduce(b, TK_OP_reduce_logsumexp, wide, "log_softmax", axes, true);
    return tkb_astype(b, tkb_subtract(b, wide, total), (tk_dtype)same->dtype);
}

/* ---- scans ---- */

static tk_node *scan(tk_builder *b, tk_op op, tk_node *a, const char *what, int64_t axis,
                     bool reverse, bool inclusive) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize(what, axis, a->rank, &at));
    tk_attrs_scan attrs = {.axis = at, .reverse = reverse, .inclusive = inclusive};
    return tkb_node1(b, op, tkb_strong(b, a), &attrs);
}

static tk_node *count_bool(tk_builder *b, tk_node *a) {
    return a->dtype == TK_BOOL ? tkb_astype(b, a, TK_INT32) : a;
}

tk_node *tkb_cumsum(tk_builder *b, tk_node *a, int64_t axis, bool reverse, bool inclusive) {
    return scan(b, TK_OP_scan_sum, count_bool(b, a), "cumsum", axis, reverse, inclusive);
}

tk_node *tkb_cumprod(tk_builder *b, tk_node *a, int64_t axis, bool reverse, bool inclusive) {
    return scan(b, TK_OP_scan_prod, count_bool(b, a), "cumprod", axis, reverse, inclusive);
}

tk_node *tkb_cummax(tk_builder *b, tk_node *a, int64_t axis, bool reverse, bool inclusive) {
    return scan(b, TK_OP_scan_max, a, "cummax", axis, reverse, inclusive);
}

tk_node *tkb_cummin(tk_builder *b, tk_node *a, int64_t axis, bool reverse, bool inclusive) {
    return scan(b, TK_OP_scan_min, a, "cummin", axis, reverse, inclusive);
}

tk_node *tkb_logcumsumexp(tk_builder *b, tk_node *a, int64_t axis, bool reverse, bool inclusive) {
    return scan(b, TK_OP_scan_logsumexp, tkb_inexact(b, a), "logcumsumexp", axis, reverse,
                inclusive);
}
