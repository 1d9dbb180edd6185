/* Reductions, logsumexp, softmax, arguments of extremes and scans: every set of axes of a small
 * array in every layout and dtype against plain loops in long double; long rows; the edge contract;
 * and that results do not depend on the thread count. */
#include "cpu_ops/body_check.h"

#define RANK 3

static const int64_t shape3[RANK] = {3, 4, 5};

/* The axes of a bit set. */
static tk_list axes_of(unsigned set, int64_t *items) {
    tk_list list = {items, 0};
    for (int i = 0; i < RANK; i++)
        if (set >> i & 1) items[list.count++] = i;
    return list;
}

static void reduced_shape(const int64_t *shape, unsigned set, int64_t *out) {
    for (int i = 0; i < RANK; i++) out[i] = set >> i & 1 ? 1 : shape[i];
}

/* The row-major index of the output that element `index` of the input belongs to. */
static int64_t target_of(const int64_t *shape, unsigned set, int64_t index) {
    int64_t target = 0, scale = 1;
    for (int i = RANK - 1; i >= 0; i--) {
        int64_t at = index % shape[i];
        index /= shape[i];
        if (set >> i & 1) continue;
        target += at * scale;
        scale *= shape[i];
    }
    return target;
}

static bool is_before(wide a, wide b) { /* complex order; integers have equal re and no im */
    return a.re < b.re || (a.re == b.re && a.im < b.im);
}

static wide combine(tk_op op, tk_dtype dtype, wide a, wide b) {
    bool truth = dtype == TK_BOOL;
    switch (op) {
    case TK_OP_reduce_sum:
    case TK_OP_scan_sum:
    case TK_OP_scan_steps:
        return (wide){a.re + b.re, a.im + b.im,
                      truth ? a.integer | b.integer : a.integer + b.integer};
    case TK_OP_reduce_prod:
    case TK_OP_scan_prod:
        return (wide){
            a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re,
            wide_round(truth ? TK_BOOL : TK_INT64, wide_int(a.integer * b.integer)).integer};
    case TK_OP_reduce_max:
    case TK_OP_reduce_any:
    case TK_OP_scan_max:
        return is_before(a, b) || isnan(b.re) ? b : a;
    default:
        return is_before(b, a) || isnan(b.re) ? b : a;
    }
}

static wide identity_of(tk_op op) {
    switch (op) {
    case TK_OP_reduce_prod:
    case TK_OP_scan_prod:
    case TK_OP_reduce_all:
        return wide_int(1);
    default:
        return wide_int(0);
    }
}

static bool takes(tk_op op, tk_dtype dtype) {
    if (op == TK_OP_reduce_any || op == TK_OP_reduce_all) return dtype == TK_BOOL;
    return accepts(op, dtype);
}

/* Units in the last place of the sum of magnitudes, since sums cancel. */
static void check_reduced(tk_op op, const tk_strided *in, const int64_t *shape, unsigned set,
                          const tk_strided *out) {
    bool extreme = op == TK_OP_reduce_max || op == TK_OP_reduce_min;
    for (int64_t target = 0; target < out->size; target++) {
        wide total = identity_of(op);
        real size = 0;
        bool first = true;
        for (int64_t i = 0; i < in->size; i++) {
            if (target_of(shape, set, i) != target) continue;
            wide next = sample_read(in, i);
            total = first ? next : combine(op, in->dtype, total, next);
            size = op == TK_OP_reduce_sum ? size + hypotl(next.re, next.im)
                                          : hypotl(total.re, total.im);
            first = false;
        }
        wide expected = wide_round(out->dtype, total), got = sample_read(out, target);
        real units = extreme ? 0 : 8;
        bool close = is_whole(out->dtype)
                         ? got.integer == expected.integer
                         : part_close(out->dtype, got.re, expected.re, size, units) &&
                               (in->dtype != TK_COMPLEX64 ||
                                part_close(out->dtype, got.im, expected.im, size, units));
        if (!close) fail_at(tk_op_name(op), in->dtype, target, got, expected);
    }
}

