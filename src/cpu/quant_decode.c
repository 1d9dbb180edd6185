/* Codes to values. The loops over a group are vector code (vec_body_quant.inc), which may read up
 * to three bytes past the codes it is given: the last group asked for goes through a copy. */
#include <assert.h>
#include <string.h>

#include "cpu/body_copy.h"
#include "cpu/quant.h"
#include "cpu/vec_table.h"

/* 2^(byte - 127): the float with this exponent; the smallest is subnormal, the largest infinity. */
static float power_of_two(uint8_t byte) {
    return tk_bits_float(byte ? (uint32_t)byte << 23 : 1u << 22);
}

static float scale_at(const tk_quant_kind *kind, const void *scales, int64_t group) {
    switch (kind->quant.mode) {
    case TK_QUANT_NVFP4:
        return tk_fp8_to_f32(((const uint8_t *)scales)[group]) * kind->unit;
    case TK_QUANT_MXFP4:
    case TK_QUANT_MXFP8:
        return power_of_two(((const uint8_t *)scales)[group]);
    default:
        break;
    }
    if (kind->scale_dtype == TK_FLOAT32) return ((const float *)scales)[group];
    uint16_t half = ((const uint16_t *)scales)[group];
    return kind->scale_dtype == TK_FLOAT16 ? tk_f16_to_f32(half) : tk_bf16_to_f32(half);
}

static void decode_group(const tk_quant_kind *kind, const tk_vec_table *table, const uint8_t *codes,
                         float scale, float bias, float *out) {
    int64_t size = kind->quant.group_size;
    if (kind->quant.mode == TK_QUANT_AFFINE)
        table->unpack_affine(codes, kind->quant.bits, scale, bias, out, size);
    else if (kind->quant.mode == TK_QUANT_MXFP8)
        table->unpack_fp8(codes, scale, out, size);
    else
        table->unpack_fp4(codes, scale, out, size);
}

void tk_quant_decode_f32(const tk_quant_kind *kind, tk_quant_row row, int64_t begin, int64_t count,
                         float *out) {
    assert(kind->scale_dtype != TK_FLOAT64);
    const tk_vec_table *table = tk_vec_table_get();
    int64_t size = kind->quant.group_size;
    size_t bytes = (size_t)tk_quant_words(kind->quant, size) * sizeof *row.codes;
    uint8_t copy[TK_QUANT_GROUP_MAX + 4];
    for (int64_t group = begin; group < begin + count; group++) {
        const uint8_t *codes = (const uint8_t *)row.codes + (size_t)group * bytes;
        if (group == begin + count - 1) {
            memcpy(copy, codes, bytes);
            memset(copy + bytes, 0, 4);
            codes = copy;
        }
        float bias = row.biases ? scale_at(kind, row.biases, group) : 0;
        decode_group(kind, table, codes, scale_at(kind, row.scales, group), bias, out);
        out += size;
    }
}

static uint32_t code_at(const uint32_t *words, int64_t bits, int64_t index) {
    int64_t bit = index * bits, word = bit / 32, shift = bit % 32;
    uint64_t held = words[word];
    if (shift + bits > 32) held |= (uint64_t)words[word + 1] << 32;
    return (uint32_t)(held >> shift) & ((1u << bits) - 1u);
}

void tk_quant_decode_f64(const tk_quant_kind *kind, tk_quant_row row, int64_t begin, int64_t count,
                         double *out) {
    int64_t size = kind->quant.group_size;
    float single[TK_QUANT_GROUP_MAX];
    for (int64_t group = begin; group < begin + count; group++, out += size) {
        if (!tk_quant_is_affine(kind->quant) || kind->scale_dtype != TK_FLOAT64) {
            tk_quant_decode_f32(kind, row, group, 1, single);
            tk_convert_run(TK_FLOAT32, TK_FLOAT64, single, out, size);
            continue;
        }
        double scale = ((const double *)row.scales)[group],
               bias = ((const double *)row.biases)[group];
        for (int64_t i = 0; i < size; i++)
            out[i] = scale * code_at(row.codes, kind->quant.bits, group * size + i) + bias;
    }
}
