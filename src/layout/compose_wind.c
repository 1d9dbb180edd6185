/* Do carries that cancel cancel in a whole box of steps?
 *
 * Write X_k(a) = sum over j of a_j weight[k][j] and C_k = floor(X_k / P_k), P_k the moduli. The box
 * is taken apart until G is settled in each part. A part is a_j = base_j + times_j m_j, 0 <= m_j <
 * extent_j. There
 *
 *   X_k = x_k + sum m_j v_kj + (a sum of multiples of P_k),  0 <= x_k < P_k,  |v_kj| <= P_k / 2,
 *   G = g + sum m_j h_j + sum change[k] floor((x_k + sum m_j v_kj) / P_k),
 *
 * with g and h_j from the multiples. From here on X_k is x_k + sum m_j v_kj. A part is settled if
 *
 *   1. G is not 0 at a corner: found. Or
 *   2. all h_j are 0, and the C_k that are not constant (by the extremes of X_k) fall into classes
 *      whose members differ by constants, and whose changes sum to 0: then G is that of a corner.
 *
 * That C_k - C_l = s in a part (k < l, P_l = A P_k) follows from D = A X_k - X_l, which is linear.
 * X_k and X_l are equal modulo P_k, so:
 *
 *   - If C_k - C_l > s somewhere, then X_k = C_k P_k + r with 0 <= r < P_k and X_l < (C_k - s) P_l.
 *     X_l - r is a multiple of P_k, so X_l <= (C_k - s) P_l - P_k + r and
 *     D >= P_k + s P_l + (A - 1) r.
 *   - If C_k - C_l < s, then X_l >= (C_k + 1 - s) P_l; X_k = (C_k + 1) P_k - r with 1 <= r <= P_k,
 *     X_l + r is a multiple of P_k, so X_l >= (C_k + 1 - s) P_l + P_k - r and
 *     D <= s P_l - P_k - (A - 1) r.
 *
 * So the extremes of D mostly say that there is none. If they do not, they say how large r can be
 * at most: X_k is next to a multiple of P_k. Divisors that the v_kj share leave r few residues. Or
 * there is no short relation between the v_kj, P_k, x_k and 1, which lattice reduction decides
 * (relation.c). Or all points with such an r are looked at, if they are few (compose_meet.c).
 *
 * What is not settled is parted by the step that moves a carry most: by its residues modulo a q for
 * which q v_kj is close to a multiple of P_k (a convergent of v_kj / P_k), or else in halves. With
 * a weight of P_k / 3 + 1 the three residues go on by 3 each, and little is left to carry.
 *
 * Steps whose weights are multiples of those of another that reaches that far are one step, and one
 * step alone is decided by compose_first.c.
 *
 * A part of one point is settled, so the search ends, and a no is a proof. How many parts it takes
 * is another matter: A = (T, T + 2, 1):(1, T + 1, T T + 3 T + 1) changes by 1 and -1, and with
 * leaves 2:s_j (T + 1) of B, whose s_j sum to less than 2 T, C_1 = C_2 exactly if no choice of the
 * s_j has the sum T. So this is as hard as the subset sum problem, and no method is known whose
 * time does not grow exponentially with the number of steps in the worst case.
 *
 * Rejected: all points within a period of the carries (2^60 of them are possible), a dynamic
 * program over the digits (its states are the residues). */
#include <math.h>
#include <string.h>

#include "layout/compose_wind.h"
#include "layout/image.h"

/* Parts, and lattice reductions, before the search is given up: some seconds. */
#define PART_LIMIT (1 << 22)
#define RELATION_LIMIT (1 << 12)

/* What is compared from the middle: at least so many points, at most so many of them looked at; and
 * sums in all. */
#define MEET_LEAST 4096
#define MEET_HITS (1 << 20)
#define MEET_LIMIT (1 << 23)

/* The largest modulus that residues are taken of, and multiples of P_k that are looked at. */
#define RESIDUE_LIMIT 4096
#define MULTIPLES_LIMIT 16

typedef __int128_t wide;
typedef __uint128_t wide_bits;

typedef struct part {
    int64_t base[TK_LAYOUT_MAX_LEAVES], times[TK_LAYOUT_MAX_LEAVES], extent[TK_LAYOUT_MAX_LEAVES];
} part;

