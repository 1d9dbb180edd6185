#define _GNU_SOURCE
/* PTX: golden text, and that an assembler takes it for every architecture. */
#include "support/kernel_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tiki/target.h"

static void assert_golden(const char *kernel_file, const char *golden_file, const char *arch) {
    tk_kernel *kernel = parse_file(kernel_file);
    tk_artifact *artifact;
    tk_build how = {.arch = arch};
    char *golden = read_text_file(golden_file);
    assert_ok(tk_kernel_build_ptx(kernel, &how, &artifact));
    assert_string_equal(tk_artifact_text(artifact), golden);
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
    free(golden);
}

/* `tiki kernel build FILE --emit ptx --arch ARCH -o GOLDEN` writes them anew. */
static void test_golden(void **state) {
    (void)state;
    assert_golden(kernel_files[0], "tests/target/text/vector_add.ptx", "sm_90a");
    assert_golden(kernel_files[1], "tests/target/text/row_sum.ptx", "sm_90a");
    assert_golden(kernel_files[2], "tests/target/text/flow.ptx", "sm_90");
    assert_golden(kernel_files[3], "tests/target/text/ops.ptx", "sm_90");
}

static void assert_assembles(const char *file, const char *arch) {
    tk_kernel *kernel = parse_file(file);
    tk_artifact *artifact = NULL;
    tk_build how = {.arch = arch, .emit = TK_EMIT_BINARY, .lines = true};
    tk_report report;
    size_t bytes;
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    if (status == TK_UNSUPPORTED && strstr(tk_error_message(), "no ptxas")) {
        tk_kernel_release(kernel);
        print_message("skipped: %s\n", tk_error_message());
        skip();
    }
    assert_ok(status);
    assert_non_null(tk_artifact_binary(artifact, &bytes));
    assert_true(bytes > 500 && !memcmp(tk_artifact_binary(artifact, NULL), "\177ELF", 4));
    assert_ok(tk_artifact_report(artifact, &report));
    assert_true(report.registers > 0 && report.spill_stores == 0 && report.blocks_of_an_sm > 0);
    assert_string_equal(tk_artifact_arch(artifact), arch);
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
}

static void test_assembles(void **state) {
    (void)state;
    static const char *const architectures[] = {"sm_80", "sm_90", "sm_90a"};
    for (size_t i = 0; i < KERNEL_FILES; i++)
        for (int a = 0; a < 3; a++) assert_assembles(kernel_files[i], architectures[a]);
}

static void test_refusals(void **state) {
    (void)state;
    char *text = around("%w = exp f32(1) : f32", 32);
    tk_kernel *kernel = parse_text(text);
    tk_artifact *artifact;
    tk_build how = {.arch = "sm_70"};
    assert_int_equal(tk_kernel_build_ptx(kernel, &how, &artifact), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "sm_70"));
    assert_int_equal(tk_kernel_build_ptx(kernel, NULL, &artifact), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "test.tk:5: PTX has no form of exp"));
    tk_kernel_release(kernel);
    free(text);
}

/* Lines of several files, whose names are kept as far as PTX can say them. */
static void test_lines(void **state) {
    (void)state;
    char *text = around("%a = add %n, i32(1) : i32 @\"model.py\":12\n%b = add %a, i32(1) : i32 "
                        "@\"a\\\"b.py\":7\nstore %y, f32(0) @9",
                        32);
    tk_kernel *kernel = parse_text(text);
    tk_artifact *artifact;
    tk_build how = {.lines = true};
    assert_ok(tk_kernel_build_ptx(kernel, &how, &artifact));
    const char *ptx = tk_artifact_text(artifact),
               *words[] = {"\"test.tk\"", "\"model.py\"", "\"a_b.py\"",
                           " 12 0",       " 7 0",         ".loc 1 9 0"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(ptx, words[i])) fail_msg("no %s in %s", words[i], ptx);
    tk_artifact_release(artifact);
    how.emit = TK_EMIT_BINARY;
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    assert_true(status == TK_OK || strstr(tk_error_message(), "no ptxas"));
    if (status == TK_OK) tk_artifact_release(artifact);
    tk_kernel_release(kernel);
    free(text);
}

