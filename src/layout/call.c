/* The table of operations by name, and how their arguments are read.
 *
 * A row says how an operation is called: with one of a few shared callers and the function of
 * layout.h it forwards to, or with a caller of its own. Composed layouts are handled once, in
 * `lift`: the operation acts on the outer part and the rest is kept. */
#include <stdio.h>

#include "layout/swizzle.h"
#include "layout/term.h"
#include "tiki/layout_call.h"
#include "tiki/layout_draw.h"

typedef tk_layout_value value;
typedef tk_status unary(const tk_layout *, tk_layout *);
typedef tk_status binary(const tk_layout *, const tk_layout *, tk_layout *);
typedef tk_status tuples(const tk_tuple *, const tk_tuple *, tk_tuple *);
typedef tk_status measure(const tk_layout *, tk_term *);

/* What a row forwards to; which member is set depends on the caller. */
typedef union target {
    unary *one;
    binary *two;
    tuples *pair;
    measure *term;
    int variant;
} target;

typedef tk_status caller(target to, const value *args, int count, value *out);

/* -- Reading arguments -- */

static const char *kind_name(tk_value_kind kind) {
    static const char *const names[] = {"a truth value", "a tuple",           "a layout", "a tiler",
                                        "a swizzle",     "a composed layout", "a pair"};
    return names[kind];
}

static tk_status fail_kind(const value *arg, const char *expected) {
    return tk_fail(TK_INVALID_ARGUMENT, "expected %s, got %s", expected, kind_name(arg->kind));
}

static bool is_plain(const value *arg) {
    return arg->kind == TK_VALUE_LAYOUT ||
           (arg->kind == TK_VALUE_COMPOSED && arg->as.composed.inner == TK_INNER_NONE);
}

static tk_status as_layout(const value *arg, const tk_layout **out) {
    *out = NULL;
    if (!is_plain(arg)) return fail_kind(arg, "a layout");
    *out = arg->kind == TK_VALUE_LAYOUT ? &arg->as.layout : &arg->as.composed.outer;
    return TK_OK;
}

static tk_status as_tuple(const value *arg, const tk_tuple **out) {
    *out = NULL;
    if (arg->kind != TK_VALUE_TUPLE) return fail_kind(arg, "a tuple");
    *out = &arg->as.tuple;
    return TK_OK;
}

static tk_status as_integer(const value *arg, int64_t *out) {
    *out = 0;
    if (arg->kind != TK_VALUE_TUPLE || arg->as.tuple.node[0] != TK_NODE_LEAF ||
        arg->as.tuple.leaf[0].kind != TK_TERM_STATIC || arg->as.tuple.leaf[0].basis)
        return fail_kind(arg, "an integer");
    *out = arg->as.tuple.leaf[0].value;
    return TK_OK;
}

static tk_status as_small(const value *arg, int *out) {
    int64_t wide;
    *out = 0;
    TK_TRY(as_integer(arg, &wide));
    if (wide < -1 || wide > 127)
        return tk_fail(TK_INVALID_ARGUMENT, "%lld is no mode or rank", (long long)wide);
    *out = (int)wide;
    return TK_OK;
}

/* `room` holds the tiler when it is made from a shape. */
static tk_status as_tiler(const value *arg, tk_layout *room, const tk_layout **out) {
    *out = room;
    if (arg->kind == TK_VALUE_TUPLE) return tk_tiler_from_shape(&arg->as.tuple, room);
    *out = &arg->as.layout;
    if (arg->kind == TK_VALUE_TILER) return TK_OK;
    return is_plain(arg) ? as_layout(arg, out) : fail_kind(arg, "a layout, a tiler or a shape");
}

