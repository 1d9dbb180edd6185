/* Is there a sum of few steps that leads nowhere? A relation: integers x, not all 0, |x_i| at most
 * most[i], with sum of x_i * stride[i] = 0. Two coordinates of one offset differ by such an x.
 *
 * All x with that sum are a lattice of one dimension less than there are strides, and the question
 * is whether it has a vector in a box. Scaled by 1 / most[i] the box is the cube of side 2, so:
 *
 *   1. A basis of the lattice, short in that scale: the LLL algorithm run on the unit vectors,
 *      where a product with the strides that is not 0 weighs more than any length (Havas, Majewski
 *      and Matthews, "Extended gcd and Hermite normal form algorithms via lattice basis reduction",
 *      1998). It is Euclid's algorithm and the reduction in one, so numbers never get large. The
 *      basis is kept in integers, and each step is invertible in integers, so it is a basis
 *      whatever the rounding of the lengths that chose the steps.
 *   2. Mostly a vector of the basis lies in the box. If none does, all combinations that could are
 *      enumerated, last vector first. Let w be the part of x that the vectors chosen so far fix,
 *      the rest being orthogonal to it. Then |w|^2 = w.x is at most the sum of |w_i|, since x is in
 *      the cube (Ritter), and that bounds the next choice.
 *
 * The tests of the enumeration are rounded, so they allow MARGIN too much, and a candidate is
 * checked in integers. In a reduced basis of n vectors rounding grows by less than 3^n: MARGIN
 * holds for PROOF_MAX strides in 64-bit significands. Above that what is found is an answer, and
 * nothing found is none.
 *
 * Rejected: choosing the steps stride by stride (steps.c, which comes first, for it takes no time
 * where the strides have an order): each overlap of two strides multiplies the work. */
#include "layout/image.h"

#define MARGIN 1e-6L
#define PROOF_MAX 27
#define SEARCH_MAX 48
/* Rounds of the reduction, and choices of the enumeration: a second. */
#define ROUND_LIMIT 100000
#define PASS_LIMIT 100
#define CHOICE_LIMIT ((int64_t)1 << 22)

typedef __int128_t wide;
typedef long double real;

typedef struct basis {
    int count; /* strides, and rows */
    const int64_t *most;
    wide row[SEARCH_MAX][SEARCH_MAX];
    int64_t sum[SEARCH_MAX];           /* of row times strides */
    real star[SEARCH_MAX][SEARCH_MAX]; /* scaled, and orthogonal to the rows before it */
    real length[SEARCH_MAX];           /* of star, squared */
    real mu[SEARCH_MAX][SEARCH_MAX];   /* row i is star i + sum of mu[i][j] * star j, j < i */
    int64_t choices;
    int64_t *out;
} basis;

