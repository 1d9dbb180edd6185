/* d = a b: mma.sync.m16n8k16 of f16 or bf16 with sums in f32, operands by cp.async in stages.
 *
 * Tile: tile_m x tile_n of d a block, tile_k of the sums at a time. warps_m x warps_n warps, each
 * with a rectangle of the tile in registers, in pieces of 16 x 8: lane l has rows l / 4 and l / 4 +
 * 8, columns 2 (l % 4) and the next.
 *
 * Shared memory: for each stage a tile of a and one of b, line by line as they lie in memory (along
 * k or across), 8 elements a chunk. Chunk c of line r lies at place c ^ (r / s) of its line, where
 * s is how many lines 128 bytes hold, so the eight rows of an ldmatrix meet all banks:
 *
 *     stage 0: a | stage 1: a | ... | stage 0: b | stage 1: b | ...
 *     lines of 64 bytes:   r 0: 0 1 2 3   r 2: 1 0 3 2   r 4: 2 3 0 1   r 6: 3 2 1 0
 *
 * Lines along k are read by ldmatrix as they are, lines across k transposed. Step t of the sums
 * waits for its stage (cp.async groups), then for the block: the barrier orders the copies of all
 * threads before the reads, and the reads of step t - 1 before the copies of step t + stages - 1,
 * which go to the place of t - 1. What lies beyond the matrices is zero in shared memory (cp.async
 * fills it).
 *
 * Copies are as wide as alignment, pitch and steps prove: 16, 8 or 4 bytes by cp.async; single
 * elements (odd pitches) by a load and a store, whose values wait in registers until the step's
 * barrier has passed. Parts of a thread that lie regularly have one source and one target, found
 * before the steps, and matrices of whole tiles have a kernel of their own without conditions: on
 * an H200 that brought 2048^3 from 77 us to 47.
 *
 * Bytes: a n / tile_n times, b m / tile_m times, d once. FLOPs: 2 m n k. Roofline: tensor cores, of
 * which mma.sync reaches about two thirds; on an H200 with random data 298 TFLOP/s at 4096^3 (323
 * with tile_k = 64, stages = 3). Rejected: wgmma here (hopper_gemm); split k (a second kernel for
 * sums).
 */
#include "library/gemm.h"

#include <stdio.h>

enum { CHUNK = 8, THREADS_OF_WARP = 32, MOST_PLACES = 16 };

/* An operand, a or b: `other` is its axis that is not k. */
typedef struct side {
    const tk_gemm_matrix *matrix;
    tk_val pointer;      /* to the matrix of the batch */
    tk_val pitch, first; /* first line or element of the block's tile along `other` */
    tk_val extent;       /* of `other` */
    tk_val shared;
    int64_t lines, along, lanes, width; /* of the tile; width along `other` */
    tk_val registers;
    tk_val warp_first; /* of the warp's rectangle along `other`, in the tile */
    int64_t pieces;    /* of 16 along `other` in it */
    bool is_a;
    /* Of the thread's parts, where they lie a number of lines apart that is known (`apart`, else
     * 0): line and source of the first at step 0, its place in the tile, and what is left of its
     * line. */
    int64_t apart;
    tk_val line, source, target, left;
    bool has_places;
    tk_val places[MOST_PLACES]; /* of the lane's row: lines along k by 16 of k, else by piece */
} side;

typedef struct gemm {
    tk_library_kernel k;
    tk_b *b;
    const tk_library_schedule *s;
    tk_gemm_problem p;
    side a, c; /* c: operand b */
    tk_val m, n, depth, d_pitch, d;
    tk_val thread, lane, first_m, first_n;
    tk_val sums;
    tk_kscalar element;
    int64_t threads;
    bool full; /* the matrices are of whole tiles: nothing is conditional or cut */
} gemm;

static tk_val i32(const gemm *g, int64_t value) { return tk_k_i32(g->b, value); }

/* ---- where chunks lie ---- */

