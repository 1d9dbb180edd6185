/* Atomic operations and reductions.
 *
 * LLVM's operations stand for relaxed updates of 32 and 64 bits alone: the compiler drops the order
 * of an atomicrmw that acquires or releases. The others, those with a policy and those that LLVM
 * lacks are instructions as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "target/cute/put.h"
#include "target/ptx/put.h"

/* ---- what LLVM has ---- */

/* By place in the words of `update`: NULL where LLVM has none. */
static const char *update_word(const tk_kop *op, bool is_float) {
    static const char *const integers[] = {"add",  "min", "max",  "umin", "umax", NULL, NULL,
                                           "_and", "_or", "_xor", "xchg", NULL,   NULL, NULL};
    int64_t update = tk_kop_attr(op, TK_KA_update);
    if (is_float) return update == 0 ? "fadd" : NULL;
    return integers[update];
}

static const char *order_text(tk_cute *x, const tk_kop *op) {
    static const char *const scopes[] = {"device", "block", "cluster", "device", ""};
    const char *scope = scopes[tk_kop_attr(op, TK_KA_scope)];
    return *scope ? tk_cute_text(x, "syncscope(\"%s\") monotonic", scope) : "monotonic";
}

static const char *plain_word(const tk_kop *op, int policy) {
    enum { RELAXED = 1 };
    tk_ktype type = op->operands[1]->type;
    bool plain = type.lanes == 1 && tk_kscalar_bytes((tk_kscalar)type.scalar) >= 4 &&
                 tk_kop_attr(op, TK_KA_order) <= RELAXED && !op->operands[policy];
    return plain ? update_word(op, tk_cute_is_float(type)) : NULL;
}

static const char *put_update(tk_cute *x, const tk_kop *op, const char *word) {
    return tk_cute_let(x, "llvm.atomicrmw %s %s, %s %s : %s, %s", word, tk_cute_operand(x, op, 0),
                       tk_cute_operand(x, op, 1), order_text(x, op), tk_cute_pointer_type(x, op, 0),
                       tk_cute_type(x, op->operands[1]->type));
}

/* ---- instructions ---- */

static const char *const spaces[] = {".global", "", ".shared", ".shared::cluster", ""};
static const char *const orders[] = {"", ".relaxed", ".acquire", ".release", ".acq_rel"};

/* An element as the register that the instruction takes: half types are 16 bits. */
static const char *back_from_register(tk_cute *x, const char *name, const char *type) {
    if (strcmp(type, "f16") && strcmp(type, "bf16")) return name;
    return tk_cute_let(x, "arith.bitcast %s : i16 to %s", name, type);
}

/* The modifiers of a policy stand before the last word of the update, its type. */
static const char *update_text(tk_cute *x, const tk_kop *op, int policy) {
    tk_ktype type = op->operands[1]->type;
    const char *update =
        tk_ptx_update((int)tk_kop_attr(op, TK_KA_update), (tk_kscalar)type.scalar, false);
    unsigned space = op->operands[0]->type.space;
    if (!update || (*spaces[space] == 0)) {
        tk_cute_fail(x, op, "of %s with this update or in this memory",
                     tk_ktype_words(x->kernel, type).text);
        return "";
    }
    const char *last = strrchr(update, '.');
    return tk_cute_text(x, "%.*s%s%s", (int)(last - update), update, tk_ptx_hint(op, policy), last);
}

/* The old value, a register of the element's bits. */
static const char *put_atom(tk_cute *x, const tk_kop *op, int policy) {
    enum { EXPECTED = 2 };
    bool compares = op->code == TK_KOP_atomic && op->operands[EXPECTED];
    const char *type = tk_cute_type(x, op->operands[1]->type), *update = update_text(x, op, policy);
    tk_cute_value values[4] = {tk_cute_in_register(x, op->operands[0])};
    int count = 1;
    if (compares) values[count++] = tk_cute_in_register(x, op->operands[EXPECTED]);
    values[count++] = tk_cute_in_register(x, op->operands[1]);
    if (op->operands[policy]) values[count++] = tk_cute_in_register(x, op->operands[policy]);
    const char *rest = count == 2 ? "$2" : count == 3 ? "$2, $3" : "$2, $3, $4";
    const char *old = tk_cute_insn_of(
        x, NULL, values[1 + compares].type,
        tk_cute_text(x, "atom%s%s%s.%s $0, [$1], %s;", orders[tk_kop_attr(op, TK_KA_order)],
                     tk_ptx_scope(op), spaces[op->operands[0]->type.space], update, rest),
        count, values);
    return back_from_register(x, old, type);
}

