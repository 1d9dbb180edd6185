/* Builders of shape ops. Everything is a reshape, a permutation, a broadcast, a strided box or a
 * join, so that layouts can be tracked through few primitives; what is the identity returns its
 * operand, and a reshape of a reshape or a permutation of a permutation is one node. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/build_pieces.h"

/* ---- lists ---- */

static tk_status need_entries(const char *what, const char *list, tk_axes axes, int64_t expected) {
    if (axes.count == expected) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: %s has %lld entries, expected %lld", what, list,
                   (long long)axes.count, (long long)expected);
}

tk_status tk_length_product(const char *what, int64_t count, const int64_t *lengths,
                            int64_t *out_product) {
    int64_t product = 1;
    for (int64_t i = 0; i < count; i++)
        if (lengths[i] == 0) return *out_product = 0, TK_OK;
    for (int64_t i = 0; i < count; i++)
        if (tk_mul_overflow_i64(product, lengths[i], &product))
            return tk_fail(TK_OVERFLOW, "%s: a length that does not fit 63 bits", what);
    *out_product = product;
    return TK_OK;
}

/* ---- reshape ---- */

static tk_node *reshape_to(tk_builder *b, tk_node *a, const tk_shape *shape) {
    if (tk_node_is_error(a)) return a;
    if (a->op == TK_OP_reshape_to && a->n_inputs == 1) a = a->inputs[0];
    if (a->rank == shape->count &&
        (a->rank == 0 || !memcmp(a->shape, shape->items, a->rank * sizeof *a->shape)))
        return tkb_strong(b, a);
    tk_attrs_shape attrs = {.shape = tk_axes_list(shape)};
    return tkb_node1(b, TK_OP_reshape_to, tkb_strong(b, a), &attrs);
}

/* Puts the length that is left in the place of -1. */
static tk_status resolve_length(const char *what, int64_t size, tk_shape *shape) {
    int64_t unknown = -1, known = 1;
    for (int64_t i = 0; i < shape->count; i++) {
        if (shape->items[i] >= 0) continue;
        if (shape->items[i] != -1 || unknown >= 0)
            return tk_fail(TK_SHAPE_ERROR,
                           "%s: axis %lld has length %lld, expected none below 0 but one -1", what,
                           (long long)i, (long long)shape->items[i]);
        unknown = i;
    }
    if (unknown < 0) return TK_OK;
    tk_shape others = *shape;
    others.items[unknown] = 1;
    TK_TRY(tk_length_product(what, others.count, others.items, &known));
    char text[160];
    if (known == 0 || size % known != 0)
        return tk_fail(TK_SHAPE_ERROR, "%s: %lld elements do not divide into shape %s", what,
                       (long long)size,
                       tk_text_shape(text, sizeof text, shape->count, shape->items));
    shape->items[unknown] = size / known;
    return TK_OK;
}

tk_node *tkb_reshape(tk_builder *b, tk_node *a, tk_shape shape) {
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, tk_shape_check("reshape", shape));
    TKB_TRY(b, resolve_length("reshape", a->size, &shape));
    return reshape_to(b, a, &shape);
}

tk_node *tkb_flatten(tk_builder *b, tk_node *a, int64_t start_axis, int64_t end_axis) {
    if (tk_node_is_error(a)) return a;
    if (a->rank == 0) return tkb_reshape(b, a, TK_SHAPE(1));
    int first, last;
    TKB_TRY(b, tk_axis_normalize("flatten", start_axis, a->rank, &first));
    TKB_TRY(b, tk_axis_normalize("flatten", end_axis, a->rank, &last));
    if (first > last)
        return tkb_fail(b, tk_fail(TK_AXIS_ERROR, "flatten: start axis %d comes after end axis %d",
                                   first, last));
    tk_shape shape = {.count = a->rank - (last - first)};
    for (int i = 0; i < first; i++) shape.items[i] = a->shape[i];
    TKB_TRY(b,
            tk_length_product("flatten", last - first + 1, a->shape + first, &shape.items[first]));
    for (int i = last + 1; i < a->rank; i++) shape.items[i - (last - first)] = a->shape[i];
    return reshape_to(b, a, &shape);
}

