/* Nested tuples: structure, products, comparisons, coordinates.
 *
 * Every function walks two trees side by side and recurses where both have a tuple; the depth is
 * bounded by the number of nodes a tuple can hold. */
#include "layout/term.h"
#include "layout/tree.h"

tk_status tk_tuple_from_ints(const int64_t *values, int count, tk_tuple *out) {
    TK_NEED(out);
    if (count > 0) TK_NEED(values);
    if (count < 0 || count > TK_LAYOUT_MAX_LEAVES)
        return tk_fail(TK_INVALID_ARGUMENT, "%d values: expected 0 to %d", count,
                       TK_LAYOUT_MAX_LEAVES);
    tk_tuple_clear(out);
    tk_tuple_put_node(out, (uint8_t)count);
    for (int i = 0; i < count; i++) tk_tuple_put_leaf(out, tk_term_int(values[i]));
    return TK_OK;
}

void tk_tuple_from_term(tk_term term, tk_tuple *out) {
    if (!out) return;
    tk_tuple_clear(out);
    tk_tuple_put_leaf(out, term);
}

void tk_tuple_copy(const tk_tuple *tuple, tk_tuple *out) {
    if (!tuple || !out) return;
    memcpy(out, tuple, offsetof(tk_tuple, leaf) + tuple->leaf_count * sizeof(tk_term));
}

bool tk_tuple_congruent(const tk_tuple *a, const tk_tuple *b) {
    if (!a || !b) return a == b;
    return a->node_count == b->node_count && !memcmp(a->node, b->node, a->node_count);
}

bool tk_tuple_equal(const tk_tuple *a, const tk_tuple *b) {
    if (!a || !b) return a == b;
    if (!tk_tuple_congruent(a, b)) return false;
    for (int i = 0; i < a->leaf_count; i++)
        if (!tk_term_same(a->leaf[i], b->leaf[i])) return false;
    return true;
}

int tk_tuple_rank(const tk_tuple *tuple) {
    if (!tuple) return 0;
    return tuple->node[0] == TK_NODE_LEAF ? 1 : tk_node_children(tuple->node[0]);
}

int tk_tuple_depth(const tk_tuple *tuple) {
    if (!tuple) return 0;
    return tk_tree_depth(tuple->node);
}

bool tk_tuple_is_static(const tk_tuple *tuple) {
    if (!tuple) return false;
    for (int i = 0; i < tuple->leaf_count; i++)
        if (tuple->leaf[i].kind == TK_TERM_I32 || tuple->leaf[i].kind == TK_TERM_I64) return false;
    return true;
}

tk_status tk_tuple_mode(const tk_tuple *tuple, int index, tk_tuple *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(tuple, "tuple"));
    int rank = tk_tuple_rank(tuple);
    if (index < 0 || index >= rank)
        return tk_fail(TK_AXIS_ERROR, "mode %d of a tuple of rank %d", index, rank);
    tk_span mode = tk_span_of(tuple);
    if (!tk_span_is_leaf(mode)) mode = tk_span_first(mode);
    for (int i = 0; i < index; i++) mode = tk_span_next(mode);
    tk_tuple_clear(out);
    tk_tuple_put_part(out, mode.node, mode.leaf);
    return TK_OK;
}

tk_status tk_span_product(tk_span span, tk_term *out) {
    tk_term product = tk_term_int(1);
    int leaves = tk_tree_leaves(span.node);
    for (int i = 0; i < leaves; i++) {
        if (span.leaf[i].kind == TK_TERM_ANY || span.leaf[i].basis)
            return tk_fail(TK_SHAPE_ERROR, "%s has no product", tk_term_show(span.leaf[i]).text);
        TK_TRY(tk_term_mul(product, span.leaf[i], &product));
    }
    *out = product;
    return TK_OK;
}

tk_status tk_tuple_product(const tk_tuple *tuple, tk_term *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(tuple, "tuple"));
    return tk_span_product(tk_span_of(tuple), out);
}

tk_status tk_tuple_product_each(const tk_tuple *tuple, tk_tuple *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(tuple, "tuple"));
    tk_tuple_clear(out);
    tk_span span = tk_span_of(tuple);
    tk_term product;
    if (tk_span_is_leaf(span)) {
        TK_TRY(tk_span_product(span, &product));
        tk_tuple_put_leaf(out, product);
        return TK_OK;
    }
    int rank = tk_node_children(*span.node);
    tk_tuple_put_node(out, (uint8_t)rank);
    span = tk_span_first(span);
    for (int i = 0; i < rank; i++, span = tk_span_next(span)) {
        TK_TRY(tk_span_product(span, &product));
        tk_tuple_put_leaf(out, product);
    }
    return tk_tuple_finish(out);
}

