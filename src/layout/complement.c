/* Complement, and the questions about the image of a layout: injective, compact, nullspace. */
#include "layout/coalesce.h"
#include "layout/image.h"
#include "layout/term.h"

int tk_moving_leaves(const tk_layout *layout, tk_moving *out) {
    int count = 0;
    int64_t prefix = 1;
    for (int i = 0; i < layout->leaf_count; i++) {
        tk_leaf leaf = layout->leaf[i];
        bool moves = !tk_term_is(leaf.shape, 1) && !tk_term_is(leaf.stride, 0);
        if (moves) out[count++] = (tk_moving){leaf, prefix, i};
        prefix = (int64_t)((uint64_t)prefix * (uint64_t)leaf.shape.value);
    }
    return count;
}

/* Does x come before y? */
static bool is_before(const tk_moving *x, const tk_moving *y) {
    const tk_term *p = &x->leaf.stride, *q = &y->leaf.stride;
    if (p->kind != q->kind) return p->kind < q->kind;
    if (p->value != q->value) return p->value < q->value;
    if (x->leaf.shape.value != y->leaf.shape.value)
        return x->leaf.shape.value < y->leaf.shape.value;
    return x->index < y->index;
}

/* By insertion: there are few leaves, and most layouts are nearly sorted. */
void tk_sort_moving(tk_moving *leaf, int count) {
    for (int i = 1; i < count; i++) {
        tk_moving moved = leaf[i];
        int at = i;
        for (; at > 0 && is_before(&moved, &leaf[at - 1]); at--) leaf[at] = leaf[at - 1];
        leaf[at] = moved;
    }
}

/* An unknown extent may be 1, and then the leaf does not count. */
static bool may_be_one(tk_term extent) {
    return extent.kind != TK_TERM_STATIC && extent.value == 1;
}

/* Does the leaf start at a multiple of what the leaves below it span? `sure` if both that leaf and
 * the last one below it certainly count. */
static tk_status check_step(const tk_leaf *leaf, int index, tk_term span, bool sure) {
    if (leaf->stride.basis)
        return tk_fail(TK_UNSUPPORTED, "stride %s of leaf %d: the complement needs integer strides",
                       tk_term_show(leaf->stride).text, index);
    if (leaf->stride.value < 0)
        return tk_fail(TK_SHAPE_ERROR,
                       "stride %lld of leaf %d: the complement needs strides that "
                       "are not negative",
                       (long long)leaf->stride.value, index);
    tk_proof proof = tk_term_divides(span, leaf->stride);
    if (proof == TK_PROVEN) return TK_OK;
    if (proof == TK_OPEN || !sure)
        return tk_fail(TK_UNSUPPORTED,
                       "missing fact: %s divides %s%s (the span of the leaves below "
                       "the stride of leaf %d)",
                       tk_term_show(span).text, tk_term_show(leaf->stride).text,
                       proof == TK_OPEN ? "" : ", or which unknown extent is 1", index);
    if (leaf->stride.value < span.value)
        return tk_fail(
            TK_SHAPE_ERROR,
            "no complement: leaf %d, %s:%s, starts inside the leaves below it, which span "
            "%lld: at coordinate 1 of that leaf the offset is %lld",
            index, tk_term_show(leaf->shape).text, tk_term_show(leaf->stride).text,
            (long long)span.value, (long long)leaf->stride.value);
    return tk_fail(TK_SHAPE_ERROR,
                   "no complement: stride %lld of leaf %d is no multiple of %lld, the span of the "
                   "leaves below it: offset %lld would not be reached",
                   (long long)leaf->stride.value, index, (long long)span.value,
                   (long long)(leaf->stride.value / span.value * span.value));
}

static tk_status complement_any(const tk_layout *layout, tk_term cotarget, tk_leaf *gap,
                                int *out_gaps) {
    tk_moving moving[TK_LAYOUT_MAX_LEAVES];
    int count = tk_moving_leaves(layout, moving), gaps = 0;
    tk_term span = tk_term_int(1);
    tk_sort_moving(moving, count);
    for (int i = 0; i < count; i++) {
        bool sure =
            !may_be_one(moving[i].leaf.shape) && (i == 0 || !may_be_one(moving[i - 1].leaf.shape));
        TK_TRY(check_step(&moving[i].leaf, moving[i].index, span, sure));
        gap[gaps++] = (tk_leaf){tk_term_ceil_div(moving[i].leaf.stride, span), span};
        TK_TRY(tk_term_mul(moving[i].leaf.shape, moving[i].leaf.stride, &span));
    }
    gap[gaps++] = (tk_leaf){tk_term_ceil_div(cotarget, span), span};
    *out_gaps = gaps;
    return TK_OK;
}

