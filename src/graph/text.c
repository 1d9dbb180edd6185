/* See text.h. */
#include "graph/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/node.h"

void tk_text_put_list(tk_strbuf *out, const int64_t *items, int64_t count) {
    tk_strbuf_putc(out, '[');
    for (int64_t i = 0; i < count; i++)
        tk_strbuf_printf(out, i ? ",%" PRId64 : "%" PRId64, items[i]);
    tk_strbuf_putc(out, ']');
}

void tk_text_put_quoted(tk_strbuf *out, const char *text) {
    tk_strbuf_putc(out, '"');
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            tk_strbuf_printf(out, "\\%c", *at);
        else if (*at < 32 || *at >= 127)
            tk_strbuf_printf(out, "\\x%02x", *at);
        else
            tk_strbuf_putc(out, (char)*at);
    }
    tk_strbuf_putc(out, '"');
}

const char *tk_text_shape(char *text, size_t bytes, int64_t rank, const int64_t *shape) {
    size_t used = (size_t)snprintf(text, bytes, "(");
    for (int64_t i = 0; i < rank; i++) {
        char item[32];
        size_t length = (size_t)snprintf(item, sizeof item, "%s%" PRId64, i ? ", " : "", shape[i]);
        if (used + length + 5 > bytes) {
            used += (size_t)snprintf(text + used, bytes - used, "...");
            break;
        }
        memcpy(text + used, item, length + 1);
        used += length;
    }
    snprintf(text + used, bytes - used, rank == 1 ? ",)" : ")");
    return text;
}

const char *tk_text_node(const struct tk_node *node) {
    static _Thread_local char buffers[4][160];
    static _Thread_local unsigned turn;
    char *text = buffers[turn++ % 4];
    size_t used =
        (size_t)snprintf(text, sizeof buffers[0], "%s", tk_dtype_text((tk_dtype)node->dtype));
    tk_text_shape(text + used, sizeof buffers[0] - used, node->rank, node->shape);
    return text;
}
