/* Kernels of the CuTe target on a card, in programs that run on two machines:
 *
 *     PROGRAM --write FOLDER    builds the binaries, where NVIDIA's package is
 *     PROGRAM                   reads them from the folder `cute` beside it, and launches them
 *
 * Both go through the same kernels in the same order, so a binary is found by its number. */
#ifndef GPU_CUTE_CARD_H
#define GPU_CUTE_CARD_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compile/run_cuda.h"
#include "gpu/card.h"
#include "kernel/shared.h"
#include "tiki/emulator.h"
#include "tiki/io.h"
#include "tiki/target.h"

static char cute_folder[1024];
static const char *cute_program;

static inline void cute_path(int number, char *out, size_t bytes) {
    snprintf(out, bytes, "%s/%s-%d.cubin", cute_folder, cute_program, number);
}

/* ---- writing ---- */

static inline tk_status cute_write(const tk_kernel *kernel, int number) {
    tk_artifact *artifact = NULL;
    tk_build how = {.emit = TK_EMIT_BINARY};
    char path[1200];
    size_t bytes;
    TK_TRY(tk_kernel_build_cute(kernel, &how, &artifact));
    const void *binary = tk_artifact_binary(artifact, &bytes);
    cute_path(number, path, sizeof path);
    tk_status status = tk_file_write(path, binary, bytes);
    tk_artifact_release(artifact);
    return status;
}

/* ---- loading ---- */

static inline tk_status cute_load(const tk_kernel *kernel, int number, tk_cuda_module **out) {
    char path[1200], *data;
    size_t bytes;
    cute_path(number, path, sizeof path);
    TK_TRY(tk_file_read(path, &data, &bytes));
    tk_status status = tk_cuda_module_load(cuda, data, bytes, tk_kernel_name(kernel), out);
    tk_text_free(data);
    return status;
}

/* The same kernel as Tiki's PTX, assembled by the driver. */
static inline tk_status ptx_load(const tk_kernel *kernel, tk_cuda_module **out) {
    tk_artifact *artifact;
    TK_TRY(tk_kernel_build_ptx(kernel, NULL, &artifact));
    const char *text = tk_artifact_text(artifact);
    tk_status status = tk_cuda_module_load(cuda, text, strlen(text), tk_kernel_name(kernel), out);
    tk_artifact_release(artifact);
    return status;
}

/* ---- launching ---- */

typedef struct cute_launch {
    tk_cuda_prepared prepared;
    uint32_t grid[3];
    tk_cuda_packing packing;
    _Alignas(64) unsigned char packed[TK_CUDA_MAX_PARAM_BYTES];
} cute_launch;

static inline tk_status cute_pack(const tk_kbinding *binding, cute_launch *out) {
    const tk_kcontract *contract = &binding->kernel->contract;
    for (size_t i = 0; i < contract->params.count; i++) {
        size_t bytes = (size_t)tk_kparam_bytes(binding->kernel, (int)i);
        const tk_kmap *map = contract->params.items[i].map;
        TK_TRY(tk_cuda_packing_add(&out->packing, bytes, map ? 64 : bytes));
        unsigned char *to = out->packed + out->packing.params[i].offset;
        if (!map) {
            memcpy(to, &binding->arguments[i].bits, bytes);
            continue;
        }
        tk_cuda_tensor_rule rule = {0};
        tk_cuda_tensor_binding made = {0};
        TK_TRY(tk_run_tensor_rule(binding, map, &rule));
        TK_TRY(tk_cuda_tensor_bind(cuda, &rule, &made));
        memcpy(to, &made.map, sizeof made.map);
    }
    return TK_OK;
}

