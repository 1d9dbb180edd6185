/* Happens-before: what each thread knows of the others, and whether an access comes after another.
 *
 * Every thread has a clock that ticks when it releases (arrives at a barrier and the like). An
 * access is marked with thread and clock: its epoch. A thread's row says, for each other thread, up
 * to which clock that thread's accesses come before its own next one; acquiring joins rows. Two
 * accesses of different threads, one a write, race unless the later one's row covers the earlier
 * one's epoch. Since rows follow from barriers and not from the order in which the emulator ran the
 * threads, so do the verdicts.
 *
 * Asynchronous work has ids of its own beside those of threads, agents, and clocks that its waits
 * make known: cp.async and bulk groups of a thread complete in order, so an agent for each thread
 * and kind is enough; what an mbarrier counts has the mbarrier's agent, its phase as the clock. An
 * agent's access comes after what the lane knew that issued it, and after nothing of its own agent.
 *
 * A second half of rows says up to which clock a thread's writes are fenced for the async proxy.
 *
 * Of each unit of memory the last write and the reads since are kept: one epoch as long as one
 * reader comes after the other, else a list with one entry for each warp. Ordered accesses, writes
 * among them, stand in that list too, since none of them ends the others. Rows are shared between
 * the lanes that know the same, as all do after a block barrier; a row that a lane has never
 * changes.
 *
 * Rejected: locksets (barriers are not locks); comparing the interleavings of several seeds (misses
 * what no seed happened to show); an id for each asynchronous operation (rows without bound). */
#include <stdio.h>

#include "base/alloc.h"
#include "kernel/emu.h"

#define CLOCK_BITS TK_EMU_CLOCK_BITS
#define CLOCK_MASK TK_EMU_CLOCK_MASK
#define LIST_FLAG TK_EMU_LIST
#define MOST_IDS (1u << (31 - CLOCK_BITS))

static uint32_t epoch_id(uint32_t epoch) { return tk_emu_epoch_id(epoch); }
static uint32_t epoch_clock(uint32_t epoch) { return tk_emu_epoch_clock(epoch); }

/* ---- rows ---- */

tk_emu_row *tk_emu_row_keep(tk_emu_row *row) {
    if (row) row->references++;
    return row;
}

void tk_emu_row_drop(tk_emu_row *row) {
    if (row && --row->references == 0) tk_free(row);
}

static uint32_t halves_of(const tk_emu_group *group) {
    return group->launch->program->proxies ? 2 : 1;
}

static tk_emu_row *new_row(tk_emu_group *group) {
    tk_emu_row *row =
        tk_calloc(1, sizeof *row + halves_of(group) * group->n_ids * sizeof *row->clock);
    if (!row) {
        group->status = TK_OUT_OF_MEMORY;
        return NULL;
    }
    row->references = 1;
    row->count = group->n_ids;
    return row;
}

static void join_part(uint32_t *to, const uint32_t *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (to[i] < from[i]) to[i] = from[i];
}

/* `to` has at least as many ids. */
static void join(const tk_emu_group *group, tk_emu_row *to, const tk_emu_row *from) {
    join_part(to->clock, from->clock, from->count);
    if (halves_of(group) == 2)
        join_part(to->clock + to->count, from->clock + from->count, from->count);
}

/* A row of all ids that there are now, in place of one that was made when there were fewer. */
static bool make_room(tk_emu_group *group, tk_emu_row **row) {
    if (*row && (*row)->count == group->n_ids && (*row)->references == 1) return true;
    tk_emu_row *wider = new_row(group);
    if (!wider) return false;
    if (*row) join(group, wider, *row);
    tk_emu_row_drop(*row);
    *row = wider;
    return true;
}

void tk_emu_join(tk_emu_group *group, tk_emu_row **to, const tk_emu_row *from) {
    if (from && make_room(group, to)) join(group, *to, from);
}

void tk_emu_join_id(tk_emu_group *group, tk_emu_row **to, uint32_t id, uint32_t clock) {
    if (make_room(group, to) && (*to)->clock[id] < clock) (*to)->clock[id] = clock;
}

