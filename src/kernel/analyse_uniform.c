/* Uniformity: over which threads a value is the same, when they are at the same operation.
 *
 * A result is as uniform as its least uniform operand; what sets it apart is where it comes from.
 * Thread numbers step at multiples of 32 and 128: divided by 32, or compared with a multiple of 32,
 * they are the same in a warp. What comes out of a branch or loop is also no more uniform than the
 * condition. What loops carry starts as what they begin with and is lowered until nothing changes.
 *
 * A load from one address is one value: threads that read others' writes without order are a race,
 * which the emulator finds. */
#include <string.h>

#include "base/error.h"
#include "kernel/analyse.h"
#include "kernel/verify.h"
#include "tiki/analysis.h"

typedef struct uniformer {
    const tk_kernel *kernel;
    uint8_t *levels;
    uint16_t *steps; /* 32 or 128: the value is a thread number plus a multiple of it */
    bool changed;
} uniformer;

const char *tk_kuniform_text(tk_kuniform level) {
    static const char *const texts[] = {"thread", "warp", "warpgroup", "block", "grid"};
    return (unsigned)level <= TK_KU_GRID ? texts[level] : "?";
}

static uint8_t least(uint8_t a, uint8_t b) { return a < b ? a : b; }

static uint8_t level_of(const uniformer *u, const tk_kvalue *value) {
    if (!value || value->kind == TK_KV_CONST || value->kind == TK_KV_PARAM) return TK_KU_GRID;
    return u->levels[value->id];
}

static uint16_t step_of(const uniformer *u, const tk_kvalue *value) {
    return value && value->kind == TK_KV_RESULT ? u->steps[value->id] : 0;
}

/* ---- thread numbers ---- */

/* With x the fastest axis, a warp lies within a row of threads when rows are whole warps. */
static uint8_t of_thread_index(const uniformer *u, const tk_kop *op) {
    const int64_t *block = u->kernel->contract.block;
    int64_t axis = tk_kop_attr(op, TK_KA_axis), below = 1;
    if (block[axis] == 1) return TK_KU_GRID;
    for (int64_t i = 0; i < axis; i++) below *= block[i];
    if (axis == 0) return TK_KU_THREAD;
    return below % 128 == 0 ? TK_KU_WARPGROUP : below % 32 == 0 ? TK_KU_WARP : TK_KU_THREAD;
}

static uint16_t first_step(const uniformer *u, const tk_kop *op) {
    const int64_t *block = u->kernel->contract.block;
    bool alone = block[1] == 1 && block[2] == 1;
    if (tk_kop_attr(op, TK_KA_axis) != 0) return 0;
    return alone || block[0] % 128 == 0 ? 128 : block[0] % 32 == 0 ? 32 : 0;
}

static uint16_t least_step(uint16_t step, int64_t number) {
    return step == 128 && number % 128 == 0 ? 128 : step && number % 32 == 0 ? 32 : 0;
}

static uint16_t step_after(const uniformer *u, const tk_kop *op) {
    int64_t number;
    if (op->code == TK_KOP_thread_index) return first_step(u, op);
    if (op->code == TK_KOP_assume || op->code == TK_KOP_extend_signed ||
        op->code == TK_KOP_extend_unsigned || op->code == TK_KOP_truncate)
        return step_of(u, op->operands[0]);
    if ((op->code != TK_KOP_add && op->code != TK_KOP_sub) ||
        !tk_kvalue_integer(op->operands[1], &number))
        return 0;
    return least_step(step_of(u, op->operands[0]), number);
}

static uint8_t level_of_step(uint16_t step) {
    return step == 128 ? TK_KU_WARPGROUP : step == 32 ? TK_KU_WARP : TK_KU_THREAD;
}

/* t / 32, t & -32, t < 64 and the like. */
static uint8_t of_stairs(const uniformer *u, const tk_kop *op) {
    int64_t number;
    uint16_t step = op->n_operands == 2 ? step_of(u, op->operands[0]) : 0;
    if (!step || !tk_kvalue_integer(op->operands[1], &number)) return TK_KU_THREAD;
    switch (op->code) {
    case TK_KOP_ushr:
    case TK_KOP_sshr:
        return number < 5 || number > 62 ? TK_KU_THREAD
                                         : level_of_step(least_step(step, (int64_t)1 << number));
    case TK_KOP_udiv:
    case TK_KOP_sdiv:
    case TK_KOP_and:
        return number ? level_of_step(least_step(step, number)) : TK_KU_GRID;
    case TK_KOP_icmp:
        break;
    default:
        return TK_KU_THREAD;
    }
    size_t length;
    const char *word =
        tk_kwords_at(tk_kattr_row_of(TK_KA_icmp)->words, (int)tk_kop_attr(op, TK_KA_icmp), &length);
    if (length != 3) return TK_KU_THREAD;
    bool includes = (word[1] == 'l') == (word[2] == 'e');
    return level_of_step(least_step(step, number + includes));
}

/* ---- operations ---- */

