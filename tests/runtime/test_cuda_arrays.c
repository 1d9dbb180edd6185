/* Arrays on a GPU, on the stand-in: moves, launches, order, and that every failure of the driver is
 * the error of the evaluation, names kernel and place, and leaves arrays that can be evaluated
 * again, or says that the device is lost. The assembler is a script that hands the text through. */
#define _GNU_SOURCE
#include "support/kernel_files.h"
#include "support/sanitizer.h"
#include "support/says.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/standin/standin.h"
#include "tiki/kernel_op.h"
#include "tiki/library_op.h"

static standin fake;
static tk_context *ctx;
static tk_scope scope;
static tk_stream_id gpu;
static tk_kernel *add_kernel;
static char folder[400], path[500];

static void run_add(const void *const *params) {
    const float *const *x = params[0], *const *y = params[1];
    float *const *z = (float *const *)params[2];
    const int *n = params[3];
    for (int i = 0; i < *n; i++) (*z)[i] = (*x)[i] + (*y)[i];
}

static int make_assembler(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    if (!standin_open(&fake)) return -1;
    snprintf(folder, sizeof folder, "%s/gpu-arrays-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/ptxas", folder);
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    fputs("#!/bin/sh\nexec cp \"$5\" \"$4\"\n", file);
    fclose(file);
    if (chmod(path, 0700) || setenv("TIKI_PTXAS", path, 1)) return -1;
    snprintf(path, sizeof path, "%s/cache", folder);
    if (setenv("TIKI_CACHE", path, 1)) return -1;
    add_kernel = parse_file("examples/kernels/vector_add.tk");
    return setenv("TIKI_CUDA_DRIVER", standin_path(), 1);
}

static int remove_assembler(void **state) {
    char command[600];
    (void)state;
    tk_kernel_release(add_kernel);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int begin(void **state) {
    (void)state;
    fake.standin_reset();
    fake.standin_kernel("vector_add", "8884", run_add);
    ctx = make_context();
    scope = tk_scope_open(ctx);
    return tk_device_stream(ctx, "gpu", &gpu) == TK_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    fake.standin_gate(true);
    tk_scope_close(scope);
    tk_context_release(ctx);
    return fake.standin_live();
}

static tk_array values(int64_t n) {
    return tk_to_stream(tk_arange(ctx, 0, (double)n, 1, TK_FLOAT32), gpu);
}

static tk_status launch_add(tk_array x, tk_array y, tk_array *out) {
    int64_t n = tk_array_size(x);
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_input(1), tk_bind_output(0),
                             tk_bind_integer(n)};
    const tk_launch_output output = {TK_FLOAT32, TK_SHAPE(n), 0};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = add_kernel,
                           .n_binds = 4,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output,
                           .site = "model.c:40"};
    const tk_array inputs[] = {x, y};
    tk_arrays outputs = {0};
    tk_status status = tk_launch(ctx, &spec, inputs, 2, &outputs);
    if (status == TK_OK) *out = tk_reshape(outputs.items[0], TK_SHAPE(n));
    tk_arrays_clear(&outputs);
    return status;
}

static tk_array sum_of(tk_array x, tk_array y) {
    tk_array out = TK_NO_ARRAY;
    assert_ok(launch_add(x, y, &out));
    return out;
}

static void assert_doubled(tk_array array, int factor) {
    float got[100];
    assert_ok(tk_copy_out(array, got, sizeof got));
    for (int i = 0; i < 100; i++) assert_float_equal(got[i], (float)(factor * i), 0);
}

/* ---- what works ---- */

static void test_moves_and_launches(void **state) {
    (void)state;
    tk_array x = values(100), y = sum_of(x, x);
    assert_string_equal(tk_device_name(tk_array_device(y)), "cuda:0");
    assert_doubled(y, 2);
    assert_doubled(y, 2);
    assert_doubled(tk_to_stream(sum_of(y, x), TK_DEFAULT_STREAM), 3);
    assert_int_equal(fake.standin_count("cuModuleLoadDataEx"), 1);
    char *text;
    assert_ok(tk_format(tk_reshape(values(3), TK_SHAPE(3, 1)), &text));
    assert_string_equal(text, "[[0.]\n [1.]\n [2.]]");
    tk_text_free(text);
}

