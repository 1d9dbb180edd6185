/* See verify.h. The rules are those of inference; only what interning adds (types, sizes, flags) is
 * checked here on its own. */
#include "graph/verify.h"

#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "graph/infer.h"
#include "graph/text.h"
#include "graph/walk.h"

/* ---- constants ---- */

static bool is_rounded(tk_dtype dtype, uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    if (value != value || dtype == TK_FLOAT64) return true;
    if (dtype == TK_FLOAT16) return (double)tk_f16_to_f32(tk_f64_to_f16(value)) == value;
    if (dtype == TK_BFLOAT16) return (double)tk_bf16_to_f32(tk_f64_to_bf16(value)) == value;
    return (double)(float)value == value;
}

static bool is_wrapped(tk_dtype dtype, uint64_t bits) {
    int spare = 64 - 8 * (int)tk_dtype_size(dtype);
    if (tk_dtype_kind(dtype) == TK_KIND_UNSIGNED) return bits << spare >> spare == bits;
    return (int64_t)(bits << spare) >> spare == (int64_t)bits;
}

static bool can_be_weak(tk_dtype dtype) {
    return dtype == TK_BOOL || dtype == TK_INT32 || dtype == TK_INT64 || dtype == TK_FLOAT32 ||
           dtype == TK_COMPLEX64;
}

bool tk_constant_is_normal(const tk_attrs_constant *constant) {
    tk_dtype dtype = (tk_dtype)constant->dtype;
    if (constant->weak && !can_be_weak(dtype)) return false;
    if (!tk_dtype_is_complex(dtype) && constant->imag) return false;
    if (dtype == TK_BOOL) return constant->real <= 1;
    if (tk_dtype_is_integer(dtype)) return is_wrapped(dtype, constant->real);
    return constant->weak ||
           (is_rounded(dtype, constant->real) && is_rounded(dtype, constant->imag));
}

/* ---- nodes ---- */

static tk_status broken(const tk_node *node, const char *what) {
    return tk_fail(TK_INTERNAL, "a node of op %s and type %s is broken: %s",
                   tk_op_name((tk_op)node->op), tk_text_node(node), what);
}

static bool same_type(tk_type a, tk_dtype dtype, int rank, const int64_t *shape) {
    return a.dtype == dtype && a.rank == rank &&
           (rank == 0 || !memcmp(a.shape, shape, (size_t)rank * sizeof *shape));
}

static bool outputs_agree(const tk_node *node, const tk_infer *infer) {
    if ((int)node->n_outputs != infer->n_outputs || !node->outputs != (infer->n_outputs == 1))
        return false;
    for (int i = 0; node->outputs && i < infer->n_outputs; i++) {
        tk_type type =
            infer->outputs
                ? infer->outputs[i]
                : tk_node_type(node->inputs[node->n_inputs - node->n_outputs + (size_t)i]);
        if (!same_type(node->outputs[i], type.dtype, type.rank, type.shape)) return false;
    }
    return true;
}

static tk_status check_inference(const tk_node *node) {
    tk_infer infer;
    tk_status status =
        tk_infer_run(&infer, (tk_op)node->op, node->n_inputs, node->inputs, node->attrs);
    if (status != TK_OK)
        return tk_fail_within(TK_INTERNAL, "a node of op %s is broken",
                              tk_op_name((tk_op)node->op));
    if (!same_type(tk_node_type(node), infer.dtype, infer.rank, infer.shape))
        return broken(node, "inference gives another type");
    return outputs_agree(node, &infer) ? TK_OK : broken(node, "inference gives other outputs");
}

static tk_status check_facts(const tk_node *node) {
    unsigned facts = tk_node_op(node)->facts;
    if (facts & (TK_FACT_COMM | TK_FACT_BILIN) && node->n_inputs != 2)
        return broken(node, "a commutative or bilinear op has two operands");
    if (facts & TK_FACT_IDEM && (node->n_inputs != 1 || !tk_shape_equal(node, node->inputs[0])))
        return broken(node, "an idempotent op keeps its operand's shape");
    return TK_OK;
}

static tk_status check_constant(const tk_node *node) {
    const tk_attrs_constant *attrs = tk_node_attrs(node);
    bool weak = (node->flags & TK_NODE_WEAK) != 0;
    if (weak != (attrs->weak != 0)) return broken(node, "flag and attribute disagree on weakness");
    return tk_constant_is_normal(attrs) ? TK_OK
                                        : broken(node, "its bits are no value of its dtype");
}

static tk_status check_node(const tk_node *node) {
    int64_t size;
    TK_TRY(tk_shape_size((tk_dtype)node->dtype, node->rank, node->shape, &size));
    if (size != node->size) return broken(node, "its size is not that of its shape");
    if (node->refs < 1 || node->handles < 0 || node->handles > node->refs)
        return broken(node, "its counts are impossible");
    if (node->op == TK_OP_const)
        TK_TRY(check_constant(node));
    else if (node->flags & TK_NODE_WEAK)
        return broken(node, "only constants are weak");
    bool lost_operands = node->n_inputs == 0 && tk_node_op(node)->lower != TK_LOWER_LEAF;
    if (lost_operands) return TK_OK;
    TK_TRY(check_inference(node));
    return check_facts(node);
}

tk_status tk_graph_verify(size_t n_outputs, tk_node *const *outputs) {
    tk_node_vec order = {0};
    tk_node_map map = {0};
    tk_status status = tk_walk_order(n_outputs, outputs, NULL, NULL, &order, &map);
    for (size_t i = 0; status == TK_OK && i < order.count; i++) status = check_node(order.items[i]);
    tk_vec_deinit(&order);
    tk_node_map_deinit(&map);
    return status;
}
