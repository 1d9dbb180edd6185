/* wgmma in the emulator: every type, way of lying and swizzle against sums in double, with shared
 * memory filled by the layouts of the PTX manual, and what may not be touched meanwhile. */
#include "support/kernel_wgmma.h"

/* ---- faults ---- */

/* Two operands of 64 x 16 halves in 8 KiB, written and fenced; %da and %db describe them, %d and %a
 * are accumulator and fragment. */
#define OPERANDS                                                                                   \
    "%s = shared [align = 1024] : shared<f16, \"4096:1\">\n"                                       \
    "%p = address %s : ptr<f16, shared>\n"                                                         \
    "%i = mul %t, i32(32) : i32\n%q0 = offset %p, %i : ptr<f16, shared>\n"                         \
    "%q1 = offset %q0, i32(8) : ptr<f16, shared>\n%q2 = offset %q0, i32(16) : ptr<f16, shared>\n"  \
    "%q3 = offset %q0, i32(24) : ptr<f16, shared>\n%one = splat f16(1) : f16x8\n"                  \
    "%da = matrix_descriptor.swizzle_32 %p [stride = 256] : i64\n%d = registers : regs<f32, "      \
    "\"4:1\">\n%a = registers : regs<f16, \"8:1\">\n%zero = splat f32(0) : f32x4\n"
#define STORE "store %q0, %one\nstore %q1, %one\nstore %q2, %one\nstore %q3, %one\n"
#define READY STORE "proxy_fence.async_shared\nbarrier\n"
#define SS "wgmma.a_f16.b_f16 %d, %da, %da [m = 64, n = 8, k = 16]\n"
#define SS_MORE "wgmma.a_f16.b_f16 %d, %da, %da, accumulate=i1(true) [m = 64, n = 8, k = 16]\n"
#define RS "wgmma.a_f16.b_f16 %d, %a, %da [m = 64, n = 8, k = 16]\n"
enum { FIRST = 5 + 12, AFTER = FIRST + 6 }; /* lines behind OPERANDS, and READY */

