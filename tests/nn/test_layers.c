/* Layers, activations and initial values against MLX's (make_goldens.py), slopes included; dropout
 * by its distribution too; and what they refuse. */
#include "nn/nn_golden.h"

#include "tiki/nn.h"
#include "tiki/transforms.h"

static void check(const char *name, tk_array got) { assert_close(got, get(name), 2e-6, name); }

static int open_scope(void **state) {
    static tk_scope scope;
    scope = tk_scope_open(context);
    *state = &scope;
    return 0;
}

static int close_scope(void **state) {
    tk_scope_close(*(tk_scope *)*state);
    return 0;
}

/* ---- activations: as many parameters as the widest has ---- */

typedef tk_array (*activation)(tk_array x);

static tk_array leaky_relu(tk_array x) { return tk_nn_leaky_relu(x, 0.2); }
static tk_array elu(tk_array x) { return tk_nn_elu(x, 1); }
static tk_array elu_alpha(tk_array x) { return tk_nn_elu(x, 0.7); }
static tk_array celu(tk_array x) { return tk_nn_celu(x, 1.7); }
static tk_array softshrink(tk_array x) { return tk_nn_softshrink(x, 0.5); }
static tk_array softshrink_1(tk_array x) { return tk_nn_softshrink(x, 1); }
static tk_array hard_shrink(tk_array x) { return tk_nn_hard_shrink(x, 0.5); }
static tk_array hard_shrink_1(tk_array x) { return tk_nn_hard_shrink(x, 1); }
static tk_array hard_tanh(tk_array x) { return tk_nn_hard_tanh(x, -1, 1); }
static tk_array hard_tanh_2(tk_array x) { return tk_nn_hard_tanh(x, -2, 0.5); }
static tk_array step(tk_array x) { return tk_astype(tk_nn_step(x, 0), TK_FLOAT32); }
static tk_array step_1(tk_array x) { return tk_astype(tk_nn_step(x, 1), TK_FLOAT32); }
static tk_array prelu(tk_array x) {
    tk_array slopes = get("slopes");
    return tk_nn_prelu(x, tk_slice(slopes, TK_AXES(0), TK_AXES(tk_array_dim(x, 0)), TK_ALL_AXES));
}

static const struct {
    const char *name;
    activation call;
} activations[] = {
    {"relu2", tk_nn_relu2},
    {"relu6", tk_nn_relu6},
    {"leaky-relu", leaky_relu},
    {"prelu", prelu},
    {"elu", elu},
    {"elu-alpha", elu_alpha},
    {"celu", celu},
    {"selu", tk_nn_selu},
    {"softsign", tk_nn_softsign},
    {"softshrink", softshrink},
    {"softshrink-1", softshrink_1},
    {"hard-shrink", hard_shrink},
    {"hard-shrink-1", hard_shrink_1},
    {"hard-tanh", hard_tanh},
    {"hard-tanh-2", hard_tanh_2},
    {"hardswish", tk_nn_hardswish},
    {"log-sigmoid", tk_nn_log_sigmoid},
    {"gelu-fast", tk_nn_gelu_fast_approx},
    {"mish", tk_nn_mish},
    {"step", step},
    {"step-1", step_1},
};
#define N_ACTIVATIONS (sizeof activations / sizeof activations[0])

static tk_status sum_of(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    tk_array y = (*(const activation *)self)(args[0]);
    return tk_arrays_push(results, tk_sum(y, TK_ALL_AXES, TK_DROPDIMS));
}

static tk_array slope_of(activation call, tk_array x) {
    tk_arrays slopes = {0};
    assert_ok(tk_grad(context, sum_of, &call, &x, 1, NULL, 0, &slopes));
    tk_array slope = tk_multiply(slopes.items[0], tk_scalar(context, 1)); /* of the scope */
    tk_arrays_clear(&slopes);
    return slope;
}

/* At ordinary numbers, at the kinks, far out, at infinity and NaN. */
static void test_values(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ACTIVATIONS; i++)
        check(activations[i].name, activations[i].call(get("x")));
}

static void test_slopes(void **state) {
    (void)state;
    tk_array x = tk_slice(get("x"), TK_AXES(0), TK_AXES(45), TK_ALL_AXES);
    for (size_t i = 0; i < N_ACTIVATIONS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.slope", activations[i].name);
        if (!strncmp(name, "step", 4)) continue;
        check(name, slope_of(activations[i].call, x));
    }
}

