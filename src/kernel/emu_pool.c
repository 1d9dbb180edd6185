/* A list of free pieces for each of a few sizes; further sizes are not kept.
 *
 * Rejected: the allocator alone (it gives large pieces back to the system after each block). */
#include "kernel/emu_pool.h"

#include <string.h>

#include "base/alloc.h"

struct tk_emu_piece {
    tk_emu_piece *next;
};

enum { SIZES = 16 };

void tk_emu_pool_init(tk_emu_pool *pool) {
    memset(pool, 0, sizeof *pool);
    pthread_mutex_init(&pool->lock, NULL);
}

void tk_emu_pool_deinit(tk_emu_pool *pool) {
    for (int i = 0; i < SIZES; i++)
        while (pool->sizes[i].first) {
            tk_emu_piece *piece = pool->sizes[i].first;
            pool->sizes[i].first = piece->next;
            tk_free(piece);
        }
    pthread_mutex_destroy(&pool->lock);
}

/* The list of a size, -1 when there is no room for one more. */
static int list_of(tk_emu_pool *pool, size_t bytes) {
    for (int i = 0; i < SIZES; i++) {
        if (!pool->sizes[i].bytes) pool->sizes[i].bytes = bytes;
        if (pool->sizes[i].bytes == bytes) return i;
    }
    return -1;
}

void *tk_emu_take(tk_emu_pool *pool, size_t bytes, bool zeroed) {
    if (bytes < sizeof(tk_emu_piece)) bytes = sizeof(tk_emu_piece);
    pthread_mutex_lock(&pool->lock);
    int list = list_of(pool, bytes);
    tk_emu_piece *piece = list < 0 ? NULL : pool->sizes[list].first;
    if (piece) pool->sizes[list].first = piece->next;
    pthread_mutex_unlock(&pool->lock);
    if (!piece) return zeroed ? tk_calloc(1, bytes) : tk_malloc(bytes);
    if (zeroed) memset(piece, 0, bytes);
    return piece;
}

void tk_emu_give(tk_emu_pool *pool, void *memory, size_t bytes) {
    if (!memory) return;
    if (bytes < sizeof(tk_emu_piece)) bytes = sizeof(tk_emu_piece);
    pthread_mutex_lock(&pool->lock);
    int list = list_of(pool, bytes);
    if (list >= 0) {
        tk_emu_piece *piece = memory;
        piece->next = pool->sizes[list].first;
        pool->sizes[list].first = piece;
    }
    pthread_mutex_unlock(&pool->lock);
    if (list < 0) tk_free(memory);
}
