/* Matrix products of every dtype, way and variant against a plain triple loop in double, over odd
 * sizes, all layouts, broadcast batches, alpha and beta; and the rules for NaN, infinity and empty
 * sizes. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "cpu/gemm.h"
#include "cpu_check.h"

#define GUARD 7

typedef enum layout { ROWS, COLUMNS, SPREAD, REVERSED, LAYOUT_COUNT } layout;

/* Strides for a rows x columns operand and the elements that its buffer needs; `offset` is where
 * element (0, 0) lies. */
static void lay_out(layout layout, int64_t rows, int64_t columns, int64_t *row, int64_t *column,
                    int64_t *offset, int64_t *size) {
    *offset = 0;
    *row = layout == COLUMNS ? 1 : columns + (layout == ROWS ? 3 : 0);
    *column = layout == COLUMNS ? rows + 2 : 1;
    if (layout == SPREAD) {
        *column = 2;
        *row = 2 * columns + 1;
    }
    *size = rows * llabs(*row) + columns * llabs(*column) + GUARD;
    if (layout == REVERSED) {
        *offset = (rows > 0 ? rows - 1 : 0) * *row;
        *row = -*row;
    }
}

static double *random_values(uint64_t seed, int64_t count) {
    double *values = malloc((size_t)count * 8);
    for (int64_t i = 0; i < count; i++) values[i] = next_unit(&seed) * 4;
    return values;
}

static double unit_of(tk_dtype dtype) {
    switch (dtype) {
    case TK_FLOAT64:
        return DBL_EPSILON;
    case TK_FLOAT16:
        return 0x1p-10;
    case TK_BFLOAT16:
        return 0x1p-7;
    case TK_FLOAT32:
        return FLT_EPSILON;
    default:
        return 0;
    }
}

/* Fills a buffer of a dtype and gives back the values it really holds. */
static void *make_operand(tk_dtype dtype, uint64_t seed, int64_t count, double **values) {
    *values = random_values(seed, count);
    void *raw = malloc((size_t)count * 8);
    put_values(dtype, *values, raw, count);
    get_values(dtype, raw, *values, count);
    return raw;
}

static void check_product(const tk_gemm_args *args, const double *a, const double *b,
                          const double *old, const double *got) {
    for (int64_t i = 0; i < args->m; i++)
        for (int64_t j = 0; j < args->n; j++) {
            double sum = 0, scale = 0;
            for (int64_t p = 0; p < args->k; p++) {
                double term = a[i * args->a_row + p * args->a_column] *
                              b[p * args->b_row + j * args->b_column];
                sum += term;
                scale += fabs(term);
            }
            int64_t at = i * args->c_row + j * args->c_column;
            double exact = args->alpha * sum + (args->beta != 0 ? args->beta * old[at] : 0);
            double bound = unit_of(args->dtype) * fabs(exact) +
                           (args->dtype == TK_FLOAT64 ? DBL_EPSILON : FLT_EPSILON) * 8 *
                               (fabs(args->alpha) * scale + fabs(args->beta * old[at]));
            if (tk_dtype_is_integer(args->dtype)) bound = 0;
            assert_true(fabs(got[at] - exact) <= bound);
        }
}

