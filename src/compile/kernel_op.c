/* Functions of launches: a custom function whose every rule is stated.
 *
 * A custom function of the array layer goes through its function where a rule is missing, since
 * that is made of ops that have rules. A launch has none, so here a missing rule refuses by its
 * name. */
#include "tiki/kernel_op.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "compile/launch.h"

typedef struct hidden_type {
    tk_dtype dtype;
    tk_shape shape;
} hidden_type;

typedef struct kernel_call {
    tk_kernel_rules user;
    char *name;
    tk_context *context;
    size_t n_args;
    size_t n_visible;
    tk_stream_id stream; /* of the results */
    tk_target target;    /* that was in use when it was called */
    TK_VEC(hidden_type) hidden;
} kernel_call;

static void release_call(void *self) {
    kernel_call *call = self;
    if (call->user.release) call->user.release(call->user.self);
    tk_vec_deinit(&call->hidden);
    tk_free(call->name);
    tk_free(call);
}

/* The function or a rule of it, by the target of the call. */
static tk_status invoke(const kernel_call *call, tk_function function, const tk_array *args,
                        size_t n_args, tk_arrays *results) {
    tk_target before = tk_target_use(call->target);
    tk_status status = function(call->user.self, args, n_args, results);
    (void)tk_target_use(before);
    return status;
}

static tk_status refuse(const kernel_call *call, const char *rule, const char *use) {
    return tk_fail(TK_UNSUPPORTED,
                   "%s has no %s, which %s needs: it must be declared with the kernel", call->name,
                   rule, use);
}

/* ---- forward ---- */

static tk_status note_hidden(kernel_call *call, const tk_arrays *results) {
    call->stream = tk_array_stream(results->items[0]);
    call->hidden.count = 0;
    for (size_t i = call->n_visible; i < results->count; i++) {
        hidden_type type = {tk_array_dtype(results->items[i]), tk_array_shape(results->items[i])};
        if (!tk_vec_push(&call->hidden, type))
            return tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel's results");
    }
    return TK_OK;
}

static tk_status forward(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    kernel_call *call = self;
    TK_TRY(invoke(call, call->user.forward, args, n_args, results));
    size_t visible = call->user.n_visible;
    if (results->count == 0 || results->count < visible)
        return tk_fail(TK_INVALID_ARGUMENT, "%s gave %zu results, %zu of them are to be visible",
                       call->name, results->count, visible);
    call->n_visible = visible ? visible : results->count;
    for (size_t i = 0; i < results->count; i++) TK_TRY(tk_array_status(results->items[i]));
    return note_hidden(call, results);
}

/* ---- derivatives ---- */

/* Given: arguments, cotangents of all results, all results. The residuals' cotangents are zeros. */
static tk_status vjp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    kernel_call *call = self;
    if (!call->user.vjp) return refuse(call, "vjp", "reverse mode");
    size_t n_results = call->n_visible + call->hidden.count;
    size_t head = call->n_args + call->n_visible, count = head + n_results;
    tk_array *given = tk_malloc(count * sizeof *given);
    if (!given) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the vjp of %s", call->name);
    memcpy(given, args, head * sizeof *given);
    memcpy(given + head, args + n_args - n_results, n_results * sizeof *given);
    tk_status status = invoke(call, call->user.vjp, given, count, results);
    tk_free(given);
    return status;
}

static tk_status add_hidden_tangents(const kernel_call *call, tk_arrays *results) {
    tk_stream_id before = tk_stream_use(call->context, call->stream);
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < call->hidden.count; i++) {
        const hidden_type *type = &call->hidden.items[i];
        status = tk_arrays_push(results, tk_zeros(call->context, type->shape, type->dtype));
    }
    (void)tk_stream_use(call->context, before);
    return status;
}

static tk_status jvp(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    kernel_call *call = self;
    if (!call->user.jvp) return refuse(call, "jvp", "forward mode");
    TK_TRY(invoke(call, call->user.jvp, args, n_args, results));
    if (results->count != call->n_visible)
        return tk_fail(TK_INVALID_ARGUMENT, "the jvp of %s gave %zu tangents, expected %zu",
                       call->name, results->count, call->n_visible);
    return add_hidden_tangents(call, results);
}

/* ---- batching ---- */

/* Element `index` along axis 0, without that axis. */
static tk_array element(tk_array batch, int64_t index) {
    tk_shape shape = tk_array_shape(batch), start = shape, stop = shape, rest = {0};
    for (int64_t i = 0; i < shape.count; i++) start.items[i] = 0;
    start.items[0] = index;
    stop.items[0] = index + 1;
    rest.count = shape.count - 1;
    for (int64_t i = 0; i < rest.count; i++) rest.items[i] = shape.items[i + 1];
    return tk_reshape(tk_slice(batch, start, stop, TK_ALL_AXES), rest);
}

