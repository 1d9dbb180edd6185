/* Tokens of kernel text, and errors that show where they are. */
#ifndef KERNEL_SCAN_H
#define KERNEL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiki/status.h"

/* A cursor; copying it remembers a place. */
typedef struct tk_kscan {
    const char *source; /* a name for messages */
    const char *at;
    const char *line_start;
    uint32_t line;
} tk_kscan;

/* A run of characters of the text. */
typedef struct tk_kspan {
    const char *text;
    size_t length;
} tk_kspan;

/* TK_FORMAT_ERROR (or `code`) with source, line, column, the message, the line and a caret below
 * `where`, which must be in the cursor's line. */
tk_status tk_kscan_fail(const tk_kscan *scan, const char *where, const char *format, ...)
    TK_PRINTF(3, 4);

/* The same around this thread's message, whose code is kept. */
tk_status tk_kscan_fail_again(const tk_kscan *scan, const char *where, tk_status code);

/* "expected X, found ..." at the cursor. */
tk_status tk_kscan_expected(tk_kscan *scan, const char *expected);

/* Blanks, line ends and comments (from # to the end of the line). */
void tk_kscan_skip(tk_kscan *scan);

/* Skips, then takes what is asked for if it is there. */
bool tk_kscan_take(tk_kscan *scan, char c);
bool tk_kscan_take_word(tk_kscan *scan, const char *word);
bool tk_kscan_see(tk_kscan *scan, char c);

/* Skips, then takes what must be there. */
tk_status tk_kscan_need(tk_kscan *scan, char c);
tk_status tk_kscan_need_this(tk_kscan *scan, const char *word);
tk_status tk_kscan_need_word(tk_kscan *scan, const char *expected, tk_kspan *out);
tk_status tk_kscan_need_integer(tk_kscan *scan, int64_t *out);

/* %name or %12, without the percent sign. */
tk_status tk_kscan_need_name(tk_kscan *scan, tk_kspan *out);

/* The raw text between double quotes, escapes not resolved. */
tk_status tk_kscan_need_string(tk_kscan *scan, tk_kspan *out);

bool tk_kspan_is(tk_kspan span, const char *text);

/* Letters, digits and underscores; a name begins with no digit. */
size_t tk_kword_length(const char *at);

#endif
