/* Composition where A's strides change both ways, so that carries may cancel: 200,000 layouts
 * against the definition, what decides them (the first multiple of a step at which carries do not
 * cancel, and boxes in which they all do) against every point, and cases of up to 2^60 points
 * against random ones and ones just at a carry. Far fewer where a sanitizer makes them slow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/compose_wind.h"
#include "support/layout_cases.h"
#include "support/sanitizer.h"

#define SMALL_CASES (SUPPORT_ASAN || SUPPORT_TSAN ? 4000 : 200000)
#define LARGE_CASES (SUPPORT_ASAN || SUPPORT_TSAN ? 200 : 4000)
#define POINTS 1000

typedef __int128_t wide;

static int64_t random_bits(layout_rng *rng, int bits) {
    return bits ? (int64_t)(rng_next(rng) >> (64 - bits)) : 0;
}

static int64_t random_below(layout_rng *rng, int64_t below) {
    return (int64_t)(rng_next(rng) % (uint64_t)below);
}

/* -- Layouts against the definition -- */

/* Changes of either sign, or of one size so that they often cancel. */
static void random_left(layout_rng *rng, tk_layout *out) {
    int64_t shape[6], stride[6], change = 1 + rng_below(rng, 4);
    int rank = 2 + rng_below(rng, 5), most = 1 + rng_below(rng, 7), low = rng_below(rng, 2) * 6;
    bool even = rng_below(rng, 3) == 0;
    for (int i = 0; i < rank; i++) {
        shape[i] = 2 + rng_below(rng, most);
        stride[i] = rng_below(rng, 14) - low;
        if (even && i) stride[i] = shape[i - 1] * stride[i - 1] + (i % 2 ? change : -change);
    }
    assert_int_equal(tk_layout_from_ints(rank, shape, stride, out), TK_OK);
}

static void random_small_right(layout_rng *rng, tk_layout *out) {
    static const int extents[] = {1999, 59, 13, 6};
    int64_t shape[4], stride[4];
    int rank = 1 + rng_below(rng, 4);
    for (int i = 0; i < rank; i++) {
        shape[i] = 1 + rng_below(rng, extents[rank - 1]);
        stride[i] = rng_below(rng, rng_below(rng, 3) ? 30 : 400);
    }
    assert_int_equal(tk_layout_from_ints(rank, shape, stride, out), TK_OK);
}

/* The coordinate that a refusal names: B and A(B) are as it says, and the other value differs. */
static void check_refusal(const tk_layout *a, const tk_layout *b) {
    char coord[256] = "";
    long long index = 0, value = 0, other = 0;
    const char *at = strstr(tk_error_message(), "at c = ");
    if (!at || sscanf(at, "at c = %255s B is %lld and A(B) is %lld, but a layout would give %lld",
                      coord, &index, &value, &other) != 4)
        fail_msg("%s o %s: %s", show(a).text, show(b).text, tk_error_message());
    tk_tuple place = tuple_of(coord), reached;
    assert_int_equal(tk_layout_eval(b, &place, &reached), TK_OK);
    if (reached.leaf[0].value != index || value_of(a, index) != value || value == other)
        fail_msg("%s o %s at %s", show(a).text, show(b).text, coord);
}

static void small_layouts(void **state) {
    (void)state;
    layout_rng rng = {1};
    int answered = 0;
    for (int step = 0; step < SMALL_CASES; step++) {
        tk_layout a, b, r;
        random_left(&rng, &a);
        random_small_right(&rng, &b);
        tk_status status = tk_layout_composition(&a, &b, &r);
        bool exists = composition_exists(&a, &b);
        if (status != (exists ? TK_OK : TK_SHAPE_ERROR))
            fail_msg("%s o %s, exists: %d, %s", show(&a).text, show(&b).text, exists,
                     status ? tk_error_message() : show(&r).text);
        answered += exists;
        if (!exists) check_refusal(&a, &b);
        for (int64_t i = 0; exists && i < size_of(&b); i++)
            if (value_of(&r, i) != value_of(&a, value_of(&b, i)))
                fail_msg("%s o %s = %s", show(&a).text, show(&b).text, show(&r).text);
    }
    if (answered < SMALL_CASES / 20) fail_msg("%d answered", answered);
}