/* What is known of a part, in the notation above. */
typedef struct view {
    int64_t x[TK_LAYOUT_MAX_LEAVES];
    int64_t v[TK_LAYOUT_MAX_LEAVES][TK_LAYOUT_MAX_LEAVES];
    int64_t least[TK_LAYOUT_MAX_LEAVES], most[TK_LAYOUT_MAX_LEAVES]; /* of C_k */
    int class[TK_LAYOUT_MAX_LEAVES]; /* its first member; -1 for a constant */
} view;

typedef struct search {
    const tk_winding *w;
    int parts, relations, sums;
    int64_t *out;
    view view; /* of the part in work; its halves need it no more */
} search;

static int64_t floor_div(wide a, int64_t b) { return (int64_t)(a / b - (a % b < 0)); }

/* The residue of a modulo m that is nearest to 0. */
static int64_t nearest_residue(wide a, int64_t m) {
    int64_t rest = (int64_t)(a % m);
    if (rest < 0) rest += m;
    return rest > m / 2 ? rest - m : rest;
}

static void look(const tk_winding *w, const part *b, view *out) {
    for (int k = 0; k < w->carries; k++) {
        int64_t p = w->modulus[k], sum = 0;
        wide least, most;
        for (int j = 0; j < w->steps; j++) sum += b->base[j] * w->weight[k][j];
        out->x[k] = sum % p;
        least = most = out->x[k];
        for (int j = 0; j < w->steps; j++) {
            int64_t v = nearest_residue((wide)b->times[j] * w->weight[k][j], p);
            out->v[k][j] = v;
            if (v < 0) least += (wide)(b->extent[j] - 1) * v;
            if (v > 0) most += (wide)(b->extent[j] - 1) * v;
        }
        out->least[k] = floor_div(least, p);
        out->most[k] = floor_div(most, p);
    }
}

/* The point with these m_j; is G not 0 there? The true sum is below 2^127 (compose_exact.c), so it
 * may be formed modulo 2^128. */
static bool differs_at(search *s, const part *b, const int64_t *m) {
    const tk_winding *w = s->w;
    int64_t at[TK_LAYOUT_MAX_LEAVES], carry[TK_LAYOUT_MAX_LEAVES];
    for (int j = 0; j < w->steps; j++) at[j] = b->base[j] + b->times[j] * m[j];
    for (int k = 0; k < w->carries; k++) {
        int64_t sum = 0;
        for (int j = 0; j < w->steps; j++) sum += at[j] * w->weight[k][j];
        carry[k] = sum / w->modulus[k];
    }
    bool zero = true;
    for (int i = 0; i < w->bases; i++) {
        wide_bits sum = 0;
        for (int k = 0; k < w->carries; k++)
            sum += (wide_bits)w->change[k][i] * (wide_bits)carry[k];
        zero = zero && sum == 0;
    }
    if (!zero) memcpy(s->out, at, (size_t)w->steps * sizeof *at);
    return !zero;
}

/* Both ends, and one step of each: a first look, and the whole of it where no C_k moves. */
static bool differs_near(search *s, const part *b) {
    int64_t m[TK_LAYOUT_MAX_LEAVES] = {0};
    if (differs_at(s, b, m)) return true;
    for (int j = 0; j < s->w->steps; j++) {
        if (b->extent[j] == 1) continue;
        m[j] = 1;
        if (differs_at(s, b, m)) return true;
        m[j] = 0;
    }
    for (int j = 0; j < s->w->steps; j++) m[j] = b->extent[j] - 1;
    return differs_at(s, b, m);
}

/* -- Two carries with a constant difference -- */

/* X_k is nowhere r modulo P_k with -most <= r <= most. Shown for a larger set: a relation between
 * the v_kj, P_k, x_k and 1. */
