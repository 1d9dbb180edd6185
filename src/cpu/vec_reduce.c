/* Sums and friends over rows and over the outer axis, the same bits for any thread count.
 *
 * A long row is cut into segments of 16 blocks; a segment is one task, its blocks are combined in
 * pairs, and so are the segments of a row: one fixed binary tree, of which the thread count only
 * decides who computes which leaf. The outer axis is cut the same way into groups of 64 rows and
 * segments of 16 groups, and into tiles of columns that stay in the first-level cache.
 *
 * Rejected: compensated summation (three times the work for what pairs give within a few units),
 * and accumulating f32 in f64 (other devices could not give the same numbers). */
#include "cpu/vec_reduce.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/least.h"
#include "cpu/vec_table.h"

#define SEGMENT_BLOCKS 16
#define SEGMENT (SEGMENT_BLOCKS * TK_REDUCE_BLOCK)
#define TILE 1024            /* columns of an outer reduction at a time */
#define PARALLEL_GRAIN 32768 /* elements that are worth a task */

static bool is_half(tk_dtype dtype) { return dtype == TK_FLOAT16 || dtype == TK_BFLOAT16; }

static const void *element(const void *x, int64_t index, tk_dtype dtype) {
    return (const char *)x + index * (int64_t)tk_dtype_size(dtype);
}

/* Combines two partial results; SUMSQ of partial results is a sum. NaN wins in RMAX and RMIN. */
static double combine_f64(tk_vec_reduce_op op, double a, double b) {
    switch (op) {
    case TK_VEC_PROD:
        return a * b;
    case TK_VEC_RMAX:
        return a > b ? a : a != a ? a : b;
    case TK_VEC_RMIN:
        return a < b ? a : a != a ? a : b;
    default:
        return a + b;
    }
}
static float combine_f32(tk_vec_reduce_op op, float a, float b) {
    switch (op) {
    case TK_VEC_PROD:
        return a * b;
    case TK_VEC_RMAX:
        return a > b ? a : a != a ? a : b;
    case TK_VEC_RMIN:
        return a < b ? a : a != a ? a : b;
    default:
        return a + b;
    }
}

/* Combines count values in place, in pairs of neighbours until one is left. */
static float combine_pairs_f32(tk_vec_reduce_op op, float *values, int64_t count) {
    for (; count > 1; count = (count + 1) / 2) {
        for (int64_t i = 0; i < count / 2; i++)
            values[i] = combine_f32(op, values[2 * i], values[2 * i + 1]);
        if (count & 1) values[count / 2] = values[count - 1];
    }
    return values[0];
}
static double combine_pairs_f64(tk_vec_reduce_op op, double *values, int64_t count) {
    for (; count > 1; count = (count + 1) / 2) {
        for (int64_t i = 0; i < count / 2; i++)
            values[i] = combine_f64(op, values[2 * i], values[2 * i + 1]);
        if (count & 1) values[count / 2] = values[count - 1];
    }
    return values[0];
}

/* At most SEGMENT elements of f16, bf16 or f32. */
static float segment_f32(tk_vec_reduce_op op, tk_dtype dtype, const void *x, int64_t count) {
    float partial[SEGMENT_BLOCKS], wide[TK_REDUCE_BLOCK];
    tk_vec_block_f32_fn *block = tk_vec_table_get()->block_f32[op];
    int64_t blocks = 0;
    for (int64_t i = 0; i < count || blocks == 0; i += TK_REDUCE_BLOCK) {
        int64_t part = tk_least(count - i, TK_REDUCE_BLOCK);
        const void *at = element(x, i, dtype);
        if (is_half(dtype)) {
            tk_vec_convert(dtype, TK_FLOAT32, at, wide, part);
            at = wide;
        }
        partial[blocks++] = block(at, part);
    }
    return combine_pairs_f32(op, partial, blocks);
}
static double segment_f64(tk_vec_reduce_op op, const double *x, int64_t count) {
    double partial[SEGMENT_BLOCKS];
    tk_vec_block_f64_fn *block = tk_vec_table_get()->block_f64[op];
    int64_t blocks = 0;
    for (int64_t i = 0; i < count || blocks == 0; i += TK_REDUCE_BLOCK)
        partial[blocks++] = block(x + i, tk_least(count - i, TK_REDUCE_BLOCK));
    return combine_pairs_f64(op, partial, blocks);
}

/* Integers accumulate in 64 bits: sums and products modulo 2^64, of which the low bits are right
 * for every narrower result. out[c * out_step] takes in rows x columns elements; a row is reduced
 * to one result with out_step 0, and rows are added up with out_step 1. */
