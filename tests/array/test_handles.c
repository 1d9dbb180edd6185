/* Handles, scopes, errors that stick, interning, contexts. */
#include <math.h>
#include <string.h>

#include "support/arrays.h"

static tk_array floats(tk_context *ctx, int64_t count, const float *values) {
    return tk_from_data(ctx, values, TK_SHAPE(count), TK_FLOAT32);
}

static void the_header_example(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    float values[] = {3, 4};
    tk_array x = floats(ctx, 2, values);
    tk_array ms = tk_mean(tk_square(x), TK_AXES(-1), TK_KEEPDIMS);
    tk_array y = tk_multiply(x, tk_rsqrt(tk_add(ms, tk_scalar(ctx, 1e-6))));
    float out[2];
    assert_ok(tk_copy_out(y, out, sizeof out));
    assert_true(fabsf(out[0] - 3 / sqrtf(12.5f)) < 1e-6f);
    assert_true(fabsf(out[1] - 4 / sqrtf(12.5f)) < 1e-6f);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void without_a_scope_the_caller_owns(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    float values[] = {1, 2};
    tk_array x = floats(ctx, 2, values), y = tk_add(x, x);
    tk_release(x);
    float out[2];
    assert_ok(tk_copy_out(y, out, sizeof out));
    assert_true(out[0] == 2 && out[1] == 4);
    tk_release(y);
    tk_context_release(ctx);
}

static void kept_handles_outlive_scopes(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope outer = tk_scope_open(ctx), inner = tk_scope_open(ctx);
    tk_array y = tk_keep(tk_add(tk_scalar(ctx, 1), tk_scalar(ctx, 2)));
    tk_scope_close(inner);
    tk_scope_close(outer);
    assert_true(first_f32(y) == 3);
    tk_release(y);
    tk_context_release(ctx);
}

static void closing_an_outer_scope_closes_inner_ones(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope outer = tk_scope_open(ctx);
    (void)tk_scope_open(ctx);
    (void)tk_zeros(ctx, TK_SHAPE(4), TK_FLOAT32);
    tk_scope_close(outer);
    tk_array owned = tk_zeros(ctx, TK_SHAPE(4), TK_FLOAT32);
    tk_release(owned);
    tk_context_release(ctx);
}

static void equal_expressions_are_one_node(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    float values[] = {1, 2};
    tk_array x = floats(ctx, 2, values), other = floats(ctx, 2, values);
    assert_true(tk_array_same(tk_exp(tk_add(x, x)), tk_exp(tk_add(x, x))));
    assert_false(tk_array_same(tk_exp(x), tk_exp(other)));
    tk_array minus = tk_multiply(x, tk_scalar(ctx, -0.0)),
             plus = tk_multiply(x, tk_scalar(ctx, 0.0));
    assert_false(tk_array_same(minus, plus));
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void errors_stick(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_array a = tk_zeros(ctx, TK_SHAPE(2, 3), TK_FLOAT32),
             b = tk_zeros(ctx, TK_SHAPE(4, 5), TK_FLOAT32);
    tk_array wrong = tk_add(a, b);
    assert_int_equal(tk_array_status(wrong), TK_SHAPE_ERROR);
    tk_array later = tk_sum(tk_exp(wrong), TK_ALL_AXES, TK_DROPDIMS);
    (void)tk_sum(a, TK_AXES(7), TK_DROPDIMS);
    assert_int_equal(tk_eval(later), TK_SHAPE_ERROR);
    assert_non_null(strstr(tk_error_message(), "(2, 3)"));
    assert_non_null(strstr(tk_error_message(), "(4, 5)"));
    double value;
    assert_int_equal(tk_item(later, &value), TK_SHAPE_ERROR);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void two_contexts_do_not_mix(void **state) {
    (void)state;
    tk_context *one = make_context(), *two = make_context();
    tk_array a = tk_zeros(one, TK_SHAPE(2), TK_FLOAT32), b = tk_zeros(two, TK_SHAPE(2), TK_FLOAT32);
    tk_array wrong = tk_add(a, b);
    assert_int_equal(tk_eval(wrong), TK_CONTEXT_ERROR);
    tk_array both[] = {a, b};
    assert_int_equal(tk_eval_all(both, 2), TK_CONTEXT_ERROR);
    tk_release(wrong);
    tk_release(a);
    tk_release(b);
    tk_context_release(one);
    tk_context_release(two);
}

static void no_array_is_an_error_not_a_crash(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    assert_int_equal(tk_eval(TK_NO_ARRAY), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_eval(tk_exp(TK_NO_ARRAY)), TK_INVALID_ARGUMENT);
    tk_array a = tk_zeros(ctx, TK_SHAPE(2), TK_FLOAT32), wrong = tk_add(a, TK_NO_ARRAY);
    assert_int_equal(tk_eval(wrong), TK_INVALID_ARGUMENT);
    tk_release(TK_NO_ARRAY);
    tk_release(wrong);
    tk_release(a);
    tk_context_release(ctx);
    tk_context_release(NULL);
}

static void weak_scalars_follow_arrays(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_array half = tk_zeros(ctx, TK_SHAPE(2), TK_FLOAT16),
             whole = tk_zeros(ctx, TK_SHAPE(2), TK_INT8);
    assert_int_equal(tk_array_dtype(tk_add(half, tk_scalar(ctx, 1.5))), TK_FLOAT16);
    assert_int_equal(tk_array_dtype(tk_add(whole, tk_scalar(ctx, 1.5))), TK_FLOAT32);
    assert_int_equal(tk_array_dtype(tk_add(whole, tk_scalar_int(ctx, 100))), TK_INT8);
    assert_int_equal(tk_array_dtype(tk_scalar(ctx, 1.5)), TK_FLOAT32);
    assert_int_equal(tk_array_dtype(tk_scalar_int(ctx, (int64_t)1 << 40)), TK_INT64);
    tk_array f64 = tk_add(tk_zeros(ctx, TK_SCALAR, TK_FLOAT64), tk_scalar(ctx, 0.1));
    double value;
    assert_ok(tk_item(f64, &value));
    assert_true(value == 0.1);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void shapes_beyond_63_bits_are_refused(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    int64_t big = (int64_t)1 << 40;
    assert_int_equal(tk_eval(tk_zeros(ctx, TK_SHAPE(big, big), TK_FLOAT32)), TK_OVERFLOW);
    assert_int_equal(tk_eval(tk_zeros(ctx, TK_SHAPE((int64_t)1 << 61), TK_FLOAT64)), TK_OVERFLOW);
    assert_int_equal(tk_eval(tk_zeros(ctx, TK_SHAPE(-1), TK_FLOAT32)), TK_SHAPE_ERROR);
    tk_array lazy = tk_zeros(ctx, TK_SHAPE(big), TK_INT8);
    assert_int_equal(tk_array_size(lazy), big);
    tk_array parts[] = {lazy, lazy};
    assert_int_equal(tk_array_size(tk_concatenate(parts, 2, 0)), 2 * big);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void *wrapped_owner;
static void note_release(void *owner) { wrapped_owner = owner; }

static void wrapped_memory_goes_back(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    static float memory[6] = {0, 1, 2, 3, 4, 5};
    int64_t strides[] = {1, 2};
    wrapped_owner = NULL;
    tk_array a = tk_from_memory(ctx, memory, sizeof memory, TK_SHAPE(2, 3), strides, TK_FLOAT32,
                                note_release, memory);
    float out[6];
    assert_ok(tk_copy_out(a, out, sizeof out));
    assert_true(out[0] == 0 && out[1] == 2 && out[2] == 4 && out[3] == 1);
    assert_null(wrapped_owner);
    tk_release(a);
    assert_ptr_equal(wrapped_owner, memory);
    wrapped_owner = NULL;
    tk_array wrong =
        tk_from_memory(ctx, memory, 8, TK_SHAPE(2, 3), NULL, TK_FLOAT32, note_release, memory);
    assert_int_equal(tk_array_status(wrong), TK_INVALID_ARGUMENT);
    assert_ptr_equal(wrapped_owner, memory);
    tk_release(wrong);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_example),
        cmocka_unit_test(without_a_scope_the_caller_owns),
        cmocka_unit_test(kept_handles_outlive_scopes),
        cmocka_unit_test(closing_an_outer_scope_closes_inner_ones),
        cmocka_unit_test(equal_expressions_are_one_node),
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(two_contexts_do_not_mix),
        cmocka_unit_test(no_array_is_an_error_not_a_crash),
        cmocka_unit_test(weak_scalars_follow_arrays),
        cmocka_unit_test(shapes_beyond_63_bits_are_refused),
        cmocka_unit_test(wrapped_memory_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
