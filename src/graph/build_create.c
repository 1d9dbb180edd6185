/* Builders of arrays from nothing. A constant array is a broadcast scalar, a range is one iota
 * leaf: none of them owns memory before it is evaluated, and kernels can compute them from the
 * index. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "graph/build_pieces.h"

/* ---- constant arrays ---- */

static tk_node *fill(tk_builder *b, const char *what, tk_node *value, tk_shape shape) {
    TKB_TRY(b, tk_shape_check(what, shape));
    return tkb_broadcast_to(b, value, shape);
}

static tk_status check_dtype(const char *what, tk_dtype dtype) {
    if ((unsigned)dtype < TK_DTYPE_COUNT) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR, "%s: %d is no dtype", what, (int)dtype);
}

tk_node *tkb_zeros(tk_builder *b, tk_shape shape, tk_dtype dtype) {
    TKB_TRY(b, check_dtype("zeros", dtype));
    return fill(b, "zeros", tkb_const_int(b, dtype, 0), shape);
}

tk_node *tkb_ones(tk_builder *b, tk_shape shape, tk_dtype dtype) {
    TKB_TRY(b, check_dtype("ones", dtype));
    return fill(b, "ones", tkb_const_int(b, dtype, 1), shape);
}

tk_node *tkb_full(tk_builder *b, tk_node *value, tk_shape shape, tk_dtype dtype) {
    if (tk_node_is_error(value)) return value;
    bool own = (unsigned)dtype >= TK_DTYPE_COUNT;
    return fill(b, "full", tkb_become(b, value, own ? (tk_dtype)value->dtype : dtype), shape);
}

tk_node *tkb_zeros_like(tk_builder *b, tk_node *a) {
    return tk_node_is_error(a) ? a : tkb_const_like(b, a, 0);
}

tk_node *tkb_ones_like(tk_builder *b, tk_node *a) {
    return tk_node_is_error(a) ? a : tkb_const_like(b, a, 1);
}

/* ---- ranges ---- */

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static tk_node *iota(tk_builder *b, tk_dtype dtype, const tk_shape *shape, int axis, uint64_t start,
                     uint64_t step) {
    tk_attrs_iota attrs = {
        .dtype = dtype, .shape = tk_axes_list(shape), .axis = axis, .start = start, .step = step};
    return tkb_node(b, TK_OP_iota, 0, NULL, &attrs);
}

tk_node *tkb_iota_int(tk_builder *b, tk_dtype dtype, tk_shape shape, int axis, int64_t start,
                      int64_t step) {
    return iota(b, dtype, &shape, axis, (uint64_t)start, (uint64_t)step);
}

static tk_node *iota_real(tk_builder *b, tk_dtype dtype, int64_t count, double start, double step) {
    tk_shape shape = TK_SHAPE(count);
    return iota(b, dtype, &shape, 0, bits_of(start), bits_of(step));
}

/* Values from start by step before stop. */
static tk_status count_range(double start, double stop, double step, int64_t *out_count) {
    if (step == 0 || isnan(step) || isnan(start) || isnan(stop))
        return tk_fail(TK_INVALID_ARGUMENT,
                       "arange: from %g to %g by %g, expected numbers and a step that is not 0",
                       start, stop, step);
    double ratio = (stop - start) / step, count = ceil(ratio);
    if (ratio == 0 && stop != start) count = !signbit(ratio); /* a step beyond measure */
    if (isnan(count) || count >= 0x1p62)
        return tk_fail(TK_OVERFLOW,
                       "arange: from %g to %g by %g has more elements than fit 63 bits", start,
                       stop, step);
    *out_count = count > 0 ? (int64_t)count : 0;
    return TK_OK;
}

static bool holds(tk_dtype dtype, double value) {
    int bits = 8 * (int)tk_dtype_size(dtype);
    if (tk_dtype_kind(dtype) == TK_KIND_UNSIGNED) return value > -1 && value < ldexp(1, bits);
    return value >= -ldexp(1, bits - 1) && value < ldexp(1, bits - 1);
}

static int64_t to_integer(double value) {
    return value >= 0x1p63 ? (int64_t)(uint64_t)value : (int64_t)value;
}

/* Start and second value are cut to integers, as NumPy does; the others follow. */
static tk_node *arange_integer(tk_builder *b, double start, double step, int64_t count,
                               tk_dtype dtype) {
    double first = trunc(start), stride = trunc(start + step) - first;
    double last = count ? first + stride * (double)(count - 1) : first;
    if (count && (!holds(dtype, first) || !holds(dtype, last)))
        return tkb_fail(b, tk_fail(TK_OVERFLOW, "arange: %.17g to %.17g does not fit %s", first,
                                   last, tk_dtype_name(dtype)));
    if (count < 2) stride = 0;
    if (count == 0) first = 0;
    return tkb_iota_int(b, dtype, TK_SHAPE(count), 0, to_integer(first), to_integer(stride));
}

