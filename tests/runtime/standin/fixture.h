/* A CUDA device on the stand-in for each test: opened on a reset library, closed with a check that
 * everything was given back. */
#ifndef STANDIN_FIXTURE_H
#define STANDIN_FIXTURE_H

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/cuda_copy.h"
#include "runtime/cuda_graph.h"
#include "runtime/cuda_module.h"
#include "runtime/standin/standin.h"
#include "support/says.h"

static standin fake;
static tk_device *device;
static tk_cuda *cuda;

static int load_standin(void **state) {
    (void)state;
    if (!standin_open(&fake)) return -1;
    return setenv("TIKI_CUDA_DRIVER", standin_path(), 1);
}

static int open_standin(void **state) {
    (void)state;
    fake.standin_reset();
    unsetenv("TIKI_CUDA_DEBUG");
    if (tk_device_open(&tk_driver_cuda, 0, NULL, &device) != TK_OK) return -1;
    cuda = tk_cuda_of(device);
    return cuda && fake.standin_live() == 0 ? 0 : -1;
}

static int close_standin(void **state) {
    (void)state;
    fake.standin_gate(true);
    tk_device_close(device);
    return fake.standin_live();
}

static inline tk_queue *open_queue(void) {
    tk_queue *queue;
    assert_int_equal(tk_cuda_queue_open(cuda, &queue), TK_OK);
    return queue;
}

static inline CUdeviceptr address_of(const tk_buffer *buffer) {
    return (CUdeviceptr)(uintptr_t)buffer->data;
}

static inline tk_cuda_function *kernel(const char *name) {
    tk_cuda_module *module;
    tk_cuda_function *function;
    assert_int_equal(tk_cuda_module_load(cuda, STANDIN_PTX, sizeof STANDIN_PTX, "kernels", &module),
                     TK_OK);
    assert_int_equal(tk_cuda_module_function(module, name, &function), TK_OK);
    tk_cuda_module_release(module);
    return function;
}

/* Launches a kernel of one pointer with one block. */
static inline tk_status launch_one(tk_queue *queue, const char *name, const void *pointer) {
    static const tk_cuda_packing one = {1, 8, {{0, 8}}};
    tk_cuda_launch launch = {.function = kernel(name),
                             .grid = {1, 1, 1},
                             .block = {32, 1, 1},
                             .packing = &one,
                             .site = "here.c:7"};
    tk_cuda_prepared prepared;
    tk_status status = tk_cuda_launch_prepare(&launch, &prepared);
    if (status != TK_OK) return status;
    return tk_cuda_launch_run(&prepared, queue, NULL, &pointer);
}

#endif
