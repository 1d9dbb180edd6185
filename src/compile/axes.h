/* The axes over which a generated kernel goes, with the step of each of its views along each. An
 * axis is joined with the one before it where every view steps over both as over one, so that
 * kernels have few coordinates to divide out, and arrays that differ only in what can be joined
 * share a kernel. */
#ifndef COMPILE_AXES_H
#define COMPILE_AXES_H

#include <stdint.h>

#include "tiki/axes.h"

/* Views that one kernel has at the most. */
#define TK_MOST_VIEWS 11

typedef struct tk_view_axis {
    int64_t length, stride[TK_MOST_VIEWS];
} tk_view_axis;

/* Row-major: the last axis turns fastest. Begun with the number of views and a size of 1. */
typedef struct tk_view_axes {
    int n_views, rank;
    int64_t size; /* the product of all lengths */
    tk_view_axis items[TK_AXES_MAX];
} tk_view_axes;

/* Adds an axis behind the others. One of length 1 is none. */
void tk_view_axes_add(tk_view_axes *axes, const tk_view_axis *next);

/* Without an axis there is one of length 1: kernels have a coordinate. */
void tk_view_axes_close(tk_view_axes *axes);

#endif
