/* Builders of functions on diagonals, differences and order that compose from others. */
#include <string.h>

#include "graph/build_pieces.h"

/* ---- diagonals ---- */

static tk_status two_axes(const char *what, const tk_node *a, int64_t axis1, int64_t axis2,
                          tk_axes *out_axes) {
    return tk_axes_normalize_ordered(what, TK_AXES(axis1, axis2), a->rank, out_axes);
}

/* How many elements a diagonal has that starts `offset` columns to the right. */
static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset) {
    if (offset <= -rows || offset >= columns) return 0;
    int64_t below = offset < 0 ? rows + offset : rows;
    int64_t right = offset > 0 ? columns - offset : columns;
    return below < right ? below : right;
}

/* Rows or columns of a diagonal. */
static tk_node *positions(tk_builder *b, int64_t count, int64_t start) {
    return tkb_iota_int(b, TK_INT64, TK_SHAPE(count), 0, start, 1);
}

tk_node *tkb_diagonal(tk_builder *b, tk_node *a, int64_t offset, int64_t axis1, int64_t axis2) {
    if (tk_node_is_error(a)) return a;
    tk_axes axes;
    TKB_TRY(b, two_axes("diagonal", a, axis1, axis2, &axes));
    int64_t count = diagonal_length(a->shape[axes.items[0]], a->shape[axes.items[1]], offset);
    tk_shape rest = {.count = 0};
    for (int i = 0; i < a->rank; i++)
        if (i != axes.items[0] && i != axes.items[1]) rest.items[rest.count++] = a->shape[i];
    rest.items[rest.count++] = count;
    if (count == 0) return tkb_zeros(b, rest, (tk_dtype)a->dtype);
    tk_shape sizes = tk_node_shape(a);
    sizes.items[axes.items[0]] = sizes.items[axes.items[1]] = 1;
    tk_node *indices[] = {positions(b, count, offset < 0 ? -offset : 0),
                          positions(b, count, offset > 0 ? offset : 0)};
    tk_axes dropped = TK_AXES(1 + axes.items[0], 1 + axes.items[1]);
    TKB_TRY(b, tk_axes_normalize("diagonal", dropped, a->rank + 1, &dropped));
    tk_node *gathered = tkb_gather(b, a, indices, 2, axes, sizes);
    return tkb_moveaxis(b, tkb_drop_axes(b, gathered, &dropped), 0, -1);
}

/* A vector on a diagonal: each row's element where the column is the row's plus k. */
static tk_node *matrix_of(tk_builder *b, tk_node *a, int64_t k) {
    int64_t apart = k == INT64_MIN ? INT64_MAX : k < 0 ? -k : k, size;
    if (tk_add_overflow_i64(a->shape[0], apart, &size))
        return tkb_fail(b, tk_fail(TK_OVERFLOW, "diag: a matrix with diagonal %lld is too large",
                                   (long long)k));
    tk_node *zero = tkb_zero(b, (tk_dtype)a->dtype);
    tk_node *rows = tkb_pad(b, a, TK_AXES(k < 0 ? apart : 0), TK_AXES(k > 0 ? apart : 0), zero);
    tk_node *row = tkb_iota_int(b, TK_INT64, TK_SHAPE(size, 1), 0, k, 1);
    tk_node *column = tkb_iota_int(b, TK_INT64, TK_SHAPE(1, size), 1, 0, 1);
    return tkb_where(b, tkb_equal(b, row, column), tkb_expand_dims(b, rows, TK_AXES(1)), zero);
}

tk_node *tkb_diag(tk_builder *b, tk_node *a, int64_t k) {
    if (tk_node_is_error(a)) return a;
    if (a->rank == 1) return matrix_of(b, tkb_strong(b, a), k);
    if (a->rank == 2) return tkb_diagonal(b, a, k, 0, 1);
    return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "diag: operand is %s, expected a vector or matrix",
                               tk_text_node(a)));
}

