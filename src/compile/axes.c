/* See axes.h. */
#include "compile/axes.h"

#include <stdbool.h>
#include <stddef.h>

static bool joins(const tk_view_axes *axes, const tk_view_axis *outer, const tk_view_axis *inner) {
    for (int v = 0; v < axes->n_views; v++)
        if (outer->stride[v] != inner->stride[v] * inner->length) return false;
    return true;
}

void tk_view_axes_add(tk_view_axes *axes, const tk_view_axis *next) {
    tk_view_axis *last = axes->rank ? &axes->items[axes->rank - 1] : NULL;
    axes->size *= next->length;
    if (next->length == 1) return;
    if (!last || !joins(axes, last, next)) {
        axes->items[axes->rank++] = *next;
        return;
    }
    int64_t length = last->length * next->length;
    *last = *next;
    last->length = length;
}

void tk_view_axes_close(tk_view_axes *axes) {
    if (axes->rank == 0) axes->items[axes->rank++] = (tk_view_axis){.length = 1};
}
