/* What lowered kernels compute: asynchronous copies, products of tiles in shared memory, TMA,
 * groups that combine, views that loops carry. Each in the emulator under 20 seeds, as it is and
 * optimised, and assembled. */
#include "support/lowered.h"
#include "support/says.h"

#include "base/half.h"
#include "tiki/target.h"

enum { FLAGS = 3, SEEDS = 20 };

static void assemble(const tk_kernel *kernel, const char *arch) {
    tk_build how = {.arch = arch, .emit = TK_EMIT_BINARY};
    tk_artifact *artifact = NULL;
    tk_report report;
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    if (status == TK_UNSUPPORTED && strstr(tk_error_message(), "no ptxas")) return;
    assert_ok(status);
    assert_ok(tk_artifact_report(artifact, &report));
    assert_int_equal(report.spill_stores, 0);
    tk_artifact_release(artifact);
}

/* ---- copies ---- */

static void test_async_copy(void **state) {
    (void)state;
    enum { ROWS = 64, COLUMNS = 64, PITCH = 72 };
    static uint16_t x[ROWS * PITCH] __attribute__((aligned(16))),
        y[ROWS * PITCH] __attribute__((aligned(16)));
    for (int i = 0; i < ROWS * PITCH; i++) x[i] = (uint16_t)i;
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}};
    tk_kargument arguments[] = {{0}, {0}, {PITCH}};
    for (int f = 0; f < FLAGS; f++) {
        tk_kernel *kernel = lowered("async_copy", all_flags[f]);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            memset(y, 0xee, sizeof y);
            emulate_clean(kernel, seed, 3, buffers, arguments);
            for (int i = 0; i < ROWS * PITCH; i++)
                assert_int_equal(y[i], i % PITCH < COLUMNS ? x[i] : 0xeeee);
        }
        assemble(kernel, "sm_80");
        tk_kernel_release(kernel);
    }
}

/* ---- sizes beyond 32 bits ---- */

static tk_status lower_big(const char *body, tk_kernel **out) {
    char text[800];
    tk_kernel *kernel;
    snprintf(text, sizeof text,
             "tiki kernel 1\n\nkernel big(%%x: ptr<i8, global> write align 1, %%n: i32, %%m: i32)\n"
             "form tensor\nrequire %%n >= 0\nrequire %%m >= 0\ngrid (1, 1, 1)\nblock (32, 1, 1)\n"
             "{\n%s}\n",
             body);
    assert_ok(tk_kernel_parse(text, "big.tk", &kernel));
    tk_status status = tk_kernel_lower(kernel, TK_KFORM_THREAD, 0, out);
    tk_kernel_release(kernel);
    return status;
}

/* 65536 x 65536 elements are a product of 2^32, which 32 bits take for none. */
static void test_products_of_extents(void **state) {
    (void)state;
    static const char *const layouts[] = {"(?,?):(1,?)", "((?,2),?):((1,?),?)"};
    for (int i = 0; i < 2; i++) {
        char body[300], *text;
        tk_kernel *kernel;
        snprintf(
            body, sizeof body,
            "%%v = view %%x, %%n, %%m, %%n%s : view<i8, global, \"%s\">\nfill.block %%v, i8(1)\n",
            i ? ", %m" : "", layouts[i]);
        assert_ok(lower_big(body, &kernel));
        assert_ok(tk_kernel_print(kernel, 0, &text));
        int products = 0;
        for (const char *at = text; (at = strstr(at, " = mul ")); at++, products++) {
            const char *end = strchr(at, '\n');
            if (strncmp(end - 5, ": i64", 5)) fail_msg("in 32 bits: %.*s", (int)(end - at), at);
        }
        assert_true(products > i);
        tk_kernel_text_free(text);
        tk_kernel_release(kernel);
    }
}

static void test_counts_beyond_32_bits(void **state) {
    (void)state;
    tk_kernel *kernel = NULL;
    assert_int_equal(lower_big("%v = view %x : view<i8, global, \"(3000000000,2):(1,1)\">\n"
                               "%s = view %x : view<i8, global, \"(3000000000,2):(1,0)\">\n"
                               "combine.add.block %v, %s\n",
                               &kernel),
                     TK_UNSUPPORTED);
    assert_error_says("a tile of 6000000000 elements");
}

