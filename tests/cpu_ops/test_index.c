/* gather, scatter and their forms along an axis against element by element loops: layouts, index
 * dtypes, modes, repeated indices, in place, and indices out of range. */
#include "cpu_ops/body_check.h"

static const tk_dtype index_dtypes[] = {TK_UINT8, TK_UINT16, TK_UINT32, TK_UINT64,
                                        TK_INT8,  TK_INT16,  TK_INT32,  TK_INT64};

/* Indices of a range, each value several times. */
static sample index_sample(tk_dtype dtype, int rank, const int64_t *shape, layout how,
                           int64_t length) {
    sample s = sample_new(dtype, rank, shape, how);
    for (int64_t i = 0; i < s.view.size; i++)
        sample_write(&s.view, i, wide_int((int64_t)(random_bits() % (uint64_t)length)));
    return s;
}

static wide combined(tk_mode mode, tk_dtype dtype, wide a, wide b) {
    bool truth = dtype == TK_BOOL, larger = a.re > b.re || (a.re == b.re && a.im >= b.im);
    switch (mode) {
    case TK_ADD:
        return (wide){a.re + b.re, a.im + b.im,
                      truth ? a.integer | b.integer : a.integer + b.integer};
    case TK_PROD:
        return (wide){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re,
                      wide_round(TK_INT64, wide_int(a.integer * b.integer)).integer};
    case TK_MAX:
        return larger ? a : b;
    case TK_MIN:
        return larger ? b : a;
    default:
        return b;
    }
}

/* ---- gather ---- */

/* a[6, 5, 4] at pairs of indices for axes 2 and 0, slices of 1 x 3 x 1 (or all of axis 1). */
static void run_gather(tk_dtype dtype, tk_dtype index_dtype, layout how, int64_t slice) {
    static const int64_t shape[] = {6, 5, 4}, index_shape[] = {2, 3}, axes[] = {2, 0};
    int64_t sizes[] = {1, slice, 1}, out_shape[] = {2, 3, 1, slice, 1};
    tk_attrs_gather attrs = {.axes = {axes, 2}, .slice_sizes = {sizes, 3}};
    sample inputs[3] = {
        sample_moderate(dtype, 3, shape, how), index_sample(index_dtype, 2, index_shape, how, 4),
        index_sample(index_dtype, 2, index_shape, (layout)((how + 1) % LAYOUTS), 6)};
    sample out = call_sample(TK_OP_gather, &attrs, 3, inputs, dtype, 5, out_shape);
    for (int64_t i = 0; i < out.view.size; i++) {
        int64_t position = i / slice,
                column = (int64_t)sample_read(&inputs[1].view, position).integer;
        int64_t row = (int64_t)sample_read(&inputs[2].view, position).integer;
        int64_t from = (row * 5 + i % slice) * 4 + column;
        assert_memory_equal(element_at(&out.view, i), element_at(&inputs[0].view, from),
                            tk_dtype_size(dtype));
    }
    assert_true(last_fault.position == INT64_MAX);
    for (int k = 0; k < 3; k++) sample_free(&inputs[k]);
    sample_free(&out);
}

static void test_gather(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int k = 0; k < COUNT(index_dtypes); k++)
            for (int how = 0; how < LAYOUTS; how++)
                for (int64_t slice = 1; slice <= 5; slice += 2)
                    run_gather(all_dtypes[d], index_dtypes[k], (layout)how, slice);
}

