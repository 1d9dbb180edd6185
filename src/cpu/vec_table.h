/* The table that each variant of the vector code fills: what differs by instruction set and nothing
 * else. Contracts are those of vec.h and vec_reduce.h; callers other than src/cpu use those. */
#ifndef CPU_VEC_TABLE_H
#define CPU_VEC_TABLE_H

#include "cpu/vec.h"

/* Attention works on this many query columns at a time, or a multiple of it. */
#define TK_COLUMN_WIDTH 32

typedef void tk_vec_unary_fn(const void *x, void *out, int64_t count);
typedef void tk_vec_binary_fn(const void *a, const void *b, void *out, int64_t count);
typedef void tk_vec_compare_fn(const void *a, const void *b, uint8_t *out, int64_t count);
typedef float tk_vec_block_f32_fn(const float *x, int64_t count);
typedef double tk_vec_block_f64_fn(const double *x, int64_t count);
/* accumulator[c] = op over it and rows rows of x, which is rows x columns with a row stride. */
typedef void tk_vec_outer_f32_fn(const float *x, int64_t row_stride, int64_t rows, int64_t columns,
                                 float *accumulator);
typedef void tk_vec_outer_f64_fn(const double *x, int64_t row_stride, int64_t rows, int64_t columns,
                                 double *accumulator);

/* Statistics of one row that the normalisation kernels share: xhat = ((x - mean) - rest) * inverse.
 * `rest` is what rounding the mean to f32 lost: half a unit of 10000 is 5 % of a deviation of 0.01.
 */
typedef struct tk_vec_row_stat {
    float mean, rest, inverse;
} tk_vec_row_stat;

typedef struct tk_vec_table {
    const char *name;

    tk_vec_unary_fn *unary_f32[TK_VEC_UNARY_COUNT];
    tk_vec_unary_fn *unary_f64[TK_VEC_UNARY_COUNT]; /* NULL: libm */
    tk_vec_binary_fn *binary_f32[TK_VEC_BINARY_COUNT][TK_VEC_MODE_COUNT];
    tk_vec_binary_fn *binary_f64[TK_VEC_BINARY_COUNT][TK_VEC_MODE_COUNT]; /* POW NULL: libm */
    tk_vec_compare_fn *compare_f32[TK_VEC_COMPARE_COUNT][TK_VEC_MODE_COUNT];
    void (*axpby_f32)(float a, const float *x, float b, const float *y, float *out, int64_t count);
    void (*axpby_f64)(double a, const double *x, double b, const double *y, double *out,
                      int64_t count);
    void (*muladd_f32)(const float *a, const float *b, const float *c, float *out, int64_t count);
    void (*where_4)(const uint8_t *condition, const uint32_t *a, int64_t a_step, const uint32_t *b,
                    int64_t b_step, uint32_t *out, int64_t count);

    void (*f16_to_f32)(const uint16_t *x, float *out, int64_t count);
    void (*f32_to_f16)(const float *x, uint16_t *out, int64_t count);
    void (*bf16_to_f32)(const uint16_t *x, float *out, int64_t count);
    void (*f32_to_bf16)(const float *x, uint16_t *out, int64_t count);

    /* One block (at most TK_REDUCE_BLOCK elements) over 32 lanes. */
    tk_vec_block_f32_fn *block_f32[TK_VEC_REDUCE_COUNT];
    tk_vec_block_f64_fn *block_f64[TK_VEC_REDUCE_COUNT];
    tk_vec_outer_f32_fn *outer_f32[TK_VEC_REDUCE_COUNT];
    tk_vec_outer_f64_fn *outer_f64[TK_VEC_REDUCE_COUNT];
    float (*dot)(const float *a, const float *b, int64_t count);
    /* sums[0] = sum of x - mean, sums[1] = sum of (x - mean)^2. */
    void (*centered_moments)(const float *x, float mean, float *sums, int64_t count);
    /* out = e^(x - shift), x <= shift, and its sum; out NULL gives the sum only. */
    float (*exp_shifted)(const float *x, float shift, float *out, int64_t count);
    /* Columns of scores s[keys][width] (width a multiple of TK_COLUMN_WIDTH), one step of online
     * softmax: max and sum are brought up to date, s becomes e^(s - max), and fade the factor
     * by which what was summed before shrinks. A maximum of -inf counts as 0 in the exponents. */
    void (*softmax_columns)(float *s, int64_t keys, int64_t width, float *max, float *sum,
                            float *fade);
    /* s becomes p = e^(s - lse), dp becomes p * (dp - delta); lse and delta by column. */
    void (*softmax_columns_backward)(float *s, float *dp, int64_t keys, int64_t width,
                                     const float *lse, const float *delta);
    /* out[r] = dot of q and row r of x. */
    void (*dot_rows)(const float *q, const float *x, int64_t stride, int64_t rows, int64_t count,
                     float *out);
    /* Codes (graph/quant.h) of one group to floats: scale * value + bias. `count` is a multiple
     * of 16; up to three bytes past the codes are read. */
    void (*unpack_affine)(const uint8_t *codes, int64_t bits, float scale, float bias, float *out,
                          int64_t count);
    void (*unpack_fp4)(const uint8_t *codes, float scale, float *out, int64_t count);
    void (*unpack_fp8)(const uint8_t *codes, float scale, float *out, int64_t count);
    /* Index of the first element equal to `value`, or of the first NaN if value is NaN; -1: none.
     */
    int64_t (*find_f32)(const float *x, float value, int64_t count);

    /* out = xhat [* weight] [+ bias]; weight, bias may be NULL. */
    void (*normalize)(const float *x, tk_vec_row_stat stat, const float *weight, const float *bias,
                      float *out, int64_t count);
    /* sums[0] = sum of g, sums[1] = sum of g * xhat, g = dy [* weight]. */
    void (*normalize_sums)(const float *x, tk_vec_row_stat stat, const float *dy,
                           const float *weight, float *sums, int64_t count);
    /* dx = inverse * (g - shift - xhat * slope). */
    void (*normalize_backward)(const float *x, tk_vec_row_stat stat, const float *dy,
                               const float *weight, float shift, float slope, float *dx,
                               int64_t count);
    /* dweight += dy * xhat, dbias += dy; either may be NULL. */
    void (*normalize_weights)(const float *x, tk_vec_row_stat stat, const float *dy, float *dweight,
                              float *dbias, int64_t count);
} tk_vec_table;

extern const tk_vec_table tk_vec_table_base;
extern const tk_vec_table tk_vec_table_avx2;
extern const tk_vec_table tk_vec_table_avx512;

/* The table in use. */
const tk_vec_table *tk_vec_table_get(void);

#endif
