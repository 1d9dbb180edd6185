/* Attention, forward and backward, against loops in double over masks, groups, lengths and head
 * sizes; the f64 backward against finite differences of the f64 forward. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "cpu/attention.h"
#include "cpu_check.h"

typedef struct shape {
    int64_t batch, q_heads, kv_heads, q_length, k_length, head_dim, value_dim;
} shape;

/* One problem in double: inputs as the dtype holds them, reference results, raw operands. */
typedef struct problem {
    tk_attention_args args;
    int64_t q_count, k_count, v_count, out_count, row_count, mask_count;
    double *q, *k, *v, *dout, *mask;
    double *out, *lse, *dq, *dk, *dv;
    void *raw_q, *raw_k, *raw_v, *raw_dout, *raw_mask;
} problem;

static double *values(uint64_t seed, int64_t count, tk_dtype dtype, void **raw) {
    double *x = malloc((size_t)(count + 1) * 8);
    *raw = malloc((size_t)(count + 1) * 8);
    for (int64_t i = 0; i < count; i++) x[i] = next_unit(&seed) * 1.5;
    put_values(dtype, x, *raw, count);
    get_values(dtype, *raw, x, count);
    return x;
}

static bool visible(const problem *p, int64_t b, int64_t h, int64_t i, int64_t j, double *added) {
    const tk_attention_args *args = &p->args;
    const int64_t *s = args->mask_strides;
    int64_t at = b * s[0] + h * s[1] + i * s[2] + j * s[3];
    *added = args->mask_kind == TK_MASK_ADD ? p->mask[at] : 0;
    if (args->causal && j > i + args->k_length - args->q_length) return false;
    return args->mask_kind != TK_MASK_BOOL || p->mask[at] != 0;
}

static void reference_row(problem *p, int64_t b, int64_t h, int64_t i) {
    const tk_attention_args *a = &p->args;
    int64_t kv = b * a->kv_heads + h / (a->q_heads / a->kv_heads),
            row = (b * a->q_heads + h) * a->q_length + i;
    const double *q = p->q + row * a->head_dim, *k = p->k + kv * a->k_length * a->head_dim;
    const double *v = p->v + kv * a->k_length * a->value_dim, *dout = p->dout + row * a->value_dim;
    double *weight = calloc((size_t)a->k_length + 1, 8), *out = p->out + row * a->value_dim;
    double sum = 0, delta = 0, added;
    for (int64_t j = 0; j < a->k_length; j++) {
        if (!visible(p, b, h, i, j, &added)) continue;
        double dot = 0;
        for (int64_t d = 0; d < a->head_dim; d++) dot += q[d] * k[j * a->head_dim + d];
        sum += weight[j] = exp(dot * a->scale + added);
    }
    p->lse[row] = sum > 0 ? log(sum) : -INFINITY;
    for (int64_t j = 0; j < a->k_length && sum > 0; j++)
        for (int64_t d = 0; d < a->value_dim; d++)
            out[d] += weight[j] / sum * v[j * a->value_dim + d];
    for (int64_t d = 0; d < a->value_dim; d++) delta += out[d] * dout[d];
    for (int64_t j = 0; j < a->k_length && sum > 0; j++) {
        double dp = 0;
        for (int64_t d = 0; d < a->value_dim; d++) {
            dp += dout[d] * v[j * a->value_dim + d];
            p->dv[(kv * a->k_length + j) * a->value_dim + d] += weight[j] / sum * dout[d];
        }
        double ds = weight[j] / sum * (dp - delta) * a->scale;
        for (int64_t d = 0; d < a->head_dim; d++) {
            p->dq[row * a->head_dim + d] += ds * k[j * a->head_dim + d];
            p->dk[(kv * a->k_length + j) * a->head_dim + d] += ds * q[d];
        }
    }
    free(weight);
}

static tk_attention_strides dense(int64_t heads, int64_t rows, int64_t features) {
    return (tk_attention_strides){heads * rows * features, rows * features, features};
}

