/* Flattening and rebuilding trees. See tree.h. */
#include "tree.h"

bool tkpy_leaves_push(tkpy_leaves *leaves, tk_array array) {
    if (leaves->count == leaves->capacity) {
        size_t capacity = leaves->capacity ? 2 * leaves->capacity : 16;
        tk_array *items = PyMem_Realloc(leaves->items, capacity * sizeof *items);
        if (!items) return PyErr_NoMemory(), false;
        leaves->items = items;
        leaves->capacity = capacity;
    }
    leaves->items[leaves->count++] = tk_keep(array);
    return true;
}

void tkpy_leaves_clear(tkpy_leaves *leaves) {
    for (size_t i = 0; i < leaves->count; i++) tk_release(leaves->items[i]);
    PyMem_Free(leaves->items);
    *leaves = (tkpy_leaves){0};
}

static bool flatten_dict(PyObject *tree, tkpy_leaves *leaves) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(tree, &at, &key, &value))
        if (!tkpy_tree_flatten(value, leaves)) return false;
    return true;
}

bool tkpy_tree_flatten(PyObject *tree, tkpy_leaves *leaves) {
    if (tkpy_is_array(tree)) return tkpy_leaves_push(leaves, tkpy_handle(tree));
    bool is_list = PyList_Check(tree);
    if (!is_list && !PyTuple_Check(tree))
        return PyDict_Check(tree) ? flatten_dict(tree, leaves) : true;
    if (Py_EnterRecursiveCall(" in a tree of arrays")) return false;
    Py_ssize_t count = is_list ? PyList_Size(tree) : PyTuple_Size(tree);
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < count; i++)
        ok =
            tkpy_tree_flatten(is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i), leaves);
    Py_LeaveRecursiveCall();
    return ok;
}

static PyObject *rebuild_dict(tkpy_state *state, PyObject *tree, const tk_array *items,
                              size_t *next) {
    PyObject *key, *value, *dict = PyDict_New();
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(tree, &at, &key, &value)) {
        PyObject *child = tkpy_tree_rebuild(state, value, items, next);
        if (!child || PyDict_SetItem(dict, key, child) < 0) Py_CLEAR(dict);
        Py_XDECREF(child);
    }
    return dict;
}

/* A named tuple is rebuilt as one. */
static PyObject *as_type_of(PyObject *tree, PyObject *tuple) {
    if (!tuple || PyTuple_CheckExact(tree) || !PyObject_HasAttrString(tree, "_fields"))
        return tuple;
    PyObject *named = PyObject_Call((PyObject *)Py_TYPE(tree), tuple, NULL);
    Py_DECREF(tuple);
    return named;
}

PyObject *tkpy_tree_rebuild(tkpy_state *state, PyObject *tree, const tk_array *items,
                            size_t *next) {
    if (tkpy_is_array(tree)) return tkpy_box(state, items[(*next)++]);
    if (PyDict_Check(tree)) return rebuild_dict(state, tree, items, next);
    bool is_list = PyList_Check(tree);
    if (!is_list && !PyTuple_Check(tree)) return tkpy_new_ref(tree);
    Py_ssize_t count = is_list ? PyList_Size(tree) : PyTuple_Size(tree);
    PyObject *copy = is_list ? PyList_New(count) : PyTuple_New(count);
    for (Py_ssize_t i = 0; copy && i < count; i++) {
        PyObject *child = tkpy_tree_rebuild(
            state, is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i), items, next);
        if (!child ||
            (is_list ? PyList_SetItem(copy, i, child) : PyTuple_SetItem(copy, i, child)) < 0)
            Py_CLEAR(copy);
    }
    return is_list ? copy : as_type_of(tree, copy);
}

/* ---- filling in place ---- */

/* Replaces the child under a key (of a dictionary) or number (of a list). */
static bool put_child(PyObject *tree, PyObject *key, PyObject *child) {
    int failed = PyDict_Check(tree)
                     ? PyDict_SetItem(tree, key, child)
                     : PyList_SetItem(tree, PyLong_AsSsize_t(key), tkpy_new_ref(child));
    return failed == 0;
}

