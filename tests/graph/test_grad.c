/* Gradients of every row of the op table: reverse and forward mode against central differences,
 * against each other, and their own derivatives against differences of them.
 *
 * Arrays are vectors of real numbers here (a complex number is two), so that one check serves all
 * dtypes: reverse   every entry of J'c against (f(x + h e) - f(x - h e)) c / 2h forward   J t
 * against (f(x + h t) - f(x - h t)) / 2h adjoint   c J t = J'c t second    the same three for G(x)
 * = J(x)'c, with reverse and forward mode over reverse mode Differences are taken with respect to
 * all operands, and to each alone with the others constant. Samples in float64 allow tight bounds;
 * where another dtype takes part, h and bounds are those of float32. A row that takes
 * arrays and has no sample fails. */
#include "support/arrays.h"
#include "support/samples.h"

#include <math.h>
#include <string.h>

#include "graph/vjp.h"
#include "tiki/transforms.h"

#define MAX_PARTS 512

typedef struct vector {
    int64_t count;
    double items[MAX_PARTS];
} vector;

/* A function of some operands of a sample, the others constant. */
typedef struct problem {
    tk_context *context;
    sample s;
    int index;
    size_t n_wrt, wrt[SAMPLE_INPUTS];
    size_t n_results;              /* results used: all, or the first */
    vector weights;                /* c */
    bool is_gradient;              /* the function is J'c of the op and not the op */
    double step, bound, own_bound; /* of a difference; of what should agree without one */
} problem;

/* ---- arrays as vectors ---- */

static int64_t parts_of(tk_array array) {
    return tk_array_size(array) * (tk_dtype_is_complex(tk_array_dtype(array)) ? 2 : 1);
}

static void append(vector *out, tk_array array) {
    int64_t parts = parts_of(array);
    assert_true(out->count + parts <= MAX_PARTS);
    double *to = out->items + out->count;
    out->count += parts;
    if (tk_dtype_is_complex(tk_array_dtype(array))) {
        float pairs[MAX_PARTS];
        assert_ok(tk_copy_out(array, pairs, (size_t)parts * sizeof *pairs));
        for (int64_t i = 0; i < parts; i++) to[i] = pairs[i];
        return;
    }
    assert_ok(tk_copy_out(tk_astype(array, TK_FLOAT64), to, (size_t)parts * sizeof *to));
}

/* The next part of `from` as an array of the type of `like`. */
static tk_array take(problem *p, const vector *from, int64_t *at, tk_array like) {
    tk_dtype dtype = tk_array_dtype(like);
    int64_t parts = parts_of(like);
    const double *values = from->items + *at;
    *at += parts;
    if (!tk_dtype_is_complex(dtype))
        return tk_astype(tk_from_data(p->context, values, tk_array_shape(like), TK_FLOAT64), dtype);
    float pairs[MAX_PARTS];
    for (int64_t i = 0; i < parts; i++) pairs[i] = (float)values[i];
    return tk_from_data(p->context, pairs, tk_array_shape(like), dtype);
}

static double noise(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 23) - 1;
}

static vector random_vector(int64_t count, uint64_t seed) {
    vector out = {.count = count};
    for (int64_t i = 0; i < count; i++) out.items[i] = noise(&seed);
    return out;
}

static double dot(const vector *a, const vector *b) {
    double sum = 0;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) sum += a->items[i] * b->items[i];
    return sum;
}

/* ---- the function ---- */

static tk_status apply_op(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    problem *p = self;
    tk_array inputs[SAMPLE_INPUTS];
    tk_arrays all = {0};
    memcpy(inputs, p->s.inputs, sizeof inputs);
    for (size_t i = 0; i < n_args; i++) inputs[p->wrt[i]] = args[i];
    tk_status status = sample_apply(p->context, &p->s, inputs, &all);
    for (size_t i = 0; status == TK_OK && i < all.count && i < p->n_results; i++)
        if (tk_dtype_is_inexact(tk_array_dtype(all.items[i])) ||
            tk_array_status(all.items[i]) != TK_OK)
            status = tk_arrays_push(results, all.items[i]);
    tk_arrays_clear(&all);
    return status;
}

/* Cotangents from p->weights, one a result. */
static size_t make_weights(problem *p, const tk_arrays *results, tk_array *out) {
    int64_t at = 0;
    for (size_t i = 0; i < results->count; i++)
        out[i] = take(p, &p->weights, &at, results->items[i]);
    return results->count;
}

