/* A run that was stopped and resumed is the run that was not, byte for byte: after a kill at a
 * random moment, after Ctrl-C, twice, and past the end of an epoch. */
#define _GNU_SOURCE
#include "cli/cli_check.h"

#include <jansson.h>

/* 4,000 bytes are 3,600 to learn from: 224 windows of 16 bytes, so an epoch is 28 steps of 8. */
static const char *const model[] = {"--layers",  "2",    "--heads", "2", "--dim",     "32",
                                    "--context", "16",   "--batch", "8", "--warmup",  "10",
                                    "--lr",      "1e-2", "--seed",  "7", "--dropout", "0.1"};

static void train(outcome *result, const char *out, const char *steps, const char *threads,
                  bool resume) {
    const char *words[MAX_WORDS] = {
        "train",     "--data", in_folder("data"),    "--out", in_folder(out), "--steps", steps,
        "--threads", threads,  "--checkpoint-every", "5"};
    size_t count = 11;
    for (size_t i = 0; i < sizeof model / sizeof model[0]; i++) words[count++] = model[i];
    if (resume) words[count++] = "--resume";
    run_words(words, result);
}

static pid_t start_training(const char *out, const char *steps) {
    const char *words[MAX_WORDS] = {
        "train",     "--data", in_folder("data"),    "--out", in_folder(out), "--steps", steps,
        "--threads", "2",      "--checkpoint-every", "5"};
    size_t count = 11;
    for (size_t i = 0; i < sizeof model / sizeof model[0]; i++) words[count++] = model[i];
    return start(words);
}

static void assert_same_file(const char *one, const char *other, const char *name) {
    char left[512], right[512];
    size_t left_bytes, right_bytes;
    snprintf(left, sizeof left, "%s/%s", in_folder(one), name);
    snprintf(right, sizeof right, "%s/%s", in_folder(other), name);
    char *a = read_all(left, &left_bytes), *b = read_all(right, &right_bytes);
    assert_int_equal(left_bytes, right_bytes);
    assert_memory_equal(a, b, left_bytes);
    tk_text_free(a);
    tk_text_free(b);
}

/* The losses of the log by step; every step is there once, from 1 to `steps`. */
static void read_losses(const char *out, int64_t steps, double *losses) {
    char path[512];
    size_t bytes;
    int64_t expected = 1;
    snprintf(path, sizeof path, "%s/log.jsonl", in_folder(out));
    char *text = read_all(path, &bytes);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        if (json_object_get(object, "loss")) {
            assert_true(expected <= steps);
            assert_int_equal(json_integer_value(json_object_get(object, "step")), expected);
            losses[expected++ - 1] = json_number_value(json_object_get(object, "loss"));
        }
        json_decref(object);
    }
    assert_int_equal(expected, steps + 1);
    tk_text_free(text);
}

static void assert_same_run(const char *one, const char *other, int64_t steps) {
    static double left[8192], right[8192];
    assert_true(steps <= 8192);
    assert_same_file(one, other, "model.safetensors");
    assert_same_file(one, other, "optimizer.safetensors");
    read_losses(one, steps, left);
    read_losses(other, steps, right);
    assert_memory_equal(left, right, (size_t)steps * sizeof *left);
}

static int64_t latest_step(const char *out) {
    char path[512], target[64];
    snprintf(path, sizeof path, "%s/latest", in_folder(out));
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) return -1;
    target[length] = 0;
    return strtoll(target + strlen("step-"), NULL, 10);
}

static void wait_for_step(const char *out, pid_t child, int64_t step) {
    while (latest_step(out) < step) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* it has not ended */
        sleep_milliseconds(1);
    }
}

static void test_two_halves(void **state) {
    (void)state;
    outcome result;
    train(&result, "whole", "40", "2", false);
    assert_code(&result, 0);
    train(&result, "halves", "20", "2", false);
    assert_code(&result, 0);
    train(&result, "halves", "40", "2", true);
    assert_code(&result, 0);
    assert_says(result.out, "going on after step 20");
    assert_same_run("whole", "halves", 40);
}

static void test_resumed_twice(void **state) {
    (void)state;
    outcome result;
    const char *const ends[] = {"13", "29", "40"};
    for (int i = 0; i < 3; i++) {
        train(&result, "thirds", ends[i], "2", i > 0);
        assert_code(&result, 0);
    }
    assert_same_run("whole", "thirds", 40);
}

