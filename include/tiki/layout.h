/* The CuTe layout algebra: how Tiki says where every byte goes.
 *
 * A layout `shape:stride` is a function from coordinates to offsets. Shape and stride are nested
 * tuples of one structure; their numbers are the leaves. `(4,8):(1,4)` maps the coordinate (m,n) to
 * m*1 + n*4, and the integer i to the offset of the i-th coordinate, leftmost mode fastest.
 *
 * Values. Every type of this header is a plain value without pointers: it is copied by assignment
 * (or, cheaper, by tk_layout_copy, which copies only the leaves in use), compared by
 * tk_layout_equal and needs no release. Nothing here allocates but the functions that return text
 * (and, for working space, compositions that are a knapsack problem, see docs/adr/0011).
 * A value is written once, by the function that makes it; treat its fields as read-only. An `out`
 * argument must not be one of the inputs, and holds nothing useful after an error.
 *
 * Soundness. A function returns a layout only if that layout is the function its comment promises,
 * at every coordinate. Otherwise it returns an error that names the failed condition and, where
 * there is one, a coordinate where the promise would have been broken.
 *
 * Dynamic leaves. A leaf may be unknown until run time (`?`), with a known divisor (`?{div=16}`)
 * and a width (`?` is 32 bits, `?{i64}` 64). An extent that is unknown is at least 1. A condition
 * on such leaves is proven, refuted or open; an open condition is TK_UNSUPPORTED with the missing
 * fact named.
 *
 * Errors common to all functions, not repeated below: TK_OVERFLOW when a size, offset or leaf count
 * leaves its range, TK_INVALID_ARGUMENT for a null pointer.
 *
 * Threads. All functions are pure; any thread, no locks.
 *
 * See docs/layout.md for the algebra with pictures, docs/adr/0011 to 0014 for the decisions. */
#ifndef TIKI_LAYOUT_H
#define TIKI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiki/api.h"
#include "tiki/status.h"

TK_BEGIN_DECLS

/* Leaves a value can hold. A static layout has at most 62 leaves with an extent above 1, because
 * its size is below 2^63; the rest is room for leaves of extent 1. */
#define TK_LAYOUT_MAX_LEAVES 64

/* Leaves and tuples together. */
#define TK_LAYOUT_MAX_NODES 124

/* What a term is. TK_TERM_ANY is the wildcard `_` of coordinates. */
typedef enum tk_term_kind {
    TK_TERM_STATIC = 0,
    TK_TERM_I32 = 1,
    TK_TERM_I64 = 2,
    TK_TERM_ANY = 3
} tk_term_kind;

/* One number of a tuple: `12`, `?{div=4}`, `2@1`, `_`.
 *
 * `value` is the number itself if static, the known divisor (at least 1) if dynamic, 0 for `_`.
 * `basis` is 0 for a plain number; otherwise the term is value times a basis vector, and basis
 * holds the path of modes, outermost mode in the lowest six bits, each stored plus one: `2@1` has
 * basis 2, `1@0@3` (mode 0 of mode 3) has basis 4 | 1 << 6. At most five modes of index 0 to 62. */
typedef struct tk_term {
    int64_t value;
    uint32_t basis;
    uint32_t kind; /* a tk_term_kind */
} tk_term;

/* One leaf of a layout. */
typedef struct tk_leaf {
    tk_term shape;
    tk_term stride;
} tk_leaf;

/* The tree of a value, as nodes in depth-first order: a tuple of k modes is the byte k followed by
 * its modes, a leaf is TK_NODE_LEAF. Congruence is therefore equality of bytes.
 * Only tilers use the other two: `[a;b]` is TK_NODE_TILE + 2, a skipped mode `_` TK_NODE_ANY. */
enum { TK_NODE_TILE = 0x80, TK_NODE_ANY = 0xfe, TK_NODE_LEAF = 0xff };

/* A nested tuple of terms: a shape, a stride, a coordinate, an order, an offset. */
typedef struct tk_tuple {
    uint8_t node_count;
    uint8_t leaf_count;
    uint8_t reserved[2];
    uint8_t node[TK_LAYOUT_MAX_NODES];
    tk_term leaf[TK_LAYOUT_MAX_LEAVES];
} tk_tuple;

