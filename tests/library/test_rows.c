/* RMS norm, softmax and column sums against the CPU evaluator (in f64), over drawn shapes, types,
 * pitches and schedules. */
#include "support/library_run.h"
#include "support/sanitizer.h"
#include "support/says.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const tk_kscalar floats[] = {TK_K_F32, TK_K_F16, TK_K_BF16};
static const double eps = 1e-5;
#define SEEDS 20
/* Of so many draws, a third under AddressSanitizer: it sees the same code in them. */
#define DRAWN(count) (SUPPORT_ASAN ? (count) / 3 : (count))

static tk_array wide(tk_context *context, const lib_tensor *tensor) {
    return tk_astype(lib_array(context, tensor), TK_FLOAT64);
}

static void assert_near(const lib_tensor *tensor, tk_array expected, double scale) {
    tk_dtype dtype;
    assert_ok(tk_dtype_parse(tk_kscalar_text(tensor->of.element), &dtype));
    double unit = lib_epsilon(tensor->of.element), sums = 1e-5;
    lib_assert_near(tensor, tk_astype(expected, dtype), unit + sums, scale * (sums + unit * 1e-3));
}

typedef struct drawn {
    int rank;
    int64_t shape[3], pad, skip;
    tk_kscalar in, out;
    char schedule[128], shared[240]; /* shared: with blocks that share rows, too */
    bool only_shared;
} drawn;

/* Threads, rows and, sometimes, what fits in registers; blocks of a cluster hold less each. */
static void draw_schedule(uint64_t *random, drawn *d) {
    int64_t threads = (int64_t)1 << lib_between(random, 0, 8), rows = 1, held = 0;
    while (threads * rows < 32) rows *= 2;
    if (threads * rows < 256) rows <<= lib_between(random, 0, 2);
    int64_t vectors = d->shape[d->rank - 1], need = (vectors + threads - 1) / threads;
    if (need <= 8 && lib_between(random, 0, 1)) held = need;
    snprintf(d->schedule, sizeof d->schedule,
             "threads_per_row = %d, rows_per_block = %d, held = %d, vector = %d", (int)threads,
             (int)rows, (int)held, 1 << (int)lib_between(random, 0, 4));
    int64_t cluster = threads < 32 ? 1 : (int64_t)1 << lib_between(random, 0, 3);
    if (held) held = (vectors + threads * cluster - 1) / (threads * cluster);
    snprintf(d->shared, sizeof d->shared, "%s, held = %d, cluster = %d, overlap = %d", d->schedule,
             (int)held, (int)cluster, (int)lib_between(random, 0, 2));
}

static drawn draw(uint64_t *random) {
    drawn d = {.rank = (int)lib_between(random, 1, 3)};
    for (int i = 0; i < d.rank - 1; i++)
        d.shape[i] = lib_between(random, 0, 15) ? lib_between(random, 1, 9) : 0;
    static const int64_t lengths[] = {0, 1, 2, 3, 7, 8, 31, 32, 33, 64, 100, 255, 256, 257, 1000};
    int64_t *last = &d.shape[d.rank - 1];
    *last = lengths[lib_between(random, 0, 14)];
    if (lib_between(random, 0, 3) == 0) *last = 8 * lib_between(random, 1, 80);
    d.pad = lib_between(random, 0, 2) ? 0 : lib_between(random, 1, 9);
    d.skip = lib_between(random, 0, 2) ? 0 : lib_between(random, 1, 9);
    d.in = floats[lib_between(random, 0, 2)];
    d.out = lib_between(random, 0, 2) ? d.in : floats[lib_between(random, 0, 2)];
    draw_schedule(random, &d);
    return d;
}

static const char *schedule_of(const drawn *d, uint64_t i) {
    return d->only_shared || i % 3 ? d->shared : NULL;
}

/* ---- RMS norm ---- */

static tk_array rstd_of(tk_context *context, tk_array x) {
    tk_array mean = tk_mean(tk_square(x), TK_AXES(-1), true);
    return tk_rsqrt(tk_add(mean, tk_scalar(context, eps)));
}

