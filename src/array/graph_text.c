/* Graphs as text, for users: src/graph prints and parses, this takes the lock and hands out
 * handles. */
#include "array/call.h"
#include "base/error.h"
#include "graph/parse.h"
#include "graph/print.h"

static tk_status check_outputs(const tk_array *outputs, size_t count) {
    if (count == 0) return tk_fail(TK_INVALID_ARGUMENT, "no arrays to print");
    for (size_t i = 0; i < count; i++) {
        TK_TRY(tk_array_status(outputs[i]));
        if (tk_array_context(outputs[i]) != tk_array_context(outputs[0]))
            return tk_fail(TK_CONTEXT_ERROR, "arrays of two contexts in one graph");
    }
    return tk_context_check(tk_array_context(outputs[0]));
}

static tk_node *const *nodes_of(const tk_array *arrays) {
    return (tk_node *const *)(const void *)arrays;
}

tk_status tk_graph_print(const tk_array *outputs, size_t count, char **out_text) {
    if (count) TK_NEED(outputs);
    TK_NEED(out_text);
    TK_TRY(check_outputs(outputs, count));
    tk_graph *graph = outputs[0].node->graph;
    tk_strbuf text = {0};
    tk_graph_lock(graph);
    tk_status status = tk_graph_text_print(count, nodes_of(outputs), &text);
    tk_graph_unlock(graph);
    if (status != TK_OK) {
        tk_strbuf_deinit(&text);
        return status;
    }
    *out_text = tk_strbuf_take(&text);
    return *out_text ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory to print a graph");
}

static tk_status give_nodes(const tk_node_vec *nodes, tk_arrays *list) {
    if (!tk_vec_reserve(list, list->count + nodes->count))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a list of arrays");
    for (size_t i = 0; i < nodes->count; i++) {
        tk_handle_retain(nodes->items[i]);
        list->items[list->count++] = (tk_array){nodes->items[i]};
    }
    return TK_OK;
}

tk_status tk_graph_inputs(const tk_array *outputs, size_t count, tk_arrays *inputs) {
    if (count) TK_NEED(outputs);
    TK_NEED(inputs);
    TK_TRY(check_outputs(outputs, count));
    tk_graph *graph = outputs[0].node->graph;
    tk_node_vec nodes = {0};
    tk_graph_lock(graph);
    tk_status status = tk_graph_text_inputs(count, nodes_of(outputs), &nodes);
    if (status == TK_OK) status = give_nodes(&nodes, inputs);
    tk_graph_unlock(graph);
    tk_vec_deinit(&nodes);
    return status;
}

tk_status tk_graph_parse(tk_context *context, const char *text, const tk_array *inputs,
                         size_t n_inputs, tk_arrays *outputs) {
    TK_NEED(context, text, outputs);
    if (n_inputs) TK_NEED(inputs);
    if (n_inputs) TK_TRY(check_outputs(inputs, n_inputs));
    if (n_inputs && tk_array_context(inputs[0]) != context)
        return tk_fail(TK_CONTEXT_ERROR, "an input belongs to another context");
    tk_call call;
    tk_call_open(&call, "graph_parse", context);
    if (!tk_call_begin(&call)) return call.status;
    tk_status status =
        tk_graph_text_parse(&call.builder, text, n_inputs, nodes_of(inputs), &call.results);
    if (status == TK_OK) status = give_nodes(&call.results, outputs);
    tk_vec_deinit(&call.results);
    tk_builder_close(&call.builder);
    tk_graph_unlock(&context->graph);
    return status;
}
