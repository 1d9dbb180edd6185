/* Functions at the ends of their domains, in every float dtype: infinities, NaN, signed zeros,
 * arguments that have no value. Runs of every length, since vector code, its tail and plain code
 * are different paths. */
#include "edge/edge_check.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)
#define MOST_POINTS 12

typedef struct point {
    double x, y;
} point;

typedef struct curve {
    const char *name;
    tk_array (*call)(tk_array a);
    point points[MOST_POINTS];
    int count;
} curve;

#define POINTS(...) {__VA_ARGS__}, sizeof((point[]){__VA_ARGS__}) / sizeof(point)

static const curve curves[] = {
    {"abs", tk_abs, POINTS({-INF, INF}, {NOT, NOT}, {-0.0, 0.0})},
    {"negative", tk_negative, POINTS({INF, -INF}, {0.0, -0.0}, {NOT, NOT})},
    {"sign", tk_sign, POINTS({-INF, -1}, {INF, 1}, {NOT, NOT}, {0.0, 0.0})},
    {"square", tk_square, POINTS({-INF, INF}, {-0.0, 0.0}, {NOT, NOT})},
    {"reciprocal", tk_reciprocal,
     POINTS({0.0, INF}, {-0.0, -INF}, {INF, 0.0}, {-INF, -0.0}, {NOT, NOT})},
    {"sqrt", tk_sqrt, POINTS({-1, NOT}, {-0.0, -0.0}, {INF, INF}, {-INF, NOT}, {NOT, NOT})},
    {"rsqrt", tk_rsqrt, POINTS({0.0, INF}, {-0.0, -INF}, {INF, 0.0}, {-1, NOT}, {NOT, NOT})},
    {"exp", tk_exp, POINTS({-INF, 0.0}, {INF, INF}, {0.0, 1}, {-0.0, 1}, {NOT, NOT})},
    {"expm1", tk_expm1, POINTS({-INF, -1}, {INF, INF}, {-0.0, -0.0}, {0.0, 0.0}, {NOT, NOT})},
    {"log", tk_log, POINTS({0.0, -INF}, {-0.0, -INF}, {1, 0.0}, {-1, NOT}, {INF, INF}, {NOT, NOT})},
    {"log2", tk_log2, POINTS({0.0, -INF}, {8, 3}, {0.25, -2}, {-1, NOT}, {INF, INF}, {NOT, NOT})},
    {"log10", tk_log10, POINTS({0.0, -INF}, {1, 0.0}, {-1, NOT}, {INF, INF}, {NOT, NOT})},
    {"log1p", tk_log1p, POINTS({-1, -INF}, {-2, NOT}, {-0.0, -0.0}, {INF, INF}, {NOT, NOT})},
    {"sin", tk_sin, POINTS({INF, NOT}, {-INF, NOT}, {-0.0, -0.0}, {NOT, NOT})},
    {"cos", tk_cos, POINTS({INF, NOT}, {-INF, NOT}, {-0.0, 1}, {NOT, NOT})},
    {"tan", tk_tan, POINTS({INF, NOT}, {-INF, NOT}, {-0.0, -0.0}, {NOT, NOT})},
    {"arcsin", tk_arcsin, POINTS({1.5, NOT}, {-1.5, NOT}, {-0.0, -0.0}, {INF, NOT}, {NOT, NOT})},
    {"arccos", tk_arccos, POINTS({1, 0.0}, {1.5, NOT}, {-1.5, NOT}, {-INF, NOT}, {NOT, NOT})},
    {"arctan", tk_arctan, POINTS({-0.0, -0.0}, {0.0, 0.0}, {NOT, NOT})},
    {"sinh", tk_sinh, POINTS({-INF, -INF}, {INF, INF}, {-0.0, -0.0}, {NOT, NOT})},
    {"cosh", tk_cosh, POINTS({-INF, INF}, {INF, INF}, {-0.0, 1}, {NOT, NOT})},
    {"tanh", tk_tanh, POINTS({-INF, -1}, {INF, 1}, {-0.0, -0.0}, {NOT, NOT}, {100, 1}, {-100, -1})},
    {"arcsinh", tk_arcsinh, POINTS({-INF, -INF}, {INF, INF}, {-0.0, -0.0}, {NOT, NOT})},
    {"arccosh", tk_arccosh, POINTS({1, 0.0}, {0.5, NOT}, {-INF, NOT}, {INF, INF}, {NOT, NOT})},
    {"arctanh", tk_arctanh,
     POINTS({1, INF}, {-1, -INF}, {1.5, NOT}, {-0.0, -0.0}, {INF, NOT}, {NOT, NOT})},
    {"erf", tk_erf, POINTS({-INF, -1}, {INF, 1}, {-0.0, -0.0}, {NOT, NOT}, {20, 1})},
    {"erfinv", tk_erfinv,
     POINTS({1, INF}, {-1, -INF}, {1.5, NOT}, {-1.5, NOT}, {-0.0, -0.0}, {NOT, NOT})},
    {"sigmoid", tk_sigmoid,
     POINTS({-INF, 0.0}, {INF, 1}, {0.0, 0.5}, {NOT, NOT}, {200, 1}, {-5e4, 0.0})},
    {"softplus", tk_softplus, POINTS({-INF, 0.0}, {INF, INF}, {16384, 16384}, {NOT, NOT})},
    {"silu", tk_silu, POINTS({-INF, NOT}, {INF, INF}, {-0.0, -0.0}, {-5e4, -0.0}, {NOT, NOT})},
    {"gelu", tk_gelu, POINTS({-INF, NOT}, {INF, INF}, {-0.0, -0.0}, {-5e4, -0.0}, {NOT, NOT})},
    {"relu", tk_relu, POINTS({-INF, 0.0}, {INF, INF}, {NOT, NOT}, {-3, 0.0})},
    {"ceil", tk_ceil, POINTS({-0.5, -0.0}, {INF, INF}, {NOT, NOT}, {1.25, 2})},
    {"floor", tk_floor, POINTS({-0.5, -1}, {-0.0, -0.0}, {-INF, -INF}, {NOT, NOT})},
    {"trunc", tk_trunc, POINTS({-0.5, -0.0}, {-1.75, -1}, {INF, INF}, {NOT, NOT})},
    {"rint", tk_rint,
     POINTS({0.5, 0.0}, {1.5, 2}, {2.5, 2}, {-0.5, -0.0}, {-1.5, -2}, {INF, INF}, {NOT, NOT})},
};

