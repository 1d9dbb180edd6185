/* What the runtime's own steps cost: a small loop on the pool, a buffer, a task on a stream.
 *
 * Each line is the median of 21 batches, with the fastest beside it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"

#define BATCHES 21

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *what, int repeats, void (*step)(void *arg, int repeats),
                    void *arg) {
    double nanoseconds[BATCHES];
    step(arg, repeats);
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = seconds();
        step(arg, repeats);
        nanoseconds[batch] = (seconds() - begin) * 1e9 / repeats;
    }
    qsort(nanoseconds, BATCHES, sizeof *nanoseconds, by_value);
    printf("%-52s %10.0f ns  (fastest %.0f)\n", what, nanoseconds[BATCHES / 2], nanoseconds[0]);
}

/* ---- pool -------------------------------------------------------------------------------------
 */

static void touch(void *arg, int64_t begin, int64_t end, int worker) {
    (void)end;
    ((volatile char *)arg)[worker * 64] = (char)begin;
}

static void small_loops(void *arg, int repeats) {
    static char lines[TK_POOL_MAX_THREADS * 64];
    for (int i = 0; i < repeats; i++) tk_parallel_for(1 << 20, *(int *)arg, touch, lines);
}

static void loops_after_a_pause(void *arg, int repeats) {
    for (int i = 0; i < repeats; i++) {
        usleep(200);
        small_loops(arg, 1);
    }
}

static void pauses(void *arg, int repeats) {
    (void)arg;
    for (int i = 0; i < repeats; i++) usleep(200);
}

static void scale(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    float *values = arg;
    for (int64_t i = begin; i < end; i++) values[i] *= 1.0001f;
}

static void scale_on_one_thread(void *arg, int repeats) {
    for (int i = 0; i < repeats; i++) tk_parallel_for(1 << 16, 1 << 16, scale, arg);
}

static void scale_on_the_pool(void *arg, int repeats) {
    for (int i = 0; i < repeats; i++) tk_parallel_for(1 << 16, 4096, scale, arg);
}

static void measure_pool(void) {
    int inline_grain = 1 << 20, split_grain = 1;
    printf("pool: %d threads\n", tk_pool_threads());
    measure("loop run inline (count <= grain)", 100000, small_loops, &inline_grain);
    measure("empty loop cut for all threads, back to back", 10000, small_loops, &split_grain);
    measure("  pause of 200 us alone", 100, pauses, NULL);
    measure("  the same with an empty loop after it", 100, loops_after_a_pause, &split_grain);
    float *values = calloc(1 << 16, sizeof *values);
    if (!values) return;
    measure("65,536 floats scaled on one thread", 1000, scale_on_one_thread, values);
    measure("65,536 floats scaled on the pool", 1000, scale_on_the_pool, values);
    free(values);
}

int main(void) {
    measure_pool();
    return 0;
}
