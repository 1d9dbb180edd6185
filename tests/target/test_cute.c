#define _GNU_SOURCE
/* The CuTe target: golden text, refusals, the object and cubin readers on bytes that lie, and,
 * where NVIDIA's package is installed (TIKI_CUTE_PYTHON, set by `make test-cute`), the real
 * compiler. test_cute_worker.c has the processes that it runs in. */
#include "support/kernel_files.h"

#include "target/artifact.h"
#include "target/cubin.h"
#include "target/cute/cute.h"
#include "target/cute/object.h"
#include "tiki/emulator.h"
#include "tiki/library.h"
#include "tiki/passes.h"

#define VIEWS "tests/target/cute/views.tk"
#define ASYNC "tests/target/cute/async.tk"
#define MATRIX "tests/target/cute/matrix.tk"
#define CUTS "tests/target/cute/cuts.tk"
#define TURN "tests/target/cute/turn.tk"
#define WGMMA "tests/target/cute/wgmma.tk"
#define CLUSTER "tests/target/cute/cluster.tk"
#define REST "tests/target/cute/rest.tk"

/* ---- text ---- */

static void assert_golden(const char *kernel_file, const char *golden_file) {
    tk_kernel *kernel = parse_file(kernel_file);
    tk_artifact *artifact;
    char *golden = read_text_file(golden_file);
    assert_ok(tk_kernel_build_cute(kernel, NULL, &artifact));
    assert_string_equal(tk_artifact_text(artifact), golden);
    assert_null(tk_artifact_binary(artifact, NULL));
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
    free(golden);
}

/* `tiki kernel build FILE --target cute --emit mlir -o GOLDEN` writes them anew. */
static void test_golden(void **state) {
    (void)state;
    assert_golden(kernel_files[0], "tests/target/text/vector_add.mlir");
    assert_golden(kernel_files[1], "tests/target/text/row_sum.mlir");
    assert_golden(kernel_files[2], "tests/target/text/flow.mlir");
    assert_golden(kernel_files[3], "tests/target/text/ops.mlir");
    assert_golden(VIEWS, "tests/target/text/views.mlir");
    assert_golden(ASYNC, "tests/target/text/async.mlir");
    assert_golden(MATRIX, "tests/target/text/matrix.mlir");
    assert_golden(CUTS, "tests/target/text/cuts.mlir");
    assert_golden(TURN, "tests/target/text/turn.mlir");
    assert_golden(WGMMA, "tests/target/text/wgmma.mlir");
    assert_golden(CLUSTER, "tests/target/text/cluster.mlir");
}

static void test_lines(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_artifact *artifact;
    tk_build how = {.lines = true};
    assert_ok(tk_kernel_build_cute(kernel, &how, &artifact));
    assert_non_null(
        strstr(tk_artifact_text(artifact), "loc(\"examples/kernels/vector_add.tk\":16:1)"));
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
}

static void test_refusals(void **state) {
    (void)state;
    char *text = around("%w = exp f32(1) : f32", 32);
    tk_kernel *kernel = parse_text(text);
    tk_artifact *artifact;
    tk_build how = {.arch = "sm_70"};
    assert_int_equal(tk_kernel_build_cute(kernel, &how, &artifact), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "sm_70"));
    assert_int_equal(tk_kernel_build_cute(kernel, NULL, &artifact), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "test.tk:5: CuTe has no form of exp"));
    tk_kernel_release(kernel);
    free(text);
    assert_int_equal(tk_kernel_build_cute(NULL, NULL, &artifact), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_cute_version(NULL, 0), TK_INVALID_ARGUMENT);
}

/* How many operations have which form. An operation that is not counted here has no row. */
static void test_forms(void **state) {
    (void)state;
    int counts[TK_CUTE_CLASSES] = {0};
    for (int code = 0; code < TK_KOP_COUNT; code++) counts[tk_cute_class_of((tk_kopcode)code)]++;
    print_message("of %d operations: %d by the cute dialect, %d by other dialects, %d as PTX, "
                  "%d refused\n",
                  TK_KOP_COUNT, counts[TK_CUTE_LAYOUT], counts[TK_CUTE_MLIR], counts[TK_CUTE_PTX],
                  counts[TK_CUTE_NONE]);
    assert_int_equal(counts[TK_CUTE_LAYOUT], 13);
    assert_int_equal(counts[TK_CUTE_NONE], 8 + 4); /* exp and its like; work of groups */
    assert_int_equal(tk_cute_class_of(TK_KOP_tanh_approx), TK_CUTE_PTX);
    assert_int_equal(tk_cute_class_of(TK_KOP_exp), TK_CUTE_NONE);
}

