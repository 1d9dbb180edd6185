/* Quantisation and segments as compositions, for decompose.c. */
#ifndef GRAPH_DECOMPOSE_QUANT_H
#define GRAPH_DECOMPOSE_QUANT_H

#include "graph/build.h"

/* Fills the outputs of a quantize_groups node on other operands. Codes and integer scales, which
 * have no derivative, are those of the op itself. */
void tkb_quantize_apart(tk_builder *b, const tk_node *node, tk_node *const *inputs,
                        tk_node **out_outputs);

/* The products over segments of K as products of a, masked for each segment, and b. */
tk_node *tkb_segments_apart(tk_builder *b, tk_node *a, tk_node *other, tk_node *bounds);

#endif
