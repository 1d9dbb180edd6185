/* Derivatives and batching at the edges, each with the right value. Rows of the op table are
 * checked against finite differences in tests/graph/test_grad.c; these are compositions that went
 * wrong elsewhere. */
#include "edge/edge_check.h"
#include "tiki/transforms.h"

static tk_array f32(tk_context *ctx, int64_t count, const float *values) {
    return tk_from_data(ctx, values, TK_SHAPE(count), TK_FLOAT32);
}
#define F32(ctx, ...)                                                                              \
    f32((ctx), (int64_t)(sizeof(float[]){__VA_ARGS__} / sizeof(float)), (float[]){__VA_ARGS__})

/* ---- gradients ---- */

static tk_status sorted_and_weighted(void *self, const tk_array *args, size_t n_args,
                                     tk_arrays *results) {
    tk_context *ctx = self;
    (void)n_args;
    tk_array weights = tk_arange(ctx, 1, 6, 1, TK_FLOAT32);
    tk_array sum = tk_sum(tk_multiply(tk_sort(args[0], 0), weights), TK_ALL_AXES, false);
    return tk_arrays_push(results, sum);
}

/* The gradient of a sort goes back where the elements came from. */
static void sort_sends_gradients_home(void **state) {
    tk_context *ctx = *state;
    tk_array x = F32(ctx, 3, -1, 4, 1.5f, 0);
    tk_arrays gradients = {0};
    assert_ok(tk_grad(ctx, sorted_and_weighted, ctx, &x, 1, NULL, 0, &gradients));
    CHECK(gradients.items[0], TK_FLOAT32, TK_SHAPE(5), 4, 1, 5, 3, 2);
    tk_arrays_clear(&gradients);
}

static tk_status weighted_entropy(void *self, const tk_array *args, size_t n_args,
                                  tk_arrays *results) {
    tk_context *ctx = self;
    (void)n_args;
    tk_array targets = tk_from_data(ctx, (int32_t[]){0, 1}, TK_SHAPE(2), TK_INT32);
    tk_array each = tk_cross_entropy(args[0], targets), weights = F32(ctx, 1, 10);
    return tk_arrays_push(results, tk_sum(tk_multiply(each, weights), TK_ALL_AXES, false));
}

/* Each row of a cross entropy has its own upstream gradient. */
static void cross_entropy_rows_have_their_own_weight(void **state) {
    tk_context *ctx = *state;
    tk_array logits = tk_zeros(ctx, TK_SHAPE(2, 2), TK_FLOAT32);
    tk_arrays gradients = {0};
    assert_ok(tk_grad(ctx, weighted_entropy, ctx, &logits, 1, NULL, 0, &gradients));
    CHECK_NEAR(gradients.items[0], TK_FLOAT32, TK_SHAPE(2, 2), 1e-6, -0.5, 0.5, 5, -5);
    tk_arrays_clear(&gradients);
}

static tk_status log_of_weighted_exponentials(void *self, const tk_array *args, size_t n_args,
                                              tk_arrays *results) {
    (void)self;
    (void)n_args;
    tk_array sum = tk_sum(tk_multiply(args[0], tk_exp(args[1])), TK_ALL_AXES, false);
    return tk_arrays_push(results, tk_log(sum));
}

/* A weight of 0 still has a gradient. */
static void weights_of_zero_have_gradients(void **state) {
    tk_context *ctx = *state;
    tk_array args[] = {F32(ctx, 2, 0, 5), F32(ctx, 0, 0, 0)};
    int first[] = {0};
    tk_arrays gradients = {0};
    assert_ok(tk_grad(ctx, log_of_weighted_exponentials, NULL, args, 2, first, 1, &gradients));
    CHECK_NEAR(gradients.items[0], TK_FLOAT32, TK_SHAPE(3), 1e-6, 1.0 / 7, 1.0 / 7, 1.0 / 7);
    tk_arrays_clear(&gradients);
}

