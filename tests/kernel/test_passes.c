/* What each pass makes of small programs: golden text, and that a lowered kernel computes what its
 * form means. `--write` writes the golden texts anew. */
#include "support/lowered.h"
#include "support/says.h"

#include "tiki/target.h"

static bool writing;

static const char *const programs[] = {"fold",      "cse",          "dead",        "hoist",
                                       "unroll",    "predicate",    "fuse",        "expand",
                                       "vectorise", "tensor_copy",  "view_tile",   "gemm",
                                       "fragment",  "async_copy",   "shared_gemm", "tma_copy",
                                       "combine",   "carried_view", "group_gemm",  "pipeline"};
#define PROGRAMS (sizeof programs / sizeof *programs)

static tk_kernel *run_pass(tk_kernel *kernel, const char *name, size_t length) {
    char word[32] = {0};
    tk_kpass pass;
    tk_kernel *next = NULL;
    assert_true(length < sizeof word);
    memcpy(word, name, length);
    assert_ok(tk_kpass_find(word, &pass));
    assert_ok(tk_kernel_pass(kernel, pass, &next));
    tk_kernel_release(kernel);
    return next;
}

/* The program after the passes that its first line names. */
static tk_kernel *after_passes(const char *path) {
    char *text = read_text_file(path);
    tk_kernel *kernel = NULL;
    assert_ok(tk_kernel_parse(text, path, &kernel));
    const char *word = text + strlen("# passes: ");
    assert_memory_equal(text, "# passes: ", strlen("# passes: "));
    while (*word != '\n') {
        size_t length = strcspn(word, " \n");
        kernel = run_pass(kernel, word, length);
        word += length + (word[length] == ' ');
    }
    free(text);
    return kernel;
}

static void assert_reads_back(const tk_kernel *kernel) {
    char *text;
    tk_kernel *again = NULL;
    assert_ok(tk_kernel_print(kernel, 0, &text));
    assert_ok(tk_kernel_parse(text, NULL, &again));
    assert_true(tk_kernel_equal(kernel, again));
    tk_kernel_release(again);
    tk_kernel_text_free(text);
}

static void test_golden(void **state) {
    (void)state;
    for (size_t i = 0; i < PROGRAMS; i++) {
        char path[100], golden_path[100], *text;
        snprintf(path, sizeof path, "tests/kernel/passes/%s.tk", programs[i]);
        snprintf(golden_path, sizeof golden_path, "tests/kernel/passes/%s.out.tk", programs[i]);
        tk_kernel *kernel = after_passes(path);
        assert_reads_back(kernel);
        assert_ok(tk_kernel_print(kernel, 0, &text));
        if (writing) {
            FILE *file = fopen(golden_path, "wb");
            assert_non_null(file);
            fputs(text, file);
            fclose(file);
        } else {
            char *golden = read_text_file(golden_path);
            assert_string_equal(text, golden);
            free(golden);
        }
        tk_kernel_text_free(text);
        tk_kernel_release(kernel);
    }
}

/* ---- what lowered kernels compute ---- */

static tk_kernel *lowered_and_read(const char *name, int flags) {
    tk_kernel *out = lowered(name, flags);
    assert_reads_back(out);
    return out;
}

static void emulate(const tk_kernel *kernel, size_t count, const tk_kbuffer *buffers,
                    const tk_kargument *arguments) {
    for (uint64_t seed = 0; seed < 5; seed++)
        emulate_clean(kernel, seed, count, buffers, arguments);
}

/* y is x transposed and widened, through a swizzled tile. */
static void test_tensor_copy(void **state) {
    (void)state;
    static uint16_t x[64 * 16] __attribute__((aligned(16)));
    static float y[64 * 16];
    for (int i = 0; i < 64 * 16; i++) x[i] = (uint16_t)(0x3c00 + i);
    for (int f = 0; f < 3; f++) {
        tk_kernel *kernel = lowered_and_read("tensor_copy", all_flags[f]);
        tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}};
        tk_kargument arguments[2] = {{0}};
        memset(y, 0, sizeof y);
        emulate(kernel, 2, buffers, arguments);
        for (int r = 0; r < 64; r++)
            for (int c = 0; c < 16; c++) {
                int number = c * 64 + r;
                float expected = 1 + (float)(number & 1023) / 1024;
                assert_true(y[r * 16 + c] == expected);
            }
        tk_kernel_release(kernel);
    }
}

