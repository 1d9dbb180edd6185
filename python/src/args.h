/* One parser for the arguments of all generated functions: a specification says what each parameter
 * is, the parser fills one value each, the generated body calls C with them. */
#ifndef TKPY_ARGS_H
#define TKPY_ARGS_H

#include "module.h"

typedef enum tkpy_kind {
    TKPY_ARRAY,       /* an array (or what operators take) */
    TKPY_VALUE,       /* a scalar or an array */
    TKPY_MAYBE,       /* an array or None */
    TKPY_AXES,        /* None (all), an integer or a sequence of them */
    TKPY_EXTENTS,     /* an integer or a sequence of them */
    TKPY_AXIS,        /* None (TKPY_NONE) or an integer */
    TKPY_INT,         /* an integer */
    TKPY_MAYBE_INT,   /* None (TKPY_NONE) or an integer */
    TKPY_FLOAT,       /* a number */
    TKPY_MAYBE_FLOAT, /* None (NaN) or a number */
    TKPY_BOOL,
    TKPY_DTYPE,  /* a Dtype or None (TKPY_NO_DTYPE) */
    TKPY_SHAPE,  /* an integer or a sequence; None where the default is None (count -1) */
    TKPY_ARRAYS, /* a sequence of arrays */
    TKPY_REST,   /* all remaining positional arguments, arrays */
    TKPY_TEXT,
    TKPY_OBJECT /* borrowed; NULL when absent */
} tkpy_kind;

#define TKPY_NONE INT64_MIN

typedef struct tkpy_param {
    const char *name;
    tkpy_kind kind;
    bool required;
    double fallback;  /* of numbers, flags and dtypes; TKPY_FALLBACK_NONE for None */
    const char *text; /* default of TKPY_TEXT */
} tkpy_param;

#define TKPY_FALLBACK_NONE (-4.0e300)

typedef struct tkpy_spec {
    const char *name;
    int n_params;
    int n_positional_only; /* cannot be given by name */
    int n_positional;      /* the rest can only be given by name */
    bool stream_by_name;   /* else it may follow the last positional one */
    const tkpy_param *params;
} tkpy_spec;

typedef struct tkpy_list {
    tk_array *items;
    size_t count;
} tkpy_list;

typedef struct tkpy_value {
    union {
        tk_array array;
        tk_axes axes;
        int64_t integer;
        double number;
        bool flag;
        int dtype;
        const char *text;
        PyObject *object;
        tkpy_list list;
    };
} tkpy_value;

enum { TKPY_PARAMS_MAX = 14 };

typedef struct tkpy_call {
    tkpy_state *state;
    tk_context *context;
    tk_scope scope;
    tk_stream_id stream, stream_before; /* where stream_changed */
    bool stream_changed;
    void *lists[2]; /* memory of TKPY_ARRAYS and TKPY_REST */
    int n_lists;
    tk_arrays out;
} tkpy_call;

/* Opens a scope and parses. `self` is the first parameter of a method, NULL for a function. False
 * with an exception; then nothing is open. */
bool tkpy_open(tkpy_call *call, tkpy_state *state, const tkpy_spec *spec, PyObject *self,
               PyObject *const *args, Py_ssize_t n_args, PyObject *names, tkpy_value *values);

/* Close the scope and give the result to Python. */
PyObject *tkpy_close(tkpy_call *call, tk_array result);
PyObject *tkpy_close_list(tkpy_call *call, tk_status status, bool as_tuple);

/* A list, or the array alone where there is one. */
PyObject *tkpy_close_few(tkpy_call *call, tk_status status);
PyObject *tkpy_close_some(tkpy_call *call, tk_status status); /* a tuple */

/* The stream that `stream=` names: a Stream, Device or DeviceType. False with an exception. */
bool tkpy_stream_of(PyObject *object, tk_stream_id *out_stream);

/* ---- what bodies in surface.def are written with ---- */

/* Where axis may be None: the flattened array and its axis. */
static inline tk_array tkpy_flat(tk_array a, int64_t axis) {
    return axis == TKPY_NONE ? tk_flatten(a, 0, -1) : a;
}
static inline int64_t tkpy_axis(int64_t axis) { return axis == TKPY_NONE ? 0 : axis; }
/* For the library, where 0 is what None is here: a 0 that was given becomes another wrong number.
 */
static inline int64_t tkpy_or_zero(int64_t number) {
    return number == TKPY_NONE ? 0 : number == 0 ? -1 : number;
}
static inline int64_t tkpy_least(int64_t number) { return number < 0 ? 0 : number; }
static inline tk_axes tkpy_one_axis(int64_t axis) {
    return axis == TKPY_NONE ? TK_ALL_AXES : TK_AXES(axis);
}
static inline tk_array tkpy_cast(tk_array a, int dtype) {
    return dtype == TKPY_NO_DTYPE ? a : tk_astype(a, (tk_dtype)dtype);
}
static inline tk_dtype tkpy_or(int dtype, tk_dtype fallback) {
    return dtype == TKPY_NO_DTYPE ? fallback : (tk_dtype)dtype;
}

