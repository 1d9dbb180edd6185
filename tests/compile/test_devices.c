/* Arrays on the emulator: moving, views, copies, casts, elementwise ops, what is refused. The
 * processor's own results are the measure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/emulator_fixture.h"
#include "support/says.h"
#include "tiki/transforms.h"

static tk_array there(tk_array array) { return tk_to_stream(array, emulator); }
static tk_array back(tk_array array) { return tk_to_stream(array, TK_DEFAULT_STREAM); }

/* Same type, same bits. */
static void assert_same_bits(tk_array got, tk_array expected) {
    size_t bytes = (size_t)tk_array_size(expected) * tk_dtype_size(tk_array_dtype(expected));
    char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
    assert_ok(tk_array_status(got));
    assert_ok(tk_array_status(expected));
    assert_int_equal(tk_array_dtype(got), tk_array_dtype(expected));
    assert_int_equal(tk_array_rank(got), tk_array_rank(expected));
    for (int i = 0; i < tk_array_rank(got); i++)
        assert_int_equal(tk_array_dim(got, i), tk_array_dim(expected, i));
    assert_ok(tk_copy_out(got, a, bytes));
    assert_ok(tk_copy_out(expected, b, bytes));
    assert_memory_equal(a, b, bytes);
    free(a);
    free(b);
}

static tk_array numbers(tk_shape shape, tk_dtype dtype) {
    return tk_astype(tk_random_uniform(ctx, -8, 8, shape, TK_FLOAT32, TK_NO_ARRAY), dtype);
}

static void test_names(void **state) {
    (void)state;
    tk_stream_id stream = 99;
    assert_ok(tk_device_stream(ctx, "cpu", &stream));
    assert_int_equal(stream, TK_DEFAULT_STREAM);
    assert_ok(tk_device_stream(ctx, "emulator:0", &stream));
    assert_int_equal(stream, emulator);
    assert_int_equal(tk_device_stream(ctx, "emulator:1", &stream), TK_NOT_FOUND);
    assert_int_equal(tk_device_stream(ctx, "tpu", &stream), TK_NOT_FOUND);
    assert_error_says("expected cpu, emulator, gpu or gpu:NUMBER");
    assert_int_equal(tk_device_stream(ctx, "gpu:", &stream), TK_NOT_FOUND);
    assert_int_equal(tk_device_stream(ctx, "gpu:x", &stream), TK_NOT_FOUND);
    assert_string_equal(tk_device_name(tk_stream_device_of(ctx, emulator)), "emulator:0");
    assert_null(tk_stream_device_of(ctx, 1000));
    assert_int_equal(tk_array_status(tk_to_stream(numbers(TK_SHAPE(3), TK_FLOAT32), 1000)),
                     TK_INVALID_ARGUMENT);
}

static void test_there_and_back(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_BOOL,    TK_INT8,    TK_UINT16,   TK_INT32,    TK_UINT64,
                                      TK_FLOAT16, TK_FLOAT32, TK_BFLOAT16, TK_COMPLEX64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        tk_array a = numbers(TK_SHAPE(3, 5), dtypes[i]), b = there(a);
        assert_string_equal(tk_device_name(tk_array_device(b)), "emulator:0");
        assert_string_equal(tk_device_name(tk_array_device(back(b))), "cpu:0");
        assert_true(tk_array_same(there(b), b));
        assert_same_bits(back(b), a);
        assert_same_bits(b, a);
    }
    assert_same_bits(back(there(tk_zeros(ctx, TK_SHAPE(0, 3), TK_FLOAT32))),
                     tk_zeros(ctx, TK_SHAPE(0, 3), TK_FLOAT32));
    tk_array turned = tk_transpose(numbers(TK_SHAPE(2, 3, 4), TK_INT32), TK_ALL_AXES);
    assert_same_bits(back(there(turned)), turned);
}

static void test_memory_is_counted(void **state) {
    (void)state;
    tk_device *device = tk_stream_device_of(ctx, emulator);
    size_t before = tk_device_memory(device).active;
    tk_array a = there(numbers(TK_SHAPE(1024), TK_FLOAT32));
    assert_ok(tk_eval(a));
    assert_true(tk_device_memory(device).active >= before + 4096);
    tk_device_set_memory_limit(device, 8192);
    assert_int_equal(tk_eval(there(numbers(TK_SHAPE(1 << 16), TK_FLOAT32))), TK_OUT_OF_MEMORY);
    assert_error_says("emulator:0");
}

