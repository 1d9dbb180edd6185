/* The log of a run: appended lines stay, a cut keeps what came before, torn lines go. */
#define _GNU_SOURCE
#include <jansson.h>

#include "base/alloc.h"
#include "io/run_log.h"
#include "io_check.h"
#include "tiki/checkpoint.h"

static void assert_content(const char *path, const char *expected) {
    size_t bytes;
    char *data = read_all(path, &bytes);
    assert_string_equal(data, expected);
    tk_text_free(data);
}

typedef struct cutting {
    const char *text;
    int64_t last_step;
    size_t kept;
} cutting;

#define ONE "{\"step\": 1}\n"
#define TWO "{\"loss\": 2.5, \"step\": 2}\n"
#define NOTE "{\"note\": \"x\"}\n"

static const cutting cuttings[] = {
    {"", 5, 0},
    {ONE TWO, 5, sizeof(ONE TWO) - 1},
    {ONE TWO, 2, sizeof(ONE TWO) - 1},
    {ONE TWO, 1, sizeof(ONE) - 1},
    {ONE TWO, 0, 0},
    {NOTE ONE NOTE TWO NOTE, 1, sizeof(NOTE ONE NOTE) - 1},
    {NOTE ONE, 0, sizeof(NOTE) - 1},
    {NOTE ONE, -1, 0},
    {ONE TWO ONE, 1, sizeof(ONE) - 1},
    {ONE "{\"step\": 2", 5, sizeof(ONE) - 1},
    {ONE "not JSON\n" TWO, 5, sizeof(ONE "not JSON\n" TWO) - 1},
    {ONE "{\"step\": 9.5}\n", 5, sizeof(ONE "{\"step\": 9.5}\n") - 1},
    {ONE "\n" TWO, 1, sizeof(ONE "\n") - 1},
};

static void a_cut_keeps_what_came_before(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cuttings / sizeof *cuttings; i++) {
        const cutting *c = &cuttings[i];
        size_t kept;
        assert_ok(tk_run_log_find_cut("log", c->text, strlen(c->text), c->last_step, &kept));
        if (kept != c->kept) print_error("case %zu: %s\n", i, c->text);
        assert_int_equal(kept, c->kept);
    }
}

static void lines_are_appended_after_the_cut(void **state) {
    (void)state;
    const char *path = in_folder("log.jsonl");
    tk_run_log *log;
    assert_ok(tk_run_log_open(path, -1, &log));
    assert_ok(tk_run_log_append(log, "{\"step\": 1}"));
    assert_ok(tk_run_log_append(log, "{\"step\": 2}"));
    assert_ok(tk_run_log_append(log, "{\"step\": 3}"));
    assert_ok(tk_run_log_sync(log));
    tk_run_log_close(log);
    assert_content(path, "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n");
    assert_ok(tk_run_log_open(path, 2, &log));
    assert_ok(tk_run_log_append(log, "{\"step\": 3, \"again\": true}"));
    tk_run_log_close(log);
    assert_content(path, "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3, \"again\": true}\n");
    assert_ok(tk_run_log_open(path, -1, &log));
    tk_run_log_close(log);
    tk_run_log_close(NULL);
    assert_content(path, "");
}

static void what_is_no_line_is_refused(void **state) {
    (void)state;
    tk_run_log *log, *other;
    const char *path = in_folder("strict.jsonl");
    assert_ok(tk_run_log_open(path, -1, &log));
    assert_fails(tk_run_log_append(log, "{\"a\":\n1}"), TK_INVALID_ARGUMENT,
                 "one line is expected");
    assert_fails(tk_run_log_append(log, "[1]"), TK_INVALID_ARGUMENT, "a JSON object is expected");
    assert_fails(tk_run_log_append(log, "step 1"), TK_INVALID_ARGUMENT, "JSON is expected");
    assert_fails(tk_run_log_append(log, NULL), TK_INVALID_ARGUMENT, "NULL");
    assert_fails(tk_run_log_open(path, -1, &other), TK_IO_ERROR, "another run is writing this log");
    assert_fails(tk_run_log_open(in_folder("no/such"), -1, &other), TK_IO_ERROR, "no/such");
    tk_run_log_close(log);
    assert_content(path, "");
    assert_ok(tk_run_log_open(path, -1, &other));
    tk_run_log_close(other);
}

static tk_status refuse(void *arg, const char *step, const char *path) {
    (void)path;
    return strcmp(step, arg) ? TK_OK : TK_INTERNAL;
}

static void a_failing_step_leaves_whole_lines(void **state) {
    (void)state;
    tk_run_log *log;
    char write_step[] = "write", cut_step[] = "cut", sync_step[] = "sync";
    const char *path = in_folder("failing.jsonl");
    assert_ok(tk_run_log_open(path, -1, &log));
    assert_ok(tk_run_log_append(log, "{\"step\": 1}"));
    assert_ok(tk_run_log_append(log, "{\"step\": 2}"));
    tk_file_set_hook(refuse, write_step);
    assert_fails(tk_run_log_append(log, "{\"step\": 3}"), TK_IO_ERROR, "cannot write");
    tk_file_set_hook(refuse, sync_step);
    assert_fails(tk_run_log_sync(log), TK_IO_ERROR, "cannot sync");
    tk_run_log_close(log);
    tk_file_set_hook(refuse, cut_step);
    assert_fails(tk_run_log_open(path, 1, &log), TK_IO_ERROR, "cannot cut");
    tk_file_set_hook(NULL, NULL);
    assert_content(path, "{\"step\": 1}\n{\"step\": 2}\n");
    assert_ok(tk_run_log_open(path, 1, &log));
    tk_run_log_close(log);
    assert_content(path, "{\"step\": 1}\n");
}

static void out_of_memory_loses_no_line(void **state) {
    (void)state;
    const char *path = in_folder("memory.jsonl");
    assert_ok(tk_file_write(path, ONE TWO, sizeof(ONE TWO) - 1));
    json_set_alloc_funcs(tk_malloc, tk_free);
    tk_status status = TK_OUT_OF_MEMORY;
    for (int64_t n = 1; status != TK_OK; n++) {
        tk_run_log *log = NULL;
        tk_alloc_fail_after(n);
        status = tk_run_log_open(path, 2, &log);
        tk_alloc_fail_after(0);
        assert_true(status == TK_OK || status == TK_OUT_OF_MEMORY);
        tk_run_log_close(log);
        assert_content(path, ONE TWO);
    }
    json_set_alloc_funcs(malloc, free);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_keeps_what_came_before),
        cmocka_unit_test(lines_are_appended_after_the_cut),
        cmocka_unit_test(what_is_no_line_is_refused),
        cmocka_unit_test(a_failing_step_leaves_whole_lines),
        cmocka_unit_test(out_of_memory_loses_no_line),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
