/* Inference of quantisation, and of products of picked pairs and of segments. */
#include <string.h>

#include "base/error.h"
#include "graph/build_quant.h"
#include "graph/infer.h"
#include "graph/text.h"

static void set_output(tk_infer *infer, int index, tk_dtype dtype, const tk_node *like,
                       int64_t last) {
    int64_t *shape = infer->several_shapes[index];
    memcpy(shape, like->shape, (size_t)like->rank * sizeof *shape);
    shape[like->rank - 1] = last;
    infer->several[index] = (tk_type){dtype, like->rank, shape};
}

static tk_status need_fp8(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 1, 1));
    tk_infer_like(infer, infer->inputs[0]);
    return TK_OK;
}

tk_status tk_shape_fp8_encode(tk_infer *infer) {
    infer->dtype = TK_UINT8;
    return need_fp8(infer);
}

tk_status tk_shape_fp8_decode(tk_infer *infer) {
    const tk_attrs_dtype *attrs = infer->attrs;
    TK_TRY(need_fp8(infer));
    infer->dtype = (tk_dtype)attrs->dtype;
    if (infer->inputs[0]->dtype == TK_UINT8 && tk_dtype_is_float(infer->dtype)) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR, "from_fp8: %s to %s, expected uint8 to a float dtype",
                   tk_text_node(infer->inputs[0]), tk_dtype_name(infer->dtype));
}

static tk_status need_global(const char *what, const tk_node *global, tk_quant quant) {
    if (global->dtype == TK_FLOAT32 && global->rank == 0 && quant.mode == TK_QUANT_NVFP4)
        return TK_OK;
    return tk_fail(TK_SHAPE_ERROR, "%s: the global scale is %s, expected f32() and mode nvfp4",
                   what, tk_text_node(global));
}

/* Inputs: w, perhaps a global scale. Outputs: codes, scales, and for affine biases. */
tk_status tk_shape_quantize_groups(tk_infer *infer) {
    const tk_attrs_quantize *attrs = infer->attrs;
    tk_quant quant = TK_QUANT_OF(attrs);
    size_t count = 1 + (attrs->has_global != 0);
    TK_TRY(tk_infer_need(infer, count, count));
    TK_TRY(tk_quant_check("quantize", quant));
    const tk_node *w = infer->inputs[0];
    if (w->rank < 1 || w->shape[w->rank - 1] % quant.group_size)
        return tk_fail(TK_SHAPE_ERROR, "quantize: w is %s, expected a last axis in groups of %lld",
                       tk_text_node(w), (long long)quant.group_size);
    if (attrs->has_global) TK_TRY(need_global("quantize", infer->inputs[1], quant));
    int64_t columns = w->shape[w->rank - 1], groups = columns / quant.group_size;
    bool affine = tk_quant_is_affine(quant);
    tk_dtype scale = affine ? (tk_dtype)w->dtype : TK_UINT8;
    set_output(infer, 0, TK_UINT32, w, tk_quant_words(quant, columns));
    set_output(infer, 1, scale, w, groups);
    if (affine) set_output(infer, 2, scale, w, groups);
    infer->n_outputs = affine ? 3 : 2;
    infer->dtype = TK_UINT32;
    return tk_infer_list(infer, (tk_list){infer->several[0].shape, w->rank});
}

/* Operands w, scales and perhaps biases from `first` on; *out_columns is the length of a row. */
static tk_status check_codes(const char *what, const tk_infer *infer, size_t first, tk_quant quant,
                             int64_t *out_columns) {
    const tk_node *w = infer->inputs[first], *scales = infer->inputs[first + 1];
    TK_TRY(tk_quant_check(what, quant));
    bool affine = tk_quant_is_affine(quant), fits = w->dtype == TK_UINT32 && w->rank >= 1;
    fits = fits && scales->rank == w->rank;
    for (int i = 0; fits && i < w->rank - 1; i++) fits = w->shape[i] == scales->shape[i];
    if (!fits)
        return tk_fail(TK_SHAPE_ERROR,
                       "%s: w is %s and scales %s, expected uint32 and one leading shape", what,
                       tk_text_node(w), tk_text_node(scales));
    int64_t groups = scales->shape[w->rank - 1];
    if (w->shape[w->rank - 1] != groups * tk_quant_words(quant, quant.group_size))
        return tk_fail(TK_SHAPE_ERROR,
                       "%s: w is %s and scales %s, expected %lld words a scale for group_size %lld "
                       "and bits %lld",
                       what, tk_text_node(w), tk_text_node(scales),
                       (long long)tk_quant_words(quant, quant.group_size),
                       (long long)quant.group_size, (long long)quant.bits);
    *out_columns = tk_quant_columns(quant, groups);
    if (!affine && scales->dtype == TK_UINT8) return TK_OK;
    if (affine && tk_dtype_is_float((tk_dtype)scales->dtype) &&
        infer->inputs[first + 2]->dtype == scales->dtype &&
        tk_shape_equal(scales, infer->inputs[first + 2]))
        return TK_OK;
    return tk_fail(TK_DTYPE_ERROR, "%s: scales are %s, expected %s", what, tk_text_node(scales),
                   affine ? "a float dtype, and biases like them" : "uint8");
}

