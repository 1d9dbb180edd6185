/* `tiki cache` on a folder with entries of this test, and what `tiki info` says of GPUs. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/cli_check.h"
#include "runtime/artifact_cache.h"

static void put(const char *kernel, const char *target) {
    tk_cache_options options = {.folder = in_folder("cache")};
    const tk_key_part parts[] = {{"kernel", kernel, strlen(kernel)},
                                 {"target", target, strlen(target)}};
    tk_cache *cache;
    assert_int_equal(tk_cache_open(&options, &cache), TK_OK);
    assert_true(tk_cache_put(cache, parts, 2, "cubin", 5));
    tk_cache_close(cache);
}

static int prepare(void **state) {
    if (make_folder(state)) return -1;
    put("add_f32", "sm_90a");
    put("add_f32", "sm_90");
    return setenv("TIKI_CACHE", in_folder("cache"), 1);
}

static void test_ls_and_explain(void **state) {
    (void)state;
    outcome result;
    char digest[13];
    RUN(&result, "cache", "ls");
    assert_code(&result, 0);
    assert_says(result.out, "add_f32\n");
    assert_says(result.out, "2 kernels in ");
    assert_null(strstr(result.out, "note"));
    snprintf(digest, sizeof digest, "%.12s", result.out);
    RUN(&result, "cache", "explain", digest);
    assert_code(&result, 0);
    assert_says(result.out, "payload of 5 bytes, with the key\n  kernel: \"add_f32\"\n");
    assert_says(result.out, "differs in\n  target: here \"sm_90");
    RUN(&result, "cache", "explain", "nothing");
    assert_code(&result, 1);
    assert_says(result.err, "0 entries of the cache begin with nothing");
    RUN(&result, "cache", "explain", "examples/kernels/vector_add.tk", "sm_70");
    assert_code(&result, 1);
    assert_says(result.err, "expected sm_80");
    assert_int_equal(setenv("TIKI_PTXAS", "/bin/sh", 1), 0);
    RUN(&result, "cache", "explain", "examples/kernels/vector_add.tk");
    assert_code(&result, 0);
    assert_says(result.out, " is not in the cache\n");
    assert_int_equal(unsetenv("TIKI_PTXAS"), 0);
}

/* Notes are counted, and listed where they are asked for. */
static void test_notes(void **state) {
    (void)state;
    tk_cache_options options = {.folder = in_folder("noted")};
    const tk_key_part kernel = {"kernel", "add_f32", 7}, note = {TK_NOTE_PART, "call: add", 9};
    outcome result;
    tk_cache *cache;
    assert_int_equal(tk_cache_open(&options, &cache), TK_OK);
    assert_true(tk_cache_put(cache, &kernel, 1, "cubin", 5));
    tk_cache_note(cache, &note, 1, "digest", 6);
    tk_cache_close(cache);
    assert_int_equal(setenv("TIKI_CACHE", options.folder, 1), 0);
    RUN(&result, "cache", "ls");
    assert_code(&result, 0);
    assert_says(result.out, "add_f32\n1 kernels in ");
    assert_says(result.out, ", and 1 notes that lead to them (ls --all)\n");
    assert_null(strstr(result.out, "call: add"));
    RUN(&result, "cache", "ls", "--all");
    assert_code(&result, 0);
    assert_says(result.out, "call: add\n");
    assert_says(result.out, ", and 1 notes that lead to them\n");
    assert_int_equal(setenv("TIKI_CACHE", in_folder("cache"), 1), 0);
}

static void test_wrong_uses(void **state) {
    (void)state;
    outcome result;
    RUN(&result, "cache");
    assert_code(&result, 2);
    assert_says(result.err, "usage: tiki cache ls");
    RUN(&result, "cache", "prune", "much");
    assert_code(&result, 2);
    assert_says(result.err, "'much' is no number of MiB");
    RUN(&result, "cache", "--help");
    assert_code(&result, 0);
    assert_says(result.out, "usage: tiki cache ls");
}

static void test_verify_and_prune(void **state) {
    (void)state;
    outcome result;
    RUN(&result, "cache", "verify");
    assert_code(&result, 0);
    assert_says(result.out, "2 entries are sound, 0 were damaged");
    RUN(&result, "cache", "prune", "1");
    assert_says(result.out, "0 entries removed");
    RUN(&result, "cache", "prune");
    assert_says(result.out, "2 entries removed");
    assert_code(&result, 0);
}

static void test_gpus(void **state) {
    (void)state;
    outcome result;
    setenv("TIKI_CUDA_DRIVER", "libno_such_driver.so.1", 1);
    RUN(&result, "info");
    assert_code(&result, 0);
    assert_says(result.out, "gpu        off: no NVIDIA driver: no libno_such_driver.so.1\n");
    assert_says(result.out, in_folder("cache"));
    setenv("TIKI_CUDA_DRIVER", getenv("TIKI_STANDIN_CUDA"), 1);
    RUN(&result, "info");
    assert_code(&result, 0);
    assert_says(result.out, "gpu        cuda:0, Stand-in 0, compute capability 9.0, 4 "
                            "multiprocessors, 1.0 GiB, driver of CUDA 13.0\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ls_and_explain), cmocka_unit_test(test_notes),
        cmocka_unit_test(test_wrong_uses),     cmocka_unit_test(test_verify_and_prune),
        cmocka_unit_test(test_gpus),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
