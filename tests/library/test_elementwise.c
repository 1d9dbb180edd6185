/* add, axpy, copy and fill against the CPU evaluator, over drawn shapes, types, strides and
 * schedules. */
#include "support/library_run.h"
#include "support/says.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const tk_kscalar floats[] = {TK_K_F32, TK_K_F16, TK_K_BF16};
#define SEEDS 20

static void run_ewise(tk_context *context, tk_library_id id, tk_kscalar element, int64_t n,
                      int64_t skip, const char *schedule, uint64_t seed) {
    lib_tensor x = lib_make(element, 1, &n, 0, skip), y = lib_make(element, 1, &n, 0, 0),
               z = lib_make(element, 1, &n, 0, skip);
    lib_tensor *tensors[] = {&x, &y, &z};
    double alpha = 1.25;
    lib_draw(&x, seed);
    lib_draw(&y, seed + 1);
    lib_run(id, 3, tensors, id == TK_LIBRARY_AXPY, &alpha, schedule, seed);
    tk_scope scope = tk_scope_open(context);
    tk_array a = lib_array(context, &x), b = lib_array(context, &y);
    if (id == TK_LIBRARY_AXPY) {
        a = tk_multiply(tk_astype(a, TK_FLOAT32), tk_scalar(context, alpha));
        b = tk_astype(tk_add(a, tk_astype(b, TK_FLOAT32)), tk_array_dtype(b));
    } else {
        b = tk_add(a, b);
    }
    lib_assert_near(&z, b, 0, 0);
    tk_scope_close(scope);
    for (int i = 0; i < 3; i++) lib_free(tensors[i]);
}

static void test_add_and_axpy(void **state) {
    (void)state;
    tk_context *context = make_context();
    static const int64_t sizes[] = {0, 1, 2, 31, 32, 255, 1023, 4096, 4097, 9001};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int f = 0; f < 3; f++)
            for (int64_t skip = 0; skip < 9; skip += 1 + 3 * (skip > 0)) {
                run_ewise(context, TK_LIBRARY_ADD, floats[f], sizes[s], skip, NULL, s);
                run_ewise(context, TK_LIBRARY_AXPY, floats[f], sizes[s], skip,
                          "threads = 64, per_thread = 2, vector = 8", s);
            }
    tk_context_release(context);
}

static void test_seeds(void **state) {
    (void)state;
    tk_context *context = make_context();
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        run_ewise(context, TK_LIBRARY_AXPY, TK_K_F16, 3000, 0, NULL, seed);
    tk_context_release(context);
}

/* ---- copy ---- */

typedef struct drawn {
    int rank;
    int64_t shape[4], pad, skip;
    int order[4];
} drawn;

static drawn draw_shape(uint64_t *random) {
    drawn d = {.rank = (int)lib_between(random, 0, 4)};
    for (int i = 0; i < d.rank; i++) {
        int64_t longest = d.rank > 2 ? 9 : 70;
        d.shape[i] = lib_between(random, lib_between(random, 0, 9) ? 1 : 0, longest);
        d.order[i] = i;
    }
    for (int i = d.rank - 1; i > 0; i--) {
        int j = lib_between(random, 0, 2) ? i : (int)lib_between(random, 0, i), kept = d.order[i];
        d.order[i] = d.order[j];
        d.order[j] = kept;
    }
    d.pad = lib_between(random, 0, 2) ? 0 : lib_between(random, 1, 8);
    d.skip = lib_between(random, 0, 2) ? 0 : lib_between(random, 1, 8);
    if (lib_between(random, 0, 1) && d.rank) d.shape[d.rank - 1] = 8 * lib_between(random, 1, 9);
    return d;
}

/* x is drawn with its axes in another order; y is row-major. */
static void run_copy(tk_context *context, const drawn *d, tk_kscalar from, tk_kscalar to,
                     const char *schedule, uint64_t seed) {
    lib_tensor x = lib_make(from, d->rank, d->shape, d->pad, d->skip);
    lib_draw(&x, seed);
    x.of = lib_permuted(&x.of, d->order);
    lib_tensor y = lib_make(to, d->rank, x.of.shape, seed % 3 ? 0 : 8, 0);
    lib_tensor *tensors[] = {&x, &y};
    lib_run(TK_LIBRARY_COPY, 2, tensors, 0, NULL, schedule, seed);
    tk_scope scope = tk_scope_open(context);
    tk_array expected = lib_array(context, &x);
    tk_dtype dtype;
    assert_ok(tk_dtype_parse(tk_kscalar_text(to), &dtype));
    lib_assert_near(&y, tk_astype(expected, dtype), 0, 0);
    tk_scope_close(scope);
    lib_free(&x);
    lib_free(&y);
}

