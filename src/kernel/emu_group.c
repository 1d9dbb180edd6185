/* Groups of blocks: what they share, and how blocks start and end in their slots.
 *
 * A group holds as many blocks as may synchronise with each other and live at once. When all blocks
 * of a cluster have ended, the next cluster starts in their slots; a thread of it goes on with the
 * clock of the one that was there, so epochs stay different. */
#include "kernel/emu_group.h"

#include "base/alloc.h"
#include "kernel/emu_async.h"
#include "kernel/emu_atomic.h"
#include "kernel/emu_mbarrier.h"

void tk_emu_block_index(const tk_emu_launch *launch, int64_t number, int64_t *out) {
    const int64_t *grid = launch->shape.grid, *cluster = launch->shape.cluster;
    int64_t rank = number % launch->cluster, place = number / launch->cluster;
    for (int i = 0; i < 3; i++) {
        int64_t clusters = grid[i] / cluster[i];
        out[i] = place % clusters * cluster[i] + rank % cluster[i];
        place /= clusters;
        rank /= cluster[i];
    }
}

/* ---- warps ---- */

static size_t register_bytes(const tk_emu_program *program) { return program->register_bytes + 64; }

static void release_warp(tk_emu_warp *warp) {
    tk_emu_launch *launch = warp->block->launch;
    for (int l = 0; l < TK_EMU_LANES; l++) tk_emu_row_drop(warp->row[l]);
    tk_emu_fences_release(warp->fences);
    tk_free(warp->own);
    tk_emu_give(launch->pool, warp->registers, register_bytes(launch->program));
}

static uint32_t lanes_of(uint32_t threads) {
    return threads >= TK_EMU_LANES ? TK_EMU_ALL : (1u << threads) - 1;
}

/* Clocks of lanes and of their asynchronous work go on where those of the warp before it ended. */
static void take_clocks(const tk_emu_block *block, tk_emu_warp *warp, const uint32_t *last) {
    const tk_emu_group *group = block->group;
    for (int l = 0; l < TK_EMU_LANES; l++) {
        uint32_t id = warp->first_id + (uint32_t)l;
        warp->clock[l] = warp->born[l] = last[id] + 1;
        for (uint32_t kind = 1; kind < group->launch->program->n_kinds; kind++) {
            warp->own->known[kind][l] = last[kind * group->n_lanes + id];
            warp->own->clock[kind][l] = warp->own->known[kind][l] + 1;
        }
    }
}

static bool start_warp(tk_emu_block *block, uint32_t number) {
    const tk_emu_launch *launch = block->launch;
    const tk_emu_program *program = launch->program;
    tk_emu_warp *warp = &block->warps[number];
    *warp = (tk_emu_warp){.block = block,
                          .number = number,
                          .first_id = (block->slot * launch->n_warps + number) * TK_EMU_LANES,
                          .lanes = lanes_of(launch->n_threads - number * TK_EMU_LANES),
                          .n_strands = 1};
    warp->strands[0].mask = warp->lanes;
    warp->registers = tk_emu_take(launch->pool, register_bytes(program), false);
    if (program->n_kinds > 1) warp->own = tk_calloc(1, sizeof *warp->own);
    if (program->strong) warp->fences = tk_calloc(1, sizeof *warp->fences);
    if (!warp->registers || (program->n_kinds > 1 && !warp->own) ||
        (program->strong && !warp->fences))
        return false;
    memcpy(warp->registers, launch->image, program->given_bytes);
    memset(warp->registers + program->given_bytes, 0,
           program->register_bytes - program->given_bytes);
    take_clocks(block, warp, block->group->last_clock);
    return true;
}

/* ---- blocks ---- */

