/* Injectivity of layouts with more leaves than lattice reduction proves at once, and the widest
 * common vector where it ends inside a block: against all offsets. */
#include <stdio.h>
#include <stdlib.h>

#include "support/layout_cases.h"

#define HALF 13

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Are all sums of leaves 2:stride different? */
static bool sums_differ(const int64_t *stride) {
    static int64_t sum[1 << HALF];
    for (int j = 0; j < HALF; j++)
        for (int i = 0; i < 1 << j; i++) sum[(1 << j) + i] = sum[i] + stride[j];
    qsort(sum, 1 << HALF, sizeof *sum, compare);
    for (int i = 1; i < 1 << HALF; i++)
        if (sum[i] == sum[i - 1]) return false;
    return true;
}

/* 13 leaves without any order, and 13 whose strides are multiples of more than these reach. */
static void two_groups(void **state) {
    (void)state;
    layout_rng rng = {1};
    int injective = 0, cases = 60;
    for (int step = 0; step < cases; step++) {
        int64_t shape[2 * HALF], low[HALF], high[HALF], stride[2 * HALF], reach = 0;
        int bits = 20 + step % 4 * 2;
        for (int j = 0; j < HALF; j++) {
            low[j] = 1 + (int64_t)(rng_next(&rng) >> (64 - bits));
            high[j] = 1 + (int64_t)(rng_next(&rng) >> (64 - bits));
            reach += low[j];
        }
        for (int j = 0; j < HALF; j++) {
            shape[2 * j] = shape[2 * j + 1] = 2;
            stride[2 * j] = (rng_below(&rng, 2) ? 1 : -1) * high[j] * (reach + 1);
            stride[2 * j + 1] = low[j];
        }
        tk_layout a;
        bool found = false, truly = sums_differ(low) && sums_differ(high);
        assert_int_equal(tk_layout_from_ints(2 * HALF, shape, stride, &a), TK_OK);
        if (tk_layout_is_injective(&a, &found)) fail_msg("%s", tk_error_message());
        if (found != truly) fail_msg("is_injective %s is %d", show(&a).text, found);
        injective += found;
    }
    if (injective < 5 || injective > cases - 5) fail_msg("%d of %d", injective, cases);
}

/* Where two sides of some leaves have one sum by design. */
static void planted(void **state) {
    (void)state;
    layout_rng rng = {2};
    for (int step = 0; step < 40; step++) {
        int64_t shape[40], stride[40], sum = 0;
        int count = 25 + step % 16;
        for (int j = 0; j < count; j++) {
            shape[j] = 2;
            stride[j] = 1 + (int64_t)(rng_next(&rng) >> 30);
            if (j > 0 && j < 9) sum += (rng_below(&rng, 3) - 1) * stride[j];
        }
        if (sum) stride[0] = sum < 0 ? -sum : sum;
        tk_layout a;
        bool injective = true;
        assert_int_equal(tk_layout_from_ints(count, shape, stride, &a), TK_OK);
        if (tk_layout_is_injective(&a, &injective)) fail_msg("%s", tk_error_message());
        if (sum && injective) fail_msg("%s is not injective", show(&a).text);
    }
}

/* A few leaves one after another, with a gap here and there. */
static void random_padded(layout_rng *rng, tk_layout *out) {
    int64_t shape[4], stride[4], next = 1;
    int rank = 1 + rng_below(rng, 4);
    for (int j = 0; j < rank; j++) {
        shape[j] = 1 + rng_below(rng, 6);
        stride[j] = next;
        next = next * shape[j] + (rng_below(rng, 4) == 0);
    }
    assert_int_equal(tk_layout_from_ints(rank, shape, stride, out), TK_OK);
}

/* Both take (k + 1) i to i, and 1 to m; a ends earlier. */
static void random_slanted(layout_rng *rng, tk_layout *a, tk_layout *b) {
    int64_t k = 2 + rng_below(rng, 6), m = 2 + rng_below(rng, 6);
    int64_t ends[2] = {k, 1 + rng_below(rng, (int)(2 * k))}, down[2] = {m, 1 - m};
    int64_t whole[2] = {k + 1, m}, across[2] = {m, 1};
    assert_int_equal(tk_layout_from_ints(2, ends, down, a), TK_OK);
    assert_int_equal(tk_layout_from_ints(2, whole, across, b), TK_OK);
}

static void common_vectors(void **state) {
    (void)state;
    layout_rng rng = {3};
    int inside = 0;
    for (int step = 0; step < 200000; step++) {
        tk_layout a, b, inverse;
        int64_t width = 0, common = 0, block = 1;
        random_padded(&rng, &a);
        random_padded(&rng, &b);
        if (step % 3 == 0) random_injective(&rng, 96, &b);
        if (step % 4 == 0) random_layout(&rng, 96, &a);
        if (step % 5 == 0) random_slanted(&rng, &a, &b);
        if (tk_layout_max_common_vector(&a, &b, &width)) fail_msg("%s", tk_error_message());
        assert_int_equal(tk_layout_right_inverse(&b, &inverse), TK_OK);
        for (; common < size_of(&inverse); common++) {
            int64_t place = value_of(&inverse, common);
            if (place >= size_of(&a) || value_of(&a, place) != common) break;
        }
        if (width != (common ? common : 1))
            fail_msg("common vector of %s and %s: %lld, not %lld", show(&a).text, show(&b).text,
                     (long long)width, (long long)common);
        for (int j = 0; j < inverse.leaf_count && block < width; j++) {
            if (width % block) inside++;
            block *= inverse.leaf[j].shape.value;
        }
    }
    if (inside < 1000) fail_msg("%d end inside a block", inside);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_groups),
        cmocka_unit_test(planted),
        cmocka_unit_test(common_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
