/* Conversions and changes of type.
 *
 * Floats of 8 bits are bytes: they are converted two at a time, packed into 16 bits, by
 * instructions as text, as are roundings that the dialects lack. Between them and other floats than
 * f16 the way goes through f16 or f32, which is exact on the way up and rounds once on the way
 * down. What is refused is what the hardware does not do in one instruction, as in the PTX target.
 */
#include <string.h>

#include "target/cute/cute.h"

static tk_ktype type_of(const tk_kop *op, int index) { return op->operands[index]->type; }
static tk_kscalar from_of(const tk_kop *op) { return (tk_kscalar)type_of(op, 0).scalar; }
static tk_kscalar to_of(const tk_kop *op) { return (tk_kscalar)op->results[0]->type.scalar; }

static bool is_byte(unsigned scalar) { return scalar == TK_K_E4M3 || scalar == TK_K_E5M2; }
static bool is_half(unsigned scalar) { return scalar == TK_K_F16 || scalar == TK_K_BF16; }

/* By place in the words of `round`. */
enum { NEAREST, TO_ZERO, DOWN, UP, NEAREST_AWAY };
static const char *const modes[] = {"rn", "rz", "rm", "rp", "rna"};
static int64_t mode_of(const tk_kop *op) { return tk_kop_attr(op, TK_KA_round); }
static bool saturates(const tk_kop *op) { return tk_kop_attr(op, TK_KA_saturate) != 0; }

static void fail_conversion(tk_cute *x, const tk_kop *op, const char *why) {
    tk_cute_fail(x, op, "from %s to %s%s", tk_kscalar_text(from_of(op)), tk_kscalar_text(to_of(op)),
                 why);
}

/* ---- one instruction ---- */

static const char *cast(tk_cute *x, const char *name, const char *word, const char *value,
                        const char *from, const char *to) {
    return tk_cute_let_as(x, name, "%s %s : %s to %s", word, value, from, to);
}

/* An instruction of one operand: halves go as the 16 bits that they are. */
static const char *put_cvt(tk_cute *x, const char *instruction, const char *value, const char *from,
                           const char *to) {
    bool half_in = !strcmp(from, "f16") || !strcmp(from, "bf16"),
         half_out = !strcmp(to, "f16") || !strcmp(to, "bf16");
    if (half_in) value = cast(x, NULL, "arith.bitcast", value, from, "i16");
    const tk_cute_value operand = {value, half_in ? "i16" : from};
    const char *result = tk_cute_pure_insn(x, NULL, half_out ? "i16" : to,
                                           tk_cute_text(x, "%s $0, $1;", instruction), 1, &operand);
    return half_out ? cast(x, NULL, "arith.bitcast", result, "i16", to) : result;
}

static void put_cvts(tk_cute *x, const tk_kop *op, const char *instruction) {
    const char *elements[16], *from = tk_cute_scalar(from_of(op)), *to = tk_cute_scalar(to_of(op));
    for (int i = 0; i < type_of(op, 0).lanes; i++)
        elements[i] = put_cvt(x, instruction, tk_cute_element(x, op->operands[0], i), from, to);
    tk_cute_gather(x, op, elements);
}

static void put_cast(tk_cute *x, const tk_kop *op, const char *word) {
    cast(x, tk_cute_result(x, op), word, tk_cute_operand(x, op, 0), tk_cute_type(x, type_of(op, 0)),
         tk_cute_type(x, op->results[0]->type));
}

/* ---- floats of 8 bits ---- */

static const char *pair_type(tk_kscalar scalar) {
    return scalar == TK_K_E4M3 ? "e4m3x2" : "e5m2x2";
}

/* An element as f32: tf32 is one. */
static const char *widened(tk_cute *x, const tk_kop *op, int element) {
    const char *value = tk_cute_element(x, op->operands[0], element);
    return is_half(from_of(op))
               ? cast(x, NULL, "arith.extf", value, tk_cute_scalar(from_of(op)), "f32")
               : value;
}

