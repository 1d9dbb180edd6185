/* Running a group of blocks: strands, and whose turn it is.
 *
 * A turn is a number of instructions of one strand, both drawn from the group's random numbers, so
 * one seed is one interleaving. A strand is cut short where it meets another of its warp: they
 * become one. It is also cut at operations that wait. The group ends when no strand is ready; then
 * either all are done, or those that wait never go on: a barrier that others ended without, or a
 * deadlock. Strands that look for a change in a loop are always ready; when all of them have looked
 * often since anything last happened, that is a deadlock too. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "kernel/emu_group.h"
#include "kernel/emu_mbarrier.h"

/* ---- chance ---- */

uint32_t tk_emu_random(tk_emu_group *group, uint32_t limit) {
    group->random ^= group->random << 13;
    group->random ^= group->random >> 7;
    group->random ^= group->random << 17;
    return (uint32_t)(group->random >> 32) % limit;
}

/* ---- findings ---- */

void tk_emu_report(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, tk_kfinding_kind kind,
                   const char *format, ...) {
    tk_emu_block *block = warp->block;
    char message[200];
    va_list arguments;
    if (tk_emu_find_again(&block->group->findings, kind, insn->op, NULL)) return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    tk_emu_found found = {.kind = kind,
                          .op = insn->op,
                          .message = message,
                          .thread = (int32_t)tk_emu_thread(warp, lane),
                          .count = 1,
                          .other_thread = -1};
    memcpy(found.block, block->index, sizeof found.block);
    tk_emu_find(&block->group->findings, &found);
}

/* ---- strands ---- */

uint32_t tk_emu_true_lanes(const unsigned char *truth, uint32_t mask) {
    uint32_t lanes = 0;
    for (int part = 0; part < 4; part++) {
        uint64_t bytes;
        memcpy(&bytes, truth + 8 * part, 8);
        lanes |= (uint32_t)((bytes * 0x0102040810204080u) >> 56) << 8 * part;
    }
    return lanes & mask;
}

/* Lanes of a LOOP whose index is not below its end. */
static uint32_t finished_lanes(const tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    uint32_t lanes = 0;
    if (insn->wide) {
        const int64_t *index = tk_emu_from(warp, insn, 0), *end = tk_emu_from(warp, insn, 1);
        for (int l = 0; l < TK_EMU_LANES; l++) lanes |= (uint32_t)(index[l] >= end[l]) << l;
    } else {
        const int32_t *index = tk_emu_from(warp, insn, 0), *end = tk_emu_from(warp, insn, 1);
        for (int l = 0; l < TK_EMU_LANES; l++) lanes |= (uint32_t)(index[l] >= end[l]) << l;
    }
    return lanes & mask;
}

static void split(tk_emu_warp *warp, tk_emu_strand *strand, uint32_t leaving, uint32_t target) {
    if (leaving == strand->mask) {
        strand->pc = target;
    } else if (leaving) {
        strand->mask &= ~leaving;
        warp->strands[warp->n_strands++] = (tk_emu_strand){.pc = target, .mask = leaving};
        strand->pc++;
    } else {
        strand->pc++;
    }
}

/* Others of the warp that stand where the strand stands join it. */
static void merge(tk_emu_warp *warp, tk_emu_strand *strand) {
    for (uint32_t i = 0; i < warp->n_strands; i++) {
        tk_emu_strand *other = &warp->strands[i];
        if (other == strand || other->pc != strand->pc || other->state != TK_EMU_READY) continue;
        strand->mask |= other->mask;
        tk_emu_strand *last = &warp->strands[--warp->n_strands];
        *other = *last;
        if (last == strand) strand = other;
        i--;
    }
}

/* The instruction of the nearest other strand ahead: where to stop and merge. */
static uint32_t meeting_point(const tk_emu_warp *warp, const tk_emu_strand *strand) {
    uint32_t nearest = UINT32_MAX;
    for (uint32_t i = 0; i < warp->n_strands; i++) {
        const tk_emu_strand *other = &warp->strands[i];
        if (other != strand && other->state == TK_EMU_READY && other->pc >= strand->pc &&
            other->pc < nearest)
            nearest = other->pc;
    }
    return nearest;
}

static void count(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    tk_emu_counter *counter = &warp->block->counters[insn->number];
    uint32_t lanes = (uint32_t)__builtin_popcount(mask);
    counter->warps++;
    counter->lanes += lanes;
    warp->block->totals.lane_operations += lanes;
    warp->block->totals.flops += (uint64_t)lanes * insn->flops;
}

