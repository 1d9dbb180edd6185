/* f16 and bf16 products: blocks of A and B are converted to f32 in a buffer that stays in the
 * second-level cache, multiplied by an f32 product, summed over k in f32, rounded once into C.
 *
 * A block is at most 256 rows of A, 512 of k and 256 columns of B; with few rows of A (generation,
 * one token at a time) the work is reading B, so its blocks are narrower. Rejected: converting
 * whole operands first, which triples the memory of a model in use. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cpu/gemm_kernel.h"
#include "cpu/least.h"
#include "cpu/vec.h"

#define BLOCK_M 256
#define BLOCK_K 512
#define BLOCK_N 256
#define BLOCK_N_THIN 64

/* A block of an operand as floats; its strides are set so that a line of the operand is contiguous.
 */
static void widen_block(tk_dtype dtype, const uint16_t *x, int64_t row, int64_t column,
                        int64_t rows, int64_t columns, float *out, int64_t *out_row,
                        int64_t *out_column) {
    bool by_columns = column != 1 && row == 1;
    int64_t lines = by_columns ? columns : rows, length = by_columns ? rows : columns;
    int64_t line_stride = by_columns ? column : row, step = by_columns ? row : column;
    *out_row = by_columns ? 1 : columns;
    *out_column = by_columns ? rows : 1;
    for (int64_t i = 0; i < lines; i++) {
        const uint16_t *line = x + i * line_stride;
        if (step == 1) {
            tk_vec_convert(dtype, TK_FLOAT32, line, out + i * length, length);
            continue;
        }
        uint16_t gathered[BLOCK_K];
        for (int64_t j = 0; j < length; j++) gathered[j] = line[j * step];
        tk_vec_convert(dtype, TK_FLOAT32, gathered, out + i * length, length);
    }
}

typedef struct half_buffers {
    float *a, *b, *c;
} half_buffers;

static tk_status half_block(tk_dtype dtype, const tk_gemm_one *product,
                            const half_buffers *buffers) {
    tk_gemm_one block = {.m = product->m,
                         .n = product->n,
                         .c = buffers->c,
                         .c_row = product->n,
                         .alpha = product->alpha};
    for (int64_t p = 0; p < product->k || p == 0; p += BLOCK_K) {
        block.k = tk_least(product->k - p, BLOCK_K);
        widen_block(dtype, (const uint16_t *)product->a + p * product->a_column, product->a_row,
                    product->a_column, block.m, block.k, buffers->a, &block.a_row, &block.a_column);
        widen_block(dtype, (const uint16_t *)product->b + p * product->b_row, product->b_row,
                    product->b_column, block.k, block.n, buffers->b, &block.b_row, &block.b_column);
        block.a = buffers->a;
        block.b = buffers->b;
        TK_TRY(tk_gemm_f32(&block));
        block.beta = 1;
    }
    float old[BLOCK_N], beta = (float)product->beta;
    for (int64_t i = 0; i < product->m; i++) {
        float *sums = buffers->c + i * product->n;
        uint16_t *c = (uint16_t *)product->c + i * product->c_row;
        if (beta != 0.0f) {
            tk_vec_convert(dtype, TK_FLOAT32, c, old, product->n);
            tk_vec_axpby_f32(1.0f, sums, beta, old, sums, product->n);
        }
        tk_vec_convert(TK_FLOAT32, dtype, sums, c, product->n);
    }
    return TK_OK;
}

tk_status tk_gemm_half(tk_dtype dtype, const tk_gemm_one *product) {
    int64_t block_n = product->m <= 16 ? BLOCK_N_THIN : BLOCK_N;
    int64_t rows = tk_least(product->m, BLOCK_M), columns = tk_least(product->n, block_n);
    int64_t depth = tk_least(product->k, BLOCK_K);
    size_t count = (size_t)(rows * depth + depth * columns + rows * columns);
    float *memory = tk_malloc(count * sizeof(float));
    if (!memory) return tk_fail(TK_OUT_OF_MEMORY, "no memory for blocks of a product");
    half_buffers buffers = {memory, memory + rows * depth, memory + (rows + columns) * depth};
    tk_status status = TK_OK;
    for (int64_t row = 0; row < product->m && status == TK_OK; row += BLOCK_M)
        for (int64_t column = 0; column < product->n && status == TK_OK; column += block_n) {
            tk_gemm_one block =
                tk_gemm_part(product, dtype, row, tk_least(row + BLOCK_M, product->m), column,
                             tk_least(column + block_n, product->n));
            status = half_block(dtype, &block, &buffers);
        }
    tk_free(memory);
    return status;
}