static void test_views_and_copies(void **state) {
    (void)state;
    tk_array a = numbers(TK_SHAPE(4, 6, 5), TK_FLOAT32), d = there(a);
    tk_array turned = tk_transpose(a, TK_AXES(2, 0, 1)),
             turned_d = tk_transpose(d, TK_AXES(2, 0, 1));
    assert_same_bits(turned_d, turned);
    assert_same_bits(tk_contiguous(turned_d), turned);
    assert_same_bits(tk_reshape(turned_d, TK_SHAPE(10, 12)), tk_reshape(turned, TK_SHAPE(10, 12)));
    tk_array part = tk_slice(a, TK_AXES(3, 1, 4), TK_AXES(-5, 6, -6), TK_AXES(-2, 2, -1));
    tk_array part_d = tk_slice(d, TK_AXES(3, 1, 4), TK_AXES(-5, 6, -6), TK_AXES(-2, 2, -1));
    assert_same_bits(tk_contiguous(part_d), part);
    assert_same_bits(tk_add(part_d, part_d), tk_add(part, part));
    tk_array both[] = {part, part}, both_d[] = {part_d, part_d};
    assert_same_bits(tk_concatenate(both_d, 2, 1), tk_concatenate(both, 2, 1));
    assert_same_bits(tk_stack(both_d, 2, 0), tk_stack(both, 2, 0));
}

static void test_casts(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_BOOL,   TK_INT8,    TK_UINT8,   TK_INT16,
                                      TK_UINT16, TK_INT32,   TK_UINT32,  TK_INT64,
                                      TK_UINT64, TK_FLOAT16, TK_FLOAT32, TK_BFLOAT16};
    enum { N = sizeof dtypes / sizeof *dtypes };
    float edges[] = {0,      -0.0f, 1,     -1,    2.5f,     -2.5f,     127.6f, 128,   -129,
                     255.9f, 256,   65535, 65536, 1e9f,     -1e9f,     3e9f,   1e19f, -1e19f,
                     6e4f,   7e4f,  1e-3f, 3.1f,  INFINITY, -INFINITY, NAN};
    tk_array base = tk_from_data(ctx, edges, TK_SHAPE(25), TK_FLOAT32);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            tk_array a = tk_astype(base, dtypes[i]);
            assert_same_bits(tk_astype(there(a), dtypes[k]), tk_astype(a, dtypes[k]));
        }
}

typedef tk_array (*binary)(tk_array, tk_array);
typedef tk_array (*unary)(tk_array);

static void test_elementwise(void **state) {
    (void)state;
    static const binary binaries[] = {tk_add,     tk_subtract, tk_multiply,   tk_maximum,
                                      tk_minimum, tk_equal,    tk_not_equal,  tk_less,
                                      tk_greater, tk_divide,   tk_less_equal, tk_greater_equal};
    static const tk_dtype dtypes[] = {TK_INT32,   TK_UINT8,   TK_INT64,   TK_UINT32,
                                      TK_FLOAT32, TK_FLOAT16, TK_BFLOAT16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        tk_array a = numbers(TK_SHAPE(5, 7), dtypes[i]), b = numbers(TK_SHAPE(7), dtypes[i]);
        tk_array ad = there(a), bd = there(b);
        for (size_t k = 0; k < sizeof binaries / sizeof *binaries; k++)
            assert_same_bits(binaries[k](ad, bd), binaries[k](a, b));
        assert_same_bits(tk_where(tk_less(ad, bd), ad, tk_scalar_int(ctx, 2)),
                         tk_where(tk_less(a, b), a, tk_scalar_int(ctx, 2)));
    }
    static const unary unaries[] = {tk_abs,   tk_negative, tk_sqrt, tk_ceil,
                                    tk_floor, tk_square,   tk_rsqrt};
    tk_array x = tk_abs(numbers(TK_SHAPE(100), TK_FLOAT32));
    for (size_t k = 0; k < sizeof unaries / sizeof *unaries; k++)
        assert_same_bits(unaries[k](there(x)), unaries[k](x));
    assert_same_bits(tk_multiply(there(x), tk_scalar(ctx, 0.5)),
                     tk_multiply(x, tk_scalar(ctx, 0.5)));
}

