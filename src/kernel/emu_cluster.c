/* The barrier of a cluster, and addresses in the shared memory of its blocks. */
#include "base/alloc.h"
#include "kernel/emu_async.h"
#include "kernel/emu_mbarrier.h"
#include "kernel/emu_memory.h"

/* Of the first block of a cluster. Threads that arrive for the next time while others still wait
 * for the last make two rows. */
struct tk_emu_cluster {
    uint32_t arrived, expected;
    uint32_t phase;
    tk_emu_row *joined, *done[2];
    uint32_t *turn;   /* by thread of the cluster: the phase that it arrived in, plus one; 0: it has
                         waited */
    uint32_t *passed; /* and the last one that it waited for, plus one */
};

void tk_emu_cluster_release(struct tk_emu_cluster *cluster) {
    if (!cluster) return;
    tk_emu_row_drop(cluster->joined);
    tk_emu_row_drop(cluster->done[0]);
    tk_emu_row_drop(cluster->done[1]);
    tk_free(cluster->turn);
    tk_free(cluster);
}

static struct tk_emu_cluster *cluster_of(tk_emu_warp *warp) {
    tk_emu_block *first = warp->block - warp->block->rank;
    const tk_emu_launch *launch = first->launch;
    if (first->cluster) return first->cluster;
    size_t lanes = (size_t)launch->cluster * launch->n_warps * TK_EMU_LANES;
    struct tk_emu_cluster *cluster = tk_calloc(1, sizeof *cluster);
    if (cluster) cluster->turn = tk_calloc(2 * lanes, sizeof *cluster->turn);
    if (!cluster || !cluster->turn) {
        first->group->status = TK_OUT_OF_MEMORY;
        tk_free(cluster);
        return NULL;
    }
    cluster->passed = cluster->turn + lanes;
    cluster->expected = launch->cluster * launch->n_threads;
    return first->cluster = cluster;
}

static size_t number_of(const tk_emu_warp *warp, int lane) {
    return (warp->block->rank * warp->block->n_warps + warp->number) * TK_EMU_LANES + (size_t)lane;
}

static uint32_t *turn_of(const struct tk_emu_cluster *cluster, const tk_emu_warp *warp, int lane) {
    return &cluster->turn[number_of(warp, lane)];
}

uint32_t tk_emu_cluster_passed(const tk_emu_warp *warp, int lane) {
    const struct tk_emu_cluster *cluster = (warp->block - warp->block->rank)->cluster;
    return cluster ? cluster->passed[number_of(warp, lane)] : 0;
}

static void wake(const tk_emu_warp *of) {
    tk_emu_block *first = of->block - of->block->rank;
    for (uint32_t b = 0; b < first->launch->cluster; b++)
        for (uint32_t w = 0; w < first[b].n_warps; w++) {
            tk_emu_warp *warp = &first[b].warps[w];
            for (uint32_t i = 0; i < warp->n_strands; i++) {
                tk_emu_strand *strand = &warp->strands[i];
                const tk_emu_insn *insn = &first->launch->program->code.items[strand->pc];
                if (strand->state == TK_EMU_WAITING && strand->again &&
                    insn->op->code == TK_KOP_cluster_wait)
                    strand->state = TK_EMU_READY;
            }
        }
}

static void open_barrier(tk_emu_warp *warp, struct tk_emu_cluster *cluster) {
    tk_emu_row **done = &cluster->done[cluster->phase & 1];
    tk_emu_row_drop(*done);
    *done = cluster->joined;
    cluster->joined = NULL;
    cluster->arrived = 0;
    cluster->phase++;
    tk_emu_progress(warp);
    wake(warp);
}

static void arrive(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    struct tk_emu_cluster *cluster = cluster_of(warp);
    for (uint32_t left = mask; left && cluster; left &= left - 1) {
        uint32_t *turn = turn_of(cluster, warp, __builtin_ctz(left));
        if (*turn)
            tk_emu_report(warp, insn, __builtin_ctz(left), TK_KF_BARRIER_COUNT,
                          "it has arrived at the cluster's barrier and not waited since");
        *turn = cluster->phase + 1;
    }
    if (!cluster) return;
    tk_emu_mbarriers_announce(warp, mask, cluster->phase + 1);
    if (!tk_kop_attr(insn->op, TK_KA_relaxed)) tk_emu_release(warp, mask, &cluster->joined);
    cluster->arrived += (uint32_t)__builtin_popcount(mask);
    if (cluster->arrived >= cluster->expected) open_barrier(warp, cluster);
}

static bool wait_cluster(tk_emu_warp *warp, const tk_emu_insn *insn, tk_emu_strand *strand) {
    struct tk_emu_cluster *cluster = cluster_of(warp);
    int first = __builtin_ctz(strand->mask);
    uint32_t turn = cluster ? *turn_of(cluster, warp, first) : 0;
    if (!cluster) return true;
    if (!turn) {
        tk_emu_report(warp, insn, first, TK_KF_BARRIER_COUNT,
                      "it waits at the cluster's barrier and has not arrived there");
        return true;
    }
    strand->again = cluster->phase < turn;
    if (strand->again) return false;
    tk_emu_acquire(warp, strand->mask, cluster->done[(turn - 1) & 1]);
    for (uint32_t left = strand->mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        cluster->passed[number_of(warp, lane)] = *turn_of(cluster, warp, lane);
        *turn_of(cluster, warp, lane) = 0;
    }
    return true;
}

tk_emu_pick tk_emu_pick_cluster_arrive(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = arrive};
}
tk_emu_pick tk_emu_pick_cluster_wait(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.wait = wait_cluster};
}

/* ---- addresses ---- */

static void map_address(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    uint32_t *to = tk_emu_to(warp, insn), size = warp->block->launch->cluster;
    const uint32_t *from = tk_emu_from(warp, insn, 0), *rank = tk_emu_from(warp, insn, 1);
    TK_EMU_EACH(mask, {
        if (rank[l] >= size)
            tk_emu_report(warp, insn, l, TK_KF_OUT_OF_BOUNDS, "block %d of a cluster of %u",
                          (int)rank[l], size);
        uint32_t in = rank[l] < size ? rank[l] : 0;
        to[l] = (from[l] & ((1u << TK_EMU_RANK_SHIFT) - 1)) | (in + 1) << TK_EMU_RANK_SHIFT;
    });
}

tk_emu_pick tk_emu_pick_peer(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = map_address};
}

/* ---- where ---- */

static void put_same(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, int64_t value) {
    int32_t *to = tk_emu_to(warp, insn);
    TK_EMU_EACH(mask, to[l] = (int32_t)value);
}

static int axis_of(const tk_emu_insn *insn) { return (int)tk_kop_attr(insn->op, TK_KA_axis); }

static void put_index(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    int axis = axis_of(insn);
    put_same(warp, insn, mask, warp->block->index[axis] / warp->block->launch->shape.cluster[axis]);
}
static void put_block(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    int axis = axis_of(insn);
    put_same(warp, insn, mask, warp->block->index[axis] % warp->block->launch->shape.cluster[axis]);
}
static void put_size(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    put_same(warp, insn, mask, warp->block->launch->shape.cluster[axis_of(insn)]);
}

#define PICK(name, function)                                                                       \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = function};                                                    \
    }
PICK(cluster_index, put_index)
PICK(cluster_block, put_block)
PICK(cluster_size, put_size)
