/* Graphs from text; docs/graph-text.md is the format, print.h the other direction. */
#ifndef GRAPH_PARSE_H
#define GRAPH_PARSE_H

#include "graph/build.h"

/* Builds the graph of `text` (zero-terminated) on `inputs`, which stand for %a0, %a1, ... and must
 * have the types that the text declares. Appends the outputs, which belong to the builder (or are
 * inputs). Every node goes through inference as if it had been built by hand, so text from anywhere
 * is safe. Messages begin with line and column. TK_FORMAT_ERROR for text that breaks the format,
 * else the code of the node that could not be made. On failure nothing is appended. */
tk_status tk_graph_text_parse(tk_builder *b, const char *text, size_t n_inputs,
                              tk_node *const *inputs, tk_node_vec *outputs);

#endif
