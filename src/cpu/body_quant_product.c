/* Products of x and quantised matrices, which are never decoded whole.
 *
 * Pairs are grouped by the quantised matrix, so that each of its rows is decoded once for all rows
 * of x that meet it. A task takes a panel of the matrix that fits the second-level cache, decodes
 * it to floats and multiplies. With few rows of x (one token at a time) there is no panel: a
 * decoded row meets them while it is in the first-level cache. Half types compute in f32 and are
 * rounded once. Rejected: decoding inside of the product's tile kernels, which would need them once
 * a format. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_pairs.h"
#include "cpu/body_quant.h"
#include "cpu/gemm.h"
#include "cpu/least.h"
#include "cpu/vec_table.h"
#include "graph/build_quant.h"

#define PANEL ((int64_t)1 << 18) /* elements */
#define FEW_ROWS 4

typedef struct quant_job {
    tk_quant_kind kind;
    bool transpose;
    tk_codes codes;
    tk_pairs pairs;
    const tk_strided *x, *out;
    int64_t m, n, k;
    int64_t rows;    /* of a quantised matrix */
    tk_dtype wide;   /* that is computed in */
    size_t bytes;    /* of an element of it */
    const char *in;  /* x as `wide`: m by k for each pair, in order */
    char *sums;      /* the products alike: m by n for each pair */
    int64_t panel;   /* columns of the result in a task */
    int64_t n_tasks; /* of a group */
    char *scratch;   /* a panel a worker */
    int64_t scratch_elements;
    _Atomic(int) status;
} quant_job;

/* Groups [begin, begin + count) of row `row` of matrix `number`. */
static void decode(const quant_job *job, int64_t number, int64_t row, int64_t begin, int64_t count,
                   void *out) {
    tk_quant_row from = tk_codes_row(&job->codes, number * job->rows + row);
    if (job->wide == TK_FLOAT64)
        tk_quant_decode_f64(&job->codes.kind, from, begin, count, out);
    else
        tk_quant_decode_f32(&job->codes.kind, from, begin, count, out);
}

/* One task: columns [begin, end) of the products of a group's rows. */
typedef struct part {
    const quant_job *job;
    int64_t number; /* of the quantised matrix */
    int64_t m;      /* rows of all its pairs */
    const char *in;
    char *sums;
    int64_t begin, end;
    char *scratch;
} part;

static tk_status multiply(const part *p, int64_t first, int64_t depth, int64_t b_row,
                          int64_t b_column) {
    const quant_job *job = p->job;
    tk_gemm_args args = {.dtype = job->wide,
                         .m = p->m,
                         .n = p->end - p->begin,
                         .k = depth,
                         .a = p->in + (size_t)first * job->bytes,
                         .a_row = job->k,
                         .a_column = 1,
                         .b = p->scratch,
                         .b_row = b_row,
                         .b_column = b_column,
                         .c = p->sums + (size_t)p->begin * job->bytes,
                         .c_row = job->n,
                         .c_column = 1,
                         .alpha = 1,
                         .beta = first > 0};
    return tk_gemm(&args);
}

/* x w': rows of w are columns of the result. */
static tk_status by_rows(const part *p) {
    const quant_job *job = p->job;
    for (int64_t row = p->begin; row < p->end; row++)
        decode(job, p->number, row, 0, job->codes.groups,
               p->scratch + (size_t)((row - p->begin) * job->k) * job->bytes);
    return multiply(p, 0, job->k, 1, job->k);
}

static tk_status by_single_rows(const part *p) {
    const quant_job *job = p->job;
    const tk_vec_table *table = tk_vec_table_get();
    float *row = (float *)(void *)p->scratch, *sums = (float *)(void *)p->sums;
    const float *in = (const float *)(const void *)p->in;
    for (int64_t column = p->begin; column < p->end; column++) {
        decode(job, p->number, column, 0, job->codes.groups, row);
        for (int64_t i = 0; i < p->m; i++)
            sums[i * job->n + column] = table->dot(in + i * job->k, row, job->k);
    }
    return TK_OK;
}

/* x w: columns of w, in whole groups, are columns of the result; rows are taken a panel at a time.
 */
static tk_status by_columns(const part *p) {
    const quant_job *job = p->job;
    int64_t size = job->kind.quant.group_size, width = p->end - p->begin;
    int64_t depth = tk_least(job->k, job->scratch_elements / width);
    for (int64_t first = 0; first < job->k; first += depth) {
        int64_t count = tk_least(depth, job->k - first);
        for (int64_t row = 0; row < count; row++)
            decode(job, p->number, first + row, p->begin / size, width / size,
                   p->scratch + (size_t)(row * width) * job->bytes);
        TK_TRY(multiply(p, first, count, width, 1));
    }
    return TK_OK;
}

static tk_status run_part(const part *p) {
    const quant_job *job = p->job;
    if (!job->transpose) return by_columns(p);
    bool few = p->m <= FEW_ROWS && job->wide == TK_FLOAT32;
    return few ? by_single_rows(p) : by_rows(p);
}

static void run_tasks(void *arg, int64_t begin, int64_t end, int worker) {
    quant_job *job = arg;
    for (int64_t task = begin; task < end; task++) {
        int64_t group = task / job->n_tasks, first = job->pairs.starts[group];
        const tk_pair *pair = &job->pairs.items[first];
        int64_t column = task % job->n_tasks * job->panel;
        part p = {.job = job,
                  .number = pair->right,
                  .m = (job->pairs.starts[group + 1] - first) * job->m,
                  .in = job->in + (size_t)(first * job->m * job->k) * job->bytes,
                  .sums = job->sums + (size_t)(first * job->m * job->n) * job->bytes,
                  .begin = column,
                  .end = tk_least(column + job->panel, job->n),
                  .scratch = job->scratch + (size_t)(worker * job->scratch_elements) * job->bytes};
        if (pair->left < 0) continue;
        tk_status status = run_part(&p);
        if (status != TK_OK) job->status = (int)status;
    }
}

