/* What a kernel is, as a digest: what a target makes of it follows from that. */
#ifndef KERNEL_DIGEST_H
#define KERNEL_DIGEST_H

#include "base/sha256.h"
#include "kernel/ir.h"

/* Kernels of one digest have the same contract, names of parameters included, and the same
 * operations; names of other values and how the kernel came about do not count, and source lines
 * only with `lines`. TK_OUT_OF_MEMORY. */
tk_status tk_kernel_digest(const tk_kernel *kernel, bool lines, unsigned char out[TK_SHA256_BYTES]);

#endif
