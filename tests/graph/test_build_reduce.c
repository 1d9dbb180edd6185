/* Reductions, moments and scans: values and dtypes as NumPy and MLX give them, empty axes, and the
 * cases where a dtype must not depend on how many axes are reduced. */
#include "support/build_check.h"

#define MIXED(dtype) mixed(ctx, dtype, TK_SHAPE(2, 3))
#define ALL TK_ALL_AXES

static void sums_widen_narrow_integers(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array bytes = tk_full(tk_scalar_int(ctx, 100), TK_SHAPE(200), TK_UINT8);
    CHECK(tk_sum(bytes, ALL, false), TK_UINT32, TK_SCALAR, 20000);
    CHECK(tk_sum(tk_astype(bytes, TK_INT8), ALL, false), TK_INT32, TK_SCALAR, 20000);
    CHECK(tk_sum(tk_full(tk_scalar_int(ctx, 65535), TK_SHAPE(4), TK_UINT16), ALL, false), TK_UINT32,
          TK_SCALAR, 262140);
    CHECK(tk_prod(tk_full(tk_scalar_int(ctx, 100), TK_SHAPE(3), TK_INT8), ALL, false), TK_INT32,
          TK_SCALAR, 1000000);
    CHECK(tk_prod(tk_full(tk_scalar_int(ctx, 100), TK_SHAPE(1), TK_INT8), ALL, false), TK_INT32,
          TK_SCALAR, 100);
    CHECK(tk_sum(tk_full(tk_scalar_int(ctx, 100), TK_SCALAR, TK_INT8), ALL, false), TK_INT32,
          TK_SCALAR, 100);
    CHECK(tk_sum(tk_astype(MIXED(TK_INT32), TK_BOOL), ALL, false), TK_INT32, TK_SCALAR, 6);
    CHECK(tk_sum(MIXED(TK_INT64), TK_AXES(0), false), TK_INT64, TK_SHAPE(3), 0, 3, -5);
    tk_scope_close(scope);
}

static void axes_and_kept_dimensions(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = mixed(ctx, TK_FLOAT32, TK_SHAPE(2, 3, 2));
    CHECK(tk_sum(x, TK_AXES(-1), true), TK_FLOAT32, TK_SHAPE(2, 3, 1), -3, 3, -2, 4, -1, -6);
    CHECK(tk_sum(x, TK_AXES(2, 0), false), TK_FLOAT32, TK_SHAPE(3), 1, 2, -8);
    CHECK(tk_max(x, TK_AXES(1), false), TK_FLOAT32, TK_SHAPE(2, 2), 1, 5, 4, 3);
    CHECK(tk_min(x, ALL, true), TK_FLOAT32, TK_SHAPE(1, 1, 1), -5);
    CHECK(tk_any(x, TK_AXES(1), false), TK_BOOL, TK_SHAPE(2, 2), 1, 1, 1, 1);
    CHECK(tk_all(x, TK_AXES(1), false), TK_BOOL, TK_SHAPE(2, 2), 1, 1, 1, 0);
    tk_axes none = {.count = 0};
    CHECK_SAME(tk_sum(x, none, false), x);
    CHECK_ERROR(tk_sum(x, TK_AXES(3), false), TK_AXIS_ERROR, "sum: axis 3");
    CHECK_ERROR(tk_max(x, TK_AXES(-4), false), TK_AXIS_ERROR, "max: axis -4");
    CHECK_ERROR(tk_mean(x, TK_AXES(0, -3), false), TK_AXIS_ERROR, "mean: axis 0 is given twice");
    tk_scope_close(scope);
}

