/* Norms, rope and cross entropy, forward and backward, against loops in double; the f64 backward
 * passes against finite differences; rows whose mean dwarfs their deviation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "cpu/norm.h"
#include "cpu_check.h"

static const tk_dtype floats[] = {TK_FLOAT32, TK_FLOAT64, TK_FLOAT16, TK_BFLOAT16};

static double tolerance(tk_dtype dtype) {
    return dtype == TK_FLOAT64   ? 1e-12
           : dtype == TK_FLOAT32 ? 4e-6
           : dtype == TK_FLOAT16 ? 3e-3
                                 : 2e-2;
}

/* Random values as a dtype holds them; the raw array is the caller's to free. */
static void *operand(tk_dtype dtype, uint64_t seed, int64_t count, double *values) {
    void *raw = malloc((size_t)(count + 1) * 8);
    for (int64_t i = 0; i < count; i++) values[i] = next_unit(&seed) * 2 + 0.3;
    put_values(dtype, values, raw, count);
    get_values(dtype, raw, values, count);
    return raw;
}

static void check_near(tk_dtype dtype, const void *raw, const double *exact, int64_t count,
                       double factor) {
    double *got = malloc((size_t)(count + 1) * 8);
    get_values(dtype, raw, got, count);
    for (int64_t i = 0; i < count; i++)
        assert_true(fabs(got[i] - exact[i]) <= factor * tolerance(dtype) * (1 + fabs(exact[i])));
    free(got);
}

static void reference_row(bool centered, const double *x, const double *w, const double *b,
                          const double *dy, int64_t n, double eps, double *y, double *dx,
                          double *dw, double *db) {
    double mean = 0, var = 0, shift = 0, slope = 0;
    for (int64_t i = 0; i < n && centered; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / (double)n;
    double inverse = 1 / sqrt(var + eps);
    for (int64_t i = 0; i < n; i++) {
        double xhat = (x[i] - mean) * inverse, g = dy[i] * w[i];
        y[i] = xhat * w[i] + b[i];
        shift += centered ? g / (double)n : 0;
        slope += g * xhat / (double)n;
        dw[i] += dy[i] * xhat;
        db[i] += dy[i];
    }
    for (int64_t i = 0; i < n; i++)
        dx[i] = inverse * (dy[i] * w[i] - shift - (x[i] - mean) * inverse * slope);
}

static void norm_case(tk_dtype dtype, bool centered, bool weighted, int64_t rows, int64_t n) {
    int64_t count = rows * n;
    double *memory = calloc((size_t)(5 * count + 5 * n + 10), 8), *x = memory, *dy = x + count,
           *y = dy + count, *dx = y + count;
    double *w = dx + count, *b = w + n, *dw = b + n, *db = dw + n;
    void *raw_x = operand(dtype, 1, count, x), *raw_dy = operand(dtype, 2, count, dy),
         *raw_w = operand(dtype, 3, n, w), *raw_b = operand(dtype, 4, n, b);
    for (int64_t i = 0; i < n; i++) {
        if (!weighted) w[i] = 1;
        if (!weighted || !centered) b[i] = 0;
    }
    for (int64_t r = 0; r < rows; r++)
        reference_row(centered, x + r * n, w, b, dy + r * n, n, 1e-5, y + r * n, dx + r * n, dw,
                      db);
    char *out = malloc((size_t)(count + 2 * n + 1) * 8), *out_w = out + count * 8,
         *out_b = out_w + n * 8;
    const void *weight = weighted ? raw_w : NULL;
    if (centered) {
        assert_int_equal(
            tk_cpu_layer_norm(dtype, raw_x, weight, weighted ? raw_b : NULL, 1e-5, out, rows, n),
            TK_OK);
        check_near(dtype, out, y, count, 1);
        assert_int_equal(tk_cpu_layer_norm_backward(dtype, raw_x, weight, 1e-5, raw_dy, out, out_w,
                                                    out_b, rows, n),
                         TK_OK);
        check_near(dtype, out_b, db, n, 2 + (double)rows / 8);
    } else {
        assert_int_equal(tk_cpu_rms_norm(dtype, raw_x, weight, 1e-5, out, rows, n), TK_OK);
        check_near(dtype, out, y, count, 1);
        assert_int_equal(
            tk_cpu_rms_norm_backward(dtype, raw_x, weight, 1e-5, raw_dy, out, out_w, rows, n),
            TK_OK);
    }
    check_near(dtype, out, dx, count, 20);
    check_near(dtype, out_w, dw, n, 2 + (double)rows / 8);
    assert_int_equal(
        tk_cpu_rms_norm_backward(dtype, raw_x, weight, 1e-5, raw_dy, raw_dy, NULL, rows, n), TK_OK);
    if (!centered) check_near(dtype, raw_dy, dx, count, 20);
    free(memory);
    free(raw_x);
    free(raw_dy);
    free(raw_w);
    free(raw_b);
    free(out);
}

static void norms(void) {
    static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {5, 32}, {70, 45}, {2, 5000}, {0, 4}};
    for (size_t d = 0; d < COUNT(floats); d++)
        for (size_t s = 0; s < COUNT(shapes); s++)
            for (int kind = 0; kind < 4; kind++)
                norm_case(floats[d], kind & 1, kind & 2, shapes[s][0], shapes[s][1]);
}
static void test_norms(void **state) {
    (void)state;
    for_each_variant(norms);
}

