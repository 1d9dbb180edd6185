/* Two carries of many steps, compared from the middle: the points at which X_k is next to a
 * multiple of P_k are found by sorting the residues of one half of the steps and looking up, for
 * each sum of the other half, those that fit. 2^40 points take 2^20 residues.
 *
 * It is for what lattice reduction and the parting of boxes are bad at: dozens of short steps with
 * nothing in common, where the question is the subset sum problem. */
#include <stdlib.h>
#include <string.h>

#include "layout/compose_wind.h"

/* Sums of one half, and points that are looked at. */
#define SUM_LIMIT ((int64_t)1 << 20)
#define HIT_LIMIT ((int64_t)1 << 24)

typedef __int128_t wide;

/* One sum: of X_k modulo P_k (to sort by), of X_k, of X_l. */
typedef struct sum {
    int64_t residue;
    wide near, far;
} sum;

/* The steps of one half, and where a walk through it stands. */
typedef struct half {
    int count, index[TK_LAYOUT_MAX_LEAVES];
    int64_t points, place[TK_LAYOUT_MAX_LEAVES];
    sum at;
} half;

/* Is n:near/far a multiple of step i that continues it? */
static bool join(tk_forms *f, int i, int64_t extent, int64_t near, int64_t far) {
    int64_t own_near = f->near[i], own_far = f->far[i];
    int64_t times = own_near ? near / own_near : own_far ? far / own_far : 0;
    if (times < 1 || times > f->extent[i] || (wide)times * own_near != near ||
        (wide)times * own_far != far)
        return false;
    f->extent[i] += times * (extent - 1);
    return true;
}

void tk_forms_add(tk_forms *forms, int64_t extent, int64_t near, int64_t far) {
    if (extent == 1 || (near == 0 && far == 0)) return;
    if (near < 0 || (near == 0 && far < 0)) {
        forms->near_start += (wide)(extent - 1) * near;
        forms->far_start += (wide)(extent - 1) * far;
        near = -near;
        far = -far;
    }
    for (int i = 0; i < forms->steps; i++)
        if (join(forms, i, extent, near, far)) return;
    forms->extent[forms->steps] = extent;
    forms->near[forms->steps] = near;
    forms->far[forms->steps++] = far;
}

static int64_t residue_of(wide a, int64_t m) {
    int64_t rest = (int64_t)(a % m);
    return rest < 0 ? rest + m : rest;
}

/* Each step goes to the half with fewer points, longest first; false if a half gets too many. */
static bool split(const tk_forms *f, half *out) {
    bool taken[TK_LAYOUT_MAX_LEAVES] = {false};
    memset(out, 0, 2 * sizeof *out);
    out[0].points = out[1].points = 1;
    for (;;) {
        int longest = -1;
        for (int j = 0; j < f->steps; j++)
            if (!taken[j] && f->extent[j] > 1 && (longest < 0 || f->extent[j] > f->extent[longest]))
                longest = j;
        if (longest < 0) return true;
        half *h = out[0].points <= out[1].points ? &out[0] : &out[1];
        if (tk_mul_overflow_i64(h->points, f->extent[longest], &h->points) || h->points > SUM_LIMIT)
            return false;
        h->index[h->count++] = longest;
        taken[longest] = true;
    }
}

/* The next point of the half; false after the last. */
static bool walk(const tk_forms *f, half *h) {
    for (int i = 0; i < h->count; i++) {
        int j = h->index[i];
        int64_t steps = h->place[i] + 1 < f->extent[j] ? 1 : -h->place[i];
        h->place[i] += steps;
        h->at.near += (wide)steps * f->near[j];
        h->at.far += (wide)steps * f->far[j];
        if (steps == 1) {
            h->at.residue = residue_of(h->at.near, f->near_modulus);
            return true;
        }
    }
    return false;
}

static int compare_sums(const void *a, const void *b) {
    int64_t x = ((const sum *)a)->residue, y = ((const sum *)b)->residue;
    return x < y ? -1 : x > y;
}

/* The first sum of at least this residue. */
static int64_t find_sum(const sum *sums, int64_t count, int64_t residue) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sums[middle].residue < residue)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static wide floor_of(wide a, int64_t m) { return a / m - (a % m < 0); }

/* Compares the carries where X_k is within `room` of a multiple of P_k, for one sum of the second
 * half. */
static tk_proof compare_hits(const tk_forms *f, const sum *sums, int64_t count, const sum *other,
                             int64_t room, int64_t *hits) {
    int64_t p = f->near_modulus, from = residue_of(-(wide)other->residue - room, p);
    int64_t i = find_sum(sums, count, from);
    for (int64_t seen = 0; seen < count; seen++, i++) {
        if (i == count) i = 0;
        if (residue_of((wide)sums[i].residue - from, p) > 2 * room) break;
        if (++*hits > HIT_LIMIT) return TK_OPEN;
        if (floor_of(sums[i].near + other->near, p) !=
            floor_of(sums[i].far + other->far, f->far_modulus))
            return TK_REFUTED;
    }
    return TK_PROVEN;
}

tk_proof tk_forms_agree(const tk_forms *forms, int64_t room) {
    half halves[2];
    int64_t hits = 0, count = 0;
    if (!split(forms, halves)) return TK_OPEN;
    sum *sums = tk_malloc((size_t)halves[0].points * sizeof *sums);
    if (!sums) return TK_OPEN;
    halves[0].at = (sum){residue_of(forms->near_start, forms->near_modulus), forms->near_start,
                         forms->far_start};
    do sums[count++] = halves[0].at;
    while (walk(forms, &halves[0]));
    qsort(sums, (size_t)count, sizeof *sums, compare_sums);
    tk_proof proof = TK_PROVEN;
    do proof = compare_hits(forms, sums, count, &halves[1].at, room, &hits);
    while (proof == TK_PROVEN && walk(forms, &halves[1]));
    tk_free(sums);
    return proof;
}