/* Rows that several lanes share are joined once. */
static void join_lanes(const tk_emu_warp *warp, uint32_t mask, tk_emu_row *to) {
    const tk_emu_row *last = NULL;
    for (uint32_t left = mask; left; left &= left - 1) {
        const tk_emu_row *row = warp->row[__builtin_ctz(left)];
        if (row && row != last && row != to) join(warp->block->group, to, row);
        last = row;
    }
}

static void raise(uint32_t *clock, uint32_t to) {
    if (*clock < to) *clock = to;
}

/* What a lane knows of itself and of its own asynchronous work. */
static void put_self(const tk_emu_warp *warp, int lane, uint32_t clock, tk_emu_row *row) {
    const tk_emu_group *group = warp->block->group;
    const tk_emu_program *program = group->launch->program;
    uint32_t id = warp->first_id + (uint32_t)lane;
    raise(&row->clock[id], clock);
    if (program->proxies) raise(&row->clock[row->count + id], warp->fenced[lane]);
    for (uint32_t kind = 1; kind < program->n_kinds; kind++)
        raise(&row->clock[kind * group->n_lanes + id], warp->own->known[kind][lane]);
    if (program->n_kinds > TK_EMU_COPY && program->proxies)
        raise(&row->clock[row->count + TK_EMU_COPY * group->n_lanes + id], warp->own->fenced[lane]);
}

void tk_emu_tick(tk_emu_warp *warp, int lane) {
    if (++warp->clock[lane] > CLOCK_MASK) warp->block->group->status = TK_OVERFLOW;
}

void tk_emu_put(tk_emu_warp *warp, int lane, const tk_emu_row *known, uint32_t clock,
                tk_emu_row **row) {
    if (!make_room(warp->block->group, row)) return;
    if (known) join(warp->block->group, *row, known);
    put_self(warp, lane, clock, *row);
}

void tk_emu_release(tk_emu_warp *warp, uint32_t mask, tk_emu_row **row) {
    if (!make_room(warp->block->group, row)) return;
    join_lanes(warp, mask, *row);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        put_self(warp, lane, warp->clock[lane], *row);
        tk_emu_tick(warp, lane);
    }
}

/* The lane's row joined with another, found again for lanes with the same one. */
void tk_emu_acquire(tk_emu_warp *warp, uint32_t mask, const tk_emu_row *row) {
    tk_emu_group *group = warp->block->group;
    tk_emu_row *last = NULL, *joined = NULL;
    for (uint32_t left = mask; left && row; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_row *old = warp->row[lane];
        if (!joined || old != last) {
            tk_emu_row_drop(joined);
            joined = new_row(group);
            if (!joined) return;
            join(group, joined, row);
            if (old) join(group, joined, old);
            tk_emu_row_drop(last);
            last = tk_emu_row_keep(old);
        }
        tk_emu_row_drop(old);
        warp->row[lane] = tk_emu_row_keep(joined);
    }
    tk_emu_row_drop(joined);
    tk_emu_row_drop(last);
}

bool tk_emu_covers(const tk_emu_warp *warp, int lane, const tk_emu_row *row, uint32_t except) {
    const tk_emu_row *own = warp->row[lane];
    uint32_t above = 0, self = warp->first_id + (uint32_t)lane;
    if (!row || row == own) return true;
    for (uint32_t half = 0; half < halves_of(warp->block->group); half++)
        for (uint32_t i = 0; i < row->count; i++) {
            uint32_t known = own && i < own->count ? own->clock[half * own->count + i] : 0;
            above |= i != self && i != except && row->clock[half * row->count + i] > known;
        }
    return !above;
}

/* ---- knowing ---- */

