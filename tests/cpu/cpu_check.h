/* What the kernel tests share: running a body under every variant of this machine, and a small
 * generator of test values that is the same on every run. */
#ifndef TESTS_CPU_CHECK_H
#define TESTS_CPU_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/vec.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline void for_each_variant(void (*body)(void)) {
    for (int variant = 0; variant < TK_VEC_VARIANT_COUNT; variant++)
        if (tk_vec_variant_use((tk_vec_variant)variant)) body();
    assert_true(tk_vec_variant_use(tk_vec_variant_best()));
}

/* Uniform 32 bits (xorshift64*, from a state that must not be 0). */
static inline uint32_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 0x2545f4914f6cdd1du >> 32);
}

/* Uniform in [-1, 1). */
static inline double next_unit(uint64_t *state) {
    return (double)(int32_t)next_random(state) * 0x1p-31;
}

static inline void fill_unit_f32(uint64_t seed, float *out, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = (float)next_unit(&seed);
}

/* Values of a dtype written as, and read back to, double. */
static inline void put_values(tk_dtype dtype, const double *values, void *out, int64_t count) {
    tk_vec_convert(TK_FLOAT64, dtype, values, out, count);
}
static inline void get_values(tk_dtype dtype, const void *x, double *values, int64_t count) {
    tk_vec_convert(dtype, TK_FLOAT64, x, values, count);
}

#endif
