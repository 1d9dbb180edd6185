/* Layouts from shapes, strides and orders; the parts of a layout. */
#include "base/hash.h"
#include "layout/term.h"
#include "layout/tree.h"

tk_status tk_layout_make(const tk_tuple *shape, const tk_tuple *stride, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(shape, "shape"));
    TK_TRY(tk_check_tuple(stride, "stride"));
    if (!tk_tuple_congruent(shape, stride)) {
        char left[256], right[256];
        tk_tuple_print(shape, left, sizeof left);
        tk_tuple_print(stride, right, sizeof right);
        return tk_fail(TK_SHAPE_ERROR, "shape %s and stride %s have different structures", left,
                       right);
    }
    tk_layout_clear(out);
    out->node_count = shape->node_count;
    out->leaf_count = shape->leaf_count;
    memcpy(out->node, shape->node, shape->node_count);
    for (int i = 0; i < shape->leaf_count; i++) {
        if (stride->leaf[i].kind == TK_TERM_ANY)
            return tk_fail(TK_SHAPE_ERROR, "stride %d is a wildcard", i);
        out->leaf[i].shape = shape->leaf[i];
        out->leaf[i].stride = stride->leaf[i];
    }
    return tk_layout_finish(out);
}

tk_status tk_layout_from_shape(const tk_tuple *shape, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(shape, "shape"));
    tk_tuple stride;
    tk_tuple_copy(shape, &stride);
    tk_term running = tk_term_int(1);
    for (int i = 0; i < shape->leaf_count; i++) {
        stride.leaf[i] = running;
        TK_TRY(tk_term_mul(running, shape->leaf[i], &running));
    }
    return tk_layout_make(shape, &stride, out);
}

tk_status tk_layout_from_ints(int rank, const int64_t *shape, const int64_t *stride,
                              tk_layout *out) {
    TK_NEED(out);
    if (rank > 0) TK_NEED(shape, stride);
    if (rank < 0 || rank > TK_LAYOUT_MAX_LEAVES)
        return tk_fail(TK_INVALID_ARGUMENT, "rank %d: expected 0 to %d", rank,
                       TK_LAYOUT_MAX_LEAVES);
    tk_layout_clear(out);
    tk_put_node(out, (uint8_t)rank);
    for (int i = 0; i < rank; i++) tk_put_leaf(out, tk_term_int(shape[i]), tk_term_int(stride[i]));
    return tk_layout_finish(out);
}

/* Gives the leaves strides in the order of their keys: repeatedly the smallest key not used yet. */
static tk_status stride_by_key(const tk_tuple *shape, const int64_t *key, const bool *skip,
                               tk_layout *out) {
    bool done[TK_LAYOUT_MAX_LEAVES] = {false};
    tk_tuple stride;
    tk_tuple_copy(shape, &stride);
    tk_term running = tk_term_int(1);
    for (int step = 0; step < shape->leaf_count; step++) {
        int next = -1;
        for (int i = 0; i < shape->leaf_count; i++)
            if (!done[i] && (next < 0 || key[i] < key[next])) next = i;
        done[next] = true;
        stride.leaf[next] = skip[next] ? tk_term_int(0) : running;
        if (!skip[next]) TK_TRY(tk_term_mul(running, shape->leaf[next], &running));
    }
    return tk_layout_make(shape, &stride, out);
}

/* Spreads the keys of `order` over the leaves of `shape`. */
static tk_status spread_keys(tk_span shape, tk_span order, int64_t *key) {
    if (tk_span_is_leaf(order)) {
        if (order.leaf->kind != TK_TERM_STATIC || order.leaf->basis)
            return tk_fail(TK_SHAPE_ERROR, "order key %s: expected a static integer",
                           tk_term_show(*order.leaf).text);
        int leaves = tk_tree_leaves(shape.node);
        for (int i = 0; i < leaves; i++) key[i] = order.leaf->value;
        return TK_OK;
    }
    if (*shape.node != *order.node)
        return tk_fail(TK_SHAPE_ERROR, "an order of %d keys for a shape of %d modes",
                       tk_node_children(*order.node),
                       tk_span_is_leaf(shape) ? 1 : tk_node_children(*shape.node));
    int rank = tk_node_children(*shape.node);
    const tk_term *base = shape.leaf;
    shape = tk_span_first(shape);
    order = tk_span_first(order);
    for (int i = 0; i < rank; i++, shape = tk_span_next(shape), order = tk_span_next(order))
        TK_TRY(spread_keys(shape, order, key + (shape.leaf - base)));
    return TK_OK;
}

