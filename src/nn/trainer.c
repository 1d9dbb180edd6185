/* The training step: batch, loss and gradients, clipping, update, one evaluation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/need.h"
#include "tiki/devices.h"
#include "tiki/train.h"
#include "tiki/transforms.h"

struct tk_trainer {
    tk_context *context;
    tk_train_options options;
    tk_batches batches;
    tk_tree *parameters;
    tk_optimizer *optimizer;
    int64_t steps;
};

tk_train_options tk_train_defaults(const tk_model_config *model) {
    tk_train_options options = {.size = sizeof options,
                                .batch = 8,
                                .accumulate = 1,
                                .warmup = 100,
                                .decay = TK_DECAY_CONSTANT,
                                .clip = 1,
                                .dtype = TK_FLOAT32};
    options.optimizer = tk_optimizer_defaults(TK_OPTIMIZER_ADAMW);
    options.optimizer.learning_rate = 3e-4;
    options.optimizer.beta2 = 0.95;
    options.optimizer.weight_decay = 0.1;
    options.optimizer.bias_correction = true;
    if (model) options.model = *model;
    return options;
}

double tk_train_rate(const tk_train_options *o, int64_t step) {
    if (!o) return 0;
    double highest = o->optimizer.learning_rate;
    if (step < o->warmup) return tk_schedule_linear(0, highest, o->warmup, step + 1);
    if (o->decay == TK_DECAY_COSINE)
        return tk_schedule_cosine(highest, highest / 10, o->decay_steps, step - o->warmup);
    if (o->decay == TK_DECAY_LINEAR)
        return tk_schedule_linear(highest, highest / 10, o->decay_steps, step - o->warmup);
    return highest;
}

/* ---- life ---- */

static tk_status check_options(const tk_train_options *o) {
    if (o->size != sizeof *o)
        return tk_error_set(TK_INVALID_ARGUMENT, "tk_train_options.size is %zu, expected %zu",
                            o->size, sizeof *o);
    if (o->accumulate < 1 || o->warmup < 0 || !(o->clip >= 0))
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "accumulate %lld, warmup %lld, clip %g: expected 1 or more, 0 or more, "
                            "0 or more",
                            (long long)o->accumulate, (long long)o->warmup, o->clip);
    if ((unsigned)o->decay > TK_DECAY_LINEAR)
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "argument `decay` is %d, which is no tk_decay: expected 0 to %d",
                            (int)o->decay, (int)TK_DECAY_LINEAR);
    if (o->decay != TK_DECAY_CONSTANT && o->decay_steps < 1)
        return tk_error_set(TK_INVALID_ARGUMENT, "a decay needs decay_steps, %lld given",
                            (long long)o->decay_steps);
    if (!tk_dtype_is_float(o->dtype) || o->dtype == TK_FLOAT64)
        return tk_error_set(TK_DTYPE_ERROR,
                            "training in `dtype` %s (%d), expected float32, bfloat16 or float16",
                            tk_dtype_name(o->dtype), (int)o->dtype);
    return tk_model_config_check(&o->model);
}

static tk_status fill(tk_trainer *t) {
    tk_status status = tk_batches_check(&t->batches);
    t->parameters = tk_tree_new();
    if (status == TK_OK && !t->parameters)
        status = tk_error_set(TK_OUT_OF_MEMORY, "no memory for a trainer");
    if (status == TK_OK)
        status = tk_model_init(t->context, &t->options.model, t->options.seed, t->parameters);
    if (status == TK_OK)
        status = tk_optimizer_create(t->context, &t->options.optimizer, &t->optimizer);
    if (status == TK_OK) status = tk_optimizer_init(t->optimizer, t->parameters);
    return status;
}

tk_status tk_trainer_create(tk_context *context, const tk_train_options *options,
                            const unsigned char *bytes, int64_t size, tk_trainer **out_trainer) {
    NN_NEED(context);
    NN_NEED(options);
    NN_NEED(bytes);
    NN_NEED(out_trainer);
    tk_status status = check_options(options);
    if (status != TK_OK) return status;
    tk_trainer *trainer = calloc(1, sizeof *trainer);
    if (!trainer) return tk_error_set(TK_OUT_OF_MEMORY, "no memory for a trainer");
    trainer->context = context;
    trainer->options = *options;
    trainer->batches =
        (tk_batches){bytes, size, options->model.context, options->batch, options->seed};
    status = fill(trainer);
    if (status != TK_OK) {
        tk_trainer_free(trainer);
        return status;
    }
    *out_trainer = trainer;
    return TK_OK;
}

void tk_trainer_free(tk_trainer *trainer) {
    if (!trainer) return;
    tk_tree_free(trainer->parameters);
    tk_optimizer_free(trainer->optimizer);
    free(trainer);
}

