/* The two targets against each other on a card: kernels of the library as NVIDIA's CuTe compiler
 * builds them and as Tiki's PTX is assembled, launched by the same contract on the same memory,
 * must give the same bits.
 *
 *     test_gpu_cute --write FOLDER    builds the CuTe target's binaries, where the package is
 *     test_gpu_cute                   reads them from the folder `cute` beside the program
 *
 * `make test-gpu` writes them when TIKI_CUTE_PYTHON says where the package is, so that the programs
 * can be taken to a machine that has a card and no package. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "gpu/card.h"
#include "kernel/contract.h"
#include "kernel/shared.h"
#include "tiki/io.h"
#include "tiki/library.h"
#include "tiki/target.h"

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
     "threads_per_row = 32, rows_per_block = 4",
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
};
enum { CASES = sizeof cases / sizeof *cases };

static char folder[1024];

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

static void path_of(int number, size_t launch, char *out, size_t bytes) {
    snprintf(out, bytes, "%s/%d-%zu.cubin", folder, number, launch);
}

/* ---- writing ---- */

static tk_status write_case(int number) {
    tk_library_plan *plan;
    TK_TRY(plan_of(&cases[number], &plan));
    tk_status status = TK_OK;
    for (size_t i = 0; i < tk_library_plan_launches(plan) && status == TK_OK; i++) {
        tk_library_launch launch;
        tk_artifact *artifact = NULL;
        tk_build how = {.emit = TK_EMIT_BINARY};
        char path[1200];
        size_t bytes;
        status = tk_library_plan_launch(plan, i, &launch);
        if (status == TK_OK) status = tk_kernel_build_cute(launch.kernel, &how, &artifact);
        if (status != TK_OK) break;
        const void *binary = tk_artifact_binary(artifact, &bytes);
        path_of(number, i, path, sizeof path);
        status = tk_file_write(path, binary, bytes);
        tk_artifact_release(artifact);
    }
    tk_library_plan_release(plan);
    return status;
}

static int write_all(const char *to) {
    snprintf(folder, sizeof folder, "%s", to);
    mkdir(folder, 0777);
    for (int i = 0; i < CASES; i++)
        if (write_case(i) != TK_OK) {
            fprintf(stderr, "%s: %s\n", cases[i].name, tk_error_message());
            return 1;
        }
    return 0;
}

/* ---- running ---- */

typedef struct memory {
    tk_queue *queue;
    tk_buffer *tensors[MOST_TENSORS], *scratch[MOST_SCRATCH];
} memory;

static tk_status load(const test_case *c, int number, size_t index, const tk_kernel *kernel,
                      bool by_cute, tk_cuda_module **out) {
    if (!by_cute) {
        tk_artifact *artifact;
        TK_TRY(tk_kernel_build_ptx(kernel, NULL, &artifact));
        const char *text = tk_artifact_text(artifact);
        tk_status status = tk_cuda_module_load(cuda, text, strlen(text), c->name, out);
        tk_artifact_release(artifact);
        return status;
    }
    char path[1200], *data;
    size_t bytes;
    path_of(number, index, path, sizeof path);
    TK_TRY(tk_file_read(path, &data, &bytes));
    tk_status status = tk_cuda_module_load(cuda, data, bytes, c->name, out);
    tk_text_free(data);
    return status;
}

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
    tk_cuda_packing packing = {0};
    const void *values[TK_CUDA_MAX_PARAMS];
    _Alignas(64) unsigned char packed[TK_CUDA_MAX_PARAM_BYTES];
    tk_kdevice facts = {
        .sms = cuda->info.multiprocessors, .shared_bytes = cuda->info.max_shared, .threads = 2048};
    tk_klaunch shape;
    tk_kshared_map shared;
    tk_cuda_function *function;
    tk_cuda_prepared prepared;
    for (size_t i = 0; i < launch->n_arguments; i++) {
        size_t bytes = (size_t)tk_kparam_bytes(launch->kernel, (int)i);
        arguments[i].bits = bits_of(m, &launch->arguments[i]);
        values[i] = &arguments[i].bits;
        assert_int_equal(tk_cuda_packing_add(&packing, bytes, bytes), TK_OK);
    }
    tk_cuda_pack(&packing, values, packed);
    assert_int_equal(
        tk_kernel_launch(launch->kernel, &facts, launch->n_arguments, arguments, &shape), TK_OK);
    assert_int_equal(tk_cuda_module_function(module, tk_kernel_name(launch->kernel), &function),
                     TK_OK);
    assert_int_equal(tk_kshared_place(launch->kernel, NULL, &shared), TK_OK);
    tk_cuda_launch how = {.function = function,
                          .dynamic_shared = (size_t)tk_kshared_total(&shared, shape.dynamic_shared),
                          .packing = &packing,
                          .site = "two targets"};
    for (int i = 0; i < 3; i++) {
        how.grid[i] = (uint32_t)shape.grid[i];
        how.block[i] = (uint32_t)shape.block[i];
    }
    assert_int_equal(tk_cuda_launch_prepare(&how, &prepared), TK_OK);
    assert_int_equal(tk_cuda_launch_run(&prepared, m->queue, NULL, packed), TK_OK);
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
        if (load(c, number, i, launch.kernel, by_cute, &module) != TK_OK)
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
    for (int number = 0; number < CASES; number++) {
        const test_case *c = &cases[number];
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
            if (memcmp(by_ptx[i], by_cute[i], bytes_of(c, i)))
                fail_msg("%s: tensor %zu differs between the targets", c->name, i);
        printf("%s: the same bits\n", c->name);
        for (size_t i = 0; i < MOST_TENSORS; i++) {
            free(by_ptx[i]);
            free(by_cute[i]);
        }
    }
}

static bool find_folder(const char *program) {
    char path[1200];
    const char *slash = strrchr(program, '/');
    snprintf(folder, sizeof folder, "%.*s/cute", slash ? (int)(slash - program) : 1,
             slash ? program : ".");
    path_of(0, 0, path, sizeof path);
    struct stat info;
    return stat(path, &info) == 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
    if (argc == 3 && !strcmp(argv[1], "--write")) return write_all(argv[2]);
    if (!find_folder(argv[0])) {
        printf("test_gpu_cute: skipped, no binaries of the CuTe compiler beside the program\n");
        return CARD_SKIPPED;
    }
    if (!open_card("test_gpu_cute")) return CARD_SKIPPED;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tk_device_close(device);
    return failed;
}
