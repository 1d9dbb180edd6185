/* What composition needs of swizzles. Private. */
#ifndef LAYOUT_SWIZZLE_H
#define LAYOUT_SWIZZLE_H

#include "layout/tree.h"

/* A o (S o offset o B) for a B with a swizzle as its inner part. TK_UNSUPPORTED if that is neither
 * a swizzle after a layout nor, because no index reaches the bits of S, A o offset o B. */
tk_status tk_compose_before_swizzle(const tk_layout *a, const tk_composed *b, tk_composed *out);

#endif
