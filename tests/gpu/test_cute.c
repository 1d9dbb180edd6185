/* The two targets against each other on a card: kernels of the library as NVIDIA's CuTe compiler
 * builds them and as Tiki's PTX is assembled, launched by the same contract on the same memory,
 * must give the same bits.
 *
 * `make test-gpu` writes the binaries when TIKI_CUTE_PYTHON says where the package is, so that the
 * programs can be taken to a machine that has a card and no package (cute_card.h). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "gpu/cute_card.h"
#include "tiki/library.h"

enum { MOST_TENSORS = 5, MOST_SCRATCH = 4 };

typedef struct test_case {
    const char *name;
    tk_library_id id;
    size_t n_tensors;
    struct {
        tk_kscalar element;
        int64_t rows, columns; /* rows 0: a vector; columns -1: missing */
    } tensors[MOST_TENSORS];
    double number;
    size_t n_numbers;
    const char *schedule;
    bool is_sum; /* out = x + y of whole numbers, which is checked as well */
} test_case;

#define F32(rows, columns)                                                                         \
    { TK_K_F32, rows, columns }
#define F16(rows, columns)                                                                         \
    { TK_K_F16, rows, columns }
#define BF16(rows, columns)                                                                        \
    { TK_K_BF16, rows, columns }
#define MISSING                                                                                    \
    { TK_K_F32, 0, -1 }

static const test_case cases[] = {
    {"add 4096", TK_LIBRARY_ADD, 3, {F32(0, 4096), F32(0, 4096), F32(0, 4096)}, 0, 0, NULL, true},
    {"add of one", TK_LIBRARY_ADD, 3, {F32(0, 1), F32(0, 1), F32(0, 1)}, 0, 0, NULL, true},
    {"add f16", TK_LIBRARY_ADD, 3, {F16(0, 777), F16(0, 777), F16(0, 777)}, 0, 0, NULL, false},
    {"axpy", TK_LIBRARY_AXPY, 3, {BF16(0, 999), BF16(0, 999), BF16(0, 999)}, 0.75, 1, NULL, false},
    {"copy", TK_LIBRARY_COPY, 2, {F32(37, 53), BF16(37, 53)}, 0, 0, NULL, false},
    {"fill", TK_LIBRARY_FILL, 1, {F16(31, 17)}, 1.5, 1, NULL, false},
    {"transpose", TK_LIBRARY_TRANSPOSE, 2, {F32(130, 70), F32(70, 130)}, 0, 0, NULL, false},
    {"transpose f16", TK_LIBRARY_TRANSPOSE, 2, {F16(64, 96), F16(96, 64)}, 0, 0, NULL, false},
    {"rms_norm",
     TK_LIBRARY_RMS_NORM,
     4,
     {F32(64, 1000), F32(0, 1000), F32(64, 1000), F32(0, 64)},
     1e-5,
     1,
     "threads_per_row = 32, rows_per_block = 4, held = 8",
     false},
    {"rms_norm f16",
     TK_LIBRARY_RMS_NORM,
     4,
     {F16(33, 4096), F16(0, 4096), F16(33, 4096), MISSING},
     1e-5,
     1,
     NULL,
     false},
    {"rms_norm_backward",
     TK_LIBRARY_RMS_NORM_BACKWARD,
     5,
     {F32(48, 256), F32(0, 256), F32(48, 256), F32(48, 256), F32(0, 256)},
     1e-5,
     1,
     NULL,
     false},
    {"softmax", TK_LIBRARY_SOFTMAX, 2, {F32(40, 777), F32(40, 777)}, 0, 0, NULL, false},
    {"softmax bf16", TK_LIBRARY_SOFTMAX, 2, {BF16(9, 2048), BF16(9, 2048)}, 0, 0, NULL, false},
    {"softmax_backward",
     TK_LIBRARY_SOFTMAX_BACKWARD,
     3,
     {F32(17, 300), F32(17, 300), F32(17, 300)},
     0,
     0,
     NULL,
     false},
    {"column_sum", TK_LIBRARY_COLUMN_SUM, 2, {F16(100, 333), F16(0, 333)}, 0, 0, NULL, false},
    {"gemm", TK_LIBRARY_GEMM, 3, {F16(96, 72), F16(72, 80), F16(96, 80)}, 0, 0, NULL, false},
    {"hopper_gemm",
     TK_LIBRARY_HOPPER_GEMM,
     3,
     {F16(200, 72), F16(72, 136), F16(200, 136)},
     0,
     0,
     NULL,
     false},
    {"hopper_gemm bf16",
     TK_LIBRARY_HOPPER_GEMM,
     3,
     {BF16(512, 1024), BF16(1024, 512), BF16(512, 512)},
     0,
     0,
     NULL,
     false},
    {"hopper_gemm narrow",
     TK_LIBRARY_HOPPER_GEMM,
     3,
     {BF16(100, 64), BF16(64, 40), BF16(100, 40)},
     0,
     0,
     "tile_n = 64, stages = 3",
     false},
};
enum { CASES = sizeof cases / sizeof *cases, LARGE_NUMBER = 8 * CASES };

