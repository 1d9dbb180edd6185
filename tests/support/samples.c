/* The generators of primitives, and the functions of samples.h. */
#include <string.h>

#include "array/context.h"
#include "support/sample_maker.h"

static tk_list list(maker *m, int slot, tk_axes axes) {
    m->s->lists[slot] = axes;
    return (tk_list){m->s->lists[slot].items, axes.count};
}

/* ---- elementwise ---- */

static int arity_of(const char *params) {
    int arity = 1;
    for (const char *at = params; *at; at++) arity += *at == ',';
    return arity;
}

static void make_elementwise(maker *m) {
    const tk_op_info *op = tk_op_of(m->s->op);
    bool bools = !strcmp(op->sample, "bools");
    for (int i = 0; i < arity_of(op->params); i++) {
        if (bools)
            input_bools(m, TK_SHAPE(2, 2), i ? "0011" : "0101");
        else
            input(m, m->index ? TK_SCALAR : TK_SHAPE(2, 3), domain_of(op->sample));
    }
}

static void make_astype(maker *m) {
    static const tk_dtype pairs[][2] = {{TK_FLOAT64, TK_FLOAT64},   {TK_FLOAT64, TK_FLOAT32},
                                        {TK_FLOAT32, TK_COMPLEX64}, {TK_COMPLEX64, TK_FLOAT32},
                                        {TK_FLOAT32, TK_INT32},     {TK_INT32, TK_COMPLEX64}};
    input_as(m, pairs[m->index][0], TK_SHAPE(2, 3), ANY);
    m->s->record.of_dtype = (tk_attrs_dtype){.dtype = pairs[m->index][1]};
}

static void make_where(maker *m) {
    input_bools(m, TK_SHAPE(2, 3), "011001");
    input(m, TK_SHAPE(2, 3), ANY);
    input(m, TK_SHAPE(2, 3), ANY);
}

/* ---- reductions and scans ---- */

static domain reduce_domain(tk_op op, int index) {
    if (op == TK_OP_reduce_max || op == TK_OP_reduce_min || op == TK_OP_scan_max ||
        op == TK_OP_scan_min)
        return DISTINCT;
    bool product = op == TK_OP_reduce_prod || op == TK_OP_scan_prod;
    return product && index % 2 ? SPARSE : ANY;
}

static void make_reduce(maker *m) {
    const tk_axes axes[] = {TK_AXES(1), TK_AXES(0, 2), TK_AXES(0, 1, 2), TK_AXES(2)};
    input(m, m->index & 1 ? TK_SHAPE(2, 3, 4) : TK_SHAPE(2, 3, 2),
          reduce_domain(m->s->op, m->index));
    m->s->record.of_reduce = (tk_attrs_reduce){.axes = list(m, 0, axes[m->index])};
}

static void make_truth(maker *m) {
    input_bools(m, TK_SHAPE(2, 3), "011111");
    m->s->record.of_reduce = (tk_attrs_reduce){.axes = list(m, 0, TK_AXES(m->index))};
}

static void make_axis(maker *m) {
    input(m, TK_SHAPE(3, 4), DISTINCT);
    m->s->record.of_axis = (tk_attrs_axis){.axis = m->index};
}

static void make_scan(maker *m) {
    input(m, m->index < 4 ? TK_SHAPE(2, 5) : TK_SHAPE(7, 1), reduce_domain(m->s->op, m->index / 2));
    m->s->record.of_scan = (tk_attrs_scan){
        .axis = m->index < 4 ? 1 : 0, .reverse = m->index & 1, .inclusive = (m->index & 2) == 0};
}

static void make_product(maker *m) {
    const tk_shape left[] = {TK_SHAPE(3, 4), TK_SHAPE(2, 3, 4), TK_SHAPE(3, 5)};
    const tk_shape right[] = {TK_SHAPE(4, 1), TK_SHAPE(2, 4, 2), TK_SHAPE(5, 2)};
    input(m, left[m->index], ANY);
    input(m, right[m->index], ANY);
}

