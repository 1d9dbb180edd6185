/* Files: safetensors, npy, npz; metadata; writing so that nothing is lost.
 *
 * Readers trust nothing: a header that is truncated, oversized or lies about offsets, sizes, dtypes
 * or overlaps gives TK_FORMAT_ERROR with the file's name, what was expected and what was found.
 * System errors give TK_IO_ERROR with the file's name and the system's reason.
 *
 * Writers write to a temporary name beside the target, sync the file, rename it over the target and
 * sync the folder: after a crash the target is the old file or the new one, whole. */
#ifndef TIKI_IO_H
#define TIKI_IO_H

#include "tiki/tree.h"

TK_BEGIN_DECLS

/* ---- metadata: text to text, in order of insertion ---- */

typedef struct tk_metadata tk_metadata;

/* NULL when memory is out. Freed with tk_metadata_free, which takes NULL. */
TK_API tk_metadata *tk_metadata_new(void);
TK_API void tk_metadata_free(tk_metadata *metadata);
TK_API tk_status tk_metadata_set(tk_metadata *metadata, const char *key, const char *value);

/* The value of a key, NULL when it is not there. Borrowed. */
TK_API const char *tk_metadata_get(const tk_metadata *metadata, const char *key);
TK_API size_t tk_metadata_count(const tk_metadata *metadata);
TK_API const char *tk_metadata_key(const tk_metadata *metadata, size_t index);
TK_API const char *tk_metadata_value(const tk_metadata *metadata, size_t index);

/* ---- safetensors ---- */

/* Adds the arrays of a file to `tree`. The file is mapped: nothing is read before it is used, and
 * the memory stays mapped while an array needs it. `metadata` may be NULL. Dtypes that Tiki does
 * not have (fp8, ...) are TK_DTYPE_ERROR naming the tensor. A path that ends in ".index.json", or a
 * folder that holds model.safetensors.index.json or model.safetensors, loads all its shards. */
TK_API tk_status tk_safetensors_load(tk_context *context, const char *path, tk_tree *tree,
                                     tk_metadata *metadata);

/* The same from memory, which is copied. `name` stands for the file in messages. */
TK_API tk_status tk_safetensors_parse(tk_context *context, const char *name, const void *data,
                                      size_t bytes, tk_tree *tree, tk_metadata *metadata);

/* Evaluates and writes a tree; tensors are written in the tree's order, 8-byte aligned. `metadata`
 * may be NULL. complex64 and other dtypes that the format lacks are TK_DTYPE_ERROR. */
TK_API tk_status tk_safetensors_save(const char *path, const tk_tree *tree,
                                     const tk_metadata *metadata);

/* Writes `model-00001-of-0000N.safetensors` files of at most `shard_bytes` each into a folder, and
 * model.safetensors.index.json last; one model.safetensors where all fits one shard. */
TK_API tk_status tk_safetensors_save_sharded(const char *folder, const tk_tree *tree,
                                             const tk_metadata *metadata, int64_t shard_bytes);

/* ---- npy and npz ---- */

/* Loads one array; big-endian and Fortran-ordered files are converted. Object and string dtypes,
 * and float and complex widths that Tiki does not have, are TK_DTYPE_ERROR. */
TK_API tk_status tk_npy_load(tk_context *context, const char *path, tk_array *out_array);
TK_API tk_status tk_npy_parse(tk_context *context, const char *name, const void *data, size_t bytes,
                              tk_array *out_array);

/* bfloat16 has no NumPy dtype: it is written as the void type "|V2", as ml_dtypes does, and read
 * back as such. */
TK_API tk_status tk_npy_save(const char *path, tk_array array);

/* Adds the arrays of an archive to `tree`, names without ".npy". */
TK_API tk_status tk_npz_load(tk_context *context, const char *path, tk_tree *tree);
TK_API tk_status tk_npz_save(const char *path, const tk_tree *tree, bool compressed);

/* ---- whole files ---- */

/* Reads a file whole; the caller frees *out_data with tk_text_free. A zero byte follows the data.
 */
TK_API tk_status tk_file_read(const char *path, char **out_data, size_t *out_bytes);

/* Writes a file as described above. */
TK_API tk_status tk_file_write(const char *path, const void *data, size_t bytes);

/* Test hook: called before each write, sync, rename and link that a writer makes, with the step's
 * name and path; a status other than TK_OK makes the step fail. NULL turns it off. One a process.
 */
TK_API void tk_file_set_hook(tk_status (*hook)(void *arg, const char *step, const char *path),
                             void *arg);

TK_END_DECLS

#endif
