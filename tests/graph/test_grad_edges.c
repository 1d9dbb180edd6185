/* Gradients where a function has a corner, a tie, a zero factor or an infinity: the values that
 * Tiki promises there. And what the walks promise: depth, linear cost, dtypes, refusals. */
#define _POSIX_C_SOURCE 200809L
#include "support/arrays.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "tiki/transforms.h"

#define INF INFINITY

typedef struct edge {
    const char *name;
    tk_array (*function)(const tk_array *args);
    size_t n_args, length;
    float args[2][4];
    float expected[2][4]; /* gradients of the sum of the results */
} edge;

static tk_array f_abs(const tk_array *x) { return tk_abs(x[0]); }
static tk_array f_maximum(const tk_array *x) { return tk_maximum(x[0], x[1]); }
static tk_array f_minimum(const tk_array *x) { return tk_minimum(x[0], x[1]); }
static tk_array f_power(const tk_array *x) { return tk_power(x[0], x[1]); }
static tk_array f_arctan2(const tk_array *x) { return tk_arctan2(x[0], x[1]); }
static tk_array f_logaddexp(const tk_array *x) { return tk_logaddexp(x[0], x[1]); }
static tk_array f_max(const tk_array *x) { return tk_max(x[0], TK_ALL_AXES, false); }
static tk_array f_min(const tk_array *x) { return tk_min(x[0], TK_ALL_AXES, false); }
static tk_array f_prod(const tk_array *x) { return tk_prod(x[0], TK_ALL_AXES, false); }
static tk_array f_logsumexp(const tk_array *x) { return tk_logsumexp(x[0], TK_ALL_AXES, false); }
static tk_array f_cumprod(const tk_array *x) { return tk_cumprod(x[0], 0, false, true); }
static tk_array f_cummax(const tk_array *x) { return tk_cummax(x[0], 0, false, true); }
static tk_array f_cummin_back(const tk_array *x) { return tk_cummin(x[0], 0, true, true); }
static tk_array f_logcumsumexp(const tk_array *x) { return tk_logcumsumexp(x[0], 0, false, true); }
static tk_array f_stop(const tk_array *x) { return tk_multiply(x[0], tk_stop_gradient(x[0])); }
static tk_array f_masked_log(const tk_array *x) {
    tk_array zero = tk_zeros_like(x[0]);
    return tk_where(tk_greater(x[0], zero), tk_log(x[0]), zero);
}

static tk_array ramp(tk_array like) {
    return tk_arange(tk_array_context(like), 1, (double)tk_array_size(like) + 1, 1,
                     tk_array_dtype(like));
}
static tk_array f_sort(const tk_array *x) { return tk_multiply(tk_sort(x[0], 0), ramp(x[0])); }
static tk_array f_partition(const tk_array *x) {
    return tk_multiply(tk_partition(x[0], 1, 0), ramp(x[0]));
}

/* Both updates of element 1 are written; the last one stays. */
static tk_array scatter(const tk_array *x, tk_mode mode) {
    static const int32_t rows[] = {1, 0, 1};
    tk_array indices = tk_from_data(tk_array_context(x[0]), rows, TK_SHAPE(3), TK_INT32);
    return tk_scatter_nd(x[0], tk_reshape(x[1], TK_SHAPE(3, 1)), &indices, 1, TK_AXES(0), mode);
}
static tk_array f_scatter_set(const tk_array *x) { return scatter(x, TK_SET); }
static tk_array f_scatter_max(const tk_array *x) { return scatter(x, TK_MAX); }
static tk_array f_scatter_prod(const tk_array *x) { return scatter(x, TK_PROD); }

static tk_array f_slice_max(const tk_array *x) {
    return tk_slice_update(x[0], x[1], TK_AXES(0), TK_AXES(3), TK_AXES(1), TK_MAX);
}

