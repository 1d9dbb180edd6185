/* The composition of static layouts where the leaf rule does not apply: decided, not guessed.
 *
 * Let P_k be the product of A's first k extents and e_k = d_k - a_{k-1} d_{k-1} what a carry into
 * digit k adds. Then A(u) = d_0 u + sum_k e_k floor(u / P_k), and e_k is not 0 because A is
 * coalesced. A function of one leaf of B is a layout if it breaks off after t equal steps, t
 * divides n, and so on with the rest; the coalesced form of a layout is unique, so the first break
 * is the only choice.
 *
 * If all e_k have one sign, equal steps mean exactly that nothing carries: t steps of w carry into
 * no digit k if (t-1) (w mod P_k) < P_k, and all pieces together are exact if the sum of these is
 * below P_k for each k. That is a decision in a handful of divisions. A failure is a refutation,
 * and the last coordinate of the leaves (all steps taken) shows it.
 *
 * If the signs are mixed, carries may cancel: (2,2,2):(1,5,7) at 0, 3, 6 gives 0, 6, 12. Then the
 * carry-free form is still right where it exists, and otherwise the points are enumerated, up to
 * 2^20. */
#include "layout/compose.h"
#include "layout/term.h"

#include <stdio.h>

#define ENUMERATE_LIMIT ((int64_t)1 << 20)

/* The leaves of B in question: n[i]:s[i], `index` in B. */
typedef struct problem {
    const tk_digits *digits;
    tk_part b;
    int leaves;
    int index[TK_LAYOUT_MAX_LEAVES];
    int64_t n[TK_LAYOUT_MAX_LEAVES];
    int64_t s[TK_LAYOUT_MAX_LEAVES];
    int64_t product[TK_LAYOUT_MAX_LEAVES]; /* P_k, k from 1 to digits->count - 1 */
    tk_pieces *pieces;
} problem;

/* A(u); the terms of several bases have no single stride. */
static tk_status value_at(const problem *p, int64_t u, tk_term *out) {
    int last = p->digits->count - 1;
    *out = tk_term_int(0);
    for (int i = 0; i <= last; i++) {
        const tk_leaf *leaf = &p->digits->leaf[i];
        int64_t digit = i == last ? u : u % leaf->shape.value;
        tk_term product;
        TK_TRY(tk_term_mul(tk_term_int(digit), leaf->stride, &product));
        TK_TRY(tk_term_add(*out, product, out));
        if (i < last) u /= leaf->shape.value;
    }
    return TK_OK;
}

/* -- Refusals -- */

/* The coordinate of B, in B's structure, whose leaves in question have these digits. */
static void show_coord(const problem *p, const int64_t *digit, char *text, size_t capacity) {
    tk_tuple coord;
    tk_tuple_clear(&coord);
    int leaf = 0, found = 0;
    const uint8_t *node = p->b.node;
    for (int open = 1; open > 0; node++) {
        open += tk_node_children(*node) - 1;
        if (*node != TK_NODE_LEAF) {
            tk_tuple_put_node(&coord, *node);
            continue;
        }
        bool ours = found < p->leaves && p->index[found] == leaf;
        tk_tuple_put_leaf(&coord, tk_term_int(ours ? digit[found++] : 0));
        leaf++;
    }
    tk_tuple_print(&coord, text, capacity);
}

static int64_t index_of(const problem *p, const int64_t *digit) {
    int64_t u = 0;
    for (int i = 0; i < p->leaves; i++) u += digit[i] * p->s[i];
    return u;
}

static tk_status refuse(const problem *p, const int64_t *digit, int64_t layout_value,
                        const char *condition) {
    char coord[256];
    tk_term value;
    show_coord(p, digit, coord, sizeof coord);
    int64_t u = index_of(p, digit);
    if (value_at(p, u, &value) != TK_OK || value.basis)
        return tk_fail(TK_SHAPE_ERROR,
                       "%s: no layout equals A(B(c)), for example at c = %s, where "
                       "B is %lld",
                       condition, coord, (long long)u);
    return tk_fail(
        TK_SHAPE_ERROR,
        "%s: no layout equals A(B(c)); at c = %s B is %lld and A(B) is %lld, but a layout "
        "would give %lld",
        condition, coord, (long long)u, (long long)value.value, (long long)layout_value);
}

