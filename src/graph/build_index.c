/* Builders of indexing, sorting and updates. Negative indices are counted from the end here, once,
 * so that bodies and kernels only know indices in range or out of it; what is out of range is found
 * by the evaluation and reported as an index error. */
#include <string.h>

#include "graph/build_pieces.h"

/* ---- indices ---- */

/* Indices of a signed type narrower than the axis is long would wrap when the length is added. */
static tk_node *widen_index(tk_builder *b, tk_node *index, int64_t length) {
    if (length > INT32_MAX) return tkb_astype(b, index, TK_INT64);
    return tk_dtype_size((tk_dtype)index->dtype) < 4 ? tkb_astype(b, index, TK_INT32) : index;
}

tk_node *tkb_wrap_index(tk_builder *b, const char *what, tk_node *index, int64_t length) {
    if (tk_node_is_error(index)) return index;
    if (!tk_dtype_is_integer((tk_dtype)index->dtype))
        return tkb_fail(b, tk_fail(TK_DTYPE_ERROR, "%s: indices are %s, expected an integer dtype",
                                   what, tk_text_node(index)));
    index = tkb_strong(b, index);
    if (tk_dtype_kind((tk_dtype)index->dtype) == TK_KIND_UNSIGNED) return index;
    index = widen_index(b, index, length);
    tk_dtype dtype = (tk_dtype)index->dtype;
    tk_node *from_end = tkb_add(b, index, tkb_const_int(b, dtype, length));
    return tkb_where(b, tkb_less(b, index, tkb_zero(b, dtype)), from_end, index);
}

/* ---- take ---- */

/* Index axes come first in what gather gives; this puts them where the indexed axis was. */
static tk_node *move_index_axes(tk_builder *b, tk_node *gathered, int n_index, int axis) {
    tk_axes order = {.count = gathered->rank};
    for (int i = 0; i < axis; i++) order.items[i] = n_index + i;
    for (int i = 0; i < n_index; i++) order.items[axis + i] = i;
    for (int i = axis + n_index; i < gathered->rank; i++) order.items[i] = i;
    return tkb_permute(b, gathered, &order);
}

static tk_node *take_nothing(tk_builder *b, const tk_node *a, const tk_node *indices, int axis) {
    if (indices->size > 0)
        return tkb_fail(b, tk_fail(TK_INDEX_ERROR,
                                   "take: %lld indices into axis %d of %s, which is empty",
                                   (long long)indices->size, axis, tk_text_node(a)));
    tk_shape shape = {.count = a->rank - 1 + indices->rank};
    for (int i = 0; i < axis; i++) shape.items[i] = a->shape[i];
    for (int i = 0; i < indices->rank; i++) shape.items[axis + i] = indices->shape[i];
    for (int i = axis + 1; i < a->rank; i++) shape.items[i - 1 + indices->rank] = a->shape[i];
    return tkb_zeros(b, shape, (tk_dtype)a->dtype);
}

tk_node *tkb_take(tk_builder *b, tk_node *a, tk_node *indices, int64_t axis) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize("take", axis, a->rank, &at));
    indices = tkb_wrap_index(b, "take", indices, a->shape[at]);
    if (tk_node_is_error(indices)) return indices;
    if (indices->rank + a->rank > TK_MAX_RANK)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "take: indices %s into %s have more than %d axes together",
                                   tk_text_node(indices), tk_text_node(a), TK_MAX_RANK));
    a = tkb_strong(b, a);
    if (a->shape[at] == 0) return take_nothing(b, a, indices, at);
    tk_shape sizes = tk_node_shape(a);
    sizes.items[at] = 1;
    tk_axes axes = TK_AXES(at), dropped = TK_AXES(indices->rank + at);
    tk_attrs_gather attrs = {.axes = tk_axes_list(&axes), .slice_sizes = tk_axes_list(&sizes)};
    tk_node *gathered = tkb_drop_axes(b, tkb_node2(b, TK_OP_gather, a, indices, &attrs), &dropped);
    return tk_node_is_error(gathered) ? gathered : move_index_axes(b, gathered, indices->rank, at);
}

/* ---- gather and scatter ---- */

/* Index arrays wrapped and brought to one shape, into `out`. */
static bool wrap_indices(tk_builder *b, const char *what, const tk_node *a, const tk_axes *axes,
                         tk_node *const *indices, tk_node **out) {
    for (int64_t i = 0; i < axes->count; i++)
        out[i] = tkb_wrap_index(b, what, indices[i], a->shape[axes->items[i]]);
    return tkb_broadcast(b, what, (size_t)axes->count, out);
}

