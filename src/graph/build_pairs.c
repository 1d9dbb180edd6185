/* Builders of products of picked matrices, of segments, and of masked blocks.
 *
 * Picked pairs and segments are primitives: as takes and masks they would copy each matrix once a
 * pair, or multiply all of K once a segment. Masked blocks are the plain product of masked
 * operands: skipping blocks changes no value, and a block a mask leaves out is 0 whatever it held.
 */
#include "graph/build_pairs.h"

/* ---- leading axes ---- */

tk_status tk_leads_join(const char *what, const tk_node *a, tk_shape *lead) {
    int64_t own = a->rank - 2;
    tk_shape joined = {.count = own > lead->count ? own : lead->count};
    for (int64_t i = 0; i < joined.count; i++) {
        int64_t mine = i - (joined.count - own), theirs = i - (joined.count - lead->count);
        int64_t one = mine < 0 ? 1 : a->shape[mine], two = theirs < 0 ? 1 : lead->items[theirs];
        if (one != two && one != 1 && two != 1)
            return tk_fail(TK_SHAPE_ERROR,
                           "%s: leading lengths of %s do not broadcast with the others: %lld and "
                           "%lld",
                           what, tk_text_node(a), (long long)one, (long long)two);
        joined.items[i] = one == 1 ? two : one;
    }
    *lead = joined;
    return TK_OK;
}

tk_node *tkb_with_leads(tk_builder *b, tk_node *a, tk_shape lead) {
    if (lead.count + 2 > TK_MAX_RANK)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "%lld leading axes and two, at most %d are "
                                   "supported",
                                   (long long)lead.count, TK_MAX_RANK));
    lead.items[lead.count++] = a->shape[a->rank - 2];
    lead.items[lead.count++] = a->shape[a->rank - 1];
    return tkb_broadcast_to(b, a, lead);
}

tk_node *tkb_flat_matrices(tk_builder *b, const char *what, tk_node *a) {
    int64_t count;
    TKB_TRY(b, tk_length_product(what, a->rank - 2, a->shape, &count));
    return tkb_reshape(b, a, TK_SHAPE(count, a->shape[a->rank - 2], a->shape[a->rank - 1]));
}

/* ---- pairs ---- */

/* Indices into the leading axes of `a`, flat: those given, or each once, in their shape. */
static tk_node *indices_of(tk_builder *b, const char *what, const tk_node *a, tk_node *given) {
    int64_t count;
    TKB_TRY(b, tk_length_product(what, a->rank - 2, a->shape, &count));
    if (given) return tkb_wrap_index(b, what, given, count);
    tk_shape lead = {.count = a->rank - 2};
    for (int64_t i = 0; i < lead.count; i++) lead.items[i] = a->shape[i];
    tk_dtype dtype = count > INT32_MAX ? TK_INT64 : TK_INT32;
    return tkb_reshape(b, tkb_iota_int(b, dtype, TK_SHAPE(count), 0, 0, 1), lead);
}

tk_status tkb_pair_indices(tk_builder *b, const char *what, const tk_node *a, const tk_node *other,
                           tk_node **pair) {
    pair[0] = indices_of(b, what, a, pair[0]);
    pair[1] = indices_of(b, what, other, pair[1]);
    tkb_broadcast(b, what, 2, pair);
    return TK_OK;
}

tk_node *tkb_gather_mm(tk_builder *b, tk_node *a, tk_node *other, tk_node *lhs_indices,
                       tk_node *rhs_indices) {
    tk_node *inputs[] = {a, other, lhs_indices, rhs_indices};
    for (int i = 0; i < 2; i++)
        if (tk_node_is_error(inputs[i])) return inputs[i];
    tkb_promote(b, 2, inputs);
    if (inputs[0]->rank < 2 || inputs[1]->rank < 2)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "gather_mm: operands are %s and %s, expected two axes or more",
                                   tk_text_node(inputs[0]), tk_text_node(inputs[1])));
    TKB_TRY(b, tkb_pair_indices(b, "gather_mm", inputs[0], inputs[1], inputs + 2));
    for (int i = 0; i < 2; i++) inputs[i] = tkb_flat_matrices(b, "gather_mm", inputs[i]);
    return tkb_node(b, TK_OP_gather_product, 4, inputs, NULL);
}

