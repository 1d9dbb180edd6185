/* The builder itself, constants, and the normal forms every op starts from: promotion,
 * broadcasting, axes. Broadcasting is explicit in the graph (an `expand` node), so that elementwise
 * nodes have operands of one type and their rules need not know about it. */
#include "graph/build.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "graph/place.h"
#include "graph/text.h"
#include "graph/vjp.h"

/* ---- the builder ---- */

void tk_builder_open(tk_builder *b, tk_graph *graph, uint32_t stream) {
    b->graph = graph;
    b->stream = stream;
    b->n_few = 0;
    b->more = (tk_node_vec){0};
}

void tk_builder_close(tk_builder *b) {
    for (int i = 0; i < b->n_few; i++) tk_node_release(b->few[i]);
    for (size_t i = 0; i < b->more.count; i++) tk_node_release(b->more.items[i]);
    tk_vec_deinit(&b->more);
    b->n_few = 0;
}

tk_node *tkb_hold(tk_builder *b, tk_node *node) {
    if (b->n_few < (int)(sizeof b->few / sizeof b->few[0])) {
        b->few[b->n_few++] = node;
        return node;
    }
    if (tk_vec_push(&b->more, node)) return node;
    tk_node_release(node);
    return b->graph->no_memory;
}

tk_node *tkb_fail(tk_builder *b, tk_status code) {
    tk_attrs_error attrs = {.dtype = TK_FLOAT32,
                            .code = code,
                            .message = tk_error_message(),
                            .serial = (int64_t)tk_graph_serial(b->graph)};
    tk_node *node;
    if (tk_node_intern(b->graph, TK_OP_error, b->stream, 0, NULL, &attrs, &node) != TK_OK)
        return b->graph->no_memory;
    return tkb_hold(b, node);
}

#define MOST_PARTS 4

/* The composition of quantize_groups has itself in it: it only says what a derivative goes through.
 */
static bool is_composed(tk_op op) {
    tk_lower lower = tk_op_of(op)->lower;
    return (lower == TK_LOWER_FUSED && op != TK_OP_quantize_groups) ||
           (lower == TK_LOWER_SCAN && op != TK_OP_scan_steps) || op == TK_OP_reduce_logsumexp ||
           op == TK_OP_segment_product;
}

/* Whether the device of these operands has no kernel for a fused op. */
static bool is_apart(tk_builder *b, tk_op op, size_t n_inputs, tk_node *const *inputs,
                     const void *attrs, uint32_t *stream) {
    return b->graph->n_places > 1 && is_composed(op) &&
           tk_place_choose(b->graph, op, n_inputs, inputs, attrs, stream) == TK_UNSUPPORTED;
}

/* Part `index` of the composition that a fused op stands for. */
static tk_node *part_of(tk_builder *b, const tk_node *node, uint32_t stream, int index) {
    tk_node *parts[MOST_PARTS];
    uint32_t before = b->stream;
    b->stream = stream;
    tk_status status = tkb_decompose(b, node, node->inputs, parts);
    b->stream = before;
    return status == TK_OK ? parts[index] : tkb_fail(b, status);
}

/* The value of part `index`. Under a transform it has the derivatives of the fused node, so that
 * they are the same on every device; nobody evaluates that node. */
static tk_node *stand_for(tk_builder *b, tk_node *node, uint32_t stream, int index) {
    tk_node *part = part_of(b, node, stream, index);
    if (tk_node_is_error(part) || !tk_trace_is_open(b->graph, node->trace)) return part;
    tk_attrs_output attrs = {.index = index};
    tk_node *fused = node->n_outputs == 1 ? node : tkb_node1(b, TK_OP_output, node, &attrs);
    return tkb_node2(b, TK_OP_straight_through, tkb_stop_gradient(b, part), fused, NULL);
}

/* A fused op on a device that has no kernel for it: its composition; of several outputs the node
 * itself, which tkb_output takes apart and nobody evaluates. */
static tk_node *take_apart(tk_builder *b, tk_op op, uint32_t stream, size_t n_inputs,
                           tk_node *const *inputs, const void *attrs) {
    tk_node *node;
    tk_status status = tk_node_intern(b->graph, op, stream, n_inputs, inputs, attrs, &node);
    if (status != TK_OK) return tkb_fail(b, status);
    tkb_hold(b, node);
    return node->n_outputs == 1 ? stand_for(b, node, stream, 0) : node;
}

