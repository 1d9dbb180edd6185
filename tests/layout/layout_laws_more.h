/* The laws of the smaller operations: measures, tuples, picking and padding modes, tiles, composed
 * layouts, banks. As layout_laws.h, by enumeration on LAW_CASES random cases each, checked against
 * plain loops over leaves and points. Included by layout_laws.h only, behind its macros. */
#ifndef LAYOUT_LAWS_MORE_H
#define LAYOUT_LAWS_MORE_H

#include "tiki/layout_draw.h"

/* -- Trees, read from the bytes that layout.h describes -- */

/* Nodes and leaves of the subtree at `node`. */
static void measure_tree(const uint8_t *node, int *nodes, int *leaves) {
    *nodes = 1;
    *leaves = *node == TK_NODE_LEAF;
    for (int i = 0; *node != TK_NODE_LEAF && i < *node; i++) {
        int inner_nodes, inner_leaves;
        measure_tree(node + *nodes, &inner_nodes, &inner_leaves);
        *nodes += inner_nodes;
        *leaves += inner_leaves;
    }
}

static int depth_of(const uint8_t *node) {
    int deepest = 0, at = 1;
    if (*node == TK_NODE_LEAF) return 0;
    for (int i = 0; i < *node; i++) {
        int nodes, leaves, depth = depth_of(node + at);
        measure_tree(node + at, &nodes, &leaves);
        if (depth > deepest) deepest = depth;
        at += nodes;
    }
    return deepest + 1;
}

/* Modes of a layout as (first leaf, number of leaves, size, size of the modes before it). */
typedef struct mode_view {
    int first, leaves;
    int64_t size, prefix;
} mode_view;

static int view_modes(const tk_layout *layout, mode_view *out) {
    int rank = layout->node[0] == TK_NODE_LEAF ? 1 : layout->node[0], leaf = 0;
    const uint8_t *node = layout->node + (layout->node[0] != TK_NODE_LEAF);
    int64_t prefix = 1;
    for (int i = 0; i < rank; i++) {
        int nodes;
        measure_tree(node, &nodes, &out[i].leaves);
        out[i].first = leaf;
        out[i].prefix = prefix;
        out[i].size = 1;
        for (int j = leaf; j < leaf + out[i].leaves; j++)
            out[i].size *= layout->leaf[j].shape.value;
        prefix *= out[i].size;
        leaf += out[i].leaves;
        node += nodes;
    }
    return rank;
}

/* Is `mode` this mode of `layout`, leaf by leaf and point by point? */
static void check_mode(const tk_layout *mode, const tk_layout *layout, const mode_view *view) {
    EXPECT(mode->leaf_count == view->leaves && size_of(mode) == view->size, "a mode of %s: %s",
           show(layout).text, show(mode).text);
    for (int64_t i = 0; i < view->size; i++)
        EXPECT(value_of(mode, i) == value_of(layout, i * view->prefix), "a mode of %s: %s",
               show(layout).text, show(mode).text);
}

/* -- Measures -- */

static void law_measures(void **state) {
    (void)state;
    FOR_CASES(101) {
        tk_layout a, again;
        tk_term size, span;
        tk_tuple shape, stride, back;
        random_layout(&rng, pick_limit(&rng), &a);
        for (int i = 0; rng_below(&rng, 4) == 0 && i < a.leaf_count; i++)
            a.leaf[i].stride.value *= -1;
        EXPECT_OK(tk_layout_size(&a, &size), "size %s", show(&a).text);
        EXPECT_OK(tk_layout_cosize(&a, &span), "cosize %s", show(&a).text);
        int64_t least = 0, most = 0, count = 0;
        for (; count < size_of(&a); count++) {
            int64_t value = value_of(&a, count);
            if (value < least) least = value;
            if (value > most) most = value;
        }
        EXPECT(size.value == count && span.value == most - least + 1, "measures of %s",
               show(&a).text);
        EXPECT(tk_layout_depth(&a) == depth_of(a.node), "depth %s", show(&a).text);
        EXPECT(tk_layout_rank(&a) == (a.node[0] == TK_NODE_LEAF ? 1 : a.node[0]), "rank %s",
               show(&a).text);
        tk_layout_shape(&a, &shape);
        tk_layout_stride(&a, &stride);
        EXPECT_OK(tk_layout_make(&shape, &stride, &again), "make %s", show(&a).text);
        EXPECT(tk_layout_equal(&a, &again) && tk_layout_hash(&a) == tk_layout_hash(&again),
               "made again %s", show(&a).text);
        EXPECT_OK(tk_layout_from_shape(&shape, &again), "compact %s", show(&a).text);
        for (int64_t i = 0; i < count; i++)
            EXPECT(value_of(&again, i) == i, "compact %s", show(&again).text);
        EXPECT_OK(tk_layout_make_identity(&shape, &again), "identity %s", show(&a).text);
        tk_tuple at = {0}, coord;
        tk_tuple_from_term(tk_term_int(rng_below(&rng, (int)count)), &at);
        EXPECT_OK(tk_idx2crd(&at, &shape, &coord), "idx2crd %s", show(&a).text);
        EXPECT_OK(tk_layout_eval(&again, &at, &back), "identity %s", show(&again).text);
        EXPECT(tk_tuple_equal(&coord, &back), "identity %s", show(&again).text);
    }
}

