/* Transforms as a user calls them: placeholders, the callback, the rewrite (src/graph does that
 * part).
 *
 * Placeholders of grad, vjp and jvp have the argument as their operand, so they have its value, and
 * stay in the graph as identities; there is nothing to substitute afterwards. While the transform's
 * trace is open, evaluation leaves the operands of everything that depends on a placeholder in
 * place. */
#include "tiki/transforms.h"

#include <string.h>

#include "array/context.h"
#include "base/error.h"
#include "graph/batch.h"
#include "graph/vjp.h"

/* ---- placeholders ---- */

static tk_node *placeholder(tk_builder *b, uint32_t trace, tk_type type, tk_node *value) {
    tk_attrs_placeholder attrs = {.dtype = type.dtype,
                                  .shape = {type.shape, type.rank},
                                  .serial = (int64_t)tk_graph_serial(b->graph)};
    tk_node *node = tkb_node(b, TK_OP_placeholder, value ? 1 : 0, &value, &attrs);
    if (!tk_node_is_error(node) && !node->trace) node->trace = trace;
    return node;
}

typedef struct tracing {
    tk_context *context;
    tk_builder builder;
    uint32_t trace;
    tk_node_vec wrt;   /* placeholders */
    tk_arrays args;    /* what the callback is given */
    tk_arrays results; /* what it gave */
} tracing;

static tk_status check_call(tk_context *context, const tk_array *args, size_t n_args) {
    TK_TRY(tk_context_check(context));
    for (size_t i = 0; i < n_args; i++) {
        TK_TRY(tk_array_status(args[i]));
        if (tk_array_context(args[i]) != context)
            return tk_fail(TK_CONTEXT_ERROR, "argument %zu belongs to another context", i);
    }
    return TK_OK;
}

/* Takes the lock; end_tracing gives it back. */
static tk_status begin_tracing(tracing *t, tk_context *context) {
    *t = (tracing){.context = context};
    tk_graph_lock(&context->graph);
    tk_thread *thread = tk_context_thread(context);
    tk_builder_open(&t->builder, &context->graph, thread ? thread->stream : 0);
    return tk_trace_open(&context->graph, &t->trace);
}

static void end_tracing(tracing *t) {
    if (t->trace) tk_trace_close(&t->context->graph, t->trace);
    tk_builder_close(&t->builder);
    tk_graph_unlock(&t->context->graph);
    tk_arrays_clear(&t->args);
    tk_arrays_clear(&t->results);
    tk_vec_deinit(&t->wrt);
}

/* Appends a handle; needs the lock. */
static tk_status give(tk_arrays *list, tk_node *node) {
    if (!tk_vec_reserve(list, list->count + 1))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a list of arrays");
    tk_handle_retain(node);
    list->items[list->count++] = (tk_array){node};
    return TK_OK;
}

static tk_status error_of(const tk_node *node) {
    if (!tk_node_is_error(node)) return TK_OK;
    const tk_attrs_error *error = tk_node_attrs(node);
    return tk_fail_again((tk_status)error->code, error->message);
}

static tk_status add_argument(tracing *t, tk_node *value, bool traced) {
    tk_node *node = value;
    if (traced) node = placeholder(&t->builder, t->trace, tk_node_type(value), value);
    TK_TRY(error_of(node));
    if (traced && !tk_vec_push(&t->wrt, node))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a transform");
    return give(&t->args, node);
}

/* Calls of functions that transforms look at, on this thread. */
static _Thread_local int looking;

bool tk_transforms_active(void) { return looking > 0; }

tk_status tk_call_looking(tk_function function, void *self, const tk_array *args, size_t n_args,
                          tk_arrays *results) {
    looking++;
    tk_status status = function(self, args, n_args, results);
    looking--;
    return status;
}

