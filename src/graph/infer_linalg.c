/* Shape inference of linear algebra: operands are stacks of matrices, the last two axes. */
#include "base/error.h"
#include "graph/infer.h"
#include "graph/text.h"

/* LAPACK counts with an int. */
#define LONGEST INT32_MAX

static tk_status check_matrix(const tk_infer *infer, const tk_node *a) {
    const tk_op_info *op = tk_op_of(infer->op);
    bool fits = a->dtype == TK_FLOAT32 || a->dtype == TK_FLOAT64 ||
                (op->accept == TK_ACCEPT_INEXACT && a->dtype == TK_COMPLEX64);
    if (!fits)
        return tk_fail(TK_DTYPE_ERROR, "%s: operand is %s, expected float32 or float64%s",
                       tk_op_title(infer->op), tk_text_node(a),
                       op->accept == TK_ACCEPT_INEXACT ? ", or complex64" : "");
    if (a->rank < 2)
        return tk_fail(TK_SHAPE_ERROR, "%s: operand is %s, expected a matrix in the last two axes",
                       tk_op_title(infer->op), tk_text_node(a));
    if (a->shape[a->rank - 1] > LONGEST || a->shape[a->rank - 2] > LONGEST)
        return tk_fail(TK_OVERFLOW, "%s: matrix of %s, expected at most %d rows and columns",
                       tk_op_title(infer->op), tk_text_node(a), LONGEST);
    return TK_OK;
}

static tk_status need_matrix(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 1, 1));
    TK_TRY(check_matrix(infer, infer->inputs[0]));
    tk_infer_like(infer, infer->inputs[0]);
    return TK_OK;
}

static tk_status check_square(const tk_infer *infer, const tk_node *a) {
    if (a->shape[a->rank - 1] == a->shape[a->rank - 2]) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "%s: operand is %s, expected square matrices",
                   tk_op_title(infer->op), tk_text_node(a));
}

static tk_status need_square(tk_infer *infer) {
    TK_TRY(need_matrix(infer));
    return check_square(infer, infer->inputs[0]);
}

tk_status tk_shape_square(tk_infer *infer) { return need_square(infer); }

/* a [..., N, N], b [..., N, K]. */
tk_status tk_shape_solve(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 2, 2));
    const tk_node *a = infer->inputs[0], *b = infer->inputs[1];
    for (int i = 0; i < 2; i++) TK_TRY(check_matrix(infer, infer->inputs[i]));
    TK_TRY(check_square(infer, a));
    bool fits = a->rank == b->rank && a->shape[a->rank - 1] == b->shape[b->rank - 2];
    for (int i = 0; fits && i < a->rank - 2; i++) fits = a->shape[i] == b->shape[i];
    if (!fits)
        return tk_fail(TK_SHAPE_ERROR, "%s: a is %s and b %s, expected [..., N, N] and [..., N, K]",
                       tk_op_title(infer->op), tk_text_node(a), tk_text_node(b));
    tk_infer_like(infer, b);
    return TK_OK;
}

/* ---- several outputs, or one of another shape ---- */

static tk_dtype real_of(tk_dtype dtype) { return dtype == TK_COMPLEX64 ? TK_FLOAT32 : dtype; }

/* The operand's shape with the last two lengths changed; below 0: no such axis. */
static void put(tk_infer *infer, int index, tk_dtype dtype, int64_t rows, int64_t columns) {
    int64_t shape[TK_MAX_RANK];
    const tk_node *a = infer->inputs[0];
    int rank = a->rank - 2;
    for (int i = 0; i < rank; i++) shape[i] = a->shape[i];
    if (rows >= 0) shape[rank++] = rows;
    if (columns >= 0) shape[rank++] = columns;
    tk_infer_output(infer, index, dtype, rank, shape);
}

typedef struct sides {
    int64_t rows, columns, least;
    tk_dtype dtype;
} sides;

