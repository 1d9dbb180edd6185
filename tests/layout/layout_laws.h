/* The laws of the layout algebra, by enumeration on LAW_CASES random cases each.
 *
 * Included by a fast test and by a slow one, which differ in LAW_CASES only. Whether an answer must
 * exist is decided here from the definitions, so a refusal is tested as tightly as a result. */
#ifndef LAYOUT_LAWS_H
#define LAYOUT_LAWS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/layout_cases.h"
#include "tiki/layout_call.h"

/* Most cases are small, some have up to 4096 coordinates. */
static int64_t pick_limit(layout_rng *rng) {
    static const int64_t limits[] = {8, 16, 32, 48, 64, 64, 96, 128};
    if (rng_below(rng, 64) == 0) return 4096;
    return limits[rng_below(rng, 8)];
}

#define FOR_CASES(seed)                                                                            \
    layout_rng rng = {seed};                                                                       \
    for (int step = 0; step < LAW_CASES; step++)

/* Goes on until `met` counts LAW_CASES cases that the law speaks of. */
#define FOR_CASES_UNTIL(met, seed)                                                                 \
    layout_rng rng = {seed};                                                                       \
    for (int step = 0; (met) < LAW_CASES && step < 40 * LAW_CASES; step++)

#define EXPECT_OK(status, ...)                                                                     \
    do {                                                                                           \
        if ((status) != TK_OK) {                                                                   \
            print_error(__VA_ARGS__);                                                              \
            fail_msg(": %s", tk_error_message());                                                  \
        }                                                                                          \
    } while (0)

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error(__VA_ARGS__);                                                              \
            fail_msg(": %s", #condition);                                                          \
        }                                                                                          \
    } while (0)

/* -- Unary laws -- */

static bool has_mergeable(const tk_layout *r) {
    for (int i = 0; i < r->leaf_count; i++) {
        if (r->leaf[i].shape.value == 1 && r->leaf_count > 1) return true;
        if (i &&
            r->leaf[i].stride.value == r->leaf[i - 1].shape.value * r->leaf[i - 1].stride.value)
            return true;
    }
    return false;
}

static void law_coalesce(void **state) {
    (void)state;
    FOR_CASES(1) {
        tk_layout a, r, again;
        random_layout(&rng, pick_limit(&rng), &a);
        EXPECT_OK(tk_layout_coalesce(&a, NULL, &r), "coalesce %s", show(&a).text);
        EXPECT(same_function(&a, &r), "coalesce %s = %s", show(&a).text, show(&r).text);
        EXPECT(tk_layout_depth(&r) <= 1 && !has_mergeable(&r), "coalesce %s = %s", show(&a).text,
               show(&r).text);
        EXPECT_OK(tk_layout_coalesce(&r, NULL, &again), "coalesce %s", show(&r).text);
        EXPECT(tk_layout_equal(&r, &again), "coalesce twice %s", show(&a).text);
    }
}

static void law_coalesce_by_mode(void **state) {
    (void)state;
    FOR_CASES(2) {
        tk_layout a, r, mode, kept;
        tk_tuple profile;
        random_layout(&rng, pick_limit(&rng), &a);
        int rank = tk_layout_rank(&a);
        if (tk_layout_depth(&a) == 0) continue;
        int64_t ones[TK_LAYOUT_MAX_LEAVES];
        int given = 1 + rng_below(&rng, rank);
        for (int i = 0; i < given; i++) ones[i] = 1;
        assert_int_equal(tk_tuple_from_ints(ones, given, &profile), TK_OK);
        EXPECT_OK(tk_layout_coalesce(&a, &profile, &r), "coalesce %s", show(&a).text);
        EXPECT(same_function(&a, &r) && tk_layout_rank(&r) == rank, "coalesce by mode %s",
               show(&a).text);
        for (int i = 0; i < rank; i++) {
            assert_int_equal(tk_layout_mode(&a, i, &mode), TK_OK);
            assert_int_equal(tk_layout_mode(&r, i, &kept), TK_OK);
            EXPECT(i < given ? !has_mergeable(&kept) : tk_layout_equal(&mode, &kept),
                   "mode %d of %s", i, show(&r).text);
        }
    }
}

static void law_rearrange(void **state) {
    (void)state;
    FOR_CASES(3) {
        tk_layout a, flat, grouped;
        random_layout(&rng, pick_limit(&rng), &a);
        EXPECT_OK(tk_layout_flatten(&a, &flat), "flatten %s", show(&a).text);
        EXPECT(same_function(&a, &flat) && tk_layout_depth(&flat) <= 1, "flatten %s",
               show(&a).text);
        int rank = tk_layout_rank(&a), begin = rng_below(&rng, rank + 1);
        int end = begin + rng_below(&rng, rank - begin + 1);
        EXPECT_OK(tk_layout_group(&a, begin, end, &grouped), "group %s", show(&a).text);
        EXPECT(same_function(&a, &grouped) && tk_layout_rank(&grouped) == rank - end + begin + 1,
               "group %s [%d,%d) = %s", show(&a).text, begin, end, show(&grouped).text);
    }
}

