/* View form to thread form: layouts become arithmetic on integers.
 *
 * A view is a pointer, an offset in elements and a layout with values. slice, tile and partition
 * move the offset, compose changes the layout, locate puts offset and layout together, through the
 * swizzle if there is one. Offsets into shared memory are i32, others i64. A part of a register
 * tensor is the tensor with a static offset, which goes into the index of what uses it.
 *
 * A view that a loop carries, a branch gives or a condition selects becomes its parts: pointer,
 * offset and the values of its dynamic leaves. What is static is in the type, so it is the same on
 * every way.
 *
 * Refused by name: inner layouts that are no swizzle, register tensors that are cut by what is not
 * known while compiling. */
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"
#include "kernel/sym.h"
#include "kernel/verify.h"

typedef tk_kvalue *val;

typedef struct lowered {
    tk_ksym sym;
    val base;         /* a pointer or register tensor; NULL of a layout */
    val offset;       /* elements; NULL: 0 */
    tk_kscalar index; /* type of offsets */
    bool swizzled;
    tk_swizzle swizzle;
} lowered;

typedef struct lowerer {
    tk_kernel *kernel;
    lowered **views; /* by value id */
    uint32_t count;
    tk_kexchange exchange;
} lowerer;

/* ---- views ---- */

static tk_status no_memory(void) { return tk_fail(TK_OUT_OF_MEMORY, "no memory for a pass"); }

static tk_status make(lowerer *w, const tk_kop *op, const lowered *like, lowered **out) {
    *out = tk_arena_alloc(&w->kernel->arena, sizeof **out);
    if (!*out) return no_memory();
    if (like) memcpy(*out, like, sizeof **out);
    w->views[op->results[0]->id] = *out;
    return TK_OK;
}

static tk_status set_swizzle(const tk_kernel *kernel, const tk_kop *op, lowered *v) {
    const tk_composed *layout = tk_ktype_layout(kernel, op->results[0]->type);
    if (layout->inner == TK_INNER_LAYOUT)
        return tk_fail(TK_UNSUPPORTED, "%s: a layout behind a layout is not lowered",
                       tk_kop_row_of(op->code)->name);
    v->swizzled = layout->inner == TK_INNER_SWIZZLE;
    v->swizzle = layout->swizzle;
    return TK_OK;
}

static tk_status leaf_offset(tk_kput *put, const tk_composed *layout, val const *leaves,
                             lowered *v) {
    if (layout->inner != TK_INNER_SWIZZLE) return TK_OK;
    tk_term term = layout->offset.leaf[0];
    if (layout->offset.leaf_count != 1)
        return tk_fail(TK_UNSUPPORTED, "an offset of several leaves is not lowered");
    if (term.kind == TK_TERM_STATIC)
        v->offset = term.value ? tk_kput_integer(put, v->index, term.value) : NULL;
    else
        v->offset = tk_ksym_as(put, v->index, *leaves);
    return *put->status;
}

static int dynamic_leaves(const tk_layout *layout) {
    int count = 0;
    for (int i = 0; i < layout->leaf_count; i++)
        count += (layout->leaf[i].shape.kind != TK_TERM_STATIC) +
                 (layout->leaf[i].stride.kind != TK_TERM_STATIC);
    return count;
}

/* 32 bits where all is known: a static layout of shared memory. */
static tk_kscalar index_of(tk_ktype type, const tk_layout *layout) {
    bool near =
        type.kind != TK_KT_VIEW || type.space == TK_KS_SHARED || type.space == TK_KS_CLUSTER;
    bool known = tk_layout_is_static(layout);
    return near && known && type.kind != TK_KT_LAYOUT ? TK_K_I32 : TK_K_I64;
}

/* layout, view, view_of */
static tk_status lower_source(lowerer *w, tk_kput *put, tk_kop *op) {
    tk_ktype type = op->results[0]->type;
    const tk_composed *layout = tk_ktype_layout(w->kernel, type);
    val *leaves = op->operands + (op->code == TK_KOP_layout ? 0 : 1);
    lowered *v;
    TK_TRY(make(w, op, NULL, &v));
    TK_TRY(set_swizzle(w->kernel, op, v));
    v->index = index_of(type, &layout->outer);
    tk_ksym_bind(&layout->outer, leaves, &v->sym);
    TK_TRY(leaf_offset(put, layout, leaves + dynamic_leaves(&layout->outer), v));
    if (op->code == TK_KOP_view) v->base = op->operands[0];
    if (op->code == TK_KOP_view_of)
        v->base = tk_kput_op(put, TK_KOP_address, 1, op->operands, 0, NULL,
                             tk_ktype_pointer((tk_kscalar)type.scalar, TK_KS_SHARED));
    return *put->status;
}

