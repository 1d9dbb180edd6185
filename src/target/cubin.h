/* Reading cubins: which kernels they hold, for which architecture, with which parameters. */
#ifndef TARGET_CUBIN_H
#define TARGET_CUBIN_H

#include "tiki/kernel.h"

/* Compares a cubin with what a launch of the kernel will give it: the architecture ("sm_90a"), the
 * kernel's presence, size of each parameter, and, in front of the first tensor map, offset and
 * bytes of all.
 *
 * TK_FORMAT_ERROR for data that is no cubin; TK_NOT_FOUND when the kernel is not in it;
 * TK_INTERNAL, with both values, where they differ. */
tk_status tk_cubin_check(const unsigned char *data, size_t bytes, const tk_kernel *kernel,
                         const char *arch);

#endif
