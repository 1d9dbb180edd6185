/* Kernels as text. */
#ifndef KERNEL_PRINT_H
#define KERNEL_PRINT_H

#include "kernel/ir.h"

/* Beside TK_KERNEL_LINES: all values are numbered. Kernels that compute the same by the same
 * operations then have the same text: what is compared, and what an identity is the digest of. */
enum { TK_KERNEL_ANONYMOUS = 2 };

tk_status tk_kernel_put(const tk_kernel *kernel, int flags, tk_strbuf *out);

/* "tensor", "view", "thread". */
const char *tk_kform_text(tk_kform form);

#endif