/* Timed alone. */
static const test_case large = {"hopper_gemm of 4096",
                                TK_LIBRARY_HOPPER_GEMM,
                                3,
                                {BF16(4096, 4096), BF16(4096, 4096), BF16(4096, 4096)},
                                0,
                                0,
                                NULL,
                                false};

/* ---- plans ---- */

static tk_library_tensor tensor_of(const test_case *c, size_t index) {
    int64_t rows = c->tensors[index].rows, columns = c->tensors[index].columns;
    if (columns < 0) return (tk_library_tensor){.rank = -1};
    if (!rows) return (tk_library_tensor){c->tensors[index].element, 1, {columns}, {1}, 16};
    int64_t align = columns * tk_kscalar_bytes(c->tensors[index].element) % 16 ? 0 : 16;
    return (tk_library_tensor){c->tensors[index].element, 2, {rows, columns}, {columns, 1}, align};
}

static size_t bytes_of(const test_case *c, size_t index) {
    int64_t rows = c->tensors[index].rows, columns = c->tensors[index].columns;
    if (columns < 0) return 0;
    return (size_t)((rows ? rows : 1) * columns * tk_kscalar_bytes(c->tensors[index].element));
}

static tk_status plan_of(const test_case *c, tk_library_plan **out) {
    tk_library_tensor tensors[MOST_TENSORS];
    tk_library_schedule schedule;
    for (size_t i = 0; i < c->n_tensors; i++) tensors[i] = tensor_of(c, i);
    TK_TRY(tk_library_schedule_default(c->id, c->n_tensors, tensors, &schedule));
    if (c->schedule) TK_TRY(tk_library_schedule_read(c->id, c->schedule, &schedule));
    return tk_library_plan_create(c->id, c->n_tensors, tensors, c->n_numbers, &c->number, &schedule,
                                  out);
}

/* The number of a launch's binary. */
static int number_of(int number, size_t launch) { return 8 * number + (int)launch; }

/* ---- writing ---- */

static tk_status write_case(const test_case *c, int number) {
    tk_library_plan *plan;
    TK_TRY(plan_of(c, &plan));
    tk_status status = TK_OK;
    for (size_t i = 0; i < tk_library_plan_launches(plan) && status == TK_OK; i++) {
        tk_library_launch launch;
        status = tk_library_plan_launch(plan, i, &launch);
        if (status == TK_OK) status = cute_write(launch.kernel, number + (int)i);
    }
    tk_library_plan_release(plan);
    return status;
}

static int write_all(void) {
    for (int i = 0; i <= CASES; i++) {
        const test_case *c = i < CASES ? &cases[i] : &large;
        if (write_case(c, number_of(i, 0)) == TK_OK) continue;
        fprintf(stderr, "%s: %s\n", c->name, tk_error_message());
        return 1;
    }
    return 0;
}

/* ---- running ---- */

typedef struct memory {
    tk_queue *queue;
    tk_buffer *tensors[MOST_TENSORS], *scratch[MOST_SCRATCH];
} memory;

static uint64_t bits_of(const memory *m, const tk_library_argument *argument) {
    switch (argument->kind) {
    case TK_LIBRARY_TENSOR:
        return m->tensors[argument->index] ? address_of(m->tensors[argument->index]) : 0;
    case TK_LIBRARY_SCRATCH:
        return address_of(m->scratch[argument->index]);
    default:
        return argument->bits;
    }
}

