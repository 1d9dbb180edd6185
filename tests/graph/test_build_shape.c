/* Shape builders: values against NumPy, identities that build nothing, merged nodes, lengths that
 * do not fit, and errors that name the op. */
#include "support/build_check.h"

#include "base/alloc.h"

#define X12 ramp(ctx, TK_FLOAT32, TK_SHAPE(2, 3, 2))

static void reshapes(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = X12, empty = tk_zeros(ctx, TK_SHAPE(0, 3), TK_INT8);
    CHECK(tk_reshape(x, TK_SHAPE(-1, 4)), TK_FLOAT32, TK_SHAPE(3, 4), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
          10, 11);
    CHECK_EMPTY(tk_reshape(empty, TK_SHAPE(3, -1)), TK_INT8, TK_SHAPE(3, 0));
    CHECK_SAME(tk_reshape(x, TK_SHAPE(2, 3, 2)), x);
    CHECK_SAME(tk_reshape(tk_reshape(x, TK_SHAPE(12)), TK_SHAPE(2, 3, 2)), x);
    CHECK_SAME(tk_reshape(tk_reshape(x, TK_SHAPE(6, 2)), TK_SHAPE(12)),
               tk_reshape(x, TK_SHAPE(12)));
    CHECK_ERROR(tk_reshape(x, TK_SHAPE(5, -1)), TK_SHAPE_ERROR,
                "reshape: 12 elements do not divide");
    CHECK_ERROR(tk_reshape(x, TK_SHAPE(-1, -1)), TK_SHAPE_ERROR, "reshape: axis 1 has length -1");
    CHECK_ERROR(tk_reshape(empty, TK_SHAPE(0, -1)), TK_SHAPE_ERROR, "reshape: 0 elements");
    CHECK_ERROR(tk_reshape(x, TK_ALL_AXES), TK_INVALID_ARGUMENT, "reshape: the list is not given");
    CHECK(tk_flatten(x, 1, -1), TK_FLOAT32, TK_SHAPE(2, 6), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    CHECK(tk_flatten(tk_scalar(ctx, 3), 0, -1), TK_FLOAT32, TK_SHAPE(1), 3);
    CHECK_ERROR(tk_flatten(x, 0, 5), TK_AXIS_ERROR, "flatten: axis 5");
    CHECK_ERROR(tk_flatten(x, 2, 1), TK_AXIS_ERROR, "flatten: start axis 2");
    CHECK(tk_unflatten(x, 1, TK_SHAPE(-1, 1)), TK_FLOAT32, TK_SHAPE(2, 3, 1, 2), 0, 1, 2, 3, 4, 5,
          6, 7, 8, 9, 10, 11);
    CHECK_ERROR(tk_unflatten(x, 0, TK_SHAPE(3)), TK_SHAPE_ERROR, "unflatten: axis 0");
    CHECK(tk_expand_dims(x, TK_AXES(0, -1)), TK_FLOAT32, TK_SHAPE(1, 2, 3, 2, 1), 0, 1, 2, 3, 4, 5,
          6, 7, 8, 9, 10, 11);
    CHECK_ERROR(tk_expand_dims(x, TK_AXES(-100)), TK_AXIS_ERROR, "expand_dims: axis -100");
    CHECK_SAME(tk_squeeze(tk_expand_dims(x, TK_AXES(1)), TK_ALL_AXES), x);
    CHECK_ERROR(tk_squeeze(x, TK_AXES(0)), TK_SHAPE_ERROR, "squeeze: axis 0");
    tk_scope_close(scope);
}

static void lengths_are_checked_before_anything_is_allocated(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    const int64_t huge = (int64_t)1 << 40;
    tk_array wide = tk_zeros(ctx, TK_SHAPE(huge), TK_UINT8);
    CHECK_ERROR(tk_reshape(wide, TK_SHAPE(huge, huge)), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_zeros(ctx, TK_SHAPE(huge, huge), TK_UINT8), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_repeat(wide, huge, 0), TK_OVERFLOW, "repeat");
    CHECK_ERROR(tk_tile(wide, TK_SHAPE(huge)), TK_OVERFLOW, "tile");
    CHECK_ERROR(tk_broadcast_to(wide, TK_SHAPE(huge, huge)), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_pad(wide, TK_AXES(INT64_MAX), TK_AXES(0), TK_NO_ARRAY), TK_OVERFLOW, "pad");
    CHECK_ERROR(tk_outer(wide, wide), TK_OVERFLOW, "63 bits");
    tk_array many[] = {wide, wide, wide};
    tk_array joined = tk_concatenate(many, 3, 0);
    assert_int_equal(tk_array_dim(joined, 0), 3 * huge);
    int64_t ones[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    CHECK_ERROR(tk_zeros(ctx, tk_axes_from(17, ones), TK_INT8), TK_SHAPE_ERROR, "at most 16");
    CHECK_ERROR(tk_reshape(X12, tk_axes_from(17, ones)), TK_SHAPE_ERROR, "at most 16");
    CHECK_ERROR(tk_broadcast_to(X12, tk_axes_from(1 << 20, ones)), TK_SHAPE_ERROR, "at most 16");
    CHECK_ERROR(tk_zeros(ctx, TK_SHAPE(2, -3), TK_INT8), TK_SHAPE_ERROR, "negative");
    tk_scope_close(scope);
}

static void permutations(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = X12;
    CHECK(tk_transpose(x, TK_ALL_AXES), TK_FLOAT32, TK_SHAPE(2, 3, 2), 0, 6, 2, 8, 4, 10, 1, 7, 3,
          9, 5, 11);
    CHECK(tk_transpose(x, TK_AXES(1, -1, 0)), TK_FLOAT32, TK_SHAPE(3, 2, 2), 0, 6, 1, 7, 2, 8, 3, 9,
          4, 10, 5, 11);
    CHECK(tk_swapaxes(x, 0, -1), TK_FLOAT32, TK_SHAPE(2, 3, 2), 0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5,
          11);
    CHECK(tk_moveaxis(x, 0, 1), TK_FLOAT32, TK_SHAPE(3, 2, 2), 0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10,
          11);
    CHECK(tk_moveaxis(x, -1, 0), TK_FLOAT32, TK_SHAPE(2, 2, 3), 0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9,
          11);
    CHECK_SAME(tk_transpose(tk_transpose(x, TK_AXES(1, 2, 0)), TK_AXES(2, 0, 1)), x);
    CHECK_SAME(tk_transpose(tk_transpose(x, TK_AXES(1, 2, 0)), TK_AXES(1, 2, 0)),
               tk_transpose(x, TK_AXES(2, 0, 1)));
    CHECK_SAME(tk_swapaxes(x, 1, 1), x);
    CHECK_ERROR(tk_transpose(x, TK_AXES(0, 1)), TK_INVALID_ARGUMENT,
                "transpose: axes has 2 entries");
    CHECK_ERROR(tk_transpose(x, TK_AXES(0, 1, 1)), TK_AXIS_ERROR,
                "transpose: axis 1 is given twice");
    CHECK_ERROR(tk_swapaxes(x, 0, 3), TK_AXIS_ERROR, "swapaxes: axis 3");
    CHECK_ERROR(tk_moveaxis(x, -4, 0), TK_AXIS_ERROR, "moveaxis: axis -4");
    tk_scope_close(scope);
}

static void slices(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_INT32, TK_SHAPE(7));
    const int64_t far = INT64_MAX;
    CHECK(tk_slice(x, TK_AXES(1), TK_AXES(-1), TK_AXES(2)), TK_INT32, TK_SHAPE(3), 1, 3, 5);
    CHECK(tk_slice(x, TK_AXES(-2), TK_AXES(-100), TK_AXES(-2)), TK_INT32, TK_SHAPE(3), 5, 3, 1);
    CHECK(tk_slice(x, TK_AXES(far), TK_AXES(-far), TK_AXES(-far)), TK_INT32, TK_SHAPE(1), 6);
    CHECK(tk_slice(x, TK_AXES(-far), TK_AXES(far), TK_AXES(far)), TK_INT32, TK_SHAPE(1), 0);
    CHECK_EMPTY(tk_slice(x, TK_AXES(5), TK_AXES(2), TK_ALL_AXES), TK_INT32, TK_SHAPE(0));
    CHECK(tk_slice(x, TK_ALL_AXES, TK_ALL_AXES, TK_AXES(-3)), TK_INT32, TK_SHAPE(3), 6, 3, 0);
    CHECK_SAME(tk_slice(x, TK_AXES(0), TK_AXES(100), TK_ALL_AXES), x);
    CHECK_SAME(tk_slice(x, TK_AXES(3), TK_AXES(4), TK_AXES(5)),
               tk_slice(x, TK_AXES(-4), TK_AXES(-3), TK_AXES(1)));
    CHECK_ERROR(tk_slice(x, TK_AXES(0), TK_AXES(1), TK_AXES(0)), TK_INVALID_ARGUMENT,
                "slice: axis 0: the step is 0");
    CHECK_ERROR(tk_slice(x, TK_AXES(0, 1), TK_AXES(1), TK_AXES(1)), TK_INVALID_ARGUMENT,
                "slice: start has 2 entries");
    CHECK(tk_flip(X12, TK_AXES(0, 2)), TK_FLOAT32, TK_SHAPE(2, 3, 2), 7, 6, 9, 8, 11, 10, 1, 0, 3,
          2, 5, 4);
    CHECK_SAME(tk_flip(tk_zeros(ctx, TK_SHAPE(0, 1), TK_INT8), TK_ALL_AXES),
               tk_zeros(ctx, TK_SHAPE(0, 1), TK_INT8));
    tk_scope_close(scope);
}

static void joins(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array a = ramp(ctx, TK_INT8, TK_SHAPE(2, 2)), b = tk_ones(ctx, TK_SHAPE(2, 1), TK_FLOAT16);
    tk_array pair[] = {a, b}, same[] = {a, tk_negative(a)};
    CHECK(tk_concatenate(pair, 2, -1), TK_FLOAT16, TK_SHAPE(2, 3), 0, 1, 1, 2, 3, 1);
    CHECK(tk_stack(same, 2, 1), TK_INT8, TK_SHAPE(2, 2, 2), 0, 1, 0, -1, 2, 3, -2, -3);
    CHECK(tk_stack(same, 2, -1), TK_INT8, TK_SHAPE(2, 2, 2), 0, 0, 1, -1, 2, -2, 3, -3);
    CHECK_SAME(tk_concatenate(pair, 1, 0), a);
    CHECK_ERROR(tk_concatenate(pair, 2, 0), TK_SHAPE_ERROR,
                "concatenate: operand 0 is f16(2, 2) and operand 1");
    CHECK_ERROR(tk_concatenate(pair, 2, 2), TK_AXIS_ERROR, "concatenate: axis 2");
    CHECK_ERROR(tk_stack(pair, 2, 0), TK_SHAPE_ERROR, "stack: array 0");
    tk_scope_close(scope);
}

static void check_parts(tk_array a, tk_axes cuts, size_t count, const double *sums) {
    tk_arrays parts = {0};
    assert_ok(tk_split(a, cuts, 0, &parts));
    assert_int_equal(parts.count, count);
    for (size_t i = 0; i < count; i++)
        CHECK(tk_sum(parts.items[i], TK_ALL_AXES, false), TK_INT32, TK_SCALAR, sums[i]);
    tk_arrays_clear(&parts);
}

static void splits(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_INT32, TK_SHAPE(6));
    check_parts(x, TK_AXES(2, -1), 3, (const double[]){1, 9, 5});
    check_parts(x, TK_AXES(4, 2, 100), 4, (const double[]){6, 0, 14, 0});
    tk_arrays parts = {0};
    assert_ok(tk_split_equal(x, 3, -1, &parts));
    assert_int_equal(parts.count, 3);
    CHECK(parts.items[2], TK_INT32, TK_SHAPE(2), 4, 5);
    tk_arrays_clear(&parts);
    assert_int_equal(tk_split_equal(x, 4, 0, &parts), TK_INVALID_ARGUMENT);
    assert_non_null(strstr(tk_error_message(), "split: axis 0 of i32(6,) does not divide into 4"));
    assert_int_equal(tk_split(x, TK_AXES(1), 1, &parts), TK_AXIS_ERROR);
    tk_arrays_clear(&parts);
    tk_scope_close(scope);
}

