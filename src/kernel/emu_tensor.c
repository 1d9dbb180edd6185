/* Register tensors: which elements were set, and which a wgmma still uses.
 *
 * Registers of a wgmma belong to it from its issue to the wait that retires it: its accumulator may
 * not be touched, its A fragment may be read but not written. Each element remembers the number of
 * the last wgmma that used it; numbers retire in order, so one comparison tells. Nothing here
 * depends on when the hardware would really be done.
 *
 * Rejected: computing a wgmma at its wait (a program with the fault would give wrong numbers, but
 * which ones is as much chance as on the hardware). */
#include <stdio.h>

#include "kernel/emu.h"

static void report_busy(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, size_t index,
                        const tk_emu_slot *slot) {
    const tk_emu_block *block = warp->block;
    const tk_kop *user = block->launch->program->ops.items[slot->busy_op];
    char message[160];
    int lane = __builtin_ctz(mask);
    if (tk_emu_find_again(&warp->block->group->findings, TK_KF_IN_FLIGHT, insn->op, user)) return;
    snprintf(message, sizeof message, "a wgmma still %s element %zu of the register tensor",
             slot->busy_writes ? "writes" : "reads", index);
    tk_emu_found found = {.kind = TK_KF_IN_FLIGHT,
                          .op = insn->op,
                          .other_op = user,
                          .message = message,
                          .thread = (int32_t)tk_emu_thread(warp, lane),
                          .other_thread = (int32_t)tk_emu_thread(warp, lane),
                          .count = 1};
    memcpy(found.block, block->index, sizeof found.block);
    memcpy(found.other_block, block->index, sizeof found.other_block);
    tk_emu_find(&warp->block->group->findings, &found);
}

void tk_emu_tensor_read(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                        tk_emu_tensor *tensor, size_t index, size_t count) {
    for (size_t e = index; e < index + count; e++) {
        tk_emu_slot *slot = &tensor->slots[e];
        uint32_t unset = mask & ~slot->set;
        if (unset)
            tk_emu_report(warp, insn, __builtin_ctz(unset), TK_KF_UNSET_REGISTER,
                          "element %zu was never set", e);
        if (slot->busy > warp->wgmma.retired && slot->busy_writes)
            report_busy(warp, insn, mask, e, slot);
        slot->touched = warp->wgmma.fences + 1;
    }
}

void tk_emu_tensor_write(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                         tk_emu_tensor *tensor, size_t index, size_t count) {
    for (size_t e = index; e < index + count; e++) {
        tk_emu_slot *slot = &tensor->slots[e];
        slot->set |= mask;
        if (slot->busy > warp->wgmma.retired) report_busy(warp, insn, mask, e, slot);
        slot->touched = warp->wgmma.fences + 1;
    }
}

/* ---- wgmma ---- */

/* Accumulators of products of one shape follow each other without a wait. */
static bool continues(const tk_emu_warp *warp, const tk_emu_insn *insn, const tk_emu_slot *slot) {
    const tk_kop *other = warp->block->launch->program->ops.items[slot->busy_op];
    static const tk_kattr_id same[] = {TK_KA_n, TK_KA_k, TK_KA_d_index, TK_KA_a_type, TK_KA_b_type};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (tk_kop_attr(other, same[i]) != tk_kop_attr(insn->op, same[i])) return false;
    return slot->busy_writes;
}

void tk_emu_tensor_need(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                        tk_emu_tensor *tensor, size_t index, size_t count) {
    for (size_t e = index; e < index + count; e++) {
        uint32_t unset = mask & ~tensor->slots[e].set;
        if (unset)
            tk_emu_report(warp, insn, __builtin_ctz(unset), TK_KF_UNSET_REGISTER,
                          "element %zu was never set", e);
    }
}

void tk_emu_tensor_lend(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                        tk_emu_tensor *tensor, size_t index, size_t count, bool writes) {
    if (!writes) tk_emu_tensor_need(warp, insn, mask, tensor, index, count);
    for (size_t e = index; e < index + count; e++) {
        tk_emu_slot *slot = &tensor->slots[e];
        bool busy = slot->busy > warp->wgmma.retired;
        if (busy && (writes ? !continues(warp, insn, slot) : slot->busy_writes))
            report_busy(warp, insn, mask, e, slot);
        if (slot->touched == warp->wgmma.fences + 1 || !warp->wgmma.fences)
            tk_emu_report(warp, insn, __builtin_ctz(mask), TK_KF_WGMMA_FENCE,
                          slot->touched ? "element %zu was accessed after the last one"
                                        : "none before the first wgmma, element %zu",
                          e);
        if (writes) slot->set |= mask;
        slot->busy = warp->wgmma.issued;
        slot->busy_op = insn->number;
        slot->busy_writes = writes;
    }
}
