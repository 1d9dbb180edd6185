/* Dead code: operations without effect whose results nobody uses, loops and branches that hold
 * nothing else included (a `while` may never end and stays). Loads go too: what they would report
 * is no effect of the kernel.
 *
 * Uses are counted again until nothing changes; kernels are small, and a worklist would need lists
 * of uses. */
#include "base/error.h"
#include "kernel/pass.h"

tk_status tk_kpass_count_uses(const tk_kernel *kernel, tk_kuses *out) {
    out->of = tk_calloc((size_t)kernel->n_values + 1, sizeof *out->of);
    if (!out->of) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass");
    tk_kpass_add_uses(&kernel->body, out);
    return TK_OK;
}

void tk_kpass_add_uses(const tk_kblock *block, tk_kuses *uses) {
    for (const tk_kop *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_operands; i++)
            if (op->operands[i]) uses->of[op->operands[i]->id]++;
        for (int i = 0; i < op->n_regions; i++) tk_kpass_add_uses(op->regions[i], uses);
    }
}

static bool is_droppable(const tk_kop *op) {
    unsigned effects = tk_kop_row_of(op->code)->effects;
    if (op->code == TK_KOP_for || op->code == TK_KOP_if) return true;
    if (op->code == TK_KOP_load) return tk_kop_attr(op, TK_KA_order) == 0;
    return (effects & ~(unsigned)(TK_KE_STORAGE | TK_KE_VOLATILE)) == 0 || op->code == TK_KOP_get;
}

static bool block_is_droppable(const tk_kblock *block) {
    for (const tk_kop *op = block->first; op; op = op->next) {
        if (tk_kop_row_of(op->code)->effects & TK_KE_TERMINATOR) continue;
        if (!is_droppable(op)) return false;
        for (int i = 0; i < op->n_regions; i++)
            if (!block_is_droppable(op->regions[i])) return false;
    }
    return true;
}

static bool is_unused(const tk_kop *op, const tk_kuses *uses) {
    for (int i = 0; i < op->n_results; i++)
        if (uses->of[op->results[i]->id]) return false;
    return true;
}

static bool is_dead(const tk_kop *op, const tk_kuses *uses) {
    if (!is_droppable(op) || !is_unused(op, uses)) return false;
    for (int i = 0; i < op->n_regions; i++)
        if (!block_is_droppable(op->regions[i])) return false;
    return true;
}

/* From the last to the first, so that a chain goes in one round. */
static bool sweep(tk_kblock *block, tk_kuses *uses) {
    bool changed = false;
    for (tk_kop *op = block->last, *before; op; op = before) {
        before = op->prev;
        if (tk_kop_row_of(op->code)->effects & TK_KE_TERMINATOR) continue;
        if (is_dead(op, uses)) {
            for (uint32_t i = 0; i < op->n_operands; i++)
                if (op->operands[i]) uses->of[op->operands[i]->id]--;
            tk_kop_unlink(op);
            changed = true;
            continue;
        }
        for (int i = 0; i < op->n_regions; i++) changed |= sweep(op->regions[i], uses);
    }
    return changed;
}

tk_status tk_kpass_run_dead(tk_kernel *kernel) {
    bool changed = true;
    while (changed) {
        tk_kuses uses = {0};
        TK_TRY(tk_kpass_count_uses(kernel, &uses));
        changed = sweep(&kernel->body, &uses);
        tk_free(uses.of);
    }
    return TK_OK;
}
