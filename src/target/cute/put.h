/* What writers of operations that touch memory share. */
#ifndef TARGET_CUTE_PUT_H
#define TARGET_CUTE_PUT_H

#include "target/cute/cute.h"

/* Opens `scf.if` for the condition at `index`, if there is one; close gives it back. */
bool tk_cute_open_if(tk_cute *x, const tk_kop *op, int index);
void tk_cute_close_if(tk_cute *x, bool opened);

static inline const char *tk_cute_pointer_type(tk_cute *x, const tk_kop *op, int index) {
    return tk_cute_type(x, op->operands[index]->type);
}

/* Whether an operand points into the shared memory of a block of the cluster. */
static inline bool tk_cute_is_far(const tk_kop *op, int index) {
    return op->operands[index]->type.space == TK_KS_CLUSTER;
}

#endif