/* J'c as arrays. */
static tk_status apply_gradient(void *self, const tk_array *args, size_t n_args,
                                tk_arrays *results) {
    tk_arrays values = {0}, unused = {0};
    problem *p = self;
    tk_array weights[SAMPLE_INPUTS];
    tk_status status = apply_op(self, args, n_args, &values);
    size_t count = status == TK_OK ? make_weights(p, &values, weights) : 0;
    if (status == TK_OK)
        status = tk_vjp(p->context, apply_op, self, args, n_args, weights, count, &unused, results);
    tk_arrays_clear(&values);
    tk_arrays_clear(&unused);
    return status;
}

static tk_function function_of(const problem *p) {
    return p->is_gradient ? apply_gradient : apply_op;
}

static void put_list(vector *out, tk_arrays *list) {
    *out = (vector){0};
    for (size_t i = 0; i < list->count; i++) append(out, list->items[i]);
    tk_arrays_clear(list);
}

static size_t make_args(problem *p, const vector *x, tk_array *args) {
    int64_t at = 0;
    for (size_t i = 0; i < p->n_wrt; i++) args[i] = take(p, x, &at, p->s.inputs[p->wrt[i]]);
    return p->n_wrt;
}

static vector evaluate(problem *p, const vector *x) {
    tk_scope scope = tk_scope_open(p->context);
    tk_array args[SAMPLE_INPUTS];
    tk_arrays results = {0};
    vector out;
    size_t n_args = make_args(p, x, args);
    assert_ok(function_of(p)(p, args, n_args, &results));
    put_list(&out, &results);
    tk_scope_close(scope);
    return out;
}

static vector point_of(problem *p) {
    vector x = {0};
    for (size_t i = 0; i < p->n_wrt; i++) append(&x, p->s.inputs[p->wrt[i]]);
    return x;
}

/* (f(x + h t) - f(x - h t)) / 2h; equal infinities differ by 0. */
static vector difference(problem *p, const vector *x, const vector *t) {
    vector ahead = *x, behind = *x;
    for (int64_t i = 0; i < x->count; i++) {
        ahead.items[i] += p->step * t->items[i];
        behind.items[i] -= p->step * t->items[i];
    }
    vector high = evaluate(p, &ahead), low = evaluate(p, &behind);
    for (int64_t i = 0; i < high.count; i++)
        high.items[i] =
            high.items[i] == low.items[i] ? 0 : (high.items[i] - low.items[i]) / (2 * p->step);
    return high;
}

static vector reverse(problem *p, const vector *x, const vector *c) {
    tk_scope scope = tk_scope_open(p->context);
    tk_array args[SAMPLE_INPUTS], cotangents[SAMPLE_INPUTS];
    tk_arrays plain = {0}, values = {0}, grads = {0};
    int64_t at = 0;
    vector out;
    size_t n_args = make_args(p, x, args);
    assert_ok(function_of(p)(p, args, n_args, &plain));
    for (size_t i = 0; i < plain.count; i++) cotangents[i] = take(p, c, &at, plain.items[i]);
    assert_ok(tk_vjp(p->context, function_of(p), p, args, n_args, cotangents, plain.count, &values,
                     &grads));
    put_list(&out, &grads);
    tk_arrays_clear(&plain);
    tk_arrays_clear(&values);
    tk_scope_close(scope);
    return out;
}

static vector forward(problem *p, const vector *x, const vector *t) {
    tk_scope scope = tk_scope_open(p->context);
    tk_array args[SAMPLE_INPUTS], tangents[SAMPLE_INPUTS];
    tk_arrays values = {0}, results = {0};
    vector out;
    size_t n_args = make_args(p, x, args);
    make_args(p, t, tangents);
    assert_ok(tk_jvp(p->context, function_of(p), p, args, n_args, tangents, &values, &results));
    put_list(&out, &results);
    tk_arrays_clear(&values);
    tk_scope_close(scope);
    return out;
}

/* ---- the checks ---- */

static void expect(const problem *p, const char *what, int64_t part, double got, double expected,
                   double bound) {
    if (fabs(got - expected) <= bound * (1 + fabs(expected))) return;
    fail_msg("%s, sample %d, %s%s, operand %zu of %zu, part %lld: got %.10g, expected %.10g",
             p->s.name, p->index, p->is_gradient ? "second derivative, " : "", what, p->wrt[0],
             p->n_wrt, (long long)part, got, expected);
}

