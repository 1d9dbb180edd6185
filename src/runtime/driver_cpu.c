/* The processor as a device. A task is a plain function; it finds its parallelism in the pool. */
#include "base/error.h"
#include "runtime/host_memory.h"

static tk_status open_cpu(int index, void **out_state) {
    *out_state = NULL;
    if (index == 0) return TK_OK;
    return tk_fail(TK_NOT_FOUND, "device cpu:%d: the processor is one device, cpu:0", index);
}

static void close_cpu(void *state) { (void)state; }

const tk_driver tk_driver_cpu = {
    .name = "cpu",
    .host_memory = true,
    .open = open_cpu,
    .close = close_cpu,
    .memory_size = tk_host_memory_size,
    .allocate = tk_host_allocate,
    .free = tk_host_free,
    .copy = tk_host_copy,
    .run = tk_host_run,
    .synchronize = tk_host_synchronize,
};
