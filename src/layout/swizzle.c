/* Swizzles and composed layouts `inner o offset o outer`. */
#include "layout/swizzle.h"
#include "layout/coalesce.h"
#include "layout/term.h"

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

/* -- A layout after a swizzle --
 *
 * If A moves each bit of an index to a bit of its own, then A(x xor y) = A(x) xor A(y), and
 * A o S = S' o A where S' works on the bits that those of S go to. It is a swizzle if they stay
 * together. One leaf of a power of two is such an A; so are leaves of powers of two as far as no
 * two bits meet. */

/* Where A's digits put each bit; -1 where they do not keep it whole. */
static void follow_bits(const tk_layout *a, int *place) {
    tk_leaf digit[TK_LAYOUT_MAX_LEAVES];
    int count = tk_coalesce_leaves(a->leaf, a->leaf_count, true, digit), bit = 0;
    for (int i = 0; i < count; i++) {
        int width = i + 1 < count ? exact_log2(digit[i].shape.value) : 63;
        int start = exact_log2(digit[i].stride.value);
        if (width < 0) break;
        for (int j = 0; j < width && bit < 63; j++)
            place[bit++] = start < 0 || start + j > 62 ? -1 : start + j;
    }
    while (bit < 63) place[bit++] = -1;
}

/* Do the lowest bits go to places of their own? */
static bool stay_apart(const int *place, int bits) {
    uint64_t taken = 0;
    for (int i = 0; i < bits; i++) {
        if (place[i] < 0 || taken >> place[i] & 1) return false;
        taken |= (uint64_t)1 << place[i];
    }
    return true;
}

static bool stay_together(const int *place, int first, int bits) {
    for (int i = 1; i < bits; i++)
        if (place[first + i] != place[first] + i) return false;
    return true;
}

/* S' for indices below 2^width; false if it is no swizzle. */
static bool move_swizzle(const int *place, tk_swizzle s, int width, tk_swizzle *out) {
    int from = s.base + (s.shift > 0 ? s.shift : 0), to = s.base + (s.shift < 0 ? -s.shift : 0);
    if (to + s.bits > width) width = to + s.bits;
    if (from + s.bits > width) width = from + s.bits;
    if (width > 62 || !stay_apart(place, width)) return false;
    if (!stay_together(place, from, s.bits) || !stay_together(place, to, s.bits)) return false;
    int shift = place[from] - place[to];
    *out = (tk_swizzle){s.bits, place[shift > 0 ? to : from], shift};
    return tk_swizzle_check(*out) == TK_OK;
}

/* A(offset + B(c)) as A(offset) + R(c). */
static tk_status compose_apart(const tk_layout *a, const tk_composed *b, tk_tuple *out_offset,
                               tk_layout *out) {
    tk_layout both, pieces;
    tk_tuple second;
    TK_TRY(tk_tuple_from_ints((int64_t[]){0, 1}, 2, &second));
    tk_layout_clear(&both);
    tk_put_node(&both, 2);
    tk_put_part(&both, tk_part_of(&b->outer));
    tk_put_leaf(&both, tk_term_int(2), b->offset.leaf[0]);
    TK_TRY(tk_layout_finish(&both));
    TK_TRY(tk_layout_composition(a, &both, &pieces));
    TK_TRY(tk_layout_eval(&pieces, &second, out_offset));
    return tk_layout_mode(&pieces, 0, out);
}

/* The bits of the largest index that reaches the swizzle; 62 if it is not known. */
static int index_width(const tk_composed *b) {
    tk_term span;
    int64_t most;
    if (tk_layout_cosize(&b->outer, &span) != TK_OK || span.kind || b->offset.leaf[0].kind)
        return 62;
    if (tk_add_overflow_i64(span.value - 1, b->offset.leaf[0].value, &most)) return 62;
    int width = 0;
    while (width < 62 && most >> width) width++;
    return width;
}

tk_status tk_compose_before_swizzle(const tk_layout *a, const tk_composed *b, tk_composed *out) {
    int place[63], width = index_width(b);
    tk_swizzle s = b->swizzle, moved;
    int from = s.base + (s.shift > 0 ? s.shift : 0);
    tk_layout outer;
    tk_tuple offset;
    if (from >= width || s.bits == 0) {
        if (!tk_term_is(b->offset.leaf[0], 0))
            return tk_composed_make(a, &b->offset, &b->outer, out);
        TK_TRY(tk_layout_composition(a, &b->outer, &outer));
        tk_composed_from_layout(&outer, out);
        return TK_OK;
    }
    TK_TRY(compose_apart(a, b, &offset, &outer));
    follow_bits(a, place);
    bool found = tk_layout_is_plain(a) && move_swizzle(place, s, width, &moved);
    if (!found && tk_layout_is_plain(a) && from + s.bits > width) {
        s.bits = width - from; /* the bits above are never set */
        found = move_swizzle(place, s, width, &moved);
    }
    if (!found)
        return tk_fail(TK_UNSUPPORTED,
                       "a layout after S<%d,%d,%d>: it is a swizzle after a layout only where each "
                       "bit of an index goes to a bit of its own, and those of the swizzle stay "
                       "together",
                       (int)b->swizzle.bits, (int)b->swizzle.base, (int)b->swizzle.shift);
    return tk_composed_make_swizzled(moved, &offset, &outer, out);
}
