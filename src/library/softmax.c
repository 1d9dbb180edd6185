/* Softmax over rows: y = exp(x - max) / sum of exp(x - max).  Backward: dx = y (dy - sum(y dy)).
 *
 * Tile: as rows.h says. Held, a thread keeps its vectors of x; each warp subtracts its own maximum
 * and adds up its exponentials, then the warps of the row (of all blocks of the cluster) meet once
 * and exchange maximum and sum, and the scale of the result puts them right. Else one reading gives
 * maximum and sum together: whenever the thread's maximum m grows, its sum l is scaled by
 * exp(m_old - m_new) (Milakov and Gimelshein, 2018); a second one writes. A maximum of minus
 * infinity counts as 0, so that a thread that has seen nothing else yet does not make a NaN; a row
 * of nothing else ends as 0 / 0, which is NaN, as it should be.
 *
 * Shared memory: two floats for each warp of the row; the barrier (of a cluster: the gate that
 * counts them) orders them. Bytes: x and y once (x twice when not held). FLOPs: about 11 an
 * element, of exp. Roofline: bandwidth. Shares of the copy (H200, bf16, 2^27 elements), forward and
 * backward: rows of 256 to 32768 1.00 and 1.03, 131072 0.96 and 1.03.
 *
 * Rejected, measured on long rows: exponentials computed twice from the packed vectors, for more
 * blocks at once (0.88 and 0.79: instructions count). */
#include "library/rows.h"

typedef struct soft {
    tk_rows r;
    tk_val x, y; /* rows */
    tk_val base, scale;
    tk_val slope, shift; /* of the warp's brief exponentials that are held */
    int brief;           /* degree of brief exponentials, for x and y that are halves; else 0 */
    tk_val raw[TK_ROWS_MOST_HELD], held[TK_ROWS_MOST_HELD][TK_LIBRARY_MOST_LANES];
} soft;

/* Brief exponentials are 2^t for t from -LOWEST on, with t + LOWEST in units of RANGE. */
#define LOWEST 127.0
#define RANGE 256.0
#define LOG2E 0x1.715476p0

static tk_val minus_infinity(tk_b *b) { return tk_k_f32(b, -__builtin_inf()); }

/* What is subtracted: the maximum, or 0 when that is minus infinity. */
static tk_val base_of(tk_b *b, tk_val most) {
    tk_val nothing = tk_k_fcmp(b, "eq", most, minus_infinity(b));
    return tk_k_select(b, nothing, tk_k_f32(b, 0), most);
}

/* e^(x - base), which is at most 1: the expansion of exp without its ends. What is below 2^-126 is
 * 0, as on the CPU; NaN stays. */
static tk_val full_exp(tk_b *b, tk_val x, tk_val base) {
    static const double q[] = {0.5, 0x1.5554d8p-3, 0x1.555516p-5, 0x1.12106cp-7, 0x1.6d1606p-10};
    tk_val rounder = tk_k_f32(b, 0x1.8p23), d = tk_k_sub(b, x, base);
    tk_val shifted = tk_k_fma(b, d, tk_k_f32(b, 0x1.715476p0), rounder);
    tk_val n = tk_k_sub(b, shifted, rounder);
    tk_val r = tk_k_fma(b, n, tk_k_f32(b, -0x1.62e43p-1), d);
    r = tk_k_fma(b, n, tk_k_f32(b, 0x1.05c61p-29), r);
    tk_val sum = tk_k_f32(b, q[4]);
    for (int i = 3; i >= 0; i--) sum = tk_k_fma(b, sum, r, tk_k_f32(b, q[i]));
    sum = tk_k_add(b, tk_k_fma(b, tk_k_mul(b, r, r), sum, r), tk_k_f32(b, 1));
    tk_val bits = tk_k_shl(b, tk_k_as(b, shifted, TK_K_I32), tk_k_i32(b, 23));
    tk_val power = tk_k_as(b, tk_k_add(b, bits, tk_k_i32(b, 0x3f800000)), TK_K_F32);
    tk_val tiny = tk_k_fcmp(b, "lt", d, tk_k_f32(b, -87));
    return tk_k_select(b, tiny, tk_k_f32(b, 0), tk_k_mul(b, sum, power));
}

/* 2^(256 u - 127) for u of 0 to 1, 0 at 0: to 4e-6, or to 1e-4 where eight bits count, in seven
 * operations or eight. 2^n times a polynomial that is 1 at 0, joined as bits. */
