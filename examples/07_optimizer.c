/* A training loop by hand: logistic regression. Parameters are a tree, the loss is a function of
 * their arrays, the optimizer takes a tree of gradients with the same names. */
#include <stdio.h>
#include <tiki/tiki.h>

#define POINTS 64

typedef struct data {
    tk_array x, y; /* points [n, 2]; 1 where the point is on the right side */
} data;

/* Points of a grid; those above the line y = x / 2 are the right ones. */
static data make_data(tk_context *ctx) {
    float x[POINTS][2], y[POINTS];
    for (int i = 0; i < POINTS; i++) {
        int row = i / 8, column = i % 8;
        x[i][0] = (float)(column - 4);
        x[i][1] = (float)(row - 4) + 0.5f;
        y[i] = x[i][1] > x[i][0] / 2;
    }
    return (data){tk_from_data(ctx, x, TK_SHAPE(POINTS, 2), TK_FLOAT32),
                  tk_from_data(ctx, y, TK_SHAPE(POINTS), TK_FLOAT32)};
}

static tk_array scores(tk_array x, const tk_array *parameters) {
    return tk_add(tk_matmul(x, parameters[0]), parameters[1]);
}

/* args: weight, bias, in the order of the tree. */
static tk_status loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    const data *d = self;
    (void)n_args;
    return tk_arrays_push(results, tk_loss_binary_cross_entropy(scores(d->x, args), d->y,
                                                                TK_NO_ARRAY, true, TK_REDUCE_MEAN));
}

/* One step: loss and gradients, gradients under the parameters' names, update, evaluation. */
static tk_status train_step(tk_context *ctx, data *d, tk_tree *parameters, tk_optimizer *optimizer,
                            double *out_loss) {
    static const int argnums[] = {0, 1};
    tk_scope scope = tk_scope_open(ctx);
    tk_tree *gradients = tk_tree_new();
    tk_arrays values = {0}, grads = {0};
    tk_status status =
        tk_value_and_grad(ctx, loss, d, tk_tree_arrays(parameters), 2, argnums, 2, &values, &grads);
    for (size_t i = 0; status == TK_OK && i < grads.count; i++)
        status = tk_tree_set(gradients, tk_tree_name(parameters, i), grads.items[i]);
    if (status == TK_OK) status = tk_optimizer_step(optimizer, parameters, gradients);
    if (status == TK_OK) status = tk_tree_eval(parameters);
    if (status == TK_OK) status = tk_tree_eval(tk_optimizer_state(optimizer));
    if (status == TK_OK) status = tk_item(values.items[0], out_loss);
    tk_arrays_clear(&values);
    tk_arrays_clear(&grads);
    tk_tree_free(gradients);
    tk_scope_close(scope);
    return status;
}

static tk_status train(tk_context *ctx, data *d, tk_tree *parameters, tk_optimizer *optimizer) {
    double value = 0;
    for (int step = 0; step <= 200; step++) {
        tk_status status = train_step(ctx, d, parameters, optimizer, &value);
        if (status != TK_OK) return status;
        if (step % 100 == 0) printf("step %3d: loss %.2f\n", step, value);
    }
    tk_array right =
        tk_equal(tk_greater(scores(d->x, tk_tree_arrays(parameters)), tk_scalar(ctx, 0)),
                 tk_astype(d->y, TK_BOOL));
    tk_status status = tk_item(tk_mean(right, TK_ALL_AXES, TK_DROPDIMS), &value);
    if (status == TK_OK) printf("right: %.0f%%\n", 100 * value);
    return status;
}

int main(void) {
    tk_context *ctx;
    if (tk_context_create(NULL, &ctx) != TK_OK) return 1;
    tk_scope scope = tk_scope_open(ctx);
    data d = make_data(ctx);
    tk_tree *parameters = tk_tree_new();
    tk_optimizer *optimizer = NULL;
    tk_optimizer_options options = tk_optimizer_defaults(TK_OPTIMIZER_ADAM);
    options.learning_rate = 0.1;

    tk_status status = tk_tree_set(parameters, "weight", tk_zeros(ctx, TK_SHAPE(2), TK_FLOAT32));
    if (status == TK_OK)
        status = tk_tree_set(parameters, "bias", tk_zeros(ctx, TK_SCALAR, TK_FLOAT32));
    if (status == TK_OK) status = tk_optimizer_create(ctx, &options, &optimizer);
    if (status == TK_OK) status = tk_optimizer_init(optimizer, parameters);
    if (status == TK_OK) status = train(ctx, &d, parameters, optimizer);
    if (status != TK_OK) fprintf(stderr, "%s\n", tk_error_message());

    tk_optimizer_free(optimizer);
    tk_tree_free(parameters);
    tk_scope_close(scope);
    tk_context_release(ctx);
    return status == TK_OK ? 0 : 1;
}
