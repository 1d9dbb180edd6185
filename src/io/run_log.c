/* The log of a run; see tiki/checkpoint.h.
 *
 * Cutting is one ftruncate, not a copy and a rename: what is kept is never written again, and a
 * crash leaves a log that the next cut brings to the same length. A lock on the file keeps a second
 * run out for as long as the log is open. */
#define _GNU_SOURCE /* flock */
#include "io/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "io/json.h"
#include "io/system.h"
#include "tiki/checkpoint.h"
#include "tiki/io.h"

struct tk_run_log {
    int fd;
    char *path;
    uint64_t bytes;
};

/* Whether a line's step is above the last; lines that have none, or are no JSON, are not. */
static tk_status is_later(const char *name, const char *line, size_t bytes, int64_t last_step,
                          bool *out_later) {
    json_t *object;
    *out_later = false;
    tk_status status = tk_json_parse(name, line, bytes, &object);
    if (status == TK_OUT_OF_MEMORY) return status;
    if (status != TK_OK) return TK_OK;
    const json_t *step = json_object_get(object, "step");
    *out_later = json_is_integer(step) && json_integer_value(step) > last_step;
    json_decref(object);
    return TK_OK;
}

tk_status tk_run_log_find_cut(const char *name, const char *text, size_t bytes, int64_t last_step,
                              size_t *out_bytes) {
    *out_bytes = 0;
    while (last_step >= 0 && *out_bytes < bytes) {
        const char *line = text + *out_bytes, *end = memchr(line, '\n', bytes - *out_bytes);
        bool later = true;
        if (!end) return TK_OK;
        TK_TRY(is_later(name, line, (size_t)(end - line), last_step, &later));
        if (later) return TK_OK;
        *out_bytes += (size_t)(end - line) + 1;
    }
    return TK_OK;
}

static tk_status cut(tk_run_log *log, int64_t last_step) {
    char *text;
    size_t bytes, kept;
    TK_TRY(tk_file_read(log->path, &text, &bytes));
    tk_status status = tk_run_log_find_cut(log->path, text, bytes, last_step, &kept);
    tk_free(text);
    log->bytes = kept;
    if (status != TK_OK || kept == bytes) return status;
    TK_TRY(tk_io_cut(log->fd, log->path, kept));
    return tk_io_sync(log->fd, log->path);
}

static tk_status open_log(tk_run_log *log, int64_t last_step) {
    log->fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0) return tk_io_fail(log->path, "open");
    if (flock(log->fd, LOCK_EX | LOCK_NB) == 0) return cut(log, last_step);
    if (errno != EWOULDBLOCK) return tk_io_fail(log->path, "lock");
    return tk_fail(TK_IO_ERROR, "%.400s: another run is writing this log", log->path);
}

tk_status tk_run_log_open(const char *path, int64_t last_step, tk_run_log **out_log) {
    TK_NEED(path, out_log);
    tk_run_log *log = tk_calloc(1, sizeof *log);
    if (!log) return tk_io_no_memory(path);
    log->fd = -1;
    log->path = tk_strdup(path);
    tk_status status = log->path ? open_log(log, last_step) : tk_io_no_memory(path);
    if (status == TK_OK)
        *out_log = log;
    else
        tk_run_log_close(log);
    return status;
}

static tk_status check_line(const char *line) {
    json_t *object;
    if (strchr(line, '\n'))
        return tk_fail(TK_INVALID_ARGUMENT,
                       "tk_run_log_append: one line is expected, found several");
    tk_status status = tk_json_parse("tk_run_log_append", line, strlen(line), &object);
    if (status == TK_OK) json_decref(object);
    return status == TK_FORMAT_ERROR ? tk_fail_again(TK_INVALID_ARGUMENT, tk_error_message())
                                     : status;
}

static tk_status append(tk_run_log *log, const tk_strbuf *text) {
    if (text->failed) return tk_io_no_memory(log->path);
    tk_status status = tk_io_write(log->fd, log->path, text->text, text->length);
    if (status == TK_OK) log->bytes += text->length;
    return status;
}

tk_status tk_run_log_append(tk_run_log *log, const char *line) {
    TK_NEED(log, line);
    TK_TRY(check_line(line));
    tk_strbuf text = {0};
    tk_strbuf_puts(&text, line);
    tk_strbuf_putc(&text, '\n');
    tk_status status = append(log, &text);
    tk_strbuf_deinit(&text);
    if (status == TK_IO_ERROR && ftruncate(log->fd, (off_t)log->bytes) != 0)
        return tk_fail_within(status, "a torn line may be left");
    return status;
}

tk_status tk_run_log_sync(tk_run_log *log) {
    TK_NEED(log);
    return tk_io_sync(log->fd, log->path);
}

void tk_run_log_close(tk_run_log *log) {
    if (!log) return;
    if (log->fd >= 0) close(log->fd);
    tk_free(log->path);
    tk_free(log);
}
