/* From bytes of a file to arrays of a tree, for all formats. */
#ifndef IO_LOAD_H
#define IO_LOAD_H

#include "io/file.h"
#include "tiki/io.h"

/* Where an array lies. */
typedef struct tk_placement {
    tk_dtype dtype;
    tk_shape shape;
    size_t offset; /* in the mapping */
    bool fortran;  /* first axis fastest */
} tk_placement;

/* Bytes of the values; the shape is checked. `what` names file and array in the message. */
tk_status tk_placement_bytes(const char *what, const tk_placement *placement, size_t *out_bytes);

/* An array on the mapping's memory, or a copy where it is misaligned. The values lie within the
 * mapping. Truth values other than 0 and 1 are TK_FORMAT_ERROR. *out_array belongs to the caller as
 * the results of ops do; on failure it is TK_NO_ARRAY or carries the error. */
tk_status tk_place_array(tk_context *context, const char *what, tk_mapping *mapping,
                         const tk_placement *placement, tk_array *out_array);

/* The same, set in a tree under a name. */
tk_status tk_place_in_tree(tk_context *context, const char *file, const char *name,
                           tk_mapping *mapping, const tk_placement *placement, tk_tree *tree);

/* Sets all arrays of `from` in `to`. */
tk_status tk_tree_merge(tk_tree *to, const tk_tree *from);

/* The row-major bytes of an array for writing: its own memory where it is row-major, else a copy
 * that *out_copy owns (freed with tk_free). Evaluates. */
tk_status tk_array_bytes(tk_array array, const void **out_data, size_t *out_bytes, void **out_copy);

#endif