/* A sequence; groups in two dimensions with a stride and unequal padding; spread operands and a
 * flipped kernel; one channel a group with cropping; three dimensions. */
static void make_conv(maker *m) {
    static const struct {
        tk_axes input, weight, stride, low, high, kernel_dilation, input_dilation;
        int groups, flip;
    } all[] = {
#define LISTS(...) {sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}}
        {LISTS(2, 5, 2), LISTS(3, 3, 2), LISTS(1), LISTS(1), LISTS(1), LISTS(1), LISTS(1), 1, 0},
        {LISTS(1, 4, 5, 4), LISTS(2, 2, 3, 2), LISTS(2, 3), LISTS(1, 0), LISTS(2, 1), LISTS(1, 1),
         LISTS(1, 1), 2, 0},
        {LISTS(2, 3, 2), LISTS(2, 3, 2), LISTS(2), LISTS(2), LISTS(3), LISTS(2), LISTS(3), 1, 1},
        {LISTS(1, 5, 4, 3), LISTS(3, 2, 2, 1), LISTS(1, 1), LISTS(-1, 1), LISTS(1, -1), LISTS(1, 2),
         LISTS(1, 1), 3, 0},
        {LISTS(1, 3, 2, 3, 1), LISTS(2, 2, 2, 1, 1), LISTS(1, 1, 2), LISTS(0, 1, 0), LISTS(1, 0, 1),
         LISTS(1, 1, 1), LISTS(2, 1, 1), 1, 1},
#undef LISTS
    };
    const int i = m->index;
    input(m, all[i].input, ANY);
    input(m, all[i].weight, ANY);
    m->s->record.of_conv = (tk_attrs_conv){.stride = list(m, 0, all[i].stride),
                                           .low = list(m, 1, all[i].low),
                                           .high = list(m, 2, all[i].high),
                                           .kernel_dilation = list(m, 3, all[i].kernel_dilation),
                                           .input_dilation = list(m, 4, all[i].input_dilation),
                                           .groups = all[i].groups,
                                           .flip = all[i].flip};
}

static void make_square(maker *m) { input_matrix(m, TK_SHAPE(2, 3, 3)); }

static void make_any_matrix(maker *m) {
    input_matrix(m, TK_SHAPE(2, m->index == 1 ? 4 : 3, m->index == 2 ? 4 : 3));
}

/* Without a derivative that a difference would show. */
static void make_derived_matrix(maker *m) {
    input_matrix(m, m->s->op == TK_OP_complement ? TK_SHAPE(2, 4, 3) : TK_SHAPE(2, 3, 3));
    m->s->is_derived = true;
}

static void make_system(maker *m) {
    input_matrix(m, TK_SHAPE(2, 3, 3));
    input_as(m, m->dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32, TK_SHAPE(2, 3, 2), ANY);
    if (m->s->op == TK_OP_solve_triangle)
        m->s->record.of_triangle = (tk_attrs_triangle){.upper = m->index};
}

static const int64_t fft_lengths[] = {5, 4, 1};

static void make_fft(maker *m) {
    int64_t length = fft_lengths[m->index % 3];
    input_as(m, m->s->op == TK_OP_fft_axis ? TK_COMPLEX64 : TK_FLOAT32,
             m->index < 3 ? TK_SHAPE(2, length) : TK_SHAPE(length, 2), ANY);
    m->s->record.of_fft = (tk_attrs_fft){.axis = m->index < 3,
                                         .inverse = m->s->op == TK_OP_fft_axis && m->index % 2,
                                         .scale = m->index % 2 ? 0.75 : 1};
}

static void make_irfft(maker *m) {
    int64_t length = fft_lengths[m->index % 3], kept = length / 2 + 1;
    input_as(m, TK_COMPLEX64, m->index < 3 ? TK_SHAPE(2, kept) : TK_SHAPE(kept, 2), ANY);
    m->s->record.of_irfft =
        (tk_attrs_irfft){.axis = m->index < 3, .length = length, .scale = m->index % 2 ? 0.5 : 1};
}

