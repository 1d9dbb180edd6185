/* The inside of a context: a graph, a device, its streams, and what each thread keeps. */
#ifndef ARRAY_CONTEXT_H
#define ARRAY_CONTEXT_H

#include <stdatomic.h>

#include "array/executor.h"
#include "graph/build.h"
#include "runtime/buffer.h"
#include "tiki/array.h"

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

struct tk_context {
    tk_graph graph; /* first: a graph's address is its context's */
    uint64_t serial;
    uint32_t fork_epoch;
    const tk_executor *executor;
    tk_device *device;
    TK_VEC(tk_stream *) streams;
    tk_thread *threads;
    pthread_cond_t changed; /* with graph.lock: an evaluation was submitted or is done */
    int running;            /* evaluations that are not done */
    bool nan_trap;
};

static inline tk_context *tk_context_of(const tk_graph *graph) {
    return (tk_context *)(uintptr_t)graph;
}

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

#endif
