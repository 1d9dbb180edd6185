/* Mbarriers: what they are, for waits and for asynchronous copies. */
#ifndef KERNEL_EMU_MBARRIER_H
#define KERNEL_EMU_MBARRIER_H

#include "kernel/emu.h"

typedef struct tk_emu_mbarrier tk_emu_mbarrier;

/* Whether bytes of a block's shared memory, from an offset on, are in one. */
bool tk_emu_mbarrier_overlaps(const tk_emu_block *block, uint64_t offset, uint64_t bytes);

/* The mbarrier that an asynchronous operation of a lane tells its end, checked; NULL after a
 * finding. *out gets what the operation's accesses are noted with. */
tk_emu_mbarrier *tk_emu_mbarrier_issue(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                                       uint64_t address, tk_emu_agent_access *out);

/* Lanes arrive at their cluster's barrier, relaxed or not, so often: who waits for it then comes
 * after those of their initialisations that an mbarrier_fence follows. */
void tk_emu_mbarriers_announce(const tk_emu_warp *warp, uint32_t mask, uint32_t turn);
uint32_t tk_emu_cluster_passed(const tk_emu_warp *warp, int lane); /* the last turn waited for */

/* The operation has moved its bytes. */
void tk_emu_mbarrier_complete(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                              tk_emu_mbarrier *barrier, uint32_t bytes);

/* An arrival on behalf of a lane's cp.async, up to a clock of theirs; `counts`: it is one that the
 * mbarrier expects. */
void tk_emu_mbarrier_arrive_copy(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                                 uint64_t address, uint32_t agent, uint32_t clock, bool counts);

/* The lane waits for what never comes: a finding about the counts, if they are what is wrong. */
bool tk_emu_mbarrier_report(tk_emu_warp *warp, const tk_emu_insn *insn, int lane);

/* The block ends; its threads know `known`. Reports copies that nobody waited for, and arrivals of
 * other blocks that it does not come after. */
void tk_emu_mbarriers_end(tk_emu_block *block, const tk_emu_row *known);
void tk_emu_mbarriers_release(struct tk_emu_mbarriers *barriers);

#endif