static void empty_axes(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = tk_zeros(ctx, TK_SHAPE(0, 2), TK_FLOAT32);
    CHECK(tk_sum(x, TK_AXES(0), false), TK_FLOAT32, TK_SHAPE(2), 0, 0);
    CHECK(tk_prod(x, TK_AXES(0), false), TK_FLOAT32, TK_SHAPE(2), 1, 1);
    CHECK(tk_mean(x, TK_AXES(0), false), TK_FLOAT32, TK_SHAPE(2), NAN, NAN);
    CHECK(tk_var(x, TK_AXES(0), false, 0), TK_FLOAT32, TK_SHAPE(2), NAN, NAN);
    CHECK(tk_logsumexp(x, TK_AXES(0), false), TK_FLOAT32, TK_SHAPE(2), -INFINITY, -INFINITY);
    CHECK(tk_any(x, ALL, false), TK_BOOL, TK_SCALAR, 0);
    CHECK(tk_all(x, ALL, false), TK_BOOL, TK_SCALAR, 1);
    CHECK_EMPTY(tk_max(x, TK_AXES(1), false), TK_FLOAT32, TK_SHAPE(0));
    CHECK_ERROR(tk_max(x, TK_AXES(0), false), TK_SHAPE_ERROR, "max: axis 0 of f32(0, 2) is empty");
    CHECK_ERROR(tk_min(x, ALL, false), TK_SHAPE_ERROR, "min: axis 0");
    CHECK_ERROR(tk_argmax(x, ALL, false), TK_SHAPE_ERROR, "argmax");
    CHECK_ERROR(tk_argmin(x, TK_AXES(0), false), TK_SHAPE_ERROR, "argmin: axis 0");
    tk_scope_close(scope);
}

static void means_and_variances(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK(tk_mean(MIXED(TK_INT16), TK_AXES(0), false), TK_FLOAT32, TK_SHAPE(3), 0, 1.5, -2.5);
    CHECK_NEAR(tk_var(MIXED(TK_FLOAT32), TK_AXES(1), false, 1), TK_FLOAT32, TK_SHAPE(2), 1e-6,
               12.3333333, 16);
    CHECK_NEAR(tk_std(MIXED(TK_UINT8), TK_AXES(1), false, 0), TK_FLOAT32, TK_SHAPE(2), 1e-6,
               0.942809042, 2.1602469);
    CHECK_NEAR(tk_var(MIXED(TK_FLOAT64), ALL, true, 0), TK_FLOAT64, TK_SHAPE(1, 1), 1e-15,
               11.222222222222223);
    CHECK_NEAR(tk_var(tk_add(tk_multiply(MIXED(TK_FLOAT32), tk_scalar_complex(ctx, 0, 1)),
                             tk_scalar(ctx, 2)),
                      ALL, false, 0),
               TK_FLOAT32, TK_SCALAR, 1e-6, 11.2222222);
    CHECK(tk_var(MIXED(TK_FLOAT32), TK_AXES(0), false, 5), TK_FLOAT32, TK_SHAPE(3), INFINITY,
          INFINITY, INFINITY);
    tk_array halves = tk_full(tk_scalar(ctx, 60000), TK_SHAPE(8), TK_FLOAT16);
    CHECK(tk_mean(halves, ALL, false), TK_FLOAT16, TK_SCALAR, 60000);
    CHECK(tk_var(halves, ALL, false, 0), TK_FLOAT16, TK_SCALAR, 0);
    tk_array far =
        tk_add(tk_multiply(ramp(ctx, TK_FLOAT32, TK_SHAPE(5)), tk_scalar(ctx, 0.0078125)),
               tk_scalar(ctx, 10000));
    CHECK_NEAR(tk_var(far, ALL, false, 0), TK_FLOAT32, TK_SCALAR, 1e-9, 0.000122070312);
    tk_scope_close(scope);
}

static void positions(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = MIXED(TK_FLOAT32);
    CHECK(tk_argmax(x, ALL, false), TK_UINT32, TK_SCALAR, 3);
    CHECK(tk_argmax(x, ALL, true), TK_UINT32, TK_SHAPE(1, 1), 3);
    CHECK(tk_argmin(x, TK_AXES(-1), true), TK_UINT32, TK_SHAPE(2, 1), 0, 2);
    CHECK(tk_argmax(tk_scalar(ctx, 3), ALL, false), TK_UINT32, TK_SCALAR, 0);
    CHECK_EMPTY(tk_argmin(tk_zeros(ctx, TK_SHAPE(0, 2), TK_INT8), TK_AXES(1), false), TK_UINT32,
                TK_SHAPE(0));
    CHECK_ERROR(tk_argmax(x, TK_AXES(0, 1), false), TK_AXIS_ERROR, "argmax: 2 axes given");
    tk_scope_close(scope);
}

