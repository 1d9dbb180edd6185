/* Row functions that are more than a sum: argmax, logsumexp, softmax, cumulative sum.
 *
 * A row of halves is converted to floats in blocks; a softmax row longer than a block is then
 * converted again in each pass, which costs less than a buffer that leaves the cache. Softmax takes
 * three passes (maximum, exponentials with their sum, scaling); a row that does not fit the
 * second-level cache pays the memory three times and still computes each exponential once.
 *
 * f64 goes through libm in plain loops: it serves gradient checks. */
#include <assert.h>
#include <math.h>

#include "base/pool.h"
#include "cpu/vec_reduce.h"
#include "cpu/vec_table.h"

#define BLOCK TK_REDUCE_BLOCK
#define PARALLEL_GRAIN 16384

typedef struct row_job {
    tk_dtype dtype;
    const void *x, *y;
    int64_t x_stride;
    void *out;
    int64_t out_stride;
    int64_t columns;
    bool least;
} row_job;

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

static const void *element(const void *x, int64_t index, tk_dtype dtype) {
    return (const char *)x + index * (int64_t)tk_dtype_size(dtype);
}
static void *element_out(void *x, int64_t index, tk_dtype dtype) {
    return (char *)x + index * (int64_t)tk_dtype_size(dtype);
}

static void for_rows(int64_t rows, int64_t columns, tk_loop_body body, void *job) {
    tk_parallel_for(rows, PARALLEL_GRAIN / (columns + 1) + 1, body, job);
}

/* `count` elements of the row from `first` on as floats: where they are, or converted into `wide`.
 */
static const float *as_floats(tk_dtype dtype, const void *row, int64_t first, int64_t count,
                              float *wide) {
    if (dtype == TK_FLOAT32) return (const float *)row + first;
    tk_vec_convert(dtype, TK_FLOAT32, element(row, first, dtype), wide, count);
    return wide;
}

static float row_max(tk_dtype dtype, const void *row, int64_t columns) {
    float wide[BLOCK], best = -INFINITY;
    tk_vec_block_f32_fn *block_max = tk_vec_table_get()->block_f32[TK_VEC_RMAX];
    for (int64_t i = 0; i < columns; i += BLOCK) {
        int64_t part = lesser(columns - i, BLOCK);
        float value = block_max(as_floats(dtype, row, i, part, wide), part);
        best = value > best || value != value ? value : best;
        if (best != best) break;
    }
    return best;
}

/* First index of the greatest (or, by negation, least) element of a row of floats or halves. */
static int64_t row_argbest_f32(const row_job *job, const void *row) {
    const tk_vec_table *table = tk_vec_table_get();
    float wide[BLOCK], best = 0;
    int64_t best_block = -1;
    for (int64_t i = 0; i < job->columns; i += BLOCK) {
        int64_t part = lesser(job->columns - i, BLOCK);
        const float *x = as_floats(job->dtype, row, i, part, wide);
        float value = table->block_f32[job->least ? TK_VEC_RMIN : TK_VEC_RMAX](x, part);
        bool better =
            best_block < 0 || value != value || (job->least ? value < best : value > best);
        if (!better) continue;
        best = value;
        best_block = i;
        if (best != best) break;
    }
    int64_t part = lesser(job->columns - best_block, BLOCK);
    const float *x = as_floats(job->dtype, row, best_block, part, wide);
    return best_block + table->find_f32(x, best, part);
}

#define ARGBEST(name, type)                                                                        \
    static int64_t argbest_##name(const row_job *job, const void *row) {                           \
        const type *x = row;                                                                       \
        int64_t best = 0;                                                                          \
        for (int64_t i = 1; i < job->columns && x[best] == x[best]; i++) {                         \
            bool better = job->least ? x[i] < x[best] : x[i] > x[best];                            \
            if (better || x[i] != x[i]) best = i;                                                  \
        }                                                                                          \
        return best;                                                                               \
    }
