/* gather, scatter and their forms along an axis as kernels made when they are asked for; random
 * bits. The bits are the processor's.
 *
 * A thread gathers one element. Scatters keep the order of updates, in which the last one wins and
 * sums are the same in every run: a thread has an element of the slice and one group of places,
 * goes through all updates in their order and takes those that fall into its group. An index out
 * of range reads 0, or its update is dropped, and the first one is written to the launch's record
 * of faults (runtime/cuda_faults.h), from which the error is made. */
#ifndef COMPILE_INDEX_H
#define COMPILE_INDEX_H

#include "array/executor.h"

/* Whether the op is one of these; and whether an application has a kernel. */
bool tk_index_is(tk_op op);
tk_status tk_index_check(tk_op op, tk_node *const *inputs, const void *attrs);

tk_status tk_body_gather_on_device(const tk_body_call *call);
tk_status tk_body_gather_along_on_device(const tk_body_call *call);
tk_status tk_body_scatter_on_device(const tk_body_call *call);
tk_status tk_body_scatter_along_on_device(const tk_body_call *call);
tk_status tk_body_arg_on_device(const tk_body_call *call);
tk_status tk_body_random_on_device(const tk_body_call *call);

#endif
