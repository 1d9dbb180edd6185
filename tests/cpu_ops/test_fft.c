/* Fourier transforms as bodies against the sum in long double: every length up to 80, lengths with
 * large primes (Bluestein's algorithm), powers and products, every axis and layout; and that
 * transforms of several threads at once, of one length or of many, do not meet. */
#include "cpu/fft.h"
#include "cpu_ops/body_check.h"

#include <pthread.h>

static const real pi = 3.14159265358979323846264338327950288L;

static void axis_lines(const tk_strided *view, int64_t axis, int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (int64_t i = 0; i < axis; i++) *outer *= view->shape[i];
    for (int64_t i = axis + 1; i < view->rank; i++) *inner *= view->shape[i];
}

static wide times_turn(wide a, real turns) {
    real c = cosl(2 * pi * turns), s = sinl(2 * pi * turns);
    return (wide){a.re * c - a.im * s, a.re * s + a.im * c, 0};
}

/* Frequency k of a line whose element j is at `first` + j * inner; all of a real signal's
 * frequencies count, the missing ones as mirrors. */
static wide sum_of(tk_op op, const tk_strided *in, int64_t first, int64_t inner, int64_t kept,
                   int64_t n, int64_t k, bool inverse, real *size) {
    wide total = {0, 0, 0};
    *size = 0;
    for (int64_t j = 0; j < n; j++) {
        wide a = sample_read(in, first + (j < kept ? j : n - j) * inner);
        if (op == TK_OP_irfft_axis && (j == 0 || 2 * j == n)) a.im = 0;
        if (j >= kept) a.im = -a.im;
        wide term = times_turn(a, (real)(inverse ? j * k % n : -(j * k % n)) / (real)n);
        total.re += term.re;
        total.im += term.im;
        *size += a.re * a.re + a.im * a.im;
    }
    *size = sqrtl(*size * (real)n);
    return total;
}

static void run_fft(tk_op op, bool inverse, int rank, const int64_t *shape, int64_t axis,
                    real scale, layout how) {
    tk_dtype from = op == TK_OP_rfft_axis ? TK_FLOAT32 : TK_COMPLEX64;
    tk_dtype to = op == TK_OP_irfft_axis ? TK_FLOAT32 : TK_COMPLEX64;
    int64_t n = shape[axis], in_shape[4], out_shape[4], outer, inner;
    memcpy(in_shape, shape, sizeof in_shape);
    memcpy(out_shape, shape, sizeof out_shape);
    if (op == TK_OP_irfft_axis) in_shape[axis] = n / 2 + 1;
    if (op == TK_OP_rfft_axis) out_shape[axis] = n / 2 + 1;
    tk_attrs_fft fft = {.axis = axis, .inverse = inverse, .scale = (double)scale};
    tk_attrs_irfft irfft = {.axis = axis, .length = n, .scale = (double)scale};
    const void *attrs = op == TK_OP_irfft_axis ? (void *)&irfft : (void *)&fft;
    sample input = sample_moderate(from, rank, in_shape, how);
    sample out = call_sample(op, attrs, 1, &input, to, rank, out_shape);
    axis_lines(&out.view, axis, &outer, &inner);
    int64_t out_length = out_shape[axis], in_length = in_shape[axis];
    for (int64_t i = 0; i < out.view.size; i++) {
        int64_t first = i / (inner * out_length) * inner * in_length + i % inner;
        real size;
        wide expected = sum_of(op, &input.view, first, inner, in_length, n, i / inner % out_length,
                               inverse, &size);
        wide got = sample_read(&out.view, i);
        real bound = scale * size * 0x1p-23L * 4;
        bool close = fabsl(got.re - scale * expected.re) <= bound &&
                     (to == TK_FLOAT32 || fabsl(got.im - scale * expected.im) <= bound);
        if (!close) {
            print_error("length %lld, axis %lld\n", (long long)n, (long long)axis);
            fail_at(tk_op_name(op), to, i, got, expected);
        }
    }
    sample_free(&input);
    sample_free(&out);
}

static void run_all(int rank, const int64_t *shape, int64_t axis, layout how) {
    run_fft(TK_OP_fft_axis, false, rank, shape, axis, 1, how);
    run_fft(TK_OP_fft_axis, true, rank, shape, axis, 0.25L, how);
    run_fft(TK_OP_rfft_axis, false, rank, shape, axis, 1, how);
    run_fft(TK_OP_irfft_axis, true, rank, shape, axis, 0.5L, how);
}

static void every_length(void **state) {
    (void)state;
    static const int64_t longer[] = {97,  127, 128, 134, 211, 243, 254,
                                     256, 331, 360, 509, 512, 625, 1018};
    for (int64_t n = 1; n <= 80; n++) run_all(2, (int64_t[4]){2, n}, 1, DENSE);
    for (int i = 0; i < COUNT(longer); i++) run_all(2, (int64_t[4]){1, longer[i]}, 1, DENSE);
}

static void every_axis_and_layout(void **state) {
    (void)state;
    static const int64_t shape[4] = {3, 6, 5, 11}, flat[4] = {1, 67, 1, 2}, empty[4] = {0, 3, 4, 2};
    for (int how = 0; how < LAYOUTS; how++)
        for (int64_t axis = 0; axis < 4; axis++) {
            run_all(4, shape, axis, (layout)how);
            run_all(4, flat, axis, (layout)how);
            if (axis) run_all(4, empty, axis, (layout)how);
        }
}

/* ---- threads ---- */

typedef struct task {
    int first_length;
    double worst;
} task;

/* Forward and back gives the signal times the length. */
static void *there_and_back(void *arg) {
    task *t = arg;
    for (int round = 0; round < 60; round++) {
        int n = t->first_length + round % 7;
        tk_fft_complex signal[64], spectrum[64], back[64], scratch[1024];
        tk_fft_plan *forward, *inverse;
        if (tk_fft_plan_get(TK_FFT_FORWARD, n, &forward) != TK_OK ||
            tk_fft_plan_get(TK_FFT_INVERSE, n, &inverse) != TK_OK || tk_fft_scratch(forward) > 1024)
            abort();
        for (int i = 0; i < n; i++) signal[i] = (tk_fft_complex){(float)(i % 5), (float)(i % 3)};
        tk_fft_run(forward, signal, spectrum, scratch);
        tk_fft_run(inverse, spectrum, back, scratch);
        for (int i = 0; i < n; i++) {
            t->worst = fmax(t->worst, fabs(back[i].re / n - signal[i].re));
            t->worst = fmax(t->worst, fabs(back[i].im / n - signal[i].im));
        }
        tk_fft_plan_put(forward);
        tk_fft_plan_put(inverse);
    }
    return NULL;
}

static void plans_of_several_threads(void **state) {
    (void)state;
    pthread_t threads[6];
    task tasks[6];
    for (int i = 0; i < 6; i++) {
        tasks[i] = (task){.first_length = 20 + 5 * (i / 2)};
        assert_int_equal(pthread_create(&threads[i], NULL, there_and_back, &tasks[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_true(tasks[i].worst < 1e-5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length),
        cmocka_unit_test(every_axis_and_layout),
        cmocka_unit_test(plans_of_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