/* -- Tuples -- */

/* A tuple of the same tree with small numbers. */
static void random_like(layout_rng *rng, const tk_tuple *tuple, int least, int below,
                        tk_tuple *out) {
    tk_tuple_copy(tuple, out);
    for (int i = 0; i < out->leaf_count; i++)
        out->leaf[i] = tk_term_int(least + rng_below(rng, below));
}

static void law_tuple_arithmetic(void **state) {
    (void)state;
    FOR_CASES(102) {
        tk_tuple shape, a, b, sum, difference, quotient, each;
        tk_term product;
        bool less;
        random_shape(&rng, 4096, &shape);
        random_like(&rng, &shape, 1, 12, &a);
        random_like(&rng, &shape, 1, 12, &b);
        EXPECT_OK(tk_tuple_add(&a, &b, &sum), "add");
        EXPECT_OK(tk_tuple_sub(&a, &b, &difference), "sub");
        EXPECT_OK(tk_tuple_ceil_div(&a, &b, &quotient), "ceil_div");
        EXPECT_OK(tk_tuple_elem_less(&a, &b, &less), "elem_less");
        EXPECT_OK(tk_tuple_product(&shape, &product), "product");
        EXPECT_OK(tk_tuple_product_each(&shape, &each), "product_each");
        EXPECT(tk_tuple_congruent(&sum, &a) && tk_tuple_congruent(&difference, &a) &&
                   tk_tuple_congruent(&quotient, &a),
               "trees");
        bool all = true;
        int64_t whole = 1;
        for (int i = 0; i < a.leaf_count; i++) {
            int64_t x = a.leaf[i].value, y = b.leaf[i].value, least = 0;
            while (least * y < x) least++;
            EXPECT(sum.leaf[i].value == x + y && difference.leaf[i].value == x - y &&
                       quotient.leaf[i].value == least,
                   "%lld and %lld", (long long)x, (long long)y);
            all = all && x < y;
            whole *= shape.leaf[i].value;
        }
        EXPECT(all == less && whole == product.value, "elem_less, product");
        tk_layout layout;
        mode_view mode[8];
        assert_int_equal(tk_layout_from_shape(&shape, &layout), TK_OK);
        int rank = view_modes(&layout, mode);
        EXPECT(each.leaf_count == rank, "product_each");
        for (int i = 0; i < rank; i++) EXPECT(each.leaf[i].value == mode[i].size, "product_each");
    }
}

/* The rule of the reference: the divisor is used up from left to right. */
static bool shape_div_by_hand(const tk_tuple *a, int64_t divisor, int64_t *out) {
    for (int i = 0; i < a->leaf_count; i++) {
        int64_t x = a->leaf[i].value;
        if (x % divisor && divisor % x) return false;
        out[i] = (x + divisor - 1) / divisor;
        divisor = (divisor + x - 1) / x;
    }
    return true;
}

static void law_shape_div(void **state) {
    (void)state;
    int answered = 0;
    FOR_CASES_UNTIL(answered, 103) {
        tk_tuple a, b, r;
        int64_t expected[TK_LAYOUT_MAX_LEAVES];
        random_shape(&rng, 4096, &a);
        tk_tuple_from_term(tk_term_int(1 + rng_below(&rng, 24)), &b);
        tk_status status = tk_tuple_shape_div(&a, &b, &r);
        bool exists = shape_div_by_hand(&a, b.leaf[0].value, expected);
        EXPECT(status == (exists ? TK_OK : TK_SHAPE_ERROR), "shape_div by %lld: %s",
               (long long)b.leaf[0].value, tk_error_message());
        if (!exists) continue;
        answered++;
        EXPECT(tk_tuple_congruent(&a, &r), "shape_div");
        for (int i = 0; i < r.leaf_count; i++)
            EXPECT(r.leaf[i].value == expected[i], "shape_div by %lld", (long long)b.leaf[0].value);
        tk_tuple each;
        random_like(&rng, &a, 1, 1, &each);
        EXPECT_OK(tk_tuple_shape_div(&a, &each, &r), "shape_div by ones");
        EXPECT(tk_tuple_equal(&a, &r), "shape_div by ones");
    }
    assert_int_equal(answered, LAW_CASES);
}

