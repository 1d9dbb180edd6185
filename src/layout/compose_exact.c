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
 * carry-free form is still right where it exists. Otherwise let C_k be the carry into digit k at a
 * steps of the pieces w: the pieces are exact if sum_k e_k C_k = 0 for all a.
 *   - C_k = 0 where sum (n-1) (w mod P_k) < P_k.
 *   - For the others let P_j be the last such P_j below P_k, and q = (w / P_j) mod (P_k / P_j).
 * Then C_k = floor(sum a q / (P_k / P_j)): it depends on the pieces with q > 0 only, and pieces
 * that share no C_k are compared apart.
 *   - After T = M / gcd(q, M) steps, M = P_k / P_j, C_k starts again, higher by a constant. So what
 *     holds for 0 to T steps (the least common multiple over k) holds for any number.
 * A few thousand points are compared; above that compose_wind.c decides, and how far the steps of
 * one leaf are equal is decided by compose_first.c whatever the numbers are. */
#include <stdio.h>

#include "layout/compose.h"
#include "layout/compose_wind.h"
#include "layout/term.h"

/* Points that are compared one by one, and those that are tried for a difference where there are
 * more. */
#define ENUMERATE_LIMIT ((int64_t)1 << 11)
#define SAMPLES 512

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

static tk_status put_piece(problem *p, int leaf, int64_t t, tk_term stride) {
    tk_pieces *pieces = p->pieces;
    TK_TRY(tk_pieces_merge(pieces, pieces->first[leaf], tk_term_int(t), stride));
    pieces->count[leaf] = (uint8_t)(pieces->total - pieces->first[leaf]);
    return TK_OK;
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

/* -- Comparing points -- */

/* How A changes along each of its bases. */
typedef struct values {
    int count;
    uint32_t basis[TK_LAYOUT_MAX_LEAVES];
    int64_t at[TK_LAYOUT_MAX_LEAVES];
} values;

static tk_status values_at(const problem *p, int64_t u, values *out) {
    int last = p->digits->count - 1;
    out->count = 0;
    for (int i = 0; i <= last; i++) {
        tk_term stride = p->digits->leaf[i].stride;
        int64_t extent = p->digits->leaf[i].shape.value, digit = i == last ? u : u % extent,
                product;
        int at = 0;
        u /= extent;
        while (at < out->count && out->basis[at] != stride.basis) at++;
        if (at == out->count) {
            out->basis[at] = stride.basis;
            out->at[out->count++] = 0;
        }
        if (tk_mul_overflow_i64(digit, stride.value, &product) ||
            tk_add_overflow_i64(out->at[at], product, &out->at[at]))
            return tk_fail(TK_OVERFLOW, "an offset of A(B) leaves the range of 64 bits");
    }
    return TK_OK;
}

/* The values as one stride; false if they move along two bases. */
static bool as_stride(const values *v, tk_term *out) {
    *out = tk_term_int(0);
    for (int i = 0; i < v->count; i++) {
        if (v->at[i] == 0) continue;
        if (out->value) return false;
        *out = (tk_term){v->at[i], v->basis[i], TK_TERM_STATIC};
    }
    return true;
}

/* The digits of A that carry in a box of steps: the carry is floor(sum of steps * q / modulus) with
 * q = w / unit mod modulus. */
typedef struct carries {
    int count;
    int64_t unit[TK_LAYOUT_MAX_LEAVES], modulus[TK_LAYOUT_MAX_LEAVES];
} carries;

/* The carries of extent[i] - 1 steps of w[i]. */
static void find_carries(const problem *p, const int64_t *w, const int64_t *extent, int count,
                         carries *out) {
    int64_t unit = 1;
    out->count = 0;
    for (int k = 1; k < p->digits->count; k++) {
        __int128_t reach = 0;
        for (int i = 0; i < count; i++)
            reach += (__int128_t)(extent[i] - 1) * (w[i] % p->product[k]);
        if (reach < p->product[k]) {
            unit = p->product[k];
            continue;
        }
        out->unit[out->count] = unit;
        out->modulus[out->count++] = p->product[k] / unit;
    }
}

static int64_t carry_weight(const carries *c, int k, int64_t w) {
    return w / c->unit[k] % c->modulus[k];
}

/* Steps of w, at most `extent`, after which all its carries start again. */
static int64_t period_of(const carries *c, int64_t w, int64_t extent) {
    int64_t period = 1;
    for (int k = 0; k < c->count; k++) {
        int64_t q = carry_weight(c, k, w), own = c->modulus[k] / tk_gcd(q, c->modulus[k]);
        if (tk_mul_overflow_i64(period, own / tk_gcd(period, own), &period) || period > extent)
            return extent;
    }
    return period;
}

/* A moves this far along each basis when digit k carries. */
static void load_change(const tk_digits *digits, int k, __int128_t *change, uint32_t *basis,
                        int *bases) {
    tk_leaf before = digits->leaf[k - 1], here = digits->leaf[k];
    __int128_t amount[2] = {here.stride.value,
                            -(__int128_t)before.shape.value * before.stride.value};
    for (int i = 0; i < 2; i++) {
        int at = 0;
        uint32_t own = i ? before.stride.basis : here.stride.basis;
        if (amount[i] == 0) continue;
        while (at < *bases && basis[at] != own) at++;
        if (at == *bases) basis[(*bases)++] = own;
        change[at] += amount[i];
    }
}

/* The carries of extent[i] - 1 steps of w[i] that there are. */
static void load_winding(const problem *p, const int64_t *w, const int64_t *extent, int count,
                         tk_winding *out) {
    uint32_t basis[TK_LAYOUT_MAX_LEAVES + 1];
    out->carries = out->bases = 0;
    out->steps = count;
    for (int k = 1; k < p->digits->count; k++) {
        __int128_t reach = 0;
        for (int i = 0; i < count; i++) {
            out->weight[out->carries][i] = w[i] % p->product[k];
            reach += (__int128_t)(extent[i] - 1) * out->weight[out->carries][i];
        }
        if (reach < p->product[k]) continue;
        memset(out->change[out->carries], 0, sizeof out->change[0]);
        load_change(p->digits, k, out->change[out->carries], basis, &out->bases);
        out->modulus[out->carries++] = p->product[k];
    }
}

/* The most equal steps of w, of at most `rest`. */
static int64_t count_even(const problem *p, int64_t w, int64_t rest) {
    tk_winding winding;
    load_winding(p, &w, &rest, 1, &winding);
    return tk_winding_first(&winding, rest);
}

static tk_status refuse_turn(const problem *p, int leaf, int64_t w) {
    int64_t digit[TK_LAYOUT_MAX_LEAVES] = {0};
    digit[leaf] = w / p->s[leaf];
    return refuse(p, digit, 0, "a step of B moves along two modes of A's coordinates");
}

static tk_status scan_leaf(problem *p, int i) {
    int64_t w = p->s[i], rest = p->n[i];
    p->pieces->first[p->index[i]] = (uint8_t)p->pieces->total;
    while (rest > 1) {
        values step;
        tk_term stride;
        TK_TRY(values_at(p, w, &step));
        if (!as_stride(&step, &stride)) return refuse_turn(p, i, w);
        int64_t t = count_even(p, w, rest);
        if (rest % t) return refuse_break(p, i, w, t, rest);
        TK_TRY(put_piece(p, p->index[i], t, stride));
        rest /= t;
        if (rest > 1) w *= t;
    }
    return TK_OK;
}

/* The pieces as steps of their own. */
typedef struct walk {
    int count;
    int owner[TK_LAYOUT_MAX_LEAVES];    /* which leaf in question */
    int64_t step[TK_LAYOUT_MAX_LEAVES]; /* steps of that leaf */
    int64_t w[TK_LAYOUT_MAX_LEAVES];
    int64_t extent[TK_LAYOUT_MAX_LEAVES]; /* as many as have to be compared */
    int group[TK_LAYOUT_MAX_LEAVES];      /* the first of those it shares a carry with */
} walk;

/* All pieces with a weight in this carry belong together. */
static void join_groups(const carries *c, int k, walk *w) {
    int first = -1;
    for (int i = 0; i < w->count; i++) {
        if (carry_weight(c, k, w->w[i]) == 0) continue;
        if (first < 0) first = w->group[i];
        int from = w->group[i] > first ? w->group[i] : first;
        int to = w->group[i] > first ? first : w->group[i];
        for (int j = 0; j < w->count; j++)
            if (w->group[j] == from) w->group[j] = to;
        first = to;
    }
}

static void load_walk(const problem *p, walk *out) {
    carries all;
    out->count = 0;
    for (int i = 0; i < p->leaves; i++) {
        int first = p->pieces->first[p->index[i]];
        int64_t step = 1;
        for (int j = first; j < first + p->pieces->count[p->index[i]]; j++) {
            out->owner[out->count] = i;
            out->step[out->count] = step;
            out->w[out->count] = step * p->s[i];
            out->group[out->count] = out->count;
            out->extent[out->count] = p->pieces->leaf[j].shape.value;
            step *= out->extent[out->count++];
        }
    }
    find_carries(p, out->w, out->extent, out->count, &all);
    for (int i = 0; i < out->count; i++) {
        int64_t period = period_of(&all, out->w[i], out->extent[i]);
        if (period < out->extent[i]) out->extent[i] = period + 1;
    }
    for (int k = 0; k < all.count; k++) join_groups(&all, k, out);
}

/* Does the layout of the pieces give A's value at these digits of the leaves? */
static tk_status compare_at(const problem *p, const int64_t *digit) {
    values reached, made;
    TK_TRY(values_at(p, index_of(p, digit), &reached));
    made = reached;
    memset(made.at, 0, (size_t)made.count * sizeof *made.at);
    for (int i = 0; i < p->leaves; i++) {
        int leaf = p->index[i], first = p->pieces->first[leaf];
        int64_t rest = digit[i];
        for (int j = first; j < first + p->pieces->count[leaf]; j++) {
            tk_leaf piece = p->pieces->leaf[j];
            uint64_t steps = (uint64_t)(rest % piece.shape.value);
            rest /= piece.shape.value;
            for (int k = 0; k < made.count; k++)
                if (made.basis[k] == piece.stride.basis || piece.stride.value == 0)
                    made.at[k] =
                        (int64_t)((uint64_t)made.at[k] + steps * (uint64_t)piece.stride.value);
        }
    }
    bool same = !memcmp(made.at, reached.at, (size_t)made.count * sizeof *made.at);
    return same ? TK_OK : refuse_carry(p, digit);
}

static tk_status compare_everywhere(const problem *p, const walk *w, int group) {
    int64_t digit[TK_LAYOUT_MAX_LEAVES] = {0}, place[TK_LAYOUT_MAX_LEAVES] = {0};
    for (int moved = 0; moved < w->count;) {
        TK_TRY(compare_at(p, digit));
        for (moved = 0; moved < w->count; moved++) {
            if (w->group[moved] != group) continue;
            digit[w->owner[moved]] += w->step[moved];
            if (++place[moved] < w->extent[moved]) break;
            digit[w->owner[moved]] -= place[moved] * w->step[moved];
            place[moved] = 0;
        }
    }
    return TK_OK;
}

/* The corners and some points between, in search of a difference. */
static tk_status compare_some(const problem *p, const walk *w, int group) {
    uint64_t random = 1;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t digit[TK_LAYOUT_MAX_LEAVES] = {0};
        for (int j = 0; j < w->count; j++) {
            if (w->group[j] != group) continue;
            uint64_t extent = (uint64_t)w->extent[j];
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint64_t x = (random >> 16) % extent;
            if (i == 0 || random >> 62 == 0) x = extent - 1;
            if (i > 0 && random >> 62 == 1) x %= 4;
            digit[w->owner[j]] += (int64_t)x * w->step[j];
        }
        TK_TRY(compare_at(p, digit));
    }
    return TK_OK;
}

