/* Update rules against MLX's (make_goldens.py) over several steps; schedules; clipping. */
#include "nn/nn_golden.h"
#include "tiki/optim.h"

#define STEPS 5

static const char *const names[] = {"wide", "tall", "line", "one", "cube"};
#define N_NAMES (sizeof names / sizeof names[0])

/* Parameters or gradients: the arrays "PREFIX.NAME" under their names. */
static tk_tree *tree_of(const char *prefix) {
    tk_tree *tree = tk_tree_new();
    assert_non_null(tree);
    for (size_t i = 0; i < N_NAMES; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s.%s", prefix, names[i]);
        assert_ok(tk_tree_set(tree, names[i], tk_tree_get(golden, name)));
    }
    return tree;
}

static void compare(const tk_tree *parameters, const char *name, int step, double tolerance) {
    for (size_t i = 0; i < N_NAMES; i++) {
        char full[96];
        snprintf(full, sizeof full, "%s.%d.%s", name, step, names[i]);
        tk_array expected = tk_tree_get(golden, full);
        assert_non_null(expected.node);
        assert_close(tk_tree_get(parameters, names[i]), expected, tolerance, full);
    }
}

/* All steps of a case of make_goldens.py. */
static void run_case(const char *name, tk_optimizer_options options, double tolerance) {
    tk_optimizer *optimizer;
    assert_ok(tk_optimizer_create(context, &options, &optimizer));
    tk_tree *parameters = tree_of("start");
    assert_ok(tk_optimizer_init(optimizer, parameters));
    for (int step = 1; step <= STEPS; step++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "gradient.%d", step);
        tk_tree *gradients = tree_of(prefix);
        assert_ok(tk_optimizer_step(optimizer, parameters, gradients));
        assert_ok(tk_tree_eval(parameters));
        assert_ok(tk_tree_eval(tk_optimizer_state(optimizer)));
        tk_tree_free(gradients);
        compare(parameters, name, step, tolerance);
    }
    int64_t steps = 0;
    assert_ok(tk_item_int(tk_tree_get(tk_optimizer_state(optimizer), "step"), &steps));
    assert_int_equal(steps, STEPS);
    tk_tree_free(parameters);
    tk_optimizer_free(optimizer);
}

static tk_optimizer_options with_rate(tk_optimizer_kind kind, double rate) {
    tk_optimizer_options options = tk_optimizer_defaults(kind);
    options.learning_rate = rate;
    return options;
}

static void test_sgd(void **state) {
    (void)state;
    tk_optimizer_options o = with_rate(TK_OPTIMIZER_SGD, 0.1);
    run_case("sgd", o, 1e-6);
    o.weight_decay = 0.3;
    run_case("sgd-decay", o, 1e-6);
    o.weight_decay = 0;
    o.momentum = 0.9;
    run_case("sgd-momentum", o, 1e-6);
    o.nesterov = true;
    run_case("sgd-nesterov", o, 1e-6);
    o.nesterov = false;
    o.dampening = 0.4;
    o.weight_decay = 0.1;
    run_case("sgd-dampening", o, 1e-6);
}

static void test_adaptive(void **state) {
    (void)state;
    run_case("rmsprop", with_rate(TK_OPTIMIZER_RMSPROP, 0.1), 3e-6);
    tk_optimizer_options o = with_rate(TK_OPTIMIZER_RMSPROP, 0.1);
    o.decay = 0.7;
    o.epsilon = 1e-3;
    run_case("rmsprop-alpha", o, 3e-6);
    run_case("adagrad", with_rate(TK_OPTIMIZER_ADAGRAD, 0.1), 3e-6);
    run_case("adadelta", with_rate(TK_OPTIMIZER_ADADELTA, 1), 3e-6);
    o = with_rate(TK_OPTIMIZER_ADADELTA, 0.5);
    o.decay = 0.6;
    o.epsilon = 1e-3;
    run_case("adadelta-rho", o, 3e-6);
}

static void test_adam(void **state) {
    (void)state;
    run_case("adam", with_rate(TK_OPTIMIZER_ADAM, 0.1), 3e-6);
    tk_optimizer_options o = with_rate(TK_OPTIMIZER_ADAM, 0.1);
    o.beta1 = 0.8;
    o.beta2 = 0.95;
    o.bias_correction = true;
    run_case("adam-correction", o, 3e-6);
    run_case("adamw", with_rate(TK_OPTIMIZER_ADAMW, 0.1), 3e-6);
    o = with_rate(TK_OPTIMIZER_ADAMW, 0.1);
    o.beta2 = 0.95;
    o.weight_decay = 0.2;
    o.bias_correction = true;
    run_case("adamw-correction", o, 3e-6);
    run_case("adamax", with_rate(TK_OPTIMIZER_ADAMAX, 0.1), 3e-6);
}

