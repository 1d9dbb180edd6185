/* Evaluating: plans go to their streams, callers wait. See plan.h for what a plan is.
 *
 * A caller who waits anyway computes on its own thread when the stream is idle. Two evaluations
 * that share nodes: the later one queues behind the earlier, and it is submitted only after the
 * earlier has its place, so it never waits for something that is queued behind it.
 *
 * A user's function that an evaluation calls (it releases memory, or asks whether to go on) may
 * evaluate in its turn: at once on its thread, whatever the streams do, since its stream would wait
 * for it. It cannot have what is still being computed: that is an error. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "array/plan.h"
#include "base/error.h"
#include "runtime/stream.h"
#include "runtime/trace.h"

/* ---- submitting ---- */

static tk_status order_segment(tk_plan *plan, size_t index) {
    tk_stream *stream = plan->segments.items[index].stream;
    if (index > 0) {
        tk_stream *before = plan->segments.items[index - 1].stream;
        TK_TRY(tk_stream_wait_event(stream, tk_stream_record(before)));
    }
    for (size_t i = 0; i < plan->awaited.count; i++) {
        const tk_plan *other = plan->awaited.items[i];
        for (size_t k = 0; k < other->segments.count; k++) {
            tk_stream *of_other = other->segments.items[k].stream;
            if (of_other != stream)
                TK_TRY(tk_stream_wait_event(stream, tk_stream_record(of_other)));
        }
    }
    return tk_stream_submit(stream, tk_plan_run_segment, &plan->segments.items[index]);
}

static void mark_submitted(tk_plan *plan) {
    tk_graph_lock(&plan->context->graph);
    plan->submitted = true;
    pthread_cond_broadcast(&plan->context->changed);
    tk_graph_unlock(&plan->context->graph);
}

/* Segments that could not be queued run here; as the plan has failed, they only count themselves
 * off. */
static void fail_rest(tk_plan *plan, size_t first, tk_status status) {
    size_t count = plan->segments.count;
    tk_graph_lock(&plan->context->graph);
    if (plan->status == TK_OK) {
        plan->status = status;
        plan->message = tk_strdup(tk_error_message());
    }
    tk_graph_unlock(&plan->context->graph);
    for (size_t i = first; i < count; i++) tk_plan_run_segment(&plan->segments.items[i]);
}

/* A device that works beside the processor is waited for: what follows may be another's. */
static void run_on_its_device(tk_segment *segment) {
    tk_stream *stream = segment->stream;
    tk_device *device = tk_stream_device(stream);
    tk_queue *queue = tk_stream_queue(stream);
    (void)device->driver->run(device->state, queue, tk_plan_run_segment, segment);
    if (queue) (void)device->driver->synchronize(device->state);
}

static void run_here(tk_plan *plan) {
    mark_submitted(plan);
    for (size_t i = 0, count = plan->segments.count; i < count; i++)
        run_on_its_device(&plan->segments.items[i]);
}

/* Without the lock; the caller holds a reference to the plan. */
static void submit(tk_plan *plan, bool inline_allowed) {
    tk_status status = TK_OK;
    size_t queued = 0, count = plan->segments.count;
    bool ran = false;
    if (inline_allowed && tk_stream_is_in_task()) {
        run_here(plan);
        return;
    }
    if (inline_allowed && count == 1 && plan->awaited.count == 0) {
        tk_stream *stream = plan->segments.items[0].stream;
        status = tk_stream_run_inline_if_idle(stream, tk_plan_run_segment, &plan->segments.items[0],
                                              &ran);
        if (ran) return;
    }
    plan->wait = NULL;
    for (; status == TK_OK && queued < count; queued++) {
        status = order_segment(plan, queued);
        if (status != TK_OK) break;
    }
    mark_submitted(plan);
    if (status != TK_OK) fail_rest(plan, queued, status);
}

/* ---- waiting ---- */

static void wait_a_while(tk_context *context) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&context->changed, &context->graph.lock, &until);
}

static bool awaited_done(const tk_plan *plan) {
    bool done = true;
    for (size_t i = 0; i < plan->awaited.count; i++) done &= plan->awaited.items[i]->done;
    return done;
}

static bool all_done(const tk_plan *plan) { return plan->done && awaited_done(plan); }

static void cancel(tk_plan *plan) {
    atomic_store(&plan->cancelled, true);
    if (plan->segments.count) return;
    for (size_t i = 0; i < plan->awaited.count; i++)
        atomic_store(&plan->awaited.items[i]->cancelled, true);
}