/* Partial boxes at the edges: nothing beyond rows and columns is written. */
static void test_tma_copy(void **state) {
    (void)state;
    enum { ROWS = 45, COLUMNS = 90, PITCH = 96 };
    static uint16_t x[ROWS * PITCH] __attribute__((aligned(16))),
        y[ROWS * PITCH] __attribute__((aligned(16)));
    for (int i = 0; i < ROWS * PITCH; i++) x[i] = (uint16_t)i;
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}, {0}, {0}, {0}};
    tk_kargument arguments[] = {{0}, {0}, {0}, {0}, {ROWS}, {COLUMNS}, {PITCH}};
    for (int f = 0; f < FLAGS; f++) {
        tk_kernel *kernel = lowered("tma_copy", all_flags[f]);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            memset(y, 0xee, sizeof y);
            emulate_clean(kernel, seed, 7, buffers, arguments);
            for (int i = 0; i < ROWS * PITCH; i++)
                assert_int_equal(y[i], i % PITCH < COLUMNS ? x[i] : 0xeeee);
        }
        assemble(kernel, "sm_90");
        tk_kernel_release(kernel);
    }
}

/* ---- products ---- */

static void test_shared_gemm(void **state) {
    (void)state;
    enum { M = 32, N = 24, K = 32 };
    static uint16_t x[M * K] __attribute__((aligned(16))), y[N * K] __attribute__((aligned(16)));
    static float z[M * N] __attribute__((aligned(16)));
    for (int i = 0; i < M * K; i++) x[i] = tk_f32_to_f16((float)(i * 7 % 19 - 9));
    for (int i = 0; i < N * K; i++) y[i] = tk_f32_to_f16((float)(i * 5 % 13 - 6));
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {z, sizeof z, 0}};
    tk_kargument arguments[3] = {{0}};
    for (int f = 0; f < FLAGS; f++) {
        tk_kernel *kernel = lowered("shared_gemm", all_flags[f]);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            memset(z, 0, sizeof z);
            emulate_clean(kernel, seed, 3, buffers, arguments);
            for (int m = 0; m < M; m++)
                for (int n = 0; n < N; n++) {
                    float sum = 0;
                    for (int k = 0; k < K; k++)
                        sum += tk_f16_to_f32(x[m * K + k]) * tk_f16_to_f32(y[k * N + n]);
                    assert_true(z[m * N + n] == sum);
                }
        }
        assemble(kernel, "sm_80");
        tk_kernel_release(kernel);
    }
}

/* Whole numbers of bf16; a is m x k, b k x n, both row-major. */
static void fill_bf16(uint16_t *x, int count, int step, int modulus) {
    int half = modulus / 2;
    for (int i = 0; i < count; i++) x[i] = tk_f32_to_bf16((float)(i * step % modulus - half));
}

static void assert_product(const uint16_t *a, const uint16_t *b, const float *z, int m, int n,
                           int k) {
    for (int i = 0; i < m * n; i++) {
        float sum = 0;
        for (int j = 0; j < k; j++)
            sum += tk_bf16_to_f32(a[i / n * k + j]) * tk_bf16_to_f32(b[j * n + i % n]);
        assert_true(z[i] == sum);
    }
}

/* wgmma on tiles that the block copied. */
static void test_group_gemm(void **state) {
    (void)state;
    enum { M = 64, N = 64, K = 128 };
    static uint16_t x[M * K] __attribute__((aligned(16))), y[N * K] __attribute__((aligned(16)));
    static float z[M * N] __attribute__((aligned(16)));
    fill_bf16(x, M * K, 7, 19);
    fill_bf16(y, N * K, 5, 13);
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {z, sizeof z, 0}};
    tk_kargument arguments[3] = {{0}};
    for (int f = 0; f < FLAGS; f++) {
        tk_kernel *kernel = lowered("group_gemm", all_flags[f]);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            memset(z, 0, sizeof z);
            emulate_clean(kernel, seed, 3, buffers, arguments);
            assert_product(x, y, z, M, N, K);
        }
        assemble(kernel, "sm_90a");
        tk_kernel_release(kernel);
    }
}

/* TMA into two stages by one warp, products of them by a warpgroup. */
static void test_pipeline(void **state) {
    (void)state;
    enum { M = 128, N = 64, K = 320 };
    static uint16_t a[M * K] __attribute__((aligned(16))), b[N * K] __attribute__((aligned(16)));
    static float z[M * N] __attribute__((aligned(16)));
    fill_bf16(a, M * K, 7, 19);
    fill_bf16(b, N * K, 5, 13);
    tk_kbuffer buffers[8] = {{a, sizeof a, 0}, {b, sizeof b, 0}, {z, sizeof z, 0}};
    tk_kargument arguments[] = {{0}, {0}, {0}, {0}, {0}, {M}, {N}, {K}};
    for (int f = 0; f < FLAGS; f++) {
        tk_kernel *kernel = lowered("pipeline", all_flags[f]);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            memset(z, 0, sizeof z);
            emulate_clean(kernel, seed, 8, buffers, arguments);
            assert_product(a, b, z, M, N, K);
        }
        assemble(kernel, "sm_90a");
        tk_kernel_release(kernel);
    }
}

