/* Kernels of the library on a card: a line of JSON each. bench/gpu_peers.py measures others' in the
 * same way.
 *
 * usage: gpu_kernels [NAME | @FILE [SECONDS]]
 *
 * NAME: the cases of one kernel. FILE: other cases, a line each, to choose schedules by:
 *
 *     softmax bf16 4096x32768 threads_per_row = 256, held = 4, cluster = 4
 *
 * No case of a file begins when the seconds are over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>

#include "tiki/bench.h"
#include "tiki/gpu.h"

typedef struct bench_case {
    tk_library_id id;
    tk_kscalar element;
    int rank;
    int64_t shape[3];
} bench_case;

#define MIB_256 ((int64_t)1 << 27) /* elements of two bytes */
#define ROWS(id, element, columns)                                                                 \
    {                                                                                              \
        TK_LIBRARY_##id, TK_K_##element, 2, { MIB_256 / (columns), columns }                       \
    }

static const bench_case cases[] = {
    {TK_LIBRARY_COPY, TK_K_F32, 2, {16384, 16384}},
    {TK_LIBRARY_ADD, TK_K_F32, 2, {16384, 8192}},
    {TK_LIBRARY_RMS_NORM, TK_K_F16, 2, {32768, 4096}},
    {TK_LIBRARY_RMS_NORM_BACKWARD, TK_K_F16, 2, {32768, 4096}},
    {TK_LIBRARY_RMS_NORM, TK_K_F32, 2, {2048, 4096}},
    {TK_LIBRARY_RMS_NORM, TK_K_F32, 2, {8192, 64}},
    {TK_LIBRARY_RMS_NORM, TK_K_F32, 2, {8192, 16}},
    {TK_LIBRARY_TRANSPOSE, TK_K_F32, 2, {16384, 16384}},
    ROWS(SOFTMAX, BF16, 256),
    ROWS(SOFTMAX, BF16, 1024),
    ROWS(SOFTMAX, BF16, 4096),
    ROWS(SOFTMAX, BF16, 32768),
    ROWS(SOFTMAX, BF16, 131072),
    ROWS(SOFTMAX_BACKWARD, BF16, 256),
    ROWS(SOFTMAX_BACKWARD, BF16, 1024),
    ROWS(SOFTMAX_BACKWARD, BF16, 4096),
    ROWS(SOFTMAX_BACKWARD, BF16, 32768),
    ROWS(SOFTMAX_BACKWARD, BF16, 131072),
    {TK_LIBRARY_COLUMN_SUM, TK_K_F32, 2, {32768, 4096}},
    {TK_LIBRARY_COLUMN_SUM, TK_K_BF16, 2, {32768, 4096}},
    {TK_LIBRARY_GEMM, TK_K_BF16, 3, {4096, 4096, 4096}},
    {TK_LIBRARY_HOPPER_GEMM, TK_K_BF16, 3, {2048, 2048, 2048}},
    {TK_LIBRARY_HOPPER_GEMM, TK_K_BF16, 3, {4096, 4096, 4096}},
    {TK_LIBRARY_HOPPER_GEMM, TK_K_BF16, 3, {8192, 8192, 8192}},
};

static int run(const bench_case *c, const char *schedule, int rounds) {
    tk_bench_spec spec = {.size = sizeof spec,
                          .id = c->id,
                          .element = c->element,
                          .rank = c->rank,
                          .schedule = schedule,
                          .rounds = rounds};
    tk_bench_result result;
    char *line = NULL;
    memcpy(spec.shape, c->shape, sizeof c->shape);
    if (tk_bench_kernel(&spec, &result) != TK_OK ||
        tk_bench_print(&spec, &result, &line) != TK_OK) {
        printf("%s %s: %s\n", tk_library_name(c->id), schedule ? schedule : "", tk_error_message());
        fflush(stdout);
        return 1;
    }
    puts(line);
    fflush(stdout);
    tk_kernel_text_free(line);
    return 0;
}

/* ---- cases of a file ---- */

static tk_kscalar element_of(const char *name) {
    return !strcmp(name, "f16") ? TK_K_F16 : !strcmp(name, "bf16") ? TK_K_BF16 : TK_K_F32;
}

static int run_line(const char *line) {
    char name[64], dtype[16], shape[64], schedule[256] = "";
    bench_case c = {0};
    if (sscanf(line, "%63s %15s %63s %255[^\n]", name, dtype, shape, schedule) < 3) return 0;
    if (tk_library_find(name, &c.id) != TK_OK) {
        printf("%s\n", tk_error_message());
        return 1;
    }
    c.element = element_of(dtype);
    c.rank = sscanf(shape, "%ldx%ldx%ld", &c.shape[0], &c.shape[1], &c.shape[2]);
    return run(&c, schedule, 3);
}

static int run_file(const char *path, double seconds) {
    char line[512];
    int failed = 0;
    time_t begin = time(NULL);
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s: no such file\n", path);
        return 1;
    }
    while (fgets(line, sizeof line, file)) {
        if (seconds > 0 && difftime(time(NULL), begin) > seconds) break;
        failed |= run_line(line);
    }
    fclose(file);
    return failed;
}

int main(int argc, char **argv) {
    tk_gpu_info info;
    int failed = 0;
    if (tk_gpu_describe(0, &info) != TK_OK) {
        printf("gpu_kernels: skipped, %s\n", tk_error_message());
        return 77;
    }
    printf("# %s, driver of CUDA %d.%d\n", info.name, info.driver / 1000, info.driver % 1000 / 10);
    if (argc > 1 && argv[1][0] == '@')
        return run_file(argv[1] + 1, argc > 2 ? strtod(argv[2], NULL) : 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc < 2 || strstr(tk_library_name(cases[i].id), argv[1]))
            failed |= run(&cases[i], NULL, 0);
    return failed;
}