static tk_val power_of(const soft *s, tk_val u) {
    static const double four[] = {1, 0x1.62e12cp-1, 0x1.ec0378p-3, 0x1.c9fc46p-5, 0x1.3a02ccp-7},
                        three[] = {1, 0x1.62f5fap-1, 0x1.f00c4ep-3, 0x1.c2a216p-5};
    tk_b *b = s->r.b;
    const double *q = s->brief == 3 ? three : four;
    tk_val rounder = tk_k_f32(b, 0x1.8p23 - LOWEST), range = tk_k_f32(b, RANGE);
    tk_val shifted = tk_k_fma(b, u, range, rounder);
    tk_val minus_n = tk_k_sub(b, rounder, shifted);
    tk_val f = tk_k_fma(b, u, range, minus_n), sum = tk_k_f32(b, q[s->brief]);
    for (int i = s->brief - 1; i >= 0; i--) sum = tk_k_fma(b, sum, f, tk_k_f32(b, q[i]));
    tk_val power = tk_k_shl(b, tk_k_as(b, shifted, TK_K_I32), tk_k_i32(b, 23));
    return tk_k_as(b, tk_k_add(b, power, tk_k_as(b, sum, TK_K_I32)), TK_K_F32);
}

/* e^(x - base), at most 1, below 2^-127 it is 0. NaN is lost: see sum_of. */
static tk_val brief_exp(const soft *s, tk_val x, tk_val base) {
    tk_b *b = s->r.b;
    tk_val d = tk_k_sub(b, x, base), slope = tk_k_f32(b, LOG2E / RANGE);
    return power_of(s, tk_op3(b, TK_KOP_fma_unit, d, slope, tk_k_f32(b, LOWEST / RANGE)));
}

static tk_val exp_of(const soft *s, tk_val x, tk_val base) {
    return s->brief ? brief_exp(s, x, base) : full_exp(s->r.b, x, base);
}

/* Brief exponentials of NaN and of the distance of infinities are numbers: the maximum tells. */
static tk_val sum_of(const soft *s, tk_val sum, tk_val most) {
    return s->brief ? tk_k_fma(s->r.b, most, tk_k_f32(s->r.b, 0), sum) : sum;
}

/* ---- held ---- */

/* Brief exponentials of many x with one base are those of x slope + shift: an operation less. The
 * shift is rounded, so they have a common factor, 1 but for 2^-8 at most: that of x = base tells.
 * With a base from 2^16 on, every other x of eight bits is so far below that its exponential is 0;
 * the slope is less there, or the shift would lose its part that counts. */
static void put_line(soft *s) {
    tk_b *b = s->r.b;
    tk_val size = tk_op1(b, TK_KOP_abs, s->base), bits = tk_k_as(b, size, TK_K_I32);
    tk_val large = tk_k_fcmp(b, "ge", size, tk_k_f32(b, 0x1p16));
    tk_val exponent = tk_k_and(b, bits, tk_k_i32(b, 0x7f800000));
    tk_val less = tk_k_sub(b, tk_k_i32(b, (int32_t)0x83800000), exponent);
    s->slope = tk_k_select(b, large, tk_k_as(b, less, TK_K_F32), tk_k_f32(b, LOG2E / RANGE));
    tk_val down = tk_op1(b, TK_KOP_neg, s->base);
    s->shift = tk_k_fma(b, down, s->slope, tk_k_f32(b, LOWEST / RANGE));
}

static tk_val exp_on_line(const soft *s, tk_val x) {
    if (!s->brief) return full_exp(s->r.b, x, s->base);
    return power_of(s, tk_op3(s->r.b, TK_KOP_fma_unit, x, s->slope, s->shift));
}

static tk_val load_or_least(const soft *s, tk_val at, tk_val condition) {
    tk_b *b = s->r.b;
    tk_kscalar element = (tk_kscalar)tk_kvalue_type(s->x).scalar;
    tk_val least = tk_kernel_float(b, element, -__builtin_inf()), all[TK_LIBRARY_MOST_LANES];
    for (int i = 0; i < s->r.lanes; i++) all[i] = least;
    tk_val other = tk_k_vector(b, all, s->r.lanes);
    return tk_rows_load_raw(&s->r, s->x, at, condition, other);
}

