/* Coalesce and the other rearrangements: the same function, or the same image, in other clothes.
 *
 * A merge needs four static numbers. `(16,?):(8,128)` could be merged in theory, as 16*8 is 128,
 * but CuTe keeps dynamic modes apart on purpose (the extent stays an operand of its own), and so do
 * we. */
#include "layout/coalesce.h"
#include "base/alloc.h"
#include "layout/term.h"

static inline bool is_fixed(const tk_leaf *leaf) {
    return (leaf->shape.kind | leaf->stride.kind) == TK_TERM_STATIC;
}

/* Would the leaf b continue the leaf a? */
static inline bool continues(const tk_leaf *a, const tk_leaf *b) {
    int64_t expected;
    return is_fixed(a) && is_fixed(b) &&
           (a->stride.basis == b->stride.basis || (!a->stride.value && !b->stride.value)) &&
           !tk_mul_overflow_i64(a->shape.value, a->stride.value, &expected) &&
           expected == b->stride.value;
}

int tk_coalesce_leaves(const tk_leaf *leaf, int count, bool keep_tail, tk_leaf *out) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool unit = tk_term_is(leaf[i].shape, 1);
        if (unit && !(keep_tail && i + 1 == count)) continue;
        if (kept && continues(&out[kept - 1], &leaf[i]))
            out[kept - 1].shape.value *= leaf[i].shape.value;
        else
            out[kept++] = leaf[i];
    }
    return kept;
}

void tk_put_coalesced(tk_layout *out, const tk_leaf *leaf, int count) {
    if (count == 0) {
        tk_put_unit(out);
        return;
    }
    if (count > 1) tk_put_node(out, (uint8_t)count);
    for (int i = 0; i < count; i++) tk_put_leaf(out, leaf[i].shape, leaf[i].stride);
}

static void coalesce_part(tk_part part, tk_layout *out) {
    tk_leaf kept[TK_LAYOUT_MAX_LEAVES];
    int count = tk_coalesce_leaves(part.leaf, tk_tree_leaves(part.node), false, kept);
    tk_put_coalesced(out, kept, count);
}

static tk_status coalesce_profile(tk_part part, tk_span profile, tk_layout *out) {
    if (tk_span_is_leaf(profile)) {
        coalesce_part(part, out);
        return TK_OK;
    }
    int rank = tk_part_rank(part), given = tk_node_children(*profile.node);
    if (given > rank || *part.node == TK_NODE_LEAF)
        return tk_fail(TK_SHAPE_ERROR, "a profile of %d modes for a layout of %d", given, rank);
    tk_put_node(out, (uint8_t)rank);
    part = tk_part_first(part);
    profile = tk_span_first(profile);
    for (int i = 0; i < rank; i++, part = tk_part_next(part)) {
        if (i >= given) {
            tk_put_part(out, part);
            continue;
        }
        TK_TRY(coalesce_profile(part, profile, out));
        profile = tk_span_next(profile);
    }
    return TK_OK;
}

tk_status tk_layout_coalesce(const tk_layout *layout, const tk_tuple *profile, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    tk_layout_clear(out);
    if (!profile) {
        int count = tk_coalesce_leaves(layout->leaf, layout->leaf_count, false, out->leaf);
        if (count == 0) {
            tk_put_unit(out);
            return TK_OK;
        }
        if (count > 1) tk_put_node(out, (uint8_t)count);
        memset(out->node + out->node_count, TK_NODE_LEAF, (size_t)count);
        out->node_count = (uint8_t)(out->node_count + count);
        out->leaf_count = (uint8_t)count;
        return TK_OK;
    }
    TK_TRY(coalesce_profile(tk_part_of(layout), tk_span_of(profile), out));
    return tk_layout_finish(out);
}

tk_status tk_layout_flatten(const tk_layout *layout, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    tk_layout_clear(out);
    if (layout->node[0] != TK_NODE_LEAF) tk_put_node(out, layout->leaf_count);
    for (int i = 0; i < layout->leaf_count; i++)
        tk_put_leaf(out, layout->leaf[i].shape, layout->leaf[i].stride);
    return tk_layout_finish(out);
}

tk_status tk_layout_group(const tk_layout *layout, int begin, int end, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    int rank = tk_layout_rank(layout);
    if (begin < 0 || end < begin || end > rank)
        return tk_fail(TK_AXIS_ERROR, "modes [%d,%d) of a layout of rank %d", begin, end, rank);
    tk_layout_clear(out);
    tk_put_node(out, (uint8_t)(rank - (end - begin) + 1));
    tk_part part = tk_part_of(layout);
    if (*part.node != TK_NODE_LEAF) part = tk_part_first(part);
    for (int i = 0; i <= rank; i++) {
        if (i == begin) tk_put_node(out, (uint8_t)(end - begin));
        if (i == rank) break;
        tk_put_part(out, part);
        part = tk_part_next(part);
    }
    return tk_layout_finish(out);
}

