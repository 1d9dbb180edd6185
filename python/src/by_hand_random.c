/* Random numbers: the implicit key, and bounds that are numbers or arrays.
 *
 * The implicit key is a Python list of one array, tiki.random.state, not the C library's key of the
 * thread: compiled functions take it as an input and give it back. */
#include <math.h>

#include "args.h"

/* Row `index` of the two keys that a split gives. */
static tk_array row_of(tk_array keys, int64_t index) {
    return tk_reshape(tk_slice(keys, TK_AXES(index, 0), TK_AXES(index + 1, 2), TK_ALL_AXES),
                      TK_SHAPE(2));
}

tk_array tkpy_key(tkpy_call *call, PyObject *seed) {
    PyObject *number = PyNumber_Index(seed);
    unsigned long long bits = number ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    return PyErr_Occurred() ? TK_NO_ARRAY : tk_random_key(call->context, (int64_t)bits);
}

/* Drawn where the implicit key lies, wherever that is, and used where the current stream is. */
static tk_array to_current(tkpy_call *call, tk_array key) {
    tk_stream_id current = tk_stream_use(call->context, TK_DEFAULT_STREAM);
    (void)tk_stream_use(call->context, current);
    bool there = tk_array_device(key) == tk_stream_device_of(call->context, current);
    return there ? key : tk_to_stream(key, current);
}

tk_array tkpy_key_beside(tkpy_call *call, tk_array key, tk_array array) {
    if (key.node || !array.node) return tkpy_next_key(call, key);
    const tk_device *cpu = tk_stream_device_of(call->context, TK_DEFAULT_STREAM);
    bool anywhere = tk_array_rank(array) == 0 && tk_array_device(array) == cpu;
    tk_stream_id before = anywhere ? TK_DEFAULT_STREAM : tkpy_beside(array);
    key = tkpy_next_key(call, key);
    if (!anywhere) (void)tk_stream_use(call->context, before);
    return key;
}

tk_array tkpy_next_key(tkpy_call *call, tk_array key) {
    if (key.node) return key;
    tkpy_state *state = call->state;
    PyObject *current = PyList_GetItem(state->random_state, 0);
    if (!current) {
        PyErr_Clear();
        PyObject *first = tkpy_box(state, tk_random_key(call->context, 0));
        if (!first || PyList_Append(state->random_state, first) < 0) return TK_NO_ARRAY;
        Py_DECREF(first);
        current = first;
    }
    if (!tkpy_is_array(current)) {
        PyErr_SetString(PyExc_TypeError, "random.state must hold one array, the key");
        return TK_NO_ARRAY;
    }
    tk_array keys = tk_random_split(tkpy_handle(current), 2);
    PyObject *next = tkpy_box(state, row_of(keys, 0));
    if (!next || PyList_SetItem(state->random_state, 0, next) < 0) return TK_NO_ARRAY;
    return to_current(call, row_of(keys, 1));
}

tk_array tkpy_spread(tk_array sample, tk_array loc, tk_array scale) {
    tk_dtype dtype = tk_array_dtype(sample);
    if (scale.node) sample = tk_multiply(sample, tk_astype(scale, dtype));
    if (loc.node) sample = tk_add(sample, tk_astype(loc, dtype));
    return sample;
}

/* 1: a number, 0: an array, -1: an exception. */
static int read_bound(tkpy_call *call, PyObject *object, double fallback, double *number,
                      tk_array *array) {
    *number = fallback;
    *array = TK_NO_ARRAY;
    if (!object || object == Py_None) return 1;
    if (PyFloat_Check(object) || PyLong_Check(object)) {
        *number = PyFloat_AsDouble(object);
        return PyErr_Occurred() ? -1 : 1;
    }
    int found = tkpy_operand(call->state, object, array);
    if (found == 1) return 0;
    if (found == 0)
        PyErr_Format(PyExc_TypeError, "a bound must be a number or an array, not %R",
                     (PyObject *)Py_TYPE(object));
    return -1;
}

tk_array tkpy_uniform(tkpy_call *call, PyObject *low, PyObject *high, tk_shape shape,
                      tk_dtype dtype, tk_array key) {
    double from, to;
    tk_array low_array, high_array;
    int low_kind = read_bound(call, low, 0, &from, &low_array);
    int high_kind = low_kind < 0 ? -1 : read_bound(call, high, 1, &to, &high_array);
    if (high_kind < 0) return TK_NO_ARRAY;
    key = tkpy_key_beside(call, key, low_array.node ? low_array : high_array);
    if (low_kind && high_kind) return tk_random_uniform(call->context, from, to, shape, dtype, key);
    tk_array a = tk_astype(low_kind ? tk_scalar(call->context, from) : low_array, dtype);
    tk_array b = tk_astype(high_kind ? tk_scalar(call->context, to) : high_array, dtype);
    tk_array unit = tk_random_uniform(call->context, 0, 1, shape, dtype, key);
    return tk_add(tk_multiply(tk_subtract(b, a), unit), a);
}