ARGBEST(u8, uint8_t)
ARGBEST(u16, uint16_t)
ARGBEST(u32, uint32_t)
ARGBEST(u64, uint64_t)
ARGBEST(i8, int8_t)
ARGBEST(i16, int16_t)
ARGBEST(i32, int32_t)
ARGBEST(i64, int64_t)
ARGBEST(f64, double)

static int64_t row_argbest(const row_job *job, const void *row) {
    switch (job->dtype) {
    case TK_BOOL:
    case TK_UINT8:
        return argbest_u8(job, row);
    case TK_UINT16:
        return argbest_u16(job, row);
    case TK_UINT32:
        return argbest_u32(job, row);
    case TK_UINT64:
        return argbest_u64(job, row);
    case TK_INT8:
        return argbest_i8(job, row);
    case TK_INT16:
        return argbest_i16(job, row);
    case TK_INT32:
        return argbest_i32(job, row);
    case TK_INT64:
        return argbest_i64(job, row);
    case TK_FLOAT64:
        return argbest_f64(job, row);
    default:
        return row_argbest_f32(job, row);
    }
}
static void argbest_rows(void *arg, int64_t begin, int64_t end, int worker) {
    const row_job *job = arg;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        ((int64_t *)job->out)[row] =
            row_argbest(job, element(job->x, row * job->x_stride, job->dtype));
}

void tk_argmax_rows(tk_dtype dtype, const void *x, int64_t rows, int64_t columns,
                    int64_t row_stride, int64_t *out) {
    assert((columns >= 1 || rows == 0) && dtype != TK_COMPLEX64);
    row_job job = {dtype, x, NULL, row_stride, out, 1, columns, false};
    for_rows(rows, columns, argbest_rows, &job);
}
void tk_argmin_rows(tk_dtype dtype, const void *x, int64_t rows, int64_t columns,
                    int64_t row_stride, int64_t *out) {
    assert((columns >= 1 || rows == 0) && dtype != TK_COMPLEX64);
    row_job job = {dtype, x, NULL, row_stride, out, 1, columns, true};
    for_rows(rows, columns, argbest_rows, &job);
}

/* Sum of e^(x - shift); where `out` is not NULL (f32 rows only) the exponentials are kept there. */
static float row_exp_sum(tk_dtype dtype, const void *row, float shift, float *out,
                         int64_t columns) {
    float wide[BLOCK];
    double sum = 0;
    for (int64_t i = 0; i < columns; i += BLOCK) {
        int64_t part = lesser(columns - i, BLOCK);
        const float *x = as_floats(dtype, row, i, part, wide);
        sum += (double)tk_vec_table_get()->exp_shifted(x, shift, out ? out + i : NULL, part);
    }
    return (float)sum;
}

static float logsumexp_row(tk_dtype dtype, const void *row, int64_t columns) {
    float best = row_max(dtype, row, columns);
    if (!(fabsf(best) < INFINITY)) return best;
    return best + logf(row_exp_sum(dtype, row, best, NULL, columns));
}

static double row_max_f64(const double *x, int64_t columns) {
    double best = -INFINITY;
    for (int64_t i = 0; i < columns && best == best; i++)
        best = x[i] > best || x[i] != x[i] ? x[i] : best;
    return best;
}
static double logsumexp_row_f64(const double *x, int64_t columns) {
    double best = row_max_f64(x, columns), sum = 0;
    if (!(fabs(best) < INFINITY)) return best;
    for (int64_t i = 0; i < columns; i++) sum += exp(x[i] - best);
    return best + log(sum);
}

static void logsumexp_rows(void *arg, int64_t begin, int64_t end, int worker) {
    const row_job *job = arg;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const void *x = element(job->x, row * job->x_stride, job->dtype);
        if (job->dtype == TK_FLOAT64) {
            ((double *)job->out)[row] = logsumexp_row_f64(x, job->columns);
            continue;
        }
        float result = logsumexp_row(job->dtype, x, job->columns);
        tk_vec_convert(TK_FLOAT32, job->dtype, &result, element_out(job->out, row, job->dtype), 1);
    }
}