static void test_lion(void **state) {
    (void)state;
    tk_optimizer_options o = with_rate(TK_OPTIMIZER_LION, 0.1);
    run_case("lion", o, 1e-6);
    o.beta1 = 0.8;
    o.beta2 = 0.9;
    o.weight_decay = 0.3;
    run_case("lion-decay", o, 1e-6);
}

static void test_adafactor(void **state) {
    (void)state;
    tk_optimizer_options o = tk_optimizer_defaults(TK_OPTIMIZER_ADAFACTOR);
    run_case("adafactor", o, 3e-6);
    o.warmup_init = true;
    run_case("adafactor-warmup", o, 3e-6);
    o = with_rate(TK_OPTIMIZER_ADAFACTOR, 0.1);
    o.relative_step = false;
    o.beta1 = 0.9;
    run_case("adafactor-moment", o, 3e-6);
    o.beta1 = 0;
    o.scale_parameter = false;
    o.weight_decay = 0.2;
    o.clip_threshold = 0.5;
    run_case("adafactor-rate", o, 3e-6);
}

/* Five quintic iterations magnify rounding. */
static void test_muon(void **state) {
    (void)state;
    tk_optimizer_options o = with_rate(TK_OPTIMIZER_MUON, 0.1);
    run_case("muon", o, 3e-5);
    o.momentum = 0.8;
    o.weight_decay = 0;
    o.nesterov = false;
    o.newton_steps = 3;
    run_case("muon-plain", o, 3e-5);
}

/* Parameters without a gradient stay what they are; the state of the others is made when needed. */
static void test_some_gradients(void **state) {
    (void)state;
    tk_optimizer *optimizer;
    tk_optimizer_options options = with_rate(TK_OPTIMIZER_ADAM, 0.1);
    assert_ok(tk_optimizer_create(context, &options, &optimizer));
    tk_tree *parameters = tree_of("start"), *gradients = tk_tree_new();
    assert_ok(tk_tree_set(gradients, "line", tk_tree_get(golden, "gradient.1.line")));
    assert_ok(tk_optimizer_step(optimizer, parameters, gradients));
    assert_close(tk_tree_get(parameters, "line"), tk_tree_get(golden, "adam.1.line"), 3e-6, "line");
    assert_true(tk_array_same(tk_tree_get(parameters, "wide"), tk_tree_get(golden, "start.wide")));
    assert_int_equal(tk_tree_count(tk_optimizer_state(optimizer)), 4);
    tk_tree_free(parameters);
    tk_tree_free(gradients);
    tk_optimizer_free(optimizer);
}

static void test_refusals(void **state) {
    (void)state;
    tk_optimizer *optimizer;
    tk_optimizer_options o = with_rate(TK_OPTIMIZER_ADAM, -1);
    assert_fails(tk_optimizer_create(context, &o, &optimizer), TK_INVALID_ARGUMENT,
                 "learning_rate");
    o = with_rate(TK_OPTIMIZER_ADAM, NAN);
    assert_fails(tk_optimizer_create(context, &o, &optimizer), TK_INVALID_ARGUMENT,
                 "learning_rate");
    o = with_rate(TK_OPTIMIZER_ADAM, 1);
    o.beta2 = 1;
    assert_fails(tk_optimizer_create(context, &o, &optimizer), TK_INVALID_ARGUMENT, "beta2");
    o = with_rate(TK_OPTIMIZER_ADAM, 1);
    o.size = 8;
    assert_fails(tk_optimizer_create(context, &o, &optimizer), TK_INVALID_ARGUMENT, "size");
    tk_optimizer_kind kind;
    assert_fails(tk_optimizer_find("adamax2", &kind), TK_NOT_FOUND, "adafactor");
    for (int i = 0; i < TK_OPTIMIZER_COUNT; i++) {
        assert_ok(tk_optimizer_find(tk_optimizer_name((tk_optimizer_kind)i), &kind));
        assert_int_equal(kind, i);
    }
    assert_null(tk_optimizer_name(TK_OPTIMIZER_COUNT));
}

/* A gradient of another shape is refused before anything changes. */
static void test_wrong_gradient_changes_nothing(void **state) {
    (void)state;
    tk_optimizer *optimizer;
    tk_optimizer_options options = with_rate(TK_OPTIMIZER_ADAM, 0.1);
    assert_ok(tk_optimizer_create(context, &options, &optimizer));
    tk_tree *parameters = tree_of("start"), *gradients = tree_of("gradient.1");
    assert_ok(tk_optimizer_init(optimizer, parameters));
    assert_ok(tk_tree_set(gradients, "cube", tk_tree_get(golden, "gradient.1.line")));
    assert_fails(tk_optimizer_step(optimizer, parameters, gradients), TK_SHAPE_ERROR, "cube");
    for (size_t i = 0; i < N_NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "start.%s", names[i]);
        assert_true(tk_array_same(tk_tree_get(parameters, names[i]), tk_tree_get(golden, name)));
    }
    int64_t steps = -1;
    assert_ok(tk_item_int(tk_tree_get(tk_optimizer_state(optimizer), "step"), &steps));
    assert_int_equal(steps, 0);
    tk_tree_free(parameters);
    tk_tree_free(gradients);
    tk_optimizer_free(optimizer);
}

