/* Arrays without elements in every op: a result of the right shape, or a typed error where nothing
 * has no value. The table first, then the values that have a meaning: sums, products, truths,
 * positions, padding, products of matrices. */
#include "edge/edge_check.h"
#include "support/op_calls.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static bool is_type(const op_param *param, const char *type) { return !strcmp(param->type, type); }

/* Every row with empty operands of a shape: values or a typed error, never a crash. */
static void call_row(tk_context *ctx, const op_row *row, tk_dtype dtype, tk_shape shape) {
    tk_scope scope = tk_scope_open(ctx);
    op_value values[OP_PARAMS_MAX];
    tk_array empty = tk_zeros(ctx, shape, dtype), list[] = {empty, empty};
    tk_axes zeros = {.count = shape.count};
    for (int i = 0; i < row->n_params; i++) {
        const op_param *param = &row->params[i];
        values[i] = (op_value){.axes = zeros, .text = "i,i->i", .dtype = dtype, .real = 1};
        if (is_type(param, "") || (is_type(param, "array?") && i % 2)) values[i].array = empty;
        if (is_type(param, "arrays")) values[i].arrays = list, values[i].count = 2;
        if (is_type(param, "shape")) values[i].axes = shape;
        if (!strcmp(param->name, "axes")) values[i].axes = TK_ALL_AXES;
        if (!strcmp(param->name, "sections")) values[i].integer = 1;
    }
    tk_arrays results = {0};
    tk_status status = row->call(ctx, values, &results);
    for (size_t i = 0; status == TK_OK && i < results.count; i++)
        status = tk_eval(results.items[i]);
    assert_true(status != TK_INTERNAL && status != TK_OUT_OF_MEMORY);
    tk_arrays_clear(&results);
    tk_scope_close(scope);
}

static void every_op_takes_nothing(void **state) {
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_INT32, TK_BOOL, TK_COMPLEX64, TK_BFLOAT16};
    for (size_t r = 0; r < op_row_count; r++)
        for (int d = 0; d < 5; d++) {
            call_row(*state, &op_rows[r], dtypes[d], TK_SHAPE(0));
            call_row(*state, &op_rows[r], dtypes[d], TK_SHAPE(0, 3));
            call_row(*state, &op_rows[r], dtypes[d], TK_SHAPE(2, 0));
            call_row(*state, &op_rows[r], dtypes[d], TK_SHAPE(0, 0, 4));
        }
}

/* Elementwise rows, by their signature: nothing in, nothing out. */
static void elementwise_ops_keep_the_shape(void **state) {
    tk_context *ctx = *state;
    tk_array empty = tk_zeros(ctx, TK_SHAPE(2, 0, 3), TK_FLOAT32);
    tk_array wide = tk_ones(ctx, TK_SHAPE(2, 1, 3), TK_FLOAT32);
    CHECK_EMPTY(tk_exp(empty), TK_FLOAT32, TK_SHAPE(2, 0, 3));
    CHECK_EMPTY(tk_add(empty, wide), TK_FLOAT32, TK_SHAPE(2, 0, 3));
    CHECK_EMPTY(tk_less(wide, empty), TK_BOOL, TK_SHAPE(2, 0, 3));
    CHECK_EMPTY(tk_where(tk_astype(empty, TK_BOOL), wide, empty), TK_FLOAT32, TK_SHAPE(2, 0, 3));
    CHECK_EMPTY(tk_astype(empty, TK_UINT8), TK_UINT8, TK_SHAPE(2, 0, 3));
    CHECK_ERROR(tk_add(empty, tk_ones(ctx, TK_SHAPE(2, 2, 3), TK_FLOAT32)), TK_SHAPE_ERROR,
                "(2, 0, 3)");
}

