/* Convolutions, Fourier transforms, linear algebra: what MLX's signatures say in more forms than
 * the C functions do. */
#include <math.h>
#include <string.h>

#include "args.h"

/* A pair of sequences gives both sides; anything else is one for both. */
tk_array tkpy_conv_general(tkpy_call *call, tk_array input, tk_array weight, tk_axes stride,
                           PyObject *padding, tk_axes kernel_dilation, tk_axes input_dilation,
                           int64_t groups, bool flip) {
    tk_axes low = TK_ALL_AXES, high;
    (void)call;
    PyObject *sides[2] = {NULL, NULL};
    if (padding && PySequence_Check(padding) && PySequence_Size(padding) == 2) {
        for (int i = 0; i < 2; i++) sides[i] = PySequence_GetItem(padding, i);
    }
    PyErr_Clear();
    bool is_pair = sides[0] && sides[1] && PySequence_Check(sides[0]) && PySequence_Check(sides[1]);
    bool ok = true;
    if (is_pair)
        ok = tkpy_axes_of(sides[0], "padding", &low) && tkpy_axes_of(sides[1], "padding", &high);
    else if (padding)
        ok = tkpy_axes_of(padding, "padding", &low);
    if (!is_pair) high = low;
    Py_XDECREF(sides[0]);
    Py_XDECREF(sides[1]);
    if (!ok) return TK_NO_ARRAY;
    return tk_conv_general(input, weight, stride, low, high, kernel_dilation, input_dilation,
                           groups, flip);
}

/* ---- Fourier transforms ---- */

tk_axes tkpy_last_two(tkpy_call *call, PyObject *axes) {
    tk_axes given = TK_AXES(-2, -1);
    (void)call;
    if (axes == Py_None) return TK_ALL_AXES;
    if (axes && !tkpy_axes_of(axes, "axes", &given)) return TK_ALL_AXES;
    return given;
}

/* Ones of a length where there is no window but a length; without either no window at all. */
tk_array tkpy_stft_window(tkpy_call *call, tk_array window, int64_t length) {
    if (window.node || length == TKPY_NONE) return window;
    return tk_ones(call->context, TK_SHAPE(length), TK_FLOAT32);
}

bool tkpy_one_side(bool fallback, PyObject *onesided) {
    return onesided && onesided != Py_None ? PyObject_IsTrue(onesided) != 0 : fallback;
}

/* ---- linear algebra ---- */

bool tkpy_is_upper(const char *triangle) {
    bool is_upper = !strcmp(triangle, "U");
    if (!is_upper && strcmp(triangle, "L") != 0)
        PyErr_Format(PyExc_ValueError, "UPLO is '%s', expected 'L' or 'U'", triangle);
    return is_upper;
}

/* tk_norm takes NaN for no order; as an order it makes NaN of vectors, and matrices have none. */
static tk_array norm_of_nan(tk_array a, tk_axes axes, bool keepdims) {
    int64_t count = axes.count < 0 ? tk_array_rank(a) : axes.count;
    tk_array nan = tk_scalar(tk_array_context(a), NAN);
    if (count == 1) return tk_multiply(tk_norm(a, NAN, axes, keepdims), nan);
    PyErr_Format(PyExc_ValueError, "norm: ord is nan for %lld axes, expected one axis",
                 (long long)count);
    return TK_NO_ARRAY;
}

/* Vectors by default where there is one axis, matrices where there are two. */
tk_array tkpy_norm(tk_array a, PyObject *ord, tk_axes axes, bool keepdims) {
    double number = NAN;
    if (ord && PyUnicode_Check(ord)) {
        int64_t count = axes.count < 0 ? tk_array_rank(a) : axes.count;
        bool nuclear = PyUnicode_CompareWithASCIIString(ord, "nuc") == 0;
        if (count == 2 && nuclear) return tk_norm_nuclear(a, axes, keepdims);
        if (count == 2 && (PyUnicode_CompareWithASCIIString(ord, "fro") == 0 ||
                           PyUnicode_CompareWithASCIIString(ord, "f") == 0))
            return tk_norm(a, NAN, axes, keepdims);
        PyErr_Format(PyExc_ValueError,
                     "norm: ord is '%U' for %lld axes, expected 'fro' or 'nuc' for two", ord,
                     (long long)count);
        return TK_NO_ARRAY;
    }
    if (ord && ord != Py_None) number = PyFloat_AsDouble(ord);
    if (PyErr_Occurred()) return TK_NO_ARRAY;
    return ord && ord != Py_None && isnan(number) ? norm_of_nan(a, axes, keepdims)
                                                  : tk_norm(a, number, axes, keepdims);
}
