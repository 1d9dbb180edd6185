/* Numbers and vectors.
 *
 * MLIR's integers have undefined results where a kernel's have none: shifts by the width and more,
 * division by zero and of the smallest by -1, conversions beyond the range. Each is said with a
 * guard that the compiler folds away where the hardware does the same. Floats are compiled without
 * contraction; the smaller and larger of two and fma of halves go by NVVM's functions, because the
 * dialects' own lose the sign of zero and round twice. */
#include <inttypes.h>
#include <string.h>

#include "target/cute/cute.h"

static tk_ktype type_of(const tk_kop *op, int index) { return op->operands[index]->type; }

static int bits_of(tk_ktype type) { return 8 * tk_kscalar_bytes((tk_kscalar)type.scalar); }

/* The same integer in each element. */
static const char *splat(tk_cute *x, int64_t value, tk_ktype type) {
    const char *text = tk_cute_type(x, type);
    if (type.lanes == 1) return tk_cute_constant(x, value, text);
    return tk_cute_let(x, "arith.constant dense<%" PRId64 "> : %s", value, text);
}

static const char *truth_type(tk_cute *x, tk_ktype type) {
    return type.lanes == 1 ? "i1" : tk_cute_text(x, "vector<%dxi1>", type.lanes);
}

/* Under `name`, or a new one for NULL. */
static const char *select_as(tk_cute *x, const char *name, tk_ktype type, const char *condition,
                             const char *yes, const char *no) {
    const char *text = tk_cute_type(x, type);
    if (type.lanes == 1)
        return tk_cute_let_as(x, name, "arith.select %s, %s, %s : %s", condition, yes, no, text);
    return tk_cute_let_as(x, name, "arith.select %s, %s, %s : %s, %s", condition, yes, no,
                          truth_type(x, type), text);
}

void tk_cute_put_nothing(tk_cute *x, const tk_kop *op) { (void)x, (void)op; }

void tk_cute_put_alias(tk_cute *x, const tk_kop *op) {
    uint32_t to = op->results[0]->id, from = op->operands[0]->id;
    tk_cute_alias(x, op->results[0], tk_cute_operand(x, op, 0));
    x->views[to] = x->views[from];
    x->parts[to] = x->parts[from];
}

/* ---- integers ---- */

void tk_cute_put_neg(tk_cute *x, const tk_kop *op) {
    tk_ktype type = type_of(op, 0);
    const char *a = tk_cute_operand(x, op, 0), *text = tk_cute_type(x, type);
    if (tk_cute_is_float(type))
        tk_cute_line(x, "%s = arith.negf %s : %s", tk_cute_result(x, op), a, text);
    else
        tk_cute_line(x, "%s = arith.subi %s, %s : %s", tk_cute_result(x, op), splat(x, 0, type), a,
                     text);
}

void tk_cute_put_not(tk_cute *x, const tk_kop *op) {
    tk_ktype type = type_of(op, 0);
    const char *ones =
        type.scalar == TK_K_I1 ? tk_cute_let(x, "arith.constant true") : splat(x, -1, type);
    tk_cute_line(x, "%s = arith.xori %s, %s : %s", tk_cute_result(x, op), tk_cute_operand(x, op, 0),
                 ones, tk_cute_type(x, type));
}

/* By 0 is 0. The smallest by -1 is itself, with remainder 0: by -1 the operand is divided by 1 and
 * the quotient's sign turned. */
