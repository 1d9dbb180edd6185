/* Happens-before: what each thread knows of the others, and whether an access comes after another.
 *
 * Every thread has a clock that ticks when it releases (arrives at a barrier and the like). An
 * access is marked with thread and clock: its epoch. A thread's row says, for each other thread, up
 * to which clock that thread's accesses come before its own next one; acquiring joins rows. Two
 * accesses of different threads, one a write, race unless the later one's row covers the earlier
 * one's epoch. Since rows follow from barriers and not from the order in which the emulator ran the
 * threads, so do the verdicts.
 *
 * Of each unit of memory the last write and the reads since are kept: one epoch as long as one
 * reader comes after the other, else a list with one entry for each warp. Rows are shared between
 * the lanes that know the same, as all do after a block barrier.
 *
 * Rejected: locksets (barriers are not locks); comparing the interleavings of several seeds (misses
 * what no seed happened to show). */
#include <stdio.h>

#include "base/alloc.h"
#include "kernel/emu.h"

#define CLOCK_BITS 17
#define CLOCK_MASK ((1u << CLOCK_BITS) - 1)
#define LIST_FLAG 0x80000000u

static uint32_t epoch_thread(uint32_t epoch) { return (epoch & ~LIST_FLAG) >> CLOCK_BITS; }
static uint32_t epoch_clock(uint32_t epoch) { return epoch & CLOCK_MASK; }

/* ---- rows ---- */

tk_emu_row *tk_emu_row_keep(tk_emu_row *row) {
    if (row) row->references++;
    return row;
}

void tk_emu_row_drop(tk_emu_row *row) {
    if (row && --row->references == 0) tk_free(row);
}

/* Clocks, then how far each is fenced; without agents nobody asks for the latter. */
static uint32_t row_length(const tk_emu_block *block) {
    const tk_emu_launch *launch = block->launch;
    return launch->n_clocks > launch->n_threads ? 2 * launch->n_clocks : launch->n_clocks;
}

static bool has_agents(const tk_emu_block *block) {
    return block->launch->n_clocks > block->launch->n_threads;
}

static tk_emu_row *new_row(tk_emu_block *block) {
    tk_emu_row *row = tk_calloc(1, sizeof *row + row_length(block) * sizeof *row->clock);
    if (!row)
        block->status = TK_OUT_OF_MEMORY;
    else
        row->references = 1;
    return row;
}

static void join(tk_emu_row *to, const tk_emu_row *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (to->clock[i] < from->clock[i]) to->clock[i] = from->clock[i];
}

/* Rows that several lanes share are joined once. */
static void join_lanes(const tk_emu_warp *warp, uint32_t mask, tk_emu_row *to) {
    const tk_emu_row *last = NULL;
    for (uint32_t left = mask; left; left &= left - 1) {
        const tk_emu_row *row = warp->row[__builtin_ctz(left)];
        if (row && row != last && row != to) join(to, row, row_length(warp->block));
        last = row;
    }
}

static void tick(tk_emu_warp *warp, int lane) {
    if (++warp->clock[lane] > CLOCK_MASK) warp->block->status = TK_OVERFLOW;
}

void tk_emu_release(tk_emu_warp *warp, uint32_t mask, tk_emu_row **row) {
    if (!*row) *row = new_row(warp->block);
    if (!*row) return;
    join_lanes(warp, mask, *row);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t *known = &(*row)->clock[tk_emu_thread(warp, lane)];
        if (*known < warp->clock[lane]) *known = warp->clock[lane];
        if (has_agents(warp->block) && known[warp->block->launch->n_clocks] < warp->fenced[lane])
            known[warp->block->launch->n_clocks] = warp->fenced[lane];
        tick(warp, lane);
    }
}

void tk_emu_fence_proxy(tk_emu_warp *warp, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        warp->fenced[lane] = warp->clock[lane];
        tick(warp, lane);
    }
}

void tk_emu_acquire_agent(tk_emu_warp *warp, uint32_t mask, uint32_t agent, uint32_t clock) {
    tk_emu_row *row = new_row(warp->block);
    if (!row) return;
    row->clock[agent] = clock;
    tk_emu_acquire(warp, mask, row);
    tk_emu_row_drop(row);
}