static bool stays_clear(search *s, const part *b, int k, int64_t most) {
    const view *v = &s->view;
    int64_t stride[TK_RELATION_MAX], reach[TK_RELATION_MAX], found[TK_RELATION_MAX];
    int count = 0;
    if (s->relations >= RELATION_LIMIT) return false;
    for (int j = 0; j < s->w->steps; j++) {
        if (b->extent[j] == 1 || v->v[k][j] == 0) continue;
        if (count + 4 > TK_RELATION_MAX) return false;
        stride[count] = v->v[k][j];
        reach[count++] = b->extent[j] - 1;
    }
    stride[count] = s->w->modulus[k];
    reach[count++] = v->most[k] - v->least[k] + 1;
    if (v->x[k]) {
        stride[count] = v->x[k];
        reach[count++] = 1;
    }
    stride[count] = 1;
    reach[count++] = most;
    s->relations++;
    return tk_find_relation(stride, reach, count, found) == TK_REFUTED;
}

/* What the v_kj of steps that are left have in common. */
static int64_t common_divisor(const search *s, const part *b, int k) {
    int64_t divisor = 0;
    for (int j = 0; j < s->w->steps; j++)
        if (b->extent[j] > 1) divisor = tk_gcd(divisor, s->view.v[k][j]);
    return divisor > 0 ? divisor : 1;
}

/* The same by the sums of half the steps each: where points are many, and those next to a multiple
 * of P_k few. */
static bool meets_nowhere(search *s, const part *b, int k, int l, int64_t room) {
    const view *v = &s->view;
    tk_forms forms;
    long double points = 1;
    forms.steps = 0;
    forms.near_start = v->x[k];
    forms.far_start = v->x[l];
    for (int j = 0; j < s->w->steps; j++)
        tk_forms_add(&forms, b->extent[j], v->v[k][j], v->v[l][j]);
    for (int j = 0; j < forms.steps; j++) points *= (long double)forms.extent[j];
    forms.near_modulus = s->w->modulus[k];
    forms.far_modulus = s->w->modulus[l];
    long double hits = points * (long double)room / (long double)s->w->modulus[k];
    long double sums = 2 * sqrtl(points);
    if (points < MEET_LEAST || hits > MEET_HITS || sums > MEET_LIMIT - s->sums) return false;
    s->sums += (int)sums;
    return tk_forms_agree(&forms, room) == TK_PROVEN;
}

/* The least r at which C_k can pass C_l from above, and from below, by the residues of X_k modulo
 * the common divisor at the multiples of P_k where it can; INT64_MAX if it nowhere can. */
static void least_rests(const search *s, const part *b, int k, int l, int64_t *out_above,
                        int64_t *out_below) {
    const view *v = &s->view;
    int64_t p = s->w->modulus[k], divisor = common_divisor(s, b, k);
    int64_t lowest = v->least[l] < v->least[k] ? v->least[l] : v->least[k];
    *out_above = v->most[k] > v->least[l] ? 0 : INT64_MAX;
    *out_below = v->least[k] < v->most[l] ? 1 : INT64_MAX;
    if (divisor == 1 || v->most[k] - lowest > MULTIPLES_LIMIT) return;
    *out_above = *out_below = INT64_MAX;
    for (int64_t c = lowest; c <= v->most[k] + 1; c++) {
        int64_t rest = (int64_t)((v->x[k] - (wide)c * p) % divisor);
        if (rest < 0) rest += divisor;
        bool above = c >= v->least[k] && c > v->least[l] && c <= v->most[k];
        bool below = c > v->least[k] && c <= v->most[l];
        if (above && rest < *out_above) *out_above = rest;
        if (below && divisor - rest < *out_below) *out_below = divisor - rest;
    }
}

/* Is C_k - C_l what it is at the corner, where both are 0? */
static bool keeps_distance(search *s, const part *b, int k, int l) {
    const view *v = &s->view;
    int64_t p = s->w->modulus[k], a = s->w->modulus[l] / p, rest_above, rest_below;
    wide least = (wide)a * v->x[k] - v->x[l], most = least;
    for (int j = 0; j < s->w->steps; j++) {
        wide change = ((wide)a * v->v[k][j] - v->v[l][j]) * (b->extent[j] - 1);
        if (change > 0) most += change;
        if (change < 0) least += change;
    }
    least_rests(s, b, k, l, &rest_above, &rest_below);
    wide above = (most - p) / (a - 1) - (most < p), below = (-p - least) / (a - 1) - (-p < least);
    if (above < rest_above && below < rest_below) return true;
    wide room = above > below ? above : below;
    if (room >= p / 4) return false;
    int64_t most_rest = room > 1 ? (int64_t)room : 1;
    return stays_clear(s, b, k, most_rest) || meets_nowhere(s, b, k, l, most_rest);
}

