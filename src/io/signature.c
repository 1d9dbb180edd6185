/* Signatures of exported functions: what a call gives, as text and back. See exported.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/exported.h"

void tk_exported_key(char *out, size_t bytes, size_t trace, const char *what) {
    snprintf(out, bytes, "trace.%zu.%s", trace, what);
}

void tk_signature_deinit(tk_signature *signature) {
    for (size_t i = 0; i < signature->count; i++) tk_free(signature->items[i].name);
    tk_vec_deinit(signature);
    *signature = (tk_signature){0};
}

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory for a signature"); }

static tk_status add(tk_signature *s, tk_dtype dtype, tk_shape shape, const char *name) {
    tk_signature_arg arg = {dtype, shape, name ? tk_strdup(name) : NULL};
    if ((!name || arg.name) && tk_vec_push(s, arg)) return TK_OK;
    tk_free(arg.name);
    return no_memory();
}

tk_status tk_signature_of(const tk_array *args, size_t n_args, const char *const *names,
                          size_t n_names, tk_signature *out) {
    *out = (tk_signature){0};
    tk_status status = TK_OK;
    if (n_names > n_args)
        return tk_fail(TK_INVALID_ARGUMENT, "%zu names for %zu arguments", n_names, n_args);
    for (size_t i = 0; status == TK_OK && i < n_args; i++) {
        const char *name = i < n_args - n_names ? NULL : names[i - (n_args - n_names)];
        status = tk_array_status(args[i]);
        if (status == TK_OK && name && (!*name || strpbrk(name, "\n\r")))
            status =
                tk_fail(TK_INVALID_ARGUMENT, "an argument's name is empty or has several lines");
        if (status == TK_OK)
            status = add(out, tk_array_dtype(args[i]), tk_array_shape(args[i]), name);
    }
    if (status != TK_OK) tk_signature_deinit(out);
    return status;
}

static bool same_name(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static bool same_type(const tk_signature_arg *a, const tk_signature_arg *b, bool shapes) {
    if (a->dtype != b->dtype || a->shape.count != b->shape.count) return false;
    size_t bytes = (size_t)a->shape.count * sizeof *a->shape.items;
    return !shapes || !memcmp(a->shape.items, b->shape.items, bytes);
}

bool tk_signature_match(const tk_signature *signature, const tk_signature *call, bool shapes,
                        size_t *places) {
    if (signature->count != call->count) return false;
    for (size_t i = 0; i < signature->count; i++) {
        const tk_signature_arg *arg = &signature->items[i];
        size_t at = i;
        if (arg->name)
            for (at = 0; at < call->count && !same_name(arg->name, call->items[at].name);) at++;
        if (at == call->count || !same_name(arg->name, call->items[at].name) ||
            !same_type(arg, &call->items[at], shapes))
            return false;
        places[i] = at;
    }
    return true;
}

static void put_lengths(const tk_shape *shape, tk_strbuf *out) {
    for (int64_t i = 0; i < shape->count; i++)
        tk_strbuf_printf(out, i ? ",%lld" : "%lld", (long long)shape->items[i]);
}

void tk_signature_print(const tk_signature *signature, tk_strbuf *out) {
    tk_strbuf_putc(out, '(');
    for (size_t i = 0; i < signature->count; i++) {
        const tk_signature_arg *arg = &signature->items[i];
        if (i) tk_strbuf_puts(out, ", ");
        if (arg->name) tk_strbuf_printf(out, "%.100s: ", arg->name);
        tk_strbuf_printf(out, "%s[", tk_dtype_name(arg->dtype));
        put_lengths(&arg->shape, out);
        tk_strbuf_putc(out, ']');
    }
    tk_strbuf_putc(out, ')');
}

void tk_signature_write(const tk_signature *signature, tk_strbuf *out) {
    for (size_t i = 0; i < signature->count; i++) {
        const tk_signature_arg *arg = &signature->items[i];
        tk_strbuf_printf(out, "%s ", tk_dtype_name(arg->dtype));
        put_lengths(&arg->shape, out);
        if (arg->shape.count == 0) tk_strbuf_putc(out, '-');
        if (arg->name) tk_strbuf_printf(out, " %s", arg->name);
        tk_strbuf_putc(out, '\n');
    }
}

/* "2,3" up to a blank or the end; "-" is a scalar. */
static bool read_lengths(const char *text, tk_shape *out) {
    *out = (tk_shape){.count = 0};
    if (!strcmp(text, "-")) return true;
    for (const char *at = text;; at++) {
        char *end;
        if (*at < '0' || *at > '9' || out->count == TK_AXES_MAX) return false;
        long long length = strtoll(at, &end, 10);
        if (length == INT64_MAX) return false;
        out->items[out->count++] = length;
        at = end;
        if (!*at) return true;
        if (*at != ',') return false;
    }
}

static tk_status read_line(const char *file, char *line, tk_signature *out) {
    char *shape = strchr(line, ' '), *name = NULL;
    tk_dtype dtype;
    tk_shape lengths;
    if (shape) {
        *shape++ = 0;
        name = strchr(shape, ' ');
        if (name) *name++ = 0;
    }
    if (!shape || tk_dtype_parse(line, &dtype) != TK_OK || !read_lengths(shape, &lengths) ||
        (name && !*name))
        return tk_fail(TK_FORMAT_ERROR,
                       "%.400s: argument %zu is \"%.60s %.60s\", expected a dtype and lengths",
                       file, out->count, line, shape ? shape : "");
    return add(out, dtype, lengths, name);
}

tk_status tk_signature_read(const char *file, const char *text, tk_signature *out) {
    *out = (tk_signature){0};
    char *copy = tk_strdup(text), *at = copy;
    tk_status status = copy ? TK_OK : no_memory();
    while (status == TK_OK && *at) {
        char *end = strchr(at, '\n');
        if (end) *end = 0;
        status = read_line(file, at, out);
        at = end ? end + 1 : at + strlen(at);
        if (!end) break;
    }
    tk_free(copy);
    if (status != TK_OK) tk_signature_deinit(out);
    return status;
}
