/* Functions recorded once and replayed: values, gradients, constants, errors. */
#include <string.h>

#include "support/arrays.h"
#include "tiki/transforms.h"

typedef struct counter {
    tk_context *context;
    int calls;
} counter;

/* (a * b + 1, sum(a), 7): a constant among the results. */
static tk_status sample(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    counter *c = self;
    (void)n_args;
    c->calls++;
    float three = 3;
    tk_array held = tk_from_data(c->context, &three, TK_SCALAR, TK_FLOAT32);
    tk_arrays_push(results, tk_add(tk_multiply(args[0], args[1]), tk_scalar(c->context, 1)));
    tk_arrays_push(results, tk_sum(tk_multiply(args[0], held), TK_ALL_AXES, TK_DROPDIMS));
    return tk_arrays_push(results, tk_full(tk_scalar(c->context, 7), TK_SHAPE(2), TK_FLOAT32));
}

static tk_array pair(tk_context *ctx, float a, float b) {
    float values[] = {a, b};
    return tk_from_data(ctx, values, TK_SHAPE(2), TK_FLOAT32);
}

static void replays_on_other_arguments(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    counter c = {.context = ctx};
    tk_traced *traced;
    tk_array args[] = {pair(ctx, 1, 2), pair(ctx, 3, 4)};
    assert_ok(tk_traced_create(ctx, sample, &c, args, 2, &traced));
    assert_true(tk_traced_size(traced) > 2);
    for (int round = 0; round < 3; round++) {
        tk_array others[] = {pair(ctx, 5, (float)round), pair(ctx, 2, 3)};
        tk_arrays results = {0};
        assert_ok(tk_traced_call(traced, others, 2, &results));
        assert_int_equal(results.count, 3);
        float out[2];
        assert_ok(tk_copy_out(results.items[0], out, sizeof out));
        assert_true(out[0] == 11 && out[1] == (float)(3 * round + 1));
        assert_ok(tk_copy_out(results.items[1], out, sizeof(float)));
        assert_true(out[0] == (float)(15 + 3 * round));
        assert_ok(tk_copy_out(results.items[2], out, sizeof out));
        assert_true(out[0] == 7 && out[1] == 7);
        tk_arrays_clear(&results);
    }
    assert_int_equal(c.calls, 1);
    tk_traced_free(traced);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static tk_status replay_loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    tk_arrays all = {0};
    tk_array both[] = {args[0], args[0]};
    (void)n_args;
    tk_status status = tk_traced_call(self, both, 2, &all);
    if (status == TK_OK)
        status = tk_arrays_push(results, tk_sum(all.items[0], TK_ALL_AXES, TK_DROPDIMS));
    tk_arrays_clear(&all);
    return status;
}