static void test_resume_at_the_end_changes_nothing(void **state) {
    (void)state;
    outcome result;
    train(&result, "thirds", "40", "2", true);
    assert_code(&result, 0);
    assert_same_run("whole", "thirds", 40);
}

/* Training goes on without end until it is killed some time after a checkpoint. */
static void test_killed(void **state) {
    (void)state;
    outcome result;
    srand((unsigned)time(NULL));
    for (int round = 0; round < 4; round++) {
        char out[32], steps[32];
        int delay = rand() % 60;
        snprintf(out, sizeof out, "killed%d", round);
        pid_t child = start_training(out, "100000");
        wait_for_step(out, child, 20);
        sleep_milliseconds(delay);
        kill(child, SIGKILL);
        finish(child, &result);
        assert_int_equal(result.code, 128 + SIGKILL);
        int64_t end = latest_step(out) + 7;
        snprintf(steps, sizeof steps, "%lld", (long long)end);
        train(&result, out, steps, "2", true);
        if (result.code) print_error("killed after %d ms\n", delay);
        assert_code(&result, 0);
        char straight[32];
        snprintf(straight, sizeof straight, "straight%d", round);
        train(&result, straight, steps, "2", false);
        assert_code(&result, 0);
        assert_same_run(out, straight, end);
    }
}

/* The exit code is what a shell gives for the signal. */
static void check_stopped_by(int signal, const char *out, const char *straight) {
    outcome result;
    pid_t child = start_training(out, "100000");
    wait_for_step(out, child, 5);
    kill(child, signal);
    finish(child, &result);
    assert_code(&result, 128 + signal);
    const char *said = strstr(result.out, "stopped after step ");
    assert_non_null(said);
    int64_t step = strtoll(said + strlen("stopped after step "), NULL, 10);
    assert_int_equal(latest_step(out), step);
    char steps[32];
    snprintf(steps, sizeof steps, "%lld", (long long)step + 10);
    train(&result, out, steps, "2", true);
    assert_code(&result, 0);
    train(&result, straight, steps, "2", false);
    assert_code(&result, 0);
    assert_same_run(out, straight, step + 10);
}

static void test_interrupted(void **state) {
    (void)state;
    check_stopped_by(SIGINT, "stopped", "unstopped");
}

static void test_terminated(void **state) {
    (void)state;
    check_stopped_by(SIGTERM, "ended", "unended");
}

/* A second signal does not wait for the end of the step; the checkpoints are whole all the same. */
static void test_interrupted_twice(void **state) {
    (void)state;
    outcome result;
    pid_t child = start_training("hurried", "100000");
    wait_for_step("hurried", child, 5);
    kill(child, SIGTERM);
    kill(child, SIGINT);
    finish(child, &result);
    assert_true(result.code == 128 + SIGINT || result.code == 128 + SIGTERM);
    char steps[32];
    snprintf(steps, sizeof steps, "%lld", (long long)latest_step("hurried") + 3);
    train(&result, "hurried", steps, "2", true);
    assert_code(&result, 0);
}

static void test_contradictions(void **state) {
    (void)state;
    outcome result;
    char out[512];
    snprintf(out, sizeof out, "%s", in_folder("whole"));
    RUN(&result, "train", "--out", out, "--resume", "--dim", "64");
    assert_refused(&result, 2, "--dim contradicts state.json, where the run has 32");
    RUN(&result, "train", "--out", out, "--resume", "--threads", "1");
    assert_refused(&result, 2, "--threads contradicts state.json");
    RUN(&result, "train", "--out", out, "--resume", "--lr", "0.5");
    assert_refused(&result, 2, "--lr contradicts state.json");
    RUN(&result, "train", "--out", out, "--resume", "--steps", "39");
    assert_refused(&result, 2, "--steps");
    RUN(&result, "train", "--out", out, "--resume", "--data", write_text("other", 4000, 2));
    assert_refused(&result, 1, "contradicts state.json");
    RUN(&result, "train", "--out", out, "--resume", "--eval-data", in_folder("other"));
    assert_refused(&result, 1, "contradicts state.json");
    RUN(&result, "train", "--out", out, "--data", in_folder("data"));
    assert_refused(&result, 2, "holds a run already");
    RUN(&result, "train", "--out", in_folder("nowhere"), "--resume");
    assert_refused(&result, 1, "no checkpoint");
    assert_int_equal(access(in_folder("nowhere"), F_OK), -1);
}

/* Reals are kept to the last bit: a rate of which 16 digits are not enough agrees with itself, its
 * neighbour does not. */
