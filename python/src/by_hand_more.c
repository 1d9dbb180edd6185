/* More functions that compose from ops: boxes at indices which are arrays, strides, windows. */
#include <math.h>
#include <string.h>

#include "args.h"

bool tkpy_is_right(const char *side) {
    bool is_right = !strcmp(side, "right");
    if (!is_right && strcmp(side, "left") != 0)
        PyErr_Format(PyExc_ValueError, "searchsorted: side is '%s', expected 'left' or 'right'",
                     side);
    return is_right;
}

/* The values, and of the rest what was asked for. */
tk_status tkpy_unique(tkpy_call *call, tk_array a, int64_t size, bool index, bool inverse,
                      bool counts, tk_array fill) {
    bool wanted[] = {true, index, inverse, counts};
    tk_arrays all = {0};
    tk_status status = tk_unique(a, size, fill, &all);
    for (size_t i = 0; status == TK_OK && i < all.count; i++)
        if (wanted[i]) status = tk_arrays_push(&call->out, all.items[i]);
    tk_arrays_clear(&all);
    return status;
}

/* Lengths along the axis must agree, not only broadcast: an element without a partner has no part.
 */
tk_array tkpy_vecdot(tkpy_call *call, tk_array a, tk_array b, int64_t axis) {
    int64_t rank = tk_array_rank(a) > tk_array_rank(b) ? tk_array_rank(a) : tk_array_rank(b);
    int64_t from_end = axis < 0 ? axis : axis - rank;
    int64_t first = from_end + tk_array_rank(a), second = from_end + tk_array_rank(b);
    (void)call;
    if (from_end < 0 && first >= 0 && second >= 0 &&
        tk_array_dim(a, (int)first) != tk_array_dim(b, (int)second)) {
        PyErr_Format(PyExc_ValueError, "vecdot: lengths %lld and %lld along axis %lld differ",
                     (long long)tk_array_dim(a, (int)first),
                     (long long)tk_array_dim(b, (int)second), (long long)axis);
        return TK_NO_ARRAY;
    }
    return tk_sum(tk_multiply(tk_conjugate(a), b), TK_AXES(axis), false);
}

/* ---- boxes ---- */

/* Scalars of the vector of starts, one for each axis. */
static bool read_starts(tk_array start, tk_axes axes, tk_array *out) {
    if (tk_array_rank(start) > 1) {
        PyErr_Format(PyExc_ValueError, "start_indices has %d axes, expected a vector",
                     tk_array_rank(start));
        return false;
    }
    if (tk_array_size(start) != axes.count || axes.count > TK_AXES_MAX) {
        PyErr_Format(PyExc_ValueError, "%lld start indices were given for %lld axes",
                     (long long)tk_array_size(start), (long long)axes.count);
        return false;
    }
    tk_array flat = tk_flatten(start, 0, -1);
    for (int64_t i = 0; i < axes.count; i++)
        out[i] = tk_reshape(tk_slice(flat, TK_AXES(i), TK_AXES(i + 1), TK_ALL_AXES), TK_SCALAR);
    return true;
}

tk_array tkpy_slice_at(tkpy_call *call, tk_array a, tk_array start, tk_axes axes, tk_shape sizes) {
    tk_array starts[TK_AXES_MAX];
    (void)call;
    if (!read_starts(start, axes, starts)) return TK_NO_ARRAY;
    if (axes.count == 0) return tk_broadcast_to(a, sizes);
    return tk_gather(a, starts, (size_t)axes.count, axes, sizes);
}

tk_array tkpy_slice_update_at(tkpy_call *call, tk_array a, tk_array update, tk_array start,
                              tk_axes axes) {
    tk_array starts[TK_AXES_MAX];
    (void)call;
    if (!read_starts(start, axes, starts)) return TK_NO_ARRAY;
    tk_shape shape = tk_array_shape(a), given = tk_array_shape(update);
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.items[i] < 0 ? axes.items[i] + shape.count : axes.items[i];
        int64_t own = axis - (shape.count - given.count);
        if (axis >= 0 && axis < shape.count) shape.items[axis] = own < 0 ? 1 : given.items[own];
    }
    return tk_scatter_nd(a, tk_broadcast_to(update, shape), starts, (size_t)axes.count, axes,
                         TK_SET);
}

/* ---- strides ---- */

tk_array tkpy_as_strided(tkpy_call *call, tk_array a, tk_shape shape, tk_axes strides,
                         int64_t offset) {
    if (shape.count < 0) shape = tk_array_shape(a);
    if (strides.count < 0) {
        strides.count = shape.count;
        for (int64_t step = 1, i = shape.count - 1; i >= 0; step *= shape.items[i--])
            strides.items[i] = step;
    }
    if (strides.count != shape.count) {
        PyErr_Format(PyExc_ValueError, "as_strided: %lld strides were given for %lld axes",
                     (long long)strides.count, (long long)shape.count);
        return TK_NO_ARRAY;
    }
    tk_array at = tk_full(tk_scalar_int(call->context, offset), shape, TK_INT64);
    for (int64_t i = 0; i < shape.count; i++) {
        tk_shape own = {.count = shape.count};
        for (int64_t k = 0; k < shape.count; k++) own.items[k] = k == i ? shape.items[k] : 1;
        tk_array along = tk_arange(call->context, 0, (double)shape.items[i], 1, TK_INT64);
        along = tk_multiply(along, tk_scalar_int(call->context, strides.items[i]));
        at = tk_add(at, tk_reshape(along, own));
    }
    return tk_take(tk_flatten(a, 0, -1), at, 0);
}

/* ---- windows ---- */

/* constant - once cos(x) + twice cos(2 x), x from 0 to 2 pi; one point is 1. */
tk_array tkpy_window(tkpy_call *call, int64_t count, double constant, double once, double twice) {
    if (count <= 1) return tk_ones(call->context, TK_SHAPE(count < 0 ? 0 : count), TK_FLOAT32);
    double step = 2 * acos(-1.0) / (double)(count - 1);
    tk_array x = tk_multiply(tk_arange(call->context, 0, (double)count, 1, TK_FLOAT32),
                             tk_scalar(call->context, step));
    tk_array first = tk_multiply(tk_cos(x), tk_scalar(call->context, -once));
    tk_array second = tk_multiply(tk_cos(tk_multiply(x, tk_scalar(call->context, 2))),
                                  tk_scalar(call->context, twice));
    return tk_add(tk_add(first, second), tk_scalar(call->context, constant));
}

/* 1 - |2 i / (count - 1) - 1| */
tk_array tkpy_bartlett(tkpy_call *call, int64_t count) {
    if (count <= 1) return tk_ones(call->context, TK_SHAPE(count < 0 ? 0 : count), TK_FLOAT32);
    tk_array place = tk_multiply(tk_arange(call->context, 0, (double)count, 1, TK_FLOAT32),
                                 tk_scalar(call->context, 2.0 / (double)(count - 1)));
    tk_array one = tk_scalar(call->context, 1);
    return tk_subtract(one, tk_abs(tk_subtract(place, one)));
}

/* In float32 from half types, as MLX's. */
tk_array tkpy_fast_cross_entropy(tk_array logits, tk_array targets) {
    tk_dtype dtype = tk_array_dtype(logits);
    bool half = dtype == TK_FLOAT16 || dtype == TK_BFLOAT16;
    return tk_cross_entropy(half ? tk_astype(logits, TK_FLOAT32) : logits, targets);
}
