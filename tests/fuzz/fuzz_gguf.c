/* The GGUF reader on any bytes. */
#include "fuzz_file.h"
#include "tiki/gguf.h"

static void check_values(const tk_gguf_values *values) {
    for (size_t i = 0; i < tk_gguf_count(values); i++) {
        size_t bytes, n_texts = tk_gguf_n_texts(values, i);
        if (!tk_gguf_key(values, i)) abort();
        if (tk_gguf_kind_of(values, i) == TK_GGUF_ARRAY) fuzz_touch(tk_gguf_array(values, i));
        for (size_t k = 0; k < n_texts; k++)
            if (tk_gguf_text(values, i, k, &bytes)[bytes]) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_tree *tree = tk_tree_new();
    tk_gguf_values *values = tk_gguf_values_new();
    tk_status status = tk_gguf_parse(fuzz_context(), "fuzz", data, size, tree, values);
    fuzz_check(status, tree);
    if (status != TK_OK && tk_gguf_count(values)) abort();
    fuzz_touch_all(tree);
    check_values(values);
    tk_gguf_values_free(values);
    tk_tree_free(tree);
    return 0;
}
