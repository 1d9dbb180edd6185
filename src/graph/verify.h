/* Checks that a graph is one that inference would have made: for tests, and for debug builds after
 * a transform. */
#ifndef GRAPH_VERIFY_H
#define GRAPH_VERIFY_H

#include "graph/node.h"

/* Every node that has its operands passes its inference rule again with the type it has; constants
 * hold a value of their dtype; the facts of the op table fit the node. TK_INTERNAL, naming the
 * node, else. */
tk_status tk_graph_verify(size_t n_outputs, tk_node *const *outputs);

/* Whether a constant's bits are what rounding or wrapping to its dtype gives (weak ones: to the
 * widest of the kind). */
bool tk_constant_is_normal(const tk_attrs_constant *constant);

#endif
