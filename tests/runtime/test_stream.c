/* Streams and events: order, inline runs, errors, waits that give up, many threads, forked
 * children. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/stream.h"
#include "support/patience.h"
#include "support/sanitizer.h"

static tk_device *device;

static int open_device(void **state) {
    (void)state;
    return tk_device_open(&tk_driver_cpu, 0, NULL, &device) == TK_OK ? 0 : -1;
}

static int close_device(void **state) {
    (void)state;
    tk_device_close(device);
    return 0;
}

static tk_stream *open_stream(void) {
    tk_stream *stream;
    assert_int_equal(tk_stream_open(device, &stream), TK_OK);
    return stream;
}

static tk_status wait_for_gate(void *arg) {
    while (!atomic_load((_Atomic bool *)arg)) usleep(200);
    return TK_OK;
}

/* ---- order ------------------------------------------------------------------------------------
 */

struct log {
    int count;
    int values[5000];
};

struct note {
    struct log *log;
    int value;
    int microseconds;
};

static tk_status write_note(void *arg) {
    struct note *note = arg;
    if (note->microseconds) usleep((useconds_t)note->microseconds);
    note->log->values[note->log->count++] = note->value;
    return TK_OK;
}

static void check_log(const struct log *log, int count) {
    assert_int_equal(log->count, count);
    for (int i = 0; i < count; i++) assert_int_equal(log->values[i], i);
}

static void test_tasks_run_in_order(void **state) {
    (void)state;
    static struct log log;
    static struct note notes[5000];
    tk_stream *stream = open_stream();
    for (int i = 0; i < 5000; i++) {
        notes[i] = (struct note){&log, i, 0};
        assert_int_equal(tk_stream_submit(stream, write_note, &notes[i]), TK_OK);
    }
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    check_log(&log, 5000);
    assert_int_equal(tk_stream_pending(stream), 0);
    assert_ptr_equal(tk_stream_device(stream), device);
    tk_stream_close(stream);
}

static void test_close_runs_what_is_queued(void **state) {
    (void)state;
    static struct log log;
    static struct note notes[40];
    tk_stream *stream = open_stream();
    for (int i = 0; i < 40; i++) {
        notes[i] = (struct note){&log, i, i ? 0 : 20000};
        assert_int_equal(tk_stream_submit(stream, write_note, &notes[i]), TK_OK);
    }
    tk_stream_close(stream);
    check_log(&log, 40);
    tk_stream_close(NULL);
}

static tk_status note_thread(void *arg) {
    *(pthread_t *)arg = pthread_self();
    return TK_OK;
}

static void test_inline_when_idle(void **state) {
    (void)state;
    tk_stream *stream = open_stream();
    pthread_t thread;
    bool ran = false;
    assert_int_equal(tk_stream_run_inline_if_idle(stream, note_thread, &thread, &ran), TK_OK);
    assert_true(ran);
    assert_true(pthread_equal(thread, pthread_self()));
    static struct log log;
    _Atomic bool gate = false;
    struct note first = {&log, 0, 0}, second = {&log, 1, 0};
    assert_int_equal(tk_stream_submit(stream, wait_for_gate, (void *)&gate), TK_OK);
    assert_int_equal(tk_stream_submit(stream, write_note, &first), TK_OK);
    assert_int_equal(tk_stream_run_inline_if_idle(stream, write_note, &second, &ran), TK_OK);
    assert_false(ran);
    assert_int_equal(tk_stream_submit(stream, write_note, &second), TK_OK);
    atomic_store(&gate, true);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    check_log(&log, 2);
    assert_int_equal(tk_stream_run_inline_if_idle(stream, note_thread, &thread, &ran), TK_OK);
    assert_true(ran);
    tk_stream_close(stream);
}

struct nested {
    tk_stream *stream;
    struct note *note;
    bool ran;
    tk_status wait_status;
};

static tk_status submit_from_inside(void *arg) {
    struct nested *nested = arg;
    TK_TRY(tk_stream_run_inline_if_idle(nested->stream, write_note, nested->note, &nested->ran));
    TK_TRY(tk_stream_submit(nested->stream, write_note, nested->note));
    nested->wait_status = tk_stream_wait(nested->stream, NULL);
    return TK_OK;
}

