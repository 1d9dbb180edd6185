/* Gradients of RMS norm: with g = dy weight and rstd as in the forward pass,
 *
 *     dx = rstd (g - x rstd^2 mean(g x))          dweight = sum over rows of dy x rstd
 *
 * Over rows as rows.h says: one reading gives sum(x^2) and sum(g x) together, so rstd is not an
 * operand.
 *
 * Held, one launch does both: `chunks` blocks loop over rows, x and dy stay in registers between
 * the sums and dx, and so does the thread's part of dweight, from row to row. What each row of
 * threads has then goes to scratch memory, and further launches add these rows in their order. Not
 * held, the first launch reads a row again for dx and writes rstd to scratch memory; then come the
 * sums of column_sum.c over terms dy x rstd.
 *
 *     block 0:  rows 0, chunks, 2 chunks, ...  ->  partial[0, columns]   \
 *     block 1:  rows 1, chunks + 1, ...        ->  partial[1, columns]    > dweight[columns]
 *
 * Shared memory: two floats for each warp when a row has more than one; the barriers order both
 * reductions, and the words of one row before those of the next. Bytes: x, dy and dx once (held),
 * 4 columns * chunks * rows_per_block written and read. FLOPs: about 10 an element. Roofline:
 * bandwidth: 0.93 of the copy (H200, f16, 32768 x 4096, all launches). */
#include "library/norm.h"
#include "library/sums.h"

#include <string.h>

enum { X, WEIGHT, DY, DX, DWEIGHT };

typedef struct grad {
    tk_rows r;
    tk_val x, dy, dx, weight; /* rows, and a vector or NULL */
    tk_val rstd, slope;       /* slope: rstd^2 mean(g x) */
    tk_val held[2][TK_ROWS_MOST_HELD][TK_LIBRARY_MOST_LANES];
    /* What the loop over rows carries: the thread's part of dweight, and, read ahead, its vectors
     * of x and dy of the next row. */
    tk_val carried[TK_ROWS_MOST_HELD * (TK_LIBRARY_MOST_LANES + 2)];
    tk_val weights[TK_ROWS_MOST_HELD], vectors[2 * TK_ROWS_MOST_HELD]; /* of x, then dy */
    size_t n_sums, n_carried;
    tk_val x_base, dy_base, x_pitch, dy_pitch, partial;
    bool ahead;
} grad;

/* x and g. */
static void load_pair(const grad *n, const tk_rows *r, tk_val at, tk_val condition, tk_val *x,
                      tk_val *g) {
    tk_val weight[TK_LIBRARY_MOST_LANES];
    tk_rows_load(r, n->x, at, condition, x);
    tk_rows_load(r, n->dy, at, condition, g);
    if (!n->weight) return;
    tk_rows_load(r, n->weight, at, condition, weight);
    for (int i = 0; i < r->lanes; i++) g[i] = tk_k_mul(r->b, g[i], weight[i]);
}

static void add_sums(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                     tk_val *sums) {
    grad *n = arg;
    tk_val loose[2][TK_LIBRARY_MOST_LANES], part[2][TK_LIBRARY_MOST_LANES];
    tk_val *x = number < 0 ? loose[0] : n->held[0][number],
           *g = number < 0 ? loose[1] : n->held[1][number];
    load_pair(n, r, at, condition, x, g);
    for (int i = 0; i < r->lanes; i++) {
        part[0][i] = tk_k_mul(r->b, x[i], x[i]);
        part[1][i] = tk_k_mul(r->b, g[i], x[i]);
    }
    for (int i = 0; i < 2; i++) sums[i] = tk_k_add(r->b, sums[i], tk_rows_tree(r, part[i]));
}

static void write(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                  tk_val *carried) {
    grad *n = arg;
    tk_val loose[2][TK_LIBRARY_MOST_LANES], dx[TK_LIBRARY_MOST_LANES];
    tk_val *x = number < 0 ? loose[0] : n->held[0][number],
           *g = number < 0 ? loose[1] : n->held[1][number];
    (void)carried;
    if (number < 0) load_pair(n, r, at, condition, x, g);
    for (int i = 0; i < r->lanes; i++) {
        tk_val centred = tk_k_sub(r->b, g[i], tk_k_mul(r->b, x[i], n->slope));
        dx[i] = tk_k_mul(r->b, n->rstd, centred);
    }
    tk_rows_store(r, n->dx, at, condition, dx);
}

