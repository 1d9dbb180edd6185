/* Views that are cut: slice, tile, partition, compose, recast.
 *
 * A plain view is cut by the dialect's operations on memrefs, which move its pointer. Behind a
 * swizzle the operations go to the outer layout, and what the pointer would move by is added to the
 * offset in front of it, because the swizzle comes last; views of another block's memory, whose
 * pointers the dialect does not have, are cut the same way. The dialect infers the type of what
 * comes out, divisors included; Tiki's own layout algebra says it in the text, so the two are
 * compared at every cut.
 *
 * A part of a register tensor is the tensor from a place on, which is known while compiling. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "kernel/check.h"
#include "target/cute/cute.h"

typedef struct cut {
    tk_tuple coord;    /* slice, tile */
    tk_layout through; /* a tiler, or the layout of partition and compose */
    tk_layout out;     /* what the plain layout becomes */
    int64_t new_bits, old_bits;
} cut;

/* ---- what is asked for ---- */

static tk_status read_cut(const tk_kernel *kernel, const tk_kop *op, cut *c) {
    bool slices = op->code == TK_KOP_slice, tiles = op->code == TK_KOP_tile;
    if (slices || tiles) TK_TRY(tk_tuple_parse(tk_kop_text(kernel, op, TK_KA_coord), &c->coord));
    if (tiles) return tk_tiler_parse(tk_kop_text(kernel, op, TK_KA_tiler), &c->through);
    if (slices) return TK_OK;
    if (op->code != TK_KOP_recast)
        return tk_layout_parse(tk_kop_text(kernel, op, TK_KA_layout), &c->through);
    c->old_bits = 8 * tk_kscalar_bytes((tk_kscalar)op->operands[0]->type.scalar);
    c->new_bits = 8 * tk_kscalar_bytes((tk_kscalar)op->results[0]->type.scalar);
    return TK_OK;
}

/* The outer layout afterwards. */
static tk_status derive(const tk_kop *op, const tk_layout *from, cut *c) {
    tk_layout seen;
    tk_tuple offset;
    switch (op->code) {
    case TK_KOP_slice:
        return tk_layout_slice(from, &c->coord, &c->out);
    case TK_KOP_tile:
        return tk_layout_local_tile(from, &c->through, &c->coord, &c->out, &offset);
    case TK_KOP_recast:
        return tk_layout_recast(from, c->new_bits, c->old_bits, &c->out);
    case TK_KOP_compose:
        return tk_layout_composition(from, &c->through, &c->out);
    default:
        TK_TRY(tk_layout_composition(from, &c->through, &seen));
        return tk_layout_mode(&seen, 1, &c->out);
    }
}

/* ---- pieces of text ---- */

static const char *layout_type(tk_cute *x, const tk_layout *layout) {
    return tk_cute_text(x, "!cute.layout<\"%s\">", tk_cute_layout_text(x, layout));
}

/* A tiler or layout without dynamic leaves, and its type. */
static const char *put_through(tk_cute *x, const cut *c, const char **out_type) {
    *out_type =
        tk_cute_text(x, "!cute.%s<\"%s\">", tk_tiler_is_list(&c->through) ? "tile" : "layout",
                     tk_cute_layout_text(x, &c->through));
    return tk_cute_once(x, "cute.static : %s", *out_type);
}

static const char *put_mode(tk_cute *x, const char *layout, const char *type, int mode,
                            const char *to) {
    return tk_cute_let(x, "cute.get(%s) <{mode = [%d]}> : %s -> %s", layout, mode, type, to);
}

static const char *put_composition(tk_cute *x, const char *of, const char *type, const cut *c,
                                   const char *to) {
    const char *through_type, *through = put_through(x, c, &through_type);
    return tk_cute_let(x, "cute.composition(%s, %s) : (%s, %s) -> %s", of, through, type,
                       through_type, to);
}

