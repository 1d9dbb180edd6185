/* Running a block: strands, and whose turn it is.
 *
 * A turn is a number of instructions of one strand, both drawn from the block's random numbers, so
 * one seed is one interleaving. A strand is cut short where it meets another of its warp: they
 * become one. It is also cut at operations that wait. The block ends when no strand is ready; then
 * either all are done, or those that wait never go on: a barrier that others ended without, or a
 * deadlock. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "kernel/emu.h"

/* ---- chance ---- */

uint32_t tk_emu_random(tk_emu_block *block, uint32_t limit) {
    block->random ^= block->random << 13;
    block->random ^= block->random >> 7;
    block->random ^= block->random << 17;
    return (uint32_t)(block->random >> 32) % limit;
}

/* ---- findings ---- */

void tk_emu_report(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, tk_kfinding_kind kind,
                   const char *format, ...) {
    tk_emu_block *block = warp->block;
    char message[200];
    va_list arguments;
    if (tk_emu_find_again(&block->findings, kind, insn->op, NULL)) return;
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
    tk_emu_find(&block->findings, &found);
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

static void run_strand(tk_emu_warp *warp, tk_emu_strand *strand, uint32_t budget) {
    tk_emu_block *block = warp->block;
    uint32_t stop = meeting_point(warp, strand);
    while (budget-- && !block->stopped && block->status == TK_OK) {
        if (!step(warp, &strand)) return;
        if (strand->pc == stop) return;
    }
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

enum { LEAST_TURN = 16, TURN_SPREAD = 1024, ANY_STRAND_IN = 8 };

/* False when no strand of the warp is ready. */
static bool run_warp(tk_emu_warp *warp) {
    uint32_t ready = count_ready(warp);
    if (!ready) return false;
    tk_emu_strand *strand = furthest_behind(warp);
    if (ready > 1) {
        if (tk_emu_random(warp->block, ANY_STRAND_IN) == 0)
            strand = nth_ready(warp, tk_emu_random(warp->block, ready));
        uint32_t pc = strand->pc;
        merge(warp, strand);
        for (uint32_t i = 0; i < warp->n_strands; i++)
            if (warp->strands[i].pc == pc && warp->strands[i].state == TK_EMU_READY)
                strand = &warp->strands[i];
    }
    run_strand(warp, strand, LEAST_TURN + tk_emu_random(warp->block, TURN_SPREAD));
    return true;
}

/* ---- the end ---- */

static const tk_emu_insn *waiting_at(const tk_emu_warp *warp, const tk_emu_strand *strand) {
    return &warp->block->launch->program->code.items[strand->again ? strand->pc : strand->pc - 1];
}

static bool any_done(const tk_emu_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++)
        for (uint32_t i = 0; i < block->warps[w].n_strands; i++)
            if (block->warps[w].strands[i].state == TK_EMU_DONE) return true;
    return false;
}

static bool all_done(const tk_emu_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++)
        for (uint32_t i = 0; i < block->warps[w].n_strands; i++)
            if (block->warps[w].strands[i].state != TK_EMU_DONE) return false;
    return true;
}

static void report_waiting(tk_emu_block *block) {
    bool done = any_done(block);
    for (uint32_t w = 0; w < block->n_warps; w++) {
        tk_emu_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->n_strands; i++) {
            const tk_emu_strand *strand = &warp->strands[i];
            if (strand->state != TK_EMU_WAITING) continue;
            const tk_emu_insn *insn = waiting_at(warp, strand);
            bool missing = done && insn->op->code == TK_KOP_barrier;
            tk_emu_report(warp, insn, __builtin_ctz(strand->mask),
                          missing ? TK_KF_MISSING_BARRIER : TK_KF_DEADLOCK,
                          missing ? "threads wait here, but others have ended"
                                  : "threads wait here and nothing can wake them");
        }
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

/* In turns that begin at a warp drawn each time, so that none always comes first. */
void tk_emu_run_block(tk_emu_block *block) {
    bool moved = true;
    while (moved && !block->stopped && block->status == TK_OK) {
        uint32_t first = block->n_warps > 1 ? tk_emu_random(block, block->n_warps) : 0;
        moved = false;
        for (uint32_t i = 0; i < block->n_warps; i++)
            moved |= run_warp(&block->warps[(first + i) % block->n_warps]);
        if (!moved) moved = force(block);
    }
    tk_emu_report_unset(block);
    if (block->stopped || block->status != TK_OK) return;
    report_waiting(block);
    if (all_done(block)) tk_emu_end_wgmma(block);
}