static void put_body(grad *n, tk_val eps, tk_val rstd_out) {
    tk_b *b = n->r.b;
    tk_val sums[] = {tk_k_f32(b, 0), tk_k_f32(b, 0)};
    tk_rows_each(&n->r, 2, sums, add_sums, n);
    tk_rows_reduce(&n->r, TK_KOP_add, 2, sums);
    n->rstd = tk_norm_rstd(&n->r, sums[0], eps);
    tk_val mean = tk_k_div(b, sums[1], tk_k_float_of(b, n->r.columns));
    n->slope = tk_k_mul(b, tk_k_mul(b, n->rstd, n->rstd), mean);
    if (rstd_out) {
        tk_kernel_if(b, tk_rows_leads(&n->r));
        tk_k_store(b, tk_k_offset(b, rstd_out, n->r.row), n->rstd);
        tk_k_end(b);
    }
    if (n->dx) tk_rows_each(&n->r, 0, NULL, write, n);
}

/* ---- the first launch ---- */

typedef struct shapes {
    tk_row_shape x, dy, dx;
    bool weighted, has_dx, has_dweight;
    size_t rstd; /* scratch */
} shapes;

static int lanes_of(const tk_library_call *call, const shapes *s) {
    tk_row_operand operands[4] = {{X, s->x.pitch}, {DY, s->dy.pitch}};
    size_t count = 2;
    if (s->weighted) operands[count++] = (tk_row_operand){WEIGHT, 0};
    if (s->has_dx) operands[count++] = (tk_row_operand){DX, s->dx.pitch};
    return tk_rows_lanes(call, s->x.columns, count, operands);
}

static tk_val rows_of(grad *n, tk_val tensor, tk_val pitch) {
    return tensor ? tk_rows_pointer(&n->r, tensor, pitch) : NULL;
}

static tk_status add_rows(const tk_library_call *call, tk_library_plan *plan, const shapes *s) {
    const tk_library_tensor *t = call->tensors;
    int lanes = lanes_of(call, s);
    tk_library_kernel k;
    grad n = {0};
    tk_val dx = NULL, rstd = NULL, dx_pitch = NULL;
    TK_TRY(tk_rows_check(call, s->x.rows, s->x.columns, lanes));
    TK_TRY(tk_library_open(plan, call->name, &k));
    tk_val x = tk_library_bind_rows(&k, "x", X, t, TK_KACCESS_READ, lanes);
    tk_val dy = tk_library_bind_rows(&k, "dy", DY, t, TK_KACCESS_READ, lanes);
    if (s->weighted)
        n.weight = tk_library_bind_rows(&k, "weight", WEIGHT, t, TK_KACCESS_READ, lanes);
    if (s->has_dx) dx = tk_library_bind_rows(&k, "dx", DX, t, TK_KACCESS_WRITE, lanes);
    if (s->has_dweight)
        rstd = tk_library_bind_scratch(&k, "rstd", s->rstd, TK_K_F32, TK_KACCESS_WRITE);
    tk_val eps = tk_library_bind_f32(&k, "eps", call->numbers[0]);
    tk_val x_pitch = tk_library_bind_int(&k, "x_pitch", TK_K_I64, s->x.pitch);
    tk_val dy_pitch = tk_library_bind_int(&k, "dy_pitch", TK_K_I64, s->dy.pitch);
    if (dx) dx_pitch = tk_library_bind_int(&k, "dx_pitch", TK_K_I64, s->dx.pitch);
    tk_rows_start(&n.r, &k, call, s->x.rows, s->x.columns, lanes);
    n.x = rows_of(&n, x, x_pitch);
    n.dy = rows_of(&n, dy, dy_pitch);
    n.dx = rows_of(&n, dx, dx_pitch);
    tk_rows_wait(&n.r, 2, (tk_rows_stream[]){{x, x_pitch}, {dy, dy_pitch}});
    put_body(&n, eps, rstd);
    return tk_library_close(&k);
}

/* ---- both in one launch ---- */

static void load_weight(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                        tk_val *carried) {
    grad *n = arg;
    (void)condition, (void)carried;
    tk_val inside = tk_k_icmp(r->b, "slt", at, r->columns);
    n->weights[number] = tk_rows_load_raw(r, n->weight, at, inside, NULL);
}

/* The row's vectors of x, then those of dy. */
static void load_row(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                     tk_val *vectors) {
    grad *n = arg;
    vectors[number] = tk_rows_load_raw(r, n->x, at, condition, NULL);
    vectors[n->r.held + number] = tk_rows_load_raw(r, n->dy, at, condition, NULL);
}

/* At the row that the thread stands at. */
static void load_rows(grad *n, tk_val *vectors) {
    n->x = tk_rows_pointer(&n->r, n->x_base, n->x_pitch);
    n->dy = tk_rows_pointer(&n->r, n->dy_base, n->dy_pitch);
    tk_rows_each(&n->r, 0, vectors, load_row, n);
}

