/* Arithmetic on terms: static numbers, dynamic ones with a known divisor, basis vectors.
 * Private to this module.
 *
 * A dynamic term stands for any multiple of its divisor, so each result keeps the largest divisor
 * that certainly holds. Two dynamic terms are never known to be equal: a value has no names. */
#ifndef LAYOUT_TERM_H
#define LAYOUT_TERM_H

#include "base/alloc.h"
#include "base/error.h"
#include "tiki/layout.h"

/* Outcome of a condition on terms. */
typedef enum tk_proof { TK_REFUTED = 0, TK_PROVEN = 1, TK_OPEN = 2 } tk_proof;

#define TK_BASIS_BITS 6
#define TK_BASIS_MAX_DEPTH 5

static inline bool tk_term_is(tk_term term, int64_t value) {
    return term.kind == TK_TERM_STATIC && term.value == value && (!term.basis || !value);
}

static inline bool tk_term_same(tk_term a, tk_term b) {
    return a.value == b.value && a.basis == b.basis && a.kind == b.kind;
}

int64_t tk_gcd(int64_t a, int64_t b);

/* Exact, or TK_OVERFLOW. At most one factor has a basis; a sum needs equal bases or a zero. */
tk_status tk_term_mul_any(tk_term a, tk_term b, tk_term *out);
tk_status tk_term_add(tk_term a, tk_term b, tk_term *out);

/* Two plain numbers, the common case, without a call. */
static inline tk_status tk_term_mul(tk_term a, tk_term b, tk_term *out) {
    int64_t product;
    if ((a.kind | b.kind | a.basis | b.basis) == 0 &&
        !tk_mul_overflow_i64(a.value, b.value, &product) && product != INT64_MIN) {
        *out = tk_term_int(product);
        return TK_OK;
    }
    return tk_term_mul_any(a, b, out);
}

/* Quotient and remainder of numbers that are not negative; narrow ones divide several times faster.
 */
static inline int64_t tk_div_fast(int64_t a, int64_t b, int64_t *out_rest) {
    if (((uint64_t)a | (uint64_t)b) >> 32 == 0) {
        *out_rest = (int64_t)((uint32_t)a % (uint32_t)b);
        return (int64_t)((uint32_t)a / (uint32_t)b);
    }
    *out_rest = a % b;
    return a / b;
}

/* a / b, rounded up (away from 0); b is at least 1, and both are plain. */
tk_term tk_term_ceil_div(tk_term a, tk_term b);

/* a / b, rounded down, and the remainder, for a that is not negative. */
tk_term tk_term_div(tk_term a, tk_term b);
tk_term tk_term_mod(tk_term a, tk_term b);

/* Does a divide b? Is a < b? Extents and strides: dynamic terms are at least their divisor. */
tk_proof tk_term_divides(tk_term a, tk_term b);
tk_proof tk_term_less(tk_term a, tk_term b);

/* Adds `mode` below the path: the basis of the vector that names it inside `basis`'s mode.
 * TK_OVERFLOW past the depth or the range of tk_term. */
tk_status tk_basis_push(uint32_t basis, int mode, uint32_t *out);

/* Writes the term as layouts print it; returns the length it has in full. */
size_t tk_term_print(tk_term term, char *text, size_t capacity);

/* A term as text for messages. */
typedef struct tk_term_text {
    char text[64];
} tk_term_text;
tk_term_text tk_term_show(tk_term term);

#endif
