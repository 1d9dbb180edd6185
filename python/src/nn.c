/* Bodies of nn.def that are more than one call: what MLX asks of the arguments of losses, and
 * dropout of whole channels. */
#include "nn.h"

#include <string.h>

int tkpy_reduction(const char *name) {
    static const char *const names[] = {
        [TK_REDUCE_NONE] = "none", [TK_REDUCE_MEAN] = "mean", [TK_REDUCE_SUM] = "sum"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], name)) return i;
    PyErr_Format(PyExc_ValueError, "reduction is '%s', expected 'none', 'mean' or 'sum'", name);
    return -1;
}

static PyObject *shape_tuple(tk_shape shape) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)shape.count);
    for (int64_t i = 0; tuple && i < shape.count; i++)
        PyTuple_SetItem(tuple, (Py_ssize_t)i, PyLong_FromLongLong(shape.items[i]));
    return tuple;
}

static bool is_shape(const char *first_name, tk_shape first, const char *second_name,
                     tk_shape second) {
    bool same = first.count == second.count;
    for (int64_t i = 0; same && i < first.count; i++) same = first.items[i] == second.items[i];
    if (same) return true;
    PyObject *given = shape_tuple(second), *expected = shape_tuple(first);
    if (given && expected)
        PyErr_Format(PyExc_ValueError, "%s has the shape %R, expected that of %s, %R", second_name,
                     given, first_name, expected);
    Py_XDECREF(given);
    Py_XDECREF(expected);
    return false;
}

bool tkpy_same_shape(const char *first_name, tk_array first, const char *second_name,
                     tk_array second) {
    return is_shape(first_name, tk_array_shape(first), second_name, tk_array_shape(second));
}

/* Zeros as many elements as there are channels when `shared` axes before the last have one draw. */
tk_array tkpy_dropout(tkpy_call *call, tk_array x, double p, int64_t shared) {
    tk_array key = tkpy_key_beside(call, TK_NO_ARRAY, x);
    if (!key.node || shared == 0) return key.node ? tk_nn_dropout(x, p, key) : key;
    tk_shape shape = tk_array_shape(x);
    for (int64_t i = 0; i < shared && i + 1 < shape.count; i++)
        shape.items[shape.count - 2 - i] = 1;
    tk_stream_id before = tkpy_beside(x);
    tk_array ones = tk_ones(call->context, shape, tk_array_dtype(x));
    (void)tk_stream_use(call->context, before);
    return tk_multiply(tk_nn_dropout(ones, p, key), x);
}

/* The shape of logits without an axis; false with an exception when there is no such axis. */
static bool drop_axis(tk_shape shape, int64_t axis, tk_shape *out_shape) {
    int64_t at = axis < 0 ? axis + shape.count : axis;
    if (at < 0 || at >= shape.count) {
        PyErr_Format(PyExc_ValueError, "axis is %lld, logits have %lld axes", (long long)axis,
                     (long long)shape.count);
        return false;
    }
    *out_shape = (tk_shape){.count = shape.count - 1};
    for (int64_t i = 0; i < out_shape->count; i++)
        out_shape->items[i] = shape.items[i < at ? i : i + 1];
    return true;
}

tk_array tkpy_cross_entropy(tk_array logits, tk_array targets, tk_array weights, int64_t axis,
                            double label_smoothing, const char *reduction) {
    tk_shape whole = tk_array_shape(logits), one;
    int how = tkpy_reduction(reduction);
    if (how < 0 || !drop_axis(whole, axis, &one)) return TK_NO_ARRAY;
    if (!(label_smoothing >= 0 && label_smoothing < 1)) {
        PyErr_SetString(PyExc_ValueError, "label_smoothing must be in [0, 1)");
        return TK_NO_ARRAY;
    }
    bool classes = tk_array_rank(targets) != tk_array_rank(logits);
    if (!is_shape(classes ? "logits without the axis of classes" : "logits", classes ? one : whole,
                  "targets", tk_array_shape(targets)) ||
        (weights.node && !is_shape("the loss", one, "weights", tk_array_shape(weights))))
        return TK_NO_ARRAY;
    tk_array loss =
        tk_loss_cross_entropy(logits, targets, weights, axis, label_smoothing, (tk_reduction)how);
    tk_dtype dtype = tk_array_dtype(logits);
    return classes && tk_dtype_is_float(dtype) ? tk_astype(loss, dtype) : loss;
}