/* The two bytes of a pair as elements; of the last one alone only the first. */
static void split_pair(tk_cute *x, const char *pair, const char **out, bool two) {
    out[0] = cast(x, NULL, "arith.trunci", pair, "i16", "i8");
    if (!two) return;
    const char *high =
        tk_cute_let(x, "arith.shrui %s, %s : i16", pair, tk_cute_constant(x, 8, "i16"));
    out[1] = cast(x, NULL, "arith.trunci", high, "i16", "i8");
}

static void to_bytes(tk_cute *x, const tk_kop *op) {
    const char *elements[16];
    int lanes = type_of(op, 0).lanes;
    if (from_of(op) == TK_K_F64 || mode_of(op) != NEAREST) {
        fail_conversion(x, op, from_of(op) == TK_K_F64 ? "" : ", but to nearest even");
        return;
    }
    for (int i = 0; i < lanes; i += 2) {
        bool two = i + 1 < lanes;
        const char *low = widened(x, op, i),
                   *high = two ? widened(x, op, i + 1) : tk_cute_let(x, "arith.constant 0.0 : f32");
        const tk_cute_value operands[] = {{high, "f32"}, {low, "f32"}};
        const char *pair = tk_cute_pure_insn(
            x, NULL, "i16",
            tk_cute_text(x, "cvt.rn.satfinite.%s.f32 $0, $1, $2;", pair_type(to_of(op))), 2,
            operands);
        split_pair(x, pair, elements + i, two);
    }
    tk_cute_gather(x, op, elements);
}

/* Bytes i and i + 1, where it is there, in 16 bits. */
static const char *join_pair(tk_cute *x, const tk_kop *op, int i) {
    const char *low =
        cast(x, NULL, "arith.extui", tk_cute_element(x, op->operands[0], i), "i8", "i16");
    if (i + 1 == type_of(op, 0).lanes) return low;
    const char *high =
        cast(x, NULL, "arith.extui", tk_cute_element(x, op->operands[0], i + 1), "i8", "i16");
    high = tk_cute_let(x, "arith.shli %s, %s : i16", high, tk_cute_constant(x, 8, "i16"));
    return tk_cute_let(x, "arith.ori %s, %s : i16", low, high);
}

/* Two bytes as two f16 in 32 bits. */
static const char *pair_to_f16(tk_cute *x, const tk_kop *op, int i) {
    const tk_cute_value pair = {join_pair(x, op, i), "i16"};
    return tk_cute_pure_insn(x, NULL, "i32",
                             tk_cute_text(x, "cvt.rn.f16x2.%s $0, $1;", pair_type(from_of(op))), 1,
                             &pair);
}

/* Every value of 8 bits is one of f16 and of f32; to bf16 and tf32 it is exact too. */
static const char *from_f16(tk_cute *x, const char *half, tk_kscalar to) {
    if (to == TK_K_F16) return half;
    if (to == TK_K_F64) return cast(x, NULL, "arith.extf", half, "f16", "f64");
    const char *wide = cast(x, NULL, "arith.extf", half, "f16", "f32");
    return to == TK_K_BF16 ? cast(x, NULL, "arith.truncf", wide, "f32", "bf16") : wide;
}

static void from_bytes(tk_cute *x, const tk_kop *op) {
    const char *elements[16], *halves = "";
    if (saturates(op) && from_of(op) == TK_K_E5M2) {
        fail_conversion(x, op, ", saturating");
        return;
    }
    for (int i = 0; i < type_of(op, 0).lanes; i++) {
        if (i % 2 == 0) {
            halves = cast(x, NULL, "llvm.bitcast", pair_to_f16(x, op, i), "i32", "vector<2xf16>");
        }
        const char *half =
            tk_cute_let(x, "vector.extract %s[%d] : f16 from vector<2xf16>", halves, i % 2);
        elements[i] = from_f16(x, half, to_of(op));
    }
    tk_cute_gather(x, op, elements);
}