/* ---- segments ---- */

tk_node *tkb_segmented_mm(tk_builder *b, tk_node *a, tk_node *other, tk_node *segments) {
    tk_node *inputs[] = {a, other, segments};
    for (int i = 0; i < 3; i++)
        if (tk_node_is_error(inputs[i])) return inputs[i];
    tkb_promote(b, 2, inputs);
    if (!tk_dtype_is_integer((tk_dtype)segments->dtype))
        return tkb_fail(b, tk_fail(TK_DTYPE_ERROR,
                                   "segmented_mm: segments are %s, expected an integer dtype",
                                   tk_text_node(segments)));
    inputs[2] = tkb_strong(b, segments);
    return tkb_node(b, TK_OP_segment_product, 3, inputs, NULL);
}

tk_node *tkb_segment_mask(tk_builder *b, tk_node *bounds, int64_t length) {
    int last = bounds->rank - 1;
    tk_node *at = tkb_iota_int(b, TK_INT64, TK_SHAPE(length), 0, 0, 1);
    tk_node *wide = tkb_astype(b, bounds, TK_INT64);
    tk_node *from = tkb_range(b, wide, last, 0, 1), *to = tkb_range(b, wide, last, 1, 2);
    tk_node *in = tkb_logical_and(b, tkb_less_equal(b, from, at), tkb_less(b, at, to));
    return tkb_expand_dims(b, in, TK_AXES(-2));
}

/* ---- masked blocks ---- */

/* The mask [..., rows / size, columns / size] for each element of an array whose last axes are rows
 * and columns. */
static tk_node *spread(tk_builder *b, tk_node *mask, const char *role, int64_t size, int64_t rows,
                       int64_t columns) {
    if (tk_node_is_error(mask)) return mask;
    int64_t high = (rows + size - 1) / size, wide = (columns + size - 1) / size;
    if (mask->rank < 2 || mask->shape[mask->rank - 2] != high ||
        mask->shape[mask->rank - 1] != wide)
        return tkb_fail(b,
                        tk_fail(TK_SHAPE_ERROR,
                                "block_masked_mm: %s is %s, expected [..., %lld, %lld] for %lld x "
                                "%lld in blocks of %lld",
                                role, tk_text_node(mask), (long long)high, (long long)wide,
                                (long long)rows, (long long)columns, (long long)size));
    mask = tkb_repeat(b, tkb_repeat(b, mask, size, -1), size, -2);
    if (tk_node_is_error(mask)) return mask;
    mask = tkb_range(b, mask, mask->rank - 2, 0, rows);
    return tk_node_is_error(mask) ? mask : tkb_range(b, mask, mask->rank - 1, 0, columns);
}

static tk_node *masked(tk_builder *b, tk_node *a, tk_node *mask, const char *role, int64_t size) {
    if (!mask || tk_node_is_error(a)) return a;
    if (a->rank < 2)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "block_masked_mm: %s is given for %s, expected two axes or more",
                                   role, tk_text_node(a)));
    mask = spread(b, mask, role, size, a->shape[a->rank - 2], a->shape[a->rank - 1]);
    if (tk_node_is_error(mask)) return mask;
    if (mask->dtype == TK_BOOL) return tkb_where(b, mask, a, tkb_zero(b, (tk_dtype)a->dtype));
    return tkb_multiply(b, a, tkb_astype(b, mask, (tk_dtype)a->dtype));
}

tk_node *tkb_block_masked_mm(tk_builder *b, tk_node *a, tk_node *other, int64_t block_size,
                             tk_node *mask_out, tk_node *mask_lhs, tk_node *mask_rhs) {
    tk_node *pair[] = {a, other};
    for (int i = 0; i < 2; i++)
        if (tk_node_is_error(pair[i])) return pair[i];
    if (block_size < 1 || block_size > 1 << 20)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT,
                                   "block_masked_mm: block_size is %lld, expected 1 to 1048576",
                                   (long long)block_size));
    tkb_promote(b, 2, pair);
    pair[0] = masked(b, pair[0], mask_lhs, "mask_lhs", block_size);
    pair[1] = masked(b, pair[1], mask_rhs, "mask_rhs", block_size);
    return masked(b, tkb_matmul(b, pair[0], pair[1]), mask_out, "mask_out", block_size);
}
