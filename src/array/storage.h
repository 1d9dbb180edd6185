/* The memory of a node's value: a buffer, the first element's address, strides. Immutable once
 * made. */
#ifndef ARRAY_STORAGE_H
#define ARRAY_STORAGE_H

#include "array/context.h"
#include "runtime/stream.h"

typedef struct tk_storage {
    tk_deferred later; /* first: how foreign memory goes back */
    tk_buffer *buffer;
    char *data;        /* the first element */
    tk_buffer *mirror; /* the values in the processor's memory, row-major, once asked for */
    char *fault;       /* the index error of an evaluation that nobody waited for; NULL: none */
    int rank;
    bool row_major;    /* strides are those of row-major order */
    int64_t strides[]; /* in elements */
} tk_storage;

/* A node that has several outputs has several values. */
typedef struct tk_tuple_storage {
    uint32_t count;
    tk_storage *parts[];
} tk_tuple_storage;

/* Takes over the buffer's reference (drops it on failure). strides NULL: row-major. */
tk_status tk_storage_new(tk_buffer *buffer, char *data, tk_type type, const int64_t *strides,
                         tk_storage **out_storage);
void tk_storage_free(tk_storage *storage); /* NULL is fine */

/* New memory for a value, in the order of a queue (NULL where the device has none). */
tk_status tk_storage_allocate(tk_device *device, tk_queue *queue, tk_type type,
                              tk_storage **out_storage);

/* The same value again, sharing the buffer. */
tk_status tk_storage_alias(const tk_storage *storage, tk_type type, tk_storage **out_storage);

/* The same under the lock of `graph`: memory that a user gave goes back once the lock is. */
void tk_storage_free_locked(tk_storage *storage, tk_graph *graph);

/* The hook of tk_graph: frees node->storage. The node may be a shell without a graph, where the
 * lock is not held. */
void tk_storage_release_node(tk_node *node);

/* Writes the values of `from`, which is on another device, into `to`, row-major memory of a device
 * whose work is handed to `queue` (NULL where there is none). Waits for what `from` still waits
 * for. Where the processor cannot read `from`, it must be row-major. */
tk_status tk_transfer(const tk_storage *from, tk_type type, tk_storage *to, tk_queue *queue);

void tk_storage_view(const tk_storage *storage, tk_type type, tk_strided *out_view);

/* Row-major strides, in elements; an axis without elements counts as one. */
void tk_strides_set_row_major(int rank, const int64_t *shape, int64_t *strides);

/* Whether strides are row-major for the shape (lengths of 1 and empty arrays do not matter). */
bool tk_strides_row_major(int rank, const int64_t *shape, const int64_t *strides);

/* The value of a view op on `source` without copying. *out_storage is NULL when strides cannot
 * express it. */
tk_status tk_storage_view_op(const tk_node *node, const tk_storage *source, tk_type source_type,
                             tk_storage **out_storage);

#endif
