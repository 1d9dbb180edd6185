/* Bodies that move values: select, vectors, register tensors, pointers, special registers. Elements
 * are moved by their size, whatever their type. */
#include "kernel/check.h"
#include "kernel/emu.h"

#define BODY(function)                                                                             \
    static void function(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask)
#define PICK(name, function)                                                                       \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = function};                                                    \
    }

/* Copies `count` elements of `bytes` for the active lanes. */
static void move(unsigned char *to, const unsigned char *from, uint32_t mask, size_t count,
                 size_t bytes) {
    if (mask == TK_EMU_ALL) {
        memcpy(to, from, count * TK_EMU_LANES * bytes);
        return;
    }
    for (size_t e = 0; e < count; e++, to += TK_EMU_LANES * bytes, from += TK_EMU_LANES * bytes)
        TK_EMU_EACH(mask, memcpy(to + (size_t)l * bytes, from + (size_t)l * bytes, bytes));
}

/* ---- select, vectors ---- */

BODY(select_value) {
    uint32_t first = tk_emu_true_lanes(tk_emu_from(warp, insn, 0), mask);
    if (first)
        move(tk_emu_to(warp, insn), tk_emu_from(warp, insn, 1), first, insn->count, insn->wide);
    if (mask & ~first)
        move(tk_emu_to(warp, insn), tk_emu_from(warp, insn, 2), mask & ~first, insn->count,
             insn->wide);
}
PICK(select, select_value)

static unsigned char *element(tk_emu_warp *warp, uint32_t at, size_t index, size_t bytes) {
    return (unsigned char *)tk_emu_reg(warp, at) + index * TK_EMU_LANES * bytes;
}

BODY(make_vector) {
    for (size_t e = 0; e < insn->count; e++)
        move(element(warp, insn->to, e, insn->wide), tk_emu_from(warp, insn, (int)e), mask, 1,
             insn->wide);
}
PICK(vector, make_vector)

BODY(make_splat) {
    for (size_t e = 0; e < insn->count; e++)
        move(element(warp, insn->to, e, insn->wide), tk_emu_from(warp, insn, 0), mask, 1,
             insn->wide);
}
PICK(splat, make_splat)

BODY(extract_elements) {
    size_t index = insn->index;
    move(tk_emu_to(warp, insn), element(warp, insn->from[0], index, insn->wide), mask, insn->count,
         insn->wide);
}
PICK(extract, extract_elements)

BODY(insert_elements) {
    size_t index = insn->index, count = insn->op->operands[1]->type.lanes;
    move(tk_emu_to(warp, insn), tk_emu_from(warp, insn, 0), mask, insn->count, insn->wide);
    move(element(warp, insn->to, index, insn->wide), tk_emu_from(warp, insn, 1), mask, count,
         insn->wide);
}
PICK(insert, insert_elements)

/* Element e of the result takes bytes of one element of the operand or of several. */
BODY(reinterpret) {
    tk_ktype from = insn->op->operands[0]->type;
    size_t to_bytes = insn->wide, from_bytes = (size_t)tk_kscalar_bytes((tk_kscalar)from.scalar),
           total = to_bytes * insn->count;
    unsigned char *to = tk_emu_to(warp, insn);
    const unsigned char *source = tk_emu_from(warp, insn, 0);
    TK_EMU_EACH(
        mask, for (size_t byte = 0; byte < total; byte++) {
            size_t to_at =
                byte / to_bytes * TK_EMU_LANES * to_bytes + (size_t)l * to_bytes + byte % to_bytes;
            size_t from_at = byte / from_bytes * TK_EMU_LANES * from_bytes +
                             (size_t)l * from_bytes + byte % from_bytes;
            to[to_at] = source[from_at];
        });
}

/* Elements of one size stay where they are. */
tk_emu_pick tk_emu_pick_bitcast(const tk_kop *op) {
    tk_ktype from = op->operands[0]->type, to = op->results[0]->type;
    if (from.lanes == to.lanes) return tk_emu_pick_copy(op);
    return (tk_emu_pick){.body = reinterpret};
}

/* ---- register tensors ---- */

BODY(get_elements) {
    tk_emu_tensor *tensor = tk_emu_tensor_of(warp, insn, 0);
    tk_emu_tensor_read(warp, insn, mask, tensor, insn->index, insn->count);
    move(tk_emu_to(warp, insn), tk_emu_elements(tensor, insn->index, insn->wide), mask, insn->count,
         insn->wide);
}
PICK(get, get_elements)

