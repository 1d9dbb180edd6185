/* Files: a parameter tree to safetensors and back, and the text of a graph. */
#include <stdio.h>
#include <stdlib.h>
#include <tiki/io.h>

static tk_status save_and_load(tk_context *ctx, const char *path) {
    tk_tree *tree = tk_tree_new(), *loaded = tk_tree_new();
    tk_status status = tk_tree_set(tree, "layer.weight", tk_arange(ctx, 0, 6, 1, TK_FLOAT32));
    if (status == TK_OK)
        status = tk_tree_set(tree, "layer.bias", tk_ones(ctx, TK_SHAPE(3), TK_BFLOAT16));
    if (status == TK_OK) status = tk_safetensors_save(path, tree, NULL);
    if (status == TK_OK) status = tk_safetensors_load(ctx, path, loaded, NULL);
    for (size_t i = 0; status == TK_OK && i < tk_tree_count(loaded); i++) {
        char *text;
        status = tk_format(tk_tree_at(loaded, i), &text);
        if (status != TK_OK) break;
        printf("%s: %s\n", tk_tree_name(loaded, i), text);
        tk_text_free(text);
    }
    tk_tree_free(tree);
    tk_tree_free(loaded);
    return status;
}

int main(void) {
    tk_context *ctx;
    if (tk_context_create(NULL, &ctx) != TK_OK) return 1;
    tk_scope scope = tk_scope_open(ctx);

    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/tiki-example.safetensors", folder ? folder : ".");
    if (save_and_load(ctx, path) != TK_OK) printf("%s\n", tk_error_message());
    remove(path);

    tk_tree *nothing = tk_tree_new();
    if (tk_safetensors_load(ctx, "no-such-file.safetensors", nothing, NULL) != TK_OK)
        printf("%s: %s\n", tk_status_name(tk_error_code()), tk_error_message());
    tk_tree_free(nothing);

    tk_array x = tk_zeros(ctx, TK_SHAPE(2, 3), TK_FLOAT32),
             softmax = tk_softmax(tk_exp(x), TK_AXES(-1));
    char *text;
    if (tk_graph_print(&softmax, 1, &text) == TK_OK) {
        printf("%s", text);
        tk_text_free(text);
    }

    tk_scope_close(scope);
    tk_context_release(ctx);
    return 0;
}
