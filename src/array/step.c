/* Computing one node of a plan: aliases and views by sharing memory, everything else by the
 * device's body. */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <string.h>

#include "array/plan.h"
#include "base/error.h"
#include "graph/launch.h"
#include "runtime/trace.h"

static tk_status alias_operand(tk_plan *plan, tk_entry *entry, uint32_t index,
                               tk_storage **out_storage) {
    const tk_entry *input = tk_plan_operand(plan, entry, index);
    return tk_storage_alias(input->storage, tk_node_type(input->node), out_storage);
}

static tk_status new_tuple(uint32_t count, tk_tuple_storage **out_tuple) {
    *out_tuple = tk_calloc(1, sizeof **out_tuple + count * sizeof(tk_storage *));
    if (!*out_tuple)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for the record of %u arrays", count);
    (*out_tuple)->count = count;
    return TK_OK;
}

static tk_status step_custom(tk_plan *plan, tk_entry *entry) {
    uint32_t count = entry->node->n_outputs, first = entry->n_inputs - count;
    if (count == 1) return alias_operand(plan, entry, first, (tk_storage **)&entry->storage);
    tk_tuple_storage *tuple;
    TK_TRY(new_tuple(count, &tuple));
    entry->storage = tuple;
    for (uint32_t i = 0; i < count; i++)
        TK_TRY(alias_operand(plan, entry, first + i, &tuple->parts[i]));
    return TK_OK;
}

static tk_status step_output(tk_plan *plan, tk_entry *entry) {
    const tk_attrs_output *attrs = tk_node_attrs(entry->node);
    const tk_tuple_storage *tuple = tk_plan_operand(plan, entry, 0)->storage;
    return tk_storage_alias(tuple->parts[attrs->index], tk_node_type(entry->node),
                            (tk_storage **)&entry->storage);
}

/* Whether a step on `queue` may write over the value: nobody reads it after this step, and it is a
 * whole block of that queue. */
static bool is_spare(const tk_entry *entry, const tk_queue *queue) {
    const tk_storage *storage = entry->storage;
    return !entry->persists && entry->uses == 1 && storage->row_major &&
           storage->buffer->capacity > 0 && storage->buffer->data == storage->data &&
           storage->buffer->home == queue && tk_buffer_unique(storage->buffer);
}

/* An operand whose memory the output can take over. */
static tk_storage *find_donor(tk_plan *plan, const tk_entry *entry, const tk_executor *executor,
                              const tk_queue *queue) {
    const tk_node *node = entry->node;
    size_t bytes = (size_t)node->size * tk_dtype_size((tk_dtype)node->dtype);
    for (uint32_t i = 0; i < entry->n_inputs; i++) {
        const tk_entry *input = tk_plan_operand(plan, entry, i);
        size_t input_bytes =
            (size_t)input->node->size * tk_dtype_size((tk_dtype)input->node->dtype);
        if (executor->in_place((tk_op)node->op, (int)i) && input_bytes == bytes &&
            input->node->size == node->size && is_spare(input, queue))
            return input->storage;
    }
    return NULL;
}

/* A step and where it is computed. */
typedef struct placed_step {
    tk_plan *plan;
    tk_entry *entry;
    const tk_site *site;
    tk_queue *queue;
} placed_step;

static placed_step place_step(tk_plan *plan, tk_entry *entry) {
    return (placed_step){plan, entry, tk_plan_site(plan, entry), tk_stream_queue(entry->stream)};
}

static tk_status allocate(const placed_step *step, tk_type type, tk_storage **out_storage) {
    return tk_storage_allocate(step->site->device, step->queue, type, out_storage);
}

static tk_status allocate_outputs(const placed_step *step) {
    tk_entry *entry = step->entry;
    const tk_node *node = entry->node;
    if (node->n_outputs == 1) {
        const tk_storage *donor = find_donor(step->plan, entry, step->site->executor, step->queue);
        if (donor)
            return tk_storage_new(tk_buffer_retain(donor->buffer), donor->data, tk_node_type(node),
                                  NULL, (tk_storage **)&entry->storage);
        return allocate(step, tk_node_type(node), (tk_storage **)&entry->storage);
    }
    tk_tuple_storage *tuple;
    TK_TRY(new_tuple(node->n_outputs, &tuple));
    entry->storage = tuple;
    for (uint32_t i = 0; i < node->n_outputs; i++)
        TK_TRY(allocate(step, node->outputs[i], &tuple->parts[i]));
    return TK_OK;
}