tk_status tk_layout_select(const tk_layout *layout, const int *modes, int count, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    if (count > 0) TK_NEED(modes);
    if (count < 0 || count > TK_LAYOUT_MAX_LEAVES)
        return tk_fail(TK_INVALID_ARGUMENT, "%d modes to select: expected 0 to %d", count,
                       TK_LAYOUT_MAX_LEAVES);
    int rank = tk_layout_rank(layout);
    tk_layout_clear(out);
    tk_put_node(out, (uint8_t)count);
    for (int i = 0; i < count; i++) {
        if (modes[i] < 0 || modes[i] >= rank)
            return tk_fail(TK_AXIS_ERROR, "mode %d of a layout of rank %d", modes[i], rank);
        tk_put_part(out, tk_part_mode(tk_part_of(layout), modes[i]));
    }
    return tk_layout_finish(out);
}

tk_status tk_layout_filter(const tk_layout *layout, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    tk_leaf moving[TK_LAYOUT_MAX_LEAVES], kept[TK_LAYOUT_MAX_LEAVES];
    int count = 0;
    for (int i = 0; i < layout->leaf_count; i++)
        if (!tk_term_is(layout->leaf[i].stride, 0)) moving[count++] = layout->leaf[i];
    count = tk_coalesce_leaves(moving, count, false, kept);
    tk_layout_clear(out);
    tk_put_coalesced(out, kept, count);
    return tk_layout_finish(out);
}

tk_status tk_layout_filter_zeros(const tk_layout *layout, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    tk_layout_copy(layout, out);
    for (int i = 0; i < out->leaf_count; i++)
        if (tk_term_is(out->leaf[i].stride, 0)) out->leaf[i].shape = tk_term_int(1);
    return TK_OK;
}

static tk_status pad(const tk_layout *layout, int rank, const tk_layout *mode, bool behind,
                     tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    if (mode) TK_TRY(tk_check_layout(mode, "mode"));
    int have = tk_layout_rank(layout), missing = rank - have;
    if (missing < 0 || rank > TK_LAYOUT_MAX_LEAVES)
        return tk_fail(TK_SHAPE_ERROR, "rank %d asked of a layout of rank %d: expected %d to %d",
                       rank, have, have, TK_LAYOUT_MAX_LEAVES);
    if (missing == 0) {
        tk_layout_copy(layout, out);
        return TK_OK;
    }
    tk_layout_clear(out);
    tk_put_node(out, (uint8_t)rank);
    if (behind) tk_put_modes(out, tk_part_of(layout));
    for (int i = 0; i < missing; i++) {
        if (mode)
            tk_put_part(out, tk_part_of(mode));
        else
            tk_put_unit(out);
    }
    if (!behind) tk_put_modes(out, tk_part_of(layout));
    return tk_layout_finish(out);
}

tk_status tk_layout_append(const tk_layout *layout, int rank, const tk_layout *mode,
                           tk_layout *out) {
    return pad(layout, rank, mode, true, out);
}
tk_status tk_layout_prepend(const tk_layout *layout, int rank, const tk_layout *mode,
                            tk_layout *out) {
    return pad(layout, rank, mode, false, out);
}

static tk_status choose(const tk_layout *layout, const tk_tuple *coord, bool wild, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    TK_TRY(tk_check_tuple(coord, "coord"));
    tk_tuple shape, stride, kept_shape, kept_stride;
    tk_layout_shape(layout, &shape);
    tk_layout_stride(layout, &stride);
    if (wild) {
        TK_TRY(tk_tuple_slice(&shape, coord, &kept_shape));
        TK_TRY(tk_tuple_slice(&stride, coord, &kept_stride));
    } else {
        TK_TRY(tk_tuple_dice(&shape, coord, &kept_shape));
        TK_TRY(tk_tuple_dice(&stride, coord, &kept_stride));
    }
    return tk_layout_make(&kept_shape, &kept_stride, out);
}

tk_status tk_layout_slice(const tk_layout *layout, const tk_tuple *coord, tk_layout *out) {
    return choose(layout, coord, true, out);
}
tk_status tk_layout_dice(const tk_layout *layout, const tk_tuple *coord, tk_layout *out) {
    return choose(layout, coord, false, out);
}