/* Calls back without the lock. */
static tk_status call_function(tracing *t, tk_function function, void *self) {
    tk_graph_unlock(&t->context->graph);
    tk_scope scope = tk_scope_open(t->context);
    tk_status status = tk_call_looking(function, self, t->args.items, t->args.count, &t->results);
    tk_scope_close(scope);
    for (size_t i = 0; status == TK_OK && i < t->results.count; i++)
        status = tk_array_status(t->results.items[i]);
    tk_graph_lock(&t->context->graph);
    return status;
}

static tk_node *const *nodes_of(const tk_array *arrays) {
    return (tk_node *const *)(const void *)arrays;
}

static tk_status give_all(tk_arrays *list, size_t count, tk_node *const *nodes) {
    for (size_t i = 0; i < count; i++) TK_TRY(error_of(nodes[i]));
    for (size_t i = 0; i < count; i++) TK_TRY(give(list, nodes[i]));
    return TK_OK;
}

/* A value for all elements, where `node` is. */
static tk_node *constant_like(tk_builder *b, const tk_node *node, double value) {
    uint32_t stream = tk_place_enter(b, node);
    tk_node *scalar = tkb_const(b, (tk_dtype)node->dtype, value);
    tk_node *whole = tkb_broadcast_to(b, scalar, tk_node_shape(node));
    b->stream = stream;
    return whole;
}

static tk_node *zeros_like(tk_builder *b, const tk_node *node) { return constant_like(b, node, 0); }

static tk_status check_paired(const char *what, size_t index, const tk_node *given,
                              const tk_node *for_node) {
    if (given->dtype == for_node->dtype && tk_shape_equal(given, for_node)) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "%s %zu does not have the type of its array", what, index);
}

/* ---- reverse mode ---- */

/* Gradients of the traced results for cotangents, one a placeholder; zeros where nothing depends on
 * it. */
static tk_status reverse(tracing *t, tk_node *const *cotangents, tk_arrays *gradients) {
    tk_node_vec grads = {0};
    if (!tk_vec_reserve(&grads, t->wrt.count + 1))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for gradients");
    tk_status status = tk_vjp_run(&t->builder, t->results.count, nodes_of(t->results.items),
                                  cotangents, t->wrt.count, t->wrt.items, grads.items);
    for (size_t i = 0; status == TK_OK && i < t->wrt.count; i++)
        if (!grads.items[i]) grads.items[i] = zeros_like(&t->builder, t->wrt.items[i]);
    if (status == TK_OK) status = give_all(gradients, t->wrt.count, grads.items);
    tk_vec_deinit(&grads);
    return status;
}

static tk_status check_cotangents(const tracing *t, const tk_array *cotangents, size_t count) {
    if (count != t->results.count)
        return tk_fail(TK_INVALID_ARGUMENT, "%zu cotangents given for %zu results", count,
                       t->results.count);
    for (size_t i = 0; i < count; i++)
        if (tk_dtype_is_inexact((tk_dtype)t->results.items[i].node->dtype))
            TK_TRY(check_paired("cotangent", i, cotangents[i].node, t->results.items[i].node));
    return TK_OK;
}

/* Cotangents of integer results are ignored. */
static tk_status reverse_given(tracing *t, const tk_array *cotangents, tk_arrays *gradients) {
    tk_node_vec used = {0};
    if (!tk_vec_reserve(&used, t->results.count + 1))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for gradients");
    for (size_t i = 0; i < t->results.count; i++) {
        bool inexact = tk_dtype_is_inexact((tk_dtype)t->results.items[i].node->dtype);
        used.items[i] = inexact ? cotangents[i].node : NULL;
    }
    tk_status status = reverse(t, used.items, gradients);
    tk_vec_deinit(&used);
    return status;
}