/* ---- aligned operations ---- */

static uint32_t wanted_lanes(const tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    if (insn->mask == 255) return warp->lanes;
    const uint32_t *wanted = tk_emu_from(warp, insn, insn->mask);
    return wanted[__builtin_ctz(mask)] & warp->lanes;
}

/* Takes in those that gather at the same instruction. The strand may move to another place. */
static tk_emu_strand *absorb(tk_emu_warp *warp, tk_emu_strand *strand) {
    for (uint32_t i = 0; i < warp->n_strands; i++) {
        tk_emu_strand *other = &warp->strands[i];
        if (other == strand || other->pc != strand->pc || other->state != TK_EMU_GATHERING)
            continue;
        tk_emu_strand *last = &warp->strands[--warp->n_strands];
        strand->mask |= other->mask;
        *other = *last;
        if (last == strand) strand = other;
        i--;
    }
    return strand;
}

static bool gather(tk_emu_warp *warp, const tk_emu_insn *insn, tk_emu_strand **at) {
    tk_emu_strand *strand = *at;
    if (strand->mask == warp->lanes) return true;
    strand = *at = absorb(warp, strand);
    bool complete = !(wanted_lanes(warp, insn, strand->mask) & ~strand->mask);
    if (!complete && !strand->forced) strand->state = TK_EMU_GATHERING;
    strand->forced = false;
    return strand->state == TK_EMU_READY;
}

/* ---- one instruction ---- */

static bool step_waiting(tk_emu_warp *warp, const tk_emu_insn *insn, tk_emu_strand *strand) {
    count(warp, insn, strand->mask);
    if (insn->wait(warp, insn, strand)) {
        strand->pc++;
        return true;
    }
    if (strand->state == TK_EMU_READY) strand->state = TK_EMU_WAITING;
    if (!strand->again) strand->pc++;
    return false;
}

static void step_plain(tk_emu_warp *warp, const tk_emu_insn *insn, tk_emu_strand *strand) {
    count(warp, insn, strand->mask);
    insn->body(warp, insn, strand->mask);
    strand->pc++;
}

/* False when the strand's turn ends. */
static bool step(tk_emu_warp *warp, tk_emu_strand **at) {
    const tk_emu_insn *insn = &warp->block->launch->program->code.items[(*at)->pc];
    if (insn->aligned && !gather(warp, insn, at)) return false;
    tk_emu_strand *strand = *at;
    switch (insn->flow) {
    case TK_EMU_PLAIN:
        step_plain(warp, insn, strand);
        return true;
    case TK_EMU_JUMP:
        strand->pc = insn->target;
        return true;
    case TK_EMU_BRANCH:
        split(warp, strand,
              strand->mask & ~tk_emu_true_lanes(tk_emu_from(warp, insn, 0), strand->mask),
              insn->target);
        return warp->n_strands == 1;
    case TK_EMU_LOOP:
        split(warp, strand, finished_lanes(warp, insn, strand->mask), insn->target);
        return warp->n_strands == 1;
    case TK_EMU_WAIT:
        return step_waiting(warp, insn, strand);
    default:
        strand->state = TK_EMU_DONE;
        return false;
    }
}

/* Tens of millions of instructions of each warp without a wait are a loop that never ends. */
static void check_end(tk_emu_warp *warp, const tk_emu_strand *strand, uint32_t steps) {
    enum { MOST_STEPS = 1 << 25 };
    tk_emu_group *group = warp->block->group;
    const tk_emu_insn *insn = &group->launch->program->code.items[strand->pc];
    if (strand->state != TK_EMU_READY) {
        group->steps = 0;
        return;
    }
    group->steps += steps;
    if (group->steps / (group->n_slots * group->launch->n_warps) < MOST_STEPS || !insn->op) return;
    tk_emu_report(warp, insn, __builtin_ctz(strand->mask), TK_KF_DEADLOCK,
                  "a loop around this operation does not end");
    group->stopped = true;
}

static void run_strand(tk_emu_warp *warp, tk_emu_strand *strand, uint32_t budget) {
    const tk_emu_group *group = warp->block->group;
    uint32_t stop = meeting_point(warp, strand), left = budget;
    while (left-- && !group->stopped && group->status == TK_OK)
        if (!step(warp, &strand) || strand->pc == stop) break;
    check_end(warp, strand, budget - left);
}

/* ---- turns ---- */

