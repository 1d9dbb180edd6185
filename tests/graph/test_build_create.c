/* Creation and elementwise compositions: ends of ranges, dtypes, bounds, rounding, tolerance. */
#include "support/build_check.h"

static tk_array list(tk_context *ctx, int64_t count, const double *values, tk_dtype dtype) {
    return tk_astype(tk_from_data(ctx, values, TK_SHAPE(count), TK_FLOAT64), dtype);
}

static void ranges(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_arange(ctx, 0, 5, 2, TK_INT8), TK_INT8, TK_SHAPE(3), 0, 2, 4);
    CHECK(tk_arange(ctx, 5, 0, -2, TK_FLOAT32), TK_FLOAT32, TK_SHAPE(3), 5, 3, 1);
    CHECK(tk_arange(ctx, 0, 0.3, 0.1, TK_FLOAT64), TK_FLOAT64, TK_SHAPE(3), 0, 0.10000000000000001,
          0.20000000000000001);
    CHECK(tk_arange(ctx, -1.5, 1, 0.5, TK_INT32), TK_INT32, TK_SHAPE(5), -1, -1, -1, -1, -1);
    CHECK_EMPTY(tk_arange(ctx, 3, 3, 1, TK_UINT8), TK_UINT8, TK_SHAPE(0));
    CHECK(tk_arange(ctx, 1099511627776.0, 1099511627779.0, 1, TK_INT64), TK_INT64, TK_SHAPE(3),
          1099511627776, 1099511627777, 1099511627778);
    CHECK(tk_arange(ctx, 2147483646, 2147483648.0, 1, TK_INT32), TK_INT32, TK_SHAPE(2), 2147483646,
          2147483647);
    CHECK(tk_arange(ctx, -2147483648.0, -2147483646, 1, TK_INT32), TK_INT32, TK_SHAPE(2),
          -2147483648, -2147483647);
    CHECK(tk_arange(ctx, 2, 5, INFINITY, TK_FLOAT32), TK_FLOAT32, TK_SHAPE(1), 2);
    CHECK_ERROR(tk_arange(ctx, 0, 300, 1, TK_UINT8), TK_OVERFLOW,
                "arange: 0 to 299 does not fit uint8");
    CHECK_ERROR(tk_arange(ctx, 2147483647, 2147483649.0, 1, TK_INT32), TK_OVERFLOW, "int32");
    CHECK_ERROR(tk_arange(ctx, 0, 1, 0, TK_INT32), TK_INVALID_ARGUMENT, "arange: from 0 to 1 by 0");
    CHECK_ERROR(tk_arange(ctx, 0, NAN, 1, TK_FLOAT32), TK_INVALID_ARGUMENT, "arange");
    CHECK_ERROR(tk_arange(ctx, 0, INFINITY, 1, TK_FLOAT32), TK_OVERFLOW, "arange");
    CHECK_ERROR(tk_arange(ctx, 0, 2, 1, TK_BOOL), TK_DTYPE_ERROR, "arange: bool");
    tk_scope_close(scope);
}

static void spaces(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_linspace(ctx, 0, 1, 5, true, TK_FLOAT16), TK_FLOAT16, TK_SHAPE(5), 0, 0.25, 0.5, 0.75,
          1);
    CHECK(tk_linspace(ctx, 0, 1, 4, false, TK_FLOAT32), TK_FLOAT32, TK_SHAPE(4), 0, 0.25, 0.5,
          0.75);
    CHECK(tk_linspace(ctx, 3, 9, 1, true, TK_FLOAT32), TK_FLOAT32, TK_SHAPE(1), 3);
    CHECK_EMPTY(tk_linspace(ctx, 3, 9, 0, true, TK_FLOAT32), TK_FLOAT32, TK_SHAPE(0));
    CHECK(tk_linspace(ctx, 0, 10, 4, true, TK_INT32), TK_INT32, TK_SHAPE(4), 0, 3, 6, 10);
    CHECK_ERROR(tk_linspace(ctx, 0, 1, -1, true, TK_FLOAT32), TK_INVALID_ARGUMENT,
                "linspace: num is -1");
    for (int64_t num = 2; num < 250; num++) {
        double ends[] = {0.1, 0.7}, values[250];
        assert_ok(tk_copy_out(tk_linspace(ctx, ends[0], ends[1], num, true, TK_FLOAT64), values,
                              (size_t)num * 8));
        assert_true(values[0] == ends[0] && values[num - 1] == ends[1]);
    }
    tk_scope_close(scope);
}

