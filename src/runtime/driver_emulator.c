/* The device that runs kernels on the processor and judges them: its memory is the processor's, but
 * arrays on it are apart from the processor's own, as they are on a card. Who executes is above
 * (src/compile); here are memory and tasks.
 *
 * Rejected: kernels on the processor's own arrays. A program tested so would not move its arrays,
 * and fail on a card. */
#include "base/error.h"
#include "runtime/host_memory.h"

static tk_status open_emulator(int index, void **out_state) {
    *out_state = NULL;
    if (index == 0) return TK_OK;
    return tk_fail(TK_NOT_FOUND, "device emulator:%d: there is one emulator, emulator:0", index);
}

static void close_emulator(void *state) { (void)state; }

const tk_driver tk_driver_emulator = {
    .name = "emulator",
    .host_memory = true,
    .open = open_emulator,
    .close = close_emulator,
    .memory_size = tk_host_memory_size,
    .allocate = tk_host_allocate,
    .free = tk_host_free,
    .copy = tk_host_copy,
    .run = tk_host_run,
    .synchronize = tk_host_synchronize,
};
