/* Fused ops as compositions of simpler primitives: their definition in the graph's own terms.
 *
 * Second derivatives, forward mode and batching go through here, and tests compare the fused bodies
 * with it. Half types compute in float32 and the result is cast back, as the fused bodies do.
 * Everything is built from the shapes of the operands given, not of the node. Rows of scores or
 * logits that are all -inf give probability 0: the subtracted log-sum-exp is set to 0 there, so
 * that no NaN is made to be masked. */
#include <math.h>

#include "base/error.h"
#include "graph/decompose_quant.h"
#include "graph/decompose_scan.h"
#include "graph/vjp_rules.h"

static tk_dtype wide_dtype(const tk_node *node) {
    tk_dtype dtype = (tk_dtype)node->dtype;
    return dtype == TK_FLOAT64 || dtype == TK_COMPLEX64 ? dtype : TK_FLOAT32;
}

static tk_node *widen(tk_builder *b, tk_node *a) { return tkb_astype(b, a, wide_dtype(a)); }

static tk_node *narrow(tk_builder *b, tk_node *a, const tk_node *like) {
    return tkb_astype(b, a, (tk_dtype)like->dtype);
}

static tk_node *mean_last(tk_builder *b, tk_node *a) { return tkb_mean(b, a, TK_AXES(-1), true); }

/* Sum over all axes but the last. */
static tk_node *sum_rows(tk_builder *b, tk_node *a) {
    tk_shape last = {.count = 1};
    if (tk_node_is_error(a)) return a;
    last.items[0] = a->shape[a->rank - 1];
    return tkb_sum_to_shape(b, a, last);
}

static tk_node *adjoint(tk_builder *b, tk_node *a) { return tkb_swapaxes(b, a, -1, -2); }

/* lse, but 0 for dead rows. */
static tk_node *alive_lse(tk_builder *b, tk_node *lse) {
    return tkb_where_or_zero(b, tkb_not_equal(b, lse, tkb_scalar_like(b, lse, -INFINITY)), lse);
}

/* ---- softmax ---- */

static tk_node *softmax(tk_builder *b, tk_list axes, tk_node *a) {
    if (a->size == 0) return a;
    tk_attrs_reduce attrs = {.axes = axes};
    tk_node *x = widen(b, a);
    tk_node *top = tkb_stop_gradient(b, tkb_node1(b, TK_OP_reduce_max, x, &attrs));
    tk_node *parts = tkb_exp(b, tkb_subtract(b, x, top));
    tk_node *soft = tkb_divide(b, parts, tkb_node1(b, TK_OP_reduce_sum, parts, &attrs));
    return narrow(b, soft, a);
}

/* The logarithm of a sum that may be 0, where the gradient is 0. */
static tk_node *log_sum(tk_builder *b, tk_node *sum) {
    tk_node *dead = tkb_equal(b, sum, tkb_scalar_like(b, sum, 0));
    tk_node *log = tkb_log(b, tkb_where(b, dead, tkb_scalar_like(b, sum, 1), sum));
    return tkb_where(b, dead, tkb_scalar_like(b, sum, -INFINITY), log);
}

/* What is subtracted is 0 where the maximum is infinite: exp and log then give that infinity. Of no
 * elements the sum is 0, and there is no maximum. */
static tk_node *logsumexp(tk_builder *b, tk_list axes, tk_node *a) {
    tk_attrs_reduce attrs = {.axes = axes};
    tk_node *x = widen(b, a);
    if (a->size == 0) return narrow(b, log_sum(b, tkb_node1(b, TK_OP_reduce_sum, x, &attrs)), a);
    tk_node *top = tkb_stop_gradient(b, tkb_node1(b, TK_OP_reduce_max, x, &attrs));
    tk_node *far = tkb_equal(b, tkb_abs(b, top), tkb_scalar_like(b, top, INFINITY));
    tk_node *base = tkb_where(b, far, tkb_scalar_like(b, top, 0), top);
    tk_node *parts = tkb_exp(b, tkb_subtract(b, x, base));
    tk_node *sum = tkb_node1(b, TK_OP_reduce_sum, parts, &attrs);
    return narrow(b, tkb_add(b, log_sum(b, sum), base), a);
}

/* ---- norms ---- */

/* 1 / sqrt(mean(x^2) + eps) */
static tk_node *inverse_rms(tk_builder *b, tk_node *x, double eps) {
    tk_node *mean = mean_last(b, tkb_square(b, x));
    return tkb_rsqrt(b, tkb_add(b, mean, tkb_scalar_like(b, mean, eps)));
}

static tk_node *centred(tk_builder *b, tk_node *x) { return tkb_subtract(b, x, mean_last(b, x)); }

