/* gemm: d += a b^T by mma.sync, every part of the fragments, k outermost.
 *
 * Fragments of a and b in registers are used as they lie: (values, m or n, k). A tile in shared
 * memory, (m, k) or (n, k), comes into registers by ldmatrix, step by step of k: a in pieces of 16
 * x 16, b in pairs of 8 x 16. Lines along k are read as they lie, lines along m or n transposed;
 * either way a line's 8 elements must be one aligned piece of 16 bytes, through the swizzle if
 * there is one. d is a fragment (values, m, n) of each lane. */
#include <string.h>

#include "base/error.h"
#include "kernel/lower.h"

typedef tk_kvalue *val;

enum { LINE = 8, MOST_PIECES = 64 }; /* LINE: elements of a row of a matrix of ldmatrix */

typedef struct operand {
    val tile, registers; /* registers: the tile itself, or where ldmatrix puts it */
    bool is_a, shared, transposed;
    int64_t pieces, steps; /* along m or n, and k */
} operand;

/* Fragments (values, m or n, k): the place of an mma's part. */
static int64_t part_of(const tk_layout *layout, int64_t first, int64_t second) {
    int64_t values = tk_ktile_mode(layout, 0), extent = tk_ktile_mode(layout, 1);
    return tk_layout_at(layout, values * (first + extent * second));
}

/* ---- tiles in shared memory ---- */

/* Whether each line of 8 elements along the mode is one piece: of this tile with that mode first.
 */
static bool has_lines(const tk_klowerer *w, val tile, bool second_mode) {
    tk_composed layout;
    if (!second_mode)
        return tk_ktile_is_together(w, tile, tk_ktype_layout(w->kernel, tile->type), LINE);
    return tk_ktile_turned(w->kernel, tile, &layout) &&
           tk_ktile_is_together(w, tile, &layout, LINE);
}

static tk_status take_shared(const tk_klowerer *w, tk_kput *p, operand *o) {
    const char *name = o->is_a ? "a" : "b";
    const tk_layout *layout = tk_ktile_layout(p->kernel, o->tile);
    int64_t lines = tk_ktile_mode(layout, 0), depth = tk_ktile_mode(layout, 1);
    int64_t unit = o->is_a ? 16 : 8;
    if (o->tile->type.space != TK_KS_SHARED || tk_layout_rank(layout) != 2)
        return tk_fail(TK_UNSUPPORTED,
                       "gemm: %s is no fragment and no tile of two modes in shared memory", name);
    if (lines < unit || lines % unit || depth < 16 || depth % 16)
        return tk_fail(TK_SHAPE_ERROR, "gemm: %s is %lld x %lld, expected multiples of %lld and 16",
                       name, (long long)lines, (long long)depth, (long long)unit);
    if (!has_lines(w, o->tile, true)) {
        o->transposed = true;
        if (!has_lines(w, o->tile, false))
            return tk_fail(TK_UNSUPPORTED,
                           "gemm: 8 elements of %s lie together and aligned along neither mode, "
                           "as ldmatrix reads them",
                           name);
    }
    o->pieces = lines / unit;
    o->steps = depth / 16;
    if (o->pieces > MOST_PIECES || o->steps > MOST_PIECES)
        return tk_fail(TK_UNSUPPORTED,
                       "gemm: %s is %lld x %lld, at most %d products along each mode", name,
                       (long long)lines, (long long)depth, MOST_PIECES);
    return TK_OK;
}

static tk_status make_registers(tk_kput *p, operand *o) {
    int64_t shape = o->pieces * (o->is_a ? 8 : 4), stride = 1;
    tk_layout layout;
    tk_composed composed;
    uint32_t number = 0;
    TK_TRY(tk_layout_from_ints(1, &shape, &stride, &layout));
    tk_composed_from_layout(&layout, &composed);
    TK_TRY(tk_kernel_layout(p->kernel, &composed, &number));
    tk_ktype type = {.kind = TK_KT_REGISTERS, .scalar = o->tile->type.scalar, .lanes = 1};
    type.layout = number;
    o->registers = tk_kput_op(p, TK_KOP_registers, 0, NULL, 0, NULL, type);
    return *p->status;
}

static tk_status take_operand(const tk_klowerer *w, tk_kput *p, val tile, bool is_a, operand *o) {
    const tk_layout *layout = tk_ktile_layout(p->kernel, tile);
    *o = (operand){.tile = tile, .registers = tile, .is_a = is_a};
    o->shared = !tk_ktile_is_registers(tile);
    o->pieces = tk_ktile_mode(layout, 1);
    o->steps = tk_ktile_mode(layout, 2);
    return o->shared ? take_shared(w, p, o) : TK_OK;
}

static val integer(tk_kput *p, int64_t value) { return tk_kput_index(p, TK_K_I32, value); }

/* The coordinates that a lane's address has in the first piece. Matrix i = lane / 8 of a is the
 * upper left, lower left, upper right, lower right 8 x 8 of 16 x 16; those of b are two along k,
 * then two along n. A transposed matrix has its rows along k. */
typedef struct corner {
    val line, depth;
} corner;

static corner corner_of(tk_kput *p, const operand *o) {
    val lane = tk_kput_2(p, TK_KOP_and, tk_kgroup_thread(p), integer(p, 31));
    val row = tk_kput_2(p, TK_KOP_and, lane, integer(p, 7));
    val low = tk_kput_2(p, TK_KOP_and, lane, integer(p, 8));
    val high =
        tk_kput_2(p, TK_KOP_and, tk_kput_2(p, TK_KOP_ushr, lane, integer(p, 1)), integer(p, 8));
    corner c = o->is_a ? (corner){low, high} : (corner){high, low};
    val *rows = o->transposed ? &c.depth : &c.line;
    *rows = tk_kput_2(p, TK_KOP_add, *rows, row);
    return c;
}

