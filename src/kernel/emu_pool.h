/* Memory that blocks use again: pages, registers, shared memory. Freed pieces are kept by size
 * until the launch ends, so a block costs no page faults. Any thread may call. */
#ifndef KERNEL_EMU_POOL_H
#define KERNEL_EMU_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tk_emu_piece tk_emu_piece;

typedef struct tk_emu_pool {
    pthread_mutex_t lock;
    struct {
        size_t bytes;
        tk_emu_piece *first;
    } sizes[16];
} tk_emu_pool;

void tk_emu_pool_init(tk_emu_pool *pool);
void tk_emu_pool_deinit(tk_emu_pool *pool);

/* `zeroed`: all of it is 0, else its contents are anything. NULL when memory is out. */
void *tk_emu_take(tk_emu_pool *pool, size_t bytes, bool zeroed);
void tk_emu_give(tk_emu_pool *pool, void *memory, size_t bytes);

#endif
