/* Runs of bytes that asynchronous copies read and write: moved, noted and judged. The addresses
 * have been checked. */
#ifndef KERNEL_EMU_SPAN_H
#define KERNEL_EMU_SPAN_H

#include "kernel/emu.h"

/* Who copies: the lane's warp, the operation, and what its accesses are noted with. */
typedef struct tk_emu_copier {
    tk_emu_warp *warp;
    const tk_emu_insn *insn;
    tk_emu_agent_access by;
} tk_emu_copier;

void tk_emu_span_load_global(const tk_emu_copier *of, uint64_t address, uint64_t bytes, void *to);
void tk_emu_span_store_global(const tk_emu_copier *of, uint64_t address, uint64_t bytes,
                              const void *from);

/* Updates elements as the attribute `update` of the operation says. */
void tk_emu_span_reduce_global(const tk_emu_copier *of, uint64_t address, uint64_t bytes,
                               tk_kscalar scalar, const void *from);

void tk_emu_span_load_shared(const tk_emu_copier *of, uint64_t address, uint64_t bytes, void *to);
void tk_emu_span_store_shared(const tk_emu_copier *of, uint64_t address, uint64_t bytes,
                              const void *from);

#endif
