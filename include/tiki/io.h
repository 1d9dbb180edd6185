/* Files: safetensors, npy, npz; metadata; writing so that nothing is lost.
 *
 * Readers trust nothing: a header that is truncated, oversized or lies about offsets, sizes, dtypes
 * or overlaps gives TK_FORMAT_ERROR with the file's name, what was expected and what was found.
 * System errors give TK_IO_ERROR with the file's name and the system's reason.
 *
 * Writers write to a temporary name (".tiki-tmp-...") beside the target, sync the file, rename it
 * over the target and sync the folder: after a crash the target is the old file or the new one,
 * whole. A writer that fails removes its temporary file. Folders must exist.
 *
 * Readers that fail leave the tree as it was, unless memory ran out while arrays were added.
 *
 * Any thread; a tree, as always, is used by one thread at a time. */
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

/* Adds the arrays of a file to `tree`, in the order of its header; an array of the same name is
 * replaced. The file is mapped: values are not read before they are used (truth values are: they
 * must be 0 or 1), and the memory stays mapped while an array needs it, so the file must not be
 * changed in place meanwhile; replacing it by rename, as all writers here do, is fine. Its metadata
 * goes to `metadata`, which may be NULL. Dtypes that Tiki does not have (fp8, ...) are
 * TK_DTYPE_ERROR naming the tensor.
 *
 * A path that ends in ".index.json", or a folder that holds model.safetensors.index.json or
 * model.safetensors, loads all its shards, in the order of the index's weight_map; metadata is then
 * that of the first shard. */
TK_API tk_status tk_safetensors_load(tk_context *context, const char *path, tk_tree *tree,
                                     tk_metadata *metadata);

/* The same from memory, which is copied. `name` stands for the file in messages. */
TK_API tk_status tk_safetensors_parse(tk_context *context, const char *name, const void *data,
                                      size_t bytes, tk_tree *tree, tk_metadata *metadata);

/* Evaluates and writes a tree. The header lists tensors in the tree's order; their data is in order
 * of falling element size, so that each is aligned without a gap, which the format forbids.
 * `metadata` may be NULL. The same tree and metadata give the same bytes. */
TK_API tk_status tk_safetensors_save(const char *path, const tk_tree *tree,
                                     const tk_metadata *metadata);

/* Writes `model-00001-of-0000N.safetensors` files with at most `shard_bytes` of tensors each (a
 * tensor that is larger has a file of its own) into a folder, and model.safetensors.index.json
 * last; one model.safetensors where all fits one shard. What an earlier save left under the other
 * of these two names is removed. Each file is whole after a crash, the set only when the folder
 * held no shards before: use a fresh folder, as a checkpoint does. */
TK_API tk_status tk_safetensors_save_sharded(const char *folder, const tk_tree *tree,
                                             const tk_metadata *metadata, int64_t shard_bytes);

/* ---- npy and npz ---- */

/* Loads one array; format versions 1 to 3. Big-endian data is converted, Fortran order becomes
 * strides, other data stays mapped as safetensors do. Object, string and structured dtypes, and
 * float and complex widths that Tiki does not have, are TK_DTYPE_ERROR. Bytes after the array are
 * TK_FORMAT_ERROR. On failure *out_array is TK_NO_ARRAY or carries the error. */
TK_API tk_status tk_npy_load(tk_context *context, const char *path, tk_array *out_array);
TK_API tk_status tk_npy_parse(tk_context *context, const char *name, const void *data, size_t bytes,
                              tk_array *out_array);

/* Evaluates and writes an array, the same bytes as numpy.save. bfloat16 has no NumPy dtype: it is
 * written as the void type "<V2", as NumPy does with ml_dtypes, and "<V2" and "|V2" are read as
 * bfloat16. */
TK_API tk_status tk_npy_save(const char *path, tk_array array);

/* Adds the arrays of an archive to `tree`, names without ".npy", in the archive's order; an array
 * of the same name is replaced. Members that are no .npy are TK_FORMAT_ERROR. */
TK_API tk_status tk_npz_load(tk_context *context, const char *path, tk_tree *tree);
TK_API tk_status tk_npz_parse(tk_context *context, const char *name, const void *data, size_t bytes,
                              tk_tree *tree);

/* Evaluates and writes a tree; the same tree gives the same bytes. */
TK_API tk_status tk_npz_save(const char *path, const tk_tree *tree, bool compressed);

/* ---- whole files ---- */

/* Reads a file whole; the caller frees *out_data with tk_text_free. A zero byte follows the data.
 */
TK_API tk_status tk_file_read(const char *path, char **out_data, size_t *out_bytes);

/* Writes a file as described above. */
TK_API tk_status tk_file_write(const char *path, const void *data, size_t bytes);

/* Test hook: called before each step that changes what is on disk, with the step's name ("write",
 * "sync", "rename", "link", "remove", "folder", "cut") and path; a status other than TK_OK makes
 * the step fail with TK_IO_ERROR. NULL turns it off. One a process; set while nothing is written.
 */
TK_API void tk_file_set_hook(tk_status (*hook)(void *arg, const char *step, const char *path),
                             void *arg);

TK_END_DECLS

#endif
