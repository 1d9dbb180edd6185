/* See term.h. */
#include "layout/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t tk_gcd(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

static tk_status fail_overflow(const char *what, tk_term a, tk_term b) {
    return tk_fail(TK_OVERFLOW, "%s %s %s leaves the range of 64 bits", tk_term_show(a).text, what,
                   tk_term_show(b).text);
}

/* The larger width; a static factor keeps the width of the other. */
static uint32_t join_kind(tk_term a, tk_term b) { return a.kind > b.kind ? a.kind : b.kind; }

tk_status tk_term_mul_any(tk_term a, tk_term b, tk_term *out) {
    if (a.basis && b.basis)
        return tk_fail(TK_SHAPE_ERROR, "%s * %s: a product of two basis vectors",
                       tk_term_show(a).text, tk_term_show(b).text);
    out->basis = a.basis | b.basis;
    out->kind = join_kind(a, b);
    if (tk_term_is(a, 0) || tk_term_is(b, 0)) {
        *out = tk_term_int(0);
        return TK_OK;
    }
    if (!tk_mul_overflow_i64(a.value, b.value, &out->value) && out->value != INT64_MIN) {
        if (out->kind != TK_TERM_STATIC && out->value < 0) out->value = -out->value;
        return TK_OK;
    }
    if (out->kind == TK_TERM_STATIC) return fail_overflow("*", a, b);
    out->value = a.kind != TK_TERM_STATIC ? a.value : b.value;
    return TK_OK;
}

tk_status tk_term_add(tk_term a, tk_term b, tk_term *out) {
    if (tk_term_is(a, 0) || tk_term_is(b, 0)) {
        *out = tk_term_is(a, 0) ? b : a;
        return TK_OK;
    }
    if (a.basis != b.basis)
        return tk_fail(TK_SHAPE_ERROR, "%s + %s: different basis vectors", tk_term_show(a).text,
                       tk_term_show(b).text);
    out->basis = a.basis;
    out->kind = join_kind(a, b);
    if (out->kind != TK_TERM_STATIC) {
        out->value = tk_gcd(a.value, b.value);
        return TK_OK;
    }
    if (tk_add_overflow_i64(a.value, b.value, &out->value)) return fail_overflow("+", a, b);
    return TK_OK;
}

/* The divisor of a quotient that may be rounded: known only if b divides a's divisor. */
static tk_term dynamic_quotient(tk_term a, tk_term b) {
    bool exact = b.kind == TK_TERM_STATIC && a.kind != TK_TERM_STATIC && a.value % b.value == 0;
    return tk_term_dynamic((tk_term_kind)join_kind(a, b), exact ? a.value / b.value : 1);
}

tk_term tk_term_ceil_div(tk_term a, tk_term b) {
    if (tk_term_is(b, 1)) return a;
    if (a.kind != TK_TERM_STATIC || b.kind != TK_TERM_STATIC) return dynamic_quotient(a, b);
    int64_t rest, quotient = tk_div_fast(a.value, b.value, &rest);
    if (rest) quotient += a.value < 0 ? -1 : 1;
    return tk_term_int(quotient);
}

tk_term tk_term_div(tk_term a, tk_term b) {
    if (tk_term_is(b, 1)) return a;
    if (a.kind != TK_TERM_STATIC || b.kind != TK_TERM_STATIC) return dynamic_quotient(a, b);
    return tk_term_int(a.value / b.value);
}

tk_term tk_term_mod(tk_term a, tk_term b) {
    if (tk_term_is(b, 1)) return tk_term_int(0);
    if (a.kind == TK_TERM_STATIC && b.kind == TK_TERM_STATIC) return tk_term_int(a.value % b.value);
    if (tk_term_divides(b, a) == TK_PROVEN) return tk_term_int(0);
    return tk_term_dynamic((tk_term_kind)join_kind(a, b), tk_gcd(a.value, b.value));
}

tk_proof tk_term_divides(tk_term a, tk_term b) {
    if (tk_term_is(b, 0) || tk_term_is(a, 1) || tk_term_is(a, -1)) return TK_PROVEN;
    if (a.kind != TK_TERM_STATIC) return TK_OPEN;
    int64_t rest;
    (void)tk_div_fast(b.value, a.value, &rest);
    if (rest == 0) return TK_PROVEN;
    return b.kind == TK_TERM_STATIC ? TK_REFUTED : TK_OPEN;
}

tk_proof tk_term_less(tk_term a, tk_term b) {
    bool fixed_a = a.kind == TK_TERM_STATIC, fixed_b = b.kind == TK_TERM_STATIC;
    if (fixed_a && fixed_b) return a.value < b.value ? TK_PROVEN : TK_REFUTED;
    if (fixed_a) return a.value < b.value ? TK_PROVEN : TK_OPEN;
    if (fixed_b) return a.value >= b.value ? TK_REFUTED : TK_OPEN;
    return TK_OPEN;
}

tk_status tk_basis_push(uint32_t basis, int mode, uint32_t *out) {
    int depth = 0;
    while (basis >> (TK_BASIS_BITS * depth)) depth++;
    if (depth >= TK_BASIS_MAX_DEPTH || mode < 0 || mode > 62)
        return tk_fail(TK_OVERFLOW,
                       "mode %d at depth %d: basis vectors name modes 0 to 62 of at "
                       "most %d levels",
                       mode, depth + 1, TK_BASIS_MAX_DEPTH);
    *out = basis | (uint32_t)(mode + 1) << (TK_BASIS_BITS * depth);
    return TK_OK;
}

static int print_number(tk_term term, char *text, size_t capacity) {
    bool wide = term.kind == TK_TERM_I64, divided = term.value > 1;
    if (term.kind == TK_TERM_STATIC) return snprintf(text, capacity, "%" PRId64, term.value);
    if (term.kind == TK_TERM_ANY) return snprintf(text, capacity, "_");
    if (!divided) return snprintf(text, capacity, wide ? "?{i64}" : "?");
    return snprintf(text, capacity, wide ? "?{i64 div=%" PRId64 "}" : "?{div=%" PRId64 "}",
                    term.value);
}

size_t tk_term_print(tk_term term, char *text, size_t capacity) {
    char whole[64];
    int length = print_number(term, whole, sizeof whole);
    int depth = 0;
    while (term.basis >> (TK_BASIS_BITS * depth)) depth++;
    while (depth-- > 0) {
        int mode = (int)(term.basis >> (TK_BASIS_BITS * depth) & 63) - 1;
        length += snprintf(whole + length, sizeof whole - (size_t)length, "@%d", mode);
    }
    if (capacity) {
        size_t kept = (size_t)length < capacity ? (size_t)length : capacity - 1;
        memcpy(text, whole, kept);
        text[kept] = 0;
    }
    return (size_t)length;
}

tk_term_text tk_term_show(tk_term term) {
    tk_term_text shown;
    tk_term_print(term, shown.text, sizeof shown.text);
    return shown;
}
