/* Rows that are masked, dead or too large: softmax, logsumexp, attention and their gradients. */
#include <float.h>

#include "edge/edge_check.h"
#include "tiki/transforms.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static const tk_dtype floats[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};

static tk_array matrix(tk_context *ctx, tk_dtype dtype, int64_t rows, int64_t columns,
                       const double *values) {
    return tk_astype(tk_from_data(ctx, values, TK_SHAPE(rows, columns), TK_FLOAT64), dtype);
}

/* Plain softmax of a row of -inf is NaN, as in every other library; its neighbours are not. */
static void softmax_of_special_rows(void **state) {
    tk_context *ctx = *state;
    const double rows[] = {-INF, -INF, 0, -INF, INF, 1, NOT, 0, 3e4, 3e4, -3e4, 3e4};
    for (int d = 0; d < 4; d++) {
        tk_array x = matrix(ctx, floats[d], 6, 2, rows);
        CHECK(tk_softmax(x, TK_AXES(-1)), floats[d], TK_SHAPE(6, 2), NOT, NOT, 1, 0, NOT, NOT, NOT,
              NOT, 0.5, 0.5, 0, 1);
        tk_array turned = tk_transpose(x, TK_ALL_AXES);
        CHECK(tk_softmax(turned, TK_AXES(0)), floats[d], TK_SHAPE(2, 6), NOT, 1, NOT, NOT, 0.5, 0,
              NOT, 0, NOT, NOT, 0.5, 1);
    }
}

static void logsumexp_of_special_rows(void **state) {
    tk_context *ctx = *state;
    const double rows[] = {-INF, -INF, 0, -INF, INF, 1, NOT, 0, INF, -INF};
    for (int d = 0; d < 4; d++) {
        tk_array x = matrix(ctx, floats[d], 5, 2, rows);
        CHECK(tk_logsumexp(x, TK_AXES(1), false), floats[d], TK_SHAPE(5), -INF, 0, INF, NOT, INF);
        CHECK(tk_logsumexp(tk_transpose(x, TK_ALL_AXES), TK_AXES(0), false), floats[d], TK_SHAPE(5),
              -INF, 0, INF, NOT, INF);
    }
    tk_array large = tk_full(tk_scalar(ctx, 1e4), TK_SHAPE(1, 8), TK_FLOAT32);
    CHECK_NEAR(tk_logsumexp(large, TK_AXES(1), false), TK_FLOAT32, TK_SHAPE(1), 1e-6, 1e4 + log(8));
}

