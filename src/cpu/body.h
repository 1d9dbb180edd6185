/* The bodies of the CPU: one function an op or family of ops, all of type tk_body
 * (array/executor.h).
 *
 * Each takes operands with any strides (0 and negative included), any rank, empty arrays, and every
 * dtype that its row of tiki/ops.def accepts, and writes row-major outputs. Arguments are in the
 * normal form that the shape rules check; bodies assert only. The edge contract is design.md 2.2.
 *
 * A body uses fast kernels (vec.h, gemm.h, norm.h, attention.h) where they take the case, else
 * portable code; tk_cpu_use_reference (body_ewise.h) leaves the portable code only. */
#ifndef CPU_BODY_H
#define CPU_BODY_H

#include "array/executor.h"

/* Leaves and copies. */
tk_status tk_body_const(const tk_body_call *call);
tk_status tk_body_iota(const tk_body_call *call);
tk_status tk_body_random_bits(const tk_body_call *call);
tk_status tk_body_astype(const tk_body_call *call);
tk_status tk_body_reshape(const tk_body_call *call); /* reshape_to, contiguous */
tk_status tk_body_bitcast(const tk_body_call *call);

/* Elementwise ops: those of body_ewise.def, and where. */
tk_status tk_body_ewise(const tk_body_call *call);
tk_status tk_body_where(const tk_body_call *call);

/* Reductions and scans. */
tk_status tk_body_reduce(const tk_body_call *call); /* sum, prod, max, min, any, all */
tk_status tk_body_arg_reduce(const tk_body_call *call);
tk_status tk_body_logsumexp(const tk_body_call *call);
tk_status tk_body_softmax(const tk_body_call *call);
tk_status tk_body_scan(const tk_body_call *call);

tk_status tk_body_product(const tk_body_call *call);
tk_status tk_body_conv(const tk_body_call *call);

/* Linear algebra. */
tk_status tk_body_solve(const tk_body_call *call); /* inverse, solve_square, solve_triangle */
tk_status tk_body_cholesky(const tk_body_call *call);
tk_status tk_body_qr(const tk_body_call *call);  /* qr_thin, complement */
tk_status tk_body_lu(const tk_body_call *call);  /* lu_packed, det, slogdet */
tk_status tk_body_svd(const tk_body_call *call); /* svd_thin, svd_values, pinv */
tk_status tk_body_eigh(const tk_body_call *call);
tk_status tk_body_eig(const tk_body_call *call);

tk_status tk_body_fft(const tk_body_call *call); /* fft, rfft, irfft of one axis */
tk_status tk_body_gather_product(const tk_body_call *call);
tk_status tk_body_segment_product(const tk_body_call *call);
tk_status tk_body_quantized_product(const tk_body_call *call);

/* Quantisation. */
tk_status tk_body_fp8_encode(const tk_body_call *call);
tk_status tk_body_fp8_decode(const tk_body_call *call);
tk_status tk_body_quantize(const tk_body_call *call);
tk_status tk_body_dequantize(const tk_body_call *call);

/* Boxes and indices. */
tk_status tk_body_join(const tk_body_call *call);
tk_status tk_body_pad(const tk_body_call *call);
tk_status tk_body_slice_set(const tk_body_call *call);
tk_status tk_body_gather(const tk_body_call *call);
tk_status tk_body_scatter(const tk_body_call *call);
tk_status tk_body_gather_along(const tk_body_call *call);
tk_status tk_body_scatter_along(const tk_body_call *call);
tk_status tk_body_sort(const tk_body_call *call); /* sort, argsort, partition, argpartition */

/* Fused layers. */
tk_status tk_body_norm(const tk_body_call *call);
tk_status tk_body_norm_vjp(const tk_body_call *call);
tk_status tk_body_rope(const tk_body_call *call);
tk_status tk_body_attention(const tk_body_call *call);
tk_status tk_body_attention_vjp(const tk_body_call *call);
tk_status tk_body_cross_entropy(const tk_body_call *call);
tk_status tk_body_cross_entropy_vjp(const tk_body_call *call);

#endif
