/* Rows; rows.h says how the work is divided.
 *
 * Reductions: butterflies within a warp, then one word a warp in shared memory, a barrier, and
 * every thread adds the words of its row in their order. Each reduction has words of its own, so
 * one barrier orders it. Blocks of a cluster write theirs into the shared memory of each other, by
 * asynchronous stores; an mbarrier of each block, its gate, counts the bytes that come, and the
 * block waits for them alone. Nobody reads a peer's memory, and each block waits for all that is
 * written into its own, so it may end when it likes. The wait acquires at the block's scope, as for
 * bulk copies that peers send: behind one at the cluster's scope ptxas empties the L1.
 *
 * Rejected: a second round of shuffles by one warp (a barrier more), atomics (another order of
 * additions in each run), the cluster's barrier between the words and their readers (its release is
 * a fence of the whole GPU and its wait empties the L1: 0.90 and 0.83 of a copy for softmax bf16 of
 * rows of 32768 and 131072, where gates and calls for later rows give 1.00 and 0.96). */
#include "library/rows.h"

#include <assert.h>
#include <stdio.h>

/* ---- shapes ---- */

tk_status tk_rows_shape(const tk_library_call *call, size_t index, const char *role,
                        tk_row_shape *out) {
    const tk_library_tensor *t = &call->tensors[index];
    int last = t->rank - 1;
    int64_t step = 0;
    *out = (tk_row_shape){.rows = 1, .columns = t->rank ? t->shape[last] : 1};
    if (t->rank && t->shape[last] > 1 && t->stride[last] != 1)
        return tk_library_fail(call, TK_SHAPE_ERROR,
                               "%s has stride %lld along its last axis, expected 1", role,
                               (long long)t->stride[last]);
    for (int i = last - 1; i >= 0; i--) {
        if (t->shape[i] == 1) continue;
        if (!step) out->pitch = t->stride[i];
        if (step && t->stride[i] != step && tk_library_size(t) > 0)
            return tk_library_fail(call, TK_SHAPE_ERROR,
                                   "the rows of %s are not evenly spaced: copy it first", role);
        out->rows *= t->shape[i];
        step = t->shape[i] * t->stride[i];
    }
    if (out->columns > (int64_t)1 << 30)
        return tk_library_fail(call, TK_UNSUPPORTED, "%s has rows of more than 2^30 elements",
                               role);
    return TK_OK;
}

int tk_rows_lanes(const tk_library_call *call, int64_t columns, size_t count,
                  const tk_row_operand *operands) {
    int64_t lanes = TK_LIBRARY_MOST_LANES;
    for (size_t i = 0; i < count; i++) {
        const tk_library_tensor *t = &call->tensors[operands[i].index];
        int64_t bytes = tk_kscalar_bytes(t->element);
        int64_t facts[] = {tk_library_align(t), operands[i].pitch * bytes, columns * bytes};
        int64_t wide = tk_library_divisor(call->schedule->vector, 3, facts) / bytes;
        if (wide < lanes) lanes = wide > 1 ? wide : 1;
    }
    return (int)lanes;
}

/* ---- the kernel ---- */

tk_status tk_rows_check(const tk_library_call *call, int64_t rows, int64_t columns, int lanes) {
    const tk_library_schedule *s = call->schedule;
    int64_t threads = s->threads_per_row * s->rows_per_block,
            of_row = s->threads_per_row * s->cluster, reach = of_row * s->held * lanes;
    if (threads < 32 || threads > 1024)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "schedule: %lld rows of %lld threads are %lld, expected 32 to 1024",
                               (long long)s->rows_per_block, (long long)s->threads_per_row,
                               (long long)threads);
    if (s->held && columns > reach)
        return tk_library_fail(call, TK_INVALID_ARGUMENT,
                               "schedule: %lld threads hold %lld vectors of %d elements, which is "
                               "less than a row of %lld: raise threads_per_row, or held (0 reads "
                               "the row again)",
                               (long long)of_row, (long long)s->held, lanes, (long long)columns);
    if (s->cluster > 1 && s->threads_per_row < 32)
        return tk_library_fail(
            call, TK_INVALID_ARGUMENT,
            "schedule: %lld blocks share a row, each with %lld threads, expected "
            "32 or more",
            (long long)s->cluster, (long long)s->threads_per_row);
    if (rows / s->rows_per_block * s->cluster >= INT32_MAX)
        return tk_library_fail(call, TK_UNSUPPORTED, "%lld rows are more than a grid has blocks",
                               (long long)rows);
    return TK_OK;
}