static tk_status check_congruent(const tk_tuple *a, const tk_tuple *b) {
    TK_TRY(tk_check_tuple(a, "a"));
    TK_TRY(tk_check_tuple(b, "b"));
    if (tk_tuple_congruent(a, b)) return TK_OK;
    char left[256], right[256];
    tk_tuple_print(a, left, sizeof left);
    tk_tuple_print(b, right, sizeof right);
    return tk_fail(TK_SHAPE_ERROR, "%s and %s have different structures", left, right);
}

static tk_status combine(const tk_tuple *a, const tk_tuple *b, int64_t sign, tk_tuple *out) {
    TK_NEED(out);
    TK_TRY(check_congruent(a, b));
    tk_tuple_copy(a, out);
    for (int i = 0; i < a->leaf_count; i++) {
        tk_term scaled;
        TK_TRY(tk_term_mul(b->leaf[i], tk_term_int(sign), &scaled));
        TK_TRY(tk_term_add(a->leaf[i], scaled, &out->leaf[i]));
    }
    return TK_OK;
}

tk_status tk_tuple_add(const tk_tuple *a, const tk_tuple *b, tk_tuple *out) {
    return combine(a, b, 1, out);
}
tk_status tk_tuple_sub(const tk_tuple *a, const tk_tuple *b, tk_tuple *out) {
    return combine(a, b, -1, out);
}

tk_status tk_tuple_elem_less(const tk_tuple *a, const tk_tuple *b, bool *out) {
    TK_NEED(out);
    TK_TRY(check_congruent(a, b));
    *out = true;
    for (int i = 0; i < a->leaf_count; i++) {
        tk_term x = a->leaf[i], y = b->leaf[i];
        if (x.kind != TK_TERM_STATIC || y.kind != TK_TERM_STATIC)
            return tk_fail(TK_UNSUPPORTED, "%s < %s is only known at run time",
                           tk_term_show(x).text, tk_term_show(y).text);
        if (x.value >= y.value) *out = false;
    }
    return TK_OK;
}

/* -- Divisions -- */

static tk_status check_divisor(tk_term a, tk_term b) {
    if (a.basis || b.basis || a.kind == TK_TERM_ANY || b.kind == TK_TERM_ANY || b.value < 1)
        return tk_fail(TK_SHAPE_ERROR, "%s / %s: expected a number and a divisor of at least 1",
                       tk_term_show(a).text, tk_term_show(b).text);
    return TK_OK;
}

/* One leaf of shape_div: rounded up, one number divides the other. */
static tk_status divide_leaf(tk_term a, tk_term b, bool strict, tk_term *out) {
    TK_TRY(check_divisor(a, b));
    if (strict && tk_term_divides(b, a) != TK_PROVEN && tk_term_divides(a, b) != TK_PROVEN) {
        bool open = a.kind != TK_TERM_STATIC || b.kind != TK_TERM_STATIC;
        return tk_fail(open ? TK_UNSUPPORTED : TK_SHAPE_ERROR, "%s / %s: neither %s the other",
                       tk_term_show(a).text, tk_term_show(b).text,
                       open ? "is known to divide" : "divides");
    }
    *out = tk_term_ceil_div(a, b);
    return TK_OK;
}

static tk_status divide_span(tk_span a, tk_span b, bool strict, tk_tuple *out);

/* A tuple by a number: each mode takes its share, left to right. */
static tk_status divide_by_number(tk_span a, tk_term *rest, bool strict, tk_tuple *out) {
    if (tk_span_is_leaf(a)) {
        tk_term quotient;
        TK_TRY(divide_leaf(*a.leaf, *rest, strict, &quotient));
        tk_tuple_put_leaf(out, quotient);
        return tk_term_is(*a.leaf, 0) ? TK_OK : divide_leaf(*rest, *a.leaf, false, rest);
    }
    int rank = tk_node_children(*a.node);
    tk_tuple_put_node(out, (uint8_t)rank);
    a = tk_span_first(a);
    for (int i = 0; i < rank; i++, a = tk_span_next(a))
        TK_TRY(divide_by_number(a, rest, strict, out));
    return TK_OK;
}