static bool same(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && signbit(a) == signbit(b);
}

/* The points over and over, `count` elements in all. */
static void check_curve(tk_context *ctx, const curve *c, tk_dtype dtype, int count) {
    double x[80], y[80];
    tk_scope scope = tk_scope_open(ctx);
    for (int i = 0; i < count; i++) x[i] = c->points[i % c->count].x;
    tk_array a = tk_astype(tk_from_data(ctx, x, TK_SHAPE(count), TK_FLOAT64), dtype);
    assert_ok(tk_copy_out(tk_astype(c->call(a), TK_FLOAT64), y, (size_t)count * sizeof *y));
    for (int i = 0; i < count; i++) {
        double expected = c->points[i % c->count].y;
        if (same(y[i], expected)) continue;
        print_error("%s(%g) in %s, element %d of %d: %g, expected %g\n", c->name, x[i],
                    tk_dtype_name(dtype), i, count, y[i], expected);
        fail();
    }
    tk_scope_close(scope);
}

static void ends_of_domains(void **state) {
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
        for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++)
            for (int count = 1; count < 80; count += count < 9 ? 1 : 31)
                check_curve(*state, &curves[i], (tk_dtype)d, count);
}

/* ---- two operands ---- */

typedef struct surface {
    const char *name;
    tk_array (*call)(tk_array a, tk_array b);
    double a, b, value;
} surface;

