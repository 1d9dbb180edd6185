/* A CUDA stream, which is what a tk_queue is on a CUDA device.
 *
 * Every work handed to a stream raises its ticket. Which tickets are past is learnt from events
 * that are recorded only when somebody asks, so a launch pays for none. Streams do not wait for the
 * legacy default stream, nor it for them.
 *
 * The record of a closed stream stays with the device and serves the next stream, with its tickets
 * going on, so that marks in it stay true. */
#ifndef RUNTIME_CUDA_STREAM_H
#define RUNTIME_CUDA_STREAM_H

#include "runtime/cuda_device.h"

#define TK_CUDA_RECORDED 8
#define TK_CUDA_LAUNCH_NAMES 32
#define TK_CUDA_NAME_BYTES 56

/* A launch that may not have ended; for errors that come up later. */
typedef struct tk_cuda_launched {
    uint64_t ticket;
    const char *site;
    char kernel[TK_CUDA_NAME_BYTES];
} tk_cuda_launched;

struct tk_queue {
    tk_cuda *cuda;
    CUstream handle;
    int number;     /* from 1, for messages */
    tk_queue *next; /* in the device's list */
    _Atomic bool open;
    _Atomic bool capturing; /* into a graph: nothing runs */
    _Atomic uint64_t submitted, passed;

    pthread_mutex_t lock; /* guards the events that were recorded, oldest first */
    struct {
        uint64_t ticket;
        CUevent event;
    } recorded[TK_CUDA_RECORDED];
    int n_recorded;

    pthread_mutex_t names_lock;
    tk_cuda_launched names[TK_CUDA_LAUNCH_NAMES]; /* by ticket, the latest launches */
    uint64_t n_launches;
};

/* The functions of the driver (device.h says what they promise). */
tk_status tk_cuda_queue_open(void *state, tk_queue **out_queue);
void tk_cuda_queue_close(tk_queue *queue);
uint64_t tk_cuda_queue_ticket(const tk_queue *queue);
bool tk_cuda_queue_passed(tk_queue *queue, uint64_t ticket, bool ask);
tk_status tk_cuda_queue_wait(tk_queue *queue, uint64_t ticket, const tk_wait *wait);
tk_status tk_cuda_queue_follow(tk_queue *queue, tk_mark mark);

/* Ends all streams of a device that closes. */
void tk_cuda_queues_end(tk_cuda *cuda);

/* The mark of all work so far. */
static inline tk_mark tk_cuda_queue_mark(tk_queue *queue) {
    return (tk_mark){queue, tk_cuda_queue_ticket(queue)};
}

/* Notes one more work that the driver has accepted; gives its ticket. */
static inline uint64_t tk_cuda_queue_submitted(tk_queue *queue) {
    return atomic_fetch_add_explicit(&queue->submitted, 1, memory_order_acq_rel) + 1;
}

/* Notes a launch for later errors. `site` must live as long as the device; the name is copied. */
void tk_cuda_queue_launched(tk_queue *queue, uint64_t ticket, const char *kernel, const char *site);

/* Writes the launches of all streams that are not known to have ended; "" when there are none. */
void tk_cuda_describe_launches(tk_cuda *cuda, char *text, size_t room);

/* The queue that this thread's task hands work to; NULL outside of a task. */
tk_queue *tk_cuda_current_queue(void);
void tk_cuda_set_current_queue(tk_queue *queue);

/* Exchange with other libraries, which know a stream by the driver's handle (0: the legacy default
 * stream): makes later work of `queue` wait for what `other` holds now, or the other way round. */
tk_status tk_cuda_queue_follow_foreign(tk_queue *queue, CUstream other);
tk_status tk_cuda_foreign_follow_queue(CUstream other, tk_queue *queue);

/* Calls function(arg, status) once all earlier work is done: on a thread of the device that may
 * wait and call the driver. Later work does not wait for the call. `status` is TK_OK, or
 * TK_DEVICE_ERROR when the device was lost before. Calls of one stream come in order.
 * TK_OUT_OF_MEMORY and the device's errors; the function is then never called. */
typedef void (*tk_cuda_callback)(void *arg, tk_status status);
tk_status tk_cuda_queue_call(tk_queue *queue, tk_cuda_callback function, void *arg);

/* Ends the thread of callbacks, after those that are due. */
void tk_cuda_calls_end(tk_cuda *cuda);

/* Calls what waits for a device that was lost. */
void tk_cuda_calls_lost(tk_cuda *cuda);

#endif
