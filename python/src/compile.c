/* tiki.compile: functions recorded once for each form of their arguments, then replayed.
 *
 * The form of a call is a string of bytes: the trees of arguments and captured inputs, each array
 * by dtype and shape, each other value by what it is. Equal strings mean that the recorded graph
 * fits. Captured inputs and outputs are trees that the function reads and changes (parameters, the
 * state of an optimizer, the random key): while recording, placeholders stand in them; after each
 * call, the results. */
#include <string.h>

#include "tree.h"

typedef struct record {
    char *form;
    size_t form_size;
    tk_traced *traced;
    PyObject *result; /* the tree that the function returned, with arrays to be replaced */
    PyObject *held;   /* objects that the form names by address, kept alive */
    size_t n_results; /* arrays in it; those of the captured outputs follow */
} record;

typedef struct compiled {
    PyObject_HEAD PyObject *function, *inputs, *outputs; /* inputs and outputs may be None */
    record *records;
    size_t n_records, capacity;
} compiled;

/* ---- forms ---- */

typedef struct form {
    char *bytes;
    size_t size, capacity;
    PyObject *held;
    tkpy_leaves leaves;
} form;

static bool put(form *f, const void *bytes, size_t size) {
    if (f->size + size > f->capacity) {
        size_t capacity = 2 * (f->size + size) + 64;
        char *longer = PyMem_Realloc(f->bytes, capacity);
        if (!longer) return PyErr_NoMemory(), false;
        f->bytes = longer;
        f->capacity = capacity;
    }
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
    return true;
}

static bool put_tagged(form *f, char tag, const void *bytes, size_t size) {
    return put(f, &tag, 1) && put(f, bytes, size);
}

static bool put_array(form *f, tk_array array) {
    struct {
        int32_t dtype, rank;
    } type = {(int32_t)tk_array_dtype(array), tk_array_rank(array)};
    tk_shape shape = tk_array_shape(array);
    return put_tagged(f, 'A', &type, sizeof type) &&
           put(f, shape.items, (size_t)shape.count * sizeof *shape.items) &&
           tkpy_leaves_push(&f->leaves, array);
}

static bool put_text(form *f, PyObject *text) {
    Py_ssize_t size;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    return bytes && put_tagged(f, 'S', &size, sizeof size) && put(f, bytes, (size_t)size);
}

/* Anything else counts by identity. */
static bool put_identity(form *f, PyObject *object) {
    if (!f->held && !(f->held = PyList_New(0))) return false;
    return PyList_Append(f->held, object) == 0 && put_tagged(f, 'O', &object, sizeof object);
}

static bool put_number(form *f, PyObject *object) {
    if (PyFloat_Check(object)) {
        double value = PyFloat_AsDouble(object);
        return put_tagged(f, 'F', &value, sizeof value);
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) return put_identity(f, object);
    return put_tagged(f, PyBool_Check(object) ? 'B' : 'I', &value, sizeof value);
}

static bool put_tree(form *f, PyObject *tree);

static bool put_dict(form *f, PyObject *tree) {
    PyObject *key, *value;
    Py_ssize_t at = 0, count = PyDict_Size(tree);
    if (!put_tagged(f, 'D', &count, sizeof count)) return false;
    while (PyDict_Next(tree, &at, &key, &value))
        if (!put_tree(f, key) || !put_tree(f, value)) return false;
    return true;
}

static bool put_tree(form *f, PyObject *tree) {
    if (tkpy_is_array(tree)) return put_array(f, tkpy_handle(tree));
    if (PyUnicode_Check(tree)) return put_text(f, tree);
    if (PyLong_Check(tree) || PyFloat_Check(tree)) return put_number(f, tree);
    if (tree == Py_None) return put(f, "N", 1);
    if (PyDict_Check(tree)) return put_dict(f, tree);
    bool is_list = PyList_Check(tree);
    if (!is_list && !PyTuple_Check(tree)) return put_identity(f, tree);
    Py_ssize_t count = is_list ? PyList_Size(tree) : PyTuple_Size(tree);
    if (!put_tagged(f, is_list ? 'L' : 'T', &count, sizeof count)) return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!put_tree(f, is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i)))
            return false;
    return true;
}

static void clear_form(form *f) {
    PyMem_Free(f->bytes);
    Py_XDECREF(f->held);
    tkpy_leaves_clear(&f->leaves);
}

/* ---- recording ---- */

typedef struct recording {
    compiled *self;
    tkpy_state *state;
    PyObject *args, *kwargs, *result;
    size_t n_results;
} recording;

static tk_status raised(void) {
    return tk_error_set(TK_INVALID_ARGUMENT, "the Python function raised an exception");
}

static tk_status push_tree(PyObject *tree, tk_arrays *results) {
    tkpy_leaves leaves = {0};
    tk_status status = tkpy_tree_flatten(tree, &leaves) ? TK_OK : raised();
    for (size_t i = 0; status == TK_OK && i < leaves.count; i++)
        status = tk_arrays_push(results, leaves.items[i]);
    tkpy_leaves_clear(&leaves);
    return status;
}

static tk_status call_recorded(void *self, const tk_array *items, size_t n_items,
                               tk_arrays *results) {
    recording *r = self;
    size_t next = 0;
    (void)n_items;
    PyObject *kwargs = NULL, *args = tkpy_tree_rebuild(r->state, r->args, items, &next);
    if (args && r->kwargs) kwargs = tkpy_tree_rebuild(r->state, r->kwargs, items, &next);
    bool ok =
        args && (kwargs || !r->kwargs) && tkpy_tree_fill(r->state, r->self->inputs, items, &next);
    if (ok) r->result = PyObject_Call(r->self->function, args, kwargs);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    if (!r->result) return raised();
    tk_status status = push_tree(r->result, results);
    r->n_results = results->count;
    return status == TK_OK ? push_tree(r->self->outputs, results) : status;
}

