/* The emulator with all its checks on one core: matrix operations in GFLOP/s over whole products of
 * the library (their copies and stores included), other kernels in lane operations a second; and
 * the time from a kernel to PTX. A figure is the best of several runs: the machine may be shared.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tiki/emulator.h"
#include "tiki/library.h"
#include "tiki/runtime.h"
#include "tiki/target.h"

enum { REPEATS = 3, MOST = 32, BYTES = 8 << 20 };

static unsigned char *memory[4];

/* Of the processor: one thread works, and others may share it. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void need(tk_status status) {
    if (status == TK_OK) return;
    fprintf(stderr, "%s\n", tk_error_message());
    exit(1);
}

static tk_library_tensor matrix(tk_kscalar element, int64_t rows, int64_t columns) {
    return (tk_library_tensor){.element = element,
                               .rank = 2,
                               .shape = {rows, columns},
                               .stride = {columns, 1},
                               .align = 16};
}

static tk_emulation *emulate(const tk_library_launch *launch) {
    tk_kargument arguments[MOST] = {{0}};
    tk_kbuffer buffers[MOST] = {{0}};
    tk_emulation *emulation;
    for (size_t i = 0; i < launch->n_arguments; i++) {
        arguments[i].bits = launch->arguments[i].bits;
        if (launch->arguments[i].kind == TK_LIBRARY_TENSOR)
            buffers[i] = (tk_kbuffer){memory[launch->arguments[i].index], BYTES, 0};
    }
    tk_kemulate how = {
        .n_arguments = launch->n_arguments, .arguments = arguments, .buffers = buffers};
    need(tk_kernel_emulate(launch->kernel, &how, &emulation));
    return emulation;
}

/* The first launch of a plan. */
static tk_library_plan *plan_of(tk_library_id id, size_t count, const tk_library_tensor *tensors,
                                tk_library_launch *out) {
    static const double eps = 1e-6;
    tk_library_plan *plan;
    need(tk_library_plan_create(id, count, tensors, tk_library_numbers(id), &eps, NULL, &plan));
    need(tk_library_plan_launch(plan, 0, out));
    return plan;
}

static void measure(const char *name, tk_library_id id, size_t count,
                    const tk_library_tensor *tensors, bool matrices) {
    tk_library_launch launch;
    tk_library_plan *plan = plan_of(id, count, tensors, &launch);
    double best = 0;
    for (int i = 0; i < REPEATS; i++) {
        double begin = seconds();
        tk_emulation *emulation = emulate(&launch);
        double took = seconds() - begin;
        tk_ktotals totals = tk_emulation_totals(emulation);
        double work = (double)(matrices ? totals.flops : totals.lane_operations);
        if (tk_emulation_findings(emulation)) fprintf(stderr, "%s has findings\n", name), exit(1);
        if (work / took > best) best = work / took;
        tk_emulation_release(emulation);
    }
    if (matrices)
        printf("%-44s %8.2f GFLOP/s\n", name, best * 1e-9);
    else
        printf("%-44s %8.0f M lane operations/s\n", name, best * 1e-6);
    tk_library_plan_release(plan);
}

/* One instruction 64 times in a loop, a block of `threads`. */
static void measure_instruction(const char *name, int threads, const char *before,
                                const char *instruction, const char *after) {
    static char text[1 << 15];
    tk_kernel *kernel;
    double best = 0;
    size_t at =
        (size_t)sprintf(text,
                        "tiki kernel 1\nkernel k() form thread grid (8, 1, 1) block (%d, 1, "
                        "1)\n{\n%%t = thread_index.x : i32\n%s\nfor %%i = i32(0) to i32(16) "
                        "step i32(1) {\n",
                        threads, before);
    for (int i = 0; i < 64; i++) at += (size_t)sprintf(text + at, "%s\n", instruction);
    sprintf(text + at, "%s\n}\n}\n", after);
    need(tk_kernel_parse(text, "bench", &kernel));
    tk_library_launch launch = {.kernel = kernel};
    for (int i = 0; i < REPEATS; i++) {
        double begin = seconds();
        tk_emulation *emulation = emulate(&launch);
        double took = seconds() - begin, work = (double)tk_emulation_totals(emulation).flops;
        if (tk_emulation_findings(emulation)) fprintf(stderr, "%s has findings\n", name), exit(1);
        if (work / took > best) best = work / took;
        tk_emulation_release(emulation);
    }
    printf("%-44s %8.2f GFLOP/s\n", name, best * 1e-9);
    tk_kernel_release(kernel);
}

