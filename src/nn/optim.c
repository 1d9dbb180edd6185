/* The optimizer as an object: the state tree, a step over all parameters, schedules, clipping. */
#include "tiki/optim.h"
#include "nn/need.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/optim_rules.h"

#define NAME_BYTES 512

struct tk_optimizer {
    tk_context *context;
    tk_optimizer_options options;
    tk_tree *state;
};

tk_optimizer_options tk_optimizer_defaults(tk_optimizer_kind kind) {
    if ((unsigned)kind >= TK_OPTIMIZER_COUNT) kind = TK_OPTIMIZER_ADAMW;
    return tk_rules[kind].defaults;
}

const char *tk_optimizer_name(tk_optimizer_kind kind) {
    return (unsigned)kind < TK_OPTIMIZER_COUNT ? tk_rules[kind].name : NULL;
}

tk_status tk_optimizer_find(const char *name, tk_optimizer_kind *out_kind) {
    NN_NEED(name);
    NN_NEED(out_kind);
    for (int kind = 0; kind < TK_OPTIMIZER_COUNT; kind++) {
        if (strcmp(name, tk_rules[kind].name) != 0) continue;
        *out_kind = (tk_optimizer_kind)kind;
        return TK_OK;
    }
    return tk_error_set(
        TK_NOT_FOUND,
        "unknown optimizer \"%.40s\": expected sgd, rmsprop, adagrad, adadelta, adam, adamw, "
        "adamax, lion, adafactor or muon",
        name);
}

/* ---- life ---- */

typedef struct range {
    const char *field;
    double value, low, high; /* low <= value < high */
} range;

static tk_status check_options(const tk_optimizer_options *o) {
    if (o->size != sizeof *o)
        return tk_error_set(TK_INVALID_ARGUMENT, "tk_optimizer_options.size is %zu, expected %zu",
                            o->size, sizeof *o);
    if ((unsigned)o->kind >= TK_OPTIMIZER_COUNT)
        return tk_error_set(
            TK_INVALID_ARGUMENT,
            "argument `kind` is %d, which is no tk_optimizer_kind: expected 0 to %d", (int)o->kind,
            TK_OPTIMIZER_COUNT - 1);
    const range ranges[] = {
        {"learning_rate", o->learning_rate, 0, INFINITY},
        {"beta1", o->beta1, 0, 1},
        {"beta2", o->beta2, 0, 1},
        {"epsilon", o->epsilon, 0, INFINITY},
        {"weight_decay", o->weight_decay, 0, INFINITY},
        {"momentum", o->momentum, 0, INFINITY},
        {"dampening", o->dampening, 0, INFINITY},
        {"newton_steps", o->newton_steps, 0, 1000},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value < ranges[i].high))
            return tk_error_set(TK_INVALID_ARGUMENT,
                                "%s of an optimizer is %g, expected %g or more and below %g",
                                ranges[i].field, ranges[i].value, ranges[i].low, ranges[i].high);
    return TK_OK;
}

static tk_status reset(tk_optimizer *optimizer) {
    tk_context *context = optimizer->context;
    tk_tree_clear(optimizer->state);
    tk_scope scope = tk_scope_open(context);
    tk_array step = tk_zeros(context, TK_SCALAR, TK_UINT64);
    tk_status status = tk_tree_set(optimizer->state, "step", step);
    if (status == TK_OK)
        status = tk_optimizer_set_rate(optimizer, optimizer->options.learning_rate);
    tk_scope_close(scope);
    return status;
}

tk_status tk_optimizer_create(tk_context *context, const tk_optimizer_options *options,
                              tk_optimizer **out_optimizer) {
    NN_NEED(context);
    NN_NEED(options);
    NN_NEED(out_optimizer);
    tk_status status = check_options(options);
    if (status != TK_OK) return status;
    tk_optimizer *optimizer = calloc(1, sizeof *optimizer);
    if (optimizer) optimizer->state = tk_tree_new();
    if (!optimizer || !optimizer->state) {
        tk_optimizer_free(optimizer);
        return tk_error_set(TK_OUT_OF_MEMORY, "no memory for an optimizer");
    }
    optimizer->context = context;
    optimizer->options = *options;
    status = reset(optimizer);
    if (status != TK_OK) {
        tk_optimizer_free(optimizer);
        return status;
    }
    *out_optimizer = optimizer;
    return TK_OK;
}

void tk_optimizer_free(tk_optimizer *optimizer) {
    if (!optimizer) return;
    tk_tree_free(optimizer->state);
    free(optimizer);
}

tk_tree *tk_optimizer_state(tk_optimizer *optimizer) { return optimizer ? optimizer->state : NULL; }

tk_status tk_optimizer_set_rate(tk_optimizer *optimizer, double learning_rate) {
    NN_NEED(optimizer);
    tk_scope scope = tk_scope_open(optimizer->context);
    tk_array rate = tk_astype(tk_scalar(optimizer->context, learning_rate), TK_FLOAT32);
    tk_status status = tk_tree_set(optimizer->state, "learning_rate", rate);
    tk_scope_close(scope);
    return status;
}