#define EACH(expression)                                                                           \
    for (int64_t r = 0; r < rows; r++)                                                             \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            uint64_t *to = out + c * out_step, value = (uint64_t)x[r * stride + c];                \
            *to = (expression);                                                                    \
        }                                                                                          \
    break;
#define INTEGERS(name, type, result)                                                               \
    static void name(tk_vec_reduce_op op, const type *x, int64_t rows, int64_t columns,            \
                     int64_t stride, uint64_t *out, int64_t out_step) {                            \
        switch (op) {                                                                              \
        case TK_VEC_SUM:                                                                           \
            EACH(*to + value)                                                                      \
        case TK_VEC_PROD:                                                                          \
            EACH(*to *value)                                                                       \
        case TK_VEC_SUMSQ:                                                                         \
            EACH(*to + value * value)                                                              \
        case TK_VEC_RMAX:                                                                          \
            EACH((result)value > (result)*to ? value : *to)                                        \
        default:                                                                                   \
            EACH((result)value < (result)*to ? value : *to)                                        \
        }                                                                                          \
    }
INTEGERS(integer_u8, uint8_t, uint64_t)
INTEGERS(integer_u16, uint16_t, uint64_t)
INTEGERS(integer_u32, uint32_t, uint64_t)
INTEGERS(integer_u64, uint64_t, uint64_t)
INTEGERS(integer_i8, int8_t, int64_t)
INTEGERS(integer_i16, int16_t, int64_t)
INTEGERS(integer_i32, int32_t, int64_t)
INTEGERS(integer_i64, int64_t, int64_t)

/* The result of nothing, as 64 bits. */
static uint64_t integer_identity(tk_vec_reduce_op op, tk_dtype dtype) {
    bool is_signed = tk_dtype_kind(dtype) == TK_KIND_SIGNED;
    int unused = 64 - 8 * (int)tk_dtype_size(dtype);
    int64_t greatest = INT64_MAX >> unused;
    if (op == TK_VEC_RMAX) return is_signed ? (uint64_t)(-greatest - 1) : 0;
    if (op != TK_VEC_RMIN) return op == TK_VEC_PROD;
    if (dtype == TK_BOOL) return 1;
    return is_signed ? (uint64_t)greatest : UINT64_MAX >> unused;
}

static void reduce_integers(tk_vec_reduce_op op, tk_dtype dtype, const void *x, int64_t rows,
                            int64_t columns, int64_t stride, uint64_t *out, int64_t out_step) {
    for (int64_t c = 0; c < (out_step ? columns : 1); c++) out[c] = integer_identity(op, dtype);
    switch (dtype) {
    case TK_BOOL:
    case TK_UINT8:
        integer_u8(op, x, rows, columns, stride, out, out_step);
        break;
    case TK_UINT16:
        integer_u16(op, x, rows, columns, stride, out, out_step);
        break;
    case TK_UINT32:
        integer_u32(op, x, rows, columns, stride, out, out_step);
        break;
    case TK_UINT64:
        integer_u64(op, x, rows, columns, stride, out, out_step);
        break;
    case TK_INT8:
        integer_i8(op, x, rows, columns, stride, out, out_step);
        break;
    case TK_INT16:
        integer_i16(op, x, rows, columns, stride, out, out_step);
        break;
    case TK_INT32:
        integer_i32(op, x, rows, columns, stride, out, out_step);
        break;
    case TK_INT64:
        integer_i64(op, x, rows, columns, stride, out, out_step);
        break;
    default:
        assert(false);
    }
}

bool tk_vec_reduce_has(tk_vec_reduce_op op, tk_dtype dtype) {
    (void)op;
    return dtype != TK_COMPLEX64;
}

typedef struct reduction {
    tk_vec_reduce_op op;
    tk_dtype dtype;
    const void *x;
    int64_t rows, columns, row_stride;
    int64_t segments; /* a row, or of the rows */
    void *partial;
    void *out;
} reduction;

static void row_segments(void *arg, int64_t begin, int64_t end, int worker) {
    const reduction *job = arg;
    (void)worker;
    for (int64_t task = begin; task < end; task++) {
        int64_t row = task / job->segments, first = task % job->segments * SEGMENT;
        bool whole = job->segments == 1;
        int64_t count = whole ? job->columns : tk_least(job->columns - first, SEGMENT);
        const void *x = element(job->x, row * job->row_stride + first, job->dtype);
        if (job->dtype == TK_FLOAT64) {
            ((double *)job->partial)[task] = segment_f64(job->op, x, count);
        } else if (tk_dtype_is_float(job->dtype)) {
            ((float *)job->partial)[task] = segment_f32(job->op, job->dtype, x, count);
        } else {
            reduce_integers(job->op, job->dtype, x, 1, count, 0, (uint64_t *)job->partial + task,
                            0);
        }
    }
}

