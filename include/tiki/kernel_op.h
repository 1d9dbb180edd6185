/* Kernels as ops: a launch in the graph, and functions of launches with derivatives.
 *
 * tk_launch is one node: it runs when its outputs are evaluated, on the device that has its
 * operands (devices.h). It has no derivative and no batching rule of its own, and says so by
 * TK_UNSUPPORTED when a transform meets it.
 *
 * tk_kernel_call gives it some: a function that launches, with a vjp, jvp and batching rule that
 * are functions of arrays too, of launches or of ops. Results behind the visible ones are
 * residuals: the vjp gets them, the caller does not. A rule that is missing is TK_UNSUPPORTED with
 * the name of the rule, never a guess. */
#ifndef TIKI_KERNEL_OP_H
#define TIKI_KERNEL_OP_H

#include "tiki/devices.h"
#include "tiki/kernel.h"
#include "tiki/target.h"
#include "tiki/transforms.h"

TK_BEGIN_DECLS

/* ---- launches ---- */

/* What a parameter of the kernel is given. */
typedef enum tk_bind_kind {
    TK_BIND_INPUT,   /* the address of input `index`, row-major; a parameter that is read only */
    TK_BIND_OUTPUT,  /* the address of output `index` */
    TK_BIND_INTEGER, /* `integer`, cut to the parameter's width */
    TK_BIND_FLOAT    /* `number`, rounded to the parameter's type */
} tk_bind_kind;

typedef struct tk_bind {
    tk_bind_kind kind;
    size_t index;
    int64_t integer;
    double number;
} tk_bind;

static inline tk_bind tk_bind_input(size_t index) {
    tk_bind bind = {TK_BIND_INPUT, index, 0, 0};
    return bind;
}
static inline tk_bind tk_bind_output(size_t index) {
    tk_bind bind = {TK_BIND_OUTPUT, index, 0, 0};
    return bind;
}
static inline tk_bind tk_bind_integer(int64_t value) {
    tk_bind bind = {TK_BIND_INTEGER, 0, value, 0};
    return bind;
}
static inline tk_bind tk_bind_float(double value) {
    tk_bind bind = {TK_BIND_FLOAT, 0, 0, value};
    return bind;
}

/* A launch writes at most so many arrays. */
#define TK_LAUNCH_OUTPUTS 4

typedef struct tk_launch_output {
    tk_dtype dtype;
    tk_shape shape;
    /* 0: new memory, not set. Else 1 + the number of the input that the output begins as, which has
     * its type: the kernel works on that input's memory where nobody else needs it any more, and on
     * a copy of it else. The input itself never changes. */
    size_t in_place;
} tk_launch_output;

typedef struct tk_launch_spec {
    size_t size;       /* sizeof(tk_launch_spec) */
    tk_kernel *kernel; /* in thread form; the graph keeps a reference */
    size_t n_binds;    /* one a parameter that is no tensor map, in order */
    const tk_bind *binds;
    size_t n_outputs; /* 1 to TK_LAUNCH_OUTPUTS */
    const tk_launch_output *outputs;
    const char *site; /* where the launch is written, for errors ("model.py:12"); may be NULL */
} tk_launch_spec;

/* From now on this thread's launches and kernel ops are built by `target` where they run on a GPU
 * (TK_TARGET_PTX to begin with); gives the one before. A value that is none changes nothing. A
 * launch keeps the target that it was made with, and so do the rules of a kernel op. On the
 * emulator, which builds nothing, another target than PTX is TK_UNSUPPORTED when the launch runs.
 */
TK_API tk_target tk_target_use(tk_target target);

/* Appends the outputs to `outputs`. The launch contract is checked now, with the numbers and sizes
 * that are known, and again at the launch with the addresses: TK_INVALID_ARGUMENT names the
 * precondition. TK_DTYPE_ERROR and TK_INVALID_ARGUMENT for bindings that do not fit parameters;
 * TK_UNSUPPORTED for a kernel in another form. A launch all of whose outputs are empty does
 * nothing. */
TK_API tk_status tk_launch(tk_context *context, const tk_launch_spec *spec, const tk_array *inputs,
                           size_t n_inputs, tk_arrays *outputs);

/* ---- launches by others ---- */

/* Work on a GPU that another program hands to Tiki's stream, such as a compiled function of the
 * CuTe DSL: one node, as a launch is. */
typedef struct tk_foreign {
    size_t size;      /* sizeof(tk_foreign) */
    const char *name; /* for messages; copied */
    const char *site; /* as in tk_launch_spec; copied */
    size_t n_outputs; /* 1 to TK_LAUNCH_OUTPUTS */
    const tk_launch_output *outputs;

    /* Called when the outputs are evaluated, on any thread, with the device's context current:
     * hands the work to `stream`, a CUstream, and returns. Addresses are those of row-major arrays,
     * at multiples of 16 bytes. What it writes beside the outputs it must not touch. */
    tk_status (*launch)(void *self, void *stream, void *const *inputs, void *const *outputs);
    void *self;
    void (*release)(void *self); /* when no graph needs it any more; NULL: nothing */
} tk_foreign;

/* Appends the outputs to `outputs`. `self` is released as it says, at once on failure. Operands
 * elsewhere than on a GPU are TK_UNSUPPORTED. */
TK_API tk_status tk_launch_foreign(tk_context *context, const tk_foreign *foreign,
                                   const tk_array *inputs, size_t n_inputs, tk_arrays *outputs);

/* ---- functions of launches ---- */

typedef enum tk_batching {
    TK_BATCHING_NONE,   /* refuse */
    TK_BATCHING_LOOP,   /* call forward for each element and stack what it gives */
    TK_BATCHING_LEADING /* call forward once: leading axes are more of the same to it */
} tk_batching;

typedef struct tk_kernel_rules {
    size_t size;      /* sizeof(tk_kernel_rules) */
    const char *name; /* for messages; copied */
    size_t n_visible; /* results that the caller gets; 0: all */

    /* Gives the visible results, then the residuals. */
    tk_function forward;

    /* args: the arguments, one cotangent a visible result, all results. Gives one gradient an
     * argument; TK_NO_ARRAY is zero. */
    tk_function vjp;

    /* args: the arguments, one tangent an argument. Gives one tangent a visible result. */
    tk_function jvp;

    /* args: the arguments with the batch as axis 0 (those without are repeated). Gives all results
     * with the batch as axis 0. NULL: as `batching` says. */
    tk_function vmap;
    tk_batching batching;

    void *self;                  /* of all four */
    void (*release)(void *self); /* when no graph needs it any more; NULL: nothing */
} tk_kernel_rules;

/* Calls rules->forward and appends its visible results to `results`. The struct is copied; `self`
 * is released as it says, at once on failure. */
TK_API tk_status tk_kernel_call(tk_context *context, const tk_kernel_rules *rules,
                                const tk_array *args, size_t n_args, tk_arrays *results);

TK_END_DECLS

#endif
