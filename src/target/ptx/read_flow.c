/* Which registers a wgmma still uses, at every instruction of a function.
 *
 * A register that a wgmma was given has an age: how many groups were closed since, 0 while its own
 * is open. A wait for all but n groups retires ages above n. Where paths meet the younger one
 * counts, so a register is in use if it is on any path; a loop is gone round until nothing gets
 * younger. A wait or commit under a predicate may not happen and counts as none.
 *
 * A wgmma may go on with the accumulator of another of the same shape, and two may read one A
 * fragment; nothing else may touch an accumulator, or write a fragment, before its wait. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "target/ptx/reader.h"
#include "tiki/target.h"

enum { FREE = 9, OLDEST = 8 }; /* waits leave at most 7 groups */
#define MOST_STATES ((size_t)1 << 25)
#define NONE UINT32_MAX

typedef struct state {
    uint32_t insn; /* the wgmma */
    uint8_t age;
    bool accumulates;
} state;

typedef struct flow {
    const tk_ptx_function *f;
    const char *source;
    uint32_t *tracked; /* by register: its place in a row of states, NONE */
    uint32_t n_tracked;
    uint32_t *block_of; /* by instruction, and one behind the last */
    uint32_t *first_of; /* by block, and one behind the last */
    uint32_t n_blocks;
    state *entry;  /* by block: a row of states where it begins */
    bool *waiting; /* by block: to be gone through */
    bool *reached; /* by block */
    uint32_t *stack, n_stack;
    state *now;
} flow;

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory to check PTX"); }

/* ---- blocks ---- */

static bool ends_block(const tk_ptx_insn *insn) {
    return insn->kind == TK_PTX_BRANCH || insn->kind == TK_PTX_TABLE || insn->kind == TK_PTX_END;
}

/* Numbers blocks: a mark at each instruction that begins one becomes its number. */
static tk_status find_blocks(flow *w) {
    const tk_ptx_function *f = w->f;
    size_t count = f->insns.count;
    w->block_of = tk_calloc(count + 2, sizeof *w->block_of);
    w->first_of = tk_calloc(count + 2, sizeof *w->first_of);
    if (!w->block_of || !w->first_of) return no_memory();
    w->block_of[0] = 1;
    for (size_t i = 0; i < count; i++) {
        const tk_ptx_insn *insn = &f->insns.items[i];
        if (ends_block(insn)) w->block_of[i + 1] = 1;
        if (insn->kind == TK_PTX_BRANCH) w->block_of[insn->target] = 1;
    }
    for (size_t i = 0; i < f->targets.count; i++) w->block_of[f->targets.items[i]] = 1;
    for (size_t i = 0; i <= count; i++) {
        if (w->block_of[i]) w->first_of[w->n_blocks++] = (uint32_t)i;
        w->block_of[i] = w->n_blocks - 1;
    }
    w->first_of[w->n_blocks] = (uint32_t)count;
    return TK_OK;
}

static tk_status find_tracked(flow *w) {
    const tk_ptx_function *f = w->f;
    w->tracked = tk_malloc((f->n_registers + 1) * sizeof *w->tracked);
    if (!w->tracked) return no_memory();
    memset(w->tracked, 0xff, (f->n_registers + 1) * sizeof *w->tracked);
    for (size_t i = 0; i < f->uses.count; i++) {
        const tk_ptx_use *use = &f->uses.items[i];
        if (use->role >= TK_PTX_ACCUMULATES && w->tracked[use->reg] == NONE)
            w->tracked[use->reg] = w->n_tracked++;
    }
    return TK_OK;
}

/* ---- the rules ---- */

static const tk_ptx_use *uses_of(const flow *w, const tk_ptx_insn *insn) {
    return w->f->uses.items + insn->first;
}

static bool same_accumulator(const flow *w, const tk_ptx_insn *a, const tk_ptx_insn *b) {
    if (a->length != b->length || memcmp(a->word, b->word, a->length)) return false;
    uint32_t count = a->count < b->count ? a->count : b->count;
    for (uint32_t i = 0; i < count; i++) {
        const tk_ptx_use *x = &uses_of(w, a)[i], *y = &uses_of(w, b)[i];
        bool of_a = x->role == TK_PTX_ACCUMULATES, of_b = y->role == TK_PTX_ACCUMULATES;
        if (of_a != of_b || (of_a && x->reg != y->reg)) return false;
        if (!of_a) break;
    }
    return true;
}

static bool is_allowed(const flow *w, const tk_ptx_insn *insn, const tk_ptx_use *use,
                       const state *s) {
    if (s->age == FREE) return true;
    if (!s->accumulates) return use->role == TK_PTX_READS || use->role == TK_PTX_FRAGMENT;
    return use->role == TK_PTX_ACCUMULATES &&
           same_accumulator(w, insn, &w->f->insns.items[s->insn]);
}

static tk_status refuse(const flow *w, const tk_ptx_insn *insn, const tk_ptx_use *use,
                        const state *s) {
    static const char *const verbs[] = {"reads", "writes", "accumulates in", "multiplies"};
    const tk_ptx_insn *user = &w->f->insns.items[s->insn];
    return tk_fail(TK_INVALID_ARGUMENT,
                   "%s:%u: %.*s %s register %.*s, which the wgmma in line %u still %s: no "
                   "wgmma.wait_group has retired it on every path",
                   w->source, insn->line, (int)(insn->length < 60 ? insn->length : 60), insn->word,
                   verbs[use->role], (int)(use->length < 40 ? use->length : 40), use->name,
                   user->line, s->accumulates ? "writes" : "reads");
}

