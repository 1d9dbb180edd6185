/* The reader of PTX: who touches registers of a wgmma that is in flight, in text of any compiler.
 */
#include "support/kernel_files.h"

#include "tiki/target.h"

/* A module of one kernel around a body, which begins in line 10. */
static char *module_of(const char *body) {
    char *text = malloc(strlen(body) + 1024);
    assert_non_null(text);
    sprintf(text,
            ".version 8.3\n.target sm_90a // a comment: { \"\n.address_size 64\n/* another\n } */\n"
            ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n.visible .entry k(.param "
            ".u64 x)\n.maxntid 128, 1, 1\n{ .reg .pred %%p<9>; .reg .b32 %%r<99>; .reg .f32 "
            "%%f<99>; .reg .b64 %%rd<9>; .reg .f32 %%one;\n%s\nret;\n}\n",
            body);
    return text;
}

static tk_status check(const char *body) {
    char *text = module_of(body);
    tk_status status = tk_ptx_check(text, "k.ptx");
    free(text);
    return status;
}

static void assert_accepted(const char *body) {
    if (check(body) != TK_OK) fail_msg("%s\n%s", body, tk_error_message());
}

/* The message begins with the line and has all the words. */
static void assert_refused(const char *body, int line, const char *words) {
    char place[32];
    snprintf(place, sizeof place, "k.ptx:%d: ", line);
    tk_status status = check(body);
    const char *message = tk_error_message();
    if (status != TK_INVALID_ARGUMENT || strncmp(message, place, strlen(place)) ||
        !strstr(message, words))
        fail_msg("%s\nexpected %s%s, got %s", body, place, words, message);
}

#define SHAPE "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
#define SS SHAPE "{%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;\n"
#define RS(a) SHAPE "{%f1, %f2, %f3, %f4}, {" a "}, %rd2, %p1, 1, 1, 0;\n"
#define FENCE "wgmma.fence.sync.aligned;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " n ";\n"

static void test_straight(void **state) {
    (void)state;
    assert_accepted(FENCE SS COMMIT WAIT("0") "mov.f32 %f9, %f1;");
    assert_accepted(FENCE SS SS COMMIT SS COMMIT WAIT("0") "st.global.f32 [%rd1], %f4;");
    assert_accepted("add.f32 %f1, %f2, %f3;\n" FENCE SS COMMIT WAIT("0"));
    assert_refused(FENCE SS "mov.f32 %f9, %f1;", 12, "mov.f32 reads register %f1");
    assert_refused(FENCE SS COMMIT "mov.f32 %f4, %f9;", 13,
                   "mov.f32 writes register %f4, which the wgmma in line 11 still writes");
    assert_refused(FENCE SS COMMIT WAIT("1") "@%p1 st.global.f32 [%rd1], %f4;", 14, "%f4");
    assert_refused(FENCE SS WAIT("0") "mov.f32 %f9, %f1;", 13, "%f1");
    assert_refused(FENCE SS COMMIT "@%p2 " WAIT("0") "mov.f32 %f9, %f1;", 14, "%f1");
    assert_refused(FENCE SS COMMIT "call (%f1), f, (%rd1);\n" WAIT("0"), 13, "%f1");
    assert_refused(FENCE SS COMMIT "ld.global.v4.f32 {%f9, %f10, %f3, %f11}, [%rd1];", 13, "%f3");
    assert_refused(FENCE SS COMMIT "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, "
                                   "%f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};",
                   13, "%f1");
}

/* Groups retire in order. */
static void test_groups(void **state) {
    (void)state;
    static const char two[] = FENCE SS COMMIT SHAPE
        "{%f11, %f12, %f13, %f14}, %rd1, %rd2, %p1, 1, 1, 0, 0;\n" COMMIT WAIT("1");
    char body[1024];
    snprintf(body, sizeof body, "%smov.f32 %%f9, %%f1;", two);
    assert_accepted(body);
    snprintf(body, sizeof body, "%smov.f32 %%f9, %%f11;", two);
    assert_refused(body, 16, "which the wgmma in line 13");
}

/* Fragments may be read, by others too, and not written; other shapes do not go on. */
static void test_fragments(void **state) {
    (void)state;
    assert_accepted(FENCE RS("%r1, %r2, %r3, %r4") "add.s32 %r9, %r1, %r2;\n" RS(
        "%r1, %r2, %r3, %r4") COMMIT WAIT("0") "mov.b32 %r1, %r9;");
    assert_refused(FENCE RS("%r1, %r2, %r3, %r4") COMMIT "mov.b32 {%r3, %r4}, %rd3;\n", 13,
                   "writes register %r3, which the wgmma in line 11 still reads");
    assert_refused(FENCE RS("%r1, %r2, %r3, %r4") COMMIT
                   "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r1, %r6, %r7}, [%r1];",
                   13, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 writes register %r1");
    assert_refused(FENCE SS "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1, %f2, %f3, "
                            "%f4}, %rd1, %rd2, %p1, 1, 1;\n",
                   12, "accumulates in register %f1");
    assert_refused(FENCE SS SHAPE "{%f2, %f1, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;\n", 12,
                   "%f2");
    assert_refused(FENCE SS SHAPE
                   "{%f11, %f12, %f13, %f14}, {%f1, %r2, %r3, %r4}, %rd2, %p1, 1, 1, 0;\n",
                   12, "multiplies register %f1");
}

/* The loop that gives wrong numbers in silence: one group stays in flight while the next iteration
 * fills the same fragment. Right: wait for all, or two fragments in turn. */
#define LOOP(body)                                                                                 \
    "mov.b32 %r20, 0;\n$top:\n.pragma \"nounroll\";\n" body                                        \
    "add.s32 %r20, %r20, 1;\nsetp.lt.s32 %p2, %r20, 8;\n@%p2 bra $top;\n" WAIT("0")
#define FILL(a) "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {" a "}, [%r30];\n"
#define FIRST "%r1, %r2, %r3, %r4"
#define SECOND "%r5, %r6, %r7, %r8"

static void test_rolled_loop(void **state) {
    (void)state;
    assert_refused(LOOP(FILL(FIRST) FENCE RS(FIRST) COMMIT WAIT("1")), 13,
                   "writes register %r1, which the wgmma in line 15 still reads");
    assert_accepted(LOOP(FILL(FIRST) FENCE RS(FIRST) COMMIT WAIT("0")));
    assert_accepted(LOOP(FILL(FIRST) FENCE RS(FIRST) COMMIT WAIT("1") FILL(SECOND) FENCE RS(SECOND)
                             COMMIT WAIT("1")));
    assert_refused(
        LOOP(FILL(FIRST) FENCE RS(FIRST) COMMIT FILL(SECOND) FENCE RS(SECOND) COMMIT WAIT("2")), 13,
        "%r1");
}

static void test_paths(void **state) {
    (void)state;
    assert_refused(FENCE SS COMMIT "@%p2 bra skip;\n" WAIT("0") "skip:\nmov.f32 %f9, %f1;", 16,
                   "%f1");
    assert_accepted(FENCE SS COMMIT "@%p2 bra $a;\n" WAIT("0") "bra.uni $b;\n$a: " WAIT(
        "0") "$b:\nmov.f32 %f9, %f1;");
    assert_accepted(FENCE SS COMMIT "@%p2 bra skip;\nmov.f32 %f9, %one;\nret;\nskip:\n" WAIT(
        "0") "mov.f32 %f9, %f1;");
    assert_refused(FENCE SS COMMIT "brx.idx %r1, list;\nlist: .branchtargets a, b;\na:\n" WAIT(
                       "0") "b:\nmov.f32 %f9, %f1;",
                   18, "%f1");
    assert_accepted("bra over;\n" FENCE SS "over:\nmov.f32 %f9, %f1;");
}

/* Braces open scopes; lines of other directives end where they end. */
static void test_text(void **state) {
    (void)state;
    assert_accepted(FENCE SS COMMIT "{ .reg .f32 %f1, %f2; .reg .pred p;\nsetp.eq.f32 p, %f1, "
                                    "%f2;\n@p bra in;\nin:\n}\n" WAIT("0"));
    assert_refused(FENCE SS COMMIT "{\n.reg .f32 %f2;\nmov.f32 %f2, %f1;\n}\n" WAIT("0"), 15,
                   "%f1");
    assert_refused(FENCE SS COMMIT
                   ".loc 1 5 0, function_name $L, inlined_at 1 2 3 // here\nmov.f32 "
                   "%f9, %f1;\n" WAIT("0"),
                   14, "%f1");
    assert_accepted(FENCE ".reg .v4 .f32 %v;\n" SS "mov.f32 %f9, %v.x;\n" COMMIT WAIT("0"));
    assert_accepted("mov.u32 %r1, %ctaid.x;\nmov.f32 %f1, 0f3F800000;\nld.shared::cta.b32 %r1, "
                    "[%r1+-4];\nsetp.lt.and.s32 %p1|%p2, %r1, 0x10, !%p3;\n");
    assert_ok(tk_ptx_check("", "empty"));
    assert_ok(tk_ptx_check(".version 8.3\n.func (.reg .b32 %o) f(.reg .b32 %i);\n.func (.reg .b32 "
                           "%o) f(.reg .b32 %i)\n{ mov.b32 %o, %i; ret; }\n.section .debug { .b8 1 "
                           "}\n",
                           "functions"));
}

static void test_errors(void **state) {
    (void)state;
    static const char *const bodies[][2] = {
        {"bra nowhere;", "k.ptx:10: there is no such label, found \"nowhere\""},
        {"mov.b32 %r1, %r2\n}", "k.ptx:10: expected a semicolon behind the instruction"},
        {".reg .b32 %q<0>;", "k.ptx:10: expected how many registers"},
        {".reg .b32 %q<99999999>;", "k.ptx:10: more than 1048576 registers"},
        {".reg .b32 ;", "k.ptx:10: expected the name of a register"},
        {"{ mov.b32 %r1, %r2;", "k.ptx:9: a function that nothing closes"},
        {"wgmma.wait_group.sync.aligned %r1;", "k.ptx:10: expected how many groups"},
        {"bra;", "k.ptx:10: a branch without a label"},
        {"brx.idx %r1, a;\na:", "k.ptx:10: no .branchtargets at the label"},
        {"\n@ ;", "k.ptx:11: expected a predicate"},
        {"= 3;", "k.ptx:10: expected an instruction"},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        assert_int_equal(check(bodies[i][0]), TK_FORMAT_ERROR);
        if (!strstr(tk_error_message(), bodies[i][1]))
            fail_msg("%s: %s", bodies[i][0], tk_error_message());
    }
}

/* What the library generates from a kernel with the fault is refused before ptxas sees it. */
static void test_generated(void **state) {
    (void)state;
    static const char body[] =
        "%%s = shared [align = 1024] : shared<f16, \"4096:1\">\n%%p = address %%s : ptr<f16, "
        "shared>\n%%b = matrix_descriptor.swizzle_32 %%p [stride = 256] : i64\n%%d = registers : "
        "regs<f32, \"4:1\">\n%%a = registers : regs<f16, \"8:1\">\n%%one = splat f16(1) : f16x8\n"
        "for %%j = i32(0) to %%n step i32(1) {\nset %%a, %%one\nwgmma_fence\nwgmma.a_f16.b_f16 "
        "%%d, %%a, %%b, accumulate=i1(true) [m = 64, n = 8, k = 16]\nwgmma_commit\nwgmma_wait "
        "[groups = %d]\n}\nwgmma_wait";
    for (int left = 0; left < 2; left++) {
        char filled[2048];
        tk_artifact *artifact = NULL;
        snprintf(filled, sizeof filled, body, left);
        char *text = around(filled, 128);
        tk_kernel *kernel = parse_text(text);
        assert_int_equal(tk_kernel_build_ptx(kernel, NULL, &artifact),
                         left ? TK_INVALID_ARGUMENT : TK_OK);
        if (left) assert_non_null(strstr(tk_error_message(), "mov.b32 writes register %r"));
        tk_artifact_release(artifact);
        tk_kernel_release(kernel);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_straight),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_fragments), cmocka_unit_test(test_rolled_loop),
        cmocka_unit_test(test_paths),     cmocka_unit_test(test_text),
        cmocka_unit_test(test_errors),    cmocka_unit_test(test_generated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
