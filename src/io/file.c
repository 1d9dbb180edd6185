/* See file.h and tiki/io.h.
 *
 * The writer has no buffer: its callers write headers and whole tensors. Temporary names come from
 * a process-wide count, not from mkstemp, so that the files get the permissions of the umask. */
#define _GNU_SOURCE /* O_CLOEXEC and mmap under -std=c17 */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tiki/io.h"

/* ---- mappings ---- */

static tk_status new_mapping(const char *name, const void *data, size_t bytes, bool mapped,
                             tk_mapping **out_mapping) {
    tk_mapping *mapping = tk_malloc(sizeof *mapping);
    if (!mapping) return tk_io_no_memory(name);
    *mapping = (tk_mapping){.data = data, .bytes = bytes, .mapped = mapped};
    atomic_init(&mapping->references, 1);
    *out_mapping = mapping;
    return TK_OK;
}

static tk_status map_fd(int fd, const char *path, tk_mapping **out_mapping) {
    struct stat info;
    if (fstat(fd, &info) != 0) return tk_io_fail(path, "look at");
    if (!S_ISREG(info.st_mode))
        return tk_fail(TK_IO_ERROR, "%.500s: a regular file is expected, this is another kind",
                       path);
    size_t bytes = (size_t)info.st_size;
    void *data = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (data == MAP_FAILED) return tk_io_fail(path, "map");
    tk_status status = new_mapping(path, data, bytes, true, out_mapping);
    if (status != TK_OK && data) munmap(data, bytes);
    return status;
}

tk_status tk_mapping_open(const char *path, tk_mapping **out_mapping) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tk_io_fail(path, "open");
    tk_status status = map_fd(fd, path, out_mapping);
    close(fd);
    return status;
}

tk_status tk_mapping_adopt(const char *name, void *data, size_t bytes, tk_mapping **out_mapping) {
    tk_status status = new_mapping(name, data, bytes, false, out_mapping);
    if (status != TK_OK) tk_free(data);
    return status;
}

tk_status tk_mapping_copy(const char *name, const void *data, size_t bytes,
                          tk_mapping **out_mapping) {
    void *copy = tk_malloc(bytes);
    if (!copy) return tk_io_no_memory(name);
    if (bytes) memcpy(copy, data, bytes);
    return tk_mapping_adopt(name, copy, bytes, out_mapping);
}

tk_mapping *tk_mapping_retain(tk_mapping *mapping) {
    atomic_fetch_add_explicit(&mapping->references, 1, memory_order_relaxed);
    return mapping;
}

void tk_mapping_release(void *owner) {
    tk_mapping *mapping = owner;
    if (!mapping || atomic_fetch_sub_explicit(&mapping->references, 1, memory_order_acq_rel) != 1)
        return;
    if (!mapping->mapped)
        tk_free((void *)(uintptr_t)mapping->data);
    else if (mapping->data)
        munmap((void *)(uintptr_t)mapping->data, mapping->bytes);
    tk_free(mapping);
}

/* ---- writing ---- */

tk_status tk_writer_open(tk_writer *writer, const char *path) {
    *writer = (tk_writer){.fd = -1, .path = tk_strdup(path), .temporary = tk_io_temporary(path)};
    tk_status status = TK_OK;
    if (!writer->path || !writer->temporary) status = tk_io_no_memory(path);
    if (status == TK_OK) {
        writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd < 0) status = tk_io_fail(path, "make a temporary file beside it");
    }
    if (status == TK_OK) return TK_OK;
    tk_free(writer->path);
    tk_free(writer->temporary);
    return status;
}

tk_status tk_writer_put(tk_writer *writer, const void *data, size_t bytes) {
    return tk_io_write(writer->fd, writer->path, data, bytes);
}

tk_status tk_writer_reopen(tk_writer *writer) {
    close(writer->fd);
    writer->fd = open(writer->temporary, O_WRONLY | O_CLOEXEC);
    return writer->fd < 0 ? tk_io_fail(writer->path, "open the temporary file of") : TK_OK;
}

static tk_status publish(tk_writer *writer) {
    TK_TRY(tk_io_sync(writer->fd, writer->path));
    int closed = close(writer->fd);
    writer->fd = -1;
    if (closed != 0) return tk_io_fail(writer->path, "close");
    return tk_io_rename(writer->temporary, writer->path);
}

static tk_status sync_folder_of(const char *path) {
    char *folder = tk_io_folder_of(path);
    tk_status status = folder ? tk_io_sync_path(folder) : tk_io_no_memory(path);
    tk_free(folder);
    return status;
}

tk_status tk_writer_close(tk_writer *writer, tk_status status) {
    if (status == TK_OK) status = publish(writer);
    if (writer->fd >= 0) close(writer->fd);
    if (status != TK_OK)
        unlink(writer->temporary);
    else
        status = sync_folder_of(writer->path);
    tk_free(writer->path);
    tk_free(writer->temporary);
    return status;
}

/* ---- whole files ---- */

static tk_status grow(const char *path, char **data, size_t *room) {
    size_t wanted = *room ? *room * 2 : 4096;
    char *grown = wanted > *room ? tk_realloc(*data, wanted) : NULL;
    if (!grown) return tk_io_no_memory(path);
    *data = grown;
    *room = wanted;
    return TK_OK;
}

/* Reads until the end, whatever length the file says it has, so pipes work too. */
static tk_status read_fd(int fd, const char *path, char **data, size_t *out_bytes) {
    size_t room = 0, bytes = 0;
    for (;;) {
        if (bytes + 1 >= room) TK_TRY(grow(path, data, &room));
        ssize_t count = read(fd, *data + bytes, room - bytes - 1);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return tk_io_fail(path, "read");
        if (count == 0) break;
        bytes += (size_t)count;
    }
    (*data)[bytes] = 0;
    *out_bytes = bytes;
    return TK_OK;
}

tk_status tk_file_read(const char *path, char **out_data, size_t *out_bytes) {
    TK_NEED(path, out_data, out_bytes);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tk_io_fail(path, "open");
    char *data = NULL;
    tk_status status = read_fd(fd, path, &data, out_bytes);
    close(fd);
    if (status == TK_OK)
        *out_data = data;
    else
        tk_free(data);
    return status;
}

tk_status tk_file_write(const char *path, const void *data, size_t bytes) {
    TK_NEED(path);
    if (bytes) TK_NEED(data);
    tk_writer writer;
    TK_TRY(tk_writer_open(&writer, path));
    return tk_writer_close(&writer, tk_writer_put(&writer, data, bytes));
}