tk_node *tkb_arange(tk_builder *b, double start, double stop, double step, tk_dtype dtype) {
    int64_t count = 0;
    TKB_TRY(b, check_dtype("arange", dtype));
    if (dtype == TK_BOOL)
        return tkb_fail(
            b, tk_fail(TK_DTYPE_ERROR, "arange: bool has no range, expected a number dtype"));
    TKB_TRY(b, count_range(start, stop, step, &count));
    if (tk_dtype_is_integer(dtype)) return arange_integer(b, start, step, count, dtype);
    if (dtype == TK_COMPLEX64)
        return tkb_astype(b, iota_real(b, TK_FLOAT32, count, start, count < 2 ? 0 : step), dtype);
    return iota_real(b, dtype, count, start, count < 2 ? 0 : step);
}

static double rounded(tk_dtype dtype, double value) {
    switch (dtype) {
    case TK_FLOAT16:
        return tk_f16_to_f32(tk_f64_to_f16(value));
    case TK_BFLOAT16:
        return tk_bf16_to_f32(tk_f64_to_bf16(value));
    case TK_FLOAT64:
        return value;
    default:
        return (float)value;
    }
}

/* The last value is `stop` itself: where start + step * (num - 1) rounds to a neighbour, it is
 * joined. */
static tk_node *linspace_real(tk_builder *b, double start, double stop, int64_t num, bool endpoint,
                              tk_dtype dtype) {
    int64_t gaps = endpoint ? num - 1 : num;
    double step = gaps > 0 ? (stop - start) / (double)gaps : 0;
    double last = start + step * (double)(num - 1);
    if (!endpoint || num < 2 || rounded(dtype, last) == rounded(dtype, stop))
        return iota_real(b, dtype, num, start, step);
    tk_node *end = tkb_reshape(b, tkb_const(b, dtype, stop), TK_SHAPE(1));
    return tkb_concatenate(b, (tk_node *const[]){iota_real(b, dtype, num - 1, start, step), end}, 2,
                           0);
}

tk_node *tkb_linspace(tk_builder *b, double start, double stop, int64_t num, bool endpoint,
                      tk_dtype dtype) {
    TKB_TRY(b, check_dtype("linspace", dtype));
    if (num < 0)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT, "linspace: num is %lld, expected 0 or more",
                                   (long long)num));
    tk_dtype inner = tk_dtype_is_float(dtype) ? dtype
                     : dtype == TK_COMPLEX64  ? TK_FLOAT32
                                              : TK_FLOAT64;
    return tkb_astype(b, linspace_real(b, start, stop, num, endpoint, inner), dtype);
}

/* ---- triangles ---- */

static tk_status check_matrix(const char *what, int64_t n, int64_t *m, int64_t *k) {
    if (n < 0)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: %lld rows, expected 0 or more", what,
                       (long long)n);
    if (*m < 0) *m = n;
    if (*k > *m) *k = *m; /* further out nothing changes, and row + k cannot overflow */
    if (*k < -n) *k = -n;
    return TK_OK;
}

/* Compares row + k with column over an n by m matrix. */
static tk_node *compare_diagonal(tk_builder *b, tk_op op, int64_t n, int64_t m, int64_t k) {
    tk_shape shape = TK_SHAPE(n, m);
    tk_node *row = tkb_iota_int(b, TK_INT64, shape, 0, k, 1);
    tk_node *column = tkb_iota_int(b, TK_INT64, shape, 1, 0, 1);
    return tkb_node2(b, op, row, column, NULL);
}

tk_node *tkb_eye(tk_builder *b, int64_t n, int64_t m, int64_t k, tk_dtype dtype) {
    TKB_TRY(b, check_dtype("eye", dtype));
    TKB_TRY(b, check_matrix("eye", n, &m, &k));
    return tkb_astype(b, compare_diagonal(b, TK_OP_equal, n, m, k), dtype);
}

tk_node *tkb_tri(tk_builder *b, int64_t n, int64_t m, int64_t k, tk_dtype dtype) {
    TKB_TRY(b, check_dtype("tri", dtype));
    TKB_TRY(b, check_matrix("tri", n, &m, &k));
    return tkb_astype(b, compare_diagonal(b, TK_OP_greater_equal, n, m, k), dtype);
}

static tk_node *keep_triangle(tk_builder *b, const char *what, tk_op op, tk_node *a, int64_t k) {
    if (tk_node_is_error(a)) return a;
    if (a->rank < 2)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "%s: operand is %s, expected two axes or more",
                                   what, tk_text_node(a)));
    int64_t n = a->shape[a->rank - 2], m = a->shape[a->rank - 1];
    TKB_TRY(b, check_matrix(what, n, &m, &k));
    return tkb_where(b, compare_diagonal(b, op, n, m, k), a, tkb_zero(b, (tk_dtype)a->dtype));
}

tk_node *tkb_tril(tk_builder *b, tk_node *a, int64_t k) {
    return keep_triangle(b, "tril", TK_OP_greater_equal, a, k);
}

tk_node *tkb_triu(tk_builder *b, tk_node *a, int64_t k) {
    return keep_triangle(b, "triu", TK_OP_less_equal, a, k);
}
