/* CUDA graphs: the work of one stream, recorded once and then launched as one.
 *
 *     tk_cuda_capture_begin(queue, &graph);
 *     ... launches, fills, copies of pinned or device memory into queue ...
 *     tk_cuda_graph_hold(graph, buffer), for each buffer that the work touches
 *     tk_cuda_capture_end(graph);
 *     tk_cuda_graph_launch(graph, queue), any number of times
 *
 * A graph owns its bindings: the buffers and modules that it was told to hold live as long as it
 * does, and its end waits for its last launch, so none of them is reused early. The driver runs two
 * launches of one graph one after the other. A stream that is captured runs nothing, so nothing can
 * wait for it, and other streams cannot join.
 */
#ifndef RUNTIME_CUDA_GRAPH_H
#define RUNTIME_CUDA_GRAPH_H

#include "runtime/buffer.h"
#include "runtime/cuda_module.h"

typedef struct tk_cuda_graph tk_cuda_graph;

/* Starts recording. TK_INVALID_ARGUMENT if the stream is recorded already. The caller ends the
 * graph in every case. */
tk_status tk_cuda_capture_begin(tk_queue *queue, tk_cuda_graph **out_graph);

/* Ends the recording and makes the graph ready. After an error the graph can only be released. */
tk_status tk_cuda_capture_end(tk_cuda_graph *graph);

/* Keeps one more reference to a buffer or a module until the graph is released. TK_OUT_OF_MEMORY.
 */
tk_status tk_cuda_graph_hold(tk_cuda_graph *graph, tk_buffer *buffer);
tk_status tk_cuda_graph_hold_module(tk_cuda_graph *graph, tk_cuda_module *module);

/* Hands all its work to a stream. TK_INVALID_ARGUMENT if the recording has not ended well. */
tk_status tk_cuda_graph_launch(tk_cuda_graph *graph, tk_queue *queue);

/* How many works it holds. */
size_t tk_cuda_graph_size(const tk_cuda_graph *graph);

/* Ends a recording that is still on, waits for the last launch, and lets go of everything. NULL is
 * allowed. */
void tk_cuda_graph_release(tk_cuda_graph *graph);

#endif
