/* Scans by doubling: after step k each element has taken in the 2^k - 1 before it, so that log2(n)
 * passes over the whole array are enough, and devices need no kernel but those of slices, joins and
 * one elementwise op. Half types add and multiply in float32 and round once.
 *
 * Rejected: a kernel with a scan in shared memory; it would be faster by the number of passes, and
 * has no place before scans matter on devices. */
#include "graph/decompose_scan.h"

#include <math.h>

#include "graph/build_pieces.h"
#include "graph/vjp_rules.h"

typedef tk_node *combiner(tk_builder *b, tk_node *before, tk_node *here);

static combiner *combiner_of(tk_op op) {
    switch (op) {
    case TK_OP_scan_sum:
        return tkb_add;
    case TK_OP_scan_prod:
        return tkb_multiply;
    case TK_OP_scan_max:
        return tkb_maximum;
    case TK_OP_scan_min:
        return tkb_minimum;
    case TK_OP_scan_logsumexp:
        return tkb_logaddexp;
    default:
        return NULL;
    }
}

/* The least value of a dtype, or the greatest. */
static tk_node *outermost(tk_builder *b, tk_dtype dtype, bool greatest) {
    int bits = 8 * (int)tk_dtype_size(dtype);
    if (dtype == TK_BOOL) return tkb_const_int(b, dtype, greatest);
    if (!tk_dtype_is_integer(dtype)) return tkb_const(b, dtype, greatest ? INFINITY : -INFINITY);
    if (tk_dtype_kind(dtype) == TK_KIND_UNSIGNED) return tkb_const_int(b, dtype, greatest ? -1 : 0);
    int64_t highest = (int64_t)(UINT64_MAX >> (65 - bits));
    return tkb_const_int(b, dtype, greatest ? highest : -highest - 1);
}

static tk_node *neutral(tk_builder *b, tk_op op, tk_dtype dtype) {
    switch (op) {
    case TK_OP_scan_prod:
        return tkb_const_int(b, dtype, 1);
    case TK_OP_scan_max:
        return outermost(b, dtype, false);
    case TK_OP_scan_min:
        return outermost(b, dtype, true);
    case TK_OP_scan_logsumexp:
        return tkb_const(b, dtype, -INFINITY);
    default:
        return tkb_const_int(b, dtype, 0);
    }
}

/* Each element becomes the one before it. */
static tk_node *moved(tk_builder *b, tk_op op, tk_node *a, int axis) {
    if (tk_node_is_error(a)) return a;
    int64_t length = a->shape[axis];
    tk_shape first = tk_node_shape(a);
    first.items[axis] = 1;
    tk_node *none = tkb_broadcast_to(b, neutral(b, op, (tk_dtype)a->dtype), first);
    return tkb_join2(b, none, tkb_range(b, a, axis, 0, length - 1), axis);
}

static tk_node *doubled(tk_builder *b, combiner *combine, tk_node *a, int axis, int64_t length) {
    for (int64_t reach = 1; reach < length && !tk_node_is_error(a); reach *= 2) {
        tk_node *before = tkb_range(b, a, axis, 0, length - reach);
        tk_node *here = tkb_range(b, a, axis, reach, length);
        a = tkb_join2(b, tkb_range(b, a, axis, 0, reach), combine(b, before, here), axis);
    }
    return a;
}

tk_node *tkb_scan_apart(tk_builder *b, const tk_node *node, tk_node *a) {
    const tk_attrs_scan *attrs = tk_node_attrs(node);
    combiner *combine = combiner_of((tk_op)node->op);
    tk_dtype dtype = (tk_dtype)a->dtype;
    bool widens = (dtype == TK_FLOAT16 || dtype == TK_BFLOAT16) && combine != tkb_maximum &&
                  combine != tkb_minimum;
    if (a->size == 0) return a;
    int axis = (int)attrs->axis;
    int64_t length = a->shape[axis];
    tk_node *x = widens ? tkb_astype(b, a, TK_FLOAT32) : a;
    if (attrs->reverse) x = tkb_flip(b, x, TK_AXES(axis));
    if (!attrs->inclusive) x = moved(b, (tk_op)node->op, x, axis);
    x = doubled(b, combine, x, axis, length);
    if (attrs->reverse) x = tkb_flip(b, x, TK_AXES(axis));
    return tkb_astype(b, x, dtype);
}