static const double pi = 3.141592653589793;

static const surface surfaces[] = {
    {"power", tk_power, 0, 0, 1},
    {"power", tk_power, NOT, 0, 1},
    {"power", tk_power, 1, NOT, 1},
    {"power", tk_power, NOT, 1, NOT},
    {"power", tk_power, 2, NOT, NOT},
    {"power", tk_power, -8, 0.5, NOT},
    {"power", tk_power, -2, 3, -8},
    {"power", tk_power, 0.0, -1, INF},
    {"power", tk_power, -0.0, -1, -INF},
    {"power", tk_power, -0.0, 3, -0.0},
    {"power", tk_power, -0.0, 2, 0.0},
    {"power", tk_power, -1, INF, 1},
    {"power", tk_power, 0.5, INF, 0.0},
    {"power", tk_power, 2, INF, INF},
    {"power", tk_power, 2, -INF, 0.0},
    {"power", tk_power, -INF, 3, -INF},
    {"power", tk_power, -INF, -3, -0.0},
    {"power", tk_power, INF, 0.5, INF},
    {"logaddexp", tk_logaddexp, -INF, -INF, -INF},
    {"logaddexp", tk_logaddexp, INF, INF, INF},
    {"logaddexp", tk_logaddexp, INF, -INF, INF},
    {"logaddexp", tk_logaddexp, -INF, 2, 2},
    {"logaddexp", tk_logaddexp, NOT, 2, NOT},
    {"logaddexp", tk_logaddexp, 16384, -16384, 16384},
    {"arctan2", tk_arctan2, 0.0, 0.0, 0.0},
    {"arctan2", tk_arctan2, -0.0, 0.0, -0.0},
    {"arctan2", tk_arctan2, 0.0, 1, 0.0},
    {"arctan2", tk_arctan2, -0.0, 1, -0.0},
    {"arctan2", tk_arctan2, 1, INF, 0.0},
    {"arctan2", tk_arctan2, -1, INF, -0.0},
    {"arctan2", tk_arctan2, NOT, 1, NOT},
    {"add", tk_add, INF, -INF, NOT},
    {"subtract", tk_subtract, INF, INF, NOT},
    {"multiply", tk_multiply, 0, INF, NOT},
    {"divide", tk_divide, INF, INF, NOT},
    {"divide", tk_divide, 1, -0.0, -INF},
    {"divide", tk_divide, 0.0, 0.0, NOT},
    {"divide", tk_divide, -0.0, 3, -0.0},
};

static void check_surface(tk_context *ctx, const surface *s, tk_dtype dtype, int count) {
    double a[40], b[40], y[40];
    tk_scope scope = tk_scope_open(ctx);
    for (int i = 0; i < count; i++) a[i] = s->a, b[i] = s->b;
    tk_array left = tk_astype(tk_from_data(ctx, a, TK_SHAPE(count), TK_FLOAT64), dtype);
    tk_array right = tk_astype(tk_from_data(ctx, b, TK_SHAPE(count), TK_FLOAT64), dtype);
    tk_array wide = tk_astype(s->call(left, right), TK_FLOAT64);
    assert_ok(tk_copy_out(wide, y, (size_t)count * sizeof *y));
    for (int i = 0; i < count; i++) {
        if (same(y[i], s->value)) continue;
        print_error("%s(%g, %g) in %s, element %d of %d: %g, expected %g\n", s->name, s->a, s->b,
                    tk_dtype_name(dtype), i, count, y[i], s->value);
        fail();
    }
    tk_scope_close(scope);
}

static void ends_of_domains_of_two(void **state) {
    for (size_t i = 0; i < sizeof surfaces / sizeof surfaces[0]; i++)
        for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++)
            for (int count = 1; count <= 40; count += 13)
                check_surface(*state, &surfaces[i], (tk_dtype)d, count);
}

