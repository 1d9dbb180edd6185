/* What atomic, asynchronous and cluster operations compute in the emulator. */
#include "support/kernel_async.h"
#include "support/says.h"

#include "tiki/runtime.h"

/* ---- one result on any number of cores ---- */

static void test_cores(void **state) {
    (void)state;
    static const shape s = {8, 2, 64, 4, NULL};
    tk_kernel *kernel = kernel_of(
        &s, CLUSTER FILL
        "%w = load %x : f32\nreduce.add.relaxed.cluster %far, %w\nstore %y, %f\n" MEET_CLUSTER);
    char *first = NULL;
    for (int threads = 1; threads <= 4; threads++) {
        char *found;
        assert_ok(tk_threads_set(threads));
        tk_emulation *emulation = run(kernel, &s, 5);
        assert_ok(tk_emulation_json(emulation, &found));
        assert_non_null(strstr(found, "global race"));
        assert_non_null(strstr(found, "shared race"));
        if (first) assert_string_equal(first, found);
        if (first)
            tk_kernel_text_free(found);
        else
            first = found;
        tk_emulation_release(emulation);
    }
    assert_ok(tk_threads_set(0));
    tk_kernel_text_free(first);
    tk_kernel_release(kernel);
}

/* ---- refusals ---- */

static void assert_refused(const char *map, const char *body, tk_status status, const char *words) {
    shape s = {1, 1, 32, 0, map};
    tk_kernel *kernel = kernel_of(&s, body);
    tk_kargument arguments[4] = {{0}, {0}, {0}, {0}};
    tk_kbuffer buffers[4] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}};
    tk_kemulate how = {.n_arguments = 4, .arguments = arguments, .buffers = buffers};
    tk_emulation *emulation = NULL;
    assert_int_equal(tk_kernel_emulate(kernel, &how, &emulation), status);
    assert_error_says(words);
    tk_kernel_release(kernel);
}

static void test_refused_maps(void **state) {
    (void)state;
    assert_refused("extent (32, 32) stride (120) box (8, 8)", "", TK_INVALID_ARGUMENT,
                   "a stride is a multiple of 16 bytes");
    assert_refused("extent (32, 0) stride (128) box (8, 8)", "", TK_INVALID_ARGUMENT,
                   "an extent is 1 to 2^32 - 1, and it is 0");
    assert_refused("extent (32, 32) stride (128) box (2, 8)", "", TK_INVALID_ARGUMENT,
                   "a row of the box has 16 bytes or a multiple");
    assert_refused("extent (32, 32) stride (128) box (32, 8) swizzle 64", "", TK_INVALID_ARGUMENT,
                   "no longer than the swizzle");
    assert_refused(NULL,
                   "%s = shared [align = 128] : shared<f32, \"256:1\">\n%b = address %s : ptr<f32, "
                   "shared>\ntma_store.im2col %out, %b, i32(0), i32(0)",
                   TK_UNSUPPORTED, "the emulator has no tma_store");
}

static void test_given_shapes(void **state) {
    (void)state;
    static const shape s = {1, 1, 32, 0, NULL};
    static const tk_klaunch shapes[] = {
        {.grid = {3, 1, 1}, .cluster = {2, 1, 1}, .block = {32, 1, 1}},
        {.grid = {1, 1, 1}, .block = {1024, 2, 1}},
        {.grid = {-1, 1, 1}, .block = {32, 1, 1}},
        {.grid = {34, 1, 1}, .cluster = {17, 1, 1}, .block = {32, 1, 1}},
        {.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamic_shared = -1},
        {.grid = {INT64_MAX, INT64_MAX, 4}, .block = {32, 1, 1}},
    };
    tk_kernel *kernel = kernel_of(
        &s, "%p = offset %y, %block : ptr<f32, global>\nif %first {\nstore %p, f32(1)\n}");
    tk_kargument arguments[4] = {{0}, {0}, {0}, {0}};
    tk_kbuffer buffers[4] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}};
    tk_kemulate how = {.n_arguments = 4, .arguments = arguments, .buffers = buffers};
    tk_emulation *emulation = NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        how.launch = shapes[i];
        assert_int_equal(tk_kernel_emulate(kernel, &how, &emulation), TK_INVALID_ARGUMENT);
    }
    how.launch = (tk_klaunch){.grid = {4, 1, 1}, .block = {64, 1, 1}};
    memset(y, 0, sizeof y);
    assert_ok(tk_kernel_emulate(kernel, &how, &emulation));
    assert_clean(emulation);
    assert_true(y[3] == 1 && y[4] == 0);
    tk_kernel_release(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {ASYNC_TESTS, cmocka_unit_test(test_cores),
                                       cmocka_unit_test(test_refused_maps),
                                       cmocka_unit_test(test_given_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
