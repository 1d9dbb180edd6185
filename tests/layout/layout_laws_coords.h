/* The laws of recasts, coordinates, slices, partitions, swizzles and text: the part of
 * layout_laws.h that does not make layouts from layouts. Included there only, behind its macros. */
#ifndef LAYOUT_LAWS_COORDS_H
#define LAYOUT_LAWS_COORDS_H

static void law_recast(void **state) {
    (void)state;
    FOR_CASES(18) {
        tk_layout a, wide, back, narrow;
        tk_tuple shape, stride;
        random_injective(&rng, pick_limit(&rng), &a);
        int64_t ratio = 2 + rng_below(&rng, 3), bits = 8;
        tk_layout_shape(&a, &shape);
        tk_layout_stride(&a, &stride);
        /* Elements come in groups of `ratio`: a leading leaf of stride 1, the others on multiples.
         */
        for (int i = 0; i < a.leaf_count; i++) {
            stride.leaf[i].value *= ratio;
            if (i == 0) shape.leaf[i].value = ratio * (1 + rng_below(&rng, 4));
            if (i == 0) stride.leaf[i].value = 1;
        }
        assert_int_equal(tk_layout_make(&shape, &stride, &a), TK_OK);
        EXPECT_OK(tk_layout_recast(&a, bits * ratio, bits, &wide), "recast %s", show(&a).text);
        EXPECT_OK(tk_layout_recast(&wide, bits, bits * ratio, &back), "recast %s",
                  show(&wide).text);
        bool plain = true;
        for (int i = 1; i < a.leaf_count; i++) plain = plain && a.leaf[i].stride.value > ratio;
        EXPECT(!plain || same_function(&a, &back), "recast %s by %lld = %s = %s", show(&a).text,
               (long long)ratio, show(&wide).text, show(&back).text);
        for (int64_t i = 0; plain && i < size_of(&a); i++) {
            int64_t row = i / a.leaf[0].shape.value, column = i % a.leaf[0].shape.value / ratio;
            int64_t at = column + row * wide.leaf[0].shape.value;
            EXPECT(value_of(&wide, at) == value_of(&a, i) / ratio, "recast %s = %s at %lld",
                   show(&a).text, show(&wide).text, (long long)i);
        }
        EXPECT_OK(tk_layout_recast(&a, bits, bits, &narrow), "recast %s", show(&a).text);
        EXPECT(tk_layout_equal(&a, &narrow), "recast %s", show(&a).text);
    }
}

static void law_coordinates(void **state) {
    (void)state;
    FOR_CASES(19) {
        tk_layout a;
        tk_tuple shape, index, coord, value, top;
        tk_term back;
        random_layout(&rng, pick_limit(&rng), &a);
        tk_layout_shape(&a, &shape);
        int64_t size = size_of(&a), i = rng_below(&rng, (int)size);
        tk_tuple_from_term(tk_term_int(i), &index);
        EXPECT_OK(tk_idx2crd(&index, &shape, &coord), "idx2crd %s", show(&a).text);
        EXPECT(tk_tuple_congruent(&coord, &shape), "idx2crd %s", show(&a).text);
        EXPECT_OK(tk_crd2idx(&coord, &shape, &back), "crd2idx %s", show(&a).text);
        EXPECT(back.value == i, "crd2idx %s of %lld", show(&a).text, (long long)i);
        const tk_tuple *forms[3] = {&index, &coord, &top};
        int64_t each[TK_LAYOUT_MAX_LEAVES], rest = i;
        int rank = tk_layout_rank(&a);
        for (int mode = 0; mode < rank; mode++) {
            tk_layout part;
            assert_int_equal(tk_layout_mode(&a, mode, &part), TK_OK);
            each[mode] = rest % size_of(&part);
            rest /= size_of(&part);
        }
        assert_int_equal(tk_tuple_from_ints(each, rank, &top), TK_OK);
        for (int form = 0; form < (tk_layout_depth(&a) ? 3 : 2); form++) {
            EXPECT_OK(tk_layout_eval(&a, forms[form], &value), "eval %s", show(&a).text);
            EXPECT(value.leaf[0].value == value_of(&a, i), "eval %s at %lld, form %d",
                   show(&a).text, (long long)i, form);
        }
        EXPECT(tk_layout_at(&a, i) == value_of(&a, i), "at %s", show(&a).text);
        int64_t past = size + rng_below(&rng, 50);
        EXPECT(tk_layout_at(&a, past) == value_of(&a, past), "past the end of %s", show(&a).text);
        int64_t run[16];
        EXPECT_OK(tk_layout_offsets(&a, i, 16, run), "offsets %s", show(&a).text);
        for (int j = 0; j < 16; j++)
            EXPECT(run[j] == value_of(&a, i + j), "offsets %s from %lld", show(&a).text,
                   (long long)i);
    }
}

