/* Bodies of linear algebra: each prepares sizes for a stack of matrices, then works on one after
 * the other by LAPACK.
 *
 * A matrix with infinities or NaN gives NaN where LAPACK would not return (singular values,
 * eigenvalues) or would call it not positive definite. What has no result (a singular matrix, an
 * iteration that does not converge) is an error that says which matrix of the stack it was. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/body.h"
#include "cpu/body_copy.h"
#include "cpu/gemm.h"
#include "cpu/linalg.h"

#define BLOCK 64 /* columns that a blocked routine works on at once */

/* ---- running a stack ---- */

static int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static int64_t carve(const tk_linalg *l, char *base, tk_linalg_memory *memory) {
    const tk_linalg_sizes *s = &l->sizes;
    const struct {
        void **slot;
        int64_t bytes;
    } parts[] = {
        {&memory->a, s->a * (int64_t)l->bytes},
        {&memory->b, s->b * (int64_t)l->bytes},
        {&memory->c, s->c * (int64_t)l->bytes},
        {&memory->work, s->work * (int64_t)l->bytes},
        {&memory->reals, s->reals * (int64_t)l->real_bytes},
        {&memory->more_reals, s->more_reals * (int64_t)l->real_bytes},
        {(void **)&memory->integers, s->integers * (int64_t)sizeof(int)},
    };
    int64_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (base) *parts[i].slot = base + at;
        at += padded(parts[i].bytes);
    }
    return at;
}

static void note_failure(tk_linalg *l, int64_t index) {
    int64_t first = atomic_load(&l->failed);
    while (index < first && !atomic_compare_exchange_weak(&l->failed, &first, index)) continue;
}

static void run_part(void *arg, int64_t begin, int64_t end, int worker) {
    tk_linalg *l = arg;
    tk_linalg_memory memory;
    carve(l, l->scratch + worker * l->scratch_bytes, &memory);
    for (int64_t i = begin; i < end; i++)
        if (l->one(l, i, &memory) != 0) note_failure(l, i);
}

static tk_status run(tk_linalg *l) {
    const tk_strided *a = &l->call->inputs[0];
    tk_linalg_memory unused;
    int64_t count = 1;
    for (int i = 0; i < a->rank - 2; i++) count *= a->shape[i];
    l->scratch_bytes = carve(l, NULL, &unused);
    void *scratch;
    TK_TRY(tk_scratch_new(tk_pool_threads(), (size_t)l->scratch_bytes + 64, &scratch));
    l->scratch = (char *)(((uintptr_t)scratch + 63) / 64 * 64);
    atomic_init(&l->failed, INT64_MAX);
    tk_parallel_for(count, 1 + 4096 / (1 + (int64_t)l->m * l->n * l->least), run_part, l);
    tk_free(scratch);
    int64_t failed = atomic_load(&l->failed);
    if (failed == INT64_MAX) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT, "%s: matrix %lld %s", tk_op_title(l->call->op),
                   (long long)failed, l->failure);
}

static tk_status prepare(tk_linalg *l, const tk_body_call *call) {
    const tk_strided *a = &call->inputs[0];
    *l = (tk_linalg){.call = call,
                     .dtype = a->dtype,
                     .bytes = tk_dtype_size(a->dtype),
                     .m = (int)a->shape[a->rank - 2],
                     .n = (int)a->shape[a->rank - 1]};
    l->real_bytes = l->dtype == TK_COMPLEX64 ? sizeof(float) : l->bytes;
    l->least = l->m < l->n ? l->m : l->n;
    l->sizes.a = (int64_t)l->m * l->n;
    if (call->n_inputs > 1) l->columns = (int)call->inputs[1].shape[call->inputs[1].rank - 1];
    return tk_lapack_get(tk_op_title(call->op), l->dtype, &l->lapack);
}

static int at_least_one(int n) { return n > 0 ? n : 1; }

