/* Checkpoints: what is visible after success, failure and a crash at every step. */
#define _GNU_SOURCE
#include <jansson.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "io_check.h"
#include "tiki/checkpoint.h"

/* ---- writing one ---- */

/* Whether the files are written as a trainer would, each with its own syncs. Where nothing is to be
 * stopped they are not: a disk may take 10 ms a sync. */
static bool through_library;

static tk_status write_file(const char *path, const char *text, size_t bytes) {
    if (through_library) return tk_file_write(path, text, bytes);
    FILE *file = fopen(path, "wb");
    if (!file) return TK_IO_ERROR;
    size_t written = fwrite(text, 1, bytes, file);
    return fclose(file) == 0 && written == bytes ? TK_OK : TK_IO_ERROR;
}

/* The smallest safetensors file, its metadata tells the step. */
static tk_status write_tensors(const char *path, int64_t step) {
    char text[128];
    int length = snprintf(text + 8, sizeof text - 8, "{\"__metadata__\":{\"step\":\"%lld\"}}",
                          (long long)step);
    uint64_t header = (uint64_t)length;
    memcpy(text, &header, 8);
    return write_file(path, text, (size_t)length + 8);
}

static tk_status write_named(const char *path, const char *name, int64_t step) {
    char full[1024], text[64];
    snprintf(full, sizeof full, "%s/%s", path, name);
    if (strcmp(name, "state.json") != 0) return write_tensors(full, step);
    int length = snprintf(text, sizeof text, "{\"step\": %lld}", (long long)step);
    return write_file(full, text, (size_t)length);
}

static const char *const names[] = {"model.safetensors", "optimizer.safetensors", "state.json"};

static tk_status save(const char *run, int64_t step, int keep) {
    tk_checkpoint_writer *checkpoint;
    tk_status status = tk_checkpoint_begin(run, step, &checkpoint);
    if (status != TK_OK) return status;
    for (int i = 0; i < 3 && status == TK_OK; i++)
        status = write_named(tk_checkpoint_path(checkpoint), names[i], step);
    if (status == TK_OK) return tk_checkpoint_commit(checkpoint, keep);
    char message[256];
    snprintf(message, sizeof message, "%s", tk_error_message());
    tk_checkpoint_abandon(checkpoint);
    return status;
}

/* ---- looking ---- */

/* The step that all three names of a run show; -1 when there is no checkpoint. Fails the test where
 * they differ or one is missing. */
static int64_t visible_step(const char *run) {
    int64_t steps[3], latest = -1;
    for (int i = 0; i < 3; i++) {
        char path[1024], *text = NULL, *at;
        size_t bytes;
        snprintf(path, sizeof path, "%s/%s", run, names[i]);
        steps[i] = -1;
        if (access(path, F_OK) != 0) continue;
        assert_ok(tk_file_read(path, &text, &bytes));
        at = memmem(text, bytes, "\"step\":", 7);
        assert_non_null(at);
        at += 7 + strspn(at + 7, " \"");
        steps[i] = strtoll(at, NULL, 10);
        tk_text_free(text);
    }
    assert_int_equal(steps[0], steps[1]);
    assert_int_equal(steps[0], steps[2]);
    char *path = NULL;
    tk_status status = tk_checkpoint_latest(run, &latest, &path);
    assert_int_equal(status, steps[0] < 0 ? TK_NOT_FOUND : TK_OK);
    assert_int_equal(latest, steps[0]);
    tk_text_free(path);
    return steps[0];
}

static const char *fresh_run(void) {
    static int count;
    char name[32];
    snprintf(name, sizeof name, "run-%d", count++);
    return in_folder(name);
}

/* ---- plain use ---- */

static void a_checkpoint_is_found_by_all_names(void **state) {
    (void)state;
    const char *run = fresh_run();
    assert_fails(tk_checkpoint_latest(run, NULL, NULL), TK_NOT_FOUND, "there is no checkpoint");
    assert_ok(save(run, 20, 0));
    assert_int_equal(visible_step(run), 20);
    assert_ok(save(run, 40, 0));
    assert_int_equal(visible_step(run), 40);
    char *path, expected[600];
    assert_ok(tk_checkpoint_latest(run, NULL, &path));
    snprintf(expected, sizeof expected, "%s/step-40", run);
    assert_string_equal(path, expected);
    tk_text_free(path);
    assert_int_equal(count_entries(run, "step-"), 2);
    assert_int_equal(count_entries(run, ".tiki"), 0);
}

static void old_and_abandoned_steps_are_removed(void **state) {
    (void)state;
    const char *run = fresh_run();
    for (int64_t step = 8; step <= 12; step++) assert_ok(save(run, step, 2));
    assert_int_equal(count_entries(run, "step-"), 2);
    assert_int_equal(count_entries(run, "step-11"), 1);
    assert_ok(save(run, 9, 2));
    assert_int_equal(visible_step(run), 9);
    assert_int_equal(count_entries(run, "step-"), 1);
}