static void run_rms_norm(tk_context *context, const drawn *d, bool weighted, uint64_t i,
                         uint64_t seed) {
    const int64_t *columns = &d->shape[d->rank - 1];
    int64_t rows = 1;
    for (int axis = 0; axis < d->rank - 1; axis++) rows *= d->shape[axis];
    lib_tensor x = lib_make(d->in, d->rank, d->shape, d->pad, d->skip),
               y = lib_make(d->out, d->rank, d->shape, d->skip, 0),
               weight = lib_make(d->out, 1, columns, 0, d->pad),
               rstd = lib_make(TK_K_F32, 1, &rows, 0, 0);
    lib_tensor *tensors[] = {&x, weighted ? &weight : NULL, &y, &rstd};
    lib_draw(&x, seed);
    lib_draw(&weight, seed + 1);
    lib_run(TK_LIBRARY_RMS_NORM, 4, tensors, 1, &eps, schedule_of(d, i), seed);
    tk_scope scope = tk_scope_open(context);
    tk_array a = wide(context, &x), r = rstd_of(context, a), expected = tk_multiply(a, r);
    if (weighted) expected = tk_multiply(expected, wide(context, &weight));
    assert_near(&y, expected, 1);
    if (*columns) assert_near(&rstd, tk_reshape(r, TK_SHAPE(rows)), 1);
    tk_scope_close(scope);
    lib_free(&x), lib_free(&y), lib_free(&weight), lib_free(&rstd);
}

static void test_rms_norm(void **state) {
    (void)state;
    tk_context *context = make_context();
    uint64_t random = 11;
    for (uint64_t i = 0; i < DRAWN(120); i++) {
        drawn d = draw(&random);
        run_rms_norm(context, &d, i % 4 != 1, i, i);
    }
    drawn d = {.rank = 2, .shape = {5, 160}, .in = TK_K_F16, .out = TK_K_F16};
    for (uint64_t seed = 0; seed < SEEDS; seed++) run_rms_norm(context, &d, true, 0, seed);
    tk_context_release(context);
}

static void run_rms_backward(tk_context *context, const drawn *d, bool weighted, uint64_t i,
                             uint64_t seed) {
    const int64_t *columns = &d->shape[d->rank - 1];
    char schedule[200];
    lib_tensor x = lib_make(d->in, d->rank, d->shape, d->pad, d->skip),
               dy = lib_make(d->out, d->rank, d->shape, 0, 0),
               dx = lib_make(d->in, d->rank, d->shape, d->skip, 0),
               weight = lib_make(d->out, 1, columns, 0, 0),
               dweight = lib_make(d->out, 1, columns, 0, d->skip);
    lib_tensor *tensors[] = {&x, weighted ? &weight : NULL, &dy, i % 5 ? &dx : NULL,
                             i % 7 ? &dweight : NULL};
    snprintf(schedule, sizeof schedule, "%s, chunks = %d, threads = %d, ahead = %d, overlap = 1",
             d->schedule, (int)(1 + i % 4), 32 << i % 3, (int)(i / 3 % 2));
    lib_draw(&x, seed), lib_draw(&weight, seed + 1), lib_draw(&dy, seed + 2);
    lib_run(TK_LIBRARY_RMS_NORM_BACKWARD, 5, tensors, 1, &eps, schedule_of(d, i) ? schedule : NULL,
            seed);
    tk_scope scope = tk_scope_open(context);
    tk_array a = wide(context, &x), r = rstd_of(context, a), up = wide(context, &dy), g = up;
    if (weighted) g = tk_multiply(g, wide(context, &weight));
    tk_array normal = tk_multiply(a, r), mean = tk_mean(tk_multiply(g, normal), TK_AXES(-1), true);
    if (tensors[3]) {
        tk_array inner = tk_subtract(g, tk_multiply(normal, mean));
        assert_near(&dx, tk_multiply(r, inner), 20);
    }
    tk_array rows = tk_reshape(tk_multiply(up, normal),
                               TK_SHAPE(lib_size(&x) / (*columns ? *columns : 1), *columns));
    if (tensors[4]) assert_near(&dweight, tk_sum(rows, TK_AXES(0), false), 20);
    tk_scope_close(scope);
    lib_free(&x), lib_free(&dy), lib_free(&dx), lib_free(&weight), lib_free(&dweight);
}

static void test_rms_norm_backward(void **state) {
    (void)state;
    tk_context *context = make_context();
    uint64_t random = 13;
    for (uint64_t i = 0; i < DRAWN(120); i++) {
        drawn d = draw(&random);
        run_rms_backward(context, &d, i % 4 != 1, i, i);
    }
    drawn d = {.rank = 2, .shape = {9, 160}, .in = TK_K_BF16, .out = TK_K_BF16};
    for (uint64_t seed = 0; seed < SEEDS; seed++) run_rms_backward(context, &d, true, 3, seed);
    tk_context_release(context);
}

