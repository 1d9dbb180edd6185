/* tiki.array: the box, its operators and conversions. Methods that are ops are generated. */
#include <stddef.h>
#include <string.h>

#include "args.h"

#include <structmember.h>

/* ---- boxes ---- */

static void array_dealloc(PyObject *self) {
    tkpy_array *box = (tkpy_array *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (box->weak) PyObject_ClearWeakRefs(self);
    tk_release(box->handle);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* The type cannot be subclassed, so its destructor tells it apart without the module's state. */
bool tkpy_is_array(PyObject *object) {
    return PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void *)array_dealloc;
}

PyObject *tkpy_box(tkpy_state *state, tk_array array) {
    tk_status status = tk_array_status(array);
    if (status != TK_OK) return tkpy_raise(state, status);
    tkpy_array *box = (tkpy_array *)PyType_GenericAlloc(state->array, 0);
    if (box) box->handle = tk_keep(array);
    return (PyObject *)box;
}

bool tkpy_rebox(tkpy_state *state, PyObject *self, tk_array array) {
    tkpy_array *box = (tkpy_array *)self;
    tk_status status = tk_array_status(array);
    if (status != TK_OK) return tkpy_raise(state, status), false;
    tk_array before = box->handle;
    box->handle = tk_keep(array);
    tk_release(before);
    return true;
}

PyObject *tkpy_box_list(tkpy_state *state, tk_arrays *arrays, bool as_tuple) {
    Py_ssize_t count = (Py_ssize_t)arrays->count;
    PyObject *list = as_tuple ? PyTuple_New(count) : PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *box = tkpy_box(state, arrays->items[i]);
        if (box && (as_tuple ? PyTuple_SetItem(list, i, box) : PyList_SetItem(list, i, box)) == 0)
            continue;
        Py_CLEAR(list);
    }
    tk_arrays_clear(arrays);
    return list;
}

/* array(val, dtype=None) */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"val", "dtype", NULL};
    tkpy_state *state = PyType_GetModuleState(type);
    PyObject *value, *dtype = Py_None;
    tk_dtype wanted = TK_FLOAT32;
    tk_context *context = tkpy_context();
    if (!context || !PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:array", names, &value, &dtype))
        return NULL;
    if (dtype != Py_None && !tkpy_dtype_of(state, dtype, "dtype", &wanted)) return NULL;
    tk_scope scope = tk_scope_open(context);
    tk_array array = tkpy_from_object(state, value, dtype == Py_None ? TKPY_NO_DTYPE : (int)wanted);
    PyObject *box = array.node ? tkpy_box(state, array) : NULL;
    tk_scope_close(scope);
    return box;
}

/* ---- operators ---- */

typedef tk_array (*binary_op)(tk_array a, tk_array b);

static PyObject *binary(PyObject *left, PyObject *right, binary_op op) {
    tkpy_state *state = tkpy_state_of(tkpy_is_array(left) ? left : right);
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_array a, b;
    PyObject *result = NULL;
    int found = tkpy_operand(state, left, &a);
    if (found == 1) found = tkpy_operand(state, right, &b);
    if (found == 1)
        result = tkpy_box(state, op(a, b));
    else if (found == 0)
        result = tkpy_new_ref(Py_NotImplemented);
    tk_scope_close(scope);
    return result;
}

/* x += y makes a new array and puts it into the box of x. */
static PyObject *in_place(PyObject *self, PyObject *other, binary_op op) {
    tkpy_state *state = tkpy_state_of(self);
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_array b;
    PyObject *result = NULL;
    int found = tkpy_operand(state, other, &b);
    if (found == 1 && tkpy_rebox(state, self, op(tkpy_handle(self), b)))
        result = tkpy_new_ref(self);
    else if (found == 0)
        result = tkpy_new_ref(Py_NotImplemented);
    tk_scope_close(scope);
    return result;
}

static PyObject *unary(PyObject *self, tk_array (*op)(tk_array a)) {
    tk_scope scope = tk_scope_open(tkpy_context());
    PyObject *result = tkpy_box(tkpy_state_of(self), op(tkpy_handle(self)));
    tk_scope_close(scope);
    return result;
}

/* Bitwise operators of truth values are logical ones; & | ^ of the table take both. */
#define BINARY(name, op)                                                                           \
    static PyObject *array_##name(PyObject *a, PyObject *b) { return binary(a, b, op); }           \
    static PyObject *array_inplace_##name(PyObject *a, PyObject *b) { return in_place(a, b, op); }
