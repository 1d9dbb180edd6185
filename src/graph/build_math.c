/* Elementwise functions that are compositions. Constants are weakly typed, so that half types stay
 * half and float64 gets them in full; comparisons that need more than a half has are made in
 * float32. */
#include <float.h>
#include <math.h>

#include "graph/build_pieces.h"

tk_node *tkb_square(tk_builder *b, tk_node *a) { return tkb_multiply(b, a, a); }

tk_node *tkb_reciprocal(tk_builder *b, tk_node *a) { return tkb_divide(b, tkb_number(b, 1), a); }

/* ---- rounding ---- */

/* Integers to a multiple of `unit`, ties to the even multiple. Comparing the remainder with what is
 * missing avoids doubling it, which could overflow. */
static tk_node *round_to_unit(tk_builder *b, tk_node *a, int64_t unit) {
    tk_dtype dtype = (tk_dtype)a->dtype;
    tk_node *step = tkb_const_int(b, dtype, unit), *one = tkb_const_int(b, dtype, 1);
    tk_node *quotient = tkb_floor_divide(b, a, step);
    tk_node *rest = tkb_subtract(b, a, tkb_multiply(b, quotient, step));
    tk_node *missing = tkb_subtract(b, step, rest);
    tk_node *is_odd = tkb_equal(b, tkb_bitwise_and(b, quotient, one), one);
    tk_node *tie_up = tkb_logical_and(b, tkb_equal(b, rest, missing), is_odd);
    tk_node *up = tkb_logical_or(b, tkb_greater(b, rest, missing), tie_up);
    return tkb_multiply(b, tkb_add(b, quotient, tkb_astype(b, up, dtype)), step);
}

