/* Bodies that move elements: contiguous, reshape, bitcast, astype, const, iota, join, pad,
 * slice_set, in every layout and dtype against element by element copies. */
#include "cpu_ops/body_check.h"

static void run_copy(tk_dtype dtype, layout how, int rank, const int64_t *shape) {
    sample in = sample_moderate(dtype, rank, shape, how);
    sample out = call_sample(TK_OP_contiguous, NULL, 1, &in, dtype, rank, shape);
    check_same("contiguous", &out.view, &in.view, 0);
    sample_free(&out);
    out = call_sample(TK_OP_reshape_to, NULL, 1, &in, dtype, 1, &in.view.size);
    for (int64_t i = 0; i < in.view.size; i++)
        assert_memory_equal(element_at(&out.view, i), element_at(&in.view, i),
                            tk_dtype_size(dtype));
    sample_free(&out);
    sample_free(&in);
}

/* Sizes around the tile of the transposed copy, and axes too short for runs. */
static void test_copies(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{3, 5, 7},    {1, 33, 65}, {2, 64, 3},
                                        {40, 1, 200}, {3, 0, 2},   {1000, 2, 3}};
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int how = 0; how < LAYOUTS; how++) {
            for (int s = 0; s < COUNT(shapes); s++)
                run_copy(all_dtypes[d], (layout)how, 3, shapes[s]);
            run_copy(all_dtypes[d], (layout)how, 0, NULL);
        }
}

/* Large enough for several threads, and with a batch around the transposed axes. */
static void test_large_transpose(void **state) {
    (void)state;
    static const int64_t shape[] = {3, 257, 301};
    sample in = sample_new(TK_FLOAT32, 3, shape, DENSE);
    for (int64_t i = 0; i < in.view.size; i++) ((uint32_t *)in.view.data)[i] = (uint32_t)i;
    tk_strided turned = in.view;
    turned.shape[1] = shape[2], turned.shape[2] = shape[1];
    turned.strides[1] = 1, turned.strides[2] = shape[2];
    sample out = sample_new(TK_FLOAT32, 3, turned.shape, DENSE);
    assert_int_equal(call_body(TK_OP_contiguous, NULL, 1, &turned, 1, &out.view), TK_OK);
    for (int64_t i = 0; i < out.view.size; i++)
        assert_memory_equal(element_at(&out.view, i), element_at(&turned, i), 4);
    sample_check_edges(&out);
    sample_free(&out);
    sample_free(&in);
}

static void test_bitcast(void **state) {
    (void)state;
    static const int64_t wide_shape[] = {3, 4}, narrow_shape[] = {3, 8};
    for (int how = 0; how < LAYOUTS; how++) {
        sample in = sample_moderate(TK_FLOAT32, 2, wide_shape, (layout)how);
        tk_attrs_dtype to_narrow = {.dtype = TK_UINT16}, to_wide = {.dtype = TK_FLOAT32};
        sample narrow = call_sample(TK_OP_bitcast, &to_narrow, 1, &in, TK_UINT16, 2, narrow_shape);
        for (int64_t i = 0; i < in.view.size; i++)
            assert_memory_equal((char *)narrow.view.data + 4 * i, element_at(&in.view, i), 4);
        sample spread = sample_copy(&narrow.view, (layout)(how == STILL ? SPACED : how));
        sample back = call_sample(TK_OP_bitcast, &to_wide, 1, &spread, TK_FLOAT32, 2, wide_shape);
        check_same("bitcast", &back.view, &in.view, 0);
        sample_free(&in);
        sample_free(&narrow);
        sample_free(&spread);
        sample_free(&back);
    }
}

/* Values that both dtypes hold arrive as they are, by any layout. */
static void test_astype(void **state) {
    (void)state;
    static const int64_t shape[] = {9, 6, 53};
    for (int from = 0; from < COUNT(all_dtypes); from++)
        for (int to = 0; to < COUNT(all_dtypes); to++)
            for (int how = 0; how < LAYOUTS; how++) {
                tk_attrs_dtype attrs = {.dtype = all_dtypes[to]};
                sample in = sample_new(all_dtypes[from], 3, shape, (layout)how);
                for (int64_t i = 0; i < in.view.size; i++)
                    sample_write(&in.view, i, wide_int((int)(random_bits() % 128)));
                sample out = call_sample(TK_OP_astype, &attrs, 1, &in, all_dtypes[to], 3, shape);
                for (int64_t i = 0; i < in.view.size; i++) {
                    wide value = sample_read(&in.view, i), got = sample_read(&out.view, i);
                    wide expected = all_dtypes[to] == TK_BOOL ? wide_int(value.re != 0)
                                                              : wide_int((big)value.re);
                    if (!wide_close(all_dtypes[to], got, expected, 0))
                        fail_at(tk_dtype_name(all_dtypes[from]), all_dtypes[to], i, got, expected);
                }
                sample_free(&in);
                sample_free(&out);
            }
}

