/* The three assemblers: what is chosen, what each makes of a kernel, what its refusals become, and
 * that artifacts and the cache know which it was. nvPTXCompiler and driver are stand-ins; the real
 * nvPTXCompiler is tried where `make nvptxcompiler` built it. */
#define _GNU_SOURCE
#include "runtime/standin/standin.h"
#include "support/kernel_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "target/ptx/assembler.h"
#include "tiki/target.h"

static tk_kernel *kernel;
static char folder[400], empty[500];

/* Nothing in PATH, nothing named. */
static int nothing(void **state) {
    static const char *const names[] = {"TIKI_ASSEMBLER", "TIKI_PTXAS", "TIKI_NVPTXCOMPILER"};
    (void)state;
    for (int i = 0; i < 3; i++) unsetenv(names[i]);
    return setenv("PATH", empty, 1);
}

static int begin(void **state) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/assemblers-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(empty, sizeof empty, "%s/empty", folder);
    kernel = parse_file("examples/kernels/vector_add.tk");
    if (setenv("TIKI_CUDA_DRIVER", standin_path(), 1)) return -1;
    return mkdir(empty, 0700) || nothing(state);
}

static int end(void **state) {
    char command[600];
    (void)state;
    tk_kernel_release(kernel);
    snprintf(command, sizeof command, "/bin/rm -rf %s", folder);
    return system(command);
}

static tk_artifact *build(const tk_build *how) {
    tk_artifact *artifact = NULL;
    assert_ok(tk_kernel_build_ptx(kernel, how, &artifact));
    return artifact;
}

static void assert_says(const char *words) {
    if (!strstr(tk_error_message(), words))
        fail_msg("'%s' is not in '%s'", words, tk_error_message());
}

static void assert_holds(const tk_artifact *artifact, const char *words) {
    size_t bytes;
    const char *binary = tk_artifact_binary(artifact, &bytes);
    assert_true(bytes > 100 && !memcmp(binary, "\177ELF", 4));
    if (!strstr(binary, words)) fail_msg("'%s' is not in the binary", words);
}

/* ---- nvPTXCompiler ---- */

static void use_library(void) {
    assert_int_equal(setenv("TIKI_NVPTXCOMPILER", getenv("TIKI_STANDIN_NVPTX"), 1), 0);
}

static void test_library(void **state) {
    (void)state;
    use_library();
    tk_build how = {.emit = TK_EMIT_BINARY, .arch = "sm_90"};
    tk_report report;
    tk_artifact *artifact = build(&how);
    assert_holds(artifact, "ELF--gpu-name=sm_90 --verbose .version");
    assert_holds(artifact, tk_artifact_text(artifact));
    assert_ok(tk_artifact_report(artifact, &report));
    assert_int_equal(report.registers, 11);
    assert_int_equal(report.spill_stores, 8);
    assert_int_equal(report.spill_loads, 16);
    assert_non_null(strstr(tk_artifact_assembler(artifact), "nvPTXCompiler of "));
    tk_artifact_release(artifact);
    how.lines = true;
    artifact = build(&how);
    assert_holds(artifact, "--verbose --generate-line-info .version");
    tk_artifact_release(artifact);
}

/* The kernel under another name, which the stand-ins look at. */
static void refuse(const char *name, tk_status expected, const char *words) {
    char *text = read_text_file("examples/kernels/vector_add.tk");
    tk_artifact *none = NULL;
    tk_build how = {.emit = TK_EMIT_BINARY};
    overwrite(text, "vector_add(", name);
    tk_kernel *bad = parse_text(text);
    assert_int_equal(tk_kernel_build_ptx(bad, &how, &none), expected);
    assert_says(words);
    tk_kernel_release(bad);
    free(text);
}

static void test_library_refuses(void **state) {
    (void)state;
    use_library();
    refuse("refuse_add(", TK_INTERNAL,
           "nvPTXCompiler refuses kernel refuse_add (result 3): ptxas application ptx input, line "
           "7; error : no such thing");
    refuse("breaks_add(", TK_INTERNAL, "nvPTXCompiler: compiling gives result 4");
}