static int64_t lines_together(const side *s) {
    int64_t chunks = s->along / CHUNK;
    return chunks >= CHUNK ? 1 : CHUNK / chunks;
}

/* What the chunks of a line are exchanged by. */
static tk_val turn_of(const gemm *g, const side *s, tk_val line) {
    int64_t chunks = s->along / CHUNK, mask = (chunks < CHUNK ? chunks : CHUNK) - 1;
    tk_val group = tk_k_ushr(g->b, line, i32(g, __builtin_ctzll((uint64_t)lines_together(s))));
    return tk_k_and(g->b, group, i32(g, mask));
}

/* ---- copies ---- */

/* The part of a tile that a thread brings with its i-th copy. */
typedef struct part {
    tk_val line, at; /* in the tile */
    tk_val wanted;   /* NULL, or whether there is such a part */
    tk_val target;   /* place in the tile, in elements */
} part;

static part part_of(const gemm *g, const side *s, int64_t number) {
    tk_b *b = g->b;
    int64_t of_line = s->along / s->lanes, total = s->lines * of_line;
    tk_val all = tk_k_add(b, g->thread, i32(g, number * g->threads));
    part p = {.line = tk_k_ushr(b, all, i32(g, __builtin_ctzll((uint64_t)of_line)))};
    p.at = tk_k_mul(b, tk_k_and(b, all, i32(g, of_line - 1)), i32(g, s->lanes));
    if ((number + 1) * g->threads > total) p.wanted = tk_k_icmp(b, "slt", all, i32(g, total));
    tk_val turn = turn_of(g, s, p.line);
    tk_val chunk = tk_k_xor(b, tk_k_ushr(b, p.at, i32(g, 3)), turn);
    tk_val inside = tk_k_and(b, p.at, i32(g, CHUNK - 1));
    tk_val in_line = tk_k_add(b, tk_k_mul(b, chunk, i32(g, CHUNK)), inside);
    p.target = tk_k_add(b, tk_k_mul(b, p.line, i32(g, s->along)), in_line);
    return p;
}

static int64_t parts(const gemm *g, const side *s) {
    return (s->lines * s->along / s->lanes + g->threads - 1) / g->threads;
}

/* Line and element of a part in the matrix at step `k0` of the sums, and what is left of the line
 * from there (negative beyond it), 0 beyond the lines. */
static tk_val left_of(const gemm *g, const side *s, const part *p, tk_val k0, tk_val *line,
                      tk_val *at) {
    tk_b *b = g->b;
    bool k_lines = s->matrix->k_lines;
    *line = tk_k_add(b, k_lines ? s->first : k0, p->line);
    *at = tk_k_add(b, k_lines ? k0 : s->first, p->at);
    tk_val left = tk_k_sub(b, k_lines ? g->depth : s->extent, *at);
    return tk_k_select(b, tk_k_icmp(b, "slt", *line, k_lines ? s->extent : g->depth), left,
                       i32(g, 0));
}

static tk_val source_of(const gemm *g, const side *s, tk_val line, tk_val at) {
    tk_b *b = g->b;
    return tk_k_offset(b, s->pointer, tk_k_place(b, line, s->pitch, at));
}

static void copy_one(const gemm *g, tk_val target, tk_val source, tk_val left, tk_val wanted) {
    tk_b *b = g->b;
    tk_val inside = tk_k_icmp(b, "sgt", left, i32(g, 0));
    if (wanted) inside = tk_k_and(b, inside, wanted);
    tk_val value = tk_k_load_if(b, source, 1, inside);
    tk_k_store_if(b, target, value, wanted);
}

static tk_val clip(const gemm *g, const side *s, tk_val left) {
    tk_val most = tk_op2(g->b, TK_KOP_smin, left, i32(g, s->lanes));
    return tk_op2(g->b, TK_KOP_smax, most, i32(g, 0));
}