static const edge edges[] = {
    {"abs", f_abs, 1, 4, {{0.0f, -0.0f, INF, NAN}}, {{0, 0, 1, NAN}}},
    {"maximum, ties", f_maximum, 2, 2, {{1, 2}, {1, 3}}, {{0, 0}, {1, 1}}},
    {"maximum, NaN", f_maximum, 2, 2, {{NAN, 2}, {1, NAN}}, {{0, 0}, {0, 0}}},
    {"minimum, ties", f_minimum, 2, 2, {{1, 2}, {1, 3}}, {{0, 1}, {1, 0}}},
    {"power", f_power, 2, 4, {{0, 0, 0, -1}, {0, 1, 2, 2}}, {{0, 1, 0, -2}, {0, 0, 0, NAN}}},
    {"arctan2", f_arctan2, 2, 2, {{0, 1}, {0, 0}}, {{0, 0}, {0, -1}}},
    {"logaddexp, -inf", f_logaddexp, 2, 2, {{-INF, -INF}, {-INF, 1}}, {{0, 0}, {0, 1}}},
    {"logaddexp, +inf", f_logaddexp, 2, 2, {{INF, INF}, {INF, 1}}, {{0.5, 1}, {0.5, 0}}},
    {"logaddexp, ties", f_logaddexp, 2, 2, {{0, 2}, {0, 2}}, {{0.5, 0.5}, {0.5, 0.5}}},
    {"max, ties", f_max, 1, 3, {{1, 3, 3}}, {{0, 0.5, 0.5}}},
    {"max, NaN", f_max, 1, 3, {{1, NAN, 3}}, {{0, 1, 0}}},
    {"min, ties", f_min, 1, 3, {{1, 1, 3}}, {{0.5, 0.5, 0}}},
    {"prod, one zero", f_prod, 1, 3, {{0, 2, 3}}, {{6, 0, 0}}},
    {"prod, two zeros", f_prod, 1, 3, {{0, 2, 0}}, {{0, 0, 0}}},
    {"logsumexp, dead", f_logsumexp, 1, 2, {{-INF, -INF}}, {{0, 0}}},
    {"logsumexp, alive", f_logsumexp, 1, 2, {{-INF, 3}}, {{0, 1}}},
    {"cumprod, zero", f_cumprod, 1, 3, {{0, 2, 3}}, {{9, 0, 0}}},
    {"cummax, ties", f_cummax, 1, 4, {{1, 1, 3, 2}}, {{2, 0, 2, 0}}},
    {"cummax, NaN", f_cummax, 1, 4, {{1, NAN, 3, NAN}}, {{1, 3, 0, 0}}},
    {"cummin, back", f_cummin_back, 1, 4, {{1, 3, 2, 2}}, {{1, 0, 0, 3}}},
    {"logcumsumexp", f_logcumsumexp, 1, 3, {{-INF, -INF, 2}}, {{0, 0, 1}}},
    {"stop_gradient", f_stop, 1, 2, {{2, 3}}, {{2, 3}}},
    {"where", f_masked_log, 1, 2, {{-1, 2}}, {{0, 0.5}}},
    {"sort", f_sort, 1, 3, {{3, 1, 2}}, {{3, 1, 2}}},
    {"sort, ties", f_sort, 1, 3, {{2, 1, 2}}, {{2, 1, 3}}},
    {"partition", f_partition, 1, 2, {{3, 1}}, {{2, 1}}},
    {"scatter set", f_scatter_set, 2, 3, {{1, 2, 3}, {4, 5, 6}}, {{0, 0, 1}, {0, 1, 1}}},
    {"scatter max",
     f_scatter_max,
     2,
     3,
     {{1, 4, 3}, {4, 0, 4}},
     {{1, 1 / 3.0f, 1}, {1 / 3.0f, 0, 1 / 3.0f}}},
    {"scatter prod", f_scatter_prod, 2, 3, {{1, 2, 3}, {0, 5, 7}}, {{5, 0, 1}, {14, 1, 0}}},
    {"slice max", f_slice_max, 2, 3, {{1, 2, 3}, {1, 1, 4}}, {{0.5, 1, 0}, {0.5, 0, 1}}},
};

static tk_status call_edge(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)n_args;
    return tk_arrays_push(results, ((const edge *)self)->function(args));
}

static bool same(float a, float b) {
    return (isnan(a) && isnan(b)) || fabsf(a - b) <= 1e-6f * (1 + fabsf(b));
}

