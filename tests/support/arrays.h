/* Short ways to make and read arrays in tests. */
#ifndef SUPPORT_ARRAYS_H
#define SUPPORT_ARRAYS_H

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tiki/array.h"

/* A context, or the test fails. */
static inline tk_context *make_context(void) {
    tk_context *context = NULL;
    assert_int_equal(tk_context_create(NULL, &context), TK_OK);
    return context;
}

/* Evaluates to the status with its message, so that a failure shows the text. */
static inline void assert_ok_at(tk_status status, const char *file, int line) {
    if (status != TK_OK) print_error("%s: %s\n", tk_status_name(status), tk_error_message());
    _assert_int_equal(status, TK_OK, file, line);
}
#define assert_ok(status) assert_ok_at((status), __FILE__, __LINE__)

static inline float first_f32(tk_array array) {
    double value = 0;
    assert_ok(tk_item(array, &value));
    return (float)value;
}

#endif
