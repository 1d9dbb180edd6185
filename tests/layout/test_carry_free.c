/* Left inverses without carries: a layout that is made to have one is inverted, with strides to
 * 10^9 each, and nearly each beyond; and the moduli that carry nowhere are those that a look at
 * each modulus finds. */
#include <stdlib.h>

#include "layout/carry_free.h"
#include "layout/lattice.h"
#include "support/layout_cases.h"

#define LEVELS 6

/* A number below 2^bits, small ones as likely as large ones. */
static int64_t number(layout_rng *rng, int bits) {
    return (int64_t)(rng_next(rng) >> (64 - 1 - rng_below(rng, bits)));
}

/* Moduli modulus[0] = 1 | modulus[1] | ..., and strides with so small digits in them that no sum of
 * steps carries. The highest digit of each leaf is 1 and at another place, so the equations of the
 * leaves are solved from below. False if the moduli or the size grow too large. */
static bool make_carry_free(layout_rng *rng, int leaves, int bits, int64_t *shape,
                            int64_t *stride) {
    int64_t digit[LEVELS][LEVELS] = {{0}}, modulus = 1;
    int spare = LEVELS - leaves, level = 0;
    for (int i = 0; i < leaves; i++) {
        int skipped = rng_below(rng, spare + 1);
        level += skipped;
        spare -= skipped;
        shape[i] = 2 + number(rng, bits);
        for (int k = 0; k < level; k++) digit[i][k] = rng_below(rng, 3) ? 0 : number(rng, bits);
        digit[i][level++] = 1;
        stride[i] = 0;
    }
    for (int k = 0; k < level; k++) {
        int64_t reached = 1;
        for (int i = 0; i < leaves; i++) {
            stride[i] += digit[i][k] * modulus;
            reached += (shape[i] - 1) * digit[i][k];
        }
        if (modulus > ((int64_t)1 << 58) / (reached + 64)) return false;
        modulus *= reached + number(rng, 6);
    }
    return true;
}

static void shuffle(layout_rng *rng, int count, int64_t *shape, int64_t *stride) {
    for (int i = count - 1; i > 0; i--) {
        int k = rng_below(rng, i + 1);
        int64_t extent = shape[i], step = stride[i];
        shape[i] = shape[k];
        stride[i] = stride[k];
        shape[k] = extent;
        stride[k] = step;
    }
}

static void made_to_be_inverted(void **state) {
    (void)state;
    layout_rng rng = {40};
    int inverted = 0, large = 0, open = 0;
    for (int step = 0; step < 700; step++) {
        int64_t shape[LEVELS], stride[LEVELS], most = 0;
        int leaves = 2 + rng_below(&rng, 3);
        tk_layout a, r;
        if (!make_carry_free(&rng, leaves, 2 + rng_below(&rng, 10), shape, stride)) continue;
        shuffle(&rng, leaves, shape, stride);
        for (int i = 0; i < leaves; i++) most = stride[i] > most ? stride[i] : most;
        if (most > 1000000000000 && step % 8) continue;
        assert_int_equal(tk_layout_from_ints(leaves, shape, stride, &a), TK_OK);
        tk_status status = tk_layout_left_inverse(&a, &r);
        open += status == TK_UNSUPPORTED && most > 1000000000;
        if (status == TK_UNSUPPORTED && most > 1000000000) continue;
        if (status) fail_msg("left_inverse %s: %s", show(&a).text, tk_error_message());
        check_left_inverse(&rng, &a, &r, 200);
        inverted++;
        large += most > 1000000;
    }
    if (inverted < 500 || large < 150 || open > 5)
        fail_msg("%d inverted, %d large, %d open", inverted, large, open);
}

static bool carries(const tk_moving *leaf, int count, int64_t modulus) {
    int64_t rest = 0;
    for (int i = 0; i < count; i++)
        rest += (leaf[i].leaf.shape.value - 1) * (leaf[i].leaf.stride.value % modulus);
    return rest >= modulus;
}

/* Does a chain that goes on from this one, with its equations, give each leaf its step? */
static bool some_chain_solves(const tk_moving *leaf, int count, int64_t *chain, int depth,
                              int64_t most) {
    tk_lattice strides;
    bool solved = true;
    tk_lattice_clear(&strides);
    for (int i = 0; i < depth; i++) tk_lattice_extend(&strides);
    for (int j = 0; j < count && solved; j++) {
        int64_t row[TK_LATTICE_MAX];
        for (int i = 0; i < depth; i++) row[i] = leaf[j].leaf.stride.value / chain[i];
        solved = tk_lattice_require(&strides, row, leaf[j].prefix);
    }
    int64_t last = chain[depth - 1];
    for (int64_t next = 2 * last; next <= most && !solved; next += last) {
        if (carries(leaf, count, next)) continue;
        chain[depth] = next;
        solved = some_chain_solves(leaf, count, chain, depth + 1, most);
    }
    return solved;
}

typedef struct visited {
    const tk_moving *leaf;
    int leaves, chains;
} visited;

static bool see(void *context, const int64_t *modulus, int count) {
    visited *v = context;
    int64_t chain[TK_LATTICE_MAX];
    assert_int_equal(modulus[0], 1);
    for (int i = 0; i < count; i++) {
        assert_false(carries(v->leaf, v->leaves, modulus[i]));
        assert_true(i == 0 || modulus[i] % modulus[i - 1] == 0);
        chain[i] = modulus[i];
    }
    assert_true(some_chain_solves(v->leaf, v->leaves, chain, count, 0));
    v->chains++;
    return false;
}

/* What is visited inverts without carries, and where nothing is, nothing does. */
static void same_as_each_modulus(void **state) {
    (void)state;
    layout_rng rng = {41};
    int some = 0, none = 0;
    for (int step = 0; step < 20000; step++) {
        int64_t shape[4], stride[4], chain[TK_LATTICE_MAX] = {1};
        int leaves = 1 + rng_below(&rng, 4);
        tk_moving leaf[TK_LAYOUT_MAX_LEAVES];
        tk_layout a;
        for (int i = 0; i < leaves; i++) {
            shape[i] = 2 + number(&rng, 5);
            stride[i] = 1 + number(&rng, 9);
        }
        assert_int_equal(tk_layout_from_ints(leaves, shape, stride, &a), TK_OK);
        assert_int_equal(tk_moving_leaves(&a, leaf), leaves);
        tk_sort_moving(leaf, leaves);
        visited v = {leaf, leaves, 0};
        tk_proof proof = tk_visit_carry_free(leaf, leaves, see, &v);
        bool solved = some_chain_solves(leaf, leaves, chain, 1, leaf[leaves - 1].leaf.stride.value);
        if (proof != (solved ? TK_REFUTED : TK_PROVEN) || v.chains != solved)
            fail_msg("%s: proof %d, %d chains, by each modulus %d", show(&a).text, (int)proof,
                     v.chains, solved);
        some += solved;
        none += !solved;
    }
    if (some < 2000 || none < 2000) fail_msg("%d some, %d none", some, none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_to_be_inverted),
        cmocka_unit_test(same_as_each_modulus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
