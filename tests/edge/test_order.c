/* Order with NaN, infinities and signed zeros: minimum, maximum, reductions, positions, sorting,
 * clipping, running extremes. Every float dtype, in memory of several layouts and lengths, since
 * vector code, its tail and plain code are different paths. */
#include "edge/edge_check.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static const tk_dtype floats[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};
#define EACH_FLOAT(i) for (int i = 0; i < 4; i++)

static tk_array row(tk_context *ctx, tk_dtype dtype, int64_t count, const double *values) {
    return tk_astype(tk_from_data(ctx, values, TK_SHAPE(count), TK_FLOAT64), dtype);
}
#define ROW(ctx, dtype, ...)                                                                       \
    row((ctx), (dtype), (int64_t)(sizeof(double[]){__VA_ARGS__} / sizeof(double)),                 \
        (double[]){__VA_ARGS__})

/* `value` at one place of 1, 2, 3, ... */
static tk_array ramp_with(tk_context *ctx, tk_dtype dtype, int64_t count, int64_t at,
                          double value) {
    double values[CHECK_MOST];
    for (int64_t i = 0; i < count; i++) values[i] = (double)(i % 50 + 1);
    values[at] = value;
    return row(ctx, dtype, count, values);
}

/* A NaN is not lost, whichever operand has it. */
static void extremes_of_two_give_nan(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array a = ROW(ctx, floats[d], NOT, 1, NOT, -INF, INF, NOT);
        tk_array b = ROW(ctx, floats[d], 1, NOT, NOT, NOT, NOT, -INF);
        CHECK(tk_maximum(a, b), floats[d], TK_SHAPE(6), NOT, NOT, NOT, NOT, NOT, NOT);
        CHECK(tk_minimum(a, b), floats[d], TK_SHAPE(6), NOT, NOT, NOT, NOT, NOT, NOT);
        tk_array x = ROW(ctx, floats[d], -INF, INF, 2), y = ROW(ctx, floats[d], INF, 3, -INF);
        CHECK(tk_maximum(x, y), floats[d], TK_SHAPE(3), INF, INF, 2);
        CHECK(tk_minimum(x, y), floats[d], TK_SHAPE(3), -INF, 3, -INF);
    }
}

