/* Convolutions as bodies against the sum that defines them: every dtype, operand layouts, strides,
 * dilations of both operands, unequal and negative padding, groups, one channel a group, long
 * kernels and flips, with the portable code and without. */
#include "cpu_ops/body_check.h"

#define L(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), { __VA_ARGS__ }                        \
    }

typedef struct list {
    int64_t count, items[5];
} list;

typedef struct geometry {
    list input, weight, stride, low, high, kernel_dilation, input_dilation;
    int groups, flip;
} geometry;

static const geometry geometries[] = {
    {L(2, 7, 3), L(4, 3, 3), L(1), L(0), L(0), L(1), L(1), 1, 0},
    {L(2, 7, 3), L(4, 3, 3), L(2), L(2), L(1), L(2), L(1), 1, 1},
    {L(3, 9, 8), L(12, 4, 2), L(3), L(1), L(5), L(1), L(2), 4, 0},
    {L(2, 6, 5, 4), L(5, 3, 2, 4), L(1, 1), L(1, 0), L(1, 1), L(1, 1), L(1, 1), 1, 0},
    {L(2, 6, 5, 4), L(5, 1, 1, 4), L(1, 1), L(0, 0), L(0, 0), L(1, 1), L(1, 1), 1, 0},
    {L(2, 6, 5, 4), L(4, 1, 1, 2), L(1, 1), L(0, 0), L(0, 0), L(1, 1), L(1, 1), 2, 1},
    {L(3, 6, 5, 4), L(5, 6, 5, 4), L(1, 1), L(0, 0), L(0, 0), L(1, 1), L(1, 1), 1, 0},
    {L(2, 9, 8, 6), L(6, 3, 3, 1), L(1, 2), L(1, 1), L(1, 1), L(1, 1), L(1, 1), 6, 0},
    {L(1, 5, 6, 20), L(20, 2, 3, 1), L(1, 1), L(1, 2), L(0, 1), L(2, 1), L(2, 3), 20, 1},
    {L(1, 5, 6, 3), L(6, 2, 2, 1), L(1, 1), L(0, 0), L(0, 0), L(1, 1), L(1, 1), 3, 0},
    {L(2, 4, 5, 2), L(3, 3, 4, 2), L(1, 1), L(2, 3), L(3, 1), L(1, 1), L(2, 3), 1, 1},
    {L(2, 4, 5, 2), L(3, 3, 4, 2), L(3, 2), L(2, 3), L(3, 9), L(2, 3), L(4, 6), 1, 0},
    {L(2, 7, 8, 2), L(3, 2, 3, 2), L(1, 2), L(-2, 1), L(1, -3), L(1, 1), L(1, 1), 1, 0},
    {L(1, 3, 4, 5, 2), L(3, 2, 3, 2, 2), L(1, 2, 1), L(1, 0, 1), L(0, 1, 1), L(1, 1, 2), L(1, 2, 1),
     1, 1},
    {L(1, 2, 3, 2, 4), L(4, 2, 2, 1, 2), L(1, 1, 1), L(0, 1, 0), L(1, 0, 0), L(1, 1, 1), L(1, 1, 1),
     2, 0},
    {L(0, 7, 3), L(4, 3, 3), L(1), L(0), L(0), L(1), L(1), 1, 0},
    {L(2, 7, 0), L(4, 3, 0), L(1), L(0), L(0), L(1), L(1), 1, 0},
    {L(2, 0, 3), L(4, 3, 3), L(1), L(2), L(2), L(1), L(2), 1, 0},
    {L(2, 7, 3), L(4, 0, 3), L(2), L(2), L(2), L(1), L(1), 1, 0},
    {L(1, 40, 9), L(40, 3, 9), L(1), L(1), L(1), L(1), L(1), 1, 0},
    {L(2, 3000, 5), L(3, 2990, 5), L(1), L(0), L(0), L(1), L(1), 1, 1},
    {L(1, 90, 80, 3), L(4, 88, 77, 3), L(1, 1), L(0, 0), L(0, 0), L(1, 1), L(1, 1), 1, 0},
};

static tk_list list_of(const list *from) { return (tk_list){from->items, from->count}; }

static int64_t span(int64_t length, int64_t dilation) {
    return length ? (length - 1) * dilation + 1 : 0;
}

static void output_shape(const geometry *g, int64_t *shape) {
    int rank = (int)g->input.count;
    shape[0] = g->input.items[0];
    shape[rank - 1] = g->weight.items[0];
    for (int i = 0; i < rank - 2; i++) {
        int64_t room = span(g->input.items[1 + i], g->input_dilation.items[i]) + g->low.items[i] +
                       g->high.items[i] - span(g->weight.items[1 + i], g->kernel_dilation.items[i]);
        shape[1 + i] = room < 0 ? 0 : room / g->stride.items[i] + 1;
    }
}

typedef struct sum {
    wide total;
    real size;
} sum;

