/* Pairs of matrices to multiply, ordered so that those with the same right matrix follow one
 * another: a right matrix is read (and decoded) once, with the rows of all its left ones. */
#ifndef CPU_BODY_PAIRS_H
#define CPU_BODY_PAIRS_H

#include "array/executor.h"

/* Numbers of matrices, counted over the leading axes in row-major order. `left` below 0: an index
 * was out of range, and the product is 0. */
typedef struct tk_pair {
    int64_t left, right, out;
} tk_pair;

typedef struct tk_pairs {
    tk_pair *items;
    int64_t count;
    int64_t n_groups;
    int64_t *starts; /* of groups with one right matrix; n_groups + 1 */
    bool in_order;   /* item i has out == i */
} tk_pairs;

/* By index arrays of one shape into n_left and n_right matrices; faults are noted. */
tk_status tk_pairs_by_index(const tk_strided *lhs, const tk_strided *rhs, int64_t n_left,
                            int64_t n_right, tk_fault *fault, tk_pairs *out);

/* One a position of the leading axes of `shape`. Axes along which none of the right operands moves
 * share a matrix. */
tk_status tk_pairs_by_position(int rank, const int64_t *shape, const tk_strided *rights,
                               int n_rights, tk_pairs *out);

void tk_pairs_free(tk_pairs *pairs);

/* The memory of matrix `number` of an operand with two axes behind its leading ones. */
char *tk_matrix_at(const tk_strided *view, int64_t number);

#endif
