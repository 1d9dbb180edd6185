/* What the fuzzers of file readers share: a context, and looking at every value that was read. */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include <stdlib.h>
#include <string.h>

#include "tiki/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One for all inputs; the process ends with it. */
static inline tk_context *fuzz_context(void) {
    static tk_context *context;
    if (!context && tk_context_create(NULL, &context) != TK_OK) abort();
    return context;
}

/* Copies all values out, so that a sanitizer sees a size that does not fit its memory. */
static inline void fuzz_touch(tk_array array) {
    size_t bytes = (size_t)tk_array_size(array) * tk_dtype_size(tk_array_dtype(array));
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy) return;
    if (tk_copy_out(array, copy, bytes) != TK_OK) abort();
    free(copy);
}

static inline void fuzz_touch_all(const tk_tree *tree) {
    for (size_t i = 0; i < tk_tree_count(tree); i++) fuzz_touch(tk_tree_at(tree, i));
}

/* A failure has a message and left nothing in the tree. */
static inline void fuzz_check(tk_status status, const tk_tree *tree) {
    if (status == TK_INTERNAL) abort();
    if (status != TK_OK && (!tk_error_message()[0] || tk_tree_count(tree))) abort();
}

#endif
