/* Mbarriers.
 *
 * An mbarrier counts phases: a phase is complete when all arrivals that it expects have come and
 * all bytes too. It is an agent (emu_order.c) whose clock is the number of complete phases, so a
 * lane's row says of how many it knows. From that follows what a parity means: the phase that the
 * lane knows to be complete last, or the next one. And what is a mistake in every interleaving:
 *
 *   a wait for a phase must come before the completion of the phase after it, else the wait may
 * find the parity turned again: each completion checks that it comes after the waits noted for the
 *   phase before;
 *   an arrival must come after the completion of the phase before, else it may be counted there.
 *
 * A lane that waits for a phase that is gone goes on, as it would have in time.
 *
 * Rejected: the hardware's parity alone (a lost phase would hang some interleavings and pass
 * others). */
#include "kernel/emu_mbarrier.h"

#include "base/alloc.h"
#include "kernel/emu_memory.h"

/* Lanes of a warp that waited for a phase. */
typedef struct waited {
    int64_t phase;
    uint32_t first_id, mask, clock;
    const tk_emu_insn *insn;
} waited;

struct tk_emu_mbarrier {
    tk_emu_block *block;
    uint64_t offset;
    bool live;
    uint32_t count, pending; /* arrivals of a phase; those that are still to come */
    int64_t bytes;           /* that are still to come */
    int64_t phase;           /* phases that are complete */
    uint32_t agent;
    uint32_t made_id, made_clock; /* of the initialisation */
    uint32_t fence_clock;         /* of the initialising thread at its mbarrier_fence; 0: none */
    uint32_t announced;           /* its turn at the cluster's barrier after that; 0: none */
    tk_emu_row *joined;           /* what those who arrived in this phase know */
    tk_emu_row *issued;           /* and those who began what it counts */
    tk_emu_row *done[2];          /* `joined` of the last two phases, by parity */
    bool copied[2];               /* whether bytes were counted in them */
    bool copies;                  /* and in this one */
    int64_t last_copy;            /* the phase that last counted bytes, -1: none */
    const tk_emu_insn *copy;
    const tk_emu_insn *arrival; /* the last one */
    TK_VEC(waited) waits;
};

struct tk_emu_mbarriers {
    TK_VEC(tk_emu_mbarrier *) items;
};

enum { BARRIER_BYTES = 8, MOST_COUNT = (1 << 20) - 1 };

/* ---- finding them ---- */

bool tk_emu_mbarrier_overlaps(const tk_emu_block *block, uint64_t offset, uint64_t bytes) {
    for (size_t i = 0; block->mbarriers && i < block->mbarriers->items.count; i++) {
        const tk_emu_mbarrier *barrier = block->mbarriers->items.items[i];
        if (barrier->live && offset < barrier->offset + BARRIER_BYTES &&
            barrier->offset < offset + bytes)
            return true;
    }
    return false;
}

static tk_emu_mbarrier *find(const tk_emu_block *block, uint64_t offset) {
    for (size_t i = 0; block->mbarriers && i < block->mbarriers->items.count; i++) {
        tk_emu_mbarrier *barrier = block->mbarriers->items.items[i];
        if (barrier->live && barrier->offset == offset) return barrier;
    }
    return NULL;
}

static uint64_t address_of(const tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    return ((const uint32_t *)tk_emu_from(warp, insn, 0))[lane];
}

static bool check_place(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address) {
    if (!tk_emu_shared_check(warp, insn, lane, address, BARRIER_BYTES)) return false;
    if (address % BARRIER_BYTES == 0) return true;
    tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED, "address 0x%llx of an mbarrier",
                  (unsigned long long)address);
    return false;
}

static bool is_announced(const tk_emu_warp *warp, int lane, const tk_emu_mbarrier *barrier) {
    return barrier->announced && barrier->announced <= tk_emu_cluster_passed(warp, lane);
}

static bool knows_init(const tk_emu_warp *warp, int lane, const tk_emu_mbarrier *barrier) {
    return tk_emu_knows(warp, lane, barrier->made_id, barrier->made_clock) ||
           is_announced(warp, lane, barrier);
}

