/* The unary functions of every variant this machine runs, against libm in double: error in units in
 * the last place over a sweep of all float bit patterns, special values, every f16, and that
 * neither position nor length changes a result.
 *
 * TIKI_TEST_EXHAUSTIVE=1 in the environment visits all 2^32 floats (minutes a function). */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "cpu_check.h"

#define CHUNK 4096

static double negate(double x) { return -x; }
static double square(double x) { return x * x; }
static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double reciprocal(double x) { return 1 / x; }
static double sigmoid(double x) { return x < -700 ? 0 : 1 / (1 + exp(-x)); }
static double silu(double x) { return isinf(x) && x < 0 ? -0.0 : x * sigmoid(x); }
static double gelu(double x) {
    return isinf(x) && x < 0 ? -0.0 : x / 2 * erfc(-x * 0.70710678118654752440);
}
static double gelu_tanh(double x) {
    if (isinf(x) && x < 0) return -0.0;
    return x * sigmoid(1.5957691216057307117 * (x + 0.044715 * x * x * x));
}
/* Solves erf(y) = x, or erfc(y) = 1 - x where that is the more exact equation, by bisection in long
 * double and so shares nothing with the code under test. */
static double erfinv(double x) {
    double magnitude = fabs(x);
    if (!(magnitude < 1)) return magnitude == 1 ? copysign(INFINITY, x) : NAN;
    if (magnitude < 1e-9) return x * 0.88622692545275801365;
    long double low = 0, high = 7;
    for (int i = 0; i < 100; i++) {
        long double middle = (low + high) / 2;
        bool above = magnitude < 0.5 ? erfl(middle) > magnitude : erfcl(middle) < 1 - magnitude;
        if (above)
            high = middle;
        else
            low = middle;
    }
    return copysign((double)low, x);
}

typedef double reference_fn(double);
static reference_fn *const references[TK_VEC_UNARY_COUNT] = {
    negate, fabs, square, sign,  floor, ceil, rint,   trunc,   sqrt, rsqrt, reciprocal, exp,
    expm1,  log,  log1p,  log2,  log10, sin,  cos,    tan,     sinh, cosh,  tanh,       asin,
    acos,   atan, asinh,  acosh, atanh, erf,  erfinv, sigmoid, silu, gelu,  gelu_tanh};

static const char *const names[] = {
#define NAME(id, name, ulp) #name,
    TK_VEC_UNARY_OPS(NAME)
#undef NAME
};
static const double bounds[] = {
#define BOUND(id, name, ulp) ulp,
    TK_VEC_UNARY_OPS(BOUND)
#undef BOUND
};

/* Distance of a float from the exact value, in units in the last place of the exact value. */
static double ulp_error(float got, double exact) {
    if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if ((float)exact == got) return !signbit(got) == !signbit(exact) || got != 0 ? 0.5 : INFINITY;
    if (isinf(got)) return fabs(exact) > (double)FLT_MAX * (1 - 0x1p-22) ? 1 : INFINITY;
    int exponent = exact == 0 ? -126 : ilogb(exact);
    if (exponent < -126) exponent = -126;
    if (exponent > 127) exponent = 127;
    return fabs((double)got - exact) / ldexp(1, exponent - 23);
}

static void check_chunk(int op, const float *x, int64_t count, double *worst, float *where) {
    float got[CHUNK];
    tk_vec_unary((tk_vec_unary_op)op, TK_FLOAT32, x, got, count);
    for (int64_t i = 0; i < count; i++) {
        double exact = references[op](x[i]);
        double error =
            bounds[op] == 0
                ? (((float)exact == got[i] && !signbit((float)exact) == !signbit(got[i])) ||
                           (isnan(exact) && isnan(got[i]))
                       ? 0
                       : INFINITY)
                : ulp_error(got[i], exact);
        if (error > *worst) {
            *worst = error;
            *where = x[i];
        }
    }
}

static uint64_t sweep_step(int op) {
    if (getenv("TIKI_TEST_EXHAUSTIVE")) return 1;
    return op == TK_VEC_ERFINV ? 1000003 : 20011;
}

static void sweep(int op) {
    float x[CHUNK], where = 0;
    double worst = 0;
    int64_t count = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += sweep_step(op)) {
        x[count++] = tk_bits_float((uint32_t)bits);
        if (count < CHUNK) continue;
        check_chunk(op, x, count, &worst, &where);
        count = 0;
    }
    for (float at = -12.0f; at < 12.0f && count < CHUNK; at += 0.0117f) x[count++] = at;
    check_chunk(op, x, count, &worst, &where);
    print_message("  %-7s %-10s %.3f at %a\n", tk_vec_variant_name(tk_vec_variant_in_use()),
                  names[op], worst, (double)where);
    assert_true(worst <= bounds[op]);
}

static void sweep_all(void) {
    for (int op = 0; op < TK_VEC_UNARY_COUNT; op++) sweep(op);
}
static void test_error_bounds(void **state) {
    (void)state;
    for_each_variant(sweep_all);
}

