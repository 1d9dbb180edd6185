/* CUDA devices: opening, describing, errors, the stock of events. driver_cuda.c is the driver's
 * table. */
#include "runtime/cuda_device.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fork.h"
#include "runtime/cuda_stream.h"

/* ---- what a device is -------------------------------------------------------------------------
 */

static int attribute(const tk_cuda_api *api, CUdevice device, int which) {
    int value = 0;
    return api->device_attribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

tk_status tk_cuda_describe(const tk_cuda_api *api, int index, tk_cuda_info *out_info) {
    *out_info = (tk_cuda_info){0};
    if (index < 0 || index >= api->n_devices)
        return tk_fail(TK_NOT_FOUND, "device cuda:%d: the driver has %d, from cuda:0", index,
                       api->n_devices);
    CUdevice device;
    char scratch[32];
    CUresult result = api->device_get(&device, index);
    if (result == CUDA_SUCCESS)
        result = api->device_name(out_info->name, (int)sizeof out_info->name, device);
    if (result == CUDA_SUCCESS) result = api->device_memory(&out_info->memory, device);
    if (result != CUDA_SUCCESS)
        return tk_fail(tk_cuda_result_status(result), "device cuda:%d: %s", index,
                       tk_cuda_result_name(result, scratch));
    out_info->major = attribute(api, device, CU_DEVICE_COMPUTE_CAPABILITY_MAJOR);
    out_info->minor = attribute(api, device, CU_DEVICE_COMPUTE_CAPABILITY_MINOR);
    out_info->multiprocessors = attribute(api, device, CU_DEVICE_MULTIPROCESSOR_COUNT);
    out_info->max_threads = attribute(api, device, CU_DEVICE_MAX_THREADS_PER_BLOCK);
    out_info->max_shared = attribute(api, device, CU_DEVICE_MAX_SHARED_PER_BLOCK_OPTIN);
    out_info->l2_bytes = attribute(api, device, CU_DEVICE_L2_CACHE_SIZE);
    out_info->clusters = attribute(api, device, CU_DEVICE_CLUSTER_LAUNCH) != 0;
    out_info->cooperative = attribute(api, device, CU_DEVICE_COOPERATIVE_LAUNCH) != 0;
    return TK_OK;
}

tk_cuda *tk_cuda_of(tk_device *device) {
    return device->driver == &tk_driver_cuda ? device->state : NULL;
}

/* ---- errors -----------------------------------------------------------------------------------
 */

static tk_status fail_lost(tk_cuda *cuda) {
    char message[TK_ERROR_MESSAGE_BYTES];
    pthread_mutex_lock(&cuda->lock);
    memcpy(message, cuda->lost_message, sizeof message);
    pthread_mutex_unlock(&cuda->lock);
    return tk_fail_again(TK_DEVICE_ERROR, message);
}

tk_status tk_cuda_enter(tk_cuda *cuda) {
    if (cuda->fork_epoch != tk_fork_epoch())
        return tk_fail(TK_CONTEXT_ERROR,
                       "cuda:%d was opened before this process was forked, and the driver does not "
                       "work in the child: start a new process, or fork first",
                       cuda->index);
    if (atomic_load_explicit(&cuda->lost, memory_order_acquire)) return fail_lost(cuda);
    CUresult result = cuda->api->context_set(cuda->context);
    return result == CUDA_SUCCESS ? TK_OK : tk_cuda_fail(cuda, result, "entering the context");
}

bool tk_cuda_enter_to_free(tk_cuda *cuda) {
    if (cuda->fork_epoch != tk_fork_epoch()) return false;
    (void)cuda->api->context_set(cuda->context);
    return true;
}

/* Keeps the first error; later ones repeat it. */
static tk_status become_lost(tk_cuda *cuda, const char *error) {
    char launches[512], message[TK_ERROR_MESSAGE_BYTES];
    tk_cuda_describe_launches(cuda, launches, sizeof launches);
    snprintf(message, sizeof message,
             "cuda:%d is lost for the rest of this process: %.400s%s%.500s", cuda->index, error,
             launches[0] ? "; " : "", launches);
    pthread_mutex_lock(&cuda->lock);
    bool first = !cuda->lost_message[0];
    if (first) memcpy(cuda->lost_message, message, sizeof message);
    atomic_store_explicit(&cuda->lost, true, memory_order_release);
    pthread_mutex_unlock(&cuda->lock);
    if (first) tk_cuda_calls_lost(cuda);
    return fail_lost(cuda);
}

tk_status tk_cuda_fail(tk_cuda *cuda, CUresult result, const char *what, ...) {
    if (atomic_load_explicit(&cuda->lost, memory_order_acquire)) return fail_lost(cuda);
    char before[512], error[TK_ERROR_MESSAGE_BYTES], scratch[32];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(before, sizeof before, what, arguments);
    va_end(arguments);
    const char *text = NULL;
    if (cuda->api->error_string(result, &text) != CUDA_SUCCESS || !text) text = "no text";
    snprintf(error, sizeof error, "%s: %s (%.200s)", before, tk_cuda_result_name(result, scratch),
             text);
    if (tk_cuda_result_is_lost(result)) return become_lost(cuda, error);
    return tk_fail(tk_cuda_result_status(result), "cuda:%d: %s", cuda->index, error);
}

/* ---- events -----------------------------------------------------------------------------------
 */

tk_status tk_cuda_event_take(tk_cuda *cuda, CUevent *out_event) {
    *out_event = NULL;
    pthread_mutex_lock(&cuda->lock);
    if (cuda->events.count) *out_event = cuda->events.items[--cuda->events.count];
    pthread_mutex_unlock(&cuda->lock);
    if (*out_event) return TK_OK;
    TK_CUDA_TRY(cuda, cuda->api->event_create(out_event, CU_EVENT_DISABLE_TIMING),
                "making an event");
    return TK_OK;
}

void tk_cuda_event_give(tk_cuda *cuda, CUevent event) {
    if (!event) return;
    pthread_mutex_lock(&cuda->lock);
    bool kept = tk_vec_push(&cuda->events, event);
    pthread_mutex_unlock(&cuda->lock);
    if (!kept) (void)cuda->api->event_destroy(event);
}