static void check_reverse(problem *p, const vector *x, const vector *c, const vector *grad) {
    for (int64_t i = 0; i < x->count; i++) {
        vector unit = {.count = x->count};
        unit.items[i] = 1;
        vector column = difference(p, x, &unit);
        expect(p, "reverse mode", i, grad->items[i], dot(&column, c), p->bound);
    }
}

static void check_function(problem *p, uint64_t seed) {
    vector x = point_of(p), t = random_vector(x.count, seed);
    vector slope = difference(p, &x, &t);
    vector c = p->is_gradient ? random_vector(slope.count, seed + 1) : p->weights;
    vector grad = reverse(p, &x, &c), tangent = forward(p, &x, &t);
    assert_int_equal(grad.count, x.count);
    assert_int_equal(tangent.count, slope.count);
    for (int64_t i = 0; i < slope.count; i++)
        expect(p, "forward mode", i, tangent.items[i], slope.items[i], p->bound);
    expect(p, "adjoint", 0, dot(&tangent, &c), dot(&grad, &t), p->own_bound);
    if (!p->is_gradient) check_reverse(p, &x, &c, &grad);
}

static bool all_f64(problem *p, const tk_arrays *results) {
    bool wide = true;
    for (size_t i = 0; i < p->n_wrt; i++)
        wide &= tk_array_dtype(p->s.inputs[p->wrt[i]]) == TK_FLOAT64;
    for (size_t i = 0; i < results->count; i++)
        wide &= tk_array_dtype(results->items[i]) == TK_FLOAT64;
    return wide;
}

/* False when there is nothing to differentiate. */
static bool prepare(problem *p) {
    tk_array args[SAMPLE_INPUTS];
    tk_arrays results = {0};
    vector values, x = point_of(p);
    size_t n_args = make_args(p, &x, args);
    assert_ok(apply_op(p, args, n_args, &results));
    bool wide = all_f64(p, &results);
    p->step = wide ? 1e-5 : 0x1p-7;
    p->bound = wide ? 1e-7 : 2e-3;
    p->own_bound = wide ? 1e-12 : 1e-4;
    put_list(&values, &results);
    p->weights = random_vector(values.count, 7);
    return values.count > 0;
}

static void check_wrt(problem *p) {
    p->is_gradient = false;
    if (!prepare(p)) return;
    check_function(p, 3);
    p->is_gradient = true;
    p->bound *= 10;
    p->own_bound *= 10;
    check_function(p, 5);
}

static void check_operands(problem *p) {
    size_t n_inexact = 0, inexact[SAMPLE_INPUTS];
    for (size_t i = 0; i < p->s.n_inputs; i++)
        if (tk_dtype_is_inexact(tk_array_dtype(p->s.inputs[i]))) inexact[n_inexact++] = i;
    if (n_inexact == 0) return;
    p->n_wrt = n_inexact;
    memcpy(p->wrt, inexact, sizeof inexact);
    check_wrt(p);
    for (size_t i = 0; n_inexact > 1 && i < n_inexact; i++) {
        p->n_wrt = 1;
        p->wrt[0] = inexact[i];
        check_wrt(p);
    }
}

static bool has_several_results(int row) {
    return row == TK_OP_attention || row == TK_OP_cross_entropy_fused || row == TK_OP_qr_thin ||
           row == TK_OP_svd_thin || row == TK_OP_eigh_lower || row == TK_OP_slogdet_matrix;
}

