/* See model_params.h. */
#include "nn/model_params.h"
#include "nn/need.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a length in a row below stands for. */
typedef enum extent { NO_AXIS, DIM, QKV_DIM, HEADS_DIM, KV_DIM, HIDDEN, VOCAB, CONTEXT } extent;

/* When a parameter is there. */
typedef enum presence { ALWAYS, ATTENTION_BIAS, MLP_BIAS, UNTIED } presence;

typedef struct row {
    const char *name;
    extent first, second;
    tk_start start;
    presence presence;
} row;

static const row gpt2_before[] = {
    {"transformer.wte.weight", VOCAB, DIM, TK_START_NORMAL, ALWAYS},
    {"transformer.wpe.weight", CONTEXT, DIM, TK_START_NORMAL, ALWAYS},
};
static const row gpt2_layer[] = {
    {"ln_1.weight", DIM, NO_AXIS, TK_START_ONES, ALWAYS},
    {"ln_1.bias", DIM, NO_AXIS, TK_START_ZEROS, ALWAYS},
    {"attn.c_attn.weight", DIM, QKV_DIM, TK_START_NORMAL, ALWAYS},
    {"attn.c_attn.bias", QKV_DIM, NO_AXIS, TK_START_ZEROS, ALWAYS},
    {"attn.c_proj.weight", DIM, DIM, TK_START_END, ALWAYS},
    {"attn.c_proj.bias", DIM, NO_AXIS, TK_START_ZEROS, ALWAYS},
    {"ln_2.weight", DIM, NO_AXIS, TK_START_ONES, ALWAYS},
    {"ln_2.bias", DIM, NO_AXIS, TK_START_ZEROS, ALWAYS},
    {"mlp.c_fc.weight", DIM, HIDDEN, TK_START_NORMAL, ALWAYS},
    {"mlp.c_fc.bias", HIDDEN, NO_AXIS, TK_START_ZEROS, ALWAYS},
    {"mlp.c_proj.weight", HIDDEN, DIM, TK_START_END, ALWAYS},
    {"mlp.c_proj.bias", DIM, NO_AXIS, TK_START_ZEROS, ALWAYS},
};
static const row gpt2_after[] = {
    {"transformer.ln_f.weight", DIM, NO_AXIS, TK_START_ONES, ALWAYS},
    {"transformer.ln_f.bias", DIM, NO_AXIS, TK_START_ZEROS, ALWAYS},
    {"lm_head.weight", VOCAB, DIM, TK_START_NORMAL, UNTIED},
};
static const row llama_before[] = {
    {"model.embed_tokens.weight", VOCAB, DIM, TK_START_NORMAL, ALWAYS},
};
static const row llama_layer[] = {
    {"input_layernorm.weight", DIM, NO_AXIS, TK_START_ONES, ALWAYS},
    {"self_attn.q_proj.weight", HEADS_DIM, DIM, TK_START_NORMAL, ALWAYS},
    {"self_attn.q_proj.bias", HEADS_DIM, NO_AXIS, TK_START_ZEROS, ATTENTION_BIAS},
    {"self_attn.k_proj.weight", KV_DIM, DIM, TK_START_NORMAL, ALWAYS},
    {"self_attn.k_proj.bias", KV_DIM, NO_AXIS, TK_START_ZEROS, ATTENTION_BIAS},
    {"self_attn.v_proj.weight", KV_DIM, DIM, TK_START_NORMAL, ALWAYS},
    {"self_attn.v_proj.bias", KV_DIM, NO_AXIS, TK_START_ZEROS, ATTENTION_BIAS},
    {"self_attn.o_proj.weight", DIM, HEADS_DIM, TK_START_END, ALWAYS},
    {"self_attn.o_proj.bias", DIM, NO_AXIS, TK_START_ZEROS, ATTENTION_BIAS},
    {"post_attention_layernorm.weight", DIM, NO_AXIS, TK_START_ONES, ALWAYS},
    {"mlp.gate_proj.weight", HIDDEN, DIM, TK_START_NORMAL, ALWAYS},
    {"mlp.gate_proj.bias", HIDDEN, NO_AXIS, TK_START_ZEROS, MLP_BIAS},
    {"mlp.up_proj.weight", HIDDEN, DIM, TK_START_NORMAL, ALWAYS},
    {"mlp.up_proj.bias", HIDDEN, NO_AXIS, TK_START_ZEROS, MLP_BIAS},
    {"mlp.down_proj.weight", DIM, HIDDEN, TK_START_END, ALWAYS},
    {"mlp.down_proj.bias", DIM, NO_AXIS, TK_START_ZEROS, MLP_BIAS},
};
static const row llama_after[] = {
    {"model.norm.weight", DIM, NO_AXIS, TK_START_ONES, ALWAYS},
    {"lm_head.weight", VOCAB, DIM, TK_START_NORMAL, UNTIED},
};

typedef struct family {
    const char *layer_prefix;
    const row *before, *layer, *after;
    int n_before, n_layer, n_after;
} family;

#define ROWS(rows) (int)(sizeof(rows) / sizeof(rows)[0])
static const family families[] = {
    [TK_MODEL_GPT2] = {"transformer.h", gpt2_before, gpt2_layer, gpt2_after, ROWS(gpt2_before),
                       ROWS(gpt2_layer), ROWS(gpt2_after)},
    [TK_MODEL_LLAMA] = {"model.layers", llama_before, llama_layer, llama_after, ROWS(llama_before),
                        ROWS(llama_layer), ROWS(llama_after)},
};

void tk_parameter_name(char *out_text, tk_model_family family, int64_t layer, const char *name) {
    snprintf(out_text, TK_PARAMETER_NAME_BYTES, "%s.%lld.%s", families[family].layer_prefix,
             (long long)layer, name);
}

