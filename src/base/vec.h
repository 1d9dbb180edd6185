/* A growing array as a macro over a typed struct: `TK_VEC(int64_t) v = {0};`.
 *
 * tk_vec_push is false when memory ran out; the contents are then unchanged. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/alloc.h"

#define TK_VEC(type)                                                                               \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }

static inline bool tk_vec_grow(void **items, size_t *capacity, size_t need, size_t item_bytes) {
    if (need <= *capacity) return true;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    if (wanted < need) wanted = need;
    if (wanted > SIZE_MAX / item_bytes) return false;
    void *grown = tk_realloc(*items, wanted * item_bytes);
    if (!grown) return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

#define tk_vec_reserve(v, need)                                                                    \
    tk_vec_grow((void **)&(v)->items, &(v)->capacity, (need), sizeof *(v)->items)

#define tk_vec_push(v, value)                                                                      \
    (tk_vec_reserve((v), (v)->count + 1) ? ((v)->items[(v)->count++] = (value), true) : false)

#define tk_vec_deinit(v)                                                                           \
    do {                                                                                           \
        tk_free((v)->items);                                                                       \
        (v)->items = NULL;                                                                         \
        (v)->count = (v)->capacity = 0;                                                            \
    } while (0)

#endif
