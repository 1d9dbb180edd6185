/* Builders of quantisation: arguments become the normal form of the primitives, whose formats are
 * in quant.h. A product with both operands quantised is a composition: x goes through its codes and
 * back, with the derivative of the identity, and meets the codes of w. */
#include "graph/build_quant.h"
#include "graph/build_pairs.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t group_size, bits;
} modes[TK_QUANT_MODE_COUNT] = {[TK_QUANT_AFFINE] = {"affine", 64, 4},
                                [TK_QUANT_MXFP4] = {"mxfp4", 32, 4},
                                [TK_QUANT_MXFP8] = {"mxfp8", 32, 8},
                                [TK_QUANT_NVFP4] = {"nvfp4", 16, 4}};

static tk_status find_mode(const char *what, const char *name, tk_quant *out) {
    for (int i = 0; name && i < TK_QUANT_MODE_COUNT; i++)
        if (!strcmp(modes[i].name, name)) {
            out->mode = (tk_quant_mode)i;
            return TK_OK;
        }
    return tk_fail(TK_INVALID_ARGUMENT,
                   "%s: mode is \"%.20s\", expected affine, mxfp4, mxfp8, nvfp4", what,
                   name ? name : "");
}

tk_status tk_quant_check(const char *what, tk_quant quant) {
    bool fits;
    if (tk_quant_is_affine(quant)) {
        fits = (quant.group_size == 32 || quant.group_size == 64 || quant.group_size == 128) &&
               quant.bits >= 1 && quant.bits <= 8 && quant.bits != 7;
        if (fits) return TK_OK;
        return tk_fail(TK_INVALID_ARGUMENT,
                       "%s: group_size %lld and bits %lld, expected groups of 32, 64 or 128 and 1, "
                       "2, 3, 4, 5, 6 or 8 bits",
                       what, (long long)quant.group_size, (long long)quant.bits);
    }
    if ((unsigned)quant.mode >= TK_QUANT_MODE_COUNT)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: %d is no mode", what, (int)quant.mode);
    if (quant.group_size == modes[quant.mode].group_size && quant.bits == modes[quant.mode].bits)
        return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT,
                   "%s: group_size %lld and bits %lld, expected %lld and %lld for mode %s", what,
                   (long long)quant.group_size, (long long)quant.bits,
                   (long long)modes[quant.mode].group_size, (long long)modes[quant.mode].bits,
                   modes[quant.mode].name);
}

/* The format that the arguments name; 0 is the mode's default. */
static tk_status format_of(const char *what, int64_t group_size, int64_t bits, const char *mode,
                           tk_quant *out) {
    TK_TRY(find_mode(what, mode, out));
    out->group_size = group_size ? group_size : modes[out->mode].group_size;
    out->bits = bits ? bits : modes[out->mode].bits;
    return tk_quant_check(what, *out);
}

static tk_status need_float(const char *what, const char *role, const tk_node *a) {
    if (tk_dtype_is_float((tk_dtype)a->dtype)) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR, "%s: %s is %s, expected a float dtype", what, role,
                   tk_text_node(a));
}

/* ---- fp8 ---- */

tk_node *tkb_to_fp8(tk_builder *b, tk_node *a) {
    if (tk_node_is_error(a)) return a;
    TKB_TRY(b, need_float("to_fp8", "a", a));
    return tkb_node1(b, TK_OP_fp8_encode, tkb_strong(b, a), NULL);
}

tk_node *tkb_from_fp8(tk_builder *b, tk_node *a, tk_dtype dtype) {
    if (tk_node_is_error(a)) return a;
    if (!tk_dtype_is_float(dtype))
        return tkb_fail(b, tk_fail(TK_DTYPE_ERROR, "from_fp8: dtype is %s, expected a float dtype",
                                   tk_dtype_name(dtype)));
    tk_attrs_dtype attrs = {.dtype = dtype};
    return tkb_node1(b, TK_OP_fp8_decode, a, &attrs);
}

/* ---- to codes and back ---- */