static const tk_op reductions[] = {TK_OP_reduce_sum, TK_OP_reduce_prod, TK_OP_reduce_max,
                                   TK_OP_reduce_min, TK_OP_reduce_any,  TK_OP_reduce_all};

/* The `still` layout repeats along the last axis: its neighbours in memory are one element. */
static void run_reduction(tk_op op, tk_dtype dtype, layout how, unsigned set) {
    int64_t items[RANK], out_shape[RANK];
    tk_attrs_reduce attrs = {.axes = axes_of(set, items)};
    reduced_shape(shape3, set, out_shape);
    sample in = sample_moderate(dtype, RANK, shape3, how);
    sample out = call_sample(op, &attrs, 1, &in, dtype, RANK, out_shape);
    check_reduced(op, &in.view, shape3, set, &out.view);
    sample_free(&in);
    sample_free(&out);
}

static void test_all_axes(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int k = 0; k < COUNT(reductions); k++)
            for (int d = 0; d < COUNT(all_dtypes); d++)
                for (int how = 0; takes(reductions[k], all_dtypes[d]) && how < LAYOUTS; how++)
                    for (unsigned set = 0; set < 1u << RANK; set++)
                        run_reduction(reductions[k], all_dtypes[d], (layout)how, set);
    }
    tk_cpu_use_reference(false);
}

/* Lengths around the blocks of the kernels, inner and outer. */
static void test_long_axes(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 70001}, {70001, 1}, {3, 4099}, {4099, 3}, {129, 130}};
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int s = 0; s < COUNT(shapes); s++)
            for (int64_t axis = 0; axis < 2; axis++) {
                sample in = sample_new(TK_FLOAT32, 2, shapes[s], DENSE);
                int64_t out_shape[2] = {shapes[s][0], shapes[s][1]};
                out_shape[axis] = 1;
                for (int64_t i = 0; i < in.view.size; i++)
                    ((float *)in.view.data)[i] = 1 + (float)random_unit() / 4;
                tk_attrs_reduce attrs = {.axes = {&axis, 1}};
                sample out =
                    call_sample(TK_OP_reduce_sum, &attrs, 1, &in, TK_FLOAT32, 2, out_shape);
                for (int64_t o = 0; o < out.view.size; o++) {
                    real total = 0;
                    for (int64_t i = 0; i < shapes[s][axis]; i++)
                        total +=
                            ((float *)
                                 in.view.data)[axis ? o * shapes[s][1] + i : i * shapes[s][1] + o];
                    wide got = sample_read(&out.view, o), expected = wide_real(total);
                    if (!wide_close(TK_FLOAT32, got, expected, 8))
                        fail_at("long sum", TK_FLOAT32, o, got, expected);
                }
                sample_free(&in);
                sample_free(&out);
            }
    }
    tk_cpu_use_reference(false);
}

/* ---- logsumexp and softmax ---- */

typedef long double complex complex_real;

static void check_softmax(const tk_strided *in, const int64_t *shape, unsigned set,
                          const tk_strided *softmax, const tk_strided *lse) {
    for (int64_t i = 0; i < in->size; i++) {
        int64_t target = target_of(shape, set, i);
        complex_real sum = 0;
        for (int64_t k = 0; k < in->size; k++) {
            wide x = sample_read(in, k);
            if (target_of(shape, set, k) == target) sum += cexpl(x.re + I * x.im);
        }
        wide x = sample_read(in, i), got = sample_read(softmax, i);
        complex_real share = cexpl(x.re + I * x.im) / sum, log_sum = clogl(sum);
        wide expected = {creall(share), cimagl(share), 0};
        real units = in->dtype == TK_FLOAT64 ? 16 : 8;
        if (!wide_close(in->dtype, got, expected, units))
            fail_at("softmax", in->dtype, i, got, expected);
        got = sample_read(lse, target);
        expected = (wide){creall(log_sum), cimagl(log_sum), 0};
        bool close = part_close(in->dtype, got.re, expected.re, fabsl(expected.re) + 1, units) &&
                     part_close(in->dtype, got.im, expected.im, fabsl(expected.im) + 1, units);
        if (!close) fail_at("logsumexp", in->dtype, target, got, expected);
    }
}

