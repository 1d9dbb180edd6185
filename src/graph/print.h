/* Graphs as text; docs/graph-text.md is the format.
 *
 * The text is that of the graph as transforms see it: a placeholder that carries its argument's
 * value prints as that value, a call of a function with transforms of its own as its results. What
 * has memory (evaluated or loaded arrays) and placeholders without a value are inputs %a0, %a1, ...
 */
#ifndef GRAPH_PRINT_H
#define GRAPH_PRINT_H

#include "graph/node.h"

/* Appends the text. The same graph gives the same text in every run. Fails with the code of an
 * error node among the outputs. */
tk_status tk_graph_text_print(size_t n_outputs, tk_node *const *outputs, tk_strbuf *out);

/* Appends the inputs of that text, in its order; borrowed. */
tk_status tk_graph_text_inputs(size_t n_outputs, tk_node *const *outputs, tk_node_vec *inputs);

#endif