static tk_status call_element(kernel_call *call, const tk_array *args, size_t n_args, int64_t index,
                              tk_arrays *results) {
    tk_arrays given = {0};
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < n_args; i++)
        status = tk_arrays_push(&given, element(args[i], index));
    if (status == TK_OK) status = invoke(call, call->user.forward, given.items, n_args, results);
    tk_arrays_clear(&given);
    return status;
}

/* Results of all elements, one element after the other. */
static tk_status stack_each(const tk_arrays *all, size_t n_results, int64_t size,
                            tk_arrays *results) {
    tk_array *column = tk_malloc((size_t)size * sizeof *column);
    if (!column) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a batch");
    tk_status status = TK_OK;
    for (size_t k = 0; status == TK_OK && k < n_results; k++) {
        for (int64_t i = 0; i < size; i++) column[i] = all->items[(size_t)i * n_results + k];
        status = tk_arrays_push(results, tk_stack(column, (size_t)size, 0));
    }
    tk_free(column);
    return status;
}

static tk_status loop(kernel_call *call, const tk_array *args, size_t n_args, tk_arrays *results) {
    int64_t size = tk_array_dim(args[0], 0);
    size_t n_results = call->n_visible + call->hidden.count;
    tk_arrays all = {0};
    tk_status status = TK_OK;
    if (size == 0)
        status =
            tk_fail(TK_UNSUPPORTED, "%s: a batch of 0 elements cannot be looped over", call->name);
    for (int64_t i = 0; status == TK_OK && i < size; i++) {
        status = call_element(call, args, n_args, i, &all);
        if (status == TK_OK && all.count != (size_t)(i + 1) * n_results)
            status = tk_fail(TK_INVALID_ARGUMENT, "%s gave %zu results for one element of a batch",
                             call->name, all.count - (size_t)i * n_results);
    }
    if (status == TK_OK) status = stack_each(&all, n_results, size, results);
    tk_arrays_clear(&all);
    return status;
}

static tk_status vmap(void *self, const tk_array *args, size_t n_args, tk_arrays *results) {
    kernel_call *call = self;
    if (call->user.vmap) return invoke(call, call->user.vmap, args, n_args, results);
    switch (call->user.batching) {
    case TK_BATCHING_LOOP:
        return loop(call, args, n_args, results);
    case TK_BATCHING_LEADING:
        return invoke(call, call->user.forward, args, n_args, results);
    default:
        return refuse(call, "batching rule", "vmap");
    }
}

/* ---- the call ---- */

static tk_status check_rules(tk_context *context, const tk_kernel_rules *rules,
                             const tk_array *args, size_t n_args) {
    TK_NEED(context);
    if (n_args) TK_NEED(args);
    if (rules->size != sizeof *rules)
        return tk_fail(TK_INVALID_ARGUMENT, "tk_kernel_rules.size is %zu, expected %zu",
                       rules->size, sizeof *rules);
    if (!rules->forward) return tk_fail_null("rules->forward");
    TK_TRY(tk_check_enum("batching", (int)rules->batching, TK_BATCHING_LEADING + 1, "tk_batching"));
    if (n_args == 0)
        return tk_fail(TK_INVALID_ARGUMENT, "a kernel op is called with one argument at least");
    return TK_OK;
}

/* Consumes `call`. */
static tk_status run(kernel_call *call, const tk_array *args, tk_arrays *results) {
    tk_custom custom = {.size = sizeof custom,
                        .function = forward,
                        .vjp = vjp,
                        .jvp = jvp,
                        .vmap = vmap,
                        .self = call,
                        .release = release_call};
    tk_arrays all = {0};
    tk_context *context = call->context;
    size_t visible = call->user.n_visible;
    TK_TRY(tk_custom_call(context, &custom, args, call->n_args, &all));
    tk_status status = TK_OK;
    if (!visible) visible = all.count;
    for (size_t i = 0; status == TK_OK && i < visible; i++)
        status = tk_arrays_push(results, all.items[i]);
    tk_arrays_clear(&all);
    return status;
}

tk_status tk_kernel_call(tk_context *context, const tk_kernel_rules *rules, const tk_array *args,
                         size_t n_args, tk_arrays *results) {
    TK_NEED(rules, results);
    tk_status status = check_rules(context, rules, args, n_args);
    kernel_call *call = status == TK_OK ? tk_calloc(1, sizeof *call) : NULL;
    char *name = call ? tk_strdup(rules->name ? rules->name : "a kernel op") : NULL;
    if (!name) {
        tk_free(call);
        if (rules->release) rules->release(rules->self);
        return status != TK_OK ? status : tk_fail(TK_OUT_OF_MEMORY, "no memory for a kernel op");
    }
    *call = (kernel_call){.user = *rules,
                          .name = name,
                          .context = context,
                          .n_args = n_args,
                          .target = tk_target_in_use()};
    return run(call, args, results);
}
