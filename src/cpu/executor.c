/* The CPU's table of bodies, which the evaluator runs.
 *
 * Elementwise rows are filled from body_ewise.def itself: an op that has a row there has a body. */
#include "array/executor.h"

#include "cpu/blas.h"
#include "cpu/body.h"
#include "cpu/vec.h"

static bool in_place(tk_op op, int index) {
    if (tk_op_of(op)->lower == TK_LOWER_EWISE) return true;
    switch (op) {
    case TK_OP_slice_set:
    case TK_OP_scatter:
    case TK_OP_scatter_along:
    case TK_OP_softmax_axes:
        return index == 0;
    default:
        return false;
    }
}

/* An op of floats has a FLOAT cell; ops of bits and truth values, which have none, follow by name.
 */
#define EWISE(op) [TK_OP_##op] = tk_body_ewise

static const char *variant(void) { return tk_vec_variant_name(tk_vec_variant_in_use()); }

const tk_executor tk_cpu_executor = {
    .name = "cpu",
    .variant = variant,
    .blas = tk_blas_name,
    .in_place = in_place,
    .bodies =
        {
#define FLOAT(op, ...) EWISE(op),
#include "cpu/body_ewise.def"
#undef FLOAT
#undef INTEGER
#undef COMPLEX
#undef BOOLEAN
            EWISE(logical_not),
            EWISE(logical_and),
            EWISE(logical_or),
            EWISE(bitwise_invert),
            EWISE(bitwise_and),
            EWISE(bitwise_or),
            EWISE(bitwise_xor),
            EWISE(left_shift),
            EWISE(right_shift),
            [TK_OP_where] = tk_body_where,
            [TK_OP_const] = tk_body_const,
            [TK_OP_iota] = tk_body_iota,
            [TK_OP_astype] = tk_body_astype,
            [TK_OP_reshape_to] = tk_body_reshape,
            [TK_OP_contiguous] = tk_body_reshape,
            [TK_OP_bitcast] = tk_body_bitcast,
            [TK_OP_reduce_sum] = tk_body_reduce,
            [TK_OP_reduce_prod] = tk_body_reduce,
            [TK_OP_reduce_max] = tk_body_reduce,
            [TK_OP_reduce_min] = tk_body_reduce,
            [TK_OP_reduce_any] = tk_body_reduce,
            [TK_OP_reduce_all] = tk_body_reduce,
            [TK_OP_reduce_logsumexp] = tk_body_logsumexp,
            [TK_OP_reduce_argmax] = tk_body_arg_reduce,
            [TK_OP_reduce_argmin] = tk_body_arg_reduce,
            [TK_OP_softmax_axes] = tk_body_softmax,
            [TK_OP_scan_sum] = tk_body_scan,
            [TK_OP_scan_prod] = tk_body_scan,
            [TK_OP_scan_max] = tk_body_scan,
            [TK_OP_scan_min] = tk_body_scan,
            [TK_OP_scan_logsumexp] = tk_body_scan,
            [TK_OP_scan_steps] = tk_body_scan,
            [TK_OP_product] = tk_body_product,
            [TK_OP_conv_general] = tk_body_conv,
            [TK_OP_inverse] = tk_body_solve,
            [TK_OP_solve_square] = tk_body_solve,
            [TK_OP_solve_triangle] = tk_body_solve,
            [TK_OP_cholesky_lower] = tk_body_cholesky,
            [TK_OP_qr_thin] = tk_body_qr,
            [TK_OP_complement] = tk_body_qr,
            [TK_OP_lu_packed] = tk_body_lu,
            [TK_OP_det_matrix] = tk_body_lu,
            [TK_OP_slogdet_matrix] = tk_body_lu,
            [TK_OP_svd_thin] = tk_body_svd,
            [TK_OP_svd_values] = tk_body_svd,
            [TK_OP_pinv_matrix] = tk_body_svd,
            [TK_OP_eigh_lower] = tk_body_eigh,
            [TK_OP_eigvalsh_lower] = tk_body_eigh,
            [TK_OP_eig_general] = tk_body_eig,
            [TK_OP_eigvals_general] = tk_body_eig,
            [TK_OP_fft_axis] = tk_body_fft,
            [TK_OP_rfft_axis] = tk_body_fft,
            [TK_OP_irfft_axis] = tk_body_fft,
            [TK_OP_gather_product] = tk_body_gather_product,
            [TK_OP_segment_product] = tk_body_segment_product,
            [TK_OP_quantized_product] = tk_body_quantized_product,
            [TK_OP_fp8_encode] = tk_body_fp8_encode,
            [TK_OP_fp8_decode] = tk_body_fp8_decode,
            [TK_OP_quantize_groups] = tk_body_quantize,
            [TK_OP_dequantize_groups] = tk_body_dequantize,
            [TK_OP_join] = tk_body_join,
            [TK_OP_pad_with] = tk_body_pad,
            [TK_OP_slice_set] = tk_body_slice_set,
            [TK_OP_gather] = tk_body_gather,
            [TK_OP_scatter] = tk_body_scatter,
            [TK_OP_gather_along] = tk_body_gather_along,
            [TK_OP_scatter_along] = tk_body_scatter_along,
            [TK_OP_random_bits] = tk_body_random_bits,
            [TK_OP_sort_axis] = tk_body_sort,
            [TK_OP_argsort_axis] = tk_body_sort,
            [TK_OP_partition_axis] = tk_body_sort,
            [TK_OP_argpartition_axis] = tk_body_sort,
            [TK_OP_rms_norm_fused] = tk_body_norm,
            [TK_OP_layer_norm_fused] = tk_body_norm,
            [TK_OP_rms_norm_vjp] = tk_body_norm_vjp,
            [TK_OP_layer_norm_vjp] = tk_body_norm_vjp,
            [TK_OP_rope_fused] = tk_body_rope,
            [TK_OP_attention] = tk_body_attention,
            [TK_OP_attention_vjp] = tk_body_attention_vjp,
            [TK_OP_cross_entropy_fused] = tk_body_cross_entropy,
            [TK_OP_cross_entropy_vjp] = tk_body_cross_entropy_vjp,
        },
};
