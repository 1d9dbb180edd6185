/* Which GPUs this machine has, without opening one: for `tiki info` and for programs that choose.
 */
#ifndef TIKI_GPU_H
#define TIKI_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "tiki/api.h"
#include "tiki/status.h"

TK_BEGIN_DECLS

typedef struct tk_gpu_info {
    char name[64];
    size_t memory;    /* bytes */
    int major, minor; /* compute capability */
    int multiprocessors;
    int driver; /* the newest CUDA that the driver knows: 1000 * major + 10 * minor */
} tk_gpu_info;

/* How many there are, at least 1. Starts the driver, which is libcuda.so.1 or what the
 * environment's TIKI_CUDA_DRIVER names. TK_UNSUPPORTED or TK_NOT_FOUND with the reason why there is
 * none, the same each time in a process. Any thread. */
TK_API tk_status tk_gpu_count(int *out_count);

/* What GPU number `index` is, from 0. TK_NOT_FOUND, or as tk_gpu_count. Any thread. */
TK_API tk_status tk_gpu_describe(int index, tk_gpu_info *out_info);

TK_END_DECLS

#endif