/* ---- softmax ---- */

static void set_specials(lib_tensor *x, uint64_t i) {
    int64_t columns = x->of.shape[x->of.rank - 1];
    for (int64_t at = 0; at < lib_size(x) && i % 3 == 0; at++) {
        int64_t row = at / columns % 5;
        if (row == 1 || (row == 2 && at % columns)) lib_set(x, at, -INFINITY);
        if (row == 3 && at % columns == 1) lib_set(x, at, i % 2 ? INFINITY : NAN);
        if (row == 4) lib_set(x, at, lib_get(x, at) * 1000);
    }
}

static void run_softmax(tk_context *context, const drawn *d, uint64_t i, uint64_t seed) {
    lib_tensor x = lib_make(d->in, d->rank, d->shape, d->pad, d->skip),
               y = lib_make(d->out, d->rank, d->shape, d->skip, 0);
    lib_tensor *tensors[] = {&x, &y};
    lib_draw(&x, seed);
    set_specials(&x, i);
    lib_run(TK_LIBRARY_SOFTMAX, 2, tensors, 0, NULL, schedule_of(d, i), seed);
    tk_scope scope = tk_scope_open(context);
    assert_near(&y, tk_softmax(wide(context, &x), TK_AXES(-1)), 0.01);
    tk_scope_close(scope);
    lib_free(&x), lib_free(&y);
}

static void test_softmax(void **state) {
    (void)state;
    tk_context *context = make_context();
    uint64_t random = 17;
    for (uint64_t i = 0; i < DRAWN(150); i++) {
        drawn d = draw(&random);
        run_softmax(context, &d, i, i);
    }
    drawn d = {.rank = 2, .shape = {5, 200}, .in = TK_K_F16, .out = TK_K_F16};
    for (uint64_t seed = 0; seed < SEEDS; seed++) run_softmax(context, &d, 0, seed);
    tk_context_release(context);
}

/* Exponentials of halves are brief ones: beside that of rounding the result, their error is at most
 * 3e-5 (f16) and 2.5e-4 (bf16), and what is below 2^-126 counts as 0. */
static void assert_softmax_row(const lib_tensor *x, const lib_tensor *y, int64_t begin,
                               int64_t end) {
    bool wide = x->of.element == TK_K_F16;
    double most = -INFINITY, sum = 0, half_ulp = lib_epsilon(x->of.element) / 2,
           least = wide ? 0x1p-25 : 0x1p-126, more = wide ? 3e-5 : 2.5e-4;
    for (int64_t i = begin; i < end; i++) most = fmax(most, lib_get(x, i));
    for (int64_t i = begin; i < end; i++) sum += exp(lib_get(x, i) - most);
    for (int64_t i = begin; i < end; i++) {
        double exact = exp(lib_get(x, i) - most) / sum, have = lib_get(y, i);
        if (!(fabs(have - exact) <= exact * (half_ulp + more) + least))
            fail_msg("%s, maximum %g: %.9g, expected %.9g", tk_kscalar_text(x->of.element), most,
                     have, exact);
    }
}

/* Rows around many maxima, in which each warp has its own. */
static void test_softmax_of_halves(void **state) {
    (void)state;
    static const double maxima[] = {0,    1,     -1,    0.37, -7.1, 90,    -300, 1000,
                                    5000, -9000, 60000, 7e4,  1e6,  -3e10, 3e38};
    enum { COLUMNS = 512, ROWS = sizeof maxima / sizeof *maxima };
    const int64_t shape[] = {ROWS, COLUMNS};
    for (int half = 1; half < 3; half++) {
        lib_tensor x = lib_make(floats[half], 2, shape, 0, 0),
                   y = lib_make(floats[half], 2, shape, 0, 0), *tensors[] = {&x, &y};
        for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
            double most = maxima[i / COLUMNS], base = half == 1 && fabs(most) > 65504 ? 0 : most;
            double below =
                (double)(i * 7919 % COLUMNS * (i % 13)) / 60 + (double)(i / 64 % 8) * 0.7;
            lib_set(&x, i, base - below);
        }
        lib_run(TK_LIBRARY_SOFTMAX, 2, tensors, 0, NULL,
                "threads_per_row = 64, rows_per_block = 1, held = 1", 1);
        for (int64_t row = 0; row < ROWS; row++)
            assert_softmax_row(&x, &y, row * COLUMNS, (row + 1) * COLUMNS);
        lib_free(&x), lib_free(&y);
    }
}

