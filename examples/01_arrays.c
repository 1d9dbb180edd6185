/* Arrays: making them, computing with them, reading values, errors.
 *
 * Expressions are lazy: tk_eval, tk_item and tk_format compute what they need. A scope owns what is
 * made inside it, so nested calls need no cleanup. */
#include <stdio.h>
#include <tiki/array.h>

static void show(const char *name, tk_array array) {
    char *text;
    if (tk_format(array, &text) != TK_OK) {
        printf("%s: %s: %s\n", name, tk_status_name(tk_error_code()), tk_error_message());
        return;
    }
    printf("%s =\n%s\n", name, text);
    tk_text_free(text);
}

int main(void) {
    tk_context *ctx;
    if (tk_context_create(NULL, &ctx) != TK_OK) {
        fprintf(stderr, "%s\n", tk_error_message());
        return 1;
    }
    tk_scope scope = tk_scope_open(ctx);

    float values[] = {1, 2, 3, 4, 5, 6};
    tk_array x = tk_from_data(ctx, values, TK_SHAPE(2, 3), TK_FLOAT32);
    show("x", x);
    show("x * 2 + 1", tk_add(tk_multiply(x, tk_scalar(ctx, 2)), tk_scalar(ctx, 1)));

    /* Root mean square normalisation, as the math has it. */
    tk_array ms = tk_mean(tk_square(x), TK_AXES(-1), TK_KEEPDIMS);
    tk_array normed = tk_multiply(x, tk_rsqrt(tk_add(ms, tk_scalar(ctx, 1e-6))));
    show("x / rms(x), rounded", tk_round(normed, 4));

    /* Views share memory: nothing is copied here. */
    show("transposed, last row first", tk_flip(tk_transpose(x, TK_ALL_AXES), TK_AXES(0)));

    /* The same expression of the same operands is one node. */
    printf("same node: %s\n", tk_array_same(tk_exp(x), tk_exp(x)) ? "yes" : "no");

    /* Errors stick to the value, and come out where it is used. */
    tk_array wrong = tk_add(x, tk_zeros(ctx, TK_SHAPE(4), TK_FLOAT32));
    show("sum of what does not fit", tk_sum(wrong, TK_ALL_AXES, TK_DROPDIMS));

    tk_scope_close(scope);
    tk_context_release(ctx);
    return 0;
}
