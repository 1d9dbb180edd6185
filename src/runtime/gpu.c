/* Questions about GPUs that need no device open. */
#include "tiki/gpu.h"

#include <string.h>

#include "runtime/cuda_device.h"

tk_status tk_gpu_count(int *out_count) {
    TK_NEED(out_count);
    const tk_cuda_api *api;
    *out_count = 0;
    TK_TRY(tk_cuda_api_get(&api));
    *out_count = api->n_devices;
    return TK_OK;
}

tk_status tk_gpu_describe(int index, tk_gpu_info *out_info) {
    TK_NEED(out_info);
    const tk_cuda_api *api;
    tk_cuda_info info;
    *out_info = (tk_gpu_info){0};
    TK_TRY(tk_cuda_api_get(&api));
    TK_TRY(tk_cuda_describe(api, index, &info));
    memcpy(out_info->name, info.name, sizeof out_info->name);
    out_info->memory = info.memory;
    out_info->major = info.major;
    out_info->minor = info.minor;
    out_info->multiprocessors = info.multiprocessors;
    out_info->driver = api->version;
    return TK_OK;
}
