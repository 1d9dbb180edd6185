/* Matrix products: brings every call into one form, chooses the way, cuts the work for the pool.
 *
 * The form: C's rows contiguous (else the transposed problem is solved), and batch dimensions whose
 * matrices follow one another merged into rows, so that a linear layer on [batch, length, features]
 * is one product. Many products go to the pool one a task; few are cut by rows, where BLAS repacks
 * less than when cut by columns (2 % against 5 % at 1024), or by columns where rows are few. */
#include "cpu/gemm.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/gemm_kernel.h"
#include "cpu/least.h"

/* Products up to so many multiplications go to the tile kernels; beyond it OpenBLAS is faster. It
 * is so sooner where rows are few (the panels of b are not used often enough to pay for their
 * copies) and where k is long. */
#define PACKED_LIMIT ((int64_t)160 * 160 * 160)
#define PACKED_LIMIT_FLAT ((int64_t)200 * 200 * 200)
/* Multiplications that are worth a task of their own. */
#define TASK_WORK ((int64_t)64 * 64 * 128)

static bool is_half(tk_dtype dtype) { return dtype == TK_FLOAT16 || dtype == TK_BFLOAT16; }

static const void *move(const void *x, int64_t elements, tk_dtype dtype) {
    return (const char *)x + elements * (int64_t)tk_dtype_size(dtype);
}

tk_gemm_one tk_gemm_part(const tk_gemm_one *whole, tk_dtype dtype, int64_t m_begin, int64_t m_end,
                         int64_t n_begin, int64_t n_end) {
    tk_gemm_one part = *whole;
    part.m = m_end - m_begin;
    part.n = n_end - n_begin;
    part.a = move(whole->a, m_begin * whole->a_row, dtype);
    part.b = move(whole->b, n_begin * whole->b_column, dtype);
    part.c = (char *)whole->c + (m_begin * whole->c_row + n_begin) * (int64_t)tk_dtype_size(dtype);
    return part;
}

tk_status tk_gemm_f32(const tk_gemm_one *product) {
    bool thin = product->m == 1 && product->n * product->k > 4096;
    bool flat = product->m >= 48 && product->k <= 512;
    bool large = product->m * product->n * product->k > (flat ? PACKED_LIMIT_FLAT : PACKED_LIMIT);
    if ((thin || large) && tk_gemm_blas_can(TK_FLOAT32, product)) {
        tk_gemm_blas(TK_FLOAT32, product);
        return TK_OK;
    }
    return tk_gemm_packed(product);
}

static tk_status run_one(tk_dtype dtype, tk_gemm_way way, const tk_gemm_one *product) {
    if (is_half(dtype)) return tk_gemm_half(dtype, product);
    if (way == TK_GEMM_PORTABLE) {
        tk_gemm_portable(dtype, product);
        return TK_OK;
    }
    if (dtype == TK_FLOAT32 && way == TK_GEMM_AUTO) return tk_gemm_f32(product);
    if (dtype == TK_FLOAT32 && way == TK_GEMM_PACKED) return tk_gemm_packed(product);
    if (tk_gemm_blas_can(dtype, product))
        tk_gemm_blas(dtype, product);
    else
        tk_gemm_portable(dtype, product);
    return TK_OK;
}

typedef struct gemm_job {
    const tk_gemm_args *args;
    tk_gemm_one product; /* of batch entry 0 */
    int64_t batch;
    int64_t parts; /* of each product */
    bool by_columns;
    _Atomic(int) status;
} gemm_job;

static tk_gemm_one batch_entry(const gemm_job *job, int64_t index) {
    const tk_gemm_args *args = job->args;
    tk_gemm_one product = job->product;
    int64_t a = 0, b = 0, c = 0;
    for (int d = args->batch_rank - 1; d >= 0; d--) {
        int64_t at = index % args->batch_shape[d];
        index /= args->batch_shape[d];
        a += at * args->a_batch[d];
        b += at * args->b_batch[d];
        c += at * args->c_batch[d];
    }
    product.a = move(product.a, a, args->dtype);
    product.b = move(product.b, b, args->dtype);
    product.c = (char *)product.c + c * (int64_t)tk_dtype_size(args->dtype);
    return product;
}

/* Part borders at multiples of 16, so that few tiles are cut. */
static int64_t border(int64_t length, int64_t parts, int64_t part) {
    return part == parts ? length : length * part / parts / 16 * 16;
}