const tk_model_config *tk_trainer_model(const tk_trainer *trainer) {
    return trainer ? &trainer->options.model : NULL;
}

int64_t tk_trainer_steps(const tk_trainer *trainer) { return trainer ? trainer->steps : 0; }
const tk_tree *tk_trainer_parameters(const tk_trainer *trainer) {
    return trainer ? trainer->parameters : NULL;
}
const tk_tree *tk_trainer_state(const tk_trainer *trainer) {
    return trainer ? tk_optimizer_state(trainer->optimizer) : NULL;
}

/* ---- trees ---- */

/* Names of one tree with the arrays of a list, or its own arrays. */
static tk_status fill_tree(tk_tree *tree, const tk_tree *names, const tk_array *arrays) {
    tk_status status = TK_OK;
    tk_tree_clear(tree);
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(names); i++)
        status =
            tk_tree_set(tree, tk_tree_name(names, i), arrays ? arrays[i] : tk_tree_at(names, i));
    return status;
}

/* Each array of `own` has one of its name, shape and dtype in `given`. */
static tk_status check_same_types(const tk_tree *own, const tk_tree *given) {
    for (size_t i = 0; i < tk_tree_count(own); i++) {
        tk_array mine = tk_tree_at(own, i), other = tk_tree_get(given, tk_tree_name(own, i));
        if (!other.node) return TK_NOT_FOUND;
        tk_shape a = tk_array_shape(mine), b = tk_array_shape(other);
        bool same = a.count == b.count && tk_array_dtype(mine) == tk_array_dtype(other);
        for (int64_t k = 0; same && k < a.count; k++) same = a.items[k] == b.items[k];
        if (!same)
            return tk_error_set(TK_SHAPE_ERROR,
                                "\"%s\" of the checkpoint does not have the shape and dtype of "
                                "this model's",
                                tk_tree_name(own, i));
    }
    return TK_OK;
}

/* The arrays of `given`, on the devices where those of `own` are. */
static tk_status take_tree(tk_tree *own, const tk_tree *given) {
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(own); i++) {
        tk_array other = tk_tree_get(given, tk_tree_name(own, i));
        tk_stream_id stream = tk_array_stream(tk_tree_at(own, i));
        status = tk_tree_set_at(own, i, tk_to_stream(other, stream));
    }
    return status;
}

tk_status tk_trainer_restore(tk_trainer *trainer, const tk_tree *parameters, const tk_tree *state,
                             int64_t step) {
    NN_NEED(trainer);
    NN_NEED(parameters);
    NN_NEED(state);
    if (step < 0)
        return tk_error_set(TK_INVALID_ARGUMENT, "step %lld, expected 0 or more", (long long)step);
    tk_status status = check_same_types(trainer->parameters, parameters);
    if (status == TK_OK) status = check_same_types(tk_trainer_state(trainer), state);
    if (status != TK_OK) return status;
    tk_scope scope = tk_scope_open(trainer->context);
    status = take_tree(trainer->parameters, parameters);
    if (status == TK_OK) status = take_tree(tk_optimizer_state(trainer->optimizer), state);
    tk_scope_close(scope);
    trainer->steps = step;
    return status;
}

/* ---- a step ---- */

typedef struct loss_call {
    const tk_trainer *trainer;
    tk_tree *parameters; /* the names; arrays are replaced by the placeholders */
    tk_array tokens;
    tk_model_run run;
} loss_call;

static tk_status compute_loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    loss_call *call = self;
    tk_status status = tk_tree_set_all(call->parameters, args, n_args);
    if (status != TK_OK) return status;
    tk_array loss =
        tk_model_loss(&call->trainer->options.model, call->parameters, call->tokens, &call->run);
    tk_tree_clear(call->parameters);
    return tk_arrays_push(results, loss);
}

static tk_model_run run_of(const tk_trainer *t, int64_t micro) {
    const tk_train_options *o = &t->options;
    tk_model_run run = {.cast = o->dtype != TK_FLOAT32, .dtype = o->dtype, .train = true};
    uint64_t number = (uint64_t)(t->steps * o->accumulate + micro + 1);
    if (o->model.dropout > 0)
        run.dropout_key =
            tk_random_key(t->context, (int64_t)(o->seed ^ number * 0xd1342543de82ef95u));
    return run;
}

