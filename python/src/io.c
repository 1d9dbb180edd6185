/* Files: what tiki/_files.py stands on. */
#include "tree.h"

PyObject *tkpy_dict_of_tree(tkpy_state *state, const tk_tree *tree) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < tk_tree_count(tree); i++) {
        PyObject *box = tkpy_box(state, tk_tree_at(tree, i));
        if (!box || PyDict_SetItemString(dict, tk_tree_name(tree, i), box) < 0) Py_CLEAR(dict);
        Py_XDECREF(box);
    }
    return dict;
}

static PyObject *metadata_dict(const tk_metadata *metadata) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < tk_metadata_count(metadata); i++) {
        PyObject *value = PyUnicode_FromString(tk_metadata_value(metadata, i));
        if (!value || PyDict_SetItemString(dict, tk_metadata_key(metadata, i), value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

bool tkpy_tree_of_dict(tkpy_state *state, PyObject *dict, tk_tree *tree) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        if (!name || !tkpy_is_array(value)) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "names must be strings and values arrays, not %R: %R",
                             (PyObject *)Py_TYPE(key), (PyObject *)Py_TYPE(value));
            return false;
        }
        tk_status status = tk_tree_set(tree, name, tkpy_handle(value));
        if (status != TK_OK) return tkpy_raise(state, status), false;
    }
    return true;
}

/* _load_npy(path, data or None) */
static PyObject *load_npy(PyObject *module, PyObject *args) {
    const char *path;
    Py_buffer data = {0};
    tkpy_state *state = tkpy_module_state(module);
    tk_context *context = tkpy_context();
    if (!context || !PyArg_ParseTuple(args, "s|y*", &path, &data)) return NULL;
    tk_array array;
    PyObject *box = NULL;
    tk_scope scope = tk_scope_open(context);
    tk_status status = data.obj ? tk_npy_parse(context, path, data.buf, (size_t)data.len, &array)
                                : tk_npy_load(context, path, &array);
    box = status == TK_OK ? tkpy_box(state, array) : tkpy_raise(state, status);
    tk_scope_close(scope);
    if (data.obj) PyBuffer_Release(&data);
    return box;
}

static PyObject *load_tree(PyObject *module, PyObject *args, bool is_npz) {
    const char *path;
    Py_buffer data = {0};
    tkpy_state *state = tkpy_module_state(module);
    tk_context *context = tkpy_context();
    if (!context || !PyArg_ParseTuple(args, "s|y*", &path, &data)) return NULL;
    tk_scope scope = tk_scope_open(context);
    tk_tree *tree = tk_tree_new();
    tk_metadata *metadata = tk_metadata_new();
    tk_status status = tree && metadata ? TK_OK : TK_OUT_OF_MEMORY;
    if (status == TK_OK && is_npz)
        status = data.obj ? tk_npz_parse(context, path, data.buf, (size_t)data.len, tree)
                          : tk_npz_load(context, path, tree);
    else if (status == TK_OK)
        status = data.obj ? tk_safetensors_parse(context, path, data.buf, (size_t)data.len, tree,
                                                 metadata)
                          : tk_safetensors_load(context, path, tree, metadata);
    PyObject *arrays = status == TK_OK ? tkpy_dict_of_tree(state, tree) : tkpy_raise(state, status);
    PyObject *texts = arrays ? metadata_dict(metadata) : NULL;
    PyObject *pair = texts ? PyTuple_Pack(2, arrays, texts) : NULL;
    Py_XDECREF(arrays);
    Py_XDECREF(texts);
    tk_tree_free(tree);
    tk_metadata_free(metadata);
    tk_scope_close(scope);
    if (data.obj) PyBuffer_Release(&data);
    return pair;
}

static PyObject *load_npz(PyObject *module, PyObject *args) {
    return load_tree(module, args, true);
}
static PyObject *load_safetensors(PyObject *module, PyObject *args) {
    return load_tree(module, args, false);
}

static PyObject *save_npy(PyObject *module, PyObject *args) {
    const char *path;
    PyObject *array;
    tkpy_state *state = tkpy_module_state(module);
    if (!PyArg_ParseTuple(args, "sO", &path, &array)) return NULL;
    if (!tkpy_is_array(array)) {
        PyErr_Format(PyExc_TypeError, "an array is expected, not %R", (PyObject *)Py_TYPE(array));
        return NULL;
    }
    if (!tkpy_eval_one(state, tkpy_handle(array))) return NULL;
    tk_status status = tk_npy_save(path, tkpy_handle(array));
    if (status != TK_OK) return tkpy_raise(state, status);
    Py_RETURN_NONE;
}

static bool fill_metadata(PyObject *dict, tk_metadata *metadata, tkpy_state *state) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        if (!name || !text) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "metadata must map strings to strings");
            return false;
        }
        tk_status status = tk_metadata_set(metadata, name, text);
        if (status != TK_OK) return tkpy_raise(state, status), false;
    }
    return true;
}

/* _save_tree(path, arrays, format, metadata or None); format "npz", "npz compressed", "safetensors"
 */
static PyObject *save_tree(PyObject *module, PyObject *args) {
    const char *path, *format;
    PyObject *arrays, *texts;
    tkpy_state *state = tkpy_module_state(module);
    if (!tkpy_context() ||
        !PyArg_ParseTuple(args, "sO!sO", &path, &PyDict_Type, &arrays, &format, &texts))
        return NULL;
    tk_tree *tree = tk_tree_new();
    tk_metadata *metadata = tk_metadata_new();
    tk_status status = TK_OUT_OF_MEMORY;
    bool ok = tree && metadata && tkpy_tree_of_dict(state, arrays, tree) &&
              (texts == Py_None || fill_metadata(texts, metadata, state)) &&
              tkpy_eval(state, tk_tree_arrays(tree), tk_tree_count(tree));
    if (ok && format[0] == 'n')
        status = tk_npz_save(path, tree, format[3] != 0);
    else if (ok)
        status = tk_safetensors_save(path, tree, texts == Py_None ? NULL : metadata);
    tk_tree_free(tree);
    tk_metadata_free(metadata);
    if (!ok || status != TK_OK) return tkpy_raise(state, status);
    Py_RETURN_NONE;
}

PyMethodDef tkpy_io_functions[] = {{"_load_npy", load_npy, METH_VARARGS, NULL},
                                   {"_load_npz", load_npz, METH_VARARGS, NULL},
                                   {"_load_safetensors", load_safetensors, METH_VARARGS, NULL},
                                   {"_save_npy", save_npy, METH_VARARGS, NULL},
                                   {"_save_tree", save_tree, METH_VARARGS, NULL},
                                   {NULL, NULL, 0, NULL}};
