/* The block's shared memory, for operations that are no loads or stores. */
#ifndef KERNEL_EMU_SHARED_H
#define KERNEL_EMU_SHARED_H

#include "kernel/emu.h"

/* The memory at an address, for `bytes` at a multiple of `align`; NULL after a finding about the
 * lane. */
unsigned char *tk_emu_shared_at(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                                uint64_t address, uint32_t bytes, uint32_t align);

/* Notes and judges an access of a lane to memory that tk_emu_shared_at gave. */
void tk_emu_shared_read(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                        uint32_t bytes);
void tk_emu_shared_write(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                         uint32_t bytes);

/* The same of an agent. */
void tk_emu_shared_agent_read(tk_emu_warp *warp, const tk_emu_insn *insn,
                              const tk_emu_agent_access *by, uint64_t address, uint32_t bytes);

#endif