static void expect_gradient(const edge *e, size_t operand, tk_array gradient) {
    float got[4];
    assert_ok(tk_copy_out(gradient, got, e->length * sizeof *got));
    for (size_t i = 0; i < e->length; i++)
        if (!same(got[i], e->expected[operand][i]))
            fail_msg("%s, operand %zu, element %zu: got %g, expected %g", e->name, operand, i,
                     (double)got[i], (double)e->expected[operand][i]);
}

static void edge_is_right(void **state) {
    const edge *e = *state;
    tk_context *context = make_context();
    tk_scope scope = tk_scope_open(context);
    tk_array args[2];
    tk_arrays plain = {0}, values = {0}, gradients = {0};
    for (size_t i = 0; i < e->n_args; i++)
        args[i] = tk_from_data(context, e->args[i], TK_SHAPE((int64_t)e->length), TK_FLOAT32);
    assert_ok(call_edge(*state, args, e->n_args, &plain));
    tk_array ones = tk_ones_like(plain.items[0]);
    assert_ok(tk_vjp(context, call_edge, *state, args, e->n_args, &ones, 1, &values, &gradients));
    for (size_t i = 0; i < e->n_args; i++) expect_gradient(e, i, gradients.items[i]);
    tk_arrays_clear(&plain);
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    tk_scope_close(scope);
    tk_context_release(context);
}

/* ---- attention: a row that sees no key ---- */

static tk_status masked_attention(void *self, const tk_array *args, size_t n_args,
                                  tk_arrays *results) {
    static const uint8_t mask[] = {0, 0, 1, 0};
    (void)self;
    (void)n_args;
    tk_array seen = tk_from_data(tk_array_context(args[0]), mask, TK_SHAPE(1, 1, 2, 2), TK_BOOL);
    return tk_arrays_push(
        results, tk_scaled_dot_product_attention(args[0], args[1], args[2], 1, seen, false));
}

static void blind_row_has_no_gradient(void **state) {
    (void)state;
    static const float q[] = {1, 2, 3, 4}, k[] = {1, 0, 0, 1}, v[] = {5, 6, 7, 8};
    tk_context *context = make_context();
    tk_scope scope = tk_scope_open(context);
    const tk_shape shape = TK_SHAPE(1, 1, 2, 2);
    tk_array args[] = {tk_from_data(context, q, shape, TK_FLOAT32),
                       tk_from_data(context, k, shape, TK_FLOAT32),
                       tk_from_data(context, v, shape, TK_FLOAT32)};
    tk_array ones = tk_ones(context, shape, TK_FLOAT32);
    tk_arrays values = {0}, gradients = {0};
    assert_ok(tk_vjp(context, masked_attention, NULL, args, 3, &ones, 1, &values, &gradients));
    const float expected[4][4] = {{0, 0, 5, 6}, {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 1, 0, 0}};
    for (size_t i = 0; i < 4; i++) {
        float got[4];
        assert_ok(tk_copy_out(i ? gradients.items[i - 1] : values.items[0], got, sizeof got));
        for (int j = 0; j < 4; j++) assert_true(same(got[j], expected[i][j]));
    }
    tk_arrays_clear(&values);
    tk_arrays_clear(&gradients);
    tk_scope_close(scope);
    tk_context_release(context);
}

/* ---- arrays without elements ---- */

static tk_array f_sum(const tk_array *x) { return tk_sum(x[0], TK_AXES(1), false); }
static tk_array f_softmax(const tk_array *x) { return tk_softmax(x[0], TK_AXES(-1)); }
static tk_array f_scan(const tk_array *x) { return tk_cumprod(x[0], 1, true, false); }
static tk_array f_running_max(const tk_array *x) { return tk_cummax(x[0], 1, false, true); }
static tk_array f_running_lse(const tk_array *x) { return tk_logcumsumexp(x[0], 1, false, false); }
static tk_array f_sorted(const tk_array *x) { return tk_sort(x[0], 1); }
static tk_array f_product(const tk_array *x) {
    return tk_matmul(x[0], tk_transpose(x[0], TK_ALL_AXES));
}
static tk_array f_rows(const tk_array *x) {
    return tk_take(x[0], tk_zeros(tk_array_context(x[0]), TK_SHAPE(0), TK_INT32), 0);
}
static tk_array f_norm(const tk_array *x) { return tk_rms_norm(x[0], TK_NO_ARRAY, 1e-5); }
static tk_array f_all_prod(const tk_array *x) { return tk_prod(x[0], TK_ALL_AXES, false); }
static tk_array f_all_lse(const tk_array *x) { return tk_logsumexp(x[0], TK_ALL_AXES, false); }

