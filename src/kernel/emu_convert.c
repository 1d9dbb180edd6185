/* Bodies of conversions. Floats go through f64, which holds every value of every type here exactly
 * but large i64; rounding to the target is done once, in the mode that the operation names. */
#include <math.h>

#include "base/half.h"
#include "kernel/emu.h"
#include "kernel/float8.h"

#define BODY(function)                                                                             \
    static void function(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask)

/* By place in the words of the attribute `round`. */
enum { NEAREST, TO_ZERO, DOWN, UP, NEAREST_AWAY };

/* ---- elements as bits ---- */

static uint64_t bits_at(const void *from, size_t index, int bytes) {
    uint64_t bits = 0;
    memcpy(&bits, (const unsigned char *)from + index * (size_t)bytes, (size_t)bytes);
    return bits;
}

static void put_bits(void *to, size_t index, int bytes, uint64_t bits) {
    memcpy((unsigned char *)to + index * (size_t)bytes, &bits, (size_t)bytes);
}

/* ---- rounding ---- */

/* The neighbour of a value of the type, as bits, above or below; values of one sign follow each
 * other. */
static uint64_t next_bits(tk_kscalar scalar, uint64_t bits, bool up) {
    uint64_t sign = (uint64_t)1 << (8 * tk_kscalar_bytes(scalar) - 1);
    uint64_t step = scalar == TK_K_TF32 ? 0x2000 : 1;
    if ((bits & ~sign) == 0) return up ? step : sign | step;
    bool grows = up == !(bits & sign);
    return grows ? bits + step : bits - step;
}

static uint64_t round_directed(tk_kscalar scalar, double value, int64_t mode) {
    uint64_t bits = tk_kscalar_bits(scalar, value);
    double rounded = tk_kscalar_value(scalar, bits);
    if (isnan(value) || rounded == value || (isinf(value) && isinf(rounded))) return bits;
    bool up = mode == UP || (mode == TO_ZERO && value < 0);
    if (up ? rounded < value : rounded > value) return next_bits(scalar, bits, up);
    return bits;
}

static bool is_infinite(tk_kscalar scalar, uint64_t bits) {
    return isinf(tk_kscalar_value(scalar, bits));
}

static uint64_t largest_bits(tk_kscalar scalar, bool negative) {
    static const uint64_t largest[] = {[TK_K_F16] = 0x7bff,
                                       [TK_K_BF16] = 0x7f7f,
                                       [TK_K_TF32] = 0x7f7fe000,
                                       [TK_K_F32] = 0x7f7fffff,
                                       [TK_K_F64] = 0x7fefffffffffffff,
                                       [TK_K_E4M3] = 0x7e,
                                       [TK_K_E5M2] = 0x7b};
    uint64_t sign = (uint64_t)negative << (8 * tk_kscalar_bytes(scalar) - 1);
    return largest[scalar] | sign;
}