/* All points, by what carries do in boxes of them. */
static tk_status compare_boxes(const problem *p, const walk *w, int group) {
    int64_t step[TK_LAYOUT_MAX_LEAVES], extent[TK_LAYOUT_MAX_LEAVES], at[TK_LAYOUT_MAX_LEAVES];
    int64_t digit[TK_LAYOUT_MAX_LEAVES] = {0};
    int member[TK_LAYOUT_MAX_LEAVES], count = 0;
    tk_winding winding;
    for (int j = 0; j < w->count; j++) {
        if (w->group[j] != group) continue;
        step[count] = w->w[j];
        extent[count] = w->extent[j];
        member[count++] = j;
    }
    load_winding(p, step, extent, count, &winding);
    tk_proof proof = tk_winding_cancels(&winding, extent, at);
    if (proof == TK_PROVEN) return TK_OK;
    if (proof == TK_OPEN)
        return tk_fail(TK_UNSUPPORTED,
                       "undecided: B crosses extents of A whose strides change both ways by %d "
                       "steps, and no difference was found in some millions of boxes",
                       count);
    for (int i = 0; i < count; i++) digit[w->owner[member[i]]] += at[i] * w->step[member[i]];
    return compare_at(p, digit);
}

static tk_status compare_group(const problem *p, const walk *w, int group) {
    int64_t points = 1;
    for (int i = 0; i < w->count; i++)
        if (w->group[i] == group &&
            (tk_mul_overflow_i64(points, w->extent[i], &points) || points > ENUMERATE_LIMIT)) {
            TK_TRY(compare_some(p, w, group));
            return compare_boxes(p, w, group);
        }
    return compare_everywhere(p, w, group);
}

/* A group that stays open is no reason not to look for a difference in the others. */
static tk_status compare_points(problem *p) {
    walk w;
    tk_status status = TK_OK;
    restart_pieces(p);
    for (int i = 0; i < p->leaves; i++) TK_TRY(scan_leaf(p, i));
    load_walk(p, &w);
    for (int i = 0; i < w.count; i++) {
        tk_status group = w.group[i] == i ? compare_group(p, &w, i) : TK_OK;
        if (group != TK_OK && group != TK_UNSUPPORTED) return group;
        if (group != TK_OK) status = group;
    }
    return status;
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
    if (!carries_show(&digits)) return compare_points(&p);
    if (stop.leaf >= 0) return refuse_break(&p, stop.leaf, stop.w, stop.t, stop.rest);
    int64_t digit[TK_LAYOUT_MAX_LEAVES];
    for (int i = 0; i < p.leaves; i++) digit[i] = p.n[i] - 1;
    return refuse_carry(&p, digit);
}