/* x, dy and g = dy weight of a vector that was read; widened at each use, for the registers. */
typedef void (*widening)(const tk_rows *r, tk_val vector, tk_val *out);

static void widen_row(const grad *n, widening widen, int number, tk_val *x, tk_val *dy, tk_val *g) {
    const tk_rows *r = &n->r;
    tk_val weight[TK_LIBRARY_MOST_LANES];
    widen(r, n->vectors[number], x);
    widen(r, n->vectors[r->held + number], dy);
    if (n->weight) widen(r, n->weights[number], weight);
    for (int i = 0; i < r->lanes; i++) g[i] = n->weight ? tk_k_mul(r->b, dy[i], weight[i]) : dy[i];
}

static void add_sums_kept(const grad *n, tk_val *sums) {
    const tk_rows *r = &n->r;
    tk_val x[TK_LIBRARY_MOST_LANES], dy[TK_LIBRARY_MOST_LANES], g[TK_LIBRARY_MOST_LANES],
        part[2][TK_LIBRARY_MOST_LANES];
    for (int k = 0; k < r->held; k++) {
        widen_row(n, tk_rows_widen, k, x, dy, g);
        for (int i = 0; i < r->lanes; i++) {
            part[0][i] = tk_k_mul(r->b, x[i], x[i]);
            part[1][i] = tk_k_mul(r->b, g[i], x[i]);
        }
        for (int i = 0; i < 2; i++) sums[i] = tk_k_add(r->b, sums[i], tk_rows_tree(r, part[i]));
    }
}

/* dx, and the row's part of dweight. Threads without a row have zeros in x and dy, but their rstd
 * may be infinite: they add 0. */
static void use_row(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                    tk_val *carried) {
    grad *n = arg;
    tk_b *b = r->b;
    tk_val x[TK_LIBRARY_MOST_LANES], dy[TK_LIBRARY_MOST_LANES], g[TK_LIBRARY_MOST_LANES],
        dx[TK_LIBRARY_MOST_LANES];
    widen_row(n, tk_rows_widen_again, number, x, dy, g);
    for (int i = 0; i < r->lanes; i++) {
        tk_val centred = tk_k_sub(b, g[i], tk_k_mul(b, x[i], n->slope));
        tk_val *sum = &carried[number * r->lanes + i];
        dx[i] = tk_k_mul(b, n->rstd, centred);
        tk_val term = tk_k_mul(b, dy[i], tk_k_mul(b, x[i], n->rstd));
        *sum = tk_k_add(b, *sum, tk_k_select(b, r->active, term, tk_k_f32(b, 0)));
    }
    if (n->dx) tk_rows_store(r, n->dx, at, condition, dx);
}

static void write_partial(grad *n) {
    tk_b *b = n->r.b;
    tk_val line = tk_k_add(b, tk_k_block_times(b, n->r.of_block), n->r.group);
    tk_val row = tk_k_offset(b, n->partial, tk_k_mul(b, line, tk_k_wide(b, n->r.columns)));
    for (int k = 0; k < n->r.held; k++) {
        tk_val vector = tk_k_add(b, n->r.lane, tk_k_i32(b, k * n->r.threads));
        tk_val at = tk_k_mul(b, vector, tk_k_i32(b, n->r.lanes));
        tk_val inside = tk_k_icmp(b, "slt", vector, n->r.all_vectors);
        for (int i = 0; i < n->r.lanes; i += 4) {
            tk_val piece = tk_k_offset(b, row, tk_k_add(b, at, tk_k_i32(b, i)));
            tk_k_store_f32_if(b, piece, n->r.lanes < 4 ? n->r.lanes : 4,
                              n->carried + k * n->r.lanes + i, inside);
        }
    }
}

/* The vectors of the row; with `ahead` those of the next one are on their way afterwards. */
static void take_row(grad *n, tk_val next) {
    tk_val row = n->r.row, active = n->r.active, inside = n->r.vectors,
           *waiting = n->carried + n->n_sums;
    if (!n->ahead) {
        load_rows(n, n->vectors);
        return;
    }
    memcpy(n->vectors, waiting, (n->n_carried - n->n_sums) * sizeof *waiting);
    tk_rows_go_to(&n->r, next);
    load_rows(n, waiting);
    n->r.row = row, n->r.active = active, n->r.vectors = inside;
}