/* The mbarrier at an address, whose initialisation comes before; NULL after a finding. */
static tk_emu_mbarrier *use(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                            uint64_t address) {
    if (!check_place(warp, insn, lane, address)) return NULL;
    tk_emu_mbarrier *barrier =
        find(tk_emu_shared_block(warp, address), tk_emu_shared_offset(address));
    if (barrier && knows_init(warp, lane, barrier)) return barrier;
    tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_USE,
                  "no initialisation of the mbarrier at address 0x%llx comes before",
                  (unsigned long long)address);
    return NULL;
}

/* ---- phases ---- */

static void check_waits(const tk_emu_mbarrier *barrier, const waited *wait) {
    tk_emu_group *group = barrier->block->group;
    for (uint32_t left = wait->mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t id = wait->first_id + (uint32_t)lane, warp = id / TK_EMU_LANES;
        if (tk_emu_row_knows(barrier->joined, id, wait->clock) ||
            tk_emu_row_knows(barrier->issued, id, wait->clock))
            continue;
        tk_emu_block *block = &group->blocks[warp / group->launch->n_warps];
        tk_emu_report(&block->warps[warp % group->launch->n_warps], wait->insn, lane,
                      TK_KF_MBARRIER_PHASE,
                      "the phase after the one that is waited for may be complete before the wait");
        return;
    }
}

/* Waits for the phase before the one that is complete now. */
static void judge_waits(tk_emu_mbarrier *barrier) {
    size_t kept = 0;
    for (size_t i = 0; i < barrier->waits.count; i++) {
        waited *wait = &barrier->waits.items[i];
        if (wait->phase < barrier->phase)
            check_waits(barrier, wait);
        else
            barrier->waits.items[kept++] = *wait;
    }
    barrier->waits.count = kept;
}

static void wake(tk_emu_group *group) {
    for (uint32_t b = 0; b < group->n_slots; b++)
        for (uint32_t w = 0; w < group->blocks[b].n_warps; w++) {
            tk_emu_warp *warp = &group->blocks[b].warps[w];
            for (uint32_t i = 0; i < warp->n_strands; i++) {
                tk_emu_strand *strand = &warp->strands[i];
                const tk_emu_insn *insn = &group->launch->program->code.items[strand->pc];
                if (strand->state == TK_EMU_WAITING && strand->again &&
                    insn->op->code == TK_KOP_mbarrier_wait)
                    strand->state = TK_EMU_READY;
            }
        }
}

static void complete(tk_emu_mbarrier *barrier) {
    tk_emu_group *group = barrier->block->group;
    int parity = (int)(barrier->phase & 1);
    judge_waits(barrier);
    barrier->phase++;
    tk_emu_join_id(group, &barrier->joined, barrier->agent, (uint32_t)barrier->phase);
    tk_emu_row_drop(barrier->done[parity]);
    tk_emu_row_drop(barrier->issued);
    barrier->done[parity] = barrier->joined;
    barrier->copied[parity] = barrier->copies;
    barrier->joined = barrier->issued = NULL;
    barrier->copies = false;
    barrier->pending = barrier->count;
    group->progress++;
    wake(group);
}

static void look(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, tk_emu_mbarrier *barrier) {
    if (barrier->pending) return;
    if (barrier->bytes < 0) {
        tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_COUNT,
                      "%lld bytes more than the phase expects", -(long long)barrier->bytes);
        barrier->bytes = 0;
    }
    if (barrier->bytes == 0) complete(barrier);
}

/* Whether a lane comes after the completion of the phase before: it knows it, or it is after all
 * arrivals that made it. */
static void check_turn(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                       const tk_emu_mbarrier *barrier) {
    int parity = (int)((barrier->phase + 1) & 1);
    if ((int64_t)tk_emu_known_clock(warp, lane, barrier->agent) >= barrier->phase) return;
    if (!barrier->copied[parity] &&
        tk_emu_covers(warp, lane, barrier->done[parity], barrier->agent))
        return;
    tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_COUNT,
                  "it may be counted in a phase before: nothing orders it after that phase");
}