static tk_status index_axes(const char *what, const tk_node *a, size_t n_indices, tk_axes axes,
                            tk_axes *out_axes) {
    TK_TRY(tk_axes_normalize_ordered(what, axes, a->rank, out_axes));
    if (n_indices > 0 && (int64_t)n_indices == out_axes->count) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT,
                   "%s: %zu index arrays for %lld axes, expected one each and one or more", what,
                   n_indices, (long long)out_axes->count);
}

tk_node *tkb_gather(tk_builder *b, tk_node *a, tk_node *const *indices, size_t n_indices,
                    tk_axes axes, tk_shape slice_sizes) {
    tk_node *inputs[TK_MAX_RANK + 1];
    tk_axes normal;
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, index_axes("gather", a, n_indices, axes, &normal));
    TKB_TRY(b, tk_shape_check("gather: slice sizes", slice_sizes));
    inputs[0] = tkb_strong(b, a);
    if (!wrap_indices(b, "gather", a, &normal, indices, inputs + 1)) return inputs[1];
    tk_attrs_gather attrs = {.axes = tk_axes_list(&normal),
                             .slice_sizes = tk_axes_list(&slice_sizes)};
    return tkb_node(b, TK_OP_gather, n_indices + 1, inputs, &attrs);
}

tk_node *tkb_scatter_nd(tk_builder *b, tk_node *a, tk_node *updates, tk_node *const *indices,
                        size_t n_indices, tk_axes axes, tk_mode mode) {
    tk_node *inputs[TK_MAX_RANK + 2];
    tk_axes normal;
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, index_axes("scatter_nd", a, n_indices, axes, &normal));
    inputs[0] = tkb_strong(b, a);
    inputs[1] = tkb_become(b, updates, (tk_dtype)a->dtype);
    if (!wrap_indices(b, "scatter_nd", a, &normal, indices, inputs + 2)) return inputs[2];
    tk_attrs_scatter attrs = {.axes = tk_axes_list(&normal), .mode = mode};
    return tkb_node(b, TK_OP_scatter, n_indices + 2, inputs, &attrs);
}

/* ---- along an axis ---- */

/* The shape of `index` with the lengths beside `axis` broadcast with those of `a`. */
static tk_status along_shape(const char *what, const tk_node *a, const tk_node *index, int axis,
                             tk_shape *out_shape) {
    if (a->rank != index->rank)
        return tk_fail(TK_SHAPE_ERROR, "%s: indices are %s for an array %s, expected as many axes",
                       what, tk_text_node(index), tk_text_node(a));
    *out_shape = tk_node_shape(index);
    for (int i = 0; i < a->rank; i++) {
        if (i == axis || index->shape[i] == a->shape[i] || a->shape[i] == 1) continue;
        if (index->shape[i] != 1)
            return tk_fail(TK_SHAPE_ERROR, "%s: indices %s and array %s differ on axis %d", what,
                           tk_text_node(index), tk_text_node(a), i);
        out_shape->items[i] = a->shape[i];
    }
    return TK_OK;
}

tk_node *tkb_take_along_axis(tk_builder *b, tk_node *a, tk_node *indices, int64_t axis) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize("take_along_axis", axis, a->rank, &at));
    indices = tkb_wrap_index(b, "take_along_axis", indices, a->shape[at]);
    if (tk_node_is_error(indices)) return indices;
    tk_shape index_shape;
    TKB_TRY(b, along_shape("take_along_axis", a, indices, at, &index_shape));
    tk_shape shape = index_shape;
    shape.items[at] = a->shape[at];
    tk_attrs_axis attrs = {.axis = at};
    return tkb_node2(b, TK_OP_gather_along, tkb_broadcast_to(b, tkb_strong(b, a), shape),
                     tkb_broadcast_to(b, indices, index_shape), &attrs);
}

static tk_node *scatter_along(tk_builder *b, const char *what, tk_node *a, tk_node *indices,
                              tk_node *values, int64_t axis, tk_mode mode) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize(what, axis, a->rank, &at));
    indices = tkb_wrap_index(b, what, indices, a->shape[at]);
    if (tk_node_is_error(indices)) return indices;
    tk_shape shape;
    TKB_TRY(b, along_shape(what, a, indices, at, &shape));
    a = tkb_strong(b, a);
    tk_node *updates = tkb_fit(b, what, "values", tkb_become(b, values, (tk_dtype)a->dtype), shape);
    tk_attrs_scatter_axis attrs = {.axis = at, .mode = mode};
    tk_node *inputs[] = {a, tkb_broadcast_to(b, indices, shape), updates};
    return tkb_node(b, TK_OP_scatter_along, 3, inputs, &attrs);
}

