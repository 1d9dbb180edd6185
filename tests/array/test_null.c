/* NULL where an array, a context, a tree or a device is needed. */
#include "support/null_check.h"
#include "tiki/tree.h"

typedef struct fixture {
    tk_context *context;
    tk_scope scope;
    tk_array x;
    tk_arrays list;
} fixture;

static fixture open_fixture(void) {
    fixture f = {.context = make_context()};
    f.scope = tk_scope_open(f.context);
    f.x = tk_ones(f.context, TK_SHAPE(2), TK_FLOAT32);
    return f;
}

static void close_fixture(fixture *f) {
    tk_arrays_clear(&f->list);
    tk_scope_close(f->scope);
    tk_context_release(f->context);
}

static tk_status sum_of_first(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    return tk_arrays_push(results, tk_sum(args[0], TK_ALL_AXES, TK_DROPDIMS));
}

static void contexts_and_scopes(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_stream_id stream;
    gives_status(tk_context_create(NULL, P(&f.context)));
    gives_status(tk_synchronize(P(f.context)));
    gives_status(tk_stream_new(P(f.context), P(&stream)));
    gives(tk_stream_use(P(f.context), 0), TK_DEFAULT_STREAM);
    gives(tk_context_device(P(f.context)), NULL);
    gives_nothing(tk_set_nan_trap(P(f.context), true));
    gives_nothing(tk_random_seed(P(f.context), 1));
    gives_nothing(tk_scope_close(tk_scope_open(P(f.context))));
    gives_nothing(tk_context_release(P(f.context)));
    close_fixture(&f);
}

static void making_arrays(void **state) {
    (void)state;
    fixture f = open_fixture();
    float data[2] = {1, 2};
    int64_t lengths[1] = {2};
    gives_array(tk_scalar(P(f.context), 1));
    gives_array(tk_scalar_int(P(f.context), 1));
    gives_array(tk_scalar_bool(P(f.context), true));
    gives_array(tk_scalar_complex(P(f.context), 1, 1));
    gives_array(tk_from_data(P(f.context), P(data), TK_SHAPE(2), TK_FLOAT32));
    gives_array(tk_from_memory(P(f.context), P(data), sizeof data, TK_SHAPE(2), NULL, TK_FLOAT32,
                               NULL, NULL));
    gives_nothing(tk_error_array(P(f.context), TK_SHAPE_ERROR));
    gives(tk_axes_from(1, P(lengths)).count, TK_AXES_MAX + 1);
    close_fixture(&f);
}

static void lists_and_values(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_strided view;
    double real;
    int64_t integer;
    char *text;
    float data[2];
    gives_status(tk_arrays_push(P(&f.list), f.x));
    gives_nothing(tk_arrays_clear(P(&f.list)));
    gives_status(tk_eval_all(P(&f.x), 1));
    gives_status(tk_eval_wait(P(&f.x), 1, NULL));
    gives_status(tk_async_eval(P(&f.x), 1));
    gives_status(tk_array_view(f.x, P(&view)));
    gives_status(tk_copy_out(f.x, P(data), sizeof data));
    gives_status(tk_item(f.x, P(&real)));
    gives_status(tk_item_int(f.x, P(&integer)));
    gives_status(tk_format(f.x, P(&text)));
    gives_status(tk_format_digits(f.x, 2, P(&text)));
    gives_status(tk_graph_print(P(&f.x), 1, P(&text)));
    gives_status(tk_graph_parse(P(f.context), P("%0"), P(&f.x), 1, P(&f.list)));
    gives_status(tk_graph_inputs(P(&f.x), 1, P(&f.list)));
    gives_nothing(tk_text_free(P(NULL)));
    assert_ok(tk_eval_all(NULL, 0));
    close_fixture(&f);
}

static void transforms(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_custom custom = {.size = sizeof custom, .function = sum_of_first};
    tk_array loss = tk_ones(f.context, TK_SCALAR, TK_FLOAT32);
    tk_arrays *list = &f.list;
    tk_traced *traced;
    assert_ok(tk_traced_create(f.context, sum_of_first, NULL, &f.x, 1, &traced));
    gives_status(
        tk_vjp(P(f.context), F(sum_of_first), NULL, P(&f.x), 1, P(&loss), 1, P(list), P(list)));
    gives_status(
        tk_jvp(P(f.context), F(sum_of_first), NULL, P(&f.x), 1, P(&f.x), P(list), P(list)));
    gives_status(
        tk_value_and_grad(P(f.context), F(sum_of_first), NULL, P(&f.x), 1, NULL, 0, NULL, P(list)));
    gives_status(tk_grad(P(f.context), F(sum_of_first), NULL, P(&f.x), 1, NULL, 0, P(list)));
    gives_status(tk_vmap(P(f.context), F(sum_of_first), NULL, P(&f.x), 1, NULL, NULL, P(list)));
    gives_status(tk_checkpoint(P(f.context), F(sum_of_first), NULL, NULL, P(&f.x), 1, P(list)));
    gives_status(tk_custom_call(P(f.context), P(&custom), P(&f.x), 1, P(list)));
    gives_status(tk_traced_create(P(f.context), F(sum_of_first), NULL, P(&f.x), 1, P(&traced)));
    gives_status(tk_traced_create_shapeless(P(f.context), F(sum_of_first), NULL, P(&f.x), P(&f.x),
                                            1, P(&traced)));
    gives_status(tk_traced_call(P(traced), P(&f.x), 1, P(list)));
    gives(tk_traced_size(P(traced)), 0);
    gives_nothing(tk_traced_free(P(traced)));
    tk_traced_free(traced);
    close_fixture(&f);
}