/* ---- making and ending ---- */

static void note_memory(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t address) {
    tk_emu_block *block = tk_emu_shared_block(warp, address);
    uint32_t unit = block->launch->program->shared_unit;
    tk_emu_access access = {.warp = warp,
                            .insn = insn,
                            .cells = block->shared_cells + tk_emu_shared_offset(address) / unit,
                            .count = unit < BARRIER_BYTES ? BARRIER_BYTES / unit : 1,
                            .race = TK_KF_RACE_SHARED,
                            .where = "shared memory",
                            .address = address};
    tk_emu_note_write(&access, lane);
}

/* A place that is used again keeps its record but gets a new agent. */
static tk_emu_mbarrier *new_barrier(tk_emu_block *block, uint64_t offset) {
    if (!block->mbarriers) block->mbarriers = tk_calloc(1, sizeof *block->mbarriers);
    tk_emu_mbarrier *barrier = block->mbarriers ? tk_calloc(1, sizeof *barrier) : NULL;
    if (!barrier || !tk_vec_push(&block->mbarriers->items, barrier)) {
        tk_free(barrier);
        block->group->status = TK_OUT_OF_MEMORY;
        return NULL;
    }
    *barrier = (tk_emu_mbarrier){.block = block, .offset = offset, .live = true, .last_copy = -1};
    barrier->agent = tk_emu_new_agent(block->group);
    block->group->mbarriers++;
    return barrier;
}

static void init_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    uint64_t address = address_of(warp, insn, lane);
    int32_t count = ((const int32_t *)tk_emu_from(warp, insn, 1))[lane];
    if (!check_place(warp, insn, lane, address)) return;
    tk_emu_block *block = tk_emu_shared_block(warp, address);
    if (count < 1 || count > MOST_COUNT)
        tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_COUNT,
                      "%d arrivals a phase, expected 1 to %d", (int)count, (int)MOST_COUNT);
    if (tk_emu_mbarrier_overlaps(block, tk_emu_shared_offset(address), BARRIER_BYTES)) {
        tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_USE,
                      "address 0x%llx is in an mbarrier already", (unsigned long long)address);
        return;
    }
    note_memory(warp, insn, lane, address);
    tk_emu_mbarrier *barrier = new_barrier(block, tk_emu_shared_offset(address));
    if (!barrier) return;
    barrier->count = barrier->pending = count < 1 ? 1 : (uint32_t)count;
    barrier->made_id = warp->first_id + (uint32_t)lane;
    barrier->made_clock = warp->clock[lane];
}

static void init_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) init_lane(warp, insn, __builtin_ctz(left));
}

static void end_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_mbarrier *barrier = use(warp, insn, lane, address_of(warp, insn, lane));
        if (!barrier) continue;
        barrier->live = false;
        warp->block->group->mbarriers--;
        note_memory(warp, insn, lane, address_of(warp, insn, lane));
    }
}

/* Makes the lane's initialisations so far visible. */
static void fence_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    const tk_emu_block *block = warp->block;
    (void)insn;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        for (size_t i = 0; block->mbarriers && i < block->mbarriers->items.count; i++) {
            tk_emu_mbarrier *barrier = block->mbarriers->items.items[i];
            if (barrier->made_id == warp->first_id + (uint32_t)lane && !barrier->fence_clock)
                barrier->fence_clock = warp->clock[lane];
        }
        tk_emu_tick(warp, lane);
    }
}

void tk_emu_mbarriers_announce(const tk_emu_warp *warp, uint32_t mask, uint32_t turn) {
    const tk_emu_block *block = warp->block;
    for (size_t i = 0; block->mbarriers && i < block->mbarriers->items.count; i++) {
        tk_emu_mbarrier *barrier = block->mbarriers->items.items[i];
        uint32_t lane = barrier->made_id - warp->first_id;
        if (lane < TK_EMU_LANES && mask >> lane & 1 && barrier->fence_clock && !barrier->announced)
            barrier->announced = turn;
    }
}

/* ---- arriving ---- */