/* Of its own work a lane knows all that it did itself, and what it waited for. */
static bool knows_own(const tk_emu_warp *warp, int lane, uint32_t id, uint32_t clock) {
    const tk_emu_group *group = warp->block->group;
    uint32_t self = warp->first_id + (uint32_t)lane;
    if (id == self) return clock >= warp->born[lane];
    if (id < group->n_lanes || id >= group->n_fixed || id % group->n_lanes != self) return false;
    return clock <= warp->own->known[id / group->n_lanes][lane];
}

static inline bool knows(const tk_emu_warp *warp, int lane, uint32_t id, uint32_t clock) {
    return tk_emu_row_knows(warp->row[lane], id, clock) || knows_own(warp, lane, id, clock);
}

bool tk_emu_knows(const tk_emu_warp *warp, int lane, uint32_t id, uint32_t clock) {
    return knows(warp, lane, id, clock);
}

uint32_t tk_emu_known_clock(const tk_emu_warp *warp, int lane, uint32_t id) {
    const tk_emu_row *row = warp->row[lane];
    return row && id < row->count ? row->clock[id] : 0;
}

bool tk_emu_knows_fenced(const tk_emu_warp *warp, int lane, uint32_t id, uint32_t clock) {
    const tk_emu_row *row = warp->row[lane];
    uint32_t self = warp->first_id + (uint32_t)lane;
    if (id == self && clock <= warp->fenced[lane]) return true;
    if (warp->own && id == warp->block->group->n_lanes + self && clock <= warp->own->fenced[lane])
        return true;
    return row && id < row->count && clock <= row->clock[row->count + id];
}

/* ---- agents ---- */

uint32_t tk_emu_new_agent(tk_emu_group *group) {
    tk_emu_agent agent = {0};
    if (group->n_ids == MOST_IDS)
        group->status = TK_INDEX_ERROR;
    else if (!tk_vec_push(&group->agents, agent))
        group->status = TK_OUT_OF_MEMORY;
    return group->status == TK_OK ? group->n_ids++ : 0;
}

/* Numbers that were passed over begin with this one. */
void tk_emu_begin_in(tk_emu_warp *warp, int lane, uint32_t agent, uint32_t clock) {
    tk_emu_group *group = warp->block->group;
    tk_emu_agent *by = &group->agents.items[agent - group->n_lanes];
    uint64_t begun = (uint64_t)(warp->first_id + (uint32_t)lane) << 32 | warp->clock[lane];
    if (clock > CLOCK_MASK) group->status = TK_OVERFLOW;
    while (by->begun.count < clock && group->status == TK_OK)
        if (!tk_vec_push(&by->begun, begun)) group->status = TK_OUT_OF_MEMORY;
}

uint32_t tk_emu_begin(tk_emu_warp *warp, int lane, uint32_t agent) {
    tk_emu_group *group = warp->block->group;
    uint32_t clock = (uint32_t)group->agents.items[agent - group->n_lanes].begun.count + 1;
    tk_emu_begin_in(warp, lane, agent, clock);
    return clock;
}

void tk_emu_fence_proxy(tk_emu_warp *warp, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        warp->fenced[lane] = warp->clock[lane];
        if (warp->own) warp->own->fenced[lane] = warp->own->known[TK_EMU_COPY][lane];
        tk_emu_tick(warp, lane);
    }
}

void tk_emu_acquire_agent(tk_emu_warp *warp, uint32_t mask, uint32_t agent, uint32_t clock) {
    tk_emu_row *row = NULL;
    tk_emu_join_id(warp->block->group, &row, agent, clock);
    tk_emu_acquire(warp, mask, row);
    tk_emu_row_drop(row);
}

static uint32_t epoch_of(const tk_emu_warp *warp, int lane) {
    return (warp->first_id + (uint32_t)lane) << CLOCK_BITS | warp->clock[lane];
}

static uint32_t epoch_for(const tk_emu_access *access, int lane) {
    return access->by ? access->by->agent << CLOCK_BITS | access->by->clock
                      : epoch_of(access->warp, lane);
}

/* ---- races ---- */

static uint64_t begun_of(const tk_emu_group *group, uint32_t id, uint32_t clock) {
    const tk_emu_agent *by = &group->agents.items[id - group->n_lanes];
    return clock && clock <= by->begun.count ? by->begun.items[clock - 1] : 0;
}

