/* Strided copies: runs where both sides are dense, tiles where the source is transposed, elements
 * otherwise. Elements are moved as bits of 1, 2, 4 or 8 bytes, so NaN payloads survive.
 *
 * A tile is 32 by 32 elements, whole cache lines on both sides.
 * Rejected: one general element loop. Transposing a large matrix in it takes a cache miss an
 * element. */
#include "cpu/body_copy.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "base/pool.h"
#include "cpu/body_loop.h"
#include "cpu/least.h"
#include "cpu/vec.h"

#define COPY_GRAIN 65536
#define BLOCK 1024

#define SIZES(X)                                                                                   \
    X(1, uint8_t)                                                                                  \
    X(2, uint16_t)                                                                                 \
    X(4, uint32_t)                                                                                 \
    X(8, uint64_t)

#define COPY(bytes, type)                                                                          \
    static void copy_##bytes(char *to, int64_t to_stride, const char *from, int64_t from_stride,   \
                             int64_t count) {                                                      \
        for (int64_t i = 0; i < count; i++, to += to_stride, from += from_stride)                  \
            memcpy(to, from, bytes);                                                               \
    }                                                                                              \
    static void fill_##bytes(char *to, const char *from, int64_t count) {                          \
        type value;                                                                                \
        memcpy(&value, from, bytes);                                                               \
        for (int64_t i = 0; i < count; i++) memcpy(to + i * bytes, &value, bytes);                 \
    }
SIZES(COPY)

static void fill_run(size_t bytes, char *to, const char *from, int64_t count) {
    switch (bytes) {
#define FILL_CASE(bytes, type)                                                                     \
    case bytes:                                                                                    \
        fill_##bytes(to, from, count);                                                             \
        break;
        SIZES(FILL_CASE)
    default:
        assert(false);
    }
}

void tk_copy_run(size_t bytes, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                 int64_t count) {
    int64_t dense = (int64_t)bytes;
    if (to_stride == dense && from_stride == dense) {
        if (to != from) memcpy(to, from, (size_t)count * bytes);
        return;
    }
    if (to_stride == dense && from_stride == 0) {
        fill_run(bytes, to, from, count);
        return;
    }
    switch (bytes) {
#define COPY_CASE(bytes, type)                                                                     \
    case bytes:                                                                                    \
        copy_##bytes(to, to_stride, from, from_stride, count);                                     \
        break;
        SIZES(COPY_CASE)
    default:
        assert(false);
    }
}

/* ---- views ---- */

static void copy_part(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    tk_copy_run(*(const size_t *)arg, data[0], strides[0], data[1], strides[1], count);
}

/* The last two axes of `loop` are transposed: the source is dense along the outer one. */
typedef struct transposition {
    tk_loop outer; /* the other axes */
    size_t bytes;
    int64_t rows, columns; /* the destination is dense along columns, the source along rows */
    int64_t to_row, from_column;
    int64_t row_tiles;
} transposition;

/* A square of as many elements as a 16-byte vector has: after each round of interleaving the first
 * half of the vectors with the second, lanes have moved one bit of their index into the vector's
 * number. */
#define SQUARE(bytes, type, LANES, ROUNDS, LOW, HIGH)                                              \
    typedef type lanes_##bytes __attribute__((vector_size(16)));                                   \
    static void square_##bytes(char *to, int64_t to_row, const char *from, int64_t from_column) {  \
        lanes_##bytes v[LANES], w[LANES];                                                          \
        for (int i = 0; i < LANES; i++) memcpy(&v[i], from + i * from_column, 16);                 \
        for (int round = 0; round < ROUNDS; round++) {                                             \
            for (int i = 0; i < LANES / 2; i++) {                                                  \
                w[2 * i] = __builtin_shufflevector(v[i], v[i + LANES / 2], LOW);                   \
                w[2 * i + 1] = __builtin_shufflevector(v[i], v[i + LANES / 2], HIGH);              \
            }                                                                                      \
            memcpy(v, w, sizeof v);                                                                \
        }                                                                                          \
        for (int i = 0; i < LANES; i++) memcpy(to + i * to_row, &v[i], 16);                        \
    }
