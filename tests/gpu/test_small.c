/* A short walk through the runtime on small shapes, for compute-sanitizer: every kernel, copies,
 * graphs, blocks that are reused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/card.h"

static void test_small_shapes(void **state) {
    (void)state;
    enum { N = 1000 };
    static float x[N], out[N];
    tk_queue *queue;
    assert_int_equal(tk_cuda_queue_open(cuda, &queue), TK_OK);
    for (int i = 0; i < N; i++) x[i] = (float)i;
    tk_cuda_launch launch = {KERNEL("add_f32"), {8, 1, 1}, {0},   {128, 1, 1}, 0,
                             &card_add,         false,     false, "small"};
    tk_cuda_prepared add;
    assert_non_null(launch.function);
    assert_int_equal(tk_cuda_launch_prepare(&launch, &add), TK_OK);
    for (int round = 0; round < 4; round++) {
        tk_buffer *a, *b;
        assert_int_equal(tk_buffer_new_on(device, queue, sizeof x, &a), TK_OK);
        assert_int_equal(tk_buffer_new_on(device, queue, sizeof x, &b), TK_OK);
        struct {
            CUdeviceptr x, y, out;
            uint32_t n;
        } params = {address_of(a), address_of(a), address_of(b), N};
        assert_int_equal(tk_cuda_upload(queue, address_of(a), x, sizeof x), TK_OK);
        tk_cuda_graph *graph = NULL;
        if (round % 2) assert_int_equal(tk_cuda_capture_begin(queue, &graph), TK_OK);
        assert_int_equal(tk_cuda_launch_run(&add, queue, NULL, &params), TK_OK);
        if (graph) {
            assert_int_equal(tk_cuda_capture_end(graph), TK_OK);
            assert_int_equal(tk_cuda_graph_launch(graph, queue), TK_OK);
        }
        assert_int_equal(tk_cuda_download(queue, out, address_of(b), sizeof out, NULL), TK_OK);
        for (int i = 0; i < N; i++) assert_true(out[i] == x[i] + x[i]);
        tk_cuda_graph_release(graph);
        tk_buffer_release(a);
        tk_buffer_release(b);
    }
    tk_cuda_queue_close(queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_shapes)};
    if (!open_card("test_gpu_small")) return CARD_SKIPPED;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tk_device_close(device);
    return failed;
}
