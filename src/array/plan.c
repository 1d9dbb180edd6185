/* Planning and publishing; see plan.h. */
#include "array/plan.h"

#include <assert.h>
#include <string.h>

#include "array/fuse.h"
#include "base/error.h"
#include "graph/walk.h"

/* ---- making a plan ---- */

static bool is_unevaluated(const tk_node *node, void *arg) {
    (void)arg;
    return node->storage == NULL;
}

static bool is_step(const tk_node *node) { return node->storage == NULL; }

static bool add_edges(tk_plan *plan, const tk_node_map *map, tk_entry *entry) {
    tk_node *node = entry->node;
    entry->first_input = (uint32_t)plan->edges.count;
    entry->n_inputs = tk_node_value_inputs(node);
    for (uint32_t i = 0; i < entry->n_inputs; i++) {
        uint32_t input = tk_node_map_get(map, node->inputs[i]);
        if (!tk_vec_push(&plan->edges, input)) return false;
    }
    return true;
}

static tk_status await_plan(tk_plan *plan, tk_plan *other) {
    for (size_t i = 0; i < plan->awaited.count; i++)
        if (plan->awaited.items[i] == other) return TK_OK;
    if (!tk_vec_push(&plan->awaited, other))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to plan an evaluation");
    other->refs++;
    return TK_OK;
}

static tk_status add_entries(tk_plan *plan, const tk_node_vec *order, const tk_node_map *map) {
    if (!tk_vec_reserve(&plan->entries, order->count))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to plan an evaluation of %zu nodes",
                       order->count);
    for (size_t i = 0; i < order->count; i++) {
        tk_node *node = order->items[i];
        tk_entry entry = {.node = node,
                          .site = (uint8_t)tk_place_of(node),
                          .stream = plan->context->streams.items[node->stream],
                          .is_step = is_step(node)};
        if (node->flags & TK_NODE_SCHEDULED) {
            entry.awaits = true;
            TK_TRY(await_plan(plan, node->storage));
        } else if (!entry.is_step) {
            entry.storage = node->storage;
            entry.done = true;
        }
        plan->entries.items[plan->entries.count++] = entry;
        tk_entry *added = &plan->entries.items[i];
        if (added->is_step && !add_edges(plan, map, added))
            return tk_fail(TK_OUT_OF_MEMORY, "no memory to plan an evaluation of %zu nodes",
                           order->count);
    }
    for (size_t i = 0; i < plan->edges.count; i++) plan->entries.items[plan->edges.items[i]].uses++;
    return TK_OK;
}

static bool add_leaf(tk_node *node, tk_node_vec *order, tk_node_map *map) {
    if (tk_node_map_get(map, node) != TK_NODE_ABSENT) return true;
    return tk_node_map_put(map, node, (uint32_t)order->count) && tk_vec_push(order, node);
}

/* The walk stops at what has a value, or will have one from another plan; those follow the steps.
 */
static tk_status add_leaves(size_t count, tk_node *const *roots, tk_node_vec *order,
                            tk_node_map *map) {
    size_t n_steps = order->count;
    bool ok = true;
    for (size_t i = 0; ok && i < n_steps; i++)
        for (uint32_t k = 0; ok && k < tk_node_value_inputs(order->items[i]); k++)
            ok = add_leaf(order->items[i]->inputs[k], order, map);
    for (size_t i = 0; ok && i < count; i++) ok = add_leaf(roots[i], order, map);
    return ok ? TK_OK
              : tk_fail(TK_OUT_OF_MEMORY, "no memory to plan an evaluation of %zu nodes",
                        order->count);
}

static tk_status check_placeholders(const tk_node_vec *order) {
    for (size_t i = 0; i < order->count; i++) {
        const tk_node *node = order->items[i];
        if (node->op == TK_OP_placeholder && node->n_inputs == 0 && is_step(node))
            return tk_fail(
                TK_INVALID_ARGUMENT,
                "an argument of a function under vmap or compile has no value to evaluate");
    }
    return TK_OK;
}

/* Cuts the entries into runs of one stream each. */
static tk_status add_segments(tk_plan *plan) {
    for (uint32_t i = 0; i < plan->entries.count; i++) {
        const tk_entry *entry = &plan->entries.items[i];
        if (!entry->is_step) continue;
        tk_segment *last =
            plan->segments.count ? &plan->segments.items[plan->segments.count - 1] : NULL;
        if (last && last->number == entry->node->stream) {
            last->count = i + 1 - last->first;
            continue;
        }
        uint32_t number = entry->node->stream;
        tk_segment segment = {
            .plan = plan, .first = i, .count = 1, .number = number, .stream = entry->stream};
        if (!tk_vec_push(&plan->segments, segment))
            return tk_fail(TK_OUT_OF_MEMORY, "no memory to plan an evaluation");
    }
    plan->segments_left = (uint32_t)plan->segments.count;
    return TK_OK;
}