static void test_library_that_is_none(void **state) {
    (void)state;
    tk_assembler chosen;
    tk_artifact *none = NULL;
    tk_build how = {.emit = TK_EMIT_BINARY};
    assert_int_equal(setenv("TIKI_NVPTXCOMPILER", "/nowhere/lib.so", 1), 0);
    assert_int_equal(tk_assembler_choose(&chosen), TK_UNSUPPORTED);
    assert_says("no nvPTXCompiler at /nowhere/lib.so");
    assert_int_equal(setenv("TIKI_NVPTXCOMPILER", standin_path(), 1), 0); /* has other functions */
    assert_int_equal(tk_kernel_build_ptx(kernel, &how, &none), TK_UNSUPPORTED);
    assert_says("has no nvPTXCompilerCreate");
    assert_int_equal(setenv("TIKI_NVPTXCOMPILER", "examples/kernels/vector_add.tk", 1), 0);
    assert_int_equal(tk_kernel_build_ptx(kernel, &how, &none), TK_UNSUPPORTED);
    assert_says("nvPTXCompiler: ");
}

/* NVIDIA's own, on a kernel of the examples for every architecture. */
static void test_real_library(void **state) {
    (void)state;
    static const char *const architectures[] = {"sm_80", "sm_90", "sm_90a"};
    char path[600];
    snprintf(path, sizeof path, "%s/lib/libtiki_nvptxcompiler.so", getenv("TIKI_BUILD"));
    if (access(path, R_OK)) skip();
    assert_int_equal(setenv("TIKI_NVPTXCOMPILER", path, 1), 0);
    for (int i = 0; i < 3; i++) {
        tk_build how = {.emit = TK_EMIT_BINARY, .arch = architectures[i]};
        tk_report report;
        tk_artifact *artifact = build(&how);
        assert_ok(tk_artifact_report(artifact, &report));
        assert_true(report.registers > 4 && report.registers < 40);
        assert_int_equal(report.spill_stores, 0);
        tk_artifact_release(artifact);
    }
}

/* ---- the driver ---- */

static void test_driver(void **state) {
    (void)state;
    assert_int_equal(setenv("TIKI_ASSEMBLER", "driver", 1), 0);
    static const char *const archs[][2] = {{"sm_80", "target 50"},
                                           {"sm_90", "target 5a"},
                                           {"sm_90a", "target 1005a, lines"},
                                           {"sm_90a", "target 1005a, lines"}};
    standin fake;
    assert_true(standin_open(&fake));
    for (int i = 0; i < 4; i++) {
        tk_build how = {.emit = TK_EMIT_BINARY, .arch = archs[i][0], .lines = i >= 2};
        tk_report report;
        tk_artifact *artifact = build(&how);
        assert_holds(artifact, tk_artifact_text(artifact));
        assert_non_null(strstr(tk_artifact_log(artifact), archs[i][1]));
        assert_ok(tk_artifact_report(artifact, &report));
        assert_int_equal(report.registers, 12);
        assert_non_null(strstr(tk_artifact_assembler(artifact), "driver of CUDA 13.0"));
        tk_artifact_release(artifact);
    }
    refuse("refuse_add(", TK_INTERNAL,
           "driver refuses kernel refuse_add: ptxas kernel.ptx, line 1");
    assert_int_equal(fake.standin_live(), 0);
}

/* setmaxnreg: what the linker would ignore stays text, which the driver compiles as a whole, and
 * tells of it also when it has compiled the same before. */
static void test_driver_registers(void **state) {
    (void)state;
    char *text = read_text_file("examples/kernels/vector_add.tk");
    char *at = strstr(text, "  %thread = thread_index.x");
    char *more = malloc(strlen(text) + 100);
    assert_true(at && more);
    sprintf(more, "%.*sregisters_grow [registers = 40]\n%s", (int)(at - text), text, at);
    tk_kernel *growing = parse_text(more);
    tk_build how = {.emit = TK_EMIT_BINARY};
    size_t bytes;
    assert_int_equal(setenv("TIKI_ASSEMBLER", "driver", 1), 0);
    for (int turn = 0; turn < 2; turn++) {
        tk_artifact *artifact = NULL;
        tk_report report;
        assert_ok(tk_kernel_build_ptx(growing, &how, &artifact));
        assert_string_equal(tk_artifact_binary(artifact, &bytes), tk_artifact_text(artifact));
        assert_int_equal(bytes, strlen(tk_artifact_text(artifact)));
        assert_ok(tk_artifact_report(artifact, &report));
        assert_int_equal(report.registers, 40);
        tk_artifact_release(artifact);
    }
    tk_kernel_release(growing);
    free(more);
    free(text);
}

