/* Random layouts for property tests, and what the laws are checked against: plain loops over all
 * points, without any of the library's shortcuts. The seed is fixed, so a failure repeats. */
#ifndef SUPPORT_LAYOUT_CASES_H
#define SUPPORT_LAYOUT_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tiki/layout.h"

typedef struct layout_rng {
    uint64_t state;
} layout_rng;

static inline uint64_t rng_next(layout_rng *rng) {
    uint64_t x = rng->state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* From 0 to below - 1. */
static inline int rng_below(layout_rng *rng, int below) {
    return (int)(rng_next(rng) % (uint64_t)below);
}

/* A random shape of depth at most 3, of at most `limit` coordinates; extents of 1 are common. */
void random_shape(layout_rng *rng, int64_t limit, tk_tuple *out);

/* Kinds of strides. */
typedef enum stride_kind {
    STRIDES_COMPACT,   /* leftmost fastest */
    STRIDES_PERMUTED,  /* compact in a random order */
    STRIDES_PADDED,    /* permuted with gaps: injective */
    STRIDES_SOME_ZERO, /* permuted, some of them 0 */
    STRIDES_ANY,       /* small random numbers: overlapping, carrying */
    STRIDE_KINDS
} stride_kind;

void random_strides(layout_rng *rng, const tk_tuple *shape, stride_kind kind, tk_layout *out);

/* Any kind of layout with at most `limit` coordinates. */
void random_layout(layout_rng *rng, int64_t limit, tk_layout *out);

/* A layout from the kinds that are injective. */
void random_injective(layout_rng *rng, int64_t limit, tk_layout *out);

int64_t size_of(const tk_layout *layout);

/* The value at an integer coordinate, leaf by leaf with division and remainder. */
int64_t value_of(const tk_layout *layout, int64_t index);

/* Fails where r does not take a's value back to the coordinate, at random coordinates. */
void check_left_inverse(layout_rng *rng, const tk_layout *a, const tk_layout *r, int trials);

/* Do both have one size, and one value everywhere? */
bool same_function(const tk_layout *a, const tk_layout *b);

/* Is there a layout that refines b's shape and equals a(b(i))? Found by enumeration from the
 * definition: the leaves must add up, and each leaf must break into equal steps. */
bool composition_exists(const tk_layout *a, const tk_layout *b);

/* Is there a layout that takes all offsets up to `most` back to their coordinates? Every chain of
 * moduli is tried, and every equation. For injective layouts without negative strides, of at most
 * 256 such offsets; the time grows with most^1.7. */
bool left_inverse_exists(const tk_layout *layout, int64_t most);

/* The text of a layout, in a buffer of the caller. */
typedef struct layout_text {
    char text[4096];
} layout_text;
layout_text show(const tk_layout *layout);

/* Parses or fails the test. */
tk_layout layout_of(const char *text);
tk_tiler tiler_of(const char *text);
tk_tuple tuple_of(const char *text);

#endif
