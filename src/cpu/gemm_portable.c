/* Products of any type and any strides by plain loops: integers modulo 2^n, and floats and complex
 * that nothing faster can take. A row of C is summed 256 columns at a time in the accumulator type,
 * so that the inner loop runs along a row of b and C is written once. */
#include <assert.h>
#include <math.h>

#include "cpu/gemm_kernel.h"

#define COLUMNS 256

#define INTEGER_PRODUCT(type, wide)                                                                \
    static void product_##type(const tk_gemm_one *x) {                                             \
        const type *a = x->a, *b = x->b;                                                           \
        wide alpha = (wide)llrint(x->alpha), beta = (wide)llrint(x->beta), sum[COLUMNS];           \
        for (int64_t i = 0; i < x->m; i++)                                                         \
            for (int64_t first = 0; first < x->n; first += COLUMNS) {                              \
                int64_t count = x->n - first < COLUMNS ? x->n - first : COLUMNS;                   \
                for (int64_t j = 0; j < count; j++) sum[j] = 0;                                    \
                for (int64_t p = 0; p < x->k; p++) {                                               \
                    wide scale = (wide)a[i * x->a_row + p * x->a_column];                          \
                    const type *row = b + p * x->b_row + first * x->b_column;                      \
                    for (int64_t j = 0; j < count; j++)                                            \
                        sum[j] += scale * (wide)row[j * x->b_column];                              \
                }                                                                                  \
                type *c = (type *)x->c + i * x->c_row + first;                                     \
                for (int64_t j = 0; j < count; j++)                                                \
                    c[j] = (type)(alpha * sum[j] + (beta ? beta * (wide)c[j] : 0));                \
            }                                                                                      \
    }
INTEGER_PRODUCT(uint8_t, uint32_t)
INTEGER_PRODUCT(uint16_t, uint32_t)
INTEGER_PRODUCT(uint32_t, uint32_t)
INTEGER_PRODUCT(uint64_t, uint64_t)
INTEGER_PRODUCT(int8_t, uint32_t)
INTEGER_PRODUCT(int16_t, uint32_t)
INTEGER_PRODUCT(int32_t, uint32_t)
INTEGER_PRODUCT(int64_t, uint64_t)

#define FLOAT_PRODUCT(type)                                                                        \
    static void product_##type(const tk_gemm_one *x) {                                             \
        const type *a = x->a, *b = x->b;                                                           \
        type alpha = (type)x->alpha, beta = (type)x->beta, sum[COLUMNS];                           \
        for (int64_t i = 0; i < x->m; i++)                                                         \
            for (int64_t first = 0; first < x->n; first += COLUMNS) {                              \
                int64_t count = x->n - first < COLUMNS ? x->n - first : COLUMNS;                   \
                for (int64_t j = 0; j < count; j++) sum[j] = 0;                                    \
                for (int64_t p = 0; p < x->k; p++) {                                               \
                    type scale = a[i * x->a_row + p * x->a_column];                                \
                    const type *row = b + p * x->b_row + first * x->b_column;                      \
                    for (int64_t j = 0; j < count; j++) sum[j] += scale * row[j * x->b_column];    \
                }                                                                                  \
                type *c = (type *)x->c + i * x->c_row + first;                                     \
                for (int64_t j = 0; j < count; j++)                                                \
                    c[j] = alpha * sum[j] + (beta != 0 ? beta * c[j] : 0);                         \
            }                                                                                      \
    }
FLOAT_PRODUCT(float)
FLOAT_PRODUCT(double)

/* Complex numbers as pairs of floats: C's own product would call a function that mends infinities.
 */
static void product_complex(const tk_gemm_one *x) {
    const float *a = x->a, *b = x->b;
    float alpha = (float)x->alpha, beta = (float)x->beta;
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            float real = 0, imaginary = 0;
            for (int64_t p = 0; p < x->k; p++) {
                const float *left = a + 2 * (i * x->a_row + p * x->a_column);
                const float *right = b + 2 * (p * x->b_row + j * x->b_column);
                real += left[0] * right[0] - left[1] * right[1];
                imaginary += left[0] * right[1] + left[1] * right[0];
            }
            float *c = (float *)x->c + 2 * (i * x->c_row + j);
            c[0] = alpha * real + (beta != 0 ? beta * c[0] : 0);
            c[1] = alpha * imaginary + (beta != 0 ? beta * c[1] : 0);
        }
}

void tk_gemm_portable(tk_dtype dtype, const tk_gemm_one *product) {
    switch (dtype) {
    case TK_UINT8:
        product_uint8_t(product);
        return;
    case TK_UINT16:
        product_uint16_t(product);
        return;
    case TK_UINT32:
        product_uint32_t(product);
        return;
    case TK_UINT64:
        product_uint64_t(product);
        return;
    case TK_INT8:
        product_int8_t(product);
        return;
    case TK_INT16:
        product_int16_t(product);
        return;
    case TK_INT32:
        product_int32_t(product);
        return;
    case TK_INT64:
        product_int64_t(product);
        return;
    case TK_FLOAT32:
        product_float(product);
        return;
    case TK_FLOAT64:
        product_double(product);
        return;
    case TK_COMPLEX64:
        product_complex(product);
        return;
    default:
        assert(false);
    }
}