tk_status tk_vjp(tk_context *context, tk_function function, void *self, const tk_array *args,
                 size_t n_args, const tk_array *cotangents, size_t n_cotangents, tk_arrays *values,
                 tk_arrays *gradients) {
    TK_NEED(context, values, gradients);
    if (!function) return tk_fail_null("function");
    if (n_args) TK_NEED(args);
    if (n_cotangents) TK_NEED(cotangents);
    TK_TRY(check_call(context, args, n_args));
    TK_TRY(check_call(context, cotangents, n_cotangents));
    tracing t;
    tk_status status = begin_tracing(&t, context);
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = add_argument(&t, args[i].node, true);
    if (status == TK_OK) status = call_function(&t, function, self);
    if (status == TK_OK) status = check_cotangents(&t, cotangents, n_cotangents);
    if (status == TK_OK) status = reverse_given(&t, cotangents, gradients);
    if (status == TK_OK) status = give_all(values, t.results.count, nodes_of(t.results.items));
    end_tracing(&t);
    return status;
}

static bool is_among(const int *argnums, size_t n_argnums, size_t index) {
    for (size_t i = 0; i < n_argnums; i++)
        if ((size_t)argnums[i] == index) return true;
    return false;
}

static tk_status check_argnums(const tk_array *args, size_t n_args, const int *argnums,
                               size_t n_argnums) {
    for (size_t i = 0; i < n_argnums; i++) {
        if (argnums[i] < 0 || (size_t)argnums[i] >= n_args)
            return tk_fail(TK_INVALID_ARGUMENT, "argnums[%zu] is %d, expected 0 to %zu", i,
                           argnums[i], n_args - 1);
        if (!tk_dtype_is_inexact(tk_array_dtype(args[argnums[i]])))
            return tk_fail(TK_DTYPE_ERROR,
                           "argument %d is %s, expected a float or complex dtype to differentiate",
                           argnums[i], tk_dtype_name(tk_array_dtype(args[argnums[i]])));
        for (size_t k = 0; k < i; k++)
            if (argnums[k] == argnums[i])
                return tk_fail(TK_INVALID_ARGUMENT, "argnums[%zu] and argnums[%zu] are both %d", k,
                               i, argnums[i]);
    }
    return TK_OK;
}

static tk_status check_loss(const tracing *t) {
    if (t->results.count == 0)
        return tk_fail(TK_INVALID_ARGUMENT, "the function gave no result to differentiate");
    const tk_node *loss = t->results.items[0].node;
    if (loss->size != 1 || loss->rank != 0)
        return tk_fail(TK_SHAPE_ERROR,
                       "the first result has %d axes and %lld elements, expected a scalar loss",
                       loss->rank, (long long)loss->size);
    if (!tk_dtype_is_float((tk_dtype)loss->dtype))
        return tk_fail(TK_DTYPE_ERROR, "the loss is %s, expected a float dtype",
                       tk_dtype_name((tk_dtype)loss->dtype));
    return TK_OK;
}

static tk_status reverse_loss(tracing *t, const int *argnums, size_t n_argnums,
                              tk_arrays *gradients) {
    tk_node_vec cotangents = {0};
    tk_arrays ascending = {0};
    if (!tk_vec_reserve(&cotangents, t->results.count))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for gradients");
    for (size_t i = 0; i < t->results.count; i++) cotangents.items[i] = NULL;
    cotangents.items[0] = constant_like(&t->builder, t->results.items[0].node, 1);
    tk_status status = reverse(t, cotangents.items, &ascending);
    /* placeholders were made in the order of arguments; argnums may have another */
    for (size_t i = 0; status == TK_OK && i < n_argnums; i++) {
        size_t rank = 0;
        for (size_t k = 0; k < n_argnums; k++) rank += argnums[k] < argnums[i];
        status = give(gradients, ascending.items[rank].node);
    }
    for (size_t i = 0; i < ascending.count; i++) tk_handle_release(ascending.items[i].node);
    tk_vec_deinit(&ascending);
    tk_vec_deinit(&cotangents);
    return status;
}

