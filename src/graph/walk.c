/* The order and the map of walk.h.
 *
 * The order is depth-first, by an explicit stack: a node is appended when all its operands are. It
 * only depends on the graph and the roots, never on addresses, so whatever is built along it is the
 * same graph in every run. A mark in the nodes themselves would be faster than a map, but two walks
 * may be under way at once: rules of forward mode run a reverse walk of their own. */
#include "graph/walk.h"

#include "base/error.h"
#include "base/hash.h"

/* The value of a node whose operands are still being visited. */
#define PENDING (TK_NODE_ABSENT - 1)

void tk_node_map_deinit(tk_node_map *map) {
    tk_free(map->keys);
    tk_free(map->values);
    *map = (tk_node_map){0};
}

/* Where the node is, or the free place where it would be put. */
static size_t place_of(const tk_node_map *map, const tk_node *node) {
    size_t mask = map->capacity - 1;
    size_t place = (size_t)tk_hash_mix((uintptr_t)node, 0) & mask;
    while (map->keys[place] && map->keys[place] != node) place = (place + 1) & mask;
    return place;
}

uint32_t tk_node_map_get(const tk_node_map *map, const tk_node *node) {
    if (map->capacity == 0) return TK_NODE_ABSENT;
    size_t place = place_of(map, node);
    return map->keys[place] ? map->values[place] : TK_NODE_ABSENT;
}

static bool map_grow(tk_node_map *map) {
    tk_node_map wide = {.capacity = map->capacity ? map->capacity * 2 : 64, .count = map->count};
    wide.keys = tk_calloc(wide.capacity, sizeof *wide.keys);
    wide.values = tk_calloc(wide.capacity, sizeof *wide.values);
    if (!wide.keys || !wide.values) {
        tk_node_map_deinit(&wide);
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (!map->keys[i]) continue;
        size_t place = place_of(&wide, map->keys[i]);
        wide.keys[place] = map->keys[i];
        wide.values[place] = map->values[i];
    }
    tk_node_map_deinit(map);
    *map = wide;
    return true;
}

bool tk_node_map_put(tk_node_map *map, const tk_node *node, uint32_t value) {
    if (2 * (map->count + 1) > map->capacity && !map_grow(map)) return false;
    size_t place = place_of(map, node);
    map->count += !map->keys[place];
    map->keys[place] = node;
    map->values[place] = value;
    return true;
}

typedef struct visit {
    tk_node *node;
    uint32_t next; /* operand to look at */
} visit;

typedef struct walk {
    bool (*enter)(const tk_node *node, void *arg);
    void *arg;
    tk_node_vec *order;
    tk_node_map *map;
    bool values; /* only what values are made of */
    TK_VEC(visit) stack;
} walk;

static bool push_if_new(walk *w, tk_node *node) {
    if (tk_node_map_get(w->map, node) != TK_NODE_ABSENT) return true;
    if (w->enter && !w->enter(node, w->arg)) return true;
    visit start = {.node = node};
    return tk_node_map_put(w->map, node, PENDING) && tk_vec_push(&w->stack, start);
}

static bool leave(walk *w, tk_node *node) {
    w->stack.count--;
    return tk_node_map_put(w->map, node, (uint32_t)w->order->count) && tk_vec_push(w->order, node);
}

uint32_t tk_node_value_inputs(const tk_node *node) {
    return node->op == TK_OP_straight_through && node->n_inputs ? 1 : node->n_inputs;
}

static bool visit_root(walk *w, tk_node *root) {
    bool ok = push_if_new(w, root);
    while (ok && w->stack.count) {
        visit *top = &w->stack.items[w->stack.count - 1];
        tk_node *node = top->node;
        uint32_t count = w->values ? tk_node_value_inputs(node) : node->n_inputs;
        ok = top->next < count ? push_if_new(w, node->inputs[top->next++]) : leave(w, node);
    }
    return ok;
}

static tk_status visit_all(walk *w, size_t n_roots, tk_node *const *roots) {
    bool ok = true;
    for (size_t i = 0; ok && i < n_roots; i++) ok = visit_root(w, roots[i]);
    tk_vec_deinit(&w->stack);
    if (!ok)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to walk a graph of more than %zu nodes",
                       w->order->count);
    return TK_OK;
}

tk_status tk_walk_order(size_t n_roots, tk_node *const *roots,
                        bool (*enter)(const tk_node *node, void *arg), void *arg,
                        tk_node_vec *order, tk_node_map *map) {
    walk w = {.enter = enter, .arg = arg, .order = order, .map = map};
    return visit_all(&w, n_roots, roots);
}

tk_status tk_walk_values(size_t n_roots, tk_node *const *roots,
                         bool (*enter)(const tk_node *node, void *arg), void *arg,
                         tk_node_vec *order, tk_node_map *map) {
    walk w = {.enter = enter, .arg = arg, .order = order, .map = map, .values = true};
    return visit_all(&w, n_roots, roots);
}
