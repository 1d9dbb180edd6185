/* Every row of the op table on the emulator beside the processor: values and gradients of its
 * samples, as they are and with infinities, NaN, zeros of both signs, subnormal and huge numbers in
 * their place. The emulator gives the processor's numbers, or says when it is asked that it has no
 * kernel. What has one for its values has its gradient there too, but for the samples listed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/emulator_fixture.h"
#include "support/samples.h"
#include "support/sanitizer.h"
#include "tiki/transforms.h"

/* Gradients that sort, or add where slices overlap. */
static const char *const without_gradient[] = {"gather 2", "scatter 8", "scatter_along 4",
                                               "scatter_nd 2"};

/* Several factors meet in one sum or product: whether that overflows depends on their order. */
static const char *const in_any_order[] = {"reduce_prod", "prod", "gated_delta_update", "einsum"};

/* Which of two equal zeros comes out is not fixed. */
static const char *const of_either_zero[] = {
    "maximum",    "minimum",       "reduce_max", "reduce_min", "scan_max",  "scan_min",
    "max",        "min",           "cummax",     "cummin",     "slice_set", "scatter",
    "scatter_nd", "scatter_along", "clip",       "relu"};

#define CONTAINS(list, name) contains(sizeof(list) / sizeof *(list), list, name)

static bool contains(size_t count, const char *const *list, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i], name)) return true;
    return false;
}

static tk_array there(tk_array array) { return array.node ? tk_to_stream(array, emulator) : array; }

/* ---- a sample, with special values in it ---- */

typedef enum spot { NOWHERE, AT_ONE, IN_A_ROW, EVERYWHERE } spot;

typedef struct probe {
    sample s;
    const char *row;
    char name[120];
    spot where;
    double value;                      /* there */
    double within;                     /* how far results may lie apart, beside their own size */
    tk_array inputs[2][SAMPLE_INPUTS]; /* here and there */
    size_t n_args;
    int place[SAMPLE_INPUTS]; /* of the float operands */
    int side;                 /* that is applied */
    bool is_exact;            /* the sign of a zero counts */
} probe;

static tk_array planted(tk_array array, spot where, double value) {
    int64_t size = array.node ? tk_array_size(array) : 0;
    tk_dtype dtype = array.node ? tk_array_dtype(array) : TK_BOOL;
    if (where == NOWHERE || !tk_dtype_is_float(dtype) || size == 0) return array;
    double *values = calloc((size_t)size, sizeof *values);
    int rank = tk_array_rank(array);
    int64_t row = rank ? tk_array_dim(array, rank - 1) : 1;
    int64_t first = where == AT_ONE ? size / 2 : where == IN_A_ROW ? size - row : 0;
    int64_t end = where == AT_ONE ? first + 1 : size;
    assert_ok(tk_copy_out(tk_astype(array, TK_FLOAT64), values, (size_t)size * sizeof *values));
    for (int64_t i = first; i < end; i++) values[i] = value;
    tk_array made = tk_from_data(ctx, values, tk_array_shape(array), TK_FLOAT64);
    free(values);
    return tk_astype(made, dtype);
}

static bool make_probe(int row, int index, tk_dtype dtype, spot where, double value, probe *p) {
    memset(p, 0, sizeof *p);
    if (!sample_make(ctx, row, index, dtype, &p->s) || (p->s.is_derived && where)) return false;
    p->row = sample_name(row);
    p->where = where;
    p->value = value;
    bool sums = sample_tolerance(row) == TK_TOL_SUM;
    p->is_exact = sample_tolerance(row) == TK_TOL_EXACT && !CONTAINS(of_either_zero, p->row);
    double step = dtype == TK_FLOAT16 ? 4e-3 : dtype == TK_BFLOAT16 ? 3e-2 : 2e-5;
    p->within = step * (sums && where && isfinite(value) ? 1 + fabs(value) : 1);
    snprintf(p->name, sizeof p->name, "%s %d", p->row, index);
    for (size_t i = 0; i < p->s.n_inputs; i++) {
        tk_array input = planted(p->s.inputs[i], where, value);
        p->inputs[0][i] = input;
        p->inputs[1][i] = there(input);
        if (input.node && tk_dtype_is_float(tk_array_dtype(input))) p->place[p->n_args++] = (int)i;
    }
    return true;
}

static tk_status apply(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    const probe *p = self;
    tk_array inputs[SAMPLE_INPUTS];
    memcpy(inputs, p->inputs[p->side], sizeof inputs);
    for (size_t i = 0; i < n_args; i++) inputs[p->place[i]] = args[i];
    return sample_apply(ctx, &p->s, inputs, results);
}

/* ---- comparing ---- */

static double *doubles_of(tk_array array) {
    size_t count = (size_t)tk_array_size(array);
    double *values = calloc(count + 1, sizeof *values);
    tk_array here = tk_astype(tk_to_stream(array, TK_DEFAULT_STREAM), TK_FLOAT64);
    assert_ok(tk_copy_out(here, values, count * sizeof *values));
    return values;
}

static bool is_near(const probe *p, double got, double expected) {
    if (isnan(expected)) return isnan(got);
    if (got == 0 && expected == 0 && p->is_exact) return signbit(got) == signbit(expected);
    return got == expected || fabs(got - expected) <= p->within * (1 + fabs(expected));
}

