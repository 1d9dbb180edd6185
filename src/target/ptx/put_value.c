/* Arithmetic, vectors, register tensors, pointers and special registers. */
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
    const char *name = names[tk_kop_attr(op, TK_KA_special)];
    if (x->arch < 90 && !strncmp(name, "cluster", 7)) tk_ptx_fail(x, op, "before sm_90");
    tk_ptx_line(x, "mov.u32 %s, %%%s", tk_ptx_result(x, op, 0).text, name);
}

void tk_ptx_put_clock(tk_ptx *x, const tk_kop *op) {
    tk_ptx_line(x, "mov.u64 %s, %%%s", tk_ptx_result(x, op, 0).text,
                tk_kop_attr(op, TK_KA_clock) ? "globaltimer" : "clock64");
}