static tk_status divide_modes(tk_span a, tk_span b, bool strict, tk_tuple *out) {
    int rank = tk_node_children(*a.node), given = tk_node_children(*b.node);
    if (given > rank || (strict && given != rank))
        return tk_fail(TK_SHAPE_ERROR, "%d divisors for %d modes", given, rank);
    tk_tuple_put_node(out, (uint8_t)rank);
    a = tk_span_first(a);
    b = tk_span_first(b);
    for (int i = 0; i < rank; i++, a = tk_span_next(a)) {
        if (i >= given) {
            tk_tuple_put_part(out, a.node, a.leaf);
            continue;
        }
        TK_TRY(divide_span(a, b, strict, out));
        b = tk_span_next(b);
    }
    return TK_OK;
}

static tk_status divide_span(tk_span a, tk_span b, bool strict, tk_tuple *out) {
    if (!tk_span_is_leaf(a) && !tk_span_is_leaf(b)) return divide_modes(a, b, strict, out);
    tk_term divisor;
    TK_TRY(tk_span_product(b, &divisor));
    return divide_by_number(a, &divisor, strict, out);
}

static tk_status divide_tuple(const tk_tuple *a, const tk_tuple *b, bool strict, tk_tuple *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(a, "a"));
    TK_TRY(tk_check_tuple(b, "b"));
    tk_tuple_clear(out);
    TK_TRY(divide_span(tk_span_of(a), tk_span_of(b), strict, out));
    return tk_tuple_finish(out);
}

tk_status tk_tuple_shape_div(const tk_tuple *a, const tk_tuple *b, tk_tuple *out) {
    return divide_tuple(a, b, true, out);
}
tk_status tk_tuple_ceil_div(const tk_tuple *a, const tk_tuple *b, tk_tuple *out) {
    return divide_tuple(a, b, false, out);
}

/* -- Refinement -- */

static bool refines(tk_span a, tk_span b) {
    if (tk_span_is_leaf(a)) return true;
    if (*a.node != *b.node) return false;
    int rank = tk_node_children(*a.node);
    a = tk_span_first(a);
    b = tk_span_first(b);
    for (int i = 0; i < rank; i++, a = tk_span_next(a), b = tk_span_next(b))
        if (!refines(a, b)) return false;
    return true;
}

bool tk_tuple_weakly_congruent(const tk_tuple *a, const tk_tuple *b) {
    if (!a || !b) return a == b;
    return refines(tk_span_of(a), tk_span_of(b));
}

static tk_status compare_sizes(tk_term a, tk_term b, bool *out) {
    if (a.kind != TK_TERM_STATIC || b.kind != TK_TERM_STATIC)
        return tk_fail(TK_UNSUPPORTED, "%s = %s is only known at run time", tk_term_show(a).text,
                       tk_term_show(b).text);
    *out = *out && a.value == b.value;
    return TK_OK;
}

static tk_status sizes_match(tk_span a, tk_span b, bool *out) {
    if (tk_span_is_leaf(a)) {
        tk_term size;
        TK_TRY(tk_span_product(b, &size));
        return compare_sizes(*a.leaf, size, out);
    }
    int rank = tk_node_children(*a.node);
    a = tk_span_first(a);
    b = tk_span_first(b);
    for (int i = 0; i < rank; i++, a = tk_span_next(a), b = tk_span_next(b))
        TK_TRY(sizes_match(a, b, out));
    return TK_OK;
}

tk_status tk_tuple_compatible(const tk_tuple *a, const tk_tuple *b, bool *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(a, "a"));
    TK_TRY(tk_check_tuple(b, "b"));
    *out = refines(tk_span_of(a), tk_span_of(b));
    return *out ? sizes_match(tk_span_of(a), tk_span_of(b), out) : TK_OK;
}

/* -- Coordinates -- */

/* Splits one number over the leaves of a shape, the last leaf taking the rest. */
static tk_status split_number(tk_term index, tk_span shape, tk_tuple *out) {
    int leaves = tk_tree_leaves(shape.node), seen = 0;
    if (leaves > 1 && index.value < 0)
        return tk_fail(TK_INDEX_ERROR, "index %lld: a negative one meets several leaves",
                       (long long)index.value);
    const uint8_t *node = shape.node;
    for (int open = 1; open > 0; node++) {
        open += tk_node_children(*node) - 1;
        if (*node != TK_NODE_LEAF) {
            tk_tuple_put_node(out, *node);
            continue;
        }
        tk_term extent = shape.leaf[seen++];
        TK_TRY(check_divisor(index, extent));
        tk_tuple_put_leaf(out, seen == leaves ? index : tk_term_mod(index, extent));
        index = tk_term_div(index, extent);
    }
    return TK_OK;
}