static void law_slice(void **state) {
    (void)state;
    FOR_CASES(20) {
        tk_layout a, kept, fixed;
        tk_tuple shape, coord, index, value, offset;
        random_layout(&rng, pick_limit(&rng), &a);
        tk_layout_shape(&a, &shape);
        int64_t size = size_of(&a), i = rng_below(&rng, (int)size), inner = 0, prefix = 1;
        tk_tuple_from_term(tk_term_int(i), &index);
        assert_int_equal(tk_idx2crd(&index, &shape, &coord), TK_OK);
        for (int leaf = 0; leaf < coord.leaf_count; leaf++) {
            if (rng_below(&rng, 2)) continue;
            inner += coord.leaf[leaf].value * prefix;
            prefix *= shape.leaf[leaf].value;
            coord.leaf[leaf] = (tk_term){0, 0, TK_TERM_ANY};
        }
        EXPECT_OK(tk_layout_slice(&a, &coord, &kept), "slice %s", show(&a).text);
        EXPECT_OK(tk_layout_dice(&a, &coord, &fixed), "dice %s", show(&a).text);
        EXPECT_OK(tk_layout_eval(&a, &coord, &offset), "eval %s", show(&a).text);
        EXPECT(size_of(&kept) == prefix && size_of(&kept) * size_of(&fixed) == size, "slice %s",
               show(&a).text);
        tk_tuple_from_term(tk_term_int(inner), &index);
        EXPECT_OK(tk_layout_eval(&kept, &index, &value), "eval %s", show(&kept).text);
        EXPECT(offset.leaf[0].value + value.leaf[0].value == value_of(&a, i), "slice %s at %lld",
               show(&a).text, (long long)i);
    }
}

static void law_partition(void **state) {
    (void)state;
    int met = 0;
    FOR_CASES(21) {
        tk_layout a, threads, part;
        tk_tuple shape, offset;
        int64_t extents[2] = {1 << rng_below(&rng, 3), 1 << rng_below(&rng, 3)};
        int64_t sizes[2] = {extents[0] * (1 + rng_below(&rng, 3)),
                            extents[1] * (1 + rng_below(&rng, 3))};
        assert_int_equal(tk_tuple_from_ints(sizes, 2, &shape), TK_OK);
        random_strides(&rng, &shape, (stride_kind)rng_below(&rng, STRIDES_PADDED + 1), &a);
        assert_int_equal(tk_tuple_from_ints(extents, 2, &shape), TK_OK);
        random_strides(&rng, &shape, (stride_kind)rng_below(&rng, STRIDES_PERMUTED + 1), &threads);
        tk_term span;
        assert_int_equal(tk_layout_cosize(&a, &span), TK_OK);
        unsigned char *whole = image_of(&a, span.value), *hit = calloc(1, (size_t)span.value);
        int64_t count = size_of(&threads);
        for (int64_t t = 0; t < count; t++) {
            EXPECT_OK(tk_layout_local_partition(&a, &threads, t, &part, &offset), "%s for %s",
                      show(&a).text, show(&threads).text);
            for (int64_t i = 0; i < size_of(&part); i++)
                hit[offset.leaf[0].value + value_of(&part, i)]++;
        }
        EXPECT(!memcmp(whole, hit, (size_t)span.value), "%s for %s", show(&a).text,
               show(&threads).text);
        met++;
        free(whole);
        free(hit);
    }
    assert_int_equal(met, LAW_CASES);
}

static void law_thread_values(void **state) {
    (void)state;
    FOR_CASES(22) {
        tk_layout threads, values, tv;
        tk_tuple shape, tile;
        tk_term size;
        int64_t extents[2] = {1 << rng_below(&rng, 4), 1 << rng_below(&rng, 3)};
        assert_int_equal(tk_tuple_from_ints(extents, 2, &shape), TK_OK);
        random_strides(&rng, &shape, (stride_kind)rng_below(&rng, STRIDES_PERMUTED + 1), &threads);
        extents[0] = 1 + rng_below(&rng, 4);
        extents[1] = 1 + rng_below(&rng, 4);
        assert_int_equal(tk_tuple_from_ints(extents, 2, &shape), TK_OK);
        random_strides(&rng, &shape, (stride_kind)rng_below(&rng, STRIDES_PERMUTED + 1), &values);
        EXPECT_OK(tk_layout_make_tv(&threads, &values, &tile, &tv), "%s with %s",
                  show(&threads).text, show(&values).text);
        assert_int_equal(tk_tuple_product(&tile, &size), TK_OK);
        tk_term span;
        assert_int_equal(tk_layout_cosize(&tv, &span), TK_OK);
        EXPECT(size_of(&tv) == size.value && span.value == size.value && is_injective(&tv),
               "%s with %s = %s", show(&threads).text, show(&values).text, show(&tv).text);
    }
}

