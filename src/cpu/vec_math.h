/* Mathematical functions on vectors, by range reduction and polynomial.
 *
 * Two groups. Those in hot loops (exp, log, tanh, erf, sigmoid) work in f32. The rest work on
 * doubles made from f32 (vd_*): with 29 spare bits no care about cancellation is needed, the result
 * rounds to within about half a unit, and the functions stay a few lines each. The vd_* functions
 * are good to about 1e-9 relative, enough for f32 and not for f64, and may assume arguments that
 * came from f32.
 *
 * Coefficients are Chebyshev fits of the stated function on the reduced range, made for this file;
 * the comment gives fit error relative to the part that the polynomial stands for. Constants of
 * range reduction have trailing zeros, so that products with small integers are exact without fma.
 */
#ifndef CPU_VEC_MATH_H
#define CPU_VEC_MATH_H

#include "base/polynomials.h"
#include "cpu/vec_simd.h"

#define VF_INF vf_set(__builtin_inff())
#define VF_NAN vf_set(__builtin_nanf(""))
#define VD_INF vd_set(__builtin_inf())
#define VD_NAN vd_set(__builtin_nan(""))

/* c[0] + x c[1] + ... by Horner's rule. */
TK_INLINE vf vf_poly(vf x, const float *c, int terms) {
    vf sum = vf_set(c[terms - 1]);
    for (int i = terms - 2; i >= 0; i--) sum = vf_madd(sum, x, vf_set(c[i]));
    return sum;
}
TK_INLINE vd vd_poly(vd x, const double *c, int terms) {
    vd sum = vd_set(c[terms - 1]);
    for (int i = terms - 2; i >= 0; i--) sum = vd_madd(sum, x, vd_set(c[i]));
    return sum;
}

/* e^x = 2^n e^r, |r| <= ln2/2; 2^n in two factors, so that subnormal results round once. */
TK_INLINE vf vf_exp(vf x) {
    static const float q[] = {0.5f, 0x1.5554d8p-3f, 0x1.555516p-5f, 0x1.12106cp-7f,
                              0x1.6d1606p-10f};
    x = vf_bound(x, -104.5f, 89.5f);
    vf n = vf_rint(x * 0x1.715476p0f);
    vf r = vf_madd(n, vf_set(-0x1.63p-1f), x);
    r = vf_madd(n, vf_set(0x1.bd0106p-13f), r);
    vf p = vf_madd(r * r, vf_poly(r, q, 5), r) + 1.0f;
    vi exponent = vf_to_vi(n);
    vi half = exponent >> 1;
    vf first = (vf)((half + 127) << 23);
    vf second = (vf)((exponent - half + 127) << 23);
    return p * first * second;
}

/* e^x for x <= 0 where results below 2^-126 may be 0 (softmax, attention): one scaling. */
TK_INLINE vf vf_exp_negative(vf x) {
    static const float q[] = {0.5f, 0x1.5554d8p-3f, 0x1.555516p-5f, 0x1.12106cp-7f,
                              0x1.6d1606p-10f};
    vi tiny = x < -87.0f;
    vf n = vf_rint(x * 0x1.715476p0f);
    vf r = vf_madd(n, vf_set(-0x1.63p-1f), x);
    r = vf_madd(n, vf_set(0x1.bd0106p-13f), r);
    vf p = vf_madd(r * r, vf_poly(r, q, 5), r) + 1.0f;
    vf scaled = p * (vf)((vf_to_vi(n) + 127) << 23);
    return (vf)(~tiny & (vi)scaled);
}

/* log(x) = e ln2 + log(1 + f), 1 + f in [sqrt(1/2), sqrt(2)). */
TK_INLINE vf vf_log(vf x) {
    static const float q[] = {0x1.555554p-2f,  -0x1.fffffcp-3f, 0x1.999d60p-3f,
                              -0x1.555b54p-3f, 0x1.23d126p-3f,  -0x1.fcf158p-4f,
                              0x1.deb356p-4f,  -0x1.d658d6p-4f, 0x1.1d8bdep-4f};
    vi subnormal = x < 0x1p-126f;
    vf scaled = vf_select(subnormal, x * 0x1p23f, x);
    vi exponent = (vi)((vu)scaled - 0x3f3504f3u) >> 23; /* unsigned: -0.0 wraps */
    vf f = (vf)((vu)scaled - ((vu)exponent << 23)) - 1.0f;
    vf e = vi_to_vf(exponent + (subnormal & -23));
    vf square = f * f;
    vf tail = vf_madd(square * f, vf_poly(f, q, 9), e * -0x1.bd0106p-13f);
    tail = vf_madd(square, vf_set(-0.5f), tail);
    vf result = vf_madd(e, vf_set(0x1.63p-1f), f + tail);
    result = vf_select(x == __builtin_inff(), x, result);
    result = vf_select(x == 0.0f, -VF_INF, result);
    return vf_select((x >= 0.0f), result, VF_NAN);
}