/* Marks the image of a layout whose offsets are below `span`. */
static unsigned char *image_of(const tk_layout *layout, int64_t span) {
    unsigned char *hit = calloc(1, (size_t)span);
    int64_t size = size_of(layout);
    for (int64_t i = 0; i < size; i++) {
        int64_t value = value_of(layout, i);
        if (value < span && hit[value] < UINT8_MAX) hit[value]++;
    }
    return hit;
}

static void law_filter(void **state) {
    (void)state;
    FOR_CASES(4) {
        tk_layout a, r;
        tk_term span;
        random_layout(&rng, pick_limit(&rng), &a);
        EXPECT_OK(tk_layout_filter(&a, &r), "filter %s", show(&a).text);
        EXPECT_OK(tk_layout_cosize(&a, &span), "cosize %s", show(&a).text);
        EXPECT(!has_mergeable(&r), "filter %s = %s", show(&a).text, show(&r).text);
        unsigned char *before = image_of(&a, span.value), *after = image_of(&r, span.value);
        for (int64_t v = 0; v < span.value; v++)
            EXPECT(!before[v] == !after[v], "filter %s = %s at %lld", show(&a).text, show(&r).text,
                   (long long)v);
        free(before);
        free(after);
    }
}

/* -- Complement -- */

typedef struct sorted_leaf {
    int64_t stride, extent;
} sorted_leaf;

static int compare_leaves(const void *a, const void *b) {
    const sorted_leaf *x = a, *y = b;
    if (x->stride != y->stride) return x->stride < y->stride ? -1 : 1;
    return x->extent < y->extent ? -1 : x->extent > y->extent;
}

static int sort_leaves(const tk_layout *layout, sorted_leaf *out) {
    int count = 0;
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].shape.value > 1 && layout->leaf[i].stride.value)
            out[count++] = (sorted_leaf){layout->leaf[i].stride.value, layout->leaf[i].shape.value};
    qsort(out, (size_t)count, sizeof *out, compare_leaves);
    return count;
}

/* The documented condition: at every step the span below divides the stride. */
static bool complement_exists(const tk_layout *layout) {
    sorted_leaf leaf[TK_LAYOUT_MAX_LEAVES];
    int count = sort_leaves(layout, leaf);
    int64_t span = 1;
    for (int i = 0; i < count; i++) {
        if (leaf[i].stride % span) return false;
        span = leaf[i].stride * leaf[i].extent;
    }
    return true;
}

static void check_complement(const tk_layout *a, const tk_layout *r, int64_t target) {
    int64_t size = size_of(r), moved = size_of(a), last = -1;
    tk_term span_a, span_r;
    assert_int_equal(tk_layout_cosize(a, &span_a), TK_OK);
    assert_int_equal(tk_layout_cosize(r, &span_r), TK_OK);
    int64_t span = span_a.value + span_r.value;
    unsigned char *hit = image_of(a, span), *reached = calloc(1, (size_t)span);
    for (int64_t j = 0; j < size; j++) {
        int64_t value = value_of(r, j);
        EXPECT(value > last, "complement of %s = %s is not increasing", show(a).text, show(r).text);
        EXPECT(value == 0 || value >= span_a.value || !hit[value],
               "complement of %s = %s meets it at %lld", show(a).text, show(r).text,
               (long long)value);
        last = value;
        if (moved * size > 200000) continue;
        for (int64_t i = 0; i < moved; i++) reached[value + value_of(a, i)] = 1;
    }
    for (int64_t v = 0; v < target && moved * size <= 200000; v++)
        EXPECT(reached[v], "complement of %s to %lld = %s leaves out %lld", show(a).text,
               (long long)target, show(r).text, (long long)v);
    free(hit);
    free(reached);
}

static void law_complement(void **state) {
    (void)state;
    FOR_CASES(5) {
        tk_layout a, r;
        random_layout(&rng, pick_limit(&rng), &a);
        int64_t target = 1 + rng_below(&rng, 300);
        tk_status status = tk_layout_complement(&a, tk_term_int(target), &r);
        if (!complement_exists(&a)) {
            EXPECT(status == TK_SHAPE_ERROR, "complement of %s", show(&a).text);
            continue;
        }
        EXPECT_OK(status, "complement of %s", show(&a).text);
        EXPECT(!has_mergeable(&r), "complement of %s = %s", show(&a).text, show(&r).text);
        check_complement(&a, &r, target);
    }
}

