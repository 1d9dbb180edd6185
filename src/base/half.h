/* f16 and bf16 as uint16_t, with exact conversions: round to nearest even, subnormals kept, NaN
 * stays NaN (quiet bit set, payload's high bits kept), overflow goes to infinity.
 *
 * Plain C, so every target has it; the vector code has its own forms that must agree bit for bit
 * (tests sweep all 65,536 halves and the float boundaries between them). */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t tk_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline float tk_bits_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline float tk_bf16_to_f32(uint16_t half) { return tk_bits_float((uint32_t)half << 16); }

static inline uint16_t tk_f32_to_bf16(float value) {
    uint32_t bits = tk_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x0040u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float tk_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1fu;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 0) {
        float value = (float)fraction * 0x1p-24f;
        return tk_bits_float(tk_float_bits(value) | sign);
    }
    if (exponent == 31) {
        uint32_t quiet = fraction ? 0x00400000u : 0;
        return tk_bits_float(sign | 0x7f800000u | quiet | fraction << 13);
    }
    return tk_bits_float(sign | (exponent + 112u) << 23 | fraction << 13);
}

static inline uint16_t tk_f32_to_f16(float value) {
    uint32_t bits = tk_float_bits(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and above */
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 leaves the rounded count of 2^-24 */
        float shifted = tk_bits_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (uint16_t)(tk_float_bits(shifted) - 0x3f000000u));
    }
    uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (uint16_t)((rounded - 0x38000000u) >> 13));
}

/* A double as the float between it and zero, with the last bit set when it was not exact ("round to
 * odd"): rounding that to a half gives the same as rounding the double once. */
static inline float tk_f64_to_f32_odd(double value) {
    float nearest = (float)value;
    if ((double)nearest == value || value != value) return nearest;
    double magnitude = value < 0 ? -value : value,
           rounded = nearest < 0 ? -(double)nearest : nearest;
    uint32_t bits = tk_float_bits(nearest);
    if (rounded > magnitude) bits--;
    return tk_bits_float(bits | 1u);
}

static inline uint16_t tk_f64_to_f16(double value) {
    return tk_f32_to_f16(tk_f64_to_f32_odd(value));
}
static inline uint16_t tk_f64_to_bf16(double value) {
    return tk_f32_to_bf16(tk_f64_to_f32_odd(value));
}

#endif