/* An access after that of an agent, whose begin it knows of but not the end, meets it in flight;
 * one that knows of neither races with it. */
static bool knows_begin(const tk_emu_warp *warp, int lane, uint32_t id, uint32_t clock) {
    const tk_emu_group *group = warp->block->group;
    if (id < group->n_lanes) return false;
    uint64_t begun = begun_of(group, id, clock);
    return knows(warp, lane, (uint32_t)(begun >> 32), (uint32_t)begun);
}

static uint32_t thread_of(const tk_emu_group *group, uint32_t id, uint32_t clock) {
    if (id < group->n_fixed) return id % group->n_lanes;
    return (uint32_t)(begun_of(group, id, clock) >> 32);
}

int32_t tk_emu_whose(const tk_emu_group *group, uint32_t id, uint32_t clock, int64_t *out_block) {
    uint32_t of_block = group->launch->n_warps * TK_EMU_LANES, thread = thread_of(group, id, clock);
    memcpy(out_block, group->blocks[thread / of_block].index, 3 * sizeof *out_block);
    return (int32_t)(thread % of_block);
}

/* Which of the two came first is chance, so a finding names the operation that stands later in the
 * text first: the same for every interleaving. What is not chance names the later access first. */
void tk_emu_report_pair(const tk_emu_access *access, int lane, tk_kfinding_kind kind,
                        uint16_t other_op, uint32_t other_epoch, const char *words) {
    const tk_emu_warp *warp = access->warp;
    tk_emu_group *group = warp->block->group;
    bool chance = kind == TK_KF_RACE_SHARED || kind == TK_KF_RACE_GLOBAL,
         swap = chance && access->insn->number < other_op;
    const tk_kop *ops[2] = {access->insn->op, group->launch->program->ops.items[other_op]};
    uint32_t ids[2] = {warp->first_id + (uint32_t)lane, epoch_id(other_epoch)},
             clocks[2] = {0, epoch_clock(other_epoch)};
    char message[160];
    if (tk_emu_find_again(&group->findings, kind, ops[swap], ops[!swap])) return;
    snprintf(message, sizeof message, "%s at address 0x%llx of %s", words,
             (unsigned long long)access->address, access->where);
    tk_emu_found found = {
        .kind = kind, .op = ops[swap], .other_op = ops[!swap], .message = message, .count = 1};
    found.thread = tk_emu_whose(group, ids[swap], clocks[swap], found.block);
    found.other_thread = tk_emu_whose(group, ids[!swap], clocks[!swap], found.other_block);
    tk_emu_find(&group->findings, &found);
}

/* Whether two ordered accesses may be unordered to each other: the scope of both holds both
 * threads. */
static bool may_meet(const tk_emu_access *access, uint16_t other_op, uint32_t other_epoch) {
    enum { BLOCK = 1, CLUSTER };
    const tk_emu_group *group = access->warp->block->group;
    const uint8_t *strength = group->launch->program->strength;
    unsigned own = strength[access->insn->number] & TK_EMU_SCOPE,
             other = strength[other_op] & TK_EMU_SCOPE, least = own < other ? own : other;
    if (!least) return false;
    uint32_t thread = thread_of(group, epoch_id(other_epoch), epoch_clock(other_epoch)),
             slot = thread / (group->launch->n_warps * TK_EMU_LANES),
             here = access->warp->block->slot, cluster = group->launch->cluster;
    if (least == BLOCK) return slot == here;
    return least > CLUSTER || slot / cluster == here / cluster;
}

static void report_race(const tk_emu_access *access, int lane, uint16_t other_op,
                        uint32_t other_epoch, const char *words) {
    uint32_t id = epoch_id(other_epoch), clock = epoch_clock(other_epoch);
    if (may_meet(access, other_op, other_epoch)) return;
    if (knows_begin(access->warp, lane, id, clock))
        tk_emu_report_pair(access, lane, TK_KF_IN_FLIGHT, other_op, other_epoch,
                           "an asynchronous operation still uses it");
    else
        tk_emu_report_pair(access, lane, access->race, other_op, other_epoch, words);
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
        block->group->status = TK_OUT_OF_MEMORY;
}

