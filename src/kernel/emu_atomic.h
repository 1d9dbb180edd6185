/* Atomic updates, and how ordered accesses and fences order threads. */
#ifndef KERNEL_EMU_ATOMIC_H
#define KERNEL_EMU_ATOMIC_H

#include "kernel/emu.h"

/* By place in the words of the attribute `update`. */
enum {
    TK_EMU_ADD,
    TK_EMU_SMIN,
    TK_EMU_SMAX,
    TK_EMU_UMIN,
    TK_EMU_UMAX,
    TK_EMU_MIN,
    TK_EMU_MAX,
    TK_EMU_AND,
    TK_EMU_OR,
    TK_EMU_XOR,
    TK_EMU_EXCHANGE,
    TK_EMU_COMPARE,
    TK_EMU_INC,
    TK_EMU_DEC
};

/* Updates one element in memory; whether that changed it. `expected` is for COMPARE alone. */
bool tk_emu_update(tk_kscalar scalar, int update, void *memory, const void *operand,
                   const void *expected);

/* What an access does to its place: READ sees what writes left there, WRITE leaves something. */
enum { TK_EMU_READ = 1, TK_EMU_WRITE = 2 };

/* The order that a lane's access to a place makes; places are told apart by their first cell. An
 * access that reads and writes keeps what earlier writes left, one that writes alone replaces it.
 */
void tk_emu_synchronise(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                        const tk_emu_cell *place, int part);

void tk_emu_fences_release(tk_emu_fences *fences);

/* Forgets places among these cells, or all. */
void tk_emu_places_forget(tk_emu_group *group, const tk_emu_cell *cells, size_t count);
void tk_emu_places_release(struct tk_emu_places *places);

#endif
