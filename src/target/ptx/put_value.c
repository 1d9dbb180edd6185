/* Numbers, vectors, register tensors, pointers and special registers. */
#include <inttypes.h>
#include <string.h>

#include "target/ptx/ptx.h"

static tk_ktype operand(const tk_kop *op, int index) { return op->operands[index]->type; }
static tk_ptx_name named(tk_ptx *x, const tk_kop *op, int index) {
    return tk_ptx_operand(x, op->operands[index], 0);
}

static const char *word_of(const tk_kop *op, tk_kattr_id id, int *out_length) {
    size_t length;
    const char *word = tk_kwords_at(tk_kattr_row_of(id)->words, (int)tk_kop_attr(op, id), &length);
    *out_length = (int)length;
    return word;
}

static const char *bit_suffix(tk_ktype type) {
    return tk_ptx_suffix(
        (tk_ktype){.kind = type.kind, .scalar = type.scalar, .lanes = 1, .space = type.space}, 'b');
}

static void move_bits(tk_ptx *x, tk_ktype type, const char *to, const char *from) {
    unsigned scalar = type.scalar;
    bool is_float = type.kind == TK_KT_NUMBER && (scalar == TK_K_F32 || scalar == TK_K_F64);
    tk_ptx_line(x, "mov%s %s, %s", is_float ? tk_ptx_suffix(type, 's') : bit_suffix(type), to,
                from);
}

/* ---- integers ---- */

/* A divisor that is a constant but 0 needs no guard. */
void tk_ptx_put_divide(tk_ptx *x, const tk_kop *op) {
    bool remainder = op->code == TK_KOP_srem || op->code == TK_KOP_urem,
         is_signed = op->code == TK_KOP_sdiv || op->code == TK_KOP_srem;
    const char *suffix = tk_ptx_suffix(operand(op, 0), is_signed ? 's' : 'u'),
               *bits = tk_ptx_suffix(operand(op, 0), 'b');
    int64_t constant;
    bool guarded = !tk_kvalue_integer(op->operands[1], &constant) || constant == 0;
    for (int i = 0; i < operand(op, 0).lanes; i++) {
        tk_ptx_name d = tk_ptx_result(x, op, i), b = tk_ptx_operand(x, op->operands[1], i);
        tk_ptx_line(x, "%s%s %s, %s, %s", remainder ? "rem" : "div", suffix, d.text,
                    tk_ptx_operand(x, op->operands[0], i).text, b.text);
        if (!guarded) continue;
        tk_ptx_name zero = tk_ptx_spare(x, TK_PTX_P);
        tk_ptx_line(x, "setp.eq%s %s, %s, 0", bits, zero.text, b.text);
        tk_ptx_line(x, "selp%s %s, 0, %s, %s", bits, d.text, d.text, zero.text);
    }
}

void tk_ptx_put_permute_bytes(tk_ptx *x, const tk_kop *op) {
    int length;
    const char *word = word_of(op, TK_KA_prmt, &length);
    bool plain = tk_kop_attr(op, TK_KA_prmt) == 0;
    tk_ptx_line(x, "prmt.b32%s%.*s %s, %s, %s, %s", plain ? "" : ".", plain ? 0 : length, word,
                tk_ptx_result(x, op, 0).text, named(x, op, 0).text, named(x, op, 1).text,
                named(x, op, 2).text);
}

void tk_ptx_put_funnel(tk_ptx *x, const tk_kop *op) {
    tk_ptx_line(x, "shf.%s.%s.b32 %s, %s, %s, %s", tk_kop_attr(op, TK_KA_direction) ? "r" : "l",
                tk_kop_attr(op, TK_KA_wrap) ? "wrap" : "clamp", tk_ptx_result(x, op, 0).text,
                named(x, op, 0).text, named(x, op, 1).text, named(x, op, 2).text);
}