/* ---- shape ---- */

static void make_reshape(maker *m) {
    input(m, m->index ? TK_SHAPE(1, 1) : TK_SHAPE(2, 6), ANY);
    m->s->record.of_shape =
        (tk_attrs_shape){.shape = list(m, 0, m->index ? TK_SCALAR : TK_SHAPE(3, 4))};
}

static void make_permute(maker *m) {
    input(m, TK_SHAPE(2, 3, 4), ANY);
    m->s->record.of_axes = (tk_attrs_axes){.axes = list(m, 0, TK_AXES(2, 0, 1))};
}

static void make_expand(maker *m) {
    input(m, m->index ? TK_SCALAR : TK_SHAPE(3, 1), ANY);
    m->s->record.of_shape = (tk_attrs_shape){.shape = list(m, 0, TK_SHAPE(2, 3, 4))};
}

static void make_slice(maker *m) {
    const tk_axes starts[] = {TK_AXES(1, 0), TK_AXES(0, 3), TK_AXES(2, 1)};
    const tk_axes steps[] = {TK_AXES(1, 1), TK_AXES(2, -2), TK_AXES(-1, 0)};
    const tk_axes shapes[] = {TK_SHAPE(2, 3), TK_SHAPE(2, 2), TK_SHAPE(3, 2)};
    input(m, TK_SHAPE(3, 4), ANY);
    m->s->record.of_slice = (tk_attrs_slice){.start = list(m, 0, starts[m->index]),
                                             .step = list(m, 1, steps[m->index]),
                                             .shape = list(m, 2, shapes[m->index])};
}

static void make_slice_set(maker *m) {
    input(m, TK_SHAPE(3, 4), DISTINCT);
    input(m, TK_SHAPE(2, 2), ANY);
    m->s->record.of_slice_set = (tk_attrs_slice_set){
        .start = list(m, 0, TK_AXES(0, 3)), .step = list(m, 1, TK_AXES(2, -2)), .mode = m->index};
}

static void make_pad(maker *m) {
    bool scalar = m->index;
    input(m, scalar ? TK_SCALAR : TK_SHAPE(2, 3), ANY);
    input(m, TK_SCALAR, ANY);
    m->s->record.of_pad = (tk_attrs_pad){.low = list(m, 0, scalar ? TK_SCALAR : TK_AXES(1, 0)),
                                         .high = list(m, 1, scalar ? TK_SCALAR : TK_AXES(0, 2))};
}

static void make_join(maker *m) {
    input(m, TK_SHAPE(2, 3), ANY);
    input(m, m->index ? TK_SHAPE(2, 1) : TK_SHAPE(1, 3), ANY);
    input(m, m->index ? TK_SHAPE(2, 0) : TK_SHAPE(2, 3), ANY);
    m->s->record.of_axis = (tk_attrs_axis){.axis = m->index};
}

static void make_bitcast(maker *m) {
    static const tk_dtype pairs[][2] = {
        {TK_FLOAT32, TK_UINT8}, {TK_FLOAT32, TK_INT32}, {TK_UINT8, TK_UINT32}};
    input_as(m, pairs[m->index][0], m->index == 1 ? TK_SCALAR : TK_SHAPE(2, 8), ANY);
    m->s->record.of_dtype = (tk_attrs_dtype){.dtype = pairs[m->index][1]};
}

/* ---- indexing ---- */