static void assert_near(tk_array got, tk_array expected, float bound) {
    int64_t size = tk_array_size(expected);
    float *a = calloc((size_t)size + 1, sizeof *a), *b = calloc((size_t)size + 1, sizeof *b);
    assert_ok(tk_array_status(got));
    assert_int_equal(tk_array_dtype(got), tk_array_dtype(expected));
    assert_int_equal(tk_array_size(got), size);
    assert_ok(tk_copy_out(tk_astype(back(got), TK_FLOAT32), a, (size_t)size * sizeof *a));
    assert_ok(tk_copy_out(tk_astype(expected, TK_FLOAT32), b, (size_t)size * sizeof *b));
    for (int64_t i = 0; i < size; i++)
        if (!(fabsf(a[i] - b[i]) <= bound * (1 + fabsf(b[i]))))
            fail_msg("element %lld is %g, expected %g", (long long)i, (double)a[i], (double)b[i]);
    free(a);
    free(b);
}

static void test_transcendental(void **state) {
    (void)state;
    static const unary unaries[] = {tk_exp, tk_log,  tk_log2, tk_sin,
                                    tk_cos, tk_tanh, tk_erf,  tk_sigmoid};
    tk_array x = tk_add(tk_abs(numbers(TK_SHAPE(100), TK_FLOAT32)), tk_scalar(ctx, 0.01));
    for (size_t k = 0; k < sizeof unaries / sizeof *unaries; k++) {
        assert_near(unaries[k](there(x)), unaries[k](x), 1e-6f);
        tk_array half = tk_astype(x, TK_FLOAT16);
        assert_near(unaries[k](there(half)), unaries[k](half), 2e-3f);
    }
    assert_int_equal(tk_array_status(tk_log(there(tk_astype(x, TK_FLOAT64)))), TK_UNSUPPORTED);
}

static void test_reductions(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_BOOL,  TK_INT8,   TK_UINT16,  TK_INT32,   TK_UINT32,
                                      TK_INT64, TK_UINT64, TK_FLOAT16, TK_FLOAT32, TK_BFLOAT16};
    const tk_axes axes[] = {TK_ALL_AXES, TK_AXES(0), TK_AXES(-1), TK_AXES(0, 2), TK_AXES(1)};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        tk_array a = tk_astype(
            tk_random_randint(ctx, 0, 3, TK_SHAPE(5, 3, 40), TK_INT32, TK_NO_ARRAY), dtypes[d]);
        tk_array far = there(a);
        for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
            assert_same_bits(tk_sum(far, axes[i], TK_DROPDIMS), tk_sum(a, axes[i], TK_DROPDIMS));
            assert_same_bits(tk_max(far, axes[i], TK_KEEPDIMS), tk_max(a, axes[i], TK_KEEPDIMS));
            assert_same_bits(tk_min(far, axes[i], TK_KEEPDIMS), tk_min(a, axes[i], TK_KEEPDIMS));
        }
    }
    tk_array x = numbers(TK_SHAPE(4, 700), TK_FLOAT32), turned = tk_transpose(x, TK_ALL_AXES);
    assert_near(tk_sum(there(x), TK_AXES(1), TK_DROPDIMS), tk_sum(x, TK_AXES(1), TK_DROPDIMS),
                1e-4f);
    assert_near(tk_sum(tk_transpose(there(x), TK_ALL_AXES), TK_AXES(0), TK_DROPDIMS),
                tk_sum(turned, TK_AXES(0), TK_DROPDIMS), 1e-4f);
    assert_near(tk_mean(there(x), TK_ALL_AXES, TK_DROPDIMS), tk_mean(x, TK_ALL_AXES, TK_DROPDIMS),
                1e-4f);
    assert_same_bits(
        tk_sum(there(tk_zeros(ctx, TK_SHAPE(3, 0), TK_FLOAT32)), TK_AXES(1), TK_DROPDIMS),
        tk_zeros(ctx, TK_SHAPE(3), TK_FLOAT32));
}

static void test_ranges(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_INT8,   TK_UINT16,  TK_INT32,   TK_INT64,
                                      TK_UINT64, TK_FLOAT16, TK_FLOAT32, TK_BFLOAT16};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        tk_array here = tk_arange(ctx, 3, 100, 7, dtypes[d]);
        (void)tk_stream_use(ctx, emulator);
        tk_array far = tk_arange(ctx, 3, 100, 7, dtypes[d]);
        tk_array eye = tk_eye(ctx, 5, 7, 1, dtypes[d]);
        (void)tk_stream_use(ctx, TK_DEFAULT_STREAM);
        assert_string_equal(tk_device_name(tk_array_device(far)), "emulator:0");
        assert_same_bits(far, here);
        assert_same_bits(eye, tk_eye(ctx, 5, 7, 1, dtypes[d]));
    }
}

