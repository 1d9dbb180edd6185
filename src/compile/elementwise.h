/* Elementwise kernels made when they are asked for: one for each op, dtypes and number of axes.
 *
 * Operands may have any strides; axes that all operands allow are merged first, so that contiguous
 * arrays and scalars have one axis. A thread computes one element. Half types are computed in f32
 * and rounded once, as the processor's bodies do. */
#ifndef COMPILE_ELEMENTWISE_H
#define COMPILE_ELEMENTWISE_H

#include "array/executor.h"
#include "base/strbuf.h"

#define TK_ELEMENTWISE_INPUTS 3

/* Whether there is a kernel for the op on inputs of a dtype (of `where`: those of its values) that
 * gives `out`; TK_UNSUPPORTED says what there is none for. */
tk_status tk_elementwise_check(tk_op op, tk_dtype in, tk_dtype out);

/* y = op(x...), element by element; all views have one shape. `call` names device and queue. */
tk_status tk_elementwise_run(const tk_body_call *call, tk_op op, int n_inputs,
                             const tk_strided *inputs, const tk_strided *output);

/* The text of `*%p0 = op(*%p0, *%p1)` for an op of two that has a kernel. */
void tk_elementwise_put(tk_op op, tk_dtype dtype, tk_strbuf *out);

#endif
