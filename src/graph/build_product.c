/* Builders of products. One primitive multiplies matrices with equal leading axes; vectors,
 * broadcasting and contractions over any axes become it by reshapes and permutations. A single
 * matrix on the right takes all leading axes of the left as rows, so that weights are never
 * broadcast. */
#include "graph/build_pieces.h"

static tk_status check_product(const char *what, const tk_node *a, const tk_node *other) {
    if (a->rank < 1 || other->rank < 1)
        return tk_fail(TK_SHAPE_ERROR, "%s: operands are %s and %s, expected no scalars", what,
                       tk_text_node(a), tk_text_node(other));
    if (a->dtype == TK_BOOL)
        return tk_fail(TK_DTYPE_ERROR, "%s: operands are bool, expected a number dtype", what);
    int64_t columns = a->shape[a->rank - 1],
            rows = other->shape[other->rank > 1 ? other->rank - 2 : 0];
    if (columns == rows) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "%s: operands are %s and %s: %lld columns meet %lld rows", what,
                   tk_text_node(a), tk_text_node(other), (long long)columns, (long long)rows);
}

/* The leading axes of both as one shape, each matrix repeated to it. */
static tk_status broadcast_leads(tk_builder *b, const char *what, tk_node **a, tk_node **other) {
    tk_node *nodes[] = {*a, *other};
    int rank = nodes[0]->rank > nodes[1]->rank ? nodes[0]->rank : nodes[1]->rank;
    tk_shape shape = {.count = rank};
    for (int i = 0; i < rank - 2; i++) {
        int left = i - (rank - nodes[0]->rank), right = i - (rank - nodes[1]->rank);
        int64_t one = left < 0 ? 1 : nodes[0]->shape[left],
                two = right < 0 ? 1 : nodes[1]->shape[right];
        if (one != two && one != 1 && two != 1)
            return tk_fail(
                TK_SHAPE_ERROR,
                "%s: operands are %s and %s: leading lengths %lld and %lld do not broadcast", what,
                tk_text_node(*a), tk_text_node(*other), (long long)one, (long long)two);
        shape.items[i] = one == 1 ? two : one;
    }
    for (int i = 0; i < 2; i++) {
        shape.items[rank - 2] = nodes[i]->shape[nodes[i]->rank - 2];
        shape.items[rank - 1] = nodes[i]->shape[nodes[i]->rank - 1];
        nodes[i] = tkb_broadcast_to(b, nodes[i], shape);
    }
    *a = nodes[0];
    *other = nodes[1];
    return TK_OK;
}

static tk_node *rows_by_matrix(tk_builder *b, tk_node *a, tk_node *matrix) {
    tk_shape shape = tk_node_shape(a);
    shape.items[a->rank - 1] = matrix->shape[1];
    int64_t rows;
    TKB_TRY(b, tk_length_product("matmul", a->rank - 1, a->shape, &rows));
    tk_node *flat = tkb_reshape(b, a, TK_SHAPE(rows, a->shape[a->rank - 1]));
    return tkb_reshape(b, tkb_node2(b, TK_OP_product, flat, matrix, NULL), shape);
}

static tk_node *multiply_matrices(tk_builder *b, const char *what, tk_node *a, tk_node *other) {
    if (other->rank == 2 && a->rank > 2) return rows_by_matrix(b, a, other);
    TKB_TRY(b, broadcast_leads(b, what, &a, &other));
    return tkb_node2(b, TK_OP_product, a, other, NULL);
}

static tk_node *matmul(tk_builder *b, const char *what, tk_node *a, tk_node *other) {
    tk_node *pair[] = {a, other};
    for (int i = 0; i < 2; i++)
        if (tk_node_is_error(pair[i])) return pair[i];
    tkb_promote(b, 2, pair);
    TKB_TRY(b, check_product(what, pair[0], pair[1]));
    bool is_row = pair[0]->rank == 1, is_column = pair[1]->rank == 1;
    if (is_row) pair[0] = tkb_expand_dims(b, pair[0], TK_AXES(0));
    if (is_column) pair[1] = tkb_expand_dims(b, pair[1], TK_AXES(1));
    tk_node *product = multiply_matrices(b, what, pair[0], pair[1]);
    if (tk_node_is_error(product)) return product;
    tk_axes dropped = {.count = 0};
    if (is_row) dropped.items[dropped.count++] = product->rank - 2;
    if (is_column) dropped.items[dropped.count++] = product->rank - 1;
    return tkb_drop_axes(b, product, &dropped);
}

tk_node *tkb_matmul(tk_builder *b, tk_node *a, tk_node *other) {
    return matmul(b, "matmul", a, other);
}

static tk_node *scaled(tk_builder *b, tk_node *a, double factor) {
    return factor == 1 ? a : tkb_multiply(b, a, tkb_number(b, factor));
}

