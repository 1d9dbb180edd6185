/* Parameter trees: arrays under dotted names ("model.layers.0.self_attn.q_proj.weight").
 *
 * A tree is flat: an ordered list of names and arrays, names compared byte for byte. Nesting is in
 * the names, so a subtree is all names that begin with "prefix.", and files, optimizers and
 * transforms all work on one list. Order is that of insertion, and it is what "the i-th parameter"
 * means everywhere.
 *
 * Rejected: nested maps. Everything that walks parameters flattens them first, and the dotted name
 * is what the files hold.
 *
 * A tree owns a reference to each array. A tree belongs to one thread at a time. */
#ifndef TIKI_TREE_H
#define TIKI_TREE_H

#include "tiki/array.h"

TK_BEGIN_DECLS

typedef struct tk_tree tk_tree;

/* An empty tree; NULL when memory is out. Freed with tk_tree_free, which takes NULL. */
TK_API tk_tree *tk_tree_new(void);
TK_API void tk_tree_free(tk_tree *tree);

/* Number of arrays. */
TK_API size_t tk_tree_count(const tk_tree *tree);

/* Name and array at a position; NULL and TK_NO_ARRAY from the count on. Borrowed: valid until the
 * tree changes. */
TK_API const char *tk_tree_name(const tk_tree *tree, size_t index);
TK_API tk_array tk_tree_at(const tk_tree *tree, size_t index);

/* The arrays in order, for calls that take a list. Borrowed. */
TK_API const tk_array *tk_tree_arrays(const tk_tree *tree);

/* Position of a name; tk_tree_count when it is not there. */
TK_API size_t tk_tree_find(const tk_tree *tree, const char *name);

/* The array of a name, borrowed; TK_NO_ARRAY when it is not there, with this thread's message
 * naming it. */
TK_API tk_array tk_tree_get(const tk_tree *tree, const char *name);

/* Sets or replaces; the tree keeps its own references to name and array. TK_INVALID_ARGUMENT for
 * TK_NO_ARRAY and for an empty name, TK_OUT_OF_MEMORY. */
TK_API tk_status tk_tree_set(tk_tree *tree, const char *name, tk_array array);

/* Replaces the array at a position. */
TK_API tk_status tk_tree_set_at(tk_tree *tree, size_t index, tk_array array);

/* Replaces all arrays by a list of the same length, in order. */
TK_API tk_status tk_tree_set_all(tk_tree *tree, const tk_array *arrays, size_t count);

/* Drops all arrays. */
TK_API void tk_tree_clear(tk_tree *tree);

/* Elements and bytes of all arrays together. */
TK_API int64_t tk_tree_size(const tk_tree *tree);
TK_API int64_t tk_tree_bytes(const tk_tree *tree);

/* Evaluates all arrays at once. */
TK_API tk_status tk_tree_eval(const tk_tree *tree);

TK_END_DECLS

#endif