tk_status tk_rows_check_prefetch(const tk_library_call *call, size_t count, int lanes) {
    const tk_library_schedule *s = call->schedule;
    for (size_t i = 0; s->prefetch && i < count; i++) {
        int64_t bytes = lanes * tk_kscalar_bytes(call->tensors[i].element);
        if (!s->held || bytes != 16)
            return tk_library_fail(call, TK_INVALID_ARGUMENT,
                                   "schedule: rows that are prefetched are held, in vectors of 16 "
                                   "bytes; here %lld are held, of %lld bytes: set prefetch = 0",
                                   (long long)s->held, (long long)bytes);
    }
    return TK_OK;
}

static void contract(tk_rows *r, tk_val rows, tk_val columns) {
    tk_b *b = r->b;
    tk_k_require_from(b, rows, 0);
    tk_k_require_from(b, columns, 0);
    int32_t width = tk_kexpr_param(b, columns), lanes = tk_kexpr_const(b, r->lanes);
    if (r->lanes > 1)
        tk_kernel_require(b, tk_kexpr_binary(b, TK_KX_MOD, width, lanes), TK_KR_EQ,
                          tk_kexpr_const(b, 0));
    int64_t most = r->held ? r->held * r->all_threads * r->lanes : (int64_t)1 << 30;
    tk_kernel_require(b, width, r->full ? TK_KR_EQ : TK_KR_LE, tk_kexpr_const(b, most));
    if (r->full && r->of_block > 1)
        tk_kernel_require(
            b,
            tk_kexpr_binary(b, TK_KX_MOD, tk_kexpr_param(b, rows), tk_kexpr_const(b, r->of_block)),
            TK_KR_EQ, tk_kexpr_const(b, 0));
    int32_t one = tk_kexpr_const(b, 1), of_cluster = tk_kexpr_const(b, r->cluster);
    int32_t blocks =
        tk_kexpr_binary(b, TK_KX_CEILDIV, tk_kexpr_param(b, rows), tk_kexpr_const(b, r->of_block));
    if (r->most_blocks)
        blocks = tk_kexpr_binary(b, TK_KX_MIN, blocks, tk_kexpr_const(b, r->most_blocks));
    if (r->cluster > 1) {
        blocks = tk_kexpr_binary(b, TK_KX_MUL, blocks, of_cluster);
        tk_kernel_cluster(b, of_cluster, one, one);
    }
    tk_kernel_grid(b, blocks, one, one);
    tk_kernel_block(b, r->threads * r->of_block, 1, 1);
}

static tk_val log2_of(tk_b *b, int64_t power) {
    return tk_k_i32(b, __builtin_ctzll((uint64_t)power));
}

tk_val tk_rows_log2(const tk_rows *r, int64_t power) { return log2_of(r->b, power); }

static tk_val storage(const tk_rows *r, tk_kscalar element, int64_t count, int64_t align) {
    char layout[32];
    tk_kattr attr = {.id = TK_KA_align, .value = align};
    snprintf(layout, sizeof layout, "%lld:1", (long long)count);
    tk_val buffer = tk_kernel_op(r->b, TK_KOP_shared, 0, NULL, 1, &attr,
                                 tk_ktype_of_shared(r->b, element, layout));
    return tk_kernel_op(r->b, TK_KOP_address, 1, &buffer, 0, NULL,
                        tk_ktype_pointer(element, TK_KS_SHARED));
}

/* Of a cluster, one for each meeting of its blocks. */
enum { GATES = 2 };

/* Mbarriers that the words of other blocks are counted by; all blocks are told to be there before
 * the first meeting. */
