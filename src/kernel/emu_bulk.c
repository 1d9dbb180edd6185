/* Bulk copies: runs of bytes that one lane starts, through the async proxy. What comes to shared
 * memory tells an mbarrier there; what goes to global memory is waited for in groups. */
#include "kernel/emu_bulk.h"

#include "base/alloc.h"
#include "kernel/emu_async.h"
#include "kernel/emu_mbarrier.h"
#include "kernel/emu_memory.h"
#include "kernel/emu_span.h"

enum { ALIGN = 16, CHUNK = 4096 };

static uint64_t near_at(const tk_emu_warp *warp, const tk_emu_insn *insn, int operand, int lane) {
    return ((const uint32_t *)tk_emu_from(warp, insn, operand))[lane];
}
static uint64_t far_at(const tk_emu_warp *warp, const tk_emu_insn *insn, int operand, int lane) {
    return ((const uint64_t *)tk_emu_from(warp, insn, operand))[lane];
}

/* ---- where ---- */

uint64_t tk_emu_in_block(uint64_t address, uint32_t rank) {
    return (address & (((uint64_t)1 << TK_EMU_RANK_SHIFT) - 1)) | (uint64_t)(rank + 1)
                                                                      << TK_EMU_RANK_SHIFT;
}

/* The block whose memory the address is in: of a multicast, the lane's own stands for all. */
static uint32_t rank_of(const tk_emu_warp *warp, uint64_t address) {
    return tk_emu_shared_block(warp, address)->rank;
}

uint32_t tk_emu_targets(tk_emu_warp *warp, const tk_emu_insn *insn, int operand, int lane,
                        uint64_t target) {
    uint32_t size = warp->block->launch->cluster;
    if (!tk_emu_given(insn, operand)) return 1u << rank_of(warp, target);
    uint32_t blocks = (uint32_t)near_at(warp, insn, operand, lane) & 0xffff;
    if (blocks && !(blocks >> size)) return blocks;
    tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS,
                  "blocks 0x%x of a cluster of %u are to get the copy", blocks, size);
    return blocks & ((1u << size) - 1);
}

/* ---- checks ---- */

static bool is_aligned(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t a, uint64_t b,
                       uint64_t bytes) {
    if ((a | b | bytes) % ALIGN == 0) return true;
    tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED,
                  "addresses 0x%llx and 0x%llx for %llu bytes, expected multiples of 16",
                  (unsigned long long)a, (unsigned long long)b, (unsigned long long)bytes);
    return false;
}

static bool is_positive(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t bytes) {
    if (bytes <= INT32_MAX) return true;
    tk_emu_report(warp, insn, lane, TK_KF_OUT_OF_BOUNDS, "%d bytes", (int)(int32_t)bytes);
    return false;
}

/* ---- to shared memory ---- */

/* One block's copy of the run, from global memory or, of `bulk_send`, from shared memory. */
static void deliver(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint64_t target,
                    uint64_t barrier_at, uint64_t bytes) {
    enum { SOURCE = 1 };
    unsigned char data[CHUNK];
    bool sends = insn->op->code == TK_KOP_bulk_send;
    tk_emu_copier of = {.warp = warp, .insn = insn};
    tk_emu_mbarrier *barrier = tk_emu_mbarrier_issue(warp, insn, lane, barrier_at, &of.by);
    if (!barrier) return;
    for (uint64_t done = 0, part; done < bytes; done += part) {
        part = bytes - done < CHUNK ? bytes - done : CHUNK;
        if (sends)
            tk_emu_span_load_shared(&of, near_at(warp, insn, SOURCE, lane) + done, part, data);
        else
            tk_emu_span_load_global(&of, far_at(warp, insn, SOURCE, lane) + done, part, data);
        tk_emu_span_store_shared(&of, target + done, part, data);
    }
    tk_emu_mbarrier_complete(warp, insn, lane, barrier, (uint32_t)bytes);
}

static void load_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    enum { TARGET, SOURCE, BYTES, BARRIER, MULTICAST };
    uint64_t target = near_at(warp, insn, TARGET, lane), source = far_at(warp, insn, SOURCE, lane),
             bytes = near_at(warp, insn, BYTES, lane), barrier = near_at(warp, insn, BARRIER, lane);
    if (!is_positive(warp, insn, lane, bytes) ||
        !is_aligned(warp, insn, lane, target, source, bytes) ||
        !tk_emu_global_check(warp, insn, lane, source, bytes, false) ||
        !tk_emu_shared_check(warp, insn, lane, target, bytes))
        return;
    for (uint32_t left = tk_emu_targets(warp, insn, MULTICAST, lane, target); left;
         left &= left - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(left);
        deliver(warp, insn, lane, tk_emu_in_block(target, rank), tk_emu_in_block(barrier, rank),
                bytes);
    }
}