/* The maximum in pairs, as vectors of the elements' type: it is one of them. */
static void load_held(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                      tk_val *most) {
    soft *s = arg;
    s->raw[number] = load_or_least(s, at, condition);
    *most = number ? tk_k_max(r->b, *most, s->raw[number]) : s->raw[number];
}

static tk_val largest_of(const soft *s, tk_val vector) {
    tk_val x[TK_LIBRARY_MOST_LANES];
    tk_rows_widen(&s->r, vector, x);
    for (int i = 1; i < s->r.lanes; i++) x[0] = tk_k_max(s->r.b, x[0], x[i]);
    return x[0];
}

static void exp_held(soft *s, tk_val *sum) {
    tk_b *b = s->r.b;
    for (int64_t k = 0; k < s->r.held; k++) {
        tk_val *x = s->held[k];
        tk_rows_widen_again(&s->r, s->raw[k], x);
        for (int i = 0; i < s->r.lanes; i++) x[i] = exp_on_line(s, x[i]);
        *sum = tk_k_add(b, *sum, tk_rows_tree(&s->r, x));
    }
}

/* From maximum and sum of the warps to those of the row; gives what the warp's exponentials are
 * scaled by. */
static tk_val join_warps(soft *s, tk_val *most, tk_val *sum) {
    tk_b *b = s->r.b;
    tk_val words[2][TK_ROWS_MOST_PARTS], own = *most, factor = NULL;
    if (s->brief) {
        factor = tk_k_sub(b, tk_k_f32(b, 2), exp_on_line(s, s->base));
        *sum = tk_k_mul(b, *sum, factor);
    }
    tk_val both[] = {*most, *sum};
    int parts = tk_rows_meet(&s->r, 2, both, words);
    *most = tk_rows_join(&s->r, TK_KOP_max, parts, words[0]);
    s->base = base_of(b, *most);
    for (int i = 0; i < parts; i++)
        words[1][i] = tk_k_mul(b, words[1][i], exp_of(s, words[0][i], s->base));
    *sum = tk_rows_join(&s->r, TK_KOP_add, parts, words[1]);
    own = exp_of(s, own, s->base);
    return factor ? tk_k_mul(b, own, factor) : own;
}

/* Each warp takes its own maximum first, so that warps and blocks meet once. Gives the scale of the
 * exponentials that are held, NULL: 1. */
static tk_val reduce_held(soft *s, tk_val *most, tk_val *sum) {
    tk_val vector = NULL;
    tk_rows_each(&s->r, 1, &vector, load_held, s);
    *most = tk_rows_warp(&s->r, TK_KOP_max, largest_of(s, vector));
    s->base = base_of(s->r.b, *most);
    if (s->brief) put_line(s);
    exp_held(s, sum);
    *sum = tk_rows_warp(&s->r, TK_KOP_add, *sum);
    return tk_rows_are_warps(&s->r) ? NULL : join_warps(s, most, sum);
}

/* ---- online ---- */

static void online(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                   tk_val *carried) {
    soft *s = arg;
    tk_val x[TK_LIBRARY_MOST_LANES], most = carried[0];
    (void)number;
    tk_rows_load(r, s->x, at, condition, x);
    for (int i = 0; i < r->lanes; i++) most = tk_k_max(r->b, most, x[i]);
    tk_val base = base_of(r->b, most);
    tk_val scaled = tk_k_mul(r->b, carried[1], exp_of(s, carried[0], base));
    for (int i = 0; i < r->lanes; i++) x[i] = exp_of(s, x[i], base);
    carried[0] = most;
    carried[1] = tk_k_add(r->b, scaled, tk_rows_tree(r, x));
}

static void reduce_online(soft *s, tk_val *most, tk_val *sum) {
    tk_b *b = s->r.b;
    tk_val carried[] = {*most, *sum};
    tk_rows_each(&s->r, 2, carried, online, s);
    *most = carried[0];
    tk_rows_reduce(&s->r, TK_KOP_max, 1, most);
    s->base = base_of(b, *most);
    *sum = tk_k_mul(b, carried[1], exp_of(s, carried[0], s->base));
    tk_rows_reduce(&s->r, TK_KOP_add, 1, sum);
}

/* ---- the result ---- */

