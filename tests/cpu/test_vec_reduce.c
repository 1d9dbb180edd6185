/* Reductions, scans and softmax against double-precision loops, over sizes around every block
 * border; and that threads and variants do not change a bit. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "cpu/vec_reduce.h"
#include "cpu_check.h"

static const tk_dtype floats[] = {TK_FLOAT32, TK_FLOAT64, TK_FLOAT16, TK_BFLOAT16};

/* In long double, so that the reference of f64 is more exact than what it checks. */
static double reduce(tk_vec_reduce_op op, const double *x, int64_t count, int64_t step,
                     double *scale) {
    static const double identities[] = {0, 1, -INFINITY, INFINITY, 0};
    long double result = identities[op];
    *scale = 0;
    for (int64_t i = 0; i < count && result == result; i++) {
        long double v = x[i * step];
        *scale += (double)(op == TK_VEC_SUMSQ ? v * v : fabsl(v));
        if (op == TK_VEC_SUM) result += v;
        if (op == TK_VEC_SUMSQ) result += v * v;
        if (op == TK_VEC_PROD) result *= v;
        if (op == TK_VEC_RMAX) result = v > result ? v : result;
        if (op == TK_VEC_RMIN) result = v < result ? v : result;
    }
    if (op == TK_VEC_PROD) *scale = fabs((double)result) * (double)count;
    return (double)result;
}

static double result_at(tk_dtype dtype, const void *out, int64_t i) {
    return dtype == TK_FLOAT64 ? ((const double *)out)[i] : (double)((const float *)out)[i];
}

/* One matrix by rows and by the outer axis. Products use values near 1. */
static void reduce_case(tk_dtype dtype, tk_vec_reduce_op op, int64_t rows, int64_t columns,
                        int64_t stride) {
    size_t count = (size_t)(rows * stride + 1);
    double *values = calloc(count, 8), scale;
    void *raw = calloc(count, 8), *out = calloc((size_t)(rows + columns), 8);
    uint64_t state = 77;
    for (size_t i = 0; i < count; i++)
        values[i] = op == TK_VEC_PROD ? 1 + next_unit(&state) / 64 : next_unit(&state);
    put_values(dtype, values, raw, (int64_t)count);
    get_values(dtype, raw, values, (int64_t)count);
    double unit = dtype == TK_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    assert_int_equal(tk_reduce_rows(op, dtype, raw, rows, columns, stride, out), TK_OK);
    for (int64_t r = 0; r < rows; r++) {
        double exact = reduce(op, values + r * stride, columns, 1, &scale);
        double got = result_at(dtype, out, r);
        assert_true(got == exact || fabs(got - exact) <= 8 * unit * scale);
    }
    assert_int_equal(tk_reduce_outer(op, dtype, raw, rows, columns, stride, out), TK_OK);
    for (int64_t c = 0; c < columns; c++) {
        double exact = reduce(op, values + c, rows, stride, &scale);
        double got = result_at(dtype, out, c);
        assert_true(got == exact || fabs(got - exact) <= 8 * unit * scale);
    }
    free(values);
    free(raw);
    free(out);
}

static void reductions(void) {
    static const int64_t shapes[][3] = {{1, 1, 1},         {3, 31, 40},   {5, 33, 33},
                                        {2, 4097, 4100},   {0, 5, 5},     {4, 0, 3},
                                        {70, 17, 17},      {1030, 9, 11}, {65, 1027, 1030},
                                        {2, 65537, 65537}, {2200, 3, 3},  {1, 150000, 150000}};
    for (size_t d = 0; d < COUNT(floats); d++)
        for (int op = 0; op < TK_VEC_REDUCE_COUNT; op++)
            for (size_t s = 0; s < COUNT(shapes); s++)
                reduce_case(floats[d], (tk_vec_reduce_op)op, shapes[s][0], shapes[s][1],
                            shapes[s][2]);
}
static void test_reductions(void **state) {
    (void)state;
    for_each_variant(reductions);
}

static void nan_places(void) {
    float x[70], out;
    for (int place = 0; place < 70; place++) {
        fill_unit_f32(4, x, 70);
        x[place] = NAN;
        for (int op = 0; op < TK_VEC_REDUCE_COUNT; op++) {
            assert_int_equal(tk_reduce_rows((tk_vec_reduce_op)op, TK_FLOAT32, x, 1, 70, 70, &out),
                             TK_OK);
            assert_true(isnan(out));
            assert_int_equal(tk_reduce_outer((tk_vec_reduce_op)op, TK_FLOAT32, x, 70, 1, 1, &out),
                             TK_OK);
            assert_true(isnan(out));
        }
    }
}
static void test_nan(void **state) {
    (void)state;
    for_each_variant(nan_places);
}