static void reductions_of_nothing(void **state) {
    tk_context *ctx = *state;
    for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++) {
        tk_array x = tk_zeros(ctx, TK_SHAPE(2, 0), (tk_dtype)d);
        CHECK(tk_sum(x, TK_AXES(1), false), (tk_dtype)d, TK_SHAPE(2), 0, 0);
        CHECK(tk_prod(x, TK_AXES(1), true), (tk_dtype)d, TK_SHAPE(2, 1), 1, 1);
        CHECK(tk_mean(x, TK_ALL_AXES, false), (tk_dtype)d, TK_SCALAR, NOT);
        CHECK(tk_var(x, TK_ALL_AXES, false, 0), (tk_dtype)d, TK_SCALAR, NOT);
        CHECK(tk_logsumexp(x, TK_AXES(1), false), (tk_dtype)d, TK_SHAPE(2), -INF, -INF);
        CHECK_EMPTY(tk_sum(x, TK_AXES(0), false), (tk_dtype)d, TK_SHAPE(0));
        CHECK_EMPTY(tk_max(x, TK_AXES(0), false), (tk_dtype)d, TK_SHAPE(0));
        CHECK_EMPTY(tk_argmax(x, TK_AXES(0), false), TK_UINT32, TK_SHAPE(0));
        CHECK_EMPTY(tk_softmax(x, TK_AXES(1)), (tk_dtype)d, TK_SHAPE(2, 0));
    }
    tk_array x = tk_zeros(ctx, TK_SHAPE(2, 0), TK_INT8);
    CHECK(tk_sum(x, TK_ALL_AXES, false), TK_INT32, TK_SCALAR, 0);
    CHECK(tk_prod(x, TK_ALL_AXES, false), TK_INT32, TK_SCALAR, 1);
    CHECK(tk_any(x, TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 0);
    CHECK(tk_all(x, TK_AXES(1), false), TK_BOOL, TK_SHAPE(2), 1, 1);
    CHECK_ERROR(tk_max(x, TK_AXES(1), false), TK_SHAPE_ERROR, "empty");
    CHECK_ERROR(tk_min(x, TK_ALL_AXES, false), TK_SHAPE_ERROR, "empty");
    CHECK_ERROR(tk_argmin(x, TK_ALL_AXES, false), TK_SHAPE_ERROR, "empty");
    CHECK_ERROR(tk_median(x, TK_ALL_AXES, false), TK_SHAPE_ERROR, "no elements");
    tk_array one = tk_ones(ctx, TK_SHAPE(1), TK_FLOAT32); /* fewer than ddof are left */
    CHECK(tk_var(one, TK_ALL_AXES, false, 1), TK_FLOAT32, TK_SCALAR, NOT);
}

static void moves_of_nothing(void **state) {
    tk_context *ctx = *state;
    tk_array x = tk_zeros(ctx, TK_SHAPE(0, 3), TK_INT16);
    CHECK_EMPTY(tk_transpose(x, TK_ALL_AXES), TK_INT16, TK_SHAPE(3, 0));
    CHECK_EMPTY(tk_reshape(x, TK_SHAPE(5, 0, 2)), TK_INT16, TK_SHAPE(5, 0, 2));
    CHECK_EMPTY(tk_flip(x, TK_ALL_AXES), TK_INT16, TK_SHAPE(0, 3));
    CHECK_EMPTY(tk_roll(x, TK_AXES(5), TK_AXES(0)), TK_INT16, TK_SHAPE(0, 3));
    CHECK_EMPTY(tk_repeat(x, 4, 0), TK_INT16, TK_SHAPE(0, 3));
    CHECK_EMPTY(tk_repeat(tk_ones(ctx, TK_SHAPE(2), TK_INT16), 0, 0), TK_INT16, TK_SHAPE(0));
    CHECK_EMPTY(tk_tile(x, TK_SHAPE(2, 2)), TK_INT16, TK_SHAPE(0, 6));
    CHECK_EMPTY(tk_sort(x, 0), TK_INT16, TK_SHAPE(0, 3));
    CHECK_EMPTY(tk_argsort(x, 0), TK_UINT32, TK_SHAPE(0, 3));
    CHECK_EMPTY(tk_cumsum(x, 0, false, false), TK_INT16, TK_SHAPE(0, 3));
    CHECK_EMPTY(tk_topk(x, 0, 0), TK_INT16, TK_SHAPE(0, 3));
    CHECK_EMPTY(tk_broadcast_to(tk_ones(ctx, TK_SHAPE(1, 3), TK_INT16), TK_SHAPE(0, 3)), TK_INT16,
                TK_SHAPE(0, 3));
    tk_array both[] = {x, tk_ones(ctx, TK_SHAPE(1, 3), TK_INT16)};
    CHECK(tk_concatenate(both, 2, 0), TK_INT16, TK_SHAPE(1, 3), 1, 1, 1);
    CHECK_ERROR(tk_reshape(x, TK_SHAPE(0, -1)), TK_SHAPE_ERROR, "divide");
    CHECK_EMPTY(tk_arange(ctx, 3, 3, 1, TK_INT32), TK_INT32, TK_SHAPE(0));
    CHECK_EMPTY(tk_eye(ctx, 0, 5, 0, TK_FLOAT32), TK_FLOAT32, TK_SHAPE(0, 5));
}