static const char *put_recast(tk_cute *x, const char *layout, const char *type, const cut *c) {
    return tk_cute_let(x, "cute.recast_layout<%" PRId64 ", %" PRId64 ">(%s) : %s to %s",
                       c->new_bits, c->old_bits, layout, type, layout_type(x, &c->out));
}

/* ---- the layout behind a swizzle, or in another block ---- */

static void fail_algebra(tk_cute *x, const tk_kop *op) {
    tk_cute_fail(x, op, "of this layout: %.200s", tk_error_message());
}

/* With 0 for what is kept. */
static tk_tuple fixed(const tk_tuple *coord) {
    tk_tuple out = *coord;
    for (int i = 0; i < out.leaf_count; i++)
        if (out.leaf[i].kind == TK_TERM_ANY) out.leaf[i] = tk_term_int(0);
    return out;
}

static const char *put_tile_parts(tk_cute *x, const tk_kop *op, const tk_cute_view *from,
                                  const cut *c, const char **out_rest, const char **out_rest_type) {
    tk_layout all, rest;
    const char *through_type, *through = put_through(x, c, &through_type);
    if (tk_layout_zipped_divide(&from->known->outer, &c->through, &all) != TK_OK ||
        tk_layout_mode(&all, 1, &rest) != TK_OK) {
        fail_algebra(x, op);
        return "";
    }
    const char *type = layout_type(x, &all);
    const char *zipped = tk_cute_let(x, "cute.zipped_divide(%s, %s) : !cute.layout<\"%s\">, %s",
                                     from->outer, through, from->of_outer, through_type);
    *out_rest_type = layout_type(x, &rest);
    *out_rest = put_mode(x, zipped, type, 1, *out_rest_type);
    return put_mode(x, zipped, type, 0, layout_type(x, &c->out));
}

static const char *put_thread_parts(tk_cute *x, const tk_kop *op, const tk_cute_view *from,
                                    const cut *c, const char **out_threads,
                                    const char **out_threads_type) {
    tk_layout seen, threads;
    if (tk_layout_composition(&from->known->outer, &c->through, &seen) != TK_OK ||
        tk_layout_mode(&seen, 0, &threads) != TK_OK) {
        fail_algebra(x, op);
        return "";
    }
    const char *type = layout_type(x, &seen);
    const char *whole = put_composition(
        x, from->outer, tk_cute_text(x, "!cute.layout<\"%s\">", from->of_outer), c, type);
    *out_threads_type = layout_type(x, &threads);
    *out_threads = put_mode(x, whole, type, 0, *out_threads_type);
    return put_mode(x, whole, type, 1, layout_type(x, &c->out));
}

typedef struct moved {
    const char *outer;      /* the new outer layout */
    const char *by, *width; /* by how many elements; NULL: not at all */
} moved;

static moved move(tk_cute *x, const tk_kop *op, const tk_cute_view *from, const cut *c) {
    moved m = {0};
    tk_tuple coord;
    const char *layout = from->outer, *coord_text,
               *type = tk_cute_text(x, "!cute.layout<\"%s\">", from->of_outer);
    if (op->code == TK_KOP_compose) {
        m.outer = put_composition(x, from->outer, type, c, layout_type(x, &c->out));
        return m;
    }
    if (op->code == TK_KOP_slice) {
        const char *text, *at = tk_cute_tuple(x, "coord", &c->coord, op->operands + 1, &text);
        m.outer =
            tk_cute_let(x, "cute.slice(%s, %s) : %s, !cute.coord<\"%s\">", layout, at, type, text);
        coord = fixed(&c->coord);
    } else if (op->code == TK_KOP_tile) {
        m.outer = put_tile_parts(x, op, from, c, &layout, &type);
        coord = c->coord;
    } else {
        bool near = op->operands[1]->type.scalar == TK_K_I32;
        m.outer = put_thread_parts(x, op, from, c, &layout, &type);
        tk_tuple_from_term(tk_term_dynamic(near ? TK_TERM_I32 : TK_TERM_I64, 1), &coord);
    }
    const char *at = tk_cute_tuple(x, "coord", &coord, op->operands + 1, &coord_text);
    m.by = tk_cute_index(x, at, coord_text, layout, type, &m.width);
    return m;
}

