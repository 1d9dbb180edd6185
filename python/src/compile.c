/* tiki.compile: functions recorded once for each form of their arguments, then replayed.
 *
 * The form of a call is a string of bytes: the trees of arguments and captured inputs, each array
 * by dtype, shape and device, each other value by what it is, and the device of what has no
 * operands. Equal strings mean that the recorded graph fits. Captured inputs and outputs are trees
 * that the function reads and changes (parameters, the state of an optimizer, the random key):
 * while recording, placeholders stand in them; after each call, the results.
 *
 * A shapeless function is recorded for all shapes when a second shape comes: its form then holds
 * dtypes and ranks only. Where that is impossible, each shape is recorded by itself. */
#include <string.h>

#include "tree.h"

typedef struct record {
    char *form;
    size_t form_size;
    tk_traced *traced;
    PyObject *result; /* the tree that the function returned, with arrays to be replaced */
    PyObject *held;   /* objects that the form names by address, kept alive */
    size_t n_results; /* arrays in it; those of the captured outputs follow */
    bool is_general;  /* the form is loose: the recording serves other shapes */
} record;

/* Of a shapeless function: the lengths of its calls of one loose form, all axes of all arrays. */
typedef struct lengths {
    char *form;
    size_t form_size;
    int64_t *items; /* -1: has differed from one call to another */
    size_t count;
    int attempts; /* at recording it for all shapes */
} lengths;

#define MOST_ATTEMPTS 4

typedef struct compiled {
    PyObject_HEAD PyObject *function, *inputs, *outputs; /* inputs and outputs may be None */
    record *records;
    size_t n_records, capacity;
    bool shapeless;
    lengths *seen;
    size_t n_seen;
} compiled;

/* ---- forms ---- */

typedef struct form {
    char *bytes;
    size_t size, capacity;
    PyObject *held;
    tkpy_leaves leaves;
    bool loose; /* without lengths */
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
        tk_device *device;
    } type = {(int32_t)tk_array_dtype(array), tk_array_rank(array), tk_array_device(array)};
    tk_shape shape = tk_array_shape(array);
    size_t n_lengths = f->loose ? 0 : (size_t)shape.count;
    return put_tagged(f, 'A', &type, sizeof type) &&
           put(f, shape.items, n_lengths * sizeof *shape.items) &&
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
    form first; /* of the result of the first recording of two */
    bool differs;
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

/* For two recordings, whose results must be the same but for their arrays' lengths. */
static tk_status call_twice(void *self, const tk_array *items, size_t n_items, tk_arrays *results) {
    recording *r = self;
    form f = {.loose = true};
    Py_CLEAR(r->result);
    tk_status status = call_recorded(self, items, n_items, results);
    if (status == TK_OK && !put_tree(&f, r->result)) status = raised();
    if (status != TK_OK || !r->first.bytes) {
        r->first = f;
        return status;
    }
    r->differs = f.size != r->first.size || memcmp(f.bytes, r->first.bytes, f.size) != 0;
    clear_form(&f);
    return status;
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
    *made = (record){f->bytes, f->size,      traced,  tkpy_new_ref(r->result),
                     f->held,  r->n_results, f->loose};
    f->bytes = NULL;
    f->held = NULL;
    return made;
}

/* With `others`: for all shapes that these and the call's differ by. */
static record *record_call(compiled *self, tkpy_state *state, PyObject *args, PyObject *kwargs,
                           form *f, const tkpy_leaves *others) {
    recording r = {.self = self, .state = state, .args = args, .kwargs = kwargs};
    tk_traced *traced = NULL;
    record *made = NULL;
    PyObject *places = PyList_New(0);
    if (!places || !tkpy_tree_remember(self->inputs, places) ||
        !tkpy_tree_remember(self->outputs, places)) {
        Py_XDECREF(places);
        return NULL;
    }
    tk_status status =
        others ? tk_traced_create_shapeless(tkpy_context(), call_twice, &r, f->leaves.items,
                                            others->items, f->leaves.count, &traced)
               : tk_traced_create(tkpy_context(), call_recorded, &r, f->leaves.items,
                                  f->leaves.count, &traced);
    if (status == TK_OK && r.differs)
        status =
            tk_error_set(TK_UNSUPPORTED, "the results of a compiled function depend on shapes");
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    bool restored = tkpy_tree_restore(places);
    if (type) PyErr_Restore(type, value, trace);
    if (status != TK_OK)
        tkpy_raise(state, status);
    else if (restored)
        made = add_record(self, f, &r, traced);
    if (!made) tk_traced_free(traced);
    clear_form(&r.first);
    Py_XDECREF(r.result);
    Py_DECREF(places);
    return made;
}

/* ---- shapeless functions ---- */

static lengths *find_lengths(compiled *self, const form *loose) {
    for (size_t i = 0; i < self->n_seen; i++)
        if (self->seen[i].form_size == loose->size &&
            memcmp(self->seen[i].form, loose->bytes, loose->size) == 0)
            return &self->seen[i];
    return NULL;
}

/* Takes over the bytes of the form. */
static void add_lengths(compiled *self, form *loose) {
    lengths *longer = PyMem_Realloc(self->seen, (self->n_seen + 1) * sizeof *longer);
    if (longer) self->seen = longer;
    lengths made = {.form = loose->bytes, .form_size = loose->size};
    for (size_t i = 0; i < loose->leaves.count; i++)
        made.count += (size_t)tk_array_rank(loose->leaves.items[i]);
    made.items = PyMem_Malloc((made.count + 1) * sizeof *made.items);
    if (!longer || !made.items) {
        PyMem_Free(made.items);
        PyErr_NoMemory();
        return;
    }
    int64_t *next = made.items;
    for (size_t i = 0; i < loose->leaves.count; i++)
        for (int axis = 0; axis < tk_array_rank(loose->leaves.items[i]); axis++)
            *next++ = tk_array_dim(loose->leaves.items[i], axis);
    loose->bytes = NULL;
    self->seen[self->n_seen++] = made;
}