/* How the result is cut: panels of at most PANEL elements, and at least one a thread. */
static void cut(quant_job *job) {
    int64_t unit = job->transpose ? 8 : job->kind.quant.group_size;
    int64_t threads = tk_pool_threads(), fair = (job->n + threads - 1) / threads;
    int64_t depth = job->transpose ? job->k : 512;
    int64_t width = tk_least(fair, PANEL / (depth + 1));
    job->panel = width < unit ? unit : width / unit * unit;
    job->n_tasks = (job->n + job->panel - 1) / job->panel;
    job->scratch_elements = job->panel * (job->transpose ? job->k : tk_least(job->k, 512));
}

/* ---- operands and results ---- */

/* x of every pair as `wide`, m by k, in the order of the pairs. */
static void collect(void *arg, int64_t begin, int64_t end, int worker) {
    const quant_job *job = arg;
    const tk_strided *x = job->x;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        char *to = (char *)job->in + (size_t)(i * job->m * job->k) * job->bytes;
        if (job->pairs.items[i].left < 0) continue;
        const char *from = tk_matrix_at(x, job->pairs.items[i].left);
        size_t step = (size_t)x->strides[x->rank - 2] * tk_dtype_size(x->dtype);
        for (int64_t row = 0; row < job->m; row++)
            tk_convert_run(x->dtype, job->wide, from + (size_t)row * step,
                           to + (size_t)(row * job->k) * job->bytes, job->k);
    }
}

static void give(void *arg, int64_t begin, int64_t end, int worker) {
    const quant_job *job = arg;
    int64_t block = job->m * job->n;
    size_t bytes = tk_dtype_size(job->out->dtype);
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        char *to = (char *)job->out->data + (size_t)(job->pairs.items[i].out * block) * bytes;
        if (job->pairs.items[i].left < 0)
            memset(to, 0, (size_t)block * bytes);
        else
            tk_convert_run(job->wide, job->out->dtype, job->sums + (size_t)(i * block) * job->bytes,
                           to, block);
    }
}

static tk_status run(quant_job *job) {
    bool direct = job->out->dtype == job->wide && job->pairs.in_order &&
                  (job->pairs.count == 0 || job->pairs.items[0].left >= 0);
    void *in, *sums = NULL, *scratch = NULL;
    int64_t pairs = job->pairs.count;
    cut(job);
    TK_TRY(tk_scratch_new(pairs * job->m * job->k + 1, job->bytes, &in));
    tk_status status =
        tk_scratch_new(job->scratch_elements * tk_pool_threads() + 1, job->bytes, &scratch);
    if (status == TK_OK && !direct)
        status = tk_scratch_new(pairs * job->m * job->n + 1, job->bytes, &sums);
    if (status == TK_OK) {
        job->in = in;
        job->scratch = scratch;
        job->sums = direct ? job->out->data : sums;
        tk_parallel_for(pairs, 1 + 65536 / (job->m * job->k + 1), collect, job);
        tk_parallel_for(job->pairs.n_groups * job->n_tasks, 1, run_tasks, job);
        status = (tk_status)job->status;
        if (status != TK_OK) tk_fail(status, "quantized_matmul: no memory for products");
    }
    if (status == TK_OK && !direct)
        tk_parallel_for(pairs, 1 + 65536 / (job->m * job->n + 1), give, job);
    tk_free(in);
    tk_free(sums);
    tk_free(scratch);
    return status;
}

static tk_status find_pairs(quant_job *job, const tk_body_call *call, bool gathered, int parts) {
    const tk_strided *w = &call->inputs[1];
    if (gathered)
        return tk_pairs_by_index(&call->inputs[parts + 1], &call->inputs[parts + 2],
                                 job->x->shape[0], w->shape[0], call->fault, &job->pairs);
    return tk_pairs_by_position(w->rank, w->shape, w, parts, &job->pairs);
}

tk_status tk_body_quantized_product(const tk_body_call *call) {
    const tk_attrs_quant_product *attrs = call->attrs;
    const tk_strided *w = &call->inputs[1], *out = &call->outputs[0];
    quant_job job = {.kind = {.quant = TK_QUANT_OF(attrs)},
                     .transpose = attrs->transpose,
                     .out = out,
                     .m = out->shape[out->rank - 2],
                     .n = out->shape[out->rank - 1],
                     .rows = w->shape[w->rank - 2],
                     .wide = out->dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32,
                     .status = TK_OK};
    tk_rows_view x;
    tk_status status = tk_rows_take(&call->inputs[0], &x);
    job.x = &x.view;
    job.k = x.view.shape[x.view.rank - 1];
    job.bytes = tk_dtype_size(job.wide);
    int parts = tk_quant_is_affine(job.kind.quant) ? 3 : 2;
    if (status == TK_OK) status = tk_codes_take(job.kind.quant, call->inputs + 1, NULL, &job.codes);
    if (status == TK_OK) status = find_pairs(&job, call, attrs->gathered, parts);
    if (status == TK_OK && out->size > 0) status = run(&job);
    tk_codes_free(&job.codes);
    tk_pairs_free(&job.pairs);
    tk_dense_free(&x.dense);
    return status;
}
