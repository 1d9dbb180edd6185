/* logsumexp and softmax over any axes: rows through body_rows.h.
 *
 * The largest element (of the real parts) is taken out before the exponentials, so nothing
 * overflows. A row of -inf, or without elements, has logsumexp -inf and softmax NaN; +inf wins in
 * logsumexp and makes softmax NaN; NaN makes NaN. */
#include <assert.h>
#include <math.h>

#include "cpu/body.h"
#include "cpu/body_complex.h"
#include "cpu/body_copy.h"
#include "cpu/body_ewise.h"
#include "cpu/body_loop.h"
#include "cpu/body_rows.h"
#include "cpu/vec_reduce.h"

/* Portable rows of f32 and f64; the exponentials are summed in double. */
#define REAL_ROWS(T, suffix, exp_T)                                                                \
    static T row_max_##suffix(const T *x, int64_t length) {                                        \
        T best = -(T)INFINITY;                                                                     \
        for (int64_t i = 0; i < length; i++) best = x[i] > best || x[i] != x[i] ? x[i] : best;     \
        return best;                                                                               \
    }                                                                                              \
    static void logsumexp_##suffix(void *arg, const tk_rows_part *part) {                          \
        (void)arg;                                                                                 \
        for (int64_t r = 0; r < part->rows; r++) {                                                 \
            const T *x = (const T *)part->in + r * part->in_stride;                                \
            T best = row_max_##suffix(x, part->length);                                            \
            double sum = 0;                                                                        \
            for (int64_t i = 0; i < part->length; i++) sum += (double)exp_T(x[i] - best);          \
            bool finite = best - best == 0;                                                        \
            ((T *)part->out)[r * part->out_stride] = finite ? (T)((double)best + log(sum)) : best; \
        }                                                                                          \
    }                                                                                              \
    static void softmax_##suffix(void *arg, const tk_rows_part *part) {                            \
        (void)arg;                                                                                 \
        for (int64_t r = 0; r < part->rows; r++) {                                                 \
            const T *x = (const T *)part->in + r * part->in_stride;                                \
            T *y = (T *)part->out + r * part->out_stride;                                          \
            T best = row_max_##suffix(x, part->length);                                            \
            double sum = 0;                                                                        \
            for (int64_t i = 0; i < part->length; i++) sum += (double)(y[i] = exp_T(x[i] - best)); \
            for (int64_t i = 0; i < part->length; i++) y[i] = (T)((double)y[i] / sum);             \
        }                                                                                          \
    }
REAL_ROWS(float, f32, expf)
REAL_ROWS(double, f64, exp)

/* ---- complex rows ---- */

static double complex_shift(const c64 *x, int64_t length) {
    double best = -INFINITY;
    for (int64_t i = 0; i < length; i++) best = (double)x[i].re > best ? (double)x[i].re : best;
    return isinf(best) ? 0 : best;
}

static c128 complex_exp_sum(const c64 *x, int64_t length, double shift) {
    c128 sum = 0;
    for (int64_t i = 0; i < length; i++) sum += cexp(c64_wide(x[i]) - shift);
    return sum;
}

static void logsumexp_c64(void *arg, const tk_rows_part *part) {
    (void)arg;
    for (int64_t r = 0; r < part->rows; r++) {
        const c64 *x = (const c64 *)part->in + r * part->in_stride;
        double shift = complex_shift(x, part->length);
        ((c64 *)part->out)[r * part->out_stride] =
            c64_round(clog(complex_exp_sum(x, part->length, shift)) + shift);
    }
}

static void softmax_c64(void *arg, const tk_rows_part *part) {
    (void)arg;
    for (int64_t r = 0; r < part->rows; r++) {
        const c64 *x = (const c64 *)part->in + r * part->in_stride;
        c64 *y = (c64 *)part->out + r * part->out_stride;
        double shift = complex_shift(x, part->length);
        c128 sum = complex_exp_sum(x, part->length, shift);
        for (int64_t i = 0; i < part->length; i++)
            y[i] = c64_round(cexp(c64_wide(x[i]) - shift) / sum);
    }
}

/* ---- the vector kernels as row functions ---- */

static void logsumexp_vec(void *arg, const tk_rows_part *part) {
    tk_dtype dtype = *(const tk_dtype *)arg;
    int64_t bytes = (int64_t)tk_dtype_size(dtype);
    if (part->out_stride == 1) {
        tk_logsumexp_rows(dtype, part->in, part->rows, part->length, part->in_stride, part->out);
        return;
    }
    for (int64_t r = 0; r < part->rows; r++)
        tk_logsumexp_rows(dtype, (const char *)part->in + r * part->in_stride * bytes, 1,
                          part->length, part->length,
                          (char *)part->out + r * part->out_stride * bytes);
}

static void softmax_vec(void *arg, const tk_rows_part *part) {
    tk_softmax_rows(*(const tk_dtype *)arg, part->in, part->in_stride, part->out, part->out_stride,
                    part->rows, part->length);
}

/* ---- bodies ---- */

typedef struct row_functions {
    tk_rows_fn vec, f32, f64, c64;
} row_functions;

static tk_status run_rows(const tk_body_call *call, const row_functions *functions) {
    const tk_attrs_reduce *attrs = call->attrs;
    tk_dtype dtype = call->inputs[0].dtype;
    bool vec = !tk_cpu_reference() && dtype != TK_COMPLEX64;
    bool half = dtype == TK_FLOAT16 || dtype == TK_BFLOAT16;
    tk_dtype type = half && !vec ? TK_FLOAT32 : dtype;
    tk_rows rows = {.in = &call->inputs[0],
                    .out = &call->outputs[0],
                    .axes = tk_rows_axes(attrs->axes.count, attrs->axes.items),
                    .in_type = type,
                    .out_type = type,
                    .arg = &type};
    rows.run = vec                    ? functions->vec
               : type == TK_FLOAT32   ? functions->f32
               : type == TK_COMPLEX64 ? functions->c64
                                      : functions->f64;
    return tk_rows_run(&rows);
}

tk_status tk_body_logsumexp(const tk_body_call *call) {
    static const row_functions functions = {logsumexp_vec, logsumexp_f32, logsumexp_f64,
                                            logsumexp_c64};
    const tk_strided *in = &call->inputs[0], *out = &call->outputs[0];
    if (in->size || !out->size) return run_rows(call, &functions);
    double nothing = -INFINITY;
    uint64_t element = 0;
    tk_convert_run(TK_FLOAT64, out->dtype, &nothing, &element, 1);
    tk_fill_view(&element, out);
    return TK_OK;
}

tk_status tk_body_softmax(const tk_body_call *call) {
    static const row_functions functions = {softmax_vec, softmax_f32, softmax_f64, softmax_c64};
    const tk_attrs_reduce *attrs = call->attrs;
    const tk_strided *in = &call->inputs[0];
    tk_axes axes = tk_rows_axes(attrs->axes.count, attrs->axes.items);
    bool direct = in->size && in->dtype != TK_COMPLEX64 && !tk_cpu_reference() &&
                  tk_axes_are_last(axes, in->rank) && tk_view_is_dense(in);
    if (!direct) return run_rows(call, &functions);
    int64_t length = 1;
    for (int64_t i = 0; i < axes.count; i++) length *= in->shape[axes.items[i]];
    tk_softmax_rows(in->dtype, in->data, length, call->outputs[0].data, length, in->size / length,
                    length);
    return TK_OK;
}