static void test_softmax_backward(void **state) {
    (void)state;
    tk_context *context = make_context();
    uint64_t random = 19;
    for (uint64_t i = 0; i < DRAWN(100); i++) {
        drawn d = draw(&random);
        lib_tensor y = lib_make(d.in, d.rank, d.shape, d.pad, d.skip),
                   dy = lib_make(d.in, d.rank, d.shape, 0, 0),
                   dx = lib_make(d.out, d.rank, d.shape, d.skip, 0);
        lib_tensor *tensors[] = {&y, &dy, &dx};
        lib_draw(&y, i), lib_draw(&dy, i + 1);
        lib_run(TK_LIBRARY_SOFTMAX_BACKWARD, 3, tensors, 0, NULL, schedule_of(&d, i), i);
        tk_scope scope = tk_scope_open(context);
        tk_array a = wide(context, &y), g = wide(context, &dy);
        tk_array dot = tk_sum(tk_multiply(a, g), TK_AXES(-1), true);
        assert_near(&dx, tk_multiply(a, tk_subtract(g, dot)), 200);
        tk_scope_close(scope);
        lib_free(&y), lib_free(&dy), lib_free(&dx);
    }
    tk_context_release(context);
}

/* ---- column sums ---- */

static void test_column_sum(void **state) {
    (void)state;
    tk_context *context = make_context();
    uint64_t random = 23;
    for (uint64_t i = 0; i < DRAWN(100); i++) {
        drawn d = draw(&random);
        char schedule[120];
        const int64_t *columns = &d.shape[d.rank - 1];
        lib_tensor x = lib_make(d.in, d.rank, d.shape, d.pad, d.skip),
                   y = lib_make(d.out, 1, columns, 0, d.skip);
        lib_tensor *tensors[] = {&x, &y};
        snprintf(schedule, sizeof schedule,
                 "chunks = %d, threads = %d, per_thread = %d, overlap = 1", (int)(1 + i % 5),
                 32 << i % 4, 1 << i % 5);
        lib_draw(&x, i);
        lib_run(TK_LIBRARY_COLUMN_SUM, 2, tensors, 0, NULL, i % 3 ? schedule : NULL, i);
        tk_scope scope = tk_scope_open(context);
        tk_array rows = tk_reshape(wide(context, &x),
                                   TK_SHAPE(lib_size(&x) / (*columns ? *columns : 1), *columns));
        assert_near(&y, tk_sum(rows, TK_AXES(0), false), 20);
        tk_scope_close(scope);
        lib_free(&x), lib_free(&y);
    }
    tk_context_release(context);
}

/* ---- long rows ---- */

static void test_long_rows(void **state) {
    (void)state;
    tk_context *context = make_context();
    static const int64_t lengths[] = {262144, 262143, 65536, 70001};
    for (int i = 0; i < 4; i++) {
        drawn d = {.rank = 2, .shape = {2, lengths[i]}, .in = floats[i % 3], .out = floats[i % 3]};
        run_rms_norm(context, &d, true, 0, (uint64_t)i);
        run_softmax(context, &d, 0, (uint64_t)i);
    }
    drawn d = {.rank = 2, .shape = {2, 262144}, .in = TK_K_F16, .out = TK_K_F16};
    run_rms_backward(context, &d, true, 3, 1);
    tk_context_release(context);
}

/* ---- rows that are called for, rows that are full ---- */

static drawn draw_prefetch(uint64_t *random) {
    drawn d = {.rank = 2, .in = floats[lib_between(random, 0, 2)], .only_shared = true};
    int64_t lanes = d.in == TK_K_F32 ? 4 : 8, threads = (int64_t)32 << lib_between(random, 0, 2),
            cluster = (int64_t)1 << lib_between(random, 0, 3), held = lib_between(random, 1, 3);
    d.out = d.in;
    d.shape[0] = lib_between(random, 0, 12);
    d.shape[1] = lanes * lib_between(random, 0, threads * cluster * held);
    d.pad = lanes * lib_between(random, 0, 2);
    snprintf(d.shared, sizeof d.shared,
             "threads_per_row = %d, rows_per_block = %d, held = %d, cluster = %d, prefetch = %d, "
             "late = %d, overlap = %d",
             (int)threads, 1 << lib_between(random, 0, 2), (int)held, (int)cluster,
             (int)lib_between(random, 0, 9), (int)lib_between(random, 0, 1),
             (int)lib_between(random, 0, 2));
    return d;
}

