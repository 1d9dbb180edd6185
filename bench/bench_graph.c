/* What a node costs: building and freeing a chain of broadcasting adds, and evaluating small
 * expressions. Limits: 0.3 us a node for the chain of 10,000. A figure is the best of several
 * rounds. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tiki/array.h"

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tk_array chain(tk_array x, tk_array row, int length) {
    tk_scope scope = tk_scope_open(tk_array_context(x));
    tk_array y = x;
    for (int i = 0; i < length; i++) y = tk_add(y, row);
    y = tk_keep(y);
    tk_scope_close(scope);
    return y;
}

static void time_chain(tk_context *ctx, int length) {
    tk_array x = tk_zeros(ctx, TK_SHAPE(4, 8), TK_FLOAT32),
             row = tk_ones(ctx, TK_SHAPE(8), TK_FLOAT32);
    double best = 1e9;
    for (int round = 0; round < 30; round++) {
        double begin = seconds();
        tk_release(chain(x, row, length));
        double took = seconds() - begin;
        if (took < best) best = took;
    }
    printf("chain of %d broadcasting adds, built and freed: %.3f us a node\n", length,
           best / length * 1e6);
    tk_release(x);
    tk_release(row);
}

static void time_small_eval(tk_context *ctx) {
    float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    tk_array a = tk_from_data(ctx, values, TK_SHAPE(8), TK_FLOAT32),
             b = tk_from_data(ctx, values, TK_SHAPE(8), TK_FLOAT32);
    double best = 1e9;
    int calls = 2000;
    for (int round = 0; round < 10; round++) {
        double begin = seconds();
        for (int i = 0; i < calls; i++) {
            tk_array sum = tk_add(a, b);
            if (tk_eval(sum) != TK_OK) abort();
            tk_release(sum);
        }
        double took = (seconds() - begin) / calls;
        if (took < best) best = took;
    }
    printf("a + b of 8 floats, built, evaluated and freed: %.3f us\n", best * 1e6);
    tk_release(a);
    tk_release(b);
}

int main(void) {
    tk_context *ctx;
    if (tk_context_create(NULL, &ctx) != TK_OK) {
        fprintf(stderr, "%s\n", tk_error_message());
        return 1;
    }
    time_chain(ctx, 100);
    time_chain(ctx, 10000);
    time_small_eval(ctx);
    tk_context_release(ctx);
    return 0;
}
