/* Integers: modulo 2^n, division and remainder, powers, shifts, in every dtype and for every pair
 * of telling values, against wide arithmetic. Divisions of floats by sign. */
#include "edge/edge_check.h"

__extension__ typedef __int128 big;

static const tk_dtype integers[] = {TK_UINT8, TK_UINT16, TK_UINT32, TK_UINT64,
                                    TK_INT8,  TK_INT16,  TK_INT32,  TK_INT64};
#define EACH_INTEGER(i) for (int i = 0; i < 8; i++)

#define N_VALUES 18

static int bits_of(tk_dtype dtype) { return 8 * (int)tk_dtype_size(dtype); }
static bool is_signed(tk_dtype dtype) { return tk_dtype_kind(dtype) == TK_KIND_SIGNED; }

/* Modulo 2^n, into the dtype's range. */
static big wrapped(tk_dtype dtype, big value) {
    big size = (big)1 << bits_of(dtype), rest = value & (size - 1);
    return is_signed(dtype) && rest >= size / 2 ? rest - size : rest;
}

/* Values at which integer code goes wrong, in range of the dtype. */
static void telling_values(tk_dtype dtype, big *values) {
    big top = ((big)1 << (bits_of(dtype) - is_signed(dtype))) - 1;
    const big list[N_VALUES] = {0,  1,      2,  3,   5,  7,  10,      -1,
                                -2, -3,     -7, top, -5, 63, top - 1, wrapped(dtype, top + 1),
                                64, top / 2};
    for (int i = 0; i < N_VALUES; i++) values[i] = wrapped(dtype, list[i]);
}

/* All pairs: a[i * N + k] = values[i], b[i * N + k] = values[k]. */
static void all_pairs(tk_context *ctx, tk_dtype dtype, big *values, tk_array *out_a,
                      tk_array *out_b) {
    int64_t items[N_VALUES];
    telling_values(dtype, values);
    for (int i = 0; i < N_VALUES; i++) items[i] = (int64_t)values[i];
    tk_array one = tk_from_data(ctx, items, TK_SHAPE(N_VALUES), TK_INT64);
    one = tk_astype(one, dtype);
    tk_shape shape = TK_SHAPE(N_VALUES, N_VALUES);
    *out_a = tk_contiguous(tk_broadcast_to(tk_reshape(one, TK_SHAPE(N_VALUES, 1)), shape));
    *out_b = tk_broadcast_to(one, shape);
}