/* The lane's row joined with another, found again for lanes with the same one. */
void tk_emu_acquire(tk_emu_warp *warp, uint32_t mask, const tk_emu_row *row) {
    tk_emu_row *last = NULL, *joined = NULL;
    for (uint32_t left = mask; left && row; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_row *old = warp->row[lane];
        if (!joined || old != last) {
            tk_emu_row_drop(joined);
            joined = new_row(warp->block);
            if (!joined) return;
            join(joined, row, row_length(warp->block));
            if (old) join(joined, old, row_length(warp->block));
            tk_emu_row_drop(last);
            last = tk_emu_row_keep(old);
        }
        tk_emu_row_drop(old);
        warp->row[lane] = tk_emu_row_keep(joined);
    }
    tk_emu_row_drop(joined);
    tk_emu_row_drop(last);
}

uint32_t tk_emu_begin(tk_emu_warp *warp, int lane, uint32_t agent) {
    tk_emu_block *block = warp->block;
    tk_emu_agent *by = &block->agents[agent - block->launch->n_threads];
    uint64_t begun = (uint64_t)tk_emu_thread(warp, lane) << 32 | warp->clock[lane];
    if (by->begun.count >= CLOCK_MASK)
        block->status = TK_OVERFLOW;
    else if (!tk_vec_push(&by->begun, begun))
        block->status = TK_OUT_OF_MEMORY;
    return (uint32_t)by->begun.count;
}

static bool knows(const tk_emu_warp *warp, int lane, uint32_t thread, uint32_t clock) {
    const tk_emu_row *row = warp->row[lane];
    return thread == tk_emu_thread(warp, lane) || clock == 0 ||
           (row && clock <= row->clock[thread]);
}

static uint32_t epoch_of(const tk_emu_warp *warp, int lane) {
    return tk_emu_thread(warp, lane) << CLOCK_BITS | warp->clock[lane];
}

/* ---- races ---- */

/* An access after that of an agent, whose begin it knows of but not the end, meets it in flight;
 * one that knows of neither races with it. */
static bool knows_begin(const tk_emu_warp *warp, int lane, uint32_t thread, uint32_t clock) {
    const tk_emu_block *block = warp->block;
    if (thread < block->launch->n_threads) return false;
    uint64_t begun = block->agents[thread - block->launch->n_threads].begun.items[clock - 1];
    return knows(warp, lane, (uint32_t)(begun >> 32), (uint32_t)begun);
}

static uint32_t person_of(const tk_emu_block *block, uint32_t thread, uint32_t clock) {
    uint32_t n_threads = block->launch->n_threads;
    if (thread < n_threads) return thread;
    return (uint32_t)(block->agents[thread - n_threads].begun.items[clock - 1] >> 32);
}

/* Which of the two came first is chance, so a finding names the operation that stands later in the
 * text first: the same for every interleaving. */
static void report_race(const tk_emu_access *access, int lane, uint16_t other_op, uint32_t epoch,
                        const char *words) {
    const tk_emu_warp *warp = access->warp;
    tk_emu_block *block = warp->block;
    uint32_t other = epoch_thread(epoch), clock = epoch_clock(epoch);
    bool later = access->insn->number >= other_op;
    tk_kfinding_kind kind = knows_begin(warp, lane, other, clock) ? TK_KF_IN_FLIGHT : access->race;
    int32_t threads[2] = {(int32_t)tk_emu_thread(warp, lane),
                          (int32_t)person_of(block, other, clock)};
    const tk_kop *ops[2] = {access->insn->op, block->launch->program->ops.items[other_op]};
    char message[160];
    if (kind == TK_KF_IN_FLIGHT) later = true, words = "an asynchronous operation still uses it";
    if (tk_emu_find_again(&block->findings, kind, ops[!later], ops[later])) return;
    snprintf(message, sizeof message, "%s at address 0x%llx of %s", words,
             (unsigned long long)access->address, access->where);
    tk_emu_found found = {.kind = kind,
                          .op = ops[!later],
                          .other_op = ops[later],
                          .message = message,
                          .thread = threads[!later],
                          .other_thread = threads[later],
                          .count = 1};
    memcpy(found.block, block->index, sizeof found.block);
    memcpy(found.other_block, block->index, sizeof found.other_block);
    tk_emu_find(&block->findings, &found);
}

/* ---- memory that nobody wrote ---- */

/* A read of unset memory is judged when the block ends: if a write turns up that nothing orders
 * after the read, it is a race, whichever came first. */
