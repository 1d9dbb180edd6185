/* Bodies of integer operations. Total, as the kernel language is: they wrap, shifts clamp, and a
 * division by zero gives 0 and a finding. */
#include "kernel/emu_ewise.h"

#define BITS (8 * (uint32_t)sizeof(U))

EMU_INT2(smin, (I)x < (I)y ? x : y)
EMU_INT2(smax, (I)x > (I)y ? x : y)
EMU_INT2(umin, x < y ? x : y)
EMU_INT2(umax, x > y ? x : y)
EMU_SHIFT(shl, y < BITS ? (W)x << y : 0)
EMU_SHIFT(ushr, y < BITS ? (W)x >> y : 0)
EMU_SHIFT(sshr, (I)x >> (y < BITS ? y : BITS - 1))

/* The upper half of a product: of 128 bits for i64. */
#define SIGNED_HIGH (((__int128_t)(I)x * (I)y) >> BITS)
#define UNSIGNED_HIGH (((__uint128_t)x * y) >> BITS)
EMU_INT2(smulhi, SIGNED_HIGH)
EMU_INT2(umulhi, UNSIGNED_HIGH)

/* ---- bits; i1 is a byte that is 0 or 1 ---- */

#define BIT_CASES(name)                                                                            \
    case TK_K_I1:                                                                                  \
        return (tk_emu_pick){.body = name##_uint8_t};                                              \
        EMU_INT_CASES(name)
#define BITS2(name, expression)                                                                    \
    EMU_INT2_BODY(name, uint8_t, int8_t, uint32_t, expression)                                     \
    EMU_FOR_INTS(EMU_INT2_BODY, name, expression) EMU_PICK(name, BIT_CASES(name))
BITS2(and, x &y)
BITS2(or, x | y)
BITS2(xor, x ^ y)
EMU_INT1_BODY(not, uint8_t, int8_t, uint32_t, x ^ 1u)
EMU_FOR_INTS(EMU_INT1_BODY, not, ~(W)x)
EMU_PICK(not, BIT_CASES(not ))

/* ---- division ---- */

static void report_zero(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t lanes) {
    if (lanes) tk_emu_report(warp, insn, __builtin_ctz(lanes), TK_KF_DIVISION, "the divisor is 0");
}

#define DIVIDE_BODY(name, U_, I_, W_, expression)                                                  \
    EMU_BODY(name##_##U_) {                                                                        \
        EMU_INT_TYPES(U_, I_, W_);                                                                 \
        uint32_t zeros = 0;                                                                        \
        U *to = tk_emu_to(warp, insn);                                                             \
        const U *a = tk_emu_from(warp, insn, 0), *b = tk_emu_from(warp, insn, 1);                  \
        EMU_EACH_ELEMENT(insn, mask, {                                                             \
            U x = a[l], y = b[l];                                                                  \
            zeros |= (uint32_t)(y == 0) << l % TK_EMU_LANES;                                       \
            to[l] = y ? (U)(expression) : 0;                                                       \
        })                                                                                         \
        report_zero(warp, insn, zeros);                                                            \
    }
#define DIVIDE(name, expression)                                                                   \
    EMU_FOR_INTS(DIVIDE_BODY, name, expression) EMU_PICK(name, EMU_INT_CASES(name))

DIVIDE(udiv, x / y)
DIVIDE(urem, x % y)
DIVIDE(sdiv, y == (U)-1 ? (U)(0 - (W)x) : (U)((I)x / (I)y))
DIVIDE(srem, y == (U)-1 ? 0 : (U)((I)x % (I)y))

/* ---- i32 and i64 that give an i32 or themselves ---- */

#define COUNT_BODY(name, U_, expression)                                                           \
    EMU_BODY(name##_##U_) {                                                                        \
        uint32_t *to = tk_emu_to(warp, insn);                                                      \
        const U_ *a = tk_emu_from(warp, insn, 0);                                                  \
        EMU_EACH_ELEMENT(insn, mask, {                                                             \
            U_ x = a[l];                                                                           \
            to[l] = (uint32_t)(expression);                                                        \
        })                                                                                         \
    }
#define INDEX_CASES(name)                                                                          \
    case TK_K_I32:                                                                                 \
        return (tk_emu_pick){.body = name##_uint32_t};                                             \
    case TK_K_I64:                                                                                 \
        return (tk_emu_pick){.body = name##_uint64_t};

COUNT_BODY(popcount, uint32_t, __builtin_popcount(x))
COUNT_BODY(popcount, uint64_t, __builtin_popcountll(x))
EMU_PICK(popcount, INDEX_CASES(popcount))
COUNT_BODY(leading_zeros, uint32_t, x ? __builtin_clz(x) : 32)
COUNT_BODY(leading_zeros, uint64_t, x ? __builtin_clzll(x) : 64)
EMU_PICK(leading_zeros, INDEX_CASES(leading_zeros))

static uint64_t reversed(uint64_t bits, int width) {
    uint64_t result = 0;
    for (int i = 0; i < width; i++) result |= (bits >> i & 1) << (width - 1 - i);
    return result;
}

EMU_INT1_BODY(reverse_bits, uint32_t, int32_t, uint32_t, reversed(x, 32))
EMU_INT1_BODY(reverse_bits, uint64_t, int64_t, uint64_t, reversed(x, 64))
EMU_PICK(reverse_bits, INDEX_CASES(reverse_bits))

/* ---- bytes and bits of several i32 ---- */

static uint32_t byte_of(uint64_t both, uint32_t selector) {
    uint32_t byte = (uint32_t)(both >> 8 * (selector & 7)) & 0xff;
    return selector & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}

static uint32_t picked_bytes(uint64_t both, uint32_t selector) {
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) result |= byte_of(both, selector >> 4 * i & 15) << 8 * i;
    return result;
}

/* The selector of the byte mode that does what another mode does with the low bits of its own. */
static uint32_t selector_of(int64_t mode, uint32_t low) {
    static const uint16_t rc8[] = {0x0000, 0x1111, 0x2222, 0x3333},
                          rc16[] = {0x1010, 0x3232, 0x1010, 0x3232},
                          f4e[] = {0x3210, 0x4321, 0x5432, 0x6543},
                          b4e[] = {0x5670, 0x6701, 0x7012, 0x0123},
                          ecl[] = {0x3210, 0x3211, 0x3222, 0x3333},
                          ecr[] = {0x0000, 0x1110, 0x2210, 0x3210};
    static const uint16_t *const tables[] = {NULL, f4e, b4e, rc8, ecl, ecr, rc16};
    return tables[mode] ? tables[mode][low & 3] : low;
}

EMU_BODY(permute) {
    uint32_t *to = tk_emu_to(warp, insn);
    const uint32_t *a = tk_emu_from(warp, insn, 0), *b = tk_emu_from(warp, insn, 1),
                   *c = tk_emu_from(warp, insn, 2);
    int64_t mode = tk_kop_attr(insn->op, TK_KA_prmt);
    TK_EMU_EACH(mask, to[l] = picked_bytes((uint64_t)b[l] << 32 | a[l], selector_of(mode, c[l])));
}

tk_emu_pick tk_emu_pick_permute_bytes(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = permute};
}

static uint32_t combined(uint32_t table, uint32_t x, uint32_t y, uint32_t z) {
    uint32_t result = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1) result |= (i & 4 ? x : ~x) & (i & 2 ? y : ~y) & (i & 1 ? z : ~z);
    return result;
}

