/* Contexts, what a thread keeps in one, scopes, handles, streams.
 *
 * A thread finds its record through a cache of its own (one entry: most threads use one context)
 * and else in the context's list. Threads are told apart by a counted object of the library, since
 * the system reuses its numbers; it outlives the thread for as long as records refer to it. */
#include "array/context.h"

#include "array/storage.h"
#include "base/error.h"
#include "base/fork.h"

static _Atomic uint64_t last_context;

static pthread_once_t key_made = PTHREAD_ONCE_INIT;
static pthread_key_t end_of_thread; /* its destructor runs then */
static _Thread_local tk_thread_life *this_thread;
static _Thread_local struct {
    uint64_t context;
    tk_thread *record;
} cached;

/* ---- life ---- */

tk_status tk_context_open_stream(tk_context *context, uint32_t place, uint32_t *out_stream) {
    tk_stream *stream;
    *out_stream = (uint32_t)context->streams.count;
    TK_TRY(tk_stream_open(context->sites[place].device, &stream));
    tk_status status = TK_OK;
    if (place) status = tk_place_add_stream(&context->graph, *out_stream, place);
    if (status == TK_OK && !tk_vec_push(&context->streams, stream))
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for a stream");
    if (status != TK_OK) tk_stream_close(stream);
    return status;
}

static tk_status open_device(tk_context *context, const tk_context_options *options) {
    tk_device_options device = {0};
    if (options) {
        if (options->size != sizeof *options)
            return tk_fail(TK_INVALID_ARGUMENT, "tk_context_options.size is %zu, expected %zu",
                           options->size, sizeof *options);
        device = (tk_device_options){options->hooks, options->memory_limit, options->cache_limit};
    }
    context->sites[0].executor = &tk_cpu_executor;
    return tk_device_open(&tk_driver_cpu, 0, &device, &context->sites[0].device);
}

tk_status tk_context_create(const tk_context_options *options, tk_context **out_context) {
    TK_NEED(out_context);
    tk_context *context = tk_calloc(1, sizeof *context);
    if (!context) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a context");
    tk_status status = tk_graph_init(&context->graph, tk_storage_release_node);
    if (status != TK_OK) {
        tk_free(context);
        return status;
    }
    context->fork_epoch = tk_fork_epoch();
    context->serial = atomic_fetch_add(&last_context, 1) + 1;
    pthread_cond_init(&context->changed, NULL);
    status = open_device(context, options);
    uint32_t stream;
    if (status == TK_OK) status = tk_context_open_stream(context, 0, &stream);
    if (status != TK_OK) {
        tk_context_release(context);
        return status;
    }
    *out_context = context;
    return TK_OK;
}

static void release_life(tk_thread_life *life) {
    if (atomic_fetch_sub(&life->holders, 1) == 1) tk_free(life);
}

static void release_thread(tk_thread *record) {
    release_life(record->life);
    for (size_t i = 0; i < record->handles.count; i++) tk_handle_release(record->handles.items[i]);
    tk_node_release(record->random_key);
    tk_vec_deinit(&record->handles);
    tk_vec_deinit(&record->marks);
    tk_free(record);
}

static tk_stream *unfinished_stream(const tk_context *context) {
    for (size_t i = 0; i < context->streams.count; i++)
        if (tk_stream_pending(context->streams.items[i]) > 0) return context->streams.items[i];
    return NULL;
}

/* Before any stream is closed: one that waits for another looks at it. The errors of what runs are
 * nobody's any more. */
static void drain_streams(tk_context *context) {
    tk_stream *stream;
    while ((stream = unfinished_stream(context))) (void)tk_stream_wait(stream, NULL);
}

static bool is_in_own_task(const tk_context *context) {
    for (size_t i = 0; i < context->streams.count; i++)
        if (tk_stream_is_mine(context->streams.items[i])) return true;
    return false;
}

void tk_context_release(tk_context *context) {
    if (!context) return;
    if (context->fork_epoch != tk_fork_epoch())
        return; /* its locks may be held for ever: left as it is */
    if (is_in_own_task(context)) {
        (void)tk_fail(TK_CONTEXT_ERROR, "a context cannot be released by what it runs: it would "
                                        "wait for itself; release it afterwards");
        return;
    }
    drain_streams(context);
    for (size_t i = 0; i < context->streams.count; i++) tk_stream_close(context->streams.items[i]);
    tk_vec_deinit(&context->streams);
    tk_graph_lock(&context->graph);
    while (context->threads) {
        tk_thread *record = context->threads;
        context->threads = record->next;
        release_thread(record);
    }
    tk_graph_unlock(&context->graph);
    tk_graph_deinit(&context->graph);
    for (int i = 0; i < TK_MAX_PLACES; i++) tk_device_close(context->sites[i].device);
    pthread_cond_destroy(&context->changed);
    tk_free(context);
}