BINARY(add, tk_add)
BINARY(subtract, tk_subtract)
BINARY(multiply, tk_multiply)
BINARY(divide, tk_divide)
BINARY(floor_divide, tk_floor_divide)
BINARY(remainder, tk_remainder)
BINARY(matmul, tk_matmul)
BINARY(and, tk_bitwise_and)
BINARY(or, tk_bitwise_or)
BINARY(xor, tk_bitwise_xor)
BINARY(lshift, tk_left_shift)
BINARY(rshift, tk_right_shift)
#undef BINARY

static PyObject *array_power(PyObject *a, PyObject *b, PyObject *modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return binary(a, b, tk_power);
}
static PyObject *array_inplace_power(PyObject *a, PyObject *b, PyObject *modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return in_place(a, b, tk_power);
}

static PyObject *array_divmod(PyObject *a, PyObject *b) {
    PyObject *quotient = array_floor_divide(a, b), *rest = quotient ? array_remainder(a, b) : NULL;
    PyObject *pair = rest ? PyTuple_Pack(2, quotient, rest) : NULL;
    Py_XDECREF(quotient);
    Py_XDECREF(rest);
    return pair;
}

static PyObject *array_negative(PyObject *a) { return unary(a, tk_negative); }
static PyObject *array_absolute(PyObject *a) { return unary(a, tk_abs); }
static PyObject *array_invert(PyObject *a) { return unary(a, tk_bitwise_invert); }
static PyObject *array_positive(PyObject *a) { return tkpy_box(tkpy_state_of(a), tkpy_handle(a)); }

static PyObject *array_compare(PyObject *self, PyObject *other, int op) {
    static const binary_op ops[] = {
        [Py_LT] = tk_less,      [Py_LE] = tk_less_equal, [Py_EQ] = tk_equal,
        [Py_NE] = tk_not_equal, [Py_GT] = tk_greater,    [Py_GE] = tk_greater_equal};
    if (other == Py_None) Py_RETURN_NOTIMPLEMENTED;
    return binary(self, other, ops[op]);
}

/* By identity, as boxes are: == compares elements. */
static Py_hash_t array_hash(PyObject *self) {
    Py_hash_t hash = (Py_hash_t)((uintptr_t)self >> 4);
    return hash == -1 ? -2 : hash;
}

/* ---- single values ---- */

static PyObject *only_item(PyObject *self) {
    tk_array array = tkpy_handle(self);
    if (tk_array_size(array) == 1) return tkpy_item(tkpy_state_of(self), array);
    PyErr_Format(PyExc_ValueError,
                 "an array with %lld elements has no single value, expected one element",
                 (long long)tk_array_size(array));
    return NULL;
}

static int array_bool(PyObject *self) {
    PyObject *item = only_item(self);
    int truth = item ? PyObject_IsTrue(item) : -1;
    Py_XDECREF(item);
    return truth;
}

static PyObject *array_int(PyObject *self) {
    PyObject *item = only_item(self);
    PyObject *number = item ? PyNumber_Long(item) : NULL;
    Py_XDECREF(item);
    return number;
}

static PyObject *array_float(PyObject *self) {
    PyObject *item = only_item(self);
    PyObject *number = item ? PyNumber_Float(item) : NULL;
    Py_XDECREF(item);
    return number;
}

static PyObject *array_index(PyObject *self) {
    if (!tk_dtype_is_integer(tk_array_dtype(tkpy_handle(self)))) {
        PyErr_Format(PyExc_TypeError, "only an integer array can be an index, this is %s",
                     tk_dtype_name(tk_array_dtype(tkpy_handle(self))));
        return NULL;
    }
    return array_int(self);
}

static PyObject *array_complex(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *item = only_item(self);
    PyObject *number =
        item ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, item, NULL) : NULL;
    Py_XDECREF(item);
    return number;
}

static PyObject *array_item(PyObject *self, PyObject *unused) {
    (void)unused;
    return only_item(self);
}

static PyObject *array_tolist(PyObject *self, PyObject *unused) {
    (void)unused;
    return tkpy_to_list(tkpy_state_of(self), tkpy_handle(self));
}

/* ---- text ---- */

