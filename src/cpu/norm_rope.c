/* Rotary positions. Sines and cosines are made once a call for each (offset, row, pair) and serve
 * all heads: angles in f64, brought into one turn, then the f32 vector sine. So position 100,000 is
 * as exact as position 1, where an f32 angle would be off by a hundredth. */
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pool.h"
#include "cpu/norm_row.h"

typedef struct rope_job {
    const tk_rope_args *args;
    const char *x;
    char *out;
    void *cosine, *sine; /* [offset_count][length][dims / 2], the stat type */
    atomic_bool out_of_memory;
} rope_job;

static double frequency(const tk_rope_args *args, int64_t pair) {
    if (args->frequencies) return 1.0 / (double)args->frequencies[pair];
    return pow(args->base, -2.0 * (double)pair / (double)args->dims);
}

static void make_angles(const tk_rope_args *args, rope_job *job) {
    int64_t pairs = args->dims / 2;
    const double turn = 6.28318530717958647692;
    for (int64_t pair = 0; pair < pairs; pair++) {
        double step = frequency(args, pair) * args->scale;
        for (int64_t row = 0; row < args->offset_count * args->length; row++) {
            int64_t sequence = row / args->length;
            double position = (double)(row % args->length) + (double)args->offsets[sequence];
            double angle = position * step;
            int64_t at = row * pairs + pair;
            if (args->dtype == TK_FLOAT64) {
                ((double *)job->cosine)[at] = cos(angle);
                ((double *)job->sine)[at] = args->inverse ? -sin(angle) : sin(angle);
            } else {
                ((float *)job->cosine)[at] = (float)(angle - turn * rint(angle / turn));
            }
        }
    }
    if (args->dtype == TK_FLOAT64) return;
    int64_t count = args->offset_count * args->length * pairs;
    tk_vec_unary(TK_VEC_SIN, TK_FLOAT32, job->cosine, job->sine, count);
    tk_vec_unary(TK_VEC_COS, TK_FLOAT32, job->cosine, job->cosine, count);
    if (args->inverse) tk_vec_unary(TK_VEC_NEG, TK_FLOAT32, job->sine, job->sine, count);
}

#define ROTATE(name, type)                                                                         \
    static void name(const tk_rope_args *args, const type *x, type *out, const type *cosine,       \
                     const type *sine) {                                                           \
        int64_t pairs = args->dims / 2;                                                            \
        int64_t step = args->traditional ? 2 : 1, apart = args->traditional ? 1 : pairs;           \
        for (int64_t i = 0; i < pairs; i++) {                                                      \
            type first = x[i * step], second = x[i * step + apart];                                \
            out[i * step] = first * cosine[i] - second * sine[i];                                  \
            out[i * step + apart] = first * sine[i] + second * cosine[i];                          \
        }                                                                                          \
        if (x == out) return;                                                                      \
        for (int64_t i = args->dims; i < args->head_dim; i++) out[i] = x[i];                       \
    }
ROTATE(rotate_f32, float)
ROTATE(rotate_f64, double)

static void rotate_row(const rope_job *job, int64_t row, float *scratch) {
    const tk_rope_args *args = job->args;
    int64_t entry = row / args->length / args->heads, position = row % args->length;
    int64_t table = (args->offset_count == 1 ? 0 : entry) * args->length + position;
    int64_t angle = table * (args->dims / 2), at = row * args->head_dim;
    const void *x = tk_row_at(args->dtype, job->x, at);
    void *out = tk_row_out(args->dtype, job->out, at);
    if (args->dtype == TK_FLOAT64) {
        rotate_f64(args, x, out, (double *)job->cosine + angle, (double *)job->sine + angle);
        return;
    }
    const float *wide = tk_row_floats(args->dtype, x, args->head_dim, scratch);
    float *result = args->dtype == TK_FLOAT32 ? out : scratch;
    rotate_f32(args, wide, result, (float *)job->cosine + angle, (float *)job->sine + angle);
    if (result != out) tk_vec_convert(TK_FLOAT32, args->dtype, result, out, args->head_dim);
}

static void rotate_rows(void *arg, int64_t begin, int64_t end, int worker) {
    rope_job *job = arg;
    (void)worker;
    float *scratch = tk_malloc((size_t)job->args->head_dim * sizeof(float));
    if (!scratch) {
        atomic_store(&job->out_of_memory, true);
        return;
    }
    for (int64_t row = begin; row < end; row++) rotate_row(job, row, scratch);
    tk_free(scratch);
}

tk_status tk_cpu_rope(const tk_rope_args *args, const void *x, void *out) {
    assert(tk_dtype_is_float(args->dtype) && args->dims % 2 == 0 && args->dims <= args->head_dim);
    assert(args->offset_count == 1 || args->offset_count == args->batch);
    rope_job job = {.args = args, .x = x, .out = out};
    int64_t count = args->offset_count * args->length * (args->dims / 2);
    size_t bytes = (size_t)count * (args->dtype == TK_FLOAT64 ? sizeof(double) : sizeof(float));
    job.cosine = tk_malloc(2 * bytes + 1);
    if (!job.cosine) return tk_fail(TK_OUT_OF_MEMORY, "no memory for the angles of rope");
    job.sine = (char *)job.cosine + bytes;
    make_angles(args, &job);
    tk_parallel_for(args->batch * args->heads * args->length, tk_row_grain(args->head_dim),
                    rotate_rows, &job);
    tk_free(job.cosine);
    if (job.out_of_memory) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a row of rope");
    return TK_OK;
}
