/* The buffer protocol, both ways.
 *
 * Out: a read-only view of the evaluated memory, with strides; the view keeps a handle of its own,
 * so the box may be reassigned meanwhile. Read-only, unlike MLX's: arrays are values that others
 * share. In: array() makes one copy, since the other side may change its memory; asarray() shares
 * the memory where it can, which is what its name promises. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "module.h"

/* ---- out ---- */

typedef struct exported_view {
    tk_array kept;
    Py_ssize_t shape[TK_AXES_MAX], strides[TK_AXES_MAX];
} exported_view;

static const char *format_of(tk_dtype dtype) {
    static const char *const formats[TK_DTYPE_COUNT] = {
        [TK_BOOL] = "?",      [TK_UINT8] = "B",   [TK_UINT16] = "H",  [TK_UINT32] = "I",
        [TK_UINT64] = "Q",    [TK_INT8] = "b",    [TK_INT16] = "h",   [TK_INT32] = "i",
        [TK_INT64] = "q",     [TK_FLOAT16] = "e", [TK_FLOAT32] = "f", [TK_FLOAT64] = "d",
        [TK_COMPLEX64] = "Zf"};
    return formats[dtype];
}

static bool is_row_major(const tk_strided *view) {
    int64_t expected = 1;
    for (int axis = view->rank - 1; axis >= 0; axis--) {
        if (view->shape[axis] > 1 && view->strides[axis] != expected) return false;
        expected *= view->shape[axis];
    }
    return true;
}

static void fill_view(Py_buffer *view, exported_view *mine, const tk_strided *from, int flags) {
    Py_ssize_t size = (Py_ssize_t)tk_dtype_size(from->dtype), step = size;
    bool row_major = is_row_major(from);
    for (int axis = from->rank - 1; axis >= 0; axis--) {
        mine->shape[axis] = (Py_ssize_t)from->shape[axis];
        mine->strides[axis] = row_major ? step : (Py_ssize_t)from->strides[axis] * size;
        step *= mine->shape[axis];
    }
    view->buf = from->data;
    view->len = (Py_ssize_t)from->size * size;
    view->itemsize = size;
    view->readonly = 1;
    view->ndim = from->rank;
    view->format = flags & PyBUF_FORMAT ? (char *)format_of(from->dtype) : NULL;
    view->shape = flags & PyBUF_ND ? mine->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? mine->strides : NULL;
    view->suboffsets = NULL;
    view->internal = mine;
}

static bool export_array(tkpy_state *state, tk_array kept, int flags, tk_strided *out) {
    if (!format_of(tk_array_dtype(kept))) {
        PyErr_Format(PyExc_BufferError, "%s has no buffer format; view it as uint16",
                     tk_dtype_name(tk_array_dtype(kept)));
        return false;
    }
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "an array's memory cannot be written; copy it");
        return false;
    }
    if (!tkpy_eval_one(state, kept)) return false;
    tk_status status = tk_array_view(kept, out);
    if (status != TK_OK) return tkpy_raise(state, status), false;
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES || is_row_major(out)) return true;
    PyErr_SetString(PyExc_BufferError, "the array is strided, and the request takes no strides");
    return false;
}

/* What a request of this thread for the memory of an array failed with. NumPy drops the error and
 * calls __array__ next, where an index out of range, which is told once, would be no error. */
static _Thread_local struct {
    PyObject *array; /* NULL: none; held, so that no other array has its address */
    PyObject *type;
    char text[1024];
} dropped;

static void forget_error(void) {
    Py_CLEAR(dropped.array);
    Py_CLEAR(dropped.type);
}

static void keep_error(PyObject *array) {
    PyObject *type, *value, *trace;
    if (PyErr_ExceptionMatches(PyExc_BufferError)) return;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    snprintf(dropped.text, sizeof dropped.text, "%s", words ? words : "");
    dropped.array = tkpy_new_ref(array);
    dropped.type = tkpy_new_ref(type);
    Py_XDECREF(text);
    PyErr_Restore(type, value, trace);
}