static uint8_t of_special(const tk_kop *op) {
    size_t length;
    const char *word = tk_kwords_at(tk_kattr_row_of(TK_KA_special)->words,
                                    (int)tk_kop_attr(op, TK_KA_special), &length);
    static const char per_block[] = "warps sm sms grid cluster_rank cluster_size shared_bytes "
                                    "dynamic_shared_bytes";
    return tk_kwords_find(per_block, word, length) >= 0 ? TK_KU_BLOCK : TK_KU_THREAD;
}

static uint8_t of_shuffle(const uniformer *u, const tk_kop *op) {
    uint8_t lane = level_of(u, op->operands[1]), value = level_of(u, op->operands[0]);
    bool one = tk_kop_attr(op, TK_KA_mode) == 0 && tk_kop_attr(op, TK_KA_width) == 32 &&
               lane >= TK_KU_WARP;
    return value >= TK_KU_WARP ? value : one ? TK_KU_WARP : TK_KU_THREAD;
}

static uint8_t asserted(const tk_kop *op) {
    static const uint8_t levels[] = {TK_KU_THREAD, TK_KU_WARP, TK_KU_WARPGROUP, TK_KU_BLOCK,
                                     TK_KU_WARP};
    return levels[tk_kop_attr(op, TK_KA_group)];
}

static uint8_t of_operands(const uniformer *u, const tk_kop *op) {
    uint8_t level = TK_KU_GRID;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i]) level = least(level, level_of(u, op->operands[i]));
    return level;
}

static uint8_t of_op(const uniformer *u, const tk_kop *op) {
    uint8_t operands = of_operands(u, op), own;
    switch (op->code) {
    case TK_KOP_thread_index:
        return of_thread_index(u, op);
    case TK_KOP_block_index:
    case TK_KOP_cluster_index:
    case TK_KOP_cluster_block:
        return TK_KU_BLOCK;
    case TK_KOP_special:
        return of_special(op);
    case TK_KOP_vote:
    case TK_KOP_ballot:
    case TK_KOP_warp_reduce:
        return TK_KU_WARP;
    case TK_KOP_shuffle:
        return of_shuffle(u, op);
    case TK_KOP_assume_uniform:
        own = asserted(op);
        return own > operands ? own : operands;
    case TK_KOP_load:
    case TK_KOP_shared:
    case TK_KOP_dynamic_shared:
    case TK_KOP_registers:
        return least(operands, TK_KU_BLOCK);
    default:
        break;
    }
    if (tk_kop_row_of(op->code)->effects) return TK_KU_THREAD;
    own = of_stairs(u, op);
    return own > operands ? own : operands;
}

static void lower(uniformer *u, const tk_kvalue *value, uint8_t level) {
    if (u->levels[value->id] <= level) return;
    u->levels[value->id] = level;
    u->changed = true;
}

/* ---- regions ---- */

static void visit_block(uniformer *u, const tk_kblock *block);

static uint8_t condition_level(const uniformer *u, const tk_kop *op) {
    if (op->code == TK_KOP_if) return level_of(u, op->operands[0]);
    if (op->code == TK_KOP_while) return level_of(u, op->regions[0]->last->operands[0]);
    uint8_t bounds = least(level_of(u, op->operands[0]), level_of(u, op->operands[1]));
    return least(bounds, level_of(u, op->operands[2]));
}

static void visit_for(uniformer *u, const tk_kop *op) {
    const tk_kblock *body = op->regions[0];
    lower(u, body->args[0], least(level_of(u, op->operands[0]), level_of(u, op->operands[2])));
    for (uint32_t i = 1; i < body->n_args; i++) {
        uint8_t around =
            least(level_of(u, op->operands[2 + i]), level_of(u, body->last->operands[i - 1]));
        lower(u, body->args[i], around);
    }
    visit_block(u, body);
    for (int i = 0; i < op->n_results; i++)
        lower(u, op->results[i], least(level_of(u, body->args[1 + i]), condition_level(u, op)));
}

static void visit_while(uniformer *u, const tk_kop *op) {
    const tk_kblock *first = op->regions[0], *second = op->regions[1];
    for (uint32_t i = 0; i < first->n_args; i++)
        lower(u, first->args[i],
              least(level_of(u, op->operands[i]), level_of(u, second->last->operands[i])));
    visit_block(u, first);
    for (uint32_t i = 0; i < second->n_args; i++)
        lower(u, second->args[i], level_of(u, first->last->operands[1 + i]));
    visit_block(u, second);
    for (int i = 0; i < op->n_results; i++)
        lower(u, op->results[i],
              least(level_of(u, first->last->operands[1 + i]), condition_level(u, op)));
}

static void visit_if(uniformer *u, const tk_kop *op) {
    for (int i = 0; i < 2; i++) visit_block(u, op->regions[i]);
    for (int i = 0; i < op->n_results; i++) {
        uint8_t values = least(level_of(u, op->regions[0]->last->operands[i]),
                               level_of(u, op->regions[1]->last->operands[i]));
        lower(u, op->results[i], least(values, condition_level(u, op)));
    }
}