/* -- Inverses -- */

/* Strides without any order, few enough to be injective often. */
static void random_scattered(layout_rng *rng, tk_layout *out) {
    int rank = 2 + rng_below(rng, 2);
    int64_t shape[3], stride[3];
    for (int i = 0; i < rank; i++) {
        shape[i] = 1 + rng_below(rng, 5);
        stride[i] = 1 + rng_below(rng, 24);
    }
    assert_int_equal(tk_layout_from_ints(rank, shape, stride, out), TK_OK);
}

static bool is_injective(const tk_layout *layout) {
    tk_term span;
    assert_int_equal(tk_layout_cosize(layout, &span), TK_OK);
    unsigned char *hit = calloc(1, (size_t)span.value);
    int64_t size = size_of(layout);
    bool injective = true;
    for (int64_t i = 0; i < size && injective; i++) injective = !hit[value_of(layout, i)]++;
    free(hit);
    return injective;
}

/* The chain that takes the leftmost leaf of each stride in the coalesced layout. */
static int64_t greedy_chain(const tk_layout *layout) {
    tk_layout c;
    int64_t span = 1;
    assert_int_equal(tk_layout_coalesce(layout, NULL, &c), TK_OK);
    for (int i = 0; i < c.leaf_count; i++)
        if (c.leaf[i].stride.value == span && c.leaf[i].shape.value > 1) {
            span *= c.leaf[i].shape.value;
            i = -1;
        }
    return span;
}

static void law_right_inverse(void **state) {
    (void)state;
    FOR_CASES(6) {
        tk_layout a, r;
        random_layout(&rng, pick_limit(&rng), &a);
        EXPECT_OK(tk_layout_right_inverse(&a, &r), "right_inverse %s", show(&a).text);
        int64_t size = size_of(&r);
        EXPECT(size >= greedy_chain(&a), "right_inverse %s = %s", show(&a).text, show(&r).text);
        for (int64_t i = 0; i < size; i++)
            EXPECT(value_of(&a, value_of(&r, i)) == i, "right_inverse %s = %s at %lld",
                   show(&a).text, show(&r).text, (long long)i);
    }
}

/* "coordinates A and B have one offset" */
static void check_one_offset(const tk_layout *a) {
    long long first = 0, second = 0;
    const char *at = strstr(tk_error_message(), "coordinates ");
    EXPECT(at && sscanf(at, "coordinates %lld and %lld", &first, &second) == 2 && first != second &&
               first < size_of(a) && second < size_of(a) &&
               value_of(a, first) == value_of(a, second),
           "left_inverse %s: %s", show(a).text, tk_error_message());
}

/* "offsets up to U, that of coordinate C": C has offset U, and indeed nothing inverts them all. */
static bool check_no_inverse(const tk_layout *a) {
    long long most = 0, index = 0;
    const char *at = strstr(tk_error_message(), "offsets up to ");
    EXPECT(at && sscanf(at, "offsets up to %lld, that of coordinate %lld", &most, &index) == 2 &&
               index < size_of(a) && value_of(a, index) == most,
           "left_inverse %s: %s", show(a).text, tk_error_message());
    if (most > 128) return false;
    EXPECT(!left_inverse_exists(a, most), "left_inverse %s exists up to offset %lld", show(a).text,
           most);
    return true;
}

static void law_left_inverse(void **state) {
    (void)state;
    int found = 0, refused = 0, proved = 0;
    FOR_CASES(7) {
        tk_layout a, r;
        if (step % 2)
            random_scattered(&rng, &a);
        else
            random_layout(&rng, pick_limit(&rng), &a);
        tk_status status = tk_layout_left_inverse(&a, &r);
        if (!is_injective(&a)) {
            EXPECT(status == TK_SHAPE_ERROR, "left_inverse %s", show(&a).text);
            check_one_offset(&a);
            continue;
        }
        found += status == TK_OK;
        if (status == TK_SHAPE_ERROR && !complement_exists(&a)) {
            refused++;
            proved += check_no_inverse(&a);
            continue;
        }
        EXPECT_OK(status, "left_inverse %s", show(&a).text);
        int64_t size = size_of(&a);
        for (int64_t i = 0; i < size; i++)
            EXPECT(value_of(&r, value_of(&a, i)) == i, "left_inverse %s = %s at %lld",
                   show(&a).text, show(&r).text, (long long)i);
    }
    EXPECT(found > LAW_CASES / 4 && refused > LAW_CASES / 50 && proved * 10 > refused * 8,
           "%d found, %d refused, %d of them proved by enumeration", found, refused, proved);
}

