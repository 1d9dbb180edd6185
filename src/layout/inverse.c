/* Right and left inverse, and the widest vector that two layouts share.
 *
 * Basis strides are inverted basis by basis, each as a mode of its own. For one basis:
 *
 * The right inverse chains leaves whose strides are the running product 1, s, s*s', ... A leaf may
 * be followed by any leaf that starts where it ends, so with equal strides there is a choice; the
 * best chain from each leaf depends only on where the leaf ends, so one pass from large strides to
 * small finds the longest. (CuTe takes the first; where strides differ the two agree.)
 *
 * The left inverse splits an offset at the strides, d_1 | d_2 | ..., and gives each digit the
 * prefix product of its leaf. Where the strides do not divide each other, other splits can still
 * work: (2,2):(2,3) is inverted by (2,3):(1,1). They are searched among the strides and their
 * common divisors, and each candidate is proved by composition. */
#include "layout/coalesce.h"
#include "layout/image.h"
#include "layout/term.h"

/* Points where the search may split an offset. More would rarely help and 2^n sets are tried. */
#define MAX_SPLITS 12

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
        for (int j = i + 1; j < count && fits; j++) {
            bool better = next[i] < 0 || best[j] > best[next[i]] ||
                          (best[j] == best[next[i]] && leaf[j].index < leaf[next[i]].index);
            if (leaf[j].leaf.stride.value == end && better) next[i] = j;
        }
        best[i] = leaf[i].leaf.shape.value * (next[i] < 0 ? 1 : best[next[i]]);
    }
    for (int i = 0; i < count; i++)
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

/* -- Left inverse of one basis -- */

static tk_status check_leaves(const tk_moving *leaf, int count) {
    for (int i = 0; i < count; i++)
        if (leaf[i].leaf.stride.value < 0)
            return tk_fail(TK_SHAPE_ERROR,
                           "stride %lld of leaf %d: a left inverse needs strides that "
                           "are not negative",
                           (long long)leaf[i].leaf.stride.value, leaf[i].index);
    return TK_OK;
}

/* A split of offsets at `at[0] = 1 | at[1] | ...`, with the stride of each digit. */
typedef struct split {
    int count;
    int64_t at[TK_LAYOUT_MAX_LEAVES + 1];
    int64_t stride[TK_LAYOUT_MAX_LEAVES + 1];
    bool known[TK_LAYOUT_MAX_LEAVES + 1];
} split;

static int put_split(const split *s, int64_t last_extent, tk_leaf *out) {
    tk_leaf digit[TK_LAYOUT_MAX_LEAVES + 1];
    for (int i = 0; i < s->count; i++) {
        int64_t extent = i + 1 < s->count ? s->at[i + 1] / s->at[i] : last_extent;
        digit[i] = (tk_leaf){tk_term_int(extent), tk_term_int(s->stride[i])};
    }
    return tk_coalesce_leaves(digit, s->count, false, out);
}

/* The direct form: each stride divides the next and no leaf reaches into the next. */
static bool split_direct(const tk_moving *leaf, int count, split *out) {
    out->count = 0;
    if (count == 0 || leaf[0].leaf.stride.value > 1) {
        out->at[0] = 1;
        out->stride[0] = 0;
        out->count = 1;
    }
    for (int i = 0; i < count; i++) {
        int64_t stride = leaf[i].leaf.stride.value, end;
        if (i + 1 < count) {
            int64_t above = leaf[i + 1].leaf.stride.value;
            if (above % stride || tk_mul_overflow_i64(stride, leaf[i].leaf.shape.value, &end) ||
                end > above)
                return false;
        }
        out->at[out->count] = stride;
        out->stride[out->count++] = leaf[i].prefix;
    }
    return true;
}

static int64_t digit_at(const split *s, int64_t offset, int i) {
    int64_t digit = offset / s->at[i];
    return i + 1 < s->count ? digit % (s->at[i + 1] / s->at[i]) : digit;
}

/* Strides from `sum of digits * strides = prefix` for each leaf, one unknown at a time. */
static bool solve_split(const tk_moving *leaf, int count, split *s) {
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < count; i++) {
            int64_t rest = leaf[i].prefix, digit;
            int unknown = -1, unknowns = 0;
            for (int j = 0; j < s->count; j++) {
                digit = digit_at(s, leaf[i].leaf.stride.value, j);
                if (s->known[j])
                    rest = (int64_t)((uint64_t)rest - (uint64_t)digit * (uint64_t)s->stride[j]);
                else if (digit)
                    unknown = j, unknowns++;
            }
            if (unknowns == 0 && rest) return false;
            if (unknowns != 1) continue;
            digit = digit_at(s, leaf[i].leaf.stride.value, unknown);
            if (rest % digit) return false;
            s->stride[unknown] = rest / digit;
            s->known[unknown] = progress = true;
        }
    }
    return true;
}

