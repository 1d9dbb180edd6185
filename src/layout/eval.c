/* The value of a layout at a coordinate.
 *
 * Three roads to one answer: a plain loop for static integers (what inner loops call), an odometer
 * for runs of consecutive coordinates, and the general walk that also takes nested coordinates,
 * dynamic terms and basis vectors. */
#include "layout/term.h"
#include "layout/tree.h"

int64_t tk_layout_at(const tk_layout *layout, int64_t index) {
    int last = layout->leaf_count - 1;
    int64_t offset = 0, digit;
    for (int i = 0; i < last; i++) {
        index = tk_div_fast(index, layout->leaf[i].shape.value, &digit);
        offset += digit * layout->leaf[i].stride.value;
    }
    return last < 0 ? 0 : offset + index * layout->leaf[last].stride.value;
}

int64_t tk_layout_at_leaves(const tk_layout *layout, const int64_t *coord) {
    int64_t offset = 0;
    for (int i = 0; i < layout->leaf_count; i++) offset += coord[i] * layout->leaf[i].stride.value;
    return offset;
}

/* The digits of `index`, the last leaf taking the rest. */
static void split_index(const tk_layout *layout, int64_t index, int64_t *digit) {
    for (int i = 0; i < layout->leaf_count; i++) {
        bool last = i + 1 == layout->leaf_count;
        digit[i] = last ? index : index % layout->leaf[i].shape.value;
        index /= layout->leaf[i].shape.value;
    }
}

/* Do the offsets up to `index` stay in range? Bounds the positive and the negative part apart. */
static tk_status check_extension(const tk_layout *layout, int64_t index) {
    int64_t digit[TK_LAYOUT_MAX_LEAVES], reach, total[2] = {0, 0};
    split_index(layout, index, digit);
    for (int i = 0; i < layout->leaf_count; i++) {
        bool last = i + 1 == layout->leaf_count;
        int64_t most = last ? digit[i] : layout->leaf[i].shape.value - 1;
        if (tk_mul_overflow_i64(most, layout->leaf[i].stride.value, &reach) ||
            tk_add_overflow_i64(total[reach < 0], reach, &total[reach < 0]))
            return tk_fail(TK_OVERFLOW, "the offset of index %lld leaves the range of 64 bits",
                           (long long)index);
    }
    return TK_OK;
}

static tk_status check_run(const tk_layout *layout, int64_t first, int64_t count) {
    int64_t end;
    if (first < 0 || count < 0 || tk_add_overflow_i64(first, count, &end))
        return tk_fail(TK_INVALID_ARGUMENT, "offsets of %lld coordinates from %lld",
                       (long long)count, (long long)first);
    if (!tk_layout_is_plain(layout))
        return tk_fail(TK_UNSUPPORTED, "offsets need static extents and integer strides");
    return count ? check_extension(layout, end - 1) : TK_OK;
}

tk_status tk_layout_offsets(const tk_layout *layout, int64_t first, int64_t count, int64_t *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    TK_TRY(check_run(layout, first, count));
    int64_t digit[TK_LAYOUT_MAX_LEAVES];
    int last = layout->leaf_count - 1;
    split_index(layout, first, digit);
    int64_t offset = tk_layout_at_leaves(layout, digit);
    for (int64_t i = 0; i < count; i++) {
        out[i] = offset;
        for (int leaf = 0; leaf <= last; leaf++) {
            int64_t extent = layout->leaf[leaf].shape.value;
            int64_t stride = layout->leaf[leaf].stride.value;
            if (leaf == last || digit[leaf] + 1 < extent) {
                digit[leaf]++;
                offset = (int64_t)((uint64_t)offset + (uint64_t)stride);
                break;
            }
            offset -= digit[leaf] * stride;
            digit[leaf] = 0;
        }
    }
    return TK_OK;
}

/* -- The general walk -- */

/* Sums, one for each basis met. */
typedef struct sums {
    int count;
    tk_term term[TK_LAYOUT_MAX_LEAVES];
} sums;