void tk_emu_note_unset(const tk_emu_access *access, int lane, const tk_emu_cell *cell) {
    tk_emu_block *block = access->warp->block;
    tk_emu_unset unset = {.cell = cell,
                          .warp = access->warp,
                          .insn = access->insn,
                          .lane = lane,
                          .address = access->address};
    if (block->unset.count < TK_EMU_MOST_UNSET && !tk_vec_push(&block->unset, unset))
        block->status = TK_OUT_OF_MEMORY;
}

static void forget_unset(tk_emu_block *block, const tk_emu_cell *cell) {
    for (size_t i = 0; i < block->unset.count; i++)
        if (block->unset.items[i].cell == cell) block->unset.items[i].cell = NULL;
}

void tk_emu_report_unset(tk_emu_block *block) {
    for (size_t i = 0; i < block->unset.count; i++) {
        const tk_emu_unset *unset = &block->unset.items[i];
        if (unset->cell)
            tk_emu_report(unset->warp, unset->insn, unset->lane, TK_KF_UNSET_SHARED,
                          "address 0x%llx was never written", (unsigned long long)unset->address);
    }
}

static void check_against_write(const tk_emu_access *access, int lane, const tk_emu_cell *cell,
                                const char *words) {
    uint32_t thread = epoch_thread(cell->write);
    if (cell->write && !knows(access->warp, lane, thread, epoch_clock(cell->write)))
        report_race(access, lane, cell->write_op, cell->write, words);
}

/* Whether what was written there is visible to the async proxy, to a lane that comes after it. */
static bool is_fenced(const tk_emu_warp *warp, int lane, uint32_t thread, uint32_t clock) {
    const tk_emu_block *block = warp->block;
    const tk_emu_launch *launch = block->launch;
    const tk_emu_row *row = warp->row[lane];
    if (thread >= launch->n_threads && !block->agents[thread - launch->n_threads].generic)
        return true;
    if (thread == tk_emu_thread(warp, lane)) return clock <= warp->fenced[lane];
    return row && clock <= row->clock[launch->n_clocks + thread];
}

static void check_fence(const tk_emu_access *access, int lane, const tk_emu_cell *cell) {
    tk_emu_block *block = access->warp->block;
    uint32_t thread = epoch_thread(cell->write), clock = epoch_clock(cell->write);
    const tk_kop *writer = block->launch->program->ops.items[cell->write_op];
    char message[160];
    if (!cell->write || !knows(access->warp, lane, thread, clock) ||
        is_fenced(access->warp, lane, thread, clock) ||
        tk_emu_find_again(&block->findings, TK_KF_PROXY_FENCE, access->insn->op, writer))
        return;
    snprintf(message, sizeof message,
             "the writer has no proxy fence after it, address 0x%llx of %s",
             (unsigned long long)access->address, access->where);
    tk_emu_found found = {.kind = TK_KF_PROXY_FENCE,
                          .op = access->insn->op,
                          .other_op = writer,
                          .message = message,
                          .thread = (int32_t)tk_emu_thread(access->warp, lane),
                          .other_thread = (int32_t)person_of(block, thread, clock),
                          .count = 1};
    memcpy(found.block, block->index, sizeof found.block);
    memcpy(found.other_block, block->index, sizeof found.other_block);
    tk_emu_find(&block->findings, &found);
}

/* ---- readers ---- */

static uint32_t new_reader(tk_emu_block *block) {
    uint32_t place = block->free_reader;
    if (place) {
        block->free_reader = block->readers.items[place].next;
        return place;
    }
    tk_emu_reader none = {0};
    if (block->readers.count == 0 && !tk_vec_push(&block->readers, none))
        block->status = TK_OUT_OF_MEMORY;
    if (!tk_vec_push(&block->readers, none)) block->status = TK_OUT_OF_MEMORY;
    return block->status == TK_OK ? (uint32_t)block->readers.count - 1 : 0;
}

static void free_readers(tk_emu_block *block, uint32_t first) {
    uint32_t last = first;
    while (block->readers.items[last].next) last = block->readers.items[last].next;
    block->readers.items[last].next = block->free_reader;
    block->free_reader = first;
}

static void push_reader(tk_emu_block *block, tk_emu_cell *cell, tk_emu_reader reader) {
    uint32_t place = new_reader(block);
    if (!place) return;
    reader.next = cell->read & LIST_FLAG ? cell->read & ~LIST_FLAG : 0;
    block->readers.items[place] = reader;
    cell->read = LIST_FLAG | place;
}