/* The global scale as float32; only nvfp4 has one. */
static tk_node *whole_global(tk_builder *b, const char *what, tk_quant quant, tk_node *scale) {
    if (tk_node_is_error(scale)) return scale;
    if (quant.mode != TK_QUANT_NVFP4)
        return tkb_fail(b, tk_fail(TK_INVALID_ARGUMENT,
                                   "%s: a global scale is given for mode %s, expected nvfp4", what,
                                   modes[quant.mode].name));
    if (scale->size != 1)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "%s: the global scale is %s, expected a scalar",
                                   what, tk_text_node(scale)));
    return tkb_reshape(b, tkb_astype(b, scale, TK_FLOAT32), TK_SCALAR);
}

static tk_node *quantize(tk_builder *b, const char *what, tk_quant quant, tk_node *w,
                         tk_node *global) {
    if (tk_node_is_error(w)) return w;
    TKB_TRY(b, need_float(what, "w", w));
    if (w->rank < 2 || w->shape[w->rank - 1] % quant.group_size)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR,
                                   "%s: w is %s, expected two axes or more and a last axis that "
                                   "groups of %lld divide",
                                   what, tk_text_node(w), (long long)quant.group_size));
    tk_attrs_quantize attrs = {.mode = quant.mode,
                               .group_size = quant.group_size,
                               .bits = quant.bits,
                               .has_global = global != NULL};
    tk_node *inputs[] = {w, global ? whole_global(b, what, quant, global) : NULL};
    return tkb_node(b, TK_OP_quantize_groups, global ? 2 : 1, inputs, &attrs);
}

bool tkb_quantize(tk_builder *b, tk_node *w, int64_t group_size, int64_t bits, const char *mode,
                  tk_node *global_scale, tk_node_vec *out) {
    tk_quant quant;
    tk_status status = format_of("quantize", group_size, bits, mode, &quant);
    tk_node *all =
        status == TK_OK ? quantize(b, "quantize", quant, w, global_scale) : tkb_fail(b, status);
    if (tk_node_is_error(all)) return tk_vec_push(out, all) && false;
    for (uint32_t i = 0; i < all->n_outputs; i++)
        if (!tk_vec_push(out, tkb_output(b, all, (int)i))) return false;
    return true;
}

/* Scales and biases (or neither) as operands: in one float dtype for affine. */
static tk_status check_scales(const char *what, tk_quant quant, const tk_node *w,
                              const tk_node *scales, const tk_node *biases) {
    if (w->dtype != TK_UINT32)
        return tk_fail(TK_DTYPE_ERROR, "%s: w is %s, expected uint32", what, tk_text_node(w));
    if (!tk_quant_is_affine(quant)) {
        if (biases)
            return tk_fail(TK_INVALID_ARGUMENT, "%s: biases are given, mode %s has none", what,
                           modes[quant.mode].name);
        if (scales->dtype == TK_UINT8) return TK_OK;
        return tk_fail(TK_DTYPE_ERROR, "%s: scales are %s, expected uint8 for mode %s", what,
                       tk_text_node(scales), modes[quant.mode].name);
    }
    if (!biases)
        return tk_fail(TK_INVALID_ARGUMENT, "%s: no biases are given, mode affine needs them",
                       what);
    TK_TRY(need_float(what, "scales", scales));
    TK_TRY(need_float(what, "biases", biases));
    if (tk_shape_equal(scales, biases)) return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "%s: scales are %s and biases %s, expected one shape", what,
                   tk_text_node(scales), tk_text_node(biases));
}

static tk_node *first_error(tk_node *const *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (nodes[i] && tk_node_is_error(nodes[i])) return nodes[i];
    return NULL;
}