static void make_gates(tk_rows *r) {
    tk_b *b = r->b;
    r->gates = storage(r, TK_K_MBAR, GATES, 8);
    tk_kernel_if(b, tk_k_icmp(b, "eq", r->thread, tk_k_i32(b, 0)));
    for (int i = 0; i < GATES; i++)
        tk_op2(b, TK_KOP_mbarrier_init, tk_k_offset(b, r->gates, tk_k_i32(b, i)), tk_k_i32(b, 1));
    tk_kernel_op(b, TK_KOP_mbarrier_fence, 0, NULL, 0, NULL, tk_no_type());
    tk_k_end(b);
    tk_k_cluster_arrive_relaxed(b);
}

/* Where the thread stands in its row and its block. */
static void find_place(tk_rows *r) {
    tk_b *b = r->b;
    r->thread = tk_k_thread(b);
    r->lane = tk_k_and(b, r->thread, tk_k_i32(b, r->threads - 1));
    r->group = tk_k_wide(b, tk_k_ushr(b, r->thread, log2_of(b, r->threads)));
    r->all_vectors = tk_k_ushr(b, r->columns, log2_of(b, r->lanes));
    if (r->cluster == 1) return;
    tk_val before = tk_k_mul(b, tk_k_cluster_block(b), tk_k_i32(b, r->threads));
    r->lane = tk_k_add(b, r->lane, before);
    make_gates(r);
}

tk_val tk_rows_first(const tk_rows *r) {
    tk_val number = tk_k_block(r->b);
    if (r->cluster > 1) number = tk_k_ushr(r->b, number, log2_of(r->b, r->cluster));
    return tk_k_mul(r->b, tk_k_wide(r->b, number), tk_k_i64(r->b, r->of_block));
}

static bool is_full(const tk_rows *r, const tk_row_shape *shape) {
    return r->held && shape->columns == r->held * r->all_threads * r->lanes &&
           shape->rows % r->of_block == 0;
}

static void open(tk_rows *r, tk_library_kernel *k, const tk_library_call *call,
                 const tk_row_shape *shape, int lanes, int64_t most_blocks, bool may_be_full) {
    tk_b *b = k->b;
    *r = (tk_rows){.k = k,
                   .b = b,
                   .threads = call->schedule->threads_per_row,
                   .of_block = call->schedule->rows_per_block,
                   .held = call->schedule->held,
                   .cluster = call->schedule->cluster,
                   .overlap = call->schedule->overlap,
                   .prefetch = call->schedule->prefetch,
                   .late = call->schedule->late != 0,
                   .all_threads = call->schedule->threads_per_row * call->schedule->cluster,
                   .most_blocks = most_blocks,
                   .lanes = lanes};
    r->full = may_be_full && is_full(r, shape);
    r->rows = tk_library_bind_int(k, "rows", TK_K_I64, shape->rows);
    r->columns = tk_library_bind_int(k, "columns", TK_K_I32, shape->columns);
    contract(r, r->rows, r->columns);
    if (call->schedule->blocks_per_sm) tk_kernel_min_blocks(b, call->schedule->blocks_per_sm);
    find_place(r);
}

void tk_rows_go_to(tk_rows *r, tk_val first) {
    r->row = tk_k_add(r->b, first, r->group);
    r->active = tk_k_icmp(r->b, "slt", r->row, r->rows);
    r->vectors = tk_k_select(r->b, r->active, r->all_vectors, tk_k_i32(r->b, 0));
}

void tk_rows_start(tk_rows *r, tk_library_kernel *k, const tk_library_call *call, int64_t rows,
                   int64_t columns, int lanes) {
    tk_row_shape shape = {rows, columns, 0};
    open(r, k, call, &shape, lanes, 0, true);
    tk_rows_go_to(r, tk_rows_first(r));
}

static void declare_words(const tk_rows *r, size_t count, tk_val *words) {
    char layout[32];
    snprintf(layout, sizeof layout, "%lld:1", (long long)(r->threads / 32 * r->of_block));
    for (size_t i = 0; i < count; i++) words[i] = tk_k_shared(r->b, TK_K_F32, layout);
}

void tk_rows_start_loop(tk_rows *r, tk_library_kernel *k, const tk_library_call *call, int64_t rows,
                        int64_t columns, int lanes, int64_t most_blocks, size_t n_sums) {
    tk_row_shape shape = {rows, columns, 0};
    open(r, k, call, &shape, lanes, most_blocks, false);
    if (r->threads > 32) declare_words(r, n_sums, r->words);
    r->in_loop = true;
    tk_rows_go_to(r, tk_rows_first(r));
}

