/* Swizzles and composed layouts `inner o offset o outer`. */
#include "layout/term.h"
#include "layout/tree.h"

tk_status tk_swizzle_check(tk_swizzle s) {
    int distance = s.shift < 0 ? -s.shift : s.shift;
    bool small = s.bits >= 0 && s.base >= 0 && s.bits < 63 && s.base < 63 && distance < 63;
    if (small && distance >= s.bits && s.bits + s.base + distance < 63) return TK_OK;
    return tk_fail(
        TK_INVALID_ARGUMENT,
        "S<%d,%d,%d>: expected |shift| >= bits >= 0, base >= 0 and a sum of the three below "
        "63",
        (int)s.bits, (int)s.base, (int)s.shift);
}

static void zero_offset(tk_tuple *out) { tk_tuple_from_term(tk_term_int(0), out); }

void tk_composed_from_layout(const tk_layout *outer, tk_composed *out) {
    if (!outer || !out) return;
    out->inner = TK_INNER_NONE;
    out->swizzle = (tk_swizzle){0, 0, 0};
    tk_layout_clear(&out->layout);
    zero_offset(&out->offset);
    tk_layout_copy(outer, &out->outer);
}

static tk_status check_integer_strides(const tk_layout *outer) {
    for (int i = 0; i < outer->leaf_count; i++)
        if (outer->leaf[i].stride.basis)
            return tk_fail(TK_SHAPE_ERROR, "stride %s: a swizzle needs integer offsets",
                           tk_term_show(outer->leaf[i].stride).text);
    return TK_OK;
}

/* One number, not negative: what a swizzle can be applied to. */
static tk_status check_offset(const tk_tuple *offset) {
    tk_term term = offset->leaf[0];
    if (offset->node_count == 1 && !term.basis && term.kind != TK_TERM_ANY && term.value >= 0)
        return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "the offset before a swizzle is one number, not negative");
}

tk_status tk_composed_make_swizzled(tk_swizzle swizzle, const tk_tuple *offset,
                                    const tk_layout *outer, tk_composed *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(outer, "outer"));
    TK_TRY(tk_swizzle_check(swizzle));
    TK_TRY(check_integer_strides(outer));
    if (offset) TK_TRY(check_offset(offset));
    tk_composed_from_layout(outer, out);
    out->inner = TK_INNER_SWIZZLE;
    out->swizzle = swizzle;
    if (offset) tk_tuple_copy(offset, &out->offset);
    return TK_OK;
}

tk_status tk_composed_make(const tk_layout *inner, const tk_tuple *offset, const tk_layout *outer,
                           tk_composed *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(inner, "inner"));
    TK_TRY(tk_check_layout(outer, "outer"));
    for (int i = 0; offset && i < offset->leaf_count; i++)
        if (offset->leaf[i].kind == TK_TERM_ANY || offset->leaf[i].basis)
            return tk_fail(TK_SHAPE_ERROR, "the offset of a composed layout is made of numbers");
    tk_composed_from_layout(outer, out);
    out->inner = TK_INNER_LAYOUT;
    tk_layout_copy(inner, &out->layout);
    if (offset) tk_tuple_copy(offset, &out->offset);
    return TK_OK;
}

bool tk_composed_equal(const tk_composed *a, const tk_composed *b) {
    if (!a || !b) return a == b;
    if (a->inner != b->inner || !tk_layout_equal(&a->outer, &b->outer)) return false;
    if (a->inner == TK_INNER_NONE) return true;
    if (!tk_tuple_equal(&a->offset, &b->offset)) return false;
    if (a->inner == TK_INNER_LAYOUT) return tk_layout_equal(&a->layout, &b->layout);
    return a->swizzle.bits == b->swizzle.bits && a->swizzle.base == b->swizzle.base &&
           a->swizzle.shift == b->swizzle.shift;
}

/* offset + value; a 0 offset fits every structure. */
static tk_status add_offset(const tk_tuple *offset, const tk_tuple *value, tk_tuple *out) {
    if (offset->node_count == 1 && tk_term_is(offset->leaf[0], 0)) {
        tk_tuple_copy(value, out);
        return TK_OK;
    }
    return tk_tuple_add(offset, value, out);
}

