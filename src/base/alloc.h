/* Host memory for the library's own records. Array buffers come from the runtime's allocator.
 *
 * Every allocation of the library goes through here, so that a test can make the n-th one fail and
 * check that nothing is lost. Sizes are multiplied with a check. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when there is no memory; zero bytes give a pointer that may be freed. */
void *tk_malloc(size_t bytes);
void *tk_calloc(size_t count, size_t bytes);
void *tk_realloc(void *memory, size_t bytes);
void tk_free(void *memory);
char *tk_strdup(const char *text);

/* Test hook: the n-th allocation from now (1 is the next) and all after it fail; 0 turns it off. */
void tk_alloc_fail_after(int64_t n);

static inline bool tk_mul_overflow_i64(int64_t a, int64_t b, int64_t *out) {
    return __builtin_mul_overflow(a, b, out);
}
static inline bool tk_add_overflow_i64(int64_t a, int64_t b, int64_t *out) {
    return __builtin_add_overflow(a, b, out);
}

#endif
