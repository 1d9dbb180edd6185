/* Gradient rules of elementwise ops: ct * conj(f'), with f' in terms of operand and result.
 *
 * Where a derivative is 0 times infinity at a point where the function is fine, the rule gives the
 * limit that keeps the rest of a gradient usable; the condition picks a safe operand and not a
 * finished value, so that second derivatives do not meet the NaN either. Ties of maximum and
 * minimum go to the second operand, as in MLX; a NaN operand gives no gradient there. */
#include <math.h>

#include "graph/vjp_rules.h"

#define PI 3.14159265358979323846
#define LN2 0.693147180559945309417
#define LN10 2.30258509299404568402

/* Gives operand 0 ct * conj(derivative). */
static void chain(tk_vjp_rule *v, tk_node *derivative) {
    v->grads[0] = tkb_multiply(v->b, v->ct, tkb_conj(v->b, derivative));
}

/* Gives operand 0 ct / conj(divisor). */
static void chain_over(tk_vjp_rule *v, tk_node *divisor) {
    v->grads[0] = tkb_divide(v->b, v->ct, tkb_conj(v->b, divisor));
}

static tk_node *plus(tk_vjp_rule *v, tk_node *a, double value) {
    return tkb_add(v->b, a, tkb_scalar_like(v->b, a, value));
}

static tk_node *from_one(tk_vjp_rule *v, tk_node *a) {
    return tkb_subtract(v->b, tkb_scalar_like(v->b, a, 1), a);
}

/* ---- one operand ---- */

/* z / |z|, and 0 at 0. */
static tk_node *direction(tk_builder *b, tk_node *z) {
    tk_node *length = tkb_abs(b, z);
    tk_node *zero = tkb_scalar_like(b, length, 0), *one = tkb_scalar_like(b, length, 1);
    return tkb_divide(b, z, tkb_where(b, tkb_equal(b, length, zero), one, length));
}

void tk_vjp_abs(tk_vjp_rule *v) {
    tk_node *a = v->inputs[0];
    tk_node *turn = tk_is_complex(a) ? direction(v->b, a) : tkb_sign(v->b, a);
    v->grads[0] = tkb_multiply(v->b, v->ct, turn);
}

/* y = z / |z|: (ct - y re(conj(y) ct)) / |z|, and 0 at 0. Real signs are constant. */
void tk_vjp_sign(tk_vjp_rule *v) {
    tk_node *a = v->inputs[0];
    if (!tk_is_complex(a)) return;
    tk_builder *b = v->b;
    tk_node *y = direction(b, a), *length = tkb_abs(b, a);
    tk_node *along = tkb_multiply(b, y, tkb_real(b, tkb_multiply(b, tkb_conjugate(b, y), v->ct)));
    tk_node *is_zero = tkb_equal(b, length, tkb_scalar_like(b, length, 0));
    tk_node *safe = tkb_where(b, is_zero, tkb_scalar_like(b, length, 1), length);
    v->grads[0] = tkb_where(b, is_zero, tkb_scalar_like(b, a, 0),
                            tkb_divide(b, tkb_subtract(b, v->ct, along), safe));
}

void tk_vjp_negative(tk_vjp_rule *v) { v->grads[0] = tkb_negative(v->b, v->ct); }

void tk_vjp_sqrt(tk_vjp_rule *v) { chain_over(v, tkb_scale(v->b, v->node, 2)); }

void tk_vjp_rsqrt(tk_vjp_rule *v) {
    chain(v, tkb_scale(v->b, tkb_divide(v->b, v->node, v->inputs[0]), -0.5));
}

void tk_vjp_exp(tk_vjp_rule *v) { chain(v, v->node); }

void tk_vjp_expm1(tk_vjp_rule *v) { chain(v, tkb_exp(v->b, v->inputs[0])); }

void tk_vjp_log(tk_vjp_rule *v) { chain_over(v, v->inputs[0]); }

void tk_vjp_log1p(tk_vjp_rule *v) { chain_over(v, plus(v, v->inputs[0], 1)); }

void tk_vjp_log2(tk_vjp_rule *v) { chain_over(v, tkb_scale(v->b, v->inputs[0], LN2)); }

void tk_vjp_log10(tk_vjp_rule *v) { chain_over(v, tkb_scale(v->b, v->inputs[0], LN10)); }

void tk_vjp_sin(tk_vjp_rule *v) { chain(v, tkb_cos(v->b, v->inputs[0])); }

void tk_vjp_cos(tk_vjp_rule *v) { chain(v, tkb_negative(v->b, tkb_sin(v->b, v->inputs[0]))); }

void tk_vjp_tan(tk_vjp_rule *v) { chain(v, plus(v, tkb_square(v->b, v->node), 1)); }