static void sort_classes(search *s, const part *b) {
    view *v = &s->view;
    for (int k = 0; k < s->w->carries; k++) {
        v->class[k] = v->least[k] == v->most[k] ? -1 : k;
        for (int j = 0; j < k && v->class[k] == k; j++)
            if (v->class[j] == j && keeps_distance(s, b, j, k)) v->class[k] = j;
    }
}

/* Do the changes of the class cancel? */
static bool class_cancels(const tk_winding *w, const view *v, int class) {
    for (int i = 0; i < w->bases; i++) {
        wide sum = 0;
        for (int k = 0; k < w->carries; k++)
            if (v->class[k] == class) sum += w->change[k][i];
        if (sum) return false;
    }
    return true;
}

/* -- Parting -- */

/* How far `times` steps of j can move an unsettled carry, in units of its modulus. */
static long double motion(const search *s, const bool *open, int j, int64_t times) {
    long double most = 0;
    for (int k = 0; k < s->w->carries; k++) {
        int64_t p = s->w->modulus[k];
        long double moved = (long double)nearest_residue((wide)times * s->view.v[k][j], p);
        moved = (moved < 0 ? -moved : moved) / (long double)p;
        if (open[k] && moved > most) most = moved;
    }
    return most;
}

/* The step that moves an unsettled carry most, -1 if all are settled. */
static int find_step(const search *s, const part *b, bool *open) {
    int best = -1;
    long double most = 0;
    for (int k = 0; k < s->w->carries; k++)
        open[k] = s->view.class[k] >= 0 && !class_cancels(s->w, &s->view, s->view.class[k]);
    for (int j = 0; j < s->w->steps; j++) {
        long double moved = motion(s, open, j, 1) * (long double)(b->extent[j] - 1);
        if (moved <= most) continue;
        most = moved;
        best = j;
    }
    return best;
}

/* The first convergent of v_kj / P_k, over the unsettled k, whose multiples move little; 0 if
 * halves do as well. */
static int64_t find_residues(const search *s, const part *b, const bool *open, int j) {
    long double now = motion(s, open, j, 1);
    int64_t best = 0, limit = b->extent[j] - 1 < RESIDUE_LIMIT ? b->extent[j] - 1 : RESIDUE_LIMIT;
    for (int k = 0; k < s->w->carries; k++) {
        int64_t top = s->view.v[k][j], bottom = s->w->modulus[k], before = 0, q = 1;
        if (top < 0) top = -top;
        while (open[k] && top && q <= limit && (best == 0 || q < best)) {
            int64_t whole = bottom / top, rest = bottom % top, next;
            if (q > 1 && motion(s, open, j, q) * 4 <= now) best = q;
            if (tk_mul_overflow_i64(whole, q, &next)) break;
            next += before;
            before = q;
            q = next;
            bottom = top;
            top = rest;
        }
        if (open[k] && q > 1 && q <= limit && (best == 0 || q < best) &&
            motion(s, open, j, q) * 4 <= now)
            best = q;
    }
    return best;
}

static tk_proof settle(search *s, const part *b);

static tk_proof settle_residues(search *s, const part *b, int j, int64_t q) {
    tk_proof proof = TK_PROVEN;
    for (int64_t r = 0; r < q && proof == TK_PROVEN; r++) {
        part residue = *b;
        residue.base[j] += r * b->times[j];
        residue.times[j] *= q;
        residue.extent[j] = (b->extent[j] - r + q - 1) / q;
        proof = settle(s, &residue);
    }
    return proof;
}

static tk_proof settle_halves(search *s, const part *b, int j) {
    part half = *b;
    half.extent[j] /= 2;
    tk_proof proof = settle(s, &half);
    if (proof != TK_PROVEN) return proof;
    half.base[j] += half.extent[j] * b->times[j];
    half.extent[j] = b->extent[j] - half.extent[j];
    return settle(s, &half);
}

static tk_proof settle(search *s, const part *b) {
    bool open[TK_LAYOUT_MAX_LEAVES];
    if (differs_near(s, b)) return TK_REFUTED;
    if (++s->parts > PART_LIMIT) return TK_OPEN;
    look(s->w, b, &s->view);
    sort_classes(s, b);
    int step = find_step(s, b, open);
    if (step < 0) return TK_PROVEN;
    int64_t q = find_residues(s, b, open, step);
    return q ? settle_residues(s, b, step, q) : settle_halves(s, b, step);
}

