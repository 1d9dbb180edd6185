/* See carry_free.h; left_inverse.c says what a chain of moduli is.
 *
 * A modulus P carries nowhere in a layout when the remainders of all its steps together stay below
 * it: the sum of (extent - 1) * (stride mod P) is less than P. Then floor(offset / P) is the sum of
 * the coordinates times floor(stride / P), and a chain of such moduli inverts the layout exactly if
 * one linear equation a leaf has a solution in integers: the coefficients times floor(stride / P)
 * add up to the leaf's step in the coordinate. No offset need be looked at, so these answers are
 * found however far apart the offsets are, where equations between offsets (left_inverse.c,
 * chain_window.c) say nothing for a long time.
 *
 * All such moduli are listed. For given quotients q_j = floor(stride_j / P) the condition reads
 * P * (1 + sum (extent_j - 1) q_j) > sum (extent_j - 1) stride_j: an interval of P. So
 * moduli above the root of a stride are walked by quotients, the smallest stride first, and the
 * part of the condition for the leaves so far leaves few quotients for the next; those that are
 * left below the root of a stride are tried one by one. A modulus above all strides has quotients 0
 * and adds nothing. Where few offsets share much room there are too many for a list; then each is
 * taken for the largest of a chain, and its divisors are made from its factors.
 *
 * More moduli in a chain only help, so chains are made as long as can be, and a set that has no
 * solution modulo one of a few primes has none in integers.
 *
 * Rejected: the same list as guesses for left_inverse.c, which checks each against offsets that
 * cannot contradict it. */
#include "layout/carry_free.h"

#include <math.h>
#include <stdlib.h>

#include "layout/lattice.h"

/* Steps, about half a second. */
#define WORK_LIMIT ((int64_t)1 << 26)
#define MAX_LISTED 65536
/* A range of this many moduli is long. */
#define LONG_RANGE 64
#define MAX_RANGES 2048
#define MAX_DIVISORS 1024
/* For all moduli of one chain: a list and its multiples of one. */
#define MAX_HELD (4 * MAX_LISTED)
/* Beyond this no factors are looked for: what is left counts as a prime. */
#define FACTOR_LIMIT ((int64_t)1 << 11)

static const int64_t primes[] = {2, 3, 5, 7, 2147483647};

/* What becomes of a modulus: all are listed, or all but long ranges, or each is tried. */
typedef enum listing { LIST_ALL, LIST_FEW, TRY_EACH } listing;

typedef struct range {
    int64_t least, most;
} range;

typedef struct cuts {
    const tk_moving *leaf; /* by stride, the largest last */
    int leaves;
    tk_chain_visitor *visit;
    void *context;
    int64_t work;
    bool stopped, open; /* by the visitor; something was left out */
    listing mode;
    int ranges;
    range range[MAX_RANGES];       /* of moduli with the same quotients, left out of the list */
    int64_t chain[TK_LATTICE_MAX]; /* 1 first */
    int used;
    int64_t held[MAX_HELD]; /* lists of moduli */
    bool covered[MAX_HELD]; /* a smaller one of the list divides it */
} cuts;

static int64_t extent_of(const cuts *c, int leaf) { return c->leaf[leaf].leaf.shape.value; }

static int64_t stride_of(const cuts *c, int leaf) { return c->leaf[leaf].leaf.stride.value; }

static bool is_over(cuts *c) {
    if (c->work > WORK_LIMIT) c->open = true;
    return c->stopped || c->work > WORK_LIMIT || (c->mode != TRY_EACH && c->used > MAX_LISTED);
}

/* The span of the layout fits 64 bits, so this sum does. */
static bool has_carries(const cuts *c, int64_t modulus) {
    int64_t reached = 0;
    for (int i = 0; i < c->leaves; i++)
        reached += (extent_of(c, i) - 1) * (stride_of(c, i) % modulus);
    return reached >= modulus;
}

/* -- Solutions -- */

static int64_t inverse_of(int64_t value, int64_t prime) {
    int64_t power = 1;
    for (int64_t rest = prime - 2; rest; rest /= 2) {
        if (rest & 1) power = power * value % prime;
        value = value * value % prime;
    }
    return power;
}

/* Rows with the pivots 1, in the columns up to `count`, that span what was put in. */
typedef struct span {
    int64_t prime;
    int count;
    bool has[TK_LAYOUT_MAX_LEAVES];
    int64_t row[TK_LAYOUT_MAX_LEAVES][TK_LAYOUT_MAX_LEAVES];
} span;

/* What is left of a vector beside the span; its first place that is not 0, or -1. */
static int reduce(const span *s, int64_t *vector) {
    int first = -1;
    for (int i = 0; i < s->count; i++) {
        if (vector[i] == 0) continue;
        if (!s->has[i]) {
            if (first < 0) first = i;
            continue;
        }
        int64_t factor = s->prime - vector[i];
        for (int k = i; k < s->count; k++)
            vector[k] = (vector[k] + factor * s->row[i][k]) % s->prime;
    }
    return first;
}

