/* Pointers, shared memory, loads and stores.
 *
 * Shared memory is one external array, cut by the same map as in PTX and in the emulator. */
#include <inttypes.h>

#include "kernel/check.h"
#include "target/cute/cute.h"
#include "target/ptx/ptx.h"

/* ---- pointers ---- */

static void put_shared_at(tk_cute *x, const tk_kop *op, int64_t at) {
    tk_cute_line(
        x, "%s = llvm.getelementptr %%$shared[%" PRId64 "] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8",
        tk_cute_result(x, op), at);
}

void tk_cute_put_address(tk_cute *x, const tk_kop *op) {
    put_shared_at(x, op, x->shared_at[op->operands[0]->id]);
}
void tk_cute_put_dynamic_shared(tk_cute *x, const tk_kop *op) {
    put_shared_at(x, op, x->shared.dynamic_at);
}

void tk_cute_put_offset(tk_cute *x, const tk_kop *op) {
    tk_ktype pointer = op->operands[0]->type;
    const char *type = tk_cute_type(x, pointer);
    tk_cute_line(x, "%s = llvm.getelementptr %s[%s] : (%s, %s) -> %s, %s", tk_cute_result(x, op),
                 tk_cute_operand(x, op, 0), tk_cute_operand(x, op, 1), type,
                 tk_cute_type(x, op->operands[1]->type), type,
                 tk_cute_scalar((tk_kscalar)pointer.scalar));
}

void tk_cute_put_pointer_cast(tk_cute *x, const tk_kop *op) {
    const char *from = tk_cute_type(x, op->operands[0]->type),
               *to = tk_cute_type(x, op->results[0]->type);
    if (tk_cute_space((tk_kspace)op->operands[0]->type.space) ==
        tk_cute_space((tk_kspace)op->results[0]->type.space))
        tk_cute_put_alias(x, op);
    else
        tk_cute_line(x, "%s = llvm.addrspacecast %s : %s to %s", tk_cute_result(x, op),
                     tk_cute_operand(x, op, 0), from, to);
}

void tk_cute_put_pointer_bits(tk_cute *x, const tk_kop *op) {
    tk_cute_line(x, "%s = llvm.ptrtoint %s : %s to %s", tk_cute_result(x, op),
                 tk_cute_operand(x, op, 0), tk_cute_type(x, op->operands[0]->type),
                 tk_cute_type(x, op->results[0]->type));
}

/* The dialect's operation begins in the own block's memory. */
void tk_cute_put_peer(tk_cute *x, const tk_kop *op) {
    const tk_kvalue *from = op->operands[0];
    if (from->type.space == TK_KS_SHARED) {
        tk_cute_line(x, "%s = nvvm.mapa %s, %s : !llvm.ptr<3> -> !llvm.ptr<7>",
                     tk_cute_result(x, op), tk_cute_operand(x, op, 0), tk_cute_operand(x, op, 1));
        return;
    }
    const tk_cute_value operands[] = {tk_cute_in_register(x, from),
                                      tk_cute_in_register(x, op->operands[1])};
    const char *address =
        tk_cute_pure_insn(x, NULL, "i32", "mapa.shared::cluster.u32 $0, $1, $2;", 2, operands);
    tk_cute_line(x, "%s = llvm.inttoptr %s : i32 to !llvm.ptr<7>", tk_cute_result(x, op), address);
}

/* ---- loads and stores ---- */

/* The rows of operands: load pointer, if, else, policy; store pointer, value, if, policy. */
enum { POLICY = 3 };

/* Hints, orders and policies are words of the instruction that LLVM's operations do not carry: such
 * an access is an instruction as text, on integers of the same bits. */
static bool is_plain(const tk_kop *op) {
    static const tk_kattr_id words[] = {TK_KA_order, TK_KA_cache, TK_KA_evict};
    if (op->operands[POLICY]) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tk_kop_attr(op, words[i])) return false;
    return op->code != TK_KOP_load || !tk_kop_attr(op, TK_KA_prefetch);
}

typedef struct words {
    int count, bits;
    const char *type;    /* of one */
    const char *list;    /* "{$0, $1}", from `first` on */
    const char *letters; /* constraints: "r,r" */
} words;

/* An access of up to 16 bytes as up to four words. */
static words words_of(tk_cute *x, tk_ktype type, int first, const char *mark) {
    int bytes = tk_ktype_bytes(type), bits = bytes >= 4 ? 32 : 8 * bytes;
    words w = {.count = bytes >= 4 ? bytes / 4 : 1, .bits = bits};
    tk_strbuf list = {0}, letters = {0};
    w.type = bits == 32 ? "i32" : "i16";
    for (int i = 0; i < w.count; i++) {
        tk_strbuf_printf(&list, "%s$%d", i ? ", " : w.count > 1 ? "{" : "", first + i);
        tk_strbuf_printf(&letters, "%s%s%c", i ? "," : "", mark, bits == 32 ? 'r' : 'h');
    }
    if (w.count > 1) tk_strbuf_putc(&list, '}');
    w.list = tk_cute_text(x, "%s", list.text ? list.text : "");
    w.letters = tk_cute_text(x, "%s", letters.text ? letters.text : "");
    x->body.failed |= list.failed || letters.failed;
    tk_strbuf_deinit(&list);
    tk_strbuf_deinit(&letters);
    return w;
}