/* The moving leaves as plain numbers, by stride and extent; -1 if some are not plain, or go down.
 */
static int sort_plain(const tk_layout *layout, int64_t *extent, int64_t *stride) {
    int count = 0;
    for (int i = 0; i < layout->leaf_count; i++) {
        const tk_leaf *leaf = &layout->leaf[i];
        int64_t n = leaf->shape.value, d = leaf->stride.value;
        if ((leaf->shape.kind | leaf->stride.kind | leaf->stride.basis) || d < 0) return -1;
        if (n == 1 || d == 0) continue;
        int at = count++;
        for (; at > 0 && (d < stride[at - 1] || (d == stride[at - 1] && n < extent[at - 1]));
             at--) {
            stride[at] = stride[at - 1];
            extent[at] = extent[at - 1];
        }
        stride[at] = d;
        extent[at] = n;
    }
    return count;
}

/* Leaves already in place as the result of a coalesce. */
static void put_tree(tk_layout *out, int leaves) {
    if (leaves == 0) {
        tk_put_unit(out);
        return;
    }
    int root = leaves > 1;
    if (root) out->node[0] = (uint8_t)leaves;
    memset(out->node + root, TK_NODE_LEAF, (size_t)leaves);
    out->node_count = (uint8_t)(leaves + root);
    out->leaf_count = (uint8_t)leaves;
}

/* The complement of plain numbers, for inner loops; false where anything is not plain or not right:
 * then the general road answers or refuses. Gaps are never neighbours of each other, since a moving
 * leaf lies between, so they are coalesced; size and span stay below span + cotarget. */
static bool complement_plain(const tk_layout *layout, int64_t cotarget, tk_layout *out) {
    int64_t extent[TK_LAYOUT_MAX_LEAVES], stride[TK_LAYOUT_MAX_LEAVES], span = 1, rest, most;
    int count = sort_plain(layout, extent, stride), gaps = 0;
    if (count < 0) return false;
    for (int i = 0; i < count; i++) {
        int64_t times = tk_div_fast(stride[i], span, &rest);
        if (rest) return false;
        if (times > 1) out->leaf[gaps++] = (tk_leaf){tk_term_int(times), tk_term_int(span)};
        if (tk_mul_overflow_i64(extent[i], stride[i], &span)) return false;
    }
    int64_t times = tk_div_fast(cotarget, span, &rest) + (rest != 0);
    if (times > 1) out->leaf[gaps++] = (tk_leaf){tk_term_int(times), tk_term_int(span)};
    put_tree(out, gaps);
    return !tk_add_overflow_i64(span, cotarget, &most);
}

tk_status tk_layout_complement(const tk_layout *layout, tk_term cotarget, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    if (cotarget.basis || cotarget.kind == TK_TERM_ANY || cotarget.value < 1)
        return tk_fail(TK_SHAPE_ERROR, "cotarget %s: expected an integer of at least 1",
                       tk_term_show(cotarget).text);
    tk_layout_clear(out);
    if (!cotarget.kind && complement_plain(layout, cotarget.value, out)) return TK_OK;
    tk_leaf gap[TK_LAYOUT_MAX_LEAVES + 1], kept[TK_LAYOUT_MAX_LEAVES + 1];
    int gaps;
    TK_TRY(complement_any(layout, cotarget, gap, &gaps));
    gaps = tk_coalesce_leaves(gap, gaps, false, kept);
    tk_layout_clear(out);
    tk_put_coalesced(out, kept, gaps);
    return tk_layout_finish(out);
}

