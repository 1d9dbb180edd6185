/* Vector kernels on contiguous spans: one table of function pointers, chosen once by cpuid.
 *
 * Three variants are compiled from one source (vec_body.inc and friends): baseline x86-64 (SSE2),
 * AVX2 with FMA and F16C, AVX-512. Rules that hold for all of them:
 *
 * - Exact operations (+ - * / sqrt, comparison, rounding, conversion, min, max, the reductions)
 * give the same bits in every variant. Reductions get this from a fixed shape: 32 lanes, blocks of
 *   TK_REDUCE_BLOCK elements, pairs of blocks combined in a fixed tree.
 * - Transcendental functions stay inside the stated error bound in every variant but may differ
 *   between variants: the polynomials use fma where the machine has it.
 * - The result for an element does not depend on its position or on the span's length: tails go
 *   through the same arithmetic. So callers may split spans over threads as they like.
 * - NaN in gives NaN out; subnormals are kept; no function reads or writes outside its spans.
 * - `out` may be the same address as an input of the same element size; other overlap is not
 * allowed.
 * - Pointers need the alignment of their element only. Counts may be 0.
 *
 * Everything here runs on the calling thread, cannot fail, and may be called from any thread.
 *
 * Rejected: ifunc resolvers (not portable, hard to test a variant on purpose); one kernel per op
 * and dtype in named fields (a table indexed by op is what the caller has in hand). */
#ifndef CPU_VEC_H
#define CPU_VEC_H

#include <stdbool.h>
#include <stdint.h>

#include "tiki/dtype.h"

/* Unary operations. Third column: worst error in units in the last place for f32, over the whole
 * range; 0 means correctly rounded. f64 calls libm for the transcendental ones (about 1 ulp; see
 * vec_f64.c for the three that libm lacks). f16 and bf16 go through f32 and round once more. */
#define TK_VEC_UNARY_OPS(X)                                                                        \
    X(NEG, neg, 0)                                                                                 \
    X(ABS, abs, 0)                                                                                 \
    X(SQUARE, square, 0)                                                                           \
    X(SIGN, sign, 0) /* NaN gives NaN, -0.0 gives -0.0 */                                          \
    X(FLOOR, floor, 0)                                                                             \
    X(CEIL, ceil, 0)                                                                               \
    X(RINT, rint, 0) /* half to even */                                                            \
    X(TRUNC, trunc, 0)                                                                             \
    X(SQRT, sqrt, 0)                                                                               \
    X(RSQRT, rsqrt, 2)                                                                             \
    X(RECIPROCAL, reciprocal, 0)                                                                   \
    X(EXP, exp, 2)                                                                                 \
    X(EXPM1, expm1, 2)                                                                             \
    X(LOG, log, 2)                                                                                 \
    X(LOG1P, log1p, 2)                                                                             \
    X(LOG2, log2, 2)                                                                               \
    X(LOG10, log10, 2)                                                                             \
    X(SIN, sin, 2)                                                                                 \
    X(COS, cos, 2)                                                                                 \
    X(TAN, tan, 2)                                                                                 \
    X(SINH, sinh, 2)                                                                               \
    X(COSH, cosh, 2)                                                                               \
    X(TANH, tanh, 2)                                                                               \
    X(ASIN, asin, 2)                                                                               \
    X(ACOS, acos, 2)                                                                               \
    X(ATAN, atan, 2)                                                                               \
    X(ASINH, asinh, 2)                                                                             \
    X(ACOSH, acosh, 2)                                                                             \
    X(ATANH, atanh, 2)                                                                             \
    X(ERF, erf, 2)                                                                                 \
    X(ERFINV, erfinv, 4) /* +-1 gives +-inf, beyond it NaN */                                      \
    X(SIGMOID, sigmoid, 2)                                                                         \
    X(SILU, silu, 4)           /* x * sigmoid(x) */                                                \
    X(GELU, gelu, 4)           /* x * normal cdf(x) */                                             \
    X(GELU_TANH, gelu_tanh, 4) /* x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */

typedef enum tk_vec_unary_op {
#define TK_VEC_ENUM(id, name, ulp) TK_VEC_##id,
    TK_VEC_UNARY_OPS(TK_VEC_ENUM)
#undef TK_VEC_ENUM
        TK_VEC_UNARY_COUNT
} tk_vec_unary_op;

/* Binary arithmetic. MAX and MIN give NaN if either side is NaN (of two zeros either may come
 * back). Integers wrap; integer DIV is C's truncating division with x / 0 = 0 and INT_MIN / -1
 * wrapped. POW: floats only (f32 within 2 ulp, special cases as C's pow). */
#define TK_VEC_BINARY_OPS(X)                                                                       \
    X(ADD, add)                                                                                    \
    X(SUB, sub)                                                                                    \
    X(MUL, mul)                                                                                    \
    X(DIV, div)                                                                                    \
    X(MAX, max)                                                                                    \
    X(MIN, min)                                                                                    \
    X(POW, pow)

typedef enum tk_vec_binary_op {
#define TK_VEC_ENUM(id, name) TK_VEC_##id,
    TK_VEC_BINARY_OPS(TK_VEC_ENUM)
#undef TK_VEC_ENUM
        TK_VEC_BINARY_COUNT
} tk_vec_binary_op;

