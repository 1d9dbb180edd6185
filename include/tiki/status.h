/* Status codes and the message that goes with the latest error of a thread.
 *
 * A status is a plain code, so ignoring one leaks nothing. The text that belongs to it (what was
 * given, what was expected, which argument, where) is kept per thread until the next error on that
 * thread. Array operations carry their error inside the array instead (see array.h).
 *
 * Rejected: a counted error object. Every caller would own one more thing, and the common caller
 * only prints it. See docs/adr/0001-status.md. */
#ifndef TIKI_STATUS_H
#define TIKI_STATUS_H

#include "tiki/api.h"

TK_BEGIN_DECLS

/* Code, name, meaning. Values are never renumbered; new codes go to the end. */
#define TK_STATUS_CODES(X)                                                                         \
    X(TK_OK, 0, "ok", "the call did what its comment says")                                        \
    X(TK_INVALID_ARGUMENT, 1, "invalid argument", "a value outside its documented range")          \
    X(TK_SHAPE_ERROR, 2, "shape error", "shapes that do not fit each other or the operation")      \
    X(TK_DTYPE_ERROR, 3, "dtype error", "a dtype the operation is not defined for")                \
    X(TK_AXIS_ERROR, 4, "axis error", "an axis out of range or given twice")                       \
    X(TK_INDEX_ERROR, 5, "index error", "an index out of range, found while evaluating")           \
    X(TK_OVERFLOW, 6, "overflow", "a size or value that its type cannot hold")                     \
    X(TK_OUT_OF_MEMORY, 7, "out of memory", "an allocation failed or a limit was reached")         \
    X(TK_UNSUPPORTED, 8, "unsupported", "a contract that this device or operation does not have")  \
    X(TK_CONTEXT_ERROR, 9, "context error", "operands of two contexts, or a context after a fork") \
    X(TK_IO_ERROR, 10, "input/output error", "the operating system refused a file operation")      \
    X(TK_FORMAT_ERROR, 11, "format error", "a file or text that breaks its own format")            \
    X(TK_INTERRUPTED, 12, "interrupted", "the caller asked to stop")                               \
    X(TK_DEVICE_ERROR, 13, "device error", "a device reported a failure")                          \
    X(TK_NAN_TRAPPED, 14, "NaN trapped", "the NaN trap is on and an operation made a NaN")         \
    X(TK_NOT_FOUND, 15, "not found", "a name that is not there")                                   \
    X(TK_INTERNAL, 16, "internal error", "a broken invariant of the library: please report it")

typedef enum tk_status {
#define TK_STATUS_ENUM(code, value, name, meaning) code = value,
    TK_STATUS_CODES(TK_STATUS_ENUM)
#undef TK_STATUS_ENUM
} tk_status;

/* The short name of a code ("shape error"); "unknown status" for a value that is none.
 * The string is static. Any thread. */
TK_API const char *tk_status_name(tk_status status);

/* The message of the latest error on this thread, "" if there was none. Borrowed: valid until the
 * next failing call on this thread. */
TK_API const char *tk_error_message(void);

/* The code of the latest error on this thread, TK_OK if there was none. */
TK_API tk_status tk_error_code(void);

/* Sets this thread's error, as functions of the library do, and returns `code`: for callbacks and
 * libraries on top of Tiki. The text is cut at 1,023 bytes. TK_OK clears nothing and is returned;
 * what is no code becomes TK_INVALID_ARGUMENT. */
TK_API tk_status tk_error_set(tk_status code, const char *format, ...) TK_PRINTF(2, 3);

TK_END_DECLS

#endif