#define OPERAND                                                                                    \
    "%s = shared [align = 1024] : shared<f16, \"16384:1\">\n%p = address %s : ptr<f16, "           \
    "shared>\n%ti = mul %t, i32(8) : i32\n%v = splat f16(1) : f16x8\nfor %j = %ti to i32(16384) "  \
    "step i32(1024) {\n%q = offset %p, %j : ptr<f16, shared>\nstore %q, %v\n}\nproxy_fence.async_" \
    "shared\nbarrier\n%b = matrix_descriptor.swizzle_128 %p [stride = 1024] : i64\n%d = "          \
    "registers "                                                                                   \
    ": regs<f32, \"128:1\">"

static void measure_instructions(void) {
    measure_instruction("mma m16n8k16 f16", 32,
                        "%a = registers : regs<f16, \"8:1\">\n%d = registers : regs<f32, "
                        "\"4:1\">\n%v = splat f16(1) : f16x8\nset %a, %v\n%z = splat f32(0) : "
                        "f32x4\nset %d, %z",
                        "mma %d, %a, %a, %d [m = 16, n = 8, k = 16]", "");
    measure_instruction("wgmma m64n256k16 f16", 128, OPERAND "\nwgmma_fence",
                        "wgmma.a_f16.b_f16 %d, %b, %b [m = 64, n = 256, k = 16]",
                        "wgmma_commit\nwgmma_wait");
}

static void measure_text(const char *name, tk_library_id id, size_t count,
                         const tk_library_tensor *tensors) {
    tk_library_launch launch;
    tk_library_plan *plan = plan_of(id, count, tensors, &launch);
    double best = 1e9;
    for (int i = 0; i < 10 * REPEATS; i++) {
        tk_artifact *artifact;
        double begin = seconds();
        tk_status status = tk_kernel_build_ptx(launch.kernel, NULL, &artifact);
        double took = seconds() - begin;
        if (status != TK_OK) {
            printf("%-44s %s\n", name, tk_error_message());
            break;
        }
        if (took < best) best = took;
        tk_artifact_release(artifact);
    }
    if (best < 1e9) printf("%-44s %8.2f ms to PTX\n", name, best * 1e3);
    tk_library_plan_release(plan);
}

int main(void) {
    for (int i = 0; i < 4; i++) {
        memory[i] = aligned_alloc(256, BYTES);
        if (!memory[i]) return 1;
        memset(memory[i], 0, BYTES);
    }
    need(tk_threads_set(1));
    tk_library_tensor a = matrix(TK_K_F16, 256, 512), b = matrix(TK_K_F16, 512, 256),
                      d = matrix(TK_K_F32, 256, 256), product[] = {a, b, d};
    tk_library_tensor c = matrix(TK_K_BF16, 256, 512), e = matrix(TK_K_BF16, 512, 256),
                      wide[] = {c, e, d};
    tk_library_tensor x = matrix(TK_K_F32, 512, 2048), none = {.rank = -1};
    tk_library_tensor norm[] = {x, none, x, none}, two[] = {x, x},
                      turned[] = {x, matrix(TK_K_F32, 2048, 512)};
    measure_instructions();
    measure("gemm f16 256x256x512 (mma.sync)", TK_LIBRARY_GEMM, 3, product, true);
    measure("hopper_gemm bf16 256x256x512 (wgmma)", TK_LIBRARY_HOPPER_GEMM, 3, wide, true);
    measure("rms_norm f32 512x2048", TK_LIBRARY_RMS_NORM, 4, norm, false);
    measure("softmax f32 512x2048", TK_LIBRARY_SOFTMAX, 2, two, false);
    measure("transpose f32 512x2048", TK_LIBRARY_TRANSPOSE, 2, turned, false);
    measure_text("gemm f16", TK_LIBRARY_GEMM, 3, product);
    measure_text("hopper_gemm bf16", TK_LIBRARY_HOPPER_GEMM, 3, wide);
    for (int i = 0; i < 4; i++) free(memory[i]);
    return 0;
}