/* A shape: a tuple, or that of a layout (kept in `room`). */
static tk_status as_shape(const value *arg, tk_tuple *room, const tk_tuple **out) {
    *out = NULL;
    if (arg->kind == TK_VALUE_TUPLE) return as_tuple(arg, out);
    bool composed = arg->kind == TK_VALUE_COMPOSED;
    if (arg->kind != TK_VALUE_LAYOUT && !composed) return fail_kind(arg, "a shape or a layout");
    tk_layout_shape(composed ? &arg->as.composed.outer : &arg->as.layout, room);
    *out = room;
    return TK_OK;
}

/* The layout an operation acts on, and where its result goes. */
static tk_status lift(const value *arg, value *out, const tk_layout **in, tk_layout **result) {
    *in = NULL;
    *result = NULL;
    if (arg->kind == TK_VALUE_COMPOSED) {
        *out = *arg;
        *in = &arg->as.composed.outer;
        *result = &out->as.composed.outer;
        return TK_OK;
    }
    if (arg->kind != TK_VALUE_LAYOUT) return fail_kind(arg, "a layout");
    out->kind = TK_VALUE_LAYOUT;
    *in = &arg->as.layout;
    *result = &out->as.layout;
    return TK_OK;
}

static tk_status give_term(tk_term term, value *out) {
    out->kind = TK_VALUE_TUPLE;
    tk_tuple_from_term(term, &out->as.tuple);
    return TK_OK;
}

static tk_status give_integer(int64_t number, value *out) {
    return give_term(tk_term_int(number), out);
}

static tk_status give_flag(bool flag, value *out) {
    out->kind = TK_VALUE_BOOL;
    out->as.flag = flag;
    return TK_OK;
}

static tk_tuple *give_tuple(value *out) {
    out->kind = TK_VALUE_TUPLE;
    return &out->as.tuple;
}

static tk_layout *give_layout(value *out) {
    out->kind = TK_VALUE_LAYOUT;
    return &out->as.layout;
}

/* -- Shared callers -- */

static tk_status call_unary(target to, const value *args, int count, value *out) {
    const tk_layout *in;
    tk_layout *result;
    (void)count;
    TK_TRY(lift(&args[0], out, &in, &result));
    return to.one(in, result);
}

/* Inverses and complements act on plain layouts only. */
static tk_status call_plain(target to, const value *args, int count, value *out) {
    const tk_layout *in;
    (void)count;
    TK_TRY(as_layout(&args[0], &in));
    return to.one(in, give_layout(out));
}

static tk_status call_tiled(target to, const value *args, int count, value *out) {
    const tk_layout *in, *tiler;
    tk_layout *result, room;
    (void)count;
    TK_TRY(lift(&args[0], out, &in, &result));
    TK_TRY(as_tiler(&args[1], &room, &tiler));
    return to.two(in, tiler, result);
}

static tk_status call_layouts(target to, const value *args, int count, value *out) {
    const tk_layout *in, *other;
    tk_layout *result;
    (void)count;
    TK_TRY(lift(&args[0], out, &in, &result));
    TK_TRY(as_layout(&args[1], &other));
    return to.two(in, other, result);
}

static tk_status call_tuples(target to, const value *args, int count, value *out) {
    const tk_tuple *a, *b;
    (void)count;
    TK_TRY(as_tuple(&args[0], &a));
    TK_TRY(as_tuple(&args[1], &b));
    return to.pair(a, b, give_tuple(out));
}

/* -- Looking -- */

enum { SIZE, COSIZE, RANK, DEPTH, SHAPE, STRIDE, PRODUCT_EACH };

static tk_status call_measure(target to, const value *args, int count, value *out) {
    tk_term term;
    tk_tuple room;
    const tk_tuple *shape;
    const tk_layout *layout;
    (void)count;
    if (to.variant == COSIZE) {
        bool composed = args[0].kind == TK_VALUE_COMPOSED;
        if (composed)
            layout = &args[0].as.composed.outer;
        else
            TK_TRY(as_layout(&args[0], &layout));
        TK_TRY(tk_layout_cosize(layout, &term));
        return give_term(term, out);
    }
    TK_TRY(as_shape(&args[0], &room, &shape));
    if (to.variant == RANK) return give_integer(tk_tuple_rank(shape), out);
    if (to.variant == DEPTH) return give_integer(tk_tuple_depth(shape), out);
    if (to.variant == PRODUCT_EACH) return tk_tuple_product_each(shape, give_tuple(out));
    TK_TRY(tk_tuple_product(shape, &term));
    return give_term(term, out);
}