/* Digits after the point of a number as text; -1 for what has no plain fraction. */
static int fraction_of(const char *at, const char *end) {
    const char *point = memchr(at, '.', (size_t)(end - at));
    if (!point || memchr(at, 'e', (size_t)(end - at)) || memchr(at, 'j', (size_t)(end - at)))
        return -1;
    return (int)(end - point - 1);
}

static const char *end_of_number(const char *at) { return at + strcspn(at, " \n[]"); }

static int widest_fraction(const char *text) {
    int widest = 0;
    for (const char *at = text; *at; at++) {
        const char *end = end_of_number(at);
        if (end == at) continue;
        int digits = fraction_of(at, end);
        if (digits > widest) widest = digits;
        at = end - 1;
    }
    return widest;
}

/* NumPy's array([...]) from its plain text: a comma behind each number (and the blanks that fill up
 * its fraction), and lines shifted by the width of "array(". */
static PyObject *repr_of(const char *text, const char *dtype) {
    char *out = PyMem_Malloc(strlen(text) * 8 + 64), *to = out;
    if (!out) return PyErr_NoMemory();
    int widest = widest_fraction(text);
    bool is_complex = strchr(text, 'j') != NULL; /* then "1. +2.j" is one item */
    for (const char *at = text; *at;) {
        const char *end = *at == ']' ? at + strspn(at, "]") : end_of_number(at);
        bool is_item = end > at;
        int digits = is_item && *at != ']' ? fraction_of(at, end) : -1;
        for (; at < end; at++) *to++ = *at;
        for (int i = digits; !is_complex && digits >= 0 && i < widest && *at == ' '; i++)
            *to++ = *at++;
        if (is_complex && is_item && end[-1] != ']' && end[-1] != 'j') continue;
        if (is_item && *at && *at != ']') *to++ = ',';
        bool is_line = *at == '\n';
        while (*at && *at != ']' && end_of_number(at) == at) {
            *to++ = *at;
            if (is_line && *at == '\n' && at[1] != '\n') {
                memset(to, ' ', 6);
                to += 6;
            }
            at++;
        }
    }
    *to = 0;
    PyObject *repr = PyUnicode_FromFormat("array(%s, dtype=%s)", out, dtype);
    PyMem_Free(out);
    return repr;
}

static PyObject *array_text(PyObject *self, bool plain) {
    tkpy_state *state = tkpy_state_of(self);
    tk_array array = tkpy_handle(self);
    char *text = NULL;
    if (!tkpy_eval_one(state, array)) return NULL;
    tk_status status = tk_format_digits(array, state->print_digits, &text);
    if (status != TK_OK) return tkpy_raise(state, status);
    PyObject *result =
        plain ? PyUnicode_FromString(text) : repr_of(text, tk_dtype_name(tk_array_dtype(array)));
    tk_text_free(text);
    return result;
}

static PyObject *array_repr(PyObject *self) { return array_text(self, false); }

static PyObject *array_format(PyObject *self, PyObject *format) {
    if (PyUnicode_CompareWithASCIIString(format, "") == 0) return PyObject_Str(self);
    PyObject *item = only_item(self);
    PyObject *text = item ? PyObject_Format(item, format) : NULL;
    Py_XDECREF(item);
    return text;
}

/* ---- properties ---- */

static PyObject *array_shape(PyObject *self, void *unused) {
    (void)unused;
    tk_shape shape = tk_array_shape(tkpy_handle(self));
    PyObject *tuple = PyTuple_New((Py_ssize_t)shape.count);
    for (int64_t i = 0; tuple && i < shape.count; i++)
        PyTuple_SetItem(tuple, (Py_ssize_t)i, PyLong_FromLongLong(shape.items[i]));
    return tuple;
}

static PyObject *array_dtype(PyObject *self, void *unused) {
    (void)unused;
    return tkpy_new_ref(tkpy_state_of(self)->dtypes[tk_array_dtype(tkpy_handle(self))]);
}

static PyObject *array_ndim(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(tk_array_rank(tkpy_handle(self)));
}

static PyObject *array_size(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(tk_array_size(tkpy_handle(self)));
}

static PyObject *array_itemsize(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(tk_dtype_size(tk_array_dtype(tkpy_handle(self))));
}

static PyObject *array_nbytes(PyObject *self, void *unused) {
    (void)unused;
    tk_array array = tkpy_handle(self);
    return PyLong_FromLongLong(tk_array_size(array) *
                               (int64_t)tk_dtype_size(tk_array_dtype(array)));
}

