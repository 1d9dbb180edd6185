/* Layers and initial values; see tiki/nn.h. */
#include <math.h>

#include "tiki/nn.h"

static tk_array number(tk_array like, double value) {
    return tk_scalar(tk_array_context(like), value);
}

tk_array tk_nn_linear(tk_array x, tk_array weight, tk_array bias) {
    tk_array y = tk_matmul(x, tk_transpose(weight, TK_ALL_AXES));
    return bias.node ? tk_add(y, bias) : y;
}

tk_array tk_nn_embedding(tk_array weight, tk_array tokens) { return tk_take(weight, tokens, 0); }

tk_array tk_nn_dropout(tk_array x, double p, tk_array key) {
    if (!(p >= 0 && p < 1))
        return tk_error_array(
            tk_array_context(x),
            tk_error_set(TK_INVALID_ARGUMENT, "dropout: p is %g, expected from 0 to below 1", p));
    if (p == 0) return tk_contiguous(x);
    tk_array kept = tk_random_bernoulli(number(x, 1 - p), tk_array_shape(x), key);
    tk_array scaled = tk_multiply(number(x, 1 / (1 - p)), tk_astype(kept, tk_array_dtype(x)));
    return tk_multiply(scaled, x);
}

tk_array tk_nn_swiglu(tk_array gate, tk_array up) { return tk_multiply(tk_silu(gate), up); }

/* ---- initial values ---- */

tk_array tk_init_normal(tk_context *context, tk_shape shape, tk_dtype dtype, double mean,
                        double std, tk_array key) {
    return tk_random_normal(context, shape, dtype, mean, std, key);
}

tk_array tk_init_uniform(tk_context *context, tk_shape shape, tk_dtype dtype, double low,
                         double high, tk_array key) {
    return tk_random_uniform(context, low, high, shape, dtype, key);
}

/* Both fans, or false (and *out_error an array with the error) for fewer than two axes. */
static bool fans(tk_context *context, tk_shape shape, double *out_in, double *out_out,
                 tk_array *out_error) {
    if (shape.count < 2) {
        tk_status status = tk_error_set(
            TK_SHAPE_ERROR, "an initial value by fans needs two axes or more, %lld given",
            (long long)shape.count);
        *out_error = tk_error_array(context, status);
        return false;
    }
    double field = 1;
    for (int64_t i = 1; i + 1 < shape.count; i++) field *= (double)shape.items[i];
    *out_in = (double)shape.items[shape.count - 1] * field;
    *out_out = (double)shape.items[0] * field;
    return true;
}

tk_array tk_init_glorot_normal(tk_context *context, tk_shape shape, tk_dtype dtype, double gain,
                               tk_array key) {
    double in, out;
    tk_array error;
    if (!fans(context, shape, &in, &out, &error)) return error;
    return tk_init_normal(context, shape, dtype, 0, gain * sqrt(2 / (in + out)), key);
}

tk_array tk_init_glorot_uniform(tk_context *context, tk_shape shape, tk_dtype dtype, double gain,
                                tk_array key) {
    double in, out;
    tk_array error;
    if (!fans(context, shape, &in, &out, &error)) return error;
    double limit = gain * sqrt(6 / (in + out));
    return tk_init_uniform(context, shape, dtype, -limit, limit, key);
}

tk_array tk_init_he_normal(tk_context *context, tk_shape shape, tk_dtype dtype, bool fan_out,
                           double gain, tk_array key) {
    double in, out;
    tk_array error;
    if (!fans(context, shape, &in, &out, &error)) return error;
    return tk_init_normal(context, shape, dtype, 0, gain / sqrt(fan_out ? out : in), key);
}

tk_array tk_init_he_uniform(tk_context *context, tk_shape shape, tk_dtype dtype, bool fan_out,
                            double gain, tk_array key) {
    double in, out;
    tk_array error;
    if (!fans(context, shape, &in, &out, &error)) return error;
    double limit = gain * sqrt(3 / (fan_out ? out : in));
    return tk_init_uniform(context, shape, dtype, -limit, limit, key);
}
