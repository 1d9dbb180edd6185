/* Copies between strided views, and dense scratch copies of operands for kernels that need them. */
#ifndef CPU_BODY_COPY_H
#define CPU_BODY_COPY_H

#include "tiki/array.h"

/* Elements of `to` become those of `from`: one shape, one element size. The views must not overlap,
 * except where they are the same memory by the same strides. Uses the pool. */
void tk_copy_view(const tk_strided *from, const tk_strided *to);

/* The same with conversion where the dtypes differ, as astype converts. */
void tk_convert_view(const tk_strided *from, const tk_strided *to);

/* `count` elements of `bytes` (1, 2, 4 or 8) each; strides in bytes. Calling thread. */
void tk_copy_run(size_t bytes, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                 int64_t count);

#define TK_TILE 32

/* A tile of at most TK_TILE rows and columns, turned: element (i, j) goes from `from` + i * bytes +
 * j * from_column to `to` + i * to_row + j * bytes. Calling thread. */
void tk_transpose_tile(size_t bytes, char *to, int64_t to_row, const char *from,
                       int64_t from_column, int64_t rows, int64_t columns);

/* `count` elements between dense runs, converted with one rounding; bool is "not zero". */
void tk_convert_run(tk_dtype from_dtype, tk_dtype to_dtype, const void *from, void *to,
                    int64_t count);

/* Fills a view with one element. Uses the pool. */
void tk_fill_view(const void *element, const tk_strided *to);

/* A dense operand: `data` is the view's own memory where that is dense and of `dtype` already, else
 * a copy in `scratch`. */
typedef struct tk_dense {
    const void *data;
    void *scratch;
} tk_dense;

/* TK_OUT_OF_MEMORY. tk_dense_free may be called after a failure too. */
tk_status tk_dense_take(const tk_strided *view, tk_dtype dtype, tk_dense *out_dense);
void tk_dense_free(tk_dense *dense);

/* Scratch memory; TK_OUT_OF_MEMORY names the bytes. */
tk_status tk_scratch_new(int64_t count, size_t element_bytes, void **out_memory);

#endif