static void law_swizzle(void **state) {
    (void)state;
    FOR_CASES(23) {
        tk_swizzle s = {rng_below(&rng, 4), rng_below(&rng, 5), 0};
        s.shift = s.bits + rng_below(&rng, 3);
        if (rng_below(&rng, 2)) s.shift = -s.shift;
        assert_int_equal(tk_swizzle_check(s), TK_OK);
        int distance = s.shift < 0 ? -s.shift : s.shift;
        int64_t block = (int64_t)1 << (s.base + s.bits + distance);
        int64_t start = block * rng_below(&rng, 100);
        for (int i = 0; i < 32; i++) {
            int64_t x = start + rng_below(&rng, (int)block), y = tk_swizzle_apply(s, x);
            EXPECT(tk_swizzle_apply(s, y) == x && y >= start && y < start + block &&
                       ((x ^ y) & (((int64_t)1 << s.base) - 1)) == 0,
                   "S<%d,%d,%d> of %lld = %lld", (int)s.bits, (int)s.base, (int)s.shift,
                   (long long)x, (long long)y);
        }
    }
}

/* A layout after a swizzle, where that is one: both ways to evaluate give one value. */
static void law_layout_after_swizzle(void **state) {
    (void)state;
    int answered = 0;
    FOR_CASES_UNTIL(answered, 28) {
        tk_layout_value args[2], made;
        tk_tuple shape, at, x, y, offset;
        tk_swizzle s = {1 + rng_below(&rng, 2), rng_below(&rng, 3), 0};
        s.shift = (s.bits + rng_below(&rng, 2)) * (rng_below(&rng, 4) ? 1 : -1);
        int64_t extents[3];
        for (int i = 0; i < 3; i++) extents[i] = 1 << rng_below(&rng, 4);
        assert_int_equal(tk_tuple_from_ints(extents, 3, &shape), TK_OK);
        stride_kind kind = rng_below(&rng, 4) ? STRIDES_PERMUTED : STRIDES_PADDED;
        args[0].kind = TK_VALUE_LAYOUT;
        random_strides(&rng, &shape, kind, &args[0].as.layout);
        args[1].kind = TK_VALUE_COMPOSED;
        tk_composed *right = &args[1].as.composed;
        tk_layout b;
        if (rng_below(&rng, 2))
            random_layout(&rng, 32, &b);
        else
            assert_int_equal(tk_layout_from_ints(1, (int64_t[]){1 << rng_below(&rng, 6)},
                                                 (int64_t[]){1 << rng_below(&rng, 2)}, &b),
                             TK_OK);
        tk_tuple_from_term(tk_term_int(rng_below(&rng, 3) ? 0 : rng_below(&rng, 9)), &offset);
        assert_int_equal(tk_composed_make_swizzled(s, &offset, &b, right), TK_OK);
        if (tk_layout_call("composition", args, 2, &made) != TK_OK) continue;
        answered++;
        if (made.kind == TK_VALUE_LAYOUT) {
            tk_layout kept = made.as.layout;
            tk_composed_from_layout(&kept, &made.as.composed);
        }
        for (int64_t i = 0; i < size_of(&b); i++) {
            tk_tuple_from_term(tk_term_int(i), &at);
            EXPECT_OK(tk_composed_eval(right, &at, &x), "%s", show(&b).text);
            EXPECT_OK(tk_composed_eval(&made.as.composed, &at, &y), "%s", show(&b).text);
            EXPECT(y.leaf[0].value == value_of(&args[0].as.layout, x.leaf[0].value),
                   "%s o S<%d,%d,%d> o %lld o %s at %lld", show(&args[0].as.layout).text,
                   (int)s.bits, (int)s.base, (int)s.shift, (long long)offset.leaf[0].value,
                   show(&b).text, (long long)i);
        }
    }
    assert_int_equal(answered, LAW_CASES);
}