static tk_status call_column(target to, const value *args, int count, value *out) {
    const tk_layout *layout = &args[0].as.composed.outer;
    (void)count;
    if (args[0].kind != TK_VALUE_COMPOSED) TK_TRY(as_layout(&args[0], &layout));
    if (to.variant == SHAPE)
        tk_layout_shape(layout, give_tuple(out));
    else
        tk_layout_stride(layout, give_tuple(out));
    return TK_OK;
}

static tk_status call_get(target to, const value *args, int count, value *out) {
    const tk_layout *in;
    const tk_tuple *path;
    tk_layout *result;
    (void)to, (void)count;
    TK_TRY(lift(&args[0], out, &in, &result));
    TK_TRY(as_tuple(&args[1], &path));
    return tk_layout_get(in, path, result);
}

static tk_status call_eval(target to, const value *args, int count, value *out) {
    const tk_tuple *coord;
    const tk_layout *layout;
    int64_t offset;
    (void)to, (void)count;
    TK_TRY(as_tuple(&args[1], &coord));
    if (args[0].kind == TK_VALUE_COMPOSED)
        return tk_composed_eval(&args[0].as.composed, coord, give_tuple(out));
    if (args[0].kind == TK_VALUE_SWIZZLE) {
        TK_TRY(as_integer(&args[1], &offset));
        if (offset < 0) return tk_fail(TK_INDEX_ERROR, "a swizzle takes offsets from 0");
        return give_integer(tk_swizzle_apply(args[0].as.swizzle, offset), out);
    }
    TK_TRY(as_layout(&args[0], &layout));
    return tk_layout_eval(layout, coord, give_tuple(out));
}

static tk_status call_crd2idx(target to, const value *args, int count, value *out) {
    const tk_tuple *coord;
    tk_term term;
    if (args[1].kind != TK_VALUE_TUPLE) {
        value swapped[2] = {args[1], args[0]};
        return call_eval(to, swapped, count, out);
    }
    TK_TRY(as_tuple(&args[0], &coord));
    TK_TRY(tk_crd2idx(coord, &args[1].as.tuple, &term));
    return give_term(term, out);
}

static tk_status call_idx2crd(target to, const value *args, int count, value *out) {
    const tk_tuple *index, *shape;
    tk_tuple room;
    (void)to, (void)count;
    TK_TRY(as_tuple(&args[0], &index));
    TK_TRY(as_shape(&args[1], &room, &shape));
    return tk_idx2crd(index, shape, give_tuple(out));
}

enum { INJECTIVE, COMPACT };

static tk_status call_test(target to, const value *args, int count, value *out) {
    const tk_layout *layout;
    bool flag;
    (void)count;
    TK_TRY(as_layout(&args[0], &layout));
    if (to.variant == INJECTIVE)
        TK_TRY(tk_layout_is_injective(layout, &flag));
    else
        TK_TRY(tk_layout_is_compact(layout, &flag));
    return give_flag(flag, out);
}

enum { CONGRUENT, WEAKLY, COMPATIBLE, LESS };

static tk_status call_relation(target to, const value *args, int count, value *out) {
    const tk_tuple *a, *b;
    tk_tuple room_a, room_b;
    bool flag = false;
    (void)count;
    TK_TRY(as_shape(&args[0], &room_a, &a));
    TK_TRY(as_shape(&args[1], &room_b, &b));
    if (to.variant == CONGRUENT) flag = tk_tuple_congruent(a, b);
    if (to.variant == WEAKLY) flag = tk_tuple_weakly_congruent(a, b);
    if (to.variant == COMPATIBLE) TK_TRY(tk_tuple_compatible(a, b, &flag));
    if (to.variant == LESS) TK_TRY(tk_tuple_elem_less(a, b, &flag));
    return give_flag(flag, out);
}

