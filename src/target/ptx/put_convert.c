/* Conversions and changes of type.
 *
 * Bytes of fp8 have no registers of their own: they are converted in pairs, packed into 16 bits and
 * taken out again. Between fp8 and other floats than f16 the way goes through f16 or f32, which is
 * exact on the way up and rounds once on the way down. */
#include <inttypes.h>

#include "target/ptx/ptx.h"

static tk_ktype operand(const tk_kop *op, int index) { return op->operands[index]->type; }
static tk_ptx_name named(tk_ptx *x, const tk_kop *op, int index) {
    return tk_ptx_operand(x, op->operands[index], 0);
}

static const char *bit_suffix(tk_ktype type) {
    return tk_ptx_suffix(
        (tk_ktype){.kind = type.kind, .scalar = type.scalar, .lanes = 1, .space = type.space}, 'b');
}

/* ---- floats ---- */

static const char *float_name(unsigned scalar) {
    return scalar == TK_K_F16    ? "f16"
           : scalar == TK_K_BF16 ? "bf16"
           : scalar == TK_K_F32  ? "f32"
                                 : "f64";
}

static bool is_byte(unsigned scalar) { return scalar == TK_K_E4M3 || scalar == TK_K_E5M2; }

/* By place in the words of `round`. */
enum { NEAREST, TO_ZERO, DOWN, UP, NEAREST_AWAY };
static const char *const modes[] = {".rn", ".rz", ".rm", ".rp", ".rna"};

static void fail_conversion(tk_ptx *x, const tk_kop *op, const char *why) {
    tk_ptx_fail(x, op, "from %s to %s%s", tk_kscalar_text((tk_kscalar)operand(op, 0).scalar),
                tk_kscalar_text((tk_kscalar)op->results[0]->type.scalar), why);
}

/* Ties away are tf32's alone, and bf16 is not rounded down or up. */
static bool check_mode(tk_ptx *x, const tk_kop *op) {
    int64_t mode = tk_kop_attr(op, TK_KA_round);
    unsigned to = op->results[0]->type.scalar;
    if (mode == NEAREST_AWAY)
        fail_conversion(x, op, " with ties away");
    else if (to == TK_K_BF16 && mode > TO_ZERO)
        fail_conversion(x, op, ", down or up");
    return x->status == TK_OK;
}

/* An f32 register with an element's value: tf32 is one with other bits unused. */
static tk_ptx_name widened(tk_ptx *x, const tk_kop *op, int element) {
    unsigned from = operand(op, 0).scalar;
    tk_ptx_name source = tk_ptx_operand(x, op->operands[0], element);
    if (from == TK_K_F32) return source;
    tk_ptx_name wide = tk_ptx_spare(x, TK_PTX_F);
    if (from == TK_K_TF32)
        tk_ptx_line(x, "mov.b32 %s, %s", wide.text, source.text);
    else if (from == TK_K_BF16)
        tk_ptx_line(x, "mov.b32 %s, {0, %s}", wide.text, source.text);
    else
        tk_ptx_line(x, "cvt.f32.%s %s, %s", float_name(from), wide.text, source.text);
    return wide;
}

/* tf32 is rounded from f32: ties away everywhere, otherwise from sm_90 on. */
static void to_tf32(tk_ptx *x, const tk_kop *op) {
    int64_t mode = tk_kop_attr(op, TK_KA_round);
    bool exact = operand(op, 0).scalar == TK_K_F16 || operand(op, 0).scalar == TK_K_BF16;
    const char *saturate = tk_kop_attr(op, TK_KA_saturate) ? ".satfinite" : "";
    if (operand(op, 0).scalar == TK_K_F64 || mode == DOWN || mode == UP)
        fail_conversion(x, op, mode == DOWN || mode == UP ? ", down or up" : "");
    if (x->arch < 90 && mode != NEAREST_AWAY && !exact)
        fail_conversion(x, op, " but with ties away (rna) before sm_90");
    if (*saturate && mode != NEAREST_AWAY)
        fail_conversion(x, op, ", saturating, but with ties away (rna)");
    for (int i = 0; i < operand(op, 0).lanes; i++)
        tk_ptx_line(x, "cvt%s%s.tf32.f32 %s, %s", exact ? ".rna" : modes[mode], saturate,
                    tk_ptx_result(x, op, i).text, widened(x, op, i).text);
}

