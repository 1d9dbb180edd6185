/* The npz reader on any bytes. */
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_tree *tree = tk_tree_new();
    tk_status status = tk_npz_parse(fuzz_context(), "fuzz", data, size, tree);
    fuzz_check(status, tree);
    fuzz_touch_all(tree);
    tk_tree_free(tree);
    return 0;
}