/* Arrays whose lengths differ from the call's where the call differs from earlier ones. */
static bool other_shapes(lengths *seen, const tkpy_leaves *leaves, tkpy_leaves *others) {
    int64_t *next = seen->items;
    tk_scope scope = tk_scope_open(tkpy_context());
    bool ok = true;
    for (size_t i = 0; ok && i < leaves->count; i++) {
        tk_shape shape = tk_array_shape(leaves->items[i]);
        for (int64_t axis = 0; axis < shape.count; axis++, next++) {
            if (*next != shape.items[axis]) *next = -1;
            if (*next < 0) shape.items[axis]++;
        }
        ok = tkpy_leaves_push(others, tk_zeros(tkpy_context(), shape, TK_BOOL));
    }
    tk_scope_close(scope);
    return ok;
}

/* A recording for all shapes of a loose form, from the second shape on; NULL where there is none,
 * with an exception only when memory is out. One that does not serve this call gives way. */
static record *general_record(compiled *self, tkpy_state *state, PyObject *args, PyObject *kwargs,
                              form *loose) {
    tkpy_leaves others = {0};
    lengths *seen = find_lengths(self, loose);
    if (!seen) {
        add_lengths(self, loose);
        return NULL;
    }
    if (seen->attempts++ >= MOST_ATTEMPTS) return NULL;
    record *made = NULL;
    if (other_shapes(seen, &loose->leaves, &others)) {
        made = record_call(self, state, args, kwargs, loose, &others);
        if (!made) PyErr_Clear();
    }
    tkpy_leaves_clear(&others);
    return made;
}

/* ---- calling ---- */

static bool fits(const record *r, const form *f) {
    return r->is_general == f->loose && r->form_size == f->size &&
           memcmp(r->form, f->bytes, f->size) == 0;
}

static record *find_record(compiled *self, const form *f) {
    for (size_t i = 0; i < self->n_records; i++)
        if (fits(&self->records[i], f)) return &self->records[i];
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

/* Where ops without operands are computed. */
static tk_device *current_device(void) {
    tk_context *context = tkpy_context();
    tk_stream_id current = tk_stream_use(context, TK_DEFAULT_STREAM);
    (void)tk_stream_use(context, current);
    return tk_stream_device_of(context, current);
}

static bool put_call(const compiled *self, PyObject *args, PyObject *kwargs, form *f) {
    tk_device *device = current_device();
    return put_tagged(f, 'P', &device, sizeof device) && put_tree(f, args) &&
           (!kwargs || put_tree(f, kwargs)) && put_tree(f, self->inputs);
}

/* NULL without an exception: the shape has to be recorded by itself. */
static PyObject *call_general(compiled *self, tkpy_state *state, PyObject *args, PyObject *kwargs) {
    form f = {.loose = true};
    PyObject *tree = NULL;
    if (put_call(self, args, kwargs, &f)) {
        for (size_t i = self->n_records; !tree && i-- > 0;)
            if (fits(&self->records[i], &f) && !(tree = replay(self, state, &self->records[i], &f)))
                PyErr_Clear(); /* its lengths are not those of this call */
        record *made = tree ? NULL : general_record(self, state, args, kwargs, &f);
        if (made && !(tree = replay(self, state, made, &f))) PyErr_Clear();
    }
    clear_form(&f);
    return tree;
}

static PyObject *compiled_call(PyObject *object, PyObject *args, PyObject *kwargs) {
    compiled *self = (compiled *)object;
    tkpy_state *state = tkpy_state_of(object);
    form f = {0};
    PyObject *tree = NULL;
    if (kwargs && PyDict_Size(kwargs) == 0) kwargs = NULL;
    if (tkpy_context() && put_call(self, args, kwargs, &f)) {
        record *found = find_record(self, &f);
        if (!found && self->shapeless) tree = call_general(self, state, args, kwargs);
        if (!found && !tree && !PyErr_Occurred())
            found = record_call(self, state, args, kwargs, &f, NULL);
        if (found) tree = replay(self, state, found, &f);
    }
    clear_form(&f);
    return tree;
}

/* ---- the type ---- */

static PyObject *compiled_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function, *inputs, *outputs;
    int shapeless = 0;
    if (kwargs || !PyArg_ParseTuple(args, "OOO|p", &function, &inputs, &outputs, &shapeless)) {
        if (kwargs) PyErr_SetString(PyExc_TypeError, "no keyword arguments are possible");
        return NULL;
    }
    compiled *self = (compiled *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    self->function = tkpy_new_ref(function);
    self->inputs = tkpy_new_ref(inputs);
    self->outputs = tkpy_new_ref(outputs);
    self->shapeless = shapeless;
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
    compiled *self = (compiled *)object;
    for (size_t i = 0; i < self->n_seen; i++) {
        PyMem_Free(self->seen[i].form);
        PyMem_Free(self->seen[i].items);
    }
    PyMem_Free(self->seen);
    PyMem_Free(self->records);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyType_Slot compiled_slots[] = {
    {Py_tp_new, compiled_new},           {Py_tp_dealloc, compiled_dealloc},
    {Py_tp_traverse, compiled_traverse}, {Py_tp_clear, compiled_clear},
    {Py_tp_call, compiled_call},         {0, NULL}};

PyType_Spec tkpy_compiled_spec = {"tiki._Compiled", sizeof(compiled), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, compiled_slots};