static void law_increment(void **state) {
    (void)state;
    FOR_CASES(104) {
        tk_tuple shape, index, coord, next, expected;
        tk_term size;
        random_shape(&rng, pick_limit(&rng), &shape);
        assert_int_equal(tk_tuple_product(&shape, &size), TK_OK);
        int64_t i = rng_below(&rng, 4) ? rng_below(&rng, (int)size.value) : size.value - 1;
        tk_tuple_from_term(tk_term_int(i), &index);
        EXPECT_OK(tk_idx2crd(&index, &shape, &coord), "idx2crd");
        EXPECT_OK(tk_increment_coord(&coord, &shape, &next), "increment_coord");
        tk_tuple_from_term(tk_term_int((i + 1) % size.value), &index);
        EXPECT_OK(tk_idx2crd(&index, &shape, &expected), "idx2crd");
        EXPECT(tk_tuple_equal(&next, &expected), "increment_coord at %lld", (long long)i);
    }
}

/* -- Trees against trees -- */

static bool refines_by_hand(const uint8_t *a, const uint8_t *b) {
    if (*a == TK_NODE_LEAF) return true;
    if (*a != *b) return false;
    for (int i = 0, at_a = 1, at_b = 1; i < *a; i++) {
        int nodes, leaves;
        if (!refines_by_hand(a + at_a, b + at_b)) return false;
        measure_tree(a + at_a, &nodes, &leaves);
        at_a += nodes;
        measure_tree(b + at_b, &nodes, &leaves);
        at_b += nodes;
    }
    return true;
}

/* Sizes too: each leaf of a against the subtree of b that it stands for. */
static bool compatible_by_hand(const uint8_t *a, const tk_term **size_a, const uint8_t *b,
                               const tk_term **size_b) {
    int nodes, leaves;
    if (*a == TK_NODE_LEAF) {
        int64_t product = 1;
        measure_tree(b, &nodes, &leaves);
        for (int i = 0; i < leaves; i++) product *= (*size_b)++->value;
        return (*size_a)++->value == product;
    }
    bool all = *a == *b;
    for (int i = 0, at_a = 1, at_b = 1; all && i < *a; i++) {
        all = compatible_by_hand(a + at_a, size_a, b + at_b, size_b);
        measure_tree(a + at_a, &nodes, &leaves);
        at_a += nodes;
        measure_tree(b + at_b, &nodes, &leaves);
        at_b += nodes;
    }
    return all;
}

static void law_congruence(void **state) {
    (void)state;
    int weak = 0, fitting = 0;
    FOR_CASES(105) {
        tk_tuple a, b;
        bool compatible;
        random_shape(&rng, 64, &a);
        random_shape(&rng, 64, &b);
        if (rng_below(&rng, 2)) {
            /* b refines a, often: a composition's result against its right operand. */
            tk_layout left, right, made;
            random_layout(&rng, 64, &left);
            assert_int_equal(tk_layout_from_shape(&a, &right), TK_OK);
            if (tk_layout_composition(&left, &right, &made) == TK_OK) tk_layout_shape(&made, &b);
        }
        bool refined = refines_by_hand(a.node, b.node);
        bool same = a.node_count == b.node_count && !memcmp(a.node, b.node, a.node_count);
        const tk_term *size_a = a.leaf, *size_b = b.leaf;
        bool fits = compatible_by_hand(a.node, &size_a, b.node, &size_b);
        EXPECT(tk_tuple_congruent(&a, &b) == same, "congruent");
        EXPECT(tk_tuple_weakly_congruent(&a, &b) == refined, "weakly congruent");
        EXPECT_OK(tk_tuple_compatible(&a, &b, &compatible), "compatible");
        EXPECT(compatible == fits, "compatible");
        weak += refined;
        fitting += fits;
    }
    EXPECT(weak > LAW_CASES / 10 && weak < LAW_CASES && fitting > LAW_CASES / 20, "%d, %d", weak,
           fitting);
}

/* -- Modes -- */

