/* The product by mma.sync: drawn sizes, ways of lying, types and schedules against sums in double,
 * within the bound of the kernel language; clean under every seed. */
#include "support/gemm_run.h"
#include "support/says.h"

static void test_drawn(void **state) {
    (void)state;
    static const tk_kscalar types[] = {TK_K_F16, TK_K_BF16, TK_K_F32};
    static const char *const schedules[] = {
        NULL, "tile_m = 32, tile_n = 64, tile_k = 16, stages = 2, warps_m = 1, warps_n = 2",
        "tile_m = 64, tile_n = 16, tile_k = 64, stages = 1, warps_m = 4, warps_n = 1",
        "tile_m = 16, tile_n = 32, tile_k = 32, stages = 3, warps_m = 1, warps_n = 1, vector = 4"};
    uint64_t random = 17;
    for (uint64_t i = 0; i < 120; i++) {
        bool even = lib_between(&random, 0, 2);
        int64_t unit = even ? 8 : 1, longest = i % 10 == 0 ? 150 : 50;
        product p = {.batch = lib_between(&random, 0, 3) ? 0 : lib_between(&random, 1, 3),
                     .m = lib_between(&random, i % 15 ? 1 : 0, longest / unit) * unit,
                     .n = lib_between(&random, i % 16 ? 1 : 0, longest / unit) * unit,
                     .k = lib_between(&random, i % 9 ? 1 : 0, 100 / unit) * unit,
                     .element = types[lib_between(&random, 0, 1)],
                     .result = types[lib_between(&random, 0, 2)],
                     .a_turned = lib_between(&random, 0, 1),
                     .b_turned = lib_between(&random, 0, 1),
                     .pad = even ? 0 : lib_between(&random, 0, 3),
                     .skip = even ? 0 : lib_between(&random, 0, 5),
                     .schedule = schedules[lib_between(&random, 0, 3)]};
        run_gemm(TK_LIBRARY_GEMM, &p, i);
    }
}

static void test_seeds(void **state) {
    (void)state;
    product p = {.m = 70, .n = 40, .k = 90, .element = TK_K_F16, .result = TK_K_F16};
    product odd = {.m = 33, .n = 17, .k = 35, .element = TK_K_BF16, .result = TK_K_F32, .pad = 1};
    p.schedule = odd.schedule = "tile_m = 32, tile_n = 32, tile_k = 16, stages = 3";
    for (uint64_t seed = 0; seed < 20; seed++) {
        run_gemm(TK_LIBRARY_GEMM, &p, seed);
        run_gemm(TK_LIBRARY_GEMM, &odd, seed);
    }
}

/* Copies and reads of shared memory meet all banks. */
static void test_accesses(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        product p = {.m = 128,
                     .n = 128,
                     .k = 64,
                     .element = TK_K_F16,
                     .result = TK_K_F32,
                     .a_turned = way & 1,
                     .b_turned = way & 2};
        lib_tensor a = gemm_matrix(&p, p.element, p.m, p.k, p.a_turned),
                   b = gemm_matrix(&p, p.element, p.k, p.n, p.b_turned),
                   d = gemm_matrix(&p, p.result, p.m, p.n, false);
        lib_tensor *tensors[] = {&a, &b, &d};
        assert_int_equal(lib_run(TK_LIBRARY_GEMM, 3, tensors, 0, NULL, NULL, 0), 0);
        for (int i = 0; i < 3; i++) lib_free(tensors[i]);
    }
}

static void test_refusals(void **state) {
    (void)state;
    tk_library_tensor x = {.element = TK_K_F16, .rank = 2, .shape = {32, 64}, .stride = {64, 1}},
                      y = {.element = TK_K_F16, .rank = 2, .shape = {64, 16}, .stride = {16, 1}},
                      d = {.element = TK_K_F32, .rank = 2, .shape = {32, 16}, .stride = {16, 1}};
    static const struct {
        int tensor, what;
        int64_t value;
        const char *words;
        tk_status status;
    } cases[] = {
        {0, 0, TK_K_F32, "a has elements f32 and b f16, expected f16 or bf16", TK_DTYPE_ERROR},
        {2, 0, TK_K_I32, "d has elements i32", TK_DTYPE_ERROR},
        {1, 1, 63, "b 63 x 16 and d 32 x 16, expected m x k", TK_SHAPE_ERROR},
        {1, 2, 3, "b has strides 3 and 2 along its last axes, expected a 1", TK_SHAPE_ERROR},
        {2, 2, 1, "d has strides 1 and 2 along its last axes, expected a 1 in the last",
         TK_SHAPE_ERROR},
        {2, 3, 1, "d has 1 axes and a 2", TK_SHAPE_ERROR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tk_library_tensor list[] = {x, y, d}, *t = &list[cases[i].tensor];
        tk_library_plan *plan = NULL;
        if (cases[i].what == 0) t->element = (tk_kscalar)cases[i].value;
        if (cases[i].what == 1) t->shape[0] = cases[i].value;
        if (cases[i].what == 2) t->stride[0] = cases[i].value, t->stride[1] = 2;
        if (cases[i].what == 3) t->rank = (int)cases[i].value;
        assert_int_equal(tk_library_plan_create(TK_LIBRARY_GEMM, 3, list, 0, NULL, NULL, &plan),
                         cases[i].status);
        assert_error_says(cases[i].words);
    }
}

static void test_schedules(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"tile_m = 16", "2 x 2 warps over a tile of 16 x 64"},
        {"tile_m = 256, tile_n = 256", "512 sums a thread"},
        {"tile_k = 128, stages = 8, tile_m = 256", "bytes of shared memory"},
    };
    tk_library_tensor x = {.element = TK_K_F16, .rank = 2, .shape = {64, 64}, .stride = {64, 1}},
                      list[] = {x, x, x};
    refuse_schedules(TK_LIBRARY_GEMM, list, sizeof texts / sizeof *texts, texts);
}

static void test_assembles(void **state) {
    (void)state;
    product p = {.m = 256, .n = 256, .k = 64, .element = TK_K_F16, .result = TK_K_F16};
    product odd = {.m = 33, .n = 35, .k = 37, .element = TK_K_BF16, .result = TK_K_F32};
    assemble_gemm(TK_LIBRARY_GEMM, p);
    assemble_gemm(TK_LIBRARY_GEMM, odd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn),     cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_accesses),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_schedules), cmocka_unit_test(test_assembles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
