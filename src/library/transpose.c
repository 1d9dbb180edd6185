/* Transpose: y[..., c, r] = x[..., r, c], elements of 1 to 8 bytes.
 *
 * Tile: tile x tile elements through shared memory, one tile a block. A vector is one access of
 * global memory, along the rows of x on the way in and along the rows of y on the way out. Thread t
 * brings vectors t, t + threads, ... of the tile and takes as many out.
 *
 * Shared memory: the tile, row by row, swizzled: element (r, c) lies at r * tile + (c ^ f(r)),
 * where f(r) is r without the bits below a vector, so a vector of x stays together and the lanes
 * that read a column (rows apart by a vector) meet different banks:
 *
 *     vectors of 4, tile 16:      c  0-3  4-7  8-11 12-15
 *                       r  0- 3      A    B    C    D
 *                       r  4- 7      B    A    D    C        (each letter a column of vectors)
 *                       r  8-11      C    D    A    B
 *                       r 12-15      D    C    B    A
 *
 * The barrier orders the writes of the tile before its reads. Bytes: x and y once. FLOPs: none.
 * Roofline: bandwidth: 0.98 of the copy (H200, f32, 16384 x 16384). Rejected: a row of padding (a
 * vector would lie across 16 bytes), ldmatrix (16 bits only). */
#include "library/rows.h"

#include <stdio.h>

typedef struct shape {
    int64_t batch, rows, columns;             /* of x */
    int64_t x_pitch, x_step, y_pitch, y_step; /* steps from one matrix to the next */
} shape;

typedef struct turner {
    tk_library_kernel k;
    tk_b *b;
    tk_val x, y, words; /* matrices, and the tile */
    tk_val rows, columns, x_pitch, y_pitch;
    tk_val first_row, first_column, thread;
    int64_t tile, threads, group;
    int lanes;
    bool full; /* the matrices are of whole tiles: nothing is conditional */
} turner;

/* Vectors that a thread brings together: loads under way while none has come. */
enum { TOGETHER = 4 };

/* Where element (row, column) of the tile lies. */
static tk_val place(const turner *t, tk_val row, tk_val column) {
    tk_b *b = t->b;
    tk_val turned = tk_k_xor(b, column, tk_k_and(b, row, tk_k_i32(b, -t->lanes)));
    tk_val inside = tk_k_and(b, turned, tk_k_i32(b, t->tile - 1));
    return tk_k_offset(b, t->words, tk_k_add(b, tk_k_mul(b, row, tk_k_i32(b, t->tile)), inside));
}

/* A vector of the tile by its number: `line` counts rows of the side that is read or written
 * along, `at` is the vector's first element in it. */
static void vector_of(const turner *t, int64_t number, tk_val *line, tk_val *at) {
    tk_b *b = t->b;
    int64_t each = t->tile / t->lanes;
    tk_val all = tk_k_add(b, t->thread, tk_k_i32(b, number * t->threads));
    *line = tk_k_ushr(b, all, tk_k_i32(b, __builtin_ctzll((uint64_t)each)));
    *at = tk_k_mul(b, tk_k_and(b, all, tk_k_i32(b, each - 1)), tk_k_i32(b, t->lanes));
}

/* NULL where all are. */
static tk_val inside_of(const turner *t, tk_val row, tk_val column) {
    if (t->full) return NULL;
    tk_val in_line = tk_k_icmp(t->b, "slt", column, t->columns);
    return tk_k_and(t->b, tk_k_icmp(t->b, "slt", row, t->rows), in_line);
}

static tk_val global_place(const turner *t, tk_val matrix, tk_val line, tk_val pitch, tk_val at) {
    return tk_k_offset(t->b, matrix, tk_k_place(t->b, line, pitch, at));
}

