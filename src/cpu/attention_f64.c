/* Attention in f64, for gradient checks: one row of scores at a time, plain loops. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/attention_tile.h"

typedef struct f64_job {
    const tk_attention_args *args;
    const double *out, *lse_in, *dout;
    double *result, *lse, *dq, *dk, *dv;
    tk_attention_strides out_strides;
    atomic_bool out_of_memory;
} f64_job;

/* Scores of row r, -inf where it may not look. */
static void row_scores(const tk_attention_group *group, int64_t r, double *scores) {
    const tk_attention_args *args = group->args;
    const double *q = tk_attention_q_row(group, r);
    int64_t head = group->kv_head * group->heads + r / args->q_length, query = r % args->q_length;
    int64_t mask_at = group->batch * args->mask_strides[0] + head * args->mask_strides[1] +
                      query * args->mask_strides[2];
    for (int64_t j = 0; j < args->k_length; j++) {
        const double *k = tk_attention_k_row(group, j);
        int64_t at = mask_at + j * args->mask_strides[3];
        double sum = 0;
        for (int64_t d = 0; d < args->head_dim; d++) sum += q[d] * k[d];
        scores[j] = sum * args->scale;
        if (args->mask_kind == TK_MASK_ADD) scores[j] += ((const double *)args->mask)[at];
        bool hidden = args->mask_kind == TK_MASK_BOOL && !((const uint8_t *)args->mask)[at];
        bool later = args->causal && j > query + args->k_length - args->q_length;
        if (hidden || later) scores[j] = -INFINITY;
    }
}

static double log_sum_exp(const double *scores, int64_t count) {
    double best = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count && best == best; j++)
        best = scores[j] > best || scores[j] != scores[j] ? scores[j] : best;
    if (best == -INFINITY || best != best) return best;
    for (int64_t j = 0; j < count; j++) sum += exp(scores[j] - best);
    return best + log(sum);
}

/* log(exp(a) + exp(b)) */
static double log_add(double a, double b) {
    double top = b > a || b != b ? b : a, low = top == b ? a : b;
    return top == -INFINITY || top != top ? top : top + log1p(exp(low - top));
}

static void forward_row(const f64_job *job, const tk_attention_group *group, int64_t r,
                        double *scores) {
    const tk_attention_args *args = job->args;
    int64_t head = group->kv_head * group->heads + r / args->q_length;
    double *out = job->result + group->batch * job->out_strides.batch +
                  head * job->out_strides.head + r % args->q_length * job->out_strides.row;
    row_scores(group, r, scores);
    double lse = log_sum_exp(scores, args->k_length);
    if (args->sinks) lse = log_add(lse, ((const double *)args->sinks)[head]);
    if (job->lse) job->lse[tk_attention_row_index(group, r)] = lse;
    for (int64_t d = 0; d < args->value_dim; d++) out[d] = 0;
    for (int64_t j = 0; j < args->k_length && lse != -INFINITY; j++) {
        const double *v = tk_attention_v_row(group, j);
        double p = exp(scores[j] - lse);
        for (int64_t d = 0; d < args->value_dim; d++) out[d] += p * v[d];
    }
}

static void backward_row(const f64_job *job, const tk_attention_group *group, int64_t r,
                         double *scores, double *dk, double *dv) {
    const tk_attention_args *args = job->args;
    int64_t index = tk_attention_row_index(group, r), n = args->value_dim;
    const double *q = tk_attention_q_row(group, r);
    const double *out = job->out + index * n, *dout = job->dout + index * n;
    double *dq = job->dq ? job->dq + index * args->head_dim : NULL, delta = 0;
    for (int64_t d = 0; d < args->head_dim && dq; d++) dq[d] = 0;
    if (job->lse_in[index] == -INFINITY) return;
    row_scores(group, r, scores);
    for (int64_t d = 0; d < n; d++) delta += out[d] * dout[d];
    for (int64_t j = 0; j < args->k_length; j++) {
        const double *k = tk_attention_k_row(group, j), *v = tk_attention_v_row(group, j);
        double p = exp(scores[j] - job->lse_in[index]), dp = 0;
        for (int64_t d = 0; d < n; d++) dp += dout[d] * v[d];
        double ds = p * (dp - delta) * args->scale;
        for (int64_t d = 0; d < n && dv; d++) dv[j * n + d] += p * dout[d];
        for (int64_t d = 0; d < args->head_dim && dk; d++) dk[j * args->head_dim + d] += ds * q[d];
        for (int64_t d = 0; d < args->head_dim && dq; d++) dq[d] += ds * k[d];
    }
}

static void clear_gradients(const f64_job *job, int64_t task, double **dk, double **dv) {
    const tk_attention_args *args = job->args;
    int64_t k_count = args->k_length * args->head_dim, v_count = args->k_length * args->value_dim;
    *dk = job->dk ? job->dk + task * k_count : NULL;
    *dv = job->dv ? job->dv + task * v_count : NULL;
    if (*dk) memset(*dk, 0, (size_t)k_count * sizeof(double));
    if (*dv) memset(*dv, 0, (size_t)v_count * sizeof(double));
}

static void f64_tasks(void *arg, int64_t begin, int64_t end, int worker) {
    f64_job *job = arg;
    (void)worker;
    double *scores = tk_malloc((size_t)job->args->k_length * sizeof(double));
    if (!scores) {
        atomic_store(&job->out_of_memory, true);
        return;
    }
    for (int64_t task = begin; task < end; task++) {
        tk_attention_group group = tk_attention_group_at(job->args, task);
        double *dk = NULL, *dv = NULL;
        if (!job->result) clear_gradients(job, task, &dk, &dv);
        for (int64_t r = 0; r < group.rows; r++) {
            if (job->result)
                forward_row(job, &group, r, scores);
            else
                backward_row(job, &group, r, scores, dk, dv);
        }
    }
    tk_free(scores);
}

static tk_status run(f64_job *job) {
    tk_parallel_for(job->args->batch * job->args->kv_heads, 1, f64_tasks, job);
    if (job->out_of_memory) return tk_fail(TK_OUT_OF_MEMORY, "no memory for scores of attention");
    return TK_OK;
}

tk_status tk_attention_f64(const tk_attention_args *args, void *out,
                           tk_attention_strides out_strides, void *lse) {
    f64_job job = {.args = args, .result = out, .out_strides = out_strides, .lse = lse};
    return run(&job);
}

tk_status tk_attention_backward_f64(const tk_attention_args *args, const void *out, const void *lse,
                                    const void *dout, void *dq, void *dk, void *dv) {
    f64_job job = {
        .args = args, .out = out, .lse_in = lse, .dout = dout, .dq = dq, .dk = dk, .dv = dv};
    return run(&job);
}
