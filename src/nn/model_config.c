/* Model configurations and config.json, in Hugging Face's words. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/need.h"
#include "tiki/model.h"

tk_model_config tk_model_config_make(tk_model_family family, int64_t layers, int64_t heads,
                                     int64_t dim, int64_t context) {
    bool llama = family == TK_MODEL_LLAMA;
    int64_t hidden = llama ? (8 * dim / 3 + 63) / 64 * 64 : 4 * dim;
    tk_model_config config = {.size = sizeof config,
                              .family = family,
                              .vocab = 256,
                              .layers = layers,
                              .heads = heads,
                              .kv_heads = heads,
                              .dim = dim,
                              .head_dim = heads > 0 ? dim / heads : 0,
                              .hidden = hidden,
                              .context = context,
                              .norm_eps = 1e-5,
                              .rope_theta = llama ? 10000 : 0,
                              .tie_embeddings = true};
    return config;
}

/* ---- checking ---- */

typedef struct bound {
    const char *field;
    int64_t value, high;
} bound;

tk_status tk_model_config_check(const tk_model_config *c) {
    if (!c) return nn_fail_null("config");
    if (c->size != sizeof *c)
        return tk_error_set(TK_INVALID_ARGUMENT, "tk_model_config.size is %zu, expected %zu",
                            c->size, sizeof *c);
    if (c->family != TK_MODEL_GPT2 && c->family != TK_MODEL_LLAMA)
        return tk_error_set(
            TK_INVALID_ARGUMENT,
            "argument `family` is %d, which is no tk_model_family: expected 0 to %d",
            (int)c->family, (int)TK_MODEL_LLAMA);
    const bound bounds[] = {{"vocab", c->vocab, 1 << 24},   {"layers", c->layers, 1 << 16},
                            {"heads", c->heads, 1 << 16},   {"kv_heads", c->kv_heads, 1 << 16},
                            {"dim", c->dim, 1 << 20},       {"head_dim", c->head_dim, 1 << 16},
                            {"hidden", c->hidden, 1 << 24}, {"context", c->context, 1 << 30}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (bounds[i].value < 1 || bounds[i].value > bounds[i].high)
            return tk_error_set(TK_INVALID_ARGUMENT, "%s of a model is %lld, expected 1 to %lld",
                                bounds[i].field, (long long)bounds[i].value,
                                (long long)bounds[i].high);
    if (c->heads % c->kv_heads)
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "%lld heads do not divide into %lld heads of keys and values",
                            (long long)c->heads, (long long)c->kv_heads);
    if (c->family == TK_MODEL_GPT2 && (c->heads * c->head_dim != c->dim || c->kv_heads != c->heads))
        return tk_error_set(TK_INVALID_ARGUMENT, "dim %lld is not %lld heads of %lld",
                            (long long)c->dim, (long long)c->heads, (long long)c->head_dim);
    if (c->family == TK_MODEL_LLAMA && (c->head_dim % 2 || !(c->rope_theta > 0)))
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "head_dim %lld and rope_theta %g, expected an even length and a "
                            "positive base",
                            (long long)c->head_dim, c->rope_theta);
    if (!(c->norm_eps >= 0) || !(c->dropout >= 0 && c->dropout < 1))
        return tk_error_set(TK_INVALID_ARGUMENT,
                            "norm_eps %g and dropout %g, expected 0 or more, and 0 to below 1",
                            c->norm_eps, c->dropout);
    return TK_OK;
}

/* ---- reading ---- */

typedef struct reading {
    const char *path;
    json_t *root;
    tk_status status; /* the first error */
} reading;

static void fail(reading *r, tk_status code, const char *key, const char *why) {
    if (r->status == TK_OK) r->status = tk_error_set(code, "%s: \"%s\" %s", r->path, key, why);
}

/* The first of two names that is there and not null. */
static json_t *find(const reading *r, const char *key, const char *other) {
    json_t *value = json_object_get(r->root, key);
    if ((!value || json_is_null(value)) && other) value = json_object_get(r->root, other);
    return json_is_null(value) ? NULL : value;
}

static int64_t integer(reading *r, const char *key, const char *other, int64_t fallback) {
    json_t *value = find(r, key, other);
    if (!value && fallback < 0) fail(r, TK_FORMAT_ERROR, key, "is missing");
    if (value && !json_is_integer(value)) fail(r, TK_FORMAT_ERROR, key, "is not an integer");
    return value ? (int64_t)json_integer_value(value) : fallback;
}

