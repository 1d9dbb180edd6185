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

static const char *tuple_text(tk_cute *x, const tk_tuple *tuple) {
    size_t length = tk_tuple_print(tuple, NULL, 0);
    char *text = tk_arena_alloc(&x->arena, length + 1);
    if (!text) {
        x->body.failed = true;
        return "";
    }
    tk_tuple_print(tuple, text, length + 1);
    return text;
}

static int dynamic_leaves(const tk_tuple *tuple) {
    int count = 0;
    for (int i = 0; i < tuple->leaf_count; i++)
        count += tuple->leaf[i].kind == TK_TERM_I32 || tuple->leaf[i].kind == TK_TERM_I64;
    return count;
}

/* A tuple of the dialect's kind ("shape", "stride", "coord", "int_tuple") from its dynamic leaves.
 */
static const char *put_tuple(tk_cute *x, const char *kind, const tk_tuple *given,
                             tk_kvalue *const *leaves, const char **out_text) {
    tk_tuple tuple = *given;
    forget_divisors(&tuple);
    uint32_t count = (uint32_t)dynamic_leaves(&tuple);
    const char *text = tuple_text(x, &tuple);
    if (out_text) *out_text = text;
    if (!count) return tk_cute_let(x, "cute.static : !cute.%s<\"%s\">", kind, text);
    return tk_cute_let(x, "cute.make_%s(%s) : (%s) -> !cute.%s<\"%s\">", kind,
                       tk_cute_list(x, count, leaves), tk_cute_types(x, count, leaves), kind, text);
}

typedef struct made {
    const char *name, *text, *kind; /* kind: "layout" or "composed_layout" */
} made;

/* Leaves come as those of shape, stride, offset. */
static made put_layout(tk_cute *x, const tk_composed *layout, tk_kvalue *const *leaves) {
    tk_tuple shape, stride;
    const char *shape_text, *stride_text, *offset_text;
    tk_layout_shape(&layout->outer, &shape);
    tk_layout_stride(&layout->outer, &stride);
    const char *s = put_tuple(x, "shape", &shape, leaves, &shape_text);
    leaves += dynamic_leaves(&shape);
    const char *d = put_tuple(x, "stride", &stride, leaves, &stride_text);
    leaves += dynamic_leaves(&stride);
    made out = {.text = tk_cute_text(x, "%s:%s", shape_text, stride_text), .kind = "layout"};
    out.name = tk_cute_let(x, "cute.make_layout(%s, %s) : !cute.layout<\"%s\">", s, d, out.text);
    if (layout->inner == TK_INNER_NONE) return out;
    tk_swizzle swizzle = layout->swizzle;
    const char *offset = put_tuple(x, "int_tuple", &layout->offset, leaves, &offset_text),
               *inner = tk_cute_text(x, "S<%d,%d,%d>", swizzle.bits, swizzle.base, swizzle.shift),
               *first = tk_cute_let(x, "cute.static : !cute.swizzle<\"%s\">", inner);
    out.text = tk_cute_text(x, "%s o %s o %s", inner, offset_text, out.text);
    out.kind = "composed_layout";
    out.name =
        tk_cute_let(x, "cute.make_composed_layout(%s, %s, %s) : !cute.composed_layout<\"%s\">",
                    first, offset, out.name, out.text);
    return out;
}

static made layout_of(tk_cute *x, const tk_kop *op, uint32_t first_leaf) {
    const tk_composed *layout = tk_ktype_layout(x->kernel, op->results[0]->type);
    if (layout->inner == TK_INNER_LAYOUT) {
        tk_cute_fail(x, op, "of a layout after a layout");
        return (made){"", "", ""};
    }
    return put_layout(x, layout, op->operands + first_leaf);
}

static void keep(tk_cute *x, const tk_kvalue *value, const char *base, const made *layout) {
    x->views[value->id] = (tk_cute_view){
        base, layout->name, tk_cute_text(x, "!cute.%s<\"%s\">", layout->kind, layout->text)};
}