tk_node *tkb_trace(tk_builder *b, tk_node *a, int64_t offset, int64_t axis1, int64_t axis2) {
    return tkb_sum(b, tkb_diagonal(b, a, offset, axis1, axis2), TK_AXES(-1), false);
}

/* ---- products and differences ---- */

/* The shape with an axis of length 1 beside each of the last `rank` axes. */
static tk_shape spread(const tk_node *a, int64_t rank, bool behind) {
    tk_shape shape = {.count = 2 * rank};
    for (int64_t i = 0; i < rank; i++) {
        int64_t axis = i - (rank - a->rank);
        shape.items[2 * i + !behind] = axis < 0 ? 1 : a->shape[axis];
        shape.items[2 * i + behind] = 1;
    }
    return shape;
}

tk_node *tkb_kron(tk_builder *b, tk_node *a, tk_node *other) {
    if (tk_node_is_error(a)) return a;
    if (tk_node_is_error(other)) return other;
    int64_t rank = a->rank > other->rank ? a->rank : other->rank;
    if (2 * rank > TK_MAX_RANK)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "kron: %s and %s have more than %d axes",
                                   tk_text_node(a), tk_text_node(other), TK_MAX_RANK / 2));
    tk_node *both[] = {a, other};
    tkb_promote(b, 2, both);
    tk_shape shape = {.count = rank};
    tk_shape of_a = spread(a, rank, true), of_other = spread(other, rank, false);
    for (int64_t i = 0; i < rank; i++)
        if (tk_mul_overflow_i64(of_a.items[2 * i], of_other.items[2 * i + 1], &shape.items[i]))
            return tkb_fail(b, tk_fail(TK_OVERFLOW, "kron: the result is too large"));
    tk_node *product =
        tkb_multiply(b, tkb_reshape(b, both[0], of_a), tkb_reshape(b, both[1], of_other));
    return tkb_reshape(b, product, shape);
}

tk_node *tkb_diff(tk_builder *b, tk_node *a, int64_t n, int64_t axis) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize("diff", axis, a->rank, &at));
    if (n < 0)
        return tkb_fail(
            b, tk_fail(TK_INVALID_ARGUMENT, "diff: n is %lld, expected 0 or more", (long long)n));
    a = tkb_strong(b, a);
    for (; n > 0 && !tk_node_is_error(a) && a->shape[at] > 0; n--) {
        int64_t length = a->shape[at];
        tk_node *next = tkb_range(b, a, at, 1, length), *one = tkb_range(b, a, at, 0, length - 1);
        a = next->dtype == TK_BOOL ? tkb_not_equal(b, next, one) : tkb_subtract(b, next, one);
    }
    return a;
}

/* ---- order ---- */

/* The axes of a reduction as one, at the end. */
static tk_node *gather_axes(tk_builder *b, tk_node *a, const tk_axes *axes) {
    tk_axes order = {.count = 0};
    bool reduced[TK_MAX_RANK] = {false};
    for (int64_t i = 0; i < axes->count; i++) reduced[axes->items[i]] = true;
    tk_shape shape = {.count = 0};
    int64_t lengths[TK_MAX_RANK], length;
    for (int i = 0; i < a->rank; i++) {
        if (reduced[i]) continue;
        shape.items[shape.count++] = a->shape[i];
        order.items[order.count++] = i;
    }
    for (int64_t i = 0; i < axes->count; i++) {
        lengths[i] = a->shape[axes->items[i]];
        order.items[order.count++] = axes->items[i];
    }
    TKB_TRY(b, tk_length_product("median", axes->count, lengths, &length));
    shape.items[shape.count++] = length;
    return tkb_reshape(b, tkb_permute(b, a, &order), shape);
}

