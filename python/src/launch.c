/* tk.launch and tk.output: from a call's arguments to a launch in the graph.
 *
 * A launch costs the driver about four microseconds, so what Python adds has to be small: one call
 * from the user's line into C, arguments read where they lie, and the text of the place made once a
 * line. Rejected: lists of inputs, bindings and outputs put together in Python (5 us a launch). */
#include <stdio.h>
#include <string.h>

#include "kernel.h"
#include "tiki/kernel_op.h"

#define MOST_ARRAYS 64

/* ---- what a launch writes ---- */

typedef struct output_object {
    PyObject_HEAD tk_launch_output type;
    PyObject *source; /* an array, or NULL */
} output_object;

static void output_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((output_object *)self)->source);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *output_shape(PyObject *self, void *unused) {
    const tk_shape *shape = &((output_object *)self)->type.shape;
    (void)unused;
    PyObject *tuple = PyTuple_New(shape->count);
    for (int i = 0; tuple && i < shape->count; i++)
        if (PyTuple_SetItem(tuple, i, PyLong_FromLongLong(shape->items[i])) < 0) Py_CLEAR(tuple);
    return tuple;
}

static PyObject *output_dtype(PyObject *self, void *unused) {
    (void)unused;
    return tkpy_new_ref(tkpy_state_of(self)->dtypes[((output_object *)self)->type.dtype]);
}

static PyObject *output_source(PyObject *self, void *unused) {
    PyObject *source = ((output_object *)self)->source;
    (void)unused;
    return tkpy_new_ref(source ? source : Py_None);
}

static PyGetSetDef output_properties[] = {
    {"shape", output_shape, NULL, "Its shape.", NULL},
    {"dtype", output_dtype, NULL, "Its dtype.", NULL},
    {"source", output_source, NULL, "The array that it begins as, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot output_slots[] = {{Py_tp_dealloc, output_dealloc},
                                     {Py_tp_getset, output_properties},
                                     {Py_tp_doc, (void *)"What a launch writes: see `output`."},
                                     {0, NULL}};

PyType_Spec tkpy_output_spec = {"tiki.Output", sizeof(output_object), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                output_slots};

const tk_launch_output *tkpy_output_type(tkpy_state *state, PyObject *object) {
    return Py_TYPE(object) == state->output ? &((output_object *)object)->type : NULL;
}

static output_object *new_output(tkpy_state *state, tk_dtype dtype, tk_shape shape) {
    output_object *output = (output_object *)PyType_GenericAlloc(state->output, 0);
    if (output) output->type = (tk_launch_output){dtype, shape, 0};
    return output;
}

static PyObject *output_of(tkpy_state *state, PyObject *array) {
    if (!tkpy_is_array(array)) return PyErr_Format(PyExc_TypeError, "in_place is no array");
    tk_array handle = tkpy_handle(array);
    output_object *output = new_output(state, tk_array_dtype(handle), tk_array_shape(handle));
    if (output) output->source = tkpy_new_ref(array);
    return (PyObject *)output;
}

PyObject *tkpy_output(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"shape", "dtype", "in_place", NULL};
    PyObject *shape = Py_None, *dtype = Py_None, *in_place = Py_None;
    tkpy_state *state = tkpy_module_state(module);
    tk_shape wanted;
    tk_dtype element;
    if (!kwargs && PyTuple_Size(args) == 2) {
        shape = PyTuple_GetItem(args, 0);
        dtype = PyTuple_GetItem(args, 1);
    } else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO$O:output", names, &shape, &dtype,
                                            &in_place)) {
        return NULL;
    }
    if (in_place != Py_None) {
        if (shape == Py_None && dtype == Py_None) return output_of(state, in_place);
        return PyErr_Format(PyExc_ValueError,
                            "an output in place of an array has that array's shape and dtype");
    }
    if (shape == Py_None || dtype == Py_None)
        return PyErr_Format(PyExc_ValueError, "an output needs a shape and a dtype, or in_place=");
    if (!tkpy_dtype_of(state, dtype, "dtype", &element) || !tkpy_axes_of(shape, "shape", &wanted))
        return NULL;
    return (PyObject *)new_output(state, element, wanted);
}

/* ---- the place of a call ---- */

#define MOST_PLACES 64

typedef struct place {
    PyObject *code; /* owned, so that its address stays its own */
    int line;
    char text[120];
} place;

static place places[MOST_PLACES];

static void describe(place *at, PyObject *code, int line) {
    PyObject *file = PyObject_GetAttrString(code, "co_filename");
    const char *path = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    snprintf(at->text, sizeof at->text, "%.100s:%d", slash ? slash + 1 : path ? path : "?", line);
    PyErr_Clear();
    Py_XDECREF(file);
    Py_XDECREF(at->code);
    at->code = tkpy_new_ref(code);
    at->line = line;
}

/* "file.py:12" of the line that runs; good until the next call. */
static const char *place_of_call(void) {
    PyFrameObject *frame = PyEval_GetFrame();
    if (!frame) return NULL;
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    int line = PyFrame_GetLineNumber(frame);
    place *at = &places[((uintptr_t)code / 64 + (unsigned)line) % MOST_PLACES];
    if (at->code != code || at->line != line) describe(at, code, line);
    Py_DECREF(code);
    return at->text;
}

/* ---- launches ---- */