static void make_mask(problem *p) {
    tk_attention_args *a = &p->args;
    uint64_t seed = 99;
    p->mask_count = a->q_heads * a->q_length * a->k_length;
    a->mask_strides[0] = 0;
    a->mask_strides[1] = a->q_length * a->k_length;
    a->mask_strides[2] = a->k_length;
    a->mask_strides[3] = 1;
    p->mask = values(4, p->mask_count, a->dtype, &p->raw_mask);
    if (a->mask_kind == TK_MASK_BOOL)
        for (int64_t i = 0; i < p->mask_count; i++) {
            bool hidden_row = i / a->k_length % 5 == 2;
            p->mask[i] = ((uint8_t *)p->raw_mask)[i] = !hidden_row && next_random(&seed) % 3 != 0;
        }
    a->mask = p->raw_mask;
}

static void make_problem(problem *p, const shape *s, tk_dtype dtype, bool causal,
                         tk_attention_mask mask) {
    *p = (problem){.args = {.dtype = dtype,
                            .batch = s->batch,
                            .q_heads = s->q_heads,
                            .kv_heads = s->kv_heads,
                            .q_length = s->q_length,
                            .k_length = s->k_length,
                            .head_dim = s->head_dim,
                            .value_dim = s->value_dim,
                            .scale = 0.7,
                            .causal = causal,
                            .mask_kind = mask}};
    tk_attention_args *a = &p->args;
    p->row_count = s->batch * s->q_heads * s->q_length;
    p->q_count = p->row_count * s->head_dim;
    p->out_count = p->row_count * s->value_dim;
    p->k_count = s->batch * s->kv_heads * s->k_length * s->head_dim;
    p->v_count = s->batch * s->kv_heads * s->k_length * s->value_dim;
    p->q = values(1, p->q_count, dtype, &p->raw_q);
    p->k = values(2, p->k_count, dtype, &p->raw_k);
    p->v = values(3, p->v_count, dtype, &p->raw_v);
    p->dout = values(5, p->out_count, dtype, &p->raw_dout);
    a->q = p->raw_q;
    a->k = p->raw_k;
    a->v = p->raw_v;
    a->q_strides = dense(s->q_heads, s->q_length, s->head_dim);
    a->k_strides = dense(s->kv_heads, s->k_length, s->head_dim);
    a->v_strides = dense(s->kv_heads, s->k_length, s->value_dim);
    if (mask != TK_MASK_NONE) make_mask(p);
    p->out = calloc((size_t)p->out_count + 1, 8);
    p->lse = calloc((size_t)p->row_count + 1, 8);
    p->dq = calloc((size_t)p->q_count + 1, 8);
    p->dk = calloc((size_t)p->k_count + 1, 8);
    p->dv = calloc((size_t)p->v_count + 1, 8);
    for (int64_t r = 0; r < p->row_count; r++)
        reference_row(p, r / (s->q_heads * s->q_length), r / s->q_length % s->q_heads,
                      r % s->q_length);
}

