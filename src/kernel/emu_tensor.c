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
    if (tk_emu_find_again(&warp->block->findings, TK_KF_IN_FLIGHT, insn->op, user)) return;
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
    tk_emu_find(&warp->block->findings, &found);
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
