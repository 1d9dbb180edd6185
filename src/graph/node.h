/* Graph nodes: immutable, interned, reference counted.
 *
 * A node is one application of an op from the table to other nodes. Two applications with the same
 * op, operands, attribute bits and stream are one node, found through a weak hash table; so
 * equality of graphs is equality of pointers and common subexpressions never exist twice.
 *
 * All functions here need the graph's lock, except where they say otherwise. Counts are plain
 * integers for that reason. Freeing is a loop, never a recursion: graphs may be hundreds of
 * thousands deep.
 *
 * Once evaluated, a node leaves the table and drops its operands (src/array does both), unless a
 * transform that began earlier and is still open may yet walk through it: `trace` is the serial of
 * the outermost such transform. What a value is (memory, offset, strides) belongs to src/array and
 * hangs on `storage`, opaque here. */
#ifndef GRAPH_NODE_H
#define GRAPH_NODE_H

#include <pthread.h>

#include "base/vec.h"
#include "graph/ops.h"

#define TK_MAX_RANK 16

typedef struct tk_node tk_node;
typedef struct tk_graph tk_graph;

typedef struct tk_type {
    tk_dtype dtype;
    int rank;
    const int64_t *shape;
} tk_type;

enum {
    TK_NODE_INTERNED = 1, /* in the table */
    TK_NODE_WEAK = 2,     /* a scalar constant that takes the dtype of what it meets */
    TK_NODE_SCHEDULED = 4 /* an evaluation that is under way has taken its operands */
};

struct tk_node {
    tk_node *next; /* in the table's chain, or in the list of nodes to free */
    uint64_t hash;
    tk_graph *graph;
    int32_t refs;    /* everything that holds the node, handles included */
    int32_t handles; /* array handles among them */
    uint16_t op;
    uint8_t dtype;
    uint8_t rank;
    uint32_t flags;
    uint32_t trace;
    uint32_t stream;
    uint32_t n_inputs;
    uint32_t n_outputs; /* 1, or more for a tuple that only `output` nodes read */
    uint32_t bytes;     /* of this allocation, in units of the slab */
    int64_t size;       /* elements */
    const int64_t *shape;
    void *attrs;
    tk_node **inputs;
    tk_type *outputs; /* n_outputs types when there are several, else NULL */
    void *storage;    /* of src/array; the evaluation under way while SCHEDULED */
};

typedef TK_VEC(tk_node *) tk_node_vec;

/* Part of whatever a user's function releases: deferring needs no memory, so it cannot fail. */
typedef struct tk_deferred {
    struct tk_deferred *next;
    void (*run)(struct tk_deferred *self);
} tk_deferred;

#define TK_MAX_PLACES 8

/* A device beside the processor, as the graph sees it: see place.h. */
typedef struct tk_place {
    const char *name; /* static for the life of the graph */
    uint32_t stream;  /* its first */
    const void *self;
    /* TK_UNSUPPORTED for what the device cannot compute. With the lock. */
    tk_status (*check)(const struct tk_place *place, tk_op op, size_t n_inputs,
                       tk_node *const *inputs, const void *attrs);
} tk_place;

#define TK_SLAB_UNIT 32
#define TK_SLAB_CLASSES 32

struct tk_graph {
    pthread_mutex_t lock;
    tk_node **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_interned;
    size_t n_nodes; /* alive */
    uint64_t serial;
    TK_VEC(uint8_t) stream_places;  /* by stream; streams beyond it are the processor's */
    tk_place places[TK_MAX_PLACES]; /* from 1 */
    uint32_t n_places;              /* 0 or 1: there is only the processor */
    TK_VEC(uint32_t) open_traces;   /* ascending */
    uint32_t last_trace;
    void *free_blocks[TK_SLAB_CLASSES];
    TK_VEC(void *) slabs;
    size_t slab_used;
    tk_deferred *deferred; /* the latest first */
    tk_node *no_memory;    /* the error node of last resort */
    void (*release_storage)(tk_node *node);
};

tk_status tk_graph_init(tk_graph *graph, void (*release_storage)(tk_node *node));

/* Frees the table and its memory. Nodes that are still alive are freed with it. */
void tk_graph_deinit(tk_graph *graph);

void tk_graph_lock(tk_graph *graph);
void tk_graph_unlock(tk_graph *graph);

/* Runs something right after the lock is given back: a user's release function, which may do
 * anything. `run` may free `item`. Needs the lock. */
void tk_graph_defer(tk_graph *graph, tk_deferred *item, void (*run)(tk_deferred *self));

/* The node for this application, new or found, with one more reference for the caller. Fails when
 * the shape rule fails or memory is out. `inputs` and `attrs` are borrowed and copied. */
tk_status tk_node_intern(tk_graph *graph, tk_op op, uint32_t stream, size_t n_inputs,
                         tk_node *const *inputs, const void *attrs, tk_node **out_node);

void tk_node_retain(tk_node *node);
void tk_node_release(tk_node *node); /* NULL is fine */

/* Takes a node out of the table: equal applications will make a new one. */
void tk_node_unintern(tk_node *node);

/* Puts it back, unless an equal node has taken its place meanwhile. */
void tk_node_reintern(tk_node *node);

/* Releases the operands of a node, or of an application that was taken apart. */
void tk_node_drop_inputs(tk_node *node);

/* A fresh serial, for nodes that must never be merged. */
uint64_t tk_graph_serial(tk_graph *graph);

/* Opens a transform: nodes that depend on its placeholders keep their operands while it is open. */
tk_status tk_trace_open(tk_graph *graph, uint32_t *out_trace);
void tk_trace_close(tk_graph *graph, uint32_t trace);
bool tk_trace_is_open(const tk_graph *graph, uint32_t trace);

static inline tk_type tk_node_type(const tk_node *node) {
    return (tk_type){(tk_dtype)node->dtype, node->rank, node->shape};
}

static inline const tk_op_info *tk_node_op(const tk_node *node) { return &tk_op_table[node->op]; }

/* The attributes as their record: `const tk_attrs_reduce *r = tk_node_attrs(node);` */
static inline const void *tk_node_attrs(const tk_node *node) { return node->attrs; }

static inline bool tk_node_is_error(const tk_node *node) { return node->op == TK_OP_error; }

bool tk_shape_equal(const tk_node *a, const tk_node *b);

/* Elements of a shape; TK_OVERFLOW with the shape in the message when the product, or the bytes for
 * elements of `dtype`, do not fit 63 bits; TK_SHAPE_ERROR for a negative length or too high a rank.
 */
tk_status tk_shape_size(tk_dtype dtype, int64_t rank, const int64_t *shape, int64_t *out_size);

#endif
