/* Layouts whose dynamic leaves are values of the kernel: what lowering computes with.
 *
 * The algebra's dynamic terms have no identity, so an operation on such a layout is run twice: on
 * the layout as it is, and with a number of its own for each dynamic leaf (a large prime times what
 * is known to divide the leaf). A leaf of the second result that is a multiple of a number comes
 * from that leaf; what does not come out this way is refused. */
#ifndef KERNEL_SYM_H
#define KERNEL_SYM_H

#include "kernel/pass.h"

typedef struct tk_ksym {
    tk_layout layout;
    tk_kvalue *shape[TK_LAYOUT_MAX_LEAVES], *stride[TK_LAYOUT_MAX_LEAVES]; /* of dynamic leaves */
} tk_ksym;

/* A layout with values for its dynamic leaves, in leaf order (shapes, then strides). */
void tk_ksym_bind(const tk_layout *layout, tk_kvalue *const *leaves, tk_ksym *out);

/* An operation of the algebra. */
typedef tk_status (*tk_ksym_op)(const void *arg, const tk_layout *layout, tk_layout *out);

/* The operation's result, its dynamic leaves as values that `put` computes (of type `index`).
 * TK_UNSUPPORTED when a leaf's origin is not found. */
tk_status tk_ksym_apply(tk_kput *put, tk_kscalar index, const tk_ksym *sym, tk_ksym_op op,
                        const void *arg, tk_ksym *out);

/* The offset of a coordinate, dynamic leaves of which are the next of `*values`; `_` counts 0.
 * NULL stands for 0. */
tk_kvalue *tk_ksym_offset(tk_kput *put, tk_kscalar index, const tk_ksym *sym, const tk_tuple *coord,
                          tk_kvalue *const *values);

/* How long a mode is (-1: the whole). */
tk_kvalue *tk_ksym_extent(tk_kput *put, tk_kscalar index, const tk_ksym *sym, int mode);

/* add, mul, udiv or urem of what is not negative; of constants, a constant. */
tk_kvalue *tk_ksym_arith(tk_kput *put, tk_kopcode code, tk_kvalue *a, tk_kvalue *b);

/* An integer as the index type; a + b where NULL is 0. */
tk_kvalue *tk_ksym_as(tk_kput *put, tk_kscalar index, tk_kvalue *value);
tk_kvalue *tk_ksym_plus(tk_kput *put, tk_kvalue *a, tk_kvalue *b);

#endif
