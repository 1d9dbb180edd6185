/* A table from names to a pointer and a counter, for printer and parser of kernels. */
#ifndef KERNEL_NAMES_H
#define KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct tk_kname {
    const char *text; /* NULL: a free place */
    size_t length;
    void *what;
    uint32_t count;
} tk_kname;

/* All zero is an empty table. Texts are copied into `arena`. */
typedef struct tk_knames {
    tk_kname *places;
    size_t capacity, used;
    tk_arena arena;
} tk_knames;

/* The entry of a name, NULL when it is not there. Valid until the next tk_knames_add. */
tk_kname *tk_knames_find(const tk_knames *names, const char *text, size_t length);

/* A new entry for a name that is not there; NULL when memory is out. */
tk_kname *tk_knames_add(tk_knames *names, const char *text, size_t length, void *what);

/* Takes a name, or where it is taken the name with a number that nobody has; NULL when memory is
 * out. The text lives as long as the table. */
const char *tk_knames_take(tk_knames *names, const char *name);

void tk_knames_deinit(tk_knames *names);

#endif