/* Comparisons give bytes 0 or 1. Any comparison with NaN is false but NE, which is true. */
#define TK_VEC_COMPARE_OPS(X)                                                                      \
    X(EQ, eq, ==)                                                                                  \
    X(NE, ne, !=)                                                                                  \
    X(LT, lt, <)                                                                                   \
    X(LE, le, <=)                                                                                  \
    X(GT, gt, >)                                                                                   \
    X(GE, ge, >=)

typedef enum tk_vec_compare_op {
#define TK_VEC_ENUM(id, name, sign) TK_VEC_##id,
    TK_VEC_COMPARE_OPS(TK_VEC_ENUM)
#undef TK_VEC_ENUM
        TK_VEC_COMPARE_COUNT
} tk_vec_compare_op;

/* Which operands are single elements: the pointer of a scalar operand is read once. */
typedef enum tk_vec_mode {
    TK_VEC_VV, /* vector, vector */
    TK_VEC_VS, /* vector, scalar */
    TK_VEC_SV, /* scalar, vector */
    TK_VEC_MODE_COUNT
} tk_vec_mode;

typedef enum tk_vec_variant {
    TK_VEC_BASE,
    TK_VEC_AVX2,
    TK_VEC_AVX512,
    TK_VEC_VARIANT_COUNT
} tk_vec_variant;

/* The best variant of this machine, found once. tk_vec_variant_name gives "sse2", "avx2", "avx512";
 * tk_vec_variant_usable says whether this machine can run one. */
tk_vec_variant tk_vec_variant_best(void);
bool tk_vec_variant_usable(tk_vec_variant variant);
const char *tk_vec_variant_name(tk_vec_variant variant);

/* Makes all later calls of this process use `variant`, for tests and for comparing speed; false,
 * and nothing changed, when the machine cannot run it. Not while other threads run kernels. */
bool tk_vec_variant_use(tk_vec_variant variant);
tk_vec_variant tk_vec_variant_in_use(void);

/* out[i] = op(x[i]). Defined for f16, bf16, f32, f64 and every op; for signed and unsigned integers
 * for NEG, ABS, SQUARE, SIGN (wrapping). tk_vec_unary_has tells; other calls are a caller's bug. */
bool tk_vec_unary_has(tk_vec_unary_op op, tk_dtype dtype);
void tk_vec_unary(tk_vec_unary_op op, tk_dtype dtype, const void *x, void *out, int64_t count);

/* out[i] = op(a[i], b[i]), or with a scalar operand as `mode` says. Floats and all integers but
 * bool and complex; POW floats only. Half types compute in f32 and round once. */
bool tk_vec_binary_has(tk_vec_binary_op op, tk_dtype dtype);
void tk_vec_binary(tk_vec_binary_op op, tk_dtype dtype, tk_vec_mode mode, const void *a,
                   const void *b, void *out, int64_t count);

/* out[i] = op(a[i], b[i]) as a byte. All dtypes but complex64. `out` may not overlap an input. */
void tk_vec_compare(tk_vec_compare_op op, tk_dtype dtype, tk_vec_mode mode, const void *a,
                    const void *b, uint8_t *out, int64_t count);

/* out[i] = condition[i] ? a[i] : b[i], for elements of 1, 2, 4 or 8 bytes moved as bits. `scalar_a`
 * and `scalar_b` make that operand a single element. */
void tk_vec_where(size_t element_bytes, const uint8_t *condition, const void *a, bool scalar_a,
                  const void *b, bool scalar_b, void *out, int64_t count);

/* out[i] = a * x[i] + b * y[i], each product rounded, then the sum (no fma), in f32 or f64: the
 * step of most optimizers, and axpy with b = 1. `out` may be x or y. */
void tk_vec_axpby_f32(float a, const float *x, float b, const float *y, float *out, int64_t count);
void tk_vec_axpby_f64(double a, const double *x, double b, const double *y, double *out,
                      int64_t count);
/* out[i] = a[i] * b[i] + c[i], product rounded first. */
void tk_vec_muladd_f32(const float *a, const float *b, const float *c, float *out, int64_t count);

/* out[i] = (to)x[i] between any two dtypes. Float to integer saturates, NaN gives 0; integer to
 * narrower integer wraps; to bool is "not equal to zero" (NaN is true); to float rounds to nearest
 * even; f64 to f16 or bf16 rounds through f32; complex64 to real drops the imaginary part. In place
 * only if both elements have the same size. */
void tk_vec_convert(tk_dtype from, tk_dtype to, const void *x, void *out, int64_t count);

/* Elements of a block that is reduced without a break; blocks are combined in pairs. */
#define TK_REDUCE_BLOCK 4096

#define TK_VEC_REDUCE_OPS(X)                                                                       \
    X(SUM, sum)                                                                                    \
    X(PROD, prod)                                                                                  \
    X(RMAX, rmax) /* NaN if any is NaN */                                                          \
    X(RMIN, rmin)                                                                                  \
    X(SUMSQ, sumsq) /* sum of squares */

typedef enum tk_vec_reduce_op {
#define TK_VEC_ENUM(id, name) TK_VEC_##id,
    TK_VEC_REDUCE_OPS(TK_VEC_ENUM)
#undef TK_VEC_ENUM
        TK_VEC_REDUCE_COUNT
} tk_vec_reduce_op;

#endif
