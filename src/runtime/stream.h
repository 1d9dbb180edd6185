/* A stream: tasks of one device, run one at a time in the order they were submitted.
 *
 * Every task has a ticket: 1 for the first, then one more each. As tasks end in order, "the first n
 * tasks are done" is one number, so an event is a stream and a ticket, a plain value that needs no
 * allocation, no recording and no freeing.
 *
 * A worker thread, started by the first task that needs it, runs the queue. A caller who would wait
 * anyway runs its task itself when the stream is idle (tk_stream_run_inline_if_idle), which saves
 * two thread switches and keeps the order all the same.
 *
 * Errors: the first failure of a queued task is kept and given by the next tk_stream_wait or
 * tk_event_wait that covers it, once. Later tasks run all the same. Who shares a stream and must
 * know whose task failed keeps the status in the task's own record.
 *
 * A device beside the processor has its own order, its queue: a task hands work to it and returns.
 * Tasks of such a stream count as done for others (tk_event_wait, tk_event_done, waits between
 * streams) when the device has done what they, and the tasks after them that have run by then,
 * handed over.
 *
 * Fork: in a child every call gives TK_CONTEXT_ERROR; closing only frees. Nothing hangs. */
#ifndef RUNTIME_STREAM_H
#define RUNTIME_STREAM_H

#include "runtime/device.h"

typedef struct tk_stream tk_stream;

/* The moment at which the first `ticket` tasks of `stream` are done; ticket 0 is always past. The
 * stream is borrowed: a context closes its streams only after all of them are drained. */
typedef struct tk_event {
    tk_stream *stream;
    uint64_t ticket;
} tk_event;

/* Makes a stream of a device, which must outlive it. The caller closes it. TK_OUT_OF_MEMORY. */
tk_status tk_stream_open(tk_device *device, tk_stream **out_stream);

/* Runs what is queued, ends the worker and frees the stream. No other thread may use it any more.
 * NULL is allowed. Not from a task of this stream. */
void tk_stream_close(tk_stream *stream);

tk_device *tk_stream_device(const tk_stream *stream);

/* The device's queue that the stream's tasks hand work to; NULL where the device has none. */
tk_queue *tk_stream_queue(const tk_stream *stream);

/* Puts a task at the end of the queue; `arg` must live until it ran. TK_UNSUPPORTED if the device
 * does not compute, TK_OUT_OF_MEMORY, TK_CONTEXT_ERROR in a forked child; the task then never runs.
 * Any thread, tasks of this stream included. */
tk_status tk_stream_submit(tk_stream *stream, tk_task task, void *arg);

/* If nothing is queued or running: runs the task now on this thread, holding the stream so that
 * tasks submitted meanwhile come after it, sets *out_ran to true and gives the task's own status.
 * Else sets *out_ran to false and gives TK_OK. Errors before running as tk_stream_submit, *out_ran
 * false. */
tk_status tk_stream_run_inline_if_idle(tk_stream *stream, tk_task task, void *arg, bool *out_ran);

/* Waits until all tasks submitted before this call are done. `wait` may be NULL. TK_INTERRUPTED if
 * it gave up; the tasks go on. TK_INVALID_ARGUMENT from a task of this stream, which would wait for
 * itself. Else the error of a task, if one failed and was not reported yet. */
tk_status tk_stream_wait(tk_stream *stream, const tk_wait *wait);

/* The event of all tasks submitted so far. */
tk_event tk_stream_record(tk_stream *stream);

/* Whether this thread is in a task of any stream; what it would wait for may then wait for it. */
bool tk_stream_is_in_task(void);

/* Whether the calling thread runs a task of this stream. */
bool tk_stream_is_mine(tk_stream *stream);

/* Tasks submitted and not done, the running one included. */
int64_t tk_stream_pending(tk_stream *stream);

/* Whether the event has passed; false in a forked child. */
bool tk_event_done(tk_event event);

/* Like tk_stream_wait, up to the event. */
tk_status tk_event_wait(tk_event event, const tk_wait *wait);

/* Makes later tasks of `stream` wait for the event, without holding up the caller. The error of the
 * other stream is not carried over. Nothing to do if the event has passed or is of this stream. */
tk_status tk_stream_wait_event(tk_stream *stream, tk_event event);

#endif
