/* What writer and reader of exported functions share: signatures and the keys of the metadata. */
#ifndef IO_EXPORTED_H
#define IO_EXPORTED_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "tiki/export.h"

#define TK_EXPORTED_VERSION "1"

typedef struct tk_signature_arg {
    tk_dtype dtype;
    tk_shape shape;
    char *name; /* NULL: given by position */
} tk_signature_arg;

typedef TK_VEC(tk_signature_arg) tk_signature;

void tk_signature_deinit(tk_signature *signature);

/* The signature of a call. Empty on failure. */
tk_status tk_signature_of(const tk_array *args, size_t n_args, const char *const *names,
                          size_t n_names, tk_signature *out);

/* Where each argument of `signature` is among those of `call`: names may be in another order. False
 * when number, names, dtypes or ranks differ, or, with `shapes`, a shape. */
bool tk_signature_match(const tk_signature *signature, const tk_signature *call, bool shapes,
                        size_t *places);

/* "(float32[2,3], y: float32[3])" */
void tk_signature_print(const tk_signature *signature, tk_strbuf *out);

/* The form in files: a line an argument, `float32 2,3 name`, `-` for the shape of a scalar. */
void tk_signature_write(const tk_signature *signature, tk_strbuf *out);
tk_status tk_signature_read(const char *file, const char *text, tk_signature *out);

/* "trace.3.graph" and so on. */
void tk_exported_key(char *out, size_t bytes, size_t trace, const char *what);

#endif