/* Lanes at the same address as the first. */
static uint32_t same_place(const tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    const uint32_t *address = tk_emu_from(warp, insn, 0);
    uint32_t first = address[__builtin_ctz(mask)], same = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        if (address[__builtin_ctz(left)] == first) same |= left & -left;
    return same;
}

/* One arrival after the other, since a phase may end between two. */
static void arrive(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, tk_emu_mbarrier *barrier,
                   int64_t count) {
    check_turn(warp, insn, lane, barrier);
    if (count < 1 || count > (int64_t)barrier->pending) {
        tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_COUNT,
                      "%lld arrivals, when the phase expects %u more", (long long)count,
                      barrier->pending);
        count = barrier->pending;
    }
    barrier->pending -= (uint32_t)count;
    barrier->arrival = insn;
}

static uint32_t lanes_with(const tk_emu_warp *warp, const tk_emu_insn *insn, int operand,
                           uint32_t mask) {
    return tk_emu_given(insn, operand) ? tk_emu_true_lanes(tk_emu_from(warp, insn, operand), mask)
                                       : mask;
}

static int64_t operand_or(const tk_emu_warp *warp, const tk_emu_insn *insn, int operand, int lane,
                          int64_t otherwise) {
    return tk_emu_given(insn, operand) ? ((const int32_t *)tk_emu_from(warp, insn, operand))[lane]
                                       : otherwise;
}

/* Lanes of one mbarrier: as many release together as this phase takes in. */
static void arrive_at(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, bool expects) {
    while (mask) {
        int first = __builtin_ctz(mask);
        tk_emu_mbarrier *barrier = use(warp, insn, first, address_of(warp, insn, first));
        if (!barrier) return;
        uint32_t together = 0;
        do {
            int lane = __builtin_ctz(mask);
            if (!knows_init(warp, lane, barrier))
                use(warp, insn, lane, address_of(warp, insn, lane));
            if (expects) barrier->bytes += operand_or(warp, insn, 1, lane, 0);
            arrive(warp, insn, lane, barrier, expects ? 1 : operand_or(warp, insn, 1, lane, 1));
            together |= 1u << lane;
            mask &= mask - 1;
        } while (mask && barrier->pending);
        tk_emu_release(warp, together, &barrier->joined);
        look(warp, insn, first, barrier);
    }
}

static void arrive_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, bool expects) {
    enum { CONDITION = 2 };
    uint32_t left = lanes_with(warp, insn, CONDITION, mask);
    while (left) {
        uint32_t same = same_place(warp, insn, left);
        arrive_at(warp, insn, same, expects);
        left &= ~same;
    }
    tk_emu_progress(warp);
}

static void arrive_now(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    arrive_lanes(warp, insn, mask, false);
}
static void arrive_expecting(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    arrive_lanes(warp, insn, mask, true);
}

static void expect_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        tk_emu_mbarrier *barrier = use(warp, insn, lane, address_of(warp, insn, lane));
        if (!barrier) continue;
        check_turn(warp, insn, lane, barrier);
        barrier->bytes += operand_or(warp, insn, 1, lane, 0);
    }
}

void tk_emu_mbarrier_arrive_copy(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                                 uint64_t address, uint32_t agent, uint32_t clock, bool counts) {
    tk_emu_mbarrier *barrier = use(warp, insn, lane, address);
    if (!barrier) return;
    if (counts)
        arrive(warp, insn, lane, barrier, 1);
    else
        check_turn(warp, insn, lane, barrier);
    tk_emu_join_id(warp->block->group, &barrier->joined, agent, clock);
    tk_emu_put(warp, lane, warp->row[lane], warp->clock[lane], &barrier->issued);
    look(warp, insn, lane, barrier);
    tk_emu_progress(warp);
}

/* ---- what is asynchronous ---- */

