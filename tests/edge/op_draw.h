/* Random arguments for any row of the op table, for op_calls.c.
 *
 * Most draws are such that the call makes sense (axes in range, shapes that fit each other), since
 * a call that is refused computes nothing; the rest is nonsense on purpose. Where an op ties its
 * arguments together, a function of its own fits them (op_fit.c). The same seed gives the same
 * calls. */
#ifndef EDGE_OP_DRAW_H
#define EDGE_OP_DRAW_H

#include "support/op_calls.h"

#define DRAW_LIST 4

typedef struct draw {
    tk_context *context;
    uint64_t state;
    const op_row *row;
    op_value values[OP_PARAMS_MAX];
    tk_array list[DRAW_LIST]; /* what an `arrays` argument points to */
} draw;

/* Fills draw->values for a row; arrays belong to the open scope. */
void draw_call(draw *d, const op_row *row);

/* ---- pieces, for op_fit.c ---- */

/* A number from 0 below n. */
int64_t draw_below(draw *d, int64_t n);
bool draw_chance(draw *d, int percent);

/* A number that no argument should be. */
int64_t draw_nonsense(draw *d);

tk_dtype draw_dtype(draw *d);
tk_shape draw_shape(draw *d, int most_axes);

/* Values of the dtype in memory of a random layout: dense, transposed, reversed, strided,
 * broadcast. */
tk_array draw_array(draw *d, tk_dtype dtype, tk_shape shape);

/* Integers from low below high, of a random integer dtype that is at least `bytes` wide. */
tk_array draw_indices(draw *d, tk_shape shape, int64_t low, int64_t high);

/* `shape` with some leading axes gone and some lengths 1. */
tk_shape draw_narrowed(draw *d, tk_shape shape);

int64_t draw_axis(draw *d, int rank);
tk_axes draw_axes(draw *d, int rank);

/* Whether an array is one of the weakly typed scalars of the call. */
bool draw_is_weak(tk_array array);

/* Position of a parameter of the row that is drawn, -1 when it has none of that name. */
int draw_find(const draw *d, const char *name);

/* Makes the arguments of an op that ties them together agree; false: leave them as drawn. */
void draw_fit(draw *d);
void draw_fit_quant(draw *d); /* the part of it for op_fit_quant.c */

/* op_fit_signal.c */
void draw_fit_conv(draw *d);
void draw_fit_convolve(draw *d);
void draw_fit_fft(draw *d);
void draw_fit_stft(draw *d);

/* op_fit_linalg.c */
void draw_fit_matrix(draw *d);
void draw_fit_cross(draw *d);
void draw_fit_norm(draw *d);
void draw_fit_hadamard(draw *d);
void draw_fit_multivariate(draw *d);

#endif