tk_node *tkb_put_along_axis(tk_builder *b, tk_node *a, tk_node *indices, tk_node *values,
                            int64_t axis) {
    return scatter_along(b, "put_along_axis", a, indices, values, axis, TK_SET);
}

tk_node *tkb_scatter_add_along_axis(tk_builder *b, tk_node *a, tk_node *indices, tk_node *values,
                                    int64_t axis) {
    return scatter_along(b, "scatter_add_along_axis", a, indices, values, axis, TK_ADD);
}

/* ---- updates ---- */

/* Leading axes of length 1 that the target does not have go, as in NumPy's assignment. */
static tk_node *drop_leading_ones(tk_builder *b, tk_node *update, int rank) {
    tk_axes lead = {.count = 0};
    while (update->rank - lead.count > rank && update->shape[lead.count] == 1) {
        lead.items[lead.count] = lead.count;
        lead.count++;
    }
    return tkb_drop_axes(b, update, &lead);
}

static bool is_whole(const tk_node *a, const tk_axes *step, const tk_shape *counts) {
    for (int i = 0; i < a->rank; i++)
        if (counts->items[i] != a->shape[i] || step->items[i] != 1) return false;
    return true;
}

tk_node *tkb_slice_update(tk_builder *b, tk_node *a, tk_node *update, tk_axes start, tk_axes stop,
                          tk_axes step, tk_mode mode) {
    if (tk_node_is_error(a)) return a;
    if (tk_node_is_error(update)) return update;
    tk_axes from, by;
    tk_shape counts;
    if ((unsigned)mode >= TK_MODE_COUNT)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT, "slice_update: %d is no mode", (int)mode));
    TKB_TRY(b, tk_slice_normalize("slice_update", a, start, stop, step, &from, &by, &counts));
    a = tkb_strong(b, a);
    update = drop_leading_ones(b, tkb_become(b, update, (tk_dtype)a->dtype), a->rank);
    update = tkb_fit(b, "slice_update", "update", update, counts);
    if (mode == TK_SET && is_whole(a, &by, &counts)) return update;
    if (!tk_node_is_error(update) && update->size == 0) return a;
    tk_attrs_slice_set attrs = {
        .start = tk_axes_list(&from), .step = tk_axes_list(&by), .mode = mode};
    return tkb_node2(b, TK_OP_slice_set, a, update, &attrs);
}

/* ---- sorting ---- */

static tk_node *along(tk_builder *b, tk_op op, tk_node *a, const char *what, int64_t axis) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize(what, axis, a->rank, &at));
    tk_attrs_axis attrs = {.axis = at};
    return tkb_node1(b, op, tkb_strong(b, a), &attrs);
}

tk_node *tkb_sort(tk_builder *b, tk_node *a, int64_t axis) {
    return along(b, TK_OP_sort_axis, a, "sort", axis);
}

tk_node *tkb_argsort(tk_builder *b, tk_node *a, int64_t axis) {
    return along(b, TK_OP_argsort_axis, a, "argsort", axis);
}

static tk_node *partition_by(tk_builder *b, tk_op op, tk_node *a, const char *what, int64_t kth,
                             int64_t axis) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize(what, axis, a->rank, &at));
    int64_t length = a->shape[at];
    if (kth < -length || kth >= length)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT, "%s: kth is %lld for axis %d of %s", what,
                                   (long long)kth, at, tk_text_node(a)));
    tk_attrs_partition attrs = {.axis = at, .kth = kth < 0 ? kth + length : kth};
    return tkb_node1(b, op, tkb_strong(b, a), &attrs);
}

tk_node *tkb_partition(tk_builder *b, tk_node *a, int64_t kth, int64_t axis) {
    return partition_by(b, TK_OP_partition_axis, a, "partition", kth, axis);
}

tk_node *tkb_argpartition(tk_builder *b, tk_node *a, int64_t kth, int64_t axis) {
    return partition_by(b, TK_OP_argpartition_axis, a, "argpartition", kth, axis);
}

tk_node *tkb_topk(tk_builder *b, tk_node *a, int64_t k, int64_t axis) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize("topk", axis, a->rank, &at));
    int64_t length = a->shape[at];
    if (k < 0 || k > length)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT, "topk: k is %lld for axis %d of %s",
                                   (long long)k, at, tk_text_node(a)));
    if (k == 0 || k == length) return tkb_range(b, a, at, 0, k);
    return tkb_range(b, tkb_partition(b, a, length - k, at), at, length - k, length);
}