tk_status tk_layout_nullspace(const tk_layout *layout, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    tk_leaf still[TK_LAYOUT_MAX_LEAVES];
    tk_term prefix = tk_term_int(1);
    int count = 0;
    for (int i = 0; i < layout->leaf_count; i++) {
        tk_leaf leaf = {layout->leaf[i].shape, prefix};
        if (tk_term_is(layout->leaf[i].stride, 0) && !tk_term_is(leaf.shape, 1))
            still[count++] = leaf;
        TK_TRY(tk_term_mul(prefix, leaf.shape, &prefix));
    }
    tk_layout_clear(out);
    tk_put_coalesced(out, still, count);
    return tk_layout_finish(out);
}

/* -- Injective and compact -- */

static tk_status check_static(const tk_layout *layout, const char *operation) {
    if (tk_layout_is_static(layout)) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "%s needs a static layout", operation);
}

/* Leaves sorted by |stride| such that each passes all that the smaller ones reach together. */
static bool is_superincreasing(tk_moving *leaf, int count) {
    int64_t reach = 0;
    for (int i = 0; i < count; i++)
        if (leaf[i].leaf.stride.value < 0) leaf[i].leaf.stride.value *= -1;
    tk_sort_moving(leaf, count);
    for (int i = 0; i < count; i++) {
        if (leaf[i].leaf.stride.value <= reach) return false;
        reach += (leaf[i].leaf.shape.value - 1) * leaf[i].leaf.stride.value;
    }
    return true;
}

/* The coordinates on the two sides of `sum of y * stride = 0`. */
static void split_sides(const tk_moving *leaf, const int64_t *y, int count, tk_collision *out) {
    *out = (tk_collision){true, 0, 0};
    for (int i = 0; i < count; i++) {
        if (y[i] > 0) out->first += y[i] * leaf[i].prefix;
        if (y[i] < 0) out->second -= y[i] * leaf[i].prefix;
    }
    if (out->first < out->second) return;
    int64_t kept = out->first;
    out->first = out->second;
    out->second = kept;
}

/* Steps that lead back to where they started, by choosing them stride by stride: of leaf `top` at
 * least one forward, of the leaves before it any number in both directions. */
static tk_proof search_steps(const tk_moving *leaf, int count, int64_t *y) {
    tk_steps steps;
    for (int i = 0; i < count; i++) {
        steps.stride[i] = leaf[i].leaf.stride.value;
        steps.high[i] = leaf[i].leaf.shape.value - 1;
        steps.low[i] = -steps.high[i];
        y[i] = 0;
    }
    for (int top = 0; top < count; top++) {
        steps.count = top + 1;
        steps.low[top] = 1;
        tk_proof found = tk_find_steps(&steps, 0, y);
        if (found != TK_REFUTED) return found;
        steps.low[top] = -steps.high[top];
        y[top] = 0;
    }
    return TK_REFUTED;
}

static tk_status search_collision(const tk_moving *leaf, int count, tk_collision *out) {
    int64_t stride[TK_LAYOUT_MAX_LEAVES], most[TK_LAYOUT_MAX_LEAVES], y[TK_LAYOUT_MAX_LEAVES];
    for (int i = 0; i < count; i++) {
        stride[i] = leaf[i].leaf.stride.value;
        most[i] = leaf[i].leaf.shape.value - 1;
    }
    tk_proof found = tk_find_relation(stride, most, count, y);
    if (found == TK_OPEN) found = search_steps(leaf, count, y);
    if (found == TK_PROVEN) split_sides(leaf, y, count, out);
    if (found == TK_OPEN)
        return tk_fail(TK_UNSUPPORTED,
                       "undecided: %d leaves overlap, and no two coordinates of one offset "
                       "were found in some millions of tries",
                       count);
    return TK_OK;
}

/* Two leaves that meet: so many steps of one are so many of the other. Cheap, and most overlaps are
 * so. */
static bool pair_collides(const tk_moving *leaf, int count, tk_collision *out) {
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            int64_t a = leaf[i].leaf.stride.value, b = leaf[j].leaf.stride.value;
            if ((a < 0) != (b < 0)) continue;
            int64_t common = tk_gcd(a, b), steps_i = b / common, steps_j = a / common;
            if (steps_i < 0) steps_i = -steps_i, steps_j = -steps_j;
            if (steps_i >= leaf[i].leaf.shape.value || steps_j >= leaf[j].leaf.shape.value)
                continue;
            int64_t first = steps_j * leaf[j].prefix, second = steps_i * leaf[i].prefix;
            *out = (tk_collision){true, first < second ? first : second,
                                  first < second ? second : first};
            return true;
        }
    return false;
}

