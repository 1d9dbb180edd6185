/* Builders that make one array of several or several of one: concatenate, stack, split, pad, tile,
 * repeat, roll. Repetition is a broadcast along a new axis, merged by a reshape: no op of its own.
 */
#include <string.h>

#include "base/alloc.h"
#include "graph/build_pieces.h"

/* ---- joining ---- */

static tk_node *first_error(size_t count, tk_node *const *nodes) {
    for (size_t i = 0; i < count; i++)
        if (tk_node_is_error(nodes[i])) return nodes[i];
    return NULL;
}

/* Promotes a copy of the list and joins it along an axis in normal form. */
static tk_node *join(tk_builder *b, size_t count, tk_node **nodes, int axis) {
    tkb_promote(b, count, nodes);
    if (count == 1) return nodes[0];
    tk_attrs_axis attrs = {.axis = axis};
    return tkb_node(b, TK_OP_join, count, nodes, &attrs);
}

static tk_node **copy_list(const char *what, tk_node *const *arrays, size_t count) {
    if (count == 0) return tk_fail(TK_INVALID_ARGUMENT, "%s: no arrays given", what), NULL;
    tk_node **copy = count > SIZE_MAX / sizeof *copy ? NULL : tk_malloc(count * sizeof *copy);
    if (!copy)
        return tk_fail(TK_OUT_OF_MEMORY, "%s: no memory for %zu operands", what, count), NULL;
    memcpy(copy, arrays, count * sizeof *copy);
    return copy;
}

tk_node *tkb_concatenate(tk_builder *b, tk_node *const *arrays, size_t n_arrays, int64_t axis) {
    tk_node *error = first_error(n_arrays, arrays);
    if (error) return error;
    tk_node **copy = copy_list("concatenate", arrays, n_arrays);
    if (!copy) return tkb_fail(b, tk_error_code());
    int at;
    tk_status status = tk_axis_normalize("concatenate", axis, arrays[0]->rank, &at);
    tk_node *result = status == TK_OK ? join(b, n_arrays, copy, at) : tkb_fail(b, status);
    tk_free(copy);
    return result;
}

static tk_node *stack_list(tk_builder *b, size_t count, tk_node **nodes, int64_t axis) {
    int at;
    for (size_t i = 1; i < count; i++)
        if (!tk_shape_equal(nodes[0], nodes[i]))
            return tkb_fail(b,
                            tk_fail(TK_SHAPE_ERROR,
                                    "stack: array 0 is %s and array %zu is %s, expected one shape",
                                    tk_text_node(nodes[0]), i, tk_text_node(nodes[i])));
    TKB_TRY(b, tk_axis_normalize("stack", axis, nodes[0]->rank + 1, &at));
    for (size_t i = 0; i < count; i++) nodes[i] = tkb_expand_dims(b, nodes[i], TK_AXES(at));
    tk_node *error = first_error(count, nodes);
    return error ? error : join(b, count, nodes, at);
}

tk_node *tkb_stack(tk_builder *b, tk_node *const *arrays, size_t n_arrays, int64_t axis) {
    tk_node *error = first_error(n_arrays, arrays);
    if (error) return error;
    tk_node **copy = copy_list("stack", arrays, n_arrays);
    if (!copy) return tkb_fail(b, tk_error_code());
    tkb_promote(b, n_arrays, copy);
    tk_node *result = stack_list(b, n_arrays, copy, axis);
    tk_free(copy);
    return result;
}

/* ---- splitting ---- */

static bool push(tk_node_vec *out, tk_node *node) {
    return tk_vec_push(out, node) && !tk_node_is_error(node);
}

static int64_t cut_at(int64_t index, int64_t length) {
    if (index < 0) index += length;
    return index < 0 ? 0 : index > length ? length : index;
}

bool tkb_split(tk_builder *b, tk_node *a, tk_axes indices, int64_t axis, tk_node_vec *out) {
    if (tk_node_is_error(a)) return push(out, a);
    int at;
    tk_status status = tk_axis_normalize("split", axis, a->rank, &at);
    if (status == TK_OK) status = tk_shape_check("split: indices", indices);
    if (status != TK_OK) return push(out, tkb_fail(b, status));
    int64_t length = a->shape[at], first = 0;
    for (int64_t i = 0; i <= indices.count; i++) {
        int64_t last = i < indices.count ? cut_at(indices.items[i], length) : length;
        if (!push(out, tkb_range(b, a, at, first, last > first ? last : first))) return false;
        first = last;
    }
    return true;
}