/* Loss and gradients of one micro-batch, lazy. */
static tk_status micro_step(tk_trainer *t, int64_t micro, tk_arrays *values, tk_arrays *gradients) {
    size_t count = tk_tree_count(t->parameters);
    int *argnums = malloc(count * sizeof *argnums);
    loss_call call = {.trainer = t, .parameters = tk_tree_new(), .run = run_of(t, micro)};
    tk_status status = TK_OK;
    if (!argnums || !call.parameters)
        status = tk_error_set(TK_OUT_OF_MEMORY, "no memory for a training step");
    if (status == TK_OK) status = fill_tree(call.parameters, t->parameters, NULL);
    for (size_t i = 0; status == TK_OK && i < count; i++) argnums[i] = (int)i;
    if (status == TK_OK) {
        call.tokens =
            tk_batches_get(t->context, &t->batches, t->steps * t->options.accumulate + micro);
        status = tk_value_and_grad(t->context, compute_loss, &call, tk_tree_arrays(t->parameters),
                                   count, argnums, count, values, gradients);
    }
    tk_tree_free(call.parameters);
    free(argnums);
    return status;
}

/* Adds a micro-batch's loss and gradients to the sums, and evaluates them when more are to come. */
static tk_status add_micro_step(tk_trainer *t, int64_t micro, const tk_wait *wait,
                                tk_arrays *sums) {
    tk_arrays values = {0}, gradients = {0};
    tk_scope scope = tk_scope_open(t->context);
    tk_status status = micro_step(t, micro, &values, &gradients);
    if (status == TK_OK) status = tk_arrays_push(&gradients, values.items[0]);
    tk_arrays next = {0};
    for (size_t i = 0; status == TK_OK && i < gradients.count; i++)
        status = tk_arrays_push(&next, sums->count ? tk_add(sums->items[i], gradients.items[i])
                                                   : gradients.items[i]);
    tk_scope_close(scope);
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    tk_arrays_clear(sums);
    *sums = next;
    bool more = micro + 1 < t->options.accumulate;
    return status == TK_OK && more ? tk_eval_wait(sums->items, sums->count, wait) : status;
}

/* Sums over micro-batches: one gradient a parameter, then the loss. */
static tk_status accumulate(tk_trainer *t, const tk_wait *wait, tk_arrays *sums) {
    tk_status status = TK_OK;
    for (int64_t micro = 0; status == TK_OK && micro < t->options.accumulate; micro++)
        status = add_micro_step(t, micro, wait, sums);
    return status;
}

/* ---- what follows from the gradients ---- */

typedef struct outcome {
    tk_tree *gradients;
    tk_array loss, norm;
} outcome;

/* Means over micro-batches, clipped; lazy. */
static tk_status build_outcome(const tk_trainer *t, const tk_arrays *sums, outcome *out) {
    int64_t parts = t->options.accumulate;
    size_t count = sums->count - 1;
    tk_array share = tk_scalar(t->context, 1.0 / (double)parts);
    out->loss = tk_keep(tk_multiply(sums->items[count], share));
    tk_status status = fill_tree(out->gradients, t->parameters, sums->items);
    for (size_t i = 0; status == TK_OK && parts > 1 && i < count; i++)
        status = tk_tree_set_at(out->gradients, i, tk_multiply(sums->items[i], share));
    if (status == TK_OK && t->options.clip > 0)
        return tk_clip_global_norm(t->context, out->gradients, t->options.clip, &out->norm);
    out->norm = tk_keep(tk_global_norm(t->context, out->gradients));
    return status;
}

static tk_status eval_with(const tk_tree *tree, tk_array one, tk_array other, const tk_wait *wait) {
    size_t count = tk_tree_count(tree);
    tk_array *all = malloc((count + 2) * sizeof *all);
    if (!all) return tk_error_set(TK_OUT_OF_MEMORY, "no memory for a training step");
    if (count) memcpy(all, tk_tree_arrays(tree), count * sizeof *all);
    all[count] = one;
    all[count + 1] = other;
    tk_status status = tk_eval_wait(all, count + 2, wait);
    free(all);
    return status;
}

/* All that an interruption may undo: nothing of the trainer has changed when this ends. */
static tk_status compute_outcome(tk_trainer *t, const tk_wait *wait, outcome *out) {
    tk_arrays sums = {0};
    tk_status status = accumulate(t, wait, &sums);
    tk_scope scope = tk_scope_open(t->context);
    if (status == TK_OK) status = build_outcome(t, &sums, out);
    tk_scope_close(scope);
    tk_arrays_clear(&sums);
    return status == TK_OK ? eval_with(out->gradients, out->loss, out->norm, wait) : status;
}

/* Parameters and state are overwritten in place, since nobody holds the old ones: not
 * interruptible, and short. */