static uint32_t count_ready(const tk_emu_warp *warp) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < warp->n_strands; i++) ready += warp->strands[i].state == TK_EMU_READY;
    return ready;
}

static tk_emu_strand *nth_ready(tk_emu_warp *warp, uint32_t n) {
    for (uint32_t i = 0;; i++)
        if (warp->strands[i].state == TK_EMU_READY && n-- == 0) return &warp->strands[i];
}

static tk_emu_strand *furthest_behind(tk_emu_warp *warp) {
    tk_emu_strand *behind = NULL;
    for (uint32_t i = 0; i < warp->n_strands; i++) {
        tk_emu_strand *strand = &warp->strands[i];
        if (strand->state == TK_EMU_READY && (!behind || strand->pc < behind->pc)) behind = strand;
    }
    return behind;
}

/* Strands that have ended are strands no more, so those that are left run undisturbed. */
static void drop_ended(tk_emu_warp *warp) {
    for (uint32_t i = 0; i < warp->n_strands; i++) {
        if (warp->strands[i].state != TK_EMU_DONE) continue;
        warp->ended |= warp->strands[i].mask;
        warp->strands[i--] = warp->strands[--warp->n_strands];
    }
}

enum { LEAST_TURN = 16, TURN_SPREAD = 1024, ANY_STRAND_IN = 8 };

/* False when no strand of the warp is ready. */
static bool run_warp(tk_emu_warp *warp) {
    uint32_t ready = count_ready(warp);
    if (!ready) return false;
    tk_emu_strand *strand = furthest_behind(warp);
    if (ready > 1) {
        if (tk_emu_random(warp->block->group, ANY_STRAND_IN) == 0)
            strand = nth_ready(warp, tk_emu_random(warp->block->group, ready));
        uint32_t pc = strand->pc;
        merge(warp, strand);
        for (uint32_t i = 0; i < warp->n_strands; i++)
            if (warp->strands[i].pc == pc && warp->strands[i].state == TK_EMU_READY)
                strand = &warp->strands[i];
    }
    run_strand(warp, strand, LEAST_TURN + tk_emu_random(warp->block->group, TURN_SPREAD));
    drop_ended(warp);
    return true;
}

/* ---- the end ---- */

static const tk_emu_insn *waiting_at(const tk_emu_warp *warp, const tk_emu_strand *strand) {
    return &warp->block->launch->program->code.items[strand->again ? strand->pc : strand->pc - 1];
}

static bool any_done(const tk_emu_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++)
        if (block->warps[w].ended) return true;
    return false;
}

static void report_strand(tk_emu_warp *warp, const tk_emu_strand *strand, bool done) {
    const tk_emu_insn *insn = waiting_at(warp, strand);
    int lane = __builtin_ctz(strand->mask);
    bool missing =
        done && (insn->op->code == TK_KOP_barrier || insn->op->code == TK_KOP_cluster_wait);
    if (insn->op->code == TK_KOP_mbarrier_wait && tk_emu_mbarrier_report(warp, insn, lane)) return;
    tk_emu_report(warp, insn, lane, missing ? TK_KF_MISSING_BARRIER : TK_KF_DEADLOCK,
                  missing ? "threads wait here, but others have ended"
                          : "threads wait here and nothing can wake them");
}

/* Of the block's cluster. */
static bool any_of_cluster_done(tk_emu_block *block) {
    tk_emu_block *first = block - block->rank;
    for (uint32_t i = 0; i < block->launch->cluster; i++)
        if (any_done(&first[i])) return true;
    return false;
}

static void report_waiting(tk_emu_block *block) {
    bool done = any_of_cluster_done(block);
    for (uint32_t w = 0; w < block->n_warps; w++) {
        tk_emu_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->n_strands; i++)
            if (warp->strands[i].state == TK_EMU_WAITING)
                report_strand(warp, &warp->strands[i], done);
    }
}

/* Nobody can go on: the first that gathers goes on with the lanes that are there. */
static bool force(tk_emu_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++)
        for (uint32_t i = 0; i < block->warps[w].n_strands; i++) {
            tk_emu_warp *warp = &block->warps[w];
            tk_emu_strand *strand = &warp->strands[i];
            if (strand->state != TK_EMU_GATHERING) continue;
            const tk_emu_insn *insn = &block->launch->program->code.items[strand->pc];
            uint32_t missing = wanted_lanes(warp, insn, strand->mask) & ~strand->mask;
            tk_emu_report(warp, insn, __builtin_ctz(strand->mask), TK_KF_DIVERGENT,
                          "lanes 0x%x of the warp are here, lanes 0x%x never come", strand->mask,
                          missing);
            strand->state = TK_EMU_READY;
            strand->forced = true;
            return true;
        }
    return false;
}