static void run_softmax(tk_dtype dtype, layout how, unsigned set) {
    int64_t items[RANK], out_shape[RANK];
    tk_attrs_reduce attrs = {.axes = axes_of(set, items)};
    reduced_shape(shape3, set, out_shape);
    sample in = sample_moderate(dtype, RANK, shape3, how);
    sample softmax = call_sample(TK_OP_softmax_axes, &attrs, 1, &in, dtype, RANK, shape3);
    sample lse = call_sample(TK_OP_reduce_logsumexp, &attrs, 1, &in, dtype, RANK, out_shape);
    check_softmax(&in.view, shape3, set, &softmax.view, &lse.view);
    sample_free(&in);
    sample_free(&softmax);
    sample_free(&lse);
}

static void test_softmax(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int d = 0; d < COUNT(all_dtypes); d++)
            for (int how = 0; tk_dtype_is_inexact(all_dtypes[d]) && how < LAYOUTS; how++)
                for (unsigned set = 1; set < 1u << RANK; set++)
                    run_softmax(all_dtypes[d], (layout)how, set);
    }
    tk_cpu_use_reference(false);
}

static void test_softmax_in_place(void **state) {
    (void)state;
    for (unsigned set = 1; set < 1u << RANK; set++) {
        int64_t items[RANK];
        tk_attrs_reduce attrs = {.axes = axes_of(set, items)};
        sample in = sample_moderate(TK_FLOAT32, RANK, shape3, DENSE);
        sample expected = call_sample(TK_OP_softmax_axes, &attrs, 1, &in, TK_FLOAT32, RANK, shape3);
        assert_int_equal(call_body(TK_OP_softmax_axes, &attrs, 1, &in.view, 1, &in.view), TK_OK);
        check_same("softmax in place", &in.view, &expected.view, 0);
        sample_free(&in);
        sample_free(&expected);
    }
}

typedef struct row_case {
    double x[3];
    double lse, first; /* of softmax */
} row_case;

static void test_row_edges(void **state) {
    (void)state;
    static const row_case cases[] = {
        {{-INFINITY, -INFINITY, -INFINITY}, -INFINITY, NAN},
        {{INFINITY, 1, 2}, INFINITY, NAN},
        {{NAN, 1, INFINITY}, NAN, NAN},
        {{-INFINITY, 0, -INFINITY}, 0, 0},
        {{1000, 1000, -1000}, 1000.69314718055994531, 0.5},
        {{-INFINITY, NAN, 1}, NAN, NAN},
    };
    static const tk_dtype dtypes[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};
    int64_t shape[] = {1, 3}, one[] = {1, 1}, axis = 1;
    tk_attrs_reduce attrs = {.axes = {&axis, 1}};
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int c = 0; c < COUNT(cases) * COUNT(dtypes); c++) {
            const row_case *row = &cases[c / COUNT(dtypes)];
            tk_dtype dtype = dtypes[c % COUNT(dtypes)];
            sample in = sample_new(dtype, 2, shape, DENSE);
            for (int i = 0; i < 3; i++) sample_write(&in.view, i, wide_real(row->x[i]));
            sample softmax = call_sample(TK_OP_softmax_axes, &attrs, 1, &in, dtype, 2, shape);
            sample lse = call_sample(TK_OP_reduce_logsumexp, &attrs, 1, &in, dtype, 2, one);
            wide got = sample_read(&lse.view, 0), expected = wide_real(row->lse);
            if (!wide_close(dtype, got, expected, 4)) fail_at("logsumexp", dtype, c, got, expected);
            got = sample_read(&softmax.view, 0), expected = wide_real(row->first);
            if (!wide_close(dtype, got, expected, 4)) fail_at("softmax", dtype, c, got, expected);
            sample_free(&in);
            sample_free(&softmax);
            sample_free(&lse);
        }
    }
    tk_cpu_use_reference(false);
}

/* ---- empty arrays ---- */

static void check_filled(const tk_strided *out, real expected) {
    for (int64_t i = 0; i < out->size; i++) {
        wide got = sample_read(out, i), value = {expected, 0, expected != 0};
        if (!wide_close(out->dtype, got, value, 0)) fail_at("empty", out->dtype, i, got, value);
    }
}