tk_node *tkb_node(tk_builder *b, tk_op op, size_t n_inputs, tk_node *const *inputs,
                  const void *attrs) {
    for (size_t i = 0; i < n_inputs; i++)
        if (tk_node_is_error(inputs[i])) return inputs[i];
    tk_node *node;
    uint32_t stream = b->stream;
    tk_status status = TK_OK;
    if (b->graph->n_places > 1)
        status = tk_place_choose(b->graph, op, n_inputs, inputs, attrs, &stream);
    if (status == TK_UNSUPPORTED && is_composed(op))
        return take_apart(b, op, stream, n_inputs, inputs, attrs);
    if (status == TK_OK)
        status = tk_node_intern(b->graph, op, stream, n_inputs, inputs, attrs, &node);
    return status == TK_OK ? tkb_hold(b, node) : tkb_fail(b, status);
}

tk_node *tkb_output(tk_builder *b, tk_node *tuple, int index) {
    uint32_t stream = tuple->stream;
    if (tuple->n_outputs <= MOST_PARTS && is_apart(b, (tk_op)tuple->op, tuple->n_inputs,
                                                   tuple->inputs, tk_node_attrs(tuple), &stream))
        return stand_for(b, tuple, stream, index);
    if (tuple->n_outputs == 1) return tuple;
    tk_attrs_output attrs = {.index = index};
    return tkb_node1(b, TK_OP_output, tuple, &attrs);
}

/* ---- constants ---- */

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double round_to(tk_dtype dtype, double value) {
    switch (dtype) {
    case TK_FLOAT16:
        return tk_f16_to_f32(tk_f64_to_f16(value));
    case TK_BFLOAT16:
        return tk_bf16_to_f32(tk_f64_to_bf16(value));
    case TK_FLOAT64:
        return value;
    default:
        return (float)value;
    }
}

static int64_t saturate(tk_dtype dtype, double value) {
    int bits = 8 * (int)tk_dtype_size(dtype);
    if (isnan(value)) return 0;
    if (tk_dtype_kind(dtype) == TK_KIND_UNSIGNED) {
        double top = ldexp(1, bits);
        if (value < 1) return 0;
        if (value >= top) return (int64_t)(UINT64_MAX >> (64 - bits));
        return (int64_t)(uint64_t)value;
    }
    double top = ldexp(1, bits - 1);
    if (value >= top) return (int64_t)(UINT64_MAX >> (65 - bits));
    if (value < -top) return -(int64_t)(UINT64_MAX >> (65 - bits)) - 1;
    return (int64_t)value;
}

static int64_t wrap(tk_dtype dtype, int64_t value) {
    int spare = 64 - 8 * (int)tk_dtype_size(dtype);
    uint64_t shifted = (uint64_t)value << spare;
    return tk_dtype_kind(dtype) == TK_KIND_SIGNED ? (int64_t)shifted >> spare
                                                  : (int64_t)(shifted >> spare);
}

static tk_node *constant(tk_builder *b, tk_dtype dtype, bool weak, uint64_t real, uint64_t imag) {
    tk_attrs_constant attrs = {.dtype = dtype, .weak = weak, .real = real, .imag = imag};
    tk_node *node = tkb_node(b, TK_OP_const, 0, NULL, &attrs);
    if (weak) node->flags |= TK_NODE_WEAK;
    return node;
}

static tk_node *const_of(tk_builder *b, tk_dtype dtype, bool weak, double real, double imag) {
    if (dtype == TK_BOOL) return constant(b, dtype, weak, real != 0 || imag != 0, 0);
    if (tk_dtype_is_integer(dtype))
        return constant(b, dtype, weak, (uint64_t)saturate(dtype, real), 0);
    uint64_t imag_bits = dtype == TK_COMPLEX64 ? bits_of(round_to(dtype, imag)) : 0;
    return constant(b, dtype, weak, bits_of(round_to(dtype, real)), imag_bits);
}

tk_node *tkb_const(tk_builder *b, tk_dtype dtype, double value) {
    return const_of(b, dtype, false, value, 0);
}

