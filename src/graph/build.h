/* Building graphs: tkb_<op>() for every row of the op table, on nodes.
 *
 * A builder collects what it makes and drops it when it is closed, so that nested calls need no
 * cleanup: `tkb_multiply(b, x, tkb_rsqrt(b, y))`. Nodes it returns are borrowed until then; retain
 * what must outlive it. It needs the graph's lock throughout.
 *
 * Errors stick: a function given an error node returns that node, and one that fails returns a new
 * error node, so the first error comes out at the end. No function here returns NULL. */
#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "graph/node.h"
#include "tiki/axes.h"

typedef struct tk_builder {
    tk_graph *graph;
    uint32_t stream;
    int n_few;
    tk_node *few[24];
    tk_node_vec more;
} tk_builder;

void tk_builder_open(tk_builder *b, tk_graph *graph, uint32_t stream);
void tk_builder_close(tk_builder *b);

/* The node for this application: the first error among the operands, a found or a new node, or an
 * error node with this thread's message. */
tk_node *tkb_node(tk_builder *b, tk_op op, size_t n_inputs, tk_node *const *inputs,
                  const void *attrs);

#define tkb_node1(b, op, x, attrs) tkb_node((b), (op), 1, (tk_node *const[]){(x)}, (attrs))
#define tkb_node2(b, op, x, y, attrs) tkb_node((b), (op), 2, (tk_node *const[]){(x), (y)}, (attrs))

/* An error node with this thread's latest message. */
tk_node *tkb_fail(tk_builder *b, tk_status code);

/* Hands the caller's reference to the builder; returns the node. */
tk_node *tkb_hold(tk_builder *b, tk_node *node);

/* Output `index` of an op that has several (the node itself if it has one). */
tk_node *tkb_output(tk_builder *b, tk_node *tuple, int index);

/* ---- constants ---- */

/* A scalar of a dtype, rounded or wrapped to it. */
tk_node *tkb_const(tk_builder *b, tk_dtype dtype, double value);
tk_node *tkb_const_int(tk_builder *b, tk_dtype dtype, int64_t value);
tk_node *tkb_const_complex(tk_builder *b, double real, double imag);

/* A scalar that takes the dtype of what it meets; `kind` picks bool, int32, float32 or complex64.
 */
tk_node *tkb_weak(tk_builder *b, tk_kind kind, double real, double imag, int64_t integer);

/* A scalar constant of x's dtype, broadcast to x's shape. */
tk_node *tkb_const_like(tk_builder *b, tk_node *x, double value);

/* ---- normal forms ---- */

/* `a` in another dtype, as a value that a program put beside arrays of it: TK_OVERFLOW for a weak
 * integer that the dtype does not hold. */
tk_node *tkb_become(tk_builder *b, tk_node *a, tk_dtype dtype);

/* Promotes to one dtype; weak scalars follow the others, by tkb_become. */
void tkb_promote(tk_builder *b, size_t count, tk_node **nodes);

/* Broadcasts to one shape; `what` names the op in the error. False (and every node the error) when
 * the shapes do not fit. */
bool tkb_broadcast(tk_builder *b, const char *what, size_t count, tk_node **nodes);

tk_node *tkb_elementwise(tk_builder *b, tk_op op, size_t count, tk_node *const *operands);

/* Negative axes counted from the end; TK_AXIS_ERROR names `what`. */
tk_status tk_axis_normalize(const char *what, int64_t axis, int rank, int *out_axis);

/* All axes for TK_ALL_AXES; ascending and distinct otherwise. */
tk_status tk_axes_normalize(const char *what, tk_axes axes, int rank, tk_axes *out_axes);

/* The same, in the given order. */
tk_status tk_axes_normalize_ordered(const char *what, tk_axes axes, int rank, tk_axes *out_axes);

static inline tk_list tk_axes_list(const tk_axes *axes) {
    return (tk_list){axes->items, axes->count};
}

/* Refuses a list that is not given or longer than TK_MAX_RANK; `what` names op and argument. Needed
 * before a node is interned: its attributes are read before the op's shape rule runs. */
tk_status tk_shape_check(const char *what, tk_shape shape);

/* A node's shape as a value. */
tk_shape tk_node_shape(const tk_node *node);

/* Drops the axes of length 1 named by `axes`, in normal form. */
tk_node *tkb_drop_axes(tk_builder *b, tk_node *a, const tk_axes *axes);

/* A reduction that keeps or drops the reduced axes. */
tk_node *tkb_reduce(tk_builder *b, tk_op op, tk_node *a, const char *what, tk_axes axes,
                    bool keepdims);

/* Reduction of a broadcast operand's gradient back to the operand's shape: sums what was repeated.
 */
tk_node *tkb_sum_to_shape(tk_builder *b, tk_node *a, tk_shape shape);

/* Functions with a list result append to `out`. */
#include "graph/build_gen.h"

#endif
