/* RMS norm and layer norm, forward and backward: one body for both, which differ by the mean.
 *
 *     xhat = (x - mean) * inverse        inverse = 1 / sqrt(var + eps)
 *     y    = xhat * weight + bias        g       = dy * weight
 *     dx   = inverse * (g - mean(g) - xhat * mean(g * xhat))
 *
 * where RMS norm has mean = 0, var = mean(x^2) and drops mean(g). A row is read once for its mean,
 * once for its variance and once to write, all but the first from cache. dweight and dbias are
 * summed over at most 64 chunks of rows, then the chunks by the outer reduction: the shape alone
 * decides the order.
 *
 * Saving the statistics of the forward pass was rejected: finding them again reads a row that the
 * backward pass reads anyway. */
#include "cpu/norm.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/norm_row.h"
#include "cpu/vec_reduce.h"

#define WEIGHT_CHUNKS 64
#define WEIGHT_CHUNK_ROWS 16

typedef struct norm_job {
    tk_dtype dtype;
    bool centered;
    const void *x, *dy;
    const float *weight, *bias; /* converted */
    double eps;
    void *out;              /* y or dx, NULL when dx is not wanted */
    float *dweight, *dbias; /* a row of `columns` for each chunk, or NULL */
    int64_t columns;
    atomic_bool out_of_memory;
} norm_job;

static tk_vec_row_stat row_stat(const norm_job *job, const float *x) {
    const tk_vec_table *table = tk_vec_table_get();
    int64_t n = job->columns;
    float sums[2], mean = 0;
    if (job->centered) {
        double sum = 0;
        for (int64_t i = 0; i < n; i += TK_REDUCE_BLOCK) {
            int64_t part = n - i < TK_REDUCE_BLOCK ? n - i : TK_REDUCE_BLOCK;
            sum += (double)table->block_f32[TK_VEC_SUM](x + i, part);
        }
        mean = (float)(sum / (double)n);
    }
    table->centered_moments(x, mean, sums, n);
    double rest = job->centered ? (double)sums[0] / (double)n : 0;
    double variance = (double)sums[1] / (double)n - rest * rest;
    return (tk_vec_row_stat){mean, (float)rest, (float)(1 / sqrt(variance + job->eps))};
}

/* Three rows of scratch for a task, which halves are converted in. */
static bool open_scratch(norm_job *job, float **scratch) {
    *scratch = tk_malloc((size_t)(3 * job->columns) * sizeof(float));
    if (!*scratch) atomic_store(&job->out_of_memory, true);
    return *scratch != NULL;
}

static void forward_rows(void *arg, int64_t begin, int64_t end, int worker) {
    norm_job *job = arg;
    int64_t n = job->columns;
    float *scratch;
    (void)worker;
    if (!open_scratch(job, &scratch)) return;
    for (int64_t row = begin; row < end; row++) {
        const float *x =
            tk_row_floats(job->dtype, tk_row_at(job->dtype, job->x, row * n), n, scratch);
        void *out = tk_row_out(job->dtype, job->out, row * n);
        float *y = job->dtype == TK_FLOAT32 ? out : scratch + n;
        tk_vec_table_get()->normalize(x, row_stat(job, x), job->weight, job->bias, y, n);
        if (job->dtype != TK_FLOAT32) tk_vec_convert(TK_FLOAT32, job->dtype, y, out, n);
    }
    tk_free(scratch);
}

static void backward_row(const norm_job *job, int64_t row, int64_t chunk, float *scratch) {
    const tk_vec_table *table = tk_vec_table_get();
    int64_t n = job->columns;
    const float *x = tk_row_floats(job->dtype, tk_row_at(job->dtype, job->x, row * n), n, scratch);
    const float *dy =
        tk_row_floats(job->dtype, tk_row_at(job->dtype, job->dy, row * n), n, scratch + n);
    tk_vec_row_stat stat = row_stat(job, x);
    if (job->dweight || job->dbias)
        table->normalize_weights(x, stat, dy, job->dweight ? job->dweight + chunk * n : NULL,
                                 job->dbias ? job->dbias + chunk * n : NULL, n);
    if (!job->out) return;
    float sums[2];
    table->normalize_sums(x, stat, dy, job->weight, sums, n);
    float shift = job->centered ? sums[0] / (float)n : 0.0f, slope = sums[1] / (float)n;
    void *out = tk_row_out(job->dtype, job->out, row * n);
    float *dx = job->dtype == TK_FLOAT32 ? out : scratch + 2 * n;
    table->normalize_backward(x, stat, dy, job->weight, shift, slope, dx, n);
    if (job->dtype != TK_FLOAT32) tk_vec_convert(TK_FLOAT32, job->dtype, dx, out, n);
}

static void backward_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end, int worker) {
    norm_job *job = arg;
    float *scratch;
    (void)worker;
    if (!open_scratch(job, &scratch)) return;
    for (int64_t row = begin; row < end; row++) backward_row(job, row, chunk, scratch);
    tk_free(scratch);
}

