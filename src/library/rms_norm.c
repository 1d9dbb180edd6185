/* RMS norm: y = x rstd weight, rstd = 1 / sqrt(mean(x^2) + eps), over rows.
 *
 * Tile: rows_per_block rows of threads_per_row threads; a thread has the vectors lane, lane +
 * threads_per_row, ... of its row. Held, it keeps them in registers between the sum and the result;
 * else the row is read twice, the second time from cache.
 *
 *     block of 128 threads, threads_per_row = 32:   row 0 | row 1 | row 2 | row 3
 *                                                   a warp each
 *
 * Shared memory: a float for each warp when a row has more than one; the barrier orders these
 * floats between the warps of a row. Bytes: x and y once (x twice when not held), weight from
 * cache. FLOPs: 4 an element. Roofline: bandwidth: 0.99 of the copy (H200, f16,
 * 32768 x 4096). Of 2048 x 4096 f32 in a graph a launch takes 17.8 us, 16.0 of them at the copy's
 * rate; blocks of 128 to 1024 threads, of one or two rows, of clusters, rows by bulk copies and the
 * first blocks calling for more rows before they wait were slower (17.8 to 24). */
#include "library/norm.h"

typedef struct norm {
    tk_rows r;
    tk_val x, y, weight; /* rows, and a vector or NULL */
    tk_val rstd;
    tk_val held[TK_ROWS_MOST_HELD][TK_LIBRARY_MOST_LANES];
    bool early; /* weights are read with x, while registers allow: nobody waits for them later */
    tk_val weights[TK_ROWS_MOST_HELD];
} norm;

static void add_squares(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                        tk_val *sum) {
    norm *n = arg;
    tk_val loose[TK_LIBRARY_MOST_LANES], squares[TK_LIBRARY_MOST_LANES],
        *x = number < 0 ? loose : n->held[number];
    tk_rows_load(r, n->x, at, condition, x);
    if (n->early) n->weights[number] = tk_rows_load_raw(r, n->weight, at, condition, NULL);
    for (int i = 0; i < r->lanes; i++) squares[i] = tk_k_mul(r->b, x[i], x[i]);
    *sum = tk_k_add(r->b, *sum, tk_rows_tree(r, squares));
}

static void write(void *arg, const tk_rows *r, int number, tk_val at, tk_val condition,
                  tk_val *carried) {
    norm *n = arg;
    tk_val loose[TK_LIBRARY_MOST_LANES], y[TK_LIBRARY_MOST_LANES], weight[TK_LIBRARY_MOST_LANES],
        *x = number < 0 ? loose : n->held[number];
    (void)carried;
    if (number < 0) tk_rows_load(r, n->x, at, condition, x);
    if (n->early) tk_rows_widen(r, n->weights[number], weight);
    if (n->weight && !n->early) tk_rows_load(r, n->weight, at, condition, weight);
    for (int i = 0; i < r->lanes; i++) {
        y[i] = tk_k_mul(r->b, x[i], n->rstd);
        if (n->weight) y[i] = tk_k_mul(r->b, y[i], weight[i]);
    }
    tk_rows_store(r, n->y, at, condition, y);
}

/* 1 / sqrt(sum / columns + eps) */
tk_val tk_norm_rstd(const tk_rows *r, tk_val sum, tk_val eps) {
    tk_val mean = tk_k_div(r->b, sum, tk_k_float_of(r->b, r->columns));
    return tk_k_rcp(r->b, tk_k_sqrt(r->b, tk_k_add(r->b, mean, eps)));
}

static void put_body(norm *n, tk_val eps, tk_val rstd_out) {
    tk_b *b = n->r.b;
    tk_val sum = tk_k_f32(b, 0);
    tk_rows_each(&n->r, 1, &sum, add_squares, n);
    tk_rows_reduce(&n->r, TK_KOP_add, 1, &sum);
    n->rstd = tk_norm_rstd(&n->r, sum, eps);
    if (rstd_out) {
        tk_kernel_if(b, tk_rows_leads(&n->r));
        tk_k_store(b, tk_k_offset(b, rstd_out, n->r.row), n->rstd);
        tk_k_end(b);
    }
    tk_rows_each(&n->r, 0, NULL, write, n);
}

/* ---- the call ---- */

enum { X, WEIGHT, Y, RSTD };

