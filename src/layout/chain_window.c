/* See chain_window.h; left_inverse.c says what a chain of moduli is.
 *
 * A layout on offsets is R(u) = sum of c_Q floor(u / Q) over the moduli Q of its chain, 1 included.
 * Take a window of B successive offsets. Let P be the largest modulus of R that is at most B. Two
 * multiples of the next modulus are more than B apart, so at most one lies in the window, and in
 * one half of the window at least, R(u) - R(v) has no terms but those of P and its divisors: for
 * each half, one linear equation in the c_Q for two neighbouring offsets that the layout reaches
 * there. If both halves contradict themselves even with *all* divisors of P, no chain has P as the
 * largest modulus up to B. So a few equations refute all chains below one P at once; that is why
 * the window is not at 0 but in the middle, where the layout is as dense as anywhere: there B is
 * some dozens of times the mean gap between offsets, not a multiple of the strides.
 *
 * Where all divisors are too many unknowns for the offsets there are, or agree, the next modulus
 * below P is chosen, P divided by a prime (more moduli only help), then the next below it. A chain
 * that is left in the end is for the caller to extend beyond B.
 *
 * Equations are solved modulo a prime: what has no solution there has none in integers. The points
 * of the window are the middle one plus short combinations of a reduced basis of the steps
 * (relation.c): any points will do, more of them make the window shorter.
 *
 * Rejected: chains from below, modulus by modulus. Below the mean gap no two offsets share a
 * quotient, nothing contradicts, and there are about gap^1.7 chains. */
#include "layout/chain_window.h"

#include <stdlib.h>

#include "layout/lattice.h"

/* Points of half a window: many where that makes no long window. */
#define LEAST_HALF 12
#define MOST_HALF 40
#define EASY_BOUND ((int64_t)1 << 15)
/* How many are gathered to choose from. */
#define GATHERED 512
/* Windows: the first is asked of all chains, the others of what it leaves. */
#define VIEWS 8
/* Moduli that are looked at, and equations of one: a second. */
#define BOUND_LIMIT ((int64_t)1 << 18)
#define WORK_LIMIT ((int64_t)1 << 28)
#define MAX_DIVISORS 512
#define MAX_CHAIN 64

/* The prime 2^31 - 1, so that a remainder is a shift and a sum. */
#define PRIME ((uint64_t)0x7fffffff)

typedef struct point {
    int64_t step[TK_LAYOUT_MAX_LEAVES]; /* from the middle */
    int64_t offset, index;
} point;

/* A window: where it begins, and what the layout reaches in its halves. */
typedef struct view {
    int64_t first, length;
    uint32_t at[2][MOST_HALF];
    int64_t index[2][MOST_HALF];
} view;

typedef struct window {
    const tk_moving *leaf;
    int leaves;
    int half; /* points of a half */
    int64_t middle[TK_LAYOUT_MAX_LEAVES];
    int count;
    point point[GATHERED];
    int64_t bound; /* the length of the longest view */
    int views;
    view view[VIEWS];
    uint32_t *factor; /* the smallest prime factor of each modulus */
    int64_t work;
    tk_chain_visitor *visit;
    void *context;
} window;

/* -- The points -- */

/* `sign` times a row of the basis added to a point; false if that leaves the layout or the reach.
 */
static bool move_point(const window *w, const point *from, const int64_t *row, int sign,
                       int64_t reach, point *out) {
    out->offset = out->index = 0;
    for (int i = 0; i < w->leaves; i++) {
        int64_t step = from->step[i] + sign * row[i], middle = w->middle[i];
        if (step < -middle || step >= w->leaf[i].leaf.shape.value - middle) return false;
        out->step[i] = step;
        out->offset += (middle + step) * w->leaf[i].leaf.stride.value;
        out->index += (middle + step) * w->leaf[i].prefix;
    }
    int64_t distance = out->offset - w->point[0].offset;
    return distance <= reach && distance >= -reach;
}

static void add_new(window *w, const point *made) {
    for (int i = 0; i < w->count; i++)
        if (w->point[i].offset == made->offset) return;
    w->point[w->count++] = *made;
}

static void gather(window *w, const tk_relations *basis, int64_t reach) {
    static const int64_t none[TK_LAYOUT_MAX_LEAVES];
    w->count = 1;
    memset(&w->point[0], 0, sizeof w->point[0]);
    (void)move_point(w, &w->point[0], none, 1, INT64_MAX, &w->point[0]);
    for (int i = 0; i < w->count; i++)
        for (int j = 0; j < 2 * basis->count && w->count < GATHERED; j++) {
            point made;
            if (move_point(w, &w->point[i], basis->row[j / 2], j % 2 ? 1 : -1, reach, &made))
                add_new(w, &made);
        }
}