/* From here on the plan owns what it computes. Cannot fail. */
static void take_nodes(tk_plan *plan) {
    for (size_t i = 0; i < plan->entries.count; i++) {
        tk_entry *entry = &plan->entries.items[i];
        if (!entry->is_step) continue;
        tk_node *node = entry->node;
        entry->holds = !tk_trace_is_open(node->graph, node->trace);
        node->flags |= TK_NODE_SCHEDULED;
        node->storage = plan;
        if (node->op != TK_OP_const) tk_node_unintern(node);
    }
}

/* A node persists if it has more references than the operand lists that the plan has taken. */
static void find_persistent(tk_plan *plan) {
    for (size_t i = 0; i < plan->entries.count; i++) {
        tk_entry *entry = &plan->entries.items[i];
        entry->persists = entry->node->op == TK_OP_const || (entry->node->flags & TK_NODE_INTERNED);
        entry->storage = entry->is_step ? NULL : entry->storage;
    }
    TK_VEC(uint32_t) held = {0};
    if (!tk_vec_reserve(&held, plan->entries.count)) {
        for (size_t i = 0; i < plan->entries.count; i++) plan->entries.items[i].persists = true;
        return;
    }
    memset(held.items, 0, plan->entries.count * sizeof *held.items);
    for (size_t i = 0; i < plan->entries.count; i++) {
        const tk_entry *entry = &plan->entries.items[i];
        for (uint32_t k = 0; entry->holds && k < entry->n_inputs; k++)
            held.items[plan->edges.items[entry->first_input + k]]++;
    }
    for (size_t i = 0; i < plan->entries.count; i++) {
        tk_entry *entry = &plan->entries.items[i];
        entry->persists |= entry->node->refs > (int32_t)held.items[i];
    }
    tk_vec_deinit(&held);
}

static tk_status fill_plan(tk_plan *plan, size_t count, tk_node *const *roots) {
    tk_node_vec order = {0};
    tk_node_map map = {0};
    tk_status status = tk_walk_values(count, roots, is_unevaluated, NULL, &order, &map);
    if (status == TK_OK) status = add_leaves(count, roots, &order, &map);
    if (status == TK_OK) status = check_placeholders(&order);
    if (status == TK_OK) status = add_entries(plan, &order, &map);
    if (status == TK_OK) status = add_segments(plan);
    if (status == TK_OK) status = tk_plan_group(plan);
    if (status == TK_OK && !tk_vec_reserve(&plan->roots, count))
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory to plan an evaluation");
    tk_vec_deinit(&order);
    tk_node_map_deinit(&map);
    return status;
}

static void free_plan(tk_plan *plan) {
    for (size_t i = 0; i < plan->awaited.count; i++) tk_plan_release(plan->awaited.items[i]);
    tk_vec_deinit(&plan->awaited);
    tk_vec_deinit(&plan->entries);
    tk_vec_deinit(&plan->edges);
    tk_vec_deinit(&plan->segments);
    tk_vec_deinit(&plan->groups);
    tk_vec_deinit(&plan->members);
    tk_vec_deinit(&plan->roots);
    tk_free(plan->message);
    tk_free(plan);
}

void tk_plan_release(tk_plan *plan) {
    if (--plan->refs == 0) free_plan(plan);
}

tk_status tk_plan_new(tk_context *context, size_t count, tk_node *const *roots,
                      tk_plan **out_plan) {
    *out_plan = NULL;
    tk_plan *plan = tk_calloc(1, sizeof *plan);
    if (!plan) return tk_fail(TK_OUT_OF_MEMORY, "no memory to plan an evaluation");
    plan->context = context;
    plan->refs = 1;
    plan->nan_trap = context->nan_trap;
    plan->fault.position = INT64_MAX;
    tk_status status = fill_plan(plan, count, roots);
    if (status != TK_OK || (plan->segments.count == 0 && plan->awaited.count == 0)) {
        free_plan(plan);
        return status;
    }
    if (plan->segments.count == 0) { /* all is under way already: only to be waited for */
        plan->submitted = plan->done = true;
    } else {
        take_nodes(plan);
        context->running++;
    }
    for (size_t i = 0; i < count; i++)
        tk_node_retain(plan->roots.items[plan->roots.count++] = roots[i]);
    if (plan->segments.count) find_persistent(plan);
    *out_plan = plan;
    return TK_OK;
}

/* ---- publishing ---- */

/* `graph` is NULL where its lock is not held. */
static void free_storage(const tk_node *node, void *storage, tk_graph *graph) {
    tk_node shell = {.n_outputs = node->n_outputs, .storage = storage, .graph = graph};
    if (storage) tk_storage_release_node(&shell);
}

static void publish_entry(tk_entry *entry) {
    tk_node *node = entry->node;
    node->flags &= ~(uint32_t)TK_NODE_SCHEDULED;
    node->storage = entry->done ? entry->storage : NULL;
    if (!entry->done) {
        free_storage(node, entry->storage, node->graph);
        tk_node_reintern(node);
    }
}

/* Operands before users, whose lists hold them: so a node is still there when its turn comes. */
static void drop_operands(tk_plan *plan) {
    for (size_t i = 0; i < plan->entries.count; i++) {
        tk_entry *entry = &plan->entries.items[i];
        if (entry->is_step && entry->done && entry->holds) tk_node_drop_inputs(entry->node);
    }
}

