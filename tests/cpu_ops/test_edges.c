/* The edge contract (NaN, infinities, signed zeros, integer limits, conversions) as tables: what
 * each op gives for single values, on both paths, alone and inside a longer run. */
#include <limits.h>

#include "cpu_ops/body_check.h"

#define RUN 37 /* copies of the value, so that vector code and its tail both see it */

typedef struct float_case {
    tk_op op;
    double x, y, expected; /* NaN expects a NaN; the sign of a zero counts */
} float_case;

#define OP(name) TK_OP_##name
#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static const float_case float_cases[] = {
    {OP(maximum), NOT, 1, NOT},
    {OP(maximum), 1, NOT, NOT},
    {OP(maximum), -INF, NOT, NOT},
    {OP(minimum), NOT, -INF, NOT},
    {OP(minimum), INF, NOT, NOT},
    {OP(minimum), -INF, INF, -INF},
    {OP(remainder), 5, 3, 2},
    {OP(remainder), -5, 3, 1},
    {OP(remainder), 5, -3, -1},
    {OP(remainder), -5, -3, -2},
    {OP(remainder), 6, 3, 0.0},
    {OP(remainder), -6, 3, 0.0},
    {OP(remainder), 6, -3, -0.0},
    {OP(remainder), -5, INF, INF},
    {OP(remainder), 5, INF, 5},
    {OP(remainder), 5, -INF, -INF},
    {OP(remainder), 5, 0, NOT},
    {OP(remainder), INF, 3, NOT},
    {OP(floor_divide), 7, 2, 3},
    {OP(floor_divide), -7, 2, -4},
    {OP(floor_divide), 7, -2, -4},
    {OP(floor_divide), -7, -2, 3},
    {OP(floor_divide), 1, 0, INF},
    {OP(floor_divide), -1, 0, -INF},
    {OP(floor_divide), 0, 0, NOT},
    {OP(floor_divide), INF, 2, INF},
    {OP(floor_divide), -5, INF, -1},
    {OP(floor_divide), 5, INF, 0.0},
    {OP(floor_divide), -0.0, 2, -0.0},
    {OP(divide), 1, 0, INF},
    {OP(divide), 1, -0.0, -INF},
    {OP(divide), 0, 0, NOT},
    {OP(add), INF, -INF, NOT},
    {OP(multiply), 0, INF, NOT},
    {OP(multiply), -0.0, 2, -0.0},
    {OP(power), 0, 0, 1},
    {OP(power), NOT, 0, 1},
    {OP(power), 1, NOT, 1},
    {OP(power), -2, 3, -8},
    {OP(power), -8, 0.25, NOT},
    {OP(power), 0, -1, INF},
    {OP(power), INF, -1, 0.0},
    {OP(logaddexp), -INF, -INF, -INF},
    {OP(logaddexp), INF, INF, INF},
    {OP(logaddexp), INF, -INF, INF},
    {OP(logaddexp), -INF, 2, 2},
    {OP(logaddexp), NOT, 2, NOT},
    {OP(arctan2), 0, -1, 3.14159265358979323846},
    {OP(arctan2), -0.0, -1, -3.14159265358979323846},
    {OP(abs), -0.0, 0, 0.0},
    {OP(negative), 0, 0, -0.0},
    {OP(sign), NOT, 0, NOT},
    {OP(sign), -INF, 0, -1},
    {OP(rint), 0.5, 0, 0.0},
    {OP(rint), 1.5, 0, 2},
    {OP(rint), 2.5, 0, 2},
    {OP(rint), -0.5, 0, -0.0},
    {OP(ceil), -0.5, 0, -0.0},
    {OP(trunc), -1.75, 0, -1},
    {OP(sqrt), -1, 0, NOT},
    {OP(sqrt), -0.0, 0, -0.0},
    {OP(rsqrt), 0, 0, INF},
    {OP(exp), -INF, 0, 0.0},
    {OP(exp), INF, 0, INF},
    {OP(expm1), -INF, 0, -1},
    {OP(log), 0, 0, -INF},
    {OP(log), -1, 0, NOT},
    {OP(log1p), -1, 0, -INF},
    {OP(log2), 8, 0, 3},
    {OP(log10), 1000, 0, 3},
    {OP(sin), INF, 0, NOT},
    {OP(tanh), -INF, 0, -1},
    {OP(tanh), -0.0, 0, -0.0},
    {OP(arccosh), 0.5, 0, NOT},
    {OP(arctanh), 1, 0, INF},
    {OP(arcsin), 2, 0, NOT},
    {OP(erf), INF, 0, 1},
    {OP(erfinv), 1, 0, INF},
    {OP(erfinv), -1, 0, -INF},
    {OP(erfinv), 1.5, 0, NOT},
    {OP(sigmoid), -INF, 0, 0.0},
    {OP(sigmoid), INF, 0, 1},
    {OP(sigmoid), NOT, 0, NOT},
    {OP(equal), NOT, NOT, 0},
    {OP(not_equal), NOT, NOT, 1},
    {OP(less_equal), NOT, 1, 0},
    {OP(greater_equal), 1, NOT, 0},
    {OP(equal), 0, -0.0, 1},
    {OP(less), -0.0, 0, 0},
};

