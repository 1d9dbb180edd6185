/* Checks of storage, layouts and views; the layout that an operation on a view gives is computed
 * here, and a stated one must be the same. */
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"

/* ---- dynamic leaves ---- */

static void leaf_terms(const tk_layout *layout, tk_term *terms, int *count) {
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].shape.kind != TK_TERM_STATIC) terms[(*count)++] = layout->leaf[i].shape;
    for (int i = 0; i < layout->leaf_count; i++)
        if (layout->leaf[i].stride.kind != TK_TERM_STATIC)
            terms[(*count)++] = layout->leaf[i].stride;
}

#define MOST_TERMS (5 * TK_LAYOUT_MAX_LEAVES)

static int all_terms(const tk_composed *layout, tk_term *terms) {
    int count = 0;
    if (layout->inner == TK_INNER_LAYOUT) leaf_terms(&layout->layout, terms, &count);
    leaf_terms(&layout->outer, terms, &count);
    if (layout->inner == TK_INNER_NONE) return count;
    for (int i = 0; i < layout->offset.leaf_count; i++)
        if (layout->offset.leaf[i].kind != TK_TERM_STATIC) terms[count++] = layout->offset.leaf[i];
    return count;
}

int tk_kleaf_count(const tk_composed *layout) {
    tk_term terms[MOST_TERMS];
    return all_terms(layout, terms);
}

tk_term tk_kleaf_at(const tk_composed *layout, int index) {
    tk_term terms[MOST_TERMS];
    all_terms(layout, terms);
    return terms[index];
}

/* ---- types ---- */

static bool is_static(const tk_composed *layout) { return tk_kleaf_count(layout) == 0; }

static int64_t static_size(const tk_composed *layout, bool span) {
    tk_term term;
    tk_status status =
        span ? tk_layout_cosize(&layout->outer, &term) : tk_layout_size(&layout->outer, &term);
    return status == TK_OK && term.kind == TK_TERM_STATIC ? term.value : -1;
}

int64_t tk_kregs_size(const tk_kernel *kernel, tk_ktype type) {
    return static_size(tk_ktype_layout(kernel, type), true);
}

static tk_status check_vector_type(tk_ktype type) {
    int lanes = type.lanes, bytes = tk_ktype_bytes(type);
    if (type.scalar >= TK_K_MBAR)
        return tk_fail(TK_DTYPE_ERROR, "%s is no type of values",
                       tk_kscalar_text((tk_kscalar)type.scalar));
    if (lanes == 1) return TK_OK;
    if (type.scalar == TK_K_I1 || lanes < 2 || lanes > 16 || (lanes & (lanes - 1)) || bytes > 16)
        return tk_fail(
            TK_DTYPE_ERROR,
            "%sx%d: a vector has 2, 4, 8 or 16 lanes and at most 16 bytes, and none of i1",
            tk_kscalar_text((tk_kscalar)type.scalar), lanes);
    return TK_OK;
}

#define MOST_REGISTERS 1024

static tk_status check_registers_type(const tk_kernel *kernel, tk_ktype type) {
    const tk_composed *layout = tk_ktype_layout(kernel, type);
    if (type.scalar >= TK_K_MBAR || !is_static(layout) || layout->inner != TK_INNER_NONE)
        return tk_fail(TK_SHAPE_ERROR,
                       "a register tensor holds numbers by a static layout without a swizzle");
    int64_t size = tk_kregs_size(kernel, type);
    if (size < 1 || size > MOST_REGISTERS)
        return tk_fail(TK_SHAPE_ERROR, "a register tensor of %lld elements, expected 1 to %d",
                       (long long)size, MOST_REGISTERS);
    if (type.tv && !is_static(kernel->layouts.items[type.tv - 1]))
        return tk_fail(TK_SHAPE_ERROR,
                       "the thread-value layout of a register tensor is not static");
    return TK_OK;
}

tk_status tk_ktype_check(const tk_kernel *kernel, tk_ktype type) {
    bool has_layout = type.kind >= TK_KT_LAYOUT;
    if (type.kind > TK_KT_REGISTERS || type.scalar >= TK_KSCALAR_COUNT ||
        type.space >= TK_KSPACE_COUNT ||
        (has_layout && (!type.layout || type.layout > kernel->layouts.count)) ||
        type.tv > kernel->layouts.count)
        return tk_fail(TK_DTYPE_ERROR,
                       "the type is none of this kernel: kind %d, scalar %d, space %d, layout %u",
                       type.kind, type.scalar, type.space, type.layout);
    if (type.kind == TK_KT_NUMBER) return check_vector_type(type);
    if (type.kind == TK_KT_REGISTERS) return check_registers_type(kernel, type);
    if (type.kind == TK_KT_SHARED &&
        (!is_static(tk_ktype_layout(kernel, type)) || type.scalar == TK_K_I1))
        return tk_fail(TK_SHAPE_ERROR,
                       "a shared buffer has a static layout and elements of whole bytes");
    return TK_OK;
}