static void law_modes(void **state) {
    (void)state;
    FOR_CASES(106) {
        tk_layout a, r, part, padded;
        tk_tuple path;
        mode_view mode[8], chosen[8];
        int order[8];
        random_layout(&rng, pick_limit(&rng), &a);
        int rank = view_modes(&a, mode), count = 1 + rng_below(&rng, rank);
        for (int i = 0; i < count; i++) order[i] = rng_below(&rng, rank);
        EXPECT_OK(tk_layout_select(&a, order, count, &r), "select of %s", show(&a).text);
        EXPECT(view_modes(&r, chosen) == count, "select of %s", show(&a).text);
        for (int i = 0; i < count; i++) {
            EXPECT_OK(tk_layout_mode(&r, i, &part), "mode of %s", show(&r).text);
            check_mode(&part, &a, &mode[order[i]]);
            assert_int_equal(tk_tuple_from_ints((int64_t[]){order[i]}, 1, &path), TK_OK);
            if (tk_layout_depth(&a) == 0) continue;
            EXPECT_OK(tk_layout_get(&a, &path, &part), "get of %s", show(&a).text);
            check_mode(&part, &a, &mode[order[i]]);
        }
        tk_layout more;
        random_layout(&rng, 8, &more);
        int target = rank + rng_below(&rng, 3);
        bool behind = rng_below(&rng, 2), units = rng_below(&rng, 2);
        EXPECT_OK(behind ? tk_layout_append(&a, target, units ? NULL : &more, &padded)
                         : tk_layout_prepend(&a, target, units ? NULL : &more, &padded),
                  "padding %s", show(&a).text);
        EXPECT(tk_layout_rank(&padded) == target, "padded %s", show(&padded).text);
        for (int i = 0; i < target; i++) {
            int own = behind ? i : i - (target - rank);
            EXPECT_OK(tk_layout_mode(&padded, i, &part), "mode of %s", show(&padded).text);
            if (own >= 0 && own < rank)
                check_mode(&part, &a, &mode[own]);
            else
                EXPECT(units ? size_of(&part) == 1 : tk_layout_equal(&part, &more), "padded %s",
                       show(&padded).text);
        }
    }
}

static void law_filter_zeros(void **state) {
    (void)state;
    FOR_CASES(107) {
        tk_layout a, r;
        random_layout(&rng, pick_limit(&rng), &a);
        EXPECT_OK(tk_layout_filter_zeros(&a, &r), "filter_zeros %s", show(&a).text);
        EXPECT(a.node_count == r.node_count && !memcmp(a.node, r.node, a.node_count),
               "filter_zeros %s = %s", show(&a).text, show(&r).text);
        for (int i = 0; i < a.leaf_count; i++) {
            int64_t extent = a.leaf[i].stride.value ? a.leaf[i].shape.value : 1;
            EXPECT(r.leaf[i].shape.value == extent &&
                       r.leaf[i].stride.value == a.leaf[i].stride.value,
                   "filter_zeros %s = %s", show(&a).text, show(&r).text);
        }
    }
}

/* -- By mode, tiles -- */

/* A tiler of one layout a mode, as text and as modes. */
static int random_list(layout_rng *rng, int rank, tk_layout *mode, tk_tiler *out) {
    char text[2048] = "[";
    int modes = 1 + rng_below(rng, rank);
    for (int i = 0; i < modes; i++) {
        tk_tuple shape;
        random_shape(rng, 6, &shape);
        random_strides(rng, &shape, (stride_kind)rng_below(rng, STRIDES_PADDED + 1), &mode[i]);
        if (i) strcat(text, ";");
        strcat(text, show(&mode[i]).text);
    }
    strcat(text, "]");
    *out = tiler_of(text);
    return modes;
}