static tk_status sum_of_logsumexp(void *self, const tk_array *args, size_t n_args,
                                  tk_arrays *results) {
    (void)self;
    (void)n_args;
    return tk_arrays_push(results,
                          tk_sum(tk_logsumexp(args[0], TK_AXES(1), false), TK_ALL_AXES, false));
}

/* A row of -inf has gradient 0, in every dtype, and its neighbours keep theirs. */
static void dead_rows_have_gradient_zero(void **state) {
    tk_context *ctx = *state;
    double values[] = {-INFINITY, -INFINITY, 0, 0};
    for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++) {
        tk_array x = tk_astype(tk_from_data(ctx, values, TK_SHAPE(2, 2), TK_FLOAT64), (tk_dtype)d);
        tk_array one = tk_ones(ctx, TK_SCALAR, (tk_dtype)d);
        tk_arrays values = {0}, gradients = {0};
        assert_ok(tk_vjp(ctx, sum_of_logsumexp, NULL, &x, 1, &one, 1, &values, &gradients));
        CHECK(gradients.items[0], (tk_dtype)d, TK_SHAPE(2, 2), 0, 0, 0.5, 0.5);
        tk_arrays_clear(&values);
        tk_arrays_clear(&gradients);
    }
}

static tk_status sum_of_taken(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    return tk_arrays_push(results,
                          tk_sum(tk_take(args[0], *(tk_array *)self, 0), TK_ALL_AXES, false));
}

/* Nothing comes back through an index that is out of range; the error does. */
static void indices_out_of_range_have_no_gradient(void **state) {
    tk_context *ctx = *state;
    tk_array x = F32(ctx, 1, 2, 3);
    tk_array at = tk_from_data(ctx, (int64_t[]){2, 9, 2, -1}, TK_SHAPE(4), TK_INT64);
    tk_arrays gradients = {0};
    assert_ok(tk_grad(ctx, sum_of_taken, &at, &x, 1, NULL, 0, &gradients));
    assert_int_equal(tk_eval(gradients.items[0]), TK_INDEX_ERROR);
    assert_non_null(strstr(tk_error_message(), "index 9 "));
    CHECK(gradients.items[0], TK_FLOAT32, TK_SHAPE(3), 0, 0, 3);
    tk_arrays_clear(&gradients);
}

/* ---- complex: the derivative of a pair of reals ---- */

typedef struct complex_case {
    const char *name;
    tk_array (*call)(tk_array a);
    float at[2];
} complex_case;

static tk_array square_then_abs(tk_array a) { return tk_abs(tk_multiply(a, a)); }

static const complex_case complex_cases[] = {
    {"log", tk_log, {1.5f, -0.75f}},
    {"exp", tk_exp, {0.25f, 1}},
    {"abs", tk_abs, {-3, 4}},
    {"sqrt", tk_sqrt, {2, 1}},
    {"tanh", tk_tanh, {0.5f, 0.25f}},
    {"sin", tk_sin, {0.75f, -0.5f}},
    {"reciprocal", tk_reciprocal, {1, 2}},
    {"abs of square", square_then_abs, {1, -2}},
};

static tk_status call_case(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    const complex_case *c = self;
    (void)n_args;
    return tk_arrays_push(results, c->call(args[0]));
}

static tk_array complex_of(tk_context *ctx, double re, double im) {
    return tk_from_data(ctx, (float[]){(float)re, (float)im}, TK_SCALAR, TK_COMPLEX64);
}

static void parts_of(tk_array a, double *out_parts) {
    assert_ok(tk_item(tk_real(a), &out_parts[0]));
    assert_ok(tk_item(tk_imag(a), &out_parts[1]));
}

/* The cotangent times the Jacobian's column for a step in direction (re, im). */
static double directional(tk_context *ctx, const complex_case *c, double re, double im,
                          const double *cotangent) {
    double step = 1.0 / 64, above[2], below[2];
    parts_of(c->call(complex_of(ctx, c->at[0] + step * re, c->at[1] + step * im)), above);
    parts_of(c->call(complex_of(ctx, c->at[0] - step * re, c->at[1] - step * im)), below);
    return (cotangent[0] * (above[0] - below[0]) + cotangent[1] * (above[1] - below[1])) /
           (2 * step);
}