/* ---- storage ---- */

static tk_status check_power(const tk_kop *op, tk_kattr_id id, int64_t most) {
    int64_t value = tk_kop_attr(op, id);
    if (value >= 1 && value <= most && !(value & (value - 1))) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "%s is %lld, expected a power of two up to %lld",
                          tk_kattr_row_of(id)->name, (long long)value, (long long)most);
}

tk_status tk_kcheck_align(const tk_kernel *kernel, const tk_kop *op) {
    (void)kernel;
    return check_power(op, TK_KA_align, 1024);
}

tk_status tk_kcheck_shared(const tk_kernel *kernel, const tk_kop *op) {
    int64_t offset = tk_kop_attr(op, TK_KA_offset), align = tk_kop_attr(op, TK_KA_align);
    TK_TRY(tk_kcheck_align(kernel, op));
    if (offset < -1 || (offset > 0 && offset % align))
        return tk_kcheck_fail(op, TK_INVALID_ARGUMENT,
                              "offset %lld is not a multiple of the alignment %lld",
                              (long long)offset, (long long)align);
    return TK_OK;
}

tk_status tk_kcheck_address(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype buffer = op->operands[0]->type, pointer = op->results[0]->type;
    if (pointer.space == TK_KS_SHARED && pointer.scalar == buffer.scalar) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "the address of %s is %s",
                          tk_ktype_words(kernel, buffer).text,
                          tk_ktype_words(kernel, pointer).text);
}

/* ---- layouts from leaves ---- */

static tk_status check_leaves(const tk_kernel *kernel, const tk_kop *op, uint32_t from,
                              const tk_composed *layout) {
    tk_term terms[MOST_TERMS];
    int count = all_terms(layout, terms);
    if (op->n_operands - from != (uint32_t)count)
        return tk_kcheck_fail(op, TK_SHAPE_ERROR, "%u leaves, the layout has %d dynamic ones",
                              op->n_operands - from, count);
    for (int i = 0; i < count; i++) {
        tk_ktype type = op->operands[from + (uint32_t)i]->type;
        if ((type.scalar == TK_K_I32) == (terms[i].kind == TK_TERM_I32)) continue;
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "leaf %d is %s, the layout says %s", i,
                              tk_ktype_words(kernel, type).text,
                              terms[i].kind == TK_TERM_I32 ? "i32" : "i64");
    }
    return TK_OK;
}

static const tk_composed *result_layout(const tk_kernel *kernel, const tk_kop *op) {
    return tk_ktype_layout(kernel, op->results[0]->type);
}

tk_status tk_kcheck_layout(const tk_kernel *kernel, const tk_kop *op) {
    return check_leaves(kernel, op, 0, result_layout(kernel, op));
}

static tk_status check_same_memory(const tk_kernel *kernel, const tk_kop *op, unsigned space) {
    tk_ktype from = op->operands[0]->type, to = op->results[0]->type;
    if (from.scalar == to.scalar && space == to.space) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s as %s: element type or space differ",
                          tk_ktype_words(kernel, from).text, tk_ktype_words(kernel, to).text);
}

tk_status tk_kcheck_view(const tk_kernel *kernel, const tk_kop *op) {
    TK_TRY(check_same_memory(kernel, op, op->operands[0]->type.space));
    return check_leaves(kernel, op, 1, result_layout(kernel, op));
}

tk_status tk_kcheck_view_of(const tk_kernel *kernel, const tk_kop *op) {
    TK_TRY(check_same_memory(kernel, op, TK_KS_SHARED));
    if (op->results[0]->type.layout == op->operands[0]->type.layout) return TK_OK;
    return tk_kcheck_fail(op, TK_SHAPE_ERROR, "the view has another layout than the buffer");
}

/* ---- operations on views ---- */

/* The coordinate of the operation; its dynamic leaves are the operands from `from` on. */
static tk_status read_coord(const tk_kernel *kernel, const tk_kop *op, uint32_t from,
                            tk_tuple *out) {
    TK_TRY(tk_tuple_parse(tk_kop_text(kernel, op, TK_KA_coord), out));
    int dynamic = 0;
    for (int i = 0; i < out->leaf_count; i++) {
        tk_term leaf = out->leaf[i];
        if (leaf.kind != TK_TERM_I32 && leaf.kind != TK_TERM_I64) continue;
        uint32_t at = from + (uint32_t)dynamic++;
        if (at >= op->n_operands) continue;
        if ((op->operands[at]->type.scalar == TK_K_I32) != (leaf.kind == TK_TERM_I32))
            return tk_kcheck_fail(op, TK_DTYPE_ERROR,
                                  "coordinate %d has another width than its operand", dynamic - 1);
    }
    if (op->n_operands - from == (uint32_t)dynamic) return TK_OK;
    return tk_kcheck_fail(op, TK_SHAPE_ERROR, "%u coordinates, \"%s\" has %d that are dynamic",
                          op->n_operands - from, tk_kop_text(kernel, op, TK_KA_coord), dynamic);
}

