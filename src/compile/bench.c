/* See bench.h. One set of buffers is one serial node (or as many as the plan has launches); a graph
 * goes once over all sets, and is launched so often that a round takes milliseconds. */
#include "tiki/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "compile/plans.h"
#include "runtime/cuda_copy.h"
#include "runtime/cuda_graph.h"
#include "runtime/trace.h"

#define ROTATED_BYTES ((size_t)384 << 20)
#define COPY_BYTES ((size_t)1 << 30)
#define MOST_SETS 256
#define MOST_ROUNDS 15
#define MOST_TENSORS 6
#define ROUND_SECONDS 0.02

typedef struct bench {
    const tk_bench_spec *spec;
    tk_bench_result *result;
    tk_device *device;
    tk_cuda *cuda;
    tk_queue *queue;
    size_t n_tensors;
    tk_strided tensors[MOST_TENSORS];
    size_t bytes[MOST_TENSORS], set_bytes, copy_bytes;
    tk_library_schedule schedule;
    tk_buffer *buffers[MOST_SETS];
    tk_buffer *copies[2];
    int n_sets;
    tk_cuda_graph *graph;
    CUevent begin, end;
} bench;

/* ---- the call ---- */

static tk_dtype dtype_of(tk_kscalar element) {
    return element == TK_K_F16 ? TK_FLOAT16 : element == TK_K_BF16 ? TK_BFLOAT16 : TK_FLOAT32;
}

static void set_tensor(tk_strided *out, tk_dtype dtype, int rank, const int64_t *shape) {
    *out = (tk_strided){.dtype = dtype, .rank = rank, .size = 1};
    for (int axis = rank - 1; axis >= 0; axis--) {
        out->shape[axis] = shape[axis];
        out->strides[axis] = out->size;
        out->size *= shape[axis];
    }
}

static void set_products(bench *b, tk_dtype dtype) {
    const int64_t *s = b->spec->shape;
    set_tensor(&b->tensors[0], dtype, 2, (const int64_t[]){s[0], s[2]});
    set_tensor(&b->tensors[1], dtype, 2, (const int64_t[]){s[2], s[1]});
    set_tensor(&b->tensors[2], dtype, 2, (const int64_t[]){s[0], s[1]});
    b->result->flops = 2 * s[0] * s[1] * s[2];
}

static bool is_product(tk_library_id id) {
    return id == TK_LIBRARY_GEMM || id == TK_LIBRARY_HOPPER_GEMM;
}

/* Every tensor like the first one but for those named here. */
static tk_status set_tensors(bench *b) {
    const tk_bench_spec *s = b->spec;
    tk_dtype dtype = dtype_of(s->element);
    b->n_tensors = tk_library_tensors(s->id);
    if (is_product(s->id)) {
        if (s->rank != 3) return tk_fail(TK_SHAPE_ERROR, "a product has the shape MxNxK");
        set_products(b, dtype);
        return TK_OK;
    }
    for (size_t i = 0; i < b->n_tensors; i++) set_tensor(&b->tensors[i], dtype, s->rank, s->shape);
    const int64_t *columns = &s->shape[s->rank - 1];
    if (s->id == TK_LIBRARY_RMS_NORM) {
        set_tensor(&b->tensors[1], dtype, 1, columns);
        b->tensors[3].rank = -1;
    }
    if (s->id == TK_LIBRARY_RMS_NORM_BACKWARD) {
        set_tensor(&b->tensors[1], dtype, 1, columns);
        set_tensor(&b->tensors[4], dtype, 1, columns);
    }
    if (s->id == TK_LIBRARY_COLUMN_SUM) set_tensor(&b->tensors[1], dtype, 1, columns);
    if (s->id == TK_LIBRARY_TRANSPOSE && s->rank >= 2) {
        int64_t turned[TK_LIBRARY_MOST_AXES];
        memcpy(turned, s->shape, sizeof turned);
        turned[s->rank - 2] = s->shape[s->rank - 1];
        turned[s->rank - 1] = s->shape[s->rank - 2];
        set_tensor(&b->tensors[1], dtype, s->rank, turned);
    }
    return TK_OK;
}

