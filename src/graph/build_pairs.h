/* Pairs of matrices picked by index arrays: what the builders of gather_mm and gather_qmm share. */
#ifndef GRAPH_BUILD_PAIRS_H
#define GRAPH_BUILD_PAIRS_H

#include "graph/build_pieces.h"

/* Brings the leading axes of `a` (all but the last two) into the broadcast shape `lead`. */
tk_status tk_leads_join(const char *what, const tk_node *a, tk_shape *lead);

/* `a` with its leading axes broadcast to `lead`. */
tk_node *tkb_with_leads(tk_builder *b, tk_node *a, tk_shape lead);

/* [..., M, K] as [A, M, K]. */
tk_node *tkb_flat_matrices(tk_builder *b, const char *what, tk_node *a);

/* pair[0] and pair[1] become index arrays of one shape into the flat leading axes of `a` and
 * `other`; NULL stands for all of them in their own shape. */
tk_status tkb_pair_indices(tk_builder *b, const char *what, const tk_node *a, const tk_node *other,
                           tk_node **pair);

/* Whether each of `length` positions lies in each segment [..., 2]: bool of [..., 1, length]. */
tk_node *tkb_segment_mask(tk_builder *b, tk_node *bounds, int64_t length);

#endif