/* Mean 10000, deviation 0.01: ten steps of f32 apart. The result is that of the rounded values. */
static void far_from_zero(void) {
    enum { N = 1000 };
    float x[N], y[N];
    double exact_mean = 0, exact_var = 0;
    uint64_t seed = 6;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(1e4 + 0.017 * next_unit(&seed));
        exact_mean += (double)x[i] / N;
    }
    for (int i = 0; i < N; i++)
        exact_var += ((double)x[i] - exact_mean) * ((double)x[i] - exact_mean) / N;
    assert_int_equal(tk_cpu_layer_norm(TK_FLOAT32, x, NULL, NULL, 0, y, 1, N), TK_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)y[i] - ((double)x[i] - exact_mean) / sqrt(exact_var)) < 1e-4);
}
static void test_far_from_zero(void **state) {
    (void)state;
    for_each_variant(far_from_zero);
}

static void test_weight_threads(void **state) {
    (void)state;
    enum { ROWS = 500, N = 96 };
    static float x[ROWS * N], dy[ROWS * N], w[N], results[2][ROWS * N + 2 * N];
    fill_unit_f32(1, x, ROWS * N);
    fill_unit_f32(2, dy, ROWS * N);
    fill_unit_f32(3, w, N);
    for (int threads = 1; threads <= 4; threads++) {
        float *to = results[threads > 1];
        assert_int_equal(tk_pool_set_threads(threads), TK_OK);
        assert_int_equal(tk_cpu_layer_norm_backward(TK_FLOAT32, x, w, 1e-5, dy, to, to + ROWS * N,
                                                    to + ROWS * N + N, ROWS, N),
                         TK_OK);
        if (threads > 1) assert_memory_equal(results[0], results[1], sizeof results[0]);
    }
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
}

static double weighted_sum(bool centered, const double *x, const double *w, const double *b,
                           const double *dy, int64_t rows, int64_t n) {
    double out[64], sum = 0;
    if (centered)
        assert_int_equal(tk_cpu_layer_norm(TK_FLOAT64, x, w, b, 1e-3, out, rows, n), TK_OK);
    else
        assert_int_equal(tk_cpu_rms_norm(TK_FLOAT64, x, w, 1e-3, out, rows, n), TK_OK);
    for (int64_t i = 0; i < rows * n; i++) sum += out[i] * dy[i];
    return sum;
}
static void test_finite_differences(void **state) {
    (void)state;
    enum { ROWS = 3, N = 5 };
    for (int centered = 0; centered < 2; centered++) {
        double x[ROWS * N + 2 * N], dy[ROWS * N],
            gradient[ROWS * N + 2 * N] = {0}, *w = x + ROWS * N, *b = w + N;
        free(operand(TK_FLOAT64, 1, ROWS * N + 2 * N, x));
        free(operand(TK_FLOAT64, 2, ROWS * N, dy));
        if (centered)
            assert_int_equal(tk_cpu_layer_norm_backward(TK_FLOAT64, x, w, 1e-3, dy, gradient,
                                                        gradient + ROWS * N,
                                                        gradient + ROWS * N + N, ROWS, N),
                             TK_OK);
        else
            assert_int_equal(tk_cpu_rms_norm_backward(TK_FLOAT64, x, w, 1e-3, dy, gradient,
                                                      gradient + ROWS * N, ROWS, N),
                             TK_OK);
        for (int i = 0; i < ROWS * N + (centered ? 2 : 1) * N; i++) {
            double kept = x[i];
            x[i] = kept + 1e-6;
            double above = weighted_sum(centered, x, w, b, dy, ROWS, N);
            x[i] = kept - 1e-6;
            double below = weighted_sum(centered, x, w, b, dy, ROWS, N);
            x[i] = kept;
            assert_true(fabs((above - below) / 2e-6 - gradient[i]) < 1e-7);
        }
    }
}

