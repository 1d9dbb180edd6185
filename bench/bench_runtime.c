/* What the runtime's own steps cost: a small loop on the pool, a buffer, a task on a stream.
 *
 * Each line is the median of 21 batches, with the fastest beside it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"
#include "runtime/buffer.h"
#include "runtime/trace.h"

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

/* ---- memory -----------------------------------------------------------------------------------
 */

struct allocation {
    tk_device *device;
    size_t bytes;
};

static void take_and_release(void *arg, int repeats) {
    struct allocation *allocation = arg;
    for (int i = 0; i < repeats; i++) {
        tk_buffer *buffer;
        if (tk_buffer_new(allocation->device, allocation->bytes, &buffer) != TK_OK) return;
        tk_buffer_release(buffer);
    }
}

static void malloc_and_free(void *arg, int repeats) {
    struct allocation *allocation = arg;
    for (int i = 0; i < repeats; i++) {
        volatile char *memory = malloc(allocation->bytes);
        if (memory) *memory = 1;
        free((void *)memory);
    }
}

static void write_fresh_buffer(void *arg, int repeats) {
    struct allocation *allocation = arg;
    for (int i = 0; i < repeats; i++) {
        tk_buffer *buffer;
        if (tk_buffer_new(allocation->device, allocation->bytes, &buffer) != TK_OK) return;
        memset(buffer->data, i, allocation->bytes);
        tk_buffer_release(buffer);
        tk_device_clear_cache(allocation->device);
    }
}

static void *take_on_a_thread(void *arg) {
    take_and_release(arg, 10000);
    return NULL;
}

static void take_on_eight_threads(void *arg, int repeats) {
    pthread_t threads[8];
    int started = 0;
    while (started < 8 && !pthread_create(&threads[started], NULL, take_on_a_thread, arg))
        started++;
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    (void)repeats; /* the caller counts the 80,000 buffers */
}

static void measure_memory(tk_device *device) {
    struct allocation small = {device, 1000}, large = {device, (size_t)64 << 20};
    measure("buffer of 1,000 bytes, taken and released", 100000, take_and_release, &small);
    measure("buffer of 64 MiB, taken and released", 100000, take_and_release, &large);
    measure("malloc and free of 1,000 bytes", 100000, malloc_and_free, &small);
    measure("buffer of 1,000 bytes, 8 threads, each", 80000, take_on_eight_threads, &small);
    measure("fresh 64 MiB, written once, given back", 1, write_fresh_buffer, &large);
}

/* ---- streams and trace ------------------------------------------------------------------------
 */

static tk_status nothing(void *arg) {
    (void)arg;
    return TK_OK;
}

static void submit_and_wait(void *arg, int repeats) {
    for (int i = 0; i < repeats; i++) {
        if (tk_stream_submit(arg, nothing, NULL) != TK_OK) return;
        if (tk_stream_wait(arg, NULL) != TK_OK) return;
    }
}

static void submit_many(void *arg, int repeats) {
    for (int i = 0; i < repeats; i++)
        if (tk_stream_submit(arg, nothing, NULL) != TK_OK) return;
    if (tk_stream_wait(arg, NULL) != TK_OK) return;
}

static void run_inline(void *arg, int repeats) {
    for (int i = 0; i < repeats; i++) {
        bool ran;
        if (tk_stream_run_inline_if_idle(arg, nothing, NULL, &ran) != TK_OK) return;
    }
}

static void record_spans(void *arg, int repeats) {
    (void)arg;
    for (int i = 0; i < repeats; i++) tk_trace_end(tk_trace_begin(), "bench", "span", NULL);
}

static void measure_streams(tk_device *device) {
    tk_stream *stream;
    if (tk_stream_open(device, &stream) != TK_OK) return;
    measure("task run inline on an idle stream", 100000, run_inline, stream);
    measure("task submitted and waited for", 1000, submit_and_wait, stream);
    measure("task submitted, 10,000 at a time", 10000, submit_many, stream);
    tk_stream_close(stream);
    measure("span, trace off", 100000, record_spans, NULL);
    if (tk_trace_start("/dev/null") != TK_OK) return;
    measure("span, trace on", 10000, record_spans, NULL);
    if (tk_trace_stop() != TK_OK) return;
}

int main(void) {
    tk_device *device;
    if (tk_device_open(&tk_driver_cpu, 0, NULL, &device) != TK_OK) return 1;
    measure_pool();
    measure_memory(device);
    measure_streams(device);
    tk_device_close(device);
    return 0;
}
