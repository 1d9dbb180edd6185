/* What the CUDA runtime costs on a card: launches beside bare calls of the driver, buffers, copies,
 * graphs, loading from text and from the artifact cache.
 *
 * Host times are medians of 21 batches of 200, each batch drained before the next, with the fastest
 * beside it; the device is idle or faster than the host in all of them. The bare launch and ours
 * take turns. Device times are of events. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/card.h"
#include "runtime/artifact_cache.h"

#define BATCHES 21
#define REPEATS 200

static tk_queue *queue;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check(tk_status status) {
    if (status == TK_OK) return;
    printf("gpu_runtime: %s: %s\n", tk_status_name(status), tk_error_message());
    exit(1);
}

static void drain(void) { check(tk_cuda_queue_wait(queue, tk_cuda_queue_ticket(queue), NULL)); }

static void report(const char *what, double *microseconds, int count) {
    qsort(microseconds, (size_t)count, sizeof *microseconds, by_value);
    printf("%-52s %9.3f us  (fastest %.3f)\n", what, microseconds[count / 2], microseconds[0]);
}

/* ---- launches ---------------------------------------------------------------------------------
 */

typedef CUresult (*bare_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                unsigned, unsigned, CUstream, void **, void **);

typedef struct add_params {
    CUdeviceptr x, y, out;
    uint32_t n;
} add_params;

static bare_launch launch_bare;
static tk_cuda_prepared add;
static add_params params;
static tk_cuda_packing packing;

static void step_bare(void) {
    void *values[] = {&params.x, &params.y, &params.out, &params.n};
    launch_bare(add.function->handle, 1, 1, 1, 128, 1, 1, 0, queue->handle, values, NULL);
}

static void step_bare_ex(void) {
    void *values[] = {&params.x, &params.y, &params.out, &params.n};
    CUlaunchConfig config = {1, 1, 1, 128, 1, 1, 0, queue->handle, NULL, 0};
    cuda->api->launch(&config, add.function->handle, values, NULL);
}

static void step_ours(void) { check(tk_cuda_launch_run(&add, queue, NULL, &params)); }

static void step_packed(void) {
    const void *values[] = {&params.x, &params.y, &params.out, &params.n};
    _Alignas(8) unsigned char packed[28];
    tk_cuda_pack(&packing, values, packed);
    check(tk_cuda_launch_run(&add, queue, NULL, packed));
}

static void step_buffer(void) {
    tk_buffer *buffer;
    check(tk_buffer_new_on(device, queue, 4096, &buffer));
    tk_buffer_release(buffer);
}

static double batch(void (*step)(void)) {
    double begin = seconds();
    for (int i = 0; i < REPEATS; i++) step();
    double time = seconds() - begin;
    drain();
    return time * 1e6 / REPEATS;
}

/* The steps take turns, so that the machine's moods fall on all of them. */
static void bench_launches(void) {
    struct {
        const char *what;
        void (*step)(void);
        double times[BATCHES];
    } rows[] = {{"launch, bare cuLaunchKernel", step_bare, {0}},
                {"launch, bare cuLaunchKernelEx", step_bare_ex, {0}},
                {"launch", step_ours, {0}},
                {"launch with packing", step_packed, {0}},
                {"buffer of 4,096 bytes, taken and released", step_buffer, {0}}};
    enum { N = sizeof rows / sizeof rows[0] };
    for (int r = 0; r < N; r++) batch(rows[r].step);
    for (int b = 0; b < BATCHES; b++)
        for (int r = 0; r < N; r++) rows[r].times[b] = batch(rows[r].step);
    for (int r = 0; r < N; r++) report(rows[r].what, rows[r].times, BATCHES);
    printf("launch above bare cuLaunchKernel: %.3f us, with packing %.3f us\n",
           rows[2].times[BATCHES / 2] - rows[0].times[BATCHES / 2],
           rows[3].times[BATCHES / 2] - rows[0].times[BATCHES / 2]);
}

/* A launch of a kernel that does nothing and the wait for it. */
static void bench_round_trip(void) {
    double times[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        double begin = seconds();
        for (int i = 0; i < REPEATS; i++) {
            step_ours();
            drain();
        }
        times[b] = (seconds() - begin) * 1e6 / REPEATS;
    }
    report("launch and wait", times, BATCHES);
}

/* ---- device time ------------------------------------------------------------------------------
 */

