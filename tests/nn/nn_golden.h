/* What a file of tests against MLX's values (make_goldens.py) stands on: a context and those
 * values, opened and closed once for its group. */
#ifndef TESTS_NN_GOLDEN_H
#define TESTS_NN_GOLDEN_H

#include "nn/nn_check.h"

static tk_context *context;
static tk_tree *golden;

static inline int open_golden(const char *path) {
    context = make_context();
    golden = load_tree(context, path);
    return 0;
}

static inline int close_golden(void **state) {
    (void)state;
    tk_tree_free(golden);
    tk_context_release(context);
    return 0;
}

static inline tk_array get(const char *name) {
    tk_array array = tk_tree_get(golden, name);
    if (!array.node) print_error("no \"%s\" in the file\n", name);
    assert_non_null(array.node);
    return array;
}

#endif
