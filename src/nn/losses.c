/* Losses; see tiki/nn.h. Each is one expression and a reduction. */
#include <math.h>

#include "tiki/nn.h"

static tk_array number(tk_array like, double value) {
    return tk_scalar(tk_array_context(like), value);
}

static tk_array reduce(tk_array loss, tk_reduction reduction) {
    if (reduction == TK_REDUCE_MEAN) return tk_mean(loss, TK_ALL_AXES, TK_DROPDIMS);
    if (reduction == TK_REDUCE_SUM) return tk_sum(loss, TK_ALL_AXES, TK_DROPDIMS);
    if (reduction == TK_REDUCE_NONE) return loss;
    return tk_error_array(tk_array_context(loss),
                          tk_error_set(TK_INVALID_ARGUMENT,
                                       "argument `reduction` is %d, which is no tk_reduction: "
                                       "expected 0 to %d",
                                       (int)reduction, (int)TK_REDUCE_SUM));
}

static tk_array sum_along(tk_array x, int64_t axis) {
    return tk_sum(x, TK_AXES(axis), TK_DROPDIMS);
}

/* x at class targets along an axis. */
static tk_array pick(tk_array x, tk_array targets, int64_t axis) {
    tk_array at = tk_take_along_axis(x, tk_expand_dims(targets, TK_AXES(axis)), axis);
    return tk_squeeze(at, TK_AXES(axis));
}

static tk_array smoothed(tk_array logits, tk_array loss, tk_array lse, int64_t axis,
                         double smoothing) {
    if (smoothing == 0) return loss;
    tk_array mean = tk_mean(logits, TK_AXES(axis), TK_DROPDIMS);
    tk_array uniform = tk_subtract(lse, mean);
    return tk_add(tk_multiply(number(loss, 1 - smoothing), loss),
                  tk_multiply(number(loss, smoothing), uniform));
}

tk_array tk_loss_cross_entropy(tk_array logits, tk_array targets, tk_array weights, int64_t axis,
                               double label_smoothing, tk_reduction reduction) {
    bool classes = tk_array_rank(targets) != tk_array_rank(logits);
    bool fused =
        classes && label_smoothing == 0 && (axis == -1 || axis == tk_array_rank(logits) - 1);
    tk_array loss;
    if (fused) {
        loss = tk_cross_entropy(logits, targets);
    } else {
        if (!classes) /* weights that do not sum to 1 meet logits below 0, as in MLX */
            logits =
                tk_subtract(logits, tk_stop_gradient(tk_max(logits, TK_AXES(axis), TK_KEEPDIMS)));
        tk_array lse = tk_logsumexp(logits, TK_AXES(axis), TK_DROPDIMS);
        tk_array score =
            classes ? pick(logits, targets, axis) : sum_along(tk_multiply(logits, targets), axis);
        loss = smoothed(logits, tk_subtract(lse, score), lse, axis, label_smoothing);
    }
    return reduce(weights.node ? tk_multiply(loss, weights) : loss, reduction);
}

tk_array tk_loss_binary_cross_entropy(tk_array inputs, tk_array targets, tk_array weights,
                                      bool with_logits, tk_reduction reduction) {
    tk_array loss;
    if (with_logits) {
        loss = tk_subtract(tk_logaddexp(number(inputs, 0), inputs), tk_multiply(inputs, targets));
    } else {
        tk_array one = number(inputs, 1);
        tk_array yes = tk_clip(tk_log(inputs), number(inputs, -100), TK_NO_ARRAY);
        tk_array no = tk_clip(tk_log(tk_subtract(one, inputs)), number(inputs, -100), TK_NO_ARRAY);
        loss = tk_negative(
            tk_add(tk_multiply(targets, yes), tk_multiply(tk_subtract(one, targets), no)));
    }
    return reduce(weights.node ? tk_multiply(loss, weights) : loss, reduction);
}

tk_array tk_loss_l1(tk_array predictions, tk_array targets, tk_reduction reduction) {
    return reduce(tk_abs(tk_subtract(predictions, targets)), reduction);
}

tk_array tk_loss_mse(tk_array predictions, tk_array targets, tk_reduction reduction) {
    return reduce(tk_square(tk_subtract(predictions, targets)), reduction);
}

