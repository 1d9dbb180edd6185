/* Indexing builders: negative and narrow indices, broadcasting beside the axis, updates, sorting.
 */
#include "support/build_check.h"

#define X mixed(ctx, TK_FLOAT32, TK_SHAPE(2, 3, 2))

static tk_array indices(tk_context *ctx, tk_dtype dtype, tk_shape shape, const int64_t *values) {
    return tk_astype(tk_from_data(ctx, values, shape, TK_INT64), dtype);
}

static void takes(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    const int64_t at[] = {-1, 0, 1, -2};
    tk_array x = X, square = indices(ctx, TK_INT8, TK_SHAPE(2, 2), at);
    CHECK(tk_take(x, indices(ctx, TK_INT64, TK_SHAPE(4), at), 0), TK_FLOAT32, TK_SHAPE(4, 3, 2), 4,
          0, -4, 3, -1, -5, -5, 2, -2, 5, 1, -3, 4, 0, -4, 3, -1, -5, -5, 2, -2, 5, 1, -3);
    CHECK(tk_take(x, square, 1), TK_FLOAT32, TK_SHAPE(2, 2, 2, 2), 1, -3, -5, 2, -2, 5, -2, 5, -1,
          -5, 4, 0, -4, 3, -4, 3);
    CHECK(tk_take(x, square, -1), TK_FLOAT32, TK_SHAPE(2, 3, 2, 2), 2, -5, 2, -5, 5, -2, 5, -2, -3,
          1, -3, 1, 0, 4, 0, 4, 3, -4, 3, -4, -5, -1, -5, -1);
    CHECK(tk_take(x, tk_scalar_int(ctx, -1), 1), TK_FLOAT32, TK_SHAPE(2, 2), 1, -3, -1, -5);
    CHECK_EMPTY(tk_take(x, tk_zeros(ctx, TK_SHAPE(0), TK_UINT32), 1), TK_FLOAT32,
                TK_SHAPE(2, 0, 2));
    const int64_t far[] = {-1, -128, 127};
    tk_array line = tk_arange(ctx, 0, 1000, 1, TK_FLOAT32);
    CHECK(tk_take(line, indices(ctx, TK_INT8, TK_SHAPE(3), far), 0), TK_FLOAT32, TK_SHAPE(3), 999,
          872, 127);
    tk_array empty = tk_zeros(ctx, TK_SHAPE(0, 2), TK_FLOAT32);
    CHECK_EMPTY(tk_take(empty, tk_zeros(ctx, TK_SHAPE(0), TK_INT32), 0), TK_FLOAT32,
                TK_SHAPE(0, 2));
    CHECK_ERROR(tk_take(empty, tk_zeros(ctx, TK_SHAPE(1), TK_INT32), 0), TK_INDEX_ERROR,
                "take: 1 indices into axis 0");
    CHECK_ERROR(tk_take(x, x, 0), TK_DTYPE_ERROR, "take: indices are f32(2, 3, 2)");
    CHECK_ERROR(tk_take(x, square, -4), TK_AXIS_ERROR, "take: axis -4");
    assert_int_equal(tk_eval(tk_take(x, tk_scalar_int(ctx, 3), 1)), TK_INDEX_ERROR);
    assert_int_equal(tk_eval(tk_take(x, tk_scalar_int(ctx, -4), 1)), TK_INDEX_ERROR);
    tk_scope_close(scope);
}

