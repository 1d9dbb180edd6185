/* Linear algebra: values that are known, matrices without a result, empty stacks, refusals of
 * derivatives and dtypes, and derivatives of symmetric matrices. Values of random matrices are in
 * tests/python/test_op_calls.py, gradients of the rows in test_grad.c. */
#include "support/build_check.h"

#include "tiki/transforms.h"

#define NAN_ ((double)NAN)

static tk_array rows(tk_context *ctx, tk_dtype dtype, int64_t m, int64_t n, const double *values) {
    return tk_astype(tk_from_data(ctx, values, TK_SHAPE(m, n), TK_FLOAT64), dtype);
}

#define R(dtype, m, n, ...) rows(ctx, (dtype), (m), (n), (const double[]){__VA_ARGS__})

static void check_status(tk_array a, tk_status code, const char *part) {
    assert_ok(tk_array_status(a));
    assert_int_equal(tk_eval(a), code);
    assert_non_null(strstr(tk_error_message(), part));
}

static void known_values(void **state) {
    tk_context *ctx = *state;
    for (int d = TK_FLOAT32; d <= TK_FLOAT64; d++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_dtype t = (tk_dtype)d;
        tk_array a = R(t, 2, 2, 4, 2, 2, 5), b = R(t, 2, 1, 8, 12);
        CHECK_NEAR(tk_inv(a), t, TK_SHAPE(2, 2), 1e-6, .3125, -.125, -.125, .25);
        CHECK_NEAR(tk_solve(a, b), t, TK_SHAPE(2, 1), 1e-6, 1, 2);
        CHECK_NEAR(tk_solve(a, tk_reshape(b, TK_SHAPE(2))), t, TK_SHAPE(2), 1e-6, 1, 2);
        CHECK_NEAR(tk_solve_triangular(a, b, false), t, TK_SHAPE(2, 1), 1e-6, 2, 1.6);
        CHECK_NEAR(tk_solve_triangular(a, b, true), t, TK_SHAPE(2, 1), 1e-6, .8, 2.4);
        CHECK_NEAR(tk_cholesky(a, false), t, TK_SHAPE(2, 2), 1e-6, 2, 0, 1, 2);
        CHECK_NEAR(tk_cholesky(a, true), t, TK_SHAPE(2, 2), 1e-6, 2, 1, 0, 2);
        CHECK_NEAR(tk_cholesky_inv(tk_cholesky(a, false), false), t, TK_SHAPE(2, 2), 1e-6, .3125,
                   -.125, -.125, .25);
        CHECK_NEAR(tk_cholesky_inv(tk_cholesky(a, true), true), t, TK_SHAPE(2, 2), 1e-6, .3125,
                   -.125, -.125, .25);
        CHECK_NEAR(tk_tri_inv(a, true), t, TK_SHAPE(2, 2), 1e-6, .25, -.1, 0, .2);
        CHECK_NEAR(tk_det(a), t, TK_SCALAR, 1e-6, 16);
        CHECK_NEAR(tk_eigvalsh(R(t, 2, 2, 2, 9, 1, 2), false), t, TK_SHAPE(2), 1e-6, 1, 3);
        CHECK_NEAR(tk_eigvalsh(R(t, 2, 2, 2, 9, 1, 2), true), t, TK_SHAPE(2), 1e-6, -7, 11);
        CHECK_NEAR(tk_pinv(R(t, 2, 1, 3, 4)), t, TK_SHAPE(1, 2), 1e-6, .12, .16);
        CHECK(tk_pinv(tk_zeros(ctx, TK_SHAPE(2, 1), t)), t, TK_SHAPE(1, 2), 0, 0);
        CHECK_NEAR(tk_norm(R(t, 2, 2, 3, 0, 0, 4), 2, TK_ALL_AXES, false), t, TK_SCALAR, 1e-6, 4);
        CHECK_NEAR(tk_norm_nuclear(R(t, 2, 2, 3, 0, 0, 4), TK_ALL_AXES, true), t, TK_SHAPE(1, 1),
                   1e-6, 7);
        tk_scope_close(scope);
    }
}

