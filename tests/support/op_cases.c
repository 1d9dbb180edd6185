/* See op_cases.h. Elementwise rows make their own cases, for each kind of dtype that they accept.
 */
#include "support/op_cases.h"

#include <string.h>

#define L(...)                                                                                     \
    { (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t) }
#define S(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), { __VA_ARGS__ }                        \
    }
#define SCALAR                                                                                     \
    {                                                                                              \
        0, { 0 }                                                                                   \
    }
#define F(...)                                                                                     \
    { TK_FLOAT32, S(__VA_ARGS__), 0 }
#define C(...)                                                                                     \
    { TK_COMPLEX64, S(__VA_ARGS__), 0 }
#define B(...)                                                                                     \
    { TK_BOOL, S(__VA_ARGS__), 0 }
#define I(limit, ...)                                                                              \
    { TK_INT32, S(__VA_ARGS__), limit }
#define KEY(...)                                                                                   \
    { TK_UINT32, S(__VA_ARGS__), INT64_MAX }
#define F0                                                                                         \
    { TK_FLOAT32, SCALAR, 0 }
#define ATTRS(record, ...)                                                                         \
    &(const tk_attrs_##record) { __VA_ARGS__ }

static const op_case written[] = {
    {TK_OP_iota, 0, {{0}}, ATTRS(iota, TK_INT32, L(3, 4), 1, 2, 3), false},
    {TK_OP_iota,
     0,
     {{0}},
     ATTRS(iota, TK_FLOAT32, L(3), 0, 0x3fe0000000000000, 0xbff8000000000000),
     false},
    {TK_OP_iota, 0, {{0}}, ATTRS(iota, TK_UINT8, {0}, 0, 7, 1), false},
    {TK_OP_random_bits, 1, {KEY(2)}, ATTRS(bits, L(3), 4), false},
    {TK_OP_random_bits, 1, {KEY(2)}, ATTRS(bits, {0}, 2), false},
    {TK_OP_random_bits, 1, {KEY(4, 2)}, ATTRS(bits, L(3, 2), 1), false},
    {TK_OP_astype, 1, {F(2, 3)}, ATTRS(dtype, TK_INT32), false},
    {TK_OP_astype, 1, {I(9, 2, 3)}, ATTRS(dtype, TK_COMPLEX64), false},
    {TK_OP_where, 3, {B(2, 3), F(2, 3), F(2, 3)}, NULL, false},
    {TK_OP_reduce_sum, 1, {F(2, 3, 4)}, ATTRS(reduce, L(0, 2)), false},
    {TK_OP_reduce_sum, 1, {I(9, 2, 3)}, ATTRS(reduce, L(0)), false},
    {TK_OP_reduce_prod, 1, {F(2, 3, 4)}, ATTRS(reduce, L(1)), false},
    {TK_OP_reduce_max, 1, {F(2, 3, 4)}, ATTRS(reduce, L(0, 1, 2)), false},
    {TK_OP_reduce_min, 1, {F(2, 3, 4)}, ATTRS(reduce, L(2)), false},
    {TK_OP_reduce_any, 1, {B(2, 3)}, ATTRS(reduce, L(1)), false},
    {TK_OP_reduce_all, 1, {B(2, 3)}, ATTRS(reduce, L(0)), false},
    {TK_OP_reduce_logsumexp, 1, {F(2, 3, 4)}, ATTRS(reduce, L(1)), false},
    {TK_OP_reduce_argmax, 1, {F(2, 3, 4)}, ATTRS(axis, 1), false},
    {TK_OP_reduce_argmin, 1, {F(5)}, ATTRS(axis, 0), false},
    {TK_OP_softmax_axes, 1, {F(2, 3, 4)}, ATTRS(reduce, L(2)), false},
    {TK_OP_scan_sum, 1, {F(2, 3, 4)}, ATTRS(scan, 1, true, true), false},
    {TK_OP_scan_prod, 1, {F(2, 3)}, ATTRS(scan, 0, false, false), false},
    {TK_OP_scan_max, 1, {F(2, 3)}, ATTRS(scan, 1, false, true), false},
    {TK_OP_scan_min, 1, {F(2, 3)}, ATTRS(scan, 0, true, false), false},
    {TK_OP_scan_logsumexp, 1, {F(5)}, ATTRS(scan, 0, false, true), false},
    {TK_OP_product, 2, {F(3, 4), F(4, 2)}, NULL, false},
    {TK_OP_product, 2, {F(3, 4), F(4, 1)}, NULL, false},
    {TK_OP_product, 2, {F(5, 3, 4), F(5, 4, 2)}, NULL, false},
    {TK_OP_conv_general,
     2,
     {F(2, 5, 3), F(4, 2, 3)},
     ATTRS(conv, L(2), L(1), L(0), L(1), L(1), 1, false),
     false},
    {TK_OP_conv_general,
     2,
     {F(2, 4, 5, 6), F(4, 2, 3, 3)},
     ATTRS(conv, L(1, 2), L(1, 0), L(0, 1), L(2, 1), L(1, 1), 2, true),
     false},
    {TK_OP_conv_general,
     2,
     {F(2, 3, 4), F(4, 2, 1)},
     ATTRS(conv, L(1), L(1), L(-1), L(1), L(3), 4, false),
     false},
    {TK_OP_fft_axis, 1, {C(2, 5)}, ATTRS(fft, 1, false, 1), false},
    {TK_OP_fft_axis, 1, {C(6, 3)}, ATTRS(fft, 0, true, .5), false},
    {TK_OP_rfft_axis, 1, {F(2, 6)}, ATTRS(fft, 1, false, 1), false},
    {TK_OP_rfft_axis, 1, {F(5, 2)}, ATTRS(fft, 0, false, .25), false},
    {TK_OP_irfft_axis, 1, {C(2, 4)}, ATTRS(irfft, 1, 6, 1), false},
    {TK_OP_irfft_axis, 1, {C(3, 2)}, ATTRS(irfft, 0, 5, 2), false},
    {TK_OP_reshape_to, 1, {F(2, 6)}, ATTRS(shape, L(3, 4)), false},
    {TK_OP_reshape_to, 1, {F(1, 1)}, ATTRS(shape, {0}), false},
    {TK_OP_permute, 1, {F(2, 3, 4)}, ATTRS(axes, L(2, 0, 1)), false},
    {TK_OP_expand, 1, {F(2, 1)}, ATTRS(shape, L(4, 2, 3)), false},
    {TK_OP_expand, 1, {F0}, ATTRS(shape, L(2, 3)), false},
    {TK_OP_slice_by, 1, {F(5, 6)}, ATTRS(slice, L(4, 1), L(-2, 2), L(3, 2)), false},
    {TK_OP_slice_set, 2, {F(5, 6), F(3, 2)}, ATTRS(slice_set, L(0, 1), L(2, 3), TK_SET), false},
    {TK_OP_slice_set, 2, {F(5, 6), F(3, 2)}, ATTRS(slice_set, L(4, 1), L(-2, 3), TK_ADD), false},
    {TK_OP_slice_set, 2, {F(5), F(2)}, ATTRS(slice_set, L(1), L(1), TK_MAX), false},
    {TK_OP_pad_with, 2, {F(2, 3), F0}, ATTRS(pad, L(1, 0), L(0, 2)), false},
    {TK_OP_pad_with, 2, {F0, F0}, ATTRS(pad, {0}, {0}), false},
    {TK_OP_join, 3, {F(2, 3), F(2, 1), F(2, 2)}, ATTRS(axis, 1), false},
    {TK_OP_bitcast, 1, {F(2, 3)}, ATTRS(dtype, TK_UINT8), false},
    {TK_OP_bitcast, 1, {{TK_UINT8, S(2, 8), 200}}, ATTRS(dtype, TK_UINT32), false},
    {TK_OP_bitcast, 1, {F0}, ATTRS(dtype, TK_INT32), false},
    {TK_OP_contiguous, 1, {F(2, 3)}, NULL, false},
    {TK_OP_gather, 2, {F(4, 5, 3), I(5, 2, 2)}, ATTRS(gather, L(1), L(4, 1, 3)), false},
    {TK_OP_gather, 3, {F(4, 5, 3), I(4, 2), I(3, 2)}, ATTRS(gather, L(0, 2), L(1, 5, 1)), false},
    {TK_OP_gather, 2, {F(6), {TK_INT32, SCALAR, 6}}, ATTRS(gather, L(0), L(1)), false},
    {TK_OP_gather, 2, {F(6, 2), I(3, 4)}, ATTRS(gather, L(0), L(3, 2)), false},
    {TK_OP_scatter, 3, {F(4, 5), F(2, 2, 4, 1), I(5, 2, 2)}, ATTRS(scatter, L(1), TK_ADD), false},
    {TK_OP_scatter,
     4,
     {F(4, 5, 3), F(2, 1, 5, 1), I(4, 2), I(3, 2)},
     ATTRS(scatter, L(0, 2), TK_MAX),
     false},
    {TK_OP_scatter, 3, {F(6), F(1), {TK_INT32, SCALAR, 6}}, ATTRS(scatter, L(0), TK_SET), false},
    {TK_OP_scatter, 3, {F(6, 2), F(3, 1, 2), I(6, 3)}, ATTRS(scatter, L(0), TK_PROD), false},
    {TK_OP_gather_along, 2, {F(3, 4), I(4, 3, 2)}, ATTRS(axis, 1), false},
    {TK_OP_scatter_along, 3, {F(3, 4), I(4, 3, 2), F(3, 2)}, ATTRS(scatter_axis, 1, TK_ADD), false},
    {TK_OP_scatter_along, 3, {F(3, 4), I(3, 1, 4), F(1, 4)}, ATTRS(scatter_axis, 0, TK_SET), false},
    {TK_OP_sort_axis, 1, {F(3, 4)}, ATTRS(axis, 0), false},
    {TK_OP_argsort_axis, 1, {F(3, 4)}, ATTRS(axis, 1), false},
    {TK_OP_partition_axis, 1, {F(3, 5)}, ATTRS(partition, 1, 2), false},
    {TK_OP_argpartition_axis, 1, {F(3, 5)}, ATTRS(partition, 0, 1), false},
    {TK_OP_rms_norm_fused, 1, {F(2, 3, 8)}, ATTRS(norm, 1e-5, false, false), false},
    {TK_OP_rms_norm_fused, 2, {F(3, 8), F(8)}, ATTRS(norm, 1e-5, true, false), false},
    {TK_OP_rms_norm_vjp, 3, {F(3, 8), F(8), F(3, 8)}, ATTRS(norm, 1e-5, true, false), false},
    {TK_OP_rms_norm_vjp, 2, {F(3, 8), F(3, 8)}, ATTRS(norm, 1e-5, false, false), false},
    {TK_OP_layer_norm_fused, 2, {F(3, 8), F(8)}, ATTRS(norm, 1e-3, false, true), false},
    {TK_OP_layer_norm_fused, 3, {F(8), F(8), F(8)}, ATTRS(norm, 1e-5, true, true), false},
    {TK_OP_layer_norm_vjp, 4, {F(3, 8), F(8), F(8), F(3, 8)}, ATTRS(norm, 1e-5, true, true), false},
    {TK_OP_rope_fused,
     2,
     {F(5, 8), {TK_INT32, SCALAR, 9}},
     ATTRS(rope, 6, true, 1e4, 1, false, false),
     false},
    {TK_OP_rope_fused,
     2,
     {F(2, 3, 5, 8), {TK_INT32, SCALAR, 9}},
     ATTRS(rope, 8, false, 1e4, .5, false, true),
     false},
    {TK_OP_rope_fused,
     2,
     {F(2, 3, 5, 8), I(9, 2)},
     ATTRS(rope, 8, false, 1e4, 1, false, false),
     false},
    {TK_OP_rope_fused,
     3,
     {F(2, 5, 8), I(9, 2), F(3)},
     ATTRS(rope, 6, true, 0, 1, true, false),
     false},
    {TK_OP_attention,
     3,
     {F(2, 4, 5, 8), F(2, 2, 6, 8), F(2, 2, 6, 3)},
     ATTRS(attention, .3, false, false),
     false},
    {TK_OP_attention,
     3,
     {F(1, 2, 5, 4), F(1, 2, 5, 4), F(1, 2, 5, 4)},
     ATTRS(attention, .5, true, false),
     false},
    {TK_OP_attention,
     4,
     {F(2, 2, 3, 4), F(2, 2, 5, 4), F(2, 2, 5, 4), B(2, 2, 3, 5)},
     ATTRS(attention, .5, false, true),
     false},
    {TK_OP_attention,
     4,
     {F(2, 2, 3, 4), F(2, 1, 5, 4), F(2, 1, 5, 4), F(2, 2, 3, 5)},
     ATTRS(attention, .5, false, true),
     false},
    {TK_OP_attention_vjp,
     6,
     {F(2, 2, 3, 4), F(2, 2, 5, 4), F(2, 2, 5, 6), F(2, 2, 3, 6), F(2, 2, 3), F(2, 2, 3, 6)},
     ATTRS(attention, .5, false, false),
     true},
    {TK_OP_cross_entropy_fused, 2, {F(3, 5), I(5, 3)}, NULL, false},
    {TK_OP_cross_entropy_fused, 2, {F(5), {TK_INT32, SCALAR, 5}}, NULL, false},
    {TK_OP_cross_entropy_vjp, 4, {F(3, 5), I(5, 3), F(3), F(3)}, NULL, true},
    {TK_OP_barrier, 3, {F(2, 3), F(4), I(9, 2)}, ATTRS(barrier, 1), false},
};

#define MOST_CASES 512

static op_case all[MOST_CASES];
static size_t count;

static int arity_of(const tk_op_info *info) {
    int arity = 1;
    for (const char *at = info->params; *at; at++) arity += *at == ',';
    return arity;
}

static bool accepts(tk_accept accept, tk_dtype dtype) {
    switch (accept) {
    case TK_ACCEPT_ANY:
        return true;
    case TK_ACCEPT_NUM:
        return dtype != TK_BOOL;
    case TK_ACCEPT_REAL:
        return !tk_dtype_is_complex(dtype);
    case TK_ACCEPT_INEXACT:
        return tk_dtype_is_inexact(dtype);
    case TK_ACCEPT_FLOAT:
        return tk_dtype_is_float(dtype);
    case TK_ACCEPT_INT:
        return tk_dtype_is_integer(dtype);
    case TK_ACCEPT_BITS:
        return dtype == TK_BOOL || tk_dtype_is_integer(dtype);
    default:
        return dtype == TK_BOOL;
    }
}

static void add_elementwise(tk_op op) {
    static const tk_dtype dtypes[] = {TK_FLOAT32,   TK_INT32,    TK_BOOL,
                                      TK_COMPLEX64, TK_BFLOAT16, TK_UINT8};
    const tk_op_info *info = tk_op_of(op);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes && count < MOST_CASES; i++) {
        if (!accepts(info->accept, dtypes[i])) continue;
        op_case c = {.op = op, .n_inputs = arity_of(info)};
        op_operand operand = {.dtype = dtypes[i], .shape = S(2, 3), .limit = 0};
        for (int k = 0; k < c.n_inputs; k++) c.inputs[k] = operand;
        all[count++] = c;
    }
}

