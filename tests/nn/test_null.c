/* NULL where models, optimizers, data and training need something. */
#include "support/null_check.h"
#include "tiki/train.h"

typedef struct fixture {
    tk_context *context;
    tk_scope scope;
    tk_tree *tree;
    tk_model_config config;
} fixture;

static fixture open_fixture(void) {
    fixture f = {.context = make_context(), .tree = tk_tree_new()};
    f.scope = tk_scope_open(f.context);
    f.config = tk_model_config_make(TK_MODEL_LLAMA, 1, 1, 8, 8);
    return f;
}

static void close_fixture(fixture *f) {
    tk_tree_free(f->tree);
    tk_scope_close(f->scope);
    tk_context_release(f->context);
}

static void models(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_model_config *config = &f.config;
    tk_array tokens = tk_zeros(f.context, TK_SHAPE(1, 4), TK_INT32);
    gives_status(tk_model_config_check(P(config)));
    gives_status(tk_model_config_load(P("x"), P(config)));
    gives_status(tk_model_config_save(P("x"), P(config)));
    gives_status(tk_model_init(P(f.context), P(config), 0, P(f.tree)));
    gives_status(tk_model_check(P(config), P(f.tree)));
    gives_status(tk_model_load(P(f.context), P("x"), P(config), P(f.tree)));
    gives_array(tk_model_forward(P(config), P(f.tree), tokens, NULL));
    gives_array(tk_model_loss(P(config), P(f.tree), tokens, NULL));
    close_fixture(&f);
}

static void caches_and_draws(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_kv_cache *cache;
    tk_array keys = tk_zeros(f.context, TK_SHAPE(1, 1, 1, 1), TK_FLOAT32), out;
    float logits[2] = {0, 1};
    tk_sampling sampling = {.top_p = 1};
    int64_t token;
    assert_ok(tk_kv_cache_create(f.context, 1, 2, &cache));
    gives_status(tk_kv_cache_create(P(f.context), 1, 2, P(&cache)));
    gives_status(tk_kv_cache_trim(P(cache), 0));
    gives_status(tk_kv_cache_append(P(cache), 0, keys, keys, P(&out), P(&out)));
    gives_status(tk_kv_cache_advance(P(cache), 1));
    gives(tk_kv_cache_length(P(cache)), 0);
    gives_nothing(tk_kv_cache_free(P(cache)));
    gives_status(tk_sample(P(logits), 2, P(&sampling), 0, P(&token)));
    tk_kv_cache_free(cache);
    close_fixture(&f);
}

static void initial_values(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_shape shape = TK_SHAPE(2, 2);
    gives_array(tk_init_normal(P(f.context), shape, TK_FLOAT32, 0, 1, TK_NO_ARRAY));
    gives_array(tk_init_uniform(P(f.context), shape, TK_FLOAT32, 0, 1, TK_NO_ARRAY));
    gives_array(tk_init_glorot_normal(P(f.context), shape, TK_FLOAT32, 1, TK_NO_ARRAY));
    gives_array(tk_init_glorot_uniform(P(f.context), shape, TK_FLOAT32, 1, TK_NO_ARRAY));
    gives_array(tk_init_he_normal(P(f.context), shape, TK_FLOAT32, true, 1, TK_NO_ARRAY));
    gives_array(tk_init_he_uniform(P(f.context), shape, TK_FLOAT32, true, 1, TK_NO_ARRAY));
    close_fixture(&f);
}

static void optimizers(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_optimizer_options options = tk_optimizer_defaults(TK_OPTIMIZER_SGD);
    tk_optimizer_kind kind;
    tk_optimizer *optimizer;
    assert_ok(tk_optimizer_create(f.context, &options, &optimizer));
    gives_status(tk_optimizer_find(P("sgd"), P(&kind)));
    gives_status(tk_optimizer_create(P(f.context), P(&options), P(&optimizer)));
    gives_status(tk_optimizer_init(P(optimizer), P(f.tree)));
    gives_status(tk_optimizer_step(P(optimizer), P(f.tree), P(f.tree)));
    gives_status(tk_optimizer_set_rate(P(optimizer), 1));
    gives_status(tk_optimizer_set_rate_array(P(optimizer), tk_scalar(f.context, 1)));
    gives(tk_optimizer_state(P(optimizer)), NULL);
    gives_nothing(tk_optimizer_free(P(optimizer)));
    gives_array(tk_global_norm(P(f.context), P(f.tree)));
    gives_status(tk_clip_global_norm(P(f.context), P(f.tree), 1, NULL));
    tk_optimizer_free(optimizer);
    close_fixture(&f);
}

static void data(void **state) {
    (void)state;
    fixture f = open_fixture();
    const char *path = "LICENSE";
    tk_corpus *corpus;
    tk_batches batches = {.length = 1, .batch = 1};
    assert_ok(tk_corpus_load(&path, 1, &corpus));
    batches.bytes = tk_corpus_bytes(corpus);
    batches.size = tk_corpus_size(corpus);
    gives_status(tk_corpus_load(P(&path), 1, P(&corpus)));
    gives(tk_corpus_bytes(P(corpus)), NULL);
    gives(tk_corpus_size(P(corpus)), 0);
    gives(tk_corpus_files(P(corpus)), 0);
    gives(tk_corpus_fingerprint(P(corpus)), 0);
    gives_nothing(tk_corpus_free(P(corpus)));
    gives_status(tk_batches_check(P(&batches)));
    gives(tk_batches_start(P(&batches), 0), 0);
    gives_array(tk_batches_get(P(f.context), P(&batches), 0));
    batches.bytes = NULL;
    assert_int_equal(tk_batches_check(&batches), TK_INVALID_ARGUMENT);
    tk_corpus_free(corpus);
    close_fixture(&f);
}

static void training(void **state) {
    (void)state;
    fixture f = open_fixture();
    unsigned char bytes[64] = {0};
    tk_train_options options = tk_train_defaults(&f.config);
    tk_train_report report;
    tk_trainer *trainer;
    double nats;
    options.batch = 1;
    assert_ok(tk_trainer_create(f.context, &options, bytes, sizeof bytes, &trainer));
    gives(tk_train_defaults(P(&f.config)).model.size, 0);
    gives(tk_train_rate(P(&options), 0), 0);
    gives_status(tk_trainer_create(P(f.context), P(&options), P(bytes), sizeof bytes, P(&trainer)));
    gives_status(tk_trainer_step(P(trainer), NULL, P(&report)));
    gives_status(tk_trainer_restore(P(trainer), P(f.tree), P(f.tree), 0));
    gives_status(tk_model_evaluate(P(f.context), P(&f.config), P(f.tree), NULL, P(bytes),
                                   sizeof bytes, 1, NULL, P(&nats)));
    gives(tk_trainer_model(P(trainer)), NULL);
    gives(tk_trainer_steps(P(trainer)), 0);
    gives(tk_trainer_parameters(P(trainer)), NULL);
    gives(tk_trainer_state(P(trainer)), NULL);
    gives_nothing(tk_trainer_free(P(trainer)));
    tk_trainer_free(trainer);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models),     cmocka_unit_test(caches_and_draws),
        cmocka_unit_test(data),       cmocka_unit_test(initial_values),
        cmocka_unit_test(optimizers), cmocka_unit_test(training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