/* The read may be of another block of the cluster. */
static void forget_unset(tk_emu_group *group, const tk_emu_cell *cell) {
    for (uint32_t b = 0; b < group->n_slots; b++)
        for (size_t i = 0; i < group->blocks[b].unset.count; i++)
            if (group->blocks[b].unset.items[i].cell == cell)
                group->blocks[b].unset.items[i].cell = NULL;
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
    if (cell->write && !knows(access->warp, lane, epoch_id(cell->write), epoch_clock(cell->write)))
        report_race(access, lane, cell->write_op, cell->write, words);
}

/* ---- readers ---- */

static uint32_t new_reader(tk_emu_group *group) {
    uint32_t place = group->free_reader;
    if (place) {
        group->free_reader = group->readers.items[place].next;
        return place;
    }
    tk_emu_reader none = {0};
    if (group->readers.count == 0 && !tk_vec_push(&group->readers, none))
        group->status = TK_OUT_OF_MEMORY;
    if (!tk_vec_push(&group->readers, none)) group->status = TK_OUT_OF_MEMORY;
    return group->status == TK_OK ? (uint32_t)group->readers.count - 1 : 0;
}

static void free_readers(tk_emu_group *group, uint32_t first) {
    uint32_t last = first;
    while (group->readers.items[last].next) last = group->readers.items[last].next;
    group->readers.items[last].next = group->free_reader;
    group->free_reader = first;
}

static void push_reader(tk_emu_group *group, tk_emu_cell *cell, tk_emu_reader reader) {
    uint32_t place = new_reader(group);
    if (!place) return;
    reader.next = cell->read & LIST_FLAG ? cell->read & ~LIST_FLAG : 0;
    group->readers.items[place] = reader;
    cell->read = LIST_FLAG | place;
}

static void list_single(tk_emu_group *group, tk_emu_cell *cell) {
    uint32_t id = epoch_id(cell->read), clock = epoch_clock(cell->read);
    cell->read = 0;
    push_reader(group, cell,
                (tk_emu_reader){.mask = 1u << id % TK_EMU_LANES,
                                .clock = clock,
                                .warp = (uint16_t)(id / TK_EMU_LANES),
                                .op = cell->read_op});
}

/* Whether all earlier readers of the entry come before the lane. */
static bool knows_reader(const tk_emu_warp *warp, int lane, const tk_emu_reader *reader,
                         uint32_t *out_id) {
    for (uint32_t left = reader->mask; left; left &= left - 1) {
        *out_id = reader->warp * (uint32_t)TK_EMU_LANES + (uint32_t)__builtin_ctz(left);
        if (!knows(warp, lane, *out_id, reader->clock)) return false;
    }
    return true;
}

/* An entry stands for both operations: neither is ordered, or they are the same. */
static bool alike(const tk_emu_access *access, uint16_t op) {
    const uint8_t *strength = access->warp->block->launch->program->strength;
    return op == access->insn->number || !(strength[op] | strength[access->insn->number]);
}

/* What is noted: lanes of one warp, or an agent, at one clock. */
static tk_emu_reader reader_of(const tk_emu_access *access, uint32_t mask) {
    const tk_emu_warp *warp = access->warp;
    const tk_emu_agent_access *by = access->by;
    if (by)
        return (tk_emu_reader){.mask = 1u << by->agent % TK_EMU_LANES,
                               .clock = by->clock,
                               .warp = (uint16_t)(by->agent / TK_EMU_LANES),
                               .op = access->insn->number};
    return (tk_emu_reader){.mask = mask,
                           .clock = warp->clock[__builtin_ctz(mask)],
                           .warp = (uint16_t)(warp->first_id / TK_EMU_LANES),
                           .op = access->insn->number};
}

