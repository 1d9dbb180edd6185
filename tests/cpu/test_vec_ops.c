/* Binary operations, comparison, selection and conversion of every variant, against one-line C. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "cpu_check.h"

#define SIZE 83

static float special(uint64_t *state) {
    static const float values[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN,
                                   1.0f, -1.0f, FLT_MAX,  0x1p-149f, -0x1p-130f};
    uint32_t pick = next_random(state) % 20;
    return pick < COUNT(values) ? values[pick] : (float)(next_unit(state) * 100);
}

static double apply(tk_vec_binary_op op, double a, double b) {
    switch (op) {
    case TK_VEC_ADD:
        return a + b;
    case TK_VEC_SUB:
        return a - b;
    case TK_VEC_MUL:
        return a * b;
    case TK_VEC_DIV:
        return a / b;
    case TK_VEC_MAX:
        return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    case TK_VEC_MIN:
        return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    default:
        return pow(a, b);
    }
}

/* + - * / of floats in double and rounded once more are the float results (24 bits in 53). */
static void check_binary(tk_dtype dtype, tk_vec_binary_op op, tk_vec_mode mode, const double *a,
                         const double *b, const double *got, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double exact = apply(op, a[mode == TK_VEC_SV ? 0 : i], b[mode == TK_VEC_VS ? 0 : i]);
        double rounded = exact;
        if (dtype == TK_FLOAT32) rounded = (float)exact;
        if (dtype == TK_FLOAT16) rounded = (double)tk_f16_to_f32(tk_f32_to_f16((float)exact));
        if (dtype == TK_BFLOAT16) rounded = (double)tk_bf16_to_f32(tk_f32_to_bf16((float)exact));
        if (isnan(rounded))
            assert_true(isnan(got[i]));
        else if (op == TK_VEC_POW)
            assert_true(got[i] == rounded || fabs(got[i] - exact) <= 0x1p-8 * fabs(exact));
        else
            assert_true(got[i] == rounded);
    }
}

static void binary_case(tk_dtype dtype, tk_vec_binary_op op, tk_vec_mode mode, int64_t count,
                        int64_t offset) {
    uint64_t state = (uint64_t)(count * 131 + offset + 1);
    double a[SIZE], b[SIZE], got[SIZE];
    _Alignas(64) char raw_a[SIZE * 8], raw_b[SIZE * 8], raw_out[SIZE * 8];
    size_t bytes = tk_dtype_size(dtype);
    for (int64_t i = 0; i < SIZE; i++) {
        a[i] = (double)special(&state);
        b[i] = (double)special(&state);
    }
    put_values(dtype, a, raw_a, SIZE);
    put_values(dtype, b, raw_b, SIZE);
    get_values(dtype, raw_a, a, SIZE);
    get_values(dtype, raw_b, b, SIZE);
    memset(raw_out, 0x77, sizeof raw_out);
    size_t shift = (size_t)offset * bytes;
    tk_vec_binary(op, dtype, mode, raw_a + shift, raw_b + shift, raw_out + shift, count);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(raw_out[shift + (size_t)count * bytes + i], 0x77);
    get_values(dtype, raw_out, got, SIZE);
    check_binary(dtype, op, mode, a + offset, b + offset, got + offset, count);
    tk_vec_binary(op, dtype, mode, raw_a + shift, raw_b + shift, raw_a + shift, count);
    if (mode != TK_VEC_SV)
        assert_memory_equal(raw_a + shift, raw_out + shift, (size_t)count * bytes);
}

static void binary(void) {
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT64, TK_FLOAT16, TK_BFLOAT16};
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int op = 0; op < TK_VEC_BINARY_COUNT; op++)
            for (int mode = 0; mode < TK_VEC_MODE_COUNT; mode++)
                for (int64_t count = 0; count < 70; count += 3)
                    binary_case(dtypes[d], (tk_vec_binary_op)op, (tk_vec_mode)mode, count,
                                count % 7);
}
static void test_binary(void **state) {
    (void)state;
    for_each_variant(binary);
}

