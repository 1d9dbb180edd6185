/* A string under construction. After memory ran out it stays `failed` and later calls do nothing,
 * so a printer checks once, at the end. */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiki/api.h"

typedef struct tk_strbuf {
    char *text; /* NULL until something was put in; always ends with a zero byte */
    size_t length;
    size_t capacity;
    bool failed;
} tk_strbuf;

void tk_strbuf_deinit(tk_strbuf *buffer);
void tk_strbuf_put(tk_strbuf *buffer, const char *text, size_t length);
void tk_strbuf_puts(tk_strbuf *buffer, const char *text);
void tk_strbuf_putc(tk_strbuf *buffer, char c);
void tk_strbuf_printf(tk_strbuf *buffer, const char *format, ...) TK_PRINTF(2, 3);

/* The text, handed over to the caller, who frees it with tk_free; NULL if memory ran out. The
 * buffer is empty afterwards. */
char *tk_strbuf_take(tk_strbuf *buffer);

#endif
