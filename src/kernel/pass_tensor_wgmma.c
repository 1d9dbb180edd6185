/* gemm of a warpgroup: d += a b^T by wgmma, b (and a, if it is no fragment) in shared memory.
 *
 * A tile is (m or n, k) of 16-bit elements. What wgmma reads, 64 or n lines of 16 elements of k,
 * must lie in one of the ways that a descriptor can say: lines along k, or along m or n, in atoms
 * of 8 lines of 16 bytes (no swizzle), or of 32, 64 or 128 bytes with the swizzle of that width.
 * The two distances of the descriptor are read off the layout, then every element is compared; so a
 * layout that wgmma would read wrongly is refused.
 *
 * Fence, commit and wait stand around the products, unless the operation is asynchronous: then
 * commit and wait are the kernel's own. So is the proxy fence behind ordinary writes to the tiles.
 */
#include <string.h>

#include "base/error.h"
#include "kernel/lower.h"

typedef tk_kvalue *val;

enum { ROWS = 64, DEPTH = 16, BYTES = 2, MOST_PRODUCTS = 64 };

typedef struct operand {
    val tile, descriptor; /* descriptor NULL: a fragment */
    const char *name;
    bool mn;                     /* m or n lies together, not k */
    int64_t unit, pieces, steps; /* lines of one product */
    int64_t lines, depth;        /* of the tile */
    int64_t width, lead, stride; /* bytes: of the swizzle, 16 for none, and the two distances */
} operand;

static tk_status refuse(const operand *o, const char *why) {
    return tk_fail(TK_UNSUPPORTED, "gemm of a warpgroup: %s %s", o->name, why);
}

/* ---- where elements lie ---- */

/* Bytes from the tile's first element, before the swizzle. */
static int64_t byte_of(const tk_layout *layout, const operand *o, int64_t line, int64_t k) {
    return BYTES * tk_layout_at(layout, line + o->lines * k);
}

/* The same by the descriptor, from the first element of a product's part. */
static int64_t byte_by_descriptor(const operand *o, int64_t line, int64_t k) {
    int64_t along = (o->mn ? line : k) * BYTES, across = o->mn ? k : line;
    int64_t atom = across % 8 * o->width + along % o->width;
    if (o->width == 16 && o->mn) return atom + across / 8 * o->lead + along / 16 * o->stride;
    return atom + across / 8 * o->stride + along / o->width * o->lead;
}

/* The distances, from the first product's part; any will do where there is one atom only. */
static void find_distances(const tk_layout *layout, operand *o) {
    int64_t in_atom = o->width / BYTES, extent = o->mn ? o->lines : DEPTH;
    int64_t across = 8 * o->width, along = 16;
    if (o->mn || o->lines > 8) across = byte_of(layout, o, o->mn ? 0 : 8, o->mn ? 8 : 0);
    if (extent > in_atom) along = byte_of(layout, o, o->mn ? in_atom : 0, o->mn ? 0 : in_atom);
    bool plain_mn = o->mn && o->width == 16;
    o->stride = plain_mn ? along : across;
    o->lead = plain_mn ? across : along;
}

static bool is_read_right(const tk_layout *layout, const operand *o) {
    for (int64_t piece = 0; piece < o->pieces; piece++)
        for (int64_t step = 0; step < o->steps; step++) {
            int64_t line = piece * o->unit, k = step * DEPTH;
            int64_t first = byte_of(layout, o, line, k);
            if (first % 16 || (o->width > 16 && first % (8 * o->width) >= o->width)) return false;
            for (int64_t i = 0; i < o->unit; i++)
                for (int64_t j = 0; j < DEPTH; j++)
                    if (byte_of(layout, o, line + i, k + j) - first != byte_by_descriptor(o, i, j))
                        return false;
        }
    return o->lead % 16 == 0 && o->stride % 16 == 0 && o->lead >= 0 && o->stride >= 0 &&
           o->lead < 1 << 18 && o->stride < 1 << 18;
}

