/* The update rules, one function each, in a table with the names of their states and their
 * defaults.
 *
 * A rule is given parameter, gradient and states and returns the next parameter, replacing the
 * states. Scalars such as 1 - beta^step are the same node for every parameter, so they are computed
 * once. */
#include <math.h>
#include <string.h>

#include "nn/optim_rules.h"

static tk_array number(const tk_update *u, double value) { return tk_scalar(u->context, value); }

static tk_array scale(const tk_update *u, double factor, tk_array x) {
    return tk_multiply(number(u, factor), x);
}

/* decay * old + (1 - decay) * new */
static tk_array average(const tk_update *u, double decay, tk_array old, tk_array fresh) {
    return tk_add(scale(u, decay, old), scale(u, 1 - decay, fresh));
}

static tk_array decayed(const tk_update *u, tk_array parameter) {
    if (u->options->weight_decay == 0) return parameter;
    tk_array kept = tk_subtract(number(u, 1), scale(u, u->options->weight_decay, u->rate));
    return tk_multiply(parameter, kept);
}

static tk_array step_back(const tk_update *u, tk_array parameter, tk_array update) {
    return tk_subtract(parameter, tk_multiply(u->rate, update));
}

static tk_array sgd(tk_update *u) {
    const tk_optimizer_options *o = u->options;
    tk_array gradient = u->gradient;
    if (o->weight_decay != 0) gradient = tk_add(gradient, scale(u, o->weight_decay, u->parameter));
    if (o->momentum <= 0) return step_back(u, u->parameter, gradient);
    tk_array fresh = o->dampening > 0 ? scale(u, 1 - o->dampening, gradient) : gradient;
    tk_array velocity = u->states[0] = tk_add(scale(u, o->momentum, u->states[0]), fresh);
    tk_array update = o->nesterov ? tk_add(gradient, scale(u, o->momentum, velocity)) : velocity;
    return step_back(u, u->parameter, update);
}

static tk_array divide_by_root(const tk_update *u, tk_array x, tk_array square) {
    return tk_divide(x, tk_add(tk_sqrt(square), number(u, u->options->epsilon)));
}

static tk_array rmsprop(tk_update *u) {
    u->states[0] = average(u, u->options->decay, u->states[0], tk_square(u->gradient));
    return step_back(u, u->parameter, divide_by_root(u, u->gradient, u->states[0]));
}

static tk_array adagrad(tk_update *u) {
    u->states[0] = tk_add(u->states[0], tk_square(u->gradient));
    return step_back(u, u->parameter, divide_by_root(u, u->gradient, u->states[0]));
}

static tk_array adadelta(tk_update *u) {
    double rho = u->options->decay;
    tk_array epsilon = number(u, u->options->epsilon);
    u->states[0] = average(u, rho, u->states[0], tk_square(u->gradient));
    tk_array ratio =
        tk_divide(tk_sqrt(tk_add(u->states[1], epsilon)), tk_sqrt(tk_add(u->states[0], epsilon)));
    tk_array update = tk_multiply(ratio, u->gradient);
    u->states[1] = average(u, rho, u->states[1], tk_square(update));
    return step_back(u, u->parameter, update);
}

/* 1 - beta^step */
static tk_array correction(const tk_update *u, double beta) {
    return tk_subtract(number(u, 1), tk_power(number(u, beta), u->step));
}

static tk_array adam_from(tk_update *u, tk_array parameter) {
    const tk_optimizer_options *o = u->options;
    tk_array mean = u->states[0] = average(u, o->beta1, u->states[0], u->gradient);
    tk_array square = u->states[1] = average(u, o->beta2, u->states[1], tk_square(u->gradient));
    if (!o->bias_correction) return step_back(u, parameter, divide_by_root(u, mean, square));
    tk_dtype dtype = tk_array_dtype(u->gradient);
    tk_array rate = tk_astype(tk_divide(u->rate, correction(u, o->beta1)), dtype);
    tk_array root = tk_astype(tk_rsqrt(correction(u, o->beta2)), dtype);
    tk_array below = tk_add(tk_multiply(tk_sqrt(square), root), number(u, o->epsilon));
    return tk_subtract(parameter, tk_divide(tk_multiply(rate, mean), below));
}

static tk_array adam(tk_update *u) { return adam_from(u, u->parameter); }
static tk_array adamw(tk_update *u) { return adam_from(u, decayed(u, u->parameter)); }

