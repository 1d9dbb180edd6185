/* Builders of linear algebra. Primitives take stacks of matrices of one shape and read one
 * triangle at most; vectors, broadcasting, the other triangle, square factors of svd, norms and
 * cross products are compositions. */
#include <math.h>

#include "graph/build_pieces.h"

static tk_node *turned(tk_builder *b, tk_node *a) { return tkb_swapaxes(b, a, -1, -2); }

static tk_node *adjoint(tk_builder *b, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    return tk_dtype_is_complex((tk_dtype)a->dtype) ? tkb_conjugate(b, turned(b, a)) : turned(b, a);
}

/* The primitive's own checks name what was given; this one keeps swapaxes from naming axes. */
static tk_node *need_matrix(tk_builder *b, const char *what, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    if (a->rank < 2)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "%s: operand is %s, expected a matrix in the last two axes",
                                   what, tk_text_node(a)));
    return tkb_strong(b, a);
}

static tk_node *apply(tk_builder *b, tk_op op, tk_node *a) {
    return tkb_node1(b, op, need_matrix(b, tk_op_title(op), a), NULL);
}

static bool push(tk_node_vec *out, tk_node *node) { return tk_vec_push(out, node); }

/* ---- symmetric matrices ---- */

static tk_node *mirrored(tk_builder *b, tk_node *a, bool upper) {
    tk_node *across = adjoint(b, a);
    if (upper) return tkb_add(b, tkb_triu(b, a, 0), tkb_tril(b, across, -1));
    return tkb_add(b, tkb_tril(b, a, 0), tkb_triu(b, across, 1));
}

/* The matrix that a triangle of a stands for, with the derivative of a symmetric matrix: what
 * comes back is symmetric, as for (a + a') / 2, whichever triangle was read. */
static tk_node *symmetric(tk_builder *b, const char *what, tk_node *a, bool upper) {
    a = need_matrix(b, what, a);
    if (tk_node_is_error(a) || a->shape[a->rank - 1] != a->shape[a->rank - 2]) return a;
    if (!tk_dtype_is_inexact((tk_dtype)a->dtype)) return a;
    tk_node *value = mirrored(b, a, upper), *across = adjoint(b, a);
    tk_node *half = tkb_const(b, (tk_dtype)a->dtype, 0.5);
    tk_node *mean = tkb_multiply(b, tkb_add(b, a, across), half);
    tk_node *fixed = tkb_stop_gradient(b, mean);
    return tkb_add(b, tkb_stop_gradient(b, value), tkb_subtract(b, mean, fixed));
}

/* ---- inverses and systems ---- */

tk_node *tkb_inv(tk_builder *b, tk_node *a) { return apply(b, TK_OP_inverse, a); }

static tk_node *triangle(tk_builder *b, tk_node *a, tk_node *c, bool upper) {
    tk_attrs_triangle attrs = {.upper = upper};
    return tkb_node2(b, TK_OP_solve_triangle, a, c, &attrs);
}

/* Identity matrices of the shape of a. */
static tk_node *identity_like(tk_builder *b, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    int64_t n = a->shape[a->rank - 1];
    tk_dtype dtype = tk_dtype_is_inexact((tk_dtype)a->dtype) ? (tk_dtype)a->dtype : TK_FLOAT32;
    tk_shape shape = tk_node_shape(a);
    shape.items[a->rank - 2] = n;
    return tkb_broadcast_to(b, tkb_eye(b, n, n, 0, dtype), shape);
}

tk_node *tkb_tri_inv(tk_builder *b, tk_node *a, bool upper) {
    a = need_matrix(b, "tri_inv", a);
    return triangle(b, a, identity_like(b, a), upper);
}

/* Both leading shapes as one. */
static tk_status broadcast_leads(tk_builder *b, const char *what, tk_node **a, tk_node **c) {
    tk_node *both[] = {*a, *c};
    int rank = both[0]->rank > both[1]->rank ? both[0]->rank : both[1]->rank;
    tk_shape shape = {.count = rank};
    for (int i = 0; i < rank - 2; i++) {
        int left = i - rank + both[0]->rank, right = i - rank + both[1]->rank;
        int64_t one = left < 0 ? 1 : both[0]->shape[left];
        int64_t two = right < 0 ? 1 : both[1]->shape[right];
        if (one != two && one != 1 && two != 1)
            return tk_fail(TK_SHAPE_ERROR, "%s: leading axes of %s and %s do not broadcast", what,
                           tk_text_node(*a), tk_text_node(*c));
        shape.items[i] = one == 1 ? two : one;
    }
    for (int i = 0; i < 2; i++) {
        for (int k = 1; k <= 2; k++) shape.items[rank - k] = both[i]->shape[both[i]->rank - k];
        both[i] = tkb_broadcast_to(b, both[i], shape);
    }
    *a = both[0];
    *c = both[1];
    return TK_OK;
}