static void rope_case(tk_dtype dtype, int64_t dims, bool traditional, bool frequencies,
                      int64_t offsets) {
    enum { B = 2, H = 3, L = 5, D = 10, SIZE = B * H * L * D };
    double x[SIZE], exact[SIZE];
    float given[D / 2] = {1.5f, 2.25f, 7, 40, 900};
    int64_t offset[2] = {7, 100000};
    void *raw = operand(dtype, 3, SIZE, x), *out = malloc(SIZE * 8);
    tk_rope_args args = {.dtype = dtype,
                         .batch = B,
                         .heads = H,
                         .length = L,
                         .head_dim = D,
                         .dims = dims,
                         .traditional = traditional,
                         .base = 1000,
                         .scale = 0.5,
                         .frequencies = frequencies ? given : NULL,
                         .offsets = offset,
                         .offset_count = offsets};
    for (int row = 0; row < B * H * L; row++) {
        const double *from = x + row * D;
        double *to = exact + row * D;
        memcpy(to, from, D * sizeof *to);
        for (int64_t i = 0; i < dims / 2; i++) {
            double position = (double)(row % L + offset[offsets == 1 ? 0 : row / L / H]) * 0.5;
            double angle = position * (frequencies ? 1 / (double)given[i]
                                                   : pow(1000, -2.0 * (double)i / (double)dims));
            int64_t a = traditional ? 2 * i : i, b = traditional ? 2 * i + 1 : i + dims / 2;
            to[a] = from[a] * cos(angle) - from[b] * sin(angle);
            to[b] = from[a] * sin(angle) + from[b] * cos(angle);
        }
    }
    assert_int_equal(tk_cpu_rope(&args, raw, out), TK_OK);
    check_near(dtype, out, exact, SIZE, dtype == TK_FLOAT64 ? 1e3 : 1);
    args.inverse = true;
    assert_int_equal(tk_cpu_rope(&args, out, out), TK_OK);
    check_near(dtype, out, x, SIZE, dtype == TK_FLOAT64 ? 1e3 : 2);
    free(raw);
    free(out);
}
static void ropes(void) {
    for (size_t d = 0; d < COUNT(floats); d++)
        for (int bits = 0; bits < 8; bits++)
            for (int64_t dims = 6; dims <= 10; dims += 2)
                rope_case(floats[d], dims, bits & 1, bits & 2, bits & 4 ? 2 : 1);
}
static void test_rope(void **state) {
    (void)state;
    for_each_variant(ropes);
}

static void entropy_case(tk_dtype dtype, int64_t rows, int64_t n) {
    int64_t count = rows * n;
    double *x = malloc((size_t)count * 8), *dx = malloc((size_t)count * 8), loss[8], scale[8],
           lse[8];
    int64_t targets[8];
    bool wide = dtype == TK_FLOAT64;
    tk_dtype stat = wide ? TK_FLOAT64 : TK_FLOAT32;
    void *raw = operand(dtype, 5, count, x), *out = malloc((size_t)count * 8);
    double raw_loss[8], raw_lse[8], raw_scale[8];
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        targets[r] = (r * 7919 + 3) % n;
        scale[r] = 0.25 * (double)(r + 1);
        for (int64_t c = 0; c < n; c++) sum += exp(x[r * n + c]);
        lse[r] = log(sum);
        loss[r] = lse[r] - x[r * n + targets[r]];
        for (int64_t c = 0; c < n; c++)
            dx[r * n + c] = (exp(x[r * n + c] - lse[r]) - (c == targets[r])) * scale[r];
    }
    put_values(stat, scale, raw_scale, rows);
    assert_int_equal(tk_cpu_cross_entropy(dtype, raw, targets, raw_loss, raw_lse, rows, n), -1);
    check_near(stat, raw_loss, loss, rows, 1);
    check_near(stat, raw_lse, lse, rows, 1);
    tk_cpu_cross_entropy_backward(dtype, raw, targets, raw_lse, raw_scale, out, rows, n);
    check_near(dtype, out, dx, count, 1);
    free(x);
    free(dx);
    free(raw);
    free(out);
}
static void entropies(void) {
    for (size_t d = 0; d < COUNT(floats); d++) {
        entropy_case(floats[d], 4, 1);
        entropy_case(floats[d], 7, 50);
        entropy_case(floats[d], 3, 9001);
    }
}
static void test_cross_entropy(void **state) {
    (void)state;
    for_each_variant(entropies);
    float x[6] = {1, 2, 3, 4, 5, 6}, loss[3], lse[3], dx[6], scale[3] = {1, 1, 1};
    int64_t targets[3] = {0, 2, -1};
    assert_int_equal(tk_cpu_cross_entropy(TK_FLOAT32, x, targets, loss, lse, 3, 2), 1);
    assert_true(loss[1] == lse[1] && loss[2] == lse[2]);
    tk_cpu_cross_entropy_backward(TK_FLOAT32, x, targets, lse, scale, dx, 3, 2);
    assert_true(dx[0] < 0 && dx[2] > 0 && dx[3] > 0 && dx[4] > 0);
    x[2] = -INFINITY;
    x[3] = -INFINITY;
    targets[1] = 0;
    tk_cpu_cross_entropy(TK_FLOAT32, x, targets, loss, NULL, 2, 2);
    assert_true(isnan(loss[1]) && !isnan(loss[0]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms),          cmocka_unit_test(test_far_from_zero),
        cmocka_unit_test(test_weight_threads), cmocka_unit_test(test_finite_differences),
        cmocka_unit_test(test_rope),           cmocka_unit_test(test_cross_entropy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