static const fault faults[] = {
    /* registers in use */
    {OPERANDS READY "wgmma_fence\n" SS "%w = get %d : f32\nwgmma_commit\nwgmma_wait", 128,
     TK_KF_IN_FLIGHT, AFTER + 2},
    {OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nset %d, %zero\nwgmma_wait", 128,
     TK_KF_IN_FLIGHT, AFTER + 3},
    {OPERANDS READY "set %a, %one\nwgmma_fence\n" RS "wgmma_commit\nset %a, %one\nwgmma_wait", 128,
     TK_KF_IN_FLIGHT, AFTER + 4},
    {OPERANDS READY "set %a, %one\nwgmma_fence\n" RS
                    "wgmma_commit\nload_matrix %a, %q0 [count = 4]\nwgmma_wait",
     128, TK_KF_IN_FLIGHT, AFTER + 4},
    /* one group may be left: the second product is not over */
    {OPERANDS READY "%e = registers : regs<f32, \"4:1\">\nwgmma_fence\n" SS "wgmma_commit\n"
                    "wgmma.a_f16.b_f16 %e, %da, %da [m = 64, n = 8, k = 16]\nwgmma_commit\n"
                    "wgmma_wait [groups = 1]\n%v = get %d : f32\n%w = get %e : f32\nwgmma_wait",
     128, TK_KF_IN_FLIGHT, AFTER + 8},
    /* a product that no commit has closed is not waited for */
    {OPERANDS READY "wgmma_fence\n" SS "wgmma_wait\n%w = get %d : f32\nwgmma_commit\nwgmma_wait",
     128, TK_KF_IN_FLIGHT, AFTER + 3},
    /* products of another shape do not continue the accumulator */
    {OPERANDS READY "%e = registers : regs<f32, \"8:1\">\nwgmma_fence\nwgmma.a_f16.b_f16 %e, %da, "
                    "%da [m = 64, n = 16, k = 16]\nwgmma.a_f16.b_f16 %e, %da, %da [m = 64, n = 8, "
                    "k = 16]\nwgmma_commit\nwgmma_wait",
     128, TK_KF_IN_FLIGHT, AFTER + 3},
    /* shared memory in use */
    {OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nstore %q0, %one\nwgmma_wait", 128,
     TK_KF_IN_FLIGHT, AFTER + 3},
    {OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nbarrier\nstore %q0, %one\nwgmma_wait", 128,
     TK_KF_IN_FLIGHT, AFTER + 4},
    {OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nwgmma_wait [groups = 1]\nbarrier\nstore %q0, "
                    "%one\nwgmma_wait",
     128, TK_KF_IN_FLIGHT, AFTER + 5},
    {OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nwgmma_wait\nstore %q0, %one", 128,
     TK_KF_RACE_SHARED, AFTER + 4},
    /* fences */
    {OPERANDS STORE "barrier\nwgmma_fence\n" SS "wgmma_commit\nwgmma_wait", 128, TK_KF_PROXY_FENCE,
     FIRST + 6},
    {OPERANDS STORE "barrier\nproxy_fence.async_shared\nbarrier\nstore %q0, %one\nbarrier\nwgmma_"
                    "fence\n" SS "wgmma_commit\nwgmma_wait",
     128, TK_KF_PROXY_FENCE, FIRST + 10},
    {OPERANDS STORE "proxy_fence.async_shared\nwgmma_fence\n" SS "wgmma_commit\nwgmma_wait", 128,
     TK_KF_RACE_SHARED, FIRST + 6},
    {OPERANDS READY SS "wgmma_commit\nwgmma_wait", 128, TK_KF_WGMMA_FENCE, AFTER},
    {OPERANDS READY "wgmma_fence\nset %d, %zero\n" SS_MORE "wgmma_commit\nwgmma_wait", 128,
     TK_KF_WGMMA_FENCE, AFTER + 2},
    {OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nwgmma_wait\n%w = get %d : f32\n" SS_MORE
                    "wgmma_commit\nwgmma_wait",
     128, TK_KF_WGMMA_FENCE, AFTER + 5},
    {OPERANDS READY "wgmma_fence\nset %a, %one\n" RS "wgmma_commit\nwgmma_wait", 128,
     TK_KF_WGMMA_FENCE, AFTER + 2},
    /* other */
    {OPERANDS READY "wgmma_fence\n" SS_MORE "wgmma_commit\nwgmma_wait", 128, TK_KF_UNSET_REGISTER,
     AFTER + 1},
    {OPERANDS READY "wgmma_fence\n" SS "wgmma_commit", 128, TK_KF_UNFINISHED, AFTER + 1},
    {OPERANDS "proxy_fence.async_shared\nbarrier\nwgmma_fence\n" SS "wgmma_commit\nwgmma_wait", 128,
     TK_KF_UNSET_SHARED, FIRST + 3},
    {OPERANDS READY "%far = add %da, i64(480) : i64\nwgmma_fence\nwgmma.a_f16.b_f16 %d, %far, %da "
                    "[m = 64, n = 8, k = 16]\nwgmma_commit\nwgmma_wait",
     128, TK_KF_OUT_OF_BOUNDS, AFTER + 2},
    {OPERANDS READY "%h = icmp.slt %t, i32(96) : i1\nwgmma_fence\nif %h {\n" SS
                    "}\nwgmma_commit\nwgmma_wait",
     128, TK_KF_DIVERGENT, 0},
    {OPERANDS READY "%h = icmp.slt %t, i32(16) : i1\nif %h {\nwgmma_fence\n}", 128, TK_KF_DIVERGENT,
     AFTER + 2},
};