static void exponentials(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK_NEAR(tk_logsumexp(tk_zeros(ctx, TK_SHAPE(1, 1, 8), TK_FLOAT32), ALL, false), TK_FLOAT32,
               TK_SCALAR, 1e-6, 2.07944154);
    CHECK_NEAR(tk_logsumexp(MIXED(TK_INT32), TK_AXES(0), false), TK_FLOAT32, TK_SHAPE(3), 1e-6,
               5.0000454, 2.31326169, -1.68673831);
    CHECK_NEAR(tk_softmax(MIXED(TK_FLOAT32), TK_AXES(1)), TK_FLOAT32, TK_SHAPE(2, 3), 1e-6,
               0.000894679497, 0.981135202, 0.0179701181, 0.981690393, 0.0179802867,
               0.000329320439);
    CHECK_NEAR(tk_softmax(MIXED(TK_INT8), ALL), TK_FLOAT32, TK_SHAPE(2, 3), 1e-6, 4.24538272e-05,
               0.0465562747, 0.000852707915, 0.935107774, 0.0171270963, 0.000313693711);
    CHECK(tk_softmax(tk_scalar(ctx, 5), ALL), TK_FLOAT32, TK_SCALAR, 1);
    CHECK_NEAR(tk_log_softmax(MIXED(TK_FLOAT32), TK_AXES(1)), TK_FLOAT32, TK_SHAPE(2, 3), 1e-6,
               -7.01904501, -0.0190450079, -4.01904501, -0.0184793026, -4.0184793, -8.0184793);
    tk_scope_close(scope);
}

static void scans(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = MIXED(TK_INT16);
    CHECK(tk_cumsum(x, -1, false, true), TK_INT16, TK_SHAPE(2, 3), -5, -3, -5, 5, 6, 3);
    CHECK(tk_cumsum(x, 1, true, true), TK_INT16, TK_SHAPE(2, 3), -5, 0, -2, 3, -2, -3);
    CHECK(tk_cumsum(x, 1, false, false), TK_INT16, TK_SHAPE(2, 3), 0, -5, -3, 0, 5, 6);
    CHECK(tk_cumsum(tk_astype(x, TK_BOOL), 0, false, true), TK_INT32, TK_SHAPE(2, 3), 1, 1, 1, 2, 2,
          2);
    CHECK(tk_cumprod(MIXED(TK_FLOAT32), 1, false, true), TK_FLOAT32, TK_SHAPE(2, 3), -5, -10, 20, 5,
          5, -15);
    CHECK(tk_cummax(x, 1, false, true), TK_INT16, TK_SHAPE(2, 3), -5, 2, 2, 5, 5, 5);
    CHECK(tk_cummin(x, 1, true, true), TK_INT16, TK_SHAPE(2, 3), -5, -2, -2, -3, -3, -3);
    CHECK_NEAR(tk_logcumsumexp(x, 1, false, true), TK_FLOAT32, TK_SHAPE(2, 3), 1e-6, -5, 2.00091147,
               2.01904501, 5, 5.01814993, 5.0184793);
    CHECK_ERROR(tk_cumsum(x, 2, false, true), TK_AXIS_ERROR, "cumsum: axis 2");
    tk_scope_close(scope);
}

/* A length-1 reduction of an operand that is not dense must still read it by its strides. */
static void reductions_of_views(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array view =
        tk_slice(tk_transpose(ramp(ctx, TK_FLOAT32, TK_SHAPE(1, 6, 2)), TK_AXES(0, 2, 1)), ALL, ALL,
                 TK_AXES(1, 1, 3));
    CHECK(tk_sum(view, TK_AXES(0), false), TK_FLOAT32, TK_SHAPE(2, 2), 0, 6, 1, 7);
    CHECK(tk_sum(tk_flip(view, TK_AXES(1)), TK_AXES(2), false), TK_FLOAT32, TK_SHAPE(1, 2), 8, 6);
    CHECK(tk_max(tk_flip(view, ALL), TK_AXES(1), false), TK_FLOAT32, TK_SHAPE(1, 2), 7, 1);
    tk_scope_close(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_widen_narrow_integers),
        cmocka_unit_test(axes_and_kept_dimensions),
        cmocka_unit_test(empty_axes),
        cmocka_unit_test(means_and_variances),
        cmocka_unit_test(positions),
        cmocka_unit_test(exponentials),
        cmocka_unit_test(scans),
        cmocka_unit_test(reductions_of_views),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
