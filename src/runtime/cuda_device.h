/* A CUDA device: its primary context, what it is, and what went wrong on it.
 *
 * The primary context is shared with every other library of the process, so arrays can be exchanged
 * without copies. Each function enters the context on its thread first; another library may have
 * changed what is current.
 *
 * Errors: a call that fails gives a status with the driver's name for it. After some failures (an
 * address out of bounds, a device assert) the driver refuses everything on the context for the rest
 * of the process. Then the device is lost: the first error is kept, with the kernels that may have
 * caused it, and every later call gives it again. Memory and handles may still be given back. */
#ifndef RUNTIME_CUDA_DEVICE_H
#define RUNTIME_CUDA_DEVICE_H

#include <stdatomic.h>

#include "base/error.h"
#include "base/vec.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"

typedef struct tk_cuda tk_cuda;
typedef struct tk_cuda_staging tk_cuda_staging;
typedef struct tk_cuda_calls tk_cuda_calls;
typedef struct tk_cuda_modules tk_cuda_modules;
typedef struct tk_cuda_faults tk_cuda_faults;

/* What a device is. */
typedef struct tk_cuda_info {
    char name[64];
    size_t memory;
    int major, minor; /* compute capability */
    int multiprocessors;
    int max_threads; /* of a block */
    int max_shared;  /* bytes of a block, after opting in */
    int l2_bytes;
    bool clusters, cooperative;
} tk_cuda_info;

struct tk_cuda {
    const tk_cuda_api *api;
    int index;
    uint32_t fork_epoch;
    CUdevice device;
    CUcontext context;
    tk_cuda_info info;
    _Atomic bool debug; /* wait for each launch and name the one that failed */

    _Atomic(tk_cuda_faults *) faults; /* cuda_faults.c; NULL: no launch has asked for a record */
    _Atomic(tk_queue *) queues;       /* all that were ever opened; grows only */
    _Atomic bool lost;

    pthread_mutex_t lock; /* guards what follows; nothing else is locked while it is held */
    char lost_message[TK_ERROR_MESSAGE_BYTES];
    TK_VEC(CUevent) events; /* not in use */
    int n_queues;

    tk_cuda_staging *staging; /* cuda_copy.c */
    tk_cuda_calls *calls;     /* cuda_call.c */
    tk_cuda_modules *modules; /* cuda_module.c */

    void *attached; /* what a layer above keeps for the device; ends by `detach`, before modules */
    void (*detach)(void *attached);
};

/* Reads what device `index` is, without opening it. Errors as tk_cuda_api_get, or TK_NOT_FOUND. */
tk_status tk_cuda_describe(const tk_cuda_api *api, int index, tk_cuda_info *out_info);

/* The CUDA state of a device, NULL if it is another kind of device. */
tk_cuda *tk_cuda_of(tk_device *device);

/* Makes the context current on this thread; every function that calls the driver begins with it.
 * TK_DEVICE_ERROR with the first error if the device is lost, TK_CONTEXT_ERROR in a forked child,
 * where the driver does not work. */
tk_status tk_cuda_enter(tk_cuda *cuda);

/* Makes the context current even if it is lost, for giving things back; false in a forked child,
 * where nothing can be. */
bool tk_cuda_enter_to_free(tk_cuda *cuda);

/* The status of a result that is not CUDA_SUCCESS, with "what: name (the driver's text)"; notes
 * that the device is lost where the result says so. */
tk_status tk_cuda_fail(tk_cuda *cuda, CUresult result, const char *what, ...) TK_PRINTF(3, 4);

#define TK_CUDA_TRY(cuda, call, ...)                                                               \
    do {                                                                                           \
        CUresult tk_cuda_result = (call);                                                          \
        if (tk_cuda_result != CUDA_SUCCESS)                                                        \
            return tk_cuda_fail((cuda), tk_cuda_result, __VA_ARGS__);                              \
    } while (0)

/* An event without timing from the device's stock, and back to it. */
tk_status tk_cuda_event_take(tk_cuda *cuda, CUevent *out_event);
void tk_cuda_event_give(tk_cuda *cuda, CUevent event);

#endif