/* The lowered view of an operand, or a register tensor as it stands. */
static tk_status view_of(lowerer *w, val value, lowered **out) {
    *out = value->id < w->count ? w->views[value->id] : NULL;
    if (*out) return TK_OK;
    if (value->type.kind != TK_KT_REGISTERS)
        return tk_fail(TK_UNSUPPORTED, "a view of this origin is not lowered");
    lowered *v = tk_arena_alloc(&w->kernel->arena, sizeof *v);
    if (!v) return no_memory();
    tk_ksym_bind(&tk_ktype_layout(w->kernel, value->type)->outer, NULL, &v->sym);
    v->base = value;
    v->index = TK_K_I32;
    *out = v;
    return TK_OK;
}

/* ---- operations of the algebra, for tk_ksym_apply ---- */

typedef struct cut {
    tk_tuple coord;
    tk_layout layout; /* or a tiler */
    int64_t new_bits, old_bits;
} cut;

static tk_status do_slice(const void *arg, const tk_layout *layout, tk_layout *out) {
    return tk_layout_slice(layout, &((const cut *)arg)->coord, out);
}
static tk_status do_tile(const void *arg, const tk_layout *layout, tk_layout *out) {
    const cut *c = arg;
    tk_layout all;
    TK_TRY(tk_layout_zipped_divide(layout, &c->layout, &all));
    return tk_layout_mode(&all, 0, out);
}
static tk_status do_rest(const void *arg, const tk_layout *layout, tk_layout *out) {
    const cut *c = arg;
    tk_layout all;
    TK_TRY(tk_layout_zipped_divide(layout, &c->layout, &all));
    return tk_layout_mode(&all, 1, out);
}
static tk_status do_compose(const void *arg, const tk_layout *layout, tk_layout *out) {
    return tk_layout_composition(layout, &((const cut *)arg)->layout, out);
}
static tk_status do_threads(const void *arg, const tk_layout *layout, tk_layout *out) {
    tk_layout seen;
    TK_TRY(do_compose(arg, layout, &seen));
    return tk_layout_mode(&seen, 0, out);
}
static tk_status do_values(const void *arg, const tk_layout *layout, tk_layout *out) {
    tk_layout seen;
    TK_TRY(do_compose(arg, layout, &seen));
    return tk_layout_mode(&seen, 1, out);
}
static tk_status do_recast(const void *arg, const tk_layout *layout, tk_layout *out) {
    const cut *c = arg;
    return tk_layout_recast(layout, c->new_bits, c->old_bits, out);
}

static tk_status apply(tk_kput *put, const lowered *from, tk_ksym_op op, const cut *c,
                       lowered *to) {
    return tk_ksym_apply(put, from->index, &from->sym, op, c, &to->sym);
}

static tk_status lower_slice(lowerer *w, tk_kput *put, tk_kop *op, const lowered *from,
                             lowered *to) {
    cut c;
    TK_TRY(tk_tuple_parse(tk_kop_text(w->kernel, op, TK_KA_coord), &c.coord));
    val moved = tk_ksym_offset(put, from->index, &from->sym, &c.coord, op->operands + 1);
    to->offset = tk_ksym_plus(put, from->offset, moved);
    return apply(put, from, do_slice, &c, to);
}

static tk_status lower_tile(lowerer *w, tk_kput *put, tk_kop *op, const lowered *from,
                            lowered *to) {
    cut c;
    lowered *rest = tk_arena_alloc(&w->kernel->arena, sizeof *rest);
    if (!rest) return no_memory();
    TK_TRY(tk_tuple_parse(tk_kop_text(w->kernel, op, TK_KA_coord), &c.coord));
    TK_TRY(tk_tiler_parse(tk_kop_text(w->kernel, op, TK_KA_tiler), &c.layout));
    TK_TRY(apply(put, from, do_rest, &c, rest));
    val moved = tk_ksym_offset(put, from->index, &rest->sym, &c.coord, op->operands + 1);
    to->offset = tk_ksym_plus(put, from->offset, moved);
    return apply(put, from, do_tile, &c, to);
}

