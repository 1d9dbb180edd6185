/* See python.h. The version of an installed package is the name of a folder beside it, so that a
 * kernel that is in the cache of built kernels starts no Python.
 *
 * Rejected: asking each time (0.3 s, or 0.05 s for the version alone); time and size of the
 * package's library, which differ between machines that have the same version. */
#define _GNU_SOURCE
#include "target/cute/python.h"

#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/process.h"
#include "tiki/target.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char running[TK_CUTE_PATH_BYTES];

tk_status tk_cute_use_python(const char *path) {
    pthread_mutex_lock(&lock);
    snprintf(running, sizeof running, "%s", path ? path : "");
    pthread_mutex_unlock(&lock);
    return TK_OK;
}

int tk_cute_pythons(tk_cute_python out[TK_CUTE_MOST_PYTHONS]) {
    const char *named = getenv("TIKI_CUTE_PYTHON");
    int count = 0;
    if (named && *named) {
        snprintf(out[0].path, sizeof out[0].path, "%s", named);
        return 1;
    }
    pthread_mutex_lock(&lock);
    if (*running) memcpy(out[count++].path, running, sizeof running);
    pthread_mutex_unlock(&lock);
    snprintf(out[count++].path, sizeof out[0].path, "python3");
    return count;
}

bool tk_cute_version_fits(const char *version) { return !strncmp(version, "4.8.", 4); }

/* ---- on disk ---- */

/* From ".../nvidia_cutlass_dsl-4.8.1.dist-info". */
static bool read_version(const char *found, char *text, size_t capacity) {
    const char *at = strrchr(found, '/');
    at = strchr(at ? at : found, '-');
    size_t length = at ? strcspn(at + 1, "-") : 0;
    const char *suffix = at ? strstr(at, ".dist-info") : NULL;
    if (suffix) length = (size_t)(suffix - at - 1);
    if (!at || length == 0 || length >= capacity) return false;
    memcpy(text, at + 1, length);
    text[length] = 0;
    return true;
}

static bool find_in(const char *folders, char *text, size_t capacity) {
    char pattern[TK_CUTE_PATH_BYTES + 128];
    glob_t found;
    int written = snprintf(pattern, sizeof pattern, "%s/nvidia_cutlass_dsl-*.dist-info", folders);
    if (written >= (int)sizeof pattern || glob(pattern, 0, NULL, &found)) return false;
    bool fits = found.gl_pathc == 1 && read_version(found.gl_pathv[0], text, capacity);
    globfree(&found);
    return fits;
}

/* Where a Python at PREFIX/bin/python keeps its packages. */
static bool find_beside(const char *program, char *text, size_t capacity) {
    static const char *const places[] = {"lib/python3*/site-packages",
                                         "local/lib/python3*/dist-packages"};
    char folders[TK_CUTE_PATH_BYTES + 64];
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        int length = (int)(slash - program);
        int written = snprintf(folders, sizeof folders, "%.*s/../%s", length, program, places[i]);
        if (written < (int)sizeof folders && find_in(folders, text, capacity)) return true;
    }
    return false;
}

/* Every Python looks into these first. */
static bool find_in_python_path(char *text, size_t capacity) {
    char folder[TK_CUTE_PATH_BYTES];
    const char *at = getenv("PYTHONPATH");
    while (at && *at) {
        size_t length = strcspn(at, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)length, at);
        if (length && length < sizeof folder && find_in(folder, text, capacity)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

bool tk_cute_version_on_disk(char *text, size_t capacity) {
    tk_cute_python pythons[TK_CUTE_MOST_PYTHONS];
    char program[TK_CUTE_PATH_BYTES];
    int count = tk_cute_pythons(pythons);
    if (find_in_python_path(text, capacity)) return true;
    for (int i = 0; i < count; i++)
        if (tk_program_find(pythons[i].path, program, sizeof program) &&
            find_beside(program, text, capacity))
            return true;
    return false;
}