static void keep_inner(const tk_composed *from, const tk_layout *outer, tk_composed *out) {
    memcpy(out, from, sizeof *out);
    tk_layout_copy(outer, &out->outer);
}

static tk_status derive_slice(const tk_kernel *kernel, const tk_kop *op, const tk_composed *view,
                              tk_composed *out) {
    tk_tuple coord;
    tk_layout kept;
    TK_TRY(read_coord(kernel, op, 1, &coord));
    if (view->inner != TK_INNER_NONE) return tk_composed_slice(view, &coord, out);
    TK_TRY(tk_layout_slice(&view->outer, &coord, &kept));
    tk_composed_from_layout(&kept, out);
    return TK_OK;
}

static tk_status derive_tile(const tk_kernel *kernel, const tk_kop *op, const tk_composed *view,
                             tk_composed *out) {
    tk_tuple coord, offset, sum;
    tk_tiler tiler;
    tk_layout tile;
    TK_TRY(read_coord(kernel, op, 1, &coord));
    TK_TRY(tk_tiler_parse(tk_kop_text(kernel, op, TK_KA_tiler), &tiler));
    TK_TRY(tk_layout_local_tile(&view->outer, &tiler, &coord, &tile, &offset));
    keep_inner(view, &tile, out);
    if (view->inner == TK_INNER_NONE) return TK_OK;
    TK_TRY(tk_tuple_add(&view->offset, &offset, &sum));
    tk_tuple_copy(&sum, &out->offset);
    return TK_OK;
}

static tk_status derive_through(const tk_kernel *kernel, const tk_kop *op, const tk_composed *view,
                                tk_composed *out) {
    tk_layout through, seen, values;
    TK_TRY(tk_layout_parse(tk_kop_text(kernel, op, TK_KA_layout), &through));
    TK_TRY(tk_layout_composition(&view->outer, &through, &seen));
    if (op->code == TK_KOP_compose) return keep_inner(view, &seen, out), TK_OK;
    if (view->inner != TK_INNER_NONE)
        return tk_kcheck_fail(op, TK_UNSUPPORTED,
                              "a view with a swizzle is partitioned through compose and slice");
    TK_TRY(tk_layout_mode(&seen, 1, &values));
    return keep_inner(view, &values, out), TK_OK;
}

static tk_status derive_recast(const tk_kop *op, const tk_composed *view, tk_composed *out) {
    int64_t old_bits = 8 * tk_kscalar_bytes((tk_kscalar)op->operands[0]->type.scalar);
    int64_t new_bits = 8 * tk_kscalar_bytes((tk_kscalar)op->results[0]->type.scalar);
    return tk_composed_recast(view, new_bits, old_bits, out);
}

tk_status tk_kview_derive(const tk_kernel *kernel, const tk_kop *op, tk_composed *out) {
    const tk_composed *view = tk_ktype_layout(kernel, op->operands[0]->type);
    switch (op->code) {
    case TK_KOP_slice:
        return derive_slice(kernel, op, view, out);
    case TK_KOP_tile:
        return derive_tile(kernel, op, view, out);
    case TK_KOP_recast:
        return derive_recast(op, view, out);
    default:
        return derive_through(kernel, op, view, out);
    }
}

static tk_status check_derived(const tk_kernel *kernel, const tk_kop *op) {
    tk_composed expected;
    tk_ktype from = op->operands[0]->type, to = op->results[0]->type;
    if (from.kind != to.kind || from.space != to.space ||
        (from.scalar != to.scalar && op->code != TK_KOP_recast))
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s gives %s: kind, space or element type differ",
                              tk_ktype_words(kernel, from).text, tk_ktype_words(kernel, to).text);
    TK_TRY(tk_kview_derive(kernel, op, &expected));
    if (tk_composed_equal(&expected, tk_ktype_layout(kernel, to))) return TK_OK;
    char text[160];
    tk_composed_print(&expected, text, sizeof text);
    return tk_kcheck_fail(op, TK_SHAPE_ERROR, "the result has layout \"%s\", stated is %s", text,
                          tk_ktype_words(kernel, to).text);
}

