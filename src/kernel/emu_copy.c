/* cp.async: copies of 4, 8 or 16 bytes of each lane from global to shared memory, through the
 * generic proxy. */
#include "kernel/emu_async.h"
#include "kernel/emu_mbarrier.h"
#include "kernel/emu_memory.h"

enum { TARGET, SOURCE, SIZE, CONDITION };

static uint64_t target_of(const tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    return ((const uint32_t *)tk_emu_from(warp, insn, TARGET))[lane];
}
static uint64_t source_of(const tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    return ((const uint64_t *)tk_emu_from(warp, insn, SOURCE))[lane];
}

/* How many bytes are read; beyond them are zeros. */
static uint32_t size_of(const tk_emu_warp *warp, const tk_emu_insn *insn, int lane,
                        uint32_t bytes) {
    if (!tk_emu_given(insn, SIZE)) return bytes;
    uint32_t size = ((const uint32_t *)tk_emu_from(warp, insn, SIZE))[lane];
    return size < bytes ? size : bytes;
}

static bool check_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint32_t bytes) {
    uint64_t target = target_of(warp, insn, lane), source = source_of(warp, insn, lane);
    uint32_t size = size_of(warp, insn, lane, bytes);
    if (target % bytes || source % bytes) {
        tk_emu_report(warp, insn, lane, TK_KF_MISALIGNED,
                      "addresses 0x%llx and 0x%llx for %u bytes", (unsigned long long)target,
                      (unsigned long long)source, bytes);
        return false;
    }
    return tk_emu_shared_check(warp, insn, lane, target, bytes) &&
           (!size || tk_emu_global_check(warp, insn, lane, source, size, false));
}

static void read_source(tk_emu_warp *warp, const tk_emu_insn *insn, const tk_emu_agent_access *by,
                        uint32_t size, unsigned char *out) {
    unsigned char *data;
    uint64_t source = source_of(warp, insn, by->lane);
    tk_emu_page *page = tk_emu_global_at(warp, source, &data);
    uint32_t unit = warp->block->launch->program->global_unit;
    if (page) {
        tk_emu_access access = {.warp = warp,
                                .insn = insn,
                                .cells = page->cells + (size_t)(data - page->data) / unit,
                                .count = (size + unit - 1) / unit,
                                .race = TK_KF_RACE_GLOBAL,
                                .where = "global memory",
                                .address = source};
        tk_emu_note_agent_read(&access, by);
    }
    if (data) memcpy(out, data, size);
}

static void copy_lane(tk_emu_warp *warp, const tk_emu_insn *insn, int lane, uint32_t bytes) {
    unsigned char data[16] = {0};
    uint64_t target = target_of(warp, insn, lane);
    uint32_t size = size_of(warp, insn, lane, bytes);
    tk_emu_agent_access by = tk_emu_own_issue(warp, insn, lane, TK_EMU_COPY, false);
    if (size) read_source(warp, insn, &by, size, data);
    tk_emu_shared_note(warp, insn, target, bytes, &by, true);
    memcpy(tk_emu_shared_block(warp, target)->shared + tk_emu_shared_offset(target), data, bytes);
    warp->block->totals.read_bytes += size;
}

static void copy_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    uint32_t bytes = (uint32_t)tk_kop_attr(insn->op, TK_KA_bytes);
    uint32_t active = tk_emu_given(insn, CONDITION)
                          ? tk_emu_true_lanes(tk_emu_from(warp, insn, CONDITION), mask)
                          : mask;
    tk_emu_request count = {.warp = warp, .insn = insn, .bytes = bytes};
    uint32_t good = 0;
    for (uint32_t left = active; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (!check_lane(warp, insn, lane, bytes)) continue;
        copy_lane(warp, insn, lane, bytes);
        count.address[lane] = source_of(warp, insn, lane);
        if (size_of(warp, insn, lane, bytes)) good |= 1u << lane;
    }
    tk_emu_count_sectors(&count, good);
}

static void commit_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    (void)insn;
    tk_emu_own_commit(warp, mask, TK_EMU_COPY);
}

static void wait_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    tk_emu_own_wait(warp, mask, TK_EMU_COPY, (uint32_t)tk_kop_attr(insn->op, TK_KA_groups));
}

/* What is issued after it is not waited for by it, so the clock goes on. */
static void arrive_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    bool counts = tk_kop_attr(insn->op, TK_KA_arriving) != 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t agent =
                     TK_EMU_COPY * warp->block->group->n_lanes + warp->first_id + (uint32_t)lane,
                 clock = warp->own ? warp->own->clock[TK_EMU_COPY][lane]++ : 0;
        tk_emu_mbarrier_arrive_copy(warp, insn, lane,
                                    ((const uint32_t *)tk_emu_from(warp, insn, 0))[lane],
                                    warp->own ? agent : 0, clock, counts);
    }
}

#define PICK(name, function)                                                                       \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = function};                                                    \
    }
PICK(cp_async, copy_lanes)
PICK(cp_async_commit, commit_lanes)
PICK(cp_async_wait, wait_lanes)
PICK(cp_async_arrive, arrive_lanes)