/* A layout. Extents are at least 1; the size and the span of offsets are below 2^63. */
typedef struct tk_layout {
    uint8_t node_count;
    uint8_t leaf_count;
    uint8_t reserved[2];
    uint8_t node[TK_LAYOUT_MAX_NODES];
    tk_leaf leaf[TK_LAYOUT_MAX_LEAVES];
} tk_layout;

/* What a tensor is cut by: one layout (`(2,4):(1,8)`, applied to the whole), or a list with one
 * tiler for each mode (`[16:1;(2,4):(1,2);_]`, `_` skips a mode). A plain layout is a tiler, so it
 * can be passed wherever one is asked for; a list is not a layout and is refused as one. */
typedef tk_layout tk_tiler;

/* `S<bits,base,shift>`: x xor the bits of x at base+max(shift,0), moved down by shift (up if it is
 * negative) and masked to `bits` bits. The lowest `base` bits are never changed. Valid when
 * bits >= 0, base >= 0, |shift| >= bits and bits + base + |shift| < 63; then it is its own inverse.
 */
typedef struct tk_swizzle {
    int32_t bits;
    int32_t base;
    int32_t shift;
} tk_swizzle;

typedef enum tk_inner {
    TK_INNER_NONE = 0,
    TK_INNER_SWIZZLE = 1,
    TK_INNER_LAYOUT = 2
} tk_inner_kind;

/* `inner o offset o outer`: the coordinate c goes to inner(offset + outer(c)). With TK_INNER_NONE
 * it is outer alone and offset is 0. The operations of the algebra act on outer. */
typedef struct tk_composed {
    uint32_t inner; /* a tk_inner_kind */
    tk_swizzle swizzle;
    tk_layout layout; /* the inner layout with TK_INNER_LAYOUT, else unused */
    tk_tuple offset;
    tk_layout outer;
} tk_composed;

/* -- Terms and tuples ------------------------------------------------------------------------ */

static inline tk_term tk_term_int(int64_t value) {
    tk_term term = {value, 0, TK_TERM_STATIC};
    return term;
}

/* An unknown number that is a multiple of `divisor` (at least 1). kind is TK_TERM_I32 or _I64. */
static inline tk_term tk_term_dynamic(tk_term_kind kind, int64_t divisor) {
    tk_term term = {divisor, 0, (uint32_t)kind};
    return term;
}

static inline bool tk_term_is_static(tk_term term) { return term.kind == TK_TERM_STATIC; }

/* A tuple of depth 1 from `count` integers. */
TK_API tk_status tk_tuple_from_ints(const int64_t *values, int count, tk_tuple *out);

/* A tuple of depth 0: one term. */
TK_API void tk_tuple_from_term(tk_term term, tk_tuple *out);

/* Copies the part in use. */
TK_API void tk_tuple_copy(const tk_tuple *tuple, tk_tuple *out);

/* Same structure and same terms. */
TK_API bool tk_tuple_equal(const tk_tuple *a, const tk_tuple *b);

/* Number of top-level modes (1 for a single term) and levels of nesting (0 for a single term). 0
 * for NULL, as all functions here without a status give 0, false or nothing then. */
TK_API int tk_tuple_rank(const tk_tuple *tuple);
TK_API int tk_tuple_depth(const tk_tuple *tuple);

/* No dynamic leaf. The wildcard counts as static. */
TK_API bool tk_tuple_is_static(const tk_tuple *tuple);

/* The i-th top-level mode. TK_AXIS_ERROR if there is none. */
TK_API tk_status tk_tuple_mode(const tk_tuple *tuple, int index, tk_tuple *out);

/* Product of all leaves; TK_SHAPE_ERROR for a wildcard or basis vector. */
TK_API tk_status tk_tuple_product(const tk_tuple *tuple, tk_term *out);

/* One product for each top-level mode. */
TK_API tk_status tk_tuple_product_each(const tk_tuple *tuple, tk_tuple *out);