static void powers(void) {
    uint64_t state = 5;
    for (int i = 0; i < 200000; i++) {
        float a = tk_bits_float(next_random(&state)), got;
        float b =
            i & 1 ? (float)(next_unit(&state) * 20) : (float)(int)(next_random(&state) % 9) - 4;
        tk_vec_binary(TK_VEC_POW, TK_FLOAT32, TK_VEC_VV, &a, &b, &got, 1);
        double exact = pow((double)a, (double)b);
        if (isnan(exact))
            assert_true(isnan(got));
        else if (fabs(exact) > (double)FLT_MAX)
            assert_true((float)exact == got || isinf(got));
        else
            assert_true(fabs((double)got - exact) <= fmax(fabs(exact) * 0x1p-22, 0x1p-148));
    }
}
static void test_pow(void **state) {
    (void)state;
    for_each_variant(powers);
}

static void test_integers(void **state) {
    (void)state;
    int32_t a[] = {INT32_MIN, 7, -7, INT32_MAX, 5}, b[] = {-1, 0, 2, 1, -3}, out[5];
    tk_vec_binary(TK_VEC_DIV, TK_INT32, TK_VEC_VV, a, b, out, 5);
    assert_memory_equal(out, ((int32_t[]){INT32_MIN, 0, -3, INT32_MAX, -1}), sizeof out);
    tk_vec_binary(TK_VEC_ADD, TK_INT32, TK_VEC_VS, a, &b[3], out, 5);
    assert_memory_equal(out, ((int32_t[]){INT32_MIN + 1, 8, -6, INT32_MIN, 6}), sizeof out);
    uint16_t wide[] = {65535, 65535}, product[2];
    tk_vec_binary(TK_VEC_MUL, TK_UINT16, TK_VEC_VV, wide, wide, product, 2);
    assert_int_equal(product[1], 1);
    int8_t small[] = {-128, 3, 0}, result[3];
    tk_vec_unary(TK_VEC_ABS, TK_INT8, small, result, 3);
    assert_memory_equal(result, ((int8_t[]){-128, 3, 0}), 3);
    tk_vec_unary(TK_VEC_SIGN, TK_INT8, small, result, 3);
    assert_memory_equal(result, ((int8_t[]){-1, 1, 0}), 3);
    uint64_t large[] = {UINT64_MAX, 6, 0}, quotient[3], minus_one = UINT64_MAX;
    tk_vec_binary(TK_VEC_DIV, TK_UINT64, TK_VEC_VS, large, &minus_one, quotient, 3);
    assert_memory_equal(quotient, ((uint64_t[]){1, 0, 0}), sizeof quotient);
    tk_vec_unary(TK_VEC_SIGN, TK_UINT64, large, quotient, 3);
    assert_memory_equal(quotient, ((uint64_t[]){1, 1, 0}), sizeof quotient);
    assert_false(tk_vec_unary_has(TK_VEC_EXP, TK_INT32));
    assert_false(tk_vec_binary_has(TK_VEC_POW, TK_INT32));
    assert_false(tk_vec_binary_has(TK_VEC_ADD, TK_COMPLEX64));
}

static bool compare(int op, double a, double b) {
    bool results[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    return results[op];
}
static void compares(void) {
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT64, TK_FLOAT16, TK_BFLOAT16,
                                      TK_INT8,    TK_UINT32,  TK_BOOL};
    uint64_t state = 9;
    double a[SIZE], b[SIZE];
    char raw_a[SIZE * 8], raw_b[SIZE * 8];
    uint8_t out[SIZE];
    for (int i = 0; i < SIZE; i++) {
        a[i] = (double)special(&state);
        b[i] = i % 3 ? (double)special(&state) : a[i];
    }
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        put_values(dtypes[d], a, raw_a, SIZE);
        put_values(dtypes[d], b, raw_b, SIZE);
        double wide_a[SIZE], wide_b[SIZE];
        get_values(dtypes[d], raw_a, wide_a, SIZE);
        get_values(dtypes[d], raw_b, wide_b, SIZE);
        for (int op = 0; op < TK_VEC_COMPARE_COUNT; op++)
            for (int mode = 0; mode < TK_VEC_MODE_COUNT; mode++) {
                tk_vec_compare((tk_vec_compare_op)op, dtypes[d], (tk_vec_mode)mode, raw_a, raw_b,
                               out, SIZE);
                for (int i = 0; i < SIZE; i++)
                    assert_int_equal(out[i], compare(op, wide_a[mode == TK_VEC_SV ? 0 : i],
                                                     wide_b[mode == TK_VEC_VS ? 0 : i]));
            }
    }
}
static void test_compare(void **state) {
    (void)state;
    for_each_variant(compares);
}

