/* See system.h. */
#define _GNU_SOURCE /* renameat2 */
#include "io/system.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "tiki/io.h"

static tk_status (*step_hook)(void *arg, const char *step, const char *path);
static void *step_hook_arg;

void tk_file_set_hook(tk_status (*hook)(void *arg, const char *step, const char *path), void *arg) {
    step_hook = hook;
    step_hook_arg = arg;
}

tk_status tk_io_begin_step(const char *step, const char *path) {
    if (!step_hook || step_hook(step_hook_arg, step, path) == TK_OK) return TK_OK;
    return tk_fail(TK_IO_ERROR, "%s: cannot %s: the test hook refuses", path, step);
}

tk_status tk_io_fail(const char *path, const char *verb) {
    int number = errno;
    char reason[128];
    const char *text = strerror_r(number, reason, sizeof reason);
    return tk_fail(TK_IO_ERROR, "%.500s: cannot %s: %s", path, verb, text);
}

tk_status tk_io_no_memory(const char *path) {
    return tk_fail(TK_OUT_OF_MEMORY, "%.500s: no memory", path);
}

/* ---- names ---- */

char *tk_io_join(const char *folder, const char *name) {
    tk_strbuf path = {0};
    size_t length = strlen(folder);
    tk_strbuf_puts(&path, folder);
    if (length && folder[length - 1] != '/') tk_strbuf_putc(&path, '/');
    tk_strbuf_puts(&path, name);
    return tk_strbuf_take(&path);
}

char *tk_io_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return tk_strdup(".");
    tk_strbuf folder = {0};
    tk_strbuf_put(&folder, path, slash == path ? 1 : (size_t)(slash - path));
    return tk_strbuf_take(&folder);
}

char *tk_io_temporary(const char *path) {
    static _Atomic unsigned count;
    char name[96];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, sizeof name, TK_IO_TEMPORARY "%ld-%llx-%u", (long)getpid(),
             (long long)now.tv_sec * 1000000000 + now.tv_nsec, atomic_fetch_add(&count, 1));
    char *folder = tk_io_folder_of(path);
    char *temporary = folder ? tk_io_join(folder, name) : NULL;
    tk_free(folder);
    return temporary;
}

/* ---- changes ---- */

tk_status tk_io_write(int fd, const char *path, const void *data, size_t bytes) {
    TK_TRY(tk_io_begin_step("write", path));
    const char *at = data;
    while (bytes) {
        ssize_t written = write(fd, at, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return tk_io_fail(path, "write");
        at += written;
        bytes -= (size_t)written;
    }
    return TK_OK;
}

tk_status tk_io_sync(int fd, const char *path) {
    TK_TRY(tk_io_begin_step("sync", path));
    return fsync(fd) == 0 ? TK_OK : tk_io_fail(path, "sync");
}

tk_status tk_io_sync_path(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tk_io_fail(path, "open");
    tk_status status = tk_io_sync(fd, path);
    close(fd);
    return status;
}

tk_status tk_io_rename(const char *from, const char *to) {
    TK_TRY(tk_io_begin_step("rename", to));
    return rename(from, to) == 0 ? TK_OK : tk_io_fail(to, "rename to this name");
}

tk_status tk_io_exchange(const char *one, const char *other) {
    TK_TRY(tk_io_begin_step("rename", other));
    if (renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0) return TK_OK;
    return tk_io_fail(other, "exchange with the new one");
}

tk_status tk_io_link(const char *target, const char *path) {
    TK_TRY(tk_io_begin_step("link", path));
    return symlink(target, path) == 0 ? TK_OK : tk_io_fail(path, "make this link");
}

tk_status tk_io_remove(const char *path) {
    TK_TRY(tk_io_begin_step("remove", path));
    return unlink(path) == 0 ? TK_OK : tk_io_fail(path, "remove");
}

tk_status tk_io_make_folder(const char *path) {
    TK_TRY(tk_io_begin_step("folder", path));
    return mkdir(path, 0777) == 0 ? TK_OK : tk_io_fail(path, "make this folder");
}

tk_status tk_io_cut(int fd, const char *path, uint64_t bytes) {
    TK_TRY(tk_io_begin_step("cut", path));
    return ftruncate(fd, (off_t)bytes) == 0 ? TK_OK : tk_io_fail(path, "cut");
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info;
    (void)walk;
    if (kind != FTW_DP) return tk_io_remove(path) != TK_OK;
    if (tk_io_begin_step("remove", path) != TK_OK) return 1;
    return rmdir(path) != 0 && tk_io_fail(path, "remove") != TK_OK;
}

tk_status tk_io_remove_folder(const char *path) {
    int failed = nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (failed > 0) return tk_error_code();
    return failed == 0 ? TK_OK : tk_io_fail(path, "remove");
}