static void test_empty(void **state) {
    (void)state;
    int64_t shape[] = {2, 0, 3}, kept[] = {2, 1, 3}, none[] = {1, 0, 3}, axis = 1, outer = 0;
    tk_attrs_reduce inner_attrs = {.axes = {&axis, 1}}, outer_attrs = {.axes = {&outer, 1}};
    static const struct {
        tk_op op;
        tk_dtype dtype;
        real expected;
    } cases[] = {{TK_OP_reduce_sum, TK_FLOAT32, 0},
                 {TK_OP_reduce_prod, TK_FLOAT16, 1},
                 {TK_OP_reduce_sum, TK_INT32, 0},
                 {TK_OP_reduce_prod, TK_COMPLEX64, 1},
                 {TK_OP_reduce_any, TK_BOOL, 0},
                 {TK_OP_reduce_all, TK_BOOL, 1},
                 {TK_OP_reduce_logsumexp, TK_FLOAT32, -INFINITY}};
    for (int i = 0; i < COUNT(cases); i++) {
        sample in = sample_new(cases[i].dtype, RANK, shape, DENSE);
        sample out = call_sample(cases[i].op, &inner_attrs, 1, &in, cases[i].dtype, RANK, kept);
        check_filled(&out.view, cases[i].expected);
        sample_free(&out);
        out = call_sample(cases[i].op, &outer_attrs, 1, &in, cases[i].dtype, RANK, none);
        sample_free(&out);
        sample_free(&in);
    }
    sample in = sample_new(TK_FLOAT32, RANK, shape, DENSE);
    tk_attrs_scan scan = {.axis = 1, .inclusive = 1};
    sample out = call_sample(TK_OP_scan_sum, &scan, 1, &in, TK_FLOAT32, RANK, shape);
    sample_free(&out);
    sample_free(&in);
}

/* ---- arguments of extremes ---- */

static void run_argument(tk_op op, tk_dtype dtype, layout how, int axis) {
    int64_t out_shape[RANK];
    unsigned set = 1u << axis;
    tk_attrs_axis attrs = {.axis = axis};
    reduced_shape(shape3, set, out_shape);
    sample in = sample_moderate(dtype, RANK, shape3, how);
    if (!is_whole(dtype)) sample_write(&in.view, 17, wide_real(NAN));
    sample out = call_sample(op, &attrs, 1, &in, TK_UINT32, RANK, out_shape);
    for (int64_t target = 0; target < out.view.size; target++) {
        big best = 0, place = 0;
        wide value = {0, 0, 0};
        for (int64_t i = 0; i < in.view.size; i++) {
            if (target_of(shape3, set, i) != target) continue;
            wide next = sample_read(&in.view, i);
            bool better =
                op == TK_OP_reduce_argmax ? is_before(value, next) : is_before(next, value);
            if (place == 0 || (!isnan(value.re) && (better || isnan(next.re)))) {
                best = place;
                value = next;
            }
            place++;
        }
        wide got = sample_read(&out.view, target);
        if (got.integer != best) fail_at(tk_op_name(op), dtype, target, got, wide_int(best));
    }
    sample_free(&in);
    sample_free(&out);
}

static void test_arguments(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int d = 0; d < COUNT(all_dtypes); d++)
            for (int how = 0; how < LAYOUTS; how++)
                for (int axis = 0; axis < RANK; axis++) {
                    run_argument(TK_OP_reduce_argmax, all_dtypes[d], (layout)how, axis);
                    run_argument(TK_OP_reduce_argmin, all_dtypes[d], (layout)how, axis);
                }
    }
    tk_cpu_use_reference(false);
}

/* ---- scans ---- */

