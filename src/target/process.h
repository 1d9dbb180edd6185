/* Running another program for a build: its output as text, its files in a folder that goes away. */
#ifndef TARGET_PROCESS_H
#define TARGET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "tiki/status.h"

/* A new folder below TMPDIR; "" after an error. */
typedef struct tk_work_folder {
    char path[512];
} tk_work_folder;
tk_status tk_work_folder_create(tk_work_folder *out);

/* Removes the files `names` (up to a NULL) and the folder. */
void tk_work_folder_remove(const tk_work_folder *folder, const char *const *names);

/* The path of a file in it, in a buffer of `bytes`. */
void tk_work_path(const tk_work_folder *folder, const char *name, char *path, size_t bytes);

tk_status tk_work_write(const char *path, const char *text, size_t length);

/* The whole file with a zero behind it; the caller frees it with tk_free. */
tk_status tk_work_read(const char *path, char **out_data, size_t *out_bytes);

/* Whether a path is that of a file that may be run. */
bool tk_is_program(const char *path);

/* The path of a program, in a buffer of `bytes`: `name` itself where it has a slash, else the first
 * in PATH. False when there is none that can be run. Starts nothing. */
bool tk_program_find(const char *name, char *path, size_t bytes);

/* Runs argv (up to a NULL; argv[0] is searched in PATH) with standard output and error in the file
 * `log`, and gives its exit code, -1 when a signal ended it. TK_NOT_FOUND when there is no such
 * program. */
tk_status tk_process_run(const char *const *argv, const char *log, int *out_code);

#endif
