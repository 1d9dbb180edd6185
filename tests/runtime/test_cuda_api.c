/* Loading the driver: what is missing is said, results become statuses, devices are described. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/cuda_device.h"
#include "runtime/standin/standin.h"
#include "support/says.h"

static standin fake;

static int load(void **state) {
    (void)state;
    return standin_open(&fake) ? 0 : -1;
}

static int reset(void **state) {
    (void)state;
    fake.standin_reset();
    return 0;
}

static void expect(tk_status status, const char *path, const char *text) {
    tk_cuda_api api;
    assert_int_equal(tk_cuda_api_open(path, &api), status);
    assert_error_says(text);
}

static void test_no_library(void **state) {
    (void)state;
    expect(TK_UNSUPPORTED, "libno_such_driver.so.1", "no NVIDIA driver: no libno_such_driver.so.1");
}

static void test_a_library_that_is_no_driver(void **state) {
    (void)state;
    expect(TK_UNSUPPORTED, "libm.so.6", "libm.so.6 has no cuDriverGetVersion");
}

static void test_too_old(void **state) {
    (void)state;
    fake.standin_version(11080);
    expect(TK_UNSUPPORTED, standin_path(), "too old: it has CUDA 11.8, Tiki needs 12.0");
    assert_int_equal(fake.standin_count("cuInit"), 0);
}

static void test_no_device(void **state) {
    (void)state;
    fake.standin_devices(0);
    expect(TK_NOT_FOUND, standin_path(), "it has no device");
    fake.standin_fail("cuInit", 1, CUDA_ERROR_NO_DEVICE);
    expect(TK_NOT_FOUND, standin_path(), "it has no device");
}

static void test_a_driver_that_does_not_start(void **state) {
    (void)state;
    fake.standin_fail("cuInit", 1, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
    expect(TK_UNSUPPORTED, standin_path(), "does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    fake.standin_fail("cuDriverGetVersion", 1, 999);
    expect(TK_UNSUPPORTED, standin_path(), "gives no version (CUDA_ERROR_UNKNOWN)");
}

static void test_descriptions(void **state) {
    (void)state;
    tk_cuda_api api;
    fake.standin_devices(2);
    assert_int_equal(tk_cuda_api_open(standin_path(), &api), TK_OK);
    assert_int_equal(api.version, 13000);
    assert_int_equal(api.n_devices, 2);
    tk_cuda_info info;
    assert_int_equal(tk_cuda_describe(&api, 1, &info), TK_OK);
    assert_string_equal(info.name, "Stand-in 1");
    assert_int_equal(info.major, 9);
    assert_int_equal(info.multiprocessors, 4);
    assert_int_equal(info.max_shared, 227 << 10);
    assert_true(info.clusters);
    assert_int_equal(tk_cuda_describe(&api, 2, &info), TK_NOT_FOUND);
    assert_int_equal(tk_cuda_describe(&api, -1, &info), TK_NOT_FOUND);
    fake.standin_fail("cuDeviceGetName", 1, CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(tk_cuda_describe(&api, 0, &info), TK_NOT_FOUND);
}

static void test_results(void **state) {
    (void)state;
    char scratch[32];
    assert_int_equal(tk_cuda_result_status(CUDA_ERROR_OUT_OF_MEMORY), TK_OUT_OF_MEMORY);
    assert_int_equal(tk_cuda_result_status(CUDA_ERROR_INVALID_PTX), TK_FORMAT_ERROR);
    assert_int_equal(tk_cuda_result_status(12345), TK_DEVICE_ERROR);
    assert_string_equal(tk_cuda_result_name(CUDA_ERROR_ASSERT, scratch), "CUDA_ERROR_ASSERT");
    assert_string_equal(tk_cuda_result_name(12345, scratch), "CUDA result 12345");
    assert_true(tk_cuda_result_is_lost(CUDA_ERROR_ILLEGAL_ADDRESS));
    assert_false(tk_cuda_result_is_lost(CUDA_ERROR_OUT_OF_MEMORY));
    assert_false(tk_cuda_result_is_lost(12345));
}

/* The process's driver: the reason is the same each time. */
static void test_the_reason_is_kept(void **state) {
    (void)state;
    setenv("TIKI_CUDA_DRIVER", "libno_such_driver.so.1", 1);
    for (int i = 0; i < 2; i++) {
        tk_device *device;
        assert_int_equal(tk_device_open(&tk_driver_cuda, 0, NULL, &device), TK_UNSUPPORTED);
        assert_null(device);
        assert_string_equal(tk_error_message(), "no NVIDIA driver: no libno_such_driver.so.1");
        setenv("TIKI_CUDA_DRIVER", standin_path(), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_library, reset),
        cmocka_unit_test_setup(test_a_library_that_is_no_driver, reset),
        cmocka_unit_test_setup(test_too_old, reset),
        cmocka_unit_test_setup(test_no_device, reset),
        cmocka_unit_test_setup(test_a_driver_that_does_not_start, reset),
        cmocka_unit_test_setup(test_descriptions, reset),
        cmocka_unit_test_setup(test_results, reset),
        cmocka_unit_test_setup(test_the_reason_is_kept, reset),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