/* The body of the loop over rows, and its end. */
static void put_row(grad *n, tk_val next, tk_val eps, tk_val dx, tk_val dx_pitch) {
    tk_b *b = n->r.b;
    tk_val sums[] = {tk_k_f32(b, 0), tk_k_f32(b, 0)};
    take_row(n, next);
    add_sums_kept(n, sums);
    tk_rows_reduce(&n->r, TK_KOP_add, 2, sums);
    n->rstd = tk_norm_rstd(&n->r, sums[0], eps);
    tk_val mean = tk_k_div(b, sums[1], tk_k_float_of(b, n->r.columns));
    n->slope = tk_k_mul(b, tk_k_mul(b, n->rstd, n->rstd), mean);
    n->dx = rows_of(n, dx, dx_pitch);
    tk_rows_each(&n->r, 0, n->carried, use_row, n);
    tk_kernel_end(b, n->n_carried, n->carried, n->carried);
}

/* From the first row to the partial sums. */
static void put_rows(grad *n, tk_val eps, tk_val dx, tk_val dx_pitch) {
    for (size_t i = 0; i < n->n_sums; i++) n->carried[i] = tk_k_f32(n->r.b, 0);
    if (n->weight) tk_rows_each(&n->r, 0, NULL, load_weight, n);
    if (n->ahead) load_rows(n, n->carried + n->n_sums);
    tk_val next = tk_rows_loop(&n->r, n->n_carried, n->carried);
    put_row(n, next, eps, dx, dx_pitch);
    write_partial(n);
}

static tk_status add_fused(const tk_library_call *call, tk_library_plan *plan, const shapes *s) {
    const tk_library_tensor *t = call->tensors;
    const tk_library_schedule *sched = call->schedule;
    int lanes = lanes_of(call, s);
    size_t vectors = (size_t)(2 * sched->held), n_sums = (size_t)(sched->held * lanes), scratch;
    int64_t blocks = (s->x.rows + sched->rows_per_block - 1) / sched->rows_per_block;
    if (blocks > sched->chunks) blocks = sched->chunks;
    int64_t lines = blocks * sched->rows_per_block;
    tk_library_kernel k;
    grad n = {.ahead = sched->ahead != 0,
              .n_sums = n_sums,
              .n_carried = sched->ahead ? n_sums + vectors : n_sums};
    tk_val dx = NULL, dx_pitch = NULL;
    TK_TRY(tk_rows_check(call, s->x.rows, s->x.columns, lanes));
    TK_TRY(tk_library_add_scratch(plan, lines * s->x.columns * 4, &scratch));
    TK_TRY(tk_library_open(plan, call->name, &k));
    n.x_base = tk_library_bind_rows(&k, "x", X, t, TK_KACCESS_READ, lanes);
    n.dy_base = tk_library_bind_rows(&k, "dy", DY, t, TK_KACCESS_READ, lanes);
    if (s->weighted)
        n.weight = tk_library_bind_rows(&k, "weight", WEIGHT, t, TK_KACCESS_READ, lanes);
    if (s->has_dx) dx = tk_library_bind_rows(&k, "dx", DX, t, TK_KACCESS_WRITE, lanes);
    n.partial = tk_library_bind_scratch(&k, "partial", scratch, TK_K_F32, TK_KACCESS_WRITE);
    tk_val eps = tk_library_bind_f32(&k, "eps", call->numbers[0]);
    n.x_pitch = tk_library_bind_int(&k, "x_pitch", TK_K_I64, s->x.pitch);
    n.dy_pitch = tk_library_bind_int(&k, "dy_pitch", TK_K_I64, s->dy.pitch);
    if (dx) dx_pitch = tk_library_bind_int(&k, "dx_pitch", TK_K_I64, s->dx.pitch);
    tk_rows_start_loop(&n.r, &k, call, s->x.rows, s->x.columns, lanes, sched->chunks, 2);
    tk_rows_wait(&n.r, 0, NULL);
    put_rows(&n, eps, dx, dx_pitch);
    TK_TRY(tk_library_close(&k));
    return tk_sums_add_lines(call, plan, scratch, lines, s->x.columns, DWEIGHT);
}

/* ---- dweight ---- */

typedef struct terms {
    const tk_library_call *call;
    const shapes *s;
    tk_val x, dy, rstd, x_pitch, dy_pitch;
} terms;