static void factors(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_arrays out = {0};
    tk_array a = R(TK_FLOAT32, 3, 2, 1, 2, 4, 4, 2, 8);
    assert_ok(tk_lu(a, &out));
    CHECK(out.items[0], TK_UINT32, TK_SHAPE(3), 2, 0, 1);
    CHECK_NEAR(out.items[1], TK_FLOAT32, TK_SHAPE(3, 2), 1e-6, 1, 0, .5, 1, .25, 1.0 / 6);
    tk_arrays_clear(&out);
    tk_scope_close(scope);
}

static void without_a_result(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array singular = R(TK_FLOAT32, 2, 2, 1, 2, 2, 4),
             one = tk_ones(ctx, TK_SHAPE(2), TK_FLOAT32);
    check_status(tk_inv(singular), TK_INVALID_ARGUMENT, "inv: matrix 0 is singular");
    check_status(tk_solve(singular, one), TK_INVALID_ARGUMENT, "solve: matrix 0 is singular");
    check_status(tk_tri_inv(R(TK_FLOAT32, 2, 2, 1, 0, 2, 0), false), TK_INVALID_ARGUMENT,
                 "is singular");
    tk_array both[] = {R(TK_FLOAT32, 2, 2, 1, 0, 0, 1), R(TK_FLOAT32, 2, 2, 1, 2, 2, 1)};
    check_status(tk_cholesky(tk_stack(both, 2, 0), false), TK_INVALID_ARGUMENT,
                 "cholesky: matrix 1 is not positive definite");
    CHECK(tk_det(singular), TK_FLOAT32, TK_SCALAR, 0);
    tk_arrays out = {0};
    assert_ok(tk_slogdet(singular, &out));
    CHECK(out.items[0], TK_FLOAT32, TK_SCALAR, 0);
    CHECK(out.items[1], TK_FLOAT32, TK_SCALAR, -(double)INFINITY);
    tk_arrays_clear(&out);
    tk_array nan = R(TK_FLOAT32, 2, 2, 1, 0, NAN_, 3);
    CHECK(tk_eigvalsh(nan, false), TK_FLOAT32, TK_SHAPE(2), NAN_, NAN_);
    CHECK(tk_cholesky(nan, false), TK_FLOAT32, TK_SHAPE(2, 2), NAN_, NAN_, NAN_, NAN_);
    CHECK(tk_pinv(nan), TK_FLOAT32, TK_SHAPE(2, 2), NAN_, NAN_, NAN_, NAN_);
    assert_ok(tk_svd(nan, false, &out));
    CHECK(out.items[0], TK_FLOAT32, TK_SHAPE(2), NAN_, NAN_);
    tk_arrays_clear(&out);
    tk_scope_close(scope);
}

static void empty_stacks(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array none = tk_zeros(ctx, TK_SHAPE(0, 0), TK_FLOAT32);
    tk_array few = tk_zeros(ctx, TK_SHAPE(0, 2, 2), TK_FLOAT64);
    CHECK(tk_det(none), TK_FLOAT32, TK_SCALAR, 1);
    CHECK_EMPTY(tk_inv(none), TK_FLOAT32, TK_SHAPE(0, 0));
    CHECK_EMPTY(tk_inv(few), TK_FLOAT64, TK_SHAPE(0, 2, 2));
    CHECK_EMPTY(tk_eigvals(few), TK_COMPLEX64, TK_SHAPE(0, 2));
    CHECK_EMPTY(tk_pinv(tk_zeros(ctx, TK_SHAPE(0, 3), TK_FLOAT32)), TK_FLOAT32, TK_SHAPE(3, 0));
    tk_arrays out = {0};
    assert_ok(tk_svd(tk_zeros(ctx, TK_SHAPE(2, 0), TK_FLOAT32), true, &out));
    CHECK(out.items[0], TK_FLOAT32, TK_SHAPE(2, 2), 1, 0, 0, 1);
    CHECK_EMPTY(out.items[1], TK_FLOAT32, TK_SHAPE(0));
    tk_arrays_clear(&out);
    tk_scope_close(scope);
}