static tk_status lower_through(lowerer *w, tk_kput *put, tk_kop *op, const lowered *from,
                               lowered *to) {
    cut c;
    TK_TRY(tk_layout_parse(tk_kop_text(w->kernel, op, TK_KA_layout), &c.layout));
    if (op->code == TK_KOP_compose) return apply(put, from, do_compose, &c, to);
    lowered *threads = tk_arena_alloc(&w->kernel->arena, sizeof *threads);
    if (!threads) return no_memory();
    TK_TRY(apply(put, from, do_threads, &c, threads));
    tk_tuple whole;
    tk_tuple_from_term(tk_term_dynamic(TK_TERM_I32, 1), &whole);
    val moved = tk_ksym_offset(put, from->index, &threads->sym, &whole, op->operands + 1);
    to->offset = tk_ksym_plus(put, from->offset, moved);
    return apply(put, from, do_values, &c, to);
}

static tk_status lower_recast(tk_kput *put, tk_kop *op, const lowered *from, lowered *to) {
    tk_ktype type = op->results[0]->type;
    cut c = {.new_bits = 8 * tk_kscalar_bytes((tk_kscalar)type.scalar),
             .old_bits = 8 * tk_kscalar_bytes((tk_kscalar)op->operands[0]->type.scalar)};
    if (type.kind != TK_KT_VIEW)
        return tk_fail(TK_UNSUPPORTED, "recast: of a register tensor is not lowered");
    to->base = tk_kput_op(put, TK_KOP_pointer_cast, 1, &to->base, 0, NULL,
                          tk_ktype_pointer((tk_kscalar)type.scalar, (tk_kspace)type.space));
    if (from->offset) {
        int64_t wide = c.new_bits > c.old_bits ? c.new_bits / c.old_bits : c.old_bits / c.new_bits;
        to->offset = tk_ksym_arith(put, c.new_bits > c.old_bits ? TK_KOP_udiv : TK_KOP_mul,
                                   from->offset, tk_kput_integer(put, from->index, wide));
    }
    return apply(put, from, do_recast, &c, to);
}

static tk_status lower_cut(lowerer *w, tk_kput *put, tk_kop *op) {
    lowered *from, *to;
    TK_TRY(view_of(w, op->operands[0], &from));
    TK_TRY(make(w, op, from, &to));
    TK_TRY(set_swizzle(w->kernel, op, to));
    switch (op->code) {
    case TK_KOP_slice:
        return lower_slice(w, put, op, from, to);
    case TK_KOP_tile:
        return lower_tile(w, put, op, from, to);
    case TK_KOP_recast:
        return lower_recast(put, op, from, to);
    default:
        return lower_through(w, put, op, from, to);
    }
}

/* ---- locate, extent ---- */

/* x xor the bits of x at base + max(shift, 0), moved by shift. */
static val swizzle(tk_kput *put, tk_kscalar index, tk_swizzle s, val offset) {
    int from = s.base + (s.shift > 0 ? s.shift : 0), by = s.shift < 0 ? -s.shift : s.shift;
    int64_t mask = (((int64_t)1 << s.bits) - 1) << from;
    if (!offset || s.bits == 0) return offset;
    val bits = tk_kput_2(put, TK_KOP_and, offset, tk_kput_integer(put, index, mask));
    val moved = tk_kput_2(put, s.shift < 0 ? TK_KOP_shl : TK_KOP_ushr, bits,
                          tk_kput_integer(put, TK_K_I32, by));
    return tk_kput_2(put, TK_KOP_xor, offset, moved);
}

static tk_status lower_locate(lowerer *w, tk_kput *put, tk_kop *op) {
    lowered *v;
    tk_tuple coord;
    TK_TRY(view_of(w, op->operands[0], &v));
    TK_TRY(tk_tuple_parse(tk_kop_text(w->kernel, op, TK_KA_coord), &coord));
    val offset = tk_ksym_offset(put, v->index, &v->sym, &coord, op->operands + 1);
    offset = tk_ksym_plus(put, v->offset, offset);
    if (v->swizzled) offset = swizzle(put, v->index, v->swizzle, offset);
    val pointer = offset ? tk_kput_2(put, TK_KOP_offset, v->base, offset) : v->base;
    TK_TRY(*put->status);
    return tk_kexchange_set(&w->exchange, op->results[0], pointer);
}

