/* See text.h. */
#include "graph/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/half.h"
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

static bool is_value_of(tk_dtype dtype, double value) {
    switch (dtype) {
    case TK_FLOAT64:
        return true;
    case TK_FLOAT16:
        return (double)tk_f16_to_f32(tk_f64_to_f16(value)) == value;
    case TK_BFLOAT16:
        return (double)tk_bf16_to_f32(tk_f64_to_bf16(value)) == value;
    default:
        return (double)(float)value == value;
    }
}

static void put_float_bits(tk_strbuf *out, tk_dtype dtype, uint64_t bits) {
    static const uint64_t plain_nan = 0x7ff8000000000000, sign = (uint64_t)1 << 63;
    double value;
    memcpy(&value, &bits, sizeof value);
    bool is_nan = isnan(value);
    if (is_nan && (bits & ~sign) == plain_nan)
        tk_strbuf_puts(out, bits & sign ? "-nan" : "nan");
    else if (!is_nan && is_value_of(dtype, value))
        tk_decimal_put(out, dtype, value);
    else
        tk_strbuf_printf(out, "0x%" PRIx64, bits);
}

void tk_text_put_bits(tk_strbuf *out, tk_dtype dtype, uint64_t bits) {
    switch (tk_dtype_kind(dtype)) {
    case TK_KIND_BOOL:
        tk_strbuf_puts(out, bits ? "true" : "false");
        break;
    case TK_KIND_UNSIGNED:
        tk_strbuf_printf(out, "%" PRIu64, bits);
        break;
    case TK_KIND_SIGNED:
        tk_strbuf_printf(out, "%" PRId64, (int64_t)bits);
        break;
    default:
        put_float_bits(out, dtype, bits);
    }
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
