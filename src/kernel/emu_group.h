/* The life of groups of blocks. */
#ifndef KERNEL_EMU_GROUP_H
#define KERNEL_EMU_GROUP_H

#include "kernel/emu.h"

/* A group for the clusters from `first` up to `end`; false when memory is out. Deinit also then. */
bool tk_emu_group_init(tk_emu_launch *launch, int64_t number, int64_t first, int64_t end,
                       tk_emu_group *group);
void tk_emu_group_deinit(tk_emu_group *group);

/* Starts the blocks of the next cluster in the slots from `slot` on; false when there is none or
 * memory is out. */
bool tk_emu_start_cluster(tk_emu_group *group, uint32_t slot);

/* Whether all threads of a block have ended. */
bool tk_emu_is_over(const tk_emu_block *block);

/* Ends the blocks of a cluster: frees what they have, counts what they did, and reports what they
 * leave unfinished. */
void tk_emu_end_cluster(tk_emu_group *group, uint32_t slot);

#endif