tk_array tk_loss_smooth_l1(tk_array predictions, tk_array targets, double beta,
                           tk_reduction reduction) {
    tk_array distance = tk_abs(tk_subtract(predictions, targets)), limit = number(distance, beta);
    tk_array near = tk_divide(tk_multiply(number(distance, 0.5), tk_square(distance)), limit);
    tk_array far = tk_subtract(distance, number(distance, 0.5 * beta));
    return reduce(tk_where(tk_less(distance, limit), near, far), reduction);
}

tk_array tk_loss_huber(tk_array inputs, tk_array targets, double delta, tk_reduction reduction) {
    tk_array distance = tk_abs(tk_subtract(inputs, targets)), limit = number(distance, delta);
    tk_array near = tk_multiply(number(distance, 0.5), tk_square(distance));
    tk_array far = tk_multiply(limit, tk_subtract(distance, number(distance, 0.5 * delta)));
    return reduce(tk_where(tk_less_equal(distance, limit), near, far), reduction);
}

tk_array tk_loss_log_cosh(tk_array inputs, tk_array targets, tk_reduction reduction) {
    tk_array error = tk_subtract(inputs, targets);
    tk_array sum = tk_logaddexp(error, tk_negative(error));
    return reduce(tk_subtract(sum, number(error, log(2))), reduction);
}

tk_array tk_loss_nll(tk_array inputs, tk_array targets, int64_t axis, tk_reduction reduction) {
    return reduce(tk_negative(pick(inputs, targets, axis)), reduction);
}

tk_array tk_loss_kl_div(tk_array inputs, tk_array targets, int64_t axis, tk_reduction reduction) {
    return reduce(sum_along(tk_multiply(tk_exp(targets), tk_subtract(targets, inputs)), axis),
                  reduction);
}

tk_array tk_loss_gaussian_nll(tk_array inputs, tk_array targets, tk_array vars, bool full,
                              double eps, tk_reduction reduction) {
    tk_array wide = tk_maximum(vars, number(vars, eps));
    tk_array fit = tk_divide(tk_square(tk_subtract(targets, inputs)), wide);
    tk_array loss = tk_multiply(number(vars, 0.5), tk_add(tk_log(wide), fit));
    if (full) loss = tk_add(loss, number(vars, 0.5 * log(2 * 3.14159265358979323846)));
    return reduce(loss, reduction);
}

tk_array tk_loss_hinge(tk_array inputs, tk_array targets, tk_reduction reduction) {
    tk_array margin = tk_subtract(number(inputs, 1), tk_multiply(inputs, targets));
    return reduce(tk_maximum(margin, number(inputs, 0)), reduction);
}

static tk_array length_along(tk_array x, int64_t axis) {
    return tk_sqrt(sum_along(tk_square(x), axis));
}

tk_array tk_loss_cosine_similarity(tk_array x1, tk_array x2, int64_t axis, double eps,
                                   tk_reduction reduction) {
    tk_array lengths = tk_multiply(length_along(x1, axis), length_along(x2, axis));
    tk_array product = sum_along(tk_multiply(x1, x2), axis);
    return reduce(tk_divide(product, tk_maximum(lengths, number(lengths, eps))), reduction);
}

tk_array tk_loss_margin_ranking(tk_array inputs1, tk_array inputs2, tk_array targets, double margin,
                                tk_reduction reduction) {
    tk_array lead = tk_multiply(targets, tk_subtract(inputs1, inputs2));
    tk_array loss = tk_subtract(number(lead, margin), lead);
    return reduce(tk_maximum(loss, number(loss, 0)), reduction);
}

static tk_array distance_along(tk_array x, tk_array y, int64_t axis, int p, double eps) {
    tk_array power = tk_power(tk_abs(tk_subtract(x, y)), number(x, p));
    return tk_power(tk_add(sum_along(power, axis), number(x, eps)), number(x, 1.0 / p));
}

tk_array tk_loss_triplet(tk_array anchors, tk_array positives, tk_array negatives, int64_t axis,
                         int p, double margin, double eps, tk_reduction reduction) {
    tk_array near = distance_along(anchors, positives, axis, p, eps);
    tk_array far = distance_along(anchors, negatives, axis, p, eps);
    tk_array loss = tk_add(tk_subtract(near, far), number(near, margin));
    return reduce(tk_maximum(loss, number(loss, 0)), reduction);
}