/* The leaf breaks off after t steps of w, which do not divide what is left of it. */
static tk_status refuse_break(const problem *p, int leaf, int64_t w, int64_t t, int64_t rest) {
    int64_t digit[TK_LAYOUT_MAX_LEAVES] = {0};
    char condition[160];
    tk_term step = tk_term_int(0);
    digit[leaf] = t * (w / p->s[leaf]);
    if (value_at(p, w, &step) != TK_OK) step = tk_term_int(0);
    snprintf(condition, sizeof condition,
             "leaf %lld:%lld of B crosses an extent of A unevenly (it turns after %lld of %lld "
             "equal steps)",
             (long long)p->n[leaf], (long long)p->s[leaf], (long long)t, (long long)rest);
    return refuse(p, digit, (int64_t)((uint64_t)t * (uint64_t)step.value), condition);
}

/* The value that the pieces give at a coordinate. */
static int64_t piece_value(const problem *p, const int64_t *digit) {
    uint64_t total = 0;
    for (int i = 0; i < p->leaves; i++) {
        int leaf = p->index[i], first = p->pieces->first[leaf];
        int64_t rest = digit[i];
        for (int j = first; j < first + p->pieces->count[leaf]; j++) {
            int64_t extent = p->pieces->leaf[j].shape.value;
            total += (uint64_t)(rest % extent) * (uint64_t)p->pieces->leaf[j].stride.value;
            rest /= extent;
        }
    }
    return (int64_t)total;
}

static tk_status refuse_carry(const problem *p, const int64_t *digit) {
    return refuse(p, digit, piece_value(p, digit), "leaves of B carry into each other in A");
}

/* -- The carry-free form -- */

/* The most equal steps of w that carry nowhere, at most n. */
static int64_t free_steps(const problem *p, int64_t w, int64_t n) {
    for (int k = 1; k < p->digits->count; k++) {
        int64_t rest = w % p->product[k];
        if (rest == 0) continue;
        int64_t steps = (p->product[k] - 1) / rest + 1;
        if (steps < n) n = steps;
    }
    return n;
}

/* Adds what t steps of w reach below each P_k; false if a digit carries. */
static bool add_reach(const problem *p, int64_t w, int64_t t, int64_t *reach) {
    bool fits = true;
    for (int k = 1; k < p->digits->count; k++) {
        int64_t most;
        if (tk_mul_overflow_i64(t - 1, w % p->product[k], &most) ||
            tk_add_overflow_i64(reach[k], most, &reach[k]) || reach[k] >= p->product[k])
            fits = false;
    }
    return fits;
}

/* A piece, merged into the one before if it continues it. */
static tk_status put_piece(problem *p, int leaf, int64_t t, tk_term stride) {
    tk_pieces *pieces = p->pieces;
    int64_t next;
    if (pieces->count[leaf]) {
        tk_leaf *last = &pieces->leaf[pieces->total - 1];
        if (last->stride.basis == stride.basis && stride.kind == TK_TERM_STATIC &&
            last->stride.kind == TK_TERM_STATIC &&
            !tk_mul_overflow_i64(last->shape.value, last->stride.value, &next) &&
            next == stride.value) {
            last->shape.value *= t;
            return TK_OK;
        }
    }
    pieces->count[leaf]++;
    return tk_pieces_put(pieces, tk_term_int(t), stride);
}

static void restart_pieces(problem *p) {
    int first = TK_LAYOUT_MAX_LEAVES;
    for (int i = 0; i < p->leaves; i++) p->pieces->count[p->index[i]] = 0;
    first = p->pieces->first[p->index[0]];
    p->pieces->total = first;
}