static void constants(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    const tk_dtype own = TK_DTYPE_COUNT;
    CHECK(tk_full(tk_scalar(ctx, 2.7), TK_SHAPE(2), TK_INT16), TK_INT16, TK_SHAPE(2), 2, 2);
    CHECK(tk_full(tk_scalar_int(ctx, 3), TK_SHAPE(2), own), TK_INT32, TK_SHAPE(2), 3, 3);
    CHECK(tk_full(ramp(ctx, TK_INT8, TK_SHAPE(2)), TK_SHAPE(2, 2), own), TK_INT8, TK_SHAPE(2, 2), 0,
          1, 0, 1);
    CHECK_SAME(tk_zeros_like(ramp(ctx, TK_INT8, TK_SHAPE(2))), tk_zeros(ctx, TK_SHAPE(2), TK_INT8));
    CHECK_SAME(tk_ones_like(ramp(ctx, TK_FLOAT64, TK_SHAPE(2))),
               tk_ones(ctx, TK_SHAPE(2), TK_FLOAT64));
    CHECK_ERROR(tk_full(ramp(ctx, TK_INT8, TK_SHAPE(3)), TK_SHAPE(2), own), TK_SHAPE_ERROR,
                "broadcast");
    CHECK_ERROR(tk_ones(ctx, TK_SHAPE(2), own), TK_DTYPE_ERROR,
                "ones: argument `dtype` is 14, which is no dtype");
    tk_scope_close(scope);
}

static void triangles(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_eye(ctx, 2, 3, 1, TK_INT8), TK_INT8, TK_SHAPE(2, 3), 0, 1, 0, 0, 0, 1);
    CHECK(tk_eye(ctx, 2, -1, 0, TK_FLOAT32), TK_FLOAT32, TK_SHAPE(2, 2), 1, 0, 0, 1);
    CHECK(tk_eye(ctx, 2, 2, INT64_MAX, TK_BOOL), TK_BOOL, TK_SHAPE(2, 2), 0, 0, 0, 0);
    CHECK(tk_tri(ctx, 3, 2, -1, TK_FLOAT16), TK_FLOAT16, TK_SHAPE(3, 2), 0, 0, 1, 0, 1, 1);
    CHECK(tk_tri(ctx, 2, 2, INT64_MIN, TK_FLOAT16), TK_FLOAT16, TK_SHAPE(2, 2), 0, 0, 0, 0);
    CHECK(tk_tril(ramp(ctx, TK_FLOAT32, TK_SHAPE(2, 2, 3)), 1), TK_FLOAT32, TK_SHAPE(2, 2, 3), 0, 1,
          0, 3, 4, 5, 6, 7, 0, 9, 10, 11);
    CHECK(tk_triu(ramp(ctx, TK_INT32, TK_SHAPE(2, 2, 3)), 1), TK_INT32, TK_SHAPE(2, 2, 3), 0, 1, 2,
          0, 0, 5, 0, 7, 8, 0, 0, 11);
    CHECK_ERROR(tk_tril(ramp(ctx, TK_INT32, TK_SHAPE(2)), 0), TK_SHAPE_ERROR,
                "tril: operand is i32(2,)");
    CHECK_ERROR(tk_eye(ctx, -1, 2, 0, TK_BOOL), TK_INVALID_ARGUMENT, "eye: -1 rows");
    tk_scope_close(scope);
}