static tk_status lower_extent(lowerer *w, tk_kput *put, tk_kop *op) {
    lowered *v;
    tk_kscalar type = (tk_kscalar)op->results[0]->type.scalar;
    TK_TRY(view_of(w, op->operands[0], &v));
    int mode = (int)tk_kop_attr(op, TK_KA_mode_index);
    val extent = tk_ksym_extent(put, v->index, &v->sym, mode);
    extent = tk_ksym_as(put, type, extent);
    TK_TRY(*put->status);
    return tk_kexchange_set(&w->exchange, op->results[0], extent);
}

/* ---- parts of register tensors ---- */

static int place_of(const tk_kop *op, tk_kattr_id id) {
    const uint8_t *ids = tk_kop_row_of(op->code)->attrs;
    for (int i = 0; ids[i]; i++)
        if (ids[i] == (unsigned)id + 1) return i;
    return -1;
}

static tk_kattr_id index_attr(const tk_kop *op, uint32_t operand) {
    static const tk_kattr_id products[] = {TK_KA_d_index, TK_KA_a_index, TK_KA_b_index,
                                           TK_KA_c_index};
    bool product = op->code == TK_KOP_mma || op->code == TK_KOP_wgmma;
    return product && operand < 4 ? products[operand] : TK_KA_index;
}

static tk_status use_part(lowerer *w, tk_kop *op, uint32_t operand) {
    const lowered *v = w->views[op->operands[operand]->id];
    int place = place_of(op, index_attr(op, operand));
    int64_t offset = 0;
    if (v->offset && !tk_kvalue_integer(v->offset, &offset))
        return tk_fail(TK_UNSUPPORTED, "%s: a part of a register tensor whose place is not known",
                       tk_kop_row_of(op->code)->name);
    if (place < 0)
        return tk_fail(TK_UNSUPPORTED, "%s: it takes no part of a register tensor",
                       tk_kop_row_of(op->code)->name);
    op->attrs[place] += offset;
    op->operands[operand] = v->base;
    return TK_OK;
}

static tk_status use_parts(lowerer *w, tk_kop *op) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
        val value = op->operands[i];
        if (!value || value->id >= w->count || !w->views[value->id]) continue;
        if (value->type.kind != TK_KT_REGISTERS)
            return tk_fail(TK_UNSUPPORTED, "%s: a view as an operand is not lowered",
                           tk_kop_row_of(op->code)->name);
        TK_TRY(use_part(w, op, i));
    }
    return TK_OK;
}

/* ---- views that are carried or selected ---- */

/* A list of values in which views become their parts; `types` alone is filled for new values. */
typedef struct parts {
    val *values;
    tk_ktype *types;
    uint32_t count;
} parts;

static bool is_view(tk_ktype type) { return type.kind == TK_KT_VIEW || type.kind == TK_KT_LAYOUT; }

static uint32_t parts_of(const tk_kernel *kernel, tk_ktype type) {
    if (!is_view(type)) return 1;
    return (type.kind == TK_KT_VIEW) + 1 +
           (uint32_t)dynamic_leaves(&tk_ktype_layout(kernel, type)->outer);
}

static bool has_views(uint32_t count, val const *values) {
    for (uint32_t i = 0; i < count; i++)
        if (values[i] && is_view(values[i]->type)) return true;
    return false;
}

static tk_status start_parts(lowerer *w, uint32_t count, val const *values, parts *out) {
    uint32_t room = 1;
    for (uint32_t i = 0; i < count; i++)
        room += values[i] ? parts_of(w->kernel, values[i]->type) : 1;
    *out = (parts){.values = tk_arena_alloc(&w->kernel->arena, room * sizeof *out->values),
                   .types = tk_arena_alloc(&w->kernel->arena, room * sizeof *out->types)};
    return out->values && out->types ? TK_OK : no_memory();
}

static void add_type(parts *list, tk_ktype type) { list->types[list->count++] = type; }