static void gemm_tasks(void *arg, int64_t begin, int64_t end, int worker) {
    gemm_job *job = arg;
    tk_dtype dtype = job->args->dtype;
    (void)worker;
    for (int64_t task = begin; task < end; task++) {
        tk_gemm_one whole = batch_entry(job, task / job->parts);
        int64_t part = task % job->parts, length = job->by_columns ? whole.n : whole.m;
        int64_t from = border(length, job->parts, part), to = border(length, job->parts, part + 1);
        if (from == to) continue;
        tk_gemm_one product = job->by_columns ? tk_gemm_part(&whole, dtype, 0, whole.m, from, to)
                                              : tk_gemm_part(&whole, dtype, from, to, 0, whole.n);
        tk_status status = run_one(dtype, job->args->way, &product);
        if (status != TK_OK) atomic_store(&job->status, (int)status);
    }
}

static tk_status run_job(gemm_job *job) {
    const tk_gemm_one *product = &job->product;
    int64_t work = product->m * product->n * tk_least(product->k + 1, INT64_C(1) << 20);
    int threads = tk_pool_inside() ? 1 : tk_pool_threads();
    int64_t useful = tk_least(threads, job->batch * work / TASK_WORK + 1);
    job->by_columns = product->n > 4 * product->m;
    job->parts = job->batch % useful == 0 || job->batch >= 4 * useful ? 1 : useful;
    tk_parallel_for(job->batch * job->parts, work >= TASK_WORK ? 1 : TASK_WORK / (work + 1) + 1,
                    gemm_tasks, job);
    if (job->status == TK_OK) return TK_OK;
    return tk_fail((tk_status)job->status, "no memory for a product of %lld x %lld x %lld",
                   (long long)product->m, (long long)product->n, (long long)product->k);
}

/* C^T = B^T A^T. */
static void transpose_problem(tk_gemm_args *args) {
    tk_gemm_args old = *args;
    args->m = old.n;
    args->n = old.m;
    args->a = old.b;
    args->a_row = old.b_column;
    args->a_column = old.b_row;
    args->b = old.a;
    args->b_row = old.a_column;
    args->b_column = old.a_row;
    args->c_row = old.c_column;
    args->c_column = old.c_row;
    for (int d = 0; d < old.batch_rank; d++) {
        args->a_batch[d] = old.b_batch[d];
        args->b_batch[d] = old.a_batch[d];
    }
}

/* Takes the innermost batch dimension into the rows while B is shared and the matrices of A and C
 * follow one another; drops dimensions of length 1. */
static void merge_batch(tk_gemm_args *args) {
    while (args->batch_rank > 0) {
        int last = args->batch_rank - 1;
        bool follows = args->b_batch[last] == 0 && args->a_batch[last] == args->m * args->a_row &&
                       args->c_batch[last] == args->m * args->c_row;
        if (args->batch_shape[last] != 1 && !follows) return;
        args->m *= args->batch_shape[last];
        args->batch_rank--;
    }
}

tk_status tk_gemm(const tk_gemm_args *given) {
    tk_gemm_args args = *given;
    assert(args.dtype != TK_BOOL && args.batch_rank <= TK_GEMM_BATCH_RANK);
    assert(args.c_column == 1 || args.c_row == 1 || args.m <= 1 || args.n <= 1);
    bool column_vector = args.n == 1 && args.m > 1 && args.c_row == 1;
    if ((args.c_column != 1 && args.n > 1) || column_vector) transpose_problem(&args);
    merge_batch(&args);
    gemm_job job = {.args = &args, .batch = 1, .status = TK_OK};
    job.product = (tk_gemm_one){args.m,        args.n,     args.k,     args.a,        args.a_row,
                                args.a_column, args.b,     args.b_row, args.b_column, args.c,
                                args.c_row,    args.alpha, args.beta};
    for (int d = 0; d < args.batch_rank; d++) job.batch *= args.batch_shape[d];
    if (job.batch == 0 || args.m == 0 || args.n == 0) return TK_OK;
    return run_job(&job);
}

tk_status tk_gemm_dense(tk_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a,
                        const void *b, void *c) {
    tk_gemm_args args = {.dtype = dtype,
                         .m = m,
                         .n = n,
                         .k = k,
                         .a = a,
                         .a_row = k,
                         .a_column = 1,
                         .b = b,
                         .b_row = n,
                         .b_column = 1,
                         .c = c,
                         .c_row = n,
                         .c_column = 1,
                         .alpha = 1};
    return tk_gemm(&args);
}
