/* Gradients: of a loss, second derivatives by nesting, and a function with a gradient of its own.
 */
#include <stdio.h>
#include <tiki/array.h>
#include <tiki/transforms.h>

/* loss(w) = mean((X w - y)^2) */
typedef struct problem {
    tk_array inputs, targets;
} problem;

static tk_status loss(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    const problem *p = self;
    (void)n_args;
    tk_array error = tk_subtract(tk_matmul(p->inputs, args[0]), p->targets);
    return tk_arrays_push(results, tk_mean(tk_square(error), TK_ALL_AXES, TK_DROPDIMS));
}

/* x^3 */
static tk_status cube(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self, (void)n_args;
    return tk_arrays_push(results, tk_multiply(args[0], tk_square(args[0])));
}

static tk_status slope(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    tk_context *ctx = self;
    return tk_grad(ctx, cube, NULL, args, n_args, NULL, 0, results);
}

static void print_item(const char *name, tk_array array) {
    double value = 0;
    if (tk_item(array, &value) == TK_OK)
        printf("%s = %.4f\n", name, value);
    else
        printf("%s: %s\n", name, tk_error_message());
}

static void fit(tk_context *ctx) {
    float x[] = {1, 0, 1, 1, 1, 2, 1, 3}, y[] = {1, 3, 5, 7}; /* y = 1 + 2 x */
    problem p = {tk_from_data(ctx, x, TK_SHAPE(4, 2), TK_FLOAT32),
                 tk_from_data(ctx, y, TK_SHAPE(4), TK_FLOAT32)};
    tk_array w = tk_keep(tk_zeros(ctx, TK_SHAPE(2), TK_FLOAT32));
    for (int step = 0; step < 200; step++) {
        tk_arrays gradients = {0};
        tk_scope scope = tk_scope_open(ctx);
        tk_status status = tk_grad(ctx, loss, &p, &w, 1, NULL, 0, &gradients);
        if (status == TK_OK) {
            tk_array next = tk_subtract(w, tk_multiply(tk_scalar(ctx, 0.2), gradients.items[0]));
            tk_array old = w;
            w = tk_keep(next);
            tk_release(old);
        }
        tk_scope_close(scope);
        tk_arrays_clear(&gradients);
        if (status != TK_OK || tk_eval(w) != TK_OK) {
            printf("%s\n", tk_error_message());
            return;
        }
    }
    float fitted[2];
    if (tk_copy_out(w, fitted, sizeof fitted) == TK_OK)
        printf("y = %.3f + %.3f x\n", fitted[0], fitted[1]);
    tk_release(w);
}

int main(void) {
    tk_context *ctx;
    if (tk_context_create(NULL, &ctx) != TK_OK) return 1;
    tk_scope scope = tk_scope_open(ctx);

    tk_array x = tk_astype(tk_scalar(ctx, 2), TK_FLOAT32);
    tk_arrays first = {0}, second = {0};
    if (slope(ctx, &x, 1, &first) == TK_OK) print_item("d/dx x^3 at 2", first.items[0]);
    if (tk_grad(ctx, slope, ctx, &x, 1, NULL, 0, &second) == TK_OK)
        print_item("d2/dx2 x^3 at 2", second.items[0]);
    tk_arrays_clear(&first);
    tk_arrays_clear(&second);
    fit(ctx);

    tk_scope_close(scope);
    tk_context_release(ctx);
    return 0;
}