static tk_status check_uses(const flow *w, const tk_ptx_insn *insn) {
    for (uint32_t i = 0; i < insn->count; i++) {
        const tk_ptx_use *use = &uses_of(w, insn)[i];
        uint32_t at = w->tracked[use->reg];
        if (at != NONE && !is_allowed(w, insn, use, &w->now[at]))
            return refuse(w, insn, use, &w->now[at]);
    }
    return TK_OK;
}

/* ---- one instruction ---- */

static void lend(flow *w, uint32_t number) {
    const tk_ptx_insn *insn = &w->f->insns.items[number];
    for (uint32_t i = 0; i < insn->count; i++) {
        const tk_ptx_use *use = &uses_of(w, insn)[i];
        if (use->role >= TK_PTX_ACCUMULATES)
            w->now[w->tracked[use->reg]] =
                (state){.insn = number, .accumulates = use->role == TK_PTX_ACCUMULATES};
    }
}

static void pass(flow *w, uint32_t number) {
    const tk_ptx_insn *insn = &w->f->insns.items[number];
    if (insn->kind == TK_PTX_WGMMA) lend(w, number);
    if (insn->guarded || (insn->kind != TK_PTX_COMMIT && insn->kind != TK_PTX_WAIT)) return;
    for (uint32_t i = 0; i < w->n_tracked; i++) {
        state *s = &w->now[i];
        if (insn->kind == TK_PTX_COMMIT && s->age < OLDEST) s->age++;
        if (insn->kind == TK_PTX_WAIT && s->age > insn->groups) s->age = FREE;
    }
}

/* ---- paths ---- */

/* Of two, the one that forbids more; any order will do, as long as it is one. */
static bool is_stricter(const state *a, const state *b) {
    if (a->age != b->age) return a->age < b->age;
    if (a->age == FREE) return false;
    if (a->accumulates != b->accumulates) return a->accumulates;
    return a->insn < b->insn;
}

static void meet(flow *w, uint32_t block) {
    state *entry = w->entry + (size_t)block * w->n_tracked;
    bool changed = !w->reached[block];
    w->reached[block] = true;
    for (uint32_t i = 0; i < w->n_tracked; i++)
        if (is_stricter(&w->now[i], &entry[i])) entry[i] = w->now[i], changed = true;
    if (!changed || w->waiting[block]) return;
    w->waiting[block] = true;
    w->stack[w->n_stack++] = block;
}

static void leave(flow *w, uint32_t block) {
    const tk_ptx_function *f = w->f;
    uint32_t end = w->first_of[block + 1];
    if (end == w->first_of[block]) return;
    const tk_ptx_insn *last = &f->insns.items[end - 1];
    if (last->kind == TK_PTX_BRANCH) meet(w, w->block_of[last->target]);
    for (uint32_t i = 0; i < last->targets; i++)
        meet(w, w->block_of[f->targets.items[last->target + i]]);
    if (end < f->insns.count && (!ends_block(last) || last->guarded)) meet(w, w->block_of[end]);
}

static void enter(flow *w, uint32_t block) {
    memcpy(w->now, w->entry + (size_t)block * w->n_tracked, w->n_tracked * sizeof *w->now);
}

static void go_round(flow *w) {
    for (uint32_t i = 0; i < w->n_tracked; i++) w->now[i] = (state){.age = FREE};
    meet(w, 0);
    while (w->n_stack) {
        uint32_t block = w->stack[--w->n_stack];
        w->waiting[block] = false;
        enter(w, block);
        for (uint32_t i = w->first_of[block]; i < w->first_of[block + 1]; i++) pass(w, i);
        leave(w, block);
    }
}

static tk_status check_blocks(flow *w) {
    for (uint32_t b = 0; b < w->n_blocks; b++) {
        enter(w, b);
        for (uint32_t i = w->first_of[b]; i < w->first_of[b + 1] && w->reached[b]; i++) {
            TK_TRY(check_uses(w, &w->f->insns.items[i]));
            pass(w, i);
        }
    }
    return TK_OK;
}

static tk_status check_flow(flow *w) {
    TK_TRY(find_tracked(w));
    if (!w->n_tracked) return TK_OK;
    TK_TRY(find_blocks(w));
    size_t count = (size_t)(w->n_blocks + 1) * w->n_tracked;
    if (count > MOST_STATES)
        return tk_fail(TK_UNSUPPORTED, "%s: %u blocks with %u registers of wgmma are too many",
                       w->source, w->n_blocks, w->n_tracked);
    w->entry = tk_malloc(count * sizeof *w->entry);
    w->waiting = tk_calloc(w->n_blocks, sizeof *w->waiting);
    w->reached = tk_calloc(w->n_blocks, sizeof *w->reached);
    w->stack = tk_malloc((w->n_blocks + 1) * sizeof *w->stack);
    w->now = tk_malloc(w->n_tracked * sizeof *w->now);
    if (!w->entry || !w->waiting || !w->reached || !w->stack || !w->now) return no_memory();
    for (size_t i = 0; i < count; i++) w->entry[i] = (state){.age = FREE};
    go_round(w);
    return check_blocks(w);
}

tk_status tk_ptx_check_function(const tk_ptx_function *function, const char *source) {
    flow w = {.f = function, .source = source};
    tk_status status = check_flow(&w);
    tk_free(w.tracked);
    tk_free(w.block_of);
    tk_free(w.first_of);
    tk_free(w.entry);
    tk_free(w.waiting);
    tk_free(w.reached);
    tk_free(w.stack);
    tk_free(w.now);
    return status;
}

tk_status tk_ptx_check(const char *text, const char *name) {
    TK_NEED(text, name);
    tk_ptx_module module;
    tk_status status = tk_ptx_read(text, name, &module);
    for (size_t i = 0; i < module.functions.count && status == TK_OK; i++)
        status = tk_ptx_check_function(&module.functions.items[i], name);
    tk_ptx_module_deinit(&module);
    return status;
}
