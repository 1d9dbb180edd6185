/* The CuTe compiler as a library, on a stand-in with the same functions (standin_compiler.c). */
#define _GNU_SOURCE
#include "support/kernel_files.h"

#include <dlfcn.h>
#include <pthread.h>

#include "target/cute/compiler.h"
#include "tiki/cache.h"
#include "tiki/target.h"

static void *standin;

static int live(void) {
    int (*count)(void);
    void *address = dlsym(standin, "cutlass_standin_live");
    assert_non_null(address);
    memcpy(&count, &address, sizeof count);
    return count();
}

static tk_status build(const char *mode, const char *arch, tk_artifact **out) {
    tk_kernel *kernel = parse_file(kernel_files[0]);
    tk_build how = {.emit = TK_EMIT_BINARY, .arch = arch, .stages = !strcmp(mode, "ptx")};
    setenv("TIKI_FAKE_COMPILER", mode, 1);
    tk_status status = tk_kernel_build_cute(kernel, &how, out);
    tk_kernel_release(kernel);
    return status;
}

static void test_builds(void **state) {
    (void)state;
    tk_artifact *artifact;
    size_t bytes;
    char text[600];
    assert_ok(build("", NULL, &artifact));
    assert_true(tk_artifact_binary(artifact, &bytes) && bytes > 1000);
    tk_artifact_release(artifact);
    assert_int_equal(live(), 0);
    assert_int_equal(tk_cute_worker_count(), 0);
    assert_ok(tk_cute_describe(text, sizeof text));
    assert_non_null(strstr(text, "libCutlassCompiler, "));
    assert_non_null(strstr(text, getenv("TIKI_STANDIN_CUTE")));
    assert_ok(tk_cute_version(text, sizeof text));
}

static void assert_fails(const char *mode, const char *arch, tk_status expected,
                         const char *words) {
    tk_artifact *artifact = NULL;
    assert_int_equal(build(mode, arch, &artifact), expected);
    if (!strstr(tk_error_message(), words)) fail_msg("%s: %s", mode, tk_error_message());
    assert_int_equal(live(), 0);
}

static void test_faults(void **state) {
    (void)state;
    assert_fails("parse", NULL, TK_INTERNAL, "the library does not read the text");
    assert_fails("target", NULL, TK_INTERNAL, "or the options: no such target");
    assert_fails("", "sm_80", TK_INTERNAL, "no such target");
    assert_fails("pipeline", NULL, TK_INTERNAL, "does not take the architecture or the options");
    assert_fails("compile", NULL, TK_INTERNAL,
                 "vector_add.tk:14: the CuTe compiler refuses thread_index");
    assert_fails("data", NULL, TK_INTERNAL, "gives no data");
    assert_fails("ptx", NULL, TK_IO_ERROR, "wrote no PTX");
}

/* A library that is named is used or refused. */
static void test_wrong_libraries(void **state) {
    (void)state;
    tk_artifact *artifact;
    char text[600];
    setenv("TIKI_CUTE_LIBRARY", "/nowhere/libCutlassCompiler.so", 1);
    assert_int_equal(build("", NULL, &artifact), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "TIKI_CUTE_LIBRARY cannot be loaded"));
    assert_int_equal(tk_cute_describe(text, sizeof text), TK_UNSUPPORTED);
    setenv("TIKI_CUTE_LIBRARY", getenv("TIKI_STANDIN_CUDA"), 1);
    assert_int_equal(build("", NULL, &artifact), TK_UNSUPPORTED);
    assert_non_null(strstr(tk_error_message(), "has no function cutlass_cute_compiler_create"));
    setenv("TIKI_CUTE_LIBRARY", getenv("TIKI_STANDIN_CUTE"), 1);
}

static void *build_some(void *unused) {
    (void)unused;
    for (int i = 0; i < 8; i++) {
        tk_artifact *artifact;
        tk_kernel *kernel = parse_file(kernel_files[0]);
        tk_build how = {.emit = TK_EMIT_BINARY};
        assert_ok(tk_kernel_build_cute(kernel, &how, &artifact));
        tk_artifact_release(artifact);
        tk_kernel_release(kernel);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[4];
    setenv("TIKI_FAKE_COMPILER", "", 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, build_some, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_int_equal(live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_builds), cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_wrong_libraries),
                                       cmocka_unit_test(test_threads)};
    const char *path = getenv("TIKI_STANDIN_CUTE");
    standin = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!standin) return fprintf(stderr, "no stand-in: %s\n", dlerror()), 1;
    setenv("TIKI_CUTE_LIBRARY", path, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
