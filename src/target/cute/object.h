/* What the CuTe compiler gives back: an object file of the host with the device's binary inside. */
#ifndef TARGET_CUTE_OBJECT_H
#define TARGET_CUTE_OBJECT_H

#include <stddef.h>

#include "tiki/status.h"

/* Finds the cubin in an ELF64 object (symbol `kernels_binary`), in a fat binary, or the data itself
 * when it is one. The place is inside `data`.
 *
 * TK_FORMAT_ERROR says which offset leaves the data; TK_UNSUPPORTED: a compressed payload or one of
 * an unknown kind. */
tk_status tk_cute_object_find(const unsigned char *data, size_t bytes, const unsigned char **out_at,
                              size_t *out_bytes);

#endif
