/* What lies outside: axes, dimension products beyond 31 and 63 bits, indices. Axes and attributes
 * are tried on every row of the op table, so that a new op is checked without an edit here. */
#include <stdio.h>

#include "edge/edge_check.h"
#include "support/op_calls.h"

/* ---- axes ---- */

static bool is_axis(const char *name) {
    static const char *const names[] = {"axis",        "axis1",      "axis2",   "source",
                                        "destination", "start_axis", "end_axis"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

/* Arguments that would do, were the axis in range: operands of shape (2, 2, 2). */
static void plain_values(tk_context *ctx, const op_row *row, op_value *values, tk_array *list) {
    for (int i = 0; i < row->n_params; i++) {
        const char *type = row->params[i].type;
        values[i] = (op_value){.axes = TK_AXES(0), .dtype = TK_FLOAT32, .text = "ijk->i"};
        if (!strcmp(type, "")) values[i].array = tk_ones(ctx, TK_SHAPE(2, 2, 2), TK_FLOAT32);
        if (!strcmp(row->params[i].name, "indices") && !strcmp(type, ""))
            values[i].array = tk_zeros(ctx, TK_SHAPE(2, 2, 2), TK_INT32);
        if (!strcmp(type, "shape")) values[i].axes = TK_SHAPE(2, 1);
        if (!strcmp(row->params[i].name, "sections")) values[i].integer = 1;
        if (strcmp(type, "arrays")) continue;
        *list = tk_zeros(ctx, TK_SHAPE(2, 2, 2), TK_INT32);
        values[i].arrays = list;
        values[i].count = 1;
    }
}

static void check_axis_error(tk_context *ctx, const op_row *row, const op_value *values,
                             const char *param, int64_t given) {
    tk_arrays results = {0};
    tk_status status = row->call(ctx, values, &results);
    for (size_t i = 0; status == TK_OK && i < results.count; i++)
        status = tk_array_status(results.items[i]);
    if (status != TK_AXIS_ERROR)
        print_error("tk_%s with %s = %lld: %s: %s\n", row->name, param, (long long)given,
                    tk_status_name(status), tk_error_message());
    assert_int_equal(status, TK_AXIS_ERROR);
    tk_arrays_clear(&results);
}

/* An axis far below the range. Every op that has one. */
static void axes_out_of_range(void **state) {
    tk_context *ctx = *state;
    static const int64_t wrong[] = {4, -5, 100, -100, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    int tried = 0;
    for (size_t r = 0; r < op_row_count; r++) {
        for (int p = 0; p < op_rows[r].n_params; p++) {
            if (!is_axis(op_rows[r].params[p].name)) continue;
            for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                tk_scope scope = tk_scope_open(ctx);
                op_value values[OP_PARAMS_MAX];
                tk_array list;
                plain_values(ctx, &op_rows[r], values, &list);
                values[p].integer = wrong[i];
                check_axis_error(ctx, &op_rows[r], values, op_rows[r].params[p].name, wrong[i]);
                tk_scope_close(scope);
                tried++;
            }
        }
    }
    assert_true(tried > 100);
}

/* Lists of axes: out of range, given twice, too many. */
static void lists_of_axes_out_of_range(void **state) {
    tk_context *ctx = *state;
    const tk_axes wrong[] = {TK_AXES(7),    TK_AXES(-8),    TK_AXES(INT64_MAX),
                             TK_AXES(0, 0), TK_AXES(1, -2), TK_AXES(0, 1, 2, 3, 0)};
    int tried = 0;
    for (size_t r = 0; r < op_row_count; r++) {
        const op_row *row = &op_rows[r];
        for (int p = 0; p < row->n_params; p++) {
            if (strcmp(row->params[p].name, "axes") || !strcmp(row->name, "gather") ||
                !strcmp(row->name, "scatter_nd") || !strcmp(row->name, "roll") ||
                !strcmp(row->name, "transpose"))
                continue;
            for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                bool is_position = !strncmp(row->name, "arg", 3);
                if (is_position && i >= 3) continue; /* one axis only: another refusal */
                if (!strcmp(row->name, "expand_dims") && i >= 4)
                    continue; /* in range of the result */
                tk_scope scope = tk_scope_open(ctx);
                op_value values[OP_PARAMS_MAX];
                tk_array list;
                plain_values(ctx, row, values, &list);
                values[p].axes = wrong[i];
                check_axis_error(ctx, row, values, "axes", (int64_t)i);
                tk_scope_close(scope);
                tried++;
            }
        }
    }
    assert_true(tried > 50);
    tk_array x = tk_ones(ctx, TK_SHAPE(2, 2, 2), TK_FLOAT32);
    CHECK_ERROR(tk_transpose(x, TK_AXES(0, 1, 1)), TK_AXIS_ERROR, "twice");
    CHECK_ERROR(tk_sum(x, tk_axes_from(17, NULL), false), TK_AXIS_ERROR, "17");
}

/* ---- dimension products ---- */

static size_t allocations(tk_context *ctx) {
    tk_memory_info info = tk_device_memory(tk_context_device(ctx));
    return info.hits + info.misses;
}

/* Products of lengths beyond 2^63 are errors, before anything is allocated. */
static void lengths_beyond_63_bits(void **state) {
    tk_context *ctx = *state;
    int64_t half = INT64_C(1) << 31, large = INT64_C(1) << 62;
    tk_array wide = tk_zeros(ctx, TK_SHAPE(half, half), TK_UINT8); /* 2^62 bytes, lazy */
    assert_ok(tk_array_status(wide));
    size_t before = allocations(ctx);
    tk_array four[] = {wide, wide, wide, wide}, two[] = {wide, wide};
    CHECK_ERROR(tk_concatenate(four, 4, 0), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_concatenate(two, 2, 1), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_stack(four, 4, 0), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_repeat(wide, 4, 0), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_repeat(wide, large, 0), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_tile(wide, TK_SHAPE(2, 2)), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_outer(wide, wide), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_broadcast_to(wide, TK_SHAPE(4, half, half)), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_astype(wide, TK_FLOAT32), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_pad(wide, TK_AXES(large, 0), TK_AXES(large, 0), TK_NO_ARRAY), TK_OVERFLOW, "");
    CHECK_ERROR(tk_zeros(ctx, TK_SHAPE(large, 2), TK_UINT8), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_zeros(ctx, TK_SHAPE(INT64_C(1) << 60), TK_FLOAT64), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_eye(ctx, half, half, 0, TK_FLOAT32), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_matmul(tk_zeros(ctx, TK_SHAPE(half, 1), TK_FLOAT32),
                          tk_zeros(ctx, TK_SHAPE(1, half), TK_FLOAT32)),
                TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_random_normal(ctx, TK_SHAPE(large, 4), TK_FLOAT32, 0, 1, tk_random_key(ctx, 1)),
                TK_OVERFLOW, "");
    CHECK_ERROR(tk_arange(ctx, 0, 1e19, 1, TK_FLOAT32), TK_OVERFLOW, "63 bits");
    CHECK_ERROR(tk_linspace(ctx, 0, 1, large, true, TK_FLOAT64), TK_OVERFLOW, "63 bits");
    tk_array vector = tk_ones(ctx, TK_SHAPE(3), TK_FLOAT32);
    CHECK_ERROR(tk_diag(vector, INT64_MIN), TK_OVERFLOW, "too large");
    CHECK_ERROR(tk_diag(vector, INT64_MAX), TK_OVERFLOW, "too large");
    CHECK_ERROR(tk_kron(wide, wide), TK_OVERFLOW, "");
    tk_array nothing = tk_zeros(ctx, TK_SHAPE(large, large, 0), TK_UINT8);
    assert_true(tk_array_status(nothing) != TK_OK || tk_array_size(nothing) == 0);
    CHECK_ERROR(tk_zeros(ctx, TK_SHAPE(-1, 2), TK_FLOAT32), TK_SHAPE_ERROR, "negative");
    assert_int_equal(allocations(ctx), before);
}

/* Products beyond 2^31 are ordinary shapes. */
static void lengths_beyond_31_bits(void **state) {
    tk_context *ctx = *state;
    int64_t length = INT64_C(1) << 30;
    tk_array part = tk_zeros(ctx, TK_SHAPE(length), TK_UINT8),
             parts[] = {part, part, part, part, part};
    size_t before = allocations(ctx);
    tk_array all = tk_concatenate(parts, 5, 0);
    assert_true(tk_array_size(all) == 5 * length);
    assert_true(tk_array_size(tk_repeat(part, 4, 0)) == 4 * length);
    tk_array tall = tk_zeros(ctx, TK_SHAPE(length, 2), TK_UINT8);
    assert_true(tk_array_size(tk_flatten(tall, 0, -1)) == 2 * length);
    assert_true(tk_array_size(tk_outer(part, tk_ones(ctx, TK_SHAPE(3), TK_UINT8))) == 3 * length);
    assert_int_equal(allocations(ctx), before);
    tk_array last =
        tk_slice(tk_broadcast_to(tk_ones(ctx, TK_SCALAR, TK_INT8), TK_SHAPE(8 * length)),
                 TK_AXES(8 * length - 1), TK_AXES(8 * length), TK_ALL_AXES);
    CHECK(last, TK_INT8, TK_SHAPE(1), 1);
}

/* Offsets beyond 2^31 elements into memory that is there but for its pages. */
static void offsets_beyond_31_bits(void **state) {
    tk_context *ctx = *state;
    int64_t rows = (INT64_C(1) << 31) / 1000 + 2, columns = 1000;
    tk_array row = tk_arange(ctx, 0, (double)columns, 1, TK_INT16);
    tk_array wide = tk_broadcast_to(row, TK_SHAPE(rows, columns));
    int64_t at[] = {rows - 1, 2147483, -1};
    tk_array indices = tk_from_data(ctx, at, TK_SHAPE(3), TK_INT64);
    tk_array taken = tk_take(wide, indices, 0);
    CHECK(tk_slice(taken, TK_AXES(0, 998), TK_AXES(3, 1000), TK_ALL_AXES), TK_INT16, TK_SHAPE(3, 2),
          998, 999, 998, 999, 998, 999);
    tk_array flat = tk_reshape(
        tk_broadcast_to(tk_ones(ctx, TK_SCALAR, TK_INT8), TK_SHAPE(rows, columns)), TK_SHAPE(-1));
    int64_t far[] = {rows * columns - 1, (INT64_C(1) << 31) - 1, INT64_C(1) << 31,
                     (INT64_C(1) << 31) + 1};
    tk_array there = tk_from_data(ctx, far, TK_SHAPE(4), TK_INT64);
    CHECK(tk_take(flat, there, 0), TK_INT8, TK_SHAPE(4), 1, 1, 1, 1);
}

/* ---- indices ---- */

static void check_fault(tk_array a, int64_t index, int line) {
    tk_status status = tk_eval(a);
    char text[32];
    snprintf(text, sizeof text, "index %lld ", (long long)index);
    if (status != TK_INDEX_ERROR || !strstr(tk_error_message(), text))
        print_error("line %d: %s: %s\n", line, tk_status_name(status), tk_error_message());
    _assert_int_equal(status, TK_INDEX_ERROR, __FILE__, line);
    _assert_true(strstr(tk_error_message(), text) != NULL, text, __FILE__, line);
}
#define CHECK_FAULT(array, index) check_fault((array), (index), __LINE__)

static tk_array numbers(tk_context *ctx) { return tk_arange(ctx, 1, 5, 1, TK_FLOAT32); }
static tk_array indices(tk_context *ctx, int64_t a, int64_t b, int64_t c) {
    return tk_from_data(ctx, (int64_t[]){a, b, c}, TK_SHAPE(3), TK_INT64);
}

static void reads_out_of_range_give_zero(void **state) {
    tk_context *ctx = *state;
    static const int64_t wrong[] = {4, 5, -5, INT64_MAX, INT64_MIN + 4, INT64_C(1) << 32};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array x = numbers(ctx), at = indices(ctx, 1, wrong[i], -1);
        int64_t reported = wrong[i] < 0 ? wrong[i] + 4 : wrong[i];
        tk_array taken = tk_take(x, at, 0), along = tk_take_along_axis(x, at, 0);
        tk_array list[] = {at};
        CHECK_FAULT(taken, reported);
        CHECK(taken, TK_FLOAT32, TK_SHAPE(3), 2, 0, 4);
        CHECK_FAULT(along, reported);
        CHECK(along, TK_FLOAT32, TK_SHAPE(3), 2, 0, 4);
        tk_array gathered = tk_gather(x, list, 1, TK_AXES(0), TK_SHAPE(1));
        CHECK_FAULT(gathered, reported);
        CHECK(gathered, TK_FLOAT32, TK_SHAPE(3, 1), 2, 0, 4);
        tk_scope_close(scope);
    }
}

