/* Loaded binaries and their launches.
 *
 * A module is a cubin, a fat binary or PTX text in memory, loaded once a device however often it is
 * asked for: it is found by the digest of its bytes. It stays loaded until the device ends or
 * tk_cuda_modules_trim, so that no kernel is unloaded while it runs.
 *
 * A launch is prepared once: shape, shared memory and attributes are checked against the function
 * and the device, and whatever the driver wants to be told once is told. Running it then copies a
 * few words and makes one call of the driver. */
#ifndef RUNTIME_CUDA_MODULE_H
#define RUNTIME_CUDA_MODULE_H

#include "runtime/cuda_stream.h"

typedef struct tk_cuda_module tk_cuda_module;

typedef struct tk_cuda_function {
    tk_cuda_module *module;
    tk_cuda *cuda;
    CUfunction handle;
    const char *name;
    int registers;              /* of a thread */
    int shared_bytes;           /* static, of a block */
    int local_bytes;            /* of a thread: spills and indexed arrays */
    int max_threads;            /* of a block of this function */
    _Atomic int dynamic_shared; /* bytes that were opted in for */
    struct tk_cuda_function *next;
} tk_cuda_function;

/* Loads an image, or finds it among those that are. PTX text need not end with a zero byte. `name`
 * is for messages. Errors: TK_FORMAT_ERROR (with the assembler's log) or TK_UNSUPPORTED for an
 * image that is not for this device, TK_OUT_OF_MEMORY, the device's. The caller gives it back. Any
 * thread.
 */
tk_status tk_cuda_module_load(tk_cuda *cuda, const void *image, size_t bytes, const char *name,
                              tk_cuda_module **out_module);
tk_cuda_module *tk_cuda_module_retain(tk_cuda_module *module);
void tk_cuda_module_release(tk_cuda_module *module);

/* Finds an entry; borrowed, lives as long as the module. TK_NOT_FOUND. Any thread. */
tk_status tk_cuda_module_function(tk_cuda_module *module, const char *entry,
                                  tk_cuda_function **out_function);

/* How many modules are loaded. */
int tk_cuda_modules_count(tk_cuda *cuda);

/* Waits for the device and unloads the modules that nobody holds. */
tk_status tk_cuda_modules_trim(tk_cuda *cuda);

tk_status tk_cuda_modules_begin(tk_cuda *cuda);
void tk_cuda_modules_end(tk_cuda *cuda);

/* ---- parameters -------------------------------------------------------------------------------
 */

#define TK_CUDA_MAX_PARAMS 64
#define TK_CUDA_MAX_PARAM_BYTES 4096 /* of all parameters of a kernel */

/* Where each parameter is in a kernel's packed parameters; made once a kernel. The driver is handed
 * each parameter by its address, because the device's own places differ where a parameter is
 * aligned to more than 16 bytes, as a tensor map is. */
typedef struct tk_cuda_packing {
    int count;
    size_t bytes; /* of all */
    struct {
        uint16_t offset, bytes;
    } params[TK_CUDA_MAX_PARAMS];
} tk_cuda_packing;

/* Adds a parameter behind the others, at the next multiple of `alignment` (a power of two).
 * TK_UNSUPPORTED when there are too many. */
tk_status tk_cuda_packing_add(tk_cuda_packing *packing, size_t bytes, size_t alignment);

/* Writes the parameters, each from its address, into `out`, of packing->bytes and aligned for all.
 */
void tk_cuda_pack(const tk_cuda_packing *packing, const void *const *values, void *out);

/* ---- launches ---------------------------------------------------------------------------------
 */

typedef struct tk_cuda_launch {
    tk_cuda_function *function;
    uint32_t grid[3];    /* blocks; all 0: each run says */
    uint32_t cluster[3]; /* blocks of a cluster; all 0: no clusters */
    uint32_t block[3];   /* threads */
    size_t dynamic_shared;
    const tk_cuda_packing *packing; /* of its parameters; NULL: it has none */
    bool cooperative;               /* all blocks run at once and may wait for each other */
    bool programmatic; /* may begin before the kernel before it in the stream has ended */
    const char *site;  /* where it is launched, for errors; lives as long as the device; or NULL */
} tk_cuda_launch;

/* A plain value that borrows the function. Any number of threads may run it. */
typedef struct tk_cuda_prepared {
    tk_cuda_function *function;
    const char *site;
    uint32_t cluster[3];
    CUlaunchConfig config; /* without stream and attributes' address */
    CUlaunchAttribute attrs[3];
    int n_params;
    uint16_t offsets[TK_CUDA_MAX_PARAMS];
} tk_cuda_prepared;

/* TK_INVALID_ARGUMENT for a shape that is none, TK_UNSUPPORTED for one that the function or the
 * device does not have; both say which number and the limit. */
tk_status tk_cuda_launch_prepare(const tk_cuda_launch *launch, tk_cuda_prepared *out_prepared);

/* Hands the launch to a stream, with `bytes` of parameters as the kernel lays them out. `grid` may
 * be NULL; a grid with a 0 launches nothing. In debug mode returns when the kernel has ended. */
tk_status tk_cuda_launch_run(const tk_cuda_prepared *prepared, tk_queue *queue,
                             const uint32_t grid[3], const void *params);

/* ---- tensor maps ------------------------------------------------------------------------------
 */

/* A rule for the bulk tensor copies; numbers of the enumerations as the driver counts them.
 * Dimension 0 is the contiguous one, strides[i] is that of dimension i + 1 in bytes. */
typedef struct tk_cuda_tensor_rule {
    int type, rank;
    CUdeviceptr base;
    uint64_t dims[5], strides[4];
    uint32_t box[5], element_strides[5];
    int interleave, swizzle, promotion, fill;
} tk_cuda_tensor_rule;

/* A rule and its code, which is made when the rule changes: once a binding of arguments. Starts all
 * zero. Not for several threads at once. */
typedef struct tk_cuda_tensor_binding {
    CUtensorMap map;
    tk_cuda_tensor_rule rule;
    bool encoded;
} tk_cuda_tensor_binding;

/* Encodes unless `rule` is the one that was encoded last. TK_INVALID_ARGUMENT that says which
 * number the device cannot take. Padding of `rule` must be zero: begin with `= {0}`. */
tk_status tk_cuda_tensor_bind(tk_cuda *cuda, const tk_cuda_tensor_rule *rule,
                              tk_cuda_tensor_binding *binding);

#endif