/* An entry of the same warp and clock takes the lanes in; one of the same warp that comes before is
 * replaced. The later accesses of a lane come after its earlier ones, those of an agent are known
 * only together with them. */
static bool merge_reader(const tk_emu_access *access, int lane, const tk_emu_reader *reader,
                         tk_emu_cell *cell) {
    tk_emu_group *group = access->warp->block->group;
    uint32_t id;
    for (uint32_t at = cell->read & ~LIST_FLAG; at; at = group->readers.items[at].next) {
        tk_emu_reader *old = &group->readers.items[at];
        if (old->warp != reader->warp || !alike(access, old->op)) continue;
        if (old->clock == reader->clock) {
            old->mask |= reader->mask;
            return true;
        }
        bool covers = (old->mask & ~reader->mask) == 0;
        if (covers || knows_reader(access->warp, lane, old, &id)) {
            old->mask = reader->mask, old->clock = reader->clock, old->op = reader->op;
            return true;
        }
    }
    return false;
}

/* Lanes of one clock. */
static void note_lanes(const tk_emu_access *access, uint32_t mask, tk_emu_cell *cell) {
    tk_emu_warp *warp = access->warp;
    int lane = __builtin_ctz(mask);
    bool single = !(mask & (mask - 1)) && !access->by;
    bool plain = !(cell->read & LIST_FLAG);
    if (plain && single &&
        (!cell->read || (alike(access, cell->read_op) &&
                         knows(warp, lane, epoch_id(cell->read), epoch_clock(cell->read))))) {
        cell->read = epoch_of(warp, lane);
        cell->read_op = access->insn->number;
        return;
    }
    tk_emu_reader reader = reader_of(access, mask);
    if (plain && cell->read) list_single(warp->block->group, cell);
    if (!(cell->read & LIST_FLAG) || !merge_reader(access, lane, &reader, cell))
        push_reader(warp->block->group, cell, reader);
}

static uint32_t same_clock(const tk_emu_warp *warp, uint32_t mask) {
    uint32_t clock = warp->clock[__builtin_ctz(mask)], same = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        if (warp->clock[__builtin_ctz(left)] == clock) same |= left & -left;
    return same;
}

/* ---- against those in the list ---- */

static void report_reader(const tk_emu_access *access, int lane, const tk_emu_cell *cell,
                          uint16_t op, uint32_t epoch) {
    const uint8_t *strength = access->warp->block->launch->program->strength;
    if (!cell->write) forget_unset(access->warp->block->group, cell);
    report_race(access, lane, op, epoch,
                strength[op] & TK_EMU_STRONG_WRITE ? "two writes without order"
                                                   : "a read and a write without order");
}

/* Those of the list that are no reads alone (`writers`), or all, must come before the lane. */
static void check_against_list(const tk_emu_access *access, int lane, const tk_emu_cell *cell,
                               bool writers) {
    const tk_emu_warp *warp = access->warp;
    const tk_emu_group *group = warp->block->group;
    const uint8_t *strength = group->launch->program->strength;
    uint32_t id = epoch_id(cell->read);
    if (!cell->read) return;
    if (!(cell->read & LIST_FLAG)) {
        bool counts = !writers || (strength[cell->read_op] & TK_EMU_STRONG_WRITE);
        if (counts && !knows(warp, lane, id, epoch_clock(cell->read)))
            report_reader(access, lane, cell, cell->read_op, cell->read);
        return;
    }
    for (uint32_t at = cell->read & ~LIST_FLAG; at; at = group->readers.items[at].next) {
        const tk_emu_reader *reader = &group->readers.items[at];
        bool counts = !writers || (strength[reader->op] & TK_EMU_STRONG_WRITE);
        if (counts && !knows_reader(warp, lane, reader, &id))
            report_reader(access, lane, cell, reader->op, id << CLOCK_BITS | reader->clock);
    }
}

static bool has_strong(const tk_emu_access *access) {
    return access->warp->block->launch->program->strong;
}

