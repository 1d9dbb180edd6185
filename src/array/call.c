/* See call.h. */
#include "array/call.h"

#include <stdio.h>

#include "base/error.h"
#include "base/fork.h"

_Static_assert(sizeof(tk_array) == sizeof(tk_node *), "a list of handles is a list of nodes");

void tk_call_open(tk_call *call, const char *name, tk_context *context) {
    call->name = name;
    call->context = context;
    call->n_nodes = 0;
    call->key = -1;
    call->list = NULL;
    call->n_list = 0;
    call->results = (tk_node_vec){0};
    call->status = TK_OK;
}

static void meet(tk_call *call, tk_node *node) {
    tk_context *context = tk_context_of(node->graph);
    if (!call->context) call->context = context;
    if (call->context != context && call->status == TK_OK)
        call->status = tk_fail(TK_CONTEXT_ERROR,
                               "%s: operands belong to two contexts, expected one", call->name);
}

static void miss(tk_call *call, int operand) {
    if (call->status != TK_OK) return;
    char what[80];
    snprintf(what, sizeof what, "%s: operand %d", call->name, operand);
    call->status = tk_fail_no_array(what);
}

void tk_call_need(tk_call *call, const char *argument, const void *pointer) {
    if (!pointer && call->status == TK_OK)
        call->status = tk_fail_within(tk_fail_null(argument), "%s", call->name);
}

static void refuse_value(tk_call *call, tk_status status) {
    if (call->status == TK_OK) call->status = tk_fail_within(status, "%s", call->name);
}

void tk_call_dtype(tk_call *call, const char *argument, tk_dtype dtype, bool or_none) {
    if ((unsigned)dtype < TK_DTYPE_COUNT + (unsigned)or_none) return;
    refuse_value(call, tk_fail(TK_DTYPE_ERROR, "argument `%s` is %d, which is no dtype", argument,
                               (int)dtype));
}

void tk_call_enum(tk_call *call, const char *argument, int value, int count, const char *type) {
    if (value < 0 || value >= count)
        refuse_value(call, tk_check_enum(argument, value, count, type));
}

void tk_call_optional(tk_call *call, tk_array array) {
    if (array.node) meet(call, array.node);
    call->nodes[call->n_nodes++] = array.node;
}

void tk_call_operand(tk_call *call, tk_array array) {
    if (!array.node) miss(call, call->n_nodes);
    tk_call_optional(call, array);
}

void tk_call_key(tk_call *call, tk_array key) {
    if (!key.node) call->key = call->n_nodes;
    tk_call_optional(call, key);
}

void tk_call_operands(tk_call *call, const char *argument, const tk_array *arrays, size_t count) {
    if (count) tk_call_need(call, argument, arrays);
    if (!arrays) count = 0;
    for (size_t i = 0; i < count; i++) {
        if (arrays[i].node)
            meet(call, arrays[i].node);
        else
            miss(call, (int)i);
    }
    call->list = (tk_node *const *)(const void *)arrays;
    call->n_list = call->status == TK_OK ? count : 0;
    if (count == 0 && call->status == TK_OK)
        call->status =
            tk_fail(TK_INVALID_ARGUMENT, "%s: 0 arrays given, expected 1 or more", call->name);
}

/* Constants that the function makes belong where its operands are; a weak scalar is nowhere. */
static void enter_place(tk_call *call) {
    const tk_node *first = NULL;
    for (int i = 0; !first && i < call->n_nodes; i++)
        if (call->nodes[i] && !(call->nodes[i]->flags & TK_NODE_WEAK)) first = call->nodes[i];
    for (size_t i = 0; !first && i < call->n_list; i++)
        if (!(call->list[i]->flags & TK_NODE_WEAK)) first = call->list[i];
    if (first) call->builder.stream = tk_place_stream(first, call->builder.stream);
}

bool tk_call_begin(tk_call *call) {
    if (!call->context) {
        tk_call_need(call, "context", NULL);
        return false;
    }
    if (call->status != TK_OK) return false;
    call->status = tk_context_check(call->context);
    if (call->status != TK_OK) return false;
    tk_graph_lock(&call->context->graph);
    tk_thread *thread = tk_context_thread(call->context);
    tk_builder_open(&call->builder, &call->context->graph, thread ? thread->stream : 0);
    if (call->context->graph.n_places > 1) enter_place(call);
    if (call->key >= 0) {
        tk_node *key = tk_context_next_key(call->context, &call->builder);
        call->nodes[call->key] = tkb_to_stream(&call->builder, key, call->builder.stream);
    }
    return true;
}

tk_array tk_call_refuse(tk_call *call) {
    if (!call->context || call->context->fork_epoch != tk_fork_epoch()) {
        tk_fail_explains();
        return TK_NO_ARRAY;
    }
    tk_graph_lock(&call->context->graph);
    tk_builder_open(&call->builder, &call->context->graph, 0);
    return tk_call_end(call, tkb_fail(&call->builder, call->status));
}

tk_status tk_call_refuse_list(tk_call *call) { return call->status; }

tk_array tk_call_end(tk_call *call, tk_node *node) {
    tk_array array = tk_handle_give(call->context, node);
    tk_builder_close(&call->builder);
    tk_graph_unlock(&call->context->graph);
    return array;
}

static tk_status status_of(const tk_node *node) {
    if (!tk_node_is_error(node)) return TK_OK;
    const tk_attrs_error *error = tk_node_attrs(node);
    return tk_fail_again((tk_status)error->code, error->message);
}

tk_status tk_call_end_list(tk_call *call, bool ok, tk_arrays *out) {
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < call->results.count; i++)
        status = status_of(call->results.items[i]);
    if (status == TK_OK && !ok)
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for a list of arrays");
    if (status == TK_OK && !tk_vec_reserve(out, out->count + call->results.count))
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for a list of arrays");
    for (size_t i = 0; status == TK_OK && i < call->results.count; i++) {
        tk_handle_retain(call->results.items[i]);
        out->items[out->count++] = (tk_array){call->results.items[i]};
    }
    tk_vec_deinit(&call->results);
    tk_builder_close(&call->builder);
    tk_graph_unlock(&call->context->graph);
    return status;
}