/* Constants of tf32 have their ties away from zero; this is to even. */
static uint64_t tf32_to_even(double value) {
    uint32_t bits = tk_float_bits(tk_f64_to_f32_odd(value));
    if ((bits & 0x7fffffffu) >= 0x7f800000u) return bits;
    return (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
}

static uint64_t rounded_bits(tk_kscalar scalar, double value, int64_t mode, bool saturate) {
    uint64_t bits = mode == NEAREST && scalar == TK_K_TF32    ? tf32_to_even(value)
                    : mode == NEAREST || mode == NEAREST_AWAY ? tk_kscalar_bits(scalar, value)
                                                              : round_directed(scalar, value, mode);
    if (saturate && is_infinite(scalar, bits)) return largest_bits(scalar, signbit(value));
    return bits;
}

/* ---- float to float ---- */

BODY(convert_float) {
    tk_kscalar from = (tk_kscalar)insn->op->operands[0]->type.scalar,
               to = (tk_kscalar)insn->op->results[0]->type.scalar;
    int from_bytes = tk_kscalar_bytes(from), to_bytes = tk_kscalar_bytes(to);
    int64_t mode = tk_kop_attr(insn->op, TK_KA_round);
    bool saturate = tk_kop_attr(insn->op, TK_KA_saturate);
    for (size_t e = 0; e < insn->count; e++)
        TK_EMU_EACH(mask, {
            size_t at = e * TK_EMU_LANES + (size_t)l;
            double value =
                tk_kscalar_value(from, bits_at(tk_emu_from(warp, insn, 0), at, from_bytes));
            put_bits(tk_emu_to(warp, insn), at, to_bytes, rounded_bits(to, value, mode, saturate));
        });
}

/* The common ones, nearest even. */
#define FAST(name, S, T, function)                                                                 \
    BODY(name) {                                                                                   \
        const S *from = tk_emu_from(warp, insn, 0);                                                \
        T *to = tk_emu_to(warp, insn);                                                             \
        for (int e = 0; e < insn->count * TK_EMU_LANES; e += TK_EMU_LANES)                         \
            TK_EMU_EACH(mask, to[e + l] = function(from[e + l]));                                  \
    }
FAST(f32_from_f16, uint16_t, float, tk_f16_to_f32)
FAST(f32_from_bf16, uint16_t, float, tk_bf16_to_f32)
FAST(f16_from_f32, float, uint16_t, tk_f32_to_f16)
FAST(bf16_from_f32, float, uint16_t, tk_f32_to_bf16)

tk_emu_pick tk_emu_pick_convert(const tk_kop *op) {
    static const struct {
        uint8_t from, to;
        tk_emu_body body;
    } fast[] = {{TK_K_F16, TK_K_F32, f32_from_f16},
                {TK_K_BF16, TK_K_F32, f32_from_bf16},
                {TK_K_F32, TK_K_F16, f16_from_f32},
                {TK_K_F32, TK_K_BF16, bf16_from_f32}};
    bool plain = !tk_kop_attr(op, TK_KA_round) && !tk_kop_attr(op, TK_KA_saturate);
    for (size_t i = 0; i < sizeof fast / sizeof *fast && plain; i++)
        if (fast[i].from == op->operands[0]->type.scalar &&
            fast[i].to == op->results[0]->type.scalar)
            return (tk_emu_pick){.body = fast[i].body};
    return (tk_emu_pick){.body = convert_float};
}

/* ---- integers and floats ---- */

/* The upper 53 bits of a magnitude, and whether any below was set. */
static double upper_bits(uint64_t magnitude, bool *out_more, int *out_lost) {
    int length = magnitude ? 64 - __builtin_clzll(magnitude) : 0;
    *out_lost = length > 53 ? length - 53 : 0;
    *out_more = (magnitude & (((uint64_t)1 << *out_lost) - 1)) != 0;
    return (double)(magnitude >> *out_lost);
}

static uint64_t f64_of_integer(bool negative, uint64_t magnitude, int64_t mode) {
    bool more;
    int lost;
    double cut = upper_bits(magnitude, &more, &lost);
    cut = ldexp(cut, lost);
    if (mode == NEAREST) cut = (double)magnitude;
    if (more && mode == (negative ? DOWN : UP)) cut = nextafter(cut, INFINITY);
    return tk_kscalar_bits(TK_K_F64, negative ? -cut : cut);
}

/* Narrower types see the bits below the 53 as one that is set: rounding to odd. */
static uint64_t float_of_integer(tk_kscalar scalar, bool negative, uint64_t magnitude,
                                 int64_t mode) {
    bool more;
    int lost;
    if (scalar == TK_K_F64) return f64_of_integer(negative, magnitude, mode);
    uint64_t upper = (uint64_t)upper_bits(magnitude, &more, &lost) | more;
    double odd = ldexp((double)upper, lost);
    return rounded_bits(scalar, negative ? -odd : odd, mode, false);
}

static void from_integer(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                         bool is_signed) {
    tk_kscalar scalar = (tk_kscalar)insn->op->results[0]->type.scalar;
    int from_bytes = tk_kscalar_bytes((tk_kscalar)insn->op->operands[0]->type.scalar),
        to_bytes = tk_kscalar_bytes(scalar);
    int64_t mode = tk_kop_attr(insn->op, TK_KA_round);
    for (size_t e = 0; e < insn->count; e++)
        TK_EMU_EACH(mask, {
            size_t at = e * TK_EMU_LANES + (size_t)l;
            uint64_t bits = bits_at(tk_emu_from(warp, insn, 0), at, from_bytes);
            bool negative = is_signed && bits >> (8 * from_bytes - 1);
            uint64_t magnitude = negative
                                     ? 0 - (uint64_t)((int64_t)(bits << (64 - 8 * from_bytes)) >>
                                                      (64 - 8 * from_bytes))
                                     : bits;
            put_bits(tk_emu_to(warp, insn), at, to_bytes,
                     float_of_integer(scalar, negative, magnitude, mode));
        });
}

BODY(from_signed) { from_integer(warp, insn, mask, true); }
BODY(from_unsigned) { from_integer(warp, insn, mask, false); }

#define PICK(name, function)                                                                       \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = function};                                                    \
    }