/* Rows; elements at two indices; overlapping boxes; the first and last of three axes; one row. */
static void make_gather(maker *m) {
    static const int32_t rows[] = {2, 0, 2}, columns[] = {1, 3, 1};
    const tk_axes axes[] = {TK_AXES(0), TK_AXES(1, 0), TK_AXES(0), TK_AXES(0, 2), TK_AXES(0)};
    const tk_axes sizes[] = {TK_SHAPE(1, 5), TK_SHAPE(1, 1), TK_SHAPE(2, 3), TK_SHAPE(1, 5, 1),
                             TK_SHAPE(1)};
    const tk_shape shapes[] = {TK_SHAPE(4, 5), TK_SHAPE(4, 5), TK_SHAPE(4, 5), TK_SHAPE(4, 5, 4),
                               TK_SHAPE(6)};
    const tk_shape indices[] = {TK_SHAPE(3), TK_SHAPE(3, 1), TK_SHAPE(3), TK_SHAPE(2), TK_SCALAR};
    input(m, shapes[m->index], ANY);
    if (axes[m->index].count == 2) input_indices(m, indices[m->index], columns);
    input_indices(m, indices[m->index], rows);
    m->s->record.of_gather = (tk_attrs_gather){.axes = list(m, 0, axes[m->index]),
                                               .slice_sizes = list(m, 1, sizes[m->index])};
}

/* Even samples: rows, one of them twice. Odd ones: boxes that overlap. The last two: elements at
 * two indices, one row. */
static void make_scatter(maker *m) {
    static const int32_t rows[] = {2, 0, 2}, tops[] = {1, 0, 2};
    int64_t mode = m->index / 2 < TK_MODE_COUNT ? m->index / 2 : m->index & 1 ? TK_SET : TK_MAX;
    domain domain = mode == TK_PROD ? SPARSE : DISTINCT;
    bool boxes = m->index & 1, pairs = m->index == 2 * TK_MODE_COUNT,
         one = m->index == 2 * TK_MODE_COUNT + 1;
    input(m,
          pairs ? TK_SHAPE(4, 5, 3)
          : one ? TK_SHAPE(6)
                : TK_SHAPE(4, 2),
          domain == SPARSE ? SPARSE : ANY);
    input(m,
          pairs   ? TK_SHAPE(2, 1, 5, 1)
          : one   ? TK_SHAPE(1)
          : boxes ? TK_SHAPE(3, 2, 1)
                  : TK_SHAPE(3, 1, 2),
          domain);
    input_indices(m, pairs ? TK_SHAPE(2) : one ? TK_SCALAR : TK_SHAPE(3), boxes ? tops : rows);
    if (pairs) input_indices(m, TK_SHAPE(2), tops);
    m->s->record.of_scatter =
        (tk_attrs_scatter){.axes = list(m, 0, pairs ? TK_AXES(0, 2) : TK_AXES(0)), .mode = mode};
}

static const int32_t along_columns[] = {1, 3, 1, 0, 0, 0, 2, 1, 3};

static void make_gather_along(maker *m) {
    input(m, TK_SHAPE(3, 4), ANY);
    input_indices(m, TK_SHAPE(3, 3), along_columns);
    m->s->record.of_axis = (tk_attrs_axis){.axis = 1};
}

static void make_scatter_along(maker *m) {
    domain domain = m->index == TK_PROD ? SPARSE : DISTINCT;
    input(m, TK_SHAPE(3, 4), domain == SPARSE ? SPARSE : ANY);
    input_indices(m, TK_SHAPE(3, 3), along_columns);
    input(m, TK_SHAPE(3, 3), domain);
    m->s->record.of_scatter_axis = (tk_attrs_scatter_axis){.axis = 1, .mode = m->index};
}

static void make_partition(maker *m) {
    input(m, TK_SHAPE(3, 5), DISTINCT);
    m->s->record.of_partition = (tk_attrs_partition){.axis = m->index, .kth = 1 + m->index};
}

static void make_random_bits(maker *m) {
    static const uint32_t keys[] = {1, 2, 3, 4};
    input_array(m, tk_from_data(m->context, keys, TK_SHAPE(2, 2), TK_UINT32));
    m->s->record.of_bits =
        (tk_attrs_bits){.shape = list(m, 0, TK_SHAPE(3)), .width = 1 << m->index};
}

