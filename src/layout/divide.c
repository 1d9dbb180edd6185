/* Divides and products: both pair a layout with a tiler, and both come in four groupings.
 *
 * A divide composes A with (tile, complement of the tile); a product puts A beside the composition
 * of its complement with the tiler. Each yields pairs, one for the whole or one for each mode, and
 * the groupings only rearrange the pairs, so they share one walk. */
#include "layout/coalesce.h"
#include "layout/compose.h"
#include "layout/term.h"
#include "layout/tree.h"

/* Makes the pair (tile, rest) of one layout and one plain tiler. */
typedef tk_status make_pair(const tk_layout *a, const tk_layout *b, tk_layout *out);

static tk_status pair_up(const tk_layout *first, const tk_layout *second, tk_layout *out) {
    tk_layout_clear(out);
    tk_put_node(out, 2);
    tk_put_layout(out, first);
    tk_put_layout(out, second);
    return tk_layout_finish(out);
}

/* Does the complement's last leaf n:s end exactly where A ends? Asked only where that size is not a
 * number, since a number says it by itself. */
static bool covers(const tk_layout *rest, tk_term size) {
    tk_leaf last = rest->leaf[rest->leaf_count - 1];
    return size.kind != TK_TERM_STATIC && last.shape.kind != TK_TERM_STATIC &&
           last.stride.kind == TK_TERM_STATIC && tk_term_divides(last.stride, size) == TK_PROVEN;
}

/* Past the end of A its last leaf goes on, as evaluation has it. Where that has no layout only
 * because the last leaf has extent 1, the last one above 1 goes on instead: a tile that rounds up
 * is still exact on all that A has. */
static tk_status divide_pair(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    tk_term size;
    tk_layout rest, both, whole;
    TK_TRY(tk_layout_size(a, &size));
    TK_TRY(tk_layout_complement(b, size, &rest));
    TK_TRY(pair_up(b, &rest, &both));
    if (covers(&rest, size)) return tk_compose_covering(a, &both, out);
    tk_status status = tk_layout_composition(a, &both, out);
    bool ends_in_one = a->leaf_count && tk_term_is(a->leaf[a->leaf_count - 1].shape, 1);
    if (status != TK_SHAPE_ERROR || !ends_in_one || tk_term_is(size, 1)) return status;
    TK_TRY(tk_layout_coalesce(a, NULL, &whole));
    return tk_layout_composition(&whole, &both, out);
}

/* Coordinates that move: the size without strides of 0. */
static tk_status moving_size(const tk_layout *a, int64_t *out) {
    *out = 1;
    for (int i = 0; i < a->leaf_count; i++)
        if (a->leaf[i].stride.value && tk_mul_overflow_i64(*out, a->leaf[i].shape.value, out))
            return tk_fail(TK_OVERFLOW, "the size of the block leaves the range of 64 bits");
    return TK_OK;
}

/* The cotarget counts only what moves of A, so that strides of 0 do not take it past 2^63; the
 * complement's last leaf is unbounded in the composition, and the result is the same. */
static tk_status product_pair(const tk_layout *a, const tk_layout *b, tk_layout *out) {
    tk_term reach, target;
    int64_t size;
    tk_layout gaps, repeats;
    if (!tk_layout_is_static(a)) return tk_fail(TK_UNSUPPORTED, "a product needs a static block");
    TK_TRY(moving_size(a, &size));
    TK_TRY(tk_layout_cosize(b, &reach));
    TK_TRY(tk_term_mul(tk_term_int(size), reach, &target));
    TK_TRY(tk_layout_complement(a, target, &gaps));
    TK_TRY(tk_layout_composition(&gaps, b, &repeats));
    return pair_up(a, &repeats, out);
}

static tk_status check_rank(tk_part a, tk_part b) {
    int modes = tk_node_children(*b.node), rank = tk_part_rank(a);
    if (modes <= rank) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "a tiler of %d modes for a layout of %d", modes, rank);
}