/* Leaf by leaf; the tuples must be congruent (TK_SHAPE_ERROR). */
TK_API tk_status tk_tuple_add(const tk_tuple *a, const tk_tuple *b, tk_tuple *out);
TK_API tk_status tk_tuple_sub(const tk_tuple *a, const tk_tuple *b, tk_tuple *out);

/* a divided by b, where on each leaf one must divide the other and the result is rounded up. An
 * integer b is consumed by the modes of a from left to right: shape_div((6,4),12) is (1,2). */
TK_API tk_status tk_tuple_shape_div(const tk_tuple *a, const tk_tuple *b, tk_tuple *out);

/* Each mode of a divided by the matching mode of b, rounded up; modes past b stay. An integer b
 * against a tuple a is consumed left to right, as in shape_div but without its condition. */
TK_API tk_status tk_tuple_ceil_div(const tk_tuple *a, const tk_tuple *b, tk_tuple *out);

/* All leaves of a below those of b: the predicate of bounds checks. TK_SHAPE_ERROR if not
 * congruent. */
TK_API tk_status tk_tuple_elem_less(const tk_tuple *a, const tk_tuple *b, bool *out);

/* Same tree. */
TK_API bool tk_tuple_congruent(const tk_tuple *a, const tk_tuple *b);

/* b refines a: a leaf of a may stand for a whole subtree of b. */
TK_API bool tk_tuple_weakly_congruent(const tk_tuple *a, const tk_tuple *b);

/* Every coordinate of shape a is a coordinate of shape b: b refines a, and each leaf of a equals
 * the size of its subtree in b. `24` <= `(4,6)` <= `((2,2),(3,2))`. Dynamic leaves must both be
 * static to be compared; an undecided pair is TK_UNSUPPORTED. */
TK_API tk_status tk_tuple_compatible(const tk_tuple *a, const tk_tuple *b, bool *out);

/* The coordinate, in the structure of `shape`, of the integer `index` (or of a coarser coordinate:
 * a tuple of integers goes mode by mode). The last leaf takes what is left, without a modulus. */
TK_API tk_status tk_idx2crd(const tk_tuple *index, const tk_tuple *shape, tk_tuple *out);

/* The integer of a coordinate in the compact layout of `shape`, leftmost fastest. */
TK_API tk_status tk_crd2idx(const tk_tuple *coord, const tk_tuple *shape, tk_term *out);

/* The coordinate after `coord`, leftmost mode fastest; past the last one comes the first. */
TK_API tk_status tk_increment_coord(const tk_tuple *coord, const tk_tuple *shape, tk_tuple *out);

/* Modes of `tuple` where the coordinate is a wildcard (slice) or is not (dice), flattened to one
 * level as CuTe does. */
TK_API tk_status tk_tuple_slice(const tk_tuple *tuple, const tk_tuple *coord, tk_tuple *out);
TK_API tk_status tk_tuple_dice(const tk_tuple *tuple, const tk_tuple *coord, tk_tuple *out);

/* -- Making layouts -------------------------------------------------------------------------- */

/* shape:stride. The two must be congruent, extents numbers of at least 1 or dynamic
 * (TK_SHAPE_ERROR); strides may be any integers, basis vectors or dynamic. */
TK_API tk_status tk_layout_make(const tk_tuple *shape, const tk_tuple *stride, tk_layout *out);

/* The compact layout of a shape, leftmost mode fastest. */
TK_API tk_status tk_layout_from_shape(const tk_tuple *shape, tk_layout *out);

/* A layout of depth 1 from plain arrays of `rank` extents and strides, as arrays have them. */
TK_API tk_status tk_layout_from_ints(int rank, const int64_t *shape, const int64_t *stride,
                                     tk_layout *out);

/* Compact strides handed out by increasing order key, equal keys left to right. `order` is a static
 * tuple weakly congruent to `shape`: a key may stand for a whole mode. */
TK_API tk_status tk_layout_make_ordered(const tk_tuple *shape, const tk_tuple *order,
                                        tk_layout *out);

/* Compact, in the order of the strides of `layout`, whose strides of 0 stay 0. Strides static. */
TK_API tk_status tk_layout_make_like(const tk_layout *layout, tk_layout *out);

/* The layout whose value at a coordinate is that coordinate: strides `1@mode`. */
TK_API tk_status tk_layout_make_identity(const tk_tuple *shape, tk_layout *out);

