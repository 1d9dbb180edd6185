/* Ops that kernels are generated for, on the emulator beside the processor: indexing, random
 * numbers, functions, reductions, fused ops and their gradients, and a language model that trains.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/emulator_fixture.h"
#include "support/says.h"
#include "tiki/train.h"
#include "tiki/transforms.h"

static tk_array there(tk_array array) { return tk_to_stream(array, emulator); }

static void assert_same_bits(const char *what, tk_array got, tk_array expected) {
    size_t bytes = (size_t)tk_array_size(expected) * tk_dtype_size(tk_array_dtype(expected));
    char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
    assert_ok(tk_array_status(got));
    assert_int_equal(tk_array_dtype(got), tk_array_dtype(expected));
    assert_int_equal(tk_array_size(got), tk_array_size(expected));
    assert_ok(tk_copy_out(got, a, bytes));
    assert_ok(tk_copy_out(expected, b, bytes));
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i]) fail_msg("%s: byte %zu of %zu differs", what, i, bytes);
    free(a);
    free(b);
}

static float *floats_of(tk_array array) {
    size_t count = (size_t)tk_array_size(array);
    float *values = calloc(count + 1, sizeof *values);
    assert_ok(tk_copy_out(tk_astype(tk_to_stream(array, TK_DEFAULT_STREAM), TK_FLOAT32), values,
                          count * sizeof *values));
    return values;
}

static void assert_near(const char *what, tk_array got, tk_array expected, float bound) {
    assert_ok(tk_array_status(got));
    assert_int_equal(tk_array_size(got), tk_array_size(expected));
    float *a = floats_of(got), *b = floats_of(expected);
    for (int64_t i = 0; i < tk_array_size(expected); i++) {
        bool same = isnan(b[i]) ? isnan(a[i]) : a[i] == b[i];
        if (!same && !(fabsf(a[i] - b[i]) <= bound * (1 + fabsf(b[i]))))
            fail_msg("%s: element %lld is %.9g, expected %.9g", what, (long long)i, (double)a[i],
                     (double)b[i]);
    }
    free(a);
    free(b);
}

static tk_array numbers(tk_shape shape, tk_dtype dtype) {
    return tk_astype(tk_random_uniform(ctx, -3, 3, shape, TK_FLOAT32, TK_NO_ARRAY), dtype);
}

static tk_array indices(int64_t most, tk_shape shape, tk_dtype dtype) {
    return tk_astype(tk_random_randint(ctx, 0, (double)most, shape, TK_INT32, TK_NO_ARRAY), dtype);
}

/* ---- indexing ---- */

static void test_take(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_BFLOAT16, TK_INT8, TK_BOOL, TK_COMPLEX64};
    static const tk_dtype kinds[] = {TK_INT32, TK_UINT8, TK_INT64, TK_UINT32, TK_INT16};
    for (int d = 0; d < 5; d++) {
        tk_array a = numbers(TK_SHAPE(7, 5, 3), dtypes[d]);
        tk_array turned = tk_transpose(a, TK_AXES(2, 0, 1));
        tk_array at = indices(3, TK_SHAPE(4, 2), kinds[d]);
        for (int axis = 0; axis < 3; axis++) {
            assert_same_bits("take", tk_take(there(a), there(at), axis), tk_take(a, at, axis));
            assert_same_bits("take of a view",
                             tk_take(tk_transpose(there(a), TK_AXES(2, 0, 1)), there(at), axis),
                             tk_take(turned, at, axis));
        }
        tk_array along = indices(5, TK_SHAPE(7, 4, 3), kinds[d]);
        assert_same_bits("take_along_axis", tk_take_along_axis(there(a), there(along), 1),
                         tk_take_along_axis(a, along, 1));
    }
}