static void identify(const char *text, const tk_build *how, char out[65]) {
    tk_kernel *kernel = parse_text(text);
    tk_artifact *artifact;
    assert_ok(tk_kernel_build_ptx(kernel, how, &artifact));
    assert_int_equal(strlen(tk_artifact_identity(artifact)), 64);
    strcpy(out, tk_artifact_identity(artifact));
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
}

/* Names of values and lines do not count, unless lines are asked for; the rest does. */
static void test_identity(void **state) {
    (void)state;
    char *plain = around("%w = add %n, i32(1) : i32", 32),
         *renamed = around("\n\n%other = add %n, i32(1) : i32", 32),
         *changed = around("%w = add %n, i32(2) : i32", 32);
    char first[65], second[65];
    tk_build older = {.arch = "sm_90"}, lines = {.lines = true};
    identify(plain, NULL, first);
    identify(renamed, NULL, second), assert_string_equal(first, second);
    identify(changed, NULL, second), assert_string_not_equal(first, second);
    identify(plain, &older, second), assert_string_not_equal(first, second);
    identify(plain, &lines, first), assert_string_not_equal(first, second);
    identify(renamed, &lines, second), assert_string_not_equal(first, second);
    free(plain), free(renamed), free(changed);
}

/* A program that is no assembler, and one that is not there. */
static void test_assemblers(void **state) {
    (void)state;
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_artifact *artifact;
    tk_build how = {.emit = TK_EMIT_BINARY};
    setenv("TIKI_PTXAS", "/bin/false", 1);
    assert_int_equal(tk_kernel_build_ptx(kernel, &how, &artifact), TK_INTERNAL);
    assert_non_null(strstr(tk_error_message(), "ptxas refuses kernel vector_add (exit code 1)"));
    setenv("TIKI_PTXAS", "/nowhere/ptxas", 1);
    assert_int_equal(tk_kernel_build_ptx(kernel, &how, &artifact), TK_UNSUPPORTED);
    unsetenv("TIKI_PTXAS");
    tk_kernel_release(kernel);
}

static void write_script(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

/* Where the interpreter itself lies, or the test is skipped. */
static void find_python(char *out, size_t bytes) {
    FILE *pipe = popen("python3 -c 'import sys; print(sys.executable)' 2>/dev/null", "r");
    char *line = pipe ? fgets(out, (int)bytes, pipe) : NULL;
    if (pipe) pclose(pipe);
    if (!line || out[0] != '/') skip();
    out[strcspn(out, "\n")] = 0;
}

/* A package nvidia of cu13 with a program ptxas in it, and nothing else in PATH than python3: the
 * program is found and its output is the binary. */
static void test_python_package(void **state) {
    (void)state;
    char folder[] = "/tmp/tiki-test-XXXXXX", path[256], python[200], *old = strdup(getenv("PATH"));
    find_python(python, sizeof python);
    assert_non_null(mkdtemp(folder));
    static const char *const folders[] = {"", "/bin", "/nvidia", "/nvidia/cu13",
                                          "/nvidia/cu13/bin"};
    for (int i = 1; i < 5; i++) {
        snprintf(path, sizeof path, "%s%s", folder, folders[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    snprintf(path, sizeof path, "%s/nvidia/cu13/bin/ptxas", folder);
    write_script(path, "#!/bin/sh\necho 'ptxas info : Used 9 registers'\necho made > \"$4\"\n");
    snprintf(path, sizeof path, "%s/bin/python3", folder);
    assert_int_equal(symlink(python, path), 0);
    setenv("PYTHONPATH", folder, 1);
    snprintf(path, sizeof path, "%s/bin", folder);
    setenv("PATH", path, 1);
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_artifact *artifact = NULL;
    tk_build how = {.emit = TK_EMIT_BINARY};
    tk_report report;
    size_t bytes;
    assert_ok(tk_kernel_build_ptx(kernel, &how, &artifact));
    assert_memory_equal(tk_artifact_binary(artifact, &bytes), "made\n", 5);
    assert_int_equal(bytes, 5);
    assert_ok(tk_artifact_report(artifact, &report));
    assert_int_equal(report.registers, 9);
    setenv("PATH", old, 1);
    unsetenv("PYTHONPATH");
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
    free(old);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_assembles),
        cmocka_unit_test(test_lines),         cmocka_unit_test(test_identity),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_assemblers),
        cmocka_unit_test(test_python_package)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