static tk_array transposed(tk_array a) { return tk_transpose(a, TK_ALL_AXES); }
static tk_array matrix_transposed(tk_array a) { return tk_swapaxes(a, -1, -2); }

static PyObject *array_T(PyObject *self, void *unused) {
    (void)unused;
    return unary(self, transposed);
}
static PyObject *array_mT(PyObject *self, void *unused) {
    (void)unused;
    return unary(self, matrix_transposed);
}
static PyObject *array_real(PyObject *self, void *unused) {
    (void)unused;
    return unary(self, tk_real);
}
static PyObject *array_imag(PyObject *self, void *unused) {
    (void)unused;
    return unary(self, tk_imag);
}
static PyObject *array_at(PyObject *self, void *unused) {
    (void)unused;
    return tkpy_at_new(tkpy_state_of(self), self);
}

static PyGetSetDef array_properties[] = {
    {"shape", array_shape, NULL, "Lengths of the axes.", NULL},
    {"dtype", array_dtype, NULL, "Type of the elements.", NULL},
    {"ndim", array_ndim, NULL, "Number of axes.", NULL},
    {"size", array_size, NULL, "Number of elements.", NULL},
    {"itemsize", array_itemsize, NULL, "Bytes of an element.", NULL},
    {"nbytes", array_nbytes, NULL, "Bytes of all elements.", NULL},
    {"T", array_T, NULL, "The axes reversed.", NULL},
    {"mT", array_mT, NULL, "The last two axes exchanged.", NULL},
    {"real", array_real, NULL, "Real part.", NULL},
    {"imag", array_imag, NULL, "Imaginary part.", NULL},
    {"at", array_at, NULL, "Updates at an index: x.at[i].add(v).", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

/* ---- sequences ---- */

static Py_ssize_t array_length(PyObject *self) {
    tk_array array = tkpy_handle(self);
    if (tk_array_rank(array) > 0) return (Py_ssize_t)tk_array_dim(array, 0);
    PyErr_SetString(PyExc_TypeError, "len() of an array without axes");
    return -1;
}

typedef struct iterator {
    PyObject_HEAD PyObject *array;
    Py_ssize_t next, count;
} iterator;

static PyObject *array_iter(PyObject *self) {
    Py_ssize_t count = array_length(self);
    if (count < 0) return NULL;
    iterator *it = (iterator *)PyType_GenericAlloc(tkpy_state_of(self)->iterator, 0);
    if (!it) return NULL;
    it->array = tkpy_new_ref(self);
    it->count = count;
    return (PyObject *)it;
}

static void iterator_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((iterator *)self)->array);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *iterator_next(PyObject *self) {
    iterator *it = (iterator *)self;
    if (it->next >= it->count) return NULL;
    PyObject *index = PyLong_FromSsize_t(it->next++);
    PyObject *item = index ? tkpy_getitem(it->array, index) : NULL;
    Py_XDECREF(index);
    return item;
}

static PyObject *iterator_self(PyObject *self) { return tkpy_new_ref(self); }

static PyType_Slot iterator_slots[] = {{Py_tp_dealloc, iterator_dealloc},
                                       {Py_tp_iter, iterator_self},
                                       {Py_tp_iternext, iterator_next},
                                       {0, NULL}};

PyType_Spec tkpy_iterator_spec = {"tiki.ArrayIterator", sizeof(iterator), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  iterator_slots};

/* Whether an element equals the value. */
static int array_contains(PyObject *self, PyObject *value) {
    PyObject *equal = array_compare(self, value, Py_EQ);
    if (!equal || !tkpy_is_array(equal)) {
        Py_XDECREF(equal);
        return equal ? 0 : -1;
    }
    tkpy_state *state = tkpy_state_of(self);
    tk_scope scope = tk_scope_open(tkpy_context());
    PyObject *found = tkpy_item(state, tk_any(tkpy_handle(equal), TK_ALL_AXES, false));
    tk_scope_close(scope);
    int truth = found ? PyObject_IsTrue(found) : -1;
    Py_XDECREF(found);
    Py_DECREF(equal);
    return truth;
}

/* ---- methods that are no op ---- */

/* The module of the array API standard's functions, in the version that is asked for. */
static PyObject *array_namespace(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"api_version", NULL};
    static const char *const versions[] = {"2021.12", "2022.12", "2023.12", "2024.12"};
    const char *version = NULL;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:__array_namespace__", names, &version))
        return NULL;
    bool is_known = !version;
    for (size_t i = 0; version && i < sizeof versions / sizeof *versions; i++)
        is_known |= strcmp(versions[i], version) == 0;
    if (is_known) return PyImport_ImportModule("tiki.array_api");
    return PyErr_Format(PyExc_ValueError,
                        "version %s of the array API standard is not known, expected 2024.12 or "
                        "one before it",
                        version);
}

