/* Activations that are not ops themselves; see tiki/nn.h. Each is one expression of ops, so
 * gradient and batching rules follow from theirs. */
#include "tiki/nn.h"

static tk_array number(tk_array like, double value) {
    return tk_scalar(tk_array_context(like), value);
}

/* A weak integer: what stands beside it keeps its dtype. */
static tk_array zero_of(tk_array like) { return tk_scalar_int(tk_array_context(like), 0); }

static tk_array times(double factor, tk_array x) { return tk_multiply(number(x, factor), x); }

/* x cut to [low, high] */
static tk_array between(tk_array x, double low, double high) {
    return tk_minimum(tk_maximum(x, number(x, low)), number(x, high));
}

tk_array tk_nn_relu2(tk_array x) { return tk_square(tk_relu(x)); }

tk_array tk_nn_relu6(tk_array x) { return between(x, 0, 6); }

tk_array tk_nn_leaky_relu(tk_array x, double slope) { return tk_maximum(times(slope, x), x); }

tk_array tk_nn_prelu(tk_array x, tk_array slope) {
    tk_array zero = number(x, 0);
    return tk_add(tk_maximum(zero, x), tk_multiply(slope, tk_minimum(zero, x)));
}

/* The exponential of what is not above 0 only: an infinite one that is not chosen would make the
 * slope NaN. */
tk_array tk_nn_elu(tk_array x, double alpha) {
    tk_array is_above = tk_greater(x, number(x, 0)), cut = tk_where(is_above, number(x, 0), x);
    tk_array below = times(alpha, tk_subtract(tk_exp(cut), number(x, 1)));
    return tk_where(is_above, x, below);
}

tk_array tk_nn_celu(tk_array x, double alpha) {
    tk_array zero = number(x, 0), cut = tk_minimum(x, zero);
    tk_array below = tk_subtract(tk_exp(tk_divide(cut, number(x, alpha))), number(x, 1));
    return tk_add(tk_maximum(x, zero), times(alpha, below));
}

tk_array tk_nn_selu(tk_array x) { return times(1.0507, tk_nn_elu(x, 1.67326)); }

tk_array tk_nn_softsign(tk_array x) { return tk_divide(x, tk_add(number(x, 1), tk_abs(x))); }

tk_array tk_nn_softshrink(tk_array x, double lambda) {
    tk_array outside = tk_greater(tk_abs(x), number(x, lambda));
    return tk_where(outside, tk_subtract(x, times(lambda, tk_sign(x))), number(x, 0));
}

tk_array tk_nn_hard_shrink(tk_array x, double lambda) {
    return tk_where(tk_greater(tk_abs(x), number(x, lambda)), x, zero_of(x));
}

tk_array tk_nn_hard_tanh(tk_array x, double low, double high) { return between(x, low, high); }

tk_array tk_nn_hardswish(tk_array x) {
    tk_array gate = between(tk_add(x, number(x, 3)), 0, 6);
    return tk_divide(tk_multiply(x, gate), number(x, 6));
}

tk_array tk_nn_log_sigmoid(tk_array x) { return tk_negative(tk_softplus(tk_negative(x))); }

tk_array tk_nn_gelu_fast_approx(tk_array x) { return tk_multiply(x, tk_sigmoid(times(1.702, x))); }

tk_array tk_nn_mish(tk_array x) { return tk_multiply(x, tk_tanh(tk_softplus(x))); }

tk_array tk_nn_step(tk_array x, double threshold) {
    return tk_astype(tk_greater_equal(x, number(x, threshold)), TK_INT32);
}

tk_array tk_nn_glu(tk_array x, int64_t axis) {
    tk_arrays halves = {0};
    tk_status status = tk_split_equal(x, 2, axis, &halves);
    tk_array result = status == TK_OK ? tk_multiply(halves.items[0], tk_sigmoid(halves.items[1]))
                                      : tk_error_array(tk_array_context(x), status);
    tk_arrays_clear(&halves);
    return result;
}

tk_array tk_nn_softmin(tk_array x, int64_t axis) {
    return tk_softmax(tk_negative(x), TK_AXES(axis));
}