static tk_status call_plain(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    tk_array (*function)(const tk_array *args);
    memcpy(&function, self, sizeof function);
    (void)n_args;
    return tk_arrays_push(results, function(args));
}

static void differentiate_empty(tk_context *context, void *function, tk_shape shape) {
    tk_scope scope = tk_scope_open(context);
    tk_arrays plain = {0}, values = {0}, out = {0};
    tk_array x = tk_ones(context, shape, TK_FLOAT32);
    assert_ok(call_plain(function, &x, 1, &plain));
    tk_array ones = tk_ones_like(plain.items[0]);
    assert_ok(tk_vjp(context, call_plain, function, &x, 1, &ones, 1, &values, &out));
    assert_ok(tk_jvp(context, call_plain, function, &x, 1, &x, &values, &out));
    assert_ok(tk_eval_all(out.items, out.count));
    assert_int_equal(tk_array_size(out.items[0]), 0);
    assert_int_equal(tk_array_size(out.items[1]), tk_array_size(ones));
    tk_arrays_clear(&plain);
    tk_arrays_clear(&values);
    tk_arrays_clear(&out);
    tk_scope_close(scope);
}

static void empty_arrays_have_gradients(void **state) {
    (void)state;
    tk_array (*functions[])(const tk_array *) = {
        f_sum,     f_softmax, f_scan, f_running_max, f_running_lse, f_sorted,
        f_product, f_rows,    f_norm, f_all_prod,    f_all_lse};
    tk_context *context = make_context();
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        differentiate_empty(context, &functions[i], TK_SHAPE(2, 0));
        differentiate_empty(context, &functions[i], TK_SHAPE(0, 3));
    }
    tk_context_release(context);
}

/* ---- the walks ---- */

typedef struct chain {
    int length;
    tk_array (*link)(tk_array x);
} chain;

static tk_array scan_link(tk_array x) { return tk_cumprod(x, 0, false, true); }

static tk_status call_chain(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    const chain *c = self;
    (void)n_args;
    tk_array x = args[0];
    for (int i = 0; i < c->length; i++) x = c->link(x);
    return tk_arrays_push(results, x);
}

static double derivative_of_chain(const chain *c, double at, bool forward) {
    tk_context *context = make_context();
    tk_scope scope = tk_scope_open(context);
    tk_arrays values = {0}, out = {0};
    tk_array x = tk_full(tk_scalar(context, at), TK_SHAPE(1), TK_FLOAT64);
    tk_array one = tk_ones(context, TK_SHAPE(1), TK_FLOAT64);
    tk_status status =
        forward ? tk_jvp(context, call_chain, (void *)(uintptr_t)c, &x, 1, &one, &values, &out)
                : tk_vjp(context, call_chain, (void *)(uintptr_t)c, &x, 1, &one, 1, &values, &out);
    assert_ok(status);
    double derivative;
    assert_ok(tk_item(out.items[0], &derivative));
    tk_arrays_clear(&values);
    tk_arrays_clear(&out);
    tk_scope_close(scope);
    tk_context_release(context);
    return derivative;
}

static void deep_graphs_need_no_stack(void **state) {
    (void)state;
    const chain c = {100000, tk_sin};
    double expected = 1, x = 0.5;
    for (int i = 0; i < c.length; i++) {
        expected *= cos(x);
        x = sin(x);
    }
    for (int forward = 0; forward < 2; forward++) {
        double got = derivative_of_chain(&c, 0.5, forward);
        assert_true(fabs(got - expected) <= 1e-9 * expected);
    }
}

/* Of this process, so that what else the machine does counts little. */
static double seconds_of_chain(int length) {
    const chain c = {length, scan_link};
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    assert_true(derivative_of_chain(&c, 0.5, true) == 1);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}

/* Each link is transposed on its own: a walk to the start for each would be 32 times slower here.
 */