static void along_an_axis(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    const int64_t at[] = {2, -1, 0, -2};
    tk_array x = X, one = indices(ctx, TK_INT32, TK_SHAPE(1, 4, 1), at);
    const int64_t two[] = {2, -2};
    tk_array where = indices(ctx, TK_INT32, TK_SHAPE(1, 2, 1), two),
             values = ramp(ctx, TK_FLOAT32, TK_SHAPE(2, 1, 1));
    CHECK(tk_take_along_axis(x, one, 1), TK_FLOAT32, TK_SHAPE(2, 4, 2), 1, -3, 1, -3, -5, 2, -2, 5,
          -1, -5, -1, -5, 4, 0, -4, 3);
    CHECK(tk_put_along_axis(x, where, tk_scalar(ctx, 9), 1), TK_FLOAT32, TK_SHAPE(2, 3, 2), -5, 2,
          9, 9, 9, 9, 4, 0, 9, 9, 9, 9);
    CHECK(tk_put_along_axis(x, where, values, 1), TK_FLOAT32, TK_SHAPE(2, 3, 2), -5, 2, 0, 0, 0, 0,
          4, 0, 1, 1, 1, 1);
    CHECK(tk_scatter_add_along_axis(x, where, tk_add(values, tk_scalar(ctx, 1)), -2), TK_FLOAT32,
          TK_SHAPE(2, 3, 2), -5, 2, -1, 6, 2, -2, 4, 0, -2, 5, 1, -3);
    CHECK_ERROR(tk_take_along_axis(x, one, -100), TK_AXIS_ERROR, "take_along_axis: axis -100");
    CHECK_ERROR(tk_take_along_axis(x, tk_scalar_int(ctx, 0), 0), TK_SHAPE_ERROR,
                "take_along_axis: indices are i32()");
    CHECK_ERROR(tk_take_along_axis(x, one, 0), TK_SHAPE_ERROR, "differ on axis 1");
    CHECK_ERROR(tk_put_along_axis(x, where, X, 1), TK_SHAPE_ERROR,
                "put_along_axis: values is f32(2, 3, 2)");
    tk_scope_close(scope);
}

static void tuples(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    const int64_t rows[] = {0, -1, 0}, columns[] = {2, -3, 2};
    tk_array x = X, at[] = {indices(ctx, TK_INT64, TK_SHAPE(3), rows),
                            indices(ctx, TK_INT16, TK_SHAPE(3), columns)};
    tk_array updates = ramp(ctx, TK_INT32, TK_SHAPE(3, 1, 1, 2));
    CHECK(tk_gather(x, at, 2, TK_AXES(0, 1), TK_SHAPE(1, 1, 2)), TK_FLOAT32, TK_SHAPE(3, 1, 1, 2),
          1, -3, 4, 0, 1, -3);
    CHECK(tk_scatter_nd(x, updates, at, 2, TK_AXES(0, 1), TK_SET), TK_FLOAT32, TK_SHAPE(2, 3, 2),
          -5, 2, -2, 5, 4, 5, 2, 3, -4, 3, -1, -5);
    CHECK(tk_scatter_nd(x, updates, at, 2, TK_AXES(0, 1), TK_ADD), TK_FLOAT32, TK_SHAPE(2, 3, 2),
          -5, 2, -2, 5, 5, 3, 6, 3, -4, 3, -1, -5);
    CHECK(tk_scatter_nd(x, updates, at, 2, TK_AXES(0, 1), TK_MAX), TK_FLOAT32, TK_SHAPE(2, 3, 2),
          -5, 2, -2, 5, 4, 5, 4, 3, -4, 3, -1, -5);
    CHECK(tk_scatter_nd(x, updates, at, 2, TK_AXES(0, 1), TK_PROD), TK_FLOAT32, TK_SHAPE(2, 3, 2),
          -5, 2, -2, 5, 0, -15, 8, 0, -4, 3, -1, -5);
    CHECK_ERROR(tk_gather(x, at, 1, TK_AXES(0, 1), TK_SHAPE(1, 1, 2)), TK_INVALID_ARGUMENT,
                "gather: 1 index arrays for 2 axes");
    CHECK_ERROR(tk_scatter_nd(x, x, at, 2, TK_AXES(0, 1), TK_ADD), TK_SHAPE_ERROR, "scatter");
    CHECK_ERROR(tk_scatter_nd(x, updates, at, 2, TK_AXES(1, 1), TK_ADD), TK_AXIS_ERROR,
                "scatter_nd: axis 1 is given twice");
    tk_scope_close(scope);
}