static void test_a_task_submits_but_cannot_wait(void **state) {
    (void)state;
    static struct log log;
    tk_stream *stream = open_stream();
    struct note note = {&log, 0, 0};
    struct nested nested = {stream, &note, true, TK_OK};
    bool ran;
    assert_int_equal(tk_stream_run_inline_if_idle(stream, submit_from_inside, &nested, &ran),
                     TK_OK);
    assert_true(ran);
    assert_false(nested.ran);
    assert_int_equal(nested.wait_status, TK_INVALID_ARGUMENT);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    check_log(&log, 1);
    note.value = 1;
    assert_int_equal(tk_stream_submit(stream, submit_from_inside, &nested), TK_OK);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    tk_stream_close(stream);
    check_log(&log, 2);
}

/* ---- errors -----------------------------------------------------------------------------------
 */

static tk_status fail_by_number(void *arg) {
    return tk_fail(TK_INDEX_ERROR, "task %d failed", *(int *)arg);
}

static void test_first_error_is_given_once(void **state) {
    (void)state;
    static struct log log;
    tk_stream *stream = open_stream();
    struct note note = {&log, 0, 0};
    int first = 1, second = 2;
    tk_stream_submit(stream, fail_by_number, &first);
    tk_stream_submit(stream, fail_by_number, &second);
    tk_stream_submit(stream, write_note, &note);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_INDEX_ERROR);
    assert_string_equal(tk_error_message(), "task 1 failed");
    check_log(&log, 1);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    bool ran;
    assert_int_equal(tk_stream_run_inline_if_idle(stream, fail_by_number, &second, &ran),
                     TK_INDEX_ERROR);
    assert_true(ran);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    tk_stream_close(stream);
}

static void test_error_belongs_to_its_ticket(void **state) {
    (void)state;
    static struct log log;
    tk_stream *stream = open_stream();
    struct note note = {&log, 0, 0};
    int number = 7;
    tk_stream_submit(stream, write_note, &note);
    tk_event before = tk_stream_record(stream);
    tk_stream_submit(stream, fail_by_number, &number);
    tk_event after = tk_stream_record(stream);
    assert_int_equal(tk_event_wait(before, NULL), TK_OK);
    assert_int_equal(tk_event_wait(after, NULL), TK_INDEX_ERROR);
    assert_int_equal(tk_event_wait(after, NULL), TK_OK);
    tk_stream_close(stream);
}

static void test_null_device_refuses(void **state) {
    (void)state;
    tk_device *null;
    tk_stream *stream;
    bool ran = true;
    assert_int_equal(tk_device_open(&tk_driver_null, 0, NULL, &null), TK_OK);
    assert_int_equal(tk_stream_open(null, &stream), TK_OK);
    assert_int_equal(tk_stream_submit(stream, write_note, NULL), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "null:0"));
    assert_int_equal(tk_stream_run_inline_if_idle(stream, write_note, NULL, &ran), TK_UNSUPPORTED);
    assert_false(ran);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    tk_stream_close(stream);
    tk_device_close(null);
}

static void test_no_memory(void **state) {
    (void)state;
    tk_stream *stream;
    static struct log log;
    struct note note = {&log, 0, 0};
    tk_alloc_fail_after(1);
    assert_int_equal(tk_stream_open(device, &stream), TK_OUT_OF_MEMORY);
    tk_alloc_fail_after(0);
    assert_null(stream);
    stream = open_stream();
    tk_alloc_fail_after(1);
    assert_int_equal(tk_stream_submit(stream, write_note, &note), TK_OUT_OF_MEMORY);
    tk_alloc_fail_after(0);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    assert_int_equal(log.count, 0);
    assert_int_equal(tk_stream_submit(stream, write_note, &note), TK_OK);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    check_log(&log, 1);
    tk_stream_close(stream);
}

/* ---- waits ------------------------------------------------------------------------------------
 */

static bool third_time(void *arg) { return ++*(int *)arg == 3; }