/* Between the two of 8 bits. */
static void between_bytes(tk_cute *x, const tk_kop *op) {
    const char *elements[16];
    int lanes = type_of(op, 0).lanes;
    if (mode_of(op) != NEAREST) {
        fail_conversion(x, op, ", but to nearest even");
        return;
    }
    for (int i = 0; i < lanes; i += 2) {
        const tk_cute_value halves = {pair_to_f16(x, op, i), "i32"};
        const char *pair = tk_cute_pure_insn(
            x, NULL, "i16",
            tk_cute_text(x, "cvt.rn.satfinite.%s.f16x2 $0, $1;", pair_type(to_of(op))), 1, &halves);
        split_pair(x, pair, elements + i, i + 1 < lanes);
    }
    tk_cute_gather(x, op, elements);
}

/* ---- tf32 ---- */

/* It is rounded from f32; the halves are exact in it. */
static void to_tf32(tk_cute *x, const tk_kop *op) {
    int64_t mode = mode_of(op);
    if (from_of(op) == TK_K_F64 || mode == DOWN || mode == UP ||
        (saturates(op) && mode != NEAREST_AWAY)) {
        fail_conversion(x, op, saturates(op) ? ", saturating" : "");
        return;
    }
    if (is_half(from_of(op)))
        put_cast(x, op, "arith.extf");
    else
        put_cvts(
            x, op,
            tk_cute_text(x, "cvt.%s%s.tf32.f32", modes[mode], saturates(op) ? ".satfinite" : ""));
}

/* ---- f16, bf16, f32, f64 ---- */

static int width_of(tk_kscalar scalar) {
    return scalar == TK_K_TF32 ? 4 : tk_kscalar_bytes(scalar);
}

/* Between the halves by way of f32, which holds both. */
static void between_halves(tk_cute *x, const tk_kop *op) {
    tk_ktype from = type_of(op, 0), wide = from;
    wide.scalar = TK_K_F32;
    const char *middle = cast(x, NULL, "arith.extf", tk_cute_operand(x, op, 0),
                              tk_cute_type(x, from), tk_cute_type(x, wide));
    cast(x, tk_cute_result(x, op), "arith.truncf", middle, tk_cute_type(x, wide),
         tk_cute_type(x, op->results[0]->type));
}

/* tf32 comes here as the f32 that it is. */
static void narrow(tk_cute *x, const tk_kop *op) {
    int64_t mode = mode_of(op);
    tk_kscalar from = from_of(op) == TK_K_TF32 ? TK_K_F32 : from_of(op);
    bool clips = saturates(op);
    if (mode == NEAREST_AWAY || (to_of(op) == TK_K_BF16 && mode > TO_ZERO)) {
        fail_conversion(x, op, " with this rounding");
    } else if (clips && !(is_half(to_of(op)) && from_of(op) == TK_K_F32 && mode <= TO_ZERO)) {
        fail_conversion(x, op, ", saturating");
    } else if (mode || clips) {
        put_cvts(x, op,
                 tk_cute_text(x, "cvt.%s%s.%s.%s", modes[mode], clips ? ".satfinite" : "",
                              tk_kscalar_text(to_of(op)), tk_kscalar_text(from)));
    } else if (width_of(to_of(op)) == width_of(from)) {
        between_halves(x, op);
    } else {
        put_cast(x, op, "arith.truncf");
    }
}

static void convert_floats(tk_cute *x, const tk_kop *op) {
    tk_kscalar from = from_of(op), to = to_of(op);
    int growth = width_of(to) - width_of(from);
    if (from == to && saturates(op) && from != TK_K_E4M3)
        fail_conversion(x, op, ", saturating");
    else if (from == to)
        tk_cute_put_alias(x, op);
    else if (is_byte(from) && is_byte(to))
        between_bytes(x, op);
    else if (is_byte(from))
        from_bytes(x, op);
    else if (is_byte(to))
        to_bytes(x, op);
    else if (to == TK_K_TF32)
        to_tf32(x, op);
    else if (growth < 0 || (growth == 0 && is_half(to)))
        narrow(x, op);
    else if (saturates(op))
        fail_conversion(x, op, ", saturating");
    else if (growth == 0)
        tk_cute_put_alias(x, op); /* tf32 is f32 */
    else
        put_cast(x, op, "arith.extf");
}

/* ---- integers and floats ---- */