static sides sides_of(const tk_node *a) {
    sides s = {a->shape[a->rank - 2], a->shape[a->rank - 1], 0, (tk_dtype)a->dtype};
    s.least = s.rows < s.columns ? s.rows : s.columns;
    return s;
}

tk_status tk_shape_qr(tk_infer *infer) {
    TK_TRY(need_matrix(infer));
    sides s = sides_of(infer->inputs[0]);
    put(infer, 0, s.dtype, s.rows, s.least);
    put(infer, 1, s.dtype, s.least, s.columns);
    return tk_infer_outputs(infer, 2);
}

tk_status tk_shape_svd(tk_infer *infer) {
    TK_TRY(need_matrix(infer));
    sides s = sides_of(infer->inputs[0]);
    put(infer, 0, s.dtype, s.rows, s.least);
    put(infer, 1, real_of(s.dtype), s.least, -1);
    put(infer, 2, s.dtype, s.least, s.columns);
    return tk_infer_outputs(infer, 3);
}

tk_status tk_shape_svd_values(tk_infer *infer) {
    TK_TRY(need_matrix(infer));
    sides s = sides_of(infer->inputs[0]);
    put(infer, 0, real_of(s.dtype), s.least, -1);
    return tk_infer_outputs(infer, 1);
}

tk_status tk_shape_complement(tk_infer *infer) {
    TK_TRY(need_matrix(infer));
    sides s = sides_of(infer->inputs[0]);
    if (s.rows < s.columns)
        return tk_fail(TK_SHAPE_ERROR, "%s: operand is %s, expected no more columns than rows",
                       tk_op_title(infer->op), tk_text_node(infer->inputs[0]));
    put(infer, 0, s.dtype, s.rows, s.rows - s.columns);
    return tk_infer_outputs(infer, 1);
}

tk_status tk_shape_eigh(tk_infer *infer) {
    TK_TRY(need_square(infer));
    sides s = sides_of(infer->inputs[0]);
    put(infer, 0, real_of(s.dtype), s.rows, -1);
    put(infer, 1, s.dtype, s.rows, s.rows);
    return tk_infer_outputs(infer, 2);
}

tk_status tk_shape_eig(tk_infer *infer) {
    TK_TRY(need_square(infer));
    sides s = sides_of(infer->inputs[0]);
    put(infer, 0, TK_COMPLEX64, s.rows, -1);
    put(infer, 1, TK_COMPLEX64, s.rows, s.rows);
    return tk_infer_outputs(infer, 2);
}

tk_status tk_shape_eigvals(tk_infer *infer) {
    TK_TRY(need_square(infer));
    sides s = sides_of(infer->inputs[0]);
    put(infer, 0, infer->op == TK_OP_eigvals_general ? TK_COMPLEX64 : real_of(s.dtype), s.rows, -1);
    return tk_infer_outputs(infer, 1);
}

tk_status tk_shape_lu(tk_infer *infer) {
    TK_TRY(need_matrix(infer));
    sides s = sides_of(infer->inputs[0]);
    put(infer, 0, s.dtype, s.rows, s.columns);
    put(infer, 1, TK_UINT32, s.least, -1);
    put(infer, 2, TK_UINT32, s.rows, -1);
    return tk_infer_outputs(infer, 3);
}

tk_status tk_shape_pinv(tk_infer *infer) {
    TK_TRY(need_matrix(infer));
    sides s = sides_of(infer->inputs[0]);
    put(infer, 0, s.dtype, s.columns, s.rows);
    return tk_infer_outputs(infer, 1);
}

tk_status tk_shape_det(tk_infer *infer) {
    TK_TRY(need_square(infer));
    put(infer, 0, (tk_dtype)infer->inputs[0]->dtype, -1, -1);
    return tk_infer_outputs(infer, 1);
}

tk_status tk_shape_slogdet(tk_infer *infer) {
    TK_TRY(need_square(infer));
    for (int i = 0; i < 2; i++) put(infer, i, (tk_dtype)infer->inputs[0]->dtype, -1, -1);
    return tk_infer_outputs(infer, 2);
}
