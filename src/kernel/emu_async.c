/* Asynchronous work of lanes: groups of it, waits for them, and what is left at the end.
 *
 * Groups of a lane are done in order, so a wait makes one clock known: that of the youngest group
 * that must be done. */
#include "kernel/emu_async.h"

#include "kernel/emu_mbarrier.h"
#include "kernel/emu_memory.h"

/* ---- groups ---- */

tk_emu_agent_access tk_emu_own_issue(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, int kind,
                                     bool async_proxy) {
    tk_emu_own *own = warp->own;
    tk_emu_agent_access by = {.agent = (uint32_t)kind * warp->block->group->n_lanes +
                                       warp->first_id + (uint32_t)lane,
                              .clock = own->clock[kind][lane],
                              .lane = lane,
                              .async_proxy = async_proxy};
    tk_emu_begin_in(warp, lane, by.agent, by.clock);
    own->issued[kind][lane] = by.clock;
    own->last[kind][lane] = insn;
    return by;
}

void tk_emu_own_commit(tk_emu_warp *warp, uint32_t mask, int kind) {
    tk_emu_own *own = warp->own;
    for (uint32_t left = own ? mask : 0; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t number = own->committed[kind][lane]++;
        own->group[kind][lane][number % TK_EMU_MOST_COMMITTED] = own->clock[kind][lane];
        if (own->issued[kind][lane] == own->clock[kind][lane]) own->clock[kind][lane]++;
    }
}

void tk_emu_own_wait(tk_emu_warp *warp, uint32_t mask, int kind, uint32_t left_over) {
    tk_emu_own *own = warp->own;
    for (uint32_t left = own ? mask : 0; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t count = own->committed[kind][lane];
        if (count <= left_over) continue;
        uint32_t done = own->group[kind][lane][(count - 1 - left_over) % TK_EMU_MOST_COMMITTED];
        if (done > own->known[kind][lane]) own->known[kind][lane] = done;
    }
}

/* ---- shared memory ---- */

static void check_set(const tk_emu_access *access, int lane) {
    for (uint32_t i = 0; i < access->count; i++)
        if (!access->cells[i].write) {
            tk_emu_note_unset(access, lane, &access->cells[i]);
            return;
        }
}

void tk_emu_shared_note(tk_emu_warp *warp, const tk_emu_insn *insn, uint64_t address,
                        uint64_t bytes, const tk_emu_agent_access *by, bool write) {
    tk_emu_block *block = tk_emu_shared_block(warp, address);
    uint64_t unit = block->launch->program->shared_unit, at = tk_emu_shared_offset(address);
    tk_emu_access access = {.warp = warp,
                            .insn = insn,
                            .cells = block->shared_cells + at / unit,
                            .count = (uint32_t)((at % unit + bytes + unit - 1) / unit),
                            .race = TK_KF_RACE_SHARED,
                            .where = "shared memory",
                            .address = address};
    if (!write) check_set(&access, by->lane);
    if (block->group->mbarriers && tk_emu_mbarrier_overlaps(block, at, bytes))
        tk_emu_report(warp, insn, by->lane, TK_KF_MBARRIER_USE,
                      "%llu bytes at address 0x%llx hold an mbarrier", (unsigned long long)bytes,
                      (unsigned long long)address);
    if (write)
        tk_emu_note_agent_write(&access, by);
    else
        tk_emu_note_agent_read(&access, by);
}

/* ---- the end of a block ---- */

/* Writes to global memory are done when the grid is; all else must be waited for. */
static void report_own(tk_emu_warp *warp, const tk_emu_row *known) {
    const tk_emu_own *own = warp->own;
    const tk_emu_group *group = warp->block->group;
    for (int kind = 1; kind < (int)group->launch->program->n_kinds; kind++)
        for (int l = 0; l < TK_EMU_LANES && kind != TK_EMU_BULK_WRITE; l++) {
            uint32_t id = (uint32_t)kind * group->n_lanes + warp->first_id + (uint32_t)l;
            if (!own->issued[kind][l] || tk_emu_row_knows(known, id, own->issued[kind][l]))
                continue;
            tk_emu_report(warp, own->last[kind][l], l, TK_KF_UNFINISHED,
                          "the block ends, and nothing has waited for this copy");
        }
}

static tk_emu_row *knowledge_of(tk_emu_block *block) {
    tk_emu_row *known = NULL;
    for (uint32_t w = 0; w < block->n_warps; w++) {
        tk_emu_warp *warp = &block->warps[w];
        for (int l = 0; l < TK_EMU_LANES; l++)
            if (warp->lanes >> l & 1) tk_emu_put(warp, l, warp->row[l], warp->clock[l], &known);
    }
    return known;
}

/* A thread of another block of the cluster, whose access this block does not come after. */
static bool is_late(const tk_emu_block *block, const tk_emu_row *known, uint32_t id,
                    uint32_t clock) {
    uint32_t of_block = block->n_warps * TK_EMU_LANES;
    return clock && id < block->group->n_lanes && id / of_block != block->slot &&
           !tk_emu_row_knows(known, id, clock);
}

static void report_late(tk_emu_block *block, uint16_t op) {
    const tk_emu_insn insn = {.op = block->launch->program->ops.items[op], .number = op};
    tk_emu_report(&block->warps[0], &insn, 0, TK_KF_UNFINISHED,
                  "the block ends, and another block still uses its shared memory");
}

static void check_cell(tk_emu_block *block, const tk_emu_row *known, const tk_emu_cell *cell) {
    const tk_emu_reader *readers = block->group->readers.items;
    if (is_late(block, known, tk_emu_epoch_id(cell->write), tk_emu_epoch_clock(cell->write)))
        report_late(block, cell->write_op);
    if (!tk_emu_is_list(cell->read)) {
        if (is_late(block, known, tk_emu_epoch_id(cell->read), tk_emu_epoch_clock(cell->read)))
            report_late(block, cell->read_op);
        return;
    }
    for (uint32_t at = tk_emu_list_of(cell->read); at; at = readers[at].next)
        for (uint32_t left = readers[at].mask; left; left &= left - 1)
            if (is_late(block, known,
                        readers[at].warp * (uint32_t)TK_EMU_LANES + (uint32_t)__builtin_ctz(left),
                        readers[at].clock))
                report_late(block, readers[at].op);
}

void tk_emu_end_async(tk_emu_block *block) {
    const tk_emu_program *program = block->launch->program;
    bool alone = block->launch->cluster == 1;
    if (program->n_kinds == 1 && !block->mbarriers && alone) return;
    tk_emu_row *known = knowledge_of(block);
    for (uint32_t w = 0; w < block->n_warps && program->n_kinds > 1; w++)
        report_own(&block->warps[w], known);
    tk_emu_mbarriers_end(block, known);
    for (int64_t i = 0; i < block->shared_bytes / program->shared_unit && !alone; i++)
        check_cell(block, known, &block->shared_cells[i]);
    tk_emu_row_drop(known);
}