static void test_view_tile(void **state) {
    (void)state;
    enum { ROWS = 21, COLUMNS = 13 };
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)i;
    for (int f = 0; f < 3; f++) {
        tk_kernel *kernel = lowered_and_read("view_tile", all_flags[f]);
        tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}};
        tk_kargument arguments[] = {{0}, {0}, {ROWS}, {COLUMNS}};
        memset(y, 0, sizeof y);
        emulate(kernel, 4, buffers, arguments);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                assert_true(y[c * ROWS + r] == (float)(r * COLUMNS + c));
        tk_kernel_release(kernel);
    }
}

static void test_fragment(void **state) {
    (void)state;
    static float x[128] __attribute__((aligned(16))), y[128];
    for (int i = 0; i < 128; i++) x[i] = (float)i;
    for (int f = 0; f < 3; f++) {
        tk_kernel *kernel = lowered_and_read("fragment", all_flags[f]);
        tk_kbuffer buffers[] = {{x, sizeof x, 0}, {y, sizeof y, 0}};
        tk_kargument arguments[2] = {{0}};
        memset(y, 0, sizeof y);
        emulate(kernel, 2, buffers, arguments);
        assert_memory_equal(x, y, sizeof x);
        tk_kernel_release(kernel);
    }
}

#define HELD "regs<f32, \"(2,2):(1,2)\", \"((4,8),(2,2)):((16,1),(8,64))\">"

/* Each thread of a warp fills what it holds; half of them, those of the first four rows, copy it to
 * what else they hold. */
static void test_own_registers(void **state) {
    (void)state;
    static float y[128];
    tk_kernel *kernel = parse_text("tiki kernel 1\nkernel own(%y: ptr<f32, global> write align 4)\n"
                                   "form tensor grid (1, 1, 1) block (32, 1, 1)\n{\n"
                                   "%a = registers : " HELD "\n%b = registers : " HELD "\n"
                                   "%to = view %y : view<f32, global, \"(8,16):(16,1)\">\n"
                                   "fill.warp %a, f32(3.0)\nfill.warp %b, f32(0.0)\n"
                                   "%t = thread_index.x : i32\n%some = icmp.slt %t, i32(16) : i1\n"
                                   "copy.warp %a, %b, if=%some\ncopy.warp %b, %to\n}\n");
    tk_kernel *lower = NULL;
    assert_ok(tk_kernel_lower(kernel, TK_KFORM_THREAD, 0, &lower));
    tk_kbuffer buffer = {y, sizeof y, 0};
    tk_kargument argument = {0};
    emulate(lower, 1, &buffer, &argument);
    for (int i = 0; i < 128; i++) assert_true(y[i] == (i < 64 ? 3 : 0));
    tk_kernel_release(lower);
    tk_kernel_release(kernel);
}

/* Ones and twos over k = 32: every element is 64. */
static void test_gemm(void **state) {
    (void)state;
    static float y[32];
    tk_kernel *kernel = lowered_and_read("gemm", TK_KLOWER_OPTIMISE);
    tk_kbuffer buffer = {y, sizeof y, 0};
    tk_kargument argument = {0};
    emulate(kernel, 1, &buffer, &argument);
    for (int i = 0; i < 32; i++) assert_true(y[i] == 64);
    tk_kernel_release(kernel);
}

/* ---- refusals ---- */