static tk_status put_pair(make_pair *make, tk_part a, tk_part b, tk_layout *out) {
    tk_layout left, right, pair;
    tk_layout_from_part(a, &left);
    tk_layout_from_part(b, &right);
    TK_TRY(make(&left, &right, &pair));
    tk_put_layout(out, &pair);
    return TK_OK;
}

/* The logical form: pairs in place, untouched modes as they are. */
static tk_status put_logical(make_pair *make, tk_part a, tk_part b, tk_layout *out) {
    if (*b.node == TK_NODE_ANY) {
        tk_put_part(out, a);
        return TK_OK;
    }
    if (!tk_node_is_list(*b.node)) return put_pair(make, a, b, out);
    TK_TRY(check_rank(a, b));
    int modes = tk_node_children(*b.node), rank = tk_part_rank(a);
    tk_put_node(out, (uint8_t)rank);
    b = tk_part_first(b);
    for (int i = 0; i < rank; i++) {
        if (i >= modes) {
            tk_put_part(out, tk_part_mode(a, i));
            continue;
        }
        tk_status status = put_logical(make, tk_part_mode(a, i), b, out);
        if (status != TK_OK) return tk_fail_within(status, "mode %d", i);
        b = tk_part_next(b);
    }
    return TK_OK;
}

static tk_status zip_pairs(make_pair *make, tk_part a, tk_part b, tk_layout *out);

/* The zipped form of a list: tiles go to `out` at once, rests wait. */
static tk_status zip_modes(make_pair *make, tk_part a, tk_part b, tk_layout *out) {
    tk_layout rests, pair;
    TK_TRY(check_rank(a, b));
    int modes = tk_node_children(*b.node), rank = tk_part_rank(a);
    tk_layout_clear(&rests);
    tk_put_node(&rests, (uint8_t)rank);
    tk_put_node(out, 2);
    tk_put_node(out, (uint8_t)modes);
    b = tk_part_first(b);
    for (int i = 0; i < modes; i++, b = tk_part_next(b)) {
        tk_layout_clear(&pair);
        tk_status status = zip_pairs(make, tk_part_mode(a, i), b, &pair);
        if (status != TK_OK) return tk_fail_within(status, "mode %d", i);
        TK_TRY(tk_layout_fits(&pair));
        tk_part tile = tk_part_mode(tk_part_of(&pair), 0);
        tk_put_part(out, tile);
        tk_put_part(&rests, tk_part_next(tile));
    }
    for (int i = modes; i < rank; i++) tk_put_part(&rests, tk_part_mode(a, i));
    TK_TRY(tk_layout_fits(&rests));
    tk_put_layout(out, &rests);
    return TK_OK;
}

/* The zipped form: ((tiles), (rests, untouched modes)). */
static tk_status zip_pairs(make_pair *make, tk_part a, tk_part b, tk_layout *out) {
    if (tk_node_is_list(*b.node)) return zip_modes(make, a, b, out);
    if (*b.node != TK_NODE_ANY) return put_pair(make, a, b, out);
    tk_put_node(out, 2);
    tk_put_unit(out);
    tk_put_part(out, a);
    return TK_OK;
}

/* What is left of ((tile modes), (rest modes)): all of it in the zipped form, the first tuple in
 * the tiled one, neither in the flat one; the logical form pairs mode by mode instead. */
typedef enum grouping { LOGICAL, ZIPPED, TILED, FLAT } grouping;

static tk_status regroup(make_pair *make, grouping form, const tk_layout *a, const tk_tiler *b,
                         tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(a, "A"));
    TK_NEED(b);
    tk_layout_clear(out);
    if (form == LOGICAL) {
        TK_TRY(put_logical(make, tk_part_of(a), tk_part_of(b), out));
        return tk_layout_finish(out);
    }
    if (form == ZIPPED) {
        TK_TRY(zip_pairs(make, tk_part_of(a), tk_part_of(b), out));
        return tk_layout_finish(out);
    }
    tk_layout zipped;
    tk_layout_clear(&zipped);
    TK_TRY(zip_pairs(make, tk_part_of(a), tk_part_of(b), &zipped));
    TK_TRY(tk_layout_finish(&zipped));
    tk_part tile = tk_part_mode(tk_part_of(&zipped), 0), rest = tk_part_next(tile);
    int at = tk_put_open(out), modes = 1;
    if (form == FLAT)
        modes = tk_put_modes(out, tile);
    else
        tk_put_part(out, tile);
    modes += tk_put_modes(out, rest);
    tk_put_close(out, at, modes);
    return tk_layout_finish(out);
}