void tk_vjp_arcsin(tk_vjp_rule *v) {
    chain(v, tkb_rsqrt(v->b, from_one(v, tkb_square(v->b, v->inputs[0]))));
}

void tk_vjp_arccos(tk_vjp_rule *v) {
    chain(v, tkb_negative(v->b, tkb_rsqrt(v->b, from_one(v, tkb_square(v->b, v->inputs[0])))));
}

void tk_vjp_arctan(tk_vjp_rule *v) { chain_over(v, plus(v, tkb_square(v->b, v->inputs[0]), 1)); }

void tk_vjp_sinh(tk_vjp_rule *v) { chain(v, tkb_cosh(v->b, v->inputs[0])); }

void tk_vjp_cosh(tk_vjp_rule *v) { chain(v, tkb_sinh(v->b, v->inputs[0])); }

void tk_vjp_tanh(tk_vjp_rule *v) { chain(v, from_one(v, tkb_square(v->b, v->node))); }

void tk_vjp_arcsinh(tk_vjp_rule *v) {
    chain(v, tkb_rsqrt(v->b, plus(v, tkb_square(v->b, v->inputs[0]), 1)));
}

/* Two roots, not one of z^2 - 1: for complex z the product has the branch of arccosh. */
void tk_vjp_arccosh(tk_vjp_rule *v) {
    tk_node *low = tkb_rsqrt(v->b, plus(v, v->inputs[0], -1));
    chain(v, tkb_multiply(v->b, low, tkb_rsqrt(v->b, plus(v, v->inputs[0], 1))));
}

void tk_vjp_arctanh(tk_vjp_rule *v) { chain_over(v, from_one(v, tkb_square(v->b, v->inputs[0]))); }

void tk_vjp_erf(tk_vjp_rule *v) {
    tk_node *bell = tkb_exp(v->b, tkb_negative(v->b, tkb_square(v->b, v->inputs[0])));
    chain(v, tkb_scale(v->b, bell, 2 / sqrt(PI)));
}

void tk_vjp_erfinv(tk_vjp_rule *v) {
    chain(v, tkb_scale(v->b, tkb_exp(v->b, tkb_square(v->b, v->node)), sqrt(PI) / 2));
}

void tk_vjp_sigmoid(tk_vjp_rule *v) { chain(v, tkb_multiply(v->b, v->node, from_one(v, v->node))); }

void tk_vjp_conjugate(tk_vjp_rule *v) { v->grads[0] = tkb_conj(v->b, v->ct); }

void tk_vjp_real(tk_vjp_rule *v) {
    v->grads[0] = tkb_astype(v->b, v->ct, (tk_dtype)v->inputs[0]->dtype);
}

void tk_vjp_imag(tk_vjp_rule *v) {
    if (!tk_is_complex(v->inputs[0])) return;
    v->grads[0] = tkb_multiply(v->b, v->ct, tkb_const_complex(v->b, 0, 1));
}

void tk_vjp_astype(tk_vjp_rule *v) {
    tk_dtype dtype = (tk_dtype)v->inputs[0]->dtype;
    tk_node *ct =
        tk_dtype_is_complex(dtype) || !tk_is_complex(v->ct) ? v->ct : tkb_real(v->b, v->ct);
    v->grads[0] = tkb_astype(v->b, ct, dtype);
}

/* ---- two operands ---- */

void tk_vjp_add(tk_vjp_rule *v) { v->grads[0] = v->grads[1] = v->ct; }

void tk_vjp_subtract(tk_vjp_rule *v) {
    v->grads[0] = v->ct;
    if (v->needed[1]) v->grads[1] = tkb_negative(v->b, v->ct);
}

void tk_vjp_multiply(tk_vjp_rule *v) {
    for (int i = 0; i < 2; i++)
        if (v->needed[i]) v->grads[i] = tkb_multiply(v->b, v->ct, tkb_conj(v->b, v->inputs[1 - i]));
}

void tk_vjp_divide(tk_vjp_rule *v) {
    tk_node *over = tkb_divide(v->b, v->ct, tkb_conj(v->b, v->inputs[1]));
    v->grads[0] = over;
    if (v->needed[1])
        v->grads[1] = tkb_negative(v->b, tkb_multiply(v->b, over, tkb_conj(v->b, v->node)));
}

void tk_vjp_remainder(tk_vjp_rule *v) {
    v->grads[0] = v->ct;
    if (!v->needed[1]) return;
    tk_node *times = tkb_floor_divide(v->b, v->inputs[0], v->inputs[1]);
    v->grads[1] = tkb_negative(v->b, tkb_multiply(v->b, v->ct, times));
}