/* Pieces from `first` on: one of a, two (or the last one) of b. */
static void load_pieces(tk_kput *p, const operand *o, corner c, int64_t first, int64_t step) {
    int64_t count = o->is_a || first + 1 < o->pieces ? 4 : 2;
    val line = tk_kput_2(p, TK_KOP_add, c.line, integer(p, (o->is_a ? 16 : 8) * first));

    val depth = tk_kput_2(p, TK_KOP_add, c.depth, integer(p, 16 * step));
    val place = tk_ktile_locate_2(p, o->tile, line, depth);
    tk_kput_attr attrs[] = {{TK_KA_index, (o->is_a ? 8 : 4) * first},
                            {TK_KA_count, count},
                            {TK_KA_transposed, o->transposed}};
    tk_kput_op(p, TK_KOP_load_matrix, 2, (val[]){o->registers, place}, 3, attrs, (tk_ktype){0});
}

static void load_step(tk_kput *p, const operand *o, corner c, int64_t step) {
    for (int64_t i = 0; o->shared && i < o->pieces && *p->status == TK_OK; i += o->is_a ? 1 : 2)
        load_pieces(p, o, c, i, step);
}

static int64_t place_of(const tk_kput *p, const operand *o, int64_t piece, int64_t step) {
    if (o->shared) return piece * (o->is_a ? 8 : 4);
    return part_of(tk_ktile_layout(p->kernel, o->tile), piece, step);
}

/* ---- products ---- */

static void put_mma(tk_kput *p, const tk_kop *op, const operand *a, const operand *b,
                    const int64_t *places) {
    val d = op->operands[0];
    tk_kput_attr attrs[] = {
        {TK_KA_m, tk_kop_attr(op, TK_KA_m)}, {TK_KA_n, tk_kop_attr(op, TK_KA_n)},
        {TK_KA_k, tk_kop_attr(op, TK_KA_k)}, {TK_KA_d_index, places[0]},
        {TK_KA_a_index, places[1]},          {TK_KA_b_index, places[2]},
        {TK_KA_c_index, places[0]}};
    tk_kput_op(p, TK_KOP_mma, 4, (val[]){d, a->registers, b->registers, d}, 7, attrs,
               (tk_ktype){0});
}

static void multiply(tk_kput *p, const tk_kop *op, const operand *a, const operand *b,
                     int64_t step) {
    const tk_layout *d = tk_ktile_layout(p->kernel, op->operands[0]);
    for (int64_t y = 0; y < b->pieces; y++)
        for (int64_t x = 0; x < a->pieces && *p->status == TK_OK; x++)
            put_mma(
                p, op, a, b,
                (int64_t[]){part_of(d, x, y), place_of(p, a, x, step), place_of(p, b, y, step)});
}

static tk_status check_shapes(const tk_kput *p, const tk_kop *op, const operand *a,
                              const operand *b) {
    const tk_layout *d = tk_ktile_layout(p->kernel, op->operands[0]);
    bool narrow = a->tile->type.scalar == TK_K_F16 || a->tile->type.scalar == TK_K_BF16;
    bool whole = tk_kop_attr(op, TK_KA_m) == 16 && tk_kop_attr(op, TK_KA_n) == 8 &&
                 tk_kop_attr(op, TK_KA_k) == 16;
    if ((a->shared || b->shared) && (!narrow || !whole))
        return tk_fail(TK_UNSUPPORTED,
                       "gemm: tiles in shared memory are f16 or bf16, multiplied by "
                       "m = 16, n = 8, k = 16");
    if (tk_ktile_mode(d, 1) == a->pieces && tk_ktile_mode(d, 2) == b->pieces &&
        a->steps == b->steps)
        return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "gemm: d, a and b do not go together");
}

/* By itself, or as four warps of a block. */
static bool is_warpgroup(const tk_kop *op) {
    int64_t group = tk_kop_attr(op, TK_KA_group);
    return group == TK_KG_WARPGROUP || (group == TK_KG_WARPS && tk_kop_attr(op, TK_KA_count) == 4 &&
                                        tk_kop_attr(op, TK_KA_first) % 4 == 0);
}

tk_status tk_klower_gemm(const tk_klowerer *w, tk_kput *p, const tk_kop *op) {
    operand a, b;
    corner of_a = {0}, of_b = {0};
    if (is_warpgroup(op)) return tk_klower_wgmma(w, p, op);
    if (tk_kop_attr(op, TK_KA_group) != TK_KG_WARP || tk_kop_attr(op, TK_KA_async))
        return tk_fail(TK_UNSUPPORTED,
                       "gemm: of a warp, each with its part of d, or of a warpgroup, "
                       "which alone can be asynchronous");
    TK_TRY(take_operand(w, p, op->operands[1], true, &a));
    TK_TRY(take_operand(w, p, op->operands[2], false, &b));
    TK_TRY(check_shapes(p, op, &a, &b));
    if (a.shared) TK_TRY(make_registers(p, &a));
    if (b.shared) TK_TRY(make_registers(p, &b));
    if (a.shared) of_a = corner_of(p, &a);
    if (b.shared) of_b = corner_of(p, &b);
    for (int64_t step = 0; step < a.steps && *p->status == TK_OK; step++) {
        load_step(p, &a, of_a, step);
        load_step(p, &b, of_b, step);
        multiply(p, op, &a, &b, step);
    }
    return *p->status;
}