static tk_status call_equal(target to, const value *args, int count, value *out) {
    const value *a = &args[0], *b = &args[1];
    (void)to, (void)count;
    if (a->kind != b->kind) return give_flag(false, out);
    if (a->kind == TK_VALUE_TUPLE)
        return give_flag(tk_tuple_equal(&a->as.tuple, &b->as.tuple), out);
    if (a->kind == TK_VALUE_COMPOSED)
        return give_flag(tk_composed_equal(&a->as.composed, &b->as.composed), out);
    if (a->kind == TK_VALUE_LAYOUT || a->kind == TK_VALUE_TILER)
        return give_flag(tk_layout_equal(&a->as.layout, &b->as.layout), out);
    if (a->kind == TK_VALUE_SWIZZLE)
        return give_flag(a->as.swizzle.bits == b->as.swizzle.bits &&
                             a->as.swizzle.base == b->as.swizzle.base &&
                             a->as.swizzle.shift == b->as.swizzle.shift,
                         out);
    return fail_kind(a, "two values of the algebra");
}

static tk_status call_vector(target to, const value *args, int count, value *out) {
    const tk_layout *a, *b;
    int64_t width;
    (void)to, (void)count;
    TK_TRY(as_layout(&args[0], &a));
    TK_TRY(as_layout(&args[1], &b));
    TK_TRY(tk_layout_max_common_vector(a, b, &width));
    return give_integer(width, out);
}

static tk_status call_increment(target to, const value *args, int count, value *out) {
    const tk_tuple *coord, *shape;
    tk_tuple room;
    (void)to, (void)count;
    TK_TRY(as_tuple(&args[0], &coord));
    TK_TRY(as_shape(&args[1], &room, &shape));
    return tk_increment_coord(coord, shape, give_tuple(out));
}

/* -- Making -- */

enum { FROM_SHAPE, LIKE, IDENTITY };

/* Layouts side by side: the modes of one. */
static tk_status concat_layouts(const value *args, int count, value *out) {
    const tk_layout *modes[TK_LAYOUT_MAX_ARGS];
    for (int i = 0; i < count; i++) TK_TRY(as_layout(&args[i], &modes[i]));
    return tk_layout_concat(modes, count, give_layout(out));
}

static tk_status call_make_layout(target to, const value *args, int count, value *out) {
    const tk_tuple *shape, *stride;
    (void)to;
    if (is_plain(&args[0])) return concat_layouts(args, count, out);
    TK_TRY(as_tuple(&args[0], &shape));
    if (count == 1) return tk_layout_from_shape(shape, give_layout(out));
    TK_TRY(as_tuple(&args[1], &stride));
    return tk_layout_make(shape, stride, give_layout(out));
}

static tk_status call_make_ordered(target to, const value *args, int count, value *out) {
    const tk_tuple *shape, *order;
    tk_tuple room;
    (void)to, (void)count;
    TK_TRY(as_shape(&args[0], &room, &shape));
    TK_TRY(as_tuple(&args[1], &order));
    return tk_layout_make_ordered(shape, order, give_layout(out));
}

static tk_status call_make_identity(target to, const value *args, int count, value *out) {
    const tk_tuple *shape;
    tk_tuple room;
    (void)to, (void)count;
    TK_TRY(as_shape(&args[0], &room, &shape));
    return tk_layout_make_identity(shape, give_layout(out));
}