static tk_status swizzle_term(tk_swizzle swizzle, tk_term term, tk_tuple *out) {
    if (term.kind != TK_TERM_STATIC) {
        int64_t kept = tk_gcd(term.value, (int64_t)1 << swizzle.base);
        tk_tuple_from_term(tk_term_dynamic((tk_term_kind)term.kind, kept), out);
        return TK_OK;
    }
    if (term.value < 0)
        return tk_fail(TK_INDEX_ERROR, "offset %lld before a swizzle: it must not be negative",
                       (long long)term.value);
    tk_tuple_from_term(tk_term_int(tk_swizzle_apply(swizzle, term.value)), out);
    return TK_OK;
}

tk_status tk_composed_eval(const tk_composed *composed, const tk_tuple *coord, tk_tuple *out) {
    TK_NEED(composed, out);
    tk_tuple value, sum;
    if (composed->inner == TK_INNER_NONE) return tk_layout_eval(&composed->outer, coord, out);
    TK_TRY(tk_layout_eval(&composed->outer, coord, &value));
    TK_TRY(add_offset(&composed->offset, &value, &sum));
    if (composed->inner == TK_INNER_LAYOUT) return tk_layout_eval(&composed->layout, &sum, out);
    return swizzle_term(composed->swizzle, sum.leaf[0], out);
}

tk_status tk_composed_slice(const tk_composed *composed, const tk_tuple *coord, tk_composed *out) {
    TK_NEED(composed, out);
    tk_tuple fixed;
    TK_TRY(tk_layout_eval(&composed->outer, coord, &fixed));
    *out = *composed;
    TK_TRY(add_offset(&composed->offset, &fixed, &out->offset));
    if (out->inner == TK_INNER_SWIZZLE) TK_TRY(check_offset(&out->offset));
    return tk_layout_slice(&composed->outer, coord, &out->outer);
}

/* log2 of a power of two, -1 for other numbers. */
static int exact_log2(int64_t value) {
    if (value < 1 || (value & (value - 1))) return -1;
    return __builtin_ctzll((unsigned long long)value);
}

static tk_status recast_offset(tk_tuple *offset, int64_t wider, int64_t narrower) {
    tk_term *term = &offset->leaf[0];
    if (tk_term_divides(tk_term_int(wider), *term) != TK_PROVEN)
        return tk_fail(TK_SHAPE_ERROR, "offset %s is not known to be a multiple of %lld elements",
                       tk_term_show(*term).text, (long long)wider);
    *term = tk_term_ceil_div(*term, tk_term_int(wider));
    return tk_term_mul(*term, tk_term_int(narrower), term);
}

tk_status tk_composed_recast(const tk_composed *composed, int64_t new_bits, int64_t old_bits,
                             tk_composed *out) {
    TK_NEED(composed, out);
    if (composed->inner == TK_INNER_LAYOUT)
        return tk_fail(TK_UNSUPPORTED, "recast of a layout composed with another: only with a "
                                       "swizzle");
    *out = *composed;
    TK_TRY(tk_layout_recast(&composed->outer, new_bits, old_bits, &out->outer));
    if (composed->inner == TK_INNER_NONE) return TK_OK;
    int64_t common = tk_gcd(new_bits, old_bits);
    int up = exact_log2(new_bits / common), down = exact_log2(old_bits / common);
    if (up < 0 || down < 0)
        return tk_fail(TK_SHAPE_ERROR,
                       "%lld to %lld bits: with a swizzle the ratio is a power of two",
                       (long long)old_bits, (long long)new_bits);
    if (out->swizzle.bits && out->swizzle.base < up)
        return tk_fail(TK_SHAPE_ERROR,
                       "S<%d,%d,%d> moves parts of an element of %lld bits: its base "
                       "must be at least %d",
                       (int)out->swizzle.bits, (int)out->swizzle.base, (int)out->swizzle.shift,
                       (long long)new_bits, up);
    out->swizzle.base += down - up;
    if (out->swizzle.base < 0) out->swizzle.base = 0;
    TK_TRY(tk_swizzle_check(out->swizzle));
    return recast_offset(&out->offset, new_bits / common, old_bits / common);
}