void tk_logsumexp_rows(tk_dtype dtype, const void *x, int64_t rows, int64_t columns,
                       int64_t row_stride, void *out) {
    assert(tk_dtype_is_float(dtype));
    row_job job = {dtype, x, NULL, row_stride, out, 1, columns, false};
    for_rows(rows, columns, logsumexp_rows, &job);
}

static void softmax_row_f32(const float *x, float *out, int64_t columns) {
    const tk_vec_table *table = tk_vec_table_get();
    float best = row_max(TK_FLOAT32, x, columns);
    float scale = 1.0f / row_exp_sum(TK_FLOAT32, x, best, out, columns);
    table->binary_f32[TK_VEC_MUL][TK_VEC_VS](out, &scale, out, columns);
}

/* Exponentials are computed twice, so that none is rounded to a half before it is scaled. */
static void softmax_row_half(tk_dtype dtype, const uint16_t *x, uint16_t *out, int64_t columns) {
    const tk_vec_table *table = tk_vec_table_get();
    float wide[BLOCK];
    float best = row_max(dtype, x, columns);
    float scale = 1.0f / row_exp_sum(dtype, x, best, NULL, columns);
    for (int64_t i = 0; i < columns; i += BLOCK) {
        int64_t part = lesser(columns - i, BLOCK);
        tk_vec_convert(dtype, TK_FLOAT32, x + i, wide, part);
        table->exp_shifted(wide, best, wide, part);
        table->binary_f32[TK_VEC_MUL][TK_VEC_VS](wide, &scale, wide, part);
        tk_vec_convert(TK_FLOAT32, dtype, wide, out + i, part);
    }
}

static void softmax_row_f64(const double *x, double *out, int64_t columns) {
    double best = row_max_f64(x, columns), sum = 0;
    for (int64_t i = 0; i < columns; i++) sum += out[i] = exp(x[i] - best);
    for (int64_t i = 0; i < columns; i++) out[i] /= sum;
}

static void softmax_rows(void *arg, int64_t begin, int64_t end, int worker) {
    const row_job *job = arg;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const void *x = element(job->x, row * job->x_stride, job->dtype);
        void *out = element_out(job->out, row * job->out_stride, job->dtype);
        if (job->dtype == TK_FLOAT64)
            softmax_row_f64(x, out, job->columns);
        else if (job->dtype == TK_FLOAT32)
            softmax_row_f32(x, out, job->columns);
        else
            softmax_row_half(job->dtype, x, out, job->columns);
    }
}

void tk_softmax_rows(tk_dtype dtype, const void *x, int64_t x_stride, void *out, int64_t out_stride,
                     int64_t rows, int64_t columns) {
    assert(tk_dtype_is_float(dtype));
    row_job job = {dtype, x, NULL, x_stride, out, out_stride, columns, false};
    for_rows(rows, columns, softmax_rows, &job);
}

/* normalize() with mean s and inverse 1 is dy - s, times y as its weight. */
static void softmax_backward_row(tk_dtype dtype, const void *y, const void *dy, void *dx,
                                 int64_t columns) {
    const tk_vec_table *table = tk_vec_table_get();
    float wide_y[BLOCK], wide_dy[BLOCK], result[BLOCK];
    double dot = 0;
    for (int64_t i = 0; i < columns; i += BLOCK) {
        int64_t part = lesser(columns - i, BLOCK);
        dot += (double)table->dot(as_floats(dtype, y, i, part, wide_y),
                                  as_floats(dtype, dy, i, part, wide_dy), part);
    }
    tk_vec_row_stat stat = {(float)dot, 0.0f, 1.0f};
    for (int64_t i = 0; i < columns; i += BLOCK) {
        int64_t part = lesser(columns - i, BLOCK);
        table->normalize(as_floats(dtype, dy, i, part, wide_dy), stat,
                         as_floats(dtype, y, i, part, wide_y), NULL, result, part);
        tk_vec_convert(TK_FLOAT32, dtype, result, element_out(dx, i, dtype), part);
    }
}
static void softmax_backward_row_f64(const double *y, const double *dy, double *dx,
                                     int64_t columns) {
    double dot = 0;
    for (int64_t i = 0; i < columns; i++) dot += y[i] * dy[i];
    for (int64_t i = 0; i < columns; i++) dx[i] = y[i] * (dy[i] - dot);
}

