/* Registers: how many of 32 bits the values of a thread need at once.
 *
 * Operations are numbered in the order of the text. A value lives from its definition to its last
 * use; a use in a loop of what was defined before it counts at the loop's end. Register tensors
 * live from their first use, since nothing is in them before. Then one sweep over the numbers.
 * Conditions are predicates, constants are written where they are used, layouts and views are no
 * registers. */
#include "base/error.h"
#include "kernel/analyse.h"
#include "kernel/check.h"

typedef struct span {
    uint32_t first, last;
} span;

typedef struct liver {
    const tk_kernel *kernel;
    span *spans; /* by value id; first 0: not defined yet */
    TK_VEC(const tk_kop *) ops;
    bool out_of_memory;
} liver;

static int64_t registers_of(const tk_kernel *kernel, tk_ktype type) {
    int64_t bytes = 0;
    if (type.kind == TK_KT_REGISTERS)
        bytes = tk_kregs_size(kernel, type) * tk_kscalar_bytes((tk_kscalar)type.scalar);
    else if (type.kind == TK_KT_POINTER || (type.kind == TK_KT_NUMBER && type.scalar != TK_K_I1))
        bytes = tk_ktype_bytes(type);
    return (bytes + 3) / 4;
}

static uint32_t now(const liver *l) { return (uint32_t)l->ops.count; }

static void define(liver *l, const tk_kvalue *value) {
    if (value->type.kind != TK_KT_REGISTERS) l->spans[value->id] = (span){now(l), now(l)};
}

static void use(liver *l, const tk_kvalue *value) {
    if (!value || value->kind == TK_KV_CONST) return;
    span *s = &l->spans[value->id];
    if (!s->first) s->first = now(l);
    s->last = now(l);
}

static void visit_block(liver *l, const tk_kblock *block);

/* What was there before the loop and is used in it, is there until its end. */
static void extend(liver *l, uint32_t begin) {
    for (uint32_t i = 0; i < l->kernel->n_values; i++)
        if (l->spans[i].first && l->spans[i].first <= begin && l->spans[i].last > begin)
            l->spans[i].last = now(l);
}

static void visit(liver *l, const tk_kop *op) {
    if (!tk_vec_push(&l->ops, op)) l->out_of_memory = true;
    uint32_t begin = now(l);
    bool loop = op->code == TK_KOP_for || op->code == TK_KOP_while;
    for (uint32_t i = 0; i < op->n_operands; i++) use(l, op->operands[i]);
    for (int i = 0; i < op->n_regions; i++) {
        for (uint32_t a = 0; a < op->regions[i]->n_args; a++) define(l, op->regions[i]->args[a]);
        visit_block(l, op->regions[i]);
    }
    if (op->code == TK_KOP_for) {
        use(l, op->operands[1]);
        use(l, op->regions[0]->args[0]);
    }
    if (loop) extend(l, begin);
    for (int i = 0; i < op->n_results; i++) define(l, op->results[i]);
}

static void visit_block(liver *l, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op; op = op->next) visit(l, op);
}

static void note_size(liver *l, const tk_kvalue *value, int64_t *change) {
    span s = l->spans[value->id];
    int64_t registers = registers_of(l->kernel, value->type);
    if (s.last <= s.first) return;
    change[s.first] += registers;
    change[s.last] -= registers;
}

static void note_block(liver *l, const tk_kblock *block, int64_t *change) {
    for (uint32_t i = 0; i < block->n_args; i++) note_size(l, block->args[i], change);
    for (const tk_kop *op = block->first; op; op = op->next) {
        for (int i = 0; i < op->n_regions; i++) note_block(l, op->regions[i], change);
        for (int i = 0; i < op->n_results; i++) note_size(l, op->results[i], change);
    }
}

/* Results of loops share the registers of what is carried, so both are never counted at once: a
 * result begins where the last use of the argument is. */
static tk_status sweep(liver *l, int64_t *out_most, const tk_kop **out_at) {
    size_t count = l->ops.count + 2;
    const tk_kcontract *c = &l->kernel->contract;
    int64_t *change = tk_calloc(count, sizeof *change), live = 0;
    if (!change) return tk_fail(TK_OUT_OF_MEMORY, "no memory for an analysis");
    for (size_t i = 0; i < c->params.count; i++) {
        l->spans[c->params.items[i].value->id].first = 0;
        note_size(l, c->params.items[i].value, change);
    }
    note_block(l, &l->kernel->body, change);
    *out_most = 0, *out_at = NULL;
    for (size_t i = 0; i < count; i++) {
        live += change[i];
        if (live > *out_most) *out_most = live, *out_at = i ? l->ops.items[i - 1] : NULL;
    }
    tk_free(change);
    return TK_OK;
}

tk_status tk_kanalyse_live(const tk_kernel *kernel, int64_t *out_registers, const tk_kop **out_at) {
    liver l = {.kernel = kernel, .spans = tk_calloc((size_t)kernel->n_values + 1, sizeof *l.spans)};
    tk_status status = TK_OK;
    if (l.spans) visit_block(&l, &kernel->body);
    if (!l.spans || l.out_of_memory)
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for an analysis");
    if (status == TK_OK) status = sweep(&l, out_registers, out_at);
    tk_vec_deinit(&l.ops);
    tk_free(l.spans);
    return status;
}
