/* What kernels of products read from a call: d = a b for matrices a [m, k], b [k, n], d [m, n] and
 * the same for every index of the axes before the last two. */
#ifndef LIBRARY_GEMM_H
#define LIBRARY_GEMM_H

#include "library/emit.h"
#include "library/plan.h"

/* A matrix of the call, or one for each of the batch. `pitch` is the step between lines, elements
 * of a line lie one after another. */
typedef struct tk_gemm_matrix {
    const char *name;
    int64_t pitch, step; /* step: from one matrix to the next, 0 when it is one for all */
    bool k_lines;        /* of a and b: the lines run along k */
} tk_gemm_matrix;

typedef struct tk_gemm_problem {
    int64_t batch, m, n, k;
    tk_gemm_matrix a, b, d;
} tk_gemm_problem;

/* TK_DTYPE_ERROR unless a and b are both f16 or both bf16 and d a float; TK_SHAPE_ERROR for shapes
 * that do not go together, for a or b without an axis of stride 1, for d that is not row-major, and
 * for batches that are not evenly spaced; TK_UNSUPPORTED above 2^30. */
tk_status tk_gemm_read(const tk_library_call *call, tk_gemm_problem *out);

/* Stores two neighbours of d from f32, the second one column further: both at once when `pair`.
 * The conditions are those of the elements. */
void tk_gemm_store(tk_b *b, tk_val pointer, tk_val low, tk_val high, bool pair, tk_val if_low,
                   tk_val if_high);

#endif
