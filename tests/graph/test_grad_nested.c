/* Transforms of transforms: derivatives of derivatives, closures over outer arguments, custom
 * functions, checkpoints, batches of gradients, and evaluation in the middle of a function. */
#include "support/arrays.h"

#include <math.h>

#include "tiki/transforms.h"

static tk_context *context;
static tk_scope scope;

static int set_up(void **state) {
    (void)state;
    context = make_context();
    scope = tk_scope_open(context);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tk_scope_close(scope);
    tk_context_release(context);
    return 0;
}

static tk_array number(double value) {
    return tk_full(tk_scalar(context, value), TK_SCALAR, TK_FLOAT64);
}

static double value_of(tk_array array) {
    double value = NAN;
    assert_ok(tk_item(array, &value));
    return value;
}

static void expect_near(double got, double expected) {
    if (fabs(got - expected) > 1e-12 * (1 + fabs(expected)))
        fail_msg("got %.15g, expected %.15g", got, expected);
}

/* The gradient of a function of one argument, as the innermost scope's. */
static tk_array gradient(tk_function function, void *self, tk_array x) {
    tk_arrays list = {0};
    assert_ok(tk_grad(context, function, self, &x, 1, NULL, 0, &list));
    tk_array result = tk_multiply(list.items[0], tk_ones_like(list.items[0]));
    tk_arrays_clear(&list);
    return result;
}

static tk_array tangent(tk_function function, void *self, tk_array x, tk_array direction) {
    tk_arrays values = {0}, list = {0};
    assert_ok(tk_jvp(context, function, self, &x, 1, &direction, &values, &list));
    tk_array result = tk_multiply(list.items[0], tk_ones_like(list.items[0]));
    tk_arrays_clear(&values);
    tk_arrays_clear(&list);
    return result;
}

/* ---- derivatives of derivatives ---- */

static tk_status sine(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    return tk_arrays_push(results, tk_sin(args[0]));
}

/* `*self` derivatives of sine by reverse mode, one inside the other. */
static tk_status sine_derived(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    int order = *(const int *)self;
    if (order == 0) return sine(NULL, args, n_args, results);
    int less = order - 1;
    return tk_arrays_push(results, gradient(sine_derived, &less, args[0]));
}

static tk_status sine_derived_forward(void *self, const tk_array *args, size_t n_args,
                                      tk_arrays *results) {
    int order = *(const int *)self;
    if (order == 0) return sine(NULL, args, n_args, results);
    int less = order - 1;
    return tk_arrays_push(results, tangent(sine_derived_forward, &less, args[0], number(1)));
}

static void four_derivatives_give_it_back(void **state) {
    (void)state;
    int order = 3;
    expect_near(value_of(gradient(sine_derived, &order, number(0.7))), sin(0.7));
    expect_near(value_of(tangent(sine_derived, &order, number(0.7), number(1))), sin(0.7));
    expect_near(value_of(tangent(sine_derived_forward, &order, number(0.7), number(1))), sin(0.7));
    expect_near(value_of(gradient(sine_derived_forward, &order, number(0.7))), sin(0.7));
}

static tk_status times_outer(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    return tk_arrays_push(results, tk_multiply(tk_square(args[0]), *(const tk_array *)self));
}

/* x d/dy (y^2 x) at y = x: 2 x^3. A transform that forgets the outer x gives another derivative. */
static tk_status closure(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    tk_array x = args[0];
    return tk_arrays_push(results, tk_multiply(x, gradient(times_outer, &x, x)));
}

static void closures_are_differentiated(void **state) {
    (void)state;
    expect_near(value_of(gradient(closure, NULL, number(1.5))), 6 * 1.5 * 1.5);
    expect_near(value_of(tangent(closure, NULL, number(1.5), number(1))), 6 * 1.5 * 1.5);
}

/* ---- evaluation inside ---- */

static tk_status by_value(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    tk_array y = tk_square(args[0]);
    double value = value_of(y);
    return tk_arrays_push(results, value > 1 ? tk_exp(y) : y);
}

static void values_may_be_looked_at(void **state) {
    (void)state;
    expect_near(value_of(gradient(by_value, NULL, number(0.5))), 1);
    expect_near(value_of(gradient(by_value, NULL, number(1.5))), 3 * exp(2.25));
    expect_near(value_of(tangent(by_value, NULL, number(1.5), number(1))), 3 * exp(2.25));
}

/* ---- custom functions ---- */

static tk_status cube(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    return tk_arrays_push(results, tk_multiply(tk_square(args[0]), args[0]));
}

/* Not the derivative, so that the test sees which was used: 5 ct x. */
static tk_status cube_vjp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    assert_int_equal(n_args, 3);
    expect_near(value_of(args[2]), 8);
    return tk_arrays_push(results, tk_multiply(number(5), tk_multiply(args[0], args[1])));
}