/* ---- noting ---- */

void tk_emu_note_read(const tk_emu_access *access, uint32_t mask) {
    bool strong = has_strong(access);
    for (uint32_t i = 0; i < access->count; i++) {
        tk_emu_cell *cell = &access->cells[i];
        for (uint32_t left = cell->write ? mask : 0; left; left &= left - 1)
            check_against_write(access, __builtin_ctz(left), cell,
                                "a read and a write without order");
        for (uint32_t left = strong ? mask : 0; left; left &= left - 1)
            check_against_list(access, __builtin_ctz(left), cell, true);
        for (uint32_t left = mask, same; left; left &= ~same) {
            same = left & (left - 1) ? same_clock(access->warp, left) : left;
            note_lanes(access, same, cell);
        }
    }
}

static void clear_readers(tk_emu_group *group, tk_emu_cell *cell) {
    if (cell->read & LIST_FLAG) free_readers(group, cell->read & ~LIST_FLAG);
    cell->read = 0;
}

static inline void note_write(const tk_emu_access *access, int lane, tk_emu_cell *cell,
                              uint32_t epoch) {
    if (cell->write) check_against_write(access, lane, cell, "two writes without order");
    if (cell->read) {
        check_against_list(access, lane, cell, false);
        clear_readers(access->warp->block->group, cell);
    }
    *cell = (tk_emu_cell){.write = epoch, .write_op = access->insn->number};
}

void tk_emu_note_write(const tk_emu_access *access, int lane) {
    uint32_t epoch = epoch_of(access->warp, lane);
    for (uint32_t i = 0; i < access->count; i++) note_write(access, lane, &access->cells[i], epoch);
}

/* It joins the list, and marks memory that was unset as written. */
void tk_emu_note_strong(const tk_emu_access *access, int lane) {
    const uint8_t *strength = access->warp->block->launch->program->strength;
    bool writes = (strength[access->insn->number] & TK_EMU_STRONG_WRITE) != 0;
    for (uint32_t i = 0; i < access->count; i++) {
        tk_emu_cell *cell = &access->cells[i];
        check_against_write(access, lane, cell,
                            writes ? "two writes without order"
                                   : "a read and a write without order");
        check_against_list(access, lane, cell, !writes);
        note_lanes(access, 1u << lane, cell);
        if (writes && !cell->write) {
            cell->write = epoch_for(access, lane);
            cell->write_op = access->insn->number;
        }
    }
}

/* ---- agents' accesses ---- */

/* A write that the lane knows was made through the generic proxy: by a thread or its cp.async. */
static void check_proxy(const tk_emu_access *access, int lane, const tk_emu_cell *cell) {
    const tk_emu_group *group = access->warp->block->group;
    uint32_t id = epoch_id(cell->write), clock = epoch_clock(cell->write);
    bool generic =
        id < group->n_lanes || (id < group->n_fixed && id / group->n_lanes == TK_EMU_COPY);
    if (!cell->write || !generic || !knows(access->warp, lane, id, clock) ||
        tk_emu_knows_fenced(access->warp, lane, id, clock))
        return;
    tk_emu_report_pair(access, lane, TK_KF_PROXY_FENCE, cell->write_op, cell->write,
                       "the writer has no proxy fence after it,");
}

static void check_before(const tk_emu_access *access, int lane, const tk_emu_cell *cell,
                         bool write) {
    if (access->by->async_proxy) check_proxy(access, lane, cell);
    if (!write) check_against_write(access, lane, cell, "a read and a write without order");
}

/* The last read of an agent stands for its earlier ones, which are known only together with it. */
static void note_agent(const tk_emu_access *access, int lane, tk_emu_cell *cell) {
    const tk_emu_agent_access *by = access->by;
    bool own = !tk_emu_is_list(cell->read) && epoch_id(cell->read) == by->agent;
    if (cell->read && !(own && alike(access, cell->read_op))) {
        note_lanes(access, 1u << lane, cell);
        return;
    }
    cell->read = epoch_for(access, lane);
    cell->read_op = access->insn->number;
}