/* `count` of elements; NULL: all. */
static void copy_some(const gemm *g, const side *s, tk_val target, tk_val source, tk_val count,
                      tk_val wanted) {
    int64_t bytes = 2 * s->lanes;
    tk_kattr attrs[] = {{.id = TK_KA_bytes, .value = bytes}, {.id = TK_KA_cache, .word = "cg"}};
    tk_val bytes_of = count ? tk_k_mul(g->b, count, i32(g, 2)) : NULL;
    tk_val list[] = {target, source, bytes_of, wanted, NULL};
    tk_kernel_op(g->b, TK_KOP_cp_async, 5, list, bytes == 16 ? 2 : 1, attrs, tk_no_type());
}

static void copy_part(const gemm *g, const side *s, int64_t number, tk_val k0, tk_val stage) {
    tk_b *b = g->b;
    part p = part_of(g, s, number);
    tk_val line, at, left = left_of(g, s, &p, k0, &line, &at);
    tk_val target = tk_k_offset(b, stage, p.target), source = source_of(g, s, line, at);
    if (s->lanes == 1)
        copy_one(g, target, source, left, p.wanted);
    else
        copy_some(g, s, target, source, clip(g, s, left), p.wanted);
}

/* ---- copies of parts that lie regularly ---- */

/* Whether all lines of a thread turn their chunks alike, and no thread has a part too few. */
static bool is_regular(const gemm *g, const side *s) {
    int64_t chunks = s->along / CHUNK,
            turns = lines_together(s) * (chunks < CHUNK ? chunks : CHUNK),
            together = g->threads * s->lanes;
    return s->lanes > 1 && together % (s->along * turns) == 0 &&
           s->lines * s->along % together == 0;
}

static void find_first(const gemm *g, side *s) {
    tk_b *b = g->b;
    if (!is_regular(g, s)) return;
    part p = part_of(g, s, 0);
    bool k_lines = s->matrix->k_lines;
    tk_val at = k_lines ? p.at : tk_k_add(b, s->first, p.at);
    s->apart = g->threads * s->lanes / s->along;
    s->line = k_lines ? tk_k_add(b, s->first, p.line) : p.line;
    s->left = tk_k_sub(b, k_lines ? g->depth : s->extent, at);
    s->target = p.target;
    s->source = source_of(g, s, s->line, at);
}

/* What is left of a line, at most a vector; `line` counts from the thread's first at the step. */
static tk_val count_of(const gemm *g, const side *s, int64_t number, tk_val line, tk_val left) {
    tk_val lines = s->matrix->k_lines ? s->extent : g->depth,
           end = tk_k_sub(g->b, lines, i32(g, number * s->apart));
    return tk_k_select(g->b, tk_k_icmp(g->b, "slt", line, end), left, i32(g, 0));
}

/* A step adds to the source and takes from what is left of a line, or from the lines. */
static void copy_regular(const gemm *g, const side *s, tk_val k0, tk_val stage) {
    tk_b *b = g->b;
    bool k_lines = s->matrix->k_lines;
    tk_val wide = tk_k_wide(b, k0), away = k_lines ? wide : tk_k_mul(b, wide, s->pitch),
           next = tk_k_mul(b, s->pitch, tk_k_i64(b, s->apart)), line = s->line, left = s->left,
           source = tk_k_offset(b, s->source, away), target = tk_k_offset(b, stage, s->target);
    if (!g->full) {
        if (!k_lines) line = tk_k_add(b, line, k0);
        left = clip(g, s, k_lines ? tk_k_sub(b, left, k0) : left);
    }
    for (int64_t n = 0; n < parts(g, s); n++) {
        tk_val count = g->full ? NULL : count_of(g, s, n, line, left);
        if (n) source = tk_k_offset(b, source, next);
        copy_some(g, s, tk_k_offset(b, target, i32(g, n * s->apart * s->along)), source, count,
                  NULL);
    }
}

static void copy_side(const gemm *g, const side *s, tk_val k0, tk_val stage) {
    if (s->apart)
        copy_regular(g, s, k0, stage);
    else
        for (int64_t n = 0; n < parts(g, s); n++) copy_part(g, s, n, k0, stage);
}

