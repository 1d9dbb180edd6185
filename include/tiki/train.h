/* Training a language model on bytes: the order of the data, and the training step.
 *
 * Everything is a function of the options, the bytes and the step's number: no generator has a
 * state that would need saving. So a run that was stopped and resumed is the same run, bit for bit.
 */
#ifndef TIKI_TRAIN_H
#define TIKI_TRAIN_H

#include "tiki/model.h"
#include "tiki/optim.h"

TK_BEGIN_DECLS

/* ---- text as bytes ---- */

/* Bytes of files, one after the other. */
typedef struct tk_corpus tk_corpus;

/* Reads files and folders: of folders all regular files that are not hidden, at any depth, in the
 * order of their paths; links are not followed, and files with a zero byte in their first 8 KiB
 * (not text) are left out. A path given as a file is always read. TK_IO_ERROR names the path. Freed
 * with tk_corpus_free, which takes NULL. */
TK_API tk_status tk_corpus_load(const char *const *paths, size_t count, tk_corpus **out_corpus);
TK_API void tk_corpus_free(tk_corpus *corpus);
TK_API const unsigned char *tk_corpus_bytes(const tk_corpus *corpus);
TK_API int64_t tk_corpus_size(const tk_corpus *corpus);
TK_API int64_t tk_corpus_files(const tk_corpus *corpus);

/* A 64-bit fingerprint of the bytes, to tell whether a resumed run sees the same data. Not
 * cryptographic. */
TK_API uint64_t tk_corpus_fingerprint(const tk_corpus *corpus);

/* ---- the order of the data ---- */

/* Windows of length + 1 bytes (inputs and targets overlap by all but one). An epoch visits each
 * window once, in an order and from a first byte that are functions of seed and epoch. */
typedef struct tk_batches {
    const unsigned char *bytes;
    int64_t size;
    int64_t length; /* positions of a sequence */
    int64_t batch;  /* sequences of a batch */
    uint64_t seed;
} tk_batches;

/* TK_INVALID_ARGUMENT when there are too few bytes for one window. */
TK_API tk_status tk_batches_check(const tk_batches *batches);

/* Where in the bytes sequence number `sequence` (0, 1, ... over all epochs) begins. */
TK_API int64_t tk_batches_start(const tk_batches *batches, int64_t sequence);

/* Batch number `index` as int32 [batch, length + 1]. */
TK_API tk_array tk_batches_get(tk_context *context, const tk_batches *batches, int64_t index);

/* ---- the training step ---- */

typedef enum tk_decay { TK_DECAY_CONSTANT, TK_DECAY_COSINE, TK_DECAY_LINEAR } tk_decay;

typedef struct tk_train_options {
    size_t size; /* sizeof(tk_train_options) */
    tk_model_config model;
    tk_optimizer_options optimizer; /* its learning_rate is the highest one */
    int64_t batch;                  /* sequences of a micro-batch */
    int64_t accumulate;             /* micro-batches of a step: their gradients are averaged */
    int64_t warmup;                 /* steps from 0 to the highest rate */
    tk_decay decay;                 /* after the warm-up */
    int64_t decay_steps;            /* how long; then a tenth of the highest rate */
    double clip;                    /* largest global norm of the gradients; 0: no limit */
    tk_dtype dtype;                 /* of activations and products */
    uint64_t seed;
} tk_train_options;

/* AdamW 3e-4 with betas 0.9 and 0.95 and weight decay 0.1, batch 8, no accumulation, warm-up 100,
 * constant rate, clipping at 1, float32, seed 0. */
TK_API tk_train_options tk_train_defaults(const tk_model_config *model);

/* The learning rate of step `step` (0 is the first). */
TK_API double tk_train_rate(const tk_train_options *options, int64_t step);

typedef struct tk_trainer tk_trainer;

/* Fresh parameters and optimizer state. Training bytes are borrowed for the trainer's life. Freed
 * with tk_trainer_free, which takes NULL. A trainer belongs to one thread. */
TK_API tk_status tk_trainer_create(tk_context *context, const tk_train_options *options,
                                   const unsigned char *bytes, int64_t size,
                                   tk_trainer **out_trainer);
TK_API void tk_trainer_free(tk_trainer *trainer);

/* What a step did. */
typedef struct tk_train_report {
    int64_t step;   /* its number, 1 for the first */
    double loss;    /* nats a byte, the mean over the step's micro-batches, before the update */
    double norm;    /* of the gradients, before clipping */
    double rate;    /* learning rate */
    int64_t tokens; /* bytes predicted */
} tk_train_report;

/* Computes one step. On an error or an interruption (`wait`, see runtime.h; may be NULL) nothing
 * has changed. TK_NAN_TRAPPED when loss or gradients are not finite. */
TK_API tk_status tk_trainer_step(tk_trainer *trainer, const tk_wait *wait,
                                 tk_train_report *out_report);

/* The model that is trained. Borrowed. */
TK_API const tk_model_config *tk_trainer_model(const tk_trainer *trainer);

/* Steps done so far; the parameters; the optimizer's state. Borrowed. */
TK_API int64_t tk_trainer_steps(const tk_trainer *trainer);
TK_API const tk_tree *tk_trainer_parameters(const tk_trainer *trainer);
TK_API const tk_tree *tk_trainer_state(const tk_trainer *trainer);

/* Takes parameters, optimizer state and step number from a checkpoint. TK_SHAPE_ERROR or
 * TK_NOT_FOUND when they do not fit the model; nothing has changed then. */
TK_API tk_status tk_trainer_restore(tk_trainer *trainer, const tk_tree *parameters,
                                    const tk_tree *state, int64_t step);

/* Mean loss in nats a byte over `size` bytes in windows of the model's context, each byte but the
 * first predicted once. `batch` windows at a time. */
TK_API tk_status tk_model_evaluate(tk_context *context, const tk_model_config *config,
                                   const tk_tree *parameters, const tk_model_run *run,
                                   const unsigned char *bytes, int64_t size, int64_t batch,
                                   const tk_wait *wait, double *out_nats);

TK_END_DECLS

#endif