static int compare_points(const void *a, const void *b) {
    const point *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The shortest run of points for two halves. */
static void choose_run(window *w, view *out) {
    int best = 0, last = 2 * w->half - 1;
    qsort(w->point, (size_t)w->count, sizeof *w->point, compare_points);
    for (int i = 1; i + last < w->count; i++)
        if (w->point[i + last].offset - w->point[i].offset <
            w->point[best + last].offset - w->point[best].offset)
            best = i;
    out->first = w->point[best].offset;
    out->length = w->point[best + last].offset - out->first + 1;
    for (int i = 0; i <= last && out->length <= BOUND_LIMIT; i++) {
        out->at[i / w->half][i % w->half] = (uint32_t)(w->point[best + i].offset - out->first);
        out->index[i / w->half][i % w->half] = w->point[best + i].index;
    }
}

/* The mean distance of offsets. */
static long double gap_of(const window *w) {
    long double gap = 1;
    for (int i = 0; i < w->leaves; i++)
        gap += (long double)(w->leaf[i].leaf.shape.value - 1) *
               (long double)w->leaf[i].leaf.stride.value;
    for (int i = 0; i < w->leaves; i++) gap /= (long double)w->leaf[i].leaf.shape.value;
    return gap;
}

/* The middle of the layout first, then places around it. */
static void choose_middle(window *w, uint64_t *random) {
    for (int i = 0; i < w->leaves; i++) {
        int64_t extent = w->leaf[i].leaf.shape.value, free = w->views ? extent / 2 : 0;
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        w->middle[i] = (extent - 1 - free) / 2 + (int64_t)((*random >> 16) % (uint64_t)(free + 1));
    }
}

/* Windows around several places, none much longer than the first; the first has to have the points.
 */
static bool look(window *w, const tk_relations *basis, int64_t reach) {
    uint64_t random = 1;
    for (int tried = 0; tried < VIEWS; tried++) {
        view *here = &w->view[w->views];
        choose_middle(w, &random);
        gather(w, basis, reach);
        if (w->count >= 2 * w->half) {
            choose_run(w, here);
            if (tried && here->length > w->view[0].length + w->view[0].length / 4) continue;
            if (here->length > w->bound) w->bound = here->length;
            w->views++;
        }
        if (w->views == 0) return false;
    }
    return true;
}

/* Looks for the points in ever longer reach; false if they are too far apart. */
static bool find_points(window *w) {
    int64_t stride[TK_LAYOUT_MAX_LEAVES + 1], most[TK_LAYOUT_MAX_LEAVES + 1];
    long double gap = gap_of(w);
    tk_relations basis;
    if (gap * LEAST_HALF > BOUND_LIMIT) return false;
    w->half = (int)(EASY_BOUND / (2 * gap));
    if (w->half > MOST_HALF) w->half = MOST_HALF;
    if (w->half < LEAST_HALF) w->half = LEAST_HALF;
    for (int i = 0; i < w->leaves; i++) {
        stride[i] = w->leaf[i].leaf.stride.value;
        most[i] = w->leaf[i].leaf.shape.value / 2;
    }
    stride[w->leaves] = -1;
    for (int64_t reach = (int64_t)(gap * w->half) + w->half; reach <= 4 * BOUND_LIMIT; reach *= 2) {
        most[w->leaves] = reach;
        if (!tk_reduce_relations(stride, most, w->leaves + 1, &basis)) return false;
        if (look(w, &basis, reach)) return w->bound <= BOUND_LIMIT;
    }
    return false;
}

/* -- Equations -- */

static uint64_t fold(uint64_t x) {
    x = (x & PRIME) + (x >> 31);
    x = (x & PRIME) + (x >> 31);
    return x >= PRIME ? x - PRIME : x;
}

/* Floor of point / Q for each point of half a window, up to what all have in common. */
static void quotients(const view *v, int half, int points, int64_t modulus, uint32_t *out) {
    uint32_t rest = (uint32_t)(v->first % modulus);
    for (int i = 0; i < points; i++) out[i] = (rest + v->at[half][i]) / (uint32_t)modulus;
}

/* Have the equations of half a window a solution modulo the prime? */
static bool half_agrees(window *w, const view *v, int half, const int64_t *modulus, int count) {
    uint32_t quotient[MOST_HALF][MOST_HALF];
    uint64_t kept[MOST_HALF][MOST_HALF + 1];
    int pivot[MOST_HALF], rows = 0;
    for (int k = 0; k < count; k++) quotients(v, half, w->half, modulus[k], quotient[k]);
    for (int i = 1; i < w->half; i++) {
        uint64_t row[MOST_HALF + 1];
        int64_t value = (v->index[half][i] - v->index[half][i - 1]) % (int64_t)PRIME;
        for (int k = 0; k < count; k++) row[k] = quotient[k][i] - quotient[k][i - 1];
        row[count] = (uint64_t)(value < 0 ? value + (int64_t)PRIME : value);
        for (int r = 0; r < rows; r++) {
            uint64_t factor = PRIME - row[pivot[r]], scale = kept[r][pivot[r]];
            if (factor == PRIME) continue;
            for (int k = 0; k <= count; k++) row[k] = fold(row[k] * scale + factor * kept[r][k]);
        }
        w->work += (int64_t)(rows + 1) * count;
        int first = 0;
        while (first < count && row[first] == 0) first++;
        if (first == count && row[count]) return false;
        if (first == count) continue;
        memcpy(kept[rows], row, (size_t)(count + 1) * sizeof *row);
        pivot[rows++] = first;
    }
    return true;
}

/* In integers, for the few chains that get so far. */
static bool half_agrees_exactly(const window *w, const view *v, int half, const int64_t *modulus,
                                int count) {
    uint32_t quotient[MAX_CHAIN][MOST_HALF];
    tk_lattice strides;
    tk_lattice_clear(&strides);
    for (int k = 0; k < count; k++) {
        tk_lattice_extend(&strides);
        quotients(v, half, w->half, modulus[k], quotient[k]);
    }
    for (int i = 1; i < w->half; i++) {
        int64_t row[TK_LATTICE_MAX];
        for (int k = 0; k < count; k++) row[k] = (int64_t)quotient[k][i] - quotient[k][i - 1];
        if (!tk_lattice_require(&strides, row, v->index[half][i] - v->index[half][i - 1]))
            return false;
    }
    return true;
}

static bool agrees(window *w, const view *v, const int64_t *modulus, int count) {
    return count >= w->half - 1 || half_agrees(w, v, 0, modulus, count) ||
           half_agrees(w, v, 1, modulus, count);
}

/* -- Chains -- */

/* All divisors of n, 1 first; as many as there is room for. */
static int divisors_of(const window *w, int64_t n, int64_t *out) {
    int count = 1;
    out[0] = 1;
    while (n > 1) {
        int64_t prime = w->factor[n], power = 1;
        int before = count;
        for (; n % prime == 0; n /= prime) {
            power *= prime;
            for (int i = 0; i < before && count < MAX_DIVISORS; i++) out[count++] = out[i] * power;
        }
    }
    return count;
}

static bool visit_chain(window *w, const int64_t *above, int count) {
    int64_t modulus[MAX_CHAIN];
    for (int i = 0; i < count; i++) modulus[i] = above[count - 1 - i];
    w->work += (int64_t)w->views * w->half * count * count;
    for (int i = 1; i < w->views; i++)
        if (!agrees(w, &w->view[i], modulus, count)) return true;
    for (int i = 0; i < w->views; i++)
        if (!half_agrees_exactly(w, &w->view[i], 0, modulus, count) &&
            !half_agrees_exactly(w, &w->view[i], 1, modulus, count))
            return true;
    return w->visit(w->context, modulus, count);
}

/* All chains whose largest moduli are `above`, largest first, and that may have any divisors of the
 * last of them below. */
static tk_proof walk_down(window *w, int64_t *above, int count) {
    int64_t modulus[MAX_DIVISORS + MAX_CHAIN], last = above[count - 1];
    int all = divisors_of(w, last, modulus);
    for (int i = 0; i + 1 < count; i++) modulus[all++] = above[i];
    w->work += all;
    if (w->work > WORK_LIMIT) return TK_OPEN;
    if (!agrees(w, &w->view[0], modulus, all)) return TK_PROVEN;
    if (last == 1) return visit_chain(w, above, count) ? TK_PROVEN : TK_REFUTED;
    for (int64_t rest = last; rest > 1;) {
        int64_t prime = w->factor[rest];
        above[count] = last / prime;
        tk_proof proof = walk_down(w, above, count + 1);
        if (proof != TK_PROVEN) return proof;
        while (rest % prime == 0) rest /= prime;
    }
    return TK_PROVEN;
}

static bool sieve(window *w) {
    w->factor = tk_calloc((size_t)w->bound + 1, sizeof *w->factor);
    if (!w->factor) return false;
    for (int64_t n = 2; n <= w->bound; n++) {
        if (w->factor[n]) continue;
        for (int64_t m = n; m <= w->bound; m += n)
            if (!w->factor[m]) w->factor[m] = (uint32_t)n;
    }
    return true;
}

static void offsets_of(const window *w, tk_offsets *out) {
    int64_t first = w->view[0].first, last = first;
    for (int i = 0; i < w->views; i++) {
        if (w->view[i].first < first) first = w->view[i].first;
        if (w->view[i].first + w->view[i].length > last)
            last = w->view[i].first + w->view[i].length;
    }
    *out = (tk_offsets){first, last - 1, w->bound};
}

static tk_proof visit_all(window *w, tk_offsets *out) {
    int64_t above[MAX_CHAIN];
    if (!find_points(w) || !sieve(w)) return TK_OPEN;
    offsets_of(w, out);
    for (int64_t top = 1; top <= w->bound; top++) {
        above[0] = top;
        tk_proof proof = walk_down(w, above, 1);
        if (proof != TK_PROVEN) return proof;
    }
    return TK_PROVEN;
}

tk_proof tk_visit_chains(const tk_moving *leaf, int count, tk_chain_visitor *visit, void *context,
                         tk_offsets *out) {
    window *w = tk_calloc(1, sizeof *w);
    if (!w) return TK_OPEN;
    w->leaf = leaf;
    w->leaves = count;
    w->visit = visit;
    w->context = context;
    tk_proof proof = visit_all(w, out);
    tk_free(w->factor);
    tk_free(w);
    return proof;
}
