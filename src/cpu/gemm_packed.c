/* f32 products by Tiki's own tile kernels.
 *
 * Three loops around the tile: columns in blocks of 256, k in blocks of 384, rows by the tile. What
 * of b is used more than a few times, or does not lie in rows, is copied into panels as wide as a
 * tile (a block of b is at most 384 KiB and stays in the second-level cache). a is read in place: a
 * tile takes its rows by broadcast, so only their order in memory matters, and a panel is packed
 * where it runs across it or its rows fall into one set of the cache. Small products so do no
 * copying at all, which is what makes them fast.
 *
 * The last columns, fewer than a tile, meet a panel padded with zeros and a tile in a buffer. */
#include <emmintrin.h>
#include <string.h>
#include <xmmintrin.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cpu/gemm_kernel.h"
#include "cpu/least.h"
#include "cpu/vec.h"

#define BLOCK_K 384
#define BLOCK_N 256
/* Rows this far apart fall into one set of the first-level cache. */
#define PAGE_FLOATS 1024

const tk_gemm_kernels *tk_gemm_kernels_get(void) {
    static const tk_gemm_kernels *const kernels[TK_VEC_VARIANT_COUNT] = {
        [TK_VEC_BASE] = &tk_gemm_kernels_base,
        [TK_VEC_AVX2] = &tk_gemm_kernels_avx2,
        [TK_VEC_AVX512] = &tk_gemm_kernels_avx512,
    };
    return kernels[tk_vec_variant_in_use()];
}

/* Four rows of four floats, `stride` apart, to four rows `to_stride` apart, transposed. */
static void transpose_4(const float *from, int64_t stride, float *to, int64_t to_stride) {
    __m128 r0 = _mm_loadu_ps(from), r1 = _mm_loadu_ps(from + stride);
    __m128 r2 = _mm_loadu_ps(from + 2 * stride), r3 = _mm_loadu_ps(from + 3 * stride);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(to, r0);
    _mm_storeu_ps(to + to_stride, r1);
    _mm_storeu_ps(to + 2 * to_stride, r2);
    _mm_storeu_ps(to + 3 * to_stride, r3);
}

/* One panel: k rows of `width` (a multiple of 4) floats, of which `columns` come from b. */
static void pack_panel(int64_t k, int64_t columns, const float *b, int64_t row, int64_t column,
                       int64_t width, float *out) {
    int64_t p = 0;
    if (column == 1 && columns == width) {
        for (; p < k; p++) memcpy(out + p * width, b + p * row, (size_t)width * sizeof *out);
    } else if (row == 1 && columns == width) {
        for (; p + 4 <= k; p += 4)
            for (int64_t j = 0; j < width; j += 4)
                transpose_4(b + p + j * column, column, out + p * width + j, width);
    }
    for (; p < k; p++) {
        for (int64_t j = 0; j < columns; j++) out[p * width + j] = b[p * row + j * column];
        for (int64_t j = columns; j < width; j++) out[p * width + j] = 0.0f;
    }
}

typedef struct packed_job {
    const tk_gemm_one *product;
    const tk_gemm_kernels *kernels;
    bool pack_b, pack_a;
    float *b_panels; /* up to BLOCK_N / columns panels of `depth` rows, or NULL */
    int64_t depth;   /* the deepest block of k */
    int64_t k_begin, k_count;
    float beta; /* of this block of k */
} packed_job;

/* A tile whose columns run out: through a padded buffer. */
static void edge_tile(const packed_job *job, int rows, int64_t columns, const float *a,
                      int64_t a_row, int64_t a_column, const float *panel, float *c) {
    float buffer[TK_GEMM_MAX_ROWS * TK_GEMM_MAX_COLUMNS];
    int64_t width = job->kernels->columns, c_row = job->product->c_row;
    job->kernels->tile[rows](job->k_count, a, a_row, a_column, panel, width, buffer, width,
                             (float)job->product->alpha, 0.0f);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float *to = c + i * c_row + j;
            *to = buffer[i * width + j] + (job->beta != 0.0f ? *to * job->beta : 0.0f);
        }
}