tk_status tk_kcheck_slice(const tk_kernel *kernel, const tk_kop *op) {
    return check_derived(kernel, op);
}
tk_status tk_kcheck_tile(const tk_kernel *kernel, const tk_kop *op) {
    return check_derived(kernel, op);
}
tk_status tk_kcheck_partition(const tk_kernel *kernel, const tk_kop *op) {
    return check_derived(kernel, op);
}
tk_status tk_kcheck_compose(const tk_kernel *kernel, const tk_kop *op) {
    return check_derived(kernel, op);
}
tk_status tk_kcheck_recast(const tk_kernel *kernel, const tk_kop *op) {
    return check_derived(kernel, op);
}

tk_status tk_kcheck_locate(const tk_kernel *kernel, const tk_kop *op) {
    tk_tuple coord, shape;
    tk_ktype view = op->operands[0]->type, pointer = op->results[0]->type;
    if (view.scalar != pointer.scalar || view.space != pointer.space)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "an element of %s is not at %s",
                              tk_ktype_words(kernel, view).text,
                              tk_ktype_words(kernel, pointer).text);
    TK_TRY(read_coord(kernel, op, 1, &coord));
    tk_layout_shape(&tk_ktype_layout(kernel, view)->outer, &shape);
    if (tk_tuple_weakly_congruent(&coord, &shape)) return TK_OK;
    return tk_kcheck_fail(op, TK_SHAPE_ERROR, "the coordinate \"%s\" does not fit %s",
                          tk_kop_text(kernel, op, TK_KA_coord), tk_ktype_words(kernel, view).text);
}

tk_status tk_kcheck_extent(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype type = op->operands[0]->type;
    int64_t mode = tk_kop_attr(op, TK_KA_mode_index);
    if (type.kind != TK_KT_VIEW && type.kind != TK_KT_LAYOUT)
        return tk_kcheck_fail(op, TK_DTYPE_ERROR, "of %s, expected a view or layout",
                              tk_ktype_words(kernel, type).text);
    int rank = tk_layout_rank(&tk_ktype_layout(kernel, type)->outer);
    if (mode >= 0 && mode < rank) return TK_OK;
    return tk_kcheck_fail(op, TK_AXIS_ERROR, "mode %lld of %d", (long long)mode, rank);
}

/* ---- work of a group ---- */

static int64_t tile_size(const tk_kernel *kernel, tk_ktype type) {
    return static_size(tk_ktype_layout(kernel, type), false);
}

static tk_status check_group(const tk_kop *op) {
    int64_t first = tk_kop_attr(op, TK_KA_first), count = tk_kop_attr(op, TK_KA_count);
    if (first >= 0 && first < 32 && count >= 1 && count <= 32 - first) return TK_OK;
    return tk_kcheck_fail(op, TK_INVALID_ARGUMENT, "%lld warps from %lld on, of at most 32",
                          (long long)count, (long long)first);
}

tk_status tk_kcheck_group_copy(const tk_kernel *kernel, const tk_kop *op) {
    int64_t from = tile_size(kernel, op->operands[0]->type),
            to = tile_size(kernel, op->operands[1]->type);
    TK_TRY(check_group(op));
    if (from == to || from < 0 || to < 0) return TK_OK;
    bool spread = !op->operands[0]->type.tv != !op->operands[1]->type.tv;
    if (spread) return TK_OK; /* a fragment of a thread against the tile of the group */
    return tk_kcheck_fail(op, TK_SHAPE_ERROR, "%lld elements to %lld", (long long)from,
                          (long long)to);
}

tk_status tk_kcheck_fill(const tk_kernel *kernel, const tk_kop *op) {
    tk_ktype value = op->operands[1]->type;
    TK_TRY(check_group(op));
    if (value.lanes == 1 && value.scalar == op->operands[0]->type.scalar) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s into %s", tk_ktype_words(kernel, value).text,
                          tk_ktype_words(kernel, op->operands[0]->type).text);
}

tk_status tk_kcheck_gemm(const tk_kernel *kernel, const tk_kop *op) {
    TK_TRY(check_group(op));
    if (op->operands[0]->type.kind == TK_KT_REGISTERS) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "d is %s, expected a register tensor",
                          tk_ktype_words(kernel, op->operands[0]->type).text);
}

tk_status tk_kcheck_combine(const tk_kernel *kernel, const tk_kop *op) {
    TK_TRY(check_group(op));
    if (op->operands[0]->type.scalar == op->operands[1]->type.scalar) return TK_OK;
    return tk_kcheck_fail(op, TK_DTYPE_ERROR, "%s into %s",
                          tk_ktype_words(kernel, op->operands[0]->type).text,
                          tk_ktype_words(kernel, op->operands[1]->type).text);
}