static void run_launch(const memory *m, const tk_library_launch *launch, tk_cuda_module *module) {
    tk_kargument arguments[TK_CUDA_MAX_PARAMS] = {{0}};
    cute_launch ready;
    for (size_t i = 0; i < launch->n_arguments; i++)
        arguments[i].bits = bits_of(m, &launch->arguments[i]);
    assert_int_equal(cute_prepare(launch->kernel, module, launch->n_arguments, arguments, &ready),
                     TK_OK);
    assert_int_equal(cute_run(&ready, m->queue), TK_OK);
}

/* Whole numbers, as bits of the element. */
static void draw(tk_kscalar element, unsigned char *to, size_t bytes, uint64_t seed) {
    size_t size = (size_t)tk_kscalar_bytes(element);
    for (size_t i = 0; i < bytes / size; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t bits = tk_kscalar_bits(element, (double)(seed >> 60) - 7.0);
        memcpy(to + i * size, &bits, size);
    }
}

static void fill_memory(const test_case *c, const tk_library_plan *plan, memory *m,
                        unsigned char **host) {
    for (size_t i = 0; i < c->n_tensors; i++) {
        size_t bytes = bytes_of(c, i);
        if (!bytes) continue;
        assert_int_equal(tk_buffer_new_on(device, m->queue, bytes, &m->tensors[i]), TK_OK);
        draw(c->tensors[i].element, host[i], bytes, i + 1);
        assert_int_equal(tk_cuda_upload(m->queue, address_of(m->tensors[i]), host[i], bytes),
                         TK_OK);
    }
    for (size_t i = 0; i < tk_library_plan_scratches(plan); i++) {
        size_t bytes = (size_t)tk_library_plan_scratch_bytes(plan, i);
        assert_int_equal(tk_buffer_new_on(device, m->queue, bytes, &m->scratch[i]), TK_OK);
    }
}

static void run_case(int number, bool by_cute, unsigned char **results) {
    const test_case *c = &cases[number];
    memory m = {0};
    tk_library_plan *plan;
    assert_int_equal(plan_of(c, &plan), TK_OK);
    assert_int_equal(tk_cuda_queue_open(cuda, &m.queue), TK_OK);
    fill_memory(c, plan, &m, results);
    for (size_t i = 0; i < tk_library_plan_launches(plan); i++) {
        tk_library_launch launch;
        tk_cuda_module *module;
        assert_int_equal(tk_library_plan_launch(plan, i, &launch), TK_OK);
        if ((by_cute ? cute_load(launch.kernel, number_of(number, i), &module)
                     : ptx_load(launch.kernel, &module)) != TK_OK)
            fail_msg("%s: %s", c->name, tk_error_message());
        run_launch(&m, &launch, module);
        tk_cuda_module_release(module);
    }
    for (size_t i = 0; i < c->n_tensors; i++)
        if (m.tensors[i])
            assert_int_equal(tk_cuda_download(m.queue, results[i], address_of(m.tensors[i]),
                                              bytes_of(c, i), NULL),
                             TK_OK);
    for (size_t i = 0; i < MOST_TENSORS; i++) tk_buffer_release(m.tensors[i]);
    for (size_t i = 0; i < MOST_SCRATCH; i++) tk_buffer_release(m.scratch[i]);
    tk_cuda_queue_close(m.queue);
    tk_library_plan_release(plan);
}

static void assert_sum(unsigned char **results, size_t bytes) {
    const float *x = (const float *)(void *)results[0], *y = (const float *)(void *)results[1],
                *z = (const float *)(void *)results[2];
    for (size_t i = 0; i < bytes / sizeof *z; i++) assert_true(z[i] == x[i] + y[i]);
}