/* Bodies that are too long for the table (by_hand.c, by_hand_random.c). With an exception they give
 * TK_NO_ARRAY or a status. */
tk_status tkpy_two(tkpy_call *call, tk_array first, tk_array second);
tk_array tkpy_arange(tkpy_call *call, PyObject *start, PyObject *stop, PyObject *step, int dtype);
tk_array tkpy_full(tk_shape shape, tk_array value, int dtype);
tk_array tkpy_concatenate(tkpy_call *call, tkpy_list arrays, int64_t axis);
tk_array tkpy_put_along_axis(tk_array a, tk_array indices, tk_array values, int64_t axis);
tk_array tkpy_tensordot(tkpy_call *call, tk_array a, tk_array b, PyObject *axes);
tk_array tkpy_pad(tkpy_call *call, tk_array a, PyObject *width, const char *mode, tk_array value);
tk_array tkpy_roll(tk_array a, tk_axes shift, tk_axes axes);
tk_status tkpy_split(tkpy_call *call, tk_array a, PyObject *where, int64_t axis);
tk_status tkpy_unstack(tkpy_call *call, tk_array a, int64_t axis);
tk_status tkpy_atleast(tkpy_call *call, tkpy_list arrays, int rank);
tk_status tkpy_broadcast_arrays(tkpy_call *call, tkpy_list arrays);
tk_status tkpy_meshgrid(tkpy_call *call, tkpy_list arrays, bool sparse, const char *indexing);
tk_array tkpy_attention(tkpy_call *call, tk_array q, tk_array k, tk_array v, double scale,
                        PyObject *mask, tk_array sinks);

/* by_hand_more.c */
bool tkpy_is_right(const char *side);
tk_status tkpy_unique(tkpy_call *call, tk_array a, int64_t size, bool index, bool inverse,
                      bool counts, tk_array fill);
tk_array tkpy_slice_at(tkpy_call *call, tk_array a, tk_array start, tk_axes axes, tk_shape sizes);
tk_array tkpy_slice_update_at(tkpy_call *call, tk_array a, tk_array update, tk_array start,
                              tk_axes axes);
tk_array tkpy_as_strided(tkpy_call *call, tk_array a, tk_shape shape, tk_axes strides,
                         int64_t offset);
tk_array tkpy_window(tkpy_call *call, int64_t count, double constant, double once, double twice);
tk_array tkpy_bartlett(tkpy_call *call, int64_t count);

/* by_hand_signal.c */
tk_array tkpy_conv_general(tkpy_call *call, tk_array input, tk_array weight, tk_axes stride,
                           PyObject *padding, tk_axes kernel_dilation, tk_axes input_dilation,
                           int64_t groups, bool flip);

/* None is -1; what is below 0 becomes 0, which no length may be. */
static inline int64_t tkpy_length(int64_t n) { return n == TKPY_NONE ? -1 : n < 0 ? 0 : n; }
static inline int64_t tkpy_hop(int64_t n_fft, int64_t hop) {
    return hop == TKPY_NONE ? (n_fft < 4 ? 1 : n_fft / 4) : hop;
}
tk_axes tkpy_last_two(tkpy_call *call, PyObject *axes);
tk_array tkpy_stft_window(tkpy_call *call, tk_array window, int64_t length);
bool tkpy_one_side(bool fallback, PyObject *onesided);

bool tkpy_is_upper(const char *triangle);
tk_array tkpy_norm(tk_array a, PyObject *ord, tk_axes axes, bool keepdims);

/* The key that was given, or the next of the implicit sequence, on the device of the current
 * stream. */
tk_array tkpy_next_key(tkpy_call *call, tk_array key);
/* The same on the device of `array`, which may be absent; a number of the processor is anywhere. */
tk_array tkpy_key_beside(tkpy_call *call, tk_array key, tk_array array);
tk_array tkpy_key(tkpy_call *call, PyObject *seed);
tk_array tkpy_vecdot(tkpy_call *call, tk_array a, tk_array b, int64_t axis);

/* sample * scale + loc, either of which may be absent. */
tk_array tkpy_spread(tk_array sample, tk_array loc, tk_array scale);
tk_array tkpy_uniform(tkpy_call *call, PyObject *low, PyObject *high, tk_shape shape,
                      tk_dtype dtype, tk_array key);
tk_array tkpy_randint(tkpy_call *call, PyObject *low, PyObject *high, tk_shape shape,
                      tk_dtype dtype, tk_array key);
tk_array tkpy_fast_cross_entropy(tk_array logits, tk_array targets);
tk_array tkpy_categorical(tkpy_call *call, tk_array logits, int64_t axis, tk_shape shape,
                          int64_t num_samples, tk_array key);
tk_array tkpy_permutation(tkpy_call *call, PyObject *x, int64_t axis, tk_array key);

#endif