static void rounding(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    const double whole[] = {15, 25, -15, -25, 54, 56, 127}, parts[] = {0.125, 2.5, -1.675, 1234.5};
    CHECK(tk_round(list(ctx, 7, whole, TK_INT32), -1), TK_INT32, TK_SHAPE(7), 20, 20, -20, -20, 50,
          60, 130);
    CHECK(tk_round(list(ctx, 7, whole, TK_INT8), -2), TK_INT8, TK_SHAPE(7), 0, 0, 0, 0, 100, 100,
          100);
    CHECK(tk_round(list(ctx, 7, whole, TK_INT8), -3), TK_INT8, TK_SHAPE(7), 0, 0, 0, 0, 0, 0, 0);
    CHECK(tk_round(list(ctx, 2, whole, TK_UINT8), -1), TK_UINT8, TK_SHAPE(2), 20, 20);
    CHECK(tk_round(list(ctx, 7, whole, TK_INT64), 2), TK_INT64, TK_SHAPE(7), 15, 25, -15, -25, 54,
          56, 127);
    CHECK(tk_round(list(ctx, 4, parts, TK_FLOAT64), 0), TK_FLOAT64, TK_SHAPE(4), 0, 2, -2, 1234);
    CHECK(tk_round(list(ctx, 4, parts, TK_FLOAT64), 2), TK_FLOAT64, TK_SHAPE(4), 0.12, 2.5,
          -1.6799999999999999, 1234.5);
    CHECK(tk_round(list(ctx, 4, parts, TK_FLOAT64), -2), TK_FLOAT64, TK_SHAPE(4), 0, 0, 0, 1200);
    CHECK(tk_clip(list(ctx, 7, whole, TK_INT8), tk_scalar_int(ctx, 0), tk_scalar_int(ctx, 50)),
          TK_INT8, TK_SHAPE(7), 15, 25, 0, 0, 50, 50, 50);
    CHECK(tk_clip(list(ctx, 2, whole, TK_FLOAT32), tk_scalar(ctx, 30), tk_scalar(ctx, 20)),
          TK_FLOAT32, TK_SHAPE(2), 20, 20);
    CHECK_SAME(tk_clip(tk_ones(ctx, TK_SHAPE(2), TK_INT8), TK_NO_ARRAY, TK_NO_ARRAY),
               tk_ones(ctx, TK_SHAPE(2), TK_INT8));
    tk_scope_close(scope);
}

static void not_finite(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    const double values[] = {1, NAN, INFINITY, -INFINITY};
    tk_array x = list(ctx, 4, values, TK_FLOAT16), whole = ramp(ctx, TK_INT8, TK_SHAPE(2));
    CHECK(tk_isnan(x), TK_BOOL, TK_SHAPE(4), 0, 1, 0, 0);
    CHECK(tk_isinf(x), TK_BOOL, TK_SHAPE(4), 0, 0, 1, 1);
    CHECK(tk_isfinite(x), TK_BOOL, TK_SHAPE(4), 1, 0, 0, 0);
    CHECK(tk_isposinf(x), TK_BOOL, TK_SHAPE(4), 0, 0, 1, 0);
    CHECK(tk_isneginf(x), TK_BOOL, TK_SHAPE(4), 0, 0, 0, 1);
    CHECK(tk_isnan(whole), TK_BOOL, TK_SHAPE(2), 0, 0);
    CHECK(tk_isfinite(whole), TK_BOOL, TK_SHAPE(2), 1, 1);
    CHECK(tk_isinf(tk_multiply(x, tk_scalar_complex(ctx, 1, 0))), TK_BOOL, TK_SHAPE(4), 0, 0, 1, 1);
    CHECK(tk_nan_to_num(x, 0, NAN, NAN), TK_FLOAT16, TK_SHAPE(4), 1, 0, 65504, -65504);
    CHECK(tk_nan_to_num(list(ctx, 4, values, TK_BFLOAT16), 5, 6, 7), TK_BFLOAT16, TK_SHAPE(4), 1, 5,
          6, 7);
    CHECK_SAME(tk_nan_to_num(whole, 5, 6, 7), whole);
    const double parts[] = {NAN, 2, 3, INFINITY};
    tk_array pairs = tk_view(list(ctx, 4, parts, TK_FLOAT32), TK_COMPLEX64);
    CHECK(tk_view(tk_nan_to_num(pairs, 1, 6, 7), TK_FLOAT32), TK_FLOAT32, TK_SHAPE(4), 1, 2, 3, 6);
    tk_scope_close(scope);
}