/* `op` on a and c, which may be a vector. */
static tk_node *system_of(tk_builder *b, const char *what, tk_op op, tk_node *a, tk_node *c,
                          const void *attrs) {
    a = need_matrix(b, what, a);
    if (tk_node_is_error(a)) return a;
    if (tk_node_is_error(c)) return c;
    if (c->rank < 1)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "%s: b is %s, expected a vector or matrices with %lld rows",
                                   what, tk_text_node(c), (long long)a->shape[a->rank - 1]));
    bool is_vector = c->rank == 1;
    tk_node *pair[] = {a, is_vector ? tkb_expand_dims(b, c, TK_AXES(1)) : c};
    tkb_promote(b, 2, pair);
    for (int i = 0; i < 2; i++)
        if (tk_node_is_error(pair[i])) return pair[i];
    TKB_TRY(b, broadcast_leads(b, what, &pair[0], &pair[1]));
    tk_node *result = tkb_node2(b, op, pair[0], pair[1], attrs);
    return is_vector ? tkb_squeeze(b, result, TK_AXES(-1)) : result;
}

tk_node *tkb_solve(tk_builder *b, tk_node *a, tk_node *other) {
    return system_of(b, "solve", TK_OP_solve_square, a, other, NULL);
}

tk_node *tkb_solve_triangular(tk_builder *b, tk_node *a, tk_node *other, bool upper) {
    tk_attrs_triangle attrs = {.upper = upper};
    return system_of(b, "solve_triangular", TK_OP_solve_triangle, a, other, &attrs);
}

tk_node *tkb_pinv(tk_builder *b, tk_node *a) { return apply(b, TK_OP_pinv_matrix, a); }

/* ---- factorisations ---- */

tk_node *tkb_cholesky(tk_builder *b, tk_node *a, bool upper) {
    tk_node *lower = tkb_node1(b, TK_OP_cholesky_lower, symmetric(b, "cholesky", a, upper), NULL);
    return upper && !tk_node_is_error(lower) ? turned(b, lower) : lower;
}

tk_node *tkb_cholesky_inv(tk_builder *b, tk_node *a, bool upper) {
    a = need_matrix(b, "cholesky_inv", a);
    tk_node *inverse = triangle(b, a, identity_like(b, a), upper);
    if (tk_node_is_error(inverse)) return inverse;
    tk_node *across = turned(b, inverse);
    return upper ? tkb_matmul(b, inverse, across) : tkb_matmul(b, across, inverse);
}

static bool push_outputs(tk_builder *b, tk_node *tuple, int count, tk_node_vec *out) {
    if (tk_node_is_error(tuple)) return push(out, tuple);
    for (int i = 0; i < count; i++)
        if (!push(out, tkb_output(b, tuple, i))) return false;
    return true;
}

bool tkb_qr(tk_builder *b, tk_node *a, tk_node_vec *out) {
    return push_outputs(b, apply(b, TK_OP_qr_thin, a), 2, out);
}

/* Columns and the rest of their basis. */
static tk_node *completed(tk_builder *b, tk_node *columns) {
    if (tk_node_is_error(columns)) return columns;
    int last = columns->rank - 1;
    if (columns->shape[last] == columns->shape[last - 1]) return columns;
    tk_node *both[] = {columns, tkb_node1(b, TK_OP_complement, columns, NULL)};
    return tkb_concatenate(b, both, 2, last);
}

bool tkb_svd(tk_builder *b, tk_node *a, bool compute_uv, tk_node_vec *out) {
    if (!compute_uv) return push(out, apply(b, TK_OP_svd_values, a));
    tk_node *parts = apply(b, TK_OP_svd_thin, a);
    if (tk_node_is_error(parts)) return push(out, parts);
    bool is_square = a->shape[a->rank - 1] == a->shape[a->rank - 2];
    tk_node *across = tkb_output(b, parts, 2);
    if (!is_square) across = adjoint(b, completed(b, adjoint(b, across)));
    return push(out, completed(b, tkb_output(b, parts, 0))) && push(out, tkb_output(b, parts, 1)) &&
           push(out, across);
}

bool tkb_eigh(tk_builder *b, tk_node *a, bool upper, tk_node_vec *out) {
    tk_node *whole = symmetric(b, "eigh", a, upper);
    return push_outputs(b, tkb_node1(b, TK_OP_eigh_lower, whole, NULL), 2, out);
}

tk_node *tkb_eigvalsh(tk_builder *b, tk_node *a, bool upper) {
    return tkb_node1(b, TK_OP_eigvalsh_lower, symmetric(b, "eigvalsh", a, upper), NULL);
}

