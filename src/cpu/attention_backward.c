/* Attention backward: one task a (batch, kv head), which walks tiles of keys, and for each the
 * tiles of query rows. Scores are computed again from Q, K and the saved log-sum-exp.
 *
 *     P = exp(S - lse)    delta = sum(dO * O)    dS = P * (dO V^T - delta)
 *     dV = P^T dO         dK = scale dS^T Q      dQ = scale dS K
 *
 * With scores as [key][row] all five products read their operands in place, once Q and dO lie both
 * by rows and transposed; these copies are the task's memory, about six times Q of the head. Sums
 * run in the order of the loops, so gradients do not depend on threads. Rejected: tasks of query
 * tiles that add into shared dK and dV (needs atomics or two passes that compute scores twice). */
#include "cpu/attention.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/attention_tile.h"
#include "cpu/least.h"

typedef struct backward_job {
    const tk_attention_args *args;
    const char *out, *dout;
    const float *lse;
    char *dq, *dk, *dv;
    atomic_bool out_of_memory;
} backward_job;

typedef struct backward_buffers {
    float *memory;
    int64_t rows, width, value_width; /* rounded up: rows, head_dim, value_dim */
    float *q, *q_transposed;          /* [rows][width], tiles of [head_dim][TK_TILE_ROWS]; scaled */
    float *dout, *dout_transposed;
    float *dq;          /* [rows][width] */
    float *lse, *delta; /* [rows]; lse is +inf where the row saw nothing, so that P is 0 */
    float *k, *v;       /* [keys][width], [keys][value_width] */
    float *dk, *dv;
    float *scores, *dscores; /* [keys][TK_TILE_ROWS] */
} backward_buffers;

static bool open_buffers(const tk_attention_args *args, int64_t rows, backward_buffers *b) {
    b->rows = tk_round_up(rows, TK_TILE_ROWS);
    b->width = tk_round_up(args->head_dim, TK_COLUMN_WIDTH);
    b->value_width = tk_round_up(args->value_dim, TK_COLUMN_WIDTH);
    int64_t sizes[] = {b->rows * b->width,
                       b->rows * b->width,
                       b->rows * b->value_width,
                       b->rows * b->value_width,
                       b->rows * b->width,
                       b->rows,
                       b->rows,
                       TK_TILE_KEYS * b->width,
                       TK_TILE_KEYS * b->value_width,
                       TK_TILE_KEYS * b->width,
                       TK_TILE_KEYS * b->value_width,
                       TK_TILE_KEYS * TK_TILE_ROWS,
                       TK_TILE_KEYS * TK_TILE_ROWS};
    float **places[] = {&b->q,      &b->q_transposed, &b->dout,  &b->dout_transposed,
                        &b->dq,     &b->lse,          &b->delta, &b->k,
                        &b->v,      &b->dk,           &b->dv,    &b->scores,
                        &b->dscores};
    int64_t total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) total += sizes[i];
    b->memory = tk_calloc((size_t)total, sizeof(float));
    if (!b->memory) return false;
    float *at = b->memory;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *places[i] = at;
        at += sizes[i];
    }
    return true;
}

static const void *dense_row(const tk_attention_args *args, const char *x, int64_t index,
                             int64_t features) {
    return x + index * features * (int64_t)tk_dtype_size(args->dtype);
}

/* Q (scaled), dO, lse and delta of every row. */
static void load_rows(const backward_job *job, const tk_attention_group *group,
                      backward_buffers *b) {
    const tk_attention_args *args = job->args;
    const tk_vec_table *table = tk_vec_table_get();
    float scale = (float)args->scale;
    for (int64_t r = 0; r < group->rows; r++) {
        int64_t index = tk_attention_row_index(group, r);
        float *q = b->q + r * b->width, *dout = b->dout + r * b->value_width;
        tk_attention_widen(args->dtype, tk_attention_q_row(group, r), args->head_dim, q, b->width);
        table->binary_f32[TK_VEC_MUL][TK_VEC_VS](q, &scale, q, args->head_dim);
        tk_attention_widen(args->dtype, dense_row(args, job->dout, index, args->value_dim),
                           args->value_dim, dout, b->value_width);
        float *out = b->v; /* free until the first tile of keys */
        tk_attention_widen(args->dtype, dense_row(args, job->out, index, args->value_dim),
                           args->value_dim, out, b->value_width);
        b->delta[r] = table->dot(out, dout, args->value_dim);
        b->lse[r] = job->lse[index] == -INFINITY ? INFINITY : job->lse[index];
    }
    for (int64_t r = 0; r < b->rows; r += TK_TILE_ROWS) {
        tk_attention_transpose(b->q + r * b->width, b->width, TK_TILE_ROWS, args->head_dim,
                               b->q_transposed + r * b->width, TK_TILE_ROWS);
        tk_attention_transpose(b->dout + r * b->value_width, b->value_width, TK_TILE_ROWS,
                               args->value_dim, b->dout_transposed + r * b->value_width,
                               TK_TILE_ROWS);
    }
}