static void test_scatter(void **state) {
    (void)state;
    static const tk_mode modes[] = {TK_SET, TK_ADD, TK_MAX, TK_MIN, TK_PROD};
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT16, TK_BFLOAT16, TK_INT32, TK_UINT8};
    for (int d = 0; d < 5; d++)
        for (int m = 0; m < 5; m++) {
            tk_array a = numbers(TK_SHAPE(6, 4), dtypes[d]);
            tk_array updates = numbers(TK_SHAPE(90, 1, 4), dtypes[d]);
            tk_array at = indices(6, TK_SHAPE(90), TK_INT32), far_at = there(at);
            assert_same_bits(
                "scatter_nd",
                tk_scatter_nd(there(a), there(updates), &far_at, 1, TK_AXES(0), modes[m]),
                tk_scatter_nd(a, updates, &at, 1, TK_AXES(0), modes[m]));
        }
    tk_array a = numbers(TK_SHAPE(3, 8), TK_FLOAT32), v = numbers(TK_SHAPE(3, 5), TK_FLOAT32);
    tk_array at = indices(8, TK_SHAPE(3, 5), TK_INT32);
    assert_same_bits("put_along_axis", tk_put_along_axis(there(a), there(at), there(v), 1),
                     tk_put_along_axis(a, at, v, 1));
}

/* Both evaluations fail with one message: op, first bad index, axis, position. */
static void assert_same_error(tk_array far, tk_array near) {
    char expected[1024];
    assert_int_equal(tk_eval(near), TK_INDEX_ERROR);
    snprintf(expected, sizeof expected, "%s", tk_error_message());
    assert_int_equal(tk_eval(far), TK_INDEX_ERROR);
    assert_string_equal(tk_error_message(), expected);
    assert_same_bits("what is left", far, near);
}

/* Indices below `most`, but for some that no axis here has. */
static tk_array bad_indices(int64_t most, tk_shape shape, tk_dtype dtype, int seed) {
    int64_t values[200], count = 1;
    for (int64_t i = 0; i < shape.count; i++) count *= shape.items[i];
    for (int64_t i = 0; i < count; i++) values[i] = (i * 7 + seed) % most;
    for (int64_t i = seed % 5; i < count; i += 1 + count / 3) values[i] = 5 + i % 40;
    return tk_astype(tk_from_data(ctx, values, shape, TK_INT64), dtype);
}

static void test_indices_out_of_range(void **state) {
    static const tk_dtype kinds[] = {TK_INT32, TK_UINT8, TK_INT64, TK_UINT32, TK_INT16, TK_UINT64};
    (void)state;
    for (int k = 0; k < 6; k++) {
        tk_array a = numbers(TK_SHAPE(4, 3, 5), TK_FLOAT32);
        tk_array at = bad_indices(3, TK_SHAPE(6, 7), kinds[k], k);
        tk_array turned = tk_swapaxes(at, 0, 1), one = bad_indices(3, TK_SHAPE(1), kinds[k], 0);
        for (int axis = 0; axis < 3; axis++) {
            assert_same_error(tk_take(there(a), there(at), axis), tk_take(a, at, axis));
            assert_same_error(tk_take(there(a), tk_swapaxes(there(at), 0, 1), axis),
                              tk_take(a, turned, axis));
            assert_same_error(tk_take(there(a), tk_broadcast_to(there(one), TK_SHAPE(3, 2)), axis),
                              tk_take(a, tk_broadcast_to(one, TK_SHAPE(3, 2)), axis));
        }
        tk_array along = bad_indices(3, TK_SHAPE(4, 2, 5), kinds[k], k);
        assert_same_error(tk_take_along_axis(there(a), there(along), 1),
                          tk_take_along_axis(a, along, 1));
        tk_array v = numbers(TK_SHAPE(4, 2, 5), TK_FLOAT32);
        assert_same_error(tk_scatter_add_along_axis(there(a), there(along), there(v), 1),
                          tk_scatter_add_along_axis(a, along, v, 1));
        for (int mode = 0; mode < 2; mode++) {
            const tk_array near[] = {bad_indices(4, TK_SHAPE(9), kinds[k], k + mode),
                                     indices(3, TK_SHAPE(9), TK_INT32)};
            const tk_array far[] = {there(near[0]), there(near[1])};
            const tk_array swapped[] = {near[1], near[0]}, far_swapped[] = {far[1], far[0]};
            tk_array u = numbers(TK_SHAPE(9, 1, 1, 5), TK_FLOAT32);
            tk_mode how = mode ? TK_ADD : TK_SET;
            assert_same_error(tk_scatter_nd(there(a), there(u), far, 2, TK_AXES(0, 1), how),
                              tk_scatter_nd(a, u, near, 2, TK_AXES(0, 1), how));
            assert_same_error(tk_gather(there(a), far_swapped, 2, TK_AXES(1, 0), TK_SHAPE(1, 1, 4)),
                              tk_gather(a, swapped, 2, TK_AXES(1, 0), TK_SHAPE(1, 1, 4)));
        }
    }
}

