/* vmap: one rule an op, and the walk that applies them.
 *
 * A rule is given an application of its op in which some operands have a batch axis, always axis 0,
 * and builds the outputs with the batch as axis 0. Attributes are those of the unbatched
 * application. */
#ifndef GRAPH_BATCH_H
#define GRAPH_BATCH_H

#include "graph/build.h"

typedef struct tk_batch {
    tk_builder *b;
    const tk_node *node;    /* the unbatched application, for op, attributes and types */
    int64_t size;           /* length of the batch axis */
    tk_node *const *inputs; /* operands; the batched ones have one axis more, in front */
    const bool *batched;    /* by operand; at least one is true */
    tk_node **outputs;      /* to fill, one an output of the op */
    tk_status status;       /* set by a rule that refuses, with this thread's message */
    struct tk_batch_walk *walk;
} tk_batch;

/* Operand `index` with a batch axis: itself, or repeated along a new axis 0. */
tk_node *tk_batch_operand(tk_batch *batch, size_t index);

/* Rewrites a graph for placeholders (no value) that stand for one element of a batch each.
 * `inputs[i]` is what takes the place of wrt[i]: with the batch as axis 0 where batched[i]. Fills
 * the rewritten outputs and whether each has a batch axis (axis 0). */
tk_status tk_batch_run(tk_builder *b, int64_t size, size_t n_wrt, tk_node *const *wrt,
                       tk_node *const *inputs, const bool *batched, size_t n_outputs,
                       tk_node *const *outputs, tk_node **out_outputs, bool *out_batched);

#define TK_OP(name, params, attrs, accept, dtype, shape, vjp, batch, ...)                          \
    void tk_batch_##batch(tk_batch *batch);
#include "tiki/ops.def"
#undef TK_OP

#endif