static int releases;
static void count_release(void *owner) {
    (void)owner;
    releases++;
}

/* Memory of another library is used where it lies, and given back when no work is left on it. */
static void test_memory_of_others(void **state) {
    (void)state;
    static float theirs[100];
    tk_strided view;
    releases = 0;
    for (int i = 0; i < 100; i++) theirs[i] = (float)i;
    tk_scope inner = tk_scope_open(ctx);
    tk_array x = tk_from_memory_on(ctx, gpu, theirs, sizeof theirs, TK_SHAPE(100), NULL, TK_FLOAT32,
                                   count_release, NULL);
    assert_string_equal(tk_device_name(tk_array_device(x)), "cuda:0");
    assert_ok(tk_array_view_there(x, &view));
    assert_ptr_equal(view.data, theirs);
    tk_array y = sum_of(x, x);
    assert_doubled(y, 2);
    assert_ok(tk_array_view_there(y, &view));
    assert_float_equal(((const float *)view.data)[99], 198, 0);
    assert_int_equal(releases, 0);
    tk_scope_close(inner);
    assert_int_equal(releases, 1);
    tk_array wrong = tk_from_memory_on(ctx, gpu, theirs, 4, TK_SHAPE(100), NULL, TK_FLOAT32,
                                       count_release, NULL);
    assert_int_equal(tk_array_status(wrong), TK_INVALID_ARGUMENT);
    assert_error_says("needs 400 bytes, the memory has 4");
    assert_int_equal(releases, 2);
    wrong = tk_from_memory_on(ctx, 999, theirs, 400, TK_SHAPE(100), NULL, TK_FLOAT32, NULL, NULL);
    assert_int_equal(tk_array_status(wrong), TK_INVALID_ARGUMENT);
}

/* Nobody knows what the other library still does with it. */
static void test_memory_that_others_had(void **state) {
    (void)state;
    tk_array x = tk_keep(sum_of(values(100), values(100)));
    tk_strided view;
    assert_ok(tk_array_view_there(x, &view));
    int before = fake.standin_count("cuCtxSynchronize");
    tk_release_there(x);
    assert_int_equal(fake.standin_count("cuCtxSynchronize"), before + 1);
    tk_release_there(TK_NO_ARRAY);
    tk_release_there(tk_keep(tk_ones(ctx, TK_SHAPE(3), TK_FLOAT32)));
    assert_int_equal(fake.standin_count("cuCtxSynchronize"), before + 1);
}

static void test_nobody_waits_before_the_end(void **state) {
    (void)state;
    tk_array x = values(100);
    assert_ok(tk_eval(x));
    int before =
        fake.standin_count("cuStreamSynchronize") + fake.standin_count("cuEventSynchronize");
    tk_array y = x;
    for (int i = 0; i < 5; i++) y = sum_of(y, x);
    assert_ok(tk_async_eval(&y, 1));
    assert_ok(tk_eval(y));
    int waits = fake.standin_count("cuStreamSynchronize") +
                fake.standin_count("cuEventSynchronize") - before;
    assert_true(waits <= 2);
    assert_doubled(y, 6);
}

static void test_two_streams(void **state) {
    (void)state;
    tk_stream_id other;
    tk_array x = values(100);
    assert_int_equal(tk_array_stream(x), gpu);
    (void)tk_stream_use(ctx, gpu);
    assert_ok(tk_stream_new(ctx, &other));
    (void)tk_stream_use(ctx, other);
    tk_array y = sum_of(x, x);
    assert_int_equal(tk_array_stream(y), other);
    (void)tk_stream_use(ctx, TK_DEFAULT_STREAM);
    tk_array z = sum_of(y, x);
    assert_doubled(z, 3);
}