static const char *vector_word(const words *w) {
    return w->count == 4 ? ".v4" : w->count == 2 ? ".v2" : "";
}

static char pointer_letter(const tk_kop *op) {
    return tk_ktype_bytes(op->operands[0]->type) == 8 ? 'l' : 'r';
}

static const char *modifiers(tk_cute *x, const tk_kop *op) {
    tk_strbuf text = {0};
    tk_ptx_put_modifiers(op, POLICY, &text);
    const char *kept = tk_cute_text(x, "%s", text.text ? text.text : "");
    x->body.failed |= text.failed;
    tk_strbuf_deinit(&text);
    return kept;
}

/* The value from its words: a struct of several, or one. */
static const char *join_words(tk_cute *x, const char *name, const words *w, const char *all,
                              tk_ktype type) {
    const char *text = tk_cute_type(x, type), *structure;
    if (w->bits == 8) {
        if (type.scalar != TK_K_I1)
            return tk_cute_let_as(x, name, "arith.trunci %s : i16 to i8", all);
        return tk_cute_let_as(x, name, "arith.cmpi ne, %s, %s : i16", all,
                              tk_cute_constant(x, 0, "i16"));
    }
    if (w->count == 1 && type.lanes == 1)
        return tk_cute_let_as(x, name, "llvm.bitcast %s : %s to %s", all, w->type, text);
    tk_strbuf list = {0};
    structure = tk_cute_text(x, "!llvm.struct<(%s)>",
                             w->count == 4   ? "i32, i32, i32, i32"
                             : w->count == 2 ? "i32, i32"
                                             : "i32");
    for (int i = 0; i < w->count; i++)
        tk_strbuf_printf(&list, "%s%s", i ? ", " : "",
                         w->count == 1
                             ? all
                             : tk_cute_let(x, "llvm.extractvalue %s[%d] : %s", all, i, structure));
    const char *vector = tk_cute_let(x, "vector.from_elements %s : vector<%dx%s>",
                                     list.text ? list.text : "", w->count, w->type);
    x->body.failed |= list.failed;
    tk_strbuf_deinit(&list);
    if (type.lanes > 1)
        return tk_cute_let_as(x, name, "vector.bitcast %s : vector<%dx%s> to %s", vector, w->count,
                              w->type, text);
    const char *one = tk_cute_let(x, "vector.bitcast %s : vector<%dx%s> to vector<1x%s>", vector,
                                  w->count, w->type, text);
    return tk_cute_let_as(x, name, "vector.extract %s[0] : %s from vector<1x%s>", one, text, text);
}

/* The policy as one more operand of the instruction, of this number. */
typedef struct policy {
    const char *number, *letter, *name, *type;
} policy;

static policy policy_of(tk_cute *x, const tk_kop *op, int number) {
    if (!op->operands[POLICY]) return (policy){"", "", "", ""};
    return (policy){tk_cute_text(x, ", $%d", number), ",l",
                    tk_cute_text(x, ", %s", tk_cute_operand(x, op, POLICY)), ", i64"};
}

static const char *put_hinted_load(tk_cute *x, const char *name, const tk_kop *op) {
    words w = words_of(x, op->results[0]->type, 0, "=");
    policy p = policy_of(x, op, w.count + 1);
    const char *result = w.count == 1   ? w.type
                         : w.count == 2 ? "!llvm.struct<(i32, i32)>"
                                        : "!llvm.struct<(i32, i32, i32, i32)>";
    const char *all =
        tk_cute_let(x,
                    "llvm.inline_asm has_side_effects \"ld%s%s.b%d %s, [$%d]%s;\", "
                    "\"%s,%c%s,~{memory}\" %s%s : "
                    "(%s%s) -> %s",
                    modifiers(x, op), vector_word(&w), w.bits, w.list, w.count, p.number, w.letters,
                    pointer_letter(op), p.letter, tk_cute_operand(x, op, 0), p.name,
                    tk_cute_type(x, op->operands[0]->type), p.type, result);
    return join_words(x, name, &w, all, op->results[0]->type);
}

/* The words of a value, as operands and their types: "%a, %b" and "i32, i32". */
static const char *split_words(tk_cute *x, const words *w, const char *value, tk_ktype type,
                               const char **out_types) {
    const char *text = tk_cute_type(x, type);
    *out_types = w->count == 4 ? "i32, i32, i32, i32" : w->count == 2 ? "i32, i32" : w->type;
    if (w->bits == 8)
        return tk_cute_let(x, "arith.extui %s : %s to i16", value,
                           type.scalar == TK_K_I1 ? "i1" : "i8");
    if (w->count == 1 && type.lanes == 1)
        return tk_cute_let(x, "llvm.bitcast %s : %s to %s", value, text, w->type);
    if (type.lanes == 1) {
        value = tk_cute_let(x, "vector.broadcast %s : %s to vector<1x%s>", value, text, text);
        text = tk_cute_text(x, "vector<1x%s>", text);
    }
    const char *vector =
        tk_cute_let(x, "vector.bitcast %s : %s to vector<%dx%s>", value, text, w->count, w->type);
    const char *list = "";
    for (int i = 0; i < w->count; i++)
        list = tk_cute_text(x, "%s%s%s", list, i ? ", " : "",
                            tk_cute_let(x, "vector.extract %s[%d] : %s from vector<%dx%s>", vector,
                                        i, w->type, w->count, w->type));
    return list;
}