/* Two elements from the two bytes of a register. */
static void split_bytes(tk_ptx *x, const char *pair, tk_ptx_name low, const tk_ptx_name *high) {
    tk_ptx_line(x, "and.b16 %s, %s, 255", low.text, pair);
    if (high) tk_ptx_line(x, "shr.u16 %s, %s, 8", high->text, pair);
}

static void to_bytes(tk_ptx *x, const tk_kop *op) {
    int lanes = operand(op, 0).lanes;
    const char *type = op->results[0]->type.scalar == TK_K_E4M3 ? "e4m3x2" : "e5m2x2";
    if (operand(op, 0).scalar == TK_K_F64 || tk_kop_attr(op, TK_KA_round) != NEAREST)
        fail_conversion(x, op, operand(op, 0).scalar == TK_K_F64 ? "" : ", but to nearest even");
    for (int i = 0; i < lanes; i += 2) {
        bool two = i + 1 < lanes;
        tk_ptx_name pair = tk_ptx_spare(x, TK_PTX_H), low = widened(x, op, i),
                    high = {"0f00000000"}, top;
        if (two) high = widened(x, op, i + 1), top = tk_ptx_result(x, op, i + 1);
        tk_ptx_line(x, "cvt.rn.satfinite.%s.f32 %s, %s, %s", type, pair.text, high.text, low.text);
        split_bytes(x, pair.text, tk_ptx_result(x, op, i), two ? &top : NULL);
    }
}

/* An f16 register for each of two bytes. */
static void bytes_to_f16(tk_ptx *x, const tk_kop *op, int i, tk_ptx_name out[2]) {
    const char *type = operand(op, 0).scalar == TK_K_E4M3 ? "e4m3x2" : "e5m2x2";
    tk_ptx_name pair = tk_ptx_spare(x, TK_PTX_H), both = tk_ptx_spare(x, TK_PTX_R);
    if (i + 1 < operand(op, 0).lanes) {
        tk_ptx_line(x, "shl.b16 %s, %s, 8", pair.text,
                    tk_ptx_operand(x, op->operands[0], i + 1).text);
        tk_ptx_line(x, "or.b16 %s, %s, %s", pair.text, pair.text,
                    tk_ptx_operand(x, op->operands[0], i).text);
    } else {
        tk_ptx_line(x, "mov.b16 %s, %s", pair.text, tk_ptx_operand(x, op->operands[0], i).text);
    }
    for (int j = 0; j < 2; j++) out[j] = tk_ptx_spare(x, TK_PTX_H);
    tk_ptx_line(x, "cvt.rn.f16x2.%s %s, %s", type, both.text, pair.text);
    tk_ptx_line(x, "mov.b32 {%s, %s}, %s", out[0].text, out[1].text, both.text);
}

/* Every value of 8 bits is one of f16 and of f32; to bf16 and tf32 it is exact too. */
static void from_bytes(tk_ptx *x, const tk_kop *op) {
    unsigned to = op->results[0]->type.scalar;
    int lanes = operand(op, 0).lanes;
    if (tk_kop_attr(op, TK_KA_saturate) && operand(op, 0).scalar == TK_K_E5M2)
        fail_conversion(x, op, ", saturating");
    for (int i = 0; i < lanes; i++) {
        tk_ptx_name halves[2];
        if (i % 2 == 0) bytes_to_f16(x, op, i, halves);
        tk_ptx_name half = halves[i % 2], result = tk_ptx_result(x, op, i);
        if (to == TK_K_F16) {
            tk_ptx_line(x, "mov.b16 %s, %s", result.text, half.text);
        } else if (to == TK_K_F64 || to == TK_K_F32) {
            tk_ptx_line(x, "cvt.%s.f16 %s, %s", float_name(to), result.text, half.text);
        } else {
            tk_ptx_name wide = tk_ptx_spare(x, TK_PTX_F);
            tk_ptx_line(x, "cvt.f32.f16 %s, %s", wide.text, half.text);
            tk_ptx_line(x, "cvt.%s.f32 %s, %s", to == TK_K_TF32 ? "rna.tf32" : "rn.bf16",
                        result.text, wide.text);
        }
    }
}