static tk_status set_schedule(bench *b) {
    tk_library_tensor tensors[MOST_TENSORS];
    char *words;
    for (size_t i = 0; i < b->n_tensors; i++) tk_library_tensor_of(&b->tensors[i], &tensors[i]);
    TK_TRY(tk_library_schedule_default(b->spec->id, b->n_tensors, tensors, &b->schedule));
    if (b->spec->schedule)
        TK_TRY(tk_library_schedule_read(b->spec->id, b->spec->schedule, &b->schedule));
    TK_TRY(tk_library_schedule_print(b->spec->id, &b->schedule, &words));
    snprintf(b->result->schedule, sizeof b->result->schedule, "%s", words);
    tk_kernel_text_free(words);
    return TK_OK;
}

static void count_bytes(bench *b) {
    for (size_t i = 0; i < b->n_tensors; i++) {
        if (b->tensors[i].rank < 0) continue;
        b->bytes[i] = (size_t)b->tensors[i].size * tk_dtype_size(b->tensors[i].dtype);
        b->set_bytes += (b->bytes[i] + 255) / 256 * 256;
        b->result->bytes += (int64_t)b->bytes[i];
    }
    size_t memory = b->cuda->info.memory; /* a small card is not filled */
    size_t rotated = memory / 4 < ROTATED_BYTES ? memory / 4 : ROTATED_BYTES;
    b->copy_bytes = memory / 8 < COPY_BYTES ? memory / 8 : COPY_BYTES;
    size_t sets = b->set_bytes ? rotated / b->set_bytes + 1 : 1;
    b->n_sets = sets > MOST_SETS ? MOST_SETS : sets < 2 ? 2 : (int)sets;
    b->result->sets = b->n_sets;
}

/* ---- memory ---- */

/* Halves between 1 and 2, or floats of the same bits: no zeros, which a card computes faster. */
static tk_status fill_random(const bench *b, tk_buffer *buffer, size_t bytes) {
    enum { BLOCK = 1 << 20 };
    uint16_t *block = tk_malloc(BLOCK);
    uint32_t state = 12345;
    tk_status status = TK_OK;
    if (!block) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a bench");
    for (size_t i = 0; i < BLOCK / 2; i++) {
        state = state * 1664525u + 1013904223u;
        uint16_t high = b->spec->element == TK_K_F16 ? 0x3c00 : 0x3f80;
        uint16_t mask = b->spec->element == TK_K_F16 ? 0x83ff : 0x807f;
        block[i] = (uint16_t)(high ^ (state >> 16 & mask));
    }
    for (size_t at = 0; status == TK_OK && at < bytes; at += BLOCK) {
        size_t part = bytes - at < BLOCK ? bytes - at : BLOCK;
        status = tk_cuda_upload(b->queue, (CUdeviceptr)(uintptr_t)buffer->data + at, block, part);
    }
    tk_free(block);
    return status;
}

static tk_status take_memory(bench *b) {
    for (int i = 0; i < b->n_sets; i++) {
        TK_TRY(tk_buffer_new_on(b->device, b->queue, b->set_bytes, &b->buffers[i]));
        TK_TRY(fill_random(b, b->buffers[i], b->set_bytes));
    }
    for (int i = 0; i < 2; i++) {
        TK_TRY(tk_buffer_new_on(b->device, b->queue, b->copy_bytes, &b->copies[i]));
        TK_TRY(tk_cuda_fill(b->queue, (CUdeviceptr)(uintptr_t)b->copies[i]->data, 0x3f9d70a4, 4,
                            b->copy_bytes / 4));
    }
    return TK_OK;
}

/* ---- running ---- */

static tk_status run_set(const bench *b, int set) {
    tk_strided tensors[MOST_TENSORS];
    static const double number = 1e-5;
    size_t offset = 0;
    for (size_t i = 0; i < b->n_tensors; i++) {
        tensors[i] = b->tensors[i];
        tensors[i].data = (char *)b->buffers[set]->data + offset;
        offset += (b->bytes[i] + 255) / 256 * 256;
    }
    tk_body_call call = {.device = b->device, .queue = b->queue};
    tk_library_run run = {.id = b->spec->id,
                          .n_tensors = b->n_tensors,
                          .tensors = tensors,
                          .n_numbers = tk_library_numbers(b->spec->id),
                          .numbers = &number,
                          .schedule = &b->schedule};
    return tk_run_library(&call, &run);
}