/* The offset in front of the outer layout, as an i32. */
static const char *offset_of(tk_cute *x, const tk_cute_view *view) {
    tk_term term = view->known->offset.leaf[0];
    if (term.kind == TK_TERM_STATIC) return tk_cute_constant(x, term.value, "i32");
    return tk_cute_let(x, "cute.get_scalars(%s) : !cute.int_tuple<\"%s\">", view->offset,
                       tk_cute_tuple_text(x, &view->known->offset));
}

/* A new offset, dynamic from here on. */
static const char *put_offset(tk_cute *x, tk_cute_view *view, tk_composed *known,
                              const char *value) {
    tk_tuple_from_term(tk_term_dynamic(TK_TERM_I32, 1), &known->offset);
    view->offset =
        tk_cute_let(x, "cute.make_int_tuple(%s) : (i32) -> !cute.int_tuple<\"?\">", value);
    return "?";
}

static const char *in_i32(tk_cute *x, const moved *m) {
    if (!strcmp(m->width, "i32")) return m->by;
    return tk_cute_let(x, "arith.trunci %s : i64 to i32", m->by);
}

static void put_by_layout(tk_cute *x, const tk_kop *op, const tk_cute_view *from, const cut *c,
                          tk_composed *known) {
    tk_cute_view view = *from;
    tk_ktype type = op->results[0]->type;
    const char *pointer = tk_cute_text(x, "!llvm.ptr<%d>", tk_cute_space((tk_kspace)type.space)),
               *offset_text = from->swizzle ? tk_cute_tuple_text(x, &known->offset) : "";
    moved m = move(x, op, from, c);
    view.known = known;
    view.outer = m.outer;
    view.of_outer = tk_cute_layout_text(x, &c->out);
    if (m.by && !from->swizzle)
        view.base =
            tk_cute_let(x, "llvm.getelementptr %s[%s] : (%s, %s) -> %s, %s", from->base, m.by,
                        pointer, m.width, pointer, tk_cute_scalar((tk_kscalar)type.scalar));
    else if (m.by)
        offset_text = put_offset(
            x, &view, known,
            tk_cute_let(x, "arith.addi %s, %s : i32", offset_of(x, from), in_i32(x, &m)));
    tk_cute_join_layout(x, &view, offset_text);
    tk_cute_make_view(x, op, view);
}

/* ---- plain views ---- */

/* A memref's pointer and layout, for addresses and for what is cut out of it. */
static void take_apart(tk_cute *x, const tk_kop *op, const char *memref, const char *of_memref,
                       const char *layout_text, tk_composed *known) {
    tk_ktype type = op->results[0]->type;
    const char *iterator = tk_cute_let(x, "cute.get_iter(%s) : %s", memref, of_memref),
               *layout = tk_cute_let(x, "cute.get_layout(%s) : %s", memref, of_memref),
               *base = tk_cute_let(x, "builtin.unrealized_conversion_cast %s : %s to !llvm.ptr<%d>",
                                   iterator, tk_cute_iterator_type(x, type),
                                   tk_cute_space((tk_kspace)type.space));
    x->views[op->results[0]->id] =
        (tk_cute_view){.base = base,
                       .memref = memref,
                       .of_memref = of_memref,
                       .layout = layout,
                       .type = tk_cute_text(x, "!cute.layout<\"%s\">", layout_text),
                       .outer = layout,
                       .of_outer = layout_text,
                       .known = known};
}