static void test_same_bits(void **state) {
    (void)state;
    int wrong = 0;
    for (int number = 0; number < CASES; number++) {
        const test_case *c = &cases[number];
        bool right = true;
        unsigned char *by_ptx[MOST_TENSORS], *by_cute[MOST_TENSORS];
        for (size_t i = 0; i < MOST_TENSORS; i++) {
            size_t bytes = i < c->n_tensors ? bytes_of(c, i) : 0;
            by_ptx[i] = calloc(1, bytes + 16);
            by_cute[i] = calloc(1, bytes + 16);
            assert_true(by_ptx[i] && by_cute[i]);
        }
        run_case(number, false, by_ptx);
        run_case(number, true, by_cute);
        if (c->is_sum) assert_sum(by_cute, bytes_of(c, 2));
        for (size_t i = 0; i < c->n_tensors; i++)
            if (memcmp(by_ptx[i], by_cute[i], bytes_of(c, i))) {
                printf("%s: tensor %zu differs between the targets\n", c->name, i);
                right = false;
            }
        if (right) printf("%s: the same bits\n", c->name);
        wrong += !right;
        for (size_t i = 0; i < MOST_TENSORS; i++) {
            free(by_ptx[i]);
            free(by_cute[i]);
        }
    }
    assert_int_equal(wrong, 0);
}

/* ---- one binary for many calls ---- */

enum { ADD = 0, AXPY = 3, ROOM = 1 << 16, NOTHING_WRITTEN = 0x5a };

/* Where the tensors of a call lie in one allocation: behind each other, at multiples of 16. */
static size_t place_of(const test_case *c, size_t index) {
    size_t at = 0;
    for (size_t i = 0; i < index; i++) at += (bytes_of(c, i) + 15) & ~(size_t)15;
    return at;
}

static uint64_t packed_bits(const test_case *c, const tk_buffer *all,
                            const tk_library_argument *argument) {
    if (argument->kind != TK_LIBRARY_TENSOR) return argument->bits;
    return address_of(all) + place_of(c, (size_t)argument->index);
}

/* The call's launch by a module of another call, which is that of the same kernel. */
static void run_packed(const test_case *c, const tk_kernel *loaded, tk_cuda_module *module,
                       tk_queue *queue, const tk_buffer *all) {
    tk_kargument arguments[TK_CUDA_MAX_PARAMS] = {{0}};
    tk_library_plan *plan;
    tk_library_launch launch;
    cute_launch ready;
    assert_int_equal(plan_of(c, &plan), TK_OK);
    assert_int_equal(tk_library_plan_launches(plan), 1);
    assert_int_equal(tk_library_plan_launch(plan, 0, &launch), TK_OK);
    assert_true(tk_kernel_equal(launch.kernel, loaded));
    for (size_t i = 0; i < launch.n_arguments; i++)
        arguments[i].bits = packed_bits(c, all, &launch.arguments[i]);
    tk_status status = cute_prepare(launch.kernel, module, launch.n_arguments, arguments, &ready);
    if (status == TK_OK) status = cute_run(&ready, queue);
    assert_int_equal(status, TK_OK);
    tk_library_plan_release(plan);
}

/* x, y and what stands behind y as it was; z is scale x + y of whole numbers. */
static void assert_packed(const test_case *c, const unsigned char *before,
                          const unsigned char *after, double scale) {
    tk_kscalar element = c->tensors[0].element;
    size_t size = (size_t)tk_kscalar_bytes(element), z = place_of(c, 2), end = z + bytes_of(c, 2);
    assert_memory_equal(before, after, z);
    for (size_t i = 0; i < bytes_of(c, 2) / size; i++) {
        uint64_t x = 0, y = 0, found = 0;
        memcpy(&x, before + i * size, size);
        memcpy(&y, before + place_of(c, 1) + i * size, size);
        memcpy(&found, after + z + i * size, size);
        double sum = scale * tk_kscalar_value(element, x) + tk_kscalar_value(element, y);
        assert_true(found == tk_kscalar_bits(element, sum));
    }
    assert_memory_equal(before + end, after + end, ROOM - end);
}

