/* Quantisation of arrays: rows of the last axis go to the pool, each through quant.h. */
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_loop.h"
#include "cpu/body_quant.h"
#include "graph/build_quant.h"

#define GRAIN 16384

/* ---- fp8 ---- */

typedef struct fp8_job {
    tk_dtype dtype; /* of the values */
    const char *in;
    char *out;
    size_t in_bytes, out_bytes;
} fp8_job;

static void encode_part(void *arg, int64_t begin, int64_t end, int worker) {
    const fp8_job *job = arg;
    (void)worker;
    tk_fp8_encode_run(job->dtype, job->in + (size_t)begin * job->in_bytes,
                      (uint8_t *)job->out + begin, end - begin);
}

static void decode_part(void *arg, int64_t begin, int64_t end, int worker) {
    const fp8_job *job = arg;
    (void)worker;
    tk_fp8_decode_run(job->dtype, (const uint8_t *)job->in + begin,
                      job->out + (size_t)begin * job->out_bytes, end - begin);
}

static tk_status run_fp8(const tk_body_call *call, tk_dtype values, tk_loop_body body) {
    const tk_strided *in = &call->inputs[0], *out = &call->outputs[0];
    tk_dense dense;
    tk_status status = tk_dense_take(in, in->dtype, &dense);
    fp8_job job = {values, dense.data, out->data, tk_dtype_size(in->dtype),
                   tk_dtype_size(out->dtype)};
    if (status == TK_OK) tk_parallel_for(out->size, GRAIN, body, &job);
    tk_dense_free(&dense);
    return status;
}

tk_status tk_body_fp8_encode(const tk_body_call *call) {
    return run_fp8(call, call->inputs[0].dtype, encode_part);
}

tk_status tk_body_fp8_decode(const tk_body_call *call) {
    return run_fp8(call, call->outputs[0].dtype, decode_part);
}

/* ---- groups ---- */

tk_status tk_rows_take(const tk_strided *view, tk_rows_view *out) {
    int last = view->rank - 1;
    *out = (tk_rows_view){.view = *view};
    if (view->strides[last] == 1 || view->shape[last] <= 1 || view->size == 0) return TK_OK;
    TK_TRY(tk_dense_take(view, view->dtype, &out->dense));
    out->view = tk_view_dense(view->dtype, view->rank, view->shape, out->dense.scratch);
    return TK_OK;
}

const void *tk_rows_at(const tk_rows_view *rows, int64_t row) {
    const tk_strided *view = &rows->view;
    int64_t offset = 0;
    for (int axis = view->rank - 2; axis >= 0; axis--) {
        offset += row % view->shape[axis] * view->strides[axis];
        row /= view->shape[axis];
    }
    return (const char *)view->data + offset * (int64_t)tk_dtype_size(view->dtype);
}

static int64_t row_count(const tk_strided *view) {
    int64_t count = 1;
    for (int axis = 0; axis < view->rank - 1; axis++) count *= view->shape[axis];
    return count;
}

static char *row_of(const tk_strided *dense, int64_t row) {
    int64_t length = dense->shape[dense->rank - 1] * (int64_t)tk_dtype_size(dense->dtype);
    return (char *)dense->data + row * length;
}

typedef struct quantize_job {
    tk_quant_kind kind;
    tk_rows_view w;
    const tk_strided *codes, *scales, *biases; /* biases: NULL but for affine */
    int64_t groups;
} quantize_job;

static void quantize_rows(void *arg, int64_t begin, int64_t end, int worker) {
    const quantize_job *job = arg;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        tk_quant_encode(&job->kind, job->w.view.dtype, tk_rows_at(&job->w, row), job->groups,
                        (uint32_t *)(void *)row_of(job->codes, row), row_of(job->scales, row),
                        job->biases ? row_of(job->biases, row) : NULL);
}

static const float *global_of(const tk_body_call *call, int64_t has_global) {
    return has_global ? call->inputs[call->n_inputs - 1].data : NULL;
}