EMU_BODY(logic) {
    uint32_t *to = tk_emu_to(warp, insn), table = (uint32_t)tk_kop_attr(insn->op, TK_KA_table);
    const uint32_t *a = tk_emu_from(warp, insn, 0), *b = tk_emu_from(warp, insn, 1),
                   *c = tk_emu_from(warp, insn, 2);
    TK_EMU_EACH(mask, to[l] = combined(table, a[l], b[l], c[l]));
}

tk_emu_pick tk_emu_pick_logic3(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = logic};
}

static uint32_t funnelled(uint64_t both, uint32_t amount, bool left) {
    return left ? (uint32_t)(both << amount >> 32) : (uint32_t)(both >> amount);
}

EMU_BODY(shift_funnel) {
    uint32_t *to = tk_emu_to(warp, insn);
    const uint32_t *low = tk_emu_from(warp, insn, 0), *high = tk_emu_from(warp, insn, 1),
                   *c = tk_emu_from(warp, insn, 2);
    bool left = tk_kop_attr(insn->op, TK_KA_direction) == 0,
         wrap = tk_kop_attr(insn->op, TK_KA_wrap);
    TK_EMU_EACH(mask, {
        uint32_t amount = wrap ? c[l] & 31 : c[l] < 32 ? c[l] : 32;
        to[l] = funnelled((uint64_t)high[l] << 32 | low[l], amount, left);
    });
}

tk_emu_pick tk_emu_pick_funnel(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = shift_funnel};
}

/* ---- comparing ---- */

#define COMPARE_BODY(name, U_, I_, W_, expression)                                                 \
    EMU_BODY(name##_##U_) {                                                                        \
        EMU_INT_TYPES(U_, I_, W_);                                                                 \
        uint8_t *to = tk_emu_to(warp, insn);                                                       \
        const U *a = tk_emu_from(warp, insn, 0), *b = tk_emu_from(warp, insn, 1);                  \
        TK_EMU_EACH(mask, to[l] = (expression));                                                   \
    }
#define COMPARE(name, expression)                                                                  \
    EMU_FOR_INTS(COMPARE_BODY, name, expression) static EMU_PICK_STATIC(name)
#define EMU_PICK_STATIC(name)                                                                      \
    tk_emu_pick pick_##name(const tk_kop *op) {                                                    \
        switch ((tk_kscalar)op->operands[0]->type.scalar) {                                        \
            EMU_INT_CASES(name) default : return (tk_emu_pick){0};                                 \
        }                                                                                          \
    }
COMPARE(eq, a[l] == b[l])
COMPARE(ne, a[l] != b[l])
COMPARE(slt, (I)a[l] < (I)b[l])
COMPARE(sle, (I)a[l] <= (I)b[l])
COMPARE(sgt, (I)a[l] > (I)b[l])
COMPARE(sge, (I)a[l] >= (I)b[l])
COMPARE(ult, a[l] < b[l])
COMPARE(ule, a[l] <= b[l])
COMPARE(ugt, a[l] > b[l])
COMPARE(uge, a[l] >= b[l])

tk_emu_pick tk_emu_pick_icmp(const tk_kop *op) {
    static tk_emu_pick (*const picks[])(const tk_kop *) = {pick_eq,  pick_ne,  pick_slt, pick_sle,
                                                           pick_sgt, pick_sge, pick_ult, pick_ule,
                                                           pick_ugt, pick_uge};
    return picks[tk_kop_attr(op, TK_KA_icmp)](op);
}
