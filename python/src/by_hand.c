/* Functions of the surface whose arguments have several meanings; the rest is in surface.def. */
#include <math.h>
#include <string.h>

#include "args.h"

static tk_array raise_value(const char *message) {
    PyErr_SetString(PyExc_ValueError, message);
    return TK_NO_ARRAY;
}

/* Results that stand in the way of a status: the exception is set already. */
static tk_status refused(tkpy_call *call) {
    tkpy_raise(call->state, TK_INVALID_ARGUMENT);
    return TK_INVALID_ARGUMENT;
}

static tk_status push(tkpy_call *call, tk_array array) {
    tk_status status = tk_array_status(array);
    return status == TK_OK ? tk_arrays_push(&call->out, array) : status;
}

tk_status tkpy_two(tkpy_call *call, tk_array first, tk_array second) {
    tk_status status = push(call, first);
    return status == TK_OK ? push(call, second) : status;
}

/* ---- creation ---- */

static bool is_absent(PyObject *object) { return !object || object == Py_None; }

static bool is_wide(double value) { return value < INT32_MIN || value > INT32_MAX; }

/* arange(stop), arange(start, stop), arange(start, stop, step); int32 when all are integers, int64
 * when one does not fit that. */
tk_array tkpy_arange(tkpy_call *call, PyObject *start, PyObject *stop, PyObject *step, int dtype) {
    double from = 0, to, by = 1;
    if (is_absent(stop)) {
        stop = start;
        start = NULL;
    }
    bool integers = PyIndex_Check(stop) && (is_absent(start) || PyIndex_Check(start)) &&
                    (is_absent(step) || PyIndex_Check(step));
    to = PyFloat_AsDouble(stop);
    if (!is_absent(start) && !PyErr_Occurred()) from = PyFloat_AsDouble(start);
    if (!is_absent(step) && !PyErr_Occurred()) by = PyFloat_AsDouble(step);
    if (PyErr_Occurred()) return TK_NO_ARRAY;
    tk_dtype whole = is_wide(from) || is_wide(to) || is_wide(by) ? TK_INT64 : TK_INT32;
    return tk_arange(call->context, from, to, by, tkpy_or(dtype, integers ? whole : TK_FLOAT32));
}

tk_array tkpy_full(tk_shape shape, tk_array value, int dtype) {
    return tk_full(value, shape, tkpy_or(dtype, tk_array_dtype(value)));
}

/* ---- joining and cutting ---- */

tk_array tkpy_concatenate(tkpy_call *call, tkpy_list arrays, int64_t axis) {
    if (arrays.count == 0) return raise_value("concatenate: no arrays were given");
    (void)call;
    if (axis == TKPY_NONE)
        for (size_t i = 0; i < arrays.count; i++)
            arrays.items[i] = tk_flatten(arrays.items[i], 0, -1);
    return tk_concatenate(arrays.items, arrays.count, tkpy_axis(axis));
}

tk_status tkpy_split(tkpy_call *call, tk_array a, PyObject *where, int64_t axis) {
    tk_axes cuts;
    if (PyIndex_Check(where)) {
        PyObject *number = PyNumber_Index(where);
        int64_t sections = number ? PyLong_AsLongLong(number) : 0;
        Py_XDECREF(number);
        if (PyErr_Occurred()) return refused(call);
        return tk_split_equal(a, sections, axis, &call->out);
    }
    if (!tkpy_axes_of(where, "indices_or_sections", &cuts)) return refused(call);
    return tk_split(a, cuts, axis, &call->out);
}

tk_status tkpy_unstack(tkpy_call *call, tk_array a, int64_t axis) {
    tk_arrays parts = {0};
    tk_status status = tk_array_status(a);
    int64_t rank = tk_array_rank(a), length = tk_array_dim(a, (int)axis);
    bool is_axis = axis >= -rank && axis < rank; /* where it is none the split says so */
    if (status == TK_OK && (length > 0 || !is_axis))
        status = tk_split_equal(a, is_axis ? length : 1, axis, &parts);
    for (size_t i = 0; status == TK_OK && i < parts.count; i++)
        status = push(call, tk_squeeze(parts.items[i], TK_AXES(axis)));
    tk_arrays_clear(&parts);
    return status;
}

/* Axes of length 1 in NumPy's places: in front, and for three axes one of them behind. */
tk_status tkpy_atleast(tkpy_call *call, tkpy_list arrays, int rank) {
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < arrays.count; i++) {
        tk_array a = arrays.items[i];
        int had = tk_array_rank(a);
        if (had == 0) a = tk_reshape(a, TK_SHAPE(1));
        if (rank >= 2 && had <= 1) a = tk_expand_dims(a, TK_AXES(0));
        if (rank == 3 && had <= 2) a = tk_expand_dims(a, TK_AXES(2));
        status = push(call, a);
    }
    return status;
}