/* Reducing everything leaves no axis. */
static void full_reductions_are_scalars(void **state) {
    tk_context *ctx = *state;
    tk_array one = tk_zeros(ctx, TK_SHAPE(1, 2), TK_FLOAT32);
    tk_array two = tk_zeros(ctx, TK_SHAPE(1, 1, 8), TK_FLOAT32);
    CHECK_NEAR(tk_logsumexp(one, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 1e-6, log(2));
    CHECK_NEAR(tk_logsumexp(two, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 1e-6, log(8));
    CHECK(tk_sum(two, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 0);
    CHECK(tk_var(two, TK_ALL_AXES, false, 0), TK_FLOAT32, TK_SCALAR, 0);
}

/* ---- attention ---- */

typedef struct attention {
    tk_context *ctx;
    tk_array q, k, v, mask;
    bool causal;
} attention;

/* q, k, v of small distinct numbers. */
static attention make_attention(tk_context *ctx, tk_dtype dtype, int64_t heads, int64_t kv_heads,
                                int64_t queries, int64_t keys) {
    attention a = {.ctx = ctx};
    tk_array key = tk_random_key(ctx, 5);
    a.q = tk_random_normal(ctx, TK_SHAPE(1, heads, queries, 8), dtype, 0, 1, key);
    a.k = tk_random_normal(ctx, TK_SHAPE(1, kv_heads, keys, 8), dtype, 0, 1, tk_random_key(ctx, 6));
    a.v = tk_random_normal(ctx, TK_SHAPE(1, kv_heads, keys, 8), dtype, 0, 1, tk_random_key(ctx, 7));
    return a;
}

static tk_array attend(const attention *a) {
    return tk_scaled_dot_product_attention(a->q, a->k, a->v, 0.35, a->mask, a->causal);
}

/* Rows `which` of the queries: shape [heads, count, 8]. */
static tk_array query_rows(tk_array x, int64_t first, int64_t last) {
    tk_shape shape = tk_array_shape(x);
    return tk_slice(x, TK_AXES(0, 0, first, 0), TK_AXES(1, shape.items[1], last, shape.items[3]),
                    TK_ALL_AXES);
}

static void expect_all(tk_array truth, int line) {
    tk_array all = tk_all(truth, TK_ALL_AXES, false);
    check_values(all, TK_BOOL, TK_SCALAR, 0, 1, (double[]){1}, line);
}
#define EXPECT_ALL(truth) expect_all((truth), __LINE__)

static tk_status attention_loss(void *self, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    attention a = *(attention *)self;
    (void)n_args;
    a.q = args[0];
    a.k = args[1];
    a.v = args[2];
    tk_array live = query_rows(attend(&a), 0, 2); /* the loss leaves the dead row out */
    return tk_arrays_push(results,
                          tk_sum(tk_square(tk_astype(live, TK_FLOAT32)), TK_ALL_AXES, false));
}

/* The last of three query rows sees no key: its output is 0, its gradient is 0, and everybody
 * else's gradient is what it is without that row. */
static void check_dead_row(tk_context *ctx, attention *a) {
    tk_array out = attend(a), dead = query_rows(out, 2, 3), live = query_rows(out, 0, 2);
    EXPECT_ALL(tk_equal(dead, tk_scalar(ctx, 0)));
    EXPECT_ALL(tk_isfinite(live));
    tk_array args[] = {a->q, a->k, a->v};
    int all[] = {0, 1, 2};
    tk_arrays values = {0}, gradients = {0};
    assert_ok(tk_value_and_grad(ctx, attention_loss, a, args, 3, all, 3, &values, &gradients));
    for (int i = 0; i < 3; i++) EXPECT_ALL(tk_isfinite(gradients.items[i]));
    EXPECT_ALL(tk_equal(query_rows(gradients.items[0], 2, 3), tk_scalar(ctx, 0)));
    EXPECT_ALL(tk_any(tk_not_equal(gradients.items[1], tk_scalar(ctx, 0)), TK_ALL_AXES, false));
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
}

static tk_array mask_without_last_row(tk_context *ctx, tk_dtype dtype, double hidden) {
    tk_array last = tk_equal(tk_reshape(tk_arange(ctx, 0, 3, 1, TK_INT32), TK_SHAPE(3, 1)),
                             tk_scalar_int(ctx, 2));
    if (dtype == TK_BOOL) return tk_broadcast_to(tk_logical_not(last), TK_SHAPE(1, 1, 3, 5));
    tk_array zero = tk_zeros(ctx, TK_SCALAR, dtype);
    tk_array low = tk_full(tk_scalar(ctx, hidden), TK_SCALAR, dtype);
    return tk_broadcast_to(tk_where(last, low, zero), TK_SHAPE(1, 1, 3, 5));
}

/* A row without keys poisons nothing. */
static void rows_without_keys_are_zero(void **state) {
    tk_context *ctx = *state;
    for (int d = 0; d < 4; d++) {
        tk_scope scope = tk_scope_open(ctx);
        attention a = make_attention(ctx, floats[d], 4, 2, 3, 5);
        a.mask = mask_without_last_row(ctx, TK_BOOL, 0);
        check_dead_row(ctx, &a);
        a.mask = mask_without_last_row(ctx, floats[d], -INF);
        check_dead_row(ctx, &a);
        tk_scope_close(scope);
    }
}

/* The smallest finite number is a number; a row of it is an average over all keys. */
static void rows_of_the_smallest_number_average(void **state) {
    tk_context *ctx = *state;
    attention a = make_attention(ctx, TK_FLOAT32, 1, 1, 3, 5);
    a.q = tk_zeros_like(a.q);
    a.mask = mask_without_last_row(ctx, TK_FLOAT32, -(double)FLT_MAX);
    tk_array mean = tk_mean(a.v, TK_AXES(2), true);
    EXPECT_ALL(tk_isclose(query_rows(attend(&a), 2, 3), mean, 1e-5, 1e-6, false));
}

/* Causal with more queries than keys: the first queries see nothing. */
static void causal_rows_before_the_first_key(void **state) {
    tk_context *ctx = *state;
    attention a = make_attention(ctx, TK_FLOAT32, 2, 1, 5, 3);
    a.causal = true;
    tk_array out = attend(&a);
    EXPECT_ALL(tk_equal(query_rows(out, 0, 2), tk_scalar(ctx, 0)));
    tk_array first = tk_slice(a.v, TK_AXES(0, 0, 0, 0), TK_AXES(1, 1, 1, 8), TK_ALL_AXES);
    EXPECT_ALL(tk_isclose(query_rows(out, 2, 3), first, 1e-6, 1e-6, false));
}

/* A mask of one element for all heads. */
static void a_mask_broadcasts_to_all(void **state) {
    tk_context *ctx = *state;
    attention a = make_attention(ctx, TK_FLOAT32, 4, 1, 3, 5);
    tk_array without = attend(&a);
    a.mask = tk_ones(ctx, TK_SCALAR, TK_BOOL);
    EXPECT_ALL(tk_isclose(attend(&a), without, 1e-6, 1e-6, false));
    a.mask = tk_zeros(ctx, TK_SHAPE(1, 1), TK_BOOL);
    EXPECT_ALL(tk_equal(attend(&a), tk_scalar(ctx, 0)));
}

/* More keys than 16 bits count, most of them masked. */
static void many_masked_keys(void **state) {
    tk_context *ctx = *state;
    attention a = make_attention(ctx, TK_FLOAT32, 1, 1, 2, 66048), few = a;
    tk_array position = tk_arange(ctx, 0, 66048, 1, TK_INT32);
    a.mask = tk_less(position, tk_scalar_int(ctx, 1024));
    few.k = query_rows(a.k, 0, 1024);
    few.v = query_rows(a.v, 0, 1024);
    EXPECT_ALL(tk_isclose(attend(&a), attend(&few), 1e-5, 1e-6, false));
    a.mask = tk_greater_equal(position, tk_scalar_int(ctx, 66048 - 1024));
    few.k = query_rows(a.k, 66048 - 1024, 66048);
    few.v = query_rows(a.v, 66048 - 1024, 66048);
    EXPECT_ALL(tk_isclose(attend(&a), attend(&few), 1e-5, 1e-6, false));
}

static void a_nan_stays_in_its_row(void **state) {
    tk_context *ctx = *state;
    attention a = make_attention(ctx, TK_FLOAT32, 2, 1, 3, 5);
    tk_array nan = tk_full(tk_scalar(ctx, NOT), TK_SHAPE(1, 2, 1, 8), TK_FLOAT32);
    a.q = tk_slice_update(a.q, nan, TK_AXES(0, 0, 1, 0), TK_AXES(1, 2, 2, 8), TK_ALL_AXES, TK_SET);
    tk_array out = attend(&a);
    EXPECT_ALL(tk_isnan(query_rows(out, 1, 2)));
    EXPECT_ALL(tk_isfinite(query_rows(out, 0, 1)));
    EXPECT_ALL(tk_isfinite(query_rows(out, 2, 3)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(softmax_of_special_rows),
        TEST(logsumexp_of_special_rows),
        TEST(full_reductions_are_scalars),
        TEST(rows_without_keys_are_zero),
        TEST(rows_of_the_smallest_number_average),
        TEST(causal_rows_before_the_first_key),
        TEST(a_mask_broadcasts_to_all),
        TEST(many_masked_keys),
        TEST(a_nan_stays_in_its_row),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
