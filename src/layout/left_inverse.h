/* The left inverse of leaves that share a basis. Private. */
#ifndef LAYOUT_LEFT_INVERSE_H
#define LAYOUT_LEFT_INVERSE_H

#include "layout/image.h"

/* Puts a layout R, at the end of `out`, with R(sum of x_i * stride_i) = sum of x_i * prefix_i for
 * all counts x_i below the extents. The leaves are sorted by stride and reach no offset twice. */
tk_status tk_invert_left(const tk_moving *leaf, int count, tk_layout *out);

#endif
