/* Functions recorded once and replayed.
 *
 * The callback runs on placeholders without values. Of the graph that comes out, the nodes that
 * depend on a placeholder are the steps, in an order with operands first; everything else is
 * constant and is used as it is. A call interns each step again with the operands of that call.
 * Nothing is simplified then: the builders did that while the function was recorded.
 *
 * Rejected: printing and parsing the graph text, which would do the same ten times slower. */
#include <string.h>

#include "array/context.h"
#include "base/error.h"
#include "graph/walk.h"
#include "tiki/transforms.h"

/* An operand: a slot (arguments first, then steps), or a constant node. */
typedef struct operand {
    uint32_t slot; /* TK_NODE_ABSENT: the constant */
    tk_node *constant;
} operand;

typedef TK_VEC(operand) operand_vec;

struct tk_traced {
    tk_context *context;
    tk_node_vec placeholders; /* retained, as all nodes here */
    tk_node_vec steps;
    operand_vec operands; /* of all steps, one after the other */
    operand_vec results;
};

/* ---- recording ---- */

static tk_status no_memory(void) {
    return tk_fail(TK_OUT_OF_MEMORY, "no memory for a recorded function");
}

static tk_status error_of(const tk_node *node) {
    if (!tk_node_is_error(node)) return TK_OK;
    const tk_attrs_error *error = tk_node_attrs(node);
    return tk_fail_again((tk_status)error->code, error->message);
}

/* Needs the lock. */
static tk_status add_placeholder(tk_traced *traced, tk_builder *b, const tk_node *like,
                                 tk_arrays *given) {
    tk_type type = tk_node_type(like);
    tk_attrs_placeholder attrs = {.dtype = type.dtype,
                                  .shape = {type.shape, type.rank},
                                  .serial = (int64_t)tk_graph_serial(b->graph)};
    tk_node *node = tkb_node(b, TK_OP_placeholder, 0, NULL, &attrs);
    TK_TRY(error_of(node));
    if (!tk_vec_push(&traced->placeholders, node)) return no_memory();
    tk_node_retain(node);
    if (!tk_vec_reserve(given, given->count + 1)) return no_memory();
    tk_handle_retain(node);
    given->items[given->count++] = (tk_array){node};
    return TK_OK;
}

static tk_status add_placeholders(tk_traced *traced, const tk_array *args, size_t n_args,
                                  tk_arrays *given) {
    tk_graph *graph = &traced->context->graph;
    tk_builder b;
    tk_status status = TK_OK;
    tk_graph_lock(graph);
    tk_builder_open(&b, graph, 0);
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = add_placeholder(traced, &b, args[i].node, given);
    tk_builder_close(&b);
    tk_graph_unlock(graph);
    return status;
}

static bool add_operand(operand_vec *list, const uint32_t *slots, const tk_node_map *map,
                        tk_node *node) {
    operand o = {.slot = slots[tk_node_map_get(map, node)], .constant = node};
    if (!tk_vec_push(list, o)) return false;
    tk_handle_retain(node); /* a handle, so that no evaluation takes over a constant's memory */
    return true;
}

static tk_status add_step(tk_traced *traced, uint32_t *slots, const tk_node_map *map,
                          uint32_t position, tk_node *node) {
    bool depends = false;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        depends |= slots[tk_node_map_get(map, node->inputs[i])] != TK_NODE_ABSENT;
    if (!depends) return TK_OK;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (!add_operand(&traced->operands, slots, map, node->inputs[i])) return no_memory();
    if (!tk_vec_push(&traced->steps, node)) return no_memory();
    tk_node_retain(node);
    slots[position] = (uint32_t)(traced->placeholders.count + traced->steps.count - 1);
    return TK_OK;
}

static tk_status add_steps(tk_traced *traced, const tk_node_vec *order, const tk_node_map *map,
                           const tk_arrays *results) {
    uint32_t *slots = tk_malloc((order->count + 1) * sizeof *slots);
    if (!slots) return no_memory();
    for (size_t i = 0; i < order->count; i++) slots[i] = TK_NODE_ABSENT;
    for (size_t i = 0; i < traced->placeholders.count; i++) {
        uint32_t position = tk_node_map_get(map, traced->placeholders.items[i]);
        if (position != TK_NODE_ABSENT) slots[position] = (uint32_t)i;
    }
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < order->count; i++)
        status = add_step(traced, slots, map, (uint32_t)i, order->items[i]);
    for (size_t i = 0; status == TK_OK && i < results->count; i++)
        if (!add_operand(&traced->results, slots, map, results->items[i].node))
            status = no_memory();
    tk_free(slots);
    return status;
}

static tk_status record(tk_traced *traced, const tk_arrays *results) {
    tk_node_vec order = {0};
    tk_node_map map = {0};
    tk_graph_lock(&traced->context->graph);
    tk_status status = tk_walk_order(results->count, (tk_node *const *)(const void *)results->items,
                                     NULL, NULL, &order, &map);
    if (status == TK_OK) status = add_steps(traced, &order, &map, results);
    tk_graph_unlock(&traced->context->graph);
    tk_node_map_deinit(&map);
    tk_vec_deinit(&order);
    return status;
}

static tk_status check_call(tk_context *context, const tk_array *args, size_t n_args) {
    TK_TRY(tk_context_check(context));
    for (size_t i = 0; i < n_args; i++) {
        TK_TRY(tk_array_status(args[i]));
        if (tk_array_context(args[i]) != context)
            return tk_fail(TK_CONTEXT_ERROR, "argument %zu belongs to another context", i);
    }
    return TK_OK;
}

