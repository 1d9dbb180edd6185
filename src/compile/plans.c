/* See plans.h. A plan is found by the bytes of its call; when the table is full it is emptied,
 * since a plan costs milliseconds at most. */
#include "compile/plans.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "compile/run.h"
#include "runtime/buffer.h"
#include "runtime/cuda_device.h"

#define MOST_PLANS 512
#define MOST_TENSORS 8
#define MOST_NUMBERS 8
#define MOST_ALIGN 16 /* no access is wider */

/* ---- views as the library sees them ---- */

tk_kscalar tk_kernel_scalar_of(tk_dtype dtype) {
    switch (dtype) {
    case TK_FLOAT16:
        return TK_K_F16;
    case TK_BFLOAT16:
        return TK_K_BF16;
    case TK_FLOAT32:
        return TK_K_F32;
    case TK_FLOAT64:
        return TK_K_F64;
    default:
        break;
    }
    size_t bytes = tk_dtype_size(dtype);
    return bytes == 1 ? TK_K_I8 : bytes == 2 ? TK_K_I16 : bytes == 4 ? TK_K_I32 : TK_K_I64;
}

/* The address is known when a call runs, so its alignment is part of the plan. */
static int64_t alignment_of(const void *data) {
    int64_t align = 1;
    while (align < MOST_ALIGN && (uintptr_t)data % (uint64_t)(2 * align) == 0) align *= 2;
    return align;
}

void tk_library_tensor_of(const tk_strided *view, tk_library_tensor *out) {
    memset(out, 0, sizeof *out);
    out->rank = view->rank;
    if (view->rank < 0) return;
    out->element = tk_kernel_scalar_of(view->dtype);
    for (int i = 0; i < view->rank; i++) {
        out->shape[i] = view->shape[i];
        out->stride[i] = view->strides[i];
    }
    out->align = alignment_of(view->data);
}

void tk_extent_of(const tk_strided *view, size_t *out_before, size_t *out_bytes) {
    int64_t low = 0, high = 0, size = (int64_t)tk_dtype_size(view->dtype);
    *out_before = *out_bytes = 0;
    if (view->size == 0) return;
    for (int i = 0; i < view->rank; i++) {
        int64_t span = (view->shape[i] - 1) * view->strides[i];
        *(span < 0 ? &low : &high) += span;
    }
    *out_before = (size_t)(-low * size);
    *out_bytes = (size_t)((high - low + 1) * size);
}

/* ---- the table ---- */

/* Without gaps, so that bytes can be hashed and compared. */
typedef struct plan_key {
    uint32_t id; /* a tk_library_id */
    uint16_t has_schedule, no_clusters;
    size_t n_tensors, n_numbers;
    tk_library_tensor tensors[MOST_TENSORS];
    uint64_t numbers[MOST_NUMBERS]; /* bits of doubles */
    tk_library_schedule schedule;
} plan_key;

typedef struct plan_entry {
    uint64_t hash;
    plan_key *key;
    tk_library_plan *plan; /* NULL: the place is free */
} plan_entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static plan_entry entries[2 * MOST_PLANS];
static size_t n_entries;

static void make_key(const tk_body_call *call, const tk_library_run *run, plan_key *key) {
    const tk_cuda *cuda = call->device ? tk_cuda_of(call->device) : NULL;
    memset(key, 0, sizeof *key);
    key->id = (uint32_t)run->id;
    key->n_tensors = run->n_tensors;
    key->n_numbers = run->n_numbers;
    for (size_t i = 0; i < run->n_tensors; i++)
        tk_library_tensor_of(&run->tensors[i], &key->tensors[i]);
    if (run->n_numbers) memcpy(key->numbers, run->numbers, run->n_numbers * sizeof *run->numbers);
    key->has_schedule = run->schedule != NULL;
    key->no_clusters = cuda && !cuda->info.clusters;
    if (run->schedule) key->schedule = *run->schedule;
}

static plan_entry *place_of(const plan_key *key, uint64_t hash) {
    size_t mask = 2 * MOST_PLANS - 1, at = (size_t)hash & mask;
    while (entries[at].plan &&
           (entries[at].hash != hash || memcmp(entries[at].key, key, sizeof *key)))
        at = (at + 1) & mask;
    return &entries[at];
}

static void forget_all(void) {
    for (size_t i = 0; i < 2 * MOST_PLANS; i++) {
        tk_library_plan_release(entries[i].plan);
        tk_free(entries[i].key);
    }
    memset(entries, 0, sizeof entries);
    n_entries = 0;
}

static void keep(const plan_key *key, uint64_t hash, tk_library_plan *plan) {
    if (n_entries == MOST_PLANS) forget_all();
    plan_entry *place = place_of(key, hash);
    plan_key *copy = place->plan ? NULL : tk_malloc(sizeof *copy);
    if (!copy) return;
    *copy = *key;
    *place = (plan_entry){hash, copy, tk_library_plan_retain(plan)};
    n_entries++;
}

