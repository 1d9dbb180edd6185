/* Kernels from files, for tests. */
#ifndef SUPPORT_KERNEL_FILES_H
#define SUPPORT_KERNEL_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/arrays.h"
#include "tiki/kernel.h"

/* The kernels that the tests share. */
static const char *const kernel_files[] = {"examples/kernels/vector_add.tk",
                                           "examples/kernels/row_sum.tk",
                                           "tests/kernel/text/flow.tk", "tests/kernel/text/ops.tk"};
#define KERNEL_FILES (sizeof kernel_files / sizeof *kernel_files)

/* The file's text; the caller frees it. */
static inline char *read_text_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot read %s", path);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Writes a word over another of the same length, which must be there. */
static inline void overwrite(char *text, const char *old, const char *with) {
    char *at = strstr(text, old);
    assert_non_null(at);
    assert_int_equal(strlen(old), strlen(with));
    for (size_t i = 0; with[i]; i++) at[i] = with[i];
}

static inline tk_kernel *parse_file(const char *path) {
    char *text = read_text_file(path);
    tk_kernel *kernel = NULL;
    assert_ok(tk_kernel_parse(text, path, &kernel));
    free(text);
    return kernel;
}

static inline tk_kernel *parse_text(const char *text) {
    tk_kernel *kernel = NULL;
    assert_ok(tk_kernel_parse(text, "test.tk", &kernel));
    return kernel;
}

/* A kernel of one block around a body: %x and %y point to f32, %n is an i32. */
static inline char *around(const char *body, int threads) {
    char *text = malloc(strlen(body) + 512);
    assert_non_null(text);
    sprintf(text,
            "tiki kernel 1\nkernel test(%%x: ptr<f32, global> read align 4, %%y: ptr<f32, global> "
            "write align 4, %%n: i32)\n"
            "form thread grid (1, 1, 1) block (%d, 1, 1)\n{ %%t = thread_index.x : i32\n%s\n}\n",
            threads, body);
    return text;
}

#endif
