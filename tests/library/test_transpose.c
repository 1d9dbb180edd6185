/* The transpose: every element where it belongs, over drawn shapes and types; no bank conflicts
 * and whole sectors where rows are aligned. */
#include "support/library_run.h"

#include "tiki/emulator.h"

#include <string.h>

static const tk_kscalar types[] = {TK_K_F32, TK_K_F16, TK_K_BF16, TK_K_I8, TK_K_I64, TK_K_F64};

static void run(int rank, const int64_t *shape, int64_t pad, int64_t skip, tk_kscalar type,
                const char *schedule, uint64_t seed) {
    int64_t turned[4];
    memcpy(turned, shape, sizeof turned);
    turned[rank - 2] = shape[rank - 1], turned[rank - 1] = shape[rank - 2];
    lib_tensor x = lib_make(type, rank, shape, pad, skip),
               y = lib_make(type, rank, turned, skip, 0);
    lib_tensor *tensors[] = {&x, &y};
    for (int64_t i = 0; i < lib_size(&x); i++) lib_set(&x, i, (double)(i * 7 % 121));
    lib_run(TK_LIBRARY_TRANSPOSE, 2, tensors, 0, NULL, schedule, seed);
    int64_t rows = shape[rank - 2], columns = shape[rank - 1];
    for (int64_t i = 0; i < lib_size(&x); i++) {
        int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
        int64_t there = (matrix * columns + column) * rows + row;
        if (lib_get(&x, i) != lib_get(&y, there))
            fail_msg("element %lld of %lld x %lld", (long long)i, (long long)rows,
                     (long long)columns);
    }
    lib_free(&x);
    lib_free(&y);
}

static void test_drawn(void **state) {
    (void)state;
    uint64_t random = 29;
    for (uint64_t i = 0; i < 150; i++) {
        int rank = (int)lib_between(&random, 2, 4);
        int64_t shape[4], longest = rank == 2 ? 150 : 70;
        bool even = lib_between(&random, 0, 1);
        for (int a = 0; a < rank; a++)
            shape[a] = a < rank - 2 ? lib_between(&random, i % 10 ? 1 : 0, 3)
                       : even       ? 8 * lib_between(&random, 1, longest / 8)
                                    : lib_between(&random, i % 12 ? 1 : 0, longest);
        run(rank, shape, even ? 0 : lib_between(&random, 0, 3),
            lib_between(&random, 0, 2) ? 0 : lib_between(&random, 1, 8),
            types[lib_between(&random, 0, 5)],
            i % 3   ? NULL
            : i % 2 ? "threads = 32, tile = 32, vector = 8"
                    : "threads = 64, tile = 32, group = 4, overlap = 1",
            i);
    }
}

static void test_seeds(void **state) {
    (void)state;
    int64_t shape[4] = {70, 96};
    for (uint64_t seed = 0; seed < 20; seed++) run(2, shape, 0, 0, TK_K_F16, NULL, seed);
}

/* 256 x 256, default schedule: every access is whole and free of conflicts. */
static void assert_perfect(tk_kscalar type) {
    tk_library_tensor x = {.element = type, .rank = 2, .shape = {256, 256}, .stride = {256, 1}, 16},
                      list[] = {x, x};
    static unsigned char memory[2][256 * 256 * 8] __attribute__((aligned(256)));
    tk_library_plan *plan = NULL;
    tk_library_launch launch;
    tk_kargument arguments[16];
    tk_kbuffer buffers[16] = {{0}};
    tk_emulation *emulation = NULL;
    uint64_t sectors = 0, bytes = (uint64_t)(256 * 256 * tk_kscalar_bytes(type));
    assert_ok(tk_library_plan_create(TK_LIBRARY_TRANSPOSE, 2, list, 0, NULL, NULL, &plan));
    assert_ok(tk_library_plan_launch(plan, 0, &launch));
    for (size_t i = 0; i < launch.n_arguments; i++) arguments[i].bits = launch.arguments[i].bits;
    for (int i = 0; i < 2; i++) buffers[i] = (tk_kbuffer){memory[i], bytes, 0};
    tk_kemulate how = {
        .n_arguments = launch.n_arguments, .arguments = arguments, .buffers = buffers};
    assert_ok(tk_kernel_emulate(launch.kernel, &how, &emulation));
    for (size_t i = 0; i < tk_emulation_counts(emulation); i++) {
        tk_kcount count;
        assert_ok(tk_emulation_count(emulation, i, &count));
        sectors += count.sectors;
        if (count.conflicts)
            fail_msg("%s: %s has %d conflicts", tk_kscalar_text(type), count.operation,
                     (int)count.conflicts);
    }
    assert_int_equal(sectors, 2 * bytes / 32);
    assert_int_equal(tk_emulation_totals(emulation).read_bytes, bytes);
    tk_emulation_release(emulation);
    tk_library_plan_release(plan);
}

static void test_conflicts(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) assert_perfect(types[i]);
}

static void test_refusals(void **state) {
    (void)state;
    tk_library_tensor x = {.element = TK_K_F32, .rank = 2, .shape = {32, 64}, .stride = {64, 1}},
                      list[] = {x, x};
    tk_library_plan *plan = NULL;
    assert_int_equal(tk_library_plan_create(TK_LIBRARY_TRANSPOSE, 2, list, 0, NULL, NULL, &plan),
                     TK_SHAPE_ERROR);
    assert_non_null(strstr(tk_error_message(), "last two axes exchanged"));
    list[0].rank = 1;
    assert_int_equal(tk_library_plan_create(TK_LIBRARY_TRANSPOSE, 2, list, 0, NULL, NULL, &plan),
                     TK_SHAPE_ERROR);
    assert_non_null(strstr(tk_error_message(), "x has 1 axes, expected 2 or more"));
}

static void test_assembles(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        int64_t shape[] = {64, 128}, turned[] = {128, 64};
        lib_tensor x = lib_make(types[i], 2, shape, 0, 0), y = lib_make(types[i], 2, turned, 0, 0);
        lib_tensor *tensors[] = {&x, &y};
        bool found = lib_assemble(TK_LIBRARY_TRANSPOSE, 2, tensors, 0, NULL, NULL);
        lib_free(&x);
        lib_free(&y);
        if (found) continue;
        print_message("skipped: no ptxas\n");
        skip();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn), cmocka_unit_test(test_seeds),
                                       cmocka_unit_test(test_conflicts),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_assembles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
