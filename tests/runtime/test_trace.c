/* The trace: what is recorded is there, in JSON that Chrome and Perfetto read; nothing is recorded
 * while it is off; failures of the file are reported. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/buffer.h"
#include "runtime/trace.h"
#include "support/patience.h"

/* ---- the schema -------------------------------------------------------------------------------
 */

static const char *text_of(json_t *event, const char *key) {
    const char *text = json_string_value(json_object_get(event, key));
    assert_non_null(text);
    return text;
}

static double number_of(json_t *event, const char *key) {
    json_t *number = json_object_get(event, key);
    assert_true(json_is_number(number));
    return json_number_value(number);
}

static void check_event(json_t *event) {
    const char *phase = text_of(event, "ph");
    assert_int_equal(strlen(phase), 1);
    text_of(event, "name");
    assert_int_equal(number_of(event, "pid"), getpid());
    assert_true(number_of(event, "tid") >= 0);
    json_t *args = json_object_get(event, "args");
    if (*phase == 'M') {
        text_of(args, "name");
        return;
    }
    assert_true(number_of(event, "ts") >= 0);
    if (*phase == 'X') assert_true(number_of(event, "dur") >= 0);
    if (*phase == 'X') text_of(args, "detail");
    if (*phase == 'C') number_of(args, "value");
    if (*phase == 'X' || *phase == 's' || *phase == 'f') text_of(event, "cat");
    if (*phase == 's' || *phase == 'f') assert_true(number_of(event, "id") >= 1);
    if (*phase == 'f') assert_string_equal(text_of(event, "bp"), "e");
    assert_non_null(strchr("XCsf", *phase));
}

/* Parses and checks a trace; the caller lets go of it. */
static json_t *parse(const char *text) {
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root) fail_msg("line %d: %s", error.line, error.text);
    json_t *events = json_object_get(root, "traceEvents"), *event;
    assert_true(json_is_array(events));
    size_t i;
    json_array_foreach(events, i, event) check_event(event);
    return root;
}

static json_t *find(json_t *root, const char *phase, const char *name) {
    json_t *event;
    size_t i;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event) {
        if (!strcmp(text_of(event, "ph"), phase) && !strcmp(text_of(event, "name"), name))
            return event;
    }
    return NULL;
}

static size_t event_count(json_t *root) {
    return json_array_size(json_object_get(root, "traceEvents"));
}

/* ---- recording --------------------------------------------------------------------------------
 */

static void test_off_costs_and_records_nothing(void **state) {
    (void)state;
    assert_false(tk_trace_on());
    assert_int_equal(tk_trace_begin(), 0);
    assert_int_equal(tk_trace_flow_new(), 0);
    tk_trace_end(tk_trace_begin(), "test", "unseen", NULL);
    tk_trace_counter("unseen", 1);
    assert_int_equal(tk_trace_stop(), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_trace_start(NULL), TK_OK);
    assert_int_equal(tk_trace_start(NULL), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_trace_stop(), TK_OK);
    json_t *root = parse(tk_trace_text());
    assert_int_equal(event_count(root), 1); /* the name of the process */
    json_decref(root);
}

static void test_spans_counters_and_names(void **state) {
    (void)state;
    tk_trace_name_thread("the \"main\" one");
    assert_int_equal(tk_trace_start(NULL), TK_OK);
    int64_t begin = tk_trace_begin();
    usleep(2000);
    tk_trace_end(begin, "test", "slow \\ \n step", "f32[%d,%d]", 3, 4);
    tk_trace_counter("bytes", INT64_C(5000000000));
    char wide[200] = "";
    for (int i = 0; i < 30; i++) strcat(wide, "\xe2\x88\x91"); /* sum signs, three bytes each */
    tk_trace_end(tk_trace_begin(), "test", wide, "%s", wide);
    assert_int_equal(tk_trace_stop(), TK_OK);
    json_t *root = parse(tk_trace_text());
    json_t *span = find(root, "X", "slow \\ \n step");
    assert_non_null(span);
    assert_true(number_of(span, "dur") >= 2000);
    assert_string_equal(text_of(json_object_get(span, "args"), "detail"), "f32[3,4]");
    json_t *counter = find(root, "C", "bytes");
    assert_true(number_of(json_object_get(counter, "args"), "value") == 5e9);
    json_t *thread = find(root, "M", "thread_name");
    assert_string_equal(text_of(json_object_get(thread, "args"), "name"), "the \"main\" one");
    wide[45] = 0;
    assert_non_null(find(root, "X", wide));
    json_decref(root);
}

static void test_a_span_across_two_recordings_is_dropped(void **state) {
    (void)state;
    assert_int_equal(tk_trace_start(NULL), TK_OK);
    int64_t begin = tk_trace_begin();
    assert_int_equal(tk_trace_stop(), TK_OK);
    assert_int_equal(tk_trace_start(NULL), TK_OK);
    tk_trace_end(begin, "test", "too old", NULL);
    assert_int_equal(tk_trace_stop(), TK_OK);
    assert_null(strstr(tk_trace_text(), "too old"));
}

static tk_status do_nothing(void *arg) {
    (void)arg;
    return TK_OK;
}

static void check_arrow(json_t *root) {
    json_t *start = find(root, "s", "submit"), *end = find(root, "f", "submit");
    assert_non_null(start);
    assert_non_null(end);
    assert_true(number_of(start, "id") == number_of(end, "id"));
    assert_true(number_of(start, "ts") <= number_of(end, "ts"));
    json_t *from = find(root, "X", "submit"), *to = find(root, "X", "task");
    assert_true(number_of(from, "tid") == number_of(start, "tid"));
    assert_true(number_of(to, "tid") == number_of(end, "tid"));
    assert_true(number_of(to, "tid") != number_of(from, "tid"));
    assert_true(number_of(from, "ts") <= number_of(start, "ts"));
    assert_true(number_of(start, "ts") <= number_of(from, "ts") + number_of(from, "dur"));
    assert_true(number_of(to, "ts") <= number_of(end, "ts"));
    assert_true(number_of(end, "ts") <= number_of(to, "ts") + number_of(to, "dur"));
}