/* Inputs: w, scales, perhaps biases, perhaps a global scale. */
tk_status tk_shape_dequantize_groups(tk_infer *infer) {
    const tk_attrs_dequantize *attrs = infer->attrs;
    tk_quant quant = TK_QUANT_OF(attrs);
    size_t count = (tk_quant_is_affine(quant) ? 3 : 2) + (attrs->has_global != 0);
    TK_TRY(tk_infer_need(infer, count, count));
    int64_t columns;
    TK_TRY(check_codes("dequantize", infer, 0, quant, &columns));
    if (attrs->has_global) TK_TRY(need_global("dequantize", infer->inputs[count - 1], quant));
    infer->dtype = (tk_dtype)attrs->dtype;
    if (!tk_dtype_is_float(infer->dtype))
        return tk_fail(TK_DTYPE_ERROR, "dequantize: dtype is %d, expected a float dtype",
                       (int)infer->dtype);
    tk_infer_like(infer, infer->inputs[0]);
    infer->shape[infer->rank - 1] = columns;
    return TK_OK;
}

/* ---- products ---- */

/* Operands `first` and the next are integer arrays of one shape; the result begins with it. */
static tk_status take_pairs(tk_infer *infer, const char *what, size_t first) {
    const tk_node *lhs = infer->inputs[first], *rhs = infer->inputs[first + 1];
    if (!tk_dtype_is_integer((tk_dtype)lhs->dtype) || !tk_dtype_is_integer((tk_dtype)rhs->dtype) ||
        !tk_shape_equal(lhs, rhs))
        return tk_fail(TK_SHAPE_ERROR, "%s: indices are %s and %s, expected integers of one shape",
                       what, tk_text_node(lhs), tk_text_node(rhs));
    if (lhs->rank + 2 > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR, "%s: indices %s give more than %d axes", what,
                       tk_text_node(lhs), TK_MAX_RANK);
    tk_infer_like(infer, lhs);
    return TK_OK;
}

static void add_matrix(tk_infer *infer, int64_t rows, int64_t columns) {
    infer->shape[infer->rank++] = rows;
    infer->shape[infer->rank++] = columns;
}

tk_status tk_shape_gather_product(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 4, 4));
    const tk_node *a = infer->inputs[0], *b = infer->inputs[1];
    if (a->rank != 3 || b->rank != 3 || a->dtype != b->dtype || a->shape[2] != b->shape[1])
        return tk_fail(TK_SHAPE_ERROR,
                       "gather_mm: operands are %s and %s, expected [..., M, K] and [..., K, N] of "
                       "one dtype",
                       tk_text_node(a), tk_text_node(b));
    TK_TRY(take_pairs(infer, "gather_mm", 2));
    add_matrix(infer, a->shape[1], b->shape[2]);
    return TK_OK;
}

tk_status tk_shape_segment_product(tk_infer *infer) {
    TK_TRY(tk_infer_need(infer, 3, 3));
    const tk_node *a = infer->inputs[0], *b = infer->inputs[1], *bounds = infer->inputs[2];
    if (a->rank != 2 || b->rank != 2 || a->dtype != b->dtype || a->shape[1] != b->shape[0])
        return tk_fail(TK_SHAPE_ERROR,
                       "segmented_mm: operands are %s and %s, expected [M, K] and [K, N] of one "
                       "dtype",
                       tk_text_node(a), tk_text_node(b));
    if (!tk_dtype_is_integer((tk_dtype)bounds->dtype) || bounds->rank < 1 ||
        bounds->shape[bounds->rank - 1] != 2 || bounds->rank + 1 > TK_MAX_RANK)
        return tk_fail(TK_SHAPE_ERROR,
                       "segmented_mm: segments are %s, expected integers of shape [..., 2]",
                       tk_text_node(bounds));
    tk_infer_like(infer, bounds);
    infer->rank--;
    add_matrix(infer, a->shape[0], b->shape[1]);
    return TK_OK;
}

static tk_status fail_product(const tk_infer *infer, int64_t columns) {
    return tk_fail(TK_SHAPE_ERROR, "quantized_matmul: x is %s and w %s, which has rows of %lld",
                   tk_text_node(infer->inputs[0]), tk_text_node(infer->inputs[1]),
                   (long long)columns);
}

/* Inputs: x, w, scales, perhaps biases, perhaps lhs and rhs. */
tk_status tk_shape_quantized_product(tk_infer *infer) {
    const tk_attrs_quant_product *attrs = infer->attrs;
    tk_quant quant = TK_QUANT_OF(attrs);
    size_t parts = tk_quant_is_affine(quant) ? 4 : 3, count = parts + (attrs->gathered ? 2 : 0);
    TK_TRY(tk_infer_need(infer, count, count));
    int64_t columns;
    TK_TRY(check_codes("quantized_matmul", infer, 1, quant, &columns));
    const tk_node *x = infer->inputs[0], *w = infer->inputs[1];
    int rank = x->rank;
    bool fits = rank >= 2 && w->rank == rank && (!attrs->gathered || rank == 3);
    for (int i = 0; fits && !attrs->gathered && i < rank - 2; i++)
        fits = x->shape[i] == w->shape[i];
    if (!fits) return fail_product(infer, columns);
    int64_t rows = w->shape[rank - 2], inner = attrs->transpose ? columns : rows;
    if (x->shape[rank - 1] != inner) return fail_product(infer, columns);
    if (parts == 4 && infer->inputs[2]->dtype != x->dtype)
        return tk_fail(TK_DTYPE_ERROR,
                       "quantized_matmul: x is %s and scales %s, expected one dtype",
                       tk_text_node(x), tk_text_node(infer->inputs[2]));
    infer->rank = rank - 2;
    for (int i = 0; i < infer->rank; i++) infer->shape[i] = x->shape[i];
    if (attrs->gathered) TK_TRY(take_pairs(infer, "gather_qmm", parts));
    add_matrix(infer, x->shape[rank - 2], attrs->transpose ? rows : columns);
    return TK_OK;
}
