/* Kernels of the tensor form on a card: asynchronous copies, TMA, products of tiles in shared
 * memory by mma and wgmma, groups that combine. What each computes is known exactly.
 * TIKI_GPU_TEST_DEVICE names another device (emulator), to try the test itself. */
#define _GNU_SOURCE
#include "support/lowered.h"

#include "base/half.h"
#include "tiki/gpu.h"
#include "tiki/kernel_op.h"

enum { REPEATS = 5 };

static tk_context *ctx;
static tk_stream_id card;

typedef struct call {
    const char *name;
    size_t n_inputs;
    const void *inputs[2];
    int64_t sizes[2];
    tk_dtype dtype, result_dtype;
    int64_t result_size;
    const tk_bind *binds;
    size_t n_binds;
} call;

static void run(const call *c, void *result, size_t bytes) {
    tk_kernel *kernel = lowered(c->name, TK_KLOWER_OPTIMISE);
    tk_launch_output output = {c->result_dtype, TK_SHAPE(c->result_size), 0};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = kernel,
                           .n_binds = c->n_binds,
                           .binds = c->binds,
                           .n_outputs = 1,
                           .outputs = &output};
    tk_arrays outputs = {0};
    tk_scope scope = tk_scope_open(ctx);
    tk_array inputs[2];
    for (size_t i = 0; i < c->n_inputs; i++)
        inputs[i] =
            tk_to_stream(tk_from_data(ctx, c->inputs[i], TK_SHAPE(c->sizes[i]), c->dtype), card);
    assert_ok(tk_launch(ctx, &spec, inputs, c->n_inputs, &outputs));
    assert_ok(tk_copy_out(outputs.items[0], result, bytes));
    tk_arrays_clear(&outputs);
    tk_scope_close(scope);
    tk_kernel_release(kernel);
}

static uint16_t x[128 * 320], y[128 * 320];

/* ---- copies ---- */

static void check_copy(const char *name, int rows, int columns, int pitch, const tk_bind *binds,
                       size_t n_binds) {
    for (int i = 0; i < rows * pitch; i++) x[i] = (uint16_t)i;
    call c = {.name = name,
              .n_inputs = 1,
              .inputs = {x},
              .sizes = {rows * pitch},
              .dtype = TK_FLOAT16,
              .result_dtype = TK_FLOAT16,
              .result_size = rows * pitch,
              .binds = binds,
              .n_binds = n_binds};
    run(&c, y, (size_t)(rows * pitch) * 2);
    for (int i = 0; i < rows * pitch; i++)
        if (i % pitch < columns) assert_int_equal(y[i], x[i]);
}

static void test_async_copy(void **state) {
    (void)state;
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_output(0), tk_bind_integer(72)};
    for (int i = 0; i < REPEATS; i++) check_copy("async_copy", 64, 64, 72, binds, 3);
}

static void test_tma_copy(void **state) {
    (void)state;
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_output(0), tk_bind_integer(45),
                             tk_bind_integer(90), tk_bind_integer(96)};
    for (int i = 0; i < REPEATS; i++) check_copy("tma_copy", 45, 90, 96, binds, 5);
}

/* ---- products: a is m x k, b k x n, both row-major ---- */

static void check_product(const char *name, bool half, int m, int n, int k, const tk_bind *binds,
                          size_t n_binds) {
    static float z[128 * 128];
    static float a[128 * 320], b[128 * 320];
    for (int i = 0; i < m * k; i++) a[i] = (float)(i * 7 % 19 - 9);
    for (int i = 0; i < k * n; i++) b[i] = (float)(i * 5 % 13 - 6);
    for (int i = 0; i < m * k; i++) x[i] = half ? tk_f32_to_f16(a[i]) : tk_f32_to_bf16(a[i]);
    for (int i = 0; i < k * n; i++) y[i] = half ? tk_f32_to_f16(b[i]) : tk_f32_to_bf16(b[i]);
    call c = {.name = name,
              .n_inputs = 2,
              .inputs = {x, y},
              .sizes = {m * k, k * n},
              .dtype = half ? TK_FLOAT16 : TK_BFLOAT16,
              .result_dtype = TK_FLOAT32,
              .result_size = m * n,
              .binds = binds,
              .n_binds = n_binds};
    run(&c, z, sizeof *z * (size_t)(m * n));
    for (int i = 0; i < m * n; i++) {
        float sum = 0;
        for (int j = 0; j < k; j++) sum += a[i / n * k + j] * b[j * n + i % n];
        if (z[i] != sum)
            fail_msg("%s: element %d is %g, expected %g", name, i, (double)z[i], (double)sum);
    }
}

static void test_products(void **state) {
    (void)state;
    const tk_bind binds[] = {tk_bind_input(0),     tk_bind_input(1),    tk_bind_output(0),
                             tk_bind_integer(128), tk_bind_integer(64), tk_bind_integer(320)};
    for (int i = 0; i < REPEATS; i++) {
        check_product("shared_gemm", true, 32, 24, 32, binds, 3);
        check_product("group_gemm", false, 64, 64, 128, binds, 3);
        check_product("pipeline", false, 128, 64, 320, binds, 6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_async_copy),
                                       cmocka_unit_test(test_tma_copy),
                                       cmocka_unit_test(test_products)};
    const char *device_name = getenv("TIKI_GPU_TEST_DEVICE");
    tk_gpu_info info;
    if (!device_name) {
        device_name = "gpu";
        if (tk_gpu_describe(0, &info) != TK_OK || info.major != 9) {
            printf("test_gpu_lower: skipped, it needs a Hopper card\n");
            return 77;
        }
        printf("test_gpu_lower on %s\n", info.name);
    }
    ctx = make_context();
    if (tk_device_stream(ctx, device_name, &card) != TK_OK) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tk_context_release(ctx);
    return failed;
}
