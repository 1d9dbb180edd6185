/* Loops with transposed operands; see tk_loop_each_turned in body_loop.h.
 *
 * A run along the destination's rows would take one element from each cache line of such an
 * operand. Here a tile of rows by columns is turned into scratch first, line by line, and then
 * computed row by row. The other axes of the loop are around the tiles. */
#include <string.h>

#include "base/pool.h"
#include "cpu/body_copy.h"
#include "cpu/body_loop.h"
#include "cpu/least.h"

#define TURNED_COLUMNS 128 /* of a tile; its rows are TK_TILE */

typedef struct turned {
    tk_loop outer; /* without the two axes */
    const tk_loop *loop;
    const size_t *bytes;
    tk_loop_run run;
    void *arg;
    int row_axis, column_axis;
    int64_t rows, columns, row_tiles;
    bool turns[TK_LOOP_OPERANDS];
} turned;

static bool is_dense_along(const tk_loop *loop, const size_t *bytes, int operand, int axis) {
    return loop->strides[operand][axis] == (int64_t)bytes[operand];
}

/* Whether `operand` is dense along `axis` and would be walked across it. */
static bool needs_turn(const tk_loop *loop, const size_t *bytes, int operand, int axis) {
    int inner = loop->rank - 1;
    return is_dense_along(loop, bytes, operand, axis) && loop->strides[operand][inner] != 0 &&
           !is_dense_along(loop, bytes, operand, inner);
}

/* The axis to take as rows; -1 where nothing is to be turned. */
static int row_axis_of(const tk_loop *loop, const size_t *bytes) {
    int inner = loop->rank - 1;
    if (!is_dense_along(loop, bytes, 0, inner) || loop->shape[inner] < 8) return -1;
    for (int axis = 0; axis < inner; axis++)
        for (int operand = 1; operand < loop->n_operands; operand++)
            if (loop->shape[axis] >= 8 && needs_turn(loop, bytes, operand, axis)) return axis;
    return -1;
}

static void take_place(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    (void)strides;
    (void)count;
    memcpy(arg, data, TK_LOOP_OPERANDS * sizeof *data);
}

/* One tile at `data`: operands in order, then its rows. */
static void run_tile(const turned *t, char *const *data, int64_t rows, int64_t columns) {
    uint64_t scratch[TK_LOOP_OPERANDS - 1][TK_TILE * TURNED_COLUMNS];
    char *at[TK_LOOP_OPERANDS] = {NULL};
    int64_t row_steps[TK_LOOP_OPERANDS] = {0}, steps[TK_LOOP_OPERANDS] = {0};
    for (int k = 0; k < t->loop->n_operands; k++) {
        int64_t bytes = (int64_t)t->bytes[k], column_step = t->loop->strides[k][t->column_axis];
        at[k] = data[k];
        row_steps[k] = t->loop->strides[k][t->row_axis];
        steps[k] = column_step;
        if (!t->turns[k]) continue;
        at[k] = (char *)scratch[k - 1];
        row_steps[k] = TURNED_COLUMNS * bytes;
        steps[k] = bytes;
        for (int64_t j = 0; j < columns; j += TK_TILE)
            tk_transpose_tile(t->bytes[k], at[k] + j * bytes, row_steps[k],
                              data[k] + j * column_step, column_step, rows,
                              tk_least(TK_TILE, columns - j));
    }
    for (int64_t i = 0; i < rows; i++) {
        t->run(t->arg, at, steps, columns);
        for (int k = 0; k < t->loop->n_operands; k++) at[k] += row_steps[k];
    }
}

static void run_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const turned *t = arg;
    for (int64_t task = begin; task < end; task++) {
        int64_t matrix = task / t->row_tiles, row = task % t->row_tiles * TK_TILE;
        char *data[TK_LOOP_OPERANDS];
        tk_loop_range(&t->outer, matrix, matrix + 1, take_place, data);
        for (int64_t column = 0; column < t->columns; column += TURNED_COLUMNS) {
            char *at[TK_LOOP_OPERANDS] = {NULL};
            for (int k = 0; k < t->loop->n_operands; k++)
                at[k] = data[k] + row * t->loop->strides[k][t->row_axis] +
                        column * t->loop->strides[k][t->column_axis];
            run_tile(t, at, tk_least(TK_TILE, t->rows - row),
                     tk_least(TURNED_COLUMNS, t->columns - column));
        }
    }
}

void tk_loop_each_turned(const tk_loop *loop, const size_t *bytes, int64_t grain, tk_loop_run run,
                         void *arg) {
    int axis = loop->size ? row_axis_of(loop, bytes) : -1;
    if (axis < 0) {
        tk_loop ordered = *loop;
        tk_loop_lengthen(&ordered);
        tk_loop_each(&ordered, grain, run, arg);
        return;
    }
    turned t = {
        .outer = *loop, .loop = loop, .bytes = bytes, .run = run, .arg = arg, .row_axis = axis};
    t.column_axis = loop->rank - 1;
    t.rows = loop->shape[axis];
    t.columns = loop->shape[t.column_axis];
    t.row_tiles = (t.rows + TK_TILE - 1) / TK_TILE;
    for (int k = 1; k < loop->n_operands; k++) t.turns[k] = needs_turn(loop, bytes, k, axis);
    t.outer.size = loop->size / t.rows / t.columns;
    t.outer.shape[axis] = t.outer.shape[t.column_axis] = 1;
    tk_loop_collapse(&t.outer);
    tk_parallel_for(t.outer.size * t.row_tiles, 1 + grain / (TK_TILE * t.columns), run_part, &t);
}
