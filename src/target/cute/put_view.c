/* Views and layouts as values of the cute dialect.
 *
 * A layout is made of its dynamic leaves; known divisors stay out of the text, because no copy of
 * the package chooses a width here. An address is the view's base moved by what `crd2idx` gives for
 * a coordinate: the compiler computes in 64 bits where a leaf of either has 64. */
#include <inttypes.h>
#include <string.h>

#include "kernel/check.h"
#include "target/cute/cute.h"

static void forget_divisors(tk_tuple *tuple) {
    for (int i = 0; i < tuple->leaf_count; i++)
        if (!tk_term_is_static(tuple->leaf[i]) && tuple->leaf[i].kind != TK_TERM_ANY)
            tuple->leaf[i].value = 1;
}

const char *tk_cute_tuple_text(tk_cute *x, const tk_tuple *tuple) {
    size_t length = tk_tuple_print(tuple, NULL, 0);
    char *text = tk_arena_alloc(&x->arena, length + 1);
    if (!text) {
        x->body.failed = true;
        return "";
    }
    tk_tuple_print(tuple, text, length + 1);
    return text;
}

const char *tk_cute_layout_text(tk_cute *x, const tk_layout *layout) {
    size_t length = tk_layout_print(layout, NULL, 0);
    char *text = tk_arena_alloc(&x->arena, length + 1);
    if (!text) {
        x->body.failed = true;
        return "";
    }
    tk_layout_print(layout, text, length + 1);
    return text;
}

static int dynamic_leaves(const tk_tuple *tuple) {
    int count = 0;
    for (int i = 0; i < tuple->leaf_count; i++)
        count += tuple->leaf[i].kind == TK_TERM_I32 || tuple->leaf[i].kind == TK_TERM_I64;
    return count;
}

const char *tk_cute_tuple(tk_cute *x, const char *kind, const tk_tuple *given,
                          tk_kvalue *const *leaves, const char **out_text) {
    tk_tuple tuple = *given;
    forget_divisors(&tuple);
    uint32_t count = (uint32_t)dynamic_leaves(&tuple);
    const char *text = tk_cute_tuple_text(x, &tuple);
    if (out_text) *out_text = text;
    if (!count) return tk_cute_once(x, "cute.static : !cute.%s<\"%s\">", kind, text);
    return tk_cute_let(x, "cute.make_%s(%s) : (%s) -> !cute.%s<\"%s\">", kind,
                       tk_cute_list(x, count, leaves), tk_cute_types(x, count, leaves), kind, text);
}

/* ---- making ---- */

void tk_cute_join_layout(tk_cute *x, tk_cute_view *view, const char *offset_text) {
    const tk_swizzle *s = &view->known->swizzle;
    if (!view->swizzle) {
        view->layout = view->outer;
        view->type = tk_cute_text(x, "!cute.layout<\"%s\">", view->of_outer);
        return;
    }
    view->type = tk_cute_text(x, "!cute.composed_layout<\"S<%d,%d,%d> o %s o %s\">", s->bits,
                              s->base, s->shift, offset_text, view->of_outer);
    view->layout = tk_cute_let(x, "cute.make_composed_layout(%s, %s, %s) : %s", view->swizzle,
                               view->offset, view->outer, view->type);
}

/* Leaves come as those of shape, stride, offset. */
static tk_cute_view layout_of(tk_cute *x, const tk_kop *op, uint32_t first_leaf) {
    tk_kvalue *const *leaves = op->operands + first_leaf;
    tk_composed *known = tk_arena_alloc(&x->arena, sizeof *known);
    tk_cute_view view = {.base = NULL, .known = known};
    tk_tuple shape, stride;
    const char *shape_text, *stride_text, *offset_text = "";
    if (!known) {
        x->body.failed = true;
        return view;
    }
    memcpy(known, tk_ktype_layout(x->kernel, op->results[0]->type), sizeof *known);
    if (known->inner == TK_INNER_LAYOUT) tk_cute_fail(x, op, "of a layout after a layout");
    tk_layout_shape(&known->outer, &shape);
    tk_layout_stride(&known->outer, &stride);
    const char *s = tk_cute_tuple(x, "shape", &shape, leaves, &shape_text);
    leaves += dynamic_leaves(&shape);
    const char *d = tk_cute_tuple(x, "stride", &stride, leaves, &stride_text);
    leaves += dynamic_leaves(&stride);
    view.of_outer = tk_cute_text(x, "%s:%s", shape_text, stride_text);
    view.outer =
        tk_cute_let(x, "cute.make_layout(%s, %s) : !cute.layout<\"%s\">", s, d, view.of_outer);
    if (tk_layout_parse(view.of_outer, &known->outer) != TK_OK) tk_cute_fail(x, op, "the layout");
    if (known->inner == TK_INNER_SWIZZLE) {
        view.offset = tk_cute_tuple(x, "int_tuple", &known->offset, leaves, &offset_text);
        view.swizzle = tk_cute_once(x, "cute.static : !cute.swizzle<\"S<%d,%d,%d>\">",
                                    known->swizzle.bits, known->swizzle.base, known->swizzle.shift);
    }
    tk_cute_join_layout(x, &view, offset_text);
    return view;
}

void tk_cute_put_layout(tk_cute *x, const tk_kop *op) {
    tk_cute_view *view = &x->views[op->results[0]->id];
    *view = layout_of(x, op, 0);
    tk_cute_alias(x, op->results[0], view->layout);
}