/* By mode: mode i is the operation of mode i; what is past the tiler stays. */
static void law_by_mode(void **state) {
    (void)state;
    int answered = 0;
    FOR_CASES_UNTIL(answered, 108) {
        tk_layout a, tile[8], r, part, mode, alone;
        tk_tiler tiler;
        bool divide = rng_below(&rng, 2);
        if (divide)
            random_layout(&rng, pick_limit(&rng) / 2, &a);
        else
            random_injective(&rng, 32, &a);
        int rank = tk_layout_rank(&a), modes = random_list(&rng, rank, tile, &tiler);
        tk_status status = divide ? tk_layout_logical_divide(&a, &tiler, &r)
                                  : tk_layout_logical_product(&a, &tiler, &r);
        bool exists = true;
        for (int i = 0; i < modes && exists; i++) {
            assert_int_equal(tk_layout_mode(&a, i, &mode), TK_OK);
            exists = (divide ? tk_layout_logical_divide(&mode, &tile[i], &alone)
                             : tk_layout_logical_product(&mode, &tile[i], &alone)) == TK_OK;
            if (!exists || status != TK_OK) continue;
            assert_int_equal(tk_layout_mode(&r, i, &part), TK_OK);
            EXPECT(tk_layout_equal(&part, &alone), "mode %d of %s", i, show(&r).text);
        }
        EXPECT(exists == (status == TK_OK), "%s by %s", show(&a).text, show(&tiler).text);
        if (!exists) continue;
        answered++;
        EXPECT(tk_layout_rank(&r) == rank, "%s by %s", show(&a).text, show(&tiler).text);
        for (int i = modes; i < rank; i++) {
            assert_int_equal(tk_layout_mode(&r, i, &part), TK_OK);
            assert_int_equal(tk_layout_mode(&a, i, &mode), TK_OK);
            EXPECT(tk_layout_equal(&part, &mode), "mode %d of %s", i, show(&r).text);
        }
        tk_layout zipped, tiles;
        EXPECT_OK(divide ? tk_layout_zipped_divide(&a, &tiler, &zipped)
                         : tk_layout_zipped_product(&a, &tiler, &zipped),
                  "%s by %s", show(&a).text, show(&tiler).text);
        EXPECT(size_of(&zipped) == size_of(&r), "zipped %s", show(&zipped).text);
        assert_int_equal(tk_layout_mode(&zipped, 0, &tiles), TK_OK);
        for (int i = 0; i < modes; i++) {
            assert_int_equal(tk_layout_mode(&r, i, &part), TK_OK);
            assert_int_equal(tk_layout_mode(&part, 0, &mode), TK_OK);
            assert_int_equal(tk_layout_mode(&tiles, i, &alone), TK_OK);
            EXPECT(tk_layout_equal(&alone, &mode), "tile %d of %s", i, show(&zipped).text);
        }
        check_groupings(&a, &tiler, &zipped, divide);
    }
    assert_int_equal(answered, LAW_CASES);
}

/* The tiles of local_tile together are the zipped division. */
static void law_local_tile(void **state) {
    (void)state;
    int answered = 0;
    FOR_CASES_UNTIL(answered, 109) {
        tk_layout a, tile[8], zipped, tiles, rest, part;
        tk_tiler tiler;
        tk_tuple at, shape, coord, offset;
        random_layout(&rng, pick_limit(&rng), &a);
        random_list(&rng, tk_layout_rank(&a), tile, &tiler);
        if (tk_layout_zipped_divide(&a, &tiler, &zipped) != TK_OK) continue;
        answered++;
        assert_int_equal(tk_layout_mode(&zipped, 0, &tiles), TK_OK);
        assert_int_equal(tk_layout_mode(&zipped, 1, &rest), TK_OK);
        tk_layout_shape(&rest, &shape);
        int64_t number = rng_below(&rng, (int)size_of(&rest));
        tk_tuple_from_term(tk_term_int(number), &at);
        assert_int_equal(tk_idx2crd(&at, &shape, &coord), TK_OK);
        EXPECT_OK(tk_layout_local_tile(&a, &tiler, &coord, &part, &offset), "tile %lld of %s by %s",
                  (long long)number, show(&a).text, show(&tiler).text);
        EXPECT(offset.leaf[0].value == value_of(&rest, number) && same_function(&part, &tiles),
               "tile %lld of %s by %s", (long long)number, show(&a).text, show(&tiler).text);
    }
    assert_int_equal(answered, LAW_CASES);
}

/* -- Composed layouts -- */

static void random_swizzled(layout_rng *rng, tk_composed *out) {
    tk_layout outer;
    tk_tuple offset;
    tk_swizzle s = {rng_below(rng, 4), 1 + rng_below(rng, 4), 0};
    s.shift = (s.bits + rng_below(rng, 3)) * (rng_below(rng, 2) ? 1 : -1);
    random_injective(rng, 128, &outer);
    tk_tuple_from_term(tk_term_int(rng_below(rng, 64)), &offset);
    assert_int_equal(tk_composed_make_swizzled(s, &offset, &outer, out), TK_OK);
}

