/* Language models of the GPT-2 and Llama families, by the names and files of Hugging Face.
 *
 * A model is a configuration and a tree of parameters under the names that the files have; the
 * forward pass is a function of both. Configurations read and write config.json (docs/models.md
 * lists what is understood); a setting that would change the numbers and is not supported is a
 * TK_UNSUPPORTED error that names it.
 *
 * Sources: Radford et al. 2019 (GPT-2), Touvron et al. 2023 (Llama), Su et al. 2021 (rotary
 * positions), Zhang and Sennrich 2019 (RMSNorm), Shazeer 2020 (SwiGLU), Ainslie et al. 2023
 * (grouped heads). */
#ifndef TIKI_MODEL_H
#define TIKI_MODEL_H

#include "tiki/io.h"
#include "tiki/nn.h"

TK_BEGIN_DECLS

typedef enum tk_model_family { TK_MODEL_GPT2, TK_MODEL_LLAMA } tk_model_family;

typedef struct tk_model_config {
    size_t size; /* sizeof(tk_model_config) */
    tk_model_family family;
    int64_t vocab;
    int64_t layers;
    int64_t heads;
    int64_t kv_heads; /* heads of keys and values; GPT-2: heads */
    int64_t dim;
    int64_t head_dim;
    int64_t hidden;  /* of the feed-forward block */
    int64_t context; /* most positions */
    double norm_eps;
    double rope_theta;   /* Llama */
    bool attention_bias; /* Llama: biases of q, k, v, o */
    bool mlp_bias;       /* Llama: biases of the feed-forward block */
    bool tie_embeddings; /* the output matrix is the embedding */
    double dropout; /* of embeddings, attention outputs and feed-forward outputs, in training */
} tk_model_config;

/* A configuration with the family's usual ratios: Llama's hidden size is 8/3 of dim rounded up to
 * 64, GPT-2's 4 times dim; a vocabulary of 256 bytes; embeddings tied. */
TK_API tk_model_config tk_model_config_make(tk_model_family family, int64_t layers, int64_t heads,
                                            int64_t dim, int64_t context);

/* TK_INVALID_ARGUMENT naming the field when sizes are out of range or do not divide. */
TK_API tk_status tk_model_config_check(const tk_model_config *config);

/* Reads and writes config.json. `path` is the file. TK_IO_ERROR, TK_FORMAT_ERROR, TK_UNSUPPORTED.
 */
TK_API tk_status tk_model_config_load(const char *path, tk_model_config *out_config);
TK_API tk_status tk_model_config_save(const char *path, const tk_model_config *config);

/* Fresh parameters (float32) in the order of the forward pass: normal with deviation 0.02, that of
 * the matrices that end a block divided by sqrt(2 layers), norms 1, biases 0. A function of config
 * and seed only. */
TK_API tk_status tk_model_init(tk_context *context, const tk_model_config *config, uint64_t seed,
                               tk_tree *parameters);

/* Checks that a tree has each parameter of the model in its shape; names the first that is missing
 * or wrong. A tied "lm_head.weight" may be there or not. */
TK_API tk_status tk_model_check(const tk_model_config *config, const tk_tree *parameters);

/* Loads a folder: config.json, and model.safetensors or its shards. Names without the family's
 * prefix, as some GPT-2 files have them, get it; arrays that the model does not use are left out.
 */
TK_API tk_status tk_model_load(tk_context *context, const char *folder, tk_model_config *out_config,
                               tk_tree *parameters);

/* How a forward pass runs; all zero is inference in the parameters' own dtype. */
typedef struct tk_model_run {
    tk_kv_cache *cache; /* earlier positions; NULL: none */
    bool cast; /* activations and products in `dtype`; norms' statistics and logits stay float32 */
    tk_dtype dtype;
    bool train;           /* apply dropout */
    tk_array dropout_key; /* for train with dropout above 0 */
} tk_model_run;

/* Logits [batch, length, vocab] (float32) for tokens [batch, length] of an integer dtype. With a
 * cache, the positions follow those stored; the caller advances it. */
TK_API tk_array tk_model_forward(const tk_model_config *config, const tk_tree *parameters,
                                 tk_array tokens, const tk_model_run *run);

/* Mean cross entropy in nats of predicting tokens[:, 1:] from tokens[:, :-1]. */
TK_API tk_array tk_model_loss(const tk_model_config *config, const tk_tree *parameters,
                              tk_array tokens, const tk_model_run *run);

/* ---- choosing the next token ---- */

/* Zero temperature takes the most likely token; top_k 0 and top_p 1 cut nothing. */
typedef struct tk_sampling {
    double temperature;
    int64_t top_k;
    double top_p;
    uint64_t seed;
} tk_sampling;

/* A token for logits[0..count-1]; `draw` numbers the draws of one seed, so a text is a function of
 * model, prompt and options. TK_INVALID_ARGUMENT for options out of range, TK_NAN_TRAPPED when a
 * logit is NaN. */
TK_API tk_status tk_sample(const float *logits, int64_t count, const tk_sampling *sampling,
                           uint64_t draw, int64_t *out_token);

TK_END_DECLS

#endif