static sample repeat(tk_dtype dtype, wide value, int64_t count) {
    sample s = sample_new(dtype, 1, &count, DENSE);
    for (int64_t i = 0; i < count; i++) sample_write(&s.view, i, value);
    return s;
}

static bool same_zero(double got, double expected) {
    return expected != 0 || signbit(got) == signbit(expected);
}

static void check_float(const float_case *c, tk_dtype dtype) {
    static const int64_t count = RUN;
    sample inputs[2] = {repeat(dtype, wide_real((real)c->x), RUN),
                        repeat(dtype, wide_real((real)c->y), RUN)};
    bool tests = tk_op_of(c->op)->result == TK_RESULT_BOOL;
    int arity = strchr(tk_op_of(c->op)->params, ',') ? 2 : 1;
    sample out = call_sample(c->op, NULL, arity, inputs, tests ? TK_BOOL : dtype, 1, &count);
    for (int64_t i = 0; i < RUN; i++) {
        wide got = sample_read(&out.view, i), expected = {(real)c->expected, 0, c->expected != 0};
        if (!tests) expected = wide_round(dtype, expected);
        if (!wide_close(out.view.dtype, got, expected, 2) ||
            (!tests && !same_zero((double)got.re, (double)expected.re))) {
            char text[120];
            snprintf(text, sizeof text, "%s(%g, %g)", tk_op_name(c->op), c->x, c->y);
            fail_at(text, dtype, i, got, expected);
        }
    }
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

static void test_floats(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int i = 0; i < COUNT(float_cases); i++)
            for (int d = 0; d < COUNT(dtypes); d++) check_float(&float_cases[i], dtypes[d]);
    }
    tk_cpu_use_reference(false);
}

/* ---- integers ---- */

typedef struct integer_case {
    tk_op op;
    tk_dtype dtype;
    int64_t x, y, expected;
} integer_case;

static const integer_case integer_cases[] = {
    {OP(floor_divide), TK_INT32, 7, 0, 0},
    {OP(floor_divide), TK_UINT8, 7, 0, 0},
    {OP(floor_divide), TK_INT32, INT32_MIN, -1, INT32_MIN},
    {OP(floor_divide), TK_INT64, INT64_MIN, -1, INT64_MIN},
    {OP(floor_divide), TK_INT8, -128, -1, -128},
    {OP(floor_divide), TK_INT16, -7, 2, -4},
    {OP(floor_divide), TK_UINT64, -1, 2, INT64_MAX},
    {OP(remainder), TK_INT32, 7, 0, 0},
    {OP(remainder), TK_INT32, INT32_MIN, -1, 0},
    {OP(remainder), TK_INT64, INT64_MIN, -1, 0},
    {OP(remainder), TK_INT8, -7, 3, 2},
    {OP(remainder), TK_INT8, 7, -3, -2},
    {OP(remainder), TK_UINT16, 7, 3, 1},
    {OP(add), TK_INT32, INT32_MAX, 1, INT32_MIN},
    {OP(add), TK_INT64, INT64_MAX, 1, INT64_MIN},
    {OP(subtract), TK_UINT8, 0, 1, 255},
    {OP(multiply), TK_UINT16, 65535, 65535, 1},
    {OP(multiply), TK_INT64, INT64_MIN, -1, INT64_MIN},
    {OP(negative), TK_INT32, INT32_MIN, 0, INT32_MIN},
    {OP(abs), TK_INT8, -128, 0, -128},
    {OP(power), TK_INT32, 2, 31, INT32_MIN},
    {OP(power), TK_INT32, 2, 32, 0},
    {OP(power), TK_INT32, 3, -1, 0},
    {OP(power), TK_INT32, 0, -1, 0},
    {OP(power), TK_INT32, 1, -5, 1},
    {OP(power), TK_INT32, -1, -5, -1},
    {OP(power), TK_INT32, -1, -4, 1},
    {OP(power), TK_INT64, INT64_MAX, 2, 1},
    {OP(power), TK_UINT8, 0, 0, 1},
    {OP(left_shift), TK_INT32, 1, 31, INT32_MIN},
    {OP(left_shift), TK_INT32, 1, 32, 0},
    {OP(left_shift), TK_INT32, 1, -1, 0},
    {OP(left_shift), TK_UINT64, 1, 64, 0},
    {OP(left_shift), TK_UINT8, 255, 4, 240},
    {OP(right_shift), TK_INT32, -8, 1, -4},
    {OP(right_shift), TK_INT32, -8, 32, -1},
    {OP(right_shift), TK_INT32, 8, 40, 0},
    {OP(right_shift), TK_INT64, -1, -1, -1},
    {OP(right_shift), TK_UINT32, 0x80000000, 31, 1},
    {OP(right_shift), TK_UINT8, 255, 8, 0},
    {OP(bitwise_invert), TK_UINT8, 5, 0, 250},
    {OP(bitwise_invert), TK_BOOL, 1, 0, 0},
    {OP(add), TK_BOOL, 1, 1, 1},
    {OP(multiply), TK_BOOL, 1, 0, 0},
    {OP(left_shift), TK_BOOL, 1, 1, 0},
    {OP(power), TK_BOOL, 0, 0, 1},
    {OP(maximum), TK_BOOL, 0, 1, 1},
};