static int64_t largest_integer(tk_dtype dtype) {
    int bits = 8 * (int)tk_dtype_size(dtype) - (tk_dtype_kind(dtype) == TK_KIND_SIGNED);
    return bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

static tk_node *round_integer(tk_builder *b, tk_node *a, int64_t decimals) {
    if (decimals >= 0) return tkb_strong(b, a);
    if (a->dtype == TK_BOOL) return tkb_const_like(b, a, 0);
    int64_t unit = 1, top = largest_integer((tk_dtype)a->dtype);
    for (; decimals < 0; decimals++) {
        if (unit > top / 10) return tkb_const_like(b, a, 0);
        unit *= 10;
    }
    return round_to_unit(b, a, unit);
}

/* A value that leaves the range when scaled has no digits that far behind the point: it stays. */
static tk_node *round_places(tk_builder *b, tk_node *a, tk_node *scale) {
    tk_node *rounded = tkb_divide(b, tkb_rint(b, tkb_multiply(b, a, scale)), scale);
    return tkb_where(b, tkb_isfinite(b, rounded), rounded, tkb_stop_gradient(b, a));
}

/* The scale itself may be beyond the range, when everything finite rounds to 0. */
static tk_node *round_to_scale(tk_builder *b, tk_node *a, tk_node *scale) {
    tk_node *units = tkb_rint(b, tkb_divide(b, a, scale));
    tk_node *zero = tkb_equal(b, units, tkb_number(b, 0));
    tk_node *rounded = tkb_where(b, zero, units, tkb_multiply(b, units, scale));
    return tkb_where(b, tkb_isfinite(b, a), rounded, tkb_stop_gradient(b, a));
}

tk_node *tkb_round(tk_builder *b, tk_node *a, int64_t decimals) {
    if (tk_node_is_error(a)) return a;
    if (!tk_dtype_is_inexact((tk_dtype)a->dtype)) return round_integer(b, a, decimals);
    if (decimals == 0) return tkb_rint(b, a);
    tk_node *scale = tkb_number(b, pow(10, fabs((double)decimals)));
    return decimals > 0 ? round_places(b, a, scale) : round_to_scale(b, a, scale);
}

tk_node *tkb_clip(tk_builder *b, tk_node *a, tk_node *a_min, tk_node *a_max) {
    if (a_min) a = tkb_maximum(b, a, a_min);
    if (a_max) a = tkb_minimum(b, a, a_max);
    return tkb_strong(b, a);
}

/* ---- NaN and infinity ---- */

static tk_node *truth_like(tk_builder *b, tk_node *a, bool value) {
    return tkb_broadcast_to(b, tkb_const_int(b, TK_BOOL, value), tk_node_shape(a));
}

tk_node *tkb_isnan(tk_builder *b, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    if (!tk_dtype_is_inexact((tk_dtype)a->dtype)) return truth_like(b, a, false);
    return tkb_not_equal(b, a, a);
}

tk_node *tkb_isinf(tk_builder *b, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    if (!tk_dtype_is_inexact((tk_dtype)a->dtype)) return truth_like(b, a, false);
    if (tk_dtype_is_complex((tk_dtype)a->dtype))
        return tkb_logical_or(b, tkb_isinf(b, tkb_real(b, a)), tkb_isinf(b, tkb_imag(b, a)));
    return tkb_equal(b, tkb_abs(b, a), tkb_number(b, INFINITY));
}

tk_node *tkb_isfinite(tk_builder *b, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    if (!tk_dtype_is_inexact((tk_dtype)a->dtype)) return truth_like(b, a, true);
    if (tk_dtype_is_complex((tk_dtype)a->dtype))
        return tkb_logical_and(b, tkb_isfinite(b, tkb_real(b, a)), tkb_isfinite(b, tkb_imag(b, a)));
    return tkb_less(b, tkb_abs(b, a), tkb_number(b, INFINITY));
}

static tk_node *is_value(tk_builder *b, tk_node *a, double value) {
    if (tk_node_is_error(a)) return a;
    if (!tk_dtype_is_inexact((tk_dtype)a->dtype)) return truth_like(b, a, false);
    return tkb_equal(b, a, tkb_number(b, value));
}

tk_node *tkb_isposinf(tk_builder *b, tk_node *a) { return is_value(b, a, INFINITY); }
tk_node *tkb_isneginf(tk_builder *b, tk_node *a) { return is_value(b, a, -INFINITY); }

static double largest_float(tk_dtype dtype) {
    switch (dtype) {
    case TK_FLOAT16:
        return 65504;
    case TK_BFLOAT16:
        return 0x1.fep127;
    case TK_FLOAT64:
        return DBL_MAX;
    default:
        return FLT_MAX;
    }
}

tk_node *tkb_nan_to_num(tk_builder *b, tk_node *a, double nan, double posinf, double neginf) {
    if (tk_node_is_error(a)) return a;
    tk_dtype dtype = (tk_dtype)a->dtype;
    if (!tk_dtype_is_inexact(dtype)) return tkb_strong(b, a);
    if (tk_dtype_is_complex(dtype)) {
        tk_node *real = tkb_nan_to_num(b, tkb_real(b, a), nan, posinf, neginf);
        tk_node *imag = tkb_nan_to_num(b, tkb_imag(b, a), nan, posinf, neginf);
        return tkb_add(b, real, tkb_multiply(b, imag, tkb_const_complex(b, 0, 1)));
    }
    double top = isnan(posinf) ? largest_float(dtype) : posinf;
    double bottom = isnan(neginf) ? -largest_float(dtype) : neginf;
    tk_node *finite = tkb_where(b, tkb_isnan(b, a), tkb_const(b, dtype, nan), a);
    finite = tkb_where(b, tkb_isposinf(b, a), tkb_const(b, dtype, top), finite);
    return tkb_where(b, tkb_isneginf(b, a), tkb_const(b, dtype, bottom), finite);
}

tk_node *tkb_logical_xor(tk_builder *b, tk_node *a, tk_node *other) {
    return tkb_not_equal(b, tkb_astype(b, a, TK_BOOL), tkb_astype(b, other, TK_BOOL));
}

/* ---- scaling and activations ---- */

static const double pi = 3.14159265358979323846;

tk_node *tkb_degrees(tk_builder *b, tk_node *a) {
    return tkb_multiply(b, a, tkb_number(b, 180 / pi));
}
tk_node *tkb_radians(tk_builder *b, tk_node *a) {
    return tkb_multiply(b, a, tkb_number(b, pi / 180));
}

tk_node *tkb_relu(tk_builder *b, tk_node *a) {
    return tkb_maximum(b, a, tkb_weak(b, TK_KIND_SIGNED, 0, 0, 0));
}

tk_node *tkb_silu(tk_builder *b, tk_node *a) { return tkb_multiply(b, a, tkb_sigmoid(b, a)); }

/* a * (both / 2): halving the factor first keeps a large `a` finite, and is exact. */
static tk_node *half_product(tk_builder *b, tk_node *a, tk_node *both) {
    return tkb_multiply(b, a, tkb_multiply(b, both, tkb_number(b, 0.5)));
}

tk_node *tkb_gelu(tk_builder *b, tk_node *a) {
    tk_node *scaled = tkb_multiply(b, a, tkb_number(b, sqrt(0.5)));
    tk_node *both = tkb_add(b, tkb_number(b, 1), tkb_erf(b, scaled));
    return half_product(b, a, both);
}

tk_node *tkb_gelu_approx(tk_builder *b, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    a = tkb_inexact(b, a);
    tk_node *cube = tkb_multiply(b, tkb_square(b, a), a);
    tk_node *inner = tkb_add(b, a, tkb_multiply(b, cube, tkb_number(b, 0.044715)));
    tk_node *bend = tkb_tanh(b, tkb_multiply(b, inner, tkb_number(b, sqrt(2 / pi))));
    tk_node *both = tkb_add(b, tkb_number(b, 1), bend);
    return half_product(b, a, both);
}

tk_node *tkb_softplus(tk_builder *b, tk_node *a) { return tkb_logaddexp(b, a, tkb_number(b, 0)); }

/* ---- comparison within a tolerance ---- */

/* |x - y| of integers, exact: the larger less the smaller, as unsigned of the same width. */
static tk_node *integer_distance(tk_builder *b, tk_node *x, tk_node *y) {
    tk_dtype is_unsigned = tk_dtype_size((tk_dtype)x->dtype) == 8 ? TK_UINT64 : TK_UINT32;
    tk_node *apart = tkb_subtract(b, tkb_maximum(b, x, y), tkb_minimum(b, x, y));
    return tkb_astype(b, tkb_view(b, apart, is_unsigned), TK_FLOAT64);
}

static tk_dtype at_least_word(tk_dtype dtype) {
    return tk_dtype_size(dtype) < 4 ? TK_INT32 : dtype;
}

/* |x - y| <= atol + rtol |y| for finite values, in a type that holds what the tolerance looks at.
 */
static tk_node *is_near(tk_builder *b, tk_node *x, tk_node *y, double rtol, double atol) {
    tk_dtype dtype = (tk_dtype)x->dtype;
    bool is_integer = !tk_dtype_is_inexact(dtype);
    dtype = is_integer ? at_least_word(dtype) : tk_dtype_wide(dtype);
    x = tkb_astype(b, x, dtype);
    y = tkb_astype(b, y, dtype);
    tk_node *distance = is_integer ? integer_distance(b, x, y) : tkb_abs(b, tkb_subtract(b, x, y));
    tk_node *size = tkb_abs(b, is_integer ? tkb_astype(b, y, TK_FLOAT64) : y);
    tk_node *bound = tkb_add(b, tkb_multiply(b, size, tkb_number(b, rtol)), tkb_number(b, atol));
    tk_node *finite = tkb_logical_and(b, tkb_isfinite(b, x), tkb_isfinite(b, y));
    return tkb_logical_and(b, finite, tkb_less_equal(b, distance, bound));
}

tk_node *tkb_isclose(tk_builder *b, tk_node *a, tk_node *other, double rtol, double atol,
                     bool equal_nan) {
    tk_node *pair[] = {a, other};
    tkb_promote(b, 2, pair);
    if (!tkb_broadcast(b, "isclose", 2, pair)) return pair[0];
    tk_node *near = is_near(b, pair[0], pair[1], rtol, atol);
    tk_node *alike = tkb_logical_and(b, tkb_equal(b, pair[0], pair[1]), tkb_isinf(b, pair[0]));
    tk_node *close = tkb_logical_or(b, alike, near);
    if (!equal_nan) return close;
    tk_node *both = tkb_logical_and(b, tkb_isnan(b, pair[0]), tkb_isnan(b, pair[1]));
    return tkb_logical_or(b, close, both);
}

tk_node *tkb_allclose(tk_builder *b, tk_node *a, tk_node *other, double rtol, double atol,
                      bool equal_nan) {
    return tkb_all(b, tkb_isclose(b, a, other, rtol, atol, equal_nan), TK_ALL_AXES, false);
}

tk_node *tkb_array_equal(tk_builder *b, tk_node *a, tk_node *other, bool equal_nan) {
    if (tk_node_is_error(a)) return a;
    if (tk_node_is_error(other)) return other;
    if (!tk_shape_equal(a, other)) return tkb_const_int(b, TK_BOOL, 0);
    tk_node *equal = tkb_equal(b, a, other);
    if (equal_nan)
        equal = tkb_logical_or(b, equal, tkb_logical_and(b, tkb_isnan(b, a), tkb_isnan(b, other)));
    return tkb_all(b, equal, TK_ALL_AXES, false);
}