static big floor_of(big x, big y) {
    big quotient = x / y;
    return quotient * y != x && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

static big by_floor_divide(tk_dtype dtype, big x, big y) {
    (void)dtype;
    return y == 0 ? 0 : floor_of(x, y);
}
static big by_remainder(tk_dtype dtype, big x, big y) {
    (void)dtype;
    return y == 0 ? 0 : x - y * floor_of(x, y);
}
static big by_add(tk_dtype dtype, big x, big y) { return (void)dtype, x + y; }
static big by_subtract(tk_dtype dtype, big x, big y) { return (void)dtype, x - y; }
static big by_multiply(tk_dtype dtype, big x, big y) {
    return wrapped(dtype, (big)((uint64_t)x * (uint64_t)y));
}
static big by_maximum(tk_dtype dtype, big x, big y) { return (void)dtype, x > y ? x : y; }
static big by_minimum(tk_dtype dtype, big x, big y) { return (void)dtype, x < y ? x : y; }
static big by_left_shift(tk_dtype dtype, big x, big y) {
    return y < 0 || y >= bits_of(dtype) ? 0 : wrapped(dtype, x * ((big)1 << y));
}
static big by_right_shift(tk_dtype dtype, big x, big y) {
    return y < 0 || y >= bits_of(dtype) ? (x < 0 ? -1 : 0) : x >> y;
}
static big by_power(tk_dtype dtype, big x, big y) {
    if (y < 0) return x == 1 ? 1 : x != -1 ? 0 : y % 2 ? -1 : 1;
    big result = 1, square = x;
    for (; y; y >>= 1) {
        if (y & 1) result = by_multiply(dtype, result, square);
        square = by_multiply(dtype, square, square);
    }
    return result;
}

typedef struct binary_case {
    const char *name;
    tk_array (*call)(tk_array a, tk_array b);
    big (*expected)(tk_dtype dtype, big x, big y);
} binary_case;

static const binary_case binaries[] = {
    {"floor_divide", tk_floor_divide, by_floor_divide},
    {"remainder", tk_remainder, by_remainder},
    {"add", tk_add, by_add},
    {"subtract", tk_subtract, by_subtract},
    {"multiply", tk_multiply, by_multiply},
    {"maximum", tk_maximum, by_maximum},
    {"minimum", tk_minimum, by_minimum},
    {"left_shift", tk_left_shift, by_left_shift},
    {"right_shift", tk_right_shift, by_right_shift},
    {"power", tk_power, by_power},
};

static void check_binary(tk_context *ctx, const binary_case *c, tk_dtype dtype) {
    tk_scope scope = tk_scope_open(ctx);
    big values[N_VALUES];
    tk_array a, b;
    all_pairs(ctx, dtype, values, &a, &b);
    int64_t found[N_VALUES * N_VALUES];
    tk_array result = c->call(a, b);
    assert_int_equal(tk_array_dtype(result), dtype);
    assert_ok(tk_copy_out(tk_astype(result, TK_INT64), found, sizeof found));
    for (int i = 0; i < N_VALUES; i++) {
        for (int k = 0; k < N_VALUES; k++) {
            big expected = wrapped(dtype, c->expected(dtype, values[i], values[k]));
            if (found[i * N_VALUES + k] == (int64_t)expected) continue;
            print_error("%s(%lld, %lld) in %s is %lld, expected %lld\n", c->name,
                        (long long)values[i], (long long)values[k], tk_dtype_name(dtype),
                        (long long)found[i * N_VALUES + k], (long long)expected);
            fail();
        }
    }
    tk_scope_close(scope);
}

/* Division and remainder round to minus infinity; by 0 gives 0; the rest wraps. */
static void binary_ops_by_wide_arithmetic(void **state) {
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
        EACH_INTEGER(d) check_binary(*state, &binaries[i], integers[d]);
}

static void quotient_and_remainder_make_the_whole(void **state) {
    tk_context *ctx = *state;
    EACH_INTEGER(d) {
        tk_scope scope = tk_scope_open(ctx);
        big values[N_VALUES];
        tk_array a, b;
        all_pairs(ctx, integers[d], values, &a, &b);
        tk_array whole = tk_add(tk_multiply(tk_floor_divide(a, b), b), tk_remainder(a, b));
        tk_array fits = tk_logical_or(tk_equal(whole, a), tk_equal(b, tk_scalar_int(ctx, 0)));
        CHECK(tk_all(fits, TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 1);
        tk_scope_close(scope);
    }
}

static void single_values_wrap(void **state) {
    tk_context *ctx = *state;
    EACH_INTEGER(d) {
        tk_dtype dtype = integers[d];
        big values[N_VALUES];
        int64_t items[N_VALUES], found[N_VALUES];
        telling_values(dtype, values);
        for (int i = 0; i < N_VALUES; i++) items[i] = (int64_t)values[i];
        tk_array x = tk_astype(tk_from_data(ctx, items, TK_SHAPE(N_VALUES), TK_INT64), dtype);
        assert_ok(tk_copy_out(tk_astype(tk_negative(x), TK_INT64), found, sizeof found));
        for (int i = 0; i < N_VALUES; i++)
            assert_true(found[i] == (int64_t)wrapped(dtype, -values[i]));
        assert_ok(tk_copy_out(tk_astype(tk_abs(x), TK_INT64), found, sizeof found));
        for (int i = 0; i < N_VALUES; i++)
            assert_true(found[i] ==
                        (int64_t)wrapped(dtype, values[i] < 0 ? -values[i] : values[i]));
        assert_ok(tk_copy_out(tk_astype(tk_bitwise_invert(x), TK_INT64), found, sizeof found));
        for (int i = 0; i < N_VALUES; i++)
            assert_true(found[i] == (int64_t)wrapped(dtype, -values[i] - 1));
    }
}

/* Sums and products of narrow integers; the dtype does not depend on the length. */
static void sums_and_products_of_narrow_integers(void **state) {
    tk_context *ctx = *state;
    tk_array ones = tk_ones(ctx, TK_SHAPE(1024), TK_UINT8);
    CHECK(tk_sum(ones, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 1024);
    tk_array large = tk_full(tk_scalar_int(ctx, 65535), TK_SHAPE(4), TK_UINT16);
    CHECK(tk_sum(large, TK_ALL_AXES, false), TK_UINT32, TK_SCALAR, 262140);
    for (int64_t length = 1; length < 4; length++) {
        tk_array twos = tk_full(tk_scalar_int(ctx, 2), TK_SHAPE(length), TK_INT8);
        CHECK(tk_prod(twos, TK_AXES(0), false), TK_INT32, TK_SCALAR, (double)(1 << length));
    }
    tk_array bools = tk_ones(ctx, TK_SHAPE(300), TK_BOOL);
    CHECK(tk_sum(bools, TK_ALL_AXES, false), TK_INT32, TK_SCALAR, 300);
    tk_array top = tk_full(tk_scalar_int(ctx, INT32_MAX), TK_SHAPE(3), TK_INT32);
    CHECK(tk_sum(top, TK_ALL_AXES, false), TK_INT32, TK_SCALAR, 2147483645); /* modulo 2^32 */
    tk_array bytes = tk_full(tk_scalar_int(ctx, 100), TK_SHAPE(3), TK_INT8);
    CHECK(tk_cumsum(bytes, 0, false, true), TK_INT8, TK_SHAPE(3), 100, -56, 44);
    tk_array wide = tk_full(tk_scalar_int(ctx, 1000), TK_SHAPE(2, 2), TK_INT16);
    CHECK(tk_matmul(wide, wide), TK_INT16, TK_SHAPE(2, 2), -31616, -31616, -31616, -31616);
}

static void expect_dtype(tk_array a, tk_dtype dtype, int line) {
    assert_ok_at(tk_array_status(a), __FILE__, line);
    _assert_int_equal(tk_array_dtype(a), dtype, __FILE__, line);
}
#define EXPECT_DTYPE(array, dtype) expect_dtype((array), (dtype), __LINE__)

static void dtypes_of_two_operands(void **state) {
    tk_context *ctx = *state;
    static const tk_dtype rows[][3] = {
        {TK_INT32, TK_FLOAT16, TK_FLOAT16},    {TK_INT64, TK_BFLOAT16, TK_BFLOAT16},
        {TK_BFLOAT16, TK_FLOAT16, TK_FLOAT32}, {TK_UINT64, TK_INT64, TK_FLOAT32},
        {TK_UINT8, TK_INT8, TK_INT16},         {TK_UINT32, TK_INT8, TK_INT64},
        {TK_BOOL, TK_UINT16, TK_UINT16},       {TK_FLOAT64, TK_COMPLEX64, TK_COMPLEX64},
        {TK_FLOAT32, TK_FLOAT64, TK_FLOAT64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tk_array a = tk_zeros(ctx, TK_SHAPE(2), rows[i][0]),
                 b = tk_zeros(ctx, TK_SHAPE(2), rows[i][1]);
        EXPECT_DTYPE(tk_add(a, b), rows[i][2]);
        EXPECT_DTYPE(tk_maximum(b, a), rows[i][2]);
    }
    tk_array bytes = tk_zeros(ctx, TK_SHAPE(2), TK_UINT8);
    EXPECT_DTYPE(tk_add(bytes, tk_scalar_int(ctx, 3)), TK_UINT8);
    EXPECT_DTYPE(tk_add(bytes, tk_scalar(ctx, 3)), TK_FLOAT32);
    EXPECT_DTYPE(tk_add(tk_zeros(ctx, TK_SHAPE(2), TK_FLOAT16), tk_scalar(ctx, 3)), TK_FLOAT16);
    tk_array ones = tk_ones(ctx, TK_SHAPE(2), TK_INT8); /* 256 wraps to 0 in a sum, but is true */
    CHECK(tk_logical_and(ones, tk_scalar_int(ctx, 256)), TK_BOOL, TK_SHAPE(2), 1, 1);
    CHECK(tk_logical_or(tk_zeros_like(ones), tk_scalar(ctx, 0.5)), TK_BOOL, TK_SHAPE(2), 1, 1);
}

static void dtypes_of_functions_of_integers(void **state) {
    tk_context *ctx = *state;
    EACH_INTEGER(d) {
        tk_array x = tk_ones(ctx, TK_SHAPE(2, 2), integers[d]);
        EXPECT_DTYPE(tk_mean(x, TK_ALL_AXES, false), TK_FLOAT32);
        EXPECT_DTYPE(tk_var(x, TK_ALL_AXES, false, 0), TK_FLOAT32);
        EXPECT_DTYPE(tk_std(x, TK_AXES(0), false, 0), TK_FLOAT32);
        EXPECT_DTYPE(tk_median(x, TK_ALL_AXES, false), TK_FLOAT32);
        EXPECT_DTYPE(tk_softmax(x, TK_AXES(1)), TK_FLOAT32);
        EXPECT_DTYPE(tk_logsumexp(x, TK_AXES(1), false), TK_FLOAT32);
        EXPECT_DTYPE(tk_divide(x, x), TK_FLOAT32);
        EXPECT_DTYPE(tk_sqrt(x), TK_FLOAT32);
        EXPECT_DTYPE(tk_argmax(x, TK_AXES(1), false), TK_UINT32);
        EXPECT_DTYPE(tk_argsort(x, 0), TK_UINT32);
        EXPECT_DTYPE(tk_cumsum(x, 0, false, true), integers[d]);
        EXPECT_DTYPE(tk_max(x, TK_AXES(0), false), integers[d]);
    }
    tk_array truths = tk_ones(ctx, TK_SHAPE(3), TK_BOOL);
    CHECK(tk_cumsum(truths, 0, false, true), TK_INT32, TK_SHAPE(3), 1, 2, 3);
    CHECK(tk_cumprod(truths, 0, false, true), TK_INT32, TK_SHAPE(3), 1, 1, 1);
}

/* Floats of mixed signs, half types included. */
static void float_division_follows_the_divisor(void **state) {
    tk_context *ctx = *state;
    static const tk_dtype dtypes[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};
    double x[] = {-7, 7, -7, 7, 5.5, -5.5}, y[] = {2, 2, -2, -2, -2, 2};
    for (int d = 0; d < 4; d++) {
        tk_array a = tk_astype(tk_from_data(ctx, x, TK_SHAPE(6), TK_FLOAT64), dtypes[d]);
        tk_array b = tk_astype(tk_from_data(ctx, y, TK_SHAPE(6), TK_FLOAT64), dtypes[d]);
        CHECK(tk_floor_divide(a, b), dtypes[d], TK_SHAPE(6), -4, 3, 3, -4, -3, -3);
        CHECK(tk_remainder(a, b), dtypes[d], TK_SHAPE(6), 1, 1, -1, -1, -0.5, 0.5);
        tk_array whole = tk_add(tk_multiply(tk_floor_divide(a, b), b), tk_remainder(a, b));
        CHECK(tk_array_equal(whole, a, false), TK_BOOL, TK_SCALAR, 1);
    }
    tk_array tenth = tk_from_data(ctx, (double[]){0.1}, TK_SCALAR, TK_FLOAT64);
    tk_array one = tk_ones(ctx, TK_SCALAR, TK_FLOAT64);
    CHECK(tk_floor_divide(one, tenth), TK_FLOAT64, TK_SCALAR, 9); /* 0.1 is a little more */
}

static void float_division_at_the_edges(void **state) {
    tk_context *ctx = *state;
    double inf = (double)INFINITY, nan = (double)NAN;
    double x[] = {1, -1, 0, inf, -5, 5, nan, 1}, y[] = {0, 0, 0, 2, inf, -inf, 1, nan};
    static const tk_dtype dtypes[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};
    for (int d = 0; d < 4; d++) {
        tk_array a = tk_astype(tk_from_data(ctx, x, TK_SHAPE(8), TK_FLOAT64), dtypes[d]);
        tk_array b = tk_astype(tk_from_data(ctx, y, TK_SHAPE(8), TK_FLOAT64), dtypes[d]);
        CHECK(tk_floor_divide(a, b), dtypes[d], TK_SHAPE(8), inf, -inf, nan, inf, -1, -1, nan, nan);
        CHECK(tk_remainder(a, b), dtypes[d], TK_SHAPE(8), nan, nan, nan, nan, inf, -inf, nan, nan);
        CHECK(tk_divide(a, b), dtypes[d], TK_SHAPE(8), inf, -inf, nan, inf, 0, 0, nan, nan);
    }
    tk_array seven = tk_full(tk_scalar_int(ctx, 7), TK_SCALAR, TK_INT32);
    CHECK(tk_divide(seven, tk_zeros_like(seven)), TK_FLOAT32, TK_SCALAR, inf);
}

static void truth_values_compute_modulo_two(void **state) {
    tk_context *ctx = *state;
    uint8_t x[] = {0, 0, 1, 1}, y[] = {0, 1, 0, 1};
    tk_array a = tk_from_data(ctx, x, TK_SHAPE(4), TK_BOOL),
             b = tk_from_data(ctx, y, TK_SHAPE(4), TK_BOOL);
    CHECK(tk_add(a, b), TK_BOOL, TK_SHAPE(4), 0, 1, 1, 1);
    CHECK(tk_multiply(a, b), TK_BOOL, TK_SHAPE(4), 0, 0, 0, 1);
    CHECK(tk_floor_divide(a, b), TK_BOOL, TK_SHAPE(4), 0, 0, 0, 1);
    CHECK(tk_remainder(a, b), TK_BOOL, TK_SHAPE(4), 0, 0, 0, 0);
    CHECK(tk_power(a, b), TK_BOOL, TK_SHAPE(4), 1, 0, 1, 1);
    CHECK(tk_left_shift(a, b), TK_BOOL, TK_SHAPE(4), 0, 0, 1, 0);
    CHECK_ERROR(tk_subtract(a, b), TK_DTYPE_ERROR, "subtract");
    CHECK_ERROR(tk_negative(a), TK_DTYPE_ERROR, "negative");
}

/* Ranges at the edges of the integer dtypes. */
static void ranges_of_large_numbers(void **state) {
    tk_context *ctx = *state;
    double far = 0x1p40;
    CHECK(tk_arange(ctx, far, far + 3, 1, TK_INT64), TK_INT64, TK_SHAPE(3), far, far + 1, far + 2);
    CHECK(tk_arange(ctx, 0x1p31 - 2, 0x1p31, 1, TK_INT32), TK_INT32, TK_SHAPE(2), 0x1p31 - 2,
          0x1p31 - 1);
    CHECK(tk_arange(ctx, -0x1p31, -0x1p31 + 2, 1, TK_INT32), TK_INT32, TK_SHAPE(2), -0x1p31,
          -0x1p31 + 1);
    CHECK_ERROR(tk_arange(ctx, 0x1p31 - 1, 0x1p31 + 1, 1, TK_INT32), TK_OVERFLOW, "int32");
    CHECK_ERROR(tk_arange(ctx, 250, 260, 1, TK_UINT8), TK_OVERFLOW, "uint8");
    CHECK_ERROR(tk_arange(ctx, -1, 2, 1, TK_UINT8), TK_OVERFLOW, "uint8");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(binary_ops_by_wide_arithmetic),
        TEST(quotient_and_remainder_make_the_whole),
        TEST(single_values_wrap),
        TEST(sums_and_products_of_narrow_integers),
        TEST(dtypes_of_two_operands),
        TEST(dtypes_of_functions_of_integers),
        TEST(float_division_follows_the_divisor),
        TEST(float_division_at_the_edges),
        TEST(truth_values_compute_modulo_two),
        TEST(ranges_of_large_numbers),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
