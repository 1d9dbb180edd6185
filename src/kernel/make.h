/* Whether an operation is what its row of the table says. */
#ifndef KERNEL_MAKE_H
#define KERNEL_MAKE_H

#include "kernel/ir.h"

/* Operands, attributes, results and the row's own check. Messages name the operation and the
 * operand. */
tk_status tk_kop_check(const tk_kernel *kernel, const tk_kop *op);

#endif
