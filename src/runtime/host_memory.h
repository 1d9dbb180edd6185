/* Memory of the host for drivers that compute on the processor or not at all: the functions have
 * the form of a driver's, and ignore `state`. */
#ifndef RUNTIME_HOST_MEMORY_H
#define RUNTIME_HOST_MEMORY_H

#include "runtime/device.h"

/* From 2 MiB on, blocks are mapped by themselves at multiples of 2 MiB and huge pages are asked
 * for, so that a pass over a large array does not miss the translation cache on every 4 KiB. */
#define TK_HUGE_PAGE ((size_t)2 << 20)

size_t tk_host_memory_size(void *state);
void *tk_host_allocate(void *state, size_t bytes);
void tk_host_free(void *state, void *memory, size_t bytes);

/* Large copies use the pool. */
tk_status tk_host_copy(void *state, void *to, const void *from, size_t bytes, tk_copy kind);

tk_status tk_host_synchronize(void *state);

/* Runs a task at once, on the calling thread. */
tk_status tk_host_run(void *state, tk_queue *queue, tk_task task, void *arg);

#endif