tk_node *tkb_median(tk_builder *b, tk_node *a, tk_axes axes, bool keepdims) {
    if (tk_node_is_error(a)) return a;
    tk_axes normal;
    TKB_TRY(b, tk_axes_normalize("median", axes, a->rank, &normal));
    if (tk_dtype_is_complex((tk_dtype)a->dtype))
        return tkb_fail(b, tk_fail(TK_DTYPE_ERROR, "median: operand is %s, expected real numbers",
                                   tk_text_node(a)));
    if (normal.count == 0) return tkb_inexact(b, a);
    tk_shape kept = tk_node_shape(a);
    for (int64_t i = 0; i < normal.count; i++) kept.items[normal.items[i]] = 1;
    tk_node *sorted = tkb_sort(b, gather_axes(b, tkb_inexact(b, a), &normal), -1);
    if (tk_node_is_error(sorted)) return sorted;
    int last = sorted->rank - 1;
    int64_t length = sorted->shape[last];
    if (length == 0)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "median: %s has no elements to choose from",
                                   tk_text_node(a)));
    tk_node *middle = tkb_range(b, sorted, last, (length - 1) / 2, length / 2 + 1);
    middle = tkb_mean(b, middle, TK_AXES(-1), false);
    tk_axes end = TK_AXES(last); /* a NaN is sorted there, and wins */
    tk_node *largest = tkb_drop_axes(b, tkb_range(b, sorted, last, length - 1, length), &end);
    middle = tkb_where(b, tkb_isnan(b, largest), largest, middle);
    return keepdims ? tkb_reshape(b, middle, kept) : middle;
}

/* Whether an element comes before where a value belongs; NaN is the largest, as in sort. */
static tk_node *is_before(tk_builder *b, tk_node *element, tk_node *value, bool right) {
    tk_node *before = right ? tkb_less_equal(b, element, value) : tkb_less(b, element, value);
    if (!tk_dtype_is_inexact((tk_dtype)value->dtype)) return before;
    tk_node *is_last = tkb_isnan(b, value);
    if (!right) is_last = tkb_logical_and(b, is_last, tkb_logical_not(b, tkb_isnan(b, element)));
    return tkb_logical_or(b, before, is_last);
}

/* Binary search without branches: the answer grows by falling powers of two while the element
 * before it is still below the value. */
tk_node *tkb_searchsorted(tk_builder *b, tk_node *a, tk_node *values, bool right) {
    if (tk_node_is_error(a)) return a;
    if (tk_node_is_error(values)) return values;
    if (a->rank != 1)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "searchsorted: operand is %s, expected a vector",
                                   tk_text_node(a)));
    tk_node *both[] = {tkb_strong(b, a), tkb_strong(b, values)};
    tkb_promote(b, 2, both);
    int64_t length = a->shape[0], step = 1;
    tk_dtype dtype = TK_INT64;
    tk_node *found = tkb_zeros(b, tk_node_shape(values), dtype);
    while (step <= length / 2) step *= 2;
    for (; length > 0 && step > 0; step /= 2) {
        tk_node *next = tkb_add(b, found, tkb_const_int(b, dtype, step));
        tk_node *inside = tkb_less_equal(b, next, tkb_const_int(b, dtype, length));
        tk_node *at = tkb_minimum(b, next, tkb_const_int(b, dtype, length));
        tk_node *element = tkb_take(b, both[0], tkb_subtract(b, at, tkb_const_int(b, dtype, 1)), 0);
        tk_node *below = is_before(b, element, both[1], right);
        found = tkb_where(b, tkb_logical_and(b, inside, below), next, found);
    }
    return tkb_astype(b, found, TK_UINT32);
}

/* ---- order of evaluation ---- */

/* Few at a time, since rules take a bounded number of operands. */
tk_node *tkb_depends(tk_builder *b, tk_node *a, tk_node *const *dependencies, size_t n) {
    enum { FEW = 7 };
    tk_node *inputs[1 + FEW] = {tkb_strong(b, a)};
    for (size_t i = 0; i < n; i += FEW) {
        size_t count = n - i < FEW ? n - i : FEW;
        memcpy(inputs + 1, dependencies + i, count * sizeof *inputs);
        tk_attrs_barrier attrs = {.serial = (int64_t)tk_graph_serial(b->graph)};
        inputs[0] = tkb_node(b, TK_OP_barrier, 1 + count, inputs, &attrs);
    }
    return inputs[0];
}
