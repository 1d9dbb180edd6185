/* Opening the driver, and what its results mean. */
#include "runtime/cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define DEFAULT_LIBRARY "libcuda.so.1"

/* ---- results ----------------------------------------------------------------------------------
 */

typedef struct result_row {
    CUresult result;
    const char *name;
    tk_status status;
    bool lost;
} result_row;

static const result_row results[] = {
#define RESULT_ROW(value, name, status, lost) {value, #name, status, lost},
    TK_CUDA_RESULTS(RESULT_ROW)
#undef RESULT_ROW
};

static const result_row *find_result(CUresult result) {
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].result == result) return &results[i];
    return NULL;
}

tk_status tk_cuda_result_status(CUresult result) {
    const result_row *row = find_result(result);
    return row ? row->status : TK_DEVICE_ERROR;
}

bool tk_cuda_result_is_lost(CUresult result) {
    const result_row *row = find_result(result);
    return row && row->lost;
}

const char *tk_cuda_result_name(CUresult result, char scratch[32]) {
    const result_row *row = find_result(result);
    if (row) return row->name;
    snprintf(scratch, 32, "CUDA result %d", result);
    return scratch;
}

/* ---- opening ----------------------------------------------------------------------------------
 */

typedef void (*any_function)(void);

static tk_status find_symbol(void *library, const char *path, const char *symbol, void *out_field) {
    void *address = dlsym(library, symbol);
    if (!address)
        return tk_fail(TK_UNSUPPORTED, "%s has no %s: Tiki needs a driver of CUDA %d.%d or newer",
                       path, symbol, TK_CUDA_OLDEST_DRIVER / 1000,
                       TK_CUDA_OLDEST_DRIVER % 1000 / 10);
    memcpy(out_field, &address, sizeof(any_function));
    return TK_OK;
}

static tk_status check_version(const char *path, tk_cuda_api *api) {
    CUresult result = api->driver_version(&api->version);
    char scratch[32];
    if (result != CUDA_SUCCESS)
        return tk_fail(TK_UNSUPPORTED, "%s gives no version (%s)", path,
                       tk_cuda_result_name(result, scratch));
    if (api->version >= TK_CUDA_OLDEST_DRIVER) return TK_OK;
    return tk_fail(TK_UNSUPPORTED,
                   "the NVIDIA driver is too old: it has CUDA %d.%d, Tiki needs %d.%d",
                   api->version / 1000, api->version % 1000 / 10, TK_CUDA_OLDEST_DRIVER / 1000,
                   TK_CUDA_OLDEST_DRIVER % 1000 / 10);
}

static tk_status find_functions(void *library, const char *path, tk_cuda_api *api) {
    TK_TRY(find_symbol(library, path, "cuDriverGetVersion", &api->driver_version));
    TK_TRY(check_version(path, api));
#define TK_CUDA_FUNCTION(field, symbol, parameters)                                                \
    TK_TRY(find_symbol(library, path, #symbol, &api->field));
#include "runtime/cuda_functions.def"
#undef TK_CUDA_FUNCTION
    return TK_OK;
}

static tk_status fail_for_devices(CUresult result) {
    char scratch[32];
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NO_DEVICE)
        return tk_fail(TK_NOT_FOUND, "the NVIDIA driver is there, but it has no device");
    return tk_fail(TK_UNSUPPORTED, "the NVIDIA driver does not start: %s",
                   tk_cuda_result_name(result, scratch));
}

static tk_status start_driver(tk_cuda_api *api) {
    CUresult result = api->init(0);
    if (result == CUDA_SUCCESS) result = api->device_count(&api->n_devices);
    if (result != CUDA_SUCCESS || api->n_devices < 1) return fail_for_devices(result);
    return TK_OK;
}

tk_status tk_cuda_api_open(const char *path, tk_cuda_api *out_api) {
    memset(out_api, 0, sizeof *out_api);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return tk_fail(TK_UNSUPPORTED, "no NVIDIA driver: no %s", path);
    tk_status status = find_functions(library, path, out_api);
    if (status == TK_OK) return start_driver(out_api);
    dlclose(library); /* it has started nothing yet */
    return status;
}

/* ---- the process's driver ---------------------------------------------------------------------
 */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static tk_cuda_api process_api;
static tk_status process_status;
static char process_message[TK_ERROR_MESSAGE_BYTES];

static void open_once(void) {
    const char *path = getenv("TIKI_CUDA_DRIVER");
    process_status = tk_cuda_api_open(path && path[0] ? path : DEFAULT_LIBRARY, &process_api);
    if (process_status != TK_OK)
        snprintf(process_message, sizeof process_message, "%s", tk_error_message());
}

tk_status tk_cuda_api_get(const tk_cuda_api **out_api) {
    *out_api = NULL;
    pthread_once(&once, open_once);
    if (process_status != TK_OK) return tk_fail_again(process_status, process_message);
    *out_api = &process_api;
    return TK_OK;
}