/* Every index is bad, of an axis that has no element too. */
static void test_nothing_but_bad_indices(void **state) {
    (void)state;
    tk_array a = numbers(TK_SHAPE(0, 4), TK_FLOAT32), v = numbers(TK_SHAPE(3, 4), TK_FLOAT32);
    tk_array at = bad_indices(3, TK_SHAPE(3, 4), TK_INT32, 0), far = there(at);
    assert_same_error(tk_put_along_axis(there(a), far, there(v), 0),
                      tk_put_along_axis(a, at, v, 0));
    int64_t huge[] = {0, INT64_MIN, INT64_MAX};
    tk_array b = numbers(TK_SHAPE(2, 300), TK_FLOAT32);
    at = tk_from_data(ctx, huge, TK_SHAPE(3), TK_INT64);
    far = there(at);
    assert_same_error(tk_gather(there(b), &far, 1, TK_AXES(0), TK_SHAPE(1, 300)),
                      tk_gather(b, &at, 1, TK_AXES(0), TK_SHAPE(1, 300)));
}

/* ---- random numbers ---- */

static void test_random(void **state) {
    (void)state;
    tk_array key = tk_random_key(ctx, 7), keys = tk_random_split(key, 3), far = there(key);
    for (int64_t size = 1; size < 40; size += 6)
        for (int64_t width = 1; width <= 4; width *= 2) {
            assert_same_bits("random_bits", tk_random_bits(far, TK_SHAPE(size), width),
                             tk_random_bits(key, TK_SHAPE(size), width));
            assert_same_bits("bits of keys", tk_random_bits(there(keys), TK_SHAPE(size), width),
                             tk_random_bits(keys, TK_SHAPE(size), width));
        }
    assert_same_bits("split", tk_random_split(far, 5), tk_random_split(key, 5));
    tk_random_seed(ctx, 7);
    tk_array kept = tk_random_bernoulli(
        there(tk_multiply(tk_ones(ctx, TK_SHAPE(9), TK_FLOAT32), tk_scalar(ctx, 0.5))), TK_SHAPE(9),
        TK_NO_ARRAY);
    tk_random_seed(ctx, 7);
    assert_same_bits("implicit key", kept,
                     tk_random_bernoulli(tk_scalar(ctx, 0.5), TK_SHAPE(9), TK_NO_ARRAY));
    assert_same_bits("uniform", tk_random_uniform(ctx, 0, 1, TK_SHAPE(50), TK_FLOAT32, far),
                     tk_random_uniform(ctx, 0, 1, TK_SHAPE(50), TK_FLOAT32, key));
    assert_near("normal", tk_random_normal(ctx, TK_SHAPE(50), TK_FLOAT32, 0, 1, far),
                tk_random_normal(ctx, TK_SHAPE(50), TK_FLOAT32, 0, 1, key), 1e-6f);
}

/* ---- functions and reductions ---- */

typedef tk_array (*unary)(tk_array a);
typedef tk_array (*binary)(tk_array a, tk_array b);

