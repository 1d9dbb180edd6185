/* Contexts and arrays: lazy, typed, n-dimensional values.
 *
 *     tk_context *ctx;
 *     tk_context_create(NULL, &ctx);
 *     tk_scope scope = tk_scope_open(ctx);
 *     tk_array x = tk_random_normal(ctx, TK_SHAPE(4, 8), TK_FLOAT32, 0, 1, TK_NO_ARRAY);
 *     tk_array y = tk_multiply(x, tk_rsqrt(tk_mean(tk_square(x), TK_AXES(-1), TK_KEEPDIMS)));
 *     if (tk_eval(y) != TK_OK) fprintf(stderr, "%s\n", tk_error_message());
 *     tk_scope_close(scope);
 *     tk_context_release(ctx);
 *
 * Ownership. A tk_array is a small handle passed by value; each handle that an op returns is one
 * counted reference. With a scope open on this thread, the innermost scope owns it and closing the
 * scope drops it; with none, the caller owns it and drops it with tk_release. tk_keep makes a
 * handle that is the caller's own, whatever the scope does.
 *
 * Errors stick. An op on an error value gives the first error; tk_eval and every function that must
 * act now return its status and put its text into tk_error_message(). Nothing needs checking line
 * by line.
 *
 * Threads. Arrays of one context may be built and evaluated from any thread. Scopes, the current
 * stream and the implicit random key belong to the thread. Operands of two contexts are an error.
 *
 * Forked children: every context of the parent gives TK_CONTEXT_ERROR there; nothing hangs. */
#ifndef TIKI_ARRAY_H
#define TIKI_ARRAY_H

#include "tiki/axes.h"
#include "tiki/dtype.h"
#include "tiki/runtime.h"
#include "tiki/status.h"

TK_BEGIN_DECLS

typedef struct tk_context tk_context;

/* A handle. {NULL} is "no array": absent optional arguments, and the result where there is no
 * context to hold an error. */
typedef struct tk_array {
    struct tk_node *node;
} tk_array;

static inline tk_array tk_no_array(void) {
    tk_array none = {NULL};
    return none;
}
#define TK_NO_ARRAY tk_no_array()

/* A growing list of arrays: the results of ops that give several. It owns a reference to each. */
typedef struct tk_arrays {
    tk_array *items;
    size_t count;
    size_t capacity;
} tk_arrays;

/* Appends a reference to `array` (the list holds its own). TK_OUT_OF_MEMORY. */
TK_API tk_status tk_arrays_push(tk_arrays *list, tk_array array);

/* Drops the references and the memory; the list is empty and may be used again. */
TK_API void tk_arrays_clear(tk_arrays *list);

/* ---- contexts ---- */

/* What a context may be told; zero everywhere means the defaults. `size` is
 * sizeof(tk_context_options), so that the struct may grow. */
typedef struct tk_context_options {
    size_t size;
    tk_memory_hooks hooks; /* see runtime.h */
    size_t memory_limit;   /* bytes; 0: the machine's memory */
    size_t cache_limit;    /* bytes; 0: a quarter of the memory limit */
} tk_context_options;

/* Makes a context with a CPU device and its default stream. `options` may be NULL.
 * TK_OUT_OF_MEMORY. The caller releases it. */
TK_API tk_status tk_context_create(const tk_context_options *options, tk_context **out_context);

/* Waits for running work and frees the context, its arrays included. NULL is allowed. Handles that
 * are still held become invalid: release them first. Called by what the context runs (a release
 * function of memory that an evaluation lets go) it would wait for itself: it does nothing then,
 * and this thread's error is a TK_CONTEXT_ERROR that says so. */
TK_API void tk_context_release(tk_context *context);

/* The context of an array; NULL for TK_NO_ARRAY. Borrowed. */
TK_API tk_context *tk_array_context(tk_array array);

/* ---- scopes and handles ---- */

typedef struct tk_scope {
    tk_context *context;
    uint64_t depth;
} tk_scope;

/* Opens a scope on this thread; handles made from now on belong to it. Scopes nest. */
TK_API tk_scope tk_scope_open(tk_context *context);