static bool is_finite(const tk_linalg *l, const tk_linalg_memory *memory) {
    return tk_linalg_is_finite(l->dtype, memory->a, l->sizes.a);
}

/* Every output of matrix `index`: NaN. `axes` are those of each output. */
static void give_nan(const tk_linalg *l, int64_t index, const int *axes) {
    for (int i = 0; i < l->call->n_outputs; i++) {
        const tk_strided *out = &l->call->outputs[i];
        int64_t items = 1;
        for (int k = out->rank - axes[i]; k < out->rank; k++) items *= out->shape[k];
        tk_linalg_fill_nan(out->dtype, tk_linalg_place(out, axes[i], index), items);
    }
}

/* ---- inverses and systems ---- */

static int invert(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    int n = l->n, lead = at_least_one(n), info;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    l->lapack->getrf(&n, &n, memory->a, &lead, memory->integers, &info);
    if (info == 0)
        l->lapack->getri(&n, memory->a, &lead, memory->integers, memory->work, &l->lwork, &info);
    tk_linalg_store(&l->call->outputs[0], index, memory->a, n);
    return info;
}

static int solve(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    int n = l->n, lead = at_least_one(n), info;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    tk_linalg_load(&l->call->inputs[1], index, memory->b);
    l->lapack->getrf(&n, &n, memory->a, &lead, memory->integers, &info);
    if (info == 0)
        l->lapack->getrs("N", &n, &l->columns, memory->a, &lead, memory->integers, memory->b, &lead,
                         &info, 1);
    tk_linalg_store(&l->call->outputs[0], index, memory->b, n);
    return info;
}

static int solve_triangle(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    const tk_attrs_triangle *attrs = l->call->attrs;
    int n = l->n, lead = at_least_one(n), info;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    tk_linalg_load(&l->call->inputs[1], index, memory->b);
    l->lapack->trtrs(attrs->upper ? "U" : "L", "N", "N", &n, &l->columns, memory->a, &lead,
                     memory->b, &lead, &info, 1, 1, 1);
    tk_linalg_store(&l->call->outputs[0], index, memory->b, n);
    return info;
}

tk_status tk_body_solve(const tk_body_call *call) {
    tk_linalg l;
    if (call->outputs[0].size == 0) return TK_OK;
    TK_TRY(prepare(&l, call));
    l.sizes.b = (int64_t)l.n * l.columns;
    l.sizes.integers = l.n;
    l.sizes.work = l.lwork = at_least_one(BLOCK * l.n);
    l.one = call->op == TK_OP_inverse        ? invert
            : call->op == TK_OP_solve_square ? solve
                                             : solve_triangle;
    l.failure = "is singular";
    return run(&l);
}

/* ---- Cholesky ---- */

static void clear_above(const tk_linalg *l, char *a) {
    for (int64_t j = 1; j < l->n; j++)
        memset(a + j * l->n * (int64_t)l->bytes, 0, (size_t)j * l->bytes);
}

static int cholesky(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    int n = l->n, lead = at_least_one(n), info;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    clear_above(l, memory->a); /* not read, and must not count as not finite */
    if (!is_finite(l, memory)) {
        give_nan(l, index, (int[]){2});
        return 0;
    }
    l->lapack->potrf("L", &n, memory->a, &lead, &info, 1);
    tk_linalg_store(&l->call->outputs[0], index, memory->a, n);
    return info;
}

tk_status tk_body_cholesky(const tk_body_call *call) {
    tk_linalg l;
    if (call->outputs[0].size == 0) return TK_OK;
    TK_TRY(prepare(&l, call));
    l.one = cholesky;
    l.failure = "is not positive definite";
    return run(&l);
}

/* ---- QR ---- */

/* The upper triangle of the first rows, in memory->c. */
static void take_upper(const tk_linalg *l, const tk_linalg_memory *memory) {
    const char *a = memory->a;
    char *r = memory->c;
    int64_t bytes = (int64_t)l->bytes;
    memset(r, 0, (size_t)(l->least * (int64_t)l->n * bytes));
    for (int64_t j = 0; j < l->n; j++) {
        int64_t rows = j + 1 < l->least ? j + 1 : l->least;
        memcpy(r + j * l->least * bytes, a + j * l->m * bytes, (size_t)(rows * bytes));
    }
}

