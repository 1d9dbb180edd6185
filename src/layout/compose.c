/* Composition by the leaf rule, with the condition under which the rule is exact.
 *
 * Write an index into A in A's digits (one for each coalesced leaf, the last unbounded). A leaf n:s
 * of B walks through the digits: steps that stay below a digit's extent use that digit, steps that
 * fill it exactly go on to the next. So each leaf becomes pieces, each piece t:w moving one digit.
 * The result is the sum of the pieces, and A(B(i)) is the sum of the digits times A's strides: the
 * two agree everywhere if no digit ever carries, and that is so exactly if, for each digit, the
 * pieces that move it stay below its extent together. This sum (`used`) is all that has to be kept.
 *
 * Rejected: checking each leaf alone, as CuTe does (wrong when leaves carry into each other, see
 * docs/adr/0011); checking by enumeration always (slow, and no proof for dynamic leaves). Where the
 * rule does not apply, compose_exact.c decides; compose_plain.c is the rule for plain numbers,
 * fast. */
#include "layout/compose.h"
#include "layout/coalesce.h"
#include "layout/term.h"

static void load_digits(tk_part a, int leaves, tk_digits *digits) {
    digits->count = tk_coalesce_leaves(a.leaf, leaves, true, digits->leaf);
    digits->taken = 0;
    if (digits->count == 0) {
        digits->leaf[0].shape = tk_term_int(1);
        digits->leaf[0].stride = tk_term_int(0);
        digits->count = 1;
    }
    digits->fixed = true;
    for (int i = 0; i < digits->count; i++) {
        digits->used[i] = 0;
        if (digits->leaf[i].shape.kind && i + 1 < digits->count) digits->fixed = false;
    }
}

/* Marks a piece t:weight of digit i; false if the digit could carry. */
static inline bool use_digit(tk_digits *digits, int i, int64_t t, int64_t weight) {
    int64_t reach;
    return !tk_mul_overflow_i64(t - 1, weight, &reach) &&
           !tk_add_overflow_i64(digits->used[i], reach, &digits->used[i]) &&
           digits->used[i] < digits->leaf[i].shape.value;
}

/* -- The rule: each condition is proven, refuted or open. -- */

static tk_status fail_fact(tk_proof proof, tk_term left, const char *relation, tk_term right,
                           const char *why) {
    if (proof == TK_REFUTED)
        return tk_fail(TK_SHAPE_ERROR, "%s %s %s does not hold: %s", tk_term_show(left).text,
                       relation, tk_term_show(right).text, why);
    return tk_fail(TK_UNSUPPORTED, "missing fact: %s %s %s (%s)", tk_term_show(left).text, relation,
                   tk_term_show(right).text, why);
}

static tk_status need(tk_proof proof, tk_term left, const char *relation, tk_term right,
                      const char *why) {
    return proof == TK_PROVEN ? TK_OK : fail_fact(proof, left, relation, right, why);
}

/* n:s stays below the extent: (n-1)*s < extent. */
static tk_proof stays_inside(tk_term n, tk_term s, tk_term extent) {
    int64_t reach;
    if (s.kind != TK_TERM_STATIC || n.kind != TK_TERM_STATIC) return TK_OPEN;
    if (tk_mul_overflow_i64(n.value - 1, s.value, &reach)) return TK_REFUTED;
    return tk_term_less(tk_term_int(reach), extent);
}

static tk_status claim_digit(tk_digits *digits, int i, tk_term t, tk_term weight) {
    tk_term extent = digits->leaf[i].shape;
    bool whole = t.kind != TK_TERM_STATIC || weight.kind != TK_TERM_STATIC;
    if (digits->taken >> i & 1 || (whole && digits->used[i]))
        return fail_fact(TK_OPEN, t, "and other leaves of B within", extent,
                         "they may carry into each other");
    digits->taken |= (uint64_t)whole << i;
    if (whole || use_digit(digits, i, t.value, weight.value)) return TK_OK;
    bool open = extent.kind != TK_TERM_STATIC;
    return fail_fact(open ? TK_OPEN : TK_REFUTED, tk_term_int(digits->used[i]), "<", extent,
                     "leaves of B would carry into each other");
}

/* How much of n:s the digit takes. */
static tk_status take_open(tk_term n, tk_term s, tk_term extent, tk_term *out) {
    if (stays_inside(n, s, extent) == TK_PROVEN) {
        *out = n;
        return TK_OK;
    }
    TK_TRY(need(tk_term_divides(s, extent), s, "divides", extent,
                "a stride of B must divide the extent of A it starts in"));
    tk_term fill = tk_term_ceil_div(extent, s);
    TK_TRY(need(tk_term_divides(fill, n), fill, "divides", n,
                "a leaf of B must fill the extent of A it leaves"));
    *out = fill;
    return TK_OK;
}

