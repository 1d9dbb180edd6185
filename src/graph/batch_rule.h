/* What the batching rules share: operands and shapes with the batch axis in front, and applying the
 * op again. Lists that a rule makes have room for one axis more than an array can have; the op's
 * inference refuses what is too long. */
#ifndef GRAPH_BATCH_RULE_H
#define GRAPH_BATCH_RULE_H

#include "graph/batch.h"

/* All operands with a batch axis. The list is the walk's and holds until the rule returns; the rule
 * may write to it. */
tk_node **tk_batch_operands(tk_batch *batch);

/* {batch size, shape...} */
tk_shape tk_batch_shape(const tk_batch *batch, int64_t rank, const int64_t *shape);

/* Applies the op of batch->node and fills the outputs. */
void tk_batch_apply(tk_batch *batch, size_t n_inputs, tk_node *const *inputs, const void *attrs);

/* An unbatched node repeated for every element of the batch. */
tk_node *tk_batch_repeat(tk_batch *batch, tk_node *node);

/* The error for an array of `rank` axes, more than an array can have. */
tk_node *tk_batch_fail_rank(tk_batch *batch, int64_t rank);

/* {first, list...}, the list's items increased by `offset`; `memory` has TK_MAX_RANK + 1 places. */
tk_list tk_batch_list(int64_t first, tk_list list, int64_t offset, int64_t *memory);

#endif