/* The memref type with another layout. */
static const char *with_layout(tk_cute *x, tk_ktype type, const char *layout_text) {
    const char *iterator = tk_cute_iterator_type(x, type);
    return tk_cute_text(x, "!cute.memref<%.*s, \"%s\">",
                        (int)(strlen(iterator) - strlen("!cute.ptr<") - 1),
                        iterator + strlen("!cute.ptr<"), layout_text);
}

/* The values of a thread: slice of the composition, whose one mode is taken out. */
static void put_partition(tk_cute *x, const tk_kop *op, const tk_cute_view *from, const cut *c,
                          tk_composed *known) {
    tk_ktype type = op->results[0]->type;
    tk_layout seen, part;
    tk_tuple at;
    bool near = op->operands[1]->type.scalar == TK_K_I32;
    const char *coord_text = near ? "(?,_)" : "(?{i64},_)", *text;
    if (tk_layout_composition(&from->known->outer, &c->through, &seen) != TK_OK ||
        tk_tuple_parse(coord_text, &at) != TK_OK || tk_layout_slice(&seen, &at, &part) != TK_OK) {
        fail_algebra(x, op);
        return;
    }
    const char *seen_type = with_layout(x, type, tk_cute_layout_text(x, &seen)),
               *part_type = with_layout(x, type, tk_cute_layout_text(x, &part));
    const char *whole = put_composition(x, from->memref, from->of_memref, c, seen_type);
    const char *coord = tk_cute_tuple(x, "coord", &at, op->operands + 1, &coord_text);
    const char *own = tk_cute_let(x, "cute.slice(%s, %s) : %s, !cute.coord<\"%s\">", whole, coord,
                                  seen_type, coord_text);
    const char *iterator = tk_cute_let(x, "cute.get_iter(%s) : %s", own, part_type),
               *layout = tk_cute_let(x, "cute.get_layout(%s) : %s", own, part_type);
    text = tk_cute_layout_text(x, &c->out);
    layout = put_mode(x, layout, layout_type(x, &part), 0, layout_type(x, &c->out));
    const char *memref = tk_cute_result(x, op), *of_memref = with_layout(x, type, text);
    tk_cute_line(x, "%s = cute.make_view(%s, %s) : %s", memref, iterator, layout, of_memref);
    take_apart(x, op, memref, of_memref, text, known);
}

static void put_by_memref(tk_cute *x, const tk_kop *op, const tk_cute_view *from, const cut *c,
                          tk_composed *known) {
    const char *coord_text, *through_type, *text = tk_cute_layout_text(x, &c->out),
                                           *memref = tk_cute_result(x, op),
                                           *of_memref = with_layout(x, op->results[0]->type, text);
    if (op->code == TK_KOP_partition) {
        put_partition(x, op, from, c, known);
        return;
    }
    if (op->code == TK_KOP_compose) {
        const char *through = put_through(x, c, &through_type);
        tk_cute_line(x, "%s = cute.composition(%s, %s) : (%s, %s) -> %s", memref, from->memref,
                     through, from->of_memref, through_type, of_memref);
        take_apart(x, op, memref, of_memref, text, known);
        return;
    }
    const char *coord = tk_cute_tuple(x, "coord", &c->coord, op->operands + 1, &coord_text);
    if (op->code == TK_KOP_slice) {
        tk_cute_line(x, "%s = cute.slice(%s, %s) : %s, !cute.coord<\"%s\">", memref, from->memref,
                     coord, from->of_memref, coord_text);
    } else {
        const char *through = put_through(x, c, &through_type);
        tk_cute_line(x, "%s = cute.local_tile(%s, %s, %s) : (%s, %s, !cute.coord<\"%s\">) -> %s",
                     memref, from->memref, through, coord, from->of_memref, through_type,
                     coord_text, of_memref);
    }
    take_apart(x, op, memref, of_memref, text, known);
}

/* ---- other elements ---- */

