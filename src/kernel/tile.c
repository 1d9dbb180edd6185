/* Groups and tiles; tile.h says what is asked.
 *
 * Alignment is followed from the pointer or buffer through every cut: what a cut may move the first
 * element by is a sum of multiples of strides, so their greatest common divisor is what counts. A
 * dynamic stride counts with the divisor that its layout states, if the kernel proves it. */
#include "kernel/tile.h"

#include <string.h>

#include "base/error.h"
#include "kernel/check.h"

typedef tk_kvalue *val;

/* ---- groups ---- */

static int64_t block_threads(const tk_kernel *kernel) {
    const int64_t *block = kernel->contract.block;
    return block[0] * block[1] * block[2];
}

int64_t tk_kgroup_size(const tk_kernel *kernel, const tk_kop *op) {
    switch (tk_kop_attr(op, TK_KA_group)) {
    case TK_KG_THREAD:
        return 1;
    case TK_KG_WARP:
        return 32;
    case TK_KG_WARPGROUP:
        return 128;
    case TK_KG_BLOCK:
        return block_threads(kernel);
    default:
        return 32 * tk_kop_attr(op, TK_KA_count);
    }
}

val tk_kgroup_thread(tk_kput *p) {
    const int64_t *block = p->kernel->contract.block;
    val number = NULL;
    for (int axis = 2; axis >= 0; axis--) {
        tk_kput_attr attr = {TK_KA_axis, axis};
        if (block[axis] == 1 && axis) continue;
        val own = tk_kput_op(p, TK_KOP_thread_index, 0, NULL, 1, &attr, (tk_ktype){0});
        if (number)
            number = tk_kput_2(p, TK_KOP_mul, number, tk_kput_index(p, TK_K_I32, block[axis]));
        number = number ? tk_kput_2(p, TK_KOP_add, number, own) : own;
    }
    return number;
}

val tk_kgroup_member(tk_kput *p, const tk_kop *op) {
    int64_t group = tk_kop_attr(op, TK_KA_group), size = tk_kgroup_size(p->kernel, op);
    if (group == TK_KG_THREAD) return tk_kput_index(p, TK_K_I32, 0);
    val number = tk_kgroup_thread(p);
    if (group == TK_KG_BLOCK) return number;
    if (group == TK_KG_WARPS)
        return tk_kput_2(p, TK_KOP_sub, number,
                         tk_kput_index(p, TK_K_I32, 32 * tk_kop_attr(op, TK_KA_first)));
    return tk_kput_2(p, TK_KOP_and, number, tk_kput_index(p, TK_K_I32, size - 1));
}

/* ---- sizes ---- */

const tk_layout *tk_ktile_layout(const tk_kernel *kernel, const tk_kvalue *tile) {
    return &tk_ktype_layout(kernel, tile->type)->outer;
}

static int64_t size_of(const tk_layout *layout) {
    tk_term size;
    tk_status status = tk_layout_size(layout, &size);
    return status == TK_OK && size.kind == TK_TERM_STATIC ? size.value : -1;
}

int64_t tk_ktile_size(const tk_kernel *kernel, const tk_kvalue *tile) {
    return size_of(tk_ktile_layout(kernel, tile));
}

int64_t tk_ktile_mode(const tk_layout *layout, int index) {
    tk_layout mode;
    if (tk_layout_rank(layout) <= index || tk_layout_mode(layout, index, &mode) != TK_OK) return 1;
    return size_of(&mode);
}

/* ---- elements ---- */

tk_ktype tk_ktile_lanes(const tk_kvalue *tile, int64_t lanes) {
    tk_kscalar element = (tk_kscalar)tile->type.scalar;
    return lanes == 1 ? tk_ktype_scalar(element) : tk_ktype_vector(element, (int)lanes);
}

static val locate(tk_kput *p, const char *coord, size_t count, val const *operands) {
    uint32_t text = 0;
    tk_ktype type = operands[0]->type;
    if (*p->status == TK_OK) *p->status = tk_kernel_string(p->kernel, coord, strlen(coord), &text);
    tk_kput_attr attr = {TK_KA_coord, text};
    return tk_kput_op(p, TK_KOP_locate, count, operands, 1, &attr,
                      tk_ktype_pointer((tk_kscalar)type.scalar, (tk_kspace)type.space));
}

