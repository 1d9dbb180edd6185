/* Files whole: read through a mapping that arrays can share, written through a temporary name. */
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/system.h"

/* The bytes of a file, or a copy of memory, counted. Immutable; any thread. */
typedef struct tk_mapping {
    _Atomic size_t references;
    const unsigned char *data; /* aligned to 16 bytes at least; NULL when there are none */
    size_t bytes;
    bool mapped; /* else the data is in memory from tk_malloc */
} tk_mapping;

/* Maps a regular file for reading. */
tk_status tk_mapping_open(const char *path, tk_mapping **out_mapping);

/* A copy of memory; `name` is for the message. */
tk_status tk_mapping_copy(const char *name, const void *data, size_t bytes,
                          tk_mapping **out_mapping);

/* Takes over memory from tk_malloc, frees it on failure too. */
tk_status tk_mapping_adopt(const char *name, void *data, size_t bytes, tk_mapping **out_mapping);

tk_mapping *tk_mapping_retain(tk_mapping *mapping);

/* Drops a reference; takes a tk_mapping as void so that it can be the release function of
 * tk_from_memory. */
void tk_mapping_release(void *mapping);

/* A file being written: bytes go to `temporary`, commit makes it `path`. */
typedef struct tk_writer {
    int fd; /* -1: closed */
    char *path;
    char *temporary;
} tk_writer;

/* On failure there is nothing to abandon. */
tk_status tk_writer_open(tk_writer *writer, const char *path);
tk_status tk_writer_put(tk_writer *writer, const void *data, size_t bytes);

/* For a library that has written the temporary file by its name: goes on with what is there now. */
tk_status tk_writer_reopen(tk_writer *writer);

/* Syncs, renames, syncs the folder, frees; where `status` or a step is a failure, abandons and
 * gives that. */
tk_status tk_writer_close(tk_writer *writer, tk_status status);

#endif