static void bring(const turner *t, int64_t first, int64_t count) {
    tk_b *b = t->b;
    tk_val places[TOGETHER], values[TOGETHER], inside[TOGETHER], row, column;
    for (int64_t i = 0; i < count; i++) {
        vector_of(t, first + i, &row, &column);
        tk_val in_row = tk_k_add(b, t->first_row, row),
               in_column = tk_k_add(b, t->first_column, column);
        inside[i] = inside_of(t, in_row, in_column);
        places[i] = place(t, row, column);
        values[i] = tk_k_load_if(b, global_place(t, t->x, in_row, t->x_pitch, in_column), t->lanes,
                                 inside[i]);
    }
    for (int64_t i = 0; i < count; i++) tk_k_store_if(b, places[i], values[i], inside[i]);
}

static void take_out(const turner *t, int64_t number) {
    tk_b *b = t->b;
    tk_val row, column, parts[TK_LIBRARY_MOST_LANES];
    vector_of(t, number, &column, &row);
    tk_val in_row = tk_k_add(b, t->first_row, row),
           in_column = tk_k_add(b, t->first_column, column);
    tk_val inside = inside_of(t, in_row, in_column);
    if (inside) tk_kernel_if(b, inside);
    for (int i = 0; i < t->lanes; i++)
        parts[i] = tk_k_load(b, place(t, tk_k_add(b, row, tk_k_i32(b, i)), column), 1);
    tk_val value = tk_k_vector(b, parts, t->lanes);
    tk_k_store(b, global_place(t, t->y, in_column, t->y_pitch, in_row), value);
    if (inside) tk_k_end(b);
}

static tk_val log2_of(tk_b *b, int64_t power) {
    return tk_k_i32(b, __builtin_ctzll((uint64_t)power));
}

/* The block's tile: its column of tiles, row of tiles and matrix. `high` counts groups of rows of
 * tiles, in which blocks go down before they go across; rows of tiles behind the matrix are empty.
 */
static void locate(turner *t, tk_val wide, tk_val high, tk_val x_step, tk_val y_step) {
    tk_b *b = t->b;
    tk_val each = tk_k_mul(b, wide, tk_k_i32(b, t->group)), block = tk_k_block(b);
    tk_val groups = tk_k_udiv(b, block, each), matrix = tk_k_udiv(b, groups, high);
    tk_val in_group = tk_k_sub(b, block, tk_k_mul(b, groups, each));
    tk_val in_matrix = tk_k_sub(b, groups, tk_k_mul(b, matrix, high));
    tk_val column = tk_k_ushr(b, in_group, log2_of(b, t->group));
    tk_val line = tk_k_and(b, in_group, tk_k_i32(b, t->group - 1));
    tk_val row = tk_k_add(b, tk_k_mul(b, in_matrix, tk_k_i32(b, t->group)), line);
    t->first_column = tk_k_mul(b, column, tk_k_i32(b, t->tile));
    t->first_row = tk_k_mul(b, row, tk_k_i32(b, t->tile));
    tk_val number = tk_k_wide(b, matrix);
    t->x = tk_k_offset(b, t->x, tk_k_mul(b, number, x_step));
    t->y = tk_k_offset(b, t->y, tk_k_mul(b, number, y_step));
}

static void put_tile(turner *t, tk_kscalar element) {
    char layout[40];
    int64_t vectors = t->tile * t->tile / t->lanes;
    snprintf(layout, sizeof layout, "(%d,%d):(%d,1)", (int)t->tile, (int)t->tile, (int)t->tile);
    t->words = tk_k_shared(t->b, element, layout);
    int64_t each = vectors / t->threads;
    for (int64_t i = 0; i < each; i += TOGETHER)
        bring(t, i, each - i < TOGETHER ? each - i : TOGETHER);
    tk_k_barrier(t->b);
    for (int64_t i = 0; i < each; i++) take_out(t, i);
}

/* ---- the call ---- */

