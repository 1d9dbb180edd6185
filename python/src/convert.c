/* Python values to arrays and back: numbers, nested lists, objects with memory of their own. */
#include <string.h>

#include "module.h"

/* ---- scalars ---- */

/* The exception of an integer that is too large; huge ones are not printed. */
static bool does_not_fit(PyObject *object, const char *what) {
    PyObject *bits = PyObject_CallMethod(object, "bit_length", NULL);
    long length = bits ? PyLong_AsLong(bits) : -1;
    Py_XDECREF(bits);
    PyErr_Clear();
    if (length >= 0 && length <= 128)
        PyErr_Format(PyExc_OverflowError, "%R does not fit %s", object, what);
    else
        PyErr_Format(PyExc_OverflowError, "an integer of %ld bits does not fit %s", length, what);
    return false;
}

/* A weakly typed scalar from a Python number; false when it is none (or out of range, with an
 * exception). */
static bool weak_scalar(PyObject *object, tk_array *out) {
    tk_context *context = tkpy_context();
    if (PyBool_Check(object)) {
        *out = tk_scalar_bool(context, object == Py_True);
    } else if (PyLong_Check(object)) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (overflow) return does_not_fit(object, "an integer of 64 bits");
        *out = tk_scalar_int(context, value);
    } else if (PyFloat_Check(object)) {
        *out = tk_scalar(context, PyFloat_AsDouble(object));
    } else if (PyComplex_Check(object)) {
        *out = tk_scalar_complex(context, PyComplex_RealAsDouble(object),
                                 PyComplex_ImagAsDouble(object));
    } else {
        return false;
    }
    return true;
}

/* What the object's method __mlx_array__ gives, as a handle of the open scope; TK_NO_ARRAY without
 * an exception where it has none. */
static tk_array by_method(tkpy_state *state, PyObject *object) {
    if (!PyObject_HasAttrString(object, "__mlx_array__")) return TK_NO_ARRAY;
    PyObject *box = PyObject_CallMethod(object, "__mlx_array__", NULL);
    tk_array array = TK_NO_ARRAY;
    if (box && Py_TYPE(box) == state->array)
        array = tk_reshape(tkpy_handle(box), tk_array_shape(tkpy_handle(box)));
    else if (box)
        PyErr_Format(PyExc_TypeError, "__mlx_array__ must give an array, not %R",
                     (PyObject *)Py_TYPE(box));
    Py_XDECREF(box);
    return array;
}

int tkpy_operand(tkpy_state *state, PyObject *object, tk_array *out_array) {
    if (Py_TYPE(object) == state->array) {
        *out_array = tkpy_handle(object);
        return 1;
    }
    if (weak_scalar(object, out_array)) return 1;
    if (PyErr_Occurred()) return -1;
    *out_array = by_method(state, object);
    if (out_array->node || PyErr_Occurred()) return out_array->node ? 1 : -1;
    if (!PyObject_CheckBuffer(object) || PyBytes_Check(object) || PyByteArray_Check(object))
        return 0;
    *out_array = tkpy_from_buffer(state, object, TKPY_NO_DTYPE);
    return out_array->node ? 1 : -1;
}

tk_array tkpy_fitting(tk_array base, PyObject *value, tk_array operand) {
    tk_dtype dtype = tk_array_dtype(base);
    bool is_number = PyLong_Check(value) && !PyBool_Check(value);
    if (!is_number || !tk_dtype_is_integer(dtype)) return operand;
    return tk_full(operand, TK_SCALAR, dtype);
}

/* ---- nested lists ---- */

typedef struct nest {
    tkpy_state *state;
    tk_kind kind; /* of the widest number so far */
    bool has_arrays, is_wide, is_unsigned;
    PyObject *lowest, *highest; /* integers, borrowed; NULL: none */
    int rank;                   /* -1: not known yet */
    int64_t shape[TK_AXES_MAX];
    char *next; /* where the next number goes, when filling */
} nest;

static bool is_nested(PyObject *object) { return PyList_Check(object) || PyTuple_Check(object); }

static PyObject *child_of(PyObject *object, Py_ssize_t i) {
    return PyList_Check(object) ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i);
}

static bool uneven(void) {
    PyErr_SetString(PyExc_ValueError,
                    "the nested lists are uneven, expected the same lengths on each level");
    return false;
}

static bool survey_integer(nest *n, PyObject *object) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow > 0) {
        PyLong_AsUnsignedLongLong(object);
        n->is_unsigned = true;
    }
    if (PyErr_Occurred() || overflow < 0) {
        PyErr_Clear();
        return does_not_fit(object, "an integer of 64 bits");
    }
    if (!n->lowest || PyObject_RichCompareBool(object, n->lowest, Py_LT) == 1) n->lowest = object;
    if (!n->highest || PyObject_RichCompareBool(object, n->highest, Py_GT) == 1)
        n->highest = object;
    n->is_wide |= overflow || value < INT32_MIN || value > INT32_MAX;
    return true;
}