/* The axes and corners of the plane. */
static void angles_of_the_corners(void **state) {
    tk_context *ctx = *state;
    double y[] = {0.0, -0.0, 1, -1, INF, INF, -INF, -INF, 1, -1},
           x[] = {-1, -1, 0, 0, INF, -INF, INF, -INF, -INF, -INF};
    for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++) {
        tk_array a = tk_astype(tk_from_data(ctx, y, TK_SHAPE(10), TK_FLOAT64), (tk_dtype)d);
        tk_array b = tk_astype(tk_from_data(ctx, x, TK_SHAPE(10), TK_FLOAT64), (tk_dtype)d);
        CHECK_NEAR(tk_arctan2(a, b), (tk_dtype)d, TK_SHAPE(10), d == TK_BFLOAT16 ? 8e-3 : 1e-3, pi,
                   -pi, pi / 2, -pi / 2, pi / 4, 3 * pi / 4, -pi / 4, -3 * pi / 4, pi, -pi);
    }
}

/* ---- comparisons, rounding to decimals, replacing ---- */

static void nothing_is_equal_to_nan(void **state) {
    tk_context *ctx = *state;
    double x[] = {NOT, NOT, 1, 0.0, INF}, y[] = {NOT, 1, NOT, -0.0, INF};
    for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++) {
        tk_array a = tk_astype(tk_from_data(ctx, x, TK_SHAPE(5), TK_FLOAT64), (tk_dtype)d);
        tk_array b = tk_astype(tk_from_data(ctx, y, TK_SHAPE(5), TK_FLOAT64), (tk_dtype)d);
        CHECK(tk_equal(a, b), TK_BOOL, TK_SHAPE(5), 0, 0, 0, 1, 1);
        CHECK(tk_not_equal(a, b), TK_BOOL, TK_SHAPE(5), 1, 1, 1, 0, 0);
        CHECK(tk_less(a, b), TK_BOOL, TK_SHAPE(5), 0, 0, 0, 0, 0);
        CHECK(tk_less_equal(a, b), TK_BOOL, TK_SHAPE(5), 0, 0, 0, 1, 1);
        CHECK(tk_greater(a, b), TK_BOOL, TK_SHAPE(5), 0, 0, 0, 0, 0);
        CHECK(tk_greater_equal(a, b), TK_BOOL, TK_SHAPE(5), 0, 0, 0, 1, 1);
        CHECK(tk_isclose(a, b, 1e-5, 1e-8, false), TK_BOOL, TK_SHAPE(5), 0, 0, 0, 1, 1);
        CHECK(tk_isclose(a, b, 1e-5, 1e-8, true), TK_BOOL, TK_SHAPE(5), 1, 0, 0, 1, 1);
        CHECK(tk_array_equal(a, a, false), TK_BOOL, TK_SCALAR, 0);
        CHECK(tk_array_equal(a, a, true), TK_BOOL, TK_SCALAR, 1);
        CHECK(tk_logical_not(a), TK_BOOL, TK_SHAPE(5), 0, 0, 0, 1, 0); /* NaN is not 0 */
        CHECK(tk_any(a, TK_ALL_AXES, false), TK_BOOL, TK_SCALAR, 1);
    }
}