/* Whole rows by more indices than a block has. */
static void test_gather_rows(void **state) {
    (void)state;
    static const int64_t shape[] = {50, 8}, index_shape[] = {1000}, axes[] = {0}, sizes[] = {1, 8};
    int64_t out_shape[] = {1000, 1, 8};
    tk_attrs_gather attrs = {.axes = {axes, 1}, .slice_sizes = {sizes, 2}};
    sample inputs[2] = {sample_moderate(TK_FLOAT32, 2, shape, DENSE),
                        index_sample(TK_INT32, 1, index_shape, REVERSED, 50)};
    sample out = call_sample(TK_OP_gather, &attrs, 2, inputs, TK_FLOAT32, 3, out_shape);
    for (int64_t i = 0; i < 1000; i++) {
        int64_t row = (int64_t)sample_read(&inputs[1].view, i).integer;
        assert_memory_equal(element_at(&out.view, i * 8), element_at(&inputs[0].view, row * 8), 32);
    }
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

/* The first bad position is reported, its slice reads as 0, nothing is read outside. */
static void test_gather_faults(void **state) {
    (void)state;
    static const int64_t shape[] = {4, 3}, index_shape[] = {5}, axes[] = {0}, sizes[] = {1, 3};
    static const int64_t values[] = {0, 3, 4, INT64_MIN, 1};
    int64_t out_shape[] = {5, 1, 3};
    tk_attrs_gather attrs = {.axes = {axes, 1}, .slice_sizes = {sizes, 2}};
    sample inputs[2] = {sample_moderate(TK_FLOAT32, 2, shape, DENSE),
                        sample_new(TK_INT64, 1, index_shape, SPACED)};
    for (int64_t i = 0; i < 5; i++) sample_write(&inputs[1].view, i, wide_int(values[i]));
    sample out = call_sample(TK_OP_gather, &attrs, 2, inputs, TK_FLOAT32, 3, out_shape);
    assert_int_equal(last_fault.position, 2);
    assert_int_equal(last_fault.index, 4);
    assert_int_equal(last_fault.length, 4);
    for (int64_t i = 6; i < 12; i++) assert_true(sample_read(&out.view, i).re == 0);
    assert_memory_equal(element_at(&out.view, 12), element_at(&inputs[0].view, 3), 12);
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

/* ---- along an axis ---- */

static void place_of(const int64_t *shape, int64_t index, int64_t *at) {
    for (int i = 2; i >= 0; i--) {
        at[i] = index % shape[i];
        index /= shape[i];
    }
}

static int64_t index_at(const int64_t *shape, const int64_t *at) {
    return (at[0] * shape[1] + at[1]) * shape[2] + at[2];
}

static void run_gather_along(tk_dtype dtype, tk_dtype index_dtype, layout how, int axis) {
    static const int64_t shape[] = {4, 5, 6};
    int64_t index_shape[] = {4, 5, 6};
    index_shape[axis] = 7;
    tk_attrs_axis attrs = {.axis = axis};
    sample inputs[2] = {
        sample_moderate(dtype, 3, shape, how),
        index_sample(index_dtype, 3, index_shape, (layout)((how + 2) % LAYOUTS), shape[axis])};
    sample out = call_sample(TK_OP_gather_along, &attrs, 2, inputs, dtype, 3, index_shape);
    for (int64_t i = 0; i < out.view.size; i++) {
        int64_t at[3];
        place_of(index_shape, i, at);
        at[axis] = (int64_t)sample_read(&inputs[1].view, i).integer;
        assert_memory_equal(element_at(&out.view, i),
                            element_at(&inputs[0].view, index_at(shape, at)), tk_dtype_size(dtype));
    }
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

static void test_gather_along(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int k = 0; k < COUNT(index_dtypes); k++)
            for (int how = 0; how < LAYOUTS; how++)
                for (int axis = 0; axis < 3; axis++)
                    run_gather_along(all_dtypes[d], index_dtypes[k], (layout)how, axis);
}

static void run_scatter_along(tk_dtype dtype, layout how, int axis, tk_mode mode, int64_t count) {
    static const int64_t shape[] = {4, 5, 6};
    int64_t index_shape[] = {4, 5, 6};
    index_shape[axis] = count;
    tk_attrs_scatter_axis attrs = {.axis = axis, .mode = mode};
    sample inputs[3] = {
        sample_moderate(dtype, 3, shape, how),
        index_sample(TK_INT32, 3, index_shape, (layout)((how + 1) % LAYOUTS), shape[axis]),
        sample_moderate(dtype, 3, index_shape, (layout)((how + 2) % LAYOUTS))};
    wide totals[4 * 5 * 6];
    real sizes[4 * 5 * 6];
    for (int64_t i = 0; i < 120; i++) {
        totals[i] = sample_read(&inputs[0].view, i);
        sizes[i] = hypotl(totals[i].re, totals[i].im);
    }
    for (int64_t i = 0; i < inputs[1].view.size; i++) {
        int64_t at[3];
        place_of(index_shape, i, at);
        at[axis] = (int64_t)sample_read(&inputs[1].view, i).integer;
        int64_t to = index_at(shape, at);
        wide update = sample_read(&inputs[2].view, i);
        totals[to] = combined(mode, dtype, totals[to], update);
        sizes[to] +=
            mode == TK_ADD ? hypotl(update.re, update.im) : hypotl(totals[to].re, totals[to].im);
    }
    sample out = call_sample(TK_OP_scatter_along, &attrs, 3, inputs, dtype, 3, shape);
    for (int64_t i = 0; i < 120; i++) {
        wide got = sample_read(&out.view, i), expected = wide_round(dtype, totals[i]);
        bool close = is_whole(dtype) ? got.integer == expected.integer
                                     : part_close(dtype, got.re, expected.re, sizes[i], 2) &&
                                           (dtype != TK_COMPLEX64 ||
                                            part_close(dtype, got.im, expected.im, sizes[i], 2));
        if (!close) fail_at("scatter_along", dtype, i, got, expected);
    }
    for (int k = 0; k < 3; k++) sample_free(&inputs[k]);
    sample_free(&out);
}

static void test_scatter_along(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int d = 0; d < COUNT(all_dtypes); d++)
            for (int how = 0; how < LAYOUTS; how++)
                for (int axis = 0; axis < 3; axis++)
                    for (int mode = 0; mode < TK_MODE_COUNT; mode++) {
                        run_scatter_along(all_dtypes[d], (layout)how, axis, (tk_mode)mode, 3);
                        run_scatter_along(all_dtypes[d], (layout)how, axis, (tk_mode)mode, 40);
                    }
    }
    tk_cpu_use_reference(false);
}

