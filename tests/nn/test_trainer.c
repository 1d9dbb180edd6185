/* The training step: what it computes, that it is a function of its number, and that a step which
 * fails changes nothing. */
#include "nn/nn_check.h"

static tk_context *context;
static unsigned char text[3000];

static tk_train_options small(void) {
    tk_model_config model = tk_model_config_make(TK_MODEL_LLAMA, 2, 2, 32, 16);
    tk_train_options options = tk_train_defaults(&model);
    options.batch = 4;
    options.warmup = 5;
    options.optimizer.learning_rate = 1e-2;
    options.seed = 3;
    return options;
}

static tk_trainer *make_trainer(const tk_train_options *options) {
    tk_trainer *trainer;
    assert_ok(tk_trainer_create(context, options, text, sizeof text, &trainer));
    return trainer;
}

static tk_train_report step(tk_trainer *trainer) {
    tk_train_report report = {0};
    assert_ok(tk_trainer_step(trainer, NULL, &report));
    return report;
}

static void test_it_learns(void **state) {
    (void)state;
    tk_train_options options = small();
    tk_trainer *trainer = make_trainer(&options);
    tk_train_report first = step(trainer), last = first;
    assert_int_equal(first.step, 1);
    assert_int_equal(first.tokens, 4 * 16);
    assert_near(first.rate, 2e-3, 1e-12);
    assert_near(first.loss, log(256), 0.5);
    for (int i = 0; i < 60; i++) last = step(trainer);
    assert_int_equal(last.step, 61);
    assert_int_equal(tk_trainer_steps(trainer), 61);
    assert_true(last.loss < 3);
    tk_trainer_free(trainer);
}

static void test_both_families_and_half_types(void **state) {
    (void)state;
    const tk_dtype dtypes[] = {TK_FLOAT32, TK_BFLOAT16, TK_FLOAT16};
    for (int i = 0; i < 6; i++) {
        tk_train_options options = small();
        options.model = tk_model_config_make(i % 2 ? TK_MODEL_GPT2 : TK_MODEL_LLAMA, 1, 2, 32, 16);
        options.model.dropout = 0.1;
        options.dtype = dtypes[i / 2];
        tk_trainer *trainer = make_trainer(&options);
        double first = step(trainer).loss, last = first;
        for (int k = 0; k < 40; k++) last = step(trainer).loss;
        assert_true(last < first - 1);
        const tk_tree *parameters = tk_trainer_parameters(trainer);
        for (size_t k = 0; k < tk_tree_count(parameters); k++)
            assert_int_equal(tk_array_dtype(tk_tree_at(parameters, k)), TK_FLOAT32);
        tk_trainer_free(trainer);
    }
}

/* Two micro-batches of 4 are the sequences of one batch of 8, and the mean of their gradients is
 * its gradient. SGD, since Adam makes much of the sign of tiny differences. */
static void test_accumulation_is_a_larger_batch(void **state) {
    (void)state;
    tk_train_options whole = small(), parts = whole;
    whole.optimizer = parts.optimizer = tk_optimizer_defaults(TK_OPTIMIZER_SGD);
    whole.optimizer.learning_rate = parts.optimizer.learning_rate = 0.1;
    whole.batch = 8;
    parts.accumulate = 2;
    tk_trainer *one = make_trainer(&whole), *other = make_trainer(&parts);
    for (int i = 0; i < 10; i++) {
        tk_train_report a = step(one), b = step(other);
        assert_near(a.loss, b.loss, 2e-6);
        assert_near(a.norm, b.norm, 2e-5);
        assert_int_equal(a.tokens, b.tokens);
    }
    const tk_tree *a = tk_trainer_parameters(one), *b = tk_trainer_parameters(other);
    for (size_t i = 0; i < tk_tree_count(a); i++)
        assert_close(tk_tree_at(b, i), tk_tree_at(a, i), 3e-6, tk_tree_name(a, i));
    tk_trainer_free(one);
    tk_trainer_free(other);
}