static void law_tests(void **state) {
    (void)state;
    FOR_CASES(8) {
        tk_layout a;
        bool flag;
        if (step % 2)
            random_scattered(&rng, &a);
        else
            random_layout(&rng, pick_limit(&rng), &a);
        EXPECT_OK(tk_layout_is_injective(&a, &flag), "injective %s", show(&a).text);
        EXPECT(flag == is_injective(&a), "injective %s", show(&a).text);
        EXPECT_OK(tk_layout_is_compact(&a, &flag), "compact %s", show(&a).text);
        tk_term span;
        assert_int_equal(tk_layout_cosize(&a, &span), TK_OK);
        bool compact = is_injective(&a) && span.value == size_of(&a);
        EXPECT(!flag || compact, "compact %s", show(&a).text);
        EXPECT(flag || !compact, "not compact %s", show(&a).text);
    }
}

static void law_nullspace(void **state) {
    (void)state;
    FOR_CASES(9) {
        tk_layout a, r;
        random_layout(&rng, pick_limit(&rng), &a);
        EXPECT_OK(tk_layout_nullspace(&a, &r), "nullspace %s", show(&a).text);
        int64_t size = size_of(&r), zeros = 1;
        for (int i = 0; i < a.leaf_count; i++)
            if (a.leaf[i].stride.value == 0) zeros *= a.leaf[i].shape.value;
        EXPECT(size == zeros && is_injective(&r), "nullspace %s = %s", show(&a).text,
               show(&r).text);
        for (int64_t i = 0; i < size; i++)
            EXPECT(value_of(&a, value_of(&r, i)) == 0, "nullspace %s = %s", show(&a).text,
                   show(&r).text);
    }
}

static void law_common_vector(void **state) {
    (void)state;
    FOR_CASES(10) {
        tk_layout a, b;
        int64_t width, common = 0;
        random_injective(&rng, 64, &a);
        random_injective(&rng, 64, &b);
        if (rng_below(&rng, 2)) b = a;
        EXPECT_OK(tk_layout_max_common_vector(&a, &b, &width), "common vector");
        int64_t size = size_of(&a) < size_of(&b) ? size_of(&a) : size_of(&b);
        for (int64_t i = 0; i < size;
             i = value_of(&a, i) == common && value_of(&b, i) == common ? (common++, 0) : i + 1) {
        }
        EXPECT(width == common, "common vector of %s and %s: %lld of %lld", show(&a).text,
               show(&b).text, (long long)width, (long long)common);
        if (tk_layout_equal(&a, &b)) {
            tk_layout inverse;
            assert_int_equal(tk_layout_right_inverse(&a, &inverse), TK_OK);
            EXPECT(width == size_of(&inverse), "common vector of %s with itself: %lld",
                   show(&a).text, (long long)width);
        }
    }
}

/* -- Composition -- */

/* B's modes refined by R: each leaf of B is a mode of R of the same size, coalesced. */
static void check_composition(const tk_layout *a, const tk_layout *b, const tk_layout *r) {
    tk_tuple shape_b, shape_r;
    bool compatible;
    tk_layout_shape(b, &shape_b);
    tk_layout_shape(r, &shape_r);
    assert_int_equal(tk_tuple_compatible(&shape_b, &shape_r, &compatible), TK_OK);
    EXPECT(compatible, "%s o %s = %s", show(a).text, show(b).text, show(r).text);
    int64_t size = size_of(b);
    for (int64_t i = 0; i < size; i++)
        EXPECT(value_of(r, i) == value_of(a, value_of(b, i)), "%s o %s = %s at %lld", show(a).text,
               show(b).text, show(r).text, (long long)i);
}

/* Operands that meet A in all ways: inside it, at its boundaries, carrying, beyond its end. */
static void random_right(layout_rng *rng, const tk_layout *a, tk_layout *out) {
    random_layout(rng, 64, out);
    if (rng_below(rng, 2)) return;
    tk_tuple shape, stride;
    tk_layout_shape(out, &shape);
    tk_layout_stride(out, &stride);
    int64_t prefix = 1;
    for (int i = 0; i < stride.leaf_count; i++) {
        int until = rng_below(rng, a->leaf_count + 1);
        prefix = 1;
        for (int j = 0; j < until; j++) prefix *= a->leaf[j].shape.value;
        if (prefix > 4096) prefix = 4096;
        stride.leaf[i].value = prefix * (1 + (rng_below(rng, 3) == 0) * rng_below(rng, 3));
    }
    assert_int_equal(tk_layout_make(&shape, &stride, out), TK_OK);
}

/* The coordinate that a refusal names: B and A(B) are as it says there, and the other value
 * differs. */