/* Drops every handle made since the scope was opened, those of scopes still open inside it too.
 * Must be called on the thread that opened it. */
TK_API void tk_scope_close(tk_scope scope);

/* A handle to the same array that belongs to the caller and outlives every scope; O(1). */
TK_API tk_array tk_keep(tk_array array);

/* Drops a handle that belongs to the caller. TK_NO_ARRAY is allowed. */
TK_API void tk_release(tk_array array);

/* ---- making arrays ---- */

/* An array that carries this thread's latest error, for functions on top of Tiki that find an
 * argument wrong: `return tk_error_array(context, tk_error_set(TK_SHAPE_ERROR, ...));` */
TK_API tk_array tk_error_array(tk_context *context, tk_status status);

/* A weakly typed scalar: in an op with an array it takes the array's dtype, as a Python number
 * does. Alone it is float32. */
TK_API tk_array tk_scalar(tk_context *context, double value);

/* A weakly typed integer scalar; alone it is int32 (int64 where it does not fit). An op with arrays
 * of integers that do not hold it is TK_OVERFLOW. */
TK_API tk_array tk_scalar_int(tk_context *context, int64_t value);

/* A weakly typed truth value; alone it is bool. */
TK_API tk_array tk_scalar_bool(tk_context *context, bool value);

/* A complex64 scalar, weakly typed: real dtypes become complex64. */
TK_API tk_array tk_scalar_complex(tk_context *context, double real, double imag);

/* Copies row-major data of `shape` and `dtype` into a new array. `data` may be NULL for an array
 * without elements only. */
TK_API tk_array tk_from_data(tk_context *context, const void *data, tk_shape shape, tk_dtype dtype);

/* Wraps memory that stays where it is: `bytes` from `data` must hold the strided array (strides in
 * elements, NULL for row-major). release(owner) runs when no array needs it any more, at once if
 * this fails: on the thread that let go last, which may be one that computes. It may use the
 * library, but not wait for what is still being computed (TK_INVALID_ARGUMENT). The memory must not
 * be written while arrays use it. */
TK_API tk_array tk_from_memory(tk_context *context, void *data, size_t bytes, tk_shape shape,
                               const int64_t *strides, tk_dtype dtype, void (*release)(void *owner),
                               void *owner);

/* ---- asking arrays (nothing is evaluated) ---- */

/* TK_OK, or the code of the error that this array carries (text in tk_error_message()). */
TK_API tk_status tk_array_status(tk_array array);

TK_API tk_dtype tk_array_dtype(tk_array array);
TK_API int tk_array_rank(tk_array array);
TK_API tk_shape tk_array_shape(tk_array array);
TK_API int64_t tk_array_size(tk_array array); /* elements */

/* Length of an axis, negative axes from the end; 0 when there is no such axis. */
TK_API int64_t tk_array_dim(tk_array array, int axis);

/* Whether the values are there already. */
TK_API bool tk_array_is_evaluated(tk_array array);

/* Whether both are one node: equal expressions of the same operands are. */
TK_API bool tk_array_same(tk_array a, tk_array b);

/* ---- evaluation ---- */

/* Computes the array and waits. The first error of the expression, or of the evaluation. */
TK_API tk_status tk_eval(tk_array array);
TK_API tk_status tk_eval_all(const tk_array *arrays, size_t count);

/* The same with a wait that can be given up (see tk_wait in runtime.h): TK_INTERRUPTED then, and
 * every array can be evaluated again. */
TK_API tk_status tk_eval_wait(const tk_array *arrays, size_t count, const tk_wait *wait);

/* Starts the computation and returns; a later tk_eval waits for it and gives its error. */
TK_API tk_status tk_async_eval(const tk_array *arrays, size_t count);

/* Waits for everything this context has started. */
TK_API tk_status tk_synchronize(tk_context *context);

/* ---- reading values (evaluates first) ---- */

/* A view of an evaluated array's memory: element i is at data + offset of strides (in elements).
 * Borrowed: valid while a handle to the array is held. Of an array on a device whose memory the
 * processor cannot read it is a copy, made once and kept with the array. */
