/* The trace recorder; trace.h tells how to record, tiki/runtime.h how to start and stop.
 *
 * Each thread that records has a recorder in one list. Its lock is taken by its own thread for each
 * event and by others only while the trace starts or stops, so it is almost never contended; a ring
 * without a lock would save some 20 ns an event and cost the proof that reading it is safe.
 *
 * A forked child is not recorded: it inherits recorders that its threads' ghosts may hold locked,
 * so it forgets them all. */
#define _GNU_SOURCE
#include "runtime/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define FLUSH_BYTES ((size_t)64 << 10)

struct event {
    char phase; /* as Chrome's: X span, C counter, s and f ends of an arrow */
    const char *category;
    int64_t begin;    /* ns */
    int64_t duration; /* ns of a span; a counter's value; an arrow's number */
    char name[TK_TRACE_NAME_BYTES];
    char detail[TK_TRACE_DETAIL_BYTES];
};

struct recorder {
    pthread_mutex_t lock;
    TK_VEC(struct event) events;
    int64_t dropped;
    int number;
    bool ended; /* its thread is gone; guarded by the list's lock */
    char thread_name[TK_TRACE_NAME_BYTES];
    struct recorder *next;
};

_Atomic bool tk_trace_recording;

static struct {
    pthread_mutex_t lock;
    struct recorder *recorders;
    struct recorder *inherited; /* of the parent process: never touched, but not lost */
    int numbers;
    FILE *file;
    tk_strbuf text;
    _Atomic int64_t begin;
    _Atomic uint64_t flows;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static pthread_key_t thread_end;
static _Thread_local struct recorder *mine;
static _Thread_local char thread_name[TK_TRACE_NAME_BYTES];

int64_t tk_trace_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- threads and forks ------------------------------------------------------------------------
 */

static void note_thread_end(void *recorder) {
    mine = NULL;
    pthread_mutex_lock(&trace.lock);
    ((struct recorder *)recorder)->ended = true;
    pthread_mutex_unlock(&trace.lock);
}

static void before_fork(void) { pthread_mutex_lock(&trace.lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&trace.lock); }

static void after_fork_in_child(void) {
    atomic_store(&tk_trace_recording, false);
    struct recorder **end = &trace.inherited;
    while (*end) end = &(*end)->next;
    *end = trace.recorders;
    trace.recorders = NULL;
    mine = NULL;
    pthread_setspecific(thread_end, NULL);
    if (trace.file) fclose(trace.file);
    trace.file = NULL;
    pthread_mutex_unlock(&trace.lock);
}

static void prepare(void) {
    pthread_key_create(&thread_end, note_thread_end);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- recording --------------------------------------------------------------------------------
 */

/* Copies what fits, cut between characters of UTF-8. */
static void copy_cut(char *to, size_t room, const char *from) {
    size_t length = strlen(from);
    if (length >= room) {
        length = room - 1;
        while (length && ((unsigned char)from[length] & 0xc0) == 0x80) length--;
    }
    memcpy(to, from, length);
    to[length] = 0;
}

static struct recorder *new_recorder(void) {
    struct recorder *recorder = tk_calloc(1, sizeof *recorder);
    if (!recorder) return NULL;
    pthread_mutex_init(&recorder->lock, NULL);
    copy_cut(recorder->thread_name, sizeof recorder->thread_name, thread_name);
    pthread_mutex_lock(&trace.lock);
    recorder->number = ++trace.numbers;
    recorder->next = trace.recorders;
    trace.recorders = recorder;
    pthread_mutex_unlock(&trace.lock);
    pthread_setspecific(thread_end, recorder);
    return recorder;
}

/* Of an event that an earlier recording began nothing is kept. That is asked under the lock: a
 * start sets its time before it empties the recorders, so what is older is refused here or emptied
 * there. */
static void record(const struct event *event) {
    if (!tk_trace_on()) return;
    if (!mine) mine = new_recorder();
    if (!mine) return;
    pthread_mutex_lock(&mine->lock);
    if (event->begin < atomic_load_explicit(&trace.begin, memory_order_relaxed)) {
        pthread_mutex_unlock(&mine->lock);
        return;
    }
    if (mine->events.count >= TK_TRACE_MAX_EVENTS || !tk_vec_push(&mine->events, *event))
        mine->dropped++;
    pthread_mutex_unlock(&mine->lock);
}

void tk_trace_end(int64_t begin, const char *category, const char *name, const char *detail, ...) {
    if (!begin || !tk_trace_on()) return;
    struct event event = {.phase = 'X', .category = category, .begin = begin};
    event.duration = tk_trace_clock() - begin;
    copy_cut(event.name, sizeof event.name, name);
    if (detail) {
        char text[4 * TK_TRACE_DETAIL_BYTES];
        va_list arguments;
        va_start(arguments, detail);
        vsnprintf(text, sizeof text, detail, arguments);
        va_end(arguments);
        copy_cut(event.detail, sizeof event.detail, text);
    }
    record(&event);
}

static void record_number(char phase, const char *name, int64_t number) {
    struct event event = {.phase = phase, .category = "flow", .duration = number};
    event.begin = tk_trace_clock();
    copy_cut(event.name, sizeof event.name, name);
    record(&event);
}

void tk_trace_counter(const char *name, int64_t value) {
    if (tk_trace_on()) record_number('C', name, value);
}

uint64_t tk_trace_flow_new(void) {
    return tk_trace_on() ? atomic_fetch_add(&trace.flows, 1) + 1 : 0;
}

void tk_trace_flow_start(uint64_t flow, const char *name) {
    if (flow && tk_trace_on()) record_number('s', name, (int64_t)flow);
}

void tk_trace_flow_end(uint64_t flow, const char *name) {
    if (flow && tk_trace_on()) record_number('f', name, (int64_t)flow);
}

void tk_trace_name_thread(const char *name) {
    copy_cut(thread_name, sizeof thread_name, name);
    if (!mine) return;
    pthread_mutex_lock(&mine->lock);
    copy_cut(mine->thread_name, sizeof mine->thread_name, name);
    pthread_mutex_unlock(&mine->lock);
}

/* ---- writing ----------------------------------------------------------------------------------
 */

static void put_string(tk_strbuf *out, const char *text) {
    tk_strbuf_putc(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            tk_strbuf_printf(out, "\\%c", c);
        else if (c < 0x20)
            tk_strbuf_printf(out, "\\u%04x", c);
        else
            tk_strbuf_putc(out, (char)c);
    }
    tk_strbuf_putc(out, '"');
}

static void put_microseconds(tk_strbuf *out, const char *key, int64_t nanoseconds) {
    tk_strbuf_printf(out, ",\"%s\":%" PRId64 ".%03d", key, nanoseconds / 1000,
                     (int)(nanoseconds % 1000));
}

static void put_head(tk_strbuf *out, char phase, int thread, const char *name) {
    tk_strbuf_printf(out, ",\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%d,\"name\":", phase, (int)getpid(),
                     thread);
    put_string(out, name);
}

static void put_event(tk_strbuf *out, const struct event *event, int thread) {
    put_head(out, event->phase, thread, event->name);
    put_microseconds(out, "ts", event->begin - atomic_load(&trace.begin));
    if (event->phase == 'C') {
        tk_strbuf_printf(out, ",\"args\":{\"value\":%" PRId64 "}}", event->duration);
        return;
    }
    tk_strbuf_puts(out, ",\"cat\":");
    put_string(out, event->category);
    if (event->phase == 'X') {
        put_microseconds(out, "dur", event->duration);
        tk_strbuf_puts(out, ",\"args\":{\"detail\":");
        put_string(out, event->detail);
        tk_strbuf_putc(out, '}');
    } else {
        tk_strbuf_printf(out, ",\"id\":%" PRId64, event->duration);
        if (event->phase == 'f') tk_strbuf_puts(out, ",\"bp\":\"e\"");
    }
    tk_strbuf_putc(out, '}');
}

static void put_metadata(tk_strbuf *out, const char *what, int thread, const char *name) {
    put_head(out, 'M', thread, what);
    tk_strbuf_puts(out, ",\"args\":{\"name\":");
    put_string(out, name);
    tk_strbuf_puts(out, "}}");
}

/* Moves full text on to the file, if there is one; false if that fails. */
static bool flush(bool all) {
    if (!trace.file || (!all && trace.text.length < FLUSH_BYTES)) return true;
    size_t length = trace.text.length;
    trace.text.length = 0;
    return fwrite(trace.text.text, 1, length, trace.file) == length;
}

static bool put_recorder(struct recorder *recorder, int64_t *dropped) {
    bool good = true;
    pthread_mutex_lock(&recorder->lock);
    if (recorder->events.count && recorder->thread_name[0])
        put_metadata(&trace.text, "thread_name", recorder->number, recorder->thread_name);
    for (size_t i = 0; i < recorder->events.count; i++) {
        put_event(&trace.text, &recorder->events.items[i], recorder->number);
        good = flush(false) && good;
    }
    *dropped += recorder->dropped;
    pthread_mutex_unlock(&recorder->lock);
    return good;
}

static bool put_all(void) {
    bool good = true;
    int64_t dropped = 0;
    tk_strbuf_printf(&trace.text,
                     "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                     "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_name\","
                     "\"args\":{\"name\":\"tiki\"}}",
                     (int)getpid());
    for (struct recorder *at = trace.recorders; at; at = at->next)
        good = put_recorder(at, &dropped) && good;
    tk_strbuf_printf(&trace.text, "\n],\"otherData\":{\"dropped_events\":%" PRId64 "}}\n", dropped);
    return !trace.text.failed && flush(true) && good;
}

/* Empties the recorders and frees those whose threads are gone. */
static void clear_recorders(void) {
    struct recorder **link = &trace.recorders;
    while (*link) {
        struct recorder *recorder = *link;
        pthread_mutex_lock(&recorder->lock);
        tk_vec_deinit(&recorder->events);
        recorder->dropped = 0;
        pthread_mutex_unlock(&recorder->lock);
        if (recorder->ended) {
            *link = recorder->next;
            pthread_mutex_destroy(&recorder->lock);
            tk_free(recorder);
        } else {
            link = &recorder->next;
        }
    }
}

/* ---- start and stop ---------------------------------------------------------------------------
 */

static tk_status start_locked(const char *path) {
    if (tk_trace_on()) return tk_fail(TK_INVALID_ARGUMENT, "the trace is already recording");
    if (path && !(trace.file = fopen(path, "w")))
        return tk_fail(TK_IO_ERROR, "trace file '%s': %s", path, strerror(errno));
    tk_strbuf_deinit(&trace.text);
    atomic_store(&trace.begin, tk_trace_clock());
    clear_recorders();
    atomic_store(&tk_trace_recording, true);
    return TK_OK;
}

tk_status tk_trace_start(const char *path) {
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&trace.lock);
    tk_status status = start_locked(path);
    pthread_mutex_unlock(&trace.lock);
    return status;
}

static tk_status stop_locked(void) {
    if (!tk_trace_on()) return tk_fail(TK_INVALID_ARGUMENT, "the trace is not recording");
    atomic_store(&tk_trace_recording, false);
    bool good = put_all();
    bool no_memory = trace.text.failed;
    clear_recorders();
    if (trace.file) {
        good = fclose(trace.file) == 0 && good;
        trace.file = NULL;
        tk_strbuf_deinit(&trace.text);
    }
    if (no_memory) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the text of the trace");
    return good ? TK_OK
                : tk_fail(TK_IO_ERROR, "the trace file cannot be written: %s", strerror(errno));
}

tk_status tk_trace_stop(void) {
    pthread_mutex_lock(&trace.lock);
    tk_status status = stop_locked();
    pthread_mutex_unlock(&trace.lock);
    return status;
}

const char *tk_trace_text(void) { return trace.text.text ? trace.text.text : ""; }