/* The tiler of a tile's shape: `(16,_,(2,4))` is `[16:1;_;[2:1;4:1]]`, an integer n is `n:1`. */
TK_API tk_status tk_tiler_from_shape(const tk_tuple *shape, tk_tiler *out);

/* (modes[0], modes[1], ...). */
TK_API tk_status tk_layout_concat(const tk_layout *const *modes, int count, tk_layout *out);

/* -- Looking at layouts ---------------------------------------------------------------------- */

TK_API void tk_layout_copy(const tk_layout *layout, tk_layout *out);

/* Bytes of the prefix of the struct that is in use: what a table of layouts needs to keep. */
TK_API size_t tk_layout_bytes(const tk_layout *layout);

/* Same structure and same leaves (not: same function). */
TK_API bool tk_layout_equal(const tk_layout *a, const tk_layout *b);

/* Equal layouts have equal hashes; not stable between versions. */
TK_API uint64_t tk_layout_hash(const tk_layout *layout);

TK_API void tk_layout_shape(const tk_layout *layout, tk_tuple *out);
TK_API void tk_layout_stride(const tk_layout *layout, tk_tuple *out);

/* No dynamic leaf. */
TK_API bool tk_layout_is_static(const tk_layout *layout);

/* A list of tilers, which is no layout. */
TK_API bool tk_tiler_is_list(const tk_tiler *tiler);

/* Number of top-level modes (1 for a depth of 0) and levels of nesting. */
TK_API int tk_layout_rank(const tk_layout *layout);
TK_API int tk_layout_depth(const tk_layout *layout);

/* Number of coordinates: the product of the extents. */
TK_API tk_status tk_layout_size(const tk_layout *layout, tk_term *out);

/* Span of the offsets, 1 + sum (extent-1)*|stride|: the last offset plus 1 when no stride is
 * negative. With basis strides, the product of the spans of all modes. */
TK_API tk_status tk_layout_cosize(const tk_layout *layout, tk_term *out);

/* The i-th top-level mode; the layout itself for index 0 of depth 0. TK_AXIS_ERROR if none. */
TK_API tk_status tk_layout_mode(const tk_layout *layout, int index, tk_layout *out);

/* The mode at a path: tk_layout_get(L, (1,0)) is mode 0 of mode 1. */
TK_API tk_status tk_layout_get(const tk_layout *layout, const tk_tuple *path, tk_layout *out);

/* Different coordinates, different offsets. TK_UNSUPPORTED with dynamic leaves. Decided whatever
 * the strides are for up to 27 leaves that overlap, mostly in microseconds; above that (it is
 * the knapsack problem) TK_UNSUPPORTED where millions of tries do not decide. */
TK_API tk_status tk_layout_is_injective(const tk_layout *layout, bool *out);

/* Some permutation of the leaves of extent above 1 has the running products as strides, so that the
 * layout is a bijection onto [0, size). Static strides and extents. */
TK_API tk_status tk_layout_is_compact(const tk_layout *layout, bool *out);

/* -- Evaluating ------------------------------------------------------------------------------ */

/* Offset of the integer coordinate `index` of a static layout with integer strides; an index past
 * the end extends the last leaf. Unchecked: `index` is not negative, tk_layout_is_plain(layout),
 * and the offset fits. */
TK_API int64_t tk_layout_at(const tk_layout *layout, int64_t index);

/* Offset of a coordinate with one integer for each leaf. Unchecked, as tk_layout_at. */
TK_API int64_t tk_layout_at_leaves(const tk_layout *layout, const int64_t *coord);

/* Offsets of `count` consecutive integer coordinates. Checked like tk_layout_eval; about a
 * nanosecond each. TK_INVALID_ARGUMENT unless 0 <= first, 0 <= count. */
TK_API tk_status tk_layout_offsets(const tk_layout *layout, int64_t first, int64_t count,
                                   int64_t *out);

/* Static, and all strides plain integers. */
TK_API bool tk_layout_is_plain(const tk_layout *layout);