static tk_node *norm(tk_builder *b, const tk_attrs_norm *attrs, tk_node *const *inputs,
                     bool centre) {
    tk_node *x = widen(b, inputs[0]);
    if (centre) x = centred(b, x);
    tk_node *y = tkb_multiply(b, x, inverse_rms(b, x, attrs->eps));
    if (attrs->has_weight) y = tkb_multiply(b, y, widen(b, inputs[1]));
    if (attrs->has_bias) y = tkb_add(b, y, widen(b, inputs[1 + attrs->has_weight]));
    return narrow(b, y, inputs[0]);
}

/* With n = x r the normalised rows and g = dy weight: dx = r (g - n mean(g n)), less the mean of g
 * where rows are centred; dweight = sum(dy n), dbias = sum(dy). */
static void norm_vjp(tk_builder *b, const tk_attrs_norm *attrs, tk_node *const *inputs, bool centre,
                     tk_node **out) {
    int n_params = (int)(attrs->has_weight + attrs->has_bias);
    tk_node *x = widen(b, inputs[0]), *dy = widen(b, inputs[1 + n_params]);
    if (centre) x = centred(b, x);
    tk_node *r = inverse_rms(b, x, attrs->eps), *n = tkb_multiply(b, x, r);
    tk_node *g = attrs->has_weight ? tkb_multiply(b, dy, widen(b, inputs[1])) : dy;
    tk_node *along = tkb_multiply(b, n, mean_last(b, tkb_multiply(b, g, n)));
    tk_node *dx = tkb_multiply(b, r, tkb_subtract(b, centre ? centred(b, g) : g, along));
    out[0] = narrow(b, dx, inputs[0]);
    if (attrs->has_weight) out[1] = narrow(b, sum_rows(b, tkb_multiply(b, dy, n)), inputs[1]);
    if (attrs->has_bias) out[n_params] = narrow(b, sum_rows(b, dy), inputs[n_params]);
}

/* ---- rope ---- */

/* Positions of the rows of x as floats: [L, 1], or [B, 1, ..., L, 1] for an offset a batch entry.
 */
static tk_node *rope_positions(tk_builder *b, const tk_node *x, tk_node *offset) {
    int64_t length = x->shape[x->rank - 2];
    tk_node *rows = tkb_iota_int(b, TK_INT64, TK_SHAPE(length, 1), 0, 0, 1);
    tk_node *start = tkb_astype(b, offset, TK_INT64);
    if (offset->rank) {
        tk_shape shape = {.count = x->rank};
        for (int64_t i = 0; i < shape.count; i++) shape.items[i] = i ? 1 : offset->shape[0];
        start = tkb_reshape(b, start, shape);
    }
    return tkb_astype(b, tkb_add(b, rows, start), TK_FLOAT64);
}

/* [dims / 2]: base^(-2i / dims), or 1 / freqs, in float64. */
static tk_node *rope_frequencies(tk_builder *b, const tk_attrs_rope *attrs, tk_node *freqs) {
    if (freqs) return tkb_reciprocal(b, tkb_astype(b, freqs, TK_FLOAT64));
    int64_t n_pairs = attrs->dims / 2;
    tk_node *pair = tkb_arange(b, 0, (double)n_pairs, 1, TK_FLOAT64);
    return tkb_exp(b, tkb_scale(b, pair, -2 * log(attrs->base) / (double)attrs->dims));
}

static tk_node *every_second(tk_builder *b, tk_node *a, int64_t from, int64_t dims) {
    tk_axes start = {.count = a->rank}, step = {.count = a->rank};
    tk_shape shape = tk_node_shape(a);
    for (int i = 0; i < a->rank; i++) step.items[i] = 1;
    start.items[a->rank - 1] = from;
    step.items[a->rank - 1] = 2;
    shape.items[a->rank - 1] = dims / 2;
    tk_attrs_slice attrs = {tk_axes_list(&start), tk_axes_list(&step), tk_axes_list(&shape)};
    return tkb_node1(b, TK_OP_slice_by, a, &attrs);
}

/* Pairs (first, second) side by side, or one half after the other. */
static tk_node *rope_merge(tk_builder *b, bool traditional, tk_node *first, tk_node *second,
                           tk_shape shape, int64_t dims) {
    int last = (int)shape.count - 1;
    if (!traditional) return tkb_join2(b, first, second, last);
    tk_node *pair[] = {first, second};
    shape.items[last] = dims;
    return tkb_reshape(b, tkb_stack(b, pair, 2, -1), shape);
}