tk_status tk_optimizer_set_rate_array(tk_optimizer *optimizer, tk_array learning_rate) {
    NN_NEED(optimizer);
    tk_status status = tk_array_status(learning_rate);
    if (status != TK_OK) return status;
    if (tk_array_rank(learning_rate) != 0)
        return tk_error_set(TK_SHAPE_ERROR, "the learning rate has %d axes, expected a scalar",
                            tk_array_rank(learning_rate));
    return tk_tree_set(optimizer->state, "learning_rate", learning_rate);
}

/* ---- states ---- */

static tk_status state_name(char *text, const char *parameter, const char *state) {
    if ((size_t)snprintf(text, NAME_BYTES, "%s.%s", parameter, state) < NAME_BYTES) return TK_OK;
    return tk_error_set(TK_INVALID_ARGUMENT, "the name \"%.60s...\" is longer than %d bytes",
                        parameter, NAME_BYTES);
}

/* The state's shape, or false when this parameter has none of it: Adafactor keeps rows and columns
 * for matrices and everything for vectors, and a first moment only when beta1 is set. */
static bool state_shape(const tk_optimizer_options *options, int index, tk_shape shape,
                        tk_shape *out_shape) {
    *out_shape = shape;
    if (options->kind == TK_OPTIMIZER_SGD) return options->momentum > 0;
    if (options->kind != TK_OPTIMIZER_ADAFACTOR) return true;
    if (index == 2) return options->beta1 > 0;
    if (index == 3 || shape.count < 2) return index == 3 && shape.count < 2;
    int64_t dropped = shape.count - 1 - index;
    for (int64_t i = dropped; i + 1 < shape.count; i++) out_shape->items[i] = shape.items[i + 1];
    out_shape->count--;
    return true;
}

/* The state as it is, or zeros. */
static tk_status get_state(tk_optimizer *optimizer, const char *parameter, tk_array value,
                           int index, tk_array *out_state) {
    const char *state = tk_rules[optimizer->options.kind].states[index];
    char name[NAME_BYTES];
    tk_shape shape;
    *out_state = TK_NO_ARRAY;
    if (!state || !state_shape(&optimizer->options, index, tk_array_shape(value), &shape))
        return TK_OK;
    tk_status status = state_name(name, parameter, state);
    if (status != TK_OK) return status;
    size_t at = tk_tree_find(optimizer->state, name);
    if (at < tk_tree_count(optimizer->state))
        *out_state = tk_tree_at(optimizer->state, at);
    else
        *out_state = tk_zeros(optimizer->context, shape, tk_array_dtype(value));
    return tk_array_status(*out_state);
}

static tk_status set_state(tk_optimizer *optimizer, const char *parameter, int index,
                           tk_array value) {
    char name[NAME_BYTES];
    if (!value.node) return TK_OK;
    tk_status status = state_name(name, parameter, tk_rules[optimizer->options.kind].states[index]);
    return status == TK_OK ? tk_tree_set(optimizer->state, name, value) : status;
}

tk_status tk_optimizer_init(tk_optimizer *optimizer, const tk_tree *parameters) {
    NN_NEED(optimizer);
    NN_NEED(parameters);
    tk_status status = reset(optimizer);
    tk_scope scope = tk_scope_open(optimizer->context);
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(parameters); i++) {
        for (int k = 0; status == TK_OK && k < TK_MAX_STATES; k++) {
            tk_array state;
            status = get_state(optimizer, tk_tree_name(parameters, i), tk_tree_at(parameters, i), k,
                               &state);
            if (status == TK_OK)
                status = set_state(optimizer, tk_tree_name(parameters, i), k, state);
        }
    }
    tk_scope_close(scope);
    return status;
}

/* ---- a step ---- */

static tk_status check_gradient(const char *name, tk_array parameter, tk_array gradient) {
    tk_status status = tk_array_status(gradient);
    if (status != TK_OK) return status;
    tk_shape p = tk_array_shape(parameter), g = tk_array_shape(gradient);
    bool same = p.count == g.count;
    for (int64_t i = 0; same && i < p.count; i++) same = p.items[i] == g.items[i];
    if (same) return TK_OK;
    return tk_error_set(TK_SHAPE_ERROR,
                        "the gradient of \"%.200s\" does not have the parameter's shape", name);
}