/* A number that is a bound of whole numbers, without its fraction. */
static bool whole_bound(PyObject *object, int64_t *number) {
    double value = PyLong_Check(object) ? 0 : PyFloat_AsDouble(object);
    *number = PyLong_Check(object) ? PyLong_AsLongLong(object) : 0;
    if (PyErr_Occurred()) return false;
    if (!(fabs(value) < 0x1p63))
        return PyErr_Format(PyExc_ValueError, "randint: a bound is %R, expected a finite number",
                            object),
               false;
    if (!PyLong_Check(object)) *number = (int64_t)value;
    return true;
}

static bool is_number(PyObject *object) { return PyFloat_Check(object) || PyLong_Check(object); }

/* A bound as whole numbers of the dtype, in int64. */
static tk_array whole(tkpy_call *call, PyObject *object, tk_dtype dtype) {
    int64_t number;
    double unused;
    tk_array array;
    if (!is_number(object) && read_bound(call, object, 0, &unused, &array) < 0) return TK_NO_ARRAY;
    if (is_number(object) && !whole_bound(object, &number)) return TK_NO_ARRAY;
    if (is_number(object)) array = tk_scalar_int(call->context, number);
    return tk_astype(tk_astype(array, dtype), TK_INT64);
}

/* The floor of uniform numbers, within the bounds without their fractions. Between arrays it is the
 * lower bound where nothing lies between. */
tk_array tkpy_randint(tkpy_call *call, PyObject *low, PyObject *high, tk_shape shape,
                      tk_dtype dtype, tk_array key) {
    if (low == Py_None || high == Py_None) {
        PyErr_SetString(PyExc_TypeError, "randint: low and high must be numbers or arrays");
        return TK_NO_ARRAY;
    }
    if (is_number(low) && is_number(high)) {
        int64_t from, to;
        if (!whole_bound(low, &from) || !whole_bound(high, &to)) return TK_NO_ARRAY;
        if (from >= to || (PyLong_Check(low) && PyLong_Check(high)))
            return tk_random_randint(call->context, from, to, shape, dtype,
                                     tkpy_next_key(call, key));
    }
    tk_array drawn = tkpy_uniform(call, low, high, shape, TK_FLOAT32, key);
    tk_array least = drawn.node ? whole(call, low, dtype) : TK_NO_ARRAY;
    tk_array end = least.node ? whole(call, high, dtype) : TK_NO_ARRAY;
    if (!end.node) return TK_NO_ARRAY;
    tk_array most = tk_subtract(end, tk_scalar_int(call->context, 1));
    tk_array number = tk_astype(tk_floor(drawn), TK_INT64);
    return tk_astype(tk_maximum(tk_minimum(number, most), least), dtype);
}

/* `shape` draws that many: the sampled axis is inserted into it for the noise, and argmax drops it.
 */
tk_array tkpy_categorical(tkpy_call *call, tk_array logits, int64_t axis, tk_shape shape,
                          int64_t num_samples, tk_array key) {
    if (shape.count >= 0 && num_samples != TKPY_NONE) {
        PyErr_SetString(PyExc_ValueError, "categorical: give shape or num_samples, not both");
        return TK_NO_ARRAY;
    }
    key = tkpy_key_beside(call, key, logits);
    if (shape.count < 0)
        return tk_random_categorical(logits, axis, num_samples == TKPY_NONE ? -1 : num_samples,
                                     key);
    int64_t rank = tk_array_rank(logits), from_end = axis < 0 ? axis : axis - rank;
    if (from_end < -rank || from_end >= 0 || shape.count + 1 > TK_AXES_MAX) {
        PyErr_SetString(PyExc_ValueError, "categorical: axis or shape do not fit the logits");
        return TK_NO_ARRAY;
    }
    int64_t at = shape.count + 1 + from_end;
    int64_t classes = tk_array_dim(logits, (int)axis), count = 1;
    for (int64_t i = 0; i < shape.count; i++) count *= shape.items[i];
    if (classes > 0 && tk_array_size(logits) == classes && shape.count > 0) {
        tk_array row = tk_reshape(logits, TK_SHAPE(classes));
        return tk_reshape(tk_random_categorical(row, -1, count, key), shape);
    }
    tk_shape noise = {.count = shape.count + 1};
    for (int64_t i = 0; i < noise.count; i++)
        noise.items[i] = i < at ? shape.items[i] : i == at ? classes : shape.items[i - 1];
    tk_array gumbel = tk_random_gumbel(call->context, noise, TK_FLOAT32, key);
    return tk_argmax(tk_add(logits, gumbel), TK_AXES(from_end), false);
}

tk_array tkpy_permutation(tkpy_call *call, PyObject *x, int64_t axis, tk_array key) {
    tk_array a;
    if (PyLong_Check(x)) {
        long long count = PyLong_AsLongLong(x);
        if (!PyErr_Occurred() && count < 0)
            PyErr_Format(PyExc_ValueError, "permutation: x is %lld, expected 0 or more", count);
        if (PyErr_Occurred()) return TK_NO_ARRAY;
        a = tk_arange(call->context, 0, (double)count, 1, TK_UINT32);
    } else if (tkpy_operand(call->state, x, &a) != 1) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "permutation: x must be an integer or an array");
        return TK_NO_ARRAY;
    }
    return tk_random_permutation(a, axis, tkpy_key_beside(call, key, a));
}
