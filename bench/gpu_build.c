/* From a call of the library to its kernels loaded and handed to a queue, each in a process of its
 * own that has run another kernel before: with the binaries in the cache of kernels ("warm"), and
 * with an empty one ("cold"). Beside that what each step of it takes.
 *
 * usage: gpu_build [NAME [ROUNDS]]
 *
 * On a card, or with the stand-in driver in TIKI_CUDA_DRIVER for everything but the driver's own
 * loading. Milliseconds; warm is the median and the fastest of the rounds. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "array/executor.h"
#include "base/error.h"
#include "compile/plan_record.h"
#include "compile/plans.h"
#include "kernel/digest.h"
#include "runtime/buffer.h"
#include "runtime/cuda_module.h"
#include "tiki/gpu.h"

#define MOST_ROUNDS 64

typedef struct bench_case {
    tk_library_id id;
    tk_dtype dtype;
    int64_t rows, columns; /* products: of all three matrices */
} bench_case;

static const bench_case cases[] = {
    {TK_LIBRARY_ADD, TK_FLOAT32, 4096, 4096},
    {TK_LIBRARY_AXPY, TK_FLOAT32, 4096, 4096},
    {TK_LIBRARY_COPY, TK_FLOAT32, 4096, 4096},
    {TK_LIBRARY_FILL, TK_FLOAT32, 4096, 4096},
    {TK_LIBRARY_TRANSPOSE, TK_FLOAT32, 4096, 4096},
    {TK_LIBRARY_RMS_NORM, TK_FLOAT16, 4096, 4096},
    {TK_LIBRARY_RMS_NORM, TK_FLOAT32, 8192, 64},
    {TK_LIBRARY_RMS_NORM_BACKWARD, TK_FLOAT16, 4096, 4096},
    {TK_LIBRARY_SOFTMAX, TK_BFLOAT16, 4096, 1024},
    {TK_LIBRARY_SOFTMAX, TK_BFLOAT16, 512, 32768},
    {TK_LIBRARY_SOFTMAX, TK_BFLOAT16, 128, 131072},
    {TK_LIBRARY_SOFTMAX_BACKWARD, TK_BFLOAT16, 4096, 4096},
    {TK_LIBRARY_SOFTMAX_BACKWARD, TK_BFLOAT16, 512, 32768},
    {TK_LIBRARY_COLUMN_SUM, TK_FLOAT32, 4096, 4096},
    {TK_LIBRARY_GEMM, TK_BFLOAT16, 4096, 4096},
    {TK_LIBRARY_HOPPER_GEMM, TK_BFLOAT16, 4096, 4096},
};

/* What a child measures. */
typedef struct times {
    double total, driver;                  /* of both */
    double plan, digest, text, assembling; /* of cold ones */
    double operations, text_kib, binary_kib;
} times;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void need(tk_status status) {
    if (status == TK_OK) return;
    printf("gpu_build: %s\n", tk_error_message());
    fflush(stdout);
    _exit(1);
}

/* ---- a call ---- */

typedef struct call {
    tk_device *device;
    tk_queue *queue;
    size_t n_tensors;
    tk_strided tensors[TK_PLAN_TENSORS];
} call;

static void set_tensor(call *c, size_t index, tk_dtype dtype, int rank, const int64_t *shape) {
    tk_strided *view = &c->tensors[index];
    tk_buffer *buffer;
    *view = (tk_strided){.rank = rank, .dtype = dtype, .size = 1};
    for (int axis = rank - 1; axis >= 0; axis--) {
        view->shape[axis] = shape[axis];
        view->strides[axis] = view->size;
        view->size *= shape[axis];
    }
    need(tk_buffer_new_on(c->device, c->queue, (size_t)view->size * tk_dtype_size(dtype), &buffer));
    view->data = buffer->data;
}

