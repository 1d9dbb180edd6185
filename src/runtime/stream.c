/* Streams; stream.h tells what they promise.
 *
 * The queue is a ring in which the task with ticket t has place t modulo the size, and holds the
 * tickets after `finished` up to `submitted`; so there is no head, no tail and, once the ring is
 * large enough, no allocation. `busy` means that somebody runs the task of ticket finished + 1: the
 * worker, or a caller inline, whose task has a ticket but no place in the ring. */
#define _GNU_SOURCE
#include "runtime/stream.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/thread.h"
#include "runtime/trace.h"

#define POLL_SECONDS 0.02
#define FIRST_PLACES 16

struct entry {
    tk_task task; /* NULL: wait for the event */
    void *arg;
    tk_event event;
    uint64_t flow;
};

struct tk_stream {
    tk_device *device;
    tk_queue *queue; /* of the device; NULL where it has none */
    uint32_t fork_epoch;
    pthread_t worker;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t work;  /* for the worker */
    pthread_cond_t done;  /* for those who wait for tasks */
    struct entry *ring;
    uint64_t places; /* a power of two, or 0 */
    uint64_t submitted, finished;
    pthread_t runner; /* while busy */
    bool busy, closing;
    bool has_worker, worker_sleeps;
    int waiters;

    tk_status error; /* of the first task that failed and was not reported */
    uint64_t error_ticket;
    char message[TK_ERROR_MESSAGE_BYTES];
};

/* ---- life -------------------------------------------------------------------------------------
 */