tk_node *tkb_const_complex(tk_builder *b, double real, double imag) {
    return const_of(b, TK_COMPLEX64, false, real, imag);
}

tk_node *tkb_const_int(tk_builder *b, tk_dtype dtype, int64_t value) {
    if (!tk_dtype_is_integer(dtype)) return tkb_const(b, dtype, (double)value);
    return constant(b, dtype, false, (uint64_t)wrap(dtype, value), 0);
}

tk_node *tkb_weak(tk_builder *b, tk_kind kind, double real, double imag, int64_t integer) {
    switch (kind) {
    case TK_KIND_BOOL:
        return constant(b, TK_BOOL, true, integer != 0, 0);
    case TK_KIND_UNSIGNED:
    case TK_KIND_SIGNED: {
        bool narrow = integer >= INT32_MIN && integer <= INT32_MAX;
        return constant(b, narrow ? TK_INT32 : TK_INT64, true, (uint64_t)integer, 0);
    }
    case TK_KIND_FLOAT: { /* kept as a double: it is rounded once, to the dtype it meets */
        return constant(b, TK_FLOAT32, true, bits_of(real), 0);
    }
    case TK_KIND_COMPLEX:
        return constant(b, TK_COMPLEX64, true, bits_of(real), bits_of(imag));
    }
    return b->graph->no_memory;
}

