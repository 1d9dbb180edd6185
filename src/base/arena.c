/* Blocks that double in size up to a limit; a request above the limit gets a block of its own. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

#define FIRST_BYTES ((size_t)4096)
#define MOST_BYTES ((size_t)1 << 20)
#define ALIGNMENT 16

struct tk_arena_block {
    tk_arena_block *next;
    size_t bytes;
    _Alignas(ALIGNMENT) unsigned char memory[];
};

static tk_arena_block *add_block(tk_arena *arena, size_t need) {
    size_t bytes = arena->blocks ? arena->blocks->bytes * 2 : FIRST_BYTES;
    if (bytes > MOST_BYTES) bytes = MOST_BYTES;
    if (bytes < need) bytes = need;
    tk_arena_block *block = tk_calloc(1, sizeof *block + bytes);
    if (!block) return NULL;
    block->next = arena->blocks;
    block->bytes = bytes;
    arena->blocks = block;
    arena->used = 0;
    return block;
}

void *tk_arena_alloc(tk_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    size_t need = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    tk_arena_block *block = arena->blocks;
    if (!block || block->bytes - arena->used < need) block = add_block(arena, need);
    if (!block) return NULL;
    void *memory = block->memory + arena->used;
    arena->used += need;
    return memory;
}

char *tk_arena_text(tk_arena *arena, const char *text, size_t length) {
    char *copy = tk_arena_alloc(arena, length + 1);
    if (copy && length) memcpy(copy, text, length);
    return copy;
}

void tk_arena_deinit(tk_arena *arena) {
    for (tk_arena_block *block = arena->blocks; block;) {
        tk_arena_block *next = block->next;
        tk_free(block);
        block = next;
    }
    *arena = (tk_arena){0};
}