/* ---- bytes that lie ---- */

static void put16(unsigned char *at, unsigned value) {
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
}
static void put32(unsigned char *at, uint32_t value) {
    put16(at, value & 0xffff);
    put16(at + 2, value >> 16);
}
static void put64(unsigned char *at, uint64_t value) {
    put32(at, (uint32_t)value);
    put32(at + 4, (uint32_t)(value >> 32));
}

enum { CUBIN = 128, PAYLOAD = 88, FAT = 16 + PAYLOAD + CUBIN };

static void make_cubin(unsigned char *at) {
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33};
    memset(at, 0, CUBIN);
    memcpy(at, magic, sizeof magic);
    put16(at + 18, 190);
    put32(at + 48, 90);
}

static void make_fat(unsigned char *at) {
    memset(at, 0, FAT);
    put32(at, 0xba55ed50);
    put16(at + 4, 1);
    put16(at + 6, 16);
    put64(at + 8, PAYLOAD + CUBIN);
    put16(at + 16, 2);
    put16(at + 18, 0x101);
    put32(at + 20, PAYLOAD);
    put64(at + 24, CUBIN);
    make_cubin(at + 16 + PAYLOAD);
}

static tk_status find(const unsigned char *data, size_t bytes) {
    const unsigned char *at = NULL;
    size_t length = 0;
    tk_status status = tk_cute_object_find(data, bytes, &at, &length);
    if (status == TK_OK) {
        assert_true(at >= data && at + length <= data + bytes);
        assert_int_equal(length, CUBIN);
    }
    return status;
}

static void test_object(void **state) {
    (void)state;
    unsigned char fat[FAT];
    make_fat(fat);
    assert_ok(find(fat, sizeof fat));
    assert_ok(find(fat + 16 + PAYLOAD, CUBIN));
    assert_int_equal(find(fat, 10), TK_FORMAT_ERROR);
    assert_int_equal(find(fat, sizeof fat - 1), TK_FORMAT_ERROR);
    assert_int_equal(find((const unsigned char *)"what is this", 12), TK_UNSUPPORTED);
    put32(fat + 32, 17); /* compressed to 17 bytes */
    assert_int_equal(find(fat, sizeof fat), TK_UNSUPPORTED);
    make_fat(fat);
    put32(fat + 20, 4000000000u); /* the payload far away */
    assert_int_equal(find(fat, sizeof fat), TK_FORMAT_ERROR);
    make_fat(fat);
    put64(fat + 24, UINT64_MAX); /* and without an end */
    assert_int_equal(find(fat, sizeof fat), TK_FORMAT_ERROR);
    make_fat(fat);
    put16(fat + 16, 1); /* an entry of PTX, and no other */
    assert_int_equal(find(fat, sizeof fat), TK_UNSUPPORTED);
    make_fat(fat);
    fat[16 + PAYLOAD] = 0; /* no ELF inside */
    assert_int_equal(find(fat, sizeof fat), TK_UNSUPPORTED);
}

/* A cubin of ptxas passes for its own kernel and architecture only. */
static void test_cubin(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file(kernel_files[0]), *other = parse_file(kernel_files[1]);
    tk_artifact *artifact = NULL;
    tk_build how = {.emit = TK_EMIT_BINARY};
    size_t bytes;
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    if (status == TK_UNSUPPORTED) {
        print_message("skipped: %s\n", tk_error_message());
        tk_kernel_release(kernel);
        tk_kernel_release(other);
        skip();
    }
    assert_ok(status);
    const unsigned char *binary = tk_artifact_binary(artifact, &bytes);
    assert_ok(tk_cubin_check(binary, bytes, kernel, "sm_90a"));
    assert_int_equal(tk_cubin_check(binary, bytes, kernel, "sm_80"), TK_INTERNAL);
    assert_int_equal(tk_cubin_check(binary, bytes, other, "sm_90a"), TK_NOT_FOUND);
    assert_int_equal(tk_cubin_check(binary, 63, kernel, "sm_90a"), TK_FORMAT_ERROR);
    for (size_t cut = 64; cut < bytes / 2; cut += 61)
        assert_true(tk_cubin_check(binary, cut, kernel, "sm_90a") != TK_OK);
    char *text = read_text_file(kernel_files[0]), *wide = strstr(text, "%n: i32)");
    wide[5] = '1', wide[6] = '6';
    tk_kernel *narrow = NULL;
    if (tk_kernel_parse(text, "narrow", &narrow) == TK_OK) {
        assert_int_equal(tk_cubin_check(binary, bytes, narrow, "sm_90a"), TK_INTERNAL);
        assert_non_null(strstr(tk_error_message(), "parameter n"));
    }
    free(text);
    tk_kernel_release(narrow);
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
    tk_kernel_release(other);
}