/* ---- groups that combine ---- */

static void test_combine(void **state) {
    (void)state;
    enum { ROWS = 100, INNER = 3, OUTER = 5, COLUMNS = INNER * OUTER };
    static float x[ROWS * COLUMNS], sums[ROWS], most[COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i * 37 % 101) * 0.37f - 10;
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {sums, sizeof sums, 0}, {most, sizeof most, 0}};
    tk_kargument arguments[3] = {{0}};
    for (int f = 0; f < FLAGS; f++) {
        tk_kernel *kernel = lowered("combine", all_flags[f]);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            for (int r = 0; r < ROWS; r++) sums[r] = (float)r;
            for (int c = 0; c < COLUMNS; c++) most[c] = c == 4 ? 100 : -100;
            emulate_clean(kernel, seed, 3, buffers, arguments);
            for (int r = 0; r < ROWS; r++) { /* in the order of the tile's coordinates */
                float sum = (float)r;
                for (int o = 0; o < OUTER; o++)
                    for (int i = 0; i < INNER; i++) sum += x[r * COLUMNS + i * OUTER + o];
                assert_true(sums[r] == sum);
            }
            for (int c = 0; c < COLUMNS; c++) {
                float top = c == 4 ? 100 : -100;
                for (int r = 0; r < ROWS; r++)
                    if (x[r * COLUMNS + c] > top) top = x[r * COLUMNS + c];
                assert_true(most[c] == top);
            }
        }
        assemble(kernel, "sm_80");
        tk_kernel_release(kernel);
    }
}

/* ---- views that are carried ---- */

static float carried(const float *x, const float *y, int n, int pitch, int t) {
    bool even = n == 4;
    const float *u = even ? x : y, *v = even ? y : x;
    float sum = 0;
    for (int i = 0; i < n; i++) {
        float twice = u[i * pitch + t] * 2, more = twice + sum;
        sum = more * 0.5f;
        const float *swap = u;
        u = v, v = swap;
    }
    while (sum < 100) {
        sum = sum + u[t];
        sum = sum + 10;
    }
    return sum + u[pitch + t];
}

static void test_carried_view(void **state) {
    (void)state;
    enum { PITCH = 40, ROWS = 6 };
    static float x[ROWS * PITCH], y[ROWS * PITCH], z[32];
    for (int i = 0; i < ROWS * PITCH; i++) x[i] = (float)(i % 11), y[i] = (float)(i % 7) + 0.25f;
    tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {z, sizeof z, 0}, {0}, {0}};
    for (int f = 0; f < 2; f++) {
        tk_kernel *kernel = lowered("carried_view", all_flags[f]);
        for (int n = 0; n <= ROWS; n++) {
            tk_kargument arguments[] = {{0}, {0}, {0}, {(uint64_t)n}, {PITCH}};
            emulate_clean(kernel, (uint64_t)n, 5, buffers, arguments);
            for (int t = 0; t < 32; t++) assert_true(z[t] == carried(x, y, n, PITCH, t));
        }
        assemble(kernel, "sm_80");
        tk_kernel_release(kernel);
    }
}

/* ---- refusals ---- */

static void assert_refused(const char *body, tk_status expected, const char *message) {
    char text[2048];
    tk_kernel *out = NULL;
    snprintf(
        text, sizeof text,
        "tiki kernel 1\nkernel refused(%%x: ptr<f16, global> read_write align 2, %%m: ptr<tmap, "
        "param> map %%x f16 extent (64, %%n) stride (%%n * 2) box (64, 8) swizzle 128, %%n: i32)\n"
        "form tensor grid (1, 1, 1) block (128, 1, 1)\n{\n"
        "%%s = shared [align = 128] : shared<f16, \"(8,64):(64,1)\">\n"
        "%%v = view_of %%s : view<f16, shared, \"(8,64):(64,1)\">\n"
        "%%g = shared [align = 8] : shared<mbar, \"1:1\">\n"
        "%%b = address %%g : ptr<mbar, shared>\n%s\n}\n",
        body);
    tk_kernel *kernel = parse_text(text);
    assert_int_equal(tk_kernel_lower(kernel, TK_KFORM_THREAD, 0, &out), expected);
    assert_error_says(message);
    tk_kernel_release(kernel);
}

/* A load of a tile %t by TMA to a buffer of the layout. */
static void assert_refused_swizzle(const char *tile, const char *layout, const char *message) {
    char text[1024];
    snprintf(text, sizeof text,
             "%s%%u = shared [align = 1024] : shared<f16, \"%s\">\n"
             "%%e = view_of %%u : view<f16, shared, \"%s\">\n"
             "copy.warp.tma %%t, %%e, barrier=%%b, map=%%m",
             tile, layout, layout);
    assert_refused(text, TK_UNSUPPORTED, message);
}

