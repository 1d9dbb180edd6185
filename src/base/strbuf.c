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

/* Formats into the room that there is, and again only when that was not enough. */
void tk_strbuf_printf(tk_strbuf *buffer, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t room = buffer->capacity - buffer->length;
    char *end = room ? buffer->text + buffer->length : NULL;
    int length = buffer->failed ? -1 : vsnprintf(end, room, format, arguments);
    bool enough = length >= 0 && (size_t)length < room;
    if (length >= 0 && !enough && reserve(buffer, (size_t)length)) {
        vsnprintf(buffer->text + buffer->length, (size_t)length + 1, format, again);
        enough = true;
    }
    if (enough)
        buffer->length += (size_t)length;
    else if (room)
        buffer->text[buffer->length] = 0;
    va_end(again);
    va_end(arguments);
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
