/* How the library reports failure inside: a code up the call chain, the text beside it.
 *
 * tk_fail() writes the message of this thread and returns the code, so a check is one line:
 *
 *     if (rank > TK_MAX_RANK) return tk_fail(TK_SHAPE_ERROR, "rank %d: at most %d", rank,
 * TK_MAX_RANK);
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stddef.h>

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

/* TK_INVALID_ARGUMENT with "argument `name` is NULL". */
tk_status tk_fail_null(const char *name);

/* The same for the first of `pointers` that is NULL; `names` has their names between commas. TK_OK
 * when none is. */
tk_status tk_need(const char *names, size_t count, const void *const *pointers);

/* TK_OK when 0 <= value < count; else TK_INVALID_ARGUMENT: "argument `name` is 7, which is no
 * `type`: expected 0 to 1". */
tk_status tk_check_enum(const char *name, int value, int count, const char *type);

/* TK_OK when no bit is set but those of `known`; else TK_INVALID_ARGUMENT with name and value. */
tk_status tk_check_flags(const char *name, int flags, int known);

/* Notes that this thread's latest error is why its caller has TK_NO_ARRAY: a later tk_fail_no_array
 * repeats it, as long as no other error has come between. */
void tk_fail_explains(void);

/* TK_INVALID_ARGUMENT with "`what` is no array (TK_NO_ARRAY)" and the error noted so. */
tk_status tk_fail_no_array(const char *what);

/* How a public function begins: returns with an error that names the argument when one of the
 * pointers (to objects, at most as many as fit a line) is NULL. */
#define TK_NEED(...)                                                                               \
    TK_TRY(tk_need(#__VA_ARGS__,                                                                   \
                   sizeof((const void *const[]){__VA_ARGS__}) / sizeof(const void *),              \
                   (const void *const[]){__VA_ARGS__}))

#define TK_TRY(expression)                                                                         \
    do {                                                                                           \
        tk_status tk_try_status = (expression);                                                    \
        if (tk_try_status != TK_OK) return tk_try_status;                                          \
    } while (0)

#endif
