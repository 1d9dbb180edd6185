/* Conversions between every pair of dtypes, by a reference in long double and 128-bit integers:
 * floats to integers saturate and NaN gives 0, integers wrap, floats round to nearest even with
 * subnormals kept, anything that is not 0 is true. */
#include "edge/edge_check.h"

__extension__ typedef __int128 big;

typedef struct format {
    int digits, lowest; /* bits of the significand; exponent of the smallest subnormal */
    long double largest;
} format;

static format format_of(tk_dtype dtype) {
    switch (dtype) {
    case TK_FLOAT16:
        return (format){11, -24, 65504};
    case TK_BFLOAT16:
        return (format){8, -133, 0x1.fep127L};
    case TK_FLOAT64:
        return (format){53, -1074, 0x1.fffffffffffffp1023L};
    default:
        return (format){24, -149, 0x1.fffffep127L};
    }
}

/* Nearest, ties to even. */
static long double rounded(tk_dtype dtype, long double x) {
    format f = format_of(dtype);
    if (isnan(x) || isinf(x) || x == 0) return x;
    int exponent;
    (void)frexpl(x, &exponent);
    int unit = exponent - f.digits > f.lowest ? exponent - f.digits : f.lowest;
    long double result = ldexpl(rintl(ldexpl(x, -unit)), unit);
    return fabsl(result) > f.largest ? copysignl(INFINITY, x) : result;
}

static int bits_of(tk_dtype dtype) { return 8 * (int)tk_dtype_size(dtype); }
static bool is_signed(tk_dtype dtype) { return tk_dtype_kind(dtype) == TK_KIND_SIGNED; }
static bool is_float(tk_dtype dtype) { return tk_dtype_is_inexact(dtype); }

static big largest_of(tk_dtype dtype) {
    return ((big)1 << (bits_of(dtype) - is_signed(dtype))) - 1;
}
static big smallest_of(tk_dtype dtype) { return is_signed(dtype) ? -largest_of(dtype) - 1 : 0; }

static big saturated(tk_dtype dtype, long double x) {
    if (isnan(x)) return 0;
    if (x >= (long double)largest_of(dtype)) return largest_of(dtype);
    if (x <= (long double)smallest_of(dtype)) return smallest_of(dtype);
    return (big)x;
}

static big wrapped(tk_dtype dtype, big x) {
    big size = (big)1 << bits_of(dtype), rest = x & (size - 1);
    return is_signed(dtype) && rest >= size / 2 ? rest - size : rest;
}

#define N_REALS 28
#define N_WHOLE 16
#define COPIES 3 /* so that vectors are filled */

static const double reals[N_REALS] = {
    0.0,     -0.0,    1,      -1,    0.5,          -0.5,         1.5,
    2.5,     -1.75,   254.99, 255,   256,          300,          -129,
    32767.5, -32769,  65519,  65520, 2147483647.0, 2147483648.0, -2147483649.0,
    0x1p63,  -0x1p63, 0x1p64, 1e30,  0x1p-25,      0x1.8p-25,    1e-40};

static const int64_t wholes[N_WHOLE] = {
    0,   1,     -1,       2,          127,      128,       -129,      255,
    256, 32768, 16777217, 2147483647, 16842753, INT64_MAX, INT64_MIN, 4294967296};

/* What the reference says a value of `from` is in `to`: `real` for floats, else `whole`. */
typedef struct number {
    long double real;
    big whole;
} number;

static number converted(tk_dtype from, tk_dtype to, number x) {
    number result = {0, 0};
    tk_dtype part = to == TK_COMPLEX64 ? TK_FLOAT32 : to;
    if (to == TK_BOOL)
        result.whole = is_float(from) ? x.real != 0 : x.whole != 0;
    else if (is_float(to))
        result.real = rounded(part, is_float(from) ? x.real : (long double)x.whole);
    else
        result.whole = is_float(from) ? saturated(to, x.real) : wrapped(to, x.whole);
    return result;
}

static int make_values(tk_context *ctx, tk_dtype dtype, tk_array *out_array, number *numbers) {
    int count = is_float(dtype) ? N_REALS + 3 : N_WHOLE;
    double values[(N_REALS + 3) * COPIES];
    int64_t items[N_WHOLE * COPIES];
    for (int i = 0; i < count * COPIES; i++) {
        int k = i % count;
        double special[] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
        if (is_float(dtype)) {
            values[i] = k < N_REALS ? reals[k] : special[k - N_REALS];
            numbers[i] = converted(TK_FLOAT64, dtype, (number){values[i], 0});
        } else {
            items[i] = dtype == TK_BOOL ? wholes[k] & 1 : wholes[k];
            numbers[i] = converted(TK_INT64, dtype, (number){0, items[i]});
        }
    }
    tk_shape shape = TK_SHAPE(count * COPIES);
    tk_array wide = is_float(dtype) ? tk_from_data(ctx, values, shape, TK_FLOAT64)
                                    : tk_from_data(ctx, items, shape, TK_INT64);
    *out_array = tk_astype(wide, dtype);
    return count * COPIES;
}

static bool same_real(long double a, long double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && signbit(a) == signbit(b);
}

