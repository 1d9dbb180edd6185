/* CUDA streams as queues; cuda_stream.h tells how tickets pass. */
#define _GNU_SOURCE
#include "runtime/cuda_stream.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "runtime/trace.h"

#define POLL_SECONDS 0.02
#define SPIN_SECONDS 50e-6
#define LONGEST_SLEEP_SECONDS 1e-3

static _Thread_local tk_queue *current_queue;

tk_queue *tk_cuda_current_queue(void) { return current_queue; }

void tk_cuda_set_current_queue(tk_queue *queue) { current_queue = queue; }

/* ---- life -------------------------------------------------------------------------------------
 */

static tk_queue *reuse_record(tk_cuda *cuda) {
    for (tk_queue *at = atomic_load(&cuda->queues); at; at = at->next) {
        bool closed = false;
        if (atomic_compare_exchange_strong(&at->open, &closed, true)) return at;
    }
    return NULL;
}

static tk_queue *new_record(tk_cuda *cuda) {
    tk_queue *queue = tk_calloc(1, sizeof *queue);
    if (!queue) return NULL;
    queue->cuda = cuda;
    atomic_store(&queue->open, true);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_mutex_init(&queue->names_lock, NULL);
    pthread_mutex_lock(&cuda->lock);
    queue->number = ++cuda->n_queues;
    queue->next = atomic_load(&cuda->queues);
    atomic_store(&cuda->queues, queue);
    pthread_mutex_unlock(&cuda->lock);
    return queue;
}

tk_status tk_cuda_queue_open(void *state, tk_queue **out_queue) {
    tk_cuda *cuda = state;
    *out_queue = NULL;
    TK_TRY(tk_cuda_enter(cuda));
    tk_queue *queue = reuse_record(cuda);
    if (!queue) queue = new_record(cuda);
    if (!queue) return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory for a stream", cuda->index);
    if (!queue->handle) {
        CUresult result = cuda->api->stream_create(&queue->handle, CU_STREAM_NON_BLOCKING);
        if (result != CUDA_SUCCESS) {
            queue->handle = NULL;
            atomic_store(&queue->open, false);
            return tk_cuda_fail(cuda, result, "making a stream");
        }
    }
    *out_queue = queue;
    return TK_OK;
}

void tk_cuda_queue_close(tk_queue *queue) {
    (void)tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL);
    atomic_store(&queue->open, false);
}

static void end_record(tk_queue *queue) {
    const tk_cuda_api *api = queue->cuda->api;
    for (int i = 0; i < queue->n_recorded; i++) (void)api->event_destroy(queue->recorded[i].event);
    if (queue->handle) (void)api->stream_destroy(queue->handle);
    pthread_mutex_destroy(&queue->lock);
    pthread_mutex_destroy(&queue->names_lock);
    tk_free(queue);
}

void tk_cuda_queues_end(tk_cuda *cuda) {
    tk_queue *queue = atomic_load(&cuda->queues);
    while (queue) {
        tk_queue *next = queue->next;
        end_record(queue);
        queue = next;
    }
    atomic_store(&cuda->queues, NULL);
}

/* ---- which tickets are past -------------------------------------------------------------------
 */

uint64_t tk_cuda_queue_ticket(const tk_queue *queue) {
    return atomic_load_explicit(&queue->submitted, memory_order_acquire);
}

static uint64_t passed(const tk_queue *queue) {
    return atomic_load_explicit(&queue->passed, memory_order_acquire);
}

static void raise_passed(tk_queue *queue, uint64_t ticket) {
    uint64_t before = passed(queue);
    while (before < ticket && !atomic_compare_exchange_weak(&queue->passed, &before, ticket)) {
    }
}

/* With the queue's lock. A failed query is no answer; the next wait will report it. */
static void poll_recorded(tk_queue *queue) {
    tk_cuda *cuda = queue->cuda;
    int done = 0;
    while (done < queue->n_recorded &&
           cuda->api->event_query(queue->recorded[done].event) == CUDA_SUCCESS) {
        raise_passed(queue, queue->recorded[done].ticket);
        tk_cuda_event_give(cuda, queue->recorded[done].event);
        done++;
    }
    queue->n_recorded -= done;
    memmove(queue->recorded, queue->recorded + done,
            (size_t)queue->n_recorded * sizeof queue->recorded[0]);
}