/* -- Windings -- */

/* How large cases are: bits of a ratio of moduli, of a step's extent, of all points. */
typedef struct scale {
    int carries, steps, ratio_bits, extent_bits, point_bits;
} scale;

/* A step that carries alike in neighbours, or not; at simple fractions of the first modulus, or
 * anywhere. */
static int64_t random_step(layout_rng *rng, const tk_winding *w, const bool *alike) {
    int64_t u = 0, below = 1, kind = rng_below(rng, 3), parts = 2 + rng_below(rng, 9);
    for (int k = 0; k < w->carries; k++) {
        int64_t ratio = w->modulus[k] / below, digit = random_below(rng, ratio);
        if (k == 0 && kind == 1)
            digit = (int64_t)((wide)ratio * (1 + rng_below(rng, (int)parts - 1)) / parts) +
                    rng_below(rng, 3) - 1;
        if (k == 0 && kind == 2) digit = 1 + rng_below(rng, 6);
        if (k > 0 && alike[k])
            digit = (int64_t)(((wide)u * (ratio - 1) + below / 2) / below) +
                    (rng_below(rng, 4) == 0) * (rng_below(rng, 3) - 1);
        if (digit < 0) digit = 0;
        if (digit >= ratio) digit = ratio - 1;
        u += digit * below;
        below = w->modulus[k];
    }
    return u;
}

static void random_carries(layout_rng *rng, const scale *size, tk_winding *out, bool *alike) {
    int64_t modulus = 1, sum = 0;
    int carries = 2 + rng_below(rng, size->carries - 1);
    memset(out, 0, sizeof *out);
    out->bases = 1;
    while (out->carries < carries) {
        int64_t ratio = 2 + random_bits(rng, 1 + rng_below(rng, size->ratio_bits));
        if ((wide)modulus * ratio > (wide)1 << 60) break;
        out->modulus[out->carries++] = modulus *= ratio;
    }
    for (int k = 0; k < out->carries; k++) {
        int64_t change = (rng_below(rng, 2) ? 1 : -1) * (1 + rng_below(rng, 2));
        alike[k] = k > 0 && rng_below(rng, 3) > 0;
        if (sum && (alike[k] || k + 1 == out->carries)) change = -sum;
        out->change[k][0] = change;
        sum += change;
    }
}

/* Extents whose products and reach stay in range. */
static void random_winding(layout_rng *rng, const scale *size, tk_winding *out, int64_t *extent) {
    bool alike[TK_LAYOUT_MAX_LEAVES];
    int64_t points = 1;
    wide span = 0;
    random_carries(rng, size, out, alike);
    int steps = 1 + rng_below(rng, size->steps);
    for (; out->steps < steps; out->steps++) {
        int j = out->steps;
        int64_t u = random_step(rng, out, alike), left = ((int64_t)1 << size->point_bits) / points;
        for (int k = 0; k < out->carries; k++) out->weight[k][j] = u % out->modulus[k];
        extent[j] = 2 + random_bits(rng, 1 + rng_below(rng, size->extent_bits));
        if (extent[j] > left) extent[j] = left > 1 ? left : 1;
        while (span + (wide)(extent[j] - 1) * u > (wide)1 << 62) extent[j] = (extent[j] + 1) / 2;
        span += (wide)(extent[j] - 1) * u;
        points *= extent[j];
    }
}

static bool cancels_at(const tk_winding *w, const int64_t *a) {
    wide sum = 0;
    for (int k = 0; k < w->carries; k++) {
        wide x = 0;
        for (int j = 0; j < w->steps; j++) x += (wide)a[j] * w->weight[k][j];
        sum += w->change[k][0] * (x / w->modulus[k]);
    }
    return sum == 0;
}