tk_node *tkb_const_like(tk_builder *b, tk_node *x, double value) {
    return tkb_broadcast_to(b, tkb_const(b, (tk_dtype)x->dtype, value), tk_node_shape(x));
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A constant in another dtype, as the cast op would compute it. */
static tk_node *recast_constant(tk_builder *b, const tk_node *node, tk_dtype dtype) {
    const tk_attrs_constant *at = tk_node_attrs(node);
    tk_dtype from = (tk_dtype)at->dtype;
    if (tk_dtype_is_inexact(from))
        return const_of(b, dtype, false, double_of(at->real), double_of(at->imag));
    if (tk_dtype_is_integer(dtype)) return tkb_const_int(b, dtype, (int64_t)at->real);
    if (from == TK_UINT64) return tkb_const(b, dtype, (double)at->real);
    return tkb_const(b, dtype, (double)(int64_t)at->real);
}

tk_node *tkb_astype(tk_builder *b, tk_node *a, tk_dtype dtype) {
    if (tk_node_is_error(a)) return a;
    bool weak = (a->flags & TK_NODE_WEAK) != 0;
    if (a->dtype == dtype && !weak) return a;
    if (a->op == TK_OP_const) return recast_constant(b, a, dtype);
    tk_attrs_dtype attrs = {.dtype = dtype};
    return tkb_node1(b, TK_OP_astype, a, &attrs);
}

/* ---- promotion ---- */

/* What a weak scalar becomes beside an array of `dtype`. */
static tk_dtype weak_beside(tk_dtype weak, tk_dtype dtype) {
    tk_kind kind = tk_dtype_kind(weak), other = tk_dtype_kind(dtype);
    if (kind == TK_KIND_COMPLEX) return TK_COMPLEX64;
    if (kind == TK_KIND_FLOAT) return tk_dtype_is_inexact(dtype) ? dtype : TK_FLOAT32;
    if (kind == TK_KIND_SIGNED && other == TK_KIND_BOOL) return weak;
    return dtype;
}

static tk_dtype common_dtype(size_t count, tk_node *const *nodes) {
    bool any_strong = false;
    tk_dtype strong = TK_BOOL, weak = TK_BOOL;
    for (size_t i = 0; i < count; i++) {
        tk_dtype dtype = (tk_dtype)nodes[i]->dtype;
        if (nodes[i]->flags & TK_NODE_WEAK) {
            weak = tk_dtype_promote(weak, dtype);
            continue;
        }
        strong = any_strong ? tk_dtype_promote(strong, dtype) : dtype;
        any_strong = true;
    }
    if (!any_strong) return weak;
    for (size_t i = 0; i < count; i++)
        if (nodes[i]->flags & TK_NODE_WEAK) strong = weak_beside((tk_dtype)nodes[i]->dtype, strong);
    return strong;
}

static bool fits(tk_dtype dtype, int64_t value) {
    bool is_unsigned = tk_dtype_kind(dtype) == TK_KIND_UNSIGNED;
    return wrap(dtype, value) == value && !(is_unsigned && value < 0);
}

tk_node *tkb_become(tk_builder *b, tk_node *a, tk_dtype dtype) {
    if (tk_node_is_error(a)) return a;
    bool is_number = (a->flags & TK_NODE_WEAK) && tk_dtype_is_integer((tk_dtype)a->dtype);
    if (is_number && tk_dtype_is_integer(dtype)) {
        int64_t value = (int64_t)((const tk_attrs_constant *)tk_node_attrs(a))->real;
        if (!fits(dtype, value))
            return tkb_fail(b, tk_fail(TK_OVERFLOW, "the number %lld does not fit %s",
                                       (long long)value, tk_dtype_name(dtype)));
    }
    return tkb_astype(b, a, dtype);
}

void tkb_promote(tk_builder *b, size_t count, tk_node **nodes) {
    for (size_t i = 0; i < count; i++)
        if (tk_node_is_error(nodes[i])) return;
    tk_dtype dtype = common_dtype(count, nodes);
    for (size_t i = 0; i < count; i++) nodes[i] = tkb_become(b, nodes[i], dtype);
}

/* ---- broadcasting ---- */

tk_shape tk_node_shape(const tk_node *node) { return tk_axes_from(node->rank, node->shape); }

tk_node *tkb_broadcast_to(tk_builder *b, tk_node *a, tk_shape shape) {
    if (tk_node_is_error(a)) return a;
    if (a->rank == shape.count &&
        (a->rank == 0 || !memcmp(a->shape, shape.items, a->rank * sizeof *a->shape)))
        return tkb_astype(b, a, (tk_dtype)a->dtype);
    tk_status status = tk_shape_check("broadcast_to", shape);
    if (status != TK_OK) return tkb_fail(b, status);
    tk_attrs_shape attrs = {.shape = tk_axes_list(&shape)};
    return tkb_node1(b, TK_OP_expand, tkb_astype(b, a, (tk_dtype)a->dtype), &attrs);
}

/* Widens `shape` to take in the node's; false when they do not fit. */
static bool widen(tk_shape *shape, const tk_node *node) {
    tk_shape wide = *shape;
    if (node->rank > wide.count) {
        int64_t lead = node->rank - shape->count;
        for (int64_t i = 0; i < node->rank; i++)
            wide.items[i] = i < lead ? 1 : shape->items[i - lead];
        wide.count = node->rank;
    }
    for (int i = 0; i < node->rank; i++) {
        int64_t *length = &wide.items[wide.count - node->rank + i];
        if (*length == 1)
            *length = node->shape[i];
        else if (node->shape[i] != 1 && node->shape[i] != *length)
            return false;
    }
    *shape = wide;
    return true;
}

bool tkb_broadcast(tk_builder *b, const char *what, size_t count, tk_node **nodes) {
    tk_shape shape = TK_SCALAR;
    tk_node *error = NULL;
    for (size_t i = 0; !error && i < count; i++) {
        if (tk_node_is_error(nodes[i]))
            error = nodes[i];
        else if (!widen(&shape, nodes[i])) {
            char text[160];
            error = tkb_fail(
                b,
                tk_fail(TK_SHAPE_ERROR,
                        "%s: operand %zu of shape %s does not broadcast with the "
                        "others' %s",
                        what, i, tk_text_shape(text, sizeof text, nodes[i]->rank, nodes[i]->shape),
                        tk_text_shape(text + 80, 80, shape.count, shape.items)));
        }
    }
    for (size_t i = 0; i < count; i++)
        nodes[i] = error ? error : tkb_broadcast_to(b, nodes[i], shape);
    return error == NULL;
}

tk_node *tkb_elementwise(tk_builder *b, tk_op op, size_t count, tk_node *const *operands) {
    tk_node *nodes[3];
    memcpy(nodes, operands, count * sizeof *nodes);
    const tk_op_info *info = tk_op_of(op);
    /* A weak number is not wrapped before it is asked whether it is 0. */
    if (info->accept != TK_ACCEPT_BOOL) tkb_promote(b, count, nodes);
    for (size_t i = 0; i < count; i++) {
        if (info->accept == TK_ACCEPT_BOOL) nodes[i] = tkb_astype(b, nodes[i], TK_BOOL);
        bool widens = info->accept == TK_ACCEPT_INEXACT || info->accept == TK_ACCEPT_FLOAT;
        if (widens && !tk_dtype_is_inexact((tk_dtype)nodes[i]->dtype) &&
            !tk_node_is_error(nodes[i]))
            nodes[i] = tkb_astype(b, nodes[i], TK_FLOAT32);
    }
    if (count > 1 && !tkb_broadcast(b, info->name, count, nodes)) return nodes[0];
    return tkb_node(b, op, count, nodes, NULL);
}

tk_node *tkb_where(tk_builder *b, tk_node *condition, tk_node *x, tk_node *y) {
    tk_node *nodes[] = {tkb_astype(b, condition, TK_BOOL), x, y};
    tkb_promote(b, 2, nodes + 1);
    if (!tkb_broadcast(b, "where", 3, nodes)) return nodes[0];
    return tkb_node(b, TK_OP_where, 3, nodes, NULL);
}

/* ---- axes ---- */

tk_status tk_shape_check(const char *what, tk_shape shape) {
    if (shape.count < 0) return tk_fail(TK_INVALID_ARGUMENT, "%s: the list is not given", what);
    if (shape.count > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "%s: a list of %lld entries, at most %d are supported", what,
                       (long long)shape.count, TK_MAX_RANK);
    return TK_OK;
}

tk_axes tk_axes_of(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g,
                   int64_t h) {
    tk_axes axes = {0, {a, b, c, d, e, f, g, h}};
    while (axes.count < 8 && axes.items[axes.count] != TK_END) axes.count++;
    return axes;
}

tk_axes tk_axes_from(int64_t count, const int64_t *items) {
    tk_axes axes = {.count = count};
    if (!items && count > 0 && count <= TK_AXES_MAX)
        axes.count = TK_AXES_MAX + 1;
    else if (count > 0 && count <= TK_AXES_MAX)
        memcpy(axes.items, items, (size_t)count * sizeof *items);
    return axes;
}

tk_axes tk_all_axes(void) { return (tk_axes){.count = -1}; }

tk_shape tk_scalar_shape(void) { return (tk_axes){.count = 0}; }

tk_status tk_axis_normalize(const char *what, int64_t axis, int rank, int *out_axis) {
    if (axis < -rank || axis >= rank)
        return tk_fail(TK_AXIS_ERROR, "%s: axis %lld is out of range for an array of rank %d", what,
                       (long long)axis, rank);
    *out_axis = (int)(axis < 0 ? axis + rank : axis);
    return TK_OK;
}

tk_status tk_axes_normalize_ordered(const char *what, tk_axes axes, int rank, tk_axes *out_axes) {
    if (axes.count > TK_AXES_MAX)
        return tk_fail(TK_AXIS_ERROR, "%s: %lld axes given, at most %d are supported", what,
                       (long long)axes.count, TK_AXES_MAX);
    tk_axes result = {.count = axes.count < 0 ? rank : axes.count};
    unsigned seen = 0;
    for (int64_t i = 0; i < result.count; i++) {
        int axis = (int)i;
        if (axes.count >= 0) TK_TRY(tk_axis_normalize(what, axes.items[i], rank, &axis));
        if (seen >> axis & 1)
            return tk_fail(TK_AXIS_ERROR, "%s: axis %d is given twice", what, axis);
        seen |= 1u << axis;
        result.items[i] = axis;
    }
    *out_axes = result;
    return TK_OK;
}

tk_status tk_axes_normalize(const char *what, tk_axes axes, int rank, tk_axes *out_axes) {
    tk_axes ordered;
    TK_TRY(tk_axes_normalize_ordered(what, axes, rank, &ordered));
    unsigned seen = 0;
    for (int64_t i = 0; i < ordered.count; i++) seen |= 1u << ordered.items[i];
    tk_axes result = {.count = 0};
    for (int axis = 0; axis < rank; axis++)
        if (seen >> axis & 1) result.items[result.count++] = axis;
    *out_axes = result;
    return TK_OK;
}