bool tkpy_raise_dropped(const PyObject *array) {
    bool raises = dropped.array == array;
    if (raises) PyErr_SetString(dropped.type, dropped.text);
    forget_error();
    return raises;
}

int tkpy_get_buffer(PyObject *self, Py_buffer *view, int flags) {
    tk_strided from;
    exported_view *mine = PyMem_Malloc(sizeof *mine);
    view->obj = NULL;
    forget_error();
    if (!mine) return PyErr_NoMemory(), -1;
    mine->kept = tk_keep(tkpy_handle(self));
    if (!export_array(tkpy_state_of(self), mine->kept, flags, &from)) {
        tk_release(mine->kept);
        PyMem_Free(mine);
        keep_error(self);
        return -1;
    }
    fill_view(view, mine, &from, flags);
    view->obj = tkpy_new_ref(self);
    return 0;
}

void tkpy_release_buffer(PyObject *self, Py_buffer *view) {
    exported_view *mine = view->internal;
    (void)self;
    tk_release(mine->kept);
    PyMem_Free(mine);
}

/* ---- in ---- */

static bool dtype_of_format(const Py_buffer *view, tk_dtype *out) {
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    static const tk_dtype signeds[9] = {
        [1] = TK_INT8, [2] = TK_INT16, [4] = TK_INT32, [8] = TK_INT64};
    static const tk_dtype unsigneds[9] = {
        [1] = TK_UINT8, [2] = TK_UINT16, [4] = TK_UINT32, [8] = TK_UINT64};
    bool known = view->itemsize >= 1 && view->itemsize <= 8 && format[0] && !format[1];
    if (!strcmp(format, "Zf"))
        *out = TK_COMPLEX64;
    else if (known && strchr("bhilqn", *format))
        *out = signeds[view->itemsize];
    else if (known && strchr("BHILQN", *format))
        *out = unsigneds[view->itemsize];
    else if (known && strchr("?efd", *format))
        *out = *format == '?'   ? TK_BOOL
               : *format == 'e' ? TK_FLOAT16
               : *format == 'f' ? TK_FLOAT32
                                : TK_FLOAT64;
    else
        return false;
    return true;
}

static tk_array copy_in(tkpy_state *state, Py_buffer *view, tk_dtype dtype) {
    int64_t shape[TK_AXES_MAX];
    if (view->ndim > TK_AXES_MAX) {
        PyErr_Format(PyExc_ValueError, "the buffer has %d axes, at most %d are possible",
                     view->ndim, TK_AXES_MAX);
        return TK_NO_ARRAY;
    }
    for (int i = 0; i < view->ndim; i++) shape[i] = view->shape[i];
    tk_shape axes = tk_axes_from(view->ndim, shape);
    tk_array array;
    if (PyBuffer_IsContiguous(view, 'C')) {
        array = tk_from_data(tkpy_context(), view->buf, axes, dtype);
    } else {
        void *data = PyMem_Malloc((size_t)view->len + 1);
        if (!data || PyBuffer_ToContiguous(data, view, view->len, 'C') < 0) {
            PyMem_Free(data);
            if (!PyErr_Occurred()) PyErr_NoMemory();
            return TK_NO_ARRAY;
        }
        array = tk_from_data(tkpy_context(), data, axes, dtype);
        PyMem_Free(data);
    }
    tk_status status = tk_array_status(array);
    if (status != TK_OK) return tkpy_raise(state, status), TK_NO_ARRAY;
    return array;
}

/* ---- in, without a copy ---- */

typedef struct shared_view {
    Py_buffer view;
    int64_t strides[TK_AXES_MAX], shape[TK_AXES_MAX];
    tk_axes flipped; /* axes with negative strides, which are views from the other end */
    char *first;
    size_t bytes; /* from the first element to the end of the last */
} shared_view;

static void drop_shared(void *owner) {
    shared_view *shared = owner;
    if (!tkpy_is_running()) return;
    PyGILState_STATE held = PyGILState_Ensure();
    PyBuffer_Release(&shared->view);
    PyMem_Free(shared);
    PyGILState_Release(held);
}

