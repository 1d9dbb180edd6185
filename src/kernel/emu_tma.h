/* Tensor maps as the emulator reads them: rules with values. */
#ifndef KERNEL_EMU_TMA_H
#define KERNEL_EMU_TMA_H

#include "kernel/contract.h"
#include "kernel/emu.h"

/* The map of a parameter, its base at an address. Errors: TK_INVALID_ARGUMENT for what the hardware
 * does not take. */
tk_status tk_emu_map_bind(const tk_kernel *kernel, const tk_kbinding *binding, int index,
                          uint64_t base, tk_emu_map *out);

#endif
