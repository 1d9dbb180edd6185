/* Memory that is given back all at once: for graphs of small records that live and die together.
 *
 * Nothing in an arena is freed by itself, so a pass that replaces a record leaves the old one
 * behind until the whole is released. One owner; not thread-safe. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

typedef struct tk_arena_block tk_arena_block;

/* All zero is an empty arena. */
typedef struct tk_arena {
    tk_arena_block *blocks; /* the newest first */
    size_t used;            /* bytes of the newest */
} tk_arena;

/* Zeroed memory, aligned for any type, until tk_arena_deinit; NULL when there is none. Zero bytes
 * give a pointer that must not be read. */
void *tk_arena_alloc(tk_arena *arena, size_t bytes);

/* A copy of `length` bytes with a zero behind them. */
char *tk_arena_text(tk_arena *arena, const char *text, size_t length);

void tk_arena_deinit(tk_arena *arena);

#endif