/* Whatever the driver fails at is an error with its name, and nothing is left behind. */
static void test_driver_fails(void **state) {
    (void)state;
    static const char *const functions[] = {"cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete",
                                            "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"};
    assert_int_equal(setenv("TIKI_ASSEMBLER", "driver", 1), 0);
    standin fake;
    assert_true(standin_open(&fake));
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        tk_artifact *none = NULL;
        tk_build how = {.emit = TK_EMIT_BINARY};
        fake.standin_fail(functions[i], 1, CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(tk_kernel_build_ptx(kernel, &how, &none), TK_OUT_OF_MEMORY);
        assert_says("CUDA_ERROR_OUT_OF_MEMORY");
        assert_int_equal(fake.standin_live(), 0);
        fake.standin_reset();
        tk_artifact_release(build(&how));
    }
}

/* ---- the choice ---- */

static void assert_chosen(const char *word) {
    tk_assembler chosen;
    char name[1400];
    assert_ok(tk_assembler_choose(&chosen));
    assert_string_equal(chosen.word, word);
    assert_ok(tk_assembler_name(name, sizeof name));
    assert_true(!strncmp(name, word, strlen(word)));
}

/* What `tiki info` shows: version and path. */
static void assert_described(const char *format, const char *path) {
    char text[1400], expected[1400];
    assert_ok(tk_assembler_describe(text, sizeof text));
    snprintf(expected, sizeof expected, format, path);
    assert_string_equal(text, expected);
}

static void write_program(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, 0700) == 0);
}

static void test_description(void **state) {
    (void)state;
    char path[600];
    use_library();
    assert_described("nvPTXCompiler 12.9 of %s", getenv("TIKI_NVPTXCOMPILER"));
    unsetenv("TIKI_NVPTXCOMPILER");
    snprintf(path, sizeof path, "%s/ptxas", folder);
    write_program(path, "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n");
    assert_int_equal(setenv("TIKI_PTXAS", path, 1), 0);
    assert_described("ptxas 13.0.88 of %s", path);
    write_program(path, "#!/bin/sh\nexit 3\n");
    assert_described("ptxas of %s", path);
    (void)remove(path);
}

static void test_choice(void **state) {
    (void)state;
    tk_assembler chosen;
    char path[600];
    assert_int_equal(setenv("TIKI_ASSEMBLER", "nasm", 1), 0);
    assert_int_equal(tk_assembler_choose(&chosen), TK_INVALID_ARGUMENT);
    assert_says("TIKI_ASSEMBLER is \"nasm\", expected ptxas, nvPTXCompiler or driver");
    unsetenv("TIKI_ASSEMBLER");
    use_library();
    assert_chosen("nvPTXCompiler");
    snprintf(path, sizeof path, "%s/ptxas", folder);
    FILE *file = fopen(path, "w");
    assert_true(file && fclose(file) == 0 && chmod(path, 0700) == 0);
    assert_int_equal(setenv("PATH", folder, 1), 0);
    assert_chosen("nvPTXCompiler"); /* named, so ptxas in PATH does not count */
    unsetenv("TIKI_NVPTXCOMPILER");
    assert_chosen("ptxas");
    assert_int_equal(setenv("TIKI_PTXAS", "/nowhere/ptxas", 1), 0);
    assert_int_equal(tk_assembler_choose(&chosen), TK_UNSUPPORTED);
    assert_says("no ptxas at /nowhere/ptxas");
    assert_int_equal(setenv("TIKI_ASSEMBLER", "driver", 1), 0);
    assert_chosen("driver");
}