static tk_status split_open(tk_digits *digits, tk_term n, tk_term s, tk_pieces *pieces) {
    int last = digits->count - 1, first = pieces->total;
    tk_term stride, t;
    for (int i = 0; i < last && !tk_term_is(n, 1); i++) {
        tk_term extent = digits->leaf[i].shape;
        tk_proof below = tk_term_less(s, extent);
        if (below == TK_REFUTED || tk_term_divides(extent, s) == TK_PROVEN) {
            TK_TRY(need(tk_term_divides(extent, s), extent, "divides", s,
                        "a stride of B that passes an extent of A must be a multiple of it"));
            s = tk_term_ceil_div(s, extent);
            continue;
        }
        if (!tk_term_is(s, 1))
            TK_TRY(need(below, s, "<", extent, "does the leaf of B start inside this leaf of A?"));
        TK_TRY(take_open(n, s, extent, &t));
        TK_TRY(claim_digit(digits, i, t, s));
        TK_TRY(tk_term_mul(s, digits->leaf[i].stride, &stride));
        TK_TRY(tk_pieces_merge(pieces, first, t, stride));
        n = tk_term_same(n, t) ? tk_term_int(1) : tk_term_ceil_div(n, t);
        s = tk_term_int(1);
    }
    if (tk_term_is(n, 1)) return TK_OK;
    TK_TRY(tk_term_mul(s, digits->leaf[last].stride, &stride));
    return tk_pieces_merge(pieces, first, n, stride);
}

/* -- One group of leaves -- */

static tk_status fail_direction(const tk_leaf *leaf, int index) {
    return tk_fail(
        TK_SHAPE_ERROR,
        "stride %lld of leaf %d of B: at coordinate 1 of that leaf B is %lld, before the "
        "first index of A",
        (long long)leaf->stride.value, index, (long long)leaf->stride.value);
}

/* What is left of digit i from s on, all of it, as a piece; false if s is not known to divide it,
 * or other leaves reach as far. */
static bool cover_digit(tk_digits *digits, int i, int64_t s, int first, tk_pieces *pieces) {
    tk_leaf digit = digits->leaf[i];
    tk_term stride, n = tk_term_ceil_div(digit.shape, tk_term_int(s));
    bool last = i + 1 == digits->count;
    if (tk_term_divides(tk_term_int(s), digit.shape) != TK_PROVEN) return false;
    if (!last && (digits->used[i] >= s || digits->taken >> i & 1)) return false;
    digits->taken |= (uint64_t)1 << i;
    if (tk_term_is(n, 1)) return true;
    return tk_term_mul(tk_term_int(s), digit.stride, &stride) == TK_OK &&
           tk_pieces_merge(pieces, first, n, stride) == TK_OK;
}

/* A leaf of stride s that ends where A ends takes each digit to its end, so nothing has to be known
 * of its extent. False if that is not certain; then the rule speaks. */
static bool cover_rest(tk_digits *digits, int64_t s, tk_pieces *pieces) {
    uint64_t taken = digits->taken;
    int first = pieces->total, i = 0;
    for (; i < digits->count; i++) {
        tk_term extent = digits->leaf[i].shape;
        bool below =
            i + 1 < digits->count && extent.kind == TK_TERM_STATIC && s % extent.value == 0;
        if (!below && !cover_digit(digits, i, s, first, pieces)) break;
        s = below ? s / extent.value : 1;
    }
    if (i == digits->count && pieces->total == first)
        return tk_pieces_put(pieces, tk_term_int(1), tk_term_int(0)) == TK_OK;
    if (i == digits->count) return true;
    digits->taken = taken;
    pieces->total = first;
    return false;
}

static tk_status split_leaf(tk_digits *digits, const tk_leaf *leaf, int index, tk_pieces *pieces) {
    tk_term s = leaf->stride;
    s.basis = 0;
    if (index == pieces->covering && cover_rest(digits, s.value, pieces)) return TK_OK;
    if (digits->count == 1) {
        TK_TRY(tk_term_mul(s, digits->leaf[0].stride, &s));
        return tk_pieces_put(pieces, leaf->shape, s);
    }
    if (s.kind == TK_TERM_STATIC && s.value < 0) return fail_direction(leaf, index);
    return split_open(digits, leaf->shape, s, pieces);
}