static tk_status call_make_composed(target to, const value *args, int count, value *out) {
    const tk_tuple *offset;
    const tk_layout *inner, *outer;
    (void)to, (void)count;
    TK_TRY(as_tuple(&args[1], &offset));
    TK_TRY(as_layout(&args[2], &outer));
    out->kind = TK_VALUE_COMPOSED;
    if (args[0].kind == TK_VALUE_SWIZZLE)
        return tk_composed_make_swizzled(args[0].as.swizzle, offset, outer, &out->as.composed);
    TK_TRY(as_layout(&args[0], &inner));
    return tk_composed_make(inner, offset, outer, &out->as.composed);
}

static tk_status call_make_tv(target to, const value *args, int count, value *out) {
    const tk_layout *threads, *values;
    (void)to, (void)count;
    TK_TRY(as_layout(&args[0], &threads));
    TK_TRY(as_layout(&args[1], &values));
    out->kind = TK_VALUE_TILE_AND_LAYOUT;
    return tk_layout_make_tv(threads, values, &out->as.pair.tile, &out->as.pair.layout);
}

/* -- Rearranging -- */

static tk_status call_coalesce(target to, const value *args, int count, value *out) {
    const tk_layout *in;
    const tk_tuple *profile = NULL;
    tk_layout *result;
    (void)to;
    TK_TRY(lift(&args[0], out, &in, &result));
    if (count > 1) TK_TRY(as_tuple(&args[1], &profile));
    return tk_layout_coalesce(in, profile, result);
}

static tk_status call_group(target to, const value *args, int count, value *out) {
    const tk_layout *in;
    tk_layout *result;
    int begin, end;
    (void)to, (void)count;
    TK_TRY(lift(&args[0], out, &in, &result));
    TK_TRY(as_small(&args[1], &begin));
    TK_TRY(as_small(&args[2], &end));
    return tk_layout_group(in, begin, end, result);
}

static tk_status call_select(target to, const value *args, int count, value *out) {
    const tk_layout *in;
    const tk_tuple *modes;
    tk_layout *result;
    int mode[TK_LAYOUT_MAX_LEAVES];
    (void)to, (void)count;
    TK_TRY(lift(&args[0], out, &in, &result));
    TK_TRY(as_tuple(&args[1], &modes));
    for (int i = 0; i < modes->leaf_count; i++) {
        int64_t index = modes->leaf[i].value;
        bool known = modes->leaf[i].kind == TK_TERM_STATIC && index >= 0 && index < 128;
        mode[i] = known ? (int)index : -1;
    }
    return tk_layout_select(in, mode, modes->leaf_count, result);
}

enum { APPEND, PREPEND };

static tk_status call_pad(target to, const value *args, int count, value *out) {
    const tk_layout *in, *mode = NULL;
    tk_layout *result;
    int rank;
    TK_TRY(lift(&args[0], out, &in, &result));
    if (args[1].kind != TK_VALUE_TUPLE) {
        TK_TRY(as_layout(&args[1], &mode));
        rank = tk_layout_rank(in) + 1;
    } else {
        TK_TRY(as_small(&args[1], &rank));
        if (count > 2) TK_TRY(as_layout(&args[2], &mode));
    }
    return to.variant == APPEND ? tk_layout_append(in, rank, mode, result)
                                : tk_layout_prepend(in, rank, mode, result);
}

enum { SLICE, SLICE_OFFSET, DICE };

static tk_status call_slice(target to, const value *args, int count, value *out) {
    const tk_tuple *coord;
    const tk_layout *layout;
    (void)count;
    TK_TRY(as_tuple(&args[1], &coord));
    if (to.variant == SLICE_OFFSET) return call_eval(to, args, count, out);
    if (args[0].kind == TK_VALUE_TUPLE)
        return to.variant == SLICE ? tk_tuple_slice(&args[0].as.tuple, coord, give_tuple(out))
                                   : tk_tuple_dice(&args[0].as.tuple, coord, give_tuple(out));
    if (args[0].kind == TK_VALUE_COMPOSED && to.variant == SLICE) {
        out->kind = TK_VALUE_COMPOSED;
        return tk_composed_slice(&args[0].as.composed, coord, &out->as.composed);
    }
    TK_TRY(as_layout(&args[0], &layout));
    return to.variant == SLICE ? tk_layout_slice(layout, coord, give_layout(out))
                               : tk_layout_dice(layout, coord, give_layout(out));
}

