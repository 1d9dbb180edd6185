/* Values to codes. Each step is rounded as the dtype of the values would be: half types compute in
 * f32 and are rounded where a chain of half operations would round, so codes and scales have the
 * bits that elementwise ops on the values give. */
#include <float.h>
#include <string.h>

#include "cpu/body_copy.h"
#include "cpu/quant.h"

static float narrow_f(tk_dtype dtype, float x) {
    if (dtype == TK_FLOAT16) return tk_f16_to_f32(tk_f32_to_f16(x));
    return dtype == TK_BFLOAT16 ? tk_bf16_to_f32(tk_f32_to_bf16(x)) : x;
}

static double narrow_d(tk_dtype dtype, double x) {
    (void)dtype;
    return x;
}

#define LEAST_SCALE ((REAL)1e-7F) /* below it a group counts as constant */

#define REAL float
#define NAME(name) name##_f
#define FABS fabsf
#define RINT rintf
#define ROUNDER 12582912.0F /* 3 * 2^22: sums with it are whole */
#define LDEXP ldexpf
#define FP8 tk_f32_to_fp8
#include "cpu/quant_group.inc"
#undef REAL
#undef NAME
#undef FABS
#undef RINT
#undef ROUNDER
#undef LDEXP
#undef FP8

#define REAL double
#define NAME(name) name##_d
#define FABS fabs
#define RINT rint
#define ROUNDER 6755399441055744.0 /* 3 * 2^51 */
#define LDEXP ldexp
#define FP8 tk_f64_to_fp8
#include "cpu/quant_group.inc"
#undef REAL
#undef NAME
#undef FABS
#undef RINT
#undef ROUNDER
#undef LDEXP
#undef FP8

/* One code a byte, `count` of them (a multiple of 16), into words from the lowest bit on. */
static void pack(int64_t bits, const uint8_t *codes, int64_t count, uint32_t *words) {
    uint64_t held = 0;
    int64_t filled = 0;
    for (int64_t i = 0; i < count; i++) {
        held |= (uint64_t)codes[i] << filled;
        filled += bits;
        if (filled < 32) continue;
        *words++ = (uint32_t)held;
        held >>= 32;
        filled -= 32;
    }
}

/* Element `index` of an array of `dtype`. */
static void put(tk_dtype dtype, void *array, int64_t index, double value) {
    char *at = (char *)array + index * (int64_t)tk_dtype_size(dtype);
    if (dtype == TK_FLOAT64) {
        memcpy(at, &value, sizeof value);
        return;
    }
    float single = (float)value;
    tk_convert_run(TK_FLOAT32, dtype, &single, at, 1);
}

static void encode_group_f(const tk_quant_kind *kind, tk_dtype dtype, const float *x, int64_t group,
                           uint8_t *codes, void *scales, void *biases) {
    if (!tk_quant_is_affine(kind->quant)) {
        ((uint8_t *)scales)[group] = scaled_f(kind, dtype, x, codes);
        return;
    }
    float scale, bias;
    affine_f(&kind->quant, x, codes, &scale, &bias);
    put(dtype, scales, group, (double)scale);
    put(dtype, biases, group, (double)bias);
}

static void encode_group_d(const tk_quant_kind *kind, const double *x, int64_t group,
                           uint8_t *codes, void *scales, void *biases) {
    if (!tk_quant_is_affine(kind->quant)) {
        ((uint8_t *)scales)[group] = scaled_d(kind, TK_FLOAT64, x, codes);
        return;
    }
    double scale, bias;
    affine_d(&kind->quant, x, codes, &scale, &bias);
    put(TK_FLOAT64, scales, group, scale);
    put(TK_FLOAT64, biases, group, bias);
}

void tk_quant_encode(const tk_quant_kind *kind, tk_dtype dtype, const void *values, int64_t groups,
                     uint32_t *codes, void *scales, void *biases) {
    int64_t size = kind->quant.group_size, words = tk_quant_words(kind->quant, size);
    int64_t bytes = (int64_t)tk_dtype_size(dtype) * size;
    for (int64_t group = 0; group < groups; group++) {
        const char *from = (const char *)values + group * bytes;
        uint8_t apart[TK_QUANT_GROUP_MAX];
        float single[TK_QUANT_GROUP_MAX];
        if (dtype == TK_FLOAT64) {
            encode_group_d(kind, (const double *)(const void *)from, group, apart, scales, biases);
        } else {
            tk_convert_run(dtype, TK_FLOAT32, from, single, size);
            encode_group_f(kind, dtype, single, group, apart, scales, biases);
        }
        pack(kind->quant.bits, apart, size, codes + group * words);
    }
}

/* ---- fp8 ---- */

uint8_t tk_f64_to_fp8(double value) {
    uint8_t sign = signbit(value) ? 0x80 : 0;
    double size = fabs(value);
    if (size != size) return sign | 0x7f;
    if (size >= 448) return sign | 0x7e;
    if (size < 0x1p-6) return (uint8_t)(sign | (int)rint(ldexp(size, 9)));
    int exponent;
    frexp(size, &exponent);                           /* size in [2^(exponent - 1), 2^exponent) */
    int steps = (int)rint(ldexp(size, 4 - exponent)); /* 8 to 16 */
    return (uint8_t)(sign | ((exponent + 6) * 8 + steps - 8));
}

void tk_fp8_encode_run(tk_dtype dtype, const void *values, uint8_t *codes, int64_t count) {
    if (dtype == TK_FLOAT64) {
        for (int64_t i = 0; i < count; i++) codes[i] = tk_f64_to_fp8(((const double *)values)[i]);
        return;
    }
    int64_t bytes = (int64_t)tk_dtype_size(dtype);
    float block[256];
    for (int64_t i = 0; i < count; i += 256) {
        int64_t part = count - i < 256 ? count - i : 256;
        tk_convert_run(dtype, TK_FLOAT32, (const char *)values + i * bytes, block, part);
        for (int64_t k = 0; k < part; k++) codes[i + k] = tk_f32_to_fp8(block[k]);
    }
}

void tk_fp8_decode_run(tk_dtype dtype, const uint8_t *codes, void *values, int64_t count) {
    int64_t bytes = (int64_t)tk_dtype_size(dtype);
    float block[256];
    for (int64_t i = 0; i < count; i += 256) {
        int64_t part = count - i < 256 ? count - i : 256;
        for (int64_t k = 0; k < part; k++) block[k] = tk_fp8_to_f32(codes[i + k]);
        tk_convert_run(TK_FLOAT32, dtype, block, (char *)values + i * bytes, part);
    }
}
