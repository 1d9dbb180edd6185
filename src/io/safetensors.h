/* What the parts of the safetensors reader and the checkpoints share. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include "io/file.h"
#include "io/json.h"
#include "tiki/io.h"

#define TK_SAFETENSORS_MODEL "model.safetensors"
#define TK_SAFETENSORS_INDEX "model.safetensors.index.json"

/* The header of a file may have this many bytes, as in the format's own library. */
#define TK_SAFETENSORS_HEADER_MAX 100000000

/* Adds the arrays of one file; `name` stands for it in messages. */
tk_status tk_safetensors_read(tk_context *context, const char *name, tk_mapping *mapping,
                              tk_tree *tree, tk_metadata *metadata);

/* Checks that a file's header is right and that the file is as long as it says. */
tk_status tk_safetensors_check(const char *path);

/* Parses an index: *out_map is its weight_map, names to file names in the same folder, checked;
 * the caller drops it with json_decref. */
tk_status tk_safetensors_index(const char *name, const char *text, size_t bytes, json_t **out_map);

#endif