tk_node *tkb_unflatten(tk_builder *b, tk_node *a, int64_t axis, tk_shape shape) {
    if (tk_node_is_error(a)) return a;
    int at;
    int64_t product;
    TKB_TRY(b, tk_axis_normalize("unflatten", axis, a->rank, &at));
    TKB_TRY(b, tk_shape_check("unflatten", shape));
    if (shape.count == 0)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT,
                                   "unflatten: the shape is empty, expected one axis or more"));
    TKB_TRY(b, resolve_length("unflatten", a->shape[at], &shape));
    TKB_TRY(b, tk_length_product("unflatten", shape.count, shape.items, &product));
    if (product != a->shape[at] || a->rank - 1 + shape.count > TK_MAX_RANK) {
        char text[160];
        return tkb_fail(b,
                        tk_fail(TK_SHAPE_ERROR, "unflatten: axis %d of %s does not become shape %s",
                                at, tk_text_node(a),
                                tk_text_shape(text, sizeof text, shape.count, shape.items)));
    }
    tk_shape result = {.count = a->rank - 1 + shape.count};
    for (int i = 0; i < at; i++) result.items[i] = a->shape[i];
    for (int64_t i = 0; i < shape.count; i++) result.items[at + i] = shape.items[i];
    for (int i = at + 1; i < a->rank; i++) result.items[i - 1 + shape.count] = a->shape[i];
    return reshape_to(b, a, &result);
}

tk_node *tkb_drop_axes(tk_builder *b, tk_node *a, const tk_axes *axes) {
    if (tk_node_is_error(a)) return a;
    tk_shape shape = {.count = 0};
    int64_t next = 0;
    for (int i = 0; i < a->rank; i++) {
        if (next < axes->count && axes->items[next] == i)
            next++;
        else
            shape.items[shape.count++] = a->shape[i];
    }
    return reshape_to(b, a, &shape);
}

tk_node *tkb_expand_dims(tk_builder *b, tk_node *a, tk_axes axes) {
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, tk_shape_check("expand_dims", axes));
    int64_t rank = a->rank + axes.count;
    if (rank > TK_MAX_RANK)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "expand_dims: a result of %lld axes, at most %d are supported",
                                   (long long)rank, TK_MAX_RANK));
    tk_axes normal;
    TKB_TRY(b, tk_axes_normalize("expand_dims", axes, (int)rank, &normal));
    tk_shape shape = {.count = rank};
    int64_t next = 0, from = 0;
    for (int64_t i = 0; i < rank; i++) {
        bool is_new = next < normal.count && normal.items[next] == i;
        shape.items[i] = is_new ? 1 : a->shape[from++];
        next += is_new;
    }
    return reshape_to(b, a, &shape);
}

tk_node *tkb_squeeze(tk_builder *b, tk_node *a, tk_axes axes) {
    if (tk_node_is_error(a)) return a;
    tk_axes normal = {.count = 0};
    if (axes.count >= 0) TKB_TRY(b, tk_axes_normalize("squeeze", axes, a->rank, &normal));
    for (int i = 0; axes.count < 0 && i < a->rank; i++)
        if (a->shape[i] == 1) normal.items[normal.count++] = i;
    for (int64_t i = 0; i < normal.count; i++)
        if (a->shape[normal.items[i]] != 1)
            return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                       "squeeze: axis %lld of %s has length %lld, expected 1",
                                       (long long)normal.items[i], tk_text_node(a),
                                       (long long)a->shape[normal.items[i]]));
    return tkb_drop_axes(b, a, &normal);
}

/* ---- permutations ---- */

static bool is_identity(const tk_axes *order) {
    for (int64_t i = 0; i < order->count; i++)
        if (order->items[i] != i) return false;
    return true;
}