static int64_t length_of(const tk_model_config *c, extent extent) {
    switch (extent) {
    case DIM:
        return c->dim;
    case QKV_DIM:
        return 3 * c->dim;
    case HEADS_DIM:
        return c->heads * c->head_dim;
    case KV_DIM:
        return c->kv_heads * c->head_dim;
    case HIDDEN:
        return c->hidden;
    case VOCAB:
        return c->vocab;
    case CONTEXT:
        return c->context;
    case NO_AXIS:
        break;
    }
    return 0;
}

static bool is_present(const tk_model_config *c, presence presence) {
    switch (presence) {
    case ATTENTION_BIAS:
        return c->attention_bias;
    case MLP_BIAS:
        return c->mlp_bias;
    case UNTIED:
        return !c->tie_embeddings;
    case ALWAYS:
        break;
    }
    return true;
}

typedef struct visitor {
    const tk_model_config *config;
    tk_status (*visit)(void *arg, const tk_parameter *parameter);
    void *arg;
} visitor;

/* layer below 0: the rows' names are whole. */
static tk_status visit_rows(const visitor *v, int n_rows, const row *rows, int64_t layer) {
    tk_status status = TK_OK;
    for (int i = 0; status == TK_OK && i < n_rows; i++) {
        if (!is_present(v->config, rows[i].presence)) continue;
        tk_parameter parameter = {.start = rows[i].start};
        if (layer >= 0)
            tk_parameter_name(parameter.name, v->config->family, layer, rows[i].name);
        else
            snprintf(parameter.name, sizeof parameter.name, "%s", rows[i].name);
        int64_t first = length_of(v->config, rows[i].first),
                second = length_of(v->config, rows[i].second);
        parameter.shape = rows[i].second == NO_AXIS ? TK_SHAPE(first) : TK_SHAPE(first, second);
        status = v->visit(v->arg, &parameter);
    }
    return status;
}

tk_status tk_parameters_visit(const tk_model_config *config,
                              tk_status (*visit)(void *arg, const tk_parameter *parameter),
                              void *arg) {
    const family *f = &families[config->family];
    visitor v = {config, visit, arg};
    tk_status status = visit_rows(&v, f->n_before, f->before, -1);
    for (int64_t layer = 0; status == TK_OK && layer < config->layers; layer++)
        status = visit_rows(&v, f->n_layer, f->layer, layer);
    return status == TK_OK ? visit_rows(&v, f->n_after, f->after, -1) : status;
}

/* ---- making and checking trees ---- */

typedef struct making {
    tk_context *context;
    const tk_model_config *config;
    tk_tree *parameters;
    uint64_t seed;
    int64_t index;
} making;

static tk_array first_value(const making *m, const tk_parameter *parameter) {
    double deviation = 0.02;
    if (parameter->start == TK_START_ONES) return tk_ones(m->context, parameter->shape, TK_FLOAT32);
    if (parameter->start == TK_START_ZEROS)
        return tk_zeros(m->context, parameter->shape, TK_FLOAT32);
    if (parameter->start == TK_START_END) deviation /= sqrt(2.0 * (double)m->config->layers);
    /* the parameter's own key: the seed's, advanced by its number */
    tk_array key = tk_random_key(
        m->context, (int64_t)(m->seed + 0x9e3779b97f4a7c15u * (uint64_t)(m->index + 1)));
    return tk_random_normal(m->context, parameter->shape, TK_FLOAT32, 0, deviation, key);
}

static tk_status make_one(void *arg, const tk_parameter *parameter) {
    making *m = arg;
    tk_scope scope = tk_scope_open(m->context);
    tk_status status =
        tk_tree_set(m->parameters, parameter->name, tk_contiguous(first_value(m, parameter)));
    tk_scope_close(scope);
    m->index++;
    return status;
}

tk_status tk_model_init(tk_context *context, const tk_model_config *config, uint64_t seed,
                        tk_tree *parameters) {
    NN_NEED(context);
    NN_NEED(config);
    NN_NEED(parameters);
    tk_status status = tk_model_config_check(config);
    if (status != TK_OK) return status;
    making m = {context, config, parameters, seed, 0};
    status = tk_parameters_visit(config, make_one, &m);
    return status == TK_OK ? tk_tree_eval(parameters) : status;
}

static tk_status check_one(void *arg, const tk_parameter *parameter) {
    const tk_tree *tree = arg;
    tk_array array = tk_tree_get(tree, parameter->name);
    if (!array.node)
        return tk_error_set(TK_NOT_FOUND, "the model has no parameter \"%s\"", parameter->name);
    tk_shape shape = tk_array_shape(array);
    bool fits = shape.count == parameter->shape.count;
    for (int64_t i = 0; fits && i < shape.count; i++)
        fits = shape.items[i] == parameter->shape.items[i];
    if (!fits)
        return tk_error_set(
            TK_SHAPE_ERROR,
            "parameter \"%s\" has %lld axes, the first of length %lld; expected %lld "
            "and %lld",
            parameter->name, (long long)shape.count, shape.count ? (long long)shape.items[0] : 1LL,
            (long long)parameter->shape.count, (long long)parameter->shape.items[0]);
    if (!tk_dtype_is_float(tk_array_dtype(array)))
        return tk_error_set(TK_DTYPE_ERROR, "parameter \"%s\" is %s, expected a float dtype",
                            parameter->name, tk_dtype_name(tk_array_dtype(array)));
    return TK_OK;
}

tk_status tk_model_check(const tk_model_config *config, const tk_tree *parameters) {
    NN_NEED(config);
    NN_NEED(parameters);
    tk_status status = tk_model_config_check(config);
    return status == TK_OK ? tk_parameters_visit(config, check_one, (void *)(uintptr_t)parameters)
                           : status;
}
