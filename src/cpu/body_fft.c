/* Fourier transforms of one axis: its lines are gathered, transformed and put back scaled. Lines
 * beside each other are taken several at a time, so that memory is read in runs. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/fft.h"

#define TOGETHER 8

typedef struct transform {
    tk_fft_plan *plan;
    const char *in;
    char *out;
    size_t in_bytes, out_bytes;
    int64_t in_length, out_length, inner; /* inner: elements from one of a line to the next */
    int64_t tiles;                        /* of an outer index */
    int64_t scratch_bytes;                /* of a thread */
    float scale;
    char *scratch;
} transform;

/* Lines of scratch lie apart from multiples of a page, which would share few lines of the cache. */
#define APART 64

static int64_t in_line(const transform *t) {
    return (t->in_length * (int64_t)t->in_bytes + 2 * APART - 1) / APART * APART;
}

static int64_t out_line(const transform *t) {
    return (t->out_length * (int64_t)t->out_bytes + 2 * APART - 1) / APART * APART;
}

static void scale_line(const transform *t, char *line) {
    float *parts = (float *)(void *)line;
    int64_t count = t->out_length * (int64_t)(t->out_bytes / sizeof(float));
    if (t->scale == 1) return;
    for (int64_t i = 0; i < count; i++) parts[i] *= t->scale;
}

/* Element j of each of `columns` lines, all of a line in scratch beside each other. */
static void turn(size_t bytes, char *to, int64_t to_row, int64_t to_column, const char *from,
                 int64_t from_row, int64_t from_column, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < columns; c++) {
            char *out = to + row * to_row + c * to_column;
            const char *in = from + row * from_row + c * from_column;
            if (bytes == 8)
                memcpy(out, in, 8);
            else
                memcpy(out, in, 4);
        }
}

/* `columns` lines that lie beside each other. */
static void run_tile(const transform *t, const char *in, char *out, int64_t columns,
                     char *scratch) {
    char *from = scratch, *to = from + TOGETHER * in_line(t);
    tk_fft_complex *own = (tk_fft_complex *)(void *)(to + TOGETHER * out_line(t));
    int64_t in_bytes = (int64_t)t->in_bytes, out_bytes = (int64_t)t->out_bytes;
    turn(t->in_bytes, from, in_bytes, in_line(t), in, t->inner * in_bytes, in_bytes, t->in_length,
         columns);
    for (int64_t c = 0; c < columns; c++) {
        tk_fft_run(t->plan, from + c * in_line(t), to + c * out_line(t), own);
        scale_line(t, to + c * out_line(t));
    }
    turn(t->out_bytes, out, t->inner * out_bytes, out_bytes, to, out_bytes, out_line(t),
         t->out_length, columns);
}

static void run_part(void *arg, int64_t begin, int64_t end, int worker) {
    const transform *t = arg;
    char *scratch = t->scratch + worker * t->scratch_bytes;
    for (int64_t at = begin; at < end; at++) {
        int64_t outer = at / t->tiles, column = at % t->tiles * TOGETHER;
        int64_t columns = t->inner - column < TOGETHER ? t->inner - column : TOGETHER;
        const char *in = t->in + (outer * t->in_length * t->inner + column) * (int64_t)t->in_bytes;
        char *out = t->out + (outer * t->out_length * t->inner + column) * (int64_t)t->out_bytes;
        if (t->inner == 1) {
            tk_fft_run(t->plan, in, out, (tk_fft_complex *)(void *)scratch);
            scale_line(t, out);
        } else {
            run_tile(t, in, out, columns, scratch);
        }
    }
}

static tk_status run(transform *t, int64_t outer) {
    t->tiles = (t->inner + TOGETHER - 1) / TOGETHER;
    t->scratch_bytes = tk_fft_scratch(t->plan) * (int64_t)sizeof(tk_fft_complex);
    if (t->inner > 1) t->scratch_bytes += TOGETHER * (in_line(t) + out_line(t));
    t->scratch_bytes = (t->scratch_bytes + 63) / 64 * 64;
    void *scratch;
    TK_TRY(tk_scratch_new(tk_pool_threads(), (size_t)t->scratch_bytes, &scratch));
    t->scratch = scratch;
    tk_parallel_for(outer * t->tiles, 1 + 8192 / (t->in_length + t->out_length), run_part, t);
    tk_free(scratch);
    return TK_OK;
}

static tk_fft_kind kind_of(const tk_body_call *call) {
    if (call->op == TK_OP_rfft_axis) return TK_FFT_REAL;
    if (call->op == TK_OP_irfft_axis) return TK_FFT_TO_REAL;
    const tk_attrs_fft *attrs = call->attrs;
    return attrs->inverse ? TK_FFT_INVERSE : TK_FFT_FORWARD;
}

tk_status tk_body_fft(const tk_body_call *call) {
    const tk_strided *in = &call->inputs[0], *out = &call->outputs[0];
    bool to_real = call->op == TK_OP_irfft_axis;
    int64_t axis = *(const int64_t *)call->attrs, outer = 1;
    if (out->size == 0) return TK_OK;
    transform t = {.in_bytes = tk_dtype_size(in->dtype),
                   .out_bytes = tk_dtype_size(out->dtype),
                   .in_length = in->shape[axis],
                   .out_length = out->shape[axis],
                   .inner = 1,
                   .out = out->data,
                   .scale = to_real ? (float)((const tk_attrs_irfft *)call->attrs)->scale
                                    : (float)((const tk_attrs_fft *)call->attrs)->scale};
    for (int64_t i = 0; i < axis; i++) outer *= in->shape[i];
    for (int64_t i = axis + 1; i < in->rank; i++) t.inner *= in->shape[i];
    tk_dense dense = {0};
    tk_status status =
        tk_fft_plan_get(kind_of(call), (int)(to_real ? t.out_length : t.in_length), &t.plan);
    if (status == TK_OK) status = tk_dense_take(in, in->dtype, &dense);
    if (status == TK_OK) {
        t.in = dense.data;
        status = run(&t, outer);
    }
    tk_dense_free(&dense);
    tk_fft_plan_put(t.plan);
    return status;
}
