/* The system calls that change what is on disk, and opening and asking.
 *
 * Each change goes through the test hook of tiki/io.h first, so that a test can stop the process,
 * or fail, at every one. Nothing else in this module may write, sync, rename, link or remove. All
 * give TK_IO_ERROR with the path and the system's reason. */
#ifndef IO_SYSTEM_H
#define IO_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiki/status.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file formats are little-endian and so must be the machine"
#endif

/* Names of what is not finished begin with this; tk_checkpoint_begin removes them. */
#define TK_IO_TEMPORARY ".tiki-tmp-"

/* Fails with "path: cannot <verb>: <reason of errno>". */
tk_status tk_io_fail(const char *path, const char *verb);
tk_status tk_io_no_memory(const char *path);

/* "folder/name" on the heap, NULL when memory is out. Freed with tk_free. */
char *tk_io_join(const char *folder, const char *name);

/* "folder of path/.tiki-tmp-<process>-<time>-<count>", a new name: process numbers alone are not
 * enough where machines share a file system. NULL when memory is out. Freed with tk_free. */
char *tk_io_temporary(const char *path);

/* The folder of a path: "." where the path has none. NULL when memory is out. */
char *tk_io_folder_of(const char *path);

/* Asks the test hook; for a step that a library makes. */
tk_status tk_io_begin_step(const char *step, const char *path);

/* Writes all bytes. */
tk_status tk_io_write(int fd, const char *path, const void *data, size_t bytes);
tk_status tk_io_sync(int fd, const char *path);
tk_status tk_io_sync_path(const char *path); /* a file or a folder */
tk_status tk_io_rename(const char *from, const char *to);
tk_status tk_io_exchange(const char *one, const char *other); /* both must exist */
tk_status tk_io_link(const char *target, const char *path);   /* symbolic */
tk_status tk_io_remove(const char *path);                     /* not a folder */
tk_status tk_io_make_folder(const char *path);
tk_status tk_io_cut(int fd, const char *path, uint64_t bytes);

/* Removes a folder and all in it; links are removed, not followed. */
tk_status tk_io_remove_folder(const char *path);

#endif
