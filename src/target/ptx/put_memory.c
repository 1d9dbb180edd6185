/* Loads and stores.
 *
 * PTX vectors have at most four elements, so wider ones of small elements go as words of 32 bits
 * that are packed and unpacked around the access. */
#include <stdio.h>

#include "target/ptx/put.h"

static bool has(const tk_kop *op, int index) { return op->operands[index] != NULL; }

void tk_ptx_put_modifiers(const tk_kop *op, int policy, tk_strbuf *out) {
    static const char *const spaces[] = {".global", ".const", ".shared", ".shared::cluster", ""};
    static const char *const orders[] = {"", ".relaxed", ".acquire", ".release", ""};
    static const char *const caches[] = {"", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt", ".nc"};
    static const char *const evicts[] = {"", ".L1::evict_first", ".L1::evict_last",
                                         ".L1::evict_unchanged", ".L1::no_allocate"};
    static const char *const fetches[] = {"", ".L2::64B", ".L2::128B", ".L2::256B"};
    tk_strbuf_printf(out, "%s%s%s%s%s%s%s", orders[tk_kop_attr(op, TK_KA_order)], tk_ptx_scope(op),
                     spaces[op->operands[0]->type.space], caches[tk_kop_attr(op, TK_KA_cache)],
                     evicts[tk_kop_attr(op, TK_KA_evict)], tk_ptx_hint(op, policy),
                     fetches[tk_kop_attr(op, TK_KA_prefetch)]);
}

static void need_clusters(tk_ptx *x, const tk_kop *op) {
    enum { CLUSTER = 2 };
    if (op->operands[0]->type.space == TK_KS_CLUSTER || tk_kop_attr(op, TK_KA_scope) == CLUSTER)
        tk_ptx_need_sm90(x, op);
}

/* The elements of an access: registers that PTX moves, and how many elements of the value each
 * holds. */
typedef struct pieces {
    int count, bits, each;
    tk_ptx_name names[16];
} pieces;

static pieces pieces_of(tk_ptx *x, const tk_kvalue *value) {
    tk_ktype type = value->type;
    int bits = 8 * tk_kscalar_bytes((tk_kscalar)type.scalar);
    pieces p = {.count = type.lanes, .bits = bits, .each = 1};
    if (type.lanes > 4)
        p = (pieces){.count = type.lanes * bits / 32, .bits = 32, .each = 32 / bits};
    for (int i = 0; i < p.count; i++)
        p.names[i] = p.each == 1 ? tk_ptx_operand(x, value, i) : tk_ptx_spare(x, TK_PTX_R);
    return p;
}

/* {%r1, %r2}, or the one name. */
static void put_list(const pieces *p, tk_strbuf *out) {
    for (int i = 0; i < p->count; i++)
        tk_strbuf_printf(out, "%s%s", i ? ", " : p->count > 1 ? "{" : "", p->names[i].text);
    if (p->count > 1) tk_strbuf_putc(out, '}');
}

static const char *vector_of(const pieces *p) {
    return p->count == 4 ? ".v4" : p->count == 2 ? ".v2" : "";
}

/* Halves are packed by a move; bytes by shifts. */
static void pack_halves(tk_ptx *x, const tk_kvalue *value, const pieces *p, bool unpack) {
    for (int i = 0; i < p->count; i++) {
        tk_ptx_name low = tk_ptx_operand(x, value, 2 * i),
                    high = tk_ptx_operand(x, value, 2 * i + 1);
        if (unpack)
            tk_ptx_line(x, "mov.b32 {%s, %s}, %s", low.text, high.text, p->names[i].text);
        else
            tk_ptx_line(x, "mov.b32 %s, {%s, %s}", p->names[i].text, low.text, high.text);
    }
}

static void unpack_bytes(tk_ptx *x, const tk_kvalue *value, const pieces *p) {
    for (int i = 0; i < 4 * p->count; i++) {
        tk_ptx_name byte = tk_ptx_spare(x, TK_PTX_R);
        tk_ptx_line(x, "bfe.u32 %s, %s, %d, 8", byte.text, p->names[i / 4].text, 8 * (i % 4));
        tk_ptx_line(x, "cvt.u16.u32 %s, %s", tk_ptx_operand(x, value, i).text, byte.text);
    }
}

static void pack_bytes(tk_ptx *x, const tk_kvalue *value, const pieces *p) {
    for (int i = 0; i < 4 * p->count; i++) {
        tk_ptx_name byte = tk_ptx_spare(x, TK_PTX_R);
        const char *word = p->names[i / 4].text;
        tk_ptx_line(x, "cvt.u32.u16 %s, %s", byte.text, tk_ptx_operand(x, value, i).text);
        if (i % 4)
            tk_ptx_line(x, "bfi.b32 %s, %s, %s, %d, 8", word, byte.text, word, 8 * (i % 4));
        else
            tk_ptx_line(x, "mov.b32 %s, %s", word, byte.text);
    }
}

static void pack(tk_ptx *x, const tk_kvalue *value, const pieces *p, bool unpack) {
    if (p->each == 2)
        pack_halves(x, value, p, unpack);
    else if (p->each == 4)
        (unpack ? unpack_bytes : pack_bytes)(x, value, p);
}

/* What lanes without a load get. */
static void put_other(tk_ptx *x, const tk_kop *op, const pieces *p) {
    enum { OTHER = 2 };
    const tk_kvalue *other = op->operands[OTHER];
    if (other && p->each > 1) {
        pieces from = pieces_of(x, other);
        pack(x, other, &from, false);
        for (int i = 0; i < p->count; i++)
            tk_ptx_line(x, "mov.b32 %s, %s", p->names[i].text, from.names[i].text);
        return;
    }
    for (int i = 0; i < p->count; i++)
        tk_ptx_line(x, "mov.b%d %s, %s", p->bits < 16 ? 16 : p->bits, p->names[i].text,
                    other ? tk_ptx_operand(x, other, i).text : "0");
}

void tk_ptx_put_load(tk_ptx *x, const tk_kop *op) {
    enum { CONDITION = 1, POLICY = 3 };
    pieces p = pieces_of(x, op->results[0]);
    tk_strbuf modifiers = {0}, list = {0};
    if (has(op, CONDITION)) put_other(x, op, &p);
    need_clusters(x, op);
    tk_ptx_put_modifiers(op, POLICY, &modifiers);
    put_list(&p, &list);
    tk_ptx_line(x, "%sld%s%s.b%d %s, [%s]%s", tk_ptx_guard(x, op, CONDITION).text, modifiers.text,
                vector_of(&p), p.bits, list.text, tk_ptx_operand(x, op->operands[0], 0).text,
                tk_ptx_policy(x, op, POLICY).text);
    pack(x, op->results[0], &p, true);
    tk_strbuf_deinit(&modifiers);
    tk_strbuf_deinit(&list);
}

void tk_ptx_put_store(tk_ptx *x, const tk_kop *op) {
    enum { CONDITION = 2, POLICY = 3 };
    pieces p = pieces_of(x, op->operands[1]);
    tk_strbuf modifiers = {0}, list = {0};
    pack(x, op->operands[1], &p, false);
    need_clusters(x, op);
    tk_ptx_put_modifiers(op, POLICY, &modifiers);
    put_list(&p, &list);
    tk_ptx_line(x, "%sst%s%s.b%d [%s], %s%s", tk_ptx_guard(x, op, CONDITION).text, modifiers.text,
                vector_of(&p), p.bits, tk_ptx_operand(x, op->operands[0], 0).text, list.text,
                tk_ptx_policy(x, op, POLICY).text);
    tk_strbuf_deinit(&modifiers);
    tk_strbuf_deinit(&list);
}