static tk_status find_way(const tk_klowerer *w, operand *o) {
    const tk_composed *c = tk_ktype_layout(w->kernel, o->tile->type);
    o->width = c->inner == TK_INNER_SWIZZLE ? 16 << c->swizzle.bits : 16;
    if (c->inner == TK_INNER_LAYOUT || !tk_layout_is_static(&c->outer) || o->width > 128 ||
        (o->width > 16 && (c->swizzle.base != 3 || c->swizzle.shift != 3)))
        return refuse(o, "has a swizzle that no descriptor says");
    for (int mn = 0; mn < 2; mn++) {
        o->mn = mn;
        find_distances(&c->outer, o);
        if (is_read_right(&c->outer, o)) return TK_OK;
    }
    return refuse(o, "does not lie as a descriptor can say");
}

static tk_status take_tile(const tk_klowerer *w, operand *o) {
    const tk_layout *layout = tk_ktile_layout(w->kernel, o->tile);
    o->lines = tk_ktile_mode(layout, 0);
    o->depth = tk_ktile_mode(layout, 1);
    if (o->tile->type.kind != TK_KT_VIEW || o->tile->type.space != TK_KS_SHARED ||
        tk_layout_rank(layout) != 2)
        return refuse(o, "is no tile of two modes in shared memory");
    if (o->lines < o->unit || o->lines % o->unit || o->depth < DEPTH || o->depth % DEPTH ||
        o->lines / o->unit > MOST_PRODUCTS || o->depth / DEPTH > MOST_PRODUCTS)
        return tk_fail(TK_SHAPE_ERROR,
                       "gemm of a warpgroup: %s is %lld x %lld, expected multiples of %lld and 16",
                       o->name, (long long)o->lines, (long long)o->depth, (long long)o->unit);
    o->pieces = o->lines / o->unit;
    o->steps = o->depth / DEPTH;
    TK_TRY(find_way(w, o));
    if (tk_ktile_alignment(w, o->tile) % (uint64_t)(8 * o->width) == 0) return TK_OK;
    return refuse(o, "is not proven to lie at a multiple of 8 lines of its swizzle");
}

/* ---- operations ---- */

static tk_kput_attr word(tk_kattr_id id, const char *text) {
    return (tk_kput_attr){id, tk_kwords_find(tk_kattr_row_of(id)->words, text, strlen(text))};
}

static void describe(tk_kput *p, operand *o) {
    static const char *const swizzles[] = {"swizzle_none", "swizzle_32", "swizzle_64",
                                           "swizzle_128"};
    int which = o->width == 128 ? 3 : o->width == 64 ? 2 : o->width == 32;
    val place = tk_ktile_locate(p, o->tile, tk_kput_integer(p, TK_K_I32, 0));
    tk_kput_attr attrs[] = {
        word(TK_KA_swizzle, swizzles[which]), {TK_KA_lead, o->lead}, {TK_KA_stride, o->stride}};
    o->descriptor = tk_kput_op(p, TK_KOP_matrix_descriptor, 1, &place, 3, attrs, (tk_ktype){0});
}

/* The descriptor of a part: it counts in 16 bytes. */
static val part_of(tk_kput *p, const operand *o, int64_t piece, int64_t step) {
    const tk_layout *layout = tk_ktile_layout(p->kernel, o->tile);
    int64_t bytes = byte_of(layout, o, piece * o->unit, step * DEPTH);
    if (!bytes) return o->descriptor;
    return tk_kput_2(p, TK_KOP_add, o->descriptor, tk_kput_integer(p, TK_K_I64, bytes / 16));
}

static int64_t fragment_part(const tk_layout *layout, int64_t first, int64_t second) {
    return tk_layout_at(layout,
                        tk_ktile_mode(layout, 0) * (first + tk_ktile_mode(layout, 1) * second));
}