static void writes_out_of_range_are_dropped(void **state) {
    tk_context *ctx = *state;
    tk_array x = numbers(ctx), at = indices(ctx, 1, 9, -1), list[] = {at};
    tk_array values = tk_full(tk_scalar(ctx, 10), TK_SHAPE(3), TK_FLOAT32);
    tk_array put = tk_put_along_axis(x, at, values, 0);
    CHECK_FAULT(put, 9);
    CHECK(put, TK_FLOAT32, TK_SHAPE(4), 1, 10, 3, 10);
    tk_array added = tk_scatter_add_along_axis(x, at, values, 0);
    CHECK_FAULT(added, 9);
    CHECK(added, TK_FLOAT32, TK_SHAPE(4), 1, 12, 3, 14);
    for (int mode = 0; mode < TK_MODE_COUNT; mode++) {
        tk_array updates = tk_reshape(values, TK_SHAPE(3, 1));
        tk_array written = tk_scatter_nd(x, updates, list, 1, TK_AXES(0), (tk_mode)mode);
        CHECK_FAULT(written, 9);
        const double second[] = {10, 12, 10, 2, 20}, last[] = {10, 14, 10, 4, 40};
        CHECK(written, TK_FLOAT32, TK_SHAPE(4), 1, second[mode], 3, last[mode]);
    }
}

