/* Products of warpgroups: wgmma, its descriptors, fences and waits.
 *
 * The dialect's wait carries no values, so its compiler may move uses of a sum above it. Here the
 * product is an instruction as text whose sums are operands and results in the same registers, and
 * fence and wait take every tensor that a product uses in and give it out again: whatever touches
 * one stands on one side. Fragments of A go the same way, so their registers are not free before
 * the wait. Outputs are early ones: else A could lie in the registers of a sum.
 *
 * The compiler's PTX is read for registers in flight (build.c), so that a copy which it puts
 * between product and wait is an error and not a wrong number. */
#include <inttypes.h>

#include "kernel/check.h"
#include "target/cute/cute.h"

enum { D, A, B, ACCUMULATE };

/* ---- which tensors fly ---- */

/* The whole tensor that one is part of. */
static const tk_kvalue *origin(const tk_kvalue *value) {
    while (value->type.kind == TK_KT_REGISTERS && value->op && value->op->code != TK_KOP_registers)
        value = value->op->operands[0];
    return value;
}

/* Fragments of A are words; of sums those with narrow elements are. */
static tk_status note_flights(void *arg, tk_kop *op) {
    tk_cute *x = arg;
    if (op->code != TK_KOP_wgmma) return TK_OK;
    const tk_kvalue *sums = origin(op->operands[D]), *a = origin(op->operands[A]);
    bool narrow = tk_kscalar_bytes((tk_kscalar)sums->type.scalar) < 4;
    x->flights[sums->id] = narrow ? TK_CUTE_FLIES_AS_WORDS : TK_CUTE_FLIES;
    if (a->type.kind == TK_KT_REGISTERS) x->flights[a->id] = TK_CUTE_FLIES_AS_WORDS;
    return TK_OK;
}

bool tk_cute_flies(const tk_cute *x, const tk_kvalue *tensor) {
    tk_cute_flight flight = x->flights[tensor->id];
    return flight == TK_CUTE_FLIES || flight == TK_CUTE_FLIES_AS_WORDS;
}

tk_status tk_cute_find_flights(tk_cute *x) {
    return tk_kblock_walk(&x->kernel->body, note_flights, x);
}

/* ---- instructions whose results lie where their operands do ---- */

typedef struct tied {
    uint32_t count;      /* of registers that come out as they went in */
    tk_strbuf outs, ins; /* constraints */
    tk_strbuf names, types, results;
    bool early;
} tied;

static void separate(tk_strbuf *list, const char *between) {
    if (list->length) tk_strbuf_puts(list, between);
}

/* A register that the instruction takes and gives back. */
static void tie(tied *t, const char *name, const char *type) {
    separate(&t->outs, ",");
    tk_strbuf_printf(&t->outs, "=%s%s", t->early ? "&" : "", tk_cute_letter(type));
    separate(&t->ins, ",");
    tk_strbuf_printf(&t->ins, "%" PRIu32, t->count++);
    separate(&t->names, ", ");
    tk_strbuf_puts(&t->names, name);
    separate(&t->types, ", ");
    tk_strbuf_puts(&t->types, type);
    separate(&t->results, ", ");
    tk_strbuf_puts(&t->results, type);
}

/* One that it only reads. */
static void give(tied *t, const char *name, const char *type) {
    separate(&t->ins, ",");
    tk_strbuf_puts(&t->ins, tk_cute_letter(type));
    separate(&t->names, ", ");
    tk_strbuf_puts(&t->names, name);
    separate(&t->types, ", ");
    tk_strbuf_puts(&t->types, type);
}

static void tie_tensor(tk_cute *x, tied *t, const tk_kvalue *tensor, int64_t from, int64_t count) {
    const char *type = tk_cute_register_type(x, tensor);
    for (int64_t i = 0; i < count; i++) tie(t, tk_cute_take_register(x, tensor, from + i), type);
}

