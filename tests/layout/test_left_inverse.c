/* Left inverses beyond CuTe's: every small layout against a search through all chains of moduli,
 * and layouts too large to be enumerated, at random points. And what decides them: which steps lead
 * back to their start, and which chains a window of offsets leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/chain_window.h"
#include "support/layout_cases.h"

static bool is_injective(const tk_layout *layout) {
    bool injective = false;
    if (tk_layout_is_injective(layout, &injective)) fail_msg("%s", tk_error_message());
    for (int64_t i = 0; i < size_of(layout); i++)
        for (int64_t j = 0; j < i && injective; j++)
            if (value_of(layout, i) == value_of(layout, j)) fail_msg("%s", show(layout).text);
    return injective;
}

/* The answer, or the refusal, is what enumeration says. */
static void check_small(const tk_layout *a, int *found, int *refused) {
    tk_layout r;
    tk_term span;
    if (!is_injective(a)) return;
    assert_int_equal(tk_layout_cosize(a, &span), TK_OK);
    tk_status status = tk_layout_left_inverse(a, &r);
    bool exists = left_inverse_exists(a, span.value - 1);
    if (status != (exists ? TK_OK : TK_SHAPE_ERROR))
        fail_msg("left_inverse %s %s, but: %s", show(a).text, exists ? "exists" : "does not exist",
                 status ? tk_error_message() : show(&r).text);
    *(exists ? found : refused) += 1;
    for (int64_t i = 0; exists && i < size_of(a); i++)
        if (value_of(&r, value_of(a, i)) != i)
            fail_msg("left_inverse %s = %s at %d", show(a).text, show(&r).text, (int)i);
}

/* All layouts of two leaves with extents of 2 to 4 and strides up to 18. */
static void two_leaves(void **state) {
    (void)state;
    int found = 0, refused = 0;
    for (int64_t code = 0; code < 9 * 18 * 18; code++) {
        tk_layout a;
        int64_t shape[2] = {2 + code % 3, 2 + code / 3 % 3};
        int64_t stride[2] = {1 + code / 9 % 18, 1 + code / 9 / 18};
        assert_int_equal(tk_layout_from_ints(2, shape, stride, &a), TK_OK);
        check_small(&a, &found, &refused);
    }
    if (found < 800 || refused < 60) fail_msg("%d found, %d refused", found, refused);
}

/* Three leaves of 2 or 3 with strides up to 9. */
static void three_leaves(void **state) {
    (void)state;
    int found = 0, refused = 0;
    for (int64_t code = 0; code < 8 * 9 * 9 * 9; code++) {
        tk_layout a;
        int64_t shape[3] = {2 + code % 2, 2 + code / 2 % 2, 2 + code / 4 % 2};
        int64_t stride[3] = {1 + code / 8 % 9, 1 + code / 72 % 9, 1 + code / 648};
        assert_int_equal(tk_layout_from_ints(3, shape, stride, &a), TK_OK);
        check_small(&a, &found, &refused);
    }
    assert_true(found > 500 && refused > 50);
}

/* Strides that leave the ends of other leaves by little: answered or refused, never left open. */
static void large(void **state) {
    (void)state;
    static const int64_t extents[] = {2, 3, 5, 64, 100, 1024, 4096};
    static const int gaps[] = {0, 0, 0, 1, 2, 5};
    layout_rng rng = {30};
    int found = 0, refused = 0;
    for (int step = 0; step < 150; step++) {
        tk_layout a, r;
        int64_t shape[3], stride[3], reach = 1;
        int first = rng_below(&rng, 3);
        for (int i = 0; i < 3; i++) {
            int leaf = (first + i * (1 + step % 2)) % 3;
            shape[leaf] = extents[rng_below(&rng, 7)];
            reach += rng_below(&rng, 4) ? gaps[rng_below(&rng, 6)] : reach / (1 + step % 3);
            stride[leaf] = reach;
            reach *= shape[leaf];
        }
        assert_int_equal(tk_layout_from_ints(3, shape, stride, &a), TK_OK);
        tk_status status = tk_layout_left_inverse(&a, &r);
        refused += status == TK_SHAPE_ERROR;
        if (status == TK_SHAPE_ERROR) continue;
        if (status) fail_msg("left_inverse %s: %s", show(&a).text, tk_error_message());
        found++;
        check_left_inverse(&rng, &a, &r, 2000);
    }
    assert_true(found > 60 && refused > 20);
}

static void random_large(layout_rng *rng, int rank, int64_t extent, int64_t most, tk_layout *out) {
    int64_t shape[8], stride[8];
    for (int i = 0; i < rank; i++) {
        shape[i] = 2 + (int64_t)(rng_next(rng) % (uint64_t)(extent - 1));
        stride[i] = 1 + (int64_t)(rng_next(rng) % (uint64_t)most);
    }
    assert_int_equal(tk_layout_from_ints(rank, shape, stride, out), TK_OK);
}