/* Padding an empty axis, and by nothing. */
static void padding_of_nothing(void **state) {
    tk_context *ctx = *state;
    tk_array x = tk_zeros(ctx, TK_SHAPE(0), TK_FLOAT32), seven = tk_scalar(ctx, 7);
    CHECK(tk_pad(x, TK_AXES(2), TK_AXES(1), seven), TK_FLOAT32, TK_SHAPE(3), 7, 7, 7);
    CHECK_EMPTY(tk_pad(x, TK_AXES(0), TK_AXES(0), seven), TK_FLOAT32, TK_SHAPE(0));
}

static void products_with_nothing_between(void **state) {
    tk_context *ctx = *state;
    tk_array tall = tk_zeros(ctx, TK_SHAPE(2, 0), TK_FLOAT32),
             flat = tk_zeros(ctx, TK_SHAPE(0, 3), TK_FLOAT32);
    CHECK(tk_matmul(tall, flat), TK_FLOAT32, TK_SHAPE(2, 3), 0, 0, 0, 0, 0, 0);
    CHECK_EMPTY(tk_matmul(flat, tk_zeros(ctx, TK_SHAPE(3, 4), TK_FLOAT32)), TK_FLOAT32,
                TK_SHAPE(0, 4));
    CHECK_EMPTY(tk_matmul(tk_zeros(ctx, TK_SHAPE(0, 2, 3), TK_FLOAT32),
                          tk_zeros(ctx, TK_SHAPE(3, 2), TK_FLOAT32)),
                TK_FLOAT32, TK_SHAPE(0, 2, 2));
    tk_array c = tk_ones(ctx, TK_SHAPE(2, 3), TK_FLOAT32);
    CHECK(tk_addmm(c, tall, flat, 1, 2), TK_FLOAT32, TK_SHAPE(2, 3), 2, 2, 2, 2, 2, 2);
    tk_array v = tk_zeros(ctx, TK_SHAPE(0), TK_INT32), pair[] = {v, v};
    CHECK(tk_inner(v, v), TK_INT32, TK_SCALAR, 0);
    CHECK(tk_einsum("i,i->", pair, 2), TK_INT32, TK_SCALAR, 0);
    CHECK_EMPTY(tk_outer(v, tk_ones(ctx, TK_SHAPE(2), TK_INT32)), TK_INT32, TK_SHAPE(0, 2));
}

static void indexing_nothing(void **state) {
    tk_context *ctx = *state;
    tk_array x = tk_ones(ctx, TK_SHAPE(3), TK_FLOAT32), none = tk_zeros(ctx, TK_SHAPE(0), TK_INT32);
    tk_array empty = tk_zeros(ctx, TK_SHAPE(0), TK_FLOAT32),
             at = tk_zeros(ctx, TK_SHAPE(2), TK_INT32);
    CHECK_EMPTY(tk_take(x, none, 0), TK_FLOAT32, TK_SHAPE(0));
    CHECK_EMPTY(tk_take(empty, none, 0), TK_FLOAT32, TK_SHAPE(0));
    CHECK_ERROR(tk_take(empty, at, 0), TK_INDEX_ERROR, "empty");
    CHECK_EMPTY(tk_take_along_axis(empty, none, 0), TK_FLOAT32, TK_SHAPE(0));
    CHECK(tk_put_along_axis(x, none, empty, 0), TK_FLOAT32, TK_SHAPE(3), 1, 1, 1);
    CHECK(tk_slice_update(x, empty, TK_AXES(1), TK_AXES(1), TK_ALL_AXES, TK_SET), TK_FLOAT32,
          TK_SHAPE(3), 1, 1, 1);
    assert_int_equal(tk_eval(tk_take_along_axis(empty, at, 0)), TK_INDEX_ERROR);
}