TK_INLINE vf vf_tanh(vf x) {
    static const float q[] = {-0x1.555552p-2f, 0x1.110e14p-3f, -0x1.b92370p-5f, 0x1.57f09ap-6f,
                              -0x1.8f19f0p-8f};
    vf magnitude = vf_abs(x);
    vf square = x * x;
    vf small = vf_madd(x * square, vf_poly(square, q, 5), x);
    vf large = 1.0f - 2.0f / (vf_exp(magnitude + magnitude) + 1.0f);
    vf result = vf_select(magnitude < 0.625f, vf_abs(small), large);
    return vf_with_sign(result, vf_sign_of(x));
}

/* erf(x) = x + x P(x^2) below 0.921875, 1 - exp(-Q(|x|)) above. */
TK_INLINE vf vf_erf(vf x) {
    static const float p[] = {0x1.06eba8p-3f, -0x1.812744p-2f,  0x1.ce2e14p-4f, -0x1.b80f72p-6f,
                              0x1.54cfb6p-8f, -0x1.aa7e38p-11f, 0x1.5d955cp-14f};
    static const float q[] = {-0x1.5001dep-12f, 0x1.215740p+0f,  0x1.437d32p-1f,
                              0x1.c2f26ep-4f,   -0x1.b10bbap-6f, 0x1.382f88p-8f,
                              -0x1.3963c6p-11f, 0x1.835e50p-15f, -0x1.b93140p-20f};
    vf magnitude = vf_abs(x);
    vf square = x * x;
    vf small = vf_madd(magnitude, vf_poly(square, p, 7), magnitude);
    vf bounded = vf_bound(magnitude, 0.0f, 4.0f);
    vf large = 1.0f - vf_exp_negative(-vf_poly(bounded, q, 9));
    vf result = vf_select(magnitude < 0.921875f, small, large);
    result = vf_select(x != x, x, result);
    return vf_with_sign(result, vf_sign_of(x));
}

/* e / (1 + e) or 1 / (1 + e) with e = e^-|x|: no overflow, and small results keep their digits. */
TK_INLINE vf vf_sigmoid(vf x) {
    vf e = vf_exp(-vf_abs(x));
    return vf_select(x < 0.0f, e, vf_set(1.0f)) / (1.0f + e);
}

/* From here on: doubles that came from floats. */

#define VD_LN2_HIGH 0x1.62e42fefap-1 /* 36 bits: n * this is exact for |n| < 2^17 */
#define VD_LN2_LOW 0x1.cf79abc9e3b3ap-40

TK_INLINE vd vd_exp(vd x) {
    static const double q[] = TK_POLY_EXP;
    x = vd_bound(x, -700.0, 700.0);
    vd shifted = x * 0x1.71547652b82fep0 + 0x1.8p52;
    vd n = shifted - 0x1.8p52;
    vd r = vd_madd(n, vd_set(-VD_LN2_HIGH), x);
    r = vd_madd(n, vd_set(-VD_LN2_LOW), r);
    vd p = vd_madd(r * r, vd_poly(r, q, 6), r) + 1.0;
    return p * (vd)(((vl)shifted + 1023) << 52);
}

/* log(x), x a normal double > 0: e ln2 + 2 atanh(f / (2 + f)). */
TK_INLINE vd vd_log_positive(vd x) {
    static const double q[] = TK_POLY_LOG;
    vl bits = (vl)((vul)x - 0x3fe6a09e667f3bcdu); /* unsigned: lanes that do not count wrap */
    vl exponent = (vl)(((vul)bits + ((uint64_t)1023 << 52)) >> 52) | (int64_t)0x4330000000000000;
    vd e = (vd)exponent - (0x1p52 + 1023.0);
    vl fraction = (bits & (int64_t)0x000fffffffffffff) + 0x3fe6a09e667f3bcd;
    vd f = (vd)fraction - 1.0;
    vd s = f / (f + 2.0);
    vd square = s * s;
    vd series = vd_madd(square * s, vd_poly(square, q, 5), s + s);
    return vd_madd(e, vd_set(0x1.62e42fefa39efp-1), series);
}