/* The greatest common divisor of strides of leaves from `first` on is above all that those before
 * reach together: two coordinates of one offset then agree in what the first ones reach, and in
 * what the others do. */
static bool is_apart(const tk_moving *leaf, int count, int first, int64_t reach) {
    int64_t divisor = 0;
    for (int i = first; i < count; i++) divisor = tk_gcd(divisor, leaf[i].leaf.stride.value);
    return divisor > reach;
}

static void sort_by_size(tk_moving *leaf, int count) {
    tk_moving plain[TK_LAYOUT_MAX_LEAVES], kept[TK_LAYOUT_MAX_LEAVES];
    for (int i = 0; i < count; i++) {
        plain[i] = kept[i] = leaf[i];
        plain[i].index = i;
        if (plain[i].leaf.stride.value < 0) plain[i].leaf.stride.value *= -1;
    }
    tk_sort_moving(plain, count);
    for (int i = 0; i < count; i++) leaf[i] = kept[plain[i].index];
}

/* Leaves in groups that cannot meet each other, each searched alone. */
static tk_status search_groups(tk_moving *leaf, int count, tk_collision *out) {
    int64_t reach = 0;
    sort_by_size(leaf, count);
    for (int i = 0, first = 0; i < count && !out->found; i++) {
        int64_t stride = leaf[i].leaf.stride.value;
        reach += (leaf[i].leaf.shape.value - 1) * (stride < 0 ? -stride : stride);
        if (i + 1 < count && !is_apart(leaf, count, i + 1, reach)) continue;
        if (i > first) TK_TRY(search_collision(leaf + first, i + 1 - first, out));
        first = i + 1;
    }
    return TK_OK;
}

/* The leaves of one basis cannot meet those of another, so each basis is judged alone. */
static tk_status find_in_basis(const tk_moving *all, int count, uint32_t basis, tk_collision *out) {
    tk_moving leaf[TK_LAYOUT_MAX_LEAVES], sorted[TK_LAYOUT_MAX_LEAVES];
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (all[i].leaf.stride.basis == basis) leaf[kept++] = all[i];
    memcpy(sorted, leaf, (size_t)kept * sizeof *leaf);
    out->found = false;
    if (is_superincreasing(sorted, kept) || pair_collides(leaf, kept, out)) return TK_OK;
    return search_groups(leaf, kept, out);
}

tk_status tk_find_collision(const tk_layout *layout, tk_collision *out) {
    TK_TRY(check_static(layout, "a test for two coordinates of one offset"));
    int64_t prefix = 1;
    for (int i = 0; i < layout->leaf_count; i++) {
        tk_leaf leaf = layout->leaf[i];
        if (leaf.stride.value == 0 && leaf.shape.value > 1) {
            *out = (tk_collision){true, 0, prefix};
            return TK_OK;
        }
        prefix *= leaf.shape.value;
    }
    tk_moving moving[TK_LAYOUT_MAX_LEAVES];
    int count = tk_moving_leaves(layout, moving);
    out->found = false;
    for (int i = 0; i < count && !out->found; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen |= moving[j].leaf.stride.basis == moving[i].leaf.stride.basis;
        if (!seen) TK_TRY(find_in_basis(moving, count, moving[i].leaf.stride.basis, out));
    }
    return TK_OK;
}

tk_status tk_layout_is_injective(const tk_layout *layout, bool *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    tk_collision collision;
    TK_TRY(tk_find_collision(layout, &collision));
    *out = !collision.found;
    return TK_OK;
}

tk_status tk_layout_is_compact(const tk_layout *layout, bool *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    TK_TRY(check_static(layout, "a test for compactness"));
    tk_moving moving[TK_LAYOUT_MAX_LEAVES];
    int count = tk_moving_leaves(layout, moving);
    tk_sort_moving(moving, count);
    int64_t span = 1;
    *out = true;
    for (int i = 0; i < count && *out; i++) {
        tk_leaf leaf = moving[i].leaf;
        *out = !leaf.stride.basis && leaf.stride.value == span;
        span *= leaf.shape.value;
    }
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].stride.value == 0 && layout->leaf[i].shape.value > 1) *out = false;
    return TK_OK;
}