static tk_node *dequantize(tk_builder *b, const char *what, tk_quant quant, tk_node *w,
                           tk_node *scales, tk_node *biases, tk_node *global, tk_dtype dtype) {
    tk_node *inputs[4] = {w, scales, biases}, *error = first_error(inputs, 3);
    size_t count = 2;
    if (error) return error;
    TKB_TRY(b, check_scales(what, quant, w, scales, biases));
    if (biases) tkb_promote(b, 2, inputs + 1), count = 3;
    if (global) inputs[count++] = whole_global(b, what, quant, global);
    bool own = (unsigned)dtype >= TK_DTYPE_COUNT;
    if (own) dtype = biases ? (tk_dtype)inputs[1]->dtype : global ? TK_FLOAT32 : TK_BFLOAT16;
    if (!tk_dtype_is_float(dtype))
        return tkb_fail(b, tk_fail(TK_DTYPE_ERROR, "%s: dtype is %s, expected a float dtype", what,
                                   tk_dtype_name(dtype)));
    tk_attrs_dequantize attrs = {.dtype = dtype,
                                 .mode = quant.mode,
                                 .group_size = quant.group_size,
                                 .bits = quant.bits,
                                 .has_global = global != NULL};
    return tkb_node(b, TK_OP_dequantize_groups, count, inputs, &attrs);
}

tk_node *tkb_dequantize(tk_builder *b, tk_node *w, tk_node *scales, tk_node *biases,
                        int64_t group_size, int64_t bits, const char *mode, tk_node *global_scale,
                        tk_dtype dtype) {
    tk_quant quant;
    TKB_TRY(b, format_of("dequantize", group_size, bits, mode, &quant));
    return dequantize(b, "dequantize", quant, w, scales, biases, global_scale, dtype);
}

/* ---- products ---- */

/* x, w, scales and perhaps biases, checked and in one float dtype; returns how many. */
static tk_status product_operands(tk_builder *b, const char *what, tk_quant quant, tk_node **inputs,
                                  size_t *out_count) {
    tk_node *x = inputs[0], *w = inputs[1], *scales = inputs[2], *biases = inputs[3];
    TK_TRY(check_scales(what, quant, w, scales, biases));
    if (tk_dtype_is_complex((tk_dtype)x->dtype) ||
        (!biases && !tk_dtype_is_float((tk_dtype)x->dtype)))
        return tk_fail(TK_DTYPE_ERROR, "%s: x is %s, expected a float dtype", what,
                       tk_text_node(x));
    if (x->rank < 1 || w->rank < 2)
        return tk_fail(TK_SHAPE_ERROR, "%s: x is %s and w is %s, expected one axis and two or more",
                       what, tk_text_node(x), tk_text_node(w));
    *out_count = biases ? 4 : 3;
    if (!biases) return TK_OK;
    tk_node *floats[] = {x, scales, biases};
    tkb_promote(b, 3, floats);
    inputs[0] = floats[0], inputs[2] = floats[1], inputs[3] = floats[2];
    return TK_OK;
}

static tk_attrs_quant_product product_attrs(tk_quant quant, bool transpose, bool gathered) {
    return (tk_attrs_quant_product){.mode = quant.mode,
                                    .group_size = quant.group_size,
                                    .bits = quant.bits,
                                    .transpose = transpose,
                                    .gathered = gathered};
}

/* The leading axes of x and of what describes w as one shape. */
static tk_status broadcast_leads(tk_builder *b, const char *what, tk_node **inputs, size_t count) {
    tk_shape lead = {.count = 0};
    for (size_t i = 0; i < count; i++) TK_TRY(tk_leads_join(what, inputs[i], &lead));
    for (size_t i = 0; i < count; i++) inputs[i] = tkb_with_leads(b, inputs[i], lead);
    return TK_OK;
}

static tk_node *rows_by_codes(tk_builder *b, tk_node **inputs, size_t count,
                              const tk_attrs_quant_product *attrs) {
    tk_node *x = inputs[0];
    tk_shape shape = tk_node_shape(x);
    int64_t rows;
    TKB_TRY(b, tk_length_product("quantized_matmul", x->rank - 1, x->shape, &rows));
    inputs[0] = tkb_reshape(b, x, TK_SHAPE(rows, x->shape[x->rank - 1]));
    tk_node *product = tkb_node(b, TK_OP_quantized_product, count, inputs, attrs);
    if (tk_node_is_error(product)) return product;
    shape.items[shape.count - 1] = product->shape[1];
    return tkb_reshape(b, product, shape);
}