/* Bit by bit: bit i, from base on for `bits` bits, flips if the bit |shift| away is set. */
static int64_t swizzle_by_hand(tk_swizzle s, int64_t x) {
    int64_t y = x;
    for (int i = 0; i < s.bits; i++) {
        int low = s.base + i, high = low + abs(s.shift);
        int from = s.shift >= 0 ? high : low, to = s.shift >= 0 ? low : high;
        if (x >> from & 1) y ^= (int64_t)1 << to;
    }
    return y;
}

static int64_t composed_value(const tk_composed *c, const tk_layout *outer, int64_t i) {
    return swizzle_by_hand(c->swizzle, c->offset.leaf[0].value + value_of(outer, i));
}

/* An operation on a composed layout is the operation on its outer part. */
static void law_composed(void **state) {
    (void)state;
    static const char *const names[] = {"coalesce", "zipped_divide", "composition", "flatten",
                                        "logical_divide"};
    int answered = 0;
    FOR_CASES_UNTIL(answered, 110) {
        tk_layout_value args[2] = {{.kind = TK_VALUE_COMPOSED}, {.kind = TK_VALUE_LAYOUT}}, made;
        tk_layout alone;
        tk_tuple at, value;
        random_swizzled(&rng, &args[0].as.composed);
        random_tile(&rng, &args[1].as.layout);
        const tk_composed *c = &args[0].as.composed;
        const tk_layout *tile = &args[1].as.layout;
        int op = rng_below(&rng, 5);
        bool pair = op == 1 || op == 2 || op == 4;
        if (tk_layout_call(names[op], args, pair ? 2 : 1, &made) != TK_OK) continue;
        answered++;
        tk_status status = op == 0   ? tk_layout_coalesce(&c->outer, NULL, &alone)
                           : op == 1 ? tk_layout_zipped_divide(&c->outer, tile, &alone)
                           : op == 2 ? tk_layout_composition(&c->outer, tile, &alone)
                           : op == 3 ? tk_layout_flatten(&c->outer, &alone)
                                     : tk_layout_logical_divide(&c->outer, tile, &alone);
        assert_int_equal(status, TK_OK);
        for (int tries = 0; tries < 16; tries++) {
            int64_t i = rng_below(&rng, (int)size_of(&alone));
            tk_tuple_from_term(tk_term_int(i), &at);
            EXPECT_OK(tk_composed_eval(&made.as.composed, &at, &value), "%s", show(&alone).text);
            EXPECT(value.leaf[0].value == composed_value(c, &alone, i), "%s at %lld",
                   show(&alone).text, (long long)i);
        }
    }
    assert_int_equal(answered, LAW_CASES);
}

static void law_composed_slice(void **state) {
    (void)state;
    FOR_CASES(111) {
        tk_composed c, kept;
        tk_tuple shape, coord, index, value;
        random_swizzled(&rng, &c);
        tk_layout_shape(&c.outer, &shape);
        int64_t size = size_of(&c.outer), i = rng_below(&rng, (int)size), inner = 0, prefix = 1;
        tk_tuple_from_term(tk_term_int(i), &index);
        assert_int_equal(tk_idx2crd(&index, &shape, &coord), TK_OK);
        for (int leaf = 0; leaf < coord.leaf_count; leaf++) {
            if (rng_below(&rng, 2)) continue;
            inner += coord.leaf[leaf].value * prefix;
            prefix *= shape.leaf[leaf].value;
            coord.leaf[leaf] = (tk_term){0, 0, TK_TERM_ANY};
        }
        EXPECT_OK(tk_composed_slice(&c, &coord, &kept), "slice %s", show(&c.outer).text);
        tk_tuple_from_term(tk_term_int(inner), &index);
        EXPECT_OK(tk_composed_eval(&kept, &index, &value), "eval %s", show(&kept.outer).text);
        EXPECT(value.leaf[0].value == composed_value(&c, &c.outer, i), "slice of %s at %lld",
               show(&c.outer).text, (long long)i);
    }
}