static void fill_rows(drawn *d) {
    int threads, rows, held, cluster;
    assert_int_equal(sscanf(d->shared,
                            "threads_per_row = %d, rows_per_block = %d, held = %d, cluster = %d",
                            &threads, &rows, &held, &cluster),
                     4);
    d->shape[0] = (d->shape[0] + rows - 1) / rows * rows;
    d->shape[1] = (int64_t)threads * held * cluster * (d->in == TK_K_F32 ? 4 : 8);
}

static void test_prefetch(void **state) {
    (void)state;
    tk_context *context = make_context();
    uint64_t random = 29;
    for (uint64_t i = 0; i < 40; i++) {
        drawn d = draw_prefetch(&random);
        if (i % 3 == 0) fill_rows(&d);
        run_softmax(context, &d, i, i);
        run_rms_norm(context, &d, i % 2, i, i);
    }
    tk_context_release(context);
}

/* ---- refusals, assembling ---- */

static void assert_refused(tk_library_id id, size_t count, lib_tensor *const *tensors,
                           const char *schedule, tk_status status, const char *message) {
    tk_library_tensor of[5];
    tk_library_schedule chosen;
    tk_library_plan *plan = NULL;
    double numbers[] = {eps};
    for (size_t i = 0; i < count; i++)
        of[i] = tensors[i] ? tensors[i]->of : (tk_library_tensor){.rank = -1};
    assert_ok(tk_library_schedule_default(id, count, of, &chosen));
    if (schedule) assert_ok(tk_library_schedule_read(id, schedule, &chosen));
    assert_int_equal(
        tk_library_plan_create(id, count, of, tk_library_numbers(id), numbers, &chosen, &plan),
        status);
    assert_error_says(message);
}

static void test_refusals(void **state) {
    (void)state;
    int64_t shape[] = {4, 6, 64}, columns = 64;
    lib_tensor x = lib_make(TK_K_F16, 3, shape, 0, 0), y = lib_make(TK_K_F16, 3, shape, 0, 0),
               w = lib_make(TK_K_F16, 1, &columns, 0, 0), wide = lib_make(TK_K_F32, 3, shape, 0, 0);
    lib_tensor *norm[] = {&x, &w, &y, NULL}, *soft[] = {&x, &y}, *back[] = {&wide, &x, &wide};
    assert_refused(TK_LIBRARY_SOFTMAX, 2, soft, "threads_per_row = 4, rows_per_block = 4",
                   TK_INVALID_ARGUMENT, "4 rows of 4 threads are 16, expected 32 to 1024");
    assert_refused(TK_LIBRARY_SOFTMAX, 2, soft, "threads_per_row = 4, rows_per_block = 8, held = 1",
                   TK_INVALID_ARGUMENT,
                   "4 threads hold 1 vectors of 8 elements, which is less than a row of 64");
    assert_refused(TK_LIBRARY_SOFTMAX, 2, soft, "held = 0, prefetch = 3", TK_INVALID_ARGUMENT,
                   "in vectors of 16 bytes; here 0 are held, of 16 bytes");
    assert_refused(TK_LIBRARY_SOFTMAX_BACKWARD, 3, back, "held = 2, prefetch = 3",
                   TK_INVALID_ARGUMENT, "in vectors of 16 bytes; here 2 are held, of 8 bytes");
    w.of.shape[0] = 63;
    assert_refused(TK_LIBRARY_RMS_NORM, 4, norm, NULL, TK_SHAPE_ERROR,
                   "weight is no contiguous vector of the 64 columns");
    norm[1] = NULL, norm[3] = &w;
    assert_refused(TK_LIBRARY_RMS_NORM, 4, norm, NULL, TK_SHAPE_ERROR, "rstd is no contiguous");
    x.of.stride[0] = 1000;
    assert_refused(TK_LIBRARY_SOFTMAX, 2, soft, NULL, TK_SHAPE_ERROR, "rows of x are not evenly");
    x.of.stride[0] = 6 * 64, x.of.stride[2] = 2;
    assert_refused(TK_LIBRARY_SOFTMAX, 2, soft, NULL, TK_SHAPE_ERROR, "stride 2 along its last");
    lib_free(&x), lib_free(&y), lib_free(&w), lib_free(&wide);
}

