/* Fused layers: the operands made dense where the row kernels ask for it, then the kernels.
 *
 * Their second derivatives and other cases are compositions in the graph; what comes here has
 * passed the shape rules. Scratch is taken before anything is written. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cpu/attention.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_loop.h"
#include "cpu/norm.h"

#define MOST_OPERANDS 7

/* Dense operands of one call. */
typedef struct operands {
    int count;
    tk_dense items[MOST_OPERANDS];
} operands;

static void operands_free(operands *o) {
    for (int i = 0; i < o->count; i++) tk_dense_free(&o->items[i]);
}

/* The operand as dense `dtype`; NULL data where `view` is NULL. */
static tk_status operands_take(operands *o, const tk_strided *view, tk_dtype dtype,
                               const void **out_data) {
    assert(o->count < MOST_OPERANDS);
    *out_data = NULL;
    if (!view) return TK_OK;
    TK_TRY(tk_dense_take(view, dtype, &o->items[o->count]));
    *out_data = o->items[o->count++].data;
    return TK_OK;
}

static tk_dtype wide_of(tk_dtype dtype) { return dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32; }

/* ---- normalisation ---- */

typedef struct norm_operands {
    operands dense;
    tk_dtype dtype;
    double eps;
    int64_t rows, columns;
    const void *x, *weight, *bias, *dy;
} norm_operands;

static tk_status norm_take(const tk_body_call *call, bool has_dy, norm_operands *n) {
    const tk_attrs_norm *attrs = call->attrs;
    const tk_strided *x = &call->inputs[0];
    int next = 1;
    *n = (norm_operands){.dtype = x->dtype, .eps = attrs->eps};
    n->columns = x->shape[x->rank - 1];
    n->rows = n->columns ? x->size / n->columns : 0;
    TK_TRY(operands_take(&n->dense, x, n->dtype, &n->x));
    const tk_strided *weight = attrs->has_weight ? &call->inputs[next++] : NULL;
    const tk_strided *bias = attrs->has_bias ? &call->inputs[next++] : NULL;
    TK_TRY(operands_take(&n->dense, weight, n->dtype, &n->weight));
    TK_TRY(operands_take(&n->dense, bias, n->dtype, &n->bias));
    return operands_take(&n->dense, has_dy ? &call->inputs[next] : NULL, n->dtype, &n->dy);
}

tk_status tk_body_norm(const tk_body_call *call) {
    norm_operands n;
    void *out = call->outputs[0].data;
    tk_status status = norm_take(call, false, &n);
    if (status == TK_OK && n.rows)
        status =
            call->op == TK_OP_rms_norm_fused
                ? tk_cpu_rms_norm(n.dtype, n.x, n.weight, n.eps, out, n.rows, n.columns)
                : tk_cpu_layer_norm(n.dtype, n.x, n.weight, n.bias, n.eps, out, n.rows, n.columns);
    operands_free(&n.dense);
    return status;
}

/* Parameters without a row have gradient 0. */
static void zero_parameters(const tk_body_call *call) {
    for (int i = 1; i < call->n_outputs; i++)
        memset(call->outputs[i].data, 0,
               (size_t)call->outputs[i].size * tk_dtype_size(call->outputs[i].dtype));
}

tk_status tk_body_norm_vjp(const tk_body_call *call) {
    const tk_attrs_norm *attrs = call->attrs;
    norm_operands n;
    tk_status status = norm_take(call, true, &n);
    void *dx = call->outputs[0].data;
    void *dweight = attrs->has_weight ? call->outputs[1].data : NULL;
    void *dbias = attrs->has_bias ? call->outputs[1 + attrs->has_weight].data : NULL;
    if (status == TK_OK && n.rows == 0)
        zero_parameters(call);
    else if (status == TK_OK && call->op == TK_OP_rms_norm_vjp)
        status = tk_cpu_rms_norm_backward(n.dtype, n.x, n.weight, n.eps, n.dy, dx, dweight, n.rows,
                                          n.columns);
    else if (status == TK_OK)
        status = tk_cpu_layer_norm_backward(n.dtype, n.x, n.weight, n.eps, n.dy, dx, dweight, dbias,
                                            n.rows, n.columns);
    operands_free(&n.dense);
    return status;
}

/* ---- rotary positions ---- */

tk_status tk_body_rope(const tk_body_call *call) {
    const tk_attrs_rope *attrs = call->attrs;
    const tk_strided *x = &call->inputs[0], *offset = &call->inputs[1];
    if (x->size == 0) return TK_OK;
    operands dense = {.count = 0};
    const void *values, *offsets, *frequencies = NULL;
    tk_status status = operands_take(&dense, x, x->dtype, &values);
    if (status == TK_OK) status = operands_take(&dense, offset, TK_INT64, &offsets);
    if (status == TK_OK)
        status = operands_take(&dense, attrs->has_freqs ? &call->inputs[2] : NULL, TK_FLOAT32,
                               &frequencies);
    if (status == TK_OK) {
        tk_rope_args args = {.dtype = x->dtype,
                             .batch = x->rank > 2 ? x->shape[0] : 1,
                             .length = x->shape[x->rank - 2],
                             .head_dim = x->shape[x->rank - 1],
                             .dims = attrs->dims,
                             .traditional = attrs->traditional != 0,
                             .inverse = attrs->inverse != 0,
                             .base = attrs->base,
                             .scale = attrs->scale,
                             .frequencies = frequencies,
                             .offsets = offsets,
                             .offset_count = offset->size};
        args.heads = x->size / (args.batch * args.length * args.head_dim);
        status = tk_cpu_rope(&args, values, call->outputs[0].data);
    }
    operands_free(&dense);
    return status;
}