static tk_array adamax(tk_update *u) {
    const tk_optimizer_options *o = u->options;
    u->states[0] = average(u, o->beta1, u->states[0], u->gradient);
    u->states[1] = tk_maximum(scale(u, o->beta2, u->states[1]), tk_abs(u->gradient));
    tk_array update = tk_divide(u->states[0], tk_add(u->states[1], number(u, o->epsilon)));
    return step_back(u, u->parameter, update);
}

static tk_array lion(tk_update *u) {
    const tk_optimizer_options *o = u->options;
    tk_array direction = average(u, o->beta1, u->states[0], u->gradient);
    u->states[0] = average(u, o->beta2, u->states[0], u->gradient);
    return step_back(u, decayed(u, u->parameter), tk_sign(direction));
}

/* ---- Adafactor ---- */

static tk_array root_mean_square(tk_array x) {
    return tk_sqrt(tk_mean(tk_square(x), TK_ALL_AXES, TK_DROPDIMS));
}

static tk_array adafactor_rate(const tk_update *u) {
    const tk_optimizer_options *o = u->options;
    tk_array rate = u->rate;
    if (o->relative_step) {
        tk_array least = o->warmup_init ? scale(u, 1e-6, u->step) : number(u, 1e-2);
        rate = tk_minimum(least, tk_rsqrt(u->step));
    }
    tk_array size = number(u, 1);
    if (o->scale_parameter)
        size = tk_maximum(number(u, o->epsilon_scale), root_mean_square(u->parameter));
    return tk_astype(tk_multiply(size, rate), tk_array_dtype(u->gradient));
}

/* gradient / sqrt(second moment), the moment as the product of its row and column means. */
static tk_array factored_update(tk_update *u, tk_array square, tk_array beta2) {
    tk_array fresh = tk_subtract(number(u, 1), beta2);
    tk_array row = tk_add(tk_multiply(beta2, u->states[0]),
                          tk_multiply(fresh, tk_mean(square, TK_AXES(-1), TK_DROPDIMS)));
    tk_array column = tk_add(tk_multiply(beta2, u->states[1]),
                             tk_multiply(fresh, tk_mean(square, TK_AXES(-2), TK_DROPDIMS)));
    u->states[0] = row;
    u->states[1] = column;
    tk_array row_factor = tk_rsqrt(tk_divide(row, tk_mean(row, TK_AXES(-1), TK_KEEPDIMS)));
    tk_array factors = tk_multiply(tk_expand_dims(row_factor, TK_AXES(-1)),
                                   tk_expand_dims(tk_rsqrt(column), TK_AXES(-2)));
    return tk_multiply(factors, u->gradient);
}

static tk_array adafactor(tk_update *u) {
    const tk_optimizer_options *o = u->options;
    tk_dtype dtype = tk_array_dtype(u->gradient);
    tk_array rate = adafactor_rate(u);
    tk_array beta2 =
        tk_astype(tk_subtract(number(u, 1), tk_power(u->step, number(u, o->decay))), dtype);
    tk_array square = tk_add(tk_square(u->gradient), number(u, o->epsilon_square));
    tk_array update;
    if (tk_array_rank(u->gradient) >= 2) {
        update = factored_update(u, square, beta2);
    } else {
        tk_array fresh = tk_subtract(number(u, 1), beta2);
        u->states[3] = tk_add(tk_multiply(beta2, u->states[3]), tk_multiply(fresh, square));
        update = tk_multiply(tk_rsqrt(u->states[3]), u->gradient);
    }
    tk_array excess = tk_divide(root_mean_square(update), number(u, o->clip_threshold));
    update = tk_multiply(rate, tk_divide(update, tk_maximum(number(u, 1), excess)));
    if (o->beta1 > 0) update = u->states[2] = average(u, o->beta1, u->states[2], update);
    tk_array parameter = u->parameter;
    if (o->weight_decay != 0)
        parameter = tk_subtract(parameter, tk_multiply(parameter, scale(u, o->weight_decay, rate)));
    return tk_subtract(parameter, update);
}

/* ---- Muon ---- */

/* The nearest half-orthogonal matrix, by the quintic iteration of Jordan 2024. */
static tk_array orthogonal(const tk_update *u, tk_array x, int steps) {
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    bool tall = tk_array_dim(x, -2) > tk_array_dim(x, -1);
    if (tall) x = tk_swapaxes(x, -1, -2);
    tk_array norm = tk_sqrt(tk_sum(tk_square(x), TK_AXES(-2, -1), TK_KEEPDIMS));
    x = tk_divide(x, tk_add(norm, number(u, 1e-7)));
    for (int i = 0; i < steps; i++) {
        tk_array gram = tk_matmul(x, tk_swapaxes(x, -1, -2));
        tk_array middle = tk_addmm(scale(u, b, gram), gram, gram, c, 1);
        x = tk_addmm(scale(u, a, x), middle, x, 1, 1);
    }
    return tall ? tk_swapaxes(x, -1, -2) : x;
}