static size_t result_bytes(tk_dtype dtype) {
    return tk_dtype_is_float(dtype) && dtype != TK_FLOAT64 ? 4 : 8;
}

static void combine_row(const reduction *job, int64_t row) {
    int64_t first = row * job->segments;
    if (job->dtype == TK_FLOAT64) {
        double *partial = (double *)job->partial + first;
        ((double *)job->out)[row] = combine_pairs_f64(job->op, partial, job->segments);
    } else {
        float *partial = (float *)job->partial + first;
        ((float *)job->out)[row] = combine_pairs_f32(job->op, partial, job->segments);
    }
}

static int64_t row_grain(int64_t columns) {
    return columns >= PARALLEL_GRAIN ? 1 : PARALLEL_GRAIN / (columns + 1) + 1;
}

tk_status tk_reduce_rows(tk_vec_reduce_op op, tk_dtype dtype, const void *x, int64_t rows,
                         int64_t columns, int64_t row_stride, void *out) {
    assert(tk_vec_reduce_has(op, dtype));
    bool splits = tk_dtype_is_float(dtype) && columns > SEGMENT;
    int64_t segments = splits ? tk_chunk_count(columns, SEGMENT) : 1;
    reduction job = {op, dtype, x, rows, columns, row_stride, segments, out, out};
    if (!tk_dtype_is_float(dtype)) {
        tk_parallel_for(rows, row_grain(columns), row_segments, &job);
        return TK_OK;
    }
    if (splits) {
        job.partial = tk_malloc((size_t)(rows * segments) * result_bytes(dtype));
        if (!job.partial)
            return tk_fail(TK_OUT_OF_MEMORY, "no memory to reduce %lld rows", (long long)rows);
    }
    tk_parallel_for(rows * segments, row_grain(tk_least(columns, SEGMENT)), row_segments, &job);
    for (int64_t row = 0; splits && row < rows; row++) combine_row(&job, row);
    if (splits) tk_free(job.partial);
    return TK_OK;
}

#define GROUPS 16 /* of TK_REDUCE_ROWS rows: a segment of the outer axis */
#define SEGMENT_ROWS (GROUPS * TK_REDUCE_ROWS)

static float identity_f32(tk_vec_reduce_op op) {
    if (op == TK_VEC_RMAX) return -INFINITY;
    if (op == TK_VEC_RMIN) return INFINITY;
    return op == TK_VEC_PROD ? 1.0f : 0.0f;
}

/* values[0] of `count` rows of `width` becomes their combination, in pairs of neighbours. */
static void combine_row_pairs_f32(tk_vec_reduce_op op, float *values, int64_t stride, int64_t count,
                                  int64_t width) {
    for (; count > 1; count = (count + 1) / 2) {
        for (int64_t i = 0; i < count / 2; i++) {
            const float *a = values + 2 * i * stride, *b = a + stride;
            float *to = values + i * stride;
            for (int64_t c = 0; c < width; c++) to[c] = combine_f32(op, a[c], b[c]);
        }
        if (count & 1)
            memmove(values + count / 2 * stride, values + (count - 1) * stride, (size_t)width * 4);
    }
}
static void combine_row_pairs_f64(tk_vec_reduce_op op, double *values, int64_t stride,
                                  int64_t count, int64_t width) {
    for (; count > 1; count = (count + 1) / 2) {
        for (int64_t i = 0; i < count / 2; i++) {
            const double *a = values + 2 * i * stride, *b = a + stride;
            double *to = values + i * stride;
            for (int64_t c = 0; c < width; c++) to[c] = combine_f64(op, a[c], b[c]);
        }
        if (count & 1)
            memmove(values + count / 2 * stride, values + (count - 1) * stride, (size_t)width * 8);
    }
}

/* Adds `rows` rows to the accumulator; half types are converted four rows at a time, which is how
 * the vector code groups them. */
static void outer_group_f32(const reduction *job, int64_t row, int64_t column, int64_t rows,
                            int64_t width, float *accumulator) {
    tk_vec_outer_f32_fn *outer = tk_vec_table_get()->outer_f32[job->op];
    const void *x = element(job->x, row * job->row_stride + column, job->dtype);
    if (job->dtype == TK_FLOAT32) {
        outer(x, job->row_stride, rows, width, accumulator);
        return;
    }
    float wide[4 * TILE];
    for (int64_t r = 0; r < rows; r += 4) {
        int64_t some = tk_least(4, rows - r);
        for (int64_t i = 0; i < some; i++)
            tk_vec_convert(job->dtype, TK_FLOAT32,
                           element(x, (r + i) * job->row_stride, job->dtype), wide + i * TILE,
                           width);
        outer(wide, TILE, some, width, accumulator);
    }
}