static void test_reals_are_exact(void **state) {
    (void)state;
    outcome result;
    char path[512], text[65536], *end;
    snprintf(path, sizeof path, "%s/state.json", in_folder("exact"));
    const char *const rates[] = {"0.30000000000000004", "0.30000000000000010", "5e-324",
                                 "1.7976931348623157e-300"};
    for (int i = 0; i < 4; i++) {
        RUN(&result, "train", "--data", in_folder("data"), "--out", in_folder("exact"), "--layers",
            "1", "--dim", "16", "--heads", "2", "--context", "16", "--steps", "1", "--threads", "1",
            "--lr", rates[i], "--weight-decay", rates[3 - i]);
        assert_code(&result, 0);
        copy_file(path, text, sizeof text);
        const char *kept = strstr(text, "\"lr\": ");
        assert_non_null(kept);
        assert_true(strtod(kept + strlen("\"lr\": "), &end) == strtod(rates[i], NULL));
        RUN(&result, "train", "--out", in_folder("exact"), "--resume", "--lr", rates[i]);
        assert_code(&result, 0);
        RUN(&result, "train", "--out", in_folder("exact"), "--resume", "--lr", rates[(i + 1) % 4]);
        assert_refused(&result, 2, "--lr contradicts");
        assert_int_equal(nftw(in_folder("exact"), remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    }
}

/* Options come from the folder alone; the values that were given again may agree. */
static void test_resume_needs_only_the_folder(void **state) {
    (void)state;
    outcome result;
    train(&result, "alone", "10", "2", false);
    assert_code(&result, 0);
    RUN(&result, "train", "--out", in_folder("alone"), "--resume", "--steps", "40", "--dim", "32");
    assert_code(&result, 0);
    assert_same_run("whole", "alone", 40);
    RUN(&result, "train", "--out", in_folder("alone"), "--resume");
    assert_code(&result, 0);
    assert_int_equal(latest_step("alone"), 40);
}

static void test_data_that_is_gone(void **state) {
    (void)state;
    outcome result;
    const char *data = write_text("passing", 3000, 3);
    RUN(&result, "train", "--data", data, "--out", in_folder("orphan"), "--layers", "1", "--dim",
        "16", "--heads", "2", "--context", "16", "--steps", "2", "--threads", "1");
    assert_code(&result, 0);
    assert_int_equal(remove(data), 0);
    RUN(&result, "train", "--out", in_folder("orphan"), "--resume", "--steps", "3");
    assert_refused(&result, 1, "passing");
}

static void test_damaged_run_is_not_started_over(void **state) {
    (void)state;
    outcome result;
    train(&result, "damaged", "5", "2", false);
    assert_code(&result, 0);
    char path[512];
    snprintf(path, sizeof path, "%s/model.safetensors", in_folder("damaged"));
    assert_int_equal(truncate(path, 1000), 0);
    train(&result, "damaged", "5", "2", false);
    assert_refused(&result, 1, "model.safetensors");
    train(&result, "damaged", "5", "2", true);
    assert_refused(&result, 1, "model.safetensors");
}

static void test_keep(void **state) {
    (void)state;
    outcome result;
    RUN(&result, "train", "--data", in_folder("data"), "--out", in_folder("kept"), "--layers", "1",
        "--dim", "16", "--heads", "2", "--context", "16", "--steps", "12", "--threads", "1",
        "--checkpoint-every", "3", "--keep", "3");
    assert_code(&result, 0);
    const char *const there[] = {"kept/step-6", "kept/step-9", "kept/step-12"};
    for (int i = 0; i < 3; i++) assert_int_equal(access(in_folder(there[i]), F_OK), 0);
    assert_int_equal(access(in_folder("kept/step-3"), F_OK), -1);
    assert_int_equal(access(in_folder("kept/step-0"), F_OK), -1);
}

static int prepare(void **state) {
    if (make_folder(state)) return -1;
    write_text("data", 4000, 1);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_halves),
        cmocka_unit_test(test_resumed_twice),
        cmocka_unit_test(test_resume_at_the_end_changes_nothing),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_terminated),
        cmocka_unit_test(test_interrupted_twice),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_reals_are_exact),
        cmocka_unit_test(test_resume_needs_only_the_folder),
        cmocka_unit_test(test_data_that_is_gone),
        cmocka_unit_test(test_damaged_run_is_not_started_over),
        cmocka_unit_test(test_keep),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
