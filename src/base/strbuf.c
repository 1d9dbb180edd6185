/* See strbuf.h. */
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"

void tk_strbuf_deinit(tk_strbuf *buffer) {
    tk_free(buffer->text);
    *buffer = (tk_strbuf){0};
}

static bool reserve(tk_strbuf *buffer, size_t more) {
    if (buffer->failed) return false;
    size_t need = buffer->length + more + 1;
    buffer->failed =
        need < more || !tk_vec_grow((void **)&buffer->text, &buffer->capacity, need, 1);
    return !buffer->failed;
}

void tk_strbuf_put(tk_strbuf *buffer, const char *text, size_t length) {
    if (!reserve(buffer, length)) return;
    memcpy(buffer->text + buffer->length, text, length);
    buffer->length += length;
    buffer->text[buffer->length] = 0;
}

void tk_strbuf_puts(tk_strbuf *buffer, const char *text) {
    tk_strbuf_put(buffer, text, strlen(text));
}

void tk_strbuf_putc(tk_strbuf *buffer, char c) { tk_strbuf_put(buffer, &c, 1); }

void tk_strbuf_printf(tk_strbuf *buffer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length >= 0 && reserve(buffer, (size_t)length)) {
        vsnprintf(buffer->text + buffer->length, (size_t)length + 1, format, again);
        buffer->length += (size_t)length;
    }
    va_end(again);
}

char *tk_strbuf_take(tk_strbuf *buffer) {
    if (buffer->failed || !reserve(buffer, 0)) {
        tk_strbuf_deinit(buffer);
        return NULL;
    }
    buffer->text[buffer->length] = 0;
    char *text = buffer->text;
    *buffer = (tk_strbuf){0};
    return text;
}