/* Is `inverse` a left inverse? Composed with the leaves it must count 0, 1, 2, ... in their order.
 */
static bool inverts(const tk_layout *inverse, const tk_moving *leaf, int count) {
    tk_layout forward, back;
    tk_layout_clear(&forward);
    tk_put_node(&forward, (uint8_t)count);
    for (int i = 0; i < count; i++) {
        tk_term stride = tk_term_int(leaf[i].leaf.stride.value);
        tk_put_leaf(&forward, leaf[i].leaf.shape, stride);
    }
    if (tk_layout_composition(inverse, &forward, &back) != TK_OK) return false;
    tk_part mode = tk_part_first(tk_part_of(&back));
    for (int i = 0; i < count; i++, mode = tk_part_next(mode)) {
        tk_leaf whole[TK_LAYOUT_MAX_LEAVES];
        int pieces = tk_coalesce_leaves(mode.leaf, tk_tree_leaves(mode.node), false, whole);
        if (pieces != 1 || whole[0].stride.value != leaf[i].prefix) return false;
    }
    return true;
}

/* Strides and their common divisors above 1, increasing. */
static int collect_splits(const tk_moving *leaf, int count, int64_t *out) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        for (int j = i; j < count && found < MAX_SPLITS; j++) {
            int64_t value = tk_gcd(leaf[i].leaf.stride.value, leaf[j].leaf.stride.value);
            int at = 0;
            while (at < found && out[at] < value) at++;
            if (value < 2 || (at < found && out[at] == value)) continue;
            memmove(out + at + 1, out + at, (size_t)(found - at) * sizeof *out);
            out[at] = value;
            found++;
        }
    }
    return found;
}

static bool try_splits(const tk_moving *leaf, int count, const int64_t *point, int points,
                       unsigned chosen, bool negative, tk_layout *out) {
    split s = {.count = 1, .at = {1}};
    for (int i = 0; i < points; i++) {
        if (!(chosen >> i & 1)) continue;
        if (point[i] % s.at[s.count - 1]) return false;
        s.at[s.count] = point[i];
        s.stride[s.count] = 0;
        s.known[s.count++] = false;
    }
    if (!solve_split(leaf, count, &s)) return false;
    for (int i = 0; i < s.count; i++)
        if (s.stride[i] < 0 && !negative) return false;
    int64_t reach = 0;
    for (int i = 0; i < count; i++)
        reach += (leaf[i].leaf.shape.value - 1) * leaf[i].leaf.stride.value;
    tk_leaf kept[TK_LAYOUT_MAX_LEAVES + 1];
    int leaves = put_split(&s, reach / s.at[s.count - 1] + 1, kept);
    tk_layout_clear(out);
    tk_put_coalesced(out, kept, leaves);
    return tk_layout_finish(out) == TK_OK && inverts(out, leaf, count);
}

static tk_status search_left(const tk_moving *leaf, int count, tk_layout *out) {
    int64_t point[MAX_SPLITS];
    int points = collect_splits(leaf, count, point);
    for (int negative = 0; negative < 2; negative++)
        for (unsigned chosen = 0; chosen < 1u << points; chosen++)
            if (try_splits(leaf, count, point, points, chosen, negative, out)) return TK_OK;
    return tk_fail(TK_UNSUPPORTED,
                   "no left inverse was found: the strides do not divide each other, "
                   "and no split at them or at their common divisors inverts them");
}

static tk_status left_one(const tk_moving *leaf, int count, tk_layout *out) {
    TK_TRY(check_leaves(leaf, count));
    split direct;
    tk_leaf kept[TK_LAYOUT_MAX_LEAVES + 1];
    if (split_direct(leaf, count, &direct)) {
        int64_t last = count ? leaf[count - 1].leaf.shape.value : 1;
        int leaves = put_split(&direct, last, kept);
        tk_put_coalesced(out, kept, leaves);
        return TK_OK;
    }
    tk_layout found;
    TK_TRY(search_left(leaf, count, &found));
    tk_put_part(out, tk_part_of(&found));
    return TK_OK;
}

/* -- All bases -- */

typedef tk_status invert_one(const tk_moving *leaf, int count, tk_layout *out);