bool tkb_eig(tk_builder *b, tk_node *a, tk_node_vec *out) {
    return push_outputs(b, apply(b, TK_OP_eig_general, a), 2, out);
}

tk_node *tkb_eigvals(tk_builder *b, tk_node *a) { return apply(b, TK_OP_eigvals_general, a); }

bool tkb_lu_factor(tk_builder *b, tk_node *a, tk_node_vec *out) {
    return push_outputs(b, apply(b, TK_OP_lu_packed, a), 2, out);
}

bool tkb_lu(tk_builder *b, tk_node *a, tk_node_vec *out) {
    tk_node *parts = apply(b, TK_OP_lu_packed, a);
    if (tk_node_is_error(parts)) return push(out, parts);
    tk_node *packed = tkb_output(b, parts, 0);
    int row = packed->rank - 2, column = packed->rank - 1;
    int64_t rows = packed->shape[row], columns = packed->shape[column];
    int64_t least = rows < columns ? rows : columns;
    tk_node *lower = tkb_tril(b, tkb_range(b, packed, column, 0, least), -1);
    lower = tkb_add(b, lower, tkb_eye(b, rows, least, 0, (tk_dtype)packed->dtype));
    return push(out, tkb_output(b, parts, 2)) && push(out, lower) &&
           push(out, tkb_triu(b, tkb_range(b, packed, row, 0, least), 0));
}

/* ---- determinants: other dtypes by way of float32 ---- */

static tk_node *widened(tk_builder *b, tk_node *a) {
    if (tk_node_is_error(a) || tk_dtype_is_complex((tk_dtype)a->dtype)) return a;
    return tkb_astype(b, a, a->dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32);
}

/* In the dtype of a where that is a half type. */
static tk_node *narrowed(tk_builder *b, tk_node *result, const tk_node *a) {
    return tk_dtype_is_half((tk_dtype)a->dtype) ? tkb_astype(b, result, (tk_dtype)a->dtype)
                                                : result;
}

tk_node *tkb_det(tk_builder *b, tk_node *a) {
    return narrowed(b, apply(b, TK_OP_det_matrix, widened(b, a)), a);
}

bool tkb_slogdet(tk_builder *b, tk_node *a, tk_node_vec *out) {
    tk_node *parts = apply(b, TK_OP_slogdet_matrix, widened(b, a));
    if (tk_node_is_error(parts)) return push(out, parts);
    return push(out, narrowed(b, tkb_output(b, parts, 0), a)) &&
           push(out, narrowed(b, tkb_output(b, parts, 1), a));
}

/* ---- vectors ---- */

/* Vectors of three along an axis, a missing last element 0. */
static tk_node *of_three(tk_builder *b, tk_node *a, int axis) {
    tk_axes low = {.count = a->rank}, high = low;
    if (a->shape[axis] == 3) return a;
    high.items[axis] = 1;
    return tkb_pad(b, a, low, high, NULL);
}

static tk_node *rolled(tk_builder *b, tk_node *a, int axis, int by) {
    return tkb_roll(b, a, TK_AXES(by), TK_AXES(axis));
}

tk_node *tkb_cross(tk_builder *b, tk_node *a, tk_node *other, int64_t axis) {
    tk_node *pair[] = {a, other};
    for (int i = 0; i < 2; i++)
        if (tk_node_is_error(pair[i])) return pair[i];
    tkb_promote(b, 2, pair);
    for (int i = 0; i < 2; i++) {
        int at;
        TKB_TRY(b, tk_axis_normalize("cross", axis, pair[i]->rank, &at));
        if (pair[i]->shape[at] != 2 && pair[i]->shape[at] != 3)
            return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                       "cross: axis %d of %s, expected 2 or 3 elements", at,
                                       tk_text_node(pair[i])));
        pair[i] = of_three(b, pair[i], at);
    }
    if (!tkb_broadcast(b, "cross", 2, pair)) return pair[0];
    int at;
    TKB_TRY(b, tk_axis_normalize("cross", axis, pair[0]->rank, &at));
    tk_node *one = rolled(b, pair[0], at, -1), *two = rolled(b, pair[0], at, -2);
    return tkb_subtract(b, tkb_multiply(b, one, rolled(b, pair[1], at, -2)),
                        tkb_multiply(b, two, rolled(b, pair[1], at, -1)));
}

/* ---- norms ---- */

static tk_node *root_of_squares(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    tk_node *squares = tkb_square(b, tkb_abs(b, a));
    return tkb_sqrt(b, tkb_sum(b, squares, axes, keepdims));
}