/* Functions whose derivatives are none of their values': of bits, or as if nothing were rounded. */
static bool is_beside_its_values(const char *name) {
    static const char *const names[] = {"view", "to_fp8", "from_fp8", "qqmm", "gather_qqmm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

/* Whether results may depend smoothly on operands, so that there is something to check. */
static bool is_differentiable(int row) {
    if (!sample_declared(row)) return false;
    if (row >= TK_OP_COUNT) return !is_beside_its_values(sample_name(row));
    tk_op op = (tk_op)row;
    const tk_op_info *info = tk_op_of(op);
    if (op == TK_OP_dequantize_groups) return true; /* by its scales */
    return info->accept != TK_ACCEPT_INT && info->accept != TK_ACCEPT_BITS &&
           info->accept != TK_ACCEPT_BOOL && info->result != TK_RESULT_BOOL &&
           info->result != TK_RESULT_UINT32 && op != TK_OP_bitcast && op != TK_OP_stop_gradient &&
           op != TK_OP_fp8_encode;
}

static void check_row(int row, tk_dtype dtype) {
    tk_context *context = make_context();
    for (int index = 0; index < sample_count(row); index++) {
        for (size_t n_results = has_several_results(row) ? 1 : 3; n_results <= 3; n_results++) {
            tk_scope scope = tk_scope_open(context);
            problem p = {.context = context, .index = index, .n_results = n_results};
            if (sample_make(context, row, index, dtype, &p.s) && !p.s.is_derived)
                check_operands(&p);
            tk_scope_close(scope);
        }
    }
    tk_context_release(context);
}

static void every_row_has_a_sample(void **state) {
    (void)state;
    for (int row = 0; row < sample_rows(); row++) {
        if (sample_needed(row) && !sample_declared(row))
            fail_msg("%s takes arrays, but its sample column is none", sample_name(row));
        if (sample_declared(row) && sample_count(row) == 0)
            fail_msg("%s has no sample in tests/support", sample_name(row));
    }
}

/* ---- narrow dtypes: the gradients of float64 at the same operands ---- */

static double narrow_bound(tk_dtype dtype) {
    return dtype == TK_FLOAT32 ? 2e-5 : dtype == TK_FLOAT16 ? 2e-2 : 0.15;
}

static void check_types(problem *p, const vector *x) {
    tk_array args[SAMPLE_INPUTS];
    tk_arrays gradients = {0};
    size_t n_args = make_args(p, x, args);
    assert_ok(apply_gradient(p, args, n_args, &gradients));
    for (size_t i = 0; i < n_args; i++)
        assert_int_equal(tk_array_dtype(gradients.items[i]), tk_array_dtype(args[i]));
    tk_arrays_clear(&gradients);
}

static void check_narrow(tk_context *context, int row, int index, tk_dtype dtype) {
    problem p = {.context = context, .index = index, .n_results = 1};
    problem wide = p;
    if (!sample_make(context, row, index, dtype, &p.s) || p.s.is_derived) return;
    assert_true(sample_make(context, row, index, TK_FLOAT64, &wide.s));
    for (size_t i = 0; i < p.s.n_inputs; i++)
        if (tk_array_dtype(p.s.inputs[i]) == dtype) p.wrt[p.n_wrt++] = i;
    memcpy(wide.wrt, p.wrt, sizeof p.wrt);
    wide.n_wrt = p.n_wrt;
    if (!prepare(&p)) return;
    vector x = point_of(&p), c = p.weights;
    check_types(&p, &x);
    vector got = reverse(&p, &x, &c), expected = reverse(&wide, &x, &c);
    for (int64_t i = 0; i < x.count; i++)
        expect(&p, tk_dtype_name(dtype), i, got.items[i], expected.items[i], narrow_bound(dtype));
}

static void check_narrow_row(int row) {
    tk_context *context = make_context();
    for (int index = 0; row != TK_OP_astype && index < sample_count(row); index++) {
        tk_scope scope = tk_scope_open(context);
        for (tk_dtype dtype = TK_FLOAT16; dtype <= TK_FLOAT32; dtype++)
            check_narrow(context, row, index, dtype);
        tk_scope_close(scope);
    }
    tk_context_release(context);
}

/* One test a row, so that a wrong one hides no other. */
static void row_is_right(void **state) {
    int row = *(const int *)*state;
    check_row(row, TK_FLOAT64);
    check_row(row, TK_COMPLEX64);
    check_narrow_row(row);
}

#define MOST_ROWS 512

int main(void) {
    static struct CMUnitTest tests[MOST_ROWS];
    static int rows[MOST_ROWS];
    size_t count = 0;
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(every_row_has_a_sample);
    for (int row = 0; row < sample_rows() && count < MOST_ROWS; row++) {
        if (!is_differentiable(row)) continue;
        rows[row] = row;
        tests[count++] = (struct CMUnitTest){
            .name = sample_name(row), .test_func = row_is_right, .initial_state = &rows[row]};
    }
    return count < MOST_ROWS ? _cmocka_run_group_tests("grad", tests, count, NULL, NULL) : 1;
}