BODY(set_elements) {
    tk_ktype type = insn->op->operands[1]->type;
    size_t bytes = (size_t)tk_kscalar_bytes((tk_kscalar)type.scalar);
    tk_emu_tensor *tensor = tk_emu_tensor_of(warp, insn, 0);
    tk_emu_tensor_write(warp, insn, mask, tensor, insn->index, type.lanes);
    move(tk_emu_elements(tensor, insn->index, bytes), tk_emu_from(warp, insn, 1), mask, type.lanes,
         bytes);
}
PICK(set, set_elements)

/* ---- pointers ---- */

/* Addresses in shared memory have 32 bits, others 64; the distance has a sign. */
#define OFFSET_BODY(name, P, I)                                                                    \
    BODY(name) {                                                                                   \
        const I *steps = tk_emu_from(warp, insn, 1);                                               \
        const P *from = tk_emu_from(warp, insn, 0);                                                \
        P *to = tk_emu_to(warp, insn),                                                             \
          bytes = (P)tk_kscalar_bytes((tk_kscalar)insn->op->operands[0]->type.scalar);             \
        TK_EMU_EACH(mask, to[l] = from[l] + (P)(int64_t)steps[l] * bytes);                         \
    }
OFFSET_BODY(offset_near_i32, uint32_t, int32_t)
OFFSET_BODY(offset_near_i64, uint32_t, int64_t)
OFFSET_BODY(offset_far_i32, uint64_t, int32_t)
OFFSET_BODY(offset_far_i64, uint64_t, int64_t)

tk_emu_pick tk_emu_pick_offset(const tk_kop *op) {
    static const tk_emu_body bodies[2][2] = {{offset_near_i32, offset_near_i64},
                                             {offset_far_i32, offset_far_i64}};
    bool far = tk_ktype_bytes(op->operands[0]->type) == 8,
         wide = op->operands[1]->type.scalar == TK_K_I64;
    return (tk_emu_pick){.body = bodies[far][wide]};
}

BODY(buffer_address) {
    uint32_t *to = tk_emu_to(warp, insn);
    uint32_t at = TK_EMU_SHARED_BASE +
                  (uint32_t)warp->block->launch->program->shared_at[insn->op->operands[0]->id];
    TK_EMU_EACH(mask, to[l] = at);
}
PICK(address, buffer_address)

BODY(dynamic_address) {
    uint32_t *to = tk_emu_to(warp, insn),
             at = TK_EMU_SHARED_BASE + (uint32_t)warp->block->launch->program->shared.dynamic_at;
    TK_EMU_EACH(mask, to[l] = at);
}
PICK(dynamic_shared, dynamic_address)

/* ---- where ---- */

static void split_index(int64_t number, const int64_t *extent, int64_t *out) {
    out[0] = number % extent[0];
    out[1] = number / extent[0] % extent[1];
    out[2] = number / extent[0] / extent[1];
}

/* A block along x alone, the usual one: thread numbers are indices. */
static bool is_line(const int64_t *block) { return block[1] == 1 && block[2] == 1; }

static int axis_of(const tk_emu_insn *insn) { return (int)tk_kop_attr(insn->op, TK_KA_axis); }

BODY(put_thread_index) {
    int32_t *to = tk_emu_to(warp, insn);
    bool line = is_line(warp->block->launch->shape.block);
    if (line) {
        bool x = axis_of(insn) == 0;
        TK_EMU_EACH(mask, to[l] = x ? (int32_t)tk_emu_thread(warp, l) : 0);
        return;
    }
    TK_EMU_EACH(mask, {
        int64_t index[3];
        split_index(tk_emu_thread(warp, l), warp->block->launch->shape.block, index);
        to[l] = (int32_t)index[axis_of(insn)];
    });
}
PICK(thread_index, put_thread_index)

static void put_same(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, int64_t value) {
    int32_t *to = tk_emu_to(warp, insn);
    TK_EMU_EACH(mask, to[l] = (int32_t)value);
}