/* Needs the lock. */
static void wait_until_done(tk_plan *plan, const tk_wait *wait) {
    tk_context *context = plan->context;
    while (!all_done(plan)) {
        if (!wait) {
            pthread_cond_wait(&context->changed, &context->graph.lock);
            continue;
        }
        wait_a_while(context);
        tk_graph_unlock(&context->graph);
        if (tk_plan_gives_up(plan, wait)) cancel(plan);
        tk_graph_lock(&context->graph);
    }
}

static tk_status status_of_plan(const tk_plan *plan) {
    if (plan->status != TK_OK)
        return tk_fail_again(plan->status, plan->message ? plan->message : "out of memory");
    for (size_t i = 0; plan->segments.count == 0 && i < plan->awaited.count; i++)
        TK_TRY(status_of_plan(plan->awaited.items[i]));
    return TK_OK;
}

/* ---- the calls ---- */

static tk_status collect_roots(tk_context *context, const tk_array *arrays, size_t count,
                               tk_node_vec *roots) {
    for (size_t i = 0; i < count; i++) {
        TK_TRY(tk_array_status(arrays[i]));
        if (tk_array_context(arrays[i]) != context)
            return tk_fail(TK_CONTEXT_ERROR, "arrays of two contexts in one evaluation");
        if (!tk_vec_push(roots, arrays[i].node))
            return tk_fail(TK_OUT_OF_MEMORY, "no memory to evaluate");
    }
    return TK_OK;
}

/* The first index error that evaluations without a caller have left on these nodes; it is given
 * once. Needs the lock. */
static tk_status take_faults(const tk_node_vec *nodes) {
    for (size_t i = 0; i < nodes->count; i++) {
        const tk_node *node = nodes->items[i];
        if (!node->storage || node->flags & TK_NODE_SCHEDULED) continue;
        tk_storage *storage = node->storage;
        if (!storage->fault) continue;
        (void)tk_fail_again(TK_INDEX_ERROR, storage->fault);
        tk_free(storage->fault);
        storage->fault = NULL;
        return TK_INDEX_ERROR;
    }
    return TK_OK;
}

static void keep_unevaluated(tk_node_vec *roots) {
    size_t kept = 0;
    for (size_t i = 0; i < roots->count; i++) {
        tk_node *node = roots->items[i];
        if (!node->storage || node->flags & TK_NODE_SCHEDULED) roots->items[kept++] = node;
    }
    roots->count = kept;
}

/* Plans what a caller waits for, who may be in a task. Needs the lock. */
static tk_status make_plan(tk_context *context, tk_node_vec *roots, bool waits,
                           tk_plan **out_plan) {
    TK_TRY(tk_plan_new(context, roots->count, roots->items, out_plan));
    tk_plan *plan = *out_plan;
    if (!plan || !waits || !tk_stream_is_in_task() || awaited_done(plan)) return TK_OK;
    *out_plan = NULL;
    tk_status status = tk_fail(TK_INVALID_ARGUMENT,
                               "a function called by an evaluation cannot wait for values that are "
                               "still being computed");
    tk_plan_abandon(plan, status);
    return status;
}

/* Plans and submits. *out_plan, with a reference for the caller, is NULL when all is evaluated. */
static tk_status start(tk_context *context, tk_node_vec *roots, const tk_wait *wait,
                       bool inline_allowed, tk_plan **out_plan) {
    tk_graph_lock(&context->graph);
    *out_plan = NULL;
    tk_status status = take_faults(roots);
    keep_unevaluated(roots);
    if (status == TK_OK && roots->count)
        status = make_plan(context, roots, inline_allowed, out_plan);
    tk_plan *plan = *out_plan;
    if (plan) {
        plan->wait = wait;
        plan->is_awaited = inline_allowed;
        plan->asked = tk_trace_clock();
        plan->deadline =
            wait && wait->seconds > 0 ? plan->asked + (int64_t)(wait->seconds * 1e9) : INT64_MAX;
        if (plan->segments.count) plan->refs++;
        for (size_t i = 0; i < plan->awaited.count; i++)
            while (!plan->awaited.items[i]->submitted)
                pthread_cond_wait(&context->changed, &context->graph.lock);
    }
    tk_graph_unlock(&context->graph);
    if (plan && plan->segments.count) submit(plan, inline_allowed);
    return status;
}

static tk_status finish(tk_plan *plan, const tk_wait *wait, bool *out_again) {
    tk_context *context = plan->context;
    tk_graph_lock(&context->graph);
    wait_until_done(plan, wait);
    tk_status status = status_of_plan(plan), left = take_faults(&plan->roots);
    if (status == TK_OK) status = left;
    *out_again = plan->operand_failed;
    for (size_t i = 0; i < plan->roots.count; i++) tk_node_release(plan->roots.items[i]);
    plan->roots.count = 0;
    tk_plan_release(plan);
    tk_graph_unlock(&context->graph);
    return status;
}