/* ---- the real compiler ---- */

static void assert_compiles(const char *file, const char *arch) {
    tk_kernel *kernel = parse_file(file);
    tk_artifact *artifact = NULL;
    tk_build how = {.arch = arch, .emit = TK_EMIT_BINARY, .stages = true, .lines = true};
    size_t bytes;
    assert_ok(tk_kernel_build_cute(kernel, &how, &artifact));
    assert_non_null(tk_artifact_binary(artifact, &bytes));
    assert_ok(tk_cubin_check(tk_artifact_binary(artifact, NULL), bytes, kernel, arch));
    assert_non_null(strstr(tk_artifact_stage(artifact, TK_STAGE_PTX), ".visible .entry"));
    assert_non_null(strstr(tk_artifact_stage(artifact, TK_STAGE_LOWERED), "kernels_binary"));
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
}

static void test_compiler(void **state) {
    (void)state;
    char version[64];
    const char *python = getenv("TIKI_CUTE_PYTHON");
    if (!python || tk_cute_version(version, sizeof version) != TK_OK) {
        print_message("skipped: no nvidia-cutlass-dsl; `make test-cute` installs it\n");
        skip();
    }
    print_message("nvidia-cutlass-dsl %s\n", version);
    for (size_t i = 0; i < KERNEL_FILES; i++) assert_compiles(kernel_files[i], "sm_90a");
    assert_compiles(kernel_files[0], "sm_80");
    assert_compiles(VIEWS, "sm_90a");
    assert_compiles(ASYNC, "sm_90a");
    assert_compiles(MATRIX, "sm_90a");
    assert_compiles(CUTS, "sm_90a");
    assert_compiles(WGMMA, "sm_90a");
    assert_compiles(CLUSTER, "sm_90a");
    assert_compiles(REST, "sm_90a");
}

/* ---- the swizzled transpose ---- */

enum { SIDE = 32 };
static float turned_from[SIDE * SIDE], turned_to[SIDE * SIDE];

/* A kernel in view form, lowered and run in the emulator; the last two arguments are lengths. */
static void emulate_view(const char *file) {
    tk_kernel *view = parse_file(file), *thread;
    tk_emulation *emulation;
    tk_kargument arguments[4] = {{0}, {0}, {.bits = 16}, {.bits = SIDE}};
    tk_kbuffer buffers[4] = {
        {turned_from, sizeof turned_from, 0}, {turned_to, sizeof turned_to, 0}, {0}, {0}};
    tk_kemulate how = {.arguments = arguments, .buffers = buffers};
    how.n_arguments = strcmp(file, TURN) ? 4 : 2;
    for (int i = 0; i < SIDE * SIDE; i++) turned_from[i] = (float)(i + 1);
    assert_ok(tk_kernel_lower(view, TK_KFORM_THREAD, 0, &thread));
    assert_ok(tk_kernel_emulate(thread, &how, &emulation));
    if (tk_emulation_findings(emulation)) {
        char *text;
        assert_ok(tk_emulation_text(emulation, &text));
        fail_msg("%s", text);
    }
    tk_emulation_release(emulation);
    tk_kernel_release(view);
    tk_kernel_release(thread);
}

static void test_views_in_emulator(void **state) {
    (void)state;
    emulate_view(CUTS);
    emulate_view(TURN);
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_true(turned_to[i] == turned_from[i % SIDE * SIDE + i / SIDE]);
}

/* The exchange between lanes, the barrier, and the exclusive or that turns the tile's columns. */
static void assert_turns(const char *ptx) {
    assert_non_null(strstr(ptx, "shfl.sync.bfly.b32"));
    assert_true(strstr(ptx, "bar.sync") || strstr(ptx, "barrier.sync"));
    assert_non_null(strstr(ptx, "xor.b32"));
}

static void test_turn(void **state) {
    (void)state;
    char version[64];
    const char *python = getenv("TIKI_CUTE_PYTHON");
    tk_kernel *view = parse_file(TURN), *thread;
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY, .stages = true};
    assert_ok(tk_kernel_lower(view, TK_KFORM_THREAD, 0, &thread));
    assert_ok(tk_kernel_build_ptx(thread, NULL, &artifact));
    assert_turns(tk_artifact_text(artifact));
    tk_artifact_release(artifact);
    if (python && tk_cute_version(version, sizeof version) == TK_OK) {
        assert_ok(tk_kernel_build_cute(view, &how, &artifact));
        assert_turns(tk_artifact_stage(artifact, TK_STAGE_PTX));
        tk_artifact_release(artifact);
    }
    tk_kernel_release(view);
    tk_kernel_release(thread);
}