tk_status tk_layout_make_ordered(const tk_tuple *shape, const tk_tuple *order, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(shape, "shape"));
    TK_TRY(tk_check_tuple(order, "order"));
    int64_t key[TK_LAYOUT_MAX_LEAVES];
    bool skip[TK_LAYOUT_MAX_LEAVES] = {false};
    TK_TRY(spread_keys(tk_span_of(shape), tk_span_of(order), key));
    return stride_by_key(shape, key, skip, out);
}

tk_status tk_layout_make_like(const tk_layout *layout, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    int64_t key[TK_LAYOUT_MAX_LEAVES];
    bool skip[TK_LAYOUT_MAX_LEAVES];
    tk_tuple shape;
    tk_layout_shape(layout, &shape);
    for (int i = 0; i < layout->leaf_count; i++) {
        tk_term stride = layout->leaf[i].stride;
        if (stride.kind != TK_TERM_STATIC || (stride.basis && stride.value))
            return tk_fail(TK_UNSUPPORTED,
                           "stride %s of leaf %d: its order among the others is "
                           "unknown, expected static integers",
                           tk_term_show(stride).text, i);
        key[i] = stride.value < 0 ? -stride.value : stride.value;
        skip[i] = stride.value == 0;
    }
    return stride_by_key(&shape, key, skip, out);
}

static tk_status put_identity(tk_span shape, uint32_t basis, tk_layout *out) {
    if (tk_span_is_leaf(shape)) {
        tk_term stride = {1, basis, TK_TERM_STATIC};
        tk_put_leaf(out, *shape.leaf, stride);
        return TK_OK;
    }
    int rank = tk_node_children(*shape.node);
    tk_put_node(out, (uint8_t)rank);
    shape = tk_span_first(shape);
    for (int i = 0; i < rank; i++, shape = tk_span_next(shape)) {
        uint32_t inner;
        TK_TRY(tk_basis_push(basis, i, &inner));
        TK_TRY(put_identity(shape, inner, out));
    }
    return TK_OK;
}

tk_status tk_layout_make_identity(const tk_tuple *shape, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(shape, "shape"));
    tk_layout_clear(out);
    TK_TRY(put_identity(tk_span_of(shape), 0, out));
    return tk_layout_finish(out);
}

tk_status tk_layout_concat(const tk_layout *const *modes, int count, tk_layout *out) {
    TK_NEED(out);
    if (count > 0) TK_NEED(modes);
    if (count < 0 || count > TK_LAYOUT_MAX_LEAVES)
        return tk_fail(TK_INVALID_ARGUMENT, "%d modes: expected 0 to %d", count,
                       TK_LAYOUT_MAX_LEAVES);
    tk_layout_clear(out);
    tk_put_node(out, (uint8_t)count);
    for (int i = 0; i < count; i++) {
        TK_TRY(tk_check_layout(modes[i], "mode"));
        tk_put_part(out, tk_part_of(modes[i]));
    }
    return tk_layout_finish(out);
}

/* -- Looking -- */

size_t tk_layout_bytes(const tk_layout *layout) {
    if (!layout) return 0;
    return offsetof(tk_layout, leaf) + layout->leaf_count * sizeof(tk_leaf);
}

void tk_layout_copy(const tk_layout *layout, tk_layout *out) {
    if (!layout || !out) return;
    memcpy(out, layout, tk_layout_bytes(layout));
}

bool tk_layout_equal(const tk_layout *a, const tk_layout *b) {
    if (!a || !b) return a == b;
    if (a->node_count != b->node_count || memcmp(a->node, b->node, a->node_count)) return false;
    for (int i = 0; i < a->leaf_count; i++)
        if (!tk_term_same(a->leaf[i].shape, b->leaf[i].shape) ||
            !tk_term_same(a->leaf[i].stride, b->leaf[i].stride))
            return false;
    return true;
}

uint64_t tk_layout_hash(const tk_layout *layout) {
    if (!layout) return 0;
    uint64_t hash = tk_hash_bytes(0, layout->node, layout->node_count);
    return tk_hash_bytes(hash, layout->leaf, layout->leaf_count * sizeof(tk_leaf));
}

