/* The samples of primitives (samples.h) without their values: what the tests of batching and of the
 * text form run over, and what random graphs are made from. */
#ifndef SUPPORT_OP_CASES_H
#define SUPPORT_OP_CASES_H

#include "graph/build.h"
#include "tiki/array.h"

#define OP_CASE_INPUTS 7

typedef struct op_operand {
    tk_dtype dtype;
    tk_shape shape;
    int64_t limit; /* integers are at least 0 and below; 0: a few around zero */
} op_operand;

typedef struct op_case {
    tk_op op;
    int n_inputs;
    op_operand inputs[OP_CASE_INPUTS];
    const void *attrs;
    bool derived;      /* the operands' values must fit each other: types only */
    bool has_diagonal; /* operand 0 is matrices that need a heavy one */
} op_case;

/* What an operand of a sample asks for. Integers that are not of the dtype that the sample was free
 * to choose are positions, up to the largest one of the sample, or keys. */
op_operand operand_like(tk_array array, tk_dtype free);

size_t op_case_count(void);
const op_case *op_case_at(size_t index);

/* Not for leaves with memory, errors, and what the graph makes by itself. */
bool op_has_case(tk_op op);

/* A fresh placeholder without a value. */
tk_node *new_placeholder(tk_builder *b, tk_dtype dtype, tk_shape shape);

/* The case on fresh placeholders. `inputs` may be NULL. */
tk_node *build_op_case(tk_builder *b, const op_case *c, tk_node **inputs);

/* Appends the outputs of `count` random cases to `pool`; operands are nodes of the pool where one
 * has the type. The same seed gives the same graph. */
void grow_random_graph(tk_builder *b, uint64_t seed, size_t count, tk_node_vec *pool);

/* The next of a sequence of random numbers. */
uint64_t next_random(uint64_t *state);

#endif