TK_INLINE vd vd_log(vd x) {
    vd result = vd_log_positive(x);
    result = vd_select(x == __builtin_inf(), x, result);
    result = vd_select(x == 0.0, -VD_INF, result);
    return vd_select(x >= 0.0, result, VD_NAN);
}

/* log(1 + x): the rounding of 1 + x is put back to first order. */
TK_INLINE vd vd_log1p(vd x) {
    vd sum = x + 1.0;
    vd lost = x - (sum - 1.0);
    vd result = vd_log(sum);
    result = vd_select((sum > 0.0) & (x < 1e300), result + lost / sum, result);
    return vd_with_sign(vd_abs(result), vd_sign_of(x));
}

TK_INLINE vd vd_expm1(vd x) {
    vd small = vd_madd(x * x, vd_madd(x, vd_set(1.0 / 6.0), vd_set(0.5)), x);
    vd result = vd_select(vd_abs(x) < 0x1p-12, small, vd_exp(x) - 1.0);
    return vd_with_sign(vd_abs(result), vd_sign_of(x));
}

TK_INLINE vd vd_sinh(vd x) {
    vd square = x * x;
    vd small = vd_madd(x * square, vd_madd(square, vd_set(1.0 / 120.0), vd_set(1.0 / 6.0)), x);
    vd e = vd_exp(x);
    vd result = vd_select(vd_abs(x) < 0x1p-6, small, 0.5 * (e - 1.0 / e));
    return vd_with_sign(vd_abs(result), vd_sign_of(x));
}
TK_INLINE vd vd_cosh(vd x) {
    vd e = vd_exp(x);
    return 0.5 * (e + 1.0 / e);
}

/* Largest argument that vd_sincos reduces itself; beyond it callers go through libm lane by lane.
 */
#define VD_SINCOS_MAX 0x1p20

/* sin and cos of x, |x| <= VD_SINCOS_MAX, by x - q pi/2 in three parts of 33 bits. `quarter` is q.
 */
TK_INLINE void vd_sincos(vd x, vd *sine, vd *cosine) {
    static const double s[] = {-0x1.555555545c0f8p-3, 0x1.11110dea5e8c0p-7, -0x1.a013a11619d1bp-13,
                               0x1.6dbbee1f24647p-19};
    static const double c[] = {0x1.555555550225fp-5, -0x1.6c16bf51b0df9p-10, 0x1.a015c02820885p-16,
                               -0x1.2522e6d930e5bp-22};
    vd shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52;
    vd q = shifted - 0x1.8p52;
    vl quarter = (vl)shifted;
    vd r = vd_madd(q, vd_set(-0x1.921fb544p0), x);
    r = vd_madd(q, vd_set(-0x1.0b4611a6p-34), r);
    r = vd_madd(q, vd_set(-0x1.3198a2e037073p-69), r);
    vd square = r * r;
    vd sine_r = vd_madd(r * square, vd_poly(square, s, 4), r);
    vd cosine_r = vd_madd(square * square, vd_poly(square, c, 4), 1.0 - 0.5 * square);
    vl odd = -(quarter & 1);
    vl sine_sign = (quarter & 2) << 62;
    vl cosine_sign = ((quarter + 1) & 2) << 62;
    *sine = vd_select(x == 0.0, x, (vd)((vl)vd_select(odd, cosine_r, sine_r) ^ sine_sign));
    *cosine = (vd)((vl)vd_select(odd, sine_r, cosine_r) ^ cosine_sign);
}

/* atan for any x: 1/x above 1, then (x - 1) / (x + 1) above tan(pi/8). */
TK_INLINE vd vd_atan(vd x) {
    static const double q[] = TK_POLY_ATAN;
    vd magnitude = vd_abs(x);
    vl inverted = magnitude > 1.0;
    vd t = vd_select(inverted, 1.0 / magnitude, magnitude);
    vl turned = t > 0x1.a827999fcef32p-2;
    t = vd_select(turned, (t - 1.0) / (t + 1.0), t);
    vd square = t * t;
    vd angle = vd_madd(t * square, vd_poly(square, q, 6), t);
    angle = vd_select(turned, angle + 0x1.921fb54442d18p-1, angle);
    angle = vd_select(inverted, 0x1.921fb54442d18p0 - angle, angle);
    return vd_with_sign(angle, vd_sign_of(x));
}
TK_INLINE vd vd_asin(vd x) { return vd_atan(x / vd_sqrt((1.0 - x) * (1.0 + x))); }
TK_INLINE vd vd_acos(vd x) { return 2.0 * vd_atan(vd_sqrt((1.0 - x) / (1.0 + x))); }

