/* posix_spawn is safe beside other threads, which fork with code between it and exec is not. */
#define _XOPEN_SOURCE 700
#include "target/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

extern char **environ;

tk_status tk_work_folder_create(tk_work_folder *out) {
    const char *base = getenv("TMPDIR");
    int length =
        snprintf(out->path, sizeof out->path, "%s/tiki-XXXXXX", base && *base ? base : "/tmp");
    if (length > 0 && (size_t)length < sizeof out->path && mkdtemp(out->path)) return TK_OK;
    tk_status status =
        tk_fail(TK_IO_ERROR, "no temporary folder %s: %s", out->path, strerror(errno));
    *out->path = 0;
    return status;
}

void tk_work_path(const tk_work_folder *folder, const char *name, char *path, size_t bytes) {
    snprintf(path, bytes, "%s/%s", folder->path, name);
}

void tk_work_folder_remove(const tk_work_folder *folder, const char *const *names) {
    char path[640];
    if (!*folder->path) return;
    for (; *names; names++) {
        tk_work_path(folder, *names, path, sizeof path);
        unlink(path);
    }
    rmdir(folder->path);
}

tk_status tk_work_write(const char *path, const char *text, size_t length) {
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(text, 1, length, file) == length;
    if (file && fclose(file)) ok = false;
    return ok ? TK_OK : tk_fail(TK_IO_ERROR, "cannot write %s: %s", path, strerror(errno));
}

static tk_status read_open(FILE *file, size_t bytes, char **out_data) {
    char *data = tk_malloc(bytes + 1);
    if (!data) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a file of %zu bytes", bytes);
    if (fread(data, 1, bytes, file) != bytes) {
        tk_free(data);
        return tk_fail(TK_IO_ERROR, "a temporary file became shorter");
    }
    data[bytes] = 0;
    *out_data = data;
    return TK_OK;
}

tk_status tk_work_read(const char *path, char **out_data, size_t *out_bytes) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info)) {
        tk_status status = tk_fail(TK_IO_ERROR, "cannot read %s: %s", path, strerror(errno));
        if (file) fclose(file);
        return status;
    }
    tk_status status = read_open(file, (size_t)info.st_size, out_data);
    fclose(file);
    if (status == TK_OK) *out_bytes = (size_t)info.st_size;
    return status;
}

static int spawn(const char *const *argv, const char *log, pid_t *out_child) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int error = posix_spawnp(out_child, argv[0], &actions, &attributes,
                             (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

tk_status tk_process_run(const char *const *argv, const char *log, int *out_code) {
    pid_t child;
    int error = spawn(argv, log, &child), state;
    if (error == ENOENT || error == EACCES)
        return tk_fail(TK_NOT_FOUND, "cannot run %s: %s", argv[0], strerror(error));
    if (error) return tk_fail(TK_IO_ERROR, "cannot run %s: %s", argv[0], strerror(error));
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR) return tk_fail(TK_IO_ERROR, "%s is lost: %s", argv[0], strerror(errno));
    *out_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    return TK_OK;
}

bool tk_is_program(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool tk_program_find(const char *name, char *path, size_t bytes) {
    const char *at = getenv("PATH");
    if (strchr(name, '/'))
        return snprintf(path, bytes, "%s", name) < (int)bytes && tk_is_program(path);
    while (at && *at) {
        size_t length = strcspn(at, ":");
        int written = snprintf(path, bytes, "%.*s/%s", (int)length, at, name);
        if (length && written < (int)bytes && tk_is_program(path)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}