/* Whether the strides are whole elements and the memory is aligned for them. */
static bool measure(shared_view *s, tk_dtype dtype) {
    int64_t size = (int64_t)tk_dtype_size(dtype), extent = 1;
    s->first = s->view.buf;
    for (int axis = 0; axis < s->view.ndim; axis++) {
        int64_t length = s->view.shape[axis], stride = s->view.strides[axis];
        s->shape[axis] = length;
        if (length == 0 || stride % size) return false;
        s->strides[axis] = length > 1 ? stride / size : 1;
        if (s->strides[axis] < 0) {
            s->first += stride * (length - 1);
            s->strides[axis] = -s->strides[axis];
            s->flipped.items[s->flipped.count++] = axis;
        }
        extent += s->strides[axis] * (length - 1);
    }
    s->bytes = (size_t)(extent * size);
    return (uintptr_t)s->first % (uintptr_t)size == 0;
}

/* Takes over `s` where it can be shared. */
static tk_array wrap_view(shared_view *s, tk_dtype dtype) {
    tk_array array =
        tk_from_memory(tkpy_context(), s->first, s->bytes, tk_axes_from(s->view.ndim, s->shape),
                       s->strides, dtype, drop_shared, s);
    return s->flipped.count ? tk_flip(array, s->flipped) : array;
}

PyObject *tkpy_share(PyObject *module, PyObject *object) {
    tk_context *context = tkpy_context();
    tk_dtype dtype;
    if (!context) return NULL;
    if (!PyObject_CheckBuffer(object)) Py_RETURN_NONE;
    shared_view *s = PyMem_Calloc(1, sizeof *s);
    if (!s) return PyErr_NoMemory();
    if (PyObject_GetBuffer(object, &s->view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        PyErr_Clear(); /* a dtype without a buffer format, say */
        PyMem_Free(s);
        Py_RETURN_NONE;
    }
    if (s->view.ndim > TK_AXES_MAX || !dtype_of_format(&s->view, &dtype) || !measure(s, dtype)) {
        PyBuffer_Release(&s->view);
        PyMem_Free(s);
        Py_RETURN_NONE;
    }
    tk_scope scope = tk_scope_open(context);
    PyObject *box = tkpy_box(tkpy_module_state(module), wrap_view(s, dtype));
    tk_scope_close(scope);
    return box;
}

/* complex128 and other formats go through NumPy's own conversion. */
static tk_array from_foreign(tkpy_state *state, PyObject *object, const char *format, int dtype) {
    if (!strcmp(format, "Zd") && PyObject_HasAttrString(object, "astype")) {
        PyObject *narrow = PyObject_CallMethod(object, "astype", "s", "complex64");
        tk_array array = narrow ? tkpy_from_buffer(state, narrow, dtype) : TK_NO_ARRAY;
        Py_XDECREF(narrow);
        return array;
    }
    PyErr_Format(PyExc_ValueError,
                 "the buffer's format '%s' is no dtype of Tiki, expected numbers in native order",
                 format);
    return TK_NO_ARRAY;
}

tk_array tkpy_from_buffer(tkpy_state *state, PyObject *object, int dtype) {
    Py_buffer view;
    tk_dtype found;
    if (PyObject_GetBuffer(object, &view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) return TK_NO_ARRAY;
    tk_array array;
    if (dtype_of_format(&view, &found))
        array = copy_in(state, &view, found);
    else
        array = from_foreign(state, object, view.format ? view.format : "?", dtype);
    PyBuffer_Release(&view);
    if (!array.node) return array;
    int wanted = dtype != TKPY_NO_DTYPE                ? dtype
                 : tk_array_dtype(array) == TK_FLOAT64 ? (int)TK_FLOAT32
                                                       : (int)tk_array_dtype(array);
    return wanted == (int)tk_array_dtype(array) ? array : tk_astype(array, (tk_dtype)wanted);
}
