/* The first multiple of a step at which carries do not cancel.
 *
 * Let x_k = weight[k] / modulus[k], below 1. floor(a x) is the number of reduced fractions p/q with
 * 0 < p/q <= x whose q divides a: each of the a x multiples of 1/a is one of them. So
 *
 *   G(a) = sum over q | a of N_q,   N_q = sum over reduced p/q of E(p/q),
 *   E(y) = sum of change[k] over the k with y <= x_k.
 *
 * The first a with G(a) not 0 is therefore the first q with N_q not 0. E is constant between the
 * x_k, and 0 where changes cancel, so only fractions in the other gaps are listed, by increasing
 * denominator: the simplest fraction of a gap splits it into two gaps of larger denominators. p/q
 * and (q-p)/q count alike, so all is folded to [0, 1/2]; without that a pair x, 1 - x would cancel
 * in every denominator.
 *
 * Gaps seldom share a denominator twice (those of a gap determine it, folded), so the list ends
 * after a few fractions: at a difference, or at denominators of n and more. If it gets long all the
 * same, points are counted one by one; no answer depends on its length.
 *
 * Rejected: the period of the carries (2^60 where moduli are), continued fractions of each x_k
 * alone (the fractions of several x_k have to be added up). */
#include "layout/compose_wind.h"

#define HEAP_MAX 512

typedef __int128_t wide;

typedef struct fraction {
    wide top, bottom;
} fraction;

/* A fraction to be counted, and the gap around it, which is empty for an x_k itself. */
typedef struct gap {
    fraction at, left, right;
    bool open;
    int cell;
} gap;

/* Cell 2 i is the gap before the i-th corner, cell 2 i + 1 the corner. */
typedef struct list {
    const tk_winding *winding;
    int corners, count;
    fraction ratio[TK_LAYOUT_MAX_LEAVES]; /* x_k */
    fraction corner[TK_LAYOUT_MAX_LEAVES + 1];
    gap heap[HEAP_MAX];
} list;

static int compare(fraction a, fraction b) {
    wide left = a.top * b.bottom, right = b.top * a.bottom;
    return left < right ? -1 : left > right;
}

/* The fraction of the smallest denominator between two, neither of them included: their continued
 * fractions up to where they part. */
static fraction simplest(fraction a, fraction b) {
    wide whole = a.top / a.bottom;
    if ((whole + 1) * b.bottom < b.top || b.bottom == 0) return (fraction){whole + 1, 1};
    fraction low = {b.bottom, b.top - whole * b.bottom};
    fraction high = {a.bottom, a.top - whole * a.bottom};
    fraction inner = simplest(low, high);
    return (fraction){whole * inner.top + inner.bottom, inner.top};
}

/* -- The heap, by denominator -- */

static bool push(list *l, gap made, int64_t n) {
    if (made.at.bottom >= n) return true;
    if (l->count == HEAP_MAX) return false;
    int at = l->count++;
    for (; at > 0 && made.at.bottom < l->heap[(at - 1) / 2].at.bottom; at = (at - 1) / 2)
        l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = made;
    return true;
}

static gap pop(list *l) {
    gap first = l->heap[0], moved = l->heap[--l->count];
    int at = 0;
    for (int child = 1; child < l->count; child = 2 * at + 1) {
        if (child + 1 < l->count && l->heap[child + 1].at.bottom < l->heap[child].at.bottom)
            child++;
        if (moved.at.bottom <= l->heap[child].at.bottom) break;
        l->heap[at] = l->heap[child];
        at = child;
    }
    l->heap[at] = moved;
    return first;
}

static bool push_between(list *l, fraction left, fraction right, int cell, int64_t n) {
    gap made = {simplest(left, right), left, right, true, cell};
    return push(l, made, n);
}

/* -- Cells -- */

static bool is_upper(fraction x) { return 2 * x.top > x.bottom; }

/* x or 1 - x, up to 1/2. */
static fraction fold(fraction x) {
    return is_upper(x) ? (fraction){x.bottom - x.top, x.bottom} : x;
}