static tk_val stage_of(const gemm *g, const side *s, tk_val stage) {
    return tk_k_offset(g->b, s->shared, tk_k_mul(g->b, stage, i32(g, s->lines * s->along)));
}

/* Brings step `step` of the sums to a stage. */
static void copy_step(const gemm *g, tk_val step, tk_val stage) {
    tk_val k0 = tk_k_mul(g->b, step, i32(g, g->s->tile_k));
    const side *sides[] = {&g->a, &g->c};
    for (int i = 0; i < 2; i++) copy_side(g, sides[i], k0, stage_of(g, sides[i], stage));
}

static void commit(const gemm *g) {
    tk_kernel_op(g->b, TK_KOP_cp_async_commit, 0, NULL, 0, NULL, tk_no_type());
}
static void wait(const gemm *g, int64_t groups) {
    tk_kattr attr = {.id = TK_KA_groups, .value = groups};
    tk_kernel_op(g->b, TK_KOP_cp_async_wait, 0, NULL, groups != 0, &attr, tk_no_type());
}

/* ---- products ---- */

/* Where the lane's row of a 16 x 16 of an operand lies in a tile. Rows of the four matrices by
 * lane: a along k has them below each other first, then to the right; across k, and for b, it is
 * the other way round, so that the registers are those of the instruction. */
static tk_val place_of_row(const gemm *g, const side *s, int64_t piece, int64_t k) {
    tk_b *b = g->b;
    bool k_lines = s->matrix->k_lines, below_first = s->is_a == k_lines;
    tk_val low = tk_k_and(b, g->lane, i32(g, 7)),
           bit3 = tk_k_and(b, tk_k_ushr(b, g->lane, i32(g, 3)), i32(g, 1)),
           bit4 = tk_k_ushr(b, g->lane, i32(g, 4));
    tk_val down = below_first ? bit3 : bit4, right = below_first ? bit4 : bit3;
    tk_val row = tk_k_add(b, tk_k_mul(b, down, i32(g, 8)), low);
    tk_val first = tk_k_add(b, s->warp_first, i32(g, 16 * piece));
    tk_val line = tk_k_add(b, k_lines ? first : i32(g, k), row);
    tk_val chunk = k_lines ? tk_k_add(b, right, i32(g, k / CHUNK))
                           : tk_k_add(b, tk_k_ushr(b, first, i32(g, 3)), right);
    tk_val turned = tk_k_xor(b, chunk, turn_of(g, s, row));
    tk_val in_line = tk_k_mul(b, turned, i32(g, CHUNK));
    return tk_k_add(b, tk_k_mul(b, line, i32(g, s->along)), in_line);
}

/* The exchange of chunks depends on k where lines lie along it and on the piece where they lie
 * across; the other of the two is a distance. Where single elements are copied their values are in
 * the registers that the places would take. */
static void find_places(const gemm *g, side *s) {
    bool k_lines = s->matrix->k_lines;
    s->has_places = g->a.lanes > 1 && g->c.lanes > 1;
    for (int64_t i = 0; s->has_places && i < (k_lines ? g->s->tile_k / 16 : s->pieces); i++)
        s->places[i] = place_of_row(g, s, k_lines ? 0 : i, k_lines ? 16 * i : 0);
}

static tk_val row_at(const gemm *g, const side *s, tk_val stage, int64_t piece, int64_t k) {
    bool k_lines = s->matrix->k_lines;
    if (!s->has_places) return tk_k_offset(g->b, stage, place_of_row(g, s, piece, k));
    tk_val from = tk_k_offset(g->b, stage, s->places[k_lines ? k / 16 : piece]);
    return tk_k_offset(g->b, from, i32(g, (k_lines ? 16 * piece : k) * s->along));
}