static void load_keys(const tk_attention_group *group, int64_t key, int64_t keys,
                      backward_buffers *b) {
    const tk_attention_args *args = group->args;
    for (int64_t j = 0; j < keys; j++) {
        tk_attention_widen(args->dtype, tk_attention_k_row(group, key + j), args->head_dim,
                           b->k + j * b->width, b->width);
        tk_attention_widen(args->dtype, tk_attention_v_row(group, key + j), args->value_dim,
                           b->v + j * b->value_width, b->value_width);
    }
    memset(b->dk, 0, (size_t)(keys * b->width) * sizeof(float));
    memset(b->dv, 0, (size_t)(keys * b->value_width) * sizeof(float));
}

static void tile_gradients(const tk_attention_group *group, int64_t first, int64_t key,
                           int64_t keys, backward_buffers *b) {
    const tk_attention_args *args = group->args;
    int64_t rows = tk_least(group->rows - first, TK_TILE_ROWS), span = TK_TILE_ROWS;
    float *q = b->q + first * b->width, *dout = b->dout + first * b->value_width;
    tk_attention_product(keys, span, args->head_dim, b->k, b->width, 1,
                         b->q_transposed + first * b->width, span, b->scores, span, 0.0f);
    tk_attention_mask_tile(group, first, rows, key, keys, b->scores, span, 1);
    tk_attention_product(keys, span, args->value_dim, b->v, b->value_width, 1,
                         b->dout_transposed + first * b->value_width, span, b->dscores, span, 0.0f);
    tk_vec_table_get()->softmax_columns_backward(b->scores, b->dscores, keys, span, b->lse + first,
                                                 b->delta + first);
    tk_attention_product(keys, b->value_width, rows, b->scores, span, 1, dout, b->value_width,
                         b->dv, b->value_width, 1.0f);
    tk_attention_product(keys, b->width, rows, b->dscores, span, 1, q, b->width, b->dk, b->width,
                         1.0f);
    tk_attention_product(rows, b->width, keys, b->dscores, 1, span, b->k, b->width,
                         b->dq + first * b->width, b->width, 1.0f);
}

/* Rows of a gradient to their dense place; `out` NULL when it was not asked for. */
static void store(const tk_attention_args *args, char *out, int64_t index, const float *x,
                  int64_t stride, int64_t rows, int64_t features) {
    int64_t bytes = features * (int64_t)tk_dtype_size(args->dtype);
    for (int64_t i = 0; i < rows && out; i++)
        tk_vec_convert(TK_FLOAT32, args->dtype, x + i * stride, out + (index + i) * bytes,
                       features);
}

static void group_gradients(const backward_job *job, const tk_attention_group *group,
                            backward_buffers *b) {
    const tk_attention_args *args = job->args;
    float scale = (float)args->scale;
    load_rows(job, group, b);
    for (int64_t key = 0; key < args->k_length; key += TK_TILE_KEYS) {
        int64_t keys = tk_least(args->k_length - key, TK_TILE_KEYS);
        load_keys(group, key, keys, b);
        for (int64_t first = 0; first < group->rows; first += TK_TILE_ROWS) {
            int64_t rows = tk_least(group->rows - first, TK_TILE_ROWS);
            int64_t seen = tk_attention_key_limit(group, first, rows) - key;
            if (seen > 0) tile_gradients(group, first, key, tk_least(keys, seen), b);
        }
        int64_t index = (group->batch * args->kv_heads + group->kv_head) * args->k_length + key;
        store(args, job->dk, index, b->dk, b->width, keys, args->head_dim);
        store(args, job->dv, index, b->dv, b->value_width, keys, args->value_dim);
    }
    tk_vec_table_get()->binary_f32[TK_VEC_MUL][TK_VEC_VS](b->dq, &scale, b->dq, b->rows * b->width);
    store(args, job->dq, tk_attention_row_index(group, 0), b->dq, b->width, group->rows,
          args->head_dim);
}

static void backward_tasks(void *arg, int64_t begin, int64_t end, int worker) {
    backward_job *job = arg;
    (void)worker;
    for (int64_t task = begin; task < end; task++) {
        tk_attention_group group = tk_attention_group_at(job->args, task);
        backward_buffers buffers;
        if (!open_buffers(job->args, group.rows, &buffers)) {
            atomic_store(&job->out_of_memory, true);
            continue;
        }
        group_gradients(job, &group, &buffers);
        tk_free(buffers.memory);
    }
}

tk_status tk_attention_backward(const tk_attention_args *args, const void *out, const void *lse,
                                const void *dout, void *dq, void *dk, void *dv) {
    assert(args->kv_heads > 0 && args->q_heads % args->kv_heads == 0);
    if (args->dtype == TK_FLOAT64)
        return tk_attention_backward_f64(args, out, lse, dout, dq, dk, dv);
    backward_job job = {
        .args = args, .out = out, .dout = dout, .lse = lse, .dq = dq, .dk = dk, .dv = dv};
    tk_parallel_for(args->batch * args->kv_heads, 1, backward_tasks, &job);
    if (job.out_of_memory) return tk_fail(TK_OUT_OF_MEMORY, "no memory for gradients of attention");
    return TK_OK;
}
