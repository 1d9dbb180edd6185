/* Coalescing of bare leaf arrays, shared by the operations that start with it. Private. */
#ifndef LAYOUT_COALESCE_H
#define LAYOUT_COALESCE_H

#include "layout/tree.h"

/* Merges `count` leaves into `out` (room for count, or 1 if count is 0) and returns how many are
 * left; no leaf of extent 1 remains, so the count may be 0.
 *
 * With `keep_tail` a last leaf of extent 1 counts as one that an index past the end would enter: it
 * stays if its stride says something that the leaf before it does not. */
int tk_coalesce_leaves(const tk_leaf *leaf, int count, bool keep_tail, tk_leaf *out);

/* Writes leaves as the result of a coalesce: `1:0`, one leaf, or a flat tuple. */
void tk_put_coalesced(tk_layout *out, const tk_leaf *leaf, int count);

#endif