static int qr(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    int m = l->m, n = l->n, k = l->least, lead = at_least_one(m), info;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    l->lapack->geqrf(&m, &n, memory->a, &lead, memory->b, memory->work, &l->lwork, &info);
    take_upper(l, memory);
    if (info == 0)
        l->lapack->orgqr(&m, &k, &k, memory->a, &lead, memory->b, memory->work, &l->lwork, &info);
    tk_linalg_store(&l->call->outputs[0], index, memory->a, m);
    tk_linalg_store(&l->call->outputs[1], index, memory->c, k);
    return info;
}

/* The last columns of the whole orthogonal factor. */
static int complement(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    int m = l->m, n = l->n, lead = at_least_one(m), info;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    l->lapack->geqrf(&m, &n, memory->a, &lead, memory->b, memory->work, &l->lwork, &info);
    if (info == 0)
        l->lapack->orgqr(&m, &m, &n, memory->a, &lead, memory->b, memory->work, &l->lwork, &info);
    tk_linalg_store(&l->call->outputs[0], index,
                    (char *)memory->a + (int64_t)n * m * (int64_t)l->bytes, m);
    return info;
}

tk_status tk_body_qr(const tk_body_call *call) {
    tk_linalg l;
    bool rest = call->op == TK_OP_complement;
    if (call->outputs[0].size == 0 && (rest || call->outputs[1].size == 0)) return TK_OK;
    TK_TRY(prepare(&l, call));
    int wide = l.m > l.n ? l.m : l.n;
    if (rest) l.sizes.a = (int64_t)l.m * l.m;
    l.sizes.b = at_least_one(l.least);
    l.sizes.c = rest ? 0 : (int64_t)l.least * l.n;
    l.sizes.work = l.lwork = at_least_one(BLOCK * wide);
    l.one = rest ? complement : qr;
    l.failure = "could not be factorised";
    return run(&l);
}

/* ---- LU and determinants ---- */

static int lu(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    int m = l->m, n = l->n, lead = at_least_one(m), info;
    int *pivots = memory->integers, *order = pivots + l->least;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    l->lapack->getrf(&m, &n, memory->a, &lead, pivots, &info);
    tk_linalg_store(&l->call->outputs[0], index, memory->a, m);
    uint32_t *swapped = tk_linalg_place(&l->call->outputs[1], 1, index);
    uint32_t *rows = tk_linalg_place(&l->call->outputs[2], 1, index);
    for (int i = 0; i < m; i++) order[i] = i;
    for (int i = 0; i < l->least; i++) {
        int other = pivots[i] - 1, kept = order[i];
        swapped[i] = (uint32_t)other;
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < m; i++) rows[order[i]] = (uint32_t)i;
    return info < 0 ? info : 0;
}

static double diagonal_at(const tk_linalg *l, const void *a, int64_t i) {
    int64_t at = i * l->n + i;
    return l->dtype == TK_FLOAT64 ? ((const double *)a)[at] : (double)((const float *)a)[at];
}

static void put_real(const tk_strided *out, int64_t index, double value) {
    if (out->dtype == TK_FLOAT64)
        ((double *)out->data)[index] = value;
    else
        ((float *)out->data)[index] = (float)value;
}

static int determinant(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    int n = l->n, lead = at_least_one(n), info = 0;
    double product = 1, sign = 1, sum = 0;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    if (n) l->lapack->getrf(&n, &n, memory->a, &lead, memory->integers, &info);
    for (int i = 0; i < n; i++) {
        double value = diagonal_at(l, memory->a, i);
        if (memory->integers[i] != i + 1) product = -product, sign = -sign;
        product *= value;
        sign = value > 0 ? sign : value < 0 ? -sign : value == 0 ? 0 : value;
        sum += log(fabs(value));
    }
    bool is_log = l->call->op == TK_OP_slogdet_matrix;
    put_real(&l->call->outputs[0], index, is_log ? sign : product);
    if (is_log) put_real(&l->call->outputs[1], index, sum);
    return info < 0 ? info : 0;
}

