/* Functions with transforms of their own, and checkpointing, which is one: its vjp computes the
 * function again on operands that a barrier keeps apart from the first computation (interning would
 * otherwise find it, and with it the intermediate values that checkpointing is to forget).
 *
 * Callbacks come from rules, which hold the graph's lock: it is given back for the user's function
 * and taken again for what it returned. */
#include "graph/custom.h"

#include <string.h>

#include "array/context.h"
#include "base/error.h"
#include "tiki/transforms.h"

typedef struct custom_call {
    tk_custom_rules base; /* first: the op refers to it */
    tk_deferred later;
    tk_context *context;
    tk_custom user;
    size_t n_args;
} custom_call;

static void free_call(tk_deferred *later) {
    custom_call *call = (custom_call *)(void *)((char *)later - offsetof(custom_call, later));
    if (call->user.release) call->user.release(call->user.self);
    tk_free(call);
}

/* The last node that refers to the call is being freed, under the lock. */
static void release_call(tk_ref *ref) {
    custom_call *call = (custom_call *)(void *)ref;
    tk_graph_defer(&call->context->graph, &call->later, free_call);
}

/* ---- calling back ---- */

typedef struct call_list {
    tk_arrays given, results;
} call_list;

/* Needs the lock. A NULL node stands for zeros of the type of `like`. */
static tk_status list_add(call_list *list, tk_builder *b, tk_node *node, const tk_node *like) {
    if (!node) {
        uint32_t stream = tk_place_enter(b, like);
        node = tkb_broadcast_to(b, tkb_const(b, (tk_dtype)like->dtype, 0), tk_node_shape(like));
        b->stream = stream;
    }
    if (!tk_vec_reserve(&list->given, list->given.count + 1))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a custom function");
    tk_handle_retain(node);
    list->given.items[list->given.count++] = (tk_array){node};
    return TK_OK;
}

/* Runs without the lock; `expected` results or an error. */
static tk_status call_back(custom_call *call, const char *what, tk_function function,
                           call_list *list, size_t expected) {
    tk_graph_unlock(&call->context->graph);
    tk_scope scope = tk_scope_open(call->context);
    tk_status status = tk_call_looking(function, call->user.self, list->given.items,
                                       list->given.count, &list->results);
    tk_scope_close(scope);
    for (size_t i = 0; status == TK_OK && i < list->results.count; i++)
        if (list->results.items[i].node) status = tk_array_status(list->results.items[i]);
    if (status == TK_OK && list->results.count != expected)
        status = tk_fail(TK_INVALID_ARGUMENT,
                         "the %s of a custom function gave %zu arrays, expected %zu", what,
                         list->results.count, expected);
    tk_graph_lock(&call->context->graph);
    return status;
}

/* Needs the lock. */
static void clear(tk_arrays *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].node) tk_handle_release(list->items[i].node);
    tk_vec_deinit(list);
}

/* Result `index` as the builder's node, checked against the type it must have. NULL for
 * TK_NO_ARRAY. */
static tk_status take_result(const call_list *list, size_t index, const char *what, tk_builder *b,
                             const tk_node *like, tk_node **out_node) {
    tk_node *node = list->results.items[index].node;
    *out_node = NULL;
    if (!node) return TK_OK;
    if (node->dtype != like->dtype || !tk_shape_equal(node, like))
        return tk_fail(TK_SHAPE_ERROR,
                       "array %zu of the %s of a custom function does not have the type of its "
                       "counterpart",
                       index, what);
    tk_node_retain(node);
    *out_node = tkb_hold(b, node);
    return TK_OK;
}

/* ---- the transforms ---- */

static tk_status add_cotangents(call_list *list, const tk_vjp_rule *v, size_t n_args) {
    size_t n_results = v->node->n_inputs - n_args;
    for (size_t i = 0; i < n_results; i++)
        TK_TRY(list_add(list, v->b, v->cotangents[i], v->inputs[n_args + i]));
    return TK_OK;
}

static tk_status custom_vjp(tk_custom_rules *base, tk_vjp_rule *v) {
    custom_call *call = (custom_call *)(void *)base;
    call_list list = {0};
    tk_status status = TK_OK;
    size_t n_args = call->n_args, n_results = v->node->n_inputs - n_args;
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = list_add(&list, v->b, v->inputs[i], NULL);
    if (status == TK_OK) status = add_cotangents(&list, v, n_args);
    for (size_t i = 0; status == TK_OK && i < n_results; i++)
        status = list_add(&list, v->b, tkb_output(v->b, v->node, (int)i), NULL);
    if (status == TK_OK) status = call_back(call, "vjp", call->user.vjp, &list, n_args);
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        if (v->needed[i]) status = take_result(&list, i, "vjp", v->b, v->inputs[i], &v->grads[i]);
    clear(&list.given);
    clear(&list.results);
    return status;
}