tk_status tk_stream_open(tk_device *device, tk_stream **out_stream) {
    *out_stream = NULL;
    TK_TRY(tk_device_check(device));
    tk_stream *stream = tk_calloc(1, sizeof *stream);
    if (!stream) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a stream of %s", device->name);
    stream->device = device;
    stream->fork_epoch = tk_fork_epoch();
    const tk_driver *driver = device->driver;
    tk_status status = TK_OK;
    if (driver->queue_open) status = driver->queue_open(device->state, &stream->queue);
    if (status != TK_OK) {
        tk_free(stream);
        return status;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out_stream = stream;
    return TK_OK;
}

static bool inherited(const tk_stream *stream) { return stream->fork_epoch != tk_fork_epoch(); }

static void end_worker(tk_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    if (stream->has_worker) pthread_join(stream->worker, NULL);
    assert(stream->finished == stream->submitted);
}

void tk_stream_close(tk_stream *stream) {
    if (!stream) return;
    if (!inherited(stream)) {
        end_worker(stream);
        if (stream->queue) stream->device->driver->queue_close(stream->queue);
        pthread_cond_destroy(&stream->done);
        pthread_cond_destroy(&stream->work);
        pthread_mutex_destroy(&stream->lock);
    }
    tk_free(stream->ring);
    tk_free(stream);
}

tk_device *tk_stream_device(const tk_stream *stream) { return stream->device; }

tk_queue *tk_stream_queue(const tk_stream *stream) { return stream->queue; }

/* What the device has been handed so far. */
static tk_mark device_mark(const tk_stream *stream) {
    if (!stream->queue) return (tk_mark){0};
    return (tk_mark){stream->queue, stream->device->driver->queue_ticket(stream->queue)};
}

static tk_status check_stream(const tk_stream *stream) {
    if (!inherited(stream)) return TK_OK;
    return tk_fail(
        TK_CONTEXT_ERROR,
        "this stream of %s was made before the process was forked: make one in the child",
        stream->device->name);
}

static tk_status check_computes(const tk_stream *stream) {
    if (stream->device->driver->run) return TK_OK;
    return tk_fail(TK_UNSUPPORTED,
                   "device %s does not compute: it holds buffers and copies them, tasks need a "
                   "device such as cpu:0",
                   stream->device->name);
}

/* ---- running tasks ----------------------------------------------------------------------------
 */

static _Thread_local int tasks_here;

bool tk_stream_is_in_task(void) { return tasks_here > 0; }

static tk_status run_task(tk_stream *stream, uint64_t ticket, tk_task task, void *arg,
                          uint64_t flow) {
    int64_t begin = tk_trace_begin();
    tk_trace_flow_end(flow, "submit");
    tk_device *device = stream->device;
    tasks_here++;
    tk_status status = device->driver->run(device->state, stream->queue, task, arg);
    tasks_here--;
    tk_trace_end(begin, "stream", "task", "%s, ticket %llu", device->name,
                 (unsigned long long)ticket);
    return status;
}

/* begin_task, end_task, keep_error, has_work and run_next are called with the lock held. */
static uint64_t begin_task(tk_stream *stream) {
    stream->busy = true;
    stream->runner = pthread_self();
    return stream->finished + 1;
}

static void end_task(tk_stream *stream) {
    stream->busy = false;
    stream->finished++;
    if (stream->waiters) pthread_cond_broadcast(&stream->done);
}

static void keep_error(tk_stream *stream, tk_status status, uint64_t ticket) {
    if (stream->error != TK_OK) return;
    stream->error = status;
    stream->error_ticket = ticket;
    memcpy(stream->message, tk_error_message(), sizeof stream->message);
}

static struct entry *place_of(tk_stream *stream, uint64_t ticket) {
    return &stream->ring[ticket & (stream->places - 1)];
}

static bool has_work(const tk_stream *stream) {
    return !stream->busy && stream->finished < stream->submitted;
}

/* Holds `stream` until the event: its tasks until the other's have run, its queue until the other's
 * has done their work. */
static tk_status await_event(tk_stream *stream, tk_event event) {
    tk_stream *other = event.stream;
    pthread_mutex_lock(&other->lock);
    other->waiters++;
    while (other->finished < event.ticket) pthread_cond_wait(&other->done, &other->lock);
    other->waiters--;
    pthread_mutex_unlock(&other->lock);
    tk_mark mark = device_mark(other);
    if (!mark.queue) return TK_OK;
    if (stream->device == other->device)
        return other->device->driver->queue_follow(stream->queue, mark);
    return other->device->driver->queue_wait(mark.queue, mark.ticket, NULL);
}

/* Lets go of the lock while the task runs. */
static void run_next(tk_stream *stream) {
    uint64_t ticket = begin_task(stream);
    struct entry entry = *place_of(stream, ticket);
    pthread_mutex_unlock(&stream->lock);
    tk_status status = TK_OK;
    if (entry.task)
        status = run_task(stream, ticket, entry.task, entry.arg, entry.flow);
    else
        status = await_event(stream, entry.event);
    pthread_mutex_lock(&stream->lock);
    if (status != TK_OK) keep_error(stream, status, ticket);
    end_task(stream);
}

static void *worker_main(void *argument) {
    tk_stream *stream = argument;
    tk_trace_name_thread(stream->device->name);
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        if (has_work(stream)) {
            run_next(stream);
        } else if (stream->closing) {
            break;
        } else {
            stream->worker_sleeps = true;
            pthread_cond_wait(&stream->work, &stream->lock);
            stream->worker_sleeps = false;
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/* ---- submitting -------------------------------------------------------------------------------
 */

static bool grow_ring(tk_stream *stream) {
    uint64_t places = stream->places ? 2 * stream->places : FIRST_PLACES;
    struct entry *ring = tk_malloc(places * sizeof *ring);
    if (!ring) return false;
    uint64_t next = stream->finished + 1 + stream->busy; /* what runs has left its place */
    for (uint64_t ticket = next; ticket <= stream->submitted; ticket++)
        ring[ticket & (places - 1)] = *place_of(stream, ticket);
    tk_free(stream->ring);
    stream->ring = ring;
    stream->places = places;
    return true;
}

static tk_status push_locked(tk_stream *stream, const struct entry *entry) {
    const char *name = stream->device->name;
    if (!stream->has_worker)
        stream->has_worker = tk_thread_start(&stream->worker, "tiki-stream", worker_main, stream);
    if (!stream->has_worker)
        return tk_fail(TK_OUT_OF_MEMORY, "the system has no thread for a stream of %s", name);
    if (stream->submitted - stream->finished >= stream->places && !grow_ring(stream))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a task of %s", name);
    *place_of(stream, ++stream->submitted) = *entry;
    if (stream->worker_sleeps) pthread_cond_signal(&stream->work);
    return TK_OK;
}

static tk_status push(tk_stream *stream, const struct entry *entry) {
    pthread_mutex_lock(&stream->lock);
    tk_status status = push_locked(stream, entry);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

tk_status tk_stream_submit(tk_stream *stream, tk_task task, void *arg) {
    TK_TRY(check_stream(stream));
    TK_TRY(check_computes(stream));
    int64_t begin = tk_trace_begin();
    struct entry entry = {.task = task, .arg = arg, .flow = tk_trace_flow_new()};
    tk_trace_flow_start(entry.flow, "submit");
    tk_status status = push(stream, &entry);
    tk_trace_end(begin, "stream", "submit", "%s", stream->device->name);
    return status;
}

static bool hold_if_idle(tk_stream *stream, uint64_t *out_ticket) {
    pthread_mutex_lock(&stream->lock);
    bool idle = stream->finished == stream->submitted;
    if (idle) {
        stream->submitted++;
        *out_ticket = begin_task(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return idle;
}

tk_status tk_stream_run_inline_if_idle(tk_stream *stream, tk_task task, void *arg, bool *out_ran) {
    *out_ran = false;
    TK_TRY(check_stream(stream));
    TK_TRY(check_computes(stream));
    uint64_t ticket;
    if (!hold_if_idle(stream, &ticket)) return TK_OK;
    tk_status status = run_task(stream, ticket, task, arg, 0);
    pthread_mutex_lock(&stream->lock);
    end_task(stream);
    if (has_work(stream) && stream->worker_sleeps) pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    *out_ran = true;
    return status;
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

static double now_seconds(void) { return 1e-9 * (double)tk_trace_clock(); }

/* Waits for `done` until a moment of the monotonic clock, with the lock held. */
static void sleep_until(tk_stream *stream, double moment) {
    struct timespec time = {.tv_sec = (time_t)moment};
    time.tv_nsec = (long)((moment - (double)time.tv_sec) * 1e9);
    pthread_cond_timedwait(&stream->done, &stream->lock, &time);
}

static bool asked_to_stop(tk_stream *stream, const tk_wait *wait) {
    if (!wait->poll) return false;
    pthread_mutex_unlock(&stream->lock);
    bool stop = wait->poll(wait->arg);
    pthread_mutex_lock(&stream->lock);
    return stop;
}

/* Sleeps once; the reason to give up, or NULL. */
static const char *wait_a_little(tk_stream *stream, const tk_wait *wait, double begin) {
    double moment = now_seconds() + POLL_SECONDS;
    double limit = begin + wait->seconds;
    bool limited = wait->seconds > 0;
    sleep_until(stream, limited && limit < moment ? limit : moment);
    if (asked_to_stop(stream, wait)) return "asked to stop";
    return limited && now_seconds() >= limit ? "time limit" : NULL;
}

static bool runs_on_this_thread(const tk_stream *stream) {
    return stream->busy && pthread_equal(stream->runner, pthread_self());
}

static tk_status await_ticket(tk_stream *stream, uint64_t ticket, const tk_wait *wait) {
    const char *reason = NULL;
    double begin = now_seconds();
    stream->waiters++;
    while (stream->finished < ticket && !reason) {
        if (wait && (wait->poll || wait->seconds > 0))
            reason = wait_a_little(stream, wait, begin);
        else
            pthread_cond_wait(&stream->done, &stream->lock);
    }
    stream->waiters--;
    if (stream->finished >= ticket) return TK_OK;
    return tk_fail(TK_INTERRUPTED, "wait for %s given up (%s) after %.3f s with %llu tasks left",
                   stream->device->name, reason, now_seconds() - begin,
                   (unsigned long long)(ticket - stream->finished));
}

static tk_status report_error(tk_stream *stream, uint64_t ticket) {
    if (stream->error == TK_OK || stream->error_ticket > ticket) return TK_OK;
    tk_status status = stream->error;
    stream->error = TK_OK;
    return tk_fail_again(status, stream->message);
}

static tk_status wait_locked(tk_stream *stream, uint64_t ticket, const tk_wait *wait) {
    if (stream->finished < ticket && runs_on_this_thread(stream))
        return tk_fail(TK_INVALID_ARGUMENT, "a task of a stream of %s waits for its own stream",
                       stream->device->name);
    TK_TRY(await_ticket(stream, ticket, wait));
    return report_error(stream, ticket);
}

tk_status tk_event_wait(tk_event event, const tk_wait *wait) {
    tk_stream *stream = event.stream;
    if (!stream) return TK_OK;
    TK_TRY(check_stream(stream));
    pthread_mutex_lock(&stream->lock);
    tk_status status = wait_locked(stream, event.ticket, wait);
    pthread_mutex_unlock(&stream->lock);
    TK_TRY(status);
    const tk_driver *driver = stream->device->driver;
    if (!stream->queue) return driver->synchronize(stream->device->state);
    tk_mark mark = device_mark(stream);
    return driver->queue_wait(mark.queue, mark.ticket, wait);
}

tk_status tk_stream_wait(tk_stream *stream, const tk_wait *wait) {
    TK_TRY(check_stream(stream));
    return tk_event_wait(tk_stream_record(stream), wait);
}

/* ---- events -----------------------------------------------------------------------------------
 */

tk_event tk_stream_record(tk_stream *stream) {
    if (inherited(stream)) return (tk_event){stream, 0};
    pthread_mutex_lock(&stream->lock);
    tk_event event = {stream, stream->submitted};
    pthread_mutex_unlock(&stream->lock);
    return event;
}

int64_t tk_stream_pending(tk_stream *stream) {
    if (inherited(stream)) return 0;
    pthread_mutex_lock(&stream->lock);
    int64_t pending = (int64_t)(stream->submitted - stream->finished);
    pthread_mutex_unlock(&stream->lock);
    return pending;
}

bool tk_stream_is_mine(tk_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    bool mine = runs_on_this_thread(stream);
    pthread_mutex_unlock(&stream->lock);
    return mine;
}

bool tk_event_done(tk_event event) {
    if (!event.stream) return true;
    if (inherited(event.stream)) return false;
    pthread_mutex_lock(&event.stream->lock);
    bool done = event.stream->finished >= event.ticket;
    pthread_mutex_unlock(&event.stream->lock);
    tk_mark mark = device_mark(event.stream);
    if (!done || !mark.queue) return done;
    return event.stream->device->driver->queue_passed(mark.queue, mark.ticket, true);
}

tk_status tk_stream_wait_event(tk_stream *stream, tk_event event) {
    TK_TRY(check_stream(stream));
    if (!event.stream || event.stream == stream) return TK_OK;
    TK_TRY(check_stream(event.stream));
    if (tk_event_done(event)) return TK_OK;
    struct entry entry = {.event = event};
    return push(stream, &entry);
}