static tk_emu_reader reader_of(const tk_emu_access *access, uint32_t mask) {
    const tk_emu_warp *warp = access->warp;
    return (tk_emu_reader){.mask = mask,
                           .clock = warp->clock[__builtin_ctz(mask)],
                           .warp = (uint16_t)warp->number,
                           .op = access->insn->number};
}

static void list_single(tk_emu_block *block, tk_emu_cell *cell) {
    uint32_t thread = epoch_thread(cell->read), clock = epoch_clock(cell->read);
    cell->read = 0;
    push_reader(block, cell,
                (tk_emu_reader){.mask = 1u << thread % TK_EMU_LANES,
                                .clock = clock,
                                .warp = (uint16_t)(thread / TK_EMU_LANES),
                                .op = cell->read_op});
}

/* Whether all earlier readers of the entry come before the lane. */
static bool knows_reader(const tk_emu_warp *warp, int lane, const tk_emu_reader *reader,
                         uint32_t *out_thread) {
    for (uint32_t left = reader->mask; left; left &= left - 1) {
        *out_thread = reader->warp * (uint32_t)TK_EMU_LANES + (uint32_t)__builtin_ctz(left);
        if (!knows(warp, lane, *out_thread, reader->clock)) return false;
    }
    return true;
}

/* An entry of the same warp and clock takes the lanes in; one of the same warp that comes before is
 * replaced. */
static bool merge_reader(const tk_emu_access *access, uint32_t mask, uint32_t clock,
                         tk_emu_cell *cell) {
    tk_emu_block *block = access->warp->block;
    uint32_t thread;
    for (uint32_t at = cell->read & ~LIST_FLAG; at; at = block->readers.items[at].next) {
        tk_emu_reader *reader = &block->readers.items[at];
        if (reader->warp != access->warp->number) continue;
        if (reader->clock == clock) {
            reader->mask |= mask;
            return true;
        }
        if ((reader->mask & ~mask) == 0 ||
            knows_reader(access->warp, __builtin_ctz(mask), reader, &thread)) {
            reader->mask = mask, reader->clock = clock, reader->op = access->insn->number;
            return true;
        }
    }
    return false;
}

/* Lanes of one clock. */
static void note_lanes(const tk_emu_access *access, uint32_t mask, tk_emu_cell *cell) {
    tk_emu_warp *warp = access->warp;
    int lane = __builtin_ctz(mask);
    uint32_t clock = warp->clock[lane];
    bool single = !(mask & (mask - 1));
    bool plain = !(cell->read & LIST_FLAG);
    if (plain && single &&
        (!cell->read || knows(warp, lane, epoch_thread(cell->read), epoch_clock(cell->read)))) {
        cell->read = epoch_of(warp, lane);
        cell->read_op = access->insn->number;
        return;
    }
    if (plain && cell->read) list_single(warp->block, cell);
    if (!(cell->read & LIST_FLAG) || !merge_reader(access, mask, clock, cell))
        push_reader(warp->block, cell, reader_of(access, mask));
}

static uint32_t same_clock(const tk_emu_warp *warp, uint32_t mask) {
    uint32_t clock = warp->clock[__builtin_ctz(mask)], same = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        if (warp->clock[__builtin_ctz(left)] == clock) same |= left & -left;
    return same;
}

void tk_emu_note_read(const tk_emu_access *access, uint32_t mask) {
    for (uint32_t i = 0; i < access->count; i++) {
        tk_emu_cell *cell = &access->cells[i];
        for (uint32_t left = cell->write ? mask : 0; left; left &= left - 1)
            check_against_write(access, __builtin_ctz(left), cell,
                                "a read and a write without order");
        for (uint32_t left = mask, same; left; left &= ~same) {
            same = left & (left - 1) ? same_clock(access->warp, left) : left;
            note_lanes(access, same, cell);
        }
    }
}

static void report_reader(const tk_emu_access *access, int lane, const tk_emu_cell *cell,
                          uint16_t op, uint32_t thread, uint32_t clock) {
    if (!cell->write) forget_unset(access->warp->block, cell);
    report_race(access, lane, op, thread << CLOCK_BITS | clock, "a read and a write without order");
}