static void check_witness(const tk_layout *a, const tk_layout *b) {
    char coord[256] = "";
    long long index = 0, value = 0, other = 0;
    const char *at = strstr(tk_error_message(), "at c = ");
    EXPECT(at && sscanf(at, "at c = %255s B is %lld and A(B) is %lld, but a layout would give %lld",
                        coord, &index, &value, &other) == 4,
           "%s o %s: %s", show(a).text, show(b).text, tk_error_message());
    tk_tuple place = tuple_of(coord), reached;
    EXPECT_OK(tk_layout_eval(b, &place, &reached), "%s at %s", show(b).text, coord);
    EXPECT(reached.leaf[0].value == index && value_of(a, index) == value && value != other,
           "%s o %s at %s", show(a).text, show(b).text, coord);
}

/* A of few points whose strides go up and down, so that carries may cancel, and a B that goes
 * through it many times. */
static void random_winding(layout_rng *rng, tk_layout *a, tk_layout *b) {
    int64_t shape[3], stride[3];
    for (int i = 0; i < 3; i++) {
        shape[i] = 2 + rng_below(rng, 3);
        stride[i] = rng_below(rng, 12);
    }
    assert_int_equal(tk_layout_from_ints(3, shape, stride, a), TK_OK);
    int rank = 1 + rng_below(rng, 3);
    for (int i = 0; i < rank; i++) {
        shape[i] = 1 + rng_below(rng, rank == 1 ? 999 : rank == 2 ? 40 : 9);
        stride[i] = rng_below(rng, 50);
    }
    assert_int_equal(tk_layout_from_ints(rank, shape, stride, b), TK_OK);
}

static void law_composition(void **state) {
    (void)state;
    int answered = 0, refused = 0;
    FOR_CASES_UNTIL(answered, 11) {
        tk_layout a, b, r;
        random_layout(&rng, pick_limit(&rng), &a);
        random_right(&rng, &a, &b);
        if (step % 4 == 0) random_winding(&rng, &a, &b);
        tk_status status = tk_layout_composition(&a, &b, &r);
        bool exists = composition_exists(&a, &b);
        answered += exists;
        refused += !exists;
        EXPECT(exists ? status == TK_OK : status == TK_SHAPE_ERROR, "%s o %s: %s%s", show(&a).text,
               show(&b).text, exists ? "exists: " : "has no layout ", tk_error_message());
        if (exists)
            check_composition(&a, &b, &r);
        else
            check_witness(&a, &b);
    }
    EXPECT(answered == LAW_CASES && refused > LAW_CASES / 10, "%d answered, %d refused", answered,
           refused);
}

/* A coordinate that an error names really is one where no layout could follow. */
static void law_composition_by_mode(void **state) {
    (void)state;
    int answered = 0;
    FOR_CASES_UNTIL(answered, 12) {
        tk_layout a, b, r, mode_a, mode_r;
        random_layout(&rng, pick_limit(&rng), &a);
        int rank = tk_layout_rank(&a), modes = 1 + rng_below(&rng, rank);
        char text[2048] = "[";
        bool exists = true;
        for (int i = 0; i < modes; i++) {
            assert_int_equal(tk_layout_mode(&a, i, &mode_a), TK_OK);
            random_right(&rng, &mode_a, &b);
            bool skip = rng_below(&rng, 4) == 0;
            if (!skip) exists = exists && composition_exists(&mode_a, &b);
            if (i) strcat(text, ";");
            strcat(text, skip ? "_" : show(&b).text);
        }
        strcat(text, "]");
        tk_tiler tiler = tiler_of(text), tile;
        tk_status status = tk_layout_composition(&a, &tiler, &r);
        EXPECT(exists == (status == TK_OK), "%s o %s", show(&a).text, text);
        if (!exists) continue;
        answered++;
        EXPECT(tk_layout_rank(&r) == modes, "%s o %s", show(&a).text, text);
        char *at = text + 1;
        for (int i = 0; i < modes; i++) {
            char *end = at + strcspn(at, ";]");
            *end = 0;
            assert_int_equal(tk_layout_mode(&a, i, &mode_a), TK_OK);
            assert_int_equal(tk_layout_mode(&r, i, &mode_r), TK_OK);
            if (*at == '_') {
                EXPECT(tk_layout_equal(&mode_a, &mode_r), "mode %d", i);
            } else {
                tile = layout_of(at);
                check_composition(&mode_a, &tile, &mode_r);
            }
            at = end + 1;
        }
    }
    assert_int_equal(answered, LAW_CASES);
}

static void law_associative(void **state) {
    (void)state;
    int met = 0;
    FOR_CASES_UNTIL(met, 13) {
        tk_layout a, b, c, ab, bc, left, right;
        random_layout(&rng, pick_limit(&rng), &a);
        random_right(&rng, &a, &b);
        random_right(&rng, &b, &c);
        if (tk_layout_composition(&a, &b, &ab) || tk_layout_composition(&b, &c, &bc)) continue;
        if (tk_layout_composition(&ab, &c, &left) || tk_layout_composition(&a, &bc, &right))
            continue;
        int64_t size = size_of(&c), reach = size_of(&b);
        bool inside = true;
        for (int64_t i = 0; i < size; i++) inside = inside && value_of(&c, i) < reach;
        if (!inside) continue;
        met++;
        EXPECT(same_function(&left, &right), "(%s o %s) o %s", show(&a).text, show(&b).text,
               show(&c).text);
    }
    assert_int_equal(met, LAW_CASES);
}

