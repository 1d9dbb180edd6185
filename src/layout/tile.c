/* Tiling for use: covering a shape with blocks, cutting out one tile, dealing a tensor to threads,
 * thread-value layouts, and the same bytes seen in other elements. */
#include "layout/coalesce.h"
#include "layout/image.h"
#include "layout/term.h"
#include "layout/tree.h"

/* 0, 1, 2, ...: repetitions left to right. */
static void count_up(int rank, tk_tuple *out) {
    tk_tuple_clear(out);
    tk_tuple_put_node(out, (uint8_t)rank);
    for (int i = 0; i < rank; i++) tk_tuple_put_leaf(out, tk_term_int(i));
}

static tk_status check_order(const tk_tuple *order, int rank) {
    if (tk_tuple_rank(order) != rank || (order->node[0] == TK_NODE_LEAF && rank != 1))
        return tk_fail(TK_SHAPE_ERROR, "an order of %d keys for a shape of %d modes",
                       tk_tuple_rank(order), rank);
    return TK_OK;
}

/* One extent a mode, also for an integer shape. */
static tk_status flat_shape(const tk_tuple *shape, tk_tuple *out) {
    tk_tuple each;
    TK_TRY(tk_tuple_product_each(shape, &each));
    tk_tuple_clear(out);
    tk_tuple_put_node(out, each.leaf_count);
    for (int i = 0; i < each.leaf_count; i++) tk_tuple_put_leaf(out, each.leaf[i]);
    return tk_tuple_finish(out);
}

tk_status tk_layout_tile_to_shape(const tk_layout *block, const tk_tuple *shape,
                                  const tk_tuple *order, tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(block, "block"));
    TK_TRY(tk_check_tuple(shape, "shape"));
    int rank = tk_tuple_rank(shape);
    if (tk_layout_rank(block) > rank)
        return tk_fail(TK_SHAPE_ERROR, "a shape of %d modes for a block of %d", rank,
                       tk_layout_rank(block));
    tk_layout padded, repeats;
    tk_tuple target, counts, block_shape, keys;
    TK_TRY(flat_shape(shape, &target));
    TK_TRY(tk_layout_append(block, rank, NULL, &padded));
    tk_layout_shape(&padded, &block_shape);
    TK_TRY(flat_shape(&block_shape, &counts));
    for (int i = 0; i < rank; i++) {
        if (target.leaf[i].value < 1)
            return tk_fail(TK_SHAPE_ERROR, "extent %s of mode %d: expected at least 1",
                           tk_term_show(target.leaf[i]).text, i);
        counts.leaf[i] = tk_term_ceil_div(target.leaf[i], counts.leaf[i]);
    }
    count_up(rank, &keys);
    if (order) TK_TRY(check_order(order, rank));
    for (int i = 0; order && order->leaf_count == rank && i < rank; i++)
        keys.leaf[i] = order->leaf[i];
    if (order && order->leaf_count != rank)
        return tk_fail(TK_SHAPE_ERROR, "a nested order: expected one key for each mode");
    TK_TRY(tk_layout_make_ordered(&counts, &keys, &repeats));
    return tk_layout_blocked_product(&padded, &repeats, out);
}

/* -- One tile -- */

/* ((tile coordinate), (rest coordinate padded with wildcards)). */
static tk_status aim(const tk_layout *zipped, const tk_tuple *coord, bool keep_tile,
                     tk_tuple *out) {
    tk_part tile = tk_part_mode(tk_part_of(zipped), 0);
    tk_part rest = tk_part_next(tile);
    tk_term any = {0, 0, TK_TERM_ANY};
    int rank = tk_part_rank(keep_tile ? rest : tile), given = tk_tuple_rank(coord);
    bool single = coord->node[0] == TK_NODE_LEAF;
    if (!single && given > rank)
        return tk_fail(TK_SHAPE_ERROR, "a coordinate of %d modes for %d modes", given, rank);
    tk_tuple_clear(out);
    tk_tuple_put_node(out, 2);
    if (keep_tile) tk_tuple_put_leaf(out, any);
    if (single) {
        tk_tuple_put_part(out, coord->node, coord->leaf);
    } else {
        tk_span mode = tk_span_first(tk_span_of(coord));
        tk_tuple_put_node(out, (uint8_t)rank);
        for (int i = 0; i < given; i++, mode = tk_span_next(mode))
            tk_tuple_put_part(out, mode.node, mode.leaf);
        for (int i = given; i < rank; i++) tk_tuple_put_leaf(out, any);
    }
    if (!keep_tile) tk_tuple_put_leaf(out, any);
    return tk_tuple_finish(out);
}