/* Of several updates of one element the last one stays, or all of them count. */
static void equal_indices_in_writes(void **state) {
    tk_context *ctx = *state;
    tk_array x = tk_ones(ctx, TK_SHAPE(2), TK_FLOAT32), at = tk_zeros(ctx, TK_SHAPE(3), TK_INT32);
    tk_array values = tk_arange(ctx, 2, 5, 1, TK_FLOAT32), list[] = {at};
    tk_array updates = tk_reshape(values, TK_SHAPE(3, 1));
    const double first[] = {4, 10, 4, 1, 24}; /* set, add, max, min, prod */
    for (int mode = 0; mode < TK_MODE_COUNT; mode++)
        CHECK(tk_scatter_nd(x, updates, list, 1, TK_AXES(0), (tk_mode)mode), TK_FLOAT32,
              TK_SHAPE(2), first[mode], 1);
    CHECK(tk_put_along_axis(x, at, values, 0), TK_FLOAT32, TK_SHAPE(2), 4, 1);
    CHECK(tk_scatter_add_along_axis(x, at, values, 0), TK_FLOAT32, TK_SHAPE(2), 10, 1);
}

/* Counts and positions that an axis does not have. */
static void counts_beyond_the_axis(void **state) {
    tk_context *ctx = *state;
    tk_array x = numbers(ctx);
    CHECK_ERROR(tk_topk(x, 5, 0), TK_INVALID_ARGUMENT, "5");
    CHECK_ERROR(tk_topk(x, -1, 0), TK_INVALID_ARGUMENT, "-1");
    CHECK_ERROR(tk_partition(x, 4, 0), TK_INVALID_ARGUMENT, "4");
    CHECK_ERROR(tk_partition(x, -5, 0), TK_INVALID_ARGUMENT, "-5");
    CHECK_ERROR(tk_reshape(x, TK_SHAPE(3, -1)), TK_SHAPE_ERROR, "divide");
    CHECK_ERROR(tk_reshape(x, TK_SHAPE(-1, -1)), TK_SHAPE_ERROR, "");
    CHECK_ERROR(tk_repeat(x, -1, 0), TK_INVALID_ARGUMENT, "-1");
    CHECK_ERROR(tk_pad(x, TK_AXES(-1), TK_AXES(0), TK_NO_ARRAY), TK_INVALID_ARGUMENT, "-1");
    CHECK_ERROR(tk_take(x, x, 0), TK_DTYPE_ERROR, "integer");
    int64_t items[TK_AXES_MAX + 1] = {0};
    CHECK_ERROR(tk_zeros(ctx, tk_axes_from(TK_AXES_MAX + 1, items), TK_FLOAT32), TK_SHAPE_ERROR,
                "at most 16");
    CHECK_ERROR(tk_arange(ctx, 0, 1, 0, TK_FLOAT32), TK_INVALID_ARGUMENT, "not 0");
    CHECK_ERROR(tk_arange(ctx, 0, NAN, 1, TK_FLOAT32), TK_INVALID_ARGUMENT, "numbers");
    CHECK_EMPTY(tk_arange(ctx, 0, 1, -1, TK_FLOAT32), TK_FLOAT32, TK_SHAPE(0));
}