static const char *put_any(tk_cute *x, const tk_kop *op, int policy) {
    const char *word = plain_word(op, policy);
    return word ? put_update(x, op, word) : put_atom(x, op, policy);
}

void tk_cute_put_atomic(tk_cute *x, const tk_kop *op) {
    enum { CONDITION = 3, POLICY };
    const char *type = tk_cute_type(x, op->results[0]->type);
    if (!op->operands[CONDITION]) {
        tk_cute_alias(x, op->results[0], put_any(x, op, POLICY));
        return;
    }
    tk_cute_line(x, "%s = scf.if %s -> (%s) {", tk_cute_result(x, op),
                 tk_cute_operand(x, op, CONDITION), type);
    tk_cute_open(x);
    tk_cute_line(x, "scf.yield %s : %s", put_any(x, op, POLICY), type);
    tk_cute_close(x);
    tk_cute_line(x, "} else {");
    tk_cute_open(x);
    const char *zero =
        tk_cute_let(x,
                    tk_cute_is_float(op->results[0]->type) ? "arith.constant 0.0 : %s"
                                                           : "arith.constant 0 : %s",
                    type);
    tk_cute_line(x, "scf.yield %s : %s", zero, type);
    tk_cute_close(x);
    tk_cute_line(x, "}");
}

/* ---- reductions of vectors ---- */

/* Vectors of floats in global memory. */
static void put_vector(tk_cute *x, const tk_kop *op) {
    enum { POLICY = 3, MOST = 8 };
    static const char *const words[] = {[0] = "add", [5] = "min", [6] = "max"};
    tk_ktype type = op->operands[1]->type;
    int64_t update = tk_kop_attr(op, TK_KA_update);
    bool narrow = type.scalar == TK_K_F16 || type.scalar == TK_K_BF16,
         known = update == 0 || (narrow && (update == 5 || update == 6));
    const char *scalar = tk_cute_scalar((tk_kscalar)type.scalar), *list = "";
    if (!known || op->operands[0]->type.space != TK_KS_GLOBAL || type.lanes > MOST ||
        !(narrow || type.scalar == TK_K_F32)) {
        tk_cute_fail(x, op, "of %s with this update or in this memory",
                     tk_ktype_words(x->kernel, type).text);
        return;
    }
    tk_cute_value values[MOST + 2] = {tk_cute_in_register(x, op->operands[0])};
    for (int i = 0; i < type.lanes; i++) {
        const char *element = tk_cute_element(x, op->operands[1], i);
        if (narrow) element = tk_cute_let(x, "arith.bitcast %s : %s to i16", element, scalar);
        values[1 + i] = (tk_cute_value){element, narrow ? "i16" : "f32"};
        list = tk_cute_text(x, "%s%s$%d", list, i ? ", " : "", 1 + i);
    }
    int count = 1 + type.lanes;
    if (op->operands[POLICY]) values[count++] = tk_cute_in_register(x, op->operands[POLICY]);
    tk_cute_insn(x,
                 tk_cute_text(x, "red%s%s.global.%s%s%s.v%d.%s [$0], {%s}%s;",
                              orders[tk_kop_attr(op, TK_KA_order)], tk_ptx_scope(op), words[update],
                              narrow ? ".noftz" : "", tk_ptx_hint(op, POLICY), type.lanes,
                              tk_kscalar_text((tk_kscalar)type.scalar), list,
                              op->operands[POLICY] ? tk_cute_text(x, ", $%d", count - 1) : ""),
                 count, values);
}

void tk_cute_put_reduce(tk_cute *x, const tk_kop *op) {
    enum { CONDITION = 2, POLICY };
    bool opened = tk_cute_open_if(x, op, CONDITION);
    if (op->operands[1]->type.lanes > 1)
        put_vector(x, op);
    else
        put_any(x, op, POLICY);
    tk_cute_close_if(x, opened);
}
