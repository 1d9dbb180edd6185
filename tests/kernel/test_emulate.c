/* The emulator: right results, findings of planted faults, the same verdict for every interleaving.
 */
#include "support/emulate.h"

#include <math.h>

#include "tiki/runtime.h"

static void test_vector_add(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file("examples/kernels/vector_add.tk");
    static const int sizes[] = {0, 1, 31, 32, 255, 256, 257, 1001, 5000};
    static float x[5000], y[5000], z[5001];
    for (int i = 0; i < 5000; i++) x[i] = (float)i, y[i] = (float)(2 * i);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t bytes = (size_t)sizes[s] * sizeof(float);
        memset(z, 0, sizeof z);
        run r = {0};
        bind(&r, x, bytes), bind(&r, y, bytes), bind(&r, z, bytes),
            bind_number(&r, (uint64_t)sizes[s]);
        tk_emulation *emulation = emulate(kernel, &r, s);
        assert_clean(emulation);
        for (int i = 0; i <= sizes[s]; i++)
            assert_true(z[i] == (i < sizes[s] ? (float)(3 * i) : 0));
        assert_int_equal(tk_emulation_totals(emulation).flops, sizes[s]);
        tk_emulation_release(emulation);
    }
    tk_kernel_release(kernel);
}

static void test_row_sum(void **state) {
    (void)state;
    enum { ROWS = 5, COLUMNS = 1000 };
    static float x[ROWS * COLUMNS], y[ROWS];
    tk_kernel *kernel = parse_file("examples/kernels/row_sum.tk");
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i % 7);
    run r = {0};
    bind(&r, x, sizeof x), bind(&r, y, sizeof y), bind_number(&r, ROWS), bind_number(&r, COLUMNS);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        memset(y, 0, sizeof y);
        tk_emulation *emulation = emulate(kernel, &r, seed);
        assert_clean(emulation);
        for (int row = 0; row < ROWS; row++) {
            float sum = 0;
            for (int i = 0; i < COLUMNS; i++) sum += x[row * COLUMNS + i];
            assert_true(y[row] == sum);
        }
        tk_emulation_release(emulation);
    }
    tk_kernel_release(kernel);
}

static const char unit_text[] =
    "tiki kernel 1\nkernel unit(%x: ptr<f32, global> read align 4 size 32, %y: ptr<f32, global> "
    "write align 4 size 32)\nform thread grid (1, 1, 1) block (32, 1, 1)\n{\n"
    "%t = thread_index.x : i32\n%p = offset %x, %t : ptr<f32, global>\n"
    "%q = offset %y, %t : ptr<f32, global>\n%a = load %p : f32\n"
    "%c = fma_unit %a, f32(0.25), f32(0.5) : f32\nstore %q, %c\n}\n";

static void test_fma_unit(void **state) {
    (void)state;
    static float x[32] = {0,      1,        2,         3,          -1,  -2,       -2.5f,    1e30f,
                          -1e30f, 0x1p-24f, -0x1p-23f, 1.9999998f, NAN, INFINITY, -INFINITY},
                 y[32];
    tk_kernel *kernel = parse_text(unit_text);
    run r = {0};
    bind(&r, x, sizeof x), bind(&r, y, sizeof y);
    tk_emulation *emulation = emulate(kernel, &r, 1);
    assert_clean(emulation);
    for (int i = 0; i < 32; i++) {
        float sum = fmaf(x[i], 0.25f, 0.5f), expected = sum > 0 ? fminf(sum, 1) : 0;
        assert_true(y[i] == expected && !signbit(y[i]));
    }
    tk_emulation_release(emulation);
    tk_kernel_release(kernel);
}

/* All interleavings give the same values. */
static void test_all_operations(void **state) {
    (void)state;
    static unsigned char memory[7][32 * 8], first[7][32 * 8];
    static const size_t bytes[] = {4, 8, 2, 4, 8, 2, 2};
    tk_kernel *kernel = parse_file("tests/kernel/text/ops.tk");
    for (uint64_t seed = 0; seed < 3; seed++) {
        run r = {0};
        for (int i = 0; i < 7; i++) {
            for (size_t byte = 0; byte < sizeof memory[i]; byte++)
                memory[i][byte] = (unsigned char)(byte * 37 % 61 + 1);
            bind(&r, memory[i], 32 * bytes[i]);
        }
        bind_number(&r, 32);
        tk_emulation *emulation = emulate(kernel, &r, seed);
        for (size_t i = 0; i < tk_emulation_findings(emulation); i++) {
            tk_kfinding finding;
            assert_ok(tk_emulation_finding(emulation, i, &finding));
            assert_int_equal(finding.kind, TK_KF_DIVISION);
        }
        if (seed == 0) memcpy(first, memory, sizeof first);
        assert_memory_equal(first, memory, sizeof first);
        tk_emulation_release(emulation);
    }
    tk_kernel_release(kernel);
}