static bool survey_leaf(nest *n, PyObject *object) {
    tk_kind kind;
    if (PyBool_Check(object)) {
        kind = TK_KIND_BOOL;
    } else if (PyLong_Check(object)) {
        kind = TK_KIND_SIGNED;
        if (!survey_integer(n, object)) return false;
    } else if (PyFloat_Check(object)) {
        kind = TK_KIND_FLOAT;
    } else if (PyComplex_Check(object)) {
        kind = TK_KIND_COMPLEX;
    } else if (tkpy_is_array(object) || (PyObject_CheckBuffer(object) && !PyBytes_Check(object))) {
        n->has_arrays = true;
        return true;
    } else {
        PyErr_Format(PyExc_ValueError,
                     "cannot make an array of %R, expected numbers, nested lists or arrays",
                     (PyObject *)Py_TYPE(object));
        return false;
    }
    if (kind > n->kind) n->kind = kind;
    return true;
}

/* Finds shape and kind, and whether arrays are among the leaves. */
static bool survey(nest *n, PyObject *object, int depth) {
    if (!is_nested(object)) {
        if (!survey_leaf(n, object)) return false;
        if (n->has_arrays) return true;
        if (n->rank < 0) n->rank = depth;
        return n->rank == depth || uneven();
    }
    if (depth == TK_AXES_MAX || (n->rank >= 0 && depth >= n->rank)) return uneven();
    Py_ssize_t count = PySequence_Size(object);
    if (n->shape[depth] < 0) n->shape[depth] = count;
    if (n->shape[depth] != count) return uneven();
    if (count == 0 && n->rank < 0) n->rank = depth + 1;
    for (Py_ssize_t i = 0; i < count && !n->has_arrays; i++)
        if (!survey(n, child_of(object, i), depth + 1)) return false;
    return true;
}

static void put(nest *n, const void *value, size_t bytes) {
    memcpy(n->next, value, bytes);
    n->next += bytes;
}

static void fill_leaf(nest *n, PyObject *object) {
    if (n->kind == TK_KIND_BOOL) {
        uint8_t value = object == Py_True;
        put(n, &value, sizeof value);
    } else if (n->kind == TK_KIND_SIGNED && n->is_unsigned) {
        uint64_t value = PyLong_AsUnsignedLongLongMask(object);
        put(n, &value, sizeof value);
    } else if (n->kind == TK_KIND_SIGNED && n->is_wide) {
        int64_t value = PyLong_AsLongLong(object);
        put(n, &value, sizeof value);
    } else if (n->kind == TK_KIND_SIGNED) {
        int32_t value = (int32_t)PyLong_AsLong(object);
        put(n, &value, sizeof value);
    } else if (n->kind == TK_KIND_FLOAT) {
        double value = PyFloat_AsDouble(object);
        put(n, &value, sizeof value);
    } else {
        float value[2] = {(float)PyComplex_RealAsDouble(object),
                          (float)PyComplex_ImagAsDouble(object)};
        put(n, value, sizeof value);
    }
}

static void fill(nest *n, PyObject *object) {
    if (!is_nested(object)) {
        fill_leaf(n, object);
        return;
    }
    Py_ssize_t count = PySequence_Size(object);
    for (Py_ssize_t i = 0; i < count; i++) fill(n, child_of(object, i));
}

static tk_dtype storage_dtype(const nest *n) {
    if (n->kind == TK_KIND_BOOL) return TK_BOOL;
    if (n->kind == TK_KIND_SIGNED)
        return n->is_unsigned ? TK_UINT64 : n->is_wide ? TK_INT64 : TK_INT32;
    return n->kind == TK_KIND_FLOAT ? TK_FLOAT64 : TK_COMPLEX64;
}

/* Doubles become float32 at once, so that the array is plain memory. */
static tk_array from_numbers(nest *n, PyObject *object, int dtype) {
    tk_shape shape = tk_axes_from(n->rank, n->shape);
    tk_dtype stored = storage_dtype(n);
    size_t count = 1;
    for (int i = 0; i < n->rank; i++) count *= (size_t)n->shape[i];
    char *data = PyMem_Malloc(count * tk_dtype_size(stored) + 1);
    if (!data) return PyErr_NoMemory(), TK_NO_ARRAY;
    n->next = data;
    fill(n, object);
    if (stored == TK_FLOAT64 && (dtype == TKPY_NO_DTYPE || dtype == TK_FLOAT32)) {
        for (size_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, data + i * sizeof value, sizeof value);
            float narrow = (float)value;
            memcpy(data + i * sizeof narrow, &narrow, sizeof narrow);
        }
        stored = TK_FLOAT32;
    }
    tk_array array = tk_from_data(tkpy_context(), data, shape, stored);
    PyMem_Free(data);
    return dtype == TKPY_NO_DTYPE || dtype == (int)stored ? array
                                                          : tk_astype(array, (tk_dtype)dtype);
}