static void *work(void *arg) {
    int number = *(int *)arg;
    tk_scope mine = tk_scope_open(ctx);
    for (int i = 0; i < 20; i++) {
        tk_array x = values(100), y = sum_of(x, x);
        for (int k = 0; k < number % 3; k++) y = sum_of(y, x);
        assert_doubled(y, 2 + number % 3);
    }
    tk_scope_close(mine);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[6];
    int numbers[6];
    for (int i = 0; i < 6; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
}

static void test_many_launches_leak_nothing(void **state) {
    (void)state;
    tk_device *device = tk_stream_device_of(ctx, gpu);
    tk_array x = values(100);
    assert_ok(tk_eval(x));
    size_t before = tk_device_memory(device).active;
    for (int i = 0; i < (SUPPORT_ASAN || SUPPORT_TSAN ? 1000 : 10000); i++) {
        tk_scope inner = tk_scope_open(ctx);
        assert_ok(tk_eval(sum_of(x, x)));
        tk_scope_close(inner);
    }
    assert_int_equal(tk_device_memory(device).active, before);
}

/* ---- what fails ---- */

/* The n-th call of a driver's function fails; then all is well again. */
static void fails_once(const char *function, CUresult result, tk_status status, const char *says) {
    tk_array x = values(100), y = sum_of(x, x);
    assert_ok(tk_eval(x));
    fake.standin_fail(function, 1, result);
    assert_int_equal(tk_eval(y), status);
    assert_error_says(says);
    assert_doubled(y, 2);
}

static void test_failures_that_pass(void **state) {
    (void)state;
    fails_once("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX, TK_FORMAT_ERROR, "vector_add");
    fails_once("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, TK_UNSUPPORTED,
               "kernel vector_add launched at model.c:40");
    tk_array x = tk_to_stream(tk_arange(ctx, 0, 100, 1, TK_FLOAT32), gpu);
    fake.standin_fail("cuMemcpyHtoDAsync_v2", 1, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(tk_eval(x), TK_INVALID_ARGUMENT);
    assert_doubled(sum_of(x, x), 2);
    tk_array y = sum_of(x, x);
    float got[100];
    assert_ok(tk_eval(y));
    fake.standin_fail("cuMemcpyDtoHAsync_v2", 1, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(tk_copy_out(y, got, sizeof got), TK_INVALID_ARGUMENT);
    assert_doubled(y, 2);
}

static void test_function_is_missing(void **state) {
    (void)state;
    fails_once("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND, TK_NOT_FOUND, "kernel vector_add");
}

static void test_out_of_memory(void **state) {
    (void)state;
    tk_device *device = tk_stream_device_of(ctx, gpu);
    tk_array held = values(1 << 16);
    assert_ok(tk_eval(held));
    tk_device_set_memory_limit(device, 400000);
    tk_array y = sum_of(held, held);
    assert_int_equal(tk_eval(y), TK_OUT_OF_MEMORY);
    assert_error_says("cuda:0");
    tk_device_set_memory_limit(device, SIZE_MAX);
    assert_ok(tk_eval(y));
}

static void test_a_lost_device_says_so(void **state) {
    (void)state;
    tk_array x = values(100), y = sum_of(x, x), z = sum_of(y, x);
    assert_ok(tk_eval(x));
    fake.standin_fail("cuLaunchKernelEx", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(tk_eval(y), TK_DEVICE_ERROR);
    assert_error_says("an illegal memory access");
    assert_int_equal(tk_eval(z), TK_DEVICE_ERROR);
    assert_error_says("an illegal memory access");
    float got[100];
    assert_int_equal(tk_copy_out(x, got, sizeof got), TK_DEVICE_ERROR);
    assert_int_equal(tk_eval(values(5)), TK_DEVICE_ERROR);
    assert_int_equal(tk_synchronize(ctx), TK_DEVICE_ERROR);
    float one;
    assert_ok(
        tk_copy_out(tk_ones(ctx, TK_SHAPE(1), TK_FLOAT32), &one, 4)); /* the processor works */
}

static void fault(const void *const *params) { (void)params; }

/* The launch is accepted and goes wrong later: the wait says so. */
static void test_errors_that_come_later(void **state) {
    (void)state;
    fake.standin_kernel("trap", "884", fault);
    char *text = around("", 32);
    overwrite(text, "kernel test", "kernel trap");
    tk_kernel *trap = parse_text(text);
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_output(0), tk_bind_integer(4)};
    const tk_launch_output output = {TK_FLOAT32, TK_SHAPE(4), 0};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = trap,
                           .n_binds = 3,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output,
                           .site = "model.c:50"};
    tk_array x = values(4);
    tk_arrays out = {0};
    assert_ok(tk_launch(ctx, &spec, &x, 1, &out));
    assert_int_equal(tk_eval(out.items[0]), TK_DEVICE_ERROR);
    assert_error_says("trap launched at model.c:50");
    tk_arrays_clear(&out);
    tk_kernel_release(trap);
    free(text);
}

static void test_preconditions(void **state) {
    (void)state;
    tk_array x = values(100), out;
    const tk_bind binds[] = {tk_bind_input(0), tk_bind_input(0), tk_bind_output(0),
                             tk_bind_integer(-5)};
    const tk_launch_output output = {TK_FLOAT32, TK_SHAPE(100), 0};
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = add_kernel,
                           .n_binds = 4,
                           .binds = binds,
                           .n_outputs = 1,
                           .outputs = &output};
    tk_arrays outputs = {0};
    assert_int_equal(tk_launch(ctx, &spec, &x, 1, &outputs), TK_INVALID_ARGUMENT);
    assert_error_says("%n >= 0");
    assert_int_equal(tk_array_status(tk_sort(x, 0)), TK_UNSUPPORTED);
    assert_error_says("sort_axis has no kernel on cuda:0");
    assert_ok(launch_add(x, x, &out));
}

/* ---- indices out of range ---- */

/* take of floats: a, indices, y, record, flag, n, strides of four views, the largest index, a step;
 * as the kernel does, smallest first. */
static void run_gather(const void *const *params) {
    const float *const *a = params[0];
    const uint32_t *const *at = params[1];
    float *const *y = (float *const *)params[2];
    uint64_t *const *record = (uint64_t *const *)params[3];
    int32_t *const *flag = (int32_t *const *)params[4];
    const int64_t *n = params[5], *most = params[10];
    for (int64_t i = 0; i < *n; i++) {
        int64_t index = (*at)[i];
        bool good = index <= *most;
        (*y)[i] = good ? (*a)[index] : 0;
        uint64_t words[] = {(uint64_t)i << 32 | (uint32_t)index,
                            (uint64_t)i << 32 | (uint64_t)index >> 32};
        for (int k = 0; !good && k < 2; k++)
            if (words[k] < (*record)[k]) (*record)[k] = words[k];
        if (!good) __atomic_store_n(*flag, 1, __ATOMIC_RELEASE);
    }
}

/* Unsigned: for others a kernel adds the length to those below 0 first. */
static tk_array take_at(uint32_t first, uint32_t second, uint32_t third) {
    uint32_t at[] = {first, second, third};
    fake.standin_kernel("gather_float32_1_0_1", "888888888888", run_gather);
    tk_array far = tk_to_stream(tk_from_data(ctx, at, TK_SHAPE(3), TK_UINT32), gpu);
    return tk_gather(values(5), &far, 1, TK_AXES(0), TK_SHAPE(1));
}

static void test_indices_out_of_range(void **state) {
    (void)state;
    float got[3];
    tk_array good = take_at(1, 4, 0), bad = take_at(3, 9, 70);
    assert_ok(tk_eval(good));
    assert_int_equal(tk_eval(bad), TK_INDEX_ERROR);
    assert_error_says("index 9 is out of range for an axis of length 5 (at position 1 of the "
                      "indices)");
    assert_ok(tk_copy_out(bad, got, sizeof got)); /* it is told once, and the values are there */
    assert_float_equal(got[0], 3, 0);
    assert_float_equal(got[1], 0, 0);
    assert_float_equal(got[2], 0, 0);
    assert_ok(tk_copy_out(good, got, sizeof got));
    tk_array far = tk_to_stream(take_at(1, 2, 4000000000), TK_DEFAULT_STREAM);
    assert_int_equal(tk_eval(far), TK_INDEX_ERROR);
    assert_error_says("index 4000000000 is out of range");
}

/* What nobody waited for is told by the next wait, the oldest first and alone. */
static void test_faults_of_others(void **state) {
    (void)state;
    const tk_array both[] = {take_at(7, 0, 0), take_at(0, 8, 0)};
    assert_ok(tk_async_eval(&both[0], 1));
    assert_ok(tk_async_eval(&both[1], 1));
    assert_int_equal(tk_synchronize(ctx), TK_INDEX_ERROR);
    assert_error_says("index 7 is out of range");
    assert_ok(tk_synchronize(ctx));
    assert_doubled(sum_of(values(100), values(100)), 2);
    tk_array third = take_at(0, 0, 6);
    assert_ok(tk_async_eval(&third, 1));
    assert_int_equal(tk_eval(sum_of(values(100), values(100))), TK_INDEX_ERROR);
    assert_error_says("index 6 is out of range");
}

/* More launches than there are records, some of whose faults nobody asked about yet. */
static void test_many_faults(void **state) {
    (void)state;
    for (int i = 0; i < 1500; i++) {
        tk_scope inner = tk_scope_open(ctx);
        tk_array one = take_at(i % 3 ? 1 : 5u + (uint32_t)i, 0, 0);
        assert_ok(tk_async_eval(&one, 1));
        tk_scope_close(inner);
    }
    assert_int_equal(tk_synchronize(ctx), TK_INDEX_ERROR);
    assert_error_says("index 5 is out of range");
    assert_ok(tk_synchronize(ctx));
    assert_int_equal(tk_eval(take_at(99, 0, 0)), TK_INDEX_ERROR);
    assert_error_says("index 99 is out of range");
}

static void test_drivers_that_fail_about_faults(void **state) {
    (void)state;
    fake.standin_fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    tk_array y = take_at(0, 1, 2);
    assert_int_equal(tk_eval(y), TK_OUT_OF_MEMORY);
    assert_ok(tk_eval(y));
    tk_array bad = take_at(0, 1, 9);
    assert_ok(tk_async_eval(&bad, 1));
    fake.standin_fail("cuMemcpyDtoHAsync_v2", 1, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(tk_synchronize(ctx), TK_INVALID_ARGUMENT);
    assert_int_equal(tk_synchronize(ctx), TK_INDEX_ERROR);
    assert_error_says("index 9 is out of range");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(test_moves_and_launches),
        TEST(test_memory_of_others),
        TEST(test_memory_that_others_had),
        TEST(test_nobody_waits_before_the_end),
        TEST(test_two_streams),
        TEST(test_threads),
        TEST(test_many_launches_leak_nothing),
        TEST(test_failures_that_pass),
        TEST(test_function_is_missing),
        TEST(test_out_of_memory),
        TEST(test_a_lost_device_says_so),
        TEST(test_errors_that_come_later),
        TEST(test_preconditions),
        TEST(test_indices_out_of_range),
        TEST(test_faults_of_others),
        TEST(test_many_faults),
        TEST(test_drivers_that_fail_about_faults),
    };
    return cmocka_run_group_tests(tests, make_assembler, remove_assembler);
}
