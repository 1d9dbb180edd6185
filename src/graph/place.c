/* See place.h. */
#include "graph/place.h"

#include "base/error.h"
#include "graph/custom.h"

tk_status tk_place_add(tk_graph *graph, const tk_place *place, uint32_t *out_place) {
    if (graph->n_places == 0) graph->n_places = 1;
    if (graph->n_places == TK_MAX_PLACES)
        return tk_fail(TK_UNSUPPORTED, "a context has at most %d devices", TK_MAX_PLACES);
    TK_TRY(tk_place_add_stream(graph, place->stream, graph->n_places));
    *out_place = graph->n_places;
    graph->places[graph->n_places++] = *place;
    return TK_OK;
}

tk_status tk_place_add_stream(tk_graph *graph, uint32_t stream, uint32_t place) {
    while (graph->stream_places.count <= stream)
        if (!tk_vec_push(&graph->stream_places, 0))
            return tk_fail(TK_OUT_OF_MEMORY, "no memory for a stream");
    graph->stream_places.items[stream] = (uint8_t)place;
    return TK_OK;
}

uint32_t tk_place_stream(const tk_node *node, uint32_t stream) {
    const tk_graph *graph = node->graph;
    uint32_t place = tk_place_of(node);
    if (place == tk_place_of_stream(graph, stream)) return stream;
    return place ? graph->places[place].stream : 0;
}

static const char *name_of(const tk_graph *graph, uint32_t place) {
    return place ? graph->places[place].name : "cpu:0";
}

/* The operand that decides: what the op gives is that operand's memory, or lies beside it. */
static const tk_node *decisive(tk_op op, size_t n_inputs, tk_node *const *inputs,
                               const void *attrs) {
    if (n_inputs == 0 || op == TK_OP_transfer) return NULL;
    if (op == TK_OP_custom) return inputs[((const tk_attrs_custom *)attrs)->n_args];
    if (op != TK_OP_output) return inputs[0];
    const tk_node *tuple = inputs[0];
    if (tuple->op != TK_OP_custom || tuple->n_inputs == 0) return tuple;
    int64_t n_args = ((const tk_attrs_custom *)tk_node_attrs(tuple))->n_args;
    return tuple->inputs[n_args + ((const tk_attrs_output *)attrs)->index];
}

static bool may_mix(tk_op op) {
    return op == TK_OP_custom || op == TK_OP_barrier || op == TK_OP_straight_through ||
           op == TK_OP_transfer;
}

tk_status tk_place_choose(tk_graph *graph, tk_op op, size_t n_inputs, tk_node *const *inputs,
                          const void *attrs, uint32_t *stream) {
    const tk_node *first = decisive(op, n_inputs, inputs, attrs);
    if (first) *stream = tk_place_stream(first, *stream);
    uint32_t place = tk_place_of_stream(graph, *stream);
    for (size_t i = 0; i < n_inputs && !may_mix(op); i++)
        if (tk_place_of(inputs[i]) != place)
            return tk_fail(TK_INVALID_ARGUMENT,
                           "%s: operand 0 is on %s and operand %zu on %s: move one of them with "
                           "to_device, in C tk_to_stream",
                           tk_op_title(op), name_of(graph, place), i,
                           name_of(graph, tk_place_of(inputs[i])));
    if (place == 0 || tk_op_of(op)->lower == TK_LOWER_ALIAS) return TK_OK;
    const tk_place *at = &graph->places[place];
    return at->check(at, op, n_inputs, inputs, attrs);
}