/* b a^(b-1), 0 at a = b = 0. */
static tk_node *power_by_base(tk_builder *b, tk_node *base, tk_node *exponent) {
    tk_node *zero = tkb_scalar_like(b, base, 0), *one = tkb_scalar_like(b, base, 1);
    tk_node *both = tkb_logical_and(b, tkb_equal(b, base, zero), tkb_equal(b, exponent, zero));
    tk_node *less = tkb_where(b, both, one, tkb_subtract(b, exponent, one));
    return tkb_multiply(b, exponent, tkb_power(b, base, less));
}

/* a^b log a, 0 at a = 0. */
static tk_node *power_by_exponent(tk_builder *b, tk_node *base, tk_node *result) {
    tk_node *is_zero = tkb_equal(b, base, tkb_scalar_like(b, base, 0));
    tk_node *safe = tkb_where(b, is_zero, tkb_scalar_like(b, base, 1), base);
    return tkb_where_or_zero(b, tkb_logical_not(b, is_zero),
                             tkb_multiply(b, result, tkb_log(b, safe)));
}

void tk_vjp_power(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *base = v->inputs[0], *exponent = v->inputs[1];
    if (v->needed[0]) chain(v, power_by_base(b, base, exponent));
    if (v->needed[1])
        v->grads[1] = tkb_multiply(b, v->ct, tkb_conj(b, power_by_exponent(b, base, v->node)));
}

static void extreme(tk_vjp_rule *v, tk_node *first, tk_node *second) {
    if (v->needed[0]) v->grads[0] = tkb_where_or_zero(v->b, first, v->ct);
    if (v->needed[1]) v->grads[1] = tkb_where_or_zero(v->b, second, v->ct);
}

void tk_vjp_maximum(tk_vjp_rule *v) {
    tk_node *a = v->inputs[0], *c = v->inputs[1];
    extreme(v, tkb_greater(v->b, a, c), tkb_less_equal(v->b, a, c));
}

void tk_vjp_minimum(tk_vjp_rule *v) {
    tk_node *a = v->inputs[0], *c = v->inputs[1];
    extreme(v, tkb_less(v->b, a, c), tkb_greater_equal(v->b, a, c));
}

/* (b, -a) / (a^2 + b^2), 0 at the origin. */
void tk_vjp_arctan2(tk_vjp_rule *v) {
    tk_builder *b = v->b;
    tk_node *y = v->inputs[0], *x = v->inputs[1];
    tk_node *square = tkb_add(b, tkb_square(b, y), tkb_square(b, x));
    tk_node *is_zero = tkb_equal(b, square, tkb_scalar_like(b, square, 0));
    tk_node *safe = tkb_where(b, is_zero, tkb_scalar_like(b, square, 1), square);
    tk_node *over = tkb_divide(b, v->ct, safe);
    if (v->needed[0]) v->grads[0] = tkb_multiply(b, over, x);
    if (v->needed[1]) v->grads[1] = tkb_negative(b, tkb_multiply(b, over, y));
}

/* sigmoid(difference of the operands); equal infinities share +inf and get nothing of -inf. */
static tk_node *share(tk_builder *b, tk_node *a, tk_node *other) {
    tk_node *gap = tkb_subtract(b, a, other);
    if (tk_is_complex(a)) return tkb_sigmoid(b, gap);
    tk_node *same = tkb_equal(b, a, other);
    tk_node *low = tkb_equal(b, a, tkb_scalar_like(b, a, -INFINITY));
    tk_node *high = tkb_equal(b, a, tkb_scalar_like(b, a, INFINITY));
    tk_node *bad = tkb_logical_and(b, same, tkb_logical_or(b, low, high));
    tk_node *part = tkb_sigmoid(b, tkb_where_or_zero(b, tkb_logical_not(b, bad), gap));
    return tkb_where_or_zero(b, tkb_logical_not(b, tkb_logical_and(b, same, low)), part);
}

void tk_vjp_logaddexp(tk_vjp_rule *v) {
    for (int i = 0; i < 2; i++) {
        if (!v->needed[i]) continue;
        tk_node *part = share(v->b, v->inputs[i], v->inputs[1 - i]);
        v->grads[i] = tkb_multiply(v->b, v->ct, tkb_conj(v->b, part));
    }
}

void tk_vjp_where(tk_vjp_rule *v) {
    tk_node *condition = v->inputs[0];
    if (v->needed[1]) v->grads[1] = tkb_where_or_zero(v->b, condition, v->ct);
    if (v->needed[2])
        v->grads[2] = tkb_where(v->b, condition, tkb_scalar_like(v->b, v->ct, 0), v->ct);
}