/* Around the places where the code changes its way: poles, cuts, overflow, subnormals. */
static void special_values(void) {
    static const float points[] = {
        0.0f,       0x1p-149f, 0x1p-126f, 0x1p-24f, 0x1p-12f,   0.25f,      0.41421357f, 0.5f,
        0.625f,     0.921875f, 1.0f,      1.41421f, 1.5f,       1.5707964f, 2.0f,        2.5f,
        3.1415927f, 4.0f,      10.0f,     87.33f,   88.722839f, 89.415f,    103.97f,     104.5f,
        0x1p20f,    0x1.8p23f, 0x1p31f,   1e10f,    FLT_MAX,    INFINITY,   NAN};
    for (int op = 0; op < TK_VEC_UNARY_COUNT; op++) {
        float x[CHUNK], where = 0;
        double worst = 0;
        int64_t count = 0;
        for (size_t i = 0; i < COUNT(points); i++)
            for (int32_t step = -8; step <= 8; step++) {
                float near = points[i];
                if (!isnan(near) && (int32_t)tk_float_bits(near) + step >= 0)
                    near = tk_bits_float(tk_float_bits(near) + (uint32_t)step);
                x[count++] = near;
                x[count++] = -near;
            }
        check_chunk(op, x, count, &worst, &where);
        if (worst > bounds[op]) print_error("%s: %f at %a\n", names[op], worst, (double)where);
        assert_true(worst <= bounds[op]);
    }
}
static void test_special_values(void **state) {
    (void)state;
    for_each_variant(special_values);
}

/* f16 results are the f32 result rounded; f32 is within its bound, so one unit of f16 is enough. */
static void every_f16(void) {
    static uint16_t x[65536], got[65536];
    for (int i = 0; i < 65536; i++) x[i] = (uint16_t)i;
    for (int op = 0; op < TK_VEC_UNARY_COUNT; op++) {
        tk_vec_unary((tk_vec_unary_op)op, TK_FLOAT16, x, got, 65536);
        for (int i = 0; i < 65536; i += op == TK_VEC_ERFINV ? 37 : 1) {
            double exact = references[op]((double)tk_f16_to_f32(x[i]));
            uint16_t expected = tk_f32_to_f16((float)exact);
            float value = tk_f16_to_f32(got[i]), wanted = tk_f16_to_f32(expected);
            if (isnan(wanted))
                assert_true(isnan(value));
            else
                assert_true(abs((int)(got[i] & 0x7fff) - (int)(expected & 0x7fff)) <= 1);
        }
    }
}
static void test_every_f16(void **state) {
    (void)state;
    for_each_variant(every_f16);
}

/* The same element at every offset of spans of every short length gives the same bits. */
static void positions(void) {
    float x[67], alone[67], out[67];
    for (int i = 0; i < 67; i++) x[i] = (float)(i - 30) * 0.37f + (i % 9 == 0 ? 3e7f : 0.0f);
    for (int op = 0; op < TK_VEC_UNARY_COUNT; op++) {
        for (int i = 0; i < 67; i++)
            tk_vec_unary((tk_vec_unary_op)op, TK_FLOAT32, x + i, alone + i, 1);
        for (int start = 0; start < 17; start++)
            for (int length = 0; length <= 67 - start; length++) {
                memset(out, 0x55, sizeof out);
                tk_vec_unary((tk_vec_unary_op)op, TK_FLOAT32, x + start, out + start, length);
                assert_memory_equal(out + start, alone + start, (size_t)length * 4);
                if (start + length < 67)
                    assert_int_equal(tk_float_bits(out[start + length]), 0x55555555);
            }
    }
}
static void test_positions(void **state) {
    (void)state;
    for_each_variant(positions);
}

static double erfinv_residual(double x) {
    double y;
    tk_vec_unary(TK_VEC_ERFINV, TK_FLOAT64, &x, &y, 1);
    double exact = erfinv(x);
    return fabs(y - exact) / fabs(exact);
}
static void test_f64(void **state) {
    (void)state;
    for (double x = 1e-6; x < 1; x += 0.00731) assert_true(erfinv_residual(x) < 8 * DBL_EPSILON);
    for (double gap = 0.1; gap > 1e-15; gap /= 3)
        assert_true(erfinv_residual(1 - gap) < 8 * DBL_EPSILON);
    for (int op = 0; op < TK_VEC_UNARY_COUNT; op++)
        for (double x = -12.0; x < 12; x += 0.0173) {
            double got, exact = references[op](x);
            tk_vec_unary((tk_vec_unary_op)op, TK_FLOAT64, &x, &got, 1);
            if (isnan(exact))
                assert_true(isnan(got));
            else if (isinf(exact))
                assert_true(got == exact);
            else
                assert_true(fabs(got - exact) <= 1e-12 * fabs(exact));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_bounds), cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_every_f16),    cmocka_unit_test(test_positions),
        cmocka_unit_test(test_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
