/* Attention in GFLOP/s beside a square f32 product of side 1024 in the same run, and
 * decoding (one query) in GB/s of keys and values beside a copy.
 *
 * Floating-point operations count both products (five for the backward pass), half of them where
 * the mask is causal. A figure is the fastest of several repeats. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pool.h"
#include "cpu/attention.h"
#include "cpu/gemm.h"
#include "cpu/vec.h"

#define REPEATS 7
#define SIDE 1024

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float *random_floats(int64_t count) {
    float *x = malloc((size_t)count * sizeof *x);
    if (!x) abort();
    for (int64_t i = 0; i < count; i++) x[i] = (float)(i * 7919 % 2003) * 0.001f - 1.0f;
    return x;
}

typedef struct problem {
    tk_attention_args args;
    float *q, *k, *v, *out, *lse, *dq, *dk, *dv;
} problem;

static problem make_problem(int64_t batch, int64_t heads, int64_t kv_heads, int64_t rows,
                            int64_t keys, int64_t dim, bool causal) {
    problem p = {.q = random_floats(batch * heads * rows * dim),
                 .k = random_floats(batch * kv_heads * keys * dim),
                 .v = random_floats(batch * kv_heads * keys * dim),
                 .out = random_floats(batch * heads * rows * dim),
                 .lse = random_floats(batch * heads * rows),
                 .dq = random_floats(batch * heads * rows * dim),
                 .dk = random_floats(batch * kv_heads * keys * dim),
                 .dv = random_floats(batch * kv_heads * keys * dim)};
    tk_attention_strides q_strides = {heads * rows * dim, rows * dim, dim};
    tk_attention_strides k_strides = {kv_heads * keys * dim, keys * dim, dim};
    p.args = (tk_attention_args){.dtype = TK_FLOAT32,
                                 .batch = batch,
                                 .q_heads = heads,
                                 .kv_heads = kv_heads,
                                 .q_length = rows,
                                 .k_length = keys,
                                 .head_dim = dim,
                                 .value_dim = dim,
                                 .scale = 0.125,
                                 .causal = causal,
                                 .q = p.q,
                                 .k = p.k,
                                 .v = p.v,
                                 .q_strides = q_strides,
                                 .k_strides = k_strides,
                                 .v_strides = k_strides};
    return p;
}

static void free_problem(problem *p) {
    float *all[] = {p->q, p->k, p->v, p->out, p->lse, p->dq, p->dk, p->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static double time_forward(problem *p) {
    double begin = seconds();
    if (tk_attention(&p->args, p->out, p->args.q_strides, p->lse) != TK_OK) abort();
    return seconds() - begin;
}
static double time_backward(problem *p) {
    double begin = seconds();
    if (tk_attention_backward(&p->args, p->out, p->lse, p->q, p->dq, p->dk, p->dv) != TK_OK)
        abort();
    return seconds() - begin;
}
static double time_product(const float *a, float *c) {
    double begin = seconds();
    if (tk_gemm_dense(TK_FLOAT32, SIDE, SIDE, SIDE, a, a, c) != TK_OK) abort();
    return seconds() - begin;
}
static double time_copy(const float *from, float *to, int64_t count) {
    double begin = seconds();
    memcpy(to, from, (size_t)count * sizeof *to);
    return seconds() - begin;
}

static void measure(const char *name, problem p) {
    float *a = random_floats(SIDE * SIDE), *c = random_floats(SIDE * SIDE);
    double forward = 1e9, backward = 1e9, product = 1e9, time;
    for (int r = 0; r < REPEATS; r++) {
        if ((time = time_forward(&p)) < forward) forward = time;
        if ((time = time_backward(&p)) < backward) backward = time;
        if ((time = time_product(a, c)) < product) product = time;
    }
    const tk_attention_args *args = &p.args;
    double pair = 2.0 * (double)(args->batch * args->q_heads * args->q_length * args->k_length *
                                 args->head_dim);
    double share = args->causal ? 0.5 : 1.0, rate = 2.0 * SIDE * SIDE * SIDE / product * 1e-9;
    double forward_rate = 2 * pair * share / forward * 1e-9;
    double backward_rate = 5 * pair * share / backward * 1e-9;
    printf("%-26s forward %7.2f ms %6.1f GFLOP/s (%.2f)  backward %7.2f ms %6.1f (%.2f)  product "
           "%6.1f\n",
           name, forward * 1e3, forward_rate, forward_rate / rate, backward * 1e3, backward_rate,
           backward_rate / rate, rate);
    free(a);
    free(c);
    free_problem(&p);
}

static void measure_decoding(const char *name, problem p) {
    int64_t count = p.args.batch * p.args.kv_heads * p.args.k_length * p.args.head_dim;
    double forward = 1e9, copy = 1e9, time;
    for (int r = 0; r < 5 * REPEATS; r++) {
        if ((time = time_forward(&p)) < forward) forward = time;
        if ((time = time_copy(p.k, p.dk, count)) < copy) copy = time;
    }
    double bytes = 2.0 * (double)count * sizeof(float);
    printf("%-26s forward %7.3f ms %6.1f GB/s  copy by one thread %6.1f GB/s\n", name,
           forward * 1e3, bytes / forward * 1e-9, bytes / copy * 1e-9);
    free_problem(&p);
}

int main(void) {
    printf("%d threads, %s\n", tk_pool_threads(), tk_vec_variant_name(tk_vec_variant_in_use()));
    measure("4 x 8 x 512 x 64 causal", make_problem(4, 8, 8, 512, 512, 64, true));
    measure("4 x 8 x 512 x 64", make_problem(4, 8, 8, 512, 512, 64, false));
    measure("2 x 8(2) x 1024 x 128", make_problem(2, 8, 2, 1024, 1024, 128, false));
    measure("16 x 6 x 128 x 32 causal", make_problem(16, 6, 6, 128, 128, 32, true));
    measure_decoding("decode 8 heads, 4096 keys", make_problem(1, 8, 8, 1, 4096, 64, true));
    measure_decoding("decode 8(2), 4096 keys", make_problem(1, 8, 2, 1, 4096, 64, true));
    return 0;
}
