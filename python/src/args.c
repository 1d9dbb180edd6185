/* The argument parser of the generated functions. See args.h. */
#include "args.h"

#include <math.h>
#include <string.h>

static bool wrong(const tkpy_spec *spec, const tkpy_param *param, const char *expected,
                  PyObject *given) {
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %R", spec->name,
                     param->name, expected, (PyObject *)Py_TYPE(given));
    return false;
}

/* ---- one value ---- */

static bool take_array(tkpy_call *call, const tkpy_spec *spec, const tkpy_param *param,
                       PyObject *given, tk_array *out) {
    int found = tkpy_operand(call->state, given, out);
    return found == 1 || wrong(spec, param, "an array or a number", given);
}

static bool take_int(const tkpy_spec *spec, const tkpy_param *param, PyObject *given,
                     int64_t *out) {
    *out = PyLong_Check(given) ? PyLong_AsLongLong(given) : 0;
    if (PyErr_Occurred()) return false;
    if (PyLong_Check(given)) return true;
    PyObject *index = PyNumber_Index(given);
    if (!index) {
        PyErr_Clear();
        return wrong(spec, param, "an integer", given);
    }
    *out = PyLong_AsLongLong(index);
    Py_DECREF(index);
    return !PyErr_Occurred();
}

static bool take_number(const tkpy_spec *spec, const tkpy_param *param, PyObject *given,
                        double *out) {
    *out = PyFloat_AsDouble(given);
    if (!PyErr_Occurred()) return true;
    PyErr_Clear();
    return wrong(spec, param, "a number", given);
}

bool tkpy_axes_of(PyObject *object, const char *what, tk_axes *out_axes) {
    int64_t items[TK_AXES_MAX];
    if (PyLong_Check(object)) {
        items[0] = PyLong_AsLongLong(object);
        *out_axes = tk_axes_from(1, items);
        return !PyErr_Occurred();
    }
    if (PyUnicode_Check(object) || !PySequence_Check(object)) {
        PyObject *index = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
        if (!index) {
            PyErr_Format(PyExc_TypeError, "%s must be an integer or a sequence of integers, not %R",
                         what, (PyObject *)Py_TYPE(object));
            return false;
        }
        items[0] = PyLong_AsLongLong(index);
        Py_DECREF(index);
        *out_axes = tk_axes_from(1, items);
        return !PyErr_Occurred();
    }
    Py_ssize_t count = PySequence_Size(object);
    if (count < 0) return false;
    if (count > TK_AXES_MAX) {
        PyErr_Format(PyExc_ValueError, "%s has %zd integers, at most %d are possible", what, count,
                     TK_AXES_MAX);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        PyObject *index = item ? PyNumber_Index(item) : NULL;
        Py_XDECREF(item);
        if (!index) return false;
        items[i] = PyLong_AsLongLong(index);
        Py_DECREF(index);
        if (PyErr_Occurred()) return false;
    }
    *out_axes = tk_axes_from(count, items);
    return true;
}

static bool make_list(tkpy_call *call, int64_t count, tkpy_list *out) {
    out->count = 0;
    out->items = PyMem_Malloc(((size_t)count + 1) * sizeof *out->items);
    if (!out->items) return PyErr_NoMemory(), false;
    call->lists[call->n_lists++] = out->items;
    return true;
}

static bool take_list(tkpy_call *call, const tkpy_spec *spec, const tkpy_param *param,
                      PyObject *const *given, Py_ssize_t count, tkpy_list *out) {
    if (!make_list(call, count, out)) return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!take_array(call, spec, param, given[i], &out->items[out->count++])) return false;
    return true;
}

/* An array stands for the sequence of its rows, which the call's scope owns. */
static bool take_rows(tkpy_call *call, PyObject *given, tkpy_list *out) {
    tk_array a = tkpy_handle(given);
    if (tk_array_rank(a) == 0) {
        PyErr_SetString(PyExc_TypeError, "an array without axes has no rows to join");
        return false;
    }
    int64_t count = tk_array_dim(a, 0);
    if (!make_list(call, count, out)) return false;
    tk_shape stop = tk_array_shape(a), start = stop;
    for (int64_t i = 0; i < start.count; i++) start.items[i] = 0;
    for (int64_t i = 0; i < count; i++) {
        start.items[0] = i;
        stop.items[0] = i + 1;
        out->items[out->count++] = tk_squeeze(tk_slice(a, start, stop, TK_ALL_AXES), TK_AXES(0));
    }
    return true;
}

