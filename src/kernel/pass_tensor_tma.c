/* copy by TMA: one thread of the group moves the tile as the box of a tensor map.
 *
 * The global side is a tile of a view, and the map must say the same: the view's pointer is the
 * map's base, its modes are the map's axes by extent and stride, the tile is the box. Coordinates
 * follow from the tile's. The shared side must lie as TMA writes: the first axis fastest, swizzled
 * as the map says. So the copy means what it means element by element, and what does not fit is
 * refused. Beyond the tensor TMA reads zeros and writes nothing.
 *
 * The barrier's expected bytes, and commit and wait of a store, are the kernel's own. */
#include <string.h>

#include "base/error.h"
#include "kernel/lower.h"

typedef tk_kvalue *val;

enum { MOST_ELEMENTS = 1 << 18 };

typedef struct mover {
    const tk_kernel *kernel;
    const tk_kmap *map;
    const tk_kop *view, *cut; /* cut NULL: the whole view is the box */
    val shared;
    int axis[5]; /* of each mode of the view */
} mover;

static tk_status refuse(const char *why) {
    return tk_fail(TK_UNSUPPORTED, "copy: by TMA: %s", why);
}

/* ---- the view and the map ---- */

/* Whether an expression of the contract is the product of a value (a parameter, or a number) and
 * `times`. */
static bool is_product(const tk_kernel *kernel, int32_t number, tk_term term, const tk_kvalue *leaf,
                       int64_t times) {
    const tk_kexpr *e = &kernel->contract.exprs.items[number];
    if (e->kind == TK_KX_CONST) {
        if (term.kind == TK_TERM_STATIC) return e->value == term.value * times;
        int64_t constant;
        return leaf && tk_kvalue_integer(leaf, &constant) && e->value == constant * times;
    }
    if (term.kind == TK_TERM_STATIC || !leaf) return false;
    while (leaf->kind == TK_KV_RESULT &&
           (leaf->op->code == TK_KOP_extend_signed || leaf->op->code == TK_KOP_assume))
        leaf = leaf->op->operands[0];
    if (e->kind == TK_KX_MUL) {
        const tk_kexpr *left = &kernel->contract.exprs.items[e->left],
                       *right = &kernel->contract.exprs.items[e->right];
        if (left->kind == TK_KX_CONST) {
            const tk_kexpr *swap = left;
            left = right, right = swap;
        }
        if (right->kind != TK_KX_CONST || right->value != times) return false;
        e = left;
    } else if (times != 1) {
        return false;
    }
    return e->kind == TK_KX_PARAM && leaf->kind == TK_KV_PARAM && leaf->index == e->value;
}

/* The operand behind a dynamic leaf: shapes first, then strides. */
static const tk_kvalue *leaf_value(const tk_kop *view, const tk_layout *layout, int mode,
                                   bool of_stride) {
    uint32_t at = 1;
    for (int i = 0; i < layout->leaf_count; i++) {
        if (!of_stride && i == mode) break;
        at += layout->leaf[i].shape.kind != TK_TERM_STATIC;
    }
    for (int i = 0; of_stride && i < mode; i++) at += layout->leaf[i].stride.kind != TK_TERM_STATIC;
    return at < view->n_operands ? view->operands[at] : NULL;
}

static bool is_axis(const mover *m, const tk_layout *layout, int mode, int axis) {
    tk_leaf leaf = layout->leaf[mode];
    int64_t bytes = tk_kscalar_bytes(m->map->element);
    bool last = leaf.shape.kind != TK_TERM_STATIC, far = leaf.stride.kind != TK_TERM_STATIC;
    const tk_kvalue *extent = last ? leaf_value(m->view, layout, mode, false) : NULL,
                    *stride = far ? leaf_value(m->view, layout, mode, true) : NULL;
    if (!is_product(m->kernel, m->map->extent[axis], leaf.shape, extent, 1)) return false;
    if (axis == 0) return leaf.stride.kind == TK_TERM_STATIC && leaf.stride.value == 1;
    return is_product(m->kernel, m->map->stride[axis - 1], leaf.stride, stride, bytes);
}

static tk_status match_axes(mover *m) {
    const tk_layout *layout = tk_ktile_layout(m->kernel, m->view->results[0]);
    unsigned taken = 0;
    if (layout->leaf_count != m->map->rank || tk_layout_rank(layout) != m->map->rank)
        return refuse("the view's modes are not the axes of the tensor map");
    for (int mode = 0; mode < m->map->rank; mode++) {
        int axis = 0;
        while (axis < m->map->rank && (taken >> axis & 1 || !is_axis(m, layout, mode, axis)))
            axis++;
        if (axis == m->map->rank)
            return refuse("extents and strides of the view are not those of the tensor map");
        taken |= 1u << axis;
        m->axis[mode] = axis;
    }
    return TK_OK;
}