static void outer_tile_f32(const reduction *job, int64_t first_row, int64_t column, int64_t rows,
                           int64_t width, float *to) {
    float partial[GROUPS * TILE];
    int64_t groups = rows ? tk_chunk_count(rows, TK_REDUCE_ROWS) : 1;
    for (int64_t g = 0; g < groups; g++) {
        float *accumulator = partial + g * TILE;
        int64_t row = g * TK_REDUCE_ROWS;
        for (int64_t c = 0; c < width; c++) accumulator[c] = identity_f32(job->op);
        outer_group_f32(job, first_row + row, column, tk_least(TK_REDUCE_ROWS, rows - row), width,
                        accumulator);
    }
    combine_row_pairs_f32(job->op, partial, TILE, groups, width);
    memcpy(to, partial, (size_t)width * sizeof *to);
}
static void outer_tile_f64(const reduction *job, int64_t first_row, int64_t column, int64_t rows,
                           int64_t width, double *to) {
    double partial[GROUPS * TILE];
    int64_t groups = rows ? tk_chunk_count(rows, TK_REDUCE_ROWS) : 1;
    tk_vec_outer_f64_fn *outer = tk_vec_table_get()->outer_f64[job->op];
    for (int64_t g = 0; g < groups; g++) {
        double *accumulator = partial + g * TILE;
        int64_t row = g * TK_REDUCE_ROWS;
        const double *x = (const double *)job->x + (first_row + row) * job->row_stride + column;
        for (int64_t c = 0; c < width; c++) accumulator[c] = identity_f32(job->op);
        outer(x, job->row_stride, tk_least(TK_REDUCE_ROWS, rows - row), width, accumulator);
    }
    combine_row_pairs_f64(job->op, partial, TILE, groups, width);
    memcpy(to, partial, (size_t)width * sizeof *to);
}

static void outer_tasks(void *arg, int64_t begin, int64_t end, int worker) {
    const reduction *job = arg;
    (void)worker;
    int64_t tiles = tk_chunk_count(job->columns, TILE);
    for (int64_t task = begin; task < end; task++) {
        int64_t segment = task / tiles, column = task % tiles * TILE;
        int64_t row = segment * SEGMENT_ROWS;
        int64_t rows = tk_least(job->rows - row, SEGMENT_ROWS);
        int64_t width = tk_least(job->columns - column, TILE);
        int64_t to = segment * job->columns + column;
        if (job->dtype == TK_FLOAT64) {
            outer_tile_f64(job, row, column, rows, width, (double *)job->partial + to);
        } else {
            outer_tile_f32(job, row, column, rows, width, (float *)job->partial + to);
        }
    }
}

static void outer_integers(void *arg, int64_t begin, int64_t end, int worker) {
    const reduction *job = arg;
    (void)worker;
    for (int64_t c = begin; c < end; c += TILE)
        reduce_integers(job->op, job->dtype, element(job->x, c, job->dtype), job->rows,
                        tk_least(end - c, TILE), job->row_stride, (uint64_t *)job->out + c, 1);
}

tk_status tk_reduce_outer(tk_vec_reduce_op op, tk_dtype dtype, const void *x, int64_t rows,
                          int64_t columns, int64_t row_stride, void *out) {
    assert(tk_vec_reduce_has(op, dtype));
    int64_t segments = rows ? tk_chunk_count(rows, SEGMENT_ROWS) : 1;
    reduction job = {op, dtype, x, rows, columns, row_stride, segments, out, out};
    if (!tk_dtype_is_float(dtype)) {
        tk_parallel_for(columns, row_grain(rows), outer_integers, &job);
        return TK_OK;
    }
    size_t bytes = (size_t)columns * result_bytes(dtype);
    if (columns == 0) return TK_OK;
    if (segments > 1) job.partial = tk_malloc((size_t)segments * bytes);
    if (!job.partial)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to reduce %lld columns", (long long)columns);
    int64_t tiles = tk_chunk_count(columns, TILE);
    tk_parallel_for(tiles * segments,
                    row_grain(tk_least(rows, SEGMENT_ROWS) * tk_least(columns, TILE)), outer_tasks,
                    &job);
    if (segments == 1) return TK_OK;
    if (dtype == TK_FLOAT64)
        combine_row_pairs_f64(op, job.partial, columns, segments, columns);
    else
        combine_row_pairs_f32(op, job.partial, columns, segments, columns);
    memcpy(out, job.partial, bytes);
    tk_free(job.partial);
    return TK_OK;
}