typedef struct tk_strided {
    tk_dtype dtype;
    int rank;
    int64_t size; /* elements */
    int64_t shape[TK_AXES_MAX];
    int64_t strides[TK_AXES_MAX]; /* in elements; 0 and negative ones occur */
    void *data;                   /* the first element */
} tk_strided;

TK_API tk_status tk_array_view(tk_array array, tk_strided *out_view);

/* Copies the values, row-major, into `data` of `bytes` bytes, which must be just enough. */
TK_API tk_status tk_copy_out(tk_array array, void *data, size_t bytes);

/* The value of an array with one element, converted. */
TK_API tk_status tk_item(tk_array array, double *out_value);
TK_API tk_status tk_item_int(tk_array array, int64_t *out_value);

/* The values as text, like NumPy's: "[[1. 2.]\n [3. 4.]]". The caller frees it with tk_text_free.
 */
TK_API tk_status tk_format(tk_array array, char **out_text);

/* The same with `digits` after the point of every float, 0 to 100, and no exponents; -1: as
 * tk_format. */
TK_API tk_status tk_format_digits(tk_array array, int digits, char **out_text);
TK_API void tk_text_free(char *text);

/* ---- graphs as text ---- */

/* The expression as text, one node a line, operands before their users; arrays with memory and
 * placeholders are inputs %a0, %a1, ... in order of appearance. docs/graph-text.md is the format.
 * An evaluated array is an input, nothing more: print before evaluating. The caller frees the text
 * with tk_text_free. */
TK_API tk_status tk_graph_print(const tk_array *outputs, size_t count, char **out_text);

/* Rebuilds what tk_graph_print wrote: appends the outputs to `outputs`. `inputs` stand for %a0,
 * %a1, ... and must have their types. Printing and parsing with the same inputs gives the same
 * nodes. TK_FORMAT_ERROR names line and column. */
TK_API tk_status tk_graph_parse(tk_context *context, const char *text, const tk_array *inputs,
                                size_t n_inputs, tk_arrays *outputs);

/* The inputs of the printed text in its order, appended to `inputs`. */
TK_API tk_status tk_graph_inputs(const tk_array *outputs, size_t count, tk_arrays *inputs);

/* ---- random, devices, debugging ---- */

/* Sets this thread's implicit key; it starts as the key of seed 0. */
TK_API void tk_random_seed(tk_context *context, uint64_t seed);

/* When on, an evaluation whose op makes a NaN from operands without one fails with TK_NAN_TRAPPED
 * and names the op. Off by default; costs a pass over every float result. */
TK_API void tk_set_nan_trap(tk_context *context, bool on);

/* The context's CPU device, for memory counters and limits (runtime.h). Borrowed. */
TK_API tk_device *tk_context_device(tk_context *context);

/* The instruction set that the CPU's kernels use on this machine: "sse2", "avx2" or "avx512".
 * Static. */
TK_API const char *tk_cpu_variant(void);

/* What the library of large matrix products says about itself; loads it. NULL when it is not
 * installed: Tiki's own products then do all the work. Static. */
TK_API const char *tk_cpu_blas(void);

/* Names the OpenBLAS to use in the place of the system's libopenblas.so.0: a file, and what the
 * names of its functions begin with ("scipy_" in the Python package scipy-openblas32, ""
 * elsewhere). For the whole process, before the first large product. TK_INVALID_ARGUMENT when one
 * is in use already, TK_IO_ERROR when the file cannot be read. Any thread. */
TK_API tk_status tk_cpu_set_blas(const char *path, const char *prefix);

/* A stream of a device: ops without operands run on the current stream of the thread that makes
 * them, ops with operands there if it is of the device that has the operands, else on that device's
 * first stream. */
typedef uint32_t tk_stream_id;

#define TK_DEFAULT_STREAM 0u

/* A new stream of the device that this thread's current stream is of. */
TK_API tk_status tk_stream_new(tk_context *context, tk_stream_id *out_stream);

/* Makes `stream` current on this thread; returns the one before. Unknown ids are TK_DEFAULT_STREAM.
 */
TK_API tk_stream_id tk_stream_use(tk_context *context, tk_stream_id stream);

TK_END_DECLS

#include "tiki/ops.h"

#endif
