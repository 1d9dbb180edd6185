/* Checked places in shared memory, by address and size. */
#include "kernel/emu_shared.h"

unsigned char *tk_emu_shared_at(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                                uint64_t address, uint32_t bytes, uint32_t align) {
    uint64_t at = address - TK_EMU_SHARED_BASE, size = (uint64_t)warp->block->shared_bytes;
    if (address < TK_EMU_SHARED_BASE || at > size || size - at < bytes) {
        tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS,
                      "%u bytes at %lld of %llu bytes of shared memory", bytes, (long long)at,
                      (unsigned long long)size);
        return NULL;
    }
    if (address % align) {
        tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED,
                      "address 0x%llx, expected a multiple of %u", (unsigned long long)address,
                      align);
        return NULL;
    }
    return warp->block->shared + at;
}

static tk_emu_access access_of(tk_emu_warp *warp, const tk_emu_insn *insn, uint64_t address,
                               uint32_t bytes) {
    tk_emu_block *block = warp->block;
    uint32_t unit = block->launch->program->shared_unit;
    return (tk_emu_access){.warp = warp,
                           .insn = insn,
                           .cells = block->shared_cells + (address - TK_EMU_SHARED_BASE) / unit,
                           .count = (bytes + unit - 1) / unit,
                           .address = address,
                           .race = TK_KF_RACE_SHARED,
                           .where = "shared memory"};
}

static void check_set(const tk_emu_access *access, int lane) {
    for (uint32_t i = 0; i < access->count; i++)
        if (!access->cells[i].write) {
            tk_emu_note_unset(access, lane, &access->cells[i]);
            return;
        }
}

void tk_emu_shared_read(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                        uint32_t bytes) {
    tk_emu_access access = access_of(warp, insn, address, bytes);
    check_set(&access, lane);
    tk_emu_note_read(&access, 1u << lane);
}

void tk_emu_shared_write(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address,
                         uint32_t bytes) {
    tk_emu_access access = access_of(warp, insn, address, bytes);
    tk_emu_note_write(&access, lane);
}

void tk_emu_shared_agent_read(tk_emu_warp *warp, const tk_emu_insn *insn,
                              const tk_emu_agent_access *by, uint64_t address, uint32_t bytes) {
    tk_emu_access access = access_of(warp, insn, address, bytes);
    check_set(&access, by->lane);
    tk_emu_note_agent_read(&access, by);
}