/* ---- leaves ---- */

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void test_const(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(all_dtypes); d++) {
        tk_dtype dtype = all_dtypes[d];
        bool truth = dtype == TK_BOOL, whole = is_whole(dtype);
        tk_attrs_constant attrs = {
            .dtype = dtype, .real = whole ? (truth ? 1 : 77) : bits_of(1.5), .imag = bits_of(-2.5)};
        sample out = call_sample(TK_OP_const, &attrs, 0, NULL, dtype, 0, NULL);
        wide expected =
            whole ? wide_int(truth ? 1 : 77) : (wide){1.5L, dtype == TK_COMPLEX64 ? -2.5L : 0, 0};
        wide got = sample_read(&out.view, 0);
        if (!wide_close(dtype, got, expected, 0)) fail_at("const", dtype, 0, got, expected);
        sample_free(&out);
    }
}

static void test_iota(void **state) {
    (void)state;
    static const int64_t shape[] = {3, 5, 2};
    for (int d = 1; d < COUNT(all_dtypes); d++)
        for (int axis = 0; axis < 3; axis++) {
            tk_dtype dtype = all_dtypes[d];
            bool whole = is_whole(dtype);
            tk_attrs_iota attrs = {.dtype = dtype,
                                   .shape = {shape, 3},
                                   .axis = axis,
                                   .start = whole ? 7 : bits_of(7),
                                   .step = whole ? (uint64_t)-2 : bits_of(-2)};
            sample out = call_sample(TK_OP_iota, &attrs, 0, NULL, dtype, 3, shape);
            for (int64_t i = 0; i < out.view.size; i++) {
                int64_t at = axis == 0 ? i / 10 : axis == 1 ? i / 2 % 5 : i % 2;
                wide got = sample_read(&out.view, i),
                     expected = wide_round(dtype, wide_int(7 - 2 * at));
                if (!wide_close(dtype, got, expected, 0)) fail_at("iota", dtype, i, got, expected);
            }
            sample_free(&out);
        }
}

/* A long range of floats is start + i * step, rounded once. */
static void test_long_iota(void **state) {
    (void)state;
    int64_t shape[] = {3000};
    tk_attrs_iota attrs = {
        .dtype = TK_FLOAT32, .shape = {shape, 1}, .start = bits_of(0.1), .step = bits_of(0.3)};
    sample out = call_sample(TK_OP_iota, &attrs, 0, NULL, TK_FLOAT32, 1, shape);
    for (int64_t i = 0; i < shape[0]; i++)
        assert_true(((float *)out.view.data)[i] == (float)(0.1 + 0.3 * (double)i));
    sample_free(&out);
}

/* ---- boxes ---- */

static void run_join(tk_dtype dtype, int axis) {
    static const int64_t lengths[] = {2, 0, 3, 1};
    sample inputs[4];
    int64_t shape[] = {3, 4, 5}, first[5] = {0};
    for (int k = 0; k < 4; k++) {
        shape[axis] = lengths[k];
        inputs[k] = sample_moderate(dtype, 3, shape, (layout)k);
        first[k + 1] = first[k] + lengths[k];
    }
    shape[axis] = first[4];
    tk_attrs_axis attrs = {.axis = axis};
    sample out = call_sample(TK_OP_join, &attrs, 4, inputs, dtype, 3, shape);
    for (int64_t i = 0; i < out.view.size; i++) {
        int64_t at[3] = {i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]};
        int k = 0;
        while (at[axis] >= first[k + 1]) k++;
        at[axis] -= first[k];
        const tk_strided *in = &inputs[k].view;
        int64_t index = (at[0] * in->shape[1] + at[1]) * in->shape[2] + at[2];
        assert_memory_equal(element_at(&out.view, i), element_at(in, index), tk_dtype_size(dtype));
    }
    for (int k = 0; k < 4; k++) sample_free(&inputs[k]);
    sample_free(&out);
}

static void test_join(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int axis = 0; axis < 3; axis++) run_join(all_dtypes[d], axis);
}

