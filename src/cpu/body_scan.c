/* Cumulative sums, products, extremes and logsumexp along an axis, and the arguments of extremes:
 * rows through body_rows.h.
 *
 * A scan is a chain, so the accumulator is wide: f64 for f32 and the half types, complex numbers in
 * two f64; integers wrap. An exclusive scan begins with the identity of its op. scan_steps alone
 * rounds every sum to the dtype, for those who must have the very bits of a plain loop. */
#include <assert.h>
#include <limits.h>
#include <math.h>

#include "base/half.h"
#include "cpu/body.h"
#include "cpu/body_complex.h"
#include "cpu/body_ewise.h"
#include "cpu/body_rows.h"
#include "cpu/vec_reduce.h"

/* X(suffix, T, A, least, greatest): element type, accumulator, and the identities of max and min.
 */
#define REALS(X)                                                                                   \
    X(f32, float, double, -(double)INFINITY, (double)INFINITY)                                     \
    X(f64, double, double, -(double)INFINITY, (double)INFINITY)
#define INTEGERS(X)                                                                                \
    X(u8, uint8_t, uint64_t, 0, UINT8_MAX)                                                         \
    X(u16, uint16_t, uint64_t, 0, UINT16_MAX)                                                      \
    X(u32, uint32_t, uint64_t, 0, UINT32_MAX)                                                      \
    X(u64, uint64_t, uint64_t, 0, UINT64_MAX)                                                      \
    X(i8, int8_t, int64_t, INT8_MIN, INT8_MAX)                                                     \
    X(i16, int16_t, int64_t, INT16_MIN, INT16_MAX)                                                 \
    X(i32, int32_t, int64_t, INT32_MIN, INT32_MAX)                                                 \
    X(i64, int64_t, int64_t, INT64_MIN, INT64_MAX)

#define ADD(A, a, b) ((a) + (b))
#define MULTIPLY(A, a, b) ((a) * (b))
#define WRAP_ADD(A, a, b) ((A)((uint64_t)(a) + (uint64_t)(b)))
#define WRAP_MULTIPLY(A, a, b) ((A)((uint64_t)(a) * (uint64_t)(b)))
#define LARGER(A, a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(A, a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define LARGER_INTEGER(A, a, b) ((a) > (b) ? (a) : (b))
#define SMALLER_INTEGER(A, a, b) ((a) < (b) ? (a) : (b))
#define LOG_SUM(A, a, b) logaddexp(a, b)
#define EITHER(A, a, b) ((a) | (b))
#define BOTH(A, a, b) ((a) & (b))