tk_status tk_body_lu(const tk_body_call *call) {
    tk_linalg l;
    bool none = true;
    for (int i = 0; i < call->n_outputs; i++) none &= call->outputs[i].size == 0;
    if (none) return TK_OK;
    TK_TRY(prepare(&l, call));
    l.sizes.integers = l.least + l.m;
    l.one = call->op == TK_OP_lu_packed ? lu : determinant;
    l.failure = "could not be factorised";
    return run(&l);
}

/* ---- singular values ---- */

static bool has_vectors(const tk_linalg *l) { return l->call->op != TK_OP_svd_values; }

/* gesdd on memory->a: values in reals, vectors in b (m by least) and c (least by n). */
static int decompose(const tk_linalg *l, const tk_linalg_memory *memory, int lwork) {
    const char *job = has_vectors(l) ? "S" : "N";
    int m = l->m, n = l->n, lead_u = at_least_one(m), lead_v = at_least_one(l->least), info;
    if (l->dtype == TK_COMPLEX64)
        l->lapack->gesdd_complex(job, &m, &n, memory->a, &lead_u, memory->reals, memory->b, &lead_u,
                                 memory->c, &lead_v, memory->work, &lwork, memory->more_reals,
                                 memory->integers, &info, 1);
    else
        l->lapack->gesdd(job, &m, &n, memory->a, &lead_u, memory->reals, memory->b, &lead_u,
                         memory->c, &lead_v, memory->work, &lwork, memory->integers, &info, 1);
    return info;
}

static int singular_values(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    const tk_strided *outputs = l->call->outputs;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    if (!is_finite(l, memory)) {
        give_nan(l, index, has_vectors(l) ? (int[]){2, 1, 2} : (int[]){1});
        return 0;
    }
    int info = decompose(l, memory, l->lwork);
    const tk_strided *values = &outputs[has_vectors(l) ? 1 : 0];
    memcpy(tk_linalg_place(values, 1, index), memory->reals, (size_t)l->least * l->real_bytes);
    if (!has_vectors(l)) return info;
    tk_linalg_store(&outputs[0], index, memory->b, l->m);
    tk_linalg_store(&outputs[2], index, memory->c, l->least);
    return info;
}

static double real_at(const tk_linalg *l, const void *reals, int64_t i) {
    return l->dtype == TK_FLOAT64 ? ((const double *)reals)[i] : (double)((const float *)reals)[i];
}

static void scale_row(const tk_linalg *l, void *c, int64_t row, double factor) {
    for (int64_t j = 0; j < l->n; j++) {
        int64_t at = j * l->least + row;
        if (l->dtype == TK_FLOAT64)
            ((double *)c)[at] *= factor;
        else
            ((float *)c)[at] *= (float)factor;
    }
}

/* v diag(1 / s) u', where small s count as 0. */
static int pseudo_inverse(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    if (!is_finite(l, memory)) {
        give_nan(l, index, (int[]){2});
        return 0;
    }
    int info = decompose(l, memory, l->lwork);
    if (info != 0) return info;
    double eps = l->dtype == TK_FLOAT64 ? 0x1p-52 : 0x1p-23;
    double least = 10 * eps * (l->m > l->n ? l->m : l->n) * real_at(l, memory->reals, 0);
    for (int i = 0; i < l->least; i++) {
        double s = real_at(l, memory->reals, i);
        scale_row(l, memory->c, i, s > least ? 1 / s : 0);
    }
    tk_gemm_args args = {.dtype = l->dtype,
                         .m = l->n,
                         .n = l->m,
                         .k = l->least,
                         .a = memory->c,
                         .a_row = l->least,
                         .a_column = 1,
                         .b = memory->b,
                         .b_row = l->m,
                         .b_column = 1,
                         .c = tk_linalg_place(&l->call->outputs[0], 2, index),
                         .c_row = l->m,
                         .c_column = 1,
                         .alpha = 1};
    return tk_gemm(&args) == TK_OK ? 0 : -1;
}