static bool next_point(const tk_winding *w, const int64_t *extent, int64_t *a) {
    for (int j = 0; j < w->steps; j++) {
        if (++a[j] < extent[j]) return true;
        a[j] = 0;
    }
    return false;
}

/* The next point, a random one, or one just past a carry of one step. */
static void carry_point(layout_rng *rng, const tk_winding *w, const int64_t *extent, int64_t *a) {
    int k = rng_below(rng, w->carries), j = rng_below(rng, w->steps);
    int64_t weight = w->weight[k][j], p = w->modulus[k];
    wide others = 0;
    for (int i = 0; i < w->steps; i++) {
        a[i] = random_below(rng, extent[i]);
        if (rng_below(rng, 4) == 0) a[i] = extent[i] - 1;
        if (rng_below(rng, 4) == 0) a[i] %= 8;
        if (i != j) others += (wide)a[i] * w->weight[k][i];
    }
    if (weight == 0 || rng_below(rng, 2)) return;
    wide multiple = (others + (wide)a[j] * weight) / p;
    wide least = multiple * p > others ? (multiple * p - others + weight - 1) / weight : 0;
    if (least < extent[j]) a[j] = (int64_t)least;
}

static void small_windings(void **state) {
    (void)state;
    static const scale size = {5, 4, 4, 5, 10};
    static tk_winding w;
    layout_rng rng = {2};
    int cancel = 0;
    for (int step = 0; step < SMALL_CASES; step++) {
        int64_t extent[8], found[8], a[8] = {0};
        random_winding(&rng, &size, &w, extent);
        tk_proof proof = tk_winding_cancels(&w, extent, found);
        assert_int_not_equal(proof, TK_OPEN);
        if (proof == TK_REFUTED) {
            for (int j = 0; j < w.steps; j++) assert_in_range(found[j], 0, extent[j] - 1);
            assert_false(cancels_at(&w, found));
            continue;
        }
        cancel++;
        do
            if (!cancels_at(&w, a)) fail_msg("case %d", step);
        while (next_point(&w, extent, a));
    }
    if (cancel < SMALL_CASES / 10) fail_msg("%d cancel", cancel);
}

static void first_multiples(void **state) {
    (void)state;
    static const scale size = {5, 1, 5, 11, 12}, large = {6, 1, 30, 40, 60};
    static tk_winding w;
    layout_rng rng = {3};
    int early = 0;
    for (int step = 0; step < SMALL_CASES; step++) {
        bool is_small = step % 8 != 0;
        int64_t n, a = 1;
        random_winding(&rng, is_small ? &size : &large, &w, &n);
        int64_t first = tk_winding_first(&w, n);
        while (is_small && a < n && cancels_at(&w, &a)) a++;
        if (is_small) assert_int_equal(first, a);
        assert_true(first <= n && (first == n || !cancels_at(&w, &first)));
        for (int i = 0; !is_small && first > 1 && i < 100; i++) {
            carry_point(&rng, &w, &first, &a);
            if (!cancels_at(&w, &a)) fail_msg("case %d at %lld", step, (long long)a);
        }
        early += first < n;
    }
    if (early < SMALL_CASES / 10) fail_msg("%d are early", early);
}

static void check_large(layout_rng *rng, const scale *size, int *cancel) {
    static tk_winding w;
    int64_t extent[40], found[40], a[40];
    random_winding(rng, size, &w, extent);
    tk_proof proof = tk_winding_cancels(&w, extent, found);
    assert_int_not_equal(proof, TK_OPEN);
    for (int j = 0; j < w.steps && proof == TK_REFUTED; j++)
        assert_true(found[j] >= 0 && found[j] < extent[j]);
    if (proof == TK_REFUTED) assert_false(cancels_at(&w, found));
    *cancel += proof == TK_PROVEN;
    for (int i = 0; proof == TK_PROVEN && i < POINTS; i++) {
        carry_point(rng, &w, extent, a);
        if (!cancels_at(&w, a)) fail_msg("a point between does not cancel");
    }
}