/* To wider elements and back; where the wide element lies is where its first narrow one lay. */
static void law_composed_recast(void **state) {
    (void)state;
    int answered = 0;
    FOR_CASES_UNTIL(answered, 112) {
        tk_composed c, wide, back;
        tk_tuple index, value;
        random_swizzled(&rng, &c);
        int64_t ratio = 2 << rng_below(&rng, 2);
        for (int i = 0; i < c.outer.leaf_count; i++) c.outer.leaf[i].stride.value *= ratio;
        c.outer.leaf[0] = (tk_leaf){tk_term_int(ratio * (1 + rng_below(&rng, 4))), tk_term_int(1)};
        c.offset.leaf[0].value *= ratio;
        if (tk_composed_recast(&c, 8 * ratio, 8, &wide) != TK_OK) continue;
        answered++;
        EXPECT_OK(tk_composed_recast(&wide, 8, 8 * ratio, &back), "back %s", show(&c.outer).text);
        EXPECT((!c.swizzle.bits || back.swizzle.base == c.swizzle.base) &&
                   back.swizzle.bits == c.swizzle.bits &&
                   back.offset.leaf[0].value == c.offset.leaf[0].value,
               "back %s", show(&c.outer).text);
        for (int tries = 0; tries < 8; tries++) {
            int64_t i = rng_below(&rng, (int)size_of(&wide.outer));
            int64_t rows = wide.outer.leaf[0].shape.value;
            int64_t narrow = i / rows * c.outer.leaf[0].shape.value + i % rows * ratio;
            tk_tuple_from_term(tk_term_int(i), &index);
            EXPECT_OK(tk_composed_eval(&wide, &index, &value), "%s", show(&wide.outer).text);
            EXPECT(value.leaf[0].value * ratio == composed_value(&c, &c.outer, narrow),
                   "%s as %s at %lld", show(&c.outer).text, show(&wide.outer).text, (long long)i);
        }
    }
    assert_int_equal(answered, LAW_CASES);
}

/* -- Basis vectors and inverses -- */

/* A layout whose strides are the basis vectors of a permuted, padded grid: inverted on each axis.
 */
static void law_basis(void **state) {
    (void)state;
    FOR_CASES(113) {
        tk_layout a, right, left;
        tk_tuple index, coord, back, shape;
        int64_t extent[3];
        int rank = 2 + rng_below(&rng, 2), axis[3] = {0, 1, 2};
        for (int i = 0; i < rank; i++) extent[i] = 2 + rng_below(&rng, 4);
        if (rng_below(&rng, 2)) axis[0] = 1, axis[1] = 0;
        assert_int_equal(tk_tuple_from_ints(extent, rank, &shape), TK_OK);
        assert_int_equal(tk_layout_make_identity(&shape, &a), TK_OK);
        int64_t step = 1 + rng_below(&rng, 2);
        for (int i = 0; i < rank; i++) {
            a.leaf[i].stride.basis = (uint32_t)axis[i] + 1;
            if (i == 0) a.leaf[i].stride.value = step;
        }
        EXPECT_OK(tk_layout_left_inverse(&a, &left), "left_inverse %s", show(&a).text);
        for (int64_t i = 0; i < size_of(&a); i++) {
            tk_tuple_from_term(tk_term_int(i), &index);
            EXPECT_OK(tk_layout_eval(&a, &index, &coord), "%s", show(&a).text);
            EXPECT_OK(tk_layout_eval(&left, &coord, &back), "%s", show(&left).text);
            EXPECT(back.leaf[0].value == i, "left_inverse %s = %s", show(&a).text,
                   show(&left).text);
        }
        EXPECT_OK(tk_layout_right_inverse(&a, &right), "right_inverse %s", show(&a).text);
        if (step == 1) EXPECT(size_of(&right) == size_of(&a), "right_inverse %s", show(&a).text);
        for (int64_t i = 0; i < size_of(&right); i++) {
            tk_tuple_from_term(tk_term_int(value_of(&right, i)), &index);
            EXPECT_OK(tk_layout_eval(&a, &index, &coord), "%s", show(&a).text);
            tk_layout_shape(&right, &shape);
            tk_tuple_from_term(tk_term_int(i), &index);
            EXPECT_OK(tk_idx2crd(&index, &shape, &back), "%s", show(&right).text);
            for (int j = 0; j < coord.leaf_count && j < back.leaf_count; j++)
                EXPECT(coord.leaf[j].value == back.leaf[j].value, "right_inverse %s = %s",
                       show(&a).text, show(&right).text);
        }
    }
}