static void run_pad(tk_dtype dtype, layout how, const int64_t *shape) {
    static const int64_t low[] = {1, 0, 2}, high[] = {0, 3, 1};
    int64_t padded[3];
    for (int i = 0; i < 3; i++) padded[i] = low[i] + shape[i] + high[i];
    tk_attrs_pad attrs = {.low = {low, 3}, .high = {high, 3}};
    sample inputs[2] = {sample_moderate(dtype, 3, shape, how),
                        sample_moderate(dtype, 0, NULL, DENSE)};
    sample out = call_sample(TK_OP_pad_with, &attrs, 2, inputs, dtype, 3, padded);
    for (int64_t i = 0; i < out.view.size; i++) {
        int64_t at[3] = {i / (padded[1] * padded[2]), i / padded[2] % padded[1], i % padded[2]};
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            at[k] -= low[k];
            inside = inside && at[k] >= 0 && at[k] < shape[k];
        }
        const void *expected =
            inside ? element_at(&inputs[0].view, (at[0] * shape[1] + at[1]) * shape[2] + at[2])
                   : inputs[1].view.data;
        assert_memory_equal(element_at(&out.view, i), expected, tk_dtype_size(dtype));
    }
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

static void test_pad(void **state) {
    (void)state;
    static const int64_t shape[] = {2, 3, 4}, empty[] = {2, 0, 4};
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int how = 0; how < LAYOUTS; how++) {
            run_pad(all_dtypes[d], (layout)how, shape);
            run_pad(all_dtypes[d], (layout)how, empty);
        }
}

static wide combined(tk_mode mode, tk_dtype dtype, wide a, wide b) {
    bool truth = dtype == TK_BOOL, larger = a.re > b.re || (a.re == b.re && a.im >= b.im);
    switch (mode) {
    case TK_ADD:
        return wide_round(dtype, (wide){a.re + b.re, a.im + b.im,
                                        truth ? a.integer | b.integer : a.integer + b.integer});
    case TK_PROD:
        return wide_round(dtype, (wide){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re,
                                        a.integer * b.integer});
    case TK_MAX:
        return larger ? a : b;
    case TK_MIN:
        return larger ? b : a;
    default:
        return b;
    }
}

static void run_slice_set(tk_dtype dtype, tk_mode mode, layout how, bool in_place) {
    static const int64_t shape[] = {5, 6}, start[] = {1, 5}, step[] = {2, -2}, box[] = {2, 3};
    tk_attrs_slice_set attrs = {.start = {start, 2}, .step = {step, 2}, .mode = mode};
    sample inputs[2] = {sample_moderate(dtype, 2, shape, in_place ? DENSE : how),
                        sample_moderate(dtype, 2, box, how)};
    sample expected = sample_copy(&inputs[0].view, DENSE);
    for (int64_t i = 0; i < 6; i++) {
        int64_t at = (start[0] + step[0] * (i / 3)) * 6 + start[1] + step[1] * (i % 3);
        wide old = sample_read(&expected.view, at), update = sample_read(&inputs[1].view, i);
        sample_write(&expected.view, at, combined(mode, dtype, old, update));
    }
    if (in_place) {
        tk_strided views[2] = {inputs[0].view, inputs[1].view};
        assert_int_equal(call_body(TK_OP_slice_set, &attrs, 2, views, 1, &inputs[0].view), TK_OK);
        check_same("slice_set in place", &inputs[0].view, &expected.view, 1);
    } else {
        sample out = call_sample(TK_OP_slice_set, &attrs, 2, inputs, dtype, 2, shape);
        check_same("slice_set", &out.view, &expected.view, 1);
        sample_free(&out);
    }
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&expected);
}

static void test_slice_set(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int mode = 0; mode < TK_MODE_COUNT; mode++)
            for (int how = 0; how < LAYOUTS; how++) {
                run_slice_set(all_dtypes[d], (tk_mode)mode, (layout)how, false);
                run_slice_set(all_dtypes[d], (tk_mode)mode, (layout)how, true);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),    cmocka_unit_test(test_large_transpose),
        cmocka_unit_test(test_bitcast),   cmocka_unit_test(test_astype),
        cmocka_unit_test(test_const),     cmocka_unit_test(test_iota),
        cmocka_unit_test(test_long_iota), cmocka_unit_test(test_join),
        cmocka_unit_test(test_pad),       cmocka_unit_test(test_slice_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