static void pads(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_FLOAT16, TK_SHAPE(2, 2)), none = tk_zeros(ctx, TK_SHAPE(0), TK_INT8);
    CHECK(tk_pad(x, TK_AXES(1, 0), TK_AXES(0, 2), TK_NO_ARRAY), TK_FLOAT16, TK_SHAPE(3, 4), 0, 0, 0,
          0, 0, 1, 0, 0, 2, 3, 0, 0);
    CHECK(tk_pad(x, TK_AXES(0, 1), TK_AXES(0, 0), tk_scalar(ctx, 7)), TK_FLOAT16, TK_SHAPE(2, 3), 7,
          0, 1, 7, 2, 3);
    CHECK_SAME(tk_pad(x, TK_AXES(0, 0), TK_AXES(0, 0), TK_NO_ARRAY), x);
    CHECK_SAME(tk_pad(none, TK_AXES(0), TK_AXES(0), TK_NO_ARRAY), none);
    CHECK(tk_pad(none, TK_AXES(1), TK_AXES(1), tk_scalar_int(ctx, 3)), TK_INT8, TK_SHAPE(2), 3, 3);
    CHECK_ERROR(tk_pad(x, TK_AXES(-1, 0), TK_AXES(0, 0), TK_NO_ARRAY), TK_INVALID_ARGUMENT,
                "pad: axis 0: widths -1");
    CHECK_ERROR(tk_pad(x, TK_AXES(1), TK_AXES(1), TK_NO_ARRAY), TK_INVALID_ARGUMENT,
                "pad: 1 low and 1 high");
    CHECK_ERROR(tk_pad(x, TK_AXES(1, 0), TK_AXES(0, 0), x), TK_SHAPE_ERROR,
                "pad: the value is f16(2, 2)");
    tk_scope_close(scope);
}

