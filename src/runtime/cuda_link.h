/* NVIDIA's driver as an assembler: PTX text to a binary that any process may keep. */
#ifndef RUNTIME_CUDA_LINK_H
#define RUNTIME_CUDA_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "tiki/status.h"

typedef struct tk_cuda_linked {
    char *log;             /* what the driver's assembler said; never NULL after TK_OK */
    unsigned char *binary; /* a cubin, or the text; NULL: the text was refused, as the log says */
    size_t bytes;
} tk_cuda_linked;

/* Assembles text for "sm_80", "sm_90" or "sm_90a" in the primary context of the first device, which
 * need not be of that architecture. Text that asks for registers (setmaxnreg) stays text, which the
 * driver compiles as a whole when it is loaded: its linker would leave that out. Such text must be
 * for the device. What is current on the thread is left as it was. The caller frees log and binary
 * with tk_free. TK_UNSUPPORTED and TK_NOT_FOUND as tk_cuda_api_get, TK_CONTEXT_ERROR in a forked
 * child, else the driver's. Any thread. */
tk_status tk_cuda_link(const char *text, const char *arch, bool lines, tk_cuda_linked *out);

/* What tells one driver from another, in words. Errors as tk_cuda_api_get. */
tk_status tk_cuda_link_identity(char *text, size_t bytes);

#endif
