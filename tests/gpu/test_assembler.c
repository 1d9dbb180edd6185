/* The driver as an assembler: binaries for every architecture, with their numbers, and those of the
 * card load and are what the module of the text is. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/card.h"
#include "tiki/library.h"
#include "tiki/target.h"

static tk_kernel *product(tk_library_id id) {
    tk_library_tensor t = {TK_K_F16, 2, {512, 512}, {512, 1}, 16}, list[] = {t, t, t};
    tk_library_plan *plan;
    tk_library_launch launch;
    assert_int_equal(tk_library_plan_create(id, 3, list, 0, NULL, NULL, &plan), TK_OK);
    assert_int_equal(tk_library_plan_launch(plan, 0, &launch), TK_OK);
    tk_kernel *kernel = tk_kernel_retain((tk_kernel *)(uintptr_t)launch.kernel);
    tk_library_plan_release(plan);
    return kernel;
}

static tk_artifact *assemble(const tk_kernel *kernel, const char *arch) {
    tk_build how = {.arch = arch, .emit = TK_EMIT_BINARY};
    tk_artifact *artifact = NULL;
    tk_status status = tk_kernel_build_ptx(kernel, &how, &artifact);
    if (status != TK_OK)
        fail_msg("%s for %s: %s", tk_kernel_name(kernel), arch, tk_error_message());
    return artifact;
}

static void check(tk_library_id id, const char *arch, bool loads) {
    tk_kernel *kernel = product(id);
    tk_artifact *artifact = assemble(kernel, arch);
    tk_report report;
    size_t bytes;
    const unsigned char *binary = tk_artifact_binary(artifact, &bytes);
    assert_int_equal(tk_artifact_report(artifact, &report), TK_OK);
    print_message("%s for %s: %zu bytes, %lld registers, %lld spilled, by %s\n",
                  tk_kernel_name(kernel), arch, bytes, (long long)report.registers,
                  (long long)report.spill_stores, tk_artifact_assembler(artifact));
    bool text = id == TK_LIBRARY_HOPPER_GEMM; /* setmaxnreg */
    assert_memory_equal(binary, text ? ".ver" : "\177ELF", 4);
    if (report.registers < 0) fail_msg("no registers in the log: %s", tk_artifact_log(artifact));
    assert_int_equal(report.spill_stores, 0);
    tk_cuda_module *module;
    tk_cuda_function *function;
    if (loads) {
        assert_int_equal(tk_cuda_module_load(cuda, binary, bytes, "made", &module), TK_OK);
        assert_int_equal(tk_cuda_module_function(module, tk_kernel_name(kernel), &function), TK_OK);
        assert_int_equal(function->registers, report.registers);
        tk_cuda_module_release(module);
    }
    tk_artifact_release(artifact);
    tk_kernel_release(kernel);
}

static void test_driver(void **state) {
    (void)state;
    bool hopper = cuda->info.major == 9;
    assert_int_equal(setenv("TIKI_ASSEMBLER", "driver", 1), 0);
    check(TK_LIBRARY_GEMM, "sm_80", cuda->info.major == 8);
    check(TK_LIBRARY_GEMM, "sm_90", hopper);
    check(TK_LIBRARY_GEMM, "sm_90a", hopper);
    check(TK_LIBRARY_HOPPER_GEMM, "sm_90a", hopper);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_driver)};
    if (!open_card("test_gpu_assembler")) return CARD_SKIPPED;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tk_device_close(device);
    return failed;
}