#define LOW_2 0, 2
#define HIGH_2 1, 3
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
SQUARE(1, uint8_t, 16, 4, LOW_16, HIGH_16)
SQUARE(2, uint16_t, 8, 3, LOW_8, HIGH_8)
SQUARE(4, uint32_t, 4, 2, LOW_4, HIGH_4)
SQUARE(8, uint64_t, 2, 1, LOW_2, HIGH_2)

/* The source's lines are fetched whole before anything is written: their distance is often a power
 * of two, where few of them stay in the cache. */
#define TILE_COPY(bytes, type)                                                                     \
    static void tile_##bytes(char *to, int64_t to_row, const char *from, int64_t from_column,      \
                             int64_t rows, int64_t columns) {                                      \
        type tile[TK_TILE][TK_TILE];                                                               \
        for (int64_t j = 0; j < columns; j++)                                                      \
            memcpy(tile[j], from + j * from_column, (size_t)rows * bytes);                         \
        const int64_t lanes = 16 / bytes;                                                          \
        int64_t i = 0;                                                                             \
        for (; i + lanes <= rows; i += lanes) {                                                    \
            int64_t j = 0;                                                                         \
            for (; j + lanes <= columns; j += lanes)                                               \
                square_##bytes(to + i * to_row + j * bytes, to_row, (const char *)&tile[j][i],     \
                               sizeof tile[0]);                                                    \
            for (; j < columns; j++)                                                               \
                for (int64_t k = i; k < i + lanes; k++)                                            \
                    memcpy(to + k * to_row + j * bytes, &tile[j][k], bytes);                       \
        }                                                                                          \
        for (; i < rows; i++)                                                                      \
            for (int64_t j = 0; j < columns; j++)                                                  \
                memcpy(to + i * to_row + j * bytes, &tile[j][i], bytes);                           \
    }
SIZES(TILE_COPY)

void tk_transpose_tile(size_t bytes, char *to, int64_t to_row, const char *from,
                       int64_t from_column, int64_t rows, int64_t columns) {
    assert(rows <= TK_TILE && columns <= TK_TILE);
    switch (bytes) {
#define TILE_CASE(bytes, type)                                                                     \
    case bytes:                                                                                    \
        tile_##bytes(to, to_row, from, from_column, rows, columns);                                \
        break;
        SIZES(TILE_CASE)
    default:
        assert(false);
    }
}

static void place(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    (void)strides;
    (void)count;
    memcpy(arg, data, 2 * sizeof *data);
}

static void transpose_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const transposition *t = arg;
    int64_t dense = (int64_t)t->bytes;
    for (int64_t task = begin; task < end; task++) {
        char *data[2];
        int64_t matrix = task / t->row_tiles, row = task % t->row_tiles * TK_TILE;
        tk_loop_range(&t->outer, matrix, matrix + 1, place, data);
        int64_t rows = tk_least(TK_TILE, t->rows - row);
        for (int64_t column = 0; column < t->columns; column += TK_TILE)
            tk_transpose_tile(t->bytes, data[0] + row * t->to_row + column * dense, t->to_row,
                              data[1] + row * dense + column * t->from_column, t->from_column, rows,
                              tk_least(TK_TILE, t->columns - column));
    }
}

/* The axis along which the source is dense, if that is another than the destination's; else -1. */
static int source_axis(const tk_loop *loop, int64_t bytes) {
    int inner = loop->rank - 1;
    if (loop->strides[0][inner] != bytes || loop->strides[1][inner] == bytes) return -1;
    for (int i = 0; i < inner; i++)
        if (loop->strides[1][i] == bytes) return i;
    return -1;
}

static void transpose(const tk_loop *loop, int axis, size_t bytes) {
    int inner = loop->rank - 1;
    transposition t = {.outer = *loop,
                       .bytes = bytes,
                       .rows = loop->shape[axis],
                       .columns = loop->shape[inner],
                       .to_row = loop->strides[0][axis],
                       .from_column = loop->strides[1][inner]};
    t.outer.size = loop->size / t.rows / t.columns;
    t.outer.shape[axis] = t.outer.shape[inner] = 1;
    tk_loop_collapse(&t.outer);
    t.row_tiles = (t.rows + TK_TILE - 1) / TK_TILE;
    int64_t task = TK_TILE * t.columns;
    tk_parallel_for(t.outer.size * t.row_tiles, 1 + COPY_GRAIN / task, transpose_part, &t);
}