static PyObject *array_copy(PyObject *self, PyObject *unused) {
    (void)unused;
    return array_positive(self);
}

/* reshape(2, 3) or reshape((2, 3)). */
static PyObject *axes_method(PyObject *self, PyObject *args, PyObject *kwargs, bool is_reshape) {
    tkpy_state *state = tkpy_state_of(self);
    Py_ssize_t count = PyTuple_Size(args);
    PyObject *stream = NULL, *only = count == 1 ? PyTuple_GetItem(args, 0) : NULL;
    tk_stream_id id = 0, before = 0;
    tk_axes axes = TK_ALL_AXES;
    if (kwargs) {
        stream = PyDict_GetItemString(kwargs, "stream");
        if (PyDict_Size(kwargs) > (stream != NULL)) {
            PyErr_SetString(PyExc_TypeError, "only the keyword argument 'stream' is possible");
            return NULL;
        }
    }
    bool has_stream = stream && stream != Py_None;
    if (has_stream && !tkpy_stream_of(stream, &id)) return NULL;
    PyObject *given = only ? only : args;
    if (!(count == 0 && !is_reshape) && given != Py_None &&
        !tkpy_axes_of(given, is_reshape ? "shape" : "axes", &axes))
        return NULL;
    if (has_stream) before = tk_stream_use(tkpy_context(), id);
    tk_scope scope = tk_scope_open(tkpy_context());
    tk_array a = tkpy_handle(self);
    PyObject *result = tkpy_box(state, is_reshape ? tk_reshape(a, axes) : tk_transpose(a, axes));
    tk_scope_close(scope);
    if (has_stream) tk_stream_use(tkpy_context(), before);
    return result;
}

static PyObject *array_reshape(PyObject *self, PyObject *args, PyObject *kwargs) {
    return axes_method(self, args, kwargs, true);
}
static PyObject *array_transpose(PyObject *self, PyObject *args, PyObject *kwargs) {
    return axes_method(self, args, kwargs, false);
}

static PyObject *interop(void) { return PyImport_ImportModule("tiki._interop"); }

