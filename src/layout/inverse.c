/* Right and left inverse, and the widest vector that two layouts share.
 *
 * Basis strides are inverted basis by basis, each as a mode of its own, nested as the basis vectors
 * are. For one basis:
 *
 * The right inverse chains leaves whose strides are the running product 1, s, s*s', ... A leaf may
 * be followed by any leaf that starts where it ends, so with equal strides there is a choice; the
 * best chain from each leaf depends only on where the leaf ends, so one pass from large strides to
 * small finds the longest. (CuTe takes the first; where strides differ the two agree.)
 *
 * The left inverse is in left_inverse.c. */
#include "layout/coalesce.h"
#include "layout/image.h"
#include "layout/left_inverse.h"
#include "layout/term.h"

static tk_status check_static(const tk_layout *layout, const char *operation) {
    if (tk_layout_is_static(layout)) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "%s needs a static layout", operation);
}

/* -- Right inverse of one basis -- */

static int chain_leaves(const tk_moving *leaf, int count, tk_leaf *out) {
    int64_t best[TK_LAYOUT_MAX_LEAVES];
    int next[TK_LAYOUT_MAX_LEAVES], start = -1, kept = 0;
    for (int i = count - 1; i >= 0; i--) {
        int64_t end;
        best[i] = 1;
        next[i] = -1;
        bool fits = !tk_mul_overflow_i64(leaf[i].leaf.shape.value, leaf[i].leaf.stride.value, &end);
        for (int j = i + 1; j < count && fits && leaf[j].leaf.stride.value <= end; j++) {
            if (leaf[j].leaf.stride.value < end) continue;
            bool better = next[i] < 0 || best[j] > best[next[i]] ||
                          (best[j] == best[next[i]] && leaf[j].index < leaf[next[i]].index);
            if (better) next[i] = j;
        }
        best[i] = leaf[i].leaf.shape.value * (next[i] < 0 ? 1 : best[next[i]]);
    }
    for (int i = 0; i < count && leaf[i].leaf.stride.value <= 1; i++)
        if (leaf[i].leaf.stride.value == 1 &&
            (start < 0 || best[i] > best[start] ||
             (best[i] == best[start] && leaf[i].index < leaf[start].index)))
            start = i;
    for (int i = start; i >= 0; i = next[i])
        out[kept++] = (tk_leaf){leaf[i].leaf.shape, tk_term_int(leaf[i].prefix)};
    return kept;
}

static tk_status right_one(const tk_moving *leaf, int count, tk_layout *out) {
    tk_leaf chain[TK_LAYOUT_MAX_LEAVES], kept[TK_LAYOUT_MAX_LEAVES];
    int links = chain_leaves(leaf, count, chain);
    links = tk_coalesce_leaves(chain, links, false, kept);
    tk_put_coalesced(out, kept, links);
    return TK_OK;
}

/* -- All bases -- */

typedef tk_status invert_one(const tk_moving *leaf, int count, tk_layout *out);

/* The leaves whose basis begins with the `depth` modes of `path`. */
static int select_basis(const tk_moving *all, int count, uint32_t path, int depth, tk_moving *out) {
    uint32_t known = ((uint32_t)1 << (TK_BASIS_BITS * depth)) - 1;
    int kept = 0;
    for (int i = 0; i < count; i++)
        if ((all[i].leaf.stride.basis & known) == path) out[kept++] = all[i];
    return kept;
}

/* Offsets are one number where the strides have no further basis; else a tuple, and the inverse has
 * a mode for each of its numbers. */
static tk_status invert_mode(const tk_moving *all, int count, uint32_t path, int depth,
                             invert_one *one, tk_layout *out) {
    tk_moving group[TK_LAYOUT_MAX_LEAVES];
    int kept = select_basis(all, count, path, depth, group), modes = 0, ends = 0;
    for (int i = 0; i < kept; i++) {
        int mode = (int)(group[i].leaf.stride.basis >> (TK_BASIS_BITS * depth) & 63);
        ends += mode == 0;
        if (mode > modes) modes = mode;
    }
    if (modes && ends)
        return tk_fail(TK_SHAPE_ERROR,
                       "strides mix integers and basis vectors: stride %s names "
                       "modes inside a number",
                       tk_term_show(group[0].leaf.stride).text);
    if (!modes) {
        tk_sort_moving(group, kept);
        return one(group, kept, out);
    }
    tk_put_node(out, (uint8_t)modes);
    for (int mode = 1; mode <= modes; mode++) {
        uint32_t inner = path | (uint32_t)mode << (TK_BASIS_BITS * depth);
        TK_TRY(invert_mode(group, kept, inner, depth + 1, one, out));
    }
    return TK_OK;
}