/* The first bad index, by position, whatever thread found it. */
static void the_first_bad_index_is_named(void **state) {
    tk_context *ctx = *state;
    int64_t count = 100000;
    tk_array at = tk_arange(ctx, 0, (double)count, 1, TK_INT64);
    tk_array x = tk_zeros(ctx, TK_SHAPE(777), TK_FLOAT32);
    assert_ok(tk_threads_set(4));
    for (int i = 0; i < 5; i++) CHECK_FAULT(tk_take(x, tk_add(at, tk_scalar_int(ctx, i)), 0), 777);
    assert_ok(tk_threads_set(0));
}

static void an_index_error_of_an_unwatched_evaluation_is_kept(void **state) {
    tk_context *ctx = *state;
    tk_array taken = tk_take(numbers(ctx), indices(ctx, 0, 44, 1), 0);
    assert_ok(tk_async_eval(&taken, 1));
    assert_ok(tk_synchronize(ctx));
    CHECK_FAULT(taken, 44);
    CHECK(taken, TK_FLOAT32, TK_SHAPE(3), 1, 0, 2);
}

static void classes_out_of_range(void **state) {
    tk_context *ctx = *state;
    tk_array logits = tk_zeros(ctx, TK_SHAPE(2, 3), TK_FLOAT32);
    tk_array targets = tk_from_data(ctx, (int64_t[]){1, 3}, TK_SHAPE(2), TK_INT64);
    CHECK_FAULT(tk_cross_entropy(logits, targets), 3);
    targets = tk_from_data(ctx, (int64_t[]){1, -1}, TK_SHAPE(2), TK_INT64); /* not the last class */
    CHECK_FAULT(tk_cross_entropy(logits, targets), -1);
}

