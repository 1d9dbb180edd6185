/* vmap: a function of one example, applied to a batch; and per-example gradients by nesting with
 * grad. */
#include <stdio.h>
#include <tiki/array.h>
#include <tiki/transforms.h>

/* One example: the squared distance of tanh(W x) from 1. */
static tk_status distance(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    tk_context *ctx = tk_array_context(args[0]);
    tk_array error = tk_subtract(tk_tanh(tk_matmul(args[0], args[1])), tk_scalar(ctx, 1));
    return tk_arrays_push(results, tk_sum(tk_square(error), TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status gradient(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    static const int of_x[] = {1};
    return tk_grad(self, distance, NULL, args, n_args, of_x, 1, results);
}

static void show(const char *name, tk_array array) {
    char *text;
    if (tk_format(array, &text) != TK_OK) {
        printf("%s: %s\n", name, tk_error_message());
        return;
    }
    printf("%s =\n%s\n", name, text);
    tk_text_free(text);
}

int main(void) {
    tk_context *ctx;
    if (tk_context_create(NULL, &ctx) != TK_OK) return 1;
    tk_scope scope = tk_scope_open(ctx);

    tk_array weights = tk_eye(ctx, 2, -1, 0, TK_FLOAT32);
    float values[] = {0, 0, 0.5f, -0.5f, 1, 2};
    tk_array batch = tk_from_data(ctx, values, TK_SHAPE(3, 2), TK_FLOAT32),
             args[] = {weights, batch};
    int in_axes[] = {TK_UNMAPPED, 0};

    tk_arrays distances = {0}, gradients = {0};
    if (tk_vmap(ctx, distance, NULL, args, 2, in_axes, NULL, &distances) == TK_OK)
        show("a distance for each example", tk_round(distances.items[0], 4));
    if (tk_vmap(ctx, gradient, ctx, args, 2, in_axes, NULL, &gradients) == TK_OK)
        show("a gradient for each example", tk_round(gradients.items[0], 4));
    tk_arrays_clear(&distances);
    tk_arrays_clear(&gradients);

    tk_scope_close(scope);
    tk_context_release(ctx);
    return 0;
}
