/* x.at[key].add(value) and the like: updates that count repeated indices each time. */
#include "module.h"

typedef struct at_object {
    PyObject_HEAD PyObject *array, *key; /* key NULL until indexed */
} at_object;

static void at_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((at_object *)self)->array);
    Py_XDECREF(((at_object *)self)->key);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *tkpy_at_new(tkpy_state *state, PyObject *array) {
    at_object *at = (at_object *)PyType_GenericAlloc(state->at, 0);
    if (at) at->array = tkpy_new_ref(array);
    return (PyObject *)at;
}

static PyObject *at_getitem(PyObject *self, PyObject *key) {
    at_object *at = (at_object *)tkpy_at_new(tkpy_state_of(self), ((at_object *)self)->array);
    if (at) at->key = tkpy_new_ref(key);
    return (PyObject *)at;
}

static PyObject *updated(PyObject *self, PyObject *value, tkpy_update update, bool negate,
                         bool invert) {
    at_object *at = (at_object *)self;
    tkpy_state *state = tkpy_state_of(self);
    tk_array operand;
    PyObject *result = NULL;
    if (!at->key) {
        PyErr_SetString(PyExc_ValueError, "give an index first: x.at[index].add(value)");
        return NULL;
    }
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_stream_id before = tkpy_beside(tkpy_handle(at->array));
    int found = tkpy_operand(state, value, &operand);
    if (found == 0)
        PyErr_Format(PyExc_TypeError, "the value must be a number or an array, not %R",
                     (PyObject *)Py_TYPE(value));
    if (found == 1) {
        operand = tkpy_fitting(tkpy_handle(at->array), value, operand);
        if (negate) operand = tk_negative(operand);
        if (invert) operand = tk_reciprocal(operand);
        tk_array changed = tkpy_update_at(state, tkpy_handle(at->array), at->key, operand, update);
        if (changed.node) result = tkpy_box(state, changed);
    }
    (void)tk_stream_use(tkpy_context(), before);
    tk_scope_close(scope);
    return result;
}

static PyObject *at_add(PyObject *self, PyObject *value) {
    return updated(self, value, TKPY_ADD, false, false);
}
static PyObject *at_subtract(PyObject *self, PyObject *value) {
    return updated(self, value, TKPY_ADD, true, false);
}
static PyObject *at_multiply(PyObject *self, PyObject *value) {
    return updated(self, value, TKPY_MULTIPLY, false, false);
}
static PyObject *at_divide(PyObject *self, PyObject *value) {
    return updated(self, value, TKPY_MULTIPLY, false, true);
}
static PyObject *at_maximum(PyObject *self, PyObject *value) {
    return updated(self, value, TKPY_MAXIMUM, false, false);
}
static PyObject *at_minimum(PyObject *self, PyObject *value) {
    return updated(self, value, TKPY_MINIMUM, false, false);
}

static PyMethodDef at_methods[] = {
    {"add", at_add, METH_O, "The array with a value added."},
    {"subtract", at_subtract, METH_O, "The array with a value subtracted."},
    {"multiply", at_multiply, METH_O, "The array multiplied by a value."},
    {"divide", at_divide, METH_O, "The array divided by a value."},
    {"maximum", at_maximum, METH_O, "The larger of array and value."},
    {"minimum", at_minimum, METH_O, "The smaller of array and value."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot at_slots[] = {{Py_tp_dealloc, at_dealloc},
                                 {Py_mp_subscript, at_getitem},
                                 {Py_tp_methods, at_methods},
                                 {Py_tp_doc, (void *)"Updates of an array at an index."},
                                 {0, NULL}};

PyType_Spec tkpy_at_spec = {"tiki.ArrayAt", sizeof(at_object), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, at_slots};
