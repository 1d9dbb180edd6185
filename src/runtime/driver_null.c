/* A device that holds buffers and computes nothing: the least a driver must be, to copy from when
 * writing a new one, and a stand-in for tests of everything above that must refuse cleanly.
 *
 * Its memory is the host's. It has no `run`, so every stream of it refuses tasks by a typed error.
 */
#include "base/error.h"
#include "runtime/host_memory.h"

static tk_status open_null(int index, void **out_state) {
    *out_state = NULL;
    if (index >= 0) return TK_OK;
    return tk_fail(TK_NOT_FOUND, "device null:%d: the number must be 0 or more", index);
}

static void close_null(void *state) { (void)state; }

const tk_driver tk_driver_null = {
    .name = "null",
    .host_memory = true,
    .open = open_null,
    .close = close_null,
    .memory_size = tk_host_memory_size,
    .allocate = tk_host_allocate,
    .free = tk_host_free,
    .copy = tk_host_copy,
    .synchronize = tk_host_synchronize,
};
