/* Where copies through the async proxy go. */
#ifndef KERNEL_EMU_BULK_H
#define KERNEL_EMU_BULK_H

#include "kernel/emu.h"

/* The same place in another block of the cluster. */
uint64_t tk_emu_in_block(uint64_t address, uint32_t rank);

/* A bit for each block of the cluster that gets a copy: those of the operand, or the one whose
 * memory the target is in. */
uint32_t tk_emu_targets(tk_emu_warp *warp, const tk_emu_insn *insn, int operand, int lane,
                        uint64_t target);

#endif