static tk_status cube_jvp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    assert_int_equal(n_args, 2);
    return tk_arrays_push(results, tk_multiply(number(7), tk_multiply(args[0], args[1])));
}

static tk_status call_custom(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    return tk_custom_call(context, self, args, n_args, results);
}

static void custom_without_rules_is_plain(void **state) {
    (void)state;
    tk_custom custom = {.size = sizeof custom, .function = cube};
    expect_near(value_of(gradient(call_custom, &custom, number(2))), 12);
    expect_near(value_of(tangent(call_custom, &custom, number(2), number(1))), 12);
}

static tk_status custom_gradient(void *self, const tk_array *args, size_t n_args,
                                 tk_arrays *results) {
    (void)n_args;
    return tk_arrays_push(results, gradient(call_custom, self, args[0]));
}

static void custom_rules_are_used(void **state) {
    (void)state;
    tk_custom custom = {.size = sizeof custom, .function = cube, .vjp = cube_vjp, .jvp = cube_jvp};
    expect_near(value_of(gradient(call_custom, &custom, number(2))), 10);
    expect_near(value_of(tangent(call_custom, &custom, number(2), number(1))), 14);
    expect_near(value_of(gradient(custom_gradient, &custom, number(2))), 5);
    expect_near(value_of(tangent(custom_gradient, &custom, number(2), number(1))), 5);
}

static tk_status checkpointed(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    return tk_checkpoint(context, cube, self, NULL, args, n_args, results);
}

static tk_status checkpointed_gradient(void *self, const tk_array *args, size_t n_args,
                                       tk_arrays *results) {
    (void)n_args;
    return tk_arrays_push(results, gradient(checkpointed, self, args[0]));
}

static void checkpoints_change_no_derivative(void **state) {
    (void)state;
    expect_near(value_of(gradient(checkpointed, NULL, number(2))), 12);
    expect_near(value_of(tangent(checkpointed, NULL, number(2), number(1))), 12);
    expect_near(value_of(gradient(checkpointed_gradient, NULL, number(2))), 12);
    expect_near(value_of(tangent(checkpointed_gradient, NULL, number(2), number(1))), 12);
}

/* ---- arguments and results without a derivative ---- */

static tk_status mixed(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    tk_status status =
        tk_arrays_push(results, tk_multiply(args[0], tk_astype(args[1], TK_FLOAT64)));
    return status == TK_OK ? tk_arrays_push(results, tk_astype(args[0], TK_INT32)) : status;
}

static void integers_have_zeros(void **state) {
    (void)state;
    tk_arrays values = {0}, gradients = {0}, tangents = {0};
    const tk_array args[] = {number(2.5), tk_full(tk_scalar_int(context, 3), TK_SCALAR, TK_INT32),
                             number(1)};
    const tk_array cotangents[] = {number(1), tk_zeros(context, TK_SCALAR, TK_INT32)};
    assert_ok(tk_vjp(context, mixed, NULL, args, 3, cotangents, 2, &values, &gradients));
    assert_int_equal(gradients.count, 3);
    expect_near(value_of(gradients.items[0]), 3);
    expect_near(value_of(gradients.items[1]), 0);
    expect_near(value_of(gradients.items[2]), 0);
    assert_ok(tk_jvp(context, mixed, NULL, args, 3, args, &values, &tangents));
    expect_near(value_of(tangents.items[0]), 7.5);
    expect_near(value_of(tangents.items[1]), 0);
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    tk_arrays_clear(&tangents);
}

/* ---- batches ---- */

static tk_status cube_gradient(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    (void)n_args;
    return tk_arrays_push(results, gradient(cube, self, args[0]));
}

static void gradients_are_batched(void **state) {
    (void)state;
    static const double points[] = {1, 2, 3};
    tk_array x = tk_from_data(context, points, TK_SHAPE(3), TK_FLOAT64);
    tk_arrays results = {0};
    double got[3];
    assert_ok(tk_vmap(context, cube_gradient, NULL, &x, 1, NULL, NULL, &results));
    assert_ok(tk_copy_out(results.items[0], got, sizeof got));
    for (int i = 0; i < 3; i++) expect_near(got[i], 3 * points[i] * points[i]);
    tk_arrays_clear(&results);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(four_derivatives_give_it_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(closures_are_differentiated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_may_be_looked_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(custom_without_rules_is_plain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(custom_rules_are_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(checkpoints_change_no_derivative, set_up, tear_down),
        cmocka_unit_test_setup_teardown(integers_have_zeros, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gradients_are_batched, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("grad nested", tests, NULL, NULL);
}