static void put_scale(soft *s) {
    tk_b *b = s->r.b;
    tk_val most = minus_infinity(b), sum = tk_k_f32(b, 0), own = NULL;
    if (s->r.held)
        own = reduce_held(s, &most, &sum);
    else
        reduce_online(s, &most, &sum);
    s->scale = tk_k_rcp(b, sum_of(s, sum, most));
    if (own) s->scale = tk_k_mul(b, s->scale, own);
}

static void write(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                  tk_val *carried) {
    soft *s = arg;
    tk_val loose[TK_LIBRARY_MOST_LANES], y[TK_LIBRARY_MOST_LANES],
        *e = number < 0 ? loose : s->held[number];
    (void)carried;
    if (number < 0) {
        tk_rows_load(r, s->x, at, condition, e);
        for (int i = 0; i < r->lanes; i++) e[i] = exp_of(s, e[i], s->base);
    }
    for (int i = 0; i < r->lanes; i++) y[i] = tk_k_mul(r->b, e[i], s->scale);
    tk_rows_store(r, s->y, at, condition, y);
}

static int degree_of(tk_kscalar x, tk_kscalar y) {
    if (x == TK_K_F32 || y == TK_K_F32) return 0;
    return y == TK_K_BF16 ? 3 : 4;
}

tk_status tk_library_make_softmax(const tk_library_call *call, tk_library_plan *plan) {
    tk_row_shape x, y;
    tk_library_kernel k;
    soft s = {0};
    TK_TRY(tk_library_need_float(call, 0, "x"));
    TK_TRY(tk_library_need_float(call, 1, "y"));
    TK_TRY(tk_library_need_same(call, 0, "x", 1, "y"));
    TK_TRY(tk_rows_shape(call, 0, "x", &x));
    TK_TRY(tk_rows_shape(call, 1, "y", &y));
    tk_row_operand operands[] = {{0, x.pitch}, {1, y.pitch}};
    int lanes = tk_rows_lanes(call, x.columns, 2, operands);
    TK_TRY(tk_rows_check(call, x.rows, x.columns, lanes));
    TK_TRY(tk_rows_check_prefetch(call, 1, lanes));
    TK_TRY(tk_library_open(plan, call->name, &k));
    tk_val of_x = tk_library_bind_rows(&k, "x", 0, call->tensors, TK_KACCESS_READ, lanes);
    tk_val of_y = tk_library_bind_rows(&k, "y", 1, call->tensors, TK_KACCESS_WRITE, lanes);
    tk_val x_pitch = tk_library_bind_int(&k, "x_pitch", TK_K_I64, x.pitch);
    tk_val y_pitch = tk_library_bind_int(&k, "y_pitch", TK_K_I64, y.pitch);
    tk_rows_stream rows_of_x = {of_x, x_pitch};
    s.brief = degree_of(call->tensors[0].element, call->tensors[1].element);
    tk_rows_start(&s.r, &k, call, x.rows, x.columns, lanes);
    s.x = tk_rows_pointer(&s.r, of_x, x_pitch);
    tk_rows_wait(&s.r, 1, &rows_of_x);
    s.y = tk_rows_pointer(&s.r, of_y, y_pitch);
    put_scale(&s);
    tk_rows_each(&s.r, 0, NULL, write, &s);
    return tk_library_close(&k);
}

/* Rows of two to four thousand vectors: two blocks with more of a row each are faster than four.
 * Three blocks have a multiprocessor's registers, which the assembler does not see by itself. */
void tk_library_choose_softmax(const tk_library_tensor *tensors, tk_library_schedule *out) {
    tk_rows_choose(tensors, 2, 1, out);
    if (out->cluster == 4 && out->held <= 4 && out->held > 0) {
        out->cluster = 2;
        out->held *= 2;
    }
    if (out->overlap == 1) tk_rows_choose_prefetch(tensors, 2, 3, out);
    if (out->late && tk_kscalar_bytes(tensors->element) == 2) out->blocks_per_sm = 3;
}

/* ---- backward ---- */

/* Held vectors are kept as they were read and widened at each use: as f32 those of two halves would
 * be twice the registers. */
typedef struct back {
    tk_rows r;
    tk_val y, dy, dx, dot;
    tk_val held[2][TK_ROWS_MOST_HELD];
} back;

static void load_pair(back *s, const tk_rows *r, int number, tk_val at, tk_val condition) {
    s->held[0][number] = tk_rows_load_raw(r, s->y, at, condition, NULL);
    s->held[1][number] = tk_rows_load_raw(r, s->dy, at, condition, NULL);
}