static void test_wait_gives_up(void **state) {
    (void)state;
    _Atomic bool gate = false;
    tk_stream *stream = open_stream();
    tk_stream_submit(stream, wait_for_gate, (void *)&gate);
    int polls = 0;
    tk_wait until_polled = {.poll = third_time, .arg = &polls};
    assert_int_equal(tk_stream_wait(stream, &until_polled), TK_INTERRUPTED);
    assert_int_equal(polls, 3);
    assert_non_null(strstr(tk_error_message(), "asked to stop"));
    tk_wait briefly = {.seconds = 0.03};
    assert_int_equal(tk_stream_wait(stream, &briefly), TK_INTERRUPTED);
    assert_non_null(strstr(tk_error_message(), "time limit"));
    assert_non_null(strstr(tk_error_message(), "1 tasks left"));
    assert_int_equal(tk_stream_pending(stream), 1);
    atomic_store(&gate, true);
    tk_wait long_enough = {.poll = third_time, .arg = &polls, .seconds = SUPPORT_HANG_SECONDS};
    assert_int_equal(tk_stream_wait(stream, &long_enough), TK_OK);
    tk_stream_close(stream);
}

static void test_wait_covers_only_what_was_submitted(void **state) {
    (void)state;
    _Atomic bool gate = false;
    static struct log log;
    struct note note = {&log, 0, 0};
    tk_stream *stream = open_stream();
    tk_stream_submit(stream, write_note, &note);
    tk_event event = tk_stream_record(stream);
    tk_stream_submit(stream, wait_for_gate, (void *)&gate);
    assert_int_equal(tk_event_wait(event, NULL), TK_OK);
    assert_true(tk_event_done(event));
    assert_false(tk_event_done(tk_stream_record(stream)));
    atomic_store(&gate, true);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    tk_stream_close(stream);
}

static void test_streams_wait_for_each_other(void **state) {
    (void)state;
    _Atomic bool gate = false;
    static struct log log;
    static struct note notes[3];
    for (int i = 0; i < 3; i++) notes[i] = (struct note){&log, i, 0};
    tk_stream *a = open_stream(), *b = open_stream();
    tk_stream_submit(a, wait_for_gate, (void *)&gate);
    tk_stream_submit(a, write_note, &notes[0]);
    assert_int_equal(tk_stream_wait_event(b, tk_stream_record(a)), TK_OK);
    tk_stream_submit(b, write_note, &notes[1]);
    assert_int_equal(tk_stream_wait_event(a, tk_stream_record(b)), TK_OK);
    tk_stream_submit(a, write_note, &notes[2]);
    assert_int_equal(tk_stream_pending(b), 2);
    atomic_store(&gate, true);
    assert_int_equal(tk_stream_wait(a, NULL), TK_OK);
    check_log(&log, 3);
    assert_int_equal(tk_stream_wait_event(a, tk_stream_record(a)), TK_OK);
    assert_int_equal(tk_stream_wait_event(a, tk_stream_record(b)), TK_OK);
    assert_int_equal(tk_stream_wait_event(a, (tk_event){0}), TK_OK);
    assert_int_equal(tk_stream_pending(a), 0);
    assert_true(tk_event_done((tk_event){0}));
    assert_int_equal(tk_event_wait((tk_event){0}, NULL), TK_OK);
    tk_stream_close(b);
    tk_stream_close(a);
}

/* ---- threads and forks ------------------------------------------------------------------------
 */

struct shared {
    tk_stream *streams[2];
    int64_t counts[2]; /* guarded by the streams' order alone */
};

static tk_status count_first(void *arg) {
    ((struct shared *)arg)->counts[0]++;
    return TK_OK;
}

static tk_status count_second(void *arg) {
    ((struct shared *)arg)->counts[1]++;
    return TK_OK;
}

static const char *use_streams(struct shared *shared, int round) {
    static const tk_task counts[2] = {count_first, count_second};
    int which = round % 3 == 0;
    tk_stream *stream = shared->streams[which];
    bool ran = false;
    if (round % 2) {
        tk_status status = tk_stream_run_inline_if_idle(stream, counts[which], shared, &ran);
        if (status != TK_OK) return "inline";
    }
    if (!ran && tk_stream_submit(stream, counts[which], shared) != TK_OK) return "submit";
    if (round % 7 == 0 && tk_stream_wait(stream, NULL) != TK_OK) return "wait";
    if (round % 11 == 0)
        tk_stream_wait_event(shared->streams[1], tk_stream_record(shared->streams[0]));
    return NULL;
}