static void bind_terms(void *arg, tk_library_kernel *k, int lanes) {
    terms *t = arg;
    const tk_library_tensor *tensors = t->call->tensors;
    t->x = tk_library_bind_rows(k, "x", X, tensors, TK_KACCESS_READ, lanes);
    t->dy = tk_library_bind_rows(k, "dy", DY, tensors, TK_KACCESS_READ, lanes);
    t->rstd = tk_library_bind_scratch(k, "rstd", t->s->rstd, TK_K_F32, TK_KACCESS_READ);
    t->x_pitch = tk_library_bind_int(k, "x_pitch", TK_K_I64, t->s->x.pitch);
    t->dy_pitch = tk_library_bind_int(k, "dy_pitch", TK_K_I64, t->s->dy.pitch);
}

static void put_term(void *arg, tk_b *b, tk_val row, tk_val column, tk_val *out, int lanes) {
    terms *t = arg;
    tk_val dy[TK_LIBRARY_MOST_LANES], wide = tk_k_wide(b, column);
    tk_val at_x = tk_k_add(b, tk_k_mul(b, row, t->x_pitch), wide);
    tk_val at_dy = tk_k_add(b, tk_k_mul(b, row, t->dy_pitch), wide);
    tk_k_load_f32(b, tk_k_offset(b, t->x, at_x), lanes, out);
    tk_k_load_f32(b, tk_k_offset(b, t->dy, at_dy), lanes, dy);
    tk_val rstd = tk_k_load(b, tk_k_offset(b, t->rstd, row), 1);
    for (int i = 0; i < lanes; i++) out[i] = tk_k_mul(b, dy[i], tk_k_mul(b, out[i], rstd));
}

static tk_status add_dweight(const tk_library_call *call, tk_library_plan *plan, shapes *s) {
    tk_row_operand operands[] = {{X, s->x.pitch}, {DY, s->dy.pitch}};
    terms t = {.call = call, .s = s};
    tk_sums_term term = {bind_terms, put_term, &t, tk_rows_lanes(call, s->x.columns, 2, operands),
                         1};
    return tk_sums_add(call, plan, &term, s->x.rows, s->x.columns, DWEIGHT);
}

/* ---- the call ---- */

static tk_status check(const tk_library_call *call, shapes *s) {
    TK_TRY(tk_library_need_float(call, X, "x"));
    TK_TRY(tk_library_need_float(call, DY, "dy"));
    TK_TRY(tk_library_need_same(call, X, "x", DY, "dy"));
    TK_TRY(tk_rows_shape(call, X, "x", &s->x));
    TK_TRY(tk_rows_shape(call, DY, "dy", &s->dy));
    TK_TRY(tk_norm_check_weight(call, WEIGHT, s->x.columns, "weight"));
    TK_TRY(tk_norm_check_weight(call, DWEIGHT, s->x.columns, "dweight"));
    s->weighted = !tk_library_is_missing(&call->tensors[WEIGHT]);
    s->has_dx = !tk_library_is_missing(&call->tensors[DX]);
    s->has_dweight = !tk_library_is_missing(&call->tensors[DWEIGHT]);
    if (!s->has_dx) return TK_OK;
    TK_TRY(tk_library_need_float(call, DX, "dx"));
    TK_TRY(tk_library_need_same(call, X, "x", DX, "dx"));
    return tk_rows_shape(call, DX, "dx", &s->dx);
}

tk_status tk_library_make_rms_norm_backward(const tk_library_call *call, tk_library_plan *plan) {
    shapes s = {0};
    TK_TRY(check(call, &s));
    if (s.has_dweight && call->schedule->held) return add_fused(call, plan, &s);
    if (s.has_dweight) TK_TRY(tk_library_add_scratch(plan, s.x.rows * 4, &s.rstd));
    if (s.has_dx || s.has_dweight) TK_TRY(add_rows(call, plan, &s));
    return s.has_dweight ? add_dweight(call, plan, &s) : TK_OK;
}

/* Rows that blocks would share are read twice. With dweight, sums stay in registers beside the
 * vectors: blocks of all registers. */
void tk_library_choose_rms_norm_backward(const tk_library_tensor *tensors,
                                         tk_library_schedule *out) {
    int64_t columns = tensors->rank ? tensors->shape[tensors->rank - 1] : 1;
    tk_sums_choose(columns ? tk_library_size(tensors) / columns : 0, columns,
                   tk_kscalar_bytes(tensors->element), out);
    tk_rows_choose(tensors, 4, 1, out);
    if (out->cluster > 1) {
        out->threads_per_row = 1024;
        out->held = 0;
        out->cluster = 1;
    }
    if (tk_library_is_missing(&tensors[DWEIGHT])) return;
    int64_t threads = out->threads_per_row * out->rows_per_block, blocks = 132;
    if (out->held > 4 || threads > 512) out->held = 0;
    while (threads < 512) threads *= 2, blocks *= 2;
    if (out->held) out->chunks = blocks;
}
