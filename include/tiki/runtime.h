/* What a user may ask of the runtime: memory counters and limits of a device, the number of
 * threads, how long a wait may take, and the trace recorder.
 *
 * A device belongs to a context, which hands it out; everything here about memory is per device.
 * Threads and the trace are per process, because the processor and its clock are. */
#ifndef TIKI_RUNTIME_H
#define TIKI_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "tiki/api.h"
#include "tiki/status.h"

TK_BEGIN_DECLS

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* When a wait gives up. All zero (or a NULL pointer in its place): never. */
typedef struct tk_wait {
    bool (*poll)(void *arg); /* asked about every 20 ms on the waiting thread; true gives up */
    void *arg;
    double seconds; /* above zero: give up after this long */
} tk_wait;

/* ---- threads ----------------------------------------------------------------------------------
 */

/* Sets how many threads compute, for the whole process; 0 goes back to the default (the
 * environment's TIKI_THREADS, else the CPUs this process may run on). TK_INVALID_ARGUMENT below 0
 * or above 512. Waits for running loops. Any thread. */
TK_API tk_status tk_threads_set(int threads);

/* How many threads compute. At least 1. Any thread. */
TK_API int tk_threads_count(void);

/* ---- memory -----------------------------------------------------------------------------------
 */

typedef struct tk_device tk_device;

/* Bytes. A block counts with its full size, which is up to one eighth more than was asked for. */
typedef struct tk_memory_info {
    size_t active;       /* in buffers that somebody holds */
    size_t peak;         /* the most that `active` has been since the last reset */
    size_t cache;        /* in freed blocks that are kept for reuse */
    size_t memory_limit; /* active and cache together never exceed it */
    size_t cache_limit;  /* cache never exceeds it */
    size_t hits;         /* allocations answered from the cache, a count */
    size_t misses;       /* allocations that went to the system, a count */
} tk_memory_info;

/* A user's source of memory in place of the device's own. */
typedef struct tk_memory_hooks {
    /* NULL when there is none. `alignment` is a power of two, 64 or more. Any thread. */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*free)(void *user, void *memory, size_t bytes);
    void *user;
} tk_memory_hooks;

/* Name and number of a device, as "cpu:0". Static for the life of the device. */
TK_API const char *tk_device_name(const tk_device *device);

/* A snapshot of the counters. Any thread. */
TK_API tk_memory_info tk_device_memory(tk_device *device);

/* Sets the limit of active and cached bytes; an allocation beyond it gives TK_OUT_OF_MEMORY, after
 * the cache was emptied. What is already held stays valid. SIZE_MAX: none. Any thread. */
TK_API void tk_device_set_memory_limit(tk_device *device, size_t bytes);

/* Sets the limit of cached bytes and frees what is above it, least recently used first. Any thread.
 */
TK_API void tk_device_set_cache_limit(tk_device *device, size_t bytes);

/* Sets peak to what is active now. Any thread. */
TK_API void tk_device_reset_peak(tk_device *device);

/* Frees all cached blocks. Any thread. */
TK_API void tk_device_clear_cache(tk_device *device);

/* ---- trace ------------------------------------------------------------------------------------
 */

/* Starts recording, for the whole process, what runs when: kernels, tasks of streams, memory. With
 * a path the file is made now and written by tk_trace_stop; with NULL the text stays in memory.
 * TK_IO_ERROR if the file cannot be made, TK_INVALID_ARGUMENT if a recording is on. Any thread. */
TK_API tk_status tk_trace_start(const char *path);

/* Ends recording and writes the file as Chrome trace JSON (open it in Perfetto). TK_IO_ERROR if it
 * cannot be written, TK_INVALID_ARGUMENT if no recording is on. Any thread. */
TK_API tk_status tk_trace_stop(void);

/* The JSON of the latest recording that was started without a path, "" if there is none. Borrowed,
 * until the next tk_trace_start. */
TK_API const char *tk_trace_text(void);

TK_END_DECLS

#endif
