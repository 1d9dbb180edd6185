/* The leaves of a layout that move, with where they stand (what complements and inverses sort), and
 * where an offset comes from. Private. */
#ifndef LAYOUT_IMAGE_H
#define LAYOUT_IMAGE_H

#include "layout/term.h"
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

/* Between low[i] and high[i] steps of stride[i], which is not 0 and not INT64_MIN. */
typedef struct tk_steps {
    int count;
    int64_t stride[TK_LAYOUT_MAX_LEAVES];
    int64_t low[TK_LAYOUT_MAX_LEAVES], high[TK_LAYOUT_MAX_LEAVES];
} tk_steps;

/* How many steps of each stride (out[i] for stride[i]) add up to `total`: proven when found,
 * refuted when there are none, open when the search was given up. */
tk_proof tk_find_steps(const tk_steps *steps, int64_t total, int64_t *out);

/* Strides of which all relations can be had. */
#define TK_RELATION_MAX 24

/* Integers out[i], not all 0 and at most most[i] (at least 1) in size, whose products with the
 * strides (not 0, above INT64_MIN) sum to 0: proven when found, refuted when there are none. Open
 * when the search was given up; above 27 strides it is never refuted, above 48 always open. */
tk_proof tk_find_relation(const int64_t *stride, const int64_t *most, int count, int64_t *out);

typedef struct tk_relations {
    int count;
    int64_t row[TK_RELATION_MAX][TK_RELATION_MAX];
} tk_relations;

/* A basis of all integers whose products with the strides sum to 0, short when divided by `most`;
 * false if it is not found (count above TK_RELATION_MAX, numbers beyond 64 bits). */
bool tk_reduce_relations(const int64_t *stride, const int64_t *most, int count, tk_relations *out);

/* Two integer coordinates of one offset. */
typedef struct tk_collision {
    bool found;
    int64_t first, second;
} tk_collision;

/* TK_UNSUPPORTED for dynamic layouts and where it cannot be decided. */
tk_status tk_find_collision(const tk_layout *layout, tk_collision *out);

#endif