static void load_piece(const gemm *g, const side *s, tk_val stage, int64_t piece, int64_t k) {
    tk_kattr attrs[] = {{.id = TK_KA_count, .value = 4},
                        {.id = TK_KA_index, .value = 8 * piece},
                        {.id = TK_KA_transposed, .value = !s->matrix->k_lines}};
    tk_val list[] = {s->registers, row_at(g, s, stage, piece, k)};
    tk_kernel_op(g->b, TK_KOP_load_matrix, 2, list, 3, attrs, tk_no_type());
}

static void multiply(const gemm *g, int64_t i, int64_t j) {
    tk_kattr attrs[] = {{.id = TK_KA_m, .value = 16},
                        {.id = TK_KA_n, .value = 8},
                        {.id = TK_KA_k, .value = 16},
                        {.id = TK_KA_d_index, .value = 4 * (j * g->a.pieces + i)},
                        {.id = TK_KA_a_index, .value = 8 * i},
                        {.id = TK_KA_b_index, .value = 4 * j},
                        {.id = TK_KA_c_index, .value = 4 * (j * g->a.pieces + i)}};
    tk_val list[] = {g->sums, g->a.registers, g->c.registers, g->sums};
    tk_kernel_op(g->b, TK_KOP_mma, 4, list, 7, attrs, tk_no_type());
}

static void multiply_stage(const gemm *g, tk_val stage) {
    tk_val a = stage_of(g, &g->a, stage), c = stage_of(g, &g->c, stage);
    for (int64_t k = 0; k < g->s->tile_k; k += 16) {
        for (int64_t i = 0; i < g->a.pieces; i++) load_piece(g, &g->a, a, i, k);
        for (int64_t j = 0; j < g->c.pieces; j++) load_piece(g, &g->c, c, j, k);
        for (int64_t j = 0; j < 2 * g->c.pieces; j++)
            for (int64_t i = 0; i < g->a.pieces; i++) multiply(g, i, j);
    }
}

/* ---- the steps ---- */

static tk_val next_stage(const gemm *g, tk_val stage) {
    tk_val next = tk_k_add(g->b, stage, i32(g, 1));
    return tk_k_select(g->b, tk_k_icmp(g->b, "eq", next, i32(g, g->s->stages)), i32(g, 0), next);
}

static void copy_if(const gemm *g, tk_val step, tk_val steps, tk_val stage) {
    tk_kernel_if(g->b, tk_k_icmp(g->b, "slt", step, steps));
    copy_step(g, step, stage);
    tk_k_end(g->b);
    commit(g);
}

static void sum_up(gemm *g) {
    tk_b *b = g->b;
    int64_t ahead = g->s->stages - 1;
    tk_val steps = tk_k_ushr(b, tk_k_add(b, g->depth, i32(g, g->s->tile_k - 1)),
                             i32(g, __builtin_ctzll((uint64_t)g->s->tile_k)));
    side *sides[] = {&g->a, &g->c};
    for (int i = 0; i < 2; i++) find_first(g, sides[i]);
    for (int64_t i = 0; i < ahead; i++) copy_if(g, i32(g, i), steps, i32(g, i));
    for (int i = 0; i < 2; i++) find_places(g, sides[i]);
    tk_val start[] = {i32(g, 0), i32(g, ahead)}, stage[2];
    tk_val step = tk_kernel_for(b, i32(g, 0), steps, i32(g, 1), 1, 2, start, stage);
    if (ahead) {
        wait(g, ahead - 1);
        tk_k_barrier(b);
        copy_if(g, tk_k_add(b, step, i32(g, ahead)), steps, stage[1]);
    } else {
        tk_k_barrier(b);
        copy_step(g, step, i32(g, 0));
        commit(g);
        wait(g, 0);
        tk_k_barrier(b);
    }
    multiply_stage(g, stage[0]);
    tk_val next[2];
    for (int i = 0; i < 2; i++) next[i] = next_stage(g, stage[i]);
    tk_kernel_end(b, 2, next, NULL);
}

/* ---- d ---- */

static tk_val sum_at(const gemm *g, int64_t index) {
    tk_kattr attr = {.id = TK_KA_index, .value = index};
    return tk_kernel_op(g->b, TK_KOP_get, 1, &g->sums, index != 0, &attr,
                        tk_ktype_scalar(TK_K_F32));
}