/* ---- the tile and the box ---- */

static tk_status match_box(const mover *m, val tile) {
    const tk_layout *layout = tk_ktile_layout(m->kernel, tile);
    for (int mode = 0; mode < m->map->rank; mode++)
        if (tk_ktile_mode(layout, mode) != m->map->box[m->axis[mode]] ||
            m->map->element_stride[m->axis[mode]] != 1)
            return refuse("the tile is not the box of the tensor map");
    return TK_OK;
}

static int64_t swizzled(int64_t offset, tk_swizzle s) {
    int from = s.base + (s.shift > 0 ? s.shift : 0);
    int64_t bits = offset & (((((int64_t)1 << s.bits) - 1)) << from);
    return offset ^ (s.shift > 0 ? bits >> s.shift : bits << -s.shift);
}

/* Where TMA puts the element, in bytes: units of 16 bytes change places with the line of 128. */
static int64_t place_in_box(const mover *m, const int64_t *at) {
    int64_t linear = 0, bytes = tk_kscalar_bytes(m->map->element);
    for (int axis = m->map->rank - 1; axis >= 0; axis--)
        linear = linear * m->map->box[axis] + at[axis];
    linear *= bytes;
    int bits = m->map->swizzle == 128 ? 3 : m->map->swizzle == 64 ? 2 : m->map->swizzle == 32;
    return swizzled(linear, (tk_swizzle){.bits = bits, .base = 4, .shift = 3});
}

/* The tile may lie anywhere in its buffer, so its own elements do not tell which swizzle it is. */
static bool has_swizzle_of_map(const mover *m, const tk_composed *c) {
    int64_t bytes = tk_kscalar_bytes(m->map->element), width = m->map->swizzle;
    if (c->inner == TK_INNER_NONE) return width == 0;
    return bytes << c->swizzle.base == 16 && (int64_t)16 << c->swizzle.bits == width &&
           c->swizzle.shift == 3;
}

static tk_status match_shared(const tk_klowerer *w, const mover *m) {
    const tk_composed *c = tk_ktype_layout(m->kernel, m->shared->type);
    int64_t bytes = tk_kscalar_bytes(m->map->element), size = 1;
    int64_t align = m->map->swizzle ? 8 * m->map->swizzle : 128;
    if (!tk_layout_is_static(&c->outer) || c->inner == TK_INNER_LAYOUT)
        return refuse("the layout in shared memory is not static");
    if (!has_swizzle_of_map(m, c))
        return refuse("the swizzle in shared memory is not that of the tensor map");
    for (int mode = 0; mode < m->map->rank; mode++) {
        if (tk_ktile_mode(&c->outer, mode) != m->map->box[m->axis[mode]])
            return refuse("the tile in shared memory has other modes than the box");
        size *= m->map->box[mode];
        if (size > MOST_ELEMENTS) return refuse("the box is larger than shared memory");
    }
    for (int64_t number = 0; number < size; number++) {
        int64_t at[5] = {0}, rest = number;
        for (int mode = 0; mode < m->map->rank; mode++) {
            int64_t extent = m->map->box[m->axis[mode]];
            at[m->axis[mode]] = rest % extent;
            rest /= extent;
        }
        int64_t offset = tk_layout_at(&c->outer, number);
        if (c->inner == TK_INNER_SWIZZLE) offset = swizzled(offset, c->swizzle);
        if (offset * bytes != place_in_box(m, at))
            return refuse("the layout in shared memory is not that of the box and its swizzle");
    }
    if (tk_ktile_alignment(w, m->shared) % (uint64_t)align == 0) return TK_OK;
    return tk_fail(TK_UNSUPPORTED,
                   "copy: by TMA: the tile in shared memory is not proven to lie at a multiple of "
                   "%lld bytes",
                   (long long)align);
}

/* ---- the operation ---- */

static const tk_kop *op_of(const tk_kvalue *value, tk_kopcode code) {
    return value->kind == TK_KV_RESULT && value->op->code == code ? value->op : NULL;
}

