/* d = a b on Hopper: TMA, a ring of stages with mbarriers, one warpgroup that copies and two that
 * multiply by wgmma; bf16 or f16 with sums in f32.
 *
 * Tile: 128 x tile_n of d a block, 64 of the sums a stage. Warpgroup 0 gives registers back and one
 * of its threads keeps TMA busy; warpgroups 1 and 2 have 64 x tile_n sums each in registers, 64
 * rows below each other: thread t of a warpgroup has rows t / 32 * 16 + t % 32 / 4 and 8 further,
 * columns 2 (t % 4) and the next of every 8.
 *
 * Shared memory, each piece at a multiple of 1024 bytes, swizzled over 128 bytes by TMA:
 *
 *     a, stage 0 | a, stage 1 | ... | b, stage 0 | b, stage 1 | ... | full[stages] empty[stages]
 *
 * A tile whose lines run along k is one box: lines of 64 elements (128 bytes), eight of them 1024
 * bytes (the stride of the descriptor); 16 further along k is 32 bytes further. A tile whose lines
 * run across is boxes of 64 across x 64 of k: eight lines 1024 bytes (stride), the next 64 across
 * 8192 bytes further (lead); 16 further along k is 2048 bytes further. Either way the second
 * warpgroup's rows of a begin 8192 bytes behind the first's.
 *
 * full[s]: the bytes of stage s have come (1 arrival, and the bytes): orders TMA before wgmma.
 * empty[s]: all eight warps have retired the products of stage s (8 arrivals): orders their reads
 * before the next TMA. One group of products stays in flight: a step waits for the one before and
 * frees its stage. Everything in shared memory is written and read by the async proxy, so there are
 * no proxy fences; the registers are fenced at every step.
 *
 * Contract: pitches and steps of a and b are multiples of 16 bytes, their bases too; k is at
 * least 1. Sizes need not fill tiles: TMA reads zeros beyond the matrices, stores of d are guarded.
 *
 * Bytes: a n / tile_n times, b m / 128 times, d once. FLOPs: 2 m n k. Roofline: tensor cores; on an
 * H200 with random data 704 TFLOP/s at 4096^3 and 728 (mean 662) at 8192^3, 71 and 74 % of 989,
 * 0.89 and 0.92 of cuBLAS in the same minute. Rejected: one thread's arrival for a warpgroup (a
 * wait retires a warp's own products), a persistent grid and stores by TMA (later schedules). */
#include "library/gemm.h"

#include <stdio.h>

enum { ROWS = 64, GROUPS = 2, DEPTH = 64, BOX = 64, BOX_BYTES = 8192, THREADS = 384, WARPS = 8 };

/* An operand: how its tile lies in shared memory. */
typedef struct side {
    const tk_gemm_matrix *matrix;
    tk_val map, shared;
    int64_t width, bytes; /* of the tile across, of a stage */
} side;

typedef struct gemm {
    tk_library_kernel k;
    tk_b *b;
    tk_gemm_problem p;
    side a, c; /* c: operand b */
    tk_kscalar element;
    int64_t tile_n, stages;
    bool pair;
    tk_val m, n, depth, d, d_pitch, first_m, first_n, matrix, steps;
    tk_val full, empty;
    tk_val thread, sums;
} gemm;

static tk_val i32(const gemm *g, int64_t value) { return tk_k_i32(g->b, value); }

static void plain_op(const gemm *g, tk_kopcode code) {
    tk_kernel_op(g->b, code, 0, NULL, 0, NULL, tk_no_type());
}

/* ---- barriers ---- */

static tk_val barrier_at(const gemm *g, tk_val first, tk_val stage) {
    return tk_k_offset(g->b, first, stage);
}

static void init_barriers(const gemm *g) {
    tk_b *b = g->b;
    tk_kernel_if(b, tk_k_icmp(b, "eq", g->thread, i32(g, 0)));
    for (int64_t s = 0; s < g->stages; s++) {
        tk_op2(b, TK_KOP_mbarrier_init, barrier_at(g, g->full, i32(g, s)), i32(g, 1));
        tk_op2(b, TK_KOP_mbarrier_init, barrier_at(g, g->empty, i32(g, s)), i32(g, WARPS));
    }
    plain_op(g, TK_KOP_mbarrier_fence);
    tk_k_end(b);
    tk_k_barrier(b);
}