static bool take_sequence(tkpy_call *call, const tkpy_spec *spec, const tkpy_param *param,
                          PyObject *given, tkpy_list *out) {
    if (Py_TYPE(given) == call->state->array) return take_rows(call, given, out);
    if (PyUnicode_Check(given) || !PySequence_Check(given))
        return wrong(spec, param, "a sequence of arrays", given);
    Py_ssize_t count = PySequence_Size(given);
    if (count < 0) return false;
    PyObject **items = PyMem_Calloc((size_t)count + 1, sizeof *items);
    bool ok = items != NULL;
    if (!ok) PyErr_NoMemory();
    for (Py_ssize_t i = 0; ok && i < count; i++)
        ok = (items[i] = PySequence_GetItem(given, i)) != NULL;
    ok = ok && take_list(call, spec, param, items, count, out);
    for (Py_ssize_t i = 0; items && i < count; i++) Py_XDECREF(items[i]);
    PyMem_Free(items);
    return ok;
}

static bool is_numpy_bool(PyObject *object) {
    PyObject *name = PyType_GetName(Py_TYPE(object));
    bool is = name && (PyUnicode_CompareWithASCIIString(name, "bool_") == 0 ||
                       PyUnicode_CompareWithASCIIString(name, "bool") == 0);
    Py_XDECREF(name);
    return is;
}

static bool take_flag(const tkpy_spec *spec, const tkpy_param *param, PyObject *given, bool *out) {
    if (!PyBool_Check(given) && !is_numpy_bool(given)) return wrong(spec, param, "a bool", given);
    *out = PyObject_IsTrue(given) != 0;
    return true;
}

static bool take_dtype(tkpy_call *call, const tkpy_param *param, PyObject *given, int *out) {
    tk_dtype dtype;
    *out = TKPY_NO_DTYPE;
    if (given == Py_None) return true;
    if (!tkpy_dtype_of(call->state, given, param->name, &dtype)) return false;
    *out = (int)dtype;
    return true;
}

static bool take_text(const tkpy_spec *spec, const tkpy_param *param, PyObject *given,
                      const char **out) {
    if (!PyUnicode_Check(given)) return wrong(spec, param, "a string", given);
    *out = PyUnicode_AsUTF8AndSize(given, NULL);
    return *out != NULL;
}

/* What None means, for kinds that take it. */
static bool take_none(const tkpy_param *param, tkpy_value *out) {
    switch (param->kind) {
    case TKPY_MAYBE:
        out->array = TK_NO_ARRAY;
        return true;
    case TKPY_AXES:
        out->axes = TK_ALL_AXES;
        return !param->required;
    case TKPY_SHAPE:
        out->axes = TK_ALL_AXES;
        return !param->required;
    case TKPY_AXIS:
    case TKPY_MAYBE_INT:
        out->integer = TKPY_NONE;
        return true;
    case TKPY_MAYBE_FLOAT:
        out->number = NAN;
        return true;
    default:
        return false;
    }
}

static bool take(tkpy_call *call, const tkpy_spec *spec, const tkpy_param *param, PyObject *given,
                 tkpy_value *out) {
    if (given == Py_None && take_none(param, out)) return true;
    switch (param->kind) {
    case TKPY_ARRAY:
    case TKPY_VALUE:
    case TKPY_MAYBE:
        return take_array(call, spec, param, given, &out->array);
    case TKPY_AXES:
    case TKPY_EXTENTS:
    case TKPY_SHAPE:
        return tkpy_axes_of(given, param->name, &out->axes);
    case TKPY_AXIS:
    case TKPY_INT:
    case TKPY_MAYBE_INT:
        return take_int(spec, param, given, &out->integer);
    case TKPY_FLOAT:
    case TKPY_MAYBE_FLOAT:
        return take_number(spec, param, given, &out->number);
    case TKPY_BOOL:
        return take_flag(spec, param, given, &out->flag);
    case TKPY_DTYPE:
        return take_dtype(call, param, given, &out->dtype);
    case TKPY_ARRAYS:
        return take_sequence(call, spec, param, given, &out->list);
    case TKPY_TEXT:
        return take_text(spec, param, given, &out->text);
    case TKPY_OBJECT:
        out->object = given;
        return true;
    case TKPY_REST:
        break;
    }
    return wrong(spec, param, "a positional argument", given);
}

