/* Matrix operations on register tensors.
 *
 * What they take are registers of 32 bits, so a tensor of narrower elements that is used by one of
 * them is kept as such registers for its life (print.c); get and set take elements out and put them
 * in. So no instruction stands between a fragment and the asynchronous operation that uses it. */
#include <inttypes.h>

#include "kernel/check.h"
#include "target/ptx/ptx.h"

static tk_kscalar scalar_of(const tk_kop *op, int operand) {
    return (tk_kscalar)op->operands[operand]->type.scalar;
}

/* {%r4, %r5}: the registers of `count` elements from an index on. */
static void put_registers(tk_ptx *x, const tk_kvalue *tensor, int64_t index, int64_t count,
                          tk_strbuf *out) {
    int64_t per = tk_ptx_elements_each(x, tensor);
    for (int64_t e = 0; e < count; e += per)
        tk_strbuf_printf(out, "%s%s", e ? ", " : "{",
                         tk_ptx_element(x, tensor, (index + e) / per).text);
    tk_strbuf_putc(out, '}');
}

static void finish_line(tk_ptx *x, tk_strbuf *line) {
    tk_strbuf_printf(&x->body, "\t%s;\n", line->text ? line->text : "");
    if (line->failed) x->body.failed = true;
    tk_strbuf_deinit(line);
}

/* ---- ldmatrix, stmatrix ---- */

static void put_rows(tk_ptx *x, const tk_kop *op, bool load) {
    int64_t count = tk_kop_attr(op, TK_KA_count);
    const tk_kvalue *tensor = op->operands[load ? 0 : 1];
    tk_strbuf line = {0};
    tk_ptx_name row = tk_ptx_operand(x, op->operands[load ? 1 : 0], 0);
    tk_strbuf_printf(&line, "%s.sync.aligned.m8n8.x%" PRId64 "%s.shared.b16 ",
                     load ? "ldmatrix" : "stmatrix", count,
                     tk_kop_attr(op, TK_KA_transposed) ? ".trans" : "");
    if (!load) tk_strbuf_printf(&line, "[%s], ", row.text);
    put_registers(x, tensor, tk_kop_attr(op, TK_KA_index),
                  count * 4 / tk_kscalar_bytes((tk_kscalar)tensor->type.scalar), &line);
    if (load) tk_strbuf_printf(&line, ", [%s]", row.text);
    finish_line(x, &line);
}

void tk_ptx_put_load_matrix(tk_ptx *x, const tk_kop *op) { put_rows(x, op, true); }

void tk_ptx_put_store_matrix(tk_ptx *x, const tk_kop *op) {
    if (x->arch < 90) tk_ptx_fail(x, op, "before sm_90");
    put_rows(x, op, false);
}

/* ---- mma.sync ---- */

static bool is_fp8(tk_kscalar scalar) { return scalar == TK_K_E4M3 || scalar == TK_K_E5M2; }

void tk_ptx_put_mma(tk_ptx *x, const tk_kop *op) {
    enum { D, A, B, C };
    static const tk_kattr_id indices[] = {TK_KA_d_index, TK_KA_a_index, TK_KA_b_index,
                                          TK_KA_c_index};
    int64_t m = tk_kop_attr(op, TK_KA_m), n = tk_kop_attr(op, TK_KA_n),
            k = tk_kop_attr(op, TK_KA_k);
    const int64_t counts[] = {m * n / 32, m * k / 32, n * k / 32, m * n / 32};
    tk_strbuf line = {0};
    if (is_fp8(scalar_of(op, A)) && x->arch < 90)
        tk_ptx_fail(x, op, "of 8-bit floats before sm_90");
    if (is_fp8(scalar_of(op, A))) tk_ptx_need_version(x, 84);
    tk_strbuf_printf(&line, "mma.sync.aligned.m%" PRId64 "n%" PRId64 "k%" PRId64 ".row.col", m, n,
                     k);
    for (int i = D; i <= C; i++) tk_strbuf_printf(&line, ".%s", tk_kscalar_text(scalar_of(op, i)));
    for (int i = D; i <= C; i++) {
        tk_strbuf_puts(&line, i ? ", " : " ");
        put_registers(x, op->operands[i], tk_kop_attr(op, indices[i]), counts[i], &line);
    }
    finish_line(x, &line);
}

/* ---- wgmma ---- */