val tk_ktile_locate(tk_kput *p, val tile, val number) {
    bool wide = number && number->type.scalar == TK_K_I64;
    return locate(p, wide ? "?{i64}" : "?", 2, (val[]){tile, number});
}

val tk_ktile_locate_2(tk_kput *p, val tile, val row, val column) {
    return locate(p, "(?,?)", 3, (val[]){tile, row, column});
}

static tk_kput_attr register_index(const tk_kput *p, val tile, val at) {
    int64_t number = 0;
    if (at) tk_kvalue_integer(at, &number);
    return (tk_kput_attr){TK_KA_index, tk_layout_at(tk_ktile_layout(p->kernel, tile), number)};
}

val tk_ktile_read(tk_kput *p, val tile, val at, int64_t lanes, val condition) {
    if (tk_ktile_is_registers(tile)) {
        tk_kput_attr index = register_index(p, tile, at);
        return tk_kput_op(p, TK_KOP_get, 1, &tile, 1, &index, tk_ktile_lanes(tile, lanes));
    }
    val operands[] = {tk_ktile_locate(p, tile, at), condition, NULL, NULL};
    return tk_kput_op(p, TK_KOP_load, 4, operands, 0, NULL, tk_ktile_lanes(tile, lanes));
}

void tk_ktile_write(tk_kput *p, val tile, val at, val value, val condition) {
    if (tk_ktile_is_registers(tile)) {
        tk_kput_attr index = register_index(p, tile, at);
        tk_kput_op(p, TK_KOP_set, 2, (val[]){tile, value}, 1, &index, (tk_ktype){0});
        return;
    }
    val operands[] = {tk_ktile_locate(p, tile, at), value, condition, NULL};
    tk_kput_op(p, TK_KOP_store, 4, operands, 0, NULL, (tk_ktype){0});
}

/* ---- alignment ---- */

