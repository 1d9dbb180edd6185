/* Reductions as bodies share them. */
#ifndef CPU_BODY_REDUCE_H
#define CPU_BODY_REDUCE_H

#include "graph/ops.h"
#include "tiki/array.h"

/* The portable reduction: reduce_sum, _prod, _max, _min, _any and _all of any dtype, operands with
 * any strides. `out` has length 1 along `axes` and some elements; `in` has at least one for each.
 *
 * Every output is the same tree of chunks whatever the thread count: a chunk of REDUCE_CHUNK
 * elements is reduced in order, chunks are combined in pairs. Floats up to f32 accumulate in f32,
 * integers modulo 2^64. TK_OUT_OF_MEMORY. */
tk_status tk_reduce_portable(tk_op op, const tk_strided *in, const tk_strided *out, tk_axes axes);

#endif