static void softmax_backward_rows(void *arg, int64_t begin, int64_t end, int worker) {
    const row_job *job = arg;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const void *y = element(job->y, row * job->columns, job->dtype);
        const void *dy = element(job->x, row * job->columns, job->dtype);
        void *dx = element_out(job->out, row * job->columns, job->dtype);
        if (job->dtype == TK_FLOAT64)
            softmax_backward_row_f64(y, dy, dx, job->columns);
        else
            softmax_backward_row(job->dtype, y, dy, dx, job->columns);
    }
}

void tk_softmax_backward_rows(tk_dtype dtype, const void *y, const void *dy, void *dx, int64_t rows,
                              int64_t columns) {
    assert(tk_dtype_is_float(dtype));
    row_job job = {dtype, dy, y, columns, dx, columns, columns, false};
    for_rows(rows, columns, softmax_backward_rows, &job);
}

static void cumsum_row_float(tk_dtype dtype, const void *x, void *out, int64_t columns) {
    float wide[BLOCK];
    double sum = 0;
    for (int64_t i = 0; i < columns; i += BLOCK) {
        int64_t part = lesser(columns - i, BLOCK);
        const float *at = as_floats(dtype, x, i, part, wide);
        for (int64_t j = 0; j < part; j++) wide[j] = (float)(sum += (double)at[j]);
        tk_vec_convert(TK_FLOAT32, dtype, wide, element_out(out, i, dtype), part);
    }
}

#define CUMSUM(name, type, accumulator)                                                            \
    static void cumsum_row_##name(const type *x, type *out, int64_t columns) {                     \
        accumulator sum = 0;                                                                       \
        for (int64_t i = 0; i < columns; i++) {                                                    \
            sum += (accumulator)x[i];                                                              \
            out[i] = (type)sum;                                                                    \
        }                                                                                          \
    }
CUMSUM(8, uint8_t, uint8_t)
CUMSUM(16, uint16_t, uint16_t)
CUMSUM(32, uint32_t, uint32_t)
CUMSUM(64, uint64_t, uint64_t)
CUMSUM(f64, double, double)

static void cumsum_rows(void *arg, int64_t begin, int64_t end, int worker) {
    const row_job *job = arg;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const void *x = element(job->x, row * job->x_stride, job->dtype);
        void *out = element_out(job->out, row * job->out_stride, job->dtype);
        if (job->dtype == TK_FLOAT64)
            cumsum_row_f64(x, out, job->columns);
        else if (tk_dtype_is_float(job->dtype))
            cumsum_row_float(job->dtype, x, out, job->columns);
        else if (tk_dtype_size(job->dtype) == 1)
            cumsum_row_8(x, out, job->columns);
        else if (tk_dtype_size(job->dtype) == 2)
            cumsum_row_16(x, out, job->columns);
        else if (tk_dtype_size(job->dtype) == 4)
            cumsum_row_32(x, out, job->columns);
        else
            cumsum_row_64(x, out, job->columns);
    }
}

void tk_cumsum_rows(tk_dtype dtype, const void *x, int64_t x_stride, void *out, int64_t out_stride,
                    int64_t rows, int64_t columns) {
    assert(tk_dtype_is_float(dtype) || tk_dtype_is_integer(dtype));
    row_job job = {dtype, x, NULL, x_stride, out, out_stride, columns, false};
    for_rows(rows, columns, cumsum_rows, &job);
}
