/* The portable reduction; see body_reduce.h.
 *
 * An accumulator is a struct with the chunk's result in the widest type of its kind. Chunks are
 * combined by the counter scheme of pairwise summation: level k of a small stack holds the result
 * of 2^k chunks. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "base/pool.h"
#include "cpu/body_complex.h"
#include "cpu/body_copy.h"
#include "cpu/body_loop.h"
#include "cpu/body_reduce.h"

#define REDUCE_CHUNK 256
#define LEVELS 48
#define MANY_CHUNKS 256 /* that are worth a parallel loop inside one output */

typedef union value {
    float f32;
    double f64;
    int64_t i64;
    uint64_t u64;
    c64 c64;
} value;

/* Folds a run of elements into `total`; `first` means that there is nothing in it yet. */
typedef struct fold {
    value total;
    bool first;
} fold;
typedef void fold_fn(void *fold, char *const *data, const int64_t *strides, int64_t count);

#define SUM_F(a, b) ((a) + (b))
#define PROD_F(a, b) ((a) * (b))
#define MAX_F(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define MIN_F(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define SUM_S(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define PROD_S(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define MAX_I(a, b) ((a) > (b) ? (a) : (b))
#define MIN_I(a, b) ((a) < (b) ? (a) : (b))
#define OR(a, b) ((a) | (b))
#define AND(a, b) ((a) & (b))

/* A fold of elements of type T, widened by `load`, into member `field`. */
#define FOLD(name, T, load, A, field, combine)                                                     \
    static void name(void *arg, char *const *data, const int64_t *strides, int64_t count) {        \
        fold *f = arg;                                                                             \
        const char *x = data[0];                                                                   \
        A total = f->first ? load(*(const T *)x) : combine(f->total.field, load(*(const T *)x));   \
        for (int64_t i = 1; i < count; i++) {                                                      \
            x += strides[0];                                                                       \
            A next = load(*(const T *)x);                                                          \
            total = combine(total, next);                                                          \
        }                                                                                          \
        f->total.field = total;                                                                    \
        f->first = false;                                                                          \
    }
