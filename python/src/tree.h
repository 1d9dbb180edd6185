/* Trees of lists, tuples and dictionaries with arrays as leaves. Other leaves are carried along. */
#ifndef TKPY_TREE_H
#define TKPY_TREE_H

#include "module.h"

/* Handles of the arrays of a tree, kept; drop them with tkpy_leaves_clear. */
typedef struct tkpy_leaves {
    tk_array *items;
    size_t count, capacity;
} tkpy_leaves;

bool tkpy_leaves_push(tkpy_leaves *leaves, tk_array array);
void tkpy_leaves_clear(tkpy_leaves *leaves);

/* Appends the arrays of a tree in order (dictionaries in theirs). False with an exception. */
bool tkpy_tree_flatten(PyObject *tree, tkpy_leaves *leaves);

/* A tree of the same form with its arrays replaced by items[*next], ... NULL with an exception. */
PyObject *tkpy_tree_rebuild(tkpy_state *state, PyObject *tree, const tk_array *items, size_t *next);

/* Puts items[*next], ... where the arrays of a tree stand, as new boxes. Lists and dictionaries are
 * changed; in a tuple, and for a tree that is one array, the box itself is. */
bool tkpy_tree_fill(tkpy_state *state, PyObject *tree, const tk_array *items, size_t *next);

/* Appends (container, key, box) of each array that tkpy_tree_fill would replace, and puts them
 * back. */
bool tkpy_tree_remember(PyObject *tree, PyObject *places);
bool tkpy_tree_restore(PyObject *places);

#endif