static tk_status drain(const bench *b) {
    return tk_cuda_queue_wait(b->queue, tk_cuda_queue_ticket(b->queue), NULL);
}

static tk_status record_graph(bench *b) {
    TK_TRY(tk_cuda_capture_begin(b->queue, &b->graph));
    for (int i = 0; i < b->n_sets; i++) TK_TRY(run_set(b, i));
    return tk_cuda_capture_end(b->graph);
}

/* The first run builds and loads; then all sets once, so that scratch memory is there. */
static tk_status warm_up(bench *b) {
    int64_t before = tk_trace_clock();
    TK_TRY(run_set(b, 0));
    TK_TRY(drain(b));
    b->result->build_seconds = 1e-9 * (double)(tk_trace_clock() - before);
    for (int i = 0; i < b->n_sets; i++) TK_TRY(run_set(b, i));
    return drain(b);
}

static tk_status launch_graph(bench *b) { return tk_cuda_graph_launch(b->graph, b->queue); }

static tk_status launch_copy(bench *b) {
    return tk_cuda_copy_async(b->queue, b->copies[0]->data, b->copies[1]->data, b->copy_bytes,
                              TK_COPY_ON_DEVICE);
}

/* Seconds of one call of `step` among `count`, by events. */
static tk_status measure(bench *b, tk_status (*step)(bench *b), int count, double *out) {
    const tk_cuda_api *api = b->cuda->api;
    float elapsed = 0;
    TK_CUDA_TRY(b->cuda, api->event_record(b->begin, b->queue->handle), "timing");
    for (int i = 0; i < count; i++) TK_TRY(step(b));
    TK_CUDA_TRY(b->cuda, api->event_record(b->end, b->queue->handle), "timing");
    TK_CUDA_TRY(b->cuda, api->event_synchronize(b->end), "timing");
    TK_CUDA_TRY(b->cuda, api->event_elapsed(&elapsed, b->begin, b->end), "timing");
    *out = 1e-3 * (double)elapsed / count;
    return TK_OK;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int repeats_for(double seconds) {
    double count = ROUND_SECONDS / (seconds > 1e-6 ? seconds : 1e-6);
    return count < 1 ? 1 : count > 1000 ? 1000 : (int)count;
}

static tk_status take_turns(bench *b) {
    double runs[MOST_ROUNDS], copies[MOST_ROUNDS], once = 0;
    int rounds = b->spec->rounds ? b->spec->rounds : 5;
    TK_TRY(measure(b, launch_graph, 2, &once));
    int repeats = repeats_for(once);
    for (int i = 0; i < rounds; i++) {
        TK_TRY(measure(b, launch_graph, repeats, &runs[i]));
        TK_TRY(measure(b, launch_copy, 8, &copies[i]));
    }
    qsort(runs, (size_t)rounds, sizeof *runs, by_value);
    qsort(copies, (size_t)rounds, sizeof *copies, by_value);
    b->result->seconds = runs[rounds / 2] / b->n_sets;
    b->result->fastest = runs[0] / b->n_sets;
    b->result->copy_bandwidth = 2.0 * (double)b->copy_bytes / copies[rounds / 2];
    return TK_OK;
}

/* ---- the whole ---- */

static tk_status run_bench(bench *b) {
    TK_TRY(set_tensors(b));
    TK_TRY(set_schedule(b));
    TK_TRY(tk_device_open(&tk_driver_cuda, b->spec->gpu, NULL, &b->device));
    b->cuda = tk_cuda_of(b->device);
    count_bytes(b);
    snprintf(b->result->card, sizeof b->result->card, "%s", b->cuda->info.name);
    TK_TRY(tk_cuda_queue_open(b->cuda, &b->queue));
    TK_CUDA_TRY(b->cuda, b->cuda->api->event_create(&b->begin, CU_EVENT_DEFAULT), "timing");
    TK_CUDA_TRY(b->cuda, b->cuda->api->event_create(&b->end, CU_EVENT_DEFAULT), "timing");
    TK_TRY(take_memory(b));
    TK_TRY(warm_up(b));
    TK_TRY(record_graph(b));
    return take_turns(b);
}

static void close_bench(bench *b) {
    tk_cuda_graph_release(b->graph);
    for (int i = 0; i < MOST_SETS; i++) tk_buffer_release(b->buffers[i]);
    for (int i = 0; i < 2; i++) tk_buffer_release(b->copies[i]);
    if (b->begin) (void)b->cuda->api->event_destroy(b->begin);
    if (b->end) (void)b->cuda->api->event_destroy(b->end);
    if (b->queue) tk_cuda_queue_close(b->queue);
    tk_device_close(b->device);
}

static tk_status check_spec(const tk_bench_spec *spec) {
    if (spec->size != sizeof *spec)
        return tk_fail(TK_INVALID_ARGUMENT, "tk_bench_spec.size is %zu, expected %zu", spec->size,
                       sizeof *spec);
    TK_TRY(tk_check_enum("id", (int)spec->id, TK_LIBRARY_COUNT, "tk_library_id"));
    TK_TRY(tk_check_enum("element", (int)spec->element, TK_KSCALAR_COUNT, "tk_kscalar"));
    if (spec->rank < 1 || spec->rank > TK_LIBRARY_MOST_AXES)
        return tk_fail(TK_SHAPE_ERROR, "a shape of %d axes, expected 1 to %d", spec->rank,
                       TK_LIBRARY_MOST_AXES);
    if (spec->element != TK_K_F32 && spec->element != TK_K_F16 && spec->element != TK_K_BF16)
        return tk_fail(TK_DTYPE_ERROR, "benches are of f32, f16 and bf16");
    if (spec->rounds < 0 || spec->rounds > MOST_ROUNDS)
        return tk_fail(TK_INVALID_ARGUMENT, "%d rounds, expected 1 to %d", spec->rounds,
                       MOST_ROUNDS);
    int64_t size;
    return tk_shape_size(TK_FLOAT32, spec->rank, spec->shape, &size);
}

tk_status tk_bench_kernel(const tk_bench_spec *spec, tk_bench_result *out_result) {
    TK_NEED(spec, out_result);
    TK_TRY(check_spec(spec));
    bench *b = tk_calloc(1, sizeof *b);
    if (!b) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a bench");
    *out_result = (tk_bench_result){0};
    b->spec = spec;
    b->result = out_result;
    tk_status status = run_bench(b);
    close_bench(b);
    tk_free(b);
    return status;
}

tk_status tk_bench_print(const tk_bench_spec *spec, const tk_bench_result *r, char **out_text) {
    TK_NEED(spec, r, out_text);
    tk_strbuf out = {0};
    double bandwidth = r->seconds > 0 ? (double)r->bytes / r->seconds : 0;
    tk_strbuf_printf(&out, "{\"kernel\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
                     tk_library_name(spec->id), tk_kscalar_text(spec->element));
    for (int i = 0; i < spec->rank; i++)
        tk_strbuf_printf(&out, "%s%lld", i ? ", " : "", (long long)spec->shape[i]);
    tk_strbuf_printf(&out, "], \"schedule\": \"%s\", \"us\": %.3f, \"fastest_us\": %.3f, ",
                     r->schedule, 1e6 * r->seconds, 1e6 * r->fastest);
    tk_strbuf_printf(&out,
                     "\"bytes\": %lld, \"TBps\": %.3f, \"copy_TBps\": %.3f, \"share\": %.3f, ",
                     (long long)r->bytes, 1e-12 * bandwidth, 1e-12 * r->copy_bandwidth,
                     r->copy_bandwidth > 0 ? bandwidth / r->copy_bandwidth : 0);
    if (r->flops)
        tk_strbuf_printf(&out, "\"TFLOPs\": %.1f, ", 1e-12 * (double)r->flops / r->seconds);
    tk_strbuf_printf(&out, "\"sets\": %d, \"build_ms\": %.2f, \"card\": \"%s\"}", r->sets,
                     1e3 * r->build_seconds, r->card);
    *out_text = tk_strbuf_take(&out);
    return *out_text ? TK_OK : tk_fail(TK_OUT_OF_MEMORY, "no memory for a text");
}
