/* What is refused has no answer. Composition, divides and complements are compared with searches
 * through all candidates: every way to split each mode into leaves, with the strides that the
 * values then force; and for complements the only set of offsets that could be one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/layout_cases.h"
#include "support/sanitizer.h"

#define CASES (SUPPORT_ASAN || SUPPORT_TSAN ? 5000 : 200000)
#define MAX_POINTS 4096

/* A function of the coordinates of some modes, known at some of them. */
typedef struct table {
    int64_t points, value[MAX_POINTS];
    bool known[MAX_POINTS];
    int modes, digits;
    int64_t extent[16], digit[32];
} table;

/* The digits fit the values. The stride of a digit is the value at its unit, or if that is not
 * known what the first point with no other unknown digit says. */
static bool digits_fit(const table *t) {
    int64_t stride[32], prefix = 1;
    bool known[32];
    for (int i = 0; i < t->digits; i++) {
        known[i] = t->known[prefix];
        stride[i] = known[i] ? t->value[prefix] : 0;
        prefix *= t->digit[i];
    }
    for (int64_t pass = 0; pass < 2 * t->points; pass++) {
        int64_t point = pass % t->points, rest = point, sum = 0, steps = 0;
        int unknown = 0, which = 0;
        if (!t->known[point]) continue;
        for (int i = 0; i < t->digits; i++) {
            int64_t digit = rest % t->digit[i];
            rest /= t->digit[i];
            sum += digit * stride[i];
            if (digit == 0 || known[i]) continue;
            unknown++;
            which = i;
            steps = digit;
        }
        int64_t missing = t->value[point] - sum;
        if (unknown == 0 && missing) return false;
        if (unknown != 1) continue;
        if (missing % steps) return false;
        stride[which] = missing / steps;
        known[which] = true;
    }
    return true;
}

/* Splits what is left of a mode, then the modes after it, in all ways. */
static bool has_layout(table *t, int mode, int64_t rest) {
    if (rest == 1)
        return mode + 1 >= t->modes ? digits_fit(t) : has_layout(t, mode + 1, t->extent[mode + 1]);
    for (int64_t digit = 2; digit <= rest; digit++) {
        if (rest % digit) continue;
        t->digit[t->digits++] = digit;
        bool found = has_layout(t, mode, rest / digit);
        t->digits--;
        if (found) return true;
    }
    return false;
}

static bool any_layout(table *t) {
    t->digits = 0;
    return t->modes == 0 || has_layout(t, 0, t->extent[0]);
}

static void add_modes(table *t, const tk_layout *layout) {
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].shape.value > 1) t->extent[t->modes++] = layout->leaf[i].shape.value;
}

static void compositions(void **state) {
    (void)state;
    static table t;
    layout_rng rng = {1};
    int answered = 0;
    for (int step = 0; step < CASES; step++) {
        tk_layout a, b, r;
        random_layout(&rng, 48, &a);
        random_layout(&rng, step % 16 ? 24 : 96, &b);
        if (step % 3 == 0) {
            int64_t shape[2] = {1 + rng_below(&rng, 12), 1 + rng_below(&rng, 5)};
            int64_t stride[2] = {rng_below(&rng, 12), rng_below(&rng, 24)};
            assert_int_equal(tk_layout_from_ints(2, shape, stride, &b), TK_OK);
        }
        t.points = size_of(&b);
        t.modes = 0;
        add_modes(&t, &b);
        for (int64_t i = 0; i < t.points; i++) {
            t.known[i] = true;
            t.value[i] = value_of(&a, value_of(&b, i));
        }
        bool exists = any_layout(&t);
        tk_status status = tk_layout_composition(&a, &b, &r);
        if (status != (exists ? TK_OK : TK_SHAPE_ERROR))
            fail_msg("%s o %s exists: %d, %s", show(&a).text, show(&b).text, exists,
                     tk_error_message());
        answered += exists;
    }
    if (answered < CASES / 4 || answered > CASES - CASES / 10)
        fail_msg("%d of %d", answered, CASES);
}

