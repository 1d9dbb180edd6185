/* A device: a driver's functions, its state, and the memory that was taken from it.
 *
 * A driver is a struct of functions, so a new kind of device is one new file: see driver_null.c for
 * the smallest one. Everything above asks devices through this header and never a driver.
 *
 * Life: tk_device_open gives a device that the caller closes. Buffers may outlive the close (an
 * array handed to another library); the device goes away with the last of them.
 *
 * Fork: a child may still release buffers and close devices it inherited; whatever else it asks of
 * them gives TK_CONTEXT_ERROR. */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include <pthread.h>
#include <stdint.h>

#include "tiki/runtime.h"

#define TK_MEMORY_ALIGNMENT 64

typedef struct tk_buffer tk_buffer;

/* The order in which a device beside the processor does its work; the driver defines it. Work that
 * was handed to it has a ticket: 1 for the first, then one more each. A queue stays a valid address
 * until its device ends, so a mark in it never dangles. */
typedef struct tk_queue tk_queue;

/* The moment at which the device has done the first `ticket` works of `queue`. NULL: past. */
typedef struct tk_mark {
    tk_queue *queue;
    uint64_t ticket;
} tk_mark;

/* A piece of work on the host, run in a stream's order. A failure is reported with tk_fail. */
typedef tk_status (*tk_task)(void *arg);

typedef enum tk_copy { TK_COPY_TO_DEVICE, TK_COPY_FROM_DEVICE, TK_COPY_ON_DEVICE } tk_copy;

/* What tk_device_open may be told. All zero: the device's own memory, default limits. */
typedef struct tk_device_options {
    tk_memory_hooks hooks; /* used when hooks.allocate is set; both functions or neither */
    size_t memory_limit;   /* 0: the device's memory */
    size_t cache_limit;    /* 0: a quarter of the memory limit; set it later for "none" */
} tk_device_options;

/* The functions of a driver. `state` is what open made. All may be called from any thread. */
typedef struct tk_driver {
    const char *name;
    bool host_memory; /* the processor can read and write the device's memory in place */
    tk_status (*open)(int index, void **out_state);
    void (*close)(void *state);

    /* Bytes of memory that the device has, for the default limit. */
    size_t (*memory_size)(void *state);

    /* Memory aligned to TK_MEMORY_ALIGNMENT or more; NULL when there is none. */
    void *(*allocate)(void *state, size_t bytes);
    void (*free)(void *state, void *memory, size_t bytes);

    /* Copies and returns when it is done. */
    tk_status (*copy)(void *state, void *to, const void *from, size_t bytes, tk_copy kind);

    /* Runs a stream's task, on a lost device too, with the device and the stream's queue (NULL
     * where there are none) made current where that means something. NULL: the device does not
     * compute, and streams refuse tasks for it. */
    tk_status (*run)(void *state, tk_queue *queue, tk_task task, void *arg);

    /* Returns when the device has done all that tasks have launched on it. */
    tk_status (*synchronize)(void *state);

    /* Queues: all set, or all NULL where work is done by the time that a task returns. */
    tk_status (*queue_open)(void *state, tk_queue **out_queue);
    void (*queue_close)(tk_queue *queue);            /* waits for its work */
    uint64_t (*queue_ticket)(const tk_queue *queue); /* of the latest work */
    /* Whether a mark is past: as far as is known, or asking the device. Neither waits. */
    bool (*queue_passed)(tk_queue *queue, uint64_t ticket, bool ask);
    tk_status (*queue_wait)(tk_queue *queue, uint64_t ticket, const tk_wait *wait);
    /* Makes later work of `queue` wait for the mark, without holding up the caller. */
    tk_status (*queue_follow)(tk_queue *queue, tk_mark mark);

    /* Hands over the copy of ordinary host memory; returns when `from` has been read. NULL: copy.
     */
    tk_status (*queue_upload)(tk_queue *queue, void *to, const void *from, size_t bytes);

    /* TK_INDEX_ERROR once for indices that launches which are done found out of range. NULL: bodies
     * tell it themselves. */
    tk_status (*take_fault)(void *state);

    /* Writes what the device says of its memory ("3 of 141 GiB free"), for an error. May be NULL.
     */
    void (*describe_memory)(void *state, char *text, size_t bytes);
} tk_driver;

extern const tk_driver tk_driver_cpu;
extern const tk_driver tk_driver_cuda;
extern const tk_driver tk_driver_emulator;
extern const tk_driver tk_driver_null;

/* Cached blocks are kept in lists by size, eight lists a doubling. */
#define TK_MEMORY_CLASSES (64 * 8)

/* Memory of a device (see buffer.h); `lock` guards every field after it. */
typedef struct tk_memory {
    tk_memory_hooks hooks;
    pthread_mutex_t lock;
    tk_memory_info info;
    int64_t holders; /* the opener, until the close, and each buffer that somebody holds */
    tk_buffer *oldest, *newest; /* all cached blocks, by the time they were freed */
    tk_buffer *held;            /* all blocks that somebody holds */
    tk_buffer *cached[TK_MEMORY_CLASSES];
} tk_memory;

struct tk_device {
    const tk_driver *driver;
    void *state;
    int index;
    uint32_t fork_epoch;
    char name[32];
    tk_memory memory;
};

/* Opens device number `index` of a driver. `options` may be NULL. Errors are the driver's, or
 * TK_OUT_OF_MEMORY. The caller closes the device. */
tk_status tk_device_open(const tk_driver *driver, int index, const tk_device_options *options,
                         tk_device **out_device);

/* Frees the cache and gives the device back, now or with its last buffer. The device's streams must
 * have been closed. NULL is allowed. */
void tk_device_close(tk_device *device);

/* One holder less; the last one ends the device. For buffer.c. */
void tk_device_leave(tk_device *device);

/* TK_CONTEXT_ERROR if the device was opened by a parent of this process. */
tk_status tk_device_check(const tk_device *device);

/* The error of an index: TK_INDEX_ERROR. */
tk_status tk_fail_index(const char *what, int64_t index, int64_t length, int64_t position);

/* Copies `bytes` now, outside any stream order: the caller has waited for what it reads. */
tk_status tk_device_copy(tk_device *device, void *to, const void *from, size_t bytes, tk_copy kind);

#endif
