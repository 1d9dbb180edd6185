/* Capturing a stream into a graph and launching it. */
#include "runtime/cuda_graph.h"

#include "base/alloc.h"

struct tk_cuda_graph {
    tk_cuda *cuda;
    tk_queue *captured; /* while recording */
    CUgraph graph;
    CUgraphExec exec; /* once ready */
    size_t size;
    TK_VEC(tk_buffer *) buffers;
    TK_VEC(tk_cuda_module *) modules;
    pthread_mutex_t lock; /* guards `last` */
    tk_mark last;
};

tk_status tk_cuda_capture_begin(tk_queue *queue, tk_cuda_graph **out_graph) {
    tk_cuda *cuda = queue->cuda;
    *out_graph = NULL;
    TK_TRY(tk_cuda_enter(cuda));
    bool before = false;
    if (!atomic_compare_exchange_strong(&queue->capturing, &before, true))
        return tk_fail(TK_INVALID_ARGUMENT, "stream %d of cuda:%d is being captured already",
                       queue->number, cuda->index);
    tk_cuda_graph *graph = tk_calloc(1, sizeof *graph);
    CUresult result = CUDA_SUCCESS;
    if (graph) result = cuda->api->capture_begin(queue->handle, CU_STREAM_CAPTURE_RELAXED);
    if (!graph || result != CUDA_SUCCESS) {
        tk_free(graph);
        atomic_store(&queue->capturing, false);
        if (result == CUDA_SUCCESS)
            return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory for a graph", cuda->index);
        return tk_cuda_fail(cuda, result, "capturing stream %d", queue->number);
    }
    graph->cuda = cuda;
    graph->captured = queue;
    pthread_mutex_init(&graph->lock, NULL);
    *out_graph = graph;
    return TK_OK;
}

tk_status tk_cuda_capture_end(tk_cuda_graph *graph) {
    tk_cuda *cuda = graph->cuda;
    tk_queue *queue = graph->captured;
    if (!queue)
        return tk_fail(TK_INVALID_ARGUMENT, "cuda:%d: this graph's recording has ended",
                       cuda->index);
    TK_TRY(tk_cuda_enter(cuda));
    CUresult result = cuda->api->capture_end(queue->handle, &graph->graph);
    atomic_store(&queue->capturing, false);
    graph->captured = NULL;
    if (result != CUDA_SUCCESS) {
        graph->graph = NULL;
        return tk_cuda_fail(cuda, result, "ending the capture of stream %d", queue->number);
    }
    TK_CUDA_TRY(cuda, cuda->api->graph_nodes(graph->graph, NULL, &graph->size),
                "counting a graph's works");
    TK_CUDA_TRY(cuda, cuda->api->graph_instantiate(&graph->exec, graph->graph, 0),
                "making a graph of %zu works ready", graph->size);
    return TK_OK;
}

tk_status tk_cuda_graph_hold(tk_cuda_graph *graph, tk_buffer *buffer) {
    if (!tk_vec_push(&graph->buffers, buffer))
        return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory for a graph", graph->cuda->index);
    tk_buffer_retain(buffer);
    return TK_OK;
}

tk_status tk_cuda_graph_hold_module(tk_cuda_graph *graph, tk_cuda_module *module) {
    if (!tk_vec_push(&graph->modules, module))
        return tk_fail(TK_OUT_OF_MEMORY, "cuda:%d: no memory for a graph", graph->cuda->index);
    tk_cuda_module_retain(module);
    return TK_OK;
}

tk_status tk_cuda_graph_launch(tk_cuda_graph *graph, tk_queue *queue) {
    tk_cuda *cuda = graph->cuda;
    if (!graph->exec)
        return tk_fail(TK_INVALID_ARGUMENT, "cuda:%d: this graph's recording has not ended well",
                       cuda->index);
    TK_TRY(tk_cuda_enter(cuda));
    TK_CUDA_TRY(cuda, cuda->api->graph_launch(graph->exec, queue->handle),
                "launching a graph of %zu works in stream %d", graph->size, queue->number);
    uint64_t ticket = tk_cuda_queue_submitted(queue);
    tk_cuda_queue_launched(queue, ticket, "a graph", NULL);
    pthread_mutex_lock(&graph->lock);
    graph->last = (tk_mark){queue, ticket};
    pthread_mutex_unlock(&graph->lock);
    return TK_OK;
}

size_t tk_cuda_graph_size(const tk_cuda_graph *graph) { return graph->size; }

static void end_recording(tk_cuda_graph *graph) {
    if (!graph->captured) return;
    if (graph->cuda->api->capture_end(graph->captured->handle, &graph->graph) != CUDA_SUCCESS)
        graph->graph = NULL;
    atomic_store(&graph->captured->capturing, false);
}

static void end_graph(tk_cuda_graph *graph) {
    const tk_cuda_api *api = graph->cuda->api;
    if (!tk_cuda_enter_to_free(graph->cuda)) return;
    end_recording(graph);
    if (graph->last.queue) (void)tk_cuda_queue_wait(graph->last.queue, graph->last.ticket, NULL);
    if (graph->exec) (void)api->graph_exec_destroy(graph->exec);
    if (graph->graph) (void)api->graph_destroy(graph->graph);
}

void tk_cuda_graph_release(tk_cuda_graph *graph) {
    if (!graph) return;
    end_graph(graph);
    for (size_t i = 0; i < graph->buffers.count; i++) tk_buffer_release(graph->buffers.items[i]);
    for (size_t i = 0; i < graph->modules.count; i++)
        tk_cuda_module_release(graph->modules.items[i]);
    tk_vec_deinit(&graph->buffers);
    tk_vec_deinit(&graph->modules);
    pthread_mutex_destroy(&graph->lock);
    tk_free(graph);
}