static void test_along_faults(void **state) {
    (void)state;
    static const int64_t shape[] = {2, 3};
    static const int values[] = {0, 2, 1, 3, -1, 0};
    sample inputs[3] = {sample_moderate(TK_FLOAT32, 2, shape, DENSE),
                        sample_new(TK_INT32, 2, shape, TRANSPOSED),
                        sample_moderate(TK_FLOAT32, 2, shape, DENSE)};
    for (int64_t i = 0; i < 6; i++) sample_write(&inputs[1].view, i, wide_int(values[i]));
    tk_attrs_axis attrs = {.axis = 1};
    sample out = call_sample(TK_OP_gather_along, &attrs, 2, inputs, TK_FLOAT32, 2, shape);
    assert_int_equal(last_fault.position, 3);
    assert_int_equal(last_fault.index, 3);
    assert_true(sample_read(&out.view, 3).re == 0 && sample_read(&out.view, 4).re == 0);
    sample_free(&out);
    tk_attrs_scatter_axis scatter = {.axis = 1, .mode = TK_SET};
    out = call_sample(TK_OP_scatter_along, &scatter, 3, inputs, TK_FLOAT32, 2, shape);
    assert_int_equal(last_fault.position, 3);
    assert_int_equal(last_fault.index, 3);
    assert_int_equal(last_fault.length, 3);
    assert_true(sample_read(&out.view, 4).re == sample_read(&inputs[0].view, 4).re);
    assert_true(sample_read(&out.view, 3).re == sample_read(&inputs[2].view, 5).re);
    for (int k = 0; k < 3; k++) sample_free(&inputs[k]);
    sample_free(&out);
}

/* ---- scatter ---- */