static void test_copy(void **state) {
    (void)state;
    tk_context *context = make_context();
    uint64_t random = 1;
    for (uint64_t i = 0; i < 300; i++) {
        drawn d = draw_shape(&random);
        run_copy(context, &d, floats[lib_between(&random, 0, 2)],
                 floats[lib_between(&random, 0, 2)], i % 4 ? NULL : "threads = 32, per_thread = 2",
                 i);
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        drawn d = {.rank = 3, .shape = {5, 7, 16}, .order = {1, 0, 2}};
        run_copy(context, &d, TK_K_BF16, TK_K_F32, NULL, seed);
    }
    static const tk_kscalar integers[] = {TK_K_I8, TK_K_I16, TK_K_I32, TK_K_I64};
    for (int i = 0; i < 4; i++) {
        drawn d = {.rank = 2, .shape = {3, 48}, .order = {i % 2, 1 - i % 2}};
        run_copy(context, &d, integers[i], integers[i], NULL, 1);
    }
    tk_context_release(context);
}

static void test_broadcast_and_reverse(void **state) {
    (void)state;
    int64_t row = 24, shape[] = {3, 24};
    lib_tensor x = lib_make(TK_K_F32, 1, &row, 0, 0), y = lib_make(TK_K_F32, 2, shape, 0, 0);
    lib_tensor *tensors[] = {&x, &y};
    lib_draw(&x, 3);
    x.of.rank = 2;
    x.of.shape[0] = 3, x.of.shape[1] = 24, x.of.stride[0] = 0, x.of.stride[1] = -1;
    x.offset = 23 * sizeof(float);
    x.of.align = 4;
    lib_run(TK_LIBRARY_COPY, 2, tensors, 0, NULL, NULL, 0);
    for (int64_t i = 0; i < 72; i++) {
        float from;
        memcpy(&from, x.memory + (size_t)(23 - i % 24) * sizeof from, sizeof from);
        assert_true(lib_get(&y, i) == (double)from);
    }
    lib_free(&x);
    lib_free(&y);
}

static void test_fill(void **state) {
    (void)state;
    static const tk_kscalar types[] = {TK_K_F32, TK_K_F16, TK_K_BF16, TK_K_F64,
                                       TK_K_I8,  TK_K_I16, TK_K_I32,  TK_K_I64};
    uint64_t random = 5;
    for (int i = 0; i < 120; i++) {
        drawn d = draw_shape(&random);
        tk_kscalar type = types[i % 8];
        lib_tensor y = lib_make(type, d.rank, d.shape, d.pad, d.skip), *tensors[] = {&y};
        double value = type >= TK_K_F16 ? 0.5 : 7;
        y.of = lib_permuted(&y.of, d.order);
        lib_run(TK_LIBRARY_FILL, 1, tensors, 1, &value, NULL, (uint64_t)i);
        for (int64_t at = 0; at < lib_size(&y); at++) assert_true(lib_get(&y, at) == value);
        lib_free(&y);
    }
}

/* ---- schedules, refusals, assembling ---- */

static void test_schedule(void **state) {
    (void)state;
    tk_library_tensor t = {.element = TK_K_F16, .rank = 1, .shape = {100}, .stride = {1}},
                      list[] = {t, t, t};
    tk_library_schedule schedule;
    char *text;
    assert_ok(tk_library_schedule_default(TK_LIBRARY_ADD, 3, list, &schedule));
    assert_ok(tk_library_schedule_read(TK_LIBRARY_ADD, "threads=64 , vector = 8", &schedule));
    assert_ok(tk_library_schedule_print(TK_LIBRARY_ADD, &schedule, &text));
    assert_string_equal(text, "threads = 64, vector = 8, per_thread = 1");
    tk_kernel_text_free(text);
    static const struct {
        const char *text, *message;
        tk_status status;
    } bad[] = {{"threads = 48", "a power of two from 32 to 1024", TK_INVALID_ARGUMENT},
               {"threads = 2048", "32 to 1024", TK_INVALID_ARGUMENT},
               {"stages = 3", "add has no field stages", TK_NOT_FOUND},
               {"threads 3", "expected \"field = number\"", TK_FORMAT_ERROR},
               {"threads = x", "needs a number", TK_FORMAT_ERROR},
               {"threads = 64; vector = 8", "expected a comma", TK_FORMAT_ERROR}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tk_library_schedule_read(TK_LIBRARY_ADD, bad[i].text, &schedule),
                         bad[i].status);
        assert_non_null(strstr(tk_error_message(), bad[i].message));
    }
    assert_int_equal(schedule.threads, 64);
}

