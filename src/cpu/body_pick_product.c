/* Products of picked pairs of matrices, and of segments of K.
 *
 * Few rows a pair (one token each, as where tokens choose experts) are gathered by their right
 * matrix and multiplied at once; otherwise each pair is a product by itself, from where its
 * operands lie. Many products go to the pool one a task; few use the pool inside gemm.h. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/body_pairs.h"
#include "cpu/gemm.h"

/* Rows of a pair up to which pairs are joined. */
#define FEW_ROWS 16

typedef struct pick_job {
    const tk_strided *a, *b, *out;
    tk_pairs pairs;
    int64_t m, n, k;
    size_t bytes;
    _Atomic(int) status;
} pick_job;

static tk_gemm_args arguments(const pick_job *job) {
    const tk_strided *a = job->a, *b = job->b;
    return (tk_gemm_args){.dtype = a->dtype,
                          .m = job->m,
                          .n = job->n,
                          .k = job->k,
                          .a_row = a->strides[a->rank - 2],
                          .a_column = a->strides[a->rank - 1],
                          .b_row = b->strides[b->rank - 2],
                          .b_column = b->strides[b->rank - 1],
                          .c_row = job->n,
                          .c_column = 1,
                          .alpha = 1};
}

static char *out_at(const pick_job *job, int64_t number) {
    return (char *)job->out->data + (size_t)(number * job->m * job->n) * job->bytes;
}

static tk_status one_by_one(const pick_job *job, const tk_pair *pairs, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        tk_gemm_args args = arguments(job);
        args.a = tk_matrix_at(job->a, pairs[i].left);
        args.b = tk_matrix_at(job->b, pairs[i].right);
        args.c = out_at(job, pairs[i].out);
        TK_TRY(tk_gemm(&args));
    }
    return TK_OK;
}

/* The left matrix of each pair, dense, one after the other. */
static void collect(const pick_job *job, const tk_pair *pairs, int64_t count, char *rows) {
    const tk_strided *a = job->a;
    int64_t row_bytes = job->k * (int64_t)job->bytes;
    int64_t row = a->strides[a->rank - 2] * (int64_t)job->bytes,
            column = a->strides[a->rank - 1] * (int64_t)job->bytes;
    for (int64_t i = 0; i < count; i++) {
        const char *from = tk_matrix_at(a, pairs[i].left);
        for (int64_t r = 0; r < job->m; r++, rows += row_bytes)
            tk_copy_run(job->bytes, rows, (int64_t)job->bytes, from + r * row, column, job->k);
    }
}

static tk_status together(const pick_job *job, const tk_pair *pairs, int64_t count) {
    int64_t rows = count * job->m;
    size_t block = (size_t)(job->m * job->n) * job->bytes;
    void *left, *product = NULL;
    TK_TRY(tk_scratch_new(rows * job->k, job->bytes, &left));
    tk_status status = tk_scratch_new(rows * job->n, job->bytes, &product);
    if (status == TK_OK) {
        collect(job, pairs, count, left);
        tk_gemm_args args = arguments(job);
        args.m = rows, args.a = left, args.a_row = job->k, args.a_column = 1;
        args.b = tk_matrix_at(job->b, pairs[0].right);
        args.c = product;
        status = tk_gemm(&args);
    }
    for (int64_t i = 0; status == TK_OK && i < count; i++)
        memcpy(out_at(job, pairs[i].out), (char *)product + (size_t)i * block, block);
    tk_free(left);
    tk_free(product);
    return status;
}

static tk_status run_group(const pick_job *job, int64_t group) {
    int64_t first = job->pairs.starts[group], count = job->pairs.starts[group + 1] - first;
    const tk_pair *pairs = job->pairs.items + first;
    size_t block = (size_t)(job->m * job->n) * job->bytes;
    if (pairs->left < 0) {
        for (int64_t i = 0; i < count; i++) memset(out_at(job, pairs[i].out), 0, block);
        return TK_OK;
    }
    bool join = count > 1 && job->m <= FEW_ROWS;
    return join ? together(job, pairs, count) : one_by_one(job, pairs, count);
}

static void run_groups(void *arg, int64_t begin, int64_t end, int worker) {
    pick_job *job = arg;
    (void)worker;
    for (int64_t group = begin; group < end; group++) {
        tk_status status = run_group(job, group);
        if (status != TK_OK) job->status = (int)status;
    }
}

static tk_status run_pairs(pick_job *job) {
    if (job->pairs.n_groups >= 2 * tk_pool_threads()) {
        tk_parallel_for(job->pairs.n_groups, 1, run_groups, job);
        if (job->status == TK_OK) return TK_OK;
        return tk_fail((tk_status)job->status, "gather_mm: no memory for products");
    }
    for (int64_t group = 0; group < job->pairs.n_groups; group++) TK_TRY(run_group(job, group));
    return TK_OK;
}

tk_status tk_body_gather_product(const tk_body_call *call) {
    const tk_strided *a = &call->inputs[0], *b = &call->inputs[1], *out = &call->outputs[0];
    pick_job job = {.a = a,
                    .b = b,
                    .out = out,
                    .m = a->shape[1],
                    .n = b->shape[2],
                    .k = a->shape[2],
                    .bytes = tk_dtype_size(out->dtype),
                    .status = TK_OK};
    tk_status status = tk_pairs_by_index(&call->inputs[2], &call->inputs[3], a->shape[0],
                                         b->shape[0], call->fault, &job.pairs);
    if (status == TK_OK && out->size > 0) status = run_pairs(&job);
    tk_pairs_free(&job.pairs);
    return status;
}

/* ---- segments ---- */

/* A bound within [0, length]; others are noted. */
static int64_t bound(tk_fault *fault, int64_t position, int64_t value, int64_t length) {
    if (value >= 0 && value <= length) return value;
    tk_fault_note(fault, position, value, length + 1);
    return value < 0 ? 0 : length;
}

static tk_status run_segments(const pick_job *job, const int64_t *bounds, int64_t count,
                              tk_fault *fault) {
    for (int64_t i = 0; i < count; i++) {
        tk_gemm_args args = arguments(job);
        int64_t from = bound(fault, 2 * i, bounds[2 * i], job->k);
        int64_t to = bound(fault, 2 * i + 1, bounds[2 * i + 1], job->k);
        args.k = to > from ? to - from : 0;
        args.a = (const char *)job->a->data + from * args.a_column * (int64_t)job->bytes;
        args.b = (const char *)job->b->data + from * args.b_row * (int64_t)job->bytes;
        args.c = out_at(job, i);
        TK_TRY(tk_gemm(&args));
    }
    return TK_OK;
}

tk_status tk_body_segment_product(const tk_body_call *call) {
    const tk_strided *a = &call->inputs[0], *b = &call->inputs[1], *out = &call->outputs[0];
    pick_job job = {.a = a,
                    .b = b,
                    .out = out,
                    .m = a->shape[0],
                    .n = b->shape[1],
                    .k = a->shape[1],
                    .bytes = tk_dtype_size(out->dtype)};
    tk_dense bounds;
    tk_status status = tk_dense_take(&call->inputs[2], TK_INT64, &bounds);
    if (status == TK_OK)
        status = run_segments(&job, bounds.data, call->inputs[2].size / 2, call->fault);
    tk_dense_free(&bounds);
    return status;
}