static void take_fallback(tkpy_call *call, const tkpy_param *param, tkpy_value *out) {
    memset(out, 0, sizeof *out);
    switch (param->kind) {
    case TKPY_VALUE:
    case TKPY_ARRAY:
        out->array = tk_scalar(call->context, param->fallback);
        break;
    case TKPY_INT:
        out->integer = (int64_t)param->fallback;
        break;
    case TKPY_AXIS:
    case TKPY_MAYBE_INT:
        out->integer = param->fallback == TKPY_FALLBACK_NONE ? TKPY_NONE : (int64_t)param->fallback;
        break;
    case TKPY_FLOAT:
    case TKPY_MAYBE_FLOAT:
        out->number = param->fallback == TKPY_FALLBACK_NONE ? NAN : param->fallback;
        break;
    case TKPY_BOOL:
        out->flag = param->fallback != 0;
        break;
    case TKPY_DTYPE:
        out->dtype = param->fallback == TKPY_FALLBACK_NONE ? TKPY_NO_DTYPE : (int)param->fallback;
        break;
    case TKPY_SHAPE:
        out->axes = param->fallback == TKPY_FALLBACK_NONE ? TK_ALL_AXES : TK_SCALAR;
        break;
    case TKPY_AXES:
    case TKPY_EXTENTS:
        out->axes =
            param->fallback == TKPY_FALLBACK_NONE ? TK_ALL_AXES : TK_AXES((int64_t)param->fallback);
        break;
    case TKPY_TEXT:
        out->text = param->text;
        break;
    default:
        break;
    }
}

/* ---- streams ---- */

bool tkpy_stream_of(PyObject *object, tk_stream_id *out_stream) {
    PyObject *number = PyObject_GetAttrString(object, "_stream");
    if (!number) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "stream must be a Stream, Device, DeviceType or None, not %R",
                     (PyObject *)Py_TYPE(object));
        return false;
    }
    *out_stream = (tk_stream_id)PyLong_AsUnsignedLong(number);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

static bool change_stream(tkpy_call *call, PyObject *object) {
    tk_stream_id stream;
    if (object == Py_None) return true;
    if (!tkpy_stream_of(object, &stream)) return false;
    call->stream_before = tk_stream_use(call->context, stream);
    call->stream = stream;
    call->stream_changed = true;
    return true;
}

/* ---- all values ---- */

static void finish(tkpy_call *call) {
    if (call->stream_changed) tk_stream_use(call->context, call->stream_before);
    tk_scope_close(call->scope);
    for (int i = 0; i < call->n_lists; i++) PyMem_Free(call->lists[i]);
    if (call->out.items) tk_arrays_clear(&call->out);
}

static int find_param(const tkpy_spec *spec, PyObject *name) {
    for (int i = spec->n_positional_only; i < spec->n_params; i++)
        if (PyUnicode_CompareWithASCIIString(name, spec->params[i].name) == 0) return i;
    return -1;
}

static bool take_names(tkpy_call *call, const tkpy_spec *spec, PyObject *const *args,
                       PyObject *names, tkpy_value *values, uint32_t *given) {
    Py_ssize_t count = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        if (PyUnicode_CompareWithASCIIString(name, "stream") == 0) {
            if (!change_stream(call, args[i])) return false;
            continue;
        }
        int at = find_param(spec, name);
        if (at < 0) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                         spec->name, name);
            return false;
        }
        if (*given & (1u << at)) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", spec->name,
                         name);
            return false;
        }
        if (!take(call, spec, &spec->params[at], args[i], &values[at])) return false;
        *given |= 1u << at;
    }
    return true;
}