static void transposed_rules_cost_the_same_each(void **state) {
    (void)state;
    double few = seconds_of_chain(500), many = seconds_of_chain(16000);
    assert_true(many <= 32 * 8 * few + 1);
}

/* ---- dtypes ---- */

static tk_status half_function(void *self, const tk_array *args, size_t n_args,
                               tk_arrays *results) {
    (void)self;
    (void)n_args;
    tk_array soft = tk_logsumexp(args[0], TK_AXES(0), false);
    tk_array top = tk_max(args[0], TK_AXES(0), false);
    tk_array cast = tk_sum(tk_astype(tk_astype(args[0], TK_INT32), TK_FLOAT16), TK_AXES(0), false);
    return tk_arrays_push(results, tk_add(tk_add(soft, top), cast));
}

static void gradients_have_the_operand_dtype(void **state) {
    (void)state;
    tk_context *context = make_context();
    tk_scope scope = tk_scope_open(context);
    tk_arrays gradients = {0};
    tk_array x = tk_full(tk_scalar(context, 2), TK_SHAPE(4), TK_FLOAT16);
    assert_ok(tk_grad(context, half_function, NULL, &x, 1, NULL, 0, &gradients));
    assert_int_equal(tk_array_dtype(gradients.items[0]), TK_FLOAT16);
    float got[4];
    assert_ok(tk_copy_out(tk_astype(gradients.items[0], TK_FLOAT32), got, sizeof got));
    for (int i = 0; i < 4; i++) assert_true(got[i] == 0.5f);
    tk_arrays_clear(&gradients);
    tk_scope_close(scope);
    tk_context_release(context);
}

/* ---- failure ---- */

/* Rules of every kind: linear, elementwise, transposed, decomposed. */
static tk_status varied(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    (void)self;
    (void)n_args;
    tk_array x = tk_cumprod(tk_exp(args[0]), 0, false, true);
    tk_array y = tk_rms_norm(x, TK_NO_ARRAY, 1e-5);
    return tk_arrays_push(results, tk_sum(tk_multiply(y, x), TK_ALL_AXES, false));
}

static tk_status differentiate(tk_context *context, tk_array x, bool forward) {
    tk_scope scope = tk_scope_open(context);
    tk_arrays values = {0}, out = {0};
    tk_status status = forward ? tk_jvp(context, varied, NULL, &x, 1, &x, &values, &out)
                               : tk_grad(context, varied, NULL, &x, 1, NULL, 0, &out);
    tk_arrays_clear(&values);
    tk_arrays_clear(&out);
    tk_scope_close(scope);
    return status;
}

/* Every allocation fails once; nothing leaks (the sanitizers look) and the next try works. */
static void no_memory_is_an_error(void **state) {
    (void)state;
    for (int forward = 0; forward < 2; forward++) {
        tk_status status = TK_OUT_OF_MEMORY;
        int failures = 0;
        for (int64_t n = 1; status != TK_OK; n++) {
            tk_context *context = make_context();
            tk_array x = tk_ones(context, TK_SHAPE(5), TK_FLOAT64);
            assert_ok(tk_eval(x));
            tk_alloc_fail_after(n);
            status = differentiate(context, x, forward);
            tk_alloc_fail_after(0);
            if (status != TK_OK) assert_int_equal(status, TK_OUT_OF_MEMORY);
            failures += status != TK_OK;
            assert_ok(differentiate(context, x, forward));
            tk_release(x);
            tk_context_release(context);
        }
        assert_true(failures > 5);
    }
}

int main(void) {
    enum { N_EDGES = sizeof edges / sizeof edges[0] };
    static struct CMUnitTest tests[N_EDGES + 8];
    size_t count = 0;
    for (size_t i = 0; i < N_EDGES; i++)
        tests[count++] = (struct CMUnitTest){.name = edges[i].name,
                                             .test_func = edge_is_right,
                                             .initial_state = (void *)(uintptr_t)&edges[i]};
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(blind_row_has_no_gradient);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(empty_arrays_have_gradients);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(deep_graphs_need_no_stack);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(transposed_rules_cost_the_same_each);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(gradients_have_the_operand_dtype);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(no_memory_is_an_error);
    return _cmocka_run_group_tests("grad edges", tests, count, NULL, NULL);
}