/* The value at any form of coordinate: an integer, a tuple of integers, a nested tuple down to the
 * leaves. An integer where the shape has a tuple is split there, leftmost fastest, last leaf
 * without a modulus; it must not be negative unless it meets a single leaf. The value is one term,
 * or a tuple if the strides are basis vectors. A wildcard counts as 0. TK_SHAPE_ERROR if the
 * coordinate does not fit the shape. */
TK_API tk_status tk_layout_eval(const tk_layout *layout, const tk_tuple *coord, tk_tuple *out);

/* -- Rearranging ----------------------------------------------------------------------------- */

/* The same function of integers with as few leaves as possible: no leaf of extent 1, no neighbours
 * that could be one. A merge that cannot be proved of dynamic leaves is not made. With `profile`
 * (NULL for none) it goes mode by mode where the profile has a tuple; modes past it stay.
 * TK_SHAPE_ERROR if the profile has more modes than the layout. */
TK_API tk_status tk_layout_coalesce(const tk_layout *layout, const tk_tuple *profile,
                                    tk_layout *out);

/* The same leaves on one level. */
TK_API tk_status tk_layout_flatten(const tk_layout *layout, tk_layout *out);

/* Modes [begin, end) wrapped into one. TK_AXIS_ERROR unless 0 <= begin <= end <= rank. */
TK_API tk_status tk_layout_group(const tk_layout *layout, int begin, int end, tk_layout *out);

/* The named top-level modes, in the order given. */
TK_API tk_status tk_layout_select(const tk_layout *layout, const int *modes, int count,
                                  tk_layout *out);

/* Without the leaves of stride 0 and of extent 1, coalesced: the same image, a smaller domain. */
TK_API tk_status tk_layout_filter(const tk_layout *layout, tk_layout *out);

/* The same structure with extent 1 where the stride is 0. */
TK_API tk_status tk_layout_filter_zeros(const tk_layout *layout, tk_layout *out);

/* The layout padded to `rank` modes with `mode` (NULL: `1:0`) behind or before it; unchanged if it
 * has that many. */
TK_API tk_status tk_layout_append(const tk_layout *layout, int rank, const tk_layout *mode,
                                  tk_layout *out);
TK_API tk_status tk_layout_prepend(const tk_layout *layout, int rank, const tk_layout *mode,
                                   tk_layout *out);

/* The sublayout of the modes where `coord` has a wildcard (slice) or has none (dice). The offset of
 * the fixed part is tk_layout_eval with the same coordinate. */
TK_API tk_status tk_layout_slice(const tk_layout *layout, const tk_tuple *coord, tk_layout *out);
TK_API tk_status tk_layout_dice(const tk_layout *layout, const tk_tuple *coord, tk_layout *out);

/* The same bytes seen in elements of `new_bits` instead of `old_bits`. Towards wider elements the
 * extent of a stride-1 leaf is divided (a stride that divides the ratio shares the division) and
 * the other strides are divided, both rounded up; a stride that neither divides nor is at least the
 * ratio is TK_SHAPE_ERROR. Towards narrower ones both are multiplied. */
TK_API tk_status tk_layout_recast(const tk_layout *layout, int64_t new_bits, int64_t old_bits,
                                  tk_layout *out);

/* -- Composition, complement, inverses -------------------------------------------------------- */

/* R with R(i) = A(B(i)) for every i of B, in B's structure: each leaf of B becomes a leaf or a
 * tuple. By mode with a list: the tiler's modes apply to those of A, `_` keeps one, modes past it
 * are dropped.
 *
 * Every R that exists is found for static operands; where none exists the error is TK_SHAPE_ERROR
 * with a coordinate at which every candidate differs from A(B(i)). (Where strides of A change both
 * ways this contains the knapsack problem: TK_UNSUPPORTED if dozens of leaves of B cancel their
 * carries and some seconds do not decide. No random case gets there.) An index past A's end extends
 * A's last leaf. Strides of B may be basis vectors, which name modes of A. */
TK_API tk_status tk_layout_composition(const tk_layout *a, const tk_tiler *b, tk_layout *out);