/* Between the two of 8 bits. */
static void bytes_to_bytes(tk_ptx *x, const tk_kop *op) {
    if (tk_kop_attr(op, TK_KA_round) != NEAREST) fail_conversion(x, op, ", but to nearest even");
    const char *type = op->results[0]->type.scalar == TK_K_E4M3 ? "e4m3x2" : "e5m2x2";
    int lanes = operand(op, 0).lanes;
    for (int i = 0; i < lanes; i += 2) {
        tk_ptx_name halves[2], pair = tk_ptx_spare(x, TK_PTX_H), both = tk_ptx_spare(x, TK_PTX_R),
                               top;
        bytes_to_f16(x, op, i, halves);
        tk_ptx_line(x, "mov.b32 %s, {%s, %s}", both.text, halves[0].text, halves[1].text);
        tk_ptx_line(x, "cvt.rn.satfinite.%s.f16x2 %s, %s", type, pair.text, both.text);
        if (i + 1 < lanes) top = tk_ptx_result(x, op, i + 1);
        split_bytes(x, pair.text, tk_ptx_result(x, op, i), i + 1 < lanes ? &top : NULL);
    }
}

/* Two f32 at once into one register of halves. */
static void to_halves(tk_ptx *x, const tk_kop *op, const char *mode, const char *saturate) {
    const char *type = op->results[0]->type.scalar == TK_K_F16 ? "f16x2" : "bf16x2";
    for (int i = 0; i < operand(op, 0).lanes; i += 2) {
        tk_ptx_name both = tk_ptx_spare(x, TK_PTX_R);
        tk_ptx_line(x, "cvt%s%s.%s.f32 %s, %s, %s", mode, saturate, type, both.text,
                    tk_ptx_operand(x, op->operands[0], i + 1).text,
                    tk_ptx_operand(x, op->operands[0], i).text);
        tk_ptx_line(x, "mov.b32 {%s, %s}, %s", tk_ptx_result(x, op, i).text,
                    tk_ptx_result(x, op, i + 1).text, both.text);
    }
}

/* Of f16, bf16, f32 and f64. */
static void between_wide(tk_ptx *x, const tk_kop *op) {
    static const uint8_t order[] = {
        [TK_K_F16] = 1, [TK_K_BF16] = 1, [TK_K_F32] = 2, [TK_K_F64] = 3};
    unsigned from = operand(op, 0).scalar, to = op->results[0]->type.scalar;
    int64_t mode = tk_kop_attr(op, TK_KA_round);
    bool narrows = order[to] < order[from] || (order[to] == order[from] && to != from);
    const char *saturate = tk_kop_attr(op, TK_KA_saturate) ? ".satfinite" : "";
    bool halves = order[to] == 1 && from == TK_K_F32 && mode <= TO_ZERO;
    if (*saturate && !halves) fail_conversion(x, op, ", saturating");
    if (narrows && !check_mode(x, op)) return;
    if (halves && operand(op, 0).lanes > 1) {
        to_halves(x, op, modes[mode], saturate);
        return;
    }
    for (int i = 0; i < operand(op, 0).lanes; i++)
        tk_ptx_line(x, "cvt%s%s.%s.%s %s, %s", narrows ? modes[mode] : "", saturate, float_name(to),
                    float_name(from), tk_ptx_result(x, op, i).text,
                    tk_ptx_operand(x, op->operands[0], i).text);
}

static void from_tf32(tk_ptx *x, const tk_kop *op) {
    unsigned to = op->results[0]->type.scalar;
    int64_t mode = tk_kop_attr(op, TK_KA_round);
    bool narrows = to == TK_K_F16 || to == TK_K_BF16;
    if (tk_kop_attr(op, TK_KA_saturate)) fail_conversion(x, op, ", saturating");
    if (narrows && !check_mode(x, op)) return;
    for (int i = 0; i < operand(op, 0).lanes; i++) {
        tk_ptx_name wide = widened(x, op, i), result = tk_ptx_result(x, op, i);
        if (to == TK_K_F32)
            tk_ptx_line(x, "mov.f32 %s, %s", result.text, wide.text);
        else
            tk_ptx_line(x, "cvt%s.%s.f32 %s, %s", to == TK_K_F64 ? "" : modes[mode], float_name(to),
                        result.text, wide.text);
    }
}