static const char *iterator_words(tk_cute *x, tk_ktype type) {
    static const char *const spaces[] = {"gmem", "gmem", "smem", "smem", "generic"};
    return tk_cute_text(x, "%s, %s, align<%d>", tk_cute_scalar((tk_kscalar)type.scalar),
                        spaces[type.space], tk_kscalar_bytes((tk_kscalar)type.scalar));
}

const char *tk_cute_iterator_type(tk_cute *x, tk_ktype type) {
    return tk_cute_text(x, "!cute.ptr<%s>", iterator_words(x, type));
}

static const char *memref_type(tk_cute *x, tk_ktype type, const char *layout_type) {
    const char *text = strchr(layout_type, '"');
    return tk_cute_text(x, "!cute.memref<%s, %.*s>", iterator_words(x, type), (int)strlen(text) - 1,
                        text);
}

/* The view itself is made too: it says in the text what the addresses below belong to. */
void tk_cute_make_view(tk_cute *x, const tk_kop *op, tk_cute_view view) {
    tk_ktype type = op->results[0]->type;
    const char *pointer =
        tk_cute_let(x, "builtin.unrealized_conversion_cast %s : !llvm.ptr<%d> to %s", view.base,
                    tk_cute_space((tk_kspace)type.space), tk_cute_iterator_type(x, type));
    view.memref = tk_cute_result(x, op);
    view.of_memref = memref_type(x, type, view.type);
    tk_cute_line(x, "%s = cute.make_view(%s, %s) : %s", view.memref, pointer, view.layout,
                 view.of_memref);
    x->views[op->results[0]->id] = view;
}

void tk_cute_put_view(tk_cute *x, const tk_kop *op) {
    tk_cute_view view = layout_of(x, op, 1);
    view.base = tk_cute_operand(x, op, 0);
    tk_cute_make_view(x, op, view);
}

void tk_cute_put_view_of(tk_cute *x, const tk_kop *op) {
    tk_cute_view view = layout_of(x, op, 1);
    view.base = tk_cute_let(
        x, "llvm.getelementptr %%$shared[%" PRId64 "] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8",
        x->shared_at[op->operands[0]->id]);
    tk_cute_make_view(x, op, view);
}

/* ---- addresses ---- */

static bool has_wide_leaf(const char *text) { return strstr(text, "{i64") != NULL; }

const char *tk_cute_index(tk_cute *x, const char *coord, const char *coord_text, const char *layout,
                          const char *type, const char **out_width) {
    bool wide = has_wide_leaf(coord_text) || has_wide_leaf(type);
    const char *index = wide ? "?{i64}" : "?";
    const char *tuple = tk_cute_let(
        x, "cute.crd2idx(%s, %s) : (!cute.coord<\"%s\">, %s) -> !cute.int_tuple<\"%s\">", coord,
        layout, coord_text, type, index);
    *out_width = wide ? "i64" : "i32";
    return tk_cute_let(x, "cute.get_scalars(%s) : !cute.int_tuple<\"%s\">", tuple, index);
}

void tk_cute_put_locate(tk_cute *x, const tk_kop *op) {
    const tk_cute_view *view = &x->views[op->operands[0]->id];
    tk_tuple coord;
    const char *coord_text, *width, *pointer = tk_cute_type(x, op->results[0]->type);
    if (tk_tuple_parse(tk_kop_text(x->kernel, op, TK_KA_coord), &coord) != TK_OK) {
        tk_cute_fail(x, op, "the coordinate");
        return;
    }
    const char *at = tk_cute_tuple(x, "coord", &coord, op->operands + 1, &coord_text);
    const char *offset = tk_cute_index(x, at, coord_text, view->layout, view->type, &width);
    tk_cute_line(x, "%s = llvm.getelementptr %s[%s] : (%s, %s) -> %s, %s", tk_cute_result(x, op),
                 view->base, offset, pointer, width, pointer,
                 tk_cute_scalar((tk_kscalar)op->results[0]->type.scalar));
}

/* The length of a top-level mode: a static one is a constant of the result's width. */
void tk_cute_put_extent(tk_cute *x, const tk_kop *op) {
    const tk_cute_view *view = &x->views[op->operands[0]->id];
    const char *width = tk_cute_type(x, op->results[0]->type);
    tk_tuple shape, mode;
    tk_layout_shape(&view->known->outer, &shape);
    tk_tuple_mode(&shape, (int)tk_kop_attr(op, TK_KA_mode_index), &mode);
    tk_term length;
    if (tk_tuple_product(&mode, &length) != TK_OK) {
        tk_cute_fail(x, op, "of such a length");
        return;
    }
    bool wide = has_wide_leaf(tk_cute_tuple_text(x, &mode));
    const char *index = length.kind == TK_TERM_STATIC ? tk_cute_text(x, "%" PRId64, length.value)
                                                      : (wide ? "?{i64}" : "?");
    const char *size =
        tk_cute_let(x, "cute.size(%s) <{mode = [%" PRId64 "]}> : (%s) -> !cute.int_tuple<\"%s\">",
                    view->layout, tk_kop_attr(op, TK_KA_mode_index), view->type, index);
    const char *number =
        tk_cute_let(x, "cute.get_scalars(%s) : !cute.int_tuple<\"%s\">", size, index);
    if (!strcmp(width, wide ? "i64" : "i32"))
        tk_cute_alias(x, op->results[0], number);
    else
        tk_cute_line(x, "%s = arith.%s %s : %s to %s", tk_cute_result(x, op),
                     wide ? "trunci" : "extsi", number, wide ? "i64" : "i32", width);
}