/* Angles in float64, brought into one turn before they are rounded: position 100,000 is as exact as
 * position 1. */
static tk_node *rope_angles(tk_builder *b, const tk_attrs_rope *attrs, const tk_node *x,
                            tk_node *const *inputs) {
    const double turn = 6.28318530717958647692;
    tk_node *freqs = attrs->has_freqs ? inputs[2] : NULL;
    tk_node *step = tkb_scale(b, rope_frequencies(b, attrs, freqs), attrs->scale);
    tk_node *angle = tkb_multiply(b, rope_positions(b, x, inputs[1]), step);
    if (tk_node_is_error(angle) || x->dtype == TK_FLOAT64) return angle;
    tk_node *turns = tkb_rint(b, tkb_divide(b, angle, tkb_scalar_like(b, angle, turn)));
    angle = tkb_subtract(b, angle, tkb_scale(b, tkb_stop_gradient(b, turns), turn));
    return tkb_astype(b, angle, (tk_dtype)x->dtype);
}

static tk_node *rope(tk_builder *b, const tk_attrs_rope *attrs, tk_node *const *inputs) {
    tk_node *x = widen(b, inputs[0]);
    int last = x->rank - 1;
    int64_t dims = attrs->dims, half = dims / 2;
    if (tk_node_is_error(x)) return x;
    tk_node *angle = rope_angles(b, attrs, x, inputs);
    tk_node *cosine = tkb_cos(b, angle), *sine = tkb_sin(b, angle);
    if (attrs->inverse) sine = tkb_negative(b, sine);
    bool pairs = attrs->traditional != 0;
    tk_node *first = pairs ? every_second(b, x, 0, dims) : tkb_range(b, x, last, 0, half);
    tk_node *second = pairs ? every_second(b, x, 1, dims) : tkb_range(b, x, last, half, dims);
    tk_node *turned_first =
        tkb_subtract(b, tkb_multiply(b, first, cosine), tkb_multiply(b, second, sine));
    tk_node *turned_second =
        tkb_add(b, tkb_multiply(b, first, sine), tkb_multiply(b, second, cosine));
    tk_node *turned = rope_merge(b, pairs, turned_first, turned_second, tk_node_shape(x), dims);
    if (dims < x->shape[last])
        turned = tkb_join2(b, turned, tkb_range(b, x, last, dims, x->shape[last]), last);
    return narrow(b, turned, inputs[0]);
}

/* ---- attention ---- */

/* Lengths of an attention: query heads come in groups that share a head of k and v. */
typedef struct attention_shape {
    int64_t batch, groups, heads, kv_heads, queries, keys, head_dim, value_dim;
} attention_shape;

static attention_shape attention_shape_of(tk_node *const *inputs) {
    const tk_node *q = inputs[0], *k = inputs[1], *v = inputs[2];
    int64_t kv_heads = k->shape[1];
    return (attention_shape){.batch = q->shape[0],
                             .heads = q->shape[1],
                             .kv_heads = kv_heads,
                             .groups = kv_heads ? q->shape[1] / kv_heads : 1,
                             .queries = q->shape[2],
                             .keys = k->shape[2],
                             .head_dim = q->shape[3],
                             .value_dim = v->shape[3]};
}

/* [B, H, L, n] as [B, Hk, G, L, n] */
static tk_node *grouped(tk_builder *b, const attention_shape *s, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    return tkb_reshape(b, a, TK_SHAPE(s->batch, s->kv_heads, s->groups, s->queries, a->shape[3]));
}

/* [B, Hk, S, n] repeated as [B, Hk, G, S, n] */
static tk_node *shared(tk_builder *b, const attention_shape *s, tk_node *a) {
    tk_node *one = tkb_expand_dims(b, a, TK_AXES(2));
    if (tk_node_is_error(one)) return one;
    return tkb_broadcast_to(b, one,
                            TK_SHAPE(s->batch, s->kv_heads, s->groups, s->keys, a->shape[3]));
}

/* [L, S]: query i sees key j when j <= i + S - L. */
static tk_node *causal_mask(tk_builder *b, const attention_shape *s) {
    tk_shape shape = TK_SHAPE(s->queries, s->keys);
    tk_node *column = tkb_iota_int(b, TK_INT64, shape, 1, 0, 1);
    return tkb_less_equal(b, column, tkb_iota_int(b, TK_INT64, shape, 0, s->keys - s->queries, 1));
}