static void wheres(void) {
    uint8_t condition[SIZE], a[SIZE * 8], b[SIZE * 8], out[SIZE * 8];
    uint64_t state = 3;
    for (int i = 0; i < SIZE; i++)
        condition[i] = next_random(&state) % 3 == 0 ? 0 : (uint8_t)(1 + next_random(&state) % 255);
    for (int i = 0; i < SIZE * 8; i++) {
        a[i] = (uint8_t)next_random(&state);
        b[i] = (uint8_t)next_random(&state);
    }
    for (size_t bytes = 1; bytes <= 8; bytes *= 2)
        for (int scalars = 0; scalars < 4; scalars++) {
            tk_vec_where(bytes, condition, a, scalars & 1, b, scalars & 2, out, SIZE);
            for (size_t i = 0; i < SIZE; i++) {
                const uint8_t *wanted = condition[i] ? a + (scalars & 1 ? 0 : i * bytes)
                                                     : b + (scalars & 2 ? 0 : i * bytes);
                assert_memory_equal(out + i * bytes, wanted, bytes);
            }
        }
}
static void test_where(void **state) {
    (void)state;
    for_each_variant(wheres);
}

static void fused(void) {
    float x[SIZE], y[SIZE], z[SIZE], out[SIZE];
    double wide_x[SIZE], wide_y[SIZE], wide_out[SIZE];
    fill_unit_f32(1, x, SIZE);
    fill_unit_f32(2, y, SIZE);
    fill_unit_f32(3, z, SIZE);
    tk_vec_axpby_f32(0.9f, x, 0.1f, y, out, SIZE);
    for (int i = 0; i < SIZE; i++) {
        float left = 0.9f * x[i], right = 0.1f * y[i];
        assert_true(out[i] == left + right);
    }
    tk_vec_muladd_f32(x, y, z, out, SIZE);
    for (int i = 0; i < SIZE; i++) {
        float product = x[i] * y[i];
        assert_true(out[i] == product + z[i]);
        wide_x[i] = (double)x[i];
        wide_y[i] = (double)y[i];
    }
    tk_vec_axpby_f64(3.0, wide_x, -2.0, wide_y, wide_out, SIZE);
    for (int i = 0; i < SIZE; i++) assert_true(wide_out[i] == 3.0 * wide_x[i] + -2.0 * wide_y[i]);
}
static void test_fused(void **state) {
    (void)state;
    for_each_variant(fused);
}

/* Spans so long that results are stored past the cache: the same as in pieces. */
static void long_spans(void) {
    enum { LONG = (16 << 20) / 4 + 37, PIECE = 100000 };
    float *x = malloc(LONG * 4), *whole = aligned_alloc(64, (LONG * 4 + 63) / 64 * 64);
    float *pieces = malloc(LONG * 4);
    fill_unit_f32(17, x, LONG);
    tk_vec_unary(TK_VEC_EXP, TK_FLOAT32, x, whole, LONG);
    for (int64_t i = 0; i < LONG; i += PIECE)
        tk_vec_unary(TK_VEC_EXP, TK_FLOAT32, x + i, pieces + i,
                     LONG - i < PIECE ? LONG - i : PIECE);
    assert_memory_equal(whole, pieces, LONG * 4);
    for (int64_t i = 0; i < LONG; i += PIECE)
        tk_vec_binary(TK_VEC_MUL, TK_FLOAT32, TK_VEC_VS, x + i, x, pieces + i,
                      LONG - i < PIECE ? LONG - i : PIECE);
    tk_vec_binary(TK_VEC_MUL, TK_FLOAT32, TK_VEC_VS, x, x, whole, LONG);
    assert_memory_equal(whole, pieces, LONG * 4);
    free(x);
    free(whole);
    free(pieces);
}
static void test_long_spans(void **state) {
    (void)state;
    for_each_variant(long_spans);
}