/* ---- faults ---- */

#define POINT                                                                                      \
    "%p = offset %x, %t : ptr<f32, global>\n%q = offset %y, %t : ptr<f32, global>\n%v = load %p "  \
    ": f32\n"
#define TILE                                                                                       \
    "%s = shared : shared<f32, \"64:1\">\n%b = address %s : ptr<f32, shared>\n%c = offset %b, %t " \
    ": ptr<f32, shared>\n"

static const fault faults[] = {
    {TILE "store %b, f32(1)", 64, TK_KF_RACE_SHARED, 8},
    {TILE "store %c, f32(1)\n%o = sub i32(63), %t : i32\n%e = offset %b, %o : ptr<f32, shared>\n%w "
          "= load %e : f32",
     64, TK_KF_RACE_SHARED, 11},
    {"%w = load %x : f32\nstore %y, %w", 64, TK_KF_RACE_GLOBAL, 6},
    {TILE "%w = load %c : f32", 64, TK_KF_UNSET_SHARED, 8},
    {"%r = registers : regs<f32, \"4:1\">\nset %r, f32(1) [index = 1]\n%w = get %r [index = 2] : "
     "f32",
     64, TK_KF_UNSET_REGISTER, 7},
    {"%p = offset %x, %n : ptr<f32, global>\n%w = load %p : f32", 64, TK_KF_OUT_OF_BOUNDS, 6},
    {"%m = sub i32(-1), %t : i32\n%p = offset %x, %m : ptr<f32, global>\n%w = load %p : f32", 64,
     TK_KF_OUT_OF_BOUNDS, 7},
    {TILE "%d = offset %b, %n : ptr<f32, shared>\nstore %d, f32(1)", 64, TK_KF_OUT_OF_BOUNDS, 9},
    {"%p = offset %x, i32(1) : ptr<f32, global>\n%w = load %p : f32x2", 64, TK_KF_MISALIGNED, 6},
    {"%f = icmp.slt %t, i32(16) : i1\nif %f {\nbarrier\n}", 64, TK_KF_DIVERGENT, 7},
    {"%f = icmp.slt %t, i32(32) : i1\nif %f {\nbarrier\n}", 64, TK_KF_MISSING_BARRIER, 7},
    {"%f = icmp.slt %t, i32(32) : i1\nif %f {\nbarrier [id = 1, threads = 64]\n} else {\nbarrier "
     "[id = 1, threads = 32]\n}",
     64, TK_KF_BARRIER_COUNT, 0},
    {"%f = icmp.slt %t, i32(16) : i1\nif %f {\nwarp_barrier\n}", 64, TK_KF_DEADLOCK, 7},
    {"%f = icmp.slt %t, i32(16) : i1\nif %f {\n%w = shuffle.butterfly %t, i32(1) : i32\n}", 64,
     TK_KF_DIVERGENT, 7},
    {"%w = shuffle.up %t, i32(1), mask=i32(255) : i32", 64, TK_KF_BAD_LANE, 5},
    {"%p = offset %x, %t : ptr<f32, global>\nstore %p, f32(1)", 64, TK_KF_EFFECT, 6},
    {"%w = sdiv %n, %t : i32", 64, TK_KF_DIVISION, 5},
    {"%w = assume %t [divisor = 2] : i32", 64, TK_KF_ASSUMPTION, 5},
    {"%f = icmp.slt %t, i32(63) : i1\nassert %f [message = \"too many\"]", 64, TK_KF_ASSERTION, 6},
};

static const char *const correct[] = {
    POINT "store %q, %v",
    TILE "store %c, f32(1)\nbarrier\n%o = sub i32(63), %t : i32\n%e = offset %b, %o : ptr<f32, "
         "shared>\n%w = load %e : f32",
    TILE "%z = icmp.eq %t, i32(0) : i1\nif %z {\nstore %b, f32(1)\n}\nbarrier\n%w = load %b : "
         "f32\nbarrier\nif %z {\nstore %b, f32(2)\n}",
    TILE "store %c, f32(1)\nwarp_barrier\n%o = xor %t, i32(31) : i32\n%e = offset %b, %o : "
         "ptr<f32, shared>\n%w = load %e : f32",
    "%f = icmp.slt %t, i32(32) : i1\nif %f {\nbarrier [id = 2, threads = 32]\n}\nbarrier",
    "%f = icmp.slt %t, i32(16) : i1\nif %f {\n%w = shuffle.butterfly %t, i32(1), mask=i32(65535) : "
    "i32\n}",
    TILE "%f = icmp.slt %t, i32(32) : i1\nif %f {\nstore %c, f32(1)\nbarrier_arrive [id = 1, "
         "threads = 64]\n} else {\n"
         "barrier [id = 1, threads = 64]\n%o = sub %t, i32(32) : i32\n%e = offset %b, %o : "
         "ptr<f32, shared>\n%w = load %e : f32\n}",
};

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) assert_found(&faults[i]);
}

