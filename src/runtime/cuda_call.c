/* Callbacks from streams to the host.
 *
 * The driver calls a function of ours on a thread that must neither wait nor call the driver, and
 * while it runs the stream stands still. So that function only moves a record from one list to
 * another, and a thread of the device makes the user's call.
 *
 * Every record is in the list of those not reached, or in the list of those due, or in the calling
 * thread's hands. When the device is lost the driver reaches no more of them: the thread then makes
 * all calls with the error, and keeps the records that were not reached until the device ends, in
 * case the driver still reaches one. */
#include "base/alloc.h"
#include "base/thread.h"
#include "runtime/cuda_stream.h"

typedef struct call {
    tk_cuda_calls *owner;
    tk_cuda_callback function;
    void *arg;
    bool reached, called;
    struct call *next, *previous; /* among all records */
    struct call *next_due;
} call;

struct tk_cuda_calls {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool lost, ending;
    call all; /* head of a ring of records */
    call *due, *last_due;
};

static void link_call(tk_cuda_calls *calls, call *record) {
    record->next = &calls->all;
    record->previous = calls->all.previous;
    calls->all.previous->next = record;
    calls->all.previous = record;
}

static void unlink_call(call *record) {
    record->next->previous = record->previous;
    record->previous->next = record->next;
    tk_free(record);
}

static void put_due(tk_cuda_calls *calls, call *record) {
    record->next_due = NULL;
    if (calls->last_due)
        calls->last_due->next_due = record;
    else
        calls->due = record;
    calls->last_due = record;
}

/* On the driver's thread. */
static void on_reached(void *arg) {
    call *record = arg;
    tk_cuda_calls *calls = record->owner;
    pthread_mutex_lock(&calls->lock);
    record->reached = true;
    if (!record->called) put_due(calls, record);
    pthread_cond_signal(&calls->changed);
    pthread_mutex_unlock(&calls->lock);
}

static void make_call(tk_cuda_calls *calls, call *record, tk_status status) {
    record->called = true;
    pthread_mutex_unlock(&calls->lock);
    record->function(record->arg, status);
    pthread_mutex_lock(&calls->lock);
}

static void call_next_due(tk_cuda_calls *calls) {
    call *record = calls->due;
    calls->due = record->next_due;
    if (!calls->due) calls->last_due = NULL;
    make_call(calls, record, TK_OK);
    unlink_call(record);
}

static call *find_uncalled(tk_cuda_calls *calls) {
    for (call *at = calls->all.next; at != &calls->all; at = at->next)
        if (!at->called && !at->reached) return at;
    return NULL;
}

static void *thread_main(void *arg) {
    tk_cuda_calls *calls = arg;
    pthread_mutex_lock(&calls->lock);
    for (;;) {
        call *left = calls->lost && !calls->due ? find_uncalled(calls) : NULL;
        if (calls->due)
            call_next_due(calls);
        else if (left)
            make_call(calls, left, TK_DEVICE_ERROR);
        else if (calls->ending)
            break;
        else
            pthread_cond_wait(&calls->changed, &calls->lock);
    }
    pthread_mutex_unlock(&calls->lock);
    return NULL;
}

static tk_cuda_calls *start_calls(void) {
    tk_cuda_calls *calls = tk_calloc(1, sizeof *calls);
    if (!calls) return NULL;
    calls->all.next = calls->all.previous = &calls->all;
    pthread_mutex_init(&calls->lock, NULL);
    pthread_cond_init(&calls->changed, NULL);
    if (tk_thread_start(&calls->thread, "tiki-cuda", thread_main, calls)) return calls;
    pthread_cond_destroy(&calls->changed);
    pthread_mutex_destroy(&calls->lock);
    tk_free(calls);
    return NULL;
}

/* Started by the first callback. */
static tk_cuda_calls *calls_of(tk_cuda *cuda) {
    pthread_mutex_lock(&cuda->lock);
    if (!cuda->calls) cuda->calls = start_calls();
    tk_cuda_calls *calls = cuda->calls;
    pthread_mutex_unlock(&cuda->lock);
    return calls;
}

tk_status tk_cuda_queue_call(tk_queue *queue, tk_cuda_callback function, void *arg) {
    tk_cuda *cuda = queue->cuda;
    TK_TRY(tk_cuda_enter(cuda));
    tk_cuda_calls *calls = calls_of(cuda);
    call *record = tk_calloc(1, sizeof *record);
    if (!calls || !record) {
        tk_free(record);
        return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory for a callback", cuda->index);
    }
    *record = (call){.owner = calls, .function = function, .arg = arg};
    pthread_mutex_lock(&calls->lock);
    link_call(calls, record);
    pthread_mutex_unlock(&calls->lock);
    CUresult result = cuda->api->stream_call(queue->handle, on_reached, record);
    if (result == CUDA_SUCCESS) {
        tk_cuda_queue_submitted(queue);
        return TK_OK;
    }
    pthread_mutex_lock(&calls->lock);
    bool called = record->called; /* the device was lost meanwhile: that call has been made */
    if (!called) unlink_call(record);
    pthread_mutex_unlock(&calls->lock);
    tk_status status = tk_cuda_fail(cuda, result, "a callback in stream %d", queue->number);
    return called ? TK_OK : status;
}

void tk_cuda_calls_lost(tk_cuda *cuda) {
    pthread_mutex_lock(&cuda->lock);
    tk_cuda_calls *calls = cuda->calls;
    pthread_mutex_unlock(&cuda->lock);
    if (!calls) return;
    pthread_mutex_lock(&calls->lock);
    calls->lost = true;
    pthread_cond_signal(&calls->changed);
    pthread_mutex_unlock(&calls->lock);
}

void tk_cuda_calls_end(tk_cuda *cuda) {
    tk_cuda_calls *calls = cuda->calls;
    if (!calls) return;
    pthread_mutex_lock(&calls->lock);
    calls->ending = true;
    pthread_cond_signal(&calls->changed);
    pthread_mutex_unlock(&calls->lock);
    pthread_join(calls->thread, NULL);
    while (calls->all.next != &calls->all) unlink_call(calls->all.next);
    pthread_cond_destroy(&calls->changed);
    pthread_mutex_destroy(&calls->lock);
    tk_free(calls);
    cuda->calls = NULL;
}