static void check_pair(tk_context *ctx, tk_dtype from, tk_dtype to) {
    tk_scope scope = tk_scope_open(ctx);
    number numbers[(N_REALS + 3) * COPIES];
    tk_array source;
    int count = make_values(ctx, from, &source, numbers);
    assert_ok(tk_eval(source));
    tk_array result = tk_astype(source, to);
    double values[(N_REALS + 3) * COPIES];
    int64_t items[(N_REALS + 3) * COPIES];
    tk_array part = to == TK_COMPLEX64 ? tk_real(result) : result;
    if (is_float(to))
        assert_ok(tk_copy_out(tk_astype(part, TK_FLOAT64), values, (size_t)count * 8));
    else
        assert_ok(tk_copy_out(tk_astype(part, TK_INT64), items, (size_t)count * 8));
    for (int i = 0; i < count; i++) {
        number expected = converted(from, to, numbers[i]);
        bool fits = is_float(to) ? same_real(values[i], expected.real)
                                 : items[i] == (int64_t)expected.whole;
        if (fits) continue;
        print_error("%s to %s, value %d (%Lg, %lld): %g or %lld, expected %Lg or %lld\n",
                    tk_dtype_name(from), tk_dtype_name(to), i, numbers[i].real,
                    (long long)numbers[i].whole, is_float(to) ? values[i] : 0,
                    is_float(to) ? 0 : (long long)items[i], expected.real,
                    (long long)expected.whole);
        fail();
    }
    tk_scope_close(scope);
}

static void every_pair_of_dtypes(void **state) {
    for (int from = 0; from < TK_DTYPE_COUNT; from++)
        for (int to = 0; to < TK_DTYPE_COUNT; to++)
            check_pair(*state, (tk_dtype)from, (tk_dtype)to);
}

/* Every bit pattern of the half types goes to float32 and back unchanged. */
static void half_patterns_survive(void **state) {
    tk_context *ctx = *state;
    static const tk_dtype halves[] = {TK_FLOAT16, TK_BFLOAT16};
    for (int d = 0; d < 2; d++) {
        tk_scope scope = tk_scope_open(ctx);
        tk_array bits = tk_astype(tk_arange(ctx, 0, 65536, 1, TK_INT32), TK_UINT16);
        tk_array half = tk_view(bits, halves[d]);
        tk_array back = tk_astype(tk_astype(half, TK_FLOAT32), halves[d]);
        CHECK(tk_array_equal(half, back, true), TK_BOOL, TK_SCALAR, 1);
        tk_array wide = tk_astype(tk_astype(half, TK_FLOAT64), halves[d]);
        CHECK(tk_array_equal(half, wide, true), TK_BOOL, TK_SCALAR, 1);
        tk_array zero = tk_equal(half, tk_scalar(ctx, 0));
        CHECK(tk_sum(zero, TK_ALL_AXES, false), TK_INT32, TK_SCALAR, 2); /* no subnormal is lost */
        tk_scope_close(scope);
    }
}

static void subnormals_are_kept(void **state) {
    tk_context *ctx = *state;
    double tiny[] = {0x1p-149, 0x1p-130};
    tk_array x = tk_astype(tk_from_data(ctx, tiny, TK_SHAPE(2), TK_FLOAT64), TK_FLOAT32);
    CHECK(tk_add(x, x), TK_FLOAT32, TK_SHAPE(2), 0x1p-148, 0x1p-129);
    CHECK(tk_multiply(x, tk_scalar(ctx, 2)), TK_FLOAT32, TK_SHAPE(2), 0x1p-148, 0x1p-129);
    CHECK(tk_sum(x, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 0x1p-130 + 0x1p-149);
    CHECK(tk_max(x, TK_ALL_AXES, false), TK_FLOAT32, TK_SCALAR, 0x1p-130);
    CHECK(tk_exp(tk_scalar(ctx, -100)), TK_FLOAT32, TK_SCALAR, (double)expf(-100));
    tk_array half =
        tk_astype(tk_from_data(ctx, (double[]){0x1p-24}, TK_SCALAR, TK_FLOAT64), TK_FLOAT16);
    CHECK(tk_multiply(half, tk_scalar(ctx, 3)), TK_FLOAT16, TK_SCALAR, 0x1.8p-23);
}

/* A weak number is rounded to the dtype of what it meets; an integer must fit. */
static void weak_scalars_convert(void **state) {
    tk_context *ctx = *state;
    tk_array bytes = tk_zeros(ctx, TK_SHAPE(1), TK_INT8);
    CHECK_ERROR(tk_add(bytes, tk_scalar_int(ctx, 300)), TK_OVERFLOW, "300 does not fit int8");
    CHECK(tk_add(bytes, tk_scalar_int(ctx, -128)), TK_INT8, TK_SHAPE(1), -128);
    tk_array half = tk_zeros(ctx, TK_SHAPE(1), TK_FLOAT16);
    CHECK(tk_add(half, tk_scalar(ctx, 1e6)), TK_FLOAT16, TK_SHAPE(1), (double)INFINITY);
    CHECK(tk_add(half, tk_scalar(ctx, 0.1)), TK_FLOAT16, TK_SHAPE(1), 0x1.998p-4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_pair_of_dtypes),
        TEST(half_patterns_survive),
        TEST(subnormals_are_kept),
        TEST(weak_scalars_convert),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