static void repetitions(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_INT32, TK_SHAPE(2, 2));
    CHECK(tk_tile(x, TK_SHAPE(2, 3)), TK_INT32, TK_SHAPE(4, 6), 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3,
          0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3);
    CHECK(tk_tile(x, TK_SHAPE(2)), TK_INT32, TK_SHAPE(2, 4), 0, 1, 0, 1, 2, 3, 2, 3);
    CHECK(tk_tile(x, TK_SHAPE(2, 1, 2)), TK_INT32, TK_SHAPE(2, 2, 4), 0, 1, 0, 1, 2, 3, 2, 3, 0, 1,
          0, 1, 2, 3, 2, 3);
    CHECK_EMPTY(tk_tile(x, TK_SHAPE(0, 2)), TK_INT32, TK_SHAPE(0, 4));
    CHECK_SAME(tk_tile(x, TK_SHAPE(1, 1)), x);
    CHECK_ERROR(tk_tile(x, TK_SHAPE(-1)), TK_INVALID_ARGUMENT, "tile: -1 repetitions");
    tk_shape all_twos = {.count = 16}, ones = {.count = 16};
    for (int i = 0; i < 16; i++) all_twos.items[i] = i % 2 ? 1 : 2, ones.items[i] = 1;
    tk_array wide = tk_tile(tk_reshape(ramp(ctx, TK_INT32, TK_SHAPE(1)), ones), all_twos);
    assert_int_equal(tk_array_size(wide), 256);
    CHECK(tk_repeat(x, 2, 0), TK_INT32, TK_SHAPE(4, 2), 0, 1, 0, 1, 2, 3, 2, 3);
    CHECK(tk_repeat(x, 3, -1), TK_INT32, TK_SHAPE(2, 6), 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3);
    CHECK_EMPTY(tk_repeat(x, 0, 0), TK_INT32, TK_SHAPE(0, 2));
    CHECK_ERROR(tk_repeat(x, -1, 0), TK_INVALID_ARGUMENT, "repeat: -1 repeats");
    tk_scope_close(scope);
}