static void need_specific(tk_ptx *x, const tk_kop *op) {
    if (!x->arch_specific) tk_ptx_fail(x, op, "but for sm_90a");
}

void tk_ptx_put_wgmma_order(tk_ptx *x, const tk_kop *op) {
    need_specific(x, op);
    if (op->code == TK_KOP_wgmma_wait)
        tk_ptx_line(x, "wgmma.wait_group.sync.aligned %" PRId64, tk_kop_attr(op, TK_KA_groups));
    else
        tk_ptx_line(x, "wgmma.%s.sync.aligned",
                    op->code == TK_KOP_wgmma_fence ? "fence" : "commit_group");
}

void tk_ptx_put_reallocate(tk_ptx *x, const tk_kop *op) {
    need_specific(x, op);
    tk_ptx_line(x, "setmaxnreg.%s.sync.aligned.u32 %" PRId64,
                op->code == TK_KOP_registers_grow ? "inc" : "dec",
                tk_kop_attr(op, TK_KA_registers));
}

/* By place in the words of `swizzle`: bits 62 and 63. */
void tk_ptx_put_matrix_descriptor(tk_ptx *x, const tk_kop *op) {
    static const uint64_t modes[] = {0, 3, 2, 1};
    uint64_t rest = ((uint64_t)tk_kop_attr(op, TK_KA_lead) & 0x3ffff) >> 4 << 16 |
                    ((uint64_t)tk_kop_attr(op, TK_KA_stride) & 0x3ffff) >> 4 << 32 |
                    ((uint64_t)tk_kop_attr(op, TK_KA_base) & 7) << 49 |
                    modes[tk_kop_attr(op, TK_KA_swizzle)] << 62;
    tk_ptx_name to = tk_ptx_result(x, op, 0), low = tk_ptx_spare(x, TK_PTX_R);
    tk_ptx_line(x, "bfe.u32 %s, %s, 4, 14", low.text, tk_ptx_operand(x, op->operands[0], 0).text);
    tk_ptx_line(x, "cvt.u64.u32 %s, %s", to.text, low.text);
    tk_ptx_line(x, "or.b64 %s, %s, 0x%" PRIx64, to.text, to.text, rest);
}