tk_status tk_layout_logical_divide(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    return regroup(divide_pair, LOGICAL, a, b, out);
}
tk_status tk_layout_zipped_divide(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    return regroup(divide_pair, ZIPPED, a, b, out);
}
tk_status tk_layout_tiled_divide(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    return regroup(divide_pair, TILED, a, b, out);
}
tk_status tk_layout_flat_divide(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    return regroup(divide_pair, FLAT, a, b, out);
}

tk_status tk_layout_logical_product(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    return regroup(product_pair, LOGICAL, a, b, out);
}
tk_status tk_layout_zipped_product(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    return regroup(product_pair, ZIPPED, a, b, out);
}
tk_status tk_layout_tiled_product(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    return regroup(product_pair, TILED, a, b, out);
}
tk_status tk_layout_flat_product(const tk_layout *a, const tk_tiler *b, tk_layout *out) {
    return regroup(product_pair, FLAT, a, b, out);
}

/* -- Blocked and raked: the pairs zipped mode by mode -- */

/* Mode i of a product's half. That of an integer operand is one mode, however many it became. */
static tk_part zipped_mode(tk_part half, const tk_layout *operand, int i) {
    return operand->node[0] == TK_NODE_LEAF ? half : tk_part_mode(half, i);
}

static tk_status zip_product(const tk_layout *block, const tk_layout *tiler, bool raked,
                             tk_layout *out) {
    TK_NEED(out);
    TK_TRY(tk_check_layout(block, "block"));
    TK_TRY(tk_check_layout(tiler, "tiler"));
    int rank = tk_layout_rank(block), other = tk_layout_rank(tiler);
    if (other > rank) rank = other;
    tk_layout padded_block, padded_tiler, pair, zipped;
    TK_TRY(tk_layout_append(block, rank, NULL, &padded_block));
    TK_TRY(tk_layout_append(tiler, rank, NULL, &padded_tiler));
    TK_TRY(product_pair(&padded_block, &padded_tiler, &pair));
    tk_part blocks = tk_part_mode(tk_part_of(&pair), 0), tiles = tk_part_next(blocks);
    tk_layout_clear(&zipped);
    tk_put_node(&zipped, (uint8_t)rank);
    for (int i = 0; i < rank; i++) {
        tk_part block_i = zipped_mode(blocks, &padded_block, i);
        tk_part tiles_i = zipped_mode(tiles, &padded_tiler, i);
        tk_put_node(&zipped, 2);
        tk_put_part(&zipped, raked ? tiles_i : block_i);
        tk_put_part(&zipped, raked ? block_i : tiles_i);
    }
    TK_TRY(tk_layout_finish(&zipped));
    tk_layout_copy(&zipped, out);
    return TK_OK;
}

tk_status tk_layout_blocked_product(const tk_layout *block, const tk_layout *tiler,
                                    tk_layout *out) {
    return zip_product(block, tiler, false, out);
}

tk_status tk_layout_raked_product(const tk_layout *block, const tk_layout *tiler, tk_layout *out) {
    TK_NEED(out);
    tk_layout zipped;
    tk_tuple profile;
    TK_TRY(zip_product(block, tiler, true, &zipped));
    tk_tuple_clear(&profile);
    tk_tuple_put_node(&profile, zipped.node[0]);
    for (int i = 0; i < zipped.node[0]; i++) tk_tuple_put_leaf(&profile, tk_term_int(1));
    return tk_layout_coalesce(&zipped, &profile, out);
}