static void rolls(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_INT32, TK_SHAPE(2, 3));
    CHECK(tk_roll(x, TK_AXES(2), TK_ALL_AXES), TK_INT32, TK_SHAPE(2, 3), 4, 5, 0, 1, 2, 3);
    CHECK(tk_roll(x, TK_AXES(-1), TK_AXES(1)), TK_INT32, TK_SHAPE(2, 3), 1, 2, 0, 4, 5, 3);
    CHECK(tk_roll(x, TK_AXES(1, 2), TK_AXES(0, 1)), TK_INT32, TK_SHAPE(2, 3), 4, 5, 3, 1, 2, 0);
    CHECK(tk_roll(x, TK_AXES(1, 1), TK_AXES(1, 1)), TK_INT32, TK_SHAPE(2, 3), 1, 2, 0, 4, 5, 3);
    CHECK(tk_roll(x, TK_AXES(INT64_MAX), TK_AXES(1)), TK_INT32, TK_SHAPE(2, 3), 2, 0, 1, 5, 3, 4);
    CHECK_SAME(tk_roll(x, TK_AXES(3), TK_AXES(1)), x);
    CHECK_ERROR(tk_roll(x, TK_AXES(1, 2, 3), TK_AXES(0, 1)), TK_INVALID_ARGUMENT,
                "roll: 3 shifts for 2 axes");
    tk_scope_close(scope);
}

