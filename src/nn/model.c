/* The forward passes. A model's parameters are listed once, by one function that visits name, shape
 * and kind (model_params.c); making and checking trees both use it. */
#include <math.h>
#include <stdio.h>

#include "nn/model_params.h"
#include "nn/need.h"
#include "tiki/model.h"

typedef struct pass {
    const tk_model_config *config;
    const tk_tree *parameters;
    const tk_model_run *run;
    tk_context *context;
    int64_t batch, length, first; /* of the tokens; positions begin at `first` */
    int64_t layer;
    int64_t drops;    /* dropout layers so far */
    tk_status status; /* of the cache */
} pass;

/* ---- parameters ---- */

static tk_array cast(const pass *p, tk_array x) {
    return p->run->cast ? tk_astype(x, p->run->dtype) : x;
}

static tk_array parameter(const pass *p, const char *name) {
    return tk_tree_get(p->parameters, name);
}

static tk_array in_layer(const pass *p, const char *name) {
    char full[TK_PARAMETER_NAME_BYTES];
    tk_parameter_name(full, p->config->family, p->layer, name);
    return parameter(p, full);
}

static tk_array weight_in_layer(const pass *p, const char *name) {
    return cast(p, in_layer(p, name));
}

/* ---- pieces ---- */

static tk_array dropout(pass *p, tk_array x) {
    if (!p->run->train || p->config->dropout <= 0) return x;
    tk_array keys = tk_random_split(p->run->dropout_key, 2 * p->config->layers + 1);
    int64_t row = p->drops++;
    tk_array key = tk_slice(keys, TK_AXES(row, 0), TK_AXES(row + 1, 2), TK_ALL_AXES);
    return tk_nn_dropout(x, p->config->dropout, tk_reshape(key, TK_SHAPE(2)));
}

/* [batch, length, heads * d] to [batch, heads, length, d]. */
static tk_array split_heads(const pass *p, tk_array x, int64_t heads) {
    tk_array parts = tk_reshape(x, TK_SHAPE(p->batch, p->length, heads, p->config->head_dim));
    return tk_transpose(parts, TK_AXES(0, 2, 1, 3));
}

static tk_array join_heads(const pass *p, tk_array x) {
    tk_array rows = tk_transpose(x, TK_AXES(0, 2, 1, 3));
    return tk_reshape(rows, TK_SHAPE(p->batch, p->length, p->config->heads * p->config->head_dim));
}

static tk_array attend(pass *p, tk_array q, tk_array k, tk_array v) {
    if (p->run->cache && p->status == TK_OK)
        p->status = tk_kv_cache_append(p->run->cache, p->layer, k, v, &k, &v);
    double scale = 1 / sqrt((double)p->config->head_dim);
    return tk_scaled_dot_product_attention(q, k, v, scale, TK_NO_ARRAY, true);
}

/* ---- GPT-2: weights are [in, out], as its files have them ---- */

static tk_array affine(const pass *p, tk_array x, const char *name) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return tk_add(tk_matmul(x, weight_in_layer(p, weight)), weight_in_layer(p, bias));
}

static tk_array layer_norm(const pass *p, tk_array x, tk_array weight, tk_array bias) {
    return tk_layer_norm(x, cast(p, weight), cast(p, bias), p->config->norm_eps);
}

static tk_array gpt2_attention(pass *p, tk_array x) {
    int64_t dim = p->config->dim;
    tk_array qkv = affine(p, x, "attn.c_attn"), part[3];
    for (int i = 0; i < 3; i++) {
        tk_axes start = TK_AXES(0, 0, i * dim), stop = TK_AXES(p->batch, p->length, (i + 1) * dim);
        part[i] = split_heads(p, tk_slice(qkv, start, stop, TK_ALL_AXES), p->config->heads);
    }
    return affine(p, join_heads(p, attend(p, part[0], part[1], part[2])), "attn.c_proj");
}

static tk_array gpt2_layer(pass *p, tk_array x) {
    tk_array normed = layer_norm(p, x, in_layer(p, "ln_1.weight"), in_layer(p, "ln_1.bias"));
    x = tk_add(x, dropout(p, gpt2_attention(p, normed)));
    normed = layer_norm(p, x, in_layer(p, "ln_2.weight"), in_layer(p, "ln_2.bias"));
    tk_array hidden = tk_gelu_approx(affine(p, normed, "mlp.c_fc"));
    return tk_add(x, dropout(p, affine(p, hidden, "mlp.c_proj")));
}

static tk_array gpt2_hidden(pass *p, tk_array tokens) {
    tk_array positions = tk_slice(parameter(p, "transformer.wpe.weight"), TK_AXES(p->first, 0),
                                  TK_AXES(p->first + p->length, p->config->dim), TK_ALL_AXES);
    tk_array x = tk_add(tk_nn_embedding(parameter(p, "transformer.wte.weight"), tokens), positions);
    x = dropout(p, cast(p, x));
    for (p->layer = 0; p->layer < p->config->layers; p->layer++) x = gpt2_layer(p, x);
    return layer_norm(p, x, parameter(p, "transformer.ln_f.weight"),
                      parameter(p, "transformer.ln_f.bias"));
}

/* ---- Llama: weights are [out, in] ---- */

