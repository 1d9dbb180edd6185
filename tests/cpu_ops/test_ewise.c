/* Every elementwise op on every dtype that its row accepts, against plain formulas in long double,
 * 128-bit integers and long double complex numbers: all layouts, in place, the portable reference
 * and the fast kernels. */
#include "cpu_ops/body_check.h"

/* ---- what is right ---- */

static real sign_of(real x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static real sigmoid(real x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static real larger(real x, real y) { return isnan(x) ? x : isnan(y) ? y : x > y ? x : y; }
static real smaller(real x, real y) { return isnan(x) ? x : isnan(y) ? y : x < y ? x : y; }

static real remainder_of(real x, real y) {
    real rest = fmodl(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
static real floor_divide(real x, real y) {
    if (isnan(x) || isnan(y)) return NAN;
    if (y == 0 || isinf(x) || isinf(y))
        return isinf(y) && !isinf(x) && x != 0 && (x < 0) != (y < 0) ? -1 : floorl(x / y);
    return rintl((x - remainder_of(x, y)) / y);
}

static real logaddexp(real x, real y) {
    if (x == y) return x + logl(2);
    return larger(x, y) + log1pl(expl(-fabsl(x - y)));
}

/* By bisection on erf, or on erfc where that is the better conditioned. */
static real erfinv(real x) {
    real magnitude = fabsl(x);
    if (!(magnitude < 1)) return magnitude == 1 ? copysignl(INFINITY, x) : NAN;
    if (magnitude < 1e-12L) return x * 0.88622692545275801365L;
    real low = 0, high = 7;
    for (int i = 0; i < 80; i++) {
        real middle = (low + high) / 2;
        bool above = magnitude < 0.5L ? erfl(middle) > magnitude : erfcl(middle) < 1 - magnitude;
        *(above ? &high : &low) = middle;
    }
    return copysignl(low, x);
}

static real float_unary(tk_op op, real x) {
    switch (op) {
    case TK_OP_abs:
        return fabsl(x);
    case TK_OP_negative:
        return -x;
    case TK_OP_sign:
        return sign_of(x);
    case TK_OP_ceil:
        return ceill(x);
    case TK_OP_floor:
        return floorl(x);
    case TK_OP_rint:
        return rintl(x);
    case TK_OP_trunc:
        return truncl(x);
    case TK_OP_sqrt:
        return sqrtl(x);
    case TK_OP_rsqrt:
        return 1 / sqrtl(x);
    case TK_OP_exp:
        return expl(x);
    case TK_OP_expm1:
        return expm1l(x);
    case TK_OP_log:
        return logl(x);
    case TK_OP_log1p:
        return log1pl(x);
    case TK_OP_log2:
        return log2l(x);
    case TK_OP_log10:
        return log10l(x);
    case TK_OP_sin:
        return sinl(x);
    case TK_OP_cos:
        return cosl(x);
    case TK_OP_tan:
        return tanl(x);
    case TK_OP_arcsin:
        return asinl(x);
    case TK_OP_arccos:
        return acosl(x);
    case TK_OP_arctan:
        return atanl(x);
    case TK_OP_sinh:
        return sinhl(x);
    case TK_OP_cosh:
        return coshl(x);
    case TK_OP_tanh:
        return tanhl(x);
    case TK_OP_arcsinh:
        return asinhl(x);
    case TK_OP_arccosh:
        return acoshl(x);
    case TK_OP_arctanh:
        return atanhl(x);
    case TK_OP_erf:
        return erfl(x);
    case TK_OP_erfinv:
        return erfinv(x);
    case TK_OP_sigmoid:
        return sigmoid(x);
    case TK_OP_conjugate:
    case TK_OP_real:
        return x;
    case TK_OP_imag:
        return 0;
    default:
        fail_msg("no formula for %s", tk_op_name(op));
        return 0;
    }
}

static real float_binary(tk_op op, real x, real y) {
    switch (op) {
    case TK_OP_add:
        return x + y;
    case TK_OP_subtract:
        return x - y;
    case TK_OP_multiply:
        return x * y;
    case TK_OP_divide:
        return x / y;
    case TK_OP_floor_divide:
        return floor_divide(x, y);
    case TK_OP_remainder:
        return remainder_of(x, y);
    case TK_OP_power:
        return powl(x, y);
    case TK_OP_maximum:
        return larger(x, y);
    case TK_OP_minimum:
        return smaller(x, y);
    case TK_OP_arctan2:
        return atan2l(x, y);
    case TK_OP_logaddexp:
        return logaddexp(x, y);
    case TK_OP_equal:
        return x == y;
    case TK_OP_not_equal:
        return x != y;
    case TK_OP_less:
        return x < y;
    case TK_OP_less_equal:
        return x <= y;
    case TK_OP_greater:
        return x > y;
    case TK_OP_greater_equal:
        return x >= y;
    default:
        fail_msg("no formula for %s", tk_op_name(op));
        return 0;
    }
}

static int width_of(tk_dtype dtype) { return dtype == TK_BOOL ? 1 : 8 * (int)tk_dtype_size(dtype); }

/* The low 128 bits of a product. */
static big times(big x, big y) { return (big)((unsigned_big)x * (unsigned_big)y); }

static big integer_power(tk_dtype dtype, big x, big y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    if (y == 0) return 1;
    tk_dtype wraps = dtype == TK_BOOL ? TK_UINT8 : dtype;
    big half = integer_power(dtype, x, y / 2),
        square = wide_round(wraps, wide_int(times(half, half))).integer;
    return wide_round(wraps, wide_int(y % 2 ? times(square, x) : square)).integer;
}

static big floor_quotient(big x, big y) {
    big quotient = x / y;
    return quotient - (x % y != 0 && (x % y < 0) != (y < 0));
}

static big integer_unary(tk_op op, big x) {
    switch (op) {
    case TK_OP_abs:
        return x < 0 ? -x : x;
    case TK_OP_negative:
        return -x;
    case TK_OP_sign:
        return (x > 0) - (x < 0);
    case TK_OP_bitwise_invert:
        return ~x;
    case TK_OP_imag:
        return 0;
    default:
        return x; /* rounding, real, conjugate */
    }
}

static big integer_binary(tk_op op, tk_dtype dtype, big x, big y) {
    bool shifts_out = y < 0 || y >= width_of(dtype);
    switch (op) {
    case TK_OP_add:
        return x + y;
    case TK_OP_subtract:
        return x - y;
    case TK_OP_multiply:
        return times(x, y);
    case TK_OP_floor_divide:
        return y ? floor_quotient(x, y) : 0;
    case TK_OP_remainder:
        return y ? x - y * floor_quotient(x, y) : 0;
    case TK_OP_power:
        return integer_power(dtype, x, y);
    case TK_OP_maximum:
        return x > y ? x : y;
    case TK_OP_minimum:
        return x < y ? x : y;
    case TK_OP_bitwise_and:
        return x & y;
    case TK_OP_bitwise_or:
        return x | y;
    case TK_OP_bitwise_xor:
        return x ^ y;
    case TK_OP_left_shift:
        return shifts_out ? 0 : times(x, (big)1 << (int)y);
    case TK_OP_right_shift:
        return shifts_out ? (x < 0 ? -1 : 0) : x >> (int)y;
    case TK_OP_logical_and:
        return x && y;
    case TK_OP_logical_or:
        return x || y;
    default:
        return float_binary(op, (x > y) - (x < y), 0); /* comparisons */
    }
}

/* Where truth values do not behave as the integers 0 and 1. */
static big truth_result(tk_op op, big value, big x) {
    return op == TK_OP_logical_not || op == TK_OP_bitwise_invert ? !x : value != 0;
}

typedef long double complex complex_real;

static complex_real complex_unary(tk_op op, complex_real x) {
    switch (op) {
    case TK_OP_abs:
        return cabsl(x);
    case TK_OP_negative:
        return -x;
    case TK_OP_sign:
        return x == 0 ? 0 : x / cabsl(x);
    case TK_OP_rint:
        return rintl(creall(x)) + I * rintl(cimagl(x));
    case TK_OP_sqrt:
        return csqrtl(x);
    case TK_OP_rsqrt:
        return 1 / csqrtl(x);
    case TK_OP_exp:
        return cexpl(x);
    case TK_OP_expm1:
        return cexpl(x) - 1;
    case TK_OP_log:
        return clogl(x);
    case TK_OP_log1p:
        return clogl(1 + x);
    case TK_OP_log2:
        return clogl(x) / logl(2);
    case TK_OP_log10:
        return clogl(x) / logl(10);
    case TK_OP_sin:
        return csinl(x);
    case TK_OP_cos:
        return ccosl(x);
    case TK_OP_tan:
        return ctanl(x);
    case TK_OP_arcsin:
        return casinl(x);
    case TK_OP_arccos:
        return cacosl(x);
    case TK_OP_arctan:
        return catanl(x);
    case TK_OP_sinh:
        return csinhl(x);
    case TK_OP_cosh:
        return ccoshl(x);
    case TK_OP_tanh:
        return ctanhl(x);
    case TK_OP_arcsinh:
        return casinhl(x);
    case TK_OP_arccosh:
        return cacoshl(x);
    case TK_OP_arctanh:
        return catanhl(x);
    case TK_OP_sigmoid:
        return 1 / (1 + cexpl(-x));
    case TK_OP_conjugate:
        return conjl(x);
    case TK_OP_real:
        return creall(x);
    case TK_OP_imag:
        return cimagl(x);
    default:
        fail_msg("no formula for %s", tk_op_name(op));
        return 0;
    }
}

static bool comes_before(complex_real x, complex_real y) {
    return creall(x) < creall(y) || (creall(x) == creall(y) && cimagl(x) < cimagl(y));
}

static complex_real complex_binary(tk_op op, complex_real x, complex_real y) {
    switch (op) {
    case TK_OP_add:
        return x + y;
    case TK_OP_subtract:
        return x - y;
    case TK_OP_multiply:
        return x * y;
    case TK_OP_divide:
        return x / y;
    case TK_OP_power:
        return cpowl(x, y);
    case TK_OP_maximum:
        return comes_before(x, y) ? y : x;
    case TK_OP_minimum:
        return comes_before(y, x) ? y : x;
    case TK_OP_logaddexp:
        return clogl(cexpl(x) + cexpl(y));
    case TK_OP_equal:
        return x == y;
    case TK_OP_not_equal:
        return x != y;
    case TK_OP_less:
        return comes_before(x, y);
    case TK_OP_less_equal:
        return !comes_before(y, x);
    case TK_OP_greater:
        return comes_before(y, x);
    case TK_OP_greater_equal:
        return !comes_before(x, y);
    default:
        fail_msg("no formula for %s", tk_op_name(op));
        return 0;
    }
}

static wide expected_of(tk_op op, tk_dtype dtype, tk_dtype result, int arity, wide x, wide y) {
    if (is_whole(dtype)) {
        big value = arity == 1 ? integer_unary(op, x.integer)
                               : integer_binary(op, dtype, x.integer, y.integer);
        if (dtype == TK_BOOL) value = truth_result(op, value, x.integer);
        return wide_round(result, wide_int(value));
    }
    if (dtype == TK_COMPLEX64) {
        complex_real a = x.re + I * x.im, b = y.re + I * y.im;
        complex_real value = arity == 1 ? complex_unary(op, a) : complex_binary(op, a, b);
        wide answer = {creall(value), cimagl(value), creall(value) != 0};
        return wide_round(result, answer);
    }
    real value = arity == 1 ? float_unary(op, x.re) : float_binary(op, x.re, y.re);
    return wide_round(result, (wide){value, 0, value != 0});
}

/* ---- values to try ---- */

static const double special_reals[] = {0,   -0.0, 1,        -1,        0.5,     -2,      INFINITY,
                                       NAN, 2.5,  1e-3,     -INFINITY, 0x1p-14, 0x1p-24, 3,
                                       100, -100, 0x1p-127, 0x1p-149,  65504,   1e30,    -1e30};

static wide random_operand(tk_dtype dtype, int64_t i) {
    if (dtype == TK_BOOL) return wide_int(random_bits() & 1);
    if (is_whole(dtype)) {
        static const int small[] = {0, 1, -1, 2, 3, -3, 7, 8, 31, 63, 64, 100};
        if (random_bits() % 3)
            return wide_round(dtype, wide_int(small[random_bits() % COUNT(small)]));
        return wide_round(dtype, wide_int((int64_t)random_bits()));
    }
    if (dtype == TK_COMPLEX64) return wide_round(dtype, moderate(dtype));
    double value = i % 4 == 0 ? special_reals[random_bits() % COUNT(special_reals)]
                              : ldexp(random_unit(), (int)(random_bits() % 12) - 6);
    return wide_round(dtype, wide_real(value));
}

/* Units in the last place that an op may be off, its result rounded once more for half types. */
static real units_of(tk_op op, tk_dtype dtype) {
    if (dtype == TK_COMPLEX64) return 4;
    if (op == TK_OP_floor_divide || op == TK_OP_remainder) return 1;
    if (tk_op_of(op)->tolerance == TK_TOL_EXACT)
        return dtype == TK_FLOAT64 ? 1 : 0; /* rounded twice here */
    if (dtype == TK_FLOAT16 || dtype == TK_BFLOAT16) return 1;
    return op == TK_OP_erfinv ? 8 : 4;
}

static tk_dtype result_of(tk_op op, tk_dtype dtype) {
    if (tk_op_of(op)->result == TK_RESULT_BOOL) return TK_BOOL;
    return tk_op_of(op)->result == TK_RESULT_REAL && dtype == TK_COMPLEX64 ? TK_FLOAT32 : dtype;
}

static bool is_simple_ewise(tk_op op) {
    return tk_op_of(op)->lower == TK_LOWER_EWISE && op != TK_OP_astype && op != TK_OP_where;
}

static int arity_of(tk_op op) { return strchr(tk_op_of(op)->params, ',') ? 2 : 1; }

/* A float rounded to infinity by us, or the greatest one by the op, or the other way round. */
static bool at_the_limit(tk_dtype dtype, wide got, wide expected) {
    real greatest = dtype == TK_FLOAT16 ? 65504 : dtype == TK_FLOAT64 ? DBL_MAX : FLT_MAX;
    return !is_whole(dtype) && fabsl(got.re) >= greatest * (1 - 4 * epsilon_of(dtype)) &&
           fabsl(expected.re) >= greatest * (1 - 4 * epsilon_of(dtype)) &&
           signbit(got.re) == signbit(expected.re);
}

/* Near 0 the sum of logarithms cannot be better than the larger operand is known. */
static bool cancels_well(tk_dtype dtype, wide got, wide expected, wide x, wide y) {
    return fabsl(got.re - expected.re) <= 2 * epsilon_of(dtype) * fmaxl(fabsl(x.re), fabsl(y.re));
}

static void check_elements(tk_op op, tk_dtype dtype, const char *what, const tk_strided *out,
                           const tk_strided *x, const tk_strided *y) {
    for (int64_t i = 0; i < out->size; i++) {
        wide a = sample_read(x, i), b = sample_read(y, i), got = sample_read(out, i);
        wide expected = expected_of(op, dtype, out->dtype, arity_of(op), a, b);
        if (wide_close(out->dtype, got, expected, units_of(op, dtype))) continue;
        if (at_the_limit(out->dtype, got, expected)) continue;
        if (op == TK_OP_logaddexp && dtype != TK_COMPLEX64 &&
            cancels_well(dtype, got, expected, a, b))
            continue;
        char text[160];
        snprintf(text, sizeof text, "%s (%s) of %.17Lg%+.9Lgi, %.17Lg%+.9Lgi:", tk_op_name(op),
                 what, a.re, a.im, b.re, b.im);
        fail_at(text, dtype, i, got, expected);
    }
}

static void fill_operand(const tk_strided *view) {
    for (int64_t i = 0; i < view->size; i++) sample_write(view, i, random_operand(view->dtype, i));
}

static void run_op(tk_op op, tk_dtype dtype, int rank, const int64_t *shape, layout x_layout,
                   layout y_layout) {
    sample inputs[2] = {sample_new(dtype, rank, shape, x_layout),
                        sample_new(dtype, rank, shape, y_layout)};
    fill_operand(&inputs[0].view);
    fill_operand(&inputs[1].view);
    sample out = call_sample(op, NULL, arity_of(op), inputs, result_of(op, dtype), rank, shape);
    check_elements(op, dtype, layout_names[x_layout], &out.view, &inputs[0].view, &inputs[1].view);
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
    sample_free(&out);
}

static void run_layouts(tk_op op, tk_dtype dtype) {
    static const int64_t shape[] = {3, 5, 7}, line[] = {2, 601}, empty[] = {3, 0, 2};
    static const int64_t tiles[] = {2, 33, 140};
    for (int x = 0; x < LAYOUTS; x++)
        run_op(op, dtype, 3, shape, (layout)x, (layout)((x + 2) % LAYOUTS));
    run_op(op, dtype, 2, line, DENSE, DENSE);
    run_op(op, dtype, 2, line, DENSE, STILL);
    run_op(op, dtype, 2, line, STILL, DENSE);
    run_op(op, dtype, 2, line, STILL, STILL);
    run_op(op, dtype, 2, line, SPACED, REVERSED);
    run_op(op, dtype, 3, tiles, TRANSPOSED, DENSE);
    run_op(op, dtype, 3, tiles, DENSE, TRANSPOSED);
    run_op(op, dtype, 3, empty, DENSE, REVERSED);
    run_op(op, dtype, 0, NULL, DENSE, DENSE);
}

static void every_op(bool reference) {
    tk_cpu_use_reference(reference);
    for (int op = 0; op < TK_OP_COUNT; op++)
        for (int d = 0; is_simple_ewise((tk_op)op) && d < COUNT(all_dtypes); d++)
            if (accepts((tk_op)op, all_dtypes[d])) run_layouts((tk_op)op, all_dtypes[d]);
    tk_cpu_use_reference(false);
}

static void test_fast(void **state) {
    (void)state;
    every_op(false);
}
static void test_reference(void **state) {
    (void)state;
    every_op(true);
}

/* The result over either operand, where both take the same bytes. */
static void run_in_place(tk_op op, tk_dtype dtype, int operand) {
    static const int64_t shape[] = {1300};
    if (tk_dtype_size(result_of(op, dtype)) != tk_dtype_size(dtype) || operand >= arity_of(op))
        return;
    sample inputs[2] = {sample_new(dtype, 1, shape, DENSE), sample_new(dtype, 1, shape, DENSE)};
    fill_operand(&inputs[0].view);
    fill_operand(&inputs[1].view);
    sample expected = call_sample(op, NULL, arity_of(op), inputs, result_of(op, dtype), 1, shape);
    assert_true(tk_cpu_executor.in_place(op, operand));
    tk_strided views[2] = {inputs[0].view, inputs[1].view}, out = views[operand];
    out.dtype = result_of(op, dtype);
    assert_int_equal(call_body(op, NULL, arity_of(op), views, 1, &out), TK_OK);
    check_same(tk_op_name(op), &out, &expected.view, 0);
    sample_free(&expected);
    sample_free(&inputs[0]);
    sample_free(&inputs[1]);
}

static void test_in_place(void **state) {
    (void)state;
    for (int op = 0; op < TK_OP_COUNT; op++)
        for (int d = 0; is_simple_ewise((tk_op)op) && d < COUNT(all_dtypes); d++)
            for (int operand = 0; operand < 2; operand++)
                if (accepts((tk_op)op, all_dtypes[d]))
                    run_in_place((tk_op)op, all_dtypes[d], operand);
}

/* Conversions between dtypes of one size. */
static void test_astype_in_place(void **state) {
    (void)state;
    static const int64_t shape[] = {1300};
    for (int from = 0; from < COUNT(all_dtypes); from++)
        for (int to = 0; to < COUNT(all_dtypes); to++) {
            if (tk_dtype_size(all_dtypes[from]) != tk_dtype_size(all_dtypes[to])) continue;
            tk_attrs_dtype attrs = {.dtype = all_dtypes[to]};
            sample in = sample_moderate(all_dtypes[from], 1, shape, DENSE);
            sample expected = call_sample(TK_OP_astype, &attrs, 1, &in, all_dtypes[to], 1, shape);
            tk_strided out = in.view;
            out.dtype = all_dtypes[to];
            assert_int_equal(call_body(TK_OP_astype, &attrs, 1, &in.view, 1, &out), TK_OK);
            check_same("astype", &out, &expected.view, 0);
            sample_free(&in);
            sample_free(&expected);
        }
}

/* ---- where ---- */

/* Over either value, and over the condition where values are as small. */
static void test_where_in_place(void **state) {
    (void)state;
    static const int64_t shape[] = {1300};
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int operand = tk_dtype_size(all_dtypes[d]) == 1 ? 0 : 1; operand < 3; operand++) {
            sample inputs[3] = {sample_moderate(TK_BOOL, 1, shape, DENSE),
                                sample_moderate(all_dtypes[d], 1, shape, DENSE),
                                sample_moderate(all_dtypes[d], 1, shape, DENSE)};
            tk_strided views[3] = {inputs[0].view, inputs[1].view, inputs[2].view};
            sample expected = call_sample(TK_OP_where, NULL, 3, inputs, all_dtypes[d], 1, shape);
            tk_strided out = views[operand];
            out.dtype = all_dtypes[d];
            assert_int_equal(call_body(TK_OP_where, NULL, 3, views, 1, &out), TK_OK);
            check_same("where", &out, &expected.view, 0);
            for (int i = 0; i < 3; i++) sample_free(&inputs[i]);
            sample_free(&expected);
        }
}

static void run_where(tk_dtype dtype, layout how, const int64_t *shape) {
    sample inputs[3] = {sample_moderate(TK_BOOL, 2, shape, how),
                        sample_moderate(dtype, 2, shape, (layout)((how + 1) % LAYOUTS)),
                        sample_moderate(dtype, 2, shape, (layout)((how + 3) % LAYOUTS))};
    sample out = call_sample(TK_OP_where, NULL, 3, inputs, dtype, 2, shape);
    for (int64_t i = 0; i < out.view.size; i++) {
        bool first = sample_read(&inputs[0].view, i).integer != 0;
        wide expected = sample_read(&inputs[first ? 1 : 2].view, i),
             got = sample_read(&out.view, i);
        if (!wide_close(dtype, got, expected, 0)) fail_at("where", dtype, i, got, expected);
    }
    for (int i = 0; i < 3; i++) sample_free(&inputs[i]);
    sample_free(&out);
}

static void test_where(void **state) {
    (void)state;
    static const int64_t shape[] = {37, 131}, empty[] = {0, 3};
    for (int reference = 0; reference < 2; reference++) {
        tk_cpu_use_reference(reference);
        for (int d = 0; d < COUNT(all_dtypes); d++)
            for (int how = 0; how < LAYOUTS; how++) {
                run_where(all_dtypes[d], (layout)how, shape);
                run_where(all_dtypes[d], (layout)how, empty);
            }
    }
    tk_cpu_use_reference(false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast),     cmocka_unit_test(test_reference),
        cmocka_unit_test(test_in_place), cmocka_unit_test(test_astype_in_place),
        cmocka_unit_test(test_where),    cmocka_unit_test(test_where_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