static void wait_for(const gemm *g, tk_val first, tk_val stage, tk_val parity) {
    tk_op2(g->b, TK_KOP_mbarrier_wait, barrier_at(g, first, stage), parity);
}

/* Stage and parity of the next step. */
static void advance(const gemm *g, const tk_val *now, tk_val *next) {
    tk_b *b = g->b;
    tk_val more = tk_k_add(b, now[0], i32(g, 1)),
           round = tk_k_icmp(b, "eq", more, i32(g, g->stages));
    next[0] = tk_k_select(b, round, i32(g, 0), more);
    next[1] = tk_k_select(b, round, tk_k_xor(b, now[1], i32(g, 1)), now[1]);
}

static tk_val stage_of(const gemm *g, const side *s, tk_val stage) {
    return tk_k_offset(g->b, s->shared, tk_k_mul(g->b, stage, i32(g, s->bytes / 2)));
}

/* ---- the warpgroup that copies ---- */

static void load_box(const gemm *g, const side *s, tk_val target, tk_val stage, tk_val x,
                     tk_val y) {
    tk_val matrix = s->matrix->step ? g->matrix : i32(g, 0);
    tk_val list[] = {target, s->map, barrier_at(g, g->full, stage), NULL, NULL, x, y, matrix};
    tk_kernel_op(g->b, TK_KOP_tma_load, 8, list, 0, NULL, tk_no_type());
}

static void load_side(const gemm *g, const side *s, tk_val stage, tk_val k0, tk_val first) {
    tk_b *b = g->b;
    tk_val target = stage_of(g, s, stage);
    if (s->matrix->k_lines) {
        load_box(g, s, target, stage, k0, first);
        return;
    }
    for (int64_t box = 0; box < s->width / BOX; box++) {
        tk_val x = tk_k_add(b, first, i32(g, box * BOX));
        load_box(g, s, tk_k_offset(b, target, i32(g, box * BOX_BYTES / 2)), stage, x, k0);
    }
}

static void set_registers(const gemm *g, tk_kopcode code, int64_t count) {
    tk_kattr attr = {.id = TK_KA_registers, .value = count};
    tk_kernel_op(g->b, code, 0, NULL, 1, &attr, tk_no_type());
}

static void produce(const gemm *g) {
    tk_b *b = g->b;
    tk_val start[] = {i32(g, 0), i32(g, 1)}, now[2], next[2];
    set_registers(g, TK_KOP_registers_shrink, 40);
    tk_kernel_if(b, tk_k_icmp(b, "eq", g->thread, i32(g, 0)));
    tk_val step = tk_kernel_for(b, i32(g, 0), g->steps, i32(g, 1), 1, 2, start, now);
    tk_val k0 = tk_k_mul(b, step, i32(g, DEPTH));
    wait_for(g, g->empty, now[0], now[1]);
    tk_kernel_op(b, TK_KOP_mbarrier_expect, 3,
                 (tk_val[]){barrier_at(g, g->full, now[0]), i32(g, g->a.bytes + g->c.bytes), NULL},
                 0, NULL, tk_no_type());
    load_side(g, &g->a, now[0], k0, g->first_m);
    load_side(g, &g->c, now[0], k0, g->first_n);
    advance(g, now, next);
    tk_kernel_end(b, 2, next, NULL);
    tk_k_end(b);
}

/* ---- the warpgroups that multiply ---- */

static tk_val describe(const gemm *g, const side *s, tk_val place) {
    int64_t lead = s->matrix->k_lines ? 16 : BOX_BYTES;
    tk_kattr attrs[] = {{.id = TK_KA_swizzle, .word = "swizzle_128"},
                        {.id = TK_KA_lead, .value = lead},
                        {.id = TK_KA_stride, .value = 1024}};
    return tk_kernel_op(g->b, TK_KOP_matrix_descriptor, 1, &place, 3, attrs, tk_no_type());
}

