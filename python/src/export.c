/* Exported functions: what tiki/_export.py stands on. Exporters and loaded functions are capsules,
 * since Python only hands them back. */
#include <string.h>

#include "tiki/export.h"
#include "tree.h"

#define EXPORTER "tiki.exporter"
#define EXPORTED "tiki.exported"

static void free_exporter(PyObject *capsule) {
    tk_exporter_free(PyCapsule_GetPointer(capsule, EXPORTER));
}

static void free_exported(PyObject *capsule) {
    tk_exported_free(PyCapsule_GetPointer(capsule, EXPORTED));
}

/* ---- arguments: a tuple of arrays and a dictionary of them ---- */

typedef struct arguments {
    tkpy_leaves leaves;
    const char **names; /* borrowed from the dictionary's keys */
    size_t n_names;
} arguments;

static void clear_arguments(arguments *a) {
    tkpy_leaves_clear(&a->leaves);
    PyMem_Free(a->names);
}

static bool add_argument(arguments *a, PyObject *value) {
    if (tkpy_is_array(value)) return tkpy_leaves_push(&a->leaves, tkpy_handle(value));
    PyErr_Format(PyExc_ValueError,
                 "arguments of an exported function are arrays, or one tuple and one dictionary "
                 "of arrays, not %R",
                 (PyObject *)Py_TYPE(value));
    return false;
}

static bool read_arguments(PyObject *args, PyObject *kwargs, arguments *out) {
    PyObject *key, *value;
    Py_ssize_t at = 0, count = PyTuple_Size(args);
    *out = (arguments){.names = PyMem_Calloc((size_t)PyDict_Size(kwargs) + 1, sizeof(char *))};
    if (!out->names) return PyErr_NoMemory(), false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!add_argument(out, PyTuple_GetItem(args, i))) return false;
    while (PyDict_Next(kwargs, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        if (!name) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "names of arguments must be strings");
            return false;
        }
        if (!add_argument(out, value)) return false;
        out->names[out->n_names++] = name;
    }
    return true;
}

/* ---- recording ---- */

typedef struct recorded {
    tkpy_state *state;
    PyObject *function;
    const arguments *given;
    PyObject *text; /* of _trace_text */
} recorded;

static tk_status raised(void) {
    return tk_error_set(TK_INVALID_ARGUMENT, "the Python function raised an exception");
}

static PyObject *call_function(const recorded *r, const tk_array *args, size_t n_args) {
    size_t n_names = r->given->n_names, n_positional = n_args - n_names;
    PyObject *tuple = PyTuple_New((Py_ssize_t)n_positional), *dict = PyDict_New(), *result = NULL;
    bool ok = tuple && dict;
    for (size_t i = 0; ok && i < n_args; i++) {
        PyObject *box = tkpy_box(r->state, args[i]);
        if (i < n_positional)
            ok = box && PyTuple_SetItem(tuple, (Py_ssize_t)i, box) == 0;
        else
            ok = box && PyDict_SetItemString(dict, r->given->names[i - n_positional], box) == 0;
        if (i >= n_positional) Py_XDECREF(box);
    }
    if (ok) result = PyObject_Call(r->function, tuple, dict);
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return result;
}

/* An array, or a tuple or list of them. */
static tk_status push_results(PyObject *result, tk_arrays *results) {
    if (tkpy_is_array(result)) return tk_arrays_push(results, tkpy_handle(result));
    bool is_list = PyList_Check(result), ok = is_list || PyTuple_Check(result);
    Py_ssize_t count = !ok ? 0 : is_list ? PyList_Size(result) : PyTuple_Size(result);
    for (Py_ssize_t i = 0; ok && i < count; i++) {
        PyObject *item = is_list ? PyList_GetItem(result, i) : PyTuple_GetItem(result, i);
        ok = tkpy_is_array(item);
        if (ok && tk_arrays_push(results, tkpy_handle(item)) != TK_OK) return TK_OUT_OF_MEMORY;
    }
    if (ok) return TK_OK;
    PyErr_SetString(PyExc_ValueError, "an exported function must give an array, or a tuple or list "
                                      "of arrays");
    return raised();
}

static tk_status call_recorded(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    recorded *r = self;
    PyErr_Clear(); /* of an attempt at shapes that cannot vary */
    PyObject *result = call_function(r, args, n_args);
    if (!result) return raised();
    tk_status status = push_results(result, results);
    Py_DECREF(result);
    return status;
}

static PyObject *exporter_new(PyObject *module, PyObject *unused) {
    (void)unused;
    tk_context *context = tkpy_context();
    if (!context) return NULL;
    tk_exporter *exporter = tk_exporter_new(context);
    if (!exporter) return tkpy_raise(tkpy_module_state(module), TK_OUT_OF_MEMORY);
    PyObject *capsule = PyCapsule_New(exporter, EXPORTER, free_exporter);
    if (!capsule) tk_exporter_free(exporter);
    return capsule;
}

/* _exporter_add(exporter, function, args, kwargs, shapeless) */
static PyObject *exporter_add(PyObject *module, PyObject *given) {
    PyObject *capsule, *function, *args, *kwargs;
    int shapeless;
    arguments a;
    if (!PyArg_ParseTuple(given, "OOO!O!p", &capsule, &function, &PyTuple_Type, &args, &PyDict_Type,
                          &kwargs, &shapeless))
        return NULL;
    tk_exporter *exporter = PyCapsule_GetPointer(capsule, EXPORTER);
    if (!exporter) return NULL;
    recorded r = {.state = tkpy_module_state(module), .function = function, .given = &a};
    bool ok = read_arguments(args, kwargs, &a);
    tk_status status = TK_OK;
    if (ok)
        status = tk_exporter_add(exporter, call_recorded, &r, a.leaves.items, a.leaves.count,
                                 a.names, a.n_names, shapeless);
    clear_arguments(&a);
    if (!ok) return NULL;
    if (status != TK_OK) return tkpy_raise(r.state, status);
    PyErr_Clear(); /* as above */
    Py_RETURN_NONE;
}