typedef struct launching {
    tkpy_state *state;
    tk_array inputs[MOST_ARRAYS];
    tk_bind binds[MOST_ARRAYS];
    tk_launch_output outputs[TK_LAUNCH_OUTPUTS];
    size_t n_inputs, n_outputs;
} launching;

static bool add_input(launching *l, PyObject *array) {
    if (!tkpy_is_array(array)) {
        PyErr_Format(PyExc_TypeError, "input %zu of a launch is no array", l->n_inputs);
        return false;
    }
    l->inputs[l->n_inputs++] = tkpy_handle(array);
    return true;
}

static bool add_output(launching *l, const output_object *output) {
    if (l->n_outputs == TK_LAUNCH_OUTPUTS) {
        PyErr_Format(PyExc_ValueError, "a launch has at most %d outputs", TK_LAUNCH_OUTPUTS);
        return false;
    }
    tk_launch_output *to = &l->outputs[l->n_outputs++];
    *to = output->type;
    if (output->source && !add_input(l, output->source)) return false;
    to->in_place = output->source ? l->n_inputs : 0;
    return true;
}

static bool add_argument(launching *l, PyObject *argument, tk_bind *out) {
    PyTypeObject *type = Py_TYPE(argument);
    if (type == l->state->output) {
        *out = tk_bind_output(l->n_outputs);
        return add_output(l, (const output_object *)argument);
    }
    if (PyFloat_Check(argument)) {
        *out = tk_bind_float(PyFloat_AsDouble(argument));
        return true;
    }
    if (PyLong_Check(argument) && !PyBool_Check(argument)) {
        long long number = PyLong_AsLongLong(argument);
        *out = tk_bind_integer(number);
        return number != -1 || !PyErr_Occurred();
    }
    *out = tk_bind_input(l->n_inputs);
    return add_input(l, argument);
}

static PyObject *box_outputs(tkpy_state *state, tk_arrays *arrays) {
    if (arrays->count != 1) return tkpy_box_list(state, arrays, true);
    PyObject *box = tkpy_box(state, arrays->items[0]);
    tk_arrays_clear(arrays);
    return box;
}

/* ---- targets ---- */

static bool find_target(const char *name, tk_target *out) {
    if (tk_target_find(name, out) == TK_OK) return true;
    tkpy_raise_as(PyExc_ValueError);
    return false;
}

PyObject *tkpy_target(PyObject *module, PyObject *args) {
    const char *name;
    tk_target target = TK_TARGET_COUNT;
    (void)module;
    if (!PyArg_ParseTuple(args, "z", &name) || (name && !find_target(name, &target))) return NULL;
    return PyUnicode_FromString(tk_target_name(tk_target_use(target)));
}

/* Of a call's keywords, of which there is one: `target`, None or a name. A name is there once. */
static bool keyword_target(PyObject *names, PyObject *const *values, tk_target *out) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        if (PyUnicode_CompareWithASCIIString(name, "target"))
            return PyErr_Format(PyExc_TypeError, "launch has no keyword %U, only target", name),
                   false;
    }
    if (values[0] == Py_None) return true;
    if (!PyUnicode_Check(values[0]))
        return PyErr_Format(PyExc_TypeError, "launch: target is %R, expected a string or None",
                            values[0]),
               false;
    const char *text = PyUnicode_AsUTF8AndSize(values[0], NULL);
    return text && find_target(text, out);
}

static PyObject *launch_at(PyObject *module, const char *site, PyObject *const *args,
                           Py_ssize_t count) {
    launching l;
    l.state = tkpy_module_state(module);
    l.n_inputs = l.n_outputs = 0;
    if (!tkpy_context()) return NULL;
    if (count < 1 || Py_TYPE(args[0]) != l.state->kernel)
        return PyErr_Format(PyExc_TypeError, "launch needs a kernel as its first argument");
    if (count - 1 > MOST_ARRAYS / 2)
        return PyErr_Format(PyExc_ValueError, "a launch has at most %d parameters",
                            MOST_ARRAYS / 2);
    for (Py_ssize_t i = 1; i < count; i++)
        if (!add_argument(&l, args[i], &l.binds[i - 1])) return NULL;
    tk_launch_spec spec = {.size = sizeof spec,
                           .kernel = tkpy_kernel_of(args[0]),
                           .n_binds = (size_t)count - 1,
                           .binds = l.binds,
                           .n_outputs = l.n_outputs,
                           .outputs = l.outputs,
                           .site = site};
    tk_arrays arrays = {0};
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_status status = tk_launch(tkpy_context(), &spec, l.inputs, l.n_inputs, &arrays);
    PyObject *result =
        status == TK_OK ? box_outputs(l.state, &arrays) : tkpy_raise(l.state, status);
    tk_scope_close(scope);
    return result;
}

PyObject *tkpy_launch(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    tk_target target = TK_TARGET_COUNT; /* the one in use */
    if (names && PyTuple_Size(names) && !keyword_target(names, args + count, &target)) return NULL;
    tk_target before = tk_target_use(target);
    PyObject *result = launch_at(module, place_of_call(), args, count);
    (void)tk_target_use(before);
    return result;
}

PyObject *tkpy_launch_at(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    const char *site = count ? PyUnicode_AsUTF8AndSize(args[0], NULL) : NULL;
    if (site) return launch_at(module, site, args + 1, count - 1);
    return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "launch_at needs a place");
}