static tk_status apply_rule(tk_digits *digits, tk_part b, int leaves, uint32_t basis,
                            tk_pieces *pieces) {
    for (int i = 0; i < leaves; i++) {
        if (!tk_leaf_moves(&b.leaf[i], basis)) continue;
        pieces->first[i] = (uint8_t)pieces->total;
        TK_TRY(split_leaf(digits, &b.leaf[i], i, pieces));
        pieces->count[i] = (uint8_t)(pieces->total - pieces->first[i]);
    }
    return TK_OK;
}

/* Digits that B does not leave are all that counts, if their extents are known: the last of them
 * may as well be unbounded. */
static bool keep_reached(tk_digits *digits, tk_part b, int leaves, uint32_t basis) {
    int64_t reach = 0, product = 1;
    for (int i = 0; i < leaves; i++) {
        int64_t most;
        if (!tk_leaf_moves(&b.leaf[i], basis)) continue;
        if (b.leaf[i].shape.kind || b.leaf[i].stride.kind || b.leaf[i].stride.value < 0 ||
            tk_mul_overflow_i64(b.leaf[i].shape.value - 1, b.leaf[i].stride.value, &most) ||
            tk_add_overflow_i64(reach, most, &reach))
            return false;
    }
    for (int k = 0; k < digits->count; k++) {
        tk_term extent = digits->leaf[k].shape;
        if (extent.kind || tk_mul_overflow_i64(product, extent.value, &product)) return false;
        if (reach >= product) continue;
        digits->count = k + 1;
        return true;
    }
    return false;
}

/* Unknown extents were left apart by coalesce; where one certainly continues the leaf before it
 * there is no boundary, and the two are one digit. False if there is no such place. */
static bool merge_continued(tk_digits *digits) {
    int kept = 0;
    for (int k = 1; k < digits->count; k++) {
        tk_leaf *last = &digits->leaf[kept], here = digits->leaf[k];
        tk_term end, both;
        if (tk_term_mul(last->shape, last->stride, &end) == TK_OK && end.kind == TK_TERM_STATIC &&
            tk_term_same(end, here.stride) && tk_term_mul(last->shape, here.shape, &both) == TK_OK)
            last->shape = both;
        else
            digits->leaf[++kept] = here;
    }
    bool merged = kept + 1 < digits->count;
    digits->count = kept + 1;
    return merged;
}

/* The rule was refuted between unknown extents: B may stay among the known ones, or the rule fits
 * what certainly is one digit. Otherwise other values of them could have an answer. */
static tk_status compose_unknown(tk_digits *digits, tk_part b, int leaves, uint32_t basis,
                                 tk_pieces *pieces) {
    int total = pieces->total;
    if (keep_reached(digits, b, leaves, basis)) return tk_compose_exactly(digits, b, basis, pieces);
    if (merge_continued(digits)) {
        memset(digits->used, 0, sizeof digits->used);
        digits->taken = 0;
        tk_status status = apply_rule(digits, b, leaves, basis, pieces);
        if (status != TK_SHAPE_ERROR) return status;
        pieces->total = total;
    }
    return tk_fail(TK_UNSUPPORTED,
                   "missing fact: the unknown extents of A, beside leaves of B that "
                   "do not divide what is known of them");
}

/* All leaves of B whose stride has this basis, against the part of A that it names. */
static tk_status compose_group(tk_part a, int a_leaves, tk_part b, int leaves, uint32_t basis,
                               tk_pieces *pieces) {
    tk_digits digits;
    int total = pieces->total;
    load_digits(a, a_leaves, &digits);
    tk_status status = apply_rule(&digits, b, leaves, basis, pieces);
    if (status != TK_SHAPE_ERROR || digits.count == 1) return status;
    pieces->total = total;
    return digits.fixed ? tk_compose_exactly(&digits, b, basis, pieces)
                        : compose_unknown(&digits, b, leaves, basis, pieces);
}

/* The mode of A that a basis vector of B names. */
static tk_status find_target(tk_part a, uint32_t basis, tk_part *out) {
    for (int depth = 0; basis >> (TK_BASIS_BITS * depth); depth++) {
        int mode = (int)(basis >> (TK_BASIS_BITS * depth) & 63) - 1;
        if (mode >= tk_part_rank(a))
            return tk_fail(TK_SHAPE_ERROR,
                           "a stride of B names mode %d at level %d: A has %d modes "
                           "there",
                           mode, depth, tk_part_rank(a));
        a = tk_part_mode(a, mode);
    }
    *out = a;
    return TK_OK;
}