tk_val tk_rows_loop(tk_rows *r, size_t n_carried, tk_val *carried) {
    tk_b *b = r->b;
    tk_val blocks = tk_k_wide(b, tk_k_axis(b, TK_KOP_grid_size, "x"));
    tk_val step = tk_k_mul(b, blocks, tk_k_i64(b, r->of_block)), first = tk_rows_first(r);
    tk_val at = tk_kernel_for(b, first, r->rows, step, 1, n_carried, carried, carried);
    tk_rows_go_to(r, at);
    return tk_k_add(b, at, step);
}

tk_val tk_rows_pointer(const tk_rows *r, tk_val tensor, tk_val pitch) {
    return tk_k_offset(r->b, tensor, tk_k_mul(r->b, r->row, pitch));
}

static tk_val column_of(const tk_rows *r, tk_val vector) {
    return tk_k_shl(r->b, vector, log2_of(r->b, r->lanes));
}

void tk_rows_each(const tk_rows *r, size_t n_carried, tk_val *carried, tk_rows_body body,
                  void *arg) {
    tk_b *b = r->b;
    tk_val inner[8], step = tk_k_i32(b, r->all_threads);
    for (int64_t i = 0; i < r->held; i++) {
        tk_val vector = tk_k_add(b, r->lane, tk_k_i32(b, i * r->all_threads));
        tk_val inside = r->full ? NULL : tk_k_icmp(b, "slt", vector, r->vectors);
        body(arg, r, (int)i, column_of(r, vector), inside, carried);
    }
    if (r->held) return;
    tk_val vector = tk_kernel_for(b, r->lane, r->vectors, step, 0, n_carried, carried, inner);
    body(arg, r, -1, column_of(r, vector), NULL, inner);
    tk_kernel_end(b, n_carried, inner, carried);
}

tk_val tk_rows_load_raw(const tk_rows *r, tk_val row, tk_val at, tk_val condition, tk_val other) {
    return tk_k_load_or(r->b, tk_k_offset(r->b, row, at), r->lanes, condition, other);
}

void tk_rows_widen(const tk_rows *r, tk_val vector, tk_val *out) {
    for (int i = 0; i < r->lanes; i++)
        out[i] = tk_k_convert(r->b, tk_k_extract(r->b, vector, i), TK_K_F32);
}

/* Two halves in each i32: the lower one moves up, the upper one stays. */
static void widen_bits(const tk_rows *r, tk_val vector, tk_val *out) {
    tk_b *b = r->b;
    tk_ktype pairs = tk_k_lanes(TK_K_I32, r->lanes / 2);
    tk_val words = tk_kernel_op(b, TK_KOP_bitcast, 1, &vector, 0, NULL, pairs);
    for (int i = 0; i < r->lanes; i += 2) {
        tk_val word = tk_k_extract(b, words, i / 2);
        out[i] = tk_k_as(b, tk_k_shl(b, word, tk_k_i32(b, 16)), TK_K_F32);
        out[i + 1] = tk_k_as(b, tk_k_and(b, word, tk_k_i32(b, -65536)), TK_K_F32);
    }
}

void tk_rows_widen_again(const tk_rows *r, tk_val vector, tk_val *out) {
    if (tk_kvalue_type(vector).scalar == TK_K_BF16 && r->lanes > 1)
        widen_bits(r, vector, out);
    else
        tk_rows_widen(r, vector, out);
}

void tk_rows_load(const tk_rows *r, tk_val row, tk_val at, tk_val condition, tk_val *out) {
    tk_rows_widen(r, tk_rows_load_raw(r, row, at, condition, NULL), out);
}

void tk_rows_store(const tk_rows *r, tk_val row, tk_val at, tk_val condition,
                   const tk_val *values) {
    tk_k_store_f32_if(r->b, tk_k_offset(r->b, row, at), r->lanes, values, condition);
}

/* ---- reductions ---- */

static tk_val tree(tk_b *b, tk_kopcode how, tk_val *values, int count) {
    for (; count > 1; count = (count + 1) / 2)
        for (int i = 0; i < count / 2; i++) {
            values[i] = tk_op2(b, how, values[2 * i], values[2 * i + 1]);
            if (count % 2 && i == count / 2 - 1) values[i + 1] = values[count - 1];
        }
    return values[0];
}

