/* complex64 as a pair of floats, and its functions.
 *
 * Functions compute in double by the C library's complex functions (Annex G for infinities and NaN)
 * and round each part once, so they are nearly correctly rounded and do not overflow on the way.
 * Products are the plain formula in float, as matrix products compute them. */
#ifndef CPU_BODY_COMPLEX_H
#define CPU_BODY_COMPLEX_H

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct c64 {
    float re, im;
} c64;

typedef double complex c128;

static inline c64 c64_of(float re, float im) { return (c64){re, im}; }

static inline c128 c128_of(double re, double im) {
    double parts[2] = {re, im};
    c128 value;
    memcpy(&value, parts, sizeof value);
    return value;
}

static inline c128 c64_wide(c64 x) { return c128_of((double)x.re, (double)x.im); }
static inline c64 c64_round(c128 x) { return c64_of((float)creal(x), (float)cimag(x)); }

#define C64_FUNCTION(name, function)                                                               \
    static inline c64 c64_##name(c64 x) { return c64_round(function(c64_wide(x))); }
C64_FUNCTION(sqrt, csqrt)
C64_FUNCTION(exp, cexp)
C64_FUNCTION(sin, csin)
C64_FUNCTION(cos, ccos)
C64_FUNCTION(tan, ctan)
C64_FUNCTION(asin, casin)
C64_FUNCTION(acos, cacos)
C64_FUNCTION(atan, catan)
C64_FUNCTION(sinh, csinh)
C64_FUNCTION(cosh, ccosh)
C64_FUNCTION(tanh, ctanh)
C64_FUNCTION(asinh, casinh)
C64_FUNCTION(acosh, cacosh)
C64_FUNCTION(atanh, catanh)
#undef C64_FUNCTION

static inline bool c64_is_nan(c64 x) { return x.re != x.re || x.im != x.im; }

static inline c64 c64_add(c64 x, c64 y) { return c64_of(x.re + y.re, x.im + y.im); }

static inline c64 c64_multiply(c64 x, c64 y) {
    return c64_of(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}

/* Smith's method (1962): scales by the larger part of the divisor. By zero: each part by zero. */
static inline c64 c64_divide(c64 x, c64 y) {
    double a = x.re, b = x.im, c = y.re, d = y.im;
    if (c == 0 && d == 0) return c64_of((float)(a / fabs(c)), (float)(b / fabs(c)));
    if (fabs(c) >= fabs(d)) {
        double ratio = d / c, scale = 1 / (c + d * ratio);
        return c64_of((float)((a + b * ratio) * scale), (float)((b - a * ratio) * scale));
    }
    double ratio = c / d, scale = 1 / (c * ratio + d);
    return c64_of((float)((a * ratio + b) * scale), (float)((b * ratio - a) * scale));
}

static inline c64 c64_sign(c64 x) {
    if (x.re == 0 && x.im == 0) return c64_of(0, 0);
    double length = hypot((double)x.re, (double)x.im);
    return c64_of((float)(x.re / length), (float)(x.im / length));
}

/* e^x - 1 without the cancellation near 0, by cos(t) - 1 = -2 sin(t/2)^2. */
static inline c64 c64_expm1(c64 x) {
    double re = x.re, im = x.im;
    if (im == 0) return c64_of((float)expm1(re), x.im);
    double half = sin(im / 2);
    return c64_of((float)(expm1(re) * cos(im) - 2 * half * half), (float)(exp(re) * sin(im)));
}

static inline c64 c64_log(c64 x, double divisor) {
    c128 value = clog(c64_wide(x));
    return c64_of((float)(creal(value) / divisor), (float)(cimag(value) / divisor));
}

static inline c64 c64_log1p(c64 x) {
    double re = x.re, im = x.im;
    if (fabs(re) > 0.5 || fabs(im) > 0.5) return c64_round(clog(c128_of(1 + re, im)));
    return c64_of((float)(0.5 * log1p(2 * re + re * re + im * im)), (float)atan2(im, 1 + re));
}

static inline c64 c64_sigmoid(c64 x) {
    double re = x.re;
    c128 e = cexp(re >= 0 ? c128_of(-re, -(double)x.im) : c64_wide(x));
    return c64_round(re >= 0 ? 1 / (1 + e) : e / (1 + e));
}

/* Small whole exponents by multiplication, so that (-1)^2 is 1; the rest as e^(y log x). */
static inline c64 c64_power(c64 x, c64 y) {
    if (y.re == 0 && y.im == 0) return c64_of(1, 0);
    if (x.re == 0 && x.im == 0) return y.re > 0 ? c64_of(0, 0) : c64_of(NAN, NAN);
    if (y.im != 0 || y.re != rintf(y.re) || fabsf(y.re) > 64)
        return c64_round(cpow(c64_wide(x), c64_wide(y)));
    double re = 1, im = 0, square_re = x.re, square_im = x.im;
    for (int exponent = (int)fabsf(y.re); exponent; exponent >>= 1) {
        if (exponent & 1) {
            double old = re;
            re = old * square_re - im * square_im;
            im = old * square_im + im * square_re;
        }
        double old = square_re;
        square_re = old * old - square_im * square_im;
        square_im = 2 * old * square_im;
    }
    return c64_round(y.re < 0 ? 1 / c128_of(re, im) : c128_of(re, im));
}

static inline bool c64_less(c64 x, c64 y) { return x.re < y.re || (x.re == y.re && x.im < y.im); }
static inline bool c64_less_equal(c64 x, c64 y) {
    return x.re < y.re || (x.re == y.re && x.im <= y.im);
}
static inline c64 c64_maximum(c64 x, c64 y) {
    return c64_is_nan(x) || (!c64_is_nan(y) && c64_less_equal(y, x)) ? x : y;
}
static inline c64 c64_minimum(c64 x, c64 y) {
    return c64_is_nan(x) || (!c64_is_nan(y) && c64_less_equal(x, y)) ? x : y;
}

/* log(e^x + e^y), its imaginary part the principal one; the larger real part is taken out. */
static inline c128 c128_logaddexp(c128 x, c128 y) {
    double shift = creal(x) < creal(y) ? creal(y) : creal(x);
    if (shift == -INFINITY) return c128_of(-INFINITY, 0);
    if (shift == INFINITY) return c128_of(INFINITY, NAN);
    return clog(cexp(x - shift) + cexp(y - shift)) + shift;
}

static inline c64 c64_logaddexp(c64 x, c64 y) {
    return c64_round(c128_logaddexp(c64_wide(x), c64_wide(y)));
}

#endif