PICK(float_from_signed, from_signed)
PICK(float_from_unsigned, from_unsigned)

/* Towards zero, to the nearest of the range. */
static uint64_t integer_of_float(double value, int bits, bool is_signed) {
    double top = ldexp(1, is_signed ? bits - 1 : bits);
    uint64_t most = is_signed    ? ((uint64_t)1 << (bits - 1)) - 1
                    : bits == 64 ? UINT64_MAX
                                 : ((uint64_t)1 << bits) - 1;
    if (isnan(value)) return 0;
    if (value >= top) return most;
    if (!is_signed) return value <= 0 ? 0 : (uint64_t)value;
    return value <= -top ? most + 1 : (uint64_t)(int64_t)value;
}

static void to_integer(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, bool is_signed) {
    tk_kscalar from = (tk_kscalar)insn->op->operands[0]->type.scalar;
    int from_bytes = tk_kscalar_bytes(from),
        to_bytes = tk_kscalar_bytes((tk_kscalar)insn->op->results[0]->type.scalar);
    for (size_t e = 0; e < insn->count; e++)
        TK_EMU_EACH(mask, {
            size_t at = e * TK_EMU_LANES + (size_t)l;
            double value =
                tk_kscalar_value(from, bits_at(tk_emu_from(warp, insn, 0), at, from_bytes));
            put_bits(tk_emu_to(warp, insn), at, to_bytes,
                     integer_of_float(value, 8 * to_bytes, is_signed));
        });
}

BODY(to_signed) { to_integer(warp, insn, mask, true); }
BODY(to_unsigned) { to_integer(warp, insn, mask, false); }
PICK(signed_from_float, to_signed)
PICK(unsigned_from_float, to_unsigned)

/* ---- integers ---- */

static void resize(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, bool is_signed) {
    int from_bytes = tk_kscalar_bytes((tk_kscalar)insn->op->operands[0]->type.scalar),
        to_bytes = insn->wide, unused = 64 - 8 * from_bytes;
    for (size_t e = 0; e < insn->count; e++)
        TK_EMU_EACH(mask, {
            size_t at = e * TK_EMU_LANES + (size_t)l;
            uint64_t bits = bits_at(tk_emu_from(warp, insn, 0), at, from_bytes);
            put_bits(tk_emu_to(warp, insn), at, to_bytes,
                     is_signed ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits);
        });
}

BODY(resize_signed) { resize(warp, insn, mask, true); }
BODY(resize_unsigned) { resize(warp, insn, mask, false); }
/* Indices are made long everywhere. */
BODY(extend_index) {
    const int32_t *from = tk_emu_from(warp, insn, 0);
    int64_t *to = tk_emu_to(warp, insn);
    TK_EMU_EACH(mask, to[l] = from[l]);
}

tk_emu_pick tk_emu_pick_extend_signed(const tk_kop *op) {
    tk_ktype from = op->operands[0]->type, to = op->results[0]->type;
    bool index = from.scalar == TK_K_I32 && from.lanes == 1 && to.scalar == TK_K_I64;
    return (tk_emu_pick){.body = index ? extend_index : resize_signed};
}
PICK(extend_unsigned, resize_unsigned)
PICK(truncate, resize_unsigned)
