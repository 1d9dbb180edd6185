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

/* -- The widest common vector -- */

/* Coordinates beyond whole steps that are looked at one by one. */
#define PARTIAL_LIMIT ((int64_t)1 << 20)

/* Does a take the first leaves of b's right inverse, the last cut to t steps, to 0, 1, 2, ...? */
static bool is_vector(const tk_layout *a, int64_t size, const tk_layout *inverse, int leaves,
                      int64_t t) {
    tk_layout access, offsets;
    tk_leaf whole[TK_LAYOUT_MAX_LEAVES];
    tk_term reach;
    tk_layout_clear(&access);
    tk_put_node(&access, (uint8_t)leaves);
    for (int i = 0; i < leaves; i++) {
        tk_term extent = i + 1 == leaves ? tk_term_int(t) : inverse->leaf[i].shape;
        tk_put_leaf(&access, extent, inverse->leaf[i].stride);
    }
    if (tk_layout_cosize(&access, &reach) != TK_OK || reach.value > size) return false;
    if (tk_layout_composition(a, &access, &offsets) != TK_OK) return false;
    int count = tk_coalesce_leaves(offsets.leaf, offsets.leaf_count, false, whole);
    return count == 0 || (count == 1 && tk_term_is(whole[0].stride, 1));
}

/* The most steps of the last leaf, by halving: what holds for t steps holds for fewer. */
static int64_t count_steps(const tk_layout *a, int64_t size, const tk_layout *inverse, int leaves) {
    int64_t good = 1, bad = inverse->leaf[leaves - 1].shape.value + 1;
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (is_vector(a, size, inverse, leaves, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* The first offset from `reached` on that a does not reach by b's coordinate. */
static int64_t count_partial(const tk_layout *a, int64_t size, const tk_layout *inverse,
                             int64_t reached, int64_t most) {
    if (most - reached > PARTIAL_LIMIT) most = reached + PARTIAL_LIMIT;
    for (; reached < most; reached++) {
        int64_t coord = tk_layout_at(inverse, reached);
        if (coord >= size || tk_layout_at(a, coord) != reached) break;
    }
    return reached;
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
    TK_TRY(tk_layout_right_inverse(b, &inverse));
    TK_TRY(tk_layout_size(a, &size));
    *out = 1;
    for (int leaves = 1; leaves <= inverse.leaf_count; leaves++) {
        int64_t extent = inverse.leaf[leaves - 1].shape.value, block = *out;
        int64_t steps = count_steps(a, size.value, &inverse, leaves);
        *out = block * steps;
        if (steps == extent) continue;
        *out = count_partial(a, size.value, &inverse, *out, *out + block);
        break;
    }
    return TK_OK;
}