tk_node *tkb_permute(tk_builder *b, tk_node *a, const tk_axes *order) {
    if (tk_node_is_error(a)) return a;
    tk_axes merged = *order;
    if (a->op == TK_OP_permute && a->n_inputs == 1) {
        const tk_attrs_axes *inner = tk_node_attrs(a);
        for (int64_t i = 0; i < merged.count; i++)
            merged.items[i] = inner->axes.items[order->items[i]];
        a = a->inputs[0];
    }
    a = tkb_strong(b, a);
    if (is_identity(&merged)) return a;
    tk_attrs_axes attrs = {.axes = tk_axes_list(&merged)};
    return tkb_node1(b, TK_OP_permute, a, &attrs);
}

tk_node *tkb_transpose(tk_builder *b, tk_node *a, tk_axes axes) {
    if (tk_node_is_error(a)) return a;
    tk_axes order = {.count = a->rank};
    if (axes.count >= 0) {
        TKB_TRY(b, need_entries("transpose", "axes", axes, a->rank));
        TKB_TRY(b, tk_axes_normalize_ordered("transpose", axes, a->rank, &order));
    }
    for (int i = 0; axes.count < 0 && i < a->rank; i++) order.items[i] = a->rank - 1 - i;
    return tkb_permute(b, a, &order);
}

static tk_axes identity_order(int rank) {
    tk_axes order = {.count = rank};
    for (int i = 0; i < rank; i++) order.items[i] = i;
    return order;
}

tk_node *tkb_swapaxes(tk_builder *b, tk_node *a, int64_t axis1, int64_t axis2) {
    if (tk_node_is_error(a)) return a;
    int first, second;
    TKB_TRY(b, tk_axis_normalize("swapaxes", axis1, a->rank, &first));
    TKB_TRY(b, tk_axis_normalize("swapaxes", axis2, a->rank, &second));
    tk_axes order = identity_order(a->rank);
    order.items[first] = second;
    order.items[second] = first;
    return tkb_permute(b, a, &order);
}

tk_node *tkb_moveaxis(tk_builder *b, tk_node *a, int64_t source, int64_t destination) {
    if (tk_node_is_error(a)) return a;
    int from, to;
    TKB_TRY(b, tk_axis_normalize("moveaxis", source, a->rank, &from));
    TKB_TRY(b, tk_axis_normalize("moveaxis", destination, a->rank, &to));
    tk_axes order = {.count = a->rank};
    int next = 0;
    for (int i = 0; i < a->rank; i++) {
        if (i == to)
            order.items[i] = from;
        else {
            next += next == from;
            order.items[i] = next++;
        }
    }
    return tkb_permute(b, a, &order);
}

/* ---- strided boxes ---- */

tk_node *tkb_box(tk_builder *b, tk_node *a, const tk_axes *start, const tk_axes *step,
                 const tk_shape *counts) {
    if (tk_node_is_error(a)) return a;
    bool whole = true;
    for (int i = 0; i < a->rank; i++)
        whole &= counts->items[i] == a->shape[i] && (counts->items[i] <= 1 || step->items[i] == 1);
    a = tkb_strong(b, a);
    if (whole) return a;
    tk_attrs_slice attrs = {
        .start = tk_axes_list(start), .step = tk_axes_list(step), .shape = tk_axes_list(counts)};
    return tkb_node1(b, TK_OP_slice_by, a, &attrs);
}

tk_node *tkb_range(tk_builder *b, tk_node *a, int axis, int64_t first, int64_t last) {
    if (tk_node_is_error(a)) return a;
    tk_axes start = {.count = a->rank}, step = {.count = a->rank};
    tk_shape counts = tk_node_shape(a);
    for (int i = 0; i < a->rank; i++) step.items[i] = 1;
    counts.items[axis] = last - first;
    start.items[axis] = last > first ? first : 0;
    return tkb_box(b, a, &start, &step, &counts);
}

static int64_t clamp_bound(int64_t bound, int64_t length, bool backwards) {
    int64_t low = backwards ? -1 : 0, high = backwards ? length - 1 : length;
    if (bound < 0) bound += length;
    return bound < low ? low : bound > high ? high : bound;
}

static int64_t count_steps(int64_t start, int64_t stop, int64_t step) {
    if (step > 0) return stop > start ? (stop - start - 1) / step + 1 : 0;
    uint64_t stride = 0 - (uint64_t)step;
    return start > stop ? (int64_t)((uint64_t)(start - stop - 1) / stride) + 1 : 0;
}

