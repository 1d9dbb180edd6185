/* Optimizers: update rules over parameter trees, learning-rate schedules, gradient clipping.
 *
 * An optimizer's state is a tree of arrays beside the parameters' names ("layers.0.weight.m"), with
 * "step" (uint64) and "learning_rate" (float32) first, so that it is saved, loaded and traced like
 * parameters. Rules, names and defaults are those of MLX's optimizers. Everything is lazy: a step
 * builds the new arrays, and evaluating parameters and state together computes them.
 *
 * An optimizer belongs to one thread at a time. */
#ifndef TIKI_OPTIM_H
#define TIKI_OPTIM_H

#include "tiki/tree.h"

TK_BEGIN_DECLS

/* Sources: SGD with momentum and Nesterov (Sutskever 2013), RMSprop (Hinton 2012), Adagrad (Duchi
 * 2011), AdaDelta (Zeiler 2012), Adam and Adamax (Kingma 2015), AdamW (Loshchilov 2019), Lion (Chen
 * 2023), Adafactor (Shazeer 2018), Muon (Jordan 2024). */
typedef enum tk_optimizer_kind {
    TK_OPTIMIZER_SGD,
    TK_OPTIMIZER_RMSPROP,
    TK_OPTIMIZER_ADAGRAD,
    TK_OPTIMIZER_ADADELTA,
    TK_OPTIMIZER_ADAM,
    TK_OPTIMIZER_ADAMW,
    TK_OPTIMIZER_ADAMAX,
    TK_OPTIMIZER_LION,
    TK_OPTIMIZER_ADAFACTOR,
    TK_OPTIMIZER_MUON,
    TK_OPTIMIZER_COUNT
} tk_optimizer_kind;

/* What a rule may be told; start from tk_optimizer_defaults. Fields that a rule has no use for are
 * ignored. */
typedef struct tk_optimizer_options {
    size_t size; /* sizeof(tk_optimizer_options) */
    tk_optimizer_kind kind;
    double learning_rate;
    double beta1, beta2;   /* Adam, AdamW, Adamax, Lion; Adafactor's first moment: beta1 > 0 */
    double epsilon;        /* RMSprop, Adagrad, AdaDelta, Adam, AdamW, Adamax */
    double weight_decay;   /* SGD, AdamW, Lion, Adafactor, Muon */
    double momentum;       /* SGD, Muon */
    double dampening;      /* SGD */
    double decay;          /* RMSprop's alpha, AdaDelta's rho; Adafactor's decay rate */
    bool nesterov;         /* SGD, Muon */
    bool bias_correction;  /* Adam, AdamW */
    double epsilon_square; /* Adafactor: added to squared gradients */
    double epsilon_scale;  /* Adafactor: least scale of a parameter */
    double clip_threshold; /* Adafactor: largest root mean square of an update */
    bool scale_parameter;  /* Adafactor */
    bool relative_step;    /* Adafactor: the learning rate follows from the step */
    bool warmup_init;      /* Adafactor */
    int newton_steps;      /* Muon: iterations of the orthogonalisation */
} tk_optimizer_options;

TK_API tk_optimizer_options tk_optimizer_defaults(tk_optimizer_kind kind);

/* "adamw" and so on; NULL for a value that is no kind. Finding by name: TK_NOT_FOUND lists the
 * names. */
TK_API const char *tk_optimizer_name(tk_optimizer_kind kind);
TK_API tk_status tk_optimizer_find(const char *name, tk_optimizer_kind *out_kind);

typedef struct tk_optimizer tk_optimizer;

/* TK_INVALID_ARGUMENT for options out of range, with the field's name. Freed with
 * tk_optimizer_free, which takes NULL. */
TK_API tk_status tk_optimizer_create(tk_context *context, const tk_optimizer_options *options,
                                     tk_optimizer **out_optimizer);
TK_API void tk_optimizer_free(tk_optimizer *optimizer);

/* Sets the state for parameters to its beginning: step 0, moments zero. */
TK_API tk_status tk_optimizer_init(tk_optimizer *optimizer, const tk_tree *parameters);

/* Replaces each parameter that has a gradient of its name by its next value, and the state
 * likewise. States that are missing are made. TK_SHAPE_ERROR when a gradient does not have the
 * parameter's shape. */
TK_API tk_status tk_optimizer_step(tk_optimizer *optimizer, tk_tree *parameters,
                                   const tk_tree *gradients);

/* The state; borrowed. It may be evaluated, saved, and replaced by one that was loaded. */
TK_API tk_tree *tk_optimizer_state(tk_optimizer *optimizer);

/* The learning rate of the next step: a value, or a scalar array. */
TK_API tk_status tk_optimizer_set_rate(tk_optimizer *optimizer, double learning_rate);
TK_API tk_status tk_optimizer_set_rate_array(tk_optimizer *optimizer, tk_array learning_rate);

/* ---- learning-rate schedules: the rate at a step (0 is the first) ---- */

TK_API double tk_schedule_constant(double rate);

/* From `first` to `last` over `steps`, then `last`. */
TK_API double tk_schedule_linear(double first, double last, int64_t steps, int64_t step);

/* Half a cosine from `first` to `last` over `steps`, then `last`. */
TK_API double tk_schedule_cosine(double first, double last, int64_t steps, int64_t step);

/* first * rate^step. */
TK_API double tk_schedule_exponential(double first, double rate, int64_t step);

/* first * rate^(step / period), whole periods only. */
TK_API double tk_schedule_steps(double first, double rate, int64_t period, int64_t step);

/* ---- gradients ---- */

/* The square root of the sum of squares of all arrays, in float32: a lazy scalar. */
TK_API tk_array tk_global_norm(tk_context *context, const tk_tree *gradients);

/* Scales all gradients by min(1, max_norm / (norm + 1e-6)); *out_norm is the norm before, a lazy
 * scalar that belongs to the caller (may be NULL). */
TK_API tk_status tk_clip_global_norm(tk_context *context, tk_tree *gradients, double max_norm,
                                     tk_array *out_norm);

TK_END_DECLS

#endif
