/* Bodies of the ops that devices with kernels have: each computes with kernels, in the order of the
 * call's queue. What is not here a device refuses by name. */
#ifndef COMPILE_BODIES_H
#define COMPILE_BODIES_H

#include "array/executor.h"

/* The first input's values in the first output's place, of one dtype; any strides on both sides. */
tk_status tk_body_copy_on_device(const tk_body_call *call);

/* The same for views of one shape. */
tk_status tk_copy_on_device(const tk_body_call *call, const tk_strided *from, const tk_strided *to);

tk_status tk_body_fill_on_device(const tk_body_call *call);
tk_status tk_body_elementwise_on_device(const tk_body_call *call);
tk_status tk_body_join_on_device(const tk_body_call *call);
tk_status tk_body_pad_on_device(const tk_body_call *call);
tk_status tk_body_set_on_device(const tk_body_call *call);
tk_status tk_body_iota_on_device(const tk_body_call *call);
tk_status tk_iota_check(tk_dtype dtype);

/* What the bodies cannot do, said when the node is built. */
tk_status tk_check_on_device(tk_op op, size_t n_inputs, tk_node *const *inputs, const void *attrs);

#endif
