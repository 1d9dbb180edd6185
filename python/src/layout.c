/* The layout algebra for tiki.layout: operations by name on values as text.
 *
 * Layouts cross the border as their notation, which prints and parses back to the same value; the
 * Python side holds it in small immutable objects. Rejected: a type around the C value, which takes
 * about 6 KB. */
#include "module.h"
#include "tiki/layout_call.h"
#include "tiki/layout_draw.h"

static const char *const kind_names[] = {"bool",    "tuple",    "layout", "tiler",
                                         "swizzle", "composed", "pair"};

/* (kind, text) of a value. */
static PyObject *value_object(const tk_layout_value *value) {
    size_t length = tk_layout_value_print(value, NULL, 0);
    char *text = PyMem_Malloc(length + 1);
    if (!text) return PyErr_NoMemory();
    tk_layout_value_print(value, text, length + 1);
    PyObject *result = Py_BuildValue("(ss#)", kind_names[value->kind], text, (Py_ssize_t)length);
    PyMem_Free(text);
    return result;
}

static bool value_of(tkpy_state *state, PyObject *object, tk_layout_value *out) {
    PyObject *bytes = PyUnicode_Check(object) ? PyUnicode_AsUTF8String(object) : NULL;
    if (!bytes) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a layout value is its notation, a str");
        return false;
    }
    char *text = PyBytes_AsString(bytes);
    tk_status status = text ? tk_layout_value_parse(text, out) : TK_OK;
    Py_DECREF(bytes);
    if (status != TK_OK) tkpy_raise(state, status);
    return text && status == TK_OK;
}

static PyObject *layout_parse(PyObject *module, PyObject *text) {
    tk_layout_value value;
    return value_of(tkpy_module_state(module), text, &value) ? value_object(&value) : NULL;
}

static PyObject *layout_call(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *texts;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyTuple_Type, &texts)) return NULL;
    Py_ssize_t count = PyTuple_Size(texts);
    if (count > TK_LAYOUT_MAX_ARGS)
        return PyErr_Format(PyExc_TypeError, "%s takes at most %d arguments, %zd given", name,
                            TK_LAYOUT_MAX_ARGS, count);
    tkpy_state *state = tkpy_module_state(module);
    tk_layout_value *values = PyMem_Malloc((TK_LAYOUT_MAX_ARGS + 1) * sizeof *values);
    if (!values) return PyErr_NoMemory();
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < count; i++)
        ok = value_of(state, PyTuple_GetItem(texts, i), &values[i]);
    PyObject *result = NULL;
    if (ok) {
        tk_layout_value *out = &values[TK_LAYOUT_MAX_ARGS];
        tk_status status = tk_layout_call(name, values, (int)count, out);
        result = status == TK_OK ? value_object(out) : tkpy_raise(state, status);
    }
    PyMem_Free(values);
    return result;
}