static CUevent timing_event(void) {
    CUevent event;
    if (cuda->api->event_create(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) exit(1);
    return event;
}

static double device_milliseconds(void (*step)(void *arg), void *arg, int repeats) {
    CUevent begin = timing_event(), end = timing_event();
    double times[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        float elapsed;
        cuda->api->event_record(begin, queue->handle);
        for (int i = 0; i < repeats; i++) step(arg);
        cuda->api->event_record(end, queue->handle);
        if (cuda->api->event_synchronize(end) != CUDA_SUCCESS) exit(1);
        cuda->api->event_elapsed(&elapsed, begin, end);
        times[b] = (double)elapsed / repeats;
    }
    cuda->api->event_destroy(begin);
    cuda->api->event_destroy(end);
    qsort(times, BATCHES, sizeof *times, by_value);
    return times[BATCHES / 2];
}

static void launch_graph(void *arg) { check(tk_cuda_graph_launch(arg, queue)); }

static void bench_graph(void) {
    tk_cuda_graph *graph;
    check(tk_cuda_capture_begin(queue, &graph));
    for (int i = 0; i < 1000; i++) step_ours();
    check(tk_cuda_capture_end(graph));
    launch_graph(graph);
    drain();
    printf("%-52s %9.3f us\n", "graph of 1,000 kernels, each",
           device_milliseconds(launch_graph, graph, 1));
    tk_cuda_graph_release(graph);
}

typedef struct copy {
    tk_buffer *from, *to;
    size_t bytes;
} copy;

static void copy_once(void *arg) {
    const copy *at = arg;
    check(tk_cuda_copy_async(queue, at->to->data, at->from->data, at->bytes, TK_COPY_ON_DEVICE));
}

static void bench_copy_on_device(void) {
    copy large = {.bytes = (size_t)4 << 30};
    check(tk_buffer_new_on(device, queue, large.bytes, &large.from));
    check(tk_buffer_new_on(device, queue, large.bytes, &large.to));
    check(tk_cuda_fill(queue, address_of(large.from), 0x3f9d70a4, 4, large.bytes / 4));
    double milliseconds = device_milliseconds(copy_once, &large, 2);
    printf("%-52s %9.3f TB/s read and written\n", "copy on the device, 4 GiB",
           2e-9 * (double)large.bytes / milliseconds);
    tk_buffer_release(large.from);
    tk_buffer_release(large.to);
    tk_device_clear_cache(device);
}

/* ---- between host and device ------------------------------------------------------------------
 */

static void bench_transfers(void) {
    const size_t bytes = (size_t)256 << 20;
    char *host = malloc(bytes);
    void *pinned;
    tk_buffer *x;
    double up = 1e9, down = 1e9, pinned_up = 1e9;
    memset(host, 1, bytes);
    check(tk_cuda_pinned_new(cuda, bytes, &pinned));
    memset(pinned, 1, bytes);
    check(tk_buffer_new_on(device, queue, bytes, &x));
    for (int i = 0; i < 4; i++) {
        double begin = seconds();
        check(tk_cuda_upload(queue, address_of(x), host, bytes));
        drain();
        double middle = seconds();
        check(tk_cuda_download(queue, host, address_of(x), bytes, NULL));
        double end = seconds();
        check(tk_cuda_copy_async(queue, x->data, pinned, bytes, TK_COPY_TO_DEVICE));
        drain();
        if (middle - begin < up) up = middle - begin;
        if (end - middle < down) down = end - middle;
        if (seconds() - end < pinned_up) pinned_up = seconds() - end;
    }
    printf("%-52s %9.3f GB/s\n", "upload of 256 MiB", 1e-9 * (double)bytes / up);
    printf("%-52s %9.3f GB/s\n", "upload of 256 MiB, pinned", 1e-9 * (double)bytes / pinned_up);
    printf("%-52s %9.3f GB/s\n", "download of 256 MiB", 1e-9 * (double)bytes / down);
    tk_cuda_pinned_free(cuda, pinned);
    tk_buffer_release(x);
    free(host);
}

/* ---- loading ----------------------------------------------------------------------------------
 */

/* The driver keeps what it assembled; a comment that changes makes each text new to it. */
static void bench_loading(void) {
    double times[BATCHES];
    char text[sizeof card_ptx + 64];
    for (int b = 0; b < BATCHES; b++) {
        tk_cuda_module *module;
        tk_cuda_function *function;
        int length = snprintf(text, sizeof text, "%s// %d %ld\n", card_ptx, b, (long)getpid());
        double begin = seconds();
        check(tk_cuda_module_load(cuda, text, (size_t)length, "text", &module));
        check(tk_cuda_module_function(module, "add_f32", &function));
        times[b] = (seconds() - begin) * 1e6;
        tk_cuda_module_release(module);
    }
    report("text of 5 kernels to loaded function, by the driver", times, BATCHES);
}

/* A binary of 100 KiB as a stand-in for a kernel's: the time until its checked bytes are there. */
static void bench_artifact_cache(void) {
    char folder[] = "gpu-cache-XXXXXX";
    double times[BATCHES];
    tk_cache *cache;
    if (!mkdtemp(folder)) exit(1);
    tk_cache_options options = {.folder = folder};
    check(tk_cache_open(&options, &cache));
    static char binary[100 << 10];
    const tk_key_part parts[] = {{"kernel", "bench", 5}, {"text", card_ptx, sizeof card_ptx}};
    if (!tk_cache_put(cache, parts, 2, binary, sizeof binary)) exit(1);
    for (int b = 0; b < BATCHES; b++) {
        tk_cached found;
        double begin = seconds();
        check(tk_cache_get(cache, parts, 2, &found));
        times[b] = (seconds() - begin) * 1e6;
        free(found.bytes);
    }
    report("artifact of 100 KiB from the disk cache, checked", times, BATCHES);
    check(tk_cache_prune(cache, 0, NULL));
    tk_cache_close(cache);
    rmdir(folder);
}

static void prepare(void) {
    tk_buffer *x;
    tk_cuda_launch launch = {KERNEL("add_f32"), {1, 1, 1}, {0},   {128, 1, 1}, 0,
                             &card_add,         false,     false, "bench"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "cuLaunchKernel") : NULL;
    if (!symbol || !launch.function) exit(1);
    memcpy(&launch_bare, &symbol, sizeof symbol);
    check(tk_cuda_queue_open(cuda, &queue));
    check(tk_cuda_launch_prepare(&launch, &add));
    check(tk_buffer_new_on(device, queue, 4096, &x)); /* held until the end */
    params = (add_params){address_of(x), address_of(x), address_of(x), 128};
    for (int i = 0; i < 3; i++) check(tk_cuda_packing_add(&packing, 8, 8));
    check(tk_cuda_packing_add(&packing, 4, 4));
}

int main(void) {
    if (!open_card("gpu_runtime")) return CARD_SKIPPED;
    prepare();
    bench_launches();
    bench_round_trip();
    bench_graph();
    bench_copy_on_device();
    bench_transfers();
    bench_loading();
    bench_artifact_cache();
    return 0;
}
