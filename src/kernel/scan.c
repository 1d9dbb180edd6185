/* Tokens of kernel text. No state but the cursor, so going back is an assignment. */
#include "kernel/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* ---- errors ---- */

#define MOST_SHOWN 100

/* The line with a caret below `where`; what no terminal prints is a question mark. */
static void show_line(const tk_kscan *scan, const char *where, char *text, size_t capacity) {
    size_t column = (size_t)(where - scan->line_start), length = strcspn(scan->line_start, "\r\n");
    size_t from = column > MOST_SHOWN - 20 ? column - (MOST_SHOWN - 20) : 0;
    size_t shown = length > from ? length - from : 0, at = 0;
    if (shown > MOST_SHOWN) shown = MOST_SHOWN;
    if (capacity < 2 * MOST_SHOWN + 8) return;
    at += (size_t)snprintf(text, capacity, "\n  ");
    for (size_t i = 0; i < shown; i++) {
        char c = scan->line_start[from + i];
        text[at++] = c >= 32 && c < 127 ? c : c == '\t' ? ' ' : '?';
    }
    snprintf(text + at, capacity - at, "\n  %*s^", (int)(column - from), "");
}

static tk_status fail_with(const tk_kscan *scan, const char *where, tk_status code,
                           const char *message) {
    char line[2 * MOST_SHOWN + 16] = "";
    if (where < scan->line_start) where = scan->line_start;
    show_line(scan, where, line, sizeof line);
    return tk_fail(code, "%.200s:%u:%d: %s%s", scan->source, scan->line,
                   (int)(where - scan->line_start) + 1, message, line);
}

tk_status tk_kscan_fail(const tk_kscan *scan, const char *where, const char *format, ...) {
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return fail_with(scan, where, TK_FORMAT_ERROR, message);
}

tk_status tk_kscan_fail_again(const tk_kscan *scan, const char *where, tk_status code) {
    char message[500];
    if (code == TK_OUT_OF_MEMORY) return code;
    snprintf(message, sizeof message, "%s", tk_error_message());
    return fail_with(scan, where, code, message);
}

tk_status tk_kscan_expected(tk_kscan *scan, const char *expected) {
    char found[24];
    size_t length = 0;
    tk_kscan_skip(scan);
    for (; length < sizeof found - 1 && scan->at[length] && scan->at[length] != '\n'; length++)
        found[length] = scan->at[length] >= 32 && scan->at[length] < 127 ? scan->at[length] : '?';
    found[length] = 0;
    if (!*scan->at)
        return tk_kscan_fail(scan, scan->at, "expected %s, found the end of the text", expected);
    return tk_kscan_fail(scan, scan->at, "expected %s, found \"%s\"", expected, found);
}

/* ---- tokens ---- */

void tk_kscan_skip(tk_kscan *scan) {
    for (;; scan->at++) {
        if (*scan->at == '#') scan->at += strcspn(scan->at, "\n");
        if (*scan->at == '\n') {
            scan->line++;
            scan->line_start = scan->at + 1;
        } else if (*scan->at != ' ' && *scan->at != '\t' && *scan->at != '\r') {
            return;
        }
    }
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t tk_kword_length(const char *at) {
    size_t length = 0;
    while (is_digit(at[length]) || (at[length] >= 'a' && at[length] <= 'z') ||
           (at[length] >= 'A' && at[length] <= 'Z') || at[length] == '_')
        length++;
    return length;
}

bool tk_kscan_see(tk_kscan *scan, char c) {
    tk_kscan_skip(scan);
    return *scan->at == c;
}

bool tk_kscan_take(tk_kscan *scan, char c) {
    if (!tk_kscan_see(scan, c)) return false;
    scan->at++;
    return true;
}

bool tk_kspan_is(tk_kspan span, const char *text) {
    return strlen(text) == span.length && !memcmp(text, span.text, span.length);
}

bool tk_kscan_take_word(tk_kscan *scan, const char *word) {
    tk_kscan_skip(scan);
    tk_kspan found = {scan->at, tk_kword_length(scan->at)};
    if (!tk_kspan_is(found, word)) return false;
    scan->at += found.length;
    return true;
}

tk_status tk_kscan_need(tk_kscan *scan, char c) {
    char expected[4] = {'\'', c, '\'', 0};
    return tk_kscan_take(scan, c) ? TK_OK : tk_kscan_expected(scan, expected);
}

tk_status tk_kscan_need_this(tk_kscan *scan, const char *word) {
    return tk_kscan_take_word(scan, word) ? TK_OK : tk_kscan_expected(scan, word);
}

#define MOST_WORD_BYTES 60

tk_status tk_kscan_need_word(tk_kscan *scan, const char *expected, tk_kspan *out) {
    tk_kscan_skip(scan);
    *out = (tk_kspan){scan->at, tk_kword_length(scan->at)};
    if (out->length == 0 || is_digit(*scan->at)) return tk_kscan_expected(scan, expected);
    if (out->length > MOST_WORD_BYTES)
        return tk_kscan_fail(scan, scan->at, "a word of more than %d characters", MOST_WORD_BYTES);
    scan->at += out->length;
    return TK_OK;
}

tk_status tk_kscan_need_integer(tk_kscan *scan, int64_t *out) {
    bool negative = tk_kscan_take(scan, '-'), overflow = false;
    const char *from = scan->at;
    uint64_t magnitude = 0;
    for (; is_digit(*scan->at); scan->at++) {
        overflow |= __builtin_mul_overflow(magnitude, (uint64_t)10, &magnitude);
        overflow |= __builtin_add_overflow(magnitude, (uint64_t)(*scan->at - '0'), &magnitude);
    }
    if (scan->at == from) return tk_kscan_expected(scan, "an integer");
    if (overflow || magnitude > (uint64_t)INT64_MAX + negative)
        return tk_kscan_fail(scan, from, "the integer does not fit 64 bits");
    *out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return TK_OK;
}

tk_status tk_kscan_need_name(tk_kscan *scan, tk_kspan *out) {
    TK_TRY(tk_kscan_need(scan, '%'));
    *out = (tk_kspan){scan->at, tk_kword_length(scan->at)};
    if (is_digit(*scan->at))
        for (out->length = 0; is_digit(scan->at[out->length]);) out->length++;
    if (out->length == 0 || out->length > MOST_WORD_BYTES)
        return tk_kscan_expected(scan, "a name of 1 to 60 characters after '%'");
    scan->at += out->length;
    return TK_OK;
}

tk_status tk_kscan_need_string(tk_kscan *scan, tk_kspan *out) {
    tk_kscan_skip(scan);
    if (*scan->at != '"') return tk_kscan_expected(scan, "a text in double quotes");
    const char *from = scan->at + 1, *at = from;
    while (*at && *at != '"' && *at != '\n') at += at[0] == '\\' && at[1] && at[1] != '\n' ? 2 : 1;
    if (*at != '"') return tk_kscan_fail(scan, scan->at, "the text has no end in this line");
    *out = (tk_kspan){from, (size_t)(at - from)};
    scan->at = at + 1;
    return TK_OK;
}
