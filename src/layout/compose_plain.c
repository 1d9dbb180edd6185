/* Composition of plain numbers: the leaf rule of compose.c on bare integers, for the inner loop of
 * a tuner. Same digits, same condition (`used` stays below the extent); wherever anything is not
 * plain or the rule does not apply it gives up, and the general road answers or refuses. */
#include "layout/compose.h"
#include "layout/term.h"

typedef struct digits {
    int count;
    int64_t extent[TK_LAYOUT_MAX_LEAVES], stride[TK_LAYOUT_MAX_LEAVES];
    int64_t used[TK_LAYOUT_MAX_LEAVES];
} digits;

static inline bool is_plain(const tk_leaf *leaf) {
    return (leaf->shape.kind | leaf->stride.kind | leaf->stride.basis) == 0;
}

/* Coalesced as tk_coalesce_leaves does with its tail kept. */
static bool load(const tk_layout *a, digits *out) {
    int count = 0;
    int64_t next = 0;
    for (int i = 0; i < a->leaf_count; i++) {
        int64_t extent = a->leaf[i].shape.value, stride = a->leaf[i].stride.value;
        if (!is_plain(&a->leaf[i])) return false;
        if (extent == 1 && i + 1 < a->leaf_count) continue;
        if (count && next == stride) {
            out->extent[count - 1] *= extent;
        } else {
            out->extent[count] = extent;
            out->stride[count] = stride;
            out->used[count++] = 0;
        }
        if (tk_mul_overflow_i64(out->extent[count - 1], out->stride[count - 1], &next))
            return false;
    }
    out->count = count;
    return count > 0;
}

/* The pieces of n:s with n > 1 and s > 0; 0 where the rule does not apply. */
static int split(digits *d, int64_t n, int64_t s, tk_leaf *piece) {
    int last = d->count - 1, count = 0;
    int64_t rest, stride, t;
    for (int i = 0; i <= last; i++) {
        int64_t extent = d->extent[i];
        if (s >= extent && i < last) {
            s = tk_div_fast(s, extent, &rest);
            if (rest) return 0;
            continue;
        }
        t = n;
        if (i < last && s * (n - 1) >= extent) { /* part of B's span: no overflow */
            t = tk_div_fast(extent, s, &rest);
            if (rest) return 0;
        }
        d->used[i] += (t - 1) * s;
        if (i < last && d->used[i] >= extent) return 0;
        if (tk_mul_overflow_i64(s, d->stride[i], &stride)) return 0;
        piece[count++] = (tk_leaf){tk_term_int(t), tk_term_int(stride)};
        n = tk_div_fast(n, t, &rest);
        if (rest) return 0;
        if (n == 1) return count;
        s = 1;
    }
    return 0;
}

bool tk_compose_plain(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    digits d;
    tk_leaf piece[TK_LAYOUT_MAX_LEAVES];
    const tk_leaf *leaf = b->leaf;
    if (!load(a, &d)) return false;
    for (int i = 0; i < b->node_count; i++) {
        if (b->node[i] != TK_NODE_LEAF) {
            tk_put_node(out, b->node[i]);
            continue;
        }
        int64_t n = leaf->shape.value, s = leaf->stride.value;
        if (!is_plain(leaf++) || s < 0) return false;
        if (n == 1 || s == 0) {
            tk_put_leaf(out, tk_term_int(n), tk_term_int(0));
            continue;
        }
        int count = split(&d, n, s, piece);
        if (count == 0) return false;
        if (count > 1) tk_put_node(out, (uint8_t)count);
        for (int j = 0; j < count; j++) tk_put_leaf(out, piece[j].shape, piece[j].stride);
    }
    return true;
}