/* Where the carry-free form ended. */
typedef struct obstacle {
    bool found;
    int leaf; /* -1: pieces carry into each other */
    int64_t w, t, rest;
} obstacle;

static tk_status split_free(problem *p, obstacle *out) {
    int64_t reach[TK_LAYOUT_MAX_LEAVES] = {0};
    out->found = false;
    restart_pieces(p);
    for (int i = 0; i < p->leaves; i++) {
        int64_t w = p->s[i], rest = p->n[i];
        p->pieces->first[p->index[i]] = (uint8_t)p->pieces->total;
        while (rest > 1) {
            tk_term stride;
            int64_t t = free_steps(p, w, rest);
            if (rest % t) {
                *out = (obstacle){true, i, w, t, rest};
                return TK_OK;
            }
            TK_TRY(value_at(p, w, &stride));
            TK_TRY(put_piece(p, p->index[i], t, stride));
            if (!add_reach(p, w, t, reach)) *out = (obstacle){true, -1, 0, 0, 0};
            rest /= t;
            if (rest > 1) w *= t;
        }
    }
    return TK_OK;
}

/* Is a carry always a difference? True if the e_k have one sign, or no two strides share a basis.
 */
static bool carries_show(const tk_digits *digits) {
    bool up = true, down = true, apart = true;
    for (int k = 1; k < digits->count; k++) {
        tk_term before = digits->leaf[k - 1].stride, here = digits->leaf[k].stride;
        __int128_t change =
            (__int128_t)here.value - (__int128_t)digits->leaf[k - 1].shape.value * before.value;
        up = up && change > 0 && here.basis == before.basis;
        down = down && change < 0 && here.basis == before.basis;
        for (int j = 0; j < k; j++)
            if (digits->leaf[j].stride.basis == here.basis) apart = false;
        if (here.value == 0) apart = false;
    }
    return up || down || apart;
}

/* -- Enumeration -- */

static tk_status scan_leaf(problem *p, int i) {
    int64_t w = p->s[i], rest = p->n[i];
    p->pieces->first[p->index[i]] = (uint8_t)p->pieces->total;
    while (rest > 1) {
        tk_term step, value;
        int64_t t = 1;
        TK_TRY(value_at(p, w, &step));
        do {
            if (++t == rest) break;
            TK_TRY(value_at(p, t * w, &value));
        } while (value.value == (int64_t)((uint64_t)t * (uint64_t)step.value));
        if (rest % t) return refuse_break(p, i, w, t, rest);
        TK_TRY(put_piece(p, p->index[i], t, step));
        rest /= t;
        if (rest > 1) w *= t;
    }
    return TK_OK;
}

static tk_status compare_everywhere(const problem *p) {
    int64_t digit[TK_LAYOUT_MAX_LEAVES] = {0};
    for (int moved = 0; moved < p->leaves;) {
        tk_term value;
        TK_TRY(value_at(p, index_of(p, digit), &value));
        if (value.value != piece_value(p, digit)) return refuse_carry(p, digit);
        for (moved = 0; moved < p->leaves; moved++) {
            if (++digit[moved] < p->n[moved]) break;
            digit[moved] = 0;
        }
    }
    return TK_OK;
}

static tk_status enumerate(problem *p) {
    restart_pieces(p);
    for (int i = 0; i < p->leaves; i++) TK_TRY(scan_leaf(p, i));
    return compare_everywhere(p);
}

static bool can_enumerate(const problem *p) {
    int64_t points = 1;
    for (int k = 0; k < p->digits->count; k++) {
        const tk_leaf *leaf = &p->digits->leaf[k];
        if (leaf->stride.basis || leaf->stride.kind != TK_TERM_STATIC) return false;
    }
    for (int i = 0; i < p->leaves; i++)
        if (tk_mul_overflow_i64(points, p->n[i], &points) || points > ENUMERATE_LIMIT) return false;
    return true;
}

/* -- Entry -- */

