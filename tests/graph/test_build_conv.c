/* Convolutions: the geometry of results, lists of one entry or one an axis, transposed forms,
 * signals, and refusals. Values of every geometry are in tests/cpu_ops/test_conv.c. */
#include "support/build_check.h"

#define M(...) mixed(ctx, TK_FLOAT32, TK_SHAPE(__VA_ARGS__))
#define ALL TK_ALL_AXES

/* Dtype and shape alone. */
static void check_type(tk_array a, tk_dtype dtype, tk_shape shape) {
    assert_ok(tk_array_status(a));
    assert_int_equal(tk_array_dtype(a), dtype);
    tk_shape given = tk_array_shape(a);
    assert_int_equal(given.count, shape.count);
    for (int64_t i = 0; i < shape.count; i++) assert_int_equal(given.items[i], shape.items[i]);
}

static void windows(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = tk_reshape(tk_arange(ctx, 1, 6, 1, TK_FLOAT32), TK_SHAPE(1, 5, 1));
    tk_array w = tk_reshape(tk_arange(ctx, 1, 4, 1, TK_FLOAT32), TK_SHAPE(1, 3, 1));
    CHECK(tk_conv1d(x, w, 1, 0, 1, 1), TK_FLOAT32, TK_SHAPE(1, 3, 1), 14, 20, 26);
    CHECK(tk_conv1d(x, w, 2, 1, 1, 1), TK_FLOAT32, TK_SHAPE(1, 3, 1), 8, 20, 14);
    CHECK(tk_conv1d(x, w, 1, 0, 2, 1), TK_FLOAT32, TK_SHAPE(1, 1, 1), 22);
    CHECK(tk_conv_general(x, w, ALL, TK_AXES(1), ALL, ALL, ALL, 1, true), TK_FLOAT32,
          TK_SHAPE(1, 4, 1), 4, 10, 16, 22);
    CHECK(tk_conv_general(x, w, ALL, TK_AXES(-1), TK_AXES(-1), ALL, ALL, 1, false), TK_FLOAT32,
          TK_SHAPE(1, 1, 1), 20);
    CHECK(tk_conv_transpose1d(x, w, 2, 1, 1, 1, 1), TK_FLOAT32, TK_SHAPE(1, 10, 1), 2, 5, 4, 9, 6,
          13, 8, 17, 10, 15);
    CHECK(tk_conv2d(tk_ones(ctx, TK_SHAPE(1, 3, 4, 2), TK_INT32),
                    tk_ones(ctx, TK_SHAPE(1, 2, 2, 2), TK_INT8), TK_AXES(1, 2), ALL, ALL, 1),
          TK_INT32, TK_SHAPE(1, 2, 2, 1), 8, 8, 8, 8);
    tk_scope_close(scope);
}

static void lists(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array volume = tk_zeros(ctx, TK_SHAPE(2, 5, 6, 7, 4), TK_BFLOAT16);
    tk_array kernel = tk_zeros(ctx, TK_SHAPE(6, 1, 2, 3, 2), TK_BFLOAT16);
    check_type(tk_conv3d(volume, kernel, TK_AXES(1, 2, 3), TK_AXES(1), ALL, 2), TK_BFLOAT16,
               TK_SHAPE(2, 7, 4, 3, 6));
    check_type(tk_conv_transpose3d(volume, kernel, TK_AXES(2), ALL, ALL, TK_AXES(0, 0, 1), 2),
               TK_BFLOAT16, TK_SHAPE(2, 9, 12, 16, 6));
    check_type(tk_conv2d(M(0, 3, 3, 2), M(4, 3, 3, 2), ALL, ALL, ALL, 1), TK_FLOAT32,
               TK_SHAPE(0, 1, 1, 4));
    check_type(tk_conv1d(M(1, 4, 2), M(3, 2, 2), 1, 0, 1, 1), TK_FLOAT32, TK_SHAPE(1, 3, 3));
    tk_scope_close(scope);
}

static void signals(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array a = tk_arange(ctx, 1, 5, 1, TK_FLOAT32), v = tk_arange(ctx, 1, 3, 1, TK_INT32);
    CHECK(tk_convolve(a, v, "full"), TK_FLOAT32, TK_SHAPE(5), 1, 4, 7, 10, 8);
    CHECK(tk_convolve(v, a, "same"), TK_FLOAT32, TK_SHAPE(4), 1, 4, 7, 10);
    CHECK(tk_convolve(a, v, "valid"), TK_FLOAT32, TK_SHAPE(3), 4, 7, 10);
    CHECK(tk_convolve(v, v, "full"), TK_INT32, TK_SHAPE(3), 1, 4, 4);
    CHECK_ERROR(tk_convolve(a, v, "half"), TK_INVALID_ARGUMENT, "convolve: mode is 'half'");
    CHECK_ERROR(tk_convolve(a, M(2, 2), "full"), TK_SHAPE_ERROR, "expected two vectors");
    tk_scope_close(scope);
}

static void refusals(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    CHECK_ERROR(tk_conv1d(M(5, 2), M(3, 2), 1, 0, 1, 1), TK_SHAPE_ERROR,
                "conv1d: input is f32(5, 2) and weight f32(3, 2), expected [N, ..., C]");
    CHECK_ERROR(tk_conv2d(M(1, 5, 2), M(1, 3, 2), ALL, ALL, ALL, 1), TK_SHAPE_ERROR,
                "with 2 spatial axes");
    CHECK_ERROR(tk_conv1d(M(1, 5, 2), M(4, 3, 3), 1, 0, 1, 1), TK_SHAPE_ERROR, "for 1 groups");
    CHECK_ERROR(tk_conv1d(M(1, 5, 4), M(3, 3, 2), 1, 0, 1, 2), TK_SHAPE_ERROR, "for 2 groups");
    CHECK_ERROR(tk_conv1d(M(1, 5, 2), M(4, 3, 2), 1, 0, 1, 0), TK_SHAPE_ERROR, "for 0 groups");
    CHECK_ERROR(tk_conv1d(M(1, 5, 2), M(4, 3, 2), 0, 0, 1, 1), TK_INVALID_ARGUMENT, "stride is 0");
    CHECK_ERROR(tk_conv1d(M(1, 5, 2), M(4, 3, 2), 1, 0, 3, 1), TK_SHAPE_ERROR,
                "the kernel of f32(4, 3, 2) does not fit into the padded input f32(1, 5, 2)");
    CHECK_ERROR(tk_conv1d(M(1, 5, 2), M(4, 0, 2), 1, 0, 1, 1), TK_SHAPE_ERROR, "does not fit");
    CHECK_ERROR(tk_conv2d(M(1, 5, 5, 2), M(4, 3, 3, 2), TK_AXES(1, 2, 3), ALL, ALL, 1),
                TK_INVALID_ARGUMENT, "conv2d: stride has 3 entries, expected 1 or 2");
    CHECK_ERROR(tk_conv_transpose1d(M(1, 5, 2), M(4, 3, 2), 1, 0, 1, -1, 1), TK_INVALID_ARGUMENT,
                "output_padding -1");
    CHECK_ERROR(tk_conv1d(tk_ones(ctx, TK_SHAPE(1, 5, 2), TK_BOOL),
                          tk_ones(ctx, TK_SHAPE(1, 3, 2), TK_BOOL), 1, 0, 1, 1),
                TK_DTYPE_ERROR, "conv1d: operands are bool");
    tk_scope_close(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(lists),
        cmocka_unit_test(signals),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