static void run_sizes(int number, double scale) {
    static const int64_t sizes[] = {4096, 777, 5, 1, 0, 4096};
    static unsigned char before[ROOM], after[ROOM];
    test_case c = cases[number];
    tk_library_plan *plan;
    tk_library_launch launch;
    tk_cuda_module *module;
    tk_queue *queue;
    tk_buffer *all;
    assert_int_equal(plan_of(&c, &plan), TK_OK);
    assert_int_equal(tk_library_plan_launch(plan, 0, &launch), TK_OK);
    assert_int_equal(tk_cuda_queue_open(cuda, &queue), TK_OK);
    if (cute_load(launch.kernel, number_of(number, 0), &module) != TK_OK)
        fail_msg("%s", tk_error_message());
    assert_int_equal(tk_buffer_new_on(device, queue, ROOM, &all), TK_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int t = 0; t < 3; t++) c.tensors[t].columns = sizes[i];
        memset(before, NOTHING_WRITTEN, sizeof before);
        for (size_t t = 0; t < 2; t++)
            draw(c.tensors[t].element, before + place_of(&c, t), bytes_of(&c, t), t + 1);
        assert_int_equal(tk_cuda_upload(queue, address_of(all), before, ROOM), TK_OK);
        run_packed(&c, launch.kernel, module, queue, all);
        assert_int_equal(tk_cuda_download(queue, after, address_of(all), ROOM, NULL), TK_OK);
        assert_packed(&c, before, after, scale);
    }
    tk_buffer_release(all);
    tk_cuda_module_release(module);
    tk_cuda_queue_close(queue);
    tk_library_plan_release(plan);
}

/* Whole, partial and empty tiles by one binary that is loaded once; operands packed in one
 * allocation; a scalar for all elements. */
static void test_one_binary(void **state) {
    (void)state;
    run_sizes(ADD, 1.0);
    run_sizes(AXPY, cases[AXPY].number);
}

/* ---- speed ---- */

/* A large product by wgmma: where its sums were touched or its instructions put one behind the
 * other, it would take several times as long as Tiki's own. */
enum { LARGE = 4096, LAUNCHES = 20 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double time_of(const cute_launch *ready, const memory *m) {
    double best = 1e9;
    for (int turn = 0; turn < 4; turn++) {
        float first;
        double start = seconds();
        for (int i = 0; i < LAUNCHES; i++) assert_int_equal(cute_run(ready, m->queue), TK_OK);
        assert_int_equal(
            tk_cuda_download(m->queue, &first, address_of(m->tensors[2]), sizeof first, NULL),
            TK_OK);
        double each = (seconds() - start) / LAUNCHES;
        if (turn && each < best) best = each;
    }
    return best;
}

static double time_target(bool by_cute) {
    const test_case *c = &large;
    unsigned char *host[MOST_TENSORS] = {NULL};
    memory m = {0};
    tk_library_plan *plan;
    tk_library_launch launch;
    tk_cuda_module *module;
    tk_kargument arguments[TK_CUDA_MAX_PARAMS] = {{0}};
    cute_launch ready;
    assert_int_equal(plan_of(c, &plan), TK_OK);
    assert_int_equal(tk_cuda_queue_open(cuda, &m.queue), TK_OK);
    for (size_t i = 0; i < c->n_tensors; i++) host[i] = calloc(1, bytes_of(c, i));
    fill_memory(c, plan, &m, host);
    assert_int_equal(tk_library_plan_launch(plan, 0, &launch), TK_OK);
    assert_int_equal(by_cute ? cute_load(launch.kernel, LARGE_NUMBER, &module)
                             : ptx_load(launch.kernel, &module),
                     TK_OK);
    for (size_t i = 0; i < launch.n_arguments; i++)
        arguments[i].bits = bits_of(&m, &launch.arguments[i]);
    assert_int_equal(cute_prepare(launch.kernel, module, launch.n_arguments, arguments, &ready),
                     TK_OK);
    double each = time_of(&ready, &m);
    tk_cuda_module_release(module);
    for (size_t i = 0; i < MOST_TENSORS; i++) tk_buffer_release(m.tensors[i]);
    for (size_t i = 0; i < c->n_tensors; i++) free(host[i]);
    tk_cuda_queue_close(m.queue);
    tk_library_plan_release(plan);
    return each;
}

static void test_speed(void **state) {
    (void)state;
    double flops = 2.0 * LARGE * LARGE * LARGE, by_ptx = time_target(false),
           by_cute = time_target(true);
    printf("hopper_gemm of %d: %.0f TFLOP/s by PTX, %.0f by CuTe, %.3f of its time\n", LARGE,
           flops / by_ptx * 1e-12, flops / by_cute * 1e-12, by_cute / by_ptx);
    assert_true(by_cute < 1.5 * by_ptx);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_one_binary),
                                       cmocka_unit_test(test_speed)};
    if (!cute_begin("test_gpu_cute", argc, argv)) return CARD_SKIPPED;
    if (cute_writing) return write_all();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tk_device_close(device);
    return failed;
}
