/* Launches that a function of Python makes, for tiki.cute: what the package of NVIDIA has compiled
 * is called with the stream and the addresses when the results are evaluated, on whichever thread
 * does it. */
#include <stdlib.h>

#include "kernel.h"
#include "tiki/kernel_op.h"

static PyObject *addresses_of(void *const *addresses, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *address = PyLong_FromVoidPtr(addresses[i]);
        if (!address || PyTuple_SetItem(tuple, i, address) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* A function of Python and how many addresses it takes. */
typedef struct foreign_call {
    PyObject *function;
    Py_ssize_t n_inputs, n_outputs;
} foreign_call;

/* The exception as the status of an evaluation, which may be on another thread than the call. */
static tk_status take_exception(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    tk_status status = tk_error_set(TK_DEVICE_ERROR, "%.800s", words ? words : "a launch raised");
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return status;
}

static tk_status call_foreign(void *self, void *stream, void *const *inputs, void *const *outputs) {
    const foreign_call *call = self;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *from = addresses_of(inputs, call->n_inputs),
             *to = from ? addresses_of(outputs, call->n_outputs) : NULL,
             *handle = to ? PyLong_FromVoidPtr(stream) : NULL,
             *result = handle ? PyObject_CallFunctionObjArgs(call->function, handle, from, to, NULL)
                              : NULL;
    tk_status status = result ? TK_OK : take_exception();
    Py_XDECREF(from);
    Py_XDECREF(to);
    Py_XDECREF(handle);
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

static void release_foreign(void *self) {
    foreign_call *call = self;
    tkpy_release_object(call->function);
    free(call);
}

typedef struct given {
    tk_array *inputs;
    size_t n_inputs, n_outputs;
    tk_launch_output outputs[TK_LAUNCH_OUTPUTS];
} given;

static bool read_inputs(given *g, PyObject *list) {
    Py_ssize_t count = PyList_Size(list);
    g->inputs = PyMem_Calloc((size_t)count + 1, sizeof *g->inputs);
    if (!g->inputs) return PyErr_NoMemory(), false;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *array = PyList_GetItem(list, i);
        if (!tkpy_is_array(array))
            return PyErr_Format(PyExc_TypeError, "input %zd of a launch is no array", i), false;
        g->inputs[g->n_inputs++] = tkpy_handle(array);
    }
    return true;
}

static bool read_outputs(given *g, tkpy_state *state, PyObject *list) {
    Py_ssize_t count = PyList_Size(list);
    if (count > TK_LAUNCH_OUTPUTS)
        return PyErr_Format(PyExc_ValueError, "a launch has at most %d outputs", TK_LAUNCH_OUTPUTS),
               false;
    for (Py_ssize_t i = 0; i < count; i++) {
        const tk_launch_output *output = tkpy_output_type(state, PyList_GetItem(list, i));
        if (!output) return PyErr_Format(PyExc_TypeError, "output %zd is no tiki.output", i), false;
        g->outputs[g->n_outputs++] = *output;
    }
    return true;
}

static PyObject *launch_foreign(tkpy_state *state, const given *g, PyObject *function,
                                const char *name, const char *site) {
    PyObject *result = NULL;
    foreign_call *call = malloc(sizeof *call);
    if (!call) return PyErr_NoMemory();
    *call =
        (foreign_call){tkpy_new_ref(function), (Py_ssize_t)g->n_inputs, (Py_ssize_t)g->n_outputs};
    tk_foreign spec = {.size = sizeof spec,
                       .name = name,
                       .site = site,
                       .n_outputs = g->n_outputs,
                       .outputs = g->outputs,
                       .launch = call_foreign,
                       .self = call,
                       .release = release_foreign};
    tk_arrays arrays = {0};
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_status status = tk_launch_foreign(tkpy_context(), &spec, g->inputs, g->n_inputs, &arrays);
    if (status == TK_OK)
        result = tkpy_box_list(state, &arrays, true);
    else
        tkpy_raise(state, status);
    tk_scope_close(scope);
    return result;
}

PyObject *tkpy_foreign(PyObject *module, PyObject *args) {
    PyObject *function, *inputs, *outputs, *result = NULL;
    const char *name, *site;
    tkpy_state *state = tkpy_module_state(module);
    given g = {0};
    if (!tkpy_context() || !PyArg_ParseTuple(args, "OsO!O!s", &function, &name, &PyList_Type,
                                             &inputs, &PyList_Type, &outputs, &site))
        return NULL;
    if (read_inputs(&g, inputs) && read_outputs(&g, state, outputs))
        result = launch_foreign(state, &g, function, name, site);
    PyMem_Free(g.inputs);
    return result;
}