/* The kernel of a module with these arguments, addresses among them; maps are made. */
static inline tk_status cute_prepare(const tk_kernel *kernel, tk_cuda_module *module, size_t count,
                                     const tk_kargument *arguments, cute_launch *out) {
    tk_kdevice facts = {
        .sms = cuda->info.multiprocessors, .shared_bytes = cuda->info.max_shared, .threads = 2048};
    tk_klaunch shape;
    tk_kshared_map shared;
    tk_cuda_function *function;
    memset(out, 0, sizeof *out);
    TK_TRY(tk_kernel_launch(kernel, &facts, count, arguments, &shape));
    TK_TRY(tk_cuda_module_function(module, tk_kernel_name(kernel), &function));
    TK_TRY(tk_kshared_place(kernel, NULL, &shared));
    TK_TRY(cute_pack(&(tk_kbinding){kernel, &facts, arguments}, out));
    tk_cuda_launch how = {.function = function,
                          .dynamic_shared = (size_t)tk_kshared_total(&shared, shape.dynamic_shared),
                          .packing = &out->packing,
                          .cooperative = shape.cooperative,
                          .site = "two targets"};
    bool clusters = shape.cluster[0] * shape.cluster[1] * shape.cluster[2] > 1;
    for (int i = 0; i < 3; i++) {
        out->grid[i] = (uint32_t)shape.grid[i];
        how.block[i] = (uint32_t)shape.block[i];
        if (clusters) how.cluster[i] = (uint32_t)shape.cluster[i];
    }
    return tk_cuda_launch_prepare(&how, &out->prepared);
}

static inline tk_status cute_run(const cute_launch *launch, tk_queue *queue) {
    return tk_cuda_launch_run(&launch->prepared, queue, launch->grid, launch->packed);
}

/* ---- memory ---- */

enum { CUTE_MOST_BUFFERS = 16 };

/* Runs binary `number` with buffers in the places of pointers and bits in those of numbers; what
 * the kernel writes begins as zeros and comes back into `results`. */
static inline tk_status cute_run_on(const tk_kernel *kernel, int number, size_t count,
                                    const tk_kargument *given, const tk_kbuffer *buffers,
                                    unsigned char **results) {
    tk_kargument arguments[CUTE_MOST_BUFFERS] = {{0}};
    tk_buffer *memory[CUTE_MOST_BUFFERS] = {NULL};
    tk_queue *queue;
    tk_cuda_module *module;
    cute_launch launch;
    TK_TRY(cute_load(kernel, number, &module));
    TK_TRY(tk_cuda_queue_open(cuda, &queue));
    for (size_t i = 0; i < count; i++) {
        bool writes = kernel->contract.params.items[i].access != TK_KACCESS_READ;
        arguments[i] = given[i];
        if (!buffers[i].bytes) continue;
        TK_TRY(tk_buffer_new_on(device, queue, buffers[i].bytes, &memory[i]));
        memset(results[i], 0, buffers[i].bytes);
        TK_TRY(tk_cuda_upload(queue, address_of(memory[i]), writes ? results[i] : buffers[i].data,
                              buffers[i].bytes));
        arguments[i].bits = address_of(memory[i]);
    }
    TK_TRY(cute_prepare(kernel, module, count, arguments, &launch));
    TK_TRY(cute_run(&launch, queue));
    for (size_t i = 0; i < count; i++)
        if (memory[i])
            TK_TRY(
                tk_cuda_download(queue, results[i], address_of(memory[i]), buffers[i].bytes, NULL));
    for (size_t i = 0; i < count; i++) tk_buffer_release(memory[i]);
    tk_cuda_module_release(module);
    tk_cuda_queue_close(queue);
    return TK_OK;
}

/* ---- the two modes ---- */

static bool cute_writing;

/* False when there is nothing to run: a reason was said. */
static inline bool cute_begin(const char *program, int argc, char **argv) {
    char path[1200];
    struct stat info;
    const char *slash = strrchr(argv[0], '/');
    cute_program = program;
    cute_writing = argc == 3 && !strcmp(argv[1], "--write");
    if (cute_writing) {
        snprintf(cute_folder, sizeof cute_folder, "%s", argv[2]);
        mkdir(cute_folder, 0777);
        return true;
    }
    snprintf(cute_folder, sizeof cute_folder, "%.*s/cute", slash ? (int)(slash - argv[0]) : 1,
             slash ? argv[0] : ".");
    cute_path(0, path, sizeof path);
    if (!stat(path, &info)) return open_card(program);
    printf("%s: skipped, no binaries of the CuTe compiler beside the program\n", program);
    return false;
}

#endif