static void convert_floats(tk_ptx *x, const tk_kop *op) {
    unsigned from = operand(op, 0).scalar, to = op->results[0]->type.scalar;
    bool same = from == to;
    if ((is_byte(from) || is_byte(to)) && x->arch < 90)
        fail_conversion(x, op, " before sm_90");
    else if (same && from != TK_K_E4M3 && tk_kop_attr(op, TK_KA_saturate))
        fail_conversion(x, op, ", saturating");
    else if (same)
        tk_ptx_put_copy(x, op);
    else if (is_byte(from) && is_byte(to))
        bytes_to_bytes(x, op);
    else if (is_byte(from))
        from_bytes(x, op);
    else if (is_byte(to))
        to_bytes(x, op);
    else if (to == TK_K_TF32)
        to_tf32(x, op);
    else if (from == TK_K_TF32)
        from_tf32(x, op);
    else
        between_wide(x, op);
}

/* Integers of 8 bits live in registers of 16, as do those of 16. */
static const char *int_name(tk_ktype type, bool is_signed) {
    static const char *const names[2][4] = {{"u8", "u16", "u32", "u64"},
                                            {"s8", "s16", "s32", "s64"}};
    int bytes = tk_kscalar_bytes((tk_kscalar)type.scalar);
    return names[is_signed][bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
}

static void convert_truth(tk_ptx *x, const tk_kop *op) {
    tk_ktype to = op->results[0]->type;
    tk_ptx_line(x, "selp%s %s, 1, 0, %s", bit_suffix(to), tk_ptx_result(x, op, 0).text,
                named(x, op, 0).text);
}

static void convert_integers(tk_ptx *x, const tk_kop *op, bool is_signed) {
    tk_ktype from = operand(op, 0), to = op->results[0]->type;
    for (int i = 0; i < from.lanes; i++)
        tk_ptx_line(x, "cvt.%s.%s %s, %s", int_name(to, is_signed), int_name(from, is_signed),
                    tk_ptx_result(x, op, i).text, tk_ptx_operand(x, op->operands[0], i).text);
}

/* Halves of integers wider than they go through f32 in PTX too; the instruction rounds once. */
static void convert_mixed(tk_ptx *x, const tk_kop *op) {
    static const char *const modes[] = {"rn", "rz", "rm", "rp", "rn"};
    tk_ktype from = operand(op, 0), to = op->results[0]->type;
    bool to_float = op->code == TK_KOP_float_from_signed || op->code == TK_KOP_float_from_unsigned;
    bool is_signed = op->code == TK_KOP_float_from_signed || op->code == TK_KOP_signed_from_float;
    const char *mode = to_float ? modes[tk_kop_attr(op, TK_KA_round)] : "rzi";
    bool widens = from.scalar == TK_K_BF16;
    if (to.scalar == TK_K_BF16 && x->arch < 90) fail_conversion(x, op, " before sm_90");
    for (int i = 0; i < from.lanes; i++)
        tk_ptx_line(x, "cvt.%s.%s.%s %s, %s", mode,
                    to_float ? float_name(to.scalar) : int_name(to, is_signed),
                    to_float ? int_name(from, is_signed)
                             : float_name(widens ? TK_K_F32 : from.scalar),
                    tk_ptx_result(x, op, i).text,
                    widens ? widened(x, op, i).text : tk_ptx_operand(x, op->operands[0], i).text);
}

void tk_ptx_put_convert(tk_ptx *x, const tk_kop *op) {
    if (op->code == TK_KOP_convert)
        convert_floats(x, op);
    else if (operand(op, 0).scalar == TK_K_I1)
        convert_truth(x, op);
    else if (op->code == TK_KOP_extend_signed || op->code == TK_KOP_extend_unsigned ||
             op->code == TK_KOP_truncate)
        convert_integers(x, op, op->code == TK_KOP_extend_signed);
    else
        convert_mixed(x, op);
}

/* ---- the same bits ---- */

/* Element `at` of 32 or 16 bits from `count` bytes, and the bytes of one. */
static void join_bytes(tk_ptx *x, const tk_kop *op, int at, int count) {
    tk_ptx_name to = tk_ptx_result(x, op, at), word = tk_ptx_spare(x, TK_PTX_R);
    tk_ptx_line(x, "cvt.u32.u16 %s, %s", word.text,
                tk_ptx_operand(x, op->operands[0], at * count).text);
    for (int i = 1; i < count; i++) {
        tk_ptx_name byte = tk_ptx_spare(x, TK_PTX_R);
        tk_ptx_line(x, "cvt.u32.u16 %s, %s", byte.text,
                    tk_ptx_operand(x, op->operands[0], at * count + i).text);
        tk_ptx_line(x, "bfi.b32 %s, %s, %s, %d, 8", word.text, byte.text, word.text, 8 * i);
    }
    tk_ptx_line(x, count == 2 ? "cvt.u16.u32 %s, %s" : "mov.b32 %s, %s", to.text, word.text);
}

static void part_bytes(tk_ptx *x, const tk_kop *op, int at, int count) {
    tk_ptx_name from = tk_ptx_operand(x, op->operands[0], at), word = tk_ptx_spare(x, TK_PTX_R);
    tk_ptx_line(x, count == 2 ? "cvt.u32.u16 %s, %s" : "mov.b32 %s, %s", word.text, from.text);
    for (int i = 0; i < count; i++) {
        tk_ptx_name byte = tk_ptx_spare(x, TK_PTX_R);
        tk_ptx_line(x, "bfe.u32 %s, %s, %d, 8", byte.text, word.text, 8 * i);
        tk_ptx_line(x, "cvt.u16.u32 %s, %s", tk_ptx_result(x, op, at * count + i).text, byte.text);
    }
}

/* Elements of `ratio` times the size from narrower ones, or the other way. */
static void repack(tk_ptx *x, const tk_kop *op, int at, int ratio, int wide, bool unpacks) {
    tk_strbuf parts = {0};
    for (int j = 0; j < ratio; j++)
        tk_strbuf_printf(&parts, "%s%s", j ? ", " : "",
                         unpacks ? tk_ptx_result(x, op, at * ratio + j).text
                                 : tk_ptx_operand(x, op->operands[0], at * ratio + j).text);
    const char *open = ratio > 1 ? "{" : "", *close = ratio > 1 ? "}" : "";
    int bits = 8 * wide < 16 ? 16 : 8 * wide;
    if (unpacks)
        tk_ptx_line(x, "mov.b%d %s%s%s, %s", bits, open, parts.text, close,
                    tk_ptx_operand(x, op->operands[0], at).text);
    else
        tk_ptx_line(x, "mov.b%d %s, %s%s%s", bits, tk_ptx_result(x, op, at).text, open, parts.text,
                    close);
    tk_strbuf_deinit(&parts);
}

/* Elements of one size are moved; wider ones from or to narrower ones are packed and unpacked. */
void tk_ptx_put_bitcast(tk_ptx *x, const tk_kop *op) {
    tk_ktype from = operand(op, 0), to = op->results[0]->type;
    int from_bytes = tk_ktype_bytes(from) / from.lanes, to_bytes = tk_ktype_bytes(to) / to.lanes;
    int wide = from_bytes > to_bytes ? from_bytes : to_bytes,
        ratio = wide / (from_bytes < to_bytes ? from_bytes : to_bytes);
    bool bytes = ratio > 1 && (from_bytes == 1 || to_bytes == 1);
    if (bytes && wide > 4) {
        tk_ptx_fail(x, op, "between bytes and 64 bits");
        return;
    }
    for (int i = 0; i < (from.lanes > to.lanes ? to.lanes : from.lanes); i++)
        if (bytes)
            (to_bytes == 1 ? part_bytes : join_bytes)(x, op, i, ratio);
        else
            repack(x, op, i, ratio, wide, to_bytes < from_bytes);
}