/* A slice that keeps one whole mode comes as (mode, ...): its modes are the result's. */
static tk_status unwrap(const tk_layout *sliced, tk_layout *out) {
    tk_part part = tk_part_of(sliced);
    tk_layout_clear(out);
    if (tk_part_rank(part) == 1 && tk_node_is_tuple(*part.node)) {
        tk_put_part(out, tk_part_first(part));
        return tk_layout_finish(out);
    }
    int at = tk_put_open(out), rank = tk_part_rank(part);
    part = tk_part_first(part);
    int modes = tk_put_modes(out, part);
    for (int i = 1; i < rank; i++) {
        part = tk_part_next(part);
        tk_put_part(out, part);
        modes++;
    }
    tk_put_close(out, at, modes);
    return tk_layout_finish(out);
}

static tk_status cut(const tk_layout *zipped, const tk_tuple *coord, bool keep_tile, tk_layout *out,
                     tk_tuple *out_offset) {
    tk_tuple place;
    tk_layout sliced;
    TK_TRY(aim(zipped, coord, keep_tile, &place));
    if (out_offset) TK_TRY(tk_layout_eval(zipped, &place, out_offset));
    TK_TRY(tk_layout_slice(zipped, &place, &sliced));
    return unwrap(&sliced, out);
}

tk_status tk_layout_local_tile(const tk_layout *layout, const tk_tiler *tiler,
                               const tk_tuple *coord, tk_layout *out, tk_tuple *out_offset) {
    TK_NEED(layout, tiler, coord, out);
    tk_layout zipped;
    TK_TRY(tk_layout_zipped_divide(layout, tiler, &zipped));
    return cut(&zipped, coord, true, out, out_offset);
}

/* The digits of a thread: (index / stride) mod extent on each leaf. False if that is another
 * thread: then the strides do not divide each other, or there is none. */
static bool thread_by_digits(const tk_layout *threads, int64_t index, int64_t *digit) {
    int64_t total = 0;
    for (int i = 0; i < threads->leaf_count; i++) {
        int64_t extent = threads->leaf[i].shape.value, stride = threads->leaf[i].stride.value;
        digit[i] = stride > 0 ? index / stride % extent : 0;
        total += digit[i] * stride;
    }
    return total == index;
}

static tk_proof thread_by_search(const tk_layout *threads, int64_t index, int64_t *digit) {
    tk_moving leaf[TK_LAYOUT_MAX_LEAVES];
    tk_steps steps;
    int64_t found[TK_LAYOUT_MAX_LEAVES];
    steps.count = tk_moving_leaves(threads, leaf);
    for (int i = 0; i < steps.count; i++) {
        steps.stride[i] = leaf[i].leaf.stride.value;
        steps.low[i] = 0;
        steps.high[i] = leaf[i].leaf.shape.value - 1;
    }
    memset(digit, 0, threads->leaf_count * sizeof *digit);
    tk_proof proof = tk_find_steps(&steps, index, found);
    for (int i = 0; i < steps.count && proof == TK_PROVEN; i++) digit[leaf[i].index] = found[i];
    return proof;
}

/* The coordinate of a thread in one number a mode. */
static tk_status place_thread(const tk_layout *threads, int64_t index, tk_tuple *out) {
    int64_t digit[TK_LAYOUT_MAX_LEAVES];
    if (!tk_layout_is_plain(threads))
        return tk_fail(TK_UNSUPPORTED, "a thread layout is static with integer strides");
    if (!thread_by_digits(threads, index, digit)) {
        tk_proof proof = thread_by_search(threads, index, digit);
        if (proof == TK_REFUTED)
            return tk_fail(TK_INDEX_ERROR, "thread %lld is not in the thread layout",
                           (long long)index);
        if (proof == TK_OPEN)
            return tk_fail(TK_UNSUPPORTED, "undecided: is thread %lld in the thread layout?",
                           (long long)index);
    }
    tk_part part = tk_part_of(threads);
    int rank = tk_part_rank(part), leaf = 0;
    tk_tuple_clear(out);
    tk_tuple_put_node(out, (uint8_t)rank);
    for (int i = 0; i < rank; i++) {
        int leaves = tk_tree_leaves(tk_part_mode(part, i).node);
        int64_t place = 0, prefix = 1;
        for (; leaves > 0; leaves--, leaf++) {
            place += digit[leaf] * prefix;
            prefix *= threads->leaf[leaf].shape.value;
        }
        tk_tuple_put_leaf(out, tk_term_int(place));
    }
    return TK_OK;
}