static void the_latest_step_can_be_saved_again(void **state) {
    (void)state;
    const char *run = fresh_run();
    assert_ok(save(run, 5, 3));
    assert_ok(save(run, 5, 3));
    assert_int_equal(visible_step(run), 5);
    assert_int_equal(count_entries(run, "step-"), 1);
    assert_int_equal(count_entries(run, ".tiki"), 0);
}

static void an_abandoned_one_leaves_nothing(void **state) {
    (void)state;
    const char *run = fresh_run();
    tk_checkpoint_writer *checkpoint;
    assert_ok(tk_checkpoint_begin(run, 1, &checkpoint));
    assert_ok(write_named(tk_checkpoint_path(checkpoint), "state.json", 1));
    tk_checkpoint_abandon(checkpoint);
    tk_checkpoint_abandon(NULL);
    assert_int_equal(count_entries(run, ""), 0);
}

static void two_at_once_are_refused(void **state) {
    (void)state;
    const char *run = fresh_run();
    tk_checkpoint_writer *first, *second;
    assert_ok(tk_checkpoint_begin(run, 1, &first));
    assert_fails(tk_checkpoint_begin(run, 2, &second), TK_IO_ERROR,
                 "another checkpoint is being written here");
    tk_checkpoint_abandon(first);
    assert_ok(tk_checkpoint_begin(run, 2, &second));
    tk_checkpoint_abandon(second);
}

static void incomplete_ones_are_refused(void **state) {
    (void)state;
    const char *run = fresh_run();
    tk_checkpoint_writer *checkpoint;
    assert_ok(save(run, 1, 0));
    assert_ok(tk_checkpoint_begin(run, 2, &checkpoint));
    assert_ok(write_named(tk_checkpoint_path(checkpoint), "model.safetensors", 2));
    assert_fails(tk_checkpoint_commit(checkpoint, 0), TK_NOT_FOUND, "optimizer.safetensors");
    assert_ok(tk_checkpoint_begin(run, 2, &checkpoint));
    for (int i = 0; i < 3; i++) assert_ok(write_named(tk_checkpoint_path(checkpoint), names[i], 3));
    assert_fails(tk_checkpoint_commit(checkpoint, 0), TK_FORMAT_ERROR,
                 "\"step\" must be 2, found 3");
    assert_ok(tk_checkpoint_begin(run, 2, &checkpoint));
    for (int i = 0; i < 3; i++) assert_ok(write_named(tk_checkpoint_path(checkpoint), names[i], 2));
    assert_fails(tk_checkpoint_commit(checkpoint, -1), TK_INVALID_ARGUMENT, "keep is -1");
    assert_int_equal(visible_step(run), 1);
    assert_int_equal(count_entries(run, ".tiki"), 0);
}

static void damage_is_noticed(void **state) {
    (void)state;
    const char *run = fresh_run();
    char path[1024], target[1024];
    assert_ok(save(run, 7, 0));
    snprintf(path, sizeof path, "%s/step-7/model.safetensors", run);
    assert_int_equal(truncate(path, 12), 0);
    assert_fails(tk_checkpoint_latest(run, NULL, NULL), TK_FORMAT_ERROR, "model.safetensors");
    assert_int_equal(unlink(path), 0);
    assert_fails(tk_checkpoint_latest(run, NULL, NULL), TK_NOT_FOUND, "has no file model");
    snprintf(target, sizeof target, "%s/latest", run);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(symlink("elsewhere", target), 0);
    assert_fails(tk_checkpoint_latest(run, NULL, NULL), TK_FORMAT_ERROR, "link to step-N");
}