static void set_tensors(call *c, const bench_case *of) {
    const int64_t shape[] = {of->rows, of->columns}, turned[] = {of->columns, of->rows};
    c->n_tensors = tk_library_tensors(of->id);
    for (size_t i = 0; i < c->n_tensors; i++) {
        bool row = (of->id == TK_LIBRARY_RMS_NORM && i == 1) ||
                   (of->id == TK_LIBRARY_RMS_NORM_BACKWARD && (i == 1 || i == 4)) ||
                   (of->id == TK_LIBRARY_COLUMN_SUM && i == 1);
        bool turns = of->id == TK_LIBRARY_TRANSPOSE && i == 1;
        set_tensor(c, i, of->dtype, row ? 1 : 2, row ? shape + 1 : turns ? turned : shape);
    }
    if (of->id == TK_LIBRARY_RMS_NORM) c->tensors[3].rank = -1;
}

static void run(const call *c, const bench_case *of) {
    static const double number = 1e-5;
    tk_body_call body = {.device = c->device, .queue = c->queue};
    tk_library_run run = {.id = of->id,
                          .n_tensors = c->n_tensors,
                          .tensors = c->tensors,
                          .n_numbers = tk_library_numbers(of->id),
                          .numbers = &number};
    need(tk_run_library(&body, &run));
}

/* ---- what a child does ---- */

static tk_library_plan *plan_of(const call *c, const bench_case *of) {
    static const double number = 1e-5;
    tk_library_tensor tensors[TK_PLAN_TENSORS];
    tk_library_plan *plan;
    for (size_t i = 0; i < c->n_tensors; i++) tk_library_tensor_of(&c->tensors[i], &tensors[i]);
    need(tk_library_plan_create(of->id, c->n_tensors, tensors, tk_library_numbers(of->id), &number,
                                NULL, &plan));
    return plan;
}

/* Memory that the call takes besides its tensors lies ready, as in a program that runs. */
static void take_scratches(const call *c, const bench_case *of) {
    tk_library_plan *plan = plan_of(c, of);
    tk_buffer *buffers[TK_PLAN_TENSORS];
    size_t count = tk_library_plan_scratches(plan);
    for (size_t i = 0; i < count; i++)
        need(tk_buffer_new_on(c->device, c->queue, (size_t)tk_library_plan_scratch_bytes(plan, i),
                              &buffers[i]));
    for (size_t i = 0; i < count; i++) tk_buffer_release(buffers[i]);
    tk_library_plan_release(plan);
}

static void open_call(call *c, const bench_case *of) {
    static const bench_case first = {TK_LIBRARY_FILL, TK_FLOAT64, 3, 5};
    *c = (call){0};
    need(tk_device_open(&tk_driver_cuda, 0, NULL, &c->device));
    need(tk_cuda_queue_open(tk_cuda_of(c->device), &c->queue));
    set_tensors(c, &first);
    run(c, &first);
    set_tensors(c, of);
    take_scratches(c, of);
    need(tk_cuda_queue_wait(c->queue, tk_cuda_queue_ticket(c->queue), NULL));
}

/* The driver's share, on a binary that it has not seen: the name of the entry stays, its padding
 * differs. */
static double load_again(const call *c, const tk_artifact *artifact) {
    size_t bytes;
    const void *binary = tk_artifact_binary(artifact, &bytes);
    unsigned char *copy = malloc(bytes + 1);
    tk_cuda_module *module;
    tk_cuda_function *function;
    memcpy(copy, binary, bytes);
    copy[bytes] = 0;
    double begin = now();
    need(tk_cuda_module_load(tk_cuda_of(c->device), copy, bytes + 1, "again", &module));
    need(tk_cuda_module_function(module, tk_kernel_name(tk_artifact_kernel(artifact)), &function));
    double taken = now() - begin;
    free(copy);
    return taken;
}

static void measure_steps(const tk_kernel *kernel, const char *arch, times *out) {
    unsigned char digest[TK_SHA256_BYTES];
    tk_build how = {.arch = arch};
    tk_artifact *artifact;
    double begin = now();
    need(tk_kernel_digest(kernel, false, digest));
    out->digest += now() - begin;
    begin = now();
    need(tk_kernel_build_ptx(kernel, &how, &artifact));
    out->text += now() - begin;
    out->text_kib += (double)strlen(tk_artifact_text(artifact)) / 1024;
    tk_artifact_release(artifact);
    how.emit = TK_EMIT_BINARY;
    begin = now();
    need(tk_kernel_build_ptx(kernel, &how, &artifact));
    out->assembling += now() - begin;
    out->operations += kernel->n_values;
    tk_artifact_release(artifact);
}