/* What fills the gaps: R strictly increasing, disjoint from the image of `layout` but for 0, and
 * (layout, R) reaches all up to cotarget and cosize(layout), each offset once. TK_SHAPE_ERROR if
 * leaves overlap or a stride is not a multiple of the span below it: then there is none. Strides of
 * 0 are ignored. */
TK_API tk_status tk_layout_complement(const tk_layout *layout, tk_term cotarget, tk_layout *out);

/* R with layout(R(i)) = i for i below size(R), as large as leaves can be chained. Static. Strides
 * plain or all basis vectors; R then has the structure of the coordinates that they span. */
TK_API tk_status tk_layout_right_inverse(const tk_layout *layout, tk_layout *out);

/* R with R(layout(i)) = i for every i. Static. TK_SHAPE_ERROR if there is none: with two
 * coordinates of one offset if the layout is not injective, else with the coordinate up to whose
 * offset a search through all splits of offsets into digits went before the last was refuted, and
 * the range of any others it needed. TK_UNSUPPORTED where about a second decides neither: strides
 * without any order, so large that the offsets lie hundreds of numbers apart. */
TK_API tk_status tk_layout_left_inverse(const tk_layout *layout, tk_layout *out);

/* The coordinates that go to 0 by strides of 0: layout(R(i)) = 0. */
TK_API tk_status tk_layout_nullspace(const tk_layout *layout, tk_layout *out);

/* How many offsets 0, 1, 2, ... both layouts reach by the same coordinates, those of b's right
 * inverse: the widest vector that both can move in one access. Static. */
TK_API tk_status tk_layout_max_common_vector(const tk_layout *a, const tk_layout *b, int64_t *out);

/* -- Divides and products ---------------------------------------------------------------------- */

/* A composed with (B, complement(B, size(A))): mode 0 is one tile, mode 1 the tiles. By mode with a
 * list, modes past it stay. A tile that does not divide rounds the rest up, past the end of A. */
TK_API tk_status tk_layout_logical_divide(const tk_layout *a, const tk_tiler *b, tk_layout *out);

/* The same leaves as ((tile modes), (rest modes, untouched modes)); for `_` the tile mode is `1:0`.
 */
TK_API tk_status tk_layout_zipped_divide(const tk_layout *a, const tk_tiler *b, tk_layout *out);

/* ((tile modes), rest mode, rest mode, ...). */
TK_API tk_status tk_layout_tiled_divide(const tk_layout *a, const tk_tiler *b, tk_layout *out);

/* (tile mode, ..., rest mode, ...). */
TK_API tk_status tk_layout_flat_divide(const tk_layout *a, const tk_tiler *b, tk_layout *out);

/* (A, complement(A, size(A)*cosize(B)) o B): mode 0 is the block, mode 1 where the blocks are. By
 * mode with a list. */
TK_API tk_status tk_layout_logical_product(const tk_layout *a, const tk_tiler *b, tk_layout *out);

/* Regrouped as the divides of the same name. */
TK_API tk_status tk_layout_zipped_product(const tk_layout *a, const tk_tiler *b, tk_layout *out);
TK_API tk_status tk_layout_tiled_product(const tk_layout *a, const tk_tiler *b, tk_layout *out);
TK_API tk_status tk_layout_flat_product(const tk_layout *a, const tk_tiler *b, tk_layout *out);

/* Mode by mode (block, blocks): each block stays contiguous. Operands are padded to one rank. */
TK_API tk_status tk_layout_blocked_product(const tk_layout *block, const tk_layout *tiler,
                                           tk_layout *out);

/* Mode by mode (blocks, block), each mode coalesced: the blocks interleave. */
TK_API tk_status tk_layout_raked_product(const tk_layout *block, const tk_layout *tiler,
                                         tk_layout *out);

/* The block repeated until it covers `shape`, the repetitions ordered by `order` (NULL: left to
 * right): mode i is (block_i, ceil(shape_i / block_i)). rank(shape) >= rank(block). */
TK_API tk_status tk_layout_tile_to_shape(const tk_layout *block, const tk_tuple *shape,
                                         const tk_tuple *order, tk_layout *out);

/* Tile number `coord` of zipped_divide(layout, tiler): the tile's layout in *out, its offset in
 * *out_offset (NULL if not wanted). Wildcards in coord keep those rest modes behind the tile's. */