static void view_outputs(const tk_entry *entry, tk_strided *views) {
    const tk_node *node = entry->node;
    if (node->n_outputs == 1) {
        tk_storage_view(entry->storage, tk_node_type(node), views);
        return;
    }
    const tk_tuple_storage *tuple = entry->storage;
    for (uint32_t i = 0; i < tuple->count; i++)
        tk_storage_view(tuple->parts[i], node->outputs[i], &views[i]);
}

static void note_fault(tk_plan *plan, const tk_fault *fault, tk_op op) {
    if (fault->position == INT64_MAX || plan->fault.position != INT64_MAX) return;
    plan->fault_op = op;
    plan->fault.index = fault->index;
    plan->fault.length = fault->length;
    plan->fault.position = fault->position;
}

/* Work of the step's queue reads the operands, which other queues may have written. */
static tk_status follow_operands(const placed_step *step) {
    for (uint32_t i = 0; step->queue && i < step->entry->n_inputs; i++) {
        const tk_storage *storage = tk_plan_operand(step->plan, step->entry, i)->storage;
        tk_queue *home = storage->buffer->home;
        if (!home || home == step->queue) continue;
        const tk_driver *driver = step->site->device->driver;
        TK_TRY(driver->queue_follow(step->queue, (tk_mark){home, driver->queue_ticket(home)}));
    }
    return TK_OK;
}

static tk_status note_operands(const placed_step *step) {
    for (uint32_t i = 0; step->queue && i < step->entry->n_inputs; i++) {
        const tk_storage *storage = tk_plan_operand(step->plan, step->entry, i)->storage;
        TK_TRY(tk_buffer_used(storage->buffer, step->queue));
    }
    return TK_OK;
}

static tk_status call_body(const placed_step *step, tk_body body, tk_strided *views) {
    tk_plan *plan = step->plan;
    const tk_entry *entry = step->entry;
    const tk_node *node = entry->node;
    tk_strided *outputs = views + entry->n_inputs;
    for (uint32_t i = 0; i < entry->n_inputs; i++) {
        const tk_entry *input = tk_plan_operand(plan, entry, i);
        tk_storage_view(input->storage, tk_node_type(input->node), &views[i]);
    }
    view_outputs(entry, outputs);
    tk_fault fault = {.position = INT64_MAX};
    tk_body_call call = {.op = (tk_op)node->op,
                         .attrs = node->attrs,
                         .n_inputs = (int)entry->n_inputs,
                         .inputs = views,
                         .n_outputs = (int)node->n_outputs,
                         .outputs = outputs,
                         .fault = &fault,
                         .device = step->site->device,
                         .queue = step->queue};
    TK_TRY(follow_operands(step));
    TK_TRY(body(&call));
    TK_TRY(note_operands(step));
    note_fault(plan, &fault, call.op);
    if (!plan->nan_trap || !step->site->device->driver->host_memory) return TK_OK;
    return tk_nan_check(tk_op_title(call.op), call.n_inputs, views, call.n_outputs, outputs);
}

static tk_status run_body(const placed_step *step, tk_body body) {
    tk_strided few[8];
    size_t n_views = step->entry->n_inputs + step->entry->node->n_outputs;
    if (n_views <= 8) return call_body(step, body, few);
    tk_strided *many = tk_malloc(n_views * sizeof *many);
    if (!many) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the operands of an op");
    tk_status status = call_body(step, body, many);
    tk_free(many);
    return status;
}

static tk_status step_body(tk_plan *plan, tk_entry *entry) {
    placed_step step = place_step(plan, entry);
    tk_body body = step.site->executor->bodies[entry->node->op];
    if (!body)
        return tk_fail(TK_UNSUPPORTED, "%s has no kernel on %s",
                       tk_op_title((tk_op)entry->node->op), step.site->device->name);
    TK_TRY(allocate_outputs(&step));
    return run_body(&step, body);
}

/* ---- launches ---- */

static tk_strided view_of(const tk_entry *entry) {
    tk_strided view;
    tk_storage_view(entry->storage, tk_node_type(entry->node), &view);
    return view;
}

static tk_status copy_values(const placed_step *step, const tk_entry *from, tk_storage *to) {
    tk_strided source = view_of(from), target;
    tk_storage_view(to, tk_node_type(from->node), &target);
    tk_fault fault = {.position = INT64_MAX};
    tk_body_call call = {.op = TK_OP_contiguous,
                         .n_inputs = 1,
                         .inputs = &source,
                         .n_outputs = 1,
                         .outputs = &target,
                         .fault = &fault,
                         .device = step->site->device,
                         .queue = step->queue};
    return source.size ? step->site->executor->bodies[TK_OP_contiguous](&call) : TK_OK;
}