static void send_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    enum { TARGET, SOURCE, BYTES, BARRIER };
    uint64_t target = near_at(warp, insn, TARGET, lane), source = near_at(warp, insn, SOURCE, lane),
             bytes = near_at(warp, insn, BYTES, lane);
    if (is_positive(warp, insn, lane, bytes) &&
        is_aligned(warp, insn, lane, target, source, bytes) &&
        tk_emu_shared_check(warp, insn, lane, source, bytes) &&
        tk_emu_shared_check(warp, insn, lane, target, bytes))
        deliver(warp, insn, lane, target, near_at(warp, insn, BARRIER, lane), bytes);
}

/* One number, straight from a register. */
static void store_async_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    enum { TARGET, VALUE, BARRIER };
    uint64_t target = near_at(warp, insn, TARGET, lane),
             bytes = (uint64_t)tk_ktype_bytes(insn->op->operands[VALUE]->type);
    const unsigned char *value = tk_emu_from(warp, insn, VALUE);
    tk_emu_copier of = {.warp = warp, .insn = insn};
    if (target % bytes) {
        tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED, "address 0x%llx for %llu bytes",
                      (unsigned long long)target, (unsigned long long)bytes);
        return;
    }
    if (!tk_emu_shared_check(warp, insn, lane, target, bytes)) return;
    tk_emu_mbarrier *barrier =
        tk_emu_mbarrier_issue(warp, insn, lane, near_at(warp, insn, BARRIER, lane), &of.by);
    if (!barrier) return;
    tk_emu_span_store_shared(&of, target, bytes, value + (size_t)lane * bytes);
    tk_emu_mbarrier_complete(warp, insn, lane, barrier, (uint32_t)bytes);
}

/* ---- to global memory ---- */

static void store_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    enum { TARGET, SOURCE, BYTES };
    unsigned char data[CHUNK];
    uint64_t target = far_at(warp, insn, TARGET, lane), source = near_at(warp, insn, SOURCE, lane),
             bytes = near_at(warp, insn, BYTES, lane);
    bool reduces = insn->op->code == TK_KOP_bulk_reduce;
    if (!is_positive(warp, insn, lane, bytes) ||
        !is_aligned(warp, insn, lane, target, source, bytes) ||
        !tk_emu_global_check(warp, insn, lane, target, bytes, true) ||
        !tk_emu_shared_check(warp, insn, lane, source, bytes))
        return;
    tk_emu_copier reader = {warp, insn, tk_emu_own_issue(warp, insn, lane, TK_EMU_BULK_READ, true)},
                  writer = {warp, insn,
                            tk_emu_own_issue(warp, insn, lane, TK_EMU_BULK_WRITE, true)};
    for (uint64_t done = 0, part; done < bytes; done += part) {
        part = bytes - done < CHUNK ? bytes - done : CHUNK;
        tk_emu_span_load_shared(&reader, source + done, part, data);
        if (reduces)
            tk_emu_span_reduce_global(&writer, target + done, part,
                                      (tk_kscalar)insn->op->operands[TARGET]->type.scalar, data);
        else
            tk_emu_span_store_global(&writer, target + done, part, data);
    }
    tk_emu_progress(warp);
}

/* ---- the table ---- */

#define EACH_LANE(name, function)                                                                  \
    static void name##_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {          \
        for (uint32_t left = mask; left; left &= left - 1)                                         \
            function(warp, insn, __builtin_ctz(left));                                             \
    }                                                                                              \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = name##_lanes};                                                \
    }

static void prefetch_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    (void)tk_emu_global_check(warp, insn, lane, far_at(warp, insn, 0, lane),
                              near_at(warp, insn, 1, lane), false);
}

EACH_LANE(bulk_load, load_lane)
EACH_LANE(bulk_store, store_lane)
EACH_LANE(bulk_send, send_lane)
EACH_LANE(store_async, store_async_lane)
EACH_LANE(bulk_reduce, store_lane)
EACH_LANE(bulk_prefetch, prefetch_lane)

/* What is read and what is written are groups of the same operations. */
static void commit_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    (void)insn;
    if (warp->block->launch->program->n_kinds <= TK_EMU_BULK_WRITE) return;
    tk_emu_own_commit(warp, mask, TK_EMU_BULK_READ);
    tk_emu_own_commit(warp, mask, TK_EMU_BULK_WRITE);
}

static void wait_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    uint32_t groups = (uint32_t)tk_kop_attr(insn->op, TK_KA_groups);
    if (warp->block->launch->program->n_kinds <= TK_EMU_BULK_WRITE) return;
    tk_emu_own_wait(warp, mask, TK_EMU_BULK_READ, groups);
    if (!tk_kop_attr(insn->op, TK_KA_read)) tk_emu_own_wait(warp, mask, TK_EMU_BULK_WRITE, groups);
}

tk_emu_pick tk_emu_pick_bulk_commit(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = commit_lanes};
}
tk_emu_pick tk_emu_pick_bulk_wait(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = wait_lanes};
}
