/* The library's kernels as ops on the emulator: values and gradients beside the processor's own
 * ops, schedules that are read, changed and refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/emulator_fixture.h"
#include "support/says.h"
#include "tiki/library_op.h"
#include "tiki/transforms.h"

static tk_array there(tk_array array) { return tk_to_stream(array, emulator); }

static tk_array numbers(tk_shape shape, tk_dtype dtype) {
    return tk_astype(tk_random_normal(ctx, shape, TK_FLOAT32, 0, 1, TK_NO_ARRAY), dtype);
}

static float *values_of(tk_array array) {
    size_t bytes = (size_t)tk_array_size(array) * 4;
    float *values = malloc(bytes + 4);
    assert_ok(
        tk_copy_out(tk_astype(tk_to_stream(array, TK_DEFAULT_STREAM), TK_FLOAT32), values, bytes));
    return values;
}

static void assert_near(tk_array got, tk_array expected, float bound) {
    assert_ok(tk_array_status(got));
    assert_ok(tk_array_status(expected));
    assert_int_equal(tk_array_size(got), tk_array_size(expected));
    assert_int_equal(tk_array_dtype(got), tk_array_dtype(expected));
    float *a = values_of(got), *b = values_of(expected);
    for (int64_t i = 0; i < tk_array_size(got); i++)
        if (!(fabsf(a[i] - b[i]) <= bound * (1 + fabsf(b[i]))))
            fail_msg("element %lld is %g, expected %g", (long long)i, (double)a[i], (double)b[i]);
    free(a);
    free(b);
}

/* ---- values and derivatives ---- */

/* An op and the processor's, of one or two arguments. */
typedef struct pair {
    tk_array (*kernel)(const tk_array *args);
    tk_array (*plain)(const tk_array *args);
    size_t n_args;
    tk_shape shapes[2];
    tk_dtype dtype;
    float bound;
} pair;

static tk_status kernel_function(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    const pair *p = self;
    (void)n;
    return tk_arrays_push(results, p->kernel(args));
}
static tk_status plain_function(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    const pair *p = self;
    (void)n;
    return tk_arrays_push(results, p->plain(args));
}

static void compare(const pair *p) {
    tk_array here[2], far[2], tangents[2], far_tangents[2];
    tk_arrays got = {0}, expected = {0}, grads = {0}, plain_grads = {0};
    for (size_t i = 0; i < p->n_args; i++) {
        here[i] = numbers(p->shapes[i], p->dtype);
        tangents[i] = numbers(p->shapes[i], p->dtype);
        far[i] = there(here[i]);
        far_tangents[i] = there(tangents[i]);
    }
    tk_array plain = p->plain(here), ct = numbers(tk_array_shape(plain), p->dtype),
             far_ct = there(ct);
    assert_near(p->kernel(far), plain, p->bound);
    assert_ok(tk_vjp(ctx, kernel_function, (void *)p, far, p->n_args, &far_ct, 1, &got, &grads));
    assert_ok(
        tk_vjp(ctx, plain_function, (void *)p, here, p->n_args, &ct, 1, &expected, &plain_grads));
    for (size_t i = 0; i < p->n_args; i++)
        assert_near(grads.items[i], plain_grads.items[i], p->bound);
    assert_ok(tk_jvp(ctx, kernel_function, (void *)p, far, p->n_args, far_tangents, &got, &got));
    assert_ok(
        tk_jvp(ctx, plain_function, (void *)p, here, p->n_args, tangents, &expected, &expected));
    assert_near(got.items[1], expected.items[1], p->bound);
    tk_arrays_clear(&got);
    tk_arrays_clear(&expected);
    tk_arrays_clear(&grads);
    tk_arrays_clear(&plain_grads);
}

static tk_array norm(const tk_array *a) { return tk_kernel_rms_norm(a[0], a[1], 1e-5, NULL); }
static tk_array plain_norm(const tk_array *a) { return tk_rms_norm(a[0], a[1], 1e-5); }
static tk_array bare(const tk_array *a) {
    return tk_kernel_rms_norm(a[0], TK_NO_ARRAY, 1e-5, NULL);
}
static tk_array plain_bare(const tk_array *a) { return tk_rms_norm(a[0], TK_NO_ARRAY, 1e-5); }
static tk_array soft(const tk_array *a) { return tk_kernel_softmax(a[0], NULL); }
static tk_array plain_soft(const tk_array *a) { return tk_softmax(a[0], TK_AXES(-1)); }
static tk_array turn(const tk_array *a) { return tk_kernel_transpose(a[0], NULL); }
static tk_array plain_turn(const tk_array *a) { return tk_swapaxes(a[0], -1, -2); }
static tk_array sums(const tk_array *a) { return tk_kernel_column_sum(a[0], NULL); }
static tk_array plain_sums(const tk_array *a) { return tk_sum(a[0], TK_AXES(0), TK_DROPDIMS); }
static tk_array product(const tk_array *a) { return tk_kernel_matmul(a[0], a[1], NULL); }
static tk_array hopper(const tk_array *a) { return tk_kernel_hopper_matmul(a[0], a[1], NULL); }
static tk_array plain_product(const tk_array *a) { return tk_matmul(a[0], a[1]); }

