/* Reductions and plain products as kernels made when they are asked for, for every dtype but
 * complex ones and any strides; the same bits in every run.
 *
 * A product is the reduction of a product of two operands. Products of halves that the library's
 * kernel takes are that kernel's. */
#ifndef COMPILE_REDUCE_H
#define COMPILE_REDUCE_H

#include "array/executor.h"

tk_status tk_reduce_check(tk_op op, tk_dtype dtype);

tk_status tk_body_reduce_on_device(const tk_body_call *call);
tk_status tk_body_product_on_device(const tk_body_call *call);

#endif