static void gemm_case(tk_dtype dtype, tk_gemm_way way, const int64_t size[3], int layouts,
                      double alpha, double beta) {
    tk_gemm_args args = {.dtype = dtype,
                         .way = way,
                         .m = size[0],
                         .n = size[1],
                         .k = size[2],
                         .alpha = alpha,
                         .beta = beta};
    int64_t a_size, b_size, c_size, a_offset, b_offset, c_offset;
    lay_out((layout)(layouts % LAYOUT_COUNT), args.m, args.k, &args.a_row, &args.a_column,
            &a_offset, &a_size);
    lay_out((layout)(layouts / LAYOUT_COUNT % LAYOUT_COUNT), args.k, args.n, &args.b_row,
            &args.b_column, &b_offset, &b_size);
    lay_out(layouts & 1 ? COLUMNS : ROWS, args.m, args.n, &args.c_row, &args.c_column, &c_offset,
            &c_size);
    double *a, *b, *c, *got = malloc((size_t)c_size * 8);
    char *raw_a = make_operand(dtype, 1, a_size, &a), *raw_b = make_operand(dtype, 2, b_size, &b);
    char *raw_c = make_operand(dtype, 3, c_size, &c);
    if (beta == 0 && tk_dtype_is_float(dtype)) {
        for (int64_t i = 0; i < c_size; i++) got[i] = NAN;
        for (int64_t i = 0; i < args.m; i++)
            for (int64_t j = 0; j < args.n; j++)
                put_values(
                    dtype, got,
                    raw_c + (size_t)(i * args.c_row + j * args.c_column) * tk_dtype_size(dtype), 1);
    }
    args.a = raw_a + (size_t)a_offset * tk_dtype_size(dtype);
    args.b = raw_b + (size_t)b_offset * tk_dtype_size(dtype);
    args.c = raw_c;
    assert_int_equal(tk_gemm(&args), TK_OK);
    get_values(dtype, raw_c, got, c_size);
    check_product(&args, a + a_offset, b + b_offset, c, got);
    int64_t last = (args.m - 1) * args.c_row + (args.n - 1) * args.c_column;
    for (int64_t i = last + 1; args.m > 0 && args.n > 0 && i < c_size; i++)
        assert_true(got[i] == c[i]);
    free(a);
    free(b);
    free(c);
    free(got);
    free(raw_a);
    free(raw_b);
    free(raw_c);
}

static const int64_t sizes[][3] = {{1, 1, 1},     {1, 37, 19}, {23, 1, 40},  {7, 15, 5},
                                   {6, 16, 8},    {13, 33, 9}, {64, 64, 64}, {31, 70, 401},
                                   {29, 300, 20}, {3, 5, 0}};

static void float_products(void) {
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT64, TK_FLOAT16, TK_BFLOAT16};
    static const tk_gemm_way ways[] = {TK_GEMM_AUTO, TK_GEMM_BLAS, TK_GEMM_PACKED,
                                       TK_GEMM_PORTABLE};
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int layouts = 0; layouts < LAYOUT_COUNT * LAYOUT_COUNT; layouts++)
                for (size_t w = 0; w < (dtypes[d] == TK_FLOAT32 ? COUNT(ways) : 1); w++) {
                    gemm_case(dtypes[d], ways[w], sizes[s], layouts, 1, 0);
                    if ((layouts + (int)s) % 3 == 0)
                        gemm_case(dtypes[d], ways[w], sizes[s], layouts, 0.5, -2);
                }
}
static void test_floats(void **state) {
    (void)state;
    for_each_variant(float_products);
}

static void test_integers(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_INT32, TK_INT64, TK_INT16};
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int layouts = 0; layouts < LAYOUT_COUNT * LAYOUT_COUNT; layouts++) {
                gemm_case(dtypes[d], TK_GEMM_AUTO, sizes[s], layouts, 1, 0);
                gemm_case(dtypes[d], TK_GEMM_AUTO, sizes[s], layouts, -1, 2);
            }
    uint8_t a[] = {200, 100}, b[] = {2, 3}, c;
    assert_int_equal(tk_gemm_dense(TK_UINT8, 1, 1, 2, a, b, &c), TK_OK);
    assert_int_equal(c, (200 * 2 + 100 * 3) & 255);
}

/* Larger than every block, so that all loops turn; the check samples. */
static void large_case(tk_dtype dtype, tk_gemm_way way, bool transposed_b) {
    int64_t m = 301, n = 533, k = 1100;
    double *a, *b;
    void *raw_a = make_operand(dtype, 5, m * k, &a), *raw_b = make_operand(dtype, 6, k * n, &b);
    void *raw_c = malloc((size_t)(m * n) * 8);
    double *got = malloc((size_t)(m * n) * 8);
    tk_gemm_args args = {.dtype = dtype,
                         .way = way,
                         .m = m,
                         .n = n,
                         .k = k,
                         .a = raw_a,
                         .a_row = k,
                         .a_column = 1,
                         .b = raw_b,
                         .b_row = transposed_b ? 1 : n,
                         .b_column = transposed_b ? k : 1,
                         .c = raw_c,
                         .c_row = n,
                         .c_column = 1,
                         .alpha = 1};
    assert_int_equal(tk_gemm(&args), TK_OK);
    get_values(dtype, raw_c, got, m * n);
    for (int64_t i = 0; i < m; i += 37)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, scale = 0;
            for (int64_t p = 0; p < k; p++) {
                double term = a[i * k + p] * b[p * args.b_row + j * args.b_column];
                sum += term;
                scale += fabs(term);
            }
            assert_true(fabs(got[i * n + j] - sum) <=
                        unit_of(dtype) * fabs(sum) + 4 * FLT_EPSILON * scale);
        }
    free(a);
    free(b);
    free(raw_a);
    free(raw_b);
    free(raw_c);
    free(got);
}
static void large_products(void) {
    for (int transposed = 0; transposed < 2; transposed++) {
        large_case(TK_FLOAT32, TK_GEMM_AUTO, transposed);
        large_case(TK_FLOAT32, TK_GEMM_PACKED, transposed);
        large_case(TK_FLOAT64, TK_GEMM_AUTO, transposed);
        large_case(TK_FLOAT16, TK_GEMM_AUTO, transposed);
        large_case(TK_BFLOAT16, TK_GEMM_AUTO, transposed);
    }
}
static void test_large(void **state) {
    (void)state;
    for_each_variant(large_products);
}