/* With the queue's lock: makes sure that an event will tell when `ticket` is past. */
static void record_for(tk_queue *queue, uint64_t ticket) {
    tk_cuda *cuda = queue->cuda;
    int last = queue->n_recorded - 1;
    if (last >= 0 && queue->recorded[last].ticket >= ticket) return;
    if (queue->n_recorded == TK_CUDA_RECORDED || atomic_load(&queue->capturing)) return;
    CUevent event;
    if (tk_cuda_event_take(cuda, &event) != TK_OK) return;
    uint64_t covered = tk_cuda_queue_ticket(queue);
    if (cuda->api->event_record(event, queue->handle) != CUDA_SUCCESS) {
        tk_cuda_event_give(cuda, event);
        return;
    }
    queue->recorded[queue->n_recorded].ticket = covered;
    queue->recorded[queue->n_recorded].event = event;
    queue->n_recorded++;
}

bool tk_cuda_queue_passed(tk_queue *queue, uint64_t ticket, bool ask) {
    if (passed(queue) >= ticket) return true;
    if (atomic_load_explicit(&queue->cuda->lost, memory_order_acquire)) return true;
    if (!ask || tk_cuda_enter(queue->cuda) != TK_OK) return false;
    pthread_mutex_lock(&queue->lock);
    poll_recorded(queue);
    if (passed(queue) < ticket) record_for(queue, ticket);
    pthread_mutex_unlock(&queue->lock);
    return passed(queue) >= ticket;
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

static double now_seconds(void) { return 1e-9 * (double)tk_trace_clock(); }

static void sleep_seconds(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* Short waits spin, longer ones sleep for a tenth of the time so far. */
static void pause_after(double waited) {
    if (waited < SPIN_SECONDS) {
        sched_yield();
        return;
    }
    double sleep = waited / 10;
    sleep_seconds(sleep < LONGEST_SLEEP_SECONDS ? sleep : LONGEST_SLEEP_SECONDS);
}

static CUresult wait_politely(tk_cuda *cuda, CUevent event, const tk_wait *wait,
                              const char **out_reason) {
    double begin = now_seconds(), polled = begin;
    for (;;) {
        CUresult result = cuda->api->event_query(event);
        if (result != CUDA_ERROR_NOT_READY) return result;
        double now = now_seconds();
        if (wait->seconds > 0 && now - begin >= wait->seconds) *out_reason = "time limit";
        if (wait->poll && now - polled >= POLL_SECONDS) {
            polled = now;
            if (wait->poll(wait->arg)) *out_reason = "asked to stop";
        }
        if (*out_reason) return CUDA_SUCCESS;
        pause_after(now - begin);
    }
}

static tk_status wait_for(tk_queue *queue, CUevent event, const tk_wait *wait) {
    tk_cuda *cuda = queue->cuda;
    uint64_t covered = tk_cuda_queue_ticket(queue);
    TK_CUDA_TRY(cuda, cuda->api->event_record(event, queue->handle), "recording in stream %d",
                queue->number);
    const char *reason = NULL;
    CUresult result = CUDA_SUCCESS;
    if (wait && (wait->poll || wait->seconds > 0))
        result = wait_politely(cuda, event, wait, &reason);
    else
        result = cuda->api->event_synchronize(event);
    if (result != CUDA_SUCCESS)
        return tk_cuda_fail(cuda, result, "waiting for stream %d", queue->number);
    if (reason)
        return tk_fail(TK_INTERRUPTED, "wait for stream %d of cuda:%d given up (%s)", queue->number,
                       cuda->index, reason);
    raise_passed(queue, covered);
    return TK_OK;
}

tk_status tk_cuda_queue_wait(tk_queue *queue, uint64_t ticket, const tk_wait *wait) {
    tk_cuda *cuda = queue->cuda;
    TK_TRY(tk_cuda_enter(cuda));
    if (passed(queue) >= ticket) return TK_OK;
    if (atomic_load(&queue->capturing))
        return tk_fail(TK_INVALID_ARGUMENT,
                       "stream %d of cuda:%d is being captured into a graph: nothing runs that "
                       "could be waited for",
                       queue->number, cuda->index);
    CUevent event;
    TK_TRY(tk_cuda_event_take(cuda, &event));
    tk_status status = wait_for(queue, event, wait);
    tk_cuda_event_give(cuda, event);
    return status;
}

/* ---- order between streams --------------------------------------------------------------------
 */

static tk_status follow(tk_cuda *cuda, CUstream later, CUstream earlier) {
    CUevent event;
    TK_TRY(tk_cuda_event_take(cuda, &event));
    CUresult result = cuda->api->event_record(event, earlier);
    if (result == CUDA_SUCCESS) result = cuda->api->stream_wait_event(later, event, 0);
    tk_cuda_event_give(cuda, event); /* the driver has noted what to wait for */
    return result == CUDA_SUCCESS ? TK_OK : tk_cuda_fail(cuda, result, "ordering two streams");
}

tk_status tk_cuda_queue_follow(tk_queue *queue, tk_mark mark) {
    tk_queue *other = mark.queue;
    if (!other || other == queue) return TK_OK;
    TK_TRY(tk_cuda_enter(other->cuda));
    if (passed(other) >= mark.ticket) return TK_OK;
    if (atomic_load(&queue->capturing) || atomic_load(&other->capturing))
        return tk_fail(TK_INVALID_ARGUMENT,
                       "streams %d and %d of cuda:%d: one is being captured into a graph, which "
                       "holds the work of one stream",
                       queue->number, other->number, other->cuda->index);
    TK_TRY(follow(other->cuda, queue->handle, other->handle));
    tk_cuda_queue_submitted(queue);
    return TK_OK;
}

tk_status tk_cuda_queue_follow_foreign(tk_queue *queue, CUstream other) {
    TK_TRY(tk_cuda_enter(queue->cuda));
    TK_TRY(follow(queue->cuda, queue->handle, other));
    tk_cuda_queue_submitted(queue);
    return TK_OK;
}

tk_status tk_cuda_foreign_follow_queue(CUstream other, tk_queue *queue) {
    TK_TRY(tk_cuda_enter(queue->cuda));
    return follow(queue->cuda, other, queue->handle);
}

/* ---- launches that may have caused an error ---------------------------------------------------
 */

void tk_cuda_queue_launched(tk_queue *queue, uint64_t ticket, const char *kernel,
                            const char *site) {
    pthread_mutex_lock(&queue->names_lock);
    tk_cuda_launched *slot = &queue->names[queue->n_launches++ % TK_CUDA_LAUNCH_NAMES];
    slot->ticket = ticket;
    slot->site = site;
    size_t length = strnlen(kernel, TK_CUDA_NAME_BYTES - 1);
    memcpy(slot->kernel, kernel, length);
    slot->kernel[length] = 0;
    pthread_mutex_unlock(&queue->names_lock);
}

typedef struct suspects {
    char *text;
    size_t room, length;
    uint64_t unknown; /* launches that may be to blame */
} suspects;

static void add_suspect(suspects *all, const tk_queue *queue, const tk_cuda_launched *launch) {
    if (all->length >= all->room) return;
    all->length += (size_t)snprintf(
        all->text + all->length, all->room - all->length, "%s%s launched at %s (stream %d)",
        all->unknown ? ", " : "not known to have ended: ", launch->kernel,
        launch->site ? launch->site : "an unnamed place", queue->number);
}

#define SHOWN_SUSPECTS 6

static void add_suspects_of(suspects *all, tk_queue *queue) {
    pthread_mutex_lock(&queue->names_lock);
    uint64_t kept =
        queue->n_launches < TK_CUDA_LAUNCH_NAMES ? queue->n_launches : TK_CUDA_LAUNCH_NAMES;
    for (uint64_t i = queue->n_launches - kept; i < queue->n_launches; i++) {
        const tk_cuda_launched *launch = &queue->names[i % TK_CUDA_LAUNCH_NAMES];
        if (launch->ticket <= passed(queue)) continue;
        if (all->unknown < SHOWN_SUSPECTS) add_suspect(all, queue, launch);
        all->unknown++;
    }
    pthread_mutex_unlock(&queue->names_lock);
}

void tk_cuda_describe_launches(tk_cuda *cuda, char *text, size_t room) {
    suspects all = {text, room, 0, 0};
    text[0] = 0;
    for (tk_queue *at = atomic_load(&cuda->queues); at; at = at->next) add_suspects_of(&all, at);
    if (all.unknown > 1 && all.length < room)
        snprintf(text + all.length, room - all.length, "%s; TIKI_CUDA_DEBUG=1 finds which",
                 all.unknown > SHOWN_SUSPECTS ? " and others" : "");
}