/* The instruction; its results as a struct, whose type is given. */
static const char *put_tied(tk_cute *x, tied *t, const char *text, const char **out_type) {
    *out_type = tk_cute_text(x, "!llvm.struct<(%s)>", t->results.text);
    const char *all = tk_cute_let(
        x, "llvm.inline_asm has_side_effects \"%s\", \"%s,%s,~{memory}\" %s : (%s) -> %s", text,
        t->outs.text, t->ins.text, t->names.text, t->types.text, *out_type);
    x->body.failed |=
        t->outs.failed || t->ins.failed || t->names.failed || t->types.failed || t->results.failed;
    tk_strbuf_deinit(&t->outs);
    tk_strbuf_deinit(&t->ins);
    tk_strbuf_deinit(&t->names);
    tk_strbuf_deinit(&t->types);
    tk_strbuf_deinit(&t->results);
    return all;
}

static void untie_tensor(tk_cute *x, const char *all, const char *type, uint32_t first,
                         const tk_kvalue *tensor, int64_t from, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        tk_cute_store_register(
            x, tensor, from + i,
            tk_cute_let(x, "llvm.extractvalue %s[%" PRId64 "] : %s", all, first + i, type));
}

/* An instruction that every tensor passes. */
static void put_pass(tk_cute *x, const char *text) {
    tied t = {0};
    const char *type;
    uint32_t first = 0;
    for (size_t i = 0; i < x->flying.count; i++)
        tie_tensor(x, &t, x->flying.items[i], 0, tk_cute_registers(x, x->flying.items[i]));
    if (!t.count) {
        tk_cute_insn(x, text, 0, NULL);
        return;
    }
    const char *all = put_tied(x, &t, text, &type);
    for (size_t i = 0; i < x->flying.count; i++) {
        const tk_kvalue *tensor = x->flying.items[i];
        int64_t count = tk_cute_registers(x, tensor);
        untie_tensor(x, all, type, first, tensor, 0, count);
        first += (uint32_t)count;
    }
}

void tk_cute_put_wgmma_order(tk_cute *x, const tk_kop *op) {
    if (op->code == TK_KOP_wgmma_commit)
        tk_cute_line(x, "nvvm.wgmma.commit.group.sync.aligned");
    else if (op->code == TK_KOP_wgmma_fence)
        put_pass(x, "wgmma.fence.sync.aligned;");
    else
        put_pass(x, tk_cute_text(x, "wgmma.wait_group.sync.aligned %" PRId64 ";",
                                 tk_kop_attr(op, TK_KA_groups)));
}

/* ---- descriptors ---- */

/* By place in the words of `swizzle`: bits 62 and 63. */
void tk_cute_put_matrix_descriptor(tk_cute *x, const tk_kop *op) {
    static const uint64_t modes[] = {0, 3, 2, 1};
    uint64_t rest = ((uint64_t)tk_kop_attr(op, TK_KA_lead) & 0x3ffff) >> 4 << 16 |
                    ((uint64_t)tk_kop_attr(op, TK_KA_stride) & 0x3ffff) >> 4 << 32 |
                    ((uint64_t)tk_kop_attr(op, TK_KA_base) & 7) << 49 |
                    modes[tk_kop_attr(op, TK_KA_swizzle)] << 62;
    const char *address = tk_cute_in_register(x, op->operands[0]).name;
    const char *chunk =
        tk_cute_let(x, "arith.shrui %s, %s : i32", address, tk_cute_constant(x, 4, "i32"));
    chunk = tk_cute_let(x, "arith.andi %s, %s : i32", chunk, tk_cute_constant(x, 0x3fff, "i32"));
    chunk = tk_cute_let(x, "arith.extui %s : i32 to i64", chunk);
    tk_cute_line(x, "%s = arith.ori %s, %s : i64", tk_cute_result(x, op), chunk,
                 tk_cute_constant(x, (int64_t)rest, "i64"));
}

/* ---- the product ---- */