static tk_status custom_jvp(tk_custom_rules *base, tk_builder *b, const tk_node *node,
                            tk_node *const *tangents, tk_node **out_tangents) {
    custom_call *call = (custom_call *)(void *)base;
    call_list list = {0};
    tk_status status = TK_OK;
    size_t n_args = call->n_args, n_results = node->n_inputs - n_args;
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = list_add(&list, b, node->inputs[i], NULL);
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = list_add(&list, b, tangents[i], node->inputs[i]);
    if (status == TK_OK) status = call_back(call, "jvp", call->user.jvp, &list, n_results);
    for (size_t i = 0; status == TK_OK && i < n_results; i++)
        status = take_result(&list, i, "jvp", b, node->inputs[n_args + i], &out_tangents[i]);
    clear(&list.given);
    clear(&list.results);
    return status;
}

static tk_status take_batched(const call_list *list, size_t index, tk_batch *batch,
                              const tk_node *like) {
    tk_node *node = list->results.items[index].node;
    bool fits = node && node->rank == like->rank + 1 && node->dtype == like->dtype &&
                node->shape[0] == batch->size &&
                (like->rank == 0 ||
                 !memcmp(node->shape + 1, like->shape, like->rank * sizeof *like->shape));
    if (!fits)
        return tk_fail(
            TK_SHAPE_ERROR,
            "result %zu of the vmap of a custom function does not have the result's type "
            "with the batch in front",
            index);
    tk_node_retain(node);
    batch->outputs[index] = tkb_hold(batch->b, node);
    return TK_OK;
}

static tk_status custom_batch(tk_custom_rules *base, tk_batch *batch) {
    custom_call *call = (custom_call *)(void *)base;
    call_list list = {0};
    tk_status status = TK_OK;
    size_t n_args = call->n_args, n_results = batch->node->n_inputs - n_args;
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = list_add(&list, batch->b, tk_batch_operand(batch, i), NULL);
    if (status == TK_OK) status = call_back(call, "vmap", call->user.vmap, &list, n_results);
    for (size_t i = 0; status == TK_OK && i < n_results; i++)
        status = take_batched(&list, i, batch, batch->node->inputs[n_args + i]);
    clear(&list.given);
    clear(&list.results);
    return status;
}

/* ---- making a call ---- */

static tk_status check_results(const tk_context *context, const tk_arrays *results) {
    if (results->count == 0)
        return tk_fail(TK_INVALID_ARGUMENT, "a custom function gave no result");
    for (size_t i = 0; i < results->count; i++) {
        TK_TRY(tk_array_status(results->items[i]));
        if (tk_array_context(results->items[i]) != context)
            return tk_fail(TK_CONTEXT_ERROR,
                           "result %zu of a custom function belongs to another context", i);
    }
    return TK_OK;
}

static tk_status give_outputs(tk_builder *b, tk_node *node, size_t count, tk_arrays *results) {
    for (size_t i = 0; i < count; i++) {
        tk_node *output = tkb_output(b, node, (int)i);
        if (tk_node_is_error(output)) {
            const tk_attrs_error *error = tk_node_attrs(output);
            return tk_fail_again((tk_status)error->code, error->message);
        }
        if (!tk_vec_reserve(results, results->count + 1))
            return tk_fail(TK_OUT_OF_MEMORY, "no memory for a list of arrays");
        tk_handle_retain(output);
        results->items[results->count++] = (tk_array){output};
    }
    return TK_OK;
}

/* Puts the op on top of arguments and plain results. */
static tk_status wrap_results(custom_call *call, const tk_array *args, const tk_arrays *plain,
                              tk_arrays *results) {
    tk_graph *graph = &call->context->graph;
    tk_node_vec inputs = {0};
    tk_graph_lock(graph);
    tk_builder b;
    tk_thread *thread = tk_context_thread(call->context);
    tk_builder_open(&b, graph, thread ? thread->stream : 0);
    tk_status status = TK_OK;
    if (!tk_vec_reserve(&inputs, call->n_args + plain->count))
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for a custom function");
    if (status == TK_OK) {
        for (size_t i = 0; i < call->n_args; i++) inputs.items[inputs.count++] = args[i].node;
        for (size_t i = 0; i < plain->count; i++)
            inputs.items[inputs.count++] = plain->items[i].node;
        tk_attrs_custom attrs = {.call = &call->base.ref,
                                 .n_args = (int64_t)call->n_args,
                                 .serial = (int64_t)tk_graph_serial(graph)};
        tk_node *node = tkb_node(&b, TK_OP_custom, inputs.count, inputs.items, &attrs);
        status = give_outputs(&b, node, plain->count, results);
    }
    tk_builder_close(&b);
    tk_graph_unlock(graph);
    tk_vec_deinit(&inputs);
    return status;
}

/* Consumes the call's reference. */
static tk_status call_custom(custom_call *call, const tk_array *args, tk_arrays *results) {
    tk_arrays plain = {0};
    tk_scope scope = tk_scope_open(call->context);
    tk_status status = call->user.function(call->user.self, args, call->n_args, &plain);
    tk_scope_close(scope);
    if (status == TK_OK) status = check_results(call->context, &plain);
    if (status == TK_OK) status = wrap_results(call, args, &plain, results);
    tk_arrays_clear(&plain);
    tk_graph *graph = &call->context->graph;
    tk_graph_lock(graph);
    tk_ref_release(&call->base.ref);
    tk_graph_unlock(graph);
    return status;
}

