/* What a test may do with the stand-in driver library beside calling it: see standin_cuda.c.
 *
 * Kernels know their parameters by name of the entry:
 *   add_f32(const float *x, const float *y, float *out, uint32_t n)
 *   slow(float *x): waits for the gate, then adds 1 to x[0]
 *   trap(), assert_fails(): lose the context as a bad address and a device assert do
 *   nothing()
 * and others by what standin_kernel says. */
#ifndef STANDIN_H
#define STANDIN_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_types.h"

#define STANDIN_PTX                                                                                \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry add_f32() { ret; }\n"          \
    ".visible .entry slow() { ret; }\n.visible .entry trap() { trap; }\n"                          \
    ".visible .entry assert_fails() { ret; }\n.visible .entry nothing() { ret; }\n"

/* Controls: name, result, parameters. */
#define STANDIN_CONTROLS(X)                                                                        \
    X(standin_reset, void, (void)) /* no failures, no counts, a healthy context, an open gate */   \
    X(standin_fail, void, (const char *function, int nth, CUresult result))                        \
    X(standin_count, int, (const char *function)) /* calls since the reset */                      \
    X(standin_devices, void, (int count))                                                          \
    X(standin_version, void, (int version))                                                        \
    X(standin_memory, void, (size_t bytes)) /* of a device */                                      \
    X(standin_gate, void, (bool open))                                                             \
    X(standin_kernel, void,                                                                        \
      (const char *name, const char *sizes, void (*run)(const void *const *params)))               \
    X(standin_live, int, (void)) /* memory blocks, streams, events, modules and graphs not freed   \
                                  */

typedef struct standin {
#define STANDIN_FIELD(name, type, parameters) type(*name) parameters;
    STANDIN_CONTROLS(STANDIN_FIELD)
#undef STANDIN_FIELD
} standin;

/* The path of the library, from the environment of the test run; NULL: none was built. */
static inline const char *standin_path(void) { return getenv("TIKI_STANDIN_CUDA"); }

/* The controls of the library, which must be loaded by this path only. False if it is not there. */
static inline bool standin_open(standin *out) {
    void *library = standin_path() ? dlopen(standin_path(), RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return false;
    void *address;
#define STANDIN_LOAD(name, type, parameters)                                                       \
    address = dlsym(library, #name);                                                               \
    if (!address) return false;                                                                    \
    memcpy(&out->name, &address, sizeof address);
    STANDIN_CONTROLS(STANDIN_LOAD)
#undef STANDIN_LOAD
    return true;
}

#endif