static void test_values_and_derivatives(void **state) {
    (void)state;
    const pair pairs[] = {
        {norm, plain_norm, 2, {TK_SHAPE(6, 40), TK_SHAPE(40)}, TK_FLOAT32, 1e-4f},
        {norm, plain_norm, 2, {TK_SHAPE(3, 2, 64), TK_SHAPE(64)}, TK_FLOAT16, 2e-2f},
        {bare, plain_bare, 1, {TK_SHAPE(5, 33)}, TK_FLOAT32, 1e-4f},
        {soft, plain_soft, 1, {TK_SHAPE(4, 37)}, TK_FLOAT32, 1e-5f},
        {soft, plain_soft, 1, {TK_SHAPE(2, 3, 64)}, TK_BFLOAT16, 2e-2f},
        {turn, plain_turn, 1, {TK_SHAPE(2, 19, 35)}, TK_FLOAT32, 0},
        {sums, plain_sums, 1, {TK_SHAPE(50, 24)}, TK_FLOAT32, 1e-4f},
        {product, plain_product, 2, {TK_SHAPE(24, 32), TK_SHAPE(32, 40)}, TK_FLOAT16, 2e-2f},
        {hopper, plain_product, 2, {TK_SHAPE(72, 64), TK_SHAPE(64, 80)}, TK_BFLOAT16, 8e-2f},
        {product, plain_product, 2, {TK_SHAPE(17, 9), TK_SHAPE(9, 21)}, TK_BFLOAT16, 5e-2f},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) compare(&pairs[i]);
}

static void test_batches(void **state) {
    (void)state;
    pair p = {.kernel = soft, .plain = plain_soft};
    tk_array x = numbers(TK_SHAPE(3, 4, 20), TK_FLOAT32), far = there(x);
    tk_arrays got = {0}, expected = {0};
    assert_ok(tk_vmap(ctx, kernel_function, &p, &far, 1, NULL, NULL, &got));
    assert_ok(tk_vmap(ctx, plain_function, &p, &x, 1, NULL, NULL, &expected));
    assert_near(got.items[0], expected.items[0], 1e-5f);
    p = (pair){.kernel = sums, .plain = plain_sums};
    assert_ok(tk_vmap(ctx, kernel_function, &p, &far, 1, NULL, NULL, &got));
    assert_ok(tk_vmap(ctx, plain_function, &p, &x, 1, NULL, NULL, &expected));
    assert_near(got.items[1], expected.items[1], 1e-4f);
    tk_arrays_clear(&got);
    tk_arrays_clear(&expected);
}

/* ---- schedules ---- */

static void test_schedules(void **state) {
    (void)state;
    tk_library_schedule schedule;
    tk_array x = there(numbers(TK_SHAPE(8, 256), TK_FLOAT32));
    tk_array plain = tk_kernel_softmax(x, NULL);
    assert_ok(tk_library_schedule_for(TK_LIBRARY_SOFTMAX, &x, 1, &schedule));
    int64_t before = schedule.threads_per_row;
    schedule.threads_per_row = before == 8 ? 16 : 8;
    schedule.held = 0;
    assert_near(tk_kernel_softmax(x, &schedule), plain, 1e-6f);
    schedule.held = 1;
    assert_int_equal(tk_array_status(tk_kernel_softmax(x, &schedule)), TK_INVALID_ARGUMENT);
    assert_error_says("less than a row of 256");
    schedule.threads_per_row = 7;
    assert_int_equal(tk_array_status(tk_kernel_softmax(x, &schedule)), TK_INVALID_ARGUMENT);
    assert_error_says("threads_per_row");
    assert_int_equal(tk_library_schedule_for(TK_LIBRARY_ADD, &x, 1, &schedule), TK_UNSUPPORTED);
    assert_int_equal(tk_library_schedule_for(TK_LIBRARY_GEMM, &x, 1, &schedule),
                     TK_INVALID_ARGUMENT);
    assert_int_equal(tk_library_schedule_for(TK_LIBRARY_SOFTMAX, &x, 0, &schedule),
                     TK_INVALID_ARGUMENT);
}

static void test_refusals(void **state) {
    (void)state;
    tk_array x = there(numbers(TK_SHAPE(8, 16), TK_FLOAT32)),
             w = there(numbers(TK_SHAPE(15), TK_FLOAT32));
    assert_int_equal(tk_array_status(tk_kernel_rms_norm(x, w, 1e-5, NULL)), TK_SHAPE_ERROR);
    assert_error_says("weight");
    assert_int_equal(tk_array_status(tk_kernel_matmul(x, x, NULL)), TK_DTYPE_ERROR);
    assert_int_equal(tk_array_status(tk_kernel_softmax(tk_astype(x, TK_INT32), NULL)),
                     TK_DTYPE_ERROR);
    tk_array here = numbers(TK_SHAPE(8, 16), TK_FLOAT32), y = tk_kernel_softmax(here, NULL);
    assert_ok(tk_array_status(y));
    assert_int_equal(tk_eval(y), TK_UNSUPPORTED);
    assert_error_says("kernel softmax cannot be launched on cpu:0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_emulator, close_context)
        TEST(test_values_and_derivatives),
        TEST(test_batches),
        TEST(test_schedules),
        TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
