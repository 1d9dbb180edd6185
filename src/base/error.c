/* Per-thread error text. A fixed buffer, so that reporting "out of memory" needs no memory. */
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char error_text[TK_ERROR_MESSAGE_BYTES];
static _Thread_local tk_status error_code = TK_OK;
static _Thread_local bool error_explains; /* why somebody has TK_NO_ARRAY */

static const char no_status[] = "unknown status";

const char *tk_status_name(tk_status status) {
    switch (status) {
#define STATUS_NAME(code, value, name, meaning)                                                    \
    case code:                                                                                     \
        return name;
        TK_STATUS_CODES(STATUS_NAME)
#undef STATUS_NAME
    }
    return no_status;
}

static bool is_status(tk_status status) { return strcmp(tk_status_name(status), no_status) != 0; }

const char *tk_error_message(void) { return error_text; }

tk_status tk_error_code(void) { return error_code; }

tk_status tk_error_set(tk_status code, const char *format, ...) {
    if (code == TK_OK) return code;
    if (!is_status(code))
        return tk_fail(TK_INVALID_ARGUMENT, "argument `code` is %d, which is no tk_status",
                       (int)code);
    if (!format) return tk_fail_again(code, "");
    char text[TK_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tk_fail_again(code, text);
}

tk_status tk_fail(tk_status code, const char *format, ...) {
    char text[TK_ERROR_MESSAGE_BYTES]; /* the arguments may point into error_text */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tk_fail_again(code, text);
}

tk_status tk_fail_within(tk_status code, const char *format, ...) {
    char before[TK_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(before, sizeof before, format, arguments);
    va_end(arguments);
    if (used < 0 || (size_t)used >= sizeof before - 3) return code;
    int room = (int)sizeof before - used - 3;
    snprintf(before + used, sizeof before - (size_t)used, ": %.*s", room, error_text);
    return tk_fail_again(code, before);
}

tk_status tk_fail_again(tk_status code, const char *message) {
    size_t length = strlen(message);
    if (length >= sizeof error_text) length = sizeof error_text - 1;
    memmove(error_text, message, length);
    error_text[length] = 0;
    error_code = code;
    error_explains = false;
    return code;
}

static tk_status fail_null(const char *name, int length) {
    return tk_fail(TK_INVALID_ARGUMENT, "argument `%.*s` is NULL", length, name);
}

tk_status tk_fail_null(const char *name) { return fail_null(name, (int)strlen(name)); }

/* The names are taken apart only when one of them is needed. */
static tk_status fail_null_at(const char *names, size_t index) {
    size_t length = strcspn(names, ",");
    for (; index > 0; index--) {
        names += length + strspn(names + length, ", ");
        length = strcspn(names, ",");
    }
    return fail_null(names, (int)length);
}

tk_status tk_need(const char *names, size_t count, const void *const *pointers) {
    for (size_t i = 0; i < count; i++)
        if (!pointers[i]) return fail_null_at(names, i);
    return TK_OK;
}

tk_status tk_check_enum(const char *name, int value, int count, const char *type) {
    if (value >= 0 && value < count) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "argument `%s` is %d, which is no %s: expected 0 to %d",
                   name, value, type, count - 1);
}

tk_status tk_check_flags(const char *name, int flags, int known) {
    if (!(flags & ~known)) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "argument `%s` is 0x%x, expected bits of 0x%x", name,
                   (unsigned)flags, (unsigned)known);
}

void tk_fail_explains(void) { error_explains = true; }

tk_status tk_fail_no_array(const char *what) {
    bool explained = error_explains;
    return tk_fail(TK_INVALID_ARGUMENT, "%s is no array (TK_NO_ARRAY)%s%s", what,
                   explained ? "; before it: " : "", explained ? error_text : "");
}