static void test_correct_twins(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof correct / sizeof *correct; i++) assert_clean_body(correct[i], 64);
}

/* One seed, one text of findings: for any number of threads of the host, and here for every seed.
 */
static void test_same_verdict(void **state) {
    (void)state;
    static const char body[] = "%i = block_index.x : i32\n%p = offset %y, %t : ptr<f32, "
                               "global>\n%f = float_from_signed %i : f32\nstore %p, %f";
    char *text = around(body, 64), *first = NULL;
    strstr(text, "grid (1")[sizeof "grid (" - 1] = '8';
    tk_kernel *kernel = parse_text(text);
    static float x[64], y[64];
    run r = {0};
    bind(&r, x, sizeof x), bind(&r, y, sizeof y), bind_number(&r, 64);
    for (int threads = 1; threads <= 4; threads++) {
        char *found;
        assert_ok(tk_threads_set(threads));
        tk_emulation *emulation = emulate(kernel, &r, (uint64_t)threads);
        assert_ok(tk_emulation_json(emulation, &found));
        assert_non_null(strstr(found, "global race"));
        assert_true(y[0] == 7);
        if (first) assert_string_equal(first, found);
        if (first)
            tk_kernel_text_free(found);
        else
            first = found;
        tk_emulation_release(emulation);
    }
    assert_ok(tk_threads_set(0));
    tk_kernel_text_free(first);
    tk_kernel_release(kernel);
    free(text);
}

static void test_counts(void **state) {
    (void)state;
    tk_emulation *emulation =
        run_body(TILE "%e = mul %t, i32(2) : i32\n%m = and %e, i32(63) : i32\n%k = offset %b, %m : "
                      "ptr<f32, shared>\n"
                      "store %c, f32(1)\nbarrier\n%w = load %k : f32\n" POINT "store %q, %w",
                 64, 0);
    uint64_t conflicts = 0, sectors = 0;
    for (size_t i = 0; i < tk_emulation_counts(emulation); i++) {
        tk_kcount count;
        assert_ok(tk_emulation_count(emulation, i, &count));
        conflicts += count.conflicts;
        sectors += count.sectors;
    }
    assert_clean(emulation);
    assert_int_equal(conflicts, 2); /* stride 2: two words a bank, in each of two warps */
    assert_int_equal(sectors, 16);  /* two accesses of two warps, four sectors each */
    assert_int_equal(tk_emulation_totals(emulation).read_bytes, 256);
    tk_emulation_release(emulation);
}

/* A loop without end is a deadlock, after a while. */
static void test_endless(void **state) {
    (void)state;
    tk_emulation *emulation = run_body(
        "%r = while (%v = i32(0)) {\ncondition i1(true), %v\n} do (%w) {\n%u = add %w, i32(1) "
        ": i32\nyield %u\n}",
        32, 0);
    tk_kfinding finding;
    assert_int_equal(tk_emulation_findings(emulation), 1);
    assert_ok(tk_emulation_finding(emulation, 0, &finding));
    assert_int_equal(finding.kind, TK_KF_DEADLOCK);
    tk_emulation_release(emulation);
}

static void test_refusals(void **state) {
    (void)state;
    tk_emulation *emulation = NULL;
    char *text = around("%w = exp f32(1) : f32", 32);
    tk_kernel *kernel = parse_text(text);
    static float x[64];
    run r = {0};
    bind(&r, x, sizeof x), bind(&r, x, 128), bind_number(&r, 64);
    tk_kemulate how = {.n_arguments = 2, .arguments = r.arguments, .buffers = r.buffers};
    assert_int_equal(tk_kernel_emulate(kernel, &how, &emulation), TK_INVALID_ARGUMENT);
    how.n_arguments = 3;
    assert_int_equal(tk_kernel_emulate(kernel, &how, &emulation), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "test.tk:5: the emulator has no exp"));
    tk_kernel_release(kernel);
    free(text);
    text = around("%w = raw [text = \"mov.u32 $0, %laneid\"] : i32", 32);
    kernel = parse_text(text);
    assert_int_equal(tk_kernel_emulate(kernel, &how, &emulation), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(),
                           "test.tk:5: the emulator has no body for a raw instruction: \"mov.u32"));
    tk_kernel_release(kernel);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_add),   cmocka_unit_test(test_row_sum),
        cmocka_unit_test(test_fma_unit),     cmocka_unit_test(test_all_operations),
        cmocka_unit_test(test_faults),       cmocka_unit_test(test_correct_twins),
        cmocka_unit_test(test_same_verdict), cmocka_unit_test(test_counts),
        cmocka_unit_test(test_endless),      cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
