/* Functions recorded once and replayed.
 *
 * The callback runs on placeholders without values. Of the graph that comes out, the nodes that
 * depend on a placeholder are the steps, in an order with operands first; everything else is
 * constant and is used as it is. A call interns each step again with the operands of that call.
 * Nothing is simplified then: the builders did that while the function was recorded.
 *
 * Rejected: printing and parsing the graph text, which would do the same ten times slower. */
#include "array/traced.h"

#include <string.h>

#include "base/error.h"

/* ---- recording ---- */

tk_status tk_traced_no_memory(void) {
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
    uint32_t stream = tk_place_enter(b, like);
    tk_node *node = tkb_node(b, TK_OP_placeholder, 0, NULL, &attrs);
    b->stream = stream;
    TK_TRY(error_of(node));
    if (!tk_vec_push(&traced->placeholders, node)) return tk_traced_no_memory();
    tk_node_retain(node);
    if (!tk_vec_reserve(given, given->count + 1)) return tk_traced_no_memory();
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

bool tk_trace_operands_add(tk_trace_operands *list, uint32_t slot, tk_node *constant) {
    tk_trace_operand o = {.slot = slot, .constant = constant};
    if (!tk_vec_push(list, o)) return false;
    tk_handle_retain(constant); /* a handle, so that no evaluation takes over its memory */
    return true;
}

static bool add_operand(tk_trace_operands *list, const uint32_t *slots, const tk_node_map *map,
                        tk_node *node) {
    return tk_trace_operands_add(list, slots[tk_node_map_get(map, node)], node);
}

static tk_status add_step(tk_traced *traced, uint32_t *slots, const tk_node_map *map,
                          uint32_t position, tk_node *node) {
    bool depends = false;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        depends |= slots[tk_node_map_get(map, node->inputs[i])] != TK_NODE_ABSENT;
    if (!depends) return TK_OK;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (!add_operand(&traced->operands, slots, map, node->inputs[i]))
            return tk_traced_no_memory();
    if (!tk_vec_push(&traced->counts, node->n_inputs) || !tk_vec_push(&traced->steps, node))
        return tk_traced_no_memory();
    tk_node_retain(node);
    slots[position] = (uint32_t)(traced->placeholders.count + traced->steps.count - 1);
    return TK_OK;
}

static tk_status add_steps(tk_traced *traced, const tk_node_vec *order, const tk_node_map *map,
                           const tk_arrays *results) {
    uint32_t *slots = tk_malloc((order->count + 1) * sizeof *slots);
    if (!slots) return tk_traced_no_memory();
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
            status = tk_traced_no_memory();
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
    if (!traced) return tk_traced_no_memory();
    traced->context = context;
    tk_arrays given = {0}, results = {0};
    tk_status status = add_placeholders(traced, args, n_args, &given);
    if (status == TK_OK) {
        tk_scope scope = tk_scope_open(context);
        status = tk_call_looking(function, self, given.items, n_args, &results);
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

/* ---- for other shapes ---- */

static tk_status record_general(tk_context *context, tk_function function, void *self,
                                const tk_array *args, const tk_varying *varying, size_t n_args,
                                tk_traced **out_traced) {
    tk_traced *near = NULL, *far = NULL;
    tk_arrays far_args = {0};
    tk_status status = tk_varying_args(context, varying, args, n_args, &far_args);
    if (status == TK_OK) status = tk_traced_create(context, function, self, args, n_args, &near);
    if (status == TK_OK)
        status = tk_traced_create(context, function, self, far_args.items, n_args, &far);
    if (status == TK_OK) status = tk_traced_generalise(near, far, varying);
    tk_arrays_clear(&far_args);
    tk_traced_free(far);
    if (status == TK_OK)
        *out_traced = near;
    else
        tk_traced_free(near);
    return status;
}

tk_status tk_traced_create_shapeless(tk_context *context, tk_function function, void *self,
                                     const tk_array *args, const tk_array *others, size_t n_args,
                                     tk_traced **out_traced) {
    tk_varying varying;
    TK_NEED(context, out_traced);
    if (!function) return tk_fail_null("function");
    if (n_args) TK_NEED(args, others);
    *out_traced = NULL;
    TK_TRY(check_call(context, args, n_args));
    TK_TRY(check_call(context, others, n_args));
    for (size_t i = 0; i < n_args; i++)
        if (tk_array_rank(args[i]) != tk_array_rank(others[i]))
            return tk_fail(TK_SHAPE_ERROR, "argument %zu has %d axes, and then %d", i,
                           tk_array_rank(args[i]), tk_array_rank(others[i]));
    tk_varying_between(args, others, n_args, &varying);
    return record_general(context, function, self, args, &varying, n_args, out_traced);
}

/* ---- replaying ---- */

static tk_status check_types(const tk_traced *traced, const tk_array *args, size_t n_args) {
    if (n_args != traced->placeholders.count)
        return tk_fail(TK_INVALID_ARGUMENT, "%zu arguments for a function recorded with %zu",
                       n_args, traced->placeholders.count);
    for (size_t i = 0; i < n_args; i++) {
        const tk_node *expected = traced->placeholders.items[i];
        bool same = args[i].node->dtype == expected->dtype;
        same &= traced->varying.count ? args[i].node->rank == expected->rank
                                      : tk_shape_equal(args[i].node, expected);
        if (!same)
            return tk_fail(TK_SHAPE_ERROR,
                           "argument %zu does not have the dtype and shape it was recorded with",
                           i);
    }
    return TK_OK;
}

static tk_node *resolve(const tk_trace_operand *o, tk_node *const *values) {
    return o->slot == TK_NODE_ABSENT ? o->constant : values[o->slot];
}

/* A step with numbers that follow from the lengths of this call. */
static tk_node *replay_changed(const tk_traced *traced, tk_builder *b, size_t i,
                               const int64_t *lengths, tk_node *const *values, size_t *next_law,
                               tk_node **inputs) {
    const tk_node *step = traced->steps.items[i];
    tk_record record = tk_node_op(step)->record;
    void *attrs = tk_malloc(tk_attrs_bytes(record, step->attrs));
    if (!attrs) return tkb_fail(b, tk_traced_no_memory());
    tk_attrs_copy(record, step->attrs, attrs);
    tk_status status = tk_traced_apply_laws(traced, i, lengths, values, inputs, next_law, attrs);
    tk_node *made = status == TK_OK
                        ? tkb_node(b, (tk_op)step->op, traced->counts.items[i], inputs, attrs)
                        : tkb_fail(b, status);
    if (step->flags & TK_NODE_WEAK) made->flags |= TK_NODE_WEAK;
    tk_attrs_deinit(record, attrs);
    tk_free(attrs);
    return made;
}

static tk_status replay_steps(const tk_traced *traced, tk_builder *b, const int64_t *lengths,
                              tk_node **values) {
    const tk_trace_operand *next = traced->operands.items;
    size_t next_law = 0;
    tk_node_vec inputs = {0};
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < traced->steps.count; i++) {
        const tk_node *step = traced->steps.items[i];
        uint32_t n_inputs = traced->counts.items[i];
        if (!tk_vec_reserve(&inputs, n_inputs)) {
            status = tk_traced_no_memory();
            break;
        }
        for (uint32_t k = 0; k < n_inputs; k++) inputs.items[k] = resolve(next++, values);
        b->stream = step->stream;
        bool changes = next_law < traced->laws.count && traced->laws.items[next_law].step == i;
        tk_node *made = changes
                            ? replay_changed(traced, b, i, lengths, values, &next_law, inputs.items)
                            : tkb_node(b, (tk_op)step->op, n_inputs, inputs.items, step->attrs);
        values[traced->placeholders.count + i] = made;
        status = error_of(made);
    }
    tk_vec_deinit(&inputs);
    return status;
}

static tk_status give_results(const tk_traced *traced, tk_node *const *values, tk_arrays *results) {
    if (!tk_vec_reserve(results, results->count + traced->results.count))
        return tk_traced_no_memory();
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
    int64_t lengths[TK_VARYING_MAX];
    if (traced->varying.count) TK_TRY(tk_traced_lengths(traced, args, lengths));
    tk_node **values = tk_malloc((n_args + traced->steps.count + 1) * sizeof *values);
    if (!values) return tk_traced_no_memory();
    for (size_t i = 0; i < n_args; i++) values[i] = args[i].node;
    tk_builder b;
    tk_graph_lock(&traced->context->graph);
    tk_builder_open(&b, &traced->context->graph, 0);
    tk_status status = replay_steps(traced, &b, lengths, values);
    if (status == TK_OK) status = give_results(traced, values, results);
    tk_builder_close(&b);
    tk_graph_unlock(&traced->context->graph);
    tk_free(values);
    return status;
}

size_t tk_traced_size(const tk_traced *traced) { return traced ? traced->steps.count : 0; }

void tk_trace_operands_release(tk_trace_operands *list) {
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
    tk_trace_operands_release(&traced->results);
    tk_trace_operands_release(&traced->operands);
    release_nodes(&traced->steps);
    release_nodes(&traced->placeholders);
    tk_graph_unlock(graph);
    tk_vec_deinit(&traced->counts);
    tk_vec_deinit(&traced->laws);
    tk_free(traced);
}
