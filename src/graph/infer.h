/* Shape and dtype inference: what an op gives for its operands, or why it cannot be applied to
 * them.
 *
 * A rule reads op, inputs and attrs and fills rank and shape (and dtype for RULE rows, and
 * `outputs` for ops that have several). The driver checks operand dtypes against the table before
 * and fills the dtype. */
#ifndef GRAPH_INFER_H
#define GRAPH_INFER_H

#include "graph/node.h"

/* Most outputs of an op other than `custom`. */
#define TK_MAX_OUTPUTS 4

typedef struct tk_infer {
    tk_op op;
    size_t n_inputs;
    tk_node *const *inputs;
    const void *attrs;
    tk_dtype dtype;
    int rank;
    int64_t shape[TK_MAX_RANK];
    int n_outputs;
    const tk_type *outputs; /* `several`; NULL for custom, whose results are its last operands */
    tk_type several[TK_MAX_OUTPUTS];
    int64_t several_shapes[TK_MAX_OUTPUTS][TK_MAX_RANK];
} tk_infer;

tk_status tk_infer_run(tk_infer *infer, tk_op op, size_t n_inputs, tk_node *const *inputs,
                       const void *attrs);

/* Pieces that the rules share. */
tk_status tk_infer_need(const tk_infer *infer, size_t low, size_t high); /* number of operands */
void tk_infer_like(tk_infer *infer, const tk_node *node);                /* takes its shape */
tk_status tk_infer_list(tk_infer *infer, tk_list list);
tk_status tk_infer_axis(const tk_infer *infer, int64_t axis, int rank);
tk_status tk_infer_axes(const tk_infer *infer, tk_list axes); /* of a shape already set */

/* One output of several, and their number; the node has the type of the first. */
void tk_infer_output(tk_infer *infer, int index, tk_dtype dtype, int rank, const int64_t *shape);
tk_status tk_infer_outputs(tk_infer *infer, int n_outputs);

tk_status tk_infer_mode(const tk_infer *infer, int64_t mode);

#define TK_OP(name, params, attrs, accept, dtype, shape, ...)                                      \
    tk_status tk_shape_##shape(tk_infer *infer);
#include "tiki/ops.def"
#undef TK_OP

#endif