static void copy_column(const tk_layout *layout, bool stride, tk_tuple *out) {
    tk_tuple_clear(out);
    out->node_count = layout->node_count;
    out->leaf_count = layout->leaf_count;
    memcpy(out->node, layout->node, layout->node_count);
    for (int i = 0; i < layout->leaf_count; i++)
        out->leaf[i] = stride ? layout->leaf[i].stride : layout->leaf[i].shape;
}

void tk_layout_shape(const tk_layout *layout, tk_tuple *out) {
    if (!layout || !out) return;
    copy_column(layout, false, out);
}
void tk_layout_stride(const tk_layout *layout, tk_tuple *out) {
    if (!layout || !out) return;
    copy_column(layout, true, out);
}

bool tk_layout_is_static(const tk_layout *layout) {
    if (!layout) return false;
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].shape.kind | layout->leaf[i].stride.kind) return false;
    return true;
}

bool tk_layout_is_plain(const tk_layout *layout) {
    if (!layout) return false;
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].stride.basis) return false;
    return tk_layout_is_static(layout);
}

bool tk_tiler_is_list(const tk_tiler *tiler) {
    if (!tiler) return false;
    return tiler->node[0] >= TK_NODE_TILE && tiler->node[0] != TK_NODE_LEAF;
}

int tk_layout_rank(const tk_layout *layout) {
    if (!layout) return 0;
    return tk_part_rank(tk_part_of(layout));
}
int tk_layout_depth(const tk_layout *layout) {
    if (!layout) return 0;
    return tk_tree_depth(layout->node);
}

static tk_status part_size(tk_part part, tk_term *out) {
    int leaves = tk_tree_leaves(part.node);
    *out = tk_term_int(1);
    for (int i = 0; i < leaves; i++) TK_TRY(tk_term_mul(*out, part.leaf[i].shape, out));
    return TK_OK;
}

tk_status tk_layout_size(const tk_layout *layout, tk_term *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    return part_size(tk_part_of(layout), out);
}

/* 1 + the sum of (extent-1)*|stride| over the leaves of one basis. */
static tk_status span_of_basis(const tk_layout *layout, uint32_t basis, tk_term *out) {
    *out = tk_term_int(1);
    for (int i = 0; i < layout->leaf_count; i++) {
        tk_leaf leaf = layout->leaf[i];
        if (leaf.stride.basis != basis) continue;
        leaf.stride.basis = 0;
        if (leaf.stride.kind == TK_TERM_STATIC && leaf.stride.value < 0)
            leaf.stride.value = -leaf.stride.value;
        tk_term steps, reach;
        TK_TRY(tk_term_add(leaf.shape, tk_term_int(-1), &steps));
        TK_TRY(tk_term_mul(steps, leaf.stride, &reach));
        TK_TRY(tk_term_add(*out, reach, out));
    }
    return TK_OK;
}

tk_status tk_layout_cosize(const tk_layout *layout, tk_term *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    tk_term total = tk_term_int(1), span;
    for (int i = 0; i < layout->leaf_count; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen |= layout->leaf[j].stride.basis == layout->leaf[i].stride.basis;
        if (seen) continue;
        TK_TRY(span_of_basis(layout, layout->leaf[i].stride.basis, &span));
        TK_TRY(tk_term_mul(total, span, &total));
    }
    *out = total;
    return TK_OK;
}

tk_status tk_layout_mode(const tk_layout *layout, int index, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    int rank = tk_layout_rank(layout);
    if (index < 0 || index >= rank)
        return tk_fail(TK_AXIS_ERROR, "mode %d of a layout of rank %d", index, rank);
    tk_layout_from_part(tk_part_mode(tk_part_of(layout), index), out);
    return TK_OK;
}

tk_status tk_layout_get(const tk_layout *layout, const tk_tuple *path, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    TK_TRY(tk_check_tuple(path, "path"));
    tk_part part = tk_part_of(layout);
    for (int i = 0; i < path->leaf_count; i++) {
        tk_term index = path->leaf[i];
        int rank = tk_part_rank(part);
        if (index.kind != TK_TERM_STATIC || index.value < 0 || index.value >= rank)
            return tk_fail(TK_AXIS_ERROR, "mode %s at level %d of the path: there are %d modes",
                           tk_term_show(index).text, i, rank);
        part = tk_part_mode(part, (int)index.value);
    }
    tk_layout_from_part(part, out);
    return TK_OK;
}
