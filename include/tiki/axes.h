/* Short lists of integers by value: shapes, axes, starts and steps.
 *
 * A struct, not a pointer and a count, so that a call reads like the math: TK_AXES(-1), TK_SHAPE(2,
 * 3). Without compound literals, so that C++ can use it. Pure values: any thread, no errors here;
 * an op that is given a list it cannot use says so. */
#ifndef TIKI_AXES_H
#define TIKI_AXES_H

#include <stdint.h>

#include "tiki/api.h"

TK_BEGIN_DECLS

/* Most axes of an array. */
#define TK_AXES_MAX 16

/* Shapes, axes, starts and strides by value. count is -1 for "all axes" or "not given". */
typedef struct tk_axes {
    int64_t count;
    int64_t items[TK_AXES_MAX];
} tk_axes;

typedef tk_axes tk_shape;

/* The value that ends the lists of TK_AXES and TK_SHAPE; no length or axis has it. */
#define TK_END INT64_MIN

/* Collects the arguments before the first TK_END. */
TK_API tk_axes tk_axes_of(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f,
                          int64_t g, int64_t h);

/* A list from memory. More than TK_AXES_MAX items are kept as a count, and every op refuses it;
 * items that are NULL give such a list too. */
TK_API tk_axes tk_axes_from(int64_t count, const int64_t *items);

#define TK_TAKE8(a, b, c, d, e, f, g, h, ...) tk_axes_of(a, b, c, d, e, f, g, h)

/* TK_AXES(-1), TK_SHAPE(2, 3): up to eight integers as a value. */
#define TK_AXES(...)                                                                               \
    TK_TAKE8(__VA_ARGS__, TK_END, TK_END, TK_END, TK_END, TK_END, TK_END, TK_END, TK_END, TK_END)
#define TK_SHAPE(...) TK_AXES(__VA_ARGS__)

/* All axes of a reduction; the default order or step where a comment says so. */
TK_API tk_axes tk_all_axes(void);
#define TK_ALL_AXES tk_all_axes()

/* The shape of a scalar: no axes. */
TK_API tk_shape tk_scalar_shape(void);
#define TK_SCALAR tk_scalar_shape()

enum { TK_DROPDIMS = 0, TK_KEEPDIMS = 1 };

/* How slice_update and scatter combine old and new. */
typedef enum tk_mode { TK_SET, TK_ADD, TK_MAX, TK_MIN, TK_PROD, TK_MODE_COUNT } tk_mode;

TK_END_DECLS

#endif