static void trees(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_tree *tree = tk_tree_new();
    assert_ok(tk_tree_set(tree, "x", f.x));
    gives_status(tk_tree_set(P(tree), P("x"), f.x));
    gives_status(tk_tree_set_at(P(tree), 0, f.x));
    gives_status(tk_tree_set_all(P(tree), P(&f.x), 1));
    gives_status(tk_tree_eval(P(tree)));
    gives(tk_tree_count(P(tree)), 0);
    gives(tk_tree_name(P(tree), 0), NULL);
    gives(tk_tree_at(P(tree), 0).node, NULL);
    gives(tk_tree_arrays(P(tree)), NULL);
    gives_nothing(tk_tree_find(P(tree), P("x")));
    gives(tk_tree_get(P(tree), P("x")).node, NULL);
    gives(tk_tree_size(P(tree)), 0);
    gives(tk_tree_bytes(P(tree)), 0);
    gives_nothing(tk_tree_clear(P(tree)));
    gives_nothing(tk_tree_free(P(tree)));
    assert_true(tk_tree_name(tree, 1) == NULL);
    assert_null(tk_tree_at(tree, 1).node);
    assert_int_equal(tk_tree_find(tree, NULL), 1);
    tk_tree_free(tree);
    close_fixture(&f);
}

static void devices_and_names(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_device *device = tk_context_device(f.context);
    tk_dtype dtype;
    gives(tk_device_name(P(device)), NULL);
    gives(tk_device_memory(P(device)).active, 0);
    gives_nothing(tk_device_set_memory_limit(P(device), 0));
    gives_nothing(tk_device_set_cache_limit(P(device), 0));
    gives_nothing(tk_device_reset_peak(P(device)));
    gives_nothing(tk_device_clear_cache(P(device)));
    gives_status(tk_dtype_parse(P("f32"), P(&dtype)));
    gives_nothing(tk_error_set(TK_IO_ERROR, P("%s"), "text"));
    close_fixture(&f);
}

static void ops(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_array indices = tk_zeros(f.context, TK_SHAPE(1), TK_INT32);
    gives_array(tk_zeros(P(f.context), TK_SHAPE(2), TK_FLOAT32));
    gives_array(tk_concatenate(P(&f.x), 1, 0));
    gives_array(tk_stack(P(&f.x), 1, 0));
    gives_array(tk_einsum(P("i->"), P(&f.x), 1));
    gives_array(tk_gather(f.x, P(&indices), 1, TK_AXES(0), TK_SHAPE(1)));
    gives_array(tk_scatter_nd(f.x, f.x, P(&indices), 1, TK_AXES(0), TK_SET));
    gives_status(tk_split(f.x, TK_AXES(1), 0, P(&f.list)));
    gives_status(tk_split_equal(f.x, 2, 0, P(&f.list)));
    close_fixture(&f);
}

static void says(tk_array array, const char *message) {
    (void)tk_eval(array);
    assert_string_equal(tk_error_message(), message);
}

static void messages_name_op_and_argument(void **state) {
    (void)state;
    fixture f = open_fixture();
    tk_tree *tree = tk_tree_new();
    says(tk_add(f.x, TK_NO_ARRAY), "add: operand 1 is no array (TK_NO_ARRAY)");
    says(tk_add(f.x, tk_tree_get(tree, "q")),
         "add: operand 1 is no array (TK_NO_ARRAY); before it: no array is named \"q\"");
    says(tk_add(f.x, TK_NO_ARRAY), "add: operand 1 is no array (TK_NO_ARRAY)");
    says(tk_concatenate(&f.x, 0, 0), "the argument is no array (TK_NO_ARRAY); before it: "
                                     "concatenate: 0 arrays given, expected 1 or more");
    says(tk_stack(NULL, 2, 0), "the argument is no array (TK_NO_ARRAY); before it: "
                               "stack: argument `arrays` is NULL");
    assert_int_equal(tk_format(f.x, NULL), TK_INVALID_ARGUMENT);
    assert_string_equal(tk_error_message(), "argument `out_text` is NULL");
    int32_t far[1] = {5};
    tk_array index = tk_from_data(f.context, far, TK_SHAPE(1), TK_INT32);
    says(tk_take(f.x, index, 0), "take/gather: index 5 is out of range for an axis of length 2 (at "
                                 "position 0 of the indices)");
    int argnum = 2;
    assert_int_equal(tk_grad(f.context, sum_of_first, NULL, &f.x, 1, &argnum, 1, &f.list),
                     TK_INVALID_ARGUMENT);
    assert_string_equal(tk_error_message(), "argnums[0] is 2, expected 0 to 0");
    tk_tree_free(tree);
    close_fixture(&f);
}

static void processor(void **state) {
    (void)state;
    gives_status(tk_cpu_set_blas(P("/nowhere"), P("")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processor),
        cmocka_unit_test(contexts_and_scopes),
        cmocka_unit_test(making_arrays),
        cmocka_unit_test(lists_and_values),
        cmocka_unit_test(transforms),
        cmocka_unit_test(trees),
        cmocka_unit_test(devices_and_names),
        cmocka_unit_test(ops),
        cmocka_unit_test(messages_name_op_and_argument),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