tk_val tk_rows_tree(const tk_rows *r, const tk_val *values) {
    tk_val copy[TK_LIBRARY_MOST_LANES];
    for (int i = 0; i < r->lanes; i++) copy[i] = values[i];
    return tree(r->b, TK_KOP_add, copy, r->lanes);
}

static tk_val reduce_lanes(const tk_rows *r, tk_kopcode how, tk_val value, int64_t width) {
    for (int64_t distance = width / 2; distance; distance /= 2)
        value = tk_op2(r->b, how, value, tk_k_butterfly(r->b, value, (int)distance));
    return value;
}

/* The words of the row: `warps` floats from the pointer on. */
static tk_val join_words(const tk_rows *r, tk_kopcode how, tk_val words, int warps) {
    tk_val all[32];
    int lanes = warps < 4 ? warps : 4;
    for (int i = 0; i < warps; i += lanes) {
        tk_val vector = tk_k_load(r->b, tk_k_offset(r->b, words, tk_k_i32(r->b, i)), lanes);
        for (int j = 0; j < lanes; j++) all[i + j] = tk_k_extract(r->b, vector, j);
    }
    return tree(r->b, how, all, warps);
}

/* All words of a row: `warps` of each block. */
static int64_t words_of(const tk_rows *r) { return r->threads / 32 * r->cluster; }

tk_val tk_rows_warp(const tk_rows *r, tk_kopcode how, tk_val value) {
    return reduce_lanes(r, how, value, r->threads < 32 ? r->threads : 32);
}

bool tk_rows_are_warps(const tk_rows *r) { return r->all_threads <= 32; }

/* The place of the warp's word among those of its row. */
static tk_val word_of_warp(const tk_rows *r) {
    tk_b *b = r->b;
    tk_val group = tk_k_narrow(b, r->group);
    tk_val line = tk_k_mul(b, group, tk_k_i32(b, words_of(r)));
    tk_val of_row = tk_k_and(b, r->thread, tk_k_i32(b, r->threads - 1));
    tk_val to = tk_k_add(b, line, tk_k_ushr(b, of_row, tk_k_i32(b, 5)));
    if (r->cluster == 1) return to;
    tk_val before = tk_k_mul(b, tk_k_cluster_block(b), tk_k_i32(b, r->threads / 32));
    return tk_k_add(b, to, before);
}

/* The first lane writes for its warp; a barrier orders the words. */
static void meet_in_block(tk_rows *r, size_t count, const tk_val *words, const tk_val *values) {
    tk_b *b = r->b;
    tk_val own = tk_k_and(b, r->thread, tk_k_i32(b, 31)), to = word_of_warp(r);
    tk_kernel_if(b, tk_k_icmp(b, "eq", own, tk_k_i32(b, 0)));
    for (size_t i = 0; i < count; i++) tk_k_store(b, tk_k_offset(b, words[i], to), values[i]);
    tk_k_end(b);
    tk_k_barrier(b);
}

/* Lane i writes for block i of the cluster, whose gate counts the bytes that come. */
static void meet_in_cluster(tk_rows *r, size_t count, const tk_val *words, const tk_val *values) {
    tk_b *b = r->b;
    int64_t bytes = (int64_t)count * 4 * words_of(r) * r->of_block;
    tk_val own = tk_k_and(b, r->thread, tk_k_i32(b, 31)), to = word_of_warp(r),
           gate = tk_k_offset(b, r->gates, tk_k_i32(b, r->meets));
    assert(r->meets < GATES);
    r->meets++;
    if (!r->met) tk_k_cluster_wait(b);
    r->met = true;
    tk_kernel_if(b, tk_k_icmp(b, "eq", r->thread, tk_k_i32(b, 0)));
    tk_op3(b, TK_KOP_mbarrier_expect, gate, tk_k_i32(b, bytes), NULL);
    tk_k_end(b);
    tk_kernel_if(b, tk_k_icmp(b, "slt", own, tk_k_i32(b, r->cluster)));
    tk_val far_gate = tk_k_peer(b, gate, own);
    for (size_t i = 0; i < count; i++) {
        tk_val place = tk_k_peer(b, tk_k_offset(b, words[i], to), own);
        tk_op3(b, TK_KOP_store_async, place, values[i], far_gate);
    }
    tk_k_end(b);
    tk_op2(b, TK_KOP_mbarrier_wait, gate, tk_k_i32(b, 0));
}

