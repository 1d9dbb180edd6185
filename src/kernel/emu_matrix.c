/* ldmatrix, stmatrix and mma.sync.
 *
 * The rows of ldmatrix and stmatrix are accesses of the lanes that give their addresses: a lane
 * that gets values of a row is not ordered by that, as the manual says nothing of it. */
#include "kernel/emu_fragment.h"
#include "kernel/emu_shared.h"

#define BODY(function)                                                                             \
    static void function(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask)

enum { ROW_BYTES = 16, MOST_MATRICES = 4 };

/* ---- rows ---- */

/* Eight rows are one access of 128 bytes; those that are in the same banks take turns. */
static uint32_t row_conflicts(const uint32_t *address, uint32_t lanes) {
    uint32_t most = 1;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t at = address[__builtin_ctz(left)] / ROW_BYTES, same = 0;
        for (uint32_t other = lanes; other; other &= other - 1) {
            uint32_t there = address[__builtin_ctz(other)] / ROW_BYTES;
            bool seen = false;
            for (uint32_t before = lanes; before != other; before &= before - 1)
                seen |= address[__builtin_ctz(before)] / ROW_BYTES == there;
            same += !seen && there % 8 == at % 8;
        }
        if (same > most) most = same;
    }
    return most - 1;
}

/* Where the rows lie; NULL for one that is wrong, or whose lane is not there. */
static void find_rows(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask, int operand,
                      bool write, unsigned char **rows) {
    const uint32_t *address = tk_emu_from(warp, insn, operand);
    int count = (int)tk_kop_attr(insn->op, TK_KA_count);
    for (int m = 0; m < count; m++) {
        uint32_t good = 0;
        for (int lane = 8 * m; lane < 8 * m + 8; lane++) {
            rows[lane] = NULL;
            if (!(mask >> lane & 1)) continue;
            rows[lane] = tk_emu_shared_at(warp, insn, lane, address[lane], ROW_BYTES, ROW_BYTES);
            if (!rows[lane]) continue;
            good |= 1u << lane;
            if (write)
                tk_emu_shared_write(warp, insn, lane, address[lane], ROW_BYTES);
            else
                tk_emu_shared_read(warp, insn, lane, address[lane], ROW_BYTES);
        }
        if (good) warp->block->counters[insn->number].conflicts += row_conflicts(address, good);
    }
}

/* ---- ldmatrix, stmatrix ---- */

/* The two halves that a lane has of a matrix: places of row and byte. */
static void places_of(int lane, bool transposed, int row[2], int byte[2]) {
    for (int h = 0; h < 2; h++) {
        row[h] = transposed ? 2 * (lane % 4) + h : lane / 4;
        byte[h] = 2 * (transposed ? lane / 4 : 2 * (lane % 4) + h);
    }
}

/* The bytes of a lane in a register of 32 bits, whatever the elements' size. */
static void move_word(tk_emu_tensor *tensor, size_t index, size_t bytes, int lane,
                      unsigned char word[4], bool write) {
    for (size_t i = 0; i < 4 / bytes; i++) {
        unsigned char *at = tk_emu_elements(tensor, index + i, bytes) + (size_t)lane * bytes;
        if (write)
            memcpy(at, word + i * bytes, bytes);
        else
            memcpy(word + i * bytes, at, bytes);
    }
}

BODY(load_matrices) {
    unsigned char *rows[TK_EMU_LANES];
    tk_emu_tensor *tensor = tk_emu_tensor_of(warp, insn, 0);
    size_t bytes = (size_t)tk_kscalar_bytes((tk_kscalar)insn->op->operands[0]->type.scalar);
    size_t count = (size_t)tk_kop_attr(insn->op, TK_KA_count);
    bool transposed = tk_kop_attr(insn->op, TK_KA_transposed);
    find_rows(warp, insn, mask, 1, false, rows);
    tk_emu_tensor_write(warp, insn, mask, tensor, insn->index, count * 4 / bytes);
    for (size_t m = 0; m < count; m++)
        TK_EMU_EACH(mask, {
            unsigned char word[4] = {0};
            int row[2], byte[2];
            places_of(l, transposed, row, byte);
            for (int h = 0; h < 2; h++) {
                const unsigned char *from = rows[8 * (int)m + row[h]];
                if (from) memcpy(word + 2 * h, from + byte[h], 2);
            }
            move_word(tensor, insn->index + m * 4 / bytes, bytes, l, word, true);
        });
}