static void large_windings(void **state) {
    (void)state;
    static const scale sizes[] = {
        {5, 4, 20, 30, 40}, {3, 8, 20, 30, 50}, {8, 16, 8, 3, 60}, {10, 24, 4, 3, 60}};
    layout_rng rng = {4};
    int cancel = 0;
    for (int step = 0; step < LARGE_CASES; step++) check_large(&rng, &sizes[step % 4], &cancel);
    if (cancel < LARGE_CASES / 40) fail_msg("%d cancel", cancel);
}

/* -- The subset sum problem: leaves 2:s_j (T + 1) have a layout exactly if no s_j sum to T. -- */

static tk_status compose_sums(int64_t total, const int64_t *part, int parts) {
    int64_t shape[64] = {total, total + 2, 1}, stride[64] = {1, total + 1};
    tk_layout a, b, r;
    stride[2] = (total + 2) * (total + 1) - 1;
    assert_int_equal(tk_layout_from_ints(3, shape, stride, &a), TK_OK);
    for (int j = 0; j < parts; j++) {
        shape[j] = 2;
        stride[j] = part[j] * (total + 1);
    }
    assert_int_equal(tk_layout_from_ints(parts, shape, stride, &b), TK_OK);
    tk_status status = tk_layout_composition(&a, &b, &r);
    if (status == TK_SHAPE_ERROR) check_refusal(&a, &b);
    return status;
}

static bool some_sum(int64_t total, const int64_t *part, int parts) {
    static bool reached[1 << 17];
    memset(reached, 0, sizeof reached);
    reached[0] = true;
    for (int j = 0; j < parts; j++)
        for (int64_t sum = total; sum >= part[j]; sum--) reached[sum] |= reached[sum - part[j]];
    return reached[total];
}

static void subset_sums(void **state) {
    (void)state;
    layout_rng rng = {5};
    int found = 0, none = 0;
    for (int step = 0; step < 40; step++) {
        int64_t total = 60000 + 2 * rng_below(&rng, 20000) + 1, part[24], sum = 0;
        int parts = 10 + rng_below(&rng, 8);
        bool even = step % 4 == 0;
        for (int j = 0; j < parts; j++) {
            part[j] = 2 + random_below(&rng, (2 * total - sum) / 2 < total / 8 ? 2 : total / 4);
            if (even) part[j] &= ~(int64_t)1;
            sum += part[j];
        }
        if (sum >= 2 * total) continue;
        bool exists = some_sum(total, part, parts);
        assert_int_equal(compose_sums(total, part, parts), exists ? TK_SHAPE_ERROR : TK_OK);
        found += exists;
        none += !exists;
    }
    if (found < 3 || none < 3) fail_msg("%d have a sum, %d have none", found, none);
}

/* 30 even parts and an odd total near 2^28, 22 parts and a total near 2^30: no table could hold
 * their sums. */
static void large_sums(void **state) {
    (void)state;
    layout_rng rng = {6};
    int64_t part[30];
    for (int j = 0; j < 30; j++) part[j] = 2 * (8000000 + rng_below(&rng, 500000));
    assert_int_equal(compose_sums(((int64_t)1 << 28) + 1, part, 30), TK_OK);
    for (int j = 0; j < 22; j++) part[j] = 90000000 + rng_below(&rng, 5000000);
    int64_t total = 0;
    for (int j = 0; j < 22; j += 2) total += part[j];
    assert_int_equal(compose_sums(total, part, 22), TK_SHAPE_ERROR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_layouts),   cmocka_unit_test(small_windings),
        cmocka_unit_test(first_multiples), cmocka_unit_test(large_windings),
        cmocka_unit_test(subset_sums),     cmocka_unit_test(large_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
