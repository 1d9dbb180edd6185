/* A call of a function that has transforms of its own: what the `custom` op refers to.
 *
 * The op's operands are the n_args arguments and then the results, as the function computed them;
 * its outputs are the results. Where a callback is missing, the transform goes through the results
 * as if the function had been called plainly. Callbacks run under the graph's lock, are given what
 * a rule of the op table is given (operands: the arguments, then the results), and report failure
 * with a status. `batch` is called when an argument is batched; the results among its operands are
 * then the plain ones, without a batch axis: they are what it replaces. */
#ifndef GRAPH_CUSTOM_H
#define GRAPH_CUSTOM_H

#include "graph/batch.h"
#include "graph/vjp.h"

typedef struct tk_custom_rules {
    tk_ref ref;
    tk_status (*vjp)(struct tk_custom_rules *call, tk_vjp_rule *v);
    /* tangents: by argument, NULL is zero; fills one an output */
    tk_status (*jvp)(struct tk_custom_rules *call, tk_builder *b, const tk_node *node,
                     tk_node *const *tangents, tk_node **out_tangents);
    tk_status (*batch)(struct tk_custom_rules *call, tk_batch *batch);
} tk_custom_rules;

#endif
