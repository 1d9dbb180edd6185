/* Atomic, asynchronous and cluster operations as NVIDIA's CuTe compiler builds them: on a card they
 * give the emulator's bits. See cute_card.h. */
#define _GNU_SOURCE
#include "support/kernel_async.h"

#include "gpu/cute_card.h"

enum { REPEATS = 3 };

static int number;

static bool same(float a, float b) {
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void write_one(const tk_kernel *kernel) { assert_ok(cute_write(kernel, number++)); }

static void run_one(const tk_kernel *kernel) {
    static float got[2][FLOATS];
    static unsigned char none[1];
    tk_kargument arguments[4] = {{0}};
    tk_kbuffer buffers[4] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}};
    unsigned char *results[] = {(unsigned char *)got[0], (unsigned char *)got[1], none, none};
    for (int turn = 0; turn < REPEATS; turn++) {
        assert_ok(cute_run_on(kernel, number, 4, arguments, buffers, results));
        for (int i = 0; i < FLOATS; i++)
            if (!same(got[1][i], y[i]))
                fail_msg("kernel %d: element %d is %g on the card, %g in the emulator", number, i,
                         (double)got[1][i], (double)y[i]);
    }
    number++;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {ASYNC_TESTS};
    if (!cute_begin("test_gpu_cute_async", argc, argv)) return CARD_SKIPPED;
    also = cute_writing ? write_one : run_one;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d kernels\n", number);
    if (!cute_writing) tk_device_close(device);
    return failed;
}