static tk_status invert(const tk_layout *layout, invert_one *one, tk_layout *out) {
    tk_moving moving[TK_LAYOUT_MAX_LEAVES];
    int count = tk_moving_leaves(layout, moving);
    uint32_t bases = 0;
    for (int i = 0; i < count; i++) bases |= moving[i].leaf.stride.basis;
    tk_layout_clear(out);
    if (bases) {
        TK_TRY(invert_mode(moving, count, 0, 0, one, out));
    } else {
        tk_sort_moving(moving, count);
        TK_TRY(one(moving, count, out));
    }
    return tk_layout_finish(out);
}

tk_status tk_layout_right_inverse(const tk_layout *layout, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    TK_TRY(check_static(layout, "right_inverse"));
    return invert(layout, right_one, out);
}

tk_status tk_layout_left_inverse(const tk_layout *layout, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    TK_TRY(check_static(layout, "left_inverse"));
    tk_collision collision;
    TK_TRY(tk_find_collision(layout, &collision));
    if (collision.found)
        return tk_fail(
            TK_SHAPE_ERROR,
            "no left inverse: the layout is not injective, coordinates %lld and %lld have "
            "one offset",
            (long long)collision.first, (long long)collision.second);
    return invert(layout, tk_invert_left, out);
}

/* -- The widest common vector --
 *
 * Let i run through the digits of b's right inverse, and let c(i) be its coordinate: how far is
 * a(c(i)) = i? Whole digits from the lowest up, then of the first that is not whole as many steps
 * as hold; behind these the digits below it from the highest down, each as far as it holds. What
 * holds for t steps holds for fewer, so each count is found by halving. */

/* The access in work: `whole` digits of the inverse from the lowest up, t of the next, all from
 * offset `base` on, whose coordinate is `start`. */
typedef struct access {
    const tk_layout *a, *inverse;
    int64_t size, base, start; /* size of a */
} access;

/* Does a take it to base, base + 1, ...? With a base, the access is a mode beside 2:start, and the
 * two add up. */
static bool is_vector(const access *v, int whole, int64_t t) {
    tk_layout places, offsets;
    tk_leaf kept[TK_LAYOUT_MAX_LEAVES];
    tk_term reach;
    int based = v->base > 0;
    tk_layout_clear(&places);
    tk_put_node(&places, (uint8_t)(whole + 1 + based));
    for (int i = 0; i <= whole; i++)
        tk_put_leaf(&places, i == whole ? tk_term_int(t) : v->inverse->leaf[i].shape,
                    v->inverse->leaf[i].stride);
    if (based) tk_put_leaf(&places, tk_term_int(2), tk_term_int(v->start));
    if (tk_layout_cosize(&places, &reach) != TK_OK || reach.value > v->size) return false;
    if (tk_layout_composition(v->a, &places, &offsets) != TK_OK) return false;
    int leaves = offsets.leaf_count - based;
    if (based && offsets.leaf[leaves].stride.value != v->base) return false;
    int count = tk_coalesce_leaves(offsets.leaf, leaves, false, kept);
    return count == 0 || (count == 1 && tk_term_is(kept[0].stride, 1));
}

/* The most of `extent` steps that hold; at least `good`. */
static int64_t count_steps(const access *v, int whole, int64_t good, int64_t extent) {
    for (int64_t bad = extent + 1; bad - good > 1;) {
        int64_t middle = good + (bad - good) / 2;
        if (is_vector(v, whole, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

tk_status tk_layout_max_common_vector(const tk_layout *a, const tk_layout *b, int64_t *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(a, "a"));
    TK_TRY(tk_check_layout(b, "b"));
    if (!tk_layout_is_plain(a) || !tk_layout_is_plain(b))
        return tk_fail(TK_UNSUPPORTED,
                       "max_common_vector needs static extents and integer strides");
    tk_layout inverse;
    tk_term size;
    int64_t block[TK_LAYOUT_MAX_LEAVES];
    TK_TRY(tk_layout_right_inverse(b, &inverse));
    TK_TRY(tk_layout_size(a, &size));
    access v = {a, &inverse, size.value, 0, 0};
    int leaf = 0;
    *out = 1;
    for (; leaf < inverse.leaf_count; leaf++) {
        int64_t extent = inverse.leaf[leaf].shape.value, steps = count_steps(&v, leaf, 1, extent);
        block[leaf] = *out;
        *out *= steps;
        if (steps == extent) continue;
        v.start = steps * inverse.leaf[leaf].stride.value;
        break;
    }
    for (v.base = *out; leaf < inverse.leaf_count && --leaf >= 0; v.base = *out) {
        int64_t steps = count_steps(&v, leaf, 0, inverse.leaf[leaf].shape.value);
        *out += steps * block[leaf];
        v.start += steps * inverse.leaf[leaf].stride.value;
    }
    return TK_OK;
}
