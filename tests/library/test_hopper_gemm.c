/* The product by TMA and wgmma: drawn sizes, ways of lying and schedules within the bound, clean
 * under every seed; what its contract refuses, by name; assembled without a word about serialised
 * wgmma. */
#include "support/gemm_run.h"
#include "support/says.h"

#include "tiki/target.h"

static void test_drawn(void **state) {
    (void)state;
    static const tk_kscalar types[] = {TK_K_BF16, TK_K_F16, TK_K_F32};
    static const char *const schedules[] = {NULL, "tile_n = 64, stages = 2", "stages = 3",
                                            "tile_n = 128, stages = 5"};
    uint64_t random = 23;
    for (uint64_t i = 0; i < 24; i++) {
        product p = {.batch = lib_between(&random, 0, 3) ? 0 : lib_between(&random, 1, 2),
                     .m = lib_between(&random, 1, 25) * 8,
                     .n = lib_between(&random, 1, i % 6 ? 20 : 40) * 8,
                     .k = lib_between(&random, 1, 30) * 8,
                     .element = types[lib_between(&random, 0, 1)],
                     .result = types[lib_between(&random, 0, 2)],
                     .a_turned = lib_between(&random, 0, 1),
                     .b_turned = lib_between(&random, 0, 1),
                     .schedule = schedules[lib_between(&random, 0, 3)]};
        run_gemm(TK_LIBRARY_HOPPER_GEMM, &p, i);
    }
}

/* A matrix whose lines begin at multiples of 8 elements. */
static lib_tensor padded(const product *p, int64_t rows, int64_t columns, bool turned) {
    product wide = *p;
    wide.pad = -(turned ? rows : columns) & 7;
    return gemm_matrix(&wide, p->element, rows, columns, turned);
}

/* Lengths that are no multiple of 8, behind pitches that are. */
static void test_tails(void **state) {
    (void)state;
    for (int way = 0; way < 8; way++) {
        product p = {.m = 8 * way + 3,
                     .n = 71 - way,
                     .k = 67,
                     .element = TK_K_BF16,
                     .result = way & 1 ? TK_K_F32 : TK_K_BF16};
        lib_tensor left = padded(&p, p.m, p.k, way & 2), right = padded(&p, p.k, p.n, way & 4),
                   d = gemm_matrix(&p, p.result, p.m, p.n, false);
        lib_tensor *tensors[] = {&left, &right, &d};
        lib_draw(&left, 5), lib_draw(&right, 6);
        lib_run(TK_LIBRARY_HOPPER_GEMM, 3, tensors, 0, NULL, NULL, (uint64_t)way);
        compare_gemm(&p, &left, &right, &d);
        for (int i = 0; i < 3; i++) lib_free(tensors[i]);
    }
}

static void test_seeds(void **state) {
    (void)state;
    product p = {.m = 136,
                 .n = 72,
                 .k = 200,
                 .element = TK_K_BF16,
                 .result = TK_K_BF16,
                 .schedule = "tile_n = 64, stages = 2"};
    for (uint64_t seed = 0; seed < 20; seed++) run_gemm(TK_LIBRARY_HOPPER_GEMM, &p, seed);
}

static void test_empty(void **state) {
    (void)state;
    product p = {.m = 0, .n = 16, .k = 8, .element = TK_K_BF16, .result = TK_K_F32};
    run_gemm(TK_LIBRARY_HOPPER_GEMM, &p, 0);
}

static void test_refusals(void **state) {
    (void)state;
    tk_library_tensor
        x = {.element = TK_K_BF16, .rank = 2, .shape = {32, 64}, .stride = {64, 1}, .align = 16},
        y = {.element = TK_K_BF16, .rank = 2, .shape = {64, 16}, .stride = {16, 1}, .align = 16},
        d = {.element = TK_K_F32, .rank = 2, .shape = {32, 16}, .stride = {16, 1}};
    static const struct {
        int tensor, what;
        int64_t value;
        const char *words;
        tk_status status;
    } cases[] = {
        {0, 0, 8, "a is aligned to 8 bytes, expected a multiple of 16", TK_INVALID_ARGUMENT},
        {1, 0, 2, "b is aligned to 2 bytes", TK_INVALID_ARGUMENT},
        {0, 1, 66, "the pitch of a is 132 bytes, expected a multiple of 16", TK_INVALID_ARGUMENT},
        {1, 1, 20, "the pitch of b is 40 bytes", TK_INVALID_ARGUMENT},
        {0, 2, TK_K_F32, "expected f16 or bf16 in both", TK_DTYPE_ERROR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tk_library_tensor list[] = {x, y, d}, *t = &list[cases[i].tensor];
        tk_library_plan *plan = NULL;
        if (cases[i].what == 0) t->align = cases[i].value;
        if (cases[i].what == 1) t->stride[0] = cases[i].value;
        if (cases[i].what == 2) t->element = (tk_kscalar)cases[i].value;
        assert_int_equal(
            tk_library_plan_create(TK_LIBRARY_HOPPER_GEMM, 3, list, 0, NULL, NULL, &plan),
            cases[i].status);
        assert_error_says(cases[i].words);
    }
}

static void test_schedules(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"stages = 1", "expected 2 or more"},
        {"tile_n = 32", "expected 64, 128 or 256"},
        {"tile_n = 256, stages = 6", "of shared memory, at most"}};
    tk_library_tensor x = {.element = TK_K_BF16,
                           .rank = 2,
                           .shape = {64, 64},
                           .stride = {64, 1},
                           .align = 16},
                      list[] = {x, x, x};
    refuse_schedules(TK_LIBRARY_HOPPER_GEMM, list, sizeof texts / sizeof *texts, texts);
}

static void test_assembles(void **state) {
    (void)state;
    product p = {.m = 256, .n = 256, .k = 64, .element = TK_K_BF16, .result = TK_K_BF16};
    assemble_gemm(TK_LIBRARY_HOPPER_GEMM, p);
    p.n = 128, p.result = TK_K_F32;
    assemble_gemm(TK_LIBRARY_HOPPER_GEMM, p);
    p.n = 40; /* a narrow tile needs few registers, and warpgroups exchange them all the same */
    assemble_gemm(TK_LIBRARY_HOPPER_GEMM, p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn),    cmocka_unit_test(test_tails),
        cmocka_unit_test(test_seeds),    cmocka_unit_test(test_empty),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_assembles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