static tk_status add_product(sums *total, tk_term digit, tk_term stride) {
    if (digit.kind == TK_TERM_ANY) return TK_OK;
    if (digit.basis)
        return tk_fail(TK_SHAPE_ERROR, "coordinate %s: expected an integer or `?`",
                       tk_term_show(digit).text);
    tk_term product;
    TK_TRY(tk_term_mul(digit, stride, &product));
    product.basis = stride.basis;
    for (int i = 0; i < total->count; i++)
        if (total->term[i].basis == product.basis)
            return tk_term_add(total->term[i], product, &total->term[i]);
    total->term[total->count++] = product;
    return TK_OK;
}

/* One number over all leaves of a part. */
static tk_status sum_number(tk_part part, tk_term index, sums *total) {
    int leaves = tk_tree_leaves(part.node);
    if (leaves > 1 && index.value < 0)
        return tk_fail(TK_INDEX_ERROR, "coordinate %lld: a negative one meets several leaves",
                       (long long)index.value);
    for (int i = 0; i < leaves; i++) {
        tk_term extent = part.leaf[i].shape;
        bool last = i + 1 == leaves;
        TK_TRY(add_product(total, last ? index : tk_term_mod(index, extent), part.leaf[i].stride));
        if (!last) index = tk_term_div(index, extent);
    }
    return TK_OK;
}

static tk_status sum_coord(tk_part part, tk_span coord, sums *total) {
    if (tk_span_is_leaf(coord)) {
        if (coord.leaf->kind == TK_TERM_ANY) return TK_OK;
        return sum_number(part, *coord.leaf, total);
    }
    if (*coord.node != *part.node)
        return tk_fail(TK_SHAPE_ERROR, "a coordinate of %d modes for a shape of %d",
                       tk_node_children(*coord.node), tk_part_rank(part));
    int rank = tk_node_children(*part.node);
    part = tk_part_first(part);
    coord = tk_span_first(coord);
    for (int i = 0; i < rank; i++, part = tk_part_next(part), coord = tk_span_next(coord))
        TK_TRY(sum_coord(part, coord, total));
    return TK_OK;
}

/* Writes the sums whose basis starts with the `depth` modes of `path` as one mode of a tuple. */
static tk_status put_sums(const sums *total, uint32_t path, int depth, tk_tuple *out) {
    uint32_t known = depth ? ((uint32_t)1 << (TK_BASIS_BITS * depth)) - 1 : 0;
    int modes = 0;
    tk_term scalar = tk_term_int(0);
    for (int i = 0; i < total->count; i++) {
        tk_term term = total->term[i];
        if ((term.basis & known) != path) continue;
        int mode = (int)(term.basis >> (TK_BASIS_BITS * depth) & 63);
        if (mode > modes) modes = mode;
        term.basis = 0;
        if (!mode) scalar = term;
    }
    if (modes && !tk_term_is(scalar, 0))
        return tk_fail(TK_SHAPE_ERROR,
                       "%s is added to a tuple: strides mix integers and basis "
                       "vectors",
                       tk_term_show(scalar).text);
    if (!modes) {
        tk_tuple_put_leaf(out, scalar);
        return TK_OK;
    }
    tk_tuple_put_node(out, (uint8_t)modes);
    for (int mode = 1; mode <= modes; mode++)
        TK_TRY(put_sums(total, path | (uint32_t)mode << (TK_BASIS_BITS * depth), depth + 1, out));
    return tk_tuple_finish(out);
}

tk_status tk_layout_eval(const tk_layout *layout, const tk_tuple *coord, tk_tuple *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    TK_TRY(tk_check_tuple(coord, "coord"));
    sums total = {.count = 0};
    TK_TRY(sum_coord(tk_part_of(layout), tk_span_of(coord), &total));
    tk_tuple_clear(out);
    TK_TRY(put_sums(&total, 0, 0, out));
    return tk_tuple_finish(out);
}