#define GLOBAL(layout) "%w = view %x : view<f16, global, \"" layout "\">\n"

static void test_refusals(void **state) {
    (void)state;
    static const char *const whole = "%w = view %x, %n, %n : view<f16, global, \"(?,64):(?,1)\">\n"
                                     "%t = tile %w [coord = \"(0,0)\", tiler = \"[8:1;64:1]\"] : "
                                     "view<f16, global, \"(8,64):(?,1)\">\n";
    char text[512];
    assert_refused(GLOBAL("(8,64):(64,1)") "copy.warp.cp_async %w, %v", TK_UNSUPPORTED,
                   "copy: cp.async moves 4, 8 or 16 bytes, and only 2 are proven");
    assert_refused(GLOBAL("(8,64):(64,1)") "copy.warp.cp_async %v, %w", TK_UNSUPPORTED,
                   "copy: cp.async goes from global to shared memory and converts nothing");
    assert_refused(GLOBAL("(8,64):(64,1)") "copy.warp.bulk %w, %v", TK_UNSUPPORTED,
                   "copy: runs of bytes are copied by bulk_load and bulk_store");
    assert_refused(GLOBAL("(8,64):(64,1)") "copy.warp.tma %w, %v, map=%m", TK_UNSUPPORTED,
                   "copy: by TMA: a load needs barrier=");
    assert_refused(GLOBAL("(8,64):(64,1)") "copy.warp.tma %w, %v, barrier=%b", TK_UNSUPPORTED,
                   "copy: by TMA: it needs map=, a parameter");
    assert_refused(GLOBAL("(8,64):(64,1)") "copy.warp.tma %w, %v, barrier=%b, map=%m",
                   TK_UNSUPPORTED,
                   "extents and strides of the view are not those of the tensor map");
    snprintf(text, sizeof text, "%scopy.warp.tma %%t, %%v, barrier=%%b, map=%%m", whole);
    assert_refused(text, TK_UNSUPPORTED,
                   "the swizzle in shared memory is not that of the tensor map");
    assert_refused_swizzle(whole, "S<3,6,3> o 0 o (8,64):(64,1)",
                           "the swizzle in shared memory is not that of the tensor map");
    assert_refused_swizzle(whole, "S<3,3,3> o 0 o (8,64):(1,8)",
                           "the layout in shared memory is not that of the box and its swizzle");
    assert_refused_swizzle(whole, "S<3,3,3> o 64 o (8,64):(64,1)",
                           "not proven to lie at a multiple of 1024 bytes");
    assert_refused("%d = registers : regs<f32, \"(4,1,1):(1,4,4)\">\n"
                   "gemm.warp %d, %v, %v [m = 16, n = 8, k = 16]",
                   TK_SHAPE_ERROR, "gemm: a is 8 x 64, expected multiples of 16 and 16");
    assert_refused("%d = registers : regs<f32, \"(4,1,1):(1,4,4)\">\n"
                   "gemm.block %d, %v, %v [m = 16, n = 8, k = 16]",
                   TK_UNSUPPORTED, "gemm: of a warp, each with its part of d, or of a warpgroup");
    assert_refused("%d = registers : regs<f32, \"(4,1,1):(1,4,4)\">\n"
                   "gemm.warpgroup %d, %v, %v [m = 64, n = 8, k = 16]",
                   TK_SHAPE_ERROR, "gemm of a warpgroup: a is 8 x 64, expected multiples of 64");
    assert_refused("%u = shared [align = 1024] : shared<f16, \"(64,64):(64,1)\">\n"
                   "%e = view_of %u : view<f16, shared, \"(64,64):(64,1)\">\n"
                   "%d = registers : regs<f32, \"(4,1,1):(1,4,4)\">\n"
                   "gemm.warpgroup %d, %e, %v [m = 64, n = 8, k = 16]",
                   TK_UNSUPPORTED, "gemm of a warpgroup: a does not lie as a descriptor can say");
    assert_refused(GLOBAL("(16,32):(32,1)") "combine.add.block %w, %v", TK_UNSUPPORTED,
                   "combine: the modes of source and target differ");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_async_copy),
                                       cmocka_unit_test(test_products_of_extents),
                                       cmocka_unit_test(test_counts_beyond_32_bits),
                                       cmocka_unit_test(test_tma_copy),
                                       cmocka_unit_test(test_shared_gemm),
                                       cmocka_unit_test(test_group_gemm),
                                       cmocka_unit_test(test_pipeline),
                                       cmocka_unit_test(test_combine),
                                       cmocka_unit_test(test_carried_view),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
