/* f64 transcendental functions through libm, which is within about one unit. Three are missing
 * there:
 *
 * - erfinv: a starting value from Giles' single-precision polynomials (Approximating the erfinv
 *   function, 2010), beyond their range the leading term of the asymptotic series, then Halley
 * steps on erf, or on erfc where x is near 1. Within 4 units.
 * - sigmoid, silu and gelu: by exp, erfc and tanh, arranged so that no tail cancels.
 *
 * Rejected: own f64 polynomials. f64 is for checking gradients and for science, not for hot loops.
 */
#include <math.h>

#include "cpu/vec_generic.h"

static double rsqrt(double x) { return 1.0 / sqrt(x); }
static double reciprocal(double x) { return 1.0 / x; }
static double negate(double x) { return -x; }
static double square(double x) { return x * x; }
static double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }

static double sigmoid(double x) {
    double e = exp(-fabs(x));
    return (x >= 0 ? 1.0 : e) / (1.0 + e);
}
static double silu(double x) {
    if (x == -INFINITY) return -0.0;
    return x >= 0 || x < -700 ? x / (1.0 + exp(-x)) : x * sigmoid(x);
}
static double gelu(double x) {
    if (x == -INFINITY) return -0.0;
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}
static double gelu_tanh(double x) {
    if (x == -INFINITY) return -0.0;
    double u = 1.5957691216057308 * (x + 0.044715 * x * x * x);
    return x * sigmoid(u);
}

static double erfinv_start(double x) {
    static const double central[] = {1.50140941,     0.246640727,    -0.00417768164,
                                     -0.00125372503, 0.000218580870, -4.39150654e-06,
                                     -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
    static const double tail[] = {2.83297682,    1.00167406,     0.00943887047,
                                  -0.0076224613, 0.00573950773,  -0.00367342844,
                                  0.00134934322, 0.000100950558, -0.000200214257};
    double w = -log((1.0 - x) * (1.0 + x));
    if (w > 14.0) return sqrt(w - 0.5 * log(3.14159265358979323846 * w));
    const double *c = w < 5.0 ? central : tail;
    double t = w < 5.0 ? w - 2.5 : sqrt(w) - 3.0;
    double sum = c[8];
    for (int i = 7; i >= 0; i--) sum = sum * t + c[i];
    return sum * x;
}
static double erfinv(double x) {
    double magnitude = fabs(x);
    if (!(magnitude < 1.0)) return magnitude == 1.0 ? copysign(INFINITY, x) : NAN;
    if (magnitude < 1e-150) return x * 0.88622692545275801365;
    double y = erfinv_start(magnitude);
    double target = 1.0 - magnitude;
    for (int step = 0; step < 4; step++) {
        double error = magnitude < 0.5 ? erf(y) - magnitude : target - erfc(y);
        double newton = error / (1.12837916709551257390 * exp(-y * y));
        y -= newton / (1.0 + y * newton);
    }
    return copysign(y, x);
}

#define EACH(id, function)                                                                         \
    static void each_##id(const void *x_, void *out_, int64_t count) {                             \
        const double *x = x_;                                                                      \
        double *out = out_;                                                                        \
        for (int64_t i = 0; i < count; i++) out[i] = function(x[i]);                               \
    }

#define FUNCTIONS(X)                                                                               \
    X(NEG, negate)                                                                                 \
    X(ABS, fabs)                                                                                   \
    X(SQUARE, square)                                                                              \
    X(SIGN, sign)                                                                                  \
    X(FLOOR, floor)                                                                                \
    X(CEIL, ceil)                                                                                  \
    X(RINT, rint)                                                                                  \
    X(TRUNC, trunc)                                                                                \
    X(SQRT, sqrt)                                                                                  \
    X(RSQRT, rsqrt)                                                                                \
    X(RECIPROCAL, reciprocal)                                                                      \
    X(EXP, exp)                                                                                    \
    X(EXPM1, expm1)                                                                                \
    X(LOG, log)                                                                                    \
    X(LOG1P, log1p)                                                                                \
    X(LOG2, log2)                                                                                  \
    X(LOG10, log10)                                                                                \
    X(SIN, sin)                                                                                    \
    X(COS, cos)                                                                                    \
    X(TAN, tan)                                                                                    \
    X(SINH, sinh)                                                                                  \
    X(COSH, cosh)                                                                                  \
    X(TANH, tanh)                                                                                  \
    X(ASIN, asin)                                                                                  \
    X(ACOS, acos)                                                                                  \
    X(ATAN, atan)                                                                                  \
    X(ASINH, asinh)                                                                                \
    X(ACOSH, acosh)                                                                                \
    X(ATANH, atanh)                                                                                \
    X(ERF, erf)                                                                                    \
    X(ERFINV, erfinv)                                                                              \
    X(SIGMOID, sigmoid)                                                                            \
    X(SILU, silu)                                                                                  \
    X(GELU, gelu)                                                                                  \
    X(GELU_TANH, gelu_tanh)
FUNCTIONS(EACH)

tk_vec_unary_fn *tk_vec_unary_f64_libm(tk_vec_unary_op op) {
#define ENTRY(id, function) [TK_VEC_##id] = each_##id,
    static tk_vec_unary_fn *const table[TK_VEC_UNARY_COUNT] = {FUNCTIONS(ENTRY)};
    return table[op];
}

void tk_vec_pow_f64(tk_vec_mode mode, const double *a, const double *b, double *out,
                    int64_t count) {
    int64_t a_step = mode != TK_VEC_SV, b_step = mode != TK_VEC_VS;
    for (int64_t i = 0; i < count; i++) out[i] = pow(a[i * a_step], b[i * b_step]);
}
