/* NVIDIA's driver, loaded at run time.
 *
 * Nothing of CUDA is needed to build or to run on the processor: the library libcuda.so.1, or what
 * the environment's TIKI_CUDA_DRIVER names, is opened when a CUDA device is first asked for, and
 * the reason why that failed is kept and given each time. The library is never closed: the driver
 * has threads of its own. */
#ifndef RUNTIME_CUDA_API_H
#define RUNTIME_CUDA_API_H

#include <stdbool.h>

#include "runtime/cuda_types.h"
#include "tiki/status.h"

/* The oldest driver that works, as the driver counts: 1000 * major + 10 * minor. */
#define TK_CUDA_OLDEST_DRIVER 12000

typedef struct tk_cuda_api {
#define TK_CUDA_FUNCTION(field, symbol, parameters) CUresult(*field) parameters;
#include "runtime/cuda_functions.def"
#undef TK_CUDA_FUNCTION
    int version;   /* of the driver, as above */
    int n_devices; /* at least 1 */
} tk_cuda_api;

/* Opens the library at `path` and starts the driver. TK_UNSUPPORTED with the reason if there is no
 * such library, it lacks a function or is too old; TK_NOT_FOUND if it has no device. */
tk_status tk_cuda_api_open(const char *path, tk_cuda_api *out_api);

/* The process's driver, opened by the first call. Errors as above, the same each time. Any thread.
 */
tk_status tk_cuda_api_get(const tk_cuda_api **out_api);

/* What a result of the driver becomes, and its name ("CUDA_ERROR_ASSERT"; "CUDA result 17" in
 * `scratch` when it has none here). */
tk_status tk_cuda_result_status(CUresult result);
const char *tk_cuda_result_name(CUresult result, char scratch[32]);

/* Whether every later call on the context will fail too. */
bool tk_cuda_result_is_lost(CUresult result);

#endif