bool tkb_split_equal(tk_builder *b, tk_node *a, int64_t sections, int64_t axis, tk_node_vec *out) {
    if (tk_node_is_error(a)) return push(out, a);
    int at;
    tk_status status = tk_axis_normalize("split", axis, a->rank, &at);
    if (status == TK_OK && (sections <= 0 || a->shape[at] % sections != 0))
        status = tk_fail(TK_INVALID_ARGUMENT,
                         "split: axis %d of %s does not divide into %lld equal parts", at,
                         tk_text_node(a), (long long)sections);
    if (status != TK_OK) return push(out, tkb_fail(b, status));
    int64_t length = a->shape[at] / sections;
    for (int64_t i = 0; i < sections; i++)
        if (!push(out, tkb_range(b, a, at, i * length, (i + 1) * length))) return false;
    return true;
}

/* ---- padding ---- */

tk_node *tkb_pad(tk_builder *b, tk_node *a, tk_axes low, tk_axes high, tk_node *value) {
    if (tk_node_is_error(a)) return a;
    if (low.count != a->rank || high.count != a->rank)
        return tkb_fail(
            b, tk_fail(TK_INVALID_ARGUMENT,
                       "pad: %lld low and %lld high widths given for %s, expected one an axis",
                       (long long)low.count, (long long)high.count, tk_text_node(a)));
    a = tkb_strong(b, a);
    value = value ? tkb_become(b, value, (tk_dtype)a->dtype) : tkb_zero(b, (tk_dtype)a->dtype);
    if (!tk_node_is_error(value) && value->size == 1) value = tkb_reshape(b, value, TK_SCALAR);
    bool is_padded = tk_node_is_error(value) || value->rank > 0;
    for (int i = 0; i < a->rank; i++) is_padded |= low.items[i] != 0 || high.items[i] != 0;
    if (!is_padded) return a;
    tk_attrs_pad attrs = {.low = tk_axes_list(&low), .high = tk_axes_list(&high)};
    return tkb_node2(b, TK_OP_pad_with, a, value, &attrs);
}

/* ---- repetition ---- */

/* Repeats the whole array along up to seven axes: axis i is [repeats, what lies to its right]. Axes
 * that are not repeated merge with their left neighbour, which keeps the rank within bounds. Takes
 * the repeats that it has done out of `reps`. */
static tk_node *tile_some(tk_builder *b, tk_node *a, tk_shape *reps) {
    tk_shape whole = tk_node_shape(a), apart = {.count = 1, .items = {1}}, wide;
    int done = 0;
    for (int i = 0; i < a->rank; i++) {
        if (reps->items[i] != 1 && done < 7) {
            if (tk_mul_overflow_i64(whole.items[i], reps->items[i], &whole.items[i]))
                return tkb_fail(b, tk_fail(TK_OVERFLOW, "tile: axis %d does not fit 63 bits", i));
            apart.items[apart.count++] = 1;
            apart.items[apart.count++] = 1;
            done++;
        }
        if (tk_mul_overflow_i64(apart.items[apart.count - 1], a->shape[i],
                                &apart.items[apart.count - 1]))
            return tkb_fail(b, tk_fail(TK_OVERFLOW, "tile: a length that does not fit 63 bits"));
    }
    wide = apart;
    for (int64_t i = 0, next = 1; next < wide.count; i++) {
        if (reps->items[i] == 1) continue;
        wide.items[next] = reps->items[i];
        reps->items[i] = 1;
        next += 2;
    }
    return tkb_reshape(b, tkb_broadcast_to(b, tkb_reshape(b, a, apart), wide), whole);
}