static void size_svd(tk_linalg *l) {
    int64_t k = l->least, wide = l->m > l->n ? l->m : l->n;
    bool vectors = has_vectors(l);
    l->sizes.b = vectors ? (int64_t)l->m * k : 1;
    l->sizes.c = vectors ? (int64_t)l->n * k : 1;
    l->sizes.reals = at_least_one(l->least);
    l->sizes.integers = 8 * k + 1;
    if (l->dtype == TK_COMPLEX64) {
        int64_t square = 5 * k * k + 5 * k, both = 2 * wide * k + 2 * k * k + k;
        l->sizes.more_reals = (square > both ? square : both) + 7 * k + 1;
    }
    double asked[2] = {0}, reals[2] = {0};
    int unused = 0;
    tk_linalg_memory none = {.work = asked, .more_reals = reals, .integers = &unused};
    decompose(l, &none, -1);
    l->lwork = tk_linalg_wanted(l->dtype, asked);
    l->sizes.work = l->lwork;
}

tk_status tk_body_svd(const tk_body_call *call) {
    tk_linalg l;
    bool none = true;
    for (int i = 0; i < call->n_outputs; i++) none &= call->outputs[i].size == 0;
    if (none) return TK_OK;
    TK_TRY(prepare(&l, call));
    size_svd(&l);
    l.one = call->op == TK_OP_pinv_matrix ? pseudo_inverse : singular_values;
    l.failure = "has singular values that did not converge";
    return run(&l);
}

/* ---- eigenvalues of symmetric matrices ---- */

static int decompose_symmetric(const tk_linalg *l, const tk_linalg_memory *memory, int lwork,
                               int lreals, int lintegers) {
    const char *job = l->call->op == TK_OP_eigh_lower ? "V" : "N";
    int n = l->n, lead = at_least_one(n), info;
    if (l->dtype == TK_COMPLEX64)
        l->lapack->heevd(job, "L", &n, memory->a, &lead, memory->reals, memory->work, &lwork,
                         memory->more_reals, &lreals, memory->integers, &lintegers, &info, 1, 1);
    else
        l->lapack->syevd(job, "L", &n, memory->a, &lead, memory->reals, memory->work, &lwork,
                         memory->integers, &lintegers, &info, 1, 1);
    return info;
}

static int eigenvalues_symmetric(const tk_linalg *l, int64_t index,
                                 const tk_linalg_memory *memory) {
    const tk_strided *outputs = l->call->outputs;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    clear_above(l, memory->a);
    if (!is_finite(l, memory)) {
        give_nan(l, index, (int[]){1, 2});
        return 0;
    }
    int info =
        decompose_symmetric(l, memory, l->lwork, (int)l->sizes.more_reals, (int)l->sizes.integers);
    memcpy(tk_linalg_place(&outputs[0], 1, index), memory->reals, (size_t)l->n * l->real_bytes);
    if (l->call->op == TK_OP_eigh_lower) tk_linalg_store(&outputs[1], index, memory->a, l->n);
    return info;
}

static void size_symmetric(tk_linalg *l) {
    double work[2] = {0}, reals[2] = {0};
    int integers = 0;
    l->sizes.reals = at_least_one(l->n);
    tk_linalg_memory none = {.work = work, .more_reals = reals, .integers = &integers};
    decompose_symmetric(l, &none, -1, -1, -1);
    l->lwork = tk_linalg_wanted(l->dtype, work);
    l->sizes.work = l->lwork;
    l->sizes.more_reals = l->dtype == TK_COMPLEX64 ? tk_linalg_wanted(TK_FLOAT32, reals) : 0;
    l->sizes.integers = at_least_one(integers);
}

