/* The safetensors reader on any bytes. */
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_tree *tree = tk_tree_new();
    tk_metadata *metadata = tk_metadata_new();
    tk_status status = tk_safetensors_parse(fuzz_context(), "fuzz", data, size, tree, metadata);
    fuzz_check(status, tree);
    fuzz_touch_all(tree);
    tk_metadata_free(metadata);
    tk_tree_free(tree);
    return 0;
}