static void check_integer(const integer_case *c) {
    static const int64_t count = RUN;
    sample inputs[2] = {repeat(c->dtype, wide_int(c->x), RUN),
                        repeat(c->dtype, wide_int(c->y), RUN)};
    int arity = strchr(tk_op_of(c->op)->params, ',') ? 2 : 1;
    sample out = call_sample(c->op, NULL, arity, inputs, c->dtype, 1, &count);
    wide expected = wide_round(c->dtype, wide_int(c->expected));
    for (int64_t i = 0; i < RUN; i++) {
        wide got = sample_read(&out.view, i);
        if (got.integer != expected.integer) fail_at(tk_op_name(c->op), c->dtype, i, got, expected);
    }
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

static void test_integers(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int i = 0; i < COUNT(integer_cases); i++) check_integer(&integer_cases[i]);
    }
    tk_cpu_use_reference(false);
}

/* Bytes that are neither 0 nor 1 may come from a bitcast; they count as true. */
static void test_odd_truth_values(void **state) {
    (void)state;
    static const int64_t count = RUN;
    static const tk_op ops[] = {OP(logical_and), OP(equal), OP(multiply), OP(maximum),
                                OP(bitwise_and)};
    sample inputs[2] = {repeat(TK_UINT8, wide_int(2), RUN), repeat(TK_UINT8, wide_int(64), RUN)};
    inputs[0].view.dtype = inputs[1].view.dtype = TK_BOOL;
    for (int i = 0; i < COUNT(ops); i++) {
        sample out = call_sample(ops[i], NULL, 2, inputs, TK_BOOL, 1, &count);
        for (int64_t k = 0; k < RUN; k++) assert_int_equal(((uint8_t *)out.view.data)[k], 1);
        sample_free(&out);
    }
    sample not = call_sample(OP(logical_not), NULL, 1, inputs, TK_BOOL, 1, &count);
    assert_int_equal(((uint8_t *)not .view.data)[0], 0);
    sample_free(&not );
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
}

/* ---- conversions ---- */

typedef struct cast_case {
    tk_dtype from, to;
    real x;
    big integer;
    real expected;
    big whole;
} cast_case;