tk_status tkpy_broadcast_arrays(tkpy_call *call, tkpy_list arrays) {
    tk_shape shape = TK_SCALAR;
    tk_status status = TK_OK;
    for (size_t i = 0; i < arrays.count; i++) {
        tk_shape other = tk_array_shape(arrays.items[i]);
        while (shape.count < other.count) {
            memmove(shape.items + 1, shape.items, (size_t)shape.count * sizeof *shape.items);
            shape.items[0] = 1;
            shape.count++;
        }
        int64_t lead = shape.count - other.count;
        for (int64_t k = 0; k < other.count; k++)
            if (shape.items[lead + k] == 1) shape.items[lead + k] = other.items[k];
    }
    for (size_t i = 0; status == TK_OK && i < arrays.count; i++)
        status = push(call, tk_broadcast_to(arrays.items[i], shape));
    return status;
}

tk_status tkpy_meshgrid(tkpy_call *call, tkpy_list arrays, bool sparse, const char *indexing) {
    bool swapped = !strcmp(indexing, "xy");
    if (!swapped && strcmp(indexing, "ij") != 0) {
        raise_value("meshgrid: indexing must be 'xy' or 'ij'");
        return refused(call);
    }
    if (arrays.count > TK_AXES_MAX) {
        raise_value("meshgrid: more arrays than an array can have axes");
        return refused(call);
    }
    tk_shape all = {.count = (int64_t)arrays.count};
    for (size_t i = 0; i < arrays.count; i++) {
        size_t place = swapped && arrays.count > 1 && i < 2 ? 1 - i : i;
        all.items[place] = tk_array_size(arrays.items[i]);
    }
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < arrays.count; i++) {
        size_t place = swapped && arrays.count > 1 && i < 2 ? 1 - i : i;
        tk_shape own = all;
        for (int64_t k = 0; k < own.count; k++)
            if ((size_t)k != place) own.items[k] = 1;
        tk_array grid = tk_reshape(arrays.items[i], own);
        status = push(call, sparse ? grid : tk_broadcast_to(grid, all));
    }
    return status;
}

/* ---- padding ---- */

/* Two integers of each axis from n, (n,), (low, high) or one pair an axis. */
static bool read_widths(PyObject *width, int rank, tk_axes *low, tk_axes *high) {
    tk_axes plain;
    low->count = high->count = rank;
    PyObject *first =
        PySequence_Check(width) && PySequence_Size(width) > 0 ? PySequence_GetItem(width, 0) : NULL;
    bool nested = first && PySequence_Check(first);
    Py_XDECREF(first);
    PyErr_Clear();
    if (!nested && !tkpy_axes_of(width, "pad_width", &plain)) return false;
    if (!nested && (plain.count < 1 || plain.count > 2)) {
        raise_value("pad: pad_width must be an integer, one pair or one pair an axis");
        return false;
    }
    Py_ssize_t given = nested ? PySequence_Size(width) : 1;
    if (nested && given != 1 && given != rank) {
        PyErr_Format(PyExc_ValueError, "pad: %zd pairs were given for %d axes", given, rank);
        return false;
    }
    for (int i = 0; i < rank; i++) {
        if (nested) {
            PyObject *pair = PySequence_GetItem(width, given == 1 ? 0 : i);
            bool ok = pair && tkpy_axes_of(pair, "pad_width", &plain);
            Py_XDECREF(pair);
            if (!ok) return false;
        }
        low->items[i] = plain.items[0];
        high->items[i] = plain.items[plain.count == 2 ? 1 : 0];
    }
    return true;
}

/* The positions of the padded axis in the old one, by mode. */
static tk_array source_positions(tkpy_call *call, const char *mode, int64_t length, int64_t low,
                                 int64_t high) {
    int64_t total = low + length + high, period = 2 * length - (mode[0] == 'r' ? 2 : 0);
    int64_t *at = PyMem_Malloc(((size_t)total + 1) * sizeof *at);
    if (!at) return PyErr_NoMemory(), TK_NO_ARRAY;
    for (int64_t i = 0; i < total; i++) {
        int64_t k = i - low;
        if (mode[0] == 'e') {
            k = k < 0 ? 0 : k >= length ? length - 1 : k;
        } else if (period > 0) {
            k = (k % period + period) % period;
            if (k >= length) k = period - k - (mode[0] == 'r' ? 0 : 1);
        } else {
            k = 0;
        }
        at[i] = k;
    }
    tk_array positions = tk_from_data(call->context, at, TK_SHAPE(total), TK_INT64);
    PyMem_Free(at);
    return positions;
}