/* Layers and attention over an empty batch, no queries, no keys. */
static void layers_over_nothing(void **state) {
    tk_context *ctx = *state;
    tk_array x = tk_zeros(ctx, TK_SHAPE(0, 4), TK_FLOAT32),
             w = tk_ones(ctx, TK_SHAPE(4), TK_FLOAT32);
    CHECK_EMPTY(tk_rms_norm(x, w, 1e-5), TK_FLOAT32, TK_SHAPE(0, 4));
    CHECK_EMPTY(tk_layer_norm(x, w, w, 1e-5), TK_FLOAT32, TK_SHAPE(0, 4));
    tk_array q = tk_ones(ctx, TK_SHAPE(1, 2, 2, 4), TK_FLOAT32);
    tk_array no_keys = tk_zeros(ctx, TK_SHAPE(1, 2, 0, 4), TK_FLOAT32);
    CHECK(tk_scaled_dot_product_attention(q, no_keys, no_keys, 1, TK_NO_ARRAY, false), TK_FLOAT32,
          TK_SHAPE(1, 2, 2, 4), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CHECK_EMPTY(tk_scaled_dot_product_attention(no_keys, q, q, 1, TK_NO_ARRAY, true), TK_FLOAT32,
                TK_SHAPE(1, 2, 0, 4));
    tk_array no_batch = tk_zeros(ctx, TK_SHAPE(0, 2, 3, 4), TK_FLOAT32);
    CHECK_EMPTY(tk_scaled_dot_product_attention(no_batch, no_batch, no_batch, 1, TK_NO_ARRAY, true),
                TK_FLOAT32, TK_SHAPE(0, 2, 3, 4));
    tk_array logits = tk_zeros(ctx, TK_SHAPE(0, 5), TK_FLOAT32),
             targets = tk_zeros(ctx, TK_SHAPE(0), TK_INT32);
    CHECK_EMPTY(tk_cross_entropy(logits, targets), TK_FLOAT32, TK_SHAPE(0));
    tk_array heads = tk_zeros(ctx, TK_SHAPE(1, 2, 0, 4), TK_FLOAT32);
    CHECK_EMPTY(tk_rope(heads, 4, false, 10000, 1, tk_scalar_int(ctx, 0), TK_NO_ARRAY), TK_FLOAT32,
                TK_SHAPE(1, 2, 0, 4));
}

static void drawing_nothing(void **state) {
    tk_context *ctx = *state;
    tk_array key = tk_random_key(ctx, 1);
    CHECK_EMPTY(tk_random_normal(ctx, TK_SHAPE(0, 3), TK_FLOAT32, 0, 1, key), TK_FLOAT32,
                TK_SHAPE(0, 3));
    CHECK_EMPTY(tk_random_uniform(ctx, 0, 1, TK_SHAPE(0), TK_FLOAT64, key), TK_FLOAT64,
                TK_SHAPE(0));
    CHECK_EMPTY(tk_random_permutation(tk_zeros(ctx, TK_SHAPE(0, 2), TK_INT8), 0, key), TK_INT8,
                TK_SHAPE(0, 2));
}

static void text_of_nothing(void **state) {
    tk_context *ctx = *state;
    char *text = NULL;
    assert_ok(tk_format(tk_zeros(ctx, TK_SHAPE(0), TK_FLOAT32), &text));
    assert_string_equal(text, "[]");
    tk_text_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_op_takes_nothing), TEST(elementwise_ops_keep_the_shape),
        TEST(reductions_of_nothing),  TEST(moves_of_nothing),
        TEST(padding_of_nothing),     TEST(products_with_nothing_between),
        TEST(indexing_nothing),       TEST(layers_over_nothing),
        TEST(drawing_nothing),        TEST(text_of_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
