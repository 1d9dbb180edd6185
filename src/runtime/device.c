/* Opening, closing and asking devices; the process-wide thread count for users. */
#include "runtime/device.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/pool.h"

static tk_status check_hooks(const tk_memory_hooks *hooks) {
    if (!hooks->allocate == !hooks->free) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "memory hooks: only %s is set, expected allocate and free",
                   hooks->allocate ? "allocate" : "free");
}

static void init_memory(tk_device *device, const tk_device_options *options) {
    tk_memory *memory = &device->memory;
    size_t limit = options->memory_limit;
    if (!limit) limit = device->driver->memory_size(device->state);
    memory->holders = 1;
    memory->hooks = options->hooks;
    memory->info.memory_limit = limit;
    memory->info.cache_limit = options->cache_limit ? options->cache_limit : limit / 4;
    pthread_mutex_init(&memory->lock, NULL);
}

tk_status tk_device_open(const tk_driver *driver, int index, const tk_device_options *options,
                         tk_device **out_device) {
    static const tk_device_options defaults;
    if (!options) options = &defaults;
    *out_device = NULL;
    TK_TRY(check_hooks(&options->hooks));
    tk_device *device = tk_calloc(1, sizeof *device);
    if (!device) return tk_fail(TK_OUT_OF_MEMORY, "device %s:%d: no memory", driver->name, index);
    device->driver = driver;
    device->index = index;
    device->fork_epoch = tk_fork_epoch();
    snprintf(device->name, sizeof device->name, "%s:%d", driver->name, index);
    tk_status status = driver->open(index, &device->state);
    if (status != TK_OK) {
        tk_free(device);
        return status;
    }
    init_memory(device, options);
    *out_device = device;
    return TK_OK;
}

static void end_device(tk_device *device) {
    pthread_mutex_destroy(&device->memory.lock);
    device->driver->close(device->state);
    tk_free(device);
}

void tk_device_leave(tk_device *device) {
    pthread_mutex_lock(&device->memory.lock);
    assert(device->memory.holders > 0);
    bool last = --device->memory.holders == 0;
    pthread_mutex_unlock(&device->memory.lock);
    if (last) end_device(device);
}

void tk_device_close(tk_device *device) {
    if (!device || device->fork_epoch != tk_fork_epoch()) return;
    tk_device_set_cache_limit(device, 0);
    tk_device_leave(device);
}

tk_status tk_device_check(const tk_device *device) {
    if (device->fork_epoch == tk_fork_epoch()) return TK_OK;
    return tk_fail(
        TK_CONTEXT_ERROR,
        "device %s was opened before this process was forked: open it again in the child",
        device->name);
}

tk_status tk_fail_index(const char *what, int64_t index, int64_t length, int64_t position) {
    return tk_fail(TK_INDEX_ERROR,
                   "%s: index %lld is out of range for an axis of length %lld (at position %lld of "
                   "the indices)",
                   what, (long long)index, (long long)length, (long long)position);
}

tk_status tk_device_copy(tk_device *device, void *to, const void *from, size_t bytes,
                         tk_copy kind) {
    TK_TRY(tk_device_check(device));
    return device->driver->copy(device->state, to, from, bytes, kind);
}

const char *tk_device_name(const tk_device *device) { return device ? device->name : NULL; }

tk_status tk_threads_set(int threads) { return tk_pool_set_threads(threads); }

int tk_threads_count(void) { return tk_pool_threads(); }
