/* The inside of a context: a graph, a device, its streams, and what each thread keeps. */
#ifndef ARRAY_CONTEXT_H
#define ARRAY_CONTEXT_H

#include <stdatomic.h>

#include "array/executor.h"
#include "graph/place.h"
#include "runtime/buffer.h"
#include "tiki/transforms.h"

/* Tells the records of a thread whether it has ended. */
typedef struct tk_thread_life {
    atomic_int holders; /* the thread and its records */
    atomic_bool ended;
} tk_thread_life;

/* What a thread keeps in a context: open scopes, the stream it builds for, its random key. Goes
 * when the thread has ended and another one is new to the context. */
typedef struct tk_thread {
    struct tk_thread *next;
    tk_thread_life *life; /* which thread this is */
    tk_node_vec handles;
    TK_VEC(size_t) marks; /* handles.count at the opening of each open scope */
    uint32_t stream;
    tk_node *random_key;
} tk_thread;

/* A device of a context and who computes there. Sites have the numbers of the graph's places. */
typedef struct tk_site {
    tk_device *device;
    const tk_executor *executor;
} tk_site;

struct tk_context {
    tk_graph graph; /* first: a graph's address is its context's */
    uint64_t serial;
    uint32_t fork_epoch;
    tk_site sites[TK_MAX_PLACES]; /* 0: the processor; the others as they are asked for */
    TK_VEC(tk_stream *) streams;
    tk_thread *threads;
    pthread_cond_t changed; /* with graph.lock: an evaluation was submitted or is done */
    int running;            /* evaluations that are not done */
    bool nan_trap;
};

static inline tk_context *tk_context_of(const tk_graph *graph) {
    return (tk_context *)(uintptr_t)graph;
}

/* The device that a node is computed on, and that a stream is of. Need the lock, or a plan that
 * holds what it asks about. */
static inline const tk_site *tk_site_of(const tk_node *node) {
    return &tk_context_of(node->graph)->sites[tk_place_of(node)];
}
static inline const tk_site *tk_site_of_stream(const tk_context *context, uint32_t stream) {
    return &context->sites[tk_place_of_stream(&context->graph, stream)];
}

/* A new stream of a site. Needs the lock. */
tk_status tk_context_open_stream(tk_context *context, uint32_t place, uint32_t *out_stream);

/* The node's values on the device of a stream: the node itself if they are there. */
tk_node *tkb_to_stream(tk_builder *b, tk_node *node, uint32_t stream);

/* TK_CONTEXT_ERROR in a forked child. Call before taking the lock. */
tk_status tk_context_check(const tk_context *context);

/* This thread's record; NULL when memory ran out. Needs the lock. */
tk_thread *tk_context_thread(tk_context *context);

/* Makes a handle of a node for the caller: the innermost scope owns it, if there is one. Needs the
 * lock. */
tk_array tk_handle_give(tk_context *context, tk_node *node);

/* Handles that belong to nobody else. Need the lock. */
void tk_handle_retain(tk_node *node);
void tk_handle_release(tk_node *node);

/* The next implicit random key of this thread, held by the builder. */
tk_node *tk_context_next_key(tk_context *context, tk_builder *b);

/* Calls a function whose graph is looked at (differentiated, batched, recorded): while it runs,
 * tk_transforms_active is true on this thread. */
tk_status tk_call_looking(tk_function function, void *self, const tk_array *args, size_t n_args,
                          tk_arrays *results);

#endif