/* Strides that go down: rearranged, composed and judged as the others. */
static void law_negative(void **state) {
    (void)state;
    FOR_CASES(114) {
        tk_layout a, b, r, flat;
        random_layout(&rng, 64, &a);
        for (int i = 0; i < a.leaf_count; i++)
            if (rng_below(&rng, 2)) a.leaf[i].stride.value *= -1;
        random_right(&rng, &a, &b);
        EXPECT_OK(tk_layout_coalesce(&a, NULL, &r), "coalesce %s", show(&a).text);
        EXPECT_OK(tk_layout_flatten(&a, &flat), "flatten %s", show(&a).text);
        EXPECT(same_function(&a, &r) && same_function(&a, &flat), "%s", show(&a).text);
        tk_status status = tk_layout_composition(&a, &b, &r);
        bool exists = composition_exists(&a, &b), injective, once = true;
        EXPECT(status == (exists ? TK_OK : TK_SHAPE_ERROR), "%s o %s: %s", show(&a).text,
               show(&b).text, tk_error_message());
        if (exists) check_composition(&a, &b, &r);
        EXPECT_OK(tk_layout_is_injective(&a, &injective), "injective %s", show(&a).text);
        for (int64_t i = 0; i < size_of(&a) && once; i++)
            for (int64_t j = 0; j < i && once; j++) once = value_of(&a, i) != value_of(&a, j);
        EXPECT(injective == once, "injective %s", show(&a).text);
    }
}

/* -- Text and banks -- */

static void law_text_of_others(void **state) {
    (void)state;
    FOR_CASES(115) {
        tk_layout tile[8];
        tk_tiler tiler, again;
        tk_tuple tuple, back;
        tk_swizzle s = {rng_below(&rng, 4), rng_below(&rng, 9), 0}, swizzle;
        char text[4096];
        random_list(&rng, 3, tile, &tiler);
        EXPECT_OK(tk_tiler_parse(show(&tiler).text, &again), "parse %s", show(&tiler).text);
        EXPECT(tk_layout_equal(&tiler, &again), "parse %s", show(&tiler).text);
        random_shape(&rng, 4096, &tuple);
        for (int i = 0; i < tuple.leaf_count; i++) {
            int kind = rng_below(&rng, 6);
            if (kind == 0) tuple.leaf[i] = (tk_term){0, 0, TK_TERM_ANY};
            if (kind == 1) tuple.leaf[i] = tk_term_int((int64_t)rng_next(&rng));
            if (kind == 2) tuple.leaf[i] = tk_term_dynamic(TK_TERM_I64, 1 + rng_below(&rng, 99));
            if (kind == 3) tuple.leaf[i].basis = (uint32_t)(1 + rng_below(&rng, 63));
        }
        tk_tuple_print(&tuple, text, sizeof text);
        EXPECT_OK(tk_tuple_parse(text, &back), "parse %s", text);
        EXPECT(tk_tuple_equal(&tuple, &back), "parse %s", text);
        s.shift = (s.bits + rng_below(&rng, 9)) * (rng_below(&rng, 2) ? 1 : -1);
        tk_swizzle_print(s, text, sizeof text);
        EXPECT_OK(tk_swizzle_parse(text, &swizzle), "parse %s", text);
        EXPECT(s.bits == swizzle.bits && s.base == swizzle.base && s.shift == swizzle.shift,
               "parse %s", text);
    }
}

/* A warp of at most four bytes a lane: the passes are the most distinct words that one bank has to
 * give, counted by marking words. */
static void law_banks(void **state) {
    (void)state;
    FOR_CASES(116) {
        tk_composed c;
        tk_bank_report report;
        int64_t extent[2] = {1 + rng_below(&rng, 32), 1}, stride[2] = {rng_below(&rng, 70), 0};
        int bytes = 1 << rng_below(&rng, 3);
        tk_layout lanes;
        assert_int_equal(tk_layout_from_ints(2, extent, stride, &lanes), TK_OK);
        tk_composed_from_layout(&lanes, &c);
        if (rng_below(&rng, 2)) {
            tk_swizzle s = {2, rng_below(&rng, 3), 3};
            assert_int_equal(tk_composed_make_swizzled(s, NULL, &lanes, &c), TK_OK);
        }
        EXPECT_OK(tk_layout_count_banks(&c, bytes, &report), "banks of %s", show(&lanes).text);
        unsigned char asked[4096] = {0};
        int64_t depth[32] = {0}, passes = 0, words = 0;
        for (int64_t lane = 0; lane < extent[0]; lane++) {
            int64_t place = lane * stride[0];
            if (c.inner == TK_INNER_SWIZZLE) place = swizzle_by_hand(c.swizzle, place);
            int64_t word = place * bytes / 4;
            if (asked[word]++) continue;
            words++;
            if (++depth[word % 32] > passes) passes = depth[word % 32];
        }
        EXPECT(report.accesses == 1 && report.passes == passes &&
                   report.least == (words + 31) / 32 &&
                   report.conflicts == report.passes - report.least,
               "banks of %s, %d bytes", show(&lanes).text, bytes);
    }
}

#endif