static void other_peoples_files_are_not_touched(void **state) {
    (void)state;
    const char *run = fresh_run();
    tk_checkpoint_writer *checkpoint;
    char path[1024];
    assert_int_equal(mkdir(run, 0777), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", run);
    assert_ok(tk_file_write(path, "mine", 4));
    assert_fails(tk_checkpoint_begin(run, 1, &checkpoint), TK_INVALID_ARGUMENT,
                 "must be a link to latest/model.safetensors");
    assert_fails(tk_checkpoint_begin(path, 1, &checkpoint), TK_IO_ERROR, "a folder is expected");
    assert_fails(tk_checkpoint_begin(run, -1, &checkpoint), TK_INVALID_ARGUMENT, "step is -1");
    assert_fails(tk_checkpoint_begin("", 1, &checkpoint), TK_INVALID_ARGUMENT, "missing");
    assert_int_equal(count_entries(run, ""), 1);
}

/* ---- stopping at every step ---- */

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

/* A child saves and is ended at step k; false when it came to its end. */
static bool crash_at(const char *run, int64_t step, int keep, int k) {
    pid_t child = fork();
    if (child == 0) {
        stopper s = {k, true};
        through_library = true;
        tk_file_set_hook(stop, &s);
        _exit(save(run, step, keep) == TK_OK ? 0 : 1);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && (WEXITSTATUS(ended) == 0 || WEXITSTATUS(ended) == 3));
    return WEXITSTATUS(ended) == 3;
}

/* Crashes in saving the step that is `ahead` of the latest, at each step of that saving in turn:
 * the old checkpoint or the new one is visible, never the old one when a crash later in the same
 * saving showed the new one, and the next save finds and leaves order. Returns the number of
 * crashes. */
static int crash_everywhere(int64_t ahead, bool in_new_folders) {
    const char *run = fresh_run();
    int64_t latest = -1;
    int k = 1, switched = 0;
    if (!in_new_folders) assert_ok(save(run, latest = 4, 0));
    for (bool crashed = true; crashed; k++) {
        if (in_new_folders) run = fresh_run(), latest = -1;
        crashed = crash_at(run, latest + ahead, 1, k);
        int64_t seen = visible_step(run);
        assert_true(seen == latest || seen == latest + ahead);
        assert_true(!switched || seen == latest + ahead);
        switched = seen == latest + ahead && (ahead > 0 || !crashed);
        assert_ok(save(run, latest += ahead + 1, 1));
        assert_int_equal(visible_step(run), latest);
        assert_int_equal(count_entries(run, "step-"), 1);
        assert_int_equal(count_entries(run, ".tiki"), 0);
    }
    assert_true(switched);
    return k - 2;
}

static void a_crash_shows_the_old_one_or_the_new(void **state) {
    (void)state;
    assert_true(crash_everywhere(1, false) > 25);
    assert_true(crash_everywhere(6, true) > 20);
    assert_true(crash_everywhere(0, false) > 20);
}

static void a_failing_step_shows_the_old_one_or_says_that_the_new_is_there(void **state) {
    (void)state;
    tk_status status = TK_IO_ERROR;
    for (int k = 1; status != TK_OK; k++) {
        const char *run = fresh_run();
        assert_ok(save(run, 4, 0));
        stopper s = {k, false};
        through_library = true;
        tk_file_set_hook(stop, &s);
        status = save(run, 5, 1);
        tk_file_set_hook(NULL, NULL);
        through_library = false;
        if (status == TK_OK) break;
        bool saved = strstr(tk_error_message(), "step 5 is saved") != NULL;
        assert_fails(status, TK_IO_ERROR, "the test hook refuses");
        assert_int_equal(visible_step(run), saved ? 5 : 4);
        assert_int_equal(count_entries(run, saved ? "nothing" : "step-"), saved ? 0 : 1);
        assert_ok(save(run, 6, 1));
        assert_int_equal(visible_step(run), 6);
        assert_int_equal(count_entries(run, "step-"), 1);
        assert_int_equal(count_entries(run, ".tiki"), 0);
    }
}

static void a_crash_twice_is_no_worse(void **state) {
    (void)state;
    for (int k = 4; k < 40; k += 5) {
        const char *run = fresh_run();
        assert_ok(save(run, 4, 0));
        (void)crash_at(run, 5, 1, k);
        (void)crash_at(run, 5, 1, k + 3);
        int64_t seen = visible_step(run);
        assert_true(seen == 4 || seen == 5);
        assert_ok(save(run, 6, 1));
        assert_int_equal(count_entries(run, "step-"), 1);
        assert_int_equal(count_entries(run, ".tiki"), 0);
    }
}

static void out_of_memory_is_an_error(void **state) {
    (void)state;
    const char *run = fresh_run();
    assert_ok(save(run, 1, 0));
    json_set_alloc_funcs(tk_malloc, tk_free);
    tk_status status = TK_OUT_OF_MEMORY;
    for (int64_t n = 1; status != TK_OK; n++) {
        tk_alloc_fail_after(n);
        status = save(run, 2, 1);
        tk_alloc_fail_after(0);
        int64_t seen = visible_step(run);
        assert_true(status != TK_OK || seen == 2);
        assert_true(seen == 1 || seen == 2);
    }
    json_set_alloc_funcs(malloc, free);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_found_by_all_names),
        cmocka_unit_test(old_and_abandoned_steps_are_removed),
        cmocka_unit_test(the_latest_step_can_be_saved_again),
        cmocka_unit_test(an_abandoned_one_leaves_nothing),
        cmocka_unit_test(two_at_once_are_refused),
        cmocka_unit_test(incomplete_ones_are_refused),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(other_peoples_files_are_not_touched),
        cmocka_unit_test(a_crash_shows_the_old_one_or_the_new),
        cmocka_unit_test(a_failing_step_shows_the_old_one_or_says_that_the_new_is_there),
        cmocka_unit_test(a_crash_twice_is_no_worse),
        cmocka_unit_test(out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