static void check_against_reads(const tk_emu_access *access, int lane, tk_emu_cell *cell) {
    tk_emu_warp *warp = access->warp;
    tk_emu_block *block = warp->block;
    uint32_t thread = epoch_thread(cell->read);
    if (!(cell->read & LIST_FLAG)) {
        if (!knows(warp, lane, thread, epoch_clock(cell->read)))
            report_reader(access, lane, cell, cell->read_op, thread, epoch_clock(cell->read));
        return;
    }
    for (uint32_t at = cell->read & ~LIST_FLAG; at; at = block->readers.items[at].next)
        if (!knows_reader(warp, lane, &block->readers.items[at], &thread))
            report_reader(access, lane, cell, block->readers.items[at].op, thread,
                          block->readers.items[at].clock);
    free_readers(block, cell->read & ~LIST_FLAG);
}

static inline void note_write(const tk_emu_access *access, int lane, tk_emu_cell *cell,
                              uint32_t epoch) {
    if (cell->write) check_against_write(access, lane, cell, "two writes without order");
    if (cell->read) check_against_reads(access, lane, cell);
    *cell = (tk_emu_cell){.write = epoch, .write_op = access->insn->number};
}

void tk_emu_note_write(const tk_emu_access *access, int lane) {
    uint32_t epoch = epoch_of(access->warp, lane);
    for (uint32_t i = 0; i < access->count; i++) note_write(access, lane, &access->cells[i], epoch);
}

/* ---- agents ---- */

/* The agent's earlier operations end before its later ones, so the last one stands for them. */
static void note_agent_reader(const tk_emu_access *access, const tk_emu_agent_access *by,
                              tk_emu_cell *cell) {
    tk_emu_block *block = access->warp->block;
    uint16_t group = (uint16_t)(by->agent / TK_EMU_LANES);
    uint32_t mask = 1u << by->agent % TK_EMU_LANES;
    for (uint32_t at = cell->read & ~LIST_FLAG; at; at = block->readers.items[at].next) {
        tk_emu_reader *reader = &block->readers.items[at];
        if (reader->warp != group || (reader->clock != by->clock && reader->mask != mask)) continue;
        reader->mask |= mask, reader->clock = by->clock, reader->op = access->insn->number;
        return;
    }
    push_reader(block, cell,
                (tk_emu_reader){
                    .mask = mask, .clock = by->clock, .warp = group, .op = access->insn->number});
}

void tk_emu_note_agent_read(const tk_emu_access *access, const tk_emu_agent_access *by) {
    uint32_t epoch = by->agent << CLOCK_BITS | by->clock;
    for (uint32_t i = 0; i < access->count; i++) {
        tk_emu_cell *cell = &access->cells[i];
        check_against_write(access, by->lane, cell, "a read and a write without order");
        if (by->async_proxy) check_fence(access, by->lane, cell);
        bool plain = !(cell->read & LIST_FLAG);
        if (!cell->read || (plain && epoch_thread(cell->read) == by->agent)) {
            cell->read = epoch;
            cell->read_op = access->insn->number;
            continue;
        }
        if (plain) list_single(access->warp->block, cell);
        note_agent_reader(access, by, cell);
    }
}

void tk_emu_note_agent_write(const tk_emu_access *access, const tk_emu_agent_access *by) {
    for (uint32_t i = 0; i < access->count; i++) {
        tk_emu_cell *cell = &access->cells[i];
        if (by->async_proxy) check_fence(access, by->lane, cell);
        note_write(access, by->lane, cell, by->agent << CLOCK_BITS | by->clock);
    }
}

/* ---- runs ---- */

void tk_emu_note_write_run(const tk_emu_access *access) {
    tk_emu_cell *cell = access->cells;
    for (int l = 0; l < TK_EMU_LANES; l++) {
        uint32_t epoch = epoch_of(access->warp, l);
        for (uint32_t i = 0; i < access->count; i++) note_write(access, l, cell++, epoch);
    }
}

static inline void note_read(const tk_emu_access *access, int lane, tk_emu_cell *cell,
                             uint32_t epoch) {
    if (cell->write) check_against_write(access, lane, cell, "a read and a write without order");
    if (cell->read && cell->read >> CLOCK_BITS != epoch >> CLOCK_BITS) {
        note_lanes(access, 1u << lane, cell);
        return;
    }
    cell->read = epoch;
    cell->read_op = access->insn->number;
}

void tk_emu_note_read_run(const tk_emu_access *access) {
    tk_emu_cell *cell = access->cells;
    for (int l = 0; l < TK_EMU_LANES; l++) {
        uint32_t epoch = epoch_of(access->warp, l);
        for (uint32_t i = 0; i < access->count; i++) note_read(access, l, cell++, epoch);
    }
}
