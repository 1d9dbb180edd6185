/* A small MLP with RMS norm, trained by plain gradient descent on whichever device has its arrays:
 * with the library's kernels on devices, with the ops of the same names on the processor. */
#ifndef SUPPORT_SMALL_MLP_H
#define SUPPORT_SMALL_MLP_H

#include "support/arrays.h"
#include "tiki/library_op.h"
#include "tiki/transforms.h"

enum { MLP_ROWS = 32, MLP_WIDTH = 32, MLP_PARAMS = 3 };

typedef struct small_mlp {
    tk_context *context;
    tk_stream_id stream; /* of the device */
    tk_array x, target;
    tk_array params[MLP_PARAMS]; /* first and second weights, the norm's weight */
} small_mlp;

static inline tk_array mlp_product(const small_mlp *m, tk_array a, tk_array b) {
    return m->stream == TK_DEFAULT_STREAM ? tk_matmul(a, b) : tk_kernel_matmul(a, b, NULL);
}

static inline tk_array mlp_norm(const small_mlp *m, tk_array x, tk_array weight) {
    return m->stream == TK_DEFAULT_STREAM ? tk_rms_norm(x, weight, 1e-5)
                                          : tk_kernel_rms_norm(x, weight, 1e-5, NULL);
}

static inline tk_array mlp_sum(const small_mlp *m, tk_array x) {
    if (m->stream == TK_DEFAULT_STREAM) return tk_sum(x, TK_ALL_AXES, TK_DROPDIMS);
    tk_array column = tk_reshape(x, TK_SHAPE(tk_array_size(x), 1));
    return tk_reshape(tk_kernel_column_sum(column, NULL), TK_SCALAR);
}

static inline tk_status mlp_loss(void *self, const tk_array *args, size_t n_args,
                                 tk_arrays *results) {
    const small_mlp *m = self;
    (void)n_args;
    tk_array zero = tk_scalar(m->context, 0);
    tk_array hidden = tk_maximum(mlp_product(m, m->x, args[0]), zero);
    tk_array out = mlp_product(m, mlp_norm(m, hidden, args[2]), args[1]);
    tk_array error = tk_subtract(tk_astype(out, TK_FLOAT32), m->target);
    tk_array loss = tk_multiply(mlp_sum(m, tk_multiply(error, error)),
                                tk_scalar(m->context, 1.0 / (MLP_ROWS * MLP_WIDTH)));
    return tk_arrays_push(results, loss);
}

/* The same numbers for every device. */
static inline void mlp_begin(small_mlp *m, tk_context *context, tk_stream_id stream) {
    tk_random_seed(context, 7);
    m->context = context;
    m->stream = stream;
    tk_shape square = TK_SHAPE(MLP_WIDTH, MLP_WIDTH), rows = TK_SHAPE(MLP_ROWS, MLP_WIDTH);
    tk_array arrays[] = {tk_random_normal(context, rows, TK_FLOAT16, 0, 1, TK_NO_ARRAY),
                         tk_random_normal(context, rows, TK_FLOAT32, 0, 1, TK_NO_ARRAY),
                         tk_random_normal(context, square, TK_FLOAT16, 0, 0.2, TK_NO_ARRAY),
                         tk_random_normal(context, square, TK_FLOAT16, 0, 0.2, TK_NO_ARRAY),
                         tk_ones(context, TK_SHAPE(MLP_WIDTH), TK_FLOAT16)};
    m->x = tk_keep(tk_to_stream(arrays[0], stream));
    m->target = tk_keep(tk_to_stream(arrays[1], stream));
    for (int i = 0; i < MLP_PARAMS; i++)
        m->params[i] = tk_keep(tk_to_stream(arrays[2 + i], stream));
}

static inline void mlp_end(small_mlp *m) {
    tk_release(m->x);
    tk_release(m->target);
    for (int i = 0; i < MLP_PARAMS; i++) tk_release(m->params[i]);
}

/* The loss before the step. */
static inline double mlp_step(small_mlp *m) {
    static const int argnums[] = {0, 1, 2};
    tk_scope scope = tk_scope_open(m->context);
    tk_arrays values = {0}, gradients = {0};
    tk_array updated[MLP_PARAMS];
    double loss = 0;
    assert_ok(tk_value_and_grad(m->context, mlp_loss, m, m->params, MLP_PARAMS, argnums, MLP_PARAMS,
                                &values, &gradients));
    for (int i = 0; i < MLP_PARAMS; i++)
        updated[i] = tk_keep(
            tk_subtract(m->params[i], tk_multiply(gradients.items[i], tk_scalar(m->context, 0.5))));
    assert_ok(tk_eval_all(updated, MLP_PARAMS));
    assert_ok(tk_item(values.items[0], &loss));
    for (int i = 0; i < MLP_PARAMS; i++) {
        tk_release(m->params[i]);
        m->params[i] = updated[i];
    }
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    tk_scope_close(scope);
    return loss;
}

/* Trains on two devices and compares the losses of each step. */
static inline void mlp_follow(tk_context *context, tk_stream_id stream, int steps) {
    small_mlp here, there;
    double first = 0, last = 0;
    tk_scope scope = tk_scope_open(context);
    mlp_begin(&here, context, TK_DEFAULT_STREAM);
    mlp_begin(&there, context, stream);
    for (int i = 0; i < steps; i++) {
        double expected = mlp_step(&here), got = mlp_step(&there);
        double difference = got > expected ? got - expected : expected - got;
        if (!(difference <= 0.01 * expected))
            fail_msg("step %d: the loss is %g, expected %g", i, got, expected);
        if (i == 0) first = got;
        last = got;
    }
    assert_true(last < 0.9 * first);
    mlp_end(&here);
    mlp_end(&there);
    tk_scope_close(scope);
}

#endif
