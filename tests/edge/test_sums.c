/* In what sums are taken, what they do not depend on, and what is never folded away. */
#include "edge/edge_check.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static tk_array filled(tk_context *ctx, tk_shape shape, tk_dtype dtype, double value) {
    return tk_contiguous(tk_full(tk_scalar(ctx, value), shape, dtype));
}

/* ---- accumulation ---- */

/* Added one by one, halves stop at 2048 (f16) and 256 (bf16). */
static void half_types_add_in_float(void **state) {
    tk_context *ctx = *state;
    static const tk_dtype halves[] = {TK_FLOAT16, TK_BFLOAT16};
    for (int d = 0; d < 2; d++) {
        tk_array ones = filled(ctx, TK_SHAPE(4096, 2), halves[d], 1);
        CHECK(tk_sum(ones, TK_AXES(0), false), halves[d], TK_SHAPE(2), 4096, 4096);
        CHECK(tk_sum(tk_transpose(ones, TK_ALL_AXES), TK_AXES(1), false), halves[d], TK_SHAPE(2),
              4096, 4096);
        CHECK(tk_mean(ones, TK_ALL_AXES, false), halves[d], TK_SCALAR, 1);
        tk_array row = tk_reshape(tk_sum(ones, TK_AXES(1), false), TK_SHAPE(1, 4096));
        CHECK(tk_matmul(row, ones), halves[d], TK_SHAPE(1, 2), 8192, 8192);
        tk_array last = tk_slice(tk_cumsum(ones, 0, false, true), TK_AXES(4095, 0),
                                 TK_AXES(4096, 2), TK_ALL_AXES);
        CHECK(last, halves[d], TK_SHAPE(1, 2), 4096, 4096);
    }
    tk_array large = filled(ctx, TK_SHAPE(100), TK_FLOAT16, 60000);
    CHECK(tk_mean(large, TK_ALL_AXES, false), TK_FLOAT16, TK_SCALAR, 60000);
    CHECK(tk_var(large, TK_ALL_AXES, false, 0), TK_FLOAT16, TK_SCALAR, 0);
    CHECK(tk_sum(large, TK_ALL_AXES, false), TK_FLOAT16, TK_SCALAR, INF);
}

/* A million tenths: blocks keep the error near one unit, adding one by one loses 1 %. */
static void long_sums_are_accurate(void **state) {
    tk_context *ctx = *state;
    tk_array x = filled(ctx, TK_SHAPE(1000, 1000), TK_FLOAT32, 0.1);
    double exact = (double)0.1f * 1e6;
    CHECK_NEAR(tk_sum(x, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 1e-6, exact);
    CHECK_NEAR(tk_sum(tk_sum(x, TK_AXES(0), false), TK_AXES(0), false), TK_FLOAT32, TK_SCALAR, 2e-6,
               exact);
}

/* Moments about a mean that is a million deviations away need two passes. */
static void moments_far_from_zero(void **state) {
    tk_context *ctx = *state;
    double values[64], mean = 0, spread = 0;
    for (int i = 0; i < 64; i++) values[i] = (double)(float)(1e4 + 0.01 * (i % 7 - 3));
    for (int i = 0; i < 64; i++) mean += values[i] / 64;
    for (int i = 0; i < 64; i++) spread += (values[i] - mean) * (values[i] - mean) / 64;
    tk_array x = tk_astype(tk_from_data(ctx, values, TK_SHAPE(1, 64), TK_FLOAT64), TK_FLOAT32);
    CHECK_NEAR(tk_divide(tk_var(x, TK_ALL_AXES, false, 0), tk_scalar(ctx, spread)), TK_FLOAT32,
               TK_SCALAR, 1e-3, 1);
    tk_array normal = tk_layer_norm(x, TK_NO_ARRAY, TK_NO_ARRAY, 1e-12);
    double expected[64];
    for (int i = 0; i < 64; i++) expected[i] = (values[i] - mean) / sqrt(spread);
    check_values(normal, TK_FLOAT32, TK_SHAPE(1, 64), 2e-2, 64, expected, __LINE__);
}

static void special_values_in_sums(void **state) {
    tk_context *ctx = *state;
    for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++) {
        double x[] = {1, INF, 2, INF, -INF, 1, NOT, 2};
        tk_array a = tk_astype(tk_from_data(ctx, x, TK_SHAPE(4, 2), TK_FLOAT64), (tk_dtype)d);
        CHECK(tk_sum(a, TK_AXES(1), false), (tk_dtype)d, TK_SHAPE(4), INF, INF, -INF, NOT);
        CHECK(tk_prod(a, TK_AXES(1), false), (tk_dtype)d, TK_SHAPE(4), INF, INF, -INF, NOT);
        CHECK(tk_mean(a, TK_AXES(0), false), (tk_dtype)d, TK_SHAPE(2), NOT, INF);
        CHECK(tk_cumsum(a, 0, true, true), (tk_dtype)d, TK_SHAPE(4, 2), NOT, INF, NOT, INF, NOT, 3,
              NOT, 2);
    }
}