/* By place in the words of a_type: f16 bf16 tf32 e4m3 e5m2 s8 u8. */
enum { OF_BF16 = 1, OF_E5M2 = 4 };
static const char *const operand_words[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8"};

/* Negation and, of 16 bits, the ways that the operands lie. */
static void put_ways(const tk_kop *op, bool registers, tk_strbuf *line) {
    int64_t type = tk_kop_attr(op, TK_KA_a_type);
    if (type > OF_E5M2) return;
    tk_strbuf_printf(line, ", %d, %d", tk_kop_attr(op, TK_KA_neg_a) ? -1 : 1,
                     tk_kop_attr(op, TK_KA_neg_b) ? -1 : 1);
    if (type > OF_BF16) return;
    if (!registers) tk_strbuf_printf(line, ", %" PRId64, tk_kop_attr(op, TK_KA_a_mn));
    tk_strbuf_printf(line, ", %" PRId64, tk_kop_attr(op, TK_KA_b_mn));
}

void tk_ptx_put_wgmma(tk_ptx *x, const tk_kop *op) {
    enum { D, A, B, ACCUMULATE };
    int64_t m = tk_kop_attr(op, TK_KA_m), n = tk_kop_attr(op, TK_KA_n),
            k = tk_kop_attr(op, TK_KA_k);
    tk_strbuf line = {0};
    bool registers = op->operands[A]->type.kind == TK_KT_REGISTERS;
    tk_ptx_name accumulate = tk_ptx_spare(x, TK_PTX_P);
    need_specific(x, op);
    if (tk_kop_attr(op, TK_KA_a_type) != tk_kop_attr(op, TK_KA_b_type)) tk_ptx_need_version(x, 84);
    if (op->operands[ACCUMULATE])
        accumulate = tk_ptx_operand(x, op->operands[ACCUMULATE], 0);
    else
        tk_ptx_line(x, "setp.ne.b32 %s, 0, 0", accumulate.text);
    tk_strbuf_printf(
        &line, "wgmma.mma_async.sync.aligned.m%" PRId64 "n%" PRId64 "k%" PRId64 ".%s.%s.%s ", m, n,
        k, scalar_of(op, D) == TK_K_I32 ? "s32" : tk_kscalar_text(scalar_of(op, D)),
        operand_words[tk_kop_attr(op, TK_KA_a_type)], operand_words[tk_kop_attr(op, TK_KA_b_type)]);
    put_registers(x, op->operands[D], tk_kop_attr(op, TK_KA_d_index), m * n / 128, &line);
    tk_strbuf_puts(&line, ", ");
    if (registers)
        put_registers(x, op->operands[A], tk_kop_attr(op, TK_KA_a_index), m * k / 128, &line);
    else
        tk_strbuf_puts(&line, tk_ptx_operand(x, op->operands[A], 0).text);
    tk_strbuf_printf(&line, ", %s, %s", tk_ptx_operand(x, op->operands[B], 0).text,
                     accumulate.text);
    put_ways(op, registers, &line);
    finish_line(x, &line);
}

/* ---- get and set of kept registers ---- */

static void take_half(tk_ptx *x, const char *word, int part, const char *to) {
    tk_ptx_name other = tk_ptx_spare(x, TK_PTX_H);
    tk_ptx_line(x, "mov.b32 {%s, %s}, %s", part ? other.text : to, part ? to : other.text, word);
}

static void take_byte(tk_ptx *x, const char *word, int part, const char *to) {
    tk_ptx_name byte = tk_ptx_spare(x, TK_PTX_R);
    tk_ptx_line(x, "bfe.u32 %s, %s, %d, 8", byte.text, word, 8 * part);
    tk_ptx_line(x, "cvt.u16.u32 %s, %s", to, byte.text);
}

void tk_ptx_get_packed(tk_ptx *x, const tk_kvalue *tensor, int64_t index, const tk_kvalue *value) {
    int64_t per = tk_ptx_elements_each(x, tensor);
    for (int e = 0; e < value->type.lanes; e++) {
        tk_ptx_name word = tk_ptx_element(x, tensor, (index + e) / per),
                    to = tk_ptx_operand(x, value, e);
        int part = (int)((index + e) % per);
        if (per == 1) {
            tk_ptx_line(x, "mov.b32 %s, %s", to.text, word.text);
        } else if (per == 2 && part == 0 && e + 1 < value->type.lanes) {
            tk_ptx_line(x, "mov.b32 {%s, %s}, %s", to.text, tk_ptx_operand(x, value, e + 1).text,
                        word.text);
            e++;
        } else {
            (per == 2 ? take_half : take_byte)(x, word.text, part, to.text);
        }
    }
}

static void put_half(tk_ptx *x, const char *word, int part, const char *from) {
    tk_ptx_name low = tk_ptx_spare(x, TK_PTX_H), high = tk_ptx_spare(x, TK_PTX_H);
    tk_ptx_line(x, "mov.b32 {%s, %s}, %s", low.text, high.text, word);
    tk_ptx_line(x, "mov.b32 %s, {%s, %s}", word, part ? low.text : from, part ? from : high.text);
}

static void put_byte(tk_ptx *x, const char *word, int part, const char *from) {
    tk_ptx_name byte = tk_ptx_spare(x, TK_PTX_R);
    tk_ptx_line(x, "cvt.u32.u16 %s, %s", byte.text, from);
    tk_ptx_line(x, "bfi.b32 %s, %s, %s, %d, 8", word, byte.text, word, 8 * part);
}

void tk_ptx_set_packed(tk_ptx *x, const tk_kvalue *tensor, int64_t index, const tk_kvalue *value) {
    int64_t per = tk_ptx_elements_each(x, tensor);
    for (int e = 0; e < value->type.lanes; e++) {
        tk_ptx_name word = tk_ptx_element(x, tensor, (index + e) / per),
                    from = tk_ptx_operand(x, value, e);
        int part = (int)((index + e) % per);
        if (per == 1) {
            tk_ptx_line(x, "mov.b32 %s, %s", word.text, from.text);
        } else if (per == 2 && part == 0 && e + 1 < value->type.lanes) {
            tk_ptx_line(x, "mov.b32 %s, {%s, %s}", word.text, from.text,
                        tk_ptx_operand(x, value, e + 1).text);
            e++;
        } else {
            (per == 2 ? put_half : put_byte)(x, word.text, part, from.text);
        }
    }
}