tk_status tk_body_quantize(const tk_body_call *call) {
    const tk_attrs_quantize *attrs = call->attrs;
    const tk_strided *w = &call->inputs[0];
    if (w->size == 0) return TK_OK;
    quantize_job job = {
        .kind = tk_quant_kind_of(TK_QUANT_OF(attrs), w->dtype, global_of(call, attrs->has_global)),
        .codes = &call->outputs[0],
        .scales = &call->outputs[1],
        .biases = call->n_outputs > 2 ? &call->outputs[2] : NULL};
    job.groups = w->shape[w->rank - 1] / job.kind.quant.group_size;
    tk_status status = tk_rows_take(w, &job.w);
    if (status == TK_OK)
        tk_parallel_for(row_count(w), 1 + GRAIN / 4 / w->shape[w->rank - 1], quantize_rows, &job);
    tk_dense_free(&job.w.dense);
    return status;
}

/* ---- back to values ---- */

#define BLOCK_GROUPS 8

typedef struct dequantize_job {
    tk_codes codes;
    const tk_strided *out;
} dequantize_job;

static void dequantize_row(const dequantize_job *job, int64_t row) {
    const tk_quant_kind *kind = &job->codes.kind;
    tk_quant_row from = tk_codes_row(&job->codes, row);
    int64_t groups = job->codes.groups, size = kind->quant.group_size;
    tk_dtype dtype = job->out->dtype;
    char *out = row_of(job->out, row);
    if (dtype == TK_FLOAT32 && kind->scale_dtype != TK_FLOAT64) {
        tk_quant_decode_f32(kind, from, 0, groups, (float *)(void *)out);
        return;
    }
    bool wide = kind->scale_dtype == TK_FLOAT64;
    for (int64_t group = 0; group < groups; group += BLOCK_GROUPS) {
        int64_t count = groups - group < BLOCK_GROUPS ? groups - group : BLOCK_GROUPS;
        double block[BLOCK_GROUPS * TK_QUANT_GROUP_MAX];
        if (wide)
            tk_quant_decode_f64(kind, from, group, count, block);
        else
            tk_quant_decode_f32(kind, from, group, count, (float *)(void *)block);
        tk_convert_run(wide ? TK_FLOAT64 : TK_FLOAT32, dtype, block, out, count * size);
        out += count * size * (int64_t)tk_dtype_size(dtype);
    }
}

static void dequantize_rows(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t row = begin; row < end; row++) dequantize_row(arg, row);
}

tk_status tk_codes_take(tk_quant quant, const tk_strided *inputs, const float *global,
                        tk_codes *out) {
    bool affine = tk_quant_is_affine(quant);
    *out = (tk_codes){.kind = tk_quant_kind_of(quant, inputs[1].dtype, global),
                      .affine = affine,
                      .groups = inputs[1].shape[inputs[1].rank - 1]};
    TK_TRY(tk_rows_take(&inputs[0], &out->words));
    TK_TRY(tk_rows_take(&inputs[1], &out->scales));
    return affine ? tk_rows_take(&inputs[2], &out->biases) : TK_OK;
}

void tk_codes_free(tk_codes *codes) {
    tk_dense_free(&codes->words.dense);
    tk_dense_free(&codes->scales.dense);
    tk_dense_free(&codes->biases.dense);
}

tk_quant_row tk_codes_row(const tk_codes *codes, int64_t row) {
    return (tk_quant_row){tk_rows_at(&codes->words, row), tk_rows_at(&codes->scales, row),
                          codes->affine ? tk_rows_at(&codes->biases, row) : NULL};
}

tk_status tk_body_dequantize(const tk_body_call *call) {
    const tk_attrs_dequantize *attrs = call->attrs;
    const tk_strided *out = &call->outputs[0];
    if (out->size == 0) return TK_OK;
    dequantize_job job = {.out = out};
    tk_status status = tk_codes_take(TK_QUANT_OF(attrs), call->inputs,
                                     global_of(call, attrs->has_global), &job.codes);
    if (status == TK_OK)
        tk_parallel_for(row_count(out), 1 + GRAIN / out->shape[out->rank - 1], dequantize_rows,
                        &job);
    tk_codes_free(&job.codes);
    return status;
}