/* Zero times infinity is NaN in products too: nothing is skipped. */
static void products_skip_nothing(void **state) {
    tk_context *ctx = *state;
    static const int64_t sizes[] = {2, 9, 40, 130};
    for (int i = 0; i < 4; i++) {
        tk_array zeros = filled(ctx, TK_SHAPE(sizes[i], sizes[i]), TK_FLOAT32, 0);
        tk_array infinite = filled(ctx, TK_SHAPE(sizes[i], sizes[i]), TK_FLOAT32, INF);
        tk_array product = tk_isnan(tk_matmul(zeros, infinite));
        CHECK(tk_all(product, TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 1);
    }
}

/* ---- independence ---- */

static tk_array noise(tk_context *ctx, tk_shape shape, tk_dtype dtype) {
    tk_array x = tk_random_normal(ctx, shape, TK_FLOAT32, 0, 3, tk_random_key(ctx, 17));
    return tk_astype(x, dtype);
}

static tk_array reduced(tk_array x, int which) {
    switch (which) {
    case 0:
        return tk_sum(x, TK_ALL_AXES, false);
    case 1:
        return tk_sum(x, TK_AXES(0), false);
    case 2:
        return tk_sum(x, TK_AXES(1), false);
    case 3:
        return tk_mean(x, TK_ALL_AXES, false);
    case 4:
        return tk_var(x, TK_AXES(0), false, 1);
    case 5:
        return tk_logsumexp(x, TK_ALL_AXES, false);
    case 6:
        return tk_softmax(x, TK_AXES(0));
    case 7:
        return tk_softmax(x, TK_ALL_AXES);
    case 8:
        return tk_cumsum(x, 0, false, true);
    case 9:
        return tk_cumsum(x, 1, true, false);
    case 10:
        return tk_layer_norm(x, TK_NO_ARRAY, TK_NO_ARRAY, 1e-5);
    case 11:
        return tk_prod(x, TK_AXES(1), false);
    case 12:
        return tk_argmax(x, TK_ALL_AXES, false);
    default:
        return tk_logcumsumexp(x, 1, false, true);
    }
}

static void copy_all(tk_array x, char *out, size_t bytes) {
    assert_int_equal((size_t)tk_array_size(x) * tk_dtype_size(tk_array_dtype(x)), bytes);
    assert_ok(tk_copy_out(x, out, bytes));
}

/* The bits of reductions and scans do not depend on the thread count. */
static void check_threads(tk_context *ctx, tk_dtype dtype, tk_shape shape, int which) {
    static const int counts[] = {1, 2, 3, 7};
    tk_scope scope = tk_scope_open(ctx);
    tk_array x = noise(ctx, shape, dtype);
    assert_ok(tk_eval(x));
    tk_array first = reduced(x, which);
    size_t bytes = (size_t)tk_array_size(first) * tk_dtype_size(tk_array_dtype(first));
    char *one = test_malloc(bytes), *other = test_malloc(bytes);
    for (int i = 0; i < 4; i++) {
        assert_ok(tk_threads_set(counts[i]));
        tk_array again = i ? reduced(x, which) : first;
        copy_all(again, i ? other : one, bytes);
        if (i && memcmp(one, other, bytes) != 0) {
            print_error("reduction %d of %s differs with %d threads\n", which, tk_dtype_name(dtype),
                        counts[i]);
            fail();
        }
    }
    test_free(one);
    test_free(other);
    tk_scope_close(scope);
}

static void reductions_do_not_depend_on_threads(void **state) {
    static const tk_dtype dtypes[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};
    for (int which = 0; which < 14; which++)
        for (int d = 0; d < 4; d++) {
            check_threads(*state, dtypes[d], TK_SHAPE(300, 257), which);
            check_threads(*state, dtypes[d], TK_SHAPE(3, 20000), which);
        }
    assert_ok(tk_threads_set(0));
}

static void everything_repeats_to_the_bit(void **state) {
    tk_context *ctx = *state;
    float one[4], other[4];
    tk_array x = noise(ctx, TK_SHAPE(500, 333), TK_FLOAT32);
    for (int round = 0; round < 5; round++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array product = tk_matmul(tk_transpose(x, TK_ALL_AXES), x);
        tk_array corner = tk_slice(product, TK_AXES(7, 9), TK_AXES(9, 11), TK_ALL_AXES);
        copy_all(corner, (char *)(round ? other : one), sizeof one);
        if (round) assert_memory_equal(one, other, sizeof one);
        tk_scope_close(scope);
    }
}

/* ---- nothing is folded that rounds ---- */

/* Rows of a softmax add up to nearly one, and floor sees the difference. */
static void sums_of_softmax_are_computed(void **state) {
    tk_context *ctx = *state;
    tk_array rows = tk_softmax(noise(ctx, TK_SHAPE(64, 100), TK_FLOAT32), TK_AXES(1));
    tk_array together = tk_floor(tk_sum(rows, TK_AXES(1), false));
    tk_array sums = tk_sum(rows, TK_AXES(1), false);
    assert_ok(tk_eval(sums));
    CHECK(tk_array_equal(together, tk_floor(sums), false), TK_BOOL, TK_SCALAR, 1);
}

/* The reciprocal of a small normalised value magnifies every bit. */
static void steps_after_a_norm_change_no_bit(void **state) {
    tk_context *ctx = *state;
    tk_array x = noise(ctx, TK_SHAPE(64, 128), TK_FLOAT32), tiny = tk_scalar(ctx, 1e-6);
    tk_array normal = tk_layer_norm(x, TK_NO_ARRAY, TK_NO_ARRAY, 1e-5);
    tk_array together = tk_reciprocal(tk_add(tk_abs(normal), tiny));
    assert_ok(tk_eval(together));
    tk_array apart = tk_layer_norm(x, TK_NO_ARRAY, TK_NO_ARRAY, 1e-5);
    assert_ok(tk_eval(apart));
    apart = tk_abs(apart);
    assert_ok(tk_eval(apart));
    apart = tk_add(apart, tiny);
    assert_ok(tk_eval(apart));
    CHECK(tk_array_equal(together, tk_reciprocal(apart), false), TK_BOOL, TK_SCALAR, 1);
}

/* x + 0, x * 0, x - x and x / x are what IEEE says, for every x. */
static void identities_hold_for_special_values(void **state) {
    tk_context *ctx = *state;
    double values[] = {INF, NOT, -0.0, 2};
    tk_array x = tk_astype(tk_from_data(ctx, values, TK_SHAPE(4), TK_FLOAT64), TK_FLOAT32);
    CHECK(tk_multiply(x, tk_scalar(ctx, 0)), TK_FLOAT32, TK_SHAPE(4), NOT, NOT, 0, 0);
    CHECK(tk_subtract(x, x), TK_FLOAT32, TK_SHAPE(4), NOT, NOT, 0, 0);
    CHECK(tk_divide(x, x), TK_FLOAT32, TK_SHAPE(4), NOT, NOT, NOT, 1);
    CHECK(tk_equal(x, x), TK_BOOL, TK_SHAPE(4), 1, 0, 1, 1);
    double sum[4];
    tk_array zero = tk_add(x, tk_scalar(ctx, 0)), minus = tk_add(x, tk_scalar(ctx, -0.0));
    assert_ok(tk_copy_out(tk_astype(zero, TK_FLOAT64), sum, sizeof sum));
    assert_false(signbit(sum[2]));
    assert_ok(tk_copy_out(tk_astype(minus, TK_FLOAT64), sum, sizeof sum));
    assert_true(signbit(sum[2]));
}

/* ---- others ---- */

/* The largest of stacked arrays. */
static void largest_of_a_stack(void **state) {
    tk_context *ctx = *state;
    tk_array parts[] = {filled(ctx, TK_SHAPE(1), TK_INT32, 1),
                        filled(ctx, TK_SHAPE(1), TK_INT32, 2)};
    CHECK(tk_max(tk_stack(parts, 2, 0), TK_AXES(0), false), TK_INT32, TK_SHAPE(1), 2);
}

/* Equal keys, unequal widths. */
static void random_bits_of_two_widths(void **state) {
    tk_context *ctx = *state;
    tk_array key = tk_random_key(ctx, 0);
    tk_array wide = tk_random_bits(key, TK_SHAPE(4), 4),
             narrow = tk_random_bits(key, TK_SHAPE(4), 2);
    tk_array both[] = {tk_astype(wide, TK_INT64), tk_astype(narrow, TK_INT64)};
    assert_false(tk_array_same(wide, narrow));
    assert_ok(tk_eval_all(both, 2));
    assert_int_equal(tk_array_dtype(wide), TK_UINT32);
    assert_int_equal(tk_array_dtype(narrow), TK_UINT16);
    CHECK(tk_array_equal(both[0], both[1], false), TK_BOOL, TK_SCALAR, 0);
}

/* A long chain over a small array, with a broadcast in its middle. */
static void long_chains_with_broadcasts(void **state) {
    tk_context *ctx = *state;
    tk_array x = filled(ctx, TK_SHAPE(2, 2), TK_FLOAT32, 1), y = x;
    double expected = 1;
    for (int i = 0; i < 20; i++) {
        y = tk_add(tk_multiply(y, tk_scalar(ctx, 0.5)), tk_scalar(ctx, i));
        expected = expected * 0.5 + i;
    }
    tk_array wide =
        tk_add(tk_reshape(y, TK_SHAPE(2, 2, 1)), tk_zeros(ctx, TK_SHAPE(2, 2, 3), TK_FLOAT32));
    tk_array both[] = {wide, tk_multiply(y, y)};
    assert_ok(tk_eval_all(both, 2));
    CHECK_NEAR(tk_mean(wide, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 1e-6, expected);
    CHECK_NEAR(tk_mean(both[1], TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 1e-6,
               expected * expected);
}

/* A failing op in an evaluation leaves the others' values right. */
static void failures_touch_nobody_else(void **state) {
    tk_context *ctx = *state;
    tk_array x = filled(ctx, TK_SHAPE(3), TK_FLOAT32, 2), good = tk_multiply(x, x);
    tk_array at = tk_from_data(ctx, (int64_t[]){5}, TK_SHAPE(1), TK_INT64);
    tk_array bad = tk_take(good, at, 0), both[] = {tk_add(good, x), bad};
    assert_int_equal(tk_eval_all(both, 2), TK_INDEX_ERROR);
    CHECK(x, TK_FLOAT32, TK_SHAPE(3), 2, 2, 2);
    CHECK(good, TK_FLOAT32, TK_SHAPE(3), 4, 4, 4);
    CHECK(both[0], TK_FLOAT32, TK_SHAPE(3), 6, 6, 6);
}

/* A result takes over its operand's memory again and again. */
static void results_replace_their_operands(void **state) {
    tk_context *ctx = *state;
    tk_array y = tk_keep(tk_arange(ctx, 0, 20000, 1, TK_FLOAT32));
    for (int i = 0; i < 10; i++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array next = tk_keep(tk_add(tk_flip(y, TK_ALL_AXES), tk_multiply(y, tk_scalar(ctx, 2))));
        tk_scope_close(scope);
        tk_release(y);
        y = next;
        if (i % 3 == 0) assert_ok(tk_eval(y));
    }
    /* flip(y) + 2 y: sums of pairs triple, differences stay. */
    double sum = 19999 * pow(3, 10), ends[2] = {(sum - 19999) / 2, (sum + 19999) / 2};
    tk_array corners = tk_slice(y, TK_AXES(0), TK_AXES(20000), TK_AXES(19999));
    check_values(corners, TK_FLOAT32, TK_SHAPE(2), 1e-5, 2, ends, __LINE__);
    tk_release(y);
}

/* Many writers of NaN to one element. */
static void many_writers_of_nan(void **state) {
    tk_context *ctx = *state;
    tk_array x = tk_ones(ctx, TK_SHAPE(2), TK_FLOAT32);
    tk_array at = tk_zeros(ctx, TK_SHAPE(50000), TK_INT32), list[] = {at};
    tk_array nans = tk_full(tk_scalar(ctx, NOT), TK_SHAPE(50000, 1), TK_FLOAT32);
    static const tk_mode modes[] = {TK_ADD, TK_PROD, TK_MAX, TK_MIN};
    for (int i = 0; i < 4; i++)
        CHECK(tk_scatter_nd(x, nans, list, 1, TK_AXES(0), modes[i]), TK_FLOAT32, TK_SHAPE(2), NOT,
              1);
}

/* More batches than 16 bits count. */
static void many_small_products(void **state) {
    tk_context *ctx = *state;
    int64_t batch = 70000;
    tk_array a = tk_broadcast_to(tk_arange(ctx, 0, 6, 1, TK_FLOAT32), TK_SHAPE(batch, 1, 6));
    tk_array b = tk_ones(ctx, TK_SHAPE(batch, 6, 1), TK_FLOAT32);
    tk_array product = tk_matmul(a, b);
    CHECK(tk_min(product, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 15);
    CHECK(tk_max(product, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 15);
}

/* Positions and widths that no tile divides. */
static void shapes_that_no_tile_divides(void **state) {
    tk_context *ctx = *state;
    for (int64_t n = 1; n < 40; n += 1 + n / 5) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array a = tk_ones(ctx, TK_SHAPE(n, 2 * n + 1), TK_BFLOAT16);
        tk_array b = tk_ones(ctx, TK_SHAPE(2 * n + 1, n + 3), TK_BFLOAT16);
        tk_array product = tk_matmul(a, b);
        CHECK(tk_min(product, TK_ALL_AXES, false), TK_BFLOAT16, TK_SCALAR, (double)(2 * n + 1));
        CHECK(tk_max(product, TK_ALL_AXES, false), TK_BFLOAT16, TK_SCALAR, (double)(2 * n + 1));
        tk_array x = tk_ones(ctx, TK_SHAPE(3, n, 2 * n), TK_BFLOAT16);
        tk_array turned = tk_rope(x, 2 * n, false, 10000, 1, tk_scalar_int(ctx, 0), TK_NO_ARRAY);
        tk_array first = tk_slice(turned, TK_AXES(0, 0, 0), TK_AXES(3, 1, 2 * n), TK_ALL_AXES);
        CHECK(tk_all(tk_equal(first, tk_scalar(ctx, 1)), TK_ALL_AXES, false), TK_BOOL, TK_SCALAR,
              1);
        tk_scope_close(scope);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(half_types_add_in_float),
        TEST(long_sums_are_accurate),
        TEST(moments_far_from_zero),
        TEST(special_values_in_sums),
        TEST(products_skip_nothing),
        TEST(reductions_do_not_depend_on_threads),
        TEST(everything_repeats_to_the_bit),
        TEST(sums_of_softmax_are_computed),
        TEST(steps_after_a_norm_change_no_bit),
        TEST(identities_hold_for_special_values),
        TEST(largest_of_a_stack),
        TEST(random_bits_of_two_widths),
        TEST(long_chains_with_broadcasts),
        TEST(failures_touch_nobody_else),
        TEST(results_replace_their_operands),
        TEST(many_writers_of_nan),
        TEST(many_small_products),
        TEST(shapes_that_no_tile_divides),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