static void add_types(const tk_kernel *kernel, tk_ktype type, parts *list) {
    if (!is_view(type)) {
        add_type(list, type);
        return;
    }
    tk_ktype index = tk_ktype_scalar(index_of(type, &tk_ktype_layout(kernel, type)->outer));
    if (type.kind == TK_KT_VIEW)
        add_type(list, tk_ktype_pointer((tk_kscalar)type.scalar, (tk_kspace)type.space));
    uint32_t leaves = parts_of(kernel, type) - (type.kind == TK_KT_VIEW);
    for (uint32_t i = 0; i < leaves; i++) add_type(list, index);
}

static void add_value(parts *list, val value) { list->values[list->count++] = value; }

static void add_leaves(tk_kput *put, const lowered *v, tk_kscalar index, parts *list) {
    for (int i = 0; i < v->sym.layout.leaf_count; i++)
        if (v->sym.shape[i]) add_value(list, tk_ksym_as(put, index, v->sym.shape[i]));
    for (int i = 0; i < v->sym.layout.leaf_count; i++)
        if (v->sym.stride[i]) add_value(list, tk_ksym_as(put, index, v->sym.stride[i]));
}

static tk_status take_apart(lowerer *w, tk_kput *put, uint32_t count, val const *values,
                            parts *out) {
    TK_TRY(start_parts(w, count, values, out));
    for (uint32_t i = 0; i < count; i++) {
        lowered *v;
        if (!values[i] || !is_view(values[i]->type)) {
            add_value(out, values[i]);
            continue;
        }
        TK_TRY(view_of(w, values[i], &v));
        tk_kscalar index =
            index_of(values[i]->type, &tk_ktype_layout(w->kernel, values[i]->type)->outer);
        if (v->base) add_value(out, v->base);
        add_value(out,
                  v->offset ? tk_ksym_as(put, index, v->offset) : tk_kput_integer(put, index, 0));
        add_leaves(put, v, index, out);
    }
    return *put->status;
}

/* The view whose parts begin at `from`, as what the value stands for. */
static tk_status put_together(lowerer *w, val old, val const *from) {
    lowered *v = tk_arena_alloc(&w->kernel->arena, sizeof *v);
    const tk_composed *layout = tk_ktype_layout(w->kernel, old->type);
    if (!v) return no_memory();
    v->swizzled = layout->inner == TK_INNER_SWIZZLE;
    v->swizzle = layout->swizzle;
    v->index = index_of(old->type, &layout->outer);
    if (old->type.kind == TK_KT_VIEW) v->base = *from++;
    v->offset = *from++;
    tk_ksym_bind(&layout->outer, from, &v->sym);
    w->views[old->id] = v;
    return TK_OK;
}

/* What stood for the old values now stands for new ones. */
static tk_status exchange_all(lowerer *w, uint32_t count, val const *old, val const *fresh) {
    for (uint32_t i = 0; i < count; i++) {
        if (is_view(old[i]->type))
            TK_TRY(put_together(w, old[i], fresh));
        else
            TK_TRY(tk_kexchange_set(&w->exchange, old[i], *fresh));
        if (!is_view(old[i]->type)) (*fresh)->name = old[i]->name;
        fresh += parts_of(w->kernel, old[i]->type);
    }
    return TK_OK;
}

static tk_status open_operands(lowerer *w, tk_kop *op) {
    tk_status status = TK_OK;
    tk_kput put = tk_kput_before(w->kernel, op, &status);
    parts list;
    if (!has_views(op->n_operands, op->operands)) return TK_OK;
    TK_TRY(take_apart(w, &put, op->n_operands, op->operands, &list));
    op->operands = list.values;
    op->n_operands = list.count;
    return TK_OK;
}

static tk_status open_arguments(lowerer *w, tk_kblock *block) {
    parts list;
    uint32_t count = block->n_args;
    val *old = block->args;
    if (!has_views(count, old)) return TK_OK;
    TK_TRY(start_parts(w, count, old, &list));
    for (uint32_t i = 0; i < count; i++) add_types(w->kernel, old[i]->type, &list);
    block->args = list.values;
    block->n_args = list.count;
    for (uint32_t i = 0; i < list.count; i++) {
        TK_TRY(tk_kernel_value(w->kernel, TK_KV_ARGUMENT, list.types[i], &block->args[i]));
        block->args[i]->block = block;
        block->args[i]->index = i;
    }
    return exchange_all(w, count, old, block->args);
}