static void visit_block(uniformer *u, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op; op = op->next) {
        if (op->code == TK_KOP_for)
            visit_for(u, op);
        else if (op->code == TK_KOP_while)
            visit_while(u, op);
        else if (op->code == TK_KOP_if)
            visit_if(u, op);
        else
            for (int i = 0; i < op->n_results; i++) {
                u->steps[op->results[i]->id] = step_after(u, op);
                lower(u, op->results[i], of_op(u, op));
            }
    }
}

tk_status tk_kanalyse_uniform(const tk_kernel *kernel, uint8_t **out) {
    size_t count = (size_t)kernel->n_values + 1;
    uniformer u = {.kernel = kernel, .levels = tk_calloc(count, 1), .changed = true};
    u.steps = tk_calloc(count, sizeof *u.steps);
    if (!u.levels || !u.steps) {
        tk_free(u.levels);
        tk_free(u.steps);
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for an analysis");
    }
    for (size_t i = 0; i < count; i++) u.levels[i] = TK_KU_GRID;
    while (u.changed) {
        u.changed = false;
        visit_block(&u, &kernel->body);
    }
    tk_free(u.steps);
    *out = u.levels;
    return TK_OK;
}

/* ---- the proof ---- */

typedef struct prover {
    uniformer u;
    const tk_kop *weakest; /* the condition that decides `level` */
    uint8_t level;
    bool groups_only;
} prover;

/* Work that is shared among the threads of a group, which have to be there. Register tensors are
 * each thread's own. Of some warps each is there whole. */
static uint8_t needed_by_group(const tk_kop *op) {
    static const uint8_t levels[] = {TK_KU_THREAD, TK_KU_WARP, TK_KU_WARPGROUP, TK_KU_BLOCK,
                                     TK_KU_WARP};
    if (op->code != TK_KOP_copy && op->code != TK_KOP_fill && op->code != TK_KOP_combine &&
        op->code != TK_KOP_gemm)
        return TK_KU_THREAD;
    bool own = op->operands[0]->type.kind == TK_KT_REGISTERS &&
               (op->code == TK_KOP_fill || op->operands[1]->type.kind == TK_KT_REGISTERS);
    return own && op->code != TK_KOP_gemm ? TK_KU_THREAD : levels[tk_kop_attr(op, TK_KA_group)];
}

/* Barriers of a number of threads, or with a number, are for warps to choose; a mask says which
 * lanes come. */
static uint8_t needed_by(const tk_kop *op) {
    unsigned effects = tk_kop_row_of(op->code)->effects;
    const tk_kop_row *row = tk_kop_row_of(op->code);
    for (int i = 0; i < TK_KOP_MOST_SLOTS && row->slots[i].class; i++)
        if (!strcmp(row->slots[i].name, "mask") && op->operands[i]) return TK_KU_THREAD;
    if (effects & TK_KE_BLOCK) return tk_kop_attr(op, TK_KA_threads) ? TK_KU_WARP : TK_KU_BLOCK;
    if (effects & TK_KE_WARPGROUP) return TK_KU_WARPGROUP;
    return effects & TK_KE_WARP ? TK_KU_WARP : needed_by_group(op);
}

static tk_status refuse(const prover *p, const tk_kop *op) {
    const tk_kop *around = p->weakest;
    tk_status status = tk_fail(
        TK_INVALID_ARGUMENT,
        "%s is aligned over its %s, but the %s around it in line %u is only known to be the same "
        "over a %s: make its condition uniform, or say so by assume_uniform",
        tk_kop_row_of(op->code)->name, tk_kuniform_text((tk_kuniform)needed_by(op)),
        tk_kop_row_of(around->code)->name, around->loc.line,
        tk_kuniform_text((tk_kuniform)p->level));
    return tk_kop_fail_at(p->u.kernel, op, status);
}

static tk_status prove_block(prover *p, const tk_kblock *block) {
    for (const tk_kop *op = block->first; op; op = op->next) {
        if ((p->groups_only ? needed_by_group(op) : needed_by(op)) > p->level) return refuse(p, op);
        if (!op->n_regions) continue;
        prover inner = *p;
        uint8_t condition = condition_level(&p->u, op);
        if (condition < p->level) inner.level = condition, inner.weakest = op;
        for (int i = 0; i < op->n_regions; i++) TK_TRY(prove_block(&inner, op->regions[i]));
    }
    return TK_OK;
}

static tk_status prove(const tk_kernel *kernel, bool groups_only) {
    prover p = {.u = {.kernel = kernel}, .level = TK_KU_GRID, .groups_only = groups_only};
    TK_TRY(tk_kanalyse_uniform(kernel, &p.u.levels));
    tk_status status = prove_block(&p, &kernel->body);
    tk_free(p.u.levels);
    return status;
}

tk_status tk_kernel_prove_uniform(const tk_kernel *kernel) {
    TK_NEED(kernel);
    return prove(kernel, false);
}

tk_status tk_kanalyse_groups(const tk_kernel *kernel) { return prove(kernel, true); }
