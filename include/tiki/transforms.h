/* Transforms of functions: gradients, forward mode, vmap, checkpointing, functions with derivatives
 * of their own.
 *
 * A function is a callback that builds arrays from arrays. A transform calls it once, on
 * placeholders that carry the arguments' values (those of vmap carry none, so the function must not
 * evaluate them), and rewrites the graph that comes out. Transforms nest in any way, and their
 * results are lazy.
 *
 * The transform opens a scope around the callback: arrays that it makes need no cleanup. A status
 * other than TK_OK from the callback ends the transform with that status. Results are appended to
 * lists that the caller clears (tk_arrays_clear). Any thread; the callback runs on the calling
 * thread. */
#ifndef TIKI_TRANSFORMS_H
#define TIKI_TRANSFORMS_H

#include "tiki/array.h"

TK_BEGIN_DECLS

/* Calls back with n_args arguments (borrowed) and appends the results with tk_arrays_push. */
typedef tk_status (*tk_function)(void *self, const tk_array *args, size_t n_args,
                                 tk_arrays *results);

/* Values of `function` at `args`, and the products of `cotangents` (one a result, of its type) with
 * the Jacobian transposed: one an argument, zeros where nothing depends on it. Complex numbers
 * count as pairs of reals (for holomorphic f: cotangent * conj(f')). Integer and bool arguments
 * have zeros; the cotangent of an integer result is ignored. TK_UNSUPPORTED for an op that has no
 * derivative. */
TK_API tk_status tk_vjp(tk_context *context, tk_function function, void *self, const tk_array *args,
                        size_t n_args, const tk_array *cotangents, size_t n_cotangents,
                        tk_arrays *values, tk_arrays *gradients);

/* Values of `function` at `args` and their tangents for the arguments' `tangents` (of their types).
 */
TK_API tk_status tk_jvp(tk_context *context, tk_function function, void *self, const tk_array *args,
                        size_t n_args, const tk_array *tangents, tk_arrays *values,
                        tk_arrays *out_tangents);

/* Values of `function` (the first a real scalar: the loss; `values` may be NULL) and the gradient
 * of the first with respect to args[argnums[i]]. argnums NULL: the first argument. TK_SHAPE_ERROR
 * or TK_DTYPE_ERROR when the first value is no scalar of a float dtype, TK_DTYPE_ERROR when an
 * argument to differentiate for is not float or complex. */
TK_API tk_status tk_value_and_grad(tk_context *context, tk_function function, void *self,
                                   const tk_array *args, size_t n_args, const int *argnums,
                                   size_t n_argnums, tk_arrays *values, tk_arrays *gradients);

/* The gradients alone. */
TK_API tk_status tk_grad(tk_context *context, tk_function function, void *self,
                         const tk_array *args, size_t n_args, const int *argnums, size_t n_argnums,
                         tk_arrays *gradients);

/* in_axes[i] of TK_UNMAPPED: the argument is the same for the whole batch. */
#define TK_UNMAPPED INT32_MIN

/* `function` for every element along axis in_axes[i] of args[i], results stacked along out_axes[k]
 * (one a result; NULL: axis 0 for all, and for in_axes too). TK_SHAPE_ERROR when the mapped lengths
 * differ. */
TK_API tk_status tk_vmap(tk_context *context, tk_function function, void *self,
                         const tk_array *args, size_t n_args, const int *in_axes,
                         const int *out_axes, tk_arrays *results);

/* Calls `function` so that its intermediate values are not kept for the backward pass but computed
 * again there. `function` and `self` may be called until the results are gone: `release(self)` runs
 * then (NULL: nothing). */
TK_API tk_status tk_checkpoint(tk_context *context, tk_function function, void *self,
                               void (*release)(void *self), const tk_array *args, size_t n_args,
                               tk_arrays *results);

/* Transforms of a function's own; each may be NULL: the transform then goes through the function.
 */
typedef struct tk_custom {
    size_t size; /* sizeof(tk_custom) */
    tk_function function;

    /* args: the arguments, then one cotangent a result, then the results. Gives one gradient an
     * argument; TK_NO_ARRAY is zero. */
    tk_function vjp;

    /* args: the arguments, then one tangent an argument. Gives one tangent a result. */
    tk_function jvp;

    /* args: the arguments with the batch as axis 0 (unbatched ones are repeated). Gives the results
     * with the batch as axis 0. */
    tk_function vmap;

    void *self;                  /* of all four */
    void (*release)(void *self); /* when no graph needs it any more; NULL: nothing */
} tk_custom;

/* Whether this thread is in a function that a transform called. Where it is not, no rule of a
 * custom function can be asked for, and its plain function may be called instead. */
TK_API bool tk_transforms_active(void);

/* Calls custom->function. The struct is copied; `self` is released as it says, at once on failure.
 */
TK_API tk_status tk_custom_call(tk_context *context, const tk_custom *custom, const tk_array *args,
                                size_t n_args, tk_arrays *results);

/* ---- functions recorded once ---- */

/* A function as the graph that it built: calling it again replays the graph on other arguments,
 * without the callback. What the function read besides its arguments is part of the graph. */
typedef struct tk_traced tk_traced;

/* Calls `function` once on placeholders with the dtypes and shapes of `args`, which have no values,
 * so the function must not evaluate them. *out_traced belongs to the caller (NULL on failure). */
TK_API tk_status tk_traced_create(tk_context *context, tk_function function, void *self,
                                  const tk_array *args, size_t n_args, tk_traced **out_traced);

/* The results of the function for `args`, appended to `results`; lazy. Every argument has the dtype
 * and shape of its counterpart (TK_SHAPE_ERROR otherwise). Any thread. */
TK_API tk_status tk_traced_call(const tk_traced *traced, const tk_array *args, size_t n_args,
                                tk_arrays *results);

/* The same for other shapes too: `function` is called twice, on the shapes of `args` and on shapes
 * where the lengths in which `others` differ from `args` are multiples of theirs. Lengths that are
 * equal in `args` vary together; a length of 1 stays. Numbers in the graph that differ between the
 * two must be lengths, products of lengths, or such numbers with a constant added, and for floats
 * powers of lengths; so a function that follows its arguments' shapes by itself can be recorded.
 * TK_UNSUPPORTED where one cannot be explained: record each shape by itself then. A later call with
 * lengths that do not fit together is TK_SHAPE_ERROR. */
TK_API tk_status tk_traced_create_shapeless(tk_context *context, tk_function function, void *self,
                                            const tk_array *args, const tk_array *others,
                                            size_t n_args, tk_traced **out_traced);

/* How many nodes a call replays. */
TK_API size_t tk_traced_size(const tk_traced *traced);

/* NULL is allowed. Before its context is released. */
TK_API void tk_traced_free(tk_traced *traced);

TK_END_DECLS

#endif