static void free_problem(problem *p) {
    void *all[] = {p->q,  p->k,  p->v,     p->dout,  p->mask,  p->out,      p->lse,     p->dq,
                   p->dk, p->dv, p->raw_q, p->raw_k, p->raw_v, p->raw_dout, p->raw_mask};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static double tolerance(tk_dtype dtype) {
    return dtype == TK_FLOAT64   ? 1e-12
           : dtype == TK_FLOAT32 ? 2e-5
           : dtype == TK_FLOAT16 ? 4e-3
                                 : 3e-2;
}

static void check_near(tk_dtype dtype, const void *raw, const double *exact, int64_t count,
                       double factor) {
    double *got = malloc((size_t)(count + 1) * 8);
    get_values(dtype, raw, got, count);
    for (int64_t i = 0; i < count; i++)
        assert_true(got[i] == exact[i] ||
                    fabs(got[i] - exact[i]) <= factor * tolerance(dtype) * (1 + fabs(exact[i])));
    free(got);
}

static void check(const shape *s, tk_dtype dtype, bool causal, tk_attention_mask mask) {
    problem p;
    make_problem(&p, s, dtype, causal, mask);
    void *out = malloc((size_t)(p.out_count + 1) * 8), *lse = malloc((size_t)(p.row_count + 1) * 8);
    void *dq = malloc((size_t)(p.q_count + 1) * 8), *dk = malloc((size_t)(p.k_count + 1) * 8),
         *dv = malloc((size_t)(p.v_count + 1) * 8);
    tk_attention_strides strides = dense(s->q_heads, s->q_length, s->value_dim);
    assert_int_equal(tk_attention(&p.args, out, strides, lse), TK_OK);
    check_near(dtype, out, p.out, p.out_count, 1);
    check_near(dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32, lse, p.lse, p.row_count, 1);
    assert_int_equal(tk_attention_backward(&p.args, out, lse, p.raw_dout, dq, dk, dv), TK_OK);
    check_near(dtype, dq, p.dq, p.q_count, 8);
    check_near(dtype, dk, p.dk, p.k_count, 8);
    check_near(dtype, dv, p.dv, p.v_count, 8);
    free(out);
    free(lse);
    free(dq);
    free(dk);
    free(dv);
    free_problem(&p);
}

static const shape shapes[] = {{1, 1, 1, 1, 1, 1, 1},      {2, 2, 2, 5, 7, 8, 8},
                               {1, 4, 2, 3, 9, 16, 24},    {1, 6, 2, 70, 70, 20, 20},
                               {1, 2, 1, 1, 300, 64, 64},  {2, 4, 1, 33, 150, 32, 32},
                               {1, 1, 1, 130, 257, 33, 5}, {1, 2, 2, 9, 4, 8, 8},
                               {1, 3, 3, 0, 4, 8, 8},      {1, 2, 2, 4, 0, 8, 8}};

static void all_shapes(void) {
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT16, TK_BFLOAT16, TK_FLOAT64};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int causal = 0; causal < 2; causal++)
            for (int mask = TK_MASK_NONE; mask <= TK_MASK_ADD; mask++)
                for (size_t d = 0; d < COUNT(dtypes); d++)
                    check(&shapes[s], dtypes[d], causal, (tk_attention_mask)mask);
}
static void test_shapes(void **state) {
    (void)state;
    for_each_variant(all_shapes);
}

/* [batch, length, heads, features] in memory, as models keep it; a mask broadcast over heads and
 * rows; no lse asked for. */
static void test_strides(void **state) {
    (void)state;
    enum { B = 2, H = 3, L = 10, D = 8 };
    float q[B * L * H * D], out[B * L * H * D], dense_out[B * H * L * D], mask[B * L];
    fill_unit_f32(1, q, B * L * H * D);
    fill_unit_f32(2, mask, B * L);
    tk_attention_strides strides = {L * H * D, D, H * D};
    tk_attention_args args = {.dtype = TK_FLOAT32,
                              .batch = B,
                              .q_heads = H,
                              .kv_heads = H,
                              .q_length = L,
                              .k_length = L,
                              .head_dim = D,
                              .value_dim = D,
                              .scale = 0.3,
                              .mask_kind = TK_MASK_ADD,
                              .mask = mask,
                              .mask_strides = {L, 0, 0, 1},
                              .q = q,
                              .k = q,
                              .v = q,
                              .q_strides = strides,
                              .k_strides = strides,
                              .v_strides = strides};
    assert_int_equal(tk_attention(&args, out, strides, NULL), TK_OK);
    float copied[B * H * L * D];
    for (int i = 0; i < B * H * L * D; i++) {
        int d = i % D, l = i / D % L, h = i / D / L % H, b = i / D / L / H;
        copied[i] = q[((b * L + l) * H + h) * D + d];
    }
    args.q = args.k = args.v = copied;
    args.q_strides = args.k_strides = args.v_strides = dense(H, L, D);
    assert_int_equal(tk_attention(&args, dense_out, dense(H, L, D), NULL), TK_OK);
    for (int i = 0; i < B * H * L * D; i++) {
        int d = i % D, l = i / D % L, h = i / D / L % H, b = i / D / L / H;
        assert_true(dense_out[i] == out[((b * L + l) * H + h) * D + d]);
    }
}

