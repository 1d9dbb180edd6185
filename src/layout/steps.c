/* Which steps of given strides add up to a given offset? One linear equation in a box: the question
 * behind "where does this offset come from", and behind "is the layout injective" where there are
 * too many strides for relation.c.
 *
 * The steps are chosen from the largest stride down. What the smaller strides can still make up is
 * an interval and a residue (modulo their greatest common divisor), so for each stride only the
 * counts of one arithmetic progression in a short range are left; with two strides the first of
 * them is the answer. The work is the product of how far neighbours overlap, not of the extents:
 * layouts of 2^60 points are decided in microseconds. In the worst case (dozens of strides of the
 * size of 2^60 with no order among them) this is the knapsack problem, and there the search gives
 * up after a fixed number of tries.
 *
 * Rejected: sorting all offsets (memory, and no answer beyond some millions of points). */
#include "layout/image.h"
#include "layout/term.h"

#define TRY_LIMIT ((int64_t)1 << 22)

typedef __int128_t wide;

typedef struct search {
    const tk_steps *steps;
    int order[TK_LAYOUT_MAX_LEAVES]; /* by stride, smallest first */
    /* What the strides before position j can add up to. */
    int64_t divisor[TK_LAYOUT_MAX_LEAVES];
    wide least[TK_LAYOUT_MAX_LEAVES], most[TK_LAYOUT_MAX_LEAVES];
    int64_t tries;
    int64_t *out;
} search;

static wide floor_div(wide a, wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int64_t size_of_stride(const search *s, int j) {
    int64_t stride = s->steps->stride[s->order[j]];
    return stride < 0 ? -stride : stride;
}

static void sort_strides(search *s) {
    for (int i = 0; i < s->steps->count; i++) {
        int at = i;
        int64_t stride = s->steps->stride[i], size = stride < 0 ? -stride : stride;
        for (; at > 0 && size < size_of_stride(s, at - 1); at--) s->order[at] = s->order[at - 1];
        s->order[at] = i;
    }
}

static void load(search *s) {
    int64_t divisor = 0;
    wide least = 0, most = 0;
    sort_strides(s);
    for (int j = 0; j < s->steps->count; j++) {
        int i = s->order[j];
        wide stride = s->steps->stride[i];
        wide low = s->steps->low[i] * stride, high = s->steps->high[i] * stride;
        s->divisor[j] = divisor;
        s->least[j] = least;
        s->most[j] = most;
        divisor = tk_gcd(divisor, s->steps->stride[i]);
        least += low < high ? low : high;
        most += low < high ? high : low;
    }
}

/* x with a x = 1 modulo m, for coprime a and m. */
static int64_t inverse_modulo(int64_t a, int64_t m) {
    int64_t x = 1, next_x = 0, rest = m;
    for (a = a % m; rest;) {
        int64_t quotient = a / rest, kept = rest;
        rest = a - quotient * rest;
        a = kept;
        kept = next_x;
        next_x = x - quotient * next_x;
        x = kept;
    }
    return x < 0 ? x + m : x;
}

/* The counts y in [*first, *last], *step apart, of stride j after which the smaller strides may
 * still reach `total`; false if there are none. */
static bool narrow(const search *s, int j, wide total, wide *first, wide *last, int64_t *step) {
    int i = s->order[j];
    int64_t size = size_of_stride(s, j), divisor = s->divisor[j];
    bool down = s->steps->stride[i] < 0;
    wide low = down ? -(wide)s->steps->high[i] : s->steps->low[i];
    wide high = down ? -(wide)s->steps->low[i] : s->steps->high[i];
    wide from = -floor_div(-(total - s->most[j]), size), to = floor_div(total - s->least[j], size);
    *step = 1;
    *first = from > low ? from : low;
    *last = to < high ? to : high;
    if (divisor == 0 || *first > *last) return *first <= *last;
    int64_t common = tk_gcd(size, divisor);
    if (total % common) return false;
    *step = divisor / common;
    wide residue = (total / common) % *step * inverse_modulo(size / common, *step) % *step;
    wide ahead = (residue - *first) % *step;
    *first += ahead < 0 ? ahead + *step : ahead;
    return *first <= *last;
}

/* Chooses the counts of the strides up to position j. */
static tk_proof choose(search *s, int j, wide total) {
    if (j < 0) return total == 0 ? TK_PROVEN : TK_REFUTED;
    wide first, last;
    int64_t step;
    if (!narrow(s, j, total, &first, &last, &step)) return TK_REFUTED;
    int i = s->order[j];
    for (wide y = first; y <= last; y += step) {
        if (++s->tries > TRY_LIMIT) return TK_OPEN;
        s->out[i] = (int64_t)(s->steps->stride[i] < 0 ? -y : y);
        tk_proof proof = choose(s, j - 1, total - y * size_of_stride(s, j));
        if (proof != TK_REFUTED) return proof;
    }
    return TK_REFUTED;
}

tk_proof tk_find_steps(const tk_steps *steps, int64_t total, int64_t *out) {
    search s = {.steps = steps, .out = out};
    load(&s);
    return choose(&s, steps->count - 1, total);
}
