/* Gradients and batching of linear algebra. Rules use the op's own results, so second derivatives
 * are derivatives of these rules.
 *
 * Ops that read one triangle of a symmetric matrix give that triangle the cotangents of both, which
 * is their derivative; the builders make it symmetric again. Where a formula divides by a
 * difference of eigenvalues or singular values that is 0, the quotient is 0: right for functions
 * that do not depend on the choice of basis. Sources: Giles, "An extended collection of matrix
 * derivative results" (2008); Walter and Lehmann, "Algorithmic differentiation of linear algebra
 * functions" (2010); Golub and Pereyra (1973) for the pseudo-inverse. */
#include "graph/batch_rule.h"
#include "graph/vjp_rules.h"

static tk_node *turned(tk_builder *b, tk_node *a) { return tkb_swapaxes(b, a, -1, -2); }

static tk_node *adjoint(tk_builder *b, tk_node *a) { return tkb_conj(b, turned(b, a)); }

static tk_node *product(tk_builder *b, tk_node *a, tk_node *c) { return tkb_matmul(b, a, c); }

static tk_node *triangle_solve(tk_builder *b, tk_node *a, tk_node *c, bool upper) {
    tk_attrs_triangle attrs = {.upper = upper};
    return tkb_node2(b, TK_OP_solve_triangle, a, c, &attrs);
}

/* a diag(s) and diag(s) a. */
static tk_node *columns_by(tk_builder *b, tk_node *a, tk_node *s) {
    return tkb_multiply(b, a, tkb_expand_dims(b, s, TK_AXES(-2)));
}

static tk_node *rows_by(tk_builder *b, tk_node *a, tk_node *s) {
    return tkb_multiply(b, a, tkb_expand_dims(b, s, TK_AXES(-1)));
}

/* diag(s). */
static tk_node *diagonal(tk_builder *b, tk_node *s) {
    if (tk_node_is_error(s)) return s;
    int64_t n = s->shape[s->rank - 1];
    return columns_by(b, tkb_eye(b, n, n, 0, (tk_dtype)s->dtype), s);
}

static tk_node *plus(tk_builder *b, tk_node *sum, tk_node *term) {
    return sum ? tkb_add(b, sum, term) : term;
}

/* 1 / a, 0 where a is 0. */
static tk_node *quotient(tk_builder *b, tk_node *a) {
    tk_node *is_zero = tkb_equal(b, a, tkb_scalar_like(b, a, 0));
    tk_node *safe = tkb_where(b, is_zero, tkb_scalar_like(b, a, 1), a);
    return tkb_where(b, is_zero, tkb_scalar_like(b, a, 0), tkb_reciprocal(b, safe));
}

/* 1 / (s[j] - s[i]) as a matrix. */
static tk_node *gaps(tk_builder *b, tk_node *s) {
    return quotient(
        b, tkb_subtract(b, tkb_expand_dims(b, s, TK_AXES(-2)), tkb_expand_dims(b, s, TK_AXES(-1))));
}

static tk_node *skew(tk_builder *b, tk_node *a) { return tkb_subtract(b, a, turned(b, a)); }

/* What the lower triangle of a symmetric matrix gets from the cotangent of all of it. */
static tk_node *to_lower(tk_builder *b, tk_node *a) {
    return tkb_subtract(b, tkb_tril(b, tkb_add(b, a, adjoint(b, a)), 0),
                        tkb_tril(b, tkb_triu(b, a, 0), 0));
}

/* ---- inverses and systems ---- */

void tk_vjp_inverse(tk_vjp_rule *v) {
    tk_node *across = turned(v->b, tkb_output(v->b, v->node, 0));
    v->grads[0] = tkb_negative(v->b, product(v->b, product(v->b, across, v->ct), across));
}

/* The cotangent of b is x of a' x = ct; that of a follows from it and the solution. */
static void of_system(tk_vjp_rule *v, tk_node *grad) {
    tk_node *solution = tkb_output(v->b, v->node, 0);
    v->grads[1] = grad;
    v->grads[0] = tkb_negative(v->b, product(v->b, grad, turned(v->b, solution)));
}

void tk_vjp_solve(tk_vjp_rule *v) {
    of_system(v, tkb_node2(v->b, TK_OP_solve_square, turned(v->b, v->inputs[0]), v->ct, NULL));
}

void tk_vjp_solve_triangle(tk_vjp_rule *v) {
    const tk_attrs_triangle *attrs = tk_node_attrs(v->node);
    of_system(v, triangle_solve(v->b, turned(v->b, v->inputs[0]), v->ct, !attrs->upper));
    v->grads[0] = attrs->upper ? tkb_triu(v->b, v->grads[0], 0) : tkb_tril(v->b, v->grads[0], 0);
}