static size_t shared_bytes(const tk_emu_launch *launch) {
    return (size_t)launch->shared_bytes + 16;
}
static size_t cell_bytes(const tk_emu_launch *launch) {
    return ((size_t)launch->shared_bytes / launch->program->shared_unit + 1) * sizeof(tk_emu_cell);
}
static size_t warp_bytes(const tk_emu_launch *launch) {
    return launch->n_warps * sizeof(tk_emu_warp);
}
static size_t counter_bytes(const tk_emu_launch *launch) {
    return (launch->program->ops.count + 1) * sizeof(tk_emu_counter);
}

static bool start_block(tk_emu_group *group, uint32_t slot, int64_t number) {
    tk_emu_launch *launch = group->launch;
    tk_emu_block *block = &group->blocks[slot];
    *block = (tk_emu_block){.launch = launch,
                            .group = group,
                            .slot = slot,
                            .rank = (uint32_t)(number % launch->cluster),
                            .live = true,
                            .number = number,
                            .n_warps = launch->n_warps,
                            .shared_bytes = launch->shared_bytes};
    tk_emu_block_index(launch, number, block->index);
    block->warps = tk_emu_take(launch->pool, warp_bytes(launch), true);
    block->shared = tk_emu_take(launch->pool, shared_bytes(launch), true);
    block->shared_cells = tk_emu_take(launch->pool, cell_bytes(launch), true);
    block->counters = tk_emu_take(launch->pool, counter_bytes(launch), true);
    if (!block->warps || !block->shared || !block->shared_cells || !block->counters) return false;
    for (uint32_t w = 0; w < block->n_warps; w++)
        if (!start_warp(block, w)) return false;
    return true;
}

static void add_counts(tk_emu_group *group, const tk_emu_block *block) {
    for (size_t i = 0; i < group->launch->program->ops.count && block->counters; i++) {
        tk_emu_counter *to = &group->counters[i];
        const tk_emu_counter *from = &block->counters[i];
        to->warps += from->warps;
        to->lanes += from->lanes;
        to->sectors += from->sectors;
        to->conflicts += from->conflicts;
    }
    group->totals.lane_operations += block->totals.lane_operations;
    group->totals.flops += block->totals.flops;
    group->totals.read_bytes += block->totals.read_bytes;
    group->totals.written_bytes += block->totals.written_bytes;
}

static void keep_clocks(tk_emu_group *group, const tk_emu_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++) {
        const tk_emu_warp *warp = &block->warps[w];
        for (int l = 0; l < TK_EMU_LANES; l++) {
            uint32_t id = warp->first_id + (uint32_t)l;
            group->last_clock[id] = warp->clock[l];
            for (uint32_t kind = 1; kind < group->launch->program->n_kinds; kind++)
                group->last_clock[kind * group->n_lanes + id] = warp->own->clock[kind][l];
        }
    }
}

static void release_block(tk_emu_block *block) {
    tk_emu_pool *pool = block->launch->pool;
    for (uint32_t w = 0; w < block->n_warps && block->warps; w++)
        if (block->warps[w].block) release_warp(&block->warps[w]);
    for (int i = 0; i < TK_EMU_BARRIERS; i++) {
        tk_emu_row_drop(block->barriers[i].joined);
        tk_emu_row_drop(block->barriers[i].last);
    }
    tk_emu_give(pool, block->warps, warp_bytes(block->launch));
    tk_emu_give(pool, block->shared, shared_bytes(block->launch));
    tk_emu_give(pool, block->shared_cells, cell_bytes(block->launch));
    tk_emu_give(pool, block->counters, counter_bytes(block->launch));
    for (size_t i = 0; i < sizeof block->steps / sizeof *block->steps; i++)
        tk_vec_deinit(&block->steps[i]);
    tk_vec_deinit(&block->unset);
    tk_emu_mbarriers_release(block->mbarriers);
    tk_emu_cluster_release(block->cluster);
    memset(block->barriers, 0, sizeof block->barriers);
    block->mbarriers = NULL;
    block->cluster = NULL;
    block->live = false;
    block->warps = NULL;
    block->shared = NULL;
    block->shared_cells = NULL;
    block->counters = NULL;
    block->n_warps = 0;
}