tk_status tk_norm_check_weight(const tk_library_call *call, size_t index, int64_t columns,
                               const char *role) {
    const tk_library_tensor *w = &call->tensors[index];
    if (tk_library_is_missing(w)) return TK_OK;
    TK_TRY(tk_library_need_float(call, index, role));
    if (w->rank == 1 && w->shape[0] == columns && (w->stride[0] == 1 || columns <= 1)) return TK_OK;
    return tk_library_fail(call, TK_SHAPE_ERROR,
                           "%s is no contiguous vector of the %lld columns of x", role,
                           (long long)columns);
}

static tk_status check_rstd(const tk_library_call *call, int64_t rows) {
    const tk_library_tensor *t = &call->tensors[RSTD];
    if (tk_library_is_missing(t)) return TK_OK;
    if (t->element == TK_K_F32 && tk_library_size(t) == rows && tk_library_is_contiguous(t))
        return TK_OK;
    return tk_library_fail(call, TK_SHAPE_ERROR,
                           "rstd is no contiguous tensor of f32 with an element for each of the "
                           "%lld rows",
                           (long long)rows);
}

static tk_status check(const tk_library_call *call, tk_row_shape *x, tk_row_shape *y) {
    TK_TRY(tk_library_need_float(call, X, "x"));
    TK_TRY(tk_library_need_float(call, Y, "y"));
    TK_TRY(tk_library_need_same(call, X, "x", Y, "y"));
    TK_TRY(tk_rows_shape(call, X, "x", x));
    TK_TRY(tk_rows_shape(call, Y, "y", y));
    TK_TRY(tk_norm_check_weight(call, WEIGHT, x->columns, "weight"));
    return check_rstd(call, x->rows);
}

tk_status tk_library_make_rms_norm(const tk_library_call *call, tk_library_plan *plan) {
    const tk_library_tensor *t = call->tensors;
    bool weighted = !tk_library_is_missing(&t[WEIGHT]);
    tk_row_shape x, y;
    tk_library_kernel k;
    norm n = {0};
    TK_TRY(check(call, &x, &y));
    tk_row_operand operands[] = {{X, x.pitch}, {Y, y.pitch}, {WEIGHT, 0}};
    int lanes = tk_rows_lanes(call, x.columns, weighted ? 3 : 2, operands);
    TK_TRY(tk_rows_check(call, x.rows, x.columns, lanes));
    TK_TRY(tk_rows_check_prefetch(call, 1, lanes));
    TK_TRY(tk_library_open(plan, call->name, &k));
    tk_val of_x = tk_library_bind_rows(&k, "x", X, t, TK_KACCESS_READ, lanes);
    tk_val of_y = tk_library_bind_rows(&k, "y", Y, t, TK_KACCESS_WRITE, lanes);
    if (weighted) n.weight = tk_library_bind_rows(&k, "weight", WEIGHT, t, TK_KACCESS_READ, lanes);
    tk_val rstd = tk_library_is_missing(&t[RSTD])
                      ? NULL
                      : tk_library_bind_tensor(&k, "rstd", RSTD, TK_K_F32, TK_KACCESS_WRITE, 4);
    tk_val eps = tk_library_bind_f32(&k, "eps", call->numbers[0]);
    tk_val x_pitch = tk_library_bind_int(&k, "x_pitch", TK_K_I64, x.pitch);
    tk_val y_pitch = tk_library_bind_int(&k, "y_pitch", TK_K_I64, y.pitch);
    tk_rows_stream rows_of_x = {of_x, x_pitch};
    n.early = weighted && call->schedule->held && call->schedule->held * lanes <= 32;
    tk_rows_start(&n.r, &k, call, x.rows, x.columns, lanes);
    n.x = tk_rows_pointer(&n.r, of_x, x_pitch);
    tk_rows_wait(&n.r, 1, &rows_of_x);
    n.y = tk_rows_pointer(&n.r, of_y, y_pitch);
    put_body(&n, eps, rstd);
    return tk_library_close(&k);
}

void tk_library_choose_rms_norm(const tk_library_tensor *tensors, tk_library_schedule *out) {
    tk_rows_choose(tensors, 3, 1, out);
    if (out->cluster == 4 && out->held <= 4) {
        out->threads_per_row *= 4; /* one reading: a block that waits for no other is faster */
        out->cluster = 1;
    }
    tk_rows_choose_prefetch(tensors, 3, 2, out);
}
