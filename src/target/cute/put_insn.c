/* Instructions as text, for what no dialect has: operands as the registers that PTX gives them. */
#include <string.h>

#include "target/cute/cute.h"

const char *tk_cute_letter(const char *type) {
    static const char *const letters[][2] = {{"i1", "b"},  {"i16", "h"}, {"i32", "r"},
                                             {"i64", "l"}, {"f32", "f"}, {"f64", "d"}};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (!strcmp(type, letters[i][0])) return letters[i][1];
    return "l";
}

static tk_cute_value pointer_in_register(tk_cute *x, const tk_kvalue *value) {
    bool shared = value->type.space == TK_KS_SHARED || value->type.space == TK_KS_CLUSTER;
    const char *type = shared ? "i32" : "i64";
    return (tk_cute_value){tk_cute_let(x, "llvm.ptrtoint %s : %s to %s", tk_cute_name(x, value),
                                       tk_cute_type(x, value->type), type),
                           type};
}

tk_cute_value tk_cute_in_register(tk_cute *x, const tk_kvalue *value) {
    const char *name = tk_cute_name(x, value), *type = tk_cute_type(x, value->type);
    if (value->type.kind == TK_KT_POINTER) return pointer_in_register(x, value);
    if (!strcmp(type, "i1"))
        return (tk_cute_value){tk_cute_let(x, "arith.extui %s : i1 to i32", name), "i32"};
    if (!strcmp(type, "i8"))
        return (tk_cute_value){tk_cute_let(x, "arith.extui %s : i8 to i16", name), "i16"};
    if (!strcmp(type, "f16") || !strcmp(type, "bf16"))
        return (tk_cute_value){tk_cute_let(x, "arith.bitcast %s : %s to i16", name, type), "i16"};
    return (tk_cute_value){name, type};
}

static const char *insn_text(tk_cute *x, const char *result, const char *text, bool pure, int count,
                             const tk_cute_value *operands) {
    tk_strbuf letters = {0}, names = {0}, types = {0};
    if (*result) tk_strbuf_printf(&letters, "=%s,", tk_cute_letter(result));
    for (int i = 0; i < count; i++) {
        tk_strbuf_printf(&letters, "%s,", tk_cute_letter(operands[i].type));
        tk_strbuf_printf(&names, "%s%s", i ? ", " : "", operands[i].name);
        tk_strbuf_printf(&types, "%s%s", i ? ", " : "", operands[i].type);
    }
    if (!pure) tk_strbuf_puts(&letters, "~{memory},");
    const char *line = tk_cute_text(
        x, "llvm.inline_asm%s \"%s\", \"%.*s\" %s : (%s) -> %s", pure ? "" : " has_side_effects",
        text, letters.length ? (int)letters.length - 1 : 0, letters.text ? letters.text : "",
        names.text ? names.text : "", types.text ? types.text : "", *result ? result : "()");
    x->body.failed |= letters.failed || names.failed || types.failed;
    tk_strbuf_deinit(&letters);
    tk_strbuf_deinit(&names);
    tk_strbuf_deinit(&types);
    return line;
}

void tk_cute_insn(tk_cute *x, const char *text, int count, const tk_cute_value *operands) {
    tk_cute_line(x, "%s", insn_text(x, "", text, false, count, operands));
}

const char *tk_cute_insn_of(tk_cute *x, const char *name, const char *type, const char *text,
                            int count, const tk_cute_value *operands) {
    return tk_cute_let_as(x, name, "%s", insn_text(x, type, text, false, count, operands));
}

const char *tk_cute_pure_insn(tk_cute *x, const char *name, const char *type, const char *text,
                              int count, const tk_cute_value *operands) {
    return tk_cute_let_as(x, name, "%s", insn_text(x, type, text, true, count, operands));
}

/* ---- raw instructions ---- */

/* The text in the quotes of MLIR, where a dollar that is no operand's is two. */
static const char *quoted(tk_cute *x, const char *text) {
    tk_strbuf out = {0};
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') tk_strbuf_putc(&out, '\\');
        if (*text == '$' && (text[1] < '0' || text[1] > '9')) tk_strbuf_putc(&out, '$');
        tk_strbuf_putc(&out, *text);
    }
    const char *kept = tk_cute_text(x, "%s;", out.text ? out.text : "");
    x->body.failed |= out.failed;
    tk_strbuf_deinit(&out);
    return kept;
}

/* Numbers of one element that have a register of their own type. */
static bool has_register(tk_cute *x, const tk_kvalue *value) {
    tk_ktype type = value->type;
    return type.kind == TK_KT_POINTER ||
           (type.lanes == 1 && strcmp(tk_cute_letter(tk_cute_type(x, type)), "l")) ||
           type.scalar == TK_K_I64;
}

/* A truth value keeps its kind of register, which the instruction names. */
static tk_cute_value raw_operand(tk_cute *x, const tk_kvalue *value) {
    if (value->type.kind == TK_KT_NUMBER && value->type.scalar == TK_K_I1)
        return (tk_cute_value){tk_cute_name(x, value), "i1"};
    return tk_cute_in_register(x, value);
}

void tk_cute_put_raw(tk_cute *x, const tk_kop *op) {
    enum { MOST = 16 };
    tk_cute_value values[MOST];
    const char *text = quoted(x, tk_kop_text(x->kernel, op, TK_KA_text));
    bool fits = op->n_operands <= MOST && op->n_results <= 1;
    for (uint32_t i = 0; i < op->n_operands && fits; i++)
        if (op->operands[i]->type.kind != TK_KT_POINTER && !has_register(x, op->operands[i]))
            fits = false;
    if (op->n_results &&
        (op->results[0]->type.kind == TK_KT_POINTER || !has_register(x, op->results[0])))
        fits = false;
    if (!fits) {
        tk_cute_fail(x, op, "with more than one result, or a value without a register of its type");
        return;
    }
    for (uint32_t i = 0; i < op->n_operands; i++) values[i] = raw_operand(x, op->operands[i]);
    if (op->n_results)
        tk_cute_insn_of(x, tk_cute_result(x, op), tk_cute_type(x, op->results[0]->type), text,
                        (int)op->n_operands, values);
    else
        tk_cute_insn(x, text, (int)op->n_operands, values);
}