/* A default schedule can always be: of short and long rows, few and many, whole vectors and not. */
static void test_defaults(void **state) {
    (void)state;
    static const int64_t lengths[] = {0,    1,     8,     100,   1000,   4096,
                                      8200, 17000, 32768, 70001, 131072, 300000};
    static const struct {
        tk_library_id id;
        size_t count, vectors; /* bits of the tensors that are no matrix */
    } kernels[] = {{TK_LIBRARY_RMS_NORM, 4, 10},
                   {TK_LIBRARY_RMS_NORM_BACKWARD, 5, 18},
                   {TK_LIBRARY_SOFTMAX, 2, 0},
                   {TK_LIBRARY_SOFTMAX_BACKWARD, 3, 0},
                   {TK_LIBRARY_COLUMN_SUM, 2, 2}};
    for (size_t c = 0; c < 6 * sizeof lengths / sizeof *lengths; c++)
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
            int64_t columns = lengths[c / 6], rows = c % 2 ? 3 : 1 + (1 << 26) / (columns + 1);
            tk_kscalar element = floats[c / 2 % 3];
            tk_library_tensor of[5];
            tk_library_plan *plan = NULL;
            for (size_t i = 0; i < kernels[k].count; i++) {
                of[i] = (tk_library_tensor){.element = element, .rank = 2, .align = 16};
                of[i].shape[0] = rows, of[i].shape[1] = columns;
                of[i].stride[0] = columns, of[i].stride[1] = 1;
                if (kernels[k].vectors >> i & 1)
                    of[i].rank = 1, of[i].shape[0] = columns, of[i].stride[0] = 1;
            }
            if (kernels[k].id == TK_LIBRARY_RMS_NORM)
                of[3].element = TK_K_F32, of[3].shape[0] = rows;
            assert_ok(tk_library_plan_create(kernels[k].id, kernels[k].count, of,
                                             tk_library_numbers(kernels[k].id), &eps, NULL, &plan));
            tk_library_plan_release(plan);
        }
}

static bool assemble_all(tk_kscalar element, int64_t columns, const char *schedule) {
    int64_t shape[] = {4, columns}, rows = 4;
    lib_tensor x = lib_make(element, 2, shape, 0, 0), y = lib_make(element, 2, shape, 0, 0),
               z = lib_make(element, 2, shape, 0, 0), w = lib_make(element, 1, &columns, 0, 0),
               v = lib_make(element, 1, &columns, 0, 0), rstd = lib_make(TK_K_F32, 1, &rows, 0, 0);
    lib_tensor *norm[] = {&x, &w, &y, &rstd}, *back[] = {&x, &w, &y, &z, &v},
               *soft[] = {&x, &y, &z}, *sum[] = {&x, &w};
    bool found = lib_assemble(TK_LIBRARY_RMS_NORM, 4, norm, 1, &eps, schedule) &&
                 lib_assemble(TK_LIBRARY_RMS_NORM_BACKWARD, 5, back, 1, &eps, "chunks = 2") &&
                 lib_assemble(TK_LIBRARY_SOFTMAX, 2, soft, 0, NULL, schedule) &&
                 lib_assemble(TK_LIBRARY_SOFTMAX_BACKWARD, 3, soft, 0, NULL, NULL) &&
                 lib_assemble(TK_LIBRARY_COLUMN_SUM, 2, sum, 0, NULL, NULL);
    lib_tensor *all[] = {&x, &y, &z, &w, &v, &rstd};
    for (int i = 0; i < 6; i++) lib_free(all[i]);
    return found;
}

static void test_assembles(void **state) {
    (void)state;
    bool found = assemble_all(TK_K_F16, 1024, NULL) && assemble_all(TK_K_F32, 333, NULL) &&
                 assemble_all(TK_K_BF16, 4096, "held = 0");
    if (found) return;
    print_message("skipped: no ptxas\n");
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rms_norm),   cmocka_unit_test(test_rms_norm_backward),
        cmocka_unit_test(test_softmax),    cmocka_unit_test(test_softmax_backward),
        cmocka_unit_test(test_column_sum), cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_prefetch),   cmocka_unit_test(test_softmax_of_halves),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_assembles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