/* Three batch dimensions, A broadcast over one, B over another. */
static void batch_case(tk_dtype dtype, int64_t m, int64_t n, int64_t k) {
    enum { D0 = 2, D1 = 3, D2 = 5 };
    double *a, *b;
    void *raw_a = make_operand(dtype, 7, D0 * D2 * m * k, &a),
         *raw_b = make_operand(dtype, 8, D1 * D2 * k * n, &b);
    int64_t count = D0 * D1 * D2 * m * n;
    void *raw_c = malloc((size_t)count * 8);
    double *got = malloc((size_t)count * 8);
    tk_gemm_args args = {.dtype = dtype,
                         .m = m,
                         .n = n,
                         .k = k,
                         .a = raw_a,
                         .a_row = k,
                         .a_column = 1,
                         .b = raw_b,
                         .b_row = n,
                         .b_column = 1,
                         .c = raw_c,
                         .c_row = n,
                         .c_column = 1,
                         .alpha = 1,
                         .batch_rank = 3,
                         .batch_shape = {D0, D1, D2},
                         .a_batch = {D2 * m * k, 0, m * k},
                         .b_batch = {0, D2 * k * n, k * n},
                         .c_batch = {D1 * D2 * m * n, D2 * m * n, m * n}};
    assert_int_equal(tk_gemm(&args), TK_OK);
    get_values(dtype, raw_c, got, count);
    for (int i = 0; i < D0 * D1 * D2; i++) {
        int d0 = i / (D1 * D2), d1 = i / D2 % D1, d2 = i % D2;
        check_product(&args, a + (d0 * D2 + d2) * m * k, b + (d1 * D2 + d2) * k * n, got,
                      got + i * m * n);
    }
    free(a);
    free(b);
    free(raw_a);
    free(raw_b);
    free(raw_c);
    free(got);
}
static void test_batch(void **state) {
    (void)state;
    batch_case(TK_FLOAT32, 5, 18, 7);
    batch_case(TK_FLOAT32, 90, 70, 64);
    batch_case(TK_FLOAT64, 5, 18, 7);
    batch_case(TK_BFLOAT16, 5, 18, 7);
    batch_case(TK_INT32, 3, 4, 5);
}

/* [batch, rows, k] times one [k, n]: merged into rows, and the same numbers as each alone. */
static void test_shared_b(void **state) {
    (void)state;
    enum { BATCH = 4, M = 33, N = 50, K = 21 };
    static float a[BATCH * M * K], b[K * N], c[BATCH * M * N], alone[M * N];
    fill_unit_f32(1, a, BATCH * M * K);
    fill_unit_f32(2, b, K * N);
    tk_gemm_args args = {.dtype = TK_FLOAT32,
                         .m = M,
                         .n = N,
                         .k = K,
                         .a = a,
                         .a_row = K,
                         .a_column = 1,
                         .b = b,
                         .b_row = N,
                         .b_column = 1,
                         .c = c,
                         .c_row = N,
                         .c_column = 1,
                         .alpha = 1,
                         .batch_rank = 1,
                         .batch_shape = {BATCH},
                         .a_batch = {M * K},
                         .c_batch = {M * N}};
    assert_int_equal(tk_gemm(&args), TK_OK);
    for (int i = 0; i < BATCH; i++) {
        assert_int_equal(tk_gemm_dense(TK_FLOAT32, M, N, K, a + i * M * K, b, alone), TK_OK);
        assert_memory_equal(alone, c + i * M * N, sizeof alone);
    }
    args.batch_shape[0] = 0;
    memset(c, 0x11, sizeof c);
    assert_int_equal(tk_gemm(&args), TK_OK);
    assert_true(c[0] != 0 && c[0] == c[1]);
}