/* Slices of 1 x `slice` into a[9, slice] at repeated rows, one of them out of range. */
static void run_scatter(tk_dtype dtype, layout how, tk_mode mode, int64_t slice, bool in_place) {
    enum { ROWS = 9, POSITIONS = 300, MOST = 70 };
    int64_t shape[] = {ROWS, slice}, index_shape[] = {POSITIONS},
            update_shape[] = {POSITIONS, 1, slice};
    static const int64_t axes[] = {0};
    tk_attrs_scatter attrs = {.axes = {axes, 1}, .mode = mode};
    sample inputs[3] = {sample_moderate(dtype, 2, shape, in_place ? DENSE : how),
                        sample_new(dtype, 3, update_shape, (layout)((how + 1) % LAYOUTS)),
                        index_sample(TK_INT16, 1, index_shape, DENSE, ROWS)};
    for (int64_t i = 0; i < inputs[1].view.size; i++) /* products stay moderate */
        sample_write(&inputs[1].view, i,
                     mode == TK_PROD ? wide_int(i % 7 ? 1 : 1 + (i % 11 == 0)) : moderate(dtype));
    sample_write(&inputs[2].view, 200, wide_int(-3));
    static wide totals[ROWS * MOST];
    static real sizes[ROWS * MOST];
    for (int64_t i = 0; i < ROWS * slice; i++) {
        totals[i] = sample_read(&inputs[0].view, i);
        sizes[i] = hypotl(totals[i].re, totals[i].im);
    }
    for (int64_t i = 0; i < POSITIONS * slice; i++) {
        if (i / slice == 200) continue;
        int64_t to = (int64_t)sample_read(&inputs[2].view, i / slice).integer * slice + i % slice;
        wide update = sample_read(&inputs[1].view, i);
        totals[to] = combined(mode, dtype, totals[to], update);
        sizes[to] += hypotl(update.re, update.im) + hypotl(totals[to].re, totals[to].im);
    }
    sample out;
    if (in_place) {
        tk_strided views[3] = {inputs[0].view, inputs[1].view, inputs[2].view};
        assert_int_equal(call_body(TK_OP_scatter, &attrs, 3, views, 1, &views[0]), TK_OK);
        out = sample_copy(&inputs[0].view, DENSE);
    } else {
        out = call_sample(TK_OP_scatter, &attrs, 3, inputs, dtype, 2, shape);
    }
    assert_int_equal(last_fault.position, 200);
    assert_int_equal(last_fault.index, -3);
    for (int64_t i = 0; i < out.view.size; i++) {
        wide got = sample_read(&out.view, i), expected = wide_round(dtype, totals[i]);
        bool close = is_whole(dtype) ? got.integer == expected.integer
                                     : part_close(dtype, got.re, expected.re, sizes[i], 2) &&
                                           (dtype != TK_COMPLEX64 ||
                                            part_close(dtype, got.im, expected.im, sizes[i], 2));
        if (!close) fail_at("scatter", dtype, i, got, expected);
    }
    for (int k = 0; k < 3; k++) sample_free(&inputs[k]);
    sample_free(&out);
}

static void test_scatter(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int d = 0; d < COUNT(all_dtypes); d++)
            for (int how = 0; how < LAYOUTS; how++)
                for (int mode = 0; mode < TK_MODE_COUNT; mode++) {
                    run_scatter(all_dtypes[d], (layout)how, (tk_mode)mode, 1, false);
                    run_scatter(all_dtypes[d], (layout)how, (tk_mode)mode, 70, false);
                    run_scatter(all_dtypes[d], (layout)how, (tk_mode)mode, 5, true);
                }
    }
    tk_cpu_use_reference(false);
}

/* Half sums do not lose small addends: 256 + 512 * 0.5 is 512, which bf16 steps would never reach.
 */
static void test_half_sums(void **state) {
    (void)state;
    static const int64_t shape[] = {2}, index_shape[] = {512}, update_shape[] = {512, 1},
                         axes[] = {0};
    tk_attrs_scatter attrs = {.axes = {axes, 1}, .mode = TK_ADD};
    sample inputs[3] = {sample_new(TK_BFLOAT16, 1, shape, DENSE),
                        sample_new(TK_BFLOAT16, 2, update_shape, DENSE),
                        sample_new(TK_INT32, 1, index_shape, DENSE)};
    sample_write(&inputs[0].view, 0, wide_real(256));
    sample_write(&inputs[0].view, 1, wide_real(3));
    for (int64_t i = 0; i < 512; i++) {
        sample_write(&inputs[1].view, i, wide_real(0.5L));
        sample_write(&inputs[2].view, i, wide_int(0));
    }
    sample out = call_sample(TK_OP_scatter, &attrs, 3, inputs, TK_BFLOAT16, 1, shape);
    assert_true(sample_read(&out.view, 0).re == 512);
    assert_true(sample_read(&out.view, 1).re == 3);
    for (int k = 0; k < 3; k++) sample_free(&inputs[k]);
    sample_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),        cmocka_unit_test(test_gather_rows),
        cmocka_unit_test(test_gather_faults), cmocka_unit_test(test_gather_along),
        cmocka_unit_test(test_scatter_along), cmocka_unit_test(test_along_faults),
        cmocka_unit_test(test_scatter),       cmocka_unit_test(test_half_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