/* Lists with arrays in them are stacked, level by level. */
static tk_array stack_of(tkpy_state *state, PyObject *object, int dtype) {
    Py_ssize_t count = PySequence_Size(object);
    tk_array *items = PyMem_Malloc(((size_t)count + 1) * sizeof *items);
    if (!items) return PyErr_NoMemory(), TK_NO_ARRAY;
    tk_array result = TK_NO_ARRAY;
    Py_ssize_t done = 0;
    for (; done < count; done++) {
        items[done] = tkpy_from_object(state, child_of(object, done), dtype);
        if (!items[done].node) break;
    }
    if (done == count) result = tk_stack(items, (size_t)count, 0);
    PyMem_Free(items);
    return result;
}

/* Whether the integers, which fit 64 bits with or without a sign, fit the dtype. */
static bool fits(PyObject *object, tk_dtype dtype) {
    int bits = 8 * (int)tk_dtype_size(dtype);
    bool is_unsigned = tk_dtype_kind(dtype) == TK_KIND_UNSIGNED;
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) return is_unsigned && bits == 64;
    if (is_unsigned) return value >= 0 && (bits == 64 || value >> bits == 0);
    return value >> (bits - 1) == (value < 0 ? -1 : 0);
}

/* A list of integers for an integer dtype holds what the dtype holds; without a dtype one of 64
 * bits holds all of them. In another dtype integers of both kinds meet as floats. */
static bool check_integers(nest *n, int dtype) {
    bool is_integer = dtype != TKPY_NO_DTYPE && tk_dtype_is_integer((tk_dtype)dtype);
    if (n->kind != TK_KIND_SIGNED) return true;
    if (is_integer && !fits(n->lowest, (tk_dtype)dtype))
        return does_not_fit(n->lowest, tk_dtype_name((tk_dtype)dtype));
    if (is_integer && !fits(n->highest, (tk_dtype)dtype))
        return does_not_fit(n->highest, tk_dtype_name((tk_dtype)dtype));
    if (!n->is_unsigned || fits(n->lowest, TK_UINT64)) return true;
    if (dtype == TKPY_NO_DTYPE) return does_not_fit(n->highest, "int64, and others are below 0");
    n->kind = TK_KIND_FLOAT;
    return true;
}

static tk_array from_nested(tkpy_state *state, PyObject *object, int dtype) {
    nest n = {.state = state, .kind = TK_KIND_BOOL, .rank = -1};
    for (int i = 0; i < TK_AXES_MAX; i++) n.shape[i] = -1;
    if (!survey(&n, object, 0)) return TK_NO_ARRAY;
    if (n.has_arrays) return stack_of(state, object, dtype);
    if (!check_integers(&n, dtype)) return TK_NO_ARRAY;
    bool is_empty = false;
    for (int i = 0; i < n.rank; i++) is_empty |= n.shape[i] == 0;
    if (is_empty) n.kind = TK_KIND_FLOAT;
    return from_numbers(&n, object, dtype);
}

static tk_array cast(tk_array array, int dtype) {
    return dtype == TKPY_NO_DTYPE || tk_array_dtype(array) == (tk_dtype)dtype
               ? array
               : tk_astype(array, (tk_dtype)dtype);
}

/* Objects that only offer an array interface of NumPy (bfloat16 has no buffer format). */
static tk_array from_array_like(tkpy_state *state, PyObject *object, int dtype) {
    PyObject *kind = PyObject_GetAttrString(object, "dtype");
    PyObject *name = kind ? PyObject_GetAttrString(kind, "name") : NULL;
    tk_array array = TK_NO_ARRAY;
    Py_XDECREF(kind);
    PyErr_Clear();
    if (name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0) {
        PyObject *bits = PyObject_CallMethod(object, "view", "s", "uint16");
        if (bits) array = tkpy_from_buffer(state, bits, TKPY_NO_DTYPE);
        Py_XDECREF(bits);
        if (array.node) array = cast(tk_view(array, TK_BFLOAT16), dtype);
    }
    Py_XDECREF(name);
    return array;
}