/* Complex derivatives by their real 2 by 2 Jacobian. */
static void complex_gradients_by_their_jacobian(void **state) {
    tk_context *ctx = *state;
    for (size_t i = 0; i < sizeof complex_cases / sizeof complex_cases[0]; i++) {
        complex_case c = complex_cases[i];
        tk_array z = complex_of(ctx, c.at[0], c.at[1]);
        bool is_real = tk_array_dtype(c.call(z)) == TK_FLOAT32;
        double cotangent[] = {0.75, is_real ? 0 : -1.25}, parts[2];
        tk_array given = is_real ? tk_full(tk_scalar(ctx, 0.75), TK_SCALAR, TK_FLOAT32)
                                 : complex_of(ctx, cotangent[0], cotangent[1]);
        tk_arrays values = {0}, gradients = {0};
        assert_ok(tk_vjp(ctx, call_case, &c, &z, 1, &given, 1, &values, &gradients));
        parts_of(gradients.items[0], parts);
        double re = directional(ctx, &c, 1, 0, cotangent),
               im = directional(ctx, &c, 0, 1, cotangent);
        if (!is_close(parts[0], re, 2e-3) || !is_close(parts[1], im, 2e-3)) {
            print_error("%s: (%g, %g), expected (%g, %g)\n", c.name, parts[0], parts[1], re, im);
            fail();
        }
        tk_arrays_clear(&values);
        tk_arrays_clear(&gradients);
    }
}

/* ---- forward mode with one operand traced ---- */

typedef tk_array (*two_operands)(tk_array a, tk_array b);

static tk_array update_box(tk_array a, tk_array b) {
    return tk_slice_update(a, b, TK_AXES(1), TK_AXES(3), TK_ALL_AXES, TK_SET);
}
static tk_array add_box(tk_array a, tk_array b) {
    return tk_slice_update(a, b, TK_AXES(1), TK_AXES(3), TK_ALL_AXES, TK_ADD);
}

typedef struct half_traced {
    two_operands call;
    tk_array fixed; /* TK_NO_ARRAY: both are traced */
    bool fixed_first;
} half_traced;

static tk_status call_half(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    const half_traced *h = self;
    (void)n_args;
    if (!h->fixed.node) return tk_arrays_push(results, h->call(args[0], args[1]));
    tk_array result = h->fixed_first ? h->call(h->fixed, args[0]) : h->call(args[0], h->fixed);
    return tk_arrays_push(results, result);
}

static void check_half(tk_context *ctx, two_operands call, tk_array a, tk_array b, bool trace_a) {
    tk_array ones_a = tk_ones_like(a), ones_b = tk_ones_like(b);
    tk_array none_a = tk_zeros_like(a), none_b = tk_zeros_like(b);
    half_traced one = {call, trace_a ? b : a, !trace_a}, both = {call, TK_NO_ARRAY, false};
    tk_array args[] = {a, b}, tangents[] = {trace_a ? ones_a : none_a, trace_a ? none_b : ones_b};
    tk_arrays values = {0}, found = {0}, expected = {0};
    assert_ok(tk_jvp(ctx, call_half, &one, trace_a ? &args[0] : &args[1], 1,
                     trace_a ? &ones_a : &ones_b, &values, &found));
    assert_ok(tk_jvp(ctx, call_half, &both, args, 2, tangents, &values, &expected));
    CHECK(tk_allclose(found.items[0], expected.items[0], 1e-6, 1e-6, false), TK_BOOL, TK_SCALAR, 1);
    tk_arrays_clear(&values);
    tk_arrays_clear(&found);
    tk_arrays_clear(&expected);
}