/* ---- looking for a change ---- */

enum { MANY_POLLS = 2000 };

void tk_emu_poll(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    uint32_t progress = warp->block->group->progress;
    for (uint32_t i = 0; i < warp->n_strands; i++) {
        tk_emu_strand *strand = &warp->strands[i];
        if (!(strand->mask & mask)) continue;
        if (strand->progress != progress) strand->polls = 0;
        strand->progress = progress;
        strand->poll = insn;
        strand->polls++;
    }
}

static bool polls_in_vain(const tk_emu_group *group, const tk_emu_strand *strand) {
    return strand->state != TK_EMU_READY ||
           (strand->progress == group->progress && strand->polls >= MANY_POLLS);
}

static bool all_poll(const tk_emu_group *group) {
    bool any = false;
    for (uint32_t b = 0; b < group->n_slots; b++)
        for (uint32_t w = 0; w < group->blocks[b].n_warps; w++)
            for (uint32_t i = 0; i < group->blocks[b].warps[w].n_strands; i++) {
                const tk_emu_strand *strand = &group->blocks[b].warps[w].strands[i];
                if (!polls_in_vain(group, strand)) return false;
                any |= strand->state == TK_EMU_READY;
            }
    return any;
}

static void report_polls(tk_emu_group *group) {
    for (uint32_t b = 0; b < group->n_slots; b++)
        for (uint32_t w = 0; w < group->blocks[b].n_warps; w++) {
            tk_emu_warp *warp = &group->blocks[b].warps[w];
            for (uint32_t i = 0; i < warp->n_strands; i++) {
                const tk_emu_strand *strand = &warp->strands[i];
                if (strand->state == TK_EMU_READY && strand->poll)
                    tk_emu_report(warp, strand->poll, __builtin_ctz(strand->mask), TK_KF_DEADLOCK,
                                  "threads look here for a change that nothing can bring");
            }
        }
    group->stopped = true;
}

/* ---- the group ---- */

/* Clusters that have ended make room for the next ones; false when none has. */
static bool exchange(tk_emu_group *group) {
    uint32_t size = group->launch->cluster;
    bool any = false;
    for (uint32_t slot = 0; slot < group->n_slots; slot += size) {
        bool over = group->blocks[slot].live;
        for (uint32_t i = slot; i < slot + size && over; i++)
            over = tk_emu_is_over(&group->blocks[i]);
        if (!over) continue;
        tk_emu_end_cluster(group, slot);
        tk_emu_start_cluster(group, slot);
        any = true;
    }
    return any;
}

static bool force_any(tk_emu_group *group) {
    for (uint32_t b = 0; b < group->n_slots; b++)
        if (force(&group->blocks[b])) return true;
    return false;
}

/* In turns that begin at a warp drawn each time, so that none always comes first. */
static bool run_round(tk_emu_group *group) {
    uint32_t of_block = group->launch->n_warps, warps = group->n_slots * of_block;
    uint32_t first = warps > 1 ? tk_emu_random(group, warps) : 0;
    bool moved = false;
    for (uint32_t i = 0; i < warps; i++) {
        uint32_t at = (first + i) % warps;
        tk_emu_block *block = &group->blocks[at / of_block];
        if (block->live) moved |= run_warp(&block->warps[at % of_block]);
    }
    return moved;
}

static void report_blocks(tk_emu_group *group) {
    for (uint32_t b = 0; b < group->n_slots; b++)
        if (group->blocks[b].live) report_waiting(&group->blocks[b]);
}

void tk_emu_run_group(tk_emu_group *group) {
    uint32_t size = group->launch->cluster, rounds = 0;
    bool moved = true, polls = group->launch->program->polls;
    for (uint32_t slot = 0; slot < group->n_slots; slot += size) tk_emu_start_cluster(group, slot);
    while (moved && !group->stopped && group->status == TK_OK) {
        moved = run_round(group);
        if (group->n_slots > size || !moved) moved |= exchange(group);
        if (!moved) moved = force_any(group);
        if (polls && ++rounds % 64 == 0 && all_poll(group)) report_polls(group);
    }
    if (!group->stopped && group->status == TK_OK) report_blocks(group);
    for (uint32_t slot = 0; slot < group->n_slots; slot += size)
        if (group->blocks[slot].live) tk_emu_end_cluster(group, slot);
}
