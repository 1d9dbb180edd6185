/* The verifier: what must hold of every kernel, at both ends of a pipeline and, in debug builds,
 * after each pass. */
#ifndef KERNEL_VERIFY_H
#define KERNEL_VERIFY_H

#include "kernel/ir.h"

/* "add.tk:12: " before this thread's message, for errors about an operation. */
tk_status tk_kop_fail_at(const tk_kernel *kernel, const tk_kop *op, tk_status code);

#endif