static real dot(const real *a, const real *b, int count) {
    real sum = 0;
    for (int i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* -- The reduction -- */

/* Rows whose sum is not 0 weigh more than any length: nothing is taken along them. */
static void orthogonalize(basis *b, int k) {
    real *star = b->star[k];
    for (int i = 0; i < b->count; i++) star[i] = (real)b->row[k][i] / (real)b->most[i];
    for (int j = 0; j < k; j++) {
        b->mu[k][j] = b->sum[j] ? 0 : dot(star, b->star[j], b->count) / b->length[j];
        for (int i = 0; i < b->count && !b->sum[j]; i++) star[i] -= b->mu[k][j] * b->star[j][i];
    }
    b->length[k] = dot(star, star, b->count);
}

static wide round_real(real x) { return (wide)(x < 0 ? x - 0.5L : x + 0.5L); }

static int64_t round_quotient(int64_t a, int64_t b) {
    int64_t quotient = a / b, rest = a % b;
    if (rest < 0) rest = -rest;
    if (rest > (b < 0 ? -b : b) / 2) quotient += (a < 0) == (b < 0) ? 1 : -1;
    return quotient;
}

/* How often row j goes into row k; false if that is beyond counting. */
static bool times_in(const basis *b, int k, int j, wide *out) {
    real mu = b->mu[k][j];
    *out = 0;
    if (b->sum[j]) *out = round_quotient(b->sum[k], b->sum[j]);
    if (b->sum[j] || (mu < 0.51L && mu > -0.51L)) return true;
    if (mu < 1e36L && mu > -1e36L) *out = round_real(mu);
    return *out != 0;
}

/* Row k minus `factor` times row j; false if a number gets too large. */
static bool subtract(basis *b, int k, int j, wide factor) {
    bool over = false;
    wide product;
    for (int i = 0; i < b->count; i++) {
        over |= __builtin_mul_overflow(factor, b->row[j][i], &product);
        over |= __builtin_sub_overflow(b->row[k][i], product, &b->row[k][i]);
    }
    b->sum[k] -= (int64_t)(factor * b->sum[j]);
    for (int i = 0; i < j; i++) b->mu[k][i] -= (real)factor * b->mu[j][i];
    return !over;
}

/* Takes rows first..k-1 out of row k as often as they go. Again until nothing changes, since what
 * was rounded is large where the row is. */
static bool reduce(basis *b, int k, int first) {
    bool changed = true;
    for (int pass = 0; changed; pass++) {
        orthogonalize(b, k);
        changed = false;
        for (int j = k - 1; j >= first; j--) {
            wide factor;
            if (pass == PASS_LIMIT || !times_in(b, k, j, &factor)) return false;
            if (factor && !subtract(b, k, j, factor)) return false;
            changed = changed || factor;
        }
    }
    return true;
}

static void swap_rows(basis *b, int k) {
    for (int i = 0; i < b->count; i++) {
        wide kept = b->row[k][i];
        b->row[k][i] = b->row[k - 1][i];
        b->row[k - 1][i] = kept;
    }
    int64_t kept = b->sum[k];
    b->sum[k] = b->sum[k - 1];
    b->sum[k - 1] = kept;
}

/* All rows but the last become a reduced basis of those whose sum is 0. */
static bool reduce_all(basis *b) {
    int k = 1;
    orthogonalize(b, 0);
    for (int round = 0; k < b->count; round++) {
        if (round == ROUND_LIMIT || !reduce(b, k, k - 1)) return false;
        real mu = b->mu[k][k - 1];
        bool shorter = b->sum[k] == 0 && b->sum[k - 1] == 0 &&
                       b->length[k] < (0.99L - mu * mu) * b->length[k - 1];
        if (b->sum[k - 1] || shorter) {
            swap_rows(b, k);
            orthogonalize(b, k - 1);
            if (k > 1) k--;
        } else {
            if (!reduce(b, k, 0)) return false;
            k++;
        }
    }
    for (int i = 0; i + 1 < b->count; i++) orthogonalize(b, i);
    return true;
}

/* -- The enumeration -- */

/* Is it in the box, and not 0? Then it is the answer. */
static bool is_answer(basis *b, const wide *x) {
    bool moves = false;
    for (int i = 0; i < b->count; i++) {
        if (x[i] > b->most[i] || x[i] < -b->most[i]) return false;
        moves = moves || x[i];
        b->out[i] = (int64_t)x[i];
    }
    return moves;
}

static bool is_relation(basis *b, const int64_t *z) {
    wide x[SEARCH_MAX] = {0};
    for (int j = 0; j + 1 < b->count; j++)
        for (int i = 0; i < b->count; i++) x[i] += z[j] * b->row[j][i];
    return is_answer(b, x);
}

/* The choices of one vector: near `center`, nearest first, by steps that change side. */
static int64_t nearest(real center) {
    int64_t below = (int64_t)center;
    if ((real)below > center) below--;
    return center - (real)below > 0.5L ? below + 1 : below;
}

/* Chooses z[j] and those before it; `fixed` is the part of x that the choices after j fix. */
static tk_proof choose(basis *b, int j, const real *fixed, int64_t *z) {
    if (j < 0) return is_relation(b, z) ? TK_PROVEN : TK_REFUTED;
    real center = 0, before = dot(fixed, fixed, b->count), w[SEARCH_MAX];
    for (int i = j + 1; i + 1 < b->count; i++) center -= (real)z[i] * b->mu[i][j];
    int64_t start = nearest(center);
    int sides = 0, step = (real)start < center ? 1 : -1;
    for (int64_t turn = 0; sides != 3; turn++) {
        int64_t move = (turn + 1) / 2 * (turn % 2 ? step : -step);
        int side = move == 0 ? 0 : move < 0 ? 1 : 2;
        if (sides & side) continue;
        if (++b->choices > CHOICE_LIMIT) return TK_OPEN;
        z[j] = start + move;
        real along = (real)z[j] - center, sum = 0;
        for (int i = 0; i < b->count; i++) {
            w[i] = fixed[i] + along * b->star[j][i];
            sum += w[i] < 0 ? -w[i] : w[i];
        }
        real length = before + along * along * b->length[j];
        if (length > b->count * (1 + MARGIN)) {
            sides |= side ? side : 0;
            if (side == 0) return TK_REFUTED;
            continue;
        }
        if (length > sum * (1 + MARGIN) + MARGIN) continue;
        tk_proof proof = choose(b, j - 1, w, z);
        if (proof != TK_REFUTED) return proof;
    }
    return TK_REFUTED;
}

/* -- Entry -- */

static bool load(const int64_t *stride, const int64_t *most, int count, basis *b) {
    memset(b, 0, sizeof *b);
    b->count = count;
    b->most = most;
    if (count > SEARCH_MAX) return false;
    for (int i = 0; i < count; i++) {
        b->row[i][i] = 1;
        b->sum[i] = stride[i];
    }
    return reduce_all(b);
}

tk_proof tk_find_relation(const int64_t *stride, const int64_t *most, int count, int64_t *out) {
    basis b;
    int64_t z[SEARCH_MAX] = {0};
    real origin[SEARCH_MAX] = {0};
    if (!load(stride, most, count, &b)) return TK_OPEN;
    b.out = out;
    for (int j = 0; j + 1 < count; j++)
        if (is_answer(&b, b.row[j])) return TK_PROVEN;
    tk_proof proof = choose(&b, count - 2, origin, z);
    return proof == TK_REFUTED && count > PROOF_MAX ? TK_OPEN : proof;
}

bool tk_reduce_relations(const int64_t *stride, const int64_t *most, int count, tk_relations *out) {
    basis b;
    if (count > TK_RELATION_MAX || !load(stride, most, count, &b)) return false;
    out->count = count - 1;
    for (int j = 0; j + 1 < count; j++)
        for (int i = 0; i < count; i++) {
            out->row[j][i] = (int64_t)b.row[j][i];
            if (out->row[j][i] != b.row[j][i]) return false;
        }
    return true;
}