void tk_copy_view(const tk_strided *from, const tk_strided *to) {
    assert(from->size == to->size);
    size_t bytes = tk_dtype_size(to->dtype);
    if (to->size == 0) return;
    tk_loop loop = tk_loop_over(to->rank, to->shape);
    tk_loop_add(&loop, to);
    tk_loop_add(&loop, from);
    tk_loop_collapse(&loop);
    int axis = source_axis(&loop, (int64_t)bytes);
    if (axis >= 0 && loop.shape[axis] >= 4 && loop.shape[loop.rank - 1] >= 4) {
        transpose(&loop, axis, bytes);
        return;
    }
    tk_loop_lengthen(&loop);
    tk_loop_each(&loop, COPY_GRAIN, copy_part, &bytes);
}

static void fill_part(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    size_t bytes = *(const size_t *)arg;
    tk_copy_run(bytes, data[0], strides[0], data[1], strides[1], count);
}

void tk_fill_view(const void *element, const tk_strided *to) {
    static const int64_t still[TK_AXES_MAX] = {0};
    size_t bytes = tk_dtype_size(to->dtype);
    uint64_t value = 0;
    memcpy(&value, element, bytes);
    tk_loop loop = tk_loop_over(to->rank, to->shape);
    tk_loop_add(&loop, to);
    tk_loop_add_raw(&loop, &value, still, bytes);
    tk_loop_collapse(&loop);
    tk_loop_each(&loop, COPY_GRAIN, fill_part, &bytes);
}

/* ---- conversion ---- */

/* The float between an integer and zero with the last bit set when it was not exact, so that
 * rounding it to bf16 rounds the integer once. */
static uint16_t bf16_of_i64(int64_t value) {
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int spare = magnitude ? 40 - __builtin_clzll(magnitude) : 0; /* bits beyond a float's 24 */
    if (spare > 0) {
        uint64_t lost = magnitude & ((UINT64_C(1) << spare) - 1);
        magnitude = (magnitude >> spare << spare) | (lost ? UINT64_C(1) << spare : 0);
    }
    float exact = (float)magnitude;
    return tk_f32_to_bf16(value < 0 ? -exact : exact);
}

static uint16_t bf16_of_u64(uint64_t value) {
    if (value <= INT64_MAX) return bf16_of_i64((int64_t)value);
    return bf16_of_i64((int64_t)(value >> 1 | (value & 1))) + 0x80;
}

#define CONVERT(name, type, result, expression)                                                    \
    static void name(const void *from, void *to, int64_t count) {                                  \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type x = ((const type *)from)[i];                                                      \
            ((result *)to)[i] = expression;                                                        \
        }                                                                                          \
    }
CONVERT(f64_to_f16, double, uint16_t, tk_f64_to_f16(x))
CONVERT(f64_to_bf16, double, uint16_t, tk_f64_to_bf16(x))
CONVERT(i32_to_bf16, int32_t, uint16_t, bf16_of_i64(x))
CONVERT(u32_to_bf16, uint32_t, uint16_t, bf16_of_i64(x))
CONVERT(i64_to_bf16, int64_t, uint16_t, bf16_of_i64(x))
CONVERT(u64_to_bf16, uint64_t, uint16_t, bf16_of_u64(x))
CONVERT(bool_to_bool, uint8_t, uint8_t, x != 0)

typedef struct complex_pair {
    float real, imag;
} complex_pair;
CONVERT(c64_to_bool, complex_pair, uint8_t, x.real != 0 || x.imag != 0)

