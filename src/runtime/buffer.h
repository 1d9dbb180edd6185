/* A buffer: a counted block of a device's memory, and the allocator behind it.
 *
 * Freed blocks are kept, each with its record, and given out again: a training step asks for the
 * same sizes over and over, and a page that is already there costs nothing. Sizes are rounded up to
 * eight steps a doubling below 1 MiB and to 64 KiB above. A block is reused when it is at most a
 * quarter larger than what is asked for; blocks are never split, so nothing fragments. Above the
 * limits the blocks freed longest ago go back to the system first.
 *
 * On a device with queues a block is freed while work that uses it may still run. So it carries
 * marks: for each queue that used it, the latest work by then. It is given out again at once to the
 * queue it was made for, whose order already protects it, and to any other only when its marks are
 * past. Nobody waits for that unless memory has run out.
 *
 * One lock a device, held for a few dozen instructions and never while the system is asked for
 * memory. Rejected: caches a thread (memory freed on one thread is mostly wanted on another) and
 * splitting (saves memory only where sizes vary, and then fragments). */
#ifndef RUNTIME_BUFFER_H
#define RUNTIME_BUFFER_H

#include <stdatomic.h>

#include "runtime/device.h"
#include "runtime/stream.h"

/* Queues that a block remembers; beyond them one queue is made to wait for the other. */
#define TK_BUFFER_MARKS 4

struct tk_buffer {
    _Atomic int64_t references;
    void *data;      /* of the device; valid while a reference is held */
    size_t bytes;    /* as asked for */
    size_t capacity; /* of the block; 0 for foreign memory */
    tk_device *device;
    tk_event written; /* the last write; whoever submits the writing task sets it */

    const char *label; /* what it is for, in errors; static */
    tk_queue *home;    /* whose order the block was given out in; NULL: none */
    int n_marks;
    tk_mark marks[TK_BUFFER_MARKS]; /* while held: uses by other queues; while cached: all uses */

    void (*release)(void *owner); /* foreign memory: gives it back */
    void *owner;

    tk_buffer *next,
        *previous;            /* in the list of its size, while cached; of all held blocks, else */
    tk_buffer *newer, *older; /* among all cached blocks */
};

/* Takes a block of at least `bytes` (0 is allowed and gives a valid address), with undefined
 * content and one reference. TK_OUT_OF_MEMORY with the numbers if the limit or the system says no
 * (after the cache was emptied), TK_CONTEXT_ERROR in a forked child. Any thread. */
tk_status tk_buffer_new(tk_device *device, size_t bytes, tk_buffer **out_buffer);

/* The same in the order of a queue: the first work that touches the block must be handed to
 * `queue`, which lets it be a block whose last use there has not ended yet. `queue` may be NULL. */
tk_status tk_buffer_new_on(tk_device *device, tk_queue *queue, size_t bytes,
                           tk_buffer **out_buffer);

/* Says what the buffer is for, so that an error for want of memory can tell; `label` is static. */
void tk_buffer_label(tk_buffer *buffer, const char *label);

/* Says that work that uses the buffer was handed to `queue`. Not needed for its home queue. Errors
 * are the device's, and only when more than TK_BUFFER_MARKS queues use one buffer. Any thread. */
tk_status tk_buffer_used(tk_buffer *buffer, tk_queue *queue);

/* Waits for all work on the buffer that was handed to its home and to the queues it is marked for.
 * `wait` may be NULL. Any thread. */
tk_status tk_buffer_wait(tk_buffer *buffer, const tk_wait *wait);

/* Makes a buffer of memory that belongs to somebody else (a mapped file, another library's array).
 * release(owner) is called once, on the thread that drops the last reference; it may be NULL. Not
 * called if this fails. The memory counts in no limit. */
tk_status tk_buffer_wrap(tk_device *device, void *data, size_t bytes, void (*release)(void *owner),
                         void *owner, tk_buffer **out_buffer);

/* One reference more; returns the buffer. */
tk_buffer *tk_buffer_retain(tk_buffer *buffer);

/* One reference less; with the last the block goes to the cache. NULL is allowed. */
void tk_buffer_release(tk_buffer *buffer);

/* Whether the caller's reference is the only one, so that the caller may write the block anew. */
bool tk_buffer_unique(const tk_buffer *buffer);

/* The size of block that `bytes` would take; SIZE_MAX when it cannot be said in a size_t. */
size_t tk_buffer_capacity(size_t bytes);

#endif