static void test_functions(void **state) {
    (void)state;
    static const struct {
        const char *name;
        unary op;
    } ones[] = {{"expm1", tk_expm1},   {"log1p", tk_log1p},     {"log10", tk_log10},
                {"tan", tk_tan},       {"sinh", tk_sinh},       {"cosh", tk_cosh},
                {"arcsin", tk_arcsin}, {"arccos", tk_arccos},   {"arctan", tk_arctan},
                {"sign", tk_sign},     {"arcsinh", tk_arcsinh}, {"arccosh", tk_arccosh},
                {"erfinv", tk_erfinv}, {"arctanh", tk_arctanh}};
    static const struct {
        const char *name;
        binary op;
    } twos[] = {{"power", tk_power},
                {"arctan2", tk_arctan2},
                {"logaddexp", tk_logaddexp},
                {"remainder", tk_remainder},
                {"floor_divide", tk_floor_divide}};
    float edges[] = {0, -0.0f, 1, -1, 0.5f, -0.25f, 1e-6f, 2.5f, -3, 20, INFINITY, -INFINITY, NAN};
    tk_array e = tk_from_data(ctx, edges, TK_SHAPE(13), TK_FLOAT32),
             x = tk_add(numbers(TK_SHAPE(200), TK_FLOAT32), tk_scalar(ctx, 0));
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        assert_near(ones[i].name, ones[i].op(there(x)), ones[i].op(x), 1e-6f);
        assert_near(ones[i].name, ones[i].op(there(e)), ones[i].op(e), 1e-6f);
    }
    tk_array column = tk_reshape(e, TK_SHAPE(13, 1));
    for (size_t i = 0; i < sizeof twos / sizeof *twos; i++)
        assert_near(twos[i].name, twos[i].op(there(column), there(e)), twos[i].op(column, e),
                    1e-6f);
    tk_array k = indices(9, TK_SHAPE(50), TK_INT32), l = indices(4, TK_SHAPE(50), TK_INT32);
    k = tk_subtract(k, tk_scalar_int(ctx, 4));
    assert_same_bits("whole remainder", tk_remainder(there(k), there(l)), tk_remainder(k, l));
    assert_same_bits("whole quotient", tk_floor_divide(there(k), there(l)), tk_floor_divide(k, l));
    assert_near("exp of f64", tk_exp(there(tk_astype(x, TK_FLOAT64))),
                tk_exp(tk_astype(x, TK_FLOAT64)), 1e-7f);
}

static void test_more_reductions(void **state) {
    (void)state;
    tk_array x = numbers(TK_SHAPE(5, 33), TK_FLOAT32), far = there(x);
    tk_array truth = tk_greater(x, tk_scalar(ctx, 2.5)), far_truth = there(truth);
    for (int axis = 0; axis < 2; axis++) {
        tk_axes axes = TK_AXES(axis);
        assert_same_bits("any", tk_any(far_truth, axes, TK_DROPDIMS),
                         tk_any(truth, axes, TK_DROPDIMS));
        assert_same_bits("all", tk_all(far_truth, axes, TK_DROPDIMS),
                         tk_all(truth, axes, TK_DROPDIMS));
        assert_same_bits("argmax", tk_argmax(far, axes, TK_DROPDIMS),
                         tk_argmax(x, axes, TK_DROPDIMS));
        assert_same_bits("argmin", tk_argmin(far, axes, TK_DROPDIMS),
                         tk_argmin(x, axes, TK_DROPDIMS));
        assert_near("prod", tk_prod(far, axes, TK_DROPDIMS), tk_prod(x, axes, TK_DROPDIMS), 1e-4f);
        assert_near("logsumexp", tk_logsumexp(far, axes, TK_DROPDIMS),
                    tk_logsumexp(x, axes, TK_DROPDIMS), 1e-6f);
    }
    float edges[] = {-INFINITY, -INFINITY, 1, INFINITY, NAN, 2, -INFINITY, 0};
    tk_array e = tk_from_data(ctx, edges, TK_SHAPE(4, 2), TK_FLOAT32);
    assert_near("logsumexp at the edges", tk_logsumexp(there(e), TK_AXES(1), TK_DROPDIMS),
                tk_logsumexp(e, TK_AXES(1), TK_DROPDIMS), 1e-6f);
    assert_same_bits("argmax of NaN", tk_argmax(there(e), TK_AXES(0), TK_DROPDIMS),
                     tk_argmax(e, TK_AXES(0), TK_DROPDIMS));
}

/* ---- fused ops ---- */

static tk_status of_attention(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    (void)self, (void)n;
    tk_array y = tk_scaled_dot_product_attention(args[0], args[1], args[2], 0.5, TK_NO_ARRAY, true);
    return tk_arrays_push(results, tk_sum(tk_square(y), TK_ALL_AXES, TK_DROPDIMS));
}

static tk_array targets[2]; /* here, there */
static tk_status of_cross_entropy(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    (void)n;
    tk_array loss = tk_cross_entropy(args[0], *(tk_array *)self);
    return tk_arrays_push(results, tk_mean(loss, TK_ALL_AXES, TK_DROPDIMS));
}

