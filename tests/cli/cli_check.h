/* What the tests of the command share: a folder of their own, running `tiki` with its output kept,
 * and small texts to learn from. Needs _GNU_SOURCE before the first include. */
#ifndef TESTS_CLI_CHECK_H
#define TESTS_CLI_CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/arrays.h"
#include "tiki/io.h"

static char folder[256];

static int make_folder(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tiki-cli-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int remove_folder(void **state) {
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path in the folder; valid until the sixteenth next call. */
static inline const char *in_folder(const char *name) {
    static char paths[16][512];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

static inline char *read_all(const char *path, size_t *bytes) {
    char *data = NULL;
    assert_ok(tk_file_read(path, &data, bytes));
    return data;
}

/* A file of `bytes` bytes of words and lines, the same for the same seed. */
static inline const char *write_text(const char *name, size_t bytes, unsigned seed) {
    static const char *const words[] = {"array",  "graph ", "layout", "tile ", "loss",
                                        " step ", "the ",   "and\n",  "(x) ",  "= 1; "};
    char *text = malloc(bytes + 16);
    assert_non_null(text);
    size_t used = 0;
    while (used < bytes) {
        seed = seed * 1664525u + 1013904223u;
        const char *word = words[(seed >> 16) % (sizeof words / sizeof words[0])];
        memcpy(text + used, word, strlen(word));
        used += strlen(word);
    }
    const char *path = in_folder(name);
    assert_ok(tk_file_write(path, text, bytes));
    free(text);
    return path;
}

/* ---- running the command ---- */

#define MAX_WORDS 96

/* What a command printed, and how it ended: its exit code, or 128 and the signal. */
typedef struct outcome {
    int code;
    char out[65536], err[4096];
} outcome;

static inline void copy_file(const char *path, char *text, size_t bytes) {
    FILE *file = fopen(path, "r");
    size_t used = file ? fread(text, 1, bytes - 1, file) : 0;
    text[used] = 0;
    if (file) fclose(file);
}

static inline void redirect(const char *path, int descriptor) {
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (file < 0 || dup2(file, descriptor) < 0) _exit(127);
    close(file);
}

/* Starts `tiki words...` (NULL ends them), printing into the folder's files "out" and "err". */
static inline pid_t start(const char *const *words) {
    const char *all[MAX_WORDS + 2] = {getenv("TIKI_BIN")};
    assert_non_null(all[0]);
    for (int i = 0; words[i]; i++) {
        assert_true(i < MAX_WORDS);
        all[i + 1] = words[i];
    }
    const char *out = in_folder("out"), *err = in_folder("err");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    redirect(out, 1);
    redirect(err, 2);
    execv(all[0], (char *const *)(uintptr_t)all);
    _exit(127);
}

static inline void finish(pid_t child, outcome *result) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
    result->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    copy_file(in_folder("out"), result->out, sizeof result->out);
    copy_file(in_folder("err"), result->err, sizeof result->err);
}

static inline void run_words(const char *const *words, outcome *result) {
    finish(start(words), result);
}
#define RUN(result, ...) run_words((const char *const[]){__VA_ARGS__, NULL}, (result))

static inline void assert_code_at(const outcome *result, int code, const char *file, int line) {
    if (result->code != code) print_error("out: %s\nerr: %s\n", result->out, result->err);
    _assert_int_equal(result->code, code, file, line);
}
#define assert_code(result, expected) assert_code_at((result), (expected), __FILE__, __LINE__)

static inline void assert_says_at(const char *text, const char *part, const char *file, int line) {
    if (!strstr(text, part)) print_error("\"%s\" is not in \"%s\"\n", part, text);
    _assert_true(strstr(text, part) != NULL, part, file, line);
}
#define assert_says(text, part) assert_says_at((text), (part), __FILE__, __LINE__)

/* A wrong use: this exit code, nothing printed, and a message with this text. */
#define assert_refused(result, code, part)                                                         \
    do {                                                                                           \
        assert_code((result), (code));                                                             \
        assert_says((result)->err, (part));                                                        \
    } while (0)

static inline void sleep_milliseconds(int64_t milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

#endif
