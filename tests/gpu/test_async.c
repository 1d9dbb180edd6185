/* Atomic, asynchronous and cluster operations on a card give the emulator's bits.
 * TIKI_GPU_TEST_DEVICE names another device (emulator), to try the test itself. */
#include "support/kernel_async.h"

#include "tiki/gpu.h"
#include "tiki/kernel_op.h"

static tk_context *ctx;
static tk_stream_id card;
static const char *device_name;

enum { REPEATS = 5 };

static void launch(const tk_kernel *kernel, tk_arrays *outputs) {
    static const float zeros[FLOATS];
    tk_launch_output output = {TK_FLOAT32, TK_SHAPE(FLOATS), 2};
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_output(0)};
    const tk_array inputs[] = {
        tk_to_stream(tk_from_data(ctx, x, TK_SHAPE(FLOATS), TK_FLOAT32), card),
        tk_to_stream(tk_from_data(ctx, zeros, TK_SHAPE(FLOATS), TK_FLOAT32), card)};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = tk_kernel_retain((tk_kernel *)(uintptr_t)kernel),
                           .n_binds = 2,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output,
                           .site = "test_async.c"};
    assert_ok(tk_launch(ctx, &spec, inputs, 2, outputs));
    tk_kernel_release(spec.kernel);
}

static bool same(float a, float b) {
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void run_on_card(const tk_kernel *kernel) {
    for (int turn = 0; turn < REPEATS; turn++) {
        float got[FLOATS];
        tk_arrays outputs = {0};
        tk_scope scope = tk_scope_open(ctx);
        launch(kernel, &outputs);
        assert_ok(tk_copy_out(outputs.items[0], got, sizeof got));
        tk_arrays_clear(&outputs);
        tk_scope_close(scope);
        for (int i = 0; i < FLOATS; i++)
            if (!same(got[i], y[i]))
                fail_msg("element %d is %g on the card, %g in the emulator", i, (double)got[i],
                         (double)y[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {ASYNC_TESTS};
    tk_gpu_info info;
    device_name = getenv("TIKI_GPU_TEST_DEVICE");
    if (!device_name) {
        device_name = "gpu";
        if (tk_gpu_describe(0, &info) != TK_OK || info.major != 9) {
            printf("test_gpu_async: skipped, %s\n",
                   info.major != 9 ? "it needs a Hopper card" : tk_error_message());
            return 77;
        }
        printf("test_gpu_async on %s\n", info.name);
    }
    ctx = make_context();
    if (tk_device_stream(ctx, device_name, &card) != TK_OK) return 1;
    also = run_on_card;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tk_context_release(ctx);
    return failed;
}