static void views(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_FLOAT32, TK_SHAPE(2, 2));
    CHECK(tk_view(x, TK_UINT32), TK_UINT32, TK_SHAPE(2, 2), 0, 1065353216, 1073741824, 1077936128);
    CHECK(tk_view(x, TK_UINT16), TK_UINT16, TK_SHAPE(2, 4), 0, 0, 0, 16256, 0, 16384, 0, 16448);
    CHECK_SAME(tk_view(x, TK_FLOAT32), x);
    CHECK_ERROR(tk_view(ramp(ctx, TK_FLOAT32, TK_SHAPE(3)), TK_FLOAT64), TK_SHAPE_ERROR, "view");
    CHECK(tk_contiguous(tk_transpose(x, TK_ALL_AXES)), TK_FLOAT32, TK_SHAPE(2, 2), 0, 2, 1, 3);
    CHECK(tk_stop_gradient(x), TK_FLOAT32, TK_SHAPE(2, 2), 0, 1, 2, 3);
    CHECK_SAME(tk_broadcast_to(x, TK_SHAPE(2, 2)), x);
    CHECK_ERROR(tk_broadcast_to(x, TK_SHAPE(3, 2)), TK_SHAPE_ERROR,
                "does not broadcast to shape (3, 2)");
    tk_scope_close(scope);
}

static void errors_stick(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array bad = tk_squeeze(X12, TK_AXES(1)), pair[] = {X12, bad};
    CHECK_ERROR(
        tk_reshape(tk_roll(tk_tile(bad, TK_SHAPE(2)), TK_AXES(1), TK_ALL_AXES), TK_SHAPE(1)),
        TK_SHAPE_ERROR, "squeeze");
    CHECK_ERROR(tk_stack(pair, 2, 0), TK_SHAPE_ERROR, "squeeze");
    CHECK_ERROR(tk_pad(tk_zeros(ctx, TK_SHAPE(1), TK_INT8), TK_AXES(0), TK_AXES(0), bad),
                TK_SHAPE_ERROR, "squeeze");
    CHECK_ERROR(tk_einsum("ijk,ijk", pair, 2), TK_SHAPE_ERROR, "squeeze");
    CHECK_ERROR(tk_var(tk_clip(bad, X12, TK_NO_ARRAY), TK_ALL_AXES, false, 0), TK_SHAPE_ERROR,
                "squeeze");
    CHECK_ERROR(tk_take(X12, bad, 0), TK_SHAPE_ERROR, "squeeze");
    CHECK_ERROR(tk_random_bernoulli(bad, TK_SCALAR, TK_NO_ARRAY), TK_SHAPE_ERROR, "squeeze");
    tk_scope_close(scope);
}

/* Wherever the memory ends, a builder gives a result or TK_OUT_OF_MEMORY, and the context goes on.
 */
static void memory_runs_out(void **state) {
    tk_context *ctx = *state;
    tk_status seen = TK_OK;
    for (int64_t n = 1; n < 60; n++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array x = ramp(ctx, TK_FLOAT32, TK_SHAPE(3, 4)), many[40];
        for (int i = 0; i < 40; i++)
            many[i] = tk_slice(x, TK_AXES(0, 0), TK_AXES(3, 1 + i % 4), TK_ALL_AXES);
        tk_arrays parts = {0};
        tk_alloc_fail_after(n);
        tk_array built[] = {tk_concatenate(many, 40, 1),
                            tk_einsum("ij,kj->ik", (tk_array[]){x, x}, 2),
                            tk_roll(tk_tile(x, TK_SHAPE(2, 2)), TK_AXES(1), TK_ALL_AXES),
                            tk_std(x, TK_ALL_AXES, false, 0)};
        tk_status split = tk_split(x, TK_AXES(1, 2), 0, &parts);
        tk_alloc_fail_after(0);
        assert_true(split == TK_OK || split == TK_OUT_OF_MEMORY);
        for (int i = 0; i < 4; i++) {
            tk_status status = tk_array_status(built[i]);
            assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
            if (status != TK_OK) seen = status;
        }
        tk_arrays_clear(&parts);
        tk_scope_close(scope);
    }
    assert_int_equal(seen, TK_OUT_OF_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshapes),
        cmocka_unit_test(lengths_are_checked_before_anything_is_allocated),
        cmocka_unit_test(permutations),
        cmocka_unit_test(slices),
        cmocka_unit_test(joins),
        cmocka_unit_test(splits),
        cmocka_unit_test(pads),
        cmocka_unit_test(repetitions),
        cmocka_unit_test(rolls),
        cmocka_unit_test(views),
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