static void put_vector(span *s, int64_t *vector) {
    int first = reduce(s, vector);
    if (first < 0) return;
    int64_t scale = inverse_of(vector[first], s->prime);
    s->has[first] = true;
    for (int k = 0; k < s->count; k++) s->row[first][k] = vector[k] * scale % s->prime;
}

static bool has_solution_modulo(cuts *c, int64_t prime, int depth, const int64_t *more, int count) {
    span s = {.prime = prime, .count = c->leaves};
    int64_t vector[TK_LAYOUT_MAX_LEAVES];
    for (int i = 0; i < depth + count; i++) {
        int64_t modulus = i < depth ? c->chain[i] : more[i - depth];
        for (int j = 0; j < c->leaves; j++) vector[j] = stride_of(c, j) / modulus % prime;
        put_vector(&s, vector);
    }
    for (int j = 0; j < c->leaves; j++) vector[j] = c->leaf[j].prefix % prime;
    c->work += (int64_t)(depth + count) * c->leaves;
    return reduce(&s, vector) < 0;
}

/* Could the chain so far, and any of the moduli that may follow, give each leaf its step? */
static bool may_solve(cuts *c, int depth, const int64_t *more, int count) {
    for (size_t i = 0; i < sizeof primes / sizeof *primes; i++)
        if (!has_solution_modulo(c, primes[i], depth, more, count)) return false;
    return true;
}

static void try_chain(cuts *c, int depth) {
    tk_lattice strides;
    tk_lattice_clear(&strides);
    for (int i = 0; i < depth; i++) tk_lattice_extend(&strides);
    for (int j = 0; j < c->leaves; j++) {
        int64_t row[TK_LATTICE_MAX];
        for (int i = 0; i < depth; i++) row[i] = stride_of(c, j) / c->chain[i];
        if (!tk_lattice_require(&strides, row, c->leaf[j].prefix)) return;
    }
    if (!c->visit(c->context, c->chain, depth)) c->stopped = true;
}

/* -- Chains -- */

