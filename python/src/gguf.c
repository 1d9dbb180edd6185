/* GGUF files: what tiki/_files.py stands on. Metadata is a dictionary of arrays, texts and lists of
 * texts; bytes that are no UTF-8 become lone surrogates and go back as they were. */
#include "tiki/gguf.h"

#include "tree.h"

static PyObject *text_at(const tk_gguf_values *values, size_t i, size_t which) {
    size_t bytes;
    const char *text = tk_gguf_text(values, i, which, &bytes);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, "surrogateescape");
}

static PyObject *value_at(tkpy_state *state, const tk_gguf_values *values, size_t i) {
    if (tk_gguf_kind_of(values, i) == TK_GGUF_ARRAY)
        return tkpy_box(state, tk_gguf_array(values, i));
    if (tk_gguf_kind_of(values, i) == TK_GGUF_TEXT) return text_at(values, i, 0);
    Py_ssize_t count = (Py_ssize_t)tk_gguf_n_texts(values, i);
    PyObject *list = PyList_New(count);
    for (Py_ssize_t k = 0; list && k < count; k++) {
        PyObject *text = text_at(values, i, (size_t)k);
        if (!text || PyList_SetItem(list, k, text) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *dict_of(tkpy_state *state, const tk_gguf_values *values) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < tk_gguf_count(values); i++) {
        PyObject *value = value_at(state, values, i);
        if (!value || PyDict_SetItemString(dict, tk_gguf_key(values, i), value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* _load_gguf(path, data or None) -> (arrays, metadata) */
static PyObject *load_gguf(PyObject *module, PyObject *args) {
    const char *path;
    Py_buffer data = {0};
    tkpy_state *state = tkpy_module_state(module);
    tk_context *context = tkpy_context();
    if (!context || !PyArg_ParseTuple(args, "s|y*", &path, &data)) return NULL;
    tk_tree *tree = tk_tree_new();
    tk_gguf_values *values = tk_gguf_values_new();
    tk_status status = tree && values ? TK_OK : TK_OUT_OF_MEMORY;
    if (status == TK_OK)
        status = data.obj ? tk_gguf_parse(context, path, data.buf, (size_t)data.len, tree, values)
                          : tk_gguf_load(context, path, tree, values);
    PyObject *arrays = status == TK_OK ? tkpy_dict_of_tree(state, tree) : tkpy_raise(state, status);
    PyObject *metadata = arrays ? dict_of(state, values) : NULL;
    PyObject *pair = metadata ? PyTuple_Pack(2, arrays, metadata) : NULL;
    Py_XDECREF(arrays);
    Py_XDECREF(metadata);
    tk_tree_free(tree);
    tk_gguf_values_free(values);
    if (data.obj) PyBuffer_Release(&data);
    return pair;
}

/* Calls `put` with the bytes of a text. */
static bool put_text(tkpy_state *state, tk_gguf_values *values, const char *key, PyObject *text,
                     tk_status (*put)(tk_gguf_values *values, const char *key, const char *text,
                                      size_t bytes)) {
    char *data;
    Py_ssize_t size;
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    if (!bytes) return false;
    tk_status status = TK_INVALID_ARGUMENT;
    bool ok = PyBytes_AsStringAndSize(bytes, &data, &size) == 0;
    if (ok) status = put(values, key, data, (size_t)size);
    Py_DECREF(bytes);
    if (ok && status != TK_OK) tkpy_raise(state, status);
    return ok && status == TK_OK;
}

static bool put_value(tkpy_state *state, tk_gguf_values *values, const char *key, PyObject *value) {
    if (PyUnicode_Check(value)) return put_text(state, values, key, value, tk_gguf_set_text);
    if (tkpy_is_array(value)) {
        tk_status status = tk_gguf_set_array(values, key, tkpy_handle(value));
        if (status != TK_OK) tkpy_raise(state, status);
        return status == TK_OK;
    }
    Py_ssize_t count = PyList_Check(value) ? PyList_Size(value) : -1;
    bool ok = count >= 0 && tk_gguf_set_texts(values, key) == TK_OK;
    for (Py_ssize_t i = 0; ok && i < count; i++) {
        PyObject *text = PyList_GetItem(value, i);
        ok = PyUnicode_Check(text);
        if (ok && !put_text(state, values, key, text, tk_gguf_add_text)) return false;
    }
    if (!ok)
        PyErr_Format(PyExc_TypeError,
                     "metadata '%s' is %R, expected an array, a string or a list of strings", key,
                     (PyObject *)Py_TYPE(value));
    return ok;
}

static bool values_of(tkpy_state *state, PyObject *dict, tk_gguf_values *values) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        if (!name) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "keys of metadata must be strings");
            return false;
        }
        if (!put_value(state, values, name, value)) return false;
    }
    return true;
}

/* _save_gguf(path, arrays, metadata) */
static PyObject *save_gguf(PyObject *module, PyObject *args) {
    const char *path;
    PyObject *arrays, *metadata;
    tkpy_state *state = tkpy_module_state(module);
    if (!tkpy_context() ||
        !PyArg_ParseTuple(args, "sO!O!", &path, &PyDict_Type, &arrays, &PyDict_Type, &metadata))
        return NULL;
    tk_tree *tree = tk_tree_new();
    tk_gguf_values *values = tk_gguf_values_new();
    tk_status status = TK_OUT_OF_MEMORY;
    bool ok = tree && values && tkpy_tree_of_dict(state, arrays, tree) &&
              values_of(state, metadata, values) &&
              tkpy_eval(state, tk_tree_arrays(tree), tk_tree_count(tree));
    if (ok) status = tk_gguf_save(path, tree, values);
    tk_tree_free(tree);
    tk_gguf_values_free(values);
    if (PyErr_Occurred()) return NULL;
    if (status != TK_OK) return tkpy_raise(state, status);
    Py_RETURN_NONE;
}

PyMethodDef tkpy_gguf_functions[] = {{"_load_gguf", load_gguf, METH_VARARGS, NULL},
                                     {"_save_gguf", save_gguf, METH_VARARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