static double logaddexp(double a, double b) {
    if (a == b) return a + 0.69314718055994530942;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

typedef struct scan {
    bool reverse, inclusive;
    tk_dtype dtype;
} scan;

#define SCAN(name, T, A, load, store, identity, combine)                                           \
    static void name(void *arg, const tk_rows_part *part) {                                        \
        const scan *s = arg;                                                                       \
        int64_t step = s->reverse ? -1 : 1, first = s->reverse ? part->length - 1 : 0;             \
        for (int64_t r = 0; r < part->rows; r++) {                                                 \
            const T *x = (const T *)part->in + r * part->in_stride + first;                        \
            T *y = (T *)part->out + r * part->out_stride + first;                                  \
            A total = identity;                                                                    \
            for (int64_t i = 0; i < part->length; i++) {                                           \
                A before = total, next = load(x[i * step]);                                        \
                total = combine(A, total, next);                                                   \
                y[i * step] = store(T, (s->inclusive ? total : before));                           \
            }                                                                                      \
        }                                                                                          \
    }
#define SAME(x) (x)
#define TRUTH(x) ((x) != 0)
#define CAST(T, value) ((T)value)
#define REAL_SCANS(suffix, T, A, least, greatest)                                                  \
    SCAN(sum_##suffix, T, A, SAME, CAST, 0, ADD)                                                   \
    SCAN(prod_##suffix, T, A, SAME, CAST, 1, MULTIPLY)                                             \
    SCAN(max_##suffix, T, A, SAME, CAST, least, LARGER)                                            \
    SCAN(min_##suffix, T, A, SAME, CAST, greatest, SMALLER)                                        \
    SCAN(logsumexp_##suffix, T, A, SAME, CAST, -(A)INFINITY, LOG_SUM)
#define INTEGER_SCANS(suffix, T, A, least, greatest)                                               \
    SCAN(sum_##suffix, T, A, SAME, CAST, 0, WRAP_ADD)                                              \
    SCAN(prod_##suffix, T, A, SAME, CAST, 1, WRAP_MULTIPLY)                                        \
    SCAN(max_##suffix, T, A, SAME, CAST, least, LARGER_INTEGER)                                    \
    SCAN(min_##suffix, T, A, SAME, CAST, greatest, SMALLER_INTEGER)
REALS(REAL_SCANS)
INTEGERS(INTEGER_SCANS)

SCAN(sum_truth, uint8_t, int, TRUTH, CAST, 0, EITHER)
SCAN(prod_truth, uint8_t, int, TRUTH, CAST, 1, BOTH)

#define ROUND(T, value) c64_round(value)
#define LARGER_COMPLEX(A, a, b) c64_maximum(a, b)
#define SMALLER_COMPLEX(A, a, b) c64_minimum(a, b)
#define LOG_SUM_COMPLEX(A, a, b) c128_logaddexp(a, b)
#define AS_IS(T, value) (value)
SCAN(sum_c64, c64, c128, c64_wide, ROUND, 0, ADD)
SCAN(prod_c64, c64, c128, c64_wide, ROUND, 1, MULTIPLY)
SCAN(max_c64, c64, c64, SAME, AS_IS, c64_of(-INFINITY, -INFINITY), LARGER_COMPLEX)
SCAN(min_c64, c64, c64, SAME, AS_IS, c64_of(INFINITY, INFINITY), SMALLER_COMPLEX)
SCAN(logsumexp_c64, c64, c128, c64_wide, ROUND, c128_of(-INFINITY, 0), LOG_SUM_COMPLEX)

#define STEP_F16(A, a, b) tk_f16_to_f32(tk_f32_to_f16((a) + (b)))
#define STEP_BF16(A, a, b) tk_bf16_to_f32(tk_f32_to_bf16((a) + (b)))
SCAN(steps_f32, float, float, SAME, CAST, 0, ADD)
SCAN(steps_f16, float, float, SAME, CAST, 0, STEP_F16)
SCAN(steps_bf16, float, float, SAME, CAST, 0, STEP_BF16)
static const tk_rows_fn steps[TK_DTYPE_COUNT] = {[TK_FLOAT16] = steps_f16,
                                                 [TK_BFLOAT16] = steps_bf16,
                                                 [TK_FLOAT32] = steps_f32,
                                                 [TK_FLOAT64] = sum_f64};

typedef enum scan_kind {
    SCAN_SUM,
    SCAN_PROD,
    SCAN_MAX,
    SCAN_MIN,
    SCAN_LOGSUMEXP,
    SCAN_KINDS
} scan_kind;

#define INTEGER_ROW(dtype, suffix)                                                                 \
    [dtype] = {sum_##suffix, prod_##suffix, max_##suffix, min_##suffix, NULL}
#define INEXACT_ROW(dtype, suffix)                                                                 \
    [dtype] = {sum_##suffix, prod_##suffix, max_##suffix, min_##suffix, logsumexp_##suffix}
static const tk_rows_fn scans[TK_DTYPE_COUNT][SCAN_KINDS] = {
    [TK_BOOL] = {sum_truth, prod_truth, sum_truth, prod_truth, NULL},
    INTEGER_ROW(TK_UINT8, u8),
    INTEGER_ROW(TK_UINT16, u16),
    INTEGER_ROW(TK_UINT32, u32),
    INTEGER_ROW(TK_UINT64, u64),
    INTEGER_ROW(TK_INT8, i8),
    INTEGER_ROW(TK_INT16, i16),
    INTEGER_ROW(TK_INT32, i32),
    INTEGER_ROW(TK_INT64, i64),
    INEXACT_ROW(TK_FLOAT32, f32),
    INEXACT_ROW(TK_FLOAT64, f64),
    INEXACT_ROW(TK_COMPLEX64, c64)};

static scan_kind kind_of(tk_op op) {
    switch (op) {
    case TK_OP_scan_sum:
        return SCAN_SUM;
    case TK_OP_scan_prod:
        return SCAN_PROD;
    case TK_OP_scan_max:
        return SCAN_MAX;
    case TK_OP_scan_min:
        return SCAN_MIN;
    default:
        assert(op == TK_OP_scan_logsumexp);
        return SCAN_LOGSUMEXP;
    }
}

static tk_rows_fn run_of(tk_op op, tk_dtype dtype, tk_dtype type) {
    return op == TK_OP_scan_steps ? steps[dtype] : scans[type][kind_of(op)];
}

static void sum_vec(void *arg, const tk_rows_part *part) {
    const scan *s = arg;
    tk_cumsum_rows(s->dtype, part->in, part->in_stride, part->out, part->out_stride, part->rows,
                   part->length);
}

static bool is_half(tk_dtype dtype) { return dtype == TK_FLOAT16 || dtype == TK_BFLOAT16; }

tk_status tk_body_scan(const tk_body_call *call) {
    const tk_attrs_scan *attrs = call->attrs;
    tk_dtype dtype = call->inputs[0].dtype;
    scan s = {attrs->reverse != 0, attrs->inclusive != 0, dtype};
    bool vec = !tk_cpu_reference() && call->op == TK_OP_scan_sum && !s.reverse && s.inclusive &&
               tk_dtype_is_float(dtype);
    tk_dtype type = is_half(dtype) && !vec ? TK_FLOAT32 : dtype;
    tk_rows rows = {.in = &call->inputs[0],
                    .out = &call->outputs[0],
                    .axes = tk_rows_axis(attrs->axis),
                    .in_type = type,
                    .out_type = type,
                    .run = vec ? sum_vec : run_of(call->op, dtype, type),
                    .arg = &s};
    return tk_rows_run(&rows);
}

/* ---- arguments of extremes ---- */

/* First index of the best element; the first NaN is better than all. */
#define ARGUMENT(name, T, load, is_nan, better)                                                    \
    static void name(void *arg, const tk_rows_part *part) {                                        \
        (void)arg;                                                                                 \
        for (int64_t r = 0; r < part->rows; r++) {                                                 \
            const T *x = (const T *)part->in + r * part->in_stride;                                \
            T best = load(x[0]);                                                                   \
            int64_t at = 0;                                                                        \
            for (int64_t i = 1; i < part->length && !is_nan(best); i++) {                          \
                T next = load(x[i]);                                                               \
                if (is_nan(next) || better(next, best)) {                                          \
                    best = next;                                                                   \
                    at = i;                                                                        \
                }                                                                                  \
            }                                                                                      \
            ((uint32_t *)part->out)[r * part->out_stride] = (uint32_t)at;                          \
        }                                                                                          \
    }
#define NEVER(x) false
#define NOT_SELF(x) ((x) != (x))
#define ABOVE(a, b) ((a) > (b))
#define BELOW(a, b) ((a) < (b))
#define COMPLEX_ABOVE(a, b) c64_less(b, a)
#define REAL_ARGUMENTS(suffix, T, ...)                                                             \
    ARGUMENT(argmax_##suffix, T, SAME, NOT_SELF, ABOVE)                                            \
    ARGUMENT(argmin_##suffix, T, SAME, NOT_SELF, BELOW)
#define INTEGER_ARGUMENTS(suffix, T, ...)                                                          \
    ARGUMENT(argmax_##suffix, T, SAME, NEVER, ABOVE)                                               \
    ARGUMENT(argmin_##suffix, T, SAME, NEVER, BELOW)
REALS(REAL_ARGUMENTS)
INTEGERS(INTEGER_ARGUMENTS)
ARGUMENT(argmax_truth, uint8_t, TRUTH, NEVER, ABOVE)
ARGUMENT(argmin_truth, uint8_t, TRUTH, NEVER, BELOW)
ARGUMENT(argmax_c64, c64, SAME, c64_is_nan, COMPLEX_ABOVE)
ARGUMENT(argmin_c64, c64, SAME, c64_is_nan, c64_less)

#define ARGUMENT_ROW(dtype, suffix) [dtype] = {argmax_##suffix, argmin_##suffix}
static const tk_rows_fn arguments[TK_DTYPE_COUNT][2] = {
    ARGUMENT_ROW(TK_BOOL, truth),  ARGUMENT_ROW(TK_UINT8, u8),    ARGUMENT_ROW(TK_UINT16, u16),
    ARGUMENT_ROW(TK_UINT32, u32),  ARGUMENT_ROW(TK_UINT64, u64),  ARGUMENT_ROW(TK_INT8, i8),
    ARGUMENT_ROW(TK_INT16, i16),   ARGUMENT_ROW(TK_INT32, i32),   ARGUMENT_ROW(TK_INT64, i64),
    ARGUMENT_ROW(TK_FLOAT32, f32), ARGUMENT_ROW(TK_FLOAT64, f64), ARGUMENT_ROW(TK_COMPLEX64, c64)};

typedef struct argument {
    tk_dtype dtype;
    bool least;
} argument;

static void argument_vec(void *arg, const tk_rows_part *part) {
    const argument *a = arg;
    int64_t bytes = (int64_t)tk_dtype_size(a->dtype), index;
    for (int64_t r = 0; r < part->rows; r++) {
        const char *x = (const char *)part->in + r * part->in_stride * bytes;
        (a->least ? tk_argmin_rows : tk_argmax_rows)(a->dtype, x, 1, part->length, part->length,
                                                     &index);
        ((uint32_t *)part->out)[r * part->out_stride] = (uint32_t)index;
    }
}

tk_status tk_body_arg_reduce(const tk_body_call *call) {
    const tk_attrs_axis *attrs = call->attrs;
    tk_dtype dtype = call->inputs[0].dtype;
    argument a = {dtype, call->op == TK_OP_reduce_argmin};
    bool vec = !tk_cpu_reference() && tk_dtype_is_float(dtype);
    tk_dtype type = is_half(dtype) && !vec ? TK_FLOAT32 : dtype;
    tk_rows rows = {.in = &call->inputs[0],
                    .out = &call->outputs[0],
                    .axes = tk_rows_axis(attrs->axis),
                    .in_type = type,
                    .out_type = TK_UINT32,
                    .run = vec ? argument_vec : arguments[type][a.least],
                    .arg = &a};
    return tk_rows_run(&rows);
}