tk_array tkpy_from_object(tkpy_state *state, PyObject *object, int dtype) {
    if (tkpy_is_array(object)) return cast(tkpy_handle(object), dtype);
    if (is_nested(object) || PyLong_Check(object) || PyFloat_Check(object) ||
        PyComplex_Check(object))
        return from_nested(state, object, dtype);
    tk_array array = by_method(state, object);
    if (array.node) return cast(array, dtype);
    if (PyErr_Occurred()) return array;
    array = from_array_like(state, object, dtype);
    if (array.node || PyErr_Occurred()) return array;
    if (PyObject_CheckBuffer(object)) return tkpy_from_buffer(state, object, dtype);
    if (PyObject_HasAttrString(object, "__dlpack__")) {
        PyObject *module = PyImport_ImportModule("tiki");
        PyObject *box = module ? PyObject_CallMethod(module, "from_dlpack", "O", object) : NULL;
        Py_XDECREF(module);
        if (!box) return TK_NO_ARRAY;
        array = cast(tkpy_handle(box), dtype);
        array = tk_reshape(array, tk_array_shape(array)); /* a handle of this scope */
        Py_DECREF(box);
        return array;
    }
    if (PyObject_HasAttrString(object, "__array__")) {
        PyObject *memory = PyObject_CallMethod(object, "__array__", NULL);
        if (memory) array = tkpy_from_buffer(state, memory, dtype);
        Py_XDECREF(memory);
        return array;
    }
    PyErr_Format(PyExc_ValueError,
                 "cannot make an array of %R, expected numbers, nested lists or arrays",
                 (PyObject *)Py_TYPE(object));
    return TK_NO_ARRAY;
}

/* ---- values to Python ---- */

static PyObject *element(tk_dtype dtype, const char *at) {
    switch (dtype) {
    case TK_BOOL:
        return PyBool_FromLong(*(const uint8_t *)at != 0);
    case TK_UINT8:
        return PyLong_FromLong(*(const uint8_t *)at);
    case TK_INT8:
        return PyLong_FromLong(*(const int8_t *)at);
#define ELEMENT(name, type, make)                                                                  \
    case name: {                                                                                   \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        return make;                                                                               \
    }
        ELEMENT(TK_UINT16, uint16_t, PyLong_FromLong(value))
        ELEMENT(TK_UINT32, uint32_t, PyLong_FromUnsignedLong(value))
        ELEMENT(TK_UINT64, uint64_t, PyLong_FromUnsignedLongLong(value))
        ELEMENT(TK_INT16, int16_t, PyLong_FromLong(value))
        ELEMENT(TK_INT32, int32_t, PyLong_FromLong(value))
        ELEMENT(TK_INT64, int64_t, PyLong_FromLongLong(value))
        ELEMENT(TK_FLOAT32, float, PyFloat_FromDouble((double)value))
        ELEMENT(TK_FLOAT64, double, PyFloat_FromDouble(value))
#undef ELEMENT
    case TK_COMPLEX64: {
        float parts[2];
        memcpy(parts, at, sizeof parts);
        return PyComplex_FromDoubles((double)parts[0], (double)parts[1]);
    }
    default:
        return PyErr_Format(PyExc_SystemError, "no element of dtype %d", (int)dtype);
    }
}

static PyObject *list_axis(const tk_strided *view, const char *data, int axis) {
    if (axis == view->rank) return element(view->dtype, data);
    PyObject *list = PyList_New((Py_ssize_t)view->shape[axis]);
    int64_t step = view->strides[axis] * (int64_t)tk_dtype_size(view->dtype);
    for (int64_t i = 0; list && i < view->shape[axis]; i++) {
        PyObject *item = list_axis(view, data + i * step, axis + 1);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

static bool is_half(tk_dtype dtype) { return dtype == TK_FLOAT16 || dtype == TK_BFLOAT16; }

PyObject *tkpy_to_list(tkpy_state *state, tk_array array) {
    tk_strided view;
    PyObject *list = NULL;
    tk_scope scope = tk_scope_open(tkpy_context());
    array = is_half(tk_array_dtype(array)) ? tk_astype(array, TK_FLOAT32) : array;
    tk_array kept = tk_keep(array);
    if (tkpy_eval_one(state, kept)) {
        tk_status status = tk_array_view(kept, &view);
        list = status == TK_OK ? list_axis(&view, view.data, 0) : tkpy_raise(state, status);
    }
    tk_release(kept);
    tk_scope_close(scope);
    return list;
}

PyObject *tkpy_item(tkpy_state *state, tk_array array) {
    tk_strided view;
    PyObject *item = NULL;
    tk_scope scope = tk_scope_open(tkpy_context());
    array = is_half(tk_array_dtype(array)) ? tk_astype(array, TK_FLOAT32) : array;
    tk_array kept = tk_keep(array);
    if (tkpy_eval_one(state, kept)) {
        tk_status status = tk_array_view(kept, &view);
        item = status == TK_OK ? element(view.dtype, view.data) : tkpy_raise(state, status);
    }
    tk_release(kept);
    tk_scope_close(scope);
    return item;
}
