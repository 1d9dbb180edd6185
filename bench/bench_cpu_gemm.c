/* Matrix products in GFLOP/s beside OpenBLAS called directly with as many threads, in one run, both
 * warm: large ones that Tiki gives to OpenBLAS in slices, small and batched ones that it computes
 * itself, and half types beside OpenBLAS on f32.
 *
 * A figure is the fastest of several repeats, in rounds: first Tiki, then OpenBLAS, whose threads
 * spin for a while after each call, so that a pause must come before Tiki's turn. The machine may
 * be shared. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"
#include "cpu/blas.h"
#include "cpu/gemm.h"
#include "cpu/vec.h"

#define ROUNDS 3
#define PAUSE_US 100000

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct gemm_case {
    tk_dtype dtype;
    int64_t m, n, k, batch;
    bool transposed_b;
} gemm_case;

static void run_tiki(const gemm_case *size, const void *a, const void *b, void *c) {
    tk_gemm_args args = {.dtype = size->dtype,
                         .m = size->m,
                         .n = size->n,
                         .k = size->k,
                         .a = a,
                         .a_row = size->k,
                         .a_column = 1,
                         .b = b,
                         .b_row = size->transposed_b ? 1 : size->n,
                         .b_column = size->transposed_b ? size->k : 1,
                         .c = c,
                         .c_row = size->n,
                         .c_column = 1,
                         .alpha = 1,
                         .batch_rank = 1,
                         .batch_shape = {size->batch},
                         .a_batch = {size->m * size->k},
                         .b_batch = {size->k * size->n},
                         .c_batch = {size->m * size->n}};
    if (tk_gemm(&args) != TK_OK) abort();
}

static const tk_blas *library;

static void run_blas(const gemm_case *size, const void *a, const void *b, void *c) {
    int m = (int)size->m, n = (int)size->n, k = (int)size->k;
    CBLAS_TRANSPOSE trans = size->transposed_b ? CblasTrans : CblasNoTrans;
    int ldb = size->transposed_b ? k : n;
    for (int64_t i = 0; i < size->batch; i++) {
        int64_t a_at = i * m * k, b_at = i * k * n, c_at = i * m * n;
        if (size->dtype == TK_FLOAT64)
            library->dgemm(CblasRowMajor, CblasNoTrans, trans, m, n, k, 1, (const double *)a + a_at,
                           k, (const double *)b + b_at, ldb, 0, (double *)c + c_at, n);
        else
            library->sgemm(CblasRowMajor, CblasNoTrans, trans, m, n, k, 1, (const float *)a + a_at,
                           k, (const float *)b + b_at, ldb, 0, (float *)c + c_at, n);
    }
}

typedef void run_fn(const gemm_case *size, const void *a, const void *b, void *c);

/* Seconds of one product: `inner` in a row, so that a short one can be timed. */
static double time_once(run_fn *run, const gemm_case *size, int inner, void **operands) {
    double begin = seconds();
    for (int i = 0; i < inner; i++) run(size, operands[0], operands[1], operands[2]);
    return (seconds() - begin) / inner;
}

/* After one run that is not counted. */
static double fastest(run_fn *run, const gemm_case *size, int inner, int repeats, void **operands) {
    double best = 1e9;
    for (int r = 0; r <= repeats; r++) {
        double time = time_once(run, size, inner, operands);
        if (r > 0 && time < best) best = time;
    }
    return best;
}

static void measure(const gemm_case *size) {
    double flops = 2.0 * (double)(size->m * size->n * size->k * size->batch);
    int inner = flops > 1e9 ? 1 : (int)(1e8 / flops) + 1, repeats = flops > 1e10 ? 1 : 6;
    size_t counts[] = {(size_t)(size->m * size->k), (size_t)(size->k * size->n),
                       (size_t)(size->m * size->n)};
    void *operands[3], *blas_operands[3];
    for (int i = 0; i < 3; i++) {
        size_t count = counts[i] * (size_t)size->batch;
        float *values = blas_operands[i] = calloc(count, 8);
        for (size_t j = 0; j < count; j++) values[j] = (float)(j % 31) * 0.01f;
        if (size->dtype == TK_FLOAT64)
            for (size_t j = 0; j < count; j++)
                ((double *)blas_operands[i])[j] = (double)(j % 31) * 0.01;
        operands[i] = blas_operands[i];
        if (size->dtype == TK_FLOAT32 || size->dtype == TK_FLOAT64) continue;
        operands[i] = calloc(count, 2);
        tk_vec_convert(TK_FLOAT32, size->dtype, values, operands[i], (int64_t)count);
    }
    double tiki = 1e9, blas = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        library->threads(1);
        usleep(PAUSE_US);
        double time = fastest(run_tiki, size, inner, repeats, operands);
        if (time < tiki) tiki = time;
        library->threads(tk_pool_threads());
        time = fastest(run_blas, size, inner, repeats, blas_operands);
        if (time < blas) blas = time;
    }
    library->threads(1);
    printf("%-8s %5lld x %5lld x %5lld%s x%-4lld %8.1f GFLOP/s  OpenBLAS %8.1f  ratio %.2f\n",
           tk_dtype_name(size->dtype), (long long)size->m, (long long)size->n, (long long)size->k,
           size->transposed_b ? " (b transposed)" : "               ", (long long)size->batch,
           flops / tiki * 1e-9, flops / blas * 1e-9, blas / tiki);
    for (int i = 0; i < 3; i++) {
        if (operands[i] != blas_operands[i]) free(operands[i]);
        free(blas_operands[i]);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    static const gemm_case cases[] = {
        {TK_FLOAT32, 64, 64, 64, 1, false},        {TK_FLOAT32, 64, 64, 64, 1, true},
        {TK_FLOAT32, 256, 256, 64, 1, false},      {TK_FLOAT32, 256, 64, 256, 1, false},
        {TK_FLOAT32, 256, 64, 256, 1, true},       {TK_FLOAT32, 64, 64, 64, 64, false},
        {TK_FLOAT32, 1, 4096, 1024, 1, false},     {TK_FLOAT32, 1, 4096, 1024, 1, true},
        {TK_FLOAT32, 128, 128, 128, 1, false},     {TK_FLOAT32, 192, 192, 192, 1, false},
        {TK_FLOAT32, 512, 512, 512, 1, false},     {TK_FLOAT32, 1024, 1024, 1024, 1, false},
        {TK_FLOAT32, 1024, 1024, 1024, 1, true},   {TK_FLOAT64, 1024, 1024, 1024, 1, false},
        {TK_BFLOAT16, 1024, 1024, 1024, 1, false}, {TK_BFLOAT16, 1, 4096, 1024, 1, true},
        {TK_FLOAT16, 512, 512, 512, 1, true},      {TK_FLOAT32, 4096, 4096, 4096, 1, false},
    };
    size_t count = sizeof cases / sizeof *cases;
    library = tk_blas_get();
    if (!library) return 1;
    if (argc > 1) count -= 1; /* any argument: without the largest */
    printf("%d threads, %s\n", tk_pool_threads(), tk_vec_variant_name(tk_vec_variant_in_use()));
    for (size_t i = 0; i < count; i++) measure(&cases[i]);
    return 0;
}
