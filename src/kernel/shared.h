/* Where the shared buffers of a kernel lie: one map for emulator, code generation and reports. */
#ifndef KERNEL_SHARED_H
#define KERNEL_SHARED_H

#include "kernel/ir.h"

typedef struct tk_kshared_map {
    int64_t bytes;      /* of the declared buffers */
    int64_t dynamic_at; /* where the part begins whose size the contract computes */
    int64_t align;      /* of the whole */
} tk_kshared_map;

/* Buffers lie in the order of their declaration, each at the next multiple of its alignment, but
 * for those with an offset of their own. `offsets`, by value id, gets the places of buffers (NULL:
 * not wanted). */
tk_status tk_kshared_place(const tk_kernel *kernel, int64_t *offsets, tk_kshared_map *out);

/* Bytes of a block for a launch. */
static inline int64_t tk_kshared_total(const tk_kshared_map *map, int64_t dynamic) {
    return dynamic ? map->dynamic_at + dynamic : map->bytes;
}

#endif