tk_emu_mbarrier *tk_emu_mbarrier_issue(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                                       uint64_t address, tk_emu_agent_access *out) {
    tk_emu_mbarrier *barrier = use(warp, insn, lane, address);
    if (!barrier) return NULL;
    bool fenced =
        is_announced(warp, lane, barrier) ||
        (barrier->fence_clock && tk_emu_knows(warp, lane, barrier->made_id, barrier->fence_clock) &&
         barrier->made_clock <= barrier->fence_clock) ||
        tk_emu_knows_fenced(warp, lane, barrier->made_id, barrier->made_clock);
    if (!fenced)
        tk_emu_report(warp, insn, lane, TK_KF_PROXY_FENCE,
                      "the mbarrier's initialisation has no mbarrier_fence or proxy fence after "
                      "it");
    check_turn(warp, insn, lane, barrier);
    *out = (tk_emu_agent_access){.agent = barrier->agent,
                                 .clock = (uint32_t)barrier->phase + 1,
                                 .lane = lane,
                                 .async_proxy = true};
    tk_emu_begin_in(warp, lane, out->agent, out->clock);
    tk_emu_put(warp, lane, warp->row[lane], warp->clock[lane], &barrier->issued);
    barrier->copies = true;
    barrier->last_copy = barrier->phase;
    barrier->copy = insn;
    return barrier;
}

void tk_emu_mbarrier_complete(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                              tk_emu_mbarrier *barrier, uint32_t bytes) {
    barrier->bytes -= bytes;
    look(warp, insn, lane, barrier);
    tk_emu_progress(warp);
}

/* ---- waiting ---- */

static void note_wait(tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                      tk_emu_mbarrier *barrier, int64_t phase) {
    for (size_t i = 0; i < barrier->waits.count; i++) {
        waited *wait = &barrier->waits.items[i];
        if (wait->first_id != warp->first_id || wait->phase != phase || wait->insn != insn ||
            wait->clock != warp->clock[lane])
            continue;
        wait->mask |= 1u << lane;
        return;
    }
    waited wait = {.phase = phase,
                   .first_id = warp->first_id,
                   .mask = 1u << lane,
                   .clock = warp->clock[lane],
                   .insn = insn};
    if (!tk_vec_push(&barrier->waits, wait)) warp->block->group->status = TK_OUT_OF_MEMORY;
}

/* The phase that a parity means to a lane. */
static int64_t meant_phase(const tk_emu_warp *warp, int lane, const tk_emu_mbarrier *barrier,
                           int64_t parity) {
    int64_t known = tk_emu_known_clock(warp, lane, barrier->agent);
    return (known & 1) == (parity & 1) ? known : known - 1;
}

/* Lanes of one mbarrier and phase learn of it together. */
typedef struct passing {
    tk_emu_mbarrier *barrier;
    int64_t phase;
    uint32_t lanes;
} passing;

static void learn(tk_emu_warp *warp, passing *pass) {
    const tk_emu_mbarrier *barrier = pass->barrier;
    if (!pass->lanes || pass->phase < 0) return;
    if (barrier->phase <= pass->phase + 2)
        tk_emu_acquire(warp, pass->lanes, barrier->done[pass->phase & 1]);
    else
        tk_emu_acquire_agent(warp, pass->lanes, barrier->agent, (uint32_t)pass->phase + 1);
    pass->lanes = 0;
}

/* Whether the lane may go on. */
static bool pass_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, passing *pass) {
    tk_emu_mbarrier *barrier = use(warp, insn, lane, address_of(warp, insn, lane));
    if (!barrier) return true;
    int64_t parity = ((const int32_t *)tk_emu_from(warp, insn, 1))[lane];
    int64_t phase = meant_phase(warp, lane, barrier, parity);
    if (barrier->phase <= phase) return false;
    if (barrier->phase > phase + 1)
        tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_PHASE,
                      "phase %lld is waited for, and phase %lld is complete", (long long)phase,
                      (long long)barrier->phase - 1);
    else
        note_wait(warp, insn, lane, barrier, phase);
    if (phase < (int64_t)tk_emu_known_clock(warp, lane, barrier->agent)) return true;
    if (pass->barrier != barrier || pass->phase != phase) learn(warp, pass);
    pass->barrier = barrier;
    pass->phase = phase;
    pass->lanes |= 1u << lane;
    return true;
}

static uint32_t pass_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    passing pass = {0};
    uint32_t passed = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        if (pass_lane(warp, insn, __builtin_ctz(left), &pass)) passed |= left & -left;
    learn(warp, &pass);
    return passed;
}