void tk_cute_put_layout(tk_cute *x, const tk_kop *op) {
    made layout = layout_of(x, op, 0);
    keep(x, op->results[0], NULL, &layout);
    tk_cute_alias(x, op->results[0], layout.name);
}

/* The view itself is made too: it says in the text what the addresses below belong to. */
static void put_view(tk_cute *x, const tk_kop *op, const char *base, const made *layout) {
    static const char *const spaces[] = {"gmem", "gmem", "smem", "smem", "generic"};
    tk_ktype type = op->results[0]->type;
    const char *element = tk_cute_scalar((tk_kscalar)type.scalar), *space = spaces[type.space];
    int bytes = tk_kscalar_bytes((tk_kscalar)type.scalar);
    const char *pointer = tk_cute_let(
        x, "builtin.unrealized_conversion_cast %s : !llvm.ptr<%d> to !cute.ptr<%s, %s, align<%d>>",
        base, tk_cute_space((tk_kspace)type.space), element, space, bytes);
    keep(x, op->results[0], base, layout);
    tk_cute_line(x, "%s = cute.make_view(%s, %s) : !cute.memref<%s, %s, align<%d>, \"%s\">",
                 tk_cute_result(x, op), pointer, layout->name, element, space, bytes, layout->text);
}

void tk_cute_put_view(tk_cute *x, const tk_kop *op) {
    made layout = layout_of(x, op, 1);
    put_view(x, op, tk_cute_operand(x, op, 0), &layout);
}

void tk_cute_put_view_of(tk_cute *x, const tk_kop *op) {
    made layout = layout_of(x, op, 1);
    put_view(x, op,
             tk_cute_let(x,
                         "llvm.getelementptr %%$shared[%" PRId64
                         "] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8",
                         x->shared_at[op->operands[0]->id]),
             &layout);
}

static bool has_wide_leaf(const char *text) { return strstr(text, "{i64") != NULL; }

void tk_cute_put_locate(tk_cute *x, const tk_kop *op) {
    const tk_cute_view *view = &x->views[op->operands[0]->id];
    tk_tuple coord;
    const char *coord_text;
    if (tk_tuple_parse(tk_kop_text(x->kernel, op, TK_KA_coord), &coord) != TK_OK) {
        tk_cute_fail(x, op, "the coordinate");
        return;
    }
    const char *at = put_tuple(x, "coord", &coord, op->operands + 1, &coord_text);
    bool wide = has_wide_leaf(coord_text) || has_wide_leaf(view->type);
    const char *index = wide ? "?{i64}" : "?", *width = wide ? "i64" : "i32",
               *pointer = tk_cute_type(x, op->results[0]->type);
    const char *tuple = tk_cute_let(
        x, "cute.crd2idx(%s, %s) : (!cute.coord<\"%s\">, %s) -> !cute.int_tuple<\"%s\">", at,
        view->layout, coord_text, view->type, index);
    const char *offset =
        tk_cute_let(x, "cute.get_scalars(%s) : !cute.int_tuple<\"%s\">", tuple, index);
    tk_cute_line(x, "%s = llvm.getelementptr %s[%s] : (%s, %s) -> %s, %s", tk_cute_result(x, op),
                 view->base, offset, pointer, width, pointer,
                 tk_cute_scalar((tk_kscalar)op->results[0]->type.scalar));
}

/* The length of a top-level mode: a static one is a constant of the result's width. */
void tk_cute_put_extent(tk_cute *x, const tk_kop *op) {
    const tk_cute_view *view = &x->views[op->operands[0]->id];
    const char *width = tk_cute_type(x, op->results[0]->type);
    const tk_composed *layout = tk_ktype_layout(x->kernel, op->operands[0]->type);
    tk_tuple shape, mode;
    tk_layout_shape(&layout->outer, &shape);
    tk_tuple_mode(&shape, (int)tk_kop_attr(op, TK_KA_mode_index), &mode);
    bool wide = has_wide_leaf(tuple_text(x, &mode));
    const char *index = wide ? "?{i64}" : "?";
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