static void assert_refused(tk_library_id id, size_t count, const tk_library_tensor *tensors,
                           tk_status status, const char *message) {
    tk_library_plan *plan = NULL;
    assert_int_equal(tk_library_plan_create(id, count, tensors, 0, NULL, NULL, &plan), status);
    assert_error_says(message);
}

static void test_refusals(void **state) {
    (void)state;
    tk_library_tensor good = {.element = TK_K_F16, .rank = 1, .shape = {100}, .stride = {1}};
    tk_library_tensor list[] = {good, good, good};
    list[1].shape[0] = 99;
    assert_refused(TK_LIBRARY_ADD, 3, list, TK_SHAPE_ERROR, "axis 0 has length 100 in x, 99 in y");
    list[1] = good, list[2].element = TK_K_F32;
    assert_refused(TK_LIBRARY_ADD, 3, list, TK_DTYPE_ERROR, "x has elements f16, z has f32");
    list[2] = good, list[0].stride[0] = 2;
    assert_refused(TK_LIBRARY_ADD, 3, list, TK_SHAPE_ERROR, "x is not contiguous");
    list[0] = good, list[0].align = 3;
    assert_refused(TK_LIBRARY_ADD, 3, list, TK_INVALID_ARGUMENT, "x is aligned to 3");
    list[0].align = 0, list[0].shape[0] = INT64_MAX;
    assert_refused(TK_LIBRARY_ADD, 3, list, TK_OVERFLOW, "x has a negative extent or reaches");
    list[0] = good, list[0].rank = -1;
    assert_refused(TK_LIBRARY_ADD, 3, list, TK_SHAPE_ERROR, "x has -1 axes");
    assert_refused(TK_LIBRARY_ADD, 2, list, TK_INVALID_ARGUMENT, "2 tensors and 0 numbers");
    list[0] = good, list[1].stride[0] = 0;
    assert_refused(TK_LIBRARY_COPY, 2, list, TK_SHAPE_ERROR, "y has stride 0 along axis 0");
    list[1] = good, list[1].element = TK_K_I32;
    assert_refused(TK_LIBRARY_COPY, 2, list, TK_DTYPE_ERROR, "x has elements f16, y i32");
}

static void test_assembles(void **state) {
    (void)state;
    int64_t n = 5000, shape[] = {3, 5, 48};
    double one = 1;
    for (int f = 0; f < 3; f++) {
        lib_tensor x = lib_make(floats[f], 1, &n, 0, 0), y = lib_make(floats[f], 1, &n, 0, f),
                   z = lib_make(floats[f], 1, &n, 0, 0), wide = lib_make(TK_K_F32, 3, shape, 0, 0),
                   narrow = lib_make(floats[f], 3, shape, 8, 0);
        lib_tensor *list[] = {&x, &y, &z}, *pair[] = {&wide, &narrow};
        bool found = lib_assemble(TK_LIBRARY_ADD, 3, list, 0, NULL, "per_thread = 4") &&
                     lib_assemble(TK_LIBRARY_AXPY, 3, list, 1, &one, NULL) &&
                     lib_assemble(TK_LIBRARY_COPY, 2, pair, 0, NULL, NULL) &&
                     lib_assemble(TK_LIBRARY_FILL, 1, pair + 1, 1, &one, NULL);
        for (int i = 0; i < 3; i++) lib_free(list[i]);
        lib_free(&wide);
        lib_free(&narrow);
        if (found) continue;
        print_message("skipped: no ptxas\n");
        skip();
    }
}

/* More units than 31 bits count; nothing is touched, so there is no memory. */
static void test_large(void **state) {
    (void)state;
    lib_tensor t = {.of = {.element = TK_K_F32,
                           .rank = 3,
                           .shape = {3, INT64_C(1) << 16, (INT64_C(1) << 17) + 1},
                           .stride = {INT64_C(1) << 34, INT64_C(1) << 18, 1}}};
    lib_tensor *list[] = {&t, &t};
    double one = 1;
    if (!lib_assemble(TK_LIBRARY_COPY, 2, list, 0, NULL, NULL) ||
        !lib_assemble(TK_LIBRARY_FILL, 1, list, 1, &one, NULL))
        skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_and_axpy), cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_copy),         cmocka_unit_test(test_broadcast_and_reverse),
        cmocka_unit_test(test_fill),         cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_assembles),
        cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
