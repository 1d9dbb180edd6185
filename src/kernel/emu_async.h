/* Asynchronous work of lanes: groups of it, waits for them, and what is left at the end. */
#ifndef KERNEL_EMU_ASYNC_H
#define KERNEL_EMU_ASYNC_H

#include "kernel/emu.h"

/* What the accesses of an operation of a lane's kind are noted with. */
tk_emu_agent_access tk_emu_own_issue(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, int kind,
                                     bool async_proxy);

/* Closes a group of each lane; waits until all but the last `left` of them are done. */
void tk_emu_own_commit(tk_emu_warp *warp, uint32_t mask, int kind);
void tk_emu_own_wait(tk_emu_warp *warp, uint32_t mask, int kind, uint32_t left);

/* The block ends: reports what it leaves unfinished, and accesses of other blocks to its shared
 * memory that it does not come after. */
void tk_emu_end_async(tk_emu_block *block);

/* Notes an asynchronous access to `bytes` of shared memory, which are whole units, and checks it
 * for memory that nobody wrote. */
void tk_emu_shared_note(tk_emu_warp *warp, const tk_emu_insn *insn, uint64_t address,
                        uint64_t bytes, const tk_emu_agent_access *by, bool write);

struct tk_emu_cluster;
void tk_emu_cluster_release(struct tk_emu_cluster *cluster);

#endif