/* -- Divides and products -- */

/* A tile that often divides: compact pieces with a stride. */
static void random_tile(layout_rng *rng, tk_layout *out) {
    tk_tuple shape;
    random_shape(rng, 16, &shape);
    random_strides(rng, &shape, (stride_kind)rng_below(rng, STRIDES_PADDED + 1), out);
}

static void check_groupings(const tk_layout *a, const tk_layout *b, const tk_layout *logical,
                            bool divide) {
    tk_layout zipped, tiled, flat, flat_zipped, flat_tiled;
    tk_status status[3] = {
        divide ? tk_layout_zipped_divide(a, b, &zipped) : tk_layout_zipped_product(a, b, &zipped),
        divide ? tk_layout_tiled_divide(a, b, &tiled) : tk_layout_tiled_product(a, b, &tiled),
        divide ? tk_layout_flat_divide(a, b, &flat) : tk_layout_flat_product(a, b, &flat)};
    for (int i = 0; i < 3; i++) EXPECT_OK(status[i], "%s by %s", show(a).text, show(b).text);
    EXPECT(tk_layout_equal(logical, &zipped), "%s by %s", show(a).text, show(b).text);
    tk_layout rest;
    assert_int_equal(tk_layout_mode(logical, 1, &rest), TK_OK);
    EXPECT(tk_layout_rank(&tiled) == 1 + tk_layout_rank(&rest), "%s", show(&tiled).text);
    assert_int_equal(tk_layout_flatten(&zipped, &flat_zipped), TK_OK);
    assert_int_equal(tk_layout_flatten(&tiled, &flat_tiled), TK_OK);
    EXPECT(tk_layout_equal(&flat_zipped, &flat_tiled), "%s", show(&tiled).text);
    assert_int_equal(tk_layout_flatten(&flat, &flat_tiled), TK_OK);
    EXPECT(tk_layout_equal(&flat_zipped, &flat_tiled), "%s", show(&flat).text);
}

static void check_permutes(const tk_layout *a, const tk_layout *b, const tk_layout *r) {
    tk_term span;
    assert_int_equal(tk_layout_cosize(a, &span), TK_OK);
    unsigned char *before = image_of(a, span.value), *after = image_of(r, span.value);
    EXPECT(!memcmp(before, after, (size_t)span.value), "%s divided by %s = %s", show(a).text,
           show(b).text, show(r).text);
    free(before);
    free(after);
}

static void law_divide(void **state) {
    (void)state;
    int permuted = 0;
    FOR_CASES_UNTIL(permuted, 14) {
        tk_layout a, b, whole, rest, both, r;
        random_layout(&rng, pick_limit(&rng) / 2, &a);
        random_tile(&rng, &b);
        tk_status status = tk_layout_logical_divide(&a, &b, &r);
        bool exists = complement_exists(&b);
        if (exists) {
            const tk_layout *parts[2] = {&b, &rest};
            assert_int_equal(tk_layout_complement(&b, tk_term_int(size_of(&a)), &rest), TK_OK);
            assert_int_equal(tk_layout_concat(parts, 2, &both), TK_OK);
            /* Past its end A goes on with its last leaf, or with the last above 1. */
            whole = a;
            if (!composition_exists(&a, &both) && size_of(&a) > 1)
                assert_int_equal(tk_layout_coalesce(&a, NULL, &whole), TK_OK);
            exists = composition_exists(&whole, &both);
        }
        EXPECT(exists ? status == TK_OK : status == TK_SHAPE_ERROR, "%s divided by %s: %s",
               show(&a).text, show(&b).text, tk_error_message());
        if (!exists) continue;
        check_composition(&whole, &both, &r);
        check_groupings(&a, &b, &r, true);
        if (size_of(&r) != size_of(&a)) continue;
        permuted++;
        check_permutes(&a, &b, &r);
    }
    assert_int_equal(permuted, LAW_CASES);
}