static tk_status of_rope(void *self, const tk_array *args, size_t n, tk_arrays *results) {
    (void)self, (void)n;
    tk_array offset = tk_to_stream(tk_scalar_int(ctx, 3), tk_array_stream(args[0]));
    tk_array y = tk_rope(args[0], 8, false, 10000, 1, offset, TK_NO_ARRAY);
    return tk_arrays_push(results, tk_sum(tk_square(y), TK_ALL_AXES, TK_DROPDIMS));
}

static void same_gradients(const char *what, tk_function function, void *self[2],
                           const tk_array *args, size_t n) {
    tk_array far[3];
    tk_arrays values[2] = {{0}, {0}}, grads[2] = {{0}, {0}};
    for (size_t i = 0; i < n; i++) far[i] = there(args[i]);
    assert_ok(tk_value_and_grad(ctx, function, self[0], args, n, NULL, 0, &values[0], &grads[0]));
    assert_ok(tk_value_and_grad(ctx, function, self[1], far, n, NULL, 0, &values[1], &grads[1]));
    assert_near(what, values[1].items[0], values[0].items[0], 1e-5f);
    for (size_t i = 0; i < grads[0].count; i++)
        assert_near(what, grads[1].items[i], grads[0].items[i], 1e-4f);
    for (int i = 0; i < 2; i++) {
        tk_arrays_clear(&values[i]);
        tk_arrays_clear(&grads[i]);
    }
}

static void test_fused(void **state) {
    (void)state;
    void *none[2] = {NULL, NULL}, *both[2] = {&targets[0], &targets[1]};
    tk_array q = numbers(TK_SHAPE(2, 4, 5, 8), TK_FLOAT32),
             k = numbers(TK_SHAPE(2, 2, 7, 8), TK_FLOAT32),
             v = numbers(TK_SHAPE(2, 2, 7, 8), TK_FLOAT32), args[] = {q, k, v};
    same_gradients("attention", of_attention, none, args, 3);
    same_gradients("rope", of_rope, none, &q, 1);
    tk_array logits = numbers(TK_SHAPE(6, 11), TK_FLOAT32);
    targets[0] = indices(11, TK_SHAPE(6), TK_INT32);
    targets[1] = there(targets[0]);
    same_gradients("cross_entropy", of_cross_entropy, both, &logits, 1);
}

/* ---- a model ---- */

static double train(tk_stream_id stream, tk_model_family family) {
    static const unsigned char text[] = "the quick brown fox jumps over the lazy dog, and again: "
                                        "the quick brown fox jumps over the lazy dog";
    tk_model_config model = tk_model_config_make(family, 1, 2, 8, 8);
    tk_train_options options = tk_train_defaults(&model);
    tk_trainer *trainer;
    tk_train_report report = {0};
    options.batch = 1;
    options.warmup = 1;
    (void)tk_stream_use(ctx, stream);
    assert_ok(tk_trainer_create(ctx, &options, text, sizeof text - 1, &trainer));
    assert_ok(tk_eval_wait(tk_tree_arrays(tk_trainer_parameters(trainer)), 1, NULL));
    for (int i = 0; i < 2; i++) assert_ok(tk_trainer_step(trainer, NULL, &report));
    tk_trainer_free(trainer);
    (void)tk_stream_use(ctx, TK_DEFAULT_STREAM);
    return report.loss;
}

static void test_models_train(void **state) {
    (void)state;
    static const tk_model_family families[] = {TK_MODEL_GPT2, TK_MODEL_LLAMA};
    for (int i = 0; i < 2; i++) {
        double here = train(TK_DEFAULT_STREAM, families[i]), far = train(emulator, families[i]);
        assert_float_equal(far, here, 1e-4);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_emulator, close_context)
    const struct CMUnitTest tests[] = {TEST(test_take),
                                       TEST(test_scatter),
                                       TEST(test_indices_out_of_range),
                                       TEST(test_nothing_but_bad_indices),
                                       TEST(test_random),
                                       TEST(test_functions),
                                       TEST(test_more_reductions),
                                       TEST(test_fused),
                                       TEST(test_models_train)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
