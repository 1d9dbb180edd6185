/* CUDA devices as a driver of the runtime: the table, and what is too small for a file of its own.
 *
 * Memory comes from cuMemAlloc and is kept by the allocator of buffer.c, which knows queues.
 * Rejected: the driver's own stream-ordered pools (cuMemAllocAsync): their counters and limits are
 * not ours, reuse between streams adds hidden waits, and both would cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fork.h"
#include "runtime/cuda_copy.h"
#include "runtime/cuda_faults.h"
#include "runtime/cuda_module.h"

static bool debug_asked(void) {
    const char *value = getenv("TIKI_CUDA_DEBUG");
    return value && value[0] && strcmp(value, "0") != 0;
}

static tk_status open_context(tk_cuda *cuda) {
    const tk_cuda_api *api = cuda->api;
    TK_CUDA_TRY(cuda, api->device_get(&cuda->device, cuda->index), "asking for the device");
    TK_CUDA_TRY(cuda, api->context_retain(&cuda->context, cuda->device), "opening the context");
    tk_status status = tk_cuda_enter(cuda);
    if (status == TK_OK) status = tk_cuda_staging_begin(cuda);
    if (status == TK_OK) status = tk_cuda_modules_begin(cuda);
    if (status == TK_OK) return TK_OK;
    tk_cuda_staging_end(cuda);
    (void)api->context_release(cuda->device);
    return status;
}

static tk_status open_cuda(int index, void **out_state) {
    *out_state = NULL;
    const tk_cuda_api *api;
    tk_cuda_info info;
    TK_TRY(tk_cuda_api_get(&api));
    TK_TRY(tk_cuda_describe(api, index, &info));
    tk_cuda *cuda = tk_calloc(1, sizeof *cuda);
    if (!cuda) return tk_fail(TK_OUT_OF_MEMORY, "device cuda:%d: no memory", index);
    *cuda = (tk_cuda){.api = api, .index = index, .info = info, .fork_epoch = tk_fork_epoch()};
    atomic_store(&cuda->debug, debug_asked());
    pthread_mutex_init(&cuda->lock, NULL);
    tk_status status = open_context(cuda);
    if (status == TK_OK) {
        *out_state = cuda;
        return TK_OK;
    }
    pthread_mutex_destroy(&cuda->lock);
    tk_free(cuda);
    return status;
}

/* Streams first: their last work may use everything else. */
static void close_cuda(void *state) {
    tk_cuda *cuda = state;
    if (!tk_cuda_enter_to_free(cuda)) return;
    (void)cuda->api->context_synchronize();
    tk_cuda_calls_end(cuda);
    if (cuda->attached) cuda->detach(cuda->attached);
    tk_cuda_modules_end(cuda);
    tk_cuda_faults_end(cuda);
    tk_cuda_staging_end(cuda);
    tk_cuda_queues_end(cuda);
    for (size_t i = 0; i < cuda->events.count; i++)
        (void)cuda->api->event_destroy(cuda->events.items[i]);
    tk_vec_deinit(&cuda->events);
    (void)cuda->api->context_release(cuda->device);
    pthread_mutex_destroy(&cuda->lock);
    tk_free(cuda);
}

static size_t memory_size(void *state) { return ((tk_cuda *)state)->info.memory; }

/* Any failure but a want of memory shows up again at the next call. */
static void *allocate(void *state, size_t bytes) {
    tk_cuda *cuda = state;
    CUdeviceptr memory = 0;
    if (tk_cuda_enter(cuda) != TK_OK) return NULL;
    CUresult result = cuda->api->memory_allocate(&memory, bytes);
    if (result == CUDA_SUCCESS) return (void *)(uintptr_t)memory;
    (void)tk_cuda_fail(cuda, result, "allocating %zu bytes", bytes);
    return NULL;
}

static void free_memory(void *state, void *memory, size_t bytes) {
    tk_cuda *cuda = state;
    (void)bytes;
    if (tk_cuda_enter_to_free(cuda)) (void)cuda->api->memory_free((CUdeviceptr)(uintptr_t)memory);
}

/* Whoever waits for the task waits for its end, so it runs on a lost device too: all that it asks
 * of the device then gives the error. */
static tk_status run_task(void *state, tk_queue *queue, tk_task task, void *arg) {
    (void)tk_cuda_enter(state);
    tk_queue *before = tk_cuda_current_queue();
    tk_cuda_set_current_queue(queue);
    tk_status status = task(arg);
    tk_cuda_set_current_queue(before);
    return status;
}

static tk_status synchronize(void *state) {
    tk_cuda *cuda = state;
    TK_TRY(tk_cuda_enter(cuda));
    TK_CUDA_TRY(cuda, cuda->api->context_synchronize(), "waiting for the device");
    return TK_OK;
}

static tk_status take_fault(void *state) { return tk_cuda_fault_take(state); }

static void describe_memory(void *state, char *text, size_t room) {
    tk_cuda *cuda = state;
    size_t free_bytes, total;
    text[0] = 0;
    if (atomic_load(&cuda->lost)) {
        snprintf(text, room, "been lost");
        return;
    }
    if (!tk_cuda_enter_to_free(cuda)) return;
    if (cuda->api->memory_info(&free_bytes, &total) != CUDA_SUCCESS) return;
    snprintf(text, room, "%zu of %zu bytes free, other processes counted", free_bytes, total);
}

static tk_status upload(tk_queue *queue, void *to, const void *from, size_t bytes) {
    return tk_cuda_upload(queue, (CUdeviceptr)(uintptr_t)to, from, bytes);
}

const tk_driver tk_driver_cuda = {
    .name = "cuda",
    .host_memory = false,
    .open = open_cuda,
    .close = close_cuda,
    .memory_size = memory_size,
    .allocate = allocate,
    .free = free_memory,
    .copy = tk_cuda_copy_now,
    .run = run_task,
    .synchronize = synchronize,
    .queue_open = tk_cuda_queue_open,
    .queue_close = tk_cuda_queue_close,
    .queue_ticket = tk_cuda_queue_ticket,
    .queue_passed = tk_cuda_queue_passed,
    .queue_wait = tk_cuda_queue_wait,
    .queue_follow = tk_cuda_queue_follow,
    .queue_upload = upload,
    .take_fault = take_fault,
    .describe_memory = describe_memory,
};