static void *hammer(void *argument) {
    const char *failed = NULL;
    for (int round = 0; round < 1000 && !failed; round++) failed = use_streams(argument, round);
    return (void *)(uintptr_t)failed;
}

static atomic_bool stopping;

static void *keep_busy(void *argument) {
    const char *failed = NULL;
    for (int round = 0; !atomic_load(&stopping) && !failed; round++)
        failed = use_streams(argument, round);
    return (void *)(uintptr_t)failed;
}

static void test_eight_threads(void **state) {
    (void)state;
    struct shared shared = {.streams = {open_stream(), open_stream()}};
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, hammer, &shared);
    for (int i = 0; i < 8; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(tk_stream_wait(shared.streams[i], NULL), TK_OK);
    assert_int_equal(shared.counts[0] + shared.counts[1], 8000);
    for (int i = 0; i < 2; i++) tk_stream_close(shared.streams[i]);
}

static bool child_is_refused(tk_stream *stream, tk_event event) {
    bool ran;
    tk_stream *fresh;
    struct shared unused;
    return tk_stream_submit(stream, count_first, &unused) == TK_CONTEXT_ERROR &&
           tk_stream_run_inline_if_idle(stream, count_first, &unused, &ran) == TK_CONTEXT_ERROR &&
           tk_stream_wait(stream, NULL) == TK_CONTEXT_ERROR &&
           tk_event_wait(event, NULL) == TK_CONTEXT_ERROR && !tk_event_done(event) &&
           tk_stream_wait_event(stream, event) == TK_CONTEXT_ERROR &&
           tk_stream_open(device, &fresh) == TK_CONTEXT_ERROR && tk_stream_pending(stream) == 0;
}

static bool child_starts_anew(void) {
    tk_device *own;
    tk_stream *stream;
    struct shared shared = {0};
    if (tk_device_open(&tk_driver_cpu, 0, NULL, &own) != TK_OK) return false;
    if (tk_stream_open(own, &stream) != TK_OK) return false;
    for (int i = 0; i < 10; i++) tk_stream_submit(stream, count_first, &shared);
    bool good = tk_stream_wait(stream, NULL) == TK_OK && shared.counts[0] == 10;
    tk_stream_close(stream);
    tk_device_close(own);
    return good;
}

/* The threads go on until the last fork: ThreadSanitizer tells of one in the child that ended
 * before. */
static void test_fork_while_tasks_run(void **state) {
    (void)state;
    struct shared shared = {.streams = {open_stream(), open_stream()}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, keep_busy, &shared);
    for (int i = 0; i < 10; i++) {
        tk_event event = tk_stream_record(shared.streams[0]);
        pid_t child = fork();
        if (child == 0) {
            alarm(SUPPORT_HANG_SECONDS);
            bool good = child_is_refused(shared.streams[0], event);
            tk_stream_close(shared.streams[0]);
            tk_stream_close(shared.streams[1]);
            if (support_children_start_threads) good = good && child_starts_anew();
            _exit(good ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < 2; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    /* the second may still wait for the first, which must then be there */
    for (int i = 0; i < 2; i++) assert_int_equal(tk_stream_wait(shared.streams[i], NULL), TK_OK);
    for (int i = 0; i < 2; i++) tk_stream_close(shared.streams[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_run_in_order),
        cmocka_unit_test(test_close_runs_what_is_queued),
        cmocka_unit_test(test_inline_when_idle),
        cmocka_unit_test(test_a_task_submits_but_cannot_wait),
        cmocka_unit_test(test_first_error_is_given_once),
        cmocka_unit_test(test_error_belongs_to_its_ticket),
        cmocka_unit_test(test_null_device_refuses),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_wait_gives_up),
        cmocka_unit_test(test_wait_covers_only_what_was_submitted),
        cmocka_unit_test(test_streams_wait_for_each_other),
        cmocka_unit_test(test_eight_threads),
        cmocka_unit_test(test_fork_while_tasks_run),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