static void test_products(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT16, TK_INT32};
    for (int d = 0; d < 3; d++) {
        tk_array a = tk_astype(
            tk_random_randint(ctx, -3, 4, TK_SHAPE(2, 7, 30), TK_INT32, TK_NO_ARRAY), dtypes[d]);
        tk_array b = tk_astype(
            tk_random_randint(ctx, -3, 4, TK_SHAPE(2, 30, 9), TK_INT32, TK_NO_ARRAY), dtypes[d]);
        assert_same_bits(tk_matmul(there(a), there(b)), tk_matmul(a, b));
        tk_array first = tk_slice(a, TK_AXES(0, 0, 0), TK_AXES(1, 7, 30), TK_ALL_AXES);
        tk_array matrix = tk_reshape(first, TK_SHAPE(7, 30));
        assert_same_bits(tk_matmul(there(matrix), tk_transpose(there(matrix), TK_ALL_AXES)),
                         tk_matmul(matrix, tk_transpose(matrix, TK_ALL_AXES)));
    }
}

/* Fused ops without a kernel are computed as what they stand for. */
static void test_fused_ops(void **state) {
    (void)state;
    tk_array x = numbers(TK_SHAPE(7, 33), TK_FLOAT32), w = numbers(TK_SHAPE(33), TK_FLOAT32);
    assert_near(tk_softmax(there(x), TK_AXES(-1)), tk_softmax(x, TK_AXES(-1)), 1e-6f);
    assert_near(tk_rms_norm(there(x), there(w), 1e-5), tk_rms_norm(x, w, 1e-5), 1e-5f);
    assert_near(tk_layer_norm(there(x), there(w), there(w), 1e-5), tk_layer_norm(x, w, w, 1e-5),
                1e-5f);
}

/* A model of plain ops trains on a device too. */
static tk_status plain_loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    tk_array h = tk_softmax(tk_tanh(tk_matmul(args[0], args[1])), TK_AXES(-1));
    return tk_arrays_push(results,
                          tk_mean(tk_square(tk_matmul(h, args[1])), TK_ALL_AXES, TK_DROPDIMS));
}

static void test_gradients_of_plain_ops(void **state) {
    (void)state;
    static const int argnums[] = {0, 1};
    tk_array here[] = {numbers(TK_SHAPE(4, 5), TK_FLOAT32), numbers(TK_SHAPE(5, 5), TK_FLOAT32)};
    tk_array far[] = {there(here[0]), there(here[1])};
    tk_arrays got = {0}, expected = {0};
    assert_ok(tk_grad(ctx, plain_loss, NULL, far, 2, argnums, 2, &got));
    assert_ok(tk_grad(ctx, plain_loss, NULL, here, 2, argnums, 2, &expected));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(tk_device_name(tk_array_device(got.items[i])), "emulator:0");
        assert_near(got.items[i], expected.items[i], 1e-4f);
    }
    tk_arrays_clear(&got);
    tk_arrays_clear(&expected);
}

static void test_boxes(void **state) {
    (void)state;
    tk_array a = numbers(TK_SHAPE(4, 6), TK_FLOAT32), b = numbers(TK_SHAPE(2, 3), TK_FLOAT32);
    assert_same_bits(
        tk_slice_update(there(a), there(b), TK_AXES(1, 0), TK_AXES(3, 6), TK_AXES(1, 2), TK_SET),
        tk_slice_update(a, b, TK_AXES(1, 0), TK_AXES(3, 6), TK_AXES(1, 2), TK_SET));
    assert_same_bits(
        tk_slice_update(there(a), there(b), TK_AXES(1, 0), TK_AXES(3, 6), TK_AXES(1, 2), TK_ADD),
        tk_slice_update(a, b, TK_AXES(1, 0), TK_AXES(3, 6), TK_AXES(1, 2), TK_ADD));
}

static void test_refusals(void **state) {
    (void)state;
    tk_array a = numbers(TK_SHAPE(3, 3), TK_FLOAT32), d = there(a);
    assert_int_equal(tk_array_status(tk_add(a, d)), TK_INVALID_ARGUMENT);
    assert_error_says("operand 0 is on cpu:0 and operand 1 on emulator:0: move one of them");
    assert_int_equal(tk_array_status(tk_add(d, a)), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_status(tk_sort(d, -1)), TK_UNSUPPORTED);
    assert_error_says("sort_axis has no kernel on emulator:0");
    assert_int_equal(tk_array_status(tk_add(there(tk_astype(a, TK_COMPLEX64)), d)), TK_UNSUPPORTED);
}