/* Two bases of which one is the beginning of the other would add a number to a tuple. */
static tk_status check_bases(const tk_leaf *leaf, int leaves, uint32_t basis) {
    for (int i = 0; i < leaves; i++) {
        uint32_t other = leaf[i].stride.basis, longer = other > basis ? other : basis;
        uint32_t shorter = other > basis ? basis : other, mask = 0;
        if (other == basis || !tk_leaf_moves(&leaf[i], other)) continue;
        while (shorter & ~mask) mask = mask << TK_BASIS_BITS | 63;
        if ((longer & mask) == shorter)
            return tk_fail(TK_SHAPE_ERROR, "the strides of B mix a coordinate with the modes "
                                           "inside it");
    }
    return TK_OK;
}

/* B's tree with each leaf replaced by its pieces. */
static void put_pieces(tk_part b, const tk_pieces *pieces, tk_layout *out) {
    const uint8_t *node = b.node;
    int leaf = 0;
    for (int open = 1; open > 0; node++) {
        open += tk_node_children(*node) - 1;
        if (*node != TK_NODE_LEAF) {
            tk_put_node(out, *node);
            continue;
        }
        int first = pieces->first[leaf], count = pieces->count[leaf];
        if (count > 1) tk_put_node(out, (uint8_t)count);
        for (int i = first; i < first + count; i++)
            tk_put_leaf(out, pieces->leaf[i].shape, pieces->leaf[i].stride);
        leaf++;
    }
}

static tk_status compose_part(tk_part a, int a_leaves, tk_part b, int leaves, int covering,
                              tk_layout *out) {
    tk_pieces pieces;
    uint64_t waiting = 0;
    uint32_t bases = 0;
    pieces.total = 0;
    pieces.covering = covering;
    for (int i = 0; i < leaves; i++) {
        const tk_leaf *leaf = &b.leaf[i];
        bool moves = tk_leaf_moves(leaf, leaf->stride.basis);
        if (moves) {
            waiting |= (uint64_t)1 << i;
            bases |= leaf->stride.basis;
            continue;
        }
        pieces.first[i] = (uint8_t)pieces.total;
        pieces.count[i] = 1;
        TK_TRY(tk_pieces_put(&pieces, leaf->shape, tk_term_int(0)));
    }
    if (waiting && !bases) {
        TK_TRY(compose_group(a, a_leaves, b, leaves, 0, &pieces));
        waiting = 0;
    }
    for (int i = 0; waiting && i < leaves; i++) {
        if (!(waiting >> i & 1)) continue;
        uint32_t basis = b.leaf[i].stride.basis;
        tk_part target = a;
        if (basis) {
            TK_TRY(check_bases(b.leaf, leaves, basis));
            TK_TRY(find_target(a, basis, &target));
        }
        TK_TRY(compose_group(target, tk_tree_leaves(target.node), b, leaves, basis, &pieces));
        for (int j = i; j < leaves; j++)
            if (b.leaf[j].stride.basis == basis) waiting &= ~((uint64_t)1 << j);
    }
    put_pieces(b, &pieces, out);
    return TK_OK;
}

/* -- By mode -- */

static tk_status compose_mode(tk_part a, tk_part b, tk_layout *out) {
    if (*b.node == TK_NODE_ANY) {
        tk_put_part(out, a);
        return TK_OK;
    }
    if (!tk_node_is_list(*b.node))
        return compose_part(a, tk_tree_leaves(a.node), b, tk_tree_leaves(b.node), -1, out);
    int modes = tk_node_children(*b.node), rank = tk_part_rank(a);
    if (modes > rank)
        return tk_fail(TK_SHAPE_ERROR, "a tiler of %d modes for a layout of %d", modes, rank);
    tk_put_node(out, (uint8_t)modes);
    b = tk_part_first(b);
    for (int i = 0; i < modes; i++, b = tk_part_next(b)) {
        tk_status status = compose_mode(tk_part_mode(a, i), b, out);
        if (status != TK_OK) return tk_fail_within(status, "mode %d", i);
    }
    return TK_OK;
}

tk_status tk_layout_composition(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(a, "A"));
    TK_NEED(b);
    tk_layout_clear(out);
    tk_part left = tk_part_of(a), right = tk_part_of(b);
    if (tk_tiler_is_list(b)) {
        TK_TRY(compose_mode(left, right, out));
    } else if (!tk_compose_plain(a, b, out)) {
        tk_layout_clear(out);
        TK_TRY(compose_part(left, a->leaf_count, right, b->leaf_count, -1, out));
    }
    return tk_layout_finish(out);
}

tk_status tk_compose_covering(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    tk_layout_clear(out);
    TK_TRY(compose_part(tk_part_of(a), a->leaf_count, tk_part_of(b), b->leaf_count,
                        b->leaf_count - 1, out));
    return tk_layout_finish(out);
}