static void load_problem(const tk_digits *digits, tk_part b, uint32_t basis, tk_pieces *pieces,
                         problem *out) {
    out->digits = digits;
    out->b = b;
    out->pieces = pieces;
    out->leaves = 0;
    int leaves = tk_tree_leaves(b.node);
    for (int i = 0; i < leaves; i++) {
        if (!tk_leaf_moves(&b.leaf[i], basis)) continue;
        out->index[out->leaves] = i;
        out->n[out->leaves] = b.leaf[i].shape.value;
        out->s[out->leaves++] = b.leaf[i].stride.value;
    }
    int64_t product = 1;
    for (int k = 1; k < digits->count; k++) {
        product *= digits->leaf[k - 1].shape.value; /* below A's size, so below 2^63 */
        out->product[k] = product;
    }
}

static tk_status check_decidable(const tk_digits *digits, tk_part b, uint32_t basis) {
    int leaves = tk_tree_leaves(b.node);
    for (int i = 0; i < leaves; i++) {
        if (!tk_leaf_moves(&b.leaf[i], basis)) continue;
        if (b.leaf[i].shape.kind || b.leaf[i].stride.kind)
            return tk_fail(
                TK_UNSUPPORTED,
                "missing fact: the value of %s:%s in B, beside leaves that cross an extent "
                "of A unevenly",
                tk_term_show(b.leaf[i].shape).text, tk_term_show(b.leaf[i].stride).text);
        if (b.leaf[i].stride.value < 0)
            return tk_fail(TK_SHAPE_ERROR,
                           "stride %lld of leaf %d of B: at coordinate 1 of that leaf "
                           "B is before the first index of A",
                           (long long)b.leaf[i].stride.value, i);
    }
    for (int k = 0; k < digits->count; k++)
        if (digits->leaf[k].stride.kind != TK_TERM_STATIC)
            return tk_fail(TK_UNSUPPORTED,
                           "missing fact: the value of stride %s of A, of which B "
                           "crosses the extent unevenly",
                           tk_term_show(digits->leaf[k].stride).text);
    return TK_OK;
}

static tk_status fail_undecided(const problem *p, const obstacle *stop) {
    int64_t digit[TK_LAYOUT_MAX_LEAVES];
    tk_term value;
    for (int i = 0; i < p->leaves; i++) digit[i] = p->n[i] - 1;
    if (stop->leaf < 0 && value_at(p, index_of(p, digit), &value) == TK_OK &&
        value.value != piece_value(p, digit))
        return refuse_carry(p, digit);
    return tk_fail(TK_UNSUPPORTED,
                   "undecided: B crosses extents of A whose strides change both ways, and has more "
                   "than %lld points to try",
                   (long long)ENUMERATE_LIMIT);
}

/* A last leaf of unknown extent was left apart by coalesce; if it continues the one before it there
 * is no boundary between them, and the two are one unbounded digit. */
static void merge_tail(tk_digits *digits) {
    int last = digits->count - 1;
    tk_term before = digits->leaf[last - 1].stride, here = digits->leaf[last].stride;
    int64_t next;
    if (before.basis != here.basis ||
        tk_mul_overflow_i64(digits->leaf[last - 1].shape.value, before.value, &next) ||
        next != here.value)
        return;
    digits->count--;
}

tk_status tk_compose_exactly(const tk_digits *given, tk_part b, uint32_t basis, tk_pieces *pieces) {
    TK_TRY(check_decidable(given, b, basis));
    tk_digits digits = *given;
    problem p;
    obstacle stop;
    merge_tail(&digits);
    load_problem(&digits, b, basis, pieces, &p);
    TK_TRY(split_free(&p, &stop));
    if (!stop.found) return TK_OK;
    if (!carries_show(&digits))
        return can_enumerate(&p) ? enumerate(&p) : fail_undecided(&p, &stop);
    if (stop.leaf >= 0) return refuse_break(&p, stop.leaf, stop.w, stop.t, stop.rest);
    int64_t digit[TK_LAYOUT_MAX_LEAVES];
    for (int i = 0; i < p.leaves; i++) digit[i] = p.n[i] - 1;
    return refuse_carry(&p, digit);
}
