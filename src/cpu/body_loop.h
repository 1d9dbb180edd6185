/* The loop that bodies share: elements of several strided views of one shape, visited as inner runs
 * with constant strides.
 *
 * A loop is set up from a shape and views, then collapsed: axes of length 1 go, the others are
 * ordered by stride (the first operand, the one that is written, decides first) and neighbours that
 * can be stepped through as one axis are merged. A dense array of any rank so becomes one run. The
 * linear range of elements is split over the pool without regard to runs; a part begins and ends in
 * the middle of one.
 *
 * Only for computations whose order does not matter: axes are permuted. Strides are in bytes here,
 * so that operands may have different element types.
 *
 * Rejected: one loop nest a rank (bodies would have 16 of them) and an iterator that hands out
 * single elements (a call an element). */
#ifndef CPU_BODY_LOOP_H
#define CPU_BODY_LOOP_H

#include "tiki/array.h"

#define TK_LOOP_OPERANDS 4

typedef struct tk_loop {
    int n_operands;
    int rank; /* at least 1 once collapsed */
    int64_t size;
    int64_t shape[TK_AXES_MAX]; /* outermost first */
    int64_t strides[TK_LOOP_OPERANDS][TK_AXES_MAX];
    char *data[TK_LOOP_OPERANDS];
} tk_loop;

/* Computes `count` elements: element i of operand k is at data[k] + i * strides[k]. count >= 1. */
typedef void (*tk_loop_run)(void *arg, char *const *data, const int64_t *strides, int64_t count);

/* A loop over `shape`, without operands. */
tk_loop tk_loop_over(int rank, const int64_t *shape);

/* Adds a view of the loop's shape. The view with the most to gain from good order comes first. */
void tk_loop_add(tk_loop *loop, const tk_strided *view);

/* The same from its parts; strides in elements of `element_bytes`. */
void tk_loop_add_raw(tk_loop *loop, void *data, const int64_t *strides, size_t element_bytes);

void tk_loop_collapse(tk_loop *loop);

/* Merges only: elements are still visited in row-major order. */
void tk_loop_merge(tk_loop *loop);

/* Makes the longest axis the innermost one where the innermost is short: fewer, longer runs. */
void tk_loop_lengthen(tk_loop *loop);

/* Runs elements [begin, end) of the collapsed loop on this thread. */
void tk_loop_range(const tk_loop *loop, int64_t begin, int64_t end, tk_loop_run run, void *arg);

/* Runs all elements, split over the pool in parts of at least `grain`. */
void tk_loop_each(const tk_loop *loop, int64_t grain, tk_loop_run run, void *arg);

/* The same for a collapsed loop whose first operand is written, where `bytes` are the operands'
 * element sizes: an operand that is dense along another axis than the first (transposed) is brought
 * into order tile by tile, in scratch on the stack. Without such operands it is tk_loop_each.
 * Operand 0 must not share memory with a transposed one. */
void tk_loop_each_turned(const tk_loop *loop, const size_t *bytes, int64_t grain, tk_loop_run run,
                         void *arg);

/* ---- views ---- */

/* A row-major view. */
tk_strided tk_view_dense(tk_dtype dtype, int rank, const int64_t *shape, void *data);

bool tk_view_is_dense(const tk_strided *view);

/* Moves `axes` (ascending) behind the others, which keep their order. Returns how many others there
 * are. */
int tk_view_axes_last(tk_strided *view, tk_axes axes);

#endif