/* With p = pinv(a), e = 1 - a p and f = 1 - p a:
 * -p' g p' + e g' p p' + p' p g' f. */
void tk_vjp_pinv(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *p = tkb_output(b, v->node, 0), *a = v->inputs[0], *across = turned(b, p);
    tk_node *back = turned(b, v->ct);
    tk_node *outer = product(b, product(b, across, v->ct), across);
    tk_node *left = product(b, product(b, back, p), across);
    left = tkb_subtract(b, left, product(b, a, product(b, p, left)));
    tk_node *right = product(b, product(b, across, p), back);
    right = tkb_subtract(b, right, product(b, product(b, right, p), a));
    v->grads[0] = tkb_subtract(b, tkb_add(b, left, right), outer);
}

/* ---- determinants ---- */

static tk_node *times_inverse(tk_vjp_rule *v, tk_node *factor) {
    tk_node *inverse = tkb_node1(v->b, TK_OP_inverse, v->inputs[0], NULL);
    return tkb_multiply(v->b, tkb_expand_dims(v->b, factor, TK_AXES(-1, -2)),
                        turned(v->b, inverse));
}

void tk_vjp_det(tk_vjp_rule *v) {
    v->grads[0] = times_inverse(v, tkb_multiply(v->b, v->ct, tkb_output(v->b, v->node, 0)));
}

void tk_vjp_slogdet(tk_vjp_rule *v) {
    if (v->cotangents[1]) v->grads[0] = times_inverse(v, v->cotangents[1]);
}

/* ---- factorisations ---- */

/* The lower triangle, the diagonal halved. */
static tk_node *half_lower(tk_builder *b, tk_node *a) {
    return tkb_scale(b, tkb_add(b, tkb_tril(b, a, 0), tkb_tril(b, a, -1)), 0.5);
}

void tk_vjp_cholesky(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *across = turned(b, tkb_output(b, v->node, 0));
    tk_node *inner = half_lower(b, product(b, across, v->ct));
    tk_node *grad = triangle_solve(b, across, inner, true);
    grad = triangle_solve(b, across, turned(b, grad), true);
    grad = tkb_scale(b, tkb_add(b, grad, turned(b, grad)), 0.5);
    v->grads[0] = to_lower(b, grad);
}

/* a with q and r for at least as many rows as columns; cotangents may be absent. */
static tk_node *qr_grad(tk_builder *b, tk_node *q, tk_node *r, tk_node *grad_q, tk_node *grad_r) {
    tk_node *inner = grad_r ? product(b, r, turned(b, grad_r)) : NULL;
    if (grad_q) {
        tk_node *term = tkb_negative(b, product(b, turned(b, grad_q), q));
        inner = plus(b, inner, term);
    }
    tk_node *mirrored = tkb_add(b, tkb_tril(b, inner, 0), turned(b, tkb_tril(b, inner, -1)));
    tk_node *sum = product(b, q, mirrored);
    if (grad_q) sum = tkb_add(b, grad_q, sum);
    return turned(b, triangle_solve(b, r, turned(b, sum), true));
}

/* The first columns of a, or those from there on. */
static tk_node *columns(tk_builder *b, tk_node *a, int64_t first, int64_t last) {
    return tk_node_is_error(a) ? a : tkb_range(b, a, a->rank - 1, first, last);
}

/* Of a wide matrix [x y] with r = [u w]: x = q u, y = q w. */
void tk_vjp_qr(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *q = tkb_output(b, v->node, 0), *r = tkb_output(b, v->node, 1);
    tk_node *grad_q = v->cotangents[0], *grad_r = v->cotangents[1];
    int rank = v->inputs[0]->rank;
    int64_t rows = v->inputs[0]->shape[rank - 2], all = v->inputs[0]->shape[rank - 1];
    if (all <= rows) {
        v->grads[0] = qr_grad(b, q, r, grad_q, grad_r);
        return;
    }
    tk_node *beside = columns(b, v->inputs[0], rows, all), *grad_u = NULL, *grad_w = NULL;
    if (grad_r) {
        grad_u = columns(b, grad_r, 0, rows);
        grad_w = columns(b, grad_r, rows, all);
        grad_q = plus(b, grad_q, product(b, beside, turned(b, grad_w)));
    }
    tk_node *grad_x = qr_grad(b, q, columns(b, r, 0, rows), grad_q, grad_u);
    tk_node *grad_y = grad_w ? product(b, q, grad_w) : tkb_zeros_of(b, beside);
    v->grads[0] = tkb_join2(b, grad_x, grad_y, rank - 1);
}

/* ---- singular values ---- */