static tk_status call_recast(target to, const value *args, int count, value *out) {
    const tk_layout *layout;
    int64_t new_bits, old_bits;
    (void)to, (void)count;
    TK_TRY(as_integer(&args[0], &new_bits));
    TK_TRY(as_integer(&args[1], &old_bits));
    if (args[2].kind == TK_VALUE_COMPOSED) {
        out->kind = TK_VALUE_COMPOSED;
        return tk_composed_recast(&args[2].as.composed, new_bits, old_bits, &out->as.composed);
    }
    TK_TRY(as_layout(&args[2], &layout));
    return tk_layout_recast(layout, new_bits, old_bits, give_layout(out));
}

/* -- Composition and tiling -- */

static tk_status call_complement(target to, const value *args, int count, value *out) {
    const tk_layout *layout;
    const tk_tuple *shape;
    tk_tuple room;
    tk_term cotarget = tk_term_int(1);
    (void)to;
    TK_TRY(as_layout(&args[0], &layout));
    if (count > 1) {
        TK_TRY(as_shape(&args[1], &room, &shape));
        TK_TRY(tk_tuple_product(shape, &cotarget));
    }
    return tk_layout_complement(layout, cotarget, give_layout(out));
}

/* A layout after a composed one goes into its inner part. */
static tk_status compose_inner(const tk_layout *a, const tk_composed *b, value *out) {
    tk_layout inner;
    out->kind = TK_VALUE_COMPOSED;
    if (b->inner == TK_INNER_SWIZZLE) {
        TK_TRY(tk_compose_before_swizzle(a, b, &out->as.composed));
        inner = out->as.composed.outer;
        if (out->as.composed.inner == TK_INNER_NONE) *give_layout(out) = inner;
        return TK_OK;
    }
    TK_TRY(tk_layout_composition(a, &b->layout, &inner));
    return tk_composed_make(&inner, &b->offset, &b->outer, &out->as.composed);
}

static tk_status call_composition(target to, const value *args, int count, value *out) {
    const tk_layout *layout;
    to.two = tk_layout_composition;
    if (args[0].kind == TK_VALUE_SWIZZLE) {
        TK_TRY(as_layout(&args[1], &layout));
        out->kind = TK_VALUE_COMPOSED;
        return tk_composed_make_swizzled(args[0].as.swizzle, NULL, layout, &out->as.composed);
    }
    if (args[1].kind == TK_VALUE_COMPOSED && args[1].as.composed.inner != TK_INNER_NONE) {
        TK_TRY(as_layout(&args[0], &layout));
        return compose_inner(layout, &args[1].as.composed, out);
    }
    return call_tiled(to, args, count, out);
}

static tk_status call_tile_to_shape(target to, const value *args, int count, value *out) {
    const tk_layout *block;
    const tk_tuple *shape, *order = NULL;
    tk_layout *result;
    (void)to;
    TK_TRY(lift(&args[0], out, &block, &result));
    TK_TRY(as_tuple(&args[1], &shape));
    if (count > 2) TK_TRY(as_tuple(&args[2], &order));
    return tk_layout_tile_to_shape(block, shape, order, result);
}

enum { TILE, TILE_OFFSET };