static int compare_moduli(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Holds number `at` of a list, and notes in the list that it is a multiple of a smaller one. */
static void hold_multiple(cuts *c, int list, int at) {
    c->covered[list + at] = true;
    c->covered[c->used] = false;
    c->held[c->used++] = c->held[list + at];
}

/* Holds the multiples of a modulus among those after number `from` of a list, in their order; false
 * if there is no room. */
static bool hold_multiples(cuts *c, int64_t modulus, int list, int from, int count) {
    const int64_t *first = c->held + list;
    if (c->used + count - from > MAX_HELD) {
        c->open = true;
        return false;
    }
    if (count == from || first[count - 1] / modulus > (count - from) / 16) {
        for (int i = from; i < count; i++)
            if (first[i] % modulus == 0) hold_multiple(c, list, i);
        c->work += count - from;
        return true;
    }
    for (int64_t times = 2; times <= first[count - 1] / modulus; times++) {
        int64_t multiple = times * modulus;
        const int64_t *found =
            bsearch(&multiple, first + from, (size_t)(count - from), sizeof *first, compare_moduli);
        if (found) hold_multiple(c, list, (int)(found - first));
        c->work += 16;
    }
    return true;
}

/* All longest chains that go on after the last modulus with some of a list of its multiples, which
 * is held, in increasing order. */
static void extend_up(cuts *c, int depth, int list, int count) {
    if (is_over(c) || !may_solve(c, depth, c->held + list, count)) return;
    if (count == 0) try_chain(c, depth);
    for (int i = 0; i < count && !is_over(c); i++) {
        int before = c->used;
        if (c->covered[list + i]) continue;
        c->chain[depth] = c->held[list + i];
        if (hold_multiples(c, c->chain[depth], list, i + 1, count))
            extend_up(c, depth + 1, before, c->used - before);
        c->used = before;
    }
}

/* All chains of what is held. */
static void try_held(cuts *c) {
    int kept = 0;
    qsort(c->held, (size_t)c->used, sizeof *c->held, compare_moduli);
    for (int i = 0; i < c->used; i++)
        if (kept == 0 || c->held[i] != c->held[kept - 1]) c->held[kept++] = c->held[i];
    c->used = kept;
    memset(c->covered, 0, (size_t)kept);
    c->chain[0] = 1;
    extend_up(c, 1, 0, kept);
}

static void put_power(int64_t *divisor, int *count, int before, int64_t power) {
    for (int i = 0; i < before && *count < MAX_DIVISORS; i++)
        divisor[(*count)++] = divisor[i] * power;
}

/* The divisors of a modulus, without order; of a product of large primes, perhaps not all. */
static int divisors_of(cuts *c, int64_t modulus, int64_t *divisor) {
    int count = 1;
    divisor[0] = 1;
    for (int64_t factor = 2; modulus > 1; factor += factor > 2 ? 2 : 1) {
        int before = count;
        int64_t power = 1;
        bool large = factor > FACTOR_LIMIT, last = factor > modulus / factor;
        if (large && !last) c->open = true;
        if (large || last) factor = modulus;
        for (; modulus % factor == 0; modulus /= factor) {
            power *= factor;
            put_power(divisor, &count, before, power);
        }
        c->work++;
    }
    if (count == MAX_DIVISORS) c->open = true;
    return count;
}

/* All chains whose largest modulus is this one. */
static void try_largest(cuts *c, int64_t modulus) {
    int64_t divisor[MAX_DIVISORS];
    int count = divisors_of(c, modulus, divisor);
    c->used = 0;
    for (int i = 0; i < count; i++)
        if (divisor[i] > 1 && !has_carries(c, divisor[i])) c->held[c->used++] = divisor[i];
    c->work += (int64_t)count * c->leaves;
    try_held(c);
}

/* -- Moduli -- */

static void put_modulus(cuts *c, int64_t modulus) {
    c->work++;
    if (c->mode == TRY_EACH)
        try_largest(c, modulus);
    else if (c->used++ < MAX_LISTED)
        c->held[c->used - 1] = modulus;
}

/* Moduli none of which carries. */
static void put_range(cuts *c, int64_t least, int64_t most) {
    if (c->mode == LIST_FEW && most - least >= LONG_RANGE) {
        if (c->ranges == MAX_RANGES)
            c->used = MAX_LISTED + 1;
        else
            c->range[c->ranges++] = (range){least, most};
        return;
    }
    for (int64_t modulus = most; modulus >= least && !is_over(c); modulus--)
        put_modulus(c, modulus);
}

static void try_range(cuts *c, int64_t least, int64_t most) {
    for (int64_t modulus = most; modulus >= least && !is_over(c); modulus--) {
        c->work += c->leaves;
        if (!has_carries(c, modulus)) put_modulus(c, modulus);
    }
}

static int64_t root_of(int64_t n) {
    int64_t root = (int64_t)sqrtl((long double)n);
    while (root > n / root) root--;
    return root;
}

/* The moduli from `least` to `most`, for which the remainders of the leaves before this one leave
 * room; `reach` and `quotients` are the sums over these leaves. */
static void walk_quotients(cuts *c, int leaf, int64_t least, int64_t most, int64_t reach,
                           int64_t quotients) {
    if (leaf == c->leaves) {
        put_range(c, least, most);
        return;
    }
    int64_t extent = extent_of(c, leaf), stride = stride_of(c, leaf), root = root_of(stride);
    int64_t above = least > root ? least : root + 1;
    reach += (extent - 1) * stride;
    if (most < above) above = most + 1;
    for (int64_t q = stride / most; above <= most && q <= stride / above && !is_over(c); q++) {
        int64_t sum = quotients + (extent - 1) * q;
        int64_t high = q && stride / q < most ? stride / q : most;
        int64_t low = stride / (q + 1) + 1, fitting = reach / (1 + sum) + 1;
        if (low < above) low = above;
        if (low < fitting) low = fitting;
        c->work++;
        if (low <= high) walk_quotients(c, leaf + 1, low, high, reach, sum);
    }
    try_range(c, least, above - 1);
}

static void walk_moduli(cuts *c, listing mode) {
    c->mode = mode;
    c->used = c->ranges = 0;
    walk_quotients(c, 0, 2, stride_of(c, c->leaves - 1), 0, 0);
    c->mode = TRY_EACH;
}

static int compare_ranges(const void *a, const void *b) {
    return compare_moduli(&((const range *)a)->least, &((const range *)b)->least);
}

/* Of long ranges, the largest modulus and the largest multiples of those in the list, as many as
 * there is room for. */
static void list_multiples(cuts *c) {
    qsort(c->range, (size_t)c->ranges, sizeof *c->range, compare_ranges);
    for (int k = 0; k < c->ranges; k++) {
        range in = c->range[k];
        int before = c->used, room = (MAX_LISTED - before) / (c->ranges - k);
        if (room > 0) c->held[c->used++] = in.most;
        for (int i = before - 1; i >= 0 && c->used - before < room; i--) {
            int64_t multiple = in.most / c->held[i] * c->held[i];
            if (multiple >= in.least) c->held[c->used++] = multiple;
        }
    }
    c->open = true;
}

tk_proof tk_visit_carry_free(const tk_moving *leaf, int count, tk_chain_visitor *visit,
                             void *context) {
    cuts *c = tk_calloc(1, sizeof *c);
    if (!c) return TK_OPEN;
    *c = (cuts){.leaf = leaf, .leaves = count, .visit = visit, .context = context};
    walk_moduli(c, LIST_ALL);
    bool whole = c->used <= MAX_LISTED;
    if (!whole) {
        walk_moduli(c, LIST_FEW);
        if (c->used <= MAX_LISTED) list_multiples(c);
    }
    if (c->used <= MAX_LISTED) try_held(c);
    if (!whole && !is_over(c)) walk_moduli(c, TRY_EACH);
    tk_proof proof = c->stopped ? TK_REFUTED : c->open ? TK_OPEN : TK_PROVEN;
    tk_free(c);
    return proof;
}