static tk_buffer *hold_buffer(tk_array array) {
    tk_graph_lock(array.node->graph);
    const tk_storage *storage = array.node->storage;
    bool there = storage && !(array.node->flags & TK_NODE_SCHEDULED) && storage->buffer->home;
    tk_buffer *buffer = there ? tk_buffer_retain(storage->buffer) : NULL;
    tk_graph_unlock(array.node->graph);
    return buffer;
}

/* An evaluation is done when its work was handed over; a device beside the processor may still be
 * at it, or have failed. */
static tk_status wait_for_devices(const tk_array *arrays, size_t count, const tk_wait *wait) {
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < count; i++) {
        tk_buffer *buffer = hold_buffer(arrays[i]);
        if (buffer) status = tk_buffer_wait(buffer, wait);
        tk_buffer_release(buffer);
    }
    return status;
}

/* Another thread may open one just now. */
static uint32_t count_sites(tk_context *context) {
    tk_graph_lock(&context->graph);
    uint32_t count = context->graph.n_places;
    tk_graph_unlock(&context->graph);
    return count;
}

/* Indices that a device found out of range, by launches of whichever evaluation. */
static tk_status take_faults_of_devices(const tk_context *context, uint32_t n_sites) {
    for (uint32_t i = 1; i < n_sites; i++) {
        tk_device *device = context->sites[i].device;
        if (device->driver->take_fault) TK_TRY(device->driver->take_fault(device->state));
    }
    return TK_OK;
}

tk_status tk_eval_wait(const tk_array *arrays, size_t count, const tk_wait *wait) {
    if (count) TK_NEED(arrays);
    if (count == 0) return TK_OK;
    tk_context *context = tk_array_context(arrays[0]);
    tk_node_vec roots = {0};
    bool again = true;
    tk_status status = TK_OK;
    for (int tries = 0; again && tries < 4;
         tries++) { /* again when another evaluation was interrupted */
        again = false;
        roots.count = 0;
        status = collect_roots(context, arrays, count, &roots);
        if (status == TK_OK) status = tk_context_check(context);
        if (status != TK_OK) break;
        tk_plan *plan;
        status = start(context, &roots, wait, true, &plan);
        if (plan) status = finish(plan, wait, &again);
    }
    uint32_t n_sites = status == TK_OK ? count_sites(context) : 0;
    if (n_sites > 1) status = wait_for_devices(arrays, count, wait);
    if (status == TK_OK) status = take_faults_of_devices(context, n_sites);
    tk_vec_deinit(&roots);
    return status;
}

tk_status tk_eval_all(const tk_array *arrays, size_t count) {
    return tk_eval_wait(arrays, count, NULL);
}

tk_status tk_eval(tk_array array) { return tk_eval_wait(&array, 1, NULL); }

tk_status tk_async_eval(const tk_array *arrays, size_t count) {
    if (count) TK_NEED(arrays);
    if (count == 0) return TK_OK;
    tk_context *context = tk_array_context(arrays[0]);
    tk_node_vec roots = {0};
    tk_plan *plan = NULL;
    tk_status status = collect_roots(context, arrays, count, &roots);
    if (status == TK_OK) status = tk_context_check(context);
    if (status == TK_OK) status = start(context, &roots, NULL, false, &plan);
    if (plan) {
        tk_graph_lock(&context->graph);
        if (plan->segments.count == 0)
            for (size_t i = 0; i < plan->roots.count; i++) tk_node_release(plan->roots.items[i]);
        tk_plan_release(plan);
        tk_graph_unlock(&context->graph);
    }
    tk_vec_deinit(&roots);
    return status;
}

tk_status tk_synchronize(tk_context *context) {
    TK_NEED(context);
    TK_TRY(tk_context_check(context));
    if (tk_stream_is_in_task())
        return tk_fail(TK_INVALID_ARGUMENT,
                       "a function called by an evaluation cannot wait for all evaluations");
    tk_graph_lock(&context->graph);
    while (context->running) pthread_cond_wait(&context->changed, &context->graph.lock);
    uint32_t n_sites = context->graph.n_places;
    tk_graph_unlock(&context->graph);
    for (uint32_t i = 1; i < n_sites; i++) {
        tk_device *device = context->sites[i].device;
        TK_TRY(device->driver->synchronize(device->state));
    }
    return take_faults_of_devices(context, n_sites);
}
