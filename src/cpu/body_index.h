/* What gather and scatter share: reading index arrays in row-major order, block by block, and
 * turning index tuples into byte offsets with a check. */
#ifndef CPU_BODY_INDEX_H
#define CPU_BODY_INDEX_H

#include "array/executor.h"
#include "cpu/body_loop.h"

#define TK_INDEX_BLOCK 256

/* Index arrays of one shape, an axis of the indexed array each. */
typedef struct tk_indices {
    int count;
    int64_t positions;
    struct {
        tk_loop loop;
        tk_dtype dtype;
        int64_t length; /* of the axis */
        int64_t most;   /* the largest index allowed */
        int64_t stride; /* bytes of the axis */
    } arrays[TK_AXES_MAX];
} tk_indices;

/* `slice_sizes` by axis of `a`: a slice must lie inside. */
tk_indices tk_indices_of(const tk_strided *a, const tk_strided *arrays, tk_list axes,
                         const int64_t *slice_sizes);

/* offsets[i]: bytes from the first element of the indexed array for position begin + i; valid[i] is
 * false where an index is out of range, which is noted. count <= TK_INDEX_BLOCK. */
void tk_indices_read(const tk_indices *indices, int64_t begin, int64_t count, tk_fault *fault,
                     int64_t *offsets, bool *valid);

/* Converts a run of an integer dtype. stride in bytes. */
void tk_index_run(tk_dtype dtype, const char *data, int64_t stride, int64_t count, int64_t *out);

#endif
