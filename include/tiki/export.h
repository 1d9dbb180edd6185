/* Functions in files: recorded once, saved as graph text with the arrays they need, called again
 * without the code that made them.
 *
 * A file holds one function, recorded for one or several signatures: numbers, names, dtypes and
 * shapes of arguments. It is a safetensors file: its tensors are the arrays that the function read
 * besides its arguments, its metadata the graph texts (docs/exported-functions.md is the format).
 * Readers trust nothing in it.
 *
 * An exporter is used by one thread at a time; a loaded function by any number. */
#ifndef TIKI_EXPORT_H
#define TIKI_EXPORT_H

#include "tiki/io.h"
#include "tiki/transforms.h"

TK_BEGIN_DECLS

typedef struct tk_exporter tk_exporter;
typedef struct tk_exported tk_exported;

/* NULL when memory is out, or `context` is NULL. Freed with tk_exporter_free, which takes NULL. */
TK_API tk_exporter *tk_exporter_new(tk_context *context);
TK_API void tk_exporter_free(tk_exporter *exporter);

/* Records `function` for arguments like `args`, the last `n_names` of which are given by name.
 * `shapeless`: for every length of the arguments above 1 that can be followed (see
 * tk_traced_create_shapeless); the function is then called several times. TK_INVALID_ARGUMENT when
 * the signature is there already; the first failure of the function where it fails. */
TK_API tk_status tk_exporter_add(tk_exporter *exporter, tk_function function, void *self,
                                 const tk_array *args, size_t n_args, const char *const *names,
                                 size_t n_names, bool shapeless);

/* Evaluates the arrays and writes the file. `metadata` is a text of the user's; NULL: none. */
TK_API tk_status tk_exporter_save(const tk_exporter *exporter, const char *path,
                                  const char *metadata);

/* Reads a file. *out_exported belongs to the caller (NULL on failure). */
TK_API tk_status tk_exported_load(tk_context *context, const char *path,
                                  tk_exported **out_exported);

/* The same from memory, which is copied. `name` stands for the file in messages. */
TK_API tk_status tk_exported_parse(tk_context *context, const char *name, const void *data,
                                   size_t bytes, tk_exported **out_exported);

/* The user's text, "" where there is none. Borrowed. */
TK_API const char *tk_exported_metadata(const tk_exported *exported);

/* The results for arguments of one of the signatures, appended to `results`; lazy.
 * TK_INVALID_ARGUMENT lists the signatures when none fits. */
TK_API tk_status tk_exported_call(const tk_exported *exported, const tk_array *args, size_t n_args,
                                  const char *const *names, size_t n_names, tk_arrays *results);

/* NULL is allowed. Before its context is released. */
TK_API void tk_exported_free(tk_exported *exported);

TK_END_DECLS

#endif