/* Where the vector kernels round twice, or look at half of a number. */
static void (*exact_conversion(tk_dtype from, tk_dtype to))(const void *, void *, int64_t) {
    if (from == TK_FLOAT64 && to == TK_FLOAT16) return f64_to_f16;
    if (from == TK_FLOAT64 && to == TK_BFLOAT16) return f64_to_bf16;
    if (from == TK_INT32 && to == TK_BFLOAT16) return i32_to_bf16;
    if (from == TK_UINT32 && to == TK_BFLOAT16) return u32_to_bf16;
    if (from == TK_INT64 && to == TK_BFLOAT16) return i64_to_bf16;
    if (from == TK_UINT64 && to == TK_BFLOAT16) return u64_to_bf16;
    if (from == TK_COMPLEX64 && to == TK_BOOL) return c64_to_bool;
    if (from == TK_BOOL && to == TK_BOOL) return bool_to_bool;
    return NULL;
}

void tk_convert_run(tk_dtype from_dtype, tk_dtype to_dtype, const void *from, void *to,
                    int64_t count) {
    void (*exact)(const void *, void *, int64_t) = exact_conversion(from_dtype, to_dtype);
    if (exact)
        exact(from, to, count);
    else
        tk_vec_convert(from_dtype, to_dtype, from, to, count);
}

typedef struct conversion {
    tk_dtype from, to;
} conversion;

/* Dense pieces of either side are used where they lie; others go through a block. */
static void convert_part(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    const conversion *c = arg;
    int64_t from_bytes = (int64_t)tk_dtype_size(c->from), to_bytes = (int64_t)tk_dtype_size(c->to);
    bool dense_to = strides[0] == to_bytes, dense_from = strides[1] == from_bytes;
    if (dense_to && dense_from) {
        tk_convert_run(c->from, c->to, data[1], data[0], count);
        return;
    }
    uint64_t packed[BLOCK], converted[BLOCK];
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t part = tk_least(BLOCK, count - i);
        const char *from = data[1] + i * strides[1];
        char *to = data[0] + i * strides[0];
        if (!dense_from)
            tk_copy_run((size_t)from_bytes, (char *)packed, from_bytes, from, strides[1], part);
        tk_convert_run(c->from, c->to, dense_from ? (const void *)from : packed,
                       dense_to ? (void *)to : converted, part);
        if (!dense_to)
            tk_copy_run((size_t)to_bytes, to, strides[0], (char *)converted, to_bytes, part);
    }
}

void tk_convert_view(const tk_strided *from, const tk_strided *to) {
    if (from->dtype == to->dtype && from->dtype != TK_BOOL) {
        tk_copy_view(from, to);
        return;
    }
    conversion c = {from->dtype, to->dtype};
    tk_loop loop = tk_loop_over(to->rank, to->shape);
    tk_loop_add(&loop, to);
    tk_loop_add(&loop, from);
    tk_loop_collapse(&loop);
    size_t bytes[] = {tk_dtype_size(to->dtype), tk_dtype_size(from->dtype)};
    tk_loop_each_turned(&loop, bytes, COPY_GRAIN / 4, convert_part, &c);
}

/* ---- dense operands ---- */

tk_status tk_scratch_new(int64_t count, size_t element_bytes, void **out_memory) {
    int64_t bytes;
    *out_memory = NULL;
    if (!tk_mul_overflow_i64(count, (int64_t)element_bytes, &bytes))
        *out_memory = tk_malloc((size_t)bytes);
    if (*out_memory) return TK_OK;
    return tk_fail(TK_OUT_OF_MEMORY, "scratch of %lld elements of %zu bytes", (long long)count,
                   element_bytes);
}

tk_status tk_dense_take(const tk_strided *view, tk_dtype dtype, tk_dense *out_dense) {
    *out_dense = (tk_dense){view->data, NULL};
    if (view->dtype == dtype && tk_view_is_dense(view)) return TK_OK;
    TK_TRY(tk_scratch_new(view->size, tk_dtype_size(dtype), &out_dense->scratch));
    tk_strided dense = tk_view_dense(dtype, view->rank, view->shape, out_dense->scratch);
    tk_convert_view(view, &dense);
    out_dense->data = out_dense->scratch;
    return TK_OK;
}

void tk_dense_free(tk_dense *dense) {
    tk_free(dense->scratch);
    dense->scratch = NULL;
}