/* One piece of 16 x 8. */
static void put_piece(const gemm *g, int64_t i, int64_t j, bool pair) {
    tk_b *b = g->b;
    tk_val row = tk_k_add(b, g->first_m, tk_k_add(b, g->a.warp_first, i32(g, 16 * i))),
           column = tk_k_add(b, g->first_n, tk_k_add(b, g->c.warp_first, i32(g, 8 * j)));
    row = tk_k_add(b, row, tk_k_ushr(b, g->lane, i32(g, 2)));
    column = tk_k_add(b, column, tk_k_mul(b, tk_k_and(b, g->lane, i32(g, 3)), i32(g, 2)));
    tk_val low = g->full ? NULL : tk_k_icmp(b, "slt", column, g->n),
           high = g->full ? NULL : tk_k_icmp(b, "slt", tk_k_add(b, column, i32(g, 1)), g->n);
    for (int64_t half = 0; half < 2; half++) {
        tk_val line = tk_k_add(b, row, i32(g, 8 * half)), if_high = NULL, if_low = NULL;
        if (!g->full) {
            tk_val inside = tk_k_icmp(b, "slt", line, g->m);
            if_high = tk_k_and(b, inside, high), if_low = tk_k_and(b, inside, low);
        }
        tk_val place = tk_k_place(b, line, g->d_pitch, column);
        int64_t first = 4 * (j * g->a.pieces + i) + 2 * half;
        tk_val right = sum_at(g, first + 1), left = sum_at(g, first);
        tk_gemm_store(b, tk_k_offset(b, g->d, place), left, right, pair, if_low, if_high);
    }
}

static void put_sums(const gemm *g, bool pair) {
    for (int64_t i = 0; i < g->a.pieces; i++)
        for (int64_t j = 0; j < 2 * g->c.pieces; j++) put_piece(g, i, j, pair);
}

/* ---- the call ---- */

static tk_val registers(const gemm *g, tk_kscalar element, int64_t count) {
    char layout[24];
    snprintf(layout, sizeof layout, "%d:1", (int)count);
    return tk_kernel_op(g->b, TK_KOP_registers, 0, NULL, 0, NULL,
                        tk_ktype_of_registers(g->b, element, layout, NULL));
}

static tk_status check_schedule(const tk_library_call *call, const tk_gemm_problem *p) {
    const tk_library_schedule *s = call->schedule;
    int64_t bytes = 2 * s->tile_k * (s->tile_m + s->tile_n) * s->stages;
    int64_t registers_of = s->tile_m * s->tile_n / (THREADS_OF_WARP * s->warps_m * s->warps_n);
    (void)p;
    if (s->tile_m % (16 * s->warps_m) || s->tile_n % (16 * s->warps_n) ||
        s->warps_m * s->warps_n > 32)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "schedule: %lld x %lld warps over a tile of %lld x %lld, expected "
                               "multiples of 16 for each and at most 32 warps",
                               (long long)s->warps_m, (long long)s->warps_n, (long long)s->tile_m,
                               (long long)s->tile_n);
    if (bytes > 227 * 1024 || registers_of > 256)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "schedule: %lld bytes of shared memory and %lld sums a thread, at "
                               "most 232448 and 256",
                               (long long)bytes, (long long)registers_of);
    return TK_OK;
}

static int64_t lanes_of(const tk_library_call *call, size_t index, const tk_gemm_matrix *matrix) {
    int64_t facts[] = {tk_library_align(&call->tensors[index]), 2 * matrix->pitch,
                       2 * matrix->step};
    return tk_library_divisor(call->schedule->vector > 2 ? call->schedule->vector : 2, 3, facts) /
           2;
}