static tk_status apply_outcome(tk_trainer *t, outcome *out) {
    tk_status status = tk_optimizer_set_rate(t->optimizer, tk_train_rate(&t->options, t->steps));
    if (status == TK_OK) status = tk_optimizer_step(t->optimizer, t->parameters, out->gradients);
    tk_tree_clear(out->gradients);
    if (status != TK_OK) return status;
    t->steps++;
    const tk_tree *state = tk_trainer_state(t);
    size_t n_parameters = tk_tree_count(t->parameters), n_states = tk_tree_count(state);
    tk_array *all = malloc((n_parameters + n_states) * sizeof *all);
    if (!all) return tk_error_set(TK_OUT_OF_MEMORY, "no memory for a training step");
    memcpy(all, tk_tree_arrays(t->parameters), n_parameters * sizeof *all);
    memcpy(all + n_parameters, tk_tree_arrays(state), n_states * sizeof *all);
    status = tk_eval_all(all, n_parameters + n_states);
    free(all);
    return status;
}

static tk_status fill_report(const tk_trainer *t, const outcome *out, tk_train_report *out_report) {
    const tk_train_options *o = &t->options;
    *out_report = (tk_train_report){.step = t->steps + 1,
                                    .rate = tk_train_rate(o, t->steps),
                                    .tokens = o->batch * o->accumulate * o->model.context};
    tk_status status = tk_item(out->loss, &out_report->loss);
    return status == TK_OK ? tk_item(out->norm, &out_report->norm) : status;
}

static tk_status check_finite(const tk_train_report *r) {
    if (isfinite(r->loss) && isfinite(r->norm)) return TK_OK;
    return tk_error_set(
        TK_NAN_TRAPPED,
        "step %lld: the loss is %g and the norm of the gradients %g; a lower learning "
        "rate or a smaller clip may help",
        (long long)r->step, r->loss, r->norm);
}

tk_status tk_trainer_step(tk_trainer *trainer, const tk_wait *wait, tk_train_report *out_report) {
    NN_NEED(trainer);
    NN_NEED(out_report);
    outcome out = {.gradients = tk_tree_new()};
    tk_status status = TK_OK;
    if (!out.gradients) status = tk_error_set(TK_OUT_OF_MEMORY, "no memory for a training step");
    if (status == TK_OK) status = compute_outcome(trainer, wait, &out);
    if (status == TK_OK) status = fill_report(trainer, &out, out_report);
    if (status == TK_OK) status = check_finite(out_report);
    if (status == TK_OK) status = apply_outcome(trainer, &out);
    tk_release(out.loss);
    tk_release(out.norm);
    tk_tree_free(out.gradients);
    return status;
}

/* ---- evaluation ---- */

/* Sum of the losses of `rows` windows of `width` + 1 bytes, which begin `width` apart at `bytes`.
 */
static tk_status sum_losses(tk_context *context, const tk_model_config *config,
                            const tk_tree *parameters, const tk_model_run *run,
                            const unsigned char *bytes, int64_t rows, int64_t width,
                            const tk_wait *wait, double *out_sum) {
    int32_t *tokens = malloc((size_t)(rows * (width + 1)) * sizeof *tokens);
    if (!tokens)
        return tk_error_set(TK_OUT_OF_MEMORY, "no memory for %lld windows", (long long)rows);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i <= width; i++) tokens[row * (width + 1) + i] = bytes[row * width + i];
    tk_scope scope = tk_scope_open(context);
    tk_array windows = tk_from_data(context, tokens, TK_SHAPE(rows, width + 1), TK_INT32);
    tk_array mean = tk_keep(tk_model_loss(config, parameters, windows, run));
    tk_scope_close(scope);
    free(tokens);
    tk_status status = tk_eval_wait(&mean, 1, wait);
    if (status == TK_OK) status = tk_item(mean, out_sum);
    *out_sum *= (double)(rows * width);
    tk_release(mean);
    return status;
}

tk_status tk_model_evaluate(tk_context *context, const tk_model_config *config,
                            const tk_tree *parameters, const tk_model_run *run,
                            const unsigned char *bytes, int64_t size, int64_t batch,
                            const tk_wait *wait, double *out_nats) {
    NN_NEED(context);
    NN_NEED(config);
    NN_NEED(parameters);
    NN_NEED(bytes);
    NN_NEED(out_nats);
    if (size < 2)
        return tk_error_set(TK_INVALID_ARGUMENT, "%lld bytes to evaluate on, expected 2 or more",
                            (long long)size);
    if (batch < 1)
        return tk_error_set(TK_INVALID_ARGUMENT, "batch %lld, expected 1 or more",
                            (long long)batch);
    tk_status status = tk_model_check(config, parameters);
    double total = 0;
    int64_t at = 0, last = size - 1;
    while (status == TK_OK && at < last) {
        int64_t width = config->context, rows = (last - at) / width;
        if (rows > batch) rows = batch;
        if (rows == 0) {
            rows = 1;
            width = last - at;
        }
        double sum = 0;
        status = sum_losses(context, config, parameters, run, bytes + at, rows, width, wait, &sum);
        total += sum;
        at += rows * width;
    }
    if (status == TK_OK) *out_nats = total / (double)last;
    return status;
}