tk_status tk_context_check(const tk_context *context) {
    if (context->fork_epoch == tk_fork_epoch()) return TK_OK;
    return tk_fail(TK_CONTEXT_ERROR,
                   "this context belongs to the process that forked: make one in the child");
}

tk_device *tk_context_device(tk_context *context) {
    return context ? context->sites[0].device : NULL;
}

const char *tk_cpu_variant(void) { return tk_cpu_executor.variant(); }
const char *tk_cpu_blas(void) { return tk_cpu_executor.blas(); }

tk_context *tk_array_context(tk_array array) {
    return array.node ? tk_context_of(array.node->graph) : NULL;
}

void tk_set_nan_trap(tk_context *context, bool on) {
    if (!context) return;
    if (tk_context_check(context) != TK_OK) return;
    tk_graph_lock(&context->graph);
    context->nan_trap = on;
    tk_graph_unlock(&context->graph);
}

/* ---- threads ---- */

static void end_thread(void *life) {
    this_thread = NULL;
    cached.context = 0;
    atomic_store(&((tk_thread_life *)life)->ended, true);
    release_life(life);
}

static void make_key(void) { (void)pthread_key_create(&end_of_thread, end_thread); }

static bool know_this_thread(void) {
    if (this_thread) return true;
    (void)pthread_once(&key_made, make_key);
    tk_thread_life *life = tk_calloc(1, sizeof *life);
    if (!life) return false;
    atomic_init(&life->holders, 1);
    if (pthread_setspecific(end_of_thread, life) != 0) {
        tk_free(life);
        return false;
    }
    this_thread = life;
    return true;
}

static tk_thread *make_thread(tk_context *context) {
    tk_thread *record = tk_calloc(1, sizeof *record);
    if (!record) return NULL;
    atomic_fetch_add(&this_thread->holders, 1);
    record->life = this_thread;
    record->next = context->threads;
    context->threads = record;
    return record;
}

/* Takes the records of ended threads out on the way. */
static tk_thread *find_or_make_thread(tk_context *context) {
    tk_thread **at = &context->threads;
    while (*at) {
        tk_thread *record = *at;
        if (record->life == this_thread) return record;
        if (atomic_load(&record->life->ended)) {
            *at = record->next;
            release_thread(record);
        } else {
            at = &record->next;
        }
    }
    return make_thread(context);
}

tk_thread *tk_context_thread(tk_context *context) {
    if (cached.context == context->serial) return cached.record;
    if (!know_this_thread()) return NULL;
    tk_thread *record = find_or_make_thread(context);
    if (record) {
        cached.context = context->serial;
        cached.record = record;
    }
    return record;
}

/* ---- handles and scopes ---- */

/* The node that stands for a lack of memory lives as long as the context and is not counted: where
 * not even a scope could be opened, nobody would drop its handles. */
static bool is_counted(const tk_node *node) { return node != node->graph->no_memory; }

void tk_handle_retain(tk_node *node) {
    if (!is_counted(node)) return;
    node->handles++;
    tk_node_retain(node);
}

void tk_handle_release(tk_node *node) {
    if (!is_counted(node)) return;
    node->handles--;
    tk_node_release(node);
}

tk_array tk_handle_give(tk_context *context, tk_node *node) {
    tk_thread *record = tk_context_thread(context);
    if (record && record->marks.count && !tk_vec_push(&record->handles, node))
        node = context->graph.no_memory;
    tk_handle_retain(node);
    return (tk_array){node};
}

tk_scope tk_scope_open(tk_context *context) {
    tk_scope scope = {context, UINT64_MAX};
    if (!context || tk_context_check(context) != TK_OK) return scope;
    tk_graph_lock(&context->graph);
    tk_thread *record = tk_context_thread(context);
    if (record && tk_vec_push(&record->marks, record->handles.count))
        scope.depth = record->marks.count - 1;
    tk_graph_unlock(&context->graph);
    return scope;
}

