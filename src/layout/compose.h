/* What the parts of composition share: the leaf rule (compose.c), the exact decision that is asked
 * when the rule does not apply (compose_exact.c), and the rule for plain numbers (compose_plain.c).
 * Private. */
#ifndef LAYOUT_COMPOSE_H
#define LAYOUT_COMPOSE_H

#include "base/alloc.h"
#include "layout/tree.h"

/* The left operand, coalesced: the digits that an index is written in. The last one is unbounded.
 */
typedef struct tk_digits {
    int count;
    bool fixed; /* all extents static */
    tk_leaf leaf[TK_LAYOUT_MAX_LEAVES];
    int64_t used[TK_LAYOUT_MAX_LEAVES]; /* the largest digit that leaves of B reach together */
    uint64_t taken; /* bit i: a dynamic leaf fills digit i, and no other may enter */
} tk_digits;

/* The leaves that each leaf of B became, in B's order. */
typedef struct tk_pieces {
    int total;
    int covering; /* the leaf of B that ends where A ends, whatever A's extents are; -1 for none */
    uint8_t first[TK_LAYOUT_MAX_LEAVES];
    uint8_t count[TK_LAYOUT_MAX_LEAVES];
    tk_leaf leaf[TK_LAYOUT_MAX_LEAVES];
} tk_pieces;

/* Appends a leaf; TK_OVERFLOW when there are too many. */
static inline tk_status tk_pieces_put(tk_pieces *pieces, tk_term shape, tk_term stride) {
    if (pieces->total == TK_LAYOUT_MAX_LEAVES)
        return tk_fail(TK_OVERFLOW, "the result has more than %d leaves", TK_LAYOUT_MAX_LEAVES);
    pieces->leaf[pieces->total].shape = shape;
    pieces->leaf[pieces->total++].stride = stride;
    return TK_OK;
}

/* The same for a piece of a leaf whose pieces begin at `first`: merged into the one before if it
 * certainly continues it. Between coalesced static digits it never does. */
static inline tk_status tk_pieces_merge(tk_pieces *pieces, int first, tk_term shape,
                                        tk_term stride) {
    if (pieces->total == first) return tk_pieces_put(pieces, shape, stride);
    tk_leaf *last = &pieces->leaf[pieces->total - 1];
    int64_t next, extent;
    bool known =
        (last->shape.kind | last->stride.kind | shape.kind | stride.kind) == TK_TERM_STATIC;
    if (!known || last->stride.basis != stride.basis ||
        tk_mul_overflow_i64(last->shape.value, last->stride.value, &next) || next != stride.value ||
        tk_mul_overflow_i64(last->shape.value, shape.value, &extent))
        return tk_pieces_put(pieces, shape, stride);
    last->shape.value = extent;
    return TK_OK;
}

/* The composition where the last leaf n:s of B is known to cover the rest of A: n*s = size(A). Says
 * more than tk_layout_composition where extents of A are unknown. */
tk_status tk_compose_covering(const tk_layout *a, const tk_layout *b, tk_layout *out);

/* The whole composition when all numbers are plain and the rule applies; else false, and `out` must
 * be cleared. */
bool tk_compose_plain(const tk_layout *a, const tk_layout *b, tk_layout *out);

/* Decides the composition of static `digits` with those leaves of B whose stride has this basis,
 * and fills their pieces anew. An error if there is no layout, with a coordinate that shows it. */
tk_status tk_compose_exactly(const tk_digits *digits, tk_part b, uint32_t basis, tk_pieces *pieces);

/* Does a leaf of B belong to the group of this basis? Leaves that do not move belong to none. */
static inline bool tk_leaf_moves(const tk_leaf *leaf, uint32_t basis) {
    return leaf->stride.basis == basis &&
           (leaf->stride.value != 0 || leaf->stride.kind != TK_TERM_STATIC) &&
           (leaf->shape.value != 1 || leaf->shape.kind != TK_TERM_STATIC);
}

#endif