static void tolerance(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    const double left[] = {1, NAN, INFINITY, INFINITY, 1, 3},
                 right[] = {1.000001, NAN, INFINITY, -INFINITY, INFINITY, 5};
    tk_array a = list(ctx, 6, left, TK_FLOAT32), b = list(ctx, 6, right, TK_FLOAT32);
    CHECK(tk_isclose(a, b, 1e-5, 1e-8, false), TK_BOOL, TK_SHAPE(6), 1, 0, 1, 0, 0, 0);
    CHECK(tk_isclose(a, b, 1e-5, 1e-8, true), TK_BOOL, TK_SHAPE(6), 1, 1, 1, 0, 0, 0);
    CHECK(tk_isclose(a, b, 0, 0, false), TK_BOOL, TK_SHAPE(6), 0, 0, 1, 0, 0, 0);
    tk_array three = tk_full(tk_scalar_int(ctx, 3), TK_SCALAR, TK_UINT8),
             five = tk_full(tk_scalar_int(ctx, 5), TK_SCALAR, TK_UINT8);
    CHECK(tk_isclose(three, five, 0, 1, false), TK_BOOL, TK_SCALAR, 0);
    CHECK(tk_isclose(three, five, 0, 2, false), TK_BOOL, TK_SCALAR, 1);
    const int64_t big[] = {INT64_MIN, INT64_MAX}, near[] = {INT64_MIN + 1, INT64_MIN};
    tk_array x = tk_from_data(ctx, big, TK_SHAPE(2), TK_INT64),
             y = tk_from_data(ctx, near, TK_SHAPE(2), TK_INT64);
    CHECK(tk_isclose(x, y, 0, 0.5, false), TK_BOOL, TK_SHAPE(2), 0, 0);
    CHECK(tk_isclose(x, y, 0, 1, false), TK_BOOL, TK_SHAPE(2), 1, 0);
    CHECK(tk_allclose(a, a, 0, 0, true), TK_BOOL, TK_SCALAR, 1);
    CHECK(tk_array_equal(a, a, false), TK_BOOL, TK_SCALAR, 0);
    CHECK(tk_array_equal(a, a, true), TK_BOOL, TK_SCALAR, 1);
    CHECK(tk_array_equal(a, x, true), TK_BOOL, TK_SCALAR, 0);
    CHECK_ERROR(tk_isclose(a, x, 0, 0, false), TK_SHAPE_ERROR, "isclose: operand 1");
    tk_scope_close(scope);
}

static void activations(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = mixed(ctx, TK_FLOAT32, TK_SHAPE(4));
    CHECK(tk_square(mixed(ctx, TK_INT8, TK_SHAPE(4))), TK_INT8, TK_SHAPE(4), 25, 4, 4, 25);
    CHECK_NEAR(tk_reciprocal(mixed(ctx, TK_INT8, TK_SHAPE(4))), TK_FLOAT32, TK_SHAPE(4), 1e-7, -0.2,
               0.5, -0.5, 0.2);
    CHECK(tk_relu(mixed(ctx, TK_INT8, TK_SHAPE(4))), TK_INT8, TK_SHAPE(4), 0, 2, 0, 5);
    CHECK_NEAR(tk_silu(x), TK_FLOAT32, TK_SHAPE(4), 1e-6, -0.0334642546, 1.76159416, -0.238405844,
               4.96653575);
    CHECK_NEAR(tk_gelu(x), TK_FLOAT32, TK_SHAPE(4), 1e-6, -1.43325786e-06, 1.95449974,
               -0.0455002639, 4.99999857);
    CHECK_NEAR(tk_gelu_approx(x), TK_FLOAT32, TK_SHAPE(4), 1e-6, -2.2917962e-07, 1.95459769,
               -0.0454023059, 4.99999977);
    CHECK_NEAR(tk_softplus(x), TK_FLOAT32, TK_SHAPE(4), 1e-6, 0.00671534849, 2.12692801,
               0.126928011, 5.00671535);
    CHECK_NEAR(tk_degrees(x), TK_FLOAT32, TK_SHAPE(4), 1e-6, -286.478898, 114.591559, -114.591559,
               286.478898);
    CHECK_NEAR(tk_radians(tk_astype(x, TK_FLOAT64)), TK_FLOAT64, TK_SHAPE(4), 1e-15,
               -0.087266462599716474, 0.034906585039886591, -0.034906585039886591,
               0.087266462599716474);
    CHECK(tk_logical_xor(x, tk_greater(x, tk_scalar(ctx, 0))), TK_BOOL, TK_SHAPE(4), 1, 0, 1, 0);
    tk_scope_close(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),    cmocka_unit_test(spaces),      cmocka_unit_test(constants),
        cmocka_unit_test(triangles), cmocka_unit_test(rounding),    cmocka_unit_test(not_finite),
        cmocka_unit_test(tolerance), cmocka_unit_test(activations),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
