/* Measuring the library's kernels on a card, beside a copy in the same run.
 *
 * Each buffer set is a graph node of its own, and the sets together are larger than any cache, so
 * that every run reads from memory. Rounds of the kernel and of a copy take turns; the medians are
 * what counts, since only the ratio holds from one card, clock and hour to another. */
#ifndef TIKI_BENCH_H
#define TIKI_BENCH_H

#include "tiki/library.h"

TK_BEGIN_DECLS

typedef struct tk_bench_spec {
    size_t size; /* sizeof(tk_bench_spec) */
    tk_library_id id;
    tk_kscalar element; /* of the tensors */
    /* Of the first operand: rows and columns, after leading axes; of a product M, N, K. */
    int rank;
    int64_t shape[TK_LIBRARY_MOST_AXES];
    const char *schedule; /* fields that differ from the default, "threads = 128"; may be NULL */
    int gpu;
    int rounds; /* 0: five */
} tk_bench_spec;

typedef struct tk_bench_result {
    double seconds;        /* of one run: median of the rounds */
    double fastest;        /* round */
    double copy_bandwidth; /* bytes a second, read and written, of a copy of 1 GiB: median */
    int64_t bytes;         /* that one run must move: each tensor once */
    int64_t flops;         /* of a product; else 0 */
    int sets;              /* buffer sets that take turns */
    double build_seconds;  /* from the call to the loaded functions: the first run, waited for */
    char schedule[256];    /* that was used, in words */
    char card[64];
} tk_bench_result;

/* Errors of the device, of the library's call, of the schedule; TK_UNSUPPORTED for kernels that are
 * no op of one shape (add, axpy, copy and fill count). */
TK_API tk_status tk_bench_kernel(const tk_bench_spec *spec, tk_bench_result *out_result);

/* The result as one line of JSON, without a line end; the caller frees it with tk_kernel_text_free.
 */
TK_API tk_status tk_bench_print(const tk_bench_spec *spec, const tk_bench_result *result,
                                char **out_text);

TK_END_DECLS

#endif
