/* Attention forward: one task a tile of query rows, online softmax over tiles of keys.
 *
 * A tile of 64 rows with 128 keys: the scaled queries lie transposed, [feature][row]; scores
 * [key][row] come from one product that reads keys in place; softmax goes down the columns; the
 * second product adds to out [row][feature], whose rows fade by e^(old max - new max) first. In f32
 * nothing of K is copied, and of V only where a row is no multiple of a tile's width.
 *
 * Few rows (one token without groups) would leave most of a tile empty: up to 4 rows are done as
 * dot products with each key instead. */
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

#define FEW_ROWS 4

typedef struct attention_job {
    const tk_attention_args *args;
    char *out;
    tk_attention_strides out_strides;
    float *lse;
    int64_t tiles; /* of each (batch, kv head) */
    atomic_bool out_of_memory;
} attention_job;

/* One task's memory: widths are rounded up to whole vectors. */
typedef struct tile_buffers {
    float *memory;
    float *q;      /* [head_dim][width], or [rows][head_dim] for few rows */
    float *scores; /* [keys][width], or [rows][keys] */
    float *out;    /* [rows][value_width] */
    float *k, *v;  /* [keys][head_dim], [keys][value_width], where they must be copied */
    float *max, *sum, *fade;
    int64_t width, value_width;
} tile_buffers;

static bool open_buffers(const tk_attention_args *args, int64_t rows, tile_buffers *buffers) {
    int64_t width = tk_round_up(rows, TK_COLUMN_WIDTH);
    int64_t value_width = tk_round_up(args->value_dim, TK_COLUMN_WIDTH);
    int64_t sizes[] = {width * args->head_dim,
                       width * TK_TILE_KEYS,
                       width * value_width,
                       TK_TILE_KEYS * args->head_dim,
                       TK_TILE_KEYS * value_width,
                       width,
                       width,
                       width};
    float **places[] = {&buffers->q, &buffers->scores, &buffers->out, &buffers->k,
                        &buffers->v, &buffers->max,    &buffers->sum, &buffers->fade};
    int64_t total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) total += sizes[i];
    buffers->memory = tk_malloc((size_t)total * sizeof(float));
    if (!buffers->memory) return false;
    float *at = buffers->memory;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *places[i] = at;
        at += sizes[i];
    }
    buffers->width = width;
    buffers->value_width = value_width;
    memset(buffers->out, 0, (size_t)(width * value_width) * sizeof(float));
    for (int64_t i = 0; i < width; i++) {
        buffers->max[i] = -INFINITY;
        buffers->sum[i] = 0.0f;
    }
    return true;
}

/* Keys as floats: in place, or copied. */
static const float *keys_of(const tk_attention_group *group, int64_t key, int64_t keys,
                            const tile_buffers *buffers, int64_t *stride) {
    const tk_attention_args *args = group->args;
    *stride = args->k_strides.row;
    if (args->dtype == TK_FLOAT32) return tk_attention_k_row(group, key);
    *stride = args->head_dim;
    for (int64_t j = 0; j < keys; j++)
        tk_attention_widen(args->dtype, tk_attention_k_row(group, key + j), args->head_dim,
                           buffers->k + j * args->head_dim, args->head_dim);
    return buffers->k;
}
static const float *values_of(const tk_attention_group *group, int64_t key, int64_t keys,
                              const tile_buffers *buffers, int64_t *stride) {
    const tk_attention_args *args = group->args;
    *stride = args->v_strides.row;
    if (args->dtype == TK_FLOAT32 && args->value_dim == buffers->value_width)
        return tk_attention_v_row(group, key);
    *stride = buffers->value_width;
    for (int64_t j = 0; j < keys; j++)
        tk_attention_widen(args->dtype, tk_attention_v_row(group, key + j), args->value_dim,
                           buffers->v + j * buffers->value_width, buffers->value_width);
    return buffers->v;
}

static void load_queries(const tk_attention_group *group, int64_t first, int64_t rows,
                         const tile_buffers *buffers, bool transposed) {
    const tk_attention_args *args = group->args;
    float scale = (float)args->scale;
    for (int64_t i = 0; i < rows; i++) {
        float *row = transposed ? buffers->k : buffers->q + i * args->head_dim;
        const void *q = tk_attention_q_row(group, first + i);
        tk_attention_widen(args->dtype, q, args->head_dim, row, args->head_dim);
        for (int64_t d = 0; d < args->head_dim && transposed; d++)
            buffers->q[d * buffers->width + i] = row[d] * scale;
        for (int64_t d = 0; d < args->head_dim && !transposed; d++) row[d] *= scale;
    }
    for (int64_t d = 0; d < args->head_dim && transposed; d++)
        for (int64_t i = rows; i < buffers->width; i++) buffers->q[d * buffers->width + i] = 0.0f;
}

static void fade_rows(const tile_buffers *buffers, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        if (buffers->fade[i] == 1.0f) continue;
        float *row = buffers->out + i * buffers->value_width;
        for (int64_t d = 0; d < buffers->value_width; d++) row[d] *= buffers->fade[i];
    }
}

static void tile_scores(const tk_attention_group *group, int64_t first, int64_t rows, int64_t key,
                        int64_t keys, const tile_buffers *buffers) {
    int64_t stride, width = buffers->width;
    const float *k = keys_of(group, key, keys, buffers, &stride);
    tk_attention_product(keys, width, group->args->head_dim, k, stride, 1, buffers->q, width,
                         buffers->scores, width, 0.0f);
    tk_attention_mask_tile(group, first, rows, key, keys, buffers->scores, width, 1);
    tk_vec_table_get()->softmax_columns(buffers->scores, keys, width, buffers->max, buffers->sum,
                                        buffers->fade);
}