static void compare(const probe *p, const char *what, tk_array got, tk_array expected) {
    tk_status status = tk_eval(expected);
    if (status != TK_OK && tk_eval(got) == status) return;
    if (tk_eval(got) != TK_OK)
        fail_msg("%s of %s (%d %g): %s", what, p->name, p->where, p->value, tk_error_message());
    assert_int_equal(tk_array_dtype(got), tk_array_dtype(expected));
    assert_int_equal(tk_array_size(got), tk_array_size(expected));
    double *a = doubles_of(got), *b = doubles_of(expected);
    for (int64_t i = 0; i < tk_array_size(expected); i++)
        if (!is_near(p, a[i], b[i]))
            fail_msg("%s of %s (%d %g): element %lld is %.9g, expected %.9g", what, p->name,
                     p->where, p->value, (long long)i, a[i], b[i]);
    free(a);
    free(b);
}

static void clear(tk_arrays *lists, int count) {
    for (int i = 0; i < count; i++) tk_arrays_clear(&lists[i]);
}

static tk_status gradients_on(probe *p, int side, const tk_arrays *values, tk_arrays *out) {
    tk_array args[SAMPLE_INPUTS], ones[16];
    tk_arrays unused = {0};
    assert_true(values->count <= 16);
    for (size_t i = 0; i < p->n_args; i++) args[i] = p->inputs[side][p->place[i]];
    for (size_t i = 0; i < values->count; i++) {
        tk_array value = values->items[i];
        ones[i] = tk_ones(ctx, tk_array_shape(value), tk_array_dtype(value));
        if (side) ones[i] = there(ones[i]);
    }
    p->side = side;
    tk_status status = tk_vjp(ctx, apply, p, args, p->n_args, ones, values->count, &unused, out);
    tk_arrays_clear(&unused);
    return status;
}

/* What the processor gives, how much of it the emulator has, and gradients that were compared. */
static int n_probes, n_values, n_gradients;

static void check_gradients(probe *p, const tk_arrays *values) {
    tk_arrays grads[2] = {{0}, {0}};
    if (p->n_args && gradients_on(p, 0, values, &grads[0]) == TK_OK) {
        tk_status status = gradients_on(p, 1, values, &grads[1]);
        bool none = CONTAINS(without_gradient, p->name);
        if (status != (none ? TK_UNSUPPORTED : TK_OK))
            fail_msg("gradient of %s: %s (%s)", p->name, tk_status_name(status),
                     status == TK_OK ? "it is in the list of those without" : tk_error_message());
        p->within *= 8;
        p->is_exact = false;
        n_gradients += !none;
        for (size_t i = 0; i < grads[1].count; i++)
            compare(p, "gradient", grads[1].items[i], grads[0].items[i]);
    }
    clear(grads, 2);
}

/* True when the emulator has it. */
static bool values_on(probe *p, int side, tk_arrays *out) {
    p->side = side;
    tk_status status = sample_apply(ctx, &p->s, p->inputs[side], out);
    for (size_t i = 0; status == TK_OK && i < out->count; i++)
        status = tk_array_status(out->items[i]);
    if (status != TK_OK && status != TK_UNSUPPORTED)
        fail_msg("%s: %s", p->name, tk_error_message());
    return status == TK_OK;
}

static void check(int row, int index, tk_dtype dtype, spot where, double value) {
    probe p;
    tk_arrays values[2] = {{0}, {0}};
    tk_scope inner = tk_scope_open(ctx);
    bool given = make_probe(row, index, dtype, where, value, &p) && values_on(&p, 0, &values[0]);
    n_probes += given;
    if (given && values_on(&p, 1, &values[1])) {
        n_values++;
        for (size_t i = 0; i < values[0].count; i++)
            compare(&p, "value", values[1].items[i], values[0].items[i]);
        check_gradients(&p, &values[0]);
    }
    clear(values, 2);
    tk_scope_close(inner);
}

/* ---- the rows ---- */

static void need_most(void) {
    if (n_values < n_probes / 2 || n_gradients < n_values / 4)
        fail_msg("of %d samples %d have values on the emulator, %d gradients", n_probes, n_values,
                 n_gradients);
    n_probes = n_values = n_gradients = 0;
}

/* Sanitizers look for other faults than wrong numbers: some of the values are enough for them. */
enum { IS_SANITIZED = SUPPORT_ASAN || SUPPORT_TSAN };

static void samples_as_they_are(void **state) {
    (void)state;
    static const tk_dtype dtypes[] = {TK_FLOAT32, TK_FLOAT16, TK_BFLOAT16, TK_FLOAT64,
                                      TK_INT32,   TK_UINT8,   TK_BOOL};
    for (int row = 0; row < sample_rows(); row++)
        for (int index = 0; index < sample_count(row); index++)
            for (size_t d = 0; d < (IS_SANITIZED ? 1 : sizeof dtypes / sizeof *dtypes); d++)
                check(row, index, dtypes[d], NOWHERE, 0);
    need_most();
}

static void check_special(int row, int index, double value) {
    for (int where = AT_ONE; where <= (IS_SANITIZED ? AT_ONE : EVERYWHERE); where++)
        check(row, index, TK_FLOAT32, (spot)where, value);
    if (IS_SANITIZED) return;
    check(row, index, TK_FLOAT16, AT_ONE, value);
    check(row, index, TK_FLOAT64, IN_A_ROW, value);
}

static void samples_with_special_values(void **state) {
    (void)state;
    static const double specials[] = {INFINITY, -INFINITY, NAN, -0.0, 1e-40, 0x1p100, -0x1p100};
    for (int row = 0; row < sample_rows(); row++)
        for (size_t v = 0; v < (IS_SANITIZED ? 1 : sizeof specials / sizeof *specials); v++) {
            double value = specials[v];
            bool is_huge = isfinite(value) && fabs(value) > 1;
            if (is_huge && CONTAINS(in_any_order, sample_name(row))) continue;
            for (int index = 0; index < sample_count(row); index++)
                check_special(row, index, value);
        }
    need_most();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples_as_they_are, open_emulator, close_context),
        cmocka_unit_test_setup_teardown(samples_with_special_values, open_emulator, close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