static void assert_refused_as(tk_status status, const char *form, const char *body,
                              const char *message) {
    char text[1024];
    tk_kernel *out = NULL;
    snprintf(text, sizeof text,
             "tiki kernel 1\nkernel refused(%%x: ptr<f32, global> read_write align 4, %%n: i32)\n"
             "form %s grid (1, 1, 1) block (32, 1, 1)\n{ %%t = thread_index.x : i32\n%s\n}\n",
             form, body);
    tk_kernel *kernel = parse_text(text);
    assert_int_equal(tk_kernel_lower(kernel, TK_KFORM_THREAD, 0, &out), status);
    assert_error_says(message);
    tk_kernel_release(kernel);
}

static void assert_refused(const char *form, const char *body, const char *message) {
    assert_refused_as(TK_UNSUPPORTED, form, body, message);
}

/* A copy of the 128 elements of x to itself, or to a fragment. */
static void test_refused_groups(void **state) {
    (void)state;
    assert_refused_as(TK_INVALID_ARGUMENT, "tensor",
                      "%c = icmp.slt %t, i32(5) : i1\n"
                      "%v = view %x : view<f32, global, \"64:1\">\n"
                      "if %c {\ncopy.warp %v, %v\n}",
                      "copy is aligned over its warp");
    static const struct {
        tk_status status;
        const char *registers, *copy, *message;
    } cases[] = {
        {TK_INVALID_ARGUMENT, HELD, "copy.warpgroup %v, %v", "128 threads in a block of 32"},
        {TK_INVALID_ARGUMENT, HELD, "copy.warps %v, %v [first = 1, count = 1]",
         "32 threads, behind those of other warps, in a block of 32"},
        {TK_SHAPE_ERROR, HELD, "copy.thread %v, %r",
         "32 threads and 4 values, for a group of 1 threads and 4 registers"},
        {TK_SHAPE_ERROR, "regs<f32, \"2:1\", \"(32,2):(1,32)\">", "copy.warp %s, %r",
         "reaches element 63, of a tile of 32"},
        {TK_SHAPE_ERROR, "regs<f32, \"8:1\", \"(32,4):(1,32)\">", "copy.warp %r, %v",
         "4 values, for a group of 32 threads and 8 registers"},
        {TK_UNSUPPORTED, "regs<f32, \"(2,2):(1,2)\", \"(32,4):(1,32)\">", "copy.warp %h, %r",
         "different thread-value layouts"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[512];
        snprintf(body, sizeof body,
                 "%%v = view %%x : view<f32, global, \"(8,16):(16,1)\">\n%%s = view %%x : "
                 "view<f32, global, \"32:1\">\n%%h = registers : " HELD
                 "\n%%r = registers : %s\n%s",
                 cases[i].registers, cases[i].copy);
        assert_refused_as(cases[i].status, "tensor", body, cases[i].message);
    }
}

static void test_refusals(void **state) {
    (void)state;
    assert_refused("tensor",
                   "%v = view %x : view<f32, global, \"64:1\">\n%r = registers : regs<f32, "
                   "\"64:1\">\ncopy.block %v, %r",
                   "test.tk:7: copy: registers without a thread-value layout");
    assert_refused("tensor",
                   "%v = view %x : view<f32, global, \"64:1\">\n%w = view %x : view<f32, global, "
                   "\"64:1\">\ncopy.block.tma %v, %w",
                   "copy: by TMA: it goes between global and shared memory");
    tk_kernel *kernel = parse_file(kernel_files[0]), *out = NULL;
    assert_int_equal(tk_kernel_lower(kernel, TK_KFORM_VIEW, 0, &out), TK_INVALID_ARGUMENT);
    assert_non_null(strstr(tk_error_message(), "is in the thread form already"));
    tk_kernel_release(kernel);
}

int main(int argc, char **argv) {
    writing = argc == 2 && !strcmp(argv[1], "--write");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_tensor_copy),
        cmocka_unit_test(test_view_tile),     cmocka_unit_test(test_fragment),
        cmocka_unit_test(test_gemm),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_own_registers), cmocka_unit_test(test_refused_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