static tk_array linear(const pass *p, tk_array x, const char *name, bool has_bias) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return tk_nn_linear(x, weight_in_layer(p, weight),
                        has_bias ? weight_in_layer(p, bias) : TK_NO_ARRAY);
}

static tk_array rms_norm(const pass *p, tk_array x, tk_array weight) {
    return tk_rms_norm(x, cast(p, weight), p->config->norm_eps);
}

static tk_array rotated(const pass *p, tk_array x) {
    tk_array offset = tk_astype(tk_scalar_int(p->context, p->first), TK_INT32);
    return tk_rope(x, p->config->head_dim, false, p->config->rope_theta, 1, offset, TK_NO_ARRAY);
}

static tk_array llama_attention(pass *p, tk_array x) {
    const tk_model_config *c = p->config;
    tk_array q = split_heads(p, linear(p, x, "self_attn.q_proj", c->attention_bias), c->heads);
    tk_array k = split_heads(p, linear(p, x, "self_attn.k_proj", c->attention_bias), c->kv_heads);
    tk_array v = split_heads(p, linear(p, x, "self_attn.v_proj", c->attention_bias), c->kv_heads);
    tk_array mixed = join_heads(p, attend(p, rotated(p, q), rotated(p, k), v));
    return linear(p, mixed, "self_attn.o_proj", c->attention_bias);
}

static tk_array llama_layer(pass *p, tk_array x) {
    bool bias = p->config->mlp_bias;
    tk_array normed = rms_norm(p, x, in_layer(p, "input_layernorm.weight"));
    x = tk_add(x, dropout(p, llama_attention(p, normed)));
    normed = rms_norm(p, x, in_layer(p, "post_attention_layernorm.weight"));
    tk_array gate = linear(p, normed, "mlp.gate_proj", bias),
             up = linear(p, normed, "mlp.up_proj", bias);
    return tk_add(x, dropout(p, linear(p, tk_nn_swiglu(gate, up), "mlp.down_proj", bias)));
}

static tk_array llama_hidden(pass *p, tk_array tokens) {
    tk_array x =
        dropout(p, cast(p, tk_nn_embedding(parameter(p, "model.embed_tokens.weight"), tokens)));
    for (p->layer = 0; p->layer < p->config->layers; p->layer++) x = llama_layer(p, x);
    return rms_norm(p, x, parameter(p, "model.norm.weight"));
}

/* ---- the whole ---- */

static tk_array output_matrix(const pass *p) {
    if (!p->config->tie_embeddings) return parameter(p, "lm_head.weight");
    return parameter(p, p->config->family == TK_MODEL_GPT2 ? "transformer.wte.weight"
                                                           : "model.embed_tokens.weight");
}

static tk_status check_tokens(const tk_model_config *config, tk_array tokens, int64_t first) {
    tk_status status = tk_array_status(tokens);
    if (status != TK_OK) return status;
    if (tk_array_rank(tokens) != 2)
        return tk_error_set(TK_SHAPE_ERROR, "tokens have %d axes, expected [batch, length]",
                            tk_array_rank(tokens));
    if (first + tk_array_dim(tokens, 1) <= config->context) return TK_OK;
    return tk_error_set(TK_SHAPE_ERROR, "%lld tokens after %lld positions, the model has %lld",
                        (long long)tk_array_dim(tokens, 1), (long long)first,
                        (long long)config->context);
}

tk_array tk_model_forward(const tk_model_config *config, const tk_tree *parameters, tk_array tokens,
                          const tk_model_run *run) {
    static const tk_model_run plain = {0};
    if (!config || !parameters)
        return tk_error_array(tk_array_context(tokens),
                              nn_fail_null(config ? "parameters" : "config"));
    pass p = {.config = config, .parameters = parameters, .run = run ? run : &plain};
    p.context = tk_array_context(tokens);
    p.first = p.run->cache ? tk_kv_cache_length(p.run->cache) : 0;
    p.status = check_tokens(config, tokens, p.first);
    if (p.status != TK_OK) return tk_error_array(p.context, p.status);
    p.batch = tk_array_dim(tokens, 0);
    p.length = tk_array_dim(tokens, 1);
    tk_array hidden =
        config->family == TK_MODEL_GPT2 ? gpt2_hidden(&p, tokens) : llama_hidden(&p, tokens);
    if (p.status != TK_OK) return tk_error_array(p.context, p.status);
    tk_array logits = tk_nn_linear(hidden, cast(&p, output_matrix(&p)), TK_NO_ARRAY);
    return tk_astype(logits, TK_FLOAT32);
}

tk_array tk_model_loss(const tk_model_config *config, const tk_tree *parameters, tk_array tokens,
                       const tk_model_run *run) {
    int64_t batch = tk_array_dim(tokens, 0), length = tk_array_dim(tokens, 1);
    tk_array inputs = tk_slice(tokens, TK_AXES(0, 0), TK_AXES(batch, length - 1), TK_ALL_AXES);
    tk_array targets = tk_slice(tokens, TK_AXES(0, 1), TK_AXES(batch, length), TK_ALL_AXES);
    tk_array logits = tk_model_forward(config, parameters, inputs, run);
    return tk_loss_cross_entropy(logits, targets, TK_NO_ARRAY, -1, 0, TK_REDUCE_MEAN);
}