void tk_cute_put_divide(tk_cute *x, const tk_kop *op) {
    static const char *const words[] = {"divsi", "divui", "remsi", "remui"};
    bool remainder = op->code == TK_KOP_srem || op->code == TK_KOP_urem,
         is_signed = op->code == TK_KOP_sdiv || op->code == TK_KOP_srem;
    tk_ktype type = type_of(op, 0);
    const char *text = tk_cute_type(x, type), *a = tk_cute_operand(x, op, 0),
               *b = tk_cute_operand(x, op, 1);
    const char *word = words[2 * remainder + !is_signed];
    int64_t known;
    if (tk_kvalue_integer(op->operands[1], &known) && known != 0 && known != -1) {
        tk_cute_line(x, "%s = arith.%s %s, %s : %s", tk_cute_result(x, op), word, a, b, text);
        return;
    }
    const char *zero = splat(x, 0, type), *one = splat(x, 1, type);
    const char *is_zero = tk_cute_let(x, "arith.cmpi eq, %s, %s : %s", b, zero, text),
               *safe = select_as(x, NULL, type, is_zero, one, b), *is_minus = NULL;
    if (is_signed) {
        is_minus = tk_cute_let(x, "arith.cmpi eq, %s, %s : %s", b, splat(x, -1, type), text);
        safe = select_as(x, NULL, type, is_minus, one, safe);
    }
    const char *result =
        tk_cute_let(x, "arith.%s %s, %s : %s", words[2 * remainder + !is_signed], a, safe, text);
    if (is_signed && !remainder) {
        const char *turned = tk_cute_let(x, "arith.subi %s, %s : %s", zero, a, text);
        result = select_as(x, NULL, type, is_minus, turned, result);
    }
    select_as(x, tk_cute_result(x, op), type, is_zero, zero, result);
}

void tk_cute_put_mulhi(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "%s, %s = arith.%s_extended %s, %s : %s", tk_cute_temp(x),
                 tk_cute_result(x, op), op->code == TK_KOP_smulhi ? "mulsi" : "mului",
                 tk_cute_operand(x, op, 0), tk_cute_operand(x, op, 1),
                 tk_cute_type(x, type_of(op, 0)));
}

/* A shift by an amount that is known to be below the width. */
static void put_plain_shift(tk_cute *x, const tk_kop *op, const char *word, int64_t amount) {
    tk_ktype type = type_of(op, 0);
    tk_cute_line(x, "%s = arith.%s %s, %s : %s", tk_cute_result(x, op), word,
                 tk_cute_operand(x, op, 0), splat(x, amount, type), tk_cute_type(x, type));
}

/* The amount is an i32 of as many lanes: brought to the operand's width after it was compared. */
void tk_cute_put_shift(tk_cute *x, const tk_kop *op) {
    tk_ktype type = type_of(op, 0), counts = type_of(op, 1);
    const char *text = tk_cute_type(x, type), *count_text = tk_cute_type(x, counts),
               *a = tk_cute_operand(x, op, 0), *amount = tk_cute_operand(x, op, 1);
    bool arithmetic = op->code == TK_KOP_sshr;
    const char *word = op->code == TK_KOP_shl ? "shli" : arithmetic ? "shrsi" : "shrui";
    int64_t known;
    if (tk_kvalue_integer(op->operands[1], &known) && known >= 0 && known < bits_of(type)) {
        put_plain_shift(x, op, word, known);
        return;
    }
    const char *inside = tk_cute_let(x, "arith.cmpi ult, %s, %s : %s", amount,
                                     splat(x, bits_of(type), counts), count_text);
    const char *most = splat(x, arithmetic ? bits_of(type) - 1 : 0, counts),
               *safe = select_as(x, NULL, counts, inside, amount, most);
    if (bits_of(type) != 32)
        safe = tk_cute_let(x, "arith.%s %s : %s to %s", bits_of(type) < 32 ? "trunci" : "extui",
                           safe, count_text, text);
    const char *name = tk_cute_result(x, op);
    const char *shifted =
        tk_cute_let_as(x, arithmetic ? name : NULL, "arith.%s %s, %s : %s", word, a, safe, text);
    if (!arithmetic) select_as(x, name, type, inside, shifted, splat(x, 0, type));
}

/* The results are i32 whatever is counted. */
void tk_cute_put_count_bits(tk_cute *x, const tk_kop *op) {
    tk_ktype type = type_of(op, 0);
    const char *elements[16];
    for (int i = 0; i < type.lanes; i++) {
        const char *scalar = tk_cute_scalar((tk_kscalar)type.scalar);
        elements[i] =
            tk_cute_let(x, "math.%s %s : %s", op->code == TK_KOP_popcount ? "ctpop" : "ctlz",
                        tk_cute_element(x, op->operands[0], i), scalar);
        if (bits_of(type) == 64)
            elements[i] = tk_cute_let(x, "arith.trunci %s : i64 to i32", elements[i]);
    }
    tk_cute_gather(x, op, elements);
}

