/* Left inverses beyond CuTe's: every small layout against a search through all chains of moduli,
 * and layouts too large to be enumerated, at random points. */
#include <stdio.h>
#include <string.h>

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
        for (int trial = 0; trial < 2000; trial++) {
            int64_t i = (int64_t)(rng_next(&rng) % (uint64_t)size_of(&a));
            if (value_of(&r, value_of(&a, i)) != i)
                fail_msg("left_inverse %s = %s at %lld", show(&a).text, show(&r).text,
                         (long long)i);
        }
    }
    assert_true(found > 60 && refused > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_leaves),
        cmocka_unit_test(three_leaves),
        cmocka_unit_test(large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