/* ---- fused ---- */

static void make_norm(maker *m) {
    bool weight = m->index & 1, bias = m->index & 2;
    input(m, TK_SHAPE(2, 2, 4), ANY);
    if (weight) input(m, TK_SHAPE(4), ANY);
    if (bias) input(m, TK_SHAPE(4), ANY);
    m->s->record.of_norm = (tk_attrs_norm){.eps = 1e-3, .has_weight = weight, .has_bias = bias};
}

static void make_rope(maker *m) {
    static const int32_t offsets[] = {3, 7};
    bool several = m->index & 2, freqs = m->index == 4;
    input(m, TK_SHAPE(2, 1, 3, 6), ANY);
    input_indices(m, several ? TK_SHAPE(2) : TK_SCALAR, offsets);
    if (freqs) input_as(m, TK_FLOAT32, TK_SHAPE(2), POSITIVE);
    m->s->record.of_rope = (tk_attrs_rope){.dims = m->index == 3 ? 6 : 4,
                                           .traditional = m->index & 1,
                                           .base = 100,
                                           .scale = 0.75,
                                           .has_freqs = freqs,
                                           .inverse = m->index == 2};
}

/* Plain; grouped heads; causal with more keys than queries; a bool mask with a row that sees
 * nothing; a float mask with causal. */
static void make_attention(maker *m) {
    bool grouped = m->index == 1;
    int64_t batch = grouped ? 2 : 1, heads = grouped ? 4 : 1, kv_heads = grouped ? 2 : 1,
            keys = m->index == 2 ? 4
                   : grouped     ? 5
                                 : 3;
    input(m, TK_SHAPE(batch, heads, 3, 2), ANY);
    input(m, TK_SHAPE(batch, kv_heads, keys, 2), ANY);
    input(m, TK_SHAPE(batch, kv_heads, keys, 3), ANY);
    if (m->index == 3) input_bools(m, TK_SHAPE(1, 1, 3, 3), "101000011");
    if (m->index == 4) input(m, TK_SHAPE(1, 1, 3, 3), ANY);
    bool has_sinks = m->index == 5;
    if (has_sinks) input_bools(m, TK_SHAPE(1, 1, 3, 3), "101000011");
    if (has_sinks) input(m, TK_SHAPE(1), ANY);
    m->s->record.of_attention = (tk_attrs_attention){.scale = 0.625,
                                                     .causal = m->index == 2 || m->index == 4,
                                                     .has_mask = m->index >= 3,
                                                     .has_sinks = has_sinks};
}

static void make_cross_entropy(maker *m) {
    static const int32_t targets[] = {4, 0, 2, 2};
    input(m, m->index ? TK_SHAPE(5) : TK_SHAPE(2, 2, 5), ANY);
    input_indices(m, m->index ? TK_SCALAR : TK_SHAPE(2, 2), targets);
}

/* ---- gradient ops: what their forward op gives is an operand ---- */

static void make_gradient(maker *m, tk_op forward, uint32_t first, uint32_t last) {
    tk_arrays results = {0};
    sample before = *m->s;
    before.op = forward;
    before.attrs = tk_op_of(forward)->record == TK_RECORD_none ? NULL : &m->s->record;
    if (sample_apply(m->context, &before, before.inputs, &results) != TK_OK) return;
    for (uint32_t i = first; i < last; i++) input_array(m, results.items[i]);
    input_array(m, tk_cos(results.items[0]));
    m->s->is_derived = true;
    tk_arrays_clear(&results);
}

static void make_rms_norm_vjp(maker *m) {
    make_norm(m);
    make_gradient(m, TK_OP_rms_norm_fused, 0, 0);
}

static void make_layer_norm_vjp(maker *m) {
    make_norm(m);
    make_gradient(m, TK_OP_layer_norm_fused, 0, 0);
}