static bool is_plain(tk_op op) {
    const tk_op_info *info = tk_op_of(op);
    return info->params[0] != '-' && info->record == TK_RECORD_none && op != TK_OP_where &&
           op != TK_OP_contiguous && (info->lower == TK_LOWER_EWISE || op == TK_OP_stop_gradient);
}

static void fill(void) {
    if (count) return;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) all[count++] = written[i];
    for (int op = 0; op < TK_OP_COUNT; op++)
        if (is_plain((tk_op)op)) add_elementwise((tk_op)op);
}

size_t op_case_count(void) {
    fill();
    return count;
}

const op_case *op_case_at(size_t index) {
    fill();
    return &all[index];
}

bool op_has_case(tk_op op) {
    return op != TK_OP_const && op != TK_OP_buffer && op != TK_OP_placeholder &&
           op != TK_OP_error && op != TK_OP_output && op != TK_OP_custom;
}

tk_node *new_placeholder(tk_builder *b, tk_dtype dtype, tk_shape shape) {
    tk_attrs_placeholder attrs = {.dtype = dtype,
                                  .shape = tk_axes_list(&shape),
                                  .serial = (int64_t)tk_graph_serial(b->graph)};
    return tkb_node(b, TK_OP_placeholder, 0, NULL, &attrs);
}