static void measure(const bench_case *of, bool cold, times *out) {
    call c;
    open_call(&c, of);
    double begin = now();
    run(&c, of);
    out->total = now() - begin;
    begin = now();
    tk_library_plan *plan = plan_of(&c, of);
    out->plan = now() - begin;
    tk_build how = {.arch = tk_cuda_of(c.device)->info.major == 9 ? "sm_90a" : "sm_80"};
    for (size_t i = 0; i < tk_library_plan_launches(plan); i++) {
        tk_library_launch launch;
        tk_artifact *artifact;
        size_t bytes;
        need(tk_library_plan_launch(plan, i, &launch));
        need(tk_kernel_build_cached(launch.kernel, &how, NULL, &artifact, NULL));
        out->driver += load_again(&c, artifact);
        (void)tk_artifact_binary(artifact, &bytes);
        out->binary_kib += (double)bytes / 1024;
        tk_artifact_release(artifact);
        if (cold) measure_steps(launch.kernel, how.arch, out);
    }
    tk_library_plan_release(plan);
}

/* ---- processes ---- */

/* All zero when the child failed. */
static times in_child(const bench_case *of, const char *cache, bool cold) {
    int ends[2];
    times got = {0};
    fflush(stdout);
    if (pipe(ends)) return got;
    pid_t child = fork();
    if (child == 0) {
        setenv("TIKI_CACHE", cache, 1);
        measure(of, cold, &got);
        _exit(write(ends[1], &got, sizeof got) != sizeof got);
    }
    close(ends[1]);
    if (read(ends[0], &got, sizeof got) != sizeof got) got = (times){0};
    close(ends[0]);
    waitpid(child, NULL, 0);
    return got;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const bench_case *of, int rounds) {
    const char *base = getenv("TMPDIR");
    char folder[300], command[320];
    double total[MOST_ROUNDS], driver[MOST_ROUNDS];
    snprintf(folder, sizeof folder, "%s/gpu_build_XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return;
    times cold = in_child(of, folder, true);
    for (int i = 0; i < rounds; i++) {
        times warm = in_child(of, folder, false);
        total[i] = warm.total;
        driver[i] = warm.driver;
    }
    qsort(total, (size_t)rounds, sizeof *total, by_value);
    qsort(driver, (size_t)rounds, sizeof *driver, by_value);
    printf("%-17s %-8s %5lldx%-6lld | %6.0f %6.1f %6.1f | %7.3f %7.3f | %7.3f | %7.1f %6.2f %6.2f "
           "%6.2f %7.1f\n",
           tk_library_name(of->id), tk_dtype_name(of->dtype), (long long)of->rows,
           (long long)of->columns, cold.operations, cold.text_kib, cold.binary_kib,
           total[rounds / 2], total[0], driver[rounds / 2], cold.total, cold.plan, cold.digest,
           cold.text, cold.assembling - cold.text);
    fflush(stdout);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command)) printf("%s is left\n", folder);
}

/* Asked in a child: a driver that was started does not work in children. */
static bool has_card(void) {
    int code = 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        tk_gpu_info info;
        bool there = tk_gpu_describe(0, &info) == TK_OK;
        if (there)
            printf("gpu_build on %s, driver of CUDA %d.%d\n", info.name, info.driver / 1000,
                   info.driver % 1000 / 10);
        else
            printf("gpu_build: skipped, %s\n", tk_error_message());
        fflush(stdout);
        _exit(!there);
    }
    return waitpid(child, &code, 0) == child && code == 0;
}

int main(int argc, char **argv) {
    int rounds = argc > 2 ? atoi(argv[2]) : 7;
    if (rounds < 1 || rounds > MOST_ROUNDS) return 2;
    if (!has_card()) return 77;
    printf(
        "# kernel, dtype, rows x columns | values, KiB of text, of binary | warm: all, fastest | "
        "of it the driver | cold: all; plan, digest, text, assembler\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc < 2 || !argv[1][0] || strstr(tk_library_name(cases[i].id), argv[1]))
            report(&cases[i], rounds);
    return 0;
}
