/* How the library reports failure inside: a code up the call chain, the text beside it.
 *
 * tk_fail() writes the message of this thread and returns the code, so a check is one line:
 *
 *     if (rank > TK_MAX_RANK) return tk_fail(TK_SHAPE_ERROR, "rank %d: at most %d", rank,
 * TK_MAX_RANK);
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "tiki/status.h"

/* Bytes kept of a message, the final zero included; longer ones are cut. */
#define TK_ERROR_MESSAGE_BYTES 1024

/* Sets this thread's error and returns `code`, which must not be TK_OK. */
tk_status tk_fail(tk_status code, const char *format, ...) TK_PRINTF(2, 3);

/* Puts "text: " before this thread's message, for context on the way up; returns `code` unchanged.
 */
tk_status tk_fail_within(tk_status code, const char *format, ...) TK_PRINTF(2, 3);

/* Sets code and message as they were saved from another thread. */
tk_status tk_fail_again(tk_status code, const char *message);

#define TK_TRY(expression)                                                                         \
    do {                                                                                           \
        tk_status tk_try_status = (expression);                                                    \
        if (tk_try_status != TK_OK) return tk_try_status;                                          \
    } while (0)

#endif