TK_API tk_status tk_layout_local_tile(const tk_layout *layout, const tk_tiler *tiler,
                                      const tk_tuple *coord, tk_layout *out, tk_tuple *out_offset);

/* What thread `index` of the thread layout `threads` owns when the layout is dealt out in tiles of
 * the threads' shape: one element of each tile. */
TK_API tk_status tk_layout_local_partition(const tk_layout *layout, const tk_layout *threads,
                                           int64_t index, tk_layout *out, tk_tuple *out_offset);

/* From threads over a tile and values of a thread: *out_tv maps (thread, value) to the integer
 * coordinate in the tile, *out_tile is the tile's shape. */
TK_API tk_status tk_layout_make_tv(const tk_layout *threads, const tk_layout *values,
                                   tk_tuple *out_tile, tk_layout *out_tv);

/* -- Swizzles and composed layouts ------------------------------------------------------------- */

/* TK_INVALID_ARGUMENT unless the fields are as tk_swizzle says. */
TK_API tk_status tk_swizzle_check(tk_swizzle swizzle);

/* The swizzled offset. Unchecked: a valid swizzle, offset not negative. */
static inline int64_t tk_swizzle_apply(tk_swizzle swizzle, int64_t offset) {
    int64_t mask = (((int64_t)1 << swizzle.bits) - 1) << swizzle.base;
    if (swizzle.shift >= 0) return offset ^ ((offset >> swizzle.shift) & mask);
    return offset ^ ((offset & mask) << -swizzle.shift);
}

/* outer alone. */
TK_API void tk_composed_from_layout(const tk_layout *outer, tk_composed *out);

/* swizzle o offset o outer. `offset` NULL is 0. */
TK_API tk_status tk_composed_make_swizzled(tk_swizzle swizzle, const tk_tuple *offset,
                                           const tk_layout *outer, tk_composed *out);

/* inner o offset o outer for an inner layout. */
TK_API tk_status tk_composed_make(const tk_layout *inner, const tk_tuple *offset,
                                  const tk_layout *outer, tk_composed *out);

TK_API bool tk_composed_equal(const tk_composed *a, const tk_composed *b);

/* inner(offset + outer(coord)). */
TK_API tk_status tk_composed_eval(const tk_composed *composed, const tk_tuple *coord,
                                  tk_tuple *out);

/* The modes kept by the wildcards of coord; the fixed part is added to the offset. */
TK_API tk_status tk_composed_slice(const tk_composed *composed, const tk_tuple *coord,
                                   tk_composed *out);

/* Recasts outer and offset, and moves the swizzle's base by the ratio, which must be a power of
 * two. TK_SHAPE_ERROR when wider elements would be torn apart by the swizzle or by the offset. */
TK_API tk_status tk_composed_recast(const tk_composed *composed, int64_t new_bits, int64_t old_bits,
                                    tk_composed *out);

/* -- Text ----------------------------------------------------------------------------------------
 */

/* Parsing takes the whole text; blanks between words are allowed. Errors are TK_FORMAT_ERROR with
 * the text, a caret under the offending character and what was expected there. */
TK_API tk_status tk_tuple_parse(const char *text, tk_tuple *out);
TK_API tk_status tk_layout_parse(const char *text, tk_layout *out);
TK_API tk_status tk_tiler_parse(const char *text, tk_tiler *out);
TK_API tk_status tk_swizzle_parse(const char *text, tk_swizzle *out);
TK_API tk_status tk_composed_parse(const char *text, tk_composed *out);

/* Printing writes at most `capacity` bytes, the final zero included, and returns the length that
 * the whole text has, as snprintf does. parse(print(x)) is x. tk_layout_print prints tilers as
 * well. */
TK_API size_t tk_tuple_print(const tk_tuple *tuple, char *text, size_t capacity);
TK_API size_t tk_layout_print(const tk_layout *layout, char *text, size_t capacity);
TK_API size_t tk_swizzle_print(tk_swizzle swizzle, char *text, size_t capacity);
TK_API size_t tk_composed_print(const tk_composed *composed, char *text, size_t capacity);

TK_END_DECLS

#endif