TK_INLINE vd vd_asinh(vd x) {
    vd magnitude = vd_abs(x);
    vd square = magnitude * magnitude;
    vd result = vd_log1p(magnitude + square / (1.0 + vd_sqrt(square + 1.0)));
    result = vd_select(magnitude < 0x1p-14, magnitude - magnitude * square * (1.0 / 6.0), result);
    result = vd_select(magnitude == __builtin_inf(), magnitude, result);
    return vd_with_sign(result, vd_sign_of(x));
}
TK_INLINE vd vd_acosh(vd x) {
    vd t = x - 1.0;
    vd result = vd_log1p(t + vd_sqrt(t * (x + 1.0)));
    return vd_select(x >= 1.0, result, VD_NAN);
}
TK_INLINE vd vd_atanh(vd x) {
    vd magnitude = vd_abs(x);
    vd result = 0.5 * vd_log1p((magnitude + magnitude) / (1.0 - magnitude));
    result = vd_select(magnitude == 1.0, VD_INF, result);
    return vd_with_sign(result, vd_sign_of(x));
}

/* erfc(x) for x >= 0: (1 + 2x) exp(x^2) erfc(x) is smooth in (x - 3.75) / (x + 3.75) (Shepherd and
 * Laframboise, 1981); beyond 15 the result is below every f32. One division serves both quotients.
 */
TK_INLINE vd vd_erfc_positive(vd x) {
    static const double q[] = {
        0x1.3ccda0b0f65d4p+0,  -0x1.1f36769fb5324p-3, 0x1.d5f732f1c553cp-9,
        0x1.5101665e80d4ep-4,  -0x1.bdac05963862ap-4, 0x1.7a141aea82f57p-4,
        -0x1.e0a818175577dp-5, 0x1.d0bf93f40c5c8p-6,  -0x1.417471b4600c4p-7,
        0x1.c5ef872e980c3p-10, 0x1.9592641060dcdp-12, -0x1.ff01138969564p-13};
    x = vd_select(x > 15.0, vd_set(15.0), x);
    vd sum = x + 3.75, twice = x + x + 1.0;
    vd inverse = 1.0 / (sum * twice);
    vd t = (x - 3.75) * twice * inverse;
    return vd_poly(t, q, 12) * vd_exp(-x * x) * (sum * inverse);
}

/* x times the normal distribution function, with full relative accuracy in the lower tail. */
TK_INLINE vd vd_gelu(vd x) {
    vd tail = 0.5 * vd_erfc_positive(vd_abs(x) * 0x1.6a09e667f3bcdp-1);
    vd result = x * vd_select(x > 0.0, 1.0 - tail, tail);
    return vd_select(x == -__builtin_inf(), vd_set(-0.0), result);
}
TK_INLINE vd vd_silu(vd x) {
    vd result = x / (1.0 + vd_exp(-x));
    return vd_select(x == -__builtin_inf(), vd_set(-0.0), result);
}
TK_INLINE vd vd_gelu_tanh(vd x) {
    vd u = x * vd_madd(x * x, vd_set(2.0 * 0.7978845608028654 * 0.044715),
                       vd_set(2.0 * 0.7978845608028654));
    vd result = x / (1.0 + vd_exp(-u));
    return vd_select(x == -__builtin_inf(), vd_set(-0.0), result);
}

/* erfinv by w = -log(1 - x^2): polynomial in w - 2.5 up to 5, in sqrt(w) - 3 above. */
TK_INLINE vd vd_erfinv(vd x) {
    static const double p[] = TK_POLY_ERFINV_CENTRAL;
    static const double q[] = TK_POLY_ERFINV_TAIL;
    vd w = -vd_log((1.0 - x) * (1.0 + x));
    vd central = vd_poly(w - 2.5, p, 13);
    vd tail = vd_poly(vd_sqrt(w) - 3.0, q, 12);
    vd result = x * vd_select(w < 5.0, central, tail);
    return vd_select(vd_abs(x) == 1.0, vd_with_sign(VD_INF, vd_sign_of(x)), result);
}

#endif
