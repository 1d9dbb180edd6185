/* Elementwise operations, reductions and softmax on 64 MiB in GB/s, as a share of the bandwidth of
 * a copy by the same threads in the same run; and the cost of an element where the data is in
 * cache.
 *
 * Bytes are those the operation must move (each input once, each output once). A figure is the
 * fastest of several repeats, with the copy measured between them: the machine may be shared. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pool.h"
#include "cpu/norm.h"
#include "cpu/vec.h"
#include "cpu/vec_reduce.h"

#define COUNT ((int64_t)1 << 24)
#define SIDE 4096
#define CACHED 4096
#define REPEATS 9

static float *x, *y, *out;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct job {
    int op;
} job;

static void copy_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)arg;
    (void)worker;
    memcpy(out + begin, x + begin, (size_t)(end - begin) * sizeof *out);
}
static void add_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)arg;
    (void)worker;
    tk_vec_binary(TK_VEC_ADD, TK_FLOAT32, TK_VEC_VV, x + begin, y + begin, out + begin,
                  end - begin);
}
static void unary_part(void *arg, int64_t begin, int64_t end, int worker) {
    const job *unary = arg;
    (void)worker;
    tk_vec_unary((tk_vec_unary_op)unary->op, TK_FLOAT32, x + begin, out + begin, end - begin);
}
static void narrow_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)arg;
    (void)worker;
    tk_vec_convert(TK_FLOAT32, TK_BFLOAT16, x + begin, (uint16_t *)out + begin, end - begin);
}

static void run_copy(int op) { tk_parallel_for(COUNT, 65536, copy_part, &op); }
static void run_add(int op) { tk_parallel_for(COUNT, 65536, add_part, &op); }
static void run_narrow(int op) { tk_parallel_for(COUNT, 65536, narrow_part, &op); }
static void run_unary(int op) { tk_parallel_for(COUNT, 65536, unary_part, &(job){op}); }

static void must(tk_status status) {
    if (status != TK_OK) abort();
}
static void run_sum_all(int op) {
    must(tk_reduce_rows((tk_vec_reduce_op)op, TK_FLOAT32, x, 1, COUNT, COUNT, out));
}
static void run_sum_rows(int op) {
    must(tk_reduce_rows((tk_vec_reduce_op)op, TK_FLOAT32, x, SIDE, SIDE, SIDE, out));
}
static void run_sum_outer(int op) {
    must(tk_reduce_outer((tk_vec_reduce_op)op, TK_FLOAT32, x, SIDE, SIDE, SIDE, out));
}
static void run_softmax(int op) {
    (void)op;
    tk_softmax_rows(TK_FLOAT32, x, SIDE, out, SIDE, SIDE, SIDE);
}
static void run_layer_norm(int op) {
    (void)op;
    must(tk_cpu_layer_norm(TK_FLOAT32, x, y, y, 1e-5, out, SIDE, SIDE));
}
static void run_layer_norm_backward(int op) {
    (void)op;
    must(tk_cpu_layer_norm_backward(TK_FLOAT32, x, y, 1e-5, y, out, NULL, NULL, SIDE, SIDE));
}

static double time_once(void (*run)(int op), int op) {
    double begin = seconds();
    run(op);
    return seconds() - begin;
}

static void measure(const char *name, void (*run)(int op), int op, double bytes_an_element) {
    double best = 1e9, copy = 1e9;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double time = time_once(run, op);
        if (time < best) best = time;
        time = time_once(run_copy, 0);
        if (time < copy) copy = time;
    }
    double rate = bytes_an_element * (double)COUNT / best * 1e-9;
    double copy_rate = 8.0 * (double)COUNT / copy * 1e-9;
    printf("%-28s %7.2f ms %7.1f GB/s  copy %5.1f  share %.2f\n", name, best * 1e3, rate, copy_rate,
           rate / copy_rate);
}

static void measure_cached(const char *name, int op) {
    double best = 1e9;
    enum { INNER = 64 };
    for (int repeat = 0; repeat < 30; repeat++) {
        double begin = seconds();
        for (int i = 0; i < INNER; i++)
            tk_vec_unary((tk_vec_unary_op)op, TK_FLOAT32, x, out, CACHED);
        double time = (seconds() - begin) / INNER / CACHED;
        if (time < best) best = time;
    }
    printf("%-28s %7.3f ns an element, one thread, in cache\n", name, best * 1e9);
}

int main(void) {
    static const char *const names[] = {
#define NAME(id, name, ulp) #name,
        TK_VEC_UNARY_OPS(NAME)
#undef NAME
    };
    x = malloc(COUNT * sizeof *x);
    y = malloc(COUNT * sizeof *y);
    out = malloc(COUNT * sizeof *out);
    if (!x || !y || !out) return 1;
    for (int64_t i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 1999) * 0.004f - 4.0f;
        y[i] = 1.0f;
        out[i] = 0.0f;
    }
    printf("%d threads, %s\n", tk_pool_threads(), tk_vec_variant_name(tk_vec_variant_in_use()));
    measure("add", run_add, 0, 12);
    measure("exp", run_unary, TK_VEC_EXP, 8);
    measure("tanh", run_unary, TK_VEC_TANH, 8);
    measure("gelu", run_unary, TK_VEC_GELU, 8);
    measure("f32 to bf16", run_narrow, 0, 6);
    measure("sum of all", run_sum_all, TK_VEC_SUM, 4);
    measure("max of all", run_sum_all, TK_VEC_RMAX, 4);
    measure("sum of rows", run_sum_rows, TK_VEC_SUM, 4);
    measure("sum of columns", run_sum_outer, TK_VEC_SUM, 4);
    measure("softmax of rows", run_softmax, 0, 8);
    measure("layer norm", run_layer_norm, 0, 8);
    measure("layer norm backward", run_layer_norm_backward, 0, 12);
    for (int op = 0; op < TK_VEC_UNARY_COUNT; op++) measure_cached(names[op], op);
    free(x);
    free(y);
    free(out);
    return 0;
}