static void test_runtime_records_itself(void **state) {
    (void)state;
    tk_device *device;
    tk_stream *stream;
    tk_buffer *buffer;
    assert_int_equal(tk_trace_start(NULL), TK_OK);
    assert_int_equal(tk_device_open(&tk_driver_cpu, 0, NULL, &device), TK_OK);
    assert_int_equal(tk_stream_open(device, &stream), TK_OK);
    assert_int_equal(tk_stream_submit(stream, do_nothing, NULL), TK_OK);
    assert_int_equal(tk_stream_wait(stream, NULL), TK_OK);
    assert_int_equal(tk_buffer_new(device, 4096, &buffer), TK_OK);
    tk_buffer_release(buffer);
    tk_stream_close(stream);
    assert_int_equal(tk_trace_stop(), TK_OK);
    tk_device_close(device);
    json_t *root = parse(tk_trace_text());
    check_arrow(root);
    json_t *active = find(root, "C", "cpu:0 active");
    assert_true(number_of(json_object_get(active, "args"), "value") == 4096);
    assert_non_null(find(root, "C", "cpu:0 cache"));
    json_decref(root);
}

/* ---- files ------------------------------------------------------------------------------------
 */

static void test_file(void **state) {
    (void)state;
    char path[] = "/tmp/tiki_trace_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(tk_trace_start(path), TK_OK);
    for (int i = 0; i < 3000; i++) tk_trace_end(tk_trace_begin(), "test", "step", "number %d", i);
    assert_int_equal(tk_trace_stop(), TK_OK);
    assert_string_equal(tk_trace_text(), "");
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    char *text = json_dumps(root, 0);
    json_decref(root);
    root = parse(text);
    assert_int_equal(event_count(root), 3002);
    assert_int_equal(number_of(json_object_get(root, "otherData"), "dropped_events"), 0);
    json_decref(root);
    free(text);
    unlink(path);
}

static void test_file_that_cannot_be_made_or_filled(void **state) {
    (void)state;
    assert_int_equal(tk_trace_start("/nowhere/at/all.json"), TK_IO_ERROR);
    assert_non_null(strstr(tk_error_message(), "/nowhere/at/all.json"));
    assert_false(tk_trace_on());
    if (access("/dev/full", W_OK)) return;
    assert_int_equal(tk_trace_start("/dev/full"), TK_OK);
    tk_trace_counter("bytes", 1);
    assert_int_equal(tk_trace_stop(), TK_IO_ERROR);
    assert_false(tk_trace_on());
}

static void test_no_memory(void **state) {
    (void)state;
    assert_int_equal(tk_trace_start(NULL), TK_OK);
    tk_alloc_fail_after(1);
    for (int i = 0; i < 100; i++) tk_trace_counter("bytes", i);
    assert_int_equal(tk_trace_stop(), TK_OUT_OF_MEMORY);
    tk_alloc_fail_after(0);
    assert_string_equal(tk_trace_text(), "");
    assert_int_equal(tk_trace_start(NULL), TK_OK);
    assert_int_equal(tk_trace_stop(), TK_OK);
    json_decref(parse(tk_trace_text()));
}

/* ---- threads and forks ------------------------------------------------------------------------
 */

static void *record_a_lot(void *arg) {
    for (int i = 0; i < 2000; i++) {
        int64_t begin = tk_trace_begin();
        tk_trace_counter("rounds", i);
        tk_trace_end(begin, "test", arg, NULL);
        if (i % 100 == 0) tk_trace_name_thread(arg);
    }
    return NULL;
}

static void test_eight_threads_while_it_starts_and_stops(void **state) {
    (void)state;
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, record_a_lot, "hammer");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(tk_trace_start(NULL), TK_OK);
        usleep(300);
        assert_int_equal(tk_trace_stop(), TK_OK);
        json_decref(parse(tk_trace_text()));
    }
    assert_int_equal(tk_trace_start(NULL), TK_OK);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    assert_int_equal(tk_trace_stop(), TK_OK);
}

static void test_child_is_not_recorded(void **state) {
    (void)state;
    char path[] = "/tmp/tiki_trace_XXXXXX";
    close(mkstemp(path));
    assert_int_equal(tk_trace_start(path), TK_OK);
    tk_trace_counter("parent", 1);
    pid_t child = fork();
    if (child == 0) {
        alarm(SUPPORT_HANG_SECONDS);
        bool good = !tk_trace_on() && tk_trace_stop() == TK_INVALID_ARGUMENT;
        good = good && tk_trace_start(NULL) == TK_OK;
        tk_trace_counter("child", 1);
        good = good && tk_trace_stop() == TK_OK;
        good = good && strstr(tk_trace_text(), "child") && !strstr(tk_trace_text(), "parent");
        _exit(good ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(tk_trace_stop(), TK_OK);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_non_null(find(root, "C", "parent"));
    assert_null(find(root, "C", "child"));
    json_decref(root);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off_costs_and_records_nothing),
        cmocka_unit_test(test_spans_counters_and_names),
        cmocka_unit_test(test_a_span_across_two_recordings_is_dropped),
        cmocka_unit_test(test_runtime_records_itself),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_that_cannot_be_made_or_filled),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_eight_threads_while_it_starts_and_stops),
        cmocka_unit_test(test_child_is_not_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