static tk_status update_one(tk_optimizer *optimizer, tk_tree *parameters, size_t index,
                            tk_array gradient, tk_array rate, tk_array step) {
    const char *name = tk_tree_name(parameters, index);
    tk_array parameter = tk_tree_at(parameters, index);
    tk_update update = {.context = optimizer->context,
                        .options = &optimizer->options,
                        .parameter = parameter,
                        .gradient = gradient,
                        .rate = tk_astype(rate, tk_array_dtype(gradient)),
                        .step = step};
    tk_status status = TK_OK;
    for (int k = 0; status == TK_OK && k < TK_MAX_STATES; k++)
        status = get_state(optimizer, name, parameter, k, &update.states[k]);
    if (status != TK_OK) return status;
    tk_array next = tk_rules[optimizer->options.kind].apply(&update);
    status = tk_array_status(next);
    for (int k = 0; status == TK_OK && k < TK_MAX_STATES; k++)
        status = set_state(optimizer, name, k, update.states[k]);
    return status == TK_OK ? tk_tree_set_at(parameters, index, next) : status;
}

/* All of them before any state changes. */
static tk_status check_gradients(const tk_tree *parameters, const tk_tree *gradients) {
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(parameters); i++) {
        size_t at = tk_tree_find(gradients, tk_tree_name(parameters, i));
        if (at < tk_tree_count(gradients))
            status = check_gradient(tk_tree_name(parameters, i), tk_tree_at(parameters, i),
                                    tk_tree_at(gradients, at));
    }
    return status;
}

tk_status tk_optimizer_step(tk_optimizer *optimizer, tk_tree *parameters,
                            const tk_tree *gradients) {
    NN_NEED(optimizer);
    NN_NEED(parameters);
    NN_NEED(gradients);
    tk_status status = check_gradients(parameters, gradients);
    if (status != TK_OK) return status;
    tk_scope scope = tk_scope_open(optimizer->context);
    tk_array step =
        tk_add(tk_tree_get(optimizer->state, "step"), tk_scalar_int(optimizer->context, 1));
    tk_array rate = tk_tree_get(optimizer->state, "learning_rate"),
             as_float = tk_astype(step, TK_FLOAT32);
    status = tk_tree_set(optimizer->state, "step", step);
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(parameters); i++) {
        size_t at = tk_tree_find(gradients, tk_tree_name(parameters, i));
        if (at == tk_tree_count(gradients)) continue;
        status = update_one(optimizer, parameters, i, tk_tree_at(gradients, at), rate, as_float);
    }
    tk_scope_close(scope);
    return status;
}

/* ---- schedules ---- */

double tk_schedule_constant(double rate) { return rate; }

static double progress(int64_t steps, int64_t step) {
    return steps <= 0 || step >= steps ? 1 : step <= 0 ? 0 : (double)step / (double)steps;
}

double tk_schedule_linear(double first, double last, int64_t steps, int64_t step) {
    return first + (last - first) * progress(steps, step);
}

double tk_schedule_cosine(double first, double last, int64_t steps, int64_t step) {
    const double pi = 3.14159265358979323846;
    return last + (first - last) * 0.5 * (1 + cos(pi * progress(steps, step)));
}

double tk_schedule_exponential(double first, double rate, int64_t step) {
    return first * pow(rate, (double)step);
}

double tk_schedule_steps(double first, double rate, int64_t period, int64_t step) {
    return first * pow(rate, (double)(period > 0 ? step / period : step));
}

/* ---- gradients ---- */

tk_array tk_global_norm(tk_context *context, const tk_tree *gradients) {
    if (!gradients) return tk_error_array(context, nn_fail_null("gradients"));
    tk_array sum = tk_zeros(context, TK_SCALAR, TK_FLOAT32);
    for (size_t i = 0; i < tk_tree_count(gradients); i++) {
        tk_array wide = tk_astype(tk_tree_at(gradients, i), TK_FLOAT32);
        sum = tk_add(sum, tk_sum(tk_square(wide), TK_ALL_AXES, TK_DROPDIMS));
    }
    return tk_sqrt(sum);
}

tk_status tk_clip_global_norm(tk_context *context, tk_tree *gradients, double max_norm,
                              tk_array *out_norm) {
    NN_NEED(context);
    NN_NEED(gradients);
    if (!(max_norm >= 0))
        return tk_error_set(TK_INVALID_ARGUMENT, "max_norm is %g, expected 0 or more", max_norm);
    tk_scope scope = tk_scope_open(context);
    tk_array norm = tk_global_norm(context, gradients);
    tk_array factor =
        tk_minimum(tk_divide(tk_scalar(context, max_norm), tk_add(norm, tk_scalar(context, 1e-6))),
                   tk_scalar(context, 1));
    tk_status status = tk_array_status(factor);
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(gradients); i++) {
        tk_array gradient = tk_tree_at(gradients, i);
        tk_array scaled = tk_multiply(gradient, factor);
        if (tk_dtype_is_float(tk_array_dtype(gradient)))
            scaled = tk_astype(scaled, tk_array_dtype(gradient));
        status = tk_tree_set_at(gradients, i, scaled);
    }
    norm = tk_keep(norm);
    tk_scope_close(scope);
    if (status == TK_OK && out_norm) {
        *out_norm = norm;
        return TK_OK;
    }
    tk_release(norm);
    return status;
}