/* A descriptor counts in 16 bytes. */
static tk_val further(const gemm *g, const side *s, tk_val descriptor, int64_t k) {
    int64_t bytes = s->matrix->k_lines ? 2 * k : 128 * k;
    return tk_k_add(g->b, descriptor, tk_k_i64(g->b, bytes / 16));
}

static void multiply(const gemm *g, tk_val a, tk_val b, tk_val accumulate) {
    bool half = g->element == TK_K_F16;
    tk_kattr attrs[] = {{.id = TK_KA_m, .value = ROWS},
                        {.id = TK_KA_n, .value = g->tile_n},
                        {.id = TK_KA_k, .value = 16},
                        {.id = TK_KA_a_type, .word = half ? "a_f16" : "a_bf16"},
                        {.id = TK_KA_b_type, .word = half ? "b_f16" : "b_bf16"},
                        {.id = TK_KA_a_mn, .value = !g->p.a.k_lines},
                        {.id = TK_KA_b_mn, .value = !g->p.b.k_lines}};
    tk_val list[] = {g->sums, a, b, accumulate};
    tk_kernel_op(g->b, TK_KOP_wgmma, 4, list, 7, attrs, tk_no_type());
}

static void multiply_stage(const gemm *g, tk_val stage, tk_val group, tk_val step) {
    tk_b *b = g->b;
    tk_val more = tk_k_icmp(b, "sgt", step, i32(g, 0)), yes = tk_kernel_int(b, TK_K_I1, 1);
    tk_val of_group = tk_k_mul(b, group, i32(g, BOX_BYTES / 2));
    tk_val place = tk_k_offset(b, stage_of(g, &g->a, stage), of_group);
    tk_val a = describe(g, &g->a, place), c = describe(g, &g->c, stage_of(g, &g->c, stage));
    plain_op(g, TK_KOP_wgmma_fence);
    for (int64_t k = 0; k < DEPTH; k += 16) {
        tk_val right = further(g, &g->c, c, k);
        multiply(g, further(g, &g->a, a, k), right, k ? yes : more);
    }
    plain_op(g, TK_KOP_wgmma_commit);
}

static void wait_products(const gemm *g, int64_t left) {
    tk_kattr attr = {.id = TK_KA_groups, .value = left};
    tk_kernel_op(g->b, TK_KOP_wgmma_wait, 0, NULL, left != 0, &attr, tk_no_type());
}

/* A lane of each warp says that the stage before may be filled again, when all its lanes have come
 * past their wait for that stage. */
static void release(const gemm *g, tk_val stage, tk_val step) {
    tk_b *b = g->b;
    tk_kernel_op(b, TK_KOP_warp_barrier, 1, (tk_val[]){NULL}, 0, NULL, tk_no_type());
    tk_val first = tk_k_icmp(b, "eq", tk_k_and(b, g->thread, i32(g, 31)), i32(g, 0)),
           after = tk_k_icmp(b, "sgt", step, i32(g, 0));
    tk_val barrier = barrier_at(g, g->empty, stage);
    tk_val list[] = {barrier, NULL, tk_k_and(b, first, after)};
    tk_kernel_op(b, TK_KOP_mbarrier_arrive, 3, list, 0, NULL, tk_no_type());
}

static void consume(gemm *g) {
    tk_b *b = g->b;
    tk_val start[] = {i32(g, 0), i32(g, 0), i32(g, 0)}, now[3], next[3];
    tk_val group = tk_k_sub(b, tk_k_ushr(b, g->thread, i32(g, 7)), i32(g, 1));
    set_registers(g, TK_KOP_registers_grow, 232);
    tk_val step = tk_kernel_for(b, i32(g, 0), g->steps, i32(g, 1), 1, 3, start, now);
    wait_for(g, g->full, now[0], now[1]);
    multiply_stage(g, now[0], group, step);
    wait_products(g, 1);
    release(g, now[2], step);
    advance(g, now, next);
    next[2] = now[0];
    tk_kernel_end(b, 3, next, NULL);
    wait_products(g, 0);
}

/* ---- d ---- */