/* Forward mode with only one operand traced. */
static void forward_mode_through_one_operand(void **state) {
    tk_context *ctx = *state;
    static const two_operands calls[] = {tk_power,   tk_remainder, tk_floor_divide, tk_divide,
                                         tk_maximum, tk_arctan2,   tk_logaddexp};
    tk_array a = F32(ctx, 2, 3.5f, 7, 1.25f), b = F32(ctx, 1.5f, 2, 3, 0.75f);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        check_half(ctx, calls[i], a, b, true);
        check_half(ctx, calls[i], a, b, false);
    }
    tk_array box = F32(ctx, 10, 20);
    check_half(ctx, update_box, a, box, true);
    check_half(ctx, update_box, a, box, false);
    check_half(ctx, add_box, a, box, true);
    check_half(ctx, add_box, a, box, false);
    tk_array matrix = tk_reshape(a, TK_SHAPE(2, 2)), other = tk_reshape(b, TK_SHAPE(2, 2));
    check_half(ctx, tk_matmul, matrix, other, true);
    check_half(ctx, tk_matmul, matrix, other, false);
}

/* ---- batching ---- */

typedef struct mapped {
    tk_array (*call)(tk_array a);
} mapped;

static tk_array second_smallest(tk_array a) {
    return tk_slice(tk_partition(a, 1, 0), TK_AXES(1, 0), TK_AXES(2, 100), TK_ALL_AXES);
}
static tk_array halved(tk_array a) {
    return tk_floor_divide(a, tk_scalar_int(tk_array_context(a), 2));
}
static tk_array ordered(tk_array a) { return tk_take_along_axis(a, tk_argsort(a, 0), 0); }
static tk_array largest(tk_array a) { return tk_sort(tk_topk(a, 1, 1), 1); }
static tk_array running(tk_array a) { return tk_cumsum(a, -1, true, false); }

static tk_status call_mapped(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    return tk_arrays_push(results, ((mapped *)self)->call(args[0]));
}

static tk_array element(tk_array a, int axis, int64_t index) {
    tk_shape shape = tk_array_shape(a);
    tk_axes start = {.count = shape.count}, stop = shape;
    start.items[axis] = index;
    stop.items[axis] = index + 1;
    return tk_squeeze(tk_slice(a, start, stop, TK_ALL_AXES), TK_AXES(axis));
}

static void check_mapped(tk_context *ctx, tk_array x, mapped function, int axis) {
    tk_arrays results = {0};
    tk_array parts[4];
    assert_ok(tk_vmap(ctx, call_mapped, &function, &x, 1, &axis, NULL, &results));
    int64_t length = tk_array_dim(x, axis);
    for (int64_t i = 0; i < length; i++) parts[i] = function.call(element(x, axis, i));
    tk_array expected = tk_stack(parts, (size_t)length, 0);
    assert_int_equal(tk_array_dtype(results.items[0]), tk_array_dtype(expected));
    CHECK(tk_array_equal(results.items[0], expected, false), TK_BOOL, TK_SCALAR, 1);
    tk_arrays_clear(&results);
}

/* Batching of partition, floor_divide, take_along_axis along every axis. */
static void batches_along_every_axis(void **state) {
    tk_context *ctx = *state;
    static const mapped functions[] = {
        {second_smallest}, {halved}, {ordered}, {largest}, {running}};
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_INT32, TK_INT16};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (int d = 0; d < 3; d++)
            for (int axis = 0; axis < 3; axis++)
                check_mapped(ctx, mixed(ctx, dtypes[d], TK_SHAPE(2, 3, 4)), functions[i], axis);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(sort_sends_gradients_home),
        TEST(cross_entropy_rows_have_their_own_weight),
        TEST(weights_of_zero_have_gradients),
        TEST(dead_rows_have_gradient_zero),
        TEST(indices_out_of_range_have_no_gradient),
        TEST(complex_gradients_by_their_jacobian),
        TEST(forward_mode_through_one_operand),
        TEST(batches_along_every_axis),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