/* Far out every slope is a number, where an exponential that is not chosen is infinite. */
static void test_slopes_far_out(void **state) {
    (void)state;
    tk_array x =
        tk_from_data(context, (float[]){-1e4f, -200, -90, 90, 200, 1e4f}, TK_SHAPE(6), TK_FLOAT32);
    for (size_t i = 0; i < N_ACTIVATIONS; i++) {
        if (!strncmp(activations[i].name, "step", 4)) continue;
        float *slopes = values_of(slope_of(activations[i].call, x));
        for (int k = 0; k < 6; k++) {
            if (!isfinite(slopes[k]))
                print_error("%s, %d: %g\n", activations[i].name, k, (double)slopes[k]);
            assert_true(isfinite(slopes[k]));
        }
        free(slopes);
    }
}

static void test_gates(void **state) {
    (void)state;
    tk_array matrix = get("matrix");
    check("glu-1", tk_nn_glu(matrix, 1));
    check("glu--1", tk_nn_glu(matrix, -1));
    check("softmin-0", tk_nn_softmin(matrix, 0));
    check("softmin--1", tk_nn_softmin(matrix, -1));
    check("swiglu", tk_nn_swiglu(matrix, tk_multiply(tk_scalar(context, 2), matrix)));
}

/* ---- layers ---- */

static void test_layers(void **state) {
    (void)state;
    tk_array matrix = get("matrix"), weight = get("weight"), scale = get("scale");
    check("linear", tk_nn_linear(matrix, weight, get("bias")));
    check("linear-plain", tk_nn_linear(matrix, weight, TK_NO_ARRAY));
    check("embedding", tk_nn_embedding(get("table"), get("tokens")));
    check("layer-norm", tk_layer_norm(matrix, scale, get("shift"), 1e-5));
    check("rms-norm", tk_rms_norm(matrix, scale, 1e-5));
    tk_array zero = tk_scalar_int(context, 0), three = tk_scalar_int(context, 3);
    check("rope", tk_rope(get("heads"), 8, false, 10000, 1, zero, TK_NO_ARRAY));
    check("rope-part", tk_rope(get("heads"), 6, true, 500, 0.5, three, TK_NO_ARRAY));
}

static void test_half_types(void **state) {
    (void)state;
    tk_array matrix = tk_astype(get("matrix"), TK_BFLOAT16);
    tk_array weight = tk_astype(get("weight"), TK_BFLOAT16);
    tk_array y = tk_nn_linear(matrix, weight, tk_astype(get("bias"), TK_BFLOAT16));
    assert_int_equal(tk_array_dtype(y), TK_BFLOAT16);
    assert_close(tk_astype(y, TK_FLOAT32), get("linear"), 4e-2, "linear");
    for (size_t i = 0; i < N_ACTIVATIONS; i++) {
        if (!strncmp(activations[i].name, "step", 4) || !strcmp(activations[i].name, "prelu"))
            continue;
        assert_int_equal(tk_array_dtype(activations[i].call(matrix)), TK_BFLOAT16);
    }
    assert_int_equal(tk_array_dtype(tk_nn_step(matrix, 0)), TK_INT32);
    assert_int_equal(tk_array_dtype(tk_nn_dropout(matrix, 0.5, TK_NO_ARRAY)), TK_BFLOAT16);
}

/* ---- random numbers: the same seed, the same bits ---- */

static void test_dropout(void **state) {
    (void)state;
    tk_random_seed(context, 5);
    check("dropout", tk_nn_dropout(get("matrix"), 0.3, TK_NO_ARRAY));
    check("dropout-again", tk_nn_dropout(get("matrix"), 0.3, TK_NO_ARRAY));
}

static double mean_of(tk_array x) {
    double mean;
    assert_ok(tk_item(tk_mean(x, TK_ALL_AXES, TK_DROPDIMS), &mean));
    return mean;
}

