/* How the public functions of this folder begin: a NULL argument is an error that names it.
 *
 * base/error.h has the same for the rest of the library; this folder uses the public API only. */
#ifndef NN_NEED_H
#define NN_NEED_H

#include "tiki/status.h"

static inline tk_status nn_fail_null(const char *name) {
    return tk_error_set(TK_INVALID_ARGUMENT, "argument `%s` is NULL", name);
}

/* One pointer. */
#define NN_NEED(pointer)                                                                           \
    do {                                                                                           \
        if (!(pointer)) return nn_fail_null(#pointer);                                             \
    } while (0)

#endif
