/* Reference elementwise functions of f32 and f64, by libm. */
#include <assert.h>
#include <math.h>

#include "cpu/body_ewise.h"
#include "cpu/vec_generic.h"

/* The exact quotient's floor and the exact remainder, which rounding x / y first would miss: 1 //
 * 0.1f is 9. An infinite x over a finite y stays infinite, as the array API has it. */
#define DIVISION(T, name, M)                                                                       \
    static T exact_remainder_##name(T x, T y) {                                                    \
        T rest = M(fmod)(x, y);                                                                    \
        if (rest == 0) return M(copysign)(0, y);                                                   \
        return (rest < 0) != (y < 0) ? rest + y : rest;                                            \
    }                                                                                              \
    static T exact_floor_divide_##name(T x, T y) {                                                 \
        if (y == 0 || (M(fabs)(x) == (T)INFINITY && M(fabs)(y) != (T)INFINITY)) return x / y;      \
        T rest = M(fmod)(x, y);                                                                    \
        T quotient = (x - rest) / y;                                                               \
        if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;                                     \
        if (quotient == 0) return M(copysign)(0, x / y);                                           \
        return M(rint)(quotient);                                                                  \
    }
#define IDENTITY(function) function
#define SINGLE(function) function##f
DIVISION(float, f32, SINGLE)
DIVISION(double, f64, IDENTITY)

#define remainder_f64 exact_remainder_f64
#define floor_divide_f64 exact_floor_divide_f64

/* For floats x / y is an integer or at least 2^-24 away from one, and below 2^29 a double is within
 * 2^-25 of it: so its floor is right, and x - floor * y is exact. fmod goes bit by bit and is
 * several times slower. */
static bool is_short_quotient(double quotient, float y) {
    return fabs(quotient) < 0x1p29 && fabsf(y) < INFINITY;
}
static float floor_divide_f32(float x, float y) {
    double quotient = floor((double)x / (double)y);
    return is_short_quotient(quotient, y) ? (float)quotient : exact_floor_divide_f32(x, y);
}
static float remainder_f32(float x, float y) {
    double quotient = floor((double)x / (double)y);
    if (!is_short_quotient(quotient, y)) return exact_remainder_f32(x, y);
    double rest = (double)x - quotient * (double)y;
    return rest == 0 ? copysignf(0, y) : (float)rest;
}

#define CURVES(T, name, M)                                                                         \
    static T erfinv_##name(T x) {                                                                  \
        double wide = x, result;                                                                   \
        tk_vec_unary_f64_libm(TK_VEC_ERFINV)(&wide, &result, 1);                                   \
        return (T)result;                                                                          \
    }                                                                                              \
    static T sigmoid_##name(T x) {                                                                 \
        T e = M(exp)(-M(fabs)(x));                                                                 \
        return x >= 0 ? 1 / (1 + e) : e / (1 + e);                                                 \
    }

/* f32 takes the way of f64 too: near 0 the result is a difference of the parts. */
static double logaddexp_f64(double x, double y) {
    if (x == y) return x + 0.69314718055994530942;
    double distance = x - y;
    if (distance > 0) return x + log1p(exp(-distance));
    return y + log1p(exp(distance));
}
static float logaddexp_f32(float x, float y) { return (float)logaddexp_f64((double)x, (double)y); }

CURVES(float, f32, SINGLE)
CURVES(double, f64, IDENTITY)

#define KIND_FLOAT
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define FN(name) PASTE(name, SUFFIX)

#define T float
#define SUFFIX f32
#define M SINGLE
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

#define T double
#define SUFFIX f64
#define M IDENTITY
#define LOAD(value) (value)
#include "cpu/body_ewise_type.inc"

tk_ewise_fn *tk_ewise_float(tk_op op, tk_dtype dtype) {
    assert(dtype == TK_FLOAT32 || dtype == TK_FLOAT64);
    return dtype == TK_FLOAT32 ? table_f32[op] : table_f64[op];
}
