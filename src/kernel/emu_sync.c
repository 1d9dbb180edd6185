/* Barriers of a block and of a warp.
 *
 * A barrier is met when as many lanes have arrived as it expects; then all that wait go on, knowing
 * what all who arrived did before. An aligned barrier that only some lanes of a warp reach together
 * is a finding; it then counts the lanes that came, as the hardware's unaligned form does. */
#include "kernel/emu.h"

static uint32_t expected_of(const tk_emu_warp *warp, const tk_emu_insn *insn) {
    int64_t threads = tk_kop_attr(insn->op, TK_KA_threads);
    return threads ? (uint32_t)threads : warp->block->launch->n_threads;
}

static bool stands_at(const tk_emu_block *block, const tk_emu_strand *strand, int64_t id) {
    if (strand->state != TK_EMU_WAITING || strand->again) return false;
    const tk_kop *op = block->launch->program->code.items[strand->pc - 1].op;
    return op && op->code == TK_KOP_barrier && tk_kop_attr(op, TK_KA_id) == id;
}

/* Those that wait go on; the one that came last is not among them. */
static void open_barrier(tk_emu_block *block, int64_t id) {
    tk_emu_barrier *barrier = &block->barriers[id];
    for (uint32_t w = 0; w < block->n_warps; w++)
        for (uint32_t i = 0; i < block->warps[w].n_strands; i++) {
            tk_emu_strand *strand = &block->warps[w].strands[i];
            if (!stands_at(block, strand, id)) continue;
            strand->state = TK_EMU_READY;
            tk_emu_acquire(&block->warps[w], strand->mask, barrier->joined);
        }
    tk_emu_row_drop(barrier->last);
    *barrier = (tk_emu_barrier){.last = barrier->joined, .last_expected = barrier->expected};
}

/* Whether a lane comes after all who met here before. */
static bool knows_last(const tk_emu_warp *warp, int lane, const tk_emu_barrier *barrier) {
    return tk_emu_covers(warp, lane, barrier->last, TK_EMU_NONE);
}

/* Two uses of a barrier that nothing orders: which of them counts an arrival is chance. */
static bool is_mixed(const tk_emu_warp *warp, int lane, const tk_emu_barrier *barrier,
                     uint32_t expected) {
    if (barrier->arrived && barrier->expected != expected) return true;
    return barrier->last && !knows_last(warp, lane, barrier);
}

static void check_arrival(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                          tk_emu_barrier *barrier) {
    uint32_t expected = expected_of(warp, insn);
    int lane = __builtin_ctz(mask);
    if (is_mixed(warp, lane, barrier, expected))
        tk_emu_report(warp, insn, lane, TK_KF_BARRIER_COUNT,
                      "the barrier is used for %u threads and, without order, for %u", expected,
                      barrier->arrived ? barrier->expected : barrier->last_expected);
    if (!barrier->arrived) barrier->expected = expected;
}

/* Whether the barrier is now met. */
static bool arrive(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, int64_t id) {
    tk_emu_barrier *barrier = &warp->block->barriers[id];
    check_arrival(warp, insn, mask, barrier);
    barrier->arrived += (uint32_t)__builtin_popcount(mask);
    tk_emu_release(warp, mask, &barrier->joined);
    if (barrier->arrived > barrier->expected)
        tk_emu_report(warp, insn, __builtin_ctz(mask), TK_KF_BARRIER_COUNT,
                      "%u threads at a barrier for %u", barrier->arrived, barrier->expected);
    return barrier->arrived >= barrier->expected;
}

static bool wait_barrier(tk_emu_warp *warp, const tk_emu_insn *insn, tk_emu_strand *strand) {
    int64_t id = tk_kop_attr(insn->op, TK_KA_id);
    if (!arrive(warp, insn, strand->mask, id)) return false;
    tk_emu_acquire(warp, strand->mask, warp->block->barriers[id].joined);
    open_barrier(warp->block, id);
    return true;
}

tk_emu_pick tk_emu_pick_barrier(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.wait = wait_barrier};
}

static void arrive_barrier(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    int64_t id = tk_kop_attr(insn->op, TK_KA_id);
    if (arrive(warp, insn, mask, id)) open_barrier(warp->block, id);
}

tk_emu_pick tk_emu_pick_barrier_arrive(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = arrive_barrier};
}

/* ---- lanes of a warp ---- */

static uint32_t wanted_lanes(const tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    if (!tk_emu_given(insn, 0)) return warp->lanes;
    return ((const uint32_t *)tk_emu_from(warp, insn, 0))[lane] & warp->lanes;
}

/* Lanes that stand here already, those of the strand included. */
static uint32_t lanes_here(const tk_emu_warp *warp, const tk_emu_strand *strand) {
    uint32_t lanes = strand->mask;
    for (uint32_t i = 0; i < warp->n_strands; i++) {
        const tk_emu_strand *other = &warp->strands[i];
        if (other->state == TK_EMU_WAITING && other->again && other->pc == strand->pc)
            lanes |= other->mask;
    }
    return lanes;
}

static void wake_here(tk_emu_warp *warp, const tk_emu_strand *strand, const tk_emu_row *row) {
    for (uint32_t i = 0; i < warp->n_strands; i++) {
        tk_emu_strand *other = &warp->strands[i];
        if (other == strand || other->state != TK_EMU_WAITING || !other->again ||
            other->pc != strand->pc)
            continue;
        tk_emu_acquire(warp, other->mask, row);
        other->state = TK_EMU_READY;
        other->again = false;
        other->pc++;
    }
}

static bool wait_warp(tk_emu_warp *warp, const tk_emu_insn *insn, tk_emu_strand *strand) {
    int lane = __builtin_ctz(strand->mask);
    uint32_t wanted = wanted_lanes(warp, insn, lane);
    tk_emu_row *row = NULL;
    if (strand->mask & ~wanted)
        tk_emu_report(warp, insn, lane, TK_KF_BAD_LANE, "a lane that is not in the mask 0x%x",
                      wanted);
    uint32_t here = lanes_here(warp, strand);
    strand->again = (wanted & ~here) != 0;
    if (strand->again) return false;
    tk_emu_release(warp, here, &row);
    tk_emu_acquire(warp, strand->mask, row);
    wake_here(warp, strand, row);
    tk_emu_row_drop(row);
    return true;
}

tk_emu_pick tk_emu_pick_warp_barrier(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.wait = wait_warp};
}

/* ---- what orders nothing here ---- */

static void do_nothing(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    (void)warp, (void)insn, (void)mask;
}

/* Sleeping, registers that move between warpgroups, grids that depend on each other: one grid runs,
 * with registers for all. */
tk_emu_pick tk_emu_pick_nothing(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = do_nothing};
}

/* Between generic accesses and those of the async proxy; other proxies are not judged. */
static void fence_proxy(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    (void)insn;
    tk_emu_fence_proxy(warp, mask);
}

tk_emu_pick tk_emu_pick_proxy_fence(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = fence_proxy};
}