static void refusals(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array vector = tk_ones(ctx, TK_SHAPE(3), TK_FLOAT32);
    tk_array wide = tk_ones(ctx, TK_SHAPE(2, 3), TK_FLOAT32);
    tk_array whole = tk_ones(ctx, TK_SHAPE(2, 2), TK_INT32);
    CHECK_ERROR(tk_inv(vector), TK_SHAPE_ERROR, "inv: operand is f32(3,), expected a matrix");
    CHECK_ERROR(tk_inv(wide), TK_SHAPE_ERROR, "inv: operand is f32(2, 3), expected square");
    CHECK_ERROR(tk_inv(whole), TK_DTYPE_ERROR, "inv: operand is i32(2, 2), expected a float dtype");
    CHECK_ERROR(tk_eigvalsh(whole, false), TK_DTYPE_ERROR, "expected a float or complex dtype");
    CHECK_ERROR(tk_solve(tk_ones(ctx, TK_SHAPE(3, 3), TK_FLOAT32), wide), TK_SHAPE_ERROR,
                "solve: a is f32(3, 3) and b f32(2, 3)");
    CHECK_ERROR(tk_norm(wide, 3, TK_ALL_AXES, false), TK_INVALID_ARGUMENT, "norm: ord is 3");
    CHECK_ERROR(tk_cross(wide, tk_ones(ctx, TK_SHAPE(4), TK_FLOAT32), -1), TK_SHAPE_ERROR,
                "expected 2 or 3 elements");
    CHECK_ERROR(tk_hadamard_transform(vector, 1), TK_SHAPE_ERROR, "m 2^k");
    tk_scope_close(scope);
}

/* ---- derivatives ---- */

static tk_status sum_of_eigvals(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    (void)self;
    (void)n;
    return tk_arrays_push(results, tk_sum(tk_real(tk_eigvals(args[0])), TK_ALL_AXES, false));
}

static tk_status sum_of_lu(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    tk_arrays parts = {0};
    (void)self;
    (void)n;
    tk_status status = tk_lu(args[0], &parts);
    if (status == TK_OK)
        status = tk_arrays_push(results, tk_sum(parts.items[2], TK_ALL_AXES, false));
    tk_arrays_clear(&parts);
    return status;
}

static tk_status largest_eigenvalue(void *self, const tk_array *args, size_t n,
                                    tk_arrays *results) {
    (void)n;
    tk_array values = tk_eigvalsh(args[0], *(bool *)self);
    return tk_arrays_push(results, tk_max(values, TK_ALL_AXES, false));
}

static tk_status log_of_cholesky(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    (void)n;
    tk_array diagonal = tk_diagonal(tk_cholesky(args[0], *(bool *)self), 0, 0, 1);
    return tk_arrays_push(results, tk_sum(tk_log(diagonal), TK_ALL_AXES, false));
}

static void refused_derivatives(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array a = R(TK_FLOAT32, 2, 2, 4, 2, 2, 5);
    tk_arrays grads = {0};
    assert_int_equal(tk_grad(ctx, sum_of_eigvals, NULL, &a, 1, NULL, 0, &grads), TK_UNSUPPORTED);
    assert_int_equal(tk_grad(ctx, sum_of_lu, NULL, &a, 1, NULL, 0, &grads), TK_UNSUPPORTED);
    tk_arrays_clear(&grads);
    tk_scope_close(scope);
}

/* Of a symmetric matrix, whichever triangle was read: the gradient is symmetric. */
static void symmetric_gradients(void **state) {
    tk_context *ctx = *state;
    for (int upper = 0; upper < 2; upper++) {
        tk_scope scope = tk_scope_open(ctx);
        bool self = upper;
        tk_array a = R(TK_FLOAT64, 2, 2, 2, 1, 1, 2);
        tk_arrays grads = {0};
        assert_ok(tk_grad(ctx, largest_eigenvalue, &self, &a, 1, NULL, 0, &grads));
        CHECK_NEAR(grads.items[0], TK_FLOAT64, TK_SHAPE(2, 2), 1e-12, .5, .5, .5, .5);
        tk_arrays_clear(&grads);
        assert_ok(tk_grad(ctx, log_of_cholesky, &self, &a, 1, NULL, 0, &grads)); /* inv(a) / 2 */
        CHECK_NEAR(grads.items[0], TK_FLOAT64, TK_SHAPE(2, 2), 1e-12, 1.0 / 3, -1.0 / 6, -1.0 / 6,
                   1.0 / 3);
        tk_arrays_clear(&grads);
        tk_scope_close(scope);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(factors),
        cmocka_unit_test(without_a_result),
        cmocka_unit_test(empty_stacks),
        cmocka_unit_test(refusals),
        cmocka_unit_test(refused_derivatives),
        cmocka_unit_test(symmetric_gradients),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
