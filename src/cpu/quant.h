/* Codes of quantised rows to values and back, one row at a time on the calling thread. The formats
 * are those of graph/quant.h. */
#ifndef CPU_QUANT_H
#define CPU_QUANT_H

#include <math.h>

#include "base/half.h"
#include "graph/quant.h"
#include "tiki/dtype.h"

/* ---- e4m3: sign, 4 bits of exponent, 3 of fraction; no infinity, the largest is 448 ---- */

static inline float tk_fp8_to_f32(uint8_t code) {
    uint32_t magnitude = code & 0x7fu, sign = (uint32_t)(code & 0x80u) << 24;
    float value = magnitude < 8 ? (float)magnitude * 0x1p-9F
                                : tk_bits_float((magnitude << 20) + (120u << 23));
    if (magnitude == 0x7f) value = NAN;
    return tk_bits_float(tk_float_bits(value) | sign);
}

/* Nearest, ties to even; beyond 448 (and infinity) the largest; NaN to NaN. */
static inline uint8_t tk_f32_to_fp8(float value) {
    uint32_t bits = tk_float_bits(value), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint8_t)(sign | 0x7fu);
    if (magnitude >= 0x43e00000u) return (uint8_t)(sign | 0x7eu); /* 448 */
    if (magnitude < 0x3c800000u)                                  /* below 2^-6 */
        return (uint8_t)(sign | (uint32_t)rintf(tk_bits_float(magnitude) * 0x1p9F));
    uint32_t rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1u);
    return (uint8_t)(sign | ((rounded >> 20) - (120u << 3)));
}

/* The same for a double, rounded once. */
uint8_t tk_f64_to_fp8(double value);

/* Runs of codes and values of a float dtype. */
void tk_fp8_encode_run(tk_dtype dtype, const void *values, uint8_t *codes, int64_t count);
void tk_fp8_decode_run(tk_dtype dtype, const uint8_t *codes, void *values, int64_t count);

/* ---- rows ---- */

/* A row of codes and what its groups share. `biases` is NULL but for affine; scales and biases have
 * `scale_dtype` (affine) or are bytes. */
typedef struct tk_quant_row {
    const uint32_t *codes;
    const void *scales, *biases;
} tk_quant_row;

typedef struct tk_quant_kind {
    tk_quant quant;
    tk_dtype scale_dtype;
    float unit, per_unit; /* of scales and its inverse, by a global scale of nvfp4; otherwise 1 */
} tk_quant_kind;

/* `global` is NULL where there is none. */
static inline tk_quant_kind tk_quant_kind_of(tk_quant quant, tk_dtype scale_dtype,
                                             const float *global) {
    return (tk_quant_kind){.quant = quant,
                           .scale_dtype = scale_dtype,
                           .unit = global ? *global / TK_QUANT_GLOBAL_UNIT : 1.0F,
                           .per_unit = global ? TK_QUANT_GLOBAL_UNIT / *global : 1.0F};
}

/* Values of groups [begin, begin + count) of a row, in order. */
void tk_quant_decode_f32(const tk_quant_kind *kind, tk_quant_row row, int64_t begin, int64_t count,
                         float *out);
void tk_quant_decode_f64(const tk_quant_kind *kind, tk_quant_row row, int64_t begin, int64_t count,
                         double *out);

/* Codes, scales and biases of `groups` groups of values, which are dense, of `dtype`; scales and
 * biases of affine take that dtype. A group with a NaN gives NaN as scale and bias (affine, nvfp4:
 * the scale's NaN code; mx: the exponent 255). */
void tk_quant_encode(const tk_quant_kind *kind, tk_dtype dtype, const void *values, int64_t groups,
                     uint32_t *codes, void *scales, void *biases);

#endif