static void slice_updates(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = ramp(ctx, TK_INT32, TK_SHAPE(3, 3)), u = ramp(ctx, TK_FLOAT32, TK_SHAPE(1, 2));
    tk_axes none = TK_ALL_AXES, zero = TK_AXES(0, 0);
    CHECK(tk_slice_update(x, u, TK_AXES(0, -1), TK_AXES(3, 0), TK_AXES(2, -1), TK_SET), TK_INT32,
          TK_SHAPE(3, 3), 0, 1, 0, 3, 4, 5, 6, 1, 0);
    CHECK(tk_slice_update(x, u, TK_AXES(0, -1), TK_AXES(3, 0), TK_AXES(2, -1), TK_ADD), TK_INT32,
          TK_SHAPE(3, 3), 0, 2, 2, 3, 4, 5, 6, 8, 8);
    CHECK(tk_slice_update(x, tk_ones(ctx, TK_SHAPE(1, 1, 3), TK_INT32), zero, TK_AXES(1, 3), none,
                          TK_SET),
          TK_INT32, TK_SHAPE(3, 3), 1, 1, 1, 3, 4, 5, 6, 7, 8);
    CHECK_SAME(tk_slice_update(x, tk_scalar(ctx, 1), zero, zero, none, TK_SET), x);
    CHECK_SAME(tk_slice_update(x, tk_transpose(x, none), none, none, none, TK_SET),
               tk_transpose(x, none));
    CHECK_ERROR(tk_slice_update(x, u, zero, TK_AXES(1, 1), none, TK_SET), TK_SHAPE_ERROR,
                "slice_update: update is i32(1, 2)");
    CHECK_ERROR(tk_slice_update(x, u, zero, TK_AXES(1, 2), zero, TK_SET), TK_INVALID_ARGUMENT,
                "slice_update: axis 0: the step is 0");
    tk_scope_close(scope);
}

/* A box of random numbers added into zeros must land where it belongs, whatever the strides. */
static void slice_update_adds_at_the_right_place(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array zeros = tk_zeros(ctx, TK_SHAPE(17, 33), TK_FLOAT32),
             u = mixed(ctx, TK_FLOAT32, TK_SHAPE(9, 16));
    tk_array placed =
        tk_slice_update(zeros, u, TK_AXES(4, 8), TK_AXES(13, 24), TK_ALL_AXES, TK_ADD);
    tk_array back = tk_slice(placed, TK_AXES(4, 8), TK_AXES(13, 24), TK_ALL_AXES);
    CHECK(tk_array_equal(back, u, false), TK_BOOL, TK_SCALAR, 1);
    CHECK(tk_array_equal(tk_sum(tk_abs(placed), TK_ALL_AXES, false),
                         tk_sum(tk_abs(u), TK_ALL_AXES, false), false),
          TK_BOOL, TK_SCALAR, 1);
    tk_scope_close(scope);
}

static void sorting(void **state) {
    tk_context *ctx = *state;
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = mixed(ctx, TK_FLOAT16, TK_SHAPE(2, 5));
    CHECK(tk_sort(x, 0), TK_FLOAT16, TK_SHAPE(2, 5), -5, 2, -2, -4, 1, -3, 4, 0, 5, 3);
    CHECK(tk_sort(tk_flip(x, TK_AXES(1)), -1), TK_FLOAT16, TK_SHAPE(2, 5), -5, -2, 1, 2, 5, -4, -3,
          0, 3, 4);
    CHECK(tk_argsort(x, 1), TK_UINT32, TK_SHAPE(2, 5), 0, 2, 4, 1, 3, 3, 0, 2, 4, 1);
    CHECK(tk_take(tk_partition(x, -2, 1), tk_scalar_int(ctx, 3), 1), TK_FLOAT16, TK_SHAPE(2), 2, 3);
    CHECK(tk_take_along_axis(
              x, tk_slice(tk_argpartition(x, 2, 1), TK_AXES(0, 2), TK_AXES(2, 3), TK_ALL_AXES), 1),
          TK_FLOAT16, TK_SHAPE(2, 1), 1, 0);
    CHECK(tk_sort(tk_topk(x, 2, 1), 1), TK_FLOAT16, TK_SHAPE(2, 2), 2, 5, 3, 4);
    CHECK_SAME(tk_topk(x, 5, 1), x);
    CHECK_EMPTY(tk_topk(x, 0, 1), TK_FLOAT16, TK_SHAPE(2, 0));
    CHECK_ERROR(tk_topk(x, 6, 1), TK_INVALID_ARGUMENT, "topk: k is 6 for axis 1");
    CHECK_ERROR(tk_partition(x, 5, 1), TK_INVALID_ARGUMENT, "partition: kth is 5");
    CHECK_ERROR(tk_sort(tk_scalar(ctx, 1), -1), TK_AXIS_ERROR, "sort: axis -1");
    tk_scope_close(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes),
        cmocka_unit_test(along_an_axis),
        cmocka_unit_test(tuples),
        cmocka_unit_test(slice_updates),
        cmocka_unit_test(slice_update_adds_at_the_right_place),
        cmocka_unit_test(sorting),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
