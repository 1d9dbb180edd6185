/* See slots.h.
 *
 * Rejected: a counter in shared memory (who is killed does not count down), a process that hands
 * out workers (one more thing that can hang), locks that waiters hold (a time that grows old needs
 * no cleaning up). */
#define _GNU_SOURCE
#include "target/cute/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/cute/worker.h"

enum { MOST_SLOTS = 64, LEAST_FILE = 3 };

static int count_of_slots(void) {
    const char *text = getenv("TIKI_CUTE_WORKERS");
    long count = text ? strtol(text, NULL, 10) : 0;
    if (count <= 0) {
        count = sysconf(_SC_NPROCESSORS_ONLN);
        if (count < TK_CUTE_MOST_WORKERS) count = TK_CUTE_MOST_WORKERS;
    }
    return count < MOST_SLOTS ? (int)count : MOST_SLOTS;
}

static bool refuse(tk_cute_slots *slots, const char *why) {
    snprintf(slots->why, sizeof slots->why, "%s: %s", slots->folder, why);
    return false;
}

/* Nobody else may have made it, or may put files into it. */
static bool find_folder(tk_cute_slots *out) {
    const char *base = getenv("XDG_RUNTIME_DIR");
    struct stat found;
    out->why[0] = 0;
    int length = base && *base ? snprintf(out->folder, sizeof out->folder, "%s/tiki", base)
                               : snprintf(out->folder, sizeof out->folder, "/tmp/tiki-%lu",
                                          (unsigned long)geteuid());
    if (length >= (int)sizeof out->folder) return refuse(out, "the path is too long");
    if (mkdir(out->folder, 0700) && errno != EEXIST) return refuse(out, strerror(errno));
    if (lstat(out->folder, &found)) return refuse(out, strerror(errno));
    if (!S_ISDIR(found.st_mode)) return refuse(out, "it is no folder");
    if (found.st_uid != geteuid() || found.st_mode & (S_IWGRP | S_IWOTH))
        return refuse(out, "others may write there");
    return true;
}

/* A file that is open, at LEAST_FILE or above, else -1. */
static int open_file(const tk_cute_slots *slots, const char *name) {
    char path[sizeof slots->folder + 40];
    snprintf(path, sizeof path, "%s/%s", slots->folder, name);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0 || file >= LEAST_FILE) return file;
    int higher = fcntl(file, F_DUPFD_CLOEXEC, LEAST_FILE);
    close(file);
    return higher;
}

int tk_cute_slot_take(tk_cute_slots *out) {
    if (!find_folder(out)) return TK_CUTE_NO_SLOTS;
    for (int i = 0; i < count_of_slots(); i++) {
        char name[40];
        snprintf(name, sizeof name, "worker-%d", i);
        int file = open_file(out, name);
        if (file < 0) return refuse(out, strerror(errno)), TK_CUTE_NO_SLOTS;
        if (!flock(file, LOCK_EX | LOCK_NB)) return file;
        int error = errno;
        close(file);
        if (error != EWOULDBLOCK) return refuse(out, strerror(error)), TK_CUTE_NO_SLOTS;
    }
    return TK_CUTE_SLOT_TAKEN;
}

void tk_cute_slot_want(const tk_cute_slots *slots) {
    int file = open_file(slots, "wanted");
    if (file < 0) return;
    (void)futimens(file, NULL);
    close(file);
}

bool tk_cute_slots_work(tk_cute_slots *out) {
    int file = tk_cute_slot_take(out);
    if (file >= 0) close(file);
    return file != TK_CUTE_NO_SLOTS;
}