static tk_node *product(tk_builder *b, const char *what, tk_quant quant, tk_node **inputs,
                        bool transpose) {
    size_t count;
    TKB_TRY(b, product_operands(b, what, quant, inputs, &count));
    tk_attrs_quant_product attrs = product_attrs(quant, transpose, false);
    if (inputs[1]->rank == 2) return rows_by_codes(b, inputs, count, &attrs);
    bool is_row = inputs[0]->rank == 1;
    if (is_row) inputs[0] = tkb_expand_dims(b, inputs[0], TK_AXES(0));
    TKB_TRY(b, broadcast_leads(b, what, inputs, count));
    tk_node *result = tkb_node(b, TK_OP_quantized_product, count, inputs, &attrs);
    if (!is_row || tk_node_is_error(result)) return result;
    return tkb_squeeze(b, result, TK_AXES(-2));
}

tk_node *tkb_quantized_matmul(tk_builder *b, tk_node *x, tk_node *w, tk_node *scales,
                              tk_node *biases, bool transpose, int64_t group_size, int64_t bits,
                              const char *mode) {
    tk_quant quant;
    tk_node *inputs[] = {x, w, scales, biases}, *error = first_error(inputs, 4);
    if (error) return error;
    TKB_TRY(b, format_of("quantized_matmul", group_size, bits, mode, &quant));
    return product(b, "quantized_matmul", quant, inputs, transpose);
}

static tk_node *gathered_product(tk_builder *b, const char *what, tk_quant quant, tk_node **inputs,
                                 tk_node *lhs, tk_node *rhs, bool transpose) {
    size_t count;
    TKB_TRY(b, product_operands(b, what, quant, inputs, &count));
    if (inputs[0]->rank < 2)
        return tkb_fail(b, tk_fail(TK_SHAPE_ERROR, "%s: x is %s, expected two axes or more", what,
                                   tk_text_node(inputs[0])));
    tk_node *pair[] = {lhs, rhs};
    TKB_TRY(b, tkb_pair_indices(b, what, inputs[0], inputs[1], pair));
    for (size_t i = 0; i < count; i++) inputs[i] = tkb_flat_matrices(b, what, inputs[i]);
    inputs[count] = pair[0];
    inputs[count + 1] = pair[1];
    tk_attrs_quant_product attrs = product_attrs(quant, transpose, true);
    return tkb_node(b, TK_OP_quantized_product, count + 2, inputs, &attrs);
}

/* What scales in units of the global scale leave to be multiplied. */
static tk_node *times_global(tk_builder *b, const char *what, tk_quant quant, tk_node *a,
                             tk_node *global) {
    if (!global || tk_node_is_error(a)) return a;
    tk_node *unit = tkb_const(b, TK_FLOAT32, 1.0 / (double)TK_QUANT_GLOBAL_UNIT);
    tk_node *factor = tkb_multiply(b, whole_global(b, what, quant, global), unit);
    return tkb_multiply(b, a, tkb_astype(b, factor, (tk_dtype)a->dtype));
}

tk_node *tkb_gather_qmm(tk_builder *b, tk_node *x, tk_node *w, tk_node *scales, tk_node *biases,
                        tk_node *lhs_indices, tk_node *rhs_indices, bool transpose,
                        int64_t group_size, int64_t bits, const char *mode, tk_node *global_scale) {
    tk_quant quant;
    tk_node *inputs[6] = {x, w, scales, biases}, *error = first_error(inputs, 4);
    if (error) return error;
    TKB_TRY(b, format_of("gather_qmm", group_size, bits, mode, &quant));
    tk_node *result =
        gathered_product(b, "gather_qmm", quant, inputs, lhs_indices, rhs_indices, transpose);
    return times_global(b, "gather_qmm", quant, result, global_scale);
}

/* ---- both quantised ---- */