/* The last two axes are rows; those before them are evenly spaced matrices. */
static tk_status read_matrices(const tk_library_call *call, size_t index, const char *role,
                               int64_t *batch, int64_t *rows, int64_t *columns, int64_t *pitch,
                               int64_t *step) {
    const tk_library_tensor *t = &call->tensors[index];
    int64_t expected = 0;
    if (t->rank < 2)
        return tk_library_fail(call, TK_SHAPE_ERROR, "%s has %d axes, expected 2 or more", role,
                               t->rank);
    *rows = t->shape[t->rank - 2], *columns = t->shape[t->rank - 1];
    *pitch = t->stride[t->rank - 2], *batch = 1, *step = 0;
    if (*columns > 1 && t->stride[t->rank - 1] != 1)
        return tk_library_fail(call, TK_SHAPE_ERROR,
                               "%s has stride %lld along its last axis, expected 1", role,
                               (long long)t->stride[t->rank - 1]);
    for (int i = t->rank - 3; i >= 0; i--) {
        if (t->shape[i] == 1) continue;
        if (!expected) *step = t->stride[i];
        if (expected && t->stride[i] != expected && tk_library_size(t) > 0)
            return tk_library_fail(call, TK_SHAPE_ERROR,
                                   "the matrices of %s are not evenly spaced: copy it first", role);
        *batch *= t->shape[i];
        expected = t->shape[i] * t->stride[i];
    }
    return TK_OK;
}

static tk_status check(const tk_library_call *call, shape *s) {
    const tk_library_tensor *x = &call->tensors[0], *y = &call->tensors[1];
    int64_t batch, rows, columns;
    if (x->element != y->element)
        return tk_library_fail(call, TK_DTYPE_ERROR, "x has elements %s, y %s",
                               tk_kscalar_text(x->element), tk_kscalar_text(y->element));
    TK_TRY(read_matrices(call, 0, "x", &s->batch, &s->rows, &s->columns, &s->x_pitch, &s->x_step));
    TK_TRY(read_matrices(call, 1, "y", &batch, &rows, &columns, &s->y_pitch, &s->y_step));
    bool same = x->rank == y->rank && rows == s->columns && columns == s->rows;
    for (int i = 0; i < x->rank - 2 && same; i++) same = x->shape[i] == y->shape[i];
    if (!same)
        return tk_library_fail(call, TK_SHAPE_ERROR,
                               "y is not of the shape of x with the last two axes exchanged");
    if (s->rows > (int64_t)1 << 30 || s->columns > (int64_t)1 << 30)
        return tk_library_fail(call, TK_UNSUPPORTED, "matrices of more than 2^30 rows or columns");
    return TK_OK;
}

static int lanes_of(const tk_library_call *call, const shape *s) {
    const tk_library_tensor *t = call->tensors;
    int64_t bytes = tk_kscalar_bytes(t->element);
    int64_t facts[] = {tk_library_align(&t[0]), tk_library_align(&t[1]), s->x_pitch * bytes,
                       s->y_pitch * bytes,      s->x_step * bytes,       s->y_step * bytes,
                       s->rows * bytes,         s->columns * bytes};
    int64_t lanes = tk_library_divisor(call->schedule->vector, 8, facts) / bytes;
    return lanes > 1 ? (int)lanes : 1;
}

static tk_status check_tile(const tk_library_call *call, const turner *t, int64_t bytes) {
    if (t->tile >= t->lanes && t->threads * t->lanes <= t->tile * t->tile &&
        t->tile * t->tile * bytes <= 48 * 1024)
        return TK_OK;
    return tk_library_fail(call, TK_INVALID_ARGUMENT,
                           "schedule: a tile of %lld x %lld has less vectors of %d elements than "
                           "%lld threads, or more than 48 KiB",
                           (long long)t->tile, (long long)t->tile, t->lanes, (long long)t->threads);
}

