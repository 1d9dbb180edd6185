/* That the latest error's message holds a text: where it does not, both are shown. */
#ifndef SUPPORT_SAYS_H
#define SUPPORT_SAYS_H

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tiki/status.h"

static inline void assert_error_says_at(const char *text, const char *file, int line) {
    if (strstr(tk_error_message(), text)) return;
    print_error("'%s' is not in '%s'\n", text, tk_error_message());
    _fail(file, line);
}
#define assert_error_says(text) assert_error_says_at((text), __FILE__, __LINE__)

#endif