static void add_products(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                         tk_val *sum) {
    back *s = arg;
    tk_val y[TK_LIBRARY_MOST_LANES], dy[TK_LIBRARY_MOST_LANES], products[TK_LIBRARY_MOST_LANES];
    int place = number < 0 ? 0 : number;
    load_pair(s, r, place, at, condition);
    tk_rows_widen(r, s->held[0][place], y);
    tk_rows_widen(r, s->held[1][place], dy);
    for (int i = 0; i < r->lanes; i++) products[i] = tk_k_mul(r->b, y[i], dy[i]);
    *sum = tk_k_add(r->b, *sum, tk_rows_tree(r, products));
}

static void write_back(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                       tk_val *carried) {
    back *s = arg;
    tk_val y[TK_LIBRARY_MOST_LANES], dy[TK_LIBRARY_MOST_LANES], dx[TK_LIBRARY_MOST_LANES];
    int place = number < 0 ? 0 : number;
    (void)carried;
    if (number < 0) load_pair(s, r, place, at, condition);
    tk_rows_widen_again(r, s->held[0][place], y);
    tk_rows_widen_again(r, s->held[1][place], dy);
    for (int i = 0; i < r->lanes; i++) dx[i] = tk_k_mul(r->b, y[i], tk_k_sub(r->b, dy[i], s->dot));
    tk_rows_store(r, s->dx, at, condition, dx);
}

tk_status tk_library_make_softmax_backward(const tk_library_call *call, tk_library_plan *plan) {
    static const char *const roles[] = {"y", "dy", "dx"}, *const pitches[] = {"y_pitch", "dy_pitch",
                                                                              "dx_pitch"};
    tk_row_shape shape[3];
    tk_row_operand operands[3];
    tk_library_kernel k;
    tk_val tensor[3], pitch[3];
    back s = {0};
    for (size_t i = 0; i < 3; i++) {
        TK_TRY(tk_library_need_float(call, i, roles[i]));
        TK_TRY(tk_library_need_same(call, 0, "y", i, roles[i]));
        TK_TRY(tk_rows_shape(call, i, roles[i], &shape[i]));
        operands[i] = (tk_row_operand){i, shape[i].pitch};
    }
    int lanes = tk_rows_lanes(call, shape->columns, 3, operands);
    TK_TRY(tk_rows_check(call, shape->rows, shape->columns, lanes));
    TK_TRY(tk_rows_check_prefetch(call, 2, lanes));
    TK_TRY(tk_library_open(plan, call->name, &k));
    for (size_t i = 0; i < 3; i++) {
        tk_kaccess access = i == 2 ? TK_KACCESS_WRITE : TK_KACCESS_READ;
        tensor[i] = tk_library_bind_rows(&k, roles[i], i, call->tensors, access, lanes);
        pitch[i] = tk_library_bind_int(&k, pitches[i], TK_K_I64, shape[i].pitch);
    }
    tk_rows_stream streams[] = {{tensor[0], pitch[0]}, {tensor[1], pitch[1]}};
    tk_rows_start(&s.r, &k, call, shape->rows, shape->columns, lanes);
    s.y = tk_rows_pointer(&s.r, tensor[0], pitch[0]);
    s.dy = tk_rows_pointer(&s.r, tensor[1], pitch[1]);
    s.dx = tk_rows_pointer(&s.r, tensor[2], pitch[2]);
    tk_rows_wait(&s.r, 2, streams);
    s.dot = tk_k_f32(k.b, 0);
    tk_rows_each(&s.r, 1, &s.dot, add_products, &s);
    tk_rows_reduce(&s.r, TK_KOP_add, 1, &s.dot);
    tk_rows_each(&s.r, 0, NULL, write_back, &s);
    return tk_library_close(&k);
}

/* Two vectors of each operand more than four would leave registers for half as many blocks. */
void tk_library_choose_softmax_backward(const tk_library_tensor *tensors,
                                        tk_library_schedule *out) {
    tk_rows_choose(tensors, 3, 1, out);
    if (out->cluster < 4 || out->held <= 4) return;
    if (out->cluster == 8)
        out->threads_per_row *= 2;
    else
        out->cluster *= 2;
    out->held = (out->held + 1) / 2;
}
