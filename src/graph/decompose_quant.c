/* Quantisation as a composition: scales and biases by the formula that the body computes.
 *
 * With one bit they are the span and the low end. Otherwise, in a group with the extremes low and
 * high, the end with the larger magnitude becomes the bias and
 * keeps its value exactly; zero falls on a code, since the scale is the end divided by a whole
 * number. */
#include "graph/decompose_quant.h"

#include "graph/build_pairs.h"
#include "graph/build_quant.h"
#include "graph/vjp_rules.h"

/* Below this scale a group counts as constant. */
#define LEAST_SCALE 1e-7F

static void affine(tk_builder *b, tk_quant quant, tk_node *w, tk_node **out) {
    tk_shape shape = tk_node_shape(w);
    tk_dtype wide = tk_dtype_wide((tk_dtype)w->dtype);
    shape.items[shape.count - 1] /= quant.group_size;
    shape.items[shape.count++] = quant.group_size;
    tk_node *groups = tkb_astype(b, tkb_reshape(b, w, shape), wide);
    tk_node *low = tkb_min(b, groups, TK_AXES(-1), false);
    tk_node *high = tkb_max(b, groups, TK_AXES(-1), false);
    if (quant.bits == 1) {
        tk_node *span = tkb_subtract(b, high, low),
                *least = tkb_const(b, wide, (double)LEAST_SCALE);
        out[1] = tkb_astype(b, tkb_maximum(b, span, least), (tk_dtype)w->dtype);
        out[2] = tkb_astype(b, low, (tk_dtype)w->dtype);
        return;
    }
    tk_node *is_low = tkb_greater(b, tkb_abs(b, low), tkb_abs(b, high));
    tk_node *edge = tkb_where(b, is_low, low, high);
    double steps = (double)((1 << quant.bits) - 1);
    tk_node *span = tkb_divide(b, tkb_subtract(b, high, low), tkb_const(b, wide, steps));
    tk_node *step = tkb_maximum(b, span, tkb_const(b, wide, (double)LEAST_SCALE));
    step = tkb_where(b, is_low, step, tkb_negative(b, step));
    tk_node *count = tkb_stop_gradient(b, tkb_rint(b, tkb_divide(b, edge, step)));
    tk_node *some = tkb_not_equal(b, count, tkb_const(b, wide, 0));
    tk_node *divisor = tkb_where(b, some, count, tkb_const(b, wide, 1));
    tk_node *scales = tkb_where(b, some, tkb_divide(b, edge, divisor), step);
    out[1] = tkb_astype(b, scales, (tk_dtype)w->dtype);
    out[2] = tkb_astype(b, tkb_where_or_zero(b, some, edge), (tk_dtype)w->dtype);
}

void tkb_quantize_apart(tk_builder *b, const tk_node *node, tk_node *const *inputs,
                        tk_node **out_outputs) {
    const tk_attrs_quantize *attrs = tk_node_attrs(node);
    tk_quant quant = TK_QUANT_OF(attrs);
    tk_node *still[] = {tkb_stop_gradient(b, inputs[0]), node->n_inputs > 1 ? inputs[1] : NULL};
    tk_node *all = tkb_node(b, TK_OP_quantize_groups, node->n_inputs, still, attrs);
    for (uint32_t i = 0; i < node->n_outputs; i++)
        out_outputs[i] = tk_node_is_error(all) ? all : tkb_output(b, all, (int)i);
    if (tk_quant_is_affine(quant) && inputs[0]->size && !tk_node_is_error(all))
        affine(b, quant, inputs[0], out_outputs);
}

tk_node *tkb_segments_apart(tk_builder *b, tk_node *a, tk_node *other, tk_node *bounds) {
    tk_node *mask = tkb_segment_mask(b, bounds, a->shape[1]);
    tk_node *cut = tkb_where_or_zero(b, mask, a);
    return tkb_matmul(b, cut, tkb_where_or_zero(b, tkb_swapaxes(b, mask, -1, -2), other));
}