static tk_array muon(tk_update *u) {
    const tk_optimizer_options *o = u->options;
    tk_array gradient = u->gradient;
    if (o->weight_decay != 0) gradient = tk_add(gradient, scale(u, o->weight_decay, u->parameter));
    tk_array velocity = u->states[0] = average(u, o->momentum, u->states[0], gradient);
    tk_array update = velocity;
    if (o->nesterov)
        update = tk_add(scale(u, 1 - o->momentum, gradient), scale(u, o->momentum, velocity));
    if (tk_array_rank(update) < 2) return step_back(u, u->parameter, update);
    tk_shape shape = tk_array_shape(update);
    if (shape.count > 2) update = tk_reshape(update, TK_SHAPE(shape.items[0], -1));
    double rows = (double)shape.items[shape.count - 2],
           columns = (double)shape.items[shape.count - 1];
    double grow = columns > 0 && rows > columns ? sqrt(rows / columns) : 1;
    update = scale(u, grow, orthogonal(u, update, o->newton_steps));
    return step_back(u, u->parameter, tk_reshape(update, shape));
}

/* ---- the table ---- */

#define COMMON .size = sizeof(tk_optimizer_options)
const tk_rule tk_rules[TK_OPTIMIZER_COUNT] = {
    [TK_OPTIMIZER_SGD] = {"sgd",
                          sgd,
                          {"v"},
                          {COMMON, .kind = TK_OPTIMIZER_SGD, .learning_rate = 1e-2}},
    [TK_OPTIMIZER_RMSPROP] = {"rmsprop",
                              rmsprop,
                              {"v"},
                              {COMMON, .kind = TK_OPTIMIZER_RMSPROP, .learning_rate = 1e-2,
                               .decay = 0.99, .epsilon = 1e-8}},
    [TK_OPTIMIZER_ADAGRAD] = {"adagrad",
                              adagrad,
                              {"v"},
                              {COMMON, .kind = TK_OPTIMIZER_ADAGRAD, .learning_rate = 1e-2,
                               .epsilon = 1e-8}},
    [TK_OPTIMIZER_ADADELTA] = {"adadelta",
                               adadelta,
                               {"v", "u"},
                               {COMMON, .kind = TK_OPTIMIZER_ADADELTA, .learning_rate = 1,
                                .decay = 0.9, .epsilon = 1e-6}},
    [TK_OPTIMIZER_ADAM] = {"adam",
                           adam,
                           {"m", "v"},
                           {COMMON, .kind = TK_OPTIMIZER_ADAM, .learning_rate = 1e-3, .beta1 = 0.9,
                            .beta2 = 0.999, .epsilon = 1e-8}},
    [TK_OPTIMIZER_ADAMW] = {"adamw",
                            adamw,
                            {"m", "v"},
                            {COMMON, .kind = TK_OPTIMIZER_ADAMW, .learning_rate = 1e-3,
                             .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01}},
    [TK_OPTIMIZER_ADAMAX] = {"adamax",
                             adamax,
                             {"m", "v"},
                             {COMMON, .kind = TK_OPTIMIZER_ADAMAX, .learning_rate = 1e-3,
                              .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}},
    [TK_OPTIMIZER_LION] = {"lion",
                           lion,
                           {"m"},
                           {COMMON, .kind = TK_OPTIMIZER_LION, .learning_rate = 1e-4, .beta1 = 0.9,
                            .beta2 = 0.99}},
    [TK_OPTIMIZER_ADAFACTOR] = {"adafactor",
                                adafactor,
                                {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg", "exp_avg_sq"},
                                {COMMON, .kind = TK_OPTIMIZER_ADAFACTOR, .learning_rate = 1e-3,
                                 .decay = -0.8, .epsilon_square = 1e-30, .epsilon_scale = 1e-3,
                                 .clip_threshold = 1, .scale_parameter = true,
                                 .relative_step = true}},
    [TK_OPTIMIZER_MUON] = {"muon",
                           muon,
                           {"v"},
                           {COMMON, .kind = TK_OPTIMIZER_MUON, .learning_rate = 0.02,
                            .momentum = 0.95, .weight_decay = 0.01, .nesterov = true,
                            .newton_steps = 5}},
};
