/* Calls of public functions with NULL for each pointer argument in turn: the rule is in tiki/api.h.
 *
 *     gives_status(tk_tree_set(P(tree), P(name), array));
 *
 * is two calls, and each must give TK_INVALID_ARGUMENT with a message that names the argument.
 * Pointers that may be NULL are written without P. tests/tools/test_null.sh checks that each
 * function has its line. */
#ifndef SUPPORT_NULL_CHECK_H
#define SUPPORT_NULL_CHECK_H

#include <ctype.h>
#include <string.h>

#include "support/arrays.h"
#include "tiki/transforms.h"

/* Which of the marked arguments is NULL now, and how many the call has evaluated. */
static int null_at, null_seen;

/* An argument that must not be NULL: a pointer to an object, to a function. */
static inline void *P(const void *pointer) {
    return null_seen++ == null_at ? NULL : (void *)(uintptr_t)pointer;
}
static inline tk_function F(tk_function function) {
    return null_seen++ == null_at ? NULL : function;
}

/* How many arguments the text of a call marks. */
static inline int null_count(const char *call) {
    int count = 0;
    for (const char *at = call + 1; *at; at++)
        count +=
            (at[0] == 'P' || at[0] == 'F') && at[1] == '(' && !isalnum(at[-1]) && at[-1] != '_';
    return count;
}

static inline void null_check_status(tk_status status, const char *call) {
    if (status == TK_INVALID_ARGUMENT && strstr(tk_error_message(), "is NULL")) return;
    fail_msg("%s, marked argument %d NULL: %s (%s)", call, null_at, tk_status_name(status),
             status == TK_OK ? "" : tk_error_message());
}

#define null_each(call, check)                                                                     \
    do {                                                                                           \
        assert_true(null_count(#call) > 0);                                                        \
        for (null_at = 0; null_at < null_count(#call); null_at++) {                                \
            null_seen = 0;                                                                         \
            check;                                                                                 \
        }                                                                                          \
    } while (0)

#define gives_status(call) null_each(call, null_check_status((call), #call))

/* The result is an array that carries the error, or no array where no context could hold it. */
#define gives_array(call) null_each(call, null_check_status(null_array_status(call), #call))

static inline tk_status null_array_status(tk_array array) {
    return array.node ? tk_array_status(array) : tk_error_code();
}

/* The result is of no use but harmless; `harmless` is what it must be. */
#define gives(call, harmless) null_each(call, assert_true((call) == (harmless)))
#define gives_nothing(call) null_each(call, (void)(call))

#endif