static void test_steps_are_functions(void **state) {
    (void)state;
    tk_train_options options = small();
    options.model.dropout = 0.2;
    options.accumulate = 2;
    tk_trainer *one = make_trainer(&options), *other = make_trainer(&options);
    for (int i = 0; i < 12; i++) {
        tk_train_report a = step(one), b = step(other);
        assert_true(a.loss == b.loss && a.norm == b.norm);
    }
    assert_true(same_trees(tk_trainer_parameters(one), tk_trainer_parameters(other)));
    assert_true(same_trees(tk_trainer_state(one), tk_trainer_state(other)));
    tk_trainer_free(one);
    tk_trainer_free(other);
}

/* Dropout differs from step to step and between the micro-batches of one. */
static void test_dropout_counts(void **state) {
    (void)state;
    tk_train_options plain = small(), dropping = plain;
    dropping.model.dropout = 0.5;
    tk_trainer *one = make_trainer(&plain), *other = make_trainer(&dropping);
    assert_true(step(one).loss != step(other).loss);
    tk_trainer_free(one);
    tk_trainer_free(other);
}

/* ---- interruption ---- */

typedef struct patience {
    int left; /* polls until it gives up */
} patience;

static bool give_up(void *arg) {
    patience *p = arg;
    return p->left-- <= 0;
}

/* A step that is interrupted can be taken again, and is then the step it would have been. */
static void test_interruption_changes_nothing(void **state) {
    (void)state;
    tk_train_options options = small();
    options.model = tk_model_config_make(TK_MODEL_LLAMA, 2, 4, 128, 64);
    options.batch = 16; /* far more than the 20 ms between polls */
    options.accumulate = 2;
    tk_trainer *one = make_trainer(&options), *other = make_trainer(&options);
    int interrupted = 0;
    for (int i = 0; i < 4; i++) {
        tk_tree *before = copy_tree(context, tk_trainer_parameters(one)),
                *state_before = copy_tree(context, tk_trainer_state(one));
        patience p = {i};
        tk_wait wait = {.poll = give_up, .arg = &p};
        tk_train_report report, expected = step(other);
        tk_status status = tk_trainer_step(one, &wait, &report);
        if (status == TK_INTERRUPTED) {
            interrupted++;
            assert_int_equal(tk_trainer_steps(one), i);
            assert_true(same_trees(before, tk_trainer_parameters(one)));
            assert_true(same_trees(state_before, tk_trainer_state(one)));
            report = step(one);
        } else {
            assert_ok(status);
        }
        assert_true(report.loss == expected.loss && report.norm == expected.norm);
        assert_true(same_trees(tk_trainer_parameters(one), tk_trainer_parameters(other)));
        assert_true(same_trees(tk_trainer_state(one), tk_trainer_state(other)));
        tk_tree_free(before);
        tk_tree_free(state_before);
    }
    assert_true(interrupted > 0);
    tk_trainer_free(one);
    tk_trainer_free(other);
}

/* ---- restoring ---- */

static void test_restore(void **state) {
    (void)state;
    tk_train_options options = small();
    options.model.dropout = 0.1;
    tk_trainer *one = make_trainer(&options), *other = make_trainer(&options);
    for (int i = 0; i < 7; i++) step(one);
    tk_tree *parameters = copy_tree(context, tk_trainer_parameters(one)),
            *saved = copy_tree(context, tk_trainer_state(one));
    assert_ok(tk_trainer_restore(other, parameters, saved, 7));
    tk_tree_free(parameters);
    tk_tree_free(saved);
    for (int i = 0; i < 7; i++) {
        tk_train_report a = step(one), b = step(other);
        assert_true(a.loss == b.loss && a.norm == b.norm && a.step == b.step);
    }
    assert_true(same_trees(tk_trainer_parameters(one), tk_trainer_parameters(other)));
    assert_true(same_trees(tk_trainer_state(one), tk_trainer_state(other)));
    tk_trainer_free(one);
    tk_trainer_free(other);
}