/* ---- what the compiler drops or moves ---- */

/* An atomic operation keeps its order, which that of LLVM loses. */
static void test_atomic_order(void **state) {
    (void)state;
    static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel"};
    for (int i = 0; i < 4; i++) {
        char body[200], word[40];
        tk_artifact *artifact;
        snprintf(body, sizeof body, "%%o = atomic.add.%s.gpu %%y, f32(1) : f32\nstore %%y, %%o",
                 orders[i]);
        snprintf(word, sizeof word, "atom.%s.gpu", orders[i]);
        char *text = around(body, 32);
        tk_kernel *kernel = parse_text(text);
        assert_ok(tk_kernel_build_cute(kernel, NULL, &artifact));
        assert_true(!strstr(tk_artifact_text(artifact), word) == (i == 0));
        assert_true(!strstr(tk_artifact_text(artifact), "llvm.atomicrmw") == (i != 0));
        tk_artifact_release(artifact);
        tk_kernel_release(kernel);
        free(text);
    }
}

/* Sums go through product, fence and wait in the same registers. */
static void test_flights(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file(WGMMA);
    tk_artifact *artifact;
    assert_ok(tk_kernel_build_cute(kernel, NULL, &artifact));
    const char *text = tk_artifact_text(artifact);
    assert_non_null(strstr(text, "\"=&f,=&f,=&f,=&f,0,1,2,3,r,r,r,r,l,r,~{memory}\""));
    assert_non_null(
        strstr(text, "\"wgmma.wait_group.sync.aligned 1;\", \"=f,=f,=f,=f,=r,=r,=r,=r,0,"));
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
}

/* The product by mma.sync of the library, with its stages of cp.async. */
static void test_library_product(void **state) {
    (void)state;
    char version[64];
    const char *python = getenv("TIKI_CUTE_PYTHON");
    if (!python || tk_cute_version(version, sizeof version) != TK_OK) skip();
    tk_library_tensor square = {TK_K_F16, 2, {64, 64}, {64, 1}, 16}, tensors[3];
    for (int i = 0; i < 3; i++) tensors[i] = square;
    tk_library_plan *plan;
    tk_library_launch launch;
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY, .stages = true};
    assert_ok(tk_library_plan_create(TK_LIBRARY_GEMM, 3, tensors, 0, NULL, NULL, &plan));
    assert_ok(tk_library_plan_launch(plan, 0, &launch));
    assert_ok(tk_kernel_build_cute(launch.kernel, &how, &artifact));
    assert_non_null(strstr(tk_artifact_stage(artifact, TK_STAGE_PTX), "mma.sync.aligned.m16n8k16"));
    assert_non_null(strstr(tk_artifact_stage(artifact, TK_STAGE_PTX), "cp.async"));
    tk_artifact_release(artifact);
    tk_library_plan_release(plan);
}

/* mul and add stay apart, and exclusive or shows the swizzle. */
static void test_real_text(void **state) {
    (void)state;
    char version[64];
    const char *python = getenv("TIKI_CUTE_PYTHON");
    if (!python || tk_cute_version(version, sizeof version) != TK_OK) skip();
    char *text = around("%a = load %x : f32\n%b = mul %a, %a : f32\n%c = add %b, %a : f32\n"
                        "store %y, %c",
                        32);
    tk_kernel *kernel = parse_text(text), *views = parse_file(VIEWS);
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY, .stages = true};
    assert_ok(tk_kernel_build_cute(kernel, &how, &artifact));
    assert_non_null(strstr(tk_artifact_stage(artifact, TK_STAGE_PTX), "mul.rn.f32"));
    assert_null(strstr(tk_artifact_stage(artifact, TK_STAGE_PTX), "fma"));
    tk_artifact_release(artifact);
    assert_ok(tk_kernel_build_cute(views, &how, &artifact));
    assert_non_null(strstr(tk_artifact_stage(artifact, TK_STAGE_PTX), "xor.b32"));
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
    tk_kernel_release(views);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compiler),
                                       cmocka_unit_test(test_real_text),
                                       cmocka_unit_test(test_library_product),
                                       cmocka_unit_test(test_turn),
                                       cmocka_unit_test(test_views_in_emulator),
                                       cmocka_unit_test(test_atomic_order),
                                       cmocka_unit_test(test_flights),
                                       cmocka_unit_test(test_golden),
                                       cmocka_unit_test(test_lines),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_object),
                                       cmocka_unit_test(test_cubin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
