/* A card that is lost: the error names the kernels, every later call gives it again, everything can
 * be given back. A program of its own, since nothing else can be tested in the process afterwards.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "gpu/card.h"

static void test_lost(void **state) {
    (void)state;
    tk_queue *queue, *other;
    tk_buffer *x;
    tk_cuda_prepared bad;
    assert_int_equal(tk_cuda_queue_open(cuda, &queue), TK_OK);
    assert_int_equal(tk_buffer_new_on(device, queue, 4, &x), TK_OK);
    tk_cuda_launch launch = {
        KERNEL("bad_store"), {1, 1, 1}, {0}, {1, 1, 1}, 0, NULL, false, false, "here"};
    assert_non_null(launch.function);
    assert_int_equal(tk_cuda_launch_prepare(&launch, &bad), TK_OK);
    tk_status status = tk_cuda_launch_run(&bad, queue, NULL, NULL);
    if (status == TK_OK) status = tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL);
    assert_int_equal(status, TK_DEVICE_ERROR);
    char first[TK_ERROR_MESSAGE_BYTES];
    strcpy(first, tk_error_message());
    printf("%s\n", first);
    assert_non_null(strstr(first, "cuda:0 is lost for the rest of this process"));
    assert_non_null(strstr(first, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_non_null(strstr(first, "bad_store launched at here"));
    assert_int_equal(tk_cuda_fill(queue, address_of(x), 0, 4, 1), TK_DEVICE_ERROR);
    assert_string_equal(tk_error_message(), first);
    assert_int_equal(tk_cuda_queue_open(cuda, &other), TK_DEVICE_ERROR);
    assert_string_equal(tk_error_message(), first);
    tk_buffer_release(x);
    tk_cuda_queue_close(queue);
    tk_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lost)};
    if (!open_card("test_gpu_lost")) return CARD_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