/* Lanes that may go on leave the strand. */
static bool wait_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, tk_emu_strand *strand) {
    uint32_t passed = pass_lanes(warp, insn, strand->mask);
    strand->again = passed != strand->mask;
    if (!strand->again) return true;
    if (passed) {
        strand->mask &= ~passed;
        warp->strands[warp->n_strands++] = (tk_emu_strand){.pc = strand->pc + 1, .mask = passed};
    }
    return false;
}

static void test_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    uint8_t *to = tk_emu_to(warp, insn);
    uint32_t passed = pass_lanes(warp, insn, mask);
    TK_EMU_EACH(mask, to[l] = passed >> l & 1);
    if (passed != mask) tk_emu_poll(warp, insn, mask & ~passed);
}

bool tk_emu_mbarrier_report(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    uint64_t address = address_of(warp, insn, lane);
    const tk_emu_mbarrier *barrier =
        find(tk_emu_shared_block(warp, address), tk_emu_shared_offset(address));
    if (!barrier || barrier->pending == barrier->count) return false;
    if (barrier->pending)
        tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_COUNT, "%u of %u arrivals never come",
                      barrier->pending, barrier->count);
    else
        tk_emu_report(warp, insn, lane, TK_KF_MBARRIER_COUNT, "%lld expected bytes never come",
                      (long long)barrier->bytes);
    return true;
}

/* ---- the end of a block ---- */

/* Arrivals of other blocks in a phase that this block did not wait for. */
static bool others_arrive(const tk_emu_mbarrier *barrier, const tk_emu_row *known) {
    const tk_emu_group *group = barrier->block->group;
    uint32_t of_block = group->launch->n_warps * TK_EMU_LANES;
    for (uint32_t id = 0; barrier->joined && id < group->n_lanes; id++)
        if (id / of_block != barrier->block->slot &&
            !tk_emu_row_knows(known, id, barrier->joined->clock[id]))
            return true;
    return false;
}

void tk_emu_mbarriers_end(tk_emu_block *block, const tk_emu_row *known) {
    for (size_t i = 0; block->mbarriers && i < block->mbarriers->items.count; i++) {
        const tk_emu_mbarrier *barrier = block->mbarriers->items.items[i];
        if (barrier->last_copy >= 0 &&
            !tk_emu_row_knows(known, barrier->agent, (uint32_t)barrier->last_copy + 1))
            tk_emu_report(&block->warps[0], barrier->copy, 0, TK_KF_UNFINISHED,
                          "the block ends, and nothing has waited for this copy");
        else if (barrier->live && others_arrive(barrier, known))
            tk_emu_report(&block->warps[0], barrier->arrival, 0, TK_KF_UNFINISHED,
                          "the block ends, and another block arrives at its mbarrier");
        block->group->mbarriers -= barrier->live;
    }
}

void tk_emu_mbarriers_release(struct tk_emu_mbarriers *barriers) {
    for (size_t i = 0; barriers && i < barriers->items.count; i++) {
        tk_emu_mbarrier *barrier = barriers->items.items[i];
        tk_emu_row_drop(barrier->joined);
        tk_emu_row_drop(barrier->issued);
        tk_emu_row_drop(barrier->done[0]);
        tk_emu_row_drop(barrier->done[1]);
        tk_vec_deinit(&barrier->waits);
        tk_free(barrier);
    }
    if (barriers) tk_vec_deinit(&barriers->items);
    tk_free(barriers);
}

/* ---- the table ---- */

#define PICK(name, function)                                                                       \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = function};                                                    \
    }
PICK(mbarrier_init, init_lanes)
PICK(mbarrier_end, end_lanes)
PICK(mbarrier_fence, fence_lanes)
PICK(mbarrier_arrive, arrive_now)
PICK(mbarrier_expect, arrive_expecting)
PICK(mbarrier_expect_only, expect_lanes)
PICK(mbarrier_test, test_lanes)

tk_emu_pick tk_emu_pick_mbarrier_wait(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.wait = wait_lanes};
}