static void make_attention_vjp(maker *m) {
    make_attention(m);
    make_gradient(m, TK_OP_attention, 0, 2);
}

static void make_cross_entropy_vjp(maker *m) {
    make_cross_entropy(m);
    make_gradient(m, TK_OP_cross_entropy_fused, 1, 2);
}

/* ---- others ---- */

static void make_iota(maker *m) {
    static const struct {
        tk_dtype dtype;
        int64_t axis, start, step;
    } all[] = {{TK_INT32, 1, 2, 3},
               {TK_FLOAT32, 0, 0x3fe0000000000000, -0x4008000000000000}, /* bits of 0.5, -1.5 */
               {TK_UINT8, 0, 7, 1}};
    const tk_shape shapes[] = {TK_SHAPE(3, 4), TK_SHAPE(3), TK_SCALAR};
    const int i = m->index;
    m->s->record.of_iota = (tk_attrs_iota){.dtype = all[i].dtype,
                                           .shape = list(m, 0, shapes[i]),
                                           .axis = all[i].axis,
                                           .start = all[i].start,
                                           .step = all[i].step};
}

static void make_barrier(maker *m) {
    static const int32_t numbers[] = {1, 0, 3, 2, 4, 4};
    input(m, TK_SHAPE(2, 3), ANY);
    input(m, TK_SHAPE(4), ANY);
    input_indices(m, TK_SHAPE(2, 3), numbers);
    m->s->record.of_barrier = (tk_attrs_barrier){.serial = 1};
}

/* ---- the table ---- */

typedef struct generator {
    tk_op op;
    int count;
    void (*make)(maker *m);
} generator;

