/* The bench of kernels on the stand-in driver: that it runs, counts and reports, and gives errors
 * back. What it measures there means nothing. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/standin/standin.h"
#include "support/arrays.h"
#include "support/says.h"
#include "tiki/bench.h"

static standin fake;
static char folder[400], path[500];

static int prepare(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    if (!standin_open(&fake)) return -1;
    snprintf(folder, sizeof folder, "%s/bench-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/ptxas", folder);
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    fputs("#!/bin/sh\nexec cp \"$5\" \"$4\"\n", file);
    fclose(file);
    if (chmod(path, 0700) || setenv("TIKI_PTXAS", path, 1)) return -1;
    snprintf(path, sizeof path, "%s/cache", folder);
    if (setenv("TIKI_CACHE", path, 1)) return -1;
    return setenv("TIKI_CUDA_DRIVER", standin_path(), 1);
}

static int clean(void **state) {
    char command[600];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int begin(void **state) {
    (void)state;
    fake.standin_reset();
    fake.standin_memory((size_t)96 << 20);
    return 0;
}

static int end(void **state) {
    (void)state;
    return fake.standin_live();
}

static tk_bench_spec spec_of(tk_library_id id, int64_t rows, int64_t columns) {
    return (tk_bench_spec){.size = sizeof(tk_bench_spec),
                           .id = id,
                           .element = TK_K_F16,
                           .rank = 2,
                           .shape = {rows, columns},
                           .rounds = 1};
}

static void test_every_kernel(void **state) {
    (void)state;
    for (int i = 0; i < TK_LIBRARY_COUNT; i++) {
        tk_bench_spec spec = spec_of((tk_library_id)i, 512, 1024);
        tk_bench_result result;
        char *line;
        if (i == TK_LIBRARY_GEMM || i == TK_LIBRARY_HOPPER_GEMM) {
            spec.rank = 3;
            spec.shape[2] = 512;
        }
        assert_ok(tk_bench_kernel(&spec, &result));
        assert_true(result.seconds > 0 && result.copy_bandwidth > 0 && result.bytes > 0);
        assert_true(result.sets >= 2);
        assert_ok(tk_bench_print(&spec, &result, &line));
        assert_non_null(strstr(line, tk_library_name((tk_library_id)i)));
        assert_non_null(strstr(line, "\"card\": \"Stand-in 0\"}"));
        tk_kernel_text_free(line);
    }
}

static void test_bytes_are_counted(void **state) {
    (void)state;
    tk_bench_spec spec = spec_of(TK_LIBRARY_RMS_NORM, 64, 128);
    tk_bench_result result;
    assert_ok(tk_bench_kernel(&spec, &result));
    assert_int_equal(result.bytes, 2 * (2 * 64 * 128 + 128));
    assert_int_equal(result.flops, 0);
    spec = spec_of(TK_LIBRARY_GEMM, 64, 128);
    spec.rank = 3;
    spec.shape[2] = 32;
    assert_ok(tk_bench_kernel(&spec, &result));
    assert_int_equal(result.flops, 2 * 64 * 128 * 32);
    assert_int_equal(result.bytes, 2 * (64 * 32 + 32 * 128 + 64 * 128));
}

static void gives(const tk_bench_spec *spec, tk_status status, const char *says) {
    tk_bench_result result;
    assert_int_equal(tk_bench_kernel(spec, &result), status);
    assert_error_says(says);
}

static void test_errors(void **state) {
    (void)state;
    tk_bench_spec spec = spec_of(TK_LIBRARY_SOFTMAX, 512, 1024);
    spec.schedule = "threads_per_row = 7";
    gives(&spec, TK_INVALID_ARGUMENT, "threads_per_row");
    spec.schedule = NULL;
    spec.element = TK_K_I32;
    gives(&spec, TK_DTYPE_ERROR, "f32, f16 and bf16");
    spec = spec_of(TK_LIBRARY_SOFTMAX, 512, 1024);
    spec.size = 1;
    gives(&spec, TK_INVALID_ARGUMENT, "tk_bench_spec.size is 1");
    spec = spec_of(TK_LIBRARY_GEMM, 64, 128);
    gives(&spec, TK_SHAPE_ERROR, "MxNxK");
    spec = spec_of(TK_LIBRARY_SOFTMAX, 512, 1024);
    fake.standin_fail("cuLaunchKernelEx", 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    gives(&spec, TK_UNSUPPORTED, "kernel softmax");
    fake.standin_fail("cuEventElapsedTime", 1, CUDA_ERROR_INVALID_VALUE);
    gives(&spec, TK_INVALID_ARGUMENT, "timing");
    fake.standin_memory(1 << 20);
    spec = spec_of(TK_LIBRARY_SOFTMAX, 4096, 4096);
    gives(&spec, TK_OUT_OF_MEMORY, "cuda:0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(test_every_kernel),
        TEST(test_bytes_are_counted),
        TEST(test_errors),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