void tk_cute_put_reverse_bits(tk_cute *x, const tk_kop *op) {
    const char *text = tk_cute_type(x, type_of(op, 0));
    tk_cute_line(x, "%s = llvm.intr.bitreverse(%s) : (%s) -> %s", tk_cute_result(x, op),
                 tk_cute_operand(x, op, 0), text, text);
}

static const char *word_of(tk_cute *x, const tk_kop *op, tk_kattr_id id) {
    size_t length;
    const char *word = tk_kwords_at(tk_kattr_row_of(id)->words, (int)tk_kop_attr(op, id), &length);
    return tk_cute_text(x, "%.*s", (int)length, word);
}

/* An instruction on three words of 32 bits. */
static void put_three(tk_cute *x, const tk_kop *op, const char *instruction, const char *end) {
    tk_cute_value operands[3];
    for (int i = 0; i < 3; i++) operands[i] = (tk_cute_value){tk_cute_operand(x, op, i), "i32"};
    tk_cute_pure_insn(x, tk_cute_result(x, op), "i32",
                      tk_cute_text(x, "%s $0, $1, $2, $3%s;", instruction, end), 3, operands);
}

void tk_cute_put_permute_bytes(tk_cute *x, const tk_kop *op) {
    bool plain = tk_kop_attr(op, TK_KA_prmt) == 0;
    put_three(
        x, op,
        tk_cute_text(x, "prmt.b32%s%s", plain ? "" : ".", plain ? "" : word_of(x, op, TK_KA_prmt)),
        "");
}

void tk_cute_put_logic3(tk_cute *x, const tk_kop *op) {
    put_three(x, op, "lop3.b32", tk_cute_text(x, ", %" PRId64, tk_kop_attr(op, TK_KA_table)));
}

void tk_cute_put_funnel(tk_cute *x, const tk_kop *op) {
    put_three(x, op,
              tk_cute_text(x, "shf.%s.%s.b32", tk_kop_attr(op, TK_KA_direction) ? "r" : "l",
                           tk_kop_attr(op, TK_KA_wrap) ? "wrap" : "clamp"),
              "");
}

void tk_cute_put_compare(tk_cute *x, const tk_kop *op) {
    static const char *const floats[] = {"oeq", "one", "olt", "ole", "ogt", "oge", "ueq",
                                         "une", "ult", "ule", "ugt", "uge", "ord", "uno"};
    bool is_float = op->code == TK_KOP_fcmp;
    const char *word = is_float ? floats[tk_kop_attr(op, TK_KA_fcmp)] : word_of(x, op, TK_KA_icmp);
    tk_cute_line(x, "%s = arith.cmp%c %s, %s, %s : %s", tk_cute_result(x, op), is_float ? 'f' : 'i',
                 word, tk_cute_operand(x, op, 0), tk_cute_operand(x, op, 1),
                 tk_cute_type(x, type_of(op, 0)));
}

void tk_cute_put_select(tk_cute *x, const tk_kop *op) {
    tk_ktype type = type_of(op, 1);
    if (type.kind != TK_KT_NUMBER && type.kind != TK_KT_POINTER) {
        tk_cute_fail(x, op, "of %s", tk_ktype_words(x->kernel, type).text);
        return;
    }
    tk_cute_line(x, "%s = arith.select %s, %s, %s : %s", tk_cute_result(x, op),
                 tk_cute_operand(x, op, 0), tk_cute_operand(x, op, 1), tk_cute_operand(x, op, 2),
                 tk_cute_type(x, type));
}

/* ---- floats ---- */