/* A share p is 0, the rest is scaled so that the mean stays; the mask is the key's. */
static void test_dropout_distribution(void **state) {
    (void)state;
    tk_array ones = tk_ones(context, TK_SHAPE(300, 400), TK_FLOAT32), zero = tk_scalar(context, 0);
    static const double shares[] = {0.1, 0.5, 0.9};
    for (int i = 0; i < 3; i++) {
        tk_array y = tk_nn_dropout(ones, shares[i], tk_random_key(context, 3));
        tk_array same = tk_nn_dropout(ones, shares[i], tk_random_key(context, 3));
        tk_array other = tk_nn_dropout(ones, shares[i], tk_random_key(context, 4));
        assert_near(mean_of(tk_astype(tk_equal(y, zero), TK_FLOAT32)), shares[i], 0.006);
        assert_near(mean_of(y), 1, 0.03);
        assert_near(mean_of(tk_max(y, TK_ALL_AXES, TK_DROPDIMS)), 1 / (1 - shares[i]), 1e-5);
        assert_near(mean_of(tk_astype(tk_equal(y, same), TK_FLOAT32)), 1, 0);
        assert_true(mean_of(tk_astype(tk_equal(y, other), TK_FLOAT32)) < 0.9);
    }
    assert_near(mean_of(tk_nn_dropout(ones, 0, TK_NO_ARRAY)), 1, 0);
}

static void test_initial_values(void **state) {
    (void)state;
    tk_context *c = context;
    tk_shape shape = TK_SHAPE(4, 3, 5);
    tk_array none = TK_NO_ARRAY;
    tk_random_seed(c, 9);
    check("init-normal", tk_init_normal(c, shape, TK_FLOAT32, 0.5, 2, none));
    check("init-uniform", tk_init_uniform(c, shape, TK_FLOAT32, -1, 3, none));
    check("init-glorot-normal", tk_init_glorot_normal(c, shape, TK_FLOAT32, 1, none));
    check("init-glorot-uniform", tk_init_glorot_uniform(c, shape, TK_FLOAT32, 1, none));
    check("init-he-normal", tk_init_he_normal(c, shape, TK_FLOAT32, false, 1, none));
    check("init-he-uniform", tk_init_he_uniform(c, shape, TK_FLOAT32, false, 1, none));
    check("init-he-normal-out", tk_init_he_normal(c, shape, TK_FLOAT32, true, 2, none));
    check("init-he-uniform-out", tk_init_he_uniform(c, shape, TK_FLOAT32, true, 0.5, none));
    tk_array half = tk_init_he_normal(c, shape, TK_FLOAT16, false, 1, none);
    assert_int_equal(tk_array_dtype(half), TK_FLOAT16);
}

/* ---- refusals ---- */

static void test_refusals(void **state) {
    (void)state;
    tk_array x = get("matrix"), none = TK_NO_ARRAY;
    static const double wrong[] = {1, 1.5, -0.1, (double)NAN, (double)INFINITY};
    for (int i = 0; i < 5; i++)
        assert_fails(tk_array_status(tk_nn_dropout(x, wrong[i], none)), TK_INVALID_ARGUMENT,
                     "expected from 0 to below 1");
    assert_fails(tk_array_status(tk_nn_glu(get("heads"), 1)), TK_INVALID_ARGUMENT, "2 equal parts");
    assert_fails(tk_array_status(tk_nn_linear(x, get("table"), none)), TK_SHAPE_ERROR, "");
    assert_fails(tk_array_status(tk_nn_softmin(x, 3)), TK_AXIS_ERROR, "3");
    assert_fails(
        tk_array_status(tk_init_he_normal(context, TK_SHAPE(4), TK_FLOAT32, false, 1, none)),
        TK_SHAPE_ERROR, "two axes or more");
    assert_fails(
        tk_array_status(tk_init_glorot_uniform(context, TK_SHAPE(4, 2), TK_INT32, 1, none)),
        TK_DTYPE_ERROR, "float");
    assert_fails(tk_array_status(tk_nn_embedding(get("table"), x)), TK_DTYPE_ERROR, "");
}

static int prepare(void **state) {
    (void)state;
    return open_golden("tests/nn/layers.safetensors");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_values),         TEST(test_slopes),
        TEST(test_slopes_far_out), TEST(test_gates),
        TEST(test_layers),         TEST(test_half_types),
        TEST(test_dropout),        TEST(test_dropout_distribution),
        TEST(test_initial_values), TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, prepare, close_golden);
}