/* _exporter_save(exporter, path, metadata) */
static PyObject *exporter_save(PyObject *module, PyObject *given) {
    PyObject *capsule;
    const char *path, *metadata;
    if (!PyArg_ParseTuple(given, "Osz", &capsule, &path, &metadata)) return NULL;
    tk_exporter *exporter = PyCapsule_GetPointer(capsule, EXPORTER);
    if (!exporter) return NULL;
    tk_status status = tk_exporter_save(exporter, path, metadata);
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    Py_RETURN_NONE;
}

/* ---- calling ---- */

/* _exported_load(path) -> (function, metadata) */
static PyObject *exported_load(PyObject *module, PyObject *given) {
    const char *path;
    tk_exported *exported;
    tk_context *context = tkpy_context();
    if (!context || !PyArg_ParseTuple(given, "s", &path)) return NULL;
    tk_status status = tk_exported_load(context, path, &exported);
    if (status != TK_OK) return tkpy_raise(tkpy_module_state(module), status);
    PyObject *capsule = PyCapsule_New(exported, EXPORTED, free_exported);
    if (!capsule) {
        tk_exported_free(exported);
        return NULL;
    }
    return Py_BuildValue("Ns", capsule, tk_exported_metadata(exported));
}

/* _exported_call(function, args, kwargs) -> tuple of arrays */
static PyObject *exported_call(PyObject *module, PyObject *given) {
    PyObject *capsule, *args, *kwargs, *tuple = NULL;
    arguments a;
    if (!PyArg_ParseTuple(given, "OO!O!", &capsule, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
        return NULL;
    tk_exported *exported = PyCapsule_GetPointer(capsule, EXPORTED);
    if (!exported) return NULL;
    if (read_arguments(args, kwargs, &a)) {
        tk_arrays results = {0};
        tk_status status = tk_exported_call(exported, a.leaves.items, a.leaves.count, a.names,
                                            a.n_names, &results);
        tuple = status == TK_OK ? tkpy_box_list(tkpy_module_state(module), &results, true)
                                : tkpy_raise(tkpy_module_state(module), status);
        tk_arrays_clear(&results);
    }
    clear_arguments(&a);
    return tuple;
}

/* ---- text ---- */

static PyObject *text_of(tkpy_state *state, const tk_arrays *outputs) {
    char *text;
    tk_arrays inputs = {0};
    tk_status status = tk_graph_print(outputs->items, outputs->count, &text);
    if (status != TK_OK) return tkpy_raise(state, status);
    status = tk_graph_inputs(outputs->items, outputs->count, &inputs);
    PyObject *list =
        status == TK_OK ? tkpy_box_list(state, &inputs, false) : tkpy_raise(state, status);
    PyObject *pair = list ? Py_BuildValue("sN", text, list) : NULL;
    tk_text_free(text);
    return pair;
}

/* _graph_text(arrays) -> (text, inputs) */
static PyObject *graph_text(PyObject *module, PyObject *args) {
    tkpy_leaves leaves = {0};
    PyObject *pair = NULL;
    if (tkpy_context() && tkpy_tree_flatten(args, &leaves)) {
        tk_arrays outputs = {.items = leaves.items, .count = leaves.count};
        if (leaves.count == 0)
            PyErr_SetString(PyExc_ValueError, "no arrays were given");
        else
            pair = text_of(tkpy_module_state(module), &outputs);
    }
    tkpy_leaves_clear(&leaves);
    return pair;
}

static tk_status print_recorded(void *self, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    recorded *r = self;
    tk_arrays outputs = {0};
    tk_status status = call_recorded(self, args, n_args, results);
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = tk_arrays_push(&outputs, args[i]);
    for (size_t i = 0; status == TK_OK && i < results->count; i++)
        status = tk_arrays_push(&outputs, results->items[i]);
    if (status == TK_OK && !(r->text = text_of(r->state, &outputs))) status = raised();
    tk_arrays_clear(&outputs);
    return status;
}

/* _trace_text(function, args, kwargs) -> (text, inputs); arguments are the first inputs and outputs
 */
static PyObject *trace_text(PyObject *module, PyObject *given) {
    PyObject *function, *args, *kwargs;
    arguments a;
    if (!tkpy_context() ||
        !PyArg_ParseTuple(given, "OO!O!", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
        return NULL;
    recorded r = {.state = tkpy_module_state(module), .function = function, .given = &a};
    if (read_arguments(args, kwargs, &a)) {
        tk_traced *traced = NULL;
        tk_status status = tk_traced_create(tkpy_context(), print_recorded, &r, a.leaves.items,
                                            a.leaves.count, &traced);
        tk_traced_free(traced);
        if (status != TK_OK) {
            Py_CLEAR(r.text);
            tkpy_raise(r.state, status);
        }
    }
    clear_arguments(&a);
    return r.text;
}

PyMethodDef tkpy_export_functions[] = {{"_exporter_new", exporter_new, METH_NOARGS, NULL},
                                       {"_exporter_add", exporter_add, METH_VARARGS, NULL},
                                       {"_exporter_save", exporter_save, METH_VARARGS, NULL},
                                       {"_exported_load", exported_load, METH_VARARGS, NULL},
                                       {"_exported_call", exported_call, METH_VARARGS, NULL},
                                       {"_graph_text", graph_text, METH_VARARGS, NULL},
                                       {"_trace_text", trace_text, METH_VARARGS, NULL},
                                       {NULL, NULL, 0, NULL}};