static wide scan_identity(tk_op op, tk_dtype dtype) {
    real infinite = op == TK_OP_scan_min ? INFINITY : -INFINITY;
    if (op == TK_OP_scan_sum || op == TK_OP_scan_prod || op == TK_OP_scan_steps)
        return identity_of(op);
    if (dtype == TK_COMPLEX64)
        return (wide){infinite, op == TK_OP_scan_logsumexp ? 0 : infinite, 0};
    if (!is_whole(dtype)) return wide_real(infinite);
    if (dtype == TK_BOOL) return wide_int(op == TK_OP_scan_min);
    int width = 8 * (int)tk_dtype_size(dtype);
    bool is_signed = tk_dtype_kind(dtype) == TK_KIND_SIGNED;
    big top = ((big)1 << (width - is_signed)) - 1;
    return wide_int(op == TK_OP_scan_min ? top : is_signed ? -top - 1 : 0);
}

static wide scan_combine(tk_op op, tk_dtype dtype, wide a, wide b) {
    if (op != TK_OP_scan_logsumexp) return combine(op, dtype, a, b);
    if (isinf(a.re)) return b;
    complex_real sum = clogl(cexpl(a.re + I * a.im) + cexpl(b.re + I * b.im));
    return (wide){creall(sum), cimagl(sum), 0};
}

/* Element `place` of the line that contains `index`, along `axis`. */
static int64_t on_line(int64_t index, int axis, int64_t place) {
    int64_t stride = axis == 2 ? 1 : axis == 1 ? shape3[2] : shape3[1] * shape3[2];
    int64_t at = index / stride % shape3[axis];
    return index + (place - at) * stride;
}

static void check_scan(tk_op op, const tk_attrs_scan *attrs, const tk_strided *in,
                       const tk_strided *out) {
    int axis = (int)attrs->axis;
    for (int64_t i = 0; i < in->size; i++) {
        if (on_line(i, axis, 0) != i) continue;
        wide total = scan_identity(op, in->dtype);
        real size = 1;
        for (int64_t k = 0; k < shape3[axis]; k++) {
            int64_t at = on_line(i, axis, attrs->reverse ? shape3[axis] - 1 - k : k);
            wide before = total, next = sample_read(in, at), got = sample_read(out, at);
            total = k ? scan_combine(op, in->dtype, total, next) : next;
            size += hypotl(next.re, next.im) + (isinf(total.re) ? 0 : hypotl(total.re, total.im));
            wide expected = wide_round(out->dtype, attrs->inclusive ? total : before);
            bool close = is_whole(in->dtype)
                             ? got.integer == expected.integer
                             : part_close(in->dtype, got.re, expected.re, size, 2) &&
                                   part_close(in->dtype, got.im, expected.im, size, 2);
            if (!close) fail_at(tk_op_name(op), in->dtype, at, got, expected);
        }
    }
}

static void run_scan(tk_op op, tk_dtype dtype, layout how) {
    for (int flags = 0; flags < 4; flags++)
        for (int axis = 0; axis < RANK; axis++) {
            tk_attrs_scan attrs = {.axis = axis, .reverse = flags & 1, .inclusive = flags >> 1};
            sample in = sample_moderate(dtype, RANK, shape3, how);
            sample out = call_sample(op, &attrs, 1, &in, dtype, RANK, shape3);
            check_scan(op, &attrs, &in.view, &out.view);
            sample_free(&in);
            sample_free(&out);
        }
}

static void test_scans(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int op = TK_OP_scan_sum; op <= TK_OP_scan_steps; op++)
            for (int d = 0; d < COUNT(all_dtypes); d++)
                for (int how = 0; accepts((tk_op)op, all_dtypes[d]) && how < LAYOUTS; how++)
                    run_scan((tk_op)op, all_dtypes[d], (layout)how);
    }
    tk_cpu_use_reference(false);
}

/* Rounded at each step: the loop that anybody would write, bit for bit. */
static void test_sums_step_by_step(void **state) {
    (void)state;
    const tk_dtype dtypes[] = {TK_FLOAT16, TK_BFLOAT16, TK_FLOAT32, TK_FLOAT64};
    const int64_t length = 1000;
    const tk_attrs_scan attrs = {.axis = 0, .inclusive = true};
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int how = 0; how < LAYOUTS; how++) {
            sample in = sample_moderate(dtypes[d], 1, &length, (layout)how);
            sample out = call_sample(TK_OP_scan_steps, &attrs, 1, &in, dtypes[d], 1, &length);
            wide total = {0};
            for (int64_t i = 0; i < length; i++) {
                total = wide_round(dtypes[d], wide_real(total.re + sample_read(&in.view, i).re));
                assert_true(sample_read(&out.view, i).re == total.re);
            }
            sample_free(&out);
            sample_free(&in);
        }
}