static tk_val sum_at(const gemm *g, int64_t index) {
    tk_kattr attr = {.id = TK_KA_index, .value = index};
    return tk_kernel_op(g->b, TK_KOP_get, 1, &g->sums, index != 0, &attr,
                        tk_ktype_scalar(TK_K_F32));
}

/* Two rows of the thread. */
static void put_row(const gemm *g, tk_val line, tk_val column, int64_t half) {
    tk_b *b = g->b;
    tk_val inside = tk_k_icmp(b, "slt", line, g->m);
    tk_val row = tk_k_offset(b, g->d, tk_k_mul(b, tk_k_wide(b, line), g->d_pitch));
    tk_val place = tk_k_offset(b, row, column);
    for (int64_t j = 0; j < g->tile_n / 8; j++) {
        tk_val here = tk_k_add(b, column, i32(g, 8 * j)),
               low = tk_k_and(b, inside, tk_k_icmp(b, "slt", here, g->n)),
               high = tk_k_icmp(b, "slt", tk_k_add(b, here, i32(g, 1)), g->n);
        tk_val if_high = tk_k_and(b, inside, high);
        tk_val right = sum_at(g, 4 * j + 2 * half + 1), left = sum_at(g, 4 * j + 2 * half);
        tk_gemm_store(b, tk_k_offset(b, place, i32(g, 8 * j)), left, right, g->pair, low, if_high);
    }
}

static void put_sums(const gemm *g) {
    tk_b *b = g->b;
    tk_val of_consumer = tk_k_sub(b, g->thread, i32(g, 128)),
           warp = tk_k_ushr(b, of_consumer, i32(g, 5)), lane = tk_k_and(b, g->thread, i32(g, 31));
    tk_val of_lane = tk_k_ushr(b, lane, i32(g, 2));
    tk_val row = tk_k_add(b, tk_k_mul(b, warp, i32(g, 16)), of_lane);
    tk_val line = tk_k_add(b, g->first_m, row);
    tk_val column = tk_k_add(b, g->first_n, tk_k_mul(b, tk_k_and(b, lane, i32(g, 3)), i32(g, 2)));
    put_row(g, line, column, 0);
    put_row(g, tk_k_add(b, line, i32(g, 8)), column, 1);
}

/* ---- the call ---- */

static tk_status need_sixteen(const tk_library_call *call, size_t index,
                              const tk_gemm_matrix *matrix) {
    int64_t align = tk_library_align(&call->tensors[index]);
    if (align % 16)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "%s is aligned to %lld bytes, expected a multiple of 16",
                               matrix->name, (long long)align);
    if (2 * matrix->pitch % 16 || matrix->pitch < 0)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "the pitch of %s is %lld bytes, expected a multiple of 16",
                               matrix->name, (long long)(2 * matrix->pitch));
    if (2 * matrix->step % 16 || matrix->step < 0)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "the matrices of %s are %lld bytes apart, expected a multiple of 16",
                               matrix->name, (long long)(2 * matrix->step));
    return TK_OK;
}

static tk_status check(const tk_library_call *call, const gemm *g) {
    int64_t bytes = g->stages * (g->a.bytes + g->c.bytes + 16);
    TK_TRY(need_sixteen(call, 0, &g->p.a));
    TK_TRY(need_sixteen(call, 1, &g->p.b));
    if (g->p.k < 1) return tk_library_fail(call, TK_SHAPE_ERROR, "k is 0, expected 1 or more");
    if (g->tile_n < BOX)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "schedule: tile_n is %lld, expected 64, 128 or 256",
                               (long long)g->tile_n);
    if (g->stages < 2)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "schedule: 1 stage, expected 2 or more: a stage is given back one "
                               "step later");
    if (bytes <= 226 * 1024) return TK_OK;
    return tk_library_fail(call, TK_INVALID_ARGUMENT,
                           "schedule: %lld bytes of shared memory, at most 231424",
                           (long long)bytes);
}

/* Elements along a line, lines, matrices. A box is 64 elements of a line; k lines by the width of
 * the tile, or 64 of k. */