static void law_product(void **state) {
    (void)state;
    int answered = 0;
    FOR_CASES_UNTIL(answered, 15) {
        tk_layout a, b, r, block, tiles, gaps;
        tk_term span;
        random_injective(&rng, 32, &a);
        random_injective(&rng, 16, &b);
        if (rng_below(&rng, 8) == 0) random_layout(&rng, 16, &b);
        tk_status status = tk_layout_logical_product(&a, &b, &r);
        assert_int_equal(tk_layout_cosize(&b, &span), TK_OK);
        bool exists = complement_exists(&a);
        if (exists) {
            tk_term target = tk_term_int(size_of(&a) * span.value);
            assert_int_equal(tk_layout_complement(&a, target, &gaps), TK_OK);
            exists = composition_exists(&gaps, &b);
        }
        EXPECT(exists ? status == TK_OK : status == TK_SHAPE_ERROR, "%s times %s: %s",
               show(&a).text, show(&b).text, tk_error_message());
        if (!exists) continue;
        answered++;
        assert_int_equal(tk_layout_mode(&r, 0, &block), TK_OK);
        assert_int_equal(tk_layout_mode(&r, 1, &tiles), TK_OK);
        EXPECT(tk_layout_equal(&a, &block), "%s times %s", show(&a).text, show(&b).text);
        check_composition(&gaps, &b, &tiles);
        EXPECT(!is_injective(&a) || !is_injective(&b) || is_injective(&r),
               "%s times %s = %s is not injective", show(&a).text, show(&b).text, show(&r).text);
        check_groupings(&a, &b, &r, false);
    }
    assert_int_equal(answered, LAW_CASES);
}

/* One half of a product, and the shape of the operand it came from, one extent a mode. */
typedef struct half {
    const tk_layout *layout;
    int64_t extent[8];
} half;

static half half_of(const tk_layout *layout, const tk_layout *operand, int rank) {
    half made = {.layout = layout};
    for (int i = 0; i < rank; i++) {
        tk_layout mode;
        made.extent[i] = 1;
        if (i >= tk_layout_rank(operand)) continue;
        assert_int_equal(tk_layout_mode(operand, i, &mode), TK_OK);
        made.extent[i] = size_of(&mode);
    }
    return made;
}

/* Takes the digit of mode i from *rest, whose fastest part is `half`'s; adds it to *index. */
static void take_digit(const half *half, int i, int64_t *rest, int64_t *index, int64_t *prefix) {
    *index += *rest % half->extent[i] * *prefix;
    *prefix *= half->extent[i];
    *rest /= half->extent[i];
}

/* Mode i of a product zipped by modes counts through mode i of one operand, then of the other: by
 * the digits of the integer coordinate, without the library's own modes. */
static void check_zipped(const tk_layout *zipped, const half *first, const half *second, int rank) {
    int64_t size = size_of(zipped);
    EXPECT(
        tk_layout_rank(zipped) == rank && size == size_of(first->layout) * size_of(second->layout),
        "%s of %s and %s", show(zipped).text, show(first->layout).text, show(second->layout).text);
    for (int64_t c = 0; c < size; c++) {
        int64_t rest = c, x = 0, y = 0, prefix_x = 1, prefix_y = 1;
        for (int i = 0; i < rank; i++) {
            take_digit(first, i, &rest, &x, &prefix_x);
            take_digit(second, i, &rest, &y, &prefix_y);
        }
        EXPECT(value_of(zipped, c) == value_of(first->layout, x) + value_of(second->layout, y),
               "%s of %s and %s at %lld", show(zipped).text, show(first->layout).text,
               show(second->layout).text, (long long)c);
    }
}

static void law_blocked_and_raked(void **state) {
    (void)state;
    int answered = 0;
    FOR_CASES_UNTIL(answered, 16) {
        tk_layout a, b, pa, pb, r, block, tiles, blocked, raked;
        random_injective(&rng, 32, &a);
        random_injective(&rng, 16, &b);
        int rank =
            tk_layout_rank(&a) > tk_layout_rank(&b) ? tk_layout_rank(&a) : tk_layout_rank(&b);
        assert_int_equal(tk_layout_append(&a, rank, NULL, &pa), TK_OK);
        assert_int_equal(tk_layout_append(&b, rank, NULL, &pb), TK_OK);
        tk_status status = tk_layout_logical_product(&pa, &pb, &r);
        assert_int_equal(tk_layout_blocked_product(&a, &b, &blocked), status);
        assert_int_equal(tk_layout_raked_product(&a, &b, &raked), status);
        if (status != TK_OK) continue;
        answered++;
        assert_int_equal(tk_layout_mode(&r, 0, &block), TK_OK);
        assert_int_equal(tk_layout_mode(&r, 1, &tiles), TK_OK);
        EXPECT(is_injective(&blocked) && is_injective(&raked), "%s with %s", show(&a).text,
               show(&b).text);
        half inner = half_of(&block, &a, rank), outer = half_of(&tiles, &b, rank);
        check_zipped(&blocked, &inner, &outer, rank);
        check_zipped(&raked, &outer, &inner, rank);
    }
    assert_int_equal(answered, LAW_CASES);
}