void tk_scope_close(tk_scope scope) {
    tk_context *context = scope.context;
    if (!context || scope.depth == UINT64_MAX || tk_context_check(context) != TK_OK) return;
    tk_graph_lock(&context->graph);
    tk_thread *record = tk_context_thread(context);
    if (record && scope.depth < record->marks.count) {
        size_t kept = record->marks.items[scope.depth];
        while (record->handles.count > kept)
            tk_handle_release(record->handles.items[--record->handles.count]);
        record->marks.count = scope.depth;
    }
    tk_graph_unlock(&context->graph);
}

tk_array tk_keep(tk_array array) {
    tk_context *context = tk_array_context(array);
    if (!context || tk_context_check(context) != TK_OK) return TK_NO_ARRAY;
    tk_graph_lock(&context->graph);
    tk_handle_retain(array.node);
    tk_graph_unlock(&context->graph);
    return array;
}

void tk_release(tk_array array) {
    tk_context *context = tk_array_context(array);
    if (!context || context->fork_epoch != tk_fork_epoch()) return;
    tk_graph_lock(&context->graph);
    tk_handle_release(array.node);
    tk_graph_unlock(&context->graph);
}

tk_status tk_arrays_push(tk_arrays *list, tk_array array) {
    TK_NEED(list);
    if (!tk_vec_reserve(list, list->count + 1))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a list of arrays");
    list->items[list->count++] = tk_keep(array);
    return TK_OK;
}

void tk_arrays_clear(tk_arrays *list) {
    if (!list) return;
    for (size_t i = 0; i < list->count; i++) tk_release(list->items[i]);
    tk_vec_deinit(list);
}

/* ---- streams ---- */

tk_status tk_stream_new(tk_context *context, tk_stream_id *out_stream) {
    TK_NEED(context, out_stream);
    TK_TRY(tk_context_check(context));
    tk_graph_lock(&context->graph);
    tk_thread *record = tk_context_thread(context);
    uint32_t place = record ? tk_place_of_stream(&context->graph, record->stream) : 0;
    tk_status status = tk_context_open_stream(context, place, out_stream);
    tk_graph_unlock(&context->graph);
    return status;
}

tk_stream_id tk_stream_use(tk_context *context, tk_stream_id stream) {
    if (!context) return TK_DEFAULT_STREAM;
    if (tk_context_check(context) != TK_OK) return TK_DEFAULT_STREAM;
    tk_graph_lock(&context->graph);
    tk_thread *record = tk_context_thread(context);
    tk_stream_id previous = record ? record->stream : TK_DEFAULT_STREAM;
    if (record) record->stream = stream < context->streams.count ? stream : TK_DEFAULT_STREAM;
    tk_graph_unlock(&context->graph);
    return previous;
}

/* ---- the implicit random key ---- */

static void set_key(tk_thread *record, tk_node *key) {
    tk_node_retain(key);
    tk_node_release(record->random_key);
    record->random_key = key;
}

void tk_random_seed(tk_context *context, uint64_t seed) {
    if (!context) return;
    if (tk_context_check(context) != TK_OK) return;
    tk_graph_lock(&context->graph);
    tk_thread *record = tk_context_thread(context);
    tk_builder b;
    tk_builder_open(&b, &context->graph, TK_DEFAULT_STREAM);
    if (record) set_key(record, tkb_random_key(&b, (int64_t)seed));
    tk_builder_close(&b);
    tk_graph_unlock(&context->graph);
}

static tk_node *row_of(tk_builder *b, tk_node *keys, int64_t row) {
    tk_node *slice = tkb_slice(b, keys, TK_AXES(row, 0), TK_AXES(row + 1, 2), TK_ALL_AXES);
    return tkb_reshape(b, slice, TK_SHAPE(2));
}

tk_node *tk_context_next_key(tk_context *context, tk_builder *b) {
    tk_thread *record = tk_context_thread(context);
    if (!record) return context->graph.no_memory;
    tk_node *key = record->random_key ? record->random_key : tkb_random_key(b, 0);
    if (tk_place_of(key) != tk_place_of_stream(b->graph, b->stream))
        key = tkb_to_stream(b, key, b->stream); /* what is drawn lands where the key is */
    tk_node *keys = tkb_random_split(b, key, 2);
    set_key(record, row_of(b, keys, 0));
    return row_of(b, keys, 1);
}
