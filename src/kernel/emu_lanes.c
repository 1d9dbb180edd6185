/* Shuffles, votes and what else lanes of a warp do together. The lanes of the mask must reach them
 * together; they order nothing. */
#include "kernel/emu.h"

#define BODY(function)                                                                             \
    static void function(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask)
#define PICK(name, function)                                                                       \
    tk_emu_pick tk_emu_pick_##name(const tk_kop *op) {                                             \
        (void)op;                                                                                  \
        return (tk_emu_pick){.body = function};                                                    \
    }

/* Lanes that are not in the mask that they give. That those of the mask are here was seen to
 * before. */
static void check_lanes(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask) {
    int lane = __builtin_ctz(mask);
    if (insn->mask == 255) return;
    uint32_t wanted = ((const uint32_t *)tk_emu_from(warp, insn, insn->mask))[lane];
    if (mask & ~wanted)
        tk_emu_report(warp, insn, lane, TK_KF_BAD_LANE, "lanes 0x%x are not in the mask 0x%x",
                      mask & ~wanted, wanted);
}

/* By place in the words of the attribute. */
enum { INDEX, UP, DOWN, BUTTERFLY };

/* The lane that is read; the own when there is none in the segment. */
static int source_lane(int64_t mode, int lane, uint32_t by, int width) {
    int first = lane & ~(width - 1), source = lane;
    if (mode == INDEX) return first | (int)(by & (uint32_t)(width - 1));
    if (by >= (uint32_t)width) return lane;
    if (mode == UP) source = lane - (int)by;
    if (mode == DOWN) source = lane + (int)by;
    if (mode == BUTTERFLY) source = lane ^ (int)by;
    return source >= first && source < first + width ? source : lane;
}

BODY(shuffle_lanes) {
    int64_t mode = tk_kop_attr(insn->op, TK_KA_mode);
    int width = (int)tk_kop_attr(insn->op, TK_KA_width);
    const uint32_t *by = tk_emu_from(warp, insn, 1);
    unsigned char *to = tk_emu_to(warp, insn);
    size_t bytes = insn->wide, row = TK_EMU_LANES * bytes;
    check_lanes(warp, insn, mask);
    int source[TK_EMU_LANES];
    uint32_t absent = 0;
    TK_EMU_EACH(mask, {
        source[l] = source_lane(mode, l, by[l], width);
        absent |= (uint32_t) !(mask >> source[l] & 1) << l;
    });
    if (absent)
        tk_emu_report(warp, insn, __builtin_ctz(absent), TK_KF_BAD_LANE,
                      "it reads lane %d, which is not here", source[__builtin_ctz(absent)]);
    for (size_t e = 0; e < insn->count; e++) {
        const unsigned char *from = (const unsigned char *)tk_emu_from(warp, insn, 0) + e * row;
        TK_EMU_EACH(mask, memcpy(to + e * row + (size_t)l * bytes, from + (size_t)source[l] * bytes,
                                 bytes));
    }
}
PICK(shuffle, shuffle_lanes)

/* By place in the words of the attribute. */
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI };

BODY(vote_lanes) {
    uint8_t *to = tk_emu_to(warp, insn);
    int64_t vote = tk_kop_attr(insn->op, TK_KA_vote);
    uint32_t yes = tk_emu_true_lanes(tk_emu_from(warp, insn, 0), mask);
    check_lanes(warp, insn, mask);
    uint8_t result = vote == VOTE_ALL   ? yes == mask
                     : vote == VOTE_ANY ? yes != 0
                                        : yes == mask || yes == 0;
    TK_EMU_EACH(mask, to[l] = result);
}
PICK(vote, vote_lanes)

BODY(ballot_lanes) {
    uint32_t *to = tk_emu_to(warp, insn), yes = tk_emu_true_lanes(tk_emu_from(warp, insn, 0), mask);
    check_lanes(warp, insn, mask);
    TK_EMU_EACH(mask, to[l] = yes);
}
PICK(ballot, ballot_lanes)

/* ---- the same values ---- */

static uint64_t value_at(const tk_emu_warp *warp, const tk_emu_insn *insn, int lane) {
    const void *from = tk_emu_from(warp, insn, 0);
    return tk_ktype_bytes(insn->op->operands[0]->type) == 8 ? ((const uint64_t *)from)[lane]
                                                            : ((const uint32_t *)from)[lane];
}

static uint32_t lanes_like(const tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                           int lane) {
    uint32_t same = 0;
    TK_EMU_EACH(mask, same |= (uint32_t)(value_at(warp, insn, l) == value_at(warp, insn, lane))
                              << l);
    return same;
}

BODY(match_lanes) {
    bool all = tk_kop_attr(insn->op, TK_KA_match) == 1;
    uint32_t *to = tk_emu_to(warp, insn);
    check_lanes(warp, insn, mask);
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t same = lanes_like(warp, insn, mask, lane);
        to[lane] = all && same != mask ? 0 : same;
    }
}
PICK(match, match_lanes)

/* By place in the words of the attribute. */
enum { ADD, SMIN, SMAX, UMIN, UMAX, MIN, MAX, AND, OR, XOR };

static uint32_t combined(int64_t how, uint32_t a, uint32_t b) {
    switch (how) {
    case ADD:
        return a + b;
    case SMIN:
        return (int32_t)a < (int32_t)b ? a : b;
    case SMAX:
        return (int32_t)a > (int32_t)b ? a : b;
    case UMIN:
        return a < b ? a : b;
    case UMAX:
        return a > b ? a : b;
    case AND:
        return a & b;
    case OR:
        return a | b;
    default:
        return a ^ b;
    }
}

BODY(reduce_lanes) {
    int64_t how = tk_kop_attr(insn->op, TK_KA_reduce);
    const uint32_t *from = tk_emu_from(warp, insn, 0);
    uint32_t *to = tk_emu_to(warp, insn), result = from[__builtin_ctz(mask)];
    check_lanes(warp, insn, mask);
    for (uint32_t left = mask & (mask - 1); left; left &= left - 1)
        result = combined(how, result, from[__builtin_ctz(left)]);
    TK_EMU_EACH(mask, to[l] = result);
}

tk_emu_pick tk_emu_pick_warp_reduce(const tk_kop *op) {
    int64_t how = tk_kop_attr(op, TK_KA_reduce);
    return (tk_emu_pick){.body = how == MIN || how == MAX ? NULL : reduce_lanes};
}

/* The lowest lane, as the hardware happens to choose. */
BODY(elect_lane) {
    uint8_t *to = tk_emu_to(warp, insn);
    int chosen = __builtin_ctz(mask);
    check_lanes(warp, insn, mask);
    TK_EMU_EACH(mask, to[l] = l == chosen);
}
PICK(elect, elect_lane)

BODY(active_lanes) {
    uint32_t *to = tk_emu_to(warp, insn);
    TK_EMU_EACH(mask, to[l] = mask);
}
PICK(active, active_lanes)