tk_status tk_value_and_grad(tk_context *context, tk_function function, void *self,
                            const tk_array *args, size_t n_args, const int *argnums,
                            size_t n_argnums, tk_arrays *values, tk_arrays *gradients) {
    TK_NEED(context, gradients);
    if (!function) return tk_fail_null("function");
    if (n_args) TK_NEED(args);
    static const int first = 0;
    if (!argnums) {
        argnums = &first;
        n_argnums = 1;
    }
    TK_TRY(check_call(context, args, n_args));
    TK_TRY(check_argnums(args, n_args, argnums, n_argnums));
    tracing t;
    tk_status status = begin_tracing(&t, context);
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = add_argument(&t, args[i].node, is_among(argnums, n_argnums, i));
    if (status == TK_OK) status = call_function(&t, function, self);
    if (status == TK_OK) status = check_loss(&t);
    if (status == TK_OK) status = reverse_loss(&t, argnums, n_argnums, gradients);
    if (status == TK_OK && values)
        status = give_all(values, t.results.count, nodes_of(t.results.items));
    end_tracing(&t);
    return status;
}

tk_status tk_grad(tk_context *context, tk_function function, void *self, const tk_array *args,
                  size_t n_args, const int *argnums, size_t n_argnums, tk_arrays *gradients) {
    return tk_value_and_grad(context, function, self, args, n_args, argnums, n_argnums, NULL,
                             gradients);
}

/* ---- forward mode ---- */

static tk_status forward(tracing *t, const tk_array *tangents, tk_arrays *out_tangents) {
    tk_node_vec nodes = {0};
    size_t count = t->results.count;
    if (!tk_vec_reserve(&nodes, count + 1))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for tangents");
    tk_status status = tk_jvp_run(&t->builder, t->wrt.count, t->wrt.items, nodes_of(tangents),
                                  count, nodes_of(t->results.items), nodes.items);
    for (size_t i = 0; status == TK_OK && i < count; i++)
        if (!nodes.items[i]) nodes.items[i] = zeros_like(&t->builder, t->results.items[i].node);
    if (status == TK_OK) status = give_all(out_tangents, count, nodes.items);
    tk_vec_deinit(&nodes);
    return status;
}

tk_status tk_jvp(tk_context *context, tk_function function, void *self, const tk_array *args,
                 size_t n_args, const tk_array *tangents, tk_arrays *values,
                 tk_arrays *out_tangents) {
    TK_NEED(context, values, out_tangents);
    if (!function) return tk_fail_null("function");
    if (n_args) TK_NEED(args);
    if (n_args) TK_NEED(tangents);
    TK_TRY(check_call(context, args, n_args));
    TK_TRY(check_call(context, tangents, n_args));
    for (size_t i = 0; i < n_args; i++)
        TK_TRY(check_paired("tangent", i, tangents[i].node, args[i].node));
    tracing t;
    tk_status status = begin_tracing(&t, context);
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = add_argument(&t, args[i].node, true);
    if (status == TK_OK) status = call_function(&t, function, self);
    if (status == TK_OK) status = forward(&t, tangents, out_tangents);
    if (status == TK_OK) status = give_all(values, t.results.count, nodes_of(t.results.items));
    end_tracing(&t);
    return status;
}

/* ---- vmap ---- */

typedef struct mapping {
    int64_t size; /* of the batch; -1 until an argument tells it */
    tk_node_vec inputs;
} mapping;

/* A placeholder for one element of the mapped argument. */
static tk_status add_mapped(tracing *t, mapping *m, size_t index, tk_node *arg, int64_t in_axis) {
    int axis;
    TK_TRY(tk_axis_normalize("vmap", in_axis, arg->rank, &axis));
    if (m->size >= 0 && m->size != arg->shape[axis])
        return tk_fail(TK_SHAPE_ERROR,
                       "vmap: argument %zu has length %lld on its mapped axis, others %lld", index,
                       (long long)arg->shape[axis], (long long)m->size);
    m->size = arg->shape[axis];
    tk_node *front = tkb_moveaxis(&t->builder, arg, axis, 0);
    TK_TRY(error_of(front));
    tk_type element = {(tk_dtype)arg->dtype, front->rank - 1, front->shape + 1};
    uint32_t stream = tk_place_enter(&t->builder, front);
    tk_node *node = placeholder(&t->builder, t->trace, element, NULL);
    t->builder.stream = stream;
    TK_TRY(error_of(node));
    if (!tk_vec_push(&m->inputs, front) || !tk_vec_push(&t->wrt, node))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a transform");
    return give(&t->args, node);
}