static void bind_map(gemm *g, side *s, const char *name, tk_val base, tk_val across, tk_val pitch,
                     tk_val step, tk_val batch) {
    tk_b *b = g->b;
    int32_t along = tk_kexpr_param(b, s->matrix->k_lines ? g->depth : across),
            lines = tk_kexpr_param(b, s->matrix->k_lines ? across : g->depth),
            two = tk_kexpr_const(b, 2);
    tk_kmap map = {.name = name,
                   .base = base,
                   .element = g->element,
                   .rank = 3,
                   .extent = {along, lines, tk_kexpr_param(b, batch)},
                   .stride = {tk_kexpr_binary(b, TK_KX_MUL, tk_kexpr_param(b, pitch), two),
                              tk_kexpr_binary(b, TK_KX_MUL, tk_kexpr_param(b, step), two)},
                   .box = {BOX, s->matrix->k_lines ? (int32_t)s->width : DEPTH, 1},
                   .element_stride = {1, 1, 1},
                   .swizzle = 128};
    s->map = tk_library_bind_map(&g->k, &map);
}

/* One matrix for all, or a single one, is a batch of one to TMA. */
static int64_t step_of(const gemm *g, const tk_gemm_matrix *matrix) {
    int64_t lines = matrix->k_lines == (matrix == &g->p.a) ? g->p.m : g->p.k;
    return matrix->step ? matrix->step : matrix->pitch * (lines ? lines : 1);
}

static void bind_all(gemm *g, const tk_library_call *call) {
    tk_library_kernel *k = &g->k;
    tk_b *b = g->b;
    const tk_library_tensor *t = call->tensors;
    int64_t high = (g->p.m + GROUPS * ROWS - 1) / (GROUPS * ROWS),
            wide = (g->p.n + g->tile_n - 1) / g->tile_n;
    tk_val a = tk_library_bind_rows(k, "a", 0, t, TK_KACCESS_READ, 8),
           c = tk_library_bind_rows(k, "b", 1, t, TK_KACCESS_READ, 8);
    g->d = tk_library_bind_rows(k, "d", 2, t, TK_KACCESS_WRITE, g->pair ? 2 : 1);
    g->m = tk_library_bind_int(k, "m", TK_K_I32, g->p.m);
    g->n = tk_library_bind_int(k, "n", TK_K_I32, g->p.n);
    g->depth = tk_library_bind_int(k, "k", TK_K_I32, g->p.k);
    g->d_pitch = tk_library_bind_int(k, "d_pitch", TK_K_I64, g->p.d.pitch);
    tk_val a_pitch = tk_library_bind_int(k, "a_pitch", TK_K_I64, g->p.a.pitch),
           b_pitch = tk_library_bind_int(k, "b_pitch", TK_K_I64, g->p.b.pitch),
           a_step = tk_library_bind_int(k, "a_step", TK_K_I64, step_of(g, &g->p.a)),
           b_step = tk_library_bind_int(k, "b_step", TK_K_I64, step_of(g, &g->p.b)),
           d_step = tk_library_bind_int(k, "d_step", TK_K_I64, g->p.d.step),
           a_batch = tk_library_bind_int(k, "a_batch", TK_K_I32, g->p.a.step ? g->p.batch : 1),
           b_batch = tk_library_bind_int(k, "b_batch", TK_K_I32, g->p.b.step ? g->p.batch : 1),
           tiles = tk_library_bind_int(k, "tiles", TK_K_I64, high * wide * g->p.batch),
           down = tk_library_bind_int(k, "tiles_down", TK_K_I32, high ? high : 1),
           across = tk_library_bind_int(k, "tiles_across", TK_K_I32, wide ? wide : 1);
    bind_map(g, &g->a, "a_map", a, g->m, a_pitch, a_step, a_batch);
    bind_map(g, &g->c, "b_map", c, g->n, b_pitch, b_step, b_batch);
    const tk_val counts[] = {g->m, g->n, g->depth, a_batch, b_batch, down, across};
    for (int i = 0; i < 7; i++) tk_k_require_from(b, counts[i], i > 1);
    tk_k_grid(b, tiles, 1);
    tk_kernel_block(b, THREADS, 1, 1);
    tk_kernel_min_blocks(b,
                         1); /* fixes the registers at the entry, which warpgroups then exchange */
    tk_val block = tk_k_block(b), column = tk_k_udiv(b, block, down);
    g->matrix = tk_k_udiv(b, column, across);
    g->first_m = tk_k_mul(b, tk_k_sub(b, block, tk_k_mul(b, column, down)), i32(g, GROUPS * ROWS));
    g->first_n =
        tk_k_mul(b, tk_k_sub(b, column, tk_k_mul(b, g->matrix, across)), i32(g, g->tile_n));
    g->d = tk_k_offset(b, g->d, tk_k_mul(b, tk_k_wide(b, g->matrix), d_step));
}

