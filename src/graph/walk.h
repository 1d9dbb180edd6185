/* What reverse mode, forward mode, vmap, the printer and the evaluator share: an order of nodes,
 * operands before users, and a map from nodes to small numbers. No recursion: graphs are deep. */
#ifndef GRAPH_WALK_H
#define GRAPH_WALK_H

#include "graph/node.h"

/* From a node to a number; open addressing. */
typedef struct tk_node_map {
    const tk_node **keys;
    uint32_t *values;
    size_t capacity;
    size_t count;
} tk_node_map;

#define TK_NODE_ABSENT UINT32_MAX

void tk_node_map_deinit(tk_node_map *map);
uint32_t tk_node_map_get(const tk_node_map *map, const tk_node *node);

/* False when memory ran out. */
bool tk_node_map_put(tk_node_map *map, const tk_node *node, uint32_t value);

/* How many of the operands, from the first, a node's value is made of: a straight_through only has
 * the derivatives of its second one. */
uint32_t tk_node_value_inputs(const tk_node *node);

/* Appends to `order` every node reachable from the roots through nodes for which `enter` holds
 * (NULL: all), each once, operands first; `map` gives the position of each. Nodes that are in the
 * map before count as visited: a walk is stopped at a node by putting it there. Nodes are borrowed.
 */
tk_status tk_walk_order(size_t n_roots, tk_node *const *roots,
                        bool (*enter)(const tk_node *node, void *arg), void *arg,
                        tk_node_vec *order, tk_node_map *map);

/* The same through the operands that values are made of. */
tk_status tk_walk_values(size_t n_roots, tk_node *const *roots,
                         bool (*enter)(const tk_node *node, void *arg), void *arg,
                         tk_node_vec *order, tk_node_map *map);

#endif