/* Adds the products of one tap, whose place in the kernel is `tap`, at the output `place`. */
static void add_tap(const geometry *g, const tk_strided *x, const tk_strided *w,
                    const int64_t *place, const int64_t *tap, sum *s) {
    int spatial = (int)g->input.count - 2;
    int64_t each = g->weight.items[spatial + 1], outputs = g->weight.items[0] / g->groups;
    int64_t output = place[spatial + 1], from = place[0], to = output;
    for (int i = 0; i < spatial; i++) {
        int64_t at = place[1 + i] * g->stride.items[i] + tap[i] * g->kernel_dilation.items[i] -
                     g->low.items[i];
        int64_t spread = g->input_dilation.items[i], length = g->weight.items[1 + i];
        if (at < 0 || at % spread || at / spread >= g->input.items[1 + i]) return;
        from = from * g->input.items[1 + i] + at / spread;
        to = to * length + (g->flip ? length - 1 - tap[i] : tap[i]);
    }
    for (int64_t c = 0; c < each; c++) {
        wide a = sample_read(x, from * each * g->groups + output / outputs * each + c);
        wide b = sample_read(w, to * each + c);
        s->total.re += a.re * b.re - a.im * b.im;
        s->total.im += a.re * b.im + a.im * b.re;
        s->total.integer += a.integer * b.integer;
        s->size += hypotl(a.re, a.im) * hypotl(b.re, b.im);
    }
}

/* The multi-index of a row-major number. */
static void unravel(int rank, const int64_t *shape, int64_t index, int64_t *at) {
    for (int i = rank - 1; i >= 0; i--) {
        at[i] = index % shape[i];
        index /= shape[i];
    }
}

static sum element_of(const geometry *g, const tk_strided *x, const tk_strided *w,
                      const int64_t *shape, int64_t index) {
    int rank = (int)g->input.count;
    int64_t place[5], tap[3], taps = 1;
    sum s = {{0, 0, 0}, 0};
    unravel(rank, shape, index, place);
    for (int i = 1; i < rank - 1; i++) taps *= g->weight.items[i];
    for (int64_t t = 0; t < taps; t++) {
        unravel(rank - 2, g->weight.items + 1, t, tap);
        add_tap(g, x, w, place, tap, &s);
    }
    return s;
}

static void run_conv(const geometry *g, tk_dtype dtype, layout how) {
    int rank = (int)g->input.count;
    int64_t shape[5];
    output_shape(g, shape);
    sample inputs[2] = {
        sample_moderate(dtype, rank, g->input.items, how),
        sample_moderate(dtype, rank, g->weight.items, (layout)((how + 3) % LAYOUTS))};
    tk_attrs_conv attrs = {.stride = list_of(&g->stride),
                           .low = list_of(&g->low),
                           .high = list_of(&g->high),
                           .kernel_dilation = list_of(&g->kernel_dilation),
                           .input_dilation = list_of(&g->input_dilation),
                           .groups = g->groups,
                           .flip = g->flip};
    sample out = call_sample(TK_OP_conv_general, &attrs, 2, inputs, dtype, rank, shape);
    for (int64_t i = 0; i < out.view.size; i++) {
        sum s = element_of(g, &inputs[0].view, &inputs[1].view, shape, i);
        wide got = sample_read(&out.view, i), expected = wide_round(dtype, s.total);
        bool close = is_whole(dtype) ? got.integer == expected.integer
                                     : part_close(dtype, got.re, expected.re, s.size, 4) &&
                                           part_close(dtype, got.im, expected.im, s.size, 4);
        if (!close) fail_at("conv_general", dtype, i, got, expected);
    }
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

static bool is_long(const geometry *g) { return g->weight.items[1] > 50; }

static void every_geometry_and_dtype(void **state) {
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int d = 0; d < COUNT(all_dtypes); d++)
            for (int i = 0; accepts(TK_OP_conv_general, all_dtypes[d]) && i < COUNT(geometries);
                 i++)
                if (!is_long(&geometries[i]) || all_dtypes[d] >= TK_FLOAT16)
                    run_conv(&geometries[i], all_dtypes[d], DENSE);
    }
    tk_cpu_use_reference(false);
}

static void every_layout(void **state) {
    (void)state;
    for (int how = 0; how < LAYOUTS; how++)
        for (int i = 0; i < COUNT(geometries); i++) {
            if (is_long(&geometries[i])) continue;
            run_conv(&geometries[i], TK_FLOAT32, (layout)how);
            run_conv(&geometries[i], TK_BFLOAT16, (layout)how);
        }
}

/* Rows are shared among threads; the sums do not depend on how. */
static void any_number_of_threads(void **state) {
    (void)state;
    for (int threads = 1; threads <= 5; threads += 2) {
        assert_int_equal(tk_pool_set_threads(threads), TK_OK);
        for (int i = 0; i < COUNT(geometries); i++)
            if (!is_long(&geometries[i])) run_conv(&geometries[i], TK_FLOAT32, DENSE);
    }
    assert_int_equal(tk_pool_set_threads(0), TK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_geometry_and_dtype),
        cmocka_unit_test(every_layout),
        cmocka_unit_test(any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
