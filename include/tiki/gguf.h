/* GGUF files: arrays, some of them in blocks of few bits, and typed metadata.
 *
 * Tensors of type f32, f16, bf16, f64, i8, i16, i32, i64 become arrays of that dtype, on the mapped
 * file. Those of q4_0, q4_1 and q8_0 become quantised arrays as MLX has them: for a tensor
 * "x.weight", "x.weight" (uint32), "x.scales" and "x.biases" (float16), affine in groups of 32; a
 * name that does not end in ".weight" keeps itself and gets ".scales" and ".biases" behind it.
 * Other types are TK_UNSUPPORTED naming tensor and type.
 *
 * Readers trust nothing, as those of tiki/io.h: a header that is cut off, lies about counts, sizes
 * or offsets, names something twice or overlaps is TK_FORMAT_ERROR with file, expected and found.
 * Any thread; values and trees are used by one thread at a time. */
#ifndef TIKI_GGUF_H
#define TIKI_GGUF_H

#include "tiki/tree.h"

TK_BEGIN_DECLS

/* ---- metadata: keys with arrays, texts or lists of texts, in order of insertion ---- */

typedef struct tk_gguf_values tk_gguf_values;

typedef enum tk_gguf_kind {
    TK_GGUF_ARRAY, /* a scalar or vector of numbers or truth values */
    TK_GGUF_TEXT,
    TK_GGUF_TEXTS
} tk_gguf_kind;

/* NULL when memory is out. Freed with tk_gguf_values_free, which takes NULL. */
TK_API tk_gguf_values *tk_gguf_values_new(void);
TK_API void tk_gguf_values_free(tk_gguf_values *values);

/* Set or replace. Texts have `bytes` bytes, zeros among them if need be, and are copied. An array
 * has at most one axis (TK_SHAPE_ERROR) and a dtype that the format has: no half types, no complex
 * numbers (TK_DTYPE_ERROR); the values keep a reference. */
TK_API tk_status tk_gguf_set_array(tk_gguf_values *values, const char *key, tk_array array);
TK_API tk_status tk_gguf_set_text(tk_gguf_values *values, const char *key, const char *text,
                                  size_t bytes);

/* Makes the key a list without texts, and adds one to its end. */
TK_API tk_status tk_gguf_set_texts(tk_gguf_values *values, const char *key);
TK_API tk_status tk_gguf_add_text(tk_gguf_values *values, const char *key, const char *text,
                                  size_t bytes);

/* What is at a position below the count. Borrowed; NULL, TK_NO_ARRAY and 0 where it is something
 * else. Texts end with a zero byte that is not counted. */
TK_API size_t tk_gguf_count(const tk_gguf_values *values);
TK_API const char *tk_gguf_key(const tk_gguf_values *values, size_t index);
TK_API tk_gguf_kind tk_gguf_kind_of(const tk_gguf_values *values, size_t index);
TK_API tk_array tk_gguf_array(const tk_gguf_values *values, size_t index);
TK_API size_t tk_gguf_n_texts(const tk_gguf_values *values, size_t index);
TK_API const char *tk_gguf_text(const tk_gguf_values *values, size_t index, size_t which,
                                size_t *out_bytes);

/* The position of a key, the count where it is not there. */
TK_API size_t tk_gguf_find(const tk_gguf_values *values, const char *key);

/* ---- files ---- */

/* Adds the arrays of a file of version 2 or 3 to `tree` in the file's order; one of the same name
 * is replaced. `values` may be NULL. Nested lists in the metadata are TK_UNSUPPORTED. On failure
 * both are as they were, unless memory ran out while arrays were added. */
TK_API tk_status tk_gguf_load(tk_context *context, const char *path, tk_tree *tree,
                              tk_gguf_values *values);

/* The same from memory, which is copied. `name` stands for the file in messages. */
TK_API tk_status tk_gguf_parse(tk_context *context, const char *name, const void *data,
                               size_t bytes, tk_tree *tree, tk_gguf_values *values);

/* Evaluates and writes a tree, as tiki/io.h writes files. Three arrays that a reader would make of
 * one q4_0, q4_1 or q8_0 tensor are written as that tensor, bit for bit; uint32 arrays that are
 * none are TK_DTYPE_ERROR, as are dtypes without a tensor type. `values` may be NULL; its
 * "general.alignment", a uint32 that is a power of two, is obeyed. */
TK_API tk_status tk_gguf_save(const char *path, const tk_tree *tree, const tk_gguf_values *values);

TK_END_DECLS

#endif