/* Through the codes and back; for derivatives, x itself. */
static tk_node *rounded(tk_builder *b, const char *what, tk_quant quant, tk_node *x,
                        tk_node *global) {
    tk_node *all = quantize(b, what, quant, x, global);
    if (tk_node_is_error(all)) return all;
    tk_node *biases = all->n_outputs == 3 ? tkb_output(b, all, 2) : NULL;
    tk_node *value = dequantize(b, what, quant, tkb_output(b, all, 0), tkb_output(b, all, 1),
                                biases, global, (tk_dtype)x->dtype);
    return tkb_node2(b, TK_OP_straight_through, tkb_stop_gradient(b, value), x, NULL);
}

static tk_status check_both(const char *what, tk_quant quant, const tk_node *x,
                            const tk_node *global_x, const tk_node *global_w) {
    TK_TRY(need_float(what, "x", x));
    if (tk_quant_is_affine(quant))
        return tk_fail(TK_INVALID_ARGUMENT, "%s: mode is affine, expected mxfp4, mxfp8 or nvfp4",
                       what);
    if (!global_x == !global_w) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT,
                   "%s: one of global_scale_x and global_scale_w is given, expected both or none",
                   what);
}

/* The arguments of both functions. */
typedef struct both {
    const char *what;
    tk_quant quant;
    tk_node *x, *w, *scales, *global_x, *global_w;
} both;

static tk_node *prepare_both(tk_builder *b, both *q) {
    tk_node *given[] = {q->x, q->w, q->scales, q->global_x, q->global_w};
    tk_node *error = first_error(given, 5);
    if (error) return error;
    TKB_TRY(b, check_both(q->what, q->quant, q->x, q->global_x, q->global_w));
    bool is_row = q->x->rank == 1;
    if (is_row) q->x = tkb_expand_dims(b, q->x, TK_AXES(0));
    q->x = rounded(b, q->what, q->quant, q->x, q->global_x);
    if (is_row) q->x = tkb_squeeze(b, q->x, TK_AXES(0));
    if (!q->scales) q->w = rounded(b, q->what, q->quant, q->w, q->global_w);
    given[0] = q->x, given[1] = q->w;
    return first_error(given, 2);
}

tk_node *tkb_qqmm(tk_builder *b, tk_node *x, tk_node *w, tk_node *scales, int64_t group_size,
                  int64_t bits, const char *mode, tk_node *global_scale_x,
                  tk_node *global_scale_w) {
    both q = {"qqmm", {0}, x, w, scales, global_scale_x, global_scale_w};
    TKB_TRY(b, format_of(q.what, group_size, bits, mode, &q.quant));
    tk_node *error = prepare_both(b, &q);
    if (error) return error;
    if (!scales) return tkb_matmul(b, q.x, tkb_swapaxes(b, q.w, -1, -2));
    tk_node *inputs[] = {q.x, q.w, scales, NULL};
    return times_global(b, q.what, q.quant, product(b, q.what, q.quant, inputs, true),
                        global_scale_w);
}

tk_node *tkb_gather_qqmm(tk_builder *b, tk_node *x, tk_node *w, tk_node *scales,
                         tk_node *lhs_indices, tk_node *rhs_indices, int64_t group_size,
                         int64_t bits, const char *mode, tk_node *global_scale_x,
                         tk_node *global_scale_w) {
    both q = {"gather_qqmm", {0}, x, w, scales, global_scale_x, global_scale_w};
    TKB_TRY(b, format_of(q.what, group_size, bits, mode, &q.quant));
    tk_node *error = prepare_both(b, &q);
    if (error) return error;
    if (!scales)
        return tkb_gather_mm(b, q.x, tkb_swapaxes(b, q.w, -1, -2), lhs_indices, rhs_indices);
    tk_node *inputs[6] = {q.x, q.w, scales, NULL};
    tk_node *result = gathered_product(b, q.what, q.quant, inputs, lhs_indices, rhs_indices, true);
    return times_global(b, q.what, q.quant, result, global_scale_w);
}
