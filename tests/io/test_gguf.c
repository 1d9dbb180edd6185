/* GGUF in C: values, a round trip, NULL. Bytes made by hand are in tests/python/test_gguf.py. */
#define _GNU_SOURCE

#include "io_check.h"
#include "support/null_check.h"
#include "tiki/gguf.h"

static void values_of_metadata(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_gguf_values *v = tk_gguf_values_new();
    size_t bytes;
    assert_ok(tk_gguf_set_text(v, "text", "a\0b", 3));
    assert_ok(tk_gguf_set_texts(v, "list"));
    assert_ok(tk_gguf_add_text(v, "list", "one", 3));
    assert_ok(tk_gguf_add_text(v, "list", "", 0));
    assert_ok(tk_gguf_set_array(v, "number", tk_arange(ctx, 0, 3, 1, TK_INT32)));
    assert_int_equal(tk_gguf_count(v), 3);
    assert_int_equal(tk_gguf_find(v, "list"), 1);
    assert_int_equal(tk_gguf_find(v, "other"), 3);
    assert_int_equal(tk_gguf_kind_of(v, 1), TK_GGUF_TEXTS);
    assert_int_equal(tk_gguf_n_texts(v, 1), 2);
    assert_string_equal(tk_gguf_text(v, 1, 0, NULL), "one");
    assert_memory_equal(tk_gguf_text(v, 0, 0, &bytes), "a\0b", 4);
    assert_int_equal(bytes, 3);
    assert_null(tk_gguf_text(v, 1, 2, &bytes));
    assert_int_equal(tk_array_size(tk_gguf_array(v, 2)), 3);
    assert_ok(tk_gguf_set_text(v, "list", "now a text", 10));
    assert_int_equal(tk_gguf_kind_of(v, 1), TK_GGUF_TEXT);
    assert_fails(tk_gguf_add_text(v, "text", "x", 1), TK_NOT_FOUND, "no list of texts");
    assert_fails(tk_gguf_set_text(v, "", "x", 1), TK_INVALID_ARGUMENT, "empty");
    assert_fails(tk_gguf_set_array(v, "m", tk_zeros(ctx, TK_SHAPE(1, 1), TK_INT32)), TK_SHAPE_ERROR,
                 "2 axes");
    assert_fails(tk_gguf_set_array(v, "m", tk_zeros(ctx, TK_SHAPE(1), TK_FLOAT16)), TK_DTYPE_ERROR,
                 "float16");
    tk_gguf_values_free(v);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void round_trip(void **state) {
    (void)state;
    tk_context *ctx = make_context();
    tk_scope scope = tk_scope_open(ctx);
    tk_tree *tree = tk_tree_new(), *again = tk_tree_new();
    tk_gguf_values *values = tk_gguf_values_new(), *read = tk_gguf_values_new();
    tk_arrays parts = {0};
    double same;
    tk_array w = tk_random_normal(ctx, TK_SHAPE(3, 64), TK_FLOAT32, 0, 1, tk_random_key(ctx, 1));
    assert_ok(tk_quantize(tk_astype(w, TK_FLOAT16), 32, 4, "affine", TK_NO_ARRAY, &parts));
    assert_ok(tk_tree_set(tree, "w.weight", parts.items[0]));
    assert_ok(tk_tree_set(tree, "plain", tk_transpose(w, TK_ALL_AXES)));
    assert_ok(tk_tree_set(tree, "w.biases", parts.items[2]));
    assert_ok(tk_tree_set(tree, "w.scales", parts.items[1]));
    assert_ok(tk_gguf_set_text(values, "k", "v", 1));
    assert_ok(tk_gguf_save(in_folder("a.gguf"), tree, values));
    assert_ok(tk_gguf_load(ctx, in_folder("a.gguf"), again, read));
    assert_int_equal(tk_tree_count(again), 4);
    for (size_t i = 0; i < 4; i++) {
        tk_array there = tk_tree_get(again, tk_tree_name(tree, i));
        assert_ok(tk_item(tk_array_equal(tk_tree_at(tree, i), there, false), &same));
        assert_true(same == 1);
    }
    assert_string_equal(tk_gguf_text(read, 0, 0, NULL), "v");
    assert_ok(tk_tree_set(tree, "truth", tk_zeros(ctx, TK_SHAPE(2), TK_BOOL)));
    assert_fails(tk_gguf_save(in_folder("b.gguf"), tree, NULL), TK_DTYPE_ERROR, "\"truth\"");
    assert_int_equal(count_entries(folder, "b.gguf"), 0);
    tk_tree_clear(tree);
    assert_fails(tk_gguf_parse(ctx, NULL, "GGUF", 4, tree, NULL), TK_FORMAT_ERROR, "memory: ");
    tk_arrays_clear(&parts);
    tk_gguf_values_free(values);
    tk_gguf_values_free(read);
    tk_tree_free(tree);
    tk_tree_free(again);
    tk_scope_close(scope);
    tk_context_release(ctx);
}

static void nothing_given(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_tree *tree = tk_tree_new();
    tk_gguf_values *v = tk_gguf_values_new();
    gives_status(tk_gguf_load(P(context), P("x"), P(tree), NULL));
    gives_status(tk_gguf_parse(P(context), NULL, P("x"), 1, P(tree), NULL));
    gives_status(tk_gguf_save(P("x"), P(tree), NULL));
    gives_status(tk_gguf_set_text(P(v), P("k"), P("t"), 1));
    gives_status(tk_gguf_set_texts(P(v), P("k")));
    gives_status(tk_gguf_add_text(P(v), P("k"), P("t"), 1));
    gives_status(tk_gguf_set_array(P(v), P("k"), TK_NO_ARRAY));
    assert_int_equal(tk_gguf_count(NULL), 0);
    assert_null(tk_gguf_key(NULL, 0));
    tk_gguf_values_free(NULL);
    tk_gguf_values_free(v);
    tk_tree_free(tree);
    tk_context_release(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_metadata),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(nothing_given),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