static tk_status open_results(lowerer *w, tk_kop *op) {
    parts list;
    uint32_t count = op->n_results;
    val *old = op->results;
    if (!has_views(count, old)) return TK_OK;
    TK_TRY(start_parts(w, count, old, &list));
    for (uint32_t i = 0; i < count; i++) add_types(w->kernel, old[i]->type, &list);
    TK_TRY(tk_kop_add_results(w->kernel, op, list.count, list.types));
    return exchange_all(w, count, old, op->results);
}

/* select of views: of each part. */
static tk_status lower_select(lowerer *w, tk_kput *put, tk_kop *op) {
    parts a, b;
    TK_TRY(take_apart(w, put, 1, op->operands + 1, &a));
    TK_TRY(take_apart(w, put, 1, op->operands + 2, &b));
    for (uint32_t i = 0; i < a.count; i++)
        if (a.values[i] != b.values[i])
            a.values[i] = tk_kput_3(put, TK_KOP_select, op->operands[0], a.values[i], b.values[i]);
    TK_TRY(*put->status);
    return put_together(w, op->results[0], a.values);
}

/* ---- the pass ---- */

static tk_status lower_op(lowerer *w, tk_kop *op) {
    tk_status status = TK_OK;
    tk_kput put = tk_kput_before(w->kernel, op, &status);
    switch (op->code) {
    case TK_KOP_layout:
    case TK_KOP_view:
    case TK_KOP_view_of:
        TK_TRY(lower_source(w, &put, op));
        break;
    case TK_KOP_slice:
    case TK_KOP_tile:
    case TK_KOP_partition:
    case TK_KOP_compose:
    case TK_KOP_recast:
        TK_TRY(lower_cut(w, &put, op));
        break;
    case TK_KOP_locate:
        TK_TRY(lower_locate(w, &put, op));
        break;
    case TK_KOP_extent:
        TK_TRY(lower_extent(w, &put, op));
        break;
    case TK_KOP_select:
        if (!is_view(op->results[0]->type)) return use_parts(w, op);
        TK_TRY(lower_select(w, &put, op));
        break;
    case TK_KOP_yield:
    case TK_KOP_condition:
        return open_operands(w, op);
    case TK_KOP_for:
    case TK_KOP_while:
    case TK_KOP_if:
        return open_results(w, op);
    default:
        return use_parts(w, op);
    }
    TK_TRY(status);
    tk_kop_unlink(op);
    return TK_OK;
}

static tk_status lower_block(lowerer *w, tk_kblock *block);

static tk_status lower_regions(lowerer *w, tk_kop *op) {
    if (!op->n_regions) return TK_OK;
    TK_TRY(open_operands(w, op));
    for (int i = 0; i < op->n_regions; i++) {
        TK_TRY(open_arguments(w, op->regions[i]));
        TK_TRY(lower_block(w, op->regions[i]));
    }
    return TK_OK;
}

static tk_status lower_block(lowerer *w, tk_kblock *block) {
    for (tk_kop *op = block->first, *next; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_operands; i++)
            op->operands[i] = tk_kexchange_get(&w->exchange, op->operands[i]);
        tk_status status = lower_regions(w, op);
        if (status == TK_OK) status = lower_op(w, op);
        if (status != TK_OK) return tk_kop_fail_at(w->kernel, op, status);
    }
    return TK_OK;
}

tk_status tk_kpass_run_view_to_thread(tk_kernel *kernel) {
    if (kernel->form == TK_KFORM_THREAD) return TK_OK;
    if (kernel->form == TK_KFORM_TENSOR)
        return tk_fail(TK_UNSUPPORTED,
                       "kernel %s is in the tensor form: tensor_to_view comes first", kernel->name);
    lowerer w = {.kernel = kernel, .count = kernel->n_values};
    w.views = tk_calloc((size_t)w.count + 1, sizeof *w.views);
    if (!w.views) return no_memory();
    kernel->form = TK_KFORM_THREAD;
    tk_status status = lower_block(&w, &kernel->body);
    if (status == TK_OK) tk_kexchange_apply(&w.exchange, kernel);
    tk_free(w.views);
    tk_vec_deinit(&w.exchange);
    return status;
}