tk_status tk_slice_normalize(const char *what, const tk_node *a, tk_axes start, tk_axes stop,
                             tk_axes step, tk_axes *out_start, tk_axes *out_step,
                             tk_shape *out_counts) {
    if (start.count >= 0) TK_TRY(need_entries(what, "start", start, a->rank));
    if (stop.count >= 0) TK_TRY(need_entries(what, "stop", stop, a->rank));
    if (step.count >= 0) TK_TRY(need_entries(what, "step", step, a->rank));
    out_start->count = out_step->count = out_counts->count = a->rank;
    for (int i = 0; i < a->rank; i++) {
        int64_t length = a->shape[i], stride = step.count < 0 ? 1 : step.items[i];
        if (stride == 0) return tk_fail(TK_INVALID_ARGUMENT, "%s: axis %d: the step is 0", what, i);
        bool backwards = stride < 0;
        int64_t from = backwards ? length - 1 : 0, to = backwards ? -1 : length;
        if (start.count >= 0) from = clamp_bound(start.items[i], length, backwards);
        if (stop.count >= 0) to = clamp_bound(stop.items[i], length, backwards);
        int64_t count = count_steps(from, to, stride);
        out_counts->items[i] = count;
        out_start->items[i] = count ? from : 0;
        out_step->items[i] = count > 1 ? stride : 1;
    }
    return TK_OK;
}

tk_node *tkb_slice(tk_builder *b, tk_node *a, tk_axes start, tk_axes stop, tk_axes step) {
    if (tk_node_is_error(a)) return a;
    tk_axes from, by;
    tk_shape counts;
    TKB_TRY(b, tk_slice_normalize("slice", a, start, stop, step, &from, &by, &counts));
    return tkb_box(b, a, &from, &by, &counts);
}

tk_node *tkb_flip(tk_builder *b, tk_node *a, tk_axes axes) {
    if (tk_node_is_error(a)) return a;
    tk_axes normal, start = {.count = a->rank}, step = {.count = a->rank};
    TKB_TRY(b, tk_axes_normalize("flip", axes, a->rank, &normal));
    tk_shape counts = tk_node_shape(a);
    for (int i = 0; i < a->rank; i++) step.items[i] = 1;
    for (int64_t i = 0; i < normal.count; i++) {
        int64_t axis = normal.items[i];
        if (a->shape[axis] < 2) continue;
        start.items[axis] = a->shape[axis] - 1;
        step.items[axis] = -1;
    }
    return tkb_box(b, a, &start, &step, &counts);
}

/* ---- broadcasting ---- */

tk_node *tkb_fit(tk_builder *b, const char *what, const char *role, tk_node *a, tk_shape shape) {
    if (tk_node_is_error(a)) return a;
    int64_t lead = shape.count - a->rank;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < a->rank; i++)
        fits = a->shape[i] == 1 || a->shape[i] == shape.items[lead + i];
    if (fits) return tkb_broadcast_to(b, a, shape);
    char text[160];
    return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "%s: %s is %s, expected what broadcasts to %s", what,
                               role, tk_text_node(a),
                               tk_text_shape(text, sizeof text, shape.count, shape.items)));
}

/* ---- contiguous, view, stop_gradient ---- */

tk_node *tkb_contiguous(tk_builder *b, tk_node *a) {
    return tkb_node1(b, TK_OP_contiguous, tkb_strong(b, a), NULL);
}

tk_node *tkb_stop_gradient(tk_builder *b, tk_node *a) {
    return tkb_node1(b, TK_OP_stop_gradient, tkb_strong(b, a), NULL);
}

tk_node *tkb_view(tk_builder *b, tk_node *a, tk_dtype dtype) {
    a = tkb_strong(b, a);
    if (tk_node_is_error(a) || a->dtype == dtype) return a;
    tk_attrs_dtype attrs = {.dtype = dtype};
    return tkb_node1(b, TK_OP_bitcast, a, &attrs);
}