static void test_current_device(void **state) {
    (void)state;
    float values[] = {1, 2, 3};
    assert_int_equal(tk_stream_use(ctx, emulator), TK_DEFAULT_STREAM);
    tk_array a = tk_from_data(ctx, values, TK_SHAPE(3), TK_FLOAT32);
    tk_array b = tk_full(tk_scalar(ctx, 2), TK_SHAPE(3), TK_FLOAT32);
    assert_string_equal(tk_device_name(tk_array_device(a)), "emulator:0");
    assert_string_equal(tk_device_name(tk_array_device(b)), "emulator:0");
    tk_array c = tk_add(a, b);
    assert_float_equal(first_f32(tk_slice(c, TK_AXES(2), TK_AXES(3), TK_ALL_AXES)), 5, 0);
    tk_stream_id second;
    assert_ok(tk_stream_new(ctx, &second));
    assert_string_equal(tk_device_name(tk_stream_device_of(ctx, second)), "emulator:0");
    (void)tk_stream_use(ctx, second);
    tk_array d = tk_multiply(c, c);
    assert_int_equal(tk_array_stream(d), second);
    (void)tk_stream_use(ctx, TK_DEFAULT_STREAM);
    tk_array e = tk_add(d, c);
    assert_int_equal(tk_array_stream(e), emulator);
    assert_float_equal(first_f32(tk_slice(e, TK_AXES(2), TK_AXES(3), TK_ALL_AXES)), 30, 0);
}

/* On both sides of a move. */
static tk_status loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    tk_array d = there(tk_multiply(args[0], args[0]));
    tk_array e = tk_multiply(tk_add(d, tk_scalar(ctx, 1)), d);
    return tk_arrays_push(results, tk_sum(back(e), TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status loss_here(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    tk_array d = tk_multiply(args[0], args[0]);
    tk_array e = tk_multiply(tk_add(d, tk_scalar(ctx, 1)), d);
    return tk_arrays_push(results, tk_sum(e, TK_ALL_AXES, TK_DROPDIMS));
}

static void test_gradients_cross(void **state) {
    (void)state;
    tk_array x = numbers(TK_SHAPE(2, 3), TK_FLOAT32), one = tk_ones_like(x);
    tk_arrays got = {0}, expected = {0}, tangents = {0};
    assert_ok(tk_grad(ctx, loss, NULL, &x, 1, NULL, 0, &got));
    assert_ok(tk_grad(ctx, loss_here, NULL, &x, 1, NULL, 0, &expected));
    assert_same_bits(got.items[0], expected.items[0]);
    assert_string_equal(tk_device_name(tk_array_device(got.items[0])), "cpu:0");
    assert_ok(tk_jvp(ctx, loss, NULL, &x, 1, &one, &got, &tangents));
    assert_ok(tk_jvp(ctx, loss_here, NULL, &x, 1, &one, &expected, &tangents));
    assert_same_bits(got.items[1], expected.items[1]);
    assert_same_bits(tangents.items[0], tangents.items[1]);
    assert_ok(tk_vmap(ctx, loss, NULL, &x, 1, NULL, NULL, &got));
    assert_ok(tk_vmap(ctx, loss_here, NULL, &x, 1, NULL, NULL, &expected));
    assert_same_bits(got.items[2], expected.items[2]);
    assert_ok(tk_checkpoint(ctx, loss, NULL, NULL, &x, 1, &got));
    assert_same_bits(got.items[3], got.items[1]);
    tk_traced *traced;
    assert_ok(tk_traced_create(ctx, loss, NULL, &x, 1, &traced));
    assert_ok(tk_traced_call(traced, &x, 1, &got));
    assert_same_bits(got.items[4], got.items[1]);
    tk_traced_free(traced);
    tk_arrays_clear(&got);
    tk_arrays_clear(&expected);
    tk_arrays_clear(&tangents);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_emulator, close_context)
        TEST(test_names),
        TEST(test_there_and_back),
        TEST(test_memory_is_counted),
        TEST(test_views_and_copies),
        TEST(test_transcendental),
        TEST(test_reductions),
        TEST(test_ranges),
        TEST(test_products),
        TEST(test_fused_ops),
        TEST(test_gradients_of_plain_ops),
        TEST(test_casts),
        TEST(test_elementwise),
        TEST(test_boxes),
        TEST(test_refusals),
        TEST(test_current_device),
        TEST(test_gradients_cross),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