static void test_restore_refuses_what_does_not_fit(void **state) {
    (void)state;
    tk_train_options options = small(), wider = options;
    wider.model.hidden *= 2;
    tk_trainer *trainer = make_trainer(&options), *wide = make_trainer(&wider);
    step(trainer);
    tk_tree *parameters = copy_tree(context, tk_trainer_parameters(trainer)),
            *saved = copy_tree(context, tk_trainer_state(trainer)), *empty = tk_tree_new();
    assert_fails(
        tk_trainer_restore(trainer, tk_trainer_parameters(wide), tk_trainer_state(wide), 9),
        TK_SHAPE_ERROR, "gate_proj");
    assert_fails(tk_trainer_restore(trainer, parameters, tk_trainer_state(wide), 9), TK_SHAPE_ERROR,
                 "gate_proj");
    assert_fails(tk_trainer_restore(trainer, parameters, empty, 9), TK_NOT_FOUND, "step");
    assert_fails(tk_trainer_restore(trainer, parameters, saved, -1), TK_INVALID_ARGUMENT,
                 "step -1");
    assert_int_equal(tk_trainer_steps(trainer), 1);
    assert_true(same_trees(parameters, tk_trainer_parameters(trainer)));
    assert_true(same_trees(saved, tk_trainer_state(trainer)));
    tk_tree_free(parameters);
    tk_tree_free(saved);
    tk_tree_free(empty);
    tk_trainer_free(trainer);
    tk_trainer_free(wide);
}

/* A run that diverged stops with the last parameters that were numbers. */
static void test_diverging(void **state) {
    (void)state;
    tk_train_options options = small();
    options.warmup = 0;
    options.optimizer.learning_rate = 1e25;
    tk_trainer *trainer = make_trainer(&options);
    tk_train_report report;
    tk_tree *before = NULL;
    tk_status status = TK_OK;
    for (int i = 0; status == TK_OK && i < 50; i++) {
        tk_tree_free(before);
        before = copy_tree(context, tk_trainer_parameters(trainer));
        status = tk_trainer_step(trainer, NULL, &report);
    }
    assert_fails(status, TK_NAN_TRAPPED, "the norm of the gradients");
    assert_true(same_trees(before, tk_trainer_parameters(trainer)));
    tk_tree_free(before);
    tk_trainer_free(trainer);
}

static void test_refusals(void **state) {
    (void)state;
    tk_trainer *trainer;
    tk_train_options o = small();
    assert_fails(tk_trainer_create(context, &o, text, 16, &trainer), TK_INVALID_ARGUMENT,
                 "16 bytes of data");
    o.accumulate = 0;
    assert_fails(tk_trainer_create(context, &o, text, sizeof text, &trainer), TK_INVALID_ARGUMENT,
                 "accumulate 0");
    o = small();
    o.decay = TK_DECAY_COSINE;
    assert_fails(tk_trainer_create(context, &o, text, sizeof text, &trainer), TK_INVALID_ARGUMENT,
                 "decay_steps");
    o = small();
    o.dtype = TK_INT32;
    assert_fails(tk_trainer_create(context, &o, text, sizeof text, &trainer), TK_DTYPE_ERROR,
                 "int32");
    o = small();
    o.model.heads = 5;
    assert_fails(tk_trainer_create(context, &o, text, sizeof text, &trainer), TK_INVALID_ARGUMENT,
                 "heads");
}

static int prepare(void **state) {
    (void)state;
    static const char words[] = "the loss of a model goes down when it reads the same again. ";
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)words[(i + i / 97) % (sizeof words - 1)];
    context = make_context();
    return 0;
}

static int clean(void **state) {
    (void)state;
    tk_context_release(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_learns),
        cmocka_unit_test(test_both_families_and_half_types),
        cmocka_unit_test(test_accumulation_is_a_larger_batch),
        cmocka_unit_test(test_steps_are_functions),
        cmocka_unit_test(test_dropout_counts),
        cmocka_unit_test(test_interruption_changes_nothing),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_restore_refuses_what_does_not_fit),
        cmocka_unit_test(test_diverging),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
