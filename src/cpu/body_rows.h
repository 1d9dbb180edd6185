/* Ops along axes: every line of elements along the given axes is handed out as a dense row.
 *
 * Rows that lie dense in memory are used where they are. Others are packed, several neighbours at a
 * time so that a transposed source is read by cache lines, computed in scratch, and put back. Rows
 * may be converted on the way, so that half types need no code of their own. */
#ifndef CPU_BODY_ROWS_H
#define CPU_BODY_ROWS_H

#include "tiki/array.h"

/* `rows` rows of `length` elements; strides in elements between rows. `scratch` is the caller's
 * own. */
typedef struct tk_rows_part {
    const void *in;
    int64_t in_stride;
    void *out;
    int64_t out_stride;
    int64_t rows, length;
    void *scratch;
} tk_rows_part;

/* Computes a part; several threads call at once. */
typedef void (*tk_rows_fn)(void *arg, const tk_rows_part *part);

typedef struct tk_rows {
    const tk_strided *in;
    const tk_strided *out;      /* the same lengths but along `axes`, where all may be 1 */
    tk_axes axes;               /* ascending */
    tk_dtype in_type, out_type; /* what `run` sees */
    size_t scratch_bytes;       /* that `run` needs, each time */
    tk_rows_fn run;
    void *arg;
} tk_rows;

/* TK_OUT_OF_MEMORY before anything is written. `in` and `out` may be the same memory by the same
 * strides if `run` can work in place. Nothing is called when there are no rows or rows are empty.
 */
tk_status tk_rows_run(const tk_rows *rows);

/* Whether `axes` (ascending) are the last, or the first, of `rank` axes. */
static inline bool tk_axes_are_last(tk_axes axes, int rank) {
    return axes.count && axes.items[0] == rank - axes.count;
}
static inline bool tk_axes_are_first(tk_axes axes) {
    return axes.count && axes.items[axes.count - 1] == axes.count - 1;
}

/* One axis as a list. */
static inline tk_axes tk_rows_axis(int64_t axis) {
    tk_axes axes = {1, {axis}};
    return axes;
}

static inline tk_axes tk_rows_axes(int64_t count, const int64_t *items) {
    tk_axes axes = {count, {0}};
    for (int64_t i = 0; i < count; i++) axes.items[i] = items[i];
    return axes;
}

#endif