static double real(reading *r, const json_t *object, const char *key, double fallback) {
    json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) return fallback;
    if (!json_is_number(value)) fail(r, TK_FORMAT_ERROR, key, "is not a number");
    return json_number_value(value);
}

static bool flag(reading *r, const char *key, bool fallback) {
    json_t *value = find(r, key, NULL);
    if (value && !json_is_boolean(value)) fail(r, TK_FORMAT_ERROR, key, "is not true or false");
    return value ? json_is_true(value) : fallback;
}

/* A text setting must be one of two, since others would give other numbers. */
static void expect(reading *r, const char *key, const char *one, const char *other) {
    const char *text = json_string_value(find(r, key, NULL));
    if (text && strcmp(text, one) != 0 && strcmp(text, other) != 0)
        fail(r, TK_UNSUPPORTED, key, "has a value that is not supported");
}

/* Settings that are off, or they would give other numbers. */
static void refuse_when_set(reading *r, const char *key) {
    json_t *value = find(r, key, NULL);
    if (value && !json_is_false(value))
        fail(r, TK_UNSUPPORTED, key, "is set, which is not supported");
}

static void read_gpt2(reading *r, tk_model_config *c) {
    c->vocab = integer(r, "vocab_size", NULL, -1);
    c->layers = integer(r, "n_layer", "num_hidden_layers", -1);
    c->heads = c->kv_heads = integer(r, "n_head", "num_attention_heads", -1);
    c->dim = integer(r, "n_embd", "hidden_size", -1);
    c->context = integer(r, "n_positions", "n_ctx", -1);
    c->hidden = integer(r, "n_inner", NULL, 4 * c->dim);
    c->norm_eps = real(r, r->root, "layer_norm_epsilon", 1e-5);
    c->dropout = real(r, r->root, "resid_pdrop", 0);
    c->tie_embeddings = flag(r, "tie_word_embeddings", true);
    c->head_dim = c->heads > 0 ? c->dim / c->heads : 0;
    expect(r, "activation_function", "gelu_new", "gelu_pytorch_tanh");
    if (flag(r, "scale_attn_by_inverse_layer_idx", false) || !flag(r, "scale_attn_weights", true))
        fail(r, TK_UNSUPPORTED, "scale_attn_weights", "has a value that is not supported");
    refuse_when_set(r, "add_cross_attention");
}

/* rope_theta stands alone in older files and inside rope_parameters in newer ones. */
static double read_rope(reading *r) {
    json_t *parameters = find(r, "rope_parameters", NULL), *scaling = find(r, "rope_scaling", NULL);
    const json_t *described = parameters ? parameters : scaling;
    const char *kind = json_string_value(json_object_get(described, "rope_type"));
    if (!kind) kind = json_string_value(json_object_get(described, "type"));
    if (described && kind && strcmp(kind, "default") != 0)
        fail(r, TK_UNSUPPORTED, parameters ? "rope_parameters" : "rope_scaling",
             "has a type other than \"default\"");
    if (real(r, r->root, "partial_rotary_factor", 1) != 1 ||
        real(r, described, "partial_rotary_factor", 1) != 1)
        fail(r, TK_UNSUPPORTED, "partial_rotary_factor", "is not 1, which is not supported");
    double theta = real(r, r->root, "rope_theta", 10000);
    return parameters ? real(r, parameters, "rope_theta", theta) : theta;
}

static void read_llama(reading *r, tk_model_config *c) {
    c->vocab = integer(r, "vocab_size", NULL, -1);
    c->layers = integer(r, "num_hidden_layers", NULL, -1);
    c->heads = integer(r, "num_attention_heads", NULL, -1);
    c->kv_heads = integer(r, "num_key_value_heads", NULL, c->heads);
    c->dim = integer(r, "hidden_size", NULL, -1);
    c->head_dim = integer(r, "head_dim", NULL, c->heads > 0 ? c->dim / c->heads : 0);
    c->hidden = integer(r, "intermediate_size", NULL, -1);
    c->context = integer(r, "max_position_embeddings", NULL, 2048);
    c->norm_eps = real(r, r->root, "rms_norm_eps", 1e-6);
    c->rope_theta = read_rope(r);
    c->attention_bias = flag(r, "attention_bias", false);
    c->mlp_bias = flag(r, "mlp_bias", false);
    c->tie_embeddings = flag(r, "tie_word_embeddings", false);
    c->dropout = real(r, r->root, "tiki_dropout", 0);
    expect(r, "hidden_act", "silu", "swish");
}