/* The part's layout or its offset; on a composed layout the offset goes into the result. */
static tk_status give_part(target to, const tk_tuple *offset, value *out) {
    if (to.variant == TILE_OFFSET) {
        tk_tuple kept = *offset;
        *give_tuple(out) = kept;
        return TK_OK;
    }
    if (out->kind != TK_VALUE_COMPOSED) return TK_OK;
    tk_composed whole = out->as.composed;
    tk_tuple sum = *offset;
    if (whole.offset.node_count > 1 || !tk_term_is(whole.offset.leaf[0], 0))
        TK_TRY(tk_tuple_add(&whole.offset, offset, &sum));
    if (whole.inner == TK_INNER_SWIZZLE)
        return tk_composed_make_swizzled(whole.swizzle, &sum, &whole.outer, &out->as.composed);
    if (whole.inner == TK_INNER_LAYOUT)
        return tk_composed_make(&whole.layout, &sum, &whole.outer, &out->as.composed);
    return TK_OK;
}

static tk_status call_local_tile(target to, const value *args, int count, value *out) {
    const tk_layout *in, *tiler;
    const tk_tuple *coord;
    tk_layout *result, room;
    tk_tuple offset;
    (void)count;
    TK_TRY(lift(&args[0], out, &in, &result));
    TK_TRY(as_tiler(&args[1], &room, &tiler));
    TK_TRY(as_tuple(&args[2], &coord));
    TK_TRY(tk_layout_local_tile(in, tiler, coord, result, &offset));
    return give_part(to, &offset, out);
}

static tk_status call_local_partition(target to, const value *args, int count, value *out) {
    const tk_layout *in, *threads;
    tk_layout *result;
    tk_tuple offset;
    int64_t index;
    (void)count;
    TK_TRY(lift(&args[0], out, &in, &result));
    TK_TRY(as_layout(&args[1], &threads));
    TK_TRY(as_integer(&args[2], &index));
    TK_TRY(tk_layout_local_partition(in, threads, index, result, &offset));
    return give_part(to, &offset, out);
}

static tk_status call_banks(target to, const value *args, int count, value *out) {
    tk_bank_report report;
    tk_composed plain;
    const tk_composed *pattern = &args[0].as.composed;
    const tk_layout *layout;
    int bytes;
    (void)to, (void)count;
    TK_TRY(as_small(&args[1], &bytes));
    if (args[0].kind != TK_VALUE_COMPOSED) {
        TK_TRY(as_layout(&args[0], &layout));
        tk_composed_from_layout(layout, &plain);
        pattern = &plain;
    }
    TK_TRY(tk_layout_count_banks(pattern, bytes, &report));
    return give_integer(report.conflicts, out);
}

/* Any value, as it prints. */
static tk_status call_print(target to, const value *args, int count, value *out) {
    (void)to, (void)count;
    *out = args[0];
    return TK_OK;
}

/* -- The table -- */

typedef struct row {
    tk_layout_op op;
    caller *call;
    target to;
} row;

static const row rows[] = {
#define OP(names, usage, min, max, call, target, summary)                                          \
    {{names, usage, summary, min, max}, call, {target}},
#include "layout/call.def"
#undef OP
};

const tk_layout_op *tk_layout_op_at(int index) {
    bool known = index >= 0 && (size_t)index < sizeof rows / sizeof *rows;
    return known ? &rows[index].op : NULL;
}

/* Is `name` one of the words of `names`? */
static bool is_named(const char *names, const char *name) {
    size_t length = strlen(name);
    for (const char *at = names; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (!strncmp(at, name, length) && (at[length] == '|' || !at[length])) return length > 0;
    }
    return false;
}

/* What was done to the outer part must leave something that the inner part can take. */
static tk_status check_result(const value *out) {
    const tk_composed *made = &out->as.composed;
    tk_composed again;
    if (out->kind != TK_VALUE_COMPOSED || made->inner != TK_INNER_SWIZZLE) return TK_OK;
    return tk_composed_make_swizzled(made->swizzle, &made->offset, &made->outer, &again);
}