static PyObject *array_to_numpy(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (tkpy_raise_dropped(self) ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    PyObject *module = interop();
    PyObject *result =
        module ? PyObject_CallMethod(module, "to_numpy", "OOO", self, dtype, copy) : NULL;
    Py_XDECREF(module);
    return result;
}

/* What a function of tiki/_interop.py gives for the array. */
static PyObject *by_interop(const char *function, PyObject *self) {
    PyObject *module = interop();
    PyObject *result = module ? PyObject_CallMethod(module, function, "(O)", self) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *array_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return by_interop("reduce", self);
}

static PyObject *array_bytes(PyObject *self, PyObject *unused) {
    (void)unused;
    return by_interop("to_bytes", self);
}

static PyObject *array_getstate(PyObject *self, PyObject *unused) {
    (void)unused;
    return by_interop("get_state", self);
}

static PyObject *array_setstate(PyObject *self, PyObject *given) {
    PyObject *made = by_interop("from_state", given);
    bool ok = made && tkpy_rebox(tkpy_state_of(self), self, tkpy_handle(made));
    Py_XDECREF(made);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

static PyObject *array_div(PyObject *self, PyObject *other) { return array_divide(self, other); }
static PyObject *array_rdiv(PyObject *self, PyObject *other) { return array_divide(other, self); }

static PyMethodDef array_methods[] = {
    {"__array__", (PyCFunction)(void (*)(void))array_to_numpy, METH_VARARGS | METH_KEYWORDS,
     "NumPy's view of the values."},
    {"__reduce__", array_reduce, METH_NOARGS, NULL},
    {"__reduce_ex__", array_reduce, METH_O, NULL},
    {"__bytes__", array_bytes, METH_NOARGS, "The values as bytes, row-major."},
    {"__getstate__", array_getstate, METH_NOARGS, "The values for NumPy, and the dtype's number."},
    {"__setstate__", array_setstate, METH_O, "Take the values that __getstate__ gave."},
    {"__div__", array_div, METH_O, "self / other"},
    {"__rdiv__", array_rdiv, METH_O, "other / self"},
    {"item", array_item, METH_NOARGS,
     "item($self, /)\n--\n\nThe value of an array with one element."},
    {"tolist", array_tolist, METH_NOARGS,
     "tolist($self, /)\n--\n\nThe values as nested lists of Python numbers."},
    {"reshape", (PyCFunction)(void (*)(void))array_reshape, METH_VARARGS | METH_KEYWORDS,
     "reshape($self, /, *shape, stream=None)\n--\n\nThe same elements under another shape."},
    {"transpose", (PyCFunction)(void (*)(void))array_transpose, METH_VARARGS | METH_KEYWORDS,
     "transpose($self, /, *axes, stream=None)\n--\n\nThe axes in another order, reversed by "
     "default."},
    {"__complex__", array_complex, METH_NOARGS, NULL},
    {"__format__", array_format, METH_O, NULL},
    {"__copy__", array_copy, METH_NOARGS, NULL},
    {"__deepcopy__", array_copy, METH_O, NULL},
    {"__dlpack__", (PyCFunction)(void (*)(void))tkpy_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", tkpy_dlpack_device, METH_NOARGS, NULL},
    {"__array_namespace__", (PyCFunction)(void (*)(void))array_namespace,
     METH_VARARGS | METH_KEYWORDS, "The module of array functions."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef array_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tkpy_array, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot array_slots[] = {
    {Py_tp_new, array_new},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_repr, array_repr},
    {Py_tp_str, array_repr},
    {Py_tp_hash, array_hash},
    {Py_tp_richcompare, array_compare},
    {Py_tp_getset, array_properties},
    {Py_tp_members, array_members},
    {Py_tp_methods, array_methods},
    {Py_tp_iter, array_iter},
    {Py_nb_add, array_add},
    {Py_nb_subtract, array_subtract},
    {Py_nb_multiply, array_multiply},
    {Py_nb_true_divide, array_divide},
    {Py_nb_floor_divide, array_floor_divide},
    {Py_nb_remainder, array_remainder},
    {Py_nb_divmod, array_divmod},
    {Py_nb_power, array_power},
    {Py_nb_matrix_multiply, array_matmul},
    {Py_nb_and, array_and},
    {Py_nb_or, array_or},
    {Py_nb_xor, array_xor},
    {Py_nb_lshift, array_lshift},
    {Py_nb_rshift, array_rshift},
    {Py_nb_inplace_add, array_inplace_add},
    {Py_nb_inplace_subtract, array_inplace_subtract},
    {Py_nb_inplace_multiply, array_inplace_multiply},
    {Py_nb_inplace_true_divide, array_inplace_divide},
    {Py_nb_inplace_floor_divide, array_inplace_floor_divide},
    {Py_nb_inplace_remainder, array_inplace_remainder},
    {Py_nb_inplace_power, array_inplace_power},
    {Py_nb_inplace_matrix_multiply, array_inplace_matmul},
    {Py_nb_inplace_and, array_inplace_and},
    {Py_nb_inplace_or, array_inplace_or},
    {Py_nb_inplace_xor, array_inplace_xor},
    {Py_nb_inplace_lshift, array_inplace_lshift},
    {Py_nb_inplace_rshift, array_inplace_rshift},
    {Py_nb_negative, array_negative},
    {Py_nb_positive, array_positive},
    {Py_nb_absolute, array_absolute},
    {Py_nb_invert, array_invert},
    {Py_nb_bool, array_bool},
    {Py_nb_int, array_int},
    {Py_nb_float, array_float},
    {Py_nb_index, array_index},
    {Py_mp_length, array_length},
    {Py_mp_subscript, tkpy_getitem},
    {Py_mp_ass_subscript, tkpy_setitem},
    {Py_sq_contains, array_contains},
    {Py_bf_getbuffer, tkpy_get_buffer},
    {Py_bf_releasebuffer, tkpy_release_buffer},
    {Py_tp_doc, (void *)"array(val, dtype=None)\n--\n\nA lazy, typed, n-dimensional value."},
    {0, NULL}};

PyType_Spec tkpy_array_spec = {"tiki.array", sizeof(tkpy_array), 0, Py_TPFLAGS_DEFAULT,
                               array_slots};