static tk_status add_mapped_arguments(tracing *t, mapping *m, const tk_array *args, size_t n_args,
                                      const int *in_axes) {
    for (size_t i = 0; i < n_args; i++) {
        bool unmapped = in_axes && in_axes[i] == TK_UNMAPPED;
        if (unmapped)
            TK_TRY(add_argument(t, args[i].node, false));
        else
            TK_TRY(add_mapped(t, m, i, args[i].node, in_axes ? in_axes[i] : 0));
    }
    if (m->size < 0) return tk_fail(TK_INVALID_ARGUMENT, "vmap: no argument is mapped");
    return TK_OK;
}

static tk_node *place_batch_axis(tk_builder *b, const mapping *m, tk_node *result, bool batched,
                                 int64_t out_axis) {
    if (!batched && !tk_node_is_error(result)) {
        tk_shape shape = tk_node_shape(result);
        if (shape.count == TK_MAX_RANK)
            return tkb_fail(
                b, tk_fail(TK_SHAPE_ERROR, "vmap: a result has %d axes already", TK_MAX_RANK));
        memmove(shape.items + 1, shape.items, (size_t)shape.count * sizeof *shape.items);
        shape.items[0] = m->size;
        shape.count++;
        result = tkb_broadcast_to(b, result, shape);
    }
    return out_axis == 0 ? result : tkb_moveaxis(b, result, 0, out_axis);
}

static tk_status rewrite_batched(tracing *t, mapping *m, const int *out_axes, tk_arrays *results) {
    size_t count = t->results.count;
    tk_node_vec outputs = {0};
    bool *flags = tk_malloc((count + t->wrt.count + 1) * sizeof *flags);
    tk_status status = TK_OK;
    if (!flags || !tk_vec_reserve(&outputs, count + 1))
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for vmap");
    for (size_t i = 0; status == TK_OK && i < t->wrt.count; i++) flags[count + i] = true;
    if (status == TK_OK)
        status =
            tk_batch_run(&t->builder, m->size, t->wrt.count, t->wrt.items, m->inputs.items,
                         flags + count, count, nodes_of(t->results.items), outputs.items, flags);
    for (size_t i = 0; status == TK_OK && i < count; i++)
        outputs.items[i] = place_batch_axis(&t->builder, m, outputs.items[i], flags[i],
                                            out_axes ? out_axes[i] : 0);
    if (status == TK_OK) status = give_all(results, count, outputs.items);
    tk_vec_deinit(&outputs);
    tk_free(flags);
    return status;
}

tk_status tk_vmap(tk_context *context, tk_function function, void *self, const tk_array *args,
                  size_t n_args, const int *in_axes, const int *out_axes, tk_arrays *results) {
    TK_NEED(context, results);
    if (!function) return tk_fail_null("function");
    if (n_args) TK_NEED(args);
    TK_TRY(check_call(context, args, n_args));
    tracing t;
    mapping m = {.size = -1};
    tk_status status = begin_tracing(&t, context);
    if (status == TK_OK) status = add_mapped_arguments(&t, &m, args, n_args, in_axes);
    if (status == TK_OK) status = call_function(&t, function, self);
    if (status == TK_OK) status = rewrite_batched(&t, &m, out_axes, results);
    end_tracing(&t);
    tk_vec_deinit(&m.inputs);
    return status;
}