/* Results of one and several threads, and of all variants, as bytes. */
static void test_same_bits(void **state) {
    (void)state;
    int64_t rows = 1500, columns = 1100, total = rows * columns;
    float *x = malloc((size_t)total * 4), *first = NULL,
          *out = malloc((size_t)(rows + columns + 1) * 4);
    fill_unit_f32(11, x, total);
    for (int variant = 0; variant < TK_VEC_VARIANT_COUNT; variant++)
        for (int threads = 1; threads <= 4 && tk_vec_variant_use((tk_vec_variant)variant);
             threads++) {
            assert_int_equal(tk_pool_set_threads(threads), TK_OK);
            assert_int_equal(tk_reduce_rows(TK_VEC_SUM, TK_FLOAT32, x, rows, columns, columns, out),
                             TK_OK);
            assert_int_equal(
                tk_reduce_outer(TK_VEC_SUMSQ, TK_FLOAT32, x, rows, columns, columns, out + rows),
                TK_OK);
            assert_int_equal(
                tk_reduce_rows(TK_VEC_SUM, TK_FLOAT32, x, 1, total, total, out + rows + columns),
                TK_OK);
            if (!first) {
                first = out;
                out = malloc((size_t)(rows + columns + 1) * 4);
            } else {
                assert_memory_equal(first, out, (size_t)(rows + columns + 1) * 4);
            }
        }
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
    assert_true(tk_vec_variant_use(tk_vec_variant_best()));
    free(x);
    free(first);
    free(out);
}

static void test_integers(void **state) {
    (void)state;
    int8_t x[] = {100, 100, 100, -128, 5, -7};
    int64_t rows[2], outer[3];
    assert_int_equal(tk_reduce_rows(TK_VEC_SUM, TK_INT8, x, 2, 3, 3, rows), TK_OK);
    assert_memory_equal(rows, ((int64_t[]){300, -130}), sizeof rows);
    assert_int_equal(tk_reduce_outer(TK_VEC_RMIN, TK_INT8, x, 2, 3, 3, outer), TK_OK);
    assert_memory_equal(outer, ((int64_t[]){-128, 5, -7}), sizeof outer);
    assert_int_equal(tk_reduce_outer(TK_VEC_PROD, TK_INT8, x, 2, 3, 3, outer), TK_OK);
    assert_memory_equal(outer, ((int64_t[]){-12800, 500, -700}), sizeof outer);
    assert_int_equal(tk_reduce_rows(TK_VEC_RMAX, TK_INT8, x, 1, 0, 0, rows), TK_OK);
    assert_int_equal(rows[0], INT8_MIN);
    static uint8_t many[100000];
    uint64_t total, least;
    memset(many, 1, sizeof many);
    assert_int_equal(tk_reduce_rows(TK_VEC_SUM, TK_BOOL, many, 1, 100000, 0, &total), TK_OK);
    assert_int_equal(total, 100000);
    assert_int_equal(tk_reduce_rows(TK_VEC_RMIN, TK_BOOL, many, 1, 100000, 0, &least), TK_OK);
    assert_int_equal(least, 1);
}

static void arguments(void) {
    static float x[9000];
    int64_t index;
    fill_unit_f32(8, x, 9000);
    for (int64_t place = 0; place < 9000; place += 997) {
        float kept = x[place], other = x[8999];
        x[place] = x[8999] = 5;
        tk_argmax_rows(TK_FLOAT32, x, 1, 9000, 0, &index);
        assert_int_equal(index, place);
        x[place] = x[8999] = -5;
        tk_argmin_rows(TK_FLOAT32, x, 1, 9000, 0, &index);
        assert_int_equal(index, place);
        x[place] = x[8999] = NAN;
        tk_argmin_rows(TK_FLOAT32, x, 1, 9000, 0, &index);
        assert_int_equal(index, place);
        tk_argmax_rows(TK_FLOAT32, x, 1, 9000, 0, &index);
        assert_int_equal(index, place);
        x[place] = kept;
        x[8999] = other;
    }
    float infinite[3] = {-INFINITY, -INFINITY, -INFINITY};
    tk_argmax_rows(TK_FLOAT32, infinite, 1, 3, 0, &index);
    assert_int_equal(index, 0);
    uint16_t halves[4] = {0x3c00, 0x4000, 0x4000, 0xbc00};
    tk_argmax_rows(TK_FLOAT16, halves, 1, 4, 0, &index);
    assert_int_equal(index, 1);
    int64_t integers[4] = {3, -9, 7, 7}, both[2];
    tk_argmax_rows(TK_INT64, integers, 2, 2, 2, both);
    assert_memory_equal(both, ((int64_t[]){0, 0}), sizeof both);
    double wide[3] = {1, NAN, INFINITY};
    tk_argmax_rows(TK_FLOAT64, wide, 1, 3, 0, &index);
    assert_int_equal(index, 1);
}
static void test_arguments(void **state) {
    (void)state;
    for_each_variant(arguments);
}

static double tolerance(tk_dtype dtype) {
    return dtype == TK_FLOAT64   ? 1e-13
           : dtype == TK_FLOAT32 ? 2e-6
           : dtype == TK_FLOAT16 ? 2e-3
                                 : 1e-2;
}