/* Takes over the bytes of the form. */
static record *add_record(compiled *self, form *f, const recording *r, tk_traced *traced) {
    if (self->n_records == self->capacity) {
        size_t capacity = self->capacity ? 2 * self->capacity : 4;
        record *longer = PyMem_Realloc(self->records, capacity * sizeof *longer);
        if (!longer) return (record *)PyErr_NoMemory();
        self->records = longer;
        self->capacity = capacity;
    }
    record *made = &self->records[self->n_records++];
    *made = (record){f->bytes, f->size, traced, tkpy_new_ref(r->result), f->held, r->n_results};
    f->bytes = NULL;
    f->held = NULL;
    return made;
}

static record *record_call(compiled *self, tkpy_state *state, PyObject *args, PyObject *kwargs,
                           form *f) {
    recording r = {.self = self, .state = state, .args = args, .kwargs = kwargs};
    tk_traced *traced = NULL;
    record *made = NULL;
    PyObject *places = PyList_New(0);
    if (!places || !tkpy_tree_remember(self->inputs, places) ||
        !tkpy_tree_remember(self->outputs, places)) {
        Py_XDECREF(places);
        return NULL;
    }
    tk_status status = tk_traced_create(tkpy_context(), call_recorded, &r, f->leaves.items,
                                        f->leaves.count, &traced);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    bool restored = tkpy_tree_restore(places);
    if (type) PyErr_Restore(type, value, trace);
    if (status != TK_OK)
        tkpy_raise(state, status);
    else if (restored)
        made = add_record(self, f, &r, traced);
    if (!made) tk_traced_free(traced);
    Py_XDECREF(r.result);
    Py_DECREF(places);
    return made;
}

/* ---- calling ---- */

static record *find_record(compiled *self, const form *f) {
    for (size_t i = 0; i < self->n_records; i++)
        if (self->records[i].form_size == f->size &&
            memcmp(self->records[i].form, f->bytes, f->size) == 0)
            return &self->records[i];
    return NULL;
}

static PyObject *replay(compiled *self, tkpy_state *state, const record *found, const form *f) {
    tk_arrays results = {0};
    PyObject *tree = NULL;
    size_t next = 0, outputs = found->n_results;
    PyObject *result = tkpy_new_ref(found->result);
    tk_status status = tk_traced_call(found->traced, f->leaves.items, f->leaves.count, &results);
    if (status != TK_OK)
        tkpy_raise(state, status);
    else if (tkpy_tree_fill(state, self->outputs, results.items, &outputs))
        tree = tkpy_tree_rebuild(state, result, results.items, &next);
    Py_DECREF(result);
    tk_arrays_clear(&results);
    return tree;
}

static PyObject *compiled_call(PyObject *object, PyObject *args, PyObject *kwargs) {
    compiled *self = (compiled *)object;
    tkpy_state *state = tkpy_state_of(object);
    form f = {0};
    PyObject *tree = NULL;
    if (kwargs && PyDict_Size(kwargs) == 0) kwargs = NULL;
    bool ok = tkpy_context() && put_tree(&f, args) && (!kwargs || put_tree(&f, kwargs)) &&
              put_tree(&f, self->inputs);
    if (ok) {
        record *found = find_record(self, &f);
        if (!found) found = record_call(self, state, args, kwargs, &f);
        if (found) tree = replay(self, state, found, &f);
    }
    clear_form(&f);
    return tree;
}

/* ---- the type ---- */

static PyObject *compiled_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function, *inputs, *outputs;
    if (kwargs || !PyArg_ParseTuple(args, "OOO", &function, &inputs, &outputs)) {
        if (kwargs) PyErr_SetString(PyExc_TypeError, "no keyword arguments are possible");
        return NULL;
    }
    compiled *self = (compiled *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    self->function = tkpy_new_ref(function);
    self->inputs = tkpy_new_ref(inputs);
    self->outputs = tkpy_new_ref(outputs);
    return (PyObject *)self;
}

static int compiled_traverse(PyObject *object, visitproc visit, void *arg) {
    compiled *self = (compiled *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->function);
    Py_VISIT(self->inputs);
    Py_VISIT(self->outputs);
    for (size_t i = 0; i < self->n_records; i++) {
        Py_VISIT(self->records[i].result);
        Py_VISIT(self->records[i].held);
    }
    return 0;
}

static int compiled_clear(PyObject *object) {
    compiled *self = (compiled *)object;
    size_t count = self->n_records;
    self->n_records = 0;
    for (size_t i = 0; i < count; i++) {
        record *r = &self->records[i];
        tk_traced_free(r->traced);
        PyMem_Free(r->form);
        Py_XDECREF(r->result);
        Py_XDECREF(r->held);
    }
    Py_CLEAR(self->function);
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->outputs);
    return 0;
}

static void compiled_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    compiled_clear(object);
    PyMem_Free(((compiled *)object)->records);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyType_Slot compiled_slots[] = {
    {Py_tp_new, compiled_new},           {Py_tp_dealloc, compiled_dealloc},
    {Py_tp_traverse, compiled_traverse}, {Py_tp_clear, compiled_clear},
    {Py_tp_call, compiled_call},         {0, NULL}};

PyType_Spec tkpy_compiled_spec = {"tiki._Compiled", sizeof(compiled), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, compiled_slots};