BODY(put_block_index) { put_same(warp, insn, mask, warp->block->index[axis_of(insn)]); }
BODY(put_block_size) {
    put_same(warp, insn, mask, warp->block->launch->shape.block[axis_of(insn)]);
}
BODY(put_grid_size) { put_same(warp, insn, mask, warp->block->launch->shape.grid[axis_of(insn)]); }
PICK(block_index, put_block_index)
PICK(block_size, put_block_size)
PICK(grid_size, put_grid_size)

/* By place in the words of the attribute. */
enum {
    LANE,
    WARP,
    WARPS,
    SM,
    SMS,
    GRID,
    CLUSTER_RANK,
    CLUSTER_SIZE,
    LANES_LT,
    LANES_LE,
    LANES_EQ,
    LANES_GE,
    LANES_GT,
    SHARED,
    DYNAMIC
};

static int64_t special_value(const tk_emu_warp *warp, int64_t which, int lane) {
    const tk_emu_block *block = warp->block;
    int64_t own = (int64_t)1 << lane;
    switch (which) {
    case LANE:
        return lane;
    case WARP:
        return warp->number;
    case WARPS:
        return block->n_warps;
    case LANES_LT:
        return own - 1;
    case LANES_LE:
        return 2 * own - 1;
    case LANES_EQ:
        return own;
    case LANES_GE:
        return (int64_t)TK_EMU_ALL - own + 1;
    case LANES_GT:
        return (int64_t)TK_EMU_ALL - 2 * own + 1;
    case SHARED:
        return block->shared_bytes;
    case DYNAMIC:
        return block->launch->shape.dynamic_shared;
    case CLUSTER_RANK:
        return block->rank;
    case CLUSTER_SIZE:
        return block->launch->cluster;
    default: /* sm, sms, grid: one SM runs one grid */
        return which == SMS;
    }
}

BODY(put_special) {
    uint32_t *to = tk_emu_to(warp, insn);
    int64_t which = tk_kop_attr(insn->op, TK_KA_special);
    TK_EMU_EACH(mask, to[l] = (uint32_t)special_value(warp, which, l));
}
PICK(special, put_special)

/* Time goes on by what the block has done: the same in every run of a seed. */
BODY(put_clock) {
    int64_t *to = tk_emu_to(warp, insn),
            now = (int64_t)warp->block->totals.lane_operations / TK_EMU_LANES;
    TK_EMU_EACH(mask, to[l] = now);
}
PICK(clock, put_clock)

BODY(put_policy) {
    int64_t *to = tk_emu_to(warp, insn), policy = tk_kop_attr(insn->op, TK_KA_evict);
    TK_EMU_EACH(mask, to[l] = policy);
}
PICK(cache_policy, put_policy)

/* ---- claims ---- */

static int64_t integer_of(const tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    tk_ktype type = insn->op->operands[0]->type;
    const void *from = tk_emu_from(warp, insn, 0);
    if (tk_ktype_bytes(type) == 8) return ((const int64_t *)from)[lane];
    return type.kind == TK_KT_POINTER ? (int64_t)((const uint32_t *)from)[lane]
                                      : ((const int32_t *)from)[lane];
}

BODY(check_assumption) {
    int64_t divisor = tk_kop_attr(insn->op, TK_KA_divisor), low = tk_kop_attr(insn->op, TK_KA_low),
            high = tk_kop_attr(insn->op, TK_KA_high);
    TK_EMU_EACH(mask, {
        int64_t value = integer_of(warp, insn, l);
        if (value % divisor || value < low || value > high)
            tk_emu_report(warp, insn, l, TK_KF_ASSUMPTION, "the value is %lld", (long long)value);
    });
    move(tk_emu_to(warp, insn), tk_emu_from(warp, insn, 0), mask, insn->count, insn->wide);
}
PICK(assume, check_assumption)

static void stop(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t lanes) {
    const tk_kernel *kernel = warp->block->launch->program->kernel;
    tk_emu_report(warp, insn, __builtin_ctz(lanes), TK_KF_ASSERTION, "%.180s",
                  tk_kop_text(kernel, insn->op, TK_KA_message));
    warp->block->group->stopped = true;
}

BODY(check_assertion) {
    uint32_t failed = mask & ~tk_emu_true_lanes(tk_emu_from(warp, insn, 0), mask);
    if (failed) stop(warp, insn, failed);
}
PICK(assert, check_assertion)
BODY(trap_now) { stop(warp, insn, mask); }
PICK(trap, trap_now)
