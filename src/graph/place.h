/* Places: which device a node is computed on, and what that device takes.
 *
 * A node's stream says its place, since every stream belongs to one device. Ops with operands are
 * computed where their operands are; ops without, on the builder's stream. Operands of two places
 * are a typed error, never a hidden copy: `transfer` is the only op that reads one place and writes
 * another. Rules of transforms build in the place of the node that they are about
 * (tk_place_of_rule) so that their constants land there.
 *
 * Place 0 is the processor. While there is no other one, nothing here runs. */
#ifndef GRAPH_PLACE_H
#define GRAPH_PLACE_H

#include "graph/build.h"

/* Adds a place with its first stream. TK_UNSUPPORTED when there are TK_MAX_PLACES. */
tk_status tk_place_add(tk_graph *graph, const tk_place *place, uint32_t *out_place);

/* Says that a stream belongs to a place. TK_OUT_OF_MEMORY. */
tk_status tk_place_add_stream(tk_graph *graph, uint32_t stream, uint32_t place);

static inline uint32_t tk_place_of_stream(const tk_graph *graph, uint32_t stream) {
    return stream < graph->stream_places.count ? graph->stream_places.items[stream] : 0;
}

static inline uint32_t tk_place_of(const tk_node *node) {
    return tk_place_of_stream(node->graph, node->stream);
}

/* The stream for work on the values of `node` when `stream` is the current one: that one if it is
 * of the same place, else the first of the node's. */
uint32_t tk_place_stream(const tk_node *node, uint32_t stream);

/* The stream that an application runs on. The errors are TK_INVALID_ARGUMENT for operands of two
 * places and TK_UNSUPPORTED for an op that the place does not have. */
tk_status tk_place_choose(tk_graph *graph, tk_op op, size_t n_inputs, tk_node *const *inputs,
                          const void *attrs, uint32_t *stream);

/* Makes the builder build where `node` is; gives the stream before, to be set back. */
static inline uint32_t tk_place_enter(tk_builder *b, const tk_node *node) {
    uint32_t before = b->stream;
    if (b->graph->n_places > 1) b->stream = node->stream;
    return before;
}

#endif