/* -- Steps that are multiples of each other -- */

/* Is step j `times` step i, in all carries? */
static bool is_multiple(const tk_winding *w, int i, int j, int64_t *out_times) {
    *out_times = 0;
    for (int k = 0; k < w->carries; k++)
        if (w->weight[k][i]) *out_times = w->weight[k][j] / w->weight[k][i];
    for (int k = 0; k < w->carries; k++)
        if ((wide)w->weight[k][i] * *out_times != w->weight[k][j]) return false;
    return *out_times > 0;
}

/* How steps were joined: step j is times[j] of step into[j]. */
typedef struct joined {
    int order[TK_LAYOUT_MAX_LEAVES], count; /* in the order they were joined */
    int into[TK_LAYOUT_MAX_LEAVES];
    int64_t times[TK_LAYOUT_MAX_LEAVES], extent[TK_LAYOUT_MAX_LEAVES];
    bool gone[TK_LAYOUT_MAX_LEAVES];
} joined;

static bool join_one(const tk_winding *w, int i, int j, joined *out) {
    int64_t times;
    if (i == j || out->gone[i] || out->gone[j] || !is_multiple(w, i, j, &times)) return false;
    if (times > out->extent[i]) return false;
    out->into[j] = i;
    out->times[j] = times;
    out->order[out->count++] = j;
    out->gone[j] = true;
    out->extent[i] += times * (out->extent[j] - 1);
    return true;
}

static void join_steps(const tk_winding *w, const int64_t *extent, joined *out) {
    bool changed = true;
    memset(out, 0, sizeof *out);
    memcpy(out->extent, extent, (size_t)w->steps * sizeof *extent);
    while (changed) {
        changed = false;
        for (int i = 0; i < w->steps; i++)
            for (int j = 0; j < w->steps; j++) changed |= join_one(w, i, j, out);
    }
}

/* The winding of the steps that are left. */
static void drop_joined(const tk_winding *w, const joined *joined, tk_winding *out, int *index) {
    *out = *w;
    out->steps = 0;
    for (int j = 0; j < w->steps; j++) {
        if (joined->gone[j]) continue;
        for (int k = 0; k < w->carries; k++) out->weight[k][out->steps] = w->weight[k][j];
        index[out->steps++] = j;
    }
}

/* The digits of joined steps from those that are left: as many of the joined one as fit, the last
 * joined first. */
static void part_steps(const joined *joined, const int64_t *extent, int64_t *digit) {
    for (int i = joined->count - 1; i >= 0; i--) {
        int j = joined->order[i], into = joined->into[j];
        int64_t reach = extent[j] - 1, fit = digit[into] / joined->times[j];
        digit[j] = fit < reach ? fit : reach;
        digit[into] -= digit[j] * joined->times[j];
    }
}

tk_proof tk_winding_cancels(const tk_winding *winding, const int64_t *extent, int64_t *out) {
    tk_winding left;
    joined joined;
    int index[TK_LAYOUT_MAX_LEAVES];
    int64_t found[TK_LAYOUT_MAX_LEAVES] = {0};
    part all;
    search s;
    memset(&all, 0, sizeof all);
    s.w = &left;
    s.parts = s.relations = s.sums = 0;
    s.out = found;
    join_steps(winding, extent, &joined);
    drop_joined(winding, &joined, &left, index);
    for (int j = 0; j < left.steps; j++) {
        all.times[j] = 1;
        all.extent[j] = joined.extent[index[j]];
    }
    if (left.steps == 1) {
        found[0] = tk_winding_first(&left, all.extent[0]);
        if (found[0] == all.extent[0]) return TK_PROVEN;
    } else if (left.steps > 1) {
        tk_proof proof = settle(&s, &all);
        if (proof != TK_REFUTED) return proof;
    }
    memset(out, 0, (size_t)winding->steps * sizeof *out);
    for (int j = 0; j < left.steps; j++) out[index[j]] = found[j];
    part_steps(&joined, joined.extent, out);
    return TK_REFUTED;
}