void tk_vjp_svd_values(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *parts = tkb_node1(b, TK_OP_svd_thin, v->inputs[0], NULL);
    tk_node *u = tkb_output(b, parts, 0), *across = tkb_output(b, parts, 2);
    v->grads[0] = product(b, columns_by(b, u, v->ct), across);
}

/* 1 / (s[j]^2 - s[i]^2) */
static tk_node *square_gaps(tk_builder *b, tk_node *s) {
    tk_node *sum =
        tkb_add(b, tkb_expand_dims(b, s, TK_AXES(-2)), tkb_expand_dims(b, s, TK_AXES(-1)));
    return tkb_multiply(b, gaps(b, s), quotient(b, sum));
}

/* a less its part in the columns of u: a - u u' a. */
static tk_node *outside(tk_builder *b, tk_node *u, tk_node *a) {
    return tkb_subtract(b, a, product(b, u, product(b, turned(b, u), a)));
}

void tk_vjp_svd(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    if (tk_is_complex(v->inputs[0]) && (v->cotangents[0] || v->cotangents[2])) {
        tk_vjp_refuse(v);
        return;
    }
    tk_node *u = tkb_output(b, v->node, 0), *s = tkb_output(b, v->node, 1);
    tk_node *across = tkb_output(b, v->node, 2), *along = turned(b, across);
    tk_node *grad_u = v->cotangents[0], *grad_v = v->cotangents[2];
    tk_node *inner = v->cotangents[1] ? diagonal(b, v->cotangents[1]) : NULL, *outer = NULL;
    tk_node *factor = square_gaps(b, s), *inverse = quotient(b, s);
    if (grad_u) {
        tk_node *turn = tkb_multiply(b, factor, skew(b, product(b, turned(b, u), grad_u)));
        inner = plus(b, inner, columns_by(b, turn, s));
        outer = product(b, columns_by(b, outside(b, u, grad_u), inverse), across);
    }
    if (grad_v) {
        grad_v = turned(b, grad_v);
        tk_node *turn = tkb_multiply(b, factor, skew(b, product(b, across, grad_v)));
        inner = plus(b, inner, rows_by(b, turn, s));
        tk_node *rest = turned(b, outside(b, along, grad_v));
        outer = plus(b, outer, product(b, columns_by(b, u, inverse), rest));
    }
    tk_node *grad = product(b, product(b, u, inner), across);
    v->grads[0] = outer ? tkb_add(b, grad, outer) : grad;
}

/* The basis of what is left turns with the columns: d(c) = -a d(a)' c. */
void tk_vjp_complement(tk_vjp_rule *v) {
    if (tk_is_complex(v->node)) {
        tk_vjp_refuse(v);
        return;
    }
    tk_node *rest = tkb_output(v->b, v->node, 0);
    tk_node *back = product(v->b, turned(v->b, v->ct), v->inputs[0]);
    v->grads[0] = tkb_negative(v->b, product(v->b, rest, back));
}

/* ---- eigenvalues ---- */

static tk_node *eigh_grad(tk_builder *b, tk_node *vectors, tk_node *inner) {
    return to_lower(b, product(b, product(b, vectors, inner), adjoint(b, vectors)));
}

/* The part of a that moves vectors among themselves is its skew half: the other changes their
 * length, which they do not. */
void tk_vjp_eigh(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *values = tkb_output(b, v->node, 0), *vectors = tkb_output(b, v->node, 1);
    tk_node *inner = v->cotangents[0] ? diagonal(b, v->cotangents[0]) : NULL;
    if (v->cotangents[1]) {
        tk_node *turn = product(b, adjoint(b, vectors), v->cotangents[1]);
        turn = tkb_multiply(b, gaps(b, values),
                            tkb_scale(b, tkb_subtract(b, turn, adjoint(b, turn)), 0.5));
        inner = plus(b, inner, turn);
    }
    v->grads[0] = eigh_grad(b, vectors, tkb_astype(b, inner, (tk_dtype)v->inputs[0]->dtype));
}

void tk_vjp_eigvalsh(tk_vjp_rule *v) {
    tk_node *parts = tkb_node1(v->b, TK_OP_eigh_lower, v->inputs[0], NULL);
    tk_node *inner = tkb_astype(v->b, diagonal(v->b, v->ct), (tk_dtype)v->inputs[0]->dtype);
    v->grads[0] = eigh_grad(v->b, tkb_output(v->b, parts, 1), inner);
}

/* ---- batching ---- */

/* Ops with leading axes of their own take the batch as one more. */
void tk_batch_leading(tk_batch *batch) {
    tk_batch_apply(batch, batch->node->n_inputs, tk_batch_operands(batch), batch->node->attrs);
}