static const generator own[] = {
    {TK_OP_random_bits, 3, make_random_bits},
    {TK_OP_astype, 6, make_astype},
    {TK_OP_where, 1, make_where},
    {TK_OP_reduce_sum, 4, make_reduce},
    {TK_OP_reduce_prod, 4, make_reduce},
    {TK_OP_reduce_max, 4, make_reduce},
    {TK_OP_reduce_min, 4, make_reduce},
    {TK_OP_reduce_logsumexp, 4, make_reduce},
    {TK_OP_softmax_axes, 4, make_reduce},
    {TK_OP_reduce_any, 2, make_truth},
    {TK_OP_reduce_all, 2, make_truth},
    {TK_OP_reduce_argmax, 2, make_axis},
    {TK_OP_reduce_argmin, 2, make_axis},
    {TK_OP_scan_sum, 8, make_scan},
    {TK_OP_scan_prod, 8, make_scan},
    {TK_OP_scan_max, 8, make_scan},
    {TK_OP_scan_min, 8, make_scan},
    {TK_OP_scan_logsumexp, 8, make_scan},
    {TK_OP_scan_steps, 8, make_scan},
    {TK_OP_product, 3, make_product},
    {TK_OP_conv_general, 5, make_conv},
    {TK_OP_inverse, 1, make_square},
    {TK_OP_solve_square, 1, make_system},
    {TK_OP_solve_triangle, 2, make_system},
    {TK_OP_cholesky_lower, 1, make_square},
    {TK_OP_qr_thin, 3, make_any_matrix},
    {TK_OP_svd_thin, 3, make_any_matrix},
    {TK_OP_svd_values, 3, make_any_matrix},
    {TK_OP_eigh_lower, 1, make_square},
    {TK_OP_eigvalsh_lower, 1, make_square},
    {TK_OP_pinv_matrix, 3, make_any_matrix},
    {TK_OP_complement, 1, make_derived_matrix},
    {TK_OP_eig_general, 1, make_derived_matrix},
    {TK_OP_eigvals_general, 1, make_derived_matrix},
    {TK_OP_lu_packed, 1, make_derived_matrix},
    {TK_OP_det_matrix, 1, make_square},
    {TK_OP_slogdet_matrix, 1, make_square},
    {TK_OP_fft_axis, 6, make_fft},
    {TK_OP_rfft_axis, 6, make_fft},
    {TK_OP_irfft_axis, 6, make_irfft},
    {TK_OP_gather_product, 2, make_gather_product},
    {TK_OP_segment_product, 1, make_segment_product},
    {TK_OP_quantized_product, 4, make_quantized_product},
    {TK_OP_fp8_encode, 1, make_fp8_encode},
    {TK_OP_fp8_decode, 1, make_fp8_decode},
    {TK_OP_quantize_groups, 4, make_quantize},
    {TK_OP_dequantize_groups, 3, make_dequantize},
    {TK_OP_reshape_to, 2, make_reshape},
    {TK_OP_permute, 1, make_permute},
    {TK_OP_expand, 2, make_expand},
    {TK_OP_slice_by, 3, make_slice},
    {TK_OP_slice_set, TK_MODE_COUNT, make_slice_set},
    {TK_OP_pad_with, 2, make_pad},
    {TK_OP_join, 2, make_join},
    {TK_OP_bitcast, 3, make_bitcast},
    {TK_OP_gather, 5, make_gather},
    {TK_OP_scatter, 2 * TK_MODE_COUNT + 2, make_scatter},
    {TK_OP_gather_along, 1, make_gather_along},
    {TK_OP_scatter_along, TK_MODE_COUNT, make_scatter_along},
    {TK_OP_sort_axis, 2, make_axis},
    {TK_OP_argsort_axis, 2, make_axis},
    {TK_OP_partition_axis, 2, make_partition},
    {TK_OP_argpartition_axis, 2, make_partition},
    {TK_OP_rms_norm_fused, 2, make_norm},
    {TK_OP_layer_norm_fused, 4, make_norm},
    {TK_OP_rope_fused, 5, make_rope},
    {TK_OP_attention, 6, make_attention},
    {TK_OP_cross_entropy_fused, 2, make_cross_entropy},
    {TK_OP_rms_norm_vjp, 2, make_rms_norm_vjp},
    {TK_OP_layer_norm_vjp, 4, make_layer_norm_vjp},
    {TK_OP_attention_vjp, 5, make_attention_vjp},
    {TK_OP_cross_entropy_vjp, 2, make_cross_entropy_vjp},
    {TK_OP_iota, 3, make_iota},
    {TK_OP_barrier, 1, make_barrier},
};

static const generator *find(tk_op op) {
    static const generator elementwise = {TK_OP_COUNT, 2, make_elementwise};
    const char *name = tk_op_of(op)->sample;
    if (!strcmp(name, "none")) return NULL;
    if (strcmp(name, "own") != 0) return &elementwise;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i].op == op) return &own[i];
    return NULL;
}

static bool accepts(tk_op op, tk_dtype dtype) {
    switch (tk_op_of(op)->accept) {
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
    case TK_ACCEPT_BOOL:
        break;
    }
    return dtype == TK_BOOL;
}

/* ---- rows: primitives, then functions ---- */

int sample_rows(void) {
    int count = TK_OP_COUNT;
    for (size_t i = 0; i < op_row_count; i++) count += !op_rows[i].is_primitive;
    return count;
}

/* NULL for a primitive. */
static const op_row *function_of(int row) {
    int left = row - TK_OP_COUNT;
    for (size_t i = 0; left >= 0 && i < op_row_count; i++)
        if (!op_rows[i].is_primitive && left-- == 0) return &op_rows[i];
    return NULL;
}

const char *sample_name(int row) {
    const op_row *function = function_of(row);
    return function ? function->name : tk_op_name((tk_op)row);
}

tk_tolerance sample_tolerance(int row) {
    const op_row *function = function_of(row);
    return function ? function->tolerance : tk_op_of((tk_op)row)->tolerance;
}

static bool takes_arrays(const op_row *row) {
    for (int i = 0; i < row->n_params; i++) {
        const char *type = row->params[i].type;
        if (!strcmp(type, "") || !strcmp(type, "array?") || !strcmp(type, "arrays")) return true;
    }
    return false;
}