/* slt is .lt.s32, ult .lt.u32. */
void tk_ptx_put_icmp(tk_ptx *x, const tk_kop *op) {
    int length;
    const char *word = word_of(op, TK_KA_icmp, &length);
    bool has_sign = length == 3;
    tk_ptx_line(x, "setp.%.*s%s %s, %s, %s", has_sign ? 2 : length, has_sign ? word + 1 : word,
                tk_ptx_suffix(operand(op, 0), has_sign && *word == 'u' ? 'u' : 's'),
                tk_ptx_result(x, op, 0).text, named(x, op, 0).text, named(x, op, 1).text);
}

/* setp of bf16 comes with sm_90; before, f32 has the same order. */
void tk_ptx_put_fcmp(tk_ptx *x, const tk_kop *op) {
    int length;
    const char *word = word_of(op, TK_KA_fcmp, &length),
               *suffix = tk_ptx_suffix(operand(op, 0), 's');
    tk_ptx_name a = named(x, op, 0), b = named(x, op, 1);
    if (operand(op, 0).scalar == TK_K_BF16) {
        tk_ptx_name wide_a = tk_ptx_spare(x, TK_PTX_F), wide_b = tk_ptx_spare(x, TK_PTX_F);
        tk_ptx_line(x, "mov.b32 %s, {0, %s}", wide_a.text, a.text);
        tk_ptx_line(x, "mov.b32 %s, {0, %s}", wide_b.text, b.text);
        a = wide_a, b = wide_b, suffix = ".f32";
    }
    tk_ptx_line(x, "setp.%.*s%s %s, %s, %s", length, word, suffix, tk_ptx_result(x, op, 0).text,
                a.text, b.text);
}

static void select_truth(tk_ptx *x, const tk_kop *op) {
    tk_ptx_name yes = tk_ptx_spare(x, TK_PTX_P), no = tk_ptx_spare(x, TK_PTX_P),
                condition = named(x, op, 0);
    tk_ptx_line(x, "and.pred %s, %s, %s", yes.text, condition.text, named(x, op, 1).text);
    tk_ptx_line(x, "not.pred %s, %s", no.text, condition.text);
    tk_ptx_line(x, "and.pred %s, %s, %s", no.text, no.text, named(x, op, 2).text);
    tk_ptx_line(x, "or.pred %s, %s, %s", tk_ptx_result(x, op, 0).text, yes.text, no.text);
}

void tk_ptx_put_select(tk_ptx *x, const tk_kop *op) {
    tk_ktype type = operand(op, 1);
    bool is_float =
        type.kind == TK_KT_NUMBER && (type.scalar == TK_K_F32 || type.scalar == TK_K_F64);
    if (type.kind == TK_KT_NUMBER && type.scalar == TK_K_I1) {
        select_truth(x, op);
        return;
    }
    for (int i = 0; i < (type.kind == TK_KT_NUMBER ? type.lanes : 1); i++)
        tk_ptx_line(x, "selp%s %s, %s, %s, %s",
                    is_float ? tk_ptx_suffix(type, 's') : bit_suffix(type),
                    tk_ptx_result(x, op, i).text, tk_ptx_operand(x, op->operands[1], i).text,
                    tk_ptx_operand(x, op->operands[2], i).text, named(x, op, 0).text);
}

/* ---- conversions ---- */

static const char *float_name(unsigned scalar) {
    return scalar == TK_K_F16    ? "f16"
           : scalar == TK_K_BF16 ? "bf16"
           : scalar == TK_K_F32  ? "f32"
                                 : "f64";
}

static bool is_narrow(unsigned scalar) {
    return scalar == TK_K_TF32 || scalar == TK_K_E4M3 || scalar == TK_K_E5M2;
}