static tk_status read_root(reading *r, tk_model_config *out_config) {
    tk_model_config config = {.size = sizeof config};
    const char *kind = json_string_value(json_object_get(r->root, "model_type"));
    if (!kind) return tk_error_set(TK_FORMAT_ERROR, "%s: \"model_type\" is missing", r->path);
    if (!strcmp(kind, "gpt2"))
        config.family = TK_MODEL_GPT2;
    else if (!strcmp(kind, "llama"))
        config.family = TK_MODEL_LLAMA;
    else
        return tk_error_set(TK_UNSUPPORTED,
                            "%s: model_type \"%.40s\" is not supported, expected gpt2 or llama",
                            r->path, kind);
    if (config.family == TK_MODEL_GPT2)
        read_gpt2(r, &config);
    else
        read_llama(r, &config);
    refuse_when_set(r, "quantization_config");
    if (r->status == TK_OK) r->status = tk_model_config_check(&config);
    if (r->status == TK_OK) *out_config = config;
    return r->status;
}

tk_status tk_model_config_load(const char *path, tk_model_config *out_config) {
    NN_NEED(path);
    NN_NEED(out_config);
    char *text;
    size_t bytes;
    tk_status status = tk_file_read(path, &text, &bytes);
    if (status != TK_OK) return status;
    json_error_t error;
    reading r = {.path = path, .root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error)};
    tk_text_free(text);
    if (!r.root)
        return tk_error_set(TK_FORMAT_ERROR, "%s: line %d, column %d: %s", path, error.line,
                            error.column, error.text);
    status = read_root(&r, out_config);
    json_decref(r.root);
    return status;
}

/* ---- writing ---- */

static json_t *write_gpt2(const tk_model_config *c) {
    return json_pack("{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, "
                     "s:b, s:s, s:n, s:n}",
                     "model_type", "gpt2", "architectures", "GPT2LMHeadModel", "vocab_size",
                     (json_int_t)c->vocab, "n_layer", (json_int_t)c->layers, "n_head",
                     (json_int_t)c->heads, "n_embd", (json_int_t)c->dim, "n_positions",
                     (json_int_t)c->context, "n_ctx", (json_int_t)c->context, "n_inner",
                     (json_int_t)c->hidden, "activation_function", "gelu_new", "layer_norm_epsilon",
                     c->norm_eps, "resid_pdrop", c->dropout, "embd_pdrop", c->dropout, "attn_pdrop",
                     0.0, "tie_word_embeddings", (int)c->tie_embeddings, "torch_dtype", "float32",
                     "bos_token_id", "eos_token_id");
}

static json_t *write_llama(const tk_model_config *c) {
    return json_pack("{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:b, "
                     "s:b, s:b, s:f, s:s, "
                     "s:n, s:n}",
                     "model_type", "llama", "architectures", "LlamaForCausalLM", "vocab_size",
                     (json_int_t)c->vocab, "num_hidden_layers", (json_int_t)c->layers,
                     "num_attention_heads", (json_int_t)c->heads, "num_key_value_heads",
                     (json_int_t)c->kv_heads, "hidden_size", (json_int_t)c->dim, "head_dim",
                     (json_int_t)c->head_dim, "intermediate_size", (json_int_t)c->hidden,
                     "max_position_embeddings", (json_int_t)c->context, "hidden_act", "silu",
                     "rms_norm_eps", c->norm_eps, "rope_theta", c->rope_theta, "attention_bias",
                     (int)c->attention_bias, "mlp_bias", (int)c->mlp_bias, "tie_word_embeddings",
                     (int)c->tie_embeddings, "tiki_dropout", c->dropout, "torch_dtype", "float32",
                     "bos_token_id", "eos_token_id");
}

tk_status tk_model_config_save(const char *path, const tk_model_config *config) {
    NN_NEED(path);
    NN_NEED(config);
    tk_status status = tk_model_config_check(config);
    if (status != TK_OK) return status;
    json_t *root = config->family == TK_MODEL_GPT2 ? write_gpt2(config) : write_llama(config);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    if (!text) return tk_error_set(TK_OUT_OF_MEMORY, "no memory to write %s", path);
    status = tk_file_write(path, text, strlen(text));
    free(text);
    return status;
}