/* ---- clusters ---- */

bool tk_emu_is_over(const tk_emu_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++)
        if (block->warps[w].n_strands) return false;
    return true;
}

bool tk_emu_start_cluster(tk_emu_group *group, uint32_t slot) {
    uint32_t size = group->launch->cluster;
    if (group->next == group->end || group->status != TK_OK) return false;
    int64_t first = group->next++ * size;
    for (uint32_t i = 0; i < size; i++)
        if (!start_block(group, slot + i, first + i)) {
            group->status = TK_OUT_OF_MEMORY;
            return false;
        }
    return true;
}

void tk_emu_end_cluster(tk_emu_group *group, uint32_t slot) {
    bool whole = !group->stopped && group->status == TK_OK;
    for (uint32_t i = slot; i < slot + group->launch->cluster; i++) {
        tk_emu_report_unset(&group->blocks[i]);
        if (whole && tk_emu_is_over(&group->blocks[i])) {
            tk_emu_end_async(&group->blocks[i]);
            tk_emu_end_wgmma(&group->blocks[i]);
        }
        tk_emu_places_forget(
            group, group->blocks[i].shared_cells,
            (size_t)group->launch->shared_bytes / group->launch->program->shared_unit + 1);
    }
    for (uint32_t i = slot; i < slot + group->launch->cluster; i++) {
        tk_emu_block *block = &group->blocks[i];
        if (!block->live) continue;
        if (whole && group->next < group->end) keep_clocks(group, block);
        add_counts(group, block);
        release_block(block);
    }
}

/* ---- groups ---- */

/* Odd multipliers from SplitMix64 keep neighbouring groups apart. */
static uint64_t seed_of(uint64_t seed, int64_t number) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u * ((uint64_t)number + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) | 1;
}

/* The agents of lanes and of matrix operations. */
static bool add_agents(tk_emu_group *group) {
    const tk_emu_program *program = group->launch->program;
    uint32_t warps = group->n_lanes / TK_EMU_LANES;
    uint32_t count = (program->n_kinds - 1) * group->n_lanes + (program->has_wgmma ? warps : 0);
    tk_emu_agent none = {0};
    while (count--)
        if (!tk_vec_push(&group->agents, none)) return false;
    return true;
}

bool tk_emu_group_init(tk_emu_launch *launch, int64_t number, int64_t first, int64_t end,
                       tk_emu_group *group) {
    const tk_emu_program *program = launch->program;
    *group = (tk_emu_group){.launch = launch,
                            .number = number,
                            .random = seed_of(launch->seed, number),
                            .n_slots = launch->slots,
                            .next = first,
                            .end = end};
    group->n_lanes = launch->slots * launch->n_warps * TK_EMU_LANES;
    group->n_fixed = group->n_lanes * program->n_kinds;
    group->blocks = tk_calloc(group->n_slots, sizeof *group->blocks);
    group->counters = tk_calloc(program->ops.count + 1, sizeof *group->counters);
    group->last_clock = tk_calloc(group->n_fixed, sizeof *group->last_clock);
    bool ok = group->blocks && group->counters && group->last_clock && add_agents(group);
    group->n_ids = group->n_lanes + (uint32_t)group->agents.count;
    if (!ok) group->status = TK_OUT_OF_MEMORY;
    return ok;
}

void tk_emu_group_deinit(tk_emu_group *group) {
    for (uint32_t i = 0; i < group->n_slots && group->blocks; i++)
        if (group->blocks[i].launch) release_block(&group->blocks[i]);
    for (size_t i = 0; i < group->agents.count; i++) tk_vec_deinit(&group->agents.items[i].begun);
    tk_emu_places_release(group->places);
    tk_vec_deinit(&group->agents);
    tk_vec_deinit(&group->readers);
    tk_emu_findings_deinit(&group->findings);
    tk_free(group->blocks);
    tk_free(group->counters);
    tk_free(group->last_clock);
}