#define FROM_REAL(from, to, x, whole)                                                              \
    { TK_##from, TK_##to, x, 0, 0, whole }
#define FROM_INT(from, to, x, expected)                                                            \
    { TK_##from, TK_##to, 0, x, expected, 0 }
#define REALS(from, to, x, expected)                                                               \
    { TK_##from, TK_##to, x, 0, expected, 0 }

static const cast_case cast_cases[] = {
    FROM_REAL(FLOAT32, INT32, NAN, 0),
    FROM_REAL(FLOAT32, INT32, INFINITY, INT32_MAX),
    FROM_REAL(FLOAT32, INT32, -INFINITY, INT32_MIN),
    FROM_REAL(FLOAT32, INT32, 2147483648.0L, INT32_MAX),
    FROM_REAL(FLOAT32, INT32, -1.75L, -1),
    FROM_REAL(FLOAT32, UINT8, -5, 0),
    FROM_REAL(FLOAT32, UINT8, 300, 255),
    FROM_REAL(FLOAT32, UINT8, 254.99L, 254),
    FROM_REAL(FLOAT32, INT8, 200, 127),
    FROM_REAL(FLOAT32, INT64, 1e30L, INT64_MAX),
    FROM_REAL(FLOAT64, INT64, -0x1p63L, INT64_MIN),
    FROM_REAL(FLOAT64, UINT64, 1e30L, UINT64_MAX),
    FROM_REAL(FLOAT64, UINT64, 18446744073709549568.0L, (big)18446744073709549568ull),
    FROM_REAL(FLOAT16, INT16, INFINITY, INT16_MAX),
    FROM_REAL(BFLOAT16, UINT32, NAN, 0),
    FROM_REAL(FLOAT32, BOOL, NAN, 1),
    FROM_REAL(FLOAT32, BOOL, -0.0L, 0),
    FROM_REAL(FLOAT32, BOOL, 0x1p-149L, 1),
    FROM_REAL(FLOAT64, BOOL, 1e-320L, 1),
    FROM_REAL(FLOAT16, BOOL, 0x1p-24L, 1),
    {TK_INT32, TK_INT8, 0, 300, 0, 44},
    {TK_INT64, TK_UINT32, 0, -1, 0, UINT32_MAX},
    {TK_UINT64, TK_INT64, 0, UINT64_MAX, 0, -1},
    {TK_INT32, TK_BOOL, 0, 256, 0, 1},
    FROM_INT(BOOL, FLOAT16, 1, 1),
    FROM_INT(INT64, FLOAT32, 16777217, 16777216),
    FROM_INT(UINT64, FLOAT64, UINT64_MAX, 0x1p64L),
    FROM_INT(INT32, FLOAT16, 70000, INFINITY),
    FROM_INT(INT32, FLOAT16, 65519, 65504),
    /* 2^24 + 2^16 + 1 lies above the middle of two bf16 neighbours; by way of f32 it would be even.
     */
    FROM_INT(INT32, BFLOAT16, 16777216 + 65536 + 1, 16777216 + 131072),
    FROM_INT(UINT64, BFLOAT16, ((big)1 << 63) + ((big)1 << 55) + 1, 0x1p63L + 0x1p56L),
    FROM_INT(INT64, BFLOAT16, -((big)1 << 40) - ((big)1 << 32) - 1, -0x1p40L - 0x1p33L),
    REALS(FLOAT64, FLOAT32, 1e39L, INFINITY),
    REALS(FLOAT64, FLOAT16, 1 + 0x1p-11L + 0x1p-40L, 1 + 0x1p-10L),
    REALS(FLOAT64, BFLOAT16, 1 + 0x1p-8L + 0x1p-40L, 1 + 0x1p-7L),
    REALS(FLOAT32, FLOAT16, 0x1p-25L, 0),
    REALS(FLOAT32, FLOAT16, 0x1.8p-25L, 0x1p-24L),
    REALS(FLOAT32, FLOAT16, 65520, INFINITY),
    REALS(FLOAT32, BFLOAT16, 0x1p-133L, 0x1p-133L),
    REALS(FLOAT64, FLOAT64, 0x1p-1074L, 0x1p-1074L),
    REALS(COMPLEX64, FLOAT32, 3, 3),
    FROM_INT(INT8, COMPLEX64, -7, -7),
};

static void test_casts(void **state) {
    (void)state;
    static const int64_t count = RUN;
    for (int i = 0; i < COUNT(cast_cases); i++) {
        const cast_case *c = &cast_cases[i];
        tk_attrs_dtype attrs = {.dtype = c->to};
        sample in = repeat(c->from, (wide){c->x, 0, c->integer}, RUN);
        sample out = call_sample(OP(astype), &attrs, 1, &in, c->to, 1, &count);
        for (int64_t k = 0; k < RUN; k++) {
            wide got = sample_read(&out.view, k), expected = {c->expected, 0, c->whole};
            if (!wide_close(c->to, got, expected, 0)) {
                char text[80];
                snprintf(text, sizeof text, "case %d from %s to", i, tk_dtype_name(c->from));
                fail_at(text, c->to, k, got, expected);
            }
        }
        sample_free(&in);
        sample_free(&out);
    }
}

static void test_imaginary_truth(void **state) {
    (void)state;
    static const int64_t count = RUN;
    tk_attrs_dtype attrs = {.dtype = TK_BOOL};
    sample in = repeat(TK_COMPLEX64, (wide){0, 2, 0}, RUN);
    sample out = call_sample(OP(astype), &attrs, 1, &in, TK_BOOL, 1, &count);
    for (int64_t i = 0; i < RUN; i++) assert_int_equal(sample_read(&out.view, i).integer, 1);
    sample_free(&in);
    sample_free(&out);
}

/* ---- complex numbers ---- */

typedef struct complex_case {
    tk_op op;
    float x[2], y[2], expected[2];
} complex_case;

static const complex_case complex_cases[] = {
    {OP(divide), {1, 0}, {0, 0}, {INFINITY, NAN}},
    {OP(divide), {1, 2}, {INFINITY, 0}, {0, 0}},
    {OP(divide), {1e30f, 1e30f}, {1e30f, 1e30f}, {1, 0}},
    {OP(power), {-1, 0}, {2, 0}, {1, 0}},
    {OP(power), {0, 0}, {0, 0}, {1, 0}},
    {OP(power), {0, 1}, {-2, 0}, {-1, 0}},
    {OP(exp), {-INFINITY, 0}, {0, 0}, {0, 0}},
    {OP(exp), {100, 0}, {0, 0}, {INFINITY, 0}},
    {OP(sqrt), {-4, 0}, {0, 0}, {0, 2}},
    {OP(sqrt), {-4, -0.0f}, {0, 0}, {0, -2}},
    {OP(log), {0, 0}, {0, 0}, {-INFINITY, 0}},
    {OP(log1p), {1e-20f, 1e-20f}, {0, 0}, {1e-20f, 1e-20f}},
    {OP(expm1), {1e-20f, 1e-20f}, {0, 0}, {1e-20f, 1e-20f}},
    {OP(tanh), {100, 1}, {0, 0}, {1, 0}},
    {OP(sigmoid), {-200, 1}, {0, 0}, {0, 0}},
    {OP(sigmoid), {200, 1}, {0, 0}, {1, 0}},
    {OP(sign), {0, 0}, {0, 0}, {0, 0}},
    {OP(sign), {3, -4}, {0, 0}, {0.6f, -0.8f}},
    {OP(maximum), {NAN, 0}, {1, 0}, {NAN, 0}},
    {OP(maximum), {5, 0}, {1, NAN}, {1, NAN}},
    {OP(maximum), {1, 2}, {1, 3}, {1, 3}},
    {OP(minimum), {1, 2}, {1, 3}, {1, 2}},
    {OP(logaddexp), {-INFINITY, 0}, {2, 1}, {2, 1}},
    {OP(multiply), {1, 2}, {3, 4}, {-5, 10}},
};

static void test_complex(void **state) {
    (void)state;
    static const int64_t count = 3;
    for (int i = 0; i < COUNT(complex_cases); i++) {
        const complex_case *c = &complex_cases[i];
        sample inputs[2] = {repeat(TK_COMPLEX64, (wide){c->x[0], c->x[1], 0}, count),
                            repeat(TK_COMPLEX64, (wide){c->y[0], c->y[1], 0}, count)};
        int arity = strchr(tk_op_of(c->op)->params, ',') ? 2 : 1;
        sample out = call_sample(c->op, NULL, arity, inputs, TK_COMPLEX64, 1, &count);
        wide got = sample_read(&out.view, 1), expected = {c->expected[0], c->expected[1], 0};
        bool close = part_close(TK_FLOAT32, got.re, expected.re, fabsl(expected.re), 2) &&
                     part_close(TK_FLOAT32, got.im, expected.im, fabsl(expected.im), 2);
        if (!close &&
            !(fabsl(got.re - expected.re) < 1e-30L && fabsl(got.im - expected.im) < 1e-30L))
            fail_at(tk_op_name(c->op), TK_COMPLEX64, i, got, expected);
        sample_free(&inputs[0]);
        sample_free(&inputs[1]);
        sample_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),           cmocka_unit_test(test_integers),
        cmocka_unit_test(test_odd_truth_values), cmocka_unit_test(test_casts),
        cmocka_unit_test(test_imaginary_truth),  cmocka_unit_test(test_complex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
