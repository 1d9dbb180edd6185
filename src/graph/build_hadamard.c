/* Hadamard transforms of the last axis, of length m 2^k with m in 1, 12, 20, 28.
 *
 * The factor 2^k is k rounds of sums and differences; the factor m is one product with a matrix of
 * ones and minus ones. Many such matrices exist; these rows are MLX's, so that results agree.
 * Rejected: one product with the whole matrix (n^2 work and memory for n log n). */
#include <math.h>

#include "graph/build_pieces.h"

/* Bit j of row i: entry (i, j) is 1 where it is set. */
static const uint32_t rows_12[] = {
    0xffd, 0x554, 0xc37, 0x691, 0xdf, 0xa45, 0x373, 0x919, 0xdc3, 0x469, 0x70f, 0x1a5,
};
static const uint32_t rows_20[] = {
    0x933c1, 0x2e3a2, 0x54764, 0xa0ee8, 0x499f0, 0x63421, 0xc6842, 0x8d484, 0x1ad08, 0x35a10,
    0x8653,  0x108a7, 0x2114e, 0x4229c, 0x84139, 0xfa6d,  0x174fa, 0x26dd5, 0x45f8b, 0x83f36,
};
static const uint32_t rows_28[] = {
    0xcd69e01, 0x9ad7c02, 0x37ab884, 0x6d57188, 0xd8ae390, 0xb3587a0, 0x66b4f40,
    0xb4640c3, 0x6ac8107, 0xd59020e, 0xab2441c, 0x564c838, 0xac99070, 0x5b32061,
    0x8607325, 0xe0a6ca,  0x1c10d95, 0x3821b2a, 0x7043654, 0xe082ca9, 0xc3019d2,
    0x2f1299,  0x5e2532,  0x9c4ae4,  0x118d549, 0x211ea13, 0x403d4a6, 0x807a94c,
};

/* The matrix of `m` rows of bits as float values. */
static tk_node *matrix_of(tk_builder *b, const uint32_t *bits, int64_t m, tk_dtype dtype) {
    tk_node *rows[28];
    for (int64_t i = 0; i < m; i++)
        rows[i] = tkb_reshape(b, tkb_const_int(b, TK_UINT32, bits[i]), TK_SHAPE(1, 1));
    tk_node *column = tkb_concatenate(b, rows, (size_t)m, 0);
    tk_node *places = tkb_iota_int(b, TK_UINT32, TK_SHAPE(1, m), 1, 0, 1);
    tk_node *set =
        tkb_bitwise_and(b, tkb_right_shift(b, column, places), tkb_const_int(b, TK_UINT32, 1));
    tk_node *ones = tkb_astype(b, set, dtype);
    return tkb_subtract(b, tkb_add(b, ones, ones), tkb_const(b, dtype, 1));
}

static const uint32_t *rows_of(int64_t m) {
    return m == 12 ? rows_12 : m == 20 ? rows_20 : m == 28 ? rows_28 : NULL;
}

/* m and k of a length; false when there are none. */
static bool split_length(int64_t length, int64_t *out_m, int *out_k) {
    int64_t m = length;
    int k = 0;
    while (m > 0 && m % 2 == 0) m /= 2, k++;
    if (m == 3 || m == 5 || m == 7) m *= 4, k -= 2;
    *out_m = m;
    *out_k = k;
    return k >= 0 && (m == 1 || rows_of(m));
}

/* [R, n] as sums and differences of elements 2^i apart, for i below k. */
static tk_node *rounds(tk_builder *b, tk_node *a, int64_t rows, int64_t length, int k) {
    for (int i = 0; i < k; i++) {
        int64_t half = INT64_C(1) << i;
        tk_node *pairs = tkb_reshape(b, a, TK_SHAPE(rows, length / (2 * half), 2, half));
        if (tk_node_is_error(pairs)) return pairs;
        tk_node *one = tkb_range(b, pairs, 2, 0, 1), *two = tkb_range(b, pairs, 2, 1, 2);
        tk_node *both[] = {tkb_add(b, one, two), tkb_subtract(b, one, two)};
        a = tkb_concatenate(b, both, 2, 2);
    }
    return tkb_reshape(b, a, TK_SHAPE(rows, length));
}

/* The factor m, whose index is the slow part of the axis. */
static tk_node *by_matrix(tk_builder *b, tk_node *a, int64_t rows, int64_t length, int64_t m) {
    if (m == 1 || tk_node_is_error(a)) return a;
    tk_node *parts = tkb_reshape(b, a, TK_SHAPE(rows, m, length / m));
    tk_node *matrix = matrix_of(b, rows_of(m), m, (tk_dtype)a->dtype);
    return tkb_reshape(b, tkb_matmul(b, tkb_swapaxes(b, matrix, 0, 1), parts),
                       TK_SHAPE(rows, length));
}

tk_node *tkb_hadamard_transform(tk_builder *b, tk_node *a, double scale) {
    int64_t m, rows;
    int k;
    if (tk_node_is_error(a)) return a;
    int64_t length = a->rank ? a->shape[a->rank - 1] : 1;
    if (a->size == 0 || !split_length(length, &m, &k))
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "hadamard_transform: operand is %s, expected a last axis of "
                                   "length m 2^k with m in 1, 12, 20, 28",
                                   tk_text_node(a)));
    a = tkb_inexact(b, a);
    TKB_TRY(b, tk_length_product("hadamard_transform", a->rank - 1, a->shape, &rows));
    tk_shape shape = tk_node_shape(a);
    tk_dtype dtype = (tk_dtype)a->dtype;
    tk_node *wide = tkb_reshape(b, tkb_astype(b, a, tk_dtype_wide(dtype)), TK_SHAPE(rows, length));
    wide = by_matrix(b, rounds(b, wide, rows, length, k), rows, length, m);
    double factor = isnan(scale) ? 1 / sqrt((double)length) : scale;
    wide = tkb_multiply(b, wide, tkb_number(b, factor));
    return tkb_reshape(b, tkb_astype(b, wide, dtype), shape);
}