static void halves(void) {
    static uint16_t all[65536], back[65536];
    static float wide[65536];
    for (int i = 0; i < 65536; i++) all[i] = (uint16_t)i;
    tk_vec_convert(TK_FLOAT16, TK_FLOAT32, all, wide, 65536);
    for (int i = 0; i < 65536; i++)
        assert_int_equal(tk_float_bits(wide[i]), tk_float_bits(tk_f16_to_f32(all[i])));
    tk_vec_convert(TK_BFLOAT16, TK_FLOAT32, all, wide, 65536);
    for (int i = 0; i < 65536; i++) assert_int_equal(tk_float_bits(wide[i]), (uint32_t)i << 16);
    uint32_t bits = 0;
    for (int chunk = 0; chunk < 40; chunk++) {
        for (int i = 0; i < 65536; i++, bits += 1640)
            wide[i] = tk_bits_float(chunk & 1 ? bits : bits & 0xfffff000u);
        tk_vec_convert(TK_FLOAT32, TK_FLOAT16, wide, back, 65536);
        for (int i = 0; i < 65536; i++) assert_int_equal(back[i], tk_f32_to_f16(wide[i]));
        tk_vec_convert(TK_FLOAT32, TK_BFLOAT16, wide, back, 65533);
        for (int i = 0; i < 65533; i++) assert_int_equal(back[i], tk_f32_to_bf16(wide[i]));
    }
}
static void test_halves(void **state) {
    (void)state;
    for_each_variant(halves);
}

static void test_saturation(void **state) {
    (void)state;
    double x[] = {NAN, INFINITY, -INFINITY, 1e30, -1e30, 2.9, -2.9, 255.5, -0.5, 2147483647.5};
    int32_t i32[10];
    uint8_t u8[10];
    int64_t i64[10];
    uint64_t u64[10];
    uint8_t flags[10];
    tk_vec_convert(TK_FLOAT64, TK_INT32, x, i32, 10);
    assert_memory_equal(
        i32, ((int32_t[]){0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 2, -2, 255, 0, INT32_MAX}),
        sizeof i32);
    tk_vec_convert(TK_FLOAT64, TK_UINT8, x, u8, 10);
    assert_memory_equal(u8, ((uint8_t[]){0, 255, 0, 255, 0, 2, 0, 255, 0, 255}), sizeof u8);
    tk_vec_convert(TK_FLOAT64, TK_INT64, x, i64, 5);
    assert_memory_equal(i64, ((int64_t[]){0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN}), 40);
    tk_vec_convert(TK_FLOAT64, TK_UINT64, x, u64, 5);
    assert_memory_equal(u64, ((uint64_t[]){0, UINT64_MAX, 0, UINT64_MAX, 0}), 40);
    tk_vec_convert(TK_FLOAT64, TK_BOOL, x, flags, 10);
    assert_memory_equal(flags, ((uint8_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), 10);
}

/* Every pair of dtypes on small integers, which all but bool hold, and on chunk borders. */
static void test_every_pair(void **state) {
    (void)state;
    static double values[2051], back[2051];
    static char from_raw[2051 * 8], to_raw[2051 * 8];
    for (int i = 0; i < 2051; i++) values[i] = i % 128;
    for (int from = 0; from < TK_DTYPE_COUNT; from++)
        for (int to = 0; to < TK_DTYPE_COUNT; to++) {
            put_values((tk_dtype)from, values, from_raw, 2051);
            tk_vec_convert((tk_dtype)from, (tk_dtype)to, from_raw, to_raw, 2051);
            get_values((tk_dtype)to, to_raw, back, 2051);
            bool flags = from == TK_BOOL || to == TK_BOOL;
            for (int i = 0; i < 2051; i++)
                assert_true(back[i] == (flags ? values[i] != 0 : values[i]));
        }
    int64_t wrap = 0x1ff80000007f, big = INT64_MAX;
    int8_t narrow;
    float rounded;
    tk_vec_convert(TK_INT64, TK_INT8, &wrap, &narrow, 1);
    assert_int_equal(narrow, 0x7f);
    tk_vec_convert(TK_INT64, TK_FLOAT32, &big, &rounded, 1);
    assert_true(rounded == 0x1p63f);
    uint64_t top = UINT64_MAX;
    tk_vec_convert(TK_UINT64, TK_FLOAT32, &top, &rounded, 1);
    assert_true(rounded == 0x1p64f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binary),     cmocka_unit_test(test_pow),
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_compare),
        cmocka_unit_test(test_where),      cmocka_unit_test(test_fused),
        cmocka_unit_test(test_long_spans), cmocka_unit_test(test_halves),
        cmocka_unit_test(test_saturation), cmocka_unit_test(test_every_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