tk_node *tkb_addmm(tk_builder *b, tk_node *c, tk_node *a, tk_node *other, double alpha,
                   double beta) {
    tk_node *nodes[] = {c, a, other};
    tkb_promote(b, 3, nodes);
    tk_node *product = scaled(b, matmul(b, "addmm", nodes[1], nodes[2]), alpha);
    if (tk_node_is_error(product)) return product;
    tk_node *addend = tkb_fit(b, "addmm", "c", nodes[0], tk_node_shape(product));
    return tkb_add(b, product, scaled(b, addend, beta));
}

/* ---- contractions ---- */

static bool contains(const tk_axes *axes, int axis) {
    for (int64_t i = 0; i < axes->count; i++)
        if (axes->items[i] == axis) return true;
    return false;
}

/* Axes that are not contracted, in order. */
static tk_axes free_axes(const tk_node *a, const tk_axes *contracted) {
    tk_axes axes = {.count = 0};
    for (int i = 0; i < a->rank; i++)
        if (!contains(contracted, i)) axes.items[axes.count++] = i;
    return axes;
}

/* `a` as a matrix: the axes of `rows` by those of `columns`. */
static tk_node *as_matrix(tk_builder *b, const char *what, tk_node *a, const tk_axes *rows,
                          const tk_axes *columns) {
    tk_axes order = *rows;
    int64_t lengths[TK_MAX_RANK], shape[2];
    for (int64_t i = 0; i < columns->count; i++) order.items[order.count++] = columns->items[i];
    for (int64_t i = 0; i < order.count; i++) lengths[i] = a->shape[order.items[i]];
    TKB_TRY(b, tk_length_product(what, rows->count, lengths, &shape[0]));
    TKB_TRY(b, tk_length_product(what, columns->count, lengths + rows->count, &shape[1]));
    return tkb_reshape(b, tkb_permute(b, a, &order), TK_SHAPE(shape[0], shape[1]));
}

static tk_status check_contraction(const char *what, const tk_node *a, const tk_node *other,
                                   const tk_axes *left, const tk_axes *right) {
    if (left->count != right->count)
        return tk_fail(TK_INVALID_ARGUMENT,
                       "%s: %lld axes of the first operand are paired with %lld of the second",
                       what, (long long)left->count, (long long)right->count);
    for (int64_t i = 0; i < left->count; i++)
        if (a->shape[left->items[i]] != other->shape[right->items[i]])
            return tk_fail(TK_SHAPE_ERROR, "%s: axis %lld of %s is paired with axis %lld of %s",
                           what, (long long)left->items[i], tk_text_node(a),
                           (long long)right->items[i], tk_text_node(other));
    if (a->rank + other->rank - 2 * left->count > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "%s: %s and %s give more than %d axes", what,
                       tk_text_node(a), tk_text_node(other), TK_MAX_RANK);
    return TK_OK;
}

static tk_node *contract(tk_builder *b, const char *what, tk_node *a, tk_node *other,
                         const tk_axes *left, const tk_axes *right) {
    tk_node *pair[] = {a, other};
    TKB_TRY(b, check_contraction(what, a, other, left, right));
    tkb_promote(b, 2, pair);
    tk_axes rows = free_axes(a, left), columns = free_axes(other, right);
    tk_shape shape = {.count = 0};
    for (int64_t i = 0; i < rows.count; i++) shape.items[shape.count++] = a->shape[rows.items[i]];
    for (int64_t i = 0; i < columns.count; i++)
        shape.items[shape.count++] = other->shape[columns.items[i]];
    tk_node *product = matmul(b, what, as_matrix(b, what, pair[0], &rows, left),
                              as_matrix(b, what, pair[1], right, &columns));
    return tkb_reshape(b, product, shape);
}

tk_node *tkb_tensordot(tk_builder *b, tk_node *a, tk_node *other, tk_axes axes_a, tk_axes axes_b) {
    if (tk_node_is_error(a)) return a;
    if (tk_node_is_error(other)) return other;
    tk_axes left, right;
    TKB_TRY(b, tk_shape_check("tensordot: axes of the first operand", axes_a));
    TKB_TRY(b, tk_shape_check("tensordot: axes of the second operand", axes_b));
    TKB_TRY(b, tk_axes_normalize_ordered("tensordot", axes_a, a->rank, &left));
    TKB_TRY(b, tk_axes_normalize_ordered("tensordot", axes_b, other->rank, &right));
    return contract(b, "tensordot", a, other, &left, &right);
}

tk_node *tkb_inner(tk_builder *b, tk_node *a, tk_node *other) {
    if (tk_node_is_error(a)) return a;
    if (tk_node_is_error(other)) return other;
    if (a->rank == 0 || other->rank == 0) return tkb_multiply(b, a, other);
    tk_axes left = TK_AXES(a->rank - 1), right = TK_AXES(other->rank - 1);
    return contract(b, "inner", a, other, &left, &right);
}

tk_node *tkb_outer(tk_builder *b, tk_node *a, tk_node *other) {
    tk_node *pair[] = {a, other}; /* promoted first: a reshape makes a weak scalar strong */
    tkb_promote(b, 2, pair);
    return tkb_multiply(b, tkb_reshape(b, pair[0], TK_SHAPE(a->size, 1)),
                        tkb_reshape(b, pair[1], TK_SHAPE(1, other->size)));
}
