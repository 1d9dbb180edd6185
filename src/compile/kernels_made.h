/* Kernels that are written as text when a signature is met first, and kept for the life of the
 * process. */
#ifndef COMPILE_KERNELS_MADE_H
#define COMPILE_KERNELS_MADE_H

#include <pthread.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "tiki/kernel.h"

typedef struct tk_made {
    void *key; /* bytes without gaps */
    tk_kernel *kernel;
} tk_made;

typedef struct tk_kernels_made {
    pthread_mutex_t lock;
    const char *name; /* for errors of the text */
    size_t key_bytes;
    void (*put)(const void *key, tk_strbuf *out);
    TK_VEC(tk_made) kernels;
} tk_kernels_made;

/* Borrowed: kernels stay. */
tk_status tk_kernels_find(tk_kernels_made *made, const void *key, tk_kernel **out);

#endif