static uint64_t divisor_of(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* What divides every sum of multiples of the strides; 0 when all of them are 0. */
static uint64_t stride_divisor(const tk_layout *layout) {
    uint64_t all = 0;
    for (int i = 0; i < layout->leaf_count; i++) {
        tk_term shape = layout->leaf[i].shape, stride = layout->leaf[i].stride;
        bool one = shape.kind == TK_TERM_STATIC && shape.value == 1;
        if (!one)
            all = divisor_of(all, (uint64_t)(stride.value < 0 ? -stride.value : stride.value));
    }
    return all;
}

/* In elements: by what the first element of a cut view lies away from that of the view. */
static uint64_t tile_step(const tk_kernel *kernel, const tk_kop *op, const tk_layout *from) {
    tk_tiler tiler;
    tk_layout all, rest;
    if (tk_tiler_parse(tk_kop_text(kernel, op, TK_KA_tiler), &tiler) != TK_OK ||
        tk_layout_zipped_divide(from, &tiler, &all) != TK_OK ||
        tk_layout_mode(&all, 1, &rest) != TK_OK)
        return 1;
    return stride_divisor(&rest);
}

static uint64_t slice_step(const tk_kernel *kernel, const tk_kop *op, const tk_layout *from) {
    tk_tuple coord, part;
    tk_layout mode;
    uint64_t all = 0;
    if (tk_tuple_parse(tk_kop_text(kernel, op, TK_KA_coord), &coord) != TK_OK ||
        tk_tuple_rank(&coord) != tk_layout_rank(from))
        return 1;
    for (int i = 0; i < tk_tuple_rank(&coord); i++) {
        if (tk_tuple_mode(&coord, i, &part) != TK_OK || part.leaf_count != 1) return 1;
        if (part.leaf[0].kind == TK_TERM_ANY) continue;
        if (tk_layout_mode(from, i, &mode) != TK_OK) return 1;
        all = divisor_of(all, stride_divisor(&mode));
    }
    return all;
}

static uint64_t part_step(const tk_kernel *kernel, const tk_kop *op, const tk_layout *from) {
    tk_layout through, seen, threads;
    if (tk_layout_parse(tk_kop_text(kernel, op, TK_KA_layout), &through) != TK_OK ||
        tk_layout_composition(from, &through, &seen) != TK_OK ||
        tk_layout_mode(&seen, 0, &threads) != TK_OK)
        return 1;
    return stride_divisor(&threads);
}

/* The view or buffer that a tile is cut from. */
static const tk_kop *origin_of(const tk_kvalue *tile) {
    const tk_kop *op = tile->kind == TK_KV_RESULT ? tile->op : NULL;
    while (op && op->code != TK_KOP_view && op->code != TK_KOP_view_of) {
        bool cut = op->code == TK_KOP_tile || op->code == TK_KOP_slice ||
                   op->code == TK_KOP_partition || op->code == TK_KOP_compose;
        const tk_kvalue *from = cut ? op->operands[0] : NULL;
        op = from && from->kind == TK_KV_RESULT ? from->op : NULL;
    }
    return op;
}

/* What divides the offset, in bytes, that a layout adds before its swizzle; 0: all does. */
static uint64_t offset_divisor(const tk_kernel *kernel, const tk_kvalue *view, uint64_t bytes) {
    const tk_composed *c = tk_ktype_layout(kernel, view->type);
    if (c->inner == TK_INNER_NONE) return 0;
    tk_term offset = c->offset.leaf[0];
    if (c->offset.leaf_count != 1 || offset.kind != TK_TERM_STATIC) return bytes;
    return (uint64_t)(offset.value < 0 ? -offset.value : offset.value) * bytes;
}

/* Bytes that divide the address of a tile's first element, before a swizzle. */
uint64_t tk_ktile_alignment(const tk_klowerer *w, const tk_kvalue *tile) {
    const tk_kop *op = tile->kind == TK_KV_RESULT ? tile->op : NULL;
    uint64_t bytes = (uint64_t)tk_kscalar_bytes((tk_kscalar)tile->type.scalar), step;
    if (!op || !origin_of(tile)) return 1;
    if (op->code == TK_KOP_view_of)
        return divisor_of((uint64_t)tk_kop_attr(op->operands[0]->op, TK_KA_align),
                          offset_divisor(w->kernel, tile, bytes));
    if (op->code == TK_KOP_view)
        return divisor_of(op->operands[0]->id < w->count ? w->facts[op->operands[0]->id].divisor
                                                         : 1,
                          offset_divisor(w->kernel, tile, bytes));
    const tk_layout *from = tk_ktile_layout(w->kernel, op->operands[0]);
    switch (op->code) {
    case TK_KOP_tile:
        step = tile_step(w->kernel, op, from);
        break;
    case TK_KOP_slice:
        step = slice_step(w->kernel, op, from);
        break;
    case TK_KOP_partition:
        step = part_step(w->kernel, op, from);
        break;
    default:
        step = 0;
    }
    return divisor_of(tk_ktile_alignment(w, op->operands[0]), step * bytes);
}

/* Whether the divisors that the layout of the tile's view states are proven. */
static bool divisors_hold(const tk_klowerer *w, const tk_kvalue *tile) {
    const tk_kop *op = origin_of(tile);
    if (!op || op->code == TK_KOP_view_of) return op != NULL;
    const tk_composed *layout = tk_ktype_layout(w->kernel, op->results[0]->type);
    for (uint32_t i = 1; i < op->n_operands; i++) {
        int64_t stated = tk_kleaf_at(layout, (int)i - 1).value;
        const tk_kvalue *leaf = op->operands[i];
        uint64_t proven = leaf->id < w->count ? w->facts[leaf->id].divisor : 1;
        if (proven % (uint64_t)(stated > 0 ? stated : 1)) return false;
    }
    return true;
}

/* ---- vectors ---- */

enum { MOST_LOOKED_AT = 1 << 20 };

/* Static layouts are looked at element by element. */
static bool is_static_together(const tk_layout *layout, int64_t size, bool memory, int64_t lanes) {
    for (int64_t v = 0; v < size; v += lanes) {
        int64_t first = tk_layout_at(layout, v);
        if (memory && first % lanes) return false;
        for (int64_t i = 1; i < lanes; i++)
            if (tk_layout_at(layout, v + i) != first + i) return false;
    }
    return true;
}

/* Others leaf by leaf: the first ones make a run, the strides of the rest keep it aligned. */
static bool is_dynamic_together(const tk_layout *layout, int64_t lanes) {
    int64_t run = 1;
    for (int i = 0; i < layout->leaf_count; i++) {
        tk_term shape = layout->leaf[i].shape, stride = layout->leaf[i].stride;
        if (shape.kind == TK_TERM_STATIC && shape.value == 1) continue;
        if (run >= lanes) {
            if (stride.value % lanes) return false;
            continue;
        }
        if (shape.kind != TK_TERM_STATIC || stride.kind != TK_TERM_STATIC || stride.value != run)
            return false;
        run *= shape.value;
        if (run >= lanes && run % lanes) return false;
    }
    return run >= lanes;
}

bool tk_ktile_is_together(const tk_klowerer *w, const tk_kvalue *tile, const tk_composed *c,
                          int64_t lanes) {
    int64_t size = size_of(&c->outer), bytes = tk_kscalar_bytes((tk_kscalar)tile->type.scalar);
    bool memory = !tk_ktile_is_registers(tile), whole = tk_layout_is_static(&c->outer);
    if (lanes == 1) return true;
    if (size < 0 || size > MOST_LOOKED_AT || size % lanes || (!whole && !divisors_hold(w, tile)))
        return false;
    if (c->inner != TK_INNER_NONE &&
        (c->inner != TK_INNER_SWIZZLE || (int64_t)1 << c->swizzle.base < lanes))
        return false;
    if (!(whole ? is_static_together(&c->outer, size, memory, lanes)
                : is_dynamic_together(&c->outer, lanes)))
        return false;
    return !memory || tk_ktile_alignment(w, tile) % (uint64_t)(lanes * bytes) == 0;
}

/* ---- the other order ---- */

/* Leaves of a mode, each with the number of elements before it in the order of the tile. */
static bool add_leaves(const tk_layout *layout, int index, int64_t before, int64_t *shape,
                       int64_t *stride, int *count) {
    tk_layout mode;
    if (tk_layout_mode(layout, index, &mode) != TK_OK) return false;
    for (int i = 0; i < mode.leaf_count; i++) {
        if (mode.leaf[i].shape.kind != TK_TERM_STATIC || *count == TK_LAYOUT_MAX_LEAVES)
            return false;
        shape[*count] = mode.leaf[i].shape.value;
        stride[(*count)++] = before;
        before *= mode.leaf[i].shape.value;
    }
    return true;
}

/* (C,R):(R,1), through which (R,C) is seen with its modes exchanged, leaf by leaf. */
static bool turning_layout(const tk_layout *layout, tk_layout *out) {
    int64_t shape[TK_LAYOUT_MAX_LEAVES], stride[TK_LAYOUT_MAX_LEAVES];
    int count = 0;
    if (tk_layout_rank(layout) != 2 || size_of(layout) < 0) return false;
    return add_leaves(layout, 1, tk_ktile_mode(layout, 0), shape, stride, &count) &&
           add_leaves(layout, 0, 1, shape, stride, &count) &&
           tk_layout_from_ints(count, shape, stride, out) == TK_OK;
}

bool tk_ktile_turned(const tk_kernel *kernel, const tk_kvalue *tile, tk_composed *out) {
    const tk_composed *from = tk_ktype_layout(kernel, tile->type);
    tk_layout through, seen;
    if (tk_ktile_is_registers(tile) || !turning_layout(&from->outer, &through) ||
        tk_layout_composition(&from->outer, &through, &seen) != TK_OK)
        return false;
    memcpy(out, from, sizeof *out);
    tk_layout_copy(&seen, &out->outer);
    return true;
}

val tk_ktile_turn(tk_kput *p, val tile) {
    tk_composed layout;
    tk_layout through;
    char text[512];
    uint32_t words = 0, number = 0;
    if (*p->status != TK_OK || !tk_ktile_turned(p->kernel, tile, &layout) ||
        !turning_layout(tk_ktile_layout(p->kernel, tile), &through))
        return tile;
    tk_layout_print(&through, text, sizeof text);
    *p->status = tk_kernel_string(p->kernel, text, strlen(text), &words);
    if (*p->status == TK_OK) *p->status = tk_kernel_layout(p->kernel, &layout, &number);
    tk_kput_attr attr = {TK_KA_layout, words};
    tk_ktype type = tile->type;
    type.layout = number;
    return tk_kput_op(p, TK_KOP_compose, 1, &tile, 1, &attr, type);
}