/* A term of any kind, printed by the library and parsed again. */
static void make_dynamic(layout_rng *rng, tk_layout *layout) {
    for (int i = 0; i < layout->leaf_count; i++) {
        tk_term_kind kind = rng_below(rng, 2) ? TK_TERM_I32 : TK_TERM_I64;
        tk_term some = tk_term_dynamic(kind, rng_below(rng, 2) ? 1 : 1 + rng_below(rng, 64));
        if (rng_below(rng, 4) == 0) layout->leaf[i].shape = some;
        if (rng_below(rng, 4) == 0) layout->leaf[i].stride = some;
        if (rng_below(rng, 4) == 0)
            layout->leaf[i].stride.basis =
                (uint32_t)(1 + rng_below(rng, 4)) | (uint32_t)rng_below(rng, 4) << 6;
        if (rng_below(rng, 8) == 0) layout->leaf[i].stride = tk_term_int(-rng_below(rng, 99));
    }
}

static void law_text(void **state) {
    (void)state;
    FOR_CASES(24) {
        tk_layout a, inner, back;
        tk_composed composed, again;
        char text[16384];
        random_layout(&rng, pick_limit(&rng), &a);
        make_dynamic(&rng, &a);
        EXPECT_OK(tk_layout_parse(show(&a).text, &back), "parse %s", show(&a).text);
        EXPECT(tk_layout_equal(&a, &back), "parse %s", show(&a).text);
        random_layout(&rng, 64, &a);
        random_layout(&rng, 64, &inner);
        if (rng_below(&rng, 2)) {
            tk_swizzle s = {rng_below(&rng, 4), rng_below(&rng, 5), 3};
            assert_int_equal(tk_composed_make_swizzled(s, NULL, &a, &composed), TK_OK);
        } else {
            assert_int_equal(tk_composed_make(&inner, NULL, &a, &composed), TK_OK);
        }
        tk_composed_print(&composed, text, sizeof text);
        EXPECT_OK(tk_composed_parse(text, &again), "parse %s", text);
        EXPECT(tk_composed_equal(&composed, &again), "parse %s", text);
    }
}

static void law_ordered(void **state) {
    (void)state;
    FOR_CASES(25) {
        tk_layout a, like, ordered;
        tk_tuple shape, order;
        random_injective(&rng, pick_limit(&rng), &a);
        EXPECT_OK(tk_layout_make_like(&a, &like), "like %s", show(&a).text);
        tk_layout_shape(&a, &shape);
        tk_layout_stride(&a, &order);
        EXPECT_OK(tk_layout_make_ordered(&shape, &order, &ordered), "ordered %s", show(&a).text);
        bool compact;
        assert_int_equal(tk_layout_is_compact(&ordered, &compact), TK_OK);
        EXPECT(compact, "ordered %s = %s", show(&a).text, show(&ordered).text);
        for (int i = 0; i < a.leaf_count; i++)
            for (int j = 0; j < a.leaf_count; j++) {
                tk_leaf x = a.leaf[i], y = a.leaf[j];
                if (x.shape.value == 1 || y.shape.value == 1) continue;
                EXPECT((x.stride.value < y.stride.value) ==
                           (ordered.leaf[i].stride.value < ordered.leaf[j].stride.value),
                       "ordered %s = %s", show(&a).text, show(&ordered).text);
                EXPECT(x.stride.value >= y.stride.value ||
                           like.leaf[i].stride.value < like.leaf[j].stride.value,
                       "like %s = %s", show(&a).text, show(&like).text);
            }
    }
}

static void law_compatible(void **state) {
    (void)state;
    int met = 0;
    FOR_CASES_UNTIL(met, 26) {
        tk_layout a, b, r;
        tk_tuple shape_b, shape_r, top;
        bool first, second, third;
        random_layout(&rng, 64, &a);
        random_tile(&rng, &b);
        if (tk_layout_composition(&a, &b, &r) != TK_OK) continue;
        met++;
        tk_layout_shape(&b, &shape_b);
        tk_layout_shape(&r, &shape_r);
        tk_term size;
        assert_int_equal(tk_tuple_product(&shape_b, &size), TK_OK);
        tk_tuple_from_term(size, &top);
        assert_int_equal(tk_tuple_compatible(&top, &shape_b, &first), TK_OK);
        assert_int_equal(tk_tuple_compatible(&shape_b, &shape_r, &second), TK_OK);
        assert_int_equal(tk_tuple_compatible(&top, &shape_r, &third), TK_OK);
        EXPECT(first && second && third, "%s <= %s", show(&b).text, show(&r).text);
        assert_int_equal(tk_tuple_compatible(&shape_r, &shape_b, &first), TK_OK);
        EXPECT(!first || tk_tuple_congruent(&shape_r, &shape_b), "%s and %s", show(&b).text,
               show(&r).text);
    }
    assert_int_equal(met, LAW_CASES);
}

#endif
