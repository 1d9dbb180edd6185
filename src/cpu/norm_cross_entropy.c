/* Cross entropy of rows of logits with an integer target, without a row of probabilities in
 * between.
 *
 * Rows may be long (a vocabulary), so halves are converted in blocks rather than by row. */
#include <assert.h>
#include <math.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "cpu/norm_row.h"
#include "cpu/vec_reduce.h"

#define BLOCK TK_REDUCE_BLOCK

typedef struct entropy_job {
    tk_dtype dtype;
    const void *x;
    const int64_t *targets;
    const void *lse_in, *dloss;
    void *loss, *lse, *dx;
    int64_t columns;
    _Atomic(int64_t) bad_row; /* the least row with a target out of range, or INT64_MAX */
} entropy_job;

static bool in_range(const entropy_job *job, int64_t row) {
    return job->targets[row] >= 0 && job->targets[row] < job->columns;
}

static void note_bad_row(entropy_job *job, int64_t row) {
    int64_t known = atomic_load(&job->bad_row);
    while (row < known && !atomic_compare_exchange_weak(&job->bad_row, &known, row)) continue;
}

static double logit(const entropy_job *job, int64_t row) {
    float value;
    const void *at = tk_row_at(job->dtype, job->x, row * job->columns + job->targets[row]);
    if (job->dtype == TK_FLOAT64) return *(const double *)at;
    tk_vec_convert(job->dtype, TK_FLOAT32, at, &value, 1);
    return (double)value;
}

/* Log-sum-exp of a row, of halves in f32 without rounding to the half. */
static double row_lse(const entropy_job *job, const void *x) {
    const tk_vec_table *table = tk_vec_table_get();
    float wide[BLOCK], best = -INFINITY, result;
    if (job->dtype == TK_FLOAT64 || job->dtype == TK_FLOAT32) {
        double exact;
        bool narrow = job->dtype == TK_FLOAT32;
        tk_logsumexp_rows(job->dtype, x, 1, job->columns, job->columns,
                          narrow ? (void *)&result : (void *)&exact);
        return narrow ? (double)result : exact;
    }
    double sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < job->columns; i += BLOCK) {
            int64_t part = job->columns - i < BLOCK ? job->columns - i : BLOCK;
            tk_vec_convert(job->dtype, TK_FLOAT32, tk_row_at(job->dtype, x, i), wide, part);
            if (pass == 1) {
                sum += (double)table->exp_shifted(wide, best, NULL, part);
                continue;
            }
            float value = table->block_f32[TK_VEC_RMAX](wide, part);
            best = value > best || value != value ? value : best;
            if (best != best) return (double)best;
        }
    return isinf(best) ? (double)best : (double)best + log(sum);
}

static void loss_rows(void *arg, int64_t begin, int64_t end, int worker) {
    entropy_job *job = arg;
    bool wide = job->dtype == TK_FLOAT64;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        double lse = row_lse(job, tk_row_at(job->dtype, job->x, row * job->columns)), chosen = 0;
        if (in_range(job, row))
            chosen = logit(job, row);
        else
            note_bad_row(job, row);
        if (wide) {
            ((double *)job->loss)[row] = lse - chosen;
            if (job->lse) ((double *)job->lse)[row] = lse;
        } else {
            ((float *)job->loss)[row] = (float)(lse - chosen);
            if (job->lse) ((float *)job->lse)[row] = (float)lse;
        }
    }
}

int64_t tk_cpu_cross_entropy(tk_dtype dtype, const void *x, const int64_t *targets, void *loss,
                             void *lse, int64_t rows, int64_t columns) {
    assert(tk_dtype_is_float(dtype));
    entropy_job job = {.dtype = dtype,
                       .x = x,
                       .targets = targets,
                       .loss = loss,
                       .lse = lse,
                       .columns = columns,
                       .bad_row = INT64_MAX};
    tk_parallel_for(rows, tk_row_grain(columns), loss_rows, &job);
    return job.bad_row == INT64_MAX ? -1 : job.bad_row;
}

/* What exp(x - lse) of a row sums to: 1 but for the rounding of lse, which counts where that is
 * large. */
#define LARGE_LSE 64

static float row_sum(const entropy_job *job, int64_t row, float lse) {
    float wide[BLOCK];
    double sum = 0;
    if (fabsf(lse) <= LARGE_LSE) return 1;
    for (int64_t i = 0; i < job->columns; i += BLOCK) {
        int64_t part = job->columns - i < BLOCK ? job->columns - i : BLOCK;
        const void *at = tk_row_at(job->dtype, job->x, row * job->columns + i);
        sum += (double)tk_vec_table_get()->exp_shifted(tk_row_floats(job->dtype, at, part, wide),
                                                       lse, NULL, part);
    }
    return (float)sum;
}

static void gradient_row(const entropy_job *job, int64_t row) {
    const tk_vec_table *table = tk_vec_table_get();
    float lse = ((const float *)job->lse_in)[row], scale = ((const float *)job->dloss)[row];
    float wide[BLOCK], sum = row_sum(job, row, lse);
    int64_t target = in_range(job, row) ? job->targets[row] : -1;
    for (int64_t i = 0; i < job->columns; i += BLOCK) {
        int64_t part = job->columns - i < BLOCK ? job->columns - i : BLOCK;
        const void *at = tk_row_at(job->dtype, job->x, row * job->columns + i);
        table->exp_shifted(tk_row_floats(job->dtype, at, part, wide), lse, wide, part);
        if (sum != 1) table->binary_f32[TK_VEC_DIV][TK_VEC_VS](wide, &sum, wide, part);
        if (target >= i && target < i + part) wide[target - i] -= 1.0f;
        table->binary_f32[TK_VEC_MUL][TK_VEC_VS](wide, &scale, wide, part);
        tk_vec_convert(TK_FLOAT32, job->dtype, wide,
                       tk_row_out(job->dtype, job->dx, row * job->columns + i), part);
    }
}

static void gradient_row_f64(const entropy_job *job, int64_t row) {
    const double *x = (const double *)job->x + row * job->columns;
    double *dx = (double *)job->dx + row * job->columns;
    double lse = ((const double *)job->lse_in)[row], scale = ((const double *)job->dloss)[row];
    bool is_large = !(fabs(lse) <= LARGE_LSE);
    double sum = is_large ? 0 : 1;
    for (int64_t i = 0; is_large && i < job->columns; i++) sum += exp(x[i] - lse);
    for (int64_t i = 0; i < job->columns; i++)
        dx[i] = (exp(x[i] - lse) / sum - (i == job->targets[row] ? 1 : 0)) * scale;
}

static void gradient_rows(void *arg, int64_t begin, int64_t end, int worker) {
    const entropy_job *job = arg;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        if (job->dtype == TK_FLOAT64)
            gradient_row_f64(job, row);
        else
            gradient_row(job, row);
    }
}

void tk_cpu_cross_entropy_backward(tk_dtype dtype, const void *x, const int64_t *targets,
                                   const void *lse, const void *dloss, void *dx, int64_t rows,
                                   int64_t columns) {
    assert(tk_dtype_is_float(dtype));
    entropy_job job = {.dtype = dtype,
                       .x = x,
                       .targets = targets,
                       .lse_in = lse,
                       .dloss = dloss,
                       .dx = dx,
                       .columns = columns};
    tk_parallel_for(rows, tk_row_grain(columns), gradient_rows, &job);
}