static void slices_clamp(void **state) {
    tk_context *ctx = *state;
    tk_array x = numbers(ctx);
    int64_t top = INT64_MAX, low = INT64_MIN + 1;
    CHECK(tk_slice(x, TK_AXES(low), TK_AXES(top), TK_ALL_AXES), TK_FLOAT32, TK_SHAPE(4), 1, 2, 3,
          4);
    CHECK(tk_slice(x, TK_AXES(top), TK_AXES(low), TK_AXES(-1)), TK_FLOAT32, TK_SHAPE(4), 4, 3, 2,
          1);
    CHECK(tk_slice(x, TK_AXES(0), TK_AXES(4), TK_AXES(top)), TK_FLOAT32, TK_SHAPE(1), 1);
    CHECK(tk_slice(x, TK_AXES(3), TK_AXES(-5), TK_AXES(low)), TK_FLOAT32, TK_SHAPE(1), 4);
    CHECK_EMPTY(tk_slice(x, TK_AXES(3), TK_AXES(1), TK_ALL_AXES), TK_FLOAT32, TK_SHAPE(0));
    CHECK_ERROR(tk_slice(x, TK_AXES(0), TK_AXES(1), TK_AXES(0)), TK_INVALID_ARGUMENT, "step");
}

/* An offset box that is added to. */
static void boxes_that_are_added_to(void **state) {
    tk_context *ctx = *state;
    static const int64_t shapes[][2] = {{16, 16}, {1, 16}, {16, 1}, {1, 1}};
    for (int i = 0; i < 4; i++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array base = tk_zeros(ctx, TK_SHAPE(32, 32), TK_FLOAT32);
        tk_shape shape = TK_SHAPE(shapes[i][0], shapes[i][1]);
        tk_array update = tk_random_normal(ctx, shape, TK_FLOAT32, 0, 1, tk_random_key(ctx, 3));
        tk_array box = tk_broadcast_to(update, TK_SHAPE(16, 16));
        tk_array sum =
            tk_slice_update(base, update, TK_AXES(8, 8), TK_AXES(24, 24), TK_ALL_AXES, TK_ADD);
        tk_array inside = tk_slice(sum, TK_AXES(8, 8), TK_AXES(24, 24), TK_ALL_AXES);
        CHECK(tk_array_equal(inside, box, false), TK_BOOL, TK_SCALAR, 1);
        tk_array apart = tk_subtract(tk_sum(tk_abs(sum), TK_ALL_AXES, false),
                                     tk_sum(tk_abs(box), TK_ALL_AXES, false));
        CHECK_NEAR(apart, TK_FLOAT32, TK_SCALAR, 1e-2, 0);
        tk_scope_close(scope);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(axes_out_of_range),
        TEST(lists_of_axes_out_of_range),
        TEST(lengths_beyond_63_bits),
        TEST(lengths_beyond_31_bits),
        TEST(offsets_beyond_31_bits),
        TEST(reads_out_of_range_give_zero),
        TEST(writes_out_of_range_are_dropped),
        TEST(equal_indices_in_writes),
        TEST(counts_beyond_the_axis),
        TEST(the_first_bad_index_is_named),
        TEST(an_index_error_of_an_unwatched_evaluation_is_kept),
        TEST(classes_out_of_range),
        TEST(slices_clamp),
        TEST(boxes_that_are_added_to),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
