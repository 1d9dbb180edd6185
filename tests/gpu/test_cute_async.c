/* Atomic, asynchronous and cluster operations as NVIDIA's CuTe compiler builds them: on a card they
 * give the emulator's bits. See cute_card.h. */
#define _GNU_SOURCE
#include "support/kernel_async.h"

#include "gpu/cute_card.h"

enum { REPEATS = 3 };

static int number, wrong;

static bool same(float a, float b) {
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void write_one(const tk_kernel *kernel) { assert_ok(cute_write(kernel, number++)); }

/* The first element that differs is told, and the other kernels still run. */
static bool compare(int own, const float *got) {
    for (int i = 0; i < FLOATS; i++)
        if (!same(got[i], y[i])) {
            printf("kernel %d: element %d is %g on the card, %g in the emulator\n", own, i,
                   (double)got[i], (double)y[i]);
            return false;
        }
    return true;
}

static void run_one(const tk_kernel *kernel) {
    static float got[2][FLOATS];
    static unsigned char none[1];
    tk_kargument arguments[4] = {{0}};
    tk_kbuffer buffers[4] = {{x, sizeof x, 0}, {y, sizeof y, 0}, {0}, {0}};
    unsigned char *results[] = {(unsigned char *)got[0], (unsigned char *)got[1], none, none};
    int own = number++;
    bool right = true;
    for (int turn = 0; turn < REPEATS && right; turn++) {
        if (cute_run_on(kernel, own, 4, arguments, buffers, results) != TK_OK)
            fail_msg("kernel %d: %s", own, tk_error_message());
        right = compare(own, got[1]);
    }
    wrong += !right;
}

static void test_all_right(void **state) {
    (void)state;
    printf("%d of %d kernels differ\n", wrong, number);
    assert_true(number >= 40 && !wrong);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {ASYNC_TESTS, cmocka_unit_test(test_all_right)};
    if (!cute_begin("test_gpu_cute_async", argc, argv)) return CARD_SKIPPED;
    also = cute_writing ? write_one : run_one;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!cute_writing) tk_device_close(device);
    return failed;
}
