/* Sorting and partitioning: rows from short to longer than the radix sort's threshold, every dtype
 * and layout, repeated values, NaN and signed zeros, against a stable insertion by comparison. */
#include "cpu_ops/body_check.h"

/* Where an element belongs: numbers first, NaN last; complex numbers by NumPy's four classes. */
static int class_of(tk_dtype dtype, wide x) {
    if (is_whole(dtype)) return 0;
    bool re = isnan(x.re), im = dtype == TK_COMPLEX64 && isnan(x.im);
    return 2 * re + im;
}

static bool comes_before(tk_dtype dtype, wide a, wide b) {
    int a_class = class_of(dtype, a), b_class = class_of(dtype, b);
    if (a_class != b_class) return a_class < b_class;
    if (is_whole(dtype)) return a.integer < b.integer;
    if (!isnan(a.re) && a.re != b.re) return a.re < b.re;
    return dtype == TK_COMPLEX64 && !isnan(a.im) && a.im < b.im;
}

static wide random_element(tk_dtype dtype, bool special) {
    static const double specials[] = {NAN, -0.0, 0.0, INFINITY, -INFINITY, 1e-30, -1};
    if (is_whole(dtype))
        return wide_int((big)(int64_t)(special ? random_bits() : random_bits() % 40));
    real re = special && random_bits() % 3 == 0 ? specials[random_bits() % COUNT(specials)]
                                                : rint(8 * random_unit());
    real im = special && random_bits() % 3 == 0 ? specials[random_bits() % COUNT(specials)]
                                                : rint(4 * random_unit());
    return (wide){re, im, 0};
}

static sample random_sample(tk_dtype dtype, const int64_t *shape, layout how, bool special) {
    sample s = sample_new(dtype, 2, shape, how);
    for (int64_t i = 0; i < s.view.size; i++)
        sample_write(&s.view, i, random_element(dtype, special));
    return s;
}

/* The index in the operand of element `place` of line `line` along `axis`. */
static int64_t on_line(const int64_t *shape, int axis, int64_t line, int64_t place) {
    return axis ? line * shape[1] + place : place * shape[1] + line;
}

/* Neighbours of the result are in order and, where equal, in the order they had: so argsort is
 * checked alone, and sort against the elements that argsort names. */
static void check_sorted(const tk_strided *in, int axis, const tk_strided *sorted,
                         const tk_strided *order) {
    int64_t length = in->shape[axis], lines = length ? in->size / length : 0;
    bool *seen = calloc((size_t)length + 1, 1);
    for (int64_t line = 0; line < lines; line++) {
        memset(seen, 0, (size_t)length);
        int64_t previous = -1;
        for (int64_t place = 0; place < length; place++) {
            int64_t at = on_line(in->shape, axis, line, place);
            int64_t index = (int64_t)sample_read(order, at).integer;
            assert_true(index < length && !seen[index]);
            seen[index] = true;
            int64_t from = on_line(in->shape, axis, line, index);
            assert_memory_equal(element_at(sorted, at), element_at(in, from),
                                tk_dtype_size(in->dtype));
            if (previous >= 0) {
                wide a = sample_read(in, on_line(in->shape, axis, line, previous)),
                     b = sample_read(in, from);
                if (comes_before(in->dtype, b, a) ||
                    (!comes_before(in->dtype, a, b) && index < previous))
                    fail_at("order", in->dtype, at, b, a);
            }
            previous = index;
        }
    }
    free(seen);
}

static void run_sort(tk_dtype dtype, const int64_t *shape, layout how, int axis, bool special) {
    tk_attrs_axis attrs = {.axis = axis};
    sample in = random_sample(dtype, shape, how, special);
    sample sorted = call_sample(TK_OP_sort_axis, &attrs, 1, &in, dtype, 2, shape);
    sample order = call_sample(TK_OP_argsort_axis, &attrs, 1, &in, TK_UINT32, 2, shape);
    check_sorted(&in.view, axis, &sorted.view, &order.view);
    sample_free(&in);
    sample_free(&sorted);
    sample_free(&order);
}