static void special_products(void) {
    float a[4] = {0, 1, 2, 3}, b[4] = {INFINITY, 1, NAN, 2}, c[4];
    static const tk_gemm_way ways[] = {TK_GEMM_AUTO, TK_GEMM_BLAS, TK_GEMM_PACKED,
                                       TK_GEMM_PORTABLE};
    for (size_t w = 0; w < COUNT(ways); w++) {
        tk_gemm_args args = {.dtype = TK_FLOAT32,
                             .way = ways[w],
                             .m = 2,
                             .n = 2,
                             .k = 2,
                             .a = a,
                             .a_row = 2,
                             .a_column = 1,
                             .b = b,
                             .b_row = 2,
                             .b_column = 1,
                             .c = c,
                             .c_row = 2,
                             .c_column = 1,
                             .alpha = 1};
        assert_int_equal(tk_gemm(&args), TK_OK);
        assert_true(isnan(c[0]) && c[1] == 2 && isnan(c[2]) && c[3] == 8);
        args.alpha = 0;
        assert_int_equal(tk_gemm(&args), TK_OK);
        assert_true(isnan(c[0]) && c[1] == 0);
    }
}
static void test_special(void **state) {
    (void)state;
    for_each_variant(special_products);
}

static void test_complex(void **state) {
    (void)state;
    enum { M = 5, N = 7, K = 6 };
    float a[2 * M * K], b[2 * K * N], c[2 * M * N];
    fill_unit_f32(1, a, 2 * M * K);
    fill_unit_f32(2, b, 2 * K * N);
    static const tk_gemm_way ways[] = {TK_GEMM_AUTO, TK_GEMM_PORTABLE};
    for (size_t w = 0; w < COUNT(ways); w++) {
        tk_gemm_args args = {.dtype = TK_COMPLEX64,
                             .way = ways[w],
                             .m = M,
                             .n = N,
                             .k = K,
                             .a = a,
                             .a_row = 1,
                             .a_column = M,
                             .b = b,
                             .b_row = N,
                             .b_column = 1,
                             .c = c,
                             .c_row = N,
                             .c_column = 1,
                             .alpha = 2};
        assert_int_equal(tk_gemm(&args), TK_OK);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double real = 0, imaginary = 0;
                for (int p = 0; p < K; p++) {
                    const float *x = a + 2 * (i + p * M), *y = b + 2 * (p * N + j);
                    real += (double)x[0] * (double)y[0] - (double)x[1] * (double)y[1];
                    imaginary += (double)x[0] * (double)y[1] + (double)x[1] * (double)y[0];
                }
                assert_true(fabs((double)c[2 * (i * N + j)] - 2 * real) < 1e-5);
                assert_true(fabs((double)c[2 * (i * N + j) + 1] - 2 * imaginary) < 1e-5);
            }
    }
}

/* Tiki's own kernels give the same bits for any number of threads. */
static void test_threads(void **state) {
    (void)state;
    enum { M = 150, N = 150, K = 150 };
    static float a[M * K], b[K * N], c[M * N], first[M * N];
    fill_unit_f32(1, a, M * K);
    fill_unit_f32(2, b, K * N);
    for (int threads = 1; threads <= 4; threads++) {
        assert_int_equal(tk_pool_set_threads(threads), TK_OK);
        assert_int_equal(tk_gemm_dense(TK_FLOAT32, M, N, K, a, b, threads == 1 ? first : c), TK_OK);
        if (threads > 1) assert_memory_equal(first, c, sizeof c);
    }
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),   cmocka_unit_test(test_integers),
        cmocka_unit_test(test_large),    cmocka_unit_test(test_batch),
        cmocka_unit_test(test_shared_b), cmocka_unit_test(test_special),
        cmocka_unit_test(test_complex),  cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
