/* What a GPU makes of a launch contract, for run_cuda.c and for tests that launch by themselves. */
#ifndef COMPILE_RUN_CUDA_H
#define COMPILE_RUN_CUDA_H

#include "kernel/contract.h"
#include "runtime/cuda_module.h"
#include "tiki/target.h"

/* A tensor map's rule for these arguments into `rule`, which begins all zero. Errors: those of the
 * contract's expressions. */
tk_status tk_run_tensor_rule(const tk_kbinding *binding, const tk_kmap *map,
                             tk_cuda_tensor_rule *rule);

/* Has a kernel built and kept in the cache, as a launch on the device would; what goes wrong, the
 * launch says. */
void tk_run_build_ahead(tk_device *device, const tk_kernel *kernel, tk_target target);

#endif