int tk_rows_meet(tk_rows *r, size_t count, const tk_val *values, tk_val out[][TK_ROWS_MOST_PARTS]) {
    tk_b *b = r->b;
    int64_t all = words_of(r), wide = all < 32 ? all : 32;
    char layout[32];
    tk_val words[4];
    snprintf(layout, sizeof layout, "%lld:1", (long long)(all * r->of_block));
    for (size_t i = 0; i < count; i++) words[i] = tk_k_shared(b, TK_K_F32, layout);
    if (r->cluster > 1)
        meet_in_cluster(r, count, words, values);
    else
        meet_in_block(r, count, words, values);
    tk_rows_call_when_met(r);
    tk_val group = tk_k_narrow(b, r->group), line = tk_k_mul(b, group, tk_k_i32(b, all));
    tk_val from = tk_k_add(b, line, tk_k_and(b, r->thread, tk_k_i32(b, wide - 1)));
    for (size_t i = 0; i < count; i++)
        for (int64_t at = 0; at < all; at += 32) {
            tk_val word = tk_k_offset(b, words[i], tk_k_add(b, from, tk_k_i32(b, at)));
            out[i][at / 32] = tk_k_load(b, word, 1);
        }
    return all < 32 ? 1 : (int)(all / 32);
}

tk_val tk_rows_join(const tk_rows *r, tk_kopcode how, int parts, const tk_val *values) {
    int64_t all = words_of(r);
    tk_val value = values[0];
    for (int i = 1; i < parts; i++) value = tk_op2(r->b, how, value, values[i]);
    return reduce_lanes(r, how, value, all < 32 ? all : 32);
}

static void reduce_in_block(tk_rows *r, tk_kopcode how, size_t count, tk_val *values) {
    tk_b *b = r->b;
    int64_t warps = r->threads / 32;
    if (r->in_loop)
        tk_k_barrier(b);
    else
        declare_words(r, count, r->words);
    tk_val first = tk_k_icmp(b, "eq", tk_k_and(b, r->thread, tk_k_i32(b, 31)), tk_k_i32(b, 0));
    tk_val warp = tk_k_ushr(b, r->thread, tk_k_i32(b, 5));
    tk_kernel_if(b, first);
    for (size_t i = 0; i < count; i++) tk_k_store(b, tk_k_offset(b, r->words[i], warp), values[i]);
    tk_k_end(b);
    tk_k_barrier(b);
    tk_rows_call_when_met(r);
    tk_val own = tk_k_and(b, warp, tk_k_i32(b, -warps));
    for (size_t i = 0; i < count; i++)
        values[i] = join_words(r, how, tk_k_offset(b, r->words[i], own), (int)warps);
}

void tk_rows_reduce(tk_rows *r, tk_kopcode how, size_t count, tk_val *values) {
    tk_val words[4][TK_ROWS_MOST_PARTS];
    for (size_t i = 0; i < count; i++) values[i] = tk_rows_warp(r, how, values[i]);
    if (tk_rows_are_warps(r)) return;
    if (r->cluster == 1) {
        reduce_in_block(r, how, count, values);
        return;
    }
    int parts = tk_rows_meet(r, count, values, words);
    for (size_t i = 0; i < count; i++) values[i] = tk_rows_join(r, how, parts, words[i]);
}

tk_val tk_rows_leads(const tk_rows *r) {
    return tk_k_and(r->b, tk_k_icmp(r->b, "eq", r->lane, tk_k_i32(r->b, 0)), r->active);
}

/* ---- defaults ---- */

static int64_t lanes_of(const tk_library_tensor *t) {
    int64_t columns = t->rank ? t->shape[t->rank - 1] : 1, pitch = 0,
            bytes = tk_kscalar_bytes(t->element);
    for (int i = t->rank - 2; i >= 0 && !pitch; i--)
        if (t->shape[i] != 1) pitch = t->stride[i];
    int64_t facts[] = {tk_library_align(t), columns * bytes, pitch * bytes};
    return tk_library_divisor(16, 3, facts) / bytes;
}

