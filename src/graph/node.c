/* Interning, counting and freeing of nodes. A node and all it needs (operands, shape, attributes)
 * is one block from size-classed free lists: building and freeing a node costs no malloc in the
 * steady state. Under AddressSanitizer every block is its own malloc, so that stale pointers are
 * found. */
#include "graph/node.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "graph/infer.h"
#include "graph/text.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLAB_BYTES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_BYTES 0
#endif
#endif
#ifndef SLAB_BYTES
#define SLAB_BYTES ((size_t)1 << 16)
#endif

/* ---- blocks ---- */

static void *slab_carve(tk_graph *graph, size_t bytes) {
    if (graph->slabs.count == 0 || graph->slab_used + bytes > SLAB_BYTES) {
        void *slab = tk_malloc(SLAB_BYTES);
        if (!slab) return NULL;
        if (!tk_vec_push(&graph->slabs, slab)) {
            tk_free(slab);
            return NULL;
        }
        graph->slab_used = 0;
    }
    char *slab = graph->slabs.items[graph->slabs.count - 1];
    void *block = slab + graph->slab_used;
    graph->slab_used += bytes;
    return block;
}

static void *block_get(tk_graph *graph, size_t units) {
    if (SLAB_BYTES == 0 || units >= TK_SLAB_CLASSES) return tk_malloc(units * TK_SLAB_UNIT);
    void *block = graph->free_blocks[units];
    if (!block) return slab_carve(graph, units * TK_SLAB_UNIT);
    memcpy(&graph->free_blocks[units], block, sizeof(void *));
    return block;
}

static void block_put(tk_graph *graph, void *block, size_t units) {
    if (SLAB_BYTES == 0 || units >= TK_SLAB_CLASSES) {
        tk_free(block);
        return;
    }
    memcpy(block, &graph->free_blocks[units], sizeof(void *));
    graph->free_blocks[units] = block;
}

/* ---- graph ---- */

tk_status tk_graph_init(tk_graph *graph, void (*release_storage)(tk_node *node)) {
    *graph = (tk_graph){.n_buckets = 1024, .release_storage = release_storage};
    graph->buckets = tk_calloc(graph->n_buckets, sizeof(tk_node *));
    if (!graph->buckets) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the node table");
    pthread_mutex_init(&graph->lock, NULL);
    tk_attrs_error none = {
        .dtype = TK_FLOAT32, .code = TK_OUT_OF_MEMORY, .message = "out of memory"};
    tk_status status = tk_node_intern(graph, TK_OP_error, 0, 0, NULL, &none, &graph->no_memory);
    if (status != TK_OK) tk_graph_deinit(graph);
    return status;
}

void tk_graph_deinit(tk_graph *graph) {
    tk_graph_lock(graph);
    if (graph->no_memory) tk_node_release(graph->no_memory);
    tk_graph_unlock(graph);
    for (size_t i = 0; i < graph->slabs.count; i++) tk_free(graph->slabs.items[i]);
    tk_vec_deinit(&graph->slabs);
    tk_vec_deinit(&graph->stream_places);
    tk_vec_deinit(&graph->open_traces);
    tk_free(graph->buckets);
    pthread_mutex_destroy(&graph->lock);
    *graph = (tk_graph){0};
}

void tk_graph_lock(tk_graph *graph) { pthread_mutex_lock(&graph->lock); }

void tk_graph_unlock(tk_graph *graph) {
    tk_deferred *item = graph->deferred;
    graph->deferred = NULL;
    pthread_mutex_unlock(&graph->lock);
    while (item) {
        tk_deferred *next = item->next;
        item->run(item);
        item = next;
    }
}

void tk_graph_defer(tk_graph *graph, tk_deferred *item, void (*run)(tk_deferred *self)) {
    *item = (tk_deferred){graph->deferred, run};
    graph->deferred = item;
}

uint64_t tk_graph_serial(tk_graph *graph) { return ++graph->serial; }

tk_status tk_trace_open(tk_graph *graph, uint32_t *out_trace) {
    if (!tk_vec_push(&graph->open_traces, graph->last_trace + 1))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory to open a transform");
    *out_trace = ++graph->last_trace;
    return TK_OK;
}

void tk_trace_close(tk_graph *graph, uint32_t trace) {
    size_t kept = 0;
    for (size_t i = 0; i < graph->open_traces.count; i++)
        if (graph->open_traces.items[i] != trace)
            graph->open_traces.items[kept++] = graph->open_traces.items[i];
    graph->open_traces.count = kept;
}

bool tk_trace_is_open(const tk_graph *graph, uint32_t trace) {
    if (trace == 0) return false;
    for (size_t i = 0; i < graph->open_traces.count; i++)
        if (graph->open_traces.items[i] == trace) return true;
    return false;
}

/* ---- shapes ---- */

