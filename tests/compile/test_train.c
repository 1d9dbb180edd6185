/* Training with kernels on the emulator follows the processor. */
#include "support/small_mlp.h"

static void test_mlp(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_stream_id emulator;
    assert_ok(tk_device_stream(context, "emulator", &emulator));
    mlp_follow(context, emulator, 12);
    tk_context_release(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mlp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