/* By place in the words of a_type: f16 bf16 tf32 e4m3 e5m2 s8 u8. */
enum { OF_BF16 = 1, OF_E5M2 = 4 };
static const char *const operand_words[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8"};

/* Negation and, of 16 bits, the ways that the operands lie. */
static const char *ways_of(tk_cute *x, const tk_kop *op, bool registers) {
    int64_t type = tk_kop_attr(op, TK_KA_a_type);
    if (type > OF_E5M2) return "";
    const char *text = tk_cute_text(x, ", %d, %d", tk_kop_attr(op, TK_KA_neg_a) ? -1 : 1,
                                    tk_kop_attr(op, TK_KA_neg_b) ? -1 : 1);
    if (type > OF_BF16) return text;
    if (!registers) text = tk_cute_text(x, "%s, %" PRId64, text, tk_kop_attr(op, TK_KA_a_mn));
    return tk_cute_text(x, "%s, %" PRId64, text, tk_kop_attr(op, TK_KA_b_mn));
}

/* "$4, $5, $6" */
static const char *numbers(tk_cute *x, uint32_t first, uint32_t count) {
    tk_strbuf text = {0};
    for (uint32_t i = 0; i < count; i++)
        tk_strbuf_printf(&text, "%s$%" PRIu32, i ? ", " : "", first + i);
    const char *list = tk_cute_text(x, "%s", text.text ? text.text : "");
    x->body.failed |= text.failed;
    tk_strbuf_deinit(&text);
    return list;
}

/* Operands are numbered: sums, the same again as inputs, A, B, whether to accumulate. */
static const char *product_text(tk_cute *x, const tk_kop *op, uint32_t sums, uint32_t words) {
    const tk_kvalue *d = op->operands[D];
    uint32_t first = 2 * sums, rest = first + (words ? words : 1);
    const char *a =
        words ? tk_cute_text(x, "{%s}", numbers(x, first, words)) : numbers(x, first, 1);
    return tk_cute_text(
        x,
        "{ .reg .pred p; setp.ne.b32 p, $%" PRIu32 ", 0; wgmma.mma_async.sync.aligned.m%" PRId64
        "n%" PRId64 "k%" PRId64 ".%s.%s.%s {%s}, %s, $%" PRIu32 ", p%s; }",
        rest + 1, tk_kop_attr(op, TK_KA_m), tk_kop_attr(op, TK_KA_n), tk_kop_attr(op, TK_KA_k),
        d->type.scalar == TK_K_I32 ? "s32" : tk_kscalar_text((tk_kscalar)d->type.scalar),
        operand_words[tk_kop_attr(op, TK_KA_a_type)], operand_words[tk_kop_attr(op, TK_KA_b_type)],
        numbers(x, 0, sums), a, rest, ways_of(x, op, words != 0));
}

void tk_cute_put_wgmma(tk_cute *x, const tk_kop *op) {
    int64_t m = tk_kop_attr(op, TK_KA_m), n = tk_kop_attr(op, TK_KA_n),
            k = tk_kop_attr(op, TK_KA_k), d_first = tk_kop_attr(op, TK_KA_d_index),
            a_first = tk_kop_attr(op, TK_KA_a_index);
    const tk_kvalue *d = tk_cute_whole(x, op->operands[D], &d_first), *a = op->operands[A];
    bool registers = a->type.kind == TK_KT_REGISTERS;
    if (registers) a = tk_cute_whole(x, a, &a_first);
    int each = x->flights[d->id] == TK_CUTE_FLIES_AS_WORDS ? tk_cute_each(d) : 1;
    int64_t sums = m * n / 128 / each, words = registers ? m * k / 128 / tk_cute_each(a) : 0;
    tied t = {.early = true};
    const char *type;
    tie_tensor(x, &t, d, d_first / each, sums);
    for (int64_t i = 0; i < words; i++)
        give(&t, tk_cute_take_register(x, a, a_first / tk_cute_each(a) + i), "i32");
    if (!registers) give(&t, tk_cute_name(x, a), "i64");
    give(&t, tk_cute_operand(x, op, B), "i64");
    give(&t,
         op->operands[ACCUMULATE] ? tk_cute_in_register(x, op->operands[ACCUMULATE]).name
                                  : tk_cute_constant(x, 0, "i32"),
         "i32");
    const char *all = put_tied(x, &t, product_text(x, op, (uint32_t)sums, (uint32_t)words), &type);
    untie_tensor(x, all, type, 0, d, d_first / each, sums);
}