static bool take_positional(tkpy_call *call, const tkpy_spec *spec, int first,
                            PyObject *const *args, Py_ssize_t n_args, tkpy_value *values,
                            uint32_t *given) {
    for (Py_ssize_t i = 0; i < n_args; i++) {
        int at = first + (int)i;
        if (at < spec->n_positional && spec->params[at].kind == TKPY_REST) {
            *given |= 1u << at;
            return take_list(call, spec, &spec->params[at], args + i, n_args - i, &values[at].list);
        }
        bool may_be_stream = at == spec->n_params && !spec->stream_by_name;
        if (may_be_stream && i + 1 == n_args) return change_stream(call, args[i]);
        if (at >= spec->n_positional) {
            PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments, %zd given",
                         spec->name, spec->n_positional - first, n_args);
            return false;
        }
        if (!take(call, spec, &spec->params[at], args[i], &values[at])) return false;
        *given |= 1u << at;
    }
    return true;
}

static bool take_missing(tkpy_call *call, const tkpy_spec *spec, uint32_t given,
                         tkpy_value *values) {
    for (int i = 0; i < spec->n_params; i++) {
        if (given & (1u << i)) continue;
        if (spec->params[i].required) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", spec->name,
                         spec->params[i].name);
            return false;
        }
        take_fallback(call, &spec->params[i], &values[i]);
    }
    return true;
}

/* An op runs where its arrays are; a stream of another device, named in the call, is refused. */
static bool check_device(const tkpy_call *call, PyObject *object) {
    if (!object || !tkpy_is_array(object)) return true;
    tk_array array = tkpy_handle(object);
    const tk_device *there = tk_array_device(array);
    const tk_device *named = tk_stream_device_of(call->context, call->stream);
    if (there == named) return true;
    PyErr_Format(PyExc_ValueError, "an array on %s, and stream= names %s: move it with to_device",
                 tk_device_name(there), tk_device_name(named));
    return false;
}

static bool check_devices(const tkpy_call *call, PyObject *self, PyObject *const *args,
                          Py_ssize_t n_args, PyObject *names) {
    Py_ssize_t count = n_args + (names ? PyTuple_Size(names) : 0);
    bool ok = !call->stream_changed || check_device(call, self);
    for (Py_ssize_t i = 0; ok && call->stream_changed && i < count; i++)
        ok = check_device(call, args[i]);
    return ok;
}

bool tkpy_open(tkpy_call *call, tkpy_state *state, const tkpy_spec *spec, PyObject *self,
               PyObject *const *args, Py_ssize_t n_args, PyObject *names, tkpy_value *values) {
    call->state = state;
    call->context = tkpy_context();
    call->stream_changed = false;
    call->n_lists = 0;
    call->out = (tk_arrays){0};
    if (!call->context) return false;
    call->scope = tk_scope_open(call->context);
    uint32_t given = 0;
    if (self) {
        values[0].array = tkpy_handle(self);
        given = 1;
    }
    if (take_positional(call, spec, self != NULL, args, n_args, values, &given) &&
        take_names(call, spec, args + n_args, names, values, &given) &&
        take_missing(call, spec, given, values) && check_devices(call, self, args, n_args, names))
        return true;
    finish(call);
    return false;
}

PyObject *tkpy_close(tkpy_call *call, tk_array result) {
    PyObject *box = PyErr_Occurred() ? NULL : tkpy_box(call->state, result);
    finish(call);
    return box;
}

static PyObject *close_one_or(tkpy_call *call, tk_status status, bool as_tuple) {
    bool is_one = status == TK_OK && call->out.count == 1;
    return is_one ? tkpy_close(call, call->out.items[0]) : tkpy_close_list(call, status, as_tuple);
}

PyObject *tkpy_close_few(tkpy_call *call, tk_status status) {
    return close_one_or(call, status, false);
}

PyObject *tkpy_close_some(tkpy_call *call, tk_status status) {
    return close_one_or(call, status, true);
}

PyObject *tkpy_close_list(tkpy_call *call, tk_status status, bool as_tuple) {
    PyObject *list = NULL;
    if (status != TK_OK)
        tkpy_raise(call->state, status);
    else if (!PyErr_Occurred())
        list = tkpy_box_list(call->state, &call->out, as_tuple);
    finish(call);
    return list;
}