static void put_hinted_store(tk_cute *x, const tk_kop *op) {
    enum { VALUE = 1 };
    tk_ktype type = op->operands[VALUE]->type;
    words w = words_of(x, type, 1, "");
    const char *types, *list = split_words(x, &w, tk_cute_operand(x, op, VALUE), type, &types);
    policy p = policy_of(x, op, w.count + 1);
    tk_cute_line(
        x,
        "llvm.inline_asm has_side_effects \"st%s%s.b%d [$0], %s%s;\", \"%c,%s%s,~{memory}\" %s, "
        "%s%s : (%s, %s%s) -> ()",
        modifiers(x, op), vector_word(&w), w.bits, w.list, p.number, pointer_letter(op), w.letters,
        p.letter, tk_cute_operand(x, op, 0), list, p.name, tk_cute_type(x, op->operands[0]->type),
        types, p.type);
}

/* In memory a truth value is a byte. */
static const char *memory_type(tk_cute *x, tk_ktype type) {
    return type.scalar == TK_K_I1 ? "i8" : tk_cute_type(x, type);
}

/* Under `name`, or a new one for NULL. */
static const char *put_any_load(tk_cute *x, const char *name, const tk_kop *op) {
    tk_ktype type = op->results[0]->type;
    bool truth = type.scalar == TK_K_I1;
    if (!is_plain(op)) return put_hinted_load(x, name, op);
    const char *loaded =
        tk_cute_let_as(x, truth ? NULL : name, "llvm.load %s {alignment = %d : i64} : %s -> %s",
                       tk_cute_operand(x, op, 0), tk_ktype_bytes(type),
                       tk_cute_type(x, op->operands[0]->type), memory_type(x, type));
    if (!truth) return loaded;
    return tk_cute_let_as(x, name, "arith.cmpi ne, %s, %s : i8", loaded,
                          tk_cute_constant(x, 0, "i8"));
}

static const char *zero_of(tk_cute *x, tk_ktype type) {
    const char *text = tk_cute_type(x, type);
    const char *zero = tk_cute_is_float(type) ? "0.0" : "0";
    if (type.scalar == TK_K_I1) return tk_cute_let(x, "arith.constant false");
    if (type.lanes > 1) return tk_cute_let(x, "arith.constant dense<%s> : %s", zero, text);
    return tk_cute_let(x, "arith.constant %s : %s", zero, text);
}

void tk_cute_put_load(tk_cute *x, const tk_kop *op) {
    enum { CONDITION = 1, OTHER = 2 };
    tk_ktype type = op->results[0]->type;
    const char *text = tk_cute_type(x, type);
    if (!op->operands[CONDITION]) {
        put_any_load(x, tk_cute_result(x, op), op);
        return;
    }
    const char *other = op->operands[OTHER] ? tk_cute_operand(x, op, OTHER) : zero_of(x, type);
    tk_cute_line(x, "%s = scf.if %s -> (%s) {", tk_cute_result(x, op),
                 tk_cute_operand(x, op, CONDITION), text);
    tk_cute_open(x);
    const char *loaded = put_any_load(x, NULL, op);
    tk_cute_line(x, "scf.yield %s : %s", loaded, text);
    tk_cute_close(x);
    tk_cute_line(x, "} else {");
    tk_cute_line(x, "  scf.yield %s : %s", other, text);
    tk_cute_line(x, "}");
}

static void put_any_store(tk_cute *x, const tk_kop *op) {
    enum { VALUE = 1 };
    tk_ktype type = op->operands[VALUE]->type;
    if (!is_plain(op)) {
        put_hinted_store(x, op);
        return;
    }
    const char *value = tk_cute_operand(x, op, VALUE);
    if (type.scalar == TK_K_I1) value = tk_cute_let(x, "arith.extui %s : i1 to i8", value);
    tk_cute_line(x, "llvm.store %s, %s {alignment = %d : i64} : %s, %s", value,
                 tk_cute_operand(x, op, 0), tk_ktype_bytes(type), memory_type(x, type),
                 tk_cute_type(x, op->operands[0]->type));
}

void tk_cute_put_store(tk_cute *x, const tk_kop *op) {
    enum { CONDITION = 2 };
    if (!op->operands[CONDITION]) {
        put_any_store(x, op);
        return;
    }
    tk_cute_line(x, "scf.if %s {", tk_cute_operand(x, op, CONDITION));
    tk_cute_open(x);
    put_any_store(x, op);
    tk_cute_close(x);
    tk_cute_line(x, "}");
}