static tk_status check_custom(tk_context *context, const tk_custom *custom, const tk_array *args,
                              size_t n_args) {
    TK_NEED(context);
    if (n_args) TK_NEED(args);
    TK_TRY(tk_context_check(context));
    if (custom->size != sizeof *custom)
        return tk_fail(TK_INVALID_ARGUMENT, "tk_custom.size is %zu, expected %zu", custom->size,
                       sizeof *custom);
    if (!custom->function) return tk_fail(TK_INVALID_ARGUMENT, "tk_custom.function is NULL");
    for (size_t i = 0; i < n_args; i++) {
        TK_TRY(tk_array_status(args[i]));
        if (tk_array_context(args[i]) != context)
            return tk_fail(TK_CONTEXT_ERROR, "argument %zu belongs to another context", i);
    }
    return TK_OK;
}

static custom_call *new_call(tk_context *context, const tk_custom *custom, size_t n_args) {
    custom_call *call = tk_calloc(1, sizeof *call);
    if (!call) return NULL;
    atomic_init(&call->base.ref.count, 1);
    call->base.ref.release = release_call;
    call->base.vjp = custom->vjp ? custom_vjp : NULL;
    call->base.jvp = custom->jvp ? custom_jvp : NULL;
    call->base.batch = custom->vmap ? custom_batch : NULL;
    call->context = context;
    call->user = *custom;
    call->n_args = n_args;
    return call;
}

static tk_status call_with_vjp(tk_context *context, const tk_custom *custom, const tk_array *args,
                               size_t n_args, tk_arrays *results,
                               tk_status (*vjp)(tk_custom_rules *call, tk_vjp_rule *v)) {
    tk_status status =
        results ? check_custom(context, custom, args, n_args) : tk_fail_null("results");
    custom_call *call = status == TK_OK ? new_call(context, custom, n_args) : NULL;
    if (!call) {
        if (custom->release) custom->release(custom->self);
        return status != TK_OK ? status
                               : tk_fail(TK_OUT_OF_MEMORY, "no memory for a custom function");
    }
    if (vjp) call->base.vjp = vjp;
    return call_custom(call, args, results);
}

tk_status tk_custom_call(tk_context *context, const tk_custom *custom, const tk_array *args,
                         size_t n_args, tk_arrays *results) {
    TK_NEED(custom);
    return call_with_vjp(context, custom, args, n_args, results, NULL);
}

/* ---- checkpointing ---- */

/* The argument again, as a value of its own that exists only after the cotangents do. */
static tk_node *barrier(tk_builder *b, tk_node *arg, const tk_vjp_rule *v) {
    tk_node *inputs[1 + TK_MAX_RANK] = {arg};
    size_t n_inputs = 1;
    for (size_t i = 0; i < v->node->n_outputs && n_inputs <= TK_MAX_RANK; i++)
        if (v->cotangents[i]) inputs[n_inputs++] = v->cotangents[i];
    tk_attrs_barrier attrs = {.serial = (int64_t)tk_graph_serial(b->graph)};
    return tkb_node(b, TK_OP_barrier, n_inputs, inputs, &attrs);
}

static tk_status checkpoint_vjp(tk_custom_rules *base, tk_vjp_rule *v) {
    custom_call *call = (custom_call *)(void *)base;
    call_list args = {0}, cotangents = {0};
    size_t n_args = call->n_args, n_results = v->node->n_inputs - n_args;
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = list_add(&args, v->b, barrier(v->b, v->inputs[i], v), NULL);
    for (size_t i = 0; status == TK_OK && i < n_results; i++)
        status = list_add(&cotangents, v->b, v->cotangents[i], v->inputs[n_args + i]);
    tk_arrays values = {0};
    if (status == TK_OK) {
        tk_graph_unlock(&call->context->graph);
        status = tk_vjp(call->context, call->user.function, call->user.self, args.given.items,
                        n_args, cotangents.given.items, n_results, &values, &args.results);
        tk_graph_lock(&call->context->graph);
    }
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        if (v->needed[i])
            status = take_result(&args, i, "checkpoint", v->b, v->inputs[i], &v->grads[i]);
    clear(&values);
    clear(&args.given);
    clear(&args.results);
    clear(&cotangents.given);
    return status;
}

tk_status tk_checkpoint(tk_context *context, tk_function function, void *self,
                        void (*release)(void *self), const tk_array *args, size_t n_args,
                        tk_arrays *results) {
    if (!function) {
        if (release) release(self);
        return tk_fail_null("function");
    }
    tk_custom custom = {
        .size = sizeof custom, .function = function, .self = self, .release = release};
    return call_with_vjp(context, &custom, args, n_args, results, checkpoint_vjp);
}
