/* Arrays on the emulator: moving, views, copies, casts, elementwise ops, what is refused. The
 * processor's own results are the measure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/arrays.h"
#include "tiki/devices.h"
#include "tiki/transforms.h"

static tk_context *ctx;
static tk_scope scope;
static tk_stream_id emulator;

static int begin(void **state) {
    (void)state;
    ctx = make_context();
    scope = tk_scope_open(ctx);
    return tk_device_stream(ctx, "emulator", &emulator) == TK_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    tk_scope_close(scope);
    tk_context_release(ctx);
    return 0;
}

static void assert_says(const char *text) {
    if (!strstr(tk_error_message(), text))
        fail_msg("'%s' is not in '%s'", text, tk_error_message());
}

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
    assert_says("expected cpu, emulator, gpu or gpu:NUMBER");
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
    assert_says("emulator:0");
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
    assert_says("operand 0 is on cpu:0 and operand 1 on emulator:0: move one of them");
    assert_int_equal(tk_array_status(tk_add(d, a)), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_array_status(tk_cumsum(d, 0, false, true)), TK_UNSUPPORTED);
    assert_int_equal(tk_array_status(tk_sort(d, -1)), TK_UNSUPPORTED);
    assert_says("sort_axis has no kernel on emulator:0");
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(test_names),
        TEST(test_there_and_back),
        TEST(test_memory_is_counted),
        TEST(test_views_and_copies),
        TEST(test_casts),
        TEST(test_elementwise),
        TEST(test_boxes),
        TEST(test_refusals),
        TEST(test_current_device),
        TEST(test_gradients_cross),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
