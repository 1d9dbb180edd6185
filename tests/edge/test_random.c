/* Random arrays at the edges: ranges that are half open in every dtype, empty or a single value;
 * probabilities that are none; logits without a finite one; the same key, the same bits. */
#include "edge/edge_check.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static const tk_dtype floats[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};
#define EACH_FLOAT(i) for (int i = 0; i < 4; i++)

static void expect_all(tk_array truth, int line) {
    tk_array all = tk_all(truth, TK_ALL_AXES, false);
    check_values(all, TK_BOOL, TK_SCALAR, 0, 1, (double[]){1}, line);
}
#define EXPECT_ALL(truth) expect_all((truth), __LINE__)

/* Rounding up to the bound is common in bfloat16, where one number in 256 is the nearest to it. */
static void uniform_ranges_are_half_open(void **state) {
    tk_context *ctx = *state;
    tk_array zero = tk_scalar(ctx, 0), one = tk_scalar(ctx, 1);
    EACH_FLOAT(d) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array key = tk_random_key(ctx, 3);
        tk_array x = tk_random_uniform(ctx, 0, 1, TK_SHAPE(300000), floats[d], key);
        EXPECT_ALL(tk_logical_and(tk_greater_equal(x, zero), tk_less(x, one)));
        tk_scope_close(scope);
    }
}

static void ranges_of_one_value(void **state) {
    tk_context *ctx = *state;
    tk_array key = tk_random_key(ctx, 1);
    EACH_FLOAT(d) {
        CHECK(tk_random_uniform(ctx, 3, 3, TK_SHAPE(2), floats[d], key), floats[d], TK_SHAPE(2), 3,
              3);
        CHECK(tk_random_normal(ctx, TK_SHAPE(2), floats[d], 3, 0, key), floats[d], TK_SHAPE(2), 3,
              3);
        CHECK(tk_random_truncated_normal(ctx, 2, 2, TK_SHAPE(2), floats[d], key), floats[d],
              TK_SHAPE(2), 2, 2);
    }
    CHECK(tk_random_randint(ctx, 3, 4, TK_SHAPE(2), TK_INT32, key), TK_INT32, TK_SHAPE(2), 3, 3);
    CHECK_ERROR(tk_random_randint(ctx, 3, 3, TK_SHAPE(2), TK_INT32, key), TK_INVALID_ARGUMENT,
                "low < high");
    CHECK_ERROR(tk_random_randint(ctx, -1, 3, TK_SHAPE(2), TK_UINT8, key), TK_OVERFLOW, "uint8");
    CHECK_ERROR(tk_random_truncated_normal(ctx, 2, 1, TK_SHAPE(2), TK_FLOAT32, key),
                TK_INVALID_ARGUMENT, "");
    CHECK_ERROR(tk_random_normal(ctx, TK_SHAPE(2), TK_INT32, 0, 1, key), TK_DTYPE_ERROR, "float");
}

static void truncated_normals_stay_in_bounds(void **state) {
    tk_context *ctx = *state;
    static const double bounds[][2] = {{-1, 1}, {2, 3}, {-8, -7}, {-INF, 0}, {4, INF}};
    EACH_FLOAT(d) for (int i = 0; i < 5; i++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array x = tk_random_truncated_normal(ctx, bounds[i][0], bounds[i][1], TK_SHAPE(5000),
                                                floats[d], tk_random_key(ctx, 4));
        tk_array low = tk_scalar(ctx, bounds[i][0]), high = tk_scalar(ctx, bounds[i][1]);
        EXPECT_ALL(tk_logical_and(tk_greater_equal(x, low), tk_less_equal(x, high)));
        tk_scope_close(scope);
    }
}

/* A probability at or below 0, or NaN, is never; at or above 1 always. */
static void probabilities_that_are_none(void **state) {
    tk_context *ctx = *state;
    double p[] = {-1, 0, NOT, 1, 2, -INF, INF};
    tk_array x = tk_from_data(ctx, p, TK_SHAPE(7), TK_FLOAT64);
    for (int64_t seed = 0; seed < 20; seed++)
        CHECK(tk_random_bernoulli(tk_astype(x, TK_FLOAT32), TK_ALL_AXES, tk_random_key(ctx, seed)),
              TK_BOOL, TK_SHAPE(7), 0, 0, 0, 1, 1, 0, 1);
}

/* What has no chance is never drawn; a row in which nothing has one gives the first. */
static void logits_without_a_chance(void **state) {
    tk_context *ctx = *state;
    double logits[] = {-INF, 0, -INF, -INF, -INF, -INF, 1000, -1000, -INF};
    tk_array x = tk_astype(tk_from_data(ctx, logits, TK_SHAPE(3, 3), TK_FLOAT64), TK_FLOAT32);
    for (int64_t seed = 0; seed < 20; seed++)
        CHECK(tk_random_categorical(x, -1, -1, tk_random_key(ctx, seed)), TK_UINT32, TK_SHAPE(3), 1,
              0, 0);
}

static void equal_keys_give_equal_bits(void **state) {
    tk_context *ctx = *state;
    tk_array one = tk_random_bits(tk_random_key(ctx, 7), TK_SHAPE(1000), 4);
    tk_array same = tk_random_bits(tk_random_key(ctx, 7), TK_SHAPE(1000), 4);
    tk_array next = tk_random_bits(tk_random_key(ctx, 8), TK_SHAPE(1000), 4);
    CHECK(tk_array_equal(one, same, false), TK_BOOL, TK_SCALAR, 1);
    CHECK(tk_any(tk_equal(one, next), TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 0);
    tk_array wrong = tk_zeros(ctx, TK_SHAPE(3), TK_UINT32);
    CHECK_ERROR(tk_random_bits(wrong, TK_SHAPE(2), 4), TK_SHAPE_ERROR, "");
    CHECK_ERROR(tk_random_normal(ctx, TK_SHAPE(2), TK_FLOAT32, 0, 1, tk_astype(wrong, TK_FLOAT32)),
                TK_SHAPE_ERROR, "u32(2,)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(uniform_ranges_are_half_open),     TEST(ranges_of_one_value),
        TEST(truncated_normals_stay_in_bounds), TEST(probabilities_that_are_none),
        TEST(logits_without_a_chance),          TEST(equal_keys_give_equal_bits),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