void tk_cute_put_fma(tk_cute *x, const tk_kop *op) {
    tk_ktype type = type_of(op, 0);
    bool unit = op->code == TK_KOP_fma_unit;
    const char *scalar = tk_cute_scalar((tk_kscalar)type.scalar), *elements[16],
               *name = unit ? "sat.f" : scalar;
    if (!unit && (type.scalar == TK_K_F32 || type.scalar == TK_K_F64)) {
        tk_cute_line(x, "%s = math.fma %s : %s", tk_cute_result(x, op),
                     tk_cute_list(x, 3, op->operands), tk_cute_type(x, type));
        return;
    }
    for (int i = 0; i < type.lanes; i++)
        elements[i] = tk_cute_let(
            x, "llvm.call_intrinsic \"llvm.nvvm.fma.rn.%s\"(%s, %s, %s) : (%s, %s, %s) -> %s", name,
            tk_cute_element(x, op->operands[0], i), tk_cute_element(x, op->operands[1], i),
            tk_cute_element(x, op->operands[2], i), scalar, scalar, scalar, scalar);
    tk_cute_gather(x, op, elements);
}

void tk_cute_put_reciprocal(tk_cute *x, const tk_kop *op) {
    tk_ktype type = type_of(op, 0);
    const char *text = tk_cute_type(x, type);
    const char *one = tk_cute_let(
        x, type.lanes > 1 ? "arith.constant dense<1.0> : %s" : "arith.constant 1.0 : %s", text);
    tk_cute_line(x, "%s = arith.divf %s, %s : %s", tk_cute_result(x, op), one,
                 tk_cute_operand(x, op, 0), text);
}

/* ---- vectors ---- */

void tk_cute_put_vector(tk_cute *x, const tk_kop *op) {
    tk_ktype type = op->results[0]->type;
    if (op->code == TK_KOP_splat)
        tk_cute_line(x, "%s = vector.broadcast %s : %s to %s", tk_cute_result(x, op),
                     tk_cute_operand(x, op, 0), tk_cute_type(x, type_of(op, 0)),
                     tk_cute_type(x, type));
    else
        tk_cute_line(x, "%s = vector.from_elements %s : %s", tk_cute_result(x, op),
                     tk_cute_list(x, op->n_operands, op->operands), tk_cute_type(x, type));
}

void tk_cute_put_extract(tk_cute *x, const tk_kop *op) {
    tk_ktype from = type_of(op, 0), to = op->results[0]->type;
    int64_t index = tk_kop_attr(op, TK_KA_index);
    const char *vector = tk_cute_operand(x, op, 0), *source = tk_cute_type(x, from);
    if (to.lanes == from.lanes)
        tk_cute_put_alias(x, op);
    else if (to.lanes == 1)
        tk_cute_line(x, "%s = vector.extract %s[%" PRId64 "] : %s from %s", tk_cute_result(x, op),
                     vector, index, tk_cute_type(x, to), source);
    else
        tk_cute_line(x,
                     "%s = vector.extract_strided_slice %s {offsets = [%" PRId64
                     "], sizes = [%d], strides = [1]} : %s to %s",
                     tk_cute_result(x, op), vector, index, to.lanes, source, tk_cute_type(x, to));
}

void tk_cute_put_insert(tk_cute *x, const tk_kop *op) {
    tk_ktype whole = type_of(op, 0), part = type_of(op, 1);
    int64_t index = tk_kop_attr(op, TK_KA_index);
    const char *vector = tk_cute_operand(x, op, 0), *element = tk_cute_operand(x, op, 1);
    if (part.lanes == whole.lanes)
        tk_cute_alias(x, op->results[0], element);
    else if (part.lanes == 1)
        tk_cute_line(x, "%s = vector.insert %s, %s [%" PRId64 "] : %s into %s",
                     tk_cute_result(x, op), element, vector, index, tk_cute_type(x, part),
                     tk_cute_type(x, whole));
    else
        tk_cute_line(x,
                     "%s = vector.insert_strided_slice %s, %s {offsets = [%" PRId64
                     "], strides = [1]} : %s into %s",
                     tk_cute_result(x, op), element, vector, index, tk_cute_type(x, part),
                     tk_cute_type(x, whole));
}
