/* Models: configurations to and from files, parameters, the forward pass with and without a cache.
 * That both families compute what they should is checked against transformers in tests/oracles. */
#define _GNU_SOURCE
#include <unistd.h>

#include "nn/nn_check.h"

static tk_context *context;
static char folder[256];

static const char *in_folder(const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

static tk_model_config small(tk_model_family family) {
    tk_model_config config = tk_model_config_make(family, 2, 4, 32, 24);
    if (family == TK_MODEL_LLAMA) {
        config.kv_heads = 2;
        config.attention_bias = true;
        config.mlp_bias = true;
        config.tie_embeddings = false;
    }
    return config;
}

static void assert_same_config(const tk_model_config *a, const tk_model_config *b) {
    const int64_t left[] = {a->family,   a->vocab,         a->layers, a->heads,   a->kv_heads,
                            a->dim,      a->head_dim,      a->hidden, a->context, a->attention_bias,
                            a->mlp_bias, a->tie_embeddings},
                  right[] = {b->family,         b->vocab,    b->layers,
                             b->heads,          b->kv_heads, b->dim,
                             b->head_dim,       b->hidden,   b->context,
                             b->attention_bias, b->mlp_bias, b->tie_embeddings};
    assert_memory_equal(left, right, sizeof left);
    assert_near(a->norm_eps, b->norm_eps, 0);
    assert_near(a->rope_theta, b->rope_theta, 0);
    assert_near(a->dropout, b->dropout, 0);
}

static tk_tree *parameters_of(const tk_model_config *config, uint64_t seed) {
    tk_tree *tree = tk_tree_new();
    assert_non_null(tree);
    assert_ok(tk_model_init(context, config, seed, tree));
    return tree;
}

/* ---- config.json ---- */

static void test_config_round_trip(void **state) {
    (void)state;
    for (int family = 0; family < 2; family++) {
        tk_model_config config = small((tk_model_family)family), read = {0};
        config.dropout = 0.25;
        config.norm_eps = 1.25e-6;
        if (family == TK_MODEL_LLAMA) config.rope_theta = 12345.5;
        if (family == TK_MODEL_LLAMA) config.head_dim = 10;
        assert_ok(tk_model_config_save(in_folder("config.json"), &config));
        assert_ok(tk_model_config_load(in_folder("config.json"), &read));
        assert_same_config(&config, &read);
    }
}

static void load_text(const char *text, tk_status expected, const char *part,
                      tk_model_config *out_config) {
    assert_ok(tk_file_write(in_folder("given.json"), text, strlen(text)));
    tk_status status = tk_model_config_load(in_folder("given.json"), out_config);
    if (expected == TK_OK)
        assert_ok(status);
    else
        assert_fails(status, expected, part);
}

#define LLAMA                                                                                      \
    "\"model_type\": \"llama\", \"vocab_size\": 256, \"num_hidden_layers\": 2, "                   \
    "\"num_attention_heads\": 4, \"hidden_size\": 32, \"intermediate_size\": 48"
#define GPT2                                                                                       \
    "\"model_type\": \"gpt2\", \"vocab_size\": 256, \"n_layer\": 2, \"n_head\": 4, "               \
    "\"n_embd\": 32, \"n_positions\": 16"

/* Both ways of writing the rotary base, and defaults that a file may leave out. */
static void test_config_dialects(void **state) {
    (void)state;
    tk_model_config c;
    load_text("{" LLAMA "}", TK_OK, "", &c);
    assert_int_equal(c.kv_heads, 4);
    assert_int_equal(c.head_dim, 8);
    assert_int_equal(c.context, 2048);
    assert_near(c.rope_theta, 10000, 0);
    assert_near(c.norm_eps, 1e-6, 0);
    assert_false(c.tie_embeddings);
    load_text("{" LLAMA ", \"rope_theta\": 5e5, \"torch_dtype\": \"float32\"}", TK_OK, "", &c);
    assert_near(c.rope_theta, 5e5, 0);
    load_text("{" LLAMA ", \"dtype\": \"float32\", \"rope_scaling\": null, "
              "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 7e4}}",
              TK_OK, "", &c);
    assert_near(c.rope_theta, 7e4, 0);
    load_text("{" GPT2 ", \"n_inner\": null}", TK_OK, "", &c);
    assert_int_equal(c.hidden, 128);
    assert_true(c.tie_embeddings);
}

/* What would change the numbers is refused by name. */
static void test_config_refusals(void **state) {
    (void)state;
    tk_model_config c;
    load_text("{", TK_FORMAT_ERROR, "line 1", &c);
    load_text("[]", TK_FORMAT_ERROR, "model_type", &c);
    load_text("{\"model_type\": \"bert\"}", TK_UNSUPPORTED, "bert", &c);
    load_text("{\"model_type\": \"llama\"}", TK_FORMAT_ERROR, "vocab_size", &c);
    load_text("{" LLAMA ", \"hidden_act\": \"gelu\"}", TK_UNSUPPORTED, "hidden_act", &c);
    load_text("{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8}}",
              TK_UNSUPPORTED, "rope_scaling", &c);
    load_text("{" LLAMA ", \"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 1}}",
              TK_UNSUPPORTED, "rope_parameters", &c);
    load_text("{" LLAMA ", \"num_key_value_heads\": 3}", TK_INVALID_ARGUMENT, "do not divide", &c);
    load_text("{" LLAMA ", \"num_key_value_heads\": 0}", TK_INVALID_ARGUMENT, "kv_heads", &c);
    load_text("{" LLAMA ", \"head_dim\": 7}", TK_INVALID_ARGUMENT, "head_dim", &c);
    load_text("{" LLAMA ", \"rms_norm_eps\": \"small\"}", TK_FORMAT_ERROR, "rms_norm_eps", &c);
    load_text("{" LLAMA ", \"attention_bias\": 1}", TK_FORMAT_ERROR, "attention_bias", &c);
    load_text("{" GPT2 ", \"activation_function\": \"relu\"}", TK_UNSUPPORTED,
              "activation_function", &c);
    load_text("{" GPT2 ", \"scale_attn_by_inverse_layer_idx\": true}", TK_UNSUPPORTED, "scale_attn",
              &c);
    load_text("{" LLAMA ", \"partial_rotary_factor\": 0.5}", TK_UNSUPPORTED,
              "partial_rotary_factor", &c);
    load_text("{" LLAMA ", \"quantization_config\": {\"bits\": 4}}", TK_UNSUPPORTED,
              "quantization_config", &c);
    load_text("{" GPT2 ", \"add_cross_attention\": true}", TK_UNSUPPORTED, "add_cross_attention",
              &c);
    assert_fails(tk_model_config_load(in_folder("not-there"), &c), TK_IO_ERROR, "not-there");
    c = small(TK_MODEL_GPT2);
    c.dim = 33;
    assert_fails(tk_model_config_check(&c), TK_INVALID_ARGUMENT, "dim 33");
    c = small(TK_MODEL_LLAMA);
    c.layers = 0;
    assert_fails(tk_model_config_check(&c), TK_INVALID_ARGUMENT, "layers");
}

/* ---- parameters ---- */

static void test_parameters_are_functions_of_the_seed(void **state) {
    (void)state;
    for (int family = 0; family < 2; family++) {
        tk_model_config config = small((tk_model_family)family);
        tk_tree *one = parameters_of(&config, 5), *again = parameters_of(&config, 5),
                *other = parameters_of(&config, 6);
        assert_true(same_trees(one, again));
        assert_false(same_trees(one, other));
        assert_ok(tk_model_check(&config, one));
        tk_tree_free(one);
        tk_tree_free(again);
        tk_tree_free(other);
    }
}

static void test_check_names_what_is_wrong(void **state) {
    (void)state;
    tk_model_config config = small(TK_MODEL_LLAMA), wider = config;
    tk_tree *tree = parameters_of(&config, 5), *empty = tk_tree_new();
    wider.hidden += 64;
    assert_fails(tk_model_check(&wider, tree), TK_SHAPE_ERROR, "layers.0.mlp.gate_proj.weight");
    wider = config;
    wider.layers = 3;
    assert_fails(tk_model_check(&wider, tree), TK_NOT_FOUND, "model.layers.2.");
    assert_fails(tk_model_check(&config, empty), TK_NOT_FOUND, "model.embed_tokens.weight");
    tk_tree_free(tree);
    tk_tree_free(empty);
}

static void save_model(const tk_model_config *config, const tk_tree *tree) {
    assert_ok(tk_model_config_save(in_folder("config.json"), config));
    assert_ok(tk_safetensors_save(in_folder("model.safetensors"), tree, NULL));
}

static void test_load(void **state) {
    (void)state;
    for (int family = 0; family < 2; family++) {
        tk_model_config config = small((tk_model_family)family), read = {0};
        tk_tree *tree = parameters_of(&config, 5), *loaded = tk_tree_new();
        save_model(&config, tree);
        assert_ok(tk_model_load(context, folder, &read, loaded));
        assert_same_config(&config, &read);
        assert_true(same_trees(tree, loaded));
        tk_tree_free(tree);
        tk_tree_free(loaded);
    }
}

/* GPT-2 files of the bare model lack "transformer."; arrays of no use are left out. */
static void test_load_without_prefix(void **state) {
    (void)state;
    tk_model_config config = small(TK_MODEL_GPT2), read;
    tk_tree *tree = parameters_of(&config, 5), *bare = tk_tree_new(), *loaded = tk_tree_new();
    for (size_t i = 0; i < tk_tree_count(tree); i++)
        assert_ok(
            tk_tree_set(bare, tk_tree_name(tree, i) + strlen("transformer."), tk_tree_at(tree, i)));
    assert_ok(tk_tree_set(bare, "h.0.attn.bias", tk_tree_at(tree, 0)));
    save_model(&config, bare);
    assert_ok(tk_model_load(context, folder, &read, loaded));
    assert_true(same_trees(tree, loaded));
    tk_tree_free(tree);
    tk_tree_free(bare);
    tk_tree_free(loaded);
}

/* ---- forward ---- */

static tk_array tokens_of(int64_t batch, int64_t length) {
    int32_t tokens[64];
    assert_true(batch * length <= 64);
    for (int64_t i = 0; i < batch * length; i++) tokens[i] = (int32_t)(i * 37 % 251);
    return tk_from_data(context, tokens, TK_SHAPE(batch, length), TK_INT32);
}

static tk_array columns(tk_array x, int64_t begin, int64_t end) {
    return tk_slice(x, TK_AXES(0, begin), TK_AXES(tk_array_dim(x, 0), end), TK_ALL_AXES);
}

static tk_array middle(tk_array logits, int64_t begin, int64_t end) {
    return tk_slice(logits, TK_AXES(0, begin, 0),
                    TK_AXES(tk_array_dim(logits, 0), end, tk_array_dim(logits, 2)), TK_ALL_AXES);
}

/* Reading a text in parts gives the logits of reading it at once; so does going back and on. */
static void check_cache(const tk_model_config *config) {
    tk_tree *tree = parameters_of(config, 5);
    tk_kv_cache *cache;
    assert_ok(tk_kv_cache_create(context, config->layers, config->context, &cache));
    tk_scope scope = tk_scope_open(context);
    tk_model_run run = {.cache = cache};
    tk_array tokens = tokens_of(2, 20), whole = tk_model_forward(config, tree, tokens, NULL);
    const int64_t ends[] = {0, 7, 8, 9, 10, 17, 20};
    for (int i = 0; i + 1 < 7; i++) {
        int64_t begin = ends[i], end = ends[i + 1];
        tk_array part = tk_model_forward(config, tree, columns(tokens, begin, end), &run);
        assert_close(part, middle(whole, begin, end), 1e-5, "a part");
        assert_ok(tk_kv_cache_advance(cache, end - begin));
        assert_int_equal(tk_kv_cache_length(cache), end);
    }
    assert_ok(tk_kv_cache_trim(cache, 11));
    tk_array again = tk_model_forward(config, tree, columns(tokens, 11, 16), &run);
    assert_close(again, middle(whole, 11, 16), 1e-5, "after going back");
    tk_scope_close(scope);
    tk_kv_cache_free(cache);
    tk_tree_free(tree);
}

static void test_cache(void **state) {
    (void)state;
    for (int family = 0; family < 2; family++) {
        tk_model_config config = small((tk_model_family)family);
        check_cache(&config);
    }
}

static void test_cache_refusals(void **state) {
    (void)state;
    tk_model_config config = small(TK_MODEL_LLAMA);
    tk_tree *tree = parameters_of(&config, 5);
    tk_kv_cache *cache;
    assert_fails(tk_kv_cache_create(context, 0, 4, &cache), TK_INVALID_ARGUMENT, "0 layers");
    assert_ok(tk_kv_cache_create(context, config.layers, 4, &cache));
    tk_scope scope = tk_scope_open(context);
    tk_model_run run = {.cache = cache};
    assert_fails(tk_array_status(tk_model_forward(&config, tree, tokens_of(1, 5), &run)),
                 TK_INVALID_ARGUMENT, "exceed a cache of 4");
    assert_fails(tk_kv_cache_advance(cache, 5), TK_INVALID_ARGUMENT, "exceed a cache of 4");
    assert_fails(tk_kv_cache_trim(cache, 1), TK_INVALID_ARGUMENT, "cannot be cut");
    tk_array out_keys, out_values, flat = tk_zeros(context, TK_SHAPE(2, 3), TK_FLOAT32);
    assert_fails(tk_kv_cache_append(cache, 0, flat, flat, &out_keys, &out_values), TK_SHAPE_ERROR,
                 "[batch, heads, n, dim]");
    assert_fails(tk_kv_cache_append(cache, 9, flat, flat, &out_keys, &out_values),
                 TK_INVALID_ARGUMENT, "layer 9");
    assert_fails(tk_array_status(tk_model_forward(&config, tree, tokens_of(1, 30), NULL)),
                 TK_SHAPE_ERROR, "the model has 24");
    tk_scope_close(scope);
    tk_kv_cache_free(cache);
    tk_tree_free(tree);
}

/* Later tokens change nothing before them. */
static void test_causal(void **state) {
    (void)state;
    for (int family = 0; family < 2; family++) {
        tk_model_config config = small((tk_model_family)family);
        tk_tree *tree = parameters_of(&config, 5);
        tk_scope scope = tk_scope_open(context);
        tk_array tokens = tokens_of(2, 20);
        tk_array changed =
            tk_concatenate((const tk_array[]){columns(tokens, 0, 12), columns(tokens, 0, 8)}, 2, 1);
        tk_array one = tk_model_forward(&config, tree, tokens, NULL),
                 other = tk_model_forward(&config, tree, changed, NULL);
        assert_close(middle(other, 0, 12), middle(one, 0, 12), 0, "before the change");
        tk_scope_close(scope);
        tk_tree_free(tree);
    }
}

/* The loss of a fresh model is about that of guessing, log(256); half types are near it. */
static void test_loss(void **state) {
    (void)state;
    const tk_dtype dtypes[] = {TK_BFLOAT16, TK_FLOAT16};
    for (int family = 0; family < 2; family++) {
        tk_model_config config = small((tk_model_family)family);
        tk_tree *tree = parameters_of(&config, 5);
        tk_scope scope = tk_scope_open(context);
        float loss = first_f32(tk_model_loss(&config, tree, tokens_of(2, 21), NULL));
        assert_near((double)loss, log(256), 0.2);
        for (int i = 0; i < 2; i++) {
            tk_model_run run = {.cast = true, .dtype = dtypes[i]};
            tk_array half = tk_model_loss(&config, tree, tokens_of(2, 21), &run);
            assert_int_equal(tk_array_dtype(half), TK_FLOAT32);
            assert_near((double)first_f32(half), (double)loss, 0.02);
        }
        tk_scope_close(scope);
        tk_tree_free(tree);
    }
}

/* Windows are one after the other, whatever the batch, and the rest is a shorter one. */
static void test_evaluate(void **state) {
    (void)state;
    tk_model_config config = small(TK_MODEL_LLAMA);
    tk_tree *tree = parameters_of(&config, 5);
    unsigned char text[24 * 5 + 8];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)(i * i * 31 >> 3);
    double at_once = 0, one_by_one = 0, sum = 0;
    assert_ok(
        tk_model_evaluate(context, &config, tree, NULL, text, sizeof text, 4, NULL, &at_once));
    assert_ok(
        tk_model_evaluate(context, &config, tree, NULL, text, sizeof text, 1, NULL, &one_by_one));
    assert_near(at_once, one_by_one, 1e-6);
    for (size_t begin = 0; begin + 1 < sizeof text; begin += 24) {
        double part = 0;
        int64_t size = (int64_t)(sizeof text - begin) < 25 ? (int64_t)(sizeof text - begin) : 25;
        assert_ok(
            tk_model_evaluate(context, &config, tree, NULL, text + begin, size, 1, NULL, &part));
        sum += part * (double)(size - 1);
    }
    assert_near(at_once, sum / (double)(sizeof text - 1), 1e-6);
    assert_fails(tk_model_evaluate(context, &config, tree, NULL, text, 1, 1, NULL, &sum),
                 TK_INVALID_ARGUMENT, "1 bytes");
    assert_fails(tk_model_evaluate(context, &config, tree, NULL, text, 9, 0, NULL, &sum),
                 TK_INVALID_ARGUMENT, "batch 0");
    tk_tree_free(tree);
}

static int prepare(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tiki-model-XXXXXX", base ? base : "/tmp");
    context = make_context();
    return mkdtemp(folder) ? 0 : -1;
}

static int clean(void **state) {
    (void)state;
    const char *const files[] = {"config.json", "given.json", "model.safetensors"};
    for (int i = 0; i < 3; i++) remove(in_folder(files[i]));
    tk_context_release(context);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_round_trip),
        cmocka_unit_test(test_config_dialects),
        cmocka_unit_test(test_config_refusals),
        cmocka_unit_test(test_parameters_are_functions_of_the_seed),
        cmocka_unit_test(test_check_names_what_is_wrong),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_load_without_prefix),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_refusals),
        cmocka_unit_test(test_causal),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_evaluate),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