tk_status tk_body_eigh(const tk_body_call *call) {
    tk_linalg l;
    if (call->outputs[0].size == 0) return TK_OK;
    TK_TRY(prepare(&l, call));
    size_symmetric(&l);
    l.one = eigenvalues_symmetric;
    l.failure = "has eigenvalues that did not converge";
    return run(&l);
}

/* ---- eigenvalues of any matrix ---- */

/* Values in reals and more_reals (real operands) or b (complex ones), vectors in c. */
static int decompose_general(const tk_linalg *l, const tk_linalg_memory *memory, int lwork) {
    const char *right = l->call->op == TK_OP_eig_general ? "V" : "N";
    int n = l->n, lead = at_least_one(n), one = 1, info;
    if (l->dtype == TK_COMPLEX64)
        l->lapack->geev_complex("N", right, &n, memory->a, &lead, memory->b, NULL, &one, memory->c,
                                &lead, memory->work, &lwork, memory->reals, &info, 1, 1);
    else
        l->lapack->geev("N", right, &n, memory->a, &lead, memory->reals, memory->more_reals, NULL,
                        &one, memory->c, &lead, memory->work, &lwork, &info, 1, 1);
    return info;
}

/* Conjugate pairs of values have their vectors as two real columns: real and imaginary part. */
static void store_pairs(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    float *values = tk_linalg_place(&l->call->outputs[0], 1, index);
    int64_t n = l->n;
    for (int64_t j = 0; j < n; j++) {
        values[2 * j] = (float)real_at(l, memory->reals, j);
        values[2 * j + 1] = (float)real_at(l, memory->more_reals, j);
    }
    if (l->call->op != TK_OP_eig_general) return;
    float *vectors = tk_linalg_place(&l->call->outputs[1], 2, index);
    for (int64_t j = 0; j < n; j++) {
        double turn = real_at(l, memory->more_reals, j);
        int64_t first = turn < 0 ? j - 1 : j;
        for (int64_t i = 0; i < n; i++) {
            double re = real_at(l, memory->c, first * n + i);
            double im = turn == 0 ? 0 : real_at(l, memory->c, (first + 1) * n + i);
            vectors[2 * (i * n + j)] = (float)re;
            vectors[2 * (i * n + j) + 1] = (float)(turn < 0 ? -im : im);
        }
    }
}

static int eigenvalues_general(const tk_linalg *l, int64_t index, const tk_linalg_memory *memory) {
    const tk_strided *outputs = l->call->outputs;
    tk_linalg_load(&l->call->inputs[0], index, memory->a);
    if (!is_finite(l, memory)) {
        give_nan(l, index, (int[]){1, 2});
        return 0;
    }
    int info = decompose_general(l, memory, l->lwork);
    if (l->dtype != TK_COMPLEX64) {
        store_pairs(l, index, memory);
        return info;
    }
    memcpy(tk_linalg_place(&outputs[0], 1, index), memory->b, (size_t)l->n * l->bytes);
    if (l->call->op == TK_OP_eig_general) tk_linalg_store(&outputs[1], index, memory->c, l->n);
    return info;
}

tk_status tk_body_eig(const tk_body_call *call) {
    tk_linalg l;
    double asked[2] = {0}, reals[2] = {0}; /* a query writes to both */
    if (call->outputs[0].size == 0) return TK_OK;
    TK_TRY(prepare(&l, call));
    l.sizes.b = l.n;
    l.sizes.c = l.sizes.a;
    l.sizes.reals = 2 * (int64_t)l.n;
    l.sizes.more_reals = l.n;
    tk_linalg_memory none = {.work = asked, .reals = reals};
    decompose_general(&l, &none, -1);
    l.sizes.work = l.lwork = tk_linalg_wanted(l.dtype, asked);
    l.one = eigenvalues_general;
    l.failure = "has eigenvalues that did not converge";
    return run(&l);
}