/* Strides up to a million without any order, and offsets a few numbers apart: decided. */
static void without_order(void **state) {
    (void)state;
    layout_rng rng = {32};
    int refused = 0, collided = 0;
    for (int step = 0; step < 40; step++) {
        int64_t shape[3], stride[3];
        tk_layout a, r;
        bool injective = true;
        for (int i = 0; i < 3; i++) {
            shape[i] = 300 + rng_below(&rng, 700);
            stride[i] = 1 + rng_below(&rng, 1000000);
        }
        assert_int_equal(tk_layout_from_ints(3, shape, stride, &a), TK_OK);
        if (tk_layout_left_inverse(&a, &r) != TK_SHAPE_ERROR)
            fail_msg("left_inverse %s: %s", show(&a).text, tk_error_message());
        assert_int_equal(tk_layout_is_injective(&a, &injective), TK_OK);
        refused += injective;
        collided += !injective;
    }
    if (refused < 8 || collided < 8) fail_msg("%d refused, %d collided", refused, collided);
}

/* The moduli of a layout that is expected among the chains. */
typedef struct expected {
    const tk_layout *inverse;
    tk_offsets window;
    bool met;
} expected;

static bool is_met(void *context, const int64_t *modulus, int count) {
    expected *e = context;
    int64_t wanted = 1;
    int at = 0;
    e->met = true;
    for (int i = 0; i < e->inverse->leaf_count && wanted <= e->window.length; i++) {
        while (at < count && modulus[at] != wanted) at++;
        if (at == count) e->met = false;
        wanted *= e->inverse->leaf[i].shape.value;
    }
    return !e->met;
}

/* The chain of each known inverse is among those that the window leaves. */
static void window_keeps(void **state) {
    (void)state;
    layout_rng rng = {33};
    int met = 0;
    for (int step = 0; step < 3000; step++) {
        tk_layout a, r;
        tk_moving leaf[TK_LAYOUT_MAX_LEAVES];
        int kind = step % 3, rank = 2 + rng_below(&rng, 2);
        if (kind == 0)
            random_injective(&rng, 4096, &a);
        else
            random_large(&rng, rank, kind == 1 ? 12 : 4, kind == 1 ? 200 : 3000, &a);
        expected e = {.inverse = &r};
        if (tk_layout_left_inverse(&a, &r) != TK_OK) continue;
        int count = tk_moving_leaves(&a, leaf);
        tk_sort_moving(leaf, count);
        tk_proof proof = tk_visit_chains(leaf, count, is_met, &e, &e.window);
        if (proof == TK_PROVEN)
            fail_msg("%s has the inverse %s, which the window at %lld of length %lld refutes",
                     show(&a).text, show(&r).text, (long long)e.window.first,
                     (long long)e.window.length);
        met += e.met;
    }
    if (met < 400) fail_msg("%d met", met);
}

/* Where a sum of steps leads back by design there is a collision, and where none is found there is
 * none. */
static void planted_collisions(void **state) {
    (void)state;
    layout_rng rng = {34};
    int found = 0, none = 0;
    for (int step = 0; step < 4000; step++) {
        int64_t shape[8], stride[8], sum = 0;
        int rank = 3 + rng_below(&rng, 5);
        bool planted = step % 2, injective = planted;
        tk_layout a;
        for (int i = 0; i < rank; i++) {
            shape[i] = 2 + rng_below(&rng, planted ? 30 : 2);
            stride[i] = 1 + (int64_t)(rng_next(&rng) >> (planted ? 24 : 57));
            if (i + 1 < rank)
                sum += (rng_below(&rng, (int)(2 * shape[i]) - 1) - shape[i] + 1) * stride[i];
        }
        if (planted && sum) stride[rank - 1] = sum < 0 ? -sum : sum;
        if (planted && !sum) continue;
        if (tk_layout_from_ints(rank, shape, stride, &a) != TK_OK) continue;
        if (tk_layout_is_injective(&a, &injective)) fail_msg("%s", tk_error_message());
        if (planted && injective) fail_msg("%s is not injective", show(&a).text);
        bool truly = !planted;
        for (int64_t i = 0; !planted && i < size_of(&a); i++)
            for (int64_t j = 0; j < i && truly; j++) truly = value_of(&a, i) != value_of(&a, j);
        if (injective != truly) fail_msg("is_injective %s is %d", show(&a).text, injective);
        found += !injective;
        none += injective;
    }
    if (found < 1000 || none < 100) fail_msg("%d found, %d none", found, none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_leaves),   cmocka_unit_test(three_leaves),
        cmocka_unit_test(large),        cmocka_unit_test(without_order),
        cmocka_unit_test(window_keeps), cmocka_unit_test(planted_collisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
