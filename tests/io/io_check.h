/* What the tests of files share: a folder of their own, bytes built by hand, expected failures.
 * Needs _GNU_SOURCE (mkdtemp, nftw) before the first include. */
#ifndef TESTS_IO_CHECK_H
#define TESTS_IO_CHECK_H

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/arrays.h"
#include "tiki/io.h"

static char folder[256];

static int make_folder(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tiki-io-XXXXXX", base ? base : P_tmpdir);
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

/* A path in the folder; valid until the eighth next call. */
static inline const char *in_folder(const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

/* The call gave this code and a message with this text. */
static inline void assert_fails_at(tk_status status, tk_status expected, const char *text,
                                   const char *file, int line) {
    if (status != expected || (status != TK_OK && !strstr(tk_error_message(), text)))
        print_error("got %s: %s\nexpected %s with \"%s\"\n", tk_status_name(status),
                    tk_error_message(), tk_status_name(expected), text);
    _assert_int_equal(status, expected, file, line);
    _assert_true(strstr(tk_error_message(), text) != NULL, text, file, line);
}
#define assert_fails(status, expected, text)                                                       \
    assert_fails_at((status), (expected), (text), __FILE__, __LINE__)

/* Entries of a directory whose names begin with `prefix`. */
static inline int count_entries(const char *path, const char *prefix) {
    int count = 0;
    DIR *entries = opendir(path);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                 !strncmp(entry->d_name, prefix, strlen(prefix));
    closedir(entries);
    return count;
}

/* The bytes of a file, for comparing; freed by the caller. */
static inline char *read_all(const char *path, size_t *bytes) {
    char *data = NULL;
    assert_ok(tk_file_read(path, &data, bytes));
    return data;
}

#endif