tk_node *tkb_tile(tk_builder *b, tk_node *a, tk_shape reps) {
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, tk_shape_check("tile", reps));
    int64_t rank = reps.count > a->rank ? reps.count : a->rank;
    tk_shape shape = {.count = rank}, counts = {.count = rank};
    bool is_repeated = false;
    for (int64_t i = 0; i < rank; i++) {
        int64_t axis = i - (rank - a->rank), entry = i - (rank - reps.count);
        shape.items[i] = axis < 0 ? 1 : a->shape[axis];
        counts.items[i] = entry < 0 ? 1 : reps.items[entry];
        if (counts.items[i] < 0)
            return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT,
                                       "tile: %lld repetitions, expected none below 0",
                                       (long long)counts.items[i]));
        is_repeated |= counts.items[i] != 1;
    }
    a = tkb_reshape(b, a, shape);
    while (is_repeated && !tk_node_is_error(a)) {
        a = tile_some(b, a, &counts);
        is_repeated = false;
        for (int64_t i = 0; i < rank; i++) is_repeated |= counts.items[i] != 1;
    }
    return a;
}

tk_node *tkb_repeat(tk_builder *b, tk_node *a, int64_t repeats, int64_t axis) {
    if (tk_node_is_error(a)) return a;
    int at;
    TKB_TRY(b, tk_axis_normalize("repeat", axis, a->rank, &at));
    if (repeats < 0)
        return tkb_fail(b,
                        tk_fail(TK_INVALID_ARGUMENT, "repeat: %lld repeats, expected none below 0",
                                (long long)repeats));
    tk_shape whole = tk_node_shape(a), apart = {.count = 3, .items = {0, 1, 0}};
    if (tk_mul_overflow_i64(whole.items[at], repeats, &whole.items[at]))
        return tkb_fail(b, tk_fail(TK_OVERFLOW, "repeat: %s by %lld does not fit 63 bits",
                                   tk_text_node(a), (long long)repeats));
    TKB_TRY(b, tk_length_product("repeat", at + 1, a->shape, &apart.items[0]));
    TKB_TRY(b, tk_length_product("repeat", a->rank - at - 1, a->shape + at + 1, &apart.items[2]));
    tk_shape wide = apart;
    wide.items[1] = repeats;
    return tkb_reshape(b, tkb_broadcast_to(b, tkb_reshape(b, a, apart), wide), whole);
}

/* ---- roll ---- */

static tk_node *roll_axis(tk_builder *b, tk_node *a, int axis, int64_t shift) {
    int64_t length = a->shape[axis], cut = length - shift;
    if (shift == 0) return a;
    tk_node *parts[] = {tkb_range(b, a, axis, cut, length), tkb_range(b, a, axis, 0, cut)};
    return tkb_concatenate(b, parts, 2, axis);
}

/* shift modulo length, in 0 .. length-1. */
static int64_t add_shift(int64_t sum, int64_t shift, int64_t length) {
    if (length == 0) return 0;
    int64_t inside = shift % length;
    if (inside < 0) inside += length;
    return sum < length - inside ? sum + inside : sum - (length - inside);
}

tk_node *tkb_roll(tk_builder *b, tk_node *a, tk_axes shifts, tk_axes axes) {
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, tk_shape_check("roll: shifts", shifts));
    if (axes.count < 0) {
        tk_node *flat = tkb_roll(b, tkb_reshape(b, a, TK_SHAPE(-1)), shifts, TK_AXES(0));
        return tkb_reshape(b, flat, tk_node_shape(a));
    }
    TKB_TRY(b, tk_shape_check("roll: axes", axes));
    int64_t count = shifts.count > axes.count ? shifts.count : axes.count;
    if ((shifts.count != count && shifts.count != 1) || (axes.count != count && axes.count != 1))
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT,
                                   "roll: %lld shifts for %lld axes, expected as many or one",
                                   (long long)shifts.count, (long long)axes.count));
    int64_t sums[TK_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++) {
        int axis;
        TKB_TRY(b, tk_axis_normalize("roll", axes.items[axes.count == 1 ? 0 : i], a->rank, &axis));
        sums[axis] = add_shift(sums[axis], shifts.items[shifts.count == 1 ? 0 : i], a->shape[axis]);
    }
    tk_node *result = tkb_strong(b, a);
    for (int i = 0; i < a->rank && !tk_node_is_error(result); i++)
        result = roll_axis(b, result, i, sums[i]);
    return result;
}