static void law_tile_to_shape(void **state) {
    (void)state;
    FOR_CASES(17) {
        tk_layout block, r, mode, block_mode;
        tk_tuple shape, order;
        random_shape(&rng, 32, &shape);
        random_strides(&rng, &shape, (stride_kind)rng_below(&rng, STRIDES_PERMUTED + 1), &block);
        int rank = tk_layout_rank(&block) + rng_below(&rng, 2);
        int64_t target[8], keys[8], size = 1;
        for (int i = 0; i < rank; i++) {
            tk_term extent = tk_term_int(1);
            if (i < tk_layout_rank(&block)) {
                assert_int_equal(tk_layout_mode(&block, i, &block_mode), TK_OK);
                extent = tk_term_int(size_of(&block_mode));
            }
            target[i] = extent.value * (1 + rng_below(&rng, 3)) - rng_below(&rng, 2);
            if (target[i] < 1) target[i] = 1;
            keys[i] = rng_below(&rng, 3);
            size *= (target[i] + extent.value - 1) / extent.value * extent.value;
        }
        assert_int_equal(tk_tuple_from_ints(target, rank, &shape), TK_OK);
        assert_int_equal(tk_tuple_from_ints(keys, rank, &order), TK_OK);
        EXPECT_OK(tk_layout_tile_to_shape(&block, &shape, rng_below(&rng, 4) ? &order : NULL, &r),
                  "tile_to_shape %s", show(&block).text);
        EXPECT(tk_layout_rank(&r) == rank && size_of(&r) == size && is_injective(&r),
               "tile_to_shape %s = %s", show(&block).text, show(&r).text);
        for (int i = 0; i < tk_layout_rank(&block); i++) {
            tk_layout kept;
            assert_int_equal(tk_layout_mode(&r, i, &mode), TK_OK);
            assert_int_equal(tk_layout_mode(&mode, 0, &kept), TK_OK);
            assert_int_equal(tk_layout_mode(&block, i, &block_mode), TK_OK);
            EXPECT(tk_layout_equal(&kept, &block_mode), "block in %s", show(&r).text);
        }
    }
}

#include "layout/layout_laws_coords.h"

#include "layout/layout_laws_dynamic.h"
#include "layout/layout_laws_more.h"

/* Part 1 makes layouts from layouts, part 2 is the rest; 0 is both. */
static int run_laws(int part) {
    const struct CMUnitTest laws[] = {
        cmocka_unit_test(law_coalesce),
        cmocka_unit_test(law_coalesce_by_mode),
        cmocka_unit_test(law_rearrange),
        cmocka_unit_test(law_filter),
        cmocka_unit_test(law_complement),
        cmocka_unit_test(law_right_inverse),
        cmocka_unit_test(law_left_inverse),
        cmocka_unit_test(law_tests),
        cmocka_unit_test(law_nullspace),
        cmocka_unit_test(law_common_vector),
        cmocka_unit_test(law_composition),
        cmocka_unit_test(law_composition_by_mode),
        cmocka_unit_test(law_associative),
        cmocka_unit_test(law_divide),
        cmocka_unit_test(law_product),
        cmocka_unit_test(law_blocked_and_raked),
        cmocka_unit_test(law_tile_to_shape),
        cmocka_unit_test(law_recast),
        cmocka_unit_test(law_coordinates),
        cmocka_unit_test(law_slice),
        cmocka_unit_test(law_partition),
        cmocka_unit_test(law_thread_values),
        cmocka_unit_test(law_swizzle),
        cmocka_unit_test(law_text),
        cmocka_unit_test(law_ordered),
        cmocka_unit_test(law_compatible),
        cmocka_unit_test(law_layout_after_swizzle),
    };
    const struct CMUnitTest more[] = {
        cmocka_unit_test(law_measures),       cmocka_unit_test(law_tuple_arithmetic),
        cmocka_unit_test(law_shape_div),      cmocka_unit_test(law_increment),
        cmocka_unit_test(law_congruence),     cmocka_unit_test(law_modes),
        cmocka_unit_test(law_filter_zeros),   cmocka_unit_test(law_by_mode),
        cmocka_unit_test(law_local_tile),     cmocka_unit_test(law_composed),
        cmocka_unit_test(law_composed_slice), cmocka_unit_test(law_composed_recast),
        cmocka_unit_test(law_basis),          cmocka_unit_test(law_negative),
        cmocka_unit_test(law_text_of_others), cmocka_unit_test(law_banks),
        cmocka_unit_test(law_dynamic),
    };
    int failed = part == 2 ? 0 : cmocka_run_group_tests(laws, NULL, NULL);
    return part == 1 ? failed : failed + cmocka_run_group_tests(more, NULL, NULL);
}

#endif