tk_array tkpy_pad(tkpy_call *call, tk_array a, PyObject *width, const char *mode, tk_array value) {
    tk_axes low, high;
    if (!read_widths(width, tk_array_rank(a), &low, &high)) return TK_NO_ARRAY;
    if (!strcmp(mode, "constant")) return tk_pad(a, low, high, value);
    if (strcmp(mode, "edge") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "symmetric") != 0)
        return raise_value("pad: mode must be 'constant', 'edge', 'reflect' or 'symmetric'");
    for (int axis = 0; axis < low.count; axis++) {
        if (low.items[axis] < 0 || high.items[axis] < 0)
            return raise_value("pad: widths must not be negative");
        if (low.items[axis] + high.items[axis] == 0) continue;
        if (tk_array_dim(a, axis) == 0)
            return raise_value("pad: an empty axis has no values to repeat");
        tk_array at =
            source_positions(call, mode, tk_array_dim(a, axis), low.items[axis], high.items[axis]);
        if (!at.node) return at;
        a = tk_take(a, at, axis);
    }
    return a;
}

/* One shift for all axes, or all shifts along one axis. */
tk_array tkpy_roll(tk_array a, tk_axes shift, tk_axes axes) {
    if (axes.count < 0) {
        int64_t sum = 0;
        for (int64_t i = 0; i < shift.count; i++) sum += shift.items[i];
        return tk_roll(a, TK_AXES(sum), TK_ALL_AXES);
    }
    while (shift.count == 1 && shift.count < axes.count) {
        for (int64_t i = 1; i < axes.count; i++) shift.items[i] = shift.items[0];
        shift.count = axes.count;
    }
    return tk_roll(a, shift, axes);
}

/* ---- products and indices ---- */

/* axes is a number (2 by default) or a pair of lists. */
tk_array tkpy_tensordot(tkpy_call *call, tk_array a, tk_array b, PyObject *axes) {
    tk_axes of_a = {.count = 0}, of_b = {.count = 0};
    (void)call;
    if (is_absent(axes) || PyLong_Check(axes)) {
        int64_t count = is_absent(axes) ? 2 : PyLong_AsLongLong(axes);
        if (PyErr_Occurred()) return TK_NO_ARRAY;
        if (count < 0 || count > tk_array_rank(a) || count > tk_array_rank(b))
            return raise_value("tensordot: an operand does not have that many axes");
        for (int64_t i = 0; i < count; i++) {
            of_a.items[i] = tk_array_rank(a) - count + i;
            of_b.items[i] = i;
        }
        of_a.count = of_b.count = count;
        return tk_tensordot(a, b, of_a, of_b);
    }
    if (!PySequence_Check(axes) || PySequence_Size(axes) != 2)
        return raise_value("tensordot: axes must be an integer or a pair of lists");
    PyObject *first = PySequence_GetItem(axes, 0), *second = PySequence_GetItem(axes, 1);
    bool ok = first && second && tkpy_axes_of(first, "axes", &of_a) &&
              tkpy_axes_of(second, "axes", &of_b);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return ok ? tk_tensordot(a, b, of_a, of_b) : TK_NO_ARRAY;
}

tk_array tkpy_put_along_axis(tk_array a, tk_array indices, tk_array values, int64_t axis) {
    if (axis != TKPY_NONE) return tk_put_along_axis(a, indices, values, axis);
    tk_array put = tk_broadcast_to(values, tk_array_shape(indices));
    return tk_reshape(tk_put_along_axis(tk_flatten(a, 0, -1), indices, put, 0), tk_array_shape(a));
}

/* ---- attention ---- */

tk_array tkpy_attention(tkpy_call *call, tk_array q, tk_array k, tk_array v, double scale,
                        PyObject *mask, tk_array sinks) {
    tk_array masked = TK_NO_ARRAY;
    bool causal = false;
    if (mask && PyUnicode_Check(mask)) {
        causal = PyUnicode_CompareWithASCIIString(mask, "causal") == 0;
        if (!causal)
            return raise_value("scaled_dot_product_attention: mask must be 'causal' or an array");
    } else if (!is_absent(mask) && tkpy_operand(call->state, mask, &masked) != 1) {
        if (!PyErr_Occurred())
            raise_value("scaled_dot_product_attention: mask must be 'causal' or an array");
        return TK_NO_ARRAY;
    }
    if (sinks.node) return tk_attention_with_sinks(q, k, v, sinks, scale, masked, causal);
    return tk_scaled_dot_product_attention(q, k, v, scale, masked, causal);
}