/* weight and bias as floats in one block that the caller frees; f32 needs no block. */
static tk_status widen_weights(norm_job *job, const void *weight, const void *bias, float **block) {
    int64_t n = job->columns;
    *block = NULL;
    if (job->dtype != TK_FLOAT32 && (weight || bias)) {
        *block = tk_malloc((size_t)(2 * n) * sizeof(float));
        if (!*block) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the weights of a norm");
    }
    job->weight = tk_row_floats(job->dtype, weight, n, *block);
    job->bias = tk_row_floats(job->dtype, bias, n, *block ? *block + n : NULL);
    return TK_OK;
}

static tk_status norm_status(const norm_job *job) {
    return job->out_of_memory ? tk_fail(TK_OUT_OF_MEMORY, "no memory for a row of a norm") : TK_OK;
}

static tk_status forward(norm_job *job, const void *weight, const void *bias, int64_t rows) {
    float *block;
    TK_TRY(widen_weights(job, weight, bias, &block));
    tk_parallel_for(rows, tk_row_grain(job->columns), forward_rows, job);
    tk_free(block);
    return norm_status(job);
}

/* Sums the chunks' gradients into the result. */
static tk_status gather(tk_dtype dtype, const float *chunks, int64_t count, int64_t columns,
                        void *out) {
    float *sum = tk_malloc((size_t)columns * sizeof(float));
    if (!sum) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the gradient of a norm");
    tk_status status =
        tk_reduce_outer(TK_VEC_SUM, TK_FLOAT32, chunks, count, columns, columns, sum);
    if (status == TK_OK) tk_vec_convert(TK_FLOAT32, dtype, sum, out, columns);
    tk_free(sum);
    return status;
}

static tk_status backward_with_weights(norm_job *job, void *dweight, void *dbias, int64_t rows) {
    int64_t n = job->columns, chunk_rows = rows / WEIGHT_CHUNKS + 1;
    if (chunk_rows < WEIGHT_CHUNK_ROWS) chunk_rows = WEIGHT_CHUNK_ROWS;
    int64_t chunks = tk_chunk_count(rows, chunk_rows);
    float *partial = NULL;
    if (dweight || dbias) {
        partial = tk_calloc((size_t)(2 * chunks * n + 1), sizeof(float));
        if (!partial) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the gradient of a norm");
    }
    if (dweight) job->dweight = partial;
    if (dbias) job->dbias = partial + chunks * n;
    tk_parallel_chunks(rows, chunk_rows, backward_chunk, job);
    tk_status status = norm_status(job);
    if (status == TK_OK && dweight) status = gather(job->dtype, job->dweight, chunks, n, dweight);
    if (status == TK_OK && dbias) status = gather(job->dtype, job->dbias, chunks, n, dbias);
    tk_free(partial);
    return status;
}

static tk_status backward(norm_job *job, const void *weight, void *dweight, void *dbias,
                          int64_t rows) {
    float *block;
    TK_TRY(widen_weights(job, weight, NULL, &block));
    tk_status status = backward_with_weights(job, dweight, dbias, rows);
    tk_free(block);
    return status;
}

tk_status tk_cpu_rms_norm(tk_dtype dtype, const void *x, const void *weight, double eps, void *out,
                          int64_t rows, int64_t columns) {
    assert(tk_dtype_is_float(dtype));
    if (dtype == TK_FLOAT64) {
        tk_norm_f64(false, x, weight, NULL, eps, out, rows, columns);
        return TK_OK;
    }
    norm_job job = {.dtype = dtype, .x = x, .eps = eps, .out = out, .columns = columns};
    return forward(&job, weight, NULL, rows);
}

tk_status tk_cpu_layer_norm(tk_dtype dtype, const void *x, const void *weight, const void *bias,
                            double eps, void *out, int64_t rows, int64_t columns) {
    assert(tk_dtype_is_float(dtype));
    if (dtype == TK_FLOAT64) {
        tk_norm_f64(true, x, weight, bias, eps, out, rows, columns);
        return TK_OK;
    }
    norm_job job = {
        .dtype = dtype, .centered = true, .x = x, .eps = eps, .out = out, .columns = columns};
    return forward(&job, weight, bias, rows);
}

tk_status tk_cpu_rms_norm_backward(tk_dtype dtype, const void *x, const void *weight, double eps,
                                   const void *dy, void *dx, void *dweight, int64_t rows,
                                   int64_t columns) {
    assert(tk_dtype_is_float(dtype));
    if (dtype == TK_FLOAT64) {
        tk_norm_backward_f64(false, x, weight, eps, dy, dx, dweight, NULL, rows, columns);
        return TK_OK;
    }
    norm_job job = {.dtype = dtype, .x = x, .dy = dy, .eps = eps, .out = dx, .columns = columns};
    return backward(&job, weight, dweight, NULL, rows);
}

tk_status tk_cpu_layer_norm_backward(tk_dtype dtype, const void *x, const void *weight, double eps,
                                     const void *dy, void *dx, void *dweight, void *dbias,
                                     int64_t rows, int64_t columns) {
    assert(tk_dtype_is_float(dtype));
    if (dtype == TK_FLOAT64) {
        tk_norm_backward_f64(true, x, weight, eps, dy, dx, dweight, dbias, rows, columns);
        return TK_OK;
    }
    norm_job job = {.dtype = dtype,
                    .centered = true,
                    .x = x,
                    .dy = dy,
                    .eps = eps,
                    .out = dx,
                    .columns = columns};
    return backward(&job, weight, dweight, dbias, rows);
}