/* The leaves of one basis, sorted by stride. */
static int select_basis(const tk_moving *all, int count, uint32_t basis, tk_moving *out) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (all[i].leaf.stride.basis == basis) out[kept++] = all[i];
    tk_sort_moving(out, kept);
    return kept;
}

static tk_status invert(const tk_layout *layout, invert_one *one, tk_layout *out) {
    tk_moving moving[TK_LAYOUT_MAX_LEAVES], group[TK_LAYOUT_MAX_LEAVES];
    int count = tk_moving_leaves(layout, moving), modes = 0, plain = 0;
    for (int i = 0; i < count; i++) {
        uint32_t basis = moving[i].leaf.stride.basis;
        if (basis >> TK_BASIS_BITS)
            return tk_fail(TK_UNSUPPORTED, "stride %s: an inverse takes basis vectors of one level",
                           tk_term_show(moving[i].leaf.stride).text);
        if ((int)basis > modes) modes = (int)basis;
        plain += basis == 0;
    }
    if (modes && plain) return tk_fail(TK_SHAPE_ERROR, "strides mix integers and basis vectors");
    tk_layout_clear(out);
    if (!modes) {
        int kept = select_basis(moving, count, 0, group);
        TK_TRY(one(group, kept, out));
        return tk_layout_finish(out);
    }
    tk_put_node(out, (uint8_t)modes);
    for (int mode = 1; mode <= modes; mode++) {
        int kept = select_basis(moving, count, (uint32_t)mode, group);
        TK_TRY(one(group, kept, out));
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
    return invert(layout, left_one, out);
}

/* -- The widest common vector -- */

/* Do the first leaves of b's right inverse, the last cut to t, stay in a and give consecutive
 * offsets? */
static bool is_vector(const tk_layout *a, const tk_layout *inverse, int leaves, int64_t t,
                      int64_t *out_size) {
    tk_layout access, offsets, whole;
    tk_layout_clear(&access);
    tk_put_node(&access, (uint8_t)leaves);
    tk_term size, reach;
    *out_size = 1;
    for (int i = 0; i < leaves; i++) {
        tk_term extent = i + 1 == leaves ? tk_term_int(t) : inverse->leaf[i].shape;
        tk_put_leaf(&access, extent, inverse->leaf[i].stride);
        *out_size *= extent.value;
    }
    return tk_layout_size(a, &size) == TK_OK && tk_layout_cosize(&access, &reach) == TK_OK &&
           reach.value <= size.value && tk_layout_composition(a, &access, &offsets) == TK_OK &&
           tk_layout_coalesce(&offsets, NULL, &whole) == TK_OK && whole.leaf_count == 1 &&
           (whole.leaf[0].shape.value == 1 || tk_term_is(whole.leaf[0].stride, 1));
}

/* The most steps of the last leaf that still make a vector. A is asked where its own run ends;
 * where it gives no answer, vectors of up to 4096 elements are tried. */
static int64_t widest_part(const tk_layout *a, const tk_layout *inverse, int leaves,
                           int64_t *out_size) {
    tk_leaf last = inverse->leaf[leaves - 1];
    int64_t extent = last.shape.value;
    if (is_vector(a, inverse, leaves, extent, out_size)) return extent;
    tk_layout access, offsets, whole;
    tk_layout_clear(&access);
    tk_put_leaf(&access, last.shape, last.stride);
    if (tk_layout_composition(a, &access, &offsets) == TK_OK &&
        tk_layout_coalesce(&offsets, NULL, &whole) == TK_OK && whole.leaf_count > 1 &&
        is_vector(a, inverse, leaves, whole.leaf[0].shape.value, out_size))
        return whole.leaf[0].shape.value;
    for (int64_t t = extent < 4096 ? extent - 1 : 4096; t > 1; t--)
        if (extent % t == 0 && is_vector(a, inverse, leaves, t, out_size)) return t;
    return 1;
}

tk_status tk_layout_max_common_vector(const tk_layout *a, const tk_layout *b, int64_t *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(a, "a"));
    TK_TRY(tk_check_layout(b, "b"));
    if (!tk_layout_is_plain(a) || !tk_layout_is_plain(b))
        return tk_fail(TK_UNSUPPORTED,
                       "max_common_vector needs static extents and integer strides");
    tk_layout inverse;
    TK_TRY(tk_layout_right_inverse(b, &inverse));
    *out = 1;
    for (int leaves = 1; leaves <= inverse.leaf_count; leaves++) {
        int64_t extent = inverse.leaf[leaves - 1].shape.value, size = 1;
        int64_t t = widest_part(a, &inverse, leaves, &size);
        if (t > 1) *out = size;
        if (t < extent) break;
    }
    return TK_OK;
}