static bool fill_child(tkpy_state *state, PyObject *tree, PyObject *key, PyObject *child,
                       const tk_array *items, size_t *next) {
    if (!tkpy_is_array(child)) return tkpy_tree_fill(state, child, items, next);
    PyObject *box = tkpy_box(state, items[(*next)++]);
    bool ok = box && put_child(tree, key, box);
    Py_XDECREF(box);
    return ok;
}

static bool fill_list(tkpy_state *state, PyObject *tree, const tk_array *items, size_t *next) {
    Py_ssize_t count = PyList_Size(tree);
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < count; i++) {
        PyObject *key = PyLong_FromSsize_t(i);
        ok = key && fill_child(state, tree, key, PyList_GetItem(tree, i), items, next);
        Py_XDECREF(key);
    }
    return ok;
}

bool tkpy_tree_fill(tkpy_state *state, PyObject *tree, const tk_array *items, size_t *next) {
    if (tkpy_is_array(tree)) return tkpy_rebox(state, tree, items[(*next)++]);
    if (PyList_Check(tree)) return fill_list(state, tree, items, next);
    if (PyDict_Check(tree)) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(tree, &at, &key, &value))
            if (!fill_child(state, tree, key, value, items, next)) return false;
        return true;
    }
    Py_ssize_t count = PyTuple_Check(tree) ? PyTuple_Size(tree) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!tkpy_tree_fill(state, PyTuple_GetItem(tree, i), items, next)) return false;
    return true;
}

static bool remember_child(PyObject *tree, PyObject *key, PyObject *child, PyObject *places) {
    if (!tkpy_is_array(child)) return tkpy_tree_remember(child, places);
    PyObject *place = PyTuple_Pack(3, tree, key, child);
    bool ok = place && PyList_Append(places, place) == 0;
    Py_XDECREF(place);
    return ok;
}

/* A box that is changed itself is remembered with a copy of it. */
static bool remember_box(PyObject *box, PyObject *places) {
    PyObject *copy = tkpy_box(tkpy_state_of(box), tkpy_handle(box));
    PyObject *place = copy ? PyTuple_Pack(3, box, Py_None, copy) : NULL;
    bool ok = place && PyList_Append(places, place) == 0;
    Py_XDECREF(copy);
    Py_XDECREF(place);
    return ok;
}

bool tkpy_tree_remember(PyObject *tree, PyObject *places) {
    if (tkpy_is_array(tree)) return remember_box(tree, places);
    if (PyDict_Check(tree)) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(tree, &at, &key, &value))
            if (!remember_child(tree, key, value, places)) return false;
        return true;
    }
    bool is_list = PyList_Check(tree), ok = true;
    Py_ssize_t count = is_list ? PyList_Size(tree) : PyTuple_Check(tree) ? PyTuple_Size(tree) : 0;
    for (Py_ssize_t i = 0; ok && i < count; i++) {
        PyObject *key = PyLong_FromSsize_t(i);
        ok = key && (is_list ? remember_child(tree, key, PyList_GetItem(tree, i), places)
                             : tkpy_tree_remember(PyTuple_GetItem(tree, i), places));
        Py_XDECREF(key);
    }
    return ok;
}

bool tkpy_tree_restore(PyObject *places) {
    Py_ssize_t count = PyList_Size(places);
    bool ok = true;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *place = PyList_GetItem(places, i), *tree = PyTuple_GetItem(place, 0);
        PyObject *key = PyTuple_GetItem(place, 1), *child = PyTuple_GetItem(place, 2);
        if (tkpy_is_array(tree))
            ok &= tkpy_rebox(tkpy_state_of(tree), tree, tkpy_handle(child));
        else if (PyDict_Check(tree) || PyLong_AsSsize_t(key) < PyList_Size(tree))
            ok &= put_child(tree, key, child);
    }
    return ok;
}