/* A large maximum, one infinite and one NaN score do what softmax does. */
static void test_special(void **state) {
    (void)state;
    float q[8] = {1, 1, 1, 1, 1, 1, 1, 1}, k[16] = {0}, v[16], out[8], lse[8];
    for (int i = 0; i < 16; i++) v[i] = (float)i;
    tk_attention_args args = {.dtype = TK_FLOAT32,
                              .batch = 1,
                              .q_heads = 1,
                              .kv_heads = 1,
                              .q_length = 8,
                              .k_length = 16,
                              .head_dim = 1,
                              .value_dim = 1,
                              .scale = 1,
                              .q = q,
                              .k = k,
                              .v = v,
                              .q_strides = dense(1, 8, 1),
                              .k_strides = dense(1, 16, 1),
                              .v_strides = dense(1, 16, 1)};
    k[5] = 1e30f;
    assert_int_equal(tk_attention(&args, out, dense(1, 8, 1), lse), TK_OK);
    assert_true(out[0] == 5 && out[7] == 5 && lse[0] == 1e30f);
    q[1] = NAN;
    k[5] = INFINITY;
    q[2] = -1;
    assert_int_equal(tk_attention(&args, out, dense(1, 8, 1), lse), TK_OK);
    assert_true(isnan(out[0]) && isnan(out[1]) && isnan(lse[1]));
    assert_true(fabsf(out[2] - 115.0f / 15) < 1e-5f);
}

static void test_threads(void **state) {
    (void)state;
    const shape s = {2, 4, 2, 150, 150, 32, 32};
    problem p;
    make_problem(&p, &s, TK_FLOAT32, true, TK_MASK_NONE);
    size_t bytes = (size_t)p.q_count * 4;
    char *results[2] = {calloc(bytes, 4), calloc(bytes, 4)};
    float *lse = malloc((size_t)p.row_count * 4);
    for (int threads = 1; threads <= 3; threads++) {
        char *to = results[threads > 1];
        assert_int_equal(tk_pool_set_threads(threads), TK_OK);
        assert_int_equal(tk_attention(&p.args, to, dense(4, 150, 32), lse), TK_OK);
        assert_int_equal(tk_attention_backward(&p.args, to, lse, p.raw_dout, to + bytes,
                                               to + 2 * bytes, to + 3 * bytes),
                         TK_OK);
        if (threads > 1) assert_memory_equal(results[0], results[1], 4 * bytes);
    }
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
    free(results[0]);
    free(results[1]);
    free(lse);
    free_problem(&p);
}

/* sum(out * dout) in f64 moved by one element at a time. */
static double objective(problem *p) {
    const tk_attention_args *a = &p->args;
    double *out = malloc((size_t)p->out_count * 8), sum = 0;
    assert_int_equal(tk_attention(a, out, dense(a->q_heads, a->q_length, a->value_dim), NULL),
                     TK_OK);
    for (int64_t i = 0; i < p->out_count; i++) sum += out[i] * p->dout[i];
    free(out);
    return sum;
}
static void check_differences(problem *p, double *x, int64_t count, const double *gradient) {
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i], step = 1e-5;
        x[i] = kept + step;
        double above = objective(p);
        x[i] = kept - step;
        double below = objective(p);
        x[i] = kept;
        assert_true(fabs((above - below) / (2 * step) - gradient[i]) < 1e-7);
    }
}
static void test_finite_differences(void **state) {
    (void)state;
    const shape s = {1, 2, 1, 3, 5, 4, 3};
    problem p;
    make_problem(&p, &s, TK_FLOAT64, true, TK_MASK_ADD);
    check_differences(&p, p.raw_q, p.q_count, p.dq);
    check_differences(&p, p.raw_k, p.k_count, p.dk);
    check_differences(&p, p.raw_v, p.v_count, p.dv);
    free_problem(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