#define FOLDS(suffix, T, load, A, field, sum, prod, max, min)                                      \
    FOLD(sum_##suffix, T, load, A, field, sum)                                                     \
    FOLD(prod_##suffix, T, load, A, field, prod)                                                   \
    FOLD(max_##suffix, T, load, A, field, max)                                                     \
    FOLD(min_##suffix, T, load, A, field, min)                                                     \
    static fold_fn *const folds_##suffix[] = {sum_##suffix, prod_##suffix, max_##suffix,           \
                                              min_##suffix};

#define SAME(x) (x)
#define TRUTH(x) ((x) != 0)
FOLDS(f16, uint16_t, tk_f16_to_f32, float, f32, SUM_F, PROD_F, MAX_F, MIN_F)
FOLDS(bf16, uint16_t, tk_bf16_to_f32, float, f32, SUM_F, PROD_F, MAX_F, MIN_F)
FOLDS(f32, float, SAME, float, f32, SUM_F, PROD_F, MAX_F, MIN_F)
FOLDS(f64, double, SAME, double, f64, SUM_F, PROD_F, MAX_F, MIN_F)
FOLDS(i8, int8_t, SAME, int64_t, i64, SUM_S, PROD_S, MAX_I, MIN_I)
FOLDS(i16, int16_t, SAME, int64_t, i64, SUM_S, PROD_S, MAX_I, MIN_I)
FOLDS(i32, int32_t, SAME, int64_t, i64, SUM_S, PROD_S, MAX_I, MIN_I)
FOLDS(i64, int64_t, SAME, int64_t, i64, SUM_S, PROD_S, MAX_I, MIN_I)
FOLDS(u8, uint8_t, SAME, uint64_t, u64, SUM_F, PROD_F, MAX_I, MIN_I)
FOLDS(u16, uint16_t, SAME, uint64_t, u64, SUM_F, PROD_F, MAX_I, MIN_I)
FOLDS(u32, uint32_t, SAME, uint64_t, u64, SUM_F, PROD_F, MAX_I, MIN_I)
FOLDS(u64, uint64_t, SAME, uint64_t, u64, SUM_F, PROD_F, MAX_I, MIN_I)
FOLDS(truth, uint8_t, TRUTH, uint64_t, u64, OR, AND, OR, AND)
FOLDS(c64, c64, SAME, c64, c64, c64_add, c64_multiply, c64_maximum, c64_minimum)

static fold_fn *const *const folds[TK_DTYPE_COUNT] = {
    [TK_BOOL] = folds_truth,  [TK_UINT8] = folds_u8,      [TK_UINT16] = folds_u16,
    [TK_UINT32] = folds_u32,  [TK_UINT64] = folds_u64,    [TK_INT8] = folds_i8,
    [TK_INT16] = folds_i16,   [TK_INT32] = folds_i32,     [TK_INT64] = folds_i64,
    [TK_FLOAT16] = folds_f16, [TK_BFLOAT16] = folds_bf16, [TK_FLOAT32] = folds_f32,
    [TK_FLOAT64] = folds_f64, [TK_COMPLEX64] = folds_c64};

/* The dtype of `value` that a dtype accumulates in. */
static tk_dtype accumulator_of(tk_dtype dtype) {
    switch (tk_dtype_kind(dtype)) {
    case TK_KIND_SIGNED:
        return TK_INT64;
    case TK_KIND_FLOAT:
        return dtype == TK_FLOAT64 ? TK_FLOAT64 : TK_FLOAT32;
    case TK_KIND_COMPLEX:
        return TK_COMPLEX64;
    default:
        return TK_UINT64;
    }
}

typedef struct reduction {
    fold_fn *element, *partial; /* of operands, of accumulators */
    tk_dtype accumulator;
    tk_loop line; /* the reduced axes; operand 0: in */
    int64_t chunks;
} reduction;

static value reduce_chunk(const reduction *r, char *data, int64_t chunk) {
    tk_loop line = r->line;
    line.data[0] = data;
    int64_t begin = chunk * REDUCE_CHUNK, end = begin + REDUCE_CHUNK;
    fold f = {.first = true};
    tk_loop_range(&line, begin, end < line.size ? end : line.size, r->element, &f);
    return f.total;
}

/* ---- pairs ---- */

typedef struct pairs {
    value levels[LEVELS];
    uint64_t count;
} pairs;

static value combine(const reduction *r, value a, value b) {
    fold f = {a, false};
    char *data[TK_LOOP_OPERANDS] = {(char *)&b};
    int64_t strides[TK_LOOP_OPERANDS] = {0};
    r->partial(&f, data, strides, 1);
    return f.total;
}

static void pairs_push(const reduction *r, pairs *p, value v) {
    int level = 0;
    for (uint64_t bits = p->count++; bits & 1; bits >>= 1) v = combine(r, p->levels[level++], v);
    p->levels[level] = v;
}

static value pairs_total(const reduction *r, const pairs *p) {
    int level = __builtin_ctzll(p->count);
    value total = p->levels[level];
    for (uint64_t bits = p->count >> (level + 1); bits; bits >>= 1) {
        level++;
        if (bits & 1) total = combine(r, p->levels[level], total);
    }
    return total;
}

static value reduce_line(const reduction *r, char *data) {
    if (r->chunks == 1) return reduce_chunk(r, data, 0);
    pairs p = {.count = 0};
    for (int64_t chunk = 0; chunk < r->chunks; chunk++)
        pairs_push(r, &p, reduce_chunk(r, data, chunk));
    return pairs_total(r, &p);
}

/* ---- many outputs, or one at a time ---- */

typedef struct outputs {
    const reduction *reduction;
    tk_dtype dtype;
    value *partial;
    char *data;
} outputs;

static void store(const outputs *o, value v, char *out) {
    tk_convert_run(o->reduction->accumulator, o->dtype, &v, out, 1);
}

static void reduce_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    const outputs *o = arg;
    for (int64_t i = 0; i < count; i++)
        store(o, reduce_line(o->reduction, data[1] + i * strides[1]), data[0] + i * strides[0]);
}

static void partial_part(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const outputs *o = arg;
    for (int64_t chunk = begin; chunk < end; chunk++)
        o->partial[chunk] = reduce_chunk(o->reduction, o->data, chunk);
}

static void reduce_split_run(void *arg, char *const *data, const int64_t *strides, int64_t count) {
    outputs *o = arg;
    const reduction *r = o->reduction;
    for (int64_t i = 0; i < count; i++) {
        o->data = data[1] + i * strides[1];
        tk_parallel_for(r->chunks, 64, partial_part, o);
        pairs p = {.count = 0};
        for (int64_t chunk = 0; chunk < r->chunks; chunk++) pairs_push(r, &p, o->partial[chunk]);
        store(o, pairs_total(r, &p), data[0] + i * strides[0]);
    }
}

static int fold_of(tk_op op) {
    switch (op) {
    case TK_OP_reduce_sum:
        return 0;
    case TK_OP_reduce_prod:
        return 1;
    case TK_OP_reduce_max:
    case TK_OP_reduce_any:
        return 2;
    default:
        return 3;
    }
}

static tk_loop loop_of_axes(const tk_strided *view, int first, int last) {
    tk_loop loop = tk_loop_over(last - first, view->shape + first);
    tk_loop_add_raw(&loop, view->data, view->strides + first, tk_dtype_size(view->dtype));
    return loop;
}

tk_status tk_reduce_portable(tk_op op, const tk_strided *in, const tk_strided *out, tk_axes axes) {
    tk_strided from = *in, to = *out;
    int n_kept = tk_view_axes_last(&from, axes);
    tk_view_axes_last(&to, axes);
    reduction r = {.accumulator = accumulator_of(in->dtype)};
    r.element = folds[in->dtype][fold_of(op)];
    r.partial = in->dtype == TK_BOOL ? folds_u64[fold_of(op) & 1 ? 3 : 2]
                                     : folds[r.accumulator][fold_of(op)];
    r.line = loop_of_axes(&from, n_kept, from.rank);
    tk_loop_collapse(&r.line);
    r.chunks = tk_chunk_count(r.line.size, REDUCE_CHUNK);
    tk_loop kept = loop_of_axes(&to, 0, n_kept);
    tk_loop_add_raw(&kept, from.data, from.strides, tk_dtype_size(in->dtype));
    tk_loop_collapse(&kept);
    outputs o = {.reduction = &r, .dtype = out->dtype};
    if (r.chunks < MANY_CHUNKS || kept.size >= tk_pool_threads()) {
        tk_loop_each(&kept, 1 + 4096 / r.line.size, reduce_run, &o);
        return TK_OK;
    }
    void *partial;
    TK_TRY(tk_scratch_new(r.chunks, sizeof *o.partial, &partial));
    o.partial = partial;
    tk_loop_range(&kept, 0, kept.size, reduce_split_run, &o);
    tk_free(partial);
    return TK_OK;
}
