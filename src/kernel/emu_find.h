/* Findings of an emulation: a list without repetitions. */
#ifndef KERNEL_EMU_FIND_H
#define KERNEL_EMU_FIND_H

#include "base/arena.h"
#include "base/vec.h"
#include "kernel/ir.h"
#include "tiki/emulator.h"

/* At most so many different ones are kept; further ones are dropped. */
#define TK_EMU_MOST_FINDINGS 1000

typedef struct tk_emu_found {
    tk_kfinding_kind kind;
    const tk_kop *op, *other_op; /* other_op NULL: none */
    const char *message;
    int64_t block[3], other_block[3];
    int32_t thread, other_thread;
    uint64_t count;
} tk_emu_found;

typedef struct tk_emu_findings {
    TK_VEC(tk_emu_found) list;
    tk_arena texts;
} tk_emu_findings;

/* Counts a finding, keeping it with a copy of its message when kind and operations are new. */
void tk_emu_find(tk_emu_findings *findings, const tk_emu_found *found);

/* The one of this kind and operation, if there is: to write its message only once. */
bool tk_emu_find_again(tk_emu_findings *findings, tk_kfinding_kind kind, const tk_kop *op,
                       const tk_kop *other_op);

/* Moves all of `from` behind those of `to`. */
void tk_emu_find_all(tk_emu_findings *to, const tk_emu_findings *from);

void tk_emu_findings_deinit(tk_emu_findings *findings);

#endif
