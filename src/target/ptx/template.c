/* Writing templates; template.h explains them. */
#include "target/ptx/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int bits_of(tk_ktype type) {
    return 8 * tk_ktype_bytes((tk_ktype){
                   .kind = type.kind, .scalar = type.scalar, .lanes = 1, .space = type.space});
}

static const char *int_suffix(char letter, int bits) {
    static const char *const names[4][3] = {{".s16", ".s32", ".s64"},
                                            {".u16", ".u32", ".u64"},
                                            {".b16", ".b32", ".b64"},
                                            {".lo.s16", ".lo.s32", ".lo.s64"}};
    int row = letter == 'u' ? 1 : letter == 'b' ? 2 : letter == 'm' ? 3 : 0;
    return names[row][bits == 64 ? 2 : bits == 32 ? 1 : 0];
}

static const char *float_suffix(char letter, unsigned scalar) {
    static const char *const names[2][4] = {{".f16", ".bf16", ".f32", ".f64"},
                                            {".rn.f16", ".rn.bf16", ".rn.f32", ".rn.f64"}};
    int column = scalar == TK_K_F16 ? 0 : scalar == TK_K_BF16 ? 1 : scalar == TK_K_F32 ? 2 : 3;
    return names[letter == 'r' || letter == 'm'][column];
}

static bool is_float(tk_ktype type) {
    return type.kind == TK_KT_NUMBER && (type.scalar == TK_K_F16 || type.scalar == TK_K_BF16 ||
                                         type.scalar == TK_K_F32 || type.scalar == TK_K_F64);
}

const char *tk_ptx_suffix(tk_ktype type, char letter) {
    if (type.kind == TK_KT_NUMBER && type.scalar == TK_K_I1) return ".pred";
    if (letter != 'b' && is_float(type)) return float_suffix(letter, type.scalar);
    return int_suffix(letter, bits_of(type));
}

/* $[name] */
static size_t put_attr(const tk_kop *op, const char *at, tk_strbuf *out) {
    size_t length = strcspn(at, "]"), word_length;
    const tk_kop_row *row = tk_kop_row_of(op->code);
    for (int i = 0; row->attrs[i]; i++) {
        const tk_kattr_row *attr = tk_kattr_row_of(row->attrs[i] - 1u);
        if (strlen(attr->name) != length || memcmp(attr->name, at, length)) continue;
        if (attr->kind != TK_KAK_WORD) {
            tk_strbuf_printf(out, "%" PRId64, op->attrs[i]);
        } else {
            const char *word = tk_kwords_at(attr->words, (int)op->attrs[i], &word_length);
            tk_strbuf_put(out, word, word_length);
        }
    }
    return length + 1;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* One piece that begins behind a `$`; gives the characters it took. */
static size_t put_piece(tk_ptx *x, const tk_kop *op, const char *text, size_t at, int element,
                        bool behind_suffix, tk_strbuf *out) {
    char letter = text[at];
    bool suffix = at >= 2 && (is_word(text[at - 2]) || behind_suffix);
    if (letter == '[') return 1 + put_attr(op, text + at + 1, out);
    if (suffix)
        tk_strbuf_puts(out, tk_ptx_suffix(op->operands[0]->type, letter));
    else if (letter == 'd')
        tk_strbuf_puts(out, tk_ptx_result(x, op, element).text);
    else
        tk_strbuf_puts(out, tk_ptx_operand(x, op->operands[letter - 'a'],
                                           op->operands[letter - 'a']->type.lanes > 1 ? element : 0)
                                .text);
    return 1;
}

static void put_element(tk_ptx *x, const tk_kop *op, const char *text, int element) {
    tk_strbuf line = {0};
    size_t suffix_end = 0;
    for (size_t at = 0; text[at];) {
        if (text[at] != '$') {
            tk_strbuf_putc(&line, text[at++]);
            continue;
        }
        bool behind = at > 0 && suffix_end == at;
        size_t taken = put_piece(x, op, text, at + 1, element, behind, &line);
        at += 1 + taken;
        suffix_end = at;
    }
    tk_ptx_line(x, "%s", line.text ? line.text : "");
    if (line.failed) x->body.failed = true;
    tk_strbuf_deinit(&line);
}

/* add, sub and mul of bf16 come with sm_90; before, a fused operation does each exactly: a*1+b,
 * b*-1+a, a*b+-0. */
static bool put_early_bf16(tk_ptx *x, const tk_kop *op) {
    bool early = x->arch < 90 && op->n_operands == 2 && op->operands[0]->type.scalar == TK_K_BF16 &&
                 (op->code == TK_KOP_add || op->code == TK_KOP_sub || op->code == TK_KOP_mul);
    if (!early) return false;
    tk_ptx_name third = tk_ptx_spare(x, TK_PTX_H);
    tk_ptx_line(x, "mov.b16 %s, %s", third.text,
                op->code == TK_KOP_add   ? "0x3f80"
                : op->code == TK_KOP_sub ? "0xbf80"
                                         : "0x8000");
    for (int i = 0; i < op->results[0]->type.lanes; i++) {
        tk_ptx_name d = tk_ptx_result(x, op, i), a = tk_ptx_operand(x, op->operands[0], i),
                    b = tk_ptx_operand(x, op->operands[1], i);
        if (op->code == TK_KOP_mul)
            tk_ptx_line(x, "fma.rn.bf16 %s, %s, %s, %s", d.text, a.text, b.text, third.text);
        else if (op->code == TK_KOP_add)
            tk_ptx_line(x, "fma.rn.bf16 %s, %s, %s, %s", d.text, a.text, third.text, b.text);
        else
            tk_ptx_line(x, "fma.rn.bf16 %s, %s, %s, %s", d.text, b.text, third.text, a.text);
    }
    return true;
}

void tk_ptx_template(tk_ptx *x, const tk_kop *op, const char *text) {
    int elements =
        op->n_results && op->results[0]->type.kind == TK_KT_NUMBER ? op->results[0]->type.lanes : 1;
    if (put_early_bf16(x, op)) return;
    for (int i = 0; i < elements; i++) put_element(x, op, text, i);
}
