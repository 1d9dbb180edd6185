/* The types and numbers of NVIDIA's driver interface that Tiki uses, declared here so that no CUDA
 * package is needed to build.
 *
 * Names and values follow the public driver interface from CUDA 12.0 on; the interface only grows,
 * so a value stays what it is. Handles are opaque pointers, enumerations are plain ints. */
#ifndef RUNTIME_CUDA_TYPES_H
#define RUNTIME_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUgraphExec_st *CUgraphExec;
typedef void (*CUhostFn)(void *arg);

typedef struct CUuuid {
    unsigned char bytes[16];
} CUuuid;

typedef struct CUtensorMap {
    _Alignas(64) uint64_t words[16];
} CUtensorMap;

typedef union CUlaunchAttributeValue {
    char pad[64];
    int cooperative;
    int programmatic;
    struct {
        unsigned x, y, z;
    } cluster;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute {
    int id;
    int pad;
    CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attrs;
    unsigned n_attrs;
} CUlaunchConfig;

/* Results: number, name, the status it becomes, whether the context is lost after it. */
#define TK_CUDA_RESULTS(X)                                                                         \
    X(0, CUDA_SUCCESS, TK_OK, 0)                                                                   \
    X(1, CUDA_ERROR_INVALID_VALUE, TK_INVALID_ARGUMENT, 0)                                         \
    X(2, CUDA_ERROR_OUT_OF_MEMORY, TK_OUT_OF_MEMORY, 0)                                            \
    X(3, CUDA_ERROR_NOT_INITIALIZED, TK_DEVICE_ERROR, 0)                                           \
    X(4, CUDA_ERROR_DEINITIALIZED, TK_DEVICE_ERROR, 1)                                             \
    X(34, CUDA_ERROR_STUB_LIBRARY, TK_UNSUPPORTED, 0)                                              \
    X(36, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, TK_UNSUPPORTED, 0)                                \
    X(46, CUDA_ERROR_DEVICE_UNAVAILABLE, TK_DEVICE_ERROR, 0)                                       \
    X(100, CUDA_ERROR_NO_DEVICE, TK_NOT_FOUND, 0)                                                  \
    X(101, CUDA_ERROR_INVALID_DEVICE, TK_NOT_FOUND, 0)                                             \
    X(200, CUDA_ERROR_INVALID_IMAGE, TK_FORMAT_ERROR, 0)                                           \
    X(201, CUDA_ERROR_INVALID_CONTEXT, TK_DEVICE_ERROR, 0)                                         \
    X(209, CUDA_ERROR_NO_BINARY_FOR_GPU, TK_UNSUPPORTED, 0)                                        \
    X(214, CUDA_ERROR_ECC_UNCORRECTABLE, TK_DEVICE_ERROR, 1)                                       \
    X(218, CUDA_ERROR_INVALID_PTX, TK_FORMAT_ERROR, 0)                                             \
    X(220, CUDA_ERROR_NVLINK_UNCORRECTABLE, TK_DEVICE_ERROR, 1)                                    \
    X(221, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, TK_UNSUPPORTED, 0)                                   \
    X(222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, TK_UNSUPPORTED, 0)                                  \
    X(226, CUDA_ERROR_CONTAINED, TK_DEVICE_ERROR, 1)                                               \
    X(304, CUDA_ERROR_OPERATING_SYSTEM, TK_DEVICE_ERROR, 0)                                        \
    X(400, CUDA_ERROR_INVALID_HANDLE, TK_DEVICE_ERROR, 0)                                          \
    X(401, CUDA_ERROR_ILLEGAL_STATE, TK_DEVICE_ERROR, 0)                                           \
    X(500, CUDA_ERROR_NOT_FOUND, TK_NOT_FOUND, 0)                                                  \
    X(600, CUDA_ERROR_NOT_READY, TK_DEVICE_ERROR, 0)                                               \
    X(700, CUDA_ERROR_ILLEGAL_ADDRESS, TK_DEVICE_ERROR, 1)                                         \
    X(701, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, TK_UNSUPPORTED, 0)                                  \
    X(702, CUDA_ERROR_LAUNCH_TIMEOUT, TK_DEVICE_ERROR, 1)                                          \
    X(709, CUDA_ERROR_CONTEXT_IS_DESTROYED, TK_DEVICE_ERROR, 1)                                    \
    X(710, CUDA_ERROR_ASSERT, TK_DEVICE_ERROR, 1)                                                  \
    X(714, CUDA_ERROR_HARDWARE_STACK_ERROR, TK_DEVICE_ERROR, 1)                                    \
    X(715, CUDA_ERROR_ILLEGAL_INSTRUCTION, TK_DEVICE_ERROR, 1)                                     \
    X(716, CUDA_ERROR_MISALIGNED_ADDRESS, TK_DEVICE_ERROR, 1)                                      \
    X(717, CUDA_ERROR_INVALID_ADDRESS_SPACE, TK_DEVICE_ERROR, 1)                                   \
    X(718, CUDA_ERROR_INVALID_PC, TK_DEVICE_ERROR, 1)                                              \
    X(719, CUDA_ERROR_LAUNCH_FAILED, TK_DEVICE_ERROR, 1)                                           \
    X(720, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, TK_UNSUPPORTED, 0)                             \
    X(800, CUDA_ERROR_NOT_PERMITTED, TK_DEVICE_ERROR, 0)                                           \
    X(801, CUDA_ERROR_NOT_SUPPORTED, TK_UNSUPPORTED, 0)                                            \
    X(803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, TK_UNSUPPORTED, 0)                                   \
    X(900, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, TK_UNSUPPORTED, 0)                               \
    X(901, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, TK_DEVICE_ERROR, 0)                              \
    X(905, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, TK_INVALID_ARGUMENT, 0)                            \
    X(912, CUDA_ERROR_INVALID_CLUSTER_SIZE, TK_UNSUPPORTED, 0)                                     \
    X(999, CUDA_ERROR_UNKNOWN, TK_DEVICE_ERROR, 0)

enum {
#define TK_CUDA_RESULT_ENUM(value, name, status, lost) name = value,
    TK_CUDA_RESULTS(TK_CUDA_RESULT_ENUM)
#undef TK_CUDA_RESULT_ENUM
};

enum {
    CU_DEVICE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_L2_CACHE_SIZE = 38,
    CU_DEVICE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_COOPERATIVE_LAUNCH = 95,
    CU_DEVICE_MAX_SHARED_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_CLUSTER_LAUNCH = 120
};

enum {
    CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_SHARED_SIZE_BYTES = 1,
    CU_FUNC_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_NUM_REGS = 4,
    CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
};

enum {
    CU_LAUNCH_COOPERATIVE = 2,
    CU_LAUNCH_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};

enum {
    CU_JIT_INFO_LOG_BUFFER = 3,
    CU_JIT_INFO_LOG_BUFFER_SIZE = 4,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE = 6,
    CU_JIT_TARGET = 9,
    CU_JIT_LOG_VERBOSE = 12,
    CU_JIT_GENERATE_LINE_INFO = 13
};

/* A target is the number of its architecture; that of sm_90a has this more. */
enum { CU_TARGET_ACCELERATED = 0x10000, CU_JIT_INPUT_PTX = 1 };

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_STREAM_CAPTURE_RELAXED = 2
};

#endif