static tk_status find_view(const tk_kop *op, val global, mover *m) {
    const tk_kvalue *map = op->operands[4];
    if (!map || map->kind != TK_KV_PARAM || !m->kernel->contract.params.items[map->index].map)
        return refuse("it needs map=, a parameter");
    m->map = m->kernel->contract.params.items[map->index].map;
    m->cut = op_of(global, TK_KOP_tile);
    m->view = op_of(m->cut ? m->cut->operands[0] : global, TK_KOP_view);
    if (!m->view || m->view->operands[0] != m->map->base ||
        global->type.scalar != (unsigned)m->map->element ||
        m->shared->type.scalar != (unsigned)m->map->element)
        return refuse("the global side is a view, or a tile of one, of the tensor map's base");
    return TK_OK;
}

/* Coordinates in the order of the axes. */
static tk_status put_coords(tk_kput *p, const mover *m, val *out) {
    tk_tuple coord;
    uint32_t next = 1;
    for (int axis = 0; axis < m->map->rank; axis++) out[axis] = tk_kput_index(p, TK_K_I32, 0);
    if (!m->cut) return *p->status;
    TK_TRY(tk_tuple_parse(tk_kop_text(p->kernel, m->cut, TK_KA_coord), &coord));
    if (coord.leaf_count != m->map->rank) return refuse("a coordinate for each mode of the tile");
    for (int mode = 0; mode < m->map->rank; mode++) {
        tk_term leaf = coord.leaf[mode];
        int64_t each = m->map->box[m->axis[mode]];
        if (leaf.kind == TK_TERM_ANY) return refuse("a coordinate for each mode of the tile");
        if (leaf.kind == TK_TERM_STATIC) {
            out[m->axis[mode]] = tk_kput_index(p, TK_K_I32, leaf.value * each);
            continue;
        }
        val number = m->cut->operands[next++];
        if (number->type.scalar == TK_K_I64)
            number = tk_kput_as(p, TK_KOP_truncate, number, TK_K_I32);
        out[m->axis[mode]] = tk_kput_2(p, TK_KOP_mul, number, tk_kput_index(p, TK_K_I32, each));
    }
    return *p->status;
}

static tk_status put_copy(tk_kput *p, const tk_kop *op, const mover *m, bool load) {
    val coords[5], map = op->operands[4], zero = tk_kput_index(p, TK_K_I32, 0);
    TK_TRY(put_coords(p, m, coords));
    val place = tk_ktile_locate(p, m->shared, zero);
    val loading[10] = {place, map, op->operands[3], NULL, NULL}, storing[8] = {map, place, NULL};
    memcpy(loading + 5, coords, sizeof *coords * (size_t)m->map->rank);
    memcpy(storing + 3, coords, sizeof *coords * (size_t)m->map->rank);
    size_t count = (load ? 5 : 3) + (size_t)m->map->rank;
    tk_kput_op(p, load ? TK_KOP_tma_load : TK_KOP_tma_store, count, load ? loading : storing, 0,
               NULL, (tk_ktype){0});
    return *p->status;
}

/* Only one thread of the group, where the condition holds. */
static tk_status alone(tk_kput *p, const tk_kop *op, tk_kput *out) {
    val condition = op->operands[2], first = NULL;
    *out = *p;
    if (tk_kop_attr(op, TK_KA_group) != TK_KG_THREAD)
        first = tk_kput_compare(p, TK_KOP_icmp, "eq", tk_kgroup_member(p, op),
                                tk_kput_index(p, TK_K_I32, 0));
    if (first && condition) first = tk_kput_2(p, TK_KOP_and, first, condition);
    if (!first) first = condition;
    return first ? tk_klower_if(p, first, out) : *p->status;
}

tk_status tk_klower_tma(const tk_klowerer *w, tk_kput *p, const tk_kop *op) {
    val source = op->operands[0], target = op->operands[1];
    mover m = {.kernel = p->kernel};
    tk_kput inner;
    bool load = target->type.space == TK_KS_SHARED && source->type.space == TK_KS_GLOBAL;
    bool store = target->type.space == TK_KS_GLOBAL && source->type.space == TK_KS_SHARED;
    if (source->type.kind != TK_KT_VIEW || target->type.kind != TK_KT_VIEW || (!load && !store))
        return refuse("it goes between global and shared memory");
    if (load == !op->operands[3])
        return refuse(load ? "a load needs barrier=" : "a store has no barrier");
    m.shared = load ? target : source;
    TK_TRY(find_view(op, load ? source : target, &m));
    TK_TRY(match_axes(&m));
    TK_TRY(match_box(&m, load ? source : target));
    TK_TRY(match_shared(w, &m));
    TK_TRY(alone(p, op, &inner));
    return put_copy(&inner, op, &m, load);
}
