/* The parts of tree.h that are too long to be inline. */
#include "layout/tree.h"
#include "base/alloc.h"
#include "layout/term.h"

/* Depth by a stack of open tuples; the number of nodes bounds it. */
int tk_tree_depth(const uint8_t *node) {
    uint8_t open[TK_LAYOUT_MAX_NODES];
    int level = 0, deepest = 0;
    do {
        int children = tk_node_children(*node);
        bool tuple = *node < TK_NODE_ANY;
        if (tuple && level + 1 > deepest) deepest = level + 1;
        if (tuple && children) {
            open[level++] = (uint8_t)children;
        } else {
            while (level && --open[level - 1] == 0) level--;
        }
        node++;
    } while (level);
    return deepest;
}

static void put_run(tk_layout *out, tk_part part, int nodes, int leaves) {
    if (out->node_count + nodes > TK_LAYOUT_MAX_NODES ||
        out->leaf_count + leaves > TK_LAYOUT_MAX_LEAVES) {
        out->node_count = out->leaf_count = UINT8_MAX;
        return;
    }
    memcpy(out->node + out->node_count, part.node, (size_t)nodes);
    memcpy(out->leaf + out->leaf_count, part.leaf, (size_t)leaves * sizeof(tk_leaf));
    out->node_count = (uint8_t)(out->node_count + nodes);
    out->leaf_count = (uint8_t)(out->leaf_count + leaves);
}

void tk_put_part(tk_layout *out, tk_part part) {
    int nodes, leaves;
    tk_tree_measure(part.node, &nodes, &leaves);
    put_run(out, part, nodes, leaves);
}

void tk_put_layout(tk_layout *out, const tk_layout *layout) {
    put_run(out, tk_part_of(layout), layout->node_count, layout->leaf_count);
}

int tk_put_modes(tk_layout *out, tk_part part) {
    if (!tk_node_is_tuple(*part.node)) {
        tk_put_part(out, part);
        return 1;
    }
    int rank = tk_node_children(*part.node);
    part = tk_part_first(part);
    for (int i = 0; i < rank; i++, part = tk_part_next(part)) tk_put_part(out, part);
    return rank;
}

void tk_tuple_put_node(tk_tuple *out, uint8_t node) {
    if (out->node_count < TK_LAYOUT_MAX_NODES) out->node[out->node_count] = node;
    if (out->node_count < UINT8_MAX) out->node_count++;
}

void tk_tuple_put_leaf(tk_tuple *out, tk_term term) {
    tk_tuple_put_node(out, TK_NODE_LEAF);
    if (out->leaf_count < TK_LAYOUT_MAX_LEAVES) out->leaf[out->leaf_count] = term;
    if (out->leaf_count < UINT8_MAX) out->leaf_count++;
}

void tk_tuple_put_close(tk_tuple *out, int at, int modes) {
    if (at < TK_LAYOUT_MAX_NODES) out->node[at] = (uint8_t)(modes < TK_NODE_TILE ? modes : 0);
}

void tk_tuple_put_part(tk_tuple *out, const uint8_t *node, const tk_term *leaf) {
    int nodes, leaves;
    tk_tree_measure(node, &nodes, &leaves);
    for (int i = 0; i < nodes; i++) {
        if (node[i] == TK_NODE_LEAF)
            tk_tuple_put_leaf(out, *leaf++);
        else
            tk_tuple_put_node(out, node[i]);
    }
}

static tk_status fail_full(int leaves, int nodes) {
    if (leaves > TK_LAYOUT_MAX_LEAVES)
        return tk_fail(TK_OVERFLOW, "the result has more than %d leaves", TK_LAYOUT_MAX_LEAVES);
    return tk_fail(TK_OVERFLOW, "the result has %s%d leaves and tuples: at most %d",
                   nodes == UINT8_MAX ? "at least " : "", nodes, TK_LAYOUT_MAX_NODES);
}

tk_status tk_tuple_finish(const tk_tuple *out) {
    if (out->leaf_count > TK_LAYOUT_MAX_LEAVES || out->node_count > TK_LAYOUT_MAX_NODES)
        return fail_full(out->leaf_count, out->node_count);
    return TK_OK;
}

static bool span_overflows(const tk_leaf *leaf, int64_t *size, int64_t *span) {
    int64_t extent = leaf->shape.value, stride = leaf->stride.value, reach;
    if (tk_mul_overflow_i64(*size, extent, size)) return true;
    if (leaf->stride.kind != TK_TERM_STATIC || leaf->shape.kind != TK_TERM_STATIC) return false;
    if (stride < 0 && tk_mul_overflow_i64(stride, -1, &stride)) return true;
    return tk_mul_overflow_i64(extent - 1, stride, &reach) ||
           tk_add_overflow_i64(*span, reach, span);
}

tk_status tk_layout_finish(tk_layout *out) {
    if (out->leaf_count > TK_LAYOUT_MAX_LEAVES || out->node_count > TK_LAYOUT_MAX_NODES)
        return fail_full(out->leaf_count, out->node_count);
    int64_t size = 1, span = 1;
    for (int i = 0; i < out->leaf_count; i++) {
        const tk_leaf *leaf = &out->leaf[i];
        if (leaf->shape.value < 1 || leaf->shape.kind > TK_TERM_I64 || leaf->shape.basis)
            return tk_fail(TK_SHAPE_ERROR, "extent %lld of leaf %d: a layout needs at least 1",
                           (long long)leaf->shape.value, i);
        if (span_overflows(leaf, &size, &span))
            return tk_fail(TK_OVERFLOW,
                           "leaf %d takes the size or the offsets of the layout past "
                           "2^63-1",
                           i);
    }
    return TK_OK;
}

tk_status tk_check_layout(const tk_layout *layout, const char *what) {
    if (!layout) return tk_fail_null(what);
    if (layout->node_count == 0 || layout->node[0] >= TK_NODE_TILE) {
        if (layout->node_count && layout->node[0] == TK_NODE_LEAF) return TK_OK;
        return tk_fail(TK_INVALID_ARGUMENT, "%s is a list of tilers: expected a layout", what);
    }
    return TK_OK;
}

tk_status tk_check_tuple(const tk_tuple *tuple, const char *what) {
    if (!tuple) return tk_fail_null(what);
    return TK_OK;
}