tk_node *build_op_case(tk_builder *b, const op_case *c, tk_node **inputs) {
    tk_node *own[OP_CASE_INPUTS];
    if (!inputs) inputs = own;
    for (int i = 0; i < c->n_inputs; i++)
        inputs[i] = new_placeholder(b, c->inputs[i].dtype, c->inputs[i].shape);
    return tkb_node(b, c->op, (size_t)c->n_inputs, inputs, c->attrs);
}

/* SplitMix64. */
uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static bool has_type(const tk_node *node, const op_operand *operand) {
    return node->dtype == operand->dtype && node->rank == operand->shape.count &&
           (node->rank == 0 ||
            !memcmp(node->shape, operand->shape.items, node->rank * sizeof(int64_t)));
}

/* A random node of the type from the pool, from a random place on; else a placeholder. */
static tk_node *find_operand(tk_builder *b, uint64_t *state, const op_operand *operand,
                             tk_node_vec *pool) {
    size_t start = pool->count ? (size_t)(next_random(state) % pool->count) : 0;
    for (size_t i = 0; i < pool->count && next_random(state) % 16; i++) {
        tk_node *node = pool->items[(start + i) % pool->count];
        if (has_type(node, operand)) return node;
    }
    tk_node *made = new_placeholder(b, operand->dtype, operand->shape);
    (void)tk_vec_push(pool, made);
    return made;
}

void grow_random_graph(tk_builder *b, uint64_t seed, size_t n_cases, tk_node_vec *pool) {
    for (size_t i = 0; i < n_cases; i++) {
        const op_case *c = op_case_at((size_t)(next_random(&seed) % op_case_count()));
        tk_node *inputs[OP_CASE_INPUTS];
        for (int k = 0; k < c->n_inputs; k++)
            inputs[k] = find_operand(b, &seed, &c->inputs[k], pool);
        tk_node *node = tkb_node(b, c->op, (size_t)c->n_inputs, inputs, c->attrs);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            (void)tk_vec_push(pool, tkb_output(b, node, (int)k));
    }
}