/* scale q k' + mask as [B, Hk, G, L, S]; -inf where a key is excluded. */
static tk_node *scores(tk_builder *b, const tk_attrs_attention *attrs, const attention_shape *s,
                       tk_node *const *inputs) {
    tk_node *q = grouped(b, s, widen(b, inputs[0])), *k = shared(b, s, widen(b, inputs[1]));
    tk_node *score = tkb_scale(b, tkb_matmul(b, q, adjoint(b, k)), attrs->scale);
    tk_node *low = tkb_scalar_like(b, score, -INFINITY);
    if (attrs->has_mask) {
        tk_node *mask = grouped(b, s, inputs[3]);
        score = mask->dtype == TK_BOOL ? tkb_where(b, mask, score, low)
                                       : tkb_add(b, score, widen(b, mask));
    }
    return attrs->causal ? tkb_where(b, causal_mask(b, s), score, low) : score;
}

/* The largest score of each query, its head's sink among them; 0 where that is -inf. */
static tk_node *top_score(tk_builder *b, tk_node *score, tk_node *sinks) {
    tk_node *top = sinks;
    if (score->shape[score->rank - 1]) {
        top = tkb_max(b, score, TK_AXES(-1), true);
        if (sinks) top = tkb_maximum(b, top, sinks);
    }
    if (!top) return tkb_scalar_like(b, score, 0);
    return tkb_stop_gradient(b, alive_lse(b, top));
}

/* The weights are divided by their sum at the end. A sink is one more score of every query of a
 * head, without a value. With +inf among the scores all is NaN, the log-sum-exp too. */
static void attention(tk_builder *b, const tk_attrs_attention *attrs, tk_node *const *inputs,
                      tk_node **out) {
    attention_shape s = attention_shape_of(inputs);
    tk_node *score = scores(b, attrs, &s, inputs), *sinks = NULL;
    if (tk_node_is_error(score)) {
        out[0] = out[1] = score;
        return;
    }
    if (attrs->has_sinks)
        sinks = tkb_reshape(b, widen(b, inputs[3 + (attrs->has_mask != 0)]),
                            TK_SHAPE(1, s.kv_heads, s.groups, 1, 1));
    tk_node *top = top_score(b, score, sinks);
    tk_node *weights = tkb_exp(b, tkb_subtract(b, score, top));
    tk_node *sum = tkb_sum(b, weights, TK_AXES(-1), true);
    if (sinks) sum = tkb_add(b, sum, tkb_exp(b, tkb_subtract(b, sinks, top)));
    tk_node *dead = tkb_equal(b, sum, tkb_scalar_like(b, sum, 0));
    tk_node *some = tkb_where(b, dead, tkb_scalar_like(b, sum, 1), sum);
    tk_node *y = tkb_matmul(b, weights, shared(b, &s, widen(b, inputs[2])));
    y = tkb_divide(b, y, some);
    tk_node *lse = tkb_add(b, log_sum(b, sum), top);
    tk_node *flat = tkb_reshape(b, y, TK_SHAPE(s.batch, s.heads, s.queries, s.value_dim));
    out[0] = narrow(b, flat, inputs[0]);
    out[1] = tkb_reshape(b, lse, TK_SHAPE(s.batch, s.heads, s.queries));
}

/* Sums the groups of a gradient of k or v. */
static tk_node *sum_groups(tk_builder *b, tk_node *grad, const tk_node *like) {
    return narrow(b, tkb_sum(b, grad, TK_AXES(2), false), like);
}

/* With p the weights: dv = p' dout, ds = p (dout v' - rowsum(dout out)), dq = scale ds k, dk =
 * scale ds' q. */
static void attention_vjp(tk_builder *b, const tk_attrs_attention *attrs, tk_node *const *inputs,
                          tk_node **out) {
    attention_shape s = attention_shape_of(inputs);
    tk_node *const *extra = inputs + 3 + (attrs->has_mask != 0);
    tk_node *y = grouped(b, &s, widen(b, extra[0])), *dout = grouped(b, &s, widen(b, extra[2]));
    tk_node *column =
        tkb_reshape(b, extra[1], TK_SHAPE(s.batch, s.kv_heads, s.groups, s.queries, 1));
    tk_node *weights =
        tkb_exp(b, tkb_subtract(b, scores(b, attrs, &s, inputs), alive_lse(b, column)));
    tk_node *dweights = tkb_matmul(b, dout, adjoint(b, shared(b, &s, widen(b, inputs[2]))));
    tk_node *mean = tkb_sum(b, tkb_multiply(b, dout, y), TK_AXES(-1), true);
    tk_node *dscore = tkb_multiply(b, weights, tkb_subtract(b, dweights, mean));
    dscore = tkb_scale(b, dscore, attrs->scale);
    tk_node *dq = tkb_matmul(b, dscore, shared(b, &s, widen(b, inputs[1])));
    out[0] = narrow(b, tkb_reshape(b, dq, tk_node_shape(inputs[0])), inputs[0]);
    out[1] = sum_groups(b, tkb_matmul(b, adjoint(b, dscore), grouped(b, &s, widen(b, inputs[0]))),
                        inputs[1]);
    out[2] = sum_groups(b, tkb_matmul(b, adjoint(b, weights), dout), inputs[2]);
}