BODY(store_matrices) {
    unsigned char *rows[TK_EMU_LANES];
    tk_emu_tensor *tensor = tk_emu_tensor_of(warp, insn, 1);
    size_t bytes = (size_t)tk_kscalar_bytes((tk_kscalar)insn->op->operands[1]->type.scalar);
    size_t count = (size_t)tk_kop_attr(insn->op, TK_KA_count);
    bool transposed = tk_kop_attr(insn->op, TK_KA_transposed);
    find_rows(warp, insn, mask, 0, true, rows);
    tk_emu_tensor_read(warp, insn, mask, tensor, insn->index, count * 4 / bytes);
    for (size_t m = 0; m < count; m++)
        TK_EMU_EACH(mask, {
            unsigned char word[4];
            int row[2], byte[2];
            places_of(l, transposed, row, byte);
            move_word(tensor, insn->index + m * 4 / bytes, bytes, l, word, false);
            for (int h = 0; h < 2; h++) {
                unsigned char *to = rows[8 * (int)m + row[h]];
                if (to) memcpy(to + byte[h], word + 2 * h, 2);
            }
        });
}

/* Rows are in the block's own shared memory. */
static bool is_own(const tk_kop *op, int operand) {
    return op->operands[operand]->type.space == TK_KS_SHARED;
}

tk_emu_pick tk_emu_pick_load_matrix(const tk_kop *op) {
    return (tk_emu_pick){.body = is_own(op, 1) ? load_matrices : NULL};
}
tk_emu_pick tk_emu_pick_store_matrix(const tk_kop *op) {
    return (tk_emu_pick){.body = is_own(op, 0) ? store_matrices : NULL};
}

/* ---- mma.sync ---- */

/* The elements of an operand from its index on, noted as read or written. */
static unsigned char *fragment(tk_emu_warp *warp, const tk_emu_insn *insn, uint32_t mask,
                               int operand, tk_kattr_id index_id, size_t count) {
    tk_emu_tensor *tensor = tk_emu_tensor_of(warp, insn, operand);
    size_t index = (size_t)tk_kop_attr(insn->op, index_id);
    tk_kscalar scalar = (tk_kscalar)insn->op->operands[operand]->type.scalar;
    (operand ? tk_emu_tensor_read : tk_emu_tensor_write)(warp, insn, mask, tensor, index, count);
    return tk_emu_elements(tensor, index, (size_t)tk_kscalar_bytes(scalar));
}

static void unpack_b(tk_kscalar scalar, const unsigned char *elements, int k,
                     float (*b)[TK_EMU_MOST_N]) {
    int bytes = tk_kscalar_bytes(scalar), per = 4 / bytes;
    float lanes[TK_EMU_LANES];
    for (int e = 0; e < k / 4; e++) {
        int row = e % per + 4 * per * (e / per);
        tk_emu_widen(scalar, elements + (size_t)(e * bytes) * TK_EMU_LANES, lanes, TK_EMU_LANES);
        for (int l = 0; l < TK_EMU_LANES; l++) b[row + per * (l % 4)][l / 4] = lanes[l];
    }
}

BODY(multiply) {
    enum { D, A, B, C, N = 8 };
    tk_kvalue *const *operands = insn->op->operands;
    float a[16][TK_EMU_MOST_K], b[TK_EMU_MOST_K][TK_EMU_MOST_N], d[16][TK_EMU_MOST_N];
    int k = (int)tk_kop_attr(insn->op, TK_KA_k);
    tk_kscalar d_type = (tk_kscalar)operands[D]->type.scalar,
               a_type = (tk_kscalar)operands[A]->type.scalar,
               b_type = (tk_kscalar)operands[B]->type.scalar;
    size_t a_count = (size_t)k / 2, b_count = (size_t)k / 4;
    tk_emu_unpack_a(a_type, fragment(warp, insn, mask, A, TK_KA_a_index, a_count), k, a);
    unpack_b(b_type, fragment(warp, insn, mask, B, TK_KA_b_index, b_count), k, b);
    tk_emu_unpack_d(d_type, fragment(warp, insn, mask, C, TK_KA_c_index, 4), N, d);
    tk_emu_multiply(a, b, d, k, N);
    tk_emu_pack_d(d_type, fragment(warp, insn, mask, D, TK_KA_d_index, 4), mask, N, d);
    warp->block->totals.flops += 2 * 16 * N * (uint64_t)k;
}

tk_emu_pick tk_emu_pick_mma(const tk_kop *op) {
    (void)op;
    return (tk_emu_pick){.body = multiply};
}
