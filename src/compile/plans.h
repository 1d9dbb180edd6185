/* Kernels of the library on memory: plans are made once for each call's types, shapes and schedule,
 * and kept. */
#ifndef COMPILE_PLANS_H
#define COMPILE_PLANS_H

#include "array/executor.h"
#include "library/plan.h"
#include "tiki/target.h"

typedef struct tk_library_run {
    tk_library_id id;
    size_t n_tensors;
    const tk_strided *tensors; /* rank -1: missing */
    size_t n_numbers;
    const double *numbers;
    const tk_library_schedule *schedule; /* NULL: the default */
    tk_target target;
} tk_library_run;

/* Runs the call's launches in order, on the device and in the queue of `call`. */
tk_status tk_run_library(const tk_body_call *call, const tk_library_run *run);

/* Whether the call can be, with the library's reason if not. The plan is kept for the run.
 * `call->name` is not looked at. */
tk_status tk_library_check_call(tk_device *device, const tk_library_call *call, size_t n_tensors);

/* Elements of an array's dtype as kernels see them; integers lose their sign, complex numbers are
 * moved as integers. */
tk_kscalar tk_kernel_scalar_of(tk_dtype dtype);

/* What the library needs to know of a view. */
void tk_library_tensor_of(const tk_strided *view, tk_library_tensor *out);

/* The lowest address of a view's elements lies `before` bytes in front of its first element; all of
 * them are in `bytes` from there. */
void tk_extent_of(const tk_strided *view, size_t *out_before, size_t *out_bytes);

#endif