/* Cells that one access wrote are checked once. */
void tk_emu_note_agent_read(const tk_emu_access *access, const tk_emu_agent_access *by) {
    tk_emu_access own = *access;
    uint32_t checked = 0;
    bool strong = has_strong(access);
    own.by = by;
    for (uint32_t i = 0; i < own.count; i++) {
        tk_emu_cell *cell = &own.cells[i];
        if (cell->write != checked) check_before(&own, by->lane, cell, false);
        checked = cell->write;
        if (strong) check_against_list(&own, by->lane, cell, true);
        note_agent(&own, by->lane, cell);
    }
}

/* Reductions are ordered accesses to what they update. */
void tk_emu_note_agent_write(const tk_emu_access *access, const tk_emu_agent_access *by) {
    tk_emu_access own = *access;
    uint32_t checked = 0, epoch;
    own.by = by;
    for (uint32_t i = 0; i < own.count; i++) {
        if (own.cells[i].write != checked) check_before(&own, by->lane, &own.cells[i], true);
        checked = own.cells[i].write;
    }
    if (access->warp->block->launch->program->strength[access->insn->number]) {
        tk_emu_note_strong(&own, by->lane);
        return;
    }
    epoch = epoch_for(&own, by->lane);
    for (uint32_t i = 0; i < own.count; i++) note_write(&own, by->lane, &own.cells[i], epoch);
}

/* ---- runs ---- */

void tk_emu_note_write_run(const tk_emu_access *access, int first, int end) {
    tk_emu_cell *cell = access->cells;
    for (int l = first; l < end; l++) {
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

void tk_emu_note_read_run(const tk_emu_access *access, int first, int end) {
    tk_emu_cell *cell = access->cells;
    if (has_strong(access)) {
        tk_emu_access one = *access;
        for (int l = first; l < end; l++, one.cells += one.count) tk_emu_note_read(&one, 1u << l);
        return;
    }
    for (int l = first; l < end; l++) {
        uint32_t epoch = epoch_of(access->warp, l);
        for (uint32_t i = 0; i < access->count; i++) note_read(access, l, cell++, epoch);
    }
}

/* ---- lanes with one cell each ---- */

static uint32_t shift_of(uint32_t unit) { return (uint32_t)__builtin_ctz(unit); }

/* Whether the lane comes after an epoch, as its row says: most are known so. */
static inline bool row_covers(const tk_emu_row *row, uint32_t epoch) {
    uint32_t id = epoch_id(epoch);
    return row && id < row->count && epoch_clock(epoch) <= row->clock[id];
}

void tk_emu_note_read_lanes(const tk_emu_access *access, uint32_t mask, const uint64_t *address,
                            uint32_t unit) {
    tk_emu_warp *warp = access->warp;
    uint32_t shift = shift_of(unit);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_cell *cell = &access->cells[(address[lane] - TK_EMU_SHARED_BASE) >> shift];
        uint32_t epoch = epoch_of(warp, lane);
        bool own = epoch_id(cell->read) == epoch_id(epoch) && !(cell->read & LIST_FLAG);
        if (cell->write && row_covers(warp->row[lane], cell->write) && (!cell->read || own)) {
            cell->read = epoch;
            cell->read_op = access->insn->number;
            continue;
        }
        tk_emu_access one = *access;
        one.cells = cell;
        one.count = 1;
        one.address = address[lane];
        if (!cell->write) tk_emu_note_unset(&one, lane, cell);
        tk_emu_note_read(&one, 1u << lane);
    }
}

void tk_emu_note_write_lanes(const tk_emu_access *access, uint32_t mask, const uint64_t *address,
                             uint32_t unit) {
    tk_emu_access one = *access;
    uint32_t shift = shift_of(unit);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        one.address = address[lane];
        note_write(&one, lane, &access->cells[(address[lane] - TK_EMU_SHARED_BASE) >> shift],
                   epoch_of(access->warp, lane));
    }
}