static tk_status check_results(tk_context *context, const tk_arrays *results) {
    for (size_t i = 0; i < results->count; i++) {
        TK_TRY(tk_array_status(results->items[i]));
        if (tk_array_context(results->items[i]) != context)
            return tk_fail(TK_CONTEXT_ERROR, "result %zu belongs to another context", i);
    }
    return TK_OK;
}

tk_status tk_traced_create(tk_context *context, tk_function function, void *self,
                           const tk_array *args, size_t n_args, tk_traced **out_traced) {
    TK_NEED(context, out_traced);
    if (!function) return tk_fail_null("function");
    if (n_args) TK_NEED(args);
    *out_traced = NULL;
    TK_TRY(check_call(context, args, n_args));
    tk_traced *traced = tk_calloc(1, sizeof *traced);
    if (!traced) return no_memory();
    traced->context = context;
    tk_arrays given = {0}, results = {0};
    tk_status status = add_placeholders(traced, args, n_args, &given);
    if (status == TK_OK) {
        tk_scope scope = tk_scope_open(context);
        status = function(self, given.items, n_args, &results);
        tk_scope_close(scope);
    }
    if (status == TK_OK) status = check_results(context, &results);
    if (status == TK_OK) status = record(traced, &results);
    tk_arrays_clear(&given);
    tk_arrays_clear(&results);
    if (status == TK_OK)
        *out_traced = traced;
    else
        tk_traced_free(traced);
    return status;
}

/* ---- replaying ---- */

static tk_status check_types(const tk_traced *traced, const tk_array *args, size_t n_args) {
    if (n_args != traced->placeholders.count)
        return tk_fail(TK_INVALID_ARGUMENT, "%zu arguments for a function recorded with %zu",
                       n_args, traced->placeholders.count);
    for (size_t i = 0; i < n_args; i++) {
        const tk_node *expected = traced->placeholders.items[i];
        if (args[i].node->dtype != expected->dtype || !tk_shape_equal(args[i].node, expected))
            return tk_fail(TK_SHAPE_ERROR,
                           "argument %zu does not have the dtype and shape it was recorded with",
                           i);
    }
    return TK_OK;
}

static tk_node *resolve(const operand *o, tk_node *const *values) {
    return o->slot == TK_NODE_ABSENT ? o->constant : values[o->slot];
}

static tk_status replay_steps(const tk_traced *traced, tk_builder *b, tk_node **values) {
    const operand *next = traced->operands.items;
    tk_node_vec inputs = {0};
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < traced->steps.count; i++) {
        const tk_node *step = traced->steps.items[i];
        if (!tk_vec_reserve(&inputs, step->n_inputs)) {
            status = no_memory();
            break;
        }
        for (uint32_t k = 0; k < step->n_inputs; k++) inputs.items[k] = resolve(next++, values);
        b->stream = step->stream;
        tk_node *made = tkb_node(b, (tk_op)step->op, step->n_inputs, inputs.items, step->attrs);
        values[traced->placeholders.count + i] = made;
        status = error_of(made);
    }
    tk_vec_deinit(&inputs);
    return status;
}

static tk_status give_results(const tk_traced *traced, tk_node *const *values, tk_arrays *results) {
    if (!tk_vec_reserve(results, results->count + traced->results.count)) return no_memory();
    for (size_t i = 0; i < traced->results.count; i++) {
        tk_node *node = resolve(&traced->results.items[i], values);
        tk_handle_retain(node);
        results->items[results->count++] = (tk_array){node};
    }
    return TK_OK;
}

tk_status tk_traced_call(const tk_traced *traced, const tk_array *args, size_t n_args,
                         tk_arrays *results) {
    TK_NEED(traced, results);
    if (n_args) TK_NEED(args);
    TK_TRY(check_call(traced->context, args, n_args));
    TK_TRY(check_types(traced, args, n_args));
    tk_node **values = tk_malloc((n_args + traced->steps.count + 1) * sizeof *values);
    if (!values) return no_memory();
    for (size_t i = 0; i < n_args; i++) values[i] = args[i].node;
    tk_builder b;
    tk_graph_lock(&traced->context->graph);
    tk_builder_open(&b, &traced->context->graph, 0);
    tk_status status = replay_steps(traced, &b, values);
    if (status == TK_OK) status = give_results(traced, values, results);
    tk_builder_close(&b);
    tk_graph_unlock(&traced->context->graph);
    tk_free(values);
    return status;
}

size_t tk_traced_size(const tk_traced *traced) { return traced ? traced->steps.count : 0; }

static void release_operands(operand_vec *list) {
    for (size_t i = 0; i < list->count; i++) tk_handle_release(list->items[i].constant);
    tk_vec_deinit(list);
}

static void release_nodes(tk_node_vec *list) {
    for (size_t i = 0; i < list->count; i++) tk_node_release(list->items[i]);
    tk_vec_deinit(list);
}

void tk_traced_free(tk_traced *traced) {
    if (!traced) return;
    tk_graph *graph = &traced->context->graph;
    tk_graph_lock(graph);
    release_operands(&traced->results);
    release_operands(&traced->operands);
    release_nodes(&traced->steps);
    release_nodes(&traced->placeholders);
    tk_graph_unlock(graph);
    tk_free(traced);
}