/* The integer with 32 bits at least, which the instructions take. */
static const char *at_least_word(tk_cute *x, const tk_kop *op, int element, bool is_signed,
                                 const char **out_type) {
    const char *value = tk_cute_element(x, op->operands[0], element),
               *type = tk_cute_scalar(from_of(op));
    bool narrow_one = tk_kscalar_bytes(from_of(op)) < 4;
    *out_type = narrow_one ? "i32" : type;
    if (!narrow_one) return value;
    return cast(x, NULL, is_signed ? "arith.extsi" : "arith.extui", value, type, "i32");
}

/* With a rounding, or to bf16, it is an instruction as text. */
static void float_from_integer(tk_cute *x, const tk_kop *op) {
    bool is_signed = op->code == TK_KOP_float_from_signed;
    int64_t mode = mode_of(op) == NEAREST_AWAY ? NEAREST : mode_of(op);
    const char *elements[16], *type;
    if (mode == NEAREST && to_of(op) != TK_K_BF16) {
        put_cast(x, op, is_signed ? "arith.sitofp" : "arith.uitofp");
        return;
    }
    for (int i = 0; i < type_of(op, 0).lanes; i++) {
        const char *value = at_least_word(x, op, i, is_signed, &type);
        elements[i] =
            put_cvt(x,
                    tk_cute_text(x, "cvt.%s.%s.%c%s", modes[mode], tk_kscalar_text(to_of(op)),
                                 is_signed ? 's' : 'u', type + 1),
                    value, type, tk_cute_scalar(to_of(op)));
    }
    tk_cute_gather(x, op, elements);
}

void tk_cute_put_convert(tk_cute *x, const tk_kop *op) {
    if (op->code == TK_KOP_convert)
        convert_floats(x, op);
    else
        float_from_integer(x, op);
}

/* Floats to integers, saturating, NaN to 0; bf16 as the f32 that it begins. */
void tk_cute_put_saturate(tk_cute *x, const tk_kop *op) {
    const char *elements[16], *source = tk_cute_scalar(from_of(op)),
                              *target = tk_cute_scalar(to_of(op));
    bool widens = from_of(op) == TK_K_BF16;
    if (widens) source = "f32";
    for (int i = 0; i < type_of(op, 0).lanes; i++)
        elements[i] = tk_cute_let_as(
            x, tk_cute_own_name(x, op),
            "llvm.call_intrinsic \"llvm.fpto%ci.sat.%s.%s\"(%s) : (%s) -> %s",
            op->code == TK_KOP_signed_from_float ? 's' : 'u', target, source,
            widens ? widened(x, op, i) : tk_cute_element(x, op->operands[0], i), source, target);
    tk_cute_gather(x, op, elements);
}

void tk_cute_put_resize(tk_cute *x, const tk_kop *op) {
    put_cast(x, op,
             op->code == TK_KOP_truncate        ? "arith.trunci"
             : op->code == TK_KOP_extend_signed ? "arith.extsi"
                                                : "arith.extui");
}

/* Vectors of one element are the way between a number and a vector. */
void tk_cute_put_bitcast(tk_cute *x, const tk_kop *op) {
    tk_ktype from = type_of(op, 0), to = op->results[0]->type;
    const char *source = tk_cute_scalar((tk_kscalar)from.scalar),
               *target = tk_cute_scalar((tk_kscalar)to.scalar);
    if (from.lanes == 1 && to.lanes == 1) {
        if (!strcmp(source, target))
            tk_cute_put_alias(x, op);
        else
            put_cast(x, op, "arith.bitcast");
        return;
    }
    const char *vector = tk_cute_operand(x, op, 0);
    if (from.lanes == 1)
        vector = tk_cute_let(x, "vector.broadcast %s : %s to vector<1x%s>", vector, source, source);
    const char *cast = tk_cute_let(x, "vector.bitcast %s : vector<%dx%s> to vector<%dx%s>", vector,
                                   from.lanes, source, to.lanes, target);
    if (to.lanes > 1)
        tk_cute_alias(x, op->results[0], cast);
    else
        tk_cute_line(x, "%s = vector.extract %s[0] : %s from vector<1x%s>", tk_cute_result(x, op),
                     cast, target, target);
}