/* The memory of a donated operand if nobody else needs it, or a copy. */
static tk_status give_donor(const placed_step *step, uint32_t donor, tk_type type,
                            tk_storage **out_storage) {
    const tk_entry *input = tk_plan_operand(step->plan, step->entry, donor);
    const tk_storage *storage = input->storage;
    if (is_spare(input, step->queue))
        return tk_storage_new(tk_buffer_retain(storage->buffer), storage->data, type, NULL,
                              out_storage);
    TK_TRY(allocate(step, type, out_storage));
    return copy_values(step, input, *out_storage);
}

static tk_status allocate_launch(const placed_step *step, const tk_launch_record *record) {
    tk_entry *entry = step->entry;
    tk_tuple_storage *tuple = NULL;
    if (record->n_outputs > 1) TK_TRY(new_tuple((uint32_t)record->n_outputs, &tuple));
    if (tuple) entry->storage = tuple;
    for (int i = 0; i < record->n_outputs; i++) {
        tk_storage **place = tuple ? &tuple->parts[i] : (tk_storage **)&entry->storage;
        int donor = record->donors[i];
        if (donor >= 0)
            TK_TRY(give_donor(step, (uint32_t)donor, record->outputs[i], place));
        else
            TK_TRY(allocate(step, record->outputs[i], place));
    }
    return TK_OK;
}

static tk_status step_launch(tk_plan *plan, tk_entry *entry) {
    placed_step step = place_step(plan, entry);
    const tk_launch_record *record = tk_launch_record_of(tk_node_attrs(entry->node));
    tk_body body = step.site->executor->bodies[TK_OP_launch];
    if (!body)
        return tk_fail(TK_UNSUPPORTED,
                       "kernel %s cannot be launched on %s: move its operands to the emulator or "
                       "to a GPU",
                       record->name, step.site->device->name);
    TK_TRY(allocate_launch(&step, record));
    return run_body(&step, body);
}

static tk_status step_transfer(tk_plan *plan, tk_entry *entry) {
    const tk_entry *source = tk_plan_operand(plan, entry, 0);
    tk_storage *storage;
    placed_step step = place_step(plan, entry);
    TK_TRY(allocate(&step, tk_node_type(entry->node), &storage));
    entry->storage = storage;
    return tk_transfer(source->storage, tk_node_type(source->node), storage, step.queue);
}

static tk_status step_view(tk_plan *plan, tk_entry *entry) {
    const tk_entry *source = tk_plan_operand(plan, entry, 0);
    tk_storage *storage;
    TK_TRY(tk_storage_view_op(entry->node, source->storage, tk_node_type(source->node), &storage));
    entry->storage = storage;
    return storage ? TK_OK : step_body(plan, entry);
}

static tk_status dispatch(tk_plan *plan, tk_entry *entry) {
    switch ((tk_op)entry->node->op) {
    case TK_OP_output:
        return step_output(plan, entry);
    case TK_OP_custom:
        return step_custom(plan, entry);
    case TK_OP_transfer:
        return step_transfer(plan, entry);
    case TK_OP_launch:
        return step_launch(plan, entry);
    case TK_OP_placeholder:
    case TK_OP_stop_gradient:
    case TK_OP_barrier:
    case TK_OP_straight_through:
        return alias_operand(plan, entry, 0, (tk_storage **)&entry->storage);
    default:
        break;
    }
    return tk_node_op(entry->node)->lower == TK_LOWER_VIEW ? step_view(plan, entry)
                                                           : step_body(plan, entry);
}

bool tk_plan_gives_up(tk_plan *plan, const tk_wait *wait) {
    if (!wait) return false;
    int64_t now = tk_trace_clock();
    if (now > plan->deadline) return true;
    if (!wait->poll || now - plan->asked < 20000000) return false;
    plan->asked = now;
    return wait->poll(wait->arg);
}

tk_status tk_plan_check(tk_plan *plan) {
    if (atomic_load_explicit(&plan->cancelled, memory_order_relaxed) ||
        tk_plan_gives_up(plan, plan->wait))
        return tk_fail(TK_INTERRUPTED,
                       "the evaluation was interrupted; its arrays can be evaluated again");
    return TK_OK;
}

tk_status tk_plan_step(tk_plan *plan, tk_entry *entry) {
    int64_t begin = tk_trace_begin();
    tk_status status = dispatch(plan, entry);
    if (begin) tk_trace_end(begin, "op", tk_op_name((tk_op)entry->node->op), NULL);
    return status;
}

void tk_fault_note(tk_fault *fault, int64_t position, int64_t index, int64_t length) {
    while (atomic_exchange_explicit(&fault->busy, true, memory_order_acquire)) sched_yield();
    if (position < fault->position) {
        fault->position = position;
        fault->index = index;
        fault->length = length;
    }
    atomic_store_explicit(&fault->busy, false, memory_order_release);
}