static void add_corner(list *l, fraction x) {
    int at = l->corners;
    while (at > 0 && compare(x, l->corner[at - 1]) < 0) at--;
    if (at > 0 && compare(x, l->corner[at - 1]) == 0) return;
    for (int i = l->corners++; i > at; i--) l->corner[i] = l->corner[i - 1];
    l->corner[at] = x;
}

/* E(y) + E(1 - y) for y in the cell; E(1/2) at 1/2. */
static wide weight_of(const list *l, int cell, int basis) {
    const tk_winding *w = l->winding;
    int corner = cell / 2;
    wide sum = 0;
    for (int k = 0; k < w->carries; k++) {
        fraction x = l->ratio[k];
        int place = compare(fold(x), l->corner[corner]);
        bool below = is_upper(x) || place >= 0;
        bool half = cell == 2 * l->corners - 1;
        bool above = is_upper(x) && !half && (place < 0 || (place == 0 && cell % 2));
        sum += w->change[k][basis] * (below + above);
    }
    return sum;
}

static bool is_empty(const list *l, int cell) {
    for (int b = 0; b < l->winding->bases; b++)
        if (weight_of(l, cell, b)) return false;
    return true;
}

static void load_corners(list *l) {
    const tk_winding *w = l->winding;
    l->corners = 0;
    add_corner(l, (fraction){1, 2});
    for (int k = 0; k < w->carries; k++) {
        int64_t common = tk_gcd(w->weight[k][0], w->modulus[k]);
        l->ratio[k] = (fraction){w->weight[k][0] / common, w->modulus[k] / common};
        if (w->weight[k][0]) add_corner(l, fold(l->ratio[k]));
    }
}

static bool load(list *l, int64_t n) {
    fraction before = {0, 1};
    bool fits = true;
    l->count = 0;
    load_corners(l);
    for (int i = 0; i < l->corners && fits; i++) {
        fraction here = l->corner[i];
        gap corner = {here, here, here, false, 2 * i + 1};
        if (!is_empty(l, 2 * i)) fits = push_between(l, before, here, 2 * i, n);
        if (fits && !is_empty(l, 2 * i + 1)) fits = push(l, corner, n);
        before = here;
    }
    return fits;
}

/* Takes all fractions of the smallest denominator; *out_zero if their weights cancel. False if the
 * list gets too long. */
static bool take_denominator(list *l, int64_t n, int64_t *out_denominator, bool *out_zero) {
    wide sum[TK_LAYOUT_MAX_LEAVES] = {0}, bottom = l->heap[0].at.bottom;
    bool fits = true;
    *out_denominator = (int64_t)bottom;
    while (l->count && l->heap[0].at.bottom == bottom) {
        gap g = pop(l);
        for (int b = 0; b < l->winding->bases; b++) sum[b] += weight_of(l, g.cell, b);
        if (!g.open) continue;
        fits = fits && push_between(l, g.left, g.at, g.cell, n) &&
               push_between(l, g.at, g.right, g.cell, n);
    }
    *out_zero = true;
    for (int b = 0; b < l->winding->bases; b++) *out_zero = *out_zero && sum[b] == 0;
    return fits;
}

/* -- Entry -- */

static bool is_zero_at(const tk_winding *w, int64_t a) {
    for (int b = 0; b < w->bases; b++) {
        wide sum = 0;
        for (int k = 0; k < w->carries; k++)
            sum += w->change[k][b] * ((wide)a * w->weight[k][0] / w->modulus[k]);
        if (sum) return false;
    }
    return true;
}

int64_t tk_winding_first(const tk_winding *winding, int64_t n) {
    list l;
    int64_t denominator = 1;
    bool zero = true;
    l.winding = winding;
    bool fits = load(&l, n);
    while (fits && l.count) {
        fits = take_denominator(&l, n, &denominator, &zero);
        if (!zero) return denominator;
    }
    while (!fits && denominator < n && is_zero_at(winding, denominator)) denominator++;
    return fits ? n : denominator;
}