static tk_status fail_coord(tk_span coord, tk_span shape) {
    return tk_fail(TK_SHAPE_ERROR, "a coordinate of %d modes for a shape of %d",
                   tk_span_is_leaf(coord) ? 1 : tk_node_children(*coord.node),
                   tk_span_is_leaf(shape) ? 1 : tk_node_children(*shape.node));
}

static tk_status split_coord(tk_span coord, tk_span shape, tk_tuple *out) {
    if (tk_span_is_leaf(coord)) return split_number(*coord.leaf, shape, out);
    if (*coord.node != *shape.node) return fail_coord(coord, shape);
    int rank = tk_node_children(*coord.node);
    tk_tuple_put_node(out, (uint8_t)rank);
    coord = tk_span_first(coord);
    shape = tk_span_first(shape);
    for (int i = 0; i < rank; i++, coord = tk_span_next(coord), shape = tk_span_next(shape))
        TK_TRY(split_coord(coord, shape, out));
    return TK_OK;
}

tk_status tk_idx2crd(const tk_tuple *index, const tk_tuple *shape, tk_tuple *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(index, "index"));
    TK_TRY(tk_check_tuple(shape, "shape"));
    tk_tuple_clear(out);
    TK_TRY(split_coord(tk_span_of(index), tk_span_of(shape), out));
    return tk_tuple_finish(out);
}

tk_status tk_crd2idx(const tk_tuple *coord, const tk_tuple *shape, tk_term *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(coord, "coord"));
    TK_TRY(tk_check_tuple(shape, "shape"));
    tk_layout compact;
    tk_tuple value;
    TK_TRY(tk_layout_from_shape(shape, &compact));
    TK_TRY(tk_layout_eval(&compact, coord, &value));
    *out = value.leaf[0];
    return TK_OK;
}

tk_status tk_increment_coord(const tk_tuple *coord, const tk_tuple *shape, tk_tuple *out) {
    TK_NEED(out);
    TK_TRY(check_congruent(coord, shape));
    tk_tuple_copy(coord, out);
    for (int i = 0; i < coord->leaf_count; i++) {
        tk_term at = coord->leaf[i], extent = shape->leaf[i];
        if (at.kind != TK_TERM_STATIC || extent.kind != TK_TERM_STATIC)
            return tk_fail(TK_UNSUPPORTED, "%s + 1 < %s is only known at run time",
                           tk_term_show(at).text, tk_term_show(extent).text);
        out->leaf[i].value = at.value + 1 < extent.value ? at.value + 1 : 0;
        if (out->leaf[i].value) break;
    }
    return TK_OK;
}

/* -- Slices -- */

/* Puts the chosen modes and counts them; a leaf of the coordinate chooses a whole mode. */
static tk_status choose(tk_span tuple, tk_span coord, bool wild, tk_tuple *out, int *count) {
    if (tk_span_is_leaf(coord)) {
        if ((coord.leaf->kind == TK_TERM_ANY) != wild) return TK_OK;
        tk_tuple_put_part(out, tuple.node, tuple.leaf);
        ++*count;
        return TK_OK;
    }
    if (*coord.node != *tuple.node) return fail_coord(coord, tuple);
    int rank = tk_node_children(*coord.node);
    coord = tk_span_first(coord);
    tuple = tk_span_first(tuple);
    for (int i = 0; i < rank; i++, coord = tk_span_next(coord), tuple = tk_span_next(tuple))
        TK_TRY(choose(tuple, coord, wild, out, count));
    return TK_OK;
}

static tk_status choose_tuple(const tk_tuple *tuple, const tk_tuple *coord, bool wild,
                              tk_tuple *out) {
    TK_NEED(out);
    TK_TRY(tk_check_tuple(tuple, "tuple"));
    TK_TRY(tk_check_tuple(coord, "coord"));
    tk_tuple_clear(out);
    int count = 0;
    bool whole = coord->node[0] == TK_NODE_LEAF && (coord->leaf[0].kind == TK_TERM_ANY) == wild;
    if (!whole) tk_tuple_put_node(out, 0);
    TK_TRY(choose(tk_span_of(tuple), tk_span_of(coord), wild, out, &count));
    if (!whole) tk_tuple_put_close(out, 0, count);
    return tk_tuple_finish(out);
}

tk_status tk_tuple_slice(const tk_tuple *tuple, const tk_tuple *coord, tk_tuple *out) {
    return choose_tuple(tuple, coord, true, out);
}
tk_status tk_tuple_dice(const tk_tuple *tuple, const tk_tuple *coord, tk_tuple *out) {
    return choose_tuple(tuple, coord, false, out);
}
