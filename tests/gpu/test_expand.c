/* Errors of exp, exp2, log, log2, tanh, erf, sin and cos as they are expanded, on a card, against
 * f64 of the C library: every TIKI_EXPAND_EVERY-th float (251; 1: all of them, minutes on few
 * cores). The emulator gives the same bits (test_kernels.c), so this holds for it too.
 * TIKI_GPU_TEST_DEVICE names another device (emulator), to try the test itself. */
#define _GNU_SOURCE
#include "support/kernel_files.h"
#include "support/ulp.h"

#include <math.h>

#include "base/pool.h"
#include "tiki/gpu.h"
#include "tiki/kernel_op.h"
#include "tiki/passes.h"

enum { MOST = 1 << 26, WORKERS = 1024 };

static tk_context *ctx;
static tk_stream_id card;

typedef struct function {
    const char *name;
    double (*exact)(double x);
    double bound; /* units in the last place: the largest of all floats */
} function;

static const function functions[] = {
    {"exp", exp, 1.061},   {"exp2", exp2, 1.075}, {"log", log, 0.887},  {"log2", log2, 1.073},
    {"tanh", tanh, 1.333}, {"erf", erf, 1.126},   {"sin", sin, 0.5003}, {"cos", cos, 0.5003}};
#define FUNCTIONS (sizeof functions / sizeof *functions)

static tk_kernel *kernel_of(const char *name, int64_t count) {
    char text[900];
    tk_kernel *out = NULL;
    snprintf(
        text, sizeof text,
        "tiki kernel 1\nkernel sweep(%%y: ptr<f32, global> write align 4, %%first: i32, %%step: "
        "i32)\nform thread grid (%lld, 1, 1) block (256, 1, 1)\n{\n"
        "%%t = thread_index.x : i32\n%%b = block_index.x : i32\n%%f = mul %%b, i32(256) : i32\n"
        "%%i = add %%f, %%t : i32\n%%k = mul %%i, %%step : i32\n%%bits = add %%k, %%first : i32\n"
        "%%v = bitcast %%bits : f32\n%%w = %s %%v : f32\n%%q = offset %%y, %%i : ptr<f32, "
        "global>\nstore %%q, %%w\n}\n",
        (long long)(count / 256), name);
    tk_kernel *kernel = parse_text(text);
    assert_ok(tk_kernel_pass(kernel, TK_KPASS_expand, &out));
    tk_kernel_release(kernel);
    return out;
}

static void compute(tk_kernel *kernel, uint32_t first, uint32_t step, int64_t count, float *y) {
    tk_launch_output output = {TK_FLOAT32, TK_SHAPE(count), 0};
    const tk_bind binds[] = {tk_bind_output(0), tk_bind_integer((int32_t)first),
                             tk_bind_integer((int32_t)step)};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = kernel,
                           .n_binds = 3,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output};
    tk_arrays outputs = {0};
    tk_scope scope = tk_scope_open(ctx);
    tk_stream_id before = tk_stream_use(ctx, card);
    assert_ok(tk_launch(ctx, &spec, NULL, 0, &outputs));
    assert_ok(tk_copy_out(outputs.items[0], y, (size_t)count * sizeof *y));
    tk_arrays_clear(&outputs);
    tk_stream_use(ctx, before);
    tk_scope_close(scope);
}

typedef struct worst {
    double error;
    uint32_t bits;
} worst;

typedef struct sweep {
    const function *f;
    const float *y;
    uint32_t first, step;
    worst of[WORKERS];
} sweep;

static void compare(void *arg, int64_t begin, int64_t end, int worker) {
    sweep *s = arg;
    worst *w = &s->of[worker];
    for (int64_t i = begin; i < end; i++) {
        uint32_t bits = s->first + (uint32_t)i * s->step;
        float x;
        memcpy(&x, &bits, sizeof x);
        double error = error_of(s->f->exact((double)x), s->y[i]);
        if (error > w->error) *w = (worst){error, bits};
    }
}

static worst worst_of(const function *f, uint32_t step, float *y) {
    static sweep s;
    uint64_t total = (((uint64_t)1 << 32) + step - 1) / step;
    int64_t count = total < MOST ? (int64_t)(total + 255) / 256 * 256 : MOST;
    tk_kernel *kernel = kernel_of(f->name, count);
    worst all = {0};
    memset(&s, 0, sizeof s);
    s.f = f, s.y = y, s.step = step;
    for (uint64_t done = 0; done < total; done += (uint64_t)count) {
        s.first = (uint32_t)(done * step);
        compute(kernel, s.first, step, count, y);
        tk_parallel_for(count, 4096, compare, &s);
    }
    for (int i = 0; i < WORKERS; i++)
        if (s.of[i].error > all.error) all = s.of[i];
    tk_kernel_release(kernel);
    return all;
}

static void test_errors(void **state) {
    (void)state;
    const char *every = getenv("TIKI_EXPAND_EVERY");
    uint32_t step = every ? (uint32_t)strtoul(every, NULL, 10) : 251;
    float *y = malloc(sizeof *y * MOST);
    assert_true(y && step > 0 && tk_pool_threads() <= WORKERS);
    int beyond = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        worst w = worst_of(&functions[i], step, y);
        float at;
        memcpy(&at, &w.bits, sizeof at);
        print_message("%-5s %.4f units at %a, of every %u-th float\n", functions[i].name, w.error,
                      (double)at, step);
        beyond += !(w.error <= functions[i].bound);
    }
    free(y);
    assert_int_equal(beyond, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors)};
    const char *device_name = getenv("TIKI_GPU_TEST_DEVICE");
    tk_gpu_info info;
    if (!device_name) {
        device_name = "gpu";
        if (tk_gpu_describe(0, &info) != TK_OK) {
            printf("test_gpu_expand: skipped, %s\n", tk_error_message());
            return 77;
        }
        printf("test_gpu_expand on %s\n", info.name);
    }
    ctx = make_context();
    if (tk_device_stream(ctx, device_name, &card) != TK_OK) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tk_context_release(ctx);
    return failed;
}