static void bind_all(turner *t, const tk_library_call *call, const shape *s) {
    const tk_library_tensor *tensors = call->tensors;
    int64_t wide = (s->columns + t->tile - 1) / t->tile, lines = t->tile * t->group,
            high = (s->rows + lines - 1) / lines;
    t->x = tk_library_bind_rows(&t->k, "x", 0, tensors, TK_KACCESS_READ, t->lanes);
    t->y = tk_library_bind_rows(&t->k, "y", 1, tensors, TK_KACCESS_WRITE, t->lanes);
    t->rows = tk_library_bind_int(&t->k, "rows", TK_K_I32, s->rows);
    t->columns = tk_library_bind_int(&t->k, "columns", TK_K_I32, s->columns);
    t->x_pitch = tk_library_bind_int(&t->k, "x_pitch", TK_K_I64, s->x_pitch);
    t->y_pitch = tk_library_bind_int(&t->k, "y_pitch", TK_K_I64, s->y_pitch);
    tk_val x_step = tk_library_bind_int(&t->k, "x_step", TK_K_I64, s->x_step);
    tk_val y_step = tk_library_bind_int(&t->k, "y_step", TK_K_I64, s->y_step);
    tk_val tiles = tk_library_bind_int(&t->k, "tiles", TK_K_I64, wide * high * t->group * s->batch);
    tk_val across = tk_library_bind_int(&t->k, "tiles_across", TK_K_I32, wide ? wide : 1);
    tk_val down = tk_library_bind_int(&t->k, "groups_down", TK_K_I32, high ? high : 1);
    tk_k_require_from(t->b, t->rows, 0);
    tk_k_require_from(t->b, t->columns, 0);
    if (t->full) {
        tk_k_require_whole(t->b, t->rows, lines);
        tk_k_require_whole(t->b, t->columns, t->tile);
    }
    tk_k_require_from(t->b, across, 1);
    tk_k_require_from(t->b, down, 1);
    tk_k_grid(t->b, tiles, 1);
    tk_kernel_block(t->b, t->threads, 1, 1);
    t->thread = tk_k_thread(t->b);
    locate(t, across, down, x_step, y_step);
}

tk_status tk_library_make_transpose(const tk_library_call *call, tk_library_plan *plan) {
    tk_kscalar element = call->tensors[0].element;
    shape s;
    TK_TRY(check(call, &s));
    turner t = {.tile = call->schedule->tile,
                .threads = call->schedule->threads,
                .group = call->schedule->group,
                .lanes = lanes_of(call, &s)};
    TK_TRY(check_tile(call, &t, tk_kscalar_bytes(element)));
    t.full = s.rows % (t.tile * t.group) == 0 && s.columns % t.tile == 0;
    TK_TRY(tk_library_open(plan, call->name, &t.k));
    t.b = t.k.b;
    bind_all(&t, call, &s);
    tk_rows_overlap(t.b, call->schedule);
    put_tile(&t, element);
    return tk_library_close(&t.k);
}

/* Small matrices: a row of the tile is the 128 bytes of all banks. Large ones: larger tiles, whose
 * rows are longer runs of memory, taken down the columns where that leaves few places empty. */
void tk_library_choose_transpose(const tk_library_tensor *tensors, tk_library_schedule *out) {
    int64_t bytes = tk_kscalar_bytes(tensors->element), rank = tensors->rank;
    out->tile = 128 / bytes;
    out->vector = 16;
    out->overlap = 1;
    out->threads = bytes == 8 ? 128 : 256;
    out->group = 1;
    if (bytes == 8 || rank < 2 || tensors->shape[rank - 2] < 512 || tensors->shape[rank - 1] < 512)
        return;
    out->tile = bytes == 4 ? 64 : 128;
    int64_t down = (tensors->shape[rank - 2] + out->tile - 1) / out->tile;
    out->group = 256;
    while (out->group > 1 && (down + out->group - 1) / out->group * out->group > down + down / 8)
        out->group /= 2;
}
