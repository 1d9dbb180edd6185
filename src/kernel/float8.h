/* fp8 and tf32 as bits, with exact conversions: round to nearest even, subnormals kept.
 *
 * e4m3 has no infinity: S.1111.111 is NaN and what is too large saturates to 448, as the hardware's
 * satfinite conversions do; e5m2 saturates to 57344. NaN stays NaN. tf32 keeps 10 bits of fraction;
 * the hardware rounds ties away from zero (rna). */
#ifndef KERNEL_FLOAT8_H
#define KERNEL_FLOAT8_H

#include <math.h>
#include <stdint.h>

#include "base/half.h"

/* A finite magnitude in units of the last place at its exponent (at least the least normal one). */
static inline uint8_t tk_f64_to_8(double value, int fraction_bits, int bias, double most,
                                  uint8_t nan) {
    uint8_t sign = (uint8_t)(signbit(value) ? 0x80 : 0);
    double magnitude = fabs(value);
    int exponent, least = 1 - bias;
    if (isnan(value)) return (uint8_t)(sign | nan);
    if (magnitude > most) magnitude = most;
    frexp(magnitude, &exponent);
    exponent--;
    if (magnitude == 0 || exponent < least) exponent = least;
    double steps = rint(ldexp(magnitude, fraction_bits - exponent));
    unsigned code =
        ((unsigned)(exponent + bias) << fraction_bits) + (unsigned)steps - (1u << fraction_bits);
    return (uint8_t)(sign | code);
}

static inline uint8_t tk_f64_to_e4m3(double value) { return tk_f64_to_8(value, 3, 7, 448, 0x7f); }
static inline uint8_t tk_f64_to_e5m2(double value) {
    return tk_f64_to_8(value, 2, 15, 57344, 0x7f);
}

static inline float tk_e4m3_to_f32(uint8_t bits) {
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 0x7f) == 0x7f) return tk_bits_float(0x7fffffffu);
    float magnitude =
        exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
    return bits & 0x80 ? -magnitude : magnitude;
}

/* The upper half of an f16. */
static inline float tk_e5m2_to_f32(uint8_t bits) { return tk_f16_to_f32((uint16_t)(bits << 8)); }

static inline uint32_t tk_f64_to_tf32(double value) {
    uint32_t bits = tk_float_bits((float)value);
    if ((bits & 0x7fffffffu) >= 0x7f800000u) return bits;
    return (bits + 0x1000u) & ~0x1fffu;
}

#endif
