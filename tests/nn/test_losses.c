/* Losses against MLX's (make_goldens.py), and what they refuse. */
#include "nn/nn_golden.h"

/* The loss of a case of make_goldens.py. */
static void check(const char *name, tk_array loss) { assert_close(loss, get(name), 2e-6, name); }

static void test_cross_entropy(void **state) {
    (void)state;
    tk_scope scope = tk_scope_open(context);
    tk_array x = get("x"), classes = get("classes"), none = TK_NO_ARRAY;
    tk_array shares = tk_softmax(get("y"), TK_AXES(-1));
    check("cross-entropy", tk_loss_cross_entropy(x, classes, none, -1, 0, TK_REDUCE_NONE));
    check("cross-entropy-mean", tk_loss_cross_entropy(x, classes, none, -1, 0, TK_REDUCE_MEAN));
    check("cross-entropy-sum", tk_loss_cross_entropy(x, classes, none, 1, 0, TK_REDUCE_SUM));
    check("cross-entropy-weights",
          tk_loss_cross_entropy(x, classes, get("weights"), -1, 0, TK_REDUCE_MEAN));
    check("cross-entropy-smooth", tk_loss_cross_entropy(x, classes, none, -1, 0.2, TK_REDUCE_NONE));
    check("cross-entropy-axis", tk_loss_cross_entropy(x, get("rows"), none, 0, 0, TK_REDUCE_NONE));
    check("cross-entropy-deep",
          tk_loss_cross_entropy(get("deep"), get("deep_classes"), none, 1, 0.1, TK_REDUCE_NONE));
    check("cross-entropy-shares", tk_loss_cross_entropy(x, shares, none, -1, 0, TK_REDUCE_NONE));
    check("cross-entropy-shares-smooth",
          tk_loss_cross_entropy(x, shares, none, -1, 0.3, TK_REDUCE_NONE));
    check("cross-entropy-big",
          tk_loss_cross_entropy(get("big"), classes, none, -1, 0, TK_REDUCE_NONE));
    tk_scope_close(scope);
}

static void test_binary_cross_entropy(void **state) {
    (void)state;
    tk_scope scope = tk_scope_open(context);
    tk_array share = get("share"), none = TK_NO_ARRAY;
    check("binary-logits",
          tk_loss_binary_cross_entropy(get("big"), share, none, true, TK_REDUCE_NONE));
    check("binary-shares",
          tk_loss_binary_cross_entropy(share, tk_round(share, 0), none, false, TK_REDUCE_NONE));
    check("binary-ends",
          tk_loss_binary_cross_entropy(tk_round(share, 0), share, none, false, TK_REDUCE_MEAN));
    tk_scope_close(scope);
}

static void test_distances(void **state) {
    (void)state;
    tk_scope scope = tk_scope_open(context);
    tk_array x = get("x"), y = get("y"), z = get("z"), signs = get("signs"), share = get("share");
    check("l1", tk_loss_l1(x, y, TK_REDUCE_MEAN));
    check("mse", tk_loss_mse(x, y, TK_REDUCE_MEAN));
    check("smooth-l1", tk_loss_smooth_l1(x, y, 0.7, TK_REDUCE_NONE));
    check("huber", tk_loss_huber(x, y, 0.7, TK_REDUCE_NONE));
    check("log-cosh", tk_loss_log_cosh(get("big"), y, TK_REDUCE_NONE));
    check("gaussian", tk_loss_gaussian_nll(x, y, share, false, 1e-6, TK_REDUCE_NONE));
    tk_array small = tk_multiply(share, tk_scalar(context, 1e-3));
    check("gaussian-full", tk_loss_gaussian_nll(x, y, small, true, 3e-4, TK_REDUCE_MEAN));
    check("hinge", tk_loss_hinge(x, signs, TK_REDUCE_NONE));
    check("cosine", tk_loss_cosine_similarity(x, y, 1, 1e-8, TK_REDUCE_NONE));
    check("ranking", tk_loss_margin_ranking(x, y, signs, 0.4, TK_REDUCE_NONE));
    check("triplet", tk_loss_triplet(x, y, z, -1, 2, 1, 1e-6, TK_REDUCE_NONE));
    check("triplet-p", tk_loss_triplet(x, y, z, 0, 3, 0.2, 1e-3, TK_REDUCE_NONE));
    tk_scope_close(scope);
}

static void test_log_probabilities(void **state) {
    (void)state;
    tk_scope scope = tk_scope_open(context);
    tk_array log_x = get("log_x"), log_y = get("log_y");
    check("nll", tk_loss_nll(log_x, get("classes"), -1, TK_REDUCE_NONE));
    check("kl", tk_loss_kl_div(log_x, log_y, -1, TK_REDUCE_NONE));
    tk_scope_close(scope);
}

/* The first error of an expression sticks to the loss. */
static void test_refusals(void **state) {
    (void)state;
    tk_scope scope = tk_scope_open(context);
    tk_array x = get("x"), none = TK_NO_ARRAY;
    assert_int_equal(
        tk_array_status(tk_loss_cross_entropy(x, get("rows"), none, -1, 0, TK_REDUCE_MEAN)),
        TK_SHAPE_ERROR);
    assert_int_equal(
        tk_array_status(tk_loss_cross_entropy(x, get("weights"), none, -1, 0, TK_REDUCE_MEAN)),
        TK_DTYPE_ERROR);
    assert_int_equal(tk_array_status(tk_loss_mse(x, get("deep"), TK_REDUCE_MEAN)), TK_SHAPE_ERROR);
    tk_scope_close(scope);
}

static int prepare(void **state) {
    (void)state;
    return open_golden("tests/nn/losses.safetensors");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_binary_cross_entropy),
        cmocka_unit_test(test_distances),     cmocka_unit_test(test_log_probabilities),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, prepare, close_golden);
}