/* Reductions too: every position of lengths around the width of vectors. */
static void extremes_of_many_give_nan(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) for (int64_t count = 1; count < 70; count += 1 + count / 4) {
        for (int64_t at = 0; at < count; at += 1 + count / 5) {
            tk_scope scope = tk_scope_open(ctx);
            tk_array x = ramp_with(ctx, floats[d], count, at, NOT);
            CHECK(tk_max(x, TK_ALL_AXES, false), floats[d], TK_SCALAR, NOT);
            CHECK(tk_min(x, TK_ALL_AXES, false), floats[d], TK_SCALAR, NOT);
            CHECK(tk_argmax(x, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, (double)at);
            CHECK(tk_argmin(x, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, (double)at);
            tk_array column = tk_reshape(x, TK_SHAPE(count, 1));
            CHECK(tk_max(column, TK_AXES(0), false), floats[d], TK_SHAPE(1), NOT);
            CHECK(tk_argmin(column, TK_AXES(0), true), TK_UINT32, TK_SHAPE(1, 1), (double)at);
            tk_scope_close(scope);
        }
    }
}

static void extremes_reach_infinity(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array x = ROW(ctx, floats[d], -INF, -INF, -INF);
        CHECK(tk_max(x, TK_ALL_AXES, false), floats[d], TK_SCALAR, -INF);
        CHECK(tk_argmax(x, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 0);
        tk_array y = ROW(ctx, floats[d], 1, INF, INF, -INF);
        CHECK(tk_max(y, TK_ALL_AXES, false), floats[d], TK_SCALAR, INF);
        CHECK(tk_min(y, TK_ALL_AXES, false), floats[d], TK_SCALAR, -INF);
        CHECK(tk_argmax(y, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 1);
    }
}

static void equal_extremes_give_the_first_position(void **state) {
    tk_context *ctx = *state;
    for (int d = 0; d < TK_DTYPE_COUNT; d++) {
        tk_array x = tk_astype(ROW(ctx, TK_FLOAT64, 0, 1, 1, 0, 1), (tk_dtype)d);
        CHECK(tk_argmax(x, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 1);
        CHECK(tk_argmin(x, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 0);
    }
    EACH_FLOAT(d) {
        tk_array zeros = ROW(ctx, floats[d], 0.0, -0.0, 0.0);
        CHECK(tk_argmax(zeros, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 0);
        CHECK(tk_argmin(zeros, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 0);
        tk_array nans = ROW(ctx, floats[d], 3, NOT, NOT);
        CHECK(tk_argmax(nans, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 1);
    }
}

/* The largest and smallest values of each integer dtype are ordinary numbers. */
static void integer_limits_are_ordered(void **state) {
    tk_context *ctx = *state;
    int64_t values[] = {0, INT64_MIN, INT64_MAX, -1};
    tk_array x = tk_from_data(ctx, values, TK_SHAPE(4), TK_INT64);
    int64_t found;
    assert_ok(tk_item_int(tk_max(x, TK_ALL_AXES, false), &found));
    assert_true(found == INT64_MAX);
    assert_ok(tk_item_int(tk_min(x, TK_ALL_AXES, false), &found));
    assert_true(found == INT64_MIN);
    tk_array wide = tk_view(x, TK_UINT64); /* -1 is the largest now */
    CHECK(tk_argmax(wide, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 3);
    CHECK(tk_argsort(wide, 0), TK_UINT32, TK_SHAPE(4), 0, 2, 1, 3);
    CHECK(tk_argsort(x, 0), TK_UINT32, TK_SHAPE(4), 1, 3, 0, 2);
    CHECK(tk_less(tk_slice(wide, TK_AXES(0), TK_AXES(1), TK_ALL_AXES), wide), TK_BOOL, TK_SHAPE(4),
          0, 1, 1, 1);
}

static void sorting_puts_nan_last_and_is_stable(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array x = ROW(ctx, floats[d], NOT, 1, -INF, 0.0, -0.0, INF, NOT, 1);
        CHECK(tk_sort(x, 0), floats[d], TK_SHAPE(8), -INF, 0, 0, 1, 1, INF, NOT, NOT);
        CHECK(tk_argsort(x, -1), TK_UINT32, TK_SHAPE(8), 2, 3, 4, 1, 7, 5, 0, 6);
        CHECK(tk_slice(tk_partition(x, 3, 0), TK_AXES(3), TK_AXES(4), TK_ALL_AXES), floats[d],
              TK_SHAPE(1), 1);
        CHECK(tk_sort(tk_topk(x, 3, 0), 0), floats[d], TK_SHAPE(3), INF, NOT, NOT);
    }
}

/* Sorts and row reductions of reversed views. */
static void reversed_views_sort_and_reduce(void **state) {
    tk_context *ctx = *state;
    double values[130];
    for (int i = 0; i < 130; i++) values[i] = i * 37 % 130;
    for (int d = 0; d < TK_DTYPE_COUNT; d++) {
        if (d == TK_BOOL || tk_dtype_size((tk_dtype)d) < 2 || d == TK_BFLOAT16) continue;
        tk_scope scope = tk_scope_open(ctx);
        tk_array x = tk_astype(tk_from_data(ctx, values, TK_SHAPE(2, 65), TK_FLOAT64), (tk_dtype)d);
        tk_array turned = tk_flip(x, TK_AXES(0)), mirrored = tk_flip(x, TK_AXES(1)), same[2];
        assert_ok(tk_eval(turned));
        assert_ok(tk_eval(mirrored));
        same[0] = tk_array_equal(tk_sum(turned, TK_AXES(-1), false),
                                 tk_flip(tk_sum(x, TK_AXES(-1), false), TK_AXES(0)), false);
        same[1] = tk_array_equal(tk_max(turned, TK_AXES(-1), false),
                                 tk_flip(tk_max(x, TK_AXES(-1), false), TK_AXES(0)), false);
        CHECK(same[0], TK_BOOL, TK_SCALAR, 1);
        CHECK(same[1], TK_BOOL, TK_SCALAR, 1);
        CHECK(tk_array_equal(tk_sort(mirrored, 1), tk_sort(x, 1), false), TK_BOOL, TK_SCALAR, 1);
        CHECK(tk_array_equal(tk_argmax(mirrored, TK_AXES(1), false),
                             tk_subtract(tk_full(tk_scalar_int(ctx, 64), TK_SCALAR, TK_UINT32),
                                         tk_argmax(x, TK_AXES(1), false)),
                             false),
              TK_BOOL, TK_SCALAR, 1);
        tk_scope_close(scope);
    }
}

/* The median of what holds a NaN is NaN. */
static void medians_give_nan(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array x = ROW(ctx, floats[d], 1, NOT, 0), y = ROW(ctx, floats[d], 1, 2, NOT, 4);
        CHECK(tk_median(x, TK_ALL_AXES, false), floats[d], TK_SCALAR, NOT);
        CHECK(tk_median(y, TK_AXES(0), true), floats[d], TK_SHAPE(1), NOT);
        tk_array rows[] = {ROW(ctx, floats[d], 3, NOT), ROW(ctx, floats[d], 3, 5)};
        CHECK(tk_median(tk_stack(rows, 2, 0), TK_AXES(1), false), floats[d], TK_SHAPE(2), NOT, 4);
        CHECK(tk_median(ROW(ctx, floats[d], INF, -INF, 2), TK_ALL_AXES, false), floats[d],
              TK_SCALAR, 2);
    }
}

static void searches_put_nan_last(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array x = ROW(ctx, floats[d], -INF, 1, 1, INF, NOT, NOT);
        tk_array at = ROW(ctx, floats[d], NOT, 1, INF, -INF);
        CHECK(tk_searchsorted(x, at, false), TK_UINT32, TK_SHAPE(4), 4, 1, 3, 0);
        CHECK(tk_searchsorted(x, at, true), TK_UINT32, TK_SHAPE(4), 6, 3, 4, 1);
    }
}

static void clipping_passes_nan(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array x = ROW(ctx, floats[d], NOT, -INF, INF, 2);
        tk_array low = tk_scalar(ctx, -1), high = tk_scalar(ctx, 1), nan = tk_scalar(ctx, NOT);
        CHECK(tk_clip(x, low, high), floats[d], TK_SHAPE(4), NOT, -1, 1, 1);
        CHECK(tk_clip(x, TK_NO_ARRAY, high), floats[d], TK_SHAPE(4), NOT, -INF, 1, 1);
        CHECK(tk_clip(x, nan, high), floats[d], TK_SHAPE(4), NOT, NOT, NOT, NOT);
        CHECK(tk_clip(x, high, low), floats[d], TK_SHAPE(4), NOT, -1, -1, -1); /* the upper wins */
    }
}

static void running_extremes_keep_nan(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array x = ROW(ctx, floats[d], 2, 1, NOT, 5);
        CHECK(tk_cummax(x, 0, false, true), floats[d], TK_SHAPE(4), 2, 2, NOT, NOT);
        CHECK(tk_cummin(x, 0, true, true), floats[d], TK_SHAPE(4), NOT, NOT, NOT, 5);
        CHECK(tk_cummax(x, 0, false, false), floats[d], TK_SHAPE(4), -INF, 2, 2, NOT);
    }
}

static tk_array pair(tk_context *ctx, float re, float im) {
    return tk_from_data(ctx, (float[]){re, im}, TK_SCALAR, TK_COMPLEX64);
}

/* Complex numbers: the order is lexicographic, NaN in either part wins. */
static void complex_order_is_lexicographic(void **state) {
    tk_context *ctx = *state;
    tk_array a = pair(ctx, 1, 2), b = pair(ctx, 1, 3), nan = pair(ctx, 5, (float)NOT);
    CHECK(tk_imag(tk_maximum(a, b)), TK_FLOAT32, TK_SCALAR, 3);
    CHECK(tk_imag(tk_minimum(a, b)), TK_FLOAT32, TK_SCALAR, 2);
    CHECK(tk_less(a, b), TK_BOOL, TK_SCALAR, 1);
    CHECK(tk_isnan(tk_maximum(a, nan)), TK_BOOL, TK_SCALAR, 1);
    CHECK(tk_isnan(tk_minimum(nan, a)), TK_BOOL, TK_SCALAR, 1);
    tk_array all[] = {a, nan, b};
    CHECK(tk_isnan(tk_max(tk_stack(all, 3, 0), TK_ALL_AXES, false)), TK_BOOL, TK_SCALAR, 1);
    CHECK(tk_argmin(tk_stack(all, 3, 0), TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 1);
    CHECK(tk_argsort(tk_stack(all, 3, 0), 0), TK_UINT32, TK_SHAPE(3), 0, 2, 1);
}

/* Lengths that fill vectors and do not. */
static void negative_zero_is_false(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) for (int64_t count = 2; count <= 70; count += 68) {
        double values[70];
        for (int i = 0; i < 70; i++) values[i] = i % 2 ? 0.0 : -0.0;
        tk_array x = row(ctx, floats[d], count, values);
        CHECK(tk_any(x, TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 0);
        CHECK(tk_all(tk_logical_not(x), TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 1);
        CHECK(tk_any(tk_astype(x, TK_BOOL), TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 0);
        CHECK(tk_sum(tk_where(x, x, tk_scalar(ctx, 1)), TK_ALL_AXES, false), floats[d], TK_SCALAR,
              (double)count);
    }
}

static bool is_negative(tk_array a) {
    double value;
    assert_ok(tk_item(tk_astype(a, TK_FLOAT64), &value));
    return value == 0 && signbit(value);
}

static void zeros_keep_their_sign(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array minus = tk_reshape(ROW(ctx, floats[d], -0.0), TK_SCALAR);
        tk_array two = tk_reshape(ROW(ctx, floats[d], 2), TK_SCALAR);
        assert_true(is_negative(tk_negative(tk_abs(minus))));
        assert_false(is_negative(tk_abs(minus)));
        assert_true(is_negative(tk_multiply(minus, two)));
        assert_true(is_negative(tk_divide(minus, two)));
        assert_true(is_negative(tk_add(minus, minus)));
        assert_false(is_negative(tk_subtract(minus, minus)));
        assert_true(is_negative(tk_sqrt(minus)));
        assert_true(is_negative(tk_floor(minus)) && is_negative(tk_rint(minus)));
        assert_true(is_negative(tk_ceil(tk_negative(tk_reciprocal(two)))));
        assert_true(is_negative(tk_sin(minus)) && is_negative(tk_tanh(minus)));
        assert_true(is_negative(tk_expm1(minus)) && is_negative(tk_log1p(minus)));
        CHECK(tk_equal(minus, tk_abs(minus)), TK_BOOL, TK_SCALAR, 1);
    }
}

/* The sign, the modulus and the copy of a sign at the edges. */
static void signs_at_the_edges(void **state) {
    tk_context *ctx = *state;
    EACH_FLOAT(d) {
        tk_array x = ROW(ctx, floats[d], -0.0, 0.0, -INF, INF, NOT, -3);
        CHECK(tk_sign(x), floats[d], TK_SHAPE(6), 0, 0, -1, 1, NOT, -1);
        CHECK(tk_abs(x), floats[d], TK_SHAPE(6), 0, 0, INF, INF, NOT, 3);
        CHECK(tk_isnan(x), TK_BOOL, TK_SHAPE(6), 0, 0, 0, 0, 1, 0);
        CHECK(tk_isinf(x), TK_BOOL, TK_SHAPE(6), 0, 0, 1, 1, 0, 0);
        CHECK(tk_isfinite(x), TK_BOOL, TK_SHAPE(6), 1, 1, 0, 0, 0, 1);
        CHECK(tk_isneginf(x), TK_BOOL, TK_SHAPE(6), 0, 0, 1, 0, 0, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(extremes_of_two_give_nan),
        TEST(extremes_of_many_give_nan),
        TEST(extremes_reach_infinity),
        TEST(equal_extremes_give_the_first_position),
        TEST(integer_limits_are_ordered),
        TEST(sorting_puts_nan_last_and_is_stable),
        TEST(reversed_views_sort_and_reduce),
        TEST(medians_give_nan),
        TEST(searches_put_nan_last),
        TEST(clipping_passes_nan),
        TEST(running_extremes_keep_nan),
        TEST(complex_order_is_lexicographic),
        TEST(negative_zero_is_false),
        TEST(zeros_keep_their_sign),
        TEST(signs_at_the_edges),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