static void test_sort(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{3, 1},   {4, 7},   {5, 16}, {3, 17},
                                        {2, 200}, {33, 40}, {0, 3},  {3, 0}};
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int s = 0; s < COUNT(shapes); s++)
            for (int how = 0; how < LAYOUTS; how++)
                for (int axis = 0; axis < 2; axis++)
                    for (int special = 0; special < 2; special++)
                        run_sort(all_dtypes[d], shapes[s], (layout)how, axis, special);
}

/* Rows that the radix sort takes. */
static void test_long_sort(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{2, 1023}, {2, 1024}, {1, 5000}, {3000, 2}};
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int s = 0; s < COUNT(shapes); s++)
            for (int special = 0; special < 2; special++)
                run_sort(all_dtypes[d], shapes[s], DENSE, shapes[s][0] > 2 ? 0 : 1, special);
}

static void run_partition(tk_dtype dtype, const int64_t *shape, layout how, int axis, int64_t kth) {
    tk_attrs_partition attrs = {.axis = axis, .kth = kth};
    sample in = random_sample(dtype, shape, how, true);
    sample parts = call_sample(TK_OP_partition_axis, &attrs, 1, &in, dtype, 2, shape);
    sample order = call_sample(TK_OP_argpartition_axis, &attrs, 1, &in, TK_UINT32, 2, shape);
    int64_t length = shape[axis];
    bool *seen = calloc((size_t)length, 1);
    for (int64_t line = 0; line < in.view.size / length; line++) {
        memset(seen, 0, (size_t)length);
        wide middle = sample_read(&parts.view, on_line(shape, axis, line, kth));
        for (int64_t place = 0; place < length; place++) {
            int64_t at = on_line(shape, axis, line, place);
            int64_t index = (int64_t)sample_read(&order.view, at).integer;
            assert_true(index < length && !seen[index]);
            seen[index] = true;
            int64_t from = on_line(shape, axis, line, index);
            assert_memory_equal(element_at(&parts.view, at), element_at(&in.view, from),
                                tk_dtype_size(dtype));
            wide value = sample_read(&parts.view, at);
            if (place < kth ? comes_before(dtype, middle, value)
                            : comes_before(dtype, value, middle))
                fail_at("partition", dtype, at, value, middle);
        }
    }
    free(seen);
    sample_free(&in);
    sample_free(&parts);
    sample_free(&order);
}

static void test_partition(void **state) {
    (void)state;
    static const int64_t shape[] = {3, 101}, tall[] = {130, 3};
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int how = 0; how < LAYOUTS; how++)
            for (int64_t kth = 0; kth <= 100; kth += 20) {
                run_partition(all_dtypes[d], shape, (layout)how, 1, kth);
                run_partition(all_dtypes[d], tall, (layout)how, 0, kth);
            }
}

/* Inputs on which a plain quickselect is quadratic: the pivots of this row are the worst at each
 * cut. */
static void test_hard_selection(void **state) {
    (void)state;
    enum { LENGTH = 60000 };
    static const int64_t shape[] = {1, LENGTH};
    tk_attrs_partition attrs = {.axis = 1, .kth = LENGTH / 2};
    sample in = sample_new(TK_INT32, 2, shape, DENSE);
    int32_t *values = in.view.data;
    for (int pattern = 0; pattern < 4; pattern++) {
        for (int i = 0; i < LENGTH; i++) {
            bool second = i >= LENGTH / 2;
            values[i] = pattern == 0   ? i
                        : pattern == 1 ? LENGTH - i
                        : pattern == 2 ? (second ? LENGTH - i : i)
                                       : (i % 2 ? i : LENGTH - i);
        }
        sample out = call_sample(TK_OP_partition_axis, &attrs, 1, &in, TK_INT32, 2, shape);
        sample sorted = call_sample(TK_OP_sort_axis, &attrs, 1, &in, TK_INT32, 2, shape);
        assert_int_equal(sample_read(&out.view, LENGTH / 2).integer,
                         sample_read(&sorted.view, LENGTH / 2).integer);
        sample_free(&out);
        sample_free(&sorted);
    }
    sample_free(&in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_long_sort),
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_hard_selection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