/* ---- attention ---- */

static tk_attention_strides strides_of(const tk_strided *view) {
    return (tk_attention_strides){view->strides[0], view->strides[1], view->strides[2]};
}

/* The operand by its strides where features are dense, else a dense copy. */
static tk_status take_tensor(operands *o, const tk_strided *view, const void **out_data,
                             tk_attention_strides *out_strides) {
    if (view->strides[3] == 1 || view->shape[3] == 1) {
        *out_data = view->data;
        *out_strides = strides_of(view);
        return TK_OK;
    }
    tk_strided dense = tk_view_dense(view->dtype, 4, view->shape, NULL);
    *out_strides = strides_of(&dense);
    return operands_take(o, view, view->dtype, out_data);
}

static tk_status attention_take(const tk_body_call *call, operands *o, tk_attention_args *args) {
    const tk_attrs_attention *attrs = call->attrs;
    const tk_strided *q = &call->inputs[0], *k = &call->inputs[1], *v = &call->inputs[2];
    *args = (tk_attention_args){.dtype = q->dtype,
                                .batch = q->shape[0],
                                .q_heads = q->shape[1],
                                .kv_heads = k->shape[1],
                                .q_length = q->shape[2],
                                .k_length = k->shape[2],
                                .head_dim = q->shape[3],
                                .value_dim = v->shape[3],
                                .scale = attrs->scale,
                                .causal = attrs->causal != 0};
    if (attrs->has_mask) {
        const tk_strided *mask = &call->inputs[3];
        args->mask_kind = mask->dtype == TK_BOOL ? TK_MASK_BOOL : TK_MASK_ADD;
        args->mask = mask->data;
        memcpy(args->mask_strides, mask->strides, sizeof args->mask_strides);
    }
    if (attrs->has_sinks)
        TK_TRY(operands_take(o, &call->inputs[3 + (attrs->has_mask != 0)], wide_of(q->dtype),
                             &args->sinks));
    TK_TRY(take_tensor(o, q, &args->q, &args->q_strides));
    TK_TRY(take_tensor(o, k, &args->k, &args->k_strides));
    return take_tensor(o, v, &args->v, &args->v_strides);
}

tk_status tk_body_attention(const tk_body_call *call) {
    operands dense = {.count = 0};
    tk_attention_args args;
    tk_status status = attention_take(call, &dense, &args);
    if (status == TK_OK && call->outputs[1].size)
        status = tk_attention(&args, call->outputs[0].data, strides_of(&call->outputs[0]),
                              call->outputs[1].data);
    operands_free(&dense);
    return status;
}

tk_status tk_body_attention_vjp(const tk_body_call *call) {
    const tk_attrs_attention *attrs = call->attrs;
    const tk_strided *rest = call->inputs + 3 + (attrs->has_mask != 0);
    operands dense = {.count = 0};
    tk_attention_args args;
    const void *out, *lse, *dout;
    tk_status status = attention_take(call, &dense, &args);
    if (status == TK_OK) status = operands_take(&dense, &rest[0], args.dtype, &out);
    if (status == TK_OK) status = operands_take(&dense, &rest[1], wide_of(args.dtype), &lse);
    if (status == TK_OK) status = operands_take(&dense, &rest[2], args.dtype, &dout);
    if (status == TK_OK)
        status = tk_attention_backward(&args, out, lse, dout, call->outputs[0].data,
                                       call->outputs[1].data, call->outputs[2].data);
    operands_free(&dense);
    return status;
}

/* ---- cross entropy ---- */

tk_status tk_body_cross_entropy(const tk_body_call *call) {
    const tk_strided *x = &call->inputs[0], *targets = &call->inputs[1];
    const tk_strided *loss = &call->outputs[0], *lse = &call->outputs[1];
    operands dense = {.count = 0};
    const void *logits, *classes;
    tk_strided wide_loss = *loss;
    wide_loss.dtype = lse->dtype;
    wide_loss.data = NULL;
    tk_status status = operands_take(&dense, x, x->dtype, &logits);
    if (status == TK_OK) status = operands_take(&dense, targets, TK_INT64, &classes);
    if (status == TK_OK)
        status = tk_scratch_new(loss->size, tk_dtype_size(lse->dtype), &wide_loss.data);
    if (status == TK_OK && loss->size) {
        int64_t columns = x->shape[x->rank - 1];
        int64_t bad = tk_cpu_cross_entropy(x->dtype, logits, classes, wide_loss.data, lse->data,
                                           loss->size, columns);
        if (bad >= 0) tk_fault_note(call->fault, bad, ((const int64_t *)classes)[bad], columns);
        tk_convert_view(&wide_loss, loss);
    }
    tk_free(wide_loss.data);
    operands_free(&dense);
    return status;
}

tk_status tk_body_cross_entropy_vjp(const tk_body_call *call) {
    const tk_strided *x = &call->inputs[0], *targets = &call->inputs[1];
    tk_dtype wide = wide_of(x->dtype);
    operands dense = {.count = 0};
    const void *logits, *classes, *lse, *dloss;
    tk_status status = operands_take(&dense, x, x->dtype, &logits);
    if (status == TK_OK) status = operands_take(&dense, targets, TK_INT64, &classes);
    if (status == TK_OK) status = operands_take(&dense, &call->inputs[2], wide, &lse);
    if (status == TK_OK) status = operands_take(&dense, &call->inputs[3], wide, &dloss);
    if (status == TK_OK && x->size)
        tk_cpu_cross_entropy_backward(x->dtype, logits, classes, lse, dloss, call->outputs[0].data,
                                      targets->size, x->shape[x->rank - 1]);
    operands_free(&dense);
    return status;
}