static tk_node *vector_norm(tk_builder *b, tk_node *a, double ord, tk_axes axes, bool keepdims) {
    tk_node *size = tkb_abs(b, a);
    if (ord == 2) return root_of_squares(b, a, axes, keepdims);
    if (isinf(ord))
        return ord > 0 ? tkb_max(b, size, axes, keepdims) : tkb_min(b, size, axes, keepdims);
    if (ord == 1) return tkb_sum(b, size, axes, keepdims);
    if (ord == 0) {
        tk_node *zero = tkb_zero(b, (tk_dtype)a->dtype);
        tk_node *count = tkb_astype(b, tkb_not_equal(b, a, zero), (tk_dtype)size->dtype);
        return tkb_sum(b, count, axes, keepdims);
    }
    tk_node *powers = tkb_power(b, size, tkb_number(b, ord));
    return tkb_power(b, tkb_sum(b, powers, axes, keepdims), tkb_number(b, 1 / ord));
}

/* Singular values of the matrices in two axes, as the last axis. */
static tk_node *values_of(tk_builder *b, tk_node *a, const tk_axes *axes) {
    tk_axes order = {.count = a->rank};
    int64_t next = 0;
    for (int i = 0; i < a->rank; i++)
        if (i != axes->items[0] && i != axes->items[1]) order.items[next++] = i;
    order.items[next++] = axes->items[0];
    order.items[next] = axes->items[1];
    a = tkb_permute(b, a, &order);
    if (tk_node_is_error(a)) return a;
    return narrowed(b, apply(b, TK_OP_svd_values, widened(b, a)), a);
}

static tk_node *with_axes(tk_builder *b, tk_node *a, const tk_axes *axes, bool keepdims) {
    if (!keepdims || tk_node_is_error(a)) return a;
    tk_axes ascending = *axes;
    if (axes->items[0] > axes->items[1]) {
        ascending.items[0] = axes->items[1];
        ascending.items[1] = axes->items[0];
    }
    return tkb_expand_dims(b, a, ascending);
}

/* The largest or smallest sum of magnitudes of lines along the first of two axes. */
static tk_node *line_norm(tk_builder *b, tk_node *a, int64_t along, int64_t among, bool largest) {
    tk_node *sums = tkb_sum(b, tkb_abs(b, a), TK_AXES(along), true);
    return largest ? tkb_max(b, sums, TK_AXES(among), true)
                   : tkb_min(b, sums, TK_AXES(among), true);
}

static tk_node *matrix_norm(tk_builder *b, tk_node *a, double ord, const tk_axes *axes,
                            bool keepdims) {
    if (ord == 2 || ord == -2) {
        tk_node *values = values_of(b, a, axes);
        values = ord > 0 ? tkb_max(b, values, TK_AXES(-1), false)
                         : tkb_min(b, values, TK_AXES(-1), false);
        return with_axes(b, values, axes, keepdims);
    }
    if (fabs(ord) != 1 && !isinf(ord))
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT,
                                   "norm: ord is %g for matrices, expected 1, 2 or infinity, of "
                                   "either sign",
                                   ord));
    bool by_column = fabs(ord) == 1;
    tk_node *result = line_norm(b, a, axes->items[!by_column], axes->items[by_column], ord > 0);
    return keepdims ? result : tkb_squeeze(b, result, *axes);
}

static tk_node *norm_of(tk_builder *b, tk_node *a, double ord, const tk_axes *axes, bool is_all,
                        bool keepdims) {
    if (isnan(ord) && (is_all || axes->count <= 2)) return root_of_squares(b, a, *axes, keepdims);
    if (axes->count == 1) return vector_norm(b, a, ord, *axes, keepdims);
    if (axes->count == 2) return matrix_norm(b, a, ord, axes, keepdims);
    return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT, "norm: %lld axes of %s, expected one or two",
                               (long long)axes->count, tk_text_node(a)));
}

/* Powers of half types are taken in float32: they overflow long before the norm does. */
tk_node *tkb_norm(tk_builder *b, tk_node *a, double ord, tk_axes axes, bool keepdims) {
    tk_axes normal;
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, tk_axes_normalize_ordered("norm", axes, a->rank, &normal));
    a = tkb_inexact(b, a);
    if (tk_node_is_error(a)) return a;
    tk_node *wide = tkb_astype(b, a, tk_dtype_wide((tk_dtype)a->dtype));
    tk_node *norm = norm_of(b, wide, ord, &normal, axes.count < 0, keepdims);
    return wide == a ? norm : tkb_astype(b, norm, (tk_dtype)a->dtype);
}

tk_node *tkb_norm_nuclear(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    tk_axes normal;
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, tk_axes_normalize_ordered("norm", axes, a->rank, &normal));
    if (normal.count != 2)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT, "norm: %lld axes of %s, expected two",
                                   (long long)normal.count, tk_text_node(a)));
    tk_node *values = values_of(b, tkb_inexact(b, a), &normal);
    return with_axes(b, tkb_sum(b, values, TK_AXES(-1), false), &normal, keepdims);
}