static void test_schedules(void **state) {
    (void)state;
    assert_near(tk_schedule_constant(0.3), 0.3, 0);
    assert_near(tk_schedule_linear(1, 3, 4, 0), 1, 0);
    assert_near(tk_schedule_linear(1, 3, 4, 1), 1.5, 0);
    assert_near(tk_schedule_linear(1, 3, 4, 9), 3, 0);
    assert_near(tk_schedule_linear(1, 3, 0, 0), 3, 0);
    assert_near(tk_schedule_cosine(2, 1, 8, 0), 2, 0);
    assert_near(tk_schedule_cosine(2, 1, 8, 4), 1.5, 1e-15);
    assert_near(tk_schedule_cosine(2, 1, 8, 2), 1.5 + 0.5 * sqrt(0.5), 1e-15);
    assert_near(tk_schedule_cosine(2, 1, 8, 8), 1, 0);
    assert_near(tk_schedule_cosine(2, 1, 8, 100), 1, 0);
    assert_near(tk_schedule_exponential(2, 0.5, 3), 0.25, 0);
    assert_near(tk_schedule_steps(2, 0.5, 10, 9), 2, 0);
    assert_near(tk_schedule_steps(2, 0.5, 10, 25), 0.5, 0);
}

/* Warm-up, then what --decay says; nothing depends on how long the run is. */
static void test_training_rate(void **state) {
    (void)state;
    tk_model_config model = tk_model_config_make(TK_MODEL_LLAMA, 1, 2, 16, 8);
    tk_train_options o = tk_train_defaults(&model);
    o.optimizer.learning_rate = 0.5;
    o.warmup = 4;
    assert_near(tk_train_rate(&o, 0), 0.125, 0);
    assert_near(tk_train_rate(&o, 3), 0.5, 0);
    assert_near(tk_train_rate(&o, 1000000), 0.5, 0);
    o.decay = TK_DECAY_LINEAR;
    o.decay_steps = 10;
    assert_near(tk_train_rate(&o, 4), 0.5, 0);
    assert_near(tk_train_rate(&o, 9), 0.275, 1e-15);
    assert_near(tk_train_rate(&o, 400), 0.05, 1e-15);
    o.decay = TK_DECAY_COSINE;
    assert_near(tk_train_rate(&o, 9), 0.275, 1e-15);
    o.warmup = 0;
    assert_near(tk_train_rate(&o, 0), 0.5, 0);
}

static void test_clipping(void **state) {
    (void)state;
    const float first[] = {3, 0}, second[] = {0, 4, 0};
    tk_scope scope = tk_scope_open(context);
    tk_tree *gradients = tk_tree_new();
    assert_ok(tk_tree_set(gradients, "a", tk_from_data(context, first, TK_SHAPE(2), TK_FLOAT32)));
    assert_ok(tk_tree_set(gradients, "b", tk_from_data(context, second, TK_SHAPE(3), TK_FLOAT32)));
    assert_near(first_f32(tk_global_norm(context, gradients)), 5, 1e-6);
    tk_array norm;
    assert_ok(tk_clip_global_norm(context, gradients, 10, &norm));
    assert_near(first_f32(norm), 5, 1e-6);
    tk_release(norm);
    assert_near(first_f32(tk_global_norm(context, gradients)), 5, 1e-6);
    assert_ok(tk_clip_global_norm(context, gradients, 2, NULL));
    assert_near(first_f32(tk_global_norm(context, gradients)), 2, 1e-5);
    assert_fails(tk_clip_global_norm(context, gradients, -1, NULL), TK_INVALID_ARGUMENT,
                 "max_norm");
    assert_ok(tk_clip_global_norm(context, gradients, 0, NULL));
    assert_true(first_f32(tk_global_norm(context, gradients)) == 0);
    tk_tree_free(gradients);
    tk_scope_close(scope);
}

static int prepare(void **state) {
    (void)state;
    return open_golden("tests/nn/optimizers.safetensors");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_adaptive),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_lion),
        cmocka_unit_test(test_adafactor),
        cmocka_unit_test(test_muon),
        cmocka_unit_test(test_some_gradients),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_wrong_gradient_changes_nothing),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_training_rate),
        cmocka_unit_test(test_clipping),
    };
    return cmocka_run_group_tests(tests, prepare, close_golden);
}
