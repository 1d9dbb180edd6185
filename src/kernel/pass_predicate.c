/* Predication: a short branch becomes straight code. Loads and stores get the branch's condition,
 * what has no effect runs in any case, and results are selected. Loads and stores that have a
 * condition already get both.
 *
 * Only branches of at most SHORT operations, without anything aligned, ordered or asynchronous. A
 * load in a branch that is not taken gives 0, which nobody sees: what uses it is not selected, or
 * is a store with the same condition. */
#include "base/error.h"
#include "kernel/pass.h"

#define SHORT 12

typedef struct flattener {
    tk_kernel *kernel;
    tk_kexchange exchange;
} flattener;

static bool is_plain_access(const tk_kop *op) {
    return (op->code == TK_KOP_load || op->code == TK_KOP_store) &&
           tk_kop_attr(op, TK_KA_order) == 0;
}

static bool is_short(const tk_kblock *block) {
    int count = 0;
    for (const tk_kop *op = block->first; op != block->last; op = op->next)
        if (++count > SHORT || !(is_plain_access(op) || tk_kpass_is_speculatable(op))) return false;
    return true;
}

static bool selects(const tk_kop *op) {
    for (int i = 0; i < op->n_results; i++)
        if (op->results[i]->type.kind > TK_KT_POINTER) return false;
    return true;
}

static tk_kvalue *both(tk_kput *put, tk_kvalue *a, tk_kvalue *b) {
    return b ? tk_kput_2(put, TK_KOP_and, a, b) : a;
}

/* Moves the region's operations before the branch. */
static void flatten(flattener *f, tk_kop *op, tk_kblock *region, tk_kvalue *condition,
                    tk_status *status) {
    while (region->first != region->last) {
        tk_kop *moved = region->first;
        tk_kop_unlink(moved);
        tk_kop_insert_before(op, moved);
        if (!is_plain_access(moved)) continue;
        tk_kput put = tk_kput_before(f->kernel, moved, status);
        int index = moved->code == TK_KOP_load ? 1 : 2;
        moved->operands[index] = both(&put, condition, moved->operands[index]);
    }
}

static tk_status visit_if(flattener *f, tk_kop *op) {
    tk_status status = TK_OK;
    tk_kblock *yes = op->regions[0], *no = op->regions[1];
    if (!is_short(yes) || !is_short(no) || !selects(op)) return TK_OK;
    tk_kput put = tk_kput_before(f->kernel, op, &status);
    flatten(f, op, yes, op->operands[0], &status);
    if (no->first != no->last)
        flatten(f, op, no, tk_kput_1(&put, TK_KOP_not, op->operands[0]), &status);
    for (int i = 0; i < op->n_results && status == TK_OK; i++) {
        tk_kvalue *chosen = tk_kput_3(&put, TK_KOP_select, op->operands[0], yes->last->operands[i],
                                      no->last->operands[i]);
        if (status == TK_OK) status = tk_kexchange_set(&f->exchange, op->results[i], chosen);
    }
    tk_kop_unlink(op);
    return status;
}

/* Innermost first, so that branches in branches flatten together. */
static tk_status visit_block(flattener *f, tk_kblock *block) {
    for (tk_kop *op = block->first, *next; op; op = next) {
        next = op->next;
        for (int i = 0; i < op->n_regions; i++) TK_TRY(visit_block(f, op->regions[i]));
        if (op->code == TK_KOP_if) TK_TRY(visit_if(f, op));
    }
    return TK_OK;
}

tk_status tk_kpass_run_predicate(tk_kernel *kernel) {
    flattener f = {.kernel = kernel};
    tk_status status = visit_block(&f, &kernel->body);
    if (status == TK_OK) tk_kexchange_apply(&f.exchange, kernel);
    tk_vec_deinit(&f.exchange);
    return status;
}
