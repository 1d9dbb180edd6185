/* Gradients and batching of Fourier transforms. They are linear: the transpose of a transform is
 * the one in the other direction.
 *
 * A real transform keeps half of the frequencies. Written as a sum over all of them, each kept one
 * stands for itself and its mirror, but 0 and (at even lengths) the last. So with weights 1 there
 * and 2 elsewhere, irfft's transpose is rfft times the weights, and rfft's is irfft of the
 * cotangent divided by them. */
#include "graph/batch_rule.h"
#include "graph/vjp_rules.h"

void tk_vjp_fft(tk_vjp_rule *v) {
    tk_attrs_fft attrs = *(const tk_attrs_fft *)tk_node_attrs(v->node);
    attrs.inverse = !attrs.inverse;
    v->grads[0] = tkb_node1(v->b, TK_OP_fft_axis, v->ct, &attrs);
}

/* `twice` for the frequencies that stand for two, else 1, along an axis. */
static tk_node *weights(tk_builder *b, const tk_node *spectrum, int64_t axis, int64_t length,
                        double twice) {
    tk_shape shape = {.count = spectrum->rank};
    for (int64_t i = 0; i < shape.count; i++) shape.items[i] = 1;
    shape.items[axis] = spectrum->shape[axis];
    tk_node *at = tkb_positions(b, shape, (int)axis);
    tk_node *alone = tkb_equal(b, at, tkb_const_int(b, (tk_dtype)at->dtype, 0));
    if (length % 2 == 0)
        alone = tkb_logical_or(b, alone,
                               tkb_equal(b, at, tkb_const_int(b, (tk_dtype)at->dtype, length / 2)));
    return tkb_where(b, alone, tkb_const(b, TK_FLOAT32, 1), tkb_const(b, TK_FLOAT32, twice));
}

void tk_vjp_rfft(tk_vjp_rule *v) {
    const tk_attrs_fft *attrs = tk_node_attrs(v->node);
    tk_attrs_irfft back = {
        .axis = attrs->axis, .length = v->inputs[0]->shape[attrs->axis], .scale = attrs->scale};
    tk_node *factor = weights(v->b, v->node, attrs->axis, back.length, 0.5);
    v->grads[0] = tkb_node1(v->b, TK_OP_irfft_axis, tkb_multiply(v->b, v->ct, factor), &back);
}

void tk_vjp_irfft(tk_vjp_rule *v) {
    const tk_attrs_irfft *attrs = tk_node_attrs(v->node);
    tk_attrs_fft forth = {.axis = attrs->axis, .inverse = false, .scale = attrs->scale};
    tk_node *factor = weights(v->b, v->inputs[0], attrs->axis, attrs->length, 2);
    v->grads[0] = tkb_multiply(v->b, tkb_node1(v->b, TK_OP_rfft_axis, v->ct, &forth), factor);
}

void tk_batch_fft(tk_batch *batch) {
    tk_attrs_fft attrs = *(const tk_attrs_fft *)tk_node_attrs(batch->node);
    attrs.axis++;
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}

void tk_batch_irfft(tk_batch *batch) {
    tk_attrs_irfft attrs = *(const tk_attrs_irfft *)tk_node_attrs(batch->node);
    attrs.axis++;
    tk_batch_apply(batch, 1, batch->inputs, &attrs);
}