static PyObject *layout_operations(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    const tk_layout_op *op;
    for (int i = 0; list && (op = tk_layout_op_at(i)); i++) {
        PyObject *row =
            Py_BuildValue("(sssii)", op->names, op->usage, op->summary, op->min_args, op->max_args);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---- pictures ---- */

/* A layout or a composed layout as the latter, which is what the pictures take. */
static bool composed_of(tkpy_state *state, PyObject *text, tk_composed *out) {
    tk_layout_value value;
    if (!value_of(state, text, &value)) return false;
    if (value.kind == TK_VALUE_COMPOSED)
        *out = value.as.composed;
    else if (value.kind == TK_VALUE_LAYOUT)
        tk_composed_from_layout(&value.as.layout, out);
    else
        PyErr_Format(PyExc_TypeError, "a layout is needed, a %s was given", kind_names[value.kind]);
    return !PyErr_Occurred();
}

typedef tk_status (*draw_function)(void *arg, char *text, size_t capacity, size_t *out_length);

/* Asks for the length, then for the text. */
static PyObject *draw_text(tkpy_state *state, draw_function draw, void *arg) {
    size_t length = 0;
    tk_status status = draw(arg, NULL, 0, &length);
    if (status != TK_OK) return tkpy_raise(state, status);
    char *text = PyMem_Malloc(length + 1);
    if (!text) return PyErr_NoMemory();
    status = draw(arg, text, length + 1, &length);
    PyObject *result = status == TK_OK ? PyUnicode_FromStringAndSize(text, (Py_ssize_t)length)
                                       : tkpy_raise(state, status);
    PyMem_Free(text);
    return result;
}

typedef struct picture {
    tk_composed one, other;
    tk_tuple tile;
    int bytes;
} picture;

static tk_status draw_grid(void *arg, char *text, size_t capacity, size_t *out_length) {
    return tk_layout_draw(&((picture *)arg)->one, text, capacity, out_length);
}

static tk_status draw_pair(void *arg, char *text, size_t capacity, size_t *out_length) {
    picture *p = arg;
    return tk_layout_draw_pair(&p->one, &p->other, text, capacity, out_length, NULL);
}

static tk_status draw_banks(void *arg, char *text, size_t capacity, size_t *out_length) {
    picture *p = arg;
    return tk_layout_draw_banks(&p->one, p->bytes, text, capacity, out_length);
}

static tk_status draw_threads(void *arg, char *text, size_t capacity, size_t *out_length) {
    picture *p = arg;
    return tk_layout_draw_tv(&p->one.outer, &p->tile, text, capacity, out_length);
}

static PyObject *layout_draw(PyObject *module, PyObject *args) {
    PyObject *text, *other = NULL, *tile = NULL, *result = NULL;
    int bytes = 0;
    if (!PyArg_ParseTuple(args, "OOOi", &text, &other, &tile, &bytes)) return NULL;
    tkpy_state *state = tkpy_module_state(module);
    picture *p = PyMem_Calloc(1, sizeof *p);
    tk_layout_value value;
    if (!p) return PyErr_NoMemory();
    p->bytes = bytes;
    if (composed_of(state, text, &p->one)) {
        if (other != Py_None) {
            if (composed_of(state, other, &p->other)) result = draw_text(state, draw_pair, p);
        } else if (tile != Py_None) {
            if (value_of(state, tile, &value)) {
                p->tile = value.as.tuple;
                if (value.kind == TK_VALUE_TUPLE)
                    result = draw_text(state, draw_threads, p);
                else
                    PyErr_SetString(PyExc_TypeError,
                                    "the tile of a thread-value layout is a shape");
            }
        } else {
            result = draw_text(state, bytes ? draw_banks : draw_grid, p);
        }
    }
    PyMem_Free(p);
    return result;
}

static PyObject *layout_banks(PyObject *module, PyObject *args) {
    PyObject *text;
    int bytes;
    tk_bank_report report;
    if (!PyArg_ParseTuple(args, "Oi", &text, &bytes)) return NULL;
    tkpy_state *state = tkpy_module_state(module);
    tk_composed *pattern = PyMem_Malloc(sizeof *pattern);
    if (!pattern) return PyErr_NoMemory();
    bool ok = composed_of(state, text, pattern);
    tk_status status = ok ? tk_layout_count_banks(pattern, bytes, &report) : TK_OK;
    PyMem_Free(pattern);
    if (!ok) return NULL;
    if (status != TK_OK) return tkpy_raise(state, status);
    return Py_BuildValue("{s:L,s:L,s:L,s:L}", "accesses", (long long)report.accesses, "passes",
                         (long long)report.passes, "least", (long long)report.least, "conflicts",
                         (long long)report.conflicts);
}

/* ---- layouts of arrays ---- */

static PyObject *layout_of_array(PyObject *module, PyObject *object) {
    tkpy_state *state = tkpy_module_state(module);
    tk_strided view;
    if (!tkpy_is_array(object)) return PyErr_Format(PyExc_TypeError, "an array is needed");
    if (!tkpy_eval_one(state, tkpy_handle(object))) return NULL;
    tk_status status = tk_array_view(tkpy_handle(object), &view);
    if (status != TK_OK) return tkpy_raise(state, status);
    PyObject *shape = PyTuple_New(view.rank), *strides = PyTuple_New(view.rank);
    bool ok = shape && strides;
    for (int i = 0; ok && i < view.rank; i++) {
        PyObject *length = PyLong_FromLongLong(view.shape[i]),
                 *stride = PyLong_FromLongLong(view.strides[i]);
        ok = length && stride && PyTuple_SetItem(shape, i, length) == 0 &&
             PyTuple_SetItem(strides, i, stride) == 0;
    }
    PyObject *result = ok ? PyTuple_Pack(2, shape, strides) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return result;
}

/* The value at every integer coordinate, and the least and largest of them. */
typedef struct offset_list {
    int64_t count, least, most;
    bool numbers; /* false if some value is no plain number */
    int64_t *value;
} offset_list;

static tk_status fill_offsets(const tk_composed *layout, offset_list *out) {
    tk_tuple at, value;
    bool plain = layout->inner == TK_INNER_NONE && tk_layout_is_plain(&layout->outer);
    if (plain) return tk_layout_offsets(&layout->outer, 0, out->count, out->value);
    for (int64_t i = 0; i < out->count && out->numbers; i++) {
        tk_tuple_from_term(tk_term_int(i), &at);
        tk_status status = tk_composed_eval(layout, &at, &value);
        if (status != TK_OK) return status;
        out->numbers = value.node[0] == TK_NODE_LEAF && tk_term_is_static(value.leaf[0]) &&
                       !value.leaf[0].basis;
        out->value[i] = value.leaf[0].value;
    }
    return TK_OK;
}

static PyObject *offsets_object(tkpy_state *state, const tk_composed *layout) {
    tk_term size;
    tk_status status = tk_layout_size(&layout->outer, &size);
    if (status != TK_OK) return tkpy_raise(state, status);
    if (!tk_term_is_static(size) || size.value > PY_SSIZE_T_MAX / (Py_ssize_t)sizeof(int64_t))
        return PyErr_Format(PyExc_ValueError, "offsets: a layout of unknown or unbounded size");
    PyObject *bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size.value * (int64_t)sizeof(int64_t)));
    if (!bytes) return NULL;
    offset_list list = {size.value, INT64_MAX, INT64_MIN, true,
                        (int64_t *)(void *)PyBytes_AsString(bytes)};
    status = fill_offsets(layout, &list);
    for (int64_t i = 0; i < list.count && status == TK_OK && list.numbers; i++) {
        if (list.value[i] < list.least) list.least = list.value[i];
        if (list.value[i] > list.most) list.most = list.value[i];
    }
    PyObject *result = NULL;
    if (status != TK_OK)
        tkpy_raise(state, status);
    else if (!list.numbers)
        PyErr_SetString(PyExc_ValueError, "offsets: the layout gives no plain numbers");
    else
        result = Py_BuildValue("(OLL)", bytes, (long long)list.least, (long long)list.most);
    Py_DECREF(bytes);
    return result;
}

static PyObject *layout_offsets(PyObject *module, PyObject *text) {
    tkpy_state *state = tkpy_module_state(module);
    tk_composed *layout = PyMem_Malloc(sizeof *layout);
    if (!layout) return PyErr_NoMemory();
    PyObject *result = composed_of(state, text, layout) ? offsets_object(state, layout) : NULL;
    PyMem_Free(layout);
    return result;
}

PyMethodDef tkpy_layout_functions[] = {
    {"parse", layout_parse, METH_O, "(kind, notation) of a value."},
    {"call", layout_call, METH_VARARGS, "(kind, notation) of an operation's result."},
    {"operations", layout_operations, METH_NOARGS,
     "The table: (names, usage, summary, least, most)."},
    {"draw", layout_draw, METH_VARARGS, "An SVG picture."},
    {"banks", layout_banks, METH_VARARGS, "Passes and conflicts of an access pattern."},
    {"of_array", layout_of_array, METH_O, "Shape and strides of an array's memory, in elements."},
    {"offsets", layout_offsets, METH_O,
     "(offsets of all integer coordinates as bytes of int64, least, most)."},
    {NULL, NULL, 0, NULL}};