/* The roots remember an index error for whoever asks for them first. */
static void note_faults(const tk_plan *plan) {
    if (plan->is_awaited || plan->status != TK_INDEX_ERROR || !plan->message) return;
    for (size_t i = 0; i < plan->roots.count; i++) {
        tk_storage *storage = plan->roots.items[i]->storage;
        if (storage && !storage->fault) storage->fault = tk_strdup(plan->message);
    }
}

static void publish(tk_plan *plan) {
    for (size_t i = 0; i < plan->entries.count; i++) {
        tk_entry *entry = &plan->entries.items[i];
        if (entry->is_step)
            publish_entry(entry);
        else if (!entry->awaits && !entry->persists)
            entry->node->storage = entry->storage;
    }
    drop_operands(plan);
    note_faults(plan);
    for (size_t i = 0; i < plan->roots.count; i++) tk_node_release(plan->roots.items[i]);
    plan->roots.count = 0;
    plan->entries.count = 0;
    plan->done = true;
    if (plan->segments.count) plan->context->running--;
    pthread_cond_broadcast(&plan->context->changed);
}

static void note_failure(tk_plan *plan, tk_status status) {
    if (plan->status != TK_OK) return;
    plan->status = status;
    plan->message = tk_strdup(tk_error_message());
}

void tk_plan_abandon(tk_plan *plan, tk_status status) {
    note_failure(plan, status);
    plan->submitted = true;
    publish(plan);
    tk_plan_release(plan);
}

/* ---- running ---- */

/* Fills in what other plans have computed. Needs the lock. */
static tk_status resolve_awaited(tk_plan *plan) {
    for (size_t i = 0; i < plan->entries.count; i++) {
        tk_entry *entry = &plan->entries.items[i];
        if (!entry->awaits || entry->done) continue;
        if (entry->node->flags & TK_NODE_SCHEDULED || !entry->node->storage) {
            plan->operand_failed = true;
            return tk_fail(TK_DEVICE_ERROR, "the evaluation of an operand, begun earlier, failed");
        }
        entry->storage = entry->node->storage;
        entry->done = true;
        entry->persists = true;
    }
    return TK_OK;
}

static tk_status begin_segment(tk_plan *plan) {
    tk_graph_lock(&plan->context->graph);
    if (plan->segments.count == 1) plan->submitted = true;
    pthread_cond_broadcast(&plan->context->changed);
    tk_status status = plan->status;
    if (status == TK_OK) status = resolve_awaited(plan);
    tk_graph_unlock(&plan->context->graph);
    return status;
}

/* Frees values whose last reader has run and that nobody else can reach. */
static void drop_used(tk_plan *plan, const tk_entry *entry) {
    for (uint32_t k = 0; k < entry->n_inputs; k++) {
        tk_entry *input = &plan->entries.items[plan->edges.items[entry->first_input + k]];
        if (--input->uses > 0 || input->persists) continue;
        free_storage(input->node, input->storage, NULL);
        input->storage = NULL;
    }
}

static void finish_segment(tk_plan *plan, tk_status status) {
    tk_graph_lock(&plan->context->graph);
    if (status != TK_OK) note_failure(plan, status);
    bool last = --plan->segments_left == 0;
    if (last && plan->status == TK_OK && plan->fault.position != INT64_MAX) {
        status = tk_fail_index(tk_op_title(plan->fault_op), plan->fault.index, plan->fault.length,
                               plan->fault.position);
        note_failure(plan, status);
    }
    tk_graph *graph = &plan->context->graph;
    if (last) {
        publish(plan);
        tk_plan_release(plan);
    }
    tk_graph_unlock(graph);
}

/* Each step is done before the next begins: it may have written over an operand, which is then
 * gone, should the next one fail. */
static tk_status run_steps(tk_plan *plan, const tk_group *group) {
    for (uint32_t i = group->first; i < group->first + group->count; i++) {
        TK_TRY(tk_plan_check(plan));
        tk_entry *entry = &plan->entries.items[plan->members.items[i]];
        TK_TRY(tk_plan_step(plan, entry));
        entry->done = true;
        drop_used(plan, entry);
    }
    return TK_OK;
}

static tk_status run_group(tk_plan *plan, const tk_group *group) {
    bool joined = false;
    if (group->count > 1) {
        TK_TRY(tk_plan_check(plan));
        TK_TRY(tk_plan_run_group(plan, group, &joined));
    }
    if (!joined) return run_steps(plan, group);
    for (uint32_t i = group->first; i < group->first + group->count; i++)
        plan->entries.items[plan->members.items[i]].done = true;
    for (uint32_t i = group->first; i < group->first + group->count; i++)
        drop_used(plan, &plan->entries.items[plan->members.items[i]]);
    return TK_OK;
}

tk_status tk_plan_run_segment(void *arg) {
    tk_segment *segment = arg;
    tk_plan *plan = segment->plan;
    tk_status status = begin_segment(plan);
    for (uint32_t i = segment->first; status == TK_OK && i < segment->first + segment->count; i++)
        status = run_group(plan, &plan->groups.items[i]);
    finish_segment(plan, status);
    return TK_OK;
}
