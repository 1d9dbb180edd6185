/* Elementwise functions on runs: the reference ones by op and dtype, and the driver that picks
 * between them and the vector kernels. */
#ifndef CPU_BODY_EWISE_H
#define CPU_BODY_EWISE_H

#include "graph/ops.h"
#include "tiki/array.h"

/* data[0] is the result, data[1] and data[2] the operands; strides in bytes, any. A result may be
 * in place of an operand. Booleans are read as "not zero" and written as 0 or 1. */
typedef void tk_ewise_fn(char *const *data, const int64_t *strides, int64_t count);

/* NULL where the op does not take the dtype, and for half types, which go through f32. */
tk_ewise_fn *tk_ewise_reference(tk_op op, tk_dtype dtype);

/* The tables behind it, one a group of dtypes. */
tk_ewise_fn *tk_ewise_float(tk_op op, tk_dtype dtype);
tk_ewise_fn *tk_ewise_integer(tk_op op, tk_dtype dtype);
tk_ewise_fn *tk_ewise_complex(tk_op op);

/* An op on operands of one dtype, ready to run. */
typedef struct tk_ewise {
    tk_op op;
    tk_dtype dtype, result;
    int n_operands;
    bool use_vec;
    tk_ewise_fn *reference;
} tk_ewise;

tk_ewise tk_ewise_prepare(tk_op op, tk_dtype dtype);

/* A tk_loop_run; `ewise` is a tk_ewise. Operands as for tk_ewise_fn, half types included. */
void tk_ewise_run(void *ewise, char *const *data, const int64_t *strides, int64_t count);

/* Whether a body's choice is restricted to the portable reference. */
bool tk_cpu_reference(void);

/* For tests and comparisons: bodies use the portable reference only (true) or the fast kernels too
 * (false, the default). Any thread; evaluations that run finish either way. */
void tk_cpu_use_reference(bool only);

#endif