static tk_val shared(const gemm *g, tk_kscalar element, int64_t count, int64_t align) {
    char layout[24];
    tk_kattr attr = {.id = TK_KA_align, .value = align};
    snprintf(layout, sizeof layout, "%d:1", (int)count);
    tk_val buffer = tk_kernel_op(g->b, TK_KOP_shared, 0, NULL, 1, &attr,
                                 tk_ktype_of_shared(g->b, element, layout));
    return tk_kernel_op(g->b, TK_KOP_address, 1, &buffer, 0, NULL,
                        tk_ktype_pointer(element, TK_KS_SHARED));
}

static void make_storage(gemm *g) {
    char layout[24];
    g->a.shared = shared(g, g->element, g->stages * g->a.bytes / 2, 1024);
    g->c.shared = shared(g, g->element, g->stages * g->c.bytes / 2, 1024);
    g->full = shared(g, TK_K_MBAR, g->stages, 8);
    g->empty = shared(g, TK_K_MBAR, g->stages, 8);
    snprintf(layout, sizeof layout, "%d:1", (int)(g->tile_n / 2));
    g->sums = tk_kernel_op(g->b, TK_KOP_registers, 0, NULL, 0, NULL,
                           tk_ktype_of_registers(g->b, TK_K_F32, layout, NULL));
}

static bool takes_pairs(const tk_library_call *call, const tk_gemm_problem *p) {
    const tk_library_tensor *d = &call->tensors[2];
    int64_t bytes = tk_kscalar_bytes(d->element);
    int64_t facts[] = {tk_library_align(d), bytes * p->d.pitch, bytes * p->d.step, bytes * p->n};
    return tk_library_divisor(2 * bytes, 4, facts) == 2 * bytes;
}

tk_status tk_library_make_hopper_gemm(const tk_library_call *call, tk_library_plan *plan) {
    gemm g = {.element = call->tensors[0].element,
              .tile_n = call->schedule->tile_n,
              .stages = call->schedule->stages};
    TK_TRY(tk_gemm_read(call, &g.p));
    g.a = (side){.matrix = &g.p.a, .width = GROUPS * ROWS, .bytes = 2 * GROUPS * ROWS * DEPTH};
    g.c = (side){.matrix = &g.p.b, .width = g.tile_n, .bytes = 2 * g.tile_n * DEPTH};
    g.pair = takes_pairs(call, &g.p);
    TK_TRY(check(call, &g));
    if (g.p.m * g.p.n == 0 || g.p.batch == 0) return TK_OK;
    TK_TRY(tk_library_open(plan, call->name, &g.k));
    g.b = g.k.b;
    bind_all(&g, call);
    g.thread = tk_k_thread(g.b);
    g.steps = tk_k_ushr(g.b, tk_k_add(g.b, g.depth, i32(&g, DEPTH - 1)), i32(&g, 6));
    make_storage(&g);
    init_barriers(&g);
    tk_kernel_if(g.b, tk_k_icmp(g.b, "slt", g.thread, i32(&g, 128)));
    produce(&g);
    tk_k_else(g.b);
    consume(&g);
    put_sums(&g);
    tk_k_end(g.b);
    return tk_library_close(&g.k);
}

void tk_library_choose_hopper_gemm(const tk_library_tensor *tensors, tk_library_schedule *out) {
    const tk_library_tensor *d = &tensors[2];
    int64_t n = d->rank < 1 ? 1 : d->shape[d->rank - 1];
    out->tile_n = n > 128 ? 256 : n > 64 ? 128 : 64;
    out->stages = 4;
}