/* By vectors in a row, from sweeps on an H200 (bench/history/gpu_kernels.txt). Rows of at most 16
 * vectors have a thread a vector; beyond 2048, blocks of a cluster share them. Two to eight vectors
 * a thread keep memory busy, and what is kept must leave registers for several blocks. */
typedef struct row_class {
    int64_t vectors, threads, rows, cluster;
} row_class;

static const row_class classes[] = {{32, 16, 8, 1},    {128, 32, 4, 1},   {256, 64, 2, 1},
                                    {512, 128, 1, 1},  {1024, 256, 1, 1}, {2048, 512, 1, 1},
                                    {4096, 256, 1, 4}, {8192, 256, 1, 4}, {16384, 256, 1, 8},
                                    {32768, 512, 1, 8}};

static int64_t vectors_of(const tk_library_tensor *tensors, size_t count, int64_t *out_lanes) {
    int64_t columns = tensors->rank ? tensors->shape[tensors->rank - 1] : 1, lanes = 8;
    for (size_t i = 0; i < count; i++) {
        int64_t of_tensor = tk_library_is_missing(&tensors[i]) ? lanes : lanes_of(&tensors[i]);
        if (of_tensor < lanes) lanes = of_tensor > 1 ? of_tensor : 1;
    }
    *out_lanes = lanes;
    return (columns + lanes - 1) / lanes;
}

static row_class class_of(int64_t vectors) {
    row_class of = {.threads = 1, .cluster = 1};
    if (vectors <= 16) {
        while (of.threads < vectors) of.threads *= 2;
        of.rows = (of.threads <= 4 ? 128 : 256) / of.threads;
        return of;
    }
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (vectors <= classes[i].vectors) return classes[i];
    return (row_class){.threads = 1024, .rows = 1, .cluster = 1};
}

/* Of tensors that no cache holds, the rows of the blocks that are next: when a block begins, at
 * most 8 MB of them; of rows of 64 KiB and more when sums are known, one block on each of 132
 * multiprocessors, or so many of a cluster. Of smaller ones, those of four blocks. */
void tk_rows_choose_prefetch(const tk_library_tensor *tensors, size_t count, int of_cluster,
                             tk_library_schedule *out) {
    enum { BLOCKS = 132, MOST = 528, LONG = 64 << 10 };
    int64_t columns = tensors->rank ? tensors->shape[tensors->rank - 1] : 1,
            element = tk_kscalar_bytes(tensors->element), lanes,
            bytes = columns * element * out->rows_per_block;
    (void)vectors_of(tensors, count, &lanes);
    bool is_small = out->overlap == 2;
    if (!out->held || lanes * element != 16) return;
    if (is_small && (out->threads_per_row != 512 || out->cluster > 1)) return;
    out->late = out->cluster > 1 || bytes >= LONG || is_small;
    out->prefetch = out->cluster > 1 ? of_cluster * BLOCKS / out->cluster : BLOCKS * LONG / bytes;
    if (out->prefetch > MOST || is_small) out->prefetch = MOST;
}

void tk_rows_choose(const tk_library_tensor *tensors, size_t count, int kept,
                    tk_library_schedule *out) {
    int64_t lanes, vectors = vectors_of(tensors, count, &lanes),
                   bytes = tk_library_size(tensors) * tk_kscalar_bytes(tensors->element);
    row_class of = class_of(vectors);
    bool is_small = bytes <= (int64_t)64 << 20;
    if (of.threads == 256 && of.cluster == 1 && is_small) of.threads = 512;
    int64_t all = of.threads * of.cluster, need = (vectors + all - 1) / all;
    out->vector = 16;
    out->threads_per_row = of.threads;
    out->rows_per_block = of.rows;
    out->cluster = of.cluster;
    out->held = need * lanes * kept <= 64 && need <= TK_ROWS_MOST_HELD ? need : 0;
    out->overlap = is_small ? 2 : 1;
    if (out->held || vectors == 0) return;
    out->threads_per_row = 1024;
    out->cluster = 1;
}