tk_status tk_layout_local_partition(const tk_layout *layout, const tk_layout *threads,
                                    int64_t index, tk_layout *out, tk_tuple *out_offset) {
    TK_NEED(layout, threads, out);
    TK_TRY(tk_check_layout(threads, "threads"));
    tk_tuple place, shape, each;
    tk_tiler tiler;
    tk_layout zipped;
    TK_TRY(place_thread(threads, index, &place));
    tk_layout_shape(threads, &shape);
    TK_TRY(flat_shape(&shape, &each));
    tk_layout_clear(&tiler);
    tk_put_node(&tiler, (uint8_t)(TK_NODE_TILE + each.leaf_count));
    for (int i = 0; i < each.leaf_count; i++) tk_put_leaf(&tiler, each.leaf[i], tk_term_int(1));
    TK_TRY(tk_layout_zipped_divide(layout, &tiler, &zipped));
    return cut(&zipped, &place, false, out, out_offset);
}

tk_status tk_layout_make_tv(const tk_layout *threads, const tk_layout *values, tk_tuple *out_tile,
                            tk_layout *out_tv) {
    TK_NEED(threads, values, out_tv, out_tile);
    tk_layout product, inverse, pairs;
    tk_term thread_count, value_count, whole;
    tk_tuple shape;
    TK_TRY(tk_layout_raked_product(threads, values, &product));
    TK_TRY(tk_layout_right_inverse(&product, &inverse));
    TK_TRY(tk_layout_size(threads, &thread_count));
    TK_TRY(tk_layout_size(values, &value_count));
    TK_TRY(tk_layout_size(&inverse, &whole));
    if (whole.value != thread_count.value * value_count.value)
        return tk_fail(TK_SHAPE_ERROR,
                       "threads and values leave gaps: %lld of %lld places are "
                       "reached",
                       (long long)whole.value, (long long)(thread_count.value * value_count.value));
    tk_layout_clear(&pairs);
    tk_put_node(&pairs, 2);
    tk_put_leaf(&pairs, thread_count, tk_term_int(1));
    tk_put_leaf(&pairs, value_count, thread_count);
    tk_layout_shape(&product, &shape);
    TK_TRY(tk_tuple_product_each(&shape, out_tile));
    return tk_layout_composition(&inverse, &pairs, out_tv);
}

/* -- Recast -- */

static tk_status widen_leaf(tk_leaf *leaf, int64_t ratio, int index) {
    tk_term stride = leaf->stride, by = tk_term_int(ratio);
    stride.basis = 0;
    if (tk_term_is(stride, 0)) return TK_OK;
    int64_t step = stride.value < 0 ? -stride.value : stride.value;
    if (step < ratio && stride.kind != TK_TERM_STATIC)
        return tk_fail(TK_UNSUPPORTED,
                       "missing fact: stride %s of leaf %d against the ratio %lld "
                       "(a known divisor of at least the ratio would do)",
                       tk_term_show(stride).text, index, (long long)ratio);
    if (step < ratio && ratio % step)
        return tk_fail(TK_SHAPE_ERROR,
                       "stride %lld of leaf %d neither divides %lld nor is at least "
                       "as large",
                       (long long)stride.value, index, (long long)ratio);
    if (step < ratio) leaf->shape = tk_term_ceil_div(leaf->shape, tk_term_int(ratio / step));
    uint32_t basis = leaf->stride.basis;
    leaf->stride = tk_term_ceil_div(stride, by);
    leaf->stride.basis = basis;
    return TK_OK;
}

static tk_status narrow_leaf(tk_leaf *leaf, int64_t ratio) {
    tk_term by = tk_term_int(ratio);
    bool unit = leaf->stride.kind == TK_TERM_STATIC &&
                (leaf->stride.value == 1 || leaf->stride.value == -1);
    if (unit) return tk_term_mul(leaf->shape, by, &leaf->shape);
    if (leaf->stride.kind != TK_TERM_STATIC && leaf->stride.value == 1)
        return tk_fail(TK_UNSUPPORTED, "missing fact: is stride %s equal to 1?",
                       tk_term_show(leaf->stride).text);
    return tk_term_mul(leaf->stride, by, &leaf->stride);
}

tk_status tk_layout_recast(const tk_layout *layout, int64_t new_bits, int64_t old_bits,
                           tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(layout, "layout"));
    if (new_bits < 1 || old_bits < 1)
        return tk_fail(TK_INVALID_ARGUMENT, "%lld and %lld bits: expected at least 1",
                       (long long)new_bits, (long long)old_bits);
    int64_t common = tk_gcd(new_bits, old_bits);
    tk_layout_copy(layout, out);
    for (int i = 0; i < out->leaf_count; i++) {
        if (new_bits > common) TK_TRY(widen_leaf(&out->leaf[i], new_bits / common, i));
        if (old_bits > common) TK_TRY(narrow_leaf(&out->leaf[i], old_bits / common));
    }
    return tk_layout_finish(out);
}
