/* Walking and writing the node trees of layouts and tuples. Private to this module.
 *
 * A tree is its nodes in depth-first order, so a mode is a contiguous run of nodes and a contiguous
 * run of leaves: a part of a layout is two pointers, skipping a mode is one loop, and copying one
 * is two memcpy. Rejected: child indices or pointers (copies need fixing up), one struct per mode
 * (allocation). */
#ifndef LAYOUT_TREE_H
#define LAYOUT_TREE_H

#include <string.h>

#include "base/error.h"
#include "tiki/layout.h"

/* A mode inside a layout that outlives it. */
typedef struct tk_part {
    const uint8_t *node;
    const tk_leaf *leaf;
} tk_part;

static inline int tk_node_children(uint8_t node) { return node >= TK_NODE_ANY ? 0 : node & 0x7f; }

static inline bool tk_node_is_tuple(uint8_t node) { return node < TK_NODE_TILE; }
static inline bool tk_node_is_list(uint8_t node) {
    return node >= TK_NODE_TILE && node < TK_NODE_ANY;
}

/* Nodes and leaves of the subtree that starts at `node`. */
static inline void tk_tree_measure(const uint8_t *node, int *out_nodes, int *out_leaves) {
    int nodes = 0, leaves = 0;
    for (int open = 1; open > 0; nodes++) {
        leaves += node[nodes] == TK_NODE_LEAF;
        open += tk_node_children(node[nodes]) - 1;
    }
    *out_nodes = nodes;
    *out_leaves = leaves;
}

static inline int tk_tree_leaves(const uint8_t *node) {
    int nodes, leaves;
    tk_tree_measure(node, &nodes, &leaves);
    return leaves;
}

static inline tk_part tk_part_of(const tk_layout *layout) {
    tk_part part = {layout->node, layout->leaf};
    return part;
}

/* The part behind this one, and the first mode of a tuple. */
static inline tk_part tk_part_next(tk_part part) {
    int nodes, leaves;
    tk_tree_measure(part.node, &nodes, &leaves);
    tk_part next = {part.node + nodes, part.leaf + leaves};
    return next;
}
static inline tk_part tk_part_first(tk_part part) {
    tk_part first = {part.node + 1, part.leaf};
    return first;
}

/* Modes of a part: a leaf, or a skipped mode, counts as one. */
static inline int tk_part_rank(tk_part part) {
    return *part.node >= TK_NODE_ANY ? 1 : tk_node_children(*part.node);
}

/* The i-th mode; `index` is below the rank. */
static inline tk_part tk_part_mode(tk_part part, int index) {
    if (*part.node >= TK_NODE_ANY) return part;
    tk_part mode = tk_part_first(part);
    for (int i = 0; i < index; i++) mode = tk_part_next(mode);
    return mode;
}

int tk_tree_depth(const uint8_t *node);

/* -- Writing. Counts run on past the capacity, so that a writer checks once, in tk_layout_finish.
 */

static inline void tk_layout_clear(tk_layout *out) { memset(out, 0, offsetof(tk_layout, node)); }

static inline void tk_put_node(tk_layout *out, uint8_t node) {
    if (out->node_count < TK_LAYOUT_MAX_NODES) out->node[out->node_count] = node;
    if (out->node_count < UINT8_MAX) out->node_count++;
}

static inline void tk_put_leaf(tk_layout *out, tk_term shape, tk_term stride) {
    tk_put_node(out, TK_NODE_LEAF);
    if (out->leaf_count < TK_LAYOUT_MAX_LEAVES) {
        out->leaf[out->leaf_count].shape = shape;
        out->leaf[out->leaf_count].stride = stride;
    }
    if (out->leaf_count < UINT8_MAX) out->leaf_count++;
}

static inline void tk_put_unit(tk_layout *out) { tk_put_leaf(out, tk_term_int(1), tk_term_int(0)); }

/* Opens a tuple whose number of modes is not known yet; tk_put_close writes it. */
static inline int tk_put_open(tk_layout *out) {
    tk_put_node(out, 0);
    return out->node_count - 1;
}
static inline void tk_put_close(tk_layout *out, int at, int modes) {
    if (at < TK_LAYOUT_MAX_NODES) out->node[at] = (uint8_t)(modes < TK_NODE_TILE ? modes : 0);
}

/* A whole mode, and all modes of a mode without its own tuple node (returns how many). */
void tk_put_part(tk_layout *out, tk_part part);
int tk_put_modes(tk_layout *out, tk_part part);

/* A whole layout as a mode, without a walk through its tree. */
void tk_put_layout(tk_layout *out, const tk_layout *layout);

/* Checks what every layout promises: it fits, extents are at least 1, size and span are below 2^63.
 */
tk_status tk_layout_finish(tk_layout *out);

/* Only that it fits, for what becomes part of something that is checked. */
static inline tk_status tk_layout_fits(tk_layout *out) {
    bool full = out->node_count > TK_LAYOUT_MAX_NODES || out->leaf_count > TK_LAYOUT_MAX_LEAVES;
    return full ? tk_layout_finish(out) : TK_OK;
}

/* The tuple side of the same. */
static inline void tk_tuple_clear(tk_tuple *out) { memset(out, 0, offsetof(tk_tuple, node)); }
void tk_tuple_put_node(tk_tuple *out, uint8_t node);
void tk_tuple_put_leaf(tk_tuple *out, tk_term term);
void tk_tuple_put_close(tk_tuple *out, int at, int modes);
void tk_tuple_put_part(tk_tuple *out, const uint8_t *node, const tk_term *leaf);
tk_status tk_tuple_finish(const tk_tuple *out);

/* A mode inside a tuple. */
typedef struct tk_span {
    const uint8_t *node;
    const tk_term *leaf;
} tk_span;

static inline tk_span tk_span_of(const tk_tuple *tuple) {
    tk_span span = {tuple->node, tuple->leaf};
    return span;
}
static inline tk_span tk_span_next(tk_span span) {
    int nodes, leaves;
    tk_tree_measure(span.node, &nodes, &leaves);
    tk_span next = {span.node + nodes, span.leaf + leaves};
    return next;
}
static inline tk_span tk_span_first(tk_span span) {
    tk_span first = {span.node + 1, span.leaf};
    return first;
}
static inline bool tk_span_is_leaf(tk_span span) { return *span.node == TK_NODE_LEAF; }

/* The product of the leaves of a mode. */
tk_status tk_span_product(tk_span span, tk_term *out);

/* A layout from one part, for functions that take a whole one. */
static inline void tk_layout_from_part(tk_part part, tk_layout *out) {
    tk_layout_clear(out);
    tk_put_part(out, part);
}

/* Refuses null pointers and, for layouts, lists. `what` names the argument. */
tk_status tk_check_layout(const tk_layout *layout, const char *what);
tk_status tk_check_tuple(const tk_tuple *tuple, const char *what);

#endif