static void set_side(gemm *g, const tk_library_call *call, size_t index, bool is_a) {
    side *s = is_a ? &g->a : &g->c;
    s->matrix = is_a ? &g->p.a : &g->p.b;
    s->is_a = is_a;
    s->width = is_a ? g->s->tile_m : g->s->tile_n;
    s->pieces = s->width / (16 * (is_a ? g->s->warps_m : g->s->warps_n));
    s->lines = s->matrix->k_lines ? s->width : g->s->tile_k;
    s->along = s->matrix->k_lines ? g->s->tile_k : s->width;
    s->lanes = lanes_of(call, index, s->matrix);
}

static void bind_all(gemm *g, const tk_library_call *call, int d_lanes) {
    const tk_library_tensor *t = call->tensors;
    tk_library_kernel *k = &g->k;
    g->a.pointer = tk_library_bind_rows(k, "a", 0, t, TK_KACCESS_READ, (int)g->a.lanes);
    g->c.pointer = tk_library_bind_rows(k, "b", 1, t, TK_KACCESS_READ, (int)g->c.lanes);
    g->d = tk_library_bind_rows(k, "d", 2, t, TK_KACCESS_WRITE, d_lanes);
    g->m = tk_library_bind_int(k, "m", TK_K_I32, g->p.m);
    g->n = tk_library_bind_int(k, "n", TK_K_I32, g->p.n);
    g->depth = tk_library_bind_int(k, "k", TK_K_I32, g->p.k);
    g->a.pitch = tk_library_bind_int(k, "a_pitch", TK_K_I64, g->p.a.pitch);
    g->c.pitch = tk_library_bind_int(k, "b_pitch", TK_K_I64, g->p.b.pitch);
    g->d_pitch = tk_library_bind_int(k, "d_pitch", TK_K_I64, g->p.d.pitch);
    g->a.extent = g->m, g->c.extent = g->n;
}

/* The block's tile: m fastest, then n, then the matrix of the batch. */
static void locate(gemm *g) {
    tk_b *b = g->b;
    tk_library_kernel *k = &g->k;
    int64_t high = (g->p.m + g->s->tile_m - 1) / g->s->tile_m,
            wide = (g->p.n + g->s->tile_n - 1) / g->s->tile_n;
    tk_val a_step = tk_library_bind_int(k, "a_step", TK_K_I64, g->p.a.step),
           b_step = tk_library_bind_int(k, "b_step", TK_K_I64, g->p.b.step),
           d_step = tk_library_bind_int(k, "d_step", TK_K_I64, g->p.d.step);
    tk_val tiles = tk_library_bind_int(k, "tiles", TK_K_I64, high * wide * g->p.batch);
    tk_val down = tk_library_bind_int(k, "tiles_down", TK_K_I32, high ? high : 1);
    tk_val across = tk_library_bind_int(k, "tiles_across", TK_K_I32, wide ? wide : 1);
    const tk_val counts[] = {g->m, g->n, g->depth};
    const int64_t whole[] = {g->s->tile_m, g->s->tile_n, g->s->tile_k};
    for (int i = 0; i < 3; i++) tk_k_require_from(b, counts[i], 0);
    for (int i = 0; i < 3 && g->full; i++) tk_k_require_whole(b, counts[i], whole[i]);
    tk_k_require_from(b, down, 1), tk_k_require_from(b, across, 1);
    tk_k_grid(b, tiles, 1);
    tk_kernel_block(b, g->threads, 1, 1);
    tk_kernel_min_blocks(b, 1); /* else ptxas may save registers for a third block, and load late */
    tk_val block = tk_k_block(b), column = tk_k_udiv(b, block, down),
           matrix = tk_k_udiv(b, column, across), number = tk_k_wide(b, matrix);
    g->first_m = tk_k_mul(b, tk_k_sub(b, block, tk_k_mul(b, column, down)), i32(g, g->s->tile_m));
    g->first_n =
        tk_k_mul(b, tk_k_sub(b, column, tk_k_mul(b, matrix, across)), i32(g, g->s->tile_n));
    g->a.pointer = tk_k_offset(b, g->a.pointer, tk_k_mul(b, number, a_step));
    g->c.pointer = tk_k_offset(b, g->c.pointer, tk_k_mul(b, number, b_step));
    g->d = tk_k_offset(b, g->d, tk_k_mul(b, number, d_step));
    g->a.first = g->first_m, g->c.first = g->first_n;
}