static void softmax_case(tk_dtype dtype, int64_t rows, int64_t columns) {
    int64_t count = rows * columns;
    double *x = malloc((size_t)count * 8), *y = malloc((size_t)count * 8),
           *dy = malloc((size_t)count * 8), *dx = malloc((size_t)count * 8);
    void *raw = malloc((size_t)count * 8), *out = malloc((size_t)count * 8),
         *raw_dy = malloc((size_t)count * 8);
    double lse[8];
    uint64_t state = 21;
    for (int64_t i = 0; i < count; i++) {
        x[i] = next_unit(&state) * 9;
        dy[i] = next_unit(&state);
    }
    put_values(dtype, x, raw, count);
    get_values(dtype, raw, x, count);
    put_values(dtype, dy, raw_dy, count);
    get_values(dtype, raw_dy, dy, count);
    tk_softmax_rows(dtype, raw, columns, out, columns, rows, columns);
    get_values(dtype, out, y, count);
    char raw_lse[64];
    tk_logsumexp_rows(dtype, raw, rows, columns, columns, raw_lse);
    get_values(dtype, raw_lse, lse, rows);
    tk_softmax_backward_rows(dtype, out, raw_dy, raw_dy, rows, columns);
    get_values(dtype, raw_dy, dx, count);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, dot = 0;
        for (int64_t c = 0; c < columns; c++) sum += exp(x[r * columns + c]);
        assert_true(fabs(lse[r] - log(sum)) <= tolerance(dtype) * (1 + fabs(log(sum))));
        for (int64_t c = 0; c < columns; c++) dot += y[r * columns + c] * dy[r * columns + c];
        for (int64_t c = 0; c < columns; c++) {
            double exact = exp(x[r * columns + c]) / sum, at = y[r * columns + c];
            assert_true(fabs(at - exact) <=
                        tolerance(dtype) * exact + (dtype == TK_FLOAT16 ? 0x1p-24 : 0));
            double gradient = at * (dy[r * columns + c] - dot);
            assert_true(fabs(dx[r * columns + c] - gradient) <=
                        tolerance(dtype) * 4 * at + 1e-7 * tolerance(dtype) +
                            (dtype == TK_FLOAT16 ? 0x1p-24 : 0));
        }
    }
    free(x);
    free(y);
    free(dy);
    free(dx);
    free(raw);
    free(out);
    free(raw_dy);
}
static void softmaxes(void) {
    for (size_t d = 0; d < COUNT(floats); d++) {
        softmax_case(floats[d], 3, 1);
        softmax_case(floats[d], 5, 37);
        softmax_case(floats[d], 2, 4096);
        softmax_case(floats[d], 2, 9001);
    }
    float masked[3] = {-INFINITY, -INFINITY, -INFINITY}, partly[3] = {-INFINITY, 0, -INFINITY},
          out[3];
    tk_softmax_rows(TK_FLOAT32, masked, 3, out, 3, 1, 3);
    assert_true(isnan(out[0]) && isnan(out[2]));
    tk_softmax_rows(TK_FLOAT32, partly, 3, out, 3, 1, 3);
    assert_true(out[0] == 0 && out[1] == 1 && out[2] == 0);
    tk_logsumexp_rows(TK_FLOAT32, masked, 1, 3, 3, out);
    assert_true(out[0] == -INFINITY);
    tk_logsumexp_rows(TK_FLOAT32, masked, 1, 0, 0, out);
    assert_true(out[0] == -INFINITY);
    masked[1] = INFINITY;
    tk_logsumexp_rows(TK_FLOAT32, masked, 1, 3, 3, out);
    assert_true(out[0] == INFINITY);
    masked[2] = NAN;
    tk_logsumexp_rows(TK_FLOAT32, masked, 1, 3, 3, out);
    assert_true(isnan(out[0]));
}
static void test_softmax(void **state) {
    (void)state;
    for_each_variant(softmaxes);
}

static void test_cumsum(void **state) {
    (void)state;
    static double values[9000], got[9000];
    static char raw[9000 * 8], out[9000 * 8];
    uint64_t seed = 31;
    for (int i = 0; i < 9000; i++) values[i] = next_unit(&seed);
    for (size_t d = 0; d < COUNT(floats); d++) {
        put_values(floats[d], values, raw, 9000);
        double exact[9000], sum = 0;
        get_values(floats[d], raw, exact, 9000);
        tk_cumsum_rows(floats[d], raw, 9000, out, 9000, 1, 9000);
        get_values(floats[d], out, got, 9000);
        for (int i = 0; i < 9000; i++) {
            sum += exact[i];
            assert_true(fabs(got[i] - sum) <= tolerance(floats[d]) * fabs(sum) + 1e-12);
        }
    }
    uint8_t bytes[4] = {200, 100, 1, 2}, sums[4];
    tk_cumsum_rows(TK_UINT8, bytes, 2, sums, 2, 2, 2);
    assert_memory_equal(sums, ((uint8_t[]){200, 44, 1, 3}), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions), cmocka_unit_test(test_nan),
        cmocka_unit_test(test_same_bits),  cmocka_unit_test(test_integers),
        cmocka_unit_test(test_arguments),  cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_cumsum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
