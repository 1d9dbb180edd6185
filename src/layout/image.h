/* The leaves of a layout that move, with where they stand: what complements and inverses sort.
 * Private. */
#ifndef LAYOUT_IMAGE_H
#define LAYOUT_IMAGE_H

#include "base/alloc.h"
#include "layout/tree.h"

/* A leaf with an extent above 1 and a stride that is not 0; `prefix` is the product of the extents
 * before it, so that one step of it is `prefix` in the integer coordinate. Meaningful for static
 * extents. */
typedef struct tk_moving {
    tk_leaf leaf;
    int64_t prefix;
    int index;
} tk_moving;

/* Returns how many there are; `out` has room for all leaves. */
int tk_moving_leaves(const tk_layout *layout, tk_moving *out);

/* By stride, then extent, then position; dynamic strides last. */
void tk_sort_moving(tk_moving *leaf, int count);

/* Two integer coordinates of one offset. */
typedef struct tk_collision {
    bool found;
    int64_t first, second;
} tk_collision;

/* TK_UNSUPPORTED for dynamic layouts and where it cannot be decided. */
tk_status tk_find_collision(const tk_layout *layout, tk_collision *out);

#endif