static const char *scaled(tk_cute *x, const cut *c, const char *offset) {
    bool wider = c->new_bits > c->old_bits;
    int64_t times = wider ? c->new_bits / c->old_bits : c->old_bits / c->new_bits;
    return tk_cute_let(x, "arith.%s %s, %s : i32", wider ? "divui" : "muli", offset,
                       tk_cute_constant(x, times, "i32"));
}

/* The address stays; behind a swizzle its bits and the offset count the new elements. */
static void put_recast_view(tk_cute *x, const tk_kop *op, const tk_cute_view *from, const cut *c,
                            tk_composed *known) {
    tk_cute_view view = *from;
    tk_composed whole;
    const char *offset_text = "";
    if (tk_composed_recast(from->known, c->new_bits, c->old_bits, &whole) != TK_OK) {
        fail_algebra(x, op);
        return;
    }
    known->swizzle = whole.swizzle;
    view.known = known;
    view.of_outer = tk_cute_layout_text(x, &c->out);
    view.outer =
        put_recast(x, from->outer, tk_cute_text(x, "!cute.layout<\"%s\">", from->of_outer), c);
    if (from->swizzle) {
        view.swizzle = tk_cute_once(x, "cute.static : !cute.swizzle<\"S<%d,%d,%d>\">",
                                    known->swizzle.bits, known->swizzle.base, known->swizzle.shift);
        offset_text = put_offset(x, &view, known, scaled(x, c, offset_of(x, from)));
    }
    tk_cute_join_layout(x, &view, offset_text);
    tk_cute_make_view(x, op, view);
}

/* ---- parts of register tensors ---- */

static void put_part(tk_cute *x, const tk_kop *op, const cut *c) {
    const tk_kvalue *tensor = op->operands[0];
    const tk_layout *layout = &tk_ktype_layout(x->kernel, tensor->type)->outer;
    int64_t from = 0;
    tk_term at = tk_term_int(0);
    tk_layout tile;
    tk_tuple offset;
    tk_status status = TK_OK;
    bool slices = op->code == TK_KOP_slice, tiles = op->code == TK_KOP_tile;
    if (slices) status = tk_layout_eval(layout, &c->coord, &offset);
    if (tiles) status = tk_layout_local_tile(layout, &c->through, &c->coord, &tile, &offset);
    if ((slices || tiles) && status == TK_OK) at = offset.leaf[0];
    if (status != TK_OK || at.kind != TK_TERM_STATIC || op->code == TK_KOP_partition ||
        op->code == TK_KOP_recast) {
        tk_cute_fail(x, op,
                     "of a register tensor, at a place that is not known or as other elements");
        return;
    }
    const tk_kvalue *whole = tk_cute_whole(x, tensor, &from);
    x->parts[op->results[0]->id].whole = whole;
    x->parts[op->results[0]->id].from = from + at.value;
    tk_cute_alias(x, op->results[0], tk_cute_name(x, whole));
}

/* ---- the operations ---- */

void tk_cute_put_cut(tk_cute *x, const tk_kop *op) {
    cut *c = tk_arena_alloc(&x->arena, sizeof *c);
    tk_composed *known = tk_arena_alloc(&x->arena, sizeof *known);
    const tk_cute_view *from = &x->views[op->operands[0]->id];
    bool registers = op->operands[0]->type.kind == TK_KT_REGISTERS;
    if (!c || !known) {
        x->body.failed = true;
        return;
    }
    if (read_cut(x->kernel, op, c) != TK_OK ||
        (!registers && derive(op, &from->known->outer, c) != TK_OK)) {
        fail_algebra(x, op);
        return;
    }
    if (registers) {
        put_part(x, op, c);
        return;
    }
    memcpy(known, from->known, sizeof *known);
    tk_layout_copy(&c->out, &known->outer);
    if (op->code == TK_KOP_recast)
        put_recast_view(x, op, from, c, known);
    else if (from->swizzle || op->results[0]->type.space == TK_KS_CLUSTER)
        put_by_layout(x, op, from, c, known);
    else
        put_by_memref(x, op, from, c, known);
}
