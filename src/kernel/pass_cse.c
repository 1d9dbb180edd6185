/* Common subexpressions: an operation without effects that was computed already, in this block or
 * in one around it, becomes that value. Operands of commutative operations are compared in either
 * order.
 *
 * A table of chains by hash; what a block entered is taken out again when the walk leaves it, so
 * what stands in the table is visible. */
#include <string.h>

#include "base/error.h"
#include "kernel/pass.h"

#define BUCKETS 1024

typedef struct entry {
    const tk_kop *op;
    uint64_t hash;
    int32_t next;
} entry;

typedef struct finder {
    tk_kexchange exchange;
    TK_VEC(entry) entries;
    int32_t heads[BUCKETS];
} finder;

static bool is_commutative(unsigned code) {
    switch (code) {
    case TK_KOP_add:
    case TK_KOP_mul:
    case TK_KOP_and:
    case TK_KOP_or:
    case TK_KOP_xor:
    case TK_KOP_smin:
    case TK_KOP_smax:
    case TK_KOP_umin:
    case TK_KOP_umax:
    case TK_KOP_smulhi:
    case TK_KOP_umulhi:
    case TK_KOP_min:
    case TK_KOP_max:
    case TK_KOP_min_num:
    case TK_KOP_max_num:
        return true;
    default:
        return false;
    }
}

static bool is_shareable(const tk_kop *op) {
    return tk_kop_row_of(op->code)->effects == 0 && op->n_results == 1;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    return (hash ^ word) * 0x9e3779b97f4a7c15u ^ hash >> 29;
}

static uint64_t type_bits(tk_ktype type) {
    return (uint64_t)type.kind | (uint64_t)type.scalar << 8 | (uint64_t)type.lanes << 16 |
           (uint64_t)type.space << 24 | (uint64_t)type.layout << 32;
}

static uint64_t operand_bits(const tk_kop *op, uint32_t index) {
    return op->operands[index] ? (uint64_t)op->operands[index]->id + 1 : 0;
}

static uint64_t hash_of(const tk_kop *op) {
    uint64_t hash = mix(op->code, type_bits(op->results[0]->type));
    int n_attrs = tk_kop_row_attrs(tk_kop_row_of(op->code));
    if (is_commutative(op->code)) return mix(hash, operand_bits(op, 0) + operand_bits(op, 1));
    for (uint32_t i = 0; i < op->n_operands; i++) hash = mix(hash, operand_bits(op, i));
    for (int i = 0; i < n_attrs; i++) hash = mix(hash, (uint64_t)op->attrs[i]);
    return hash;
}

static bool same_operands(const tk_kop *a, const tk_kop *b) {
    if (a->n_operands != b->n_operands) return false;
    if (is_commutative(a->code) && a->operands[0] == b->operands[1] &&
        a->operands[1] == b->operands[0])
        return true;
    for (uint32_t i = 0; i < a->n_operands; i++)
        if (a->operands[i] != b->operands[i]) return false;
    return true;
}

static bool is_same(const tk_kop *a, const tk_kop *b) {
    int n_attrs = tk_kop_row_attrs(tk_kop_row_of(a->code));
    return a->code == b->code && tk_ktype_equal(a->results[0]->type, b->results[0]->type) &&
           same_operands(a, b) &&
           (!n_attrs || !memcmp(a->attrs, b->attrs, (size_t)n_attrs * sizeof *a->attrs));
}

static const tk_kop *find(const finder *f, const tk_kop *op, uint64_t hash) {
    for (int32_t i = f->heads[hash % BUCKETS]; i >= 0; i = f->entries.items[i].next)
        if (f->entries.items[i].hash == hash && is_same(f->entries.items[i].op, op))
            return f->entries.items[i].op;
    return NULL;
}

static tk_status enter(finder *f, const tk_kop *op, uint64_t hash) {
    entry made = {op, hash, f->heads[hash % BUCKETS]};
    if (!tk_vec_push(&f->entries, made)) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass");
    f->heads[hash % BUCKETS] = (int32_t)f->entries.count - 1;
    return TK_OK;
}

static void leave(finder *f, size_t count) {
    while (f->entries.count > count) {
        const entry *last = &f->entries.items[--f->entries.count];
        f->heads[last->hash % BUCKETS] = last->next;
    }
}

static tk_status visit_block(finder *f, tk_kblock *block);

static tk_status visit(finder *f, tk_kop *op) {
    for (uint32_t i = 0; i < op->n_operands; i++)
        op->operands[i] = tk_kexchange_get(&f->exchange, op->operands[i]);
    for (int i = 0; i < op->n_regions; i++) TK_TRY(visit_block(f, op->regions[i]));
    if (!is_shareable(op)) return TK_OK;
    uint64_t hash = hash_of(op);
    const tk_kop *known = find(f, op, hash);
    if (!known) return enter(f, op, hash);
    TK_TRY(tk_kexchange_set(&f->exchange, op->results[0], known->results[0]));
    tk_kop_unlink(op);
    return TK_OK;
}

static tk_status visit_block(finder *f, tk_kblock *block) {
    size_t entered = f->entries.count;
    for (tk_kop *op = block->first, *next; op; op = next) {
        next = op->next;
        TK_TRY(visit(f, op));
    }
    leave(f, entered);
    return TK_OK;
}

tk_status tk_kpass_run_cse(tk_kernel *kernel) {
    finder f = {0};
    memset(f.heads, 0xff, sizeof f.heads);
    tk_status status = visit_block(&f, &kernel->body);
    if (status == TK_OK) tk_kexchange_apply(&f.exchange, kernel);
    tk_vec_deinit(&f.exchange);
    tk_vec_deinit(&f.entries);
    return status;
}
