/* One pool of threads a process, and the loops that run on it.
 *
 * A loop over `count` items is cut into parts before it starts. Which parts there are depends on
 * count, grain and the thread count only, never on timing, so a computation whose parts do not
 * share results is the same on every run. Which thread computes a part is not fixed: the caller
 * works too and takes parts that no thread has begun, so a small loop never waits for a sleeping
 * thread.
 *
 * A loop inside a loop body runs its parts one after the other on the thread it is in. Loops begun
 * by several threads at once take turns; those who wait sleep. So there are never more busy threads
 * than were asked for, and a body must not wait for another thread's loop.
 *
 * Threads start at the first loop that is cut, spin for some 50 microseconds after each loop and
 * then sleep. A forked child starts its own; a body must not fork. Loops cannot fail: where a
 * thread cannot be started, its part is done by the caller.
 *
 * Rejected: OpenMP (hangs in forked children, hides from TSan), work stealing of single items (the
 * parts would depend on timing), one pool a stream (more busy threads than were asked for). */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "tiki/status.h"

#define TK_POOL_MAX_THREADS 512

/* Threads that loops are cut for, the caller included: what tk_pool_set_threads said, else the
 * environment's TIKI_THREADS, else the CPUs this process may run on. At least 1. Any thread. */
int tk_pool_threads(void);

/* Sets the thread count; 0 goes back to the default. Waits for running loops, then ends the
 * threads; the next loop starts new ones. TK_INVALID_ARGUMENT when out of 0..TK_POOL_MAX_THREADS or
 * called from a loop body. */
tk_status tk_pool_set_threads(int threads);

/* Ends and joins the threads; a later loop starts them again. Not needed before exit. Does nothing
 * inside a loop body. */
void tk_pool_shutdown(void);

/* Whether the calling thread is inside a loop body, where loops do not use other threads. */
bool tk_pool_inside(void);

/* Computes items [begin, end) of a loop. `worker` is the number of the part: from 0, below
 * tk_pool_threads(), different for parts that run at once, so it can index per-thread scratch. */
typedef void (*tk_loop_body)(void *arg, int64_t begin, int64_t end, int worker);

/* Calls body on parts that cover [0, count) once each, and returns when all are done. There are at
 * most ceil(count / grain) parts (grain below 1 counts as 1) and at most as many as threads; so a
 * loop with count <= grain is one plain call. Parts of 1024 items or more begin at multiples of 64.
 */
void tk_parallel_for(int64_t count, int64_t grain, tk_loop_body body, void *arg);

/* Like tk_loop_body, for chunk number `chunk` = begin / chunk_items. */
typedef void (*tk_chunk_body)(void *arg, int64_t chunk, int64_t begin, int64_t end, int worker);

/* Calls body once for each chunk of `chunk_items` items (the last may be shorter). The chunks do
 * not depend on the thread count: a reduction that stores one partial result a chunk and then
 * combines them in chunk order is the same for any number of threads. chunk_items below 1 counts
 * as 1. */
void tk_parallel_chunks(int64_t count, int64_t chunk_items, tk_chunk_body body, void *arg);

/* The number of chunks that tk_parallel_chunks will make. */
static inline int64_t tk_chunk_count(int64_t count, int64_t chunk_items) {
    if (count <= 0) return 0;
    return chunk_items <= 1 ? count : 1 + (count - 1) / chunk_items;
}

#endif
