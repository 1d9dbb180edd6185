/* malloc with a failure switch for tests; see alloc.h. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int64_t failing_after; /* 0: off; 1: every allocation fails */

void tk_alloc_fail_after(int64_t n) { atomic_store(&failing_after, n); }

static bool must_fail(void) {
    int64_t left = atomic_load_explicit(&failing_after, memory_order_relaxed);
    while (left > 1)
        if (atomic_compare_exchange_weak(&failing_after, &left, left - 1)) return false;
    return left == 1;
}

void *tk_malloc(size_t bytes) { return must_fail() ? NULL : malloc(bytes ? bytes : 1); }

void *tk_calloc(size_t count, size_t bytes) {
    return must_fail() ? NULL : calloc(count ? count : 1, bytes ? bytes : 1);
}

void *tk_realloc(void *memory, size_t bytes) {
    return must_fail() ? NULL : realloc(memory, bytes ? bytes : 1);
}

void tk_free(void *memory) { free(memory); }

char *tk_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = tk_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}