/* One row of scores that lie in a row: the step of online softmax that softmax_columns does. */
static void softmax_row(float *scores, int64_t keys, float *max, float *sum, float *fade) {
    const tk_vec_table *table = tk_vec_table_get();
    float best = table->block_f32[TK_VEC_RMAX](scores, keys);
    best = *max > best || *max != *max ? *max : best;
    float shift = best == -INFINITY ? 0.0f : best;
    *fade = expf(*max - shift);
    *sum = *sum * *fade + table->exp_shifted(scores, shift, scores, keys);
    *max = best;
}

static void few_scores(const tk_attention_group *group, int64_t first, int64_t rows, int64_t key,
                       int64_t keys, const tile_buffers *buffers) {
    int64_t stride, dim = group->args->head_dim;
    const float *k = keys_of(group, key, keys, buffers, &stride);
    for (int64_t i = 0; i < rows; i++)
        tk_vec_table_get()->dot_rows(buffers->q + i * dim, k, stride, keys, dim,
                                     buffers->scores + i * TK_TILE_KEYS);
    tk_attention_mask_tile(group, first, rows, key, keys, buffers->scores, 1, TK_TILE_KEYS);
    for (int64_t i = 0; i < rows; i++)
        softmax_row(buffers->scores + i * TK_TILE_KEYS, keys, &buffers->max[i], &buffers->sum[i],
                    &buffers->fade[i]);
}

static void tile_of_keys(const tk_attention_group *group, int64_t first, int64_t rows, int64_t key,
                         int64_t keys, const tile_buffers *buffers) {
    bool few = rows <= FEW_ROWS;
    int64_t stride, row_step = few ? TK_TILE_KEYS : 1, key_step = few ? 1 : buffers->width;
    (few ? few_scores : tile_scores)(group, first, rows, key, keys, buffers);
    fade_rows(buffers, rows);
    const float *v = values_of(group, key, keys, buffers, &stride);
    tk_attention_product(rows, buffers->value_width, keys, buffers->scores, row_step, key_step, v,
                         stride, buffers->out, buffers->value_width, 1.0f);
}

/* The row's factor and log-sum-exp, from its largest score and the sum of weights below it. */
static float finish_row(const tk_attention_args *args, int64_t head, float max, float sum,
                        float *out_lse) {
    if (args->sinks) {
        float sink = ((const float *)args->sinks)[head];
        float top = sink > max || sink != sink ? sink : max;
        float fade = max == -INFINITY ? 0.0f : expf(max - top);
        sum = sum * fade + (sink == -INFINITY ? 0.0f : expf(sink - top));
        *out_lse = sum == 0.0f ? -INFINITY : top + logf(sum);
        return sum == 0.0f ? 0.0f : fade / sum;
    }
    *out_lse = sum == 0.0f ? -INFINITY : max + logf(sum);
    return sum == 0.0f ? 0.0f : 1.0f / sum;
}

static void store_rows(const attention_job *job, const tk_attention_group *group, int64_t first,
                       int64_t rows, const tile_buffers *buffers) {
    const tk_attention_args *args = job->args;
    for (int64_t i = 0; i < rows; i++) {
        int64_t r = first + i, head = group->kv_head * group->heads + r / args->q_length;
        int64_t at = group->batch * job->out_strides.batch + head * job->out_strides.head +
                     r % args->q_length * job->out_strides.row;
        float *row = buffers->out + i * buffers->value_width, lse;
        float inverse = finish_row(args, head, buffers->max[i], buffers->sum[i], &lse);
        for (int64_t d = 0; d < args->value_dim; d++) row[d] *= inverse;
        tk_vec_convert(TK_FLOAT32, args->dtype, row,
                       job->out + at * (int64_t)tk_dtype_size(args->dtype), args->value_dim);
        if (job->lse) job->lse[tk_attention_row_index(group, r)] = lse;
    }
}

static void attention_tasks(void *arg, int64_t begin, int64_t end, int worker) {
    attention_job *job = arg;
    (void)worker;
    for (int64_t task = begin; task < end; task++) {
        tk_attention_group group = tk_attention_group_at(job->args, task / job->tiles);
        int64_t first = task % job->tiles * TK_TILE_ROWS;
        int64_t rows = tk_least(group.rows - first, TK_TILE_ROWS);
        tile_buffers buffers;
        if (!open_buffers(job->args, rows, &buffers)) {
            atomic_store(&job->out_of_memory, true);
            continue;
        }
        load_queries(&group, first, rows, &buffers, rows > FEW_ROWS);
        int64_t limit = tk_attention_key_limit(&group, first, rows);
        for (int64_t key = 0; key < limit; key += TK_TILE_KEYS)
            tile_of_keys(&group, first, rows, key, tk_least(limit - key, TK_TILE_KEYS), &buffers);
        store_rows(job, &group, first, rows, &buffers);
        tk_free(buffers.memory);
    }
}

tk_status tk_attention(const tk_attention_args *args, void *out, tk_attention_strides out_strides,
                       void *lse) {
    assert(args->kv_heads > 0 && args->q_heads % args->kv_heads == 0);
    if (args->dtype == TK_FLOAT64) return tk_attention_f64(args, out, out_strides, lse);
    int64_t rows = args->q_heads / args->kv_heads * args->q_length;
    attention_job job = {.args = args, .out = out, .out_strides = out_strides, .lse = lse};
    job.tiles = tk_chunk_count(rows, TK_TILE_ROWS);
    tk_parallel_for(args->batch * args->kv_heads * job.tiles, 1, attention_tasks, &job);
    if (job.out_of_memory) return tk_fail(TK_OUT_OF_MEMORY, "no memory for tiles of attention");
    return TK_OK;
}