static void gradients_go_through_a_replay(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    counter c = {.context = ctx};
    tk_traced *traced;
    tk_array args[] = {pair(ctx, 1, 2), pair(ctx, 3, 4)}, x = pair(ctx, 5, -2);
    assert_ok(tk_traced_create(ctx, sample, &c, args, 2, &traced));
    tk_arrays gradients = {0};
    assert_ok(tk_grad(ctx, replay_loss, traced, &x, 1, NULL, 0, &gradients));
    float out[2];
    assert_ok(tk_copy_out(gradients.items[0], out, sizeof out));
    assert_true(out[0] == 10 && out[1] == -4);
    tk_arrays_clear(&gradients);
    tk_traced_free(traced);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static tk_status reads_a_value(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    (void)self, (void)n_args;
    tk_status status = tk_eval(args[0]);
    return status == TK_OK ? tk_arrays_push(results, args[0]) : status;
}

/* mean(a, -1) + 1 / length, flattened beside a mask: shapes, a count, a product of lengths. */
static tk_status follows_shapes(void *self, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    counter *c = self;
    (void)n_args;
    c->calls++;
    tk_array a = args[0], share = tk_scalar(c->context, 1.0 / (double)tk_array_dim(a, 0));
    tk_arrays_push(results, tk_add(tk_mean(a, TK_AXES(-1), TK_DROPDIMS), share));
    return tk_arrays_push(results, tk_flatten(tk_tril(a, 0), 0, -1));
}

static tk_status depends_on_a_length(void *self, const tk_array *args, size_t n_args,
                                     tk_arrays *results) {
    counter *c = self;
    (void)n_args;
    bool is_long = tk_array_dim(args[0], 0) > 10;
    return tk_arrays_push(results, tk_add(args[0], tk_scalar(c->context, is_long ? 2.5 : 1.5)));
}

static void check_shape(tk_context *ctx, const tk_traced *traced, int64_t rows, int64_t columns) {
    tk_array a = tk_reshape(tk_arange(ctx, 0, (double)(rows * columns), 1, TK_FLOAT32),
                            TK_SHAPE(rows, columns));
    tk_arrays results = {0}, expected = {0};
    counter c = {.context = ctx};
    assert_ok(tk_traced_call(traced, &a, 1, &results));
    assert_ok(follows_shapes(&c, &a, 1, &expected));
    for (int i = 0; i < 2; i++) {
        double same;
        assert_ok(tk_item(tk_array_equal(results.items[i], expected.items[i], false), &same));
        assert_true(same == 1);
    }
    tk_arrays_clear(&results);
    tk_arrays_clear(&expected);
}

static void serves_other_shapes(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    counter c = {.context = ctx};
    tk_traced *traced;
    tk_array near = tk_zeros(ctx, TK_SHAPE(4, 6), TK_FLOAT32);
    tk_array other = tk_zeros(ctx, TK_SHAPE(5, 7), TK_FLOAT32);
    assert_ok(tk_traced_create_shapeless(ctx, follows_shapes, &c, &near, &other, 1, &traced));
    assert_int_equal(c.calls, 2);
    check_shape(ctx, traced, 4, 6);
    check_shape(ctx, traced, 3, 8);
    check_shape(ctx, traced, 1, 5);
    check_shape(ctx, traced, 9, 9);
    tk_arrays results = {0};
    tk_array flat = tk_zeros(ctx, TK_SHAPE(4), TK_FLOAT32);
    assert_int_equal(tk_traced_call(traced, &flat, 1, &results), TK_SHAPE_ERROR);
    tk_traced_free(traced);
    tk_array wide = tk_zeros(ctx, TK_SHAPE(4, 7), TK_FLOAT32);
    assert_ok(tk_traced_create_shapeless(ctx, follows_shapes, &c, &near, &wide, 1, &traced));
    check_shape(ctx, traced, 4, 9);
    assert_int_equal(tk_traced_call(traced, &other, 1, &results), TK_SHAPE_ERROR);
    tk_traced_free(traced);
    assert_int_equal(
        tk_traced_create_shapeless(ctx, depends_on_a_length, &c, &near, &other, 1, &traced),
        TK_UNSUPPORTED);
    assert_null(traced);
    assert_int_equal(tk_traced_create_shapeless(ctx, follows_shapes, &c, &near, &flat, 1, &traced),
                     TK_SHAPE_ERROR);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void refusals(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    counter c = {.context = ctx};
    tk_traced *traced;
    tk_array args[] = {pair(ctx, 1, 2), pair(ctx, 3, 4)};
    assert_true(tk_traced_create(ctx, reads_a_value, NULL, args, 1, &traced) != TK_OK);
    assert_null(traced);
    assert_ok(tk_traced_create(ctx, sample, &c, args, 2, &traced));
    tk_arrays results = {0};
    assert_int_equal(tk_traced_call(traced, args, 1, &results), TK_INVALID_ARGUMENT);
    args[1] = tk_astype(args[1], TK_FLOAT16);
    assert_int_equal(tk_traced_call(traced, args, 2, &results), TK_SHAPE_ERROR);
    assert_int_equal(results.count, 0);
    tk_traced_free(traced);
    tk_traced_free(NULL);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_on_other_arguments),
        cmocka_unit_test(gradients_go_through_a_replay),
        cmocka_unit_test(serves_other_shapes),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