static void rounding_to_decimals(void **state) {
    tk_context *ctx = *state;
    double x[] = {2.345, -1250, 1e30, INF, NOT, 0.25};
    tk_array a = tk_astype(tk_from_data(ctx, x, TK_SHAPE(6), TK_FLOAT64), TK_FLOAT32);
    CHECK_NEAR(tk_round(a, 1), TK_FLOAT32, TK_SHAPE(6), 1e-6, 2.3, -1250, 1e30, INF, NOT, 0.2);
    CHECK_NEAR(tk_round(a, -2), TK_FLOAT32, TK_SHAPE(6), 1e-6, 0, -1200, 1e30, INF, NOT, 0);
    CHECK_NEAR(tk_round(a, 400), TK_FLOAT32, TK_SHAPE(6), 1e-6, 2.345, -1250, 1e30, INF, NOT, 0.25);
    CHECK(tk_round(a, -400), TK_FLOAT32, TK_SHAPE(6), 0, 0, 0, INF, NOT, 0);
    int64_t whole[] = {25, 35, -25, 149, INT64_MAX};
    tk_array n = tk_from_data(ctx, whole, TK_SHAPE(5), TK_INT64);
    CHECK(tk_round(tk_slice(n, TK_AXES(0), TK_AXES(4), TK_ALL_AXES), -1), TK_INT64, TK_SHAPE(4), 20,
          40, -20, 150);
    CHECK(tk_round(n, -400), TK_INT64, TK_SHAPE(5), 0, 0, 0, 0, 0);
}

static void what_is_not_finite_is_replaced(void **state) {
    tk_context *ctx = *state;
    static const double tops[] = {65504, 0x1.fep127, 0x1.fffffep127, 0x1.fffffffffffffp1023};
    double x[] = {NOT, INF, -INF, 2};
    for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++) {
        double top = tops[d - TK_FLOAT16];
        tk_array a = tk_astype(tk_from_data(ctx, x, TK_SHAPE(4), TK_FLOAT64), (tk_dtype)d);
        CHECK(tk_nan_to_num(a, 0, NOT, NOT), (tk_dtype)d, TK_SHAPE(4), 0, top, -top, 2);
        CHECK(tk_nan_to_num(a, 7, 8, 9), (tk_dtype)d, TK_SHAPE(4), 7, 8, 9, 2);
    }
}

/* ---- before the first element of a running op ---- */

static void exclusive_scans_begin_with_the_neutral_element(void **state) {
    tk_context *ctx = *state;
    double x[] = {2, 3};
    for (int d = TK_FLOAT16; d <= TK_FLOAT64; d++) {
        tk_array a = tk_astype(tk_from_data(ctx, x, TK_SHAPE(2), TK_FLOAT64), (tk_dtype)d);
        CHECK(tk_cumsum(a, 0, false, false), (tk_dtype)d, TK_SHAPE(2), 0, 2);
        CHECK(tk_cumprod(a, 0, false, false), (tk_dtype)d, TK_SHAPE(2), 1, 2);
        CHECK(tk_cummax(a, 0, true, false), (tk_dtype)d, TK_SHAPE(2), 3, -INF);
        CHECK(tk_cummin(a, 0, false, false), (tk_dtype)d, TK_SHAPE(2), INF, 2);
        CHECK(tk_logcumsumexp(a, 0, false, false), (tk_dtype)d, TK_SHAPE(2), -INF, 2);
    }
    tk_array bytes = tk_astype(tk_from_data(ctx, x, TK_SHAPE(2), TK_FLOAT64), TK_INT8);
    CHECK(tk_cummax(bytes, 0, false, false), TK_INT8, TK_SHAPE(2), -128, 2);
    CHECK(tk_cummin(bytes, 0, false, false), TK_INT8, TK_SHAPE(2), 127, 2);
    tk_array words = tk_astype(bytes, TK_UINT16);
    CHECK(tk_cummax(words, 0, false, false), TK_UINT16, TK_SHAPE(2), 0, 2);
    CHECK(tk_cummin(words, 0, false, false), TK_UINT16, TK_SHAPE(2), 65535, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ends_of_domains),
        TEST(ends_of_domains_of_two),
        TEST(angles_of_the_corners),
        TEST(nothing_is_equal_to_nan),
        TEST(rounding_to_decimals),
        TEST(what_is_not_finite_is_replaced),
        TEST(exclusive_scans_begin_with_the_neutral_element),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
