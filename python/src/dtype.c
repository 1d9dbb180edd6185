/* tiki.Dtype: one object for each element type, made with the module and compared by identity or
 * number. */
#include "module.h"

typedef struct dtype_object {
    PyObject_HEAD tk_dtype value;
} dtype_object;

static tk_dtype value_of(PyObject *self) { return ((dtype_object *)self)->value; }

static void dtype_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *dtype_repr(PyObject *self) {
    return PyUnicode_FromFormat("tiki.%s", tk_dtype_name(value_of(self)));
}

static Py_hash_t dtype_hash(PyObject *self) { return (Py_hash_t)value_of(self) + 1; }

static PyObject *dtype_compare(PyObject *self, PyObject *other, int op) {
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(self) != Py_TYPE(other)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((value_of(self) == value_of(other)) == (op == Py_EQ));
}

static PyObject *dtype_size(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(tk_dtype_size(value_of(self)));
}

static PyObject *dtype_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(tk_dtype_name(value_of(self)));
}

static PyObject *dtype_kind(PyObject *self, void *unused) {
    static const char *const kinds[] = {"bool", "unsigned", "signed", "float", "complex"};
    (void)unused;
    return PyUnicode_FromString(kinds[tk_dtype_kind(value_of(self))]);
}

/* Pickled and copied by name: tiki.float32. */
static PyObject *dtype_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    const char *name = tk_dtype_name(value_of(self));
    return PyUnicode_FromString(value_of(self) == TK_BOOL ? "bool_" : name);
}

static PyObject *dtype_promote(PyObject *self, PyObject *other) {
    tkpy_state *state = tkpy_state_of(self);
    tk_dtype dtype;
    if (!tkpy_dtype_of(state, other, "the other dtype", &dtype)) return NULL;
    return tkpy_new_ref(state->dtypes[tk_dtype_promote(value_of(self), dtype)]);
}

static PyGetSetDef dtype_properties[] = {{"size", dtype_size, NULL, "Bytes of an element.", NULL},
                                         {"name", dtype_name, NULL, "Its name.", NULL},
                                         {"kind", dtype_kind, NULL, "Its kind.", NULL},
                                         {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, NULL},
                                      {"_promote", dtype_promote, METH_O, NULL},
                                      {NULL, NULL, 0, NULL}};

static PyType_Slot dtype_slots[] = {{Py_tp_dealloc, dtype_dealloc},
                                    {Py_tp_repr, dtype_repr},
                                    {Py_tp_hash, dtype_hash},
                                    {Py_tp_richcompare, dtype_compare},
                                    {Py_tp_getset, dtype_properties},
                                    {Py_tp_methods, dtype_methods},
                                    {Py_tp_doc, (void *)"The type of an array's elements."},
                                    {0, NULL}};

PyType_Spec tkpy_dtype_spec = {
    "tiki.Dtype", sizeof(dtype_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, dtype_slots};

bool tkpy_add_dtypes(tkpy_state *state, PyObject *module) {
    for (int i = 0; i < TK_DTYPE_COUNT; i++) {
        dtype_object *object = (dtype_object *)PyType_GenericAlloc(state->dtype, 0);
        if (!object) return false;
        object->value = (tk_dtype)i;
        state->dtypes[i] = (PyObject *)object;
        const char *name = i == TK_BOOL ? "bool_" : tk_dtype_name((tk_dtype)i);
        if (PyModule_AddObjectRef(module, name, (PyObject *)object) < 0) return false;
    }
    return true;
}

bool tkpy_dtype_of(tkpy_state *state, PyObject *object, const char *what, tk_dtype *out_dtype) {
    if (Py_TYPE(object) == state->dtype) {
        *out_dtype = value_of(object);
        return true;
    }
    PyErr_Format(PyExc_TypeError, "%s must be a tiki.Dtype, %R was given", what, object);
    return false;
}
