/* Gradients of convolutions, which are convolutions.
 *
 * With I, K and O the spans of input, kernel and output (elements spread by their dilation or
 * stride), y[o] = sum_k w[k] x[o + k - low]:
 *   dx[i] = sum_k w[k] dy[i - k + low]: dy spread by the stride, the kernel flipped, channels
 * turned within a group, padding K - 1 - low in front; dw[k] = sum_o dy[o] x[o + k - low]: dy as
 * the kernel, spread by the stride, laid on x every kernel_dilation; batch and channels change
 * places, so that the sum over the batch is that over input channels. The padding behind follows
 * from the length that must come out; both may crop. */
#include "graph/conv.h"
#include "graph/vjp_rules.h"

/* [groups * O, ..., C] as [groups * C, ..., O]: what is an output of the group becomes an input. */
static tk_node *turn_weight(tk_builder *b, tk_node *weight, int64_t groups) {
    int last = weight->rank - 1;
    int64_t outputs = weight->shape[0] / groups, channels = weight->shape[last];
    tk_shape apart = {.count = weight->rank + 1}, together = tk_node_shape(weight);
    tk_axes order = {.count = apart.count};
    for (int i = 1; i <= last; i++) apart.items[i + 1] = weight->shape[i];
    apart.items[0] = groups;
    apart.items[1] = outputs;
    for (int i = 0; i < order.count; i++) order.items[i] = i;
    order.items[1] = last + 1;
    order.items[last + 1] = 1;
    together.items[0] = groups * channels;
    together.items[last] = outputs;
    return tkb_reshape(b, tkb_permute(b, tkb_reshape(b, weight, apart), &order), together);
}

static tk_node *input_grad(tk_vjp_rule *v, const tk_attrs_conv *attrs) {
    const tk_node *input = v->inputs[0], *weight = v->inputs[1];
    tk_conv_lists from = tk_conv_lists_of(attrs), to = from;
    for (int i = 0; i < input->rank - 2; i++) {
        int64_t kernel = tk_conv_span(weight->shape[1 + i], from.kernel_dilation.items[i]);
        int64_t output = tk_conv_span(v->node->shape[1 + i], from.stride.items[i]);
        int64_t spread = tk_conv_span(input->shape[1 + i], from.input_dilation.items[i]);
        to.low.items[i] = kernel - 1 - from.low.items[i];
        to.high.items[i] = spread - 1 + kernel - output - to.low.items[i];
    }
    to.stride = from.input_dilation;
    to.input_dilation = from.stride;
    tk_node *turned = turn_weight(v->b, tkb_conj(v->b, v->inputs[1]), attrs->groups);
    return tkb_conv(v->b, v->ct, turned, &to, attrs->groups, !attrs->flip);
}

static tk_node *flip_spatial(tk_builder *b, tk_node *a) {
    tk_axes axes = {.count = 0};
    if (tk_node_is_error(a)) return a;
    for (int i = 1; i < a->rank - 1; i++) axes.items[axes.count++] = i;
    return tkb_flip(b, a, axes);
}

/* [N, ..., O] as [O, ..., N]. */
static tk_node *swap_ends(tk_builder *b, tk_node *a) {
    return tk_node_is_error(a) ? a : tkb_swapaxes(b, a, 0, a->rank - 1);
}

static tk_node *weight_grad(tk_vjp_rule *v, const tk_attrs_conv *attrs) {
    const tk_node *input = v->inputs[0], *weight = v->inputs[1];
    tk_conv_lists from = tk_conv_lists_of(attrs), to = from;
    for (int i = 0; i < input->rank - 2; i++) {
        int64_t output = tk_conv_span(v->node->shape[1 + i], from.stride.items[i]);
        int64_t spread = tk_conv_span(input->shape[1 + i], from.input_dilation.items[i]);
        int64_t reach = (weight->shape[1 + i] - 1) * from.kernel_dilation.items[i];
        to.high.items[i] = reach + output - spread - from.low.items[i];
    }
    to.stride = from.kernel_dilation;
    to.kernel_dilation = from.stride;
    tk_node *turned = tkb_conv_turn(v->b, tkb_conj(v->b, v->inputs[0]), attrs->groups);
    tk_node *grad =
        swap_ends(v->b, tkb_conv(v->b, turned, swap_ends(v->b, v->ct), &to, attrs->groups, false));
    return attrs->flip ? flip_spatial(v->b, grad) : grad;
}

void tk_vjp_conv(tk_vjp_rule *v) {
    const tk_attrs_conv *attrs = tk_node_attrs(v->node);
    if (v->needed[0]) v->grads[0] = input_grad(v, attrs);
    if (v->needed[1]) v->grads[1] = weight_grad(v, attrs);
}