/* The rows of a tile, element by element of k. Along the closer of the two strides: rows that fall
 * into one set of the cache are not to be visited in turns. */
static void pack_rows(int64_t k, int rows, const float *a, int64_t a_row, int64_t a_column,
                      float *out) {
    if (a_row > a_column) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t p = 0; p < k; p++) out[p * rows + i] = a[i * a_row + p * a_column];
        return;
    }
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < rows; i++) out[p * rows + i] = a[i * a_row + p * a_column];
}

/* All columns of a block for one tile's rows. */
static void row_of_tiles(const packed_job *job, int64_t row, int rows, int64_t column,
                         int64_t columns, const float *edge_panel) {
    const tk_gemm_one *product = job->product;
    int64_t width = job->kernels->columns, a_row = product->a_row, a_column = product->a_column;
    const float *a = (const float *)product->a + row * a_row + job->k_begin * a_column;
    float *c = (float *)product->c + row * product->c_row + column;
    float packed_a[TK_GEMM_MAX_ROWS * BLOCK_K];
    if (job->pack_a) {
        pack_rows(job->k_count, rows, a, a_row, a_column, packed_a);
        a = packed_a;
        a_row = 1;
        a_column = rows;
    }
    const float *b = (const float *)product->b + job->k_begin * product->b_row + column;
    int64_t j = 0;
    for (; j + width <= columns; j += width) {
        const float *panel = job->pack_b ? job->b_panels + j * job->depth : b + j;
        job->kernels->tile[rows](job->k_count, a, a_row, a_column, panel,
                                 job->pack_b ? width : product->b_row, c + j, product->c_row,
                                 (float)product->alpha, job->beta);
    }
    if (j < columns) edge_tile(job, rows, columns - j, a, a_row, a_column, edge_panel, c + j);
}

static void block_of_tiles(const packed_job *job, int64_t column, int64_t columns) {
    const tk_gemm_one *product = job->product;
    float edge_panel[TK_GEMM_MAX_COLUMNS * BLOCK_K];
    int64_t width = job->kernels->columns, whole = columns / width * width;
    const float *b =
        (const float *)product->b + job->k_begin * product->b_row + column * product->b_column;
    for (int64_t j = 0; job->pack_b && j < whole; j += width)
        pack_panel(job->k_count, width, b + j * product->b_column, product->b_row,
                   product->b_column, width, job->b_panels + j * job->depth);
    if (whole < columns)
        pack_panel(job->k_count, columns - whole, b + whole * product->b_column, product->b_row,
                   product->b_column, width, edge_panel);
    for (int64_t row = 0; row < product->m; row += job->kernels->rows) {
        int rows = (int)tk_least(product->m - row, job->kernels->rows);
        row_of_tiles(job, row, rows, column, columns, edge_panel);
    }
}

tk_status tk_gemm_packed(const tk_gemm_one *product) {
    packed_job job = {.product = product,
                      .kernels = tk_gemm_kernels_get(),
                      .depth = tk_least(product->k, BLOCK_K)};
    int64_t m = product->m, n = product->n, k = product->k;
    job.pack_b = product->b_column != 1 || (m > 4 * job.kernels->rows && job.depth * n > 8192);
    job.pack_a = (product->a_column != 1 || product->a_row % PAGE_FLOATS == 0) &&
                 n > 3 * job.kernels->columns;
    if (job.pack_b) {
        job.b_panels = tk_malloc((size_t)(job.depth * tk_least(n, BLOCK_N) + 1) * sizeof(float));
        if (!job.b_panels) return tk_fail(TK_OUT_OF_MEMORY, "no memory for panels of a product");
    }
    for (int64_t column = 0; column < n; column += BLOCK_N) {
        job.beta = (float)product->beta;
        for (int64_t p = 0; p < k || p == 0; p += BLOCK_K) {
            job.k_begin = p;
            job.k_count = tk_least(k - p, BLOCK_K);
            block_of_tiles(&job, column, tk_least(n - column, BLOCK_N));
            job.beta = 1.0f;
        }
    }
    tk_free(job.b_panels);
    return TK_OK;
}