static void place_warp(gemm *g) {
    tk_b *b = g->b;
    g->thread = tk_k_thread(b);
    g->lane = tk_k_and(b, g->thread, i32(g, 31));
    tk_val warp = tk_k_ushr(b, g->thread, i32(g, 5));
    tk_val along_m = tk_k_and(b, warp, i32(g, g->s->warps_m - 1)),
           along_n = tk_k_ushr(b, warp, i32(g, __builtin_ctzll((uint64_t)g->s->warps_m)));
    g->a.warp_first = tk_k_mul(b, along_m, i32(g, 16 * g->a.pieces));
    g->c.warp_first = tk_k_mul(b, along_n, i32(g, 16 * g->c.pieces));
}

static void make_storage(gemm *g) {
    char layout[24];
    side *sides[] = {&g->a, &g->c};
    for (int i = 0; i < 2; i++) {
        snprintf(layout, sizeof layout, "%d:1",
                 (int)(g->s->stages * sides[i]->lines * sides[i]->along));
        sides[i]->shared = tk_k_shared(g->b, g->element, layout);
        sides[i]->registers = registers(g, g->element, 8 * sides[i]->pieces);
    }
    int64_t count = 8 * g->a.pieces * g->c.pieces;
    g->sums = registers(g, TK_K_F32, count);
    for (int64_t e = 0; e < count; e++) {
        tk_kattr attr = {.id = TK_KA_index, .value = e};
        tk_kernel_op(g->b, TK_KOP_set, 2, (tk_val[]){g->sums, tk_k_f32(g->b, 0)}, e != 0, &attr,
                     tk_no_type());
    }
}

tk_status tk_library_make_gemm(const tk_library_call *call, tk_library_plan *plan) {
    gemm g = {.s = call->schedule, .element = call->tensors[0].element};
    TK_TRY(tk_gemm_read(call, &g.p));
    TK_TRY(check_schedule(call, &g.p));
    const tk_library_tensor *d = &call->tensors[2];
    int64_t bytes = tk_kscalar_bytes(d->element);
    int64_t facts[] = {tk_library_align(d), bytes * g.p.d.pitch, bytes * g.p.d.step, bytes * g.p.n};
    bool pair = tk_library_divisor(2 * bytes, 4, facts) == 2 * bytes;
    g.threads = THREADS_OF_WARP * g.s->warps_m * g.s->warps_n;
    set_side(&g, call, 0, true);
    set_side(&g, call, 1, false);
    g.full = is_regular(&g, &g.a) && is_regular(&g, &g.c) && g.p.m % g.s->tile_m == 0 &&
             g.p.n % g.s->tile_n == 0 && g.p.k % g.s->tile_k == 0;
    TK_TRY(tk_library_open(plan, call->name, &g.k));
    g.b = g.k.b;
    bind_all(&g, call, pair ? 2 : 1);
    locate(&g);
    place_warp(&g);
    make_storage(&g);
    sum_up(&g);
    put_sums(&g, pair);
    return tk_library_close(&g.k);
}

/* The largest tile that the matrices fill; four warps. */
void tk_library_choose_gemm(const tk_library_tensor *tensors, tk_library_schedule *out) {
    const tk_library_tensor *d = &tensors[2];
    int64_t m = d->rank < 2 ? 1 : d->shape[d->rank - 2],
            n = d->rank < 1 ? 1 : d->shape[d->rank - 1];
    out->tile_m = m > 64 ? 128 : m > 32 ? 64 : 32;
    out->tile_n = n > 64 ? 128 : n > 32 ? 64 : 32;
    out->tile_k = 32;
    out->stages = 4;
    out->warps_m = 2, out->warps_n = 2;
    out->vector = 16;
}