bool tk_shape_equal(const tk_node *a, const tk_node *b) {
    return a->rank == b->rank &&
           (a->rank == 0 || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
}

static tk_status fail_shape(tk_status code, int64_t rank, const int64_t *shape, const char *why) {
    char text[256];
    tk_text_shape(text, sizeof text, rank, shape);
    return tk_fail(code, "shape %s: %s", text, why);
}

tk_status tk_shape_size(tk_dtype dtype, int64_t rank, const int64_t *shape, int64_t *out_size) {
    if (rank > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "%lld axes given, at most %d are supported", (long long)rank,
                       TK_MAX_RANK);
    int64_t size = 1, bytes;
    bool empty = false, overflow = false;
    for (int64_t i = 0; i < rank; i++) {
        if (shape[i] < 0) return fail_shape(TK_SHAPE_ERROR, rank, shape, "a length is negative");
        empty |= shape[i] == 0;
        if (shape[i] > 0) overflow |= tk_mul_overflow_i64(size, shape[i], &size);
    }
    overflow |= tk_mul_overflow_i64(size, (int64_t)tk_dtype_size(dtype), &bytes);
    if (overflow) return fail_shape(TK_OVERFLOW, rank, shape, "its bytes do not fit 63 bits");
    *out_size = empty ? 0 : size;
    return TK_OK;
}

/* ---- nodes ---- */

static uint64_t key_hash(tk_op op, uint32_t stream, size_t n_inputs, tk_node *const *inputs,
                         const void *attrs) {
    uint64_t hash = tk_hash_mix(op, stream);
    for (size_t i = 0; i < n_inputs; i++) hash = tk_hash_mix(hash, (uintptr_t)inputs[i]);
    return tk_attrs_hash(tk_op_table[op].record, attrs, hash);
}

static tk_node *table_find(const tk_graph *graph, uint64_t hash, tk_op op, uint32_t stream,
                           size_t n_inputs, tk_node *const *inputs, const void *attrs) {
    for (tk_node *node = graph->buckets[hash & (graph->n_buckets - 1)]; node; node = node->next) {
        if (node->hash == hash && node->op == op && node->stream == stream &&
            node->n_inputs == n_inputs &&
            (n_inputs == 0 || !memcmp(node->inputs, inputs, n_inputs * sizeof *inputs)) &&
            tk_attrs_equal(tk_op_table[op].record, node->attrs, attrs))
            return node;
    }
    return NULL;
}

static void table_grow(tk_graph *graph) {
    size_t n_buckets = graph->n_buckets * 2;
    tk_node **buckets = tk_calloc(n_buckets, sizeof *buckets);
    if (!buckets) return; /* longer chains are slower, not wrong */
    for (size_t i = 0; i < graph->n_buckets; i++) {
        for (tk_node *node = graph->buckets[i], *next; node; node = next) {
            next = node->next;
            tk_node **bucket = &buckets[node->hash & (n_buckets - 1)];
            node->next = *bucket;
            *bucket = node;
        }
    }
    tk_free(graph->buckets);
    graph->buckets = buckets;
    graph->n_buckets = n_buckets;
}

static void table_add(tk_graph *graph, tk_node *node) {
    if (graph->n_interned >= graph->n_buckets) table_grow(graph);
    tk_node **bucket = &graph->buckets[node->hash & (graph->n_buckets - 1)];
    node->next = *bucket;
    *bucket = node;
    node->flags |= TK_NODE_INTERNED;
    graph->n_interned++;
}

void tk_node_unintern(tk_node *node) {
    if (!(node->flags & TK_NODE_INTERNED)) return;
    tk_graph *graph = node->graph;
    tk_node **link = &graph->buckets[node->hash & (graph->n_buckets - 1)];
    while (*link != node) link = &(*link)->next;
    *link = node->next;
    node->next = NULL;
    node->flags &= ~(uint32_t)TK_NODE_INTERNED;
    graph->n_interned--;
}

void tk_node_reintern(tk_node *node) {
    if (node->flags & TK_NODE_INTERNED) return;
    if (!table_find(node->graph, node->hash, (tk_op)node->op, node->stream, node->n_inputs,
                    node->inputs, node->attrs))
        table_add(node->graph, node);
}

/* Outermost open transform that an operand depends on. */
static uint32_t inherit_trace(const tk_graph *graph, size_t n_inputs, tk_node *const *inputs) {
    uint32_t trace = 0;
    for (size_t i = 0; i < n_inputs; i++) {
        uint32_t of_input = inputs[i]->trace;
        if (of_input && (!trace || of_input < trace) && tk_trace_is_open(graph, of_input))
            trace = of_input;
    }
    return trace;
}

static tk_type output_type(const tk_infer *infer, int index) {
    if (infer->outputs) return infer->outputs[index];
    return tk_node_type(infer->inputs[infer->n_inputs - (size_t)infer->n_outputs + (size_t)index]);
}

static size_t outputs_bytes(const tk_infer *infer) {
    if (infer->n_outputs <= 1) return 0;
    size_t bytes = (size_t)infer->n_outputs * sizeof(tk_type);
    for (int i = 0; i < infer->n_outputs; i++)
        bytes += (size_t)output_type(infer, i).rank * sizeof(int64_t);
    return bytes;
}

static void copy_outputs(tk_node *node, const tk_infer *infer, char *memory) {
    node->outputs = (tk_type *)(void *)memory;
    int64_t *shape = (int64_t *)(void *)(memory + (size_t)infer->n_outputs * sizeof(tk_type));
    for (int i = 0; i < infer->n_outputs; i++) {
        tk_type type = output_type(infer, i);
        if (type.rank) memcpy(shape, type.shape, (size_t)type.rank * sizeof *shape);
        node->outputs[i] = (tk_type){type.dtype, type.rank, shape};
        shape += type.rank;
    }
}

static tk_status node_create(tk_graph *graph, const tk_infer *infer, uint32_t stream, int64_t size,
                             tk_node **out_node) {
    size_t n_inputs = infer->n_inputs, input_bytes = n_inputs * sizeof(tk_node *);
    size_t shape_bytes = (size_t)infer->rank * sizeof(int64_t);
    tk_record record = tk_op_table[infer->op].record;
    size_t attrs_bytes = record == TK_RECORD_none ? 0 : tk_attrs_bytes(record, infer->attrs);
    size_t bytes = sizeof(tk_node) + input_bytes + shape_bytes + attrs_bytes + outputs_bytes(infer);
    size_t units = (bytes + TK_SLAB_UNIT - 1) / TK_SLAB_UNIT;
    char *block = block_get(graph, units);
    if (!block)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a node of op %s", tk_op_name(infer->op));
    tk_node *node = (tk_node *)(void *)block;
    *node = (tk_node){.graph = graph,
                      .refs = 1,
                      .op = (uint16_t)infer->op,
                      .stream = stream,
                      .dtype = (uint8_t)infer->dtype,
                      .rank = (uint8_t)infer->rank,
                      .size = size,
                      .n_inputs = (uint32_t)n_inputs,
                      .n_outputs = (uint32_t)infer->n_outputs,
                      .bytes = (uint32_t)units,
                      .trace = inherit_trace(graph, n_inputs, infer->inputs)};
    char *at = block + sizeof(tk_node);
    node->inputs = (tk_node **)(void *)at;
    for (size_t i = 0; i < n_inputs; i++) tk_node_retain(node->inputs[i] = infer->inputs[i]);
    at += input_bytes;
    if (shape_bytes) memcpy(at, infer->shape, shape_bytes);
    node->shape = (int64_t *)(void *)at;
    at += shape_bytes;
    node->attrs = at;
    tk_attrs_copy(record, infer->attrs, at);
    if (infer->n_outputs > 1) copy_outputs(node, infer, at + attrs_bytes);
    graph->n_nodes++;
    *out_node = node;
    return TK_OK;
}

tk_status tk_node_intern(tk_graph *graph, tk_op op, uint32_t stream, size_t n_inputs,
                         tk_node *const *inputs, const void *attrs, tk_node **out_node) {
    uint64_t hash = key_hash(op, stream, n_inputs, inputs, attrs);
    tk_node *found = table_find(graph, hash, op, stream, n_inputs, inputs, attrs);
    if (found) {
        tk_node_retain(found);
        *out_node = found;
        return TK_OK;
    }
    tk_infer infer;
    int64_t size;
    TK_TRY(tk_infer_run(&infer, op, n_inputs, inputs, attrs));
    TK_TRY(tk_shape_size(infer.dtype, infer.rank, infer.shape, &size));
    TK_TRY(node_create(graph, &infer, stream, size, out_node));
    (*out_node)->hash = hash;
    table_add(graph, *out_node);
    return TK_OK;
}

void tk_node_retain(tk_node *node) { node->refs++; }

static void push_if_dead(tk_node *node, tk_node **dead) {
    assert(node->refs > 0);
    if (--node->refs > 0) return;
    tk_node_unintern(node);
    node->next = *dead;
    *dead = node;
}

static void free_all(tk_node *dead) {
    while (dead) {
        tk_node *node = dead;
        tk_graph *graph = node->graph;
        dead = node->next;
        for (uint32_t i = 0; i < node->n_inputs; i++) push_if_dead(node->inputs[i], &dead);
        if (node->storage) graph->release_storage(node);
        tk_attrs_deinit(tk_op_table[node->op].record, node->attrs);
        graph->n_nodes--;
        block_put(graph, node, node->bytes);
    }
}

void tk_node_release(tk_node *node) {
    if (!node) return;
    tk_node *dead = NULL;
    push_if_dead(node, &dead);
    free_all(dead);
}

void tk_node_drop_inputs(tk_node *node) {
    tk_node *dead = NULL;
    for (uint32_t i = 0; i < node->n_inputs; i++) push_if_dead(node->inputs[i], &dead);
    node->n_inputs = 0;
    free_all(dead);
}