static void multiply(tk_kput *p, const tk_kop *op, const operand *a, const operand *b,
                     const int64_t *at) {
    val d = op->operands[0], yes = tk_kput_integer(p, TK_K_I1, 1);
    bool half = b->tile->type.scalar == TK_K_F16;
    val right = part_of(p, b, at[1], at[2]);
    val left = a->descriptor ? part_of(p, a, at[0], at[2]) : a->tile;
    int64_t a_index =
        a->descriptor ? 0 : fragment_part(tk_ktile_layout(p->kernel, a->tile), at[0], at[2]);
    tk_kput_attr attrs[] = {
        {TK_KA_m, ROWS},
        {TK_KA_n, tk_kop_attr(op, TK_KA_n)},
        {TK_KA_k, DEPTH},
        word(TK_KA_a_type, half ? "a_f16" : "a_bf16"),
        word(TK_KA_b_type, half ? "b_f16" : "b_bf16"),
        {TK_KA_a_mn, a->mn},
        {TK_KA_b_mn, b->mn},
        {TK_KA_d_index, fragment_part(tk_ktile_layout(p->kernel, d), at[0], at[1])},
        {TK_KA_a_index, a_index}};
    tk_kput_op(p, TK_KOP_wgmma, 4, (val[]){d, left, right, yes}, 9, attrs, (tk_ktype){0});
}

static void plain(tk_kput *p, tk_kopcode code) {
    tk_kput_op(p, code, 0, NULL, 0, NULL, (tk_ktype){0});
}

static tk_status check_call(const tk_kop *op, const operand *a, const operand *b) {
    unsigned element = b->tile->type.scalar;
    if ((element != TK_K_F16 && element != TK_K_BF16) || a->tile->type.scalar != element)
        return tk_fail(TK_UNSUPPORTED, "gemm of a warpgroup: a and b are f16 or bf16");
    if (tk_kop_attr(op, TK_KA_m) == ROWS && tk_kop_attr(op, TK_KA_k) == DEPTH) return TK_OK;
    return tk_fail(TK_UNSUPPORTED, "gemm of a warpgroup: m = 64 and k = 16");
}

static tk_status check_shapes(const tk_kput *p, const tk_kop *op, const operand *a,
                              const operand *b) {
    const tk_layout *d = tk_ktile_layout(p->kernel, op->operands[0]);
    if (tk_ktile_mode(d, 1) == a->pieces && tk_ktile_mode(d, 2) == b->pieces &&
        a->steps == b->steps)
        return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "gemm of a warpgroup: d, a and b do not go together");
}

static tk_status take_a(const tk_klowerer *w, tk_kput *p, operand *a) {
    if (!tk_ktile_is_registers(a->tile)) {
        TK_TRY(take_tile(w, a));
        return describe(p, a), *p->status;
    }
    a->pieces = tk_ktile_mode(tk_ktile_layout(w->kernel, a->tile), 1);
    a->steps = tk_ktile_mode(tk_ktile_layout(w->kernel, a->tile), 2);
    return TK_OK;
}

tk_status tk_klower_wgmma(const tk_klowerer *w, tk_kput *p, const tk_kop *op) {
    operand a = {.tile = op->operands[1], .name = "a", .unit = ROWS};
    operand b = {.tile = op->operands[2], .name = "b", .unit = tk_kop_attr(op, TK_KA_n)};
    TK_TRY(check_call(op, &a, &b));
    TK_TRY(take_a(w, p, &a));
    TK_TRY(take_tile(w, &b));
    TK_TRY(check_shapes(p, op, &a, &b));
    describe(p, &b);
    plain(p, TK_KOP_wgmma_fence);
    for (int64_t step = 0; step < b.steps; step++)
        for (int64_t y = 0; y < b.pieces; y++)
            for (int64_t x = 0; x < a.pieces && *p->status == TK_OK; x++)
                multiply(p, op, &a, &b, (int64_t[]){x, y, step});
    if (tk_kop_attr(op, TK_KA_async)) return *p->status;
    plain(p, TK_KOP_wgmma_commit);
    plain(p, TK_KOP_wgmma_wait);
    return *p->status;
}