static void convert_floats(tk_ptx *x, const tk_kop *op) {
    static const char *const modes[] = {".rn", ".rz", ".rm", ".rp", ".rna"};
    static const uint8_t order[] = {
        [TK_K_F16] = 1, [TK_K_BF16] = 1, [TK_K_F32] = 2, [TK_K_F64] = 3};
    unsigned from = operand(op, 0).scalar, to = op->results[0]->type.scalar;
    int64_t mode = tk_kop_attr(op, TK_KA_round);
    if (is_narrow(from) || is_narrow(to) || tk_kop_attr(op, TK_KA_saturate)) {
        tk_ptx_fail(x, op, "from %s to %s", tk_kscalar_text((tk_kscalar)from),
                    tk_kscalar_text((tk_kscalar)to));
        return;
    }
    bool narrows = order[to] < order[from] || (order[to] == order[from] && to != from);
    for (int i = 0; i < operand(op, 0).lanes; i++)
        tk_ptx_line(x, "cvt%s.%s.%s %s, %s", narrows ? modes[mode] : "", float_name(to),
                    float_name(from), tk_ptx_result(x, op, i).text,
                    tk_ptx_operand(x, op->operands[0], i).text);
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
    if (to.scalar == TK_K_BF16 || from.scalar == TK_K_BF16) {
        tk_ptx_fail(x, op, "bf16 and integers are converted through f32");
        return;
    }
    for (int i = 0; i < from.lanes; i++)
        tk_ptx_line(x, "cvt.%s.%s.%s %s, %s", mode,
                    to_float ? float_name(to.scalar) : int_name(to, is_signed),
                    to_float ? int_name(from, is_signed) : float_name(from.scalar),
                    tk_ptx_result(x, op, i).text, tk_ptx_operand(x, op->operands[0], i).text);
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

/* Elements of one size are moved; 32 or 64 bits from or to narrower ones are packed and unpacked.
 */
void tk_ptx_put_bitcast(tk_ptx *x, const tk_kop *op) {
    tk_ktype from = operand(op, 0), to = op->results[0]->type;
    int from_bytes = tk_ktype_bytes(from) / from.lanes, to_bytes = tk_ktype_bytes(to) / to.lanes;
    int wide = from_bytes > to_bytes ? from_bytes : to_bytes,
        ratio = wide / (from_bytes < to_bytes ? from_bytes : to_bytes);
    if ((from_bytes == 1 || to_bytes == 1) && from_bytes != to_bytes) {
        tk_ptx_fail(x, op, "between bytes and wider elements");
        return;
    }
    for (int i = 0; i < (from.lanes > to.lanes ? to.lanes : from.lanes); i++) {
        tk_strbuf parts = {0};
        bool unpacks = to_bytes < from_bytes;
        for (int j = 0; j < ratio; j++)
            tk_strbuf_printf(&parts, "%s%s", j ? ", " : "",
                             unpacks ? tk_ptx_result(x, op, i * ratio + j).text
                                     : tk_ptx_operand(x, op->operands[0], i * ratio + j).text);
        const char *open = ratio > 1 ? "{" : "", *close = ratio > 1 ? "}" : "";
        if (unpacks)
            tk_ptx_line(x, "mov.b%d %s%s%s, %s", 8 * wide, open, parts.text, close,
                        tk_ptx_operand(x, op->operands[0], i).text);
        else
            tk_ptx_line(x, "mov.b%d %s, %s%s%s", 8 * wide < 16 ? 16 : 8 * wide,
                        tk_ptx_result(x, op, i).text, open, parts.text, close);
        tk_strbuf_deinit(&parts);
    }
}

/* ---- vectors and register tensors ---- */

static void move_elements(tk_ptx *x, tk_ktype type, const tk_kvalue *to, int64_t to_index,
                          const tk_kvalue *from, int64_t from_index, int count) {
    for (int i = 0; i < count; i++)
        move_bits(x, type, tk_ptx_element(x, to, to_index + i).text,
                  tk_ptx_element(x, from, from_index + i).text);
}

void tk_ptx_put_vector(tk_ptx *x, const tk_kop *op) {
    tk_ktype type = op->results[0]->type;
    for (int i = 0; i < type.lanes; i++)
        move_elements(x, type, op->results[0], i, op->operands[op->n_operands > 1 ? i : 0], 0, 1);
}

void tk_ptx_put_extract(tk_ptx *x, const tk_kop *op) {
    tk_ktype type = op->results[0]->type;
    move_elements(x, type, op->results[0], 0, op->operands[0], tk_kop_attr(op, TK_KA_index),
                  type.lanes);
}

void tk_ptx_put_insert(tk_ptx *x, const tk_kop *op) {
    tk_ktype type = op->results[0]->type;
    move_elements(x, type, op->results[0], 0, op->operands[0], 0, type.lanes);
    move_elements(x, type, op->results[0], tk_kop_attr(op, TK_KA_index), op->operands[1], 0,
                  operand(op, 1).lanes);
}

void tk_ptx_put_get(tk_ptx *x, const tk_kop *op) {
    if (x->packed[op->operands[0]->id])
        tk_ptx_get_packed(x, op->operands[0], tk_kop_attr(op, TK_KA_index), op->results[0]);
    else
        tk_ptx_put_extract(x, op);
}

void tk_ptx_put_set(tk_ptx *x, const tk_kop *op) {
    if (x->packed[op->operands[0]->id]) {
        tk_ptx_set_packed(x, op->operands[0], tk_kop_attr(op, TK_KA_index), op->operands[1]);
        return;
    }
    move_elements(x, operand(op, 1), op->operands[0], tk_kop_attr(op, TK_KA_index), op->operands[1],
                  0, operand(op, 1).lanes);
}

/* ---- pointers ---- */

static void put_shared_address(tk_ptx *x, const tk_kop *op, int64_t at) {
    tk_ptx_name to = tk_ptx_result(x, op, 0);
    tk_ptx_line(x, "mov.u32 %s, tiki_shared", to.text);
    if (at) tk_ptx_line(x, "add.s32 %s, %s, %" PRId64, to.text, to.text, at);
}

void tk_ptx_put_address(tk_ptx *x, const tk_kop *op) {
    put_shared_address(x, op, x->shared_at[op->operands[0]->id]);
}
void tk_ptx_put_dynamic_shared(tk_ptx *x, const tk_kop *op) {
    put_shared_address(x, op, x->shared.dynamic_at);
}

/* pointer + elements * bytes: one multiply-add, widening where the pointer is wider. */
void tk_ptx_put_offset(tk_ptx *x, const tk_kop *op) {
    int bytes = tk_kscalar_bytes((tk_kscalar)operand(op, 0).scalar);
    bool far = tk_ktype_bytes(operand(op, 0)) == 8, wide = operand(op, 1).scalar == TK_K_I64;
    tk_ptx_name to = tk_ptx_result(x, op, 0), pointer = named(x, op, 0), elements = named(x, op, 1);
    if (far)
        tk_ptx_line(x, "mad.%s %s, %s, %d, %s", wide ? "lo.s64" : "wide.s32", to.text,
                    elements.text, bytes, pointer.text);
    else if (!wide)
        tk_ptx_line(x, "mad.lo.s32 %s, %s, %d, %s", to.text, elements.text, bytes, pointer.text);
    else {
        tk_ptx_name low = tk_ptx_spare(x, TK_PTX_R);
        tk_ptx_line(x, "cvt.u32.u64 %s, %s", low.text, elements.text);
        tk_ptx_line(x, "mad.lo.s32 %s, %s, %d, %s", to.text, low.text, bytes, pointer.text);
    }
}

/* ---- special registers ---- */

void tk_ptx_put_special(tk_ptx *x, const tk_kop *op) {
    static const char *const names[] = {
        "laneid",      "warpid",          "nwarpid",          "smid",
        "nsmid",       "gridid",          "cluster_ctarank",  "cluster_nctarank",
        "lanemask_lt", "lanemask_le",     "lanemask_eq",      "lanemask_ge",
        "lanemask_gt", "total_smem_size", "dynamic_smem_size"};
    tk_ptx_line(x, "mov.u32 %s, %%%s", tk_ptx_result(x, op, 0).text,
                names[tk_kop_attr(op, TK_KA_special)]);
}

void tk_ptx_put_clock(tk_ptx *x, const tk_kop *op) {
    tk_ptx_line(x, "mov.u64 %s, %%%s", tk_ptx_result(x, op, 0).text,
                tk_kop_attr(op, TK_KA_clock) ? "globaltimer" : "clock64");
}
