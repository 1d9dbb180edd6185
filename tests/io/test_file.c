/* Whole files and metadata: contents, permissions, failing steps, a crash at every step. */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "base/alloc.h"
#include "io_check.h"

/* Stops at the k-th step, by failing or by ending the process. */
typedef struct stopper {
    int countdown;
    bool ends;
} stopper;

static tk_status stop(void *arg, const char *step, const char *path) {
    (void)step;
    (void)path;
    stopper *s = arg;
    if (--s->countdown != 0) return TK_OK;
    if (s->ends) _exit(3);
    return TK_INTERNAL;
}

static void assert_content(const char *path, const char *expected) {
    size_t bytes;
    char *data = read_all(path, &bytes);
    assert_int_equal(bytes, strlen(expected));
    assert_string_equal(data, expected);
    tk_text_free(data);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    const char *path = in_folder("plain");
    char large[20000], *data;
    size_t bytes;
    memset(large, 'x', sizeof large);
    assert_ok(tk_file_write(path, large, sizeof large));
    assert_ok(tk_file_read(path, &data, &bytes));
    assert_int_equal(bytes, sizeof large);
    assert_memory_equal(data, large, bytes);
    assert_int_equal(data[bytes], 0);
    tk_text_free(data);
    assert_ok(tk_file_write(path, NULL, 0));
    assert_content(path, "");
}

static void new_files_have_the_masks_permissions(void **state) {
    (void)state;
    struct stat info;
    mode_t old = umask(027);
    assert_ok(tk_file_write(in_folder("mode"), "x", 1));
    umask(old);
    assert_int_equal(stat(in_folder("mode"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
}

static void refusals_name_the_file_and_the_reason(void **state) {
    (void)state;
    char *data;
    size_t bytes;
    assert_fails(tk_file_read(in_folder("absent"), &data, &bytes), TK_IO_ERROR,
                 "absent: cannot open: No such file or directory");
    assert_fails(tk_file_read(folder, &data, &bytes), TK_IO_ERROR, "Is a directory");
    assert_fails(tk_file_read(NULL, &data, &bytes), TK_INVALID_ARGUMENT, "NULL");
    assert_fails(tk_file_write(in_folder("no/such"), "x", 1), TK_IO_ERROR, "no/such");
    assert_fails(tk_file_write(in_folder("x"), NULL, 1), TK_INVALID_ARGUMENT, "NULL");
    assert_ok(tk_file_write(in_folder("plain"), "x", 1));
    assert_fails(tk_file_write(in_folder("plain/below"), "x", 1), TK_IO_ERROR, "Not a directory");
}

static void a_failing_step_leaves_the_old_file(void **state) {
    (void)state;
    const char *path = in_folder("kept");
    assert_ok(tk_file_write(path, "old", 3));
    int steps = 0;
    for (int k = 1;; k++, steps++) {
        stopper s = {k, false};
        tk_file_set_hook(stop, &s);
        tk_status status = tk_file_write(path, "new", 3);
        tk_file_set_hook(NULL, NULL);
        if (status == TK_OK) break;
        assert_fails(status, TK_IO_ERROR, "cannot ");
        assert_int_equal(count_entries(folder, ".tiki"), 0);
        assert_content(path, k <= 3 ? "old" : "new");
    }
    assert_int_equal(steps, 4);
    assert_content(path, "new");
}

static void a_crash_leaves_the_old_file_or_the_new(void **state) {
    (void)state;
    const char *path = in_folder("crash");
    for (int k = 1, done = 0; !done; k++) {
        assert_ok(tk_file_write(path, "old", 3));
        pid_t child = fork();
        if (child == 0) {
            stopper s = {k, true};
            tk_file_set_hook(stop, &s);
            _exit(tk_file_write(path, "new", 3) == TK_OK ? 0 : 1);
        }
        int ended;
        assert_int_equal(waitpid(child, &ended, 0), child);
        done = WEXITSTATUS(ended) == 0;
        assert_true(done || WEXITSTATUS(ended) == 3);
        assert_content(path, k <= 3 ? "old" : "new");
    }
}

static void metadata_keeps_its_order(void **state) {
    (void)state;
    tk_metadata *metadata = tk_metadata_new();
    assert_ok(tk_metadata_set(metadata, "b", "1"));
    assert_ok(tk_metadata_set(metadata, "a", "2"));
    assert_ok(tk_metadata_set(metadata, "b", "3"));
    assert_int_equal(tk_metadata_count(metadata), 2);
    assert_string_equal(tk_metadata_key(metadata, 0), "b");
    assert_string_equal(tk_metadata_value(metadata, 0), "3");
    assert_string_equal(tk_metadata_value(metadata, 1), "2");
    assert_fails(tk_metadata_set(metadata, NULL, "x"), TK_INVALID_ARGUMENT, "NULL");
    tk_alloc_fail_after(1);
    tk_status no_memory = tk_metadata_set(metadata, "a", "4");
    tk_alloc_fail_after(0);
    assert_int_equal(no_memory, TK_OUT_OF_MEMORY);
    assert_string_equal(tk_metadata_get(metadata, "a"), "2");
    tk_metadata_free(metadata);
    tk_metadata_free(NULL);
}

static void out_of_memory_is_an_error(void **state) {
    (void)state;
    char *data = NULL;
    size_t bytes;
    assert_ok(tk_file_write(in_folder("some"), "some", 4));
    for (int64_t n = 1; n < 4; n++) {
        tk_alloc_fail_after(n);
        tk_status status = tk_file_write(in_folder("some"), "more", 4);
        tk_alloc_fail_after(0);
        assert_int_equal(status, TK_OUT_OF_MEMORY);
    }
    tk_alloc_fail_after(1);
    tk_status status = tk_file_read(in_folder("some"), &data, &bytes);
    tk_alloc_fail_after(0);
    assert_int_equal(status, TK_OUT_OF_MEMORY);
    assert_content(in_folder("some"), "some");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(new_files_have_the_masks_permissions),
        cmocka_unit_test(refusals_name_the_file_and_the_reason),
        cmocka_unit_test(a_failing_step_leaves_the_old_file),
        cmocka_unit_test(a_crash_leaves_the_old_file_or_the_new),
        cmocka_unit_test(metadata_keeps_its_order),
        cmocka_unit_test(out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