/* Values of A at the tile and the rest, those past A's end unknown; false if there are too many. */
static bool load_divide(const tk_layout *a, const tk_layout *b, const tk_layout *rest, table *t) {
    int64_t tile = size_of(b), tiles = size_of(rest), size = size_of(a);
    t->points = tile * tiles;
    t->modes = 0;
    if (t->points > MAX_POINTS) return false;
    add_modes(t, b);
    if (tiles > 1) t->extent[t->modes++] = tiles;
    for (int64_t i = 0; i < t->points; i++) {
        int64_t index = value_of(b, i % tile) + value_of(rest, i / tile);
        t->known[i] = index < size;
        t->value[i] = t->known[i] ? value_of(a, index) : 0;
    }
    return true;
}

/* A refused divide has no layout for the tile's leaves and any split of the tiles, also if only
 * what A has counts. */
static void divides(void **state) {
    (void)state;
    static table t;
    layout_rng rng = {2};
    int refused = 0, past = 0;
    for (int step = 0; step < CASES; step++) {
        tk_layout a, b, rest, r;
        int64_t shape[2] = {1 + rng_below(&rng, 5), 1 + rng_below(&rng, 3)};
        int64_t stride[2] = {1 + rng_below(&rng, 6), 1 + rng_below(&rng, 12)};
        random_layout(&rng, 32, &a);
        assert_int_equal(tk_layout_from_ints(1 + rng_below(&rng, 2), shape, stride, &b), TK_OK);
        if (tk_layout_logical_divide(&a, &b, &r) == TK_OK) continue;
        if (tk_layout_complement(&b, tk_term_int(size_of(&a)), &rest) != TK_OK) continue;
        if (!load_divide(&a, &b, &rest, &t)) continue;
        if (any_layout(&t))
            fail_msg("%s divided by %s: %s", show(&a).text, show(&b).text, tk_error_message());
        refused++;
        past += t.points > size_of(&a);
    }
    if (refused < CASES / 40 || past < CASES / 100) fail_msg("%d refused, %d past", refused, past);
}

/* The smallest offset that is not reached yet must start a copy. Is every offset up to `most`
 * reached once by that? */
static bool tiles_all(const tk_layout *layout, int64_t most, int64_t span) {
    static bool reached[1 << 14];
    int64_t size = size_of(layout);
    memset(reached, 0, (size_t)(most + span));
    for (int64_t start = 0; start < most; start++) {
        if (reached[start]) continue;
        for (int64_t i = 0; i < size; i++) {
            int64_t offset = start + value_of(layout, i);
            if (reached[offset]) return false;
            reached[offset] = true;
        }
    }
    return true;
}

static void complements(void **state) {
    (void)state;
    layout_rng rng = {3};
    int answered = 0;
    for (int step = 0; step < CASES; step++) {
        tk_layout a, moving, r;
        tk_term span;
        int64_t shape[3], stride[3], target = 1 + rng_below(&rng, 100);
        for (int i = 0; i < 3; i++) {
            shape[i] = 1 + rng_below(&rng, 4);
            stride[i] = rng_below(&rng, 20);
        }
        assert_int_equal(tk_layout_from_ints(1 + rng_below(&rng, 3), shape, stride, &a), TK_OK);
        if (step % 2) random_layout(&rng, 32, &a);
        assert_int_equal(tk_layout_filter(&a, &moving), TK_OK);
        assert_int_equal(tk_layout_cosize(&a, &span), TK_OK);
        int64_t most = target > span.value ? target : span.value;
        if (most + span.value > 1 << 14) continue;
        bool exists = tiles_all(&moving, most, span.value);
        tk_status status = tk_layout_complement(&a, tk_term_int(target), &r);
        if (status != (exists ? TK_OK : TK_SHAPE_ERROR))
            fail_msg("complement of %s exists: %d", show(&a).text, exists);
        answered += exists;
    }
    if (answered < CASES / 4 || answered > CASES * 9 / 10) fail_msg("%d answered", answered);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compositions),
        cmocka_unit_test(divides),
        cmocka_unit_test(complements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