static const char *const correct[] = {
    OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nwgmma_wait\n%w = get %d : f32",
    OPERANDS READY "set %d, %zero\nwgmma_fence\n" SS_MORE SS_MORE
                   "wgmma_commit\nwgmma_wait\nset %d, %zero",
    OPERANDS READY "set %a, %one\nwgmma_fence\n" RS "%w = get %a : f16\nwgmma_commit\nwgmma_wait\n"
                   "set %a, %one\nwgmma_fence\n" RS "wgmma_commit\nwgmma_wait",
    OPERANDS READY "%e = registers : regs<f32, \"4:1\">\nwgmma_fence\n" SS "wgmma_commit\n"
                   "wgmma.a_f16.b_f16 %e, %da, %da [m = 64, n = 8, k = 16]\nwgmma_commit\n"
                   "wgmma_wait [groups = 1]\n%v = get %d : f32\nwgmma_wait\n%w = get %e : f32",
    OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nwgmma_wait\nbarrier\nstore %q0, %one",
    OPERANDS READY "wgmma_fence\n" SS "wgmma_commit\nwgmma_wait\nbarrier\n" READY
                   "wgmma_fence\n" SS_MORE "wgmma_commit\nwgmma_wait",
    OPERANDS READY "wgmma_fence\n" SS
                   "wgmma_commit\nwgmma_wait\n%w = get %d : f32\nwgmma_fence\n" SS_MORE
                   "wgmma_commit\nwgmma_wait",
    OPERANDS READY "%e = registers : regs<f32, \"8:1\">\nwgmma_fence\nwgmma.a_f16.b_f16 %e, %da, "
                   "%da [m = 64, n = 16, k = 16]\nwgmma_commit\nwgmma_wait\nwgmma_fence\n"
                   "wgmma.a_f16.b_f16 %e, %da, %da [m = 64, n = 8, k = 16]\nwgmma_commit\n"
                   "wgmma_wait",
    OPERANDS READY "registers_shrink [registers = 40]\nwgmma_fence\n" SS "wgmma_commit\nwgmma_wait",
};

static void test_faults(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) assert_found(&faults[i]);
}

static void test_correct_twins(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof correct / sizeof *correct; i++)
        assert_clean_body(correct[i], 128);
}

/* The rolled loop that goes wrong in silence on the card: one group stays in flight while the next
 * iteration fills the A fragment again. Two fragments in turn, or a wait for all, are right. */
#define LOOP(fill, left)                                                                           \
    OPERANDS READY "set %d, %zero\nset %a, %one\nfor %j = i32(0) to i32(4) step i32(1) {\n" fill   \
                   "wgmma_fence\nwgmma.a_f16.b_f16 %d, %a, %da, accumulate=i1(true) [m = 64, n = " \
                   "8, k = 16]\nwgmma_commit\nwgmma_wait [groups = " left "]\n}\nwgmma_wait"

static void test_rolled_loop(void **unused) {
    (void)unused;
    static const fault rolled = {LOOP("set %a, %one\n", "1"), 128, TK_KF_IN_FLIGHT, AFTER + 3};
    assert_found(&rolled);
    assert_clean_body(LOOP("set %a, %one\n", "0"), 128);
}

static void test_refusals(void **unused) {
    (void)unused;
    static const char *const bodies[][2] = {
        {"wgmma.a_f16.b_bf16 %d, %da, %da [m = 64, n = 8, k = 16]", "do not go together"},
        {"wgmma.a_f16.b_f16 %a, %da, %da [m = 64, n = 32, k = 16]", "elements from d_index"},
        {"wgmma.a_tf32.b_tf32 %a, %da, %da [m = 64, n = 8, k = 8]", "do not add up to"},
        {"wgmma.a_s8.b_s8 %d, %da, %da [m = 64, n = 8, k = 32]", "do not add up to"},
        {"wgmma.a_f16.b_f16 %d, %d, %da [m = 64, n = 8, k = 16]", "expected elements f16"},
        {"wgmma.a_f16.b_f16 %d, %da, %da [m = 64, n = 12, k = 16]", "n is 12"},
        {"wgmma.a_tf32.b_tf32.a_mn %d, %da, %da [m = 64, n = 8, k = 8]", "MN-major"},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char body[2048];
        tk_kernel *kernel;
        snprintf(body, sizeof body, "%s%s", OPERANDS, bodies[i][0]);
        char *text = around(body, 128);
        assert_int_not_equal(tk_kernel_parse(text, "test.tk", &kernel), TK_OK);
        if (!strstr(tk_error_message(), bodies[i][1]))
            fail_msg("%s: %s", bodies[i][0], tk_error_message());
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),         cmocka_unit_test(test_ways),
        cmocka_unit_test(test_every_width),   cmocka_unit_test(test_faults),
        cmocka_unit_test(test_correct_twins), cmocka_unit_test(test_rolled_loop),
        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