/* ---- threads ---- */

/* The same bits for 1, 2 and 5 threads, rows long enough to be split. */
static void run_threads(tk_op op, const void *attrs, layout how, const int64_t *shape,
                        const int64_t *out_shape) {
    sample in = sample_moderate(TK_FLOAT32, 2, shape, how), first = {.memory = NULL};
    for (int threads = 1; threads <= 5; threads = threads == 1 ? 2 : threads + 3) {
        assert_int_equal(tk_pool_set_threads(threads), TK_OK);
        sample out = call_sample(op, attrs, 1, &in, TK_FLOAT32, 2, out_shape);
        if (first.memory) {
            assert_memory_equal(out.view.data, first.view.data, (size_t)out.view.size * 4);
            sample_free(&out);
        } else {
            first = out;
        }
    }
    sample_free(&first);
    sample_free(&in);
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
}

static void test_threads(void **state) {
    (void)state;
    int64_t shape[] = {300, 1100}, columns[] = {1, 1100}, one[] = {1, 1}, axes[] = {0, 1};
    tk_attrs_reduce both = {.axes = {axes, 2}}, outer = {.axes = {axes, 1}},
                    inner = {.axes = {axes + 1, 1}};
    tk_attrs_scan scan = {.axis = 0, .inclusive = 1};
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        run_threads(TK_OP_reduce_sum, &both, DENSE, shape, one);
        run_threads(TK_OP_reduce_sum, &both, SPACED, shape, one);
        run_threads(TK_OP_reduce_sum, &outer, DENSE, shape, columns);
        run_threads(TK_OP_reduce_logsumexp, &outer, TRANSPOSED, shape, columns);
        run_threads(TK_OP_softmax_axes, &inner, DENSE, shape, shape);
        run_threads(TK_OP_softmax_axes, &outer, DENSE, shape, shape);
        run_threads(TK_OP_scan_sum, &scan, DENSE, shape, shape);
    }
    tk_cpu_use_reference(false);
}

/* Sixteen axes, of which those that count do not merge. */
static void test_highest_rank(void **state) {
    (void)state;
    int64_t shape[TK_AXES_MAX], one[TK_AXES_MAX], axes[TK_AXES_MAX];
    for (int i = 0; i < TK_AXES_MAX; i++) {
        shape[i] = i % 2 ? 2 : 1;
        one[i] = 1;
        axes[i] = i;
    }
    tk_attrs_reduce attrs = {.axes = {axes, TK_AXES_MAX}};
    sample in = sample_new(TK_INT32, TK_AXES_MAX, shape, SPACED);
    for (int64_t i = 0; i < in.view.size; i++) sample_write(&in.view, i, wide_int(i));
    sample out = call_sample(TK_OP_reduce_sum, &attrs, 1, &in, TK_INT32, TK_AXES_MAX, one);
    assert_int_equal(sample_read(&out.view, 0).integer, in.view.size * (in.view.size - 1) / 2);
    sample_free(&out);
    sample_free(&in);
    in = sample_new(TK_FLOAT32, TK_AXES_MAX, shape, SPACED);
    out = call_sample(TK_OP_softmax_axes, &attrs, 1, &in, TK_FLOAT32, TK_AXES_MAX, shape);
    assert_true(sample_read(&out.view, 5).re == 1.0L / in.view.size);
    sample_free(&out);
    sample_free(&in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_axes),     cmocka_unit_test(test_long_axes),
        cmocka_unit_test(test_softmax),      cmocka_unit_test(test_softmax_in_place),
        cmocka_unit_test(test_row_edges),    cmocka_unit_test(test_empty),
        cmocka_unit_test(test_arguments),    cmocka_unit_test(test_scans),
        cmocka_unit_test(test_threads),      cmocka_unit_test(test_sums_step_by_step),
        cmocka_unit_test(test_highest_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