bool sample_needed(int row) {
    const op_row *function = function_of(row);
    if (function) return takes_arrays(function) || strcmp(function->sample, "none") != 0;
    const tk_op_info *info = tk_op_of((tk_op)row);
    return info->params[0] != '-' || strcmp(info->sample, "none") != 0;
}

bool sample_declared(int row) {
    const op_row *function = function_of(row);
    return strcmp(function ? function->sample : tk_op_of((tk_op)row)->sample, "none") != 0;
}

int sample_count(int row) {
    const op_row *function = function_of(row);
    if (function) return function_sample_count(function);
    const generator *generator = find((tk_op)row);
    return generator ? generator->count : 0;
}

static bool make_primitive(maker *m, tk_op op) {
    const generator *generator = find(op);
    bool is_loss = op == TK_OP_cross_entropy_fused || op == TK_OP_cross_entropy_vjp;
    bool has_codes = op == TK_OP_fp8_decode || op == TK_OP_dequantize_groups;
    bool is_float = tk_dtype_is_float(m->dtype);
    if (has_codes ? !is_float : !accepts(op, m->dtype) || (is_loss && !is_float)) return false;
    generator->make(m);
    if (tk_op_of(op)->record != TK_RECORD_none) m->s->attrs = &m->s->record;
    return true;
}

/* By name, so that a new row changes no other row's values. */
static uint64_t seed_of(const char *name) {
    uint64_t seed = 0;
    for (; *name; name++) seed = seed * 31 + (unsigned char)*name;
    return seed;
}

/* Functions refuse dtypes by themselves. */
static bool is_taken(tk_context *context, const sample *s) {
    tk_arrays results = {0};
    tk_status status = sample_apply(context, s, s->inputs, &results);
    for (size_t i = 0; status == TK_OK && i < results.count; i++)
        status = tk_array_status(results.items[i]);
    tk_arrays_clear(&results);
    return status != TK_DTYPE_ERROR;
}

bool sample_make(tk_context *context, int row, int index, tk_dtype dtype, sample *out) {
    if (index >= sample_count(row)) return false;
    *out = (sample){.op = row < TK_OP_COUNT ? (tk_op)row : TK_OP_COUNT,
                    .function = function_of(row),
                    .name = sample_name(row)};
    maker m = {.context = context,
               .dtype = dtype,
               .index = index,
               .s = out,
               .state = seed_of(out->name) + (uint64_t)index};
    if (!out->function) return make_primitive(&m, out->op);
    function_sample_make(&m, out->function);
    return is_taken(context, out);
}

static tk_status apply_primitive(tk_context *context, const sample *s, const tk_array *inputs,
                                 tk_arrays *results) {
    tk_node *nodes[SAMPLE_INPUTS];
    tk_builder b;
    for (size_t i = 0; i < s->n_inputs; i++) nodes[i] = inputs[i].node;
    tk_graph_lock(&context->graph);
    tk_builder_open(&b, &context->graph, 0);
    tk_node *node = tkb_node(&b, s->op, s->n_inputs, nodes, s->attrs);
    tk_array outputs[8];
    uint32_t n_outputs = node->n_outputs;
    for (uint32_t i = 0; i < n_outputs; i++)
        outputs[i] = tk_handle_give(context, tkb_output(&b, node, (int)i));
    tk_builder_close(&b);
    tk_graph_unlock(&context->graph);
    tk_status status = TK_OK;
    for (uint32_t i = 0; i < n_outputs && status == TK_OK; i++)
        status = tk_arrays_push(results, outputs[i]);
    return status;
}

tk_status sample_apply(tk_context *context, const sample *s, const tk_array *inputs,
                       tk_arrays *results) {
    return s->function ? function_sample_apply(context, s, inputs, results)
                       : apply_primitive(context, s, inputs, results);
}
