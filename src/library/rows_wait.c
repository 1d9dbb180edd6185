/* How a launch over rows begins: when it waits for the one before, and which rows it calls for
 * before they are needed; rows.h has the contract.
 *
 * A block that begins finds its rows in the L2, because a block `prefetch` before it called for
 * them: so memory is read all the time, whatever the blocks of a multiprocessor do just now. Blocks
 * that are not there yet start anywhere, so nobody waits for anybody. Rows that wait in the L2 must
 * leave room for what is written: more than about 9 MB of them cost more than they gain.
 *
 * Rejected, measured on an H200: blocks that stay and walk over the rows, the next ones on their
 * way into registers (0.89 and 0.69 of a copy, softmax bf16 of rows of 32768 and 131072) or by bulk
 * copies into a ring in shared memory (0.88 and 0.75, and 0.86 of RMS norm f16 of rows of 4096,
 * where blocks of one row have 0.98: the slowest multiprocessor decides); lines that leave the
 * caches first, of what is read or written (0.04 less). */
#include "library/rows.h"

static tk_val i32(const tk_rows *r, int64_t value) { return tk_k_i32(r->b, value); }

static void plain_op(const tk_rows *r, tk_kopcode code) {
    tk_kernel_op(r->b, code, 0, NULL, 0, NULL, tk_no_type());
}

/* ---- rows of later blocks ---- */

/* A piece of a row, as the thread that calls for it sees it. The row of a block alone is one piece;
 * of a row that blocks share a block has `held`. */
typedef struct piece {
    tk_val row, begin, vectors; /* begin: its first vector in the row */
} piece;

static int64_t pieces_of_row(const tk_rows *r) { return r->cluster > 1 ? r->held : 1; }

static piece piece_of(const tk_rows *r, tk_val first) {
    tk_b *b = r->b;
    tk_val group = tk_k_and(b, r->thread, i32(r, r->of_block - 1));
    piece p = {.row = tk_k_add(b, first, tk_k_wide(b, group)), i32(r, 0), r->all_vectors};
    if (r->cluster > 1) {
        tk_val number = tk_k_ushr(b, r->thread, tk_rows_log2(r, r->of_block));
        tk_val of_block = tk_k_mul(b, tk_k_cluster_block(b), i32(r, r->threads));
        p.begin = tk_k_add(b, tk_k_mul(b, number, i32(r, r->all_threads)), of_block);
        tk_val left = tk_k_sub(b, r->all_vectors, p.begin);
        p.vectors = tk_k_smin(b, left, i32(r, r->threads));
    }
    return p;
}

/* Calls for the rows of the block `prefetch` behind this one. */
static void call_for(const tk_rows *r, tk_rows_stream source, int64_t blocks) {
    tk_b *b = r->b;
    tk_val first = tk_k_add(b, tk_rows_first(r), tk_k_i64(b, blocks * r->of_block));
    tk_val pieces = i32(r, pieces_of_row(r) * r->of_block);
    tk_kernel_if(b, tk_k_icmp(b, "slt", r->thread, pieces));
    piece p = piece_of(r, first);
    tk_val exists = tk_k_icmp(b, "slt", p.row, r->rows),
           some = tk_k_icmp(b, "sgt", p.vectors, i32(r, 0));
    tk_kernel_if(b, tk_k_and(b, exists, some));
    tk_val column = tk_k_mul(b, p.begin, i32(r, r->lanes));
    tk_val from = tk_k_offset(b, source.tensor, tk_k_place(b, p.row, source.pitch, column));
    tk_val bytes = tk_k_mul(b, p.vectors, i32(r, 16));
    tk_op3(b, TK_KOP_bulk_prefetch, from, bytes, NULL);
    tk_k_end(b);
    tk_k_end(b);
}

void tk_rows_call_when_met(tk_rows *r) {
    for (size_t i = 0; i < r->n_streams; i++) call_for(r, r->streams[i], r->prefetch);
    r->n_streams = 0;
}

/* ---- the launch before ---- */

static void prefetch(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                     tk_val *carried) {
    (void)carried, (void)number;
    if (condition) tk_kernel_if(r->b, condition);
    tk_val place = tk_k_offset(r->b, (tk_val)arg, at);
    tk_kernel_op(r->b, TK_KOP_prefetch, 1, &place, 0, NULL, tk_no_type());
    if (condition) tk_k_end(r->b);
}

/* This block's own rows: by bulk copies (of sm_90) where others are called for in that way. */
static void call_early(const tk_rows *r, tk_rows_stream stream) {
    if (r->prefetch)
        call_for(r, stream, 0);
    else
        tk_rows_each(r, 0, NULL, prefetch, tk_rows_pointer(r, stream.tensor, stream.pitch));
}

void tk_rows_wait(tk_rows *r, size_t count, const tk_rows_stream *streams) {
    if (r->overlap) {
        tk_kernel_programmatic(r->b);
        plain_op(r, TK_KOP_grid_launch);
        for (size_t i = 0; i < count && r->overlap > 1 && r->held; i++) call_early(r, streams[i]);
    }
    if (r->overlap == 1) plain_op(r, TK_KOP_grid_wait);
    r->n_streams = r->prefetch ? count : 0;
    for (size_t i = 0; i < r->n_streams; i++) r->streams[i] = streams[i];
    if (!r->late || tk_rows_are_warps(r)) tk_rows_call_when_met(r);
    if (r->overlap > 1) plain_op(r, TK_KOP_grid_wait);
}

void tk_rows_overlap(tk_b *b, const tk_library_schedule *schedule) {
    if (!schedule->overlap) return;
    tk_kernel_programmatic(b);
    tk_kernel_op(b, TK_KOP_grid_launch, 0, NULL, 0, NULL, tk_no_type());
    tk_kernel_op(b, TK_KOP_grid_wait, 0, NULL, 0, NULL, tk_no_type());
}