static tk_status fail_count(const tk_layout_op *op, const char *name, int count) {
    char takes[32];
    if (op->min_args == op->max_args)
        snprintf(takes, sizeof takes, "%d", op->min_args);
    else
        snprintf(takes, sizeof takes, "%d to %d", op->min_args, op->max_args);
    return tk_fail(TK_INVALID_ARGUMENT, "%s takes %s argument%s (%s), %d given", name, takes,
                   op->max_args == 1 ? "" : "s", op->usage, count);
}

static tk_status check_kinds(const value *args, int count) {
    for (int i = 0; i < count; i++)
        TK_TRY(tk_check_enum("kind", args[i].kind, TK_VALUE_TILE_AND_LAYOUT + 1, "tk_value_kind"));
    return TK_OK;
}

tk_status tk_layout_call(const char *name, const tk_layout_value *args, int count,
                         tk_layout_value *out) {
    TK_NEED(name, out);
    if (count) TK_NEED(args);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *row = &rows[i];
        if (!is_named(row->op.names, name)) continue;
        if (count < row->op.min_args || count > row->op.max_args)
            return fail_count(&row->op, name, count);
        tk_status status = check_kinds(args, count);
        if (status == TK_OK) status = row->call(row->to, args, count, out);
        if (status == TK_OK) status = check_result(out);
        return status == TK_OK ? TK_OK : tk_fail_within(status, "%s", name);
    }
    return tk_fail(TK_NOT_FOUND, "no operation of the layout algebra is called %s", name);
}

/* -- Text -- */

static tk_status parse_as(const char *text, tk_value_kind kind, value *out) {
    out->kind = kind;
    if (kind == TK_VALUE_SWIZZLE) return tk_swizzle_parse(text, &out->as.swizzle);
    if (kind == TK_VALUE_COMPOSED) return tk_composed_parse(text, &out->as.composed);
    if (kind == TK_VALUE_TILER) return tk_tiler_parse(text, &out->as.layout);
    if (kind == TK_VALUE_LAYOUT) return tk_layout_parse(text, &out->as.layout);
    return tk_tuple_parse(text, &out->as.tuple);
}

tk_status tk_layout_value_parse(const char *text, tk_layout_value *out) {
    TK_NEED(text, out);
    tk_value_kind kind = TK_VALUE_TUPLE;
    size_t blanks = strspn(text, " \t\n\r");
    if (strchr(text, 'o'))
        kind = TK_VALUE_COMPOSED;
    else if (text[blanks] == 'S')
        kind = TK_VALUE_SWIZZLE;
    else if (text[blanks] == '[')
        kind = TK_VALUE_TILER;
    else if (strchr(text, ':'))
        kind = TK_VALUE_LAYOUT;
    return parse_as(text, kind, out);
}

size_t tk_layout_value_print(const tk_layout_value *v, char *text, size_t capacity) {
    if (!text) capacity = 0;
    if (!v || (unsigned)v->kind > TK_VALUE_TILE_AND_LAYOUT)
        return (size_t)snprintf(text, capacity, "%s", "");
    if (v->kind == TK_VALUE_BOOL)
        return (size_t)snprintf(text, capacity, "%s", v->as.flag ? "true" : "false");
    if (v->kind == TK_VALUE_TUPLE) return tk_tuple_print(&v->as.tuple, text, capacity);
    if (v->kind == TK_VALUE_SWIZZLE) return tk_swizzle_print(v->as.swizzle, text, capacity);
    if (v->kind == TK_VALUE_COMPOSED) return tk_composed_print(&v->as.composed, text, capacity);
    if (v->kind != TK_VALUE_TILE_AND_LAYOUT) return tk_layout_print(&v->as.layout, text, capacity);
    size_t tile = tk_tuple_print(&v->as.pair.tile, text, capacity);
    bool room = tile + 1 < capacity;
    if (room) text[tile] = '\t';
    return tile + 1 +
           tk_layout_print(&v->as.pair.layout, room ? text + tile + 1 : NULL,
                           room ? capacity - tile - 1 : 0);
}
