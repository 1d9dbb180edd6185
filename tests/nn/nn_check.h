/* What the tests of nn share: values of MLX from a file, and comparing arrays. */
#ifndef TESTS_NN_CHECK_H
#define TESTS_NN_CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/arrays.h"
#include "tiki/train.h"

/* The code, and a message with this text. */
static inline void assert_fails_at(tk_status status, tk_status expected, const char *text,
                                   const char *file, int line) {
    if (status != expected || !strstr(tk_error_message(), text))
        print_error("got %s: %s\nexpected %s with \"%s\"\n", tk_status_name(status),
                    tk_error_message(), tk_status_name(expected), text);
    _assert_int_equal(status, expected, file, line);
    _assert_true(strstr(tk_error_message(), text) != NULL, text, file, line);
}
#define assert_fails(status, expected, text)                                                       \
    assert_fails_at((status), (expected), (text), __FILE__, __LINE__)

/* cmocka's own compares as float. */
static inline void assert_near_at(double got, double expected, double tolerance, const char *file,
                                  int line) {
    if (fabs(got - expected) <= tolerance) return;
    print_error("%.17g, expected %.17g\n", got, expected);
    _fail(file, line);
}
#define assert_near(got, expected, tolerance)                                                      \
    assert_near_at((got), (expected), (tolerance), __FILE__, __LINE__)

/* The values of a float32 array, freed by the caller. */
static inline float *values_of(tk_array array) {
    size_t bytes = (size_t)tk_array_size(array) * sizeof(float);
    float *values = malloc(bytes ? bytes : 1);
    assert_non_null(values);
    assert_int_equal(tk_array_dtype(array), TK_FLOAT32);
    assert_ok(tk_copy_out(array, values, bytes));
    return values;
}

/* |got - expected| <= tolerance * (1 + |expected|) everywhere, and the shapes agree; infinities and
 * NaNs are the same. */
static inline void assert_close_at(tk_array got, tk_array expected, double tolerance,
                                   const char *what, const char *file, int line) {
    if (tk_array_status(got) != TK_OK) print_error("%s: %s\n", what, tk_error_message());
    _assert_int_equal(tk_array_rank(got), tk_array_rank(expected), file, line);
    for (int i = 0; i < tk_array_rank(got); i++)
        _assert_int_equal(tk_array_dim(got, i), tk_array_dim(expected, i), file, line);
    float *a = values_of(got), *b = values_of(expected);
    for (int64_t i = 0; i < tk_array_size(got); i++) {
        double distance = fabs((double)a[i] - (double)b[i]);
        if (distance <= tolerance * (1 + fabs((double)b[i]))) continue;
        if ((double)a[i] == (double)b[i] || (isnan(a[i]) && isnan(b[i]))) continue;
        print_error("%s: element %lld is %.9g, expected %.9g\n", what, (long long)i, (double)a[i],
                    (double)b[i]);
        _fail(file, line);
    }
    free(a);
    free(b);
}
#define assert_close(got, expected, tolerance, what)                                               \
    assert_close_at((got), (expected), (tolerance), (what), __FILE__, __LINE__)

static inline tk_tree *load_tree(tk_context *context, const char *path) {
    tk_tree *tree = tk_tree_new();
    assert_non_null(tree);
    assert_ok(tk_safetensors_load(context, path, tree, NULL));
    return tree;
}

/* Names and bits of two trees are the same. */
static inline bool same_trees(const tk_tree *one, const tk_tree *other) {
    if (tk_tree_count(one) != tk_tree_count(other)) return false;
    bool same = true;
    for (size_t i = 0; same && i < tk_tree_count(one); i++) {
        tk_array a = tk_tree_at(one, i), b = tk_tree_at(other, i);
        size_t bytes = (size_t)tk_array_size(a) * tk_dtype_size(tk_array_dtype(a));
        void *left = malloc(bytes + 1), *right = malloc(bytes + 1);
        assert_true(left && right);
        same = !strcmp(tk_tree_name(one, i), tk_tree_name(other, i)) &&
               tk_array_size(a) == tk_array_size(b) && tk_array_dtype(a) == tk_array_dtype(b);
        if (same) {
            assert_ok(tk_copy_out(a, left, bytes));
            assert_ok(tk_copy_out(b, right, bytes));
            same = !memcmp(left, right, bytes);
        }
        free(left);
        free(right);
    }
    return same;
}

/* The same names and bits in arrays of their own. */
static inline tk_tree *copy_tree(tk_context *context, const tk_tree *tree) {
    tk_tree *copy = tk_tree_new();
    assert_non_null(copy);
    for (size_t i = 0; i < tk_tree_count(tree); i++) {
        tk_array array = tk_tree_at(tree, i);
        size_t bytes = (size_t)tk_array_size(array) * tk_dtype_size(tk_array_dtype(array));
        void *values = malloc(bytes + 1);
        assert_non_null(values);
        assert_ok(tk_copy_out(array, values, bytes));
        tk_array own = tk_from_data(context, values, tk_array_shape(array), tk_array_dtype(array));
        assert_ok(tk_tree_set(copy, tk_tree_name(tree, i), own));
        tk_release(own);
        free(values);
    }
    return copy;
}

#endif