/* ---- cross entropy ---- */

static void cross_entropy(tk_builder *b, tk_node *const *inputs, tk_node **out) {
    tk_node *logits = widen(b, inputs[0]);
    tk_node *column = tkb_expand_dims(b, inputs[1], TK_AXES(-1));
    tk_attrs_axis last = {.axis = inputs[0]->rank - 1};
    tk_node *picked = tkb_node2(b, TK_OP_gather_along, logits, column, &last);
    tk_node *lse = tkb_logsumexp(b, logits, TK_AXES(-1), false);
    tk_node *loss = tkb_subtract(b, lse, tkb_squeeze(b, picked, TK_AXES(-1)));
    out[0] = narrow(b, loss, inputs[0]);
    out[1] = lse;
}

/* (softmax(logits) - onehot(targets)) dloss. The log-sum-exp that is given is rounded: of large
 * logits it has no digits left for the logarithm. */
static tk_node *cross_entropy_vjp(tk_builder *b, tk_node *const *inputs) {
    tk_node *logits = widen(b, inputs[0]);
    tk_node *soft = tkb_softmax(b, logits, TK_AXES(-1));
    tk_node *classes = tkb_positions(b, tk_node_shape(inputs[0]), inputs[0]->rank - 1);
    tk_node *hit = tkb_equal(b, classes, tkb_expand_dims(b, inputs[1], TK_AXES(-1)));
    tk_node *error = tkb_subtract(b, soft, narrow(b, hit, logits));
    tk_node *dloss = tkb_expand_dims(b, widen(b, inputs[3]), TK_AXES(-1));
    return narrow(b, tkb_multiply(b, error, dloss), inputs[0]);
}

/* ---- by op ---- */

tk_status tkb_decompose(tk_builder *b, const tk_node *node, tk_node *const *inputs,
                        tk_node **out_outputs) {
    const void *attrs = tk_node_attrs(node);
    switch ((tk_op)node->op) {
    case TK_OP_softmax_axes:
        out_outputs[0] = softmax(b, ((const tk_attrs_reduce *)attrs)->axes, inputs[0]);
        return TK_OK;
    case TK_OP_reduce_logsumexp:
        out_outputs[0] = logsumexp(b, ((const tk_attrs_reduce *)attrs)->axes, inputs[0]);
        return TK_OK;
    case TK_OP_rms_norm_fused:
        out_outputs[0] = norm(b, attrs, inputs, false);
        return TK_OK;
    case TK_OP_layer_norm_fused:
        out_outputs[0] = norm(b, attrs, inputs, true);
        return TK_OK;
    case TK_OP_rms_norm_vjp:
        norm_vjp(b, attrs, inputs, false, out_outputs);
        return TK_OK;
    case TK_OP_layer_norm_vjp:
        norm_vjp(b, attrs, inputs, true, out_outputs);
        return TK_OK;
    case TK_OP_rope_fused:
        out_outputs[0] = rope(b, attrs, inputs);
        return TK_OK;
    case TK_OP_attention:
        attention(b, attrs, inputs, out_outputs);
        return TK_OK;
    case TK_OP_attention_vjp:
        attention_vjp(b, attrs, inputs, out_outputs);
        return TK_OK;
    case TK_OP_cross_entropy_fused:
        cross_entropy(b, inputs, out_outputs);
        return TK_OK;
    case TK_OP_cross_entropy_vjp:
        out_outputs[0] = cross_entropy_vjp(b, inputs);
        return TK_OK;
    case TK_OP_quantize_groups:
        tkb_quantize_apart(b, node, inputs, out_outputs);
        return TK_OK;
    case TK_OP_scan_sum:
    case TK_OP_scan_prod:
    case TK_OP_scan_max:
    case TK_OP_scan_min:
    case TK_OP_scan_logsumexp:
        out_outputs[0] = tkb_scan_apart(b, node, inputs[0]);
        return TK_OK;
    case TK_OP_segment_product:
        out_outputs[0] = tkb_segments_apart(b, inputs[0], inputs[1], inputs[2]);
        return TK_OK;
    default:
        break;
    }
    return tk_fail(TK_UNSUPPORTED, "%s is a primitive: it has no decomposition",
                   tk_op_name((tk_op)node->op));
}