/* The schedule, or the default one; where there are no clusters that reads long rows again. */
static tk_status make_plan(const plan_key *key, tk_library_plan **out) {
    double numbers[MOST_NUMBERS];
    tk_library_id id = (tk_library_id)key->id;
    tk_library_schedule schedule = key->schedule;
    memcpy(numbers, key->numbers, sizeof numbers);
    if (!key->has_schedule) {
        TK_TRY(tk_library_schedule_default(id, key->n_tensors, key->tensors, &schedule));
        if (key->no_clusters && schedule.cluster > 1) {
            schedule.cluster = 1;
            schedule.held = 0;
            schedule.threads_per_row = 1024;
        }
    }
    return tk_library_plan_create(id, key->n_tensors, key->tensors, key->n_numbers, numbers,
                                  &schedule, out);
}

/* With a reference for the caller. */
static tk_status find_plan(const tk_body_call *call, const tk_library_run *run,
                           tk_library_plan **out) {
    plan_key key;
    if (run->n_tensors > MOST_TENSORS || run->n_numbers > MOST_NUMBERS)
        return tk_fail(TK_INTERNAL, "a library call of %zu tensors and %zu numbers", run->n_tensors,
                       run->n_numbers);
    make_key(call, run, &key);
    uint64_t hash = tk_hash_bytes(1, &key, sizeof key);
    pthread_mutex_lock(&lock);
    plan_entry *place = place_of(&key, hash);
    *out = place->plan ? tk_library_plan_retain(place->plan) : NULL;
    pthread_mutex_unlock(&lock);
    if (*out) return TK_OK;
    TK_TRY(make_plan(&key, out));
    pthread_mutex_lock(&lock);
    keep(&key, hash, *out);
    pthread_mutex_unlock(&lock);
    return TK_OK;
}

/* ---- running ---- */

typedef struct plan_run {
    const tk_body_call *call;
    const tk_library_run *run;
    const tk_library_plan *plan;
    tk_buffer *scratches[MOST_TENSORS];
    size_t n_scratches;
} plan_run;

static tk_status take_scratches(plan_run *r) {
    size_t count = tk_library_plan_scratches(r->plan);
    if (count > MOST_TENSORS) return tk_fail(TK_INTERNAL, "a plan with %zu scratches", count);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = (size_t)tk_library_plan_scratch_bytes(r->plan, i);
        TK_TRY(tk_buffer_new_on(r->call->device, r->call->queue, bytes, &r->scratches[i]));
        r->n_scratches++;
    }
    return TK_OK;
}

static tk_run_argument argument_of(const plan_run *r, const tk_library_argument *from) {
    tk_run_argument argument = {.bits = from->bits};
    if (from->kind == TK_LIBRARY_SCRATCH) {
        argument.data = r->scratches[from->index]->data;
        argument.bytes = (size_t)tk_library_plan_scratch_bytes(r->plan, from->index);
    }
    if (from->kind == TK_LIBRARY_TENSOR) {
        const tk_strided *view = &r->run->tensors[from->index];
        argument.data = view->data;
        tk_extent_of(view, &argument.before, &argument.bytes);
    }
    return argument;
}

static bool is_empty(const tk_kernel *kernel, size_t count, const tk_run_argument *arguments) {
    tk_kargument bits[32] = {{0}};
    tk_klaunch shape;
    static const tk_kdevice device = {.sms = 132, .shared_bytes = 227 * 1024, .threads = 2048};
    for (size_t i = 0; i < count; i++)
        bits[i].bits =
            arguments[i].data ? (uint64_t)(uintptr_t)arguments[i].data : arguments[i].bits;
    if (tk_kernel_launch(kernel, &device, count, bits, &shape) != TK_OK) return false;
    return !shape.grid[0] || !shape.grid[1] || !shape.grid[2];
}

static tk_status run_launch(const plan_run *r, size_t index) {
    tk_library_launch launch;
    tk_run_argument arguments[32];
    TK_TRY(tk_library_plan_launch(r->plan, index, &launch));
    if (launch.n_arguments > 32)
        return tk_fail(TK_INTERNAL, "a launch with %zu arguments", launch.n_arguments);
    for (size_t i = 0; i < launch.n_arguments; i++)
        arguments[i] = argument_of(r, &launch.arguments[i]);
    if (is_empty(launch.kernel, launch.n_arguments, arguments)) return TK_OK;
    tk_run run = {launch.kernel, NULL, launch.n_arguments, arguments, r->run->target};
    return tk_run_kernel(r->call->device, r->call->queue, &run);
}

static tk_status run_plan(plan_run *r) {
    tk_status status = take_scratches(r);
    for (size_t i = 0; status == TK_OK && i < tk_library_plan_launches(r->plan); i++)
        status = run_launch(r, i);
    for (size_t i = 0; i < r->n_scratches; i++) tk_buffer_release(r->scratches[i]);
    return status;
}

tk_status tk_run_library(const tk_body_call *call, const tk_library_run *run) {
    tk_library_plan *plan;
    TK_TRY(find_plan(call, run, &plan));
    plan_run r = {.call = call, .run = run, .plan = plan};
    tk_status status = run_plan(&r);
    tk_library_plan_release(plan);
    return status;
}
