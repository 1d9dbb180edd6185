/* Products of the library in tests: matrices of a case, a run in the emulator, and the comparison
 * with sums in double within the bound of the kernel language. */
#ifndef SUPPORT_GEMM_RUN_H
#define SUPPORT_GEMM_RUN_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/library_run.h"
#include "support/says.h"

typedef struct product {
    int64_t batch, m, n, k; /* batch 0: matrices without a batch axis */
    tk_kscalar element, result;
    bool a_turned, b_turned;
    int64_t pad, skip;
    const char *schedule;
} product;

/* A matrix (or a batch of them), stored column by column when it is turned. */
static inline lib_tensor gemm_matrix(const product *p, tk_kscalar element, int64_t rows,
                                     int64_t columns, bool turned) {
    int rank = p->batch ? 3 : 2;
    int64_t shape[3] = {p->batch, turned ? columns : rows, turned ? rows : columns};
    static const int orders[2][3] = {{1, 0}, {0, 2, 1}};
    lib_tensor t = lib_make(element, rank, p->batch ? shape : shape + 1, p->pad, p->skip);
    if (turned) t.of = lib_permuted(&t.of, orders[rank - 2]);
    return t;
}

static inline void compare_gemm(const product *p, const lib_tensor *a, const lib_tensor *b,
                                const lib_tensor *d) {
    int64_t batch = p->batch ? p->batch : 1;
    double epsilon = p->result == TK_K_F32 ? 0 : lib_epsilon(p->result);
    for (int64_t i = 0; i < batch * p->m * p->n; i++) {
        int64_t row = i / p->n, column = i % p->n, first = row / p->m * p->k * p->n;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < p->k; k++) {
            double term = lib_get(a, row * p->k + k) * lib_get(b, first + k * p->n + column);
            sum += term, size += fabs(term);
        }
        double bound = (double)(p->k + 1) * 0x1p-22 * size + epsilon * fabs(sum) + 0x1p-24;
        double found = lib_get(d, i);
        if (!(fabs(found - sum) <= bound))
            fail_msg("%lld x %lld x %lld, element %lld: %g, expected %g", (long long)p->m,
                     (long long)p->n, (long long)p->k, (long long)i, found, sum);
    }
}

static inline void run_gemm(tk_library_id id, const product *p, uint64_t seed) {
    lib_tensor a = gemm_matrix(p, p->element, p->m, p->k, p->a_turned),
               b = gemm_matrix(p, p->element, p->k, p->n, p->b_turned),
               d = gemm_matrix(p, p->result, p->m, p->n, false);
    lib_tensor *tensors[] = {&a, &b, &d};
    lib_draw(&a, seed + 1);
    lib_draw(&b, seed + 2);
    lib_run(id, 3, tensors, 0, NULL, p->schedule, seed);
    compare_gemm(p, &a, &b, &d);
    for (int i = 0; i < 3; i++) lib_free(tensors[i]);
}

/* All ways of lying assemble; skipped where there is no ptxas. */
static inline void assemble_gemm(tk_library_id id, product p) {
    for (int way = 0; way < 4; way++) {
        p.a_turned = way & 1, p.b_turned = way & 2;
        lib_tensor a = gemm_matrix(&p, p.element, p.m, p.k, p.a_turned),
                   b = gemm_matrix(&p, p.element, p.k, p.n, p.b_turned),
                   d = gemm_matrix(&p, p.result, p.m, p.n, false);
        lib_tensor *tensors[] = {&a, &b, &d};
        bool found = lib_assemble(id, 3, tensors, 0, NULL, p.schedule);
        for (int i = 0; i < 3; i++) lib_free(tensors[i]);
        if (!found) skip();
    }
}

/* Each schedule is refused with a message that has the text behind it. */
static inline void refuse_schedules(tk_library_id id, const tk_library_tensor *list, size_t count,
                                    const char *const (*texts)[2]) {
    for (size_t i = 0; i < count; i++) {
        tk_library_schedule schedule;
        tk_library_plan *plan = NULL;
        assert_ok(tk_library_schedule_default(id, 3, list, &schedule));
        assert_ok(tk_library_schedule_read(id, texts[i][0], &schedule));
        assert_int_equal(tk_library_plan_create(id, 3, list, 0, NULL, &schedule, &plan),
                         TK_INVALID_ARGUMENT);
        assert_error_says(texts[i][1]);
    }
}

#endif
