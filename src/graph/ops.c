/* Builds the op table from tiki/ops.def. Nothing else lists the ops. */
#include "graph/ops.h"

#include <string.h>

#include "base/error.h"
#include "graph/batch.h"
#include "graph/infer.h"
#include "graph/vjp.h"

#define COMM TK_FACT_COMM
#define IASSOC TK_FACT_IASSOC
#define LIN TK_FACT_LIN
#define BILIN TK_FACT_BILIN
#define IDEM TK_FACT_IDEM
#define NONE TK_FACT_NONE

const tk_op_info tk_op_table[TK_OP_COUNT] = {
#define TK_OP(name, params, attrs, accept, dtype, shape, vjp, batch, facts, lower, tol, sample,    \
              doc)                                                                                 \
    [TK_OP_##name] = {#name,                                                                       \
                      TK_RECORD_##attrs,                                                           \
                      TK_ACCEPT_##accept,                                                          \
                      TK_RESULT_##dtype,                                                           \
                      tk_shape_##shape,                                                            \
                      tk_vjp_##vjp,                                                                \
                      tk_batch_##batch,                                                            \
                      facts,                                                                       \
                      TK_LOWER_##lower,                                                            \
                      TK_TOL_##tol,                                                                \
                      #sample,                                                                     \
                      doc,                                                                         \
                      params},
#include "tiki/ops.def"
#undef TK_OP
};

const char *tk_op_title(tk_op op) {
    static const char *const titles[TK_OP_COUNT] = {
        [TK_OP_gather] = "take/gather",
        [TK_OP_gather_along] = "take_along_axis",
        [TK_OP_scatter] = "scatter_nd",
        [TK_OP_scatter_along] = "put_along_axis/scatter_add_along_axis",
        [TK_OP_slice_by] = "slice",
        [TK_OP_slice_set] = "slice_update",
        [TK_OP_join] = "concatenate/stack",
        [TK_OP_expand] = "broadcast_to",
        [TK_OP_permute] = "transpose",
        [TK_OP_reshape_to] = "reshape",
        [TK_OP_pad_with] = "pad",
        [TK_OP_bitcast] = "view",
        [TK_OP_product] = "matmul",
        [TK_OP_fft_axis] = "fft",
        [TK_OP_inverse] = "inv",
        [TK_OP_solve_square] = "solve",
        [TK_OP_solve_triangle] = "solve_triangular/tri_inv",
        [TK_OP_cholesky_lower] = "cholesky",
        [TK_OP_qr_thin] = "qr",
        [TK_OP_svd_thin] = "svd",
        [TK_OP_svd_values] = "svd",
        [TK_OP_eigh_lower] = "eigh",
        [TK_OP_eigvalsh_lower] = "eigvalsh",
        [TK_OP_eig_general] = "eig",
        [TK_OP_eigvals_general] = "eigvals",
        [TK_OP_lu_packed] = "lu",
        [TK_OP_pinv_matrix] = "pinv",
        [TK_OP_det_matrix] = "det",
        [TK_OP_slogdet_matrix] = "slogdet",
        [TK_OP_rfft_axis] = "rfft",
        [TK_OP_irfft_axis] = "irfft",
        [TK_OP_gather_product] = "gather_mm",
        [TK_OP_segment_product] = "segmented_mm",
        [TK_OP_quantized_product] = "quantized_matmul/gather_qmm",
        [TK_OP_quantize_groups] = "quantize",
        [TK_OP_dequantize_groups] = "dequantize",
        [TK_OP_fp8_encode] = "to_fp8",
        [TK_OP_fp8_decode] = "from_fp8",
        [TK_OP_cross_entropy_fused] = "cross_entropy",
        [TK_OP_rope_fused] = "rope",
        [TK_OP_rms_norm_fused] = "rms_norm",
        [TK_OP_layer_norm_fused] = "layer_norm",
        [TK_OP_attention] = "scaled_dot_product_attention",
    };
    return titles[op] ? titles[op] : tk_op_name(op);
}

tk_status tk_op_find(const char *name, size_t length, tk_op *out_op) {
    for (int op = 0; op < TK_OP_COUNT; op++) {
        if (strlen(tk_op_table[op].name) == length && !memcmp(tk_op_table[op].name, name, length)) {
            *out_op = (tk_op)op;
            return TK_OK;
        }
    }
    return tk_fail(TK_NOT_FOUND, "unknown op \"%.*s\"", (int)(length < 60 ? length : 60), name);
}