/* An artifact of one assembler is none of another. */
static void test_cache(void **state) {
    (void)state;
    char path[600], *text;
    tk_cache *cache;
    bool built;
    tk_artifact *first = NULL, *second = NULL, *again = NULL;
    snprintf(path, sizeof path, "%s/cache", folder);
    tk_cache_options options = {.folder = path};
    assert_ok(tk_cache_open(&options, &cache));
    use_library();
    assert_ok(tk_kernel_build_cached(kernel, NULL, cache, &first, &built));
    assert_true(built);
    assert_int_equal(setenv("TIKI_ASSEMBLER", "driver", 1), 0);
    assert_ok(tk_kernel_cache_explain(kernel, NULL, cache, &text));
    assert_non_null(strstr(text, "assembler"));
    tk_cache_text_free(text);
    assert_ok(tk_kernel_build_cached(kernel, NULL, cache, &second, &built));
    assert_true(built);
    assert_string_not_equal(tk_artifact_identity(first), tk_artifact_identity(second));
    unsetenv("TIKI_ASSEMBLER");
    assert_ok(tk_kernel_build_cached(kernel, NULL, cache, &again, &built));
    assert_false(built);
    assert_string_equal(tk_artifact_assembler(again), tk_artifact_assembler(first));
    assert_string_equal(tk_artifact_identity(again), tk_artifact_identity(first));
    tk_artifact_release(first), tk_artifact_release(second), tk_artifact_release(again);
    tk_cache_close(cache);
}

/* ---- where ptxas is ---- */

static void make_program(const char *path, const char *text) {
    char command[4000];
    snprintf(command, sizeof command,
             "/bin/mkdir -p $(/usr/bin/dirname %s) && printf '%%s' '%s' >%s && /bin/chmod +x %s",
             path, text, path, path);
    assert_int_equal(system(command), 0);
}

static void assert_found(const char *path) {
    tk_assembler found;
    assert_ok(tk_assembler_choose(&found));
    assert_string_equal(found.path, path);
    assert_int_equal(unlink(path), 0);
}

/* Packages are found where a python3 has them, without starting it; a script is asked. */
static void test_packages(void **state) {
    static const char *const below[] = {"bin/../lib/python3.12/site-packages",
                                        "home/.local/lib/python3.11/site-packages", "extra"};
    char path[1000], python[500], ran[500];
    (void)state;
    snprintf(python, sizeof python, "%s/bin/python3", folder);
    snprintf(ran, sizeof ran, "%s/ran", folder);
    make_program(python, "no script");
    snprintf(path, sizeof path, "%s/bin", folder);
    assert_int_equal(setenv("PATH", path, 1), 0);
    snprintf(path, sizeof path, "%s/home", folder);
    assert_int_equal(setenv("HOME", path, 1), 0);
    snprintf(path, sizeof path, "%s/none:%s/extra", folder, folder);
    assert_int_equal(setenv("PYTHONPATH", path, 1), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s/nvidia/cu13/bin/ptxas", folder, below[i]);
        make_program(path, "#!/bin/sh\n");
        assert_found(path);
    }
    tk_assembler none;
    assert_int_equal(setenv("TIKI_ASSEMBLER", "ptxas", 1), 0);
    assert_int_equal(tk_assembler_choose(&none), TK_UNSUPPORTED);
    snprintf(path, sizeof path, "#!/bin/sh\necho ran >>%s\n", ran);
    make_program(python, path);
    assert_int_equal(access(ran, F_OK), -1);
    assert_int_equal(tk_assembler_choose(&none), TK_UNSUPPORTED);
    assert_int_equal(access(ran, F_OK), 0);
    unsetenv("PYTHONPATH");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_library, nothing),
        cmocka_unit_test_setup(test_library_refuses, nothing),
        cmocka_unit_test_setup(test_library_that_is_none, nothing),
        cmocka_unit_test_setup(test_real_library, nothing),
        cmocka_unit_test_setup(test_driver, nothing),
        cmocka_unit_test_setup(test_driver_fails, nothing),
        cmocka_unit_test_setup(test_driver_registers, nothing),
        cmocka_unit_test_setup(test_description, nothing),
        cmocka_unit_test_setup(test_choice, nothing),
        cmocka_unit_test_setup(test_cache, nothing),
        cmocka_unit_test_setup(test_packages, nothing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
